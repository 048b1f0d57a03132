"""What a hypothesis is worth: one that makes what is not finite of what MindSpore computed finite explains nothing; and
which of several causes comes first."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from msmigrate.parity.diagnosis.hypotheses import Outcome, Prediction, judge_prediction, ranked
from msmigrate.parity.diagnosis.mutations.optimizers import UpdateRule, single_changes
from msmigrate.parity.result import Cause, Finding
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.parity.trace import ALONE
from msmigrate.training.recipe.schema import Group, Optimizer

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


def failing(part: str, *names: str) -> list[Finding]:
    return [Finding("forward", part, name, i, Verdict.FAIL) for i, name in enumerate(names)]


def test_a_proven_cause_stands_above_what_nothing_explains() -> None:
    container = Cause("forward", "block", None, "nothing known reproduces it", before=9.0)
    leaf = Cause("update", "block.bn", "bn-momentum-complement", "momentum", ratio=0.4)
    start = Cause("init", "fc.weight", None, "nothing known", before=9.0)
    assert ranked([container, leaf, start], []) == [start, leaf, container], "what starts otherwise comes before all"


def test_what_explains_most_comes_first() -> None:
    one = Cause("forward", "conv", None, "", ratio=0.4, kind="Conv2d", hypothesis="stride=(1, 1)")
    norms = [replace(one, place=name, kind="LayerNorm", hypothesis="eps=0.1") for name in ("norm1", "norm2")]
    findings = failing(ALONE, "conv output", "conv input.grad", "norm1 output", "norm2 output", "norm2#1 output")
    assert ranked([one, *norms], findings) == [*norms, one]
    assert ranked([one, *norms], findings[:4])[0] == one, "as many: in the order of execution"
    assert ranked([one, *norms], failing("train", "norm1", "norm2", "norm3"))[0] == one, "alone, not what follows"


def test_a_group_may_be_treated_as_another_one() -> None:
    """All parameters in one list: they have the options of the first group, and not those that stand for all."""
    groups = [Group(params=["a"], args={"weight_decay": 0.05}), Group(params=["b"], args={"lr": 2e-3})]
    rule = UpdateRule(Optimizer(name="AdamW", args={"lr": 1e-3}, groups=groups))
    (found,) = [each for each in single_changes(rule) if each.text == "the group b is treated like the group a"]
    assert [group.args for group in found.change.optimizer.groups] == [{"weight_decay": 0.05}] * 2
