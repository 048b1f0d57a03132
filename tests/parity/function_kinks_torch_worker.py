"""What KinkSides does with functions in torch: prints one JSON object of facts, case -> gradient and count."""

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from msmigrate.parity.record.kinks import of_input, packed
from msmigrate.parity.record.torch_kinks import KinkSides, OwnSides, taking
from torch import nn


class Block(nn.Module):
    """Applies a function."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def sides_of(above: np.ndarray) -> np.ndarray:
    """What another run keeps that has no element at the kink."""
    return packed([above], [np.zeros_like(above)])


def case(net: nn.Module, name: str, watched: bool = True) -> dict[str, Any]:
    """Two elements next to zero, one on each side; the other run has both on the other side."""
    x = torch.tensor([1.0, -1.0, 1e-7, -1e-7], requires_grad=True)
    sides = KinkSides({(name, 0): sides_of(np.array([True, False, False, True]))})
    with taking(sides, net) if watched else nullcontext():
        out = net(x * 1.0)
    (grad,) = torch.autograd.grad(out.sum(), x)
    return {"grad": grad.tolist(), "matched": sides.matched}


def as_many_numbers() -> dict[str, Any]:
    """Before the ReLU's sides of 32 elements, in 8 bytes, stand the 8 numbers that a maximum of the same module had."""
    x = (torch.arange(32.0) - 16.0).requires_grad_()
    theirs = np.arange(32) >= 16  # at 0 it took the other side
    records = {("0.max()", 0): np.ones(8, np.float32), ("0.relu()", 0): sides_of(theirs)}
    sides = KinkSides(records)
    with taking(sides, net := nn.Sequential(Block(F.relu))):
        out = net(x * 1.0)
    (grad,) = torch.autograd.grad(out.sum(), x)
    return {"grad": grad.tolist(), "matched": sides.matched}


def above_a_bound() -> dict[str, Any]:
    """A clamp whose other run recorded nothing, next to an abs of values that are all above 0, as a norm has it."""
    x = torch.tensor([1.0, 2.0, 6e-8, 3.0], requires_grad=True)
    sides = KinkSides({("0.abs()", 0): sides_of(np.ones(4, bool))})
    with taking(sides, net := nn.Sequential(Block(lambda x: torch.clamp(x, min=1e-7)))):
        out = net(x * 1.0)
    (grad,) = torch.autograd.grad(out.sum(), x)
    return {"grad": grad.tolist(), "matched": sides.matched}


def tied(function: Callable[[torch.Tensor], torch.Tensor], kept: np.ndarray) -> dict[str, Any]:
    """At 0 and 1 exactly, as the other run is, which hands its gradient on there."""
    x = torch.tensor([0.0, 0.5, 1.0], requires_grad=True)
    sides = KinkSides({("0.f()", 0): kept})
    with taking(sides, net := nn.Sequential(Block(function))):
        out = net(x * 1.0)
    return {"grad": torch.autograd.grad(out.sum(), x)[0].tolist(), "matched": sides.matched}


def inputs() -> torch.Tensor:
    """Many elements that are equal but for rounding, many at 0 and 0.5."""
    generator = torch.Generator().manual_seed(0)
    x = (torch.rand(2, 4, 6, 6, generator=generator) * 4).round() / 4 - 0.5
    return x + 1e-6 * torch.randn(x.shape, generator=generator)


def of_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> dict[tuple[str, int], Any]:
    """What another run of torch's keeps of its own choices."""
    sides, x = OwnSides(), torch.from_numpy(other(inputs())).requires_grad_()
    with taking(sides, net := nn.Sequential(Block(function))):
        assert torch.equal(net(x), function(x))
    return {key: lambda _, made=made: made for key, made in sides.choices.items()}


def taken(function: Callable[[torch.Tensor], torch.Tensor], records: dict[tuple[str, int], Any]) -> list[float]:
    """The gradient by a net's input, when the other run has chosen as the records say."""
    x = inputs().requires_grad_()
    with taking(
        KinkSides({key: make(x.detach()) for key, make in records.items()}), net := nn.Sequential(Block(function))
    ):
        out = net(x)
    weights = torch.arange(1.0, out.numel() + 1).reshape(out.shape)
    return torch.autograd.grad((out * weights).sum(), x)[0].flatten().tolist()


def other(x: torch.Tensor) -> np.ndarray:
    """The other run's input: up to rounding the same, but of two equal elements another is larger."""
    return (x + 1e-6 * torch.randn(x.shape, generator=torch.Generator().manual_seed(1))).numpy()


def bits(*kinks: float) -> Callable[[torch.Tensor], np.ndarray]:
    """The sides of the other run's elements."""
    return lambda x: of_input(other(x), kinks)


def source(x: torch.Tensor) -> np.ndarray:
    """Of what takes the largest, the other run's input."""
    return other(x)


def flipped(x: torch.Tensor) -> torch.Tensor:
    return x.flip(3) * 1.0


def compare(x: torch.Tensor) -> np.ndarray:
    """Which elements of the other run's are larger than their mirror images."""
    return sides_of(other(x) > other(x)[..., ::-1])


def clamp_(x: torch.Tensor) -> torch.Tensor:
    """In place, and what comes back thrown away."""
    x = x * 1.0
    x.clamp_(0, 0.5)
    return x


# function -> what the other run recorded, of itself or of what stands for it there
FUNCTIONS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Any]] = {
    "clamp": (lambda x: x.clamp(0, 0.5), bits(0, 0.5)),
    "clamp at zero for a ReLU": (lambda x: torch.clamp(x, min=0), bits(0)),
    "clip by keywords": (lambda x: torch.clip(input=x, max=0.5), bits(0.5)),
    "in place": (clamp_, bits(0, 0.5)),
    "hardtanh": (lambda x: F.hardtanh(x, -0.25, 0.5), bits(-0.25, 0.5)),
    "leaky_relu for a maximum": (F.leaky_relu, lambda x: sides_of(0.01 * other(x) > other(x))),
    "abs": (torch.abs, bits(0)),
    "maximum": (lambda x: torch.maximum(x, flipped(x)), compare),
    "minimum": (lambda x: torch.min(x, flipped(x)), compare),
    "max_pool1d": (lambda x: F.max_pool1d(x[0], 2), lambda x: other(x)[0]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), source),
    "max_pool2d with indices": (lambda x: F.max_pool2d(x, 2, return_indices=True)[0], source),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), source),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (2, 3)), source),
    "adaptive_max_pool2d recorded by others": (lambda x: F.adaptive_max_pool2d(x, 1), lambda x: other(x)[:, :, None]),
    "max": (lambda x: x.max(1)[0], source),
    "max by keyword": (lambda x: torch.max(x, dim=-1, keepdim=True).values, source),
    "min": (lambda x: x.min(2).values, source),
    "amax": (lambda x: x.amax((2, 3)), source),
    "max of all": (torch.max, source),
}


def functions() -> dict[str, dict[str, bool]]:
    """Of each function whether its gradient is the other run's, and whether it was before."""
    found = {}
    for name, (function, make) in FUNCTIONS.items():
        expected = taken(lambda x, f=function: f(x + (torch.from_numpy(other(x.detach())) - x.detach())), {})
        decoy = ("0.relu()", 0), ("0.maxpool()", 0)  # recorded earlier, of other values
        records = {
            decoy[0]: lambda x: sides_of(x.numpy().flatten()[::-1] > 0.1),
            decoy[1]: lambda x: -x.numpy(),
            ("0.f()", 0): make,
        }
        found[name] = {"theirs": taken(function, records) == expected, "before": taken(function, {}) == expected}
        found[name]["torch's"] = taken(function, of_torch(function)) == expected
    return found


relu = nn.Sequential(Block(F.relu))
facts = {
    "function": case(relu, "0.relu()"),
    "tensor method": case(nn.Sequential(Block(torch.Tensor.relu)), "0.relu()"),
    "in place": case(nn.Sequential(Block(lambda x: F.relu(x, inplace=True))), "0.relu()"),
    "module that the other lacks": case(nn.Sequential(nn.ReLU(inplace=True)), "relu()"),
    "no module": case(relu, "relu()"),
    "not recorded": case(relu, "1.relu()"),
    "afterwards": case(relu, "0.relu()", watched=False),
    "as many numbers": as_many_numbers(),
    "above a bound": above_a_bound(),
    "clamp at its bounds": tied(
        lambda x: x.clamp(0, 1),
        packed(
            [np.array([True, True, True]), np.array([False, False, False])],
            [np.array([True, False, False]), np.array([False, False, True])],
        ),
    ),
    "functions": functions(),
}
json.dump(facts, sys.stdout)
