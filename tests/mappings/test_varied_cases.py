"""What may be varied is read strictly, worked out without running anything, and has a counterpart whatever is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from mapping_cases import bind
from msmigrate import errors
from msmigrate.mappings import row_reader, table
from msmigrate.mappings.rows import Case, Row
from varied_cases import as_json, case_of, cases, expression_value, from_json, is_sized, name_of, varied

VARIED = [row for row in table.rows() if row.vary and row.mindspore]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n", 3),
        ("2*n+1", 7),
        ("n*(k-1)", 3),
        ("-n", -3),
        ("n//2", 1),
        ("n%2", 1),
        ("n >= k", True),
        ("1 <= k < n", True),
    ],
)
def test_expressions(text: str, value: object) -> None:
    assert expression_value(text, {"n": 3, "k": 2}) == value
    assert is_sized(text, {"n": 0, "k": 0})


@pytest.mark.parametrize(
    "text",
    ["n(", "f(n)", "n.x", "n**9", "n/2", "[n]", "n in k", "'n'", "1.5", "n and k", "lambda: n", "n" * 101, "", "n:=2"],
)
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no|too long"):
        row_reader.expression_names(text)
    assert not is_sized(text, {"n": 0, "k": 0})


def test_a_word_that_is_no_size_stays() -> None:
    assert not is_sized("mean", {"n": 0})
    assert not is_sized("2", {"n": 0})


ROW = """
- torch: torch.nn.Thing
  mindspore: mindspore.nn.Thing
  exact: true
  arguments: {size: {to: size}, how: {to: how}}
  status: {pynative: equal, graph: equal, ascend: "documented, not run"}
  docs: {torch: a, mindspore: b}
  vary:
    - sizes: {n: [1, 3], k: [1, 3]}
      inputs: [[n, "2*k"], {shape: [n], ints: "k+1"}]
      args: {size: [[n, k], -1], how: [mean, k]}
      where: ["n >= k"]
      dtypes: [float32, float16]
"""


def read(folder: Path, text: str) -> Row:
    (folder / "layers.yaml").write_text(text)
    return row_reader.read_rows([folder / "layers.yaml"], "layer")[0]


def test_a_case_of_a_variation(tmp_path: Path) -> None:
    row = read(tmp_path, ROW)
    case = case_of(row, row.vary[0], {"n": 3, "k": 2}, {"size": ["n", "k"], "how": "mean"}, "float16")
    assert case.inputs == ({"shape": [3, 4], "dtype": "float16"}, {"shape": [3], "ints": 3})
    assert case.args == {"size": [3, 2], "how": "mean"}
    assert from_json(as_json(case)) == case
    assert name_of(row, case, 0) == name_of(row, from_json(as_json(case)), 0) != name_of(row, case, 1)


def test_conditions_hold(tmp_path: Path) -> None:
    row = read(tmp_path, ROW)

    @settings(max_examples=30, derandomize=True, database=None, deadline=None)
    @given(case=cases(row))
    def check(case: Case) -> None:
        shape = case.inputs[0] if isinstance(case.inputs[0], list) else case.inputs[0]["shape"]
        assert shape[0] >= shape[1] // 2

    check()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("[1, 3], k", "3, k"), "size 'n': expected the smallest and the largest"),
        (('"2*k"', '"2*m"'), "inputs: there is no size 'm' in '2.m'; there are n, k"),
        (('"2*k"', '"2**k"'), "inputs: '2 .. k' is no whole number"),
        (('"n >= k"', '"n >= h"'), "where: there is no size 'h'"),
        (("[mean, k]", "mean"), "'how': expected a list of the values to draw from"),
        (("[float32, float16]", "[float31]"), "dtypes are some of float32"),
        (("where:", "were:"), "unknown key 'were'"),
        (('[[n, "2*k"]', "[2"), "inputs: expected shapes"),
    ],
)
def test_a_damaged_variation_names_file_row_and_key(tmp_path: Path, change: tuple[str, str], text: str) -> None:
    assert change[0] in ROW
    with pytest.raises(errors.BadInput, match=rf"layers.yaml: .*torch.nn.Thing.*: vary: {text}"):
        read(tmp_path, ROW.replace(*change, 1))


@pytest.mark.parametrize("row", VARIED, ids=lambda row: row.torch)
def test_all_that_may_be_drawn_has_a_counterpart(row: Row) -> None:
    @settings(max_examples=10, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=cases(row))
    def check(case: Case) -> None:
        inputs = [object() for _ in case.inputs]
        table.translate(row.torch, bind(row, case, inputs) if row.kind == "function" else case.args)

    check()


def test_rows_that_vary_are_rows_that_run() -> None:
    assert {row.torch for row in varied("pynative")} <= {row.torch for row in VARIED}
    idle = [row.torch for row in VARIED if not row.cases]
    assert not idle, "a row that may be drawn from has listed cases too"
