"""Convolutions whose padding differs by axis and side are exported in ONNX's order."""

from __future__ import annotations

from msmigrate.deploy.onnx_graph import put_right
from onnx import helper


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
