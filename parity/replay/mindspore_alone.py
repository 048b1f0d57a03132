"""A MindSpore net any Cell of which can be run alone, with the Cells in it or with torch's outputs in their place.

PyNative only: in Graph mode hooks on Cells never fire, and each Cell would be compiled.
"""

from __future__ import annotations

import inspect
import itertools
import math
import operator
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import reduce
from types import MappingProxyType
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype

from ...mappings import table
from ...mappings.verb_registry import SHAPES
from ...training.models.mindspore_models import Canonical
from ...training.models.model_names import flat
from ..align.alignment import IDENTITY, Alignment
from ..align.model_structure import Shape, channels_moved, for_all, regrouped
from ..align.user_model import plain_values, put_back
from ..record.kinks import BY_INPUT, KINKED, POOLED, choice
from ..record.mindspore_kinks import function_choices
from ..record.randomness import given_upstream, moved
from . import module_calls
from .mindspore_packed import gives_packed, in_torchs_form, packed, packed_arguments, torchs_inputs, torchs_steps
from .module_calls import Call, CannotRun, Computed, Recording, Stored, Wired, label, rebuilt, relative, tensor_name

RECURRENT_CELLS = (nn.LSTMCell, nn.GRUCell, nn.RNNCell)
INTEGER = {"int64": np.int32}  # MindSpore's whole numbers: many of its operators take no others
# by torch class: arguments that select further outputs, which a user's own Cell need not have
RETURNED = {"MultiheadAttention": {"need_weights", "average_attn_weights"}}


Layer = tuple[nn.Cell, Sequence[tuple[str, int] | None]]
Given = tuple[Any, dict[str, Any]]  # the arguments of a Cell


class OtherOutputs(Exception):
    """The outputs of a Cell differ from torch's in form, so that torch's upstream gradients do not fit them."""


class Alone:
    """A net at the starting weights, any Cell of which can be run alone.

    cells: torch path -> Cell, for the modules that have one; held: its parameters under torch's names, whose current
    values are the start; layers: Cell path -> the Cell, and the torch path and number of each of its calls in one pass,
    None for a call that has no counterpart. moves: the number of this run of Monte Carlo arithmetic, whose inputs are
    moved in their last places; 0: none.
    """

    def __init__(
        self,
        recording: Recording,
        cells: dict[str, nn.Cell],
        held: Sequence[Canonical],
        layers: Mapping[str, Layer],
        moves: int = 0,
        alignment: Alignment = IDENTITY,
    ) -> None:
        self.recording = recording
        self.alignment = alignment
        self._further: dict[str, list[str]] = {}  # the further names of tensors that several modules have
        for name, first in alignment.aliases.items():
            self._further.setdefault(first, []).append(name)
        self.moves = moves
        self.cells = cells
        self.layers = layers
        # torch path -> the shapes of what its Cell gets and gives in the net's own pass
        self.gets: dict[str, set[Shape]] = {}
        self.gives: dict[str, set[Shape]] = {}
        self.own: dict[str, Given] = {}  # torch path -> the arguments of its Cell there
        self.nests: dict[str, Any] = {}  # torch path -> the output of its Cell there, where it is no single tensor
        self.seams: Seams | None = None  # of the last wiring
        # each Cell that has a counterpart, and for each of its calls in one pass the label of torch's call
        layers_there = {id(cell) for cell, _ in self.layers.values()}
        self.wired_cells: list[tuple[nn.Cell, list[str | None]]] = [
            (cell, [None if each is None else label(*each) for each in calls]) for cell, calls in self.layers.values()
        ]
        for path, cell in self.cells.items():
            if id(cell) not in layers_there and not isinstance(cell, Chain):
                self.wired_cells.append((cell, [c.label for c in self.recording.calls.values() if c.path == path]))
        self.held = {each.name: each for each in held}
        self._start = {name: each.parameter.asnumpy().copy() for name, each in self.held.items()}
        self._trains = {name: bool(each.parameter.requires_grad) for name, each in self.held.items()}
        inside = {id(one): one for cell in cells.values() for _, one in cell.cells_and_names()}
        self._counts = plain_values(inside.values(), vars(nn.Cell()))
        self.trouble = ""  # why the last run has no gradients
        self.sides: list[tuple[str, int, np.ndarray]] = []  # of the last run: name in the module, call, choices

    def run(self, call: Call) -> list[Computed]:
        """(stage, tensor name, array) of all results of one call: outputs, gradients, changes of buffers.

        Raises CannotRun, and whatever MindSpore raises.
        """
        module = self.recording.modules[call.path]
        self.restore(module.path)
        parameters = self._trainable(call.path, module.parameters)
        upstream = [None if gradient is None else self.tensor(gradient) for gradient in call.gradients]
        with self._kinks(call.path):
            found = self._differentiated(call, parameters, upstream)
        return found + self._changes(call.path, module.buffers)

    def wired(
        self, call: Call, inner: Sequence[Call], own: Given | None = None, *, backward: bool = True
    ) -> list[Wired]:
        """What one call of a container computes itself, while the calls `inner` hand on torch's outputs: the inputs of
        these calls, its own outputs, the gradients of both and of the parameters that it uses itself, and the changes
        of its own buffers.

        own: the Cell's arguments in the net, for a Cell that does not take torch's. backward: whether gradients are
        computed, from made-up upstream ones. Raises what `run` does; `seams` then has the inputs that were reached.
        """
        module = self.recording.modules[call.path]
        self.restore(module.path)
        self.seams = seams = Seams(self, inner)
        upstream: list[Tensor | None] = [
            None
            if gradient is None or not backward
            else self.upstream(f"{call.label} {tensor_name('output', i)}", stored)
            for i, (stored, gradient) in enumerate(zip(flat(call.output, Stored), call.gradients, strict=False))
        ]
        used = [name for name in module.used if name is not None] if backward else []
        with self._kinks(call.path, {each.path for each in inner}), seams.installed():
            found = self._differentiated(call, self._trainable(call.path, used), upstream, seams, own)
        own_buffers = self._changes(call.path, self.recording.own_buffers(call.path))
        wired = [(stage, call.label, name, array) for stage, name, array in (*found, *own_buffers)]
        differentiated = any(each is not None for each in upstream) and not self.trouble
        return [*seams.reached, *wired, *(seams.gradients() if differentiated else ())]

    def _differentiated(
        self,
        call: Call,
        parameters: Mapping[str, Any],
        upstreams: Sequence[Tensor | None],
        seams: Seams | None = None,
        own: Given | None = None,
    ) -> list[Computed]:
        """The outputs of a call, and their gradients with respect to its inputs and these parameters."""
        cell = self.cells[call.path]
        self.trouble = ""
        given = {stored.file: self.given(call.path, stored) for stored in call.inputs}
        by = [stored for stored in call.inputs if stored.needs_grad] if own is None else []
        outputs: list[Tensor] = []
        upstream = tuple(each for each in upstreams if each is not None)
        raised: list[Exception] = []

        def forward(anchor: Tensor, *values: Tensor) -> Any:
            """The outputs to which a gradient came back, as a function of the inputs that have one."""
            now = {**given, **{stored.file: value for stored, value in zip(by, values, strict=True)}}
            try:
                if seams is not None:
                    seams.anchor = anchor
                args, kwargs = self.arguments(cell.construct, call, now) if own is None else own
                output = in_torchs_form(call, cell.construct, cell(*args, **kwargs), now)
                outputs[:] = shaped(flat(output, Tensor), flat(call.output, Stored))
                if [tuple(out.shape) for out in outputs] != [stored.shape for stored in flat(call.output, Stored)]:
                    theirs = ", ".join(str(list(out.shape)) for out in outputs) or "nothing"
                    raise OtherOutputs(f"no gradients: its output is {theirs}, which torch's gradients do not fit")
            except Exception as error:
                # an exception that leaves a function under differentiation leaves its graph open: what is
                # differentiated next in this process then fails in ways of its own
                raised.append(error)
                return upstream
            reached = [out for out, g in zip(outputs, upstreams, strict=True) if g is not None]
            return tuple(ops.cast(out, mstype.float32) for out in reached)

        cell.set_train(True)
        grads: Any = ((), ())
        anchor, values = ops.zeros((), mstype.float32), [given[stored.file] for stored in by]
        if upstream and (by or parameters or seams is not None):
            weights = mindspore.ParameterTuple(list(parameters.values()))
            gradient = ops.GradOperation(get_all=True, get_by_list=bool(parameters), sens_param=True)
            differentiated = gradient(forward, weights) if parameters else gradient(forward)
            grads = differentiated(anchor, *values, upstream)
            grads = grads if parameters else (grads, ())
            grads = grads[0][1:], grads[1]
        else:
            forward(anchor, *values)
        if raised and not isinstance(raised[0], OtherOutputs):
            raise raised[0]
        if raised:
            self.trouble, grads = str(raised[0]), ((), ())
        found: list[Computed] = [("forward", tensor_name("output", i), as_array(out)) for i, out in enumerate(outputs)]
        arrays = {n: self._torch_form(call.path, n, as_array(x)) for n, x in zip(parameters, grads[1], strict=False)}
        inputs = zip(by, shaped(grads[0], by), strict=False)
        in_torch = self._as_torch(call.path, arrays)
        found += [("gradients", module_calls.gradient_name(name), array) for name, array in in_torch.items()]
        places = {stored.file: tensor_name("input", i) for i, stored in enumerate(call.inputs)}
        return found + [("gradients", f"{places[one.file]}.grad", as_array(grad)) for one, grad in inputs]

    def upstream(self, name: str, stored: Stored) -> Tensor:
        """The made-up gradient that comes back to a tensor."""
        return Tensor(given_upstream(name, stored.shape))

    def tensor(self, stored: Stored) -> Tensor:
        """A recorded tensor in the dtype that MindSpore has for it."""
        array = self.recording.array(stored)
        array = moved(array, self.moves) if self.moves else array
        return Tensor.from_numpy(array.astype(INTEGER.get(stored.dtype, array.dtype), copy=False))

    def arguments(self, construct: Callable[..., Any], call: Call, given: Mapping[str, Tensor]) -> tuple[Any, Any]:
        """Torch's arguments for a Cell's construct; where it takes others, those of its own net with torch's tensors in
        place of its tensors. Raises CannotRun."""
        try:
            return arguments(construct, call, given, self.optional(call))
        except CannotRun:
            own = self.own.get(call.path)
            fit = None if call.unsupported or not own else matching(flat(own, Tensor), call)
            if not own or fit is None:
                raise
            args, kwargs = replaced([*own], [given[stored.file] for stored in fit])
            return args, kwargs

    def optional(self, call: Call) -> Container[str]:
        """Torch's arguments that a Cell need not have."""
        return RETURNED.get(self.recording.modules[call.path].kind, ())

    def given(self, path: str, stored: Stored) -> Tensor:
        """A recorded tensor as the module's Cell gets it in its own net, which may have its axes grouped otherwise."""
        return in_shape_of(self.tensor(stored), self.gets.get(path, set()))

    def restore(self, path: str = "") -> None:
        """Put the parameters and buffers inside a module, and what cells count, back to where they started."""
        put_back(self._counts)
        for name, each in self.held.items():
            names = (name, *self._further.get(name, ()))
            if not self._trains[name] and any(relative(one, path) is not None for one in names):
                each.parameter.copy_(Tensor(self._start[name]))

    def _trainable(self, path: str, names: Sequence[str]) -> dict[str, Any]:
        """Name in the module -> each parameter that trains; tensors that are cut otherwise have MindSpore's names."""
        full = {self._full(path, name): name for name in names}
        cuts = [cut for cut in self.alignment.cuts if full.keys() & {*cut.torch}]
        full |= {name: name.removeprefix(f"{path}.") for cut in cuts for name in cut.names}
        return {name: self.held[long].parameter for long, name in full.items() if self._trains.get(long)}

    def _full(self, path: str, name: str) -> str:
        """The name in the net of a tensor in a module; the first name, where several modules have the tensor."""
        full = f"{path}.{name}" if path else name
        return self.alignment.aliases.get(full, full)

    def _changes(self, path: str, buffers: Sequence[str]) -> list[Computed]:
        found: list[Computed] = []
        for name in buffers:
            full = self._full(path, name)
            if full in self.held:
                now = self.held[full].parameter.asnumpy()
                found.append(("update", name, np.subtract(now, self._start[full], dtype=np.float64)))
        return found

    def _as_torch(self, path: str, arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """The gradients of the parameters in a module, in torch's form."""
        if not self.alignment.cuts:
            return arrays
        own = {self._full(path, name): name for name in arrays}
        full = self.alignment.as_torch({name: arrays[short] for name, short in own.items()})
        return {own.get(name, name.removeprefix(f"{path}.")): array for name, array in full.items()}

    def _torch_form(self, path: str, name: str, array: np.ndarray) -> np.ndarray:
        """A gradient in the shape that torch holds the parameter in."""
        held = self.held.get(self._full(path, name))
        if held is None:
            return array
        if held.shape is not None and array.size == math.prod(held.shape):
            return array.reshape(held.shape)
        rows = [row for row in table.rows("layer") if row.short == held.owner]
        states = [state for row in rows for state in row.state if state.torch == name.rpartition(".")[2]]
        verb = SHAPES[states[0].verb] if states and states[0].verb else None
        return array.reshape(verb.inverse(array.shape)) if verb else array

    @contextmanager
    def _kinks(self, path: str, handed_on: Container[str] = ()) -> Iterator[None]:
        """Record the sides that ReLUs and max-pools inside a module take, except those that hand on torch's output."""
        self.sides = []
        numbers: dict[str, int] = {}

        def hook_for(names: Sequence[str], kinds: Mapping[str, str]) -> object:
            turns = itertools.cycle(names)

            def hook(cell: nn.Cell, inputs: tuple[Tensor, ...], output: Any) -> None:
                name = next(turns)
                kind, number = kinds[name], numbers.get(name, 0)
                numbers[name] = number + 1
                if isinstance(output, Tensor):
                    source = inputs[0].asnumpy() if kind in BY_INPUT else None
                    kept = choice(kind, output.asnumpy(), source)
                    if kept is not None:
                        self.sides.append((name, number, kept))

            return hook

        def keep(name: str, number: int, _: str, made: np.ndarray) -> None:
            self.sides.append((name, number, made))

        inside, layers = {}, {id(cell) for cell, _ in self.layers.values()}
        for module in self.recording.inside(path):
            name = relative(module.path, path)
            if name is not None and module.path in self.cells:
                cell = self.cells[module.path]
                inside[name] = (cell, module.kind if id(cell) in layers else None)
        with ExitStack() as undo:
            for cell, calls in self.layers.values():
                there = [each[0] for each in calls if each and each[0] not in handed_on]
                within = [name for name in (relative(each, path) for each in there) if name is not None]
                kinds = {name: self.recording.modules[f"{path}.{name}".strip(".")].kind for name in within}
                if any(kind in (*KINKED, *POOLED) for kind in kinds.values()):
                    undo.callback(cell.register_forward_hook(hook_for(within, kinds)).remove)
            undo.enter_context(function_choices(inside, keep))
            yield


class Seams:
    """The Cells in a container's wiring: each hands on the output of torch's module, and in the backward pass a made-up
    gradient of its inputs.

    reached: the inputs that reached them; the gradients that came back to their outputs are in `gradients`. got: label
    -> the arguments that a Cell was called with. uneven: why the gradients cannot be compared with torch's.
    """

    def __init__(
        self, runner: Alone, inner: Sequence[Call], instead: Mapping[str, Tensor] = MappingProxyType({})
    ) -> None:
        """instead: file of one of torch's tensors -> the tensor that is handed on in its place."""
        self.runner = runner
        self.instead = instead
        self.inner = {each.label: each for each in inner}
        self.anchor: Tensor | None = None  # every seam depends on it, so differentiating by it reaches all of them
        self.reached: list[Wired] = []
        self.got: dict[str, Given] = {}
        self.uneven = ""
        self._back: dict[tuple[str, str], Tensor] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within this block they stand in for the Cells' own computing."""
        with ExitStack() as undo:
            for cell, labels in self.runner.wired_cells:
                at = [i for i, each in enumerate(labels) if each in self.inner]
                if at:
                    turns = [each for each in labels[at[0] : at[-1] + 1] if each is None or each in self.inner]
                    undo.callback(setattr, cell, "construct", cell.construct)
                    cell.construct = self._handing_on(cell.construct, iter(turns))
            yield

    def gradients(self) -> list[Wired]:
        """The gradients that came back to the outputs, for those that get one in torch; zeros where none came."""
        found: list[Wired] = []
        for one in self.inner.values():
            for i, (stored, gradient) in enumerate(zip(flat(one.output, Stored), one.gradients, strict=False)):
                name = tensor_name("output", i)
                if one.is_plain and gradient is not None:
                    back = self._back.get((one.label, name))
                    array = np.zeros(stored.shape, np.float32) if back is None else as_array(back)
                    found.append(("gradients", one.label, f"{name}.grad", array.reshape(stored.shape)))
        return found

    def _handing_on(self, original: Callable[..., Any], turns: Iterator[str | None]) -> Callable[..., Any]:
        runner = self.runner

        def construct(*args: Any, **kwargs: Any) -> Any:
            one = self.inner.get(next(turns, None) or "")
            if one is None:
                return original(*args, **kwargs)
            self.got[one.label] = (args, kwargs)
            reached = torchs_inputs(runner.tensor, original, one, args, kwargs)
            stored = flat((one.args, one.kwargs), Stored)
            fit = matching(reached, one)
            if fit is not None and len(reached) < len(stored):  # torch passes the same tensor several times
                reached = [reached[fit.index(each)] for each in stored]
            self.reached += [
                ("forward", one.label, tensor_name("input", i), as_array(tensor))
                for i, tensor in enumerate(shaped(reached, stored))
                if tensor is not None
            ]
            if not _called_alike(original, one, args, kwargs, runner.optional(one)):
                self.uneven = f"{one.label} is called with other numbers than torch's module"
                return original(*args, **kwargs)
            if gives_packed(one):
                return torchs_steps(runner.tensor, original, one, args, kwargs)
            outputs = [self.instead.get(each.file, runner.tensor(each)) for each in flat(one.output, Stored)]
            handed = self._seam(one, outputs, (args, kwargs), stored) if one.is_plain else outputs
            if one.path not in runner.nests and len(handed) == 1:
                return in_shape_of(handed[0], runner.gives.get(one.path, set()))
            nest = runner.nests.get(one.path)
            forms = flat(nest, Tensor)
            if len(forms) != len(handed):
                self.uneven = f"{one.label} returns another number of tensors than torch's module"
                return original(*args, **kwargs)
            pairs = zip(handed, forms, strict=True)
            return replaced(nest, [in_shape_of(each, {tuple(form.shape)}) for each, form in pairs])

        return construct

    def _seam(self, one: Call, outputs: list[Tensor], given: Given, stored: Sequence[Stored]) -> list[Tensor]:
        """The outputs, connected to the Cell's inputs so that these get made-up gradients and not those that come."""
        real = [(i, each) for i, each in enumerate(flat(given, Tensor)) if each.is_floating_point()]
        at = [i for i, each in enumerate(outputs) if each.is_floating_point()]
        if self.anchor is None or not at:
            return outputs
        back, fit = [], matching(flat(given, Tensor), one)
        for i, tensor in real:
            same = [i] if i < len(stored) else []
            if fit is not None and len(fit) < len(stored):
                same = [k for k, each in enumerate(stored) if each == fit[i]]
            made = [
                self.runner.upstream(f"{one.label} {tensor_name('input', k)}", stored[k])
                for k in same
                if math.prod(stored[k].shape) == tensor.size
            ]
            made = [in_shape_of(each, {tuple(tensor.shape)}).reshape(tensor.shape) for each in made]
            typed = [each.astype(tensor.dtype) for each in made]
            back.append(reduce(operator.add, typed) if typed else ops.zeros_like(tensor))

        def returned(gradients: Sequence[Tensor]) -> None:
            for i, gradient in zip(at, gradients, strict=True):
                self._back[one.label, tensor_name("output", i)] = gradient

        handed = Seam(tuple(outputs[i] for i in at), back, returned)(self.anchor, *(each for _, each in real))
        for i, tensor in zip(at, handed, strict=True):
            outputs[i] = tensor
        return outputs


class Seam(nn.Cell):
    """Returns `outputs` whatever its inputs, and backward the gradients `back`; those that came go to `returned`."""

    def __init__(
        self, outputs: tuple[Tensor, ...], back: list[Tensor], returned: Callable[[Sequence[Tensor]], None]
    ) -> None:
        super().__init__()
        self.hands = lambda: (outputs, back, returned)  # a tuple of tensors among a Cell's attributes would be copied

    def construct(self, anchor: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        return self.hands()[0]

    def bprop(self, anchor: Tensor, *rest: Any) -> tuple[Tensor, ...]:
        _, back, returned = self.hands()
        returned(rest[-1] if isinstance(rest[-1], tuple) else rest[-1:])  # for a single output it is no tuple
        return ops.zeros_like(anchor), *back


def arguments(
    construct: Callable[..., Any], call: Call, given: Mapping[str, Tensor], optional: Container[str] = ()
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Torch's arguments for a Cell's construct, without those it does not have that are None or `optional`.

    Raises CannotRun where construct takes other arguments.
    """
    if call.unsupported:
        raise CannotRun(f"torch passed it a {call.unsupported}, which cannot be recorded")
    if packed(call) is not None:
        return packed_arguments(construct, call, given)
    args = list(rebuilt(call.args, lambda stored: given[stored.file]))
    kwargs = rebuilt(call.kwargs, lambda stored: given[stored.file])
    signature = inspect.signature(construct)
    if _binds(signature, args, kwargs):
        return args, kwargs
    while args and args[-1] is None:
        args.pop()
    unknown = {key for key in kwargs if key not in signature.parameters}
    kwargs = {k: value for k, value in kwargs.items() if value is not None and not (k in unknown and k in optional)}
    if _binds(signature, args, kwargs):
        return args, kwargs
    cell = getattr(construct, "__self__", None)
    if isinstance(cell, RECURRENT_CELLS) and len(args) == 1 and not kwargs:  # MindSpore's have no state by default
        zeros = ops.zeros((*args[0].shape[:-1], cell.hidden_size), args[0].dtype)
        return [*args, (zeros, zeros) if isinstance(cell, nn.LSTMCell) else zeros], {}
    raise CannotRun(f"its construct{signature} does not take torch's arguments")


def matching(tensors: Sequence[Tensor], call: Call) -> list[Stored] | None:
    """The input of torch's module that corresponds to each of these inputs of its Cell, where both may pass a tensor
    several times, as attention its query, key and value; None where that is not known."""
    stored = flat((call.args, call.kwargs), Stored)
    if len(tensors) == len(stored):
        return stored
    each_once = list({one.file: one for one in stored}.values())
    if len(tensors) == len(each_once):
        return each_once
    arrays = [(each.shape, each.asnumpy().tobytes()) for each in tensors]
    places = {array: i for i, array in enumerate(dict.fromkeys(arrays))}
    return [each_once[places[array]] for array in arrays] if len(places) == len(each_once) else None


class _Identity(dict[str, Any]):
    def __missing__(self, file: str) -> Any:
        return file


def _called_alike(construct: Callable[..., Any], call: Call, args: Any, kwargs: Any, optional: Container[str]) -> bool:
    """Whether a Cell was called with the same constants as torch's module; true where that is not known."""
    if not call.is_plain:
        return True
    signature = inspect.signature(construct)
    try:
        theirs = signature.bind(*args, **kwargs)
        given, named = arguments(construct, call, _Identity(), optional)
        torchs = signature.bind(*given, **named)
    except (CannotRun, TypeError, AttributeError):
        return True
    theirs.apply_defaults()
    torchs.apply_defaults()
    tensors = {stored.file for stored in call.inputs}
    return all(
        _constants(theirs.arguments[name]) == _constants(value, tensors) for name, value in torchs.arguments.items()
    )


def _constants(value: Any, tensors: Container[Any] = ()) -> list[Any]:
    """The numbers, texts and None in a nest; tensors: values that stand for a tensor, and are left out."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [found for each in value for found in _constants(each, tensors)]
    is_constant = isinstance(value, (bool, int, float, str)) and not (isinstance(value, str) and value in tensors)
    return [value] if is_constant or value is None else []


def _binds(signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def as_array(tensor: Tensor) -> np.ndarray:
    """The tensor for a trace, integers of any width as int64; waits for the device, so that errors are raised here."""
    array: np.ndarray = tensor.asnumpy()
    return array.astype(np.int64) if array.dtype.kind in "iub" else array


def shaped(tensors: Sequence[Any], like: Sequence[Stored]) -> list[Any]:
    """The tensors in the shapes of others, where those have their axes grouped otherwise, or have for each example what
    the net has once for all of them; None for a missing one."""
    found = zip(tensors, like, strict=False) if len(tensors) == len(like) else ((each, None) for each in tensors)
    return [each if each is None or stored is None else _in_shape(each, stored.shape) for each, stored in found]


def _in_shape(tensor: Tensor, shape: Shape) -> Tensor:
    found = in_shape_of(tensor, {shape})
    return ops.broadcast_to(found, shape) if for_all(shape, tuple(found.shape)) else found


def in_shape_of(tensor: Tensor, shapes: Iterable[Shape]) -> Tensor:
    """The tensor in whichever of these shapes has its channels elsewhere, or its axes grouped otherwise; unchanged if
    its own shape is among them."""
    own, shapes = tuple(tensor.shape), [*shapes]
    moves = [] if own in shapes else [moved for shape in shapes if (moved := channels_moved(own, shape)) is not None]
    if moves:
        return ops.movedim(tensor, *moves[0])
    fit = [shape for shape in shapes if regrouped(shape, own)]
    return tensor if not fit or own in fit else ops.reshape(tensor, fit[0])


class Chain(nn.Cell):
    """Cells of a net that compute one after the other what one torch module does; they stay children of the net."""

    def __init__(self, cells: Sequence[nn.Cell]) -> None:
        super().__init__()
        object.__setattr__(self, "chained", tuple(cells))  # a child would get another name

    def construct(self, x: Tensor) -> Any:
        for cell in self.chained:
            x = cell(x)
        return x

    def set_train(self, mode: bool = True) -> nn.Cell:
        """Set every Cell of it; returns itself."""
        for cell in self.chained:
            cell.set_train(mode)
        return self


def replaced(output: Any, by: list[Tensor]) -> Any:
    """The output with its tensors replaced in order; unchanged where it has another number of them."""
    if len(flat(output, Tensor)) != len(by):
        return output
    waiting = iter(by)

    def nest(value: Any) -> Any:
        if isinstance(value, Tensor):
            return next(waiting)
        if isinstance(value, dict):
            return {key: nest(each) for key, each in value.items()}
        return type(value)(nest(each) for each in value) if isinstance(value, (list, tuple)) else value

    return nest(output)
