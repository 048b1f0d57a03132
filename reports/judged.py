"""What a report's verdict is about, and which of its causes hold."""

from __future__ import annotations

from dataclasses import replace

from ..mappings import table
from ..parity.findings import Cause, Report
from ..parity.judge import RATIO


def judged(report: Report) -> Report:
    """The report without the findings of stages that were not asked for, so that every count fits the verdict."""
    return replace(report, findings=[finding for finding in report.findings if finding.stage in report.only])


def explains(cause: Cause) -> bool:
    """Whether a cause is a hypothesis that holds, not the place alone; not every such is a known fault."""
    return cause.fault is not None or (cause.ratio is not None and cause.ratio <= RATIO)


def known(cause: Cause) -> str | None:
    """The id of the fault that `msmigrate explain` has a page for, or None: many causes are general, as a changed
    argument of the optimizer, and say themselves all there is to say."""
    return cause.fault if cause.fault in table.faults() else None
