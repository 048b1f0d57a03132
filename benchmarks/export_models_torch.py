"""`python export_models_torch.py SPEC SHAPE FILE`: drawn weights of a model, and running statistics of some batches."""

from __future__ import annotations

import sys
import warnings

import torch
from msmigrate.migrate.analyze.torch_models import build, split
from msmigrate.migrate.model_spec import parse

warnings.simplefilter("ignore")
spec, shape, file = sys.argv[1:]
torch.manual_seed(0)
model = split(build(parse(spec)))[0].train()
sizes = [int(size) for size in shape.split("x")]
with torch.no_grad():
    for _ in range(3):
        model(torch.randn(max(4, sizes[0]), *sizes[1:]))
torch.save(model.state_dict(), file)
