"""A model's layers in the order they run, and which classes are the same layer."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cache, cached_property

from ...mappings import table
from ...mappings.rows import Row
from ...mappings.verb_registry import SHAPES
from .model_structure import Call, Held, Module, Shape, Structure, parent

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
    if kind in ELSEWHERE:
        return ELSEWHERE[kind]
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


DEEP = 6  # layers that a branch is followed to tell it from another
# torch's names, and what MindSpore's layers call the same: layers of one's own follow the one or the other
USUAL = {
    "weight": "gamma",
    "bias": "beta",
    "running_mean": "moving_mean",
    "running_var": "moving_variance",
}


@dataclass(frozen=True)
class Layer:
    """A module that works as one, whatever is inside: its class and all tensors below it, by name relative to it."""

    path: str
    kind: str
    tensors: Mapping[str, Held] = field(default_factory=dict)
    shape: Shape | None = None  # of what its first call gave

    @cached_property
    def held(self) -> tuple[tuple[str, Shape, bool], ...]:
        """Its tensors: name, shape, whether it trains."""
        return tuple(sorted((name, held.shape, held.trains) for name, held in self.tensors.items()))

    @cached_property
    def signature(self) -> tuple[object, ...]:
        """What makes two layers look alike: torch class, shapes of tensors, shape of the output."""
        shapes = sorted(held.shape for held in self.tensors.values() if held.trains)
        return (torch_class(self.kind), tuple(shapes), self.shape)


class Layers:
    """The layer calls of a structure, in order of execution; closed: paths of modules that count as one layer."""

    def __init__(self, structure: Structure, closed: Set[str] = frozenset()) -> None:
        self.structure = structure
        self.closed = closed
        self.calls: list[Call] = []
        self.containers: list[Call] = []
        self._sort(sorted(structure.calls, key=lambda call: call.entered))
        below: dict[str, dict[str, Held]] = {}
        paths = {call.path for call in self.calls}
        for name, held in structure.tensors().items():
            path, own = parent(name), name
            while path and path not in paths:
                path = parent(path)
            if path in paths:
                below.setdefault(path, {})[own[len(path) + 1 :] if path else own] = held
        first: dict[str, Call] = {}
        for call in self.calls:
            first.setdefault(call.path, call)
        self.by_path = {
            path: Layer(path, structure.by_path[path].kind, below.get(path, {}), call.shape)
            for path, call in first.items()
        }
        self._branches: dict[int, tuple[tuple[object, ...], ...]] = {}
        self.count = {path: sum(call.path == path for call in self.calls) for path in first}

    def _sort(self, calls: list[Call]) -> None:
        """Split into layers and containers: a layer is what calls no other module, or has a row of its own."""
        inside = -1  # a layer of its own, until it is left
        open_: list[Call] = []
        parents: set[tuple[str, int]] = set()
        for call in calls:
            while open_ and open_[-1].left < call.entered:
                open_.pop()
            if call.entered < inside:
                continue
            if open_:
                parents.add((open_[-1].path, open_[-1].call))
            open_.append(call)
            if self._whole(call.path):
                inside = call.left
        skipped = -1
        for call in calls:
            if call.entered < skipped:
                continue
            if (call.path, call.call) in parents:
                self.containers.append(call)
                continue
            self.calls.append(call)
            if self._whole(call.path):
                skipped = call.left

    def _whole(self, path: str) -> bool:
        return path in self.closed or whole(self.structure.by_path[path].kind)

    def layer(self, index: int) -> Layer:
        """The layer of the call at this place."""
        return self.by_path[self.calls[index].path]

    def branch(self, call: Call) -> tuple[tuple[object, ...], ...]:
        """The signatures of the layers that one after the other work on what this call gave, itself the first."""
        if call.entered not in self._branches:
            chain, following = [self.by_path[call.path].signature], self.following(call)
            while len(following) == 1 and len(chain) < DEEP:
                chain.append(self.by_path[following[0].path].signature)
                following = self.following(following[0])
            self._branches[call.entered] = tuple(chain)
        return self._branches[call.entered]

    def following(self, call: Call) -> list[Call]:
        """The layer calls that work on what this call gave, or on what a container around it gave that ended with it:
        that may be behind a function."""
        given = {call.output, *self._ends.get(call.entered, ())}
        found = {c.entered: c for number in given if number is not None for c in self._users.get(number, ())}
        return [found[entered] for entered in sorted(found) if entered > call.entered]

    @cached_property
    def _users(self) -> dict[int, list[Call]]:
        """Number of a tensor -> the layer calls that it goes into."""
        users: dict[int, list[Call]] = {}
        for call in self.calls:
            for number in set(call.inputs):
                users.setdefault(number, []).append(call)
        return users

    @cached_property
    def _ends(self) -> dict[int, set[int]]:
        """When a layer call began -> the outputs of the containers that end with it."""
        began = [call.entered for call in self.calls]
        ends: dict[int, set[int]] = {}
        for container in self.containers:
            last = bisect.bisect_left(began, container.left) - 1
            if container.output is not None and last >= 0 and began[last] > container.entered:
                ends.setdefault(began[last], set()).add(container.output)
        return ends

    def producers(self, number: int) -> set[str]:
        """The layers whose output had this content."""
        return self._made.get(number, set())

    @cached_property
    def _made(self) -> dict[int, set[str]]:
        made: dict[int, set[str]] = {}
        for call in self.calls:
            if call.output is not None:
                made.setdefault(call.output, set()).add(call.path)
        return made


def closed(ours: Layers, theirs: Layers) -> set[str]:
    """The modules of one name, with parts and tensors of the same shapes, that call their parts on one side only.

    On the other they hand the parts' weights to functions, as torchvision's Swin does, and nothing inside compares.
    """
    found = set()
    for one, other in ((ours, theirs), (theirs, ours)):
        containers = {call.path for call in other.containers if call.path}
        for path in containers & one.by_path.keys():
            if not any(module.path.startswith(f"{path}.") for module in one.structure.modules):
                continue  # a layer without parts, which the other has in a list
            inside = sorted(held.shape for held in one.by_path[path].tensors.values() if held.trains)
            tensors = other.structure.tensors().items()
            if inside and inside == sorted(h.shape for name, h in tensors if name.startswith(f"{path}.") and h.trains):
                found.add(path)
    return found


def crossing(ours: Mapping[str, Held], theirs: Mapping[str, Held], kind: str, their_kind: str) -> dict[str, str]:
    """Own torch name -> own MindSpore name of the tensors of one layer (or container) that cross.

    By the mapping row where the two are the same layer, then by equal names, by those that MindSpore's layers have for
    torch's, then the only tensor of its shape. A tensor crosses only into one whose shape holds the same elements in
    the same order; whether it trains on one side alone does not matter.
    """
    row = row_of(kind) if alike(kind, their_kind) else None
    pairs: dict[str, str] = {}
    for state in row.state if row else ():
        if state.torch is None or state.mindspore is None or state.torch not in ours or state.mindspore not in theirs:
            continue
        if fits(ours[state.torch].shape, theirs[state.mindspore].shape, state.verb):
            pairs[state.torch] = state.mindspore
    named = {state.torch for state in row.state} if row else set()
    rest = [name for name in ours if name not in named]
    free = [name for name in theirs if name not in pairs.values()]

    def enter(name: str, target: str) -> None:
        pairs[name] = target
        free.remove(target)

    for name in rest:
        for target in (name, USUAL.get(name, "")):
            if name not in pairs and target in free and fits(ours[name].shape, theirs[target].shape):
                enter(name, target)
    for name in [n for n in rest if n not in pairs and ours[n].trains]:
        same = [n for n in rest if n not in pairs and fits(ours[n].shape, ours[name].shape)]
        fit = [n for n in free if fits(ours[name].shape, theirs[n].shape) and theirs[n].trains]
        if len(fit) == 1 and len(same) == 1:
            enter(name, fit[0])
    return pairs


def fits(ours: Shape, theirs: Shape, verb: str | None = None) -> bool:
    """Whether a torch tensor's elements fill a MindSpore tensor: the shapes are the verb's, or one
    has axes of 1 that the other lacks."""
    if verb is not None and SHAPES[verb].forward(ours) == theirs:
        return True
    alike = len(ours) != len(theirs) and _squeezed(ours) == _squeezed(theirs)  # a (1, 7) filter is no (7, 1) filter
    return ours == theirs or (alike and math.prod(ours) > 0)


def _squeezed(shape: Shape) -> Shape:
    return tuple(n for n in shape if n != 1)


def base_score(ours: Layer, theirs: Layer) -> float:
    """How well two layers fit by class, tensors and output; 0: not at all."""
    mine = {name for name, held in ours.tensors.items() if held.trains}
    its = {name for name, held in theirs.tensors.items() if held.trains}
    same_output = ours.shape is not None and ours.shape == theirs.shape
    both = alike(ours.kind, theirs.kind)
    if mine or its:
        crossed = crossing(ours.tensors, theirs.tensors, ours.kind, theirs.kind)
        # what trains on one side alone is that tensor still, and the difference will be told
        crossed = {name: target for name, target in crossed.items() if name in mine or target in its}
        if not crossed and not (mine and its):  # a norm with and one without a scale and a shift
            return 2.0 + 2.0 * same_output if both else 0.0
        # a layer without its shift is still that layer, and what is missing will be told
        if "weight" in mine and "weight" not in crossed:
            return 0.0
        if len(crossed) < min(len(mine), len(its)) or not crossed:
            return 0.0
        points = 4.0 if both else 2.0
        return points + 2.0 * same_output + (1.0 if len(crossed) == len(mine) == len(its) else 0.0)
    if both:
        return 4.0 + 2.0 * same_output
    if one_sort(ours.kind, theirs.kind):
        return 1.5 + same_output
    both_known = known(ours.kind) and known(theirs.kind)
    return 0.5 if same_output and not both_known else 0.0


def describe(module: Module | Layer) -> str:
    """A module as a message shows it."""
    shapes = ", ".join(f"{name} {list(held.shape)}" for name, held in module.tensors.items() if held.trains)
    return f"{module.path or '(model)'} ({module.kind}{': ' if shapes else ''}{shapes})"
