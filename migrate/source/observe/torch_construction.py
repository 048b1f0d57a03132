"""How the objects of a torch model were made: a log of what its source computes and calls."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import inspect
import itertools
import math
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from .observations import (
    CallableKind,
    Changes,
    Child,
    EnumMember,
    Items,
    Kind,
    Made,
    ObjectKind,
    Pairs,
    Record,
    Reference,
    SetNumber,
    Unknown,
    parts,
    to_json,
)
from .torch_values import (
    NUMBERS,
    PLAIN,
    Names,
    WithoutValues,
    array_of,
    as_imported,
    as_namespaces,
    attributes_of,
    by_attribute,
    configurations,
    copied,
    fields_of,
    is_apply_of_function,
    is_array,
    is_plain,
    is_setting,
    is_torch,
    looks_up_by_itself,
    noted,
    record_of,
    same_setting,
    settings_of,
    watched,
)

# packages, and a function, that make models by name, perhaps with trained weights
ZOOS = ("torchvision.models.", "timm.", "torch.hub.load")
# parameters of functions that may load trained weights: a model from such a function is described by its class
LOADS = {"pretrained", "weights"}
Creation = tuple[Any, Any, tuple[Any, ...], dict[str, Any]]  # an object (to keep it alive), what made it, its arguments
INITIALIZERS = "torch.nn.init."
IN_PLACE = {
    f"torch.Tensor.{name}_" for name in ("normal", "uniform", "zero", "fill", "copy", "mul", "div", "trunc_normal")
}
NAMESPACE = "types.SimpleNamespace"
NAMESPACES = {argparse.Namespace: "argparse.Namespace", types.SimpleNamespace: NAMESPACE}
ONE_EACH = "make one for each of them"
FEW = 4  # distinct constants that are reported for one expression
OFTEN = 1000  # values of an expression that are all described; after that, one in so many


class MakingCall(NamedTuple):
    """How a module was made: the call, and the counts of the log before and after it."""

    function: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    began: int
    ended: int


class Drawn(NamedTuple):
    """A call that drew weights of a module: the module is its first argument, or the call is the module's `apply`."""

    module: nn.Module
    function: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    applied: bool
    began: int
    ended: int


Compare = Callable[["ConstructionLog", nn.Module, MakingCall], tuple[Made | None, Changes]]


class ConstructionLog:
    """Collects what instrumented functions report: statements, values and calls, by the number of their site."""

    def __init__(self, compare: Compare) -> None:
        self.compare = compare  # finds what was changed in a module since it was made: see torch_changes_after_init.py
        self.hit: set[int] = set()
        self.times: Counter[int] = Counter()
        self.kinds: dict[int, dict[Kind, None]] = {}
        self.constants: dict[int, list[Any] | None] = {}
        self.called: dict[int, dict[str, None]] = {}
        self.changed: dict[int, dict[str, str]] = {}
        # objects by their id: how classes made them, and how functions built modules
        self.creations: dict[int, Creation] = {}
        self.built: dict[int, Creation] = {}
        self.begun: dict[int, int] = {}  # objects that classes made -> the count when that began
        self.ended: dict[int, int] = {}  # the same -> the count when that ended
        self.orders: dict[str, list[str]] = {}  # classes of modules that were made -> these and their bases
        self.handed: dict[int, int] = {}  # modules that functions built -> the count when the last of these ended
        self.numbers: dict[int, dict[str, Any]] = {}  # modules of the model -> their numbers before it ran
        # modules, and the count when they were made -> the attributes of their parts then, by path
        self.then: dict[tuple[int, int], dict[str, dict[str, Any]]] = {}
        self.states: dict[int, tuple[Any, dict[str, Any]]] = {}  # objects of settings -> these, when first passed on
        self.fresh: dict[int, dict[str, Any]] = {}  # the same -> these, when they were made
        # objects that classes made -> the objects of settings among their arguments -> what those held at that time
        self.given: dict[int, dict[int, dict[str, Any]]] = {}
        self.around: dict[int, dict[str, Any]] = {}  # those of the object that is being described
        self.settled: dict[int, dict[str, Any]] = {}  # objects of settings -> what they hold where they were described
        self.parents: dict[int, tuple[Any, str]] = {}  # modules -> what they were taken out of, and their name there
        self.looking = False  # whether a value is being described, which may run functions that report
        self.running = False  # whether the model is already built and runs
        self.records: dict[str, Record] = {}  # classes that forward uses to hold tensors
        self.drawings = 0  # calls that gave a tensor other values
        self.redrawn: dict[int, int] = {}  # memory of tensors -> the count when they last got other values
        self.drawn: list[Drawn] = []  # by functions, in modules that were made before
        self.outside: list[range] = []  # the sites in the user's own files
        self.zoo: dict[int, list[Any]] = {}  # calls of a model zoo there -> how their results are made
        # an autograd.Function -> its class, its arguments, and which of these were tensors of real numbers
        self.applied: dict[str, tuple[Any, tuple[Any, ...], list[bool]]] = {}
        self.describing: set[int] = set()  # objects whose construction is being described
        # the module whose parent is being described: as an argument of the parent it is described by its own call
        self.taking = 0
        self.tables: Mapping[tuple[str, str], dict[str, Any]] = {}  # by module and name, before the model ran
        self.looked_in: set[int] = set()  # dictionaries that were the value of an expression
        self.on_meta = False  # whether the model is built without values, although it could be built with them
        self.count: Iterator[int] = itertools.count()
        self.names = Names()

    def reached(self, number: int) -> None:
        """A statement is about to run."""
        if not self.looking:
            self.hit.add(number)

    def value(self, number: int, value: Any, most: int = FEW) -> Any:
        """An expression had this value, which is returned; in long loops one of many, and `most` constants."""
        if self.looking:
            return value
        self.times[number] += 1
        if self.times[number] > OFTEN and self.times[number] % OFTEN:
            return value
        self.looking = True
        try:
            self.kinds.setdefault(number, {}).setdefault(self.names.kind(value))
        finally:
            self.looking = False
        if isinstance(value, dict):
            self.looked_in.add(id(value))
        if isinstance(value, PLAIN):
            known = self.constants.setdefault(number, [])
            if known is not None and not any(
                value is one or (type(value) is type(one) and value == one) for one in known
            ):
                self.constants[number] = [*known, value] if len(known) < most else None
        return value

    def call(self, number: int, function: Any) -> Any:
        """This is about to be called; returns what to call instead, which for a class notes how the object is made."""
        if self.looking:
            return function
        name = self.names.name(function)
        self.called.setdefault(number, {}).setdefault(name)
        if is_apply_of_function(function):
            return functools.partial(self._applied, name.removesuffix(".apply"), function)
        if draws(name):
            self.drawings += 1
            return (
                watched(function, self.changed.setdefault(number, {}))
                if self.running
                else noting_values(self, function)
            )
        of_zoo = name.startswith(ZOOS) and isinstance(function, types.FunctionType) and not self.running
        of_zoo = of_zoo and (_loads(function) or name == ZOOS[-1])
        if of_zoo and any(number in sites for sites in self.outside):
            return functools.partial(self._from_zoo, number, function)
        if self.running and (isinstance(function, torch.nn.Module) or name.startswith("torch.nn.functional.")):
            return watched(function, self.changed.setdefault(number, {}))
        plain = isinstance(function, types.FunctionType) and not hasattr(function, "__wrapped__")
        builder = plain and not _loads(function)
        kind = isinstance(function, (type, functools.partial)) or is_apply(function)
        if not (builder or kind) or function in (type, object):
            return function

        def made(*args: Any, **kwargs: Any) -> Any:
            for one in () if self.running else (*args, *kwargs.values()):
                self._note_settings(one)
            began, before = next(self.count), (self.drawings, len(self.begun))
            given = (args, kwargs) if self.running else (as_given(args), as_given(kwargs))
            held = self._held((*args, *kwargs.values())) if kind and not self.running else {}
            found = function(*args, **kwargs)
            args, kwargs = given  # as they were: the function may change its lists and dictionaries
            note_drawn(self, function, args, kwargs, found, began, before)
            if is_apply(function):
                return found
            if not builder:
                if id(found) not in self.creations:  # what it held while it was made
                    self.states.pop(id(found), None)
                self.creations.setdefault(id(found), (found, function, args, kwargs))
                self.given.setdefault(id(found), held)
                self.begun.setdefault(id(found), began)
                self.ended.setdefault(id(found), next(self.count))
                if isinstance(found, torch.nn.Module):
                    self._note_attributes(found, self.ended[id(found)])
                    self.orders.setdefault(self.names.name(type(found)), self._bases(found))
                if self.running and isinstance(function, type):
                    self._note_record(function, found)
                elif (own := settings_of(found)) is not None:
                    self.fresh.setdefault(id(found), as_imported(dict(own)))
            elif isinstance(found, torch.nn.Module) and "<lambda>" not in self.names.name(function):  # the outermost
                self.built[id(found)] = (found, function, args, kwargs)
                self.handed[id(found)] = next(self.count)
                self._note_attributes(found, self.handed[id(found)])
            return found

        return made

    def drawn_at(self, parameter: torch.Tensor) -> int | None:
        """The count at which a parameter was last given other values; None where it was not."""
        return self.redrawn.get(_memory(parameter))

    def made(self, value: Any, *, root: bool = False) -> Any:
        """How to make a value again: a construction (see observations.py), or a constant itself.

        root: the value is the model itself, which is described by its class; a module inside is described by the
        function that builds it.
        """
        if isinstance(value, PLAIN) and not isinstance(value, Enum):  # an IntEnum's member is both
            return value
        if type(value) in (list, tuple) or type(value).__module__.startswith("omegaconf.list"):
            return Items("tuple" if isinstance(value, tuple) else "list", tuple(map(self.made, value)))
        if isinstance(value, Mapping) or by_attribute(value):
            entries = tuple((self.made(key), self.made(item)) for key, item in value.items())
            return looks_up_by_itself(value) or Pairs(entries)
        if isinstance(value, functools.partial):
            made = self.call_of("functools.partial", (value.func, *value.args), value.keywords)
            return replace(made, id=id(value))
        if isinstance(value, range):
            return Made("builtins.range", (value.start, value.stop, value.step))
        if isinstance(value, Enum):
            return EnumMember(self.names.name(type(value)), value.name)
        if is_array(value):
            return self._array(value)
        if isinstance(value, (torch.device, torch.dtype)):  # the device is the one of this process
            return str(value) if isinstance(value, torch.device) else Reference(str(value))
        if isinstance(value, types.ModuleType):  # a file of settings that is passed as an argument
            plain = {key: item for key, item in vars(value).items() if isinstance(item, PLAIN) and key[:1] != "_"}
            return replace(self.call_of(NAMESPACE, (), plain), id=id(value))
        if isinstance(value, types.LambdaType) and value.__name__ == "<lambda>":
            return Unknown("lambda", "hand over a function that has a name at its file's top")
        if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
            return self._with_variables(value, Reference(self.names.name(value)))
        if id(value) in self.describing and self.taking != id(value):
            return Unknown(f"{self.names.kind(value)} that is an argument of its own argument")
        before = set(self.describing)
        self.describing.add(id(value))
        try:
            if self._unsteady(value):
                return Unknown(f"{self.names.kind(value)} that is changed between the calls", ONE_EACH)
            if type(value) in NAMESPACES:
                return replace(self.call_of(NAMESPACES[type(value)], (), self._settings(value)), id=id(value))
            return self._made_by_call(value, root=root)
        finally:
            self.describing = before

    def _with_variables(self, function: Any, itself: Reference) -> Any:
        """A function; one that was made in another with those variables of that which it reads."""
        read = inspect.getclosurevars(function).nonlocals if isinstance(function, types.FunctionType) else {}
        if "<locals>" not in itself.name or not read or any(value is function for value in read.values()):
            return itself
        words = tuple((key, self.made(value)) for key, value in sorted(read.items()))
        return Made("functools.partial", (itself,), words, id=id(function))

    def _array(self, value: Any) -> Any:
        if isinstance(value, np.generic) and isinstance(value.item(), int):  # an item of an array of sizes
            return value.item()
        try:
            return array_of(value)
        except WithoutValues:
            if self.on_meta:
                raise
            return Unknown(f"{self.names.kind(value)}, a weight or a buffer of a module")

    def _made_by_call(self, value: Any, *, root: bool) -> Any:
        if id(value) in self.parents and not root and self.taking != id(value):
            parent, name = self.parents[id(value)]
            before, self.taking = self.taking, id(value)
            owner = self.made(parent)
            self.taking = before
            if not _unknown(owner):
                return Child(name, owner)
        given: dict[str, Unknown] = {}
        for creation in (None if root else self.built.get(id(value)), self.creations.get(id(value))):
            if creation is not None:
                _, maker, args, kwargs = creation
                if isinstance(maker, functools.partial):
                    args, kwargs = (*maker.args, *args), {**maker.keywords, **kwargs}
                function = maker.func if isinstance(maker, functools.partial) else maker
                kwargs = _with_configurations(value, kwargs)
                around = self.around
                self.around = (
                    {**around, **self.given.get(id(value), {})} if creation is self.creations.get(id(value)) else {}
                )
                made = self.call_of(self.names.name(function), args, kwargs)
                self.around = around
                if not _unknown(made):
                    instead, changed = self._changed(value, creation)
                    return replace(instead or made, id=id(value), changes=None if changed == Changes() else changed)
                given |= {one.what: one for one in unknowns(made)}
        fields = fields_of(value)
        if fields is not None:  # made while its file was imported
            return replace(self.call_of(self.names.name(type(value)), (), fields), id=id(value))
        of = f", whose arguments include {' and '.join(given)}," if given else ""
        unknown = Unknown(f"{self.names.kind(value)}{of}")
        return next((replace(unknown, instead=one.instead) for one in given.values()), unknown)

    def _applied(self, name: str, apply: Any, *args: Any) -> Any:
        """The result of an autograd.Function; its arguments are noted at the first call, and at each whether they are
        tensors of real numbers."""
        *_, floating = self.applied.setdefault(name, (apply.__self__, args, [False] * len(args)))
        real = [isinstance(x, torch.Tensor) and x.is_floating_point() for x in args]
        floating[:] = [any(pair) for pair in itertools.zip_longest(floating, real, fillvalue=False)]
        return apply(*args)

    def _from_zoo(self, number: int, function: Any, *args: Any, **kwargs: Any) -> Any:
        """The result of a model zoo's function; notes how the model is made, by its class, in its present state."""
        found = function(*args, **kwargs)
        if isinstance(found, torch.nn.Module):
            before, self.numbers = self.numbers, noted(found)
            self.zoo.setdefault(number, []).append(self.made(found, root=True))
            self.numbers = before
        return found

    def _note_settings(self, value: Any) -> None:
        """Note what an object of settings holds before it is passed on, since the function may change it."""
        held = settings_of(value)
        if held is not None and id(value) not in self.states:
            self.states[id(value)] = (value, as_imported(dict(held)))
            for item in held.values():
                self._note_settings(item)

    def _note_attributes(self, module: nn.Module, count: int) -> None:
        """Note what the parts of a module hold when it has been made."""
        if not self.running:
            self.then[id(module), count] = {path: attributes_of(part) for path, part in module.named_modules()}

    def _held(self, values: Iterable[Any]) -> dict[int, dict[str, Any]]:
        """What objects of settings hold now, by their ids, also those inside of others."""
        found: dict[int, dict[str, Any]] = {}
        for value in values:
            if id(value) not in found and (held := settings_of(value)) is not None:
                found[id(value)] = as_imported(dict(held))
                found |= self._held(held.values())
        return found

    def _unsteady(self, value: Any) -> bool:
        """Whether an object of settings held something else where it was described before."""
        now = self.around.get(id(value))
        return now is not None and self.settled.setdefault(id(value), now) != now

    def _settings(self, value: Any) -> dict[str, Any]:
        if id(value) in self.around:
            return self.around[id(value)]
        return self.states[id(value)][1] if id(value) in self.states else dict(vars(value))

    def _note_record(self, cls: type, made: Any) -> None:
        """Note a named tuple or a dataclass that holds tensors."""
        record = record_of(cls)
        if record is not None and any(
            isinstance(leaf, torch.Tensor) for name in record.fields for leaf in tree_leaves(getattr(made, name, None))
        ):
            known = self.records.setdefault(self.names.name(cls), record)
            if issubclass(cls, dict):  # transformers' outputs leave out what is None
                here = [name for name in record.fields if getattr(made, name, None) is not None]
                present = tuple(dict.fromkeys([*(known.present or ()), *here]))
                self.records[self.names.name(cls)] = replace(known, present=present)

    def _changed(self, value: Any, creation: Creation) -> tuple[Made | None, Changes]:
        """How to make a layer with its present settings, if that is known, and what was changed in a module later."""
        if (id(value) in self.states or id(value) in self.around) and id(value) in self.fresh:
            fresh, now = self.fresh[id(value)], self._settings(value)
            other = {k: v for k, v in now.items() if k not in fresh or not same_setting(v, fresh[k])}
            return None, Changes(numbers=tuple(SetNumber((), key, self.made(item)) for key, item in other.items()))
        if not isinstance(value, torch.nn.Module) or id(value) not in self.ended:
            return None, Changes()
        _, maker, args, kwargs = creation
        ended = self.handed[id(value)] if creation is self.built.get(id(value)) else self.ended[id(value)]
        return self.compare(self, value, MakingCall(maker, args, kwargs, self.begun[id(value)], ended))

    def call_of(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Made:
        """A call with its arguments."""
        words = tuple((key, self.made(item)) for key, item in kwargs.items())
        return Made(name, tuple(map(self.made, args)), words)

    def imported(self, module: str) -> dict[str, str]:
        """The names in a module that stand for classes and functions defined elsewhere -> their full names there."""
        found = {}
        for name, value in vars(sys.modules[module]).items():
            if isinstance(value, (type, types.FunctionType)) and value.__module__ not in (module, "builtins", "typing"):
                stands = self.names.name(value)
                if stands.partition(".")[0] not in ("torch", "typing"):
                    found[name] = stands
            elif isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] == "torch":
                found[name] = value.__name__  # `from .others import *` may have imported it
        return found

    def constants_of(self, module: str) -> dict[str, Any]:
        """The numbers, strings and objects of settings of a file and its classes, as they are after the run."""
        held = {key: value for key, value in vars(sys.modules[module]).items() if not (key[:2] == key[-2:] == "__")}
        for cls in [one for one in held.values() if isinstance(one, type) and one.__module__ == module]:
            held |= {f"{cls.__name__}.{key}": item for key, item in vars(cls).items() if key[:2] != "__"}
        made = {key: self.made(one) for key, one in held.items() if is_setting(one) and not isinstance(one, type)}
        made |= {key: self.made(as_namespaces(held[key])) for key, one in made.items() if _unknown(one)}
        return {key: to_json(value) for key, value in made.items() if not _unknown(value)}

    def registers(self, module: str) -> dict[str, dict[str, Any]]:
        """The entries of a file's dictionaries that hold only classes and functions, or were the value of an
        expression, as before the model ran: any file may have added entries."""
        tables = {key: value for key, value in vars(sys.modules[module]).items() if is_table(value)}
        kinds = (type, types.FunctionType, types.BuiltinFunctionType)
        found: dict[str, dict[str, Any]] = {}
        for name, now in tables.items():
            first = self.tables.get((module, name)) if id(now) in self.looked_in else None
            if first is not None or all(isinstance(item, kinds) for item in now.values()):
                made = {key: self.made(item) for key, item in (first or now).items()}
                found[name] = {key: to_json(item) for key, item in made.items() if not _unknown(item)}
        return found

    def classes(self, model: torch.nn.Module) -> dict[str, list[str]]:
        """Every module's path -> its class and the class's bases."""
        return {path: self._bases(module) for path, module in model.named_modules(remove_duplicate=False)}

    def _bases(self, module: torch.nn.Module) -> list[str]:
        return [self.names.name(base) for base in type(module).__mro__]

    def definitions_seen(self) -> set[str]:
        """The names of the classes and functions that were called, or were the value of an expression."""
        kinds = {kind for seen in self.kinds.values() for kind in seen}
        called = {name for seen in self.called.values() for name in seen}
        named = {kind.name for kind in kinds if isinstance(kind, CallableKind) and kind.what != "partial"}
        return called | named | {kind.cls for kind in kinds if isinstance(kind, ObjectKind)}

    def as_json(self) -> dict[str, Any]:
        """The log, as the JSON report has it."""
        return {
            "reached": sorted(self.hit),
            "values": {number: [*map(to_json, kinds)] for number, kinds in self.kinds.items()},
            "constants": self.constants,
            "records": {name: to_json(record) for name, record in self.records.items()},
            "configurations": {
                name: to_json(one) for name, one in configurations(self.names, self.records, self.made).items()
            },
            "zoo": {number: [*map(to_json, made)] for number, made in self.zoo.items()},
            "calls": {number: list(names) for number, names in self.called.items()},
            "changed": {number: how for number, how in self.changed.items() if how},
        }


def as_given(value: Any) -> Any:
    """Copies of lists, tuples, dictionaries and small arrays, with the same other objects in them."""
    if is_array(value) and math.prod(value.shape) <= NUMBERS:
        return value.clone() if isinstance(value, torch.Tensor) else value.copy()
    if type(value) in (list, tuple):
        return type(value)(map(as_given, value))
    if by_attribute(value) and is_plain(value):
        return copied(value)
    return {key: as_given(item) for key, item in value.items()} if type(value) is dict else value


def is_table(value: Any) -> bool:
    """Whether it is a dictionary that is not empty and whose keys are strings."""
    return isinstance(value, dict) and bool(value) and all(isinstance(key, str) for key in value)


def _with_configurations(value: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a dataclass, with the configurations that it made from dictionaries instead of these."""
    held = vars(value) if dataclasses.is_dataclass(value) else {}
    made = {key: held[key] for key, item in kwargs.items() if isinstance(item, Mapping) and key in held}
    return {**kwargs, **{key: item for key, item in made.items() if dataclasses.is_dataclass(item)}}


def draws(name: str) -> bool:
    """Whether a function of torch gives a tensor other values."""
    return name.startswith(INITIALIZERS) or name in IN_PLACE


def note_drawn(
    log: ConstructionLog,
    function: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    found: Any,
    began: int,
    before: tuple[int, int],
) -> None:
    """Note a finished call if it drew weights of a module, and neither made an object nor returned anything else.

    began: the log's count before it. before: how many drawings and objects there were before it.
    """
    applied = is_apply(function)
    owner = function.__self__ if applied else next(iter(args), None)
    plain = isinstance(owner, nn.Module) and (applied or isinstance(function, types.FunctionType))
    nothing_else = (found is None or found is owner) and len(log.begun) == before[1] and not log.running
    if plain and nothing_else and log.drawings > before[0]:
        one = Drawn(owner, function, args, kwargs, applied, began, next(log.count))
        log.drawn.append(one)


def is_apply(function: Any) -> bool:
    """Whether it is a module's `apply`."""
    return isinstance(function, types.MethodType) and function.__func__ is torch.nn.Module.apply


def _loads(function: Any) -> bool:
    """Whether a function also loads trained weights, which is more than a model needs."""
    try:
        return bool(LOADS & {*inspect.signature(function).parameters})
    except (TypeError, ValueError):
        return False


def _unknown(made: Any) -> bool:
    """Whether something in a construction is unknown."""
    return isinstance(made, Unknown) or any(map(_unknown, parts(made)))


def unknowns(made: Any) -> Iterator[Unknown]:
    """The unknown parts of a construction."""
    if isinstance(made, Unknown):
        yield made
    for part in parts(made):
        yield from unknowns(part)


def taken_out(log: ConstructionLog, model: nn.Module) -> bool:
    """Find children of modules that are not part of the model; returns whether the model has parts of theirs."""
    inside = {id(module) for module in model.modules()}
    shared = False
    for module, *_ in log.creations.values():
        if isinstance(module, nn.Module) and id(module) not in inside and not is_torch(type(module)):
            for owner, name, child in _parts(module):
                parts = {id(part) for part in child.modules()}
                if id(model) not in parts and _has_values_of(log, child, module):
                    log.parents.setdefault(id(child), (owner, name))
                    shared |= bool(parts & inside)
    return shared


def noting_values(log: ConstructionLog, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which gives a tensor other values, and now also notes which tensor and when."""

    def drawn(*args: Any, **kwargs: Any) -> Any:
        given = (getattr(function, "__self__", None), *args, *kwargs.values())
        tensor = next((one for one in given if isinstance(one, torch.Tensor)), None)
        if tensor is not None and tensor.layout is torch.strided:  # a sparse one has no memory of its own
            log.redrawn[_memory(tensor)] = next(log.count)
        return function(*args, **kwargs)

    return drawn


def _parts(module: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module]]:
    """Every (owner, name, child) inside a module."""
    yield from ((owner, name, child) for owner in module.modules() for name, child in owner.named_children())


def _has_values_of(log: ConstructionLog, child: nn.Module, module: nn.Module) -> bool:
    """Whether a child was made within the module's constructor, or passed to it and then drawn again."""
    began, ended = log.begun[id(module)], log.ended[id(module)]
    drawn = (log.redrawn.get(_memory(parameter), -1) for parameter in child.parameters())
    return log.begun.get(id(child), -1) > began or any(began < when < ended for when in drawn)


def _memory(tensor: torch.Tensor) -> int:
    """An identity that a tensor shares with its `data`, also on the meta device, where no tensor has an address."""
    return int(tensor.untyped_storage()._cdata)
