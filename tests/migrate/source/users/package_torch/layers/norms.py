"""Norms."""

import torch
from torch import nn

EPS = 1e-5


class ChannelNorm(nn.Module):
    """Over the channels of an image."""

    def __init__(self, channels: int, eps: float = EPS) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels, 1, 1))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(1, keepdim=True)
        var = (x - mean).pow(2).mean(1, keepdim=True)
        return (x - mean) / (var + self.eps).sqrt() * self.weight
