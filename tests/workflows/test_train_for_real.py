"""`msmigrate train` with nothing pretended: MindSpore trains, and the command proves, shows, stops and goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.training.run.run_log import read

RECIPE = """
model: {name: lenet5}
data:
  source: digits:train
  validation: digits:test
  batch: 64
  transforms: [{name: Resize, args: {size: 32}}, {name: ToTensor}, {name: Normalize, args: {mean: [0.5], std: [0.5]}}]
optimizer: {name: SGD, args: {lr: 0.05, momentum: 0.9}}
ema: {decay: 0.9}
train: {epochs: 2, log_every: 1}
"""
COMMAND = (sys.executable, "-m", "msmigrate", "train")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "r.yaml").write_text(RECIPE)
    return tmp_path


def train(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run(
        [*COMMAND, *options], capture_output=True, text=True, cwd=folder, env=environment, timeout=500
    )


def summary(folder: Path) -> Any:
    return json.loads((folder / "runs" / "r" / "summary.json").read_text())


def test_a_run_is_cut_short_and_goes_on(folder: Path) -> None:
    done = train(folder, "r.yaml", "--skip-parity", "--mode", "pynative", "--max-steps", "2")
    assert done.returncode == 0, done
    assert "Trained: 2 steps" in done.stdout and "The step was not proven" in done.stdout
    assert "step 1/2" in done.stderr and "validation: loss" in done.stderr and "EMA top-1" in done.stderr
    assert "ONEDNN_MAX_CPU_ISA" in done.stderr or "ONEDNN_MAX_CPU_ISA" in os.environ
    assert read(folder / "runs" / "r" / "log.jsonl").gate == summary(folder)["gate"]
    assert (folder / "runs" / "r" / "training.png").exists()
    done = train(folder, "--out", "runs/r", "--resume", "--skip-parity", "--max-steps", "3", "--json")
    assert done.returncode == 0, done
    content = json.loads(done.stdout)
    assert (content["steps"], content["mode"], content["status"]) == (3, "pynative", "done")
    assert len(read(folder / "runs" / "r" / "log.jsonl").steps) == 3
    assert "holds a run" in train(folder, "r.yaml", "--skip-parity").stderr


@pytest.mark.full
def test_a_run_goes_to_torch_and_comes_back(folder: Path) -> None:
    done = train(folder, "r.yaml", "--skip-parity", "--mode", "pynative", "--max-steps", "2")
    assert done.returncode == 0, done
    kept = folder / "runs" / "r" / "checkpoints" / "step-00000002.ckpt"
    convert = [sys.executable, "-m", "msmigrate", "convert-ckpt", str(kept), "there.pth", "--training"]
    done = subprocess.run(convert, capture_output=True, text=True, cwd=folder, timeout=100)
    assert done.returncode == 0, done
    options = ("--skip-parity", "--mode", "pynative", "--max-steps", "3", "--json")
    done = train(folder, "r.yaml", "--out", "back", "--continue-from", "there.pth", *options)
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["steps"] == 3
    assert "going on from" in done.stderr and "after step 2" in done.stderr and "warning: there" not in done.stderr
    assert [line.step for line in read(folder / "back" / "log.jsonl").steps] == [3]
    done = train(folder, "r.yaml", "--out", "again", "--continue-from", str(kept), *options)
    assert done.returncode == 2 and "go on from it with --resume" in done.stderr


@pytest.mark.full
def test_a_proven_run_is_interrupted_and_goes_on_without_another_proof(folder: Path) -> None:
    first = subprocess.Popen(
        [*COMMAND, "r.yaml"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )
    assert first.stderr is not None
    for line in first.stderr:
        if "validation" in line:
            first.send_signal(signal.SIGINT)
            break
    out, err = first.communicate(timeout=60)
    assert first.returncode == 130 and err.endswith("msmigrate: interrupted\n")
    assert "Parity:" in out and "Interrupted:" in out and "--resume" in out
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(folder) not in listed
    done = train(folder, "r.yaml", "--resume")
    assert done.returncode == 0, done
    assert "the proof that the run began with still holds" in done.stderr and "Parity:" not in done.stdout
    assert summary(folder)["gate"]["parity"] == "passed" and summary(folder)["steps"] == 44
    best = summary(folder)["best"]
    assert best["top1"] > 0.5 and Path(best["checkpoint"]).exists()


@pytest.mark.full
def test_two_processes_train_together(folder: Path) -> None:
    done = train(folder, "r.yaml", "--skip-parity", "--nproc", "2", "--max-steps", "2", "--mode", "pynative")
    assert done.returncode == 0, done
    assert "in 2 processes" in done.stderr and summary(folder)["processes"] == 2
    assert "lower data.batch" in train(folder, "r.yaml", "--skip-parity", "--nproc", "40", "--out", "x").stderr


@pytest.mark.full
def test_what_is_compiled_again_is_a_warning_of_the_run(folder: Path) -> None:
    text = RECIPE.replace("batch: 64", "batch: 1000\n  drop_last: false").replace("train: {", "train: {mode: graph, ")
    (folder / "r.yaml").write_text(text)
    done = train(folder, "r.yaml", "--skip-parity")
    assert done.returncode == 0, done
    again = "the step is compiled again: images has shape [437, 1, 32, 32], before [1000, 1, 32, 32]. Write instead: "
    assert done.stderr.count(f"warning: {again}batches of one size") == 1, done.stderr


OWN_NET = """
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Conv2d(width, width, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.fc(x.mean((2, 3), keepdim=True)))


class Net(nn.Module):
    def __init__(self, width, num_classes):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.gate = Gate(width)
        self.head = nn.Linear(width * 16, num_classes)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.stem(x)), 2)
        return self.head(torch.flatten(self.gate(x), 1))


def build(width=4, num_classes=10):
    return Net(width, num_classes)
"""
OWN_RECIPE = """
model: {name: net.py:build, args: {width: 6}, source: port.py, classes: 10}
data: {source: digits:train, validation: digits:test, batch: 64, transforms: [{name: ToTensor}]}
optimizer: {name: SGD, args: {lr: 0.2, momentum: 0.9}}
train: {epochs: 2}
"""


@pytest.mark.full
def test_a_model_of_one_s_own_is_written_proven_trained_evaluated_and_exported(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(OWN_NET)
    (tmp_path / "r.yaml").write_text(OWN_RECIPE)

    def msmigrate(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "msmigrate", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=500)
        assert done.returncode == 0, done
        return done

    msmigrate("convert-model", "net.py:build(width=6)", "1x1x8x8", "-o", "port.py", "--no-proof")
    assert "Parity" in msmigrate("train", "r.yaml").stdout
    best = "runs/r/checkpoints/best.ckpt"
    found = json.loads(msmigrate("eval", best, "--recipe", "r.yaml", "--json").stdout)
    assert found["images"] == 360 and found["top1"] > 0.5
    assert summary(tmp_path)["best"]["top1"] == pytest.approx(found["top1"])
    out = msmigrate("export", best, "--recipe", "r.yaml", "-o", "net.mindir").stdout
    assert "MindSpore = torch: off by" in out and "MindIR = MindSpore" in out


TAGGER = """
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, words, tags):
        super().__init__()
        self.embed = nn.Embedding(words, 8)
        self.recurrent = nn.GRU(8, 12, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, tags)

    def forward(self, words, known):
        x = self.embed(words) * known.unsqueeze(-1)
        x, last = self.recurrent(x)
        return torch.log_softmax(self.head(x), -1), last


def build():
    return Tagger(20, 4), (torch.randint(20, (2, 7)), torch.ones(2, 7))


def loss(outputs, labels, weight):
    scores, last = outputs
    counted = (labels >= 0).to(scores.dtype)
    taken = scores.gather(2, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return -(taken * counted).sum() / counted.sum() + weight * (last**2).mean()
"""
TAGGER_LOSS = """
from mindspore import ops


def loss(outputs, labels, weight):
    scores, last = outputs
    counted = (labels >= 0).astype(scores.dtype)
    taken = ops.gather_elements(scores, 2, ops.maximum(labels, 0).expand_dims(-1)).squeeze(-1)
    return -(taken * counted).sum() / counted.sum() + weight * (last**2).mean()
"""
TAGGER_RECIPE = """
model: {name: "net.py:build", source: port.py}
data: {source: "arrays:train.npz", validation: "arrays:val.npz", batch: 8, eval_batch: 16}
loss: {name: "net.py:loss", args: {weight: 0.01}, source: losses.py}
optimizer: {name: Adam, args: {lr: 0.02}}
clip: {max_norm: 1.0}
accumulate: 2
ema: {decay: 0.9}
train: {epochs: 4}
"""


@pytest.mark.full
def test_a_model_of_tokens_two_inputs_and_two_outputs_goes_all_the_way(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(TAGGER)
    (tmp_path / "losses.py").write_text(TAGGER_LOSS)
    (tmp_path / "r.yaml").write_text(TAGGER_RECIPE)
    random = np.random.default_rng(0)
    for name, count in (("train", 100), ("val", 30)):
        words = random.integers(0, 20, (count, 7))
        known = (np.arange(7) < random.integers(2, 8, (count, 1))).astype(np.float32)
        labels = np.where(known > 0, words % 4, -1)
        arrays: dict[str, Any] = {"input": words, "input.1": known, "labels": labels}
        np.savez(tmp_path / f"{name}.npz", **arrays)

    def msmigrate(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "msmigrate", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=500)
        assert done.returncode == code, done
        return done

    msmigrate("convert-model", "net.py:build", "-o", "port.py", "--no-proof")
    done = msmigrate("train", "r.yaml")
    assert "Parity" in done.stdout and "(100 rows)" in done.stderr
    best = summary(tmp_path)["best"]
    assert best["loss"] < 0.8 and best["top1"] is None
    of_best = [best["checkpoint"], "--recipe", "r.yaml", *(["--ema"] if best["ema"] else [])]
    found = json.loads(msmigrate("eval", *of_best, "--json").stdout)
    assert found["images"] == 30 and found["top1"] is None
    assert found["loss"] == pytest.approx(best["loss"], rel=1e-5)
    msmigrate("predict", of_best[0], "val.npz", "--out", "o.npz", *of_best[1:])
    with np.load(tmp_path / "o.npz") as outputs:
        shapes = {name: array.shape for name, array in outputs.items()}
    assert shapes == {"output": (30, 7, 4), "output.1": (2, 2, 16, 12)}, "a state of two layers, for each batch"
    out = msmigrate("export", *of_best, "-o", "net.mindir").stdout
    assert "MindSpore = torch" in out and "MindIR = MindSpore" in out
    assert f"run on 4 rows of {tmp_path / 'train.npz'}, in batches of 1" in out
    # a loss that divides by the filled-up words too is another one
    (tmp_path / "losses.py").write_text(TAGGER_LOSS.replace("/ counted.sum()", "/ labels.size"))
    assert "No parity" in msmigrate("parity-step", "r.yaml", "--no-replay", code=1).stdout


OF_TWO_LEVELS = """
from {package} import nn{more}

class Net(nn.{module}):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.head = nn.{linear}(64, 16), nn.{linear}(16, 16), nn.{linear}(32, 10)

    def {forward}(self, x):
        levels = [self.one(x.reshape(len(x), 64)).sigmoid()]
        levels.append(self.two(levels[0]).sigmoid())
        other = levels
        other.reverse()
        return self.head({cat}(levels, 1))
"""


@pytest.mark.full
def test_a_net_that_only_the_compiler_makes_another_is_not_trained(folder: Path) -> None:
    """MindSpore's compiler leaves out what is done under another name, without an error."""
    words = ("package", "more", "module", "linear", "forward", "cat")
    torchs = dict(zip(words, ("torch", "", "Module", "Linear", "forward", "torch.cat"), strict=True))
    ours = dict(zip(words, ("mindspore", ", ops", "Cell", "Dense", "construct", "ops.cat"), strict=True))
    (folder / "net.py").write_text("import torch\n" + OF_TWO_LEVELS.format(**torchs))
    (folder / "net_ms.py").write_text(OF_TWO_LEVELS.format(**ours))
    model = "model: {name: net.py:Net, source: net_ms.py, classes: 10}"
    text = RECIPE.replace("model: {name: lenet5}", model).replace("size: 32", "size: 8").replace("ema", "# ema")
    (folder / "r.yaml").write_text(text)
    done = train(folder, "r.yaml", "--mode", "graph", "--max-steps", "1")
    assert done.returncode == 1 and "First divergence: forward (graph eval) (model)" in done.stdout, done
    assert "[graph-container-left-out]" in done.stdout and "--mode pynative trains" in done.stderr
    assert not (folder / "runs" / "r" / "checkpoints").exists()
    done = train(folder, "r.yaml", "--mode", "pynative", "--max-steps", "1")
    assert done.returncode == 0 and summary(folder)["gate"]["mode"] == "pynative", done
