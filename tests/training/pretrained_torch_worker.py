"""Weights to fine-tune from, in two formats: `python pretrained_torch_worker.py` leaves pretrained.pth and .npz."""

from __future__ import annotations

import numpy as np
import torch
from msmigrate.training.models import torch_models

if __name__ == "__main__":
    torch.manual_seed(5)
    model = torch_models.build("resnet_tiny", num_classes=20, width=4)
    model(torch.rand(8, 3, 32, 32))
    torch.save({"state_dict": model.state_dict()}, "pretrained.pth")
    np.savez("pretrained.npz", **{name: tensor.numpy() for name, tensor in model.state_dict().items()})
