"""Torch checkpoints made by hand, opcode by opcode, so that tests can make any file without torch."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

STORAGES = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
    "int32": "IntStorage",
    "int16": "ShortStorage",
    "int8": "CharStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
}
SIZES = {"64": 8, "32": 4, "16": 2, "t8": 1, "ol": 1}


class Tensor(NamedTuple):
    """A tensor for `state_dict`; strides None means contiguous, storage None its own one."""

    content: bytes
    shape: tuple[int, ...]
    dtype: str = "float32"
    strides: tuple[int, ...] | None = None
    offset: int = 0
    storage: str | None = None


def floats(*shape: int, start: float = 0.0) -> Tensor:
    """A contiguous float32 tensor of 0, 1, 2, …"""
    count = 1
    for size in shape:
        count *= size
    return Tensor(struct.pack(f"<{count}f", *(start + index for index in range(count))), shape)


def text(value: str) -> bytes:
    encoded = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def integer(value: int) -> bytes:
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    size = value.bit_length() // 8 + 1
    return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)


def named(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def group(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"t"


def mapping(items: Iterable[tuple[str, bytes]]) -> bytes:
    return b"}(" + b"".join(text(name) + value for name, value in items) + b"u"


def rebuilt(tensor: Tensor, key: str, *, numel: int | None = None) -> bytes:
    """The opcodes of a call of torch._utils._rebuild_tensor_v2."""
    strides = tensor.strides
    if strides is None:
        strides, step = (), 1
        for size in reversed(tensor.shape):
            strides, step = (step, *strides), step * max(size, 1)
    if numel is None:
        numel = len(tensor.content) // SIZES[tensor.dtype[-2:]]
    storage = group(text("storage"), named("torch", STORAGES[tensor.dtype]), text(key), text("cpu"), integer(numel))
    hooks = named("collections", "OrderedDict") + b")R"
    sizes = [group(*map(integer, numbers)) for numbers in (tensor.shape, strides)]
    arguments = group(storage + b"Q", integer(tensor.offset), *sizes, b"\x89", hooks)
    return named("torch._utils", "_rebuild_tensor_v2") + arguments + b"R"


def state_dict(tensors: Mapping[str, Tensor]) -> tuple[bytes, dict[str, bytes]]:
    """The opcodes of a dict of tensors (without STOP), and the storages by key."""
    keys = {name: tensor.storage or str(index) for index, (name, tensor) in enumerate(tensors.items())}
    pickled = mapping((name, rebuilt(tensor, keys[name])) for name, tensor in tensors.items())
    return pickled, {keys[name]: tensor.content for name, tensor in tensors.items()}


def write(
    path: Path,
    pickled: bytes,
    storages: Mapping[str, bytes],
    *,
    byteorder: bytes | None = b"little",
    extra: Mapping[str, bytes] | None = None,
    compression: int = zipfile.ZIP_STORED,
) -> Path:
    """Write a zip as torch.save does; `pickled` is the body between PROTO and STOP."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + pickled + b".")
        if byteorder is not None:
            archive.writestr("archive/byteorder", byteorder)
        for key, content in storages.items():
            archive.writestr(f"archive/data/{key}", content)
        for name, content in (extra or {}).items():
            archive.writestr(name, content)
    return path


def save(path: Path, tensors: Mapping[str, Tensor]) -> Path:
    """Write a state dict."""
    return write(path, *state_dict(tensors))


BATCH_NORM = {
    "bn.weight": floats(3),
    "bn.bias": floats(3, start=10),
    "bn.running_mean": floats(3, start=20),
    "bn.running_var": floats(3, start=30),
    "bn.num_batches_tracked": Tensor(struct.pack("<q", 7), (), "int64"),
}
SMALL = {"conv.weight": floats(3, 2, 3, 3), **BATCH_NORM, "fc.weight": floats(4, 3), "fc.bias": floats(4)}
