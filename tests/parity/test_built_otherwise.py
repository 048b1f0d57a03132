"""What differs grossly alone and nowhere end to end was cut otherwise; a small difference, or one that shows, stays."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msmigrate.parity.build_result import built_otherwise, inside_what_agrees
from msmigrate.parity.result import Finding
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import ALONE

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


AROUND = [
    Finding(stage, ALONE, f"block {tensor}", i, Verdict.PASS, error=1e-7, noise=1e-7, allowed=4e-7)
    for i, (stage, tensor) in enumerate(
        [("forward", "output"), ("gradients", "gate.conv.weight.grad"), ("gradients", "input.grad")]
    )
]
PIECE = replace(GROSS, name="block.gate output")
PIECE_IN_NET = replace(GROSS, part=STEP[0].part, name="block.gate")
WRONG_ELSEWHERE = Finding("forward", ALONE, "head output", 8, Verdict.FAIL, error=0.1, noise=1e-7, allowed=4e-7)


def test_inside_what_agrees_a_gross_difference_has_no_verdict_whatever_fails_elsewhere() -> None:
    found = inside_what_agrees([*AROUND, WRONG_ELSEWHERE, PIECE, PIECE_IN_NET])
    assert found[:-2] == [*AROUND, WRONG_ELSEWHERE]
    assert [f.verdict for f in found[-2:]] == [Verdict.NONE, Verdict.NONE]
    assert "block" in found[-1].why and found[-1].why.endswith(PIECE.why)


@pytest.mark.parametrize("wrong", range(len(AROUND)))
def test_a_fault_inside_shows_around_it_and_is_not_excused(wrong: int) -> None:
    around = [replace(f, verdict=Verdict.FAIL) if i == wrong else f for i, f in enumerate(AROUND)]
    assert inside_what_agrees([*around, PIECE, PIECE_IN_NET])[-2:] == [PIECE, PIECE_IN_NET]
    undecided = [replace(f, verdict=Verdict.NONE) if i == wrong else f for i, f in enumerate(AROUND)]
    assert inside_what_agrees([*undecided, PIECE])[-1] == PIECE


def test_what_agrees_excuses_neither_itself_nor_small_differences_nor_other_modules() -> None:
    small, beside = replace(PIECE, error=5e-4), replace(PIECE, name="blocks.gate output")
    assert inside_what_agrees([*AROUND, small, beside, PIECE_IN_NET])[len(AROUND) :] == [small, beside, PIECE_IN_NET]
    assert inside_what_agrees([*AROUND[:1], PIECE])[-1] == PIECE  # its gradients were not looked at


def test_how_a_module_is_wired_inside_is_its_own_affair_where_it_agrees() -> None:
    """It repeats a row before a layer that the other repeats behind it."""
    wiring = replace(SHAPE, name="block output")
    assert inside_what_agrees([*AROUND, wiring])[-1].verdict is Verdict.NONE
    wrong = replace(AROUND[0], verdict=Verdict.FAIL)
    assert inside_what_agrees([wrong, *AROUND[1:], wiring])[-1] == wiring
