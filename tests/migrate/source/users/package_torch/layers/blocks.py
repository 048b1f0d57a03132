"""Blocks."""

from torch import nn

from .. import helpers
from ..helpers import conv as conv3
from .norms import ChannelNorm


class Block(nn.Module):
    """A residual block."""

    def __init__(self, channels):
        super().__init__()
        self.conv = conv3(channels, channels)
        self.norm = ChannelNorm(channels)

    def forward(self, x):
        return x + helpers.swish(self.norm(self.conv(x)))


helpers.register("block", Block)
