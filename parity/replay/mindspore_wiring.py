"""MindSpore's half of the wiring (torch_wiring.py): one forward pass with every Cell's output replaced by torch's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from mindspore import Tensor

from ..fixed_randomness import Draws
from ..trace import TraceWriter
from .calls import WIRING, Call, label, tensor_name
from .mindspore_alone import Alone, CannotRun, arguments, as_array, tensors
from .outcome import Outcome, one_line
from .values import Stored, flat, rebuilt


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

    def seen(call: Call, what: str, values: Any) -> None:
        if not outcome.asked(call.label, call.caller if what == "input" else None):
            return
        # tensors that it gets besides torch's are no business of its surroundings' wiring
        expected = len(flat((call.args, call.kwargs))) if what == "input" else None
        for i, tensor in enumerate(tensors(values)[:expected]):
            kind = recording.modules[call.path].kind
            writer.add("forward", WIRING, f"{call.label} {tensor_name(what, i)}", as_array(tensor), module=kind)

    def forced(path: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def construct(*args: Any, **kwargs: Any) -> Any:
            call = recording.calls[label(path, numbers[path])]
            numbers[path] += 1
            seen(call, "input", (args, kwargs))
            if not recording.modules[path].children and isinstance(call.output, Stored):
                return runner.tensor(call.output)
            try:
                given, named = _torch_arguments(runner, original, call) or (args, kwargs)
                output = original(*given, **named)
                if recording.modules[path].children:
                    seen(call, "output", output)
            except Exception as error:
                outcome.errors.setdefault(call.label, f"MindSpore raised {one_line(error)}")
                return rebuilt(call.output, runner.tensor)
            return _replaced(output, [runner.tensor(stored) for stored in flat(call.output)])

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
    if len(tensors(output)) != len(by):
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
        for tensor in tensors(cell(*args, **kwargs)):
            as_array(tensor)
