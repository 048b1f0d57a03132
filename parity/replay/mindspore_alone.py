"""One Cell of a MindSpore net, run alone on what torch's recorded step gave its counterpart."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype

from ...mappings import table
from ...mappings.shapes import SHAPES
from ...train.models.mindspore_names import Canonical
from ..kink_places import BY_INPUT, KINKED, POOLED, choice
from ..mindspore_function_kinks import function_choices
from .calls import Call, Recording, relative, tensor_name
from .values import Stored, flat, rebuilt

INTEGER = {"int64": np.int32}  # MindSpore's whole numbers: many of its operators take no others


class CannotRun(Exception):
    """Why a Cell cannot be called as torch called its counterpart; no fault by itself."""


class OtherOutputs(Exception):
    """What a Cell's outputs are in place of torch's, so that torch's upstream gradients do not fit them."""


class Alone:
    """A net at the starting weights, any Cell of which can be run alone.

    cells: torch path -> Cell, for the modules that have one; held: its parameters under torch's names, whose values
    now are the start.
    """

    def __init__(self, recording: Recording, cells: Mapping[str, nn.Cell], held: Sequence[Canonical]) -> None:
        self.recording = recording
        self.cells = cells
        self.held = {each.name: each for each in held}
        self._start = {name: each.parameter.asnumpy().copy() for name, each in self.held.items()}
        self._trains = {name: bool(each.parameter.requires_grad) for name, each in self.held.items()}
        self.trouble = ""  # why the last run has no gradients
        self.sides: list[tuple[str, int, np.ndarray]] = []  # of the last run: name in the module, call, choices

    def run(self, call: Call) -> list[tuple[str, str, np.ndarray]]:
        """(stage, tensor name, array) of everything that one call gives: outputs, gradients, changes of buffers.

        Raises CannotRun, and whatever MindSpore does.
        """
        cell, module = self.cells[call.path], self.recording.modules[call.path]
        self.restore(module.path)
        self.trouble = ""
        parameters = self._trainable(call.path, module.parameters)
        given = {stored.file: self.tensor(stored) for stored in call.inputs}
        by = [stored for stored in call.inputs if stored.needs_grad]
        outputs: list[Tensor] = []

        upstream = tuple(self.tensor(g) for g in call.gradients if g is not None)
        raised: list[Exception] = []

        def forward(*values: Tensor) -> Any:
            """The outputs to which a gradient came back, by the inputs that have one."""
            now = {**given, **{stored.file: value for stored, value in zip(by, values, strict=True)}}
            try:
                args, kwargs = arguments(cell.construct, call, now)
                outputs[:] = tensors(cell(*args, **kwargs))
                if [tuple(out.shape) for out in outputs] != [stored.shape for stored in flat(call.output)]:
                    theirs = ", ".join(str(list(out.shape)) for out in outputs) or "nothing"
                    raise OtherOutputs(f"no gradients: its output is {theirs}, which torch's gradients do not fit")
            except Exception as error:
                # an exception that leaves a function under differentiation leaves its graph open: what is
                # differentiated next in this process then fails in ways of its own
                raised.append(error)
                return upstream
            reached = [out for out, g in zip(outputs, call.gradients, strict=True) if g is not None]
            return tuple(ops.cast(out, mstype.float32) for out in reached)

        cell.set_train(True)
        grads: Any = ((), ())
        with self._kinks(call.path):
            if upstream and (by or parameters):
                weights = mindspore.ParameterTuple(list(parameters.values()))
                gradient = ops.GradOperation(get_all=True, get_by_list=bool(parameters), sens_param=True)
                differentiated = gradient(forward, weights) if parameters else gradient(forward)
                grads = differentiated(*(given[stored.file] for stored in by), upstream)
                grads = grads if parameters else (grads, ())
            else:
                forward(*(given[stored.file] for stored in by))
        if raised and not isinstance(raised[0], OtherOutputs):
            raise raised[0]
        if raised:
            self.trouble, grads = str(raised[0]), ((), ())
        found = [("forward", tensor_name("output", i), as_array(out)) for i, out in enumerate(outputs)]
        places = {stored.file: i for i, stored in enumerate(call.inputs)}
        names = [*parameters, *(tensor_name("input", places[stored.file]) for stored in by)]
        found += [
            ("gradients", f"{name}.grad", self._torch_form(call.path, name, as_array(grad)))
            for name, grad in zip(names, (*grads[1], *grads[0]), strict=False)
        ]
        found += self._changes(call.path, module.buffers)
        return found

    def tensor(self, stored: Stored) -> Tensor:
        """A recorded tensor in the dtype that MindSpore has for it."""
        array = self.recording.array(stored)
        return Tensor(array.astype(INTEGER.get(stored.dtype, array.dtype)))

    def restore(self, path: str = "") -> None:
        """Put the parameters and buffers inside a module back to where they started."""
        for name, each in self.held.items():
            if not self._trains[name] and relative(name, path) is not None:
                each.parameter.copy_(Tensor(self._start[name]))

    def _trainable(self, path: str, names: Sequence[str]) -> dict[str, Any]:
        full = {name: f"{path}.{name}" if path else name for name in names}
        return {name: self.held[long].parameter for name, long in full.items() if self._trains.get(long)}

    def _changes(self, path: str, buffers: Sequence[str]) -> list[tuple[str, str, np.ndarray]]:
        found = []
        for name in buffers:
            full = f"{path}.{name}" if path else name
            if full in self.held:
                now = self.held[full].parameter.asnumpy()
                found.append(("update", name, np.subtract(now, self._start[full], dtype=np.float64)))
        return found

    def _torch_form(self, path: str, name: str, array: np.ndarray) -> np.ndarray:
        """A gradient in the shape that torch holds the parameter in."""
        held = self.held.get(f"{path}.{name}" if path else name)
        if held is None:
            return array
        if held.shape is not None and array.size == math.prod(held.shape):
            return array.reshape(held.shape)
        rows = [row for row in table.rows("layer") if row.short == held.owner]
        states = [state for row in rows for state in row.state if state.torch == name.rpartition(".")[2]]
        verb = SHAPES[states[0].verb] if states and states[0].verb else None
        return array.reshape(verb.inverse(array.shape)) if verb else array

    @contextmanager
    def _kinks(self, path: str) -> Iterator[None]:
        """Keep the sides that the ReLUs and max-pools inside a module take."""
        self.sides = []
        numbers: dict[str, int] = {}

        def hook_for(name: str, kind: str) -> object:
            def hook(cell: nn.Cell, inputs: tuple[Tensor, ...], output: Any) -> None:
                number = numbers.get(name, 0)
                numbers[name] = number + 1
                if isinstance(output, Tensor):
                    source = inputs[0].asnumpy() if kind in BY_INPUT else None
                    kept = choice(kind, output.asnumpy(), source)
                    if kept is not None:
                        self.sides.append((name, number, kept))

            return hook

        def keep(name: str, number: int, _: str, made: np.ndarray) -> None:
            self.sides.append((name, number, made))

        inside = {}
        for module in self.recording.inside(path):
            name = relative(module.path, path)
            if name is not None and module.path in self.cells:
                inside[name] = (self.cells[module.path], module.kind)
        with ExitStack() as undo:
            for name, (cell, kind) in inside.items():
                if kind in (*KINKED, *POOLED):
                    undo.callback(cell.register_forward_hook(hook_for(name, kind)).remove)
            undo.enter_context(function_choices(inside, keep))
            yield


def arguments(
    construct: Callable[..., Any], call: Call, given: Mapping[str, Tensor]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Torch's arguments for a Cell's construct; those that are None are left out where it does not know them.

    Raises CannotRun where construct takes other arguments.
    """
    if call.unsupported:
        raise CannotRun(f"torch gave it a {call.unsupported}, which cannot be kept")
    args = list(rebuilt(call.args, lambda stored: given[stored.file]))
    kwargs = rebuilt(call.kwargs, lambda stored: given[stored.file])
    signature = inspect.signature(construct)
    if _binds(signature, args, kwargs):
        return args, kwargs
    while args and args[-1] is None:
        args.pop()
    kwargs = {key: value for key, value in kwargs.items() if value is not None}
    if _binds(signature, args, kwargs):
        return args, kwargs
    raise CannotRun(f"its construct{signature} does not take torch's arguments")


def _binds(signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def tensors(value: object) -> list[Tensor]:
    """Every tensor in a nest of tuples, lists and dicts, in order."""
    if isinstance(value, Tensor):
        return [value]
    nested = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for each in nested for tensor in tensors(each)]


def as_array(tensor: Tensor) -> np.ndarray:
    """The tensor for a trace: whole numbers as int64, whatever the framework counts in; waits for the device, so that
    what went wrong is raised here."""
    array: np.ndarray = tensor.asnumpy()
    return array.astype(np.int64) if array.dtype.kind in "iub" else array
