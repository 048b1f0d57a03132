"""Run every case of the mapping table in PyTorch, float32 and float64: `python torch_rows.py FOLDER`."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import sys
import warnings
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mapping_cases import (
    FRESH,
    IMAGES,
    RATES,
    SHAPES,
    UNTOUCHED,
    Results,
    draw,
    draw_weight,
    extent,
    flat,
    image,
    inputs,
    output_names,
    patch,
    runnable,
)
from msmigrate.mappings import table
from msmigrate.mappings.rows import SAME_DISTRIBUTION, Case, Row
from PIL import Image
from torchvision import transforms

torch.set_num_threads(1)
warnings.simplefilter("ignore")
DTYPES = {"float32": torch.float32, "float64": torch.float64}


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
    xs = tensors(name, case, dtype)
    result = module(xs[0], tuple(xs[1:])) if case.paired else module(*xs)
    if train and not case.train:
        return {"random": result.detach()}
    if row.kind == "loss":  # the second input is the target, and weights of classes are no state
        return record(result, xs[:1], name)
    found = record(result, xs, name)
    found.update({f"grad.{key}": value.grad for key, value in module.named_parameters()})
    found.update({f"buffer.{key}": value for key, value in module.named_buffers() if value.is_floating_point()})
    return found


def run_fresh(row: Row, case: Case) -> dict[str, Any]:
    """What many new layers draw for each parameter."""
    torch.manual_seed(3)
    first, given = arguments(row, case, torch.float32)
    made = [dict(find(row.torch)(*first, **given).named_parameters()) for _ in range(FRESH)]
    return {key: torch.stack([parameters[key].detach() for parameters in made]) for key in made[0]}


def run_function(name: str, row: Row, case: Case, dtype: torch.dtype) -> dict[str, Any]:
    """A function: forward and input gradients."""
    xs = tensors(name, case, dtype)
    _, given = arguments(row, case, dtype)
    result = find(row.torch)(*([xs] if case.pack else xs), **given)
    return {"random": result.detach()} if not case.train else record(result, xs, name)


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
    """Every learning rate, and the weights of an SGD that uses it."""
    parameters = grouped(name, len(RATES), dtype)
    groups = [{"params": some, "lr": rate} for some, rate in zip(parameters, RATES, strict=True)]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    _, given = arguments(row, case, dtype)
    if "schedulers" in given:
        given["schedulers"] = [find(inner)(optimizer, **args) for inner, args in given["schedulers"]]
    schedule = find(row.torch)(optimizer, **given)
    rates = []
    for _ in range(case.steps):
        rates.append([group["lr"] for group in optimizer.param_groups])
        for some in parameters:
            for parameter in some:
                parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        schedule.step()
    return {"rates": np.array(rates), "weight": torch.stack([some[0].detach() for some in parameters])}


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
    return {f"image{index}": np.asarray(transform(picture)) for index, picture in enumerate(pictures)}


def run(results: Results, name: str, row: Row, case: Case) -> None:
    """Run one case in every precision and mode that its kind has."""
    if row.kind in ("initializer", "transform"):
        function = run_initializer if row.kind == "initializer" else run_transform
        results.run(name, lambda: function(name, row, case))
        return
    if row.kind in ("layer", "module") and "*args" not in case.args:
        results.run(f"{name}/fresh", lambda: run_fresh(row, case))
    for label, dtype in DTYPES.items():
        if row.kind in ("layer", "module", "loss"):
            for mode in ("train", "eval"):
                key = f"{name}/{mode}/{label}"
                results.run(key, lambda mode=mode, dtype=dtype: run_module(name, row, case, dtype, mode == "train"))
        else:
            runner = {"function": run_function, "optimizer": run_optimizer, "schedule": run_schedule}[row.kind]
            key = f"{name}/train/{label}"
            results.run(key, lambda dtype=dtype, runner=runner: runner(name, row, case, dtype))


def signature(row: Row) -> list[list[Any]]:
    """Names and defaults of the torch arguments; for a function written in C, from the first lines of its help."""
    found = find(row.torch)
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except ValueError:
        parameters = []
    if inspect.isclass(found) and issubclass(found, torch.nn.RNNBase):
        return recurrent_signature(found)
    if not parameters or parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        hidden = getattr(torch.nn.functional, f"_{row.short}", None)
        if row.kind == "function" and hidden is not None:
            parameters = list(inspect.signature(hidden).parameters.values())
    if parameters:
        return [[p.name, default(p.default)] for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    overloads = re.findall(
        rf"^\s*(?:\.\. function:: )?{row.short}(\(.*?\)) ->", found.__doc__ or "", flags=re.MULTILINE
    )
    merged: dict[str, Any] = {}
    for overload in overloads:
        spec = ast.parse(f"def f{overload}: ...").body[0].args
        positional = [argument.arg for argument in spec.args]
        values = ["required"] * (len(positional) - len(spec.defaults)) + [ast.literal_eval(d) for d in spec.defaults]
        keywords = {
            argument.arg: ast.literal_eval(d) for argument, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
        }
        merged |= {**dict(zip(positional, values, strict=True)), **keywords}
    return [[name, value] for name, value in merged.items()]


def recurrent_signature(found: type) -> list[list[Any]]:
    """The arguments of an LSTM, GRU or RNN, which take what their base class does but for the first."""
    parameters = [p for p in inspect.signature(torch.nn.RNNBase).parameters.values() if p.name != "mode"]
    names = [[p.name, default(p.default)] for p in parameters if found is torch.nn.LSTM or p.name != "proj_size"]
    if found is torch.nn.RNN:
        names.insert(3, ["nonlinearity", found(1, 1).nonlinearity])
    return names


def default(value: Any) -> Any:
    """A default as JSON holds it."""
    if value is inspect.Parameter.empty:
        return "required"
    if inspect.isfunction(value):
        return value.__name__
    return value.value if isinstance(value, Enum) else value


def main(folder: Path) -> None:
    """Run all cases."""
    results = Results()
    for name, row, case in runnable():
        run(results, name, row, case)
    results.arrays = {key: np.asarray(value) for key, value in results.arrays.items()}
    results.notes["signatures"] = {row.torch: signature(row) for row in table.rows()}
    results.notes["missing"] = [name for row in table.rows() for name in row.aliases if not callable(find(name))]
    results.save(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)
