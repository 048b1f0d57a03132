"""Images in another size: torch.nn.functional.interpolate in all its modes, and pixels between space and channels.

A resize is a product with matrices that hold each output's weights. ops.interpolate has no antialias, is 7 % off in
bicubic mode, and takes a scale_factor in few modes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from mindspore import Tensor, nn, ops


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize (N, C, ...) to `size`, or by a factor; modes nearest, nearest-exact, linear, bilinear, bicubic, trilinear,
    area. A factor's size is rounded down, and the factor itself sets the places, unless it is to be recomputed."""
    x = input
    rank = input.ndim - 2
    plan = _plan(tuple(input.shape[2:]), size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    for index in range(rank):
        axis = 2 + index
        chosen, weights = plan[index]
        if chosen is not None:
            x = ops.index_select(x, axis, Tensor(chosen))
        elif weights is not None:
            matrix = Tensor(weights).astype(input.dtype)
            x = _times(x.swapaxes(axis, -1), matrix).swapaxes(axis, -1)
    return x


def _times(x: Tensor, matrix: Tensor) -> Tensor:
    """`x @ matrix`, in rows: for a single row among axes of size 1, MindSpore's gradient has an axis too many."""
    rows = ops.matmul(x.reshape((-1, x.shape[-1])), matrix)
    return rows.reshape((*x.shape[:-1], matrix.shape[1]))


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """What interpolate does, under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@ops.constexpr
def _plan(
    shape: tuple[int, ...],
    size: int | Sequence[int] | None,
    scale_factor: float | Sequence[float] | None,
    mode: str,
    align_corners: bool | None,
    recompute: bool | None,
    antialias: bool,
) -> Any:
    """For every dimension the places to take, or the weights (in, out) as rows of numbers, or neither."""
    rank = len(shape)
    wanted: tuple[int, ...]
    factors: tuple[float | None, ...] = (None,) * rank
    if size is not None:
        wanted = (size,) * rank if isinstance(size, int) else tuple(size)
    else:
        given: Any = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * rank
        wanted = tuple(math.floor(length * factor) for length, factor in zip(shape, given, strict=True))
        if not recompute:
            factors = tuple(given)
    plan: list[Any] = []
    for length, out, factor in zip(shape, wanted, factors, strict=True):
        ratio = length / out if factor is None else 1.0 / factor
        if mode in ("nearest", "nearest-exact"):
            shift = 0.5 if mode == "nearest-exact" else 0.0
            # torch computes the ratio in float32
            single = np.float32(length) / np.float32(out) if factor is None else np.float32(1.0 / factor)
            places = [min(int(np.float32(place + shift) * single), length - 1) for place in range(out)]
            plan.append((tuple(places), None))
        else:
            matrix = _matrix(length, out, ratio, mode, bool(align_corners), antialias)
            plan.append((None, tuple(map(tuple, matrix.tolist()))))
    return tuple(plan)


def _matrix(length: int, out: int, ratio: float, mode: str, aligned: bool, antialias: bool) -> np.ndarray:
    """The weights (in, out) of one dimension."""
    weights = np.zeros((length, out))
    if mode == "area":
        for place in range(out):
            first, last = place * length // out, -((place + 1) * length // -out)
            weights[first:last, place] = 1.0 / (last - first)
        return weights
    cubic = mode == "bicubic"
    if aligned:
        ratio = (length - 1) / (out - 1) if out > 1 else 0.0
    if antialias:
        return _antialiased(length, out, ratio, cubic, aligned)
    for place in range(out):
        centre = place * ratio if aligned else (place + 0.5) * ratio - 0.5
        if not cubic and not aligned:
            centre = max(centre, 0.0)
        base = math.floor(centre)
        taps = range(base - 1, base + 3) if cubic else range(base, base + 2)
        for tap in taps:
            weight = _cubic(centre - tap, -0.75) if cubic else max(1.0 - abs(centre - tap), 0.0)
            weights[min(max(tap, 0), length - 1), place] += weight
    return weights


def _antialiased(length: int, out: int, ratio: float, cubic: bool, aligned: bool) -> np.ndarray:
    """The weights of a filter that is widened by the ratio, normalized, and cut off at the borders."""
    weights = np.zeros((length, out))
    wide = max(ratio, 1.0)
    support = (2.0 if cubic else 1.0) * wide
    for place in range(out):
        centre = ratio * (place + 0.5)
        first, last = max(int(centre - support + 0.5), 0), min(int(centre + support + 0.5), length)
        for tap in range(first, last):
            away = (tap + 0.5 - centre) / wide
            weights[tap, place] = _cubic(away, -0.5) if cubic else max(1.0 - abs(away), 0.0)
    return weights / weights.sum(0, keepdims=True)


def _cubic(away: float, a: float) -> float:
    """Keys' cubic kernel."""
    x = abs(away)
    if x <= 1.0:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a if x < 2.0 else 0.0


class UpsamplingNearest2d(nn.Cell):
    """Repeats pixels up to a size, or a whole number of times."""

    def __init__(
        self, size: int | tuple[int, int] | None = None, scale_factor: float | tuple[float, float] | None = None
    ) -> None:
        super().__init__()
        self.size = (size, size) if isinstance(size, int) else size
        self.factors = (scale_factor, scale_factor) if isinstance(scale_factor, (int, float)) else scale_factor

    def wanted(self, input: Tensor) -> Any:
        """The height and width of the result."""
        if self.factors is None:
            return self.size
        return int(input.shape[2] * self.factors[0]), int(input.shape[3] * self.factors[1])

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, H, W)."""
        return ops.interpolate(input, size=self.wanted(input), mode="nearest")


class UpsamplingBilinear2d(UpsamplingNearest2d):
    """Bilinear up to a size, or by a factor, with the corners aligned."""

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, H, W)."""
        return ops.interpolate(input, size=self.wanted(input), mode="bilinear", align_corners=True)


class SpaceToDepth(nn.Cell):
    """Squares of block_size pixels become channels, the place in the square before the channel."""

    def __init__(self, block_size: int = 4) -> None:
        super().__init__()
        self.block_size = block_size

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        count, channels, height, width = x.shape
        block = self.block_size
        split = x.reshape((count, channels, height // block, block, width // block, block))
        return split.permute((0, 3, 5, 1, 2, 4)).reshape(
            (count, channels * block * block, height // block, width // block)
        )


class DepthToSpace(nn.Cell):
    """Channels become squares of block_size pixels, the place in the square before the channel."""

    def __init__(self, block_size: int) -> None:
        super().__init__()
        self.block_size = block_size

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        count, channels, height, width = x.shape
        block = self.block_size
        inner = channels // (block * block)
        split = x.reshape((count, block, block, inner, height, width))
        return split.permute((0, 3, 4, 1, 5, 2)).reshape((count, inner, height * block, width * block))
