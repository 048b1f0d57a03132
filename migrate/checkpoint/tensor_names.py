"""Tensor names, torch's to MindSpore's and back, by the class that owns each.

MindSpore's names say more than torch's (`gamma` is a norm's), but not all: a Conv1d's weight has four dimensions there,
and a single `w` may be a PReLU's or somebody's own. What is ambiguous is refused.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple

from ...errors import Ambiguous, BadCheckpoint, MsmigrateError, Unsupported
from ...mappings.state_names import Crossing, find, layer_states, part_of_weight
from ...mappings.verb_registry import SHAPES
from . import plan as plans
from .formats.reader import MAX_NAME, Checkpoint, Shape, Tensor, product
from .plan import (
    ATTENTION,
    DECODER_LAYER,
    DROP,
    ENCODER_LAYER,
    OWN,
    RARE,
    RECURRENT,
    RECURRENT_CELL,
    REFUSE,
    Entry,
    Family,
    Module,
    Net,
    Owners,
    crossed,
    drop_tied,
    families,
    size,
    split,
)
from .user_map import Names

# Bases that have no tensors of their own: the tensors of a subclass are its own.
CONTAINERS = {f"torch.nn.{n}" for n in ("Module", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict")}

AROUND = {ENCODER_LAYER, DECODER_LAYER}  # families of the module around one


def entries(
    checkpoint: Checkpoint,
    owners: Owners | None,
    net: Net | None,
    names: Names | None = None,
    *,
    parts: bool = False,
) -> list[Entry]:
    """What happens to every tensor of a torch checkpoint; refusals are entries too.

    owners: from --model; without them, the tensors of a module together tell its class. net: from --into; where several
    classes fit the tensors, it decides. names: how modules are called in MindSpore, by --map. A tensor whose bytes
    another one holds is dropped as tied, for MindSpore keeps one.
    """
    shapes = {name: tensor.shape for name, tensor in checkpoint.tensors.items()}
    names = names or Names(())
    layer_states()  # read here, so that a row that cannot be read is not reported as the reason to refuse a tensor
    names.match((*checkpoint.tensors, *checkpoint.refused))
    settled: dict[str, Entry] = {}
    there = parts_there(checkpoint.tensors, net or ())
    for module in plans.modules(shapes | dict.fromkeys(checkpoint.refused, ())):
        own = {leaf: part_of_weight(joined(module.path, leaf)) for leaf in module.leaves}
        states: States
        try:
            if plans.computed(module) and (parts or there.issuperset(joined(module.path, leaf) for leaf in own)):
                owner, states = OWN, {leaf: Crossing(name) for leaf, name in own.items()}
            else:
                plans.check_plain(module)
                owner, states = _of_layer(module, names, net, owners)
        except MsmigrateError as error:
            owner, states = OWN, dict.fromkeys(module.leaves, error)
        for leaf in module.leaves:
            name = joined(module.path, leaf)
            settled[name] = _entry(checkpoint, name, names, owner, states.get(leaf))
    names.check(shapes)
    found = [settled[name] for name in (*checkpoint.tensors, *checkpoint.refused)]
    return found if net is not None else _tied(found)


def parts_there(tensors: Mapping[str, Tensor], net: Container[str]) -> set[str]:
    """The names of tensors that the net has as parts of weights; a shared tensor counts if the net has any of its
    names."""
    held = {tensor for name, tensor in tensors.items() if part_of_weight(name) in net}
    return {name for name, tensor in tensors.items() if tensor in held}


def _of_layer(module: Module, names: Names, net: Net | None, owners: Owners | None) -> tuple[str, States]:
    """By the class, where it is known, else by structure: a file of a whole model names only torch's classes.

    Raises Ambiguous or Unsupported.
    """
    if owners is not None and module.path in owners:
        return _by_model(module, names, net, owners)
    return _by_structure(module, names, net)


def _tied(found: list[Entry]) -> list[Entry]:
    """Drop every entry that shares all its bytes with an earlier one."""
    first: dict[Tensor, Entry] = {}
    checked = []
    for entry in found:
        if not entry.written or entry.tensor is None or not entry.tensor.nbytes:
            checked.append(entry)
            continue
        holder = first.setdefault(entry.tensor, entry)
        if holder is entry or holder.target_shape != entry.target_shape:
            checked.append(entry)
        else:
            checked.append(drop_tied(entry, holder))
    return checked


# How the tensors of one module cross, by their own names: the row's crossing with the full new name, or the error why
# not; a tensor that is missing here is kept.
States = Mapping[str, "Crossing | MsmigrateError"]
Choices = dict[Family, dict[str, Crossing]]


def _by_structure(module: Module, names: Names, net: Net | None) -> tuple[str, States]:
    """Infer the class from the module's tensors; raises Ambiguous, Unsupported, or BadCheckpoint where no class fits
    the net."""
    if module.families is None:
        return OWN, {}
    if not module.families:
        shapes = ", ".join(f"{leaf} {size(shape)}" for leaf, shape in module.leaves.items())
        raise Ambiguous(f"no torch layer holds just {shapes}")
    families = module.families
    if _mapped(names, split(module.path)[0], module.path):
        families = tuple(family for family in families if family not in AROUND)
    labels = " or ".join(family.label for family in families)
    choices = {family: found for family in families if (found := _places(family, module, names))}
    if not choices:
        raise Unsupported(f"the mapping table has no row for {labels} yet")
    fitting = {} if net is None else _fitting(module, names, choices, net)
    if fitting:
        choices = fitting
    elif net is not None and len(families) > 1:
        raise BadCheckpoint(f"it may belong to {labels}, and the net has no parameter for it under any of their names")
    elif len(choices) < len(families):
        raise Ambiguous(f"it may belong to {labels}")
    if len({tuple(map(found.get, module.leaves)) for found in choices.values()}) > 1:
        raise Ambiguous(f"it may belong to {labels}")
    family, found = next(iter(choices.items()))
    unknown = {leaf: Unsupported(f"{family.label} has no tensor of that name") for leaf in module.leaves}
    return family.label, {**unknown, **found}


def _by_model(module: Module, names: Names, net: Net | None, owners: Owners) -> tuple[str, States]:
    """Take the class from --model: the first of its bases that has a row; raises Unsupported when torch's has none.

    The row of a module around it comes first, unless the net does not have the names of that row. A tensor that the
    row does not know belongs to a subclass, and keeps its name, as every parameter of a user's own class does.
    """
    label, around = around_it(module.path, module.leaves, owners, names)
    if around and (net is None or _fits(module, around, net)):
        return label, around
    classes = owners.get(module.path, ())
    label = classes[0].removeprefix("torch.nn.") if classes else OWN
    for name in classes:
        if name.startswith("torch.nn.utils.parametrize."):
            continue  # the class that a parametrization gives its layer; it says nothing about the other tensors
        if name in layer_states():
            return label, row_states(name, module.path, module.path, module.leaves, names)
        if name.startswith("torch.nn.") and name not in CONTAINERS:
            raise Unsupported(_why_not(name))
    return label, {}


def _why_not(name: str) -> str:
    """Why the tensors of a torch layer cannot cross, by the mapping table."""
    from ...mappings.aliases import row_of  # reads the whole table, which only a refusal needs

    row = row_of(name)
    if row is None:
        return f"the mapping table has no row for {name}; --mappings FILE brings one of your own"
    return f"{name} has no counterpart in MindSpore: {row.why}"


def around_it(path: str, leaves: Iterable[str], owners: Owners, names: Names) -> tuple[str, dict[str, Crossing]]:
    """The outermost module around a path whose row says how its parts' tensors cross, and how the path's tensors do."""
    outer = ""
    for part in path.split("."):
        for name in owners.get(outer, ()):
            found = row_states(name, outer, path, leaves, names) if outer != path else {}
            if found:
                return owners[outer][0].removeprefix("torch.nn."), found
        outer = joined(outer, part)
    return OWN, {}


def row_states(name: str, outer: str, path: str, leaves: Iterable[str], names: Names) -> dict[str, Crossing]:
    """How the tensors of the module `path` cross by the row of class `name`; `outer` is `path` or a module around it.

    The crossings have the full new names; there are none where the map renames `path` or a module between the two.
    """
    states = layer_states().get(name, {})
    if _mapped(names, outer, path):
        return {}
    inside, there = path[len(outer) :].removeprefix("."), names.path(outer)
    found = {leaf: find(states, joined(inside, leaf)) for leaf in leaves}
    return {
        leaf: state if state.mindspore is None else state._replace(mindspore=joined(there, state.mindspore))
        for leaf, state in found.items()
        if state is not None
    }


def _mapped(names: Names, outer: str, path: str) -> bool:
    """Whether the map renames a module, or one between, inside of `outer`."""
    return names.path(path) != joined(names.path(outer), path[len(outer) :].removeprefix("."))


def joined(path: str, name: str) -> str:
    """A name inside a module; both may be empty."""
    return f"{path}.{name}" if path and name else path or name


def _places(family: Family, module: Module, names: Names) -> dict[str, Crossing]:
    """How the module's tensors cross by the first class of the family that has a row; empty where no row has them.

    The class may be that of the module or of the one around it.
    """
    ways = (
        row_states(name, outer, module.path, module.leaves, names)
        for name in family.classes
        for outer in (module.path, split(module.path)[0])
    )
    return next(filter(None, ways), {})


def _fitting(module: Module, names: Names, choices: Choices, net: Net) -> Choices:
    """The families, and rare ones that look the same, for whose names the net has parameters."""
    rare = {RARE[family]: _places(RARE[family], module, names) for family in choices if family in RARE}
    return {family: found for family, found in {**choices, **rare}.items() if _fits(module, found, net)}


def _fits(module: Module, found: Mapping[str, Crossing], net: Net) -> bool:
    """Whether the net has parameters of the names and shapes that these states would give."""
    for leaf, shape in module.leaves.items():
        state = found.get(leaf)
        if state is None:
            return False
        if state.mindspore is not None:
            wanted = SHAPES[state.verb].forward(shape) if state.verb else shape
            if state.mindspore not in net or net[state.mindspore][0] != wanted:
                return False
    return True


def _entry(
    checkpoint: Checkpoint, name: str, names: Names, owner: str, state: Crossing | MsmigrateError | None
) -> Entry:
    """Settle one tensor."""
    tensor = checkpoint.tensors.get(name)
    if isinstance(state, Crossing) and state.refused:
        return Entry(REFUSE, name, tensor, owner=owner, why=state.why, error=Unsupported)
    if isinstance(state, Crossing) and state.mindspore is None:
        return Entry(DROP, name, tensor, owner=owner, why=state.why)
    if tensor is None:
        return Entry(REFUSE, name, None, owner=owner, why=checkpoint.refused[name], error=Unsupported)
    if isinstance(state, MsmigrateError):
        return Entry(REFUSE, name, tensor, owner=owner, why=str(state), error=type(state))
    path, leaf = split(name)
    target, shape = joined(names.path(path), leaf), tensor.shape
    if state is not None and state.mindspore is not None:
        target = state.mindspore
        shape = SHAPES[state.verb].forward(shape) if state.verb else shape
    return crossed(name, tensor, names.tensor(name) or target, shape, owner)


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
                # Where there are taller kernels too, one of 1×1 is taken for a Conv2d's as well.
                found[name] = Ambiguous(f"it may belong to Conv1d, or to Conv2d with a kernel of 1×{shape[3]}")
            elif leaf in states:
                found[name] = Way(joined(_outer(path, states), states[leaf][0]), shape, owner)
            else:
                found[name] = Way(name, shape, owner)
    return found


def _is_convolution(name: str, shape: Shape) -> bool:
    return len(shape) == 4 and split(name)[1] == "weight"


# MindSpore's own name of a tensor -> torch's, and the part of the path that MindSpore adds
TorchStates = Mapping[str, tuple[str, str]]


def _inverse(name: str) -> TorchStates:
    found = {}
    for torch, state in layer_states()[name].items():
        if state.mindspore is not None:
            inner, leaf = split(state.mindspore)
            found[leaf] = (torch, inner)
    return found


def _class_of(
    path: str, names: set[str], leaves: Mapping[str, Shape], *, volumetric: bool
) -> tuple[str | MsmigrateError, TorchStates]:
    """The label of the class that the tensors of one Cell indicate, and how its tensors are called in torch."""
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


def _outer(path: str, states: TorchStates) -> str:
    inner = next(iter(states.values()))[1]
    return path.removesuffix(inner).removesuffix(".") if inner else path


def by_model(
    model: str, owners: Owners, wanted: Mapping[str, Shape], shapes: Mapping[str, Shape], names: Names | None = None
) -> Ways:
    """Take torch's names from the model's classes (path -> class and bases) and its state dict's shapes, `wanted`.

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
        found.setdefault(name, BadCheckpoint(f"{model} has no tensor of that name"))
    return found


def by_record(record: Mapping[str, Any] | None, shapes: Mapping[str, Shape]) -> Ways:
    """Take torch's names from the note of the conversion that made the file; a note that does not fit its tensor is
    ignored."""
    found: Ways = {}
    for name, target in (record or {}).get("names", {}).items():
        if target not in shapes:
            continue
        shape = tuple((record or {}).get("shapes", {}).get(name, shapes[target]))
        if name and name.isprintable() and len(name) <= MAX_NAME and product(shape) == product(shapes[target]):
            found[target] = Way(name, shape, "noted")
    return found


def _crossings(owners: Owners, path: str, leaf: str, names: Names) -> list[tuple[str, Crossing | None]]:
    """How a tensor crosses by the row of a module around its own, where one says, and by that of its own module."""
    label, around = around_it(path, (leaf,), owners, names)
    found: list[tuple[str, Crossing | None]] = [(label, around[leaf])] if leaf in around else []
    classes = owners.get(path, ())
    label = classes[0].removeprefix("torch.nn.") if classes else OWN
    rows = [name for name in classes if name in layer_states()]
    return [*found, (label, row_states(rows[0], path, path, (leaf,), names).get(leaf) if rows else None)]
