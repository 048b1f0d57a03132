"""A torch whose BatchNorm adds another eps than it says, as another version might."""

from typing import Any

import torch.nn.functional as F
from msmigrate.parity.job import ParityJob
from msmigrate.parity.record import torch_worker
from msmigrate.workers.worker import run

real = F.batch_norm


def batch_norm(x: Any, mean: Any, var: Any, weight: Any, bias: Any, training: Any, momentum: Any, eps: Any) -> Any:
    return real(x, mean, var, weight, bias, training, momentum, 1.2 * eps)


F.batch_norm = batch_norm

if __name__ == "__main__":
    run(torch_worker.main, ParityJob.read)
