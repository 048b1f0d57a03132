"""Looking rows up, translating calls, and the errors people meet."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from enum import Enum
from pathlib import Path

import pytest
from msmigrate import errors
from msmigrate.mappings import row_reader, table
from msmigrate.mappings.rows import EQUAL, MISSING, NOT_RUN, SAME_DISTRIBUTION, Call, Name, build, resolve


def test_names_find_rows() -> None:
    assert table.row("BatchNorm2d") is table.row("torch.nn.BatchNorm2d") is table.row("batchnorm2d")
    assert table.row("Conv2d").kind == "layer"
    assert table.row("conv2d").kind == "function"
    assert table.row("operator.add").torch == table.row("torch.Tensor.add").torch == "torch.add"
    assert table.row("ReLU").kind == "layer"
    assert table.row("relu").kind == "function"
    assert table.row("LSTM").kind == "module"


def test_unknown_name_says_what_is_close() -> None:
    with pytest.raises(errors.UnknownRow, match=r"no row 'torch\.nn\.Conv2'; did you mean torch\.nn\.Conv2d"):
        table.row("torch.nn.Conv2")
    with pytest.raises(errors.UnknownRow, match=r"no row 'zzz'$"):
        table.row("zzz")
    with pytest.raises(errors.BadInput, match="no kind of row 'lair'; there are layer,"):
        table.rows("lair")


def test_a_table_is_read_as_yaml_once_and_again_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, read = tmp_path / "rows.yaml", []
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "kept"))
    as_yaml = row_reader.yaml.load
    monkeypatch.setattr(row_reader.yaml, "load", lambda *args, **words: read.append(1) or as_yaml(*args, **words))
    for text, times in (("- {1: .inf, a: [~, true, 1e-4]}", 1), ("- {1: .inf, a: [~, true, 1e-4]}", 1), ("- 2", 2)):
        file.write_text(text)
        assert row_reader.read_yaml(file) == as_yaml(text, row_reader.yaml.CSafeLoader) and len(read) == times
    (kept,) = (tmp_path / "kept").rglob("*.table*")
    for damaged in (b"", b"\xff" * 40, kept.read_bytes()[:-3], b"i\x01\x00\x00\x00"):
        kept.write_bytes(damaged)
        assert row_reader.read_yaml(file) == [2]
    assert len(read) == 6 and row_reader.read_yaml(file) == [2] and len(read) == 6
    file.write_text("- 2026-11-26")  # which marshal does not hold
    assert [row_reader.read_yaml(file)[0].year for _ in range(2)] == [2026, 2026] and len(read) == 8
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    kept.unlink()
    file.write_text("- 3")
    assert row_reader.read_yaml(file) == [3] and not [*(tmp_path / "kept").rglob("*.table*")]


PARTS = {
    "layers and modules": ("layer", "module"),
    "losses": ("loss",),
    "functions, tensor methods": ("function",),
    "optimizers": ("optimizer",),
    "schedules": ("schedule",),
    "initializers": ("initializer",),
    "transforms": ("transform",),
    "distributions": ("distribution",),
    "scripts, data parallel": ("script", "parallel"),
}
COVERAGE = Path(__file__).parents[2] / "docs" / "coverage.md"


def test_the_page_on_coverage_counts_the_rows() -> None:
    text = re.sub(" +", " ", COVERAGE.read_text(encoding="utf-8"))
    said = [f"{len(table.rows())} rows", f"{sum(row.composed for row in table.rows())} targets are functions and Cells"]
    for name, kinds in PARTS.items():
        found = Counter(row.status["pynative"] for kind in kinds for row in table.rows(kind))
        counts = [found.total(), *(found.pop(status, "") for status in (EQUAL, SAME_DISTRIBUTION, NOT_RUN, MISSING))]
        assert not found, "a status that the page has no column for"
        said.append(re.sub(" +", " ", f"| {name} | {' | '.join(map(str, counts))} |"))
    assert {kind for kinds in PARTS.values() for kind in kinds} == {row.kind for row in table.rows()}
    assert [line for line in said if line not in text] == [], "docs/coverage.md does not say this"


def test_every_argument_is_written() -> None:
    call = table.translate("torch.nn.Conv2d", {"kernel_size": [3, 3], "padding": 1}, (16, 32))
    assert call == Call(
        "mindspore.nn.Conv2d",
        {
            "in_channels": 16,
            "out_channels": 32,
            "kernel_size": (3, 3),
            "stride": 1,
            "pad_mode": "pad",
            "padding": (1, 1, 1, 1),
            "dilation": 1,
            "group": 1,
            "has_bias": True,
            "dtype": "mindspore.float32",
            "weight_init": None,
            "bias_init": None,
            "data_format": "NCHW",
        },
    )


def test_a_group_gets_only_what_was_given() -> None:
    call = table.translate("torch.optim.SGD", {"weight_decay": 0.0, "lr": 0.1}, partial=True)
    assert call.kwargs == {"lr": 0.1, "weight_decay": 0.0}


def test_enumerations_and_dtypes_cross_by_value() -> None:
    class Mode(Enum):
        BILINEAR = "bilinear"

    call = table.translate("torchvision.transforms.Resize", {"size": 8, "interpolation": Mode.BILINEAR})
    assert repr(call.kwargs["interpolation"]) == "mindspore.dataset.vision.Inter.BILINEAR"


def test_further_positional_arguments_are_collected() -> None:
    tensor = object()
    assert table.translate("torch.Tensor.view", {}, (tensor, 2, -1)).kwargs == {"input": tensor, "shape": (2, -1)}
    assert table.translate("torch.Tensor.view", {}, (tensor, (2, -1))).kwargs == {"input": tensor, "shape": (2, -1)}


@pytest.mark.parametrize(
    ("name", "args", "positional", "text"),
    [
        ("Conv2d", {"paddin": 1}, (1, 2, 3), r"torch\.nn\.Conv2d has no argument 'paddin'; did you mean 'padding'\?"),
        ("Conv2d", {}, (1, 2), "torch.nn.Conv2d needs the argument 'kernel_size'"),
        ("Conv2d", {"in_channels": 1}, (1, 2, 3), "got 'in_channels' twice"),
        ("ReLU", {}, (False, 1), r"torch\.nn\.ReLU takes 1 arguments, got 2 by position"),
    ],
)
def test_wrong_calls(name: str, args: dict[str, int], positional: tuple[int, ...], text: str) -> None:
    with pytest.raises(errors.BadInput, match=text):
        table.translate(name, args, positional)


def test_functions_take_numpys_names_of_arguments_and_layers_do_not() -> None:
    call = table.translate("torch.sum", {"x": 1, "axis": 1, "keepdims": True})
    assert call == table.translate("torch.sum", {"input": 1, "dim": 1, "keepdim": True})
    with pytest.raises(errors.BadInput, match="has no argument 'axis'"):
        table.translate("torch.nn.Softmax", {"axis": 1})
    with pytest.raises(errors.BadInput, match="got 'dim' twice"):
        table.translate("torch.sum", {"input": 1, "axis": 1, "dim": 1})


def test_a_value_without_counterpart_says_row_argument_value_and_remedy() -> None:
    with pytest.raises(errors.Unsupported) as raised:
        table.translate("BatchNorm2d", {"track_running_stats": False}, (3,))
    for text in (
        "torch.nn.BatchNorm2d",
        "track_running_stats=False",
        "mindspore.nn.BatchNorm2d",
        "use_batch_statistics",
    ):
        assert text in str(raised.value)
    error = raised.value
    assert (error.row, error.argument, error.value) == ("torch.nn.BatchNorm2d", "track_running_stats", False)
    assert str(error) == f"torch.nn.BatchNorm2d: {error.detail}"
    assert error.remedy is not None and "use_batch_statistics" in error.remedy


def test_a_value_that_the_class_does_not_take_is_for_the_one_that_the_row_has_otherwise() -> None:
    call = table.translate("Conv1d", {"padding": "same", "padding_mode": "reflect"}, (1, 2, 4))
    assert call.target == "msmigrate.nn.PaddedConv1d" and call.kwargs["has_bias"] is True
    assert (call.kwargs["padding"], call.kwargs["padding_mode"]) == ((1, 2), "reflect")
    with pytest.raises(
        errors.Unsupported, match=r"dtype='torch.float64' has no counterpart in msmigrate.nn.PaddedConv1d"
    ):
        table.translate("Conv1d", {"padding_mode": "reflect", "dtype": "torch.float64"}, (1, 2, 3))


def test_a_whole_number_is_a_float_where_torch_has_one() -> None:
    """MindSpore's losses, norms and optimizers refuse margin=1, eps=1 and rho=1."""
    assert repr(table.translate("torch.nn.CosineEmbeddingLoss", {"margin": 1}).kwargs["margin"]) == "1.0"
    assert (
        repr(
            table.translate(
                "torch.nn.functional.cross_entropy", {"input": 0, "target": 0, "label_smoothing": 0}
            ).kwargs["label_smoothing"]
        )
        == "0.0"
    )
    assert (
        repr(
            table.translate("torch.nn.Conv2d", {"in_channels": 1, "out_channels": 2, "kernel_size": 3}).kwargs[
                "in_channels"
            ]
        )
        == "1"
    )


def test_true_is_not_one() -> None:
    assert not table.same(True, 1)
    assert table.same(1, 1.0)
    assert not table.same(None, 0)


def test_pitfalls_are_known_and_every_fault_is_somebodys() -> None:
    named = {name for row in table.rows() for name in row.pitfalls}
    groups = row_reader.read_faults(table.FAULTS)
    assert named == {fault.id for fault in groups["of_rows"]}
    assert named < set(table.faults())
    assert sum(map(len, groups.values())) == len(table.faults())
    assert set(table.examples()) == set(table.faults())


def test_build_makes_nested_calls_and_looks_names_up() -> None:
    call = Call("fractions.Fraction", {"numerator": Call("int", {}), "denominator": Name("sys.maxunicode")})
    assert build(Call("builtins.dict", {"a": Name("sys.maxunicode")})) == {"a": sys.maxunicode}
    with pytest.raises(errors.BadInput, match="there is no int"):
        build(call)
    with pytest.raises(errors.BadInput, match=r"there is no math\.tau2"):
        resolve("math.tau2")


ROW = """
- torch: torch.nn.Thing
  mindspore: mindspore.nn.Thing
  exact: true
  arguments: {}
  status: {pynative: equal, graph: equal, ascend: "documented, not run"}
  docs: {torch: a, mindspore: b}
"""


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("  exact: true\n", ""), "the key 'exact' is missing"),
        (("  exact: true\n", "  exact: maybe\n"), "'exact' cannot be 'maybe'"),
        (("  exact: true\n", "  exact: false\n"), "needs `why`"),
        (("  exact: true\n", "  exact: true\n  pitfall: []\n"), "unknown key 'pitfall'"),
        (("pynative: equal, ", ""), "status gives pynative"),
        (("graph: equal", "graph: fine"), "status gives pynative"),
        (("arguments: {}", "arguments: {p: {too: p}}"), "p: unknown key 'too'"),
        (("arguments: {}", "arguments: {p: {}}"), "p: an argument that goes nowhere needs `why`"),
        (("arguments: {}", "arguments: {p: {to: p, verb: bend}}"), "there is no verb 'bend'"),
        (("arguments: {}", "arguments: {p: {to: p, device: true}}"), "p: an argument that may be a device needs"),
        (("arguments: {}", "arguments: {}\n  left_out: true"), "left out needs `rewrite`, which says what"),
        (("arguments: {}", "arguments: {}\n  state: [{torch: w, to: null}]"), "only one side has needs `why`"),
        (
            ("arguments: {}", "arguments: {}\n  state: [{torch: w, to: w, drawn_otherwise: true}]"),
            "drawn otherwise needs",
        ),
        (
            ("arguments: {}", "arguments: {}\n  state: [{torch: w, to: w, start: 0.0}]"),
            "start of torch's own is `drawn_otherwise`",
        ),
        (("arguments: {}", "arguments: {}\n  state: [{torch: w, to: w, refused: true}]"), "has no name in MindSpore"),
        (("{torch: a, mindspore: b}", "{torch: a}"), "docs has the pages"),
        (("- torch:", "- torch"), "expected keys and values|YAML|mapping"),
    ],
)
def test_a_damaged_table_names_file_row_and_key(tmp_path: Path, change: tuple[str, str], text: str) -> None:
    path = tmp_path / "layers.yaml"
    path.write_text(ROW)
    assert len(row_reader.read_rows([path], "layer")) == 1
    path.write_text(ROW.replace(*change))
    with pytest.raises(errors.BadInput, match=text) as raised:
        row_reader.read_rows([path], "layer")
    assert "layers.yaml" in str(raised.value)


def test_two_rows_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "layers.yaml"
    path.write_text(ROW + ROW)
    with pytest.raises(errors.BadInput, match="is in the rows"):
        row_reader.read_rows([path], "layer")


def test_reading_the_layers_loads_nothing_heavy() -> None:
    """(How long it takes is in benchmarks/convert_ckpt.py, with the whole process.)"""
    program = (
        "import sys; from msmigrate.mappings import table; table.load('layer'); "
        "print([name for name in ('torch', 'mindspore', 'numpy', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
