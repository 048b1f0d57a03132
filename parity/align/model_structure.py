"""A model's modules, tensors and calls, as each framework reports them; values are followed by their content.

Each worker runs its model once in evaluation mode and leaves structure-FRAMEWORK.json: every module with its class,
parameters and buffers in definition order, and every call of a module with the shape of what came out. Tensors that
flow are numbered by content, so that two calls which got the same values can be told from two in a row.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import itertools
import json
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import Enum
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import NonNegativeInt

from ...errors import BadInput, WorkerFailed
from ...input_files import LARGEST_PYTHON, python_tree, read_bytes, read_json, typed
from ...migrate.model_spec import NOT_THEIRS
from ...printable import quoted


class Values(str, Enum):
    """What the numbers that a model returns are: a loss may take shares alone, as torch's BCELoss."""

    ANY = "any"
    POSITIVE = "not negative"
    SHARES = "between 0 and 1"

    @classmethod
    def of(cls, array: np.ndarray) -> Values:
        """Those of an output, of any shape."""
        if array.dtype.kind != "f" or not array.size or not array.min() >= 0:
            return cls.ANY
        return cls.SHARES if array.max() <= 1 else cls.POSITIVE


@dataclass
class Watch:
    """Collects the calls of one evaluation pass; `enter` and `leave` come from a framework's hooks, with arrays."""

    calls: list[Call] = field(default_factory=list)
    _open: list[tuple[str, int, int, tuple[int, ...]]] = field(default_factory=list)
    _count: dict[str, int] = field(default_factory=dict)
    _numbers: dict[bytes, int] = field(default_factory=dict)
    _clock: int = 0

    def enter(self, path: str, inputs: list[np.ndarray]) -> None:
        """A module begins on these tensors."""
        call = self._count.get(path, 0)
        self._count[path] = call + 1
        self._open.append((path, call, self._tick(), tuple(self._number(array) for array in inputs)))

    def leave(self, path: str, output: np.ndarray | None) -> None:
        """The module that began last ends; output: the tensor it returned, None where it was not a single one."""
        while self._open:  # a module that was left by an exception has no output
            name, call, entered, inputs = self._open.pop()
            if name == path:
                number = None if output is None else self._number(output)
                shape = None if output is None else tuple(output.shape)
                self.calls.append(Call(path, call, entered, self._tick(), inputs, number, shape))
                return

    def in_order(self) -> tuple[Call, ...]:
        """The calls in the order in which they began."""
        return tuple(sorted(self.calls, key=lambda call: call.entered))

    def _tick(self) -> int:
        self._clock += 1
        return self._clock - 1

    def _number(self, array: np.ndarray) -> int:
        digest = hashlib.sha1(np.ascontiguousarray(array).data, usedforsecurity=False).digest()
        return self._numbers.setdefault(digest, len(self._numbers))


def few(inputs: tuple[np.ndarray, ...], batch: int) -> tuple[np.ndarray, ...]:
    """Two examples of a batch: enough to see a structure; all of it where the inputs do not share their first axis, or
    where one is as wide as the batch is long: a graph's matrix, whose rows are nodes and not examples."""
    square = len(inputs) > 1 and any(array.shape[1:2] == (batch,) for array in inputs)
    if not square and all(array.ndim and len(array) == batch for array in inputs):
        return tuple(array[:2] for array in inputs)
    return inputs


def on_few(run: Callable[[tuple[np.ndarray, ...]], Structure], inputs: tuple[np.ndarray, ...], batch: int) -> Structure:
    """What `run` makes of two examples; of the whole batch where it fails, as of a net that knows how many there are.
    Raises WorkerFailed as the first of the two does."""
    part = few(inputs, batch)
    try:
        return run(part)
    except WorkerFailed as error:
        if len(part[0]) < len(inputs[0]):
            with suppress(WorkerFailed):
                return run(inputs)
        raise error


FORMAT = 2
SIDES = ("torch", "mindspore")
Shape = tuple[NonNegativeInt, ...]


def regrouped(one: Shape, other: Shape) -> bool:
    """Whether a tensor of one shape is that of the other with axes split or put together, its elements in one order: an
    image as rows of points, (N, H, W, C) and (N, H·W, C), and whatever has other axes of 1."""
    ends = [set(itertools.accumulate(shape, operator.mul)) | {1} for shape in (one, other)]
    return (
        math.prod(one) == math.prod(other) > 0 and one[:1] == other[:1] and (ends[0] <= ends[1] or ends[1] <= ends[0])
    )


def channels_moved(one: Shape, other: Shape) -> tuple[int, int] | None:
    """The axis of the channels in one shape and in the other, where one has them first and the other last: (N, C, H, W)
    and (N, H, W, C); None where the shapes are equal or differ otherwise."""
    if len(one) != len(other) or len(one) < 3 or one == other:
        return None
    moves = {(one[0], *one[2:], one[1]): (1, -1), (one[0], one[-1], *one[1:-1]): (-1, 1)}
    return moves.get(other)


def file(folder: Path, framework: str) -> Path:
    """Where a framework's structure lies in a run's folder."""
    return folder / f"structure-{framework}.json"


@dataclass(frozen=True)
class Held:
    """One parameter or buffer of a module: its shape, whether it trains, where in the user's file it is made, and, in
    torch, whether an output of the model was computed with it."""

    shape: Shape
    trains: bool
    dtype: str = "float32"
    made: str = ""
    reached: bool = True


@dataclass(frozen=True)
class Module:
    """One module: dotted path ("" is the model), class name, and its own tensors by own name, in definition order;
    where in the user's file it is made; the tensors that it holds as plain attributes, which nobody trains or loads;
    whether it is a norm that uses the batch's statistics in evaluation too; the parameters that it shares, by own
    name, with the dotted name under which they stand."""

    path: str
    kind: str
    tensors: Mapping[str, Held] = field(default_factory=dict)
    buffers: tuple[str, ...] = ()  # which of the tensors torch holds as buffers
    made: str = ""
    attributes: Mapping[str, Held] = field(default_factory=dict)
    by_batch: bool = False
    shared: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """One call of a module: when it was entered and left (one counter for all), the numbers of the tensors that came
    in and of the one that went out, and that one's shape (None: no single tensor went out)."""

    path: str
    call: NonNegativeInt
    entered: NonNegativeInt
    left: NonNegativeInt
    inputs: tuple[NonNegativeInt, ...] = ()
    output: NonNegativeInt | None = None
    shape: Shape | None = None


@dataclass(frozen=True)
class Structure:
    """A model as one framework reports it. outputs: shapes of the tensors the model returns; own: the parts of the step
    that the user's function brought; tokens: whether the first input has no gradient; aliases: in torch's model,
    further names of tensors that several modules have -> the first; values: what the first output's numbers are."""

    framework: str
    modules: tuple[Module, ...]
    calls: tuple[Call, ...]
    outputs: tuple[Shape, ...]
    own: tuple[str, ...] = ()
    tokens: bool = False
    aliases: Mapping[str, str] = field(default_factory=dict)
    values: Values = Values.ANY

    @cached_property
    def by_path(self) -> dict[str, Module]:
        """Path -> module."""
        return {module.path: module for module in self.modules}

    @cached_property
    def position(self) -> dict[str, int]:
        """Path -> place in definition order."""
        return {module.path: i for i, module in enumerate(self.modules)}

    def tensors(self) -> dict[str, Held]:
        """Dotted name -> tensor, for all parameters and buffers, in definition order."""
        return {join(m.path, name): held for m in self.modules for name, held in m.tensors.items()}

    def write(self, folder: Path) -> None:
        """Leave it in a run's folder; it appears whole."""
        target = file(folder, self.framework)
        partial = target.with_suffix(".partial")
        partial.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1), encoding="utf-8")
        partial.replace(target)


def join(path: str, name: str) -> str:
    """A dotted name: `layer1.0` and `weight` are `layer1.0.weight`; the model's own path is empty."""
    return f"{path}.{name}" if path and name else path or name


def parent(path: str) -> str:
    """The path of the module that holds this one."""
    return path.rpartition(".")[0]


def read(path: Path) -> Structure:
    """Read a structure that a worker (or anyone) wrote. Raises BadInput."""
    try:
        document = read_json(path)
        found_format = document.pop("format", None)
        if found_format != FORMAT:
            raise ValueError(f"format {quoted(found_format)}; this msmigrate reads {FORMAT}")
        found = typed(Structure, document)
        paths, calls = [module.path for module in found.modules], [(call.path, call.call) for call in found.calls]
        if len(set(paths)) != len(paths) or "" not in paths or not {path for path, _ in calls} <= set(paths):
            raise ValueError("modules are listed twice, or called without being listed")
        if len(set(calls)) != len(calls):
            raise ValueError("one call is listed twice")
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}" if not isinstance(error, ValueError) else str(error)
        raise BadInput(f"{path}: is no structure of a model: {' '.join(reason.split())[:300]}") from None
    return found


def made_at(modules: Mapping[str, Any], path: str) -> str:
    """`net.py, line 12` for the module or tensor of this dotted path; empty where no file of the user's says it.

    modules: path -> module, of the whole model. What stands in a list is made where the list is.
    """
    parts = path.split(".") if path else []
    for depth in range(len(parts) - 1, -1, -1):
        kind: Any = type(modules.get(".".join(parts[:depth])))
        found = _line(kind, parts[depth])
        if found:
            return found
    kind = type(modules[""])
    return _line(kind, "")


def statement(modules: Mapping[str, Any], path: str) -> str:
    """The line of the user's file in which the module of this dotted path is assigned, on one line; empty where a list
    holds it, or nothing in sight assigns it."""
    owner, _, attribute = path.rpartition(".")
    kind: Any = type(modules.get(owner))
    for node, file in _constructors(kind):
        for name, assigned in _assigned(node):
            if name == attribute:
                lines = _lines(file)[assigned.lineno - 1 : assigned.end_lineno]
                return " ".join(" ".join(lines).split())[:300]
    return ""


def runs_at(kind: type) -> str:
    """`net.py, line 20` where a class of the user's computes; empty where that is no file of the user's."""
    code = getattr(getattr(kind, "construct", None), "__code__", None)
    users = code is not None and _is_users(code.co_filename)
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}" if code and users else ""


@lru_cache(4096)
def _line(kind: type, attribute: str) -> str:
    """Where a class of the user's assigns an attribute; where it does so nowhere in sight, the class's __init__."""
    begins = ""
    for node, file in _constructors(kind):
        where = f"{Path(file).name}, line {{}}"
        lines = [assigned.lineno for name, assigned in _assigned(node) if name == attribute]
        if lines:
            return where.format(lines[0])
        begins = begins or where.format(node.lineno)
    return begins


def _constructors(kind: type) -> Iterator[tuple[ast.FunctionDef, str]]:
    """The __init__ of a class and of those it is derived from, as far as they stand in files of the user's."""
    for each in inspect.getmro(kind):
        code = getattr(inspect.unwrap(vars(each).get("__init__", object)), "__code__", None)
        if code is None or not _is_users(code.co_filename):
            continue
        for node in ast.walk(_tree(code.co_filename)):
            if isinstance(node, ast.FunctionDef) and _begins(node) == code.co_firstlineno:
                yield node, code.co_filename


def _begins(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _is_users(file: str) -> bool:
    return not file.startswith(("<", *NOT_THEIRS)) and "site-packages" not in Path(file).parts


@lru_cache(64)
def _tree(file: str) -> ast.Module:
    try:
        return python_tree(read_bytes(file, LARGEST_PYTHON))
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


@lru_cache(64)
def _lines(file: str) -> list[str]:
    return read_bytes(file, LARGEST_PYTHON).decode("utf-8", "replace").splitlines()


def _assigned(function: ast.FunctionDef) -> Iterator[tuple[str, ast.stmt]]:
    """Every attribute of self that a method assigns, and the statement."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for each in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self":
                    yield each.attr, node


def squeezed(shape: Shape) -> Shape:
    """A shape without its axes of 1."""
    return tuple(n for n in shape if n != 1)


def same_elements(torch: Shape, mindspore: Shape) -> bool:
    """Whether two shapes are equal, or one has axes of 1 that the other lacks; a (1, 7) filter is no (7, 1) filter."""
    return torch == mindspore or (
        len(torch) != len(mindspore) and squeezed(torch) == squeezed(mindspore) and math.prod(torch) > 0
    )


def for_all(torch: Shape, mindspore: Shape) -> bool:
    """Whether torch has for each example what MindSpore's net has once for all of them, such as positions."""
    return len(torch) > 1 and torch[0] > 1 and mindspore == (1, *torch[1:])


MOST_PARTS = 16
ORDER = ("q wq query queries", "k wk key keys", "v wv value values")  # of the parts in a whole, by their usual names
PARTS = {word: rank for rank, words in enumerate(ORDER) for word in words.split()}
Named = list[tuple[str, Shape]]
Filled = tuple[Shape, int, tuple[int, ...]]


def cut_otherwise(
    torch_left: Named, mindspore_left: Named
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], Filled]]:
    """(torch names, MindSpore names, shape of the whole with torch's axes, axis and sizes of the parts) of tensors that
    one side has whole and the other in consecutive parts; tensors of equal shapes are paired first, and only what is
    left over counts."""
    torch_left, mindspore_left = [*torch_left], [*mindspore_left]
    counts = [Counter(squeezed(shape) for _, shape in names) for names in (torch_left, mindspore_left)]
    alone = counts[0] - counts[1], counts[1] - counts[0]
    for wholes, parts, single, several in (
        (torch_left, mindspore_left, *alone),
        (mindspore_left, torch_left, *alone[::-1]),
    ):
        for whole in [one for one in wholes if single[squeezed(one[1])]]:
            for run in _runs(parts, several):
                torch, mindspore = ([whole], run) if wholes is torch_left else (run, [whole])
                filled = filled_by([shape for _, shape in torch], [shape for _, shape in mindspore])
                if filled is not None:
                    yield tuple(name for name, _ in torch), tuple(name for name, _ in mindspore), filled
                    wholes.remove(whole)
                    parts[:] = [part for part in parts if part not in run]
                    several -= Counter(squeezed(shape) for _, shape in run)
                    break


def same_but_cut(one: Sequence[Shape], other: Sequence[Shape]) -> bool:
    """Whether two sets of tensors have the same shapes, but for wholes and their parts."""
    if sum(map(math.prod, one)) != sum(map(math.prod, other)):
        return False
    left = [[(str(i), shape) for i, shape in enumerate(sorted(shapes))] for shapes in (one, other)]
    for torch, mindspore, _ in [*cut_otherwise(*left)]:
        left = [
            [each for each in side if each[0] not in gone] for side, gone in zip(left, (torch, mindspore), strict=True)
        ]
    return Counter(shape for _, shape in left[0]) == Counter(shape for _, shape in left[1])


def _runs(parts: Named, several: Counter[Shape]) -> Iterator[Named]:
    """The tensors that could be the parts of one, first those called query, key and value, the order that wholes have;
    several: how many tensors of each shape could be parts."""
    found: list[tuple[bool, Named]] = []
    for begin, length in itertools.product(range(len(parts)), range(2, MOST_PARTS + 1)):
        run = parts[begin : begin + length]
        if len(run) == length and Counter(squeezed(shape) for _, shape in run) <= several:
            ranks = [{PARTS[word] for word in re.split(r"[^a-z]+", name.lower()) if word in PARTS} for name, _ in run]
            named = all(len(rank) == 1 for rank in ranks) and len({*map(frozenset, ranks)}) == length
            order = sorted(range(length), key=lambda i: min(ranks[i])) if named else range(length)
            found.append((not named, [run[i] for i in order]))
    return (run for _, run in sorted(found, key=lambda each: each[0]))


def filled_by(torch: Sequence[Shape], mindspore: Sequence[Shape]) -> Filled | None:
    """The shape of the whole, the axis and the sizes, where the parts of one side fill the whole of the other."""
    for axis in range(len(torch[0])):
        before, behind = torch[0][:axis], torch[0][axis + 1 :]
        if len(torch) > 1:
            sizes = tuple(shape[axis] for shape in torch if len(shape) > axis)
            others = {(len(shape), shape[:axis], shape[axis + 1 :]) for shape in torch}
            whole = (*before, sum(sizes), *behind)
            if len(others) == 1 and same_elements(whole, mindspore[0]):
                return whole, axis, sizes
            continue
        each = max(math.prod((*before, *behind)), 1)
        sizes = tuple(math.prod(shape) // each for shape in mindspore)
        fill = all(same_elements((*before, size, *behind), its) for size, its in zip(sizes, mindspore, strict=True))
        if fill and sum(sizes) == torch[0][axis]:
            return torch[0], axis, sizes
    return None
