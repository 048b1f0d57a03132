"""parity-step goes red for what people get wrong, in the right stage and at the right tensor, and stays green else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from msmigrate.parity.result import Report
from msmigrate.parity.tensor_verdict import RATIO, Verdict

CASES = json.loads((Path(__file__).parent / "cases.json").read_text())


FAULTS = {**CASES["faults"], **CASES["clipped"], **CASES["mixed"], **CASES["half"], **CASES["cycled"]}


def told(names: Iterable[Any], prefix: str = "") -> list[Any]:
    """Each as a test's parameter, marked where it is in the slow suite."""
    return [pytest.param(n, marks=pytest.mark.full if f"{prefix}{n}" in CASES["full"] else ()) for n in names]


@pytest.mark.parametrize("seed", told([*CASES["seeds"], "clipped", "mixed", "half", "cycled"], "none-"))
def test_an_untouched_pair_is_green(verdict: Callable[[str], Report], seed: int | str) -> None:
    report = verdict(f"none-{seed}")
    trouble = [(f.place, f.why) for f in report.findings if f.verdict is not Verdict.PASS]
    assert not trouble
    assert report.parity
    assert all(stage.max_ratio is None or stage.max_ratio < RATIO for stage in report.stages)


@pytest.mark.parametrize("fault", told(FAULTS))
def test_a_fault_is_found_where_it_is(verdict: Callable[[str], Report], fault: str) -> None:
    report = verdict(fault)
    first = report.first_divergence
    assert not report.parity
    assert first is not None
    expected = FAULTS[fault]
    # rounding, and so the processor, decides which call of a layer shows a fault first that few elements meet
    name = first.name.partition("#")[0] if expected.get("any_call") else first.name
    assert (first.stage, name) == (expected["stage"], expected["tensor"]), (first.place, first.why)
    assert first.why
    # stages that the fault must leave green, so that the report points at one place
    verdicts = {stage.stage: stage.verdict for stage in report.stages}
    assert {stage for stage in expected["green"] if verdicts[stage] is not Verdict.PASS} == set()


def test_a_large_batch_is_compared_on_a_few_images_and_the_report_says_so(verdict: Callable[[str], Report]) -> None:
    report = verdict("none-mixed")
    assert "steps of 8 images were compared; the recipe's batch is 32" in report.notes
    assert report.made_with is not None and report.made_with.batch == 8
    images = [f for f in report.findings if f.stage == "data" and f.name in ("images", "mixed images")]
    assert {f.shape for f in images} == {(8, 3, 40, 40)} and len(images) == 6
    assert [f.shape for f in report.findings if f.name == "soft targets"] == [(8, 10)] * 3
    assert not any("images were compared" in note for note in verdict("none-42").notes)


@pytest.mark.full
def test_only_the_faulty_tensors_fail_where_a_fault_stays_local(verdict: Callable[[str], Report]) -> None:
    failed = {f.name for f in verdict("norm_undecayed").findings if f.verdict is Verdict.FAIL}
    assert failed
    assert all(name.rsplit(".", 2)[-2].startswith(("bn", "1")) for name in failed)
    swapped = {f.name for f in verdict("swapped_weights").findings if f.verdict is Verdict.FAIL and f.stage == "init"}
    assert swapped == {"layer2.0.bn1.weight", "layer2.0.bn2.weight"}


def test_a_known_pitfall_is_named_at_the_place(verdict: Callable[[str], Report]) -> None:
    assert any("bn-momentum-complement" in hint for hint in verdict("bn_momentum").hints)
    assert any("maxpool-same-stem" in hint for hint in verdict("maxpool_same").hints)
    assert any("label-smoothing-k-1" in hint for hint in verdict("label_smoothing").hints)
