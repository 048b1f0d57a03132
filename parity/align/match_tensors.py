"""Which tensor of the MindSpore net is which of the torch model's, given which modules are the same."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from ...errors import BadInput
from ...mappings.state_names import part_of_weight
from ...migrate.checkpoint.user_map import PART, parts_of
from ...training.step.parameter_groups import is_norm
from .alignment import CERTAIN, LIKELY, MAP, NAME, ORDER, Cut, Left, Question, Tensor
from .layers import (
    IDENTITY,
    RECURRENT,
    USUAL,
    Calls,
    Layer,
    Layers,
    alike,
    crossing,
    fits,
    in_other_blocks,
    row_of,
    torch_class,
)
from .model_structure import Filled, Held, Shape, Structure, cut_otherwise, filled_by, join, parent

STATISTICS = ("running_mean", "running_var", USUAL["running_mean"], USUAL["running_var"])


class Crossed:
    """The tensors that cross, and those that do not.

    pairs: torch path -> MindSpore path, how and how sure, for the modules; mapped: the names in the user's map.
    parameters: torch name -> its counterpart; unfit: those whose counterpart has another shape; cuts: the tensors that
    one side has in parts.
    """

    def __init__(
        self,
        torch: Layers,
        mindspore: Layers,
        pairs: Mapping[str, tuple[str, str, str]],
        mapped: Mapping[str, str],
    ) -> None:
        self.torch_layers, self.mindspore_layers, self.pairs, self.mapped = torch, mindspore, pairs, mapped
        self.torch, self.mindspore = torch.structure, mindspore.structure
        self.torch_tensors, self.mindspore_tensors = self.torch.tensors(), self.mindspore.tensors()
        self.taken = {target for target, _, _ in pairs.values()}
        self.unfit: set[str] = set()
        self.cuts: list[Cut] = []
        self.parameters = self._parameters()

    def _parameters(self) -> dict[str, Tensor]:
        torch, mindspore = self.torch_tensors, self.mindspore_tensors
        found: dict[str, Tensor] = {}
        used: set[str] = set()
        cut: set[str] = set()

        def enter(name: str, target: str, how: str, sure: str) -> None:
            if name not in found and name not in cut and target not in used:
                owner = torch_class(self.torch.by_path[parent(name)].kind)
                found[name] = Tensor(target, owner, torch[name].shape, how, sure)
                used.add(target)
                if not self._fit(name, target):
                    self.unfit.add(name)

        for name, target in self.mapped.items():
            if name in torch and target in mindspore:
                enter(name, target, MAP, CERTAIN)
        for path, (its, how, sure) in self.pairs.items():
            mine, other, kind, mindspore_kind = self._both(path, its)
            for own, target in crossing(mine, other, kind, mindspore_kind).items():
                enter(join(path, own), join(its, target), how, sure)
        self.cuts = [*self._mapped_cuts()]
        taken = {name for each in self.cuts for name in each.torch}, {n for each in self.cuts for n in each.mindspore}
        self.cuts += self._cuts(found.keys() | taken[0], used | taken[1])
        cut |= {name for each in self.cuts for name in each.torch}
        used |= {name for each in self.cuts for name in each.mindspore}
        for path in self.torch.by_path:  # a layer that never runs, under one path on both sides
            if path not in self.pairs and path not in self.taken and path in self.mindspore.by_path:
                for own, target in crossing(*self._both(path, path)).items():
                    enter(join(path, own), join(path, target), NAME, CERTAIN)
        for name, there in ((name, part_of_weight(name)) for name in torch):
            if there in mindspore and (torch[name].trains or mindspore[there].trains) and self._fit(name, there):
                enter(name, there, NAME, CERTAIN)
        for name, target in self._in_steps():
            enter(name, target, ORDER, LIKELY)
        for name, target in self._in_one_module(found.keys() | cut, used):
            enter(name, target, "the only one of its shape in its module", LIKELY)
        # then the only one of its shape, first among those that train on both sides
        for some in (all, any):
            rest = [n for n, h in torch.items() if n not in found and n not in cut]
            rest = [n for n in rest if (torch[n].trains or some is any) and not self.state(n)]
            free = [n for n, h in mindspore.items() if n not in used and (h.trains or some is any) and not statistic(n)]
            for name in rest:
                fit = [
                    n
                    for n in free
                    if n not in used and self._fit(name, n) and some([torch[name].trains, mindspore[n].trains])
                ]
                same = [n for n in rest if n not in found and fits(torch[n].shape, torch[name].shape)]
                if len(fit) == 1 and len(same) == 1 and not self._paired(name, fit[0]):
                    enter(name, fit[0], "the only one of its shape", LIKELY)
        for path, (its, how, _) in self.pairs.items():
            for own, target in self._of_other_shapes(path, its, found.keys() | cut, used).items():
                enter(join(path, own), join(its, target), how, LIKELY)
        return {name: found[name] for name in torch if name in found}

    def _in_steps(self) -> Iterator[tuple[str, str]]:
        """Pairs of tensors of recurrent layers and of what the other net has for them: cells that do their steps, or
        layers of fewer steps. A step is one layer in one direction; steps run and are defined in that order."""
        taken = self.pairs.keys() | self.mapped.keys(), self.taken | {*self.mapped.values()}
        both = (
            (self.torch_layers, self.mindspore_layers, taken),
            (self.mindspore_layers, self.torch_layers, taken[::-1]),
        )
        for kind, (layers, others, (known, there)) in itertools.product(("LSTM", "GRU", "RNN"), both):
            wholes = [each for each in _of(layers, (kind,), known) if len(_one_step(each)) > 1]
            cells = _of(others, (kind, f"{kind}Cell"), there)
            defined = [others.structure.position[cell.path] for cell in cells]
            mine, its = ([(one, n) for one in each for n in _one_step(one).values()] for each in (wholes, cells))
            shapes = [[_shapes(*step) for step in steps] for steps in (mine, its)]
            if shapes[0] != shapes[1] or defined != sorted(defined):
                continue
            for (each, names), (cell, own) in zip(mine, its, strict=True):
                pairs = [(join(each.path, names[part]), join(cell.path, own[part])) for part in names]
                yield from pairs if layers is self.torch_layers else (pair[::-1] for pair in pairs)

    def _in_one_module(self, found: Container[str], used: Container[str]) -> Iterable[tuple[str, str]]:
        """Pairs of tensors that train, each the only one of its shape, or the only one of a similar name, in the
        innermost module around it that both sides have."""
        within = {its: path for path, (its, _, _) in self.pairs.items()}
        rest = [
            (n, self._owner(n, self.pairs)) for n, held in self.torch_tensors.items() if held.trains and n not in found
        ]
        free = [
            (n, self._owner(n, within)) for n, held in self.mindspore_tensors.items() if held.trains and n not in used
        ]
        for name, owner in rest:
            fit = [n for n, its in free if within.get(its) == owner and self._fit(name, n)]
            same = [
                n
                for n, its in rest
                if its == owner and fits(self.torch_tensors[n].shape, self.torch_tensors[name].shape)
            ]
            named = [n for n in fit if _called_alike(name[len(owner) :], n[len(self.pairs[owner][0]) :])]
            if owner and len(fit) == len(same) == 1:
                yield name, fit[0]
            elif owner and len(named) == 1:
                yield name, named[0]

    @staticmethod
    def _owner(name: str, paired: Container[str]) -> str:
        """The innermost module around a tensor that has a counterpart; empty for none but the model."""
        path = parent(name)
        while path and path not in paired:
            path = parent(path)
        return path

    def _mapped_cuts(self) -> Iterator[Cut]:
        """The tensors that the user's map has in parts. Raises BadInput for parts that do not fill the whole."""
        groups: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        parts: dict[str, dict[tuple[int, int], str]] = {}
        for name, target in self.mapped.items():
            if part := PART.fullmatch(target):
                parts.setdefault(part[1], {})[int(part[2]), int(part[3])] = name
            elif len(names := tuple(parts_of(target))) > 1:
                groups.append(((name,), names))
        for whole, own in parts.items():
            if sorted(own) != [(i, len(own)) for i in range(1, len(own) + 1)]:
                known = ", ".join(f"{i} of {count}" for i, count in sorted(own))
                raise BadInput(f"of {whole} the map has only {known}: expected every part, from 1 on")
            groups.append((tuple(own[number] for number in sorted(own)), (whole,)))
        for torch, mindspore in groups:
            torch_shapes = [self.torch_tensors[name].shape for name in torch if name in self.torch_tensors]
            mindspore_shapes = [
                self.mindspore_tensors[name].shape for name in mindspore if name in self.mindspore_tensors
            ]
            there = (len(torch_shapes), len(mindspore_shapes)) == (len(torch), len(mindspore))
            filled = filled_by(torch_shapes, mindspore_shapes) if there else None
            if filled is None:
                said = f"{_listed(torch, self.torch_tensors)} and {_listed(mindspore, self.mindspore_tensors)}"
                raise BadInput(
                    f"the map's {said} do not fill each other: the parts together have to be the whole, and each has "
                    "its shape but for one axis"
                )
            yield self._as_cut(torch, mindspore, filled)

    def _as_cut(self, torch: tuple[str, ...], mindspore: tuple[str, ...], filled: Filled) -> Cut:
        return Cut(torch, mindspore, torch_class(self.torch.by_path[parent(torch[0])].kind), *filled)

    def _cuts(self, found: Container[str], used: Container[str]) -> Iterator[Cut]:
        """Left-over tensors of a module that both sides have, whole on one side and in parts on the other; biases are
        cut as their weights are."""
        within = {its: path for path, (its, _, _) in self.pairs.items()}
        rest = {n: self._owner(n, self.pairs) for n in _projections(self.torch) if n not in found}
        free = {n: within.get(self._owner(n, within)) for n in _projections(self.mindspore) if n not in used}
        for place in dict.fromkeys(rest.values()):
            torch_left, mindspore_left = (
                [
                    (n, held[n].shape)
                    for n, at in names.items()
                    if at == place and _leaf(n, "bias", "weight") not in held
                ]
                for names, held in ((rest, self.torch_tensors), (free, self.mindspore_tensors))
            )
            for torch, mindspore, filled in cut_otherwise(torch_left, mindspore_left):
                yield self._as_cut(torch, mindspore, filled)
                torch, mindspore = (tuple(_leaf(n, "weight", "bias") for n in names) for names in (torch, mindspore))
                if rest.keys() >= {*torch} and free.keys() >= {*mindspore}:
                    shapes = (
                        [self.torch_tensors[n].shape for n in torch],
                        [self.mindspore_tensors[n].shape for n in mindspore],
                    )
                    of_biases = filled_by(*shapes)
                    if of_biases is not None:
                        yield self._as_cut(torch, mindspore, of_biases)

    def _fit(self, name: str, target: str) -> bool:
        """Whether a torch tensor's elements fill a MindSpore one, by its layer's row or as they are."""
        torch, mindspore = self.torch_tensors[name].shape, self.mindspore_tensors[target].shape
        row = row_of(self.torch.by_path[parent(name)].kind)
        verbs = [state.verb for state in (row.state if row else ()) if state.torch == name.rpartition(".")[2]]
        return any(fits(torch, mindspore, verb) for verb in (None, *verbs))

    def _of_other_shapes(self, path: str, its: str, found: Container[str], used: Container[str]) -> dict[str, str]:
        """Own torch name -> own MindSpore name of the tensors in a pair of modules that are the same but for their
        shape: by name, or as the only one left over."""
        mine, other, kind, mindspore_kind = self._both(path, its)
        mine = {own: held for own, held in mine.items() if join(path, own) not in found}
        other = {own: held for own, held in other.items() if join(its, own) not in used}
        row = row_of(kind) if alike(kind, mindspore_kind) else None
        names = {**USUAL, **{s.torch: s.mindspore for s in (row.state if row else ()) if s.torch and s.mindspore}}
        pairs = {}
        for own, held in mine.items():
            target = next((name for name in (own, names.get(own, "")) if name in other), None)
            if target is not None and (held.trains or other[target].trains):
                pairs[own] = target
        rest = [own for own, held in mine.items() if held.trains and own not in pairs]
        free = [own for own, held in other.items() if held.trains and own not in pairs.values()]
        if len(rest) == len(free) == 1 and len(mine[rest[0]].shape) == len(other[free[0]].shape):
            pairs[rest[0]] = free[0]
        return pairs

    def _paired(self, name: str, target: str) -> bool:
        """Whether the owners of two tensors are known to be other modules' counterparts, or are in other blocks."""
        torch, mindspore = parent(name), parent(target)
        if torch in self.pairs or mindspore in self.taken:
            return torch not in self.pairs or self.pairs[torch][0] != mindspore
        if torch not in self.torch_layers.by_path or mindspore not in self.mindspore_layers.by_path:
            return False
        partner = {path: its for path, (its, _, _) in self.pairs.items()}
        return in_other_blocks(self.torch_layers, self.mindspore_layers, partner, torch, mindspore)

    def _both(self, path: str, its: str) -> tuple[dict[str, Held], dict[str, Held], str, str]:
        """The tensors of a pair of modules: all below them where they are layers, else their own."""
        torch, mindspore = self.torch.by_path[path], self.mindspore.by_path[its]
        layer, mindspore_layer = self.torch_layers.by_path.get(path), self.mindspore_layers.by_path.get(its)
        mine = layer.tensors if layer is not None else torch.tensors
        other = mindspore_layer.tensors if mindspore_layer is not None else mindspore.tensors
        return dict(mine), dict(other), torch.kind, mindspore.kind

    def ask(self) -> list[Question]:
        """One question for each group of tensors that could be each other's, with nothing to tell them apart by."""
        rest, free = self.missing(), self.extra()
        groups: dict[tuple[str, ...], list[str]] = {}
        for name in rest:
            fit = tuple(n for n in free if self._fit(name, n) and not self._paired(name, n))
            if fit:
                groups.setdefault(fit, []).append(name)
        found = []
        for its, mine in groups.items():
            both = f"torch's {_listed(mine, self.torch_tensors)} and MindSpore's {_listed(its, self.mindspore_tensors)}"
            text = (
                f"{both} have equal shapes, and nothing says which is which: write it into a map and give it with "
                "--map; in the order in which they are defined it would be"
            )
            found.append(Question(text, tuple(mine), its, tuple(zip(mine, its, strict=False))))
        return found

    def missing(self) -> list[str]:
        """Torch's tensors that need a counterpart and have none: those that train, and running statistics."""
        known = {*self.parameters, *(name for cut in self.cuts for name in cut.torch)}
        return [n for n, h in self.torch_tensors.items() if n not in known and (h.trains or self.state(n))]

    def extra(self) -> list[str]:
        """MindSpore's tensors that have no counterpart and should not be there: those that train, and running
        statistics that a norm uses though its counterpart has none."""
        used = {tensor.mindspore for tensor in self.parameters.values()}
        used |= {name for cut in self.cuts for name in cut.mindspore}
        norms = {its for path, (its, _, _) in self.pairs.items() if self._by_batch_alone(path, its)}
        return [
            name
            for name, held in self.mindspore_tensors.items()
            if name not in used and (held.trains or (statistic(name) and parent(name) in norms))
        ]

    def _by_batch_alone(self, path: str, its: str) -> bool:
        """Whether torch's norm keeps no statistics and uses the batch's in evaluation too, and MindSpore's does not."""
        row = row_of(self.torch.by_path[path].kind)
        kept = [state.torch for state in (row.state if row else ()) if state.torch and statistic(state.mindspore or "")]
        there = any(name in self.torch.by_path[path].tensors for name in kept)
        return bool(kept) and not there and not self.mindspore.by_path[its].by_batch

    def state(self, name: str) -> bool:
        """Whether a tensor that does not train crosses by its layer's row, as running statistics do."""
        row = row_of(self.torch.by_path[parent(name)].kind)
        own = name.rpartition(".")[2]
        return not self.torch_tensors[name].trains and any(
            s.torch == own and s.mindspore for s in (row.state if row else ())
        )

    def left(self, calls: Calls) -> Iterable[Left]:
        """Modules and constants without a counterpart; that is no fault, but no comparison either."""
        done = {(path, k) for path, k, _, _ in calls}
        cut = {parent(name) for each in self.cuts for name in each.torch}
        its_cut = {parent(name) for each in self.cuts for name in each.mindspore}
        for layers, framework, mine, known in (
            (self.torch_layers, "torch", done, self.pairs.keys() | cut),
            (self.mindspore_layers, "mindspore", {(path, k) for _, _, path, k in calls}, self.taken | its_cut),
        ):
            around = tuple(f"{path}." for path, _ in mine if path not in layers.by_path)
            for path in layers.by_path:
                if path in known or path.startswith(around) or torch_class(layers.by_path[path].kind) == IDENTITY:
                    continue
                if not any((path, k) in mine for k in range(layers.count[path])):
                    kind = layers.by_path[path].kind
                    yield Left(framework, path or "(model)", kind)
        used = {tensor.mindspore for tensor in self.parameters.values()}
        for name, held in self.torch_tensors.items():
            own = row_of(self.torch.by_path[parent(name)].kind)
            dropped = own is not None and any(s.torch == name.rpartition(".")[2] for s in own.state)
            if name not in self.parameters and not held.trains and not dropped:
                yield Left("torch", name, "a constant")
        extra = set(self.extra())
        for name, held in self.mindspore_tensors.items():
            if name not in used and not held.trains and name not in extra:
                yield Left("mindspore", name, "a constant")


def _of(layers: Layers, kinds: Container[str], known: Container[str]) -> list[Layer]:
    """The layers of torch classes that have no counterpart, in the order in which they first run."""
    return [each for path, each in layers.by_path.items() if torch_class(each.kind) in kinds and path not in known]


def _one_step(layer: Layer) -> dict[str, dict[str, str]]:
    """For each layer and direction of a recurrent layer: a tensor's name in the cell that does these steps -> its name
    here. In torch's order: the first layer forwards, then backwards."""
    found: dict[tuple[int, str], dict[str, str]] = {}
    for name in layer.tensors:
        own = name.rpartition(".")[2]
        layered = re.fullmatch(r"(\w+)_l(\d+)(_reverse)?", own)
        which = (int(layered[2]), layered[3] or "") if layered else (0, "")
        found.setdefault(which, {})[layered[1] if layered else own] = name
    return {f"_l{which[0]}{which[1]}": found[which] for which in sorted(found)}


def _shapes(layer: Layer, names: Mapping[str, str]) -> dict[str, Shape]:
    return {own: layer.tensors[name].shape for own, name in names.items()}


UNCUT = RECURRENT | {"Embedding", "EmbeddingBag"}  # if their gates or tables are cut, the nets differ


def _leaf(name: str, old: str, new: str) -> str:
    """The tensor next to another: a bias's weight, `in_proj_bias` for `in_proj_weight`; empty where there is none."""
    around, dot, own = name.rpartition(".")
    return f"{around}{dot}{own.replace(old, new)}" if old in own else ""


def _projections(structure: Structure) -> list[str]:
    """The tensors that train in projections, convolutions and the user's own modules, in the order in which these first
    run; last, those of modules that are never called."""
    begins = {call.path: call.entered for call in reversed(structure.calls)}
    kinds = {path: torch_class(module.kind) for path, module in structure.by_path.items()}
    fit = {path for path, kind in kinds.items() if not is_norm(kind) and kind not in UNCUT}
    found = [name for name, held in structure.tensors().items() if held.trains and parent(name) in fit]
    return sorted(found, key=lambda name: begins.get(parent(name), math.inf))


def statistic(name: str) -> bool:
    """Whether a tensor has a name of running statistics in either framework, and so is no weight."""
    return name.rpartition(".")[2] in STATISTICS


def _called_alike(one: str, other: str) -> bool:
    """Whether the letters and digits of one name begin those of the other: layer_scale_1 and layer_scale1.scale."""
    short, long = sorted((re.sub(r"[^a-z0-9]", "", name.lower()) for name in (one, other)), key=len)
    return bool(short) and long.startswith(short)


def _listed(names: Sequence[str], tensors: Mapping[str, Held]) -> str:
    return ", ".join(f"{name} {list(tensors[name].shape) if name in tensors else '(no parameter)'}" for name in names)
