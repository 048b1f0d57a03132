"""Where in a net an operator stands that an exporter refuses: MindIR notes the scope of each."""

from __future__ import annotations

import re
from pathlib import Path

import mindspore
from mindspore import Tensor, nn

MISSING = (
    re.compile(r"Can not find key (\w+) in convert map"),
    re.compile(r"currently the (\w+) operator in your model is not support"),
    re.compile(r"(?:Unsupported|unsupported|not supported)[^\n]*?operator:? (\w+)"),
)
LONGEST = 300


def operator_in(text: str) -> str | None:
    """The operator that MindSpore's error is about, if it names one."""
    return next((found[1] for pattern in MISSING if (found := pattern.search(text))), None)


def of_operator(net: nn.Cell, given: list[Tensor], operator: str, folder: Path) -> list[str]:
    """The modules in which an operator stands, as `features.0: HSwish`; empty where that cannot be told."""
    from mindspore.train import mind_ir_pb2

    file = folder / "places.mindir"
    try:
        mindspore.export(net, *given, file_name=str(file), file_format="MINDIR")
        model = mind_ir_pb2.ModelProto()
        model.ParseFromString(file.read_bytes())
    except Exception:  # this is only for the words of an error
        return []
    nodes = [node for graph in (model.graph, *model.functions) for node in graph.node]
    scopes = [node.domain for node in nodes if re.fullmatch(rf"REF::{operator}(:\d+)?", node.op_type)]
    return list(dict.fromkeys(place(scope) for scope in scopes))


def place(scope: str) -> str:
    """`Default/features-SequentialCell/0-HSwish/HSwish-op3` as `features.0: HSwish`."""
    parts = [part.partition("-") for part in scope.split("/")[1:-1]]
    if not parts:
        return "the net's own construct"
    return f"{'.'.join(name for name, _, _ in parts)}: {parts[-1][2]}"


def first_line(error: Exception) -> str:
    """What an error of MindSpore's says first; the rest is for those who wrote it."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = next((line for line in lines if line and not line.startswith("-")), type(error).__name__)
    return said[:LONGEST]
