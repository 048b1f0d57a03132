"""The parts of a mapping row, and how the calls that are translated by it are made."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from ..errors import BadInput

EQUAL = "equal"  # every tensor within the measured noise of torch itself
SAME_DISTRIBUTION = "equal in distribution"  # random streams differ, the distribution agrees
NOT_RUN = "documented, not run"  # here
NOT_APPLICABLE = "does not apply"  # there is no such mode for this kind of row
MISSING = "missing"  # MindSpore has nothing for it, or nothing that computes the same; `why` says what to do
STATUSES = (EQUAL, SAME_DISTRIBUTION, NOT_RUN, NOT_APPLICABLE, MISSING)
OLDEST = "2.7.2"  # the oldest MindSpore in which rows ran: each holds from it on, unless the row names another


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
    checked: bool = False  # MindSpore's own raises for another value than these
    why: str | None = None  # why it goes nowhere, or why only some values cross
    remedy: str | None = None  # what to do with an unsupported value
    device: bool = False  # it may be a device, which MindSpore chooses for the process: `remedy` says what to do
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
    verb: str | None = None  # a name in verb_registry.SHAPES
    buffer: bool = False  # not trained
    fill: float | None = None  # the value of a tensor that torch does not have
    drawn_otherwise: bool = False  # a new layer's values are drawn from another distribution than torch's, see `why`
    start: float | None = None  # the number that a new layer of torch's holds there, where MindSpore's draws it
    refused: bool = False  # MindSpore has no place for it, and without it the others mean something else, see `why`
    when: str | None = None  # of an optimizer: the option without which torch does not hold it
    from_start: bool = False  # of an optimizer: torch holds it before the first step too
    in_groups: bool = False  # of an optimizer: torch keeps it in the parameter groups, once in each
    why: str | None = None


@dataclass(frozen=True)
class Case:
    """One run of a row in both frameworks; the tests read it."""

    args: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[Any, ...] = ()  # shapes, or mappings with shape and how to draw the values
    pack: bool = False  # the inputs are passed as one list, as torch.cat takes them
    paired: bool = False  # the inputs after the first are passed as one tuple, as an LSTM's h and c
    weights: float = 1.0  # the deviation of the drawn weights
    apart: float | None = None  # MindSpore may be off by this share of a tensor's largest value, more than the noise
    groups: tuple[Mapping[str, Any], ...] = ()  # options of the optimizer's parameter groups
    steps: int = 6
    shape: tuple[int, ...] = ()  # of the tensor an initializer fills
    raises: str | None = None  # the argument that translate must refuse
    train: bool = True  # also run in train mode (False: random there)
    made: Mapping[str, Any] = field(default_factory=dict)  # argument -> class -> its arguments: the first inputs


@dataclass(frozen=True)
class Variation:
    """What may be drawn for a row: the library Hypothesis draws Cases from it, and shrinks those that fail.

    In place of any number, in the inputs (a shape, the bound of whole numbers) and in the arguments, there may be an
    expression over sizes: "n", "2*n", "n+1". An argument is one of the listed values.
    """

    sizes: Mapping[str, Any] = field(default_factory=dict)  # name -> [smallest, largest]
    inputs: tuple[Any, ...] = ()  # as those of a Case
    args: Mapping[str, Any] = field(default_factory=dict)  # argument -> the values to draw from
    where: tuple[str, ...] = ()  # what has to hold between sizes and arguments that are numbers: "h >= kernel_size"
    dtypes: tuple[str, ...] = ("float32",)  # of every input that does not say how it is drawn
    pack: bool = False
    paired: bool = False
    weights: float = 1.0  # the deviation of the drawn weights
    apart: float | None = None  # MindSpore may be off by this share of a tensor's largest value, if the noise is less


@dataclass(frozen=True)
class Own:
    """What is known about a name of MindSpore's own, in whose place the row's counterpart or code is used."""

    does: str = ""  # what it is, and what a torch script has for it
    deprecated: str | None = None  # the MindSpore from which on its own page announces its removal
    gone: bool = False  # no MindSpore in which rows ran has it, but code that was written for older ones uses it


# other names that torch's functions accept for arguments (numpy_compatibility_arg_names in its python_arg_parser.cpp)
NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}


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
    instead_of: Mapping[str, Own] = field(default_factory=dict)  # MindSpore's own names for the same
    written: tuple[Written, ...] = ()
    in_order: bool = True  # MindSpore's arguments are in the order of torch's; else they are given by name
    unwritten: Mapping[str, str] = field(default_factory=dict)  # MindSpore argument -> why it is left alone
    defaults: Mapping[str, str] = field(default_factory=dict)  # MindSpore's own defaults, as Python source
    state: tuple[State, ...] = ()
    pitfalls: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    vary: tuple[Variation, ...] = ()
    since: str = OLDEST  # the MindSpore from which on it holds
    rewrite: str | None = None  # how one writes it in MindSpore, where the arguments do not show it
    left_out: bool = False  # MindSpore needs no such call: what it takes or wraps stays, and `rewrite` says the rest
    origin: str | None = None  # the user's file that it is in; None for msmigrate's own
    replaces: str | None = None  # the MindSpore side of the built-in row that a user's row replaces
    group_options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # options that an optimizer puts into
    # its parameter groups and that are no arguments -> the values they may have; none: any
    recipe: Mapping[str, Any] = field(default_factory=dict)  # key of a recipe that says it, and its value where fixed
    otherwise: Row | None = None  # the same with a class of msmigrate's, for values that MindSpore's own does not take
    called_with: Mapping[str, int] = field(default_factory=dict)  # of such a class: an argument that a call of the
    # layer may have, which MindSpore's own does not take either -> its place in that call
    over_one_value: bool = False  # such a class is used where a softmax of the model goes over a single value
    unless: Mapping[str, bool | float] = field(default_factory=dict)  # such a class is used for a call that gives one
    # of these arguments, unless it gives this very constant, and wherever the layer's class is handed on or compared
    as_value: bool = False  # such a class, with torch's arguments, is used where the layer's is handed on or compared

    @property
    def is_module(self) -> bool:
        """Whether it is a class of torch's modules."""
        return self.kind in ("layer", "module", "loss")

    @property
    def short(self) -> str:
        """The last part of the torch name, such as `Conv2d`."""
        return self.torch.rpartition(".")[2]

    def own_name(self, argument: str) -> str:
        """An argument's name in torch's documentation; a function may be called with NumPy's name for it."""
        known = {each.torch for each in self.arguments}
        own = NUMPY_NAMES.get(argument, argument)
        return own if self.kind == "function" and argument not in known and own in known else argument

    @property
    def takes_torchs(self) -> bool:
        """Whether the target takes torch's arguments as they are, in their order: some of msmigrate's classes, and what
        takes none."""
        plain = self.in_order and all(one.to == (one.torch,) and not one.verb for one in self.arguments)
        return plain and (self.composed or not self.arguments)

    @property
    def composed(self) -> bool:
        """Whether the target is a class of msmigrate, because MindSpore's own differs."""
        return bool(self.mindspore and self.mindspore.startswith("msmigrate."))


@dataclass(frozen=True)
class Fault:
    """One way in which a port goes wrong, where it shows, and what to do.

    hypothesis: how diagnosis tries the fault on the torch side: the verb that computes it, and the verb's values.
    needs: a regular expression; a script in which it matches nothing cannot have the fault. at: one that matches in the
    lines that can have it, where these are not those of its rows' calls. mode: graph, where only a compiled step has
    it.
    """

    id: str
    torch: str
    mindspore: str
    shows_in: tuple[str, ...]
    symptom: str
    fix: str
    measured: str
    hypothesis: Mapping[str, Any] = field(default_factory=dict)
    needs: str | None = None
    at: str | None = None
    mode: str | None = None


# From the dotted names of a translated call to Python objects, at run time, in whichever framework is there


def resolve(target: str) -> Any:
    """Return the object a dotted name stands for, importing the longest module prefix; raises BadInput."""
    parts = target.split(".")
    for cut in range(len(parts), 0, -1):
        module_name = ".".join(parts[:cut])
        try:
            found: Any = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is not None and not (module_name == error.name or module_name.startswith(error.name + ".")):
                raise
            continue
        try:
            for part in parts[cut:]:
                found = getattr(found, part)
                if isinstance(found, ModuleType) and found.__name__.partition(".")[0] != parts[0]:
                    raise BadInput(f"{target} leads out of {parts[0]}, into {found.__name__}")
        except AttributeError:
            break
        return found
    raise BadInput(f"there is no {target} in the installed packages")


def value_of(value: Any) -> Any:
    """Turn one argument of a call into what Python passes: names are looked up, calls are made, the rest stays."""
    if isinstance(value, Name):
        return resolve(value)
    if isinstance(value, Call):
        return build(value)
    return value


def build(call: Call, *first: Any) -> Any:
    """Make the call, with `first` before the arguments it names: `build(call, optimizer)`, `build(call, params)`.

    Raises BadInput for a target that belongs to Python's standard library under another package's name.
    """
    kwargs = {name: value_of(value) for name, value in call.kwargs.items()}
    rest = [item for name in list(kwargs) if name.startswith("*") for item in kwargs.pop(name)]
    target = resolve(call.target)
    if isinstance(target, (type, FunctionType, BuiltinFunctionType)):
        home = (target.__module__ or "").partition(".")[0]
        if home in sys.stdlib_module_names and home != call.target.partition(".")[0]:
            raise BadInput(f"{call.target} is {target.__module__}.{target.__qualname__}, which no row may name")
    return target(*first, *rest, **kwargs)
