"""MindSpore's side of the pairs: mindspore_pairs.py ROOT NAME …"""

import os
import sys
import traceback
from pathlib import Path

from msmigrate.workers.worker import prepare_mindspore

prepare_mindspore()

from msmigrate.parity.record import mindspore_worker  # noqa: E402
from pair_cases import options  # noqa: E402

if __name__ == "__main__":
    code = 0
    try:
        for name in sys.argv[2:]:
            mindspore_worker.main(options(Path(sys.argv[1]), name))
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)
