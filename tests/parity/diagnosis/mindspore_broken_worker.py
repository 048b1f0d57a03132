"""MindSpore's recorder with several faults at once: mindspore_broken_worker.py FAULT+FAULT RECIPE FOLDER [options]."""

import sys
from contextlib import ExitStack
from pathlib import Path

from msmigrate.training import mindspore_environment

mindspore_environment.prepare()
sys.path.insert(0, str(Path(__file__).parent.parent))

from mindspore_faults import broken  # noqa: E402
from msmigrate.parity import options  # noqa: E402
from msmigrate.parity.record import mindspore_worker  # noqa: E402

if __name__ == "__main__":
    with ExitStack() as stack:
        for fault in sys.argv.pop(1).split("+"):
            stack.enter_context(broken(fault))
        options.run(mindspore_worker.main)
