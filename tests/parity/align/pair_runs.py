"""Record pairs: both frameworks side by side, each in one process for all of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msmigrate.parity.align.alignment import ALIGNMENT
from msmigrate.parity.align.match_layers import align_pair
from msmigrate.parity.align.model_structure import SIDES, file
from msmigrate.parity.build_result import report
from msmigrate.parity.result import Report
from pair_cases import RECIPE, make_inputs, options

HERE = Path(__file__).parent


def recorded(root: Path, names: Sequence[str]) -> Callable[[str], Report]:
    """Run the pairs side by side, aligning each when both have told their structure, as the parent process does."""
    make_inputs(root)
    for name in names:
        (root / name).mkdir()
    processes = []
    for script in ("torch_pairs.py", "mindspore_pairs.py"):
        command = [sys.executable, str(HERE / script), str(root), *names]
        with (root / f"{script}.log").open("w") as log:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=environment))
    try:
        while any(process.poll() is None for process in processes):
            if any(process.poll() for process in processes):
                break  # the other one would wait in vain
            for name in names:
                folder = root / name
                if not (folder / ALIGNMENT).exists() and all(file(folder, side).exists() for side in SIDES):
                    align_pair(options(root, name))
            time.sleep(0.05)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    logs = "\n".join(log.read_text() for log in sorted(root.glob("*.log")))
    assert [process.returncode for process in processes] == [0, 0], logs
    return lambda name: report(RECIPE, options(root, name))
