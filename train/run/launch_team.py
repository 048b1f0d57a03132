"""What is known of the processes of a job on this machine: what they said, and which of them have died."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .events import Follower, append
from .job import Job
from .launch_command import Spread
from .ranks import SCHEDULER, Ranks

Told = Callable[[int, dict[str, Any]], None]  # (rank, event)


@dataclass
class Team:
    """What is known of the processes of this machine."""

    job: Job
    spread: Spread
    launcher: subprocess.Popen[bytes]
    log: Path
    followers: dict[int, Follower]
    told: Told
    ranks: Ranks | None = None
    ended: set[int] = field(default_factory=set)
    stops: dict[int, dict[str, Any]] = field(default_factory=dict)  # rank -> why it stopped training
    stopped_at: float = 0.0  # the first of them, by time.monotonic()
    said: dict[int, dict[str, Any]] = field(default_factory=dict)  # rank -> its error

    def listen(self) -> None:
        """Pass on what is new."""
        for rank, follower in self.followers.items():
            for event in follower.events():
                if event["event"] == "error":
                    self.said.setdefault(rank, event)
                    continue  # which is raised
                if event["event"] in ("end", "stopped"):
                    self.ended.add(rank)
                if event["event"] == "stopped":
                    self.stopped_at = self.stopped_at or time.monotonic()
                    self.stops.setdefault(rank, event)
                    continue  # of all of them one is told
                self.told(rank, event)

    def tell_stop(self) -> None:
        """Tell why training stopped: by the rank that names the tensor, for to the others only the mean of gradients
        is not finite. It goes into the run's log too, where rank 0 did not know."""
        if not self.stops:
            return
        rank = min(self.stops, key=lambda each: (self.stops[each].get("tensor") is None, each))
        event = self.stops[rank]
        if rank > 0:
            event = {**event, "rank": rank, "text": f"rank {rank}: {event.get('text', '')}"}
            if 0 in self.spread.ranks:
                append(self.job.log, event)
        self.told(rank, event)

    def dead(self) -> dict[int, int | None]:
        """Rank -> how it ended (exit code, minus signal, None: not known), of those that ended before they were
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
        """Those of the dead that had not said that they were done."""
        return {number: code for number, code in self.dead().items() if number not in self.ended}

    def done(self) -> bool:
        """Whether every rank of this machine has said that it is done."""
        return set(self.spread.ranks) <= self.ended
