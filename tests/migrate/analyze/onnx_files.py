"""Small ONNX files for the tests: a whole one, and damaged ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def small(path: Path, *, external: str | None = None, operator: str | None = None, auto_pad: str = "NOTSET") -> Path:
    """Write Conv, Relu, GlobalAveragePool, Flatten, Gemm; external: the file in which the weights are said to lie."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=(8, 3, 3, 3)), "b": rng.normal(size=8), "fc": rng.normal(size=(8, 10))}
    tensors = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    if external is not None:
        tensors[0].ClearField("raw_data")
        tensors[0].data_location = TensorProto.EXTERNAL
        for key, value in {"location": external, "offset": "0", "length": str(8 * 27 * 4)}.items():
            entry = tensors[0].external_data.add()
            entry.key, entry.value = key, value
    pads = {"pads": [1, 1, 1, 1]} if auto_pad == "NOTSET" else {}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", kernel_shape=[3, 3], auto_pad=auto_pad, **pads),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["g"], "pool"),
        helper.make_node("Flatten", ["g"], ["f"], "flatten"),
        helper.make_node("Gemm", ["f", "fc"], ["y"], "fc"),
    ]
    if operator is not None:
        nodes.insert(2, helper.make_node(operator, ["r"], ["q"], "odd", domain="com.example"))
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 10])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    path.write_bytes(model.SerializeToString())
    return path


def calling_itself(path: Path) -> Path:
    """Write a file whose function calls itself."""
    body = [helper.make_node("Again", ["a"], ["b"], domain="local")]
    function = helper.make_function("local", "Again", ["a"], ["b"], body, [helper.make_opsetid("local", 1)])
    return _with_functions(path, [function], "Again")


def doubling(path: Path, depth: int) -> Path:
    """Write a file whose functions call each other twice each: 2^depth operators in a few bytes."""
    functions = []
    for level in range(depth):
        inner = ("Relu", "") if level == 0 else (f"Level{level - 1}", "local")
        body = [
            helper.make_node(inner[0], ["a"], ["m"], domain=inner[1]),
            helper.make_node(inner[0], ["m"], ["b"], domain=inner[1]),
        ]
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
        functions.append(helper.make_function("local", f"Level{level}", ["a"], ["b"], body, imports))
    return _with_functions(path, functions, f"Level{depth - 1}")


def _with_functions(path: Path, functions: list[onnx.FunctionProto], first: str) -> Path:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(first, ["x"], ["y"], domain="local")], "g", values[:1], values[1:])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    path.write_bytes(helper.make_model(graph, functions=functions, opset_imports=imports).SerializeToString())
    return path
