"""Training steps as torch scripts write them: one net, clipped in several ways, over several calls, with .grad cleared
or not."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


def net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, stride=2, padding=1),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(384, 12),
        nn.Tanh(),
        nn.Linear(12, 5),
    )


def clipped(model: nn.Module, by: str) -> None:
    if by == "norm":
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    elif by == "value":
        nn.utils.clip_grad_value_(model.parameters(), 0.003)
    elif by == "each":
        for parameter in model.parameters():
            nn.utils.clip_grad_norm_([parameter], 0.05)
    elif by == "high":
        nn.utils.clip_grad_norm_(model.parameters(), 20.0)


class Loop:
    """The body of a training loop, as an engine's train_step has it."""

    def __init__(self, model: nn.Module, every: int, clip: str, forgets: bool) -> None:
        self.net, self.every, self.clip, self.forgets = model, every, clip, forgets
        self.opt = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
        self.batches = 0

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> Any:
        loss = F.cross_entropy(self.net(images), labels)
        (loss / self.every).backward()
        self.batches += 1
        if self.batches % self.every == 0:
            clipped(self.net, self.clip)
            self.opt.step()
            if not self.forgets:
                self.opt.zero_grad()
        return loss.detach()


class ByHand:
    """A step that moves the parameters itself, without an optimizer."""

    def __init__(self, model: nn.Module) -> None:
        self.net = model

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> Any:
        loss = F.cross_entropy(self.net(images), labels)
        self.net.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in self.net.parameters():
                parameter -= 0.01 * parameter.grad
        return loss.detach()


def by_hand() -> Any:
    model = net()
    return {"model": model, "step": ByHand(model)}


def loop(every: int = 1, clip: str = "", forgets: bool = False) -> Any:
    model = net()
    return {"model": model, "step": Loop(model, every, clip, forgets)}


def function(forgets: bool = False) -> Any:
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)

    def step(model: Any, optimizer: Any, images: torch.Tensor, labels: torch.Tensor) -> Any:
        loss = F.cross_entropy(model(images), labels)
        if not forgets:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return {"model": model, "optimizer": optimizer, "step": step}


def cut(parts: int = 2, clip: str = "norm", each: bool = True) -> Any:
    """A batch in micro-batches, of which each one's gradients are clipped, or their mean."""
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)

    def step(model: Any, optimizer: Any, images: torch.Tensor, labels: torch.Tensor) -> Any:
        total, losses = [torch.zeros_like(weight) for weight in model.parameters()], 0.0
        for x, y in zip(images.chunk(parts), labels.chunk(parts), strict=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            clipped(model, clip if each else "")
            for one, weight in zip(total, model.parameters(), strict=True):
                one += weight.grad / parts
            losses += loss.detach() / parts
        for one, weight in zip(total, model.parameters(), strict=True):
            weight.grad = one
        clipped(model, "" if each else clip)
        optimizer.step()
        return losses

    return {"model": model, "optimizer": optimizer, "step": step}


class Averages(nn.Module):
    """A copy of a whole model in a module of its own, as timm and most scripts keep a moving average."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.module = copy.deepcopy(model)


class Averaging:
    """A trainer whose step is a method, with the averages in one of the forms that people keep them in."""

    def __init__(self, model: nn.Module, form: str) -> None:
        self.net, self.form = model, form
        self.opt = torch.optim.SGD(model.parameters(), lr=0.01)
        state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        self.kept: Any = {
            "module": lambda: Averages(model),
            "torch's": lambda: torch.optim.swa_utils.AveragedModel(model),
            "dict": lambda: {"shadow": state},
            "list": lambda: [p.detach().clone() for p in model.parameters()],
            "object": lambda: Kept(state),
        }[form]()

    def averages(self) -> dict[str, torch.Tensor]:
        if self.form in ("module", "torch's"):
            return dict(self.kept.module.state_dict())
        if self.form == "list":
            return dict(zip((name for name, _ in self.net.named_parameters()), self.kept, strict=True))
        return dict(self.kept.state if self.form == "object" else self.kept["shadow"])

    def train_step(self, images: torch.Tensor, labels: torch.Tensor) -> Any:
        loss = F.cross_entropy(self.net(images), labels)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        now = self.net.state_dict()
        for name, average in self.averages().items():
            if average.is_floating_point():
                average.lerp_(now[name], 0.1)
        return {"loss": loss.detach(), "ema": self.averages()}


class Kept:
    def __init__(self, state: dict[str, torch.Tensor]) -> None:
        self.state = state


def normed() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.BatchNorm2d(6), nn.Flatten(), nn.Linear(384, 5))


def averaging(form: str = "module") -> Any:
    model = normed()
    return {"model": model, "step": Averaging(model, form).train_step}
