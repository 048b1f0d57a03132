"""Edit an exported ONNX graph: operators put in, the batch made symbolic, pads in order.

The batch is in the shapes of inputs and outputs, and in the numbers that Reshape, Expand and the like take, there also
as a factor: a transformer's attention runs on batch · heads. So the net is exported with two sizes of batches. What
differs between the two graphs depends on the batch, and a number that differs is computed from the input's shape
instead. Whether that is right is found when the graph is run on two sizes of batches.

In the net a stand-in multiplies by a number of its own, far outside of what any weight is, and in the graph the product
with this number is replaced by the operator. A pool is pad, product, pool in the net, and replaces all three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import Unsupported, WorkerFailed

SYMBOL = "batch"
INFERRED = -1


def open_batch(model: Any, other: Any, sizes: tuple[int, int]) -> None:
    """Open the batch of `model` in place; `other` is the same net, exported with the other of the two sizes.

    Raises Unsupported where something that depends on the batch cannot be computed from the input.
    """
    graph, second = model.graph, other.graph
    if [node.op_type for node in graph.node] != [node.op_type for node in second.node]:
        raise Unsupported("the net takes another form with another size of batches, so its batch cannot be left open")
    for value, another in zip(_values(graph), _values(second), strict=True):
        _open_shape(value, another, sizes)
    opened = _Opened(graph, sizes)
    numbers, others = _numbers(graph), _numbers(second)
    for node, another in zip(list(graph.node), second.node, strict=True):
        if node.op_type == "Constant":
            continue
        if [one.SerializeToString() for one in node.attribute] != [
            one.SerializeToString() for one in another.attribute
        ]:
            raise Unsupported(
                f"its {node.op_type} has the size of the batch in its attributes, which cannot be left open"
            )
        for i, (name, name_there) in enumerate(zip(node.input, another.input, strict=True)):
            if name in numbers and name_there in others:
                node.input[i] = opened.number(name, numbers[name], others[name_there], node.op_type)
    opened.insert()


class _Opened:
    """Numbers that are computed from the shape of an input, and the nodes that do so."""

    def __init__(self, graph: Any, sizes: tuple[int, int]) -> None:
        self.graph, self.sizes = graph, sizes
        self.nodes: list[Any] = []
        self.made: dict[tuple[str, bool], str] = {}
        initial = {one.name for one in graph.initializer}
        inputs = [one for one in graph.input if one.name not in initial]
        self.source = next((one.name for one in inputs if _dims(one)[:1] == [SYMBOL]), None)

    def number(self, name: str, one: np.ndarray, two: np.ndarray, operator: str) -> str:
        """The name of what takes a number's place: its own where both graphs have the same. Raises Unsupported."""
        if one.shape == two.shape and np.array_equal(one, two, equal_nan=one.dtype.kind == "f"):
            return name
        if one.shape != two.shape or one.dtype.kind not in "iu" or one.ndim > 1 or self.source is None:
            raise Unsupported(
                f"a number of its {operator} was computed for the size of the batch, which cannot be left open"
            )
        alone = operator == "Reshape" and int((one != two).sum()) == 1 and not (one == INFERRED).any()
        key = (name, alone)
        if key not in self.made:
            self.made[key] = self._inferred(name, one, two) if alone else self._computed(name, one, two)
        return self.made[key]

    def _inferred(self, name: str, one: np.ndarray, two: np.ndarray) -> str:
        """The number with -1 where it depends on the batch: Reshape finds a single open size by itself."""
        return self._constant(f"{name}_open", np.where(one != two, INFERRED, one).astype(np.int64))

    def _computed(self, name: str, one: np.ndarray, two: np.ndarray) -> str:
        """The nodes for factor · batch + rest, whole numbers for each element; returns the name of their output."""
        step, change = self.sizes[1] - self.sizes[0], two.astype(np.int64) - one
        factor = change // step
        rest = one - factor * self.sizes[0]
        if (change % step).any():
            raise Unsupported("the size of the batch is divided in the net, so it cannot be left open")
        sized = self._node("Mul", [self._batch(), self._constant(f"{name}_factor", factor)], f"{name}_sized")
        sized = self._node("Add", [sized, self._constant(f"{name}_rest", rest)], f"{name}_open")
        return sized if one.dtype == np.int64 else self._node("Cast", [sized], f"{name}_cast", to=_type(one))

    def _batch(self) -> str:
        if not any(node.output[0] == f"{SYMBOL}_size" for node in self.nodes):
            self._node("Shape", [self.source], f"{SYMBOL}_shape")
            self._node("Gather", [f"{SYMBOL}_shape", self._constant(f"{SYMBOL}_axis", np.int64(0))], f"{SYMBOL}_size")
        return f"{SYMBOL}_size"

    def _constant(self, name: str, value: Any) -> str:
        from onnx import numpy_helper

        self.graph.initializer.append(numpy_helper.from_array(np.asarray(value, dtype=np.int64), name))
        return name

    def _node(self, operator: str, inputs: list[Any], output: str, **attributes: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def insert(self) -> None:
        """Put the nodes first: they need nothing but an input."""
        for node in reversed(self.nodes):
            self.graph.node.insert(0, node)


def _values(graph: Any) -> list[Any]:
    weights = {one.name for one in graph.initializer}
    return [one for one in (*graph.input, *graph.output, *graph.value_info) if one.name not in weights]


def _dims(value: Any) -> list[Any]:
    return [one.dim_param or one.dim_value for one in value.type.tensor_type.shape.dim]


def _open_shape(value: Any, other: Any, sizes: tuple[int, int]) -> None:
    """Name the sizes that are the batch, and leave open what follows from it."""
    for one, two in zip(value.type.tensor_type.shape.dim, other.type.tensor_type.shape.dim, strict=True):
        if one.dim_value != two.dim_value:
            if (one.dim_value, two.dim_value) == sizes:
                one.dim_param = SYMBOL
            else:
                one.ClearField("dim_value")


def _numbers(graph: Any) -> dict[str, np.ndarray]:
    """Every constant of a graph, by name."""
    from onnx import numpy_helper

    numbers = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            numbers[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return numbers


def _type(array: np.ndarray) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


CONVOLUTIONS = ("Conv", "ConvTranspose")


def put_right(model: Any) -> None:
    """Order the pads of convolutions as ONNX has them, in place, leave out the shape of a transposed one's output, and
    let the slice of an index -1 reach the end.

    ONNX wants where each axis begins and then where each ends (https://onnx.ai/onnx/operators/onnx__Conv.html), and
    MindSpore's exporter writes its own order, beginning and end of each axis in turn: (0, 0, 3, 3) of a kernel of 1 × 7
    would put 3 rows below the image. Padding that is the same everywhere stays as it is.

    Of a transposed convolution MindSpore writes the output's whole shape, where ONNX wants its sizes without batch and
    channels, and computes pads of them. Where pads are there, they say the same.

    The exporter writes `x[:, -1]`, the last time step, as the slice from -1 to 0, in which nothing is.
    """
    numbers = _numbers(model.graph)
    for node in model.graph.node:
        if node.op_type == "Slice":
            _reach_the_end(model.graph, node, numbers)
        if node.op_type in CONVOLUTIONS:
            there = {attribute.name: attribute for attribute in node.attribute}
            if "pads" in there:
                pads = list(there["pads"].ints)
                there["pads"].ints[:] = [*pads[0::2], *pads[1::2]]
            if "output_shape" in there and "pads" in there:
                node.attribute.remove(there["output_shape"])
            elif "output_shape" in there:
                there["output_shape"].ints[:] = list(there["output_shape"].ints)[2:]
                if there["auto_pad"].s == b"SAME_LOWER":  # MindSpore's larger side is the end, and ONNX's of this name
                    there["auto_pad"].s = b"SAME_UPPER"  # the beginning


def _reach_the_end(graph: Any, node: Any, numbers: Mapping[str, np.ndarray]) -> None:
    from onnx import numpy_helper

    starts, ends, *rest = (numbers.get(name) for name in node.input[1:])
    if starts is None or ends is None:
        return
    steps = rest[1] if len(rest) > 1 and rest[1] is not None else 1
    last = (starts == -1) & (ends == 0) & (steps == 1)
    if last.any():
        node.input[2] = f"{node.output[0]}_ends"
        whole = np.where(last, np.iinfo(ends.dtype).max, ends).astype(ends.dtype)
        graph.initializer.append(numpy_helper.from_array(whole, node.input[2]))


FIRST = 2.0**100  # the numbers are FIRST · (1 + i / STEPS), exact in float32
STEPS = 4096
POOLS = ("MaxPool", "AveragePool")


@dataclass(frozen=True)
class StandIn:
    """The operator of ONNX and its attributes; certain: whether the net surely uses it."""

    operator: str
    attributes: Mapping[str, Any]
    certain: bool = True


@dataclass
class StandIns:
    """The stand-ins of one net, in the order of their numbers."""

    listed: list[StandIn] = field(default_factory=list)

    def add(self, stand_in: StandIn) -> float:
        """Add a stand-in and return its number."""
        self.listed.append(stand_in)
        return FIRST * (1.0 + (len(self.listed) - 1) / STEPS)

    def as_json(self) -> list[list[Any]]:
        """The stand-ins as plain values, for the process that has the graph."""
        return [[one.operator, dict(one.attributes), one.certain] for one in self.listed]


def put_in(model: Any, stand_ins: Sequence[Sequence[Any]]) -> None:
    """Replace each stand-in in an ONNX model by its operator, in place, as often as its layer is called.

    Raises WorkerFailed where one is not there, or not as it was put into the net.
    """
    from onnx import helper

    graph = model.graph
    numbers = _numbers(graph)
    casts = [node for node in graph.node if node.op_type == "Cast" and node.input[0] in numbers]  # of `x * 3.0`
    numbers |= {node.output[0]: numbers[node.input[0]].astype(np.float32) for node in casts}
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
    used = {name for node in graph.node for name in node.input}
    for node in [node for node in casts if node.output[0] in marks and node.output[0] not in used]:
        graph.node.remove(node)
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
