"""What KinkSides does in torch: kinks_worker.py prints one JSON object of facts, case -> what was seen."""

import json
import sys
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from msmigrate.parity.record.kinks import KINKS, choice, packed
from msmigrate.parity.record.torch_kinks import TOLERANCE, KinkSides, OwnSides, taking
from torch import nn


def sides_of(above: list[bool]) -> np.ndarray:
    """What another run keeps that has no element at zero."""
    return packed([np.array(above)], [np.zeros(len(above), bool)])


def relu_case(dtype: torch.dtype, inplace: bool, far: bool = False) -> dict[str, Any]:
    """Two elements next to zero, one on each side; the other run has both on the other side."""
    gap = 1e-7 if not far else 10 * TOLERANCE
    x = torch.tensor([1.0, -1.0, gap, -gap], dtype=dtype, requires_grad=True)
    sides = KinkSides({("0", 0): sides_of([True, False, False, True])})
    net = nn.Sequential(nn.ReLU(inplace=inplace))
    with taking(sides, net):
        out = net(x * 1.0)
    out.sum().backward()
    assert x.grad is not None
    away = (out.detach() - F.relu(x.detach())).abs().max().item()
    return {"grad": x.grad.tolist(), "away": away, "matched": sides.matched, "differing": sides.differing}


def other_kinks_case(dtype: torch.dtype, module: nn.Module) -> dict[str, Any]:
    """Two elements next to each kink and a far one; the other run has those next to one on the other side."""
    kinks = KINKS[type(module).__name__]
    x = torch.tensor([kink + gap for kink in kinks for gap in (1e-6, -1e-6)] + [20.0], dtype=dtype, requires_grad=True)
    theirs = torch.tensor([kink - gap for kink in kinks for gap in (1e-6, -1e-6)] + [20.0], dtype=dtype)
    theirs.requires_grad_()
    kept = choice(type(module).__name__, np.zeros(0), theirs.detach().numpy())
    assert kept is not None
    sides = KinkSides({("0", 0): kept})
    net = nn.Sequential(module)
    with taking(sides, net):
        out = net(x * 1.0)
    above = np.stack([theirs.detach().numpy() > kink for kink in kinks])
    own = packed(above, np.zeros_like(above))  # torch's own at a kink are no matter of two frameworks
    (grad,) = torch.autograd.grad(out.sum(), x)
    (expected,) = torch.autograd.grad(module(theirs * 1.0).sum(), theirs)
    (plain,) = torch.autograd.grad(module(x * 1.0).sum(), x)
    return {
        "as theirs": (grad - expected).abs().max().item(),
        "turned": (grad - plain).abs()[:-1].min().item(),
        "away": (out.detach() - module(x * 1.0)).abs().max().item(),
        "matched": sides.matched,
        "of torch's": own_choices(net, theirs * 1.0) == {("0", 0): own.tobytes()},
    }


def own_choices(net: nn.Module, x: torch.Tensor) -> dict[tuple[str, int], bytes]:
    """What torch keeps of its own."""
    sides = OwnSides()
    with taking(sides, net):
        net(x)
    return {key: made.tobytes() for key, made in sides.choices.items()}


def leaky_at_zero_case(dtype: torch.dtype) -> dict[str, Any]:
    """The other run's input was zero in four places; torch is a little above, below, at it, and once far from it.

    Where both are at zero nothing was rounded, and nothing is moved.
    """
    x = torch.tensor([1e-8, -1e-8, 0.0, 0.5, -1.0, 1.0], dtype=dtype, requires_grad=True)
    theirs = np.array([0.0, 0.0, 0.0, 0.0, -1.0, 1.0], np.float32)
    kept = choice("LeakyReLU", theirs, theirs)
    assert kept is not None
    sides, net = KinkSides({("0", 0): kept}), nn.Sequential(nn.LeakyReLU(0.1))
    with taking(sides, net):
        out = net(x * 1.0)
    (grad,) = torch.autograd.grad(out.sum(), x)
    away = (out.detach() - nn.functional.leaky_relu(x.detach(), 0.1)).abs().max().item()
    return {"grad": grad.tolist(), "away": away, "matched": sides.matched, "differing": sides.differing}


def tied_case(dtype: torch.dtype, module: nn.Module) -> dict[str, Any]:
    """Both are exactly at each kink: nothing is moved, for what the gradients are there is no matter of rounding."""
    kinks = KINKS[type(module).__name__]
    x = torch.tensor([*kinks, 20.0], dtype=dtype)
    kept = choice(type(module).__name__, np.zeros(0), x.numpy())
    assert kept is not None
    sides = KinkSides({("0", 0): kept})
    with taking(sides, nn.Sequential(module)):
        return {"moved": sides.relu_input("0", x, kinks) is not None, "matched": sides.matched}


def agreeing_case() -> dict[str, Any]:
    x = torch.tensor([1.0, -1.0, 1e-9, -1e-9, 0.0])
    sides = KinkSides({("0", 0): sides_of((x > 0).tolist())})
    with taking(sides, nn.Sequential(nn.ReLU())):
        return {"moved": sides.relu_input("0", x) is not None, "matched": sides.matched}


def reused_case() -> dict[str, Any]:
    """One ReLU called three times: the second call alone has a choice, and so does the fourth, which never comes."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            return [self.relu(x.clone()) for _ in range(3)]

    net, x = Net(), torch.tensor([1e-8, 1.0], requires_grad=True)
    kept = sides_of([False, True])
    sides = KinkSides({("relu", 1): kept, ("relu", 3): kept, ("unknown", 0): kept})
    with taking(sides, net):
        outs = net(x)
    grads = [torch.autograd.grad(out.sum(), x, retain_graph=True)[0].tolist() for out in outs]
    net(x)  # the hooks are gone
    return {"grads": grads, "matched": sides.matched}


def misshapen_case() -> dict[str, Any]:
    x, image = torch.tensor([1e-8] * 20), torch.ones(1, 1, 4, 4)
    sides = KinkSides({("relu", 0): np.zeros(1, np.uint8), ("pool", 0): np.ones((1, 1, 5, 5), np.float32)})
    pool = nn.MaxPool2d(2)
    moved = [sides.relu_input("relu", x), sides.pool_output("pool", pool, image, pool(image))]
    return {"moved": [each is not None for each in moved], "matched": sides.matched}


def pool_case(dtype: torch.dtype, far: bool = False, **arguments: Any) -> dict[str, Any]:
    """The other run's input has in every window another maximum, up to rounding (or far from it)."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(2, 3, 9, 9, generator=generator, dtype=dtype)
    x = (x * 4).round() / 4  # many equal elements in a window
    theirs = x + (0.5 if far else 1e-6) * torch.rand(x.shape, generator=generator, dtype=dtype)
    pool = nn.MaxPool2d(**arguments)
    net, x = nn.Sequential(pool), x.requires_grad_()
    sides = KinkSides({("0", 0): theirs.numpy().astype(np.float32)})
    with taking(sides, net):
        out = net(x)
    (grad,) = torch.autograd.grad(out.sum(), x)
    other = theirs.clone().float().requires_grad_()
    (expected,) = torch.autograd.grad(pool(other).sum(), other)
    (plain,) = torch.autograd.grad(pool(x).sum(), x)
    return {
        "away": (out - pool(x)).abs().max().item(),
        "as theirs": bool((grad.float() == expected).all()),
        "as before": bool((grad == plain).all()),
        "matched": sides.matched,
        "differing": sides.differing,
    }


POOLS: dict[str, dict[str, Any]] = {
    "plain": {"kernel_size": 3},
    "overlapping": {"kernel_size": 3, "stride": 2},
    "padded": {"kernel_size": 3, "stride": 2, "padding": 1},
    "ceil": {"kernel_size": 2, "stride": 2, "ceil_mode": True},
    "dilated": {"kernel_size": 2, "stride": 1, "dilation": 2},
}

facts: dict[str, Any] = {}
for name, dtype in (("float32", torch.float32), ("float64", torch.float64)):
    for inplace in (False, True):
        facts[f"relu {name}{' inplace' * inplace}"] = relu_case(dtype, inplace)
    facts[f"relu far {name}"] = relu_case(dtype, False, far=True)
    for module in (nn.ReLU6(), nn.Hardswish(), nn.Hardsigmoid(), nn.LeakyReLU(0.1), nn.PReLU()):
        kinked = module.to(dtype)
        facts[f"{type(module).__name__} {name}"] = other_kinks_case(dtype, kinked)
        facts[f"{type(module).__name__} tied {name}"] = tied_case(dtype, kinked)
    for case, arguments in POOLS.items():
        facts[f"pool {case} {name}"] = pool_case(dtype, **arguments)
    facts[f"pool far {name}"] = pool_case(dtype, far=True, kernel_size=3, stride=2, padding=1)
    facts[f"leaky at zero {name}"] = leaky_at_zero_case(dtype)
facts |= {"agreeing": agreeing_case(), "reused": reused_case(), "misshapen": misshapen_case()}
json.dump(facts, sys.stdout)
