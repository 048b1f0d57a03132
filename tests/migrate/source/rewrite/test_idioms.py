"""Ways of writing a model that MindSpore wants written otherwise, one small module for each."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from msmigrate.migrate import model_spec
from msmigrate.migrate.source.emit.file_builder import Emitted, build_file
from msmigrate.migrate.source.observe.observations import Observations

MODEL = '''
from collections import namedtuple
from dataclasses import dataclass
from functools import partial
from typing import Optional, Union

import torch
from torch import nn
import torch.nn.functional as F

Outputs = namedtuple("Outputs", ["logits", "aux"])


@dataclass
class Config:
    width: int
    norm: type[nn.Module] = nn.BatchNorm2d


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class Narrow(nn.Conv2d):
    """A convolution of torch's class:`torch.nn.Conv2d`."""

    def __init__(self, width: int):
        super().__init__(width, width, kernel_size=1, bias=True)


class Conv(nn.Module):
    def __init__(self, inside: int, outside: int, **kwargs):
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, bias=False, **kwargs)

    def forward(self, x):
        return self.conv(x)


class Never(nn.Module):
    pass


class Act(nn.Module):
    """Chooses.

    Args:
        hard (bool): whether
        kind (Callable[..., torch.nn.Module]): unused here
    """

    def __init__(self, hard: bool, kind: Optional[Union[Conv, Never]] = None, more: bool = False) -> None:
        super().__init__()
        if more:
            self.other = kind()
        act = nn.Hardswish if hard else nn.ReLU
        self.act = act(inplace=True)

    def forward(self, x):
        return self.act(x)


class Dense(nn.ModuleDict):
    def __init__(self, width: int):
        super().__init__()
        for i in range(2):
            self.add_module(f"layer{i}", Conv(width, width, kernel_size=3, padding=1))

    def forward(self, x):
        for name, layer in self.items():
            x = x + layer(x)
        return x


def make_body(width: int, depth: int):
    layers = []
    for i in range(depth):
        layers += [Act(i == 0, None)]
    return nn.Sequential(*layers)


class Net(nn.Module):
    def __init__(self, body: nn.Module, config: Config, norm=partial(LayerNorm2d, eps=1e-6)) -> None:
        super().__init__()
        width = config.width
        self.stem = Conv(3, width, kernel_size=(1, 3), padding=(0, 1), stride=2)
        self.point = Conv(width, width, kernel_size=1)
        self.norm = norm(width)
        self.bn = config.norm(width)
        self.body = body
        self.blocks = nn.ModuleList()
        self.blocks.append(Dense(width))
        self.narrow = Narrow(width)
        self.head = nn.Linear(width, 4)
        self.head.bias.data.zero_()
        self.narrow.bias[: width // 2].data.zero_()
        nn.init.normal_(self.narrow.weight.data[:1], std=0.1)
        nn.init.uniform_(self.head.weight, -0.1, 0.1)
        self.register_buffer("index", self.table())
        self.made = Made()

    def table(self):
        grid = torch.stack(torch.meshgrid(torch.arange(2), torch.arange(2), indexing="ij"))
        grid[0] += 1
        return grid.sum(0)

    def forward(self, x):
        x = self.narrow(self.body(self.bn(self.norm(self.point(self.stem(x))))))
        for block in self.blocks:
            x = block(x)
        x = torch.cat([x[..., 0::2, :], x[:, :, 1::2]], 1).narrow(1, 0, 8) + self.made(x[:1, :4]).mean()
        if sum(x.shape) > 0:
            x = x.sum((2, 3))
        y = x.clone()
        y[:, 0].fill_(1.0)
        y[:, 1].mul_(2.0)
        y.add_(1.0)
        if self.training:
            return Outputs(self.head(x), y)
        return self.head(x)


import functools


def widths(count: int):
    return list(reversed([4, 8, 16][:count]))


class Made(nn.Module):
    _net: torch.nn.modules.container.Sequential
    _more: torch.optim.Optimizer

    def __init__(self, width: int = 4):
        super().__init__()
        self.scale, self.bound = nn.Parameter(torch.tensor(0.5)), nn.Parameter(torch.full((width,), 0.25))
        self.draws = nn.Parameter(torch.randn(width, width)), torch.rand([width])
        self._net = nn.Sequential(nn.ConvTranspose2d(4, width, 3, padding=1), nn.ConvTranspose2d(width, 4, 1))
        # how wide it is
        if width > 8: width = 8
        self.width = width
        self.act = functools.partial(nn.LeakyReLU, 0.2)
        self.partial = [isinstance(self.act, functools.partial), *widths(2)]

    def forward(self, x) -> torch.distributions:
        # of the first
        for k in range(2): x = F.pad(x, [k // 2, k])
        return self._net(x) * self.scale * x.max() + self.bound.min()


def build():
    return Net(make_body(8, 2), Config(8))
'''


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Emitted:
    file = tmp_path_factory.mktemp("model") / "model.py"
    file.write_text(MODEL)
    report = model_spec.ask("source.observe.torch_observe_worker", f"{Path(file)}:build", "convert-model", "2x3x8x8")
    return build_file(Observations(report), "build", "A net.")


@pytest.mark.parametrize(
    "line",
    [
        # what `**kwargs` was, with torch's defaults, and a padding that is now a number and now a pair
        "def __init__(self, inside: int, outside: int, kernel_size: tuple[int, ...] | int, "
        "padding: tuple[int, ...] | int=0, stride: int=1):",
        "self.conv = nn.Conv2d(inside, outside, kernel_size, stride=stride, pad_mode='pad', "
        "padding=padding if isinstance(padding, int) else (padding[0], padding[0], padding[1], padding[1]))",
        # classes that come from torch's
        "class LayerNorm2d(nn.LayerNorm):",
        "weight=self.gamma, bias=self.beta, eps=self.epsilon",
        "norm=partial(LayerNorm2d, epsilon=1e-06)",
        "self.norm = norm((width,))",
        "super().__init__(width, width, 1, has_bias=True, pad_mode='valid')",
        # what nothing uses stays where something that is read comes after it
        "def __init__(self, hard: bool, kind: Optional[Conv]=None, more: bool=False) -> None:",
        "layers += [Act(i == 0, None)]",
        "def build(**kwargs: Any) -> Net:",
        "return Net(make_body(2), Config(8), **kwargs)",
        # what did not run, and of which too little is known
        "raise NotImplementedError('model.py:58: when this was written, this did not run, and could not be read: what "
        "kind calls is not known')",
        # a variable that holds now this class and now that
        "act = nn.HSwish if hard else nn.ReLU",
        "self.act = act()",
        # cells that are added to one that has its name already
        "self[f'layer{i}'] = Conv(width, width, kernel_size=3, padding=1)",
        "self.blocks.append(Dense(width))",
        "self.update_parameters_name()",
        # values changed in place
        "self.head.bias.set_data(initializer(Zero(), self.head.bias.shape, self.head.bias.dtype))",
        "self.narrow.bias[:width // 2] = 0",
        "self.narrow.weight.data[:1] = initializer(Normal(sigma=0.1), self.narrow.weight.data[:1].shape, "
        "self.narrow.weight.data[:1].dtype).init_data()",
        "y[:, 0] = 1.0",
        "y[:, 1] = ops.mul(y[:, 1], 2.0)",
        "y = ops.add(y, 1.0)",
        # short ways of saying it, and Python's own functions
        "grid = ops.stack(meshgrid((ops.arange(2), ops.arange(2))))",
        "if sum(x.shape) > 0:",
        "x = ops.sum(x, (2, 3))",
        # slices with a step, whose gradient MindSpore's CPU does not compute from four dimensions on
        "ops.cat([getitem(x, (..., slice(0, None, 2), slice(None))), "
        "getitem(x, (slice(None), slice(None), slice(1, None, 2)))], axis=1)",
        # a named tuple, through which a compiled function passes no gradient
        "return (self.head(x), y)",
        "norm: type[nn.Cell] = nn.BatchNorm2d",
        # hints by torch's longer names, and of what MindSpore lacks
        "_net: nn.SequentialCell\n    _more: Any\n",
        "def construct(self, x) -> Any:",
        # sizes and numbers that are written out
        "self.scale, self.bound = (Parameter(mindspore.tensor(0.5)), Parameter(ops.full((width,), 0.25, "
        "dtype=mindspore.float32)))",
        "self.draws = (Parameter(ops.randn(width, width)), ops.rand(width))",
        "nn.Conv2dTranspose(4, width, 3, pad_mode='pad', padding=1, has_bias=True), nn.Conv2dTranspose(width, 4, 1, "
        "pad_mode='pad', has_bias=True)",
        "x = pad(x, (k // 2, k))",
        # what runs only as the model is made stays, and partial has one name
        "return list(reversed([4, 8, 16][:count]))",
        "self.partial = [isinstance(self.act, partial), *widths(2)]",
        "self.scale * ops.amax(x) + ops.amin(self.bound)",
        # a comment above a statement with its block in one line
        "# how wide it is\n        if width > 8:",
        "# of the first\n        for k in range(2):\n            x = pad(",
    ],
)
def test_what_is_written(source: Emitted, line: str) -> None:
    assert line in source.text


def test_all_of_it_is_written(source: Emitted) -> None:
    assert source.problems == []
    assert "torch." not in source.text.replace("torch's", "").partition("class Conv")[2]
    assert "Never" not in source.text and "import functools" not in source.text
    ast.parse(source.text)
