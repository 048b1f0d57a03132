"""What is known of a value by reading a script: a constant and where it was written, an object of torch, or nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from ..library_names import BASES, LOADER, family_of, is_class
from ..source_files import ScriptFile

LARGEST = 10_000  # letters of a string, and nested values; anything larger is not followed
MOST_BASES = 100  # of a class
LOOKING_UP = ("get", "__getitem__", "pop", "setdefault", "__getattr__", "__getattribute__")  # what a table has
MOST_AMONG, DEEPEST = 100, 8  # objects that an unknown one may be; tables in tables


@dataclass(frozen=True)
class Origin:
    """Where a constant comes from, in words that name its line."""

    file: str
    line: int
    text: str  # "args.lr has the default 0.1 in argparse"
    whole: bool = True  # whether the line has no other constant; a line of a table has


Origins = tuple[Origin, ...]


@dataclass(eq=False)
class Value:
    """The value of an expression; this base class is for an unknown one."""

    origins: Origins = field(default=(), kw_only=True)
    other: Value | None = field(default=None, kw_only=True)  # of a None: its value with other arguments
    among: tuple[Value, ...] = field(default=(), kw_only=True)  # of an unknown one: the objects that it may be


@dataclass(eq=False)
class Constant(Value):
    """A number, a text, True, False or None."""

    value: Any


class Member(str):
    """A member of an enumeration of the script, by its name: it equals itself, and no plain value."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(eq=False)
class ListValue(Value):
    """A list, tuple or set as far as its elements were seen."""

    items: list[Value]
    closed: bool = True  # whether these are all its elements
    loops: int = 0  # how many loops that are not followed round by round are around its creation
    ordered: bool = True  # whether they come in this order; a set's do not

    def extend(self, more: list[Value]) -> None:
        """Add elements, but not more than are followed: in `a += a` they double with every line."""
        room = max(0, LARGEST - len(self.items))
        self.closed = self.closed and len(more) <= room
        self.items += more[:room]

    def put(self, at: Any, value: Value, sure: bool) -> None:
        """Give an element another value; sure: whether that surely happens."""
        if isinstance(at, int) and -len(self.items) <= at < len(self.items):
            self.items[at] = value if sure else perhaps(self.items[at], value)
        else:  # any of them, or several
            self.forget()

    def forget(self) -> None:
        """Take its known elements, and how many they are, as unknown."""
        self.items[:] = [Value() if is_known(one) else one for one in self.items]
        self.closed = False


@dataclass(eq=False)
class DictValue(Value):
    """A dict by its constant keys."""

    pairs: dict[Any, Value]
    closed: bool = False  # whether these are all its keys, in their order
    more: bool = False  # whether it may have any other key

    def put(self, pairs: dict[Any, Value], sure: bool) -> None:
        """Give it these values; sure: whether that surely happens."""
        self.closed = self.closed and sure
        self.pairs |= pairs if sure else {key: perhaps(self.pairs.get(key), value) for key, value in pairs.items()}


@dataclass(eq=False)
class RangeValue(Value):
    """A range of more numbers than are followed one by one."""

    count: int


@dataclass(eq=False)
class LibraryName(Value):
    """A function, class or module of a library, by its qualified name."""

    name: str


UNNAMED = (None, "*", "**")  # how an argument is called that has no name of its own


@dataclass(eq=False)
class CallArgument:
    """One argument of a call: its name where it has one (`*` and `**` for unpacked ones), its node and value."""

    name: str | None
    node: ast.expr
    value: Value
    at: str = ""  # its place in an unpacked argument: "['lr']", "[0]"


@dataclass(eq=False)
class LibraryUse:
    """One evaluation of a call (or of a name that is not called) of a library."""

    name: str  # qualified
    source: ScriptFile
    node: ast.expr
    arguments: list[CallArgument] | None  # None: named, not called
    certainty: str  # how surely it runs: see interpreter.py
    condition: str | None  # under which it runs, where that is not decided
    loops: tuple[str, ...]  # the kinds of the loops around it, outermost first
    order: int
    receiver: LibraryObject | ScriptObject | None = None
    tests: tuple[tuple[ast.expr, Scope], ...] = ()  # the conditions around it
    never: bool = False  # whether it runs only where another script is run
    perhaps: str = ""  # what it is where its object is of another family, which nothing tells

    def get(self, name: str, position: int | None = None) -> Value | None:
        """The value of an argument by its name or position, or None where it was not given."""
        plain = [argument for argument in self.arguments or [] if argument.name is None]
        for argument in self.arguments or []:
            if argument.name == name:
                return argument.value
        if position is not None and position < len(plain):
            return plain[position].value
        return None


@dataclass(eq=False)
class LibraryObject(Value):
    """The result of a library's call: an optimizer, a tensor, a module, …"""

    family: str  # see library_names.py; "" where it is unknown
    seen: LibraryUse | None = None
    name: str = ""  # the qualified name of its class or of the function that made it
    of: Value | None = None  # what it was made from: the module inside a wrapper, the data set of a loader


@dataclass(eq=False)
class Scope:
    """The names of a module, class or function, and the scope around it."""

    source: ScriptFile
    parent: Scope | None = None
    names: dict[str, Value] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)  # libraries of `from … import *`
    shared: dict[str, Scope] = field(default_factory=dict)  # names that belong to a scope around it
    unset: set[str] = field(default_factory=set)  # names that are None where an undecided condition does not hold
    at_any_time: bool = False  # of a function that something else calls, such as a handler of signals

    def put(self, name: str, value: Value, of: Scope) -> None:
        """Give a name of this scope a value in the scope `of`: where that runs at any time, one of two values."""
        self.names[name] = value if self is of else of.sure(self.names.get(name), value)
        self.unset.discard(name)

    def top(self) -> Scope:
        """The scope of the file."""
        return self if self.parent is None else self.parent.top()

    def sure(self, before: Value | None, value: Value) -> Value:
        """What something that lives on is after it is set here: not known, where this scope's code runs at any time."""
        other = self.at_any_time and is_known(before) and known(before) != known(value)
        return Value() if other else value

    def perhaps_none(self, name: str) -> bool:
        """Whether a name may be None, although it has a known value."""
        return (scope := self.holding(name)) is not None and name in scope.unset

    def find(self, name: str) -> Value | None:
        """The value of a name, from the inside out."""
        return scope.names[name] if (scope := self.holding(name)) is not None else None

    def holding(self, name: str) -> Scope | None:
        """This scope, or the nearest around it, that has a name."""
        around = self.parent.holding(name) if self.parent is not None and name not in self.names else None
        return self if name in self.names else around


@dataclass(eq=False)
class ScriptModule(Value):
    """A file of the script's folder."""

    scope: Scope


@dataclass(eq=False)
class ScriptFunction(Value):
    """A function of the script."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope  # around it
    receiver: Value | None = None
    owner: ScriptClass | None = None  # the class that defines it
    defaults: dict[str, Value] = field(default_factory=dict)  # of its parameters, made once

    @property
    def prepares(self) -> bool:
        """Whether Lightning calls it before the methods of its class that make loaders."""
        first = getattr(self.node, "name", "") in ("prepare_data", "setup")
        return first and self.owner is not None and self.owner.makes_loaders


@dataclass(eq=False)
class ScriptClass(Value):
    """A class of the script."""

    node: ast.ClassDef
    scope: Scope  # its own names
    bases: list[Value] = field(default_factory=list)
    used_as: str = ""  # the family of its objects by their use, where it derives from no library's class

    def lineage(self) -> Iterator[Value]:
        """The class and all that it derives from, each once, a base before those listed after it."""
        waiting: list[Value] = [self]
        seen: set[int] = set()
        while waiting and len(seen) < MOST_BASES:
            found = waiting.pop()
            if id(found) not in seen:
                seen.add(id(found))
                yield found
                waiting += found.bases[::-1] if isinstance(found, ScriptClass) else ()

    def find(self, name: str) -> Value | None:
        """A name of the class or of the classes of the script that it derives from."""
        owners = (of for of in self.lineage() if isinstance(of, ScriptClass) and name in of.scope.names)
        return next((of.scope.names[name] for of in owners), None)

    def member(self, name: str) -> Constant | None:
        """The member of this name, where the class is an enumeration whose members equal no plain value."""
        found = self.scope.names.get(name)
        bases = {of.name for of in self.lineage() if isinstance(of, LibraryName)}
        plain = any(getattr(base, "id", "") in ("str", "int", "float") for base in self.node.bases)
        plain = plain or found is None or isinstance(found, ScriptFunction) or name.startswith("_")
        if plain or bases != {"enum.Enum"}:
            return None
        each = self.scope.names.items() if is_known(found) else ()
        same = (key for key, value in each if known(value, self) == known(found))
        return Constant(Member(f"{self.node.name}.{next(same, name)}"))  # another name for a value is no other member

    def computes(self) -> bool:
        """Whether reading an attribute of its objects computes it, by methods of its own: `return self[key] / 2`."""
        own = self.find("__getattr__")
        parts = list(ast.walk(own.node)) if isinstance(own, ScriptFunction) else []
        sums = any(isinstance(one, ast.Return) and isinstance(one.value, ast.BinOp) for one in parts)
        bases = [base for of in self.lineage() if isinstance(of, ScriptClass) for base in of.node.bases]
        table = any(getattr(one, "id", getattr(one, "attr", "")).lower().endswith("dict") for one in bases)
        looks = any(isinstance(one, ast.Subscript) or getattr(one, "attr", "") in LOOKING_UP for one in parts)
        return sums or (table and bool(parts) and not looks) or self.find("__getattribute__") is not None

    def fields(self) -> dict[str, ast.AnnAssign]:
        """The fields of a class of settings, a base's before its own, by their names: `rate: float = 0.1`."""
        owners = [one.node for one in self.lineage() if isinstance(one, ScriptClass)]
        found = (one for owner in owners[::-1] for one in owner.body if isinstance(one, ast.AnnAssign))
        return {one.target.id: one for one in found if isinstance(one.target, ast.Name)}

    def bound(self, arguments: list[CallArgument]) -> dict[str, Value]:
        """The attributes that a class without `__init__` gets by its arguments; by their place where it is decorated as
        a class of settings, and no library's fields come before its own."""
        settings = any("dataclass" in ast.unparse(one) for one in self.node.decorator_list)
        places = list(self.fields()) if settings and self.library_base() is None else []
        by_place = (one.value for one in arguments if one.name is None)
        given = dict(zip(places, by_place, strict=False))
        for one in arguments:
            if isinstance(one.value, DictValue) and (one.name == "**" or (one.name is None and not places)):
                given |= one.value.pairs  # of a class that derives from dict too
            elif one.name in ("*", "**"):  # any of them
                given = dict.fromkeys(self.fields(), Value()) | given
        return given | {one.name: one.value for one in arguments if one.name}

    def library_base(self) -> str | None:
        """The library class that it derives from in the end, if any."""
        return next((of.name for of in self.lineage() if isinstance(of, LibraryName)), None)

    @property
    def makes_loaders(self) -> bool:
        """Whether it derives from Lightning's class of data, whose methods a library calls for loaders."""
        return (self.library_base() or "").endswith(".LightningDataModule")

    def family(self) -> str:
        """The family of its objects, by the library's class that it derives from, or else by their use."""
        base = self.library_base()
        return (BASES.get(base) or family_of(base)) if base else self.used_as


@dataclass(eq=False)
class ScriptObject(Value):
    """An object of one of the script's classes."""

    of: ScriptClass
    attributes: dict[str, Value] = field(default_factory=dict)
    arguments: list[CallArgument] = field(default_factory=list)
    node: ast.expr | None = None
    certainty: str = ""
    source: ScriptFile | None = None

    def defaults(self) -> Iterator[CallArgument]:
        """The fields of its class that it has by their defaults."""
        given = {argument.name for argument in self.arguments}
        for name, statement in self.of.fields().items():
            value, node = self.attributes.get(name) or self.of.find(name), statement.value
            if isinstance(node, ast.Call):  # field(default=0.1, metadata=…)
                node = next((keyword.value for keyword in node.keywords if keyword.arg == "default"), node)
            if node is not None and name not in given:
                yield CallArgument(name, node, value or Value())


@dataclass(eq=False)
class ArgumentParser(Value):
    """An argparse parser, with the default of every argument."""

    defaults: dict[str, Value] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)  # by add_argument: the first default of a name counts
    of_files: bool = False  # whether a file gives its arguments other defaults
    flags: dict[str, str] = field(default_factory=dict)  # of a command line, with the name that each sets


@dataclass(eq=False)
class ParsedArguments(Value):
    """The result of parse_args, with attributes that the script assigns later."""

    parser: ArgumentParser
    assigned: dict[str, Value] = field(default_factory=dict)

    def get(self, name: str) -> Value:
        """The value of `args.name`."""
        return self.assigned[name] if name in self.assigned else self.parser.defaults.get(name, Value())

    def arguments(self) -> list[CallArgument]:
        """These, as the arguments of a function that a package calls with them."""
        return [CallArgument(name, ast.Constant(None), self.get(name)) for name in self.parser.defaults]

    def given(self, arguments: list[CallArgument]) -> ParsedArguments:
        """These, as parse_args returns them for its own arguments, which make options unknown."""
        for argument in arguments:
            words = known(argument.value) if argument.name in (None, "args") else None
            if isinstance(words, (list, tuple)):
                texts = [word for word in words if isinstance(word, str) and word.startswith("-")]
                texts = [text.partition("=")[0].lstrip("-").replace("-", "_") for text in texts]
                pairs = [(text, flag) for text in texts for flag in self.parser.flags]
                given = [flag for text, flag in pairs if text[:1] == flag or flag.startswith(text)]
                forget(self.assigned, [self.parser.flags[flag] for flag in given])
            elif argument.name not in (None, "args"):
                forget(self.assigned, self.parser.defaults)
        return self


def forget(values: dict[Any, Value], names: Iterable[Any]) -> None:
    """Take the values of these names as unknown where they are plain."""
    values.update({name: Value() for name in names if name not in values or is_known(values[name])})


def inside(value: Value) -> tuple[Value, ...]:
    """The lists, tables and objects that a list, a table, or one of several objects has."""
    parts = list(value.items if isinstance(value, ListValue) else getattr(value, "pairs", {}).values())
    parts += [one for of in value.among for one in inside(of)]
    found = (one for one in parts if one.among or isinstance(one, (ListValue, DictValue, ScriptObject)))
    return tuple({id(one): one for one in islice(found, MOST_AMONG)}.values())


def forget_inside(value: Value, depth: int = 0) -> None:
    """Take the plain values of settings as unknown, as something may do that gets them."""
    pairs = value.pairs if isinstance(value, DictValue) else {}
    pairs = value.attributes if isinstance(value, ScriptObject) and not value.of.family() else pairs
    of = [one for one in (*inside(value), *pairs.values()) if isinstance(one, (DictValue, ListValue))]
    for one in (*value.among, *of) if depth < DEEPEST else ():
        forget_inside(one, depth + 1)
    value.forget() if isinstance(value, ListValue) else forget(pairs, list(pairs))


def no_round(before: dict[str, Value], names: dict[str, Value]) -> None:
    """Take the names as unknown that had another known value before a loop, which may have no round."""
    for name, value in before.items():
        now = names.get(name)
        if now is not value and is_known(now) and is_known(value) and known(now) != known(value):
            names[name] = Value()


def or_else(names: dict[str, Value], others: Iterable[dict[str, Value]]) -> None:
    """Take the names as unknown that may have another value: the code that gives them it may run too."""
    for name, value in ((name, value) for other in others for name, value in other.items()):
        now = names.setdefault(name, value)
        names[name] = perhaps(value, now) if is_known(now) else now


def perhaps(before: Value | None, value: Value) -> Value:
    """What something is that has a value, and perhaps gets another one."""
    if before is None or not (is_known(before) or (type(before) is Value and is_known(value))):
        return value
    same = is_known(before) and is_known(value) and known(before) == known(value)
    return value if same else Value(origins=origins(before, value))


def with_other(value: Value, other: Value | None) -> Value:
    """A None with the value that it has under other arguments; any other value unchanged."""
    if isinstance(value, Constant) and value.value is None and isinstance(other, (LibraryObject, ScriptObject)):
        return Constant(None, origins=value.origins, other=other)
    return value


class NotConstant(Exception):
    """The value is not known without running the script."""


def weight(value: Value | None) -> int:
    """The number of values in a value, written out; a string counts by its length. Counting stops above LARGEST."""
    total, waiting = 1, [value]
    while waiting and total <= LARGEST:
        found = waiting.pop()
        inner = found.items if isinstance(found, ListValue) else getattr(found, "pairs", {}).values()
        if isinstance(found, Constant):
            content = found.value
            total += len(content) // 64 if isinstance(content, (str, bytes)) else 0
            total += content.bit_length() // 64 if isinstance(content, int) else 0
        total += len(inner)
        waiting += islice(inner, LARGEST)
    return total


def plain(value: Value | None) -> Any:
    """The Python value of a constant, or of a list or dict of constants.

    Raises NotConstant for anything else, and for a value that is too large written out, such as nested lists that each
    hold the same list twice.
    """
    if isinstance(value, Constant):
        return value.value
    if not isinstance(value, (ListValue, DictValue)) or weight(value) > LARGEST:
        raise NotConstant
    return _plain(value)


def _plain(value: Value) -> Any:
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, ListValue) and value.closed:
        return [_plain(item) for item in value.items]
    if isinstance(value, DictValue) and not value.more:
        return {key: _plain(item) for key, item in value.pairs.items()}
    raise NotConstant


def known(value: Value | None, default: Any = None) -> Any:
    """The Python value, or the default where it is not known."""
    try:
        return plain(value)
    except NotConstant:
        return default


def is_known(value: Value | None) -> bool:
    """Whether the value is known."""
    return known(value, NotConstant) is not NotConstant


def is_none(value: Value | None) -> bool:
    """Whether the value is None, and known."""
    return isinstance(value, Constant) and value.value is None


def wrapped(value: Any, origins: Origins = ()) -> Value:
    """A Python value as a Value; one that is too large to follow is unknown."""
    if value is None or isinstance(value, (bool, int, float, complex)):
        large = isinstance(value, int) and value.bit_length() > LARGEST
        return Value() if large else Constant(value, origins=origins)
    if isinstance(value, (str, bytes)):
        return Constant(value, origins=origins) if len(value) <= LARGEST else Value()
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return (
            ListValue([wrapped(item, origins) for item in value], origins=origins) if len(value) <= LARGEST else Value()
        )
    if isinstance(value, dict):
        return DictValue({key: wrapped(item, origins) for key, item in value.items()}, origins=origins)
    return Value()


def origins(*values: Value | None) -> Origins:
    """Where all of them come from, each place once."""
    found: dict[Origin, None] = {}
    for value in (one for one in values if one is not None):
        found |= dict.fromkeys(value.origins)
        for item in value.items[:20] if isinstance(value, ListValue) else ():  # items of items are not searched
            found |= dict.fromkeys(item.origins)
    return tuple(found)[:6]


def first(values: Iterable[Value]) -> Value:
    """The first of several possible values that is known."""
    values = list(values)
    return next((value for value in values if type(value) is not Value), values[0] if values else Value())


def either(values: Sequence[tuple[Value, str]]) -> Value | None:
    """The value of a name after two sides of a condition, each with the condition: the first that is known, but no
    number or text where another side has another one. None where there is no side."""
    found = first(value for value, _ in values)
    others = [one for one, _ in values if not is_none(one)]
    if not isinstance(found, Constant) or not values:
        return one_of(found, [value for value, _ in values]) if values else None
    if found.value is None:
        return replace(found, origins=()) if others else found  # it may be something else
    if all(isinstance(one, Constant) and one.value == found.value for one in others):
        return found
    each = (replace(one, text=f"{one.text}, where {of}", whole=False) for value, of in values for one in value.origins)
    return Value(origins=tuple(each)[:6])


def agreed(values: Iterable[Value]) -> Value:
    """The first known one of several possible values; a number, string or name only where all are equal to it."""
    values = list(values)
    found = first(values)
    others = [one for one in values if not is_none(one)]
    if len(others) < len(values) and _is_tool(others):
        return others[0]  # or None
    if isinstance(found, (Constant, LibraryName)):
        same = "value" if isinstance(found, Constant) else "name"
        if any(type(one) is not type(found) or getattr(one, same) != getattr(found, same) for one in values):
            return Value()
    return one_of(found, values)


def one_of(found: Value, values: Sequence[Value]) -> Value:
    """A table, a list or an object of settings that may be any of these values: nothing is known in it that another one
    lacks, or has otherwise. Any other value unchanged."""
    others = [one for one in values if one is not found and not is_none(one)]
    alike = [found, *(one for one in others if type(one) is type(found))]
    whole = len(alike) > len(others)

    def shared(of: Sequence[dict[Any, Value]]) -> dict[Any, Value]:
        every = {key: [one.get(key) for one in of] for one in of for key in one}
        return {key: _in_all([one for one in of_key if one], whole and all(of_key)) for key, of_key in every.items()}

    if not others:
        return found
    if isinstance(found, DictValue):
        tables = [one for one in alike if isinstance(one, DictValue)]
        same = whole and all(one.closed and [*one.pairs] == [*found.pairs] for one in tables)
        more = not whole or any(one.more for one in tables)
        return DictValue(shared([one.pairs for one in tables]), closed=same, more=more, among=tuple(values))
    if isinstance(found, ListValue):
        lists = [one for one in alike if isinstance(one, ListValue)]
        same = whole and all(one.closed and len(one.items) == len(found.items) for one in lists)
        columns = zip(*(one.items for one in lists), strict=True) if same else ([one] for one in found.items)
        items = [_in_all(list(column), same) for column in columns]
        return ListValue(items, closed=same, loops=found.loops, origins=origins(*items), among=tuple(values))
    parsed = isinstance(found, ScriptObject) and "parse" in getattr(getattr(found.node, "func", None), "attr", "")
    several = len(alike) > 1 or (type(others[0]) is Value and not parsed)  # a plain start counts
    if isinstance(found, ScriptObject) and not found.of.family() and several:
        own = shared([one.attributes for one in alike if isinstance(one, ScriptObject)])
        return replace(found, attributes=own, among=tuple(values))
    return found


def _in_all(values: list[Value], everywhere: bool) -> Value:
    """What several tables have under one key; everywhere: whether these are all of them."""
    found = first(values)
    return agreed(values) if everywhere else Value() if is_known(found) else found


def _is_tool(values: list[Value]) -> bool:
    """Whether these are one object of a library that is neither torch's nor a class's, such as a logger's run."""
    objects = (one for one in values if isinstance(one, LibraryObject) and not one.family)
    made = [one for one in objects if one.name and not is_class(one.name)]
    return bool(made) and len(made) == len(values) and len({one.name for one in made}) == 1


def keys_of(table: DictValue, pairs: bool = False) -> Value:
    """The keys of a table of loaders, whose loops are followed one by one, or with pairs each with its loader."""
    loaders = [isinstance(one, LibraryObject) and one.family == LOADER for one in table.pairs.values()]
    if not table.closed or not any(loaders):
        among = inside(table) if pairs else ()
        return ListValue([ListValue([Value(), Value(among=among)])], closed=False) if among else Value()
    keys = [(wrapped(key), value) for key, value in table.pairs.items()]
    return ListValue([ListValue([key, value]) if pairs else key for key, value in keys])
