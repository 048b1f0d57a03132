"""What rows say of MindSpore's CPU, beyond what their cases show; a new MindSpore that mends it turns this red."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def test_what_the_rows_say_of_mindspore() -> None:
    worker = Path(__file__).parent / "mindspore_besides.py"
    done = subprocess.run([sys.executable, worker], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["no such layer"] == []
    assert (found["rms_norm runs"], found["InstanceNorm2d runs"]) == (False, False)
    assert found["rms_norm by hand"] < 1e-6
    assert found["InstanceNorm2d holds"] == ["beta", "gamma", "moving_mean", "moving_variance"]
    value, slope = found["SeLU"]
    assert (value, slope) == (pytest.approx(-0.691758), pytest.approx(0.324, abs=1e-3))
    assert found["SELU by hand"] == [pytest.approx(-0.691758), pytest.approx(1.066341)]
    assert found["Tanh beyond 5"] == [1.0, 0.0]
    assert not found["Mish of 80 is finite"]
    assert not found["LogSigmoid of -100 is finite"]
    last, first = found["output_padding"]
    assert set(last) == {0.0} != set(first)
    assert found["hidden, masks of bool"] == 0.0
    assert found["hidden, a mask of floats"] > 0.01
