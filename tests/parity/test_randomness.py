"""Random layers take the same draws in both frameworks, and are equal if and only if they compute the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msmigrate.errors import BadTrace
from msmigrate.parity.findings import Report
from msmigrate.parity.fixed_randomness import KEY, Draws, about, notes, uniform


def test_draws_depend_on_name_call_and_step_alone() -> None:
    one = uniform("a.drop", 0, 1, (50, 40))
    assert one.dtype == np.float32 and one.min() >= 0 and one.max() < 1 and abs(one.mean() - 0.5) < 0.03
    for other in (
        uniform("b.drop", 0, 1, (50, 40)),
        uniform("a.drop", 1, 1, (50, 40)),
        uniform("a.drop", 0, 2, (50, 40)),
    ):
        assert (one != other).mean() > 0.99
    np.testing.assert_array_equal(one.reshape(50, 4, 10, 1), uniform("a.drop", 0, 1, (50, 4, 10, 1)))
    code = "from msmigrate.parity.fixed_randomness import uniform; print(uniform('a.drop', 0, 1, (3,)).tobytes().hex())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert told == uniform("a.drop", 0, 1, (3,)).tobytes().hex()


def test_calls_are_counted_by_layer_and_may_start_later() -> None:
    draws = Draws(1)
    first, second = (draws.uniform("a", (4,)) for _ in range(2))
    draws.uniform("b", (4,))
    np.testing.assert_array_equal(second, Draws(1, first=1).uniform("a", (4,)))
    assert (first != second).any()
    assert draws.taken == {"a": [((4,), None)] * 2, "b": [((4,), None)]}


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_rate_is_the_share_that_goes(rate: float) -> None:
    kept = Draws(3).keep("a", (200, 200), rate)
    assert abs(kept.mean() - (1 - rate)) < 0.02 and (rate not in (0.0, 1.0) or kept.mean() == 1 - rate)
    np.testing.assert_array_equal(kept, Draws(3).keep("a", (200, 200), 1.0 - (1.0 - rate)))


def heads() -> tuple[dict[str, Any], dict[str, Any]]:
    both = []
    for names in (("a", "b"), ("a", "c")):
        draws = Draws(1)
        for name in names:
            draws.keep(name, (2, 3), 0.5)
        both.append(draws)
    both[1].outside.add("mindspore.ops.StandardNormal")
    return about([both[0], Draws(2)]), about([both[1]])


def test_the_report_says_what_was_fixed_and_what_was_not() -> None:
    assert notes({}, {}, "x") == [] and about([Draws(1)]) == {}
    shared, torch_only, mindspore_only, outside = notes(*heads(), "x")
    assert shared.startswith("1 random layers (such as a) took the same draws")
    assert "only torch drew random numbers in b" in torch_only
    assert "only MindSpore drew random numbers in c" in mindspore_only
    assert "not fixed in MindSpore" in outside and "StandardNormal" in outside


@pytest.mark.parametrize("said", [1, [], {"layers": []}, {"outside": {}}, {"outside": [1]}, None])
def test_a_damaged_head_is_refused(said: object) -> None:
    with pytest.raises(BadTrace, match=r"trace\.json: what it says of random layers is damaged"):
        notes({KEY: said}, {}, "trace.json")


def test_a_net_with_random_layers_is_at_parity(modes: Callable[[str], Report]) -> None:
    report = modes("random none")
    assert report.parity, report.first_divergence
    trained = {finding.name: finding.error for finding in report.findings if finding.part == "train"}
    assert {"channels", "path", "elements"} <= trained.keys()


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ("elements for channels", "channels"),
        ("path unscaled", "path"),
        pytest.param("rate is what is kept", "elements", marks=pytest.mark.full),
        ("functional rate", "head.fc"),
    ],
)
def test_a_random_layer_that_computes_another_thing_is_found(
    modes: Callable[[str], Report], wrong: str, place: str
) -> None:
    first = modes(f"random {wrong}").first_divergence
    assert first is not None and first.place == f"forward (train) {place}"
    assert first.ratio is not None and first.ratio > 1000
