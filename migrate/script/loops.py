"""The loops of a script: over epochs, over batches, over a list that is known."""

from __future__ import annotations

import ast
from typing import Any

from . import constants, names
from .calling import Caller
from .values import Constant, Items, Origin, Scope, Thing, Value, first, is_known

ROUNDS = 16  # of a loop over a list that is known
# how a block ends: in every case by return (or continue, break), or by an exception; or on one side of a condition
RETURNED, RAISED, PARTLY = "returned", "raised", "partly"
End = str | None
LISTED, EPOCHS, BATCHES, OTHER = "list", "epochs", "batches", "loop"


class Loops(Caller):
    """The part of the reader that knows loops."""

    def __init__(self) -> None:
        super().__init__()
        self.epochs: list[tuple[Value, Origin, str]] = []  # the bound of a loop over epochs, its place, how sure

    def _do_for(self, node: Any, scope: Scope) -> None:
        kind, element = self.element(node.iter, scope)
        named = " ".join(part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)).lower()
        if "epoch" in named or ("epoch" in scope.source.text(node.iter).lower() and kind == OTHER):
            kind = EPOCHS
            self._epochs(node, scope)
        rounds = element.items[:ROUNDS] if kind == LISTED and isinstance(element, Items) else [element]
        self.loops.append(OTHER if kind == LISTED else kind)
        for item in rounds:
            self.bind(node.target, item, scope)
            self._block(node.body, scope)
        self.loops.pop()
        self._block(node.orelse, scope)

    _do_asyncfor = _do_for

    def _epochs(self, node: Any, scope: Scope) -> None:
        """Remember how many epochs a loop over a range has."""
        call = node.iter
        while isinstance(call, ast.Call) and getattr(call.func, "id", "") != "range" and call.args:
            if getattr(call.func, "id", "") == "trange":
                break
            call = call.args[0]
        if not isinstance(call, ast.Call) or not call.args:
            return
        ends = [self.value(end, scope) for end in call.args[:2]]
        place = Origin(scope.source.shown, node.lineno, scope.source.text(call))
        bound = ends[-1]
        if len(ends) == 2:
            bound = constants.binary(ast.Sub(), ends[1], ends[0]) if is_known(ends[0]) else ends[1]
        self.epochs.append((bound, place, self.certainty))

    def element(self, node: ast.expr, scope: Scope) -> tuple[str, Value]:
        """The kind of a loop over an expression, and what each round gets."""
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if isinstance(node, ast.Call) and name == "enumerate" and node.args:
            kind, inner = self.element(node.args[0], scope)
            if kind == LISTED and isinstance(inner, Items):
                return kind, Items([Items([Constant(i), item]) for i, item in enumerate(inner.items[:ROUNDS])])
            return kind, Items([Value(), inner])
        if isinstance(node, ast.Call) and name == "zip" and node.args:
            kinds, inners = zip(*(self.element(arg, scope) for arg in node.args), strict=True)
            known_kind = BATCHES if BATCHES in kinds else OTHER
            return known_kind, Items([first(i.items) if k == LISTED else i for k, i in zip(kinds, inners, strict=True)])
        value = self.value(node, scope)
        if isinstance(value, Thing) and value.family == names.LOADER:
            return BATCHES, Thing(names.TENSOR)
        if isinstance(value, Items) and value.closed and 0 < len(value.items) <= ROUNDS:
            return LISTED, value
        if isinstance(value, Thing) and value.family == names.TENSOR:
            return OTHER, value
        if isinstance(value, Thing) and value.family == names.MODULE:
            return OTHER, Thing("")
        if not is_known(value) and names.habit(scope.source.text(node).rpartition(".")[2]) == names.LOADER:
            return BATCHES, Thing(names.TENSOR)
        return OTHER, Value()

    def _do_while(self, node: ast.While, scope: Scope) -> None:
        self.value(node.test, scope)
        self.loops.append(OTHER)
        self._block(node.body, scope)
        self.loops.pop()
        self._block(node.orelse, scope)

    def _block(self, statements: list[ast.stmt], scope: Scope, start: int = 0) -> End:
        """Read statements, which statements.py does, and say how they end."""
        raise NotImplementedError
