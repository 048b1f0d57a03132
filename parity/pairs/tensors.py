"""Which tensor of the MindSpore net is which of the torch model's, given which modules are the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...migrate.name_map import near
from .alignment import CERTAIN, LIKELY, MAP, NAME, Left, Tensor
from .kinds import row_of, torch_class
from .layers import Layers, crossing, fits
from .structure import Held, join, parent

Calls = list[tuple[str, int, str, int]]


class Crossed:
    """The tensors that cross, and those that do not.

    pairs: torch path -> MindSpore path, how and how sure, for the modules; mapped: what the user's map says of names.
    """

    def __init__(
        self,
        ours: Layers,
        theirs: Layers,
        pairs: Mapping[str, tuple[str, str, str]],
        mapped: Mapping[str, str],
    ) -> None:
        self.ours, self.theirs, self.pairs, self.mapped = ours, theirs, pairs, mapped
        self.torch, self.mindspore = ours.structure, theirs.structure
        self.taken = {target for target, _, _ in pairs.values()}
        self.parameters = self._parameters()

    def _parameters(self) -> dict[str, Tensor]:
        ours, theirs = self.torch.tensors(), self.mindspore.tensors()
        found: dict[str, Tensor] = {}
        used: set[str] = set()

        def enter(name: str, target: str, how: str, sure: str, owner: str) -> None:
            if name not in found and target not in used:
                found[name] = Tensor(target, owner, ours[name].shape, how, sure)
                used.add(target)

        for name, target in self.mapped.items():
            if name in ours and target in theirs and fits(ours[name].shape, theirs[target].shape):
                owner = self.torch.by_path[parent(name)].kind
                enter(name, target, MAP, CERTAIN, torch_class(owner))
        for path, (its, how, sure) in self.pairs.items():
            mine, other, kind, their_kind = self._both(path, its)
            for own, target in crossing(mine, other, kind, their_kind).items():
                name = join(path, own)
                enter(name, join(its, target), how, sure, torch_class(self.torch.by_path[parent(name)].kind))
        rest = {n: h for n, h in ours.items() if n not in found and h.trains}
        free = {n: h for n, h in theirs.items() if n not in used and h.trains}
        for name, held in rest.items():
            owner = torch_class(self.torch.by_path[parent(name)].kind)
            if name in free and fits(held.shape, free[name].shape):
                enter(name, name, NAME, CERTAIN, owner)
                continue
            fit = [n for n, h in free.items() if n not in used and fits(held.shape, h.shape)]
            same = [n for n, h in rest.items() if n not in found and fits(h.shape, held.shape)]
            if len(fit) == 1 and len(same) == 1 and not self._paired(name, fit[0]):
                enter(name, fit[0], "the only one of its shape", LIKELY, owner)
        return {name: found[name] for name in ours if name in found}

    def _paired(self, name: str, target: str) -> bool:
        """Whether the owners of two tensors are known to be other modules' counterparts."""
        ours, theirs = parent(name), parent(target)
        return (ours in self.pairs and self.pairs[ours][0] != theirs) or (
            theirs in self.taken and ours not in self.pairs
        )

    def _both(self, path: str, its: str) -> tuple[dict[str, Held], dict[str, Held], str, str]:
        """The tensors of a pair of modules: all below them where they are layers, else their own."""
        ours, theirs = self.torch.by_path[path], self.mindspore.by_path[its]
        layer, their_layer = self.ours.by_path.get(path), self.theirs.by_path.get(its)
        mine = layer.tensors if layer is not None else ours.tensors
        other = their_layer.tensors if their_layer is not None else theirs.tensors
        return dict(mine), dict(other), ours.kind, theirs.kind

    def missing(self) -> list[str]:
        """One message for each tensor that has to have a counterpart and has none."""
        ours, theirs = self.torch.tensors(), self.mindspore.tensors()
        used = {tensor.mindspore for tensor in self.parameters.values()}
        free = [name for name in theirs if name not in used]
        found = []
        for name, held in ours.items():
            if name in self.parameters or not (held.trains or self._state(name)):
                continue
            kind = self.torch.by_path[parent(name)].kind
            fit = [n for n in free if fits(held.shape, theirs[n].shape)]
            hint = f"; of its shape are {', '.join(fit[:3])}" if fit else near(name, free)
            pair = self.pairs.get(parent(name))
            where = f", whose layer is {pair[0]} there" if pair else ""
            found.append(
                f"torch's {name} {list(held.shape)} ({kind}){where} has no counterpart in the MindSpore net{hint}"
            )
        for name in free:
            if theirs[name].trains:
                kind = self.mindspore.by_path[parent(name)].kind
                hint = near(name, [n for n in ours if n not in self.parameters])
                what = f"MindSpore's {name} {list(theirs[name].shape)} ({kind})"
                found.append(f"{what} has no counterpart in the torch model{hint}")
        return found

    def _state(self, name: str) -> bool:
        """Whether a buffer is one that its layer's row lets cross (running statistics)."""
        row = row_of(self.torch.by_path[parent(name)].kind)
        return bool(row) and any(s.torch == name.rpartition(".")[2] and s.mindspore for s in (row.state if row else ()))

    def left(self, calls: Calls) -> Iterable[Left]:
        """Modules and constants without a counterpart; that is no fault, but no comparison either."""
        done = {(path, k) for path, k, _, _ in calls}
        for layers, framework, mine in (
            (self.ours, "torch", done),
            (self.theirs, "mindspore", {(path, k) for _, _, path, k in calls}),
        ):
            for path in layers.by_path:
                if not any((path, k) in mine for k in range(layers.count[path])):
                    kind = layers.by_path[path].kind
                    yield Left(framework, path or "(model)", kind)
        used = {tensor.mindspore for tensor in self.parameters.values()}
        for name, held in self.torch.tensors().items():
            own = row_of(self.torch.by_path[parent(name)].kind)
            dropped = own is not None and any(s.torch == name.rpartition(".")[2] for s in own.state)
            if name not in self.parameters and not held.trains and not dropped:
                yield Left("torch", name, "a constant")
        for name, held in self.mindspore.tensors().items():
            if name not in used and not held.trains:
                yield Left("mindspore", name, "a constant")
