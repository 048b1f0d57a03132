"""Starts one torch and one MindSpore worker side by side, once for all tests of the table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for mapping_cases and mapping_judge, which tests and workers import

from mapping_cases import Results  # noqa: E402


class Worker:
    """One framework's process over the cases; `results` waits for it."""

    def __init__(self, framework: str, folder: Path, *arguments: str) -> None:
        self.framework, self.folder = framework, folder
        environment = {"ONEDNN_MAX_CPU_ISA": "AVX2", **os.environ} if framework == "mindspore" else dict(os.environ)
        command = [sys.executable, str(HERE / f"{framework}_rows.py"), str(folder), *arguments]
        with (folder / "log.txt").open("wb") as log:
            # MindSpore leaves compiler notes in the working directory.
            self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, env=environment)

    def results(self) -> Results:
        """What the worker found; a worker that died fails the test with the end of its output."""
        code = self.process.wait(timeout=600)
        if code:
            text = (self.folder / "log.txt").read_text(errors="replace")
            pytest.fail(f"the {self.framework} worker ended with {code}:\n{text[-3000:]}")
        return Results.load(self.folder)


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    """What each framework found, by its name."""
    workers = [Worker(framework, tmp_path_factory.mktemp(framework)) for framework in ("torch", "mindspore")]
    return {worker.framework: worker.results() for worker in workers}


@pytest.fixture(scope="session")
def found_wrong(found: dict[str, Results], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    """What each framework found where MindSpore's arguments were set wrongly."""
    wrong: dict[str, dict[str, Any]] = json.loads((HERE / "wrong_arguments.json").read_text())
    worker = Worker("mindspore", tmp_path_factory.mktemp("wrong"), json.dumps(wrong))
    return {"torch": found["torch"], "mindspore": worker.results()}
