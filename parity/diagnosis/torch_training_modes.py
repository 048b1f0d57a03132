"""Which mistake put a module in the wrong mode: the same tensors come of several, and the rest of the net tells them
apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from torch import nn

from ...mappings import table
from ..result import Cause
from .hypotheses import place

FORGOTTEN, ADDED = "bn-set-train-missing", "new-child-not-training"
EVALUATED, FLIPPED = "bn-use-batch-statistics-true", "bn-frozen-flipped-back"


def named_by_mode(causes: Sequence[Cause], model: nn.Module, cells: dict[str, str]) -> list[Cause]:
    """Causes of modules that ran alone in a training step, with the fault that the other modules speak for.

    A single module in evaluation mode was added after `set_train()`, where all of them are it was never called. One
    that trains where torch's does not was frozen in torch. model: in training mode; cells: module -> Cell.
    """
    forgotten = {cause.place for cause in causes if cause.fault == FORGOTTEN}
    single = bool(set(_trained(model)) - forgotten)
    told = []
    for cause in causes:
        fault = cause.fault
        if fault == FORGOTTEN and single:
            fault = ADDED
        elif fault == EVALUATED:
            fault = FLIPPED
        told.append(cause if fault == cause.fault else _renamed(cause, fault or "", cells))
    return told


def _renamed(cause: Cause, fault: str, cells: dict[str, str]) -> Cause:
    fix = f"{place(cells.get(cause.place, cause.place))}: {table.faults()[fault].fix}"
    return replace(cause, fault=fault, fix=fix)


def _trained(model: nn.Module) -> Iterator[str]:
    """The norms that take their statistics from the batch; of a net without any, the layers that drop something."""
    norms = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training
    ]
    yield from norms or (
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.training and module.p > 0
    )
