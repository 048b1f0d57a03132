"""From the findings of the replay to one verdict a module, and whose the fault is.

The deepest failing modules are at fault: a container that fails while all that is in it pass, or that hands on the
wrong tensor (its wiring), has a fault of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..findings import Finding, ModuleVerdict
from ..judge import Verdict
from ..start import MINDSPORE_REPLAY
from ..trace import ALONE, Trace
from .calls import FOLDER, WIRING, Module, Recording, parse_label
from .outcome import Outcome


def module_verdicts(folder: Path, findings: Iterable[Finding]) -> list[ModuleVerdict]:
    """One verdict for each module that torch's step called, in execution order; empty where nothing was replayed.

    folder: of the run, with the recording and MindSpore's replay; findings: what `compare` found. Raises BadTrace for a
    damaged recording or trace.
    """
    if not (folder / FOLDER).exists():
        return []
    recording = Recording.open(folder / FOLDER)
    outcome = Outcome.of(Trace(folder / MINDSPORE_REPLAY))
    alone: dict[str, list[Finding]] = {}
    wiring: dict[str, list[Finding]] = {}
    for finding in findings:
        called, _, tensor = finding.name.rpartition(" ")
        if finding.part == ALONE:
            alone.setdefault(parse_label(called)[0], []).append(finding)
        elif finding.part == WIRING:
            at = _giver(recording, outcome, called) if tensor.startswith("input") else parse_label(called)[0]
            wiring.setdefault(at, []).append(finding)
    failing = {path for family in (alone, wiring) for path, found in family.items() if _failed(found)}
    asked = {call.path for call in recording.calls.values() if outcome.asked(call.label)}
    order: dict[str, int] = {}
    for i, call in enumerate(recording.calls.values()):
        order.setdefault(call.path, i)
    return [
        _verdict(recording, outcome, recording.modules[path], i, alone.get(path, []), wiring.get(path, []), failing)
        for path, i in order.items()
        if path in alone or path in wiring or path in asked
    ]


def _giver(recording: Recording, outcome: Outcome, called: str) -> str:
    """The path of the module that decides what reaches a call: the innermost around it that was wired."""
    call = recording.calls.get(called)
    if call is None:  # MindSpore alone called it
        return parse_label(called)[0].rpartition(".")[0]
    for _ in recording.calls:  # not for ever, whatever the file says
        call = recording.calls.get(call.caller) if call.caller is not None else None
        if call is None:
            return ""
        if call.path not in outcome.unwired:
            return call.path
    return ""


def _verdict(
    recording: Recording,
    outcome: Outcome,
    module: Module,
    order: int,
    alone: list[Finding],
    wiring: list[Finding],
    failing: set[str],
) -> ModuleVerdict:
    found = [*alone, *wiring]
    path, inside = module.path, [each.path for each in recording.inside(module.path) if each.path != module.path]
    first = next((f for f in found if f.verdict is Verdict.FAIL), None)
    if first is not None:
        verdict = Verdict.FAIL
    else:
        passed = sum(f.verdict is Verdict.PASS for f in alone)
        verdict = Verdict.PASS if alone and 2 * passed >= len(alone) else Verdict.NONE
    ratios = [f.ratio for f in found if f.ratio is not None]
    reasons = [why for name, why in outcome.left_out.items() if parse_label(name)[0] == path]
    notes = [f"did not run alone: {reasons[0]}"] if reasons else []
    notes += [outcome.notes[path]] if path in outcome.notes else []
    own = _failed(wiring) or (_failed(alone) and not any(each in failing for each in inside))
    unknown = [name for name in outcome.left_out if parse_label(name)[0] in inside] if own else []
    notes += [f"{unknown[0]} in it did not run alone, and may be the one"] if unknown and not _failed(wiring) else []
    return ModuleVerdict(
        path,
        module.kind,
        outcome.cells.get(path, ""),
        verdict,
        own,
        path.count(".") + 1 if path else 0,
        order,
        max(ratios, default=None),
        f"{first.place}: {first.why}" if first else "",
        "; ".join(notes),
    )


def _failed(findings: Iterable[Finding]) -> bool:
    return any(finding.verdict is Verdict.FAIL for finding in findings)
