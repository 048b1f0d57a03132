"""Which classes of the two frameworks are the same layer, and which are at least of one sort."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from ...mappings import table
from ...mappings.rows import Row

# MindSpore's names of layers that have no row, and names of torch's own variants of a layer
ELSEWHERE = {
    "HSwish": "Hardswish",
    "HSigmoid": "Hardsigmoid",
    "SequentialCell": "Sequential",
    "CellList": "ModuleList",
    "NonDynamicallyQuantizableLinear": "Linear",
    "SyncBatchNorm": "BatchNorm2d",
    "BatchNormAct2d": "BatchNorm2d",
    "LayerNorm2d": "LayerNorm",
    "Conv2dTranspose": "ConvTranspose2d",
    "Conv1dTranspose": "ConvTranspose1d",
    "Conv3dTranspose": "ConvTranspose3d",
    "MultiheadAttention": "MultiheadAttention",
    "Swish": "SiLU",  # zoos write it by hand
    "DropPath": "StochasticDepth",
    "DropConnect": "StochasticDepth",
    "StochasticDepth": "StochasticDepth",
}
CONTAINERS = {"Sequential", "ModuleList", "ModuleDict"}
RECURRENT = {"LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"}  # torch's have no parts, MindSpore's have
ACTIVATIONS = (
    *("ReLU", "ReLU6", "LeakyReLU", "PReLU", "ELU", "CELU", "SELU", "GELU", "SiLU", "Mish"),
    *("Hardswish", "Hardsigmoid", "Sigmoid", "Tanh", "Softplus"),
)
# layers that stand in for each other by mistake: a wrong activation is to be found, not left out of the comparison
SORTS = (
    ACTIVATIONS,
    ("MaxPool1d", "MaxPool2d", "AvgPool1d", "AvgPool2d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d"),
    ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm2d", "GroupNorm", "LayerNorm"),
    ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d"),
)


@cache
def _rows() -> dict[str, Row]:
    return {row.short: row for row in reversed(table.rows("layer"))}  # the built-in one, where a user's is called alike


@cache
def _theirs() -> dict[str, str]:
    names = {row.mindspore.rsplit(".", 1)[-1]: row.short for row in table.rows("layer") if row.mindspore}
    return {**ELSEWHERE, **names}


def torch_class(kind: str) -> str:
    """The torch class that a MindSpore (or torch) class of this name is; a class nobody knows is itself."""
    return kind if kind in _rows() else _theirs().get(kind, kind)


def known(kind: str) -> bool:
    """Whether a class name stands in the mapping table, on either side."""
    return torch_class(kind) in _rows() or kind in ELSEWHERE


def row_of(kind: str) -> Row | None:
    """The mapping row of a class name, in torch's or MindSpore's terms."""
    return _rows().get(torch_class(kind))


def whole(kind: str) -> bool:
    """Whether a class is one layer, whatever it is built of inside."""
    torch = torch_class(kind)
    if torch in RECURRENT or torch == "StochasticDepth":
        return True
    return row_of(kind) is not None and torch not in CONTAINERS


def layer_class(own_and_ancestors: Iterable[type]) -> str:
    """The name of the first of these classes that is a layer, or else of the first: a zoo's own LayerNorm over channels
    is one."""
    names = [each.__name__ for each in own_and_ancestors]
    return next((name for name in names if whole(name)), names[0])


def alike(torch_kind: str, mindspore_kind: str) -> bool:
    """Whether two classes are the same layer."""
    return torch_class(torch_kind) == torch_class(mindspore_kind)


def one_sort(torch_kind: str, mindspore_kind: str) -> bool:
    """Whether two classes do the same sort of thing, so that one may stand where the other should."""
    ours, theirs = torch_class(torch_kind), torch_class(mindspore_kind)
    return any(ours in sort and theirs in sort for sort in SORTS)
