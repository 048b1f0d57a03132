"""Words for a model, an optimizer or a loss of which nothing was read: the line of the script that makes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..source.infer.abstract_values import LibraryObject, ScriptObject, Value
from .entries import Comment, shown
from .flow import Flow, Statement


def _makers(flow: Flow) -> Iterator[tuple[Statement, ast.Call]]:
    """The calls that are given parameters, and make what `step()` is called on: the optimizers, whoever's they are."""
    steps = (call for s in flow.statements for call in s.calls if getattr(call.func, "attr", "") == "step")
    for one in (one for call in steps for one in flow.behind(call.func.value)):  # type: ignore[attr-defined]
        statement = flow.of.get(id(one))
        if isinstance(one, ast.Call) and statement is not None and statement.alone is None and list(_given(one)):
            yield statement, one


def _given(call: ast.Call) -> Iterator[ast.expr]:
    """What a call is given the parameters of."""
    for part in (part for given in (*call.args, *call.keywords) for part in ast.walk(given)):
        if isinstance(part, ast.Attribute) and "parameters" in part.attr:
            yield part.value


def unread_optimizer(flow: Flow) -> str:
    """Words where no optimizer of torch's was found: the line that makes another."""
    unread = (statement for statement, call in _makers(flow) if not _is_read(flow.value(call)))
    return next((_words(statement, "what this makes was not read") for statement in unread), "no optimizer was found")


def unread_model(flow: Flow) -> str:
    """Words for a trained model of which nothing was read: the line that makes what the optimizer is given."""
    makers = {id(call): call for _, call in _makers(flow)}
    owners = (owner for call in makers.values() for owner in _given(call) if len(makers) == 1)  # of several, none is it
    for one in (one for owner in owners for one in flow.behind(owner)):
        statement = flow.of.get(id(one))
        made = isinstance(one, ast.Call) and not _is_read(flow.value(one))
        if made and statement is not None and statement.alone is None:
            return _words(statement, "what this makes was not read")
    return "which model is trained was not found"


def unread_loss(flow: Flow) -> str:
    """Words where no loss of torch's starts the backward pass: the line that makes what does."""
    for statement in flow.statements:
        for call in (call for call in statement.calls if getattr(call.func, "attr", "") == "backward"):
            for one in flow.behind(call.func.value):  # type: ignore[attr-defined]
                made = flow.of.get(id(one))
                inside = made is not None and made is not statement and made.alone is None
                if made is not None and inside and not isinstance(one, ast.Constant):
                    return _words(made, "the backward pass starts from this, of which the loss was not read")
    return "which loss the backward pass starts from was not found"


def _is_read(made: Value | None) -> bool:
    """Whether reading knows what an object is of."""
    return isinstance(made, ScriptObject) or (isinstance(made, LibraryObject) and made.seen is not None)


def _words(statement: Statement, why: str) -> str:
    """It is listed at its line, too, so that this is no comment by which a line counts as drafted."""
    return str(Comment(statement.place, f"{shown(statement.text)}: {why}"))
