"""MindSpore's side of every case: mindspore_cases.py ROOT

ROOT/plan.json says what to run. What a fault cannot touch, the batches and the initial distributions, is made once for
each base, and anew for a fault of that kind.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msmigrate.workers.worker import prepare_mindspore, wait_for

prepare_mindspore()

import mindspore_injectors as injectors  # noqa: E402
import numpy as np  # noqa: E402
import plan as planning  # noqa: E402
from losses_mindspore import LOSSES  # noqa: E402
from mindspore import Tensor, nn  # noqa: E402
from msmigrate.parity.align import mindspore_user_model  # noqa: E402
from msmigrate.parity.job import ParityJob, recipe_of  # noqa: E402
from msmigrate.parity.record import mindspore_worker  # noqa: E402
from msmigrate.parity.record.recorder import FIRST_SEED  # noqa: E402
from msmigrate.training.models import mindspore_models  # noqa: E402
from msmigrate.training.models.mindspore_models import canonical_parameters  # noqa: E402
from msmigrate.training.recipe import reader as recipes  # noqa: E402
from msmigrate.training.step import mindspore_step  # noqa: E402
from nets_mindspore import NETS  # noqa: E402

MADE_ONCE = ("data_batches", "initial_values")


def main(root: Path) -> None:
    planning.register(mindspore_models._MODELS, NETS)
    done = root / "done.json"  # the cases that are recorded, where an error has ended a process before this one
    over = json.loads(done.read_text()) if done.exists() else []
    for base in json.loads((root / "plan.json").read_text()):
        recipe = recipes.load(Path(base["recipe"]))
        kept: dict[Any, Any] = {}
        with ExitStack() as around:
            if not base["pair"]:
                around.enter_context(patch.object(mindspore_worker, "load_start", load_start))
            if base["loss"]:
                loss = LOSSES[base["loss"]]
                around.enter_context(patch.object(mindspore_step, "build_loss", lambda recipe, loss=loss: loss()))
            for case in base["cases"]:
                name = f"{base['name']}--{case['name']}"
                if name in over:
                    continue
                options = ParityJob(recipe, wait_for(root / name), steps=planning.STEPS, together=True)
                if base["pair"]:
                    options = planning.pair_job(recipe, options.folder, base["pair"], case)
                recorded = record(options, case["inject"], kept)
                over.append(name)
                if not recorded:  # an error that leaves a function under differentiation breaks the next gradients
                    done.write_text(json.dumps(over))
                    os.execv(sys.executable, [sys.executable, *sys.argv])


def record(options: ParityJob, inject: list[tuple[str, dict[str, Any]]], kept: dict[Any, Any]) -> bool:
    """Record one case, and say whether that went well; an error leaves the file `crashed` in place of the trace."""
    began = time.monotonic()
    anew = any(injectors.early(name) for name, _ in inject)
    places: list[str] = []
    try:
        with ExitStack() as stack:
            if not anew and options.pair is None:
                make(options, kept)
                for name in MADE_ONCE:
                    real = getattr(mindspore_worker, name)
                    stack.enter_context(patch.object(mindspore_worker, name, once(name, real, kept)))
            for name, arguments in inject:
                stack.enter_context(injectors.planted(name, arguments, places))
            mindspore_worker.main(options)
    except Exception:
        draft = options.folder / "crashed.part"
        draft.write_text(traceback.format_exc())
        tell(options, places, began)
        draft.rename(options.folder / "crashed")  # the torch side takes the folder away once it has read this
        return False
    tell(options, places, began)
    return True


def make(options: ParityJob, kept: dict[Any, Any]) -> None:
    """What all cases of a base share, made before anything is planted."""
    if kept:
        return
    recipe = recipe_of(options, mindspore_user_model.classes_of(options))
    kept["data_batches", options.steps] = mindspore_worker.data_batches(recipe, options.steps)
    for seed in range(FIRST_SEED, FIRST_SEED + options.seeds):
        kept["initial_values", seed] = mindspore_worker.initial_values(options, seed, None)


def tell(options: ParityJob, places: list[str], began: float) -> None:
    """Leave word of what was planted where, and how long it took."""
    told = {"places": sorted(set(places)), "seconds": time.monotonic() - began}
    draft = options.folder / "injected.part"
    draft.write_text(json.dumps(told))
    draft.rename(options.folder / "injected.json")


def once(name: str, real: Callable[..., Any], kept: dict[Any, Any]) -> Callable[..., Any]:
    """The function, computed once for each second argument (the steps, or a seed)."""

    def made(first: Any, which: Any, *rest: Any) -> Any:
        key = (name, which)
        if key not in kept:
            kept[key] = real(first, which, *rest)
        return kept[key]

    return made


def load_start(net: nn.Cell, checkpoint: str) -> None:
    """Put the starting weights in place by torch's names; a parameter that the file lacks stays as it was born."""
    values = np.load(checkpoint)
    for held in canonical_parameters(net):
        if held.name in values:
            value = values[held.name]
            if held.parameter.shape != value.shape:
                raise ValueError(f"{held.name}: {value.shape} does not fit {held.parameter.shape}")
            held.parameter.set_data(Tensor(value))


if __name__ == "__main__":
    code = 0
    try:
        main(Path(sys.argv[1]))
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
