"""How the torch workers make a row's call: its object, its arguments, its inputs, and what is kept of it."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from mapping_cases import draw, flat, inputs, output_names, pairs, without_gradient
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
        elif argument.verb == "layer" and value is not None:
            given[argument.torch] = find(value[0])(**value[1])
        elif row.kind == "transform" and argument.torch == "interpolation" and value is not None:
            given[argument.torch] = transforms.InterpolationMode(value)
        elif isinstance(value, str) and value.startswith("torch."):  # a dtype; the reference is exact all along
            asked = find(value)
            given[argument.torch] = dtype if asked.is_floating_point and dtype is torch.float64 else asked
        elif isinstance(value, list) and argument.verb != "schedules":
            given[argument.torch] = tuple(value)
    return first, given


def tensors(name: str, case: Case, dtype: torch.dtype) -> list[torch.Tensor]:
    """The case's inputs; floating ones want a gradient. A dtype that the case writes stays, but in float64's run."""
    made, fixed = [torch.from_numpy(array) for array in inputs(name, case)], without_gradient(case)
    written = [isinstance(spec, dict) and "dtype" in spec for spec in case.inputs]
    for index, x in enumerate(made):
        if x.is_floating_point():
            x = x.to(x.dtype if written[index] and dtype is torch.float32 else dtype)
            made[index] = x.requires_grad_(index not in fixed)
        elif x.dtype is not torch.bool and not written[index]:
            made[index] = x.long()
    return made


def joined(case: Case, xs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The inputs with complex tensors for those that hold their two parts, which have the gradients."""
    whole = pairs(case)
    return [torch.view_as_complex(x) if index in whole else x for index, x in enumerate(xs)]


def parted(result: torch.Tensor) -> torch.Tensor:
    """A complex result as its two parts along a last axis, and any other as it is."""
    return torch.view_as_real(result.resolve_conj()) if result.is_complex() else result


def record(result: Any, xs: list[torch.Tensor], name: str) -> dict[str, Any]:
    """Outputs and input gradients, for upstream gradients that both frameworks draw alike."""
    results = [parted(torch.as_tensor(part)) for part in flat(result)]
    found = {key: x.detach() for key, x in zip(output_names(len(results)), results, strict=True)}
    floating = [index for index, x in enumerate(results) if x.is_floating_point()]
    upstream = {
        index: torch.from_numpy(draw(f"{name}/upstream", tuple(results[index].shape))).to(results[index].dtype)
        for index in floating
    }
    reached = [index for index in floating if results[index].requires_grad]
    if reached:
        torch.autograd.backward([results[index] for index in reached], [upstream[index] for index in reached])
    wanted = {index: x for index, x in enumerate(xs) if floating and x.requires_grad and x.is_leaf}
    zero = {index: torch.zeros_like(x) if x.grad is None else x.grad for index, x in wanted.items()}
    found.update({f"grad.input{index}": gradient for index, gradient in zero.items()})
    return found
