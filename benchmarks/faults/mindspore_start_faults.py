"""Faults in the weights that a net starts from: not loaded, transposed, exchanged, drawn from another distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mindspore import Tensor
from mindspore.common.initializer import HeNormal, HeUniform, Normal, initializer
from mindspore_injectors import Places, built, cell, early_injector, injector, loaded, pick
from msmigrate.training.models.mindspore_models import canonical_parameters


def _values(places: Places, choose: Callable[[Any], bool], change: Callable[[np.ndarray], np.ndarray]) -> Any:
    """The middle one of the parameters that `choose` accepts, with changed values."""

    def alter(net: Any) -> None:
        found = [held for held in canonical_parameters(net) if choose(held)]
        held = found[len(found) // 2]
        held.parameter.set_data(Tensor(np.ascontiguousarray(change(held.parameter.asnumpy().copy()))))
        places.extend([held.name, held.name.rpartition(".")[0] or "(model)"])

    return loaded(alter)


@injector
def not_loaded(places: Places, kind: str, names: list[str]) -> Any:
    """The parameters of one layer keep the values they were born with."""
    born: dict[str, np.ndarray] = {}
    chosen: list[str] = []

    def remember(net: Any) -> None:
        path = pick(net, kind)
        chosen[:] = [f"{path}.{name}" for name in names]
        born.update({c.name: c.parameter.asnumpy().copy() for c in canonical_parameters(net)})

    def forget(net: Any) -> None:
        for held in canonical_parameters(net):
            if held.name in chosen:
                held.parameter.set_data(Tensor(born[held.name]))
                places.extend([held.name, held.name.rpartition(".")[0]])

    return _both(built(remember), lambda: loaded(forget))


class _both:  # noqa: N801, a context manager as contextlib names them
    """Two contexts, the second made inside the first."""

    def __init__(self, first: Any, second: Callable[[], Any]) -> None:
        self.first, self.make = first, second

    def __enter__(self) -> None:
        self.first.__enter__()
        self.second = self.make()
        self.second.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.second.__exit__(*error)
        self.first.__exit__(*error)


@injector
def transposed(places: Places) -> Any:
    """A square dense weight transposed."""

    def square(held: Any) -> bool:
        return held.owner == "Linear" and held.parameter.ndim == 2 and len(set(held.parameter.shape)) == 1

    return _values(places, square, lambda w: w.T)


@injector
def gates_permuted(places: Places) -> Any:
    """An LSTM's gates in TensorFlow's order: i, j, f, o."""

    def change(net: Any) -> None:
        path = pick(net, "LSTM")
        for name, parameter in cell(net, path).parameters_and_names():
            blocks = np.split(parameter.asnumpy().copy(), 4)
            parameter.set_data(Tensor(np.concatenate([blocks[0], blocks[2], blocks[1], blocks[3]])))
            places.append(f"{path}.{name}")
        places.append(path)

    return loaded(change)


@injector
def swapped(places: Places) -> Any:
    """Two weights of one shape in each other's place."""

    def change(net: Any) -> None:
        by_shape: dict[Any, list[Any]] = {}
        for held in canonical_parameters(net):
            if held.parameter.requires_grad and held.name.endswith("weight"):
                by_shape.setdefault(held.parameter.shape, []).append(held)
        several = sorted((shape for shape, held in by_shape.items() if len(held) > 1), key=len)
        one, other = by_shape[several[-1]][:2]
        first, second = one.parameter.asnumpy().copy(), other.parameter.asnumpy().copy()
        one.parameter.set_data(Tensor(second))
        other.parameter.set_data(Tensor(first))
        places.extend([one.name, other.name])

    return loaded(change)


def _drawn(places: Places, accept: Callable[[Any], bool], make: Callable[[Any], Any]) -> Any:
    """Some parameters are drawn from another distribution when the net is built."""

    def change(net: Any) -> None:
        for held in canonical_parameters(net):
            if accept(held):
                held.parameter.set_data(initializer(make(held), held.parameter.shape))
                places.extend([held.name, held.name.rpartition(".")[0]])

    return built(change)


def _product(held: Any) -> bool:
    return held.owner in ("Conv2d", "Linear") and held.parameter.ndim > 1


@early_injector
def drawn(places: Places, how: str) -> Any:
    """Initial values: HeUniform without its slope, fan_in for fan_out, or the strings that mean small deviations."""
    if how == "he_gain":
        return _drawn(places, _product, lambda held: HeUniform())
    if how == "fan_in":
        return _drawn(places, _product, lambda held: HeNormal(mode="fan_in", nonlinearity="relu"))
    if how == "embedding":
        return _drawn(places, lambda held: held.owner == "Embedding", lambda held: Normal(0.01))
    return _drawn(places, _product, lambda held: "normal" if how == "string" else Normal(0.01))
