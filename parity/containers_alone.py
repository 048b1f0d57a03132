"""Which containers have to run alone: those that are not judged by their parts.

A container is the modules that it calls and its own computation between them. It agrees where every module that it
calls agrees alone and its own computation agrees forward and backward, on torch's outputs and on made-up gradients.
Where one of these fails or could not be judged, it runs alone too, and so does every container around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ..input_files import read_json, typed
from .compare_traces import Traces, compare_replayed
from .options import Narrowing
from .replay.module_calls import (
    BOTH_WAYS,
    FOLDER,
    FORWARD,
    NOT_ASKED,
    Outcome,
    Recording,
    comes_from_around,
    failed,
)
from .result import Finding
from .run_folder import write_json
from .tensor_verdict import Unjudged, Verdict

FILE = "containers.json"  # in a run's folder: the labels of those that are to run alone, once it is known
RAN = "containers-ran"  # empty, there once they have in MindSpore
CERTAIN = (Unjudged.STORAGE, Unjudged.ZERO_GRADIENT)  # why a tensor has no verdict while others do


def choose(folder: Path, narrowing: Narrowing) -> list[Finding] | None:
    """Judge what ran alone so far, and write FILE; the findings, or None where more will run. Raises BadTrace."""
    traces = Traces.load(folder, fresh=True)
    assert traces.mindspore_replayed is not None
    recording, outcome = Recording.open(folder / FOLDER), Outcome.of(traces.mindspore_replayed)
    findings = compare_replayed(traces, narrowing)
    needed = suspects(traces, recording, outcome, findings)
    labels = [label for label in outcome.by_parts if label in needed]
    write_json(folder / FILE, labels)
    return None if labels else findings


def suspects(traces: Traces, recording: Recording, outcome: Outcome, findings: Iterable[Finding]) -> set[str]:
    """The calls that differ from torch's or may differ, by these findings on modules alone, and those around them."""
    raised = {label for trace in traces.replayed for label in failed(trace)}
    return around(recording, [*unjudged(recording, outcome), *_differing(recording, findings), *raised])


def around(recording: Recording, labels: Iterable[str | None]) -> set[str]:
    """These calls, and the calls inside which they happened."""
    return {name for label in labels for name in recording.around(label)}


def chosen(file: Path) -> list[str]:
    """The labels that `choose` wrote."""
    return typed(list[str], read_json(file))


def _differing(recording: Recording, findings: Iterable[Finding]) -> Iterator[str | None]:
    """The calls that differ from torch's, or may."""
    for finding in findings:
        label, _, tensor = finding.name.rpartition(" ")
        if finding.verdict is Verdict.PASS or finding.unjudged in CERTAIN:
            continue
        call = recording.calls.get(label)
        yield label if call is None or not comes_from_around(tensor) else call.caller


def unjudged(recording: Recording, outcome: Outcome) -> Iterator[str]:
    """The calls that could not run alone, or whose own computing could not be compared in both directions."""
    yield from (label for label, why in outcome.could_not_run.items() if why != NOT_ASKED)
    yield from outcome.errors
    as_it_is = outcome.runs_unwired
    for label, call in recording.calls.items():
        inside = label in recording.made_by
        ways = BOTH_WAYS if any(gradient is not None for gradient in call.gradients) else FORWARD
        unwired = inside and outcome.wired.get(label) not in (BOTH_WAYS, ways)
        foreign = inside and None in recording.modules[call.path].used  # a parameter from outside, which is not judged
        if unwired or foreign or not call.is_plain or call.path in as_it_is:
            yield label
