"""LeNet5 in PyTorch, in the form that most courses teach: ReLU and max pooling in place of the original's tanh."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class LeNet5(nn.Module):
    """LeNet5 (LeCun et al. 1998) for images of 32 x 32.

    Takes images (N, channels, 32, 32) and gives logits (N, num_classes), both of the parameters' dtype.
    """

    def __init__(self, channels: int = 1, num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, kernel_size=5)
        self.conv2 = nn.Conv2d(6, 16, kernel_size=5)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)
