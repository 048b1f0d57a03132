"""Two nets may compute the same with modules that are cut otherwise: a pad before a pool instead of the pool's own, a
ReLU inside a container instead of behind it, a list that is concatenated by the caller.

Such modules differ when each runs alone, and grossly. But a net in which some module computes something grossly else
does not agree end to end, in every layer's output, every gradient and every update, to within rounding. So where
nothing differs end to end, what differs grossly alone was not the same thing to begin with: it gets no verdict, and
says why. A small difference alone stays a failure, for that is what rounding hides end to end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .findings import Finding
from .judge import Unjudged, Verdict
from .replay.calls import WIRING
from .trace import ALONE

GROSS = 1e-3  # share of a tensor's size; known faults that nothing shows end to end stay well below
CLEAR = 10.0  # and so many times what was allowed end to end
NEEDED = {("forward", "eval"), ("forward", "train"), ("gradients", "parameters")}
STEP = ("forward", "loss", "gradients", "update")
WHY = "built otherwise, for nothing differs end to end: "


def built_otherwise(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, in which gross differences of modules that ran alone have no verdict where the step has parity."""
    step = [f for f in findings if f.stage in STEP and f.part not in (ALONE, WIRING)]
    seen = {(f.stage, f.part) for f in step}
    if not seen >= NEEDED or any(f.verdict is not Verdict.PASS for f in step if (f.stage, f.part) in NEEDED):
        return list(findings)
    if any(f.verdict is Verdict.FAIL for f in step):
        return list(findings)
    allowed = max((f.allowed or 0.0 for f in step if (f.stage, f.part) in NEEDED and _has_size(f)), default=0.0)
    gross = max(GROSS, CLEAR * allowed)
    return [_judged(f, gross) for f in findings]


def _has_size(finding: Finding) -> bool:
    """Whether the tensor is more than rounding: the gradient of a bias before a norm is not."""
    return finding.noise is not None and finding.noise < 1.0


def _judged(finding: Finding, gross: float) -> Finding:
    if finding.part not in (ALONE, WIRING) or finding.verdict is not Verdict.FAIL:
        return finding
    if finding.error is not None and finding.error < gross:
        return finding
    return replace(finding, verdict=Verdict.NONE, why=WHY + finding.why, unjudged=Unjudged.BUILT_OTHERWISE)
