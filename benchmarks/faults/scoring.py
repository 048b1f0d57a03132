"""What a report is worth: did it go red, does it name the place, is the first cause the one that was planted?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Fault:
    """One entry of faults.yaml that can be planted, or of foreign.yaml: where, and in what words a cause says it that
    has no id."""

    id: str
    kind: str
    inject: str
    args: dict[str, Any]
    nets: tuple[str, ...]
    step: str
    stage: str
    place: str
    causes: tuple[str, ...]
    at: tuple[str, ...] = ()
    says: str = ""

    def named_by(self, cause: dict[str, Any]) -> bool:
        """Whether a cause of a report is this fault."""
        by_words = (
            bool(self.says) and cause.get("ratio") is not None and re.search(self.says, cause["text"], re.IGNORECASE)
        )
        return cause["fault"] in self.causes or bool(by_words)


@dataclass(frozen=True)
class Score:
    """detected: no parity; placed: the exact module, tensor, group or stage is named; named: the cause is the one that
    was planted, and comes first where it is the only one; missed: what was said instead, in a few words; causes: how
    many tested ones the report has, and invented: those of another fault, or in another place."""

    detected: bool
    placed: bool
    named: bool
    missed: str = ""
    causes: int = 0
    invented: tuple[str, ...] = ()


def faults() -> list[Fault]:
    """The known faults that can be planted."""
    return [_fault(entry) for entry in entries() if "inject" in entry]


def unlisted() -> list[Fault]:
    """Faults that stand in no table, so that no cause can be named."""
    return [_fault({**entry, "causes": []}) for entry in yaml.safe_load((HERE / "unlisted.yaml").read_text())]


def foreign() -> list[Fault]:
    """The faults in nets whose twin has other names."""
    return [
        Fault(
            entry["id"],
            "foreign",
            "",
            entry["args"],
            (entry["net"],),
            "default",
            entry["stage"],
            entry.get("place", "planted"),
            causes(entry),
            tuple(entry["at"]),
            entry.get("says", ""),
        )
        for entry in yaml.safe_load((HERE / "foreign.yaml").read_text())
    ]


def causes(entry: dict[str, Any]) -> tuple[str, ...]:
    """The ids that say it."""
    return tuple(entry.get("causes", [entry["id"]]))


def entries() -> list[dict[str, Any]]:
    """Everything that faults.yaml says."""
    found: list[dict[str, Any]] = yaml.safe_load((HERE / "faults.yaml").read_text())
    return found


def _fault(entry: dict[str, Any]) -> Fault:
    return Fault(
        entry["id"],
        entry["kind"],
        entry["inject"],
        entry.get("args", {}),
        tuple(entry["nets"]),
        entry.get("step", "default"),
        entry["stage"],
        entry["place"],
        causes(entry),
    )


def score(report: dict[str, Any], planted: Sequence[Fault], places: Sequence[str]) -> list[Score]:
    """One score for each fault that was planted in the run; places: what the injectors changed."""
    if report["parity"]:
        return [Score(False, False, False, "parity") for _ in planted]
    return [_score(report, fault, set(places), alone=len(planted) == 1) for fault in planted]


def _score(report: dict[str, Any], fault: Fault, places: set[str], alone: bool) -> Score:
    placed = any(_fits(fault, places, stage, place) for stage, place in named_places(report))
    causes = report["causes"]
    heard = causes[:1] if alone else [c for c in causes if _fits(fault, places, c["stage"], c["place"])]
    named = not fault.causes or any(fault.named_by(cause) for cause in heard)
    missed = "" if placed and named else describe(report)
    tested = [cause for cause in causes if cause["fault"] or cause.get("ratio") is not None] if alone else []
    invented = [c for c in tested if fault.causes and not _right(fault, places, c)]
    said = tuple(f"{c['place']}: {c['fault'] or c['text'][:120]}" for c in invented)
    return Score(True, placed, named, missed, len(tested), said)


def _right(fault: Fault, places: set[str], cause: dict[str, Any]) -> bool:
    return fault.named_by(cause) and _fits(fault, places, cause["stage"], cause["place"])


def named_places(report: dict[str, Any]) -> list[tuple[str, str]]:
    """(stage, place) of every cause and of every module that is itself at fault; of the first divergence where there
    are neither."""
    found = [(cause["stage"], cause["place"]) for cause in report["causes"]]
    found += [("forward", module["name"] or "(model)") for module in report["modules"] if module["own"]]
    first = report["first_divergence"]
    if not found and first is not None:
        found.append((first["stage"], first["name"]))
        found.append((first["stage"], first["part"]))
    return found


def _fits(fault: Fault, places: set[str], stage: str, place: str) -> bool:
    if fault.place == "stage":
        return stage == fault.stage
    if fault.place != "planted":
        return stage == fault.stage and re.search(fault.place, place) is not None
    told = [part.split("#")[0].split(" ")[0].removesuffix(".*") or "(model)" for part in re.split(r", | and ", place)]
    return told[0] in places or set(told) <= places


def describe(report: dict[str, Any]) -> str:
    """What the report says first, in a few words."""
    first = report["first_divergence"]
    parts = [f"{c['stage']} {c['place']}: {c['fault'] or 'unknown'}" for c in report["causes"][:2]]
    own = [m["name"] or "(model)" for m in report["modules"] if m["own"]][:3]
    if own:
        parts.append(f"own {', '.join(own)}")
    if first is not None:
        parts.append(f"first {first['stage']} ({first['part']}) {first['name']}")
    return "; ".join(parts)


def false_alarm(report: dict[str, Any]) -> str:
    """What is red in a report that should be green, or nothing."""
    if report["parity"]:
        return ""
    undecided = [s["stage"] for s in report["stages"] if s["verdict"] == "no verdict"]
    return describe(report) or f"no verdict in {', '.join(undecided)}"
