"""Valid small checkpoints of every format that is read, made by hand: what fuzz_inputs.py damages."""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import tiny_checkpoints
import tiny_legacy
from fuzz_containers import Field, record, value
from hostile_pickles import attacks
from msmigrate.migrate.checkpoint import convert
from msmigrate.migrate.checkpoint.formats import ckpt
from msmigrate.migrate.checkpoint.formats.registry import open_source
from tiny_checkpoints import BATCH_NORM, SMALL, Tensor, floats, group, integer, named, text, write
from tiny_legacy import legacy_storage, module, pickled


class Torch(NamedTuple):
    """A pickle, and the storages that it refers to: key, number of elements, bytes."""

    pickle: bytes
    storages: Sequence[tuple[str, int, bytes]]


SIZES = {**tiny_legacy.SIZES, "float64": 8, "int16": 2}

VIEWS = {
    "own.turned": Tensor(floats(6, 4).content, (4, 6), strides=(1, 4)),
    "own.part": Tensor(floats(9).content, (2, 3), offset=2),
    "own.wide": Tensor(floats(3).content, (4, 3), strides=(0, 1)),
    "own.none": Tensor(b"", (0, 3), "int16"),
    "own.one": Tensor(struct.pack("<e", 1), (), "float16"),
    "own.same": Tensor(floats(2).content, (2,), storage="s"),
    "own.tied": Tensor(floats(2).content, (2,), storage="s"),
}
KINDS = {f"own.{kind}": Tensor(bytes(range(3 * size)), (3,), kind) for kind, size in SIZES.items() if kind != "bool"}
WRAPPED = {f"module.{name}": tensor for name, tensor in SMALL.items()}


LONG = {f"{number}{'l' * 980}.weight": floats(2, 1 + number) for number in range(4)}
LONG |= {"deep.turned": Tensor(floats(6).content, (1,) * 40 + (2, 3), strides=(0,) * 40 + (1, 2))}

COMPUTED = {  # weight norm in its two forms, spectral norm and pruning
    "c.weight_g": floats(3, 1, start=1),
    "c.weight_v": floats(3, 2, start=1),
    "c.bias": floats(3),
    "d.parametrizations.weight.original0": floats(2, 1, 1, start=1),
    "d.parametrizations.weight.original1": floats(2, 2, 1, start=1),
    "e.parametrizations.weight.original": floats(2, 1, start=1),
    "e.parametrizations.weight.0._u": floats(2, start=1),
    "e.parametrizations.weight.0._v": floats(1, start=1),
    "e.bias": floats(2),
    "f.weight_orig": floats(2, 3),
    "f.weight_mask": floats(2, 3),
    "f.bias": floats(2),
}


def said(value: Any, tensor: Callable[[Tensor], bytes]) -> bytes:
    """The opcodes of a plain value with tensors in it; bytes are opcodes already."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, Tensor):
        return tensor(value)
    if isinstance(value, dict):
        items = (said(key, tensor) + said(item, tensor) for key, item in value.items())
        return b"}(" + b"".join(items) + b"u"
    if isinstance(value, (list, tuple)):
        items = (said(item, tensor) for item in value)
        return (
            (b"](" if isinstance(value, list) else b"(") + b"".join(items) + (b"e" if isinstance(value, list) else b"t")
        )
    if value is None or isinstance(value, bool):
        return {None: b"N", True: b"\x88", False: b"\x89"}[value]
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    return text(value) if isinstance(value, str) else integer(value)


def net(**more: bytes) -> Callable[[Callable[[Tensor], bytes]], bytes]:
    """A model saved whole, with more attributes."""

    def made(tensor: Callable[[Tensor], bytes]) -> bytes:
        norm = {name.removeprefix("bn."): tensor(held) for name, held in BATCH_NORM.items()}
        parameters = {name: norm.pop(name) for name in ("weight", "bias")}
        parts = {
            "conv": module("torch.nn.modules.conv.Conv2d", {"weight": tensor(floats(3, 2, 3, 3)), "bias": b"N"}),
            "bn": module("torch.nn.modules.batchnorm.BatchNorm2d", parameters, norm),
            "own": module(
                "my.Own", {"x": tensor(floats(2))}, {"y": tensor(floats(1))}, _non_persistent_buffers_set=KEPT
            ),
        }
        return module("my.Net", modules=parts, training=b"\x88", **more)

    return made


KEPT = named("builtins", "set") + group(b"](" + text("y") + b"e") + b"R"


def training(tensor: Callable[[Tensor], bytes]) -> bytes:
    """A training checkpoint: the weights, and all that a script keeps beside them."""
    parameters = {name: held for name, held in SMALL.items() if held.dtype == "float32" and "running" not in name}
    state = {
        number: {"step": floats(start=5), "exp_avg": held, "exp_avg_sq": held._replace(content=held.content[::-1])}
        for number, held in enumerate(parameters.values())
    }
    options = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "amsgrad": False}
    options |= {"foreach": None, "decoupled_weight_decay": True}
    groups = [{**options, "params": list(range(len(parameters)))}]
    return said(
        {
            "epoch": 3,
            "model": SMALL,
            "optimizer": {"state": state, "param_groups": groups},
            "global_step": 5,
            "lr_scheduler": {"last_epoch": 3, "base_lrs": [0.1]},
            "scaler": {"scale": 65536.0, "_growth_tracker": 7},
            "model_ema": {f"module.{name}": held for name, held in SMALL.items()},
            "rng_state": KINDS["own.uint8"],
        },
        tensor,
    )


def bodies(form: str) -> Sequence[Callable[[Callable[[Tensor], bytes]], bytes]]:
    """What the pickles of a format may describe, given how a tensor is said."""
    if form == "whole model":
        return (net(), net(_forward_hooks=b"}"), lambda tensor: said({"model": net()(tensor), "epoch": 1}, tensor))
    if form == "training":
        return (training,)
    evil = tuple(attack.body for attack in attacks("canary").values())
    dicts: tuple[Any, ...] = (
        SMALL,
        SMALL,
        VIEWS,
        KINDS,
        WRAPPED,
        LONG,
        {"state_dict": SMALL, "ema": WRAPPED, "epoch": 1},
    )
    dicts += tuple({"own.a": floats(2), "evil": body} for body in evil[::20])
    return tuple(lambda tensor, held=held: said(held, tensor) for held in dicts)


@cache
def torch_seeds(form: str, legacy: bool) -> Sequence[Torch]:
    """Valid pickles with their storages."""
    found = []
    for body in bodies(form):
        storages: dict[str, tuple[str, int, bytes]] = {}

        def tensor(held: Tensor, storages: dict[str, tuple[str, int, bytes]] = storages) -> bytes:
            key = held.storage or str(len(storages))
            count = len(held.content) // SIZES[held.dtype]
            storages[key] = (key, count, held.content)
            storage = legacy_storage(held.dtype, key, count)
            return tiny_legacy.rebuilt(held, storage) if legacy else tiny_checkpoints.rebuilt(held, key, numel=count)

        found.append(Torch(pickled(body(tensor)), tuple(storages.values())))
    return found


# MindSpore's files, and safetensors, msmigrate itself writes from the same tensors.


@cache
def converted(kind: str) -> bytes:
    """A valid file: of MindSpore ("ckpt", in pieces of 20 bytes; "training"; "ms", safetensors) or of torch ("pt")."""
    seed = torch_seeds("training", False)[0]
    chunk = 20 if kind == "ckpt" else ckpt.CHUNK
    with tempfile.TemporaryDirectory() as name, mock.patch.object(ckpt, "CHUNK", chunk):
        source, suffix = Path(name, "x.pth"), ".ckpt" if kind in ("ckpt", "training") else ".safetensors"
        if kind == "training":
            write(source, seed.pickle[2:-1], {key: content for key, _, content in seed.storages})
        else:
            tiny_checkpoints.save(source, {**SMALL, **VIEWS, **KINDS, "line.weight": floats(4, 3, 5)})
        target = source.with_suffix(suffix)
        convert.convert(source, target, to="torch" if kind == "pt" else None, training=kind == "training")
        return target.read_bytes()


SHARED = {name: tensor for name, tensor in {**SMALL, **VIEWS}.items() if name not in ("own.wide", "own.none")}


def shard(kind: str, tensors: Mapping[str, Tensor]) -> tuple[bytes, list[str]]:
    """One file of several, of torch's safetensors ("pt") or zip ("torch"), or of MindSpore's; and the names in it."""
    suffix = {"pt": "safetensors", "ms": "safetensors", "torch": "pth", "ckpt": "ckpt"}[kind]
    return _shard(kind, suffix, tuple(tensors))


@cache
def _shard(kind: str, suffix: str, names: tuple[str, ...]) -> tuple[bytes, list[str]]:
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name, "in"), Path(name, f"x.{suffix}")
        tiny_checkpoints.save(source, {name: SHARED[name] for name in names})
        convert.convert(source, target, to="torch" if kind in ("pt", "torch") else None)
        with open_source(str(target)) as opened:
            return target.read_bytes(), list(opened.checkpoint().tensors)


TOLD = {"optimizer": "torch.optim.AdamW", "scaler": {"growth_factor": 2.0, "growth_interval": 2000}}


def fields(kind: str) -> list[Field]:
    """The same, of kind ckpt or training, as the fields of its message."""
    content = converted(kind)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        values, noted = ckpt.structure(file.fileno(), kind)
    found = [
        value(held.tag, held.dims, held.tensor_type, content[at : at + length])
        for held in values
        for at, length in held.pieces
    ]
    for at, part in enumerate(found):
        whole = part.encoded()
        if b"msmigrate.training" in whole:  # only a training run of MindSpore knows the class of the optimizer
            told = json.dumps({**TOLD, **json.loads(whole[whole.index(b"{") :])}).encode()
            found[at] = value("msmigrate.training", [len(told)], "UInt8", told)
    return [*found, *([record(noted)] if noted else [])]


def header_and_data(content: bytes) -> tuple[Any, bytes]:
    """What a safetensors file consists of."""
    end = 8 + struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8:end]), content[end:]
