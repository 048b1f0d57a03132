"""The PyTorch models of the tests of the step, at their starting weights."""

from __future__ import annotations

import torch
from msmigrate.training.models import torch_models
from step_cases import Case, weight


def smooth(model: torch.nn.Module) -> torch.nn.Module:
    """The model without kinks: where a ReLU or a max-pool rounds to the other side, gradients jump on both sides."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, torch.nn.ReLU):
                setattr(parent, name, torch.nn.SiLU())
            elif isinstance(child, torch.nn.MaxPool2d):
                setattr(parent, name, torch.nn.AvgPool2d(child.kernel_size, child.stride, child.padding))
    return model


def start(case: Case, dtype: torch.dtype) -> torch.nn.Module:
    """The model at the starting weights."""
    model = smooth(torch_models.build(case.model))
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                value.copy_(torch.from_numpy(weight(name, tuple(value.shape))))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith(case.still))
    return model.to(dtype)
