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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import MsmigrateError, WorkerFailed
from ..input_files import read_json, typed
from ..migrate.checkpoint.convert import convert
from ..printable import quoted
from ..workers.messages import BEGUN, COUNTED, DIVERGED, Event, OnMessage, Progress, Ready, State, ignore
from ..workers.parent import Workers
from . import containers_alone, run_folder
from .align import model_structure
from .align.match_layers import align_pair
from .build_result import early_failure, report
from .compare_traces import SIDES, Sides, Traces, compare_steps, only_later_steps_fail
from .job import ParityJob, check_inputs
from .options import STAGES
from .record import resume
from .record.recorder import StepStarts
from .result import Cause, Finding, ModuleVerdict, Report
from .run_folder import (
    CHECKPOINT,
    EVERY_STEP,
    LAST_REPLAY,
    LAST_TRACE,
    MINDSPORE,
    TORCH64,
    WEIGHTS,
    claim,
    drop_half_traces,
    log_file,
    write_json,
)
from .tensor_verdict import Verdict

WORKER = (sys.executable, "-m", "msmigrate.parity.diagnosis.torch_diagnosis_worker")
FAILED, CAUSES, LOG = "failed.json", "causes.json", "diagnosis.log"
LONGEST = 4000  # characters of a cause's text
MOST = 500  # causes of one run
# What one pass frees the next one needs: glibc's malloc would give it back to the system and have it faulted in again,
# which was measured to cost a tenth of the run. torch's threads sleep while they wait for one another: they would spin
# on a core that MindSpore's side, or another program, could use.
WORKER_SETTINGS = {
    "MALLOC_MMAP_THRESHOLD_": "4000000000",
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
    "OMP_WAIT_POLICY": "PASSIVE",
}


def diagnose(
    job: ParityJob, report: Report, on_message: OnMessage = ignore, worker: Sequence[str] = WORKER
) -> list[Cause]:
    """The causes of what failed in a report whose traces lie in job.folder, first things first.

    Raises WorkerFailed when the process that looks for them ends without an answer; the report stands without it.
    """
    folder = job.folder
    write_failed(folder, report)
    (folder / CAUSES).unlink(missing_ok=True)
    try:
        with _written(job) as file, Workers(job.timeout) as workers:
            workers.start("torch", [*worker, str(file)], folder / LOG, WORKER_SETTINGS)
            for each, message in workers.messages():
                on_message(each.name, message)
    except MsmigrateError as error:
        raise WorkerFailed(f"the search for causes stopped: {error}") from error
    return read_causes(folder / CAUSES)


@contextmanager
def _written(job: ParityJob) -> Iterator[Path]:
    """The job's file in its folder, while the processes that read it run."""
    file = job.folder / run_folder.JOB
    try:
        job.write(file)
        yield file
    finally:
        file.unlink(missing_ok=True)


@dataclass(frozen=True)
class Failed:
    """What a search for causes starts from: the findings that did not pass, the modules' verdicts, the two sides."""

    findings: list[Finding]
    modules: list[ModuleVerdict]
    sides: Sides = SIDES


def write_failed(folder: Path, report: Report) -> None:
    """Leave the findings that did not pass, and the verdicts of the modules, for the worker."""
    findings = [f for f in report.findings if f.verdict is not Verdict.PASS]
    (folder / FAILED).write_text(
        json.dumps(_finite(asdict(Failed(findings, report.modules, report.sides)))), encoding="utf-8"
    )


def read_failed(folder: Path) -> Failed:
    """What `write_failed` left. Raises WorkerFailed."""
    path = folder / FAILED
    try:
        return typed(Failed, read_json(path))
    except (OSError, ValueError, RecursionError) as error:
        raise WorkerFailed(f"{path}: {' '.join(str(error).split())[:300]}") from error


def write_causes(path: Path, causes: Sequence[Cause]) -> None:
    """Write causes whole or not at all."""
    write_json(path, _finite([asdict(cause) for cause in causes]))


def read_causes(path: Path) -> list[Cause]:
    """The causes in a file that a worker left, first things first. Raises WorkerFailed for anything else."""
    try:
        causes = typed(list[Cause], read_json(path))
        texts = [text for each in causes for text in (each.place, each.text, each.fix, each.evidence)]
        if len(causes) > MOST or any(len(text) > LONGEST for text in texts):
            raise ValueError("more than any search finds")
        if unknown := [each.stage for each in causes if each.stage not in STAGES]:
            raise ValueError(f"there is no stage {quoted(unknown[0])}")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WorkerFailed(f"{path}: {' '.join(str(error).split())[:300]}") from error
    return causes


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
    job: ParityJob,
    on_message: OnMessage = ignore,
    torch_worker: Sequence[str] = TORCH_WORKER,
    mindspore_worker: Sequence[str] = MINDSPORE_WORKER,
) -> Report:
    """Record and compare one recipe; the traces stay in job.folder, which has to be empty or new.

    on_message: called with the framework and what its process says. Raises BadInput for a folder in use, WorkerFailed
    when a framework's process stops early, what it raised, and what convert-ckpt raises for the starting weights.
    """
    began = time.monotonic()
    job = replace(job, together=True)
    check_inputs(job.recipe, job.pair)
    claim(job.folder)
    if job.continue_from is not None:
        resume.prepare(job.continue_from, job.folder, job.recipe)
    seen = run_workers(job, {"torch": torch_worker, "MindSpore": mindspore_worker}, on_message)
    StepStarts(job.folder).remove()
    run_folder.write(recipe_file, job, "both")
    for framework in LAST_TRACE:
        on_message(framework, Progress("comparing"))
    found = report(recipe_file, job, stepped=seen.stepped, replayed=seen.replayed)
    if found.first_divergence is not None and not seen.reported:
        on_message("torch", Event(DIVERGED, {"at": found.first_divergence.place}))
    if not job.no_diagnosis and not found.parity:
        found = with_causes(job, found, on_message)
    return replace(found, seconds=time.monotonic() - began)


@dataclass
class Seen:
    """What was known before the workers ended: whether a failure was reported, and the findings on the steps and on the
    modules that ran alone."""

    reported: bool = False
    stepped: list[Finding] | None = None
    replayed: list[Finding] | None = None


def run_workers(job: ParityJob, commands: Mapping[str, Sequence[str]], on_message: OnMessage = ignore) -> Seen:
    """Run the workers (framework -> command) side by side until all have ended; whatever happens, no worker and no
    incomplete trace is left."""
    try:
        with _written(job) as file, Workers(job.timeout) as workers:
            for name, command in commands.items():
                workers.start(name, [*command, str(file)], log_file(job.folder, name), WORKER_SETTINGS)
                on_message(name, Event(BEGUN))
            return _attend(workers, job, on_message)
    except BaseException:
        drop_half_traces(job.folder)
        raise


def with_causes(job: ParityJob, found: Report, on_message: OnMessage) -> Report:
    """The report with the causes of its failures, or with a note of why the search for them stopped."""
    on_message("torch", Progress("looking for causes"))
    notes = list(found.notes)
    if job.continue_from is not None and any(f.stage == "update" for f in found.findings if f.verdict is Verdict.FAIL):
        notes.append("causes of updates are not looked for with --continue-from; without it they are")
    try:
        known = {(cause.stage, cause.place) for cause in found.causes}
        causes = [c for c in diagnose(job, found, on_message) if c.fault or (c.stage, c.place) not in known]
        return replace(found, causes=[*found.causes, *causes], notes=notes)
    except WorkerFailed as error:
        return replace(found, notes=[*found.notes, str(error)])


def _attend(workers: Workers, job: ParityJob, on_message: OnMessage) -> Seen:
    """Pass on the workers' messages until all have ended. As soon as the files are there, convert the starting weights,
    align the structures of a pair, judge what needs no training step, then the steps, and choose the containers that
    have to run alone."""
    folder, recorded, seen = job.folder, set[str](), Seen()
    structures = [model_structure.file(folder, side) for side in model_structure.SIDES]
    for worker, message in workers.messages():
        if worker.progress.state is State.ENDED:
            last = LAST_REPLAY if job.replays and not job.alone else LAST_TRACE
            if not (folder / last[worker.name] / "trace.json").exists():  # the other one would wait for ever
                raise WorkerFailed(f"the {worker.name} side ended without its trace: {worker.last_words()}")
            on_message(worker.name, Progress("done", State.ENDED))
            continue
        on_message(worker.name, message)
        if not isinstance(message, Ready):
            continue
        if message.artifact == WEIGHTS:
            try:
                plan = convert(folder / WEIGHTS, folder / CHECKPOINT).plan
            except MsmigrateError as error:
                raise type(error)(f"the starting weights do not convert: {error}") from error
            on_message(worker.name, Event(COUNTED, {"tensors": len(plan.written)}))
        elif message.artifact in [file.name for file in structures] and all(file.exists() for file in structures):
            align_pair(job)
            held = [t for module in model_structure.read(structures[0]).modules for t in module.tensors.values()]
            counted = sum("int" not in t.dtype for t in held)  # no counters, such as num_batches_tracked
            on_message(worker.name, Event(COUNTED, {"tensors": counted}))
        elif message.artifact in (TORCH64, MINDSPORE):
            recorded.add(message.artifact)
            failed = early_failure(job) if recorded == {TORCH64, MINDSPORE} else None
            if failed is not None:
                seen.reported = True
                on_message(worker.name, Event(DIVERGED, {"at": failed.place}))
        elif message.artifact == LAST_TRACE["torch"]:  # the steps are judged while modules run alone
            if (folder / MINDSPORE / "trace.json").exists():  # always where any step is taken
                traces = Traces.load(folder, steps_alone=True, fresh=True)
                seen.stepped = compare_steps(traces, job.narrowing)
                if job.may_measure_again:
                    write_json(folder / EVERY_STEP, only_later_steps_fail(traces, seen.stepped))
        elif message.artifact == EVERY_STEP:
            seen.stepped = compare_steps(Traces.load(folder, steps_alone=True, fresh=True), job.narrowing)
        elif message.artifact in LAST_REPLAY.values():
            recorded.add(message.artifact)
            if recorded >= {*LAST_REPLAY.values()}:
                seen.replayed = containers_alone.choose(folder, job.narrowing)
    return seen
