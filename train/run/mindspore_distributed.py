"""Data parallel training in MindSpore: joining the other processes, and what they do together.

MindSpore's CPU has AllReduce (a sum, float32 and float16 only), AllGather and Broadcast, and no Barrier; all that is
needed here is made of AllReduce and Broadcast, which every target has.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, communication, nn, ops

from ...errors import BadInput, WorkerFailed
from .job import Job
from .mindspore_sync_batchnorm import share_statistics

# How a process knows that somebody started it together with others: msrun, mpirun, or a rank table.
LAUNCHERS = ("MS_ROLE", "OMPI_COMM_WORLD_SIZE", "RANK_TABLE_FILE")
FAREWELL = 0.5  # seconds


@dataclass(frozen=True)
class World:
    """Which of the processes that train together this one is; rank runs from 0 to size - 1."""

    rank: int = 0
    size: int = 1


def init(job: Job) -> World:
    """Join the other processes of the job, which waits until all are there; a job of one process is a world by itself.

    The device has to be chosen before. Raises BadInput where nobody started the others, or not as many as the job
    says; WorkerFailed when they do not find each other.
    """
    if job.processes == 1:
        return World()
    if not any(name in os.environ for name in LAUNCHERS):
        raise BadInput(f"a job of {job.processes} processes is started by a launcher: msmigrate train --nproc")
    try:
        communication.init()
    except (RuntimeError, ValueError) as error:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason given")
        raise WorkerFailed(f"the {job.processes} processes did not find each other: {first}") from error
    world = World(communication.get_rank(), communication.get_group_size())
    if world.size != job.processes:
        raise BadInput(f"the job is for {job.processes} processes and {world.size} were started")
    return world


def broadcast(net: nn.Cell, world: World) -> None:
    """Give every process rank 0's parameters and buffers, to the bit, whatever their dtype."""
    if world.size == 1:
        return
    send = ops.Broadcast(0)
    for parameter in net.get_parameters():
        # a tensor of its own: on some targets Broadcast writes into what it is given; copied, for a graph that is
        # compiled never sees what set_data puts in place
        parameter.copy_(send((Tensor(parameter.asnumpy()),))[0])


def gradient_reducer(
    parameters: Sequence[Any], world: World, fusion: Sequence[int] = ()
) -> Callable[[Any], Any] | None:
    """What takes a tuple of gradients, in the order of `parameters`, to that of their means over all processes.

    It works alike called from a compiled function and outside. float16 gradients are summed in float32. None when
    alone.

    fusion: on Ascend, the indices of gradients after which MindSpore starts another message, its
    all_reduce_fusion_config; without it, MindSpore puts all gradients in as few messages as it can.
    """
    if world.size == 1:
        return None
    if fusion:
        mindspore.set_auto_parallel_context(all_reduce_fusion_config=list(fusion))
    reducer: Callable[[Any], Any] = nn.DistributedGradReducer(list(parameters), mean=True, degree=world.size)
    return reducer


def mean_over_ranks(values: Sequence[float], world: World) -> list[float]:
    """The mean over all processes of each number; every process has to ask at the same place, for as many numbers.

    Exact for whole numbers whose sum is below 2 ** 24, else to about 1e-7 of the largest: AllReduce on the CPU takes
    nothing longer than float32, so each number goes in two parts.
    """
    if world.size == 1 or not len(values):
        return [float(value) for value in values]
    wide = np.asarray(values, np.float64)
    with np.errstate(over="ignore"):
        high = wide.astype(np.float32)
    low = np.where(np.isfinite(high), wide - np.where(np.isfinite(high), high, 0), 0).astype(np.float32)
    total = _sum(np.concatenate([high, low])).astype(np.float64)
    mean: list[float] = ((total[: len(wide)] + total[len(wide) :]) / world.size).tolist()
    return mean


def barrier(world: World) -> None:
    """Wait until every process is here."""
    if world.size > 1:
        _sum(np.zeros(1, np.float32))


def farewell(world: World) -> None:
    """Wait until every process is here and has been told so; to be called before a process of several ends.

    A process that has its result may be gone while its neighbour still waits for the last part to be taken, and that
    neighbour's AllReduce then fails: seen on the CPU.
    """
    if world.size > 1:
        barrier(world)
        time.sleep(FAREWELL)


def sync_batch_norm(net: nn.Cell, world: World) -> nn.Cell:
    """Let every BatchNorm of the net, in training, normalise over the images of all processes together.

    As torch.nn.SyncBatchNorm: forward, gradients and running statistics are those of one process with all the images.
    Cells, parameters and their names stay, so checkpoints load as before; evaluation is unchanged. A net that trains
    alone is given back as it is.
    """
    if world.size > 1:
        for _, cell in net.cells_and_names():
            if isinstance(cell, (nn.BatchNorm1d, nn.BatchNorm2d)):  # BatchNorm3d holds a BatchNorm2d
                share_statistics(cell)
    return net


def _sum(values: np.ndarray) -> np.ndarray:
    """The sum over all processes of each float32 number."""
    found: np.ndarray = ops.AllReduce()(Tensor(values)).asnumpy()
    return found
