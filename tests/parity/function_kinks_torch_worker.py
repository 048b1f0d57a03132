"""What KinkSides does with functions in torch: prints one JSON object of facts, case -> gradient and count."""

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from msmigrate.parity.record.torch_kinks import KinkSides, taking
from torch import nn


class Block(nn.Module):
    """Applies a function."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def case(net: nn.Module, name: str, watched: bool = True) -> dict[str, Any]:
    """Two elements next to zero, one on each side; the other run has both on the other side."""
    x = torch.tensor([1.0, -1.0, 1e-7, -1e-7], requires_grad=True)
    sides = KinkSides({(name, 0): np.packbits(np.array([True, False, False, True]))})
    with taking(sides, net) if watched else nullcontext():
        out = net(x * 1.0)
    (grad,) = torch.autograd.grad(out.sum(), x)
    return {"grad": grad.tolist(), "matched": sides.matched}


relu = nn.Sequential(Block(F.relu))
facts = {
    "function": case(relu, "0.relu()"),
    "tensor method": case(nn.Sequential(Block(torch.Tensor.relu)), "0.relu()"),
    "in place": case(nn.Sequential(Block(lambda x: F.relu(x, inplace=True))), "0.relu()"),
    "module that the other lacks": case(nn.Sequential(nn.ReLU(inplace=True)), "relu()"),
    "no module": case(relu, "relu()"),
    "not recorded": case(relu, "1.relu()"),
    "afterwards": case(relu, "0.relu()", watched=False),
}
json.dump(facts, sys.stdout)
