"""The registry of handlers: which is asked, and in which order; and the layout that it allows."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import house_rules as rules
import pytest
from msmigrate.migrate.source.rewrite import ORDER, context
from msmigrate.migrate.source.rewrite.context import Stage, by_callee, by_syntax, handles

CHECKOUT = Path(__file__).parents[4]
SOURCE = "msmigrate.migrate.source."
LATER = {"observe": ("rewrite", "emit"), "rewrite": ("emit",), "source_files": ("rewrite", "emit")}


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty registry."""
    monkeypatch.setattr(context, "_BY_NAME", {})
    monkeypatch.setattr(context, "_BY_PREFIX", {stage: [] for stage in Stage})
    monkeypatch.setattr(context, "_BY_SYNTAX", {})
    yield


def handler(name: str, file: str = ORDER[0]) -> Any:
    def handle(node: ast.AST, context: object) -> str:
        return name

    handle.__name__, handle.__module__ = name, f"{SOURCE}rewrite.{file}"
    return handle


def names(*callees: str, stage: Stage = Stage.EXPRESSION) -> list[str]:
    """The handlers that are asked for a call of these."""
    return [found.__name__ for found in by_callee(callees, stage)]


def test_the_name_comes_before_the_longest_prefix() -> None:
    handles("torch.*")(handler("torch"))
    handles("torch.nn.*", "torch.fft.*")(handler("layers"))
    handles("torch.nn.Linear")(handler("linear"))
    assert names("torch.nn.Linear") == ["linear", "layers", "torch"]
    assert names("torch.nn.Conv2d") == ["layers", "torch"]
    assert names("numpy.abs") == names() == []


def test_a_handler_is_asked_only_where_all_callees_are_its_own() -> None:
    handles("a", "b", "c.*")(handler("letters"))
    assert names("a", "b", "c.d") == ["letters"]
    assert names("a", "d") == []


def test_stages_are_apart() -> None:
    handles("a", stage=Stage.STATEMENT)(handler("alone"))
    handles("a")(handler("inside"))
    assert names("a") == ["inside"]
    assert names("a", stage=Stage.STATEMENT) == ["alone"]


def test_a_name_has_one_handler_at_a_stage() -> None:
    handles("a")(handler("first"))
    with pytest.raises(ValueError, match="a has a handler at this stage: first"):
        handles("a")(handler("second"))


@pytest.mark.parametrize("imported", [ORDER, ORDER[::-1]], ids=["as listed", "the last file first"])
def test_the_order_of_files_is_the_same_whichever_is_imported_first(imported: Sequence[str]) -> None:
    for file in imported:
        handles(syntax=[ast.Name])(handler(f"{file} one", file))
        handles(syntax=[ast.Name])(handler(f"{file} two", file))
    found = [one.__name__ for one in by_syntax(ast.Name("x"), Stage.EXPRESSION)]
    assert found == [f"{file} {which}" for file in ORDER for which in ("one", "two")]


def test_a_file_with_handlers_stands_in_the_order() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        handles(syntax=[ast.Name])(handler("one", "elsewhere"))
    having = {
        file.stem for file in (CHECKOUT / "migrate/source/rewrite").glob("*.py") if "\n@handles(" in file.read_text()
    }
    assert having == {*ORDER}


def test_forms_of_syntax_are_asked_in_order() -> None:
    handles(syntax=[ast.Call, ast.Name])(handler("one"))
    handles(syntax=[ast.Call])(handler("two"))
    call = ast.parse("f(x)", mode="eval").body
    assert [found.__name__ for found in by_syntax(call, Stage.EXPRESSION)] == ["one", "two"]
    assert by_syntax(call, Stage.STATEMENT) == ()


def test_imports_run_from_observe_to_rewrite_to_emit_and_in_no_circle() -> None:
    modules = {name: file for name, file in rules.modules(CHECKOUT).items() if name.startswith(SOURCE)}
    reaches = {
        name: {part for _, found in rules.imports(file, CHECKOUT) for part in (found, found.rpartition(".")[0])}
        & modules.keys() - {name}
        for name, file in modules.items()
        if file.name != "__init__.py"
    }
    for name, imported in reaches.items():
        later = LATER.get(name.split(".")[3], ())
        assert not [other for other in imported if other.split(".")[3] in later], f"{name}: {imported}"
    waiting = dict(reaches)
    while waiting:
        free = [name for name, imported in waiting.items() if not imported & waiting.keys()]
        assert free, f"a circle of imports among {sorted(waiting)}"
        for name in free:
            del waiting[name]
