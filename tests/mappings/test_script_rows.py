"""Rows of what training scripts call: source text that is Python, and keys that a recipe has."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from msmigrate import errors
from msmigrate.mappings import row_reader, table
from msmigrate.mappings.rows import Row
from msmigrate.training.recipe.schema import Recipe
from pydantic import BaseModel

ROWS = table.rows("script")
RECIPES = [row for row in table.rows() if row.recipe]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.torch)
def test_what_takes_a_call_s_place_is_python(row: Row) -> None:
    assert row.rewrite
    ast.parse(row.rewrite)


@pytest.mark.parametrize("row", RECIPES, ids=lambda row: row.torch)
def test_a_row_s_recipe_key_is_one(row: Row) -> None:
    model: Any = Recipe
    for name in row.recipe["key"].split("."):
        kind = model.model_fields[name].annotation
        parts = [part for part in (kind, *getattr(kind, "__args__", ())) if isinstance(part, type)]
        model = next((part for part in parts if issubclass(part, BaseModel)), None)
    if isinstance(row.recipe.get("value"), dict):
        assert model is not None
        model.model_validate(row.recipe["value"])


def test_a_script_s_row_is_not_translated_argument_by_argument() -> None:
    with pytest.raises(errors.Unsupported, match=r"torch\.save does not cross argument by argument; write: mindspore"):
        table.translate("torch.save", {"f": "net.pth"})


@pytest.mark.parametrize("recipe", ["{value: 3}", "{key: amp, values: 3}"])
def test_a_recipe_without_key_is_refused(tmp_path: Any, recipe: str) -> None:
    file = tmp_path / "scripts.yaml"
    status = "{pynative: missing, graph: missing, ascend: missing}"
    file.write_text(
        f"- {{torch: a, mindspore: null, exact: false, why: b, arguments: {{}}, status: {status}, "
        f"docs: {{torch: a, mindspore: b}}, recipe: {recipe}}}"
    )
    with pytest.raises(errors.BadInput, match="recipe has a recipe's `key`"):
        row_reader.read_rows([file], "script")
