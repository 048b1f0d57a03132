"""Ask this machine's MindSpore what it can do, and a recipe's net what it will need, before anything is started.

    python -m msmigrate.training.mindspore_probe_worker [RECIPE [--seed N] [--steps N] [--steps-per-epoch N]]

Prints one line of JSON: `version`, `devices` (target -> how many, 0 where it cannot be used), `missing` (target ->
MindSpore's own words), and with RECIPE `net`; or `error`, with the class of errors.py in `kind`.
"""

from __future__ import annotations

from ..workers.worker import leave
from . import mindspore_environment

mindspore_environment.prepare()

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import mindspore  # noqa: E402

from ..errors import MsmigrateError  # noqa: E402


def main() -> None:
    """Print the answer as one line; whatever else MindSpore prints goes to stderr."""
    out = os.dup(1)
    os.dup2(2, 1)
    parser = argparse.ArgumentParser(description="Ask this machine's MindSpore what it can do.")
    parser.add_argument("recipe", type=Path, nargs="?")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--steps-per-epoch", type=int, default=1)
    asked = parser.parse_args()
    answer: dict[str, Any] = {"version": mindspore.__version__, **targets()}
    try:
        if asked.recipe is not None:
            from .mindspore_net_facts import net_facts

            answer["net"] = net_facts(asked.recipe, asked.seed, asked.steps, asked.steps_per_epoch)
    except MsmigrateError as error:
        answer = {"error": str(error), "kind": type(error).__name__}
    os.write(out, (json.dumps(answer) + "\n").encode())
    leave()


def targets() -> dict[str, Any]:
    """How many devices of each target this process can use, and of the others why not."""
    devices, missing = {}, {}
    for target in ("Ascend", "GPU", "CPU"):
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
    main()
