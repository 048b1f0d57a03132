"""Torch's float32 as exact as MindSpore's CPU kernels are, where those round more (mappings/kernels.yaml).

Every module alone may stand within its noise while a net of fifty of them does not: an error that has one sign
everywhere does not average out on its way. So one of the runs that measure the noise rounds as those kernels do, and
what they explain of the distance further on is known instead of guessed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..mappings.kernels import Kernel, kernels


@contextmanager
def rounding_as_mindspore() -> Iterator[None]:
    """Within this block the float32 results of the kernels in the table are as far off as MindSpore's."""
    with _Rounding():
        yield


@cache
def _by_operator() -> dict[Any, Kernel]:
    """The operator -> its row; one that this torch does not have is left out."""
    found = {}
    for kernel in kernels():
        _, name, overload = kernel.torch.split(".")
        operator = getattr(getattr(torch.ops.aten, name, None), overload, None)
        if operator is not None:
            found[operator] = kernel
    return found


class _Rounding(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.draws = torch.Generator().manual_seed(0)  # its own: the model's draws stay as they are

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        kernel = _by_operator().get(func)
        if kernel is None:
            return result
        if kernel.each_addition:
            return self._summed(result, kernel, *args)
        if isinstance(result, tuple):  # log_sigmoid_forward has a buffer beside its result
            return (self._rounded(result[0], kernel), *result[1:])
        return self._rounded(result, kernel)

    def _rounded(self, exact: torch.Tensor, kernel: Kernel) -> torch.Tensor:
        """The result with a distance of the measured size: an even part, and one that is drawn for each number."""
        if exact.dtype != torch.float32:
            return exact
        spread = math.sqrt(max(kernel.distance**2 - kernel.bias**2, 0.0))
        drawn = torch.randn(exact.shape, generator=self.draws, dtype=torch.float32)
        return exact + exact * (drawn * spread + kernel.bias) + drawn * kernel.near_zero

    def _summed(
        self, exact: torch.Tensor, kernel: Kernel, terms: torch.Tensor, dims: Sequence[int] | None = None, *rest: Any
    ) -> torch.Tensor:
        """A sum over all dimensions but the last, as that of a bias's gradient is, with the rounding of its additions.

        Each addition rounds in proportion to the sum so far, independently: the variances of these add up.
        """
        before = range(terms.ndim - 1)
        if exact.dtype != torch.float32 or not before or sorted(d % terms.ndim for d in dims or ()) != [*before]:
            return exact
        so_far = terms.detach().reshape(-1, terms.shape[-1]).cumsum(0)
        distance = kernel.distance * torch.linalg.vector_norm(so_far, dim=0).reshape(exact.shape)
        return exact + distance * torch.randn(exact.shape, generator=self.draws, dtype=torch.float32)
