"""Parts of tensors that are read and written, lists of modules from whatever gives them, and graphs of nodes."""

# ruff: noqa: PTH118, PTH123  # as people open files

from __future__ import annotations

import json
import os
import pathlib

import networkx as nx
import numpy as np
import torch
import yaml
from torch import nn
from torch.nn import functional as F


class Stepped(nn.Module):
    """Reads and writes every second place, of three axes, of four and of five."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)

    def forward(self, x):
        y, step = self.mix(x), 3
        y[:, step - 1 :: step] -= 0.5
        y[..., ::2] *= 2
        rows = y.reshape(2, 3, 2, 4).clone()
        rows[:, ::2].mul_(3.0)
        rows[:, 1::2].copy_(rows[:, :1] + 2)
        deep = rows.reshape(1, 2, 3, 2, 4).clone()
        deep[:, :, ::2] /= 1.5
        deep[:, :, 1::2, 0].fill_(0.25)
        return torch.cat([deep[:, :, ::2], deep[:, :, 1:]], 2).sum((0, 2)), y[:, ::2] + y[:, 1::2], rows[::2]


def stepped():
    return Stepped(), (torch.randn(2, 6, 4),)


class Inserted(nn.Module):
    """Puts something in before each place, the first of which has nothing before it; more places than are told apart."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.at = np.array([0, 2, 1, 4, 3, 5])

    def forward(self, x):
        y = self.mix(x)
        for place in self.at:
            y = torch.cat([y[:, :place], y[:, :1] * 0.5, y[:, place:]], 1)
        total = y.sum((0, 2))
        for count in range(7):
            total = torch.cat([total[:count], total[count:] * 1.5])
        return y, total


def inserted():
    return Inserted(), (torch.randn(2, 3, 4),)


def layers(count: int):
    yield from (nn.Linear(4, 4) for _ in range(count))


class Listed(nn.Module):
    """Lists of modules from tuples, generators, views and other lists."""

    def __init__(self, last=(nn.Tanh(), nn.Sigmoid())):
        super().__init__()
        self.pair = nn.ModuleList((nn.Linear(4, 4), nn.ReLU()))
        made = tuple(nn.Linear(4, 4) for _ in range(2))
        self.made = nn.ModuleList(made)
        self.named = nn.ModuleList(modules=layers(2))
        self.viewed = nn.ModuleList({"a": nn.Linear(4, 4)}.values())
        self.grown = nn.ModuleList()
        self.grown.extend((nn.Linear(4, 4),))
        self.grown.extend(nn.Linear(4, 4) for _ in range(2))
        self.last = nn.ModuleList(last)

    def forward(self, x):
        for part in (self.pair, self.made, self.named, self.viewed, self.grown, self.last):
            for layer in part:
                x = layer(x)
        return x


def listed():
    return Listed(), (torch.randn(3, 4),)


class OverNodes(nn.Module):
    """Mixes what nodes have with what their neighbours have."""

    def __init__(self, nodes=4):
        super().__init__()
        graph = nx.Graph()
        graph.add_edges_from((node, node + 1) for node in range(nodes - 1))
        graph = nx.convert_node_labels_to_integers(graph)
        self.register_buffer("near", torch.tensor(nx.to_numpy_array(graph), dtype=torch.float32))
        self.mix = nn.Linear(3, 3)

    def forward(self, x):
        return self.mix(self.near @ x)


def over_nodes():
    return OverNodes(), (torch.randn(2, 4, 3),)


class Viewed(nn.Module):
    """Writes into what shows another tensor's values, where it runs and where it does not."""

    def __init__(self, rare=False):
        super().__init__()
        self.mix, self.rare = nn.Linear(4, 4), rare
        self.register_buffer("seen", torch.zeros(2, 4))

    def forward(self, x):
        y = self.mix(x)
        y.view(-1).mul_(2.0)
        y[0].unsqueeze(0).add_(1.0)
        turned = y.transpose(0, 1)
        turned[0] = 0.5
        flat = y.view(12)
        y += 0.25
        self.seen.view(-1)[:2] += 1.0
        own = y.reshape(3, 4)
        own = own * 2.0
        if self.rare:
            wide = y.view(2, 6)
            wide.div_(3.0)
            y = self.doubled(y)
        return y, flat * 3.0, own.view(y.shape), x + self.seen.sum()

    def doubled(self, y):
        y = y.clone()
        y.t().mul_(2.0)
        return y


def viewed():
    return Viewed(), (torch.randn(3, 4),)


def rarely_viewed():
    return Viewed(rare=True), (torch.randn(3, 4),)


class Unclear(nn.Module):
    """Writes into what may be another tensor, and reads that afterwards."""

    def __init__(self, rare=False):
        super().__init__()
        self.mix, self.same, self.rare = nn.Linear(4, 4), nn.Identity(), rare

    def forward(self, x):
        y = self.mix(x)
        diagonal = torch.diagonal(y)
        diagonal.zero_()
        self.named(y).mul_(2.0)
        kept = self.same(y)
        kept *= 3.0
        plain = y.float()
        plain[:, 0] = 1.0
        return self.rarely(y) if self.rare else y

    def named(self, y):
        return y

    def rarely(self, y):
        first = y[:, 0]
        first += 1.0
        return y


def unclear():
    return Unclear(), (torch.randn(4, 4),)


class HandsOnRows(nn.Module):
    """Rows of a tensor are changed by a method, and parts of it in a loop over them."""

    def __init__(self, split=False):
        super().__init__()
        self.fc, self.split = nn.Linear(4, 4), split

    def change(self, part):
        part[0] = 7.0

    def forward(self, x):
        y = self.fc(x)
        with torch.no_grad():
            shift = y.detach().clone()
            for row in shift:
                self.change(row)
            for number, row in enumerate(shift):
                self.change(row[number:])
            if self.split:
                for part in shift.split(1):
                    part.mul_(0.5)
        return y + shift


def hands_on_rows():
    return HandsOnRows(), (torch.randn(3, 4),)


def hands_on_parts():
    return HandsOnRows(split=True), (torch.randn(3, 4),)


class OneRow(nn.Module):
    """Reads and writes the weights of layers that have another 1 in their shape in MindSpore, also where it did not run."""

    def __init__(self, more=False):
        super().__init__()
        self.mix, self.shifted, self.made, self.grown = (nn.Conv1d(3, 3, 3, padding=1) for _ in range(4))
        steps = torch.arange(27.0).reshape(3, 3, 3) / 27
        self.mix.weight.data = steps
        with torch.no_grad():
            self.shifted.weight.copy_(steps.flip(0))
            self.shifted.weight.data[:, :, 2:] = 0
            self.shifted.weight.data[0, 1] = 0.25
        self.made.weight = nn.Parameter(steps - 0.5)
        self.grown.weight.data *= 0.5
        self.more = more

    def forward(self, x):
        w = self.mix.weight
        wide = self.mix.weight.shape[2] + w.dim() + len(self.mix.weight.shape)
        y = torch.einsum("oik,bit->bot", w, x) + self.mix.weight[:, :, 0].sum() + wide
        z = nn.functional.conv1d(x, -self.grown.weight + w / w.norm(dim=1, keepdim=True), self.mix.bias)
        if self.more:
            return self.taps(x), z
        return y + self.mix(x) + self.shifted(x) + self.made(x), z

    def taps(self, x):
        w = self.mix.weight
        first = w[:, :, 0] @ x + self.made.weight[:, :, 1:].sum() * w.shape[-1] * w.ndim
        return first + nn.functional.conv1d(x, 2 * self.made.weight, padding=1)


def one_row():
    return OneRow(), (torch.randn(2, 3, 8),)


def one_row_of_taps():
    return OneRow(more=True), (torch.randn(2, 3, 8),)


class Enlarged(nn.Module):
    """Transposed convolutions whose padding behind is computed, and tensors of no values that are given a size."""

    def __init__(self, kernels=(4, 4)):
        super().__init__()
        layers = []
        for kernel in kernels:
            padding, behind = 1, 0
            if kernel == 3:
                behind = 1
            elif kernel == 2:
                padding = 0
            layers.append(nn.ConvTranspose2d(3, 3, kernel, stride=2, padding=padding, output_padding=behind))
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        y = self.layers(x)
        mask = x.data.new().resize_((y.size(0), 1, 1, 1)).fill_(0.5)
        return y * mask.expand_as(y) + y.new().resize_as_(y).zero_()


def enlarged():
    return Enlarged(), (torch.randn(2, 3, 4, 5),)


def enlarged_by_odd_kernels():
    return Enlarged((3, 2)), (torch.randn(2, 3, 4, 5),)


def doubled_swish(x: torch.Tensor) -> torch.Tensor:
    return 2 * x * torch.sigmoid(x)


FUNCTIONS = {"gelu": F.gelu, "relu": F.relu, "swish": doubled_swish, "mish": F.mish, "leaky": F.leaky_relu}
LAYERS = dict(relu=nn.ReLU, elu=nn.ELU, hard=nn.Hardswish, bag=nn.EmbeddingBag)
KINDS = {"half": torch.float16, "whole": torch.float32}


class Chosen(nn.Module):
    """Tables of a file's top, asked for a key with another one in its place, for their size, and by `in`."""

    def __init__(self, act: str = "gelu", layer: str = "relu", kind: str = "whole") -> None:
        super().__init__()
        self.mix = nn.Linear(6, 6)
        self.act = FUNCTIONS.get(act, F.relu)
        self.layer = LAYERS[layer]() if layer in LAYERS else nn.Identity()
        self.count = len(FUNCTIONS) + len(LAYERS)
        self.kind = KINDS[kind]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self.act(self.mix(x))).to(self.kind) * self.count


def chosen_of_tables():
    torch.manual_seed(0)
    return Chosen(), (torch.randn(3, 6),)


def chosen_of_tables_others():
    torch.manual_seed(0)
    return Chosen("leaky", "elu"), (torch.randn(3, 6),)


class Caught(nn.Module):
    """Errors of Python's that are caught where that did not run."""

    def __init__(self, way: int = 0) -> None:
        super().__init__()
        self.mix = nn.Linear(6, 6)
        self.way = way

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.way == 1:
            try:
                factor = {1: 2.0}[self.way]
            except KeyError:
                factor = 3.0
            finally:
                x = x + 1
            x = x * factor
        elif self.way == 2:
            try:
                x = x.view(-1)
            except RuntimeError:
                x = x.reshape(-1) * 2
        return self.mix(x)


def caught():
    torch.manual_seed(0)
    return Caught(), (torch.randn(3, 6),)


class Measured(nn.Module):
    """Sizes out of files, read with `with` in the constructor and in a method of it."""

    def __init__(self, folder: str, name: str = "sizes.json") -> None:
        super().__init__()
        with (
            open(os.path.join(folder, name), encoding="utf-8") as file,
            open(os.path.join(folder, name), "rb") as again,
        ):
            width = json.load(file)["width"]
            count = len(again.read().split())
        self.mix = nn.Linear(6, width + self._more(folder))
        self.count = count

    def _more(self, folder: str) -> int:
        with open(os.path.join(folder, "sizes.yaml"), encoding="utf-8") as file:
            return int(yaml.safe_load(file)["more"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mix(x) * self.count


def measured_by_files():
    torch.manual_seed(0)
    folder = pathlib.Path(__file__).parent
    (folder / "sizes.json").write_text('{"width": 4}', encoding="utf-8")
    (folder / "sizes.yaml").write_text("more: 2", encoding="utf-8")
    return Measured(str(folder)), (torch.randn(3, 6),)
