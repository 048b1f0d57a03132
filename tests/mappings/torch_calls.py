"""How the torch workers make a row's call: its object, its arguments, its inputs, and what is kept of it."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from mapping_cases import draw, flat, inputs, output_names
from msmigrate.mappings.rows import Case, Row
from torchvision import transforms


def find(name: str) -> Any:
    """The object of a dotted torch name."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AttributeError(name)


def arguments(row: Row, case: Case, dtype: torch.dtype) -> tuple[list[Any], dict[str, Any]]:
    """The case's arguments as torch wants them: tensors where the row says so, modules inside a container."""
    given = dict(case.args)
    first = [find(name)(**args) for name, args in given.pop("*args", ())]
    for argument in row.arguments:
        value = given.get(argument.torch)
        if argument.verb == "tensor" and value is not None:
            given[argument.torch] = torch.tensor(value, dtype=dtype)
        elif argument.torch == "interpolation" and value is not None:
            given[argument.torch] = transforms.InterpolationMode(value)
        elif isinstance(value, list) and argument.verb != "schedules":
            given[argument.torch] = tuple(value)
    return first, given


def tensors(name: str, case: Case, dtype: torch.dtype) -> list[torch.Tensor]:
    """The case's inputs; floating ones want a gradient."""
    made = [torch.from_numpy(array) for array in inputs(name, case)]
    return [
        x.to(dtype).requires_grad_() if x.is_floating_point() else x if x.dtype is torch.bool else x.long()
        for x in made
    ]


def record(result: Any, xs: list[torch.Tensor], name: str) -> dict[str, Any]:
    """Outputs and input gradients, for upstream gradients that both frameworks draw alike."""
    results = flat(result)
    upstream = [torch.from_numpy(draw(f"{name}/upstream", tuple(x.shape))).to(x.dtype) for x in results]
    torch.autograd.backward(results, upstream)
    found = {key: x.detach() for key, x in zip(output_names(len(results)), results, strict=True)}
    found.update({f"grad.input{index}": x.grad for index, x in enumerate(xs) if x.grad is not None})
    return found
