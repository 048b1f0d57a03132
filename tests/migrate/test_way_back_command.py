"""convert-ckpt in both directions as a user meets it: what was restored, what was cast, and what the cast lost."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from msmigrate.cli.options import Size
from msmigrate.migrate.checkpoint.convert import convert, make_plan
from msmigrate.reports.checkpoint import plan_json, plan_text
from tiny_checkpoints import SMALL, Tensor, floats, save

Command = Callable[..., "subprocess.CompletedProcess[str]"]

TIED = {
    **SMALL,
    "table": floats(2, 3)._replace(storage="table"),
    "again": floats(2, 3)._replace(storage="table"),
}


def test_the_way_back_says_what_it_restores(command: Command, tmp_path: Path) -> None:
    save(tmp_path / "x.pth", TIED)
    there = command("x.pth", "x.ckpt", cwd=tmp_path).stdout.splitlines()
    assert there[1:] == [
        "torch 10: keep 4, rename 4, drop 2; MindSpore 8",
        "dropped bn.num_batches_tracked: only torch's cumulative average reads it, noted for the way back",
        "dropped again: tied: the same bytes as table, noted for the way back",
    ]
    plan = command("x.ckpt", "--dry-run", cwd=tmp_path).stdout.splitlines()
    assert [line.split() for line in plan if line.startswith("restore ")] == [
        ["restore", "table", "own", "parameter", "float32[2,", "3]", "→", "again", "(tied", "to", "table)"],
        ["restore", "bn.num_batches_tracked", "counter", "int64[]", "→", "bn.num_batches_tracked", "(noted)"],
    ]
    back = command("x.ckpt", "back.pth", cwd=tmp_path).stdout.splitlines()
    assert back[0].startswith("x.ckpt → back.pth: 10 tensors, ")
    assert back[1:] == [
        "MindSpore 8: keep 4, rename 4, restore 2; torch 10",
        "restored again, bn.num_batches_tracked: noted by an earlier conversion",
    ]


def test_json_has_the_note_and_what_was_restored(command: Command, tmp_path: Path) -> None:
    save(tmp_path / "x.pth", TIED)
    there = json.loads(command("x.pth", "x.ckpt", "--json", cwd=tmp_path).stdout)
    assert (there["from"], there["to"]) == ("torch", "mindspore")
    assert there["note"] == {
        "names": {},
        "shapes": {},
        "aliases": {"again": "table"},
        "counters": {"bn.num_batches_tracked": 7},
    }
    back = json.loads(command("x.ckpt", "back.pth", "--json", cwd=tmp_path).stdout)
    assert (back["from"], back["to"], back["note"]) == ("mindspore", "torch", None)
    assert (back["totals"]["read"], back["totals"]["restore"], back["totals"]["written"]) == (8, 2, 10)
    restored = [entry for entry in back["tensors"] if entry["action"] == "restore"]
    assert [(entry["target"], entry["why"]) for entry in restored] == [
        ("again", "tied to table"),
        ("bn.num_batches_tracked", "noted"),
    ]
    assert back["bytes_written"] == (tmp_path / "back.pth").stat().st_size


def test_a_training_state_in_a_torch_file_is_named(tmp_path: Path) -> None:
    save(tmp_path / "x.pth", SMALL)
    convert(tmp_path / "x.pth", tmp_path / "x.ckpt")
    plan = make_plan(tmp_path / "x.ckpt")._replace(record={"optimizer": {}, "global_step": 3})
    assert "next to the weights, which are under 'model': optimizer, global_step" in plan_text(plan).splitlines()
    found = plan_json(plan)
    assert (found["beside"], found["note"]) == (["optimizer", "global_step"], None)


LOSSY = {
    "own.large": Tensor(struct.pack("<4f", 1, 1e6, -1e30, float("inf")), (4,)),
    "own.small": Tensor(struct.pack("<4f", 1e-30, 0, 1e-7, 1), (2, 2)),
    "own.count": Tensor(struct.pack("<q", 3), (), "int64"),
}


def test_a_cast_says_what_it_loses(command: Command, tmp_path: Path) -> None:
    save(tmp_path / "x.pth", LOSSY)
    lines = command("x.pth", "y.pth", "--to", "torch", "--dtype", "float16", cwd=tmp_path).stdout.splitlines()
    assert lines[1:] == [
        "torch 3: keep 3; torch 3",
        "lost in the cast: 2 numbers overflowed to infinity: own.large (2)",
        "lost in the cast: 1 number vanished to zero: own.small (1)",
        "lost in the cast: 1 number became subnormal: own.small (1)",
        "cast from float32 to float16: 2 tensors",
    ]
    found = json.loads(command("x.pth", "x.ckpt", "--dtype", "float16", "--json", cwd=tmp_path).stdout)
    assert found["losses"] == {
        "overflowed": {"own.large": 2},
        "vanished": {"own.small": 1},
        "subnormal": {"own.small": 1},
    }
    assert [entry["target_dtype"] for entry in found["tensors"]] == ["float16", "float16", "int64"]
    plan = command("x.pth", "--dtype", "float16", "--dry-run", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[-2:] for line in plan[:2]] == [["→", "float16"]] * 2


def test_a_cast_that_loses_nothing_says_nothing(command: Command, tmp_path: Path) -> None:
    save(tmp_path / "x.pth", {"own.a": floats(3)})
    assert "lost" not in command("x.pth", "x.ckpt", "--dtype", "float16", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["x.pth", "y.pth", "--to", "mindspore"], "y.pth: a .pth is torch's; for --to mindspore give a name in .ckpt"),
        (["x.pth", "x.ckpt", "--dtype", "int8"], "--dtype int8: a cast goes to float64, float32, float16 or bfloat16"),
        (["x.pth", "x.onnx"], "x.onnx ends in none of .ckpt, .pth, .pt, .bin"),
        (["x.pth", "x.onnx", "--dry-run"], "x.onnx ends in none of .ckpt, .pth, .pt, .bin"),
        (["x.pth", "x.ckpt", "--max-shard-size", "4kB"], "--max-shard-size"),
    ],
)
def test_what_cannot_be_is_one_line(command: Command, tmp_path: Path, arguments: list[str], says: str) -> None:
    save(tmp_path / "x.pth", {"own.a": floats(2000)})
    done = command(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x.pth"]


@pytest.mark.parametrize(
    ("said", "count"),
    [("5GB", 5_000_000_000), ("500MB", 500_000_000), ("1.5kB", 1500), ("2GiB", 2 << 30), ("2 K", 2000), ("7", 7)],
)
def test_sizes(said: str, count: int) -> None:
    assert Size().convert(said, None, None) == count


@pytest.mark.parametrize("said", ["", "GB", "five", "-1GB", "5PB", "1e9", "5GBit"])
def test_what_is_no_size(said: str) -> None:
    with pytest.raises(click.BadParameter, match="is no size such as 5GB or 500MB"):
        Size().convert(said, None, None)
