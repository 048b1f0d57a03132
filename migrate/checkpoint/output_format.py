"""Where a conversion goes: which format a name asks for, whose names the file gets, what such a file can hold,
and whether it may be written.

A format's writer is imported when a name asks for it, so that a small conversion does not wait for the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ...errors import BadCheckpoint, BadDestination
from .formats.byte_copy import Losses, Progress
from .formats.reader import ITEM_SIZES, Piece
from .plan import Holder


class Writer(Protocol):
    """A module that writes one format."""

    def write(
        self,
        sources: Sequence[int],
        output: int,
        content: Sequence[Piece],
        *,
        framework: str,
        record: dict[str, Any] | None,
        progress: Progress | None,
        losses: Losses | None,
    ) -> int:
        """Write these tensors to an empty file; returns its size.

        sources, output: descriptors. framework: whose names these are. record: for the way back, where the format has
        a place for it. losses: is told what casts lose. Raises BadCheckpoint when a source ends early, OSError from
        writing.
        """

    def verify(self, output: int, path: str, content: Sequence[Piece]) -> None:
        """Read the structure of the new file back and compare it with the plan; raises BadCheckpoint."""


class Form(NamedTuple):
    """A format that can be written; folder: as several files of it, with an index."""

    writer: Writer
    holder: Holder
    folder: bool = False


# whose names a file of this kind has
SUFFIXES = {".ckpt": "mindspore", ".pth": "torch", ".pt": "torch", ".bin": "torch"}

SAFETENSORS = ".safetensors"  # which may have either's

MOST_TIMES = 16  # as many bytes may be written as are read: a wider dtype takes eight, and what is tied stands once
ALWAYS = 64 << 20  # bytes that may be written in any case


def safetensors_form(framework: str, *, folder: bool) -> Form:
    """Safetensors with this framework's names, as one file or a folder of them."""
    from .formats import ckpt, safetensors_file

    if framework == "mindspore":
        types = frozenset(ckpt.TENSOR_TYPES)
        holder = Holder("mindspore", types, "MindSpore's safetensors files")
    else:
        holder = Holder("torch", frozenset(safetensors_file.NAMES), "safetensors files", record=False)
    return Form(safetensors_file, holder, folder)


def form(destination: str | Path, source: str, to: str | None) -> Form:
    """The format that the destination's name asks for; `source` is whose names the source has.

    A name that ends in a slash, has no suffix, or is that of a folder, asks for a folder of safetensors files. to:
    whose names the new file gets, by default the other's. Raises BadDestination for a name of no known kind, or one
    that says the other framework.
    """
    suffix = Path(destination).suffix.lower()
    framework = SUFFIXES.get(suffix)
    known = framework is not None or suffix == SAFETENSORS
    folder = str(destination).endswith("/") or not suffix or (not known and Path(destination).is_dir())
    if folder or suffix == SAFETENSORS:
        return safetensors_form(to or ("mindspore" if source == "torch" else "torch"), folder=folder)
    if framework is None:
        kinds = ", ".join([*SUFFIXES, SAFETENSORS])
        raise BadDestination(
            f"{destination} ends in none of {kinds}, and its end says what to write; a folder's name ends in a slash"
        )
    if to not in (None, framework):
        kind, other = ("MindSpore's", ".pth") if framework == "mindspore" else ("torch's", ".ckpt")
        raise BadDestination(f"{destination}: a {suffix} is {kind}; for --to {to} give a name in {other}")
    if framework == "mindspore":
        from .formats import ckpt

        types = frozenset(ckpt.TENSOR_TYPES)
        return Form(ckpt, Holder("mindspore", types, "MindSpore checkpoints", empty_vectors=False))
    from .formats import pth_writer

    return Form(pth_writer, Holder("torch", frozenset(ITEM_SIZES), "torch checkpoints", record=False))


def check_not_read(target: Path, sources: Iterable[str]) -> None:
    """Raise BadDestination when the file or folder to replace is one of the sources' files, or holds one."""
    for source in sources:
        real = Path(os.path.realpath(source))
        if target in (real, real.parent) and target.exists():
            raise BadDestination(f"{target} would replace {real}, which is read; give another name")


def check_shards(destination: str | Path, folder: bool, nbytes: int, most: int | None) -> None:
    """Raise BadDestination when --max-shard-size makes no sense, or is for a folder and one file is to be written.

    nbytes: of all tensors.
    """
    if most is not None and most < 1:
        raise BadDestination(f"--max-shard-size {most}: a file holds at least one byte")
    if most is not None and not folder and nbytes > most:
        raise BadDestination(
            f"{destination} is one file and would hold {nbytes:,} bytes, --max-shard-size allows {most:,}; give the "
            "name of a folder, which ends in a slash"
        )


def check_growth(source: str, size: int, nbytes: int) -> None:
    """Raise BadCheckpoint when the tensors share bytes so often that a small file would fill a disk.

    size: bytes of the source's files. nbytes: of all tensors, each by itself.
    """
    if nbytes > MOST_TIMES * size + ALWAYS:
        raise BadCheckpoint(
            f"{source} has {size:,} bytes, and its tensors, which share them, {nbytes:,}: more than {MOST_TIMES} "
            "times as many, which no model's have; save tensors that are not views of one another"
        )


def check_room(target: Path, nbytes: int) -> None:
    """Raise BadDestination at once when the disk cannot hold what is to be written.

    nbytes: of all tensors.
    """
    room = os.statvfs(target.parent)
    free = room.f_bavail * room.f_frsize
    if room.f_blocks and nbytes > free:
        raise BadDestination(
            f"cannot write {target}: it needs {nbytes:,} bytes and the disk has {free:,} left; nothing was written"
        )
