"""Torch's side of optimizers over groups: grouped_torch_worker.py prints what was found, as JSON."""

from __future__ import annotations

import copy
import json
from typing import Any

import torch
from msmigrate.errors import BadInput
from msmigrate.parity.align.torch_user_model import PairStep
from msmigrate.parity.align.user_model import Given
from msmigrate.parity.record.torch_runner import given_to_optimizer
from msmigrate.training.recipe.schema import Recipe
from msmigrate.workers.worker import defer_compiler
from torch import nn

RECIPE = Recipe.model_validate(
    {
        "model": {"name": "resnet_tiny"},
        "data": {"source": "synthetic:8x8", "batch": 4, "transforms": [{"name": "ToTensor"}]},
        "loss": {"name": "CrossEntropyLoss"},
        "optimizer": {"name": "SGD", "args": {"lr": 0.1}},
    }
)


def step(model: nn.Module, optimizer: Any) -> PairStep:
    return PairStep(RECIPE, copy.deepcopy(model).double(), Given(model, optimizer=optimizer))


def main() -> dict[str, Any]:
    model, other = (nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3)) for _ in range(2))
    groups = [{"params": model[1].parameters(), "lr": 0.5}]
    of_a_part = step(model, lambda _: torch.optim.SGD(groups, 0.1))
    ones = {name: torch.ones_like(p) for name, p in of_a_part.parameters.items()}
    before = {name: p.detach().clone() for name, p in of_a_part.parameters.items()}
    found: dict[str, Any] = {"given": sorted(given_to_optimizer(of_a_part, ones))}
    of_a_part.apply(ones)
    found["moved by"] = {n: float((before[n] - p.detach()).mean()) for n, p in of_a_part.parameters.items()}
    try:
        step(model, lambda _: torch.optim.SGD(other.parameters(), 0.1))
    except BadInput as error:
        found["refused"] = str(error)
    return found


if __name__ == "__main__":
    defer_compiler()  # torch's compiler, whose import takes longer than torch's
    print(json.dumps(main()))
