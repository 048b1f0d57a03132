"""Layers' weights drawn anew, as torch's `reset_parameters` does."""

from __future__ import annotations

import math

from mindspore import nn
from mindspore.common.initializer import HeUniform, Normal, Uniform, initializer


def reset_parameters(cell: nn.Cell) -> None:
    """Give a layer the weights that a new one has: a norm's ones and zeros, other layers' drawn from their fan in."""
    parameters = dict(cell.parameters_and_names(expand=False))
    if not parameters and cell.cells():
        raise ValueError(f"how {type(cell).__name__} begins is not known: its weights are in the cells inside it")
    for name, parameter in parameters.items():
        if name in ("gamma", "moving_variance"):
            rule = "ones"
        elif name in ("beta", "moving_mean"):
            rule = "zeros"
        elif name == "embedding_table":
            rule = Normal(sigma=1.0)
        elif name == "weight":
            rule = HeUniform(negative_slope=math.sqrt(5))
        elif name == "bias" and "weight" in parameters:
            rule = Uniform(scale=1 / math.sqrt(math.prod(parameters["weight"].shape[1:])))
        else:
            raise ValueError(f"how {type(cell).__name__} begins with {name} is not known")
        parameter.set_data(initializer(rule, parameter.shape, parameter.dtype))
