"""Which torch class owns each tensor, read from the structure of the state dict itself.

The same leaf name means different things: `weight` becomes `gamma` in a norm, `embedding_table` in an embedding, and
stays `weight` in a linear layer. So tensors are grouped by their module, and the tensors of a group together say what
the module is. Where several classes fit, all of them are returned, and the plan goes on only when the mapping table
gives the tensors the same names under each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ...errors import Unsupported

Shape = tuple[int, ...]


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
