"""Functions that make tensors, with torch's rules for the dtype, under torch's argument names."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import ops


def full(size: Any, fill_value: Any, dtype: Any = None) -> Any:
    """A tensor full of one value, as torch.full: int64, bool or float32 as the value is, where no dtype is given."""
    if dtype is None:
        dtype = mindspore.float32
        if isinstance(fill_value, bool):
            dtype = mindspore.bool_
        elif isinstance(fill_value, int):
            dtype = mindspore.int64
    return ops.full(size, fill_value, dtype=dtype)


def new_zeros(input: Any, size: Any, dtype: Any = None) -> Any:
    """Zeros of the dtype of `input`, as torch.Tensor.new_zeros."""
    return ops.zeros(size, input.dtype if dtype is None else dtype)


def new_tensor(input: Any, data: Any, dtype: Any = None) -> Any:
    """A tensor of the given numbers, of the dtype of `input`, as torch.Tensor.new_tensor."""
    return mindspore.tensor(data, input.dtype if dtype is None else dtype)


def new_ones(input: Any, size: Any, dtype: Any = None) -> Any:
    """Ones of the dtype of `input`, as torch.Tensor.new_ones."""
    return ops.ones(size, input.dtype if dtype is None else dtype)


def new_full(input: Any, size: Any, fill_value: Any, dtype: Any = None) -> Any:
    """A tensor full of one value, of the dtype of `input`, as torch.Tensor.new_full."""
    return ops.full(size, fill_value, dtype=input.dtype if dtype is None else dtype)


def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """The numbers from `start` to before `end`, as torch.arange; one number alone is the end."""
    if end is None:
        start, end = 0, start
    return ops.arange(start, end, step, dtype=dtype)


def tensor(data: Any, dtype: Any = None) -> Any:
    """A tensor of the given numbers, as torch.tensor: float32, int64 or bool where no dtype is given."""
    return mindspore.tensor(data, dtype)


def rand(size: Any, dtype: Any = None) -> Any:
    """Values drawn uniformly from [0, 1), as torch.rand."""
    return ops.rand(*size, dtype=dtype)


def randn(size: Any, dtype: Any = None) -> Any:
    """Values drawn from the standard normal distribution, as torch.randn."""
    return ops.randn(*size, dtype=dtype)


def randint(low: int, high: int, size: Any, dtype: Any = None) -> Any:
    """Whole numbers drawn from [low, high), in int64, as torch.randint."""
    return ops.randint(low, high, tuple(size)).astype(mindspore.int64 if dtype is None else dtype)


def randperm(n: int, dtype: Any = None) -> Any:
    """The numbers below n in a random order, in int64, as torch.randperm."""
    return ops.argsort(ops.rand(n)).astype(mindspore.int64 if dtype is None else dtype)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None) -> Any:
    """Values drawn from normal distributions, as torch.normal: of numbers and a size, or of tensors, to which no
    gradient goes back."""
    if size is None:
        size = (mean + std).shape
    return ops.stop_gradient(mean + std * ops.standard_normal(size))


def bernoulli(input: Any) -> Any:
    """Zeros and ones, each one with the probability given in its place, as torch.bernoulli."""
    return (ops.rand_like(input) < input).astype(input.dtype)


def filled_normal(input: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    """What `input.normal_(mean, std)` leaves in `input`: values drawn from one normal distribution."""
    return (mean + std * ops.standard_normal(input.shape)).astype(input.dtype)


def filled_uniform(input: Any, low: float = 0.0, high: float = 1.0) -> Any:
    """What `input.uniform_(low, high)` leaves in `input`: values drawn evenly between two numbers."""
    return (low + (high - low) * ops.rand(input.shape)).astype(input.dtype)


def filled_bernoulli(input: Any, p: float = 0.5) -> Any:
    """What `input.bernoulli_(p)` leaves in `input`: ones with this probability, and zeros."""
    return (ops.rand(input.shape) < p).astype(input.dtype)


def multinomial(input: Any, num_samples: int, replacement: bool = False) -> Any:
    """Places drawn by their weights, in int64, as torch.multinomial."""
    return ops.multinomial(input, num_samples, replacement).astype(mindspore.int64)


def copy(input: Any, src: Any) -> Any:
    """What `input.copy_(src)` leaves in `input`: `src` in its shape and dtype."""
    return ops.broadcast_to(src, input.shape).astype(input.dtype)
