"""What a script's syntax says by itself: what a node writes, names or begins with, and what a call may change."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TypeGuard

from ..library_names import PLAIN_RESULTS, TABLES, is_stored
from .abstract_values import DictValue, ListValue, Scope, ScriptFunction, ScriptObject, Value


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
            if named in ("getcwd", "cwd", "dirname"):
                return put_together([of(part) for part in parts[:1]], os.path.dirname) if named == "dirname" else "."
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
    while isinstance(call, ast.Call) and call.args and not re.search(r"\bt?range$", ast.unparse(call.func)):
        call = call.args[0]
    return call


class _Plainly(ast.NodeTransformer):
    """Writes `getattr(x, "name")` as `x.name`, `dict.update(x, y)` as `x.update(y)`, and the statements `setattr(x,
    "name", y)`, `delattr(x, "name")` and `x.__setitem__("name", y)` as `x.name = y`, `del x.name` and `x["name"] = y`;
    each keeps its place, and so its text."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name("getattr"), [of, ast.Constant(str() as name)], []) if _owns(of, name):
                return ast.copy_location(ast.Attribute(of, name, ast.Load()), node)
            case ast.Call(ast.Attribute(ast.Name("dict" | "list"), method) as func, [of, *given]) if begins_with(
                of
            ) not in ("", "self", "cls") and (method == "__setitem__" or not method.startswith("__")):
                node.func = ast.copy_location(ast.Attribute(of, method, ast.Load()), func)
                node.args = given
            case ast.Call(ast.Attribute(ast.Name("operator"), "setitem") as func, [of, _, _]):
                node.func = ast.copy_location(ast.Attribute(of, "__setitem__", ast.Load()), func)
                node.args = node.args[1:]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        for at, target in enumerate(node.targets):
            match target:
                case ast.Subscript(ast.Call(ast.Name("vars"), [of]), ast.Constant(str() as name)) if _owns(of, name):
                    node.targets[at] = ast.copy_location(ast.Attribute(of, name, ast.Store()), target)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.AST]:
        self.generic_visit(node)
        match node.value:
            case ast.Call(ast.Attribute(ast.Call(ast.Name("globals"), []) as table, "update"), [], words):
                whole = all(one.arg for one in words)
                return [_assigned(table, ast.Constant(k.arg), k.value, node) for k in words if whole] or node
            case ast.Call(ast.Attribute(ast.Call(ast.Name("globals"), []) as table, "setdefault"), [key, value]):
                return _assigned(table, key, value, node)
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
            case ast.Call(ast.Attribute(of, "__setitem__"), [key, value], []) if begins_with(of) not in (
                "",
                "self",
                "cls",
            ):
                return _assigned(of, key, value, node)
        return node


def _assigned(of: ast.expr, key: ast.expr, value: ast.expr, node: ast.Expr) -> ast.Assign:
    part = ast.copy_location(ast.Subscript(of, key, ast.Store()), node.value)
    return ast.copy_location(ast.Assign([part], value), node)


def _owns(node: ast.expr, name: str) -> bool:
    """Whether an attribute of this name can be written behind an expression that is a name, or part of one."""
    return name.isidentifier() and is_stored(node) and not ast.unparse(node).startswith("sys.")


def plainly(tree: ast.Module) -> ast.Module:
    """A file's tree with its attributes written as such."""
    return _Plainly().visit(tree)


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
ANY = "*"  # stands for a name that is only known when the script runs


@lru_cache(maxsize=1024)
def defined_alone(tree: ast.Module) -> set[str]:
    """The functions at the top of a file whose names it imports nowhere, so that these names are of no other file's."""
    imports = (one for one in ast.walk(tree) if isinstance(one, (ast.Import, ast.ImportFrom)))
    imported = {alias.asname or alias.name for one in imports for alias in one.names}
    return {one.name for one in tree.body if isinstance(one, ast.FunctionDef)} - imported


def named_in(node: ast.AST, files: dict[str, set[str]], own: dict[str, set[str]], file: str) -> set[str]:
    """The names that are read inside of a node and are not local to a function, and the attributes of `files`, with the
    file before those that are its `own` functions."""
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
                found.add(f"{file}:{name}" if name in own[file] else name)
            case ast.Attribute(value, attribute) if begins_with(value) in files:
                at = files[begins_with(value)]
                found |= {f"{one}:{attribute}" if attribute in own[one] else attribute for one in at}
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
    """The expression that attributes, elements and methods are taken of: `a` in `a.b[0].c()` and `vars(a)["b"]`."""
    while True:
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred, ast.NamedExpr)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "vars" and node.args:
            node = node.args[0]
        else:
            return node


def parts_of(node: ast.expr, follows: Callable[[ast.expr], bool]) -> Iterator[ast.AST]:
    """All nodes of an expression, without those inside of expressions that are not followed."""
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, ast.expr) or follows(part):
            yield part
            waiting += ast.iter_child_nodes(part)


def head_of(node: ast.stmt) -> Iterator[ast.expr]:
    """A statement's own expressions; of a compound one, those of its head."""
    if isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            yield from filter(None, (item.context_expr, item.optional_vars))
    elif isinstance(node, FUNCTIONS):
        defaults = (default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None)
        yield from (*node.decorator_list, *defaults)
    elif isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.bases)
    else:
        yield from (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))


def cost(node: ast.stmt) -> int:
    """The number of nodes of a statement's own expressions times its calls, since each call is searched as a whole."""
    nodes = [part for expression in head_of(node) for part in ast.walk(expression)]
    return len(nodes) * sum(isinstance(part, ast.Call) for part in nodes)


@lru_cache(maxsize=8192)
def outer_names(function: ast.AST | None) -> frozenset[str]:
    """The names that a function declares global or nonlocal."""
    declared = (one for one in ast.walk(function) if isinstance(one, (ast.Global, ast.Nonlocal))) if function else ()
    return frozenset(name for one in declared for name in one.names)


def of_a_file(target: ast.expr) -> str | None:
    """The name of a file, or of all files, that is written to: `globals()["x"]`, `builtins.x`."""
    match target:
        case ast.Subscript(ast.Call(ast.Name("globals" | "locals" | "vars"), []), ast.Constant(str() as name)):
            return name
        case ast.Attribute(ast.Name("builtins") | ast.Subscript(ast.Attribute(ast.Name("sys"), "modules")), name):
            return name if name != "print" else None
    return None


def gives_a_value(block: list[ast.stmt]) -> bool:
    """Whether a block ends by returning a value, so that what follows is for another result."""
    last = block[-1] if block else None
    if isinstance(last, ast.If):
        return gives_a_value(last.body) and gives_a_value(last.orelse)
    return isinstance(last, ast.Return) and last.value is not None


def stores(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """The names, attributes and elements that a node writes to, each with its value where that is one expression."""
    found: list[tuple[ast.expr, ast.expr | None]] = []
    if isinstance(node, ast.Assign):
        found = [(one, node.value) for one in node.targets]
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        found = [(node.target, node.value)] * (node.value is not None)
    elif isinstance(node, (ast.AugAssign, ast.For, ast.AsyncFor)):
        found = [(node.target, None)]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        found = [(node.optional_vars, None)]
    while found:
        target, value = found.pop(0)
        if isinstance(target, (ast.Tuple, ast.List, ast.Starred)):
            found += [(one, None) for one in getattr(target, "elts", [getattr(target, "value", None)])]
        else:
            yield target, value


def is_target(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def is_chain(node: ast.expr) -> bool:
    """Whether this is a name, or an attribute of an attribute … of a name: evaluating it calls nothing."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def counts_epochs(node: ast.For, text: Callable[[ast.expr], str], inner: bool, other: bool) -> bool:
    """Whether a loop is named as one over epochs; inner: whether it is in such a loop; other: whether it is over no
    loader and no list."""
    named = " ".join(part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)).lower()
    whole = range_of(node.iter)
    bound = [*getattr(whole, "args", [whole])] if inner else [node.iter]  # a bar names that epoch
    over = re.sub(r"\w*per_?epoch", "", " ".join(map(text, bound)).lower())
    return "epoch" in named or ("epoch" in over and other)


def absolute(node: ast.Import | ast.ImportFrom, name: str, is_package: bool) -> str:
    """The module from which a file of this name imports; "" where it imports whole modules."""
    if isinstance(node, ast.Import) or not node.level:
        return getattr(node, "module", None) or ""
    package = [] if name == "__main__" else name.split(".")[: len(name.split(".")) - node.level + is_package]
    return ".".join([*package, *([node.module] if node.module else [])])


def may_define(scope: Scope, name: str) -> bool:
    """Whether a file of the script binds a name anywhere, or may bind any name."""
    every = ast.walk(scope.source.tree)
    bound = {getattr(one, "asname", None) or getattr(one, "name", getattr(one, "id", "")) for one in every}
    return not bound.isdisjoint({name, "__getattr__", "globals", "exec"})


def method_of(call: ast.Call) -> tuple[str, ast.expr | None]:
    """The method that a call calls, and the object; of `setattr(x, …)` the method that does this."""
    if getattr(call.func, "id", "") in ("setattr", "delattr") and call.args:
        return "__setattr__", call.args[0]
    return getattr(call.func, "attr", ""), getattr(call.func, "value", None)


CHOOSING = ("choice", "choices", "get", "items", "keys", "max", "min", "next", "iter", "sample", "sorted", "values")


def is_quiet(node: ast.expr) -> bool:
    """Whether evaluating this runs nothing of the script: what it calls only chooses of a list or a table."""
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    acts = (ast.NamedExpr, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom, *COMPREHENSIONS)
    plain = all(getattr(func, "id", getattr(func, "attr", "")) in CHOOSING for func in calls)
    return plain and not any(isinstance(part, acts) for part in ast.walk(node))


COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def may_change(value: Value) -> bool:
    """Whether something in a value may be changed, or it may change something."""
    return isinstance(value, (ListValue, DictValue, ScriptObject, ScriptFunction))


def running(block: list[ast.stmt], truth: Callable[[ast.expr, Scope], bool | None], scope: Scope) -> Iterator[ast.AST]:
    """The nodes of statements, without functions defined there and branches that surely do not run."""
    named = {part.id for one in block for part in ast.walk(one) if isinstance(part, ast.Name) and is_target(part)}
    attributes = {
        part.attr for one in block for part in ast.walk(one) if isinstance(part, ast.Attribute) and is_target(part)
    }
    waiting: list[ast.AST] = list(block)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            continue
        inner = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.If):
            parts = list(ast.walk(node.test))
            moves = any(isinstance(part, ast.Call) or getattr(part, "id", "") in named for part in parts)
            moves = moves or any(getattr(part, "attr", "") in attributes for part in parts)
            holds = None if moves else truth(node.test, scope)
            skipped = [] if holds is None else node.orelse if holds else node.body
            inner = [one for one in inner if one not in skipped]
        waiting += inner


def inside_of(function: ScriptFunction) -> Scope:
    """The names inside of a function, of which only `self` is known."""
    plain = [*function.node.args.posonlyargs, *function.node.args.args]
    scope = Scope(function.scope.source, function.scope, names={one.arg: Value() for one in plain})
    if function.receiver is not None and plain:
        scope.names[plain[0].arg] = function.receiver
    own = [part for one in ast.walk(function.node) if isinstance(one, (ast.Global, ast.Nonlocal)) for part in one.names]
    scope.names |= {
        part.id: Value()
        for part in ast.walk(function.node)
        if isinstance(part, ast.Name) and is_target(part) and part.id not in own
    }
    return scope


def given_to(call: ast.Call, function: ScriptFunction) -> Iterator[tuple[str, ast.expr]]:
    """What a call gives for the parameters of a function, as far as that is plain to see."""
    plain = [*function.node.args.posonlyargs, *function.node.args.args][function.receiver is not None :]
    starred = next((at for at, one in enumerate(call.args) if isinstance(one, ast.Starred)), len(call.args))
    yield from ((one.arg, given) for one, given in zip(plain, call.args[:starred], strict=False))
    yield from ((one.arg, one.value) for one in call.keywords if one.arg is not None)


def bound_by(tree: ast.Module) -> list[str] | None:
    """The names that code binds where it is executed; None where it may bind any. What it does with each argument of
    the command line it does not do at a plain start."""
    found: list[str] = []
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.For, ast.AsyncFor)) and ast.unparse(part.iter).endswith("sys.argv[1:]"):
            continue
        any_name = isinstance(part, ast.Name) and part.id in ("globals", "exec", "locals", "vars", "setattr")
        if any_name or (isinstance(part, ast.ImportFrom) and any(one.name == "*" for one in part.names)):
            return None
        found += [part.id] if isinstance(part, ast.Name) and is_target(part) else []
        found += [part.name] if isinstance(part, (ast.FunctionDef, ast.ClassDef)) else []
        waiting += ast.iter_child_nodes(part)
    return found


def assigned_in(node: ast.AST) -> list[str]:
    """The names that an expression assigns by `:=`."""
    return [one.target.id for one in ast.walk(node) if isinstance(one, ast.NamedExpr)]


# what runs its parts any number of times, a `try` where it has an `except`
MAYBE = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.Match, ast.Try, ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp)
# what a decorator does with its function
CALLS, KEEPS, PASSES, DROPS = "it calls it", "it keeps it", "it hands on what it gives", "it gives back nothing"
ALTERS, REGISTERS = "it may give back another", "a library may call it"


def decorates(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, bound: bool) -> str:
    """What a decorator does with the function that it is given, its first parameter; bound: without `self`."""
    given = [one.arg for one in (*function.args.posonlyargs, *function.args.args)][bound:]
    inner: list[ast.AST] = [one for one in ast.walk(function) if isinstance(one, FUNCTIONS) and one is not function]
    inner += [of for one in ast.walk(function) if isinstance(of := getattr(one, "value", None), ast.Lambda)]
    inner += [function.body] if isinstance(function.body, ast.Lambda) else []
    inside = {id(part) for one in inner for part in ast.walk(one)}

    def calls(node: ast.AST | None) -> bool:
        node = node.value if isinstance(node, ast.Await) else node
        return isinstance(node, ast.Call) and getattr(node.func, "id", "") == (given or [""])[0]

    if any(calls(part) and id(part) not in inside for part in ast.walk(function)):
        return CALLS
    for one in inner:
        parts = list(ast.walk(one))
        kept = {getattr(target, "id", "") for part in parts for target, value in stores(part) if calls(value)} - {""}
        anew = {getattr(target, "id", "") for part in parts for target, value in stores(part) if not calls(value)}
        results = [one.body] if isinstance(one, ast.Lambda) else [p.value for p in parts if isinstance(p, ast.Return)]
        same = [calls(result) or getattr(result, "id", "") in kept - anew for result in results]
        maybe = (part for part in parts if isinstance(part, MAYBE) and getattr(part, "handlers", True))
        once = sum(map(calls, parts)) == 1 and not any(calls(node) for part in maybe for node in ast.walk(part))
        if not once or not all(same) or not results:
            return DROPS if once and not results else ALTERS
    whole = [p.value for p in ast.walk(function) if isinstance(p, ast.Return) and id(p) not in inside and p.value]
    whole = [function.body] if isinstance(function, ast.Lambda) else whole
    own = {*given[:1], *(getattr(one, "name", "") for one in inner)} - {""}
    if not all(isinstance(one, ast.Lambda) or own & {getattr(p, "id", "") for p in ast.walk(one)} for one in whole):
        return ALTERS  # another function, or a number
    read = [part for part in ast.walk(function) if getattr(part, "id", "") == (given or [""])[0]]
    plain = [part.value for part in ast.walk(function) if isinstance(part, (ast.Return, ast.Attribute))]
    return KEEPS if any(id(part) not in inside and part not in plain for part in read) else PASSES


def changed_arguments(
    call: ast.Call,
    value: Callable[[ast.expr], Value | None],
    passed: Callable[[ast.expr], bool],
    known: dict[int, set[str]],
) -> list[ast.expr]:
    """The arguments whose objects a call may change: of one of the script's functions, those that it changes; a list
    that takes something does not change it.

    value: gives the value of an expression. passed: whether a callee, such as print, changes nothing. known: what was
    found of functions, by their ids.
    """
    called = value(call.func)
    if not isinstance(called, ScriptFunction) or isinstance(called.node, ast.Lambda):
        method = call.func if isinstance(call.func, ast.Attribute) and call.func.attr in TAKING else None
        takes = method is not None and isinstance(value(method.value), ListValue)
        return [] if takes else [one for one in call.args if not _is_plain(one)]
    if id(called.node) not in known:
        known[id(called.node)] = _changed_names(called.node, passed)
    return arguments_for(call, called, known[id(called.node)])


def arguments_for(call: ast.Call, called: ScriptFunction, names: set[str]) -> list[ast.expr]:
    """The arguments of a call for these parameters of its function, and those whose parameter is not known."""
    spec = called.node.args
    given = [one.arg for one in (*spec.posonlyargs, *spec.args)][called.receiver is not None :]
    starred = next((at for at, one in enumerate(call.args) if isinstance(one, ast.Starred)), len(given))
    kept = {at for at, name in enumerate(given[:starred]) if name not in names}
    found = [one for at, one in enumerate(call.args) if at not in kept]
    return [one for one in (*found, *(k.value for k in call.keywords if k.arg in names)) if not _is_plain(one)]


def written_names(
    function: ast.FunctionDef | ast.AsyncFunctionDef, written: Callable[[ast.Call], list[ast.expr]]
) -> set[str]:
    """The names whose objects a function changes by an attribute, an element, `+=`, or a call, of which `written` gives
    the expressions that it writes to; what it only hands on or back is not changed."""
    return _changed_names(function, lambda _: True, written)


TAKING = ("append", "insert", "extend")  # methods of lists
# methods that, as statements, change their object
IN_PLACE = ("sort", "add", "discard", "setdefault", "popitem", "fill", "put")
CHANGING = (*TABLES["list_changes"], *IN_PLACE)  # handed on: map(rows.remove, bad)
OF_LOGS = ("mkdir", "add_scalar", "add_scalars", "add_image", "add_images", "add_histogram", "add_text", "add_figure")
MAKING_PLAIN = ("len", "int", "float", "str", "bool", "repr", "format", "isinstance", "range")


def _is_plain(node: ast.AST) -> bool:
    """Whether an expression makes a new number or string, so that what is done with it changes no other."""
    if isinstance(node, ast.Call):
        made = isinstance(node.func, ast.Attribute) and node.func.attr in PLAIN_RESULTS
        return made or getattr(node.func, "id", "") in MAKING_PLAIN
    return isinstance(node, (ast.JoinedStr, ast.Compare))


def _names_in(node: ast.AST) -> set[str]:
    """The names in an expression of whose objects its value may be a part."""
    parts = () if _is_plain(node) else ast.iter_child_nodes(node)
    return ({node.id} if isinstance(node, ast.Name) else set()).union(*map(_names_in, parts))


def _changed_names(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    passed: Callable[[ast.expr], bool],
    by_call: Callable[[ast.Call], list[ast.expr]] | None = None,
) -> set[str]:
    """The names whose objects a function may change, by an attribute, an element, `+=` or a call, or hands back;
    by_call: gives what a call writes to, in place of all that it gets, and then handing back is no change."""
    found: set[str] = set()
    aliases: dict[str, set[str]] = {}  # a name -> the names whose object, or a part of it, it may be
    holds: dict[str, set[str]] = {}  # a name -> those whose objects are put into its object
    inside: set[str] = set()  # the names of whose objects what is put into them may be changed, too
    read = Counter(part.attr for part in ast.walk(function) if isinstance(part, ast.Attribute))
    for node in ast.walk(function):
        written: list[ast.expr] = []
        for target, value in bindings(node):
            if isinstance(target, ast.Attribute) and read[target.attr] == 1:
                continue  # it is kept, and nothing here changes it
            given = _names_in(value)
            of = holds if isinstance(target, (ast.Attribute, ast.Subscript)) else aliases
            for part in (part for part in ast.walk(target) if isinstance(part, ast.Name)):
                of.setdefault(part.id, set()).update(given)
        if isinstance(node, (ast.Assign, ast.Delete)):
            several = [part for one in node.targets for part in getattr(one, "elts", [one])]
            written = [one for one in several if isinstance(one, (ast.Attribute, ast.Subscript))]
        elif isinstance(node, ast.AugAssign):
            number = isinstance(node.target, ast.Name) and not isinstance(node.value, (ast.List, ast.ListComp))
            written = [] if number and by_call is not None else [node.target]
        elif isinstance(node, ast.Expr) and by_call is not None and isinstance(node.value, ast.Call):
            written = [node.value.func] if getattr(node.value.func, "attr", "") in IN_PLACE else []
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not passed(node.value.func):
            written = [node.value.func, *node.value.args, *(one.value for one in node.value.keywords)]
        elif isinstance(node, ast.Return) and node.value is not None and by_call is None:
            written = [node.value]
        elif isinstance(node, ast.Call) and by_call is not None:
            written = [*by_call(node), *(one for one in node.args if getattr(one, "attr", "") in CHANGING)]
        names = {at.id for one in written if not _is_plain(one) and isinstance(at := root(one), ast.Name)}
        objects = [getattr(one, "value", None) for one in written]
        plain = isinstance(node, (ast.Assign, ast.Delete)) and all(isinstance(one, ast.Name) for one in objects)
        found |= names
        inside |= set() if plain or by_call is not None else names  # `table["a"] = b` changes the table alone
    waiting = list(found)
    while waiting:
        name = waiting.pop()
        deep = name in inside
        more = aliases.get(name, set()) | (holds.get(name, set()) if deep else set())
        waiting += [one for one in more if one not in found or (deep and one not in inside)]
        found |= more
        inside |= more if deep else set()
    return found


def bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a node binds, and to what."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        over, target = node.iter, node.target
        if isinstance(over, ast.Call) and getattr(over.func, "id", "") == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[-1]  # the first is a number
        yield target, over
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr


def defaults_of(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[tuple[ast.arg, ast.expr]]:
    """The parameters of a function that have a default, each with it."""
    plain = [*node.args.posonlyargs, *node.args.args]
    found = list(zip(plain[::-1], node.args.defaults[::-1], strict=False))
    named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    return [*found, *((parameter, default) for parameter, default in named if default is not None)]
