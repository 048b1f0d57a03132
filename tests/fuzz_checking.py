"""What has to hold of every reader, whatever its input holds; fuzz_readers.py knows the readers.

An input is read, or refused with a MsmigrateError in one line of bounded length: no other exception, no more than five
seconds of the processor, no hundreds of megabytes, and nothing happens: no module of the input's folder is imported, no
file made, no socket opened and no process started. `check` reads one input in this process; `outcomes` has a process of
its own read many, whose death is an outcome too.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import fuzz_readers  # it says where the others lie

# isort: split
import fuzz_check
import fuzz_inputs
from fuzz_check import Outcome, limits
from fuzz_damage import CANARY
from fuzz_readers import CHECKPOINTS, KINDS, Kind, case
from msmigrate.errors import MsmigrateError
from msmigrate.printable import printable

MEMORY = 500 << 20  # bytes that an input may make the process grow by
PATIENCE = 300  # seconds without a sign of life


def check(kind: str, seed: int, number: int, folder: Path) -> Outcome:
    """Read one input in an empty folder, which is emptied again, and look at all that must hold."""
    if kind in CHECKPOINTS:
        checkpoint = fuzz_inputs.case(kind, seed, number)
        with canaries(folder) as sung:
            outcome = fuzz_check.check(checkpoint, folder)
        return outcome._replace(complaint=outcome.complaint or _song(sung, folder))
    made = KINDS[kind]
    content = case(kind, seed, number)
    path = folder / made.name
    name = _put(path, content, number if made.opens else 0)
    (folder / "canary.py").write_text(f"open({str(folder / 'imported')!r}, 'w')\n")
    resident = fuzz_check.forget_peak()
    started = time.process_time()
    with canaries(folder) as sung:
        outcome = _tried(made, path)
    seconds, memory = time.process_time() - started, max(0, fuzz_check.peak() - resident)
    kind_of, complaint, text = outcome
    if kind_of == "read" and name != "file":
        complaint = complaint or f"it reads {name}"
    if memory > MEMORY:
        complaint = complaint or f"it takes {memory >> 20} MB"
    complaint = complaint or _song(sung, folder, {made.name, "canary.py"})
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    return Outcome(kind_of, seconds, memory, complaint, text)


def _tried(made: Kind, path: Path) -> tuple[str, str | None, str]:
    """The kind of outcome, what is wrong about it, and the message."""
    try:
        with limits(MEMORY), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.read(path)
        return "read", None, ""
    except MsmigrateError as error:
        text = printable(str(error))
        wrong = None if text.isprintable() and 0 < len(text) < fuzz_check.LONGEST else f"its message: {text[:300]!a}"
        return type(error).__name__, wrong, text
    except fuzz_check.Hang:
        return "hang", f"it takes longer than {fuzz_check.SECONDS} s", ""
    except BaseException:
        return "crash", traceback.format_exc(limit=-6), ""


def _song(sung: list[str], folder: Path, known: set[str] = frozenset()) -> str | None:  # type: ignore[assignment]
    """What came to life, in words."""
    left = sorted(entry.name for entry in folder.iterdir() if entry.name not in known)
    elsewhere = [place for place in ("/tmp/canary", "canary") if Path(place).exists()]
    if not sung and not left and not elsewhere:
        return None
    return f"it did {', '.join(sung[:3]) or 'nothing by itself'}; left behind: {left + elsewhere}"


def _put(path: Path, content: bytes, number: int) -> str:
    """Put a file there; now and then something that is none, which its name says."""
    odd = {17: "a pipe", 42: "a device", 67: "a folder"}.get(number % 100, "file")
    if odd == "a pipe":
        os.mkfifo(path)
    elif odd == "a device":
        path.symlink_to("/dev/zero")
    elif odd == "a folder":
        path.mkdir()
    else:
        path.write_bytes(content)
    return odd


_HEARD: list[list[str]] = []  # the innermost list of what is told while canaries listen
_FOLDERS: list[str] = []
_INSTALLED = False


@contextmanager
def canaries(folder: Path) -> Iterator[list[str]]:
    """Listen while the block runs: to processes, sockets, imports from the folder, and files written elsewhere."""
    global _INSTALLED
    if not _INSTALLED:
        sys.addaudithook(_listen)
        _INSTALLED = True
    heard: list[str] = []
    _HEARD.append(heard)
    _FOLDERS.append(str(folder))
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield heard
    finally:
        os.chdir(here)
        sys.path[:] = before
        _FOLDERS.pop()
        _HEARD.pop()
        sys.modules.pop(CANARY, None)


STARTS = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn", "ctypes.dlopen")


def _listen(event: str, args: tuple[Any, ...]) -> None:
    if not _HEARD:
        return
    told = ""
    if event == "subprocess.Popen":
        told = "" if any("pattern_worker.py" in str(word) for word in args[1] or ()) else f"start {args[1]!r:.100}"
    elif (event in STARTS and args != (None,)) or event.startswith("socket."):  # ctypes.dlopen(None) is this process
        told = f"{event} {args!r:.100}"
    elif event == "import" and args[0] == CANARY:
        told = "import canary"
    elif event == "open" and isinstance(args[0], (str, bytes)) and _writes(args):
        name = str(Path(os.fsdecode(args[0])).absolute())
        nameless = Path(name).is_dir()  # O_TMPFILE, or a temporary file without a name, which goes with the process
        here = name.startswith((*_FOLDERS, "/dev/null", "/proc/self"))
        told = "" if here or nameless else f"write {name[:100]}"
    if told:
        _HEARD[-1].append(told)


def _writes(args: tuple[Any, ...]) -> bool:
    mode, flags = args[1], args[2] if len(args) > 2 and isinstance(args[2], int) else 0
    named = isinstance(mode, str) and any(letter in mode for letter in "wax+")
    return named or bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


# Many inputs -------------------------------------------------------------------------------------------------------


def outcomes(kind: str, seed: int, numbers: range, keep: Path) -> Iterator[tuple[int, Outcome]]:
    """Number and outcome of every input; of one at which the process dies, or hangs for good, that it does."""
    at = numbers.start
    while at < numbers.stop:
        mine, other = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.Process(target=_work, args=(kind, seed, range(at, numbers.stop), keep, other))
        process.start()
        other.close()
        try:
            while at < numbers.stop and mine.poll(PATIENCE):
                yield at, Outcome(*mine.recv())
                at += 1
            if at < numbers.stop:
                yield at, Outcome("hang", PATIENCE, 0, "the process gives no sign of life")
                at += 1
        except EOFError:
            process.join()
            yield at, Outcome("crash", 0, 0, f"the process died with {process.exitcode}")
            at += 1
        finally:
            process.kill()
            process.join()


def _work(kind: str, seed: int, numbers: range, keep: Path, told: Connection) -> None:
    with fuzz_readers.scratch() as folder:
        for number in numbers:
            outcome = check(kind, seed, number, folder)
            if outcome.complaint:
                _keep(kind, seed, number, outcome.complaint, keep)
            told.send(outcome)


def _keep(kind: str, seed: int, number: int, complaint: str, keep: Path) -> None:
    folder = keep / f"{kind} {seed} {number}"
    if kind in CHECKPOINTS:
        fuzz_check.keep(fuzz_inputs.case(kind, seed, number), complaint, folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / KINDS[kind].name).write_bytes(case(kind, seed, number))
    (folder / "complaint.txt").write_text(complaint)
