"""What libraries of models write: tables of classes, settings, closures, options of None, parts of other models."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from msmigrate.migrate import model_spec
from msmigrate.migrate.source.emit.file_builder import Emitted, build_file
from msmigrate.migrate.source.observe.observations import Observations

MODEL = """
import collections.abc
from dataclasses import dataclass
from itertools import repeat

import torch
from torch import nn
from torch.jit import Final

if True:
    FUSED = 1


def use_fused() -> bool:
    return FUSED > 0


def _ntuple(n):
    def parse(x):
        if isinstance(x, collections.abc.Iterable):
            return tuple(x)
        return tuple(repeat(x, n))
    return parse


to_2tuple = _ntuple(2)


class Swish(nn.Module):
    def forward(self, x):
        return x * x.sigmoid()


HAS_SILU = hasattr(nn, "SiLU")
ACTS = dict(relu=nn.ReLU, silu=nn.SiLU if HAS_SILU else Swish, swish=Swish)
NEEDS = {Swish, nn.ReLU}


@dataclass
class Config:
    width: int = 8
    act: str = "relu"
    depth: int = 1


CONFIGS = {"small": Config(width=4), "large": Config(width=64, depth=4)}


class Norm(nn.BatchNorm2d):
    fast: Final[bool]

    def __init__(self, width, device=None, dtype=None):
        dd = {"device": device, "dtype": dtype}
        super().__init__(width, **dd)
        self.fast = use_fused()


class Block(nn.Module):
    def __init__(self, width, kernel, norm=Norm, device=None, dtype=None):
        super().__init__()
        dd = {"device": device, "dtype": dtype}
        sides = [k // 2 for k in to_2tuple(to_2tuple(kernel))]
        self.conv = nn.Conv2d(width, width, kernel, padding=sides, **dd)
        self.norm = norm(width, **dd)
        self.pool = nn.MaxPool2d(kernel, stride=[1, 1], padding=sides)
        self.add_module(*("act", ACTS["relu"]()))

    def forward(self, x):
        return self.act(self.pool(self.norm(self.conv(x))))


class Backbone(nn.Module):
    def __init__(self, config, device=None, dtype=None):
        super().__init__()
        dd = {"device": device, "dtype": dtype}
        self.features = nn.Sequential(nn.Conv2d(3, config.width, 1), Block(config.width, 3, **dd))
        self.classifier = nn.Linear(config.width, 10)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.ones_(m.weight)


def backbone(config, weights=None):
    model = Backbone(config)
    if weights is not None:
        model.load_state_dict(torch.load(weights))
    return model


class Net(nn.Module):
    def __init__(self, body, first, second):
        super().__init__()
        self.body, self.first, self.second = body, first, second

    def forward(self, x):
        x = self.body(x)
        return self.first(x) + self.second(x)


def build():
    conv = nn.Conv2d(4, 2, 1)
    return Net(backbone(CONFIGS["small"]).features, conv, nn.Sequential(conv))
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Emitted:
    file = tmp_path_factory.mktemp("model") / "model.py"
    file.write_text(MODEL)
    report = model_spec.ask("source.observe.torch_observe_worker", f"{file}:build", "convert-model", "2x3x8x8")
    return build_file(Observations(report), "build", "A net.")


@pytest.mark.parametrize(
    "line",
    [
        # a function that another one made as the file was imported
        "import collections.abc",
        "to_2tuple = _ntuple(2)",
        "if isinstance(x, collections.abc.Iterable):",
        "sides = [k // 2 for k in to_2tuple(to_2tuple(kernel))]",
        # of a table what was chosen
        "ACTS = dict(relu=nn.ReLU, silu=lambda *args, **kwargs: not_converted(",
        "swish=lambda *args, **kwargs: not_converted(",
        "setattr(self, *('act', ACTS['relu']()))",
        # how a package is set
        "self.fast = True",
        "fast: bool",
        # options of None, which say where and how torch keeps a tensor
        "def __init__(self, width):",
        "super().__init__(width)",
        "self.norm = norm(width)",
        # a list where MindSpore wants a tuple
        "stride=(1, 1), pad_mode='pad', padding=tuple(sides)",
        # part of another model, initialized with that; a dataclass of the file's top; a module in two places
        "first = nn.Conv2d(4, 2, 1, pad_mode='valid', has_bias=True)",
        "net = Net(Backbone(Config(width=4)).features, first, nn.SequentialCell(first))",
        "parameter.name = name",
    ],
)
def test_what_is_written(source: Emitted, line: str) -> None:
    assert line in source.text


@pytest.mark.parametrize(
    "word", ["class Swish", "HAS_SILU =", "NEEDS", "use_fused", "dd =", "device", "dtype=None", "weights"]
)
def test_what_nothing_needs_goes(source: Emitted, word: str) -> None:
    assert word not in source.text


def test_all_of_it_is_written(source: Emitted) -> None:
    assert source.problems == []
    ast.parse(source.text)


def test_a_file_that_is_imported_under_two_names_is_one(tmp_path: Path) -> None:
    """Of a package without an `__init__.py`, from inside and from above it: its functions were taken to be another's,
    so that what had run was written as if it had not."""
    inner = tmp_path / "restoring" / "nets"
    inner.mkdir(parents=True)
    (inner / "__init__.py").write_text("import importlib\nimportlib.import_module('restoring.nets.net')\n")
    (inner / "parts.py").write_text(
        "from torch import nn\n\n\nclass Part(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
        "        self.fc = nn.Linear(width, width)\n\n    def forward(self, x):\n        return self.fc(x) * 2\n"
    )
    (inner / "net.py").write_text(
        "from restoring.nets.parts import Part\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.parts = nn.ModuleList()\n"
        "        for _ in range(2):\n            self.parts.append(nn.Sequential(Part(8)))\n\n"
        "    def forward(self, x):\n        for part in self.parts:\n            x = part(x)\n        return x\n"
    )
    ask = "source.observe.torch_observe_worker", f"{inner / 'net.py'}:Net()", "convert-model", "2x8"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        report = model_spec.ask(*ask)
    found = build_file(Observations(report), "build", "A net.")
    assert "self.update_parameters_name()" in found.text and "# not run" not in found.text
    assert not found.problems and not found.not_run
