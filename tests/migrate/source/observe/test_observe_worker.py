"""What is reported of a model is what it did: whatever was reported before, and whichever code looks the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msmigrate.errors import BadInput
from msmigrate.migrate import model_spec
from msmigrate.migrate.source.emit.file_builder import build_file
from msmigrate.migrate.source.observe.observations import Observations

SHARED = """
import functools

import torch
from torch import nn


def checked(method):
    @functools.wraps(method)
    def wrapper(*args, **kwargs):
        if not args:
            raise TypeError("nothing given")
        return method(*args, **kwargs)

    return wrapper


def applied(function, x):
    return function(x)


class Scaled(nn.Module):
    @checked
    def forward(self, x):
        return torch.relu(x.to(torch.float32))
"""
FIRST = """
from shared import *


class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.scaled, self.fc = Scaled(), nn.Linear(4, 4)

    def forward(self, x):
        return self.scaled(self.fc(x))
"""
SECOND = """
from shared import *


class Second(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        for _ in range(2):
            width = abs(width)
        self.first, self.second = nn.Linear(width, width, bias=getattr(self, "bias", True)), nn.Linear(width, 2)
        self.scaled = Scaled()

    def forward(self, x):
        return self.second(self.scaled(self.first(x)))
"""
ALIKE = """
import torch
from torch import nn


class {name}(nn.Module):
    def forward(self, x):
        return torch.relu(x.to(torch.float32))
"""
NESTED = """
import torch
from torch import nn


def double(x):
    return 2 * x


def plain(function):
    def wrapper(x):
        return function(double(x))

    return wrapper


early = plain(torch.relu)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.late = plain(torch.tanh)

    def forward(self, x):
        return early(x) + self.late(x)


def build():
    return Net()
"""
REPORTS = """
import json, sys
from msmigrate.migrate.source.observe.torch_observe_worker import report
for spec in sys.argv[2:]:
    told = report(spec, sys.argv[1])
print(json.dumps(told))
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Two models of one file, which share a decorator and a module of another."""
    (tmp_path / "shared.py").write_text(SHARED)
    build = "\n\ndef first():\n    return First()\n\n\ndef second():\n    return Second()\n"
    (tmp_path / "models.py").write_text(FIRST + SECOND + build)
    return tmp_path / "models.py"


def seen(file: Path, *names: str, seed: int = 0) -> dict[str, Any]:
    """What is reported of the last model, by the nodes in its files, after the others in the same process."""
    command = [sys.executable, "-c", REPORTS, "2x4", *(f"{file}:{name}" for name in names)]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    told = json.loads(done.stdout)
    found: dict[str, Any] = {}
    for function in (function for function in told["functions"] if Path(function["file"]).parent == file.parent):
        for number in range(*function["sites"]):
            key = f"{function['file']} {function['name']} {told['nodes'][number]}"
            entry = found.setdefault(key, {"reached": False})
            entry["reached"] |= number in told["reached"]
            for name in ("values", "calls", "constants"):
                entry.setdefault(name, []).extend(told[name].get(str(number)) or [])
    return found


COUNTING = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
    def forward(self, x):
        count = self.norm.num_batches_tracked
        return self.norm(x) + count
def build():
    return Net()
"""


@pytest.mark.full
def test_a_report_is_the_same_after_another_models(models: Path) -> None:
    alone = seen(models, "second")
    assert any("wrapper" in key and entry["reached"] for key, entry in alone.items())
    assert seen(models, "first", "second", seed=1) == alone


def test_code_that_equals_that_of_another_file_is_reported_of_both(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / f"{name}.py").write_text(ALIKE.format(name="Act"))
    text = "from torch import nn\nimport one, other\n\ndef build():\n    return nn.Sequential(one.Act(), other.Act())\n"
    (tmp_path / "net.py").write_text(text)
    told = model_spec.ask("source.observe.torch_observe_worker", f"{tmp_path / 'net.py'}:build", "convert-model", "2x4")
    ran = {Path(function["file"]).name for function in told["functions"] if function["name"] == "Act.forward"}
    assert ran == {"one.py", "other.py"}
    source = build_file(Observations(told), "build", "A net.")
    assert source.problems == []
    assert source.text.count("def construct") == 2


def test_a_function_inside_another_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NESTED)
    told = model_spec.ask("source.observe.torch_observe_worker", f"{tmp_path / 'net.py'}:build", "convert-model", "2x4")
    called = {name for names in told["calls"].values() for name in names}
    assert {"torch.relu", "torch.tanh", "net.double"} <= called
    assert not [name for name in called if "msmigrate" in name]


ON_MATRIX = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, matrix):
        super().__init__()
        self.matrix = matrix

    def forward(self, x):
        return x @ self.matrix


def large():
    return Net(torch.eye(4).repeat(1, 300))


def trained():
    return Net(nn.Linear(4, 3).weight.T)
"""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("large", "include 4 x 1200 float32 numbers, more than the 1024 that can be written into a file, "),
        ("trained", "Tensor float32 2"),
    ],
)
def test_large_arrays_and_weights_are_no_constants(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "net.py").write_text(ON_MATRIX)
    of = f"{tmp_path / 'net.py'}:{name}"
    told = model_spec.ask("source.observe.torch_observe_worker", of, "convert-model", "2x4")
    (problem,) = build_file(Observations(told), "build", "A net.").problems
    assert why in problem.text
    assert ("torch.from_numpy(np.load(path))" in problem.text) == (name == "large")


def test_what_cannot_be_written_outside_of_a_call_is_a_place_too(tmp_path: Path) -> None:
    """It ended the command with a traceback."""
    (tmp_path / "net.py").write_text(COUNTING)
    told = model_spec.ask("source.observe.torch_observe_worker", f"{tmp_path / 'net.py'}:build", "convert-model", "2x4")
    (problem,) = build_file(Observations(told), "build", "A net.").problems
    assert problem.line == 9 and problem.text.startswith("self.norm.num_batches_tracked, which no layer")


STOPPING = """
import torch
from torch import nn


class Step(nn.Module):
    def step(self, x):
        return x


class OnGpu(nn.Module):
    def forward(self, x):
        return x * torch.ones(3, device=torch.cuda.current_device())


class Wider(nn.Module):
    def forward(self, *given):
        if self.training:
            x, y, z = given
        else:
            x, y = given
        return x


def wider():
    return Wider(), (torch.ones(2, 3), torch.ones(2, 3))
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("Step", "2x3"), ("Step (stopping.py) has no forward", "a class whose forward calls the method")),
        (("OnGpu", "2x3"), ("it does not run: ", "(stopping.py, line 13); write .to(x.device) there")),
        (
            ("wider",),
            ("it runs in evaluation mode, and not in training mode: ValueError: ", "(stopping.py, line 19); "),
        ),
    ],
)
def test_what_does_not_run_says_what_to_write(words: tuple[str, ...], said: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "stopping.py").write_text(STOPPING)
    name, *shapes = words
    with pytest.raises(BadInput) as error:
        model_spec.ask("source.observe.torch_observe_worker", f"{tmp_path / 'stopping.py'}:{name}", "c", *shapes)
    assert all(one in str(error.value) for one in said), error.value


OF_SETTINGS = """
import functools
from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

cfg = SimpleNamespace(wide=4, seen=0)
same = SimpleNamespace(deep=2)


class Net(nn.Module):
    made = 0

    def __init__(self):
        super().__init__()
        Net.made += 1
        self.layer = nn.Linear(4, cfg.wide)
        self.norm = nn.BatchNorm1d(cfg.wide)

    def forward(self, x):
        cfg.seen += 1
        return checkpoint(self.norm, self.layer(x), use_reentrant=False) * same.deep


def build():
    cfg.wide = 6
    return Net()
"""


def test_settings_have_the_values_from_before_the_model_runs_and_what_making_it_changes_is_said(tmp_path: Path) -> None:
    """They had those from after the run. And what is checkpointed runs twice in torch, which is said, too."""
    (tmp_path / "net.py").write_text(OF_SETTINGS)
    found = model_spec.ask(
        "source.observe.torch_observe_worker", f"{tmp_path / 'net.py'}:build", "convert-model", "2x4"
    )
    settings = Observations(found).constants["net"]
    assert dict(settings["cfg"].kwargs) == {"wide": 6, "seen": 0} and settings["Net.made"] == 1
    making, checkpointing = found["notes"]
    assert making == "making the model changes cfg, Net.made: the new file has the value from after that"
    assert checkpointing.startswith(
        "checkpointing (BatchNorm1d) is left out: torch's backward pass would run this again"
    )
