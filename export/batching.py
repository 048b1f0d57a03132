"""Instances of concurrent requests gathered into batches, which one thread runs one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

RunBatch = Callable[[Sequence[Any]], Sequence[Any]]
Waiting = tuple[Any, "asyncio.Future[Any]"]  # an instance and its result


class TooMany(Exception):
    """More instances wait than may."""


class Batches:
    """Gathers instances: a batch starts as soon as it is full, or `wait` seconds after its first instance came.

    run: a batch of at most `size`, in `executor`; it returns a result for each instance. take: of so many gathered
    ones, how many run at once; the others are the first of the next batch. most: instances that may wait. batches,
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
        """Raise TooMany where so many more instances may not wait."""
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
        """What was left by the last batch with all that has come since, or what comes within the wait."""
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
        """Run a batch, and give each of it its result, or all of it the exception."""
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
