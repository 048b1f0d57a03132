"""The demo is two steps of parity-step on the files that it shows: one line wrong, and then right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from msmigrate.errors import BadDestination
from msmigrate.workflows import parity_step
from msmigrate.workflows.parity_step import DEMO, demo


def test_it_is_red_then_green_and_leaves_the_pair(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "msmigrate", "demo", "--keep", str(tmp_path / "pair")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    parts = [
        "nn.BatchNorm2d(channels, momentum=0.1)",
        "No parity. First divergence: update (step1 buffers) block.norm.running_mean",
        "[msmigrate explain bn-momentum-complement]",
        "fix: net.block.norm: nn.BatchNorm2d(…, momentum=0.9)",
        "  10 - self.norm = nn.BatchNorm2d(channels, momentum=0.1)",
        "  10 + self.norm = nn.BatchNorm2d(channels, momentum=0.9)",
        "Parity: ",
        "Red, then green.",
        "msmigrate parity-step synthetic --torch FILE.py:FUNCTION --mindspore FILE.py:FUNCTION",
    ]
    places = [done.stdout.find(part) for part in parts]
    assert -1 not in places and places == sorted(places), list(zip(parts, places, strict=True))
    files = {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "pair").glob("*.py")}
    assert files["torch_net.py"] == (DEMO / "torch_net.py").read_text(encoding="utf-8")
    wrong = (DEMO / "mindspore_net.py").read_text(encoding="utf-8")
    assert files["mindspore_net.py"] == wrong.replace("momentum=0.1", "momentum=0.9") != wrong


def test_what_was_not_red_and_then_green_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    green = SimpleNamespace(report=SimpleNamespace(causes=[]))
    monkeypatch.setattr(parity_step, "_demo_step", lambda pair: green)  # both times
    assert demo(None) == 1
    assert "This should have been red, then green, and was not." in capsys.readouterr().out


def test_files_that_are_there_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "torch_net.py").write_text("mine")
    with pytest.raises(BadDestination, match="is there already, and may be changed"):
        demo(tmp_path)
    assert (tmp_path / "torch_net.py").read_text() == "mine"
