"""Exported files: a file and its external data, put in place together; and whether somebody else's would run code.

MindSpore writes the parameters of a MindIR into a folder of their own when they have more than 1 GiB, and names it
after the file; loading finds it by that name next to the file. A protobuf message, and so an ONNX file, cannot exceed
2 GiB; for more ONNX has external data.

MindSpore's operators only compute, with a few exceptions: `Custom` makes MindSpore load a shared library whose path is
in the file. That is read from a MindIR's structure, before it is loaded; so are the names of the files next to it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ..atomic_files import atomic_file, check_destination, folder_beside, out_of_the_way
from ..errors import BadCheckpoint, BadDestination, BadInput
from ..input_files import open_regular
from ..migrate.checkpoint.formats.ckpt import Cursor
from ..migrate.checkpoint.formats.reader import shown

ONNX_WHOLE = 2**31 - 2**26  # bytes of parameters that one file holds, with room left for the graph
MARK, FOLDER, DATA = "_graph", "_variables", ".data"  # in names


def stem_for(out: Path) -> str:
    """How the names of a file and of what is next to it begin: MindSpore accepts only these characters."""
    return re.sub(r"[^0-9a-zA-Z_.-]", "_", out.stem) or "model"


def graph_of(mindir: Path) -> Path:
    """The name under which MindSpore writes the graph of a large net; any other would do."""
    return mindir.with_name(f"{mindir.stem}{MARK}{mindir.suffix}")


def beside(file: Path) -> Path:
    """What belongs to a MindIR or ONNX file if its net is large: a folder, or a file of external data."""
    return file.with_name(stem_for(file) + (f"{file.suffix}{DATA}" if file.suffix == ".onnx" else FOLDER))


def total(file: Path) -> int:
    """Bytes of a file and what lies beside it."""
    there = beside(file)
    parts = there.iterdir() if there.is_dir() else [there] if there.exists() else []
    return file.stat().st_size + sum(part.stat().st_size for part in parts)


OURS = re.compile(r"data_\d+")  # what MindSpore calls the files in the folder of a large MindIR


def check(out: Path, source: Path, *, force: bool) -> Path:
    """Where the file goes. Raises BadDestination where it, or what may lie beside it, cannot be written."""
    target = check_destination(out, source, force=force)
    there = beside(target)
    if not there.exists():
        return target
    if not force:
        raise BadDestination(f"{there} exists, where a large net's numbers go; pass --force to replace it")
    if there.is_dir() is not (target.suffix == ".mindir") or there.is_symlink() or _strange(there):
        raise BadDestination(
            f"{there} is where a large net's numbers go, and no export wrote it: --force does not replace it"
        )
    return target


def _strange(there: Path) -> bool:
    return there.is_dir() and any(not OURS.fullmatch(path.name) or not path.is_file() for path in there.iterdir())


def place(file: Path, target: Path, *, force: bool) -> None:
    """Copy what was verified to where it goes. Raises BadDestination, and then nothing has changed."""
    with (
        _placed_beside(beside(file), beside(target)),
        atomic_file(target, force=force) as descriptor,
        file.open("rb") as source,
        open(descriptor, "wb", closefd=False) as new,
    ):
        shutil.copyfileobj(source, new)


@contextmanager
def _placed_beside(made: Path, there: Path) -> Iterator[None]:
    """Put what belongs next to a file in its place; what was there before comes back if the block fails."""
    if not made.exists():
        yield
        return
    try:
        with folder_beside(there) as temporary:
            new = temporary / "new"
            _copy(made, new)
            with out_of_the_way(there):
                new.rename(there)
                yield
    except OSError as error:
        raise BadDestination(f"cannot write {there}: {error.strerror or error}") from error


def _copy(made: Path, new: Path) -> None:
    """Copy a file or folder with the permissions that new files get; it is on the disk when this returns."""
    if made.is_dir():
        new.mkdir()
    for part in made.iterdir() if made.is_dir() else (made,):
        path = new / part.name if made.is_dir() else new
        shutil.copyfile(part, path)
        with path.open("rb") as written:
            os.fsync(written.fileno())


# A MindIR from somebody else

CODE = ("Custom", "PyExecute", "PyFunc", "PyInterpret")  # operators that run what the file names
DEEPEST = 100

# mind_ir.proto: message -> number of a field -> what is in it; all other fields are skipped
FIELDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 8: "graph", 12: "primitive"},
    "graph": {1: "node", 3: "tensor", 8: "attribute"},
    "node": {4: "operator", 5: "attribute", 8: "attribute", 9: "attribute"},
    "primitive": {2: "operator", 3: "attribute"},
    "attribute": {6: "tensor", 7: "graph", 12: "tensor", 13: "graph", 17: "attribute"},
    "tensor": {12: "external"},
    "external": {1: "location"},
}
VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5  # the kinds of fields


def refuse_code(file: Path) -> None:
    """Raise BadInput for a MindIR that names code to run or a file elsewhere, and for a file that is no MindIR."""
    try:
        with open_regular(file) as opened:
            end = os.fstat(opened.fileno()).st_size
            _Model(opened.fileno(), str(file), 0, end).message("model", end, 0)
    except BadCheckpoint as error:
        raise BadInput(str(error)) from None
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror or error}") from None


class _Model(Cursor):
    """A cursor over a MindIR that looks at its operators and at the names of its files."""

    def message(self, kind: str, stop: int, depth: int) -> None:
        """Look at everything in the message that ends at `stop`."""
        if depth > DEEPEST:
            raise self.damaged()
        while self.at < stop:
            key = self.varint()
            if key >> 32:  # protobuf may read only the lower half
                raise self.damaged()
            inside = FIELDS[kind].get(key >> 3)
            if key & 7 == BYTES:
                end = self.span()
                if end > stop:
                    raise self.damaged()
                if inside in FIELDS:
                    self.message(inside, end, depth + 1)
                elif inside is not None:
                    self._look(inside, self.read(self.at, min(end - self.at, 4096)).decode(errors="replace"))
                self.at = end
            elif key & 7 == VARINT and inside is None:
                self.varint()
            elif key & 7 in (EIGHT, FOUR) and inside is None:
                self.at += 8 if key & 7 == EIGHT else 4
            else:
                raise self.damaged()
        if self.at != stop:
            raise self.damaged()

    def _look(self, what: str, text: str) -> None:
        if what == "operator":
            name = re.sub(r"^REF::|:\d+$", "", text)
            if name in CODE:
                raise BadInput(
                    f"{self.path} holds the operator {name}, which runs code that the file names, and no file may do "
                    "that: export the net without it"
                )
        elif PurePosixPath(text).is_absolute() or ".." in PurePosixPath(text).parts:
            raise BadInput(f"{self.path} takes numbers from {shown(text)}, which is not next to it")

    def damaged(self) -> BadCheckpoint:
        return BadCheckpoint(
            f"{self.path} is no MindIR, or it is damaged at byte {self.at:,}; an encrypted one needs --key-file"
        )
