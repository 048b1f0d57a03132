"""Damage of any kind to bytes and to JSON, drawn from a generator of random numbers."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

INTEGERS = (
    *(0, 1, -1, 2, 3, 4, 7, 8, 16, 63, 64, 100, 127, 128, 255, 256, 1000, 4095, 65535, 65536),
    *((1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, (1 << 47) + 1, (1 << 48) - 1, 1 << 48, 1 << 53),
    *(
        (1 << 60) - 1,
        1 << 60,
        1 << 62,
        (1 << 63) - 1,
        1 << 63,
        (1 << 64) - 1,
        1 << 64,
        (1 << 70) - 1,
        10**30,
        1 << 7000,
    ),
    *(-2, -(1 << 31), -(1 << 63), -(1 << 64), -(1 << 7000)),
)
WIDTHS = {"B": 1, "H": 2, "I": 4, "Q": 8}
TEXTS = (
    *("", "x", ".", "..", "/", "../../etc/passwd", "/etc/passwd", "a\nb", "a\r\nb", "\x1b[31mred", "\0", "weight"),
    *("module.", "module.module.weight", "_orig_mod.module.", "x" * 1001, "ä" * 300, "\ud800", "\u202e", "n_averaged"),
    *("own.ö", "__metadata__", "format", "pt", "ms", "msmigrate", "msmigrate.training", "optimizer.step", "ema.x"),
    *(
        "{}",
        "'",
        '"',
        "a'b\"c",
        "%s%n",
        "\u2028",
        "x\n" * 5000,
        "params",
        "state",
        "step",
        "lr",
        "running_mean",
        "bn.w",
    ),
)
NUMBERS = (0.0, -0.0, 0.5, 1.0, -1.5, 1e308, 1e400, -1e400, float("nan"), 5e-324, 2.0**31, 2.0**63)


def integer(rng: Random) -> int:
    """One that is at an edge of something, or near it, or any small one."""
    if rng.random() < 0.2:
        return rng.randrange(300)
    return rng.choice(INTEGERS) + (rng.choice((-1, 1)) if rng.random() < 0.1 else 0)


def text(rng: Random) -> str:
    """A name of a tensor or what no name should be."""
    return (
        rng.choice(TEXTS)
        if rng.random() < 0.8
        else "".join(chr(rng.randrange(1, 300)) for _ in range(rng.randrange(9)))
    )


def damaged(rng: Random, data: bytes, other: bytes) -> bytes:
    """The data after one to four mutations; `other` is what it may be spliced with."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        data = rng.choice(MUTATIONS)(rng, data, other)
    return data


def _flip(rng: Random, data: bytes, _: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8)) if data else 0):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def _replace(rng: Random, data: bytes, _: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))]) + data[at + 1 :]


def _insert(rng: Random, data: bytes, _: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice((1, 1, 2, 4, 8, 100))) + data[at:]


def _remove(rng: Random, data: bytes, _: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 1, 2, 4, 8, 100)) :]


def _cut(rng: Random, data: bytes, _: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _double(rng: Random, data: bytes, _: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    block = data[at : at + rng.choice((1, 4, 16, 100, 1000))]
    return data[:at] + block * rng.choice((2, 2, 3, 50)) + data[at + len(block) :]


def _splice(rng: Random, data: bytes, other: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _transplant(rng: Random, data: bytes, other: bytes) -> bytes:
    at, start = rng.randrange(len(data) + 1), rng.randrange(len(other) + 1)
    block = other[start : start + rng.choice((4, 16, 64, 300))]
    return data[:at] + block + data[at + len(block) * rng.randrange(2) :]


def _number(rng: Random, data: bytes, _: bytes) -> bytes:
    """Write an interesting integer of some width over what stands there, as a length field might."""
    code = rng.choice("BHIQ")
    packed = struct.pack(rng.choice("<>") + code, integer(rng) & (1 << 8 * WIDTHS[code]) - 1)
    at = rng.randrange(len(data) + 1)
    return data[:at] + packed + data[at + len(packed) :]


def _ends(rng: Random, data: bytes, other: bytes) -> bytes:
    more = rng.choice((b"\0", b" ", b"\n", rng.randbytes(20), other[:200], data))
    return data + more if rng.random() < 0.7 else more + data


Mutation = Callable[[Random, bytes, bytes], bytes]
MUTATIONS: Sequence[Mutation] = (
    *(_flip, _flip, _replace, _insert, _remove, _cut, _double, _splice, _transplant, _number, _number, _ends),
)


# JSON -------------------------------------------------------------------------------------------------------------


class Twice(dict[str, Any]):
    """A JSON object that says its first key twice."""


def damaged_json(rng: Random, value: Any) -> Any:
    """A copy of a JSON value with one to three things in it replaced, gone, moved or said twice."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = _places(value)
        if not places:
            return anything(rng)
        holder, key = rng.choice(places)
        action = rng.choice((0, 1, 2, 2, 2, 3, 4, 4, 5, 5))
        if action == 0:
            del holder[key]
        elif action == 1 and isinstance(holder, dict):
            holder[text(rng)] = holder.pop(key)
        elif action == 2:
            there, other = rng.choice(places)
            holder[key] = copy.deepcopy(there[other]) if isinstance(there, dict) or other < len(there) else None
        elif action == 3 and isinstance(holder[key], dict):
            holder[key] = Twice(holder[key])
        elif action == 4 and type(holder[key]) is int:
            holder[key] += rng.choice((-1, 1, 4, 8))
        else:
            holder[key] = anything(rng)
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Where a value stands in another: the dict or list, and the key."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(found) < 2000:
        holder = waiting.pop()
        keys = holder if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        for key in keys:
            found.append((holder, key))
            waiting.append(holder[key])
    return found


def anything(rng: Random) -> Any:
    """A JSON value that hardly fits where it goes."""
    return rng.choice(
        (
            *(integer(rng), integer(rng), integer(rng), rng.choice(NUMBERS), text(rng), text(rng), None, True, [], {}),
            *(
                [integer(rng)] * rng.randrange(5),
                [[]],
                {text(rng): integer(rng)},
                deep(rng),
                [1] * rng.choice((65, 3000)),
            ),
            *(
                "x" * 100_000 if rng.random() < 0.1 else "x",
                10**4000,
                {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
            ),
        )
    )


def deep(rng: Random) -> Any:
    """Lists or objects inside one another, up to what Python's own stack stands in making them."""
    value: Any = 1
    for _ in range(rng.choice((10, 100, 200))):
        value = [value] if rng.random() < 0.9 else {"x": value}
    return value


def json_text(rng: Random, value: Any) -> bytes:
    """The text of it, sometimes with more nesting than any stack takes, or digits than any number has."""
    body = _said(value)
    if rng.random() < 0.02:
        depth = rng.choice((1_000, 20_000, 100_000))
        body = body.replace("1", rng.choice(("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth)), 1)
    if rng.random() < 0.02:
        body = body.replace("0", "9" * rng.choice((400, 5_000)), 1)
    return body.encode("utf-8", "surrogatepass")


def _said(value: Any) -> str:
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}:{_said(item)}" for key, item in value.items()]
        return "{" + ",".join(items[:1] * isinstance(value, Twice) + items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_said, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
