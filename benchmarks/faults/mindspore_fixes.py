"""Applying what a report prints as fixes, upon the planted faults: fixes.py says which can be applied, and how."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any
from unittest.mock import patch

import mindspore
import msmigrate.nn
from fixes import application
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common import initializer
from mindspore_injectors import Places, built, cell, injector, put
from msmigrate.training.step import mindspore_step
from msmigrate.training.step.mindspore_step import TrainStep

NAMES = {
    **{name: getattr(initializer, name) for name in initializer.__all__},
    "mindspore": mindspore,
    "msmigrate": msmigrate,
    "math": math,
    "nn": nn,
    "ops": ops,
    "Parameter": Parameter,
    "Tensor": Tensor,
}
DRAWN = {"weight_init": "weight", "bias_init": "bias", "embedding_table": "embedding_table"}
Given = tuple[tuple[Any, ...], dict[str, Any]]


@injector
@contextmanager
def applied(places: Places, causes: list[dict[str, Any]]) -> Iterator[None]:
    """Every fix that can be applied, in the order of the report."""
    with ExitStack() as stack:
        stack.enter_context(_remembered())
        for cause in causes:
            written = application(cause)
            stack.enter_context(_WAYS[written.way](cause, written.code))
        yield


@contextmanager
def _remembered() -> Iterator[None]:
    """Every Cell that is made keeps what it was made with, so that another like it can be made."""
    real = nn.Cell.__new__

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        made = real(cls) if real is object.__new__ else real(cls, *args, **kwargs)
        object.__setattr__(made, "made_with", (args, kwargs))
        return made

    with patch.object(nn.Cell, "__new__", new):
        yield


def _value(code: str, **names: Any) -> Any:
    return eval(code, {**NAMES, **names})  # of our own report and our own fixes.yaml


def _arguments(cause: dict[str, Any], _: str) -> Any:
    """Cells made anew with the arguments that the fix writes, and with what they had of the others."""
    change = cause["change"]
    values = {name: _value(code) for name, code in change["arguments"].items()}

    def alter(net: nn.Cell) -> None:
        for path in change["cells"]:
            old = cell(net, path)
            if set(values) <= set(DRAWN):  # what a Cell of one's own may hand on, or not
                for name, value in values.items():
                    drawn = getattr(old, DRAWN[name])
                    drawn.set_data(initializer.initializer(value, drawn.shape, drawn.dtype))
                continue
            target = _named(change["target"]) if change["target"] else type(old)
            args, kwargs = old.made_with
            given = {} if change["whole"] else _by_name(type(old), args, kwargs)
            put(net, path, target(**{**_accepted(given, target), **values}))

    return built(alter)


def _named(target: str) -> Any:
    module, _, name = target.rpartition(".")
    return getattr(import_module(module), name)


def _by_name(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return dict(signature(cls.__init__).bind(None, *args, **kwargs).arguments)


def _accepted(given: dict[str, Any], target: type) -> dict[str, Any]:
    """Of what a Cell was made with what another class takes by the same name."""
    known = list(signature(target.__init__).parameters)[1:]
    return {name: value for name, value in given.items() if name in known}


def _forward(cause: dict[str, Any], code: str) -> Any:
    """The Cell at the cause's place computes `code`, of x and the Cell itself."""

    def alter(net: nn.Cell) -> None:
        found = cell(net, cause["place"])
        found.construct = types.MethodType(lambda self, *xs: _value(code, self=self, x=xs[0], xs=xs), found)

    return built(alter)


def _loss(cause: dict[str, Any], code: str) -> Any:
    """The loss is `code`, a function of logits and labels."""
    return patch.object(mindspore_step, "build_loss", lambda recipe: _Loss(_value(code)))


class _Loss(nn.Cell):
    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.function(logits, labels)


def _clip(cause: dict[str, Any], code: str) -> Any:
    """The optimizer gets `code`, of the gradients that come out of the step and the recipe's norm."""

    def apply(self: Any, grads: Any) -> None:
        self.optimizer(tuple(_value(code, grads=tuple(grads), max_norm=self._max_norm)))

    return patch.object(TrainStep, "_clip_then_optimize", apply)


def _net(cause: dict[str, Any], code: str) -> Any:
    """`code`, statements, is run on the net once it is built; place: what the report names."""

    def alter(net: nn.Cell) -> None:
        exec(code, {**NAMES, "net": net, "place": cause["place"], "cell": partial(cell, net), "put": partial(put, net)})

    return built(alter)


_WAYS: dict[str, Callable[[dict[str, Any], str], Any]] = {
    "arguments": _arguments,
    "forward": _forward,
    "loss": _loss,
    "clip": _clip,
    "net": _net,
}
