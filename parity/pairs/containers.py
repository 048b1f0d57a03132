"""Pair containers by the layers they span."""

from __future__ import annotations

from collections.abc import Iterator

from .kinds import CONTAINERS, torch_class
from .layers import Layers

Calls = list[tuple[str, int, str, int]]


def match_containers(ours: Layers, theirs: Layers, calls: Calls, pairs: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(torch path, MindSpore path) of containers whose paired layer calls are the same; the models always are.

    Of containers around one set of calls, one inside the other, the outer goes with the outer; where one side has more
    of them, plain lists are left out first, then what has no namesake.
    """
    yield "", ""
    number = {(path, k): i for i, (path, k, _, _) in enumerate(calls)}
    their_number = {(path, k): i for i, (_, _, path, k) in enumerate(calls)}
    mine, its = _spans(ours, number), _spans(theirs, their_number)
    for span, paths in mine.items():
        free = [path for path in paths if path and path not in pairs]
        other = [path for path in its.get(span, []) if path and path not in pairs.values()]
        if not span or not free or not other:
            continue
        if len(free) != len(other):
            own, its_own = _no_lists(ours, free), _no_lists(theirs, other)
            free, other = (own or free, its_own or other)
        if len(free) != len(other):
            names = {path.rpartition(".")[2]: path for path in other}
            both = [(path, names[path.rpartition(".")[2]]) for path in free if path.rpartition(".")[2] in names]
            yield from both or [(free[0], other[0])]
            continue
        yield from zip(free, other, strict=True)


def _no_lists(layers: Layers, paths: list[str]) -> list[str]:
    return [path for path in paths if torch_class(layers.structure.by_path[path].kind) not in CONTAINERS]


def _spans(layers: Layers, number: dict[tuple[str, int], int]) -> dict[frozenset[int], list[str]]:
    """Set of paired layer calls -> the containers around just these, the outer first."""
    spans: dict[str, set[int]] = {}
    numbered = [(call.entered, number.get((call.path, call.call))) for call in layers.calls]
    for container in layers.containers:
        found = spans.setdefault(container.path, set())
        found.update(n for entered, n in numbered if n is not None and container.entered < entered < container.left)
    by_span: dict[frozenset[int], list[str]] = {}
    for path, span in spans.items():  # in order of entering: the outer comes first
        by_span.setdefault(frozenset(span), []).append(path)
    return by_span
