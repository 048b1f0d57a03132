"""Parts of tensors that are read and written, lists of modules from whatever gives them, and graphs of nodes."""

from __future__ import annotations

import networkx as nx
import numpy as np
import torch
from torch import nn


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
