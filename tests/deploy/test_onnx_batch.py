"""A batch is opened wherever it has a say in a graph, and refused where it cannot be computed from the input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from msmigrate.deploy.onnx_graph import SYMBOL, open_batch
from msmigrate.errors import Unsupported
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node
Graph = tuple[list[Any], dict[str, Any], list[int]]  # nodes, numbers and the output's shape


def model_of(nodes: list[Any], numbers: dict[str, Any], shape: list[int], out: list[int]) -> Any:
    """x of a shape to y, of the opset that MindSpore writes; numbers stand in initializers and in Constants."""
    held = {name: numpy_helper.from_array(np.asarray(value), name) for name, value in numbers.items()}
    constants = [node("Constant", [], [name], value=tensor) for name, tensor in held.items() if name.startswith("c")]
    initial = [tensor for name, tensor in held.items() if not name.startswith("c")]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, out)
    made = helper.make_graph([*constants, *nodes], "made", [x], [y], initial)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)


def rows(n: int) -> Graph:
    return [node("Reshape", ["x", "c"], ["t"]), node("Relu", ["t"], ["y"])], {"c": np.array([n, 6])}, [n, 6]


def heads(n: int) -> Graph:
    """As attention with the batch in the second place, folded into it."""
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), node("Reshape", ["t", "shape"], ["h"])]
    nodes += [node("Transpose", ["h"], ["back"], perm=[1, 0, 2]), node("Reshape", ["back", "c"], ["y"])]
    return nodes, {"shape": np.array([2, n * 3, 1]), "c": np.array([n, -1])}, [n, 6]


def token(n: int) -> Graph:
    """As a transformer's class token, repeated for every example."""
    nodes = [node("Expand", ["class", "c"], ["t"]), node("Concat", ["t", "x"], ["y"], axis=1)]
    return nodes, {"class": np.arange(3, dtype=np.float32).reshape(1, 1, 3), "c": np.array([n, 1, 3])}, [n, 3, 3]


def windows(n: int) -> Graph:
    """Two windows of an example in the first place, and back."""
    nodes = [node("Reshape", ["x", "a"], ["t"]), node("Relu", ["t"], ["r"]), node("Reshape", ["r", "b"], ["y"])]
    return nodes, {"a": np.array([2 * n, 3]), "b": np.array([n, 1, 2, 3])}, [n, 1, 2, 3]


def untouched(n: int) -> Graph:
    """Ones that are no batch of one stay what they are."""
    return [node("Reshape", ["x", "c"], ["t"]), node("Relu", ["t"], ["y"])], {"c": np.array([-1, 1, 6])}, [n, 1, 6]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("made", [rows, heads, token, windows, untouched])
def test_an_open_batch_runs_with_every_size(made: Callable[[int], Graph], batch: int) -> None:
    def exported(n: int) -> Any:
        nodes, numbers, out = made(n)
        return model_of(nodes, numbers, [n, 2, 3], out)

    model = exported(batch)
    open_batch(model, exported(batch + 2), (batch, batch + 2))
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == SYMBOL
    for size in (1, 2, 5):
        x = np.random.default_rng(0).standard_normal((size, 2, 3), dtype=np.float32)
        np.testing.assert_array_equal(run(model, x), run(exported(size), x))


def run(model: Any, x: np.ndarray) -> np.ndarray:
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


def scaled(n: int) -> Graph:
    return [node("Mul", ["x", "c"], ["y"])], {"c": np.float32(1 / n)}, [n, 2, 3]


def repeated(n: int) -> Graph:
    return [node("Add", ["x", "c"], ["y"])], {"c": np.ones((n, 2, 3), np.float32)}, [n, 2, 3]


def halved(n: int) -> Graph:
    return [node("Expand", ["x", "c"], ["y"])], {"c": np.array([1, n // 3 + 1, 2, 3])}, [1, n // 3 + 1, 2, 3]


def split(n: int) -> Graph:
    return [node("Transpose", ["x"], ["y"], perm=[1, 0, 2] if n > 2 else [0, 1, 2])], {}, [n, 2, 3]


def other(n: int) -> Graph:
    return [node("Relu" if n > 2 else "Abs", ["x"], ["y"])], {}, [n, 2, 3]


REFUSED = {
    scaled: "a number of its Mul",
    repeated: "a number of its Add",
    halved: "is divided",
    split: "its Transpose has the size of the batch in its attributes",
    other: "another form",
}


@pytest.mark.parametrize("made", REFUSED)
def test_what_cannot_be_computed_from_the_input_is_refused(made: Callable[[int], Graph]) -> None:
    models = []
    for n in (1, 3):
        nodes, numbers, out = made(n)
        models.append(model_of(nodes, numbers, [n, 2, 3], out))
    with pytest.raises(Unsupported, match=REFUSED[made]):
        open_batch(*models, (1, 3))
