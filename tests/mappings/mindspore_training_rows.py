"""The cases of optimizers, schedules, initializers and transforms in MindSpore."""

from __future__ import annotations

import random
from typing import Any

import mindspore as ms
import numpy as np
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
from mindspore import ops
from mindspore.common.initializer import initializer
from mindspore_calls import translate
from msmigrate import optim
from msmigrate.mappings.rows import SAME_DISTRIBUTION, Case, Row, build, resolve
from PIL import Image

COMPILED = ("RandomInvert", "RandomAdjustSharpness")  # which called by themselves draw the same after every set_seed
PAUSE = 3  # the step after which an optimizer's state crosses to torch and back


def grouped(name: str, count: int) -> list[list[Any]]:
    """The parameters of `count` groups."""
    return [
        [
            ms.Parameter(ms.Tensor(draw(f"{name}/p{group}.{index}", shape)), name=f"p{group}.{index}")
            for index, shape in enumerate(SHAPES)
        ]
        for group in range(count)
    ]


def make_optimizer(row: Row, case: Case, parameters: list[list[Any]]) -> Any:
    """The row's optimizer over these groups."""
    groups = [
        {"params": some, **translate(row.torch, options, partial=True).kwargs}
        for some, options in zip(parameters, case.groups, strict=True)
    ]
    return build(translate(row.torch, case.args), groups)


def torch_state(row: Row, optimizer: Any) -> dict[str, np.ndarray]:
    """The optimizer's state under torch's names, `state.<key>.<parameter index>`."""
    found = {}
    for state in row.state:
        if state.torch and state.mindspore:
            held = getattr(optimizer, state.mindspore)
            shared = state.verb == "shared"
            for index in range(len(optimizer.parameters)):
                found[f"state.{state.torch}.{index}"] = (held if shared else held[index]).asnumpy().copy()
    return found


def load_torch_state(row: Row, optimizer: Any, found: dict[str, np.ndarray]) -> None:
    """Fill a new optimizer from what `torch_state` gave, as the row's state says."""
    for state in row.state:
        if not state.mindspore:
            continue
        held = getattr(optimizer, state.mindspore)
        for index, parameter in enumerate([held] if state.verb == "shared" else held):
            if state.torch:
                values = found[f"state.{state.torch}.{index}"]
            else:
                values = np.full(parameter.shape, state.fill, np.float32)
            parameter.set_data(ms.Tensor(values))


def run_optimizer(name: str, row: Row, case: Case, mode: str) -> dict[str, Any]:
    """Several steps on drawn gradients; half way the state crosses to torch's form and into a new optimizer."""
    parameters = grouped(name, len(case.groups))
    flat = [parameter for some in parameters for parameter in some]
    start = [parameter.asnumpy().copy() for parameter in flat]
    found: dict[str, Any] = {}
    optimizer = make_optimizer(row, case, parameters)
    for step in range(case.steps):
        if step == PAUSE:
            state = torch_state(row, optimizer)
            optimizer = make_optimizer(row, case, parameters)
            load_torch_state(row, optimizer, state)
        if step in (0, PAUSE):
            update = ms.jit(optimizer) if mode == "graph" else optimizer
        update(tuple(ms.Tensor(draw(f"{name}/g{step}.{index}", p.shape)) for index, p in enumerate(flat)))
        for index, parameter in enumerate(flat):
            found[f"step{step}.weight{index}"] = parameter.asnumpy().copy()
            found[f"step{step}.change{index}"] = parameter.asnumpy() - start[index]
    return {**found, **torch_state(row, optimizer)}


def run_schedule(name: str, row: Row, case: Case, mode: str) -> dict[str, Any]:
    """Every learning rate and momentum, and the weights of an SGD that uses them."""
    parameters = grouped(name, len(RATES))
    groups = [{"params": some, "lr": rate} for some, rate in zip(parameters, RATES, strict=True)]
    optimizer = optim.SGD(groups, lr=1.0)
    schedule = build(translate(row.torch, rules(case.args)), optimizer)
    metric = row.short == "ReduceLROnPlateau"
    update = ms.jit(optimizer) if mode == "graph" else optimizer
    ones = tuple(ops.ones_like(parameter) for some in parameters for parameter in some)
    rates, momenta = [], []
    for step in range(case.steps):
        rates.append([float(rate.asnumpy()) for rate in optimizer.lrs])
        momenta.append([optimizer.momentum(group) for group in range(len(RATES))])
        update(ones)
        schedule.step(*[measured(step)] * metric)
    weight = np.stack([some[0].asnumpy() for some in parameters])
    return {"rates": np.array(rates), "momenta": np.array(momenta), "weight": weight}


def run_initializer(row: Row, case: Case) -> dict[str, Any]:
    """One filled tensor."""
    ms.set_seed(5)
    rule = build(translate(row.torch, case.args))
    return {"values": initializer(rule, list(case.shape), ms.float32).init_data().asnumpy()}


def run_transform(row: Row, case: Case) -> dict[str, Any]:
    """The transformed images; of a random transform, where the crops came from."""
    ms.set_seed(11)
    random.seed(11)
    transform = build(translate(row.torch, case.args))
    pictures: list[Any] = [Image.fromarray(image(*size)) for size in IMAGES]
    if row.short == "RandomErasing":
        plain = np.full((3, 64, 48), UNTOUCHED, np.float32)
        return {"extents": np.stack([patch(transform(plain)) for _ in range(case.steps)])}
    if row.status["pynative"] == SAME_DISTRIBUTION:
        extents = []
        for step in range(case.steps):
            if row.short in COMPILED:
                ms.set_seed(step)
            extents.append(extent(transform(pictures[0])))
        return {"extents": np.stack(extents)}
    if row.short == "Normalize":
        to_tensor = build(translate("ToTensor", {}))
        pictures = [to_tensor(picture) for picture in pictures]
    results = [transform(picture) for picture in pictures]
    return {f"image{index}": together(result) for index, result in enumerate(results)}


def run_clipping(name: str, row: Row, case: Case, mode: str) -> dict[str, Any]:
    """What a script does to the gradients: they and nothing else."""
    call = translate(row.torch, case.args)
    target, kwargs = resolve(call.target), call.kwargs

    def clip(grads: Any) -> Any:
        return target(grads, **kwargs)

    grads = tuple(ms.Tensor(array) for array in inputs(name, case))
    clipped = (ms.jit(clip) if mode == "graph" else clip)(grads)
    return {f"grad{index}": grad.asnumpy() for index, grad in enumerate(clipped)}
