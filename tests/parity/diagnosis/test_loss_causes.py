"""Why the loss differs: smoothing, reduction, and what nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from msmigrate.parity.diagnosis.causes import torch_loss
from msmigrate.parity.diagnosis.context import Context
from msmigrate.training.recipe import reader as recipes

TINY = Path(__file__).parents[1] / "tiny.yaml"

# what MindSpore's side does otherwise, and the stage, place and fault that have to come first
First = Callable[[str, tuple[str, str, str | None]], None]

CASES = [
    ("smoothed over others", ("loss", "CrossEntropyLoss", "label-smoothing-k-1")),
    pytest.param("summed", ("loss", "CrossEntropyLoss", "loss-argument"), marks=pytest.mark.full),
    pytest.param("smoothing", ("loss", "CrossEntropyLoss", "loss-argument"), marks=pytest.mark.full),
    pytest.param("squared", ("loss", "CrossEntropyLoss", None), marks=pytest.mark.full),
]


@pytest.mark.parametrize(("case", "expected"), CASES)
def test_the_cause_comes_first(case: str, expected: tuple[str, str, str | None], first: First) -> None:
    first(case, expected)


@pytest.mark.parametrize("case", ["smoothed over others"])
def test_what_follows_from_the_loss_is_not_explained_again(case: str, said: Callable[[str], Any]) -> None:
    assert [cause["stage"] for cause in said(case)] == ["loss"]


@pytest.mark.parametrize("case", ["own losses"])
def test_a_loss_of_ones_own_is_explained_by_the_arguments_that_it_hands_to_cross_entropy(
    case: str, said: Callable[[str], Any]
) -> None:
    others = "the smoothing's mass goes to the K - 1 other classes, {}/(K - 1) each, not to all K"
    weight = "[1.0, 2.0, 3.0, 4.0, 5.0]"
    assert said(case) == {
        "module": others.format(0.1),
        "imported by name": others.format(0.1),
        "weighted": others.format(0.2),
        "no weight": f"weight is None where torch's loss has {weight}",
        "no smoothing": "label_smoothing is 0.0 where torch's loss has 0.1",
        "summed": "reduction is 'sum' where torch's loss has 'mean'",
        "by count": "the weighted losses are divided by the number of samples, not by the sum of their weights",
        "squared": "",
    }


@pytest.mark.parametrize("alone", [True, False])
def test_a_steps_loss_is_explained_by_its_logits_only_where_the_loss_was_tried_alone(alone: bool) -> None:
    """Of several outputs it is not, and the first of them, which is kept as the logits, does not make the loss."""
    draws = np.random.default_rng(0)
    values = {"logits": draws.normal(size=(4, 5)), "loss": np.array([9.0])}
    shapes = {"logits": (4, 5), "loss": ()}
    entries = {
        ("loss", part, name, 0): SimpleNamespace(key=name, shape=shapes[name], sampled=False, nonfinite=False)
        for part in ("step1", *([torch_loss.PART] if alone else []))
        for name in values
    }
    context = SimpleNamespace(
        recipe=recipes.load(TINY),
        paired=None,
        inputs=SimpleNamespace(labels=[np.arange(4)], logits=(4, 5), classes=5, values=None),
        mindspore=SimpleNamespace(entries=entries),
        mindspore_values=values.__getitem__,
        failed=lambda _, part=None: part is None,
    )
    causes = torch_loss.explain(cast(Context, context))
    said = ["the step's loss is not that of its own logits and labels, though the loss alone is right"]
    assert [cause.text for cause in causes] == (said if alone else [])
