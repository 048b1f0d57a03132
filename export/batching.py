"""Instances of concurrent requests gathered into batches, which one thread runs one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

RunBatch = Callable[[Sequence[Any]], Sequence[Any]]


class TooMany(Exception):
    """More instances wait than may."""


class Batches:
    """Gathers instances: a batch starts as soon as it is full, or `wait` seconds after its first instance came.

    run: a batch of at most `size`, in `executor`; it returns a result for each instance. most: instances that may wait.
    batches, instances: how many have run.
    """

    def __init__(self, run: RunBatch, executor: Executor, *, size: int, wait: float, most: int) -> None:
        self._run, self._executor = run, executor
        self._size, self._wait, self._most = size, wait, most
        self._waiting: asyncio.Queue[tuple[Any, asyncio.Future[Any]]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self.batches = self.instances = 0

    @property
    def waiting(self) -> int:
        """Instances that no batch has taken yet."""
        return self._waiting.qsize()

    def start(self) -> None:
        """Begin to take instances; within the event loop."""
        self._task = asyncio.get_running_loop().create_task(self._gather())

    async def stop(self) -> None:
        """End when everything that waits has run."""
        await self._waiting.join()
        if self._task is not None:
            self._task.cancel()

    def submit(self, instances: Sequence[Any]) -> list[asyncio.Future[Any]]:
        """Queue instances; each future has the instance's result, or the exception of its batch. Raises TooMany."""
        if self._waiting.qsize() + len(instances) > self._most:
            raise TooMany
        loop = asyncio.get_running_loop()
        futures = []
        for instance in instances:
            future: asyncio.Future[Any] = loop.create_future()
            self._waiting.put_nowait((instance, future))
            futures.append(future)
        return futures

    async def _gather(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self._waiting.get()]
            until = loop.time() + self._wait
            while len(batch) < self._size:
                try:
                    batch.append(self._waiting.get_nowait())
                    continue
                except asyncio.QueueEmpty:
                    pass
                try:
                    batch.append(await asyncio.wait_for(self._waiting.get(), until - loop.time()))
                except (asyncio.TimeoutError, TimeoutError):
                    break
            wanted = [(instance, future) for instance, future in batch if not future.done()]  # its client may be gone
            try:
                if wanted:
                    results = await loop.run_in_executor(self._executor, self._run, [each for each, _ in wanted])
                    for (_, future), result in zip(wanted, results, strict=True):
                        if not future.done():
                            future.set_result(result)
                    self.batches += 1
                    self.instances += len(wanted)
            except Exception as error:
                for _, future in wanted:
                    if not future.done():
                        future.set_exception(error)
            finally:
                for _ in batch:
                    self._waiting.task_done()
