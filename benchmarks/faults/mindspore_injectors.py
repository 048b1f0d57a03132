"""Planting faults on MindSpore's side: an injector is a function from its arguments to a context manager."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from mindspore import nn
from msmigrate.parity.record import mindspore_worker
from msmigrate.training.models import mindspore_models

Places = list[str]
_KNOWN: dict[str, Callable[..., Any]] = {}
_EARLY: set[str] = set()


def injector(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make an injector known by its name; it is called with the list of places it fills, and its own arguments."""
    _KNOWN[function.__name__] = function
    return function


def early_injector(function: Callable[..., Any]) -> Callable[..., Any]:
    """An injector that touches the batches or the initial distributions."""
    _EARLY.add(function.__name__)
    return injector(function)


def early(name: str) -> bool:
    """Whether an injector touches what is otherwise made once for all cases of a base."""
    _load()
    return name in _EARLY


@contextmanager
def planted(name: str, arguments: dict[str, Any], places: Places) -> Iterator[None]:
    """The context in which the recorder runs with this fault; the fault's modules or tensors are added to `places`."""
    _load()
    with _KNOWN[name](places, **arguments):
        yield


def names() -> set[str]:
    """Every injector's name."""
    _load()
    return set(_KNOWN)


def _load() -> None:
    import mindspore_convolution_faults
    import mindspore_fixes
    import mindspore_gradient_faults
    import mindspore_input_faults
    import mindspore_layer_faults
    import mindspore_norm_faults
    import mindspore_optimizer_faults
    import mindspore_schedule_faults
    import mindspore_start_faults
    import mindspore_tensor_faults

    assert mindspore_convolution_faults and mindspore_gradient_faults and mindspore_input_faults
    assert mindspore_layer_faults and mindspore_norm_faults and mindspore_optimizer_faults
    assert mindspore_fixes and mindspore_schedule_faults and mindspore_start_faults and mindspore_tensor_faults


# Where faults are planted


def built(change: Callable[[Any], None]) -> Any:
    """The net is built, then changed."""
    real = mindspore_models.build

    def build(name: str, **arguments: Any) -> nn.Cell:
        net = real(name, **arguments)
        change(net)
        for path, parameter in net.parameters_and_names():
            parameter.name = path
        return net

    return patch.object(mindspore_models, "build", build)


def loaded(change: Callable[[Any], None]) -> Any:
    """The starting weights are loaded, then changed."""
    real = mindspore_worker.load_start

    def load(net: nn.Cell, checkpoint: str) -> None:
        real(net, checkpoint)
        change(net)

    return patch.object(mindspore_worker, "load_start", load)


def cell(net: Any, path: str) -> Any:
    """The Cell of a dotted name."""
    return dict(net.cells_and_names())[path]


def put(net: Any, path: str, new: Any) -> None:
    """Put a Cell in the place of another."""
    parent, _, name = path.rpartition(".")
    holder = cell(net, parent)
    if isinstance(holder, nn.SequentialCell):  # which keeps a list of its own
        holder[int(name)] = new
    else:
        holder._cells[name] = new


def pick(net: Any, kind: str, which: float = 0.5, accept: Callable[[Any], bool] = lambda cell: True) -> str:
    """The dotted name of one Cell of the class, or where there is none of one derived from it.

    which: from 0, the first, to 1, the last. Raises LookupError.
    """
    cells = [(path, each) for path, each in net.cells_and_names() if kind in {b.__name__ for b in type(each).__mro__}]
    own = [(path, each) for path, each in cells if type(each).__name__ == kind]
    found = [path for path, each in own or cells if accept(each)]
    if not found:
        raise LookupError(f"the net has no {kind} in which this fault can be planted")
    return found[round(which * (len(found) - 1))]


def substituted(
    places: Places,
    kind: str,
    make: Callable[[Any], Any],
    which: float = 0.5,
    accept: Callable[[Any], bool] = lambda cell: True,
) -> Any:
    """One Cell of a class replaced by what `make` makes of it."""

    def change(net: Any) -> None:
        path = pick(net, kind, which, accept)
        put(net, path, make(cell(net, path)))
        places.append(path)

    return built(change)


def forward_of(places: Places, kind: str, forward: Callable[..., Any], which: float = 0.5) -> Any:
    """One Cell of a class computes `forward(cell, *inputs)` instead."""

    def change(net: Any) -> None:
        path = pick(net, kind, which)
        found = cell(net, path)
        found.construct = types.MethodType(forward, found)
        places.append(path)

    return built(change)
