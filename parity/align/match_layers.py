"""Find the alignment: map, names, order of execution, the only candidate; refuse what is open.

Needleman and Wunsch's algorithm (1970) without a cost of gaps: a call that has no partner (a ReLU that one side writes
as a function) costs nothing, and a pair counts by how well its two calls fit.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np

from ...migrate.checkpoint import user_map
from ...migrate.checkpoint.user_map import Rule, read_rules
from ..job import ParityJob
from .alignment import (
    ALIGNMENT,
    CERTAIN,
    FORMAT,
    LIKELY,
    MAP,
    NAME,
    ONLY,
    OPEN,
    ORDER,
    SPAN,
    Alignment,
    Match,
    Pairs,
    _logits,
    check,
    check_recipe,
    doubts,
    scope,
)
from .layers import (
    Calls,
    Layer,
    Layers,
    Regions,
    alike,
    base_score,
    closed,
    crossing,
    fed,
    in_other_blocks,
    known,
    opened,
    regions,
)
from .match_tensors import Crossed
from .mismatched_tensors import left_alone, unlike
from .model_structure import Shape, Structure, channels_moved, file, for_all, join, parent, read, regrouped
from .user_model import of_one_name

FORCED = 1000.0
BETWEEN, BEFORE, BEHIND = slice(0, 2), slice(1, 2), slice(0, 1)  # what is known of where a layer is


def align(torch: Structure, mindspore: Structure, rules: list[Rule], freezes: bool = False) -> Alignment:
    """Align two structures; `ask` holds what cannot be decided, `unlike` the tensors that differ. freezes: the pair's.
    Raises BadInput for a map that does not fit."""
    return _Aligner(*of_one_name(torch, mindspore), rules).align(freezes)


class _Aligner:
    def __init__(self, torch: Structure, mindspore: Structure, rules: list[Rule]) -> None:
        self.torch, self.mindspore = torch, mindspore
        self.torch_layers, self.mindspore_layers = Layers(torch), Layers(mindspore)
        one, its = closed(self.torch_layers, self.mindspore_layers)
        both = opened(self.torch_layers, self.mindspore_layers), opened(self.mindspore_layers, self.torch_layers)
        if one or its or any(both):
            self.torch_layers, self.mindspore_layers = Layers(torch, one, both[0]), Layers(mindspore, its, both[1])
        names = {m.path: True for m in torch.modules if m.path} | dict.fromkeys(torch.tensors(), False)
        self.mapped = user_map.apply(rules, names, {m.path for m in mindspore.modules} | set(mindspore.tensors()))
        self.pairs: dict[str, tuple[str, str, str]] = {}  # torch path -> MindSpore path, how, how sure
        self.taken: set[str] = set()

    def align(self, freezes: bool) -> Alignment:
        for path, target in self.mapped.items():
            if path in self.torch.by_path and target in self.mindspore.by_path:
                self._pair(path, target, MAP, CERTAIN)
        for path in self._trusted():
            if path not in self.pairs and path not in self.taken:
                self._pair(path, path, NAME, CERTAIN)
        calls = self._whole_blocks(self._in_order())
        self._leftovers(calls)
        self._same_place(calls)
        self._in_another_order(calls)
        found = regions(self.torch_layers, self.mindspore_layers, calls)
        self._regroup(found)
        ask = doubts(self.torch_layers, self.mindspore_layers, self.pairs, calls)
        for path in confirmed(self.torch_layers, self.mindspore_layers, self.pairs, calls):
            target, how, _ = self.pairs.get(path, ("", "", ""))
            if how == ORDER:
                self.pairs[path] = (target, how, CERTAIN)
        for torch, mindspore in match_containers(
            self.torch_layers, self.mindspore_layers, calls, {p: t for p, (t, _, _) in self.pairs.items()}
        ):
            if torch not in self.pairs and mindspore not in self.taken:
                self._pair(torch, mindspore, SPAN, CERTAIN if torch == "" else LIKELY)
        calls = found.calls
        crossed = Crossed(self.torch_layers, self.mindspore_layers, self.pairs, self.mapped)
        order = {call.path: call.entered for call in reversed(self.torch.calls)}
        modules = sorted(self.pairs, key=lambda path: (order.get(path, 1 << 60), self.torch.position[path]))
        return Alignment(
            tuple(Match(path, *self.pairs[path]) for path in modules),
            tuple(calls),
            crossed.parameters,
            tuple(crossed.left(calls)),
            ask=(*ask, *crossed.ask()),
            unlike=tuple(unlike(crossed, freezes)),
            left_alone=left_alone(crossed, freezes),
            freezes=freezes,
            counts={side.structure.framework: side.several() for side in (self.torch_layers, self.mindspore_layers)},
            chains=found.chains,
            shapes=self._shapes(calls, lambda *shapes: regrouped(*shapes) or channels_moved(*shapes) is not None),
            for_all=tuple(self._shapes(calls, for_all)),
            aliases=self.torch.aliases,
            cuts=tuple(crossed.cuts),
            order=tuple(crossed.torch_tensors) if crossed.cuts else (),
        )

    def _regroup(self, found: Regions) -> None:
        """Enter the modules that stand together in place of two layers, which were not the same."""
        for (path, its), group in found.paired.items():
            if self.pairs.get(path, ("",))[0] == its:
                del self.pairs[path]
                self.taken.discard(its)
            if group is not None and group[0] not in self.pairs and group[1] not in self.taken:
                self._pair(*group, ORDER, LIKELY)

    def _shapes(self, calls: Calls, differ: Callable[[Shape, Shape], bool]) -> dict[str, Shape]:
        """Torch path -> the shape of one example of its output, where `differ` holds for it and MindSpore's."""
        mine = {(call.path, call.call): call.shape for call in self.torch.calls}
        its = {(call.path, call.call): call.shape for call in self.mindspore.calls}
        found = {}
        for path, k, mindspore_path, mindspore_k in calls:
            torch, mindspore = mine[path, k], its[mindspore_path, mindspore_k]
            if torch and mindspore and torch != mindspore and differ(torch, mindspore):
                found[path] = torch[1:]
        return found

    def _pair(self, torch: str, mindspore: str, how: str, sure: str) -> None:
        self.pairs[torch] = (mindspore, how, sure)
        self.taken.add(mindspore)

    # by name

    def _trusted(self) -> list[str]:
        """Paths that both sides have, with classes and tensors that agree.

        A number counts as a name only where everything in its list agrees: in a Sequential that lacks a layer on one
        side, every later layer has the number of another.
        """
        fit = {path for path in self.torch.by_path if path in self.mindspore.by_path and self._agree(path)}
        tensors = [
            m.path for s in (self.torch, self.mindspore) for m in s.modules if any(h.trains for h in m.tensors.values())
        ]
        wrong = {path for path in tensors if path not in fit}
        shifted = set()
        for path in wrong:
            while path:
                # a number past the end of the other side's list is no other layer's
                if path.rpartition(".")[2].isdigit() and self._both_have(path):
                    shifted.add(parent(path))
                path = parent(path)
        # a list whose layers differ in class is shifted too: layers without tensors do not show where they belong
        for path in (p for p in self.torch.by_path if p in self.mindspore.by_path and p not in fit):
            if path.rpartition(".")[2].isdigit() and not any(c.path == path for c in self.torch_layers.containers):
                shifted.add(parent(path))
        return [path for path in self.torch.by_path if path in fit and not _numbered(path, shifted)]

    def _both_have(self, path: str) -> bool:
        return path in self.torch.by_path and path in self.mindspore.by_path

    def _agree(self, path: str) -> bool:
        torch, mindspore = self.torch.by_path[path], self.mindspore.by_path[path]
        layer, its = self.torch_layers.by_path.get(path), self.mindspore_layers.by_path.get(path)
        if (layer is None) != (its is None):
            return False
        if layer is None or its is None:
            there = crossing(torch.tensors, mindspore.tensors, torch.kind, mindspore.kind)  # which all fit
            return all(name in there for name, held in torch.tensors.items() if held.trains)
        if not layer.tensors and self.torch_layers.count[path] != self.mindspore_layers.count[path]:
            return False
        return base_score(layer, its) >= 4.0

    # by order

    def _in_order(self) -> Calls:
        """Pair layer calls by the order of execution, what is paired already kept; then the calls of crossing pairs."""
        torch, mindspore = self.torch_layers, self.mindspore_layers
        cache: dict[tuple[object, ...], float] = {}

        def score(i: int, j: int) -> float:
            path, its = torch.calls[i].path, mindspore.calls[j].path
            if path in self.pairs or its in self.taken:
                return FORCED if path in self.pairs and self.pairs[path][0] == its else 0.0
            a, b = torch.by_path[path], mindspore.by_path[its]
            key = (a.kind, b.kind, a.held, b.held, a.shape, b.shape, a.passes, b.passes)
            if key not in cache:
                cache[key] = base_score(a, b)
            points = cache[key]
            if points and torch.count[path] != mindspore.count[its]:
                points *= 0.9
            if points and a.tensors:  # what comes next tells branches apart that begin alike
                points += _likeness(torch.branch(torch.calls[i]), mindspore.branch(mindspore.calls[j]))
                points += 0.1 * (fed(torch, torch.calls[i]) == fed(mindspore, mindspore.calls[j]))
            if points and path.rpartition(".")[2] == its.rpartition(".")[2]:
                points += 0.25
            return points

        n, m = len(torch.calls), len(mindspore.calls)
        start = 0  # what begins alike needs no table
        while (
            start < min(n, m)
            and score(start, start) == FORCED
            and torch.calls[start].call == mindspore.calls[start].call
        ):
            start += 1
        found = [(i, i) for i in range(start)]
        found += [
            (start + i, start + j)
            for i, j in align_sequence(n - start, m - start, lambda i, j: score(start + i, start + j))
        ]
        calls = [
            (torch.calls[i].path, torch.calls[i].call, mindspore.calls[j].path, mindspore.calls[j].call)
            for i, j in found
        ]
        calls = self._settled(calls)
        for path, (its, _, _) in self.pairs.items():  # pairs whose order differs: their calls in turn
            count = min(torch.count.get(path, 0), mindspore.count.get(its, 0))
            if count and not any(call[0] == path for call in calls):
                calls += [(path, k, its, k) for k in range(count)]
        return calls

    def _settled(self, calls: Calls) -> Calls:
        """Enter what order found; a layer with tensors is one layer, so its calls must all say the same."""
        kept = []
        partner: dict[str, set[str]] = {}
        for path, _, its, _ in calls:
            partner.setdefault(path, set()).add(its)
            partner.setdefault("\0" + its, set()).add(path)
        signatures = [layer.signature for layer in self.torch_layers.by_path.values()]
        for call in calls:
            path, _, its, _ = call
            free = not self.torch_layers.by_path[path].tensors and not self.mindspore_layers.by_path[its].tensors
            if not free and (len(partner[path]) > 1 or len(partner["\0" + its]) > 1):
                continue
            kept.append(call)
            if path not in self.pairs and its not in self.taken:
                alone = signatures.count(self.torch_layers.by_path[path].signature) == 1
                self._pair(path, its, ORDER, CERTAIN if alone and not free else LIKELY)
        return kept

    def _whole_blocks(self, calls: Calls) -> Calls:
        """Where one side has fewer blocks of one build, order may pair the beginning of one block and the end of the
        next with the halves of a single one: the other half is taken from the block that it begins with."""
        moved = self._moved(
            {path: its for path, _, its, _ in calls}, self.torch_layers, self.mindspore_layers, self.pairs
        )
        calls = [(moved.get(path, path), k, its, its_k) for path, k, its, its_k in calls]
        for path, new in moved.items():
            self.pairs[new] = self.pairs.pop(path)
        moved = self._moved(
            {its: path for path, _, its, _ in calls}, self.mindspore_layers, self.torch_layers, self.taken
        )
        for path, (its, how, sure) in self.pairs.items():
            if its in moved:
                self.pairs[path] = (moved[its], how, sure)
        self.taken = {its for its, _, _ in self.pairs.values()}
        return [(path, k, moved.get(its, its), its_k) for path, k, its, its_k in calls]

    def _moved(
        self, partner: Mapping[str, str], layers: Layers, others: Layers, paired: Container[str]
    ) -> dict[str, str]:
        """Path of a layer -> its twin in the block that the rest of its partner's block is paired with; only where it
        runs as often as its partner, since each call of a shared ReLU may have a partner of its own."""
        by_order = {
            path: its
            for path, its in partner.items()
            if self._how(path, its) == ORDER and layers.count[path] == others.count[its]
        }
        blocks: dict[str, str] = {}
        moved: dict[str, str] = {}
        for path, its in by_order.items():
            for depth in range(path.count("."), 0, -1):  # the outermost block decides
                block, rest = _split(path, depth)
                main = blocks.setdefault(_split(its, depth)[0], block)
                twin, one = join(main, rest), layers.by_path[path]
                other = layers.by_path.get(twin)
                if twin == path or other is None or twin in paired or twin in moved.values():
                    continue
                if (other.kind, other.held, layers.count[twin]) == (one.kind, one.held, layers.count[path]):
                    moved[path] = twin
                    break
        return moved

    def _how(self, path: str, its: str) -> str:
        return self.pairs.get(path, self.pairs.get(its, ("", "", "")))[1]

    def _leftovers(self, calls: Calls) -> None:
        """Layers with tensors that order left over: the only ones of their class and shapes belong together, unless the
        blocks around them do not, because each net has a block more."""
        torch = [*self._left(self.torch_layers, self.pairs).values()]
        mindspore = [*self._left(self.mindspore_layers, self.taken).values()]
        for layer in torch:
            fit = [its for its in mindspore if base_score(layer, its) > 0]
            back = [o for o in torch if fit and base_score(o, fit[0]) > 0]
            partner = {path: its for path, (its, _, _) in self.pairs.items()}
            if len(fit) != 1 or len(back) != 1:
                continue
            elsewhere = in_other_blocks(self.torch_layers, self.mindspore_layers, partner, layer.path, fit[0].path)
            if not elsewhere and not self._another_stands_there(layer.path, fit[0].path, partner, mindspore):
                self._pair_calls(layer.path, fit[0].path, ONLY, calls)

    def _another_stands_there(self, path: str, its: str, partner: Mapping[str, str], free: Sequence[Layer]) -> bool:
        """Whether the inputs of two layers come from layers that are not counterparts, and other layers of the net get
        the input that the first should have: several may stand for it."""
        given = self.torch_layers.by_call[path, 0].inputs[:1]
        fed_by = {partner[each] for number in given for each in self.torch_layers.producers(number) if each in partner}

        def fed(layer: str) -> bool:
            return any(
                self.mindspore_layers.producers(number) & fed_by
                for number in self.mindspore_layers.by_call[layer, 0].inputs[:1]
            )

        return bool(fed_by) and not fed(its) and any(fed(other.path) for other in free if other.path != its)

    def _same_place(self, calls: Calls) -> None:
        """Layers with tensors of other shapes than their counterparts: they have the same name, or stand between the
        same layers, where the left-over layers have the same classes in order, or they are the only ones of theirs."""
        for path, layer in self._left(self.torch_layers, self.pairs).items():
            its = self.mindspore_layers.by_path.get(path)
            if its is not None and path not in self.taken and alike(layer.kind, its.kind):
                self._pair_calls(path, path, NAME, calls)
        for ends in (BETWEEN, BEFORE, BEHIND):
            partner = {torch: mindspore for torch, _, mindspore, _ in calls}
            mine = self._gaps(self.torch_layers, {path: path for path in partner}, self.pairs, ends)
            their = self._gaps(
                self.mindspore_layers, {mindspore: torch for torch, mindspore in partner.items()}, self.taken, ends
            )
            for place, left in mine.items():
                other = their.get(place, [])
                kinds = [self.torch_layers.by_path[path].sort for path in left]
                mindspore_kinds = [self.mindspore_layers.by_path[path].sort for path in other]
                for i, (path, kind) in enumerate(zip(left, kinds, strict=True)):
                    if kinds == mindspore_kinds and ends == BETWEEN:
                        self._pair_calls(path, other[i], ORDER, calls)
                    elif kinds.count(kind) == mindspore_kinds.count(kind) == 1:
                        self._pair_calls(path, other[mindspore_kinds.index(kind)], ORDER, calls)

    def _in_another_order(self, calls: Calls) -> None:
        """Layers without tensors in branches that the nets run in another order: of one class and shape, after or
        before a layer's counterpart, where each is the other's only candidate."""
        partner = {call[0]: call[2] for call in calls}
        free = [
            [
                path
                for path in layers.by_path
                if path not in paired and (layers.count[path], layers.by_path[path].held) == (1, ())
            ]
            for layers, paired in ((self.torch_layers, self.pairs), (self.mindspore_layers, self.taken))
        ]
        fit = [(path, cell) for path in free[0] for cell in free[1] if self._one_place(path, cell, partner)]
        for path, cell in fit:
            if sum(path in pair or cell in pair for pair in fit) == 1:
                self._pair_calls(path, cell, ORDER, calls)

    def _one_place(self, path: str, other: str, partner: Mapping[str, str]) -> bool:
        layer, its = self.torch_layers.by_path[path], self.mindspore_layers.by_path[other]
        one, two = self.torch_layers.by_call[path, 0], self.mindspore_layers.by_call[other, 0]
        if layer.passes or its.passes or layer.shape != its.shape or not (one.inputs and two.inputs):
            return False
        fed_by, there = self.torch_layers.producers(one.inputs[0]), self.mindspore_layers.producers(two.inputs[0])
        behind, next_there = (
            self.torch_layers.following(one),
            {call.path for call in self.mindspore_layers.following(two)},
        )
        alike_ends = {partner.get(p) for p in fed_by} & there or {partner.get(c.path) for c in behind} & next_there
        return known(layer.kind) and alike(layer.kind, its.kind) and bool(alike_ends)

    @staticmethod
    def _left(layers: Layers, paired: Container[str]) -> dict[str, Layer]:
        return {path: layer for path, layer in layers.by_path.items() if path not in paired and layer.tensors}

    def _gaps(
        self, layers: Layers, partner: Mapping[str, str], paired: Container[str], ends: slice
    ) -> dict[object, list[str]]:
        """The paired layers before and after, under torch's names -> the layers with tensors left over between them."""
        known = [partner.get(call.path, "") for call in layers.calls]
        before, behind = ["", *itertools.accumulate(known, _latest)], ["", *itertools.accumulate(known[::-1], _latest)]
        first = {call.path: i for i, call in reversed([*enumerate(layers.calls)])}
        found: dict[object, list[str]] = {}
        for path in sorted(self._left(layers, paired), key=lambda path: first[path]):
            found.setdefault((before[first[path]], behind[len(known) - 1 - first[path]])[ends], []).append(path)
        return found

    def _pair_calls(self, torch: str, mindspore: str, how: str, calls: Calls) -> None:
        self._pair(torch, mindspore, how, LIKELY)
        count = min(self.torch_layers.count[torch], self.mindspore_layers.count[mindspore])
        calls += [(torch, k, mindspore, k) for k in range(count)]


def confirmed(torch: Layers, mindspore: Layers, pairs: Pairs, calls: Calls) -> set[str]:
    """Torch paths of layers whose input comes straight from a layer, and in the net from that layer's counterpart,
    where no other such layer gets the same."""
    partner = {path: target for path, (target, _, _) in pairs.items()}
    found = set()
    for path, k, mindspore_path, mindspore_k in calls:
        one, other = torch.by_call[path, k], mindspore.by_call[mindspore_path, mindspore_k]
        if not one.inputs or not other.inputs:
            continue
        made = {partner[p] for p in torch.producers(one.inputs[0]) if p in partner}
        rivals = [
            c
            for c in torch.calls
            if c.path != path
            and c.inputs[:1] == one.inputs[:1]
            and torch.by_path[c.path].signature == torch.by_path[path].signature
        ]
        if made & mindspore.producers(other.inputs[0]) and not rivals:
            found.add(path)
    return found


def _split(path: str, depth: int) -> tuple[str, str]:
    """A path without its last `depth` parts after the first one, and those parts."""
    parts = path.split(".")
    return ".".join(parts[:-depth]), ".".join(parts[-depth:])


def _latest(one: str, other: str) -> str:
    return other or one


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


def match_containers(
    torch: Layers, mindspore: Layers, calls: Calls, pairs: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """(torch path, MindSpore path) of containers whose paired layer calls are the same; the models always are.

    Of containers around one set of calls, one inside the other, the outer goes with the outer; where one side has more
    of them, plain lists are left out first, then those without a namesake.
    """
    yield "", ""
    # an Identity may be any other one, so it says nothing of where it is
    calls = [each for each in calls if not (torch.by_path[each[0]].passes and mindspore.by_path[each[2]].passes)]
    number = {(path, k): i for i, (path, k, _, _) in enumerate(calls)}
    mindspore_number = {(path, k): i for i, (_, _, path, k) in enumerate(calls)}
    mine, its = _spans(torch, number), _spans(mindspore, mindspore_number)
    for span, paths in mine.items():
        free = [path for path in paths if path and path not in pairs]
        other = [path for path in its.get(span, []) if path and path not in pairs.values()]
        if not span:
            continue
        # a container that adds a residual goes with one that does, not with the list inside, which does not
        found = [
            pair
            for plain in (True, False)
            for pair in _same_span(
                torch,
                mindspore,
                [path for path in free if torch.plain(path) is plain],
                [path for path in other if mindspore.plain(path) is plain],
            )
        ]
        found = found or [*_same_span(torch, mindspore, free, other)]
        yield from (pair for pair in found if not _of_another_shape(torch, mindspore, *pair))


def _of_another_shape(torch: Layers, mindspore: Layers, path: str, its: str) -> bool:
    """Whether one is a list, which computes nothing itself, and the other's output has other elements, or is several
    tensors instead of one: then it is around such a list, as a stage that turns its tokens back into an image."""
    if bool(torch.no_lists([path])) == bool(mindspore.no_lists([its])):
        return False
    mine, other = (
        next(call.shape for call in side.containers if call.path == each)
        for side, each in ((torch, path), (mindspore, its))
    )
    return (mine is None) != (other is None) or not (mine is None or other is None or regrouped(mine, other))


def _same_span(torch: Layers, mindspore: Layers, free: list[str], other: list[str]) -> Iterator[tuple[str, str]]:
    """The pairs of containers around one set of calls."""
    if not free or not other:
        return
    if len(free) != len(other):
        own, its_own = torch.no_lists(free), mindspore.no_lists(other)
        free, other = (own or free, its_own or other)
    if len(free) != len(other):
        names = {path.rpartition(".")[2]: path for path in other}
        both = [(path, names[path.rpartition(".")[2]]) for path in free if path.rpartition(".")[2] in names]
        yield from both or [(free[0], other[0])]
        return
    yield from zip(free, other, strict=True)


def _spans(layers: Layers, number: dict[tuple[str, int], int]) -> dict[frozenset[int], list[str]]:
    """Set of paired layer calls -> the containers around just these, the outer first."""
    spans: dict[str, set[int]] = {}
    numbered = [(call.entered, number.get((call.path, call.call))) for call in layers.calls]
    for container in layers.containers:
        found = spans.setdefault(container.path, set())
        found.update(n for entered, n in numbered if n is not None and container.entered < entered < container.left)
    by_span: dict[frozenset[int], list[str]] = {}
    for path, span in spans.items():  # in order of entering: the outer comes first
        by_span.setdefault(frozenset(span), []).append(path)
    return by_span


LARGEST = 30_000_000  # cells of the table


def align_sequence(n: int, m: int, score: Callable[[int, int], float]) -> list[tuple[int, int]]:
    """Pairs (i, j), i < n and j < m, both ascending, of the highest total score; a pair needs a score above 0.

    Equal ends are taken off first, so score(i, j) must not depend on other pairs. Among equally good pairings, the one
    that pairs earlier calls wins. Raises ValueError for sequences too long for the table.
    """
    best = [[score(i, j) for j in range(m)] for i in range(n)] if n * m <= LARGEST else None
    if best is None:
        raise ValueError(f"{n} and {m} calls are too many to align")
    table = np.zeros((n + 1, m + 1))
    for i in range(n - 1, -1, -1):
        row, below, scores = table[i], table[i + 1], best[i]
        right = 0.0
        for j in range(m - 1, -1, -1):
            value = max(right, float(below[j]))
            if scores[j] > 0:
                value = max(value, scores[j] + float(below[j + 1]))
            row[j] = right = value
    pairs = []
    i = j = 0
    while i < n and j < m:
        if best[i][j] > 0 and table[i, j] == best[i][j] + table[i + 1, j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif table[i, j] == table[i + 1, j]:
            i += 1
        else:
            j += 1
    return pairs


def align_pair(options: ParityJob) -> None:
    """Align the two structures that lie in the job's folder, and leave alignment.json there.

    Raises Ambiguous for what the user has to decide by a map, BadInput for models that have nothing in common.
    """
    if options.pair is None:
        return
    folder, rules = options.folder, read_rules(options.pair.map_file)
    torch, mindspore = read(file(folder, "torch")), read(file(folder, "mindspore"))
    found = align(torch, mindspore, rules, options.pair.freezes)
    classes = torch.outputs[0][1] if torch.outputs and len(torch.outputs[0]) > 1 else 0
    found = replace(found, classes=classes, logits=_logits(torch), values=torch.values, scope=scope(torch, mindspore))
    partial = folder / OPEN
    partial.write_text(json.dumps({"format": FORMAT, **asdict(found)}, indent=1), encoding="utf-8")
    check(found)  # after writing it, so that a map can be made from a refused alignment
    if options.pair.of_recipe:
        check_recipe(options.recipe, found)
    partial.replace(folder / ALIGNMENT)
