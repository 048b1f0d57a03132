"""Start the ranks, follow them, end them all when one fails, and say which failed first; or print how to start them.

It imports no framework. The processes report through their event files; the death of a process is noticed here, within
a fraction of a second, because MindSpore's launcher would wait a minute.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ... import processes
from ...errors import BadDestination, MsmigrateError, WorkerFailed
from ...processes import EXIT_CODE, PARENT, PROC, STARTED, STATE, all_processes, end_with_parent, environment, stat
from ...workers.messages import Failure
from ..options import ALONE, SEVERAL_MACHINES_PORT, Spread
from .run_log import Follower, append
from .train_job import WORKER, Job, command, job_file, python_first

LOOK = 0.1  # seconds between two checks of the processes
LINGER = 20.0  # seconds that processes may take to exit after the last one has reported that it is done
LAST_LOOK = 60.0  # seconds that a rank may search for what is not finite after another rank has reported its result
GENTLE = 3.0  # seconds that processes may take to exit after an interruption, before they are killed


def run(
    job: Job,
    spread: Spread = ALONE,
    *,
    on_event: OnEvent = lambda rank, event: None,
    worker: Sequence[str] | None = None,
) -> int:
    """Train; returns 0 when done, 1 when a number that is not finite stopped it.

    spread: how many processes and machines; on each machine this is called with its own node_rank. on_event: called
    with (rank, event) for all events but errors. worker: the interpreter's arguments instead of msmigrate's worker.

    Raises the class that a process named in its `error` event, with its text, and WorkerFailed for a process that died
    without such an event. However this returns or raises, no process of the job is left on this machine.
    """
    spread.check()
    job = job.model_copy(update={"processes": spread.processes})
    _prepare(job, spread)
    token = uuid.uuid4().hex
    team = _start(job, spread, on_event, token, worker)
    try:
        return _attend(team)
    except KeyboardInterrupt:
        _interrupt(team)
        raise
    finally:
        team.launcher.kill()
        team.launcher.wait()
        processes.end_all(token)


def _prepare(job: Job, spread: Spread) -> None:
    """Make the folders, and remove what an earlier start has left there. Raises BadDestination."""
    try:
        for rank in spread.ranks:
            job.output(rank).parent.mkdir(parents=True, exist_ok=True)
            job.output(rank).unlink(missing_ok=True)
            job.events(rank).unlink(missing_ok=True)
        job.write(job_file(job))
    except OSError as error:
        raise BadDestination(f"{job.folder}: the run cannot be kept here: {error.strerror or error}") from None


def _start(job: Job, spread: Spread, on_event: OnEvent, token: str, worker: Sequence[str] | None) -> Team:
    several = spread.processes > 1
    place = job.output(0).parent  # also where MindSpore leaves its own diagnostics
    variables = {**os.environ, "PYTHONUNBUFFERED": "1", processes.TOKEN: token, LAUNCHER: str(os.getpid())}
    if job.target == "CPU":  # with other targets the cores prepare data, and the device's own tools assign them
        variables[SHARES] = str(spread.nproc)
    if several:
        variables["PATH"] = f"{python_first(place)}{os.pathsep}{variables.get('PATH', os.defpath)}"
    log = place / "msrun.log" if several else job.output(0)
    arguments = command(job, spread, spread.port, worker)
    try:
        with log.open("wb") as output:
            launcher = processes.start(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=place,
                env=variables,
            )
    except OSError as error:
        raise WorkerFailed(f"cannot start {arguments[0]}: {error.strerror or error}") from None
    followers = {rank: Follower(job.events(rank)) for rank in spread.ranks}
    expected = {*spread.ranks, *([] if spread.node_rank else [SCHEDULER])}  # it runs on the first machine
    return Team(job, spread, launcher, log, followers, on_event, Ranks(launcher.pid, expected) if several else None)


def _attend(team: Team) -> int:
    """Follow the processes to their end, and raise the error of one that failed."""
    while True:
        gone = team.launcher.poll() is not None or team.failed()
        team.listen()  # after that check, so that the last events of a dead process are read
        if team.done() and not team.said:
            return _close(team)
        if team.stops and (gone or team.said or time.monotonic() - team.stopped_at > LAST_LOOK):
            return _close(team)  # the others wait for a rank that has stopped, or fail without it
        if team.said or (gone and (team.failed() or team.launcher.poll() is not None)):
            raise failure(team)
        time.sleep(LOOK)


def _close(team: Team) -> int:
    """Let the ranks exit by themselves; their exit codes no longer count.

    MindSpore's shutdown was seen to fail after everything was done. Its scheduler is not waited for: it misses a rank
    that exits without MindSpore's shutdown for half a minute, and no rank exits before all have come to the end.
    """
    deadline = time.monotonic() + LINGER
    while team.done() and team.launcher.poll() is None and time.monotonic() < deadline:
        if team.ranks is not None and set(team.spread.ranks) <= team.dead().keys():
            break
        time.sleep(LOOK)
    team.listen()
    team.pass_on_stop()
    return 1 if team.stops else 0


def _interrupt(team: Team) -> None:
    """Interrupt the ranks, as Ctrl-C would, and give them a moment to end by themselves."""
    alive = [team.launcher.pid] if team.ranks is None else team.ranks.alive()
    for pid in alive:
        try:
            os.kill(pid, signal.SIGINT)
        except OSError:
            continue
    deadline = time.monotonic() + GENTLE
    while time.monotonic() < deadline and team.launcher.poll() is None and len(team.dead()) < len(alive):
        time.sleep(LOOK)


SETTLE = 0.5  # seconds to wait, once a process has failed, to learn which one failed first
BEREAVED = 3.0  # the same if only lost connections are reported so far: a dying process closes its connections first
LONGEST_LINE = 500
# How a collective operation fails when its other end has gone: the consequence, not the cause.
LONELY = re.compile(r"AllReduce|AllGather|Broadcast|Launch kernel failed|timed out node|collective|disconnect", re.I)
NOISE = re.compile(r"^\[(INFO|WARNING|DEBUG)\]|^-+$|^- C\+\+ Call Stack|^mindspore/\S+:\d+ ")
ERROR_LINE = re.compile(r"^\[(ERROR|CRITICAL)\]|^(\w+\.)*\w*(Error|Exception|Interrupt)\b|^Fatal|^Segmentation")


def failure(team: Team) -> MsmigrateError:
    """The error of the process that failed first, as far as is known."""
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
    # a rank that lost its neighbour reports that; the neighbour's death is the cause
    if first is not None and (culprit is None or not LONELY.search(str(team.said[first].get("text")))):
        return _error(team, first, team.said[first])
    if culprit is not None:
        return WorkerFailed(_explain(team, culprit, silent[culprit]))
    code = team.launcher.poll()
    last = _last_words(team.log)
    return WorkerFailed(f"MindSpore's launcher ended before the training, exit code {code}: {last}; see {team.log}")


def _lonely(team: Team) -> bool:
    """Whether all reported errors say that another rank cannot be reached."""
    return all(LONELY.search(str(event.get("text"))) for event in team.said.values())


def _silent(team: Team) -> dict[int, int | None]:
    """The dead processes that have reported no error.

    A rank that died before it was seen even once is one of them: the others can only miss it if it had started.
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
    """Rank -> exit code of those that the launcher saw dying, in that order; it has killed the others itself."""
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
    failure = Failure(str(event.get("kind")), " ".join(str(event.get("text", "it gave no reason")).split()))
    return (failure.kind or WorkerFailed)(f"{_name(team, rank)}{failure.text}")


def _explain(team: Team, number: int, code: int | None) -> str:
    log = team.job.output(number) if number != SCHEDULER else team.log.with_name("scheduler.log")
    lost = re.search(r"The node: (\d+) is timed out", _read(log)) if number == SCHEDULER else None
    if lost:
        return f"rank {lost[1]}: the process no longer responds; the screen of its machine should say why"
    if code is None:  # the launcher collected the exit code first
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
    """The last line that says what went wrong, or else the last line."""
    lines = [line.strip() for line in _read(log).splitlines()]
    lines = [line for line in lines if line and not NOISE.search(line)]
    telling = [line for line in lines if ERROR_LINE.search(line)]
    return (telling or lines)[-1][:LONGEST_LINE] if lines else "it said nothing"


def _read(log: Path) -> str:
    try:
        return log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


OnEvent = Callable[[int, dict[str, Any]], None]  # (rank, event)


@dataclass
class Team:
    """The state of the processes of this machine, as far as it is known."""

    job: Job
    spread: Spread
    launcher: subprocess.Popen[bytes]
    log: Path
    followers: dict[int, Follower]
    on_event: OnEvent
    ranks: Ranks | None = None
    ended: set[int] = field(default_factory=set)
    stops: dict[int, dict[str, Any]] = field(default_factory=dict)  # rank -> why it stopped training
    stopped_at: float = 0.0  # the first of them, by time.monotonic()
    said: dict[int, dict[str, Any]] = field(default_factory=dict)  # rank -> its error

    def listen(self) -> None:
        """Pass on new events."""
        for rank, follower in self.followers.items():
            for event in follower.events():
                if event["event"] == "error":
                    self.said.setdefault(rank, event)
                    continue  # it is raised later
                if event["event"] in ("end", "stopped"):
                    self.ended.add(rank)
                if event["event"] == "stopped":
                    self.stopped_at = self.stopped_at or time.monotonic()
                    self.stops.setdefault(rank, event)
                    continue  # only one of them is passed on
                self.on_event(rank, event)

    def pass_on_stop(self) -> None:
        """Pass on why training stopped, from the rank that names the tensor: the others only see that the mean of the
        gradients is not finite. It goes into the run's log too, if rank 0 did not know."""
        if not self.stops:
            return
        rank = min(self.stops, key=lambda each: (self.stops[each].get("tensor") is None, each))
        event = self.stops[rank]
        if rank > 0:
            event = {**event, "rank": rank, "text": f"rank {rank}: {event.get('text', '')}"}
            if 0 in self.spread.ranks:
                append(self.job.log, event)
        self.on_event(rank, event)

    def dead(self) -> dict[int, int | None]:
        """Rank -> how it ended (exit code, minus signal, None: unknown), for processes that ended before they were
        done."""
        if self.ranks is None:
            code = self.launcher.poll()
            return {} if code is None else {0: code}
        self.ranks.look()
        dead = {number: rank.code for number, rank in self.ranks.found.items() if rank.dead}
        if SCHEDULER in dead and (dead[SCHEDULER] in (0, None) or self.ended):
            del dead[SCHEDULER]
        return dead

    def failed(self) -> dict[int, int | None]:
        """The dead processes that had not reported that they were done."""
        return {number: code for number, code in self.dead().items() if number not in self.ended}

    def done(self) -> bool:
        """Whether every rank of this machine has reported that it is done."""
        return set(self.spread.ranks) <= self.ended


LAUNCHER = "MSMIGRATE_LAUNCHER"  # the process that the ranks must not outlive
SHARES = "MSMIGRATE_SHARES"  # the number of processes that share the processor cores of this machine
SCHEDULER = -1


def end_with_launcher() -> None:
    """end_with_parent for a grandchild of the launcher, whose parent may have ended already."""
    end_with_parent()
    launcher = os.environ.get(LAUNCHER)
    if launcher is not None and not (PROC / launcher).exists():
        os._exit(1)


@dataclass
class Rank:
    """A rank's process, or the scheduler's. code: its exit code, or minus its signal, once it has died and the code is
    known."""

    pid: int
    started: str
    dead: bool = False
    code: int | None = None


class Ranks:
    """The processes that a launcher process has started, by rank; the scheduler has the key SCHEDULER."""

    def __init__(self, launcher: int, expected: set[int]) -> None:
        self.launcher = launcher
        self.expected = expected
        self.found: dict[int, Rank] = {}

    def look(self) -> None:
        """Find new processes, and see which have died."""
        if not self.expected <= self.found.keys():
            self._find()
        for rank in self.found.values():
            if not rank.dead:
                _see(rank)

    def alive(self) -> list[int]:
        """The process ids of those that have not died, without the scheduler."""
        return [rank.pid for number, rank in self.found.items() if not rank.dead and number != SCHEDULER]

    def unknown_dead(self) -> list[int | None]:
        """How the launcher's children ended that died before they were seen; the rank of a dead process is unknown."""
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
        rank.dead = True  # and its parent has collected the exit code already
    elif fields[STATE] in "ZX":
        rank.dead = True
        status = int(fields[EXIT_CODE])
        if os.WIFSIGNALED(status):
            rank.code = -os.WTERMSIG(status)
        elif os.WIFEXITED(status):
            rank.code = os.WEXITSTATUS(status)


def launch_forms(job: Job, spread: Spread = ALONE) -> list[tuple[str, str]]:
    """(title, shell text) of every way to start this run; the first is what `train` does. Nothing is started.

    For several Ascend devices also MindSpore's two other ways, with OpenMPI and with a rank table; these write no logs
    of their own, and when one process fails the others are not ended.
    """
    spread.check()
    if spread.processes == 1:
        return [("one process", shlex.join(command(job, spread, 0)))]
    port = spread.master_port or SEVERAL_MACHINES_PORT  # a free port is only known once the run starts
    first = f"PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH "
    forms = [("msrun", first + shlex.join(command(job, spread, port)))]
    if job.target == "Ascend":
        forms += [("mpirun", _mpirun(job, spread)), ("rank table", _rank_table(job, spread))]
    return forms


def _mpirun(job: Job, spread: Spread) -> str:
    logs = shlex.quote(str(job.output(0).parent / "mpirun"))
    hosts = ""
    if spread.nnodes > 1:
        others = [f"MACHINE{number}:{spread.nproc}" for number in range(1, spread.nnodes)]
        hosts = f" -H {','.join([f'{spread.master_addr}:{spread.nproc}', *others])}"
    worker = shlex.join([sys.executable, *WORKER, str(job_file(job))])
    return f"mpirun -n {spread.processes}{hosts} --output-filename {logs} --merge-stderr-to-stdout {worker}"


def _rank_table(job: Job, spread: Spread) -> str:
    """The loop of MindSpore's rank table start-up, for this machine."""
    first, last = spread.ranks[0], spread.ranks[-1]
    worker = shlex.join([sys.executable, *WORKER, str(job_file(job))])
    table = f"rank_table_{spread.processes}pcs.json"
    logs = shlex.quote(str(job.output(0).parent))
    local = "i" if first == 0 else f"i - {first}"
    return "\n".join(
        [
            f"export RANK_TABLE_FILE=$PWD/{table} RANK_SIZE={spread.processes}",
            f"for ((i = {first}; i <= {last}; i++)); do",
            f"    RANK_ID=$i DEVICE_ID=$(({local})) {worker} > {logs}/rank_$i.log 2>&1 &",
            "done",
            "wait",
        ]
    )
