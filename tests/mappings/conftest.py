"""Starts one torch and one MindSpore worker side by side, once for all tests of the table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for mapping_cases, which the workers import too

from mapping_cases import Results  # noqa: E402


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    """What each framework found, by its name; a worker that dies fails every test with the end of its output."""
    workers = {}
    for framework in ("torch", "mindspore"):
        folder = tmp_path_factory.mktemp(framework)
        log = (folder / "log.txt").open("wb")
        command = [sys.executable, str(HERE / f"{framework}_rows.py"), str(folder)]
        environment = {"ONEDNN_MAX_CPU_ISA": "AVX2", **os.environ} if framework == "mindspore" else dict(os.environ)
        # MindSpore leaves compiler notes in the working directory.
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, env=environment)
        workers[framework] = (process, folder, log)
    results = {}
    for framework, (process, folder, log) in workers.items():
        code = process.wait(timeout=600)
        log.close()
        if code:
            text = (folder / "log.txt").read_text(errors="replace")
            pytest.fail(f"the {framework} worker ended with {code}:\n{text[-3000:]}")
        results[framework] = Results.load(folder)
    return results
