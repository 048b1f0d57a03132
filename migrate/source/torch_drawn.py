"""Weights that somebody's own function draws anew in a module that was made before: `model.apply(init_weights)`."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

if TYPE_CHECKING:
    from .torch_changes import Made
    from .torch_described import Describer

INITIALIZERS = "torch.nn.init."
IN_PLACE = {
    f"torch.Tensor.{name}_" for name in ("normal", "uniform", "zero", "fill", "copy", "mul", "div", "trunc_normal")
}


class Drawn(NamedTuple):
    """A call that drew weights of a module, which is its first argument, or whose `apply` it is."""

    module: nn.Module
    function: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    applied: bool
    began: int
    ended: int


def draws(name: str) -> bool:
    """Whether a function of torch's gives a tensor other values."""
    return name.startswith(INITIALIZERS) or name in IN_PLACE


def note_drawn(
    describer: Describer,
    function: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    found: Any,
    began: int,
    before: tuple[int, int],
) -> None:
    """Note a call that is over if it drew weights of a module, and neither made another one nor gave anything else.

    began: the describer's count before it. before: how many drawings and objects there had been.
    """
    applied = is_apply(function)
    owner = function.__self__ if applied else next(iter(args), None)
    plain = isinstance(owner, nn.Module) and (applied or isinstance(function, types.FunctionType))
    nothing_else = (found is None or found is owner) and len(describer.begun) == before[1] and not describer.running
    if plain and nothing_else and describer.drawings > before[0]:
        one = Drawn(owner, function, args, kwargs, applied, began, next(describer.count))
        describer.drawn.append(one)


def is_apply(function: Any) -> bool:
    """Whether it is a module's `apply`."""
    return isinstance(function, types.MethodType) and function.__func__ is torch.nn.Module.apply


def after(describer: Describer, module: nn.Module, made: Made) -> Iterator[tuple[str, Drawn]]:
    """The calls that drew weights of a module once it was made, and where in it: none that a class or such a call made
    itself, which are written with these."""
    paths = {id(part): path for path, part in reversed([*module.named_modules(remove_duplicate=False)])}
    for one in describer.drawn:
        if one.began > made.ended and id(one.module) in paths and not _inside(describer, one):
            yield paths[id(one.module)], one


def _inside(describer: Describer, one: Drawn) -> bool:
    """Whether it happened while a module was made, or in a call that is written."""
    if any(other.began < one.began < other.ended for other in describer.drawn):
        return True
    made = (key for key, (value, *_) in describer.creations.items() if isinstance(value, nn.Module))
    return any(describer.begun[key] < one.began < describer.ended[key] for key in made)


def told(describer: Describer, path: list[Any], one: Drawn, *, first: bool) -> dict[str, Any] | str:
    """The call as plain JSON, or in words why it cannot be written; first: before other modules were put in place."""
    function = one.args[0] if one.applied else one.function
    name = describer.name(function) if isinstance(function, types.FunctionType) else ""
    if not name or "<" in name:
        return (
            f"weights were drawn by {getattr(function, '__qualname__', function)}: write that as a function of its own"
        )
    call = describer.call_of(name, () if one.applied else one.args[1:], one.kwargs)
    return {**call, "path": path, "applied": one.applied, "first": first}
