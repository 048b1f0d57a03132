"""Python that Graph mode does not compile, or compiles to something else, spelled out: lists, dictionaries, texts.

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

Some changes of a dictionary or a list are compiled without an error, and change nothing: `d.pop(…)`, `d.popitem()`,
`d.setdefault(…)`, `x.remove(…)`, `x.sort()`. They are spelled out. `{"a": x, **d}` gets the key twice where d has it,
too, and `f"{n:02d}"` is the text of n without the format; a loop over pairs and `"{:02d}".format(n)` are compiled as
Python computes them. What did not run, and may be any of these, raises.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...source_files import SourceFiles, blocks_of, substitute
from ..observe.instrument import always_evaluated
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
    set_callee,
)
from .context import Context, Stage, Unwritable, handles
from .signatures import only_looked_up

METHODS = {f"builtins.list.{name}": name for name in ("extend", "insert", "pop", "reverse")}
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)
# the field of a statement whose expression is evaluated whenever the statement runs
ALWAYS = {ast.If: "test", ast.For: "iter"} | dict.fromkeys((ast.Expr, *SIMPLE), "value")


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
    if callees != ["builtins.reversed"] or len(node.args) != 1 or context.builds:
        return None
    kinds = kinds_of(node.args[0])
    if not always_sequences(kinds, "list", "tuple"):
        return None
    found: ast.expr = context.generic_visit(_backwards(node.args[0]))
    return found


@handles(syntax=[ast.Compare])
def in_a_set(node: ast.Compare, context: Context) -> None:
    """`x in ("a", "b")` for `x in {"a", "b"}`, which MindSpore does not compile; in place."""
    for place, (how, among) in enumerate(zip(node.ops, node.comparators, strict=True)):
        if isinstance(how, (ast.In, ast.NotIn)) and isinstance(among, ast.Set) and not context.builds:
            node.comparators[place] = replacing(ast.Tuple(among.elts, ast.Load()), among)


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
    taken: ast.stmt = put(item, call, node)
    return [*context.statement(taken), *([] if isinstance(node, ast.Return) else [gone])]


def put(new: ast.expr, old: ast.AST, tree: ast.AST) -> Any:
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


OF_DICTS = ("builtins.dict", "collections.OrderedDict", "builtins.object")  # the last: of what did not run
OF_LISTS = ("builtins.list", "builtins.object")
# methods that change nothing when they are compiled -> what to write
SILENT = {f"{owner}.{name}": "a dictionary of the others" for owner in OF_DICTS for name in ("pop", "popitem")}
SILENT |= {f"{owner}.setdefault": "`if key not in d: d[key] = value`" for owner in OF_DICTS}
SILENT |= {f"{owner}.remove": "a list of the others" for owner in OF_LISTS}
SILENT |= {f"{owner}.sort": "`x = sorted(x)`" for owner in OF_LISTS}
SET = "if KEY not in OWNER:\n    OWNER[KEY] = VALUE"
SET_COMPUTED = f"DEFAULT = VALUE\n{SET.replace('VALUE', 'DEFAULT')}"
ASSERT = "if KEY not in OWNER:\n    raise KeyError(KEY)"
DROP = "OWNER = {NAME: ONE for NAME, ONE in OWNER.items() if NAME != KEY}"
DROP_IN_PLACE = f"{DROP.replace('OWNER =', 'OTHERS =')}\nOWNER.clear()\nOWNER.update(OTHERS)"
LAST = "LAST = [*OWNER][-1]\nTAKEN = (LAST, OWNER[LAST])\n"
REMOVE = "AT = OWNER.index(VALUE)\nOWNER[AT : AT + 1] = []"
# the names of these texts that are not parts of the call, as they are written where they are free
NEW_NAMES = {"TAKEN": "taken", "DEFAULT": "default", "OTHERS": "others", "LAST": "last", "AT": "at"}
NEW_NAMES |= {"NAME": "key", "ONE": "value"}  # of a comprehension


def _silent(node: ast.AST, context: Context) -> str:
    """The method, where a call is of one of these and MindSpore may compile it; empty for any other."""
    callees = callees_of(node) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else []
    if context.builds or not callees or not all(name in SILENT for name in callees):
        return ""
    assert isinstance(node, ast.Call)
    if context.function is not None and node in only_looked_up(context.function):
        return ""  # what is left of its `**kwargs` nobody reads: it becomes a `get`, or goes
    method = callees[0].rpartition(".")[2]
    by_name = bool(node.args) and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    return "" if method == "pop" and callees == ["builtins.object.pop"] and not by_name else method  # of a list


@handles(*SILENT)
def refuse_silent_method(node: ast.Call, context: Context) -> None:
    """Raise where such a call is in a place in which it cannot be spelled out."""
    if _silent(node, context):
        write = SILENT[callees_of(node)[0]]
        raise Unwritable(f"{ast.unparse(node)} changes nothing when it is compiled, without an error: write {write}")


@handles(syntax=[*ALWAYS], stage=Stage.GRAPH_MODE)
def spell_out_silent_method(node: ast.stmt, context: Context) -> list[ast.stmt] | None:
    """The statements for one with such a call; None for any other, and where the call cannot be spelled out."""
    value = getattr(node, ALWAYS[type(node)])
    call = None if value is None else next((one for one in always_evaluated(value) if _silent(one, context)), None)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    owner = call.func.value
    names = {one.id for one in ast.walk(owner) if isinstance(one, ast.Name)}
    before = [one for one in ast.walk(value) if isinstance(one, ast.Name) and place_of(one) < place_of(call)]
    if any(one.id in names for one in before) or not all(map(is_pure, (owner, *call.args[:1]))):
        return None
    alone = isinstance(node, ast.Expr) and value is call
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 and value is call else None
    parts: dict[str, ast.expr] = {"OWNER": owner}
    if isinstance(target, ast.Name) and target.id not in {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}:
        parts["TAKEN"], alone = ast.Name(target.id, ast.Load()), True
    text, now = "", "TAKEN"
    match _silent(call, context), call.args, call.keywords:
        case "setdefault", [key, *default], [] if len(default) < 2:
            parts |= {"KEY": key, "VALUE": default[0] if default else ast.Constant(None)}
            text, now = SET if is_pure(parts["VALUE"]) else SET_COMPUTED, "OWNER[KEY]"
            text += "\nTAKEN = OWNER[KEY]" if "TAKEN" in parts else ""
        case "pop", [key, *default], [] if len(default) < 2 and all(map(is_pure, default)):
            parts |= {"KEY": key, **({"VALUE": default[0]} if default else {})}
            if alone and "TAKEN" not in parts:
                text = "" if default else f"{ASSERT}\n"
            else:
                text = f"TAKEN = {'OWNER.get(KEY, VALUE)' if default else 'OWNER[KEY]'}\n"
            text += _drop(owner, context)
        case "popitem", [], []:
            text = LAST + _drop(owner, context).replace("KEY", "LAST")
        case "sort", [], words if alone and "builtins.object.sort" not in callees_of(call):
            parts["AGAIN"] = ast.Call(ast.Name("sorted", ast.Load()), [owner], words)
            text = "OWNER[:] = AGAIN"
        case "remove", [item], [] if alone and "builtins.object.remove" not in callees_of(call):
            parts["VALUE"] = item
            text = REMOVE
    if not text:
        return None
    made = _filled(text, parts, context)
    if alone:
        return made
    (read,) = ast.parse(now).body
    assert isinstance(read, ast.Expr)
    again = substitute(read.value, lambda inner: copy.deepcopy(parts.get(getattr(inner, "id", ""))))
    return [*made, *context.statement(put(replacing(again, call), call, node))]


def _drop(owner: ast.expr, context: Context) -> str:
    """What takes a key out of a dictionary; out of a `**kwargs` that has no other name by a new one."""
    function = context.function
    rest = function.args.kwarg.arg if function is not None and function.args.kwarg is not None else None
    named = [node.value for node in ast.walk(function or owner) if isinstance(node, (ast.Assign, ast.NamedExpr))]
    alone = isinstance(owner, ast.Name) and owner.id == rest and owner.id not in map(ast.unparse, named)
    return DROP if alone else DROP_IN_PLACE


def _filled(text: str, parts: dict[str, ast.expr], context: Context) -> list[ast.stmt]:
    """The statements of a text, with its names in capitals replaced by the rewritten parts, and by new names; these are
    added to the parts."""
    seen = {name: context.visit(copy.deepcopy(part)) for name, part in parts.items()}
    read = {n.id for part in parts.values() for n in ast.walk(part) if isinstance(n, ast.Name)}
    for word, name in NEW_NAMES.items():
        if word in text and word not in parts:
            taken = read if word in ("NAME", "ONE") else context.local
            free = next(one for one in (name, *(f"{name}{n}" for n in range(1, 99))) if one not in taken)
            seen[word] = parts[word] = ast.Name(free, ast.Load())
            context.local |= set() if taken is read or context.strict else {free}

    def fill(node: ast.AST) -> ast.AST | None:
        part = copy.deepcopy(seen.get(node.id)) if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Name) and isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)):
            part.ctx = node.ctx
        return part

    return [substitute(statement, fill) for statement in ast.parse(text).body]


def place_of(node: ast.AST) -> tuple[int, int]:
    """Where a node stands in its file."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


@handles(syntax=[ast.Dict])
def merged_dictionaries(node: ast.Dict, context: Context) -> ast.expr | None:
    """A dictionary made in a loop over pairs for `{"a": x, **d}`; None for a display without such a `**`."""
    if context.builds or None not in node.keys[1:]:
        return None
    pairs = [*_entries(node, context)]
    keys = [one.elts[0].value for one in pairs if isinstance(one, ast.Tuple) and isinstance(one.elts[0], ast.Constant)]
    if len(pairs) == len({*keys}):
        return ast.Dict(
            [ast.Constant(key) for key in keys], [one.elts[1] for one in pairs if isinstance(one, ast.Tuple)]
        )
    return _again(node, items=ast.List(pairs, ast.Load()))


def _entries(node: ast.Dict, context: Context) -> Iterator[ast.expr]:
    """The pairs of a display, and `*d.items()` for what is unpacked in it."""
    for key, value in zip(node.keys, node.values, strict=True):
        if key is not None:
            yield ast.Tuple([context.visit(key), context.visit(value)], ast.Load())
        elif isinstance(value, ast.Dict):
            yield from _entries(value, context)
        else:
            yield ast.Starred(ast.Call(ast.Attribute(context.visit(value), "items", ast.Load()), [], []), ast.Load())


@handles(syntax=[ast.BinOp])
def united_dictionaries(node: ast.BinOp, context: Context) -> ast.expr | None:
    """The display for `d | {"a": x}`; None for any other operation."""
    if context.builds or not isinstance(node.op, ast.BitOr) or not always(kinds_of(node), DictKind):
        return None
    parts: list[ast.expr] = [node]
    while isinstance(parts[0], ast.BinOp) and isinstance(parts[0].op, ast.BitOr):
        parts[:1] = [parts[0].left, parts[0].right]
    found: ast.expr = context.visit(replacing(ast.Dict([None] * len(parts), parts), node))
    return found


@handles("builtins.dict.update", "collections.OrderedDict.update", stage=Stage.STATEMENT)
def update_by_name(node: ast.Call, context: Context) -> list[ast.stmt] | None:
    """`d.update({"a": x})` for `d.update(a=x)`, which is not compiled; None for any other call."""
    if context.builds or node.args or not node.keywords:
        return None
    keys = [None if word.arg is None else ast.Constant(word.arg) for word in node.keywords]
    entries = node.keywords[0].value
    if keys != [None]:
        entries = ast.Dict([*keys], [word.value for word in node.keywords])
    return [ast.Expr(ast.Call(context.visit(node.func), [context.visit(entries)], []))]


def not_compiled(name: str, files: SourceFiles, owner: str = "") -> bool:
    """Whether no `forward`, and nothing that one may call, has a function of this name in it; owner: the class of a
    method, of which `__call__` is asked for by the calls of its objects."""
    if name == "__call__" and owner:
        nodes = ((function.name, files.node(function)) for function in files.functions.values())
        calls = [(f, n) for f, node in nodes for n in ast.walk(node or ast.Pass()) if isinstance(n, ast.Call)]
        callers = {f.rpartition(".")[2] for f, call in calls if f"object {owner}" in callees_of(call)}
        return bool(callers) and all(one == "__init__" or not_compiled(one, files) for one in callers)
    known: set[str] | None = vars(files).get("compiled_names")
    if known is None:
        known = vars(files)["compiled_names"] = {"forward", "__call__"}
        functions = [node for file in {*files.modules.values()} for node in ast.walk(files.tree(file))]
        waiting = [node for node in functions if isinstance(node, ast.FunctionDef) and node.name != "__init__"]
        while found := [node for node in waiting if node.name in known]:
            waiting = [node for node in waiting if node.name not in known]
            for inner in (inner for node in found for inner in ast.walk(node)):
                known.add(str(getattr(inner, "attr", "") or getattr(inner, "id", "")))
    return name not in known


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


def in_blocks(function: ast.FunctionDef, change: Callable[[list[ast.stmt]], list[ast.stmt]]) -> None:
    """Replace every block of a function by what `change` makes of it, from the outside in; in place."""
    for node in ast.walk(function):
        for block in blocks_of(node):
            block[:] = change(block)


ONLY_COMPUTE = {
    *("abs", "bool", "dict", "float", "getattr", "hasattr", "int", "isinstance", "len", "list", "max", "min", "range"),
    *("round", "set", "sorted", "str", "sum", "tuple", "zip"),
}


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Eq: ast.NotEq, ast.Is: ast.IsNot, ast.In: ast.NotIn}


def negated(test: ast.expr) -> ast.expr:
    """`x != 4` for `x == 4`, and `not test` for what is no comparison."""
    match test:
        case ast.Compare(left, [op], right) if type(op) in _OPPOSITE:
            return replacing(ast.Compare(left, [_OPPOSITE[type(op)]()], right), test)
    return replacing(ast.UnaryOp(ast.Not(), test), test)


def is_pure(node: ast.AST) -> bool:
    """Whether evaluating it has no effect; an unknown call counts as having one."""
    return all(_plain(inner) for inner in ast.walk(node))


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


def list_mapped(function: ast.FunctionDef) -> None:
    """Write `q, k, v = map(lambda t: split(t, heads), qkv)` as a list, and so `list(map(…))` and `*map(…)`: MindSpore
    compiles no map of a function that reads names from around it; in place."""
    for node in [*ast.walk(function)]:
        match node:
            case ast.Assign([ast.Tuple() | ast.List()], ast.Call() as inner) | ast.Starred(ast.Call() as inner):
                node.value = _mapped(inner) or inner
            case ast.Call(ast.Name("list" | "tuple"), [ast.Call() as inner], []):
                node.args = [_mapped(inner) or inner]
    substitute(function, _list_itself)


def _mapped(call: ast.Call) -> ast.expr | None:
    """`[f(x, y) for x, y in zip(a, b)]` for `map(lambda x, y: f(x, y), a, b)`; None for any other call."""
    match call:
        case ast.Call(
            ast.Name("map"), [ast.Lambda(ast.arguments([], takes, None, [], [], None, []), body), *given], []
        ):
            if callees_of(call) not in ([], ["builtins.map"]) or len(takes) != len(given) or not given:
                return None
            targets: list[ast.expr] = [ast.Name(one.arg, ast.Store()) for one in takes]
            over = given[0]
            if len(given) > 1:
                function = ast.Name("zip", ast.Load())
                set_callee(function, "builtins.zip")
                over = replacing(ast.Call(function, given, []), call)
            target = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())
            return ast.fix_missing_locations(
                replacing(ast.ListComp(body, [ast.comprehension(target, over, [], 0)]), call)
            )
    return None


def _list_itself(node: ast.AST) -> ast.AST | None:
    """`[f(x) for x in a]` for `list([f(x) for x in a])`."""
    match node:
        case ast.Call(ast.Name("list"), [ast.ListComp() as made], []):
            return made
    return None
