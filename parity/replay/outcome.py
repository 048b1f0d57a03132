"""What the replays say of themselves in the heads of their traces: which calls did not run alone, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ...errors import BadTrace
from ..trace import Trace

KEY = "replay"
FAILED = "failed alone"  # in the head of a torch trace: label of a call -> what torch raised in that precision
NOT_ASKED = "not asked for"
LONGEST = 300


@dataclass
class Outcome:
    """What MindSpore's replay left out and failed at.

    left_out: label of a call that did not run alone -> why, which is no fault. errors: label -> what MindSpore raised,
    which is one. unwired: path of a module that the teacher-forced pass ran as it is -> why. cells: torch path -> the
    Cell's path and class. notes: torch path -> what to know of its replay, such as what was made deterministic.
    """

    left_out: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    unwired: dict[str, str] = field(default_factory=dict)
    cells: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace) -> Outcome:
        """What a trace says. Raises BadTrace for nonsense."""
        found = trace.about.get(KEY)
        if (
            not isinstance(found, dict)
            or set(found) != set(cls.__dataclass_fields__)
            or not all(map(_texts, found.values()))
        ):
            raise BadTrace(f"{trace.folder / 'trace.json'}: does not say which modules were replayed")
        return cls(**found)

    def asked(self, *labels: str | None) -> bool:
        """Whether any of these calls is of a module that was to be replayed."""
        return any(self.left_out.get(label) != NOT_ASKED for label in labels if label is not None)

    def head(self) -> dict[str, Any]:
        """What goes into the head of the trace."""
        return {KEY: asdict(self)}


def failed(trace: Trace) -> dict[str, str]:
    """What a torch replay could not run, by label. Raises BadTrace for nonsense."""
    found = trace.about.get(FAILED)
    if not _texts(found):
        raise BadTrace(f"{trace.folder / 'trace.json'}: does not say which modules failed alone")
    return dict(found) if isinstance(found, dict) else {}


def one_line(error: Exception) -> str:
    """An exception as one line: its class and what it says before any C++ call stack."""
    said = " ".join(str(error).split("----")[0].split())
    return f"{type(error).__name__}: {said}"[:LONGEST]


def _texts(found: Any) -> bool:
    return isinstance(found, dict) and all(type(text) is str for pair in found.items() for text in pair)
