"""Train LeNet5 in PyTorch on scikit-learn's digits, as a course does it, and save a checkpoint.

python train_torch.py lenet5.pth
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class LeNet5(nn.Module):
    """LeNet5 with ReLU and max-pooling: images (N, 1, 32, 32) to logits (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc3(F.relu(self.fc2(x)))


def images() -> tuple[Tensor, Tensor]:
    """The first 1437 digits as (N, 1, 32, 32) around zero, and what they show."""
    digits = load_digits()
    pictures = [Image.fromarray((image * 255 / 16).round().astype(np.uint8)) for image in digits.images[:1437]]
    large = np.stack([np.asarray(one.resize((32, 32), Image.Resampling.BILINEAR)) for one in pictures])
    return torch.from_numpy(large[:, None] / 255.0).float().sub(0.5).div(0.5), torch.from_numpy(digits.target[:1437])


def main(path: str, epochs: int = 4) -> None:
    torch.manual_seed(0)
    model = LeNet5()
    loader = DataLoader(TensorDataset(*images()), batch_size=32, shuffle=True, drop_last=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.CrossEntropyLoss()(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epochs}, path)


if __name__ == "__main__":
    main(sys.argv[1])
