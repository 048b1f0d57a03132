"""What happens to every tensor: Plan, Entry, the actions; and the shared types Owners, Net, Model, Holder.

Each tensor of the checkpoint gets one entry: keep, rename, transform (its shape changes, its bytes do not), drop with
a reason, or refuse with a reason; restore is for a tensor that an earlier conversion noted and the file does not hold,
such as a tied weight. tensor_names.py settles which; model_checks.py compares with the net and the model.

Which torch class owns each is read from the structure of the state dict itself.
"""

from __future__ import annotations

import re
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


# which class owns each tensor
#
# The same leaf name means different things: `weight` becomes `gamma` in a norm, `embedding_table` in an embedding, and
# stays `weight` in a linear layer. So tensors are grouped by their module, and the tensors of a group together say what
# the module is. Where several classes fit, all of them are returned, and the plan goes on only when the mapping table
# gives the tensors the same names under each.


class Family(NamedTuple):
    """Classes that have the same tensors and need not be distinguished: their names agree on both sides.

    A test checks that against the mapping table. `label` is what the plan prints.
    """

    label: str
    classes: tuple[str, ...]


def _family(label: str, *names: str) -> Family:
    return Family(label, tuple(f"torch.nn.{name}" for name in names or (label,)))


INSTANCE_NORMS = ("InstanceNorm2d", "InstanceNorm1d", "InstanceNorm3d")
BATCH_NORM = _family("BatchNorm", "BatchNorm2d", "BatchNorm1d", "SyncBatchNorm", *INSTANCE_NORMS)
BATCH_NORM_3D = _family("BatchNorm3d")  # MindSpore's wraps a BatchNorm2d, whose name is part of its tensors' names
AFFINE_NORM = _family("LayerNorm or GroupNorm", "LayerNorm", "GroupNorm", *INSTANCE_NORMS)
CONVOLUTIONS = {  # by the rank of the weight
    rank: _family(f"Conv{rank - 2}d", f"Conv{rank - 2}d", f"ConvTranspose{rank - 2}d") for rank in (3, 4, 5)
}
LINEAR, EMBEDDING = _family("Linear"), _family("Embedding")
EMBEDDING_BAG = _family("EmbeddingBag")  # not with Embedding: in MindSpore its tensor has the name of a Linear's
PRELU, RMS_NORM = _family("PReLU"), _family("RMSNorm")
RECURRENT = _family("LSTM, GRU or RNN", "LSTM", "GRU", "RNN")
RECURRENT_CELL = _family("LSTMCell, GRUCell or RNNCell", "LSTMCell", "GRUCell", "RNNCell")
ATTENTION = _family("MultiheadAttention")
BILINEAR = _family("Bilinear")
# Their linear layers have other names in MindSpore.
ENCODER_LAYER, DECODER_LAYER = _family("TransformerEncoderLayer"), _family("TransformerDecoderLayer")
FAMILIES = (
    *(BATCH_NORM, BATCH_NORM_3D, AFFINE_NORM, *CONVOLUTIONS.values(), LINEAR, EMBEDDING, EMBEDDING_BAG),
    *(PRELU, RMS_NORM, RECURRENT, RECURRENT_CELL, ATTENTION, BILINEAR, ENCODER_LAYER, DECODER_LAYER),
)
# Their tensors look the same, but they are too rare to make every user name the model: only the net decides for them.
RARE = {CONVOLUTIONS[3]: BILINEAR}

STATISTICS = {"running_mean", "running_var"}
NAMES_OF_LAYERS = {"weight", "num_batches_tracked", *STATISTICS}
CELL_WEIGHTS = {"weight_ih", "weight_hh"}
RECURRENT_NAME = re.compile(r"(weight_(ih|hh|hr)|bias_(ih|hh))_l\d+(_reverse)?")
PARTS_OF_TRANSFORMER = {"self_attn", "linear1", "linear2", "norm1", "norm2"}
REPARAMETRIZED = {"weight_g", "weight_v", "weight_orig", "weight_mask", "weight_u"}


class Module(NamedTuple):
    """The tensors under one module path, and the families the module may belong to.

    `families` is None for a module whose tensors are its own parameters or buffers, such as a class token, and empty
    when it uses the names of a layer and fits none. A family may also be that of a module around it, where that
    module's row says how the tensors of its parts are called.
    """

    path: str
    leaves: Mapping[str, Shape]
    families: tuple[Family, ...] | None


def split(name: str) -> tuple[str, str]:
    """Cut a tensor's name into module path and own name: `layer1.0.bn1.weight` -> (`layer1.0.bn1`, `weight`)."""
    path, _, leaf = name.rpartition(".")
    return path, leaf


def modules(shapes: Mapping[str, Shape]) -> list[Module]:
    """Group the tensors by module, in their order, and infer the families of each module.

    A batch norm's own tensors do not say how many dimensions its input has. Where no tensor of the model has five
    dimensions, it is not a BatchNorm3d; otherwise it may be either.
    """
    groups: dict[str, dict[str, Shape]] = {}
    for name, shape in shapes.items():
        path, leaf = split(name)
        groups.setdefault(path, {})[leaf] = shape
    volumetric = any(len(shape) == 5 for shape in shapes.values())
    found = {path: families(leaves) for path, leaves in groups.items()}
    for path, alone in found.items():
        if volumetric and alone == (BATCH_NORM,):
            found[path] = (BATCH_NORM, BATCH_NORM_3D)
        elif alone and LINEAR in alone:
            found[path] = _part(path, alone, found)
    return [Module(path, leaves, found[path]) for path, leaves in groups.items()]


def _part(path: str, alone: tuple[Family, ...], found: Mapping[str, tuple[Family, ...] | None]) -> tuple[Family, ...]:
    """The families of a linear layer, which may be part of an attention or of a transformer layer."""
    outer, part = split(path)
    if part == "out_proj" and found.get(outer) == (ATTENTION,):
        return (LINEAR,)
    inside = f"{outer}." if outer else ""
    names = {name for name in PARTS_OF_TRANSFORMER if f"{inside}{name}" in found}
    if part not in ("linear1", "linear2") or names != PARTS_OF_TRANSFORMER:
        return alone
    if found[f"{inside}self_attn"] != (ATTENTION,):
        return alone
    return (LINEAR, DECODER_LAYER if found.get(f"{inside}multihead_attn") == (ATTENTION,) else ENCODER_LAYER)


def computed(module: Module) -> bool:
    """Whether a weight of the module is computed from these tensors, or some of them, instead of stored."""
    return bool(REPARAMETRIZED & set(module.leaves)) or ".parametrizations." in f".{module.path}."


def check_plain(module: Module) -> None:
    """Raise Unsupported when the weight of the module is computed from other tensors."""
    if computed(module):
        raise Unsupported(
            "its weight is computed from several tensors (weight norm, spectral norm or pruning); take the "
            "parametrization off in torch and save again"
        )


def families(leaves: Mapping[str, Shape]) -> tuple[Family, ...] | None:
    """Return the families that fit the tensors (own name -> shape) of one module; see Module for None and empty."""
    names = set(leaves)
    if any(RECURRENT_NAME.fullmatch(name) for name in names):
        return (RECURRENT,)
    if names >= CELL_WEIGHTS and names <= {*CELL_WEIGHTS, "bias_ih", "bias_hh"}:
        return (RECURRENT_CELL,)
    if {"in_proj_weight", "q_proj_weight"} & names:
        return (ATTENTION,)
    if not names & NAMES_OF_LAYERS:
        return None
    if STATISTICS <= names <= {*NAMES_OF_LAYERS, "bias"}:
        vectors = {shape for name, shape in leaves.items() if name != "num_batches_tracked"}
        return (BATCH_NORM,) if len(vectors) == 1 and len(vectors.pop()) == 1 else ()
    if not {"weight"} <= names <= {"weight", "bias"}:
        return ()
    return _by_rank(leaves["weight"], leaves.get("bias"))


def _by_rank(weight: Shape, bias: Shape | None) -> tuple[Family, ...]:
    """The families of a module that has a weight, perhaps a bias, and nothing else."""
    rank = len(weight)
    if bias is None:
        alone = {1: (PRELU, RMS_NORM, AFFINE_NORM), 2: (LINEAR, EMBEDDING, EMBEDDING_BAG)}
        return alone.get(rank) or ((CONVOLUTIONS[rank],) if rank in CONVOLUTIONS else ())
    if bias == weight and rank:
        return (AFFINE_NORM,)
    if len(bias) == 1 and rank in (2, *CONVOLUTIONS):
        outputs = weight[0] if rank == 2 else bias[0] if weight[1] and bias[0] % weight[1] == 0 else weight[0]
        if bias[0] == outputs:
            return (LINEAR,) if rank == 2 else (CONVOLUTIONS[rank],)
    return ()
