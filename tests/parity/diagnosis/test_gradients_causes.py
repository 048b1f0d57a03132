"""Why gradients differ: what was differentiated, and what the whole was multiplied by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

# what MindSpore's side does otherwise, and the stage, place and fault that have to come first
First = Callable[[str, tuple[str, str, str | None]], None]

CASES = [
    ("logits added", ("gradients", "every parameter", "value-and-grad-has-aux")),
    pytest.param("not unscaled", ("gradients", "every parameter", "loss-scale-not-removed"), marks=pytest.mark.full),
    pytest.param("halved", ("gradients", "every parameter", "gradient-factor"), marks=pytest.mark.full),
    ("one of them", ("gradients", "conv2.weight", None)),
    ("in one", ("forward", "the whole net", "bn-eval-accumulation")),
    ("in pieces", ("forward", "the whole net", "accumulate-uneven")),
    pytest.param("uphill", ("gradients", "every parameter", "gradient-flipped"), marks=pytest.mark.full),
]


@pytest.mark.parametrize(("case", "expected"), CASES)
def test_the_cause_comes_first(case: str, expected: tuple[str, str, str | None], first: First) -> None:
    first(case, expected)


@pytest.mark.parametrize("case", ["one of them"])
def test_a_factor_that_nobody_knows_is_told(case: str, said: Callable[[str], Any]) -> None:
    assert said(case)[0]["text"] == "the gradient is 1.01 times what it should be"


@pytest.mark.parametrize("case", ["heads"])
def test_a_head_whose_mean_with_another_s_is_the_logits_says_nothing_of_the_gradients(
    case: str, said: Callable[[str], Any]
) -> None:
    """Its gradients were said to be "divided by the samples twice", for the loss reaches it through that mean."""
    assert said(case) == {
        "the last": ["two.bias", "two.weight"],
        "the last, from a branch that is not recorded": ["two.bias"],
        "the mean of both": None,
        "the last one scaled": None,
    }
