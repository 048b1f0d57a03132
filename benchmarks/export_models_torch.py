"""`python export_models_torch.py SPEC SHAPE FILE`: drawn weights of a model, and running statistics of some batches.

A parameter that starts with the same number everywhere is drawn too: with the zeros of a new transformer's head or the
1e-6 of a layer scale, whole parts of a net would have no say in its outputs.
"""

from __future__ import annotations

import sys
import warnings

import torch
from msmigrate.migrate.model_spec import parse
from msmigrate.migrate.torch_models import build, split
from torch import nn


def draw(model: nn.Module) -> None:
    """Draw, in place, what is one number everywhere: zeros as weights and biases, all else around one."""
    for parameter in model.parameters():
        if parameter.numel() < 2 or bool((parameter != parameter.flatten()[0]).any()):
            continue
        if float(parameter.flatten()[0]) != 0.0:
            nn.init.uniform_(parameter, 0.5, 1.5)
        elif parameter.ndim > 1:
            nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)
        else:
            nn.init.normal_(parameter, std=0.1)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    spec, shape, file = sys.argv[1:]
    torch.manual_seed(0)
    model = split(build(parse(spec)))[0].train()
    sizes = [int(size) for size in shape.split("x")]
    with torch.no_grad():
        draw(model)
        for _ in range(3):
            model(torch.randn(max(4, sizes[0]), *sizes[1:]))
    torch.save(model.state_dict(), file)
