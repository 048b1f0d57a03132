"""Cells that hold others, what is done to a finished Cell, and what takes the place of code that was not written."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatch
from functools import partial
from typing import Any, NamedTuple

import mindspore
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Constant, HeUniform, Normal, Uniform, initializer


class Rearranged(nn.Cell):
    """A change of axes as a layer: a function of the tensor and of these sizes."""

    def __init__(self, change: Callable[..., Tensor], *sizes: int) -> None:
        super().__init__()
        self.change, self.sizes = change, sizes

    def construct(self, x: Tensor) -> Tensor:
        """The changed tensor."""
        return self.change(x, *self.sizes)


class DataParallel(nn.Cell):
    """A layer as it is: a process of MindSpore has one device, where torch's may share a batch among several."""

    def __init__(self, module: nn.Cell, *_: Any, **__: Any) -> None:
        super().__init__()
        self.module = module

    def construct(self, *inputs: Any, **words: Any) -> Any:
        """What the layer gives."""
        return self.module(*inputs, **words)


class Mixed(nn.Cell):
    """A product with a weight, between changes of axes, as a layer: a function of the tensor, the weight and the bias.

    shape, bias_shape: their shapes, None without a bias. inputs: how many values make one of the result, by which
    einops draws its weights. sizes: what the function is given besides.
    """

    def __init__(
        self,
        mix: Callable[..., Tensor],
        shape: tuple[int, ...],
        bias_shape: tuple[int, ...] | None,
        inputs: int,
        *sizes: int,
    ) -> None:
        super().__init__()
        self.mix, self.sizes = mix, sizes
        self.weight = Parameter(initializer(Uniform((3 / inputs) ** 0.5), shape))
        self.bias = None
        if bias_shape is not None:
            self.bias = Parameter(initializer(Uniform((1 / inputs) ** 0.5), bias_shape))

    def construct(self, x: Tensor) -> Tensor:
        """The product."""
        return self.mix(x, self.weight, self.bias, *self.sizes)


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


class OptionalCells(nn.Cell):
    """A list of cells that may contain None, as torch's ModuleList may; nn.CellList takes no None."""

    def __init__(self, cells: Iterable[nn.Cell | None] = ()) -> None:
        super().__init__()
        self.cell_list: list[nn.Cell | None] = []
        for cell in cells:
            self.append(cell)

    def append(self, cell: nn.Cell | None) -> None:
        """Add a cell, or None."""
        if cell is not None:
            self.insert_child_to_cell(str(len(self.cell_list)), cell)
        self.cell_list.append(cell)

    def __getitem__(self, place: int) -> nn.Cell | None:
        return self.cell_list[place]

    def __len__(self) -> int:
        return len(self.cell_list)

    def __iter__(self) -> Iterator[nn.Cell | None]:
        return iter(self.cell_list)


def add_cell(sequential: nn.SequentialCell, name: str, cell: nn.Cell) -> None:
    """Add a named cell to a SequentialCell, which itself only appends numbered ones."""
    sequential.insert_child_to_cell(name, cell)
    sequential.cell_list = list(sequential.cells())


class CalledCells(nn.CellList):
    """A list of cells under the name `cells`, which is a method of every Cell: called, it gives its owner's cells.

    owner: the Cell that has it; cells: those that are in it from the start.
    """

    def __init__(self, owner: nn.Cell, cells: list[nn.Cell]) -> None:
        super().__init__(cells)
        object.__setattr__(self, "_owner", owner)  # which is no cell inside of it

    def __call__(self) -> Any:
        """The cells of the owner, as MindSpore asks for them."""
        return self._owner._cells.values()


def hold_cells(owner: nn.Cell, cells: Any) -> None:
    """Let a Cell have a list of cells as `owner.cells`."""
    held = CalledCells(owner, list(cells))
    held.update_parameters_name("cells.")
    owner._cells["cells"] = held
    object.__setattr__(owner, "cells", held)


def replace_cell(owner: nn.Cell, name: str | int, cell: nn.Cell) -> None:
    """Put a cell under a name, or in the place of one by its number, also into one that keeps a list of its cells."""
    name = [*owner._cells][name] if isinstance(name, int) else name
    if isinstance(owner, NamedCells):
        owner[name] = cell
        return
    setattr(owner, name, cell)
    if isinstance(owner, nn.SequentialCell):
        owner.cell_list = list(owner.cells())


def take_cell(cells: Any, index: int | slice) -> Any:
    """Take a cell, or those of a slice, out of a SequentialCell or a CellList, as `del` and `pop` of torch's do: the
    others have numbers for names then, also those that had other names."""
    rest = list(cells.cells())
    found = rest[index]
    del rest[index]
    cells._cells = OrderedDict((str(place), cell) for place, cell in enumerate(rest))
    if isinstance(cells, nn.SequentialCell):
        cells._is_dynamic_name = [True] * len(rest)
        cells.cell_list = rest
    return found


def drop_parameters(cell: nn.Cell, *names: str) -> None:
    """Make parameters of a cell None; one that is only set to None stays among its parameters, where MindSpore compiles
    no net with it."""
    for name in names:
        delattr(cell, name)
        setattr(cell, name, None)


def in_turn(cells: list[nn.Cell], input: Any) -> Any:
    """What some cells make of an input, each of what the one before it made, as a slice of torch's Sequential."""
    for cell in cells:
        input = cell(input)
    return input


def starting_at(cell: nn.Cell, value: float, *names: str) -> nn.Cell:
    """Give parameters of a new layer the number that torch's begin with; names: patterns such as `layers.*.bias`."""
    for name, parameter in cell.parameters_and_names():
        if any(fnmatch(name, pattern) for pattern in names):
            parameter.set_data(initializer(Constant(value), parameter.shape, parameter.dtype))
    return cell


def first_name(cell: nn.Cell, *names: str) -> str:
    """The first of these names that is an attribute of the cell; the first of all where none is.

    names: torch's, then those that MindSpore's layers have for it, as "weight", "gamma", "embedding_table".
    """
    return next((name for name in names if hasattr(cell, name)), names[0])


def class_name(value: Any, **names: str) -> str:
    """The name of a value's class; names: torch's for those that MindSpore calls otherwise, as Dense="Linear"."""
    name = type(value).__name__
    return names.get(name, name)


def padding_of(padding: Any, rank: int) -> tuple[int, ...]:
    """A convolution's padding in torch's form, a number for each dimension; MindSpore keeps one, or two for each."""
    return (padding,) * rank if isinstance(padding, int) else tuple(padding)[-2 * rank :: 2]


CONVOLUTIONS = (
    *(nn.Conv1d, nn.Conv1dTranspose, nn.Conv2d, nn.Conv2dTranspose),
    *(nn.Conv3d, nn.Conv3dTranspose),
)
POOLS = (nn.MaxPool1d, nn.AvgPool1d, nn.MaxPool2d, nn.AvgPool2d, nn.MaxPool3d, nn.AvgPool3d)


def layer_size(layer: nn.Cell, name: str) -> Any:
    """A size of a convolution or of pooling, as torch's layer has it.

    name: kernel_size, stride, padding, dilation or output_padding. Raises AttributeError where MindSpore's layer does
    not keep it.
    """
    places = [n // 2 + 1 for n, kind in enumerate((*CONVOLUTIONS, *POOLS)) if isinstance(layer, kind)]
    size, pools = getattr(layer, name, None), isinstance(layer, POOLS)
    if size is None and pools and layer.pad_mode.upper() == "VALID":  # which takes no others
        size = 0 if name == "padding" else 1
    if size is None or not places:
        raise AttributeError(f"MindSpore's {type(layer).__name__} does not keep its {name}")
    rank = (places[0] - 1) % 3 + 1
    if name == "padding" and not pools:
        return padding_of(size, rank)
    sizes = tuple(size)[-rank:] if isinstance(size, (tuple, list)) else (size,) * rank
    return sizes[0] if pools and sizes.count(sizes[0]) == rank else sizes


def change_layer(layer: Any, **settings: Any) -> None:
    """`norm.eps = 0.001`: MindSpore's layers hand on to their operators what they are made with, and do not look again.

    settings: by torch's names. Raises AttributeError for what MindSpore's layer keeps as it was made.
    """
    for name, value in settings.items():
        norm, drops = getattr(layer, "bn2d", layer), getattr(layer, "dropout", None)  # bn2d: of a BatchNorm3d
        if name in ("p", "drop_prob") and getattr(layer, "drops_by_cell", False):
            if value < 1:
                change_layer(drops, p=value)
        elif name == "p" and isinstance(layer, nn.Dropout):
            layer.dropout = ops.Dropout(1.0 - value, layer.dropout.Seed0, layer.dropout.Seed1)
        elif name in ("eps", "momentum") and hasattr(norm, "bn_train"):
            setattr(norm, name, value)
            norm.bn_train = ops.BatchNorm(True, norm.eps, norm.momentum, norm.format)
            norm.bn_infer = ops.BatchNorm(False, norm.eps, data_format=norm.format)
        elif name == "eps" and isinstance(layer, nn.LayerNorm):
            layer.epsilon = value
            layer.layer_norm = ops.LayerNorm(layer.begin_norm_axis, layer.begin_params_axis, value)
        elif name == "negative_slope" and isinstance(layer, nn.LeakyReLU):
            layer.alpha = value
        elif type(layer).__module__.startswith("mindspore.") and not isinstance(layer, nn.GroupNorm):
            raise AttributeError(f"MindSpore's {type(layer).__name__} keeps its {name} as it was made")
        setattr(layer, name, value)


def is_class(value: Any, *classes: Any) -> bool:
    """Whether a value is one of these classes; a class with other defaults is a partial of it, with these arguments.

    The class of a layer is that of any partial of it.
    """
    known = [(one.func, one.args, one.keywords) if isinstance(one, partial) else one for one in (value, *classes)]
    return known[0] in known[1:] or value in [one.func for one in classes if isinstance(one, partial)]


def set_mode(net: nn.Cell, *, training: bool) -> None:
    """Put a net's cells into a mode without what a class's own `train` does: as torch's modules are made."""
    for _, cell in net.cells_and_names():
        cell.add_flags(training=training)


def classes_themselves(value: Any) -> Any:
    """A class without the defaults that a partial gives it; of a tuple or list of classes, each of them."""
    if isinstance(value, (tuple, list)):
        return tuple(classes_themselves(one) for one in value)
    return value.func if isinstance(value, partial) else value


NORMS = (
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.SyncBatchNorm, nn.LayerNorm, nn.GroupNorm),
    *(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
)
RUNNING = {"moving_mean": "running_mean", "moving_variance": "running_var"}
STATISTICS = ("moving_mean", "moving_variance")
TORCH_NAMES = {"gamma": "weight", "beta": "bias", "embedding_table": "weight", "w": "weight"}


def buffer(value: Any, name: str | None = None) -> Parameter:
    """A Parameter that does not train, for a buffer: MindSpore saves nothing else in a checkpoint."""
    parameter = Parameter(value, name=name, requires_grad=False)
    parameter.of_buffer = True
    return parameter


def with_buffers(cell: nn.Cell, **tensors: Any) -> nn.Cell:
    """Give a new loss tensors, such as the weights of its classes, as buffers by these names; None stays None.

    A Parameter, as another buffer of the net is, stays the same one, as in torch.
    """
    for name, value in tensors.items():
        if hasattr(cell, name):
            delattr(cell, name)
        setattr(cell, name, value if value is None or isinstance(value, Parameter) else buffer(value, name))
    return cell


def named_parameters(cell: nn.Cell, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Parameter]]:
    """Names and parameters, as torch's named_parameters: by torch's names, and without what is a buffer there.

    Cell.parameters_and_names() has running statistics and buffers too, and other names for the weights of norms.
    """
    owners = dict(cell.cells_and_names())
    for path, parameter in cell.parameters_and_names(expand=recurse):
        place, _, name = path.rpartition(".")
        owner = owners.get(place)
        norm = isinstance(owner, NORMS) or getattr(owner, "is_norm", False)
        if getattr(parameter, "of_buffer", False) or (norm and name in STATISTICS):
            continue
        if getattr(owner, "affine", True) is False and name in ("gamma", "beta"):
            continue  # of a GroupNorm: torch has none
        if norm or isinstance(owner, (nn.Embedding, nn.PReLU)):
            name = TORCH_NAMES.get(name, name)
        if norm and isinstance(owners.get(place.rpartition(".")[0]), nn.BatchNorm3d):
            place = place.rpartition(".")[0]  # it has a BatchNorm2d inside
        yield ".".join(part for part in (prefix, place, name) if part), parameter


def state_dict(cell: nn.Cell) -> dict[str, Tensor]:
    """The parameters and buffers by torch's names and in its order; the numbers of batches that torch's norms count, as
    they are before the first."""
    found: dict[str, Tensor] = {}
    owners = dict(cell.cells_and_names())
    for path, owner in owners.items():
        norm = isinstance(owner, NORMS) or getattr(owner, "is_norm", False)
        if norm and isinstance(owners.get(path.rpartition(".")[0]), nn.BatchNorm3d):
            path = path.rpartition(".")[0]  # it has a BatchNorm2d inside
        own = {name: one for name, one in vars(owner)["_params"].items() if one is not None}
        norm |= "moving_variance" in own and not getattr(own["moving_variance"], "of_buffer", False)
        if getattr(owner, "affine", True) is False:
            own = {name: one for name, one in own.items() if name not in ("gamma", "beta")}
        for name in sorted(own, key=lambda one: getattr(own[one], "of_buffer", False) or one in STATISTICS):
            called = name
            if norm or isinstance(owner, (nn.Embedding, nn.PReLU)):
                called = (TORCH_NAMES | RUNNING).get(name, name)
            found[f"{path}.{called}" if path else called] = own[name]
        if norm and "moving_variance" in own:
            found[f"{path}.num_batches_tracked" if path else "num_batches_tracked"] = Tensor(0, mindspore.int64)
    return found


class IncompatibleKeys(NamedTuple):
    """The names that a state lacks, and those of it that a net lacks."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def load_state_dict(cell: nn.Cell, state: Mapping[str, Tensor], strict: bool = True) -> IncompatibleKeys:
    """Give the parameters and buffers these values, by torch's names; raises ValueError where one lacks or is left
    over, unless `strict` is false."""
    own = state_dict(cell)
    found = IncompatibleKeys([name for name in own if name not in state], [name for name in state if name not in own])
    if strict and any(found):
        raise ValueError(f"not in both: {', '.join([*found.missing_keys, *found.unexpected_keys])}")
    for name, value in own.items():
        if isinstance(value, Parameter) and name in state:
            value.set_data(Tensor(state[name].asnumpy(), value.dtype))
    return found


def named_modules(cell: nn.Cell) -> list[tuple[str, nn.Cell]]:
    """Names and cells, as torch's named_modules of a net with BatchNorm3d: without the BatchNorm2d that MindSpore has
    inside of each."""
    pairs = list(cell.cells_and_names())
    inside = {id(each.bn2d) for _, each in pairs if isinstance(each, nn.BatchNorm3d)}
    return [(name, each) for name, each in pairs if id(each) not in inside]


def parameters(cell: nn.Cell, recurse: bool = True) -> Iterator[Parameter]:
    """The parameters, as torch's parameters(): without running statistics and buffers."""
    owners = dict(cell.cells_and_names())
    for path, parameter in cell.parameters_and_names(expand=recurse):
        place, _, name = path.rpartition(".")
        owner = owners.get(place)
        statistic = name in STATISTICS and (isinstance(owner, NORMS) or getattr(owner, "is_norm", False))
        constant = name in ("gamma", "beta") and getattr(owner, "affine", True) is False
        if not (getattr(parameter, "of_buffer", False) or statistic or constant):
            yield parameter


class ParameterList(nn.Cell):
    """A list of parameters."""

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

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add several at the end."""
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Parameter:
        return getattr(self, str(range(self.count)[index]))

    def __iter__(self) -> Iterator[Parameter]:
        return iter([self[index] for index in range(self.count)])


class ParameterDict(nn.Cell):
    """A dictionary of parameters."""

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


def reset_parameters(cell: nn.Cell, *names: str) -> None:
    """Give a layer the weights that a new one has: a norm's ones and zeros, other layers' drawn by their fan-in.

    names: only these, if it has more.
    """
    held = dict(cell.parameters_and_names(expand=False))
    parameters = {name: parameter for name, parameter in held.items() if not names or name in names}
    if not parameters and cell.cells():
        raise ValueError(f"how to reset {type(cell).__name__} is not known: its weights are in the cells inside it")
    for name, parameter in parameters.items():
        if name in ("gamma", "moving_variance"):
            rule = "ones"
        elif name in ("beta", "moving_mean"):
            rule = "zeros"
        elif name == "embedding_table":
            rule = Normal(sigma=1.0)
        elif name == "weight":
            rule = HeUniform(negative_slope=math.sqrt(5))
        elif name == "bias" and "weight" in parameters:
            rule = Uniform(scale=1 / math.sqrt(math.prod(parameters["weight"].shape[1:])))
        else:
            raise ValueError(f"how to reset {name} of {type(cell).__name__} is not known")
        parameter.copy_(initializer(rule, parameter.shape, parameter.dtype).init_data())  # an optimizer may have run


def evaluated(text: str, known: Mapping[str, Any], *undefined: str) -> Any:
    """What `eval(text)` was in torch's file: by its text, or a NameError.

    Raises NotImplementedError for a text that did not run when the file was written.
    """
    if text in undefined:
        raise NameError(f"name {text!r} is not defined")
    if text not in known:
        raise NotImplementedError(
            f"eval({text!r}) did not run when this was written: write what it gives into the table"
        )
    return known[text]


def not_converted(why: str) -> Any:
    """Raise NotImplementedError: this part of the model has no MindSpore source yet."""
    raise NotImplementedError(why)
