"""The table of kernels that round more says what this machine measures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msmigrate.mappings.kernels import Kernel, kernels

MEASURE = Path(__file__).parents[2] / "benchmarks" / "kernels.py"


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    """Function -> forward and backward -> torch and MindSpore -> distance from float64, and bias."""
    done = subprocess.run([sys.executable, str(MEASURE), "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("kernel", kernels(), ids=lambda kernel: kernel.torch)
def test_a_kernel_is_as_far_off_as_the_table_says(measured: dict[str, Any], kernel: Kernel) -> None:
    theirs, ours = (measured[kernel.function][kernel.way][side] for side in ("mindspore", "torch"))
    assert theirs["off"] == pytest.approx(kernel.distance, rel=0.3)
    assert theirs["bias"] == pytest.approx(kernel.bias, rel=0.3, abs=0.1 * kernel.distance)
    assert ours["off"] < 0.5 * kernel.distance  # else it has no place in the table


def test_no_operator_stands_there_twice() -> None:
    assert len({kernel.torch for kernel in kernels()}) == len(kernels())
