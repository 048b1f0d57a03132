"""Training runs that begin in one framework and go on in the other; it imports no framework.

The workers run as scripts, so this file is found beside them; the tests load it by its path.
"""

from __future__ import annotations

import os
from typing import Any

from step_cases import COSINE, PEAK, PHASES, Case

BEFORE, AFTER = 3, 4  # steps in the one, and in the other
SCALER = {"init_scale": 1024.0, "growth_interval": 2}
PER_EPOCH = {**COSINE, "per": "epoch"}
STEPS_PER_EPOCH = 1


def _case(name: str, model: str = "lenet5", **keys: Any) -> Case:
    args = keys.pop("args")
    groups = {"no_weight_decay": ["bias"]} if keys.pop("groups", False) else {}
    return Case({"optimizer": {"name": name, "args": args, **groups}, **keys}, model, steps=BEFORE + AFTER)


CASES: dict[str, Case] = {
    "sgd": _case("SGD", args={"lr": 0.05}, schedule=COSINE),
    "everything": _case(
        "SGD",
        args={"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True},
        groups=True,
        schedule=PER_EPOCH,
        dynamic_loss_scale=SCALER,
        ema={"decay": 0.9},
        clip={"max_norm": 0.5},
    ),
    "dampening": _case(
        "SGD", args={"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}, schedule=COSINE
    ),
    "adam": _case("Adam", args={"lr": 0.003, "amsgrad": True, "weight_decay": 0.01}),
    "adamw": _case("AdamW", args={"lr": 0.003, "weight_decay": 0.1}, groups=True, schedule=COSINE),
    "cycled": _case("SGD", args={"lr": 0.05, "momentum": 0.9, "nesterov": True}, groups=True, schedule=PEAK),
    "cycled adamw": _case("AdamW", args={"lr": 0.003}, schedule=PHASES),
    "rmsprop": _case("RMSprop", args={"lr": 0.003, "momentum": 0.9, "centered": True}, schedule=COSINE),
    "resnet": _case("SGD", "resnet_tiny", args={"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}, schedule=COSINE),
}
QUICK = ("everything", "adamw", "cycled", "cycled adamw")  # test_continue_rows.py goes on with every optimizer
REFUSED = ("adam", "sgd")  # whose checkpoints are also given to other recipes


def chosen() -> dict[str, Case]:
    """The cases that the worker runs."""
    return CASES if os.environ.get("EXTENT") == "all" else {name: CASES[name] for name in QUICK}


def modes(name: str) -> tuple[str, ...]:
    """The modes in which MindSpore goes on: operator by operator, and compiled where that is the point."""
    return ("graph", "pynative") if os.environ.get("EXTENT") == "all" else ("pynative",)
