"""The shapes that an ONNX model's tensors have, as far as they can be told, and the FLOPs that follow from them."""

from __future__ import annotations

import contextlib
from math import prod
from typing import Any

import onnx

from ..formats.contents import MAX_RANK

LARGEST_CONSTANT = 1024  # values of a tensor that shape inference may read: shapes and axes, not weights
Shapes = dict[str, "list[int] | None"]


def known_shapes(model: onnx.ModelProto) -> Shapes:
    """Return the shape of every tensor that has one; a first axis of any size (the batch) counts as 1."""
    light = onnx.ModelProto()
    light.CopyFrom(model)
    del light.functions[:]  # inference goes into every call, and a few that call each other twice are without an end
    for tensor in light.graph.initializer:
        if prod(tensor.dims) > LARGEST_CONSTANT:
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
    for value in light.graph.input:
        sizes = value.type.tensor_type.shape.dim
        if sizes and not sizes[0].dim_value:
            sizes[0].dim_value = 1
    with contextlib.suppress(Exception):  # without shapes there are no FLOPs; everything else can still be said
        light = onnx.shape_inference.infer_shapes(light)
    graph = light.graph
    shapes: Shapes = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if tensor.HasField("shape") and len(tensor.shape.dim) <= MAX_RANK:
            sizes = [size.dim_value if size.HasField("dim_value") else -1 for size in tensor.shape.dim]
            shapes.setdefault(value.name, sizes)
    return shapes


def flops(model: onnx.ModelProto, shapes: Shapes) -> int | None:
    """Return the FLOPs of convolutions and matrix products for one pass, None where a shape is not known."""
    if model.functions:
        return None  # what is inside them has no shapes here
    total = 0
    for node in model.graph.node:
        if node.op_type in ("Conv", "ConvTranspose", "MatMul", "Gemm"):
            one = _of_node(node, shapes)
            if one is None:
                return None
            total += one
    return total


def _of_node(node: Any, shapes: Shapes) -> int | None:
    known = [shapes.get(name) for name in (*node.input[:2], *node.output[:1])]
    if len(known) < 3 or any(shape is None or min(shape, default=0) < 0 for shape in known):
        return None
    left, right, result = ([*shape] for shape in known if shape is not None)
    if node.op_type == "Conv":
        return 2 * prod(result) * prod(right[1:])
    if node.op_type == "ConvTranspose":
        return 2 * prod(left) * prod(right[1:])
    turned = node.op_type == "Gemm" and any(item.name == "transA" and item.i for item in node.attribute)
    inner = left[-2] if turned and len(left) > 1 else left[-1] if left else 1
    return 2 * prod(result) * inner
