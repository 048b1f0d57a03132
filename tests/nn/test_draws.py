"""Draws of nn against what torch says of its own, where the cases of rows do not look."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "draws_mindspore.py"


def test_what_has_no_weight_is_never_drawn(tmp_path: Path) -> None:
    """ops.multinomial adds 1e-6 to every weight where nothing is put back: tokens that top-k left out came."""
    done = subprocess.run([sys.executable, str(SCRIPT)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 8
    for case, (outside, twice, dtype, shape) in found.items():
        count, replaced = int(case.split()[1]), case.endswith("True")
        assert outside == 0 and dtype == "int64" and shape == [200, count], case
        assert (twice > 0) is (replaced and count > 1), case
