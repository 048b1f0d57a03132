"""What order of execution alone decided, and must not: the questions that go to the user."""

from __future__ import annotations

import itertools
import re

from .alignment import ONLY, ORDER
from .layers import Layer, Layers, describe

Calls = list[tuple[str, int, str, int]]
Pairs = dict[str, tuple[str, str, str]]


def doubts(ours: Layers, theirs: Layers, pairs: Pairs, calls: Calls) -> list[str]:
    """One question for each group of layers that could change places, with the lines of a map that would settle it.

    Branches that start from one tensor and look alike run in an order that means nothing. Where the order of definition
    agrees with it on both sides they are paired in it; where it does not, they are asked about. So are layers whose
    inputs come from layers that are not each other's counterparts.
    """
    by_order = [call for call in calls if pairs.get(call[0], ("", "", ""))[1] in (ORDER, ONLY)]
    by_order = [call for call in by_order if ours.by_path[call[0]].tensors]
    groups = [*_forks(ours, theirs, by_order), *_crossed(ours, theirs, by_order, pairs)]
    asked: set[str] = set()
    found = []
    for mine, its in groups:
        if not set(mine) & asked:
            asked |= set(mine)
            found.append(_question(ours, theirs, mine, its))
    return found


def confirmed(ours: Layers, theirs: Layers, pairs: Pairs, calls: Calls) -> set[str]:
    """Torch paths of layers whose input comes straight from a layer, and in the net from that layer's counterpart,
    where no other such layer gets the same."""
    mine = {(c.path, c.call): c for c in ours.calls}
    its = {(c.path, c.call): c for c in theirs.calls}
    partner = {path: target for path, (target, _, _) in pairs.items()}
    found = set()
    for path, k, their_path, their_k in calls:
        one, other = mine[path, k], its[their_path, their_k]
        if not one.inputs or not other.inputs:
            continue
        made = {partner[p] for p in ours.producers(one.inputs[0]) if p in partner}
        rivals = [
            c
            for c in ours.calls
            if c.path != path
            and c.inputs[:1] == one.inputs[:1]
            and ours.by_path[c.path].signature == ours.by_path[path].signature
        ]
        if made & theirs.producers(other.inputs[0]) and not rivals:
            found.add(path)
    return found


def _forks(ours: Layers, theirs: Layers, calls: Calls) -> list[tuple[list[str], list[str]]]:
    mine = {(c.path, c.call): c for c in ours.calls}
    its = {(c.path, c.call): c for c in theirs.calls}
    groups: dict[tuple[object, ...], list[tuple[str, str]]] = {}
    for path, k, their_path, their_k in calls:
        one, other = mine[path, k], its[their_path, their_k]
        if one.inputs and other.inputs:
            key = (one.inputs[0], other.inputs[0], ours.branch(one), theirs.branch(other))
            groups.setdefault(key, []).append((path, their_path))
    found = []
    for members in groups.values():
        torch_paths, mindspore_paths = [a for a, _ in members], [b for _, b in members]
        if len(set(torch_paths)) < 2:
            continue
        defined = ours.structure.position, theirs.structure.position
        if not all(
            _rising([position[path] for path in paths])
            for position, paths in zip(defined, (torch_paths, mindspore_paths), strict=True)
        ):
            found.append((torch_paths, mindspore_paths))
    return found


def _rising(numbers: list[int]) -> bool:
    return all(a <= b for a, b in itertools.pairwise(numbers))


def _crossed(ours: Layers, theirs: Layers, calls: Calls, pairs: Pairs) -> list[tuple[list[str], list[str]]]:
    """The layers whose output goes straight to a pair of layers, and which were not paired with each other."""
    mine = {(c.path, c.call): c for c in ours.calls}
    its = {(c.path, c.call): c for c in theirs.calls}
    partner = {path: target for path, (target, _, _) in pairs.items()}
    found = []
    for path, k, their_path, their_k in calls:
        one, other = mine[path, k], its[their_path, their_k]
        if not one.inputs or not other.inputs:
            continue
        made = {partner[p] for p in ours.producers(one.inputs[0]) if p in partner}
        their_made = {p for p in theirs.producers(other.inputs[0]) if p in partner.values()}
        if made and their_made and not made & their_made:
            before = ours.producers(one.inputs[0]), theirs.producers(other.inputs[0])
            doubtful = [c for c in calls if c[0] in before[0] or c[2] in before[1]]
            if doubtful:
                found.append(([c[0] for c in doubtful], [c[2] for c in doubtful]))
    return found


def _question(ours: Layers, theirs: Layers, mine: list[str], its: list[str]) -> str:
    def shown(layers: Layers, paths: list[str]) -> str:
        return ", ".join(dict.fromkeys(describe(_layer(layers, path)) for path in paths))

    lines = "; ".join(
        f"- {{torch: '{re.escape(a)}', mindspore: '{b}'}}" for a, b in dict.fromkeys(zip(mine, its, strict=True))
    )
    return (
        f"{shown(ours, mine)} and {shown(theirs, its)} look alike, and their order of execution does not say which is "
        f"which: write it into a map and give it with --map; in the order in which they run it would be: {lines}"
    )


def _layer(layers: Layers, path: str) -> Layer:
    return layers.by_path[path]
