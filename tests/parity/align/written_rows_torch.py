"""A model that writes its images into the rows of a tensor, of which torch takes no gradient, is described, and its
modules are recorded without one."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from msmigrate.parity.align.torch_user_model import describe
from msmigrate.parity.align.user_model import Given
from msmigrate.parity.replay.torch_recording import record_step
from torch import nn


class Padded(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.rows, self.fc = rows, nn.Linear(4, 2)

    def forward(self, x):
        whole = torch.zeros(len(x), 4)
        if self.rows:
            for row, one in zip(whole, x, strict=True):
                row[:3].copy_(one)
        else:
            whole[:, :3] = x
        return self.fc(whole)


for rows in (True, False):
    found = describe(Given(Padded(rows)), np.ones((2, 3), np.float32), 2)
    assert found.tokens is rows and [call.path for call in found.calls] == ["", "fc"], found

with tempfile.TemporaryDirectory() as folder:
    given = (np.ones((2, 3), np.float32), np.array([0, 1]), lambda dtype, device: {})
    for gradient in (True, False):
        try:
            record_step(Path(folder), Padded(rows=True), nn.CrossEntropyLoss(), *given, image_gradient=gradient)
        except RuntimeError:
            assert gradient
        else:
            assert not gradient
