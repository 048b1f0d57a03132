"""One run for every optimizer of the mapping table that begins in one framework and goes on in the other.

The workers run as scripts, so this file is found beside them; the tests load it by its path. It imports no framework.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from msmigrate.mappings import table
from msmigrate.training.recipe.check import check
from msmigrate.training.recipe.schema import Recipe

SLOW = 1e-4  # the rate of what climbs: the square of a distance has no top, and six steps at 0.1 end in infinity
BEFORE, AFTER = 3, 3  # steps in the one, and in the other
CLASSES, BATCH = 3, 4
PARAMETERS = {"conv.weight": (2, 1, 3, 3), "conv.bias": (2,), "fc.weight": (CLASSES, 8), "fc.bias": (CLASSES,)}


class Run(NamedTuple):
    """torch: the optimizer's class. args: its arguments. groups: the options of conv's parameters, and of fc's."""

    torch: str
    args: Mapping[str, Any]
    groups: tuple[Mapping[str, Any], Mapping[str, Any]]

    @property
    def recipe(self) -> Recipe:
        """What says the same to msmigrate; the net is the worker's own."""
        groups = [
            {"params": [f"{layer}.*"], "args": dict(options)}
            for layer, options in zip(("conv", "fc"), self.groups, strict=True)
        ]
        found = Recipe.model_validate(
            {
                "model": {"name": "lenet5"},
                "data": {"source": "digits", "batch": BATCH},
                "loss": {"name": "MSELoss"},
                "optimizer": {"name": self.torch, "args": dict(self.args), "groups": groups},
            }
        )
        check(found)
        return found


def _runs() -> Iterator[tuple[str, Run]]:
    """The cases of the table's rows that have two parameter groups."""
    for row in table.rows("optimizer"):
        if row.mindspore is None:
            continue
        cases = [case for case in row.cases if case.raises is None and None not in case.args.values()]
        grouped = [case for case in cases if len(case.groups) > 1]  # a recipe has no way to say None
        for index, case in enumerate(grouped):
            slow = {"lr": SLOW} if case.args.get("maximize") else {}
            yield f"{row.short} {index}", Run(row.torch, {**case.args, **slow}, (case.groups[0], case.groups[1]))


RUNS = dict(_runs())


QUICK = ("SGD 0", "Adam 0", "Lamb 0")  # the others differ by what the table says of them


def is_quick(name: str) -> bool:
    return name in QUICK


def chosen() -> dict[str, Run]:
    """The runs that the workers do."""
    return {name: run for name, run in RUNS.items() if is_quick(name) or os.environ.get("EXTENT") == "all"}


def modes(name: str) -> tuple[str, ...]:
    """MindSpore's modes; the optimizers are compiled in both."""
    return ("pynative", "graph") if os.environ.get("EXTENT") == "all" else ("pynative",)


def start(name: str) -> np.ndarray:
    """The first value of a parameter, float32."""
    seed = list(PARAMETERS).index(name)
    return np.random.default_rng(seed).standard_normal(PARAMETERS[name]).astype(np.float32)


def batch(step: int) -> tuple[np.ndarray, np.ndarray]:
    """The inputs (4, 1, 4, 4) and the targets (4, 3) of a step, float32."""
    draws = np.random.default_rng(100 + step)
    images, targets = draws.standard_normal((BATCH, 1, 4, 4)), draws.standard_normal((BATCH, CLASSES))
    return images.astype(np.float32), targets.astype(np.float32)
