"""The processes of one job on this machine, seen through /proc: which there are, how one died, and ending them all.

MindSpore's launcher puts every rank in a session of its own and looks at them once a second, and when one dies it waits
a minute for its scheduler. So the ranks are watched here. All processes of a job carry its token in their environment,
which they pass on to whatever they start.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOKEN = "MSMIGRATE_JOB"
LAUNCHER = "MSMIGRATE_LAUNCHER"  # the process to outlive which there is no reason
SHARES = "MSMIGRATE_SHARES"  # among how many processes the processor cores of this machine are divided
SCHEDULER = -1
PROC = Path("/proc")
PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def end_with_parent() -> None:
    """Have the kernel kill this process when the one that started it ends, however that ends."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def end_with_launcher() -> None:
    """The same for a grandchild of the launcher, whose parent may have gone already."""
    end_with_parent()
    launcher = os.environ.get(LAUNCHER)
    if launcher is not None and not (PROC / launcher).exists():
        os._exit(1)


@dataclass
class Rank:
    """A rank's process, or the scheduler's. code: its exit code, or minus its signal, once it has died and that is
    known."""

    pid: int
    started: str
    dead: bool = False
    code: int | None = None


class Ranks:
    """The ranks that a launcher process has started, by rank; the scheduler stands under SCHEDULER."""

    def __init__(self, launcher: int, expected: set[int]) -> None:
        self.launcher = launcher
        self.expected = expected
        self.found: dict[int, Rank] = {}

    def look(self) -> None:
        """Find those that are new, and see which have died."""
        if not self.expected <= self.found.keys():
            self._find()
        for rank in self.found.values():
            if not rank.dead:
                _see(rank)

    def alive(self) -> list[int]:
        """The process ids of those that have not died, without the scheduler."""
        return [rank.pid for number, rank in self.found.items() if not rank.dead and number != SCHEDULER]

    def unknown_dead(self) -> list[int | None]:
        """How those of the launcher's children ended that died before they were seen; a dead one no longer tells its
        rank."""
        known = {rank.pid for rank in self.found.values()}
        lost = [
            Rank(pid, fields[STARTED])
            for pid, fields in _processes()
            if int(fields[PARENT]) == self.launcher and pid not in known and fields[STATE] in "ZX"
        ]
        for rank in lost:
            _see(rank)
        return [rank.code for rank in lost]

    def _find(self) -> None:
        known = {rank.pid for rank in self.found.values()}
        for pid, fields in _processes():
            if int(fields[PARENT]) != self.launcher or pid in known:
                continue
            environment = _environment(pid)
            role, number = environment.get("MS_ROLE"), environment.get("RANK_ID", "")
            if role == "MS_SCHED":
                self.found[SCHEDULER] = Rank(pid, fields[STARTED])
            elif role == "MS_WORKER" and number.isdigit():
                self.found[int(number)] = Rank(pid, fields[STARTED])


def end_all(token: str, patience: float = 10.0) -> list[int]:
    """Kill every process that carries the token; returns those that are still there after `patience` seconds."""
    deadline = time.monotonic() + patience
    while True:
        there = [pid for pid, _ in _processes() if pid != os.getpid() and _environment(pid).get(TOKEN) == token]
        if not there or time.monotonic() > deadline:
            return there
        for pid in there:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.05)


# fields of /proc/PID/stat, counted from the one after the name, which may contain anything (proc(5))
STATE, PARENT, STARTED, EXIT_CODE = 0, 1, 19, 49


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Every process of this machine: its id, and the fields of its stat."""
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields is not None:
                yield int(entry.name), fields


def _stat(pid: int) -> list[str] | None:
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _environment(pid: int) -> dict[str, str]:
    """With what environment a process was started; nothing for one that has died or is another user's."""
    try:
        raw = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.partition(b"=") for item in raw.split(b"\0"))
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs if name}


def _see(rank: Rank) -> None:
    fields = _stat(rank.pid)
    if fields is None or fields[STARTED] != rank.started:
        rank.dead = True  # and its parent has asked how already
    elif fields[STATE] in "ZX":
        rank.dead = True
        status = int(fields[EXIT_CODE])
        if os.WIFSIGNALED(status):
            rank.code = -os.WTERMSIG(status)
        elif os.WIFEXITED(status):
            rank.code = os.WEXITSTATUS(status)
