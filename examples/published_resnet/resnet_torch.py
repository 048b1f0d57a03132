"""torchvision's ResNet, whole and cut down to one block of each stage."""

from __future__ import annotations

import torch
from torch import nn
from torchvision.models.resnet import Bottleneck, ResNet


def resnet50() -> nn.Module:
    """ResNet50 with ten classes."""
    return _resnet([3, 4, 6, 3])


def resnet14() -> nn.Module:
    """One block of each stage, every one of them with a shortcut of its own."""
    return _resnet([1, 1, 1, 1])


def _resnet(blocks: list[int]) -> nn.Module:
    torch.manual_seed(1)
    return ResNet(Bottleneck, blocks, num_classes=10)
