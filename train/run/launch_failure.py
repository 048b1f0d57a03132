"""Which process of a job failed first, and what is to be said of it."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from typing import Any

from ... import errors
from ...errors import MsmigrateError, WorkerFailed
from .launch_team import Team
from .ranks import SCHEDULER

LOOK = 0.1  # seconds between two looks at the processes
SETTLE = 0.5  # how long to wait for who failed first, once somebody has
BEREAVED = (
    3.0  # the same when all that is heard is a rank that lost another: a dying process closes its connections first
)
LONGEST_LINE = 500
# How a collective operation fails when its other end has gone: the consequence, not the cause.
LONELY = re.compile(r"AllReduce|AllGather|Broadcast|Launch kernel failed|timed out node|collective|disconnect", re.I)
NOISE = re.compile(r"^\[(INFO|WARNING|DEBUG)\]|^-+$|^- C\+\+ Call Stack|^mindspore/\S+:\d+ ")
DEATH = re.compile(r"Worker process (\d+) exit with exception(?:\. Error code: (-?\d+))?")  # in the launcher's log
ERROR_LINE = re.compile(r"^\[(ERROR|CRITICAL)\]|^(\w+\.)*\w*(Error|Exception|Interrupt)\b|^Fatal|^Segmentation")


def failure(team: Team) -> MsmigrateError:
    """The error of the process that failed first, as far as can be told."""
    died = set(team.failed())
    began = time.monotonic()
    while not team.said or (_lonely(team) and not _silent(team)):
        if time.monotonic() > began + (BEREAVED if team.said else SETTLE):
            break
        time.sleep(LOOK)
        team.listen()
    silent = _silent(team)
    first = min(team.said, key=lambda rank: float(team.said[rank].get("time", 0)), default=None)
    culprit = next((number for number in (*_reported(team), *sorted(died), *sorted(silent)) if number in silent), None)
    # a rank that lost its neighbour says so; the neighbour's death is what has to be told
    if first is not None and (culprit is None or not LONELY.search(str(team.said[first].get("text")))):
        return _error(team, first, team.said[first])
    if culprit is not None:
        return WorkerFailed(_explain(team, culprit, silent[culprit]))
    code = team.launcher.poll()
    last = _last_words(team.log)
    return WorkerFailed(f"MindSpore's launcher ended before the training, exit code {code}: {last}; see {team.log}")


def _lonely(team: Team) -> bool:
    """Whether all that was said is that another rank cannot be reached."""
    return all(LONELY.search(str(event.get("text"))) for event in team.said.values())


def _silent(team: Team) -> dict[int, int | None]:
    """Those of the dead that have said nothing of an error.

    A rank that was lost before it was seen even once is one of them: the others can only miss it if it had started.
    """
    silent = {number: code for number, code in team.failed().items() if number not in team.said}
    unseen = _unseen(team) - team.said.keys() - team.ended
    if team.ranks is not None and unseen and team.said and _lonely(team) and not silent:
        codes = team.ranks.unknown_dead()
        silent = dict.fromkeys(unseen, codes[0] if len(codes) == len(unseen) == 1 else None)
    return silent


def _unseen(team: Team) -> set[int]:
    return set() if team.ranks is None else team.ranks.expected - team.ranks.found.keys() - {SCHEDULER}


def _reported(team: Team) -> dict[int, int | None]:
    """Rank -> exit code of those that the launcher saw dying, in that order; the others it has killed itself."""
    if team.ranks is None:
        return {}
    ranks = {rank.pid: number for number, rank in team.ranks.found.items()}
    unseen = sorted(_unseen(team))
    found: dict[int, int | None] = {}
    for pid, code in re.findall(
        r"Worker process (\d+) exit with exception(?:\. Error code: (-?\d+))?", _read(team.log)
    ):
        number = ranks.get(int(pid), unseen[0] if len(unseen) == 1 else None)
        if number is not None:
            found.setdefault(number, int(code) if code else None)
    return found


def _error(team: Team, rank: int, event: dict[str, Any]) -> MsmigrateError:
    kind = getattr(errors, str(event.get("kind")), None)
    if not isinstance(kind, type) or not issubclass(kind, MsmigrateError):
        kind = WorkerFailed
    text = " ".join(str(event.get("text", "it gave no reason")).split())
    return kind(f"{_name(team, rank)}{text}")


def _explain(team: Team, number: int, code: int | None) -> str:
    log = team.job.output(number) if number != SCHEDULER else team.log.with_name("scheduler.log")
    lost = re.search(r"The node: (\d+) is timed out", _read(log)) if number == SCHEDULER else None
    if lost:
        return f"rank {lost[1]}: nothing is heard of the process any more; the screen of its machine should say why"
    if code is None:  # the launcher was quicker to ask
        code = _reported(team).get(number)
    if code is None:
        how = "ended"
    elif code >= 0:
        how = f"ended with exit code {code}"
    else:
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
        how = f"was killed by {name}" + (" (out of memory?)" if -code == signal.SIGKILL else "")
    return f"{_name(team, number)}the process {how} before it was done: {_last_words(log)}; its output is in {log}"


def _name(team: Team, number: int) -> str:
    if number == SCHEDULER:
        return "scheduler: "
    return f"rank {number}: " if team.spread.processes > 1 else ""


def _last_words(log: Path) -> str:
    """The last line that says what went wrong, or the last that says anything."""
    lines = [line.strip() for line in _read(log).splitlines()]
    lines = [line for line in lines if line and not NOISE.search(line)]
    telling = [line for line in lines if ERROR_LINE.search(line)]
    return (telling or lines)[-1][:LONGEST_LINE] if lines else "it said nothing"


def _read(log: Path) -> str:
    try:
        return log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
