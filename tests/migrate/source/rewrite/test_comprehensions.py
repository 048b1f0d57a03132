"""Lists over two loops, as loops."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest
from msmigrate.migrate.source.rewrite.rewriter import expand_nested_comprehensions


def written(body: str) -> str:
    """The body of a function with its lists as loops."""
    function = ast.parse("def f(x):\n" + "\n".join(f"    {line}" for line in dedent(body).strip().splitlines())).body[0]
    assert isinstance(function, ast.FunctionDef)
    expand_nested_comprehensions(function)
    return "\n".join(ast.unparse(statement) for statement in function.body)


def test_a_list_that_has_a_name() -> None:
    found = written("y = [a * b for a in x if a for b in range(a)]\nreturn y")
    expected = """
        y = []
        for a in x:
            if a:
                for b in range(a):
                    y.append(a * b)
        return y"""
    assert found == dedent(expected).strip()


def test_a_list_inside_of_a_call_stands_before_it() -> None:
    found = written("parts = 1\nif x:\n    return g(parts, [b for a in x for b in a], dim=-1)")
    expected = """
        parts = 1
        if x:
            parts1 = []
            for a in x:
                for b in a:
                    parts1.append(b)
            return g(parts, parts1, dim=-1)"""
    assert found == dedent(expected).strip()


def test_a_list_that_is_asked_for() -> None:
    assert written("if [b for a in x for b in a]:\n    x = 1").startswith("parts = []\nfor a in x:")


def test_a_list_of_what_had_its_name() -> None:
    found = written("x = [b for a in x for b in a]")
    assert found.startswith("parts = []\nfor a in x:") and found.endswith("\nx = parts")


@pytest.mark.parametrize(
    "body",
    [
        "y = [a for a in x]",
        "y = {a: b for a in x for b in a}",
        "a = 2\ny = [a for a in x for b in a]\nreturn a",  # the a after the loop would be another one
        "x = [x for x in x for b in x]",
        "y = g(x) + h([a for a in x for b in a])",  # g might do something, and before h
        "y = x or [a for a in x for b in a]",
        "y = [[a for a in x for b in a] for c in x]",
    ],
)
def test_what_stays(body: str) -> None:
    assert written(body) == body
