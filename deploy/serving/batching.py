"""Concurrent requests gathered into batches.

A compiled net takes batches of its own size only: a smaller one is filled up, and takes as long as a full one. A small
net runs eight images in hardly more time than one, so filling up is cheap; a ResNet on 224x224 pixels
takes eight times as long for eight. So the sizes are timed, and the split is the one that takes the least time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

ROUNDING = 1e-9  # how far the same sum in another order is off; of equal splits the one with the largest batch first


def sizes_up_to(most: int) -> list[int]:
    """The powers of two below the most, and the most itself."""
    sizes = [2**i for i in range(most.bit_length()) if 2**i < most]
    return [*sizes, most]


class Split:
    """How many of the waiting instances the next batch takes.

    seconds: what a batch of each size takes.
    """

    def __init__(self, seconds: Mapping[int, float]) -> None:
        self.sizes = sorted(seconds)
        took, least = {}, float("inf")
        for size in reversed(self.sizes):  # a smaller one can be filled up, so it takes no longer
            took[size] = least = min(least, seconds[size])
        self._next, best = [0], [0.0]
        for count in range(1, self.sizes[-1] + 1):
            costs = {size: took[size] + best[max(0, count - size)] for size in self.sizes}
            best.append(min(costs.values()))
            equal = (size for size, cost in costs.items() if cost <= best[-1] * (1 + ROUNDING))
            self._next.append(min(max(equal), count))

    def __call__(self, waiting: int) -> int:
        """How many of the waiting instances, of which there is at least one, run at once."""
        return self._next[min(waiting, self.sizes[-1])]

    def filled(self, count: int) -> int:
        """The smallest compiled size that holds this many."""
        return next(size for size in self.sizes if size >= count)


RunBatch = Callable[[Sequence[Any]], Sequence[Any]]
Waiting = tuple[Any, "asyncio.Future[Any]"]  # an instance and its result


class TooMany(Exception):
    """More instances would wait than may."""


class Batches:
    """Gathers instances: a batch starts as soon as it is full, or `wait` seconds after its first instance came.

    run: runs a batch of at most `size`, in `executor`, and returns a result for each instance. take: how many of the
    gathered instances run at once; the others are the first of the next batch. most: instances that may wait. batches,
    instances: how many have run.
    """

    def __init__(
        self,
        run: RunBatch,
        executor: Executor,
        *,
        size: int,
        wait: float,
        most: int,
        take: Callable[[int], int] = lambda count: count,
    ) -> None:
        self._run, self._executor, self._take = run, executor, take
        self._size, self._wait, self._most = size, wait, most
        self._waiting: asyncio.Queue[Waiting] = asyncio.Queue()
        self._held: list[Waiting] = []  # gathered, and left for the next batch
        self._task: asyncio.Task[None] | None = None
        self.batches = self.instances = 0

    @property
    def waiting(self) -> int:
        """Instances that no batch has taken yet."""
        return self._waiting.qsize() + len(self._held)

    def start(self) -> None:
        """Begin to take instances; within the event loop."""
        self._task = asyncio.get_running_loop().create_task(self._gather())

    async def stop(self) -> None:
        """End when everything that waits has run."""
        await self._waiting.join()
        if self._task is not None:
            self._task.cancel()

    def check_room(self, count: int) -> None:
        """Raise TooMany where this many more instances may not wait."""
        if self.waiting + count > self._most:
            raise TooMany

    def submit(self, instances: Sequence[Any]) -> list[asyncio.Future[Any]]:
        """Queue instances; each future has the instance's result, or the exception of its batch. Raises TooMany."""
        self.check_room(len(instances))
        loop = asyncio.get_running_loop()
        futures = []
        for instance in instances:
            future: asyncio.Future[Any] = loop.create_future()
            self._waiting.put_nowait((instance, future))
            futures.append(future)
        return futures

    async def _gather(self) -> None:
        while True:
            batch = await self._gathered()
            wanted = [(instance, future) for instance, future in batch if not future.done()]  # its client may be gone
            count = self._take(len(wanted)) if wanted else 0
            self._held = wanted[count:]
            for _ in range(len(batch) - len(wanted)):
                self._waiting.task_done()
            if count:
                await self._answer(wanted[:count])

    async def _gathered(self) -> list[Waiting]:
        """The instances that the last batch left and all that have come since, or those that come within the wait."""
        loop = asyncio.get_running_loop()
        batch, until = self._held, 0.0
        if not batch:
            batch = [await self._waiting.get()]
            until = loop.time() + self._wait
        self._held = []
        while len(batch) < self._size:
            try:
                batch.append(self._waiting.get_nowait())
                continue
            except asyncio.QueueEmpty:
                pass
            left = until - loop.time()
            if left <= 0:
                break
            try:
                batch.append(await asyncio.wait_for(self._waiting.get(), left))
            except (asyncio.TimeoutError, TimeoutError):
                break
        return batch

    async def _answer(self, batch: list[Waiting]) -> None:
        """Run a batch, and give each instance its result, or all of them the exception."""
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(self._executor, self._run, [each for each, _ in batch])
            for (_, future), result in zip(batch, results, strict=True):
                if not future.done():
                    future.set_result(result)
            self.batches += 1
            self.instances += len(batch)
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
        finally:
            for _ in batch:
                self._waiting.task_done()
