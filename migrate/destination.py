"""Where a conversion goes: which format a name asks for, whose names the file gets, and what such a file can hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..errors import BadDestination
from .formats import mindspore_ckpt
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
    """A format that can be written."""

    writer: Writer
    holder: Holder


MINDSPORE = frozenset(TENSOR_TYPES)
TORCH = frozenset(ITEM_SIZES)
FRAMEWORKS = ("torch", "mindspore")
SUFFIXES = {".ckpt": "mindspore"}  # whose names a file of this kind has, where its kind says it


def form(destination: Path, source: str, to: str | None) -> Form:
    """The format that the destination's name asks for; `source` is whose names the source has.

    to: whose names the new file gets, by default the other's. Raises BadDestination for a name of no known kind, or
    one that says the other framework.
    """
    suffix = destination.suffix.lower()
    framework = SUFFIXES.get(suffix)
    if suffix == ".ckpt":
        if to == "torch":
            raise BadDestination(f"{destination}: a .ckpt is MindSpore's; for --to torch give a name in .pth")
        return Form(mindspore_ckpt, Holder("mindspore", MINDSPORE, "MindSpore checkpoints", empty_vectors=False))
    raise BadDestination(
        f"{destination} does not end in .ckpt, and mindspore.load_checkpoint reads nothing else{framework or ''}"
    )
