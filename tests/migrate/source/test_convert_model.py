"""The layout of a written file."""

from __future__ import annotations

import pytest
from msmigrate.errors import WorkerFailed
from msmigrate.migrate.source.convert_model import LINE, formatted, with_short_numbers, without_brackets
from msmigrate.migrate.source_files import AT_END


@pytest.mark.parametrize(
    ("written", "layout"),
    [
        ("return (a, b)", "return a, b"),
        ("return (a, (b, c))", "return a, (b, c)"),
        ("(a, b) = (c, ('é', d))", "(a, b) = c, ('é', d)"),
        ("x = '(é'; a, b = ('é', c)", "x = '(é'; a, b = 'é', c"),
        ("return (a,)", "return (a,)"),
        ("return (a, b)[0]", "return (a, b)[0]"),
        ("return (a, b) + c", "return (a, b) + c"),
        ("return (a + b) * (c, d)", "return (a + b) * (c, d)"),
        ("return f((a, b))", "return f((a, b))"),
        ("return a, (b)", "return a, (b)"),
        ("return (a), (b)", "return (a), (b)"),
        ("sizes = (1, 2)", "sizes = (1, 2)"),
        ("x = max((f(y) for y in z))", "x = max(f(y) for y in z)"),
        ("x = sum(('é', y) for y in z)", "x = sum(('é', y) for y in z)"),
        (
            "x = a.b('é', max((sum((v for v in w)) for w in z)), c)",
            "x = a.b('é', max(sum(v for v in w) for w in z), c)",
        ),
        ("x = max((f(y) for y in z), 1)", "x = max((f(y) for y in z), 1)"),
        ("x = max((f(y) for y in z), default=1)", "x = max((f(y) for y in z), default=1)"),
        ("x = f(tuple((a, *b)), 2)", "x = f((a, *b), 2)"),
        ("x = tuple((tuple((a,)), tuple((c for c in b))))", "x = ((a,), tuple(c for c in b))"),
        ("return tuple((a, b))", "return (a, b)"),
        ("x = tuple(a)", "x = tuple(a)"),
        ("x = list((a, b))", "x = list((a, b))"),
    ],
)
def test_brackets_that_nobody_writes(written: str, layout: str) -> None:
    assert without_brackets(f"def f():\n    {written}\n") == f"def f():\n    {layout}\n"


def test_long_tuples_keep_theirs() -> None:
    text = f"def f():\n    return ({', '.join(['number'] * 20)})\n"
    found = formatted(text, "a model")
    assert "return (\n" in found and max(map(len, found.splitlines())) <= LINE


def test_no_python_is_an_error_of_ours() -> None:
    with pytest.raises(WorkerFailed, match="for a model is not valid Python"):
        formatted("return (", "a model")


LISTED = "    number,\n"


@pytest.mark.parametrize(
    ("written", "layout"),
    [
        (f"# (B,){AT_END}\nx = 1", "x = 1  # (B,)\n"),
        (f"# one{AT_END}\n@deco\ndef f(a):\n    # in{AT_END}\n    pass", "@deco\ndef f(a):  # one\n    pass  # in\n"),
        (f"# (B,){AT_END}\nx = [{'number, ' * 20}]", f"x = [  # (B,)\n{LISTED * 20}]\n"),
        (f"# {'long' * 30}{AT_END}\nx = 1", f"# {'long' * 30}\nx = 1\n"),
        (f"# no{AT_END}\nx = '''a\nb'''", '# no\nx = """a\nb"""\n'),
        (f"# other\n# (B,){AT_END}\nx = 1", "# other\nx = 1  # (B,)\n"),
    ],
)
def test_comments_behind_their_statement(written: str, layout: str) -> None:
    assert formatted(written, "a model") == layout


def test_numbers_are_written_as_people_write_them() -> None:
    text = "x = f(eps=1e-06, low=-1000000000.0, high=1e+16, mask=0xe01, wide=1200000.0)  # 1e-06\ny = '1e-06'\n"
    more = "a = [312000000000000.0, 2500000000.0, 12345000000.0, 10000000.0]\n"
    assert with_short_numbers(more) == "a = [3.12e14, 2.5e9, 12345000000.0, 1e7]\n"
    found = with_short_numbers(text)
    assert found == "x = f(eps=1e-6, low=-1e9, high=1e16, mask=0xe01, wide=1200000.0)  # 1e-06\ny = '1e-06'\n"
