"""What is left of a function when only what ran stays."""

from __future__ import annotations

import ast

from .facts import Facts

BLOCKS = (ast.For, ast.While, ast.With)


def pruned(function: ast.FunctionDef, facts: Facts, file: str) -> list[ast.stmt]:
    """The statements of a function that ran, in their order; its docstring stays.

    Of an `if` with two branches of which one never ran, the other takes its place; one without `else` stays a question,
    so that it is answered anew with other arguments.
    """
    return _block(function.body, facts, file)


def _block(body: list[ast.stmt], facts: Facts, file: str) -> list[ast.stmt]:
    left: list[ast.stmt] = []
    for index, statement in enumerate(body):
        if index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            left.append(statement)
        elif facts.reached(file, statement):
            left += _statement(statement, facts, file)
    return left


def _statement(statement: ast.stmt, facts: Facts, file: str) -> list[ast.stmt]:
    if isinstance(statement, ast.If):
        body, other = (_block(part, facts, file) for part in (statement.body, statement.orelse))
        if body and (other or not statement.orelse):
            return [ast.copy_location(ast.If(statement.test, body, other), statement)]
        return body or other  # the test was always true, or never
    if isinstance(statement, BLOCKS):
        statement.body = _block(statement.body, facts, file)
        if isinstance(statement, (ast.For, ast.While)):
            statement.orelse = _block(statement.orelse, facts, file)
        return [statement] if statement.body else []
    if isinstance(statement, ast.Try):
        if all(not _block(handler.body, facts, file) for handler in statement.handlers):
            parts = (statement.body, statement.orelse, statement.finalbody)
            return [kept for part in parts for kept in _block(part, facts, file)]
        return [statement]
    return [] if isinstance(statement, (ast.Assert, ast.Pass)) else [statement]
