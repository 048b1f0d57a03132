"""A layer that no model of the package has."""

from torch import nn


class Never(nn.Module):
    def forward(self, x):
        return x
