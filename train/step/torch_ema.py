"""The exponential moving average of a PyTorch model's weights and buffers."""

from __future__ import annotations

import torch
from torch import nn

from ..recipe import Ema
from .ema_decay import decay


class MovingAverage:
    """An average of everything in the model's state_dict, which starts as a copy of it.

    The rule is that of timm.utils.ModelEmaV2 and, under warm-up, ModelEmaV3; integer buffers (num_batches_tracked) are
    copied. The average is in the model's own dtype.
    """

    def __init__(self, ema: Ema, model: nn.Module) -> None:
        self._rule = ema
        self.tensors = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}

    def update(self, model: nn.Module, number: int) -> None:
        """Take the given update, counted from 1."""
        weight = 1.0 - decay(self._rule, number)
        with torch.no_grad():
            for name, value in model.state_dict().items():
                average = self.tensors[name]
                if average.is_floating_point():
                    average.lerp_(value, weight)
                else:
                    average.copy_(value)
