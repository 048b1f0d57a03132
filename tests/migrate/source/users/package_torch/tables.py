"""A table of layers that others import, as searches for architectures have it."""

import torch.nn as nn

OPERATIONS = {
    "none": lambda c, stride, affine: Zero(stride),
    "pool": lambda c, stride, affine: nn.AvgPool2d(3, stride=stride, padding=1, count_include_pad=False),
    "skip": lambda c, stride, affine: nn.Identity() if stride == 1 else nn.Conv2d(c, c, 1, stride=stride),
    "sep": lambda c, stride, affine: Separable(c, c, 3, stride, 1, affine=affine),
}


class Separable(nn.Module):
    def __init__(self, ins, outs, kernel, stride, padding, affine=True):
        super().__init__()
        self.op = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(ins, outs, kernel, stride=stride, padding=padding, bias=False),
            nn.BatchNorm2d(outs, affine=affine),
        )

    def forward(self, x):
        return self.op(x)


class Zero(nn.Module):
    def __init__(self, stride):
        super().__init__()
        self.stride = stride

    def forward(self, x):
        return x[:, :, :: self.stride, :: self.stride] * 0.0
