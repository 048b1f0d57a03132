"""Branches on options and on the shape of an input: those that did not run are read and marked."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.migrate import model_spec
from msmigrate.migrate.source.emit.file_builder import build_file
from msmigrate.migrate.source.observe.observations import Observations

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, wide: bool = False) -> None:
        super().__init__()
        if wide:
            self.conv = nn.Conv2d(3, 64, 1)
        else:
            self.conv = nn.Conv2d(3, 4, 1)
        self.rate = 0.0

    def forward(self, x, mask=None):
        height, width = x.shape[2:]
        odd = width % 2
        if odd:
            x = x[..., 1:]
        if height == width:
            x = self.conv(x)
        else:
            x = self.conv(x.mean(3, keepdim=True))
        if mask is not None:
            x = x * mask
        if x.dim() != 4:
            raise ValueError("not an image")
        if self.rate > 0:
            x = x * self.rate
        for _ in range(2):
            if height > 1000:
                x = x + 1
        if x.untyped_storage().nbytes() > 8:
            x = x * 2
        else:
            x = x * 3
        return x.flatten(1)


def build():
    return Net()
"""


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is written of the model."""
    file: Path = tmp_path_factory.mktemp("model") / "net.py"
    file.write_text(MODEL)
    report = model_spec.ask("source.observe.torch_observe_worker", f"{file}:build", "convert-model", "1x3x8x8")
    return build_file(Observations(report), "build", "Net.").text


@pytest.mark.parametrize(
    "lines",
    [
        "if odd:\n            # not run\n            x = x[..., 1:]\n",
        "if height == width:\n            x = self.conv(x)\n        else:\n            # not run\n",
        "if mask is not None:\n            # not run\n            x = x * mask\n",
        "for _ in range(2):\n            if height > 1000:\n                # not run\n                x = x + 1\n",
        "if self.rate > 0:\n            # not run\n            x = x * self.rate\n",
        "if x.ndim != 4:\n            raise ValueError('not an image')\n",
        "if wide:\n            # not run\n            self.conv = nn.Conv2d(3, 64, 1, pad_mode='valid'",
    ],
)
def test_a_branch_that_did_not_run_is_written_and_marked(text: str, lines: str) -> None:
    assert lines in text


def test_what_cannot_be_asked_is_taken_as_it_was_answered(text: str) -> None:
    assert "        # always with the example inputs: x.untyped_storage().nbytes() > 8\n        x = x * 2\n" in text
