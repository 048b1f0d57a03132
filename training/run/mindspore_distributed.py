"""The processes that train together: join, broadcast, reduce, SyncBatchNorm.

MindSpore's CPU has AllReduce (a sum, float32 and float16 only), AllGather and Broadcast, and no Barrier; everything
here is built from AllReduce and Broadcast, which every target has.

MindSpore's own nn.SyncBatchNorm is a BatchNorm with another training operator, which has no CPU kernel. So only the
operator is replaced here: the Cell, its parameters and its place in the net stay the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, communication, nn, ops

from ...errors import BadInput, WorkerFailed
from .train_job import Job

# Variables by which a process knows that it was started together with others: by msrun, mpirun, or a rank table.
LAUNCHERS = ("MS_ROLE", "OMPI_COMM_WORLD_SIZE", "RANK_TABLE_FILE")
FAREWELL = 0.5  # seconds


class Team:
    """The processes that train together; rank: which of them this one is, from 0 to size - 1.

    A job of one process is a team by itself, where every operation is trivial. Making a larger team joins the others,
    and waits until all are there; the device has to be chosen before. Raises BadInput where the others were not
    started, or not as many as the job says; WorkerFailed when they do not find each other.
    """

    def __init__(self, job: Job) -> None:
        self.rank, self.size = 0, 1
        if job.processes == 1:
            return
        if not any(name in os.environ for name in LAUNCHERS):
            raise BadInput(f"a job of {job.processes} processes is started by a launcher: msmigrate train --nproc")
        try:
            communication.init()
        except (RuntimeError, ValueError) as error:
            first = next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason given")
            raise WorkerFailed(f"the {job.processes} processes did not find each other: {first}") from error
        self.rank, self.size = communication.get_rank(), communication.get_group_size()
        if self.size != job.processes:
            raise BadInput(f"the job is for {job.processes} processes and {self.size} were started")

    def share(self, net: nn.Cell) -> None:
        """Give every process rank 0's parameters and buffers, to the bit, whatever their dtype."""
        if self.size == 1:
            return
        send = ops.Broadcast(0)
        for parameter in net.get_parameters():
            # a separate tensor, since on some targets Broadcast writes into its input; copied, since a compiled graph
            # never sees a value that set_data puts in place
            parameter.copy_(send((Tensor(parameter.asnumpy()),))[0])

    def reducer(self, parameters: Sequence[Any], fusion: Sequence[int] = ()) -> Callable[[Any], Any] | None:
        """The function from a tuple of gradients, in the order of `parameters`, to their means over all processes.

        It works the same inside a compiled function and outside. float16 gradients are summed in float32. None for a
        single process.

        fusion: on Ascend, the indices of gradients after which MindSpore starts another message, its
        all_reduce_fusion_config; without it, MindSpore puts all gradients in as few messages as it can.
        """
        if self.size == 1:
            return None
        if fusion:
            mindspore.set_auto_parallel_context(all_reduce_fusion_config=list(fusion))
        reducer: Callable[[Any], Any] = nn.DistributedGradReducer(list(parameters), mean=True, degree=self.size)
        return reducer

    def with_shared_statistics(self, net: nn.Cell) -> nn.Cell:
        """Let every BatchNorm of the net, in training, normalise over the images of all processes together.

        As torch.nn.SyncBatchNorm: forward, gradients and running statistics are those of one process with all the
        images. Cells, parameters and their names stay, so checkpoints load as before; evaluation is unchanged. A net in
        a single process is returned unchanged.
        """
        if self.size > 1:
            for _, cell in net.cells_and_names():
                if isinstance(cell, (nn.BatchNorm1d, nn.BatchNorm2d)):  # BatchNorm3d holds a BatchNorm2d
                    share_statistics(cell)
        return net

    def mean(self, values: Sequence[float]) -> list[float]:
        """The mean over all processes of each number; every process has to call this at the same point, with as many
        numbers.

        Exact for whole numbers whose sum is below 2 ** 24, else to about 1e-7 of the largest: AllReduce on the CPU
        takes no format longer than float32, so each number is sent in two parts.
        """
        if self.size == 1 or not len(values):
            return [float(value) for value in values]
        wide = np.asarray(values, np.float64)
        with np.errstate(over="ignore"):
            high = wide.astype(np.float32)
        low = np.where(np.isfinite(high), wide - np.where(np.isfinite(high), high, 0), 0).astype(np.float32)
        total = _sum(np.concatenate([high, low])).astype(np.float64)
        mean: list[float] = ((total[: len(wide)] + total[len(wide) :]) / self.size).tolist()
        return mean

    def total(self, values: np.ndarray) -> np.ndarray:
        """The sum over all processes of each number."""
        return np.array(self.mean([float(value) for value in values])) * self.size

    def farewell(self) -> None:
        """Wait until every process is here and knows it; to be called before one of several processes ends.

        Otherwise a process that has its result may exit while its neighbour still waits to deliver the last part, and
        that neighbour's AllReduce then fails: seen on the CPU.
        """
        if self.size > 1:
            _sum(np.zeros(1, np.float32))
            time.sleep(FAREWELL)


def _sum(values: np.ndarray) -> np.ndarray:
    """The sum over all processes of each float32 number."""
    found: np.ndarray = ops.AllReduce()(Tensor(values)).asnumpy()
    return found


def share_statistics(cell: Any) -> None:
    """Give a BatchNorm1d or BatchNorm2d the training operator that takes its statistics over all processes."""
    if mindspore.get_context("device_target") == "CPU":
        operator: Any = BatchNormOfAll(cell.eps, cell.momentum)
    else:  # momentum: the layer holds torch's, and takes its complement
        operator = nn.SyncBatchNorm(cell.num_features, eps=cell.eps, momentum=1.0 - cell.momentum).bn_train
    # as a plain attribute, not as a child Cell, so that the paths in the net, which identify layers, do not change
    object.__setattr__(cell, "bn_train", operator)


class BatchNormOfAll(nn.Cell):
    """Training BatchNorm from AllReduce: Ioffe and Szegedy 2015, with mean and variance over all processes' images.

    eps: added to the variance. momentum: torch's, the share of the new statistics in the running ones.

    Takes x (N, C, ...), gamma, beta, moving_mean and moving_variance (C,), like the operator it replaces; returns a
    tuple of the normalised x, in x's dtype, and moves the statistics, the variance unbiased over all processes' count.
    It computes in float32. Each process takes mean and squared deviations of its own images, and these are combined
    (Chan, Golub and LeVeque 1979): one message there and one back, and a channel whose mean is far from zero keeps its
    digits. AllReduce's gradient is AllReduce, so the gradient reaches every process's images; those of gamma and beta
    are this process's share, and DistributedGradReducer takes the mean of the shares, as in torch. N may differ between
    processes.
    """

    def __init__(self, eps: float, momentum: float) -> None:
        super().__init__(auto_prefix=False)
        self.eps, self.momentum = eps, momentum
        self.all_reduce = ops.AllReduce()
        place = np.zeros((communication.get_group_size(), 1), np.float32)
        place[communication.get_rank()] = 1.0
        self.place = Tensor(place)  # this process's row among the rows that all of them fill

    def construct(
        self, x: Tensor, gamma: Parameter, beta: Parameter, moving_mean: Parameter, moving_variance: Parameter
    ) -> tuple[Tensor]:
        wide = ops.cast(x, mindspore.float32)
        channels = x.shape[1]
        axes = (0, 2, 3) if x.ndim == 4 else (0, 2) if x.ndim == 3 else (0,)
        shape = (1, channels) + (1,) * (x.ndim - 2)
        own = x.size // channels
        own_mean = ops.reduce_mean(wide, axes)
        own_squares = ops.reduce_sum(ops.square(wide - own_mean.reshape(shape)), axes)
        row = ops.concat((own_mean, own_squares, ops.full((1,), float(own), dtype=mindspore.float32)))
        rows = self.all_reduce(self.place * row)
        means, squares = rows[:, :channels], rows[:, channels : 2 * channels]
        counts = ops.stop_gradient(rows[:, 2 * channels :])
        count = ops.reduce_sum(counts)
        mean = ops.reduce_sum(means * counts, 0) / count
        variance = ops.reduce_sum(squares + counts * ops.square(means - mean), 0) / count
        scale = (ops.rsqrt(variance + self.eps) * gamma).reshape(shape)
        y = (wide - mean.reshape(shape)) * scale + beta.reshape(shape)
        unbiased = ops.stop_gradient(variance) * (count / (count - 1.0))
        ops.assign(moving_mean, moving_mean + self.momentum * (ops.stop_gradient(mean) - moving_mean))
        ops.assign(moving_variance, moving_variance + self.momentum * (unbiased - moving_variance))
        return (ops.cast(y, x.dtype),)
