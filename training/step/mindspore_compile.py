"""What MindSpore compiles: every graph as it is made, why a function is compiled again, and what does not compile.

MindSpore names neither its graphs nor, for many errors, the line. A statement that its parser does not know is reported
with the line that called the function; an error raised in Python without a line; code that it leaves to Python only
shows at the loss, as a tensor of unknown shape. So this file, and no other, uses MindSpore's internals: the two
executors that compile, the parser's position in the source, and the file in which MindSpore explains a failure. Where a
version no longer has these, nothing is counted, and `counted` says so.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard
from unittest.mock import patch

import mindspore
from mindspore import Tensor, nn

from ...errors import DoesNotCompile
from ...mappings.row_reader import read_yaml
from ...temporary import temporary_folder

try:
    from mindspore.graph import api
    from mindspore.graph._parse import parser
except ImportError:  # before MindSpore 2.9
    from mindspore._extends.parse import parser
    from mindspore.common import api

STEP = "msmigrate.training.step."
MINDSPORE = str(Path(mindspore.__file__).parent) + os.sep
FOLDER = "MS_OM_PATH"  # the variable for the folder where MindSpore explains a failure
SYNTAX = "MS_DEV_JIT_SYNTAX_LEVEL"  # "0": nothing is left to Python
FRAME = re.compile(r"^# ?\d+ In file (.+?):(\d+)(?:~\d+)?, ", re.MULTILINE)
JOIN = "Type Join Failed: "
TRACEBACK = "The Traceback of Net Construct Code"
UNKNOWN = re.compile(r"shape=\[-2\]|but got 'None'")  # what was left to Python: since MindSpore 2.9, and before
PARSING = "/parse/"  # in the path of the C++ file that raised: MindSpore's parser, whose errors name no line
LONGEST = 300  # characters of MindSpore's message


@dataclass(frozen=True)
class Graph:
    """A graph that was compiled. function: its name and place; why: the difference to the previous graph of the same
    function, with a remedy; empty for the first one."""

    function: str
    seconds: float
    why: str = ""


@dataclass
class Graphs:
    """The graphs that were compiled so far. counted: whether this MindSpore shows them."""

    made: list[Graph] = field(default_factory=list)
    counted: bool = True
    _last: dict[Any, tuple[Any, Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def again(self) -> list[str]:
        """Why functions were compiled again, each reason once."""
        made = [graph for graph in self.made if graph.why]
        return list(dict.fromkeys(f"{graph.function} is compiled again: {graph.why}" for graph in made))

    def record(self) -> dict[str, Any]:
        """For a log, a trace or a report: graphs (None: not counted), the seconds they took, why some were repeated."""
        seconds = round(sum(graph.seconds for graph in self.made), 2)
        return {"graphs": len(self.made) if self.counted else None, "seconds": seconds, "again": self.again}

    @contextmanager
    def watching(self, *, only: bool = False) -> Iterator[None]:
        """Within this block each graph that is compiled is noted.

        only: the block ends, without an error, once the first function has been compiled, which does not run. Raises
        DoesNotCompile, with MindSpore's own error as its cause.
        """
        looks = _Wrappers(self, only)
        with ExitStack() as undo:
            try:
                undo.enter_context(patch.object(api._JitExecutor, "compile", looks.function(api._JitExecutor.compile)))
                cells = api._CellGraphExecutor
                undo.enter_context(patch.object(cells, "compile", looks.cell(cells.compile)))
                undo.enter_context(patch.object(parser.Parser, "get_location", looks.at(parser.Parser.get_location)))
            except AttributeError:
                self.counted = False
            try:
                yield
            except _Compiled:
                return
            except _Refused as stop:
                raise stop.error from stop.error.__cause__

    def note(self, key: Any, place: str, made: Any, given: Mapping[str, Any], seconds: float) -> None:
        """Note one more graph of the function `key`; made: the function object, given: its arguments."""
        before = self._last.get(key)
        why = "" if before is None else _why(before, (made, given))
        self._last[key] = made, given
        self.made.append(Graph(place, seconds, why))


def forget_graphs() -> None:
    """What has been compiled is compiled again when it is called next.

    MindSpore's own ms_memory_recycle also frees the graphs, and was seen to end the process (signal 11) where one was
    left of a net that is gone.
    """
    api.ms_compile_cache.clear()
    for graphs in api.cells_compile_cache.values():
        graphs.clear()


class _Compiled(BaseException):
    """The first function is compiled, and no more is needed; a user's `except Exception` does not catch this."""


class _Refused(BaseException):
    """Carries an error past MindSpore's own clean-up, which was seen to abort the process after some errors."""

    def __init__(self, error: DoesNotCompile) -> None:
        super().__init__()
        self.error = error


class _Wrappers:
    """The wrappers around MindSpore's methods."""

    def __init__(self, graphs: Graphs, only: bool) -> None:
        self.graphs, self.only = graphs, only
        self.place: tuple[str, int] = ("", 0)  # the parser's position

    def at(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def get_location(reader: Any, node: Any) -> Any:
            found = real(reader, node)
            if found[1]:
                self.place = found[0], found[1]
            return found

        return get_location

    def function(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def compile(executor: Any, name: str, *args: Any, **kwargs: Any) -> Any:
            known, began = len(api.ms_compile_cache), time.perf_counter()
            phase = self._tried(lambda: real(executor, name, *args, **kwargs))
            code = inspect.unwrap(executor.fn).__code__
            module = executor.fn.__module__
            ours = module.startswith("msmigrate.")
            # optimizers, MindSpore's and msmigrate's, compile themselves, once for each group
            counts = module.startswith(STEP) if ours else not code.co_filename.startswith(MINDSPORE)
            if counts and len(api.ms_compile_cache) > known:
                given = _named(executor.fn, args, kwargs)
                place = f"{executor.fn.__name__} ({_shown(code.co_filename)}:{code.co_firstlineno})"
                place = "the step" if ours else place
                key = code, None if executor.obj is None else id(executor.obj)
                made = executor._create_time, _mode(executor.obj)
                self.graphs.note(key, place, made, given, time.perf_counter() - began)
            if self.only:
                raise _Compiled
            return phase

        return compile

    def cell(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def compile(executor: Any, cell: nn.Cell, *args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            phase, new = self._tried(lambda: real(executor, cell, *args, **kwargs))
            if new:
                given = _named(cell.construct, args, {})
                self.graphs.note(id(cell), type(cell).__name__, _mode(cell), given, time.perf_counter() - began)
            if self.only:
                raise _Compiled
            return phase, new

        return compile

    def _tried(self, real: Callable[[], Any]) -> Any:
        """The result of `real`. Raises _Refused, with the place if the graph was left to Python."""
        with temporary_folder("graph") as folder, _environment(FOLDER, str(folder)):
            try:
                return real()
            except Exception as error:  # any complaint of the compiler about a user's code
                told = _Report.of(error, folder, self.place)
                if UNKNOWN.search(told.text) and told.joined is None:
                    with _environment(SYNTAX, "0"), suppress(_Compiled):
                        try:
                            real()
                        except Exception as strict:
                            told = _Report.of(strict, folder, self.place)
                raise _Refused(told.error(error)) from None


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    with patch.dict(os.environ, {name: value}):
        yield


@dataclass(frozen=True)
class _Report:
    """MindSpore's report of a failure. text: the error's; explained: the readable part of its file; parser: the
    parser's position; parsed: whether the parser raised it."""

    text: str
    explained: str
    parser: tuple[str, int]
    parsed: bool

    @classmethod
    def of(cls, error: Exception, folder: Path, place: tuple[str, int]) -> _Report:
        """Read right after the error."""
        explained = ""
        for file in folder.rglob("analyze_fail.ir"):
            explained = file.read_text(encoding="utf-8", errors="replace").split("The following shows the IR")[0]
        text = str(error)
        frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ is not None else []
        in_python = bool(frames) and frames[-1].filename == parser.__file__ and not FRAME.search(text + explained)
        in_python = in_python or (bool(frames) and frames[-1].function == "check_is_base_ctx")
        places = text.partition("C++ Call Stack")[2].partition(TRACEBACK)[0]
        return cls(text, explained, place, PARSING in places or in_python)

    @property
    def joined(self) -> str | None:
        """The part of the explanation about two branches of the user's that return different types; MindSpore's own
        code tries out types, too, and goes on."""
        found = self.explained.find(JOIN)
        part = self.explained[found:].partition(TRACEBACK)[2].partition("\n\n")[0]
        frames = FRAME.findall(part)
        whole = found >= 0 and UNKNOWN.search(self.text) and frames and not frames[-1][0].startswith(MINDSPORE)
        return self.explained[found : self.explained.index(part, found) + len(part)] if whole else None

    def error(self, error: Exception) -> DoesNotCompile:
        """The whole report in one line."""
        text = self.joined or self.text
        said = _sentence(text) or type(error).__name__
        place = self._place(text)
        row = next((row for row in remedies() if "says" in row and re.search(row["says"], text)), None)
        write = row["write"] if row is not None else None
        kept = next(row for row in remedies() if "kept" in row)
        found_at = None if place is None else _kept_attribute(place, "", kept["write"])
        if found_at is None and (without := re.search(kept["kept"], text)):
            found_at = _kept_attribute(None, (without.groupdict() or {}).get("name") or "", kept["write"])
        place, write = found_at or (place, write)
        write = f" Write instead: {write}." if write else ""
        where, what = ("", "the step") if place is None else (f"{_shown(place[0])}:{place[1]}: ", _line(*place))
        by_target = row is not None and row.get("by_target") is True
        words = f"{where}graph mode does not compile {what}.{write} MindSpore says: {said}"
        found = DoesNotCompile(f"{words}; --mode pynative runs it as it is", by_target)
        found.__cause__ = error
        return found

    def _place(self, text: str) -> tuple[str, int] | None:
        """The innermost line that is neither MindSpore's nor msmigrate's; None where there is no such line."""
        if self.parsed and self.parser[1] and not self.parser[0].startswith(MINDSPORE):
            return self.parser
        frames = FRAME.findall(text.partition(TRACEBACK)[2])
        frames = frames or FRAME.findall(self.explained.rpartition(TRACEBACK)[2])
        others = [(file, int(line)) for file, line in frames if not file.startswith(MINDSPORE)]
        modules = [module for name, module in [*sys.modules.items()] if name.startswith("msmigrate.")]
        ours = {getattr(module, "__file__", None) for module in modules}
        return next((frame for frame in reversed(others) if frame[0] not in ours), None)


def _kept_attribute(place: tuple[str, int] | None, name: str, write: str) -> tuple[tuple[str, int], str] | None:
    """Where a method of a Cell reads an attribute that another one sets, or another call, and what to write instead: in
    the line `place` or, without one, first in the files of Cells that are no package's. name: the attribute's; any."""
    files = [place[0]] if place is not None else [*_own_files()]
    for file in files:
        try:
            tree = ast.parse(Path(file).read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        for cls in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]:
            functions = [node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name != "__init__"]
            uses = [(function, node) for function in functions for node in ast.walk(function) if _of_itself(node)]
            sets = {n.attr: function for function, n in reversed(uses) if isinstance(n.ctx, ast.Store)}
            for function, node in uses:
                setter = sets.get(node.attr)
                here = (place is None or node.lineno == place[1]) and name in ("", node.attr)
                if setter is None or not here or not isinstance(node.ctx, ast.Load):
                    continue
                if setter is not function or all(
                    n.lineno >= node.lineno for f, n in uses if f is function and isinstance(n.ctx, ast.Store)
                ):
                    return (file, node.lineno), write.format(name=node.attr, setter=setter.name, line=setter.lineno)
    return None


def _of_itself(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Whether it is an attribute of `self`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _own_files() -> Iterator[str]:
    """The files of imported modules that define Cells, but for installed packages."""
    for name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None) or ""
        if name.startswith("msmigrate") or not file.endswith(".py") or "site-packages" in file:
            continue
        with suppress(Exception):  # a module may answer what it is asked by importing others
            if any(isinstance(one, type) and issubclass(one, nn.Cell) for one in vars(module).values()):
                yield file


def _sentence(text: str) -> str:
    """MindSpore's first sentence, without remarks on its own source and settings."""
    text = re.sub(r"\A\s*-{20,}\n- .*\n-{20,}\n", "", text)  # "Kernel select failed", above the reason
    text = " ".join(re.split(r"\n-{20}", text)[0].split()).removeprefix("In JIT strict mode, ")
    text = re.split(r" You can use os\.environ| Try to set |,? (?:For m|M|m)ore details|,? Please ", text)[0]
    return re.split(r"(?<=[\w)'\]])\. ", text)[0].rstrip(". ")[:LONGEST]


def _line(file: str, number: int) -> str:
    return f"`{linecache.getline(file, number).strip()}`"


def _shown(file: str) -> str:
    """The file's name, relative to the working directory where possible."""
    here = Path.cwd()
    return str(Path(file).relative_to(here)) if Path(file).is_relative_to(here) else file


def _mode(cell: Any) -> str:
    return "" if not isinstance(cell, nn.Cell) else "training" if cell.training else "evaluation"


def _named(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What a graph depends on, by name of the argument: a tensor's shape and dtype, any other argument's value."""
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    names += [f"argument {i + 1}" for i in range(len(names), len(args))]
    return {name: _kind(value) for name, value in [*zip(names, args, strict=False), *kwargs.items()]}


def _kind(value: Any) -> tuple[str, Any]:
    if isinstance(value, Tensor):
        return "tensor", (list(value.shape), str(value.dtype))
    if isinstance(value, (tuple, list, dict)):
        items = value.values() if isinstance(value, dict) else value
        kind = "mutable" if getattr(value, "__ms_mutable__", False) else "sequence"
        return kind, [_kind(item) for item in items]
    if value is None or isinstance(value, (bool, int, float, str)):
        return "value", value
    return "object", id(value)


def _why(before: tuple[Any, Mapping[str, Any]], now: tuple[Any, Mapping[str, Any]]) -> str:
    """What differs between two graphs of a function, and what to write."""
    kind, text = "unknown", "for a reason that its arguments do not show"
    for name, (what, value) in now[1].items():
        known, other = before[1].get(name, (what, value))
        if (known, other) == (what, value):
            if what == "sequence" and any(item[0] == "tensor" for item in value):
                kind, text = "sequence", f"{name} holds tensors"
            continue
        if known != what:
            kind, text = "value", f"{name} is a {what}, before a {known}"
        elif what == "tensor" and value[0] != other[0]:
            kind, text = "shape", f"{name} has shape {value[0]}, before {other[0]}"
        elif what == "tensor":
            kind, text = "dtype", f"{name} is {value[1]}, before {other[1]}"
        elif what in ("sequence", "mutable"):
            kind, text = ("sequence" if what == "sequence" else "shape"), f"the content of {name} differs"
        elif what == "value":
            kind, text = "value", f"{name} is the Python value {value!r}, before {other!r}"
        break
    else:
        if kind == "unknown" and before[0] != now[0]:
            kind, text = "anew", "it is another function each time"
    write = next(row["write"] for row in remedies() if row.get("again") == kind)
    return f"{text}. Write instead: {write}"


@cache
def remedies() -> tuple[dict[str, Any], ...]:
    """The rows of graph_errors.yaml."""
    return tuple(read_yaml(Path(__file__).with_name("graph_errors.yaml")))
