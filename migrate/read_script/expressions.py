"""The value of an expression, with every use of a library on the way noted; Python's own operators on constants.

Operations that could run long or grow large are not computed.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from .. import library_names as names
from .abstract_values import (
    LARGEST,
    ArgumentParser,
    Constant,
    DictValue,
    LibraryName,
    LibraryObject,
    ListValue,
    Origin,
    ParsedArguments,
    RangeValue,
    Scope,
    ScriptClass,
    ScriptFunction,
    ScriptModule,
    ScriptObject,
    Value,
    agreed,
    first,
    forget,
    inside,
    is_known,
    keys_of,
    known,
    origins,
    perhaps,
    plain,
    weight,
    with_other,
    wrapped,
)
from .command_line import ADDS_AN_ARGUMENT, CHANGED_DEFAULTS, forget_defaults, holder
from .interpreter import Interpreter, evaluates, is_decorated, is_property, is_table
from .syntax import assigned_in

ROUNDS = 16  # most rounds of a loop over a known list that are followed
LISTED, EPOCHS, BATCHES, OTHER = "list", "epochs", "batches", "loop"
HAVE_NAMES = (LibraryName, ScriptModule, ParsedArguments, ScriptClass, ScriptObject)


@evaluates(ast.Constant)
def _constant(interpreter: Interpreter, node: ast.Constant, scope: Scope) -> Value:
    return wrapped(node.value)


@evaluates(ast.Name)
def _name(interpreter: Interpreter, node: ast.Name, scope: Scope) -> Value:
    found = scope.find(node.id)
    if found is not None:
        return found
    at: Scope | None = scope
    while at is not None:
        interpreter.spent += len(at.stars)
        for prefix in at.stars:
            if names.gives_by_star(prefix, node.id):
                return LibraryName(f"{prefix}.{node.id}")
        at = at.parent
    return Value()


@evaluates(ast.Attribute)
def _attribute(interpreter: Interpreter, node: ast.Attribute, scope: Scope) -> Value:
    return attribute(interpreter, interpreter.value(node.value, scope), node.attr)


def of_library(interpreter: Interpreter, name: str) -> Value:
    """What a library has by this name: a number or numbers, where they are known; absl's flags."""
    if name == "absl.flags.FLAGS":
        return interpreter.flags
    found = names.TABLES["constants"].get(name.replace("timm.data.constants.", "timm.data."))
    return LibraryName(name) if found is None else wrapped(found)


def attribute(interpreter: Interpreter, value: Value, name: str) -> Value:
    """The value of `value.name`."""
    value = value.other or value
    if name == "__dict__" and isinstance(value, HAVE_NAMES):
        return value
    if isinstance(value, LibraryName):
        return of_library(interpreter, f"{value.name}.{name}")
    if isinstance(value, ScriptFunction) and name in CHANGED_DEFAULTS:
        forget_defaults(interpreter, value, name)  # its elements may be written
    if isinstance(value, ScriptModule):
        within = known(value.scope.names.get("__name__")) or ""
        return value.scope.names.get(name) or interpreter.file(f"{within}.{name}") or Value()
    if isinstance(value, ParsedArguments):
        return value.get(name)
    if isinstance(value, ArgumentParser):
        return LibraryObject("", of=value) if name in ADDS_AN_ARGUMENT else Value()
    if isinstance(value, ScriptClass):
        method = value.find(name)
        if isinstance(method, ScriptFunction) and is_decorated(method.node, "classmethod"):
            return ScriptFunction(method.node, method.scope, value, method.owner)
        return value.member(name) or method or Value()
    if isinstance(value, ScriptObject):
        if name == "__class__":
            return value.of
        found = value.attributes.get(name) or _of_object(value, name)
        found = Value() if is_known(found) and value.of.computes() else found
        return interpreter.call(found, []) if isinstance(found, ScriptFunction) and is_property(found.node) else found
    if isinstance(value, DictValue):
        return value.pairs.get(name) or Value()
    if isinstance(value, LibraryObject):
        if value.family == names.MODULE:  # a module's children, and the module in a wrapper
            return value.of if name == "module" and value.of is not None else LibraryObject("")
        if name in ("dataset", "module") and value.of is not None:
            return value.of
        if isinstance(value.of, DictValue):
            return value.of.pairs.get(name) or Value()
        tensor = value.family == names.TENSOR and name in ("data", "grad", "T", "mT")
        return LibraryObject(names.TENSOR) if tensor else Value()
    return Value(among=tuple(attribute(interpreter, one, name) for one in value.among))


def _of_object(value: ScriptObject, name: str) -> Value:
    found = value.of.find(name)
    if isinstance(found, ScriptFunction):
        return ScriptFunction(found.node, found.scope, value, found.owner)
    return found or Value()


@evaluates(ast.Subscript)
def _subscript(interpreter: Interpreter, node: ast.Subscript, scope: Scope) -> Value:
    value, key = interpreter.value(node.value, scope), interpreter.value(node.slice, scope)
    at = known(key)
    if isinstance(at, str) and is_table(value, "__getitem__"):
        found = attribute(interpreter, value, at)
        return holder(at, found) if value is interpreter.flags else found
    if isinstance(value, LibraryName) and value.name == "sys.modules" and isinstance(at, str):
        return interpreter.file(at) or LibraryName(at)
    if isinstance(value, LibraryName) and isinstance(at, str) and at.isidentifier():
        return LibraryName(f"{value.name}.{at}")
    if isinstance(value, LibraryName) and isinstance(node.value, ast.Attribute) and node.value.attr == "__dict__":
        return LibraryName(f"{value.name}.?")
    if isinstance(value, LibraryObject) and value.family in (names.TENSOR, names.DATASET):
        return LibraryObject(value.family, of=value.of)
    if isinstance(value, DictValue) and isinstance(at, (str, int)) and at in value.pairs:
        return value.pairs[at]
    if isinstance(value, ListValue) and isinstance(at, int) and -len(value.items) <= at < len(value.items):
        return value.items[at]
    if isinstance(value, ListValue) and isinstance(node.slice, ast.Slice) and value.closed:
        ends = [known(interpreter.value(end, scope)) if end else None for end in (node.slice.lower, node.slice.upper)]
        if node.slice.step is None and all(end is None or isinstance(end, int) for end in ends):
            return ListValue(value.items[ends[0] : ends[1]], origins=value.origins)
    return Value(among=inside(value))


@evaluates(ast.List, ast.Tuple, ast.Set)
def _list(interpreter: Interpreter, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Value:
    found = ListValue([], ordered=not isinstance(node, ast.Set), loops=interpreter.repeats)
    for element in node.elts:
        inner = interpreter.value(element.value if isinstance(element, ast.Starred) else element, scope)
        interpreter.note_named(inner, element, scope)
        if isinstance(element, ast.Starred):
            found.extend(inner.items if isinstance(inner, ListValue) else [])
            found.closed = found.closed and isinstance(inner, ListValue) and inner.closed
        else:
            found.extend([inner])
    found.origins = origins(*found.items)
    return found


@evaluates(ast.Dict)
def _dict(interpreter: Interpreter, node: ast.Dict, scope: Scope) -> Value:
    pairs: dict[Any, Value] = {}
    more = False
    for key, item in zip(node.keys, node.values, strict=True):
        value = interpreter.value(item, scope)
        interpreter.note_named(value, item, scope)
        name = known(interpreter.value(key, scope)) if key is not None else None
        if isinstance(name, (str, int, float)):
            pairs[name] = _entry(name, item, value, scope)
        elif key is None and isinstance(value, DictValue):
            pairs |= value.pairs
        elif key is None:
            forget(pairs, list(pairs))
        more = more or not (isinstance(name, (str, int, float)) or (isinstance(value, DictValue) and not value.more))
    return DictValue(pairs, origins=origins(*pairs.values()), closed=len(pairs) == len(node.keys), more=more)


def _entry(name: str | float, node: ast.expr, value: Value, scope: Scope) -> Value:
    """A value of a table; a literal constant keeps its place."""
    if not isinstance(node, (ast.Constant, ast.UnaryOp)) or not isinstance(value, Constant) or value.origins:
        return value
    origin = Origin(scope.source.shown, node.lineno, f"{name!r}: {scope.source.text(node)}", whole=False)
    return Constant(value.value, origins=(origin,))


@evaluates(ast.BinOp)
def _binop(interpreter: Interpreter, node: ast.BinOp, scope: Scope) -> Value:
    left, right = interpreter.value(node.left, scope), interpreter.value(node.right, scope)
    if any(isinstance(side, LibraryObject) and side.family == names.TENSOR for side in (left, right)):
        return LibraryObject(names.TENSOR)
    return binary(node.op, left, right)


@evaluates(ast.UnaryOp)
def _unaryop(interpreter: Interpreter, node: ast.UnaryOp, scope: Scope) -> Value:
    operand = interpreter.value(node.operand, scope)
    if isinstance(operand, LibraryObject) and operand.family == names.TENSOR:
        return LibraryObject(names.TENSOR)
    return unary(node.op, operand)


@evaluates(ast.Compare)
def _compare(interpreter: Interpreter, node: ast.Compare, scope: Scope) -> Value:
    values = [interpreter.value(part, scope) for part in (node.left, node.comparators[0])]
    values += [_where(interpreter, part, None, scope) for part in node.comparators[1:]]  # only if the first holds
    for value, part in zip(values, (node.left, *node.comparators), strict=True):
        interpreter.note_named(value, part, scope)
    if isinstance(node.left, ast.Name) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        values = [Value(), *values[1:]] if scope.perhaps_none(node.left.id) else values
    if len(values) == 2:
        return compare(node.ops[0], *values)
    results = [compare(op, a, b) for op, a, b in zip(node.ops, values, values[1:], strict=False)]
    found = [truth(result) for result in results]
    return Constant(all(found)) if None not in found else Value()


@evaluates(ast.BoolOp)
def _boolop(interpreter: Interpreter, node: ast.BoolOp, scope: Scope) -> Value:
    wanted = isinstance(node.op, ast.Or)  # the truth that ends it
    untold, result = False, Value()
    decided: Value | None = None
    for before, part in zip((node.values[0], *node.values), node.values, strict=False):
        taken = False if decided is not None else None if untold else True  # whether this part is read when it runs
        run = partial(_where, interpreter, part, taken, scope)
        result = run() if taken else interpreter.under(taken, before, not wanted, scope, run)
        found = truth(result)
        untold = untold or (found is None and decided is None)
        if found is wanted and decided is None:
            decided = result
    if decided is not None and (not untold or wanted is False or isinstance(known(decided), bool)):
        return decided if not untold else Constant(wanted, origins=origins(decided))  # `unknown and False` is false
    return Value() if untold else result


@evaluates(ast.IfExp)
def _ifexp(interpreter: Interpreter, node: ast.IfExp, scope: Scope) -> Value:
    test = interpreter.value(node.test, scope)
    holds = truth(test)
    branches = []
    for branch, of in ((node.body, True), (node.orelse, False)):
        taken = None if holds is None else holds is of
        run = partial(_where, interpreter, branch, taken, scope)
        branches.append(interpreter.under(taken, node.test, of, scope, run))
    if holds is None:
        return agreed(branches)
    return with_other(*(branches if holds else branches[::-1]))


@evaluates(ast.NamedExpr)
def _namedexpr(interpreter: Interpreter, node: ast.NamedExpr, scope: Scope) -> Value:
    found = interpreter.value(node.value, scope)
    interpreter.assign(node.target, found, scope)
    return found


def _where(interpreter: Interpreter, part: ast.expr, taken: bool | None, scope: Scope) -> Value:
    """The value of an expression that is evaluated, is not, or perhaps is (None): so is what it assigns by `:=`."""
    names_ = assigned_in(part) if taken is not True else []
    before = {name: value for name in names_ if (value := scope.find(name)) is not None}
    result = interpreter.value(part, scope)
    after = {name: scope.find(name) or Value() for name in names_}
    for name in names_:
        of = scope.shared.get(name, scope)
        of.names[name] = before.get(name, after[name]) if taken is False else perhaps(before.get(name), after[name])
    return result


@evaluates(ast.JoinedStr)
def _joinedstr(interpreter: Interpreter, node: ast.JoinedStr, scope: Scope) -> Value:
    parts = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            inner = interpreter.value(part.value, scope)
            plain = part.conversion == -1 and part.format_spec is None and is_known(inner)
            parts.append(str(known(inner)) if plain else None)
        else:
            parts.append(known(interpreter.value(part, scope)))
    return wrapped("".join(map(str, parts))) if None not in parts else Value()


@evaluates(ast.Lambda)
def _lambda(interpreter: Interpreter, node: ast.Lambda, scope: Scope) -> Value:
    inner = Scope(scope.source, scope)
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        inner.names[argument.arg] = LibraryObject(names.habit(argument.arg))
    interpreter.value(node.body, inner)
    return ScriptFunction(node, scope)


@evaluates(ast.Starred, ast.Await)
def _inside(interpreter: Interpreter, node: Any, scope: Scope) -> Value:
    return interpreter.value(node.value, scope)


@evaluates(ast.ListComp, ast.SetComp, ast.GeneratorExp)
def _listcomp(interpreter: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Value:
    if (rounds := _rounds(interpreter, node, scope)) is not None:
        return rounds
    inner = _generators(interpreter, node, scope)
    element = interpreter.value(node.elt, inner)
    interpreter.note_named(element, node.elt, inner)
    _any_round(inner)
    return ListValue([element], closed=False)


def _rounds(
    interpreter: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope
) -> ListValue | None:
    """The elements of a comprehension that computes a known value in each of a few rounds, [0.5 for _ in range(3)];
    None for any other."""
    calls = (part for part in ast.walk(node.elt) if isinstance(part, (ast.Call, ast.NamedExpr, ast.Lambda, ast.Await)))
    one = node.generators[0]
    if len(node.generators) > 1 or one.is_async or any(calls) or not isinstance(one.target, ast.Name):
        return None
    over = interpreter.value(one.iter, scope)
    if not isinstance(over, ListValue) or not over.closed or not 0 < len(over.items) <= ROUNDS or not is_known(over):
        return None
    found = []
    for item in over.items:
        inner = Scope(scope.source, scope)
        interpreter.assign(one.target, item, inner)
        holds = [truth(interpreter.value(test, inner)) for test in one.ifs]
        if None in holds:
            return ListValue([Value()], closed=False)
        found += [interpreter.value(node.elt, inner)] if all(holds) else []
    known_ = all(is_known(value) for value in found) and over.loops == 0 and not isinstance(node, ast.SetComp)
    return ListValue(found) if known_ else None


@evaluates(ast.DictComp)
def _dictcomp(interpreter: Interpreter, node: ast.DictComp, scope: Scope) -> Value:
    inner = _generators(interpreter, node, scope)
    interpreter.value(node.key, inner)
    interpreter.value(node.value, inner)
    _any_round(inner)
    return Value()


def _any_round(inner: Scope) -> None:
    """Take as unknown what `:=` assigns in a comprehension, which has any number of rounds."""
    for name, of in inner.shared.items():
        of.names[name] = Value()


def _generators(interpreter: Interpreter, node: Any, scope: Scope) -> Scope:
    """The names in a comprehension; what it assigns by `:=` belongs to the scope around it."""
    shared = {name: scope.shared.get(name, scope) for name in assigned_in(node)}
    inner, outer = Scope(scope.source, scope, shared=shared), interpreter.over
    for generator in node.generators:
        kind, value = each_of(interpreter, generator.iter, inner)
        if kind == LISTED and isinstance(value, ListValue):  # one of these, and not the list
            value = value.items[0] if len(value.items) == 1 else Value(among=inside(value))
        interpreter.assign(generator.target, value, inner)
        interpreter.over = outer
        for test in generator.ifs:
            interpreter.value(test, inner)
    return inner


def each_of(interpreter: Interpreter, node: ast.expr, scope: Scope) -> tuple[str, Value]:
    """The kind of a loop over an expression, and the loop variable's value in each round."""
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    if isinstance(node, ast.Call) and name == "enumerate" and node.args:
        kind, inner = each_of(interpreter, node.args[0], scope)
        if kind == LISTED and isinstance(inner, ListValue):
            return kind, ListValue([ListValue([Constant(i), item]) for i, item in enumerate(inner.items[:ROUNDS])])
        return kind, ListValue([Value(), inner])
    if isinstance(node, ast.Call) and name == "zip" and node.args:
        kinds, inners = zip(*(each_of(interpreter, arg, scope) for arg in node.args), strict=True)
        known_kind = BATCHES if BATCHES in kinds else OTHER
        return known_kind, ListValue([first(i.items) if k == LISTED else i for k, i in zip(kinds, inners, strict=True)])
    value = interpreter.value(node, scope)
    if isinstance(value, DictValue):  # of loaders: `for phase in loaders`
        value = keys_of(value)
    if isinstance(value, LibraryObject) and value.family == names.LOADER:
        interpreter.over = value
        return BATCHES, LibraryObject(names.TENSOR)
    if isinstance(value, ListValue) and value.closed and value.ordered and 0 < len(value.items) <= ROUNDS:
        return LISTED, value
    if isinstance(value, LibraryObject) and value.family in (names.TENSOR, names.MODULE):
        return OTHER, value if value.family == names.TENSOR else LibraryObject("")
    if not is_known(value) and names.habit(scope.source.text(node).rpartition(".")[2]) == names.LOADER:
        return BATCHES, LibraryObject(names.TENSOR)
    return OTHER, Value(among=inside(value))


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_UNARY: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: lambda a, b: a is b if a is None or b is None or isinstance(a, bool) else a == b,
    ast.IsNot: lambda a, b: not _COMPARE[ast.Is](a, b),
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_BUILTINS = (
    *("abs", "all", "any", "bool", "dict", "divmod", "float", "int", "len", "list", "max", "min", "round", "set"),
    *("sorted", "str", "sum", "tuple"),
)
_TEXT = (
    *("capitalize", "count", "endswith", "find", "join", "lower", "lstrip", "removeprefix", "removesuffix", "rstrip"),
    *("replace", "split", "startswith", "strip", "title", "upper"),
)
_LONGER = ("join", "replace")
_MATH = ["ceil", "exp", "floor", "gcd", "log", "log10", "log2", "pow", "sqrt"]
_EXPECTED = (ArithmeticError, TypeError, ValueError, LookupError, AttributeError, MemoryError, RecursionError)


def _small(*values: Any) -> bool:
    """Whether operators on these cannot run long: numbers of ordinary size, short strings and lists."""
    return all(
        abs(value) < 2**63
        if isinstance(value, (int, float)) and not isinstance(value, bool)
        else len(value) <= LARGEST
        if isinstance(value, (str, bytes, list, dict))
        else True
        for value in values
    )


def _repeats(values: Sequence[Value]) -> int:
    """The length of `text * count`, or the number of values in `items * count`."""
    numbers = [value.value for value in values if isinstance(value, Constant)]
    counts = [abs(number) for number in numbers if isinstance(number, int)]
    sizes = [len(text) for text in numbers if isinstance(text, (str, bytes))]
    sizes += [weight(value) for value in values if isinstance(value, ListValue)]
    return max(counts, default=1) * max(sizes) if sizes else 0


def _compute(function: Callable[..., Any], *values: Value) -> Value:
    if not all(is_known(value) for value in values):
        return Value()
    raw = [plain(value) for value in values]
    if not _small(*raw):
        return Value()
    try:
        return wrapped(function(*raw), origins(*values))
    except _EXPECTED:
        return Value()


def binary(op: ast.operator, left: Value, right: Value) -> Value:
    """The result of a binary operator; lists of unknown values are joined too."""
    if isinstance(op, ast.Add) and isinstance(left, ListValue) and isinstance(right, ListValue):
        found = ListValue(list(left.items), closed=left.closed and right.closed, origins=origins(left, right))
        found.extend(right.items)
        return found
    if isinstance(op, ast.Div) and isinstance(left, Constant) and isinstance(left.value, str):
        return joined([left, right])  # Path(folder) / name
    if isinstance(op, ast.Pow):
        return _compute(_power, left, right)
    if isinstance(op, ast.Mod) and isinstance(known(left), (str, bytes)):
        return Value()  # a format string may ask for a gigabyte of spaces
    if isinstance(op, ast.Mod) and type(left) is Value and known(right) == 1:
        return Constant(0, origins=origins(right))  # of a counter
    if isinstance(op, ast.BitOr) and isinstance(left, DictValue) and isinstance(right, DictValue):
        more, of = left.more or right.more, origins(left, right)
        return DictValue(left.pairs | right.pairs, closed=left.closed and right.closed, more=more, origins=of)
    if isinstance(op, ast.Mult) and _repeats([left, right]) > LARGEST:
        return Value()
    items, count = (left, known(right)) if isinstance(left, ListValue) else (right, known(left))
    if isinstance(op, ast.Mult) and isinstance(items, ListValue) and isinstance(count, int):
        return ListValue(items.items * count, closed=items.closed, origins=origins(left, right))
    return _compute(_BINARY[type(op)], left, right) if type(op) in _BINARY else Value()


def _power(base: Any, exponent: Any) -> Any:
    if abs(exponent) > 100 or abs(base) > 2**32:
        raise OverflowError
    return base**exponent


def joined(values: list[Value]) -> Value:
    """The result of os.path.join."""
    return _compute(posixpath.join, *values)


def unary(op: ast.unaryop, operand: Value) -> Value:
    """The result of a unary operator."""
    if isinstance(op, ast.Not):
        found = truth(operand)
        return Value() if found is None else Constant(not found, origins=origins(operand))
    function = _UNARY.get(type(op))
    return _compute(function, operand) if function else Value()


def compare(op: ast.cmpop, left: Value, right: Value) -> Value:
    """The result of one comparison; an object that was made is not None."""
    if isinstance(op, (ast.Is, ast.IsNot)):
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Constant) and one.value is None and _is_object(other):
                return Constant(isinstance(op, ast.IsNot), origins=origins(other))
    return _compute(_COMPARE[type(op)], left, right)


def _is_object(value: Value) -> bool:
    made = isinstance(value, LibraryObject) and (bool(value.family) or names.is_class(value.name))
    return made or isinstance(value, (ListValue, DictValue, ScriptObject, LibraryName))


def truth(value: Value) -> bool | None:
    """Whether a condition is true; None where that is not known."""
    if isinstance(value, Constant):
        return bool(value.value)
    if isinstance(value, ListValue):
        return bool(value.items) if value.closed else None  # a loop may add nothing, a condition may leave nothing
    if isinstance(value, DictValue):
        return bool(value.pairs) or None
    if isinstance(value, LibraryObject):
        made = value.family in (names.MODULE, names.OPTIMIZER, names.SCHEDULE)
        return made or (not value.family and _is_object(value)) or None
    return True if isinstance(value, ScriptObject) and not value.of.find("__len__") else None


OF_ONE_AMONG = ("max", "min", "next", "sorted", "iter", "reversed", "filter", "list", "tuple", "set")


def builtin(name: str, values: list[Value]) -> Value:
    """The result of one of Python's own functions; of one that chooses an object, or gives one after the other, any of
    these."""
    found = _builtin(name, values)
    copies = name in OF_ONE_AMONG[:4] and values and inside(values[0])
    if name not in OF_ONE_AMONG or not values or not (type(found) is Value or copies):
        return found
    return Value(among=tuple(values[:1]) if name in OF_ONE_AMONG[3:] else inside(values[0]))


def _builtin(name: str, values: list[Value]) -> Value:
    if name in ("list", "tuple", "sorted", "reversed") and len(values) == 1 and isinstance(values[0], ListValue):
        items = values[0].items[::-1] if name == "reversed" else list(values[0].items)
        items = items if values[0].ordered or len(items) < 2 else [Value() if is_known(one) else one for one in items]
        if name != "sorted":
            return ListValue(items, closed=values[0].closed, origins=origins(*values))
    if name == "dict" and len(values) == 1 and isinstance(values[0], DictValue):
        return replace(values[0], pairs=dict(values[0].pairs))
    if name == "len" and len(values) == 1 and isinstance(values[0], ListValue) and values[0].closed:
        return Constant(len(values[0].items), origins=origins(*values))
    if name in ("list", "dict", "set", "tuple") and not values:
        return DictValue({}) if name == "dict" else ListValue([])
    if name == "range" and 1 <= len(values) <= 3 and all(is_known(value) for value in values):
        raw = [plain(value) for value in values]
        try:
            numbers = range(*raw)
            found = origins(*values)
            return wrapped(list(numbers), found) if len(numbers) <= 16 else RangeValue(len(numbers), origins=found)
        except _EXPECTED:
            return Value()
    if name == "round" and len(values) == 2 and not abs(known(values[1], 0) or 0) <= 100:
        return Value()  # round(5, -10**18) computes 10**10**18
    return _compute(getattr(builtins, name), *values) if name in _BUILTINS else Value()


def of_math(name: str, values: list[Value]) -> Value:
    """The result of a function of the module math."""
    if name == "pow":
        return _compute(_power, *values) if len(values) == 2 else Value()
    return _compute(getattr(math, name), *values) if name in _MATH else Value()


def of_text(text: Constant, method: str, values: list[Value]) -> Value:
    """The result of a method of a string."""
    if method not in _TEXT or not isinstance(text.value, str) or (method in _LONGER and len(text.value) > 100):
        return Value()
    return _compute(lambda own, *rest: getattr(own, method)(*rest), text, *values)
