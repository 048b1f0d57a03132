"""The processes of one job on this machine, seen through /proc: which there are, and how one died.

MindSpore's launcher puts every rank in a session of its own and looks at them once a second, and when one dies it waits
a minute for its scheduler. So the ranks are watched here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ...processes import EXIT_CODE, PARENT, PROC, STARTED, STATE, all_processes, end_with_parent, environment, stat

LAUNCHER = "MSMIGRATE_LAUNCHER"  # the process to outlive which there is no reason
SHARES = "MSMIGRATE_SHARES"  # among how many processes the processor cores of this machine are divided
SCHEDULER = -1


def end_with_launcher() -> None:
    """end_with_parent for a grandchild of the launcher, whose parent may have gone already."""
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
            for pid, fields in all_processes()
            if int(fields[PARENT]) == self.launcher and pid not in known and fields[STATE] in "ZX"
        ]
        for rank in lost:
            _see(rank)
        return [rank.code for rank in lost]

    def _find(self) -> None:
        known = {rank.pid for rank in self.found.values()}
        for pid, fields in all_processes():
            if int(fields[PARENT]) != self.launcher or pid in known:
                continue
            given = environment(pid)
            role, number = given.get("MS_ROLE"), given.get("RANK_ID", "")
            if role == "MS_SCHED":
                self.found[SCHEDULER] = Rank(pid, fields[STARTED])
            elif role == "MS_WORKER" and number.isdigit():
                self.found[int(number)] = Rank(pid, fields[STARTED])


def _see(rank: Rank) -> None:
    fields = stat(rank.pid)
    if fields is None or fields[STARTED] != rank.started:
        rank.dead = True  # and its parent has asked how already
    elif fields[STATE] in "ZX":
        rank.dead = True
        status = int(fields[EXIT_CODE])
        if os.WIFSIGNALED(status):
            rank.code = -os.WTERMSIG(status)
        elif os.WIFEXITED(status):
            rank.code = os.WEXITSTATUS(status)
