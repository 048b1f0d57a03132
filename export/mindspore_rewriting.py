"""Replace in a net what an export cannot take, by a form that computes the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mindspore import nn

from ..errors import Unsupported
from .mindspore_equal_forms import (
    AdaptiveMean,
    ExactGelu,
    GroupNorm,
    HSigmoid,
    HSwish,
    StandInFor,
)
from .mindspore_pools import MaxPoolOverEdges, PoolStandIn, Window, two
from .stand_ins import StandIns

Form = Callable[[Any, StandIns], "nn.Cell | None"]


def rewrite(net: nn.Cell, forms: dict[type, Form], marks: StandIns) -> list[str]:
    """Replace the net's Cells in place by their equal forms; returns what was replaced, as `path: Class`.

    A Cell that stands in several places gets one replacement for all of them.
    """
    made: dict[int, nn.Cell] = {}
    replaced = []
    for path, parent in list(net.cells_and_names()):
        for name, child in list(parent.name_cells().items()):
            form = forms.get(type(child))
            if form is None:
                continue
            if id(child) not in made:
                new = form(child, marks)
                if new is None:
                    continue
                made[id(child)] = new.set_train(False)
            _put(parent, name, made[id(child)])
            replaced.append(f"{path}.{name}: {type(child).__name__}".lstrip("."))
    return replaced


def _put(parent: nn.Cell, name: str, cell: nn.Cell) -> None:
    """In the place of a child; a SequentialCell keeps a list of them, too."""
    parent._cells[name] = cell
    if isinstance(parent, nn.SequentialCell):
        parent.cell_list = list(parent._cells.values())


def _max_pool(cell: nn.MaxPool2d, marks: StandIns) -> nn.Cell | None:
    if not cell.use_pad:
        return None
    if cell.return_indices:
        raise Unsupported(f"{cell} returns indices, which its ONNX form has in another order: leave them out")
    window = _window(cell.max_pool.attrs, "ksize", "strides", "pads")
    return PoolStandIn(marks, "MaxPool", window)


def _max_pool_for_dynamic(cell: nn.MaxPool2d, marks: StandIns) -> nn.Cell | None:
    """MindSpore infers no shape of its padded pool where the batch is not known."""
    if not cell.use_pad or cell.return_indices:
        return None
    window = _window(cell.max_pool.attrs, "ksize", "strides", "pads")
    return MaxPoolOverEdges(window) if window.dilation == (1, 1) else None


def _average_pool(cell: nn.AvgPool2d, marks: StandIns) -> nn.Cell | None:
    if not cell.is_expand:
        return None
    attributes = cell.avg_pool.attrs
    if attributes["divisor_override"]:
        raise Unsupported(f"AvgPool2d with divisor_override={attributes['divisor_override']} has no form in ONNX")
    window = _window(attributes, "kernel_size", "strides", "pad")
    return PoolStandIn(marks, "AveragePool", window, count_include_pad=int(attributes["count_include_pad"]))


def _window(attributes: dict[str, Any], kernel: str, stride: str, pad: str) -> Window:
    pads: Sequence[int] = attributes[pad] if attributes.get("pad_mode", "PAD").upper() == "PAD" else (0, 0)
    both = (pads[2], pads[4]) if len(pads) == 6 else two(pads)
    dilation = two(attributes.get("dilation", 1))
    return Window(two(attributes[kernel]), two(attributes[stride]), both, dilation, bool(attributes["ceil_mode"]))


def _gelu(cell: nn.GELU, marks: StandIns) -> nn.Cell | None:
    return ExactGelu(marks) if cell.approximate == "none" else None


def _elu(cell: nn.ELU, marks: StandIns) -> nn.Cell:
    return StandInFor(marks, "Elu", alpha=float(cell.elu.attrs["alpha"]))


def _group_norm(cell: nn.GroupNorm, marks: StandIns) -> nn.Cell:
    return GroupNorm(cell.num_groups, cell.eps, cell.gamma, cell.beta)


# what the ONNX exporter of MindSpore 2.10 has no converter for
FOR_ONNX: dict[type, Form] = {
    nn.MaxPool2d: _max_pool,
    nn.AvgPool2d: _average_pool,
    nn.AdaptiveAvgPool2d: lambda cell, marks: AdaptiveMean(cell.adaptive_avgpool2d.attrs["output_size"]),
    nn.HSwish: lambda cell, marks: HSwish(),
    nn.HSigmoid: lambda cell, marks: HSigmoid(),
    nn.GELU: _gelu,
    nn.ELU: _elu,
    nn.GroupNorm: _group_norm,
}
# what MindSpore cannot run where the size of a batch is open
FOR_DYNAMIC: dict[type, Form] = {nn.MaxPool2d: _max_pool_for_dynamic}
