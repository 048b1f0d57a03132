"""What a mapping row is made of, and the strict reading of rows from YAML.

An unknown key, a missing key or a value of the wrong type raises `BadInput` naming the file, the row and the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..errors import BadInput
from ..printable import quoted, shortened

EQUAL = "equal"  # every tensor within the measured noise of torch itself
SAME_DISTRIBUTION = "equal in distribution"  # random streams differ, the distribution agrees
NOT_RUN = "documented, not run"  # here
NOT_APPLICABLE = "does not apply"  # there is no such mode for this kind of row
MISSING = "missing"  # MindSpore has nothing for it, or nothing that computes the same; `why` says what to do
STATUSES = (EQUAL, SAME_DISTRIBUTION, NOT_RUN, NOT_APPLICABLE, MISSING)
MEASURED = ">=2.10,<2.11"  # the versions of MindSpore in which the rows ran


class Name(str):
    """A dotted Python name inside a call's arguments, such as `mindspore.dataset.vision.Inter.BILINEAR`.

    It prints without quotes, so that a call's arguments can be written into source with `repr`.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str.__str__(self)


@dataclass(frozen=True)
class Call:
    """A MindSpore call with every argument written out.

    `target` is a qualified name. `kwargs` maps MindSpore argument names to plain values, `Name`s (a Python object to
    look up) or further `Call`s (an object to build); `*args` as a key stands for positional arguments.
    """

    target: str
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Argument:
    """How one torch argument crosses: to which MindSpore names, through which verb, or why it is dropped."""

    torch: str
    to: tuple[str, ...] = ()  # the MindSpore names; empty when the value is only checked
    required: bool = True
    default: Any = None  # torch's own, when not required
    verb: str | None = None  # a name in verbs.VERBS
    values: tuple[tuple[Any, Any], ...] = ()  # torch value -> MindSpore value; any other value is unsupported
    only: tuple[Any, ...] = ()  # the torch values that have a counterpart
    refuse: tuple[Any, ...] = ()  # the torch values that have none
    why: str | None = None  # why it goes nowhere, or why only some values cross
    remedy: str | None = None  # what to do with an unsupported value
    device: bool = False  # a device may stand here, which MindSpore chooses for the process: `remedy` says what to do
    rest: bool = False  # collects further positional arguments, as Tensor.view(2, 3) does


@dataclass(frozen=True)
class Written:
    """A MindSpore argument that torch does not have: always written, so that MindSpore's default never decides."""

    mindspore: str
    value: Any
    why: str | None = None


@dataclass(frozen=True)
class State:
    """How one tensor of a module's (or an optimizer's) state crosses.

    A `*` in the names stands for the same text on both sides: there are as many such tensors as the module has layers.
    """

    torch: str | None  # None: MindSpore holds something torch does not
    mindspore: str | None  # None: dropped, see `why`
    verb: str | None = None  # a name in shapes.SHAPES
    buffer: bool = False  # not trained
    fill: float | None = None  # the value of a tensor that torch does not have
    drawn_otherwise: bool = False  # a new layer's values are drawn from another distribution than torch's, see `why`
    start: float | None = None  # the number that torch's new layer holds there, where MindSpore's draws it
    refused: bool = False  # MindSpore has no place for it, and without it the others mean something else, see `why`
    when: str | None = None  # of an optimizer: the option without which torch does not hold it
    from_start: bool = False  # of an optimizer: torch holds it before the first step too
    in_groups: bool = False  # of an optimizer: torch keeps it in the parameter groups, once for each
    why: str | None = None


@dataclass(frozen=True)
class Case:
    """One run of a row in both frameworks; the tests read it."""

    args: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[Any, ...] = ()  # shapes, or mappings with shape and how to draw the values
    pack: bool = False  # the inputs are passed as one list, as torch.cat wants
    paired: bool = False  # the inputs after the first are passed as one tuple, as an LSTM's h and c
    weights: float = 1.0  # the deviation of the drawn weights
    apart: float | None = None  # MindSpore is not as near as noise, and at most this share of a tensor's largest apart
    groups: tuple[Mapping[str, Any], ...] = ()  # options of the optimizer's parameter groups
    steps: int = 6
    shape: tuple[int, ...] = ()  # of the tensor an initializer fills
    raises: str | None = None  # the argument that translate must refuse
    train: bool = True  # also run in train mode (False: random there)


@dataclass(frozen=True)
class Variation:
    """What may be drawn for a row: hypothesis makes Cases of it, and shrinks those that fail.

    Wherever a number stands, in the inputs (a shape, the bound of whole numbers) and in the arguments, an expression
    over sizes may stand instead: "n", "2*n", "n+1". An argument is one of the listed values.
    """

    sizes: Mapping[str, Any] = field(default_factory=dict)  # name -> [smallest, largest]
    inputs: tuple[Any, ...] = ()  # as those of a Case
    args: Mapping[str, Any] = field(default_factory=dict)  # argument -> the values to draw from
    where: tuple[str, ...] = ()  # what has to hold between sizes and arguments that are numbers: "h >= kernel_size"
    dtypes: tuple[str, ...] = ("float32",)  # of every input that does not say how it is drawn
    pack: bool = False
    paired: bool = False
    weights: float = 1.0  # the deviation of the drawn weights
    apart: float | None = None  # MindSpore may be this share of a tensor's largest off, where torch's noise is less


@dataclass(frozen=True)
class Row:
    """One torch thing, its MindSpore counterpart, and how everything crosses."""

    kind: str
    torch: str
    mindspore: str | None
    exact: bool
    arguments: tuple[Argument, ...]
    status: Mapping[str, str]
    docs: Mapping[str, str]
    why: str | None = None
    aliases: tuple[str, ...] = ()
    written: tuple[Written, ...] = ()
    unwritten: Mapping[str, str] = field(default_factory=dict)  # MindSpore argument -> why it is left alone
    defaults: Mapping[str, str] = field(default_factory=dict)  # MindSpore's own defaults, as Python source
    state: tuple[State, ...] = ()
    pitfalls: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    vary: tuple[Variation, ...] = ()
    versions: str = MEASURED  # of MindSpore
    rewrite: str | None = None  # how one writes it in MindSpore, where the arguments do not tell
    left_out: bool = False  # MindSpore needs no such call: what it is of or around stays, and `rewrite` says the rest
    origin: str | None = None  # the user's file that it stands in; None for msmigrate's own
    replaces: str | None = None  # the MindSpore side of the built-in row in whose place a user's row stands
    group_options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # that an optimizer puts into its
    # parameter groups and that are no arguments -> the values they may have; none: any
    recipe: Mapping[str, Any] = field(default_factory=dict)  # key of a recipe that says it, and its value where fixed

    @property
    def short(self) -> str:
        """The last part of the torch name, such as `Conv2d`."""
        return self.torch.rpartition(".")[2]

    @property
    def composed(self) -> bool:
        """Whether the target is a class of msmigrate, because MindSpore's own differs."""
        return bool(self.mindspore and self.mindspore.startswith("msmigrate."))


@dataclass(frozen=True)
class Fault:
    """One way in which a port goes wrong, where it shows, and what to do.

    hypothesis: how diagnosis tries the fault on the torch side: the verb that computes it, and the verb's values.
    """

    id: str
    torch: str
    mindspore: str
    shows_in: tuple[str, ...]
    symptom: str
    fix: str
    measured: str
    hypothesis: Mapping[str, Any] = field(default_factory=dict)


def read_yaml(path: Path) -> list[Any]:
    """Return the list that a table of msmigrate's own holds; raises BadInput when it is not YAML or not a list."""
    try:
        content = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
    except (OSError, yaml.YAMLError) as error:
        raise BadInput(f"{path}: {' '.join(str(error).split())}") from None
    return listed(content, path)


def listed(content: Any, path: Path) -> list[Any]:
    """The rows of a file's content; raises BadInput when it is not a list."""
    if not isinstance(content, list):
        raise BadInput(f"{path}: expected a list of rows, got {type(content).__name__}")
    # A document that opens with `shared:` anchors keeps them in a leading entry of its own.
    return [entry for entry in content if not (isinstance(entry, dict) and set(entry) == {"shared"})]


class Fields:
    """A mapping from YAML, read key by key; what is left over at the end is an error."""

    def __init__(self, content: Any, where: str) -> None:
        self.where = shortened(where, 600)
        if not isinstance(content, dict):
            raise BadInput(f"{self.where}: expected keys and values, got {quoted(content)}")
        self.content = dict(content)

    def take(self, key: str, *kinds: type, default: Any = ...) -> Any:
        """Remove and return one value of one of the given types; without a default the key must be there."""
        if key not in self.content:
            if default is ...:
                raise BadInput(f"{self.where}: the key '{key}' is missing")
            return default
        value = self.content.pop(key)
        if kinds and not isinstance(value, kinds):
            raise BadInput(f"{self.where}: '{key}' cannot be {quoted(value)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Remove and return a list of texts; none where the key is not there."""
        found = self.take(key, list, default=[])
        if not all(isinstance(text, str) for text in found):
            raise BadInput(f"{self.where}: '{key}' is a list of texts, not {quoted(found)}")
        return tuple(found)

    def words(self, key: str, *kinds: type) -> dict[str, Any]:
        """Remove and return a mapping from texts to values of the given types; nothing where the key is not there."""
        found: dict[str, Any] = self.take(key, dict, default={})
        for name, value in found.items():
            if not isinstance(name, str) or not isinstance(value, kinds or object):
                what = f"{quoted(name)}: {quoted(value)}"
                raise BadInput(f"{self.where}: '{key}' maps names to {_named(kinds)}, not {what}")
        return found

    def done(self) -> None:
        """Raise BadInput when keys are left that nobody took."""
        if self.content:
            raise BadInput(f"{self.where}: unknown key {quoted(next(iter(self.content)))}")


def _named(kinds: tuple[type, ...]) -> str:
    return " or ".join("texts" if kind is str else "lists" for kind in kinds) or "values"


def constant(value: Any) -> Any:
    """Turn a YAML constant into a value: `{name: a.b}` becomes a Name, `{call: a.b, kwargs: …}` a Call."""
    if isinstance(value, dict) and set(value) == {"name"}:
        return Name(value["name"])
    if isinstance(value, dict) and set(value) == {"call", "kwargs"}:
        return Call(value["call"], {key: constant(item) for key, item in value["kwargs"].items()})
    return value
