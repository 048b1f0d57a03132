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
from fuzz_seeds import SHARED, Torch, converted, fields, header_and_data, shard, torch_seeds
from msmigrate.migrate.checkpoint.formats.ckpt import CRC_MARK
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
    if rng.random() < 0.2:
        name = rng.choice(sorted(files)) if files else ""
        other = FORMATS[rng.choice(sorted(FORMATS))](rng)
        files = (
            {**files, name: fuzz_bytes.damaged(rng, files[name], rng.choice(list(other.values())))} if files else files
        )
    destination = rng.choice(DESTINATIONS)
    options: dict[str, Any] = {}
    if rng.random() < (0.85 if "training" in form else 0.03):
        options["training"] = True
        destination = rng.choice(("x.pth", "x.pth", destination)) if form == "MindSpore training" else destination
    if rng.random() < 0.25:
        options["to"] = rng.choice(("torch", "mindspore"))
    if rng.random() < 0.15:
        options["dtype"] = rng.choice(("float16", "bfloat16", "float32", "float64"))
    if rng.random() < 0.03:
        options["key"] = rng.choice(("model", "state_dict", "ema", "model_ema", fuzz_bytes.text(rng)))
    if destination == "x/" and rng.random() < 0.5:
        options["max_shard_size"] = rng.choice((1, 50, 1000))
    return Case(files, source, destination, options, rng.choice((1 << 29, 64, 16)))


def torch_file(rng: Random, form: str, *, legacy: bool) -> bytes:
    """A file of torch, damaged in its pickle, its container, its bytes, or all of them."""
    seeds = torch_seeds(form, legacy)
    seed = rng.choice(seeds)
    pickle = seed.pickle
    draw = rng.random()
    if draw < 0.8:
        pickle = fuzz_pickles.damaged(rng, pickle, [other.pickle for other in seeds])
    lie = draw > 0.7
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
        parts[at] = fuzz_pickles.damaged(rng, parts[at], [*parts[:3], keys])
    elif lie and storages:
        at = rng.randrange(len(storages))
        number = struct.pack("<q", rng.choice((fuzz_bytes.integer(rng), -1)) % (1 << 62))
        storages[at] = rng.choice((number + storages[at][8:], storages[at][:-1], storages[at] * 2, b""))
    return b"".join((*parts, *storages))


def mindspore_file(rng: Random, kind: str) -> bytes:
    """A .ckpt, damaged in its fields, in the JSON that it holds, or at its end."""
    held = fields(kind)
    draw = rng.random()
    if draw < (0.3 if kind == "ckpt" else 0.7):
        damaged_note(rng, held)
    content = fuzz_containers.lying_fields(rng, held) if draw > 0.6 else b"".join(f.encoded() for f in held)
    if rng.random() < 0.1:
        content += CRC_MARK + rng.randbytes(rng.choice((10, 10, 9, 11)))
    return content


def damaged_note(rng: Random, held: list[Field]) -> None:
    """Damage what was noted for the way back, or what a training run has: a number, or the parameter groups."""
    note = held[-1]
    if isinstance(note.content, bytes):
        note.content = fuzz_bytes.json_text(rng, damaged_record(rng, note.content))
        return
    at = rng.choice(
        [at for at, part in enumerate(held) if b"msmigrate." in part.encoded() or b".step" in part.encoded()]
    )
    whole = held[at].encoded()
    if b"msmigrate.training" in whole:
        groups = fuzz_bytes.damaged_json(rng, json.loads(whole[whole.index(b"{") :]))
        content = fuzz_bytes.json_text(rng, groups)
        held[at] = fuzz_containers.value("msmigrate.training", [len(content)], "UInt8", content)
        return
    tag = next(name for name in NUMBERS if name.encode() in whole)
    kind = rng.choice((NUMBERS[tag], NUMBERS[tag], "Float32", "Float64", "Bool"))
    form = {"Int64": "q", "Int32": "i", "Float32": "f", "Float64": "d", "Bool": "?"}[kind]
    number: float = rng.choice((float("nan"), float("inf"), -1.0, 0.5, 3.0e38, rng.getrandbits(31)))
    content = struct.pack(f"<{form}", number if form in "fd?" else rng.getrandbits(31) - rng.choice((0, 1 << 31)))
    held[at] = fuzz_containers.value(tag, [], kind, content * rng.choice((1, 1, 1, 2)))


def damaged_record(rng: Random, noted: str | bytes) -> Any:
    """A note for the way back that is damaged, or sound and not about these tensors."""
    if rng.random() < 0.4:
        return fuzz_bytes.damaged_json(rng, json.loads(noted))
    names = [*header_and_data(converted("ms"))[0], "new.x", "new.y", fuzz_bytes.text(rng)]
    shapes = ([3], [1, 3], [3, 1, 1], [4, 3, 5], [60], [0, 3], [], [1] * 70, [fuzz_bytes.integer(rng)])
    note: dict[str, Any] = {"format": 1, "names": {}, "shapes": {}, "aliases": {}, "counters": {}}
    for _ in range(rng.randrange(1, 6)):
        one, other = rng.choice(names), rng.choice(names)
        note["names"][one] = other
        note[rng.choice(("shapes", "names"))][one] = rng.choice(shapes) if rng.random() < 0.5 else other
        note["aliases"][rng.choice(names)] = rng.choice(names)
        note["counters"][rng.choice(names)] = fuzz_bytes.integer(rng)
    for name in list(note["shapes"]):
        note["shapes"][name] = rng.choice(shapes)
    note["names"] = {name: other for name, other in note["names"].items() if isinstance(other, str)}
    return note


NUMBERS = {
    "optimizer.step": "Int32",
    "msmigrate.steps": "Int64",
    "msmigrate.schedule_epoch": "Int64",
    "msmigrate.loss_scale": "Float32",
    "msmigrate.growth_tracker": "Int32",
}


def safetensors_file(rng: Random, kind: str) -> bytes:
    """A safetensors file, damaged in its header, in what is noted there, or in its length."""
    header, data = header_and_data(converted(kind))
    draw = rng.random()
    if kind == "ms" and draw < 0.3:
        noted = damaged_record(rng, header["__metadata__"]["msmigrate"])
        header["__metadata__"]["msmigrate"] = fuzz_bytes.json_text(rng, noted).decode("utf-8", "surrogatepass")
    if draw > 0.25:
        header = fuzz_bytes.damaged_json(rng, header)
    return fuzz_containers.safetensors(rng, header, data, lie=rng.random() < 0.1)


def shards(rng: Random) -> Files:
    """A folder of two files of one format, and their index; any of the three damaged, gone or exchanged."""
    kind = rng.choice(("pt", "pt", "ms", "torch", "ckpt"))
    names = ("model-1.safetensors", "model-2.safetensors")
    index: dict[str, Any] = {"metadata": {"total_size": 1}, "weight_map": {}}
    files = {}
    for number, name in enumerate(names):
        tensors = list(SHARED.items())[6 * number : 6 * number + 6]
        files[name], held = shard(kind, dict(tensors))
        index["weight_map"].update(dict.fromkeys(held, name))
    if rng.random() < 0.5:
        index = fuzz_bytes.damaged_json(rng, index)
    draw = rng.random()
    if draw < 0.1:
        files[names[0]] = files[names[1]]
    elif draw < 0.2:
        del files[rng.choice(names)]
    elif draw < 0.3:
        files[f"other{INDEX}"] = json.dumps(index).encode()
    elif draw < 0.4:
        files[names[0]] = next(iter(FORMATS[rng.choice(sorted(FORMATS))](rng).values()))
    elif draw < 0.6 and kind in ("pt", "ms"):
        header, data = header_and_data(files[names[0]])
        header = fuzz_bytes.damaged_json(rng, header)
        files[names[0]] = fuzz_containers.safetensors(rng, header, data, lie=rng.random() < 0.2)
    return {INDEX: fuzz_bytes.json_text(rng, index), **files}


FORMATS: Mapping[str, Callable[[Random], Files]] = {
    "torch zip": lambda rng: {"x": torch_file(rng, "state dict", legacy=False)},
    "torch legacy": lambda rng: {"x": torch_file(rng, "state dict", legacy=True)},
    "whole model": lambda rng: {"x": torch_file(rng, "whole model", legacy=rng.random() < 0.4)},
    "training": lambda rng: {"x": torch_file(rng, "training", legacy=rng.random() < 0.4)},
    "safetensors": lambda rng: {"x": safetensors_file(rng, "pt")},
    "shards": shards,
    "MindSpore": lambda rng: {"x": mindspore_file(rng, "ckpt")},
    "MindSpore training": lambda rng: {"x": mindspore_file(rng, "training")},
    "MindSpore safetensors": lambda rng: {"x": safetensors_file(rng, "ms")},
}
