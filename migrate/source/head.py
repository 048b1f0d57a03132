"""The head of a generated file: its imports, and the composed functions that it brings along."""

from __future__ import annotations

import ast
import sys

from .helpers import Helpers

SHORT = {"mindspore.nn": "nn", "mindspore.ops": "ops"}
TYPING = ("Any", "Callable", "Dict", "List", "Optional", "Sequence", "Tuple", "Union")


class Head:
    """Notes what the body of the file names."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self.imports: dict[str, set[str]] = {"mindspore": {"nn"}}
        self.whole: set[str] = set()
        self.helpers = Helpers(taken)

    def name(self, qualified: str) -> ast.expr:
        """The expression for a name of MindSpore's, of Python's library, or of a composed function."""
        module, _, last = qualified.rpartition(".")
        if module.startswith("msmigrate."):
            return ast.Name(self.helpers.need(module, last), ast.Load())
        if module in SHORT:
            self.of("mindspore", SHORT[module])
            return ast.Attribute(ast.Name(SHORT[module], ast.Load()), last, ast.Load())
        plain = module == "mindspore.common.initializer" or module in sys.stdlib_module_names
        if plain or qualified in ("mindspore.Tensor", "mindspore.Parameter"):
            return self.of(module, last)
        self.whole.add("mindspore")
        return ast.parse(qualified, mode="eval").body

    def of(self, module: str, name: str) -> ast.Name:
        """A name that is imported from a module."""
        self.imports.setdefault(module, set()).add(name)
        return ast.Name(name.rpartition(" ")[2], ast.Load())

    def python(self, tree: ast.Module, name: str) -> None:
        """Note a name that a file imports from Python's library."""
        for node in tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    whole = isinstance(node, ast.Import) and alias.name.partition(".")[0]  # import collections.abc
                    if (alias.asname or whole or alias.name) == name:
                        self._import(node, alias)

    def _import(self, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> None:
        words = alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"
        module = alias.name if isinstance(node, ast.Import) else node.module or "."
        if module.partition(".")[0] not in {*sys.stdlib_module_names, "numpy"} or module == "__future__":
            return
        if isinstance(node, ast.Import):
            self.whole.add(words)
        else:
            self.of(module, words)

    def text(self, body: ast.Module) -> str:
        """The imports that the body needs, sorted as usual, and the composed functions."""
        helpers = self.helpers.text(self)
        used = {n.id for tree in (body, ast.parse(helpers)) for n in ast.walk(tree) if isinstance(n, ast.Name)}
        noted = {name.rpartition(" ")[2] for names in self.imports.values() for name in names}
        for word in TYPING:
            if word in used - noted:
                self.of("typing", word)
        if "Tensor" in used:
            self.of("mindspore", "Tensor")
        lines = [f"import {module}" for module in sorted(self.whole) if _called(module) in used]
        for module, names in sorted(self.imports.items()):
            kept = sorted(name for name in names if name.rpartition(" ")[2] in used)
            lines += [f"from {module} import {', '.join(kept)}"] if kept else []
        ours = [line for line in lines if not line.split()[1].startswith(("mindspore", "numpy"))]
        theirs = [line for line in lines if line.split()[1].startswith("mindspore")]
        numpy = [line for line in lines if line.split()[1].startswith("numpy")]
        blocks = ["from __future__ import annotations", "\n".join(ours), "\n".join(numpy + theirs)]
        return "\n\n".join(filter(None, blocks)) + (f"\n\n\n{helpers}" if helpers else "")


def _called(module: str) -> str:
    """The name that an import of a module gives it: `np` for `numpy as np`, `collections` for `collections.abc`."""
    return module.rpartition(" ")[2].partition(".")[0]
