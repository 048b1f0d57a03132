"""What a checkpoint holds, whatever its format: tensors as checked views of byte ranges, none of them loaded.

Besides the net's tensors it may hold the state of a training run, under names of its own, and its record: what the
conversion that made it has noted for the way back:

    names     torch's name of a tensor -> its new name, where torch's cannot be inferred from the new one
    shapes    torch's name -> its shape in torch, where the new one differs
    aliases   name -> the name of the tensor whose bytes it shares (tied weights), of which one is stored
    counters  name -> the integer that was dropped, since MindSpore has no place for it (num_batches_tracked)

The record is JSON: in a `.ckpt` in a field that MindSpore ignores, in safetensors under `msmigrate` in the metadata. It
comes from a file, so it is used only as far as it fits the tensors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, NamedTuple

from ....errors import BadCheckpoint
from ....input_files import json_value, open_regular

ITEM_SIZES = {  # bytes of one element, by torch's name of the dtype
    name: size
    for size, names in {
        16: "complex128",
        8: "float64 int64 uint64 complex64",
        4: "float32 int32 uint32 complex32",
        2: "float16 bfloat16 int16 uint16",
        1: "bool int8 uint8 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2",
    }.items()
    for name in names.split()
}
MAX_NAME = 1000  # letters
MAX_TENSORS = 250_000  # and other entries, of one checkpoint; a small file could name any number
MAX_RANK = 64
MAX_DIM = 1 << 48

Shape = tuple[int, ...]


class ByteRange(NamedTuple):
    """Where bytes are: an offset and a length in one of the source's files, which is given by its number."""

    offset: int
    length: int
    file: int = 0


class Checksum(NamedTuple):
    """The expected CRC-32 of a byte range, and the range's name in the file."""

    range: ByteRange
    crc: int
    name: str


class Tensor(NamedTuple):
    """One tensor of a checkpoint: a checked view of bytes.

    `spans` one after another cover the elements from the first to the last one that the view touches; only a format
    that cuts large tensors has more than one. `strides` count elements. For a contiguous tensor the spans hold exactly
    nbytes, which can be copied as they are. Equal tensors are the same bytes, seen in the same way.
    """

    dtype: str
    shape: Shape
    strides: Shape
    spans: tuple[ByteRange, ...]

    @property
    def item_size(self) -> int:
        return ITEM_SIZES[self.dtype]

    @property
    def nbytes(self) -> int:
        return product(self.shape) * self.item_size

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie one after another in row-major order."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return 0 in self.shape
            expected *= size
        return True


class Checkpoint(NamedTuple):
    """The state dict inside a checkpoint, by its names in the module (prefixes of wrappers taken off).

    framework: whose names these are, "torch" or "mindspore". format: of the file, in words. refused: entries that
    cannot be read as a tensor -> the reason. wrapper: the key it was found under. prefix: what was taken off every
    name. others: what else the file holds, what -> a short description. owners: module path -> its class and that
    class's bases, where the file names them. record: what the conversion that made this file has noted for the way
    back. training: what a training checkpoint holds besides the weights, inert, by its key in the file.
    """

    framework: str
    format: str
    tensors: Mapping[str, Tensor]
    refused: Mapping[str, str]
    wrapper: str | None = None
    prefix: str = ""
    others: Mapping[str, str] = {}
    owners: Mapping[str, tuple[str, ...]] | None = None
    record: Mapping[str, Any] | None = None
    training: Mapping[str, Any] | None = None


class Piece(NamedTuple):
    """One tensor as it is to be written: its name, dtype and shape, and the tensor that it is made from."""

    name: str
    dtype: str
    shape: Shape
    tensor: Tensor

    @property
    def nbytes(self) -> int:
        return product(self.shape) * ITEM_SIZES[self.dtype]


class Source:
    """An open checkpoint, of one file or several; use it as a context manager.

    `files` are the open files, to whose numbers byte ranges refer.
    """

    def __init__(self, path: str, files: list[BinaryIO]) -> None:
        self.path, self.files = path, files

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files:
            file.close()

    @property
    def descriptors(self) -> list[int]:
        return [file.fileno() for file in self.files]

    def checkpoint(self, key: str | None = None) -> Checkpoint:
        """What the file holds (under `key`, where more than one state dict is in it), contents unread.

        Raises BadCheckpoint when it is damaged or there is no state dict, Ambiguous when two could be meant,
        Unsupported for what msmigrate does not read.
        """
        raise NotImplementedError

    def checksums(self, *, whole: bool = False) -> list[Checksum]:
        """The file's checksums of what was described so far, or of all of it; most formats have none."""
        return []

    def tensor(self, value: Any) -> Tensor:
        """Describe an inert tensor of `Checkpoint.training`; raises BadCheckpoint if it is no tensor, or is damaged."""
        if isinstance(value, Tensor):
            return value
        raise BadCheckpoint(f"{self.path}: a tensor was expected in the training state")

    def weights(self, value: Any) -> Mapping[Any, Any]:
        """The entries of an inert state dict of `Checkpoint.training`; raises BadCheckpoint for any other value."""
        if type(value) is dict:
            return value
        raise BadCheckpoint(f"{self.path}: a state dict was expected in the training state")


def open_file(path: str) -> BinaryIO:
    """Open a regular file for reading; raises BadCheckpoint, also for a pipe, where opening would wait for ever."""
    try:
        return open_regular(path)
    except OSError as error:
        raise BadCheckpoint(f"cannot read {path}: {error.strerror}") from None


def read_at(file: BinaryIO, path: str, offset: int, length: int) -> bytes:
    """Up to `length` bytes from an offset; raises BadCheckpoint when the disk cannot read."""
    try:
        return os.pread(file.fileno(), length, offset)
    except OverflowError:  # an offset that no file has
        return b""
    except OSError as error:
        raise BadCheckpoint(f"cannot read {path}: {error.strerror}") from None


def check_name(path: str, name: object) -> str:
    """The name, if a tensor may have it: printable, and no part between dots empty; else raises BadCheckpoint."""
    if not isinstance(name, str) or not name.isprintable() or len(name) > MAX_NAME or ".." in f".{name}.":
        raise BadCheckpoint(f"{path}: {ascii(name)[:80]} is no name of a tensor")
    return name


def check_count(path: str, count: int) -> None:
    """Raise BadCheckpoint where there are more entries than any checkpoint has."""
    if count > MAX_TENSORS:
        raise BadCheckpoint(f"{path} has {count:,} entries among its tensors; a checkpoint has at most {MAX_TENSORS:,}")


def row_major(shape: Shape) -> Shape:
    """The strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def product(shape: Shape) -> int:
    """How many elements a shape has."""
    total = 1
    for size in shape:
        total *= size
    return total


def shown(name: str) -> str:
    """A name from the file, safe to print on one line."""
    return name if name.isprintable() and len(name) <= 200 else ascii(name)[:200]


PREFIXES = ("module.", "_orig_mod.")  # put before every name by DistributedDataParallel and by torch.compile
COUNTERS = ("n_averaged",)  # AveragedModel's own entries, besides the names that it prefixes


def wrapper_prefix(names: Iterable[str]) -> str:
    """The prefix that wrappers have put before every name."""
    prefix = ""
    names = [name for name in names if name not in COUNTERS]
    while taken := next((p for p in PREFIXES if names and all(_longer(name, prefix + p) for name in names)), None):
        prefix += taken
    return prefix


def _longer(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and name != prefix


# The bytes compared with the file's checksums, in a thread that runs during the copying

Tensors = Callable[[], Mapping[str, Tensor]]


# Tensors that are not the net's

OURS = "msmigrate."  # no net has a parameter of this name
BESIDE = {OURS: "of the training run", "optimizer.": "of the optimizer's state", "ema.": "of the moving average"}


def beside_the_net(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors that are not the net's; none unless `msmigrate train` wrote the checkpoint.

    Another net may well have a parameter called `optimizer.weight`.
    """
    if not any(name.startswith(OURS) for name in tensors):
        return {}
    return {name: tensor for name, tensor in tensors.items() if name.startswith(tuple(BESIDE))}


def described(names: Iterable[str]) -> dict[str, str]:
    """A description of each kind of these tensors: `optimizer.*` -> `161 tensors of the optimizer's state`."""
    listed = list(names)
    counts = {start: sum(name.startswith(start) for name in listed) for start in BESIDE}
    return {
        f"{start}*": f"{count} tensor{'s' * (count != 1)} {BESIDE[start]}" for start, count in counts.items() if count
    }


MAX_RECORD = 16 << 20  # bytes
FORMAT = 1
PARTS = {"names": str, "shapes": list, "aliases": str, "counters": int}


def packed(record: Mapping[str, Any]) -> bytes:
    """The record as bytes."""
    return json.dumps({"format": FORMAT, **record}, separators=(",", ":")).encode()


def unpacked(path: str, content: bytes | str) -> dict[str, Any] | None:
    """The record in these bytes of packed(); None for no bytes. Raises BadCheckpoint when it is damaged or of a later
    format."""
    if not content:
        return None
    try:
        found = json_value(content)
        if type(found) is not dict or type(found.get("format")) is not int:
            raise ValueError
        for part, kind in PARTS.items():
            named = found.setdefault(part, {})
            if type(named) is not dict or any(type(value) is not kind for value in named.values()):
                raise ValueError
            for name in (*named, *(named.values() if kind is str else ())):
                check_name(path, name)
        for shape in found["shapes"].values():
            if len(shape) > MAX_RANK or any(type(size) is not int or not 0 <= size < MAX_DIM for size in shape):
                raise ValueError
    except (ValueError, BadCheckpoint):
        raise BadCheckpoint(f"{path}: the note of an earlier conversion in it is damaged") from None
    if found["format"] != FORMAT:
        raise BadCheckpoint(f"{path} was written by a later msmigrate; update this one")
    return found


STEPS = "msmigrate.steps"  # optimizer steps taken
EPOCH = "msmigrate.schedule_epoch"  # how many steps the schedule has taken
GROUPS = "msmigrate.training"  # torch's parameter groups, as JSON, for converting to torch
RUN = "msmigrate.run"  # what `train` notes of its run
