"""Questions of which a part is answered already."""

from __future__ import annotations

import ast

import pytest
from msmigrate.migrate.source.rewrite.control_flow import fold_constant_tests


@pytest.mark.parametrize(
    ("test", "left"),
    [
        ("a and not False", "if a:\n    f()\nelse:\n    g()"),
        ("not (a or False)", "if not a:\n    f()\nelse:\n    g()"),
        ("a and True and b", "if a and b:\n    f()\nelse:\n    g()"),
        ("not False", "f()"),
        ("False and h()", "g()"),
        ("a() and False", "if a() and False:\n    f()\nelse:\n    g()"),  # a() may do something
        ("a() or True or b()", "if a() or True:\n    f()\nelse:\n    g()"),
        ("a is None", "if a is None:\n    f()\nelse:\n    g()"),
        ("1", "if 1:\n    f()\nelse:\n    g()"),
    ],
)
def test_what_is_left_of_a_question(test: str, left: str) -> None:
    statement = ast.parse(f"if {test}:\n    f()\nelse:\n    g()").body[0]
    assert isinstance(statement, ast.If)
    assert "\n".join(ast.unparse(found) for found in fold_constant_tests(statement)) == left


def test_a_question_without_else_goes_with_its_answer() -> None:
    statement = ast.parse("if False or not True:\n    f()").body[0]
    assert isinstance(statement, ast.If)
    assert fold_constant_tests(statement) == []
