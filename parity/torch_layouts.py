"""In what precisions and memory layouts torch's side runs: float32, float64, and float32 once more another way."""

from __future__ import annotations

import copy
from weakref import WeakKeyDictionary

import torch
from torch import nn

from .start import TORCH32, TORCH32_OTHER, TORCH64

Precision = tuple[str, torch.dtype, int]  # trace name, dtype, variant

CHANNELS_LAST, JIGGLED = 1, 2  # variants of TorchSide
PRECISIONS: tuple[Precision, ...] = (
    (TORCH32, torch.float32, 0),
    (TORCH64, torch.float64, 0),
    (TORCH32_OTHER, torch.float32, CHANNELS_LAST),
)
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}  # by the number of axes; torch has no other
_OTHER: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()


def try_layouts(model: nn.Module, *inputs: torch.Tensor) -> None:
    """Find out whether the model runs in channels_last, where `x.view(…)` may fail that works on contiguous tensors.

    inputs: a batch, any dtype; the model is left as it is.
    """
    trial = model_in_layout(copy.deepcopy(model).train(), channels_last=True)
    given = [in_layout(x, channels_last=True) for x in inputs]
    try:
        with torch.no_grad():
            trial(*given)
        _OTHER[model] = CHANNELS_LAST
    except RuntimeError:  # its own code, if it is at fault, fails in the ordinary layout too, and says so
        _OTHER[model] = JIGGLED


def precisions(model: nn.Module) -> tuple[Precision, ...]:
    """The runs of this model: the second float32 one in channels_last, or with values half a unit off where the model
    does not run so."""
    other = _OTHER.get(model, CHANNELS_LAST)
    return tuple((name, dtype, other if variant else 0) for name, dtype, variant in PRECISIONS)


def in_layout(tensor: torch.Tensor, *, channels_last: bool) -> torch.Tensor:
    """The tensor with its channels last in memory or contiguous: images (N, C, H, W) and clips (N, C, T, H, W).

    Others have no such layout, and stay as they are.
    """
    if tensor.dim() not in _CHANNELS_LAST:
        return tensor
    return tensor.contiguous(memory_format=_CHANNELS_LAST[tensor.dim()] if channels_last else torch.contiguous_format)


def model_in_layout(model: nn.Module, *, channels_last: bool) -> nn.Module:
    """The model itself, its weights and buffers put into that layout: Module.to takes no model with both ranks."""
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            tensor.data = in_layout(tensor.data, channels_last=channels_last)
    return model
