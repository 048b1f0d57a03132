"""The composed functions and Cells that a generated file needs, copied into it with what they use themselves."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .head import Head

ROOT = Path(__file__).parents[2]


class Helpers:
    """Definitions of msmigrate's own modules, by module and name.

    taken: names that mean something else in the file; with those of Python's own, a definition avoids them.
    """

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self.taken = taken | set(dir(builtins))
        self.found: dict[tuple[str, str], str] = {}
        self.names: dict[tuple[str, str], str] = {}  # as they are called in the file
        self.used: list[tuple[ast.Module, str]] = []  # a composed file, and a name that is used of it

    def need(self, module: str, name: str) -> str:
        """Take a definition, and first those that it names; returns what it is called in the file."""
        module = _home(module, name)
        if (module, name) in self.names:
            return self.names[module, name]
        called = name
        while called in self.taken or called in self.names.values():
            called = f"tensor_{called}"
        self.names[module, name] = called
        text = _file(module).read_text(encoding="utf-8")
        tree = ast.parse(text)
        defined = {key: node for node in tree.body for key in _defines(node)}
        node = defined[name]
        renamed = {name: called}
        own = {item.arg for item in ast.walk(node) if isinstance(item, ast.arg)}
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id in defined and inner.id != name and inner.id not in own:
                renamed[inner.id] = self.need(module, inner.id)
            if isinstance(inner, ast.Name):
                self.used.append((tree, inner.id))
        self.found[module, name] = _text(text.splitlines(), node, renamed)
        return called

    def text(self, head: Head) -> str:
        """All of them, their imports noted in the head."""
        for tree, name in self.used:
            head.python(tree, name)
            for node in tree.body:
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mindspore"):
                    for alias in node.names:
                        if (alias.asname or alias.name) == name:
                            head.of(str(node.module), alias.name if alias.asname is None else f"{alias.name} as {name}")
                elif isinstance(node, ast.Import) and any(alias.name == name == "mindspore" for alias in node.names):
                    head.whole.add(name)
        return "\n\n\n".join(self.found.values())


def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _home(module: str, name: str) -> str:
    """The module that defines a name, where `module` may only import it: msmigrate.nn has SELU of its activation."""
    for node in ast.parse(_file(module).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level and name in (alias.name for alias in node.names):
            package = module if _file(module).name == "__init__.py" else module.rpartition(".")[0]
            return f"{package}.{node.module}"
    return module


def _text(lines: list[str], node: ast.stmt, renamed: dict[str, str]) -> str:
    """The source of a definition, with other names."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(item.lineno for item in decorators)])
    own = {item.arg for item in ast.walk(node) if isinstance(item, ast.arg)}
    places = [
        (inner.lineno, inner.col_offset, inner.id)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and inner.id not in own and renamed.get(inner.id, inner.id) != inner.id
    ]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and renamed.get(node.name, node.name) != node.name:
        places.append((node.lineno, lines[node.lineno - 1].index(node.name, 4), node.name))
    for line, column, name in sorted(places, reverse=True):
        raw = lines[line - 1].encode()
        lines[line - 1] = (raw[:column] + renamed[name].encode() + raw[column + len(name.encode()) :]).decode()
    return "\n".join(lines[first - 1 : node.end_lineno])


def _defines(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []
