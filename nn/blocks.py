"""Blocks that torchvision and timm build models of: squeeze and excitation, feed-forward, layer scale; permute."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mindspore import Parameter, Tensor, nn, ops


class SEModule(nn.Cell):
    """Squeeze-and-excitation: scales channels by a ReLU and a sigmoid over their means."""

    def __init__(
        self,
        channels: int,
        rd_ratio: float = 0.0625,
        rd_channels: int | None = None,
        rd_divisor: int = 8,
        add_maxpool: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        rounded = int(channels * rd_ratio + rd_divisor / 2) // rd_divisor * rd_divisor
        inner = rd_channels or max(rd_divisor, rounded)
        self.add_maxpool = add_maxpool
        self.fc1 = nn.Conv2d(channels, inner, 1, pad_mode="valid", has_bias=bias)
        self.fc2 = nn.Conv2d(inner, channels, 1, pad_mode="valid", has_bias=bias)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        return x * ops.sigmoid(self.fc2(ops.relu(self.fc1(_squeezed(x, self.add_maxpool)))))


class SqueezeExcitation(SEModule):
    """Scales channels by a ReLU and a sigmoid over their means."""

    def __init__(self, input_channels: int, squeeze_channels: int) -> None:
        super().__init__(input_channels, rd_channels=squeeze_channels)


def _squeezed(x: Tensor, add_maxpool: bool) -> Tensor:
    """The means (N, C, 1, 1) of channels, or half of them and of the largest values."""
    means = ops.mean(x, (2, 3), True)
    return 0.5 * means + 0.5 * ops.amax(x, (2, 3), True) if add_maxpool else means


class EffectiveSEModule(nn.Cell):
    """Scales channels by a hard sigmoid of one convolution over their means."""

    def __init__(self, channels: int, add_maxpool: bool = False) -> None:
        super().__init__()
        self.add_maxpool = add_maxpool
        self.fc = nn.Conv2d(channels, channels, 1, pad_mode="valid", has_bias=True)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        return x * ops.clamp(self.fc(_squeezed(x, self.add_maxpool)) + 3, 0, 6) / 6


class EcaModule(nn.Cell):
    """Scales channels by a sigmoid of a convolution along the channels' means."""

    def __init__(self, channels: int | None = None, kernel_size: int = 3, gamma: float = 2, beta: float = 1) -> None:
        super().__init__()
        size = kernel_size
        if channels is not None:
            near = int(abs(math.log(channels, 2) + beta) / gamma)
            size = max(near if near % 2 else near + 1, 3)
        self.conv = nn.Conv1d(1, 1, size, pad_mode="pad", padding=(size - 1) // 2, has_bias=False)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        means = ops.expand_dims(ops.mean(x, (2, 3)), 1)
        return x * ops.sigmoid(self.conv(means)).reshape((x.shape[0], -1, 1, 1))


class Mlp(nn.Cell):
    """Two linear layers with a GELU between."""

    def __init__(
        self,
        in_features: int,
        hidden_features: int | None = None,
        out_features: int | None = None,
        bias: bool = True,
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        inner = hidden_features or in_features
        self.fc1 = nn.Dense(in_features, inner, has_bias=bias)
        self.fc2 = nn.Dense(inner, out_features or in_features, has_bias=bias)
        self.act = nn.GELU(approximate=False)
        self.drop1, self.drop2 = nn.Dropout(p=float(drop)), nn.Dropout(p=float(drop))

    def construct(self, x: Tensor) -> Tensor:
        """x: (..., in_features)."""
        return self.drop2(self.fc2(self.drop1(self.act(self.fc1(x)))))


class SwiGLU(nn.Cell):
    """Two linear layers, the inner gated by a third through a SiLU."""

    def __init__(
        self,
        in_features: int,
        hidden_features: int | None = None,
        out_features: int | None = None,
        bias: bool = True,
        drop: float = 0.0,
        align_to: int = 0,
    ) -> None:
        super().__init__()
        inner = hidden_features or in_features
        if align_to:
            inner = inner + (-inner % align_to)
        self.fc1_g = nn.Dense(in_features, inner, has_bias=bias)
        self.fc1_x = nn.Dense(in_features, inner, has_bias=bias)
        self.fc2 = nn.Dense(inner, out_features or in_features, has_bias=bias)
        self.drop1, self.drop2 = nn.Dropout(p=float(drop)), nn.Dropout(p=float(drop))

    def construct(self, x: Tensor) -> Tensor:
        """x: (..., in_features)."""
        gated = ops.silu(self.fc1_g(x)) * self.fc1_x(x)
        return self.drop2(self.fc2(self.drop1(gated)))


class Permute(nn.Cell):
    """The axes in another order."""

    def __init__(self, dims: Sequence[int]) -> None:
        super().__init__()
        self.dims = tuple(dims)

    def construct(self, x: Tensor) -> Tensor:
        """x: of as many axes as `dims` names."""
        return ops.permute(x, self.dims)


class LayerScale(nn.Cell):
    """A trained factor for each value of the last axis."""

    def __init__(self, dim: int, init_values: float = 1e-05) -> None:
        super().__init__()
        self.gamma = Parameter(init_values * ops.ones((dim,)), name="gamma")

    def construct(self, x: Tensor) -> Tensor:
        """x: (..., dim)."""
        return x * self.gamma


class LayerScale2d(LayerScale):
    """A trained factor for each channel."""

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, dim, H, W)."""
        return x * self.gamma.reshape((1, -1, 1, 1))
