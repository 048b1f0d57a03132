"""Record what MindSpore's Cells compute alone, what containers compute from torch's outputs, and the Cells' arguments.

PyNative only: in Graph mode hooks on Cells never fire, and each Cell would be compiled.
"""

from __future__ import annotations

import inspect
import weakref
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mindspore import Tensor, nn

from ...training.models.mindspore_models import Canonical
from ...training.models.model_names import flat
from ...workers.worker import progress
from ..align.alignment import IDENTITY, Alignment, Cut
from ..align.model_structure import made_at, parent, runs_at, statement
from ..options import WHOLE, Narrowing
from ..record.mindspore_randomness import fixed
from ..record.randomness import Draws
from ..run_folder import MINDSPORE_REPLAY, MOVED, replayed
from ..trace import ALONE, SIDES_STAGE, WIRING, Part, TraceWriter
from .mindspore_alone import Alone, Chain, Given, Layer, Seams, arguments, as_array, replaced
from .module_calls import (
    BOTH_WAYS,
    CHAINED,
    FOLDER,
    FORWARD,
    GIVES_BACK,
    NOT_ASKED,
    Call,
    CannotRun,
    Made,
    Outcome,
    Recording,
    Stored,
    Wired,
    label,
    one_line,
    parse_label,
    relative,
)

# makes hooks get keyword arguments too, in a MindSpore that can do so
BY_NAME = (
    {"with_kwargs": True} if "with_kwargs" in inspect.signature(nn.Cell.register_forward_pre_hook).parameters else {}
)


PLAIN = (bool, int, float, str, type(None))
_made: dict[int, tuple[tuple[Any, ...], dict[str, Any]]] = {}  # id of an existing Cell -> its arguments


def remember_arguments() -> None:
    """Remember the arguments of every Cell that is made from now on in this process."""
    own_new = nn.Cell.__new__

    def new(kind: type, /, *args: Any, **kwargs: Any) -> Any:
        cell: nn.Cell = own_new(kind) if own_new is object.__new__ else own_new(kind, *args, **kwargs)
        if kind.__module__.startswith("mindspore."):
            weakref.finalize(cell, _made.pop, id(cell), None)
            _made[id(cell)] = (args, kwargs)
        return cell

    nn.Cell.__new__ = staticmethod(new)


def made_of(net: nn.Cell, cells: Mapping[str, nn.Cell], paths: Mapping[str, str]) -> dict[str, Made]:
    """How each Cell was made, for MindSpore's own layers, and where it computes, for a Cell of the user's; paths: torch
    path -> Cell path."""
    there, found = dict(net.cells_and_names()), {}
    for name, cell in cells.items():
        if id(cell) not in _made:
            found[name] = Made("", {}, place=runs_at(type(cell)))
            continue
        args, kwargs = _made[id(cell)]
        names = list(inspect.signature(type(cell).__init__).parameters)[1:]
        try:
            bound = inspect.signature(type(cell).__init__).bind(cell, *args, **kwargs)
        except TypeError:
            continue
        bound.apply_defaults()
        given = {**bound.arguments, **bound.arguments.get("kwargs", {})}
        plain = {
            key: value for key, value in given.items() if _is_plain(value) and key not in ("self", "args", "kwargs")
        }
        target = f"mindspore.nn.{type(cell).__name__}"
        line, place = statement(there, paths[name]), made_at(there, paths[name])
        found[name] = Made(target, plain, tuple(names[: len(args)]), line, place if line else "")
    return found


def _is_plain(value: Any) -> bool:
    return isinstance(value, PLAIN) or (isinstance(value, (tuple, list)) and all(isinstance(v, PLAIN) for v in value))


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


@dataclass(frozen=True)
class Stretch:
    """Where in the net the computation of a torch module begins and ends that no Cells do alone: the call around it,
    the calls in that one that hand on torch's output, and which of these, with the number of its input tensor, takes
    the module's output; None where the call around it returns that."""

    outer: Call
    inner: Sequence[Call]
    until: tuple[str, int] | None

    @classmethod
    def of(cls, runner: Alone, call: Call, unwired: Container[str]) -> Stretch | None:
        """The stretch of a call, by the data flow in torch; None where a function is at either end of it."""
        recording, (given, *more) = runner.recording, flat(call.output, Stored) or [None]
        for outer in (recording.calls[name] for name in recording.around(call.caller)):
            if outer.path not in runner.cells or (outer.path in unwired and outer.caller is not None):
                continue
            inner = [c for c in recording.handed_on(outer, unwired) if relative(c.path, call.path) is None]
            made = {stored.file for stored in outer.inputs}
            made.update(stored.file for each in inner for stored in flat(each.output, Stored))
            if more or given is None or not all(stored.file in made for stored in call.inputs):
                return None
            if given.file in {stored.file for stored in flat(outer.output, Stored)[:1]}:
                return cls(outer, inner, None)
            takes = [(c.label, i, s) for c in inner for i, s in enumerate(flat((c.args, c.kwargs), Stored))]
            return next((cls(outer, inner, (name, i)) for name, i, stored in takes if stored.file == given.file), None)
        return None


class Between(nn.Cell):
    """What a net computes on such a stretch, as a Cell; the Cells in it stay children of the net."""

    def __init__(self, runner: Alone, call: Call, stretch: Stretch) -> None:
        super().__init__()
        object.__setattr__(self, "held", (runner, call, stretch))  # a child would get another name

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        runner, call, stretch = self.held
        stored, tensors = flat((call.args, call.kwargs), Stored), flat((args, kwargs), Tensor)
        instead = {one.file: tensor for one, tensor in zip(stored, tensors, strict=True)}
        seams, outer = Seams(runner, stretch.inner, instead), stretch.outer
        given = {one.file: instead.get(one.file, runner.given(outer.path, one)) for one in outer.inputs}
        cell = runner.cells[outer.path]
        with seams.installed():
            own_args, own_kwargs = runner.arguments(cell.construct, outer, given)
            output = cell(*own_args, **own_kwargs)
        if stretch.until is None:
            return flat(output, Tensor)[0]
        name, position = stretch.until
        reached = flat(seams.got.get(name), Tensor)
        if len(reached) <= position:
            raise CannotRun(f"its output does not reach {name} in MindSpore's net")
        return reached[position]

    def set_train(self, mode: bool = True) -> nn.Cell:
        """Set the Cell around it; returns itself."""
        runner, _, stretch = self.held
        runner.cells[stretch.outer.path].set_train(mode)
        return self


def _stretches(
    runner: Alone, net: nn.Cell, outcome: Outcome, alignment: Alignment, names: Mapping[str, str]
) -> dict[str, Made]:
    """Let modules without Cells of their own run alone where the data flow shows which part of the net computes the
    same; returns how the Cells that have their weights were made."""
    there, holders = dict(net.cells_and_names()), {}
    for path in (path for path, chain in alignment.chains.items() if not chain):
        calls = [call for call in runner.recording.calls.values() if call.path == path]
        stretch = Stretch.of(runner, calls[0], outcome.unwired) if len(calls) == 1 else None
        if stretch is None or names.get(path) not in there:
            continue
        runner.cells[path] = Between(runner, calls[0], stretch)
        holders[path] = there[names[path]]
        outcome.cells[path] = f"{names[path]} ({type(holders[path]).__name__})"
    return made_of(net, holders, names)


def _layers(net: nn.Cell, cells: Mapping[str, nn.Cell], recording: Recording, alignment: Alignment) -> dict[str, Layer]:
    """Each Cell that is a layer, and for its calls in one pass the torch calls that they correspond to."""
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
    needed: Callable[[], Container[str]] | None = None,
    moves: int = 0,
    fresh: bool = False,
) -> None:
    """Record the mindspore-replay trace in `folder`, which has torch's recording; or, while `net` is in a run of Monte
    Carlo arithmetic (`moves`, from 1), the trace of that run.

    net: at the starting weights; `held` are its parameters under torch's names. narrowing: which modules are to run,
    and whether their wiring is judged; all their results are recorded, because causes are found from them. alignment:
    which Cell is which module, and which have no counterpart. needed: once all else is recorded, the labels of the
    containers that are to run alone too; None: all run at once. Draws take the numbers that torch's will take. fresh:
    torch's side of this run has made the recording. Raises BadTrace for a damaged one.
    """
    recording = Recording.open(folder / FOLDER, fresh=fresh)
    names = {path: path for path in recording.modules}
    if not alignment.identity:
        names = {match.torch: match.mindspore for match in alignment.modules}
    torch_paths = {cell: path for path, cell in names.items()}
    cells, said = _cells(net, names, recording, alignment)
    outcome = Outcome(cells=said)
    outcome.made = made_of(net, {path: cell for path, cell in cells.items() if path in names}, names)
    runner = Alone(recording, cells, held, _layers(net, cells, recording, alignment), moves, alignment)
    with fixed(net, Draws(1), torch_paths):
        outcome.unwired = _called_otherwise(runner)
    runner.restore()
    outcome.made |= _stretches(runner, net, outcome, alignment, names)
    name = replayed(MOVED[moves - 1]) if moves else MINDSPORE_REPLAY
    writer = TraceWriter(folder / name, about, sample)
    calls = list(recording.calls.values())
    cut = {parent(name): each for each in alignment.cuts for name in each.torch}
    for call in calls:
        if not narrowing.module(call.path):
            outcome.left_out[call.label] = NOT_ASKED
        elif call.path not in cells:
            outcome.left_out[call.label] = _no_cell(call, recording, cut.get(call.path))
    waits = [call.label for call in calls if call.label in recording.made_by and needed is not None]
    outcome.by_parts = [each for each in waits if each not in outcome.left_out]

    def run(chosen: Sequence[Call]) -> None:
        with fixed(net, Draws(1), torch_paths) as draws:
            for i, call in enumerate(chosen, 1):
                progress(f"MindSpore: module {i} of {len(chosen)} alone", done=i - 1, total=len(chosen))
                draws.restart()
                _run_alone(runner, call, outcome, writer)
                outcome.notes |= {draw.name: SHARED_DRAWS for draw in draws.taken}

    def close() -> None:
        writer.about = {**writer.about, **outcome.head()}
        writer.close()

    run([call for call in calls if call.label not in outcome.left_out and call.label not in outcome.by_parts])
    if {"forward", "gradients"} & {*narrowing.stages}:
        progress("MindSpore: how the modules are wired")
        with fixed(net, Draws(1), torch_paths) as draws:
            record_wiring(runner, outcome, writer, draws)
    close()
    if needed is None:
        return
    labels = needed()
    chosen = [call for call in calls if call.label in outcome.by_parts and call.label in labels]
    if chosen:
        outcome.by_parts = [each for each in outcome.by_parts if each not in labels]
        run(chosen)
        close()


def _no_cell(call: Call, recording: Recording, cut: Cut | None) -> str:
    """Why no Cell does what a module does; cut: how MindSpore's net has its weight, where that is cut otherwise."""
    if call.gives_back and call.label not in recording.made_by and not recording.modules[call.path].parameters:
        return GIVES_BACK
    if cut is None:
        return "MindSpore's net has no Cell of this name"
    cells = ", ".join(dict.fromkeys(map(parent, cut.mindspore)))
    return f"MindSpore's net has it in {cells}, cut otherwise: it is compared in the module around it"


def _run_alone(runner: Alone, call: Call, outcome: Outcome, writer: TraceWriter) -> None:
    """Record one call by itself, or why it could not run."""
    try:
        found = runner.run(call)
    except CannotRun as reason:
        outcome.left_out[call.label] = str(reason)
        return
    except Exception as error:
        outcome.errors[call.label] = f"MindSpore raised {one_line(error)}"
        return
    if runner.trouble:
        outcome.errors[call.label] = runner.trouble
    kind = runner.recording.modules[call.path].kind
    for stage, tensor, array in found:
        writer.add(stage, ALONE, f"{call.label} {tensor}", array, module=kind)
    _write_sides(runner, Part.of_call(call.path, call.number), writer)


def _write_sides(runner: Alone, part: Part, writer: TraceWriter) -> None:
    for name, number, choices in runner.sides:
        writer.add(SIDES_STAGE, part, name, choices, number, whole=True)
    writer.flush(SIDES_STAGE, part)


def record_wiring(runner: Alone, outcome: Outcome, writer: TraceWriter, draws: Draws) -> None:
    """Record what each container computes itself, from the outermost in; fills `errors` and `wired` of `outcome`.

    A Cell that the net calls more or less often than torch calls the module keeps its own output, as it is not known
    which of its calls is which. draws: the numbers for draws, from the first on in each container.
    """
    recording = runner.recording
    got: dict[str, Given] = {}  # what the Cells of containers got from the ones around them
    for call in recording.calls.values():
        inner = recording.handed_on(call, outcome.unwired)
        wired = call.path in runner.cells and not (call.path in outcome.unwired and call.caller)
        if not inner or call.strays or not wired or not any(outcome.asked(one.label, call.label) for one in inner):
            continue
        found, ways = _wired(runner, call, inner, got.pop(call.label, None), outcome, draws)
        assert runner.seams is not None
        got |= {name: given for name, given in runner.seams.got.items() if name in recording.made_by}
        outcome.wired[call.label] = ways
        for stage, name, tensor, array in found:
            if outcome.asked(name, call.label) and (stage != "gradients" or ways == BOTH_WAYS):
                kind = recording.modules[parse_label(name)[0]].kind
                writer.add(stage, WIRING, f"{name} {tensor}", array, module=kind)
        _write_sides(runner, Part.of_wiring(call.path, call.number), writer)


def _wired(
    runner: Alone, call: Call, inner: Sequence[Call], own: Given | None, outcome: Outcome, draws: Draws
) -> tuple[list[Wired], str]:
    """What a container computes itself, and whether in both directions; own: its Cell's arguments in the net."""
    differentiates = any(gradient is not None for gradient in call.gradients)
    draws.restart()
    try:
        found = runner.wired(call, inner, backward=differentiates)
        whole = differentiates and not runner.trouble and runner.seams is not None and not runner.seams.uneven
        return found, BOTH_WAYS if whole else FORWARD
    except CannotRun as reason:
        outcome.left_out.setdefault(call.label, str(reason))
        own = own or runner.own.get(call.path)
        own = None if own is None else _detached(own)
    except Exception:  # maybe only differentiating it fails
        own = None
    draws.restart()
    try:
        return runner.wired(call, inner, own, backward=False), FORWARD
    except Exception as error:
        if not isinstance(error, CannotRun):
            outcome.errors.setdefault(call.label, f"MindSpore raised {one_line(error)}")
        return ([] if runner.seams is None else runner.seams.reached), FORWARD


def _detached(given: Given) -> Given:
    """The arguments with their tensors detached from the graph."""
    args, kwargs = replaced([*given], [Tensor(each.asnumpy()) for each in flat(given, Tensor)])
    return args, kwargs


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
                if not isinstance(output, Tensor):
                    runner.nests.setdefault(path, output)

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
    known = {label(*each) for calls in sure for each in calls if each is not None}
    otherwise: dict[str, str] = {}
    for path in recording.modules:
        cell = runner.cells.get(path)
        if all(call.label in known for call in recording.calls.values() if call.path == path) and path in expected:
            continue
        if cell is None or isinstance(cell, Chain):
            otherwise[path] = "it has no Cell of its own" if cell is None else CHAINED
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
