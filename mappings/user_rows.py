"""The rows of a user's own files: which files are in force, how they are checked, and their rows among the built-in.

The files are those that MSMIGRATE_MAPPINGS names, which worker processes see too. Each has the form of tables/*.yaml. A
row has its `kind`, or an entry `- kind: layer` before it gives that of all rows that follow. `status` and `docs` may be
left out: the row is then "documented, not run". Reading a file runs nothing; what a row names in MindSpore is imported
only where a net is built from it, and never belongs to Python's own library.

Every command needs to know the files, so the YAML reader and the verbs are imported only where a file is read.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BadInput, MsmigrateError
from ..printable import quoted, shortened

if TYPE_CHECKING:
    from .rows import Row

VARIABLE = "MSMIGRATE_MAPPINGS"  # several files are separated as in PATH
MOST = 1 << 20  # bytes of a file
DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)
OBJECTS = ("mindspore", "msmigrate")  # what constants may name, besides the package of the row's own target


def paths() -> tuple[Path, ...]:
    """Return the files in force, each once, in the order in which they were named."""
    named = os.environ.get(VARIABLE)
    return tuple(dict.fromkeys(Path(name) for name in named.split(os.pathsep) if name)) if named else ()


def use(files: Iterable[Path]) -> None:
    """Put files in force after those that already are, with paths that hold in any working directory; BadInput."""
    whole = dict.fromkeys(str(path.absolute()) for path in (*paths(), *files))
    for name in whole:
        if os.pathsep in name:
            raise BadInput(f"{name}: the name of a file of rows cannot contain '{os.pathsep}'; rename it")
    if whole:
        os.environ[VARIABLE] = os.pathsep.join(whole)


@cache
def read(files: tuple[Path, ...], kinds: tuple[str, ...]) -> tuple[Row, ...]:
    """Return the rows of all files, in their order; raises BadInput naming file, row and key."""
    rows = [row for path in files for row in _file(path, kinds)]
    seen: dict[str, Row] = {}
    for row in rows:
        for name in (row.torch, *row.aliases):
            other = seen.setdefault(name, row)
            if other is not row:
                raise BadInput(
                    f"{row.origin}: {shortened(row.torch, 100)}: {shortened(name, 100)} is in the row "
                    f"{shortened(other.torch, 100)} of {other.origin} too"
                )
    return tuple(rows)


def _file(path: Path, kinds: Sequence[str]) -> Iterator[Row]:
    from .. import yaml_reader
    from .row_reader import listed

    content, _ = yaml_reader.read(path, what="a file of rows", most=MOST, aliases=True)
    kind = None
    for number, entry in enumerate(listed(content, path), 1):
        if isinstance(entry, dict) and set(entry) == {"kind"}:
            kind = _kind(entry["kind"], kinds, f"{path}: entry {number}")
        elif not isinstance(entry, dict) or not isinstance(entry.get("torch"), str):
            raise BadInput(f"{path}: entry {number}: expected a row with the key 'torch', or a 'kind' alone")
        else:
            yield _row(dict(entry), kind, kinds, path)


def _row(entry: dict[Any, Any], kind: str | None, kinds: Sequence[str], path: Path) -> Row:
    from .row_reader import MODES, read_row
    from .rows import NOT_RUN

    where = f"{path}: {shortened(entry['torch'], 100)}"
    own = entry.pop("kind", kind)
    if own is None:
        raise BadInput(f"{where}: the key 'kind' is missing, here and before; there are {', '.join(kinds)}")
    entry.setdefault("status", dict.fromkeys(MODES, NOT_RUN))
    entry.setdefault("docs", {"torch": "", "mindspore": ""})
    _check_names(entry, where)
    try:
        return replace(read_row(entry, _kind(own, kinds, where), str(path)), origin=str(path))
    except MsmigrateError:
        raise
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        why = shortened(" ".join(str(error).split()), 200)
        raise BadInput(f"{where}: a value does not have the form that rows have: {why}") from None


def _kind(kind: Any, kinds: Sequence[str], where: str) -> str:
    if kind not in kinds:
        raise BadInput(f"{where}: there is no kind of row {quoted(kind)}; there are {', '.join(kinds)}")
    return str(kind)


def _check_names(entry: dict[Any, Any], where: str) -> None:
    """Refuse invalid names, and those that lead to what no table should call."""
    aliases = entry.get("aliases", [])
    for name in (entry["torch"], *(aliases if isinstance(aliases, list) else [])):
        if not isinstance(name, str) or not name or not name.isprintable() or " " in name:
            raise BadInput(f"{where}: {quoted(name)} is no name of a torch class or function")
    target = entry.get("mindspore")
    roots = set(OBJECTS)
    if isinstance(target, str):
        _check_dotted(target, f"{where}: mindspore")
        roots.add(target.partition(".")[0])
    other = entry.get("otherwise")
    if isinstance(other, dict) and isinstance(other.get("mindspore"), str):
        _check_dotted(other["mindspore"], f"{where}: otherwise: mindspore")
    for name in _named(entry):
        _check_dotted(name, where)
        if name.partition(".")[0] not in roots:
            raise BadInput(
                f"{where}: {shortened(name, 100)}: a constant has to be of {shortened(' or '.join(sorted(roots)), 200)}"
            )


def _check_dotted(name: Any, where: str) -> None:
    if not isinstance(name, str) or not DOTTED.fullmatch(name):
        raise BadInput(f"{where}: {quoted(name)} is no qualified name such as mindspore.nn.Dense")
    root = name.partition(".")[0]
    if root in sys.stdlib_module_names:
        raise BadInput(f"{where}: {shortened(name, 100)} belongs to Python's own library, which no row may name")


def _named(value: Any) -> Iterator[Any]:
    """The qualified names inside a row's constants: `{name: …}` and `{call: …}`."""
    if isinstance(value, dict):
        if set(value) == {"name"} or set(value) == {"call", "kwargs"}:
            yield value.get("name", value.get("call"))
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _named(item)


def among(built_in: Iterable[Row], kind: str, own: Sequence[Row]) -> Iterator[Row]:
    """The built-in rows of one kind with the user's among them: a user's row replaces a built-in one of the same name.

    It then also has the other's aliases. An alias that a user's row has is taken from a built-in row. Raises BadInput
    for a user's row that has a built-in row's first name as an alias.
    """
    placed = {row.torch: row for row in own}
    further = {alias: row for row in own for alias in row.aliases}
    there = set()
    for row in built_in:
        if row.torch in further:
            taker = further[row.torch]
            raise BadInput(
                f"{taker.origin}: {taker.torch}: aliases: {row.torch} has a built-in row; to replace that, write a row "
                f"with `torch: {row.torch}`"
            )
        left = tuple(name for name in row.aliases if name not in placed and name not in further)
        mine = placed.get(row.torch)
        if mine is None:
            yield row if left == row.aliases else replace(row, aliases=left)
        elif mine.kind == kind:
            there.add(mine.torch)
            yield replace(mine, aliases=(*mine.aliases, *left), replaces=row.mindspore or "no counterpart")
    yield from (row for row in own if row.kind == kind and row.torch not in there)


def verbs(rows: Sequence[Row]) -> list[str]:
    """The verbs of other distributions that the rows use, sorted, each with its distribution and its version."""
    from .verb_registry import SHAPES, described, find
    from .verbs import VERBS

    arguments = {item.verb for row in rows for item in row.arguments if item.verb and item.verb not in VERBS}
    states = {item.verb for row in rows for item in row.state if item.verb and item.verb not in SHAPES}
    return sorted(described(entry) for name in arguments | states if (entry := find(name)) is not None)
