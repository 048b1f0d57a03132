"""The way back from MindSpore's names to torch's: by --model, by what the file notes, or by what stands together.

MindSpore's names say more than torch's (`gamma` is a norm's), but not all: a Conv1d's weight has four dimensions there,
and a single `w` may be a PReLU's or somebody's own. What is ambiguous is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import Ambiguous, BadCheckpoint, MsmigrateError
from ..mappings.crossing import Crossing
from ..mappings.shapes import SHAPES
from ..mappings.user_layers import layer_states
from .formats.contents import MAX_NAME, Shape, product
from .name_map import Names
from .owner_classes import ATTENTION, RECURRENT, RECURRENT_CELL, families, split
from .plan import OWN, size
from .to_mindspore import Owners, around_it, joined, row_states


class Way(NamedTuple):
    """Torch's name and shape of a tensor, and the class that decides."""

    name: str
    shape: Shape
    owner: str = OWN


Ways = dict[str, "Way | MsmigrateError"]  # MindSpore's name -> the way, or why there is none

SAME_NAMES = {RECURRENT, RECURRENT_CELL, ATTENTION}
NORM = {"gamma", "beta"}
STATISTICS = {"moving_mean", "moving_variance"}
TRANSFORMER = {"dense1": "linear1", "dense2": "linear2"}  # its parts that have another name in torch


def by_structure(shapes: Mapping[str, Shape]) -> Ways:
    """Infer torch's names and shapes from MindSpore's (name -> shape)."""
    groups: dict[str, dict[str, Shape]] = {}
    for name, shape in shapes.items():
        path, leaf = split(name)
        groups.setdefault(path, {})[leaf] = shape
    ranks = {len(shape) for shape in shapes.values()}
    tall = any(shape[2] > 1 for name, shape in shapes.items() if _is_convolution(name, shape))
    found: Ways = {}
    for path, leaves in groups.items():
        owner, states = _class_of(path, set(leaves), leaves, volumetric=5 in ranks)
        owner = _part_of_transformer(path, groups) or owner
        for leaf, shape in leaves.items():
            name = f"{path}.{leaf}" if path else leaf
            if isinstance(owner, MsmigrateError):
                found[name] = owner
            elif _is_convolution(name, shape) and shape[2] == 1 and (shape[3] > 1 or not tall):
                # Beside kernels that are taller, one of 1×1 is taken for theirs.
                found[name] = Ambiguous(f"it may belong to Conv1d, or to Conv2d with a kernel of 1×{shape[3]}")
            elif leaf in states:
                found[name] = Way(joined(_outer(path, states), states[leaf][0]), shape, owner)
            else:
                found[name] = Way(name, shape, owner)
    return found


def _is_convolution(name: str, shape: Shape) -> bool:
    return len(shape) == 4 and split(name)[1] == "weight"


# MindSpore's own name of a tensor -> torch's, and the part of the path that MindSpore adds
States = Mapping[str, tuple[str, str]]


def _inverse(name: str) -> States:
    found = {}
    for torch, state in layer_states()[name].items():
        if state.mindspore is not None:
            inner, leaf = split(state.mindspore)
            found[leaf] = (torch, inner)
    return found


def _class_of(
    path: str, names: set[str], leaves: Mapping[str, Shape], *, volumetric: bool
) -> tuple[str | MsmigrateError, States]:
    """The class that the tensors of one Cell tell, as a label, and how its tensors are called in torch."""
    if STATISTICS <= names <= STATISTICS | NORM:
        if volumetric and split(path)[1] == "bn2d":
            return "BatchNorm3d", _inverse("torch.nn.BatchNorm3d")
        return "BatchNorm", _inverse("torch.nn.BatchNorm2d")
    if {"gamma"} <= names <= NORM:
        return "LayerNorm or GroupNorm", _inverse("torch.nn.LayerNorm")
    if names == {"embedding_table"}:
        return "Embedding", _inverse("torch.nn.Embedding")
    if names == {"w"} and len(leaves["w"]) == 1:
        return Ambiguous("it may belong to PReLU, or be a parameter of one's own"), {}
    same = families(leaves)
    return (same[0].label if same and len(same) == 1 and same[0] in SAME_NAMES else OWN), {}


def _part_of_transformer(path: str, groups: Mapping[str, object]) -> Ambiguous | None:
    """Why the torch name of a transformer layer's dense1 or dense2 is not certain; None for any other Cell."""
    outer, part = split(path)
    around = {joined(outer, name) for name in (*TRANSFORMER, "self_attn", "norm1", "norm2")}
    if part not in TRANSFORMER or not around <= groups.keys():
        return None
    return Ambiguous(f"it may belong to a transformer layer of torch, as {TRANSFORMER[part]}, or to Linear, as {part}")


def _outer(path: str, states: States) -> str:
    inner = next(iter(states.values()))[1]
    return path.removesuffix(inner).removesuffix(".") if inner else path


def by_model(
    model: str, owners: Owners, wanted: Mapping[str, Shape], shapes: Mapping[str, Shape], names: Names | None = None
) -> Ways:
    """Go by the classes of the torch model (path -> class and bases) and the shapes of its state dict, `wanted`.

    names: how modules are called in MindSpore, by --map.
    """
    names = names or Names(())
    names.match(wanted)
    found: Ways = {}
    for name, shape in wanted.items():
        path, leaf = split(name)
        spoken = names.tensor(name)
        for owner, state in _crossings(owners, path, leaf, names):
            target = joined(names.path(path), leaf) if state is None else state.mindspore
            if target is None or (spoken or target) not in shapes:
                continue
            target = spoken or target
            if (SHAPES[state.verb].forward(shape) if state and state.verb else shape) == shapes[target]:
                found[target] = Way(name, shape, owner)
            else:
                found[target] = BadCheckpoint(f"it is {size(shapes[target])}, {name} of {model} is {size(shape)}")
            break
    names.check(wanted)
    for name in shapes:
        found.setdefault(name, BadCheckpoint(f"{model} has nothing of that name"))
    return found


def by_record(record: Mapping[str, Any] | None, shapes: Mapping[str, Shape]) -> Ways:
    """Go by what the conversion that made the file has noted; a note that does not fit its tensor is passed over."""
    found: Ways = {}
    for name, target in (record or {}).get("names", {}).items():
        if target not in shapes:
            continue
        shape = tuple((record or {}).get("shapes", {}).get(name, shapes[target]))
        if name and name.isprintable() and len(name) <= MAX_NAME and product(shape) == product(shapes[target]):
            found[target] = Way(name, shape, "noted")
    return found


def _crossings(owners: Owners, path: str, leaf: str, names: Names) -> list[tuple[str, Crossing | None]]:
    """How a tensor crosses by the row of a module around its own, where one tells, and by that of its own module."""
    label, around = around_it(path, (leaf,), owners, names)
    found: list[tuple[str, Crossing | None]] = [(label, around[leaf])] if leaf in around else []
    classes = owners.get(path, ())
    label = classes[0].removeprefix("torch.nn.") if classes else OWN
    rows = [name for name in classes if name in layer_states()]
    return [*found, (label, row_states(rows[0], path, path, (leaf,), names).get(leaf) if rows else None)]
