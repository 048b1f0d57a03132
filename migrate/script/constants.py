"""Python's own operators, functions and text methods on constants; what could run long or grow large is not done."""

from __future__ import annotations

import ast
import builtins
import math
import operator
import posixpath
from collections.abc import Callable, Sequence
from typing import Any

from .names import MODULE, OPTIMIZER, SCHEDULE, is_class
from .values import (
    LARGEST,
    Constant,
    Instance,
    Items,
    Name,
    Pairs,
    Thing,
    Value,
    is_known,
    known,
    origins,
    plain,
    weight,
    wrapped,
)

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
    ast.IsNot: lambda a, b: a is not b if a is None or b is None or isinstance(a, bool) else a != b,
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
_MATH = ["ceil", "exp", "floor", "gcd", "log", "log10", "log2", "pow", "sqrt"]
_EXPECTED = (ArithmeticError, TypeError, ValueError, LookupError, AttributeError, MemoryError, RecursionError)


def _small(*values: Any) -> bool:
    """Whether operators on these cannot run long: numbers that a script writes, short texts and lists."""
    return all(
        abs(value) < 2**63
        if isinstance(value, (int, float)) and not isinstance(value, bool)
        else len(value) <= LARGEST
        if isinstance(value, (str, bytes, list, dict))
        else True
        for value in values
    )


def _repeats(values: Sequence[Value]) -> int:
    """How long `text * count` gets, or how many values there are in `items * count`."""
    numbers = [value.value for value in values if isinstance(value, Constant)]
    counts = [abs(number) for number in numbers if isinstance(number, int)]
    sizes = [len(text) for text in numbers if isinstance(text, (str, bytes))]
    sizes += [weight(value) for value in values if isinstance(value, Items)]
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
    """The result of a binary operator; lists of things are joined too."""
    if isinstance(op, ast.Add) and isinstance(left, Items) and isinstance(right, Items):
        found = Items(list(left.items), closed=left.closed and right.closed, origins=origins(left, right))
        found.extend(right.items)
        return found
    if isinstance(op, ast.Div) and isinstance(left, Constant) and isinstance(left.value, str):
        return joined([left, right])  # Path(folder) / name
    if isinstance(op, ast.Pow):
        return _compute(_power, left, right)
    if isinstance(op, ast.Mod) and isinstance(left, Constant) and isinstance(left.value, (str, bytes)):
        return Value()  # a format may ask for a gigabyte of spaces
    if isinstance(op, ast.Mult) and _repeats([left, right]) > LARGEST:
        return Value()
    function = _BINARY.get(type(op))
    return _compute(function, left, right) if function else Value()


def _power(base: Any, exponent: Any) -> Any:
    if abs(exponent) > 100 or abs(base) > 2**32:
        raise OverflowError
    return base**exponent


def joined(values: list[Value]) -> Value:
    """What os.path.join gives."""
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
    made = isinstance(value, Thing) and (bool(value.family) or is_class(value.name))
    return made or isinstance(value, (Items, Pairs, Instance, Name))


def truth(value: Value) -> bool | None:
    """Whether a condition holds; None where that cannot be told."""
    if isinstance(value, Constant):
        return bool(value.value)
    if isinstance(value, Items):
        return bool(value.items) if value.closed else (True if value.items else None)
    if isinstance(value, Pairs):
        return bool(value.pairs) or None
    if isinstance(value, Thing):
        return (
            True if value.family in (MODULE, OPTIMIZER, SCHEDULE) or (not value.family and _is_object(value)) else None
        )
    return True if isinstance(value, Instance) and not value.of.find("__len__") else None


def builtin(name: str, values: list[Value]) -> Value:
    """What one of Python's own functions gives."""
    if name in ("list", "tuple", "sorted", "reversed") and len(values) == 1 and isinstance(values[0], Items):
        items = values[0].items[::-1] if name == "reversed" else list(values[0].items)
        if name != "sorted":
            return Items(items, closed=values[0].closed, origins=origins(*values))
    if name == "len" and len(values) == 1 and isinstance(values[0], Items) and values[0].closed:
        return Constant(len(values[0].items), origins=origins(*values))
    if name in ("list", "dict", "set", "tuple") and not values:
        return Pairs({}) if name == "dict" else Items([])
    if name == "range" and 1 <= len(values) <= 3 and all(is_known(value) for value in values):
        raw = [plain(value) for value in values]
        try:
            numbers = range(*raw)
            return wrapped(list(numbers), origins(*values)) if len(numbers) <= 16 else Value()
        except _EXPECTED:
            return Value()
    if name == "round" and len(values) == 2 and not abs(known(values[1], 0) or 0) <= 100:
        return Value()  # round(5, -10**18) computes 10**10**18
    return _compute(getattr(builtins, name), *values) if name in _BUILTINS else Value()


def of_math(name: str, values: list[Value]) -> Value:
    """What a function of the module math gives."""
    if name == "pow":
        return _compute(_power, *values) if len(values) == 2 else Value()
    return _compute(getattr(math, name), *values) if name in _MATH else Value()


def of_text(text: Constant, method: str, values: list[Value]) -> Value:
    """What a method of a text gives."""
    if method not in _TEXT or not isinstance(text.value, str):
        return Value()
    if method in ("join", "replace") and len(text.value) > 100:
        return Value()
    return _compute(lambda own, *rest: getattr(own, method)(*rest), text, *values)
