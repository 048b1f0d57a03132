"""Parts of tensors, lists of modules, and a library that a written file imports as it is."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_every_second_place_is_read_and_written(users: Users) -> None:
    """MindSpore's own gradient of these crashed from three axes on, and `x[:, ::2].mul_(3)` changed nothing."""
    found = users["stepped"]
    found.agrees()
    found.holds("y[:, step - 1::step] = getitem(y, (slice(None), slice(step - 1, None, step))) - 0.5")
    found.holds("rows[:, ::2] = ops.mul(", "deep[:, :, 1::2, 0] = 0.25", "rows[:, 1::2] = ")
    found.holds("y[..., ::2] *= 2", "rows[::2]")  # of the first and the last axis it does not crash


def test_a_slice_that_had_nothing_in_it(users: Users) -> None:
    found = users["inserted"]
    found.agrees()
    found.holds("getitem(y, (slice(None), slice(None, int(place), None)))", "total[count:] * 1.5")


def test_lists_of_modules_of_whatever_gives_them(users: Users) -> None:
    """MindSpore's takes nothing but a list."""
    found = users["listed"]
    found.agrees()
    found.holds("self.pair = nn.CellList([nn.Dense(4, 4), nn.ReLU()])", "nn.CellList(list(made))")
    found.holds("self.named = nn.CellList(list(layers(2)))", "nn.CellList(list(last))", "extend([nn.Dense(4, 4)])")


def test_graphs_of_nodes_are_built_by_their_library(users: Users) -> None:
    found = users["over_nodes"]
    found.agrees()
    found.holds("import networkx as nx\nimport mindspore\n", "graph = nx.convert_node_labels_to_integers(graph)")
    found.lacks("class Graph", "def convert_node_labels_to_integers")
