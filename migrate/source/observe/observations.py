"""The worker's observations of a model's source: what ran, what every expression was, how the model's objects are made.

What was observed of a statement or an expression is an attribute of its node in the files' syntax trees.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, get_args

PROOF_FILES = ("weights.pth", "batch.npz")  # what torch_proof_worker.py leaves in its folder
UNKNOWN_RANK = 99  # of a tensor in code that did not run, so that no rewrite for few dimensions is chosen
_Node = TypeVar("_Node", bound=ast.AST)


class _Kind:
    """What an expression of a model was, as far as a translation depends on it; its text is a word and its fields."""

    word: ClassVar[str] = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.word, *map(str, vars(self).values()))))


@dataclass(frozen=True)
class TensorKind:
    """A tensor, with its dtype and number of dimensions; parameter: whether it is a module's parameter."""

    dtype: str
    rank: int
    parameter: bool = False

    def __str__(self) -> str:
        return f"{'Parameter' if self.parameter else 'Tensor'} {self.dtype} {self.rank}"


@dataclass(frozen=True)
class ModuleKind(_Kind):
    """A module of a class."""

    cls: str
    word = "module"


@dataclass(frozen=True)
class CallableKind(_Kind):
    """A class or a function by its name; for a `functools.partial` the name of what it calls."""

    what: Literal["class", "function", "partial"]
    name: str


@dataclass(frozen=True)
class SequenceKind:
    """A list, a tuple, or a class of these such as a named tuple, and the kinds of its items."""

    type: str
    items: tuple[Kind, ...] = ()

    def __str__(self) -> str:
        return f"{self.type}({', '.join(map(str, self.items))})"


@dataclass(frozen=True)
class SizeKind(_Kind):
    """The shape of a tensor, with its number of dimensions."""

    length: int
    word = "Size"


@dataclass(frozen=True)
class DictKind:
    """A dictionary whose keys are strings, and the kind of every value."""

    entries: tuple[tuple[str, Kind], ...] = ()

    def __str__(self) -> str:
        return f"dict {{{', '.join(f'{key}: {kind}' for key, kind in self.entries)}}}"


@dataclass(frozen=True)
class PlainKind(_Kind):
    """A number, a string, None, or another object of Python's own, by its type."""

    type: str


@dataclass(frozen=True)
class DtypeKind(_Kind):
    """A dtype of torch's."""

    word = "dtype"


@dataclass(frozen=True)
class PythonModule(_Kind):
    """A module that was imported."""

    name: str
    word = "python"


@dataclass(frozen=True)
class ObjectKind(_Kind):
    """An object of some other class."""

    cls: str
    word = "object"


Kind = (
    TensorKind
    | ModuleKind
    | CallableKind
    | SequenceKind
    | SizeKind
    | DictKind
    | PlainKind
    | DtypeKind
    | PythonModule
    | ObjectKind
)
NONE = PlainKind("NoneType")


# How an object is made again; a number, a string and the like stands for itself


@dataclass(frozen=True)
class Reference:
    """A class or a function by its name."""

    name: str


@dataclass(frozen=True)
class EnumMember:
    """A member of an Enum."""

    cls: str
    name: str


@dataclass(frozen=True)
class Items:
    """A tuple or a list."""

    type: Literal["tuple", "list"]
    items: tuple[Any, ...]


@dataclass(frozen=True)
class Pairs:
    """A dictionary."""

    pairs: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class Array:
    """The numbers of a NumPy array or a tensor, nested as in its shape; of an empty one only the shape."""

    of: Literal["numpy", "torch"]
    dtype: str
    shape: tuple[int, ...]
    numbers: Any


@dataclass(frozen=True)
class Child:
    """A module that is taken out of another one, which is not part of the model."""

    name: str
    of: Any


@dataclass(frozen=True)
class Unknown:
    """An object whose construction was not observed; in words what it is, and what to write instead."""

    what: str
    instead: str = "make its arguments in its own __init__"


@dataclass(frozen=True)
class Made:
    """The result of calling a class or a function; id: identifies the object where it occurs again."""

    function: str
    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()
    id: int | None = None
    changes: Changes | None = None


# What has to be done to a module after it is made by its original call; see torch_changes_after_init.py


class Step(NamedTuple):
    """A child on the way into a module: its name, and what kind of container it is in."""

    name: str
    within: str  # Sequential, ModuleList, ModuleDict, or empty


@dataclass(frozen=True)
class Placed:
    """A child that was put in place later; new: whether there was nothing before."""

    path: tuple[Step, ...]
    made: Any
    new: bool


@dataclass(frozen=True)
class SetNumber:
    """The value that an attribute of a user's class was set to, after an object was made."""

    path: tuple[Step, ...]
    name: str
    value: Any


@dataclass(frozen=True)
class ModuleParameter:
    """A parameter, by the module that holds it and the module's class; without a name, all of the module's."""

    path: tuple[Step, ...]
    name: str
    cls: str


@dataclass(frozen=True)
class DrawnBy:
    """A call that drew weights of a module, which was its first argument or called `apply`; first: whether it came
    before children were put in place."""

    path: tuple[Step, ...]
    call: Made
    applied: bool
    first: bool


@dataclass(frozen=True)
class Changes:
    """Children put in place or removed, attributes set, weights drawn, parameters tied or frozen; what cannot be."""

    children: tuple[Placed, ...] = ()
    numbers: tuple[SetNumber, ...] = ()
    drawn: tuple[DrawnBy, ...] = ()
    tied: tuple[tuple[ModuleParameter, ModuleParameter], ...] = ()  # the replaced parameter, and its replacement
    frozen: tuple[ModuleParameter, ...] = ()
    missed: tuple[str, ...] = ()
    removed: tuple[tuple[Step, ...], ...] = ()


def parts(value: Any) -> Iterator[Any]:
    """The parts of a construction, one level down."""
    if dataclasses.is_dataclass(value):
        yield from vars(value).values()
    elif isinstance(value, tuple):
        yield from value


def functions_in(value: Any) -> Iterator[str]:
    """The classes and functions that a construction calls."""
    if isinstance(value, Made):
        yield value.function
    for part in parts(value):
        yield from functions_in(part)


def names_in_making(value: Any) -> Iterator[str]:
    """The classes and functions that a construction calls or names."""
    if isinstance(value, (Made, Reference)):
        yield value.function if isinstance(value, Made) else value.name
    for part in parts(value):
        yield from names_in_making(part)


# Classes that hold values


@dataclass(frozen=True)
class Record:
    """A named tuple, or a dataclass (`named`), of tensors: its fields in order, and those defaults that are plain;
    present: of a class that is a dictionary, the fields that have a value."""

    named: bool
    fields: tuple[str, ...]
    defaults: tuple[tuple[str, Any], ...]
    present: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Configuration:
    """A class of plain settings: the defaults of its fields, the values that all its objects had, other field names."""

    defaults: tuple[tuple[str, Any], ...]
    values: tuple[tuple[str, Any], ...]
    aliases: tuple[tuple[str, str], ...]


# Hidden states that a library's decorators collect; see torch_collected_outputs.py

REQUEST, STATES = "output_hidden_states", "hidden_states"  # the argument that requests them, and their name


@dataclass(frozen=True)
class Target:
    """A class of modules whose outputs are hidden states: which item of a tuple, whether the first module's input is
    one too, and file and line of the functions from the one that calls the modules out to the model's own."""

    cls: str
    index: int
    initial: bool
    through: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Collected:
    """A model's function returned hidden states; tie: the last of them is the model's last output. default: whether
    they are returned by default. outputs: the class of the function's result."""

    targets: tuple[Target, ...]
    tie: bool
    default: bool
    outputs: str


@dataclass(frozen=True)
class Filtered:
    """A function requests hidden states of the models inside; default: whether it returns them by default."""

    default: bool


CLASSES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        *get_args(Kind),
        *(Reference, EnumMember, Items, Pairs, Array, Child, Unknown, Made, Placed),
        *(SetNumber, ModuleParameter, DrawnBy, Changes),
        *(Record, Configuration, Target, Collected, Filtered),
    )
}


def to_json(value: Any) -> Any:
    """An object of these classes as JSON: the name of its class, and its fields."""
    if dataclasses.is_dataclass(value):
        return {type(value).__name__: [*map(to_json, vars(value).values())]}
    return [*map(to_json, value)] if isinstance(value, tuple) else value


def from_json(content: Any) -> Any:
    """The object that `to_json` made this from."""
    if isinstance(content, dict):
        ((name, fields),) = content.items()
        return CLASSES[name](*map(from_json, fields))
    return tuple(map(from_json, content)) if isinstance(content, list) else content


def always(kinds: Iterable[Kind], cls: type[Kind], **fields: object) -> bool:
    """Whether an expression always was of this kind, with these fields, and was observed."""
    seen = [*kinds]
    return bool(seen) and all(isinstance(kind, cls) and fields.items() <= vars(kind).items() for kind in seen)


def always_sequences(kinds: Iterable[Kind], *types: str) -> bool:
    """Whether an expression always was a list or the like, of one of these types, and was observed."""
    seen = [*kinds]
    return bool(seen) and all(isinstance(kind, SequenceKind) and kind.type in types for kind in seen)


def holds_tensor(kind: Kind) -> bool:
    """Whether there is a tensor among the values of a kind."""
    if isinstance(kind, DictKind):
        return any(holds_tensor(value) for _, value in kind.entries)
    if isinstance(kind, SequenceKind):
        return any(map(holds_tensor, kind.items))
    return isinstance(kind, TensorKind) and not kind.parameter


def of_constant(value: Any) -> Kind:
    """The kind of a constant in the source."""
    if isinstance(value, (list, tuple)):
        return SequenceKind(type(value).__name__, tuple(dict.fromkeys(map(of_constant, value))))
    return PlainKind(type(value).__name__)


# What was seen of the source


class Function(NamedTuple):
    """A function that ran: where it is defined, and its qualified name."""

    file: str
    module: str
    name: str  # as in __qualname__: `DenseNet.forward`
    line: int

    @property
    def qualified(self) -> str:
        """Module and name."""
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Observed:
    """What was observed of one statement or expression; copies of a node share it.

    reached: whether a statement ran. kinds: what an expression was. constants: the constants that it was; None for too
    many, or where something else was among them. callees: the qualified names of what was called there. zoo: how to
    make the models of a zoo's function. changed: arguments whose values the call changed -> how (torch_values.py).
    """

    reached: bool = False
    kinds: list[Kind] = field(default_factory=list)
    constants: list[Any] | None = None
    callees: list[str] = field(default_factory=list)
    zoo: list[Any] = field(default_factory=list)
    changed: dict[str, str] = field(default_factory=dict)

    def __deepcopy__(self, memo: object) -> Observed:
        return self


NOT_OBSERVED = Observed()


def observed(node: ast.AST) -> Observed:
    """What was observed of a node; empty for a new node, unless it replaced one of the source."""
    found: Observed = getattr(node, "observed", NOT_OBSERVED)
    return found


def reached(node: ast.stmt) -> bool:
    """Whether a statement ran."""
    return observed(node).reached


def kinds_of(node: ast.AST) -> list[Kind]:
    """What an expression was; empty where it did not run."""
    return observed(node).kinds


def constants_of(node: ast.AST) -> list[Any] | None:
    """The constants that an expression was; None for too many, or where something else was among them."""
    return observed(node).constants


def callees_of(call: ast.Call) -> list[str]:
    """The qualified names of what a call called."""
    return observed(call.func).callees


def entries_of(node: ast.AST) -> dict[str, list[Kind]] | None:
    """The keys of the dictionaries that an expression was -> the values' kinds; None where it was something else."""
    entries: list[dict[str, Kind]] = []
    for kind in kinds_of(node):
        if not isinstance(kind, DictKind):
            return None
        entries.append(dict(kind.entries))
    keys = dict.fromkeys(key for one in entries for key in one)
    return {key: list(dict.fromkeys(one[key] for one in entries if key in one)) for key in keys}


def set_callee(function: ast.expr, *names: str) -> None:
    """Note what a call that did not run would have called."""
    vars(function)["observed"] = replace(observed(function), callees=[*names])


def set_kinds(node: _Node, kinds: Iterable[Kind]) -> _Node:
    """Note the kinds of an expression that did not run, or is not in the source; returns it."""
    kinds = [*kinds]
    vars(node)["observed"] = Observed(kinds=kinds, constants=[None] if kinds == [NONE] else None)
    return node


def replacing(new: _Node, old: ast.AST) -> _Node:
    """The new node, with the position of the old one in the source and what was observed there."""
    if (seen := observed(old)) is not NOT_OBSERVED:
        vars(new)["observed"] = seen
    return ast.copy_location(new, old)


def parsed(file: str) -> ast.Module:
    """A file's tree, whose statements and expressions have the numbers under which the worker reports on them."""
    tree = ast.parse(Path(file).read_bytes())
    for number, node in enumerate(_numbered(tree)):
        node.__dict__["number"] = number
    return tree


def _numbered(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that have a number, in the order of their numbers, which is that of ast.walk."""
    return (node for node in ast.walk(tree) if isinstance(node, (ast.stmt, ast.expr)))


def number_of(node: ast.AST) -> int:
    """The number that `parsed` gave a node, or the one that it is a copy of."""
    return int(vars(node)["number"])


class Observations:
    """The worker's report; see torch_observe_worker.py."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.functions = [Function(f["file"], f["module"], f["name"], f["line"]) for f in report["functions"]]
        self.files: dict[str, str] = report.get("files", {})  # of modules whose classes were seen
        self.beside: dict[str, str] = report.get("beside", {})  # of the other modules of their packages
        self.names: dict[str, dict[str, str]] = report.get("names", {})  # of modules: what they import of other modules
        constants = report.get("constants_of", {}).items()
        self.constants: dict[str, dict[str, Any]] = {k: {n: from_json(v) for n, v in at.items()} for k, at in constants}
        # module -> name of a dictionary at the file's top -> key -> how the value is made
        self.registers: dict[str, dict[str, dict[str, Any]]] = {
            module: {name: {key: from_json(one) for key, one in table.items()} for name, table in at.items()}
            for module, at in report.get("registers", {}).items()
        }
        self.root = from_json(report["root"])  # how the model is made
        self.parts = {path: from_json(made) for path, made in report.get("parts", {}).items()}  # of each class in it
        self.taken_out: bool = report.get("taken_out", False)  # whether modules were part of another one before
        self.softmax_of_one: bool = report.get("softmax_of_one", False)  # whether a softmax was over a single value
        self.records: dict[str, Record] = {k: from_json(v) for k, v in report.get("records", {}).items()}
        # by file and first line of a function: hidden states that its decorators collect
        self.collected: dict[tuple[str, int], list[Collected | Filtered]] = {}
        for file, line, one in report.get("collected", ()):
            self.collected.setdefault((file, line), []).append(found := from_json(one))
            if isinstance(found, Collected):
                self.is_present(found.outputs, STATES)
        configurations = report.get("configurations", {}).items()
        self.configurations: dict[str, Configuration] = {key: from_json(value) for key, value in configurations}
        self.classes: dict[str, list[str]] = report["classes"]  # of the modules in the model, by their paths
        self.in_place = frozenset[str](report.get("in_place", ()))  # modules that change the tensor they are given
        # the same for every module that was made, also for one that no longer exists, as a backbone taken apart
        self.orders: list[list[str]] = [*self.classes.values(), *report.get("orders", {}).values()]
        # the autograd.Functions that ran -> why their backward is not the derivative of their forward, empty if it is,
        # and of each argument whether it was a tensor of real numbers
        self.autograd: dict[str, tuple[str, list[bool]]] = report.get("autograd", {})
        self._sites: dict[str, dict[int, list[int]]] = {}  # of each file's nodes
        for function in report["functions"]:
            for site in range(*function["sites"]):
                self._sites.setdefault(function["file"], {}).setdefault(report["nodes"][site], []).append(site)
        self._reached = set(report["reached"])
        self._values = {int(site): [*map(from_json, kinds)] for site, kinds in report["values"].items()}
        self._constants = {int(site): values for site, values in report["constants"].items()}
        self._zoo = {int(site): [*map(from_json, made)] for site, made in report.get("zoo", {}).items()}
        self._callees = {int(site): names for site, names in report["calls"].items()}
        self._changed: dict[int, dict[str, str]] = {int(n): one for n, one in report.get("changed", {}).items()}
        kinds = {kind for seen in self._values.values() for kind in seen}
        handed_on = {kind.name for kind in kinds if isinstance(kind, CallableKind)}
        self.called = {name.removeprefix("partial ") for names in self._callees.values() for name in names}
        self.seen = handed_on | self.called  # classes and functions that were an expression's value, or were called

    def is_present(self, record: str, field: str) -> None:
        """Note that a field of a record sometimes gets a value after the record is made."""
        known = self.records.get(record)
        if known is not None and known.present is not None and field not in known.present:
            there = {*known.present, field}
            self.records[record] = replace(known, present=tuple(name for name in known.fields if name in there))

    def tree(self, file: str) -> ast.Module:
        """The parsed file, whose nodes have the observations as attributes."""
        tree = ast.parse(Path(file).read_bytes())
        sites_of = self._sites.get(file, {})
        for number, node in enumerate(_numbered(tree)):
            node.__dict__["number"] = number
            if sites := sites_of.get(number):
                node.__dict__["observed"] = Observed(
                    any(site in self._reached for site in sites),
                    list(dict.fromkeys(kind for site in sites for kind in self._values.get(site, ()))),
                    self._constants_at([site for site in sites if site in self._values]),
                    list(dict.fromkeys(name for site in sites for name in self._callees.get(site, ()))),
                    [made for site in sites for made in self._zoo.get(site, ())],
                    {key: how for site in sites for key, how in self._changed.get(site, {}).items()},
                )
        return tree

    def _constants_at(self, sites: list[int]) -> list[Any] | None:
        """The constants that were reported at these sites, None for too many or where there was something else."""
        values: list[Any] = []
        for site in sites:
            few = self._constants.get(site)
            plain = all(isinstance(kind, PlainKind) for kind in self._values[site])
            if not plain or (few is None and self._values[site] != [NONE]):
                return None
            values += few or [None]
        return values or None

    def bases(self, name: str) -> list[str]:
        """A class of modules and its bases, in Python's method resolution order."""
        orders = [found for found in self.orders if name in found]
        first = next((found for found in orders if found[0] == name), orders[0] if orders else [name])
        return first[first.index(name) :]
