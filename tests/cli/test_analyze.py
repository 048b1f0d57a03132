"""`msmigrate analyze`: what it prints and writes, and its exit codes: 0 moves, 1 something is missing, 2 bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

NET = """
import torch
from torch import nn

def plain():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten()), torch.ones(1, 3, 8, 8)

class Odd(nn.Module):
    def forward(self, x):
        return torch.sinc(torch.relu(x))

def odd():
    return Odd()
"""


def run(*words: object) -> subprocess.CompletedProcess[str]:
    """Run `python -m msmigrate analyze` in a process of its own."""
    line = [sys.executable, "-m", "msmigrate", "analyze", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


@pytest.fixture
def net(tmp_path: Path) -> str:
    """The file of nets, up to the colon behind which a function is named."""
    (tmp_path / "net.py").write_text(NET)
    return f"{tmp_path / 'net.py'}:"


def test_a_model_that_moves(net: str, tmp_path: Path) -> None:
    done = run(f"{net}plain", "--html", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"{net}plain moves: 4 operators, all direct"
    page = (tmp_path / "page.html").read_text()
    assert "mindspore.nn.Conv2d" in page and "<script" not in page


def test_one_that_lacks_an_operator_says_so_in_json(net: str) -> None:
    done = run(f"{net}odd", "--json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["moves"] is False and told["missing"] == ["torch.sinc"]
    assert told["operators"][-1]["lines"] == ["net.py:10"]
    assert told["costs"]["parameters"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing_like_this",), "names no model and no file"),
        (("none.onnx",), "there is no file none.onnx"),
        (("own.onnx", "--input", "1x3"), "--input is for torch models"),
        (("a:b", "c:d"), "One TARGET, or several with --coverage"),
        (("a:b", "--write-recipe", "x.yaml"), "--write-recipe is for a training script"),
        (("torchvision", "--coverage", "--html", "x.html"), "--coverage can be combined with"),
        (("train.py", "--input", "1x3"), "a script is read, not run"),
        ((), "Missing argument"),
    ],
)
def test_wrong_words_get_one_line(words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_a_file_that_is_neither_python_nor_onnx(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    done = run(tmp_path / "notes.txt")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"msmigrate analyze: {tmp_path / 'notes.txt'}: it is no ONNX file, or a damaged one: "
        "its protobuf does not end where it should, or takes far more memory than a file of its size needs"
    ]


def test_the_coverage_of_named_models(net: str) -> None:
    done = run(f"{net}plain", f"{net}odd", "--coverage", "--all")
    assert done.returncode == 1, done.stderr
    assert "plain" in done.stdout and "lacks sinc" in done.stdout and "6 different operators" in done.stdout


def test_a_script_is_read_and_not_run(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\nmodel = torch.nn.Linear(2, 3)\nraise SystemExit('ran')\n")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("mine")
    done = run(script, "--write-recipe", recipe)
    assert done.returncode == 2 and "is there already; --force replaces it" in done.stderr
    assert recipe.read_text() == "mine"
    done = run(script, "--write-recipe", recipe, "--force")
    assert done.returncode in (0, 1), done.stderr
    assert "nn.Linear" in done.stdout and recipe.read_text() != "mine"
