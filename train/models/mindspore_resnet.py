"""ResNet 18 to 152 in MindSpore, layer for layer the network of `torchvision.models.resnet`.

Every Cell has the name that torchvision gives the module, so a checkpoint crosses by renaming alone (`weight` and
`bias` of a BatchNorm become `gamma` and `beta`, its running statistics `moving_mean` and `moving_variance`). Each block
has one ReLU that it calls several times, as in torchvision: a record of the calls lines up one to one.

Arguments that MindSpore would otherwise fill with another default than PyTorch are always written out.
Architecture: He et al. 2015, "Deep Residual Learning for Image Recognition", with the stride of a bottleneck in its
3x3 convolution (v1.5), which is what torchvision trains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mindspore import Tensor, nn, ops
from mindspore.common.initializer import HeNormal, HeUniform, Uniform

STEM_CHANNELS = 64
STAGES = 4


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution without bias whose padding keeps the size at stride 1, drawn as torchvision draws it."""
    return nn.Conv2d(
        inputs,
        outputs,
        kernel_size=kernel,
        stride=stride,
        pad_mode="pad",  # the default, 'same', pads strided convolutions on one side only
        padding=kernel // 2,
        dilation=1,
        group=groups,
        has_bias=False,
        weight_init=HeNormal(negative_slope=0, mode="fan_out", nonlinearity="relu"),
    )


def batch_norm(channels: int, gamma: str = "ones") -> nn.BatchNorm2d:
    """A BatchNorm with PyTorch's defaults; `gamma` is the initial scale, 'ones' or 'zeros'."""
    return nn.BatchNorm2d(
        channels,
        eps=1e-5,
        momentum=0.9,  # the share of the old statistics that stays: 1 - PyTorch's 0.1
        affine=True,
        gamma_init=gamma,
        beta_init="zeros",
        moving_mean_init="zeros",
        moving_var_init="ones",
        use_batch_statistics=None,  # follow set_train(): batch statistics in training, moving ones in evaluation
    )


def linear(inputs: int, outputs: int) -> nn.Dense:
    """A fully connected layer, drawn as `torch.nn.Linear` draws itself: both ranges come from the number of inputs."""
    return nn.Dense(
        inputs,
        outputs,
        weight_init=HeUniform(negative_slope=math.sqrt(5), mode="fan_in", nonlinearity="leaky_relu"),
        bias_init=Uniform(scale=1 / math.sqrt(inputs)),
        has_bias=True,
        activation=None,
    )


class BasicBlock(nn.Cell):
    """Two 3x3 convolutions and a shortcut, the block of ResNet 18 and 34."""

    expansion = 1

    def __init__(
        self,
        inputs: int,
        channels: int,
        stride: int,
        downsample: nn.SequentialCell | None,
        groups: int,
        width_per_group: int,
        last_gamma: str,
    ) -> None:
        super().__init__()
        if groups != 1 or width_per_group != 64:
            raise ValueError(f"a basic block has groups=1 and width_per_group=64, not {groups} and {width_per_group}")
        self.conv1 = convolution(inputs, channels, kernel=3, stride=stride)
        self.bn1 = batch_norm(channels)
        self.relu = nn.ReLU()
        self.conv2 = convolution(channels, channels, kernel=3)
        self.bn2 = batch_norm(channels, gamma=last_gamma)
        self.downsample = downsample

    def construct(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(out + shortcut)


class Bottleneck(nn.Cell):
    """1x1, 3x3 and 1x1 convolutions and a shortcut, the block of ResNet 50, 101 and 152."""

    expansion = 4

    def __init__(
        self,
        inputs: int,
        channels: int,
        stride: int,
        downsample: nn.SequentialCell | None,
        groups: int,
        width_per_group: int,
        last_gamma: str,
    ) -> None:
        super().__init__()
        width = int(channels * (width_per_group / 64)) * groups
        outputs = channels * self.expansion
        self.conv1 = convolution(inputs, width, kernel=1)
        self.bn1 = batch_norm(width)
        self.conv2 = convolution(width, width, kernel=3, stride=stride, groups=groups)
        self.bn2 = batch_norm(width)
        self.conv3 = convolution(width, outputs, kernel=1)
        self.bn3 = batch_norm(outputs, gamma=last_gamma)
        self.relu = nn.ReLU()
        self.downsample = downsample

    def construct(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(out + shortcut)


class ResNet(nn.Cell):
    """A residual network for images.

    block: the kind of block that every stage is made of.
    layers: the number of blocks in each of the four stages.
    zero_init_residual: start the last BatchNorm of every block at zero, so that each block starts as its shortcut.
    groups, width_per_group: the grouping of the 3x3 convolutions of a bottleneck.
    width: channels of the first stage, doubled from stage to stage; the stem keeps its 64.

    Takes images (N, 3, H, W) and gives logits (N, num_classes), both float32.
    """

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        width: int = 64,
    ) -> None:
        super().__init__()
        if len(layers) != STAGES:
            raise ValueError(f"layers has the number of blocks of {STAGES} stages, not {list(layers)}")
        self._last_gamma = "zeros" if zero_init_residual else "ones"
        self._groups, self._width_per_group = groups, width_per_group
        outputs = [width * 2**stage * block.expansion for stage in range(STAGES)]

        self.conv1 = convolution(3, STEM_CHANNELS, kernel=7, stride=2)
        self.bn1 = batch_norm(STEM_CHANNELS)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(
            kernel_size=3, stride=2, pad_mode="pad", padding=1, dilation=1, return_indices=False, ceil_mode=False
        )
        self.layer1 = self._stage(block, STEM_CHANNELS, outputs[0], layers[0], stride=1)
        self.layer2 = self._stage(block, outputs[0], outputs[1], layers[1], stride=2)
        self.layer3 = self._stage(block, outputs[1], outputs[2], layers[2], stride=2)
        self.layer4 = self._stage(block, outputs[2], outputs[3], layers[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(output_size=(1, 1))
        self.fc = linear(outputs[3], num_classes)

    def _stage(
        self, block: type[BasicBlock] | type[Bottleneck], inputs: int, outputs: int, blocks: int, stride: int
    ) -> nn.SequentialCell:
        """The blocks of one stage; the first one changes size and channels, and its shortcut with it."""
        downsample = None
        if stride != 1 or inputs != outputs:
            downsample = nn.SequentialCell([convolution(inputs, outputs, kernel=1, stride=stride), batch_norm(outputs)])
        channels = outputs // block.expansion
        shared = (self._groups, self._width_per_group, self._last_gamma)
        first = block(inputs, channels, stride, downsample, *shared)
        rest = [block(outputs, channels, 1, None, *shared) for _ in range(blocks - 1)]
        return nn.SequentialCell([first, *rest])

    def construct(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = ops.flatten(self.avgpool(x), order="C", start_dim=1, end_dim=-1)
        return self.fc(x)
