"""One recording of all cases of modes_cases.py, shared by the tests of a session."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent


def record(root: Path, names: list[str]) -> Path:
    """Run both workers side by side; the traces of each case lie in a folder of its name."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    processes = []
    for script in ("modes_torch_worker.py", "modes_mindspore_worker.py"):
        with (root / f"{script}.log").open("w") as log:
            command = [sys.executable, str(HERE / script), str(root), *names]
            processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=root))
    try:
        while any(process.poll() is None for process in processes) and not any(p.poll() for p in processes):
            time.sleep(0.1)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(
        log.read_text()[-3000:] for log in root.glob("*.log")
    )
    return root
