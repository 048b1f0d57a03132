"""The arguments and outputs of a recorded call: nests of tuples, lists and dicts with constants and stored tensors."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

_DIGEST = re.compile(r"[0-9a-f]{32}")
DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
_DEEPEST = 100


@dataclass(frozen=True)
class Stored:
    """One tensor of the recording: the digest that names its file, shape and dtype (NumPy's names), and whether a
    gradient by it was asked for."""

    file: str
    shape: tuple[int, ...]
    dtype: str
    needs_grad: bool = False

    @property
    def is_float(self) -> bool:
        """Whether it has real numbers."""
        return self.dtype.startswith("float")


@dataclass(frozen=True)
class Unsupported:
    """An argument or output that is neither tensor nor constant nor a nest of these; `what` is its class."""

    what: str


Value = Any  # Stored | Unsupported | None | bool | int | float | str | list, tuple or dict of these


def leaves(value: Value) -> Iterator[Value]:
    """Everything in a nest that is no nest itself, in order."""
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from leaves(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)
    else:
        yield value


def flat(value: Value) -> list[Stored]:
    """Every stored tensor in a nest, in order."""
    return [each for each in leaves(value) if isinstance(each, Stored)]


def rebuilt(value: Value, tensor: Callable[[Stored], Any]) -> Any:
    """The nest with each stored tensor replaced by what `tensor` makes of it."""
    if isinstance(value, Stored):
        return tensor(value)
    if isinstance(value, (list, tuple)):
        return type(value)(rebuilt(each, tensor) for each in value)
    if isinstance(value, dict):
        return {key: rebuilt(each, tensor) for key, each in value.items()}
    return value


def digest(array: np.ndarray) -> str:
    """32 hexadecimal digits that tell contiguous tensors apart by dtype, shape and content."""
    found = hashlib.blake2b(f"{array.dtype}{array.shape}".encode(), digest_size=16)
    found.update(array.reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def encoded(value: Value) -> Any:
    """A nest as JSON."""
    if isinstance(value, Stored):
        return {"tensor": [value.file, list(value.shape), value.dtype, value.needs_grad]}
    if isinstance(value, Unsupported):
        return {"unsupported": value.what}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [encoded(each) for each in value]}
    if isinstance(value, dict):
        return {"dict": {key: encoded(each) for key, each in value.items()}}
    return {"float": repr(value)} if isinstance(value, float) and not math.isfinite(value) else value


def decoded(value: Any, depth: int = 0) -> Value:
    """The nest that `encoded` wrote. Raises ValueError or TypeError for anything else."""
    if depth > _DEEPEST:
        raise ValueError("nested too deep")
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is not dict or len(value) != 1:
        raise ValueError(f"{str(value)[:100]} is no value")
    ((kind, held),) = value.items()
    if kind == "tensor":
        return _stored(*held)
    if kind == "float" and held in ("nan", "inf", "-inf"):
        return float(held)
    if kind == "unsupported" and type(held) is str:
        return Unsupported(held)
    if kind == "dict" and type(held) is dict:
        return {key: decoded(each, depth + 1) for key, each in held.items()}
    if kind in ("list", "tuple") and type(held) is list:
        return {"list": list, "tuple": tuple}[kind](decoded(each, depth + 1) for each in held)
    raise ValueError(f"{str(value)[:100]} is no value")


def _stored(file: Any, shape: Any, dtype: Any, needs_grad: Any) -> Stored:
    if type(file) is not str or not _DIGEST.fullmatch(file) or dtype not in DTYPES or type(needs_grad) is not bool:
        raise ValueError(f"{str([file, shape, dtype])[:100]} is no tensor")
    if type(shape) is not list or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"{str(shape)[:100]} is no shape")
    return Stored(file, tuple(shape), dtype, needs_grad)
