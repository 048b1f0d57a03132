"""A model that writes its images into the rows of a tensor, of which torch takes no gradient, is described."""

import numpy as np
import torch
from msmigrate.parity.align.torch_user_model import describe
from msmigrate.parity.align.user_model import Given
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
