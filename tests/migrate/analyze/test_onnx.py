"""An ONNX file is read and never run; what is damaged, hostile or not all there is refused with one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from msmigrate.errors import BadInput
from msmigrate.mappings import onnx_table, table
from msmigrate.migrate.analyze import onnx_operators
from msmigrate.migrate.analyze.model import analyze
from msmigrate.migrate.analyze.verdict import Analysis
from msmigrate.migrate.formats.protobuf import field_of
from onnx_files import calling_itself, doubling, small


def analysed(path: Path) -> Analysis:
    return analyze(str(path), mode="pynative", target="CPU")


def test_a_small_model_moves(tmp_path: Path) -> None:
    path = small(tmp_path / "small.onnx")
    found = analysed(path)
    assert found.verdict == f"{path} moves: 5 operators, all direct"
    assert {operator.torch: operator.places for operator in found.operators} == {
        "torch.nn.Conv2d": ("conv",),
        "torch.nn.functional.relu": ("relu",),
        "torch.nn.AdaptiveAvgPool2d": ("pool",),
        "torch.flatten": ("flatten",),
        "torch.nn.Linear": ("fc",),
    }
    assert found.costs["parameters"] == 8 * 27 + 8 + 80
    assert found.costs["flops"] == 2 * 8 * 16 * 16 * 27 + 2 * 10 * 8
    assert found.inputs == "x batch×3×16×16"


def test_an_operator_of_another_domain_has_no_row(tmp_path: Path) -> None:
    found = analysed(small(tmp_path / "odd.onnx", operator="FusedThing"))
    (missing,) = found.missing
    assert (missing.torch, missing.way, missing.places) == ("com.example::FusedThing", "no row", ("odd",))


def test_an_attribute_that_torch_does_not_have_is_to_be_changed(tmp_path: Path) -> None:
    found = analysed(small(tmp_path / "same.onnx", auto_pad="SAME_UPPER"))
    conv = found.operators[0]
    assert conv.way == "by hand" and "auto_pad=SAME_UPPER" in conv.changes[-1]


def test_tensors_in_a_file_beside_are_not_read_but_must_be_there(tmp_path: Path) -> None:
    path = small(tmp_path / "split.onnx", external="weights.bin")
    with pytest.raises(BadInput, match=r"'w' lies in weights.bin, which is not there; put it beside the file"):
        analysed(path)
    (tmp_path / "weights.bin").write_bytes(bytes(100))
    with pytest.raises(BadInput, match=r"'w' is not whole in weights.bin: 864 bytes from 0"):
        analysed(path)
    (tmp_path / "weights.bin").write_bytes(bytes(864))
    assert not analysed(path).missing


@pytest.mark.parametrize("place", ["../weights.bin", "/etc/passwd", ""])
def test_a_file_that_points_outside_its_folder_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(BadInput, match="outside the file's folder"):
        analysed(small(tmp_path / "up.onnx", external=place))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    whole = small(tmp_path / "small.onnx").read_bytes()
    for name, content, words in (
        ("cut.onnx", whole[:-100], "no ONNX file, or a damaged one"),
        ("empty.onnx", b"", "no ONNX file"),
        ("text.txt", b"hello", "no ONNX file"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInput, match=words):
            onnx_operators.report(str(tmp_path / name))


def test_a_tensor_that_lacks_values_is_refused(tmp_path: Path) -> None:
    path = small(tmp_path / "small.onnx")
    model = onnx.load_model_from_string(path.read_bytes())
    for sizes, words in (([2**62, 2**62], "needs .* bytes and has 864"), ([-1], "a negative size")):
        del model.graph.initializer[0].dims[:]
        model.graph.initializer[0].dims.extend(sizes)
        path.write_bytes(model.SerializeToString())
        with pytest.raises(BadInput, match=f"its tensor 'w' .*{words}"):
            onnx_operators.report(str(path))


def test_every_cut_is_refused_or_read(tmp_path: Path) -> None:
    whole = small(tmp_path / "small.onnx").read_bytes()
    for cut in range(0, len(whole), 97):
        (tmp_path / "cut.onnx").write_bytes(whole[:cut])
        with pytest.raises(BadInput):
            onnx_operators.report(str(tmp_path / "cut.onnx"))


def test_functions_are_followed_and_never_without_an_end(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="its function Again calls itself"):
        onnx_operators.report(str(calling_itself(tmp_path / "again.onnx")))
    (relu,) = analysed(doubling(tmp_path / "bomb.onnx", 40)).operators
    assert (relu.torch, relu.calls) == ("torch.nn.functional.relu", 2**40)


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no file"):
        analysed(tmp_path / "none.onnx")


def test_the_table_of_onnx_can_be_read() -> None:
    known = onnx_table.onnx_operators()
    assert known["Conv"].row(5) == "torch.nn.Conv3d" and known["Conv"].row(None) == "torch.nn.Conv2d"
    assert known["Constant"].folds
    torch = {name for row in table.rows() for name in (row.torch, *row.aliases)}
    assert {"torch.nn.Conv2d", "torch.add"} <= torch


def test_a_bad_entry_of_the_table_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, words in (
        ("- {onnx: Add}", "'Add': one of torch, by_axes and folds"),
        ("- {onnx: Add, torch: torch.add, remedy: x}", "refuse and remedy go together"),
        ("- {onnx: Add, torch: torch.add}\n- {onnx: Add, torch: torch.add}", "Add stands there twice"),
        ("- {onnx: Add, torch: torch.add, tork: 1}", "unknown key 'tork'"),
    ):
        (tmp_path / "onnx.yaml").write_text(text)
        monkeypatch.setattr(onnx_table, "FILE", tmp_path / "onnx.yaml")
        with pytest.raises(BadInput, match=words):
            onnx_table.onnx_operators.__wrapped__()


NODE = field_of(1, field_of(1, b"x") + field_of(2, b"y") + field_of(4, b"Relu"))
MANY = 1_500_000
BOMBS = {
    "nodes": NODE + b"\x0a\x00" * MANY,
    "tensors": NODE + b"\x2a\x00" * MANY,
    "shapes": NODE + b"\x6a\x00" * MANY,
    "attributes": field_of(1, field_of(4, b"Relu") + b"\x2a\x00" * MANY),
    "dimensions": NODE + field_of(5, (b"\x08" + b"\xff" * 8 + b"\x7f") * 200_000 + b"\x10\x01"),  # their product
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_takes_neither_memory_nor_time(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(b"\x08\x08" + field_of(8, b"\x0a\x00\x10\x11") + field_of(7, BOMBS[name]))
    command = [sys.executable, "-m", "msmigrate.migrate.analyze.onnx_operators", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        answer = json.loads(process.stdout.read())
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    assert "bad_input" in answer and "\n" not in answer["bad_input"]
    assert usage.ru_maxrss < 400_000 and usage.ru_utime < 20
