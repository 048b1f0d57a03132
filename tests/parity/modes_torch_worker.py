"""Torch's side of the cases of modes_cases.py: modes_torch_worker.py ROOT CASE …"""

import gc
import os
import sys
from pathlib import Path

import modes_torch_net
from modes_cases import CASES, options_of
from msmigrate.migrate.checkpoint.convert import convert
from msmigrate.parity.record import torch_worker
from msmigrate.parity.run_folder import CHECKPOINT, MINDSPORE, WEIGHTS
from msmigrate.training.models import torch_models
from msmigrate.workers.worker import defer_compiler, wait_for


def main(root: Path, names: list[str]) -> None:
    pending, build = [], torch_models.build
    for case in map(CASES.__getitem__, names):
        torch_models.build = build if case.recipe == "half" else modes_torch_net.build(case.recipe)
        options = options_of(root, case.name)
        options.folder.mkdir()
        pending.append((options, torch_worker.record_start_of(options)))
        convert(options.folder / WEIGHTS, options.folder / CHECKPOINT)
    for options, recorded in pending:
        wait_for(options.folder / MINDSPORE / "trace.json")
        torch_worker.record_matched(options, *recorded)


if __name__ == "__main__":
    defer_compiler()  # torch's compiler, whose import takes longer than torch's
    gc.freeze()  # as the worker does: else every collection goes through all imported objects
    main(Path(sys.argv[1]), sys.argv[2:])
    sys.stdout.flush()
    os._exit(0)
