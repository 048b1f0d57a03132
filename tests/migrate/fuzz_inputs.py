"""Damaged checkpoints of every format that is read; each is told by its format, a seed and a number."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

import fuzz_bytes
import fuzz_containers
import fuzz_pickles
import tiny_legacy
from fuzz_containers import Field, Member
from fuzz_seeds import Torch, converted, fields, header_and_data, torch_seeds
from msmigrate.migrate.formats.mindspore_ckpt import CRC_MARK
from tiny_checkpoints import text
from tiny_legacy import pickled

DESTINATIONS = ("x.ckpt", "x.ckpt", "x.ckpt", "x.safetensors", "x.safetensors", "x.pth", "x.pth", "x/")
INDEX = "model.safetensors.index.json"
Files = dict[str, bytes]


class Case(NamedTuple):
    """An input: files of a folder (name -> content), which of them is converted ("" for the folder), to what, and how.

    chunk: the bytes of the largest piece of a tensor in a new .ckpt.
    """

    files: Mapping[str, bytes]
    source: str
    destination: str
    options: Mapping[str, Any]
    chunk: int


def case(form: str, seed: int, number: int) -> Case:
    """The input of this number; the same for the same three."""
    rng = Random(f"{form}:{seed}:{number}")
    files = FORMATS[form](rng)
    source = next(iter(files)) if len(files) == 1 else rng.choice(("", "", INDEX))
    if rng.random() < 0.3:
        name = rng.choice(sorted(files)) if files else ""
        other = FORMATS[rng.choice(sorted(FORMATS))](rng)
        files = {**files, name: fuzz_bytes.damaged(rng, files[name], rng.choice(list(other.values())))} if files else files
    destination = rng.choice(DESTINATIONS)
    options: dict[str, Any] = {}
    if rng.random() < (0.85 if "training" in form else 0.03):
        options["training"] = True
        destination = rng.choice(("x.pth", "x.pth", destination)) if form == "mindspore training" else destination
    if rng.random() < 0.25:
        options["to"] = rng.choice(("torch", "mindspore"))
    if rng.random() < 0.15:
        options["dtype"] = rng.choice(("float16", "bfloat16", "float32", "float64"))
    if rng.random() < 0.05:
        options["key"] = rng.choice(("model", "state_dict", "ema", "model_ema", fuzz_bytes.text(rng)))
    if destination == "x/" and rng.random() < 0.5:
        options["max_shard_size"] = rng.choice((1, 50, 1000))
    return Case(files, source, destination, options, rng.choice((1 << 29, 64, 16)))


def torch_file(rng: Random, form: str, legacy: bool) -> bytes:
    """A file of torch, damaged in its pickle, its container, its bytes, or all of them."""
    seeds = torch_seeds(form, legacy)
    seed = rng.choice(seeds)
    pickle = seed.pickle
    if rng.random() < 0.65:
        pickle = fuzz_pickles.damaged(rng, pickle, [other.pickle for other in seeds])
    lie = rng.random() < 0.25
    if legacy:
        return legacy_file(rng, seed._replace(pickle=pickle), lie)
    contents = [("data.pkl", pickle), ("byteorder", b"little"), ("version", b"3\n")]
    contents += [(f"data/{key}", content) for key, _, content in seed.storages]
    members = [Member(f"archive/{name}".encode(), content) for name, content in contents]
    return fuzz_containers.lying_zip(rng, members) if lie else fuzz_containers.zipped(members)


def legacy_file(rng: Random, held: Torch, lie: bool) -> bytes:
    """The file of before torch 1.6; a lie is in one of the small pickles, or in the storages."""
    keys = pickled(b"](" + b"".join(text(key) for key, _, _ in held.storages) + b"e")
    parts = [pickled(tiny_legacy.MAGIC), pickled(tiny_legacy.VERSION), pickled(tiny_legacy.SYSTEM), held.pickle, keys]
    storages = [struct.pack("<q", numel) + content for _, numel, content in held.storages]
    if lie and rng.random() < 0.5:
        at = rng.choice((0, 1, 2, 2, 4, 4, 4))
        parts[at] = fuzz_pickles.damaged(rng, parts[at], parts)
    elif lie and storages:
        at = rng.randrange(len(storages))
        number = struct.pack("<q", rng.choice((fuzz_bytes.integer(rng), -1)) % (1 << 62))
        storages[at] = rng.choice((number + storages[at][8:], storages[at][:-1], storages[at] * 2, b""))
    return b"".join((*parts, *storages))


def mindspore_file(rng: Random, kind: str) -> bytes:
    """A .ckpt, damaged in its fields, in the JSON that it holds, or at its end."""
    held = fields(kind)
    rng.shuffle(held) if rng.random() < 0.1 else None
    draw = rng.random()
    if draw < 0.25 if kind == "ckpt" else draw < 0.6:
        damaged_note(rng, held)
    content = fuzz_containers.lying_fields(rng, held) if rng.random() < 0.6 else b"".join(f.encoded() for f in held)
    if rng.random() < 0.1:
        content += CRC_MARK + rng.randbytes(rng.choice((10, 10, 9, 11)))
    return content


def damaged_note(rng: Random, held: list[Field]) -> None:
    """Damage what was noted for the way back, or the parameter groups, or a number of the training run."""
    note = held[-1]
    if isinstance(note.content, bytes):
        note.content = fuzz_bytes.json_text(rng, fuzz_bytes.damaged_json(rng, json.loads(note.content)))
        return
    ours = [part.content for part in held if isinstance(part.content, list) and b"msmigrate." in part.content[0].encoded()]
    tag, tensor = rng.choice(ours or [held[0].content])  # type: ignore[misc]
    kind = tensor.content[-2].content
    if tag.content == b"msmigrate.training":
        content = fuzz_bytes.json_text(rng, fuzz_bytes.damaged_json(rng, json.loads(b"".join(parts(ours)))))
        held[:] = [part for part in held if part.content not in ours or b"msmigrate.training" not in part.encoded()]
        held.append(fuzz_containers.value("msmigrate.training", [len(content)], "UInt8", content))
    else:
        number = struct.pack("<d", rng.choice(fuzz_bytes.NUMBERS)) if rng.random() < 0.5 else rng.randbytes(8)
        size = {b"Float32": 4, b"Int32": 4}.get(kind, 8)
        tensor.content[-1].content = struct.pack("<f", float("nan")) if rng.random() < 0.3 and size == 4 else number[:size]
