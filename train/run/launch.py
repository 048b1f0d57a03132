"""Start the processes of a training run, follow them, and end them all when one fails.

It imports no framework. What the processes say comes through their event files; that one has died is seen here, within
a fraction of a second, for MindSpore's launcher would wait a minute.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Sequence

from ... import processes
from ...errors import BadDestination, WorkerFailed
from .events import Follower
from .job import Job
from .launch_command import Spread, command, job_file, launch_forms, python_first
from .launch_failure import failure
from .launch_team import Team, Told
from .ranks import LAUNCHER, SCHEDULER, SHARES, Ranks

__all__ = ["Told", "launch_forms", "run"]

LOOK = 0.1  # seconds between two looks at the processes
LINGER = 20.0  # how long processes may take to leave after the last one has said that it is done
ALONE = 60.0  # how long a rank may look for what is not finite while another one has said what it found
GENTLE = 3.0  # and after an interruption, before they are killed


def run(
    job: Job,
    *,
    nproc: int = 1,
    nnodes: int = 1,
    node_rank: int = 0,
    master_addr: str = "127.0.0.1",
    master_port: int | None = None,
    told: Told = lambda rank, event: None,
    worker: Sequence[str] | None = None,
) -> int:
    """Train; returns 0 when done, 1 when a number that is not finite stopped it.

    nproc: processes on this machine. nnodes: machines, on each of which this is called, with its own node_rank.
    master_addr, master_port: where the first machine is found; by default a free port of this one. told: called with
    (rank, event) for every event but an error. worker: the interpreter's arguments instead of our own worker's.

    Raises the class that a process named in its `error` event, with its text, and WorkerFailed for one that died
    without a word. However this returns or raises, no process of the job is left on this machine.
    """
    spread = Spread(nproc, nnodes, node_rank, master_addr, master_port)
    spread.check()
    job = job.model_copy(update={"processes": spread.processes})
    _prepare(job, spread)
    token = uuid.uuid4().hex
    team = _start(job, spread, told, token, worker)
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
    """Make the folders, without what an earlier start has left there. Raises BadDestination."""
    try:
        for rank in spread.ranks:
            job.output(rank).parent.mkdir(parents=True, exist_ok=True)
            job.output(rank).unlink(missing_ok=True)
            job.events(rank).unlink(missing_ok=True)
        job.write(job_file(job))
    except OSError as error:
        raise BadDestination(f"{job.folder}: the run cannot be kept here: {error.strerror or error}") from None


def _start(job: Job, spread: Spread, told: Told, token: str, worker: Sequence[str] | None) -> Team:
    several = spread.processes > 1
    place = job.output(0).parent  # also where MindSpore leaves its own diagnostics
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", processes.TOKEN: token, LAUNCHER: str(os.getpid())}
    if job.target == "CPU":  # elsewhere the cores prepare data, and the device's own tools bind them
        environment[SHARES] = str(spread.nproc)
    if several:
        environment["PATH"] = f"{python_first(place)}{os.pathsep}{environment.get('PATH', os.defpath)}"
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
                env=environment,
            )
    except OSError as error:
        raise WorkerFailed(f"cannot start {arguments[0]}: {error.strerror or error}") from None
    followers = {rank: Follower(job.events(rank)) for rank in spread.ranks}
    expected = {*spread.ranks, *([SCHEDULER] if node_has_scheduler(spread) else [])}
    return Team(job, spread, launcher, log, followers, told, Ranks(launcher.pid, expected) if several else None)


def node_has_scheduler(spread: Spread) -> bool:
    """Whether msrun starts its scheduler on this machine."""
    return spread.node_rank == 0


def _attend(team: Team) -> int:
    """Follow the processes to their end, and raise what one of them failed at."""
    while True:
        gone = team.launcher.poll() is not None or team.failed()
        team.listen()  # after that look, so that the last words of one that has died are heard
        if team.done() and not team.said:
            return _close(team)
        if team.stops and (gone or team.said or time.monotonic() - team.stopped_at > ALONE):
            return _close(team)  # the others wait for one that has stopped, or fail for want of it
        if team.said or (gone and (team.failed() or team.launcher.poll() is not None)):
            raise failure(team)
        time.sleep(LOOK)


def _close(team: Team) -> int:
    """Let the ranks leave by themselves; what their exit codes are no longer counts.

    MindSpore's shutdown was seen to fail after everything was done. Its scheduler is not waited for: a rank that leaves
    without MindSpore's shutdown is missed by it for half a minute, and no rank leaves before all have come to the end.
    """
    deadline = time.monotonic() + LINGER
    while team.done() and team.launcher.poll() is None and time.monotonic() < deadline:
        if team.ranks is not None and set(team.spread.ranks) <= team.dead().keys():
            break
        time.sleep(LOOK)
    team.listen()
    team.tell_stop()
    return 1 if team.stops else 0


def _interrupt(team: Team) -> None:
    """Let the ranks end by themselves for a moment, as Ctrl-C would."""
    alive = [team.launcher.pid] if team.ranks is None else team.ranks.alive()
    for pid in alive:
        try:
            os.kill(pid, signal.SIGINT)
        except OSError:
            continue
    deadline = time.monotonic() + GENTLE
    while time.monotonic() < deadline and team.launcher.poll() is None and len(team.dead()) < len(alive):
        time.sleep(LOOK)
