"""Convolutions whose padding differs by axis and side are exported in ONNX's order, an index -1 as the last."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from msmigrate.deploy.onnx_graph import put_right
from onnx import TensorProto, helper, numpy_helper


def test_pads_are_beginnings_and_then_ends() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[0, 1, 2, 3]),
        helper.make_node("ConvTranspose", ["a", "w"], ["b"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["b", "w"], ["c"], auto_pad="SAME_UPPER"),
        helper.make_node("Conv", ["c", "w"], ["d"], pads=[0, 1, 2, 3, 4, 5]),
        helper.make_node("MaxPool", ["d"], ["y"], pads=[0, 1, 2, 3]),
    ]
    model = helper.make_model(helper.make_graph(nodes, "made", [], []))
    put_right(model)
    found = [[list(a.ints) for a in node.attribute if a.name == "pads"] for node in model.graph.node]
    assert found == [[[0, 2, 1, 3]], [[1, 1, 1, 1]], [], [[0, 2, 4, 1, 3, 5]], [[0, 1, 2, 3]]]


def test_the_slice_of_an_index_reaches_the_end() -> None:
    """As MindSpore's exporter writes `x[:, -1, :3]`, and a slice that runs backwards, which is right."""

    def sliced(name: str, *numbers: list[int]) -> list[str]:
        kinds = ("starts", "ends", "axes", "steps")
        for kind, values in zip(kinds, numbers, strict=True):
            constants.append(numpy_helper.from_array(np.array(values, np.int32), f"{name}_{kind}"))
        return ["x", *(f"{name}_{kind}" for kind in kinds)]

    constants: list[TensorProto] = []
    nodes = [
        helper.make_node("Slice", sliced("last", [-1, 0], [0, 3], [1, 2], [1, 1]), ["last"]),
        helper.make_node("Slice", sliced("back", [-1], [0], [1], [-1]), ["back"]),
    ]
    float32 = TensorProto.FLOAT
    given = [helper.make_tensor_value_info("x", float32, [2, 5, 4])]
    made = [helper.make_tensor_value_info(name, float32, None) for name in ("last", "back")]
    graph = helper.make_graph(nodes, "made", given, made, initializer=constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    put_right(model)
    x = np.arange(40, dtype=np.float32).reshape(2, 5, 4)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    last, back = session.run(None, {"x": x})
    assert (last == x[:, -1:, :3]).all() and last.shape == (2, 1, 3)
    assert (back == x[:, -1:0:-1]).all()


TRANSPOSED = [
    {"pad_mode": "pad", "padding": 1, "stride": 2, "has_bias": True},
    {"pad_mode": "pad", "padding": (1, 0, 0, 1), "stride": 2},
    {"pad_mode": "valid", "stride": 3, "has_bias": True},
    {"pad_mode": "same", "stride": 2},
    {"pad_mode": "same", "stride": 1, "has_bias": True},
]
EXPORTED = """
import json, sys
import numpy as np
import mindspore
from mindspore import Tensor, nn

x = np.random.default_rng(0).standard_normal((2, 4, 5, 6)).astype(np.float32)
for number, options in enumerate(json.loads(sys.argv[2])):
    net = nn.Conv2dTranspose(4, 3, 3, **{k: tuple(v) if isinstance(v, list) else v for k, v in options.items()})
    mindspore.export(net, Tensor(x), file_name=f"{sys.argv[1]}/{number}.onnx", file_format="ONNX")
    np.savez(f"{sys.argv[1]}/{number}.npz", x=x, y=net(Tensor(x)).asnumpy())
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transposed")
    words = [sys.executable, "-c", EXPORTED, str(folder), json.dumps(TRANSPOSED)]
    subprocess.run(words, check=True, capture_output=True, timeout=300)
    return folder


@pytest.mark.parametrize("number", range(len(TRANSPOSED)), ids=[f"{each['pad_mode']}" for each in TRANSPOSED])
def test_a_transposed_convolution_has_no_shape_with_batch_and_channels(exported: Path, number: int) -> None:
    """onnx.checker refused every net with one: "Attribute output_shape has incorrect size"."""
    model, arrays = onnx.load(str(exported / f"{number}.onnx")), np.load(exported / f"{number}.npz")
    put_right(model)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {session.get_inputs()[0].name: arrays["x"]})
    np.testing.assert_allclose(y, arrays["y"], rtol=1e-4, atol=1e-5)
