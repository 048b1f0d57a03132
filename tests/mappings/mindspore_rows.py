"""Run every case of the mapping table in MindSpore, PyNative and compiled: `python mindspore_rows.py FOLDER [WRONG]`.

Errors in MindSpore arrive late: every result is read as an array before its case ends, so that an error falls into
the case that caused it. By hand, set ONEDNN_MAX_CPU_ISA=AVX2 first, as conftest.py does.
"""

from __future__ import annotations

import inspect
import json
import os
import random
import sys
import warnings
from enum import Enum
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
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
    phases,
    runnable,
)
from mindspore import nn, ops
from mindspore.common.initializer import initializer
from mindspore.experimental import optim
from msmigrate.mappings import table
from msmigrate.mappings.crossing import renamed
from msmigrate.mappings.resolve import build, resolve, value_of
from msmigrate.mappings.rows import SAME_DISTRIBUTION, Call, Case, Row, State
from msmigrate.mappings.verbs import SHAPES as SHAPE_VERBS
from PIL import Image

warnings.simplefilter("ignore")
MODES = ("pynative", "graph")
WRONG: dict[str, dict[str, Any]] = {}  # MindSpore arguments to set wrongly, by torch name
RECURRENT = nn.LSTM.__mro__[1]  # private
PAUSE = 3  # the step after which an optimizer's state crosses to torch and back


def translate(name: str, *args: Any, **kwargs: Any) -> Call:
    """What the table says, with the faults that the third argument of this program asks for."""
    call = table.translate(name, *args, **kwargs)
    return Call(call.target, call.kwargs | WRONG.get(table.row(name).torch, {}))


def run_module(name: str, row: Row, case: Case, mode: str, train: bool) -> dict[str, Any]:
    """A layer or a loss: forward, gradients of inputs and parameters, buffers after."""
    given = dict(case.args)
    inner = given.pop("*args", [])
    modules = tuple(build(translate(child, args)) for child, args in inner)
    net = build(translate(row.torch, given, modules))
    owners = [(f"{index}.", table.row(child)) for index, (child, _) in enumerate(inner)] or [("", row)]
    nn.SequentialCell(net)  # a checkpoint's names are those that parameters take in their parent
    parameters = {}
    for theirs, parameter in net.parameters_and_names():
        assert parameter.name == f"0.{theirs}", parameter.name
        ours, state = crossing(owners, theirs)
        if not parameter.requires_grad and not state.buffer:
            continue  # affine=False: torch has no such tensor, MindSpore leaves it at ones and zeros
        values = draw_weight(name, case, ours, to_torch(parameter.shape, state.verb))
        parameter.set_data(ms.Tensor(values.reshape(parameter.shape)))
        parameters[ours] = (parameter, state.verb)
    xs = [ms.Tensor(array) for array in inputs(name, case)]

    def paired(x: Any, *state: Any) -> Any:
        return net(x, state)

    function = paired if case.paired else net
    net.set_train(False)
    upstream = [ms.Tensor(draw(f"{name}/upstream", tuple(x.shape))) for x in flat(function(*xs))]
    net.set_train(train)
    if train and not case.train:
        return {"random": (ms.jit(function) if mode == "graph" else function)(*xs).asnumpy()}
    trained = {ours: parameter for ours, (parameter, _) in parameters.items() if parameter.requires_grad}
    floating = [0] if row.kind == "loss" else [index for index, x in enumerate(xs) if x.dtype == ms.float32]
    found = differentiate(function, xs, floating, list(trained.values()), upstream, mode)
    for ours in trained:
        grad = found.pop(f"grad.weight{list(trained).index(ours)}")
        found[f"grad.{ours}"] = grad.reshape(to_torch(grad.shape, parameters[ours][1]))
    for ours, (parameter, verb) in parameters.items():
        if ours.rpartition(".")[2] in ("running_mean", "running_var"):
            found[f"buffer.{ours}"] = parameter.asnumpy().reshape(to_torch(parameter.shape, verb))
    return found


def crossing(owners: list[tuple[str, Row]], theirs: str) -> tuple[str, State]:
    """Torch's name of a parameter and the state that tells it, by the rows of the modules under each prefix."""
    for prefix, row in owners:
        for state in row.state:
            if state.mindspore and state.torch and theirs.startswith(prefix):
                ours = renamed(theirs[len(prefix) :], state.mindspore, state.torch)
                if ours is not None:
                    return prefix + ours, state
    raise KeyError(f"no row knows the parameter {theirs}")


def run_fresh(row: Row, case: Case) -> dict[str, Any]:
    """What many new layers draw for each parameter, under torch's names."""
    ms.set_seed(3)
    np.random.seed(3)  # recurrent nets draw with NumPy
    drawn: dict[str, list[np.ndarray]] = {}
    for _ in range(FRESH):
        for theirs, parameter in build(translate(row.torch, case.args)).parameters_and_names():
            if parameter.requires_grad:
                drawn.setdefault(crossing([("", row)], theirs)[0], []).append(parameter.asnumpy())
    return {key: np.stack(values) for key, values in drawn.items()}


def to_torch(shape: Any, verb: str | None) -> tuple[int, ...]:
    """A MindSpore shape as torch has it; crossing back must give the MindSpore shape again."""
    if verb is None:
        return tuple(shape)
    ours = SHAPE_VERBS[verb].inverse(tuple(shape))
    assert SHAPE_VERBS[verb].forward(ours) == tuple(shape)
    return ours


def differentiate(
    function: Any, xs: list[Any], floating: list[int], weights: list[Any], upstream: Any, mode: str
) -> dict[str, Any]:
    """Outputs, gradients of the inputs in `floating` and of the weights; upstream: one tensor for each output."""

    def weighted(*tensors: Any) -> Any:
        results = level(function(*tensors))
        total = ops.sum(results[0] * upstream[0])
        for index in range(1, len(upstream)):
            total = total + ops.sum(results[index] * upstream[index])
        return total, results

    if not floating and not weights:
        results = flat((ms.jit(function) if mode == "graph" else function)(*xs))
        return {key: x.asnumpy() for key, x in zip(output_names(len(results)), results, strict=True)}
    grad = ms.value_and_grad(weighted, tuple(floating) or None, ms.ParameterTuple(weights) if weights else None, True)
    (_, results), grads = (ms.jit(grad) if mode == "graph" else grad)(*xs)
    by_input, by_weight = grads if floating and weights else ((grads, ()) if floating else ((), grads))
    by_input, by_weight = (part if isinstance(part, (tuple, list)) else (part,) for part in (by_input, by_weight))
    found = {key: x.asnumpy() for key, x in zip(output_names(len(results)), results, strict=True)}
    found.update({f"grad.input{index}": part.asnumpy() for index, part in zip(floating, by_input, strict=True)})
    found.update({f"grad.weight{index}": part.asnumpy() for index, part in enumerate(by_weight)})
    return found


def level(result: Any) -> tuple[Any, ...]:
    """What `flat` does, in words that MindSpore compiles: one tensor, or a tuple of tensors and tuples of tensors."""
    if not isinstance(result, tuple):
        return (result,)
    found = ()
    for part in result:
        found = found + (part if isinstance(part, tuple) else (part,))
    return found


def run_function(name: str, row: Row, case: Case, mode: str) -> dict[str, Any]:
    """A function: forward and input gradients."""
    xs = [ms.Tensor(array) for array in inputs(name, case)]
    call = translate(row.torch, case.args, (xs,) if case.pack else tuple(xs))
    tensors = [argument.to[0] for argument in row.arguments[: 1 if case.pack else len(xs)]]
    fixed = {key: value_of(value) for key, value in call.kwargs.items() if key not in tensors}
    target = resolve(call.target)

    def spread(*values: Any) -> Any:
        return target(*values, **fixed)

    def packed(*values: Any) -> Any:
        return target(list(values), **fixed)

    function = packed if case.pack else spread
    # In these rows the tensors come first on both sides, in the same order.
    assert list(inspect.signature(target).parameters)[: len(tensors)] == tensors
    result = (ms.jit(function) if mode == "graph" and not case.train else function)(*xs)
    if not case.train:
        return {"random": result.asnumpy()}
    upstream = [ms.Tensor(draw(f"{name}/upstream", tuple(result.shape)))]
    floating = [index for index, x in enumerate(xs) if x.dtype == ms.float32]
    return differentiate(function, xs, floating, [], upstream, mode)


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
    """Every learning rate, and the weights of an SGD that uses it."""
    parameters = grouped(name, len(RATES))
    groups = [{"params": some, "lr": rate} for some, rate in zip(parameters, RATES, strict=True)]
    optimizer = optim.SGD(groups, lr=1.0)
    schedule = build(translate(row.torch, case.args), optimizer)
    update = ms.jit(optimizer) if mode == "graph" else optimizer
    ones = tuple(ops.ones_like(parameter) for some in parameters for parameter in some)
    rates = []
    for _ in range(case.steps):
        rates.append([float(rate.asnumpy()) for rate in optimizer.lrs])
        update(ones)
        schedule.step()
    return {"rates": np.array(rates), "weight": np.stack([some[0].asnumpy() for some in parameters])}


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
        return {"extents": np.stack([extent(transform(pictures[0])) for _ in range(case.steps)])}
    if row.short == "Normalize":
        to_tensor = build(translate("ToTensor", {}))
        pictures = [to_tensor(picture) for picture in pictures]
    return {f"image{index}": np.asarray(transform(picture)) for index, picture in enumerate(pictures)}


def run(results: Results, name: str, row: Row, case: Case) -> None:
    """Run one case in every mode that its kind has."""
    if row.kind in ("initializer", "transform"):
        function = run_initializer if row.kind == "initializer" else run_transform
        results.run(name, lambda: function(row, case))
        return
    if row.kind in ("layer", "module") and "*args" not in case.args:
        results.run(f"{name}/fresh", lambda: run_fresh(row, case))
    for mode in MODES:
        if row.kind in ("layer", "module", "loss"):
            for phase in phases(row, mode):
                train = phase == "train"
                results.run(f"{name}/{phase}/{mode}", lambda m=mode, t=train: run_module(name, row, case, m, t))
        else:
            runner = {"function": run_function, "optimizer": run_optimizer, "schedule": run_schedule}[row.kind]
            results.run(f"{name}/train/{mode}", lambda m=mode, r=runner: r(name, row, case, m))


def signature(row: Row) -> dict[str, str | None]:
    """Names of the MindSpore arguments and the source of their defaults (None: no default)."""
    target = resolve(row.mindspore or "")
    found = inspect.unwrap(target.__init__ if inspect.isclass(target) else target)
    recurrent = inspect.isclass(target) and issubclass(target, RECURRENT)
    if recurrent:  # which take what their base class does but for the first
        found = RECURRENT.__init__
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return {
        stars.get(p.kind, "") + p.name: None if p.default is p.empty else source(p.default)
        for p in inspect.signature(found).parameters.values()
        if p.name != "self" and not (recurrent and p.name == "mode")
    } | ({"nonlinearity": repr("tanh")} if target is nn.RNN else {})


def source(value: Any) -> str:
    """A default as one would write it."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, type):
        return value.__name__
    return f"mindspore.{str(value).lower()}" if "mindspore" in str(type(value)) else repr(value)


def main(folder: Path, wrong: dict[str, dict[str, Any]]) -> None:
    """Run all cases, or, where arguments are to be wrong, those of their rows."""
    WRONG.update({name: {key: table.plain(value) for key, value in args.items()} for name, args in wrong.items()})
    results = Results()
    for name, row, case in runnable():
        if not wrong or row.torch in wrong:
            run(results, name, row, case)
    results.notes["signatures"] = {row.torch: signature(row) for row in table.rows() if row.mindspore}
    results.save(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
    sys.stdout.flush()
    os._exit(0)  # MindSpore prints noise at interpreter exit
