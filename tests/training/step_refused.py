"""Recipes that only the framework, or the model's own names, can refuse; it imports no framework."""

from __future__ import annotations

from typing import Any

from step_cases import Case


def _sgd(**keys: Any) -> dict[str, Any]:
    return {"optimizer": {"name": "SGD", **keys}}


REFUSED: dict[str, Case] = {
    "no such parameter": Case(_sgd(args={"lr": 0.1}, groups=[{"params": ["fc*", "conv9.*"], "args": {"lr": 0.1}}])),
    "hidden group": Case(
        _sgd(args={"lr": 0.1}, groups=[{"params": [name], "args": {"lr": 0.1}} for name in ("fc*", "fc3.*")])
    ),
    "negative rate": Case(_sgd(args={"lr": -1.0})),
    "nesterov alone": Case(_sgd(args={"lr": 0.1, "nesterov": True})),
    "nothing left to train": Case(_sgd(args={"lr": 0.1}), frozen=("conv", "fc")),
}
