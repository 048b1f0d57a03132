"""The cases of optimizers, schedules, initializers and transforms in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from mapping_cases import (
    IMAGES,
    RATES,
    SHAPES,
    UNTOUCHED,
    draw,
    extent,
    image,
    inputs,
    measured,
    patch,
    rules,
    together,
)
from msmigrate.mappings.rows import SAME_DISTRIBUTION, Case, Row
from PIL import Image
from torch_calls import arguments, find
from torchvision import transforms


def grouped(name: str, count: int, dtype: torch.dtype) -> list[list[torch.nn.Parameter]]:
    """The parameters of `count` groups."""
    return [
        [
            torch.nn.Parameter(torch.from_numpy(draw(f"{name}/p{group}.{index}", shape)).to(dtype))
            for index, shape in enumerate(SHAPES)
        ]
        for group in range(count)
    ]


def run_optimizer(name: str, row: Row, case: Case, dtype: torch.dtype) -> dict[str, Any]:
    """Several steps on drawn gradients: every weight and its change after each step, all state at the end."""
    _, given = arguments(row, case, dtype)
    parameters = grouped(name, len(case.groups), dtype)
    groups = [{"params": some, **options} for some, options in zip(parameters, case.groups, strict=True)]
    optimizer = find(row.torch)(groups, **given)
    flat = [parameter for some in parameters for parameter in some]
    start = [parameter.detach().clone() for parameter in flat]
    found: dict[str, Any] = {}
    for step in range(case.steps):
        for index, parameter in enumerate(flat):
            parameter.grad = torch.from_numpy(draw(f"{name}/g{step}.{index}", tuple(parameter.shape))).to(dtype)
        optimizer.step()
        for index, parameter in enumerate(flat):
            found[f"step{step}.weight{index}"] = parameter.detach().clone()
            found[f"step{step}.change{index}"] = parameter.detach() - start[index]
    for index, state in optimizer.state_dict()["state"].items():
        found.update({f"state.{key}.{index}": value for key, value in state.items() if value is not None})
    return found


def run_schedule(name: str, row: Row, case: Case, dtype: torch.dtype) -> dict[str, Any]:
    """Every learning rate and momentum, and the weights of an SGD that uses them."""
    parameters = grouped(name, len(RATES), dtype)
    groups = [{"params": some, "lr": rate} for some, rate in zip(parameters, RATES, strict=True)]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    _, given = arguments(row, case, dtype)
    if "schedulers" in given:
        given["schedulers"] = [find(inner)(optimizer, **args) for inner, args in given["schedulers"]]
    schedule = find(row.torch)(optimizer=optimizer, **rules(given))
    metric = row.short == "ReduceLROnPlateau"
    rates, momenta = [], []
    for step in range(case.steps):
        rates.append([group["lr"] for group in optimizer.param_groups])
        momenta.append([group["momentum"] for group in optimizer.param_groups])
        for some in parameters:
            for parameter in some:
                parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        schedule.step(*[measured(step)] * metric)
    weight = torch.stack([some[0].detach() for some in parameters])
    return {"rates": np.array(rates), "momenta": np.array(momenta), "weight": weight}


def run_initializer(name: str, row: Row, case: Case) -> dict[str, Any]:
    """One filled tensor."""
    torch.manual_seed(5)
    _, given = arguments(row, case, torch.float32)
    return {"values": find(row.torch)(torch.empty(case.shape), **given)}


def run_transform(name: str, row: Row, case: Case) -> dict[str, Any]:
    """The transformed images; of a random transform, where the crops came from."""
    torch.manual_seed(11)
    _, given = arguments(row, case, torch.float32)
    transform = find(row.torch)(**given)
    pictures = [Image.fromarray(image(*size)) for size in IMAGES]
    if row.short == "RandomErasing":
        plain = torch.full((3, 64, 48), UNTOUCHED)
        return {"extents": np.stack([patch(transform(plain).numpy()) for _ in range(case.steps)])}
    if row.status["pynative"] == SAME_DISTRIBUTION:
        return {"extents": np.stack([extent(transform(pictures[0])) for _ in range(case.steps)])}
    if row.short == "Normalize":
        pictures = [transforms.ToTensor()(picture) for picture in pictures]
    results = [transform(picture) for picture in pictures]
    return {f"image{index}": together(result) for index, result in enumerate(results)}


def run_clipping(name: str, row: Row, case: Case, dtype: torch.dtype) -> dict[str, Any]:
    """What a script does to the gradients: they and nothing else."""
    _, given = arguments(row, case, dtype)
    parameters = [torch.nn.Parameter(torch.zeros(array.shape, dtype=dtype)) for array in inputs(name, case)]
    for parameter, array in zip(parameters, inputs(name, case), strict=True):
        parameter.grad = torch.from_numpy(array).to(dtype)
    find(row.torch)(parameters, **given)
    return {f"grad{index}": parameter.grad for index, parameter in enumerate(parameters)}
