"""Ask this machine's MindSpore what it can do, and what a recipe's net will need, before anything is started.

    python -m msmigrate.training.mindspore_probe_worker [RECIPE [--seed N] [--steps N] [--steps-per-epoch N]
                                                         [--compile JSON]]

Its result has `version`, `devices` (target -> how many, 0 where it cannot be used), `missing` (target -> MindSpore's
own words), and with RECIPE `net`: sizes and learning rates, without training; with --compile, whose value is what the
graphs depend on besides, `graph`: what became of compiling the step.
"""

from __future__ import annotations

from ..workers.worker import answer, prepare_mindspore

prepare_mindspore()

import argparse  # noqa: E402
import json  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import mindspore  # noqa: E402

from .options import TARGETS  # noqa: E402


def main() -> dict[str, Any]:
    """The answer to the command line."""
    parser = argparse.ArgumentParser(description="Ask this machine's MindSpore what it can do.")
    parser.add_argument("recipe", type=Path, nargs="?")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--steps-per-epoch", type=int, default=1)
    parser.add_argument("--compile", type=json.loads)
    options = parser.parse_args()
    found: dict[str, Any] = {"version": mindspore.__version__, **targets()}
    if options.recipe is not None:  # doctor asks of targets alone where most of what this imports may be broken
        from .mindspore_net_facts import Wanted, graph_facts, net_facts

        found["net"] = net_facts(options.recipe, options.seed, options.steps, options.steps_per_epoch)
        if options.compile is not None:
            wanted = Wanted(**options.compile)
            found["graph"] = graph_facts(options.recipe, options.seed, wanted, found["net"]["inputs"])
    return found


def targets() -> dict[str, Any]:
    """How many devices of each target this process can use, and of the others why not."""
    devices, missing = {}, {}
    for target in TARGETS:
        context = getattr(mindspore.device_context, target.lower())
        try:
            devices[target] = context.device_count() if context.is_available() else 0
            if not devices[target]:
                mindspore.set_device(target, 0)  # which says why
        except (RuntimeError, ValueError) as error:
            devices[target] = 0
            missing[target] = str(error)
    return {"devices": devices, "missing": missing}


if __name__ == "__main__":
    answer(main)
