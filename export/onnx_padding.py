"""The padding of convolutions in an exported ONNX graph, in ONNX's order."""

from __future__ import annotations

from typing import Any

CONVOLUTIONS = ("Conv", "ConvTranspose")


def put_right(model: Any) -> None:
    """Order the pads of convolutions as ONNX has them, in place.

    ONNX wants where each axis begins and then where each ends (https://onnx.ai/onnx/operators/onnx__Conv.html), and
    MindSpore's exporter writes its own order, beginning and end of each axis in turn: (0, 0, 3, 3) of a kernel of 1 × 7
    would lay 3 rows below the image. Padding that is the same everywhere is not touched by it.
    """
    for node in model.graph.node:
        if node.op_type in CONVOLUTIONS:
            for attribute in node.attribute:
                if attribute.name == "pads":
                    pads = list(attribute.ints)
                    attribute.ints[:] = [*pads[0::2], *pads[1::2]]
