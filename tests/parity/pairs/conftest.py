"""Every pair is recorded once a session: one torch process and one MindSpore process run them all."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msmigrate.parity.findings import Report
from msmigrate.parity.pairs.settle import ALIGNMENT, settle
from msmigrate.parity.pairs.structure import SIDES, file
from msmigrate.parity.run import report

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for structures and pair_cases

from pair_cases import QUICK, RECIPE, SLOW, make_inputs, options  # noqa: E402

Verdict = Callable[[str], Report]


@pytest.fixture(scope="session")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    """The report of a quick pair."""
    return recorded(tmp_path_factory.mktemp("pairs"), QUICK)


@pytest.fixture(scope="session")
def slow_verdict(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    """The report of another pair."""
    return recorded(tmp_path_factory.mktemp("slow-pairs"), SLOW)


def recorded(root: Path, names: Sequence[str]) -> Verdict:
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
                    settle(folder, options(root, name))
            time.sleep(0.05)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    logs = "\n".join(log.read_text() for log in sorted(root.glob("*.log")))
    assert [process.returncode for process in processes] == [0, 0], logs
    return lambda name: report(RECIPE, options(root, name))
