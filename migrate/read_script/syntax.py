"""What a script's syntax says by itself, before any value is known: what a node writes, names or begins with."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeGuard

from ..library_names import is_stored


def path_of(node: ast.expr, tree: ast.Module, file: Path, depth: int) -> str | None:
    """The path that an expression of os.path, pathlib and `__file__` gives; a name has the one value of its file."""

    def of(part: ast.expr) -> str | None:
        return path_of(part, tree, file, depth - 1)

    def put_together(parts: list[str | None], join: Callable[..., str]) -> str | None:
        whole = [part for part in parts if part is not None]
        return join(*whole) if whole and len(whole) == len(parts) else None

    if depth == 0:
        return None
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id="__file__"):
            return str(file.absolute())
        case ast.Name(id=name):
            values = [one.value for one in tree.body if _assigns(one, name)]
            return of(values[0]) if len(values) == 1 else None
        case ast.Call(func=ast.Name(id="str" | "Path" | "PurePath" | "fspath"), args=[inner]):
            return of(inner)
        case ast.Call(func=ast.Name() | ast.Attribute() as called, args=parts):
            named = called.id if isinstance(called, ast.Name) else called.attr
            owner = called.value if isinstance(called, ast.Attribute) else None
            if named in ("getcwd", "cwd"):
                return "."
            if named == "dirname" and parts:
                return put_together([of(parts[0])], os.path.dirname)
            if named in ("join", "joinpath"):
                around = [owner] if named == "joinpath" and owner is not None else []
                return put_together([of(part) for part in (*around, *parts)], os.path.join)
            if named in ("abspath", "realpath", "normpath", "fspath", "Path") and parts:
                return of(parts[0])
            return of(owner) if named in ("resolve", "absolute", "as_posix", "expanduser") and owner else None
        case ast.Attribute(
            value=ast.Name(id="os") | ast.Attribute(attr="path"), attr="pardir" | "curdir" | "sep" as which
        ):
            return str(getattr(os, which))
        case ast.Attribute(value=owner, attr="parent"):
            return put_together([of(owner)], os.path.dirname)
        case ast.Subscript(value=ast.Attribute(value=owner, attr="parents"), slice=ast.Constant(value=int(above))):
            path = of(owner)
            parents = list(Path(path).parents) if path is not None else []
            return str(parents[above]) if 0 <= above < len(parents) else None
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return put_together([of(left), of(right)], os.path.join)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return put_together([of(left), of(right)], lambda one, other: one + other)
        case ast.JoinedStr(values=pieces):
            plain = [piece.value if isinstance(piece, ast.FormattedValue) else piece for piece in pieces]
            return put_together([of(piece) for piece in plain], lambda *texts: "".join(texts))
    return None


def _assigns(statement: ast.stmt, name: str) -> TypeGuard[ast.Assign]:
    return isinstance(statement, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == name for target in statement.targets
    )


def range_of(call: ast.expr) -> ast.expr:
    """What a loop goes over, without what is called with it: `range(4)` of `tqdm(range(4), "epoch")`."""
    while isinstance(call, ast.Call) and getattr(call.func, "id", "") not in ("range", "trange") and call.args:
        call = call.args[0]
    return call


class _Plainly(ast.NodeTransformer):
    """Writes `getattr(x, "name")` as `x.name`, and the statements `setattr(x, "name", y)` and `delattr(x, "name")` as
    `x.name = y` and `del x.name`; each keeps its place, and so its text."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name("getattr"), [of, ast.Constant(str() as name)], []) if _owns(of, name):
                return ast.copy_location(ast.Attribute(of, name, ast.Load()), node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        match node.value:
            case ast.Call(ast.Attribute(ast.Name() as owner, "__setattr__") as func, [_, _, *_] as given):
                node.value.func = ast.copy_location(ast.Name("setattr", ast.Load()), func)
                node.value.args = [*([] if owner.id == "object" else [owner]), *given]
        match node.value:
            case ast.Call(ast.Name("setattr" | "delattr"), [of, ast.Constant(str() as name), *given], []) if (
                _owns(of, name) and len(given) < 2
            ):
                target = ast.Attribute(of, name, ast.Store() if given else ast.Del())
                targets: list[ast.expr] = [ast.copy_location(target, node.value)]
                written = ast.Assign(targets, given[0]) if given else ast.Delete(targets)
                return ast.copy_location(written, node)
        return node


def _owns(node: ast.expr, name: str) -> bool:
    """Whether an attribute of this name can be written behind an expression that is a name, or part of one."""
    return name.isidentifier() and is_stored(node) and not ast.unparse(node).startswith("sys.")


def plainly(tree: ast.Module) -> ast.Module:
    """A file's tree with its attributes written as such."""
    return _Plainly().visit(tree)


ANY = "*"  # stands for a name that is only known when the script runs


def defined_alone(tree: ast.Module) -> set[str]:
    """The functions at the top of a file whose names it imports nowhere, so that these names are of no other file's."""
    imports = (one for one in ast.walk(tree) if isinstance(one, (ast.Import, ast.ImportFrom)))
    imported = {alias.asname or alias.name for one in imports for alias in one.names}
    return {one.name for one in tree.body if isinstance(one, ast.FunctionDef)} - imported


def named_in(node: ast.AST, files: set[str], own: set[str], file: str) -> set[str]:
    """The names that are read inside of a node and are not local to a function, with the file before those of its `own`
    functions, and the attributes of `files`."""
    found: set[str] = set()
    waiting: list[tuple[ast.AST, frozenset[str]]] = [(node, frozenset())]
    while waiting:
        part, local = waiting.pop()
        match part:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                given = {one.arg for one in ast.walk(part.args) if isinstance(one, ast.arg)}
                stored = {n.id for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
                local = local | given | stored
            case ast.Name(name) if name not in local:
                found.add(f"{file}:{name}" if name in own else name)
            case ast.Attribute(value, attribute) if begins_with(value) in files:
                found.add(attribute)
            case ast.Call(ast.Name("getattr"), [_, ast.Constant(str() as name), *_]):
                found.add(name)
            case ast.Subscript(ast.Call(ast.Name("globals" | "locals" | "vars")), ast.Constant(str() as name)):
                found.add(name)
            case ast.Constant(str() as text) if ":" in text:  # "module:function", for a library to call
                found.add(text.rpartition(":")[2])
            case ast.Subscript(ast.Call(ast.Name("globals" | "locals" | "vars"))) | ast.Call(ast.Name("eval" | "exec")):
                found.add(ANY)
            case ast.Call(ast.Name("getattr"), [owner, _, *_]) if isinstance(owner, ast.Subscript) or (
                begins_with(owner) in files
            ):  # sys.modules[…], or a file
                found.add(ANY)
        waiting += [(child, local) for child in ast.iter_child_nodes(part)]
    return found


def begins_with(node: ast.expr) -> str:
    """The name that a chain of attributes begins with, or an empty string."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def root(node: ast.expr) -> ast.expr:
    """The expression that attributes, elements and methods are taken of: `a` in `a.b[0].c()`."""
    while True:
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return node


def is_outer(node: ast.AST | None, function: ast.AST | None) -> bool:
    """Whether this is a name, or a tuple with one, that a function declares global or nonlocal."""
    shared = (one for one in ast.walk(function) if isinstance(one, (ast.Global, ast.Nonlocal))) if function else ()
    return node is not None and any(names_it(node, name) for one in shared for name in one.names)


def names_it(node: ast.AST, name: str) -> bool:
    """Whether this is a name, or has it inside."""
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def gives_a_value(block: list[ast.stmt]) -> bool:
    """Whether a block ends by returning a value, so that what follows is for another result."""
    last = block[-1] if block else None
    if isinstance(last, ast.If):
        return gives_a_value(last.body) and gives_a_value(last.orelse)
    return isinstance(last, ast.Return) and last.value is not None


def stores(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """The targets that a node writes to, each with its value where that is one expression."""
    if isinstance(node, ast.Assign):
        yield from ((one, node.value) for one in node.targets)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        yield from [(node.target, node.value)] * (node.value is not None)
    elif isinstance(node, (ast.AugAssign, ast.For, ast.AsyncFor)):
        yield node.target, None
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, None


def is_target(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def is_chain(node: ast.expr) -> bool:
    """Whether this is a name, or an attribute of an attribute … of a name: evaluating it calls nothing."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
