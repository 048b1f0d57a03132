"""A torchvision checkpoint to start from: ResNet50 with a new head of ten classes, as fine-tuning begins.

python make_checkpoint.py resnet50.pth
"""

from __future__ import annotations

import sys

import torch
from torch import nn
from torchvision.models import resnet50
from torchvision.models.resnet import Bottleneck


def main(path: str) -> None:
    torch.manual_seed(0)
    model = resnet50(weights=None)  # weights="IMAGENET1K_V2" takes the published weights, which torchvision downloads
    for block in model.modules():  # of drawn weights alone: branches at a quarter, for whole ones multiply rounding
        if isinstance(block, Bottleneck):
            nn.init.constant_(block.bn3.weight, 0.25)
    model.fc = nn.Linear(model.fc.in_features, 10)
    torch.save(model.state_dict(), path)


if __name__ == "__main__":
    main(sys.argv[1])
