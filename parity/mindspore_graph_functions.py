"""MindSpore's functions that draw, as a compiled step under parity has them: they ask a Bank.

Only their code is used, in MindSpore's modules, where `_msmigrate_draws` is that Bank; nothing calls them here. The
compiler reads their source, so they keep to what it understands.
"""
# mypy: disable-error-code="name-defined"
# ruff: noqa: F821

from __future__ import annotations

from typing import Any

from mindspore import ops
from mindspore.ops.function import nn_func


def dropout(input: Any, p: float = 0.5, training: bool = True, seed: Any = None) -> Any:
    """mindspore.ops.dropout."""
    if training is False or p == 0.0:
        return input
    return _msmigrate_draws.dropped(input, p)


def dropout_ext(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """mindspore.mint.nn.functional.dropout."""
    if training is False or p == 0.0:
        return input
    return _msmigrate_draws.dropped(input, p)


def rand(*size: Any, dtype: Any = None, seed: Any = None) -> Any:
    """mindspore.ops.rand."""
    shape = size
    if isinstance(size[0], (tuple, list)):
        shape = tuple(size[0])
    found = _msmigrate_draws.uniform(shape)
    return found if dtype is None else found.astype(dtype)


REPLACED = {ops.dropout: dropout, nn_func.dropout_ext: dropout_ext, ops.rand: rand}
