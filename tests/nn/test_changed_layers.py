"""Layers whose settings are changed after they are made compute with the new ones, in both modes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msmigrate.migrate.library_names import TABLES

SCRIPT = Path(__file__).parent / "changed_layers_mindspore.py"


@pytest.mark.parametrize("mode", ["pynative", "graph"])
def test_change_layer_changes_what_a_layer_computes(tmp_path: Path, mode: str) -> None:
    """MindSpore's hand their settings to an operator as they are made: `norm.eps = 1.0` alone changes nothing."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), mode], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found, own, phase = json.loads(done.stdout.splitlines()[-1])
    for axes in (1, 2, 3):
        assert found[f"{axes} momentum"] == pytest.approx(0.25)  # torch's: the weight of the new statistics
        assert found[f"{axes} eps"] == pytest.approx(0.5**0.5, rel=1e-5)
    assert found["layer norm"] == pytest.approx(0.5**0.5, rel=1e-5) and found["slope"] == pytest.approx(-0.5)
    for layer in ("Dropout", "Dropout2d", "DropPath"):
        assert found[f"{layer} share"] == pytest.approx(0.75, abs=0.05) and found[f"{layer} scale"] == 4.0, layer
    assert "Conv2d keeps its stride as it was made" in done.stderr and found["refused"]
    assert phase == "predict" and own == TABLES["cell_properties"]  # a model's own of these names have another one
