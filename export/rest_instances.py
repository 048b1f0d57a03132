"""MindSpore Serving's REST form of values: JSON numbers and nested lists, or binary data as base64 with type and shape.

From its documentation (serving_restful, release 2.0).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ..errors import BadInput

MOST = 1024  # instances of one request
TYPES = {
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    "float16": "float16",
    "fp16": "float16",
    "float32": "float32",
    "fp32": "float32",
    "float64": "float64",
    "fp64": "float64",
    "bool": "bool",
}


def instances_of(body: bytes) -> list[Any]:
    """The instances of a request's JSON. Raises BadInput for anything else."""
    try:
        found = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the request is no JSON: {' '.join(str(error).split())[:200]}") from None
    instances = found.get("instances") if isinstance(found, dict) else None
    if isinstance(instances, dict):
        instances = [instances]
    if not isinstance(instances, list) or not instances:
        raise BadInput('the request has to be {"instances": [{…}, …]} with at least one instance')
    if len(instances) > MOST:
        raise BadInput(f"the request has {len(instances)} instances; at most {MOST} are taken")
    return instances


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def values_of(instance: Any, names: Sequence[str]) -> list[Any]:
    """The values of an instance in the order of `names`. Raises BadInput where one is missing or too many."""
    if not isinstance(instance, dict):
        raise BadInput("an instance has to be an object of names and values")
    missing = [name for name in names if name not in instance]
    extra = [name for name in instance if name not in names]
    if missing or extra:
        what = (
            f"has no input {missing[0]!r}" if missing else f"has {str(extra[0])[:50]!r}, which the method does not take"
        )
        raise BadInput(f"an instance {what}; expected {', '.join(map(repr, names))}")
    return [instance[name] for name in names]


def bytes_of(value: Any) -> bytes:
    """The bytes of an image. Raises BadInput."""
    if not isinstance(value, Mapping) or value.get("type", "bytes") != "bytes" or not value.keys() <= {"b64", "type"}:
        raise BadInput('an image has to be {"b64": "…"}, the bytes of an image file in base64')
    return _decoded(value)


def _decoded(value: Mapping[str, Any]) -> bytes:
    text = value.get("b64")
    try:
        if not isinstance(text, str):
            raise ValueError
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise BadInput("b64 is not a text in base64") from None


def array_of(value: Any, shape: Sequence[int], dtype: str) -> np.ndarray:
    """A tensor of this shape and dtype, without the batch. Raises BadInput for another shape and what is no number."""
    found = _binary(value) if isinstance(value, Mapping) else _listed(value)
    if list(found.shape) != list(shape):
        raise BadInput(f"a tensor has shape {list(found.shape)}; expected {list(shape)}")
    whole = np.dtype(dtype).kind in "iu"
    if found.dtype.kind not in ("iu" if whole else "iuf"):
        raise BadInput(f"a tensor holds {found.dtype}; expected {dtype}")
    if whole and found.size and (found.min() < np.iinfo(dtype).min or found.max() > np.iinfo(dtype).max):
        raise BadInput(f"a tensor holds numbers that {dtype} cannot hold")
    with np.errstate(over="ignore"):
        array = found.astype(dtype)
    if not whole and not np.isfinite(array).all():
        raise BadInput("a tensor holds numbers that are not finite")
    return array


def _listed(value: Any) -> np.ndarray:
    try:
        found = np.array(value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        found = np.array(None)
    if found.dtype.kind not in "iuf":
        raise BadInput("a tensor has to be numbers in lists of equal length")
    return found


def _binary(value: Mapping[str, Any]) -> np.ndarray:
    kind, shape = value.get("type"), value.get("shape", [1])
    if not isinstance(kind, str) or kind not in TYPES or not value.keys() <= {"b64", "type", "shape"}:
        raise BadInput(f"a tensor in base64 has a type, one of {', '.join(TYPES)}, and a shape")
    sized = isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)
    content, dtype = _decoded(value), np.dtype(TYPES[kind]).newbyteorder("<")
    count = 1
    for size in shape if sized else ():
        count *= size
    if not sized or count * dtype.itemsize != len(content):
        raise BadInput(f"a tensor in base64 has {len(content)} bytes, which are not those of its type and shape")
    return np.frombuffer(content, dtype=dtype).reshape(shape)


def plain(array: Any) -> Any:
    """An output for JSON: numbers, nested lists, or a text. Raises BadInput for what is not finite."""
    if isinstance(array, str):
        return array
    array = np.asarray(array)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise BadInput("the net's output is not finite")
    return array.tolist()
