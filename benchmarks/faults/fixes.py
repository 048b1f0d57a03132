"""Which printed fixes can be applied, and how: a Cell's arguments as the report gives them, or code of fixes.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
WAYS = ("forward", "loss", "clip", "net")  # how fixes.yaml's code is applied; mindspore_fixes.py has them
SAME = ("clean", "advice")  # why nothing is applied


@dataclass(frozen=True)
class Application:
    """How a fix is applied: `way` with `code`; nothing where `why` says why."""

    way: str
    code: str = ""
    why: str = ""


def application(cause: dict[str, Any]) -> Application:
    """How the fix of a report's cause is applied."""
    if cause["change"] is not None:
        return Application("arguments")
    if cause["fault"] is None:
        return Application("", why="nothing known: the fix says what to compare")
    entry = written().get(cause["fault"], {})
    way = next((way for way in WAYS if way in entry), "")
    if way:
        return Application(way, entry[way])
    return Application("", why=entry.get("clean") or entry.get("advice") or "not in fixes.yaml")


@cache
def written() -> dict[str, dict[str, str]]:
    """fixes.yaml, by fault."""
    return {entry["fault"]: entry for entry in yaml.safe_load((HERE / "fixes.yaml").read_text())}
