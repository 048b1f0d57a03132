"""A loss that depends on everything a torch model returns, for models whose output no recipe's loss takes.

The mean over all floating tensors of half the mean square of their distance from fixed numbers between 0 and 1, so that
no gradient is zero and none is another's. mindspore_output_loss.py is the same in MindSpore.
"""

from __future__ import annotations

from typing import Any

import torch

from ...errors import BadInput
from .contents import flat

PERIOD = 101  # elements after which the numbers come again


def output_loss(outputs: Any, labels: torch.Tensor) -> torch.Tensor:
    """The loss of what the model returned. Raises BadInput where no floating tensor is in it."""
    found = [x for x in flat(outputs, torch.Tensor) if x.is_floating_point()]
    if not found:
        raise BadInput(f"the torch model returns {type(outputs).__name__} without a floating tensor")
    return torch.stack([_distance(x) for x in found]).mean()


def _distance(x: torch.Tensor) -> torch.Tensor:
    fixed = (torch.arange(x.numel()) % PERIOD).to(x.dtype) / PERIOD
    return ((x.reshape(-1) - fixed) ** 2).mean() / 2
