"""What stands in the classes of a model beside their methods, and what MindSpore wants at the end of `__init__`."""

from __future__ import annotations

import ast
import sys

from .context import Program


def brings(name: str, program: Program) -> bool:
    """Whether a base class is more than what a library adds to its classes, and a model never ran."""
    package = name.partition(".")[0]
    known = name in program.translated or package in ("", "torch") or package in sys.stdlib_module_names
    return known or program.row(name) is not None or not program.unseen(name)


def is_property(node: ast.FunctionDef) -> bool:
    """Whether a method is read as an attribute."""
    return any(isinstance(item, ast.Name) and item.id == "property" for item in node.decorator_list)


def noise(statement: ast.stmt) -> bool:
    """Whether a statement of a class is neither its docstring nor an attribute that a model needs."""
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return True
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    return isinstance(target, ast.Name) and (target.id.startswith("__") or target.id == "_version")


def listed(body: list[ast.stmt]) -> None:
    """SequentialCell runs the cells of a list that it makes in its own `__init__`: make it anew after ours."""
    for statement in body:
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        own = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "__init__"]
        if any(not call.args for call in own):
            append([statement], "self.cell_list = list(self.cells())")


def append(body: list[ast.stmt], text: str) -> None:
    """Add a statement to `__init__`."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            statement.body.append(ast.parse(text).body[0])
