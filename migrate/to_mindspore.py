"""The way from torch's names to MindSpore's: each tensor goes by the class that owns it, as the mapping table says."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import Ambiguous, BadCheckpoint, MsmigrateError, Unsupported
from ..mappings.crossing import Crossing
from ..mappings.layer_states import LAYER_STATES
from ..mappings.shapes import SHAPES
from . import owner_classes
from .against_net import Net
from .formats.contents import Checkpoint, Tensor
from .name_map import Names
from .owner_classes import Module
from .plan import DROP, OWN, REFUSE, Entry, crossed, drop_tied, size

# Bases that have no tensors of their own: what stands in a subclass is the subclass's.
CONTAINERS = {f"torch.nn.{n}" for n in ("Module", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict")}

Owners = Mapping[str, tuple[str, ...]]  # module path -> its class and that class's bases, as --model learnt them


def entries(checkpoint: Checkpoint, owners: Owners | None, net: Net | None, names: Names | None = None) -> list[Entry]:
    """What happens to every tensor of a torch checkpoint; refusals are entries too.

    owners: as --model learnt them; without, the tensors that stand together tell the class. net: as --into learnt it;
    of classes that cannot be told apart it settles which. names: how modules are called in MindSpore, by
    --map. A tensor whose bytes another one holds is dropped as tied, for MindSpore keeps one.
    """
    shapes = {name: tensor.shape for name, tensor in checkpoint.tensors.items()}
    names = names or Names(())
    settled: dict[str, Entry] = {}
    for module in owner_classes.modules(shapes | dict.fromkeys(checkpoint.refused, ())):
        try:
            owner_classes.check_plain(module)
            there = module._replace(path=names.path(module.path))
            known = owners is not None and module.path in owners  # a file of a whole model knows torch's classes alone
            owner, states = _by_model(module, owners or {}) if known else _by_structure(there, net)
        except MsmigrateError as error:
            owner, states = OWN, dict.fromkeys(module.leaves, error)
        for leaf in module.leaves:
            name = f"{module.path}.{leaf}" if module.path else leaf
            settled[name] = _entry(checkpoint, name, names, owner, states.get(leaf))
    names.check(shapes)
    found = [settled[name] for name in (*checkpoint.tensors, *checkpoint.refused)]
    return found if net is not None else _tied(found)


def _tied(found: list[Entry]) -> list[Entry]:
    """Drop what shares all its bytes with an entry before it."""
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


# How the tensors of one module cross, by their own names: as the row says, or not at all; what is missing is kept.
States = Mapping[str, "Crossing | MsmigrateError"]


def _by_structure(module: Module, net: Net | None) -> tuple[str, States]:
    """Infer the class from the tensors that stand together; raises Ambiguous or Unsupported."""
    if module.families is None:
        return OWN, {}
    if not module.families:
        shapes = ", ".join(f"{leaf} {size(shape)}" for leaf, shape in module.leaves.items())
        raise Ambiguous(f"no torch layer holds just {shapes}")
    labels = " or ".join(family.label for family in module.families)
    choices = {family: found for family in module.families if (found := _states(family.classes))}
    if not choices:
        raise Unsupported(f"the mapping table has no row for {labels} yet")
    fitting = {family: found for family, found in choices.items() if net is not None and _fits(module, found, net)}
    if fitting:
        choices = fitting
    elif net is not None and len(module.families) > 1:
        raise BadCheckpoint(f"it may belong to {labels}, and the net has no parameter for it under any of their names")
    elif len(choices) < len(module.families):
        raise Ambiguous(f"it may belong to {labels}")
    if len({tuple(map(found.get, module.leaves)) for found in choices.values()}) > 1:
        raise Ambiguous(f"it may belong to {labels}")
    family, found = next(iter(choices.items()))
    unknown = {leaf: Unsupported(f"{family.label} has no tensor of that name") for leaf in module.leaves}
    return family.label, {**unknown, **found}


def _by_model(module: Module, owners: Owners) -> tuple[str, States]:
    """Take the class from --model: the first of its bases that has a row; raises Unsupported when torch's has none.

    A tensor that the row does not know belongs to a subclass, and keeps its name as any parameter of one's own does.
    """
    classes = owners.get(module.path, ())
    label = classes[0].removeprefix("torch.nn.") if classes else OWN
    for name in classes:
        if name in LAYER_STATES:
            return label, _states((name,)) or {}
        if name.startswith("torch.nn.") and name not in CONTAINERS:
            raise Unsupported(f"the mapping table has no row for {name} yet")
    return label, {}


def _states(classes: tuple[str, ...]) -> dict[str, Crossing] | None:
    """How the tensors of the first of these classes that has a row cross; None when none has."""
    for name in classes:
        if name in LAYER_STATES:
            return LAYER_STATES[name]
    return None


def _fits(module: Module, found: Mapping[str, Crossing], net: Net) -> bool:
    """Whether the net has parameters of the names and shapes that these states would give."""
    for leaf, shape in module.leaves.items():
        state = found.get(leaf)
        if state is None:
            return False
        if state.mindspore is not None:
            wanted = SHAPES[state.verb].forward(shape) if state.verb else shape
            name = f"{module.path}.{state.mindspore}" if module.path else state.mindspore
            if name not in net or net[name][0] != wanted:
                return False
    return True


def _entry(
    checkpoint: Checkpoint, name: str, names: Names, owner: str, state: Crossing | MsmigrateError | None
) -> Entry:
    """Settle one tensor."""
    tensor = checkpoint.tensors.get(name)
    if isinstance(state, Crossing) and state.mindspore is None:
        return Entry(DROP, name, tensor, owner=owner, why=state.why)
    if tensor is None:
        return Entry(REFUSE, name, None, owner=owner, why=checkpoint.refused[name], error=Unsupported)
    if isinstance(state, MsmigrateError):
        return Entry(REFUSE, name, tensor, owner=owner, why=str(state), error=type(state))
    path, leaf = owner_classes.split(name)
    shape = tensor.shape
    if state is not None and state.mindspore is not None:
        leaf = state.mindspore
        shape = SHAPES[state.verb].forward(shape) if state.verb else shape
    path = names.path(path)
    target = names.tensor(name) or (f"{path}.{leaf}" if path else leaf)
    return crossed(name, tensor, target, shape, owner)
