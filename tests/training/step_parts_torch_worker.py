"""What torch and timm say of loss scales and averages: `python step_parts_torch_worker.py FOLDER`."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import torch
from msmigrate.training.recipe.schema import DynamicLossScale, Ema
from msmigrate.training.step.torch_step import LossScale, MovingAverage, leaves_gradients
from step_parts_cases import AVERAGES, OVERFLOWS, RULES, SCALES
from timm.utils import ModelEmaV2, ModelEmaV3
from worker import dump


def scales(rule: dict[str, Any]) -> list[tuple[float, int]]:
    """What GradScaler makes of the overflows: scale and growth tracker after every step."""
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler = torch.amp.GradScaler("cpu", **rule)
    found = []
    for overflows in OVERFLOWS:
        weight.grad = torch.full((2,), float("inf") if overflows else 1.0)
        scaler.scale(torch.zeros(()))  # which makes the scale
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        found.append((scaler.get_scale(), int(scaler._growth_tracker)))
    return found


def own_scales(rule: dict[str, Any]) -> list[tuple[float, int]]:
    """The same of the scale that torch's side of a recipe's step has."""
    scaler = LossScale(rule["init_scale"], DynamicLossScale(**rule))
    found = []
    for overflows in OVERFLOWS:
        scaler.update(not overflows)
        found.append((scaler.scale, scaler.growth_tracker))
    return found


def averages(ema: Ema) -> tuple[float, float]:
    """How far our average and timm's stand apart after some updates, and how far timm's is from the weights."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4))
    ours = MovingAverage(ema, model)
    if ema.warmup or ema.update_after_step:
        names = ("decay", "min_decay", "update_after_step", "warmup_gamma", "warmup_power")
        theirs = ModelEmaV3(model, use_warmup=ema.warmup, **{name: getattr(ema, name) for name in names})
    else:
        theirs = ModelEmaV2(model, decay=ema.decay)
    for update in range(1, 9):
        with torch.no_grad():
            for tensor in model.state_dict().values():
                tensor.add_(1 if tensor.dtype == torch.int64 else torch.rand_like(tensor))
        ours.update(model, update)
        theirs.update(model, **({"step": update} if isinstance(theirs, ModelEmaV3) else {}))
    held = theirs.module.state_dict()
    floating = [name for name in held if "num_batches" not in name]
    apart = max(float((ours.tensors[name] - held[name]).abs().max()) for name in floating)
    away = max(float((model.state_dict()[name] - held[name]).abs().max()) for name in floating)
    return apart, away


def decays(ema: Ema) -> list[float]:
    """timm's decay of each update."""
    names = ("decay", "min_decay", "update_after_step", "warmup_gamma", "warmup_power")
    timm = ModelEmaV3(torch.nn.Linear(1, 1), use_warmup=ema.warmup, **{name: getattr(ema, name) for name in names})
    return [timm.get_decay(update) for update in range(1, 2000)]


ARGUMENTS: tuple[dict[str, Any], ...] = (
    *({}, {"weight_decay": 0.1}, {"momentum": 0.9}, {"maximize": True}, {"amsgrad": True}, {"centered": True}),
    *({"momentum": 0.9, "nesterov": True}, {"momentum": 0.9, "nesterov": True, "maximize": True, "weight_decay": 0.1}),
)


def gradients() -> dict[str, tuple[bool, bool]]:
    """Of each of torch's optimizers: whether we say that it leaves gradients alone, and whether it did."""
    kinds = [kind for kind in vars(torch.optim).values() if inspect.isclass(kind)]
    optimizers = [kind for kind in kinds if issubclass(kind, torch.optim.Optimizer) and "lr" in _takes(kind)]
    found = {}
    for kind in optimizers:
        if kind in (torch.optim.LBFGS, torch.optim.SparseAdam):  # one asks for a closure, one for sparse gradients
            continue
        for given in ARGUMENTS:
            for more in ({}, {"foreach": True}):
                if set(given) | set(more) <= _takes(kind):
                    found[f"{kind.__name__} {given | more}"] = _gradient(kind, given | more)
    return found


def _takes(kind: type) -> set[str]:
    return set(inspect.signature(kind).parameters)


def _gradient(kind: Any, given: dict[str, Any]) -> tuple[bool, bool]:
    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(3, 4)) for _ in range(2)]
    optimizer = kind(weights, lr=0.1, **given)
    alone = True
    for _ in range(3):
        for weight in weights:
            weight.grad = torch.randn_like(weight)
        before = [weight.grad.clone() for weight in weights]  # type: ignore[union-attr]
        optimizer.step()
        alone &= all(torch.equal(weight.grad, old) for weight, old in zip(weights, before, strict=True))  # type: ignore[arg-type]
    return leaves_gradients(optimizer), alone


def main(folder: Path) -> None:
    """Write what was found."""
    facts = {
        "scales": {name: scales(RULES[name]) for name in SCALES},
        "own scales": {name: own_scales(RULES[name]) for name in SCALES},
        "averages": {name: averages(Ema(**args)) for name, args in AVERAGES.items()},
        "gradients": gradients(),
        "decays": {name: decays(Ema(**args)) for name, args in AVERAGES.items()},
    }
    dump(folder / "torch", facts, {})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
