"""What a model leaves as it was in memory: `torch.empty` that nothing fills before weights are loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.utils import deterministic


@contextmanager
def marked_memory() -> Iterator[None]:
    """Within this block torch fills new memory with NaN (of whole numbers the largest), as its deterministic mode does.

    https://docs.pytorch.org/docs/stable/deterministic.html
    """
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    fills, deterministic.fill_uninitialized_memory = deterministic.fill_uninitialized_memory, True
    # not torch.use_deterministic_algorithms, which imports torch's compiler
    torch._C._set_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch._C._set_deterministic_algorithms(before[0], warn_only=before[1])
        deterministic.fill_uninitialized_memory = fills


def clear(model: nn.Module, again: Callable[[], nn.Module]) -> tuple[str, ...]:
    """Put zeros where a model that was made in such a block was left as memory is; gives the names of these tensors.

    again: makes the model outside of it: what is NaN there too was meant to be.
    """
    found = {name: places for name, tensor in _tensors(model) if (places := _marked(tensor)).any()}
    if not found:
        return ()
    plain = dict(_tensors(again()))
    left = {name: places for name, places in found.items() if not _marked(plain[name])[places].all()}
    with torch.no_grad():
        for name, tensor in _tensors(model):
            if name in left:
                tensor.masked_fill_(left[name], 0)
    return tuple(left)


def _tensors(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.layout is torch.strided and tensor.dtype is not torch.bool:
            yield name, tensor


def _marked(tensor: torch.Tensor) -> torch.Tensor:
    return torch.isnan(tensor) if tensor.is_floating_point() else tensor == torch.iinfo(tensor.dtype).max
