"""Initial distributions: the statistic is SciPy's, alarms are rare, and usual initializer mistakes are seen."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from msmigrate.parity.compare_traces import compare_distributions
from msmigrate.parity.record.recorder import PER_SEED, add_initial_values
from msmigrate.parity.trace import DISTRIBUTION, Trace, TraceWriter
from scipy import stats

MODEL = 161  # tensors of a ResNet50
SEEDS = 3


def normal(seed: int, size: int, std: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(size) * std).astype(np.float32)


@given(st.data())
@settings(max_examples=50)
def test_the_statistic_is_scipys(data: st.DataObject) -> None:
    values = arrays(np.float32, st.integers(10, 60), elements=st.integers(-9000, 9000).map(lambda n: n / 1024))
    x, y = data.draw(values), data.draw(values)
    if np.ptp(x) and np.ptp(y):
        check = compare_distributions(x, y, 1)
        assert check.statistic == pytest.approx(stats.ks_2samp(x, y, method="asymp").statistic, abs=1e-12)


def test_the_critical_value_is_the_asymptotic_one() -> None:
    x, y = normal(0, 5000), normal(1, 4000)
    check = compare_distributions(x, y, MODEL)
    effective = 5000 * 4000 / 9000
    assert stats.kstwobign.sf(check.critical * math.sqrt(effective)) == pytest.approx(1e-6 / MODEL, rel=0.01)


@pytest.mark.parametrize("draw", [np.random.Generator.standard_normal, np.random.Generator.random])
@pytest.mark.parametrize("size", [10, 30, 500])
def test_equal_distributions_raise_no_alarm(draw: object, size: int) -> None:
    rng = np.random.default_rng(size)
    checks = [compare_distributions(draw(rng, size), draw(rng, size), 1) for _ in range(3000)]  # type: ignore[operator]
    assert [check.why for check in checks if not check.agree] == []


def he(fan: int, gain: float = 2.0) -> float:
    return math.sqrt(gain / fan)


# what torch draws, what MindSpore draws by mistake: standard deviations of normal values
MISTAKES = {
    "HeUniform's gain forgotten (2.45 times)": (he(27), he(27) / 2.449),
    "fan_in for fan_out (40%)": (he(64), he(128)),
    "xavier for he": (he(64), math.sqrt(2.0 / (64 + 128))),
    "MindSpore's truncation uncorrected (12%)": (0.02, 0.02 * 0.88),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("size", [432, 4096])  # the smallest filter of the tiny net, and what is kept of a large one
def test_a_wrong_scale_is_seen(mistake: str, size: int) -> None:
    torch, mindspore = MISTAKES[mistake]
    if mistake.endswith("(12%)") and size < 4096:
        pytest.skip("a tenth is not to be told from 1300 values")
    check = compare_distributions(normal(0, SEEDS * size, torch), normal(1, SEEDS * size, mindspore), MODEL)
    assert not check.agree and "standard deviation" in check.why


def test_another_shape_of_one_scale_is_seen() -> None:
    size = SEEDS * 4096
    gauss = normal(0, size)
    uniform = np.random.default_rng(1).uniform(-math.sqrt(3), math.sqrt(3), size)
    truncated = stats.truncnorm(-2, 2).rvs(size, random_state=2)
    assert "KS distance" in compare_distributions(gauss, uniform, MODEL).why
    assert not compare_distributions(gauss, truncated, MODEL).agree  # cut at two sigmas: also 12% narrower
    same_std = truncated / truncated.std()
    assert compare_distributions(gauss, same_std, MODEL).statistic < 0.03  # below what 12,000 values can tell
    shifted = normal(3, size) + 0.2
    assert not compare_distributions(gauss, shifted, MODEL).agree


@pytest.mark.parametrize(
    "torch, mindspore, agree",
    [
        (1.0, 1.0, True),
        (0.0, 0.0, True),
        (1.0, 0.0, False),
        (0.0, 1e-30, False),
        (1.0, 1.00001, False),
        (2.3025851, 2.3025849, True),
    ],
)
def test_constants_have_to_be_equal(torch: float, mindspore: float, agree: bool) -> None:
    check = compare_distributions(np.full(12, torch, np.float32), np.full(9, mindspore, np.float32), 5)
    assert check.agree is agree
    assert agree or "throughout" in check.why


def test_a_constant_that_rounds_is_one() -> None:
    value = np.float32(1.430967)  # the mean of 8 of these is not this
    for size in (7, 8, 100):
        assert compare_distributions(np.full(size, value), np.full(12, value), 5).agree is True


def test_a_table_that_rounds_otherwise_is_one() -> None:
    table = np.tile(np.log(np.arange(1, 9, dtype=np.float32)), 512)
    rounded = np.where(np.arange(len(table)) % 8 == 5, np.nextafter(table, np.float32(9)), table)
    assert compare_distributions(table, rounded, MODEL).agree
    assert "KS distance" in compare_distributions(table, np.where(table > 1.7, table * 1.001, table), MODEL).why


def test_a_computed_constant_may_round_by_where_it_stands() -> None:
    """MindSpore's log(10 * ones) on the CPU, of torchvision's Swin V2."""
    computed = np.where(np.arange(18) % 3 == 0, np.float32(2.3025851), np.float32(2.3025846))
    assert compare_distributions(np.full(18, np.float32(2.3025851)), computed, 5).agree is True


def test_a_few_values_have_no_verdict() -> None:
    check = compare_distributions(normal(0, 9), normal(1, 9), 1)
    assert check.agree is None and "cannot tell" in check.why


def test_a_constant_is_no_distribution() -> None:
    zeros, drawn = np.zeros(3000, np.float32), normal(0, 3000, 0.01)
    for torch, mindspore in ((zeros, drawn), (drawn, zeros)):
        check = compare_distributions(torch, mindspore, MODEL)
        assert not check.agree and "is 0 throughout" in check.why and "has standard deviation" in check.why


def test_values_are_pooled_over_seeds_and_large_tensors_sampled(tmp_path: Path) -> None:
    drawn: list[int] = []

    def draw(seed: int) -> dict[str, np.ndarray]:
        drawn.append(seed)
        return {name: seed + np.arange(n, dtype=np.float32) / n for name, n in (("large", 10_000), ("small", 6))}

    writer = TraceWriter(tmp_path, {}, sample=10)
    add_initial_values(writer, 3, draw)
    writer.close()
    trace = Trace(tmp_path)
    assert len(set(drawn)) == 3
    large, small = (trace.array(("init", DISTRIBUTION, name, 0)) for name in ("large", "small"))
    assert len(large) == 3 * PER_SEED and len(small) == 18  # whatever the sample size of the trace
    assert [int(value) for value in small[::6]] == drawn


@pytest.mark.parametrize(
    ("draw", "kept"),
    [
        (lambda rng: np.full(16, -2 / rng.standard_normal(), np.float32), 3),  # one drawn number for each model
        (lambda rng: np.full(16, 0.5, np.float32), 48),
        (lambda rng: np.full(16, -np.inf, np.float32), 48),
        (lambda rng: rng.standard_normal(16).astype(np.float32), 48),
        (lambda rng: rng.integers(0, 2, 16).astype(np.float32), 48),
        (lambda rng: rng.standard_normal(1).astype(np.float32), 3),
    ],
)
def test_what_one_number_decides_counts_once(tmp_path: Path, draw: Any, kept: int) -> None:
    writer = TraceWriter(tmp_path / "trace", {}, None)
    add_initial_values(writer, 3, lambda seed: {"bias": draw(np.random.default_rng(seed))})
    writer.close()
    (entry,) = Trace(tmp_path / "trace").select("init", DISTRIBUTION)
    assert tuple(entry.shape) == (kept,)
