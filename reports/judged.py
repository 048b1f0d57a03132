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
    """The id of the fault that `msmigrate explain` has a page for, or None: where nothing known holds, and in a report
    of another version that names what this one does not."""
    return cause.fault if cause.fault in table.faults() else None
