"""MindSpore's side of the cases: mindspore_cases.py ROOT PART/OF RECIPE FAULT[=SEED] … [RECIPE FAULT …]

0/2 takes every other case, beginning with the first, and 1/2 the rest.
"""

import os
import sys
import traceback
from pathlib import Path

from msmigrate.workers.worker import prepare_mindspore, wait_for

prepare_mindspore()

from mindspore_faults import broken  # noqa: E402
from msmigrate.parity.job import ParityJob  # noqa: E402
from msmigrate.parity.record import mindspore_worker  # noqa: E402
from msmigrate.training.recipe import reader as recipes  # noqa: E402


def main(root: Path, part: str, words: list[str]) -> None:
    turn, of = map(int, part.split("/"))
    number = 0
    for case in words:
        if case.endswith(".yaml"):
            recipe = recipes.load(Path(case))
            continue
        number += 1
        if (number - 1) % of != turn:
            continue
        name, _, seed = case.partition("=")
        own = recipe.model_copy(update={"seed": int(seed)}) if seed else recipe
        wait_for(root / name)
        with broken("none" if name.startswith("none-") else name):
            mindspore_worker.main(ParityJob(own, root / name, no_replay=True))


if __name__ == "__main__":
    code = 0
    try:
        main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)
