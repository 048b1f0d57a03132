"""The cases of layers, modules and losses in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from mapping_cases import FRESH, differentiated, draw_weight, inputs
from msmigrate.mappings.rows import Case, Row
from torch_calls import arguments, find, record, tensors


def run_module(name: str, row: Row, case: Case, dtype: torch.dtype, train: bool) -> dict[str, Any]:
    """A layer or a loss: forward, gradients of inputs and parameters, buffers after."""
    first, given = arguments(row, case, dtype)
    module = find(row.torch)(*first, **given).to(dtype)
    if row.kind in ("layer", "module"):
        state = module.state_dict()
        drawn = {
            key: torch.from_numpy(draw_weight(name, case, key, tuple(value.shape)))
            for key, value in state.items()
            if value.is_floating_point()
        }
        module.load_state_dict({**state, **drawn})
    module.train(train)
    wanted = differentiated(row, case, inputs(name, case))
    xs = [x if index in wanted else x.detach() for index, x in enumerate(tensors(name, case, dtype))]
    result = module(xs[0], tuple(xs[1:])) if case.paired else module(*xs)
    if train and not case.train:
        return {"random": result.detach()}
    if row.kind == "loss":  # weights of classes are no state
        return record(result, xs, name)
    found = record(result, xs, name)
    found.update({f"grad.{key}": value.grad for key, value in module.named_parameters()})
    kept = module.state_dict()  # but for what torch calls non-persistent
    buffers = {key: value for key, value in module.named_buffers() if key in kept and value.is_floating_point()}
    found.update({f"buffer.{key}": value for key, value in buffers.items()})
    return found


def run_fresh(row: Row, case: Case) -> dict[str, Any]:
    """What many new layers draw for each parameter."""
    torch.manual_seed(3)
    made = []
    for _ in range(FRESH):
        first, given = arguments(row, case, torch.float32)  # anew, for it may hold a layer
        made.append(dict(find(row.torch)(*first, **given).named_parameters()))
    return {key: torch.stack([parameters[key].detach() for parameters in made]) for key in made[0]}
