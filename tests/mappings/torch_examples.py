"""The torch lines of the fault pages, run; see example_runner.py."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import example_runner
import numpy as np
import timm.utils
import torch
import torchvision
from example_runner import numbers
from msmigrate.training.data import random_draws
from PIL import Image
from torch import nn, optim
from torch.nn import functional
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import transforms


class Net(nn.Module):
    """Layers under the given names; all but `unused` run one after the other."""

    def __init__(self, **layers: nn.Module) -> None:
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, x: Any) -> Any:
        for name, layer in self.named_children():
            x = x if name == "unused" else layer(x)
        return x


def tensor(values: Any, dtype: Any = np.float32) -> torch.Tensor:
    return torch.from_numpy(np.array(values, dtype))


def filled(module: nn.Module) -> nn.Module:
    """The module with `numbers` in every parameter."""
    with torch.no_grad():
        for weight in module.parameters():
            weight.copy_(tensor(numbers(*weight.shape)))
    return module


def graded(module: nn.Module, grads: list[torch.Tensor]) -> nn.Module:
    """The module with these gradients."""
    for weight, grad in zip(module.parameters(), grads, strict=True):
        weight.grad = grad
    return module


def grads_of(module: nn.Module) -> list[Any]:
    return [weight.grad for weight in module.parameters()]


def ran(module: nn.Module, *inputs: Any) -> Any:
    """What a filled module makes of its inputs in training, and its buffers."""
    output = filled(module).train()(*inputs)
    buffers = [value for value in module.buffers() if value.is_floating_point()]
    return [output, *buffers] if buffers else output


def gradients(function: Callable[..., Any], weights: list[Any], *inputs: Any) -> list[Any]:
    return list(torch.autograd.grad(function(*inputs), weights))


def slopes(function: Callable[..., Any], x: torch.Tensor) -> torch.Tensor:
    """The gradient of the sum of a line's value by its x."""
    x = x.clone().requires_grad_()
    return torch.autograd.grad(function(x=x).sum(), x)[0]


def learned(optimizer: Any, loss: Callable[..., Any], *inputs: Any) -> None:
    """One step."""
    loss(*inputs).backward()
    optimizer.step()


def stepped(optimizer: Any, size: float = 1.0, times: int = 2) -> list[Any]:
    """The parameters after some steps with gradients of this size."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for _ in range(times):
        for weight in weights:
            weight.grad = tensor(numbers(*weight.shape) * size)
        optimizer.step()
    return weights


def rates_of(schedule: Any, times: int = 8) -> list[float]:
    """The rates of the first steps."""
    found = []
    for _ in range(times):
        found += schedule.get_last_lr()
        schedule.optimizer.step()
        schedule.step()
    return found


def scaler_of(scale: float) -> Any:
    """A GradScaler whose loss was scaled."""
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    scaler.scale(torch.ones(()))
    return scaler


def moved(module: nn.Module) -> nn.Module:
    """The module with 1 added to every weight."""
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(1)
    return module


def method_value(method: Callable[..., Any], x: Any) -> Any:
    """What a net makes of x by a line's method `forward`, or another that it calls."""
    return getattr(type("MethodNet", (Net,), {method.__name__: method})(fc=filled(nn.Linear(4, 10))), method.__name__)(
        x
    )


def method_gradients(
    method: Callable[..., Any], x: Any, part: Callable[[Any], Any] = lambda output: output
) -> list[Any]:
    """The gradients of three runs."""
    net = type("MethodNet", (Net,), {"forward": method})(fc=filled(nn.Linear(4, 10)))
    return [gradients(lambda: (part(net(x)) ** 2).sum(), list(net.parameters())) for _ in range(3)]


def kind(value: torch.Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


def spread(value: Any) -> float:
    return float(value.detach().std())


BASE = {
    "torch": torch,
    "torchvision": torchvision,
    "nn": nn,
    "F": functional,
    "optim": optim,
    "math": math,
    "transforms": transforms,
    "InterpolationMode": transforms.InterpolationMode,
    "ImageFolder": torchvision.datasets.ImageFolder,
    "DataLoader": DataLoader,
    "DistributedSampler": DistributedSampler,
    "clip_grad_norm_": nn.utils.clip_grad_norm_,
    "pack_padded_sequence": nn.utils.rnn.pack_padded_sequence,
    "draws": random_draws,
    **{name: getattr(timm.utils, name) for name in ("ModelEmaV2", "ModelEmaV3")},
    **{
        name: getattr(lr_scheduler, name)
        for name in ("StepLR", "LinearLR", "CosineAnnealingLR", "SequentialLR", "ExponentialLR")
    },
    **{
        function.__name__: function
        for function in (
            Net, tensor, filled, graded, grads_of, ran, gradients, slopes, learned, stepped, rates_of, scaler_of, moved,
            kind, spread, method_value, method_gradients
        )
    },
}  # fmt: skip


def usual_show(result: Any) -> str:
    """How a line of this result is looked at, where the fault's data do not say it."""
    if isinstance(result, nn.modules.loss._Loss):
        return "result(logits, labels)"
    if isinstance(result, nn.Module) and not type(result).__module__.startswith("torchvision"):
        return "ran(result, x)"
    if isinstance(result, optim.Optimizer):
        return "stepped(result)"
    return "rates_of(result)" if isinstance(result, lr_scheduler.LRScheduler) else "result"


def plain(value: Any) -> Any:
    """Lists and numbers."""
    if isinstance(value, torch.Tensor):
        return value.detach().tolist()
    if isinstance(value, np.ndarray | np.generic | Image.Image):
        return np.asarray(value).tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str) else None


if __name__ == "__main__":
    example_runner.main(sys.argv[1], BASE, usual_show, plain)
