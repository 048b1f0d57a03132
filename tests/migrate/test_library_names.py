"""The names of libraries that no row says: the table is read whole, and what it says of some."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from msmigrate.mappings.table import row
from msmigrate.migrate.library_names import ROWS_FIRST, TABLES, called_in, dtype_name, family_of, habit, is_dtype, named
from msmigrate.migrate.source.observe.observations import set_callee

SOURCE = Path(__file__).parents[2] / "migrate"


def test_every_table_is_read() -> None:
    text = "".join(file.read_text() for file in SOURCE.rglob("*.py"))
    assert set(re.findall(r'TABLES\["(\w+)"\]', text)) | set(re.findall(r"TABLES\['(\w+)'\]", text)) == {*TABLES}


def test_rows_that_come_before_the_source_are_there() -> None:
    assert {name for name in ROWS_FIRST.values() if row(name).torch != name} == set()


@pytest.mark.parametrize(
    ("name", "family"),
    [("torch.nn.Conv2d", "module"), ("torch.cat", "tensor"), ("torch.save", ""), ("torch.optim.SGD", "optimizer")],
)
def test_what_a_call_gives(name: str, family: str) -> None:
    assert family_of(name) == family


def test_dtypes_and_habits() -> None:
    assert [dtype_name(name) for name in ("long", "bool", "bfloat16")] == [
        "mindspore.int64",
        "mindspore.bool_",
        "mindspore.bfloat16",
    ]
    assert is_dtype("half") and not is_dtype("nn")
    assert (habit("train_loader"), habit("net"), habit("x")) == ("loader", "module", "")


def test_what_a_file_names_calls_and_called() -> None:
    tree = ast.parse("def f(x: nn.Tanh = nn.ReLU):\n    return nn.GELU(g(x)) == type(x).__name__, g(x.func)")
    roots = {"nn": "torch.nn", "g": "pkg.g"}

    def resolve(node: ast.expr) -> str:
        root, _, rest = ast.unparse(node).partition(".")
        return f"{roots[root]}.{rest}".removesuffix(".") if root in roots else ""

    assert {*named(tree, resolve)} == {"torch.nn.ReLU", "torch.nn.GELU()", "pkg.g()", "__name__"}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "g"]
    assert called_in(tree, "g") == []
    set_callee(calls[0].func, "pkg.inside.g", "object pkg.G")
    assert called_in(tree, "g") == ["pkg.inside.g"]
