"""An ONNX file is read and never run; what is damaged, hostile or not all there is refused with one line."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import onnx
import pytest
from msmigrate import errors
from msmigrate.errors import BadInput
from msmigrate.mappings import table
from msmigrate.migrate.analyze import model_analysis as analysis
from msmigrate.migrate.analyze import onnx_worker
from msmigrate.migrate.analyze.model_analysis import Analysis, analyze, onnx_operators
from msmigrate.migrate.checkpoint.formats.ckpt import field_of
from msmigrate.reports import model_analysis
from msmigrate.reports.terminal import Console
from onnx import helper
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
    with pytest.raises(BadInput, match=r"'w' is in weights.bin, which is not there; put it next to the file"):
        analysed(path)
    (tmp_path / "weights.bin").write_bytes(bytes(100))
    with pytest.raises(BadInput, match=r"'w' is not complete in weights.bin: 864 bytes from 0"):
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
            onnx_worker.report(str(tmp_path / name))


def test_a_tensor_that_lacks_values_is_refused(tmp_path: Path) -> None:
    path = small(tmp_path / "small.onnx")
    model = onnx.load_model_from_string(path.read_bytes())
    for sizes, words in (
        ([8, 3, 3, 4], "needs 1,152 bytes and has 864"),
        ([2**62, 2**62], "an impossible shape"),
        ([-1], "a negative size"),
    ):
        del model.graph.initializer[0].dims[:]
        model.graph.initializer[0].dims.extend(sizes)
        path.write_bytes(model.SerializeToString())
        with pytest.raises(BadInput, match=f"its tensor 'w' .*{words}"):
            onnx_worker.report(str(path))


def test_every_cut_is_refused_or_read(tmp_path: Path) -> None:
    whole = small(tmp_path / "small.onnx").read_bytes()
    for cut in range(0, len(whole), 97):
        (tmp_path / "cut.onnx").write_bytes(whole[:cut])
        with pytest.raises(BadInput):
            onnx_worker.report(str(tmp_path / "cut.onnx"))


def test_functions_are_followed_and_never_without_an_end(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="its function Again calls itself"):
        onnx_worker.report(str(calling_itself(tmp_path / "again.onnx")))
    (relu,) = analysed(doubling(tmp_path / "bomb.onnx", 40)).operators
    assert (relu.torch, relu.calls) == ("torch.nn.functional.relu", 2**40)


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no file"):
        analysed(tmp_path / "none.onnx")


def test_the_table_of_onnx_can_be_read() -> None:
    known = onnx_operators()
    assert known["Conv"].row(5) == "torch.nn.Conv3d" and known["Conv"].row(None) == "torch.nn.Conv2d"
    assert known["Constant"].folds
    torch = {name for row in table.rows() for name in (row.torch, *row.aliases)}
    assert {"torch.nn.Conv2d", "torch.add"} <= torch


def test_a_bad_entry_of_the_table_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, words in (
        ("- {onnx: Add}", "'Add': give exactly one of torch, by_axes and folds"),
        ("- {onnx: Add, torch: torch.add, remedy: x}", "refuse and remedy go together"),
        ("- {onnx: Add, torch: torch.add}\n- {onnx: Add, torch: torch.add}", "Add is there twice"),
        ("- {onnx: Add, torch: torch.add, tork: 1}", "unknown key 'tork'"),
    ):
        (tmp_path / "onnx.yaml").write_text(text)
        monkeypatch.setattr(analysis, "ONNX", tmp_path / "onnx.yaml")
        with pytest.raises(BadInput, match=words):
            onnx_operators.__wrapped__()


NODE = field_of(1, field_of(1, b"x") + field_of(2, b"y") + field_of(4, b"Relu"))
MANY = 1_500_000
BOMBS = {
    "nodes": NODE + b"\x0a\x00" * MANY,
    "tensors": NODE + b"\x2a\x00" * MANY,
    "shapes": NODE + b"\x6a\x00" * MANY,
    "attributes": field_of(1, field_of(4, b"Relu") + b"\x2a\x00" * MANY),
    "dimensions": NODE + field_of(5, (b"\x08" + b"\xff" * 8 + b"\x7f") * 200_000 + b"\x10\x01"),  # their product
}


# a process's peak begins as that of the one that started it, which here is the tests' own
MEASURED = """
import json, resource, subprocess, sys
answer = json.loads(subprocess.run(sys.argv[1:], stdout=subprocess.PIPE).stdout)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([answer, used.ru_maxrss, used.ru_utime]))
"""


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_takes_neither_memory_nor_time(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(b"\x08\x08" + field_of(8, b"\x0a\x00\x10\x11") + field_of(7, BOMBS[name]))
    command = [sys.executable, "-m", "msmigrate.migrate.analyze.onnx_worker", str(path)]
    done = subprocess.run([sys.executable, "-c", MEASURED, *command], stdout=subprocess.PIPE, text=True, check=True)
    answer, kilobytes, seconds = json.loads(done.stdout)
    assert issubclass(getattr(errors, answer["error"]), errors.BadInput) and "\n" not in answer["text"]
    assert kilobytes < 400_000 and seconds < 20


def one_node(name: str = "n", dims: Sequence[int] = (1,), times: int = 0, **more: Any) -> onnx.ModelProto:
    """A model of one node and a tensor of these sizes; times: how often functions call each other."""
    tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=dims)
    if not times:
        tensor.raw_data = bytes(4 * prod(dims))
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in (f"x{name}", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], name)], "g", values[:1], values[1:], [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name=f"p{name}", **more)


@pytest.mark.parametrize("name", ["\x1b[2J", "a\nb", "\x9b1m", "\u202eabc", "[/red]", "\0", "\u2028"])
def test_names_from_a_file_are_shown_and_not_obeyed(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.onnx").write_bytes(one_node(name).SerializeToString())
    printed = io.StringIO()
    model_analysis.show(analysed(tmp_path / "x.onnx"), Console(file=printed, width=200, highlight=False), whole=True)
    assert all(line.isprintable() for line in printed.getvalue().split("\n"))
    assert (name if name.isprintable() else ascii(name)[1:-1]) in printed.getvalue()
    page = model_analysis.html(analysed(tmp_path / "x.onnx"))
    assert all(line.isprintable() for line in page.replace("\t", " ").split("\n"))


@pytest.mark.parametrize("reader", ["", "python"])  # of protobuf; MindSpore's users set the second
def test_a_name_that_is_not_utf_8_is_shown_by_its_bytes(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", reader)
    content = one_node("QQQQ").SerializeToString()
    (tmp_path / "x.onnx").write_bytes(content.replace(b"QQQQ", b"\xff\xfe\xff\xfe"))
    assert analysed(tmp_path / "x.onnx").operators[0].places == (r"\xff\xfe\xff\xfe",)


@pytest.mark.parametrize("dims", [[1 << 62] * 64, [1 << 40] * 100_000, [1] * 65])
def test_a_shape_that_no_tensor_has_is_refused_before_it_is_multiplied(tmp_path: Path, dims: list[int]) -> None:
    (tmp_path / "x.onnx").write_bytes(one_node(dims=dims, times=1).SerializeToString())
    with pytest.raises(BadInput, match=r"'w' has (an impossible shape|[0-9,]+ dimensions)"):
        analysed(tmp_path / "x.onnx")


def test_functions_that_call_each_other_without_an_end_in_sight_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nested too deeply"):
        analysed(doubling(tmp_path / "x.onnx", 3000))
