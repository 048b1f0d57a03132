"""The server's connections: how many there may be, and how long one may take to ask and to take its answer.

uvicorn closes a connection that stays idle behind an answer. Here one is closed, too, that never asks, that asks or
takes its answer too slowly; and where there are too many, the one that has been waited for longest makes room.
"""

from __future__ import annotations

import asyncio
import os
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 1000
PATIENCE = 20.0  # seconds in which a request has come, and an answer has gone; and more for each …
RATE = 10_000  # … so many bytes of it
LEAVING = 5.0  # the same once the server stops
LOOK = 1.0  # seconds between two looks at a connection


def most_connections() -> int:
    """How many there may be: at most MOST, and half of the descriptors that are left to this process.

    The other half is for those that are accepted before the first of them is looked at, and for everything else.
    """
    try:
        open_now = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (iterdir holds one more)
    except OSError:
        open_now = 64
    return max(4, min(MOST, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - open_now) // 2))


class Connection(H11Protocol):
    """uvicorn's, with an end to its patience."""

    most = MOST  # of all connections; the server sets it
    patience = PATIENCE

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, in the place of another connection where there are too many."""
        super().connection_made(transport)
        self._begin_to_wait()
        self._watch = self.loop.call_later(LOOK, self._look)
        there: list[Any] = [each for each in self.connections if not each.transport.is_closing()]
        if len(there) > self.most:
            waited_for = [each for each in there if each is not self and each.is_waited_for()]
            oldest = min(waited_for, key=lambda each: each.since, default=self)
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Part of a request."""
        self._moved += len(data)
        super().data_received(data)

    def on_response_complete(self) -> None:
        """An answer is written."""
        self._begin_to_wait()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        self._watch.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server stops."""
        self.patience = LEAVING
        super().shutdown()

    def is_waited_for(self) -> bool:
        """Whether it is the client's turn: to ask, to go on asking, or to take its answer."""
        asks = self.cycle is None or self.cycle.response_complete or self.cycle.more_body
        return asks or self.transport.get_write_buffer_size() > 0

    def _begin_to_wait(self) -> None:
        self.since, self._moved = self.loop.time(), 0
        self._to_go = self.transport.get_write_buffer_size()

    def _look(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._moved += max(0, self._to_go - left)
        self._to_go = left
        if not self.is_waited_for():
            self._begin_to_wait()
        elif self.loop.time() - self.since > self.patience + self._moved / RATE:
            self.transport.abort()
            return
        self._watch = self.loop.call_later(LOOK, self._look)
