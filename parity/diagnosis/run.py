"""Have the failures of a report explained, in a torch process of its own: hypotheses are tried on the torch side."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...errors import WorkerFailed
from ...input_files import read_json
from ..findings import Cause, Finding, ModuleVerdict, Report
from ..judge import Verdict
from ..trace import STAGES
from ..worker import Options
from ..worker_processes import Team

WORKER = (sys.executable, "-m", "msmigrate.parity.diagnosis.torch_worker")
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
