"""MindSpore Serving's REST form of values: JSON numbers and nested lists, or binary data as base64 with type and shape.

From its documentation (serving_restful, release 2.0). A request may come from anybody: whatever it says, its cost is
bounded by its bytes and by the shapes that the net takes.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from PIL import Image, UnidentifiedImageError

from ...errors import BadInput
from ...training.data.sample import opened

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "WEBP")  # of images
MOST = 1024  # instances of one request
MOST_PARTS = 500_000  # lists, objects and names in one: each takes up to a hundred times its bytes
LONGEST_SHAPE = 16  # dimensions that an error repeats
NO_TENSOR = "a tensor has to be numbers in lists of equal length"
LONGEST_NUMBER = 20  # digits of an integer that any tensor holds
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
    parts = body.count(b"[") + body.count(b"{") + body.count(b":")
    if parts > MOST_PARTS:
        raise BadInput(
            f"the request has {parts} lists, objects and names; at most {MOST_PARTS} are taken: send tensors in base64"
        )
    try:
        found = _parsed(body)
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


def _parsed(body: bytes) -> Any:
    """The JSON of a body, in time that grows as its length does: Python's own integers grow with its square."""
    if getattr(sys, "get_int_max_str_digits", int)():  # Python refuses integers of thousands of digits by itself
        try:
            return json.loads(body, parse_constant=_no_number)
        except json.JSONDecodeError:
            raise
        except ValueError:
            pass
    return json.loads(body, parse_constant=_no_number, parse_int=_integer)


def _integer(digits: str) -> int | float:
    """An integer; one that is too long for any tensor as a float, which no shape and no integer tensor accepts."""
    return int(digits) if len(digits) <= LONGEST_NUMBER else float(digits)


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


def image_of(value: Any) -> Image.Image:
    """An image, of which only the header has been read. Raises BadInput for anything else, and for one too large."""
    content = bytes_of(value)
    try:
        return opened(content, FORMATS)
    except UnidentifiedImageError:
        why = f"it is none of {', '.join(FORMATS)}"
    except Exception as error:  # decoders fail in many ways
        why = " ".join(str(error).split())[:100]
    raise BadInput(f"the image cannot be prepared: {why}")


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
    found = _binary(value, shape) if isinstance(value, Mapping) else _listed(value, shape)
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


def _listed(value: Any, shape: Sequence[int]) -> np.ndarray:
    """Numbers in nested lists; that these have the shape is checked before NumPy reads what is in them."""
    there, inside = [], value
    while isinstance(inside, list):
        there.append(len(inside))
        inside = inside[0] if inside else None
    _refuse_other(there, shape)
    level = [value]
    for size in shape:
        if any(type(each) is not list or len(each) != size for each in level):
            raise BadInput(NO_TENSOR)
        level = list(chain.from_iterable(level))
    kinds = set(map(type, level))
    if not kinds <= {int, float}:
        raise BadInput(NO_TENSOR)
    try:
        found = np.array(level, dtype=np.float64 if float in kinds else None).reshape(shape)
    except OverflowError:
        found = np.array(None)
    if found.dtype.kind == "O":
        raise BadInput("a tensor holds an integer of more than 64 bits")
    return found


def _binary(value: Mapping[str, Any], shape: Sequence[int]) -> np.ndarray:
    kind, there = value.get("type"), value.get("shape", [1])
    if not isinstance(kind, str) or kind not in TYPES or not value.keys() <= {"b64", "type", "shape"}:
        raise BadInput(f"a tensor in base64 has a type, one of {', '.join(TYPES)}, and a shape")
    if not isinstance(there, list) or any(type(size) is not int for size in there):
        raise BadInput("the shape of a tensor in base64 has to be a list of integers")
    _refuse_other(there, shape)
    content, dtype = _decoded(value), np.dtype(TYPES[kind]).newbyteorder("<")
    if math.prod(shape) * dtype.itemsize != len(content):
        raise BadInput(f"a tensor in base64 has {len(content)} bytes, which are not those of its type and shape")
    return np.frombuffer(content, dtype=dtype).reshape(shape)


def _refuse_other(there: Sequence[int], expected: Sequence[int]) -> None:
    if list(there) != list(expected):
        known = len(there) <= LONGEST_SHAPE and all(abs(size) < 2**63 for size in there)
        shape = list(there) if known else f"of {len(there)} dimensions"
        raise BadInput(f"a tensor has shape {shape}; expected {list(expected)}")


def plain(array: Any) -> Any:
    """An output for JSON: numbers, nested lists, or a text. Raises BadInput for what is not finite."""
    if isinstance(array, str):
        return array
    array = np.asarray(array)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise BadInput("the net's output is not finite")
    return array.tolist()
