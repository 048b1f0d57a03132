"""MindSpore's functions that draw, as a compiled step under parity has them: they ask a Bank.

Only their code is used, in MindSpore's modules, where `_msmigrate_draws` is that Bank; nothing calls them here. The
compiler reads their source, so they keep to what it understands. Their arguments are MindSpore's, in its order.
"""
# mypy: disable-error-code="name-defined"
# ruff: noqa: F821

from __future__ import annotations

from typing import Any

from mindspore import dtype as mstype
from mindspore import mint, ops
from mindspore.ops.function import nn_func


def dropout(input: Any, p: float = 0.5, training: bool = True, seed: Any = None) -> Any:
    """mindspore.ops.dropout."""
    if training is False:
        return input
    return _msmigrate_draws.dropped(input, input.shape, p)


def dropout_ext(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """mindspore.mint.nn.functional.dropout."""
    if training is False:
        return input
    return _msmigrate_draws.dropped(input, input.shape, p)


def dropout1d(input: Any, p: float = 0.5, training: bool = True) -> Any:
    """mindspore.ops.dropout1d."""
    if training is False:
        return input
    return _msmigrate_draws.rows(input, p)


def dropout2d(input: Any, p: float = 0.5, training: bool = True) -> Any:
    """mindspore.ops.dropout2d and dropout3d."""
    if training is False:
        return input
    return _msmigrate_draws.channels(input, p)


def dropout2d_ext(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """mindspore.mint.nn.functional.dropout2d."""
    if training is False:
        return input
    return _msmigrate_draws.channels(input, p)


def rand(*size: Any, dtype: Any = None, seed: Any = None) -> Any:
    """mindspore.ops.rand."""
    shape = size
    if isinstance(size[0], (tuple, list)):
        shape = tuple(size[0])
    found = _msmigrate_draws.uniform(shape)
    return found if dtype is None else found.astype(dtype)


def randn(*size: Any, dtype: Any = None, seed: Any = None) -> Any:
    """mindspore.ops.randn."""
    shape = size
    if isinstance(size[0], (tuple, list)):
        shape = tuple(size[0])
    found = _msmigrate_draws.normal(shape)
    return found if dtype is None else found.astype(dtype)


def rand_ext(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None) -> Any:
    """mindspore.mint.rand."""
    shape = size
    if isinstance(size[0], (tuple, list)):
        shape = tuple(size[0])
    found = _msmigrate_draws.uniform(shape)
    return found if dtype is None else found.astype(dtype)


def randn_ext(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None) -> Any:
    """mindspore.mint.randn."""
    shape = size
    if isinstance(size[0], (tuple, list)):
        shape = tuple(size[0])
    found = _msmigrate_draws.normal(shape)
    return found if dtype is None else found.astype(dtype)


def rand_like(input: Any, seed: Any = None, *, dtype: Any = None) -> Any:
    """mindspore.ops.rand_like."""
    return _msmigrate_draws.uniform(input.shape).astype(input.dtype if dtype is None else dtype)


def randn_like(input: Any, seed: Any = None, *, dtype: Any = None) -> Any:
    """mindspore.ops.randn_like."""
    found = _msmigrate_draws.normal(input.shape)
    return found if dtype is None else found.astype(dtype)


def rand_like_ext(input: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """mindspore.mint.rand_like."""
    return _msmigrate_draws.uniform(input.shape).astype(input.dtype if dtype is None else dtype)


def randn_like_ext(input: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """mindspore.mint.randn_like."""
    return _msmigrate_draws.normal(input.shape).astype(input.dtype if dtype is None else dtype)


def standard_normal(shape: Any, seed: Any = None) -> Any:
    """mindspore.ops.standard_normal."""
    return _msmigrate_draws.normal(shape)


def normal(shape: Any, mean: Any, stddev: Any, seed: Any = None) -> Any:
    """mindspore.ops.normal."""
    return _msmigrate_draws.normal(shape) * stddev + mean


def standard_laplace(shape: Any, seed: Any = None) -> Any:
    """mindspore.ops.standard_laplace."""
    return _msmigrate_draws.laplace(shape)


def laplace(shape: Any, mean: Any, lambda_param: Any, seed: Any = None) -> Any:
    """mindspore.ops.laplace."""
    return _msmigrate_draws.laplace(shape) * lambda_param + mean


def uniform(shape: Any, minval: Any, maxval: Any, seed: Any = None, dtype: Any = mstype.float32) -> Any:
    """mindspore.ops.uniform."""
    if dtype == mstype.int32:
        return _msmigrate_draws.integers(shape, minval, maxval).astype(dtype)
    return _msmigrate_draws.uniform(shape) * (maxval - minval) + minval


def randint(low: Any, high: Any, size: Any, seed: Any = None, *, dtype: Any = None) -> Any:
    """mindspore.ops.randint."""
    return _msmigrate_draws.integers(size, low, high).astype(mstype.int64 if dtype is None else dtype)


def randint_like(input: Any, low: Any, high: Any, seed: Any = None, *, dtype: Any = None) -> Any:
    """mindspore.ops.randint_like."""
    return _msmigrate_draws.integers(input.shape, low, high).astype(input.dtype if dtype is None else dtype)


def randint_ext(*args: Any, generator: Any = None, dtype: Any = None, device: Any = None) -> Any:
    """mindspore.mint.randint: ([low,] high, size)."""
    low = 0 if len(args) == 2 else args[0]
    return _msmigrate_draws.integers(args[-1], low, args[-2]).astype(mstype.int64 if dtype is None else dtype)


def randint_like_ext(*args: Any, dtype: Any = None, device: Any = None) -> Any:
    """mindspore.mint.randint_like: (input, [low,] high)."""
    low = 0 if len(args) == 2 else args[1]
    found = _msmigrate_draws.integers(args[0].shape, low, args[-1])
    return found.astype(args[0].dtype if dtype is None else dtype)


def normal_ext(mean: Any = 0.0, std: Any = 1.0, size: Any = None, generator: Any = None) -> Any:
    """mindspore.mint.normal."""
    shape = (mean + std).shape if size is None else size
    return F.stop_gradient(mean + std * _msmigrate_draws.normal(shape))


def randperm_ext(n: Any, *, generator: Any = None, dtype: Any = mstype.int64) -> Any:
    """mindspore.mint.randperm."""
    return _msmigrate_draws.permutation(n).astype(dtype)


def shuffle(x: Any, seed: Any = None) -> Any:
    """mindspore.ops.shuffle."""
    return F.gather(x, _msmigrate_draws.permutation(x.shape[0]), 0)


def bernoulli(input: Any, p: Any = 0.5, seed: Any = None) -> Any:
    """mindspore.ops.bernoulli."""
    return _msmigrate_draws.trials(input.shape, p).astype(input.dtype)


def bernoulli_ext(input: Any, *, generator: Any = None) -> Any:
    """mindspore.mint.bernoulli."""
    return _msmigrate_draws.trials(input.shape, input).astype(input.dtype)


def multinomial(input: Any, num_samples: Any, replacement: bool = True, seed: Any = None) -> Any:
    """mindspore.ops.multinomial."""
    if replacement:
        return _msmigrate_draws.choices(input, num_samples, True)
    shape = input.shape
    count = shape[0] * shape[1] if len(shape) > 1 else shape[0]
    drawn = reshape_(_msmigrate_draws.uniform((count,)), shape)
    _, found = top_k_(real_div_(log_(drawn), input + 1e-6), num_samples)
    return found


def multinomial_ext(input: Any, num_samples: Any, replacement: bool = False, *, generator: Any = None) -> Any:
    """mindspore.mint.multinomial."""
    return _msmigrate_draws.choices(input, num_samples, replacement).astype(mstype.int64)


REPLACED = {
    ops.dropout: dropout,
    ops.dropout1d: dropout1d,
    ops.dropout2d: dropout2d,
    ops.dropout3d: dropout2d,
    nn_func.dropout_ext: dropout_ext,
    nn_func.dropout2d_ext: dropout2d_ext,
    ops.rand: rand,
    ops.rand_like: rand_like,
    ops.randn: randn,
    ops.randn_like: randn_like,
    ops.standard_normal: standard_normal,
    ops.normal: normal,
    ops.standard_laplace: standard_laplace,
    ops.laplace: laplace,
    ops.uniform: uniform,
    ops.randint: randint,
    ops.randint_like: randint_like,
    ops.shuffle: shuffle,
    ops.bernoulli: bernoulli,
    ops.multinomial: multinomial,
    mint.rand: rand_ext,
    mint.rand_like: rand_like_ext,
    mint.randn: randn_ext,
    mint.randn_like: randn_like_ext,
    mint.randint: randint_ext,
    mint.randint_like: randint_like_ext,
    mint.normal: normal_ext,
    mint.randperm: randperm_ext,
    mint.bernoulli: bernoulli_ext,
    mint.multinomial: multinomial_ext,
}
