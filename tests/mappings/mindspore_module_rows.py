"""The cases of layers, modules and losses in MindSpore."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mapping_cases import FRESH, differentiated, draw, draw_weight, flat, inputs
from mindspore import nn
from mindspore_calls import differentiate, translate
from msmigrate.mappings import table
from msmigrate.mappings.rows import Case, Row, State, build
from msmigrate.mappings.state_names import renamed
from msmigrate.mappings.verb_registry import SHAPES


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
    arrays = inputs(name, case)
    xs = [ms.Tensor(array) for array in arrays]

    def paired(x: Any, *state: Any) -> Any:
        return net(x, state)

    function = paired if case.paired else net
    net.set_train(False)
    upstream = [
        ms.Tensor(draw(f"{name}/upstream", tuple(x.shape))) if x.dtype == ms.float32 else None
        for x in flat(function(*xs))
    ]
    net.set_train(train)
    if train and not case.train:
        return {"random": (ms.jit(function) if mode == "graph" else function)(*xs).asnumpy()}
    trained = {ours: parameter for ours, (parameter, _) in parameters.items() if parameter.requires_grad}
    floating = differentiated(row, case, arrays)
    found = differentiate(function, xs, floating, list(trained.values()), upstream, mode)
    for ours in trained:
        grad = found.pop(f"grad.weight{list(trained).index(ours)}")
        found[f"grad.{ours}"] = grad.reshape(to_torch(grad.shape, parameters[ours][1]))
    for ours, (parameter, verb) in parameters.items():
        if not parameter.requires_grad:
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
    ours = SHAPES[verb].inverse(tuple(shape))
    assert SHAPES[verb].forward(ours) == tuple(shape)
    return ours
