"""The file of MindSpore source that a checkpoint says its model was made from; a checkpoint may come from anyone.

`msmigrate train` notes the file of a recipe's `model.source` with its digest. Importing it would run whatever the file
contains now, so it is imported only where the user names the file and its content: `--trust-source FILE@sha256:…`.
What runs then is a copy of exactly these bytes, in a folder with no other files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import BadInput
from ...input_files import read_bytes

DIGEST = "source_sha256"  # the key under which `train` notes it, next to its recipe
LARGEST = 4 << 20  # bytes; convert-model's files of the largest models have 60 KB
OPTION = "--trust-source"

_TRUST = re.compile(r"(?P<file>.+)@sha256:(?P<digest>[0-9a-fA-F]{64})", re.DOTALL)


class StoredSource(NamedTuple):
    """A file of source that a checkpoint names: its path, its digest when the net was trained (None: not noted) and
    now (None: there is no such file here that could be source)."""

    path: str
    then: str | None
    now: str | None

    @property
    def trusting(self) -> tuple[str, str] | None:
        """The option and its value by which a user trusts the file as it is now; None where there is no such value."""
        return None if self.now is None or not self.path.isprintable() else (OPTION, f"{self.path}@sha256:{self.now}")

    @property
    def words(self) -> str:
        """The state of the file, as the end of a sentence about it."""
        if self.now is None:
            return "which is not here" if self.then is None else f"which is not here (it was sha256:{self.then})"
        if self.then is None:
            return "whose content at training was not noted"
        return "as it was at training" if self.then == self.now else "which has changed since training"


def stored_source(run: Mapping[str, Any]) -> StoredSource | None:
    """The source that a training run's note names, as it is now; None where it names none. The source is not run."""
    recipe = run.get("recipe")
    model = recipe.get("model") if isinstance(recipe, dict) else None
    path = model.get("source") if isinstance(model, dict) else None
    if not isinstance(path, str):
        return None
    then = run.get(DIGEST)
    then = then.lower() if isinstance(then, str) and re.fullmatch(r"[0-9a-fA-F]{64}", then) else None
    content = _content(Path(path)) if path.endswith(".py") else None
    return StoredSource(path, then, None if content is None else hashlib.sha256(content).hexdigest())


def source_digest(file: Path) -> str | None:
    """The SHA-256 of a file of source, in hex; None where it cannot be read."""
    content = _content(file)
    return None if content is None else hashlib.sha256(content).hexdigest()


def trusted(trust: str, folder: Path) -> Path:
    """A copy in `folder` of the file that `FILE@sha256:DIGEST` names, whose content has this digest.

    Raises BadInput where `trust` has another form, the file cannot be read, or its content has another digest.
    """
    parsed = _TRUST.fullmatch(trust)
    if parsed is None:
        raise BadInput(f"{OPTION} {trust}: expected FILE@sha256:DIGEST, as msmigrate inspect shows it")
    file, content = Path(parsed["file"]), _content(Path(parsed["file"]))
    if content is None or file.suffix != ".py":
        raise BadInput(f"{OPTION} {trust}: there is no Python file {file} of at most {LARGEST >> 20} MB")
    digest = hashlib.sha256(content).hexdigest()
    if digest != parsed["digest"].lower():
        raise BadInput(f"{OPTION}: the content of {file} has changed: read it, then name it with sha256:{digest}")
    place = folder / "source"
    place.mkdir()
    copy = place / file.name
    copy.write_bytes(content)
    return copy


def _content(file: Path) -> bytes | None:
    """The content of a regular file that is small enough for source; None for anything else, such as a pipe."""
    try:
        return read_bytes(file, LARGEST)
    except (OSError, ValueError):
        return None
