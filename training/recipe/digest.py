"""The digests that a report states and a training run compares: of a recipe's step, of the code, of weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import BadCheckpoint, BadInput, BadRecipe
from ...input_files import LARGEST_PYTHON, open_regular, read_bytes, with_neighbours
from ...mappings import table, user_rows
from ..models import model_names

PACKAGE = Path(__file__).parents[2]
ROOMS = (
    "mappings",
    "nn",
    "optim",
    "migrate",
    "training",
)  # the sources that decide a step: its translation, its weights, and the step itself
SOURCES = (".py", ".yaml")
CHUNK = 1 << 20


# keys that a step does not depend on, and that its digest leaves out
OUTSIDE_THE_STEP: Any = {
    "train": True,
    "devices": True,
    "not_in_this_recipe": True,
    "ignore": True,
    "data": {"validation", "eval_batch", "eval_transforms", "shuffle", "drop_last", "workers", "cache", "on_corrupt"},
}


def step_digest(tree: dict[str, Any], later: Sequence[str], places: Sequence[str]) -> str:
    """Sixteen hex digits that two recipes share when they describe the same step; see `Recipe.digest`.

    tree: a recipe as JSON has it, without what is OUTSIDE_THE_STEP. later: keys of the model without which a recipe has
    the digest from before they existed. places: the sources of data that name a path.
    Raises BadRecipe where a source file cannot be read.
    """
    tree = _canonical(tree)
    model, loss, data = tree["model"], tree["loss"], tree["data"]
    if model["checkpoint"] is not None:
        model["checkpoint"] = "a checkpoint"
    for key in later:
        if not model[key]:
            del model[key]
    for part in (model, loss):
        source = part.pop("source")
        if source is not None:
            part["source"] = _source(Path(source))
        if model_names.is_file(part["name"]):
            part["name"] = _by_content(part["name"])
    if tree["schedule"] is not None:
        tree["schedule"]["args"] = model_names.with_functions(tree["schedule"]["args"], _by_content)
    kind, colon, _ = data["source"].partition(":")
    data["source"] = kind + colon if kind + colon in places else data["source"]
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:16]


def _by_content(name: str) -> list[str]:
    """The name in FILE.py:NAME, and the digest of its file."""
    place, _, own = name.rpartition(":")
    return [own, _source(Path(place))]


def _canonical(value: Any) -> Any:
    """The value with every number as a float, and every part under its row's full name."""
    if isinstance(value, dict):
        return {k: _full_name(v) if k == "name" and isinstance(v, str) else _canonical(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _full_name(name: str) -> str:
    row = table.known(name)
    return name if row is None else row.torch  # a model's name has no row


def _source(file: Path) -> str:
    """The digest of a source file and of those in its folder that it imports. Raises BadRecipe where one cannot be
    read."""
    contents = []
    for each in with_neighbours(file):
        try:
            contents.append(hashlib.sha256(read_bytes(each, LARGEST_PYTHON).replace(b"\r\n", b"\n")).hexdigest())
        except OSError as error:
            raise BadRecipe(f"the recipe's {each} cannot be read: {error.strerror or error}") from None
    return contents[0] if len(contents) == 1 else hashlib.sha256("".join(contents).encode()).hexdigest()


def code_digest(package: Path = PACKAGE) -> str:
    """Sixteen hex digits over the installed sources that decide a step; the same wherever they are installed.

    The user's own mapping rows in force count too, by the content of their files, not by name or order, and so do the
    versions of the distributions whose verbs they use. Line ends do not count: a checkout may have changed them.
    Raises BadInput for a file of rows that cannot be read.
    """
    return _digest(package, user_rows.paths())


@lru_cache(maxsize=8)
def _digest(package: Path, own: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    files = [file for room in ROOMS for file in (package / room).rglob("*") if file.suffix in SOURCES]
    for file in sorted(files, key=lambda file: file.relative_to(package).as_posix()):
        text = file.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{file.relative_to(package).as_posix()}\0{len(text)}\0".encode())
        digest.update(text)
    for content in sorted(_content(file) for file in own):
        digest.update(hashlib.sha256(content).digest())
    if own:
        digest.update("\n".join(user_rows.verbs(table.own_rows())).encode())
    return digest.hexdigest()[:16]


def _content(file: Path) -> bytes:
    try:
        return read_bytes(file, user_rows.MOST).replace(b"\r\n", b"\n")
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror or error}") from None


def file_digest(file: Path) -> str:
    """The SHA-256 of a file's bytes, in hex. Raises BadCheckpoint where it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open_regular(file) as opened:
            while chunk := opened.read(CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise BadCheckpoint(f"{file} cannot be read: {error.strerror or error}") from None
    return digest.hexdigest()
