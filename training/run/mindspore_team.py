"""The processes that train together, as the loop sees them; alone, every question answers itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mindspore import nn

from .train_job import Job


class Team:
    """rank and size of this process's world. Making it joins the others, which waits for all of them."""

    def __init__(self, job: Job) -> None:
        self._distributed: Any = None
        self._world: Any = None
        self.rank, self.size = 0, 1
        if job.processes > 1:
            from . import mindspore_distributed

            self._distributed = mindspore_distributed
            self._world = mindspore_distributed.init(job)
            self.rank, self.size = self._world.rank, self._world.size

    def share(self, net: nn.Cell) -> None:
        """Give every process rank 0's weights and buffers."""
        if self._world is not None:
            self._distributed.broadcast(net, self._world)

    def reducer(self, parameters: Any, fusion: Sequence[int] = ()) -> Callable[[Any], Any] | None:
        """From a tuple of gradients to that of the mean over all processes; None when alone. fusion: see the recipe."""
        if self._world is None:
            return None
        reduce: Callable[[Any], Any] = self._distributed.gradient_reducer(parameters, self._world, fusion)
        return reduce

    def with_shared_statistics(self, net: nn.Cell) -> nn.Cell:
        """The net with BatchNorms over the images of all processes."""
        return self._distributed.sync_batch_norm(net, self._world) if self._world is not None else net

    def mean(self, values: Sequence[float]) -> list[float]:
        """The mean over all processes of each number; every process has to ask for it at the same place."""
        if self._world is None:
            return list(values)
        return [float(value) for value in self._distributed.mean_over_ranks(values, self._world)]

    def total(self, values: np.ndarray) -> np.ndarray:
        """The sum over all processes of each number."""
        return np.array(self.mean([float(value) for value in values])) * self.size
