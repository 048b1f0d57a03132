"""MindSpore's recorder with one fault: mindspore_broken_worker.py FAULT RECIPE FOLDER [options]."""

import sys

from msmigrate.training import mindspore_environment

mindspore_environment.prepare()

from mindspore_faults import broken  # noqa: E402
from msmigrate.parity import options  # noqa: E402
from msmigrate.parity.record import mindspore_worker  # noqa: E402

if __name__ == "__main__":
    with broken(sys.argv.pop(1)):
        options.run(mindspore_worker.main)
