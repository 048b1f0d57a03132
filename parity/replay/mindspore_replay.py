"""MindSpore's Cells alone; what wiring hands on.

PyNative only: in Graph mode hooks on Cells never fire, and each Cell would be compiled.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype

from ...mappings import table
from ...mappings.verb_registry import SHAPES
from ...training.models.mindspore_models import Canonical
from ...training.models.outputs import flat
from ...workers.worker import progress
from ..align.alignment import IDENTITY, Alignment
from ..align.model_structure import Shape, regrouped
from ..options import WHOLE, Narrowing
from ..record.kinks import BY_INPUT, KINKED, POOLED, choice
from ..record.mindspore_kinks import function_choices
from ..record.mindspore_randomness import fixed
from ..record.randomness import Draws
from ..run_folder import MINDSPORE_REPLAY
from ..trace import ALONE, SIDES_STAGE, WIRING, Part, TraceWriter
from .mindspore_arguments import made_of
from .mindspore_packed import gives_packed, in_torchs_form, packed, packed_arguments, torchs_inputs, torchs_steps
from .module_calls import (
    CHAINED,
    FOLDER,
    NOT_ASKED,
    Call,
    CannotRun,
    Computed,
    Outcome,
    Recording,
    Stored,
    label,
    one_line,
    rebuilt,
    relative,
    tensor_name,
)

RECURRENT_CELLS = (nn.LSTMCell, nn.GRUCell, nn.RNNCell)
INTEGER = {"int64": np.int32}  # MindSpore's whole numbers: many of its operators take no others
# by torch class: options that say what else is returned, which a Cell of another hand need not know
RETURNED = {"MultiheadAttention": {"need_weights", "average_attn_weights"}}


# what a MindSpore that hands hooks the arguments by name too is asked for
BY_NAME = (
    {"with_kwargs": True} if "with_kwargs" in inspect.signature(nn.Cell.register_forward_pre_hook).parameters else {}
)
Layer = tuple[nn.Cell, Sequence[tuple[str, int] | None]]


class OtherOutputs(Exception):
    """What a Cell's outputs are in place of torch's, so that torch's upstream gradients do not fit them."""


class Alone:
    """A net at the starting weights, any Cell of which can be run alone.

    cells: torch path -> Cell, for the modules that have one; held: its parameters under torch's names, whose values
    now are the start; layers: Cell path -> the Cell, and the torch path and number of each of its calls in one pass,
    None for a call that has no counterpart.
    """

    def __init__(
        self,
        recording: Recording,
        cells: Mapping[str, nn.Cell],
        held: Sequence[Canonical],
        layers: Mapping[str, Layer],
    ) -> None:
        self.recording = recording
        self.cells = cells
        self.layers = layers
        # torch path -> the shapes of what its Cell gets and gives in the net's own pass
        self.gets: dict[str, set[Shape]] = {}
        self.gives: dict[str, set[Shape]] = {}
        self.own: dict[str, tuple[Any, dict[str, Any]]] = {}  # what its Cell is called with there
        self.held = {each.name: each for each in held}
        self._start = {name: each.parameter.asnumpy().copy() for name, each in self.held.items()}
        self._trains = {name: bool(each.parameter.requires_grad) for name, each in self.held.items()}
        self.trouble = ""  # why the last run has no gradients
        self.sides: list[tuple[str, int, np.ndarray]] = []  # of the last run: name in the module, call, choices

    def run(self, call: Call) -> list[Computed]:
        """(stage, tensor name, array) of everything that one call gives: outputs, gradients, changes of buffers.

        Raises CannotRun, and whatever MindSpore does.
        """
        cell, module = self.cells[call.path], self.recording.modules[call.path]
        self.restore(module.path)
        self.trouble = ""
        parameters = self._trainable(call.path, module.parameters)
        given = {stored.file: self.given(call.path, stored) for stored in call.inputs}
        by = [stored for stored in call.inputs if stored.needs_grad]
        outputs: list[Tensor] = []

        upstream = tuple(self.tensor(g) for g in call.gradients if g is not None)
        raised: list[Exception] = []

        def forward(*values: Tensor) -> Any:
            """The outputs to which a gradient came back, by the inputs that have one."""
            now = {**given, **{stored.file: value for stored, value in zip(by, values, strict=True)}}
            try:
                args, kwargs = self.arguments(cell.construct, call, now)
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
        found: list[Computed] = [("forward", tensor_name("output", i), as_array(out)) for i, out in enumerate(outputs)]
        places = {stored.file: i for i, stored in enumerate(call.inputs)}
        names = [*parameters, *(tensor_name("input", places[stored.file]) for stored in by)]
        whole = shaped(grads[0], by)
        found += [
            ("gradients", f"{name}.grad", self._torch_form(call.path, name, as_array(grad)))
            for name, grad in zip(names, (*grads[1], *whole), strict=False)
        ]
        found += self._changes(call.path, module.buffers)
        return found

    def tensor(self, stored: Stored) -> Tensor:
        """A recorded tensor in the dtype that MindSpore has for it."""
        array = self.recording.array(stored)
        return Tensor(array.astype(INTEGER.get(stored.dtype, array.dtype)))

    def arguments(self, construct: Callable[..., Any], call: Call, given: Mapping[str, Tensor]) -> tuple[Any, Any]:
        """Torch's arguments for a Cell's construct; where it takes others, those of its own net with torch's tensors in
        place of its tensors. Raises CannotRun."""
        try:
            optional = RETURNED.get(self.recording.modules[call.path].kind, ())
            return arguments(construct, call, given, optional)
        except CannotRun:
            own, torchs = self.own.get(call.path), flat((call.args, call.kwargs), Stored)
            if call.unsupported or not own or len(flat(own, Tensor)) != len(torchs):
                raise
            args, kwargs = replaced([*own], [given[stored.file] for stored in torchs])
            return args, kwargs

    def given(self, path: str, stored: Stored) -> Tensor:
        """A recorded tensor as the module's Cell gets it in its own net, which may have its axes grouped otherwise."""
        return in_shape_of(self.tensor(stored), self.gets.get(path, set()))

    def restore(self, path: str = "") -> None:
        """Put the parameters and buffers inside a module back to where they started."""
        for name, each in self.held.items():
            if not self._trains[name] and relative(name, path) is not None:
                each.parameter.copy_(Tensor(self._start[name]))

    def _trainable(self, path: str, names: Sequence[str]) -> dict[str, Any]:
        full = {name: f"{path}.{name}" if path else name for name in names}
        return {name: self.held[long].parameter for name, long in full.items() if self._trains.get(long)}

    def _changes(self, path: str, buffers: Sequence[str]) -> list[Computed]:
        found: list[Computed] = []
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

        inside = {}
        for module in self.recording.inside(path):
            name = relative(module.path, path)
            if name is not None and module.path in self.cells:
                inside[name] = (self.cells[module.path], module.kind)
        with ExitStack() as undo:
            for cell, calls in self.layers.values():
                within = [name for name in (relative(each[0], path) for each in calls if each) if name is not None]
                kinds = {name: self.recording.modules[f"{path}.{name}".strip(".")].kind for name in within}
                if any(kind in (*KINKED, *POOLED) for kind in kinds.values()):
                    undo.callback(cell.register_forward_hook(hook_for(within, kinds)).remove)
            undo.enter_context(function_choices(inside, keep))
            yield


def arguments(
    construct: Callable[..., Any], call: Call, given: Mapping[str, Tensor], optional: Container[str] = ()
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Torch's arguments for a Cell's construct; those that are None or `optional` are left out where it does not know
    them.

    Raises CannotRun where construct takes other arguments.
    """
    if call.unsupported:
        raise CannotRun(f"torch gave it a {call.unsupported}, which cannot be kept")
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


def _binds(signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def as_array(tensor: Tensor) -> np.ndarray:
    """The tensor for a trace: whole numbers as int64, whatever the framework counts in; waits for the device, so that
    what went wrong is raised here."""
    array: np.ndarray = tensor.asnumpy()
    return array.astype(np.int64) if array.dtype.kind in "iub" else array


def shaped(tensors: Sequence[Any], like: Sequence[Stored]) -> list[Any]:
    """The tensors in the shapes of others, where those have their axes grouped otherwise; None for one that lacks."""
    found = zip(tensors, like, strict=False) if len(tensors) == len(like) else ((each, None) for each in tensors)
    return [each if each is None or stored is None else in_shape_of(each, {stored.shape}) for each, stored in found]


def in_shape_of(tensor: Tensor, shapes: Iterable[Shape]) -> Tensor:
    """The tensor in the one of these shapes that has its axes grouped otherwise; as it is where its own is among
    them."""
    own = tuple(tensor.shape)
    fit = [shape for shape in shapes if regrouped(shape, own)]
    return tensor if not fit or own in fit else ops.reshape(tensor, fit[0])


class Chain(nn.Cell):
    """Cells of a net that compute one after the other what one module of torch's does; they stay the net's."""

    def __init__(self, cells: Sequence[nn.Cell]) -> None:
        super().__init__()
        object.__setattr__(self, "chained", tuple(cells))  # a child would get another name

    def construct(self, x: Tensor) -> Any:
        for cell in self.chained:
            x = cell(x)
        return x

    def set_train(self, mode: bool = True) -> nn.Cell:
        """Every Cell of it; itself."""
        for cell in self.chained:
            cell.set_train(mode)
        return self


def _cells(
    net: nn.Cell, names: Mapping[str, str], recording: Recording, alignment: Alignment
) -> tuple[dict[str, nn.Cell], dict[str, str]]:
    """Torch path -> Cell, and the Cell's path and class; names: torch path -> Cell path."""
    there, cells, said = dict(net.cells_and_names()), {}, {}
    for path in recording.modules:
        chain = alignment.chains.get(path, (names[path],) if path in names else ())
        if chain and set(chain) <= there.keys():
            cells[path] = there[chain[0]] if len(chain) == 1 else Chain([there[each] for each in chain])
            said[path] = f"{chain[0] or '(net)'} ({type(there[chain[0]]).__name__})"
    return cells, said


def _layers(net: nn.Cell, cells: Mapping[str, nn.Cell], recording: Recording, alignment: Alignment) -> dict[str, Layer]:
    """Each Cell that is a layer, and which of torch's calls its calls in one pass are."""
    if alignment.identity:
        ran = Counter(call.path for call in recording.calls.values())
        leaves = {path: cell for path, cell in cells.items() if not recording.modules[path].children}
        return {path: (cell, [(path, k) for k in range(ran[path])]) for path, cell in leaves.items()}
    there, counts = dict(net.cells_and_names()), alignment.counts.get("mindspore", {})
    paths = dict.fromkeys(path for _, _, path, _ in alignment.calls if path in there)
    return {path: (there[path], [alignment.torch_call(path, k) for k in range(counts.get(path, 1))]) for path in paths}


SHARED_DRAWS = "took the same random draws in both frameworks"


def replay(
    folder: Path,
    net: nn.Cell,
    held: Sequence[Canonical],
    about: dict[str, object],
    narrowing: Narrowing = WHOLE,
    alignment: Alignment = IDENTITY,
    sample: int | None = None,
) -> None:
    """Record the mindspore-replay trace in `folder`, which has torch's recording.

    net: at the starting weights; `held` are its parameters under torch's names. narrowing: which modules are to run,
    and whether their wiring is looked at; all that they give is recorded, for causes are found by it. alignment: which
    Cell is which module, and which have no counterpart. What draws takes the numbers that torch's will. Raises BadTrace
    for a damaged recording.
    """
    recording = Recording.open(folder / FOLDER)
    names = {path: path for path in recording.modules}
    if not alignment.identity:
        names = {match.torch: match.mindspore for match in alignment.modules}
    torch_paths = {cell: path for path, cell in names.items()}
    cells, said = _cells(net, names, recording, alignment)
    outcome = Outcome(cells=said)
    outcome.made = made_of(net, {path: cell for path, cell in cells.items() if path in names}, names)
    runner = Alone(recording, cells, held, _layers(net, cells, recording, alignment))
    with fixed(net, Draws(1), torch_paths):
        otherwise = _called_otherwise(runner)
    runner.restore()
    writer = TraceWriter(folder / MINDSPORE_REPLAY, about, sample)
    for i, call in enumerate(recording.calls.values(), 1):
        if not narrowing.module(call.path):
            outcome.left_out[call.label] = NOT_ASKED
            continue
        if call.path not in cells:
            outcome.left_out[call.label] = "MindSpore's net has no Cell of this name"
            continue
        progress(f"MindSpore: module {i} of {len(recording.calls)} alone", done=i - 1, total=len(recording.calls))
        kind = recording.modules[call.path].kind
        try:
            with fixed(net, Draws(1), torch_paths) as draws:
                found = runner.run(call)
        except CannotRun as reason:
            outcome.left_out[call.label] = str(reason)
            continue
        except Exception as error:
            outcome.errors[call.label] = f"MindSpore raised {one_line(error)}"
            continue
        outcome.notes |= {draw.name: SHARED_DRAWS for draw in draws.taken}
        if runner.trouble:
            outcome.errors[call.label] = runner.trouble
        for stage, tensor, array in found:
            writer.add(stage, ALONE, f"{call.label} {tensor}", array, module=kind)
        part = Part.of_call(call.path, call.number)
        for name, number, choices in runner.sides:
            writer.add(SIDES_STAGE, part, name, choices, number, whole=True)
        writer.flush(SIDES_STAGE, part)
    if "forward" in narrowing.stages:
        progress("MindSpore: how the modules are wired")
        outcome.unwired |= otherwise
        with fixed(net, Draws(1), torch_paths):
            record_wiring(runner, outcome, writer)
    writer.about = {**writer.about, **outcome.head()}
    writer.close()


def record_wiring(runner: Alone, outcome: Outcome, writer: TraceWriter) -> None:
    """Record what reaches every Cell and leaves every container; fills `errors` of `outcome`.

    A Cell that the net calls more or less often than torch's calls the module keeps its own output: which of its calls
    is which cannot be told. A container that raises is replaced by what torch's gave.
    """
    recording = runner.recording
    there = {call.label for call in recording.calls.values() if call.path not in outcome.unwired}

    def seen(call: Call, what: str, found: Sequence[Tensor | None]) -> None:
        if not outcome.asked(call.label, call.caller if what == "input" else None):
            return
        stored = flat((call.args, call.kwargs) if what == "input" else call.output, Stored)
        for i, tensor in enumerate(shaped(found, stored)):
            kind = recording.modules[call.path].kind
            if tensor is not None:
                writer.add("forward", WIRING, f"{call.label} {tensor_name(what, i)}", as_array(tensor), module=kind)

    def forced(original: Callable[..., Any], labels: Sequence[str | None]) -> Callable[..., Any]:
        turns = itertools.cycle(labels)

        def construct(*args: Any, **kwargs: Any) -> Any:
            call = recording.calls.get(next(turns) or "")
            if call is None:
                return original(*args, **kwargs)
            seen(call, "input", torchs_inputs(runner.tensor, original, call, args, kwargs))
            parts = recording.modules[call.path].children
            if not parts and isinstance(call.output, Stored):
                return in_shape_of(runner.tensor(call.output), runner.gives.get(call.path, set()))
            if not parts and gives_packed(call):
                return torchs_steps(runner.tensor, original, call, args, kwargs)
            try:
                given, named = _torch_arguments(runner, original, call) or (args, kwargs)
                output = original(*given, **named)
                if parts:
                    seen(call, "output", flat(output, Tensor))
            except Exception as error:
                outcome.errors.setdefault(call.label, f"MindSpore raised {one_line(error)}")
                return rebuilt(call.output, runner.tensor)
            by = [runner.tensor(stored) for stored in flat(call.output, Stored)]
            own = flat(output, Tensor)
            if len(own) == len(by):
                by = [in_shape_of(each, {tuple(out.shape)}) for each, out in zip(by, own, strict=True)]
            return replaced(output, by)

        return construct

    runner.restore()
    wired = [(cell, labels) for cell, labels in _wired(runner) if any(label_of in there for label_of in labels)]
    before = [cell.construct for cell, _ in wired]
    try:
        for (cell, labels), original in zip(wired, before, strict=True):
            cell.construct = forced(original, [each if each in there else None for each in labels])
        _forward(runner)
    except Exception as error:
        outcome.errors.setdefault("wiring", f"MindSpore raised {one_line(error)}")
    finally:
        for (cell, _), original in zip(wired, before, strict=True):
            cell.construct = original
        runner.restore()


def _wired(runner: Alone) -> list[tuple[nn.Cell, list[str | None]]]:
    """Each Cell that has a counterpart, and for each of its calls in one pass the label of torch's call."""
    layers = {id(cell) for cell, _ in runner.layers.values()}
    found = [
        (cell, [None if each is None else label(*each) for each in calls]) for cell, calls in runner.layers.values()
    ]
    for path, cell in runner.cells.items():
        if id(cell) not in layers and not isinstance(cell, Chain):
            calls = [call for call in runner.recording.calls.values() if call.path == path]
            found.append((cell, [call.label for call in calls]))
    return found


def _torch_arguments(runner: Alone, construct: Callable[..., Any], call: Call) -> tuple[Any, Any] | None:
    """What torch gave the module, or None where the Cell takes something else."""
    try:
        return runner.arguments(
            construct, call, {stored.file: runner.given(call.path, stored) for stored in call.inputs}
        )
    except CannotRun:
        return None


def replaced(output: Any, by: list[Tensor]) -> Any:
    """The output with its tensors replaced in order; as it is where it has another number of them."""
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


def _called_otherwise(runner: Alone) -> dict[str, str]:
    """The modules whose Cells the net does not call as often as torch's model calls the module, and why."""
    recording, ran = runner.recording, Counter[int]()

    def counting(cell: nn.Cell, paths: Sequence[str]) -> Callable[..., None]:
        def hook(_: nn.Cell, inputs: Any, named: Any = MappingProxyType({})) -> None:
            ran[id(cell)] += 1
            for path in paths:
                runner.gets.setdefault(path, set()).update(
                    tuple(each.shape) for each in flat((inputs, dict(named)), Tensor)
                )
                runner.own.setdefault(path, (inputs, dict(named)))

        return hook

    def giving(paths: Sequence[str]) -> Callable[..., None]:
        def hook(_: nn.Cell, __: Any, output: Any) -> None:
            for path in paths:
                runner.gives.setdefault(path, set()).update(tuple(each.shape) for each in flat(output, Tensor))

        return hook

    of: dict[int, tuple[nn.Cell, list[str]]] = {}
    layers = [(each[0], cell) for cell, calls in runner.layers.values() for each in calls if each is not None]
    for path, cell in [*runner.cells.items(), *layers]:
        of.setdefault(id(cell), (cell, []))[1].append(path)
    handles = [cell.register_forward_pre_hook(counting(cell, paths), **BY_NAME) for cell, paths in of.values()]
    handles += [cell.register_forward_hook(giving(paths)) for cell, paths in of.values()]
    try:
        _forward(runner)
    except Exception as error:
        return dict.fromkeys(recording.modules, f"the net does not run: {one_line(error)}")
    finally:
        for handle in handles:
            handle.remove()
    expected = Counter(call.path for call in recording.calls.values())
    first = {id(cell): path for path, cell in reversed([*runner.cells.items()])}
    sure = [calls for cell, calls in runner.layers.values() if ran[id(cell)] == len(calls)]
    told = {label(*each) for calls in sure for each in calls if each is not None}
    otherwise: dict[str, str] = {}
    for path in recording.modules:
        cell = runner.cells.get(path)
        if all(call.label in told for call in recording.calls.values() if call.path == path) and path in expected:
            continue
        if cell is None or isinstance(cell, Chain):
            otherwise[path] = "there is no Cell of its own" if cell is None else CHAINED
        elif ran[id(cell)] != expected[path]:
            otherwise[path] = f"its Cell is called {ran[id(cell)]} times, torch's module {expected[path]} times"
        elif first[id(cell)] != path:
            otherwise[path] = f"it shares its Cell with {first[id(cell)]}"
    return otherwise


def _forward(runner: Alone) -> None:
    for root in runner.recording.roots:
        cell = runner.cells[root.path]
        cell.set_train(True)
        given = {stored.file: runner.tensor(stored) for stored in root.inputs}
        args, kwargs = arguments(cell.construct, root, given)
        for tensor in flat(cell(*args, **kwargs), Tensor):
            as_array(tensor)
