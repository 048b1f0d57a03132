"""Two recordings of one framework, for real: clean ones agree, one that computes otherwise is found where it does."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msmigrate.parity.graph_mode import MARK
from msmigrate.parity.job import ParityJob
from msmigrate.parity.replay.module_calls import FOLDER as REPLAY
from msmigrate.parity.replay.module_calls import Outcome
from msmigrate.parity.result import Report
from msmigrate.parity.run_folder import MINDSPORE, MINDSPORE_REPLAY, RUN, TORCH32, replayed
from msmigrate.parity.run_folder import RECIPE as RECIPE_COPY
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import Trace
from msmigrate.reports.html.parity_page import write_html
from msmigrate.training.recipe import reader as recipes
from msmigrate.workflows.compare import NO_START, _headed, _joined, compare, compare_folders
from msmigrate.workflows.parity_step import of_recipe
from msmigrate.workflows.record import record_side

pytestmark = pytest.mark.full
HERE = Path(__file__).parent
RECIPE = HERE / "tiny.yaml"
FAULTS = json.loads((HERE / "cases.json").read_text())["faults"]
BROKEN = FAULTS["bn_eps"]["tensor"]
TWO = ("layer1.0.bn2.eps=0.001", "layer3.0.bn1.momentum=0.2")
OTHERWISE = {
    "A3": (sys.executable, str(HERE / "otherwise_torch_worker.py")),
    "A4": (sys.executable, str(HERE / "otherwise_torch_worker.py"), *TWO),
    "A5": (sys.executable, str(HERE / "made_up_device.py"), "coarse"),
    "B3": (sys.executable, str(HERE / "mindspore_broken_worker.py"), "bn_eps"),
    "B4": (sys.executable, str(HERE / "mindspore_broken_worker.py"), "bn_momentum"),
    "B5": (sys.executable, str(HERE / "mindspore_broken_worker.py"), "maxpool_same,bn_eps,residual_forgotten"),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A and A2 by torch, B, its compiled step too and its noise, and B2 by MindSpore, and more that compute a BatchNorm
    otherwise."""
    root = tmp_path_factory.mktemp("recorded")
    job = ParityJob(recipes.load(RECIPE), root, steps=2)
    found = {name: root / name for name in ("A", "A2", "A3", "A4", "A5", "B", "B2", "B3", "B4", "B5")}
    for name, folder in found.items():
        framework = "torch" if name[0] == "A" else "mindspore"
        workers = {f"{framework}_worker": OTHERWISE[name]} if name in OTHERWISE else {}
        own = {"B": {"mode": "graph", "noise": True}, "A5": {"device": "npu"}}.get(name, {})
        record_side(framework, RECIPE, replace(job, folder=folder, **own), found.get("A" * (name != "A")), **workers)
    return found


def judged(recorded: dict[str, Path], one: str, other: str, own: bool = False) -> Report:
    start = recorded["A"] if one[0] == "B" and not own else None
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


def at_fault(found: Report) -> list[str]:
    return [module.name for module in found.modules if module.own]


@pytest.mark.parametrize(("one", "other"), [("A", "A2"), ("A2", "A"), ("B", "B2")])
def test_the_modules_of_the_same_recorded_twice_agree_alone(one: str, other: str, recorded: dict[str, Path]) -> None:
    found = judged(recorded, one, other)
    assert found.parity and at_fault(found) == [], found.first_divergence
    assert {module.verdict for module in found.modules} == {Verdict.PASS} and len(found.modules) > 50


@pytest.mark.parametrize(("one", "other"), [("A", "A4"), ("A4", "A")])
def test_two_layers_of_another_torch_are_each_found_in_one_run(one: str, other: str, recorded: dict[str, Path]) -> None:
    assert at_fault(judged(recorded, one, other)) == ["layer1.0.bn2", "layer3.0.bn1"]


@pytest.mark.parametrize(("one", "other", "own"), [("B", "B5", True), ("B", "B5", False), ("B5", "B", False)])
def test_three_faults_of_another_mindspore_are_each_found_in_one_run(
    one: str, other: str, own: bool, recorded: dict[str, Path]
) -> None:
    found = judged(recorded, one, other, own)
    assert at_fault(found) == ["maxpool", "layer2.0.bn2", "layer3.0"]
    failed = {module.name for module in found.modules if module.verdict is Verdict.FAIL}
    assert failed == {"", "maxpool", "layer2", "layer2.0", "layer2.0.bn2", "layer3", "layer3.0"}


def test_what_the_layers_of_another_torch_compute_is_said(recorded: dict[str, Path]) -> None:
    causes = compare(recorded["A"], recorded["A4"]).report.causes
    assert [(cause.place, cause.hypothesis, cause.fault) for cause in causes] == [
        ("layer1.0.bn2", "eps=0.001", None),
        ("layer3.0.bn1", "momentum=0.2", None),
    ]
    assert causes[0].fix == "eps of layer1.0.bn2 is 0.001 there and 1e-05 here"
    assert not [cause for cause in causes if "MindSpore" in f"{cause.text} {cause.fix} {cause.evidence}"]


def test_two_norms_of_a_transformer_of_timm_s_are_found_and_said(tmp_path: Path) -> None:
    """A model that msmigrate converts has its halves compared as one of its own."""
    text = RECIPE.read_text().replace("size: 56", "size: 170").replace("size: 48", "size: 160")
    recipe = tmp_path / "vit.yaml"
    recipe.write_text(text.replace("{name: resnet_tiny, args: {num_classes: 10, width: 4}}", "timm:test_vit"))
    loaded = recipes.load(recipe)
    job = ParityJob(loaded, tmp_path / "A", of_recipe(loaded), steps=1, batch=2)
    record_side("torch", recipe, job)
    otherwise = (sys.executable, str(HERE / "otherwise_torch_worker.py"), "blocks.1.norm2.eps=1e-4", "norm.eps=1e-3")
    for name, how in (("A2", {}), ("A3", {"torch_worker": otherwise})):
        record_side("torch", recipe, replace(job, folder=tmp_path / name), tmp_path / "A", **how)
    clean = compare_folders(tmp_path / "A", tmp_path / "A2")
    assert clean.parity and len(clean.modules) > 50, clean.first_divergence
    found = compare(tmp_path / "A", tmp_path / "A3").report
    assert at_fault(found) == ["blocks.1.norm2", "norm"]
    assert [cause.hypothesis for cause in found.causes] == ["eps=0.0001", "eps=0.001"]


def test_products_in_a_shorter_format_are_named_in_each_layer(recorded: dict[str, Path]) -> None:
    found = compare(recorded["A"], recorded["A5"]).report
    layers = {module.name for module in found.modules if module.kind in ("Conv2d", "Linear")}
    assert {cause.place for cause in found.causes} == {*at_fault(found)} == layers
    assert {cause.hypothesis for cause in found.causes} == {"float16 (or TF32, which rounds alike)"}


def test_what_the_cells_of_another_mindspore_compute_is_said_where_torch_s_half_is_at_hand(
    recorded: dict[str, Path],
) -> None:
    found = compare(recorded["B"], recorded["B5"], start=recorded["A"]).report
    assert [cause.place for cause in found.causes] == ["maxpool", "layer2.0.bn2", "layer3.0"]
    assert "pad_mode='same'" in found.causes[0].text and "`out += identity`" in found.causes[2].text
    found = compare(recorded["B"], recorded["B5"]).report
    assert found.causes == [] and NO_START in found.notes


def test_two_of_mindspore_agree_by_the_noise_of_the_first(recorded: dict[str, Path]) -> None:
    found = judged(recorded, "B", "B2", own=True)
    assert found.parity and len(found.findings) > 700


def test_the_compiled_step_agrees_with_the_pynative_one_by_its_noise(recorded: dict[str, Path]) -> None:
    found = judged(recorded, "B", "B", own=True)
    assert found.parity, found.first_divergence
    compiled = [finding for finding in found.findings if finding.part.startswith(MARK)]
    assert {finding.stage for finding in compiled} == {"forward", "loss", "gradients", "update"}


@pytest.mark.parametrize(("other", "fault"), [("B3", "bn_eps"), ("B4", "bn_momentum")])
def test_a_fault_is_found_by_mindspore_s_own_noise(other: str, fault: str, recorded: dict[str, Path]) -> None:
    first = judged(recorded, "B", other, own=True).first_divergence
    assert first is not None and (first.stage, first.name) == (FAULTS[fault]["stage"], FAULTS[fault]["tensor"])


def test_mindspore_s_own_noise_explains_what_another_implementation_rounds(
    recorded: dict[str, Path], tmp_path: Path
) -> None:
    """torch's float32 stands in for a device whose kernels are others than the reference's."""
    shutil.copyfile(recorded["B2"] / RECIPE_COPY, tmp_path / RECIPE_COPY)
    run = json.loads((recorded["B2"] / RUN).read_text())
    (tmp_path / RUN).write_text(json.dumps({**run, "traces": [MINDSPORE]}))
    _joined(recorded["A"], tmp_path / MINDSPORE)
    head = Outcome.of(Trace(recorded["B2"] / MINDSPORE_REPLAY)).head()
    _headed(Trace(recorded["A"] / replayed(TORCH32)), tmp_path / MINDSPORE_REPLAY, head)
    (tmp_path / REPLAY).symlink_to(recorded["B2"] / REPLAY)
    found = compare_folders(recorded["B"], tmp_path)
    alone = [finding for finding in found.findings if finding.part.alone]
    assert len(alone) > 300 and {finding.verdict for finding in alone} == {Verdict.PASS}
    assert 0.2 < float(np.median([finding.ratio for finding in alone if finding.ratio])) < 1.5
    # its labels and choices at kinks are not recorded as MindSpore's
    judged = {stage: [f for f in found.findings if f.stage == stage] for stage in ("forward", "loss", "gradients")}
    for stage in ("forward", "loss"):
        assert not [finding.place for finding in judged[stage] if finding.verdict is not Verdict.PASS]
    for stage in ("forward", "gradients"):
        assert 0.2 < float(np.median([finding.ratio for finding in judged[stage] if finding.ratio])) < 1.5


def test_pages_and_json_name_both_recordings(recorded: dict[str, Path], tmp_path: Path) -> None:
    found = judged(recorded, "A", "A3")
    write_html(found, None, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert str(recorded["A3"]) in page and "PyTorch against MindSpore" not in page
    assert json.loads(json.dumps(found.as_json()))["sides"] == list(found.sides)
