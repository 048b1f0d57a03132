"""Number tensors by what they contain, so that a value can be followed from where it is made to where it is used."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .structure import Call


@dataclass
class Watch:
    """Collects the calls of one evaluation pass; `enter` and `leave` come from a framework's hooks, with arrays."""

    calls: list[Call] = field(default_factory=list)
    _open: list[tuple[str, int, int, tuple[int, ...]]] = field(default_factory=list)
    _count: dict[str, int] = field(default_factory=dict)
    _numbers: dict[bytes, int] = field(default_factory=dict)
    _clock: int = 0

    def enter(self, path: str, inputs: list[np.ndarray]) -> None:
        """A module begins on these tensors."""
        call = self._count.get(path, 0)
        self._count[path] = call + 1
        self._open.append((path, call, self._tick(), tuple(self._number(array) for array in inputs)))

    def leave(self, path: str, output: np.ndarray | None) -> None:
        """The module that began last ends; output: the tensor it returned, None where it was not a single one."""
        while self._open:  # a module that was left by an exception has no output
            name, call, entered, inputs = self._open.pop()
            if name == path:
                number = None if output is None else self._number(output)
                shape = None if output is None else tuple(output.shape)
                self.calls.append(Call(path, call, entered, self._tick(), inputs, number, shape))
                return

    def in_order(self) -> tuple[Call, ...]:
        """The calls in the order in which they began."""
        return tuple(sorted(self.calls, key=lambda call: call.entered))

    def _tick(self) -> int:
        self._clock += 1
        return self._clock - 1

    def _number(self, array: np.ndarray) -> int:
        digest = hashlib.sha1(np.ascontiguousarray(array).data, usedforsecurity=False).digest()
        return self._numbers.setdefault(digest, len(self._numbers))


def flat(value: Any, kind: type) -> list[Any]:
    """The tensors (objects of `kind`) in a nest of tuples, lists and dicts, in order."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        return [found for item in value.values() for found in flat(item, kind)]
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in flat(item, kind)]
    return []


def few(inputs: tuple[np.ndarray, ...], batch: int) -> tuple[np.ndarray, ...]:
    """Two examples of a batch: enough to see a structure; all of it where the inputs do not share their first axis."""
    if all(array.ndim and len(array) == batch for array in inputs):
        return tuple(array[:2] for array in inputs)
    return inputs
