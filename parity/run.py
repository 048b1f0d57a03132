"""Run both workers side by side, convert the starting weights and align when they are ready, build the report, have
failures diagnosed.

Importing both frameworks into one process costs their memory twice over, they want different settings, and MindSpore's
errors arrive late and blame another line; so this process imports neither.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ..errors import MsmigrateError, WorkerFailed
from ..input_files import read_json
from ..migrate.checkpoint.convert import convert
from . import run_folder
from .align import model_structure
from .align.match_layers import settle
from .build_result import report
from .narrowing import STAGES
from .options import Options, check_inputs
from .record import resume
from .record.step_starts import StepStarts
from .result import Cause, Finding, ModuleVerdict, Report
from .run_folder import CHECKPOINT, LAST_REPLAY, LAST_TRACE, WEIGHTS, claim, log_file
from .verdict import Verdict
from .worker_processes import Team, drop_half_traces, last_words

WORKER = (sys.executable, "-m", "msmigrate.parity.diagnosis.torch_diagnosis_worker")
FAILED, CAUSES, LOG = "failed.json", "causes.json", "diagnosis.log"
LONGEST = 4000  # characters of a cause's text
MOST = 500  # causes of one run

Told = Callable[[str, str], None]


def diagnose(
    recipe_file: Path,
    options: Options,
    report: Report,
    told: Told = lambda framework, doing: None,
    worker: Sequence[str] = WORKER,
    timeout: float | None = None,
) -> list[Cause]:
    """The causes of what failed in a report whose traces lie in options.folder, in the order of the stages.

    timeout: seconds without a word after which the search counts as hung. Raises WorkerFailed when the process that
    looks for them ends without an answer; the report stands without it.
    """
    folder = options.folder
    write_failed(folder, report)
    (folder / CAUSES).unlink(missing_ok=True)
    try:
        with Team(timeout) as team:
            team.start("torch", [*worker, *options.arguments(recipe_file)], folder / LOG)
            for _, said in team.messages():
                if said is not None and "doing" in said:
                    told("torch", said["doing"])
    except WorkerFailed as error:
        raise WorkerFailed(f"the search for causes stopped: {error}") from error
    return read_causes(folder / CAUSES)


def write_failed(folder: Path, report: Report) -> None:
    """Leave the findings that are no pass, and the verdicts of the modules, for the worker."""
    findings = [asdict(f) for f in report.findings if f.verdict is not Verdict.PASS]
    document = {"findings": findings, "modules": [asdict(module) for module in report.modules]}
    (folder / FAILED).write_text(json.dumps(_finite(document)), encoding="utf-8")


def read_failed(folder: Path) -> tuple[list[Finding], list[ModuleVerdict]]:
    """What `write_failed` left. Raises WorkerFailed."""
    path = folder / FAILED
    try:
        document = read_json(path)
        findings = [
            Finding(**{**entry, "verdict": Verdict(entry["verdict"]), "shape": tuple(entry["shape"])})
            for entry in document["findings"]
        ]
        modules = [ModuleVerdict(**{**entry, "verdict": Verdict(entry["verdict"])}) for entry in document["modules"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WorkerFailed(f"{path}: {' '.join(str(error).split())[:300]}") from error
    return findings, modules


def write_causes(path: Path, causes: Sequence[Cause]) -> None:
    """Write causes whole or not at all."""
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(_finite([asdict(cause) for cause in causes])), encoding="utf-8")
    draft.replace(path)


def read_causes(path: Path) -> list[Cause]:
    """The causes in a file that a worker left, by stage. Raises WorkerFailed for anything else."""
    try:
        document = read_json(path)
        if not isinstance(document, list) or len(document) > MOST:
            raise ValueError("expected a list of causes")
        causes = [_cause(entry) for entry in document]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WorkerFailed(f"{path}: {' '.join(str(error).split())[:300]}") from error
    return sorted(causes, key=lambda cause: STAGES.index(cause.stage))


def _cause(entry: Any) -> Cause:
    cause = Cause(**entry)
    texts = (cause.stage, cause.place, cause.text, cause.fix, cause.evidence)
    sound = all(type(text) is str and len(text) <= LONGEST for text in texts)
    sound = sound and (cause.fault is None or type(cause.fault) is str)
    sound = sound and all(n is None or type(n) in (int, float) for n in (cause.ratio, cause.before))
    if not sound or cause.stage not in STAGES:
        raise ValueError(f"{str(entry)[:200]} is no cause")
    return cause


def _finite(value: Any) -> Any:
    """JSON has neither infinity nor NaN."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


TORCH_WORKER = (sys.executable, "-m", "msmigrate.parity.record.torch_worker")
MINDSPORE_WORKER = (sys.executable, "-m", "msmigrate.parity.record.mindspore_worker")


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
        resume.prepare(options.continue_from, options.folder, options.recipe)
    run_workers(recipe_file, options, told, {"torch": torch_worker, "MindSpore": mindspore_worker}, timeout)
    StepStarts(options.folder).remove()
    run_folder.write(recipe_file, options, "both")
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
                team.start(name, [*command, *arguments], log_file(folder, name))
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
        if said.get("event") == "structure" and all(
            model_structure.file(folder, side).exists() for side in model_structure.SIDES
        ):
            settle(folder, options)
