"""Every case of tests/parity is recorded once a session: one torch process and one MindSpore process run them all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msmigrate.parity.findings import Report
from msmigrate.parity.run import report
from msmigrate.parity.worker import Options
from msmigrate.train import recipe as recipes

HERE = Path(__file__).parent
RECIPE, CLIPPED = HERE / "tiny.yaml", HERE / "tiny_clipped.yaml"
sys.path.insert(0, str(HERE))  # for traces


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a run for each seed (none-SEED) and for each fault."""
    root = tmp_path_factory.mktemp("cases")
    cases = json.loads((HERE / "cases.json").read_text())
    names = [str(RECIPE), *(f"none-{seed}={seed}" for seed in cases["seeds"]), *cases["faults"]]
    names += [str(CLIPPED), "none-clipped", *cases["clipped"]]
    processes = []
    for script in ("torch_cases.py", "mindspore_cases.py"):
        command = [sys.executable, str(HERE / script), str(root), *names]
        with (root / f"{script}.log").open("w") as log:
            # one thread each: tensors this small gain nothing from more, and two pools on two cores fight
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=environment))
    try:
        while any(process.poll() is None for process in processes):
            if any(process.poll() for process in processes):
                break  # the other one would wait in vain
            time.sleep(0.1)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    logs = "\n".join(log.read_text() for log in sorted(root.glob("*.log")))
    assert [process.returncode for process in processes] == [0, 0], logs
    return root


@pytest.fixture(scope="session")
def verdict(cases: Path) -> Callable[[str], Report]:
    """The report of a case."""
    clipped = {"none-clipped", *json.loads((HERE / "cases.json").read_text())["clipped"]}

    def of(case: str) -> Report:
        file = CLIPPED if case in clipped else RECIPE
        return report(file, Options(recipes.load(file), cases / case))

    return of
