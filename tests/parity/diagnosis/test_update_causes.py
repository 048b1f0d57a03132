"""Why updates differ: the optimizer, its schedule, clipping and the moving average."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

# what MindSpore's side does otherwise, and the stage, place and fault that have to come first
First = Callable[[str, tuple[str, str, str | None]], None]

CASES = [
    ("nesterov", ("update", "every parameter", "momentum-nesterov-ignored")),
    ("momentum", ("update", "every parameter", "optimizer-argument")),
    pytest.param("rate", ("update", "every parameter", "optimizer-argument"), marks=pytest.mark.full),
    ("undecayed biases", ("update", "conv1.bias and 4 more: every bias", "mindcv-wd-bias")),
    pytest.param("no schedule", ("update", "every parameter", "schedule-not-moving"), marks=pytest.mark.full),
    pytest.param("from zero", ("update", "every parameter", "warmup-zero"), marks=pytest.mark.full),
    ("epochs of two", ("update", "every parameter", "cosine-step-epoch")),
    ("coupled", ("update", "every parameter", "adamw-as-adam-wd")),
    pytest.param("betas", ("update", "every parameter", "optimizer-argument"), marks=pytest.mark.full),
    pytest.param("eps", ("update", "every parameter", "adamweightdecay-eps"), marks=pytest.mark.full),
    pytest.param("unclipped", ("update", "every parameter", "clip-missing"), marks=pytest.mark.full),
    pytest.param("cubic", ("update", "every parameter", None), marks=pytest.mark.full),
    pytest.param("average", ("update", "ema of every parameter", "ema-decay-complement"), marks=pytest.mark.full),
    pytest.param("average slightly", ("update", "ema of every parameter", "ema-argument"), marks=pytest.mark.full),
]


@pytest.mark.parametrize(("case", "expected"), CASES)
def test_the_cause_comes_first(case: str, expected: tuple[str, str, str | None], first: First) -> None:
    first(case, expected)


@pytest.mark.full
@pytest.mark.parametrize(
    ("case", "faults"),
    [
        ("nesterov and decay", {"momentum-nesterov-ignored", "optimizer-argument"}),
        ("three at once", {"momentum-nesterov-ignored", "optimizer-argument", "schedule-not-moving"}),
        ("nn.RMSProp", {"rmsprop-square-init-ones", "rmsprop-lr-in-velocity"}),
    ],
)
def test_several_at_once_are_all_named(case: str, faults: set[str], said: Callable[[str], Any]) -> None:
    assert {cause["fault"] for cause in said(case)} == faults


@pytest.mark.parametrize("case", ["untouched"])
def test_nothing_is_explained_where_nothing_failed(case: str, said: Callable[[str], Any]) -> None:
    assert said(case) == []


@pytest.mark.parametrize("case", ["formulas"])
def test_the_formulas_are_torchs(case: str, said: Callable[[str], Any]) -> None:
    assert max(said(case).values()) < 1e-14


@pytest.mark.parametrize("case", ["no schedule"])
def test_a_rate_that_is_constant_in_what_was_compared_is_not_said_to_never_move(
    case: str, said: Callable[[str], Any]
) -> None:
    assert "it never moves, or is constant within an epoch" in said(case)[0]["text"]


@pytest.mark.parametrize("case", ["momentum"])
def test_a_value_that_no_table_knows_is_found(case: str, said: Callable[[str], Any]) -> None:
    assert said(case)[0]["text"] == "momentum is 0.83 where torch has 0.9"
    assert said(case)[0]["fix"] == "momentum=0.9"
