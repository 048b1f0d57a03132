"""Python that Graph mode does not compile, spelled out: methods of lists, dictionaries, comprehensions, `:=`.

Compiled, `x.insert(…)`, `x.pop()`, `x.extend(…)`, `x.reverse()` and `reversed(x)` run in Python: no gradient flows
through their results, and constants in them are no constants any more (`python
benchmarks/graph_containers_mindspore.py`). Writing into slices is compiled, and means the same in Python, also where
the list has other names. When compiled, neither changes a list that the caller uses later: the compiled step's
comparison shows that.

`OrderedDict([(name, x), …])` and `dict(…)` run in Python when MindSpore compiles: the result has no dtype, and the step
does not compile, or no gradient flows through it (`python benchmarks/graph_containers_mindspore.py`). Displays in the
same order are compiled; `{**others}` is not, but a loop over these is. An `OrderedDict()` that is filled later is
compiled too, but its length is not known: the forward of torchvision's feature pyramids, which loops over one, did not
compile within five minutes, and takes ten seconds with `{}`.

A comprehension inside another becomes a loop. Python can run both; a loop leaves its names behind, so a list whose
names the function uses elsewhere is not changed.

`if (n := len(x)) > 3:` is not compiled. The name is assigned in a statement before, where that changes nothing: the
value is always computed, and nothing before it in the statement has an effect or reads the name. `if a and (n := b):`
without `else` becomes two nested `if`s.

`kwargs.pop("mask", None)` of a `**kwargs` that is passed on is not compiled: it becomes the parameter `mask=None`.
"""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
import keyword
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..observe.observations import (
    DictKind,
    Kind,
    ModuleKind,
    TensorKind,
    always,
    always_sequences,
    callees_of,
    holds_tensor,
    kinds_of,
    replacing,
)
from ..source_files import all_parameters, blocks_of, substitute
from .context import Context, Program, Stage, handles
from .signatures import only_looked_up

METHODS = {f"builtins.list.{name}": name for name in ("extend", "insert", "pop", "reverse")}
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)


@handles(syntax=[ast.Expr, *SIMPLE], stage=Stage.GRAPH_MODE)
def spell_out_list_method(node: ast.stmt, context: Context) -> list[ast.stmt] | None:
    """The statements for one that calls such a method of a list variable of the function; None for any other."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return _taken(node, context) if isinstance(node, SIMPLE) else None
    name, method = _asked(call, context)
    match method, call.args:
        case "extend", [items]:
            return [ast.AugAssign(ast.Name(name, ast.Store()), ast.Add(), context.visit(_listed(items, context)))]
        case "insert", [at, item] if isinstance(at, (ast.Constant, ast.Name)):
            at = context.visit(at)
            return [_write(name, at, copy.deepcopy(at), ast.List([context.visit(item)], ast.Load()))]
        case "reverse", []:
            return [_write(name, None, None, _backwards(ast.Name(name, ast.Load())))]
        case "pop", [] | [_]:
            gone = _without(name, call)
            return None if gone is None else [gone]
    return None


@handles(syntax=[ast.BinOp])
def one_of_two_answers(node: ast.BinOp, context: Context) -> ast.expr | None:
    """`(a is None) ^ (b is None)` with `!=`, since graph mode has `^` only for integers."""
    if not isinstance(node.op, ast.BitXor) or not all(map(_is_answer, (node.left, node.right))):
        return None
    return ast.Compare(context.visit(node.left), [ast.NotEq()], [context.visit(node.right)])


def _is_answer(node: ast.expr) -> bool:
    """Whether an expression always is a boolean: `a is b`, `not a`."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    return isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)


@handles("builtins.reversed")
def reversed_list(node: ast.Call, context: Context) -> ast.expr | None:
    """The slice for `reversed(x)` of a list or tuple; None for any other call."""
    callees = callees_of(node)
    if callees != ["builtins.reversed"] or len(node.args) != 1 or context.in_python:
        return None
    kinds = kinds_of(node.args[0])
    if not always_sequences(kinds, "list", "tuple"):
        return None
    found: ast.expr = context.generic_visit(_backwards(node.args[0]))
    return found


def _taken(node: ast.stmt, context: Context) -> list[ast.stmt] | None:
    """The statements for one that takes an item out of a list, `x = up(x, skips.pop())`."""
    value = getattr(node, "value", None)
    found = [] if value is None else [one for one in always_evaluated(value) if _asked(one, context)[1] == "pop"]
    if len(found) != 1 or not isinstance(node, SIMPLE):
        return None
    call, (name, _) = found[0], _asked(found[0], context)
    assert isinstance(call, ast.Call)
    uses = [inner for inner in ast.walk(node) if isinstance(inner, ast.Name) and inner.id == name]
    gone = _without(name, call)
    if gone is None or len(uses) != 1 or (isinstance(node, ast.Return) and name in context.handed):
        return None
    at = call.args[0] if call.args else ast.UnaryOp(ast.USub(), ast.Constant(1))
    item = replacing(ast.Subscript(ast.Name(name, ast.Load()), at, ast.Load()), call)
    taken: ast.stmt = _put(item, call, node)
    return [*context.statement(taken), *([] if isinstance(node, ast.Return) else [gone])]


def _put(new: ast.expr, old: ast.AST, tree: ast.AST) -> Any:
    """A tree with one expression replaced by another."""
    return substitute(tree, lambda node: new if node is old else None)


def _asked(node: ast.AST, context: Context) -> tuple[str, str]:
    """The name of the list, and the method that is called, where the function runs compiled; both empty for any other
    call."""
    owner = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    if not isinstance(owner, ast.Name) or owner.id not in context.own or context.in_python:
        return "", ""
    assert isinstance(node, ast.Call)
    callees = callees_of(node)
    method = METHODS.get(callees[0], "") if len(callees) == 1 and not node.keywords else ""
    return (owner.id, method) if method else ("", "")


def _listed(items: ast.expr, context: Context) -> ast.expr:
    """Items as a list, since `+=` takes nothing else when MindSpore compiles it."""
    if isinstance(items, ast.GeneratorExp):
        return replacing(ast.ListComp(items.elt, items.generators), items)
    kinds = kinds_of(items)
    if isinstance(items, (ast.List, ast.ListComp)) or always_sequences(kinds, "list"):
        return items
    return ast.List([ast.Starred(items, ast.Load())], ast.Load())


def _without(name: str, call: ast.Call) -> ast.stmt | None:
    """The statement that removes the item; None where its index is computed."""
    try:
        at = ast.literal_eval(call.args[0]) if call.args else -1
    except ValueError:
        return None
    if not isinstance(at, int):
        return None
    begin: ast.expr | None = ast.Constant(at) if at >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-at))
    end: ast.expr | None = ast.Constant(at + 1) if at >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-at - 1))
    return _write(name, None if at == 0 else begin, None if at == -1 else end, ast.List([], ast.Load()))


def _write(name: str, begin: ast.expr | None, end: ast.expr | None, items: ast.expr) -> ast.stmt:
    target = ast.Subscript(ast.Name(name, ast.Load()), ast.Slice(begin, end), ast.Store())
    return ast.Assign([target], items)


def _backwards(items: ast.expr) -> ast.expr:
    step = ast.UnaryOp(ast.USub(), ast.Constant(1))
    return ast.Subscript(items, ast.Slice(step=step), ast.Load())


@handles("builtins.list.copy")
def copied_list(node: ast.Call, context: Context) -> ast.expr | None:
    """`[*x]` for `x.copy()`: Graph mode has no such method."""
    if not isinstance(node.func, ast.Attribute):
        return None
    return ast.List([ast.Starred(context.visit(node.func.value), ast.Load())], ast.Load())


COPY = "builtins.dict.copy"
MAKERS = (["collections.OrderedDict"], ["builtins.dict"])
PLAIN = {"get", "items", "keys", "update", "values"}  # methods that a dict and an OrderedDict both have


def dict_display(node: ast.Call) -> ast.expr | None:
    """The display for a call that makes a dictionary from pairs, keywords or another dictionary; None for any other
    call, and where it holds no tensors."""
    callees, tensors = callees_of(node), _of_tensors(kinds_of(node))
    if callees == [COPY] and isinstance(node.func, ast.Attribute) and not node.args and tensors:
        return _again(node.func.value)
    if callees not in MAKERS:
        return None
    words = {word.arg: word.value for word in node.keywords if word.arg is not None}
    if not node.args and words and len(words) == len(node.keywords) and tensors:
        return ast.Dict([ast.Constant(word) for word in words], [*words.values()])
    if len(node.args) != 1 or node.keywords:
        return None
    (pairs,) = node.args
    if tensors and kinds_of(pairs):
        if always(kinds_of(pairs), DictKind):
            return _again(pairs)
        if _pairs(pairs, kinds_of(pairs)):
            return _again(pairs, items=pairs)
    elements = pairs.elts if isinstance(pairs, (ast.List, ast.Tuple)) else [getattr(pairs, "elt", None)]
    found = [one.elts for one in elements if isinstance(one, ast.Tuple) and len(one.elts) == 2]
    if not found or len(found) < len(elements):
        return None
    if not all(always(kinds_of(value), TensorKind, parameter=False) for _, value in found):
        return None
    if isinstance(pairs, (ast.ListComp, ast.GeneratorExp)):
        return ast.DictComp(found[0][0], found[0][1], pairs.generators)
    return ast.Dict([key for key, _ in found], [value for _, value in found])


@handles("collections.OrderedDict", "builtins.dict", COPY)
def make_display(node: ast.Call, context: Context) -> ast.expr | None:
    """The display for a call that makes a dictionary of tensors."""
    shown = dict_display(node)
    return None if shown is None else context.generic_visit(shown)


@handles(syntax=[ast.Assign, ast.AnnAssign, ast.Return], stage=Stage.GRAPH_MODE)
def unpack_dictionaries(node: ast.stmt, context: Context) -> list[ast.stmt] | None:
    """The statements for `name = {**others, key: x}`; None for any other."""
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return)) else None
    if not isinstance(value, ast.Dict) or None not in value.keys or context.in_python:
        return None
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    target = node.target if isinstance(node, ast.AnnAssign) else target
    if isinstance(node, ast.Return):
        free = (name for name in ("found", *(f"found{number}" for number in range(1, 99))) if name not in context.local)
        target = replacing(ast.Name(next(free), ast.Store()), value)
    read = {inner.id for inner in ast.walk(value) if isinstance(inner, ast.Name)}
    if not isinstance(target, ast.Name) or target.id in read or not _plain_dictionaries(value, context):
        return None
    first: list[ast.stmt] = []
    for key, item in zip(value.keys, value.values, strict=True):
        made: ast.expr = _again(item) if key is None else ast.Dict([key], [item])
        if not first:
            first.append(ast.Assign([target], made))
        elif key is None:
            update = ast.Attribute(ast.Name(target.id, ast.Load()), "update", ast.Load())
            first.append(ast.Expr(ast.Call(update, [item], [])))
        else:
            first.append(ast.Assign([ast.Subscript(ast.Name(target.id, ast.Load()), key, ast.Store())], item))
    found = [new for one in first for new in context.statement(one)]
    return [*found, ast.Return(ast.Name(target.id, ast.Load()))] if isinstance(node, ast.Return) else found


def _plain_dictionaries(value: ast.Dict, context: Context) -> bool:
    """Whether everything that is unpacked in a display is a dictionary."""
    unpacked = (item for key, item in zip(value.keys, value.values, strict=True) if key is None)
    return all(always(kinds_of(item), DictKind) for item in unpacked)


def _again(others: ast.expr, items: ast.expr | None = None) -> ast.DictComp:
    """A dictionary of the same keys and values; items: pairs of these."""
    key, value = ast.Name("key", ast.Store()), ast.Name("value", ast.Store())
    pairs = items or ast.Call(ast.Attribute(others, "items", ast.Load()), [], [])
    loop = ast.comprehension(ast.Tuple([key, value], ast.Store()), pairs, [], 0)
    return ast.DictComp(ast.Name("key", ast.Load()), ast.Name("value", ast.Load()), [loop])


def _pairs(node: ast.expr, kinds: Sequence[Kind]) -> bool:
    """Whether it is known to be pairs, and not a mapping, whose keys a loop would iterate over."""
    if isinstance(node, (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)):
        return False  # its pairs are written one by one, or not at all
    of = node.func if isinstance(node, ast.Call) else None
    made = isinstance(of, ast.Name) and of.id in ("enumerate", "zip")
    made = made or (isinstance(of, ast.Attribute) and of.attr == "items")
    return made or always_sequences(kinds, "list", "tuple")


def _of_tensors(kinds: Sequence[Kind]) -> bool:
    return always(kinds, DictKind) and all(map(holds_tensor, kinds))


def start_with_braces(function: ast.FunctionDef) -> None:
    """Start a function's dictionaries that only get tensors with `{}` instead of `OrderedDict()`."""
    statements = [node for node in ast.walk(function) if isinstance(node, ast.Assign) and len(node.targets) == 1]
    for statement in statements:
        call, target = statement.value, statement.targets[0]
        if not isinstance(call, ast.Call) or not isinstance(target, ast.Name) or call.args or call.keywords:
            continue
        filled = [other.value for other in statements if _item_of(other.targets[0], target.id)]
        tensors = bool(filled) and all(always(kinds_of(value), TensorKind, parameter=False) for value in filled)
        if tensors and callees_of(call) in MAKERS and _methods(function, target.id) <= PLAIN:
            statement.value = replacing(ast.Dict([], []), call)


def _item_of(target: ast.expr, name: str) -> bool:
    """Whether something is written into an item of a name."""
    return isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == name


def _methods(function: ast.FunctionDef, name: str) -> set[str]:
    """The methods that a function calls on a name."""
    attributes = (node for node in ast.walk(function) if isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == name}


NAME = "parts"  # the name for a list that has none


def expand_nested_comprehensions(function: ast.FunctionDef) -> None:
    """Write such lists as loops, in statements before those that they are in; in place."""
    names = Counter(node.id for node in ast.walk(function) if isinstance(node, ast.Name))
    names.update(argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg))
    naming = _Naming(names)
    for statement in [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function]:
        if not _named(statement, naming):
            for field in ("value", "test"):
                value = getattr(statement, field, None)
                if isinstance(value, ast.expr):
                    setattr(statement, field, naming.visit(value))
    hoist_walrus(function)
    substitute(function, lambda node: _unnamed(node, naming))  # those that could not be moved to a statement before
    in_blocks(function, lambda block: [new for old in block for new in _loops(old, naming)])


class _Naming(ast.NodeTransformer):
    """Gives names to lists over two loops, `(parts := […])`."""

    def __init__(self, names: Counter[str]) -> None:
        self.names = names
        self.given: set[str] = set()

    def takes(self, node: ast.AST) -> bool:
        """Whether it is such a list, and the function uses its loops' names nowhere else."""
        if not isinstance(node, ast.ListComp) or len(node.generators) < 2:
            return False
        inside = Counter(found.id for found in ast.walk(node) if isinstance(found, ast.Name))
        stored = {found.id for found in ast.walk(node) if isinstance(found, ast.Name) and _stored(found)}
        return all(inside[name] == self.names[name] for name in stored)

    def visit(self, node: ast.AST) -> ast.AST:
        """Give such a list a name; anything else, and anything inside of such a list, is not changed."""
        if self.takes(node):
            assert isinstance(node, ast.ListComp)
            free = (f"{NAME}{number or ''}" for number in itertools.count())
            name = next(name for name in free if name not in self.names)
            self.names[name] += 1
            self.given.add(name)
            target = replacing(ast.Name(name, ast.Store()), node)
            return replacing(ast.NamedExpr(target, node), node)
        return node if isinstance(node, INSIDE) else self.generic_visit(node)


def _unnamed(node: ast.AST, naming: _Naming) -> ast.expr | None:
    """`(parts := […])` as the list; None for anything else."""
    return node.value if isinstance(node, ast.NamedExpr) and node.target.id in naming.given else None


def _loops(statement: ast.stmt, naming: _Naming) -> list[ast.stmt]:
    """`name = […]` over two loops, written as loops; any other statement unchanged."""
    if not _named(statement, naming):
        return [statement]
    assert isinstance(statement, ast.Assign) and isinstance(statement.value, ast.ListComp)
    target, value = statement.targets[0], statement.value
    assert isinstance(target, ast.Name)
    grows = ast.Attribute(ast.Name(target.id, ast.Load()), "append", ast.Load())
    body: ast.stmt = ast.Expr(ast.Call(grows, [value.elt], []))
    for loop in reversed(value.generators):
        for test in reversed(loop.ifs):
            body = ast.If(test, [body], [])
        body = ast.For(loop.target, loop.iter, [body], [])
    made = [ast.Assign([target], ast.List([], ast.Load())), body]
    for node in (inner for one in made for inner in ast.walk(one)):
        if isinstance(node, (ast.stmt, ast.expr)) and not hasattr(node, "lineno"):
            replacing(node, statement if isinstance(node, ast.stmt) else value)  # so that it counts as one that ran
    return made


def _named(statement: ast.stmt, naming: _Naming) -> bool:
    """Whether it is `name = […]` over two loops, neither of which reads the name."""
    if not isinstance(statement, ast.Assign) or not naming.takes(statement.value):
        return False
    names = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
    target = statement.targets[0]
    return len(statement.targets) == 1 and isinstance(target, ast.Name) and target.id not in names


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


ALWAYS = {ast.If: "test", ast.For: "iter"} | dict.fromkeys((ast.Expr, *SIMPLE), "value")
BY_NAME = {"dir", "eval", "exec", "locals", "vars"}  # functions that may read any variable
# names that stand for something else in what is written
RESERVED = {*dir(builtins), *keyword.kwlist, "Parameter", "Tensor", "mindspore", "nn", "np", "ops"}


def name_kwargs(function: ast.FunctionDef, program: Program) -> None:
    """Give a function parameters for what it takes out of its `**kwargs` before it passes on the others; in place.

    Only where a name is always taken out, with a constant as its default, and before anything else may see it there.
    """
    rest = function.args.kwarg.arg if function.args.kwarg is not None else ""
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    if not rest or names & BY_NAME or only_looked_up(function):
        return
    body: list[ast.stmt] = []
    for statement in function.body:
        value = getattr(statement, ALWAYS.get(type(statement), ""), None)
        taken: ast.AST | None = None
        for call in [] if value is None else list(always_evaluated(value)):
            name, default = _popped(call, rest)
            if default is None or not _is_free(name, statement, function, program):
                continue
            if _seen_before(name, call, rest, function):
                continue
            function.args.kwonlyargs.append(ast.arg(name))
            function.args.kw_defaults.append(default)
            taken = replacing(ast.Name(name, ast.Load()), call)
            _put(taken, call, statement)
        if not isinstance(statement, ast.Expr) or statement.value is not taken:
            body.append(statement)
    function.body = body


def _popped(node: ast.AST, rest: str) -> tuple[str, ast.expr | None]:
    """The name and the default of `rest.pop("name", constant)`; no default for anything else."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(owner), "pop"), [ast.Constant(str() as name), default], []):
            fixed = all(
                isinstance(n, (ast.Constant, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)) for n in ast.walk(default)
            )
            return name, default if owner == rest and fixed else None
    return "", None


def popped_names(function: ast.AST) -> Iterator[str]:
    """The names that may become parameters so."""
    for node in ast.walk(function):
        match node:
            case ast.Call(ast.Attribute(_, "pop"), [ast.Constant(str() as name), _]):
                yield name


def _is_free(name: str, statement: ast.stmt, function: ast.FunctionDef, program: Program) -> bool:
    """Whether a name can be a parameter: in the function it means nothing, or what this statement first assigns."""
    others = {getattr(node, "name", None) for node in ast.walk(function)} | {
        one.arg for one in all_parameters(function.args)
    }
    if not name.isidentifier() or name.startswith("__") or name in others | RESERVED:
        return False
    if any(f"{module}.{name}" in program.translated for module in program.modules):
        return False  # it is a name of the new file
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    assigned = any(isinstance(target, ast.Name) and target.id == name for target in targets)
    return not uses or (assigned and all(_place(node) >= _place(statement) for node in uses))


def _seen_before(name: str, call: ast.AST, rest: str, function: ast.FunctionDef) -> bool:
    """Whether anything before a call but a look-up of another name may read a function's `**kwargs`."""
    others: list[ast.AST] = []
    for node in ast.walk(function):
        match node:
            case (
                ast.Call(ast.Attribute(owner, "get" | "pop"), [ast.Constant(key), *_])
                | ast.Subscript(owner, ast.Constant(key), ast.Load())
                | ast.Compare(ast.Constant(key), [ast.In() | ast.NotIn()], [owner])
            ) if key != name:
                others.append(owner)
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == rest]
    return any(_place(node) < _place(call) and node not in others for node in uses)


def _place(node: ast.AST) -> tuple[int, int]:
    """Where a node stands in its file."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


WALRUS_SIMPLE = (ast.If, ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)


def hoist_walrus(function: ast.FunctionDef) -> None:
    """Assign such names in statements of their own, before the statement that they are in; in place."""
    in_blocks(function, lambda block: [new for old in block for new in _apart(old)])


def _apart(statement: ast.stmt) -> list[ast.stmt]:
    """The statement, preceded by those that assign the names in it."""
    field = "test" if isinstance(statement, ast.If) else "value"
    value = getattr(statement, field, None) if isinstance(statement, WALRUS_SIMPLE) else None
    before: list[ast.stmt] = []
    while value is not None and (found := next(_walrus_named(value), None)) and _first(found, value):
        target = replacing(ast.Name(found.target.id, ast.Store()), found.target)
        before.append(replacing(ast.Assign([target], found.value), statement))
        # the name replaces its value, and gets what was observed of it
        value = _put(replacing(ast.Name(found.target.id, ast.Load()), found.value), found, value)
        setattr(statement, field, value)
    return [*before, *_in_two(statement)]


def _in_two(statement: ast.stmt) -> list[ast.stmt]:
    """`if a and (n := b):` as one `if` inside of another; any other statement unchanged."""
    if not isinstance(statement, ast.If) or statement.orelse or not isinstance(statement.test, ast.BoolOp):
        return [statement]
    test = statement.test
    if not isinstance(test.op, ast.And):
        return [statement]
    given = [n for n, part in enumerate(test.values) if n and next(_walrus_named(part), None)]
    if not given:
        return [statement]
    first, rest = (_all_of(part, test) for part in (test.values[: given[0]], test.values[given[0] :]))
    inner = replacing(ast.If(rest, statement.body, []), statement)
    return [replacing(ast.If(first, _apart(inner), []), statement)]


def _all_of(parts: list[ast.expr], test: ast.BoolOp) -> ast.expr:
    return parts[0] if len(parts) == 1 else replacing(ast.BoolOp(ast.And(), parts), test)


def _walrus_named(node: ast.AST) -> Iterator[ast.NamedExpr]:
    """The `:=` that are evaluated whenever an expression is, innermost and leftmost first."""
    return (found for found in always_evaluated(node) if isinstance(found, ast.NamedExpr))


def _first(found: ast.NamedExpr, value: ast.expr) -> bool:
    """Whether nothing that is evaluated before it has an effect, or reads the name."""
    start, around = (found.lineno, found.col_offset), {id(node) for node in ast.walk(found)}
    for node in ast.walk(value):
        if not isinstance(node, ast.expr) or id(node) in around or (node.lineno, node.col_offset) >= start:
            continue
        if isinstance(node, ast.Name) and node.id == found.target.id:
            return False
        if (node.end_lineno, node.end_col_offset) <= start and not is_pure(node):
            return False
    return True


def in_blocks(function: ast.FunctionDef, change: Callable[[list[ast.stmt]], list[ast.stmt]]) -> None:
    """Replace every block of a function by what `change` makes of it, from the outside in; in place."""
    for node in ast.walk(function):
        for block in blocks_of(node):
            block[:] = change(block)


INSIDE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)  # with a scope of their own
ONLY_COMPUTE = {
    *("abs", "bool", "dict", "float", "getattr", "hasattr", "int", "isinstance", "len", "list", "max", "min", "range"),
    *("round", "set", "sorted", "str", "sum", "tuple", "zip"),
}


def is_pure(node: ast.AST) -> bool:
    """Whether evaluating it has no effect; an unknown call counts as having one."""
    return all(_plain(inner) for inner in ast.walk(node))


def always_evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """The parts that are evaluated whenever an expression is, and itself, innermost and leftmost first."""
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, INSIDE):
        return
    if isinstance(node, ast.BoolOp):
        children = node.values[:1]
    elif isinstance(node, ast.IfExp):
        children = [node.test]
    elif isinstance(node, ast.Compare):
        children = [node.left, *node.comparators[:1]]
    for child in children:
        yield from always_evaluated(child)
    yield node


def _plain(node: ast.AST) -> bool:
    if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
        return False
    if not isinstance(node, ast.Call):
        return True
    text = ast.unparse(node.func)
    return text in ONLY_COMPUTE or text.startswith("math.") or text in ("partial", "functools.partial")


@handles(syntax=[ast.comprehension])
def comprehension(node: ast.comprehension, context: Context) -> ast.comprehension:
    """The loop of a comprehension."""
    node.target, node.iter = context.visit(node.target), iterated(node.iter, context)
    node.ifs = [context.visit(test) for test in node.ifs]
    return node


def iterated(node: ast.expr, context: Context) -> ast.expr:
    """What a loop iterates over; for modules by name their names, since MindSpore compiles no loop over a Cell."""
    named = kinds_of(node) == [ModuleKind("torch.nn.ModuleDict")]
    found: ast.expr = context.visit(node)
    return ast.Call(ast.Attribute(found, "keys", ast.Load()), [], []) if named else found
