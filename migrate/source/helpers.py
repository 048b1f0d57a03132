"""The composed functions and Cells that a generated file needs, copied into it with what they use themselves."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .head import Head

ROOT = Path(__file__).parents[2]


class Helpers:
    """Definitions of msmigrate's own modules, by module and name."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], str] = {}
        self.used: list[tuple[ast.Module, str]] = []  # a composed file, and a name that is used of it

    def need(self, module: str, name: str) -> None:
        """Take a definition, and first those that it names."""
        if (module, name) in self.found:
            return
        path = ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py")
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        defined = {key: node for node in tree.body for key in _defines(node)}
        node = defined[name]
        self.found[module, name] = ""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id in defined and inner.id != name:
                self.need(module, inner.id)
            if isinstance(inner, ast.Name):
                self.used.append((tree, inner.id))
        del self.found[module, name]
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(item.lineno for item in decorators)])
        self.found[module, name] = "\n".join(text.splitlines()[first - 1 : node.end_lineno])

    def text(self, head: Head) -> str:
        """All of them, their imports noted in the head."""
        for tree, name in self.used:
            head.python(tree, name)
            for node in tree.body:
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mindspore"):
                    for alias in node.names:
                        if (alias.asname or alias.name) == name:
                            head.of(str(node.module), alias.name if alias.asname is None else f"{alias.name} as {name}")
        return "\n\n\n".join(self.found.values())


def _defines(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []
