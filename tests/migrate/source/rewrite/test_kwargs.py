"""What a function takes out of its own `**kwargs`."""

from __future__ import annotations

import ast

import pytest
from msmigrate.migrate.source.rewrite.signatures import consumed_kwargs


def function(*lines: str) -> ast.FunctionDef:
    """A function of `**kwargs` with these lines."""
    found = ast.parse("def f(self, **kwargs):\n" + "\n".join(f"    {line}" for line in lines)).body[0]
    assert isinstance(found, ast.FunctionDef)
    return found


def test_single_names_are_asked_for() -> None:
    node = function("kwargs.pop('a', None)", "b = kwargs.pop('b', self.config.b)", "return b")
    assert consumed_kwargs(node) == [node.body[0]]
    assert "b = kwargs.get('b', self.config.b)" in ast.unparse(node)
    assert consumed_kwargs(node) == [node.body[0]]  # asked once more


@pytest.mark.parametrize(
    "line",
    [
        "return self.g(**kwargs)",  # which sees what is left
        "b = kwargs.pop('a', None)",  # the second of two
        "b = kwargs.pop(self.name, None)",
        "b = kwargs.pop('b', self.g())",
        "b = kwargs.pop('b')",  # an error where there is none
    ],
)
def test_what_is_left_may_be_seen(line: str) -> None:
    node = function("kwargs.pop('a', None)", line)
    before = ast.unparse(node)
    assert consumed_kwargs(node) == []
    assert ast.unparse(node) == before
