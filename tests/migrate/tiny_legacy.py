"""Files as torch wrote them before 1.6, and models saved whole, made by hand like tiny_checkpoints."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

from msmigrate.migrate.checkpoint.formats.reader import row_major
from tiny_checkpoints import STORAGES, Tensor, group, integer, mapping, named, text

MAGIC = b"\x8a\n" + 0x1950A86A20F9469CFC6C.to_bytes(10, "little")
VERSION = b"M\xe9\x03"
TYPE_SIZES = mapping([("short", integer(2)), ("int", integer(4)), ("long", integer(4))])
SYSTEM = mapping([("protocol_version", VERSION), ("little_endian", b"\x88"), ("type_sizes", TYPE_SIZES)])
SIZES = {"float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "uint8": 1, "bool": 1}


def pickled(body: bytes, protocol: int = 2) -> bytes:
    return b"\x80" + bytes([protocol]) + body + b"."


def legacy_storage(dtype: str, key: str, numel: int, view: bytes = b"N") -> bytes:
    """The opcodes of a storage in the legacy format; view: of (key, offset, size), or None."""
    kind = named("torch", STORAGES[dtype])
    return group(text("storage"), kind, text(key), text("cpu"), integer(numel), view) + b"Q"


def rebuilt(tensor: Tensor, storage: bytes) -> bytes:
    """The opcodes of a call of torch._utils._rebuild_tensor_v2 on a storage."""
    strides = row_major(tensor.shape) if tensor.strides is None else tensor.strides
    sizes = [group(*map(integer, numbers)) for numbers in (tensor.shape, strides)]
    hooks = named("collections", "OrderedDict") + b")R"
    arguments = group(storage, integer(tensor.offset), *sizes, b"\x89", hooks)
    return named("torch._utils", "_rebuild_tensor_v2") + arguments + b"R"


def legacy_tensor(tensor: Tensor, key: str) -> bytes:
    return rebuilt(tensor, legacy_storage(tensor.dtype, key, len(tensor.content) // SIZES[tensor.dtype]))


def legacy_state_dict(tensors: Mapping[str, Tensor]) -> bytes:
    """The opcodes of a dict of tensors; storage keys are the tensors' numbers."""
    return mapping((name, legacy_tensor(tensor, str(index))) for index, (name, tensor) in enumerate(tensors.items()))


def blocks(tensors: Iterable[Tensor]) -> list[tuple[str, int, bytes]]:
    """The storages of legacy_state_dict: key, number of elements, bytes."""
    return [(str(i), len(t.content) // SIZES[t.dtype], t.content) for i, t in enumerate(tensors)]


def write_legacy(
    path: Path,
    body: bytes,
    storages: Iterable[tuple[str, int, bytes]],
    *,
    magic: bytes = MAGIC,
    version: bytes = VERSION,
    system: bytes = SYSTEM,
    keys: bytes | None = None,
) -> Path:
    """Write a file of the legacy format; `body` and the other opcodes stand between PROTO and STOP."""
    storages = list(storages)
    listed = b"](" + b"".join(text(key) for key, _, _ in storages) + b"e" if keys is None else keys
    parts = [pickled(part) for part in (magic, version, system, body, listed)]
    parts += [struct.pack("<q", numel) + content for _, numel, content in storages]
    path.write_bytes(b"".join(parts))
    return path


def save_legacy(path: Path, tensors: Mapping[str, Tensor]) -> Path:
    return write_legacy(path, legacy_state_dict(tensors), blocks(tensors.values()))


def module(
    cls: str,
    parameters: Mapping[str, bytes] | None = None,
    buffers: Mapping[str, bytes] | None = None,
    modules: Mapping[str, bytes] | None = None,
    **more: bytes,
) -> bytes:
    """The opcodes of a torch.nn.Module of class `cls` (with its module's name), given those of what is in it."""
    parts = {"_parameters": parameters, "_buffers": buffers, "_modules": modules}
    state = [(name, mapping((part or {}).items())) for name, part in parts.items()]
    return named(*cls.rsplit(".", 1)) + b")\x81" + mapping([*state, *more.items()]) + b"b"
