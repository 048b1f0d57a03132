"""What happens to every tensor: Plan, Entry, the actions; and the shared types Owners, Net, Model, Holder.

Each tensor of the checkpoint gets one entry: keep, rename, transform (its shape changes, its bytes do not), drop with
a reason, or refuse with a reason; restore is for a tensor that an earlier conversion noted and the file does not hold,
such as a tied weight. tensor_names.py settles which; model_checks.py compares with the net and the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...errors import Ambiguous, BadCheckpoint, MsmigrateError, Unsupported
from .formats.reader import Checkpoint, Piece, Shape, Tensor

Net = Mapping[str, tuple[Shape, str]]  # parameter name -> shape and dtype, of the net of --into

KEEP, RENAME, TRANSFORM, RESTORE, DROP, REFUSE = ACTIONS = ("keep", "rename", "transform", "restore", "drop", "refuse")
OWN = "own parameter"


class Entry(NamedTuple):
    """What becomes of one tensor of the checkpoint.

    `name` is its name there without wrappers' prefixes, `target` its new name (None when dropped or refused), `owner`
    the class that decides, `why` the reason to drop or refuse (or a remark), `error` the kind of refusal, `dtype` the
    new dtype where it is cast, `alias` the name of the tensor that holds its bytes, where it is dropped as tied;
    `unknown`: it is refused since the net of --into has no such parameter.
    """

    action: str
    name: str
    tensor: Tensor | None
    target: str | None = None
    target_shape: Shape | None = None
    owner: str = OWN
    why: str | None = None
    error: type[MsmigrateError] | None = None
    dtype: str | None = None
    alias: str | None = None
    unknown: bool = False

    @property
    def written(self) -> bool:
        return self.action in (KEEP, RENAME, TRANSFORM, RESTORE)

    @property
    def piece(self) -> Piece:
        """What is to be written; only for an entry that is written."""
        assert self.tensor is not None and self.target is not None and self.target_shape is not None
        return Piece(self.target, self.dtype or self.tensor.dtype, self.target_shape, self.tensor)


class Plan(NamedTuple):
    """All entries in the order of the checkpoint; `unfilled` are parameters of the MindSpore net that nothing fills."""

    source: str
    checkpoint: Checkpoint
    entries: list[Entry]
    classes_from: str  # "structure", or what --model said
    into: str | None
    parameters: int | None  # of the net given with --into
    unfilled: list[str]
    notes: list[str]
    framework: str = "mindspore"  # whose names the new file has
    record: Mapping[str, Any] | None = None  # what the new file notes for the way back
    filled: Mapping[str, str] = {}  # parameter of the net given with --into, by path -> its name in the new file

    @property
    def totals(self) -> dict[str, int]:
        """How many tensors each action gets; they add up to the tensors of the checkpoint."""
        return {action: sum(entry.action == action for entry in self.entries) for action in ACTIONS}

    @property
    def written(self) -> list[Entry]:
        """The entries that reach the new checkpoint."""
        return [entry for entry in self.entries if entry.written]

    @property
    def nbytes(self) -> int:
        """The bytes of content that will be written."""
        return sum(entry.piece.nbytes for entry in self.written)

    def check(self) -> None:
        """Raise Ambiguous, Unsupported or BadCheckpoint, with the names, when the plan cannot be carried out."""
        refused = [entry for entry in self.entries if entry.action == REFUSE]
        for kind in (BadCheckpoint, Unsupported, Ambiguous):
            reasons: dict[str, list[str]] = {}
            for entry in refused:
                if entry.error is kind:
                    reasons.setdefault(entry.why or "", []).append(entry.name)
            if reasons:
                found = few([f"{few(names, 3, ', ')}: {why}" for why, names in reasons.items()])
                found = found if len(found) <= LONGEST else found[:LONGEST] + "…"
                otherwise = any(entry.unknown for entry in refused if entry.error is kind)
                raise kind(f"{self.source}: {found}{RENAMED if otherwise else self._remedy(kind)}")
        if self.unfilled:
            raise BadCheckpoint(f"{self.source} does not fill {self.into}: nothing for {few(self.unfilled)}")
        if not self.written:
            raise BadCheckpoint(f"{self.source} holds no tensor to convert")

    def _remedy(self, kind: type[MsmigrateError]) -> str:
        if kind is not Ambiguous:
            return ""
        return REMEDY + (", or the MindSpore net with --into" if self.framework == "mindspore" else "")


LONGEST = 1500  # letters of the message about refused tensors, whose names may have a thousand
RENAMED = "; if the net only has other names for them, --write-map FILE guesses these, for --map"
REMEDY = (
    "; the tensors alone do not tell the class: name the torch model with --model torchvision:NAME or "
    "--model FILE.py:FUNCTION"
)


def refuse_twins(entries: list[Entry]) -> list[Entry]:
    """Refuse entries that would have one name in the new file."""
    sources: dict[str, list[str]] = {}
    for entry in entries:
        if entry.target is not None:
            sources.setdefault(entry.target, []).append(entry.name)
    twins = {target: names for target, names in sources.items() if len(names) > 1}
    return [
        refuse(entry, BadCheckpoint, f"{few(twins[entry.target], 3, ' and ')} would both be called {entry.target}")
        if entry.target in twins
        else entry
        for entry in entries
    ]


def crossed(name: str, tensor: Tensor, target: str, shape: Shape, owner: str) -> Entry:
    """An entry that is written under this name and shape."""
    action = TRANSFORM if shape != tensor.shape else RENAME if target != name else KEEP
    return Entry(action, name, tensor, target, shape, owner)


def drop_tied(entry: Entry, holder: Entry) -> Entry:
    """The entry, dropped since another one holds its bytes."""
    why = f"tied: the same bytes as {holder.target}"
    return entry._replace(action=DROP, target=None, target_shape=None, why=why, error=None, alias=holder.name)


def refuse(entry: Entry, error: type[MsmigrateError], why: str) -> Entry:
    """The same entry, refused."""
    return entry._replace(action=REFUSE, target=None, target_shape=None, why=why, error=error)


def size(shape: Shape) -> str:
    """A shape in words: `64×3×7×7`, or `a single number`."""
    return "×".join(map(str, shape)) if shape else "a single number"


def few(items: list[str], most: int = 5, between: str = "; ") -> str:
    """A list on one line: the first few, and how many more there are."""
    more = len(items) - most
    return between.join(items[:most]) + (f"{between}and {more} more" if more > 0 else "")


class Model(NamedTuple):
    """A torch model, from --model or the file itself: module path -> class and bases; tensor name -> shape."""

    name: str
    owners: Owners
    shapes: Mapping[str, Shape] | None = None


Owners = Mapping[str, tuple[str, ...]]  # module path -> its class and that class's bases, of the model of --model
