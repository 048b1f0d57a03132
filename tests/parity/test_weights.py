"""A torch checkpoint's weights go into the model, also where MindSpore has dropped the counters of its norms; and new
weights are moved in blocks of any make."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_counters_that_nothing_reads_may_lack(tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "weights_torch_worker.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["usual"] == "True"
    assert found["block"] == "True"
    assert found["tied"] == "True"
    assert found["cumulative"].endswith("does not fit the model: it lacks 0.num_batches_tracked")
