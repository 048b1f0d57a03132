"""`msmigrate inspect` tells what is in a file without loading a tensor, and says so of every kind of file."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msmigrate.migrate.checkpoint.convert import convert
from msmigrate.migrate.checkpoint.inspect_file import inspect_file
from tiny_checkpoints import BATCH_NORM, SMALL, Tensor, floats, integer, mapping, save, state_dict, write

Inspect = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def inspect(tmp_path: Path) -> Inspect:
    """Run `msmigrate inspect` as a process of its own, in the folder of the test's files."""

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "msmigrate", "inspect", *map(str, arguments)]
        return subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)

    return call


def several(path: Path, **parts: dict[str, Tensor]) -> Path:
    """A checkpoint with an epoch, and several state dicts under keys."""
    pickled, storages = [("epoch", integer(3))], {}
    for key, tensors in parts.items():
        own = {name: it._replace(storage=f"{key} {it.storage or name}") for name, it in tensors.items()}
        body, held = state_dict(own)
        pickled.append((key, body))
        storages.update(held)
    return write(path, mapping(pickled), storages)


RICH = {
    **SMALL,
    "block.0.weight": floats(4, 3),
    "block.1.weight": floats(4, 4),
    "block.1.bias": floats(4),
    "block.norm.weight": floats(4),
    "block.norm.bias": floats(4),
    "block.2.weight": floats(6, 4),
    "block.2.bias": floats(6),
    "table": Tensor(struct.pack("<6e", *range(6)), (2, 3), "float16", storage="shared"),
    "again": Tensor(struct.pack("<6e", *range(6)), (2, 3), "float16", storage="shared"),
    "none": Tensor(b"", (0, 3)),
    "nothing": Tensor(b"", (0, 3)),
}


def test_the_page(inspect: Inspect, tmp_path: Path) -> None:
    path = several(tmp_path / "x.pth", model={f"module.{name}": tensor for name, tensor in RICH.items()})
    done = inspect("x.pth")
    assert (done.returncode, done.stderr) == (0, "")
    head, modules, tensors = (part.splitlines() for part in done.stdout.split("\n\n"))
    assert head == [
        f"x.pth: torch zip, torch's names, {path.stat().st_size / 1000:.1f} kB",
        "19 tensors, 159 elements, 628 bytes: float32 608 bytes, int64 8 bytes, float16 12 bytes",
        "the state dict was found under 'model'",
        "taken off every name: 'module.'",
        "also in the file: epoch (3)",
        "tied: table = again",
    ]
    assert [line.split(maxsplit=4) for line in modules] == [
        ["module", "tensors", "elements", "bytes", "classes"],
        ["conv", "1", "54", "216", "Conv2d"],
        ["bn", "5", "13", "56", "BatchNorm"],
        ["fc", "2", "16", "64", "Linear"],
        ["block", "7", "70", "280", "Linear or Embedding or EmbeddingBag, 2 × Linear, LayerNorm or GroupNorm"],
        ["(in", "none)", "4", "12", "24  own parameter"],
    ]
    assert len(tensors) == 1 + len(RICH)
    assert tensors[1].split(maxsplit=1) == ["conv.weight", "float32  [3, 2, 3, 3]    216  Conv2d"]
    assert tensors[6].split() == ["bn.num_batches_tracked", "int64", "[]", "8", "BatchNorm"]


def test_the_first_twenty_and_all(inspect: Inspect, tmp_path: Path) -> None:
    save(tmp_path / "x.pth", {f"own.{number}": floats(1) for number in range(23)})
    lines = inspect("x.pth").stdout.splitlines()
    assert lines[-2].split()[0] == "own.19"
    assert lines[-1] == "… and 3 more (--all)"
    whole = inspect("x.pth", "--all").stdout.splitlines()
    assert whole[-1].split()[0] == "own.22"
    assert not any("more" in line for line in whole)


def test_json(inspect: Inspect, tmp_path: Path) -> None:
    path = several(tmp_path / "x.pth", model={f"module.{name}": tensor for name, tensor in RICH.items()})
    done = inspect("x.pth", "--json")
    assert done.stdout.count("\n") == 1
    found = json.loads(done.stdout)
    tensors = found.pop("tensors")
    assert found == {
        "path": "x.pth",
        "format": "torch zip",
        "size": path.stat().st_size,
        "files": 1,
        "framework": "torch",
        "wrapper": "model",
        "prefix": "module.",
        "total": {"tensors": 19, "elements": 159, "bytes": 628},
        "dtypes": {
            "float32": {"tensors": 16, "elements": 152, "bytes": 608},
            "int64": {"tensors": 1, "elements": 1, "bytes": 8},
            "float16": {"tensors": 1, "elements": 6, "bytes": 12},
        },
        "groups": [
            {"name": "conv", "tensors": 1, "elements": 54, "bytes": 216, "classes": {"Conv2d": 1}},
            {"name": "bn", "tensors": 5, "elements": 13, "bytes": 56, "classes": {"BatchNorm": 1}},
            {"name": "fc", "tensors": 2, "elements": 16, "bytes": 64, "classes": {"Linear": 1}},
            {
                "name": "block",
                "tensors": 7,
                "elements": 70,
                "bytes": 280,
                "classes": {"Linear or Embedding or EmbeddingBag": 1, "Linear": 2, "LayerNorm or GroupNorm": 1},
            },
            {"name": "", "tensors": 4, "elements": 12, "bytes": 24, "classes": {"own parameter": 1}},
        ],
        "tied": [["table", "again"]],
        "refused": {},
        "others": {"epoch": "3"},
        "note": None,
        "ambiguous": None,
        "nested": {},
        "compared": None,
        "source": None,
    }
    assert [tensor["name"] for tensor in tensors] == list(RICH)
    assert tensors[0] == {
        "name": "conv.weight",
        "dtype": "float32",
        "shape": [3, 2, 3, 3],
        "elements": 54,
        "bytes": 216,
        "class": "Conv2d",
    }


def test_a_converted_file_shows_mindspores_names_and_the_note(inspect: Inspect, tmp_path: Path) -> None:
    state = {**BATCH_NORM, "line.weight": floats(4, 2, 5), "fc.weight": floats(4, 3), "fc.bias": floats(4)}
    convert(save(tmp_path / "x.pth", {**state, "p.w": floats(2), "q": floats(2, 2)}), tmp_path / "x.ckpt")
    found = json.loads(inspect("x.ckpt", "--json").stdout)
    assert (found["format"], found["framework"]) == ("MindSpore ckpt", "mindspore")
    assert found["note"] == {
        "names": {"line.weight": "line.weight", "p.w": "p.w"},
        "shapes": {"line.weight": [4, 2, 5]},
        "aliases": {},
        "counters": {"bn.num_batches_tracked": 7},
    }
    assert {tensor["name"]: tensor["class"] for tensor in found["tensors"]} == {
        **dict.fromkeys(("bn.gamma", "bn.beta", "bn.moving_mean", "bn.moving_variance"), "BatchNorm"),
        "line.weight": "Conv1d or Conv2d with a kernel of 1×5",
        "fc.weight": "Dense",
        "fc.bias": "Dense",
        "p.w": "PReLU or a parameter of one's own",
        "q": "own parameter",
    }
    said = "noted by an earlier conversion, for the way back: 2 names, 1 shape, 1 counter"
    assert said in inspect("x.ckpt").stdout.splitlines()


def test_several_state_dicts_are_listed(inspect: Inspect, tmp_path: Path) -> None:
    several(tmp_path / "x.pth", first=SMALL, second={"own.a": floats(3)})
    done = inspect("x.pth")
    assert (done.returncode, done.stderr) == (0, "")
    assert "x.pth holds tensors under first, second; say which with --key NAME" in done.stdout.splitlines()
    assert [line.split() for line in done.stdout.splitlines()[-2:]] == [
        ["first", "8", "83", "336"],
        ["second", "1", "3", "12"],
    ]
    found = json.loads(inspect("x.pth", "--json").stdout)
    assert found["nested"]["second"] == {"tensors": 1, "elements": 3, "bytes": 12}
    assert (found["framework"], found["tensors"]) == (None, [])
    assert "no state dict under --key third; there is first, second" in inspect("x.pth", "--key", "third").stdout


def test_a_key_chooses(inspect: Inspect, tmp_path: Path) -> None:
    several(tmp_path / "x.pth", first=SMALL, second={"own.a": floats(3)})
    found = json.loads(inspect("x.pth", "--json", "--key", "second").stdout)
    assert (found["wrapper"], found["total"]["tensors"]) == ("second", 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent.pth"], "cannot read absent.pth: No such file"),
        (["page.pth"], "page.pth is an HTML"),
        (["x.pth", "--key", "ema"], "x.pth has no state dict under --key ema"),
    ],
)
def test_what_cannot_be_read_is_one_line(inspect: Inspect, tmp_path: Path, arguments: list[str], says: str) -> None:
    save(tmp_path / "x.pth", SMALL)
    (tmp_path / "page.pth").write_text("<html>")
    done = inspect(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"msmigrate inspect: {says}")
    assert done.stderr.count("\n") == 1


def test_whatever_torch_writes_can_be_looked_at(torch_files: tuple[Path, dict[str, Any]]) -> None:
    folder, expected = torch_files
    for name, tensors in expected.items():
        found = inspect_file(folder / name).checkpoint
        assert found is not None
        assert {key: [list(it.shape), it.dtype] for key, it in found.tensors.items()} == {
            key: value[:2] for key, value in tensors.items()
        }
    sparse = inspect_file(folder / "sparse.pth").checkpoint
    assert sparse is not None
    assert re.search("sparse", sparse.refused["a"])


def test_a_whole_model_tells_its_classes_itself(torch_files: tuple[Path, dict[str, Any]]) -> None:
    facts = inspect_file(torch_files[0] / "whole.pth")
    assert {"Conv2d", "BatchNorm2d"} < {*facts.classes.values()}  # the structure alone says BatchNorm


def test_no_tensor_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "x.pth", {"own.a": floats(200_000)})
    read, real = [], os.pread

    def counted(fd: int, length: int, offset: int) -> bytes:
        read.append(length)
        return real(fd, length, offset)

    monkeypatch.setattr(os, "pread", counted)
    assert inspect_file(path).total.nbytes == 800_000
    assert 0 < sum(read) < 10_000


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    save(tmp_path / "x.pth", SMALL)
    script = (
        "import sys; sys.argv = ['msmigrate', 'inspect', 'x.pth', *sys.argv[1:]]\n"
        "from msmigrate import cli\n"
        "try: cli.main()\n"
        "except SystemExit as end: assert not end.code\n"
        "print([name for name in ('torch', 'mindspore', 'numpy', 'pydantic', 'rich') if name in sys.modules])"
    )
    for arguments, loaded in (("--json",), "[]"), ((), "['rich']"):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == loaded
