"""What torch's containers do and MindSpore's do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mindspore import nn


class NamedCells(nn.Cell):
    """Cells by name, in their order, as a dictionary; nn.CellDict is no Cell in Graph mode."""

    def __init__(self, cells: Mapping[str, nn.Cell] | None = None) -> None:
        super().__init__()
        self.cell_names: list[str] = []
        self.cell_list: list[nn.Cell] = []
        for name, cell in (cells or {}).items():
            self[name] = cell

    def __setitem__(self, name: str, cell: nn.Cell) -> None:
        if name in self.cell_names:
            setattr(self, name, cell)
            self.cell_list[self.cell_names.index(name)] = cell
            return
        self.insert_child_to_cell(name, cell)
        self.cell_names.append(name)
        self.cell_list.append(cell)

    def __getitem__(self, name: str) -> nn.Cell:
        return self.cell_list[self.cell_names.index(name)]

    def __len__(self) -> int:
        return len(self.cell_names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.cell_names)

    def __contains__(self, name: str) -> bool:
        return name in self.cell_names

    def update(self, cells: Mapping[str, nn.Cell]) -> None:
        """Add cells."""
        for name, cell in cells.items():
            self[name] = cell

    def keys(self) -> list[str]:
        """The names."""
        return self.cell_names

    def values(self) -> list[nn.Cell]:
        """The cells."""
        return self.cell_list

    def items(self) -> zip[tuple[str, nn.Cell]]:
        """Names and cells."""
        return zip(self.cell_names, self.cell_list)  # noqa: B905  # MindSpore compiles no keyword of zip


def add_cell(sequential: nn.SequentialCell, name: str, cell: nn.Cell) -> None:
    """Add a named cell to a SequentialCell, which itself only appends numbered ones."""
    sequential.insert_child_to_cell(name, cell)
    sequential.cell_list = list(sequential.cells())


def replace_cell(sequential: nn.SequentialCell, name: str, cell: nn.Cell) -> None:
    """Put a cell in the place of one that a SequentialCell has by name."""
    setattr(sequential, name, cell)
    sequential.cell_list = list(sequential.cells())
