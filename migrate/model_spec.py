"""Names of models on the command line, and the worker processes that build these.

    torchvision:resnet50                     a model of torchvision (torch only)
    path/to/model.py:function                a function in a file, called without arguments
    package.module:function                  the same in an installed package
    …(num_classes=10)                        any of these with constant arguments
    … -- --width 2                           with command-line arguments, for a file that reads them

Naming a function runs it: this is the purpose of --model and --into, and the only way msmigrate runs foreign code.
Before a process is started for it, `check` finds out by reading whether there is such a file, with such a function.
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import importlib
import importlib.machinery
import importlib.util
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from ..errors import BadInput, MsmigrateError, WorkerFailed
from ..input_files import LARGEST_PYTHON, python_tree, read_bytes

FORM = re.compile(r"(?P<place>.+):(?P<name>[A-Za-z_]\w*)(?P<call>\(.*\))?", re.DOTALL)
LONGEST = 4096  # letters of a name
WORDS = " -- "  # arguments after it are for the user's file
ZOOS = {"torchvision": "torch", "timm": "torch", "mindcv": "mindspore"}  # model zoo -> framework
OWN = "msmigrate"  # the place of msmigrate's own models, which exist for both frameworks
MOST = 6  # names that a message lists
# code in these folders is not the user's own
NOT_THEIRS = tuple(f"{folder}{os.sep}" for folder in (Path(__file__).parent, Path(os.__file__).parent))


class Spec(NamedTuple):
    """A parsed name: where the function is, its name, and the constant arguments to call it with.

    words: the command-line arguments for the file.
    """

    place: str
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    words: tuple[str, ...] = ()


class Stop(BaseException):
    """Raised inside of a user's file to end its import where it begins to train; not an Exception, so that the file
    does not catch it."""


def parse(text: str) -> Spec:
    """Parse `PLACE:NAME` or `PLACE:NAME(constants)`, and ` -- WORDS` after it; raises BadInput."""
    head, _, behind = text.partition(WORDS)
    match = FORM.fullmatch(head) if len(text) <= LONGEST else None
    try:
        if not match:
            raise ValueError
        words = tuple(shlex.split(behind))
        call = ast.parse(f"f{match['call'] or '()'}", mode="eval").body
        if not isinstance(call, ast.Call) or any(keyword.arg is None for keyword in call.keywords):
            raise ValueError
        args = tuple(ast.literal_eval(argument) for argument in call.args)
        kwargs = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        repr((args, kwargs))  # fails for numbers that are too long to print
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        shown = text if len(text) <= 200 else f"{text[:197]}..."
        raise BadInput(
            f"{shown!r} does not name a model: write torchvision:NAME, FILE.py:FUNCTION or MODULE:FUNCTION, "
            "with constant arguments as in torchvision:resnet50(num_classes=10)"
        ) from None
    return Spec(match["place"], match["name"], args, kwargs, words)


def with_words(text: str, words: Sequence[str]) -> str:
    """The name of a model with these command-line arguments for its file."""
    return f"{text}{WORDS}{shlex.join(words)}" if words else text


def names_a_model(word: Path | None) -> bool:
    """Whether an argument names a model, as `torchvision:NAME` or `FILE.py:FUNCTION`, and not a file."""
    return word is not None and not word.exists() and FORM.fullmatch(str(word)) is not None


def sizes_of(text: str) -> tuple[int, ...]:
    """The sizes in the text of an input, `1x3x224x224` or `1x16:int64`. Raises BadInput."""
    shape = text.partition(":")[0].replace("×", "x")
    parts = shape.split("x") if shape else []
    if not all(part.isdecimal() for part in parts):
        raise BadInput(f"--input {text}: expected sizes and perhaps a dtype, as in 1x3x224x224 or 1x16:int64")
    return tuple(map(int, parts))


def check(text: str, framework: str, *, called: bool = True) -> Spec:
    """Parse a name, and check by reading alone that it leads to a function: nothing is imported, and nothing runs.

    framework: "torch" or "mindspore", whose model it names. called: whether it is called with the arguments in the
    name, which then have to fit. A name that reading cannot decide passes, such as a function from `import *`. Raises
    BadInput.
    """
    spec = parse(text)
    zoo_framework = ZOOS.get(spec.place, framework)
    if zoo_framework != framework:
        wanted = {"torch": "torch", "mindspore": "MindSpore"}[framework]
        raise BadInput(f"{text} is not {wanted}'s: name a {wanted} model, as FILE.py:FUNCTION or MODULE:FUNCTION")
    if spec.place in ZOOS:
        _check_zoo(spec)
    elif spec.place != OWN:
        file = Path(spec.place) if spec.place.endswith(".py") else _file_of(spec.place)
        if file is not None:
            _check_function(file, spec, called)
    return spec


def _check_zoo(spec: Spec) -> None:
    """Raise BadInput where the package is not there, or has no such model anywhere in its source."""
    found = importlib.util.find_spec(spec.place)
    if found is None:
        raise BadInput(f"{spec.place} is not installed here: pip install {spec.place}")
    if any(re.search(rf"def {spec.name}\(|(['\"]){spec.name}\1", source) for source in _zoo_sources(found)):
        return
    if known := zoo_names(spec.place):
        raise BadInput(f"{spec.place} has no model {spec.name}{_near(spec.name, known, listed=False)}")


def zoo_names(zoo: str) -> set[str]:
    """The functions that may be models, in the source of torchvision or timm; none where that is not installed."""
    found = importlib.util.find_spec(zoo)
    sources = () if found is None else _zoo_sources(found)
    return {name for source in sources for name in re.findall(r"^def ([a-z]\w*)\(", source, re.MULTILINE)}


def _zoo_sources(found: importlib.machinery.ModuleSpec) -> Iterator[str]:
    for folder in found.submodule_search_locations or ():
        for file in Path(folder, "models").rglob("*.py"):
            yield file.read_text(encoding="utf-8", errors="replace")


def _file_of(place: str) -> Path | None:
    """The source file of a module, found as by `import` but without importing the packages around it; None where it has
    no readable source. Raises BadInput where there is no such module."""
    names = place.split(".")
    if not all(name.isidentifier() for name in names):
        raise BadInput(f"{place} is neither a Python file, which ends in .py, nor the name of a module")
    folders = [str(Path.cwd()), *sys.path]
    file: Path | None = None
    for count, name in enumerate(names, 1):
        whole = ".".join(names[:count])
        # by its last name only: for a dotted name a finder may import the packages around it
        found = importlib.machinery.PathFinder.find_spec(name, folders) or (_elsewhere(name) if count == 1 else None)
        if found is None:
            if file is not None and "sys.modules" in file.read_text(encoding="utf-8", errors="replace"):
                return None  # a module made by another, as os.path by os
            raise BadInput(f"there is no module {place}" + (f": {whole} is not there" if whole != place else ""))
        if found.origin is None:  # a namespace package, whose own list of folders would import the packages around it
            folders = [str(Path(folder, name)) for folder in folders if Path(folder, name).is_dir()]
        else:
            folders = list(found.submodule_search_locations or ())
        file = Path(found.origin) if found.origin and found.origin.endswith(".py") else None
    return file


def _elsewhere(name: str) -> importlib.machinery.ModuleSpec | None:
    """A top-level module that is not in a folder: a built-in one, or one from another finder."""
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def _check_function(file: Path, spec: Spec, called: bool) -> None:
    """Raise BadInput where a file cannot be read as Python, or its top level does not bind the function."""
    tree = _source(file)
    bound: dict[str, list[ast.AST]] = {}
    for name, node in _bindings(tree.body):
        bound.setdefault(name, []).append(node)
    nodes = bound.get(spec.name, [])
    if not nodes and not _binds_unseen(tree, spec.name, bound):
        made = [name for name, found in bound.items() if isinstance(found[0], (ast.FunctionDef, ast.ClassDef))]
        raise BadInput(f"{spec.place} has no function {spec.name}{_near(spec.name, made)}")
    if len(nodes) == 1 and called:
        _check_call(file, nodes[0], spec)


def _source(file: Path) -> ast.Module:
    """The syntax tree of a file. Raises BadInput with its line."""
    if file.is_dir():
        raise BadInput(f"{file} is a folder: name a Python file in it")
    try:
        return python_tree(read_bytes(file, LARGEST_PYTHON), str(file))
    except FileNotFoundError:
        raise BadInput(f"there is no file {file}") from None
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror or error}") from None
    except SyntaxError as error:
        raise BadInput(f"{file}:{error.lineno or 1}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadInput(f"{file} is not valid Python: {error or 'it is nested too deeply'}") from None


def _bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """(name, node that binds it) of all names that the top level binds, also under `if`, `try` and the like."""
    for node in nodes:
        inner: Iterable[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            inner = ()  # names bound inside are local
            if not isinstance(node, ast.Lambda):
                yield node.name, node
        elif isinstance(node, ast.If) and ast.unparse(node.test) in ("__name__ == '__main__'", "TYPE_CHECKING"):
            inner = node.orelse  # the body does not run when the file is imported
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name.partition(".")[0], node) for alias in node.names)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and len(node.targets) == 1:
            yield node.targets[0].id, node.value
            inner = [node.value]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name, node
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest, node
        yield from _bindings(inner)


def _binds_unseen(tree: ast.Module, name: str, bound: Container[str]) -> bool:
    """Whether a module may bind a name although its top level does not show it."""
    if "*" in bound or "__getattr__" in bound:
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.Global) and name in node.names:
            return True
        if isinstance(node, ast.Name) and node.id in ("exec", "globals", "locals", "vars"):
            return True
        if isinstance(node, ast.Attribute) and node.attr == "modules" and ast.unparse(node.value) == "sys":
            return True
    return False


COMPUTES = (
    "; a loss, or what else computes with tensors, is none that makes a model: call it in the forward of an nn.Module, "
    "and name that class"
)


def _check_call(file: Path, node: ast.AST, spec: Spec) -> None:
    """Raise BadInput where the only object that a name is bound to cannot be called with the arguments of the spec."""
    if isinstance(node, (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.AsyncFunctionDef)):
        kind = "an async function" if isinstance(node, ast.AsyncFunctionDef) else "no function"
        raise BadInput(f"{file}:{node.lineno}: {spec.name} is {kind}")
    makes = [node]
    if isinstance(node, ast.ClassDef) and not node.decorator_list and not node.keywords:
        makes = [each for each in node.body if getattr(each, "name", None) in ("__init__", "__new__")]
    if len(makes) != 1 or not isinstance(makes[0], ast.FunctionDef) or makes[0].decorator_list:
        return
    given, place = makes[0].args, f"{file}:{makes[0].lineno}: {spec.name}"
    own = 1 if isinstance(node, ast.ClassDef) else 0  # self
    ordered = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    by_name = [argument.arg for argument in (*given.args, *given.kwonlyargs)][own:]
    required = ordered[: len(ordered) - len(given.defaults)][own + len(spec.args) :]
    required += [a.arg for a, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value is None]
    if own + len(spec.args) > len(ordered) and given.vararg is None:
        raise BadInput(f"{place} takes at most {len(ordered) - own} arguments by position, and gets {len(spec.args)}")
    unknown = [name for name in spec.kwargs if name not in by_name]
    if unknown and given.kwarg is None:
        raise BadInput(f"{place} has no argument {unknown[0]}{_near(unknown[0], by_name)}")
    missing = [name for name in required if name not in spec.kwargs]
    if missing:
        computes = "" if own or len(missing) < 2 else COMPUTES
        raise BadInput(f"{place} needs {missing[0]}: give it, as in {spec.place}:{spec.name}({missing[0]}=…){computes}")


def _near(name: str, known: Iterable[str], *, listed: bool = True) -> str:
    """The known names that look like one, or the first of all, as the end of a message."""
    names = [each for each in known if not each.startswith("_")]
    if near := difflib.get_close_matches(name, names, n=3):
        return f"; did you mean {', '.join(near)}?"
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return f"; it has {', '.join(names[:MOST])}{more}" if listed and names else ""


def called(spec: Spec, found: Callable[..., Any] | None = None) -> Any:
    """The function's result; it is imported unless given as `found`. Raises BadInput."""
    made = found or function(spec)
    with _command_line(spec):
        args, kwargs = copy.deepcopy((spec.args, dict(spec.kwargs)))  # a class may change a list that it is given
        return made(*args, **kwargs)


def function(spec: Spec, notes: list[str] | None = None) -> Callable[..., Any]:
    """Import the file or module and return the function; raises BadInput when there is none.

    notes: gets a sentence where the file failed after it had defined the function; without notes, such a file is
    refused with its own error.
    """
    if spec.place.endswith(".py"):
        path = Path(spec.place).resolve()
        if not path.is_file():
            raise BadInput(f"there is no file {spec.place}")
        sys.path.insert(0, str(path.parent))  # so that the file can import its neighbours, as when it is run
        package = _package(path)
        if package is not None:  # so that it can also import `.name`
            sys.path.insert(0, str(path.parents[len(package) - 1]))
            with _command_line(spec):
                return _function(importlib.import_module(".".join(package)), spec)
        loader = importlib.util.spec_from_file_location(path.stem, path)
        if loader is None or loader.loader is None:
            raise BadInput(f"cannot import {spec.place}")
        module = importlib.util.module_from_spec(loader)
        sys.modules[path.stem] = module
        if notes is not None:
            _run_file(loader.loader, module, spec, notes)
        else:
            with _command_line(spec):
                loader.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        try:
            with _command_line(spec):
                module = importlib.import_module(spec.place)
        except ModuleNotFoundError as error:
            if error.name and (spec.place == error.name or spec.place.startswith(f"{error.name}.")):
                raise BadInput(f"there is no module {spec.place}") from None
            raise
    return _function(module, spec)


def _run_file(loader: Any, module: ModuleType, spec: Spec, notes: list[str]) -> None:
    """Run a file as far as possible: it is enough if it defines the function before it trains or fails."""
    try:
        with _command_line(spec):
            loader.exec_module(module)
    except (Stop, Exception) as error:
        line = next(
            (f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == module.__file__), None
        )
        if isinstance(error, (BadInput, SyntaxError)) or line is None:
            raise
        why = str(error) if isinstance(error, Stop) else f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        why += "" if isinstance(error, Stop) else place_of(error)
        if callable(getattr(module, spec.name, None)):
            notes.append(f"{spec.place} was run only up to line {line}, after the definition of {spec.name}: {why}")
            return
        if isinstance(error, ImportError):
            raise
        notes.append(f"{spec.place}:{line} was left out, and what depends on it before {spec.name} is defined: {why}")
        if not _run_on(module, spec, line):
            below = 'move training and reading of data below `if __name__ == "__main__":`'
            raise BadInput(f"{spec.place}:{line}: {why}; and without it {spec.name} is not defined: {below}") from None


def _run_on(module: ModuleType, spec: Spec, line: int) -> bool:
    """Run the statements after a line until the function is defined; statements that fail, as those that depend on the
    failed one, are skipped. Returns whether the function is defined then."""
    tree = _source(Path(spec.place))
    future = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    for statement in tree.body:
        if statement.lineno <= line:
            continue
        code = compile(ast.Module([*future, statement], []), str(module.__file__), "exec", dont_inherit=True)
        with suppress(Stop, Exception), _command_line(spec):
            exec(code, vars(module))  # as in its import
        if callable(getattr(module, spec.name, None)):
            return True
    return False


@contextmanager
def _command_line(spec: Spec) -> Iterator[None]:
    """Give the user's file its own command-line arguments, not msmigrate's. Raises BadInput where it needs others."""
    before, refuse = sys.argv, argparse.ArgumentParser.error

    def refused(self: argparse.ArgumentParser, message: str) -> NoReturn:
        lines = (f.lineno for f in traceback.extract_stack() if Path(f.filename).name == Path(spec.place).name)
        line = next((f":{line}" for line in lines), "")
        raise BadInput(
            f"{spec.place}{line} reads a command line, and reports: {message}. Give its arguments after --, as in "
            f"{spec.place}:{spec.name}{WORDS}--name value"
        )

    sys.argv = [spec.place, *spec.words]
    setattr(argparse.ArgumentParser, "error", refused)  # noqa: B010  (a type checker knows no other way)
    try:
        yield
    except SystemExit as error:
        raise BadInput(f"{spec.place} exits Python, with {error.code!r}{place_of(error)}") from None
    finally:
        sys.argv, argparse.ArgumentParser.error = before, refuse  # type: ignore[method-assign]


def _function(module: Any, spec: Spec) -> Callable[..., Any]:
    found = getattr(module, spec.name, None)
    if not callable(found):
        raise BadInput(f"{spec.place} has no function {spec.name}")
    return found


def _package(path: Path) -> list[str] | None:
    """The names of the packages around a file, and its own; None where it is in no package."""
    names = [path.stem] if path.stem != "__init__" else []
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    return names if len(names) > (path.stem != "__init__") and path.stem.isidentifier() else None


def ask(worker: str, spec: str, what: str, *more: str) -> dict[str, Any]:
    """Run `python -m msmigrate.migrate.WORKER SPEC MORE…` and return its report.

    Raises BadInput for a name that does not lead to a model; WorkerFailed, with the last line of the error, for any
    other failure.
    """
    parse(spec)
    try:
        check(spec, "mindspore" if "mindspore" in worker else "torch")
    except BadInput as error:
        raise BadInput(f"{what} {spec}: {error}") from None
    return ask_worker(worker, [spec, *more], f"{what} {spec}")


_hosts: ContextVar[dict[tuple[str, str], Any] | None] = ContextVar("_hosts", default=None)
HOST = "--host"  # a worker with it imports the module of the next argument, and does jobs from stdin


@contextmanager
def one_start() -> Iterator[None]:
    """While the block runs, all workers of a framework share one process, which imports it once.

    Each job runs in a fork of it, so that none sees the effects of another. A nested block uses the process of the
    outer one.
    """
    if _hosts.get() is not None:
        yield
        return
    with ExitStack() as at_end:
        hosts: dict[tuple[str, str], Any] = {}
        token = _hosts.set(hosts)
        at_end.callback(_hosts.reset, token)
        at_end.callback(lambda: [host.__exit__() for host in hosts.values()])
        yield


def ask_worker(worker: str, words: Sequence[str], what: str, seconds: float | None = None) -> dict[str, Any]:
    """Run `python -m msmigrate.migrate.WORKER WORDS…` for at most `seconds`, and return its report.

    what: the beginning of an error's text. Raises the worker's own error from errors.py, or WorkerFailed.
    """
    from ..workers import parent  # not above: code that only parses names does not need it

    command = [sys.executable, "-m", f"msmigrate.migrate.{worker}"]
    hosts = _hosts.get()
    try:
        if hosts is None or seconds is not None:
            answer = parent.call(what, [*command, *words], timeout=seconds)
        else:
            answer = _hosted(hosts, worker, command, words, what)
    except parent.Silent:
        raise WorkerFailed(f"{what} failed: it was stopped after {seconds:g} s") from None
    except parent.Stopped as error:
        raise WorkerFailed(f"{what} failed: {error.how}") from None
    except WorkerFailed:
        raise
    except MsmigrateError as error:
        raise type(error)(f"{what}: {error}") from None
    if not isinstance(answer, dict):
        raise WorkerFailed(f"{what} failed: it gave no answer")
    return answer


def _hosted(hosts: dict[tuple[str, str], Any], worker: str, command: list[str], words: Sequence[str], what: str) -> Any:
    """Run a job in the process for the worker's framework and the model zoo; a process that fails is ended."""
    from ..workers.parent import Host

    zoo = words[0].partition(":")[0]
    kind = ("mindspore" if "mindspore" in worker else "torch", zoo if zoo in ZOOS else "")
    if kind not in hosts:
        hosts[kind] = Host([*command, HOST, kind[1]])
    try:
        return hosts[kind].call(what, [worker, *words])
    except BaseException:
        hosts.pop(kind).__exit__()
        raise


def serve(report: Callable[..., dict[str, Any]]) -> None:
    """Run as the worker: send the report for the command-line arguments, and end the process; after HOST, send one for
    each job that comes, in a fork."""
    from ..workers.worker import answer, answer_each

    if sys.argv[1:2] != [HOST]:
        answer(lambda: report(*sys.argv[1:]), place_of)
    with suppress(Exception):  # each job reports it better
        importlib.import_module(sys.argv[2])
    answer_each(_forked)


def _forked(words: list[str]) -> NoReturn:
    """Run as another worker, in a fork of a host."""
    from ..workers.worker import answer

    sys.argv[:] = [sys.argv[0], *words[1:]]
    answer(lambda: importlib.import_module(f"msmigrate.migrate.{words[0]}").report(*words[1:]), place_of)


def place_in_model(error: BaseException) -> str:
    """The same for an error of a step; empty where it is in no code of the user's."""
    ours = tuple(f"{Path(__file__).parents[1] / room}{os.sep}" for room in ("parity", "training", "workers", "nn"))
    frames = traceback.extract_tb(error.__traceback__)
    return place_of(error) if any(_is_users(frame.filename, ours) for frame in frames) else ""


def _is_users(file: str, ours: tuple[str, ...] = ()) -> bool:
    """Whether a file is neither a library's nor one of msmigrate's that run the model."""
    return not file.startswith(("<", *NOT_THEIRS, *ours)) and "site-packages" not in Path(file).parts


def place_of(error: BaseException) -> str:
    """The place in the user's own code where it stopped: its last line that ran, not that of a library."""
    if isinstance(error, SyntaxError):
        return ""  # its own text names the place
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_users(frame.filename)]
    frame = (own or frames)[-1:]
    return f" ({Path(frame[0].filename).name}, line {frame[0].lineno})" if frame else ""
