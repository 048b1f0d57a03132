"""Operators that ONNX has and MindSpore's exporter has not: marked in the net, put into the exported graph.

In the net a stand-in multiplies by a number of its own, far outside of what any weight is, and in the graph the product
with this number is replaced by the operator. A pool stands as pad, product, pool in the net, and replaces all three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import WorkerFailed

FIRST = 2.0**100  # the numbers are FIRST · (1 + i / STEPS), exact in float32
STEPS = 4096
POOLS = ("MaxPool", "AveragePool")


@dataclass(frozen=True)
class StandIn:
    """The operator of ONNX and its attributes; certain: that the net uses it."""

    operator: str
    attributes: Mapping[str, Any]
    certain: bool = True


@dataclass
class StandIns:
    """The stand-ins of one net, in the order of their numbers."""

    listed: list[StandIn] = field(default_factory=list)

    def add(self, stand_in: StandIn) -> float:
        """The number of a new one."""
        self.listed.append(stand_in)
        return FIRST * (1.0 + (len(self.listed) - 1) / STEPS)

    def as_json(self) -> list[list[Any]]:
        """For the process that has the graph."""
        return [[one.operator, dict(one.attributes), one.certain] for one in self.listed]


def put_in(model: Any, stand_ins: Sequence[Sequence[Any]]) -> None:
    """Replace each stand-in in an ONNX model by its operator, in place, as often as its layer is called.

    Raises WorkerFailed where one is not there, or not as it was put into the net.
    """
    from onnx import helper, numpy_helper

    graph = model.graph
    numbers = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            numbers[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    marks = {name: mark for name, value in numbers.items() if (mark := _mark(value)) is not None}
    found = set()
    for node in [node for node in graph.node if node.op_type == "Mul" and marks.keys() & set(node.input)]:
        name = next(name for name in node.input if name in marks)
        source = next(other for other in node.input if other != name)
        if marks[name] >= len(stand_ins):
            raise WorkerFailed("the net holds a number above 1e30 that looks like one of msmigrate's own marks")
        found.add(marks[name])
        operator, attributes, _ = stand_ins[marks[name]]
        output, gone = node.output[0], [node]
        if operator in POOLS:
            before = _single([n for n in graph.node if source in n.output], "Pad", operator)
            after = _single([n for n in graph.node if output in n.input], "MaxPool", operator)
            source, output, gone = before.input[0], after.output[0], [before, node, after]
        new = helper.make_node(operator, [source], [output], name=f"{operator}_{output}", **attributes)
        graph.node.insert(list(graph.node).index(gone[-1]), new)
        for each in gone:
            graph.node.remove(each)
    lost = [i for i, (_, _, certain) in enumerate(stand_ins) if certain and i not in found]
    if lost:
        raise WorkerFailed(f"the exported graph has lost the place of a {stand_ins[lost[0]][0]}: MindSpore rewrote it")
    _drop_unused(graph)


def _mark(value: np.ndarray) -> int | None:
    """Which stand-in a number belongs to."""
    if value.size != 1 or value.dtype != np.float32:
        return None
    place = (float(value.reshape(())) / FIRST - 1.0) * STEPS
    return int(place) if 0 <= place < STEPS and place == int(place) else None


def _single(nodes: list[Any], operator: str, of: str) -> Any:
    if len(nodes) != 1 or nodes[0].op_type != operator:
        raise WorkerFailed(f"a {of} cannot be put into the graph: MindSpore wrote no single {operator} beside it")
    return nodes[0]


def _drop_unused(graph: Any) -> None:
    used = {name for node in graph.node for name in node.input} | {output.name for output in graph.output}
    for one in [one for one in graph.initializer if one.name not in used]:
        graph.initializer.remove(one)
    for node in [node for node in graph.node if node.op_type == "Constant" and node.output[0] not in used]:
        graph.node.remove(node)
