"""Guess how a MindSpore net calls what a torch checkpoint holds, for the user to check and give back with --map.

What both sides call alike stays. Of the others, modules are taken in their order on both sides, and those go together
whose tensors have the same names within the module and the same shapes. That is a guess: two layers of one shape may
have changed places, so a map is written, and never used unseen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ..mappings.shapes import SHAPES
from ..mappings.user_layers import layer_states
from . import owner_classes
from .against_net import Net
from .formats.contents import Shape
from .owner_classes import Module, split
from .to_mindspore import Owners

Signature = tuple[tuple[str, Shape], ...]  # the tensors of one module, under MindSpore's names within it


class Inferred(NamedTuple):
    """(torch path, MindSpore path, how it was found), and the paths on each side that found no other."""

    pairs: list[tuple[str, str, str]]
    ours: list[str]
    theirs: list[str]


def infer(shapes: Mapping[str, Shape], owners: Owners | None, net: Net) -> Inferred:
    """Pair the modules of a checkpoint (tensor name -> shape) with those of a net.

    owners: module path -> class and bases, where they are known; else every class that the tensors allow is tried.
    """
    cells: dict[str, dict[str, Shape]] = {}
    for name, (shape, _) in net.items():
        path, leaf = split(name)
        cells.setdefault(path, {})[leaf] = shape
    modules = [
        (module.path, found)
        for module in owner_classes.modules(shapes)
        if (found := _signatures(module, (owners or {}).get(module.path)))
    ]
    theirs = [(path, _signature(leaves)) for path, leaves in cells.items()]
    by_path = dict(theirs)
    pairs = [(path, path, "same name") for path, found in modules if by_path.get(path) in found]
    same = {path for path, _, _ in pairs}
    left = [(path, found) for path, found in modules if path not in same]
    right = [(path, signature) for path, signature in theirs if path not in same]
    chosen = _aligned(left, right)
    pairs += [(left[i][0], right[j][0], "by order and shapes") for i, j in chosen]
    ours, others = {i for i, _ in chosen}, {j for _, j in chosen}
    return Inferred(
        pairs,
        [path for i, (path, _) in enumerate(left) if i not in ours],
        [path for j, (path, _) in enumerate(right) if j not in others],
    )


def _aligned(
    left: Sequence[tuple[str, list[Signature]]], right: Sequence[tuple[str, Signature]]
) -> list[tuple[int, int]]:
    """The longest run of pairs that keeps the order of both sides."""
    known = {signature for _, signature in right}
    # of several classes the one that the net has; a module that it has none of stands for itself
    ours = [next((found for found in signatures if found in known), signatures[0]) for _, signatures in left]
    matcher = SequenceMatcher(None, ours, [signature for _, signature in right], autojunk=False)
    return [
        (block.a + offset, block.b + offset) for block in matcher.get_matching_blocks() for offset in range(block.size)
    ]


def _signatures(module: Module, classes: Sequence[str] | None) -> list[Signature]:
    """How the module's tensors would be called within it, under each class that it may be of."""
    names = [classes] if classes else [family.classes for family in module.families or ()]
    found = []
    for candidates in names:
        known = layer_states()
        states = next((known[name] for name in candidates if name in known), None)
        if states is None or not set(module.leaves) <= set(states):
            continue
        there = {
            split(state.mindspore)[1]: SHAPES[state.verb].forward(shape) if state.verb else shape
            for leaf, shape in module.leaves.items()
            if (state := states[leaf]).mindspore is not None
        }
        found.append(_signature(there))
    return found or [_signature(module.leaves)]


def _signature(leaves: Mapping[str, Shape]) -> Signature:
    return tuple(sorted(leaves.items()))
