"""The layers."""

from .blocks import Block
from .norms import ChannelNorm as Norm

__all__ = ["Block", "Norm"]
