"""Where a conversion goes: which format a name asks for, whose names the file gets, and what such a file can hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..errors import BadDestination
from .formats import mindspore_ckpt, safetensors_file, torch_zip_writer
from .formats.byte_copy import Progress
from .formats.casts import Losses
from .formats.contents import ITEM_SIZES, Piece
from .formats.mindspore_ckpt import TENSOR_TYPES
from .settle import Holder


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


MINDSPORE = frozenset(TENSOR_TYPES)
TORCH = frozenset(ITEM_SIZES)
FRAMEWORKS = ("torch", "mindspore")
# whose names a file of this kind has
SUFFIXES = {".ckpt": "mindspore", ".pth": "torch", ".pt": "torch", ".bin": "torch"}

SAFETENSORS = ".safetensors"  # which may have either's


def safetensors_form(framework: str, *, folder: bool) -> Form:
    """Safetensors with this framework's names, as one file or a folder of them."""
    if framework == "mindspore":
        holder = Holder("mindspore", MINDSPORE, "MindSpore's safetensors files")
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
        return Form(mindspore_ckpt, Holder("mindspore", MINDSPORE, "MindSpore checkpoints", empty_vectors=False))
    return Form(torch_zip_writer, Holder("torch", TORCH, "torch checkpoints", record=False))
