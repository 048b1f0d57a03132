"""The way a model is named on the command line, and the worker processes that build it.

    torchvision:resnet50                     a model of torchvision (torch only)
    path/to/model.py:function                a function in a file, called without arguments
    package.module:function                  the same in an installed package
    …(num_classes=10)                        any of them with constant arguments

Naming a function runs it: that is what --model and --into ask for, and the only way msmigrate runs foreign code.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .. import processes
from ..errors import BadInput, WorkerFailed

FORM = re.compile(r"(?P<place>.+):(?P<name>[A-Za-z_]\w*)(?P<call>\(.*\))?", re.DOTALL)
LONGEST = 4096  # letters of a name
# a line of code in one of these is not the user's own
NOT_THEIRS = tuple(f"{folder}{os.sep}" for folder in (Path(__file__).parent, Path(os.__file__).parent))


class Spec(NamedTuple):
    """A parsed name: where the function is, what it is called, and the constant arguments to call it with."""

    place: str
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def parse(text: str) -> Spec:
    """Parse `PLACE:NAME` or `PLACE:NAME(constants)`; raises BadInput."""
    match = FORM.fullmatch(text) if len(text) <= LONGEST else None
    try:
        if not match:
            raise ValueError
        call = ast.parse(f"f{match['call'] or '()'}", mode="eval").body
        if not isinstance(call, ast.Call) or any(keyword.arg is None for keyword in call.keywords):
            raise ValueError
        args = tuple(ast.literal_eval(argument) for argument in call.args)
        kwargs = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        repr((args, kwargs))  # Python does not print every number that it reads
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        shown = text if len(text) <= 200 else f"{text[:197]}..."
        raise BadInput(
            f"{shown!r} does not name a model: write torchvision:NAME, FILE.py:FUNCTION or MODULE:FUNCTION, "
            "with constant arguments as in torchvision:resnet50(num_classes=10)"
        ) from None
    return Spec(match["place"], match["name"], args, kwargs)


def function(spec: Spec) -> Callable[..., Any]:
    """Import the file or module and return the function; raises BadInput when there is none."""
    if spec.place.endswith(".py"):
        path = Path(spec.place).resolve()
        if not path.is_file():
            raise BadInput(f"there is no file {spec.place}")
        sys.path.insert(0, str(path.parent))  # so that the file finds its neighbours, as when it is run
        package = _package(path)
        if package is not None:  # and those that it imports as `.name`
            sys.path.insert(0, str(path.parents[len(package) - 1]))
            return _function(importlib.import_module(".".join(package)), spec)
        loader = importlib.util.spec_from_file_location(path.stem, path)
        if loader is None or loader.loader is None:
            raise BadInput(f"cannot import {spec.place}")
        module = importlib.util.module_from_spec(loader)
        sys.modules[path.stem] = module
        loader.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        try:
            module = importlib.import_module(spec.place)
        except ModuleNotFoundError as error:
            if error.name and (spec.place == error.name or spec.place.startswith(f"{error.name}.")):
                raise BadInput(f"there is no module {spec.place}") from None
            raise
    return _function(module, spec)


def _function(module: Any, spec: Spec) -> Callable[..., Any]:
    found = getattr(module, spec.name, None)
    if not callable(found):
        raise BadInput(f"{spec.place} has no function {spec.name}")
    return found


def _package(path: Path) -> list[str] | None:
    """The names of the packages in which a file stands, and its own; None where it stands in none."""
    names = [path.stem] if path.stem != "__init__" else []
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    return names if len(names) > (path.stem != "__init__") and path.stem.isidentifier() else None


def ask(worker: str, spec: str, what: str, *more: str) -> dict[str, Any]:
    """Run `python -m msmigrate.migrate.WORKER SPEC MORE…` and return what it reports.

    Raises BadInput for a name that does not lead to a model, WorkerFailed with the last line of its error otherwise.
    """
    parse(spec)
    return ask_worker(worker, [spec, *more], f"{what} {spec}")


def ask_worker(worker: str, words: Sequence[str], what: str, seconds: float | None = None) -> dict[str, Any]:
    """Run `python -m msmigrate.migrate.WORKER WORDS…`, at most so many seconds, and return what it reports.

    what: the words that begin the error's text. Raises BadInput and WorkerFailed.
    """
    command = [sys.executable, "-m", f"msmigrate.migrate.{worker}", *words]
    try:
        done = processes.run(command, seconds)
    except subprocess.TimeoutExpired:
        raise WorkerFailed(f"{what} failed: it was stopped after {seconds:g} s") from None
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise WorkerFailed(f"{what} failed: {lines[-1] if lines else f'exit code {done.returncode}'}") from None
    if "bad_input" in answer:
        raise BadInput(f"{what}: {answer['bad_input']}")
    if "failed" in answer:
        raise WorkerFailed(f"{what} failed: {answer['failed']}")
    return answer


def serve(report: Callable[..., dict[str, Any]]) -> None:
    """Be the worker: print the report on the command line's words as one line of JSON, and end the process.

    Whatever the model's code prints goes to stderr, so that the answer stands alone on stdout.
    """
    out = os.dup(1)
    os.dup2(2, 1)
    try:
        answer = report(*sys.argv[1:])
    except BadInput as error:
        answer = {"bad_input": str(error)}
    except Exception as error:  # the user's own code may fail in any way
        answer = {"failed": " ".join(f"{type(error).__name__}: {error}".split())[:500] + place_of(error)}
    os.write(out, (json.dumps(answer) + "\n").encode())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # MindSpore prints noise when it is torn down


def place_of(error: BaseException) -> str:
    """Say where the user's own code stopped: its last line that ran, not the library's that it called."""
    if isinstance(error, SyntaxError):
        return ""  # its text says
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [
        frame
        for frame in frames
        if not frame.filename.startswith(("<", *NOT_THEIRS)) and "site-packages" not in Path(frame.filename).parts
    ]
    frame = (theirs or frames)[-1:]
    return f" ({Path(frame[0].filename).name}, line {frame[0].lineno})" if frame else ""
