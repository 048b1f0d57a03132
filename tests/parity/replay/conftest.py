"""The cases of the replay are recorded once a session: one torch process and one MindSpore process run them all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import side_by_side
from msmigrate.parity import containers_alone
from msmigrate.parity.build_result import module_verdicts
from msmigrate.parity.compare_traces import Traces, compare
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
    def choose() -> None:
        """As the process does that starts both."""
        for marker in root.glob("*/torch-ready"):
            if not (marker.parent / containers_alone.FILE).exists():
                containers_alone.choose(marker.parent, Narrowing.to())

    scripts = ("torch_cases.py", "mindspore_cases.py")
    side_by_side.run(root, *([HERE / script, root, *names] for script in scripts), meanwhile=choose)
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
