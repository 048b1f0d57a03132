"""What is left of a function when only what ran stays."""

from __future__ import annotations

import ast
from collections.abc import Callable

from .by_inputs import ByInputs, apart
from .by_value import ByValue
from .facts import Facts
from .not_run import harmless

BLOCKS = (ast.For, ast.While, ast.With)
Missing = Callable[[ast.stmt, str], ast.stmt]  # what stands where something could not be written
SIMPLE = (ast.Raise, ast.Pass)


def pruned(
    function: ast.FunctionDef, facts: Facts, file: str, missing: Missing, *, entered: bool = False
) -> list[ast.stmt]:
    """The statements of a function that ran, in their order; its docstring stays.

    Of an `if` with two branches of which one never ran, the other takes its place; one without `else` stays a question,
    so that it is answered anew with other arguments. Where a tensor's value decides, what did not run may run with
    other inputs: that is missing, and told. Where an input's shape decides, a comment says what was always so. entered:
    whether the function is the model's own `forward`.
    """
    values, inputs = ByValue(function, facts, file), ByInputs(function, facts, file, entered=entered)
    return _Pruning(facts, file, values, inputs, missing, function.name == "__init__").block(function.body)


class _Pruning:
    def __init__(
        self, facts: Facts, file: str, values: ByValue, inputs: ByInputs, missing: Missing, checks: bool
    ) -> None:
        self.facts, self.file, self.values, self.inputs, self.missing = facts, file, values, inputs, missing
        self.checks = checks  # of arguments: they stay where a model is made

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """What is left of some statements."""
        left: list[ast.stmt] = []
        for index, statement in enumerate(body):
            if index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                left.append(statement)
            elif self.facts.reached(self.file, statement):
                left += self.statement(statement)
        return left

    def statement(self, statement: ast.stmt) -> list[ast.stmt]:
        """What is left of a statement that ran."""
        if isinstance(statement, ast.If):
            return self.question(statement)
        if isinstance(statement, BLOCKS):
            notes, body = apart(self.block(statement.body))
            if isinstance(statement, (ast.For, ast.While)):
                statement.orelse = self.block(statement.orelse)
            if not body and isinstance(statement, ast.While) and self.values.decides(statement.test):
                body = [self.untold(statement, "a loop that did not run")]
            statement.body = body
            return [*notes, statement] if statement.body else notes
        if isinstance(statement, ast.Try):
            if all(not self.block(handler.body) for handler in statement.handlers):
                parts = (statement.body, statement.orelse, statement.finalbody)
                return [kept for part in parts for kept in self.block(part)]
            return [statement]
        if isinstance(statement, ast.Assert):
            return [statement] if self.checks and (statement.msg is None or harmless(statement.msg)) else []
        return [] if isinstance(statement, ast.Pass) else [statement]

    def question(self, statement: ast.If) -> list[ast.stmt]:
        """An `if` with the branches that ran."""
        above, body = apart(self.block(statement.body))
        below, other = apart(self.block(statement.orelse))
        return [*above, *below, *self.answered(statement, body, other)]

    def answered(self, statement: ast.If, body: list[ast.stmt], other: list[ast.stmt]) -> list[ast.stmt]:
        """An `if` with what is left of its branches."""
        if self.values.decides(statement.test):
            if not self.ran(statement.body) and not all(isinstance(inner, SIMPLE) for inner in statement.body):
                body = [self.untold(statement, "a branch that did not run")]
            elif statement.orelse and not self.ran(statement.orelse):
                other = [self.untold(statement, "a branch that did not run")]
        elif not self.ran(statement.orelse) and statement.orelse:
            return [*self.said(statement.orelse, statement, always=True), *body]  # the test was always true
        elif not self.ran(statement.body):
            kept = self.checks and not statement.orelse and _refuses(statement.body)
            return [statement] if kept else [*self.said(statement.body, statement, always=False), *other]  # or never
        if body:
            return [ast.copy_location(ast.If(statement.test, body, other), statement)]
        opposite = ast.copy_location(ast.UnaryOp(ast.Not(), statement.test), statement.test)
        return [ast.copy_location(ast.If(opposite, other, []), statement)] if other else []

    def said(self, dropped: list[ast.stmt], statement: ast.If, *, always: bool) -> list[ast.stmt]:
        """The comment on a branch that is not written; none on one that only refuses."""
        if all(isinstance(inner, SIMPLE) for inner in dropped):
            return []
        return self.inputs.note(statement.test, always=always)

    def ran(self, body: list[ast.stmt]) -> bool:
        """Whether any of some statements was reached."""
        return any(self.facts.reached(self.file, statement) for statement in body)

    def untold(self, statement: ast.If | ast.While, what: str) -> ast.stmt:
        """What stands for statements whose run was not seen."""
        return self.missing(statement, f"{what}: a tensor's value decides, in {ast.unparse(statement.test)}")


def _refuses(body: list[ast.stmt]) -> bool:
    """Whether statements only raise an error of Python's own."""
    raised = [statement.exc for statement in body if isinstance(statement, ast.Raise) and statement.cause is None]
    return len(raised) == len(body) and all(error is not None and harmless(error) for error in raised)
