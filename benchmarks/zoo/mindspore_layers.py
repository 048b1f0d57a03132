"""Layers that several of the twins are built from, each with every argument written that the frameworks fill in
differently, and with torchvision's initial values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from mindspore import Tensor, nn, ops
from mindspore.common.initializer import HeNormal, HeUniform, Initializer, Normal, Uniform

Init: TypeAlias = "Initializer | str"


def kaiming_fan_out() -> Initializer:
    """`kaiming_normal_(mode="fan_out")`."""
    return HeNormal(negative_slope=0, mode="fan_out", nonlinearity="relu")


def torch_default() -> Initializer:
    """How torch draws the weight of a Linear or a convolution: `kaiming_uniform_(a=sqrt(5))`."""
    return HeUniform(negative_slope=math.sqrt(5), mode="fan_in", nonlinearity="leaky_relu")


def torch_default_bias(fan_in: int) -> Initializer:
    """How torch draws the bias of a layer with so many inputs to each output."""
    return Uniform(scale=1 / math.sqrt(fan_in))


def trunc() -> Normal:
    """`trunc_normal_(std=0.02)`, which cuts at ±2, a hundred standard deviations away."""
    return Normal(sigma=0.02, mean=0.0)


def convolution(
    inputs: int,
    outputs: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
    bias: bool = False,
    weight_init: Init | None = None,
    bias_init: Init | None = None,
) -> nn.Conv2d:
    """A convolution; the initial values are torch's default ones unless given."""
    fan_in = inputs // groups * kernel * kernel
    return nn.Conv2d(
        inputs,
        outputs,
        kernel_size=kernel,
        stride=stride,
        pad_mode="pad",
        padding=padding,
        dilation=1,
        group=groups,
        has_bias=bias,
        weight_init=weight_init or torch_default(),
        bias_init=bias_init or torch_default_bias(fan_in),
    )


def batch_norm(channels: int, eps: float = 1e-5, kept: float = 0.9) -> nn.BatchNorm2d:
    """A BatchNorm; `kept` is the share of the old statistics that stays, 1 - torch's momentum."""
    return nn.BatchNorm2d(
        channels,
        eps=eps,
        momentum=kept,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        moving_mean_init="zeros",
        moving_var_init="ones",
        use_batch_statistics=None,
    )


def layer_norm(width: int, eps: float = 1e-5) -> nn.LayerNorm:
    """A LayerNorm over the last axis."""
    return nn.LayerNorm(
        (width,), begin_norm_axis=-1, begin_params_axis=-1, gamma_init="ones", beta_init="zeros", epsilon=eps
    )


def linear(
    inputs: int, outputs: int, bias: bool = True, weight_init: Init | None = None, bias_init: Init | None = None
) -> nn.Dense:
    """A fully connected layer; the initial values are torch's default ones unless given."""
    return nn.Dense(
        inputs,
        outputs,
        weight_init=weight_init or torch_default(),
        bias_init=bias_init or torch_default_bias(inputs),
        has_bias=bias,
        activation=None,
    )


def normal_linear(inputs: int, outputs: int, deviation: float = 0.01) -> nn.Dense:
    """A fully connected layer that starts from a normal distribution and a bias of zeros."""
    return linear(inputs, outputs, weight_init=Normal(sigma=deviation, mean=0.0), bias_init="zeros")


def max_pool(kernel: int, stride: int, padding: int = 0, ceil: bool = False) -> nn.MaxPool2d:
    """A max-pool as torch pads it."""
    return nn.MaxPool2d(
        kernel_size=kernel,
        stride=stride,
        pad_mode="pad",
        padding=padding,
        dilation=1,
        return_indices=False,
        ceil_mode=ceil,
    )


def flatten(x: Tensor) -> Tensor:
    """(N, C, H, W) as (N, C·H·W)."""
    return ops.flatten(x, order="C", start_dim=1, end_dim=-1)


class Permute(nn.Cell):
    """Axes in another order."""

    def __init__(self, axes: Sequence[int]) -> None:
        super().__init__()
        self.axes = tuple(axes)

    def construct(self, x: Tensor) -> Tensor:
        return ops.transpose(x, self.axes)


class ConvNormActivation(nn.SequentialCell):
    """torchvision's Conv2dNormActivation: a convolution that keeps the size at stride 1, a BatchNorm, an activation."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        stride: int = 1,
        groups: int = 1,
        activation: nn.Cell | None = None,
        eps: float = 1e-5,
        kept: float = 0.9,
        weight_init: Init | None = None,
    ) -> None:
        init = weight_init or kaiming_fan_out()
        layers = [
            convolution(inputs, outputs, kernel, stride, (kernel - 1) // 2, groups, weight_init=init),
            batch_norm(outputs, eps, kept),
        ]
        super().__init__([*layers, activation] if activation is not None else layers)


class SqueezeExcitation(nn.Cell):
    """torchvision's SqueezeExcitation with the given activations; no bias_init: as torch draws it."""

    def __init__(
        self,
        channels: int,
        squeezed: int,
        activation: nn.Cell,
        scale_activation: nn.Cell,
        weight_inits: Sequence[Init] | None = None,
        bias_init: Init | None = "zeros",
    ) -> None:
        super().__init__()
        first, second = weight_inits or (kaiming_fan_out(), kaiming_fan_out())
        self.avgpool = nn.AdaptiveAvgPool2d(output_size=1)
        self.fc1 = convolution(channels, squeezed, 1, bias=True, weight_init=first, bias_init=bias_init)
        self.fc2 = convolution(squeezed, channels, 1, bias=True, weight_init=second, bias_init=bias_init)
        self.activation = activation
        self.scale_activation = scale_activation

    def construct(self, x: Tensor) -> Tensor:
        scale = self.activation(self.fc1(self.avgpool(x)))
        return self.scale_activation(self.fc2(scale)) * x
