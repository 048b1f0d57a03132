"""A loss that depends on everything a MindSpore net returns; torch_output_loss.py is the same in torch."""

from __future__ import annotations

from typing import Any

from mindspore import Tensor, ops
from mindspore import dtype as mstype

PERIOD = 101
FLOATS = (mstype.float16, mstype.bfloat16, mstype.float32, mstype.float64)


def output_loss(outputs: Any, labels: Tensor) -> Tensor:
    """The loss of what the net returned."""
    distances = [_distance(x) for x in _flat(outputs) if x.dtype in FLOATS]
    return ops.stack(distances).mean()


def _distance(x: Tensor) -> Tensor:
    x = ops.cast(x, mstype.float32)
    fixed = ops.cast(ops.arange(x.size) % PERIOD, mstype.float32) / PERIOD
    return ((x.reshape(-1) - fixed) ** 2).mean() / 2


def _flat(value: Any) -> list[Tensor]:
    """The tensors in a nest of tuples, lists and dicts, in order; this is compiled too."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    found = []
    if isinstance(value, (tuple, list)):
        for item in value:
            found += _flat(item)
    return found
