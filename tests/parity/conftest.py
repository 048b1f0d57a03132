"""Every case of tests/parity is recorded once a session: one torch process and one MindSpore process run them all."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import side_by_side
from msmigrate.parity.build_result import report
from msmigrate.parity.job import ParityJob
from msmigrate.parity.result import Report
from msmigrate.training.recipe import reader as recipes

HERE = Path(__file__).parent
RECIPE = HERE / "tiny.yaml"
OTHERS = (
    "clipped",
    "mixed",
    "half",
    "cycled",
)  # tiny_clipped.yaml and so on, which have an untouched case of their name
sys.path.insert(0, str(HERE))  # for traces, and the modules beside it


CASES = json.loads((HERE / "cases.json").read_text())


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a run for each seed (none-SEED) and for each fault, without those that wait for `-m full`."""
    return _recorded(tmp_path_factory.mktemp("cases"), lambda case: case not in CASES["full"])


@pytest.fixture(scope="session")
def full_cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of those."""
    return _recorded(tmp_path_factory.mktemp("full_cases"), lambda case: case in CASES["full"])


def _recorded(root: Path, wanted: Callable[[str], bool]) -> Path:
    # the faults stand on the first recording of their recipe, which has to be the recipe's own seed in both sets
    own = [] if wanted("none-42") else ["none-42=42"]
    names = [str(RECIPE), *own, *(f"none-{seed}={seed}" for seed in CASES["seeds"] if wanted(f"none-{seed}"))]
    names += filter(wanted, CASES["faults"])
    for other in OTHERS:
        names += [str(HERE / f"tiny_{other}.yaml"), *filter(wanted, (f"none-{other}", *CASES[other]))]
    # MindSpore's side takes three times as long as torch's, so two processes share many cases
    parts = ("0/1",) if len(names) < 20 else ("0/2", "1/2")
    side_by_side.run(
        root,
        [HERE / "torch_cases.py", root, *names],
        *([HERE / "mindspore_cases.py", root, part, *names] for part in parts),
    )
    return root


@pytest.fixture(scope="session")
def verdict(request: pytest.FixtureRequest) -> Callable[[str], Report]:
    """The report of a case."""
    files = {case: HERE / f"tiny_{other}.yaml" for other in OTHERS for case in (f"none-{other}", *CASES[other])}

    def of(case: str) -> Report:
        file = files.get(case, RECIPE)
        root = request.getfixturevalue("full_cases" if case in CASES["full"] else "cases")
        return report(file, ParityJob(recipes.load(file), root / case))

    return of


@pytest.fixture(scope="session")
def modes_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The traces of every quick case of modes_cases.py."""
    import modes_cases
    import modes_runs

    quick = [name for name, case in modes_cases.CASES.items() if not case.full]
    return modes_runs.record(tmp_path_factory.mktemp("modes"), quick)


@pytest.fixture(scope="session")
def slow_modes_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The traces of the slow ones."""
    import modes_cases
    import modes_runs

    slow = [name for name, case in modes_cases.CASES.items() if case.full]
    return modes_runs.record(tmp_path_factory.mktemp("slow_modes"), slow)


@pytest.fixture(scope="session")
def modes(request: pytest.FixtureRequest) -> Callable[[str], Report]:
    """The report of a case of modes_cases.py."""
    import modes_cases

    def of(case: str) -> Report:
        root = request.getfixturevalue("slow_modes_root" if modes_cases.CASES[case].full else "modes_root")
        return report(modes_cases.recipe_of(case), modes_cases.options_of(root, case))

    return of
