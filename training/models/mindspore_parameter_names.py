"""Torch's state_dict names for a MindSpore net's parameters: the canonical names of every report and trace."""

from __future__ import annotations

from dataclasses import dataclass

from mindspore import Parameter, nn

from ...mappings import table


@dataclass(frozen=True)
class Canonical:
    """One parameter of a net under its torch name; `owner` is the torch class name of the layer that holds it, `shape`
    what torch's has, where the net's has other axes of 1."""

    name: str
    owner: str
    parameter: Parameter
    shape: tuple[int, ...] | None = None


def canonical_parameters(net: nn.Cell, every_name: bool = False) -> list[Canonical]:
    """Every parameter and buffer of `net`, in definition order, under its torch state_dict name.

    The names go by the class of the owning Cell (a BatchNorm2d's gamma is torch's weight), or the first of its bases
    that the mapping table knows, never by suffix. A Cell without a row there keeps its own parameter names. Attribute
    paths are used rather than Parameter.name, which drops `moving_` on a stand-alone norm and changes under an
    optimizer's prefix. A Parameter that several Cells share counts once, under its first name, as in torch's
    `named_parameters`; with `every_name` under each.
    """
    rows = {row.mindspore.rsplit(".", 1)[-1]: row for row in table.rows("layer") if row.mindspore}
    found: list[Canonical] = []
    seen: set[int] = set()
    for path, cell in net.cells_and_names():
        row = next((rows[kind.__name__] for kind in type(cell).mro() if kind.__name__ in rows), None)
        torch_names = {state.mindspore: state.torch for state in row.state if state.mindspore} if row else {}
        owner = row.torch.rsplit(".", 1)[-1] if row else type(cell).__name__
        for attribute, parameter in cell.parameters_and_names(expand=False):
            if id(parameter) in seen and not every_name:
                continue
            seen.add(id(parameter))
            name = torch_names.get(attribute, attribute)
            found.append(Canonical(f"{path}.{name}" if path else name, owner, parameter))
    return found
