"""The formats: a file's format by its first bytes, never by its name; and a new file's format by its name.

Each format is imported only when a file has it: the imports take most of the time of a small conversion.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

from ....errors import Ambiguous, BadCheckpoint, BadDestination, Unsupported
from .byte_copy import compare_checksums
from .reader import ITEM_SIZES, Piece, Source, open_file, read_at

if TYPE_CHECKING:
    from .byte_copy import Losses, Progress

HEAD = 512  # bytes that are looked at


def open_source(path: str) -> Source:
    """The checkpoint at `path`, opened; a context manager.

    path: of a file, of a folder with one checkpoint or with several files and their index, or of that index. Raises
    BadCheckpoint when it cannot be read, or is not a checkpoint; then the message says what it looks like.
    """
    if _is_folder(path):
        from .sharded import open_folder

        return open_folder(path, open_one)
    file = open_file(path)
    try:
        if _is_json(read_at(file, path, 0, HEAD)):
            from .sharded import Shards

            return Shards(path, file, open_one)
        return _opened(path, file)
    except BaseException:
        file.close()
        raise


def check_checkpoint(path: str, *, for_torch: bool = False) -> None:
    """Check by its structure alone that a file is a checkpoint; no tensor is read.

    for_torch: check that torch.save wrote it, so that torch itself can load it. Raises BadCheckpoint.
    """
    from .pth_weights import TorchSource

    with open_source(path) as source:
        if for_torch and not isinstance(source, TorchSource):
            raise BadCheckpoint(
                f"{path} was not written by torch.save, so torch cannot load it: convert it with msmigrate "
                f"convert-ckpt {path} {Path(path).with_suffix('.pth').name} --to torch"
            )
        with suppress(Ambiguous, Unsupported):  # it is a checkpoint anyway
            source.checkpoint()


def open_one(path: str) -> Source:
    """The checkpoint of one file at `path`, opened; raises BadCheckpoint, for an index too."""
    file = open_file(path)
    try:
        return _opened(path, file)
    except BaseException:
        file.close()
        raise


def check_before_torch(path: str) -> None:
    """Check a checkpoint that torch is to load: the names in its pickle, and all of its checksums.

    torch.load does neither. Raises BadCheckpoint for a file that is hostile or damaged, and what open_source raises.
    """
    from .pth_weights import TorchSource, hostile

    with open_source(path) as source:
        if isinstance(source, TorchSource):
            loaded = source.load()
            if loaded.refused:
                raise hostile(path, loaded)
        compare_checksums(source, dict, whole=True)


def _opened(path: str, file: BinaryIO) -> Source:
    head = read_at(file, path, 0, HEAD)
    if head[:4] == b"PK\x03\x04" and head[8:9] != b"{":  # in a zip this byte is the compression method
        from .pth_reader import TorchZip

        return TorchZip(path, file)
    from . import ckpt, pth_reader, safetensors_file

    if safetensors_file.begins(head):  # first, since its length may look like any other beginning
        from .safetensors_file import SafetensorsFile

        return SafetensorsFile(path, file)
    if pth_reader.begins(head):
        return pth_reader.TorchLegacy(path, file)
    if ckpt.begins(head):
        return ckpt.MindSporeCheckpoint(path, file)
    reason = looks_like(head) or "is no checkpoint of torch or MindSpore, and no safetensors file"
    raise BadCheckpoint(f"{path} {reason}")


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:
        return False  # opening it raises the error


def _is_json(head: bytes) -> bool:
    if head.lstrip()[:1] != b"{":
        return False
    from . import ckpt, safetensors_file

    return not (safetensors_file.begins(head) or ckpt.begins(head))


def looks_like(head: bytes) -> str | None:
    """What a file that is no checkpoint seems to be, by its first bytes; None where they are unknown."""
    for test, text in (
        (head == b"", "is empty"),
        (head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05", "is a bare pickle, not a torch.save archive"),
        (head.startswith(b"version https://git-lfs"), "is a git-lfs pointer; run `git lfs pull` for the real file"),
        (head.lstrip()[:1] == b"<", "is an HTML or XML page, not a checkpoint; the download went wrong"),
        (head[:3] == b"\x1f\x8b\x08", "is gzip-compressed; unpack it first"),
        (head[257:262] == b"ustar", "is a tar archive; unpack it first"),
        (head[:8] == b"\x89HDF\r\n\x1a\n", "is an HDF5 file, not a checkpoint of torch or MindSpore"),
        (head[:4] == b"GGUF", "is a GGUF file, not a checkpoint of torch or MindSpore"),
        (_is_json(head), "is JSON, not a checkpoint"),
        (head[8:10] == b'{"', "is a safetensors file whose header has an impossible length; fetch it again"),
        (head[:6] == b"\x93NUMPY", "is a NumPy array, not a checkpoint of torch or MindSpore"),
    ):
        if test:
            return text
    return None


# New files


class Holder(NamedTuple):
    """What the new file can hold: the names of which framework, which dtypes; and how such files are called."""

    framework: str
    dtypes: frozenset[str]
    called: str  # "MindSpore checkpoints"
    empty_vectors: bool = True  # MindSpore reads the shape (0,) as a single number
    record: bool = True  # it has a place for the record that the way back needs


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
        a place for it. losses: counts what casts lose. Raises BadCheckpoint when a source ends early, OSError from
        writing.
        """

    def verify(self, output: int, path: str, content: Sequence[Piece]) -> None:
        """Read the structure of the new file back and compare it with the plan; raises BadCheckpoint."""


class Form(NamedTuple):
    """A format that can be written; folder: as several files of it, with an index."""

    writer: Writer
    holder: Holder
    folder: bool = False


# the framework whose names a file of this kind has
SUFFIXES = {".ckpt": "mindspore", ".pth": "torch", ".pt": "torch", ".bin": "torch"}

SAFETENSORS = ".safetensors"  # which may have either's


def safetensors_form(framework: str, *, folder: bool) -> Form:
    """Safetensors with this framework's names, as one file or a folder of them."""
    from . import ckpt, safetensors_file

    if framework == "mindspore":
        types = frozenset(ckpt.TENSOR_TYPES)
        holder = Holder("mindspore", types, "MindSpore's safetensors files")
    else:
        holder = Holder("torch", frozenset(safetensors_file.NAMES), "safetensors files", record=False)
    return Form(safetensors_file, holder, folder)


def form(destination: str | Path, source: str, to: str | None) -> Form:
    """The format that the destination's name asks for; source: the framework whose names the source has.

    A name that ends in a slash, has no suffix, or is that of a folder, asks for a folder of safetensors files. to: the
    framework whose names the new file gets, by default the other one. Raises BadDestination for a name of no known
    kind, or for one of the other framework's kind.
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
            f"{destination} ends in none of {kinds}, but the ending chooses the format; a folder's name ends in a slash"
        )
    if to not in (None, framework):
        kind, other = ("MindSpore's", ".pth") if framework == "mindspore" else ("torch's", ".ckpt")
        raise BadDestination(f"{destination}: a {suffix} is {kind}; for --to {to} give a name in {other}")
    if framework == "mindspore":
        from . import ckpt

        types = frozenset(ckpt.TENSOR_TYPES)
        return Form(ckpt, Holder("mindspore", types, "MindSpore checkpoints", empty_vectors=False))
    from . import pth_writer

    return Form(pth_writer, Holder("torch", frozenset(ITEM_SIZES), "torch checkpoints", record=False))
