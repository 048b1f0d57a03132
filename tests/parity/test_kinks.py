"""Where rounding decides, the reference takes the other side: its gradient follows, its values do not move."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.parity.record.kinks import KINKS, Choice, choice, packed

Facts = dict[str, dict[str, Any]]
DTYPES = ("float32", "float64")


@pytest.fixture(scope="module")
def facts() -> Facts:
    """What the torch process saw; the tests import no framework."""
    worker = Path(__file__).with_name("kinks_worker.py")
    done = subprocess.run([sys.executable, str(worker)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inplace", ["", " inplace"])
def test_a_relu_takes_the_other_side_next_to_zero(facts: Facts, dtype: str, inplace: str) -> None:
    seen = facts[f"relu {dtype}{inplace}"]
    assert seen["grad"] == [1.0, 0.0, 0.0, 1.0]  # the last two turned about
    assert seen["away"] <= 1.01e-7
    assert (seen["matched"], seen["differing"]) == (2, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kind", "kinks"), [(kind, len(kinks)) for kind, kinks in KINKS.items() if kind != "ReLU"])
def test_every_layer_takes_the_other_side_of_each_of_its_kinks(facts: Facts, kind: str, kinks: int, dtype: str) -> None:
    seen = facts[f"{kind} {dtype}"]
    assert seen["matched"] == 2 * kinks
    assert seen["turned"] > 0.1  # each of them had another gradient before
    assert seen["as theirs"] < 1e-5
    assert seen["away"] < 5e-6
    assert seen["of torch's"]


def test_what_is_kept_of_a_choice() -> None:
    values = np.array([[-4.0, 0.0, 4.0]], np.float32)
    kept = choice("Hardswish", values, values)
    assert kept is not None and np.unpackbits(kept, count=12).tolist() == [0, 1, 1, 0, 0, 1, *[0] * 6]
    at = choice("ReLU6", values + 2.0, values + 2.0)  # -2, 2 and 6
    assert at is not None and np.unpackbits(at, count=12).tolist() == [0, 1, 1, *[0] * 3, *[0] * 3, 0, 0, 1]
    assert np.unpackbits(choice("ReLU", values, None), count=3).tolist() == [0, 0, 1]
    assert choice("MaxPool2d", values, values) is values
    assert choice("Linear", values, values) is None and choice(None, values, None) is None


@pytest.mark.parametrize("kinks", [1, 2])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (3, 8, 4), (5,), (1, 64)])
def test_elements_on_the_other_side_are_found_without_unpacking(shape: tuple[int, ...], kinks: int) -> None:
    draws = np.random.default_rng(0)
    above, at = (draws.random((kinks, *shape)) < share for share in (0.5, 0.2))
    ours = above ^ (draws.random(above.shape) < 0.1)
    kept = Choice("relu", 0, packed([*above], [*at]))
    for number, (was_above, was_at) in enumerate(kept.sides(math.prod(shape))):
        positions = kept.others(number, ours[number])
        assert positions.tolist() == np.flatnonzero(was_above != ours[number].reshape(-1)).tolist()
        assert kept.was_at(number, was_at.size, positions).tolist() == was_at[positions].tolist()
    assert np.array_equal(above.reshape(kinks, -1), [side for side, _ in kept.sides(math.prod(shape))])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_relu_far_from_zero_is_left_alone_and_counted(facts: Facts, dtype: str) -> None:
    seen = facts[f"relu far {dtype}"]
    assert seen == {"grad": [1.0, 0.0, 1.0, 0.0], "away": 0.0, "matched": 0, "differing": 2}


@pytest.mark.parametrize("dtype", DTYPES)
def test_at_zero_the_other_framework_s_leaky_relu_takes_half_of_both_gradients(facts: Facts, dtype: str) -> None:
    seen = facts[f"leaky at zero {dtype}"]
    assert seen["grad"] == pytest.approx([0.55, 0.55, 0.1, 1.0, 0.1, 1.0])
    assert seen["away"] < 2e-8 and (seen["matched"], seen["differing"]) == (2, 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [kind for kind in KINKS if kind != "ReLU"])
def test_nothing_moves_where_both_are_exactly_at_a_kink(facts: Facts, kind: str, dtype: str) -> None:
    assert facts[f"{kind} tied {dtype}"] == {"moved": False, "matched": 0}


def test_nothing_moves_where_both_agree(facts: Facts) -> None:
    assert facts["agreeing"] == {"moved": False, "matched": 0}


def test_calls_of_one_relu_are_told_apart(facts: Facts) -> None:
    assert facts["reused"] == {"grads": [[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]], "matched": 1}


def test_choices_of_another_shape_are_ignored(facts: Facts) -> None:
    assert facts["misshapen"] == {"moved": [False, False], "matched": 0}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", ["plain", "overlapping", "padded", "ceil", "dilated"])
def test_a_pool_sends_its_gradient_where_the_other_does(facts: Facts, case: str, dtype: str) -> None:
    seen = facts[f"pool {case} {dtype}"]
    assert seen["as theirs"] and not seen["as before"]
    assert seen["away"] == 0.0  # equal elements: the output is the same value
    assert seen["matched"] > 10 and seen["differing"] == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_pool_that_differs_by_more_than_rounding_is_left_alone(facts: Facts, dtype: str) -> None:
    seen = facts[f"pool far {dtype}"]
    assert seen["differing"] > 0 and not seen["as theirs"]
    assert seen["away"] <= 1e-3
