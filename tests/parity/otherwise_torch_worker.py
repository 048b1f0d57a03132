"""A torch whose layers compute otherwise than they say, as another version might: otherwise_torch_worker.py
MODULE.ATTRIBUTE=NUMBER … JOB.json; without any, every BatchNorm adds 1.2 times the eps."""

import sys
from dataclasses import replace
from typing import Any

import torch.nn.functional as F
from msmigrate.parity.align import torch_user_model
from msmigrate.parity.align.user_model import plain_values
from msmigrate.parity.job import ParityJob
from msmigrate.parity.record import torch_worker
from msmigrate.workers.worker import run
from torch import nn

real = F.batch_norm
build = torch_worker.build
OTHERWISE = [sys.argv.pop(1).rpartition("=") for _ in sys.argv[2:]]


def batch_norm(x: Any, mean: Any, var: Any, weight: Any, bias: Any, training: Any, momentum: Any, eps: Any) -> Any:
    return real(x, mean, var, weight, bias, training, momentum, 1.2 * eps)


def built(*args: Any, **kwargs: Any) -> Any:
    found = build(*args, **kwargs)
    for name, _, value in OTHERWISE:
        path, _, attribute = name.rpartition(".")
        setattr(found.model.get_submodule(path), attribute, float(value))
    return replace(found, start=plain_values(found.model.modules(), vars(nn.Module())) if found.start else ())


if OTHERWISE:
    torch_worker.build = torch_user_model.build = built
else:
    F.batch_norm = batch_norm

if __name__ == "__main__":
    run(torch_worker.main, ParityJob.read)
