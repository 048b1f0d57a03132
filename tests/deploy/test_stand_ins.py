"""Stand-ins are found in a graph by their numbers and replaced by ONNX's own operators."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from msmigrate.deploy.onnx_graph import StandIn, StandIns, put_in
from msmigrate.errors import WorkerFailed
from onnx import TensorProto, helper, numpy_helper
from scipy.special import erf


def graph(nodes: list[Any], numbers: dict[str, Any], shape: list[Any], out: list[Any]) -> Any:
    """A model of one input x and one output y, of the opset that MindSpore writes."""
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in numbers.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, out)
    made = helper.make_graph(nodes, "made", [x], [y], held)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)


def run(model: Any, x: np.ndarray) -> np.ndarray:
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


def test_an_operator_of_one_input_takes_the_place_of_its_product() -> None:
    marks = StandIns()
    numbers = [np.float32(marks.add(StandIn(name, {}))) for name in ("Sinh", "Erf", "Abs")]
    nodes = [helper.make_node("Mul", ["x", "b"], ["t"]), helper.make_node("Mul", ["a", "t"], ["y"])]
    model = graph(nodes, {"a": numbers[1], "b": numbers[2], "unused": numbers[0]}, [2, 3], [2, 3])
    listed = marks.as_json()
    with pytest.raises(WorkerFailed, match="lost the place of a Sinh"):
        put_in(model, listed)
    model = graph(nodes, {"a": numbers[1], "b": numbers[2]}, [2, 3], [2, 3])
    listed[0][2] = False  # one that need not be there
    put_in(model, listed)
    assert [node.op_type for node in model.graph.node] == ["Abs", "Erf"]
    assert not model.graph.initializer
    x = np.random.default_rng(0).standard_normal((2, 3), dtype=np.float32)
    np.testing.assert_allclose(run(model, x), erf(np.abs(x)), atol=1e-6)


@pytest.mark.parametrize("mean", [False, True])
def test_a_pool_takes_the_place_of_pad_product_and_pool(mean: bool) -> None:
    marks = StandIns()
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 0}
    mark = marks.add(StandIn("AveragePool", {**window, "count_include_pad": 0}) if mean else StandIn("MaxPool", window))
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["padded"]),
        helper.make_node("Mul", ["padded", "mark"], ["marked"]),
        helper.make_node("MaxPool", ["marked"], ["y"], kernel_shape=[3, 3], strides=[2, 2]),
    ]
    numbers = {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "mark": np.float32(mark)}
    model = graph(nodes, numbers, [1, 2, 6, 6], [1, 2, 3, 3])
    put_in(model, marks.as_json())
    assert [node.op_type for node in model.graph.node] == ["AveragePool" if mean else "MaxPool"]
    x = -1.0 - np.random.default_rng(0).random((1, 2, 6, 6), dtype=np.float32)  # zeros as padding would win
    windows = [
        x[:, :, max(0, 2 * i - 1) : 2 * i + 2, max(0, 2 * j - 1) : 2 * j + 2] for i in range(3) for j in range(3)
    ]
    expected = np.stack([w.mean((2, 3)) if mean else w.max((2, 3)) for w in windows], -1).reshape(1, 2, 3, 3)
    np.testing.assert_allclose(run(model, x), expected, atol=1e-6)


def test_a_pool_whose_surroundings_were_rewritten_is_refused() -> None:
    marks = StandIns()
    mark = marks.add(StandIn("MaxPool", {"kernel_shape": [3, 3]}))
    pool = helper.make_node("MaxPool", ["t"], ["y"], kernel_shape=[3, 3])
    model = graph(
        [helper.make_node("Mul", ["x", "m"], ["t"]), pool], {"m": np.float32(mark)}, [1, 1, 3, 3], [1, 1, 1, 1]
    )
    with pytest.raises(WorkerFailed, match="no single Pad"):
        put_in(model, marks.as_json())


def test_ordinary_numbers_are_no_marks() -> None:
    nodes = [helper.make_node("Mul", ["x", "a"], ["t"]), helper.make_node("Mul", ["t", "b"], ["y"])]
    model = graph(nodes, {"a": np.float32(1e30), "b": np.float32(2.0)}, [2], [2])
    put_in(model, [])
    assert [node.op_type for node in model.graph.node] == ["Mul", "Mul"]


ACTIVATIONS = """
import json, sys
import numpy as np
import mindspore
from mindspore import Tensor, nn, ops
from msmigrate.deploy.mindspore_lowering import FOR_ONNX, functions_for_onnx, rewrite
from msmigrate.deploy.onnx_graph import StandIns


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.act = nn.Mish()

    def construct(self, x):
        return self.act(x) - 0.5 * ops.mish(x + 1.0)


x, net, marks = np.linspace(-9, 9, 300, dtype=np.float32).reshape(3, 100), Net(), StandIns()
own = net(Tensor(x)).asnumpy()
rewrite(net, FOR_ONNX, marks)
functions_for_onnx(marks)
mindspore.export(net, Tensor(x), file_name=f"{sys.argv[1]}/net.onnx", file_format="ONNX")
np.savez(f"{sys.argv[1]}/net.npz", x=x, own=own)
print(json.dumps(marks.as_json()))
"""


def test_mish_is_written_as_a_layer_and_as_a_function(tmp_path: Path) -> None:
    """MindSpore's exporter has no converter for it."""
    (tmp_path / "exported.py").write_text(ACTIVATIONS)  # a graph is compiled from a file
    words = [sys.executable, str(tmp_path / "exported.py"), str(tmp_path)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=300)
    model, arrays = onnx.load(str(tmp_path / "net.onnx")), np.load(tmp_path / "net.npz")
    put_in(model, json.loads(done.stdout.splitlines()[-1]))
    assert [node.op_type for node in model.graph.node].count("Softplus") == 2
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {session.get_inputs()[0].name: arrays["x"]})
    np.testing.assert_allclose(found, arrays["own"], atol=5e-6)
