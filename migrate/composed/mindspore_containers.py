"""What torch's containers do and MindSpore's do not."""

from __future__ import annotations

from mindspore import nn


def add_cell(sequential: nn.SequentialCell, name: str, cell: nn.Cell) -> None:
    """Add a named cell to a SequentialCell, which itself only appends numbered ones."""
    sequential.insert_child_to_cell(name, cell)
    sequential.cell_list = list(sequential.cells())
