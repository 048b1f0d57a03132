"""The kind of a value, the name under which an object is documented; records and configurations."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import sys
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ....mappings import table
from ....mappings.aliases import public
from ....mappings.rows import resolve
from ...library_names import INSTALLED, ROWS_FIRST
from ...torch_models import PYTHONS
from .observations import (
    Array,
    CallableKind,
    Configuration,
    DictKind,
    DtypeKind,
    Kind,
    ModuleKind,
    ObjectKind,
    PlainKind,
    PythonModule,
    Record,
    SequenceKind,
    SizeKind,
    TensorKind,
    Unknown,
)
from .torch_simplified_transformers import simplified_names

PLAIN = (bool, int, float, str, type(None))
LONG = 60  # items of a list whose kinds are reported
MANY = 20  # keys of a dictionary that are reported
DICTIONARIES = (dict, OrderedDict, defaultdict)  # without classes that derive from these
NUMBERS = 1024  # most elements of an array that is written into a file
READ = "read them in the __init__ of a class around it, self.net = Net(torch.from_numpy(np.load(path)))"
DEEP = 2  # levels of a list that are reported
KEYED = ("items", "__getitem__", "__len__")  # methods of what holds values by keys
SIMPLIFIED = simplified_names()


PYBIND = "pybind11_"  # what the qualified names of functions in C++ begin with: the name of their record


class Names:
    """The kinds of values, and the names of classes and functions.

    configured: the objects of dataclasses that were seen, by id.
    """

    def __init__(self) -> None:
        self.documented = documented_names()
        self.configured: dict[int, Any] = {}

    def kind(self, value: Any, deep: int = DEEP) -> Kind:
        """The kind of a value; deep: the number of levels of its items that are described."""
        if isinstance(value, torch.Tensor):
            dtype = str(value.dtype).removeprefix("torch.")
            return TensorKind(dtype, value.dim(), isinstance(value, torch.nn.Parameter))
        if isinstance(value, torch.nn.Module):
            return ModuleKind(self.name(plain_class(value)))
        if isinstance(value, type):
            return CallableKind("class", self.name(value))
        if isinstance(value, types.ModuleType):
            return PythonModule(value.__name__)
        if isinstance(value, functools.partial):
            return CallableKind("partial", self.name(value.func))
        if isinstance(value, torch.Size):
            return SizeKind(len(value))
        if isinstance(value, (list, tuple)):
            some = value if len(value) <= LONG else (*value[: LONG - 10], *value[-10:])
            inside = dict.fromkeys(self.kind(item, deep - 1) for item in some) if deep else {}
            return SequenceKind(type(value).__name__, tuple(inside))
        if (type(value) in DICTIONARIES or by_attribute(value)) and all(isinstance(key, str) for key in value):
            entries = value.items() if deep and len(value) <= MANY else ()
            return DictKind(tuple((key, self.kind(item, deep - 1)) for key, item in entries))
        if isinstance(value, torch.dtype):
            return DtypeKind()
        if callable(value) and hasattr(value, "__name__"):
            return CallableKind("function", self.name(value))
        if isinstance(value, PLAIN):
            return PlainKind(type(value).__name__)
        if dataclasses.is_dataclass(value):
            self.configured.setdefault(id(value), value)
        return ObjectKind(self.name(type(value)))

    def name(self, value: Any) -> str:
        """The name under which a class or function is documented, or else its module and qualified name."""
        if isinstance(value, functools.partial):
            return f"partial {self.name(value.func)}"
        known = self.documented.get(id(value))
        if known:
            return known[1]
        own = standing(value)
        if own in ROWS_FIRST:
            return ROWS_FIRST[own]
        owner = getattr(value, "__self__", None)
        if is_apply_of_function(value):
            return f"{self.name(owner)}.apply"
        if getattr(value, "__qualname__", "").startswith(PYBIND):
            return public(own)
        if owner is not None and not isinstance(owner, (types.ModuleType, type)):
            if isinstance(owner, torch.Tensor):
                return f"torch.Tensor.{value.__name__}"
            kind, name = defining(type(owner), value)
            return public(f"{self.name(kind)}.{name}")
        if isinstance(value, torch.nn.Module):
            return f"module {self.name(plain_class(value))}"
        if not hasattr(value, "__qualname__"):
            return f"object {self.name(type(value))}"
        return public(own if getattr(value, "__module__", None) else f"builtins.{value.__qualname__}")


def plain_class(module: torch.nn.Module) -> type:
    """The class of a module, as it was before a parametrization gave it one of its own."""
    cls = type(module)
    return cls.__bases__[0] if cls.__module__ == "torch.nn.utils.parametrize" else cls


def is_apply_of_function(value: Any) -> bool:
    """Whether it is the `apply` of an autograd.Function."""
    owner = getattr(value, "__self__", None)
    functions = torch.autograd.Function
    return isinstance(owner, type) and issubclass(owner, functions) and getattr(value, "__name__", "") == "apply"


LOOKUPS = {"__contains__", "__getitem__", "__iter__", "__len__", "__missing__", "get", "items", "keys", "values"}


def looks_up_by_itself(value: Any) -> Unknown | None:
    """What is said of a dictionary of a user's class that finds or counts its entries in its own way; None for any
    other: a plain dictionary stands for it."""
    for cls in type(value).__mro__ if isinstance(value, dict) else ():
        own, file = sorted(LOOKUPS & {*vars(cls)}), getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
        if own and cls is not dict and file and not INSTALLED & {*Path(file).parts} and not file.startswith(PYTHONS):
            return Unknown(f"a {cls.__name__}, a dictionary with its own {own[0]}", "use a plain dictionary")
    return None


def by_attribute(value: Any) -> bool:
    """Whether it is a dictionary whose entries are also its attributes, as EasyDict, OmegaConf and ml_collections."""
    if isinstance(value, (torch.nn.Module, type)) or type(value) in DICTIONARIES or dataclasses.is_dataclass(value):
        return False
    if not isinstance(value, Mapping) and not all(hasattr(type(value), name) for name in KEYED):
        return False
    try:
        names = [key for key in value if isinstance(key, str) and key.isidentifier() and key not in dir(dict)]
        return bool(names) and all(getattr(value, name, None) is value[name] for name in names)
    except Exception:  # a user's object that is only half made
        return False


def copied(value: Any) -> Any:
    """A copy of settings, and of those in them; also of a class whose `__getattr__` is `dict.__getitem__`, where Python
    asks for `__deepcopy__` and gets a KeyError."""
    try:
        return copy.deepcopy(value)
    except Exception:
        if not isinstance(value, dict):
            return value
        made = type(value).__new__(type(value))
        dict.update(made, {key: copied(item) for key, item in value.items()})
        return made


def settings_of(value: Any, inside: frozenset[int] = frozenset()) -> dict[str, Any] | None:
    """The attributes of an object that only holds settings; None for one that computes, or holds anything else.

    inside: the ids of what it is part of; what leads to itself, as a logger does, holds more than settings.
    """
    if callable(value):  # reading the attributes of a partial would keep Python from flattening nested partials
        return None
    held = getattr(value, "__dict__", None)
    if (
        not isinstance(held, dict)
        or isinstance(value, (torch.Tensor, types.ModuleType, Mapping))
        or by_attribute(value)
    ):
        return None
    if is_torch(type(value)) or not all(is_setting(item, inside | {id(value)}) for item in held.values()):
        return None
    return held


def is_setting(value: Any, inside: frozenset[int] = frozenset()) -> bool:
    """Whether a value can be written in a call: a number, a string, a class, a container of such, or an object of
    settings; inside: the ids of what it is part of."""
    if id(value) in inside:
        return False
    deeper = inside | {id(value)}
    if isinstance(value, (list, tuple)):
        return len(value) <= LONG and all(is_setting(item, deeper) for item in value)
    if isinstance(value, dict):
        return all(is_setting(item, deeper) for pair in value.items() for item in pair)
    return isinstance(value, (*PLAIN, type, Enum)) or settings_of(value, inside) is not None


def as_namespaces(value: Any, inside: frozenset[int] = frozenset()) -> Any:
    """An object of settings, of a class of the user's own, as a namespace of its attributes and its class's, and so the
    objects in it; anything else as it is. inside: the ids of what it is part of."""
    if isinstance(value, (*PLAIN, type, Enum)) or id(value) in inside or (held := settings_of(value)) is None:
        return value
    deeper = inside | {id(value)}
    of_class = {key: one for base in reversed(type(value).__mro__[:-1]) for key, one in vars(base).items()}
    shown = {key: getattr(value, key) for key, one in of_class.items() if key[:1] != "_" and is_setting(one)}
    return types.SimpleNamespace(**{key: as_namespaces(one, deeper) for key, one in {**shown, **held}.items()})


class WithoutValues(Exception):
    """The values of a tensor on the meta device are needed."""


def is_array(value: Any) -> bool:
    """Whether it is an array, or a constant tensor, which neither is trained nor was computed from trained ones."""
    plain = type(value) is torch.Tensor and value.layout is torch.strided and not value.requires_grad
    return plain or type(value) is np.ndarray or isinstance(value, np.generic)


def array_of(value: Any) -> Array | Unknown:
    """The numbers of such an array, where they are few; raises WithoutValues for a tensor that has none."""
    of: Any = "torch" if isinstance(value, torch.Tensor) else "numpy"
    dtype, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
    size = " x ".join(map(str, shape)) or "one"
    if math.prod(shape) > NUMBERS:
        return Unknown(f"{size} {dtype} numbers, more than the {NUMBERS} that can be written into a file", READ)
    if isinstance(value, torch.Tensor):
        if value.is_meta:
            raise WithoutValues
        with suppress(TypeError, RuntimeError):  # NumPy has no quantized numbers
            value = (value.float() if dtype == "bfloat16" else value).cpu().numpy()
    elif value.dtype.kind in "biuf":
        dtype = value.dtype.name  # without the byte order
    if isinstance(value, torch.Tensor) or value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        return Unknown(f"array of {dtype}")
    short = value.dtype.itemsize < 8 and value.dtype.kind == "f"  # float32's 0.1 is written as 0.1
    numbers = [float(str(one)) for one in value.ravel()] if short else value.ravel().tolist()
    for length in reversed(shape[1:] if numbers else ()):
        numbers = [tuple(numbers[at : at + length]) for at in range(0, len(numbers), length)]
    return Array(of, dtype, shape, tuple(numbers) if shape else numbers[0])


def same_setting(one: Any, other: Any) -> bool:
    """Whether an attribute has kept its value."""
    return one is other or (type(one) is type(other) and isinstance(one, (*PLAIN, list, tuple, dict)) and one == other)


def as_imported(value: Any, deep: int = 5) -> Any:
    """Copies of lists, tuples and dictionaries, `deep` levels deep."""
    if not deep or type(value) not in (list, tuple, *DICTIONARIES):
        return value
    if isinstance(value, dict):
        return {key: as_imported(item, deep - 1) for key, item in value.items()}
    return type(value)(as_imported(item, deep - 1) for item in value)


def noted(model: torch.nn.Module) -> dict[int, dict[str, Any]]:
    """The attributes of each module of a new model, before it runs."""
    return {id(part): attributes_of(part) for part in model.modules()}


def attributes_of(module: torch.nn.Module) -> dict[str, Any]:
    """A module's own attributes, without those of torch; lists and dictionaries are copied."""
    return {key: as_imported(value) for key, value in vars(module).items() if key != "training" and key[:1] != "_"}


def is_number(value: Any) -> bool:
    """Whether it is a number, a string, or a tuple of these."""
    return all(isinstance(item, PLAIN[:4]) for item in (value if isinstance(value, tuple) else (value,)))


def is_plain(value: Any) -> bool:
    """Whether it is a number, a string or None, or consists of these."""
    if isinstance(value, dict) or by_attribute(value):
        return all(is_plain(item) for pair in value.items() for item in pair)
    return isinstance(value, PLAIN) or (type(value) in (list, tuple) and all(map(is_plain, value)))


def module_name(module: str) -> str:
    """The longest of the names under which a module's file was imported: one in a folder of a package that has no
    `__init__.py` may be imported from that folder, and from the one above it, and then all that is in it exists twice.
    """
    return _imported_twice(len(sys.modules)).get(module, module)


@functools.lru_cache(1)
def _imported_twice(_: int) -> dict[str, str]:
    names: dict[str, dict[int, str]] = {}
    for name, module in list(sys.modules.items()):
        if file := getattr(module, "__dict__", {}).get("__file__"):
            names.setdefault(file, {}).setdefault(id(module), name)  # os.path is posixpath, and not a second module
    twice = [list(same.values()) for same in names.values() if len(same) > 1]
    return {name: max(same, key=len) for same in twice for name in same}


def standing(found: Any) -> str:
    """Module and qualified name; for a function made in another, the name that its file's top gives it, if any."""
    module, name = getattr(found, "__module__", ""), getattr(found, "__qualname__", "")
    if name.startswith(PYBIND):
        return f"{module}.{found.__name__}"
    if "<locals>" in name:
        top = vars(sys.modules[module]) if module in sys.modules else {}
        name = next((key for key, value in top.items() if value is found), name)
    stands = f"{module_name(module)}.{name}"
    return SIMPLIFIED.get(stands, stands)


def is_torch(cls: type) -> bool:
    """Whether a class is torch's own."""
    return cls.__module__.partition(".")[0] == "torch"


def defining(cls: type, method: Any) -> tuple[type, str]:
    """The base class that defines a bound method, which `super()` may have found, and the method's name there, which a
    decorator's function may not have."""
    function, name = getattr(method, "__func__", None), method.__name__
    if function is not None:
        for base in cls.__mro__:
            if vars(base).get(name) is function:
                return base, name
        for base in cls.__mro__:
            for key, value in vars(base).items():
                if value is function:
                    return base, key
    return next((base for base in cls.__mro__ if name in vars(base)), cls), name


@functools.cache  # the whole table takes a fifth of a second
def documented_names() -> dict[int, tuple[Any, str]]:
    """The objects that the mapping table names, with the name of their row, or an alias."""
    found: dict[int, tuple[Any, str]] = {}
    for row in table.rows():
        for name in (row.torch, *row.aliases):
            if name.startswith(("torch.", "operator.")):  # other packages' source is translated
                try:
                    thing = resolve(name)
                except Exception:  # this version of torch does not have it
                    continue
                found.setdefault(id(thing), (thing, name))
    for name, thing in vars(torch.nn).items():
        if isinstance(thing, type):
            found.setdefault(id(thing), (thing, f"torch.nn.{name}"))
    return found


def record_of(cls: Any) -> Record | None:
    """The fields of a named tuple's class or a dataclass, in order, and their plain defaults; None for others."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        names, defaults = cls._fields, cls._field_defaults.items()
    elif dataclasses.is_dataclass(cls):
        fields = [field for field in dataclasses.fields(cls) if field.init]
        names, defaults = (field.name for field in fields), [(field.name, field.default) for field in fields]
    else:
        return None
    plain = tuple((name, default) for name, default in defaults if isinstance(default, PLAIN))
    return Record(dataclasses.is_dataclass(cls), tuple(names), plain)


def fields_of(value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass's or named tuple's object, without those at their default; None for anything else."""
    record = record_of(type(value))
    if record is None:
        return None
    plain, found = dict(record.defaults), ((name, getattr(value, name)) for name in record.fields)
    return {k: v for k, v in found if k not in plain or type(v) is not type(plain[k]) or v != plain[k]}


def configurations(names: Names, records: Container[str], made: Callable[[Any], Any]) -> dict[str, Configuration]:
    """By class: the defaults of its fields, the values that all its seen objects share, and other names of fields.

    records: classes that are records, not configurations. made: gives how to make a value again.
    """
    found: dict[str, Configuration] = {}
    for value in list(names.configured.values()):
        name = names.name(type(value))
        if name in records or not _takes_its_fields(type(value)):
            continue
        fields = {field.name: _default(field) for field in dataclasses.fields(value) if field.init}
        defaults = tuple((key, made(item)) for key, item in fields.items() if item is not dataclasses.MISSING)
        attributes = {key: vars(value)[key] for key in (*fields, *vars(value)) if key in vars(value)}
        bases = (vars(base).items() for base in type(value).__mro__)
        of_class = [(k, v) for own in bases for k, v in own if isinstance(v, PLAIN) and not k.startswith("__")]
        attributes = {**attributes, **{key: item for key, item in reversed(of_class) if key not in attributes}}
        values = [(key, made(item)) for key, item in attributes.items() if _can_be_written(item)]
        before = found[name].values if name in found else values
        same = tuple(pair for pair in before if pair in values)
        found[name] = Configuration(defaults, same, tuple(_aliases(type(value)).items()))
    return found


def _takes_its_fields(cls: type) -> bool:
    """Whether a class is made from its fields, and by no `__init__` of its own, as torchvision's MBConvConfig is."""
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    parameters = vars(owner).get("__dataclass_params__")
    return parameters is not None and parameters.init


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _can_be_written(value: Any) -> bool:
    """Whether a value can be written: a number, a string, a container of such, or another configuration."""
    if isinstance(value, (list, tuple)):
        return all(map(_can_be_written, value))
    if isinstance(value, dict):
        return all(_can_be_written(item) for pair in value.items() for item in pair)
    return value is None or isinstance(value, (bool, int, float, str)) or dataclasses.is_dataclass(value)


def _aliases(cls: type) -> dict[str, str]:
    """Other names of fields, from the `attribute_map` of transformers' configurations."""
    names = getattr(cls, "attribute_map", None)
    return dict(names) if isinstance(names, dict) and all(isinstance(name, str) for name in names.values()) else {}


AT_ONCE = (torch.nn.ReLU, torch.nn.ReLU6, torch.nn.Hardtanh, torch.nn.Threshold)  # done twice, they are done once


def watched(function: Callable[..., Any], changed: dict[str, str]) -> Callable[..., Any]:
    """A layer or function that notes which of its arguments, by place or name, are tensors that it changes; how."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = {**{str(place): one for place, one in enumerate(args)}, **kwargs}
        before = {key: one._version for key, one in given.items() if isinstance(one, torch.Tensor)}
        found = function(*args, **kwargs)
        for key, version in before.items():
            if given[key]._version != version:
                how = changes_in_place(function)
                changed[key] = how if changed.get(key, how) == how else ""
        return found

    return call


def changes_in_place(function: Callable[..., Any]) -> str:
    """How what changes an argument does it: `itself`; `again`, by the first layer of a Sequential, which changes
    nothing the second time; `rest`, by such a layer that does; empty where that is not known."""
    if not isinstance(function, torch.nn.Module) or getattr(function, "inplace", False) is True:
        return "itself"
    plain = isinstance(function, torch.nn.Sequential) and type(function).forward is torch.nn.Sequential.forward
    first = next(iter(function.children()), None) if plain else None
    if getattr(first, "inplace", False) is not True:
        return ""
    return "again" if isinstance(first, AT_ONCE) else "rest"
