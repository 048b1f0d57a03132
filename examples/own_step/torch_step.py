"""A small net in torch with the parts of a step, as docs/your_own_pair.md shows them; every function is a --torch."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> Any:
        return self.fc(F.relu(self.bn(self.conv(x))).mean((2, 3)))


def model() -> Any:
    return Net()


def with_loss(weights: Any = (1.0, 2.0, 1.0, 2.0, 1.0)) -> Any:
    return {"model": Net(), "loss": nn.CrossEntropyLoss(torch.tensor(weights), label_smoothing=0.1)}


def with_optimizer() -> Any:
    net = Net()
    return {"model": net, "optimizer": torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)}


def with_step(parts: int = 2, clip: float = 0.05) -> Any:
    def step(model: Any, optimizer: Any, images: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        total = 0.0
        for x, y in zip(images.chunk(parts), labels.chunk(parts), strict=True):
            loss = F.cross_entropy(model(x), y) / parts
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return total

    return {"model": Net(), "step": step}


class Trainer:
    """Updates at every `calls`-th call, on the mean of the gradients, and keeps a moving average."""

    def __init__(self, model: nn.Module, calls: int = 1, clip: float | None = None, decay: float = 0.9) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.calls, self.clip, self.decay = calls, clip, decay
        self.count = 0
        self.average = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> Any:
        loss = F.cross_entropy(self.model(images), labels)
        (loss / self.calls).backward()
        self.count += 1
        if self.count % self.calls == 0:
            if self.clip:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
            self.optimizer.step()
            self.optimizer.zero_grad()
            for name, tensor in self.model.state_dict().items():
                if tensor.is_floating_point():
                    self.average[name].lerp_(tensor, 1 - self.decay)
        return {"loss": loss.detach(), "ema": dict(self.average)}


def trainer(calls: int = 1, clip: float | None = None) -> Any:
    net = Net()
    return {"model": net, "step": Trainer(net, calls, clip)}


class Scheduled(Trainer):
    """A trainer that moves the rate itself, by a cosine over `total` calls."""

    def __init__(self, model: nn.Module, total: int) -> None:
        super().__init__(model)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, total)

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> Any:
        found = super().__call__(images, labels)
        self.schedule.step()
        return found


def scheduled(total: int = 8) -> Any:
    net = Net()
    return {"model": net, "step": Scheduled(net, total)}
