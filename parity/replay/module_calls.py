"""The inputs and outputs of torch's modules: the folder replay/; which calls did not run alone, and why.

    replay.json       the module tree, and every call of a module in the order in which the calls began
    DIGEST.npy        one tensor each, named for its content, so that what several modules share is stored once

A call's arguments and output keep their nesting (tuples, lists, dicts) and their constants; a tensor in them is named
by its file. Anyone may have written the folder: it is checked as it is read, and nothing in it is ever executed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import BadTrace
from ...input_files import open_regular, read_json, typed
from ...printable import quoted
from ...training.data.array_files import read_npy
from ...training.models.model_names import flat
from ..options import MODEL, Stage
from ..trace import Trace

FOLDER = "replay"
FILE = "replay.json"
FORMAT = 2


Computed = tuple[Stage, str, np.ndarray]  # one result of a call: stage, tensor name and value
Wired = tuple[Stage, str, str, np.ndarray]  # of a container's wiring: stage, label of the call, tensor name and value


@dataclass(frozen=True)
class Module:
    """One module of torch's tree: dotted name, class name, its children's dotted names, and the names of the
    parameters that train and of the buffers that it and the modules in it hold, relative to it. used: the parameters
    that its own code computes with, not counting the modules in it; None for one that it does not hold."""

    path: str
    kind: str
    children: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    used: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class Call:
    """One call of a module: its number (from 0), the label of the call in which it happened (None: the step's own), the
    arguments, the output, and for each tensor of `flat(output)` the gradient that came back to it. strays: for a
    container, why its wiring cannot be judged: with handed-on outputs torch itself does something else."""

    path: str
    number: int
    caller: str | None
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    output: Value
    gradients: tuple[Stored | None, ...] = ()
    strays: str = ""

    @property
    def label(self) -> str:
        """The prefix of its entries' names."""
        return label(self.path, self.number)

    @property
    def inputs(self) -> list[Stored]:
        """Every tensor of the arguments, each once, in the order of the call."""
        return list({stored.file: stored for stored in flat((self.args, self.kwargs), Stored)}.values())

    @property
    def gives_back(self) -> bool:
        """Whether its output is its only input, to the bit, as an Identity's is."""
        return type(self.output) is Stored and [self.output.file] == [each.file for each in self.inputs]

    @property
    def is_plain(self) -> bool:
        """Whether its inputs and outputs are all tensors and constants, which can be handed on in its place."""
        return not flat((self.args, self.kwargs, self.output), (Packed, Unsupported))

    @property
    def unsupported(self) -> str:
        """The class of an argument that cannot be recorded, or nothing."""
        return next((each.what for each in flat((self.args, self.kwargs), Unsupported)), "")


def label(path: str, number: int) -> str:
    """`layer1.0.relu#2`: the module's dotted name, and which of its calls when it is not the first."""
    return f"{path or MODEL}#{number}" if number else path or MODEL


def parse_label(text: str) -> tuple[str, int]:
    """The dotted name and call number that `label` wrote."""
    path, _, number = text.partition("#")
    return "" if path == MODEL else path, int(number) if number.isdecimal() else 0


def state_name(entry: str) -> str:
    """The state_dict name in an entry's name such as `layer1.0.bn1#2 running_mean`."""
    called, _, tensor = entry.rpartition(" ")
    path = parse_label(called)[0]
    return f"{path}.{tensor}" if path else tensor


def tensor_name(kind: str, position: int) -> str:
    """`output`, `output.1`, …: a call's tensors by position."""
    return f"{kind}.{position}" if position else kind


def gradient_name(parameter: str) -> str:
    """`weight.grad`, the gradient of a module's parameter; `(input).grad` of one named like a call's tensor."""
    return f"({parameter}).grad" if _OF_A_CALL.fullmatch(parameter) else f"{parameter}.grad"


_OF_A_CALL = re.compile(r"(input|output)(\.\d+)?")


def comes_from_around(tensor: str) -> bool:
    """Whether this tensor of a wiring comes to a module from the container around it: an input, or the gradient of an
    output."""
    return _FROM_AROUND.fullmatch(tensor) is not None


_FROM_AROUND = re.compile(r"input(\.\d+)?|output(\.\d+)?\.grad")


class Writer:
    """Write a recording tensor by tensor; `close` makes it readable."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.there: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def store(self, array: np.ndarray, needs_grad: bool = False) -> Stored:
        """Put one tensor on disk, unless an equal one is there. Raises ValueError for a dtype that cannot be stored."""
        if str(array.dtype) not in DTYPES:
            raise ValueError(f"{array.dtype} tensors cannot be stored")
        array = np.ascontiguousarray(array).reshape(array.shape)  # ascontiguousarray makes a scalar one-dimensional
        name = digest(array)
        if name not in self.there:
            np.save(self.folder / f"{name}.npy", array, allow_pickle=False)
            self.there.add(name)
        return Stored(name, tuple(array.shape), str(array.dtype), needs_grad)

    def close(self, modules: list[Module], calls: list[Call], about: dict[str, Any]) -> None:
        """Write replay.json, last."""
        document = {
            "format": FORMAT,
            **about,
            "modules": [vars(module) for module in modules],
            "calls": [{key: encoded(value) for key, value in vars(call).items()} for call in calls],
        }
        partial = self.folder / f"{FILE}.partial"
        partial.write_text(json.dumps(document), encoding="utf-8")
        partial.replace(self.folder / FILE)


@dataclass
class Recording:
    """A recording, opened for reading; tensors are read one at a time and checked against their digests."""

    folder: Path
    modules: dict[str, Module]
    calls: dict[str, Call]  # by label, in the order in which they began
    about: dict[str, Any]
    verified: set[str] = field(default_factory=set)  # the files whose content is known to match their names
    fresh: bool = False  # whether it was written in this run, by a process that is its own

    @classmethod
    def open(cls, folder: Path, *, fresh: bool = False) -> Recording:
        """Read FOLDER/replay.json. Raises BadTrace where it is missing or no recording.

        fresh: it was written in this run, and digests are not looked at again.
        """
        path = folder / FILE
        try:
            document = read_json(path)
            if document.get("format") != FORMAT:
                raise BadTrace(f"{path}: replay format {quoted(document.get('format'))}; this msmigrate reads {FORMAT}")
            modules = {module.path: module for module in typed(list[Module], document.pop("modules"))}
            calls = {call.label: call for call in (_call(fields, modules) for fields in document.pop("calls"))}
        except (FileNotFoundError, NotADirectoryError):
            raise BadTrace(f"{folder}: no {FILE}; the recording did not finish, or there is none") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadTrace(f"{path}: cannot be read: {' '.join(str(error).split())[:300]}") from error
        return cls(folder, modules, calls, document, fresh=fresh)

    def array(self, stored: Stored) -> np.ndarray:
        """One tensor. Raises BadTrace when it is missing or not what replay.json says."""
        path = self.folder / f"{stored.file}.npy"
        try:
            with open_regular(path) as file:
                array = read_npy(file, os.fstat(file.fileno()).st_size)
        except Exception as error:  # NumPy's parser of headers may raise anything
            raise BadTrace(f"{path}: cannot be read: {' '.join(str(error).split())[:300]}") from error
        if (array.shape, str(array.dtype)) != (stored.shape, stored.dtype):
            raise BadTrace(f"{path}: is {array.dtype} {list(array.shape)}, not {stored.dtype} {list(stored.shape)}")
        if not self.fresh and stored.file not in self.verified:
            if digest(array) != stored.file:
                raise BadTrace(f"{path}: is damaged: its content does not match the digest in its name")
            self.verified.add(stored.file)
        return array

    @property
    def roots(self) -> list[Call]:
        """The calls that the step itself made."""
        return [call for call in self.calls.values() if call.caller is None]

    @cached_property
    def made_by(self) -> dict[str, list[Call]]:
        """Label of a call -> the calls of modules that it makes itself, in order; only of those that make any."""
        found: dict[str, list[Call]] = {}
        for call in self.calls.values():
            if call.caller is not None:
                found.setdefault(call.caller, []).append(call)
        return found

    def handed_on(self, outer: Call, unwired: Container[str]) -> list[Call]:
        """The calls inside an outer one whose outputs are torch's in its wiring: those that it makes; in place of a
        module that runs as it is, the calls inside that."""
        return [
            found
            for call in self.made_by.get(outer.label, ())
            for found in ([call] if call.path not in unwired else self.handed_on(call, unwired))
        ]

    def around(self, label: str | None) -> Iterator[str]:
        """The label of a call, of the call that made it, and so on."""
        for _ in self.calls:  # bounded, whatever the file says
            if label is None or label not in self.calls:
                return
            yield label
            label = self.calls[label].caller

    def own_buffers(self, path: str) -> list[str]:
        """The buffers of a module, relative to it, that none of the modules that are called in it holds."""
        called = {call.path for call in self.calls.values()} - {path}
        holders = {name: f"{path}.{name}".rpartition(".")[0].strip(".") for name in self.modules[path].buffers}
        return [name for name, holder in holders.items() if holder not in called]

    def inside(self, path: str) -> list[Module]:
        """The module of this name and every module in it, outermost first."""
        return [module for name, module in self.modules.items() if relative(name, path) is not None]


def relative(path: str, to: str) -> str | None:
    """The dotted name `path` as seen from the module `to` ("" for itself); None where it lies outside."""
    if not to or path == to:
        return "" if path == to else path
    return path[len(to) + 1 :] if path.startswith(f"{to}.") else None


def _call(fields: Any, modules: dict[str, Module]) -> Call:
    call = Call(**{key: decoded(value) for key, value in fields.items()})
    if type(call.number) is not int or call.number < 0 or not (call.caller is None or type(call.caller) is str):
        raise ValueError(f"{str(fields)[:200]} is no call")
    if (
        type(call.strays) is not str
        or type(call.args) is not tuple
        or type(call.kwargs) is not dict
        or type(call.gradients) is not tuple
    ):
        raise ValueError(f"{str(fields)[:200]} is no call")
    if call.path not in modules or not all(each is None or isinstance(each, Stored) for each in call.gradients):
        raise ValueError(f"{str(fields)[:200]} is no call of a known module")
    return call


KEY = "replay"
FAILED = "failed alone"  # in the head of a torch trace: label of a call -> what torch raised in that precision
NOT_ASKED = "not asked for"
GIVES_BACK = "it gives back what it is given"  # what its container computes without it is judged in the container
BOTH_WAYS, FORWARD = "forward and backward", "forward"  # how far a container's wiring was recorded
CHAINED = "several Cells compute it, one after the other"  # it computes their inputs itself
LONGEST = 300


class CannotRun(Exception):
    """Why a Cell cannot be called as torch called its counterpart; this is no fault in itself."""


@dataclass(frozen=True)
class Made:
    """How a Cell was made: its class, its arguments by name as far as they are plain values, those that were given by
    position, and the line of the user's file that makes it ("" where none does) with its place. For a class of the
    user's, only the place of its construct."""

    target: str
    arguments: dict[str, Any] = field(hash=False)
    positional: tuple[str, ...] = ()
    line: str = ""
    place: str = ""


@dataclass
class Outcome:
    """What MindSpore's replay left out and failed at.

    left_out: label of a call that did not run alone -> why (no fault). errors: label -> what MindSpore raised (a
    fault). unwired: path of a module that the wiring ran as it is -> why. cells: torch path -> the Cell's path and
    class. notes: torch path -> what to know of its replay, such as what was made deterministic. made: torch path -> how
    the Cell was made, for MindSpore's own layers. wired: label of a container's call -> how far its wiring was
    recorded. by_parts: the labels of the containers that did not run alone, because everything in them did and they are
    wired as torch's are.
    """

    left_out: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    unwired: dict[str, str] = field(default_factory=dict)
    cells: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    made: dict[str, Made] = field(default_factory=dict)
    wired: dict[str, str] = field(default_factory=dict)
    by_parts: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, trace: Trace) -> Outcome:
        """The outcome in the head of a trace. Raises BadTrace for nonsense."""
        try:
            return typed(cls, trace.about[KEY])
        except (KeyError, ValueError):
            raise BadTrace(f"{trace.folder / 'trace.json'}: does not say which modules were replayed") from None

    @property
    def runs_unwired(self) -> set[str]:
        """The paths of `unwired`, but for modules that give back their input: they compute nothing there."""
        silent, others = ({parse_label(label)[0] for label in labels} for labels in (self.left_out, self.could_not_run))
        return {*self.unwired} - (silent - others)

    @property
    def could_not_run(self) -> dict[str, str]:
        """What was left out, but for what gives back its input: there is nothing of it to run."""
        return {label: why for label, why in self.left_out.items() if why != GIVES_BACK}

    def asked(self, *labels: str | None) -> bool:
        """Whether any of these calls is of a module that was to be replayed."""
        return any(self.left_out.get(label) != NOT_ASKED for label in labels if label is not None)

    def head(self) -> dict[str, Any]:
        """The outcome as part of the head of a trace."""
        return {KEY: asdict(self)}


def failed(trace: Trace) -> dict[str, str]:
    """What a torch replay could not run: label -> what torch raised. Raises BadTrace for nonsense."""
    try:
        return typed(dict[str, str], trace.about[FAILED])
    except (KeyError, ValueError):
        raise BadTrace(f"{trace.folder / 'trace.json'}: does not say which modules failed alone") from None


def one_line(error: Exception) -> str:
    """An exception as one line: its class and what it says before any C++ call stack."""
    said = " ".join(str(error).split("----")[0].split())
    return f"{type(error).__name__}: {said}"[:LONGEST]


_DIGEST = re.compile(r"[0-9a-f]{32}")
DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
_DEEPEST = 100


@dataclass(frozen=True)
class Stored:
    """One tensor of the recording: the digest that names its file, shape and dtype (NumPy's names), and whether it
    required a gradient."""

    file: str
    shape: tuple[int, ...]
    dtype: str
    needs_grad: bool = False

    @property
    def is_float(self) -> bool:
        """Whether it has real numbers."""
        return self.dtype.startswith("float")


@dataclass(frozen=True)
class Unsupported:
    """An argument or output that is neither tensor nor constant nor a nest of these; `what` is its class."""

    what: str


class Packed(NamedTuple):
    """Sequences of several lengths, which torch packs: padded with zeros, (N, T, …) whatever the module's own order of
    axes is, and the N lengths as whole numbers."""

    padded: Any
    lengths: Any


Value = Any  # Stored | Unsupported | Packed | None | bool | int | float | str | list, tuple or dict of these


def rebuilt(value: Value, tensor: Callable[[Stored], Any], packed: Callable[[Any, Any], Any] = Packed) -> Any:
    """The nest with each stored tensor replaced by `tensor` of it, and each packed sequence by `packed` of its two."""
    if isinstance(value, Stored):
        return tensor(value)
    if isinstance(value, Packed):
        return packed(tensor(value.padded), tensor(value.lengths))
    if isinstance(value, (list, tuple)):
        return type(value)(rebuilt(each, tensor, packed) for each in value)
    if isinstance(value, dict):
        return {key: rebuilt(each, tensor, packed) for key, each in value.items()}
    return value


def digest(array: np.ndarray) -> str:
    """32 hexadecimal digits that tell contiguous tensors apart by dtype, shape and content."""
    found = hashlib.sha256(f"{array.dtype}{array.shape}".encode())  # SHA-256: processors have instructions for it
    found.update(array.reshape(-1).view(np.uint8).data)
    return found.hexdigest()[:32]


def encoded(value: Value) -> Any:
    """A nest as JSON."""
    if isinstance(value, Stored):
        return {"tensor": [value.file, list(value.shape), value.dtype, value.needs_grad]}
    if isinstance(value, Unsupported):
        return {"unsupported": value.what}
    if isinstance(value, Packed):
        return {"packed": [encoded(each) for each in value]}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [encoded(each) for each in value]}
    if isinstance(value, dict):
        return {"dict": {key: encoded(each) for key, each in value.items()}}
    return {"float": repr(value)} if isinstance(value, float) and not math.isfinite(value) else value


def decoded(value: Any, depth: int = 0) -> Value:
    """The nest that `encoded` wrote. Raises ValueError or TypeError for anything else."""
    if depth > _DEEPEST:
        raise ValueError("nested too deep")
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is not dict or len(value) != 1:
        raise ValueError(f"{str(value)[:100]} is no value")
    ((kind, held),) = value.items()
    if kind == "tensor":
        return _stored(*held)
    if kind == "float" and held in ("nan", "inf", "-inf"):
        return float(held)
    if kind == "unsupported" and type(held) is str:
        return Unsupported(held)
    if kind == "dict" and type(held) is dict:
        return {key: decoded(each, depth + 1) for key, each in held.items()}
    if kind == "packed":
        return _packed(*(decoded(each, depth + 1) for each in held))
    if kind in ("list", "tuple") and type(held) is list:
        return {"list": list, "tuple": tuple}[kind](decoded(each, depth + 1) for each in held)
    raise ValueError(f"{str(value)[:100]} is no value")


def _packed(padded: Any, lengths: Any) -> Packed:
    if not isinstance(padded, Stored) or not isinstance(lengths, Stored) or lengths.is_float:
        raise ValueError("a packed sequence without its tensors")
    if len(padded.shape) < 2 or lengths.shape != padded.shape[:1]:
        raise ValueError(f"{lengths.shape} lengths of {padded.shape} are no packed sequence")
    return Packed(padded, lengths)


def _stored(file: Any, shape: Any, dtype: Any, needs_grad: Any) -> Stored:
    if type(file) is not str or not _DIGEST.fullmatch(file) or dtype not in DTYPES or type(needs_grad) is not bool:
        raise ValueError(f"{str([file, shape, dtype])[:100]} is no tensor")
    if type(shape) is not list or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"{str(shape)[:100]} is no shape")
    return Stored(file, tuple(shape), dtype, needs_grad)
