"""What a report's verdict is about, and which of its causes hold."""

from __future__ import annotations

from ..mappings import table
from ..parity.findings import Cause, Finding, Report
from ..parity.judge import RATIO, Unjudged

# What to do where something was not judged that should have been.
REMEDIES = {
    Unjudged.NOISE: "use a larger batch (--batch), other data (--batch-file) or trained weights (--ckpt), in which "
    "rounding is multiplied less",
    Unjudged.NOT_FINITE: "give torch's step data and weights on which it stays finite, or a smaller loss scale",
    Unjudged.NOT_COMPILED_ALIKE: "prove the compiled step without amp",
    Unjudged.DRAWS: "draw with functions whose numbers can be fixed, or prove the step without --mode graph",
    Unjudged.STORAGE: "prove the step with a larger learning rate: float32 loses all of what this one changes",
    Unjudged.FEW_VALUES: "draw more values: --init-seeds 10",
    Unjudged.NOT_ALONE: "see in the notes what torch says of these modules",
}


def unproven_sentence(findings: list[Finding]) -> str:
    """How many tensors lack a verdict that should have one, and in which stages."""
    stages = ", ".join(dict.fromkeys(finding.stage for finding in findings))
    what = "1 tensor has" if len(findings) == 1 else f"{len(findings)} tensors have"
    return f"nothing failed, but {what} no verdict that should have one ({stages})"


def remedies(findings: list[Finding]) -> list[str]:
    """What to do about tensors that should have been judged and were not, each once."""
    kinds = dict.fromkeys(finding.unjudged for finding in findings)
    return [REMEDIES[kind] for kind in kinds if kind in REMEDIES]


def where(report: Report) -> str:
    """What follows the word parity: nothing for the whole step, ` in forward and gradients` for a part of it."""
    return "" if report.narrowing.whole else f" in {report.narrowing.said()}"


def explains(cause: Cause) -> bool:
    """Whether a cause is a hypothesis that holds, not the place alone; not every such is a known fault."""
    return cause.fault is not None or (cause.ratio is not None and cause.ratio <= RATIO)


def known(cause: Cause) -> str | None:
    """The id of the fault that `msmigrate explain` has a page for, or None: where nothing known holds, and in a report
    of another version that names what this one does not."""
    return cause.fault if cause.fault in table.faults() else None
