"""`msmigrate train --dry-run`: the whole plan, for a target that is not here too, and nothing started or written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msmigrate.printable import bytes_text
from msmigrate.reports.training_run import sparkline

RECIPE = """
model: {name: lenet5}
data:
  source: %s
  validation: digits:test
  batch: 64
  transforms: [{name: Resize, args: {size: 32}}, {name: ToTensor}, {name: Normalize, args: {mean: [0.5], std: [0.5]}}]
optimizer: {name: SGD, args: {lr: 0.05, momentum: 0.9}, no_weight_decay: [bias]}
schedule: {name: CosineAnnealingLR, args: {T_max: 44}}
train: {epochs: 2}
"""


def contents(folder: Path) -> list[str]:
    """What a folder holds, but for what Python itself leaves next to a file that it imports."""
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")


def plan(
    folder: Path, *options: str, source: str = "digits:train", text: str = RECIPE
) -> subprocess.CompletedProcess[str]:
    """The command, in a folder that it must leave as it is."""
    (folder / "r.yaml").write_text(text % source if "%s" in text else text)
    before = contents(folder)
    command = [sys.executable, "-m", "msmigrate", "train", "r.yaml", "--dry-run", *options]
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert contents(folder) == before
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_the_whole_plan_for_a_target_that_is_not_here(tmp_path: Path) -> None:
    done = plan(tmp_path, "--target", "Ascend", "--nproc", "8")
    assert done.returncode == 0, done
    text = " ".join(done.stdout.split())
    for expected in (
        "Ascend, graph mode, 8 processes: cannot be used here",
        "digits:train, 1,437 images, 10 classes of 141 to 146",
        "512 images a step; 179 an epoch for each process",
        "2 epochs of 2 steps: 4",
        "CosineAnnealingLR: learning rate 0.05",
        "lenet5, 61,706 parameters; images 1×32×32",
        "estimated: weights 246.8 kB",
        "parity-step will prove the step first",
        "msrun --worker_num=8 --local_worker_num=8",
        "mpirun -n 8",
        "export RANK_TABLE_FILE=",
    ):
        assert expected in text, expected
    assert "\x1b" not in done.stdout
    launched = done.stdout.index("launch (starts)")
    assert all(len(line) <= 80 for line in done.stdout[:launched].splitlines())


def test_the_plan_as_json(tmp_path: Path) -> None:
    done = plan(tmp_path, "--json", "--skip-parity", "--mode", "pynative", "--seed", "3", "--epochs", "1")
    content = json.loads(done.stdout)
    assert done.returncode == 0 and content["problems"] == []
    assert content["environment"]["usable"] is True and content["environment"]["target"] == "CPU"
    assert content["steps"] == {"epochs": 1, "steps_per_epoch": 22, "steps": 22, "max_steps": None}
    assert content["gate"]["state"] == "skipped" and content["recipe"]["seed"] == 3
    assert content["memory"]["fits"] is True
    assert [group["parameters"] for group in content["net"]["groups"]] == [236, 61470]
    assert content["launch"][0]["command"].endswith("JOB.json")


OWN = """
from mindspore import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(64, 10)

    def construct(self, x):
        sizes = {1, 2}
        return self.fc(x.reshape(x.shape[0], -1)) * len(sizes)


def resnet18():
    return Net()
"""
OWN_RECIPE = """
model: {name: "torchvision:resnet18", source: own.py}
data: {source: "digits:train", batch: 16, drop_last: false, transforms: [{name: ToTensor}]}
optimizer: {name: SGD, args: {lr: 0.1}}
train: {max_steps: 1}
"""


def test_a_step_that_does_not_compile_is_told_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    line = OWN.splitlines().index("        sizes = {1, 2}") + 1
    said = f"own.py:{line}: graph mode does not compile `sizes = {{1, 2}}`"
    done = plan(tmp_path, "--mode", "graph", "--skip-parity", text=OWN_RECIPE)
    text = " ".join(done.stdout.split())
    assert done.returncode == 2 and "graph the step does not compile: see below" in text, done
    assert f"It would not start here: {said}. Write instead: a tuple or a list: graph mode has no sets." in text
    content = json.loads(plan(tmp_path, "--mode", "graph", "--skip-parity", "--json", text=OWN_RECIPE).stdout)
    assert content["problems"] == [content["graph"]["problem"]] and said in content["problems"][0]
    done = plan(tmp_path, "--mode", "pynative", "--skip-parity", "--json", text=OWN_RECIPE)
    assert done.returncode == 0 and json.loads(done.stdout)["graph"] == {}


def test_the_step_is_compiled_for_each_size_of_batch(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN.replace("{1, 2}", "(1, 2)"))
    done = plan(tmp_path, "--mode", "graph", "--skip-parity", "--json", text=OWN_RECIPE)
    content = json.loads(done.stdout)
    assert done.returncode == 0 and (content["graph"]["batches"], content["graph"]["graphs"]) == ([16, 13], 2)
    again = "the step is compiled again: images has shape [13, 1, 8, 8], before [16, 1, 8, 8]. Write instead: batches"
    assert [text for text in content["warnings"] if text.startswith(again)], content["warnings"]
    whole = OWN_RECIPE.replace("drop_last: false", "drop_last: true")
    done = plan(tmp_path, "--target", "Ascend", "--skip-parity", text=whole)  # which trains in graph mode
    text = " ".join(done.stdout.split())
    assert "1 graph: the step on 16 made-up images, on CPU" in text and "compiled again" not in text


def test_what_would_stop_the_run_is_said_with_the_rest_of_the_plan(tmp_path: Path) -> None:
    run = tmp_path / "taken" / "checkpoints"
    run.mkdir(parents=True)
    (run / "best.ckpt").touch()
    (tmp_path / "none.json").write_text("{}")
    done = plan(tmp_path, "--out", "taken", "--parity-report", "none.json", source="folder:none")
    assert done.returncode == 2
    text = " ".join(done.stdout.split())
    assert text.count("It would not start here:") == 3
    for expected in (
        "there is no folder",
        "holds a run",
        "none.json is no report of parity-step",
        "lenet5, 61,706 parameters",
        "learning rate 0.05 at the start",
    ):
        assert expected in text, expected


def test_a_recipe_that_is_wrong_is_one_line(tmp_path: Path) -> None:
    done = plan(tmp_path, source="nowhere")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("values", "line"),
    [([0, 1, 2, 3], "▁▃▆█"), ([], ""), ([0.0], "▁▁▁▁"), ([1, 1], "████"), ([4, 3, 2, 1, 0], "█▆▅▁")],
)
def test_a_curve_in_one_line(values: list[float], line: str) -> None:
    drawn = sparkline(values, width=4)
    assert len(drawn) == len(line)
    if len(values) > 1:
        order = ["▁▂▃▄▅▆▇█".index(c) for c in drawn]
        assert order == sorted(order, reverse=values[0] > values[-1])
        assert "█" in drawn


def test_sizes_are_powers_of_ten() -> None:
    assert [bytes_text(n) for n in (0, 999_999, 1_000_000, 44_764_968, 1.2345e9)] == [
        "0 bytes",
        "1000.0 kB",
        "1.0 MB",
        "44.8 MB",
        "1.23 GB",
    ]
