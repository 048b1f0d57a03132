"""Whether a MindIR from somebody else would run code of its own: read from its structure, before it is loaded.

MindSpore's operators only compute, with a few exceptions: `Custom` makes MindSpore load a shared library whose path is
in the file. A large net's numbers are in files next to it, whose names are in the file too.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from ..errors import BadCheckpoint, BadInput
from ..input_files import open_regular
from ..migrate.checkpoint.formats.ckpt import Cursor
from ..migrate.checkpoint.formats.reader import shown

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
