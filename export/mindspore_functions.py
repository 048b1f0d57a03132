"""Functions of mindspore.ops that the ONNX exporter cannot write, by equal forms that it can."""

from __future__ import annotations

import math
from typing import Any

from mindspore import Tensor, ops

from .mindspore_equal_forms import adaptive_mean
from .mindspore_pools import max_over_edges, mean_over_zeros, two
from .stand_ins import StandIn, StandIns


def functions_for_onnx(marks: StandIns) -> None:
    """Let the functions of mindspore.ops that the exporter cannot write compute by equal forms, in this process."""
    own_gelu, own_pad, own_max_pool2d = ops.gelu, ops.pad, ops.max_pool2d
    mark = marks.add(StandIn("Erf", {}, certain=False))
    root = 1.0 / math.sqrt(2.0)

    def hardsigmoid(input: Tensor) -> Tensor:
        return ops.relu6(input + 3.0) / 6.0

    def hardswish(input: Tensor) -> Tensor:
        return input * ops.relu6(input + 3.0) / 6.0

    def erf(input: Tensor) -> Tensor:
        return input * mark

    def gelu(input: Tensor, approximate: str = "none") -> Tensor:
        if approximate == "none":
            return input * 0.5 * (input * root * mark + 1.0)
        return own_gelu(input, approximate)

    def rsqrt(input: Tensor) -> Tensor:
        return 1.0 / ops.sqrt(input)

    def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
        if isinstance(output_size, int):
            return adaptive_mean(input, output_size, output_size)
        height, width = output_size
        return adaptive_mean(input, -1 if height is None else height, -1 if width is None else width)

    def pad(input: Tensor, padding: Any, mode: str = "constant", value: Any = None) -> Tensor:
        if mode != "constant" or (value is not None and value != 0) or min(padding) < 0:
            return own_pad(input, padding, mode, value)
        pairs = ((0, 0),) * (len(input.shape) - len(padding) // 2)
        for axis in range(len(padding) // 2 - 1, -1, -1):  # torch's order begins with the last axis
            pairs = (*pairs, (padding[2 * axis], padding[2 * axis + 1]))
        return ops.Pad(pairs)(input)

    def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
        filled = ops.maximum(ops.minimum(input, value), value)  # of the input's shape, which may be open
        return ops.select(mask, filled, input)

    def max_pool2d(
        x: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> Tensor:
        if return_indices or two(dilation) != (1, 1):
            return own_max_pool2d(x, kernel_size, stride, padding, dilation, return_indices, ceil_mode)
        return max_over_edges(x, kernel_size, kernel_size if stride is None else stride, padding, ceil_mode)

    def avg_pool2d(
        input_x: Tensor,
        kernel_size: Any = 1,
        stride: Any = 1,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int = 0,
    ) -> Tensor:
        return mean_over_zeros(input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    ops.avg_pool2d, ops.max_pool2d = avg_pool2d, max_pool2d
    ops.hardsigmoid, ops.hardswish, ops.erf, ops.gelu = hardsigmoid, hardswish, erf, gelu
    ops.rsqrt, ops.adaptive_avg_pool2d, ops.pad, ops.masked_fill = rsqrt, adaptive_avg_pool2d, pad, masked_fill
