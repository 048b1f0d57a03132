"""Arithmetic on tuples of gradients, also under jit: a map compiles ten times as fast as a comprehension."""

from __future__ import annotations

from typing import Any

from mindspore import ops

_map = ops.HyperMap()
_clear = ops.MultitypeFuncGraph("msmigrate_clear")
_add_to = ops.MultitypeFuncGraph("msmigrate_add_to")
_times = ops.MultitypeFuncGraph("msmigrate_times")


@_clear.register("Tensor")
def _clear_one(total: Any) -> bool:
    ops.assign(total, ops.zeros_like(total))
    return True


@_add_to.register("Tensor", "Tensor")
def _add_to_one(total: Any, grad: Any) -> bool:
    ops.assign_add(total, grad)
    return True


@_times.register("Tensor", "Tensor")
def _times_one(factor: Any, grad: Any) -> Any:
    return grad * factor


def clear(sums: Any) -> None:
    """Set every parameter of the tuple to zero."""
    _map(_clear, sums)


def add_to(sums: Any, grads: Any) -> None:
    """Add each gradient to its parameter."""
    _map(_add_to, sums, grads)


def times(grads: Any, factor: Any) -> Any:
    """Each gradient times a scalar tensor."""
    return _map(ops.partial(_times, factor), grads)
