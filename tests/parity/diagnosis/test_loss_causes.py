"""Why the loss differs: smoothing, reduction, and what nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

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
