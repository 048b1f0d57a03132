"""Module paths in short."""

from __future__ import annotations

import re
from collections.abc import Iterable


def patterns(places: Iterable[str], most: int = 4) -> list[str]:
    """Return layer1.0.conv1 and layer1.1.conv1 as `layer*.*.conv* (2)`, at most so many, and how many more."""
    groups: dict[str, list[str]] = {}
    for place in places:
        groups.setdefault(re.sub(r"\d+", "*", place), []).append(place)
    lines = [group[0] or "(the top)" if len(group) == 1 else f"{p} ({len(group)})" for p, group in groups.items()]
    return lines if len(lines) <= most else [*lines[:most], f"and {len(lines) - most} more"]
