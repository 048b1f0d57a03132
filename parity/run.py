"""Run both recorders side by side, each framework in a process of its own, and compare what they leave.

Importing both frameworks into one process costs their memory twice over, they want different settings, and MindSpore's
errors arrive late and blame another line; so this process imports neither.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import BadDestination, BadInput, MsmigrateError, WorkerFailed
from ..migrate.convert import convert
from . import continued, run_file
from .diagnosis.run import diagnose
from .findings import Report
from .judge import Verdict
from .judged_run import report
from .pair import check_inputs
from .pairs import structure
from .pairs.settle import settle
from .start import CHECKPOINT, MINDSPORE, MINDSPORE_REPLAY, TORCH32_OTHER, WEIGHTS, matched, replayed
from .step_starts import StepStarts
from .worker import Options
from .worker_processes import Team, drop_half_traces, last_words

__all__ = ["MINDSPORE_WORKER", "TORCH_WORKER", "Told", "claim", "parity_step", "report", "run_workers"]

TORCH_WORKER = (sys.executable, "-m", "msmigrate.parity.torch_worker")
MINDSPORE_WORKER = (sys.executable, "-m", "msmigrate.parity.mindspore_worker")
LAST_TRACE = {"torch": matched(TORCH32_OTHER), "MindSpore": MINDSPORE}  # what a side has left when it ends
LAST_REPLAY = {"torch": replayed(TORCH32_OTHER), "MindSpore": MINDSPORE_REPLAY}  # and when modules also run alone
Told = Callable[[str, str], None]  # (framework, what it is doing now)


def parity_step(
    recipe_file: Path,
    options: Options,
    told: Told = lambda framework, doing: None,
    torch_worker: Sequence[str] = TORCH_WORKER,
    mindspore_worker: Sequence[str] = MINDSPORE_WORKER,
    *,
    explain: bool = True,
    timeout: float | None = None,
) -> Report:
    """Record and compare one recipe; the traces stay in options.folder, which has to be empty or new.

    told: called with (framework, what it is doing) as the work goes on. explain: look for the causes of what fails.
    timeout: seconds without a word of progress after which a framework counts as hung. Raises BadInput for a folder in
    use, WorkerFailed when a framework's process stops early, and what convert-ckpt raises for the starting weights.
    """
    began = time.monotonic()
    check_inputs(options.recipe, options.pair)
    claim(options.folder)
    if options.continue_from is not None:
        continued.prepare(options.continue_from, options.folder, options.recipe)
    run_workers(recipe_file, options, told, {"torch": torch_worker, "MindSpore": mindspore_worker}, timeout)
    StepStarts(options.folder).remove()
    run_file.write(recipe_file, options, "both")
    told("both", "comparing")
    found = report(recipe_file, options)
    if explain and not found.parity:
        found = _explained(recipe_file, options, found, told, timeout)
    return replace(found, seconds=time.monotonic() - began)


def run_workers(
    recipe_file: Path,
    options: Options,
    told: Told,
    commands: Mapping[str, Sequence[str]],
    timeout: float | None = None,
) -> None:
    """Run the workers (framework -> command) side by side until all have ended; whatever happens, none is left, nor a
    trace that is not whole. timeout: seconds without a word of progress after which a worker counts as hung."""
    folder, arguments = options.folder, options.arguments(recipe_file)
    try:
        with Team(timeout) as team:
            for name, command in commands.items():
                team.start(name, [*command, *arguments], _log(folder, name))
            _attend(team, options, told)
    except BaseException:
        drop_half_traces(folder)
        raise


def _explained(recipe_file: Path, options: Options, found: Report, told: Told, timeout: float | None = None) -> Report:
    """The report with the causes of its failures, or with a note of why the search for them stopped."""
    told("torch", "looking for causes")
    notes = list(found.notes)
    if options.continue_from is not None and any(
        f.stage == "update" for f in found.findings if f.verdict is Verdict.FAIL
    ):
        notes.append("causes of updates are not looked for behind a checkpoint: they are without --continue-from")
    try:
        causes = diagnose(recipe_file, options, found, told, timeout=timeout)
        return replace(found, causes=[*found.causes, *causes], notes=notes)
    except WorkerFailed as error:
        return replace(found, notes=[*found.notes, str(error)])


def claim(folder: Path) -> None:
    """Make the folder, which must hold nothing yet. Raises BadInput."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        in_use = any(folder.iterdir())
        if not in_use:
            for name in LAST_TRACE:
                _log(folder, name).touch()
    except OSError as error:
        raise BadDestination(f"{folder}: traces cannot be kept here: {error.strerror or error}") from error
    if in_use:
        raise BadInput(f"{folder} is not empty; traces of two runs would mix: name another folder")


def _log(folder: Path, name: str) -> Path:
    return folder / f"{name.lower()}.log"


def _attend(team: Team, options: Options, told: Told) -> None:
    """Pass on what the workers say until all have ended; convert the starting weights, and align the structures of a
    pair, when they are there."""
    folder = options.folder
    for worker, said in team.messages():
        if said is None:
            last = LAST_REPLAY if options.replays and not options.alone else LAST_TRACE
            if not (folder / last[worker.name] / "trace.json").exists():  # the other one would wait for ever
                raise WorkerFailed(f"the {worker.name} side ended without its trace: {last_words(worker.log)}")
            continue
        if "doing" in said:
            told(worker.name, said["doing"])
        if said.get("event") == "start":
            try:
                convert(folder / WEIGHTS, folder / CHECKPOINT)
            except MsmigrateError as error:
                raise type(error)(f"the starting weights do not convert: {error}") from error
        if said.get("event") == "structure" and all(structure.file(folder, side).exists() for side in structure.SIDES):
            settle(folder, options)
