"""The command as a user meets it: exit codes, one line on stderr, and nothing heavy imported."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_checkpoints import SMALL, floats, save

HERE = Path(__file__).parent
Command = Callable[..., "subprocess.CompletedProcess[str]"]


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of an error, its exit code checked."""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("msmigrate convert-ckpt: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_converts_and_says_so(command: Command, tmp_path: Path) -> None:
    save(tmp_path / "x.pth", {f"module.{name}": tensor for name, tensor in SMALL.items()})
    done = command("x.pth", "x.ckpt", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    first, totals, dropped, prefix = done.stdout.splitlines()
    assert first.startswith("x.pth → x.ckpt: 7 tensors, ")
    assert totals == "torch 8: keep 3, rename 4, drop 1; MindSpore 7"
    assert dropped.startswith("dropped bn.num_batches_tracked: ")
    assert prefix == "taken off every name: 'module.'"


def test_dry_run_prints_the_plan_and_writes_nothing(command: Command, tmp_path: Path) -> None:
    save(tmp_path / "x.pth", SMALL)
    done = command("x.pth", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[:8]] == [
        ["keep" if name[:2] != "bn" else "drop" if "num" in name else "rename", name] for name in SMALL
    ]
    assert lines[4].endswith("BatchNorm  float32[3]           → bn.moving_variance")
    assert [path.name for path in tmp_path.iterdir()] == ["x.pth"]


def test_dry_run_shows_what_is_refused_and_exits_2(command: Command, tmp_path: Path) -> None:
    save(tmp_path / "x.pth", {**SMALL, "e.weight": floats(5, 4)})
    done = command("x.pth", "x.ckpt", "--dry-run", cwd=tmp_path)
    assert done.returncode == 2
    assert "refuse  e.weight" in done.stdout
    assert "it may belong to Linear or Embedding or EmbeddingBag" in done.stderr
    assert done.stderr.count("\n") == 1


def test_json(command: Command, tmp_path: Path) -> None:
    save(tmp_path / "x.pth", SMALL)
    plan = json.loads(command("x.pth", "--dry-run", "--json", cwd=tmp_path).stdout)
    result = json.loads(command("x.pth", "x.ckpt", "--json", cwd=tmp_path).stdout)
    assert plan["totals"] == {
        "keep": 3,
        "rename": 4,
        "transform": 0,
        "restore": 0,
        "drop": 1,
        "refuse": 0,
        "read": 8,
        "written": 7,
        "bytes": 328,
    }
    assert plan["tensors"][1] == {
        "action": "rename",
        "name": "bn.weight",
        "target": "bn.gamma",
        "class": "BatchNorm",
        "dtype": "float32",
        "shape": [3],
        "target_shape": [3],
        "target_dtype": "float32",
        "bytes": 12,
        "why": None,
    }
    assert result["bytes_written"] == (tmp_path / "x.ckpt").stat().st_size
    assert {key: result[key] for key in plan} == plan


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    save(tmp_path / "x.pth", SMALL)
    script = (
        "import sys; sys.argv = ['msmigrate', 'convert-ckpt', 'x.pth', 'x.ckpt']\n"
        "from msmigrate import cli\n"
        "try: cli.main()\n"
        "except SystemExit as end: assert not end.code\n"
        "print([name for name in ('torch', 'mindspore', 'numpy', 'rich', 'pydantic', 'pickle') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent.pth", "x.ckpt"], "cannot read absent.pth: No such file"),
        (["page.pth", "x.ckpt"], "page.pth is an HTML"),
        (["x.pth", "x.onnx"], "x.onnx ends in none of .ckpt"),
        (["x.pth", "absent/x.ckpt"], "the folder of absent/x.ckpt does not exist"),
        (["x.pth", "old.ckpt"], "old.ckpt exists; pass --force"),
        (["x.pth", "x.ckpt", "--key", "ema"], "no state dict under --key ema"),
        (["x.pth", "x.ckpt", "--model", "resnet50"], "does not name a model"),
        (["x.pth", "x.ckpt", "--into", "a:b(c)"], "does not name a model"),
        (["x.pth", "x.ckpt", "--into", "a:b(**{})"], "does not name a model"),
    ],
)
def test_wrong_input_is_one_line(command: Command, tmp_path: Path, arguments: list[str], says: str) -> None:
    save(tmp_path / "x.pth", SMALL)
    (tmp_path / "page.pth").write_text("<html>")
    (tmp_path / "old.ckpt").write_text("old")
    before = sorted(tmp_path.iterdir())
    assert says in refused(command(*arguments, cwd=tmp_path))
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "old.ckpt").read_text() == "old"


@pytest.mark.parametrize("arguments", [[], ["x.pth"], ["x.pth", "x.ckpt", "--nonsense"]])
def test_wrong_usage(command: Command, arguments: list[str]) -> None:
    done = command(*arguments)
    assert refused(done).endswith("(try 'msmigrate convert-ckpt -h')\n")


@pytest.mark.parametrize("old", [None, "the old file"])
def test_a_disk_that_fills_up(command: Command, tmp_path: Path, old: str | None) -> None:
    save(tmp_path / "x.pth", {"a": floats(300_000)})
    if old is not None:
        (tmp_path / "x.ckpt").write_text(old)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))

    line = refused(command("x.pth", "x.ckpt", "--force", cwd=tmp_path, preexec_fn=limit))
    assert "File too large; " + ("nothing was left behind" if old is None else "the old file is unchanged") in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.pth"] if old is None else ["x.ckpt", "x.pth"]
    if old is not None:
        assert (tmp_path / "x.ckpt").read_text() == old


def test_ctrl_c(tmp_path: Path) -> None:
    save(tmp_path / "x.pth", {"a": floats(300_000)})
    script = (
        "import os, signal, sys\n"
        "from msmigrate import cli\nfrom msmigrate.reports import checkpoint\n"
        "checkpoint.LateProgress.__call__ = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['msmigrate', 'convert-ckpt', 'x.pth', 'x.ckpt']; cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode not in (0, -signal.SIGINT)
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x.pth"]


@pytest.fixture
def torch_file(torch_files: tuple[Path, dict[str, Any]], tmp_path: Path) -> Callable[[str], Path]:
    return lambda name: torch_files[0] / name


NETS = f"{HERE / 'nets_torch.py'}:"
CELLS = f"{HERE / 'nets_mindspore.py'}:"


@pytest.mark.parametrize("function", ["text", "values"])
def test_model_settles_what_is_ambiguous(
    command: Command, torch_file: Callable[[str], Path], tmp_path: Path, function: str
) -> None:
    done = command(torch_file("text.pth"), tmp_path / "x.ckpt", "--json", "--model", NETS + function)
    assert done.returncode == 0, done.stderr
    assert {entry["name"]: (entry["target"], entry["class"]) for entry in json.loads(done.stdout)["tensors"]} == {
        "embed.weight": ("embed.embedding_table", "Embedding"),
        "head.weight": ("head.weight", "Linear"),
        "norm.weight": ("norm.gamma", "nets_torch.OwnNorm"),
        "norm.bias": ("norm.beta", "nets_torch.OwnNorm"),
        "token.weight": ("token.weight", "nets_torch.Token"),
    }


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (f"{NETS}recurrent", "it lacks rnn.weight_ih_l0"),
        (f"{NETS}broken", "failed: ZeroDivisionError: the user's own mistake (nets_torch.py, line "),
        (f"{NETS}number", "it returns int, not a torch.nn.Module"),
        (f"{NETS}absent", "has no function absent"),
        ("absent.py:text", "there is no file absent.py"),
        ("no_such_module:text", "there is no module no_such_module"),
        ("torchvision:resnet51", "torchvision has no model resnet51; did you mean resnet50"),
    ],
)
def test_models_that_do_not_help(
    command: Command, torch_file: Callable[[str], Path], tmp_path: Path, model: str, says: str
) -> None:
    assert says in refused(command(torch_file("text.pth"), tmp_path / "x.ckpt", "--model", model))
    assert list(tmp_path.iterdir()) == []


def test_a_model_with_another_head_is_noted(
    command: Command, torch_file: Callable[[str], Path], tmp_path: Path
) -> None:
    done = command(torch_file("text.pth"), tmp_path / "x.ckpt", "--model", f"{NETS}text(words=7)")
    assert f"note: embed.weight is 6×4, in {NETS}text(words=7) 7×4" in done.stdout


def test_into_settles_and_checks_both_sides(
    command: Command, torch_file: Callable[[str], Path], tmp_path: Path
) -> None:
    done = command(torch_file("text.pth"), tmp_path / "x.ckpt", "--into", f"{CELLS}text")
    assert done.returncode == 0, done.stderr
    assert f"filling 5 of 5 parameters of {CELLS}text" in done.stdout


def test_into_drops_the_second_name_of_a_tied_tensor(
    command: Command, torch_file: Callable[[str], Path], tmp_path: Path
) -> None:
    done = command(torch_file("tied_text.pth"), tmp_path / "x.ckpt", "--into", f"{CELLS}tied")
    assert done.returncode == 0, done.stderr
    assert "dropped head.weight: tied: the same bytes as embed.embedding_table" in done.stdout


def test_what_a_norm_without_weights_holds_is_wanted_from_nowhere(
    command: Command, torch_file: Callable[[str], Path], tmp_path: Path
) -> None:
    done = command(torch_file("text.pth"), tmp_path / "x.ckpt", "--into", f"{CELLS}weightless")
    assert done.returncode == 0, done.stderr
    assert f"filling 5 of 5 parameters of {CELLS}weightless" in done.stdout


def test_into_a_net_of_another_size(command: Command, torch_file: Callable[[str], Path], tmp_path: Path) -> None:
    line = refused(command(torch_file("text.pth"), tmp_path / "x.ckpt", "--into", f"{CELLS}text(words=9)"))
    assert "embed.weight: it may belong to Linear or Embedding or EmbeddingBag, and the net has no parameter" in line
    assert list(tmp_path.iterdir()) == []


def test_into_one_of_our_own_nets(command: Command, torch_file: Callable[[str], Path], tmp_path: Path) -> None:
    line = refused(command(torch_file("net.pth"), tmp_path / "x.ckpt", "--into", "msmigrate:resnet5"))
    assert "did you mean resnet50" in line
    assert list(tmp_path.iterdir()) == []
