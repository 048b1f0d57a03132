"""The statements of a script that are neither functions nor imports: assignments, conditions on both sides, loops."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from . import constants, names
from .loops import PARTLY, RAISED, RETURNED, End, Loops
from .noting import BUDGET, OPTION, PERHAPS, SURENESS
from .values import (
    Arguments,
    Class,
    Instance,
    Items,
    Name,
    Origin,
    Pairs,
    Scope,
    Thing,
    Value,
    first,
    is_known,
    known,
    with_other,
    wrapped,
)


class Statements(Loops):
    """The part of the reader that knows statements."""

    def __init__(self) -> None:
        super().__init__()
        self.rates: list[tuple[Origin, str]] = []  # where a learning rate is set by hand, and how surely

    # statements; each says whether the block ends there

    def _block(self, statements: list[ast.stmt], scope: Scope, start: int = 0) -> End:
        for index in range(start, len(statements)):
            statement = statements[index]
            self.spent += 1
            if self.spent > BUDGET:
                return None
            method = getattr(self, f"_do_{type(statement).__name__.lower()}", None)
            ended: End = None
            if method is None:
                self._otherwise(statement, scope)
            else:
                ended = method(statement, scope)
            if ended is None:
                continue
            # what stands behind runs with other arguments, or never; or perhaps, where only one side ends
            before, names_before = self.certainty, self._names(scope)
            self.certainty = max(before, PERHAPS if ended == PARTLY else OPTION, key=SURENESS.index)
            rest = self._block(statements, scope, index + 1)
            self.certainty = before
            if ended == PARTLY:
                return rest or PARTLY
            scope.names = names_before
            return ended
        return None

    def _otherwise(self, statement: ast.stmt, scope: Scope) -> None:
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self.value(child, scope)

    def _do_global(self, node: ast.Global, scope: Scope) -> None:
        top = scope
        while top.parent is not None:
            top = top.parent
        scope.shared |= dict.fromkeys(node.names, top)

    def _do_nonlocal(self, node: ast.Nonlocal, scope: Scope) -> None:
        for name in node.names:
            around = scope.parent
            while around is not None and name not in around.names:
                around = around.parent
            if around is not None:
                scope.shared[name] = around

    def _do_raise(self, node: ast.Raise, scope: Scope) -> End:
        self.value(node.exc, scope)
        return RAISED

    def _do_continue(self, node: ast.stmt, scope: Scope) -> End:
        return RETURNED

    _do_break = _do_continue

    def _do_assign(self, node: ast.Assign, scope: Scope) -> None:
        found = self._written(node.value, node.targets[0], scope)
        self.note_named(found, node.value, scope)
        for target in node.targets:
            self.bind(target, self._kept(target, found, scope) or found, scope)

    def _do_annassign(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self.bind(node.target, self._written(node.value, node.target, scope), scope)

    def _written(self, node: ast.expr, target: ast.expr, scope: Scope) -> Value:
        """A value; of one that is written out, the place is kept."""
        found = self.value(node, scope)
        if isinstance(node, ast.Constant) and is_known(found) and isinstance(target, ast.Name):
            of = scope.names.get("__class__")
            owner = f"{of.node.name}." if isinstance(of, Class) else ""
            text = f"{owner}{target.id} = {scope.source.text(node)}"
            return wrapped(known(found), (Origin(scope.source.shown, node.lineno, text),))
        return found

    def _do_augassign(self, node: ast.AugAssign, scope: Scope) -> None:
        left, right = self.value(node.target, scope), self.value(node.value, scope)
        if isinstance(left, Items) and isinstance(node.op, ast.Add) and self.certainty != OPTION:
            left.extend(list(right.items) if isinstance(right, Items) else [])
            left.closed = left.closed and isinstance(right, Items) and right.closed
        elif isinstance(node.target, ast.Name):
            tensor = any(isinstance(side, Thing) and side.family == names.TENSOR for side in (left, right))
            found = Thing(names.TENSOR) if tensor else constants.binary(node.op, left, right)
            # inside a loop nobody knows how often it was added
            self.bind(node.target, found if not self.loops or tensor else Value(), scope)
        elif not isinstance(left, Items):
            self.bind(node.target, constants.binary(node.op, left, right), scope)

    def bind(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Assign a value to a target."""
        if isinstance(target, ast.Name):
            of = scope.shared.get(target.id, scope)
            if of is scope or self.certainty != OPTION:
                of.names[target.id] = value
        elif isinstance(target, ast.Attribute):
            self._set_attribute(target, value, scope)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, scope)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, Value(), scope)
        elif isinstance(target, ast.Subscript):
            holder, key = self.value(target.value, scope), known(self.value(target.slice, scope))
            if isinstance(holder, Pairs) and isinstance(key, (str, int)) and self.certainty != OPTION:
                holder.pairs[key] = value
            elif key == "lr":  # of a parameter group: a schedule by hand
                text = scope.source.text(target)
                self.rates.append((Origin(scope.source.shown, target.lineno, text), self.certainty))

    def _set_attribute(self, target: ast.Attribute, value: Value, scope: Scope) -> None:
        holder = self.value(target.value, scope)
        if isinstance(holder, Name) and names.is_library(holder.name):
            self.note(f"{holder.name}.{target.attr}", target, scope, None)  # torch.backends.cudnn.benchmark = True
        if self.certainty == OPTION or not isinstance(holder, (Arguments, Instance)):
            return
        held = holder.assigned if isinstance(holder, Arguments) else holder.attributes
        before = self.attribute(holder, target.attr)
        if self.certainty == PERHAPS and is_known(before):
            if not is_known(value):
                return  # what it was before is the better guess
            value = before if known(value) == known(before) else Value()
        held[target.attr] = value

    def _unpack(self, targets: list[ast.expr], value: Value, scope: Scope) -> None:
        items = value.items if isinstance(value, Items) and value.closed and len(value.items) == len(targets) else None
        share = value if isinstance(value, Thing) and value.family in (names.TENSOR, names.DATASET) else None
        for index, target in enumerate(targets):
            kept = self._kept(target, value, scope)
            self.bind(target, items[index] if items else share or kept or self._part(value, index), scope)

    def _kept(self, target: ast.expr, value: Value, scope: Scope) -> Value | None:
        """`model, optimizer = amp.initialize(model, optimizer)`: what a library takes and gives under the same name."""
        if not isinstance(target, ast.Name) or not isinstance(value, Thing) or value.family or value.seen is None:
            return None
        held = scope.find(target.id)
        taken = [argument.value for argument in value.seen.arguments or []]
        return held if isinstance(held, (Thing, Instance)) and any(held is one for one in taken) else None

    def _part(self, value: Value, index: int) -> Value:
        """One of several results of a library's call: a factory of schedules gives the schedule first."""
        return (
            Thing(value.family, value.seen, value.name)
            if isinstance(value, Thing) and value.family and not index
            else Value()
        )

    def _do_if(self, node: ast.If, scope: Scope) -> End:
        holds = constants.truth(self.value(node.test, scope))
        before = self._names(scope)
        after: list[dict[str, Value]] = []
        ends: list[End] = []
        for block, of in ((node.body, True), (node.orelse, False)):
            scope.names = dict(before)
            taken = None if holds is None else holds is of
            ends.append(self.under(taken, node.test, of, scope, partial(self._block, block, scope)))
            after.append(scope.names)
        if holds is not None:
            taken_names, other = (after[0], after[1]) if holds else (after[1], after[0])
            scope.names = {**{key: value for key, value in other.items() if key not in before}, **taken_names}
            scope.names = {key: with_other(value, other.get(key)) for key, value in scope.names.items()}
            return ends[0 if holds else 1]
        live = [names_ for names_, ended in zip(after, ends, strict=True) if not ended] or after
        scope.names = {
            key: first(
                [found[key] for found in live if key in found] or [found[key] for found in after if key in found]
            )
            for key in dict.fromkeys(key for found in after for key in found)
        }
        if all(ends):
            return ends[0]
        return PARTLY if RETURNED in ends else None

    def _names(self, scope: Scope) -> dict[str, Value]:
        """The names as they are now."""
        self.spent += len(scope.names) // 16
        return dict(scope.names)

    def _do_with(self, node: Any, scope: Scope) -> End:
        for item in node.items:
            found = self.value(item.context_expr, scope)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, found, scope)
        return self._block(node.body, scope)

    _do_asyncwith = _do_with

    def _do_try(self, node: Any, scope: Scope) -> End:
        ended = self._block(node.body, scope)
        before, sure = self._names(scope), self.certainty
        for handler in node.handlers:
            self._names(scope)
            self.certainty = max(sure, OPTION, key=SURENESS.index)
            self.conditions.append("an exception")
            self._block(handler.body, scope)
            self.conditions.pop()
            self.certainty = sure
            scope.names = {**scope.names, **before}
        ended = self._block(node.orelse, scope) or ended
        return self._block(node.finalbody, scope) or ended

    _do_trystar = _do_try

    def _do_match(self, node: Any, scope: Scope) -> None:
        self.value(node.subject, scope)
        before = self._names(scope)
        for case in node.cases:
            self._names(scope)
            self.under(None, node.subject, True, scope, partial(self._block, case.body, scope))
            scope.names = {**scope.names, **before}
