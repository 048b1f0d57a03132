"""A model's layers in the order they run, which classes are the same layer, and which layers stand together for one.

What one net computes in one module and the other in several is found by following the tensors: two layers of different
classes stand in the same place only where both take one module's output and give another's input. Where one of them
does not, the code around it is part of what the other computes: a hand-written gate around its ReLU6, or a BatchNorm
with the ReLU after it.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cache, cached_property

from ...mappings import table
from ...mappings.rows import Row
from ...mappings.state_names import part_of_weight
from ...mappings.verb_registry import SHAPES
from .model_structure import Call, Held, Module, Shape, Structure, parent, regrouped, same_but_cut, same_elements

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
IDENTITY = "Identity"
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
    return {row.short: row for row in reversed(table.rows("layer"))}  # a built-in row wins over a user's of its name


@cache
def _torch_classes() -> dict[str, str]:
    names = {row.mindspore.rsplit(".", 1)[-1]: row.short for row in table.rows("layer") if row.mindspore}
    return {**ELSEWHERE, **names}


def torch_class(kind: str) -> str:
    """The torch class that a MindSpore (or torch) class of this name corresponds to; an unknown name stays."""
    if kind in ELSEWHERE:
        return ELSEWHERE[kind]
    return kind if kind in _rows() else _torch_classes().get(kind, kind)


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


def alike(torch_kind: str, mindspore_kind: str) -> bool:
    """Whether two classes are the same layer."""
    return torch_class(torch_kind) == torch_class(mindspore_kind)


def is_step(torch_kind: str, mindspore_kind: str) -> bool:
    """Whether one is a recurrent layer and the other the cell that does one step of it, in a loop."""
    one, other = sorted((torch_class(torch_kind), torch_class(mindspore_kind)), key=len)
    return one in RECURRENT and other == f"{one}Cell"


def one_sort(torch_kind: str, mindspore_kind: str) -> bool:
    """Whether two classes do the same sort of thing, so that one may stand where the other should."""
    torch, mindspore = torch_class(torch_kind), torch_class(mindspore_kind)
    return any(torch in sort and mindspore in sort for sort in SORTS)


FEW = 2  # weights: a layer that has more does what several may do
DEEP = 6  # layers over which a branch is followed to tell it from another
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
    shape: Shape | None = None  # of its first call's output
    passes: bool = False  # whether that output was its input, as an Identity's or a Flatten's is

    @cached_property
    def held(self) -> tuple[tuple[str, Shape, bool], ...]:
        """Its tensors: name, shape, whether it trains."""
        return tuple(sorted((name, held.shape, held.trains) for name, held in self.tensors.items()))

    @property
    def sort(self) -> str:
        """Its torch class; a 1x1 convolution is a Linear, and a recurrent class includes its number of layers."""
        kind, weights = torch_class(self.kind), [held.shape for held in self.tensors.values() if len(held.shape) > 2]
        point = kind.startswith("Conv") and len(weights) == 1 and set(weights[0][2:]) == {1}
        return "Linear" if point else f"{kind} of {self.steps}" if kind in RECURRENT else kind

    @property
    def steps(self) -> int:
        """How many layers and directions a recurrent layer has."""
        return sum("weight_ih" in name for name in self.tensors)

    @cached_property
    def signature(self) -> tuple[object, ...]:
        """What makes two layers look alike: torch class, shapes of tensors, shape of the output."""
        shapes = sorted(held.shape for held in self.tensors.values() if held.trains)
        return (torch_class(self.kind), tuple(shapes), self.shape)


class Layers:
    """The layer calls of a structure, in order of execution; closed: paths of modules that count as one layer; opened:
    those of layers that are one and whose parts are layers too."""

    def __init__(self, structure: Structure, closed: Set[str] = frozenset(), opened: Set[str] = frozenset()) -> None:
        self.structure = structure
        self.closed = closed
        self.opened = opened
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
            path: Layer(
                path,
                structure.by_path[path].kind,
                below.get(path, {}),
                call.shape,
                call.output is not None and call.inputs[:1] == (call.output,),
            )
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
            if (call.path, call.call) in parents and call.path not in self.opened:
                self.containers.append(call)
                continue
            self.calls.append(call)
            if self._whole(call.path):
                skipped = call.left

    def _whole(self, path: str) -> bool:
        if path in self.opened:
            return False
        return path in self.closed or whole(self.structure.by_path[path].kind)

    def several(self) -> dict[str, int]:
        """Path -> how often a module runs in one pass, where that is not once."""
        counts = Counter(call.path for call in self.structure.calls)
        return {path: count for path, count in counts.items() if count > 1}

    def composites(self) -> set[str]:
        """The layers that have tensors of their own and call modules that have none; not recurrent ones, since
        MindSpore's call Cells that torch's have no counterpart for."""
        called, found = {call.path for call in self.structure.calls}, set()
        for path in self.by_path:
            if torch_class(self.by_path[path].kind) in RECURRENT:
                continue
            parts = [module for module in self.structure.modules if path and module.path.startswith(f"{path}.")]
            if self.structure.by_path[path].tensors and not any(part.tensors for part in parts):
                found |= {path} if any(part.path in called for part in parts) else set()
        return found

    def no_lists(self, paths: Iterable[str]) -> list[str]:
        """Those of these modules that are not plain lists."""
        return [path for path in paths if torch_class(self.structure.by_path[path].kind) not in CONTAINERS]

    def plain(self, path: str) -> bool:
        """Whether a container's output is that of the last layer in it that changes its input."""
        call = next(call for call in self.containers if call.path == path)
        inside = self._changing(self.inside(call))
        return bool(inside) and inside[-1].output == call.output

    def shapes(self, path: str) -> list[Shape]:
        """The shapes of what trains in a module, sorted."""
        tensors = self.structure.tensors().items()
        return sorted(held.shape for name, held in tensors if held.trains and name.startswith(f"{path}."))

    def inside(self, call: Call) -> list[Call]:
        """The calls of other layers that this call makes."""
        return [c for c in self.calls if call.entered < c.entered < call.left]

    @cached_property
    def by_call(self) -> dict[tuple[str, int], Call]:
        """The layer calls by path, and which of its calls."""
        return {(call.path, call.call): call for call in self.calls}

    def made(self, number: int) -> bool:
        """Whether a tensor is the output of a module, not of a function."""
        return number in self._outputs

    def used(self, number: int | None) -> bool:
        """Whether some module takes this tensor as it is."""
        return number in self._inputs

    @cached_property
    def _outputs(self) -> set[int | None]:
        return {call.output for call in self.structure.calls}

    @cached_property
    def _inputs(self) -> set[int | None]:
        return {number for call in self.structure.calls for number in call.inputs}

    def layer(self, index: int) -> Layer:
        """The layer of the call at this place."""
        return self.by_path[self.calls[index].path]

    def branch(self, call: Call) -> tuple[tuple[object, ...], ...]:
        """The signatures of the chain of layers from this call on: its own first, next what it calls inside, then the
        layers that take its output; without layers that only pass on their input."""
        if call.entered not in self._branches:
            chain: list[tuple[object, ...]] = []
            following = [call]
            while len(following) == 1 and len(chain) < DEEP:
                inside = self.inside(following[0]) if following[0].path in self.opened else []
                chain += [self.by_path[c.path].signature for c in following + self._changing(inside)]
                following = self._changing(self.following(following[0]))
            self._branches[call.entered] = tuple(chain[:DEEP])
        return self._branches[call.entered]

    def _changing(self, calls: list[Call]) -> list[Call]:
        return [call for call in calls if not self.by_path[call.path].passes]

    def following(self, call: Call) -> list[Call]:
        """The layer calls that take this call's output, or the output of a container around it that ended with it, to
        which a function may have been applied."""
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

    def nearest(self, path: str, some: Container[str]) -> Iterator[str]:
        """Of some layers with tensors, the nearest that runs before a layer and the nearest that runs after it."""
        order = [*dict.fromkeys(call.path for call in self.calls)]
        at = order.index(path)
        for side in (order[at - 1 :: -1] if at else [], order[at + 1 :]):
            yield from itertools.islice((each for each in side if each in some and self.by_path[each].tensors), 1)

    def producers(self, number: int) -> set[str]:
        """The layers whose output had this content."""
        return self._made.get(number, set())

    @cached_property
    def _made(self) -> dict[int, set[str]]:
        made: dict[int, set[str]] = {}
        for call in self.calls:
            if call.output is not None and call.path not in self.opened:  # the layers inside gave that
                made.setdefault(call.output, set()).add(call.path)
        return made


def closed(torch: Layers, mindspore: Layers) -> tuple[set[str], set[str]]:
    """The modules of either side that count as one layer.

    Those of one name, with parts and tensors of the same shapes, that call their parts on one side only: on the other
    they hand the parts' weights to functions, as torchvision's Swin does, and nothing inside can be compared. And those
    whose parts hold just the tensors that the other side has in one layer, as a hand-written attention and a
    MultiheadAttention, with a packed projection or three.
    """
    found: set[str] = set()
    sides: tuple[set[str], set[str]] = (found, set())
    for one, other, mine in ((torch, mindspore, sides[1]), (mindspore, torch, sides[0])):
        containers = {call.path for call in other.containers if call.path}
        shapes = {path: other.shapes(path) for path in containers}
        for path in containers & one.by_path.keys():
            if not any(module.path.startswith(f"{path}.") for module in one.structure.modules):
                continue  # a layer without parts, which the other has in a list
            if one.shapes(path) and one.shapes(path) == shapes[path]:
                found.add(path)
        kinds = {torch_class(layer.kind) for layer in other.by_path.values()}
        alone = [layer for layer in one.by_path.values() if torch_class(layer.kind) not in kinds | RECURRENT]
        manifold = Counter(tuple(one.shapes(layer.path)) for layer in alone if known(layer.kind))
        for held, count in manifold.items():
            fit = [path for path in containers if same_but_cut([*held], shapes[path])]
            fit = [path for path in fit if not any(each.startswith(f"{path}.") for each in fit)]
            if len(held) > FEW and len(fit) == count:
                mine.update(fit)
    return found | sides[0], found | sides[1]


def opened(torch: Layers, mindspore: Layers) -> set[str]:
    """The layers that have tensors and call layers without any, as timm's BatchNormAct2d calls its ReLU, where the
    other side has no such layer of that class."""
    mine, its = torch.composites(), mindspore.composites()
    return {path for path in mine if not any(alike(torch.by_path[path].kind, mindspore.by_path[p].kind) for p in its)}


def crossing(torch: Mapping[str, Held], mindspore: Mapping[str, Held], kind: str, its_kind: str) -> dict[str, str]:
    """Own torch name -> own MindSpore name of the tensors of one layer (or container) that cross.

    By the mapping row where the two are the same layer, then by equal names, by the usual MindSpore names for torch's,
    then as the only tensor of its shape. A tensor crosses only into one whose shape holds the same elements in
    the same order; whether it trains on one side alone does not matter.
    """
    row = row_of(kind) if alike(kind, its_kind) else None
    pairs: dict[str, str] = {}
    for state in row.state if row else ():
        own, there = state.torch, state.mindspore
        if own is None or there is None or own not in torch or there not in mindspore:
            continue
        if fits(torch[own].shape, mindspore[there].shape, state.verb):
            pairs[own] = there
    named = {state.torch for state in row.state} if row else set()
    rest = [name for name in torch if name not in named]
    free = [name for name in mindspore if name not in pairs.values()]

    def enter(name: str, target: str) -> None:
        pairs[name] = target
        free.remove(target)

    for name in rest:
        of_step = [target for target in free if _of_one_step(target) == _of_one_step(name)]
        for target in (part_of_weight(name), USUAL.get(name, ""), *of_step[: len(of_step) == 1]):
            if name not in pairs and target in free and fits(torch[name].shape, mindspore[target].shape):
                enter(name, target)
    for name in [n for n in rest if n not in pairs and torch[n].trains]:
        same = [n for n in rest if n not in pairs and fits(torch[n].shape, torch[name].shape)]
        fit = [n for n in free if fits(torch[name].shape, mindspore[n].shape) and mindspore[n].trains]
        if len(fit) == 1 and len(same) == 1:
            enter(name, fit[0])
    return pairs


def _of_one_step(name: str) -> str:
    """A recurrent cell's name for a weight of a recurrent layer's first layer."""
    return name.rpartition(".")[2].removesuffix("_l0")


def fits(torch: Shape, mindspore: Shape, verb: str | None = None) -> bool:
    """Whether a torch tensor's elements fill a MindSpore tensor: the shapes are the verb's, or one
    has axes of 1 that the other lacks."""
    return (verb is not None and SHAPES[verb].forward(torch) == mindspore) or same_elements(torch, mindspore)


def base_score(torch: Layer, mindspore: Layer) -> float:
    """How well two layers fit by class, tensors and output; 0: not at all."""
    mine = {name for name, held in torch.tensors.items() if held.trains}
    its = {name for name, held in mindspore.tensors.items() if held.trains}
    same_output = torch.shape is not None and torch.shape == mindspore.shape
    both = alike(torch.kind, mindspore.kind)
    steps = torch.steps, mindspore.steps
    if (is_step(torch.kind, mindspore.kind) and sum(steps) > 2) or (both and steps[0] != steps[1]):
        return 0.0  # several layers, or both directions, against the cell or the layer of one
    if not both and max(len(mine), len(its)) > FEW:
        if known(torch.kind) and known(mindspore.kind):
            return 0.0  # attention is none of the projections that are in it
        shapes = [[held.shape for held in each.tensors.values() if held.trains] for each in (torch, mindspore)]
        if len(mine) != len(its) and same_but_cut(*shapes):
            return 2.0 + 2.0 * same_output
    if mine or its:
        crossed = crossing(torch.tensors, mindspore.tensors, torch.kind, mindspore.kind)
        # a tensor that trains on one side alone is still that tensor, and the difference will be reported
        crossed = {name: target for name, target in crossed.items() if name in mine or target in its}
        if not crossed and not (mine and its):  # a norm with and one without a scale and a shift
            return 2.0 + 2.0 * same_output if both else 0.0
        # a layer without its shift is still that layer, and the missing tensor will be reported
        if "weight" in mine and "weight" not in crossed:
            return 0.0
        if len(crossed) < min(len(mine), len(its)) or not crossed:
            return 0.0
        points = 4.0 if both else 2.0
        return points + 2.0 * same_output + (1.0 if len(crossed) == len(mine) == len(its) else 0.0)
    if both:
        return 4.0 + 2.0 * same_output
    if one_sort(torch.kind, mindspore.kind):
        return 1.5 + same_output
    if torch.passes != mindspore.passes or (known(torch.kind) and known(mindspore.kind)):
        return 0.0
    one, other = torch.shape, mindspore.shape
    return 0.5 if one is not None and other is not None and regrouped(one, other) else 0.0


def across_blocks(layers: Layers, partner: Mapping[str, str], path: str, other: str) -> bool:
    """Whether everything else in the block around a layer has its partners in one block of the other net, and `other`
    stands outside that block: it may have the layer's name, as a norm after one block and a norm before the next may,
    but belongs to another block. The block is the innermost with two partners."""
    rest: list[list[str]] = []
    block = parent(path)
    while block and len(rest) < 2:
        rest = [
            partner[p].split(".") for p in layers.by_path if p != path and p in partner and p.startswith(f"{block}.")
        ]
        block = parent(block)
    if len(rest) < 2:
        return False
    alike = itertools.takewhile(lambda parts: len({*parts}) == 1, zip(*rest, strict=False))
    common = [parts[0] for parts in alike]
    return bool(common) and other.split(".")[: len(common)] != common


def in_other_blocks(torch: Layers, mindspore: Layers, partner: Mapping[str, str], path: str, its: str) -> bool:
    """Whether two layers stand in blocks that are not counterparts, and neither runs next to the other's block."""
    back = {its: path for path, its in partner.items()}
    return any(
        all(across_blocks(side, known, one, each) for each in (two, *other.nearest(two, paired)))
        for side, known, one, other, paired, two in (
            (torch, partner, path, mindspore, back, its),
            (mindspore, back, its, torch, partner, path),
        )
    )


def describe(module: Module | Layer) -> str:
    """A module as a message shows it."""
    shapes = ", ".join(f"{name} {list(held.shape)}" for name, held in module.tensors.items() if held.trains)
    return f"{module.path or '(model)'} ({module.kind}{': ' if shapes else ''}{shapes})"


Calls = list[tuple[str, int, str, int]]
Layered = tuple[str, int]  # a path, and which of its calls


@dataclass
class Regions:
    """paired: (torch path, MindSpore path) of a layer and its partner -> those of the modules that stand together in
    their place, None where nothing does; calls: the calls of layers that remain; chains: torch path -> the Cells
    that compute what it does one after the other, none where part of it is a function."""

    paired: dict[tuple[str, str], tuple[str, str] | None] = field(default_factory=dict)
    calls: Calls = field(default_factory=list)
    chains: dict[str, tuple[str, ...]] = field(default_factory=dict)


def regions(torch: Layers, mindspore: Layers, calls: Calls) -> Regions:
    """Which modules stand for which, given the calls of layers that order has paired."""
    found = Regions()
    partners = {(path, k): (its, its_k) for path, k, its, its_k in calls}
    back = {there: here for here, there in partners.items()}
    for path, k, its, its_k in calls:
        one, other = torch.by_call[path, k], mindspore.by_call[its, its_k]
        if path in torch.opened or its in mindspore.opened:
            behind = _behind(torch, one, partners), _behind(mindspore, other, back)
            cells = tuple(dict.fromkeys(p for p, _ in behind[0].paired))
            if path in torch.opened and cells:
                found.chains[path] = (its, *cells)
            elif behind[1].paired or _a_function(behind[0], mindspore, other) or _a_function(behind[1], torch, one):
                found.chains[path] = ()
            else:
                found.calls.append((path, k, its, its_k))
            continue
        layer, its_layer = torch.by_path[path], mindspore.by_path[its]
        if torch_class(layer.kind) == torch_class(its_layer.kind) == IDENTITY:
            found.paired[path, its] = None  # it is never wrong, and where it stands does not matter
            continue
        if is_step(layer.kind, its_layer.kind):
            found.chains[path] = ()
            continue
        if (one.output is None) != (other.output is None):
            continue  # an output of several tensors is not recorded in the net's own pass; alone it is compared
        if layer.tensors or its_layer.tensors or alike(layer.kind, its_layer.kind):
            found.calls.append((path, k, its, its_k))
            continue
        one, other = _around(torch, one), _around(mindspore, other)
        alone = (one.path, other.path) == (path, its)
        ends = (fed(torch, one), torch.used(one.output)), (fed(mindspore, other), mindspore.used(other.output))
        differ = alone and ends[0] != ends[1]
        found.paired.setdefault((path, its), None if differ else (one.path, other.path))
        if not differ:
            found.calls.append((one.path, one.call, other.path, other.call))
    return found


@dataclass(frozen=True)
class _Behind:
    """The layers that a layer calls inside and that change their input: their partners, and whether any has none."""

    paired: tuple[Layered, ...]
    lacks: bool


def _behind(layers: Layers, call: Call, partners: dict[Layered, Layered]) -> _Behind:
    if call.path not in layers.opened:
        return _Behind((), False)
    inside = [c for c in layers.inside(call) if not layers.by_path[c.path].passes]
    found = [partners.get((c.path, c.call)) for c in inside]
    return _Behind(tuple(each for each in found if each is not None), None in found)


def _a_function(behind: _Behind, others: Layers, other: Call) -> bool:
    """Whether the other net may do by a function what this layer calls inside: no module takes the other's output."""
    return behind.lacks and not others.used(other.output)


def fed(layers: Layers, call: Call) -> bool:
    """Whether a call gets another module's output, not a function's."""
    return bool(call.inputs) and layers.made(call.inputs[0])


def _around(layers: Layers, call: Call) -> Call:
    """The outermost call around a layer's that calls no other layer and has no tensors; else the layer's own."""
    found = call
    for each in reversed([c for c in layers.containers if c.entered < call.entered < c.left]):
        kind, held = layers.structure.by_path[each.path].kind, layers.structure.by_path[each.path].tensors
        if held or len(layers.inside(each)) > 1 or not each.path:
            break
        if torch_class(kind) not in CONTAINERS:
            found = each
    return found
