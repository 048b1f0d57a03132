"""What a function takes out of its own `**kwargs`."""

from __future__ import annotations

import ast
import copy
import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from msmigrate.migrate.source.rewrite.rewriter import name_kwargs
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


# the names that the new file may define, and one of a class's methods
PROGRAM: Any = SimpleNamespace(modules={"net": "net.py"}, translated={"net.scale", "net.Options.a"})


def what_it_gives(node: ast.FunctionDef, given: dict[str, int]) -> str:
    """What a function returns for these keywords, or its error."""

    def seen(*args: object, **kwargs: object) -> object:
        return args, sorted(kwargs.items())

    space: dict[str, Any] = {"seen": seen, "self": SimpleNamespace(flag=True, b=7)}
    exec(ast.unparse(ast.fix_missing_locations(ast.Module([node], []))), space)
    try:
        return repr(space["f"](space["self"], **given))
    except Exception as error:
        return type(error).__name__


def same(before: ast.FunctionDef, after: ast.FunctionDef) -> None:
    """Fail unless both give the same for every choice of keywords."""
    for names in (names for n in range(4) for names in itertools.combinations(("a", "b", "c"), n)):
        given = {name: number for number, name in enumerate(names)}
        assert what_it_gives(before, given) == what_it_gives(after, given), f"{given}: {ast.unparse(after)}"


@pytest.mark.parametrize(
    ("lines", "takes", "first"),
    [
        (["kwargs.pop('a', None)", "return seen(**kwargs)"], "a=None", "return seen(**kwargs)"),
        (["a = kwargs.pop('a', (1, -2))", "return seen(a, **kwargs)"], "a=(1, -2)", "a = a"),  # which tidying removes
        (["x = kwargs.pop('a', 3)", "return seen(x, **kwargs)"], "a=3", "x = a"),
        (["return seen(kwargs.pop('a', 3), kwargs.pop('b', 4), **kwargs)"], "a=3, b=4", "return seen(a, b, **kwargs)"),
        (["if kwargs.pop('a', 0):", "    kwargs['a'] = 5", "return seen(**kwargs)"], "a=0", "if a:"),
        (["x = kwargs.get('b', 1)", "kwargs.pop('a', 2)", "return seen(x, **kwargs)"], "a=2", "x = kwargs.get('b', 1)"),
        (["a: int = kwargs.pop('a', 3)", "return seen(a, 'c' in kwargs, kwargs.get('a'))"], "a=3", "a: int = a"),
        (["for x in range(kwargs.pop('a', 3)):", "    pass", "return seen(x, **kwargs)"], "a=3", "for x in range(a):"),
    ],
)
def test_what_is_taken_out_is_a_parameter(lines: list[str], takes: str, first: str) -> None:
    node = function(*lines)
    before = copy.deepcopy(node)
    name_kwargs(node, PROGRAM)
    assert ast.unparse(node).startswith(f"def f(self, *, {takes}, **kwargs):\n    {first}")
    same(before, node)


@pytest.mark.parametrize(
    "lines",
    [
        ["x = seen(**kwargs)", "kwargs.pop('a', None)"],  # seen before
        ["x = dict(kwargs)", "kwargs.pop('a', None)"],
        ["x = kwargs.get('a', 1)", "kwargs.pop('a', 2)", "return seen(x, **kwargs)"],
        ["x = 'a' in kwargs", "kwargs.pop('a', 2)", "return seen(x, **kwargs)"],
        ["kwargs = {'a': 1}", "kwargs.pop('a', 2)", "return seen(**kwargs)"],
        ["x = lambda: seen(**kwargs)", "x()", "kwargs.pop('a', 2)", "return x()"],
        ["if self.flag:", "    kwargs.pop('a', 2)", "return seen(**kwargs)"],  # only sometimes
        ["x = self.flag and kwargs.pop('a', 2)", "return seen(x, **kwargs)"],
        ["while kwargs.pop('a', 0):", "    pass", "return seen(**kwargs)"],
        ["kwargs.pop('a', self.b)", "return seen(**kwargs)"],  # not a constant
        ["kwargs.pop('a', [])", "return seen(**kwargs)"],
        ["x = kwargs.pop('a')", "return seen(x, **kwargs)"],  # an error where there is none
        ["kwargs.pop('self', 1)", "return seen(**kwargs)"],  # a parameter
        ["kwargs.pop('scale', 1)", "return seen(**kwargs)"],  # a name of the new file
        ["kwargs.pop('ops', 1)", "return seen(**kwargs)"],
        ["kwargs.pop('sum', 1)", "return seen(**kwargs)"],
        ["kwargs.pop('class', 1)", "return seen(**kwargs)"],
        ["x = kwargs.pop('seen', 1)", "return seen(x, **kwargs)"],  # which means something else
        ["a = 3", "x = kwargs.pop('a', 1)", "return seen(x, a, **kwargs)"],
        ["kwargs.pop('a', None)", "return seen(**locals())"],
        ["kwargs.pop('a', None)", "return 1"],  # nothing is passed on: see consumed_kwargs
    ],
)
def test_what_is_not_always_taken_out_first_stays(lines: list[str]) -> None:
    node = function(*lines)
    before = ast.unparse(node)
    name_kwargs(node, PROGRAM)
    assert ast.unparse(node) == before


def test_positional_arguments_stay_what_they_are() -> None:
    """A caller's third positional argument stays one of `*args`."""
    node = ast.parse("def f(self, *args, **kwargs):\n    kwargs.pop('a', 1)\n    return self.g(*args, **kwargs)").body[
        0
    ]
    assert isinstance(node, ast.FunctionDef)
    name_kwargs(node, PROGRAM)
    assert ast.unparse(node) == "def f(self, *args, a=1, **kwargs):\n    return self.g(*args, **kwargs)"
