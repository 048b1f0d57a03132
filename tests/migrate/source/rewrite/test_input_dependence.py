"""Branches on the shape of an input: the one that ran is written, with a comment that says what it depends on."""

from __future__ import annotations

import ast
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
        return x.flatten(1)


def build():
    return Net()
"""
NOTES = (
    "        # never with the example inputs: odd\n        # always with the example inputs: height == width\n",
    "        # never with the example inputs: mask is not None\n",
)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is written of the model."""
    file: Path = tmp_path_factory.mktemp("model") / "net.py"
    file.write_text(MODEL)
    report = model_spec.ask("source.observe.torch_observe_worker", f"{file}:build", "convert-model", "1x3x8x8")
    return build_file(Observations(report), "build", "Net.").text


@pytest.mark.parametrize("note", NOTES)
def test_a_comment_says_what_the_inputs_decided(text: str, note: str) -> None:
    assert note in text


def test_nothing_is_said_of_checks_nor_of_the_models_own_options(text: str) -> None:
    assert text.count("example inputs:") == 4  # of odd, height == width, mask, height > 1000
    for option in ("wide", "rate", "dim()"):
        assert f"example inputs: {option}" not in text


def test_a_block_that_has_a_comment_alone_goes(text: str) -> None:
    (forward,) = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name == "construct")
    assert not any(isinstance(node, ast.For) for node in ast.walk(forward))
    assert "        # never with the example inputs: height > 1000\n" in text
