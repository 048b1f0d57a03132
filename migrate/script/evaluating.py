"""What an expression of the script gives, as far as reading tells, with every use of a library on the way noted."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

from . import constants, names, parsing_arguments
from .noting import BUDGET, Notes
from .values import (
    Arguments,
    Class,
    Constant,
    Function,
    Instance,
    Items,
    Module,
    Name,
    Pairs,
    Scope,
    Thing,
    Value,
    first,
    is_known,
    known,
    origins,
    weight,
    with_other,
    wrapped,
)


class Evaluator(Notes):
    """The part of the reader that knows expressions."""

    def value(self, node: ast.expr | None, scope: Scope) -> Value:
        """What an expression gives."""
        self.spent += 1
        if node is None or self.spent > BUDGET:
            return Value()
        method: Callable[[Any, Scope], Value] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is not None:
            found = method(node, scope)
            self.spent += weight(found) // 16  # what is done with it takes longer than with a number
            return found
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, scope)
        return Value()

    # what calling.py and reading.py add

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        raise NotImplementedError

    def file(self, name: str) -> Value | None:
        """A file of the script's folder by its dotted name."""
        raise NotImplementedError

    # one method for each kind of expression

    def _constant(self, node: ast.Constant, scope: Scope) -> Value:
        return wrapped(node.value)

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        found = scope.find(node.id)
        if found is not None:
            return found
        at: Scope | None = scope
        while at is not None:
            self.spent += len(at.stars)
            for prefix in at.stars:
                if names.row_of(f"{prefix}.{node.id}") is not None:
                    return Name(f"{prefix}.{node.id}")
            at = at.parent
        return Value()

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        return self.attribute(self.value(node.value, scope), node.attr)

    def attribute(self, value: Value, name: str) -> Value:
        """What `value.name` is."""
        if value.other is not None:
            value = value.other
        if isinstance(value, Name):
            return value if name == "__dict__" else Name(f"{value.name}.{name}")
        if isinstance(value, Module):
            return value.scope.names.get(name) or self.file(f"{_dotted(value)}.{name}") or Value()
        if isinstance(value, Arguments):
            return parsing_arguments.attribute(value, name)
        if isinstance(value, Class):
            return value.find(name) or Value()
        if isinstance(value, Instance):
            return value.attributes.get(name) or self._of_class(value, name)
        if isinstance(value, Pairs):
            return value.pairs.get(name) or Value()
        if isinstance(value, Thing):
            if value.family == names.MODULE:  # a module's own modules, and what a wrapper wraps
                return value.of if name == "module" and value.of is not None else Thing("")
            if name in ("dataset", "module") and value.of is not None:
                return value.of
            return (
                Thing(names.TENSOR) if value.family == names.TENSOR and name in ("data", "grad", "T", "mT") else Value()
            )
        return Value()

    def _of_class(self, value: Instance, name: str) -> Value:
        found = value.of.find(name)
        return (
            Function(found.node, found.scope, value, found.owner) if isinstance(found, Function) else found or Value()
        )

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        value, key = self.value(node.value, scope), self.value(node.slice, scope)
        at = known(key)
        if isinstance(value, Name) and isinstance(at, str) and at.isidentifier():
            return Name(f"{value.name}.{at}")
        if isinstance(value, Name) and isinstance(node.value, ast.Attribute) and node.value.attr == "__dict__":
            return Name(f"{value.name}.?")
        if isinstance(value, Thing) and value.family in (names.TENSOR, names.DATASET):
            return Thing(value.family, of=value.of)
        if isinstance(value, Pairs) and isinstance(at, (str, int)) and at in value.pairs:
            return value.pairs[at]
        if isinstance(value, Items) and isinstance(at, int) and -len(value.items) <= at < len(value.items):
            return value.items[at]
        if isinstance(value, Items) and isinstance(node.slice, ast.Slice) and value.closed:
            ends = [known(self.value(end, scope)) if end else None for end in (node.slice.lower, node.slice.upper)]
            if node.slice.step is None and all(end is None or isinstance(end, int) for end in ends):
                return Items(value.items[ends[0] : ends[1]], origins=value.origins)
        return Value()

    def _slice(self, node: ast.Slice, scope: Scope) -> Value:
        for end in (node.lower, node.upper, node.step):
            self.value(end, scope)
        return Value()

    def _list(self, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Value:
        found = Items([])
        for element in node.elts:
            inner = self.value(element.value if isinstance(element, ast.Starred) else element, scope)
            self.note_named(inner, element, scope)
            if isinstance(element, ast.Starred):
                found.extend(inner.items if isinstance(inner, Items) else [])
                found.closed = found.closed and isinstance(inner, Items) and inner.closed
            else:
                found.extend([inner])
        found.origins = origins(*found.items)
        return found

    _tuple = _set = _list

    def _dict(self, node: ast.Dict, scope: Scope) -> Value:
        pairs: dict[Any, Value] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item, scope)
            self.note_named(value, item, scope)
            name = known(self.value(key, scope)) if key is not None else None
            if isinstance(name, (str, int, float)):
                pairs[name] = value
            elif key is None and isinstance(value, Pairs):
                pairs |= value.pairs
        return Pairs(pairs, origins=origins(*pairs.values()))

    def _binop(self, node: ast.BinOp, scope: Scope) -> Value:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if any(isinstance(side, Thing) and side.family == names.TENSOR for side in (left, right)):
            return Thing(names.TENSOR)
        return constants.binary(node.op, left, right)

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Value:
        operand = self.value(node.operand, scope)
        if isinstance(operand, Thing) and operand.family == names.TENSOR:
            return Thing(names.TENSOR)
        return constants.unary(node.op, operand)

    def _compare(self, node: ast.Compare, scope: Scope) -> Value:
        values = [self.value(part, scope) for part in (node.left, *node.comparators)]
        for value, part in zip(values, (node.left, *node.comparators), strict=True):
            self.note_named(value, part, scope)
        if len(values) == 2:
            return constants.compare(node.ops[0], *values)
        results = [constants.compare(op, a, b) for op, a, b in zip(node.ops, values, values[1:], strict=False)]
        found = [constants.truth(result) for result in results]
        return Constant(all(found)) if None not in found else Value()

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Value:
        wanted = isinstance(node.op, ast.Or)  # the truth that ends it
        untold = False
        result = Value()
        decided: Value | None = None
        for part in node.values:
            result = self.value(part, scope)
            found = constants.truth(result)
            untold = untold or (found is None and decided is None)
            if found is wanted and decided is None:
                decided = result
        if decided is not None and (not untold or wanted is False or is_known(decided)):
            # `unknown and False` is false, `unknown or "x"` is something that holds
            return decided if not untold else Constant(wanted, origins=origins(decided))
        return Value() if untold else result

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Value:
        test = self.value(node.test, scope)
        holds = constants.truth(test)
        branches = []
        for branch, of in ((node.body, True), (node.orelse, False)):
            taken = None if holds is None else holds is of
            branches.append(self.under(taken, node.test, of, scope, partial(self.value, branch, scope)))
        if holds is None:
            return first(branches)
        return with_other(*(branches if holds else branches[::-1]))

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Value:
        found = self.value(node.value, scope)
        if isinstance(node.target, ast.Name):
            scope.names[node.target.id] = found
        return found

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Value:
        parts = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                inner = self.value(part.value, scope)
                plain = part.conversion == -1 and part.format_spec is None and is_known(inner)
                parts.append(str(known(inner)) if plain else None)
            else:
                parts.append(known(self.value(part, scope)))
        return wrapped("".join(map(str, parts))) if None not in parts else Value()

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Value:
        inner = Scope(scope.source, scope)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            inner.names[argument.arg] = Thing(names.habit(argument.arg))
        self.value(node.body, inner)
        return Function(node, scope)

    def _starred(self, node: ast.Starred, scope: Scope) -> Value:
        return self.value(node.value, scope)

    def _await(self, node: ast.Await, scope: Scope) -> Value:
        return self.value(node.value, scope)

    def _listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Value:
        inner = self._generators(node.generators, scope)
        element = self.value(node.elt, inner)
        self.note_named(element, node.elt, inner)
        return Items([element], closed=False)

    _setcomp = _generatorexp = _listcomp

    def _dictcomp(self, node: ast.DictComp, scope: Scope) -> Value:
        inner = self._generators(node.generators, scope)
        self.value(node.key, inner)
        self.value(node.value, inner)
        return Value()

    def _generators(self, generators: list[ast.comprehension], scope: Scope) -> Scope:
        inner = Scope(scope.source, scope)
        for generator in generators:
            self.bind(generator.target, self.element(generator.iter, inner)[1], inner)
            for test in generator.ifs:
                self.value(test, inner)
        return inner

    # loops and targets, which reading.py adds

    def element(self, node: ast.expr, scope: Scope) -> tuple[str, Value]:
        """The kind of a loop over an expression, and what each round gets."""
        raise NotImplementedError

    def bind(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Assign a value to a target."""
        raise NotImplementedError


def _dotted(module: Module) -> str:
    return known(module.scope.names.get("__name__")) or ""
