"""Damage to the files of every kind that is read: bytes, JSON, YAML, scripts, archives, requests; with texts in it that
try to make something happen."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Sequence
from random import Random
from typing import Any

import fuzz_bytes
import yaml

CANARY = "canary"  # the name of the module, the file and whatever else must not come to life

# What tries to make something happen, as it may stand in any text
LURES = (
    *("canary.py", "canary.py:build", "canary:build", "./canary", "/tmp/canary", f"file:///tmp/{CANARY}"),
    *("http://127.0.0.1:9/canary", "hf-hub:canary/canary", "timm:canary", "torchvision:resnet18(weights='DEFAULT')"),
    *("__import__('canary')", "os.system('touch canary')", "$(touch canary)", "`touch canary`", "{{7*7}}", "%s%n"),
    *("(a+)+$", "(a|a)*b", "a{1,60000}", "*a" * 300, "[", "\\", "\\1", "(?P<x>", "/dev/zero", "/dev/stdin"),
    *("\x1b[2J", "\u202e", "\ud800", "1e999999", "0" * 5000, "9" * 5000, "x" * 20_000, "../" * 30, "con\0crete"),
)
YAML = (  # whole files, or what stands in the place of a value
    *(
        "[" * 30_000,
        "{" * 30_000,
        "- " * 20_000,
        "? " * 20_000,
        "&a [*a, *a]",
        "&a {<<: *a}",
        "!!python/name:os.system",
    ),
    *('!!python/object/apply:os.system ["touch canary"]', "!!float 1" + ":1" * 20_000, "!!binary aGk=", "<<: [{a: 1}]"),
    "\n".join(["- &a0 [x, x]", *(f"- &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60))]),
)


def bytes_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    return fuzz_bytes.damaged(rng, rng.choice(seeds), rng.choice(seeds))


def lured(rng: Random, value: Any) -> Any:
    """The value with some texts in it, or keys, replaced by lures, and values exchanged."""
    value = fuzz_bytes.damaged_json(rng, value) if rng.random() < 0.7 else copy.deepcopy(value)
    places = fuzz_bytes._places(value)
    for _ in range(rng.choice((0, 1, 1, 3))):
        if not places:
            break
        holder, key = rng.choice(places)
        if isinstance(holder, dict) and rng.random() < 0.2:
            holder[rng.choice(LURES)] = holder.get(key)
        elif (isinstance(holder, dict) and key in holder) or (isinstance(holder, list) and key < len(holder)):
            holder[key] = rng.choice((rng.choice(LURES), [rng.choice(LURES)], {rng.choice(LURES): rng.choice(LURES)}))
    return value


def tweaked(rng: Random, value: Any) -> Any:
    """The value with something small in it changed, so that what reads on comes to it: a number by one, two values of
    one kind exchanged, an item twice or gone."""
    value = copy.deepcopy(value)
    places = fuzz_bytes._places(value)
    for _ in range(rng.choice((1, 1, 2)) if places else 0):
        holder, key = rng.choice(places)
        if isinstance(holder, list) and rng.random() < 0.3:
            holder[key : key + 1] = [holder[key]] * rng.choice((0, 2)) if key < len(holder) else []
        elif key in holder if isinstance(holder, dict) else key < len(holder):
            alike = [(at, name) for at, name in places if at is not holder and _same_kind(at, name, holder[key])]
            if type(holder[key]) in (int, float) and rng.random() < 0.6:
                holder[key] += rng.choice((-1, 1, 1000))
            elif type(holder[key]) is bool:
                holder[key] = not holder[key]
            elif alike:
                at, name = rng.choice(alike)
                holder[key] = copy.deepcopy(at[name])
    return value


def _same_kind(holder: Any, key: Any, value: Any) -> bool:
    there = key in holder if isinstance(holder, dict) else key < len(holder)
    return there and type(holder[key]) is type(value)


def json_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    draw = rng.random()
    if draw < 0.2:
        return bytes_damaged(rng, seeds)
    change = tweaked if draw < 0.45 else lured
    return fuzz_bytes.json_text(rng, change(rng, json.loads(rng.choice(seeds))))


def lines_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """A file of one JSON value a line, some of which are damaged, gone, or there again."""
    lines = []
    for line in rng.choice(seeds).split(b"\n"):
        damaged = json_damaged(rng, [line]) if line and rng.random() < 0.3 else line
        lines += [damaged] * rng.choice((0, 1, 1, 1, 1, 1, 2))
    return b"\n".join(lines)


def yaml_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    draw, seed = rng.random(), rng.choice(seeds)
    if draw < 0.25:
        return bytes_damaged(rng, seeds)
    if draw < 0.35:
        return rng.choice(YAML).encode()
    if draw < 0.45:  # something instead of one value, as text
        lines = seed.decode().split("\n")
        at = rng.randrange(len(lines))
        key, colon, _ = lines[at].partition(":")
        lines[at] = f"{key}{colon or ':'} {rng.choice((*YAML, *LURES))}"
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    if draw < 0.5:  # a line again, gone, or elsewhere
        lines = seed.decode().split("\n")
        line = lines.pop(rng.randrange(len(lines)))
        for _ in range(rng.choice((0, 1, 2))):
            lines.insert(rng.randrange(len(lines) + 1), line)
        return "\n".join(lines).encode()
    value = (tweaked if draw < 0.65 else lured)(rng, yaml.safe_load(seed))
    if rng.random() < 0.5:
        return fuzz_bytes.json_text(rng, value)
    try:
        return yaml.safe_dump(value, sort_keys=False).encode("utf-8", "surrogatepass")
    except (yaml.YAMLError, ValueError, RecursionError):  # an integer of thousands of digits
        return fuzz_bytes.json_text(rng, value)


WORDS = (
    *(
        "model",
        "optimizer",
        "nn.Conv2d(3, 8, 3)",
        "lambda x: x",
        "yield",
        "await",
        "return",
        "class A(A): pass",
        "global a",
    ),
    *(
        "def f(*a, **k):",
        "import canary",
        "from canary import *",
        "exec('import canary')",
        "open('canary', 'w')",
        "x := 1",
    ),
    *(
        "*x, y = z",
        "match x:\n    case [1, *_]: pass",
        "@decorated",
        "'%s' % x",
        "f'{x!r:>{y}}'",
        "10**10**10",
        "'a' * 10**9",
    ),
    *(
        "[[[[1]*9999]*9999]*9999]",
        "(" * 90 + ")" * 90,
        "-" * 110 + "1",
        "1 << 10**9",
        "range(10**18)",
        "while True: pass",
    ),
    *("x" + ".a" * 110, "\N{BOM}", "\x0c", "\\\n", "# coding: latin-1", "\t", "if 1:\n  " * 30 + "pass"),
)


def script_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """A script with lines gone, moved, or exchanged for others; mostly still Python."""
    if rng.random() < 0.15:
        return bytes_damaged(rng, seeds)
    lines = rng.choice(seeds).decode().split("\n")
    other = rng.choice(seeds).decode().split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        action = rng.randrange(6)
        if action == 0:
            del lines[at]
        elif action == 1:
            lines.insert(at, indent + rng.choice(WORDS))
        elif action == 2:
            lines[at] = indent + rng.choice(other).strip()
        elif action == 3 and "=" in lines[at]:
            lines[at] = lines[at].partition("=")[0] + "= " + rng.choice(WORDS)
        elif action == 4:
            begin = rng.randrange(len(lines))
            lines[at:at] = lines[begin : begin + rng.choice((1, 5, 20))]
        else:
            words = lines[at].split(" ")
            words[rng.randrange(len(words))] = rng.choice(WORDS)
            lines[at] = " ".join(words)
        lines = lines or [""]
    return "\n".join(lines).encode()


def npz_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """An archive whose members, or their heads, say something else."""
    if rng.random() < 0.4:
        return bytes_damaged(rng, seeds)
    with zipfile.ZipFile(io.BytesIO(rng.choice(seeds))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(members))
    action = rng.randrange(4)
    if action == 0:
        shape = rng.choice(("(2, 3)", "(1000000000,)", "(0,)", "()", "(-1,)", "(1,) * 99", str((1 << 62, 1 << 62))))
        kind = rng.choice(("<f4", ">f8", "|O", "<i8", "|b1", "<U9", "|V8", "<M8[ns]", "<f4,<i8", "[('a', '<f4')]"))
        members[name] = npy(f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}")
    elif action == 1:
        members[name] = npy(rng.choice(("{}", "(" * 3000, "{'descr': 1}", "__import__('canary')", "9" * 5000)))
    elif action == 2:
        members[name] = fuzz_bytes.damaged(rng, members[name], b"".join(members.values()))
    else:
        members[rng.choice((*LURES, "images7.npy", "input.1.npy", "x", "labels.npy", "../x.npy"))] = members.pop(name)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, content in members.items():
            try:
                archive.writestr(name, content)
            except (UnicodeEncodeError, ValueError):
                archive.writestr("x", content)
        if rng.random() < 0.05:
            archive.writestr("images9.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (50000000,)}"))
    return held.getvalue()


def npy(head: str, content: bytes = bytes(64)) -> bytes:
    text = head.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + min(len(text), 65535).to_bytes(2, "little") + text + content


def rest_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    if rng.random() < 0.1:
        number = rng.choice((b"9" * 400_000, b"1e400", b"NaN", b"[" * 50_000, b"-0", b"1" + b"0" * 18, b"true"))
        return rng.choice(seeds).replace(b"1", number, rng.choice((1, 3)))
    return json_damaged(rng, seeds)


def safetensors_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    if rng.random() < 0.4:
        return bytes_damaged(rng, seeds)
    content = rng.choice(seeds)
    end = 8 + int.from_bytes(content[:8], "little")
    change = rng.choice((tweaked, lured))
    text = fuzz_bytes.json_text(rng, change(rng, json.loads(content[8:end])))
    return len(text).to_bytes(8, "little") + text + content[end:]
