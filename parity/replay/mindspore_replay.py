"""MindSpore's side of the replay: every Cell alone, on torch's recorded inputs and upstream gradients.

PyNative only: in Graph mode hooks on Cells never fire, and each Cell would be compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mindspore import nn

from ...train.models.mindspore_names import Canonical
from ..fixed_randomness import Draws
from ..mindspore_randomness import fixed
from ..narrowing import WHOLE, Narrowing
from ..start import MINDSPORE_REPLAY
from ..trace import ALONE, SIDES_STAGE, TraceWriter
from .calls import FOLDER, Recording
from .mindspore_alone import Alone, CannotRun
from .mindspore_wiring import record_wiring
from .outcome import NOT_ASKED, Outcome, one_line

SHARED_DRAWS = "took the same random draws in both frameworks"


def replay(
    folder: Path,
    net: nn.Cell,
    held: Sequence[Canonical],
    about: dict[str, object],
    narrowing: Narrowing = WHOLE,
    names: Mapping[str, str] | None = None,
    sample: int | None = None,
    progress: Callable[[str], None] = lambda what: None,
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
        progress(f"MindSpore: module {i} of {len(recording.calls)} alone")
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
        part = f"{ALONE} {call.path}#{call.number}"
        for name, number, choices in runner.sides:
            writer.add(SIDES_STAGE, part, name, choices, number, whole=True)
        writer.flush(SIDES_STAGE, part)
    if "forward" in narrowing.stages:
        progress("MindSpore: how the modules are wired")
        with fixed(net, Draws(1), torch_paths) as draws:
            record_wiring(runner, outcome, writer, draws)
    writer.about = {**writer.about, **outcome.head()}
    writer.close()
