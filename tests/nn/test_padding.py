"""The gradient of padding in compiled steps, of which MindSpore's own is wrong from the second one on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "graph_padding_mindspore.py"


@pytest.mark.full
def test_what_is_written_has_pynatives_gradient_in_every_compiled_run(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(SCRIPT)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert len([line for line in done.stdout.splitlines() if "the same" in line]) == 2
