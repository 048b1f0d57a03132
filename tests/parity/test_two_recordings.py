"""Two recordings of one framework, for real: clean ones agree, one that computes otherwise is found where it does."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from msmigrate.parity.job import ParityJob
from msmigrate.parity.result import Report
from msmigrate.reports.html.parity_page import write_html
from msmigrate.training.recipe import reader as recipes
from msmigrate.workflows.compare import compare_folders
from msmigrate.workflows.record import record_side

pytestmark = pytest.mark.full
HERE = Path(__file__).parent
RECIPE = HERE / "tiny.yaml"
BROKEN = json.loads((HERE / "cases.json").read_text())["faults"]["bn_eps"]["tensor"]
OTHERWISE = {
    "torch": (sys.executable, str(HERE / "otherwise_torch_worker.py")),
    "mindspore": (sys.executable, str(HERE / "mindspore_broken_worker.py"), "bn_eps"),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A and A2 by torch, B and B2 by MindSpore, and one more of each that computes a BatchNorm otherwise."""
    root = tmp_path_factory.mktemp("recorded")
    job = ParityJob(recipes.load(RECIPE), root, steps=2)
    found = {name: root / name for name in ("A", "A2", "A3", "B", "B2", "B3")}
    for name, folder in found.items():
        framework = "torch" if name[0] == "A" else "mindspore"
        workers = {f"{framework}_worker": OTHERWISE[framework]} if name[1:] == "3" else {}
        record_side(framework, RECIPE, replace(job, folder=folder), None if name == "A" else found["A"], **workers)
    return found


def judged(recorded: dict[str, Path], one: str, other: str) -> Report:
    start = recorded["A"] if one[0] == "B" else None
    return compare_folders(recorded[one], recorded[other], start)


@pytest.mark.parametrize(("one", "other"), [("A", "A2"), ("A2", "A"), ("B", "B2"), ("B2", "B")])
def test_the_same_recorded_twice_agrees(one: str, other: str, recorded: dict[str, Path]) -> None:
    found = judged(recorded, one, other)
    assert found.parity, found.first_divergence
    assert len(found.findings) > 700


@pytest.mark.parametrize(
    ("one", "other", "name"), [("A", "A3", "bn1"), ("A3", "A", "bn1"), ("B", "B3", BROKEN), ("B3", "B", BROKEN)]
)
def test_a_batch_norm_that_computes_otherwise_is_found(
    one: str, other: str, name: str, recorded: dict[str, Path]
) -> None:
    first = judged(recorded, one, other).first_divergence
    assert first is not None and (first.stage, first.name) == ("forward", name)


def test_pages_and_json_name_both_recordings(recorded: dict[str, Path], tmp_path: Path) -> None:
    found = judged(recorded, "A", "A3")
    write_html(found, None, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert str(recorded["A3"]) in page and "PyTorch against MindSpore" not in page
    assert json.loads(json.dumps(found.as_json()))["sides"] == list(found.sides)
