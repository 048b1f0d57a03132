"""MindSpore's recorder with five faults at once, for the example report: example_faults_mindspore.py JOB.json

Each is one that tests/parity plants alone: a BatchNorm's eps, a max-pool's padding, a block without its shortcut, label
smoothing over K − 1 classes, and weight decay that skips norms and biases.
"""

import importlib
import sys
from contextlib import ExitStack
from pathlib import Path

from msmigrate.workers.worker import prepare_mindspore, run

prepare_mindspore()

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "parity"))

from msmigrate.parity.job import ParityJob  # noqa: E402
from msmigrate.parity.record import mindspore_worker  # noqa: E402

FAULTS = ("bn_eps", "maxpool_same", "residual_forgotten", "label_smoothing", "norm_undecayed")

if __name__ == "__main__":
    faults = importlib.import_module("mindspore_faults")  # of the tests
    with ExitStack() as planted:
        for fault in FAULTS:
            planted.enter_context(faults.broken(fault))
        run(mindspore_worker.main, ParityJob.read)
