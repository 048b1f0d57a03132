"""Pooling that MindSpore lacks, or computes otherwise than torch on the CPU; with torch's argument names."""

from __future__ import annotations

from mindspore import Tensor, nn, ops


class AdaptiveAvgPool1d(nn.Cell):
    """The means of `output_size` sections of nearly one length; MindSpore's own wants sections of just one length."""

    def __init__(self, output_size: int) -> None:
        super().__init__()
        self.output_size = output_size

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, L) or (C, L)."""
        return ops.adaptive_avg_pool2d(input.expand_dims(-2), (1, self.output_size)).squeeze(-2)


class AdaptiveMaxPool1d(nn.Cell):
    """The largest values of `output_size` sections of nearly one length; MindSpore's own wants just one length."""

    def __init__(self, output_size: int, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def construct(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """input: (N, C, L) or (C, L)."""
        values, indices = ops.adaptive_max_pool2d(input.expand_dims(-2), (1, self.output_size), True)
        return (values.squeeze(-2), indices.squeeze(-2)) if self.return_indices else values.squeeze(-2)


class LPPool3d(nn.Cell):
    """The p-th root of the sum of p-th powers in a window; MindSpore has it in one and two dimensions only."""

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        depth, height, width = (kernel_size,) * 3 if isinstance(kernel_size, int) else kernel_size
        self.norm_type, self.size = float(norm_type), depth * height * width
        step = kernel_size if stride is None else stride
        self.mean = nn.AvgPool3d(kernel_size, step, "pad" if ceil_mode else "valid", 0, ceil_mode)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, D, H, W)."""
        mean = self.mean(ops.pow(input, self.norm_type))
        return ops.pow(mean * self.size, 1.0 / self.norm_type)
