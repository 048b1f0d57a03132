"""Which of the six things of training a value has to do with, by what it is made of and by what is done to it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ...mappings.aliases import row_of
from ..source import library_names as families
from ..source.infer.abstract_values import LibraryName, LibraryObject, ScriptClass, ScriptFunction, ScriptObject, Value
from . import silence
from .flow import GIVEN, Definition, Flow, Statement
from .roles import Roles, arguments_of

MODEL, OPTIMIZER, LOSS, GRADIENTS, DATA, RATE = "model", "optimizer", "loss", "gradients", "data", "rate"
Kinds = frozenset[str]
NONE: Kinds = frozenset()
BY_FAMILY = {
    families.MODULE: MODEL,
    families.OPTIMIZER: OPTIMIZER,
    families.SCHEDULE: RATE,
    families.LOADER: DATA,
    families.DATASET: DATA,
}
BY_METHOD = {  # what an object is on which these are called, whatever else is known of it
    "parameters": MODEL,
    "named_parameters": MODEL,
    "load_state_dict": MODEL,
    "zero_grad": OPTIMIZER,
    "backward": LOSS,
}
BY_ATTRIBUTE = {"grad": GRADIENTS, "param_groups": RATE, "requires_grad": MODEL}


def calls_of(statement: Statement) -> Iterator[ast.Call]:
    """The calls in a statement's own expressions."""
    for expression in statement.expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call):
                yield node


class ValueKinds:
    """The kinds of a script's values: of every definition (`bound`), and of any expression."""

    def __init__(self, flow: Flow, roles: Roles) -> None:
        self.flow = flow
        self.roles = roles
        self.bound: dict[Definition, Kinds] = {}
        self._settle()

    def of(self, node: ast.AST) -> Kinds:
        """Which of the six an expression has to do with."""
        if isinstance(node, ast.Name):
            found: Kinds = frozenset().union(*(self.bound.get(d, NONE) for d in self.flow.reads.get(id(node), ())))
            return found | self._of_value(node) | self._by_name(node, node.id)
        if isinstance(node, ast.Attribute):
            if node.attr in silence.LEAVING_ATTRIBUTES:
                return NONE
            own = frozenset().union(*(self.bound.get(d, NONE) for d in self.flow.attributes.get(node.attr, ())))
            extra = frozenset({BY_ATTRIBUTE[node.attr]}) if node.attr in BY_ATTRIBUTE else NONE
            return own | extra | self.of(node.value) | self._of_value(node) | self._by_name(node, node.attr)
        if isinstance(node, ast.Call):
            return self._of_call(node)
        if isinstance(node, (ast.Compare, ast.JoinedStr, ast.Constant)):
            return NONE
        if isinstance(node, ast.Lambda):
            return self.of(node.body)
        return frozenset().union(*(self.of(child) for child in ast.iter_child_nodes(node)))

    def _by_name(self, node: ast.expr, name: str) -> Kinds:
        """What an object of which nothing is known usually is by its name: a reason to look, never to be silent."""
        found = self.flow.value(node)
        unknown = found is None or type(found) is Value or (isinstance(found, LibraryObject) and not found.family)
        plain_object = isinstance(found, ScriptObject) and not found.of.family()
        family = families.habit(name) if unknown or plain_object else ""
        return frozenset({BY_FAMILY[family]}) if family in BY_FAMILY else NONE

    def _of_value(self, node: ast.expr) -> Kinds:
        found = self.flow.value(node)
        family = ""
        if isinstance(found, LibraryObject):
            family = found.family
            row = row_of(found.name) if found.name else None
            if row is not None and row.kind == "loss":
                return frozenset({LOSS})
            if row is not None and row.kind == "transform":
                return frozenset({DATA})
        elif isinstance(found, ScriptObject):
            family = found.of.family()
        return frozenset({BY_FAMILY[family]}) if family in BY_FAMILY else NONE

    def _of_call(self, node: ast.Call) -> Kinds:
        if self.roles.leaves(node):
            return NONE
        own = self._of_value(node)
        called = self.flow.value(node.func)
        if isinstance(called, (ScriptFunction, ScriptClass)):
            returned = self.flow.returns.get(id(called.node), [])
            return own.union(*(self.of(value) for _, value in returned))
        given = frozenset().union(*(self.of(a) for a in [*node.args, *(k.value for k in node.keywords)]))
        if isinstance(called, LibraryName):
            return own | (NONE if silence.reason(called.name) and not own else given)
        callee = self.of(node.func)
        if isinstance(node.func, ast.Attribute):  # a method gives something of what it is of
            return own | callee | given
        return own | given | (frozenset({LOSS}) if callee & {MODEL, LOSS} else callee)

    def _settle(self) -> None:
        definitions = [d for statement in self.flow.statements for d in statement.defines]
        given = {d for found in self.flow.reads.values() for d in found if d.way == GIVEN}
        for statement in self.flow.statements:
            for call in calls_of(statement):
                if isinstance(call.func, ast.Attribute) and call.func.attr in BY_METHOD:
                    self._note_by_method(call.func.value, BY_METHOD[call.func.attr])
        for _ in range(12):
            changed = False
            for definition in [*definitions, *given]:
                found = self._of_definition(definition)
                if not found <= self.bound.get(definition, NONE):
                    self.bound[definition] = found | self.bound.get(definition, NONE)
                    changed = True
            if not changed:
                return

    def _note_by_method(self, node: ast.expr, kind: str) -> None:
        found: Iterable[Definition] = ()
        if isinstance(node, ast.Name):
            found = self.flow.reads.get(id(node), ())
        elif isinstance(node, ast.Attribute):
            found = self.flow.attributes.get(node.attr, ())
        for definition in found:
            if definition.way != "named":
                self.bound[definition] = self.bound.get(definition, NONE) | {kind}

    def _of_definition(self, definition: Definition) -> Kinds:
        if definition.way == GIVEN:
            return frozenset().union(*(self.of(node) for node in arguments_of(self.flow, definition)))
        value = definition.value
        if value is None:
            return NONE
        if definition.path and isinstance(value, (ast.Tuple, ast.List)) and definition.path[0] < len(value.elts):
            return self.of(value.elts[definition.path[0]])
        if isinstance(value, ast.Call) and definition.way == "adds":  # a call that changes what it is given
            return frozenset().union(*(self.of(a) for a in [*value.args, *(k.value for k in value.keywords)]))
        return self.of(value)
