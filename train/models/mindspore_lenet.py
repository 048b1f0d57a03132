"""LeNet5 in MindSpore, layer for layer and name for name the network of `torch_lenet`."""

from __future__ import annotations

import math

from mindspore import Tensor, nn, ops
from mindspore.common.initializer import HeUniform, Uniform

from .mindspore_resnet import linear


def convolution(inputs: int, outputs: int, kernel: int) -> nn.Conv2d:
    """A convolution with bias and without padding, drawn as `torch.nn.Conv2d` draws itself."""
    return nn.Conv2d(
        inputs,
        outputs,
        kernel_size=kernel,
        stride=1,
        pad_mode="valid",
        padding=0,
        dilation=1,
        group=1,
        has_bias=True,
        weight_init=HeUniform(negative_slope=math.sqrt(5), mode="fan_in", nonlinearity="leaky_relu"),
        bias_init=Uniform(scale=1 / math.sqrt(inputs * kernel * kernel)),
    )


class LeNet5(nn.Cell):
    """LeNet5 (LeCun et al. 1998) for images of 32 x 32, with ReLU and max pooling.

    Takes images (N, channels, 32, 32) and gives logits (N, num_classes), both float32.
    """

    def __init__(self, channels: int = 1, num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = convolution(channels, 6, kernel=5)
        self.conv2 = convolution(6, 16, kernel=5)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2, pad_mode="valid", padding=0)
        self.fc1 = linear(16 * 5 * 5, 120)
        self.fc2 = linear(120, 84)
        self.fc3 = linear(84, num_classes)

    def construct(self, x: Tensor) -> Tensor:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = ops.flatten(x, order="C", start_dim=1, end_dim=-1)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)
