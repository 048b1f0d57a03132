"""Make the batch of an exported ONNX graph a symbol: MindSpore writes it as a number.

The number also stands in the shapes that Reshape, Expand and their like are given. Where such a shape begins with the
batch, that becomes -1 (or 0, which copies the input's), and what cannot be opened is found when the graph is run on two
sizes of batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SYMBOL = "batch"
INFERRED, COPIED = -1, 0


def open_batch(model: Any, batch: int) -> None:
    """Open the first axis of inputs and outputs, and of the shapes that Reshapes are given, in place."""
    from onnx import numpy_helper

    graph = model.graph
    weights = {one.name: one for one in graph.initializer}
    constants = {node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"}
    for value in (*graph.input, *graph.output, *graph.value_info):
        sizes = value.type.tensor_type.shape.dim
        if value.name not in weights and len(sizes) and sizes[0].dim_value == batch:
            sizes[0].dim_param = SYMBOL
    for node in graph.node:
        if node.op_type != "Reshape":
            continue
        holder = weights.get(node.input[1], constants.get(node.input[1]))
        if holder is None:
            continue
        shape = numpy_helper.to_array(holder).copy()
        if shape.size and shape[0] == batch:
            shape[0] = COPIED if (shape == INFERRED).any() else INFERRED
            opened = f"{node.name or node.output[0]}_open"
            graph.initializer.append(numpy_helper.from_array(shape.astype(np.int64), opened))
            node.input[1] = opened
