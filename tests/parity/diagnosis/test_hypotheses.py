"""What a hypothesis is worth: one that makes what is not finite of what MindSpore computed finite explains nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msmigrate.parity.diagnosis.hypotheses import Outcome, Prediction, judge_prediction
from msmigrate.parity.verdict import Verdict

VALUES = np.array([1.0, -2.0, 3.0])


def outcome(exact: np.ndarray, subject: np.ndarray) -> Outcome:
    return Outcome.of({"tensor": judge_prediction(subject.astype(np.float32), Prediction.rounded(exact))})


def test_what_agrees_reproduces() -> None:
    assert outcome(VALUES, VALUES).reproduces
    assert not outcome(VALUES, 1.01 * VALUES).reproduces


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_on_one_side_explains_nothing(bad: float) -> None:
    """The verdict on a tensor has none where the reference is not finite; that is no agreement."""
    spoiled = np.array([1.0, bad, 3.0])
    for exact, subject in ((spoiled, VALUES), (VALUES, spoiled)):
        found = outcome(exact, subject)
        assert not found.reproduces and found.worst == math.inf
    assert judge_prediction(VALUES, Prediction.rounded(spoiled)).verdict is Verdict.FAIL


def test_the_same_infinities_leave_the_rest_to_be_judged() -> None:
    mask = np.array([1.0, -math.inf, 3.0])
    assert outcome(mask, mask).reproduces
    assert not outcome(mask, np.array([1.0, -math.inf, 3.1])).reproduces
    assert not outcome(np.array([1.0, math.nan, 3.0]), np.array([1.0, math.nan, 3.0])).reproduces
