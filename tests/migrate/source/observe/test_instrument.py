"""Functions that report compute what they computed before, and what they report is what ran."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest
from msmigrate.migrate.source.observe.instrument import definition, install, instrumented, placed_notes, qualified
from msmigrate.migrate.source.observe.observations import number_of, parsed


class Base:
    """What `super()` finds."""

    def scaled(self, x: int) -> int:
        return 10 * x


class Child(Base):
    """Has a private name, a call of `super`, and a free variable of its own."""

    __factor = 3

    def scaled(self, x: int) -> int:
        if x < 0:
            return -1
        return super().scaled(x) + self.__factor


def closed(step: int) -> Callable[[int], list[int]]:
    """A function with a free variable, a comprehension, a lambda and unpacking."""

    def count(end: int) -> list[int]:
        first, *rest = [step * index for index in range(end)]
        return sorted([first, *rest], key=lambda value: -value)

    return count


def itself(n: int) -> int:
    """Calls itself by its name."""
    return 1 if n < 2 else n * itself(n - 1)


def reporting(function: FunctionType) -> tuple[list[str], dict[int, Any], set[int]]:
    """Make a function report; returns the source at each site, and what will be reported."""
    tree = parsed(__file__)
    node = definition(tree, function.__name__, function.__code__.co_firstlineno)
    assert node is not None
    nodes: list[int] = []
    values: dict[int, Any] = {}
    hit: set[int] = set()

    def value(number: int, found: Any) -> Any:
        values[number] = found
        return found

    install(function, instrumented(node, function, nodes), hit.add, value, lambda number, called: called)
    texts = {
        number_of(inner): ast.unparse(inner) for inner in ast.walk(node) if isinstance(inner, (ast.stmt, ast.expr))
    }
    return [texts[number] for number in nodes], values, hit


@pytest.mark.parametrize(
    ("function", "run", "expected"),
    [
        (Child.scaled, lambda: (Child().scaled(2), Child().scaled(-2)), (23, -1)),
        (itself, lambda: itself(5), 120),
    ],
)
def test_the_result_is_the_same(function: FunctionType, run: Callable[[], Any], expected: Any) -> None:
    assert run() == expected
    _, values, hit = reporting(function)
    assert run() == expected
    assert values
    assert hit


def test_free_variables_stay() -> None:
    count = closed(4)
    before = count(3)
    assert isinstance(count, FunctionType)
    texts, values, _ = reporting(count)
    assert count(3) == before == [8, 4, 0]
    reported = {texts[site]: value for site, value in values.items()}
    assert reported["step"] == 4
    assert reported["range(end)"] == range(3)


def test_what_did_not_run_is_not_reported() -> None:
    def either(flag: bool) -> str:
        if flag:
            return "yes"
        return "no"

    source = textwrap.dedent(inspect.getsource(either))
    assert source.count("return") == 2
    texts, _, hit = reporting(either)
    assert either(True) == "yes"
    assert [texts[site] for site in hit if "\n" not in texts[site]] == ["return 'yes'"]


@pytest.mark.parametrize("function", [Child.scaled, closed(1), closed, Base().scaled.__func__])
def test_a_definition_has_the_name_that_python_gives_it(function: FunctionType) -> None:
    tree = ast.parse(inspect.getsource(inspect.getmodule(function)))  # type: ignore[arg-type]
    node = definition(tree, function.__name__, inspect.unwrap(function).__code__.co_firstlineno)
    assert node is not None
    assert qualified(tree, node) == function.__qualname__


COMMENTED = b'''# file
class A(B):  # of the class
    # above width

    width = 3  # of width

    @deco
    # in between
    def f(
        self,
        a,  # how many
        b,
    ):  # of f
        """Says."""  # of the docstring
        # above x

        x = 1
        if x:  # of the if
            # above y
            y = 2
            # below y

        # above the elif
        elif y:  # of the elif
            z = 3
        # above the else
        else:  # of the else
            w = 1
        for i in x:
            for j in x:
                pass
                # below pass

            # below the inner loop
    # above g
    def g(self): return 1  # in one line

    # below g


try:
    import x  # noqa
except E:  # of the handler
    q = f(
        1,  # inside
    )
    r = f(1,
          2)  # at its end
    s = [
        1,  # one
        2,  # two
    ]
# below everything
'''


def test_the_statement_of_each_comment() -> None:
    lines = COMMENTED.decode().splitlines()
    notes = placed_notes(COMMENTED)
    found = {note.text[2:]: (note.place, lines[at - 1].strip()) for at in notes for note in notes[at]}
    assert [text for text in found if "noqa" in text] == []
    assert {text: at for text, (place, at) in found.items() if place == "behind"} == {
        "of the class": "class A(B):  # of the class",
        "of width": "width = 3  # of width",
        "of f": "def f(",
        "of the if": "if x:  # of the if",
        "in one line": "def g(self): return 1  # in one line",
        "at its end": "r = f(1,",
    }
    assert {text: at for text, (place, at) in found.items() if place == "after"} == {
        "below y": "y = 2",
        "below pass": "pass",
        "below the inner loop": "for j in x:",
        "below g": "def g(self): return 1  # in one line",
    }
    assert {text: at for text, (place, at) in found.items() if place == "of its block"} == {
        "of the else": "w = 1",
        "of the handler": "q = f(",
    }
    assert {text: at for text, (place, at) in found.items() if place == "above"} == {
        "file": "class A(B):  # of the class",
        "above width": "width = 3  # of width",
        "a: how many": "def f(",
        "in between": "x = 1",
        "of the docstring": "x = 1",
        "above x": "x = 1",
        "above y": "y = 2",
        "above the elif": "z = 3",
        "of the elif": "z = 3",
        "above the else": "w = 1",
        "above g": "def g(self): return 1  # in one line",
        "inside": "q = f(",
        "one": "s = [",
        "two": "s = [",
    }
