"""MindSpore's recorder with one fault: mindspore_broken_worker.py FAULT RECIPE FOLDER [options]."""

import sys

from msmigrate.train import mindspore_environment

mindspore_environment.prepare()

from mindspore_faults import broken  # noqa: E402
from msmigrate.parity import mindspore_worker, worker  # noqa: E402

if __name__ == "__main__":
    with broken(sys.argv.pop(1)):
        worker.run(mindspore_worker.main)
