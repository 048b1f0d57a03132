"""What differs grossly alone and nowhere end to end was cut otherwise; a small difference, or one that shows, stays."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msmigrate.parity.build_result import built_otherwise
from msmigrate.parity.result import Finding
from msmigrate.parity.trace import ALONE
from msmigrate.parity.verdict import Verdict

STEP = [
    Finding(stage, part, name, i, Verdict.PASS, error=1e-7, noise=1e-7, allowed=4e-7)
    for i, (stage, part, name) in enumerate(
        [
            ("forward", "eval", "conv"),
            ("forward", "train", "conv"),
            ("loss", "step1", "loss"),
            ("gradients", "parameters", "conv.weight"),
            ("update", "step1", "conv.weight"),
        ]
    )
]
GROSS = Finding("forward", ALONE, "pool output", 9, Verdict.FAIL, "off by 0.3", error=0.3, noise=1e-7, allowed=4e-7)
SHAPE = Finding("forward", "wiring", "pool output", 9, Verdict.FAIL, "expected shape [1], got [2]")
SMALL = replace(GROSS, name="gelu output", error=5e-4)


@pytest.mark.parametrize("finding", [GROSS, SHAPE])
def test_a_gross_difference_that_nothing_else_shows_has_no_verdict(finding: Finding) -> None:
    *step, found = built_otherwise([*STEP, finding])
    assert step == STEP
    assert found.verdict is Verdict.NONE and found.why.endswith(finding.why) and "built otherwise" in found.why


def test_a_small_difference_stays() -> None:
    assert built_otherwise([*STEP, SMALL])[-1] == SMALL


@pytest.mark.parametrize("stage", ["forward", "loss", "gradients", "update"])
def test_nothing_is_excused_where_the_step_differs(stage: str) -> None:
    step = [replace(f, verdict=Verdict.FAIL) if f.stage == stage else f for f in STEP]
    assert built_otherwise([*step, GROSS, SHAPE])[-2:] == [GROSS, SHAPE]


@pytest.mark.parametrize("missing", [0, 1, 3])
def test_nothing_is_excused_by_what_was_not_compared(missing: int) -> None:
    step = [f for f in STEP if f.order != missing]
    assert built_otherwise([*step, GROSS])[-1] == GROSS
    undecided = [replace(f, verdict=Verdict.NONE) if f.order == missing else f for f in STEP]
    assert built_otherwise([*undecided, GROSS])[-1] == GROSS


def test_a_noisy_step_excuses_less() -> None:
    step = [replace(f, noise=0.02, allowed=0.08) if f.stage == "gradients" else f for f in STEP]
    assert built_otherwise([*step, GROSS])[-1] == GROSS
    rounding = [replace(f, noise=1e9, allowed=4e9) if f.order == 3 else f for f in STEP]  # a bias before a norm
    assert built_otherwise([*STEP, *rounding[3:4], GROSS])[-1].verdict is Verdict.NONE


def test_the_initial_distributions_are_another_matter() -> None:
    initial = Finding("init", "distribution", "fc.weight", 0, Verdict.FAIL)
    assert built_otherwise([initial, *STEP, GROSS])[-1].verdict is Verdict.NONE
    assert built_otherwise([initial, *STEP, GROSS])[0] == initial
