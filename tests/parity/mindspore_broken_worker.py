"""MindSpore's recorder with faults: mindspore_broken_worker.py FAULT[,FAULT] JOB.json."""

import sys
from contextlib import ExitStack

from msmigrate.workers.worker import prepare_mindspore, run

prepare_mindspore()

from mindspore_faults import broken  # noqa: E402
from msmigrate.parity.job import ParityJob  # noqa: E402
from msmigrate.parity.record import mindspore_worker  # noqa: E402

if __name__ == "__main__":
    with ExitStack() as faults:
        for name in sys.argv.pop(1).split(","):
            faults.enter_context(broken(name))
        run(mindspore_worker.main, ParityJob.read)
