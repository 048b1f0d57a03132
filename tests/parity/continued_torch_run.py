"""A short torch run of LeNet5 on drawn images as a script does it, and its pickled checkpoint.

python continued_torch_run.py CHECKPOINT
"""

from __future__ import annotations

import argparse
import sys

import torch
from msmigrate.training.models.torch_models import LeNet5
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


def main(path: str) -> None:
    torch.manual_seed(3)
    model = LeNet5()
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": others, "weight_decay": 0.0}, {"params": decayed, "weight_decay": 0.01}]
    optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=5)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
    for _ in range(4):
        images, labels = torch.randn(8, 1, 32, 32), torch.randint(0, 10, (8,))
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(images), labels)).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        average.update_parameters(model)
    torch.save(
        {
            "model": {f"module.{name}": tensor for name, tensor in model.state_dict().items()},
            "ema": average.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": schedule.state_dict(),
            "scaler": scaler.state_dict(),
            "epoch": 2,
            "args": argparse.Namespace(lr=0.05),
        },
        path,
    )


if __name__ == "__main__":
    main(sys.argv[1])
