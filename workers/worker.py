"""The worker's end: read the job, keep stdout for messages, report a failure as its class, and leave.

A worker of MindSpore calls prepare_mindspore() first, while MindSpore is still unimported; one of torch leaves torch's
compiler out until somebody compiles. This file imports no framework.

if __name__ == "__main__":
    run(main, Job.read)
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, TypeVar

from ..errors import MsmigrateError, Unsupported, WorkerFailed
from ..processes import in_a_fork
from .messages import DONE, Event, Failure, Message, Progress, Ready, Result, State, encode

LOOK = 0.02  # seconds between two looks for a file
IDLE = object()  # where nothing is left to do
Job = TypeVar("Job")
COMPILER = "torch._dynamo"
UTILITIES = f"{COMPILER}.utils"

# MindSpore's CPU convolution with a kernel above 1x1 was measured 30 times slower than it need be on a machine with
# AMX when oneDNN picks its instruction set itself; limited to AVX2 it is as quick as PyTorch's. Only the MindSpore
# process gets this: PyTorch reads the same variable and would become slower.
INSTRUCTION_SET = ("ONEDNN_MAX_CPU_ISA", "AVX2")

# 3 is errors only: MindSpore otherwise prints a warning for every deprecated alias that its own layers still use.
LOG_LEVEL = ("GLOG_v", "3")

_messages: int | None = None  # the descriptor that the parent reads; None where a worker's code runs anywhere else


def _nowhere(error: Exception) -> str:
    return ""


def run(
    main: Callable[[Job], Any], read: Callable[[Path], Job], where: Callable[[Exception], str] = _nowhere
) -> NoReturn:
    """Be a worker: call main with the job that `read` makes of the file on the command line, and end the process.

    What main returns, if not None, is sent as the result. The exit code is 0, or 2 where it raised. where: as `answer`
    takes it.
    """
    answer(lambda: main(read(Path(sys.argv[1]))), where)


def answer(work: Callable[[], Any], where: Callable[[Exception], str] = _nowhere) -> NoReturn:
    """Do the work as a worker, whose job is not in a file: what it returns, if not None, is sent as the result.

    where: gives the line of the user's own code that raised an error.
    """
    listen()
    code = 0
    try:
        result = work()
        if result is not None:
            send(Result(result))
    except MsmigrateError as error:
        fail(error)
        code = 2
    except Exception as error:  # a framework, or the user's own code, may fail in any way
        traceback.print_exc()
        fail(error, where(error))
        code = 2
    leave(code)


def answer_each(work: Callable[[list[str]], NoReturn]) -> NoReturn:
    """Be the worker of parent.Host: do the job of every line of stdin, its words as JSON, in a fork of this process.

    Jobs do not import again what this process has imported, and do not see what other jobs change. The first job that
    fails ends this process in the same way.
    """
    listen()
    for line in sys.stdin:
        status = in_a_fork(partial(_job, work, json.loads(line)))
        if status < 0:
            os.kill(os.getpid(), -status)
        if status:
            leave(status)
        send(Event(DONE))
    leave()


def _job(work: Callable[[list[str]], NoReturn], words: list[str]) -> NoReturn:
    """Do a job without a stdin: this process's stdin has the other jobs."""
    sys.stdin = Path(os.devnull).open()  # noqa: SIM115  (for as long as the process runs)
    os.dup2(sys.stdin.fileno(), 0)
    work(words)


def listen() -> None:
    """Keep stdout for messages: whatever a framework or a user's model prints goes to stderr from here on."""
    global _messages
    if _messages is None:
        sys.stdout.flush()
        _messages = os.dup(1)
        os.dup2(2, 1)
    if "torch" in sys.modules:
        defer_compiler()


def send(message: Message) -> None:
    """Tell the process that started this one; nothing happens where none did."""
    if _messages is not None:
        left = encode(message).encode()
        while left:
            left = left[os.write(_messages, left) :]


def progress(what: str, state: State = State.WORKING, done: int | None = None, total: int | None = None) -> None:
    """Report what begins now, or how far it is."""
    send(Progress(what, state, done, total))


def ready(file: Path) -> None:
    """Say that a file is in place."""
    send(Ready(file.name))


def fail(error: Exception, where: str = "") -> None:
    """Say why this worker stops."""
    send(Failure(type(error).__name__, str(error), where))


def leave(status: int = 0) -> NoReturn:
    """End this process at once with `status`, after its output is flushed.

    MindSpore's own shutdown prints hundreds of harmless errors and can end with a signal although all went well.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _nothing() -> Generator[object, None, None]:
    yield from ()


def wait_for(path: Path, meanwhile: Generator[object, None, None] | None = None) -> Path:
    """Wait until another process has put `path` in place; raises WorkerFailed when the parent is gone.

    meanwhile: does a little each time that it is asked for its next, and is closed then.
    There is no deadline: the parent ends its workers when one of them fails, and a worker run by hand may wait for a
    trace that comes from another machine.
    """
    parent = os.getppid()
    with closing(meanwhile or _nothing()) as work:
        while not path.exists():
            if os.getppid() != parent:
                raise WorkerFailed(f"the process that waited for {path} is gone")
            if next(work, IDLE) is IDLE:
                time.sleep(LOOK)
    return path


# What is set before MindSpore is imported


def prepare_mindspore() -> None:
    """Set the environment that MindSpore reads at import; a variable the user has set already is left alone.

    Raises Unsupported under NumPy 2: MindSpore 2.10 is built against NumPy 1.x and fails there at some later,
    unrelated line, once, so that the failure looks like a fault of the model.
    """
    import numpy  # not above: what this file says of the environment is wanted where NumPy is missing, too

    if int(numpy.__version__.split(".")[0]) >= 2:
        raise Unsupported(
            f"MindSpore 2.10 is built against NumPy 1.x and this is NumPy {numpy.__version__}: pip install 'numpy<2'"
        )
    for variable, value in (INSTRUCTION_SET, LOG_LEVEL):
        os.environ.setdefault(variable, value)


# torch's compiler, not imported until somebody compiles


def defer_compiler() -> None:
    """Let torch's compiler be imported when it is used; of a process that has it already nothing changes.

    Its import takes nearly as long as all the rest of torch's. Every step of an optimizer imports it, to say where it
    must not look, and so does torchvision. While nobody compiles nothing has to look away, so a module stands in its
    place that takes these calls. Whoever uses anything else of it, or one of its parts, gets torch's own, which from
    then on is there as if it had been imported first.
    """
    if COMPILER in sys.modules:
        return
    spec = find_spec(COMPILER)
    if spec is not None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
        sys.modules[COMPILER] = _Deferred(finder, spec, graph_break=_no_break, disable=finder.disable)
        sys.modules[UTILITIES] = _Deferred(finder, PathFinder.find_spec(UTILITIES, spec.submodule_search_locations))


def _no_break(*args: Any, **kwargs: Any) -> None:
    """Nothing is traced that could be broken off."""


class _Deferred(ModuleType):
    """A module in the place of torch's; says: what it can answer itself until that is there."""

    def __init__(self, finder: _Finder, spec: ModuleSpec | None, **says: Callable[..., Any]) -> None:
        assert spec is not None
        super().__init__(spec.name)
        about: dict[str, Any] = {"__spec__": spec, "__file__": spec.origin, "__path__": [], "_finder": finder}
        vars(self).update(about, **says)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # which who goes through all modules asks
            raise AttributeError(name)
        if (self.__name__, name) == (UTILITIES, "is_compile_supported") and self._finder.waits:  # torchvision keeps it
            return lambda *args: getattr(self._finder.own(UTILITIES), name)(*args)
        return getattr(self._finder.own(self.__name__), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            vars(self)[name] = value
        else:
            setattr(self._finder.own(self.__name__), name, value)


class _Finder(MetaPathFinder, Loader):
    """Finds the compiler's parts, each as it is once torch's own is imported."""

    def __init__(self) -> None:
        self.disabled: list[Any] = []  # functions that torch keeps from it
        self.specs: dict[str, ModuleSpec | None] = {}

    @property
    def waits(self) -> bool:
        """Whether torch's own is still to be imported."""
        return self in sys.meta_path

    def own(self, name: str) -> ModuleType:
        """torch's own module of a name, imported now."""
        if self.waits:
            sys.meta_path.remove(self)
            for stand_in in (sys.modules.pop(COMPILER), sys.modules.pop(UTILITIES)):
                for said in ("graph_break", "disable"):
                    vars(stand_in).pop(said, None)
            for function in self.disabled:  # of which torch has noted that they need no further word
                vars(function).pop("__dynamo_disable", None)
            importlib.import_module(COMPILER)
        return importlib.import_module(name)

    def disable(self, fn: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The function as it is, for torch's own files; anybody else means the compiler."""
        if not callable(fn) or sys._getframe(1).f_globals.get("__name__") != "torch._compile":
            return self.own(COMPILER).disable(fn, *args, **kwargs)
        self.disabled.append(fn)
        return fn

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of a part, which is imported with the compiler or on its own."""
        if not fullname.startswith(f"{COMPILER}."):
            return None
        whole = self.own(COMPILER)
        if fullname not in sys.modules:
            return PathFinder.find_spec(fullname, whole.__path__)
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The part that is there."""
        found = sys.modules[spec.name]
        self.specs[spec.name] = found.__spec__
        return found

    def exec_module(self, module: ModuleType) -> None:
        """It has run; its spec is its own again."""
        module.__spec__ = self.specs[module.__name__]
