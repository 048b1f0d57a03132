"""The cases of the replay are recorded once a session: one torch process and one MindSpore process run them all."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from msmigrate.parity import containers
from msmigrate.parity.build_result import module_verdicts
from msmigrate.parity.compare import Traces, compare
from msmigrate.parity.options import Narrowing
from msmigrate.parity.result import Finding, ModuleVerdict
from msmigrate.parity.trace import ALONE

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for cases and recordings

from cases import CASES, QUICK  # noqa: E402


@dataclass(frozen=True)
class Replayed:
    """A case as it was judged: its folder, what the modules' own tensors and wiring gave, and the verdicts."""

    folder: Path
    findings: list[Finding]
    modules: list[ModuleVerdict]

    @property
    def own(self) -> list[str]:
        return sorted(module.name for module in self.modules if module.own)

    def module(self, name: str) -> ModuleVerdict:
        (found,) = [module for module in self.modules if module.name == name]
        return found


def _recorded(root: Path, names: list[str]) -> Path:
    processes = []
    for script in ("torch_cases.py", "mindspore_cases.py"):
        with (root / f"{script}.log").open("w") as log:
            command = [sys.executable, str(HERE / script), str(root), *names]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=environment))
    try:
        while any(process.poll() is None for process in processes) and not any(p.poll() for p in processes):
            for marker in root.glob("*/torch-ready"):  # as the process does that starts both
                if not (marker.parent / containers.FILE).exists():
                    containers.choose(marker.parent, Narrowing.to())
            time.sleep(0.1)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    logs = "\n".join(log.read_text() for log in sorted(root.glob("*.log")))
    assert [process.returncode for process in processes] == [0, 0], logs
    return root


@pytest.fixture(scope="session")
def quick_cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _recorded(tmp_path_factory.mktemp("replay"), list(QUICK))


@pytest.fixture(scope="session")
def other_cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _recorded(tmp_path_factory.mktemp("replay-full"), [name for name in CASES if name not in QUICK])


@pytest.fixture(scope="session")
def replayed(request: pytest.FixtureRequest) -> Callable[[str], Replayed]:
    """The judged case of a name."""

    def of(name: str) -> Replayed:
        folder = request.getfixturevalue("quick_cases" if name in QUICK else "other_cases") / name
        findings = compare(Traces.load(folder))
        kept = [finding for finding in findings if finding.part in (ALONE, "wiring")]
        return Replayed(folder, kept, module_verdicts(folder, findings))

    return of
