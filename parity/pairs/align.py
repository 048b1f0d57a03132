"""Find the alignment of two structures."""

from __future__ import annotations

from ...migrate import name_map
from ...migrate.name_map import Rule
from . import sequence
from .alignment import CERTAIN, LIKELY, MAP, NAME, ONLY, ORDER, SPAN, Alignment, Match, Tensor
from .containers import match_containers
from .doubts import confirmed, doubts
from .kinds import torch_class
from .layers import Layers, base_score, closed, fits
from .structure import Structure, parent
from .tensors import Crossed

FORCED = 1000.0


def align(torch: Structure, mindspore: Structure, rules: list[Rule]) -> Alignment:
    """Align two structures. Raises BadInput for a map that does not fit; what else is wrong stands in `ask` and
    `missing`."""
    return _Aligner(torch, mindspore, rules).align()


def everything(torch: Structure) -> Alignment:
    """A model aligned with itself: what torch can record as long as nothing is known of the MindSpore net."""
    layers = Layers(torch)
    return Alignment(
        tuple(Match(module.path, module.path, NAME, CERTAIN) for module in torch.modules),
        tuple((call.path, call.call, call.path, call.call) for call in layers.calls),
        {
            name: Tensor(name, torch_class(torch.by_path[parent(name)].kind), held.shape, NAME, CERTAIN)
            for name, held in torch.tensors().items()
        },
        counts={torch.framework: {path: count for path, count in layers.count.items() if count > 1}},
    )


class _Aligner:
    def __init__(self, torch: Structure, mindspore: Structure, rules: list[Rule]) -> None:
        self.torch, self.mindspore = torch, mindspore
        self.ours, self.theirs = Layers(torch), Layers(mindspore)
        if one := closed(self.ours, self.theirs):
            self.ours, self.theirs = Layers(torch, one), Layers(mindspore, one)
        names = {m.path: True for m in torch.modules if m.path} | dict.fromkeys(torch.tensors(), False)
        self.mapped = name_map.apply(rules, names, {m.path for m in mindspore.modules} | set(mindspore.tensors()))
        self.pairs: dict[str, tuple[str, str, str]] = {}  # torch path -> MindSpore path, how, how sure
        self.taken: set[str] = set()

    def align(self) -> Alignment:
        for path, target in self.mapped.items():
            if path in self.torch.by_path and target in self.mindspore.by_path:
                self._pair(path, target, MAP, CERTAIN)
        for path in self._trusted():
            if path not in self.pairs and path not in self.taken:
                self._pair(path, path, NAME, CERTAIN)
        calls = self._in_order()
        self._leftovers(calls)
        ask = doubts(self.ours, self.theirs, self.pairs, calls)
        for path in confirmed(self.ours, self.theirs, self.pairs, calls):
            target, how, _ = self.pairs.get(path, ("", "", ""))
            if how == ORDER:
                self.pairs[path] = (target, how, CERTAIN)
        for ours, theirs in match_containers(
            self.ours, self.theirs, calls, {p: t for p, (t, _, _) in self.pairs.items()}
        ):
            if ours not in self.pairs and theirs not in self.taken:
                self._pair(ours, theirs, SPAN, CERTAIN if ours == "" else LIKELY)
        crossed = Crossed(self.ours, self.theirs, self.pairs, self.mapped)
        order = {call.path: call.entered for call in reversed(self.torch.calls)}
        modules = sorted(self.pairs, key=lambda path: (order.get(path, 1 << 60), self.torch.position[path]))
        return Alignment(
            tuple(Match(path, *self.pairs[path]) for path in modules),
            tuple(calls),
            crossed.parameters,
            tuple(crossed.left(calls)),
            ask=tuple(ask),
            missing=tuple(crossed.missing()),
            counts={
                side.structure.framework: {path: count for path, count in side.count.items() if count > 1}
                for side in (self.ours, self.theirs)
            },
        )

    def _pair(self, ours: str, theirs: str, how: str, sure: str) -> None:
        self.pairs[ours] = (theirs, how, sure)
        self.taken.add(theirs)

    # by name

    def _trusted(self) -> list[str]:
        """Paths that both sides have, with classes and tensors that agree.

        A number counts as a name only where everything in its list agrees: in a Sequential that lacks a layer on one
        side, what follows has another's number.
        """
        fit = {path for path in self.torch.by_path if path in self.mindspore.by_path and self._agree(path)}
        tensors = [
            m.path for s in (self.torch, self.mindspore) for m in s.modules if any(h.trains for h in m.tensors.values())
        ]
        wrong = {path for path in tensors if path not in fit}
        shifted = set()
        for path in wrong:
            while path:
                if path.rpartition(".")[2].isdigit():
                    shifted.add(parent(path))
                path = parent(path)
        # free layers do not say where they belong: a list whose layers differ in class is shifted too
        for path in (p for p in self.torch.by_path if p in self.mindspore.by_path and p not in fit):
            if path.rpartition(".")[2].isdigit() and not any(c.path == path for c in self.ours.containers):
                shifted.add(parent(path))
        return [path for path in self.torch.by_path if path in fit and not _numbered(path, shifted)]

    def _agree(self, path: str) -> bool:
        ours, theirs = self.torch.by_path[path], self.mindspore.by_path[path]
        layer, its = self.ours.by_path.get(path), self.theirs.by_path.get(path)
        if (layer is None) != (its is None):
            return False
        if layer is None or its is None:
            trained = [name for name, held in ours.tensors.items() if held.trains]
            return all(
                name in theirs.tensors and fits(ours.tensors[name].shape, theirs.tensors[name].shape)
                for name in trained
            )
        if not layer.tensors and self.ours.count[path] != self.theirs.count[path]:
            return False
        return base_score(layer, its) >= 4.0

    # by order

    def _in_order(self) -> list[tuple[str, int, str, int]]:
        """Pair layer calls by the order of execution, what is paired already kept; then the calls of crossing pairs."""
        ours, theirs = self.ours, self.theirs
        cache: dict[tuple[object, ...], float] = {}

        def score(i: int, j: int) -> float:
            path, its = ours.calls[i].path, theirs.calls[j].path
            if path in self.pairs or its in self.taken:
                return FORCED if path in self.pairs and self.pairs[path][0] == its else 0.0
            a, b = ours.by_path[path], theirs.by_path[its]
            key = (a.kind, b.kind, a.signature, b.signature)
            if key not in cache:
                cache[key] = base_score(a, b)
            points = cache[key]
            if points and ours.count[path] != theirs.count[its]:
                points *= 0.9
            if points and a.tensors:  # what comes next tells branches apart that begin alike
                points += _likeness(ours.branch(ours.calls[i]), theirs.branch(theirs.calls[j]))
            if points and path.rpartition(".")[2] == its.rpartition(".")[2]:
                points += 0.25
            return points

        n, m = len(ours.calls), len(theirs.calls)
        start = 0  # what begins alike needs no table
        while (
            start < min(n, m) and score(start, start) == FORCED and ours.calls[start].call == theirs.calls[start].call
        ):
            start += 1
        found = [(i, i) for i in range(start)]
        found += [
            (start + i, start + j)
            for i, j in sequence.align(n - start, m - start, lambda i, j: score(start + i, start + j))
        ]
        calls = [(ours.calls[i].path, ours.calls[i].call, theirs.calls[j].path, theirs.calls[j].call) for i, j in found]
        calls = self._settled(calls)
        for path, (its, _, _) in self.pairs.items():  # pairs whose order differs: their calls in turn
            count = min(ours.count.get(path, 0), theirs.count.get(its, 0))
            if count and not any(call[0] == path for call in calls):
                calls += [(path, k, its, k) for k in range(count)]
        return calls

    def _settled(self, calls: list[tuple[str, int, str, int]]) -> list[tuple[str, int, str, int]]:
        """Enter what order found; a layer with tensors is one layer, so its calls must all say the same."""
        kept = []
        partner: dict[str, set[str]] = {}
        for path, _, its, _ in calls:
            partner.setdefault(path, set()).add(its)
            partner.setdefault("\0" + its, set()).add(path)
        signatures = [layer.signature for layer in self.ours.by_path.values()]
        for call in calls:
            path, _, its, _ = call
            free = not self.ours.by_path[path].tensors and not self.theirs.by_path[its].tensors
            if not free and (len(partner[path]) > 1 or len(partner["\0" + its]) > 1):
                continue
            kept.append(call)
            if path not in self.pairs and its not in self.taken:
                alone = signatures.count(self.ours.by_path[path].signature) == 1
                self._pair(path, its, ORDER, CERTAIN if alone and not free else LIKELY)
        return kept

    def _leftovers(self, calls: list[tuple[str, int, str, int]]) -> None:
        """Layers with tensors that order left over: the only ones of their class and shapes belong together."""
        ours = [layer for path, layer in self.ours.by_path.items() if path not in self.pairs and layer.tensors]
        theirs = [layer for path, layer in self.theirs.by_path.items() if path not in self.taken and layer.tensors]
        for layer in ours:
            fit = [its for its in theirs if base_score(layer, its) > 0]
            back = [o for o in ours if fit and base_score(o, fit[0]) > 0]
            if len(fit) == 1 and len(back) == 1:
                self._pair(layer.path, fit[0].path, ONLY, LIKELY)
                count = min(self.ours.count[layer.path], self.theirs.count[fit[0].path])
                calls += [(layer.path, k, fit[0].path, k) for k in range(count)]


def _likeness(one: tuple[object, ...], other: tuple[object, ...]) -> float:
    """Up to 0.5 for two branches: by how far they agree, and more if they end together."""
    common = 0
    while common < min(len(one), len(other)) and one[common] == other[common]:
        common += 1
    return 0.05 * common + 0.2 * (common == len(one) == len(other))


def _numbered(path: str, shifted: set[str]) -> bool:
    """Whether a number on the way to this path is one of a list that is shifted."""
    while path:
        if path.rpartition(".")[2].isdigit() and parent(path) in shifted:
            return True
        path = parent(path)
    return False
