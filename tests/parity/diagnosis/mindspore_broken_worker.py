"""MindSpore's recorder with several faults at once: mindspore_broken_worker.py FAULT+FAULT JOB.json."""

import sys
from contextlib import ExitStack
from pathlib import Path

from msmigrate.workers.worker import prepare_mindspore, run

prepare_mindspore()
sys.path.insert(0, str(Path(__file__).parent.parent))

from mindspore_faults import broken  # noqa: E402
from msmigrate.parity.job import ParityJob  # noqa: E402
from msmigrate.parity.record import mindspore_worker  # noqa: E402

if __name__ == "__main__":
    with ExitStack() as stack:
        for fault in sys.argv.pop(1).split("+"):
            stack.enter_context(broken(fault))
        run(mindspore_worker.main, ParityJob.read)
