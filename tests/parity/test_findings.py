"""Reports count findings by stage, and call parity only what was compared and passed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from msmigrate.parity.options import STAGES
from msmigrate.parity.result import Finding, Outcome, Report, summarise
from msmigrate.parity.tensor_verdict import BY_NATURE, Unjudged, Verdict


def finding(stage: str = "forward", verdict: Verdict = Verdict.PASS, order: int = 0, **more: Any) -> Finding:
    return Finding(stage, "train", f"w{order}", order, verdict, "" if verdict is Verdict.PASS else "why", **more)


def report(*findings: Finding) -> Report:
    return Report("recipe.yaml", "0123", {"torch": "2"}, list(findings), seconds=1.5)


def everywhere(verdict: Verdict = Verdict.PASS) -> list[Finding]:
    return [finding(stage, verdict, order) for order, stage in enumerate(STAGES)]


def test_parity_is_a_pass_in_every_stage() -> None:
    assert report(*everywhere()).parity
    for missing in range(len(STAGES)):
        found = everywhere()
        del found[missing]
        assert not report(*found).parity
    assert not report().parity


@pytest.mark.parametrize("stage", STAGES)
def test_one_failure_or_a_stage_undecided_is_no_parity(stage: str) -> None:
    assert not report(*everywhere(), finding(stage, Verdict.FAIL, 9)).parity
    others = [f for f in everywhere() if f.stage != stage]
    assert not report(*others, finding(stage, Verdict.NONE, 9)).parity
    assert not report(*everywhere(), finding(stage, Verdict.NONE, 9)).parity


@pytest.mark.parametrize("kind", list(Unjudged))
def test_only_what_has_no_verdict_by_nature_stands_beside_parity(kind: Unjudged) -> None:
    odd = finding("update", Verdict.NONE, 9, unjudged=kind)
    found = report(*everywhere(), odd)
    assert found.parity is (kind in BY_NATURE)
    assert found.outcome is (Outcome.PARITY if kind in BY_NATURE else Outcome.UNPROVEN)
    assert found.unproven == ([] if kind in BY_NATURE else [odd])
    assert found.as_json()["outcome"] == found.outcome.value
    assert found.stages[-1].undecided == 1 and found.stages[-1].unproven == (kind not in BY_NATURE)
    failed = report(*everywhere(), odd, finding("loss", Verdict.FAIL, 10))
    assert failed.outcome is Outcome.MISMATCH


@pytest.mark.parametrize("kind", sorted(BY_NATURE))
def test_a_part_of_which_nothing_was_judged_is_unproven_whatever_its_nature(kind: Unjudged) -> None:
    part = [replace(finding("update", Verdict.NONE, i, unjudged=kind), part="given gradients") for i in (8, 9)]
    found = report(*everywhere(), *part)
    # modules that are cut otherwise are judged end to end: that is how they are known to be
    assert found.unproven == ([] if kind is Unjudged.BUILT_OTHERWISE else part)
    assert report(*everywhere(), *part, replace(finding("update", order=10), part="given gradients")).parity


def test_a_stage_is_counted() -> None:
    found = [
        finding(ratio=0.5, error=1e-7),
        finding(order=1, ratio=1.5, error=3e-7),
        finding(verdict=Verdict.FAIL, order=2, ratio=9.0, error=2e-7),
        finding(verdict=Verdict.FAIL, order=3),
        finding(verdict=Verdict.NONE, order=4, ratio=1.0),
    ]
    stage = summarise("forward", found)
    assert (stage.passed, stage.failed, stage.undecided, stage.verdict) == (2, 2, 1, Verdict.FAIL)
    assert (stage.median_ratio, stage.max_ratio, stage.max_error) == (1.25, 9.0, 3e-7)
    assert stage.max_error_name == "train w1"


def test_nothing_compared_is_a_failure_without_numbers() -> None:
    stage = summarise("loss", [])
    assert stage.verdict is Verdict.FAIL
    assert (stage.median_ratio, stage.max_ratio, stage.max_error, stage.max_error_name) == (None, None, None, None)


def test_the_first_divergence_goes_by_stage_then_order_and_is_a_failure() -> None:
    found = [
        finding("update", Verdict.FAIL, 0),
        finding("forward", Verdict.FAIL, 7),
        finding("forward", Verdict.FAIL, 3),
        finding("data", Verdict.NONE, 0),
    ]
    first = report(*found).first_divergence
    assert first is not None and (first.stage, first.order) == ("forward", 3)
    assert report(*everywhere()).first_divergence is None


def test_json_is_complete_and_strict() -> None:
    odd = finding("loss", Verdict.FAIL, 9, ratio=math.inf, error=math.inf, noise=math.nan, allowed=-math.inf)
    whole = report(*everywhere(), odd)
    document = json.loads(json.dumps(whole.as_json(), allow_nan=False))
    assert document["parity"] is False and document["seconds"] == 1.5
    assert [stage["stage"] for stage in document["stages"]] == list(STAGES)
    assert len(document["findings"]) == len(STAGES) + 1
    assert document["first_divergence"]["name"] == "w9"
    assert document["findings"][-1]["ratio"] is None and document["findings"][-1]["noise"] is None
    assert document["findings"][0]["verdict"] == "pass"


def test_the_largest_error_is_not_that_of_what_is_rounding_alone() -> None:
    """A bias before a norm has no gradient but rounding: beside its size any error is large."""
    rounding = finding("gradients", error=3e8, noise=2e8, order=7)
    plain = finding("gradients", error=1e-6, noise=1e-7, order=8)
    assert summarise("gradients", [rounding, plain]).max_error == 1e-6
    failed = replace(rounding, verdict=Verdict.FAIL)
    assert summarise("gradients", [failed, plain]).max_error == 3e8
