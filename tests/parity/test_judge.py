"""The verdict on one tensor: calm at rounding's size, red beyond it, and never a pass for what was not compared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msmigrate.parity.tensor_verdict import (
    BLIND,
    BY_LUCK,
    EPS32,
    FLOOR_ULPS,
    PEAK_RATIO,
    RATIO,
    STORED_MOST,
    Measure,
    Unjudged,
    Verdict,
    judge,
    uncertain,
)

RANK = {Verdict.PASS: 0, Verdict.NONE: 1, Verdict.FAIL: 2}
seeds = st.integers(0, 2**32 - 1)
noises = st.floats(1e-9, 1.0)


def case(seed: int, size: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A reference, and two directions of error of its own length."""
    draws = np.random.default_rng(seed).standard_normal((3, size))
    exact, one, other = (row / np.linalg.norm(row) for row in draws)
    return exact, one, other


@given(seeds, noises, st.floats(0, 100), st.floats(1, 100))
def test_a_larger_error_is_never_judged_better(seed: int, noise: float, share: float, factor: float) -> None:
    exact, torch, mindspore = case(seed)
    near = judge(exact, [exact + noise * torch], exact + share * noise * mindspore)
    far = judge(exact, [exact + noise * torch], exact + factor * share * noise * mindspore)
    assert RANK[far.verdict] >= RANK[near.verdict]
    assert far.ratio >= near.ratio * (1 - 1e-6)


@given(seeds, st.floats(1e-6, 0.1), st.floats(0, 10), st.integers(-60, 60))
def test_the_unit_of_a_tensor_does_not_count(seed: int, noise: float, share: float, exponent: int) -> None:
    exact, torch, mindspore = case(seed)
    scale = 2.0**exponent  # exact in binary, so that nothing else changes
    plain = judge(exact, [exact + noise * torch], exact + share * noise * mindspore)
    scaled = judge(scale * exact, [scale * (exact + noise * torch)], scale * (exact + share * noise * mindspore))
    assert (plain.verdict, plain.ratio, plain.relative) == (scaled.verdict, scaled.ratio, scaled.relative)


@given(seeds, noises)
def test_what_is_missing_or_turned_about_never_passes(seed: int, noise: float) -> None:
    exact, torch, _ = case(seed)
    noisy = [exact + noise * torch]
    assert judge(exact, noisy, np.zeros_like(exact)).verdict is not Verdict.PASS
    assert judge(exact, noisy, -exact).verdict is not Verdict.PASS
    if noise < BLIND / (RATIO * uncertain(exact.size)):
        assert judge(exact, noisy, np.zeros_like(exact)).verdict is Verdict.FAIL
        assert judge(exact, noisy, -exact).verdict is Verdict.FAIL


@given(seeds, st.floats(0.13, 1.0), st.floats(0.01, 1.0))
def test_noise_that_could_hide_the_tensor_gives_no_verdict(seed: int, noise: float, share: float) -> None:
    exact, torch, mindspore = case(seed)
    measure = judge(exact, [exact + noise * torch], exact + share * noise * mindspore)
    assert measure.verdict is Verdict.NONE
    assert "torch float32 itself" in measure.why


@given(seeds, st.floats(1e-5, 1e-2))
def test_the_noisiest_of_the_runs_counts(seed: int, noise: float) -> None:
    exact, torch, mindspore = case(seed)
    quiet, loud = exact + 0.01 * noise * torch, exact + noise * torch
    subject = exact + 2 * noise * mindspore
    assert judge(exact, [quiet], subject).verdict is Verdict.FAIL
    assert judge(exact, [quiet, loud], subject) == judge(exact, [loud, quiet], subject)
    assert judge(exact, [quiet, loud], subject).verdict is Verdict.PASS


def test_an_error_exactly_at_the_limit_passes_and_above_it_fails() -> None:
    exact, noise = np.ones(4096), 2.0**-10
    noisy = [exact + noise]  # L2 noise 64 · 2**-10, and 1.125 times RATIO: all exact in binary
    limit = RATIO * uncertain(4096)
    assert limit == 4.5
    assert judge(exact, noisy, exact + limit * noise).verdict is Verdict.PASS
    assert judge(exact, noisy, exact + np.nextafter(limit, 8) * noise).verdict is Verdict.PASS  # rounds to the same
    above = judge(exact, noisy, exact + limit * noise * (1 + 1e-6))
    assert above.verdict is Verdict.FAIL and above.ratio > RATIO
    assert "rounding explains" in above.why


def test_what_an_optimizer_made_of_a_step_may_have_a_few_outliers() -> None:
    exact, noise = np.ones(4096), 2.0**-10
    subject = exact + 4.4 * noise
    assert judge(exact, [exact + noise], subject, of_a_step=True).verdict is Verdict.PASS
    assert judge(exact, [exact + noise], exact + 4.6 * noise, of_a_step=True).verdict is Verdict.FAIL
    some, many = subject.copy(), subject.copy()
    some[:80] = 3.0  # a step the other way where the gradient is rounding itself
    many[:90] = 3.0
    assert judge(exact, [exact + noise], some, of_a_step=True).verdict is Verdict.PASS
    assert judge(exact, [exact + noise], many, of_a_step=True).verdict is Verdict.FAIL
    assert judge(exact, [exact + noise], some).verdict is Verdict.FAIL
    lost = subject.copy()
    lost[0] = np.nan  # is never left out
    assert judge(exact, [exact + noise], lost, of_a_step=True).verdict is Verdict.FAIL
    assert judge(np.ones(1), [np.ones(1)], np.full(1, 1.1), of_a_step=True).verdict is Verdict.FAIL


def test_what_cancels_in_exact_arithmetic_may_round_otherwise() -> None:
    exact, torch = np.full(64, 1e-17), np.full(64, 1e-8)  # a bias's gradient before a BatchNorm
    limit = RATIO * uncertain(64)
    assert judge(exact, [torch], np.full(64, 3.9e-8 * limit)).verdict is Verdict.PASS
    assert judge(exact, [torch], np.full(64, 4.1e-8 * limit)).verdict is Verdict.FAIL
    assert judge(np.full(64, 1e-9), [torch], np.full(64, 1.1e-8 * limit)).verdict is Verdict.FAIL  # no zero


def test_the_floor_is_float32s_own_rounding() -> None:
    exact = np.ones(1024)
    ratio = RATIO * uncertain(1024)
    allowed = ratio * FLOOR_ULPS * EPS32
    assert judge(exact, [exact], exact + 0.99 * allowed).verdict is Verdict.PASS
    assert judge(exact, [exact], exact + 1.01 * allowed).verdict is Verdict.FAIL
    assert judge(exact, [exact], exact + 1.01 * allowed, relative_floor=1e-5).verdict is Verdict.PASS
    assert judge(exact, [exact], exact + ratio * 1.01e-5, relative_floor=1e-5).verdict is Verdict.FAIL


@pytest.mark.parametrize("size", [100, 65_536])
def test_one_wrong_element_is_seen_in_a_large_tensor(size: int) -> None:
    draws = np.random.default_rng(0).standard_normal((3, size))
    exact, noise = draws[0], 1e-6
    noisy, subject = [exact + noise * draws[1]], exact + noise * draws[2]
    peak = np.abs(noise * draws[1]).max()
    assert judge(exact, noisy, subject).verdict is Verdict.PASS
    subject[size // 2] = exact[size // 2] + 1.01 * PEAK_RATIO * peak
    broken = judge(exact, noisy, subject)
    assert broken.verdict is Verdict.FAIL
    if size > 1000:  # where the whole hides it
        assert broken.ratio < RATIO
        assert broken.why.startswith("one element is off by")
        assert f"got {subject[size // 2]:.6g}" in broken.why


def test_a_tensor_that_should_be_zero() -> None:
    zero = np.zeros(8)
    exact = judge(zero, [zero], zero)
    assert (exact.verdict, exact.ratio, exact.relative) == (Verdict.PASS, 0.0, 0.0)
    off = judge(zero, [zero], zero + 1e-30)
    assert off.verdict is Verdict.FAIL and off.ratio == float("inf") and off.relative == float("inf")
    # torch's rounding is all there is of it, and MindSpore's is no larger
    assert judge(zero, [zero + 1e-9], zero + 1e-9).verdict is Verdict.PASS
    assert judge(zero, [zero + 1e-9], zero + 1e-7).verdict is Verdict.FAIL
    assert judge(zero, [zero + 1e-9], zero).verdict is Verdict.PASS  # exact, whatever torch does


@given(seeds, st.floats(1e-8, 1e-2), st.floats(0, 1e6), st.integers(1, 50))
def test_a_verdict_always_explains_itself(seed: int, noise: float, share: float, size: int) -> None:
    exact, torch, mindspore = case(seed, size)
    assume(np.isfinite(exact).all())
    measure: Measure = judge(exact, [exact + noise * torch], exact + share * noise * mindspore)
    assert bool(measure.why) == (measure.verdict is not Verdict.PASS)
    assert "nan" not in measure.why
    if measure.verdict is Verdict.PASS:
        assert measure.ratio <= RATIO * (1 + 1e-9)
    if measure.ratio > RATIO * (1 + 1e-9):
        assert measure.verdict is Verdict.FAIL


def test_a_tensor_of_one_element_of_any_precision() -> None:
    exact = np.array([2.0])
    for dtype in ("float16", "float32", "float64"):
        assert judge(exact, [exact.astype(dtype)], exact.astype(dtype)).verdict is Verdict.PASS


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_what_is_not_finite_never_passes(value: float) -> None:
    exact = np.ones(8)
    odd = exact.copy()
    odd[3] = value
    with np.errstate(over="ignore", invalid="ignore"):
        assert judge(exact, [exact], odd).verdict is Verdict.FAIL
        assert judge(odd, [exact], exact).verdict is not Verdict.PASS
        assert judge(exact, [exact, odd], exact + 1e-3).verdict is not Verdict.PASS
        assert judge(exact, [odd, exact], odd).verdict is not Verdict.PASS


def change_of_a_weight(share: float) -> tuple[np.ndarray, np.ndarray, float]:
    """A change of 4,096 weights of about 1, whose rounding to float32 is `share` of it; the change as it is stored, and
    how far storing moves it."""
    draws = np.random.default_rng(0)
    stored = 0.25 * EPS32 * 64.0
    exact = draws.standard_normal(4096)
    exact *= stored / share / np.linalg.norm(exact)
    return exact, (1.0 + exact).astype(np.float32).astype(np.float64) - 1.0, stored


def test_what_storing_a_weight_does_is_known_and_hides_no_missing_update() -> None:
    exact, kept, stored = change_of_a_weight(0.15)
    assert judge(exact, [kept], kept).unjudged is Unjudged.NOISE  # a multiple of this noise hides the change
    assert judge(exact, [kept], kept, stored=stored).verdict is Verdict.PASS
    assert judge(exact, [kept], np.zeros(4096), stored=stored).verdict is Verdict.FAIL
    assert judge(exact, [kept], 0.5 * exact, stored=stored).verdict is Verdict.FAIL


def test_a_change_that_float32_cannot_hold_has_no_verdict_by_nature() -> None:
    exact, kept, stored = change_of_a_weight(1.1 * BLIND / STORED_MOST)
    measure = judge(exact, [kept], kept, stored=stored)
    assert measure.verdict is Verdict.NONE and measure.unjudged is Unjudged.STORAGE
    assert judge(exact, [kept], 100 * exact, stored=stored).verdict is Verdict.FAIL


def test_what_only_storing_hides_has_no_verdict_by_nature_too() -> None:
    """A small rate in a net of many layers: the noise of the gradient and of storing together hide the change, and the
    run was unproven, with advice that does not help."""
    exact, kept, stored = change_of_a_weight(0.2)
    of_the_gradient = np.random.default_rng(1).standard_normal(4096)
    of_the_gradient *= np.linalg.norm(exact) / np.linalg.norm(of_the_gradient)
    measure = judge(exact, [kept + 0.13 * of_the_gradient], kept, stored=stored)
    assert measure.verdict is Verdict.NONE and measure.unjudged is Unjudged.STORAGE
    noisier = judge(exact, [kept + 0.2 * of_the_gradient], kept, stored=stored)
    assert noisier.unjudged is Unjudged.NOISE  # which a larger batch may mend
    assert judge(exact, [kept + 0.13 * of_the_gradient], 100 * exact, stored=stored).verdict is Verdict.FAIL


def test_a_gradient_of_zero_passes_as_zero_and_its_update_has_no_verdict_by_nature() -> None:
    exact, torch, mindspore = (1e-9 * rows for rows in case(1))
    assert judge(exact, [exact + torch], exact + mindspore).unjudged is Unjudged.NOISE
    assert judge(exact, [exact + torch], exact + mindspore, zero=True).verdict is Verdict.PASS
    assert judge(exact, [exact + torch], exact + 100 * mindspore, zero=True).verdict is Verdict.FAIL
    made_of_it = judge(exact, [exact + torch], exact + mindspore, zero=True, of_a_step=True)
    assert made_of_it.unjudged is Unjudged.ZERO_GRADIENT
    assert judge(exact, [exact + 1e-3 * torch], np.zeros(200), zero=True).verdict is Verdict.FAIL  # no zero after all


def test_what_is_made_of_a_gradient_of_zero_may_be_off_as_far_as_the_gradient_and_its_square() -> None:
    exact, torch, mindspore = (1e-9 * rows for rows in case(1))
    for times, power in ((12.0, 1), (12.0**2 / 4.0, 2)):
        of_it = {"zero": True, "of_a_step": True, "squared": power == 2}
        near, far = (judge(exact, [exact + torch], exact + by * times * mindspore, **of_it) for by in (0.8, 30.0))
        assert near.unjudged is Unjudged.ZERO_GRADIENT and far.verdict is Verdict.FAIL, power


def test_a_weight_that_stays_is_stored_all_the_same() -> None:
    """A bias before a norm: in float64 its update is none, and in torch's float32 by luck, too."""
    start = np.full(32, 0.05)
    stored = 0.25 * EPS32 * float(np.linalg.norm(start))
    nothing, unit = np.zeros(32), np.spacing(np.float32(0.05))
    by_luck = np.where(np.arange(32) == 3, unit / 8, 0.0)
    some_units = np.where(np.arange(32) < 4, float(unit), 0.0)
    assert judge(nothing, [nothing, by_luck], some_units, of_a_step=True).verdict is Verdict.FAIL  # nothing known of it
    known = judge(nothing, [nothing, by_luck], some_units, of_a_step=True, stored=stored, zero=True)
    assert known.verdict is Verdict.PASS and known.ratio < RATIO
    moved = judge(nothing, [nothing, by_luck], np.full(32, 1e-5), of_a_step=True, stored=stored, zero=True)
    assert moved.verdict is Verdict.FAIL


@pytest.mark.parametrize("elements", BY_LUCK)
def test_of_so_few_elements_torch_may_have_been_exact_by_luck(elements: int) -> None:
    """Rounding errors as they are drawn: one right tensor in a thousand fails, not one in thirty."""
    rng = np.random.default_rng(0)
    exact = np.ones(elements)
    errors = 1e-4 * rng.standard_normal((4000, 3, elements))
    verdicts = [judge(exact, [exact + one, exact + two], exact + 1.5 * ours).verdict for one, two, ours in errors]
    assert verdicts.count(Verdict.FAIL) < 0.003 * len(verdicts)


@pytest.mark.parametrize("elements", [*BY_LUCK, 3])
@pytest.mark.parametrize("noise", [1e-7, 1e-5, 1e-3, 1e-2, 5e-2])
def test_of_few_elements_too_what_is_far_off_does_not_pass(elements: int, noise: float) -> None:
    exact, torch, mindspore = case(3, elements)
    limit = RATIO * uncertain(elements) * BY_LUCK.get(elements, 1.0)
    noisy = [exact + noise * torch]
    for wrong in (np.zeros_like(exact), -exact, exact + max(1.1 * limit * noise, 1e-5) * mindspore):
        assert judge(exact, noisy, wrong).verdict is not Verdict.PASS


def test_luck_hides_nothing_where_the_noise_is_known_from_around() -> None:
    """What the floor allows is not multiplied: of one element it is what is usual, and no draw."""
    exact = np.ones(1)
    found = judge(exact, [exact + 1e-9], exact + 1e-4, relative_floor=1e-5)
    assert found.verdict is Verdict.FAIL
    assert found.allowed == pytest.approx(RATIO * uncertain(1) * 1e-5)
