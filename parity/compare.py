"""Compare the traces of a run, tensor by tensor; needs NumPy and safetensors only, so any machine can do it.

Nothing passes by absence: an entry that one side lacks is a finding, and so is one that is empty or not finite. The
comparison never transposes, reshapes or casts to make two tensors agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadTrace
from .findings import Finding
from .initial import PART as DISTRIBUTION
from .initial import compare_distributions
from .judge import Verdict, judge
from .noise import UsualNoise
from .start import MINDSPORE, TORCH32, TORCH32_OTHER, TORCH64, matched
from .trace import SIDES_STAGE, STAGES, Entry, Key, Trace

# MindSpore's counterpart of a dtype, where it is not the same one: class labels, and the optimizers' step counters
COUNTERPARTS = {("int64", "int32"): "labels", ("float32", "int32"): "step"}


@dataclass(frozen=True)
class Traces:
    """The traces of one run: torch float64 and the float32 runs that measure its noise, the same with MindSpore's
    choices at kinks, and MindSpore's."""

    alone: Sequence[Trace]  # float64, float32, float32 in another layout
    matched: Sequence[Trace]
    mindspore: Trace

    @classmethod
    def load(cls, folder: Path) -> Traces:
        """Open the traces of a run's folder. Raises BadTrace when one is missing or from another recipe."""
        names = (TORCH64, TORCH32, TORCH32_OTHER)
        alone = [Trace(folder / name) for name in names]
        traces = cls(alone, [Trace(folder / matched(name)) for name in names], Trace(folder / MINDSPORE))
        for trace in (*traces.alone, *traces.matched, traces.mindspore):
            if not isinstance(trace.about.get("recipe"), str) or not isinstance(trace.about.get("versions"), dict):
                raise BadTrace(
                    f"{trace.folder / 'trace.json'}: does not say of which recipe it is, or recorded by what"
                )
        for trace in (*traces.alone, *traces.matched):
            if trace.about["recipe"] != traces.mindspore.about["recipe"]:
                raise BadTrace(
                    f"{trace.folder.name} is of recipe {trace.about['recipe']}, {MINDSPORE} of "
                    f"{traces.mindspore.about['recipe']}: record both from the same recipe"
                )
        return traces


def compare(traces: Traces) -> list[Finding]:
    """Judge every tensor that any side recorded; the findings come by stage and in execution order."""
    usual = {id(family): UsualNoise(family, traces.alone[1]) for family in (traces.alone, traces.matched)}
    expected = _expected(traces).values()
    findings = [_finding(family, entry, traces.mindspore, usual[id(family)]) for family, entry in expected]
    known = {key for family in (traces.alone, traces.matched) for trace in family for key in trace.entries}
    for key, entry in traces.mindspore.entries.items():
        if key not in known and entry.stage != SIDES_STAGE:
            findings.append(_told(entry, Verdict.FAIL, "only MindSpore has this tensor; torch recorded none"))
    return _in_order(findings)


def _expected(traces: Traces) -> dict[Key, tuple[Sequence[Trace], Entry]]:
    """Every entry that torch recorded, and the family of traces it is judged against.

    Where both families have one, the matched family counts. The order of execution is float64's, the steps that were
    taken with MindSpore's choices coming after what needed none.
    """
    expected: dict[Key, tuple[Sequence[Trace], Entry]] = {}
    for family in (traces.alone, traces.matched):
        for trace in family:
            for key, entry in trace.entries.items():
                if key not in expected or family is not expected[key][0]:
                    expected[key] = (family, entry)
    return expected


def _in_order(findings: list[Finding]) -> list[Finding]:
    """By stage, then what given values say before what the step itself does (it is sharper), then as executed."""
    ranked = sorted(findings, key=lambda f: (STAGES.index(f.stage), not f.part.startswith("given"), f.order))
    return [replace(finding, order=i) for i, finding in enumerate(ranked)]


def _finding(family: Sequence[Trace], entry: Entry, mindspore: Trace, usual: UsualNoise) -> Finding:
    """Judge one tensor that torch recorded."""
    key, theirs = entry.key, mindspore.entries.get(entry.key)
    if theirs is None:
        return _told(entry, Verdict.FAIL, "MindSpore has no such tensor")
    runs = [trace for trace in family[1:] if key in trace.entries]
    if not runs:
        return _told(entry, Verdict.FAIL, "torch recorded it in float64 only; the trace is damaged")
    ours = runs[0].entries[key]
    for trace in family:
        if key in trace.entries and trace.entries[key].shape != ours.shape:
            return _told(entry, Verdict.FAIL, "torch's own runs have several shapes of it; the trace is damaged")
    trouble = _not_alike(ours, theirs)
    if trouble:
        return _told(entry, Verdict.FAIL, trouble)
    subject, plain = mindspore.array(key), runs[0].array(key)
    torch_nonfinite = {trace.about.get("dtype"): n for trace in family if (n := _nonfinite(trace, key))}
    if theirs.nonfinite or torch_nonfinite:
        return _not_finite(entry, torch_nonfinite, theirs)
    if entry.stage == "init" and entry.part == DISTRIBUTION:
        return _distribution(entry, plain, subject, len(list(mindspore.select("init", DISTRIBUTION))))
    if ours.digest is not None or not _is_float(subject):
        return _exact(entry, ours, theirs, plain, subject)
    if key not in family[0].entries:
        return _told(entry, Verdict.FAIL, "torch recorded it in float32 only; the trace is damaged")
    reference = family[0].array(key)
    noisy = [trace.array(key) for trace in runs]
    m = judge(reference, noisy, subject, relative_floor=usual.floor(entry))
    size = m.size or 1.0
    return _told(
        entry, m.verdict, m.why, error=m.relative, noise=m.noise / size, allowed=m.allowed / size, ratio=m.ratio
    )


def _told(entry: Entry, verdict: Verdict, why: str = "", **numbers: float) -> Finding:
    return Finding(
        entry.stage, entry.part, entry.label, entry.order, verdict, why, entry.module, entry.shape, **numbers
    )


def _not_alike(ours: Entry, theirs: Entry) -> str:
    """Why the two cannot be compared element by element, or nothing."""
    if ours.shape != theirs.shape:
        return f"expected shape {list(ours.shape)}, got {list(theirs.shape)}"
    if ours.dtype != theirs.dtype:
        allowed = COUNTERPARTS.get((ours.dtype, theirs.dtype))
        if allowed is None or not (ours.name == allowed or ours.part.endswith(f" {allowed}")):
            return f"expected dtype {ours.dtype}, got {theirs.dtype}"
    if 0 in ours.shape:
        return "the tensor is empty on both sides: nothing was compared"
    return ""


def _nonfinite(trace: Trace, key: Key) -> int:
    return trace.entries[key].nonfinite if key in trace.entries else 0


def _not_finite(entry: Entry, torch: dict[Any, int], theirs: Entry) -> Finding:
    """torch: how many values are not finite, by the precision that has them."""
    if torch:
        dtype, count = next(iter(torch.items()))
        why = f"torch {dtype} itself has {count} values that are not finite (MindSpore {theirs.nonfinite})"
        return _told(entry, Verdict.NONE, why)
    return _told(entry, Verdict.FAIL, f"MindSpore has {theirs.nonfinite} values that are not finite, torch none")


def _is_float(array: np.ndarray) -> bool:
    return array.dtype.kind == "f"


def _exact(entry: Entry, ours: Entry, theirs: Entry, plain: np.ndarray, subject: np.ndarray) -> Finding:
    """Two tensors that must be equal to the last bit: by digest of the whole where both have one."""
    different = np.flatnonzero(plain != subject)
    equal = ours.digest == theirs.digest if ours.digest and theirs.digest else different.size == 0
    if equal:
        return _told(entry, Verdict.PASS, error=0.0)
    if different.size == 0:
        return _told(entry, Verdict.FAIL, "differs outside the recorded sample (its digest is another)")
    at = int(different[0])
    exact = plain.astype(np.float64)
    size = float(np.linalg.norm(exact)) or 1.0
    return _told(
        entry,
        Verdict.FAIL,
        f"{different.size} of {plain.size} compared elements differ; at {at} expected {plain[at]}, got {subject[at]}",
        error=float(np.linalg.norm(subject.astype(np.float64) - exact)) / size,
    )


def _distribution(entry: Entry, plain: np.ndarray, subject: np.ndarray, tests: int) -> Finding:
    check = compare_distributions(plain, subject, tests)
    verdict = {True: Verdict.PASS, False: Verdict.FAIL, None: Verdict.NONE}[check.agree]
    return _told(entry, verdict, check.why, error=check.statistic, noise=0.0, allowed=check.critical)
