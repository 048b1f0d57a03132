"""Modules that were taken out of another one, `vgg16().features`, and have their values from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from .torch_names import is_torch

if TYPE_CHECKING:
    from .torch_described import Describer


def taken_out(describer: Describer, model: nn.Module) -> bool:
    """Find the parts of modules that are no part of the model; says whether parts of the model stand in them."""
    inside = {id(module) for module in model.modules()}
    found = False
    for module, *_ in describer.creations.values():
        if isinstance(module, nn.Module) and id(module) not in inside and not is_torch(type(module)):
            for owner, name, child in _parts(module):
                parts = {id(part) for part in child.modules()}
                if id(model) not in parts and _has_values_of(describer, child, module):
                    describer.parents.setdefault(id(child), (owner, name))
                    found |= bool(parts & inside)
    return found


def noting_values(describer: Describer, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives a tensor other values, and now notes whose and when."""

    def drawn(*args: Any, **kwargs: Any) -> Any:
        given = (getattr(function, "__self__", None), *args, *kwargs.values())
        tensor = next((one for one in given if isinstance(one, torch.Tensor)), None)
        if tensor is not None and tensor.layout is torch.strided:  # a sparse one has no memory of its own
            describer.redrawn[_memory(tensor)] = next(describer.count)
        return function(*args, **kwargs)

    return drawn


def _parts(module: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module]]:
    """Every module in one, with the module that it is a child of and its name there."""
    for owner in module.modules():
        for name, child in owner.named_children():
            yield owner, name, child


def _has_values_of(describer: Describer, child: nn.Module, module: nn.Module) -> bool:
    """Whether a child was made as the module was, or given to it and then drawn anew."""
    began, ended = describer.begun[id(module)], describer.ended[id(module)]
    drawn = (describer.redrawn.get(_memory(parameter), -1) for parameter in child.parameters())
    return describer.begun.get(id(child), -1) > began or any(began < when < ended for when in drawn)


def _memory(tensor: torch.Tensor) -> int:
    """What a tensor and its `data` have in common, also on the meta device, where no tensor has an address."""
    return int(tensor.untyped_storage()._cdata)
