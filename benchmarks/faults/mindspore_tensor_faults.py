"""Faults in tensor operations: MindSpore's own function where it computes something else than torch's."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore_injectors import Places, built, cell, forward_of, injector


@injector
def library_function(places: Places, kind: str) -> Any:
    """MindSpore's own function where it differs from torch's: at ties, or where numbers become large."""
    functions: dict[str, Callable[..., Tensor]] = {
        "Mish": lambda self, x: ops.mish(x),
        "LogSigmoid": lambda self, x: nn.LogSigmoid()(x),
        "Std": lambda self, x: ops.std(x, (2, 3), 1),
        "Length": lambda self, x: ops.norm(x, dim=1, keepdim=True),
        "Clamp": lambda self, x: ops.clamp(x, self.low, self.high),
        "ReLU6": lambda self, x: ops.relu6(x),
        "Hardswish": lambda self, x: ops.hardswish(x),
        "LeakyReLU": lambda self, x: ops.leaky_relu(x, self.alpha),
        "Bicubic": lambda self, x: ops.interpolate(x, size=(12, 12), mode="bicubic", align_corners=False),
        "Flat": lambda self, x: ops.flatten(x),
        "Diagonal": lambda self, x: ops.diag(x[0, 0]),
        "Gather": lambda self, x: ops.gather(
            x.reshape(x.shape[0], x.shape[1], -1), self.index(x.reshape(x.shape[0], x.shape[1], -1))[0, 0], 2
        ),
        "Repeat": lambda self, x: ops.repeat_interleave(x.mean((2, 3)), 2, 1),
        "Swap": lambda self, x: ops.transpose(x, (0, 1, 2, 3)),
        "Largest": lambda self, x: x / ops.max(ops.abs(x)),
        "InPlace": lambda self, x: x * 2.0,
        "Slice": lambda self, x: x * 2.0,
        "Share": lambda self, x: (
            (x > 0).astype(mindspore.int64).mean((2, 3)).astype(mindspore.int64).astype(mindspore.float32)
        ),
        "Unfold": _unfolded_by_kernel,
        "Scaled": lambda self, x: ops.interpolate(
            x, scale_factor=1.7, mode="bilinear", align_corners=False, recompute_scale_factor=True
        ),
        "Grid": _grid_xy,
        "PixelShuffle": lambda self, x: ops.DepthToSpace(2)(x),
    }
    position = {"Std": 0.0, "Clamp": 1.0, "ReLU6": 1.0, "LeakyReLU": 1.0}.get(kind, 0.5)
    if kind == "StdConstant":
        return forward_of(places, "Std", lambda self, x: ops.std(x, (2, 3), 1), 0.0)
    return forward_of(places, kind, functions[kind], position)


def _unfolded_by_kernel(self: Any, x: Tensor) -> Tensor:
    """nn.Unfold's order: by the kernel's pixels first, then by the channels."""
    rows = ops.unfold(x, 3, padding=1)
    batch, size, length = rows.shape
    return rows.reshape(batch, size // 9, 9, length).swapaxes(1, 2).reshape(batch, size, length).swapaxes(1, 2)


def _grid_xy(self: Any, x: Tensor) -> Tensor:
    line = Tensor(np.linspace(-1.0, 1.0, 8, dtype=np.float32))
    rows, columns = ops.meshgrid(line, line)
    return x + 0.3 * rows - 0.7 * columns


@injector
def std_biased(places: Places) -> Any:
    """ops.std divides by n."""
    return forward_of(places, "Std", lambda self, x: _std0(x), 1.0)


def _std0(x: Tensor) -> Tensor:
    centred = x - x.mean((2, 3), True)
    return ops.sqrt((centred * centred).mean((2, 3)))


@injector
def resized(places: Places, how: str) -> Any:
    """A bilinear resize by MindSpore's older operators: corners aligned, or no half pixel."""
    if how == "corners":

        def forward(self: Any, x: Tensor) -> Tensor:
            size = (16, 16) if x.shape[2] == 8 else (2 * x.shape[2], 2 * x.shape[3])
            return ops.interpolate(x, size=size, mode="bilinear", align_corners=True)
    else:

        def forward(self: Any, x: Tensor) -> Tensor:
            size = (2 * x.shape[2], 2 * x.shape[3])
            return ops.ResizeBilinearV2(align_corners=False, half_pixel_centers=False)(x, size)

    def change(net: Any) -> None:
        path = next(p for p, each in net.cells_and_names() if type(each).__name__ in ("Upsample", "Resized"))
        found = cell(net, path)
        found.construct = types.MethodType(forward, found)
        places.append(path)

    return built(change)
