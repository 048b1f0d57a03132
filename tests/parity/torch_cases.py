"""Torch's side of every case: torch_cases.py ROOT RECIPE CASE[=SEED] … [RECIPE CASE …]

A case without a seed of its own shares the start of its recipe's first case, and what torch recorded alone.
"""

import gc
import os
import sys
from dataclasses import replace
from pathlib import Path

from msmigrate.migrate.checkpoint.convert import convert
from msmigrate.parity.job import ParityJob
from msmigrate.parity.options import INIT_SEEDS
from msmigrate.parity.record import torch_worker
from msmigrate.parity.run_folder import CHECKPOINT, INPUTS, MINDSPORE, TORCH32, TORCH32_OTHER, TORCH64, WEIGHTS
from msmigrate.training.recipe import reader as recipes
from msmigrate.workers.worker import defer_compiler, wait_for


def main(root: Path, words: list[str]) -> None:
    pending, first = [], None
    for case in words:
        if case.endswith(".yaml"):
            recipe, first = recipes.load(Path(case)), None
            continue
        name, _, seed = case.partition("=")
        options = ParityJob(recipe, root / name, init_seeds=INIT_SEEDS)
        options.folder.mkdir()
        if seed or first is None:
            options = replace(options, recipe=recipe.model_copy(update={"seed": int(seed or recipe.seed)}))
            recorded = torch_worker.record_start_of(options)
            convert(options.folder / WEIGHTS, options.folder / CHECKPOINT)
            first = first or (options, recorded)
        else:
            recorded = first[1]
            for shared in (TORCH32, TORCH64, TORCH32_OTHER, INPUTS, CHECKPOINT):
                (options.folder / shared).symlink_to(first[0].folder / shared)
        pending.append((options, recorded))
    for options, recorded in pending:
        wait_for(options.folder / MINDSPORE / "trace.json")
        torch_worker.record_matched(options, *recorded)


if __name__ == "__main__":
    defer_compiler()  # torch's compiler, whose import takes longer than torch's
    gc.freeze()  # as the worker does: else every collection goes through all imported objects
    main(Path(sys.argv[1]), sys.argv[2:])
    sys.stdout.flush()
    os._exit(0)
