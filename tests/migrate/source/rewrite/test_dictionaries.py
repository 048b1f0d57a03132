"""Calls that make dictionaries, as displays."""

from __future__ import annotations

import ast

import pytest
from msmigrate.migrate.source.observe.observations import (
    DictKind,
    Kind,
    ObjectKind,
    PlainKind,
    SequenceKind,
    TensorKind,
    set_callee,
    set_kinds,
)
from msmigrate.migrate.source.rewrite.argument_kinds import format_texts
from msmigrate.migrate.source.rewrite.graph_mode import dict_display

TENSOR = TensorKind("float32", 2)
OF_TENSORS = DictKind((("a", TENSOR),))
PAIRS = SequenceKind("list", (SequenceKind("tuple", (PlainKind("str"), TENSOR)),))
KINDS: dict[str, Kind] = {"others": OF_TENSORS, "pairs": PAIRS, "output": ObjectKind("transformers.Output")}


def shown(text: str, callee: str = "builtins.dict", made: Kind = OF_TENSORS) -> str | None:
    """What is written for a call."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    kinds = {**KINDS, text: made, "x": TENSOR}
    for node in ast.walk(call):
        if isinstance(node, ast.expr):
            set_kinds(node, [kinds.get(ast.unparse(node), ObjectKind("Other"))])
    set_callee(call.func, callee)
    found = dict_display(call)
    return None if found is None else ast.unparse(ast.fix_missing_locations(found))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("dict(a=x, b=x)", "{'a': x, 'b': x}"),
        ("dict(others)", "{key: value for key, value in others.items()}"),
        ("dict(pairs)", "{key: value for key, value in pairs}"),
        ("dict(zip(names, values))", "{key: value for key, value in zip(names, values)}"),
        ("dict(self.found.items())", "{key: value for key, value in self.found.items()}"),
        ("dict([('a', x)])", "{'a': x}"),
        ("dict(((n, x) for n in names))", "{n: x for n in names}"),
    ],
)
def test_what_is_written(text: str, written: str) -> None:
    assert shown(text) == written


def test_a_copy() -> None:
    assert shown("others.copy()", "builtins.dict.copy") == "{key: value for key, value in others.items()}"


@pytest.mark.parametrize("text", ["dict(output)", "dict(a=x, **more)", "dict(others, b=x)", "dict()"])
def test_what_stays(text: str) -> None:
    assert shown(text) is None


def test_without_tensors_it_stays() -> None:
    assert shown("dict(others)", made=DictKind((("a", PlainKind("int")),))) is None


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("f'{n:02d}'", "'{:02d}'.format(n)"),
        ("f'{a}/{n:>{width}} {{}}'", "'{}/{:>{}} {{}}'.format(a, n, width)"),
        ("f'{a!r}'", "'{!r}'.format(a)"),
        ("d[f'{n:03d}']", "d['{:03d}'.format(n)]"),
    ],
)
def test_a_text_with_a_format(text: str, written: str) -> None:
    function = ast.parse(f"def f(a, n, width, d):\n    return {text}").body[0]
    assert isinstance(function, ast.FunctionDef)
    before = eval(text, values := {"a": "x", "n": 7, "width": 5, "d": {"007": 1}})
    format_texts(function, compiled=True)
    found = ast.unparse(ast.fix_missing_locations(function.body[0])).removeprefix("return ")
    assert found == written
    assert eval(found, values) == before


@pytest.mark.parametrize(
    "line", ["raise ValueError(f'{n:02d}')", "assert n, f'{n:02d}'", "log(f'{n:02d}')", "x = f'{n}'"]
)
def test_a_text_that_is_only_shown_or_has_no_format(line: str) -> None:
    function = ast.parse(f"def f(n):\n    {line}").body[0]
    assert isinstance(function, ast.FunctionDef)
    before = ast.unparse(function)
    format_texts(function, compiled=True)
    assert ast.unparse(function) == before
