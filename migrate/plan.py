"""What a conversion will do with every tensor, settled before a byte is written.

Each tensor of the checkpoint gets one entry: keep, rename, transform (its shape changes, its bytes do not), drop with
a reason, or refuse with a reason. With a MindSpore net to check against (`--into`) the other side is covered as well:
every parameter of the net is filled by exactly one tensor of the same shape and type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..errors import Ambiguous, BadCheckpoint, MsmigrateError, Unsupported
from ..mappings.crossing import Crossing
from ..mappings.layer_states import LAYER_STATES
from ..mappings.shapes import SHAPES
from . import owner_classes
from .formats.mindspore_ckpt import TENSOR_TYPES
from .formats.torch_state_dict import Tensor, TorchCheckpoint
from .owner_classes import Module, Shape

KEEP, RENAME, TRANSFORM, DROP, REFUSE = ACTIONS = ("keep", "rename", "transform", "drop", "refuse")
OWN = "own parameter"


class Entry(NamedTuple):
    """What becomes of one tensor of the checkpoint.

    `name` is its torch name without wrappers' prefixes, `target` its MindSpore name (None when dropped or refused),
    `owner` the class that decides, `why` the reason to drop or refuse (or a remark), `error` the kind of refusal.
    """

    action: str
    name: str
    tensor: Tensor | None
    target: str | None = None
    target_shape: Shape | None = None
    owner: str = OWN
    why: str | None = None
    error: type[MsmigrateError] | None = None

    @property
    def written(self) -> bool:
        return self.action in (KEEP, RENAME, TRANSFORM)


class Plan(NamedTuple):
    """All entries in the order of the checkpoint; `unfilled` are parameters of the MindSpore net that nothing fills."""

    source: str
    checkpoint: TorchCheckpoint
    entries: list[Entry]
    classes_from: str  # "structure", or what --model said
    into: str | None
    parameters: int | None  # of the net given with --into
    unfilled: list[str]
    notes: list[str]

    @property
    def totals(self) -> dict[str, int]:
        """How many tensors each action gets; they add up to the tensors of the checkpoint."""
        return {action: sum(entry.action == action for entry in self.entries) for action in ACTIONS}

    @property
    def written(self) -> list[Entry]:
        """The entries that reach the MindSpore checkpoint."""
        return [entry for entry in self.entries if entry.written]

    @property
    def nbytes(self) -> int:
        """The bytes of content that will be written."""
        return sum(entry.tensor.nbytes for entry in self.written if entry.tensor)

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
                raise kind(f"{self.source}: {found}{REMEDY[kind]}")
        if self.unfilled:
            raise BadCheckpoint(f"{self.source} does not fill {self.into}: nothing for {few(self.unfilled)}")
        if not self.written:
            raise BadCheckpoint(f"{self.source} holds no tensor to convert")


REMEDY = {
    BadCheckpoint: "",
    Unsupported: "",
    Ambiguous: (
        "; the tensors alone do not tell the class: name the torch model with --model torchvision:NAME or "
        "--model FILE.py:FUNCTION, or the MindSpore net with --into"
    ),
}


# Bases that have no tensors of their own: what stands in a subclass is the subclass's.
CONTAINERS = {f"torch.nn.{n}" for n in ("Module", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict")}

Owners = Mapping[str, tuple[str, ...]]  # module path -> its class and that class's bases, as --model learnt them
Net = Mapping[str, tuple[Shape, str]]  # parameter name -> shape and dtype, as --into learnt them


def build(
    source: str,
    checkpoint: TorchCheckpoint,
    *,
    owners: Owners | None = None,
    model: str | None = None,
    net: Net | None = None,
    into: str | None = None,
) -> Plan:
    """Settle what happens to every tensor; refusals are entries, raised only by Plan.check."""
    shapes = {name: tensor.shape for name, tensor in checkpoint.tensors.items()}
    settled: dict[str, Entry] = {}
    for module in owner_classes.modules(shapes | dict.fromkeys(checkpoint.refused, ())):
        try:
            owner_classes.check_plain(module)
            owner, states = _by_model(module, owners) if owners is not None else _by_structure(module, net)
        except MsmigrateError as error:
            owner, states = OWN, dict.fromkeys(module.leaves, error)
        for leaf in module.leaves:
            name = f"{module.path}.{leaf}" if module.path else leaf
            settled[name] = _entry(checkpoint, name, module.path, owner, states.get(leaf))
    entries = [settled[name] for name in (*checkpoint.tensors, *checkpoint.refused)]
    entries = _refuse_twins(entries)
    unfilled: list[str] = []
    if net is not None:
        entries, unfilled = _against(net, entries)
    return Plan(
        source=source,
        checkpoint=checkpoint,
        entries=entries,
        classes_from=model or "structure",
        into=into,
        parameters=None if net is None else len(net),
        unfilled=unfilled,
        notes=[],
    )


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
    checkpoint: TorchCheckpoint, name: str, path: str, owner: str, state: Crossing | MsmigrateError | None
) -> Entry:
    """Settle one tensor."""
    tensor = checkpoint.tensors.get(name)
    if isinstance(state, Crossing) and state.mindspore is None:
        return Entry(DROP, name, tensor, owner=owner, why=state.why)
    if tensor is None:
        return Entry(REFUSE, name, None, owner=owner, why=checkpoint.refused[name], error=Unsupported)
    if isinstance(state, MsmigrateError):
        return Entry(REFUSE, name, tensor, owner=owner, why=str(state), error=type(state))
    if tensor.dtype not in TENSOR_TYPES:
        why = f"MindSpore checkpoints cannot hold {tensor.dtype}"
        return Entry(REFUSE, name, tensor, owner=owner, why=why, error=Unsupported)
    target, shape = name, tensor.shape
    if state is not None and state.mindspore is not None:
        target = f"{path}.{state.mindspore}" if path else state.mindspore
        shape = SHAPES[state.verb].forward(shape) if state.verb else shape
    if shape == (0,):
        why = "MindSpore reads the empty shape (0,) as a single number"
        return Entry(REFUSE, name, tensor, owner=owner, why=why, error=Unsupported)
    action = TRANSFORM if shape != tensor.shape else RENAME if target != name else KEEP
    return Entry(action, name, tensor, target, shape, owner)


def _refuse_twins(entries: list[Entry]) -> list[Entry]:
    """Refuse entries that would have one MindSpore name."""
    sources: dict[str, list[str]] = {}
    for entry in entries:
        if entry.target is not None:
            sources.setdefault(entry.target, []).append(entry.name)
    twins = {target: names for target, names in sources.items() if len(names) > 1}
    return [
        refuse(entry, BadCheckpoint, f"{' and '.join(twins[entry.target])} would both be called {entry.target}")
        if entry.target in twins
        else entry
        for entry in entries
    ]


def _against(net: Net, entries: list[Entry]) -> tuple[list[Entry], list[str]]:
    """Compare with the MindSpore net: returns the entries, refused where they do not fit, and the unfilled names."""
    filled = {entry.tensor: entry.target for entry in entries if entry.target in net}
    checked = []
    for entry in entries:
        twin = filled.get(entry.tensor)  # equal: the same bytes, seen in the same way
        if entry.tensor is None or (entry.target is None and entry.error is not BadCheckpoint):
            checked.append(entry)
        elif entry.target not in net and twin:
            tied = f"tied: the same bytes as {twin}"
            checked.append(entry._replace(action=DROP, target=None, why=tied, error=None))
        elif entry.target is None:
            checked.append(entry)
        elif entry.target not in net:
            checked.append(refuse(entry, BadCheckpoint, f"the net has no parameter {entry.target}"))
        else:
            checked.append(_fitted(entry, entry.tensor, *net[entry.target]))
    targets = {entry.target for entry in entries}
    return checked, [name for name in net if name not in targets]


def _fitted(entry: Entry, tensor: Tensor, shape: Shape, dtype: str) -> Entry:
    """The entry, refused unless the net's parameter has its shape and dtype."""
    if shape != entry.target_shape:
        why = f"the net's {entry.target} is {size(shape)}, this is {size(entry.target_shape or ())}"
        return refuse(entry, BadCheckpoint, why)
    if dtype != tensor.dtype:
        return refuse(entry, BadCheckpoint, f"the net's {entry.target} is {dtype}, this is {tensor.dtype}")
    return entry


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
