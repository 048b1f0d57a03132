"""A Python file as text and syntax tree, or one line that says why it is none; nothing in it is ever run."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from ....errors import BadInput
from ....input_files import LARGEST_PYTHON, python_tree, read_bytes
from ....printable import shortened

LINE_ENDS = re.compile("\r\n|\r|\n")  # those that Python counts
LONGEST_TEXT = 10_000  # letters of a node that is written anew, on one line
DEEPEST = 120  # levels of a syntax tree; an `elif` is one more


@dataclass(frozen=True)
class ScriptFile:
    """One file: where it lies, how it is called in reports, its lines and its tree."""

    path: Path
    shown: str
    lines: tuple[str, ...]
    tree: ast.Module

    def text(self, node: ast.AST) -> str:
        """The source text of a node on one line, with the quotes and spaces that its writer chose."""
        if not isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword)) or node.end_lineno is None:
            return ast.unparse(node)
        start, end = node.lineno, node.end_lineno
        if start != end and self.length(node) > LONGEST_TEXT:
            return shortened(" ".join(" ".join(self.lines[start - 1 : end])[:LONGEST_TEXT].split()))
        if start != end:
            return " ".join(ast.unparse(node).split())
        line = self.encoded[start - 1]
        return line[node.col_offset : node.end_col_offset].decode("utf-8", "replace")

    def length(self, node: ast.AST) -> int:
        """How many bytes of the file a node spans, about."""
        if not isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword)) or node.end_lineno is None:
            return 0
        between = self.starts[node.end_lineno - 1] - self.starts[node.lineno - 1]
        return max(0, between + (node.end_col_offset or 0) - node.col_offset)

    @cached_property
    def encoded(self) -> list[bytes]:
        """The lines as bytes, by which Python counts columns."""
        return [line.encode() for line in self.lines]

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins, in bytes."""
        return [0, *accumulate(len(line) + 1 for line in self.encoded)]


def read_script_file(path: Path, shown: str | None = None) -> ScriptFile:
    """Read and parse one file; raises BadInput with the file, and the line where there is one."""
    shown = shown or str(path)
    try:
        content = read_bytes(path, LARGEST_PYTHON)
    except FileNotFoundError:
        raise BadInput(f"{shown}: there is no such file") from None
    except IsADirectoryError:
        raise BadInput(f"{shown}: is not a file; give the Python file of the training script") from None
    except OSError as error:
        raise BadInput(f"{shown}: cannot be read: {error.strerror or error}") from None
    if b"\0" in content:
        raise BadInput(f"{shown}: not Python: it holds zero bytes, as binary files do")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
        tree = python_tree(content, shown)
    except SyntaxError as error:
        where = f"{shown}:{error.lineno}" if error.lineno else shown
        raise BadInput(f"{where}: not Python: {error.msg}") from None
    except (UnicodeDecodeError, LookupError) as error:
        raise BadInput(f"{shown}: not Python: not text in its encoding ({error})") from None
    except (RecursionError, MemoryError):
        raise BadInput(f"{shown}: nested too deeply for Python itself to read") from None
    except ValueError as error:  # an integer of more digits than Python reads
        raise BadInput(f"{shown}: not Python: {error}") from None
    line = _too_deep(tree)
    if line:
        raise BadInput(f"{shown}:{line}: nested more than {DEEPEST} deep; that is no script that a person wrote")
    return ScriptFile(path, shown, tuple(LINE_ENDS.split(text.removeprefix("\N{BOM}"))), tree)


def _too_deep(tree: ast.Module) -> int | None:
    """The first line that is nested too deeply, or None."""
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return None
    return next((node.lineno for node in level if hasattr(node, "lineno")), 1)
