"""Starts one torch and one MindSpore worker side by side, once for all tests of the table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("msmigrate", deadline=None)  # two cores, and the workers keep both busy
settings.load_profile("msmigrate")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for mapping_cases and mapping_judge, which tests and workers import

from mapping_cases import WRONG_QUICK, Results, quick  # noqa: E402


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
        code = self.process.wait(timeout=3600)
        if code:
            text = (self.folder / "log.txt").read_text(errors="replace")
            pytest.fail(f"the {self.framework} worker ended with {code}:\n{text[-3000:]}")
        return Results.load(self.folder)


@pytest.fixture(scope="session")
def workers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Worker]]:
    """The processes, started at once: torch ends early, and leaves its core to the one with wrong arguments."""
    wanted = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    wrong = json.loads((HERE / "wrong_arguments.json").read_text())
    every = "found_all" in wanted or "found_all_wrong" in wanted
    names = () if every else (json.dumps(list(quick(tuple(wrong)))),)
    started = {"torch": Worker("torch", tmp_path_factory.mktemp("torch"), *names)}
    started["mindspore"] = Worker("mindspore", tmp_path_factory.mktemp("mindspore"), "quick")
    if "found_wrong" in wanted:
        some = {name: wrong[name] for name in [*wrong][::WRONG_QUICK]}
        started["wrong"] = Worker("mindspore", tmp_path_factory.mktemp("wrong"), json.dumps(some), "quick")
    yield started
    for worker in started.values():  # a file of tests alone may not have waited for all
        worker.process.kill()
        worker.process.wait()


@pytest.fixture(scope="session")
def found_all(workers: dict[str, Worker], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    """What each framework found in every case, by its name."""
    every = Worker("mindspore", tmp_path_factory.mktemp("every"))
    return {"torch": workers["torch"].results(), "mindspore": every.results()}


@pytest.fixture(scope="session")
def found(workers: dict[str, Worker]) -> dict[str, Results]:
    """What each framework found, by its name."""
    return {framework: workers[framework].results() for framework in ("torch", "mindspore")}


@pytest.fixture(scope="session")
def found_wrong(workers: dict[str, Worker]) -> dict[str, Results]:
    """The same where MindSpore's arguments were set wrongly."""
    return {"torch": workers["torch"].results(), "mindspore": workers["wrong"].results()}


@pytest.fixture(scope="session")
def found_all_wrong(workers: dict[str, Worker], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    """The same in both of MindSpore's modes."""
    wrong = Worker("mindspore", tmp_path_factory.mktemp("all_wrong"), (HERE / "wrong_arguments.json").read_text())
    return {"torch": workers["torch"].results(), "mindspore": wrong.results()}
