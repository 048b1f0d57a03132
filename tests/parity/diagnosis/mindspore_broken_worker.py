"""MindSpore's recorder with several faults at once: mindspore_broken_worker.py FAULT+FAULT RECIPE FOLDER [options]."""

import sys
from contextlib import ExitStack
from pathlib import Path

from msmigrate.train import mindspore_environment

mindspore_environment.prepare()
sys.path.insert(0, str(Path(__file__).parent.parent))

from mindspore_faults import broken  # noqa: E402
from msmigrate.parity import mindspore_worker, worker  # noqa: E402

if __name__ == "__main__":
    with ExitStack() as stack:
        for fault in sys.argv.pop(1).split("+"):
            stack.enter_context(broken(fault))
        worker.run(mindspore_worker.main)
