"""ConvNeXt, name for name the network of `torch_small`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mindspore import Parameter, Tensor, nn
from mindspore_layers import (  # type: ignore[import-not-found]  # a neighbour, found where this file is run from
    Permute,
    convolution,
    layer_norm,
    normal_linear,
    trunc,
)

CLASSES = 10


class LayerNorm2d(nn.LayerNorm):
    """A LayerNorm over the channels of (N, C, H, W)."""

    def __init__(self, channels: int) -> None:
        super().__init__(
            (channels,), begin_norm_axis=-1, begin_params_axis=-1, gamma_init="ones", beta_init="zeros", epsilon=1e-6
        )

    def construct(self, x: Tensor) -> Tensor:
        return super().construct(x.transpose((0, 2, 3, 1))).transpose((0, 3, 1, 2))


def convnext_convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution with bias that starts as ConvNeXt's do; it pads only where its stride is 1."""
    padding = kernel // 2 if stride == 1 else 0
    return convolution(
        inputs, outputs, kernel, stride, padding, groups, bias=True, weight_init=trunc(), bias_init="zeros"
    )


class CNBlock(nn.Cell):
    """ConvNeXt's block: a 7x7 convolution by channel, then two layers over the channels, scaled."""

    def __init__(self, width: int, layer_scale: float) -> None:
        super().__init__()
        self.block = nn.SequentialCell(
            [
                convnext_convolution(width, width, 7, groups=width),
                Permute((0, 2, 3, 1)),
                layer_norm(width, eps=1e-6),
                normal_linear(width, 4 * width, 0.02),
                nn.GELU(approximate=False),
                normal_linear(4 * width, width, 0.02),
                Permute((0, 3, 1, 2)),
            ]
        )
        self.layer_scale = Parameter(Tensor(np.full((width, 1, 1), layer_scale, np.float32)), name="layer_scale")

    def construct(self, x: Tensor) -> Tensor:
        return self.layer_scale * self.block(x) + x


class ConvNeXt(nn.Cell):
    """torchvision's ConvNeXt, for images (N, 3, H, W)."""

    def __init__(self, widths: Sequence[int], blocks: Sequence[int]) -> None:
        super().__init__()
        stem = nn.SequentialCell([convnext_convolution(3, widths[0], 4, stride=4), LayerNorm2d(widths[0])])
        layers: list[nn.Cell] = [stem]
        for i, (width, count) in enumerate(zip(widths, blocks, strict=True)):
            layers.append(nn.SequentialCell([CNBlock(width, layer_scale=1e-6) for _ in range(count)]))
            if i + 1 < len(widths):
                halve = convnext_convolution(width, widths[i + 1], 2, stride=2)
                layers.append(nn.SequentialCell([LayerNorm2d(width), halve]))
        self.features = nn.SequentialCell(layers)
        self.avgpool = nn.AdaptiveAvgPool2d(output_size=1)
        self.classifier = nn.SequentialCell(
            [LayerNorm2d(widths[-1]), nn.Flatten(start_dim=1, end_dim=-1), normal_linear(widths[-1], CLASSES, 0.02)]
        )

    def construct(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)))


def convnext() -> ConvNeXt:
    """A ConvNeXt of narrow stages."""
    return ConvNeXt((16, 32, 48, 64), (2, 2, 3, 1))
