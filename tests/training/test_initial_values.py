"""A model that trains from scratch starts from the same distribution in both frameworks, parameter by parameter."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))
SEEDS = CASES["seeds"]
# About 200 parameters are tested; by chance alone the smallest p value of so many is around 1/200.
SMALLEST_P = 1e-5


def draws(side, case: str) -> dict[str, np.ndarray]:
    """Parameter name -> its values over all seeds, (seeds, values)."""
    by_seed = [side.under(f"initial/{case}/{seed}/") for seed in SEEDS]
    return {name: np.stack([draw[name] for draw in by_seed]) for name in by_seed[0]}


@pytest.mark.parametrize("case", CASES["initial"])
def test_distributions_are_equal(models_and_data, case):
    theirs, ours = draws(models_and_data.torch, case), draws(models_and_data.mindspore, case)
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        if values.std() == 0:
            assert np.array_equal(ours[name], values), name
            continue
        # The deviation of n values is known to one part in sqrt(2n), a ratio of two to one in sqrt(n): five of those.
        assert abs(ours[name].std() / values.std() - 1) < 5 / np.sqrt(values.size), name
        assert stats.ks_2samp(ours[name].ravel(), values.ravel()).pvalue > SMALLEST_P, name


def test_zero_init_residual_zeroes_the_last_norm_of_each_block(models_and_data):
    for case, last in (("resnet_tiny zero", "bn3"), ("resnet_tiny basic zero", "bn2")):
        ours = draws(models_and_data.mindspore, case)
        zeroed = {name for name, values in ours.items() if name.endswith("weight") and not values.any()}
        assert zeroed == {f"layer{stage}.0.{last}.weight" for stage in (1, 2, 3, 4)}


@pytest.mark.parametrize("case", CASES["initial"])
def test_draws_depend_on_the_seed_and_on_nothing_else(models_and_data, case):
    ours = draws(models_and_data.mindspore, case)
    again = models_and_data.mindspore.under(f"again/initial/{case}/{SEEDS[0]}/")
    for name, values in ours.items():
        assert np.array_equal(values[0], again[name]), name
        if values.std() > 0:
            for first, second in itertools.combinations(values, 2):
                assert not np.any(first == second) or np.mean(first == second) < 0.01, name


@pytest.mark.parametrize("framework", ["torch", "mindspore"])
def test_equal_shapes_are_drawn_independently(models_and_data, framework):
    ours = draws(getattr(models_and_data, framework), "resnet18")
    random = {name: values[0] for name, values in ours.items() if values.std() > 0 and values[0].size > 1000}
    assert len(random) == 21  # every convolution and fc.weight
    for (one, first), (other, second) in itertools.combinations(random.items(), 2):
        size = min(first.size, second.size)
        assert abs(np.corrcoef(first[:size], second[:size])[0, 1]) < 6 / np.sqrt(size), (one, other)
