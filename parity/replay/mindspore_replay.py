"""MindSpore's Cells alone; what wiring hands on.

PyNative only: in Graph mode hooks on Cells never fire, and each Cell would be compiled.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore import dtype as mstype

from ...mappings import table
from ...mappings.verb_registry import SHAPES
from ...training.models.mindspore_models import Canonical
from ...workers.worker import progress
from ..align.model_structure import flat
from ..options import WHOLE, Narrowing
from ..record.mindspore_kinks import function_choices
from ..record.mindspore_randomness import fixed
from ..record.randomness import Draws
from ..record.recorder import BY_INPUT, KINKED, POOLED, choice
from ..run_folder import MINDSPORE_REPLAY
from ..trace import ALONE, SIDES_STAGE, WIRING, Part, TraceWriter
from .module_calls import (
    FOLDER,
    NOT_ASKED,
    Call,
    Computed,
    Outcome,
    Packed,
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

    def run(self, call: Call) -> list[Computed]:
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
                outputs[:] = flat(_in_torchs_form(call, cell.construct, cell(*args, **kwargs), now), Tensor)
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
    if _packed(call) is not None:
        return _packed_arguments(construct, call, given)
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
    cell = getattr(construct, "__self__", None)
    if isinstance(cell, RECURRENT_CELLS) and len(args) == 1 and not kwargs:  # MindSpore's have no state by default
        zeros = ops.zeros((*args[0].shape[:-1], cell.hidden_size), args[0].dtype)
        return [*args, (zeros, zeros) if isinstance(cell, nn.LSTMCell) else zeros], {}
    raise CannotRun(f"its construct{signature} does not take torch's arguments")


def _packed(call: Call) -> Packed | None:
    """The packed sequence that torch gave a module."""
    return next((each for each in (*call.args, *call.kwargs.values()) if isinstance(each, Packed)), None)


def _gives_packed(call: Call) -> bool:
    """Whether a module was given a packed sequence and gave one, with a state: a recurrent layer."""
    return (
        _packed(call) is not None and isinstance(call.output, tuple) and isinstance(next(iter(call.output), 0), Packed)
    )


def _batch_first(construct: Callable[..., Any]) -> bool:
    """Whether a recurrent Cell, by its construct, has the batch as its first axis."""
    return bool(getattr(getattr(construct, "__self__", None), "batch_first", False))


def _packed_arguments(
    construct: Callable[..., Any], call: Call, given: Mapping[str, Tensor]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """What torch gave a recurrent layer, as (x, hx, seq_length). Raises CannotRun for a construct that takes others."""
    signature = inspect.signature(construct)
    bound = dict(zip(("input", "hx"), call.args, strict=False)) | call.kwargs
    if "seq_length" not in signature.parameters or not isinstance(bound.get("input"), Packed):
        raise CannotRun(f"torch gave it a packed sequence, for which its construct{signature} has no seq_length")
    padded, lengths = (given[stored.file] for stored in bound["input"])
    x = padded if _batch_first(construct) else padded.swapaxes(0, 1)
    state = rebuilt(bound.get("hx"), lambda stored: given[stored.file])
    return (x, state), {"seq_length": ops.cast(lengths, mstype.int32)}


def _in_torchs_form(call: Call, construct: Callable[..., Any], output: Any, given: Mapping[str, Tensor]) -> Any:
    """A Cell's output; where torch's is a packed sequence, the same with the batch first, and its lengths."""
    theirs = _packed(call)
    if theirs is None or not _gives_packed(call):
        return output
    steps, *state = output
    return (steps if _batch_first(construct) else steps.swapaxes(0, 1), given[theirs.lengths.file], *state)


def _torchs_inputs(runner: Alone, construct: Callable[..., Any], call: Call, args: Any, kwargs: Any) -> list[Any]:
    """The tensors that reach a Cell, in torch's order, None for one that is lacking; without those that it gets besides
    torch's, which are no business of its surroundings' wiring."""
    theirs, signature = _packed(call), inspect.signature(construct)
    if theirs is None or "seq_length" not in signature.parameters:
        return flat((args, kwargs), Tensor)[: len(flat((call.args, call.kwargs), Stored))]
    bound = signature.bind(*args, **kwargs).arguments
    x, state, lengths = (next(iter(bound.values())), bound.get("hx"), bound.get("seq_length"))
    x = x if _batch_first(construct) else x.swapaxes(0, 1)
    if x.ndim > 1 and x.shape[0] == theirs.padded.shape[0] and x.shape[1] >= theirs.padded.shape[1]:
        longest = theirs.padded.shape[1]
        there = ops.arange(longest) < runner.tensor(theirs.lengths).reshape(-1, 1)
        # what stands behind the end of a sequence is padding, whatever it is
        x = ops.where(there.reshape(*there.shape, *[1] * (x.ndim - 2)), x[:, :longest], ops.zeros_like(x[:, :longest]))
    return [x, lengths, *flat(state, Tensor)]


def _torchs_steps(runner: Alone, construct: Callable[..., Any], call: Call, args: Any, kwargs: Any) -> Any:
    """What torch's recurrent layer gave of a packed sequence, as its Cell gives it: as long as what reached that."""
    x = next(iter(inspect.signature(construct).bind(*args, **kwargs).arguments.values()))
    (padded, _), *state = rebuilt(call.output, runner.tensor)
    first = _batch_first(construct)
    missing = x.shape[1 if first else 0] - padded.shape[1]
    if missing > 0:
        padded = ops.cat((padded, ops.zeros((padded.shape[0], missing, *padded.shape[2:]), padded.dtype)), 1)
    return (padded if first else padded.swapaxes(0, 1), *state)


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


SHARED_DRAWS = "took the same random draws in both frameworks"


def replay(
    folder: Path,
    net: nn.Cell,
    held: Sequence[Canonical],
    about: dict[str, object],
    narrowing: Narrowing = WHOLE,
    names: Mapping[str, str] | None = None,
    sample: int | None = None,
) -> None:
    """Record the mindspore-replay trace in `folder`, which has torch's recording.

    net: at the starting weights; `held` are its parameters under torch's names. narrowing: which modules are to run,
    and whether their wiring is looked at; all that they give is recorded, for causes are found by it. names: torch path
    -> Cell path where they differ; a path that it lacks has no counterpart. What draws takes the numbers that
    torch's will. Raises BadTrace for a damaged recording.
    """
    recording = Recording.open(folder / FOLDER)
    there = dict(net.cells_and_names())
    names = {path: path for path in recording.modules} if names is None else names
    cells = {path: there[names[path]] for path in recording.modules if names.get(path) in there}
    outcome = Outcome(cells={p: f"{names[p] or '(net)'} ({type(cell).__name__})" for p, cell in cells.items()})
    torch_paths = {cell: path for path, cell in names.items()}
    runner = Alone(recording, cells, held)
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
        with fixed(net, Draws(1), torch_paths) as draws:
            record_wiring(runner, outcome, writer, draws)
    writer.about = {**writer.about, **outcome.head()}
    writer.close()


def record_wiring(runner: Alone, outcome: Outcome, writer: TraceWriter, draws: Draws) -> None:
    """Record what reaches every Cell and leaves every container; fills `unwired` and `errors` of `outcome`.

    A Cell that the net calls more or less often than torch's calls the module keeps its own output: which of its calls
    is which cannot be told. A container that raises is replaced by what torch's gave.
    """
    recording = runner.recording
    outcome.unwired |= _called_otherwise(runner)
    draws.restart()  # as in torch's one pass
    wired = {path: cell for path, cell in runner.cells.items() if path not in outcome.unwired}
    numbers: Counter[str] = Counter()

    def seen(call: Call, what: str, found: Sequence[Tensor | None]) -> None:
        if not outcome.asked(call.label, call.caller if what == "input" else None):
            return
        for i, tensor in enumerate(found):
            kind = recording.modules[call.path].kind
            if tensor is not None:
                writer.add("forward", WIRING, f"{call.label} {tensor_name(what, i)}", as_array(tensor), module=kind)

    def forced(path: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def construct(*args: Any, **kwargs: Any) -> Any:
            call = recording.calls[label(path, numbers[path])]
            numbers[path] += 1
            seen(call, "input", _torchs_inputs(runner, original, call, args, kwargs))
            if not recording.modules[path].children and isinstance(call.output, Stored):
                return runner.tensor(call.output)
            if not recording.modules[path].children and _gives_packed(call):
                return _torchs_steps(runner, original, call, args, kwargs)
            try:
                given, named = _torch_arguments(runner, original, call) or (args, kwargs)
                output = original(*given, **named)
                if recording.modules[path].children:
                    seen(call, "output", flat(output, Tensor))
            except Exception as error:
                outcome.errors.setdefault(call.label, f"MindSpore raised {one_line(error)}")
                return rebuilt(call.output, runner.tensor)
            return _replaced(output, [runner.tensor(stored) for stored in flat(call.output, Stored)])

        return construct

    runner.restore()
    before = {path: cell.construct for path, cell in wired.items()}
    try:
        for path, cell in wired.items():
            cell.construct = forced(path, before[path])
        _forward(runner)
    except Exception as error:
        outcome.errors.setdefault("wiring", f"MindSpore raised {one_line(error)}")
    finally:
        for path, cell in wired.items():
            cell.construct = before[path]
        runner.restore()


def _torch_arguments(runner: Alone, construct: Callable[..., Any], call: Call) -> tuple[Any, Any] | None:
    """What torch gave the module, or None where the Cell takes something else."""
    try:
        return arguments(construct, call, {stored.file: runner.tensor(stored) for stored in call.inputs})
    except CannotRun:
        return None


def _replaced(output: Any, by: list[Tensor]) -> Any:
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
    recording, counts = runner.recording, Counter[str]()

    def counting(path: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            counts[path] += 1

        return hook

    handles = [cell.register_forward_pre_hook(counting(path)) for path, cell in runner.cells.items()]
    try:
        _forward(runner)
    except Exception as error:
        return dict.fromkeys(recording.modules, f"the net does not run: {one_line(error)}")
    finally:
        for handle in handles:
            handle.remove()
    expected = Counter(call.path for call in recording.calls.values())
    first = {id(cell): path for path, cell in reversed([*runner.cells.items()])}
    otherwise = {path: "there is no Cell of its own" for path in recording.modules if path not in runner.cells}
    for path, cell in runner.cells.items():
        if counts[path] != expected[path]:
            otherwise[path] = f"its Cell is called {counts[path]} times, torch's module {expected[path]} times"
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
