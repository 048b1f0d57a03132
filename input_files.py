"""Open files that a user or another file names: regular files only, and none larger than such a file may be.

A pipe would be waited for without end, and a device read without end. Everything here raises what `open` raises, an
OSError whose `strerror` says the reason in words, so that a caller catches one kind of error and adds what it knows.
"""

from __future__ import annotations

import ast
import errno
import json
import os
import re
import stat
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

T = TypeVar("T")

LARGEST_PYTHON = 2 << 20  # bytes; torch's own largest module is half of that
MOST_TOKENS = 400_000  # of Python; a syntax tree takes 500 bytes for each
MOST_BRACES = 20_000  # of Python, whose reader takes quadratic time in those of an f-string
LARGEST_JSON = 1 << 26  # bytes; a report of ResNet-152 has 4 MB
MOST_VALUES = 2_000_000  # in JSON; one may be 3 bytes of text and 100 of memory
MOST_PAIRS = 1_100_000  # of a key and a value, which may be 7 bytes of text and 250 of memory

_TOKEN = re.compile(rb"\w+|[^\w\s]")
_KINDS = (
    (stat.S_ISFIFO, "it is a pipe and not a regular file: write what it holds to a file, and name that one"),
    (stat.S_ISCHR, "it is a device and not a regular file"),
    (stat.S_ISBLK, "it is a device and not a regular file"),
    (stat.S_ISSOCK, "it is a socket and not a regular file"),
)


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file, or a link to one, for reading bytes; raises OSError, also for anything else."""
    try:
        _check_kind(Path(path).stat().st_mode, path)  # first, for opening a device may already do something
        file: BinaryIO = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 (the caller closes it)
    except ValueError:  # a zero byte, or a lone surrogate
        raise FileNotFoundError(errno.ENOENT, "no file can have such a name", os.fspath(path)) from None
    try:
        _check_kind(os.fstat(file.fileno()).st_mode, path)  # it may have become something else in between
    except OSError:
        file.close()
        raise
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def unreadable(path: str | os.PathLike[str]) -> str | None:
    """Why there is no regular file to read, as a message; None where there is one."""
    try:
        open_regular(path).close()
    except FileNotFoundError:
        return f"there is no file {path}"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror or error}"
    return None


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """The content of a regular file; raises OSError, also for one of more than `most` bytes."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            limit = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
            raise OSError(errno.EFBIG, f"it is larger than {limit}, the most such a file may have", os.fspath(path))
        content = file.read(size + 1)
    if len(content) > size:
        raise OSError(errno.EBUSY, "it grew while it was read", os.fspath(path))
    return content


def read_text(path: str | os.PathLike[str], most: int) -> str:
    """The text of a regular file in UTF-8; raises OSError, and ValueError where it is not such text."""
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not text in UTF-8: {error.reason} at byte {error.start:,}") from None


def python_tree(content: bytes, file: str = "<unknown>") -> ast.Module:
    """The syntax tree of Python source, in whatever encoding it declares; nothing of it is run.

    Raises SyntaxError, ValueError, RecursionError and MemoryError as ast.parse does; ValueError also for more than any
    Python file holds, because the tree would take a thousand times its memory.
    """
    if len(content) > MOST_TOKENS and sum(1 for _ in _TOKEN.finditer(content)) > MOST_TOKENS:
        raise ValueError(f"it has more than {MOST_TOKENS:,} words and signs, the most that such a file may have")
    if content.count(b"{") > MOST_BRACES:
        raise ValueError(f"it has more than {MOST_BRACES:,} braces, the most that such a file may have")
    with warnings.catch_warnings():
        # about escapes that a later Python will not accept, which is for the file's author to see to
        warnings.simplefilter("ignore")
        return ast.parse(content, file)


def with_neighbours(file: Path) -> list[Path]:
    """A Python file, then the files in its folder and below that it imports, directly or through each other.

    Nothing is imported; the imports of a file that cannot be read or is not Python are not followed.
    """
    files, pending = {file}, [file]
    while pending:
        current = pending.pop()
        try:
            nodes = list(ast.walk(python_tree(read_bytes(current, LARGEST_PYTHON))))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for module in {name for node in nodes for name in _imported(node)}:
            parts = module.lstrip(".").split(".") if module.strip(".") else []
            level = len(module) - len(module.lstrip("."))
            start = current.parents[level - 1] if 0 < level <= len(current.parents) else file.parent
            for depth in range(1, len(parts) + 1):
                place = start.joinpath(*parts[:depth])
                new = {each for each in (Path(f"{place}.py"), place / "__init__.py") if each.is_file()}
                pending += new - files
                files |= new
    return [file, *sorted(files - {file})]


def _imported(node: ast.AST) -> list[str]:
    """The modules that a statement may import, as they are written: with a dot for each folder upwards."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        begin = "." * node.level + (node.module or "")
        return [begin, *(f"{begin}{'.' * bool(node.module)}{alias.name}" for alias in node.names)]
    return []


def read_json(path: str | os.PathLike[str], most: int = LARGEST_JSON) -> Any:
    """The value in a regular file of JSON; raises OSError, and ValueError as json_value does."""
    return json_value(read_bytes(path, most))


def json_value(content: bytes | str) -> Any:
    """The value of JSON that anyone may have written.

    Raises ValueError for what is not JSON, or could be read in two ways, and for what would take far more memory, time
    or stack than its size suggests.
    """
    if isinstance(content, bytes):
        try:
            content = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"no valid JSON: no text in UTF-8 at byte {error.start:,}") from None
    if sum(map(content.count, ",[{")) > MOST_VALUES:
        raise ValueError(f"no valid JSON: more than {MOST_VALUES:,} values")
    if content.count(":") > MOST_PAIRS:
        raise ValueError(f"no valid JSON: more than {MOST_PAIRS:,} keys")
    try:
        return json.loads(content, parse_constant=_no_number, object_pairs_hook=_object)
    except ValueError as error:
        raise ValueError(f"no valid JSON: {error}") from None
    except RecursionError:
        raise ValueError("no valid JSON: nested too deeply") from None


def typed(kind: Callable[..., T], value: Any, *, whole: bool = True) -> T:
    """Turn a value from json_value into an object of `kind`: a dataclass, or a type made of dataclasses.

    whole: fields that have a default have to be there, too. Raises ValueError, with the place, for a field that has the
    wrong type, is missing, or is unknown; nothing is converted but a list to a tuple and a string to an enumeration's
    member.
    """
    from pydantic import ValidationError  # imported here: it takes a tenth of a second, and most callers do without

    try:
        result: T = _adapter(kind).validate_json(json.dumps([value]))[0]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"][1:]))
        raise ValueError(f"{place}: {first['msg']}" if place else first["msg"]) from None
    if whole and _adapter(kind).dump_python((result,), mode="json") != [value]:
        raise ValueError("it lacks a field")
    return result


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    # for a dataclass pydantic takes a configuration only from a type that contains it
    return TypeAdapter(tuple[kind], config=ConfigDict(strict=True, extra="forbid"))


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is no number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; raises ValueError for a repeated key, of which two readers could take different values."""
    result = dict(pairs)
    if len(result) != len(pairs):
        key, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {key[:80]!r} twice")
    return result


def _check_kind(mode: int, path: str | os.PathLike[str]) -> None:
    """Raise OSError for what is no regular file."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    reason = next((text for is_kind, text in _KINDS if is_kind(mode)), "it is not a regular file")
    raise OSError(errno.EINVAL, reason, os.fspath(path))
