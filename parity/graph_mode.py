"""The compiled step, judged as the PyNative one is, and where the two modes differ.

A compiled step shows nothing of its inside: no hook on a Cell fires. So it is judged end to end, by outputs, losses,
gradients, updates and the optimizer's state, against the same torch runs and their noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..errors import BadTrace
from ..printable import shortened
from .compare_traces import Traces, compare, is_model_output
from .options import MODEL, WHOLE, Narrowing, Stage
from .result import Finding
from .tensor_verdict import RATIO, Unjudged, Verdict
from .trace import REDUCED_GRADIENTS, Entry, Key, Part, Trace

GRAPH = "mindspore-graph"  # the trace's name
MARK = "graph "  # the prefix of its findings' parts
FAILED, UNFIXED = "failed", "not fixed"  # in the trace's head: why there is no compiled step to judge
EVALUATION_FAILED = "evaluation failed"  # also there: why there is no compiled evaluation
AGAIN = "compiled again"  # also there: what was compiled more than once, and why
UNSEEN = "own step"  # also there: whether one side's step is the user's own, so that its inside does not show
HALF = "in half precision the two modes round differently, and which side its ReLUs took cannot be seen"


@dataclass(frozen=True)
class Compiled:
    """The result of judging the compiled step: findings, whose parts begin with MARK, and notes on the two modes."""

    findings: list[Finding]
    notes: list[str]


def judge_compiled(
    folder: Path, traces: Traces, pynative: list[Finding], half: bool = False, narrowing: Narrowing = WHOLE
) -> Compiled:
    """Judge folder/mindspore-graph; pynative: the findings of the same step in PyNative mode, which come first.

    half: the step is in mixed precision. There a gradient that differs in the compiled step alone gets no verdict: the
    reference takes the PyNative step's side at kinks, and those of the compiled one cannot be seen.

    Raises BadTrace for a trace that is damaged or of another recipe.
    """
    graph = Trace(folder / GRAPH)
    if graph.about.get("recipe") != traces.mindspore.about["recipe"]:
        said = shortened(str(graph.about.get("recipe")), 40)
        raise BadTrace(f"{graph.folder} is of recipe {said}: record both modes in one run")
    # the stage that a finding on the compiled step as a whole belongs to
    stage: Stage = next((s for s in narrowing.stages if s not in ("data", "init")), "forward")
    place = (stage, Part(f"{MARK}step1"), MODEL, len(pynative))
    failed, unfixed = graph.about.get(FAILED), graph.about.get(UNFIXED)
    if isinstance(failed, str):
        whole = Finding(*place, Verdict.FAIL, f"does not compile: {failed}")
        return Compiled([whole], [])
    if isinstance(unfixed, list) and unfixed:
        why = f"what it draws cannot be fixed in a compiled step: {', '.join(map(str, unfixed[:5]))}"
        whole = Finding(*place, Verdict.NONE, why, unjudged=Unjudged.DRAWS)
        return Compiled([whole], [f"the compiled step was not judged; {why}"])
    every = (entry for trace in traces.matched for entry in trace.entries.values() if entry.stage != "forward")
    # reduced gradients are only tried in PyNative mode
    stepped = _by_place(entry for entry in every if entry.part != REDUCED_GRADIENTS)
    compiled = _by_place(graph.entries.values())
    stepped |= compiled
    if any(is_model_output(entry) for entry in graph.entries.values()):
        stepped |= _by_place(entry for entry in traces.mindspore.entries.values() if is_model_output(entry))
    theirs = compare(replace(traces, mindspore=graph, replayed=(), mindspore_replayed=None), narrowing)
    judged = [finding for finding in theirs if (finding.stage, finding.part, finding.name) in stepped]
    before: dict[tuple[str, str, str], Finding] = {(f.stage, f.part, f.name): f for f in pynative}
    found, unseen = [], set()
    for i, finding in enumerate(judged):
        place_of = (finding.stage, finding.part, finding.name)
        other = before.get(place_of)
        if other is None and (place_of not in compiled or is_model_output(finding)):
            continue  # what only torch's step shows is judged in neither mode, and a note says so
        gradient = finding.stage == "gradients"
        if place_of not in compiled and graph.about.get(UNSEEN) is True and (gradient or finding.name == "logits"):
            unseen.add("gradients" if gradient else "the logits")
            continue
        alone = other is not None and other.verdict is Verdict.PASS
        if half and alone and finding.verdict is Verdict.FAIL and finding.stage in ("gradients", "update"):
            why = f"{finding.why}; {HALF}"
            finding = replace(finding, verdict=Verdict.NONE, why=why, unjudged=Unjudged.NOT_COMPILED_ALIKE)
        only_here = finding.verdict is Verdict.FAIL and other is not None and other.verdict is not Verdict.FAIL
        why = f"{finding.why}; in PyNative mode it does not fail" if only_here else finding.why
        found.append(replace(finding, part=Part(MARK + finding.part), order=len(pynative) + i, why=why))
    if isinstance(evaluation := graph.about.get(EVALUATION_FAILED), str):
        why = f"does not compile: {evaluation}"
        found.append(Finding("forward", Part(f"{MARK}eval"), MODEL, len(pynative) + len(judged), Verdict.FAIL, why))
    notes = _differences(graph, traces.mindspore, before)
    if unseen:
        what = " and ".join(sorted(unseen))
        notes.append(f"not judged in the compiled step: {what}, which it shows where it returns them in a dict")
    again = graph.about.get(AGAIN)
    return Compiled(found, [*notes, *map(str, again if isinstance(again, list) else ())])


def _by_place(entries: Iterable[Entry]) -> dict[tuple[str, str, str], Key]:
    return {(entry.stage, entry.part, entry.label): entry.key for entry in entries}


def _differences(graph: Trace, pynative: Trace, judged: Mapping[tuple[str, str, str], Finding]) -> list[str]:
    """One note: how far the two modes are from each other, and where by more than the noise allows."""
    equal, compared, beyond, worst = 0, 0, [], (0.0, "")
    for key, entry in graph.entries.items():
        if key not in pynative.entries:
            continue
        compared += 1
        here, there = graph.array(key), pynative.array(key)  # compiled, PyNative
        if here.shape == there.shape and np.array_equal(here, there, equal_nan=True):
            equal += 1
            continue
        place = (entry.stage, entry.part, entry.label)
        distance = _distance(here, there, judged.get(place))
        worst = max(worst, (distance, f"{entry.stage} ({entry.part}) {entry.label}"))
        if distance > RATIO:
            beyond.append(f"{entry.stage} ({entry.part}) {entry.label}")
    if not compared:
        return ["the compiled and the PyNative step recorded nothing in common"]
    if equal == compared:
        return [f"the compiled step equals the PyNative one to the bit, in all {compared} tensors"]
    text = f"the compiled step equals the PyNative one to the bit in {equal} of {compared} tensors"
    if beyond:
        return [f"{text}, and differs by more than noise in {len(beyond)}, such as {beyond[0]}"]
    return [f"{text}; the others are at most {worst[0]:.2g} times the noise apart (most in {worst[1]})"]


def _distance(compiled: np.ndarray, pynative: np.ndarray, judged: Finding | None) -> float:
    """The distance of two recordings, in units of what the PyNative one was judged by; infinite if it was not."""
    if compiled.shape != pynative.shape or judged is None or not judged.allowed:
        return float("inf")
    size = float(np.linalg.norm(pynative.astype(np.float64))) or 1.0
    distance = float(np.linalg.norm(compiled.astype(np.float64) - pynative.astype(np.float64)))
    return RATIO * distance / (judged.allowed * size) if np.isfinite(distance) else float("inf")
