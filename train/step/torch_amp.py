"""Mixed precision in PyTorch: the forward pass of a training step as the recipe's `amp` says."""

from __future__ import annotations

import torch
from torch import nn

from ..recipe import Amp
from .groups import is_norm

HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def forward(amp: Amp | None, model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """The model's logits in the model's own dtype, computed in mixed precision where that is float32.

    A float64 model is the reference, and runs without. O1: under torch.autocast. O2: weights and images are rounded,
    the norms' excepted, which take half precision and compute with float32 statistics. O3: the norms' too. The model's
    parameters stay float32, and the gradients that reach them passed through the rounding. images: (N, C, H, W).
    """
    dtype = next(model.parameters()).dtype
    if amp is None or amp.level == "O0" or dtype != torch.float32:
        return model(images)
    half = HALVES[amp.dtype]
    if amp.level == "O1":
        with torch.autocast(images.device.type, half):
            logits: torch.Tensor = model(images)
        return logits.to(dtype)
    norms = {name for name, module in model.named_modules() if is_norm(type(module).__name__)}
    weights = {}
    for name, parameter in model.named_parameters():
        if name.rpartition(".")[0] not in norms:
            weights[name] = parameter.to(half)
        elif amp.level == "O3":
            weights[name] = parameter.to(half).to(dtype)  # a norm's kernel wants them in the dtype of its statistics
    return torch.func.functional_call(model, weights, (images.to(half),)).to(dtype)
