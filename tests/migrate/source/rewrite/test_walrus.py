"""Names given inside of expressions, in statements of their own."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest
from msmigrate.migrate.source.rewrite.rewriter import hoist_walrus


def written(body: str) -> str:
    """The body of a function after its names are spelled out."""
    function = ast.parse("def f(x):\n" + "\n".join(f"    {line}" for line in dedent(body).strip().splitlines())).body[0]
    assert isinstance(function, ast.FunctionDef)
    hoist_walrus(function)
    return "\n".join(ast.unparse(statement) for statement in function.body)


def test_what_is_always_computed_stands_before() -> None:
    assert written("y = x + (z := h(x))") == "z = h(x)\ny = x + z"
    assert written("return f(a := 3, b := a)") == "a = 3\nb = a\nreturn f(a, b)"
    assert written("if isinstance((m := x), dict):\n    m = 1") == "m = x\nif isinstance(m, dict):\n    m = 1"


def test_an_elif_computes_it_where_it_is_asked() -> None:
    found = written("if x:\n    y = 1\nelif (n := len(x)) > 3:\n    y = n")
    assert found == "if x:\n    y = 1\nelse:\n    n = len(x)\n    if n > 3:\n        y = n"


def test_what_only_the_first_half_lets_be_computed_is_a_question_inside() -> None:
    assert written("if x and (n := h(x)):\n    y = n") == "if x:\n    n = h(x)\n    if n:\n        y = n"


@pytest.mark.parametrize(
    "body",
    [
        "y = g(x) + (z := h(x))",  # g may draw, or write somewhere, before h
        "y = z + (z := h(x))",  # the z before is another one
        "y = a or (z := h(x))",
        "y = [w := 1 for _ in x]",
        "y = lambda: (z := 1)",
        "while (q := g()):\n    y = q",
        "if x and (n := h(x)):\n    y = n\nelse:\n    y = 0",
    ],
)
def test_what_would_be_computed_otherwise_stays(body: str) -> None:
    assert written(body) == ast.unparse(ast.parse(body))
