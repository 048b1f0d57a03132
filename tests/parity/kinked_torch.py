"""Nets whose kinks are functions in one framework and layers in the other, and one that has no norm."""

import torch
import torch.nn.functional as F
from torch import nn


class Functions(nn.Module):
    """The net of pytorch/examples' mnist, for images of 8x8."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, 1)
        self.conv2 = nn.Conv2d(16, 32, 3, 1)
        self.fc1 = nn.Linear(128, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        return F.log_softmax(self.fc2(F.relu(self.fc1(torch.flatten(x, 1)))), dim=1)


class Modules(nn.Module):
    """The same of layers."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            *(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 10), nn.LogSoftmax(1)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


class Clipped(nn.Conv2d):
    """A layer with weights that has another one inside, as timm's norms have their activation."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 3, 1)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(super().forward(x))


class Inside(Functions):
    """The same of such layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = Clipped(1, 16), Clipped(16, 32)
        self.act = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(self.conv2(self.conv1(x)), 2)
        return F.log_softmax(self.fc2(self.act(self.fc1(torch.flatten(x, 1)))), dim=1)


class Rare(nn.Module):
    """Clamps, maxima and pools that are no MaxPool2d."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.conv3 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv1(x).clamp(0, 0.5)
        x = torch.maximum(x, x.flip(3) * 0.9)
        x = F.leaky_relu(F.max_pool2d(self.conv2(x), 3, 2, 1), 0.1)
        x = x.reshape(len(x), 8, 4, *x.shape[2:]).max(2)[0]
        x = F.hardtanh(self.conv3(x), -0.3, 0.3)
        return self.fc(F.adaptive_max_pool2d(x, 1).flatten(1))


class Plain(nn.Module):
    """Before it has trained, all images have nearly the same logits."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.fc = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(F.relu(self.conv2(F.relu(self.conv1(x)))).mean((2, 3)))


class Pixels(nn.Module):
    """An average hands the same gradient back to all pixels of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.each, self.fc = nn.Linear(1, 16), nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.each(x.flatten(2).transpose(1, 2)).mean(1))
