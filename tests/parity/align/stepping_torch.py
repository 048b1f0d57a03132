"""Training steps as torch scripts write them: one net, clipped in several ways, over several calls, with .grad cleared
or not."""

from __future__ import annotations

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
