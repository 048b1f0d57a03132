"""Random layers take the same draws in both frameworks, and are equal if and only if they compute the same."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from msmigrate.parity.record.randomness import (
    DISTINCT,
    OUTSIDE,
    Draws,
    Place,
    given_gradient,
    given_weights,
    normal,
    place,
    uniform,
    unseeded,
)
from msmigrate.parity.result import Report

A, B = Place("a"), Place("b")


def test_draws_depend_on_name_call_and_step_alone() -> None:
    one = uniform("a.drop", 0, 1, (50, 40))
    assert one.dtype == np.float32 and one.min() > 0 and one.max() < 1 and abs(one.mean() - 0.5) < 0.03
    for other in (
        uniform("b.drop", 0, 1, (50, 40)),
        uniform("a.drop", 1, 1, (50, 40)),
        uniform("a.drop", 0, 2, (50, 40)),
    ):
        assert (one != other).mean() > 0.99
    np.testing.assert_array_equal(one.reshape(50, 4, 10, 1), uniform("a.drop", 0, 1, (50, 4, 10, 1)))
    for kind in ("uniform", "normal"):
        code = f"from msmigrate.parity.record.randomness import {kind} as f; print(f('a', 0, 1, (3,)).tobytes().hex())"
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        assert told == {"uniform": uniform, "normal": normal}[kind]("a", 0, 1, (3,)).tobytes().hex()


def test_no_two_uniform_numbers_tie_where_they_may_be_sorted() -> None:
    for call in range(3):
        found = uniform("a", call, 1, (DISTINCT,))
        assert np.unique(found).size == DISTINCT
        np.testing.assert_array_equal(1 - (1 - found), found)  # turned round they are the same numbers


def test_each_kind_is_counted_by_module() -> None:
    draws = Draws(1)
    first, second = (draws.uniform(A, (4,)) for _ in range(2))
    draws.uniform(B, (4,))
    numbers = draws.normal(A, (4,))
    np.testing.assert_array_equal(second, uniform("a", 1, 1, (4,)))
    np.testing.assert_array_equal(numbers, normal("a", 0, 1, (4,)))
    assert (first != second).any()
    assert [(draw.name, draw.kind, draw.shape) for draw in draws.taken] == [
        *[("a", "uniform", (4,))] * 2,
        ("b", "uniform", (4,)),
        ("a", "normal", (4,)),
    ]
    draws.restart()
    np.testing.assert_array_equal(draws.uniform(A, (4,)), first)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_rate_is_the_share_that_goes(rate: float) -> None:
    draws = Draws(3)
    kept = draws.keep(A, (200, 200), rate)
    assert abs(kept.mean() - (1 - rate)) < 0.02 and (rate not in (0.0, 1.0) or kept.mean() == 1 - rate)
    np.testing.assert_array_equal(kept, Draws(3).keep(A, (200, 200), 1.0 - (1.0 - rate)))
    assert bool(draws.taken) == (0.0 < rate < 1.0)  # what is certain draws nothing, and so does not count


def test_whatever_distribution_is_made_of_the_same_numbers() -> None:
    base = Draws(1).uniform(A, (4000,))
    np.testing.assert_array_equal(Draws(1).trials(A, np.full(4000, 0.3)), base < 0.3)
    np.testing.assert_array_equal(Draws(1).keep(A, (4000,), 0.7), base < 0.3)
    np.testing.assert_array_equal(Draws(1).integers(A, (4000,), 5, 12), 5 + np.floor(base * np.float32(7)))
    np.testing.assert_array_equal(Draws(1).permutation(A, 4000), np.argsort(base))
    np.testing.assert_array_equal(Draws(1).exponential(A, (4000,)), -np.log(base.astype(np.float64)))
    turned = Draws(1).uniform(Place("a", turned=True), (4000,))  # floor(keep + rand) is 1 where trials succeed
    np.testing.assert_array_equal(np.floor(np.float32(0.3) + turned) == 1, base < 0.3)


def test_distributions_are_what_they_are_called() -> None:
    draws, many = Draws(1), 40_000
    weights = np.array([0.1, 0.2, 0.3, 0.4, 0.0])
    for count, again in ((1, False), (1, True), (2, True)):
        found = draws.choices(A, np.tile(weights, (many, 1)), count, again)
        np.testing.assert_allclose(np.bincount(found.ravel(), minlength=5) / found.size, weights, atol=0.01)
    pairs = draws.choices(A, np.tile(weights, (many, 1)), 2, False)
    assert (pairs[:, 0] != pairs[:, 1]).all() and pairs.max() == 3
    for rate in (0.0, 0.4, 6.0, 90.0, 3000.0):
        counts = draws.poisson(A, np.full(many, rate))
        assert abs(counts.mean() - rate) <= 0.02 * rate and abs(counts.var() - rate) <= 0.15 * rate
    assert abs(draws.normal(A, (many,)).std() - 1) < 0.01
    assert draws.integers(A, (5,), 0, 1 << 63).min() >= 0


def test_numpy_and_python_draw_the_same_within_a_pass_and_go_on_as_before() -> None:
    kept = np.random.get_state()[1].tobytes(), random.getstate()
    drawn = []
    for _ in range(2):
        draws = Draws(1)
        with draws.libraries():
            drawn.append((np.random.rand(), random.random()))
        assert draws.states.keys() == {"numpy.random", "random"}
    assert drawn[0] == drawn[1] and (np.random.get_state()[1].tobytes(), random.getstate()) == kept
    draws = Draws(1)
    with draws.libraries():
        pass
    assert not draws.states


class Block:
    """Something that draws, by the name of its class or method."""

    def forward(self, names: dict[int, str]) -> Place:
        return place(names)

    def drop_path(self, names: dict[int, str]) -> Place:
        return place(names)


class DropPath(Block):
    """Keeps what is above its rate."""

    def filled_bernoulli(self, names: dict[int, str]) -> Place:
        return place(names)


def test_who_draws_is_the_innermost_module_that_both_have() -> None:
    block, path = Block(), DropPath()
    assert block.forward({id(block): "layer1.0"})[:2] == ("layer1.0", False)
    assert block.forward({})[:2] == (OUTSIDE, False)
    assert block.drop_path({id(block): "layer1.0"})[:2] == ("layer1.0", True)
    assert path.forward({id(path): "path"})[:2] == ("path", True)
    assert path.filled_bernoulli({id(path): "path"})[:2] == ("path", False)
    assert path.forward({}).line.startswith("test_randomness.py, line ")


def test_a_net_with_random_layers_is_at_parity(modes: Callable[[str], Report]) -> None:
    report = modes("random none")
    assert report.parity, report.first_divergence
    trained = {finding.name: finding.error for finding in report.findings if finding.part == "train"}
    assert {"channels", "path", "elements"} <= trained.keys()


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ("elements for channels", "channels"),
        pytest.param("path unscaled", "path", marks=pytest.mark.full),
        pytest.param("rate is what is kept", "elements", marks=pytest.mark.full),
        pytest.param("functional rate", "head.fc", marks=pytest.mark.full),
    ],
)
def test_a_random_layer_that_computes_another_thing_is_found(
    modes: Callable[[str], Report], wrong: str, place: str
) -> None:
    first = modes(f"random {wrong}").first_divergence
    assert first is not None and first.place == f"forward (train) {place}"
    assert first.ratio is not None and first.ratio > 1000


def test_what_is_given_for_a_parameter_without_axes_is_an_array() -> None:
    for given in (given_gradient("scale", (), 1), given_weights("scale", (), 1)):
        assert isinstance(given, np.ndarray) and given.shape == () and given.dtype == np.float32


def test_what_seeds_a_framework_does_nothing_while_models_are_drawn():
    framework = SimpleNamespace(manual_seed=lambda seed: seed, other=lambda: 3)
    with unseeded(framework, "manual_seed"):
        assert framework.manual_seed(5) is None and framework.other() == 3
    assert framework.manual_seed(5) == 5
