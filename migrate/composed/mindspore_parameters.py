"""Parameters that begin as torch's do, and lists and dictionaries of them, with torch's names for what is inside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from typing import Any

from mindspore import Parameter, nn
from mindspore.common.initializer import Constant, initializer


def starting_at(cell: nn.Cell, value: float, *names: str) -> nn.Cell:
    """Give parameters of a new layer the number that torch's begin with; names as `layers.*.bias`."""
    for name, parameter in cell.parameters_and_names():
        if any(fnmatch(name, pattern) for pattern in names):
            parameter.set_data(initializer(Constant(value), parameter.shape, parameter.dtype))
    return cell


class ParameterList(nn.Cell):
    """Parameters by their place."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__()
        self.count = 0
        for value in values:
            self.append(value)

    def append(self, value: Any) -> ParameterList:
        """Add one more at the end."""
        parameter = value if isinstance(value, Parameter) else Parameter(value)
        self.insert_param_to_cell(str(self.count), parameter, check_name_contain_dot=False)
        self.count += 1
        return self

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Parameter:
        return getattr(self, str(range(self.count)[index]))

    def __iter__(self) -> Iterator[Parameter]:
        return iter([self[index] for index in range(self.count)])


class ParameterDict(nn.Cell):
    """Parameters by their name."""

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.names: list[str] = []
        for name, value in (parameters or {}).items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        parameter = value if isinstance(value, Parameter) else Parameter(value)
        self.insert_param_to_cell(name, parameter)
        self.names.append(name)

    def __getitem__(self, name: str) -> Parameter:
        return getattr(self, name)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def keys(self) -> list[str]:
        """The names."""
        return self.names

    def values(self) -> list[Parameter]:
        """The parameters."""
        return [self[name] for name in self.names]

    def items(self) -> list[tuple[str, Parameter]]:
        """Names and parameters."""
        return [(name, self[name]) for name in self.names]
