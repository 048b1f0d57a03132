"""Torch's side of the pairs: torch_pairs.py ROOT NAME …"""

import os
import sys
from pathlib import Path

from msmigrate.parity.record import torch_worker
from msmigrate.workers.worker import defer_compiler
from pair_cases import options

if __name__ == "__main__":
    defer_compiler()  # torch's compiler, whose import takes longer than torch's
    for name in sys.argv[2:]:
        torch_worker.main(options(Path(sys.argv[1]), name))
    sys.stdout.flush()
    os._exit(0)
