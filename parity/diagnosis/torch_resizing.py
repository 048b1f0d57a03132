"""Resizing an image (N, C, H, W) by any rule, as two matrix products: what an output pixel takes of each input one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch


def resized(x: torch.Tensor, size: Any, scale: Any, rule: str) -> torch.Tensor:
    """`x` resized to `size` (or by `scale`) by one of RULES."""
    weights = RULES[rule]
    for i, dim in enumerate((2, 3)):
        n = x.shape[dim]
        out = _at(size, i) if size is not None else int(n * _at(scale, i))
        matrix = weights(n, int(out)).to(x.dtype)
        x = (matrix @ x) if dim == 2 else (x @ matrix.t())
    return x


def _at(value: Any, i: int) -> Any:
    return value[i] if isinstance(value, (tuple, list)) else value


def _taps(n: int, out: int, source: Callable[[int], float], kernel: Callable[[float], float], reach: int) -> Any:
    """The matrix (out, n) of an interpolation, taps beyond the border taking the border's pixel."""
    matrix = torch.zeros(out, n, dtype=torch.float64)
    for i in range(out):
        at = source(i)
        first = math.floor(at) - reach + 1
        for j in range(first, first + 2 * reach):
            matrix[i, min(max(j, 0), n - 1)] += kernel(at - j)
    return matrix


def _half_pixel(n: int, out: int) -> Callable[[int], float]:
    return lambda i: (i + 0.5) * n / out - 0.5


def _corners(n: int, out: int) -> Callable[[int], float]:
    return lambda i: i * (n - 1) / (out - 1) if out > 1 else 0.0


def _asymmetric(n: int, out: int) -> Callable[[int], float]:
    return lambda i: i * n / out


def _line(t: float) -> float:
    return max(0.0, 1.0 - abs(t))


def _cubic(a: float) -> Callable[[float], float]:
    """Keys' kernel: -0.75 in torch, -0.5 in PIL and TensorFlow."""

    def kernel(t: float) -> float:
        t = abs(t)
        if t <= 1:
            return (a + 2) * t**3 - (a + 3) * t**2 + 1
        return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0

    return kernel


def _dropped_taps(n: int, out: int) -> Any:
    """Keys' kernel with a = -0.5; taps outside the image are left out, and the others weighted to a sum of one."""
    source, kernel = _half_pixel(n, out), _cubic(-0.5)
    matrix = torch.zeros(out, n, dtype=torch.float64)
    for i in range(out):
        for j in range(n):
            matrix[i, j] = kernel(source(i) - j)
    return matrix / matrix.sum(1, keepdim=True)


def _nearest(source: Callable[[int], float], n: int, out: int, up: bool = False) -> Any:
    matrix = torch.zeros(out, n, dtype=torch.float64)
    for i in range(out):
        at = source(i) + (0.5 if up else 0.0)
        matrix[i, min(max(math.floor(at), 0), n - 1)] = 1.0
    return matrix


RULES: dict[str, Callable[[int, int], Any]] = {
    "bilinear, align_corners=True": lambda n, out: _taps(n, out, _corners(n, out), _line, 1),
    "bilinear, align_corners=False": lambda n, out: _taps(n, out, _half_pixel(n, out), _line, 1),
    "bilinear, half_pixel_centers=False": lambda n, out: _taps(n, out, _asymmetric(n, out), _line, 1),
    "bicubic with a = -0.5, taps outside the image left out": _dropped_taps,
    "bicubic with a = -0.5": lambda n, out: _taps(n, out, _half_pixel(n, out), _cubic(-0.5), 2),
    "bicubic, align_corners=True": lambda n, out: _taps(n, out, _corners(n, out), _cubic(-0.75), 2),
    "bicubic, align_corners=False": lambda n, out: _taps(n, out, _half_pixel(n, out), _cubic(-0.75), 2),
    "nearest": lambda n, out: _nearest(_asymmetric(n, out), n, out),
    "nearest-exact": lambda n, out: _nearest(_half_pixel(n, out), n, out, up=True),
    "nearest, align_corners=True": lambda n, out: _nearest(_corners(n, out), n, out, up=True),
}
