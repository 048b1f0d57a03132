"""BatchNorm over the images of all processes: torch.nn.SyncBatchNorm in MindSpore, on the CPU too.

MindSpore's own nn.SyncBatchNorm is a BatchNorm with another training operator, which has no CPU kernel. So the operator
is all that is exchanged here: the Cell, its parameters and its place in the net stay what they are.
"""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, communication, nn, ops


def share_statistics(cell: Any) -> None:
    """Give a BatchNorm1d or BatchNorm2d the training operator that takes its statistics over all processes."""
    if mindspore.get_context("device_target") == "CPU":
        operator: Any = BatchNormOfAll(cell.eps, cell.momentum)
    else:  # momentum: the layer holds torch's, and takes its complement
        operator = nn.SyncBatchNorm(cell.num_features, eps=cell.eps, momentum=1.0 - cell.momentum).bn_train
    # as a plain attribute and no child Cell: the paths of the net, by which layers are known, do not change
    object.__setattr__(cell, "bn_train", operator)


class BatchNormOfAll(nn.Cell):
    """Training BatchNorm from AllReduce: Ioffe and Szegedy 2015, with mean and variance over all processes' images.

    eps: added to the variance. momentum: torch's, the share of the new statistics in the running ones.

    Takes x (N, C, ...), gamma, beta, moving_mean and moving_variance (C,), as the operator it replaces does; gives a
    tuple of the normalised x, in x's dtype, and moves the statistics, the variance unbiased over all processes' count.
    It computes in float32. Each process takes mean and squared deviations of its own images, and these are put
    together (Chan, Golub and LeVeque 1979): one message there and one back, and a channel whose mean is far from zero
    keeps its digits. AllReduce's gradient is AllReduce, so the gradient reaches every process's images; those of gamma
    and beta are this process's share, of which DistributedGradReducer takes the mean, as in torch. N may differ between
    processes.
    """

    def __init__(self, eps: float, momentum: float) -> None:
        super().__init__(auto_prefix=False)
        self.eps, self.momentum = eps, momentum
        self.all_reduce = ops.AllReduce()
        place = np.zeros((communication.get_group_size(), 1), np.float32)
        place[communication.get_rank()] = 1.0
        self.place = Tensor(place)  # of this process among the rows that all of them fill

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
