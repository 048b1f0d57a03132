"""What the names at the top of a file stand for, where no value was seen: in hints, defaults and base classes."""

from __future__ import annotations

import ast
from collections.abc import Mapping


class Imported:
    """The names that a file imports or defines at its top -> what they are called where they are defined.

    module: what the file is imported as. known: names that were seen to stand for what is defined elsewhere.
    """

    def __init__(self, tree: ast.Module, module: str, known: Mapping[str, str], *, is_package: bool) -> None:
        self.names: dict[str, str] = {}
        self.stars: list[str] = []  # the modules of which everything is imported
        parts = module.split(".")
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    self.names[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom):
                up = parts[: len(parts) - node.level + is_package] if node.level else []
                place = ".".join([*up, *([node.module] if node.module else [])])
                self.stars += [place] * (node.names[0].name == "*")
                for alias in node.names:
                    self.names[alias.asname or alias.name] = f"{place}.{alias.name}"
        for node in tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                self.names[node.name] = f"{module}.{node.name}"
        self.names.update(known)

    def name(self, node: ast.expr) -> str:
        """The full name of `nn.Module` and the like; empty for anything that is no name of the file's top."""
        rest: list[str] = []
        while isinstance(node, ast.Attribute):
            rest.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.names:
            return ""
        return ".".join([self.names[node.id], *rest])


def imports_at_top(tree: ast.Module) -> ast.Module:
    """The file, where every import inside of a function stands at its end instead: MindSpore compiles none inside."""
    moved: list[ast.stmt] = []
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        for node in ast.walk(function):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if not isinstance(block, list):
                    continue
                for index, statement in enumerate(block):
                    if isinstance(statement, (ast.Import, ast.ImportFrom)):
                        moved.append(statement)
                        block[index] = ast.copy_location(ast.Pass(), statement)
    tree.body += moved
    return tree
