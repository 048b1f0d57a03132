"""Random layers on the same draws in both frameworks, so that a step with dropout can be compared at all.

The two frameworks' generators can be seeded but not made to agree, and MindSpore's dropout does not even repeat itself
within a process. So under parity every random layer takes its uniform numbers from here, by the layer's canonical name,
how often it has drawn in the step and the step; what it makes of them, with its own rate, its own scaling
and its own code, remains the framework's. Two layers are equal then if and only if they compute the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import BadTrace

KEY = "random layers"  # in the head of a trace
ROOT = "(model)"  # the name of the model itself, where it draws outside any submodule


@dataclass
class Draws:
    """The uniform numbers of one pass; `first` is the call at which every layer starts to count.

    taken: what each layer drew, by name, call for call: (shape, drop rate or None where it asked for plain uniform
    numbers). order: the names, as they drew one after the other. outside: sources of randomness that were seen and
    could not be fixed.
    """

    step: int
    first: int = 0
    taken: dict[str, list[tuple[tuple[int, ...], float | None]]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    outside: set[str] = field(default_factory=set)

    def uniform(self, name: str, shape: tuple[int, ...], rate: float | None = None) -> np.ndarray:
        """Float32 numbers of `shape` in [0, 1) for the next call of a layer."""
        calls = self.taken.setdefault(name, [])
        call = self.first + len(calls)
        calls.append((shape, rate))
        self.order.append(name)
        return uniform(name, call, self.step, shape)

    def keep(self, name: str, shape: tuple[int, ...], rate: float) -> np.ndarray:
        """Which elements of `shape` the next call of a layer keeps, bool: each with probability 1 - rate."""
        rate = round(rate, 12)  # 1 - (1 - 0.1) is not 0.1
        kept: np.ndarray = self.uniform(name, shape, rate) >= rate
        return kept


def uniform(name: str, call: int, step: int, shape: tuple[int, ...]) -> np.ndarray:
    """Float32 numbers of `shape`, uniform in [0, 1), that depend on nothing but the arguments.

    The numbers fill the shape row by row, so a mask of shape (N, 1, 1) is one of (N, 1, 1, 1), and attention weights
    of (N·heads, L, S) are those of (N, heads, L, S).
    """
    draws = np.random.Generator(np.random.Philox(key=[zlib.crc32(name.encode()), step], counter=[0, 0, call, 0]))
    return draws.random(shape, dtype=np.float32)


def about(passes: list[Draws]) -> dict[str, Any]:
    """What a trace's head says of the draws of a run's steps: {KEY: …}; empty where nothing was random."""
    layers: dict[str, dict[str, Any]] = {}
    for draws in passes:
        for name, calls in draws.taken.items():
            if calls and (name not in layers or len(calls) > layers[name]["calls"]):
                shape, rate = calls[0]
                layers[name] = {"calls": len(calls), "shape": list(shape), "rate": rate}
    outside = sorted(set().union(*(draws.outside for draws in passes)))
    return {KEY: {"layers": layers, "outside": outside}} if layers or outside else {}


def notes(torch: Mapping[str, Any], mindspore: Mapping[str, Any], where: str) -> list[str]:
    """What a reader has to know about randomness in the compared steps, from the heads of both traces.

    where: what the heads are of, for errors. Raises BadTrace for a head that nobody here wrote.
    """
    ours, theirs = _read(torch, where), _read(mindspore, where)
    found = []
    common = [name for name in ours.layers if name in theirs.layers]
    if common:
        found.append(f"{len(common)} random layers (such as {common[0]}) took the same draws in both frameworks")
    for who, here, there in (("torch", ours.layers, theirs.layers), ("MindSpore", theirs.layers, ours.layers)):
        alone = [name for name in here if name not in there]
        if alone:
            others = f" and {len(alone) - 1} others" if len(alone) > 1 else ""
            found.append(f"only {who} drew random numbers in {alone[0]}{others}: nothing to share them with")
    for who, head in (("torch", ours), ("MindSpore", theirs)):
        if head.outside:
            found.append(f"not fixed in {who}, so its steps do not repeat themselves: {', '.join(head.outside[:5])}")
    return found


@dataclass(frozen=True)
class _Head:
    layers: dict[str, Any]
    outside: list[str]


def _read(head: Mapping[str, Any], where: str) -> _Head:
    said = head.get(KEY, {})
    layers = said.get("layers", {}) if isinstance(said, dict) else None
    outside = said.get("outside", []) if isinstance(said, dict) else None
    if not isinstance(layers, dict) or not isinstance(outside, list) or not all(type(s) is str for s in outside):
        raise BadTrace(f"{where}: what it says of {KEY} is damaged")
    return _Head(layers, outside)
