"""Definitions in an order in which Python can run the file, and of a class only the attributes that somebody reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, MutableMapping, Sequence

CELLS = ("nn.", "mindspore.nn.")


def put_in_order(definitions: MutableMapping[str, ast.stmt]) -> None:
    """Put in front of every definition what Python looks up as it defines it: base classes, defaults, attributes."""
    keys: dict[str, str] = {}
    for key, node in definitions.items():
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            keys.setdefault(node.name, key)
        for name in _targets(node):
            keys.setdefault(name, key)
    done: dict[str, ast.stmt] = {}
    open_: set[str] = set()

    def put(key: str) -> None:
        if key in done or key in open_:
            return
        open_.add(key)
        for name in looked_up(definitions[key]):
            if name in keys:
                put(keys[name])
        done[key] = definitions[key]

    for key in definitions:
        put(key)
    definitions.clear()
    definitions.update(done)


def looked_up(node: ast.AST) -> Iterator[str]:
    """The names that Python reads as it defines a class or a function, or runs a statement."""
    if isinstance(node, ast.Name):
        yield node.id
    parts: Sequence[ast.AST | None] = list(ast.iter_child_nodes(node))
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        parts = [*getattr(node, "decorator_list", ()), *node.args.defaults, *node.args.kw_defaults]
    elif isinstance(node, ast.AnnAssign):
        parts = [node.value]
    for part in parts:
        if part is not None:
            yield from looked_up(part)


def drop_unread(definitions: Mapping[str, ast.stmt], more: Sequence[ast.AST]) -> None:
    """Take out of the classes of modules what they say of themselves and nobody reads."""
    trees = [*definitions.values(), *more]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    read |= {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    classes = {node.name: node for node in definitions.values() if isinstance(node, ast.ClassDef)}
    for node in classes.values():
        if _is_cell(node, classes):
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            kept = [line for line in node.body if _is_hint(line) or not {*_targets(line)} - read - names]
            node.body = kept or [ast.Pass()]


def _is_hint(line: ast.stmt) -> bool:
    return isinstance(line, ast.AnnAssign) and line.value is None


def _targets(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is_cell(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> bool:
    for base in node.bases:
        name = ast.unparse(base)
        if name.startswith(CELLS) or (name in classes and name != node.name and _is_cell(classes[name], classes)):
            return True
    return False
