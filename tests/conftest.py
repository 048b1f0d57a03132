"""Shares the tests among processes (pytest-xdist): files that share recordings stay together, others go one by one."""

from __future__ import annotations

import gc
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

GIGABYTES = 8  # of memory for one process: ResNet50's step is recorded in torch (5 GB) and MindSpore (3 GB) at once
FIXTURE = re.compile(r'@pytest\.fixture\([^)]*scope="session"[^)]*\)\s+def (\w+)')
PARAMETERS = re.compile(r"def \w+\(([^)]*)\)")
gc.disable()  # while the tests are collected: nothing of them is garbage
# every core has a process of tests, and its nets are small: further threads of torch and MindSpore only spin
os.environ.setdefault("OMP_NUM_THREADS", "1")
ISA = "ONEDNN_MAX_CPU_ISA"  # which MindSpore's processes set for themselves, and torch reads too
ISA_BEFORE = os.environ.get(ISA)


def pytest_collection_finish() -> None:
    """Undo what importing modules has set here: torch's noise, started from a test, would be another, and what is
    piped would be wrapped."""
    gc.freeze()  # the tests stay to the end
    gc.enable()
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)  # readline's, which a process of xdist's has inherited
        os.unsetenv(name)  # and which os.environ does not know of where readline has set it
    if ISA_BEFORE is None:
        os.environ.pop(ISA, None)


def pytest_xdist_auto_num_workers() -> int:
    """As many processes as `-n auto` starts: one for each core that has the memory for it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return max(1, min(len(os.sched_getaffinity(0)), round(memory / GIGABYTES)))


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    return ByRecordings(config, log)


class ByRecordings(LoadScopeScheduling):
    """Deals out whole files, and those that use a conftest.py's session fixtures together with its other users."""

    def __init__(self, config: pytest.Config, log: object) -> None:
        super().__init__(config, log)
        self.root, self.scopes = config.rootpath, dict[str, str]()

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file not in self.scopes:
            self.scopes[file] = scope(self.root / file, self.root)
        return self.scopes[file]


def scope(file: Path, root: Path) -> str:
    """The file itself, or the outermost folder whose session fixtures its functions ask for."""
    asked = set(re.findall(r"\w+", " ".join(PARAMETERS.findall(file.read_text(encoding="utf-8")))))
    found = str(file.relative_to(root))
    for folder in file.relative_to(root).parents:
        shared = root / folder / "conftest.py"
        here = asked & set(FIXTURE.findall(shared.read_text(encoding="utf-8"))) if shared.exists() else set()
        if here:
            found, asked = str(folder), asked - here  # a fixture further out is another one of the same name
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cold", action="store_true", help="start every process anew, as for users, and none as a fork")


@pytest.fixture(scope="session", autouse=True)
def _warm_workers(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.config.getoption("--cold"):
        yield
        return
    from msmigrate import processes
    from warm_commands import WarmCommands
    from warm_workers import WarmWorkers

    warm = WarmWorkers()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "start", warm.start)
        patch.setattr(subprocess, "run", WarmCommands(warm).run)
        yield
    warm.end()
