"""Why starting weights and initial distributions differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msmigrate.parity.diagnosis.causes.initial_weights import OF_THE_WEIGHT, _as_argument, common, matches
from msmigrate.parity.diagnosis.context import place

# what MindSpore's side does otherwise, and the stage, place and fault that have to come first
First = Callable[[str, tuple[str, str, str | None]], None]

CASES = [
    ("transposed", ("init", "conv1.weight", "weight-transposed")),
    ("half", ("init", "fc1.weight", "weights-rounded")),
    pytest.param("ulp", ("init", "fc2.bias", "weights-rounded"), marks=pytest.mark.full),
    pytest.param("scaled", ("init", "fc1.weight", "weights-scaled"), marks=pytest.mark.full),
    pytest.param("shuffled", ("init", "fc1.weight", "weight-transposed"), marks=pytest.mark.full),
]


@pytest.mark.parametrize(("case", "expected"), CASES)
def test_the_cause_comes_first(case: str, expected: tuple[str, str, str | None], first: First) -> None:
    first(case, expected)


@pytest.mark.parametrize("case", ["drawn"])
def test_another_initializer_is_named_once(case: str, said: Callable[[str], Any]) -> None:
    assert {cause["fault"] for cause in said(case)} == {"init-strings"}
    assert said(case)[0]["text"].startswith(
        "drawn as Normal(sigma=0.01) (or TruncatedNormal(sigma=0.01), which cuts at -2 and 2 whatever sigma is) where "
    )


@pytest.mark.parametrize(
    ("drawn", "text"),
    [
        (lambda rng, n: rng.normal(0, np.sqrt(2 / 72), n), "HeNormal(mode='fan_in', nonlinearity='relu')"),
        (lambda rng, n: rng.normal(0, np.sqrt(2 / 216), n), "HeNormal(mode='fan_out', nonlinearity='relu')"),
        (
            lambda rng, n: rng.uniform(-1, 1, n) / np.sqrt(72),
            "HeUniform(mode='fan_in', negative_slope=math.sqrt(5))",
        ),
        (lambda rng, n: rng.uniform(-1, 1, n) * np.sqrt(6 / 288), "XavierUniform()"),
        (lambda rng, n: rng.normal(0, np.sqrt(2 / 288), n), "XavierNormal()"),
        (lambda rng, n: rng.uniform(-0.07, 0.07, n), "Uniform(scale=0.07)"),
        (lambda rng, n: rng.uniform(-0.3, 0.3, n), "Uniform(scale=0.3)"),
        (lambda rng, n: rng.normal(0, 0.01, n), "Normal(sigma=0.01)"),
        (lambda rng, n: rng.normal(0, 0.03, n), "Normal(sigma=0.03)"),
        (lambda rng, n: _cut(rng, n, 0.02), "TruncatedNormal(sigma=0.02, a=-0.04, b=0.04)"),
        (lambda rng, n: _cut(rng, n, 0.3), "TruncatedNormal(sigma=0.3, a=-0.6, b=0.6)"),
        (lambda rng, n: np.zeros(n), "Constant(0)"),
        (lambda rng, n: 1.5 * np.linalg.qr(rng.standard_normal((72, 24)))[0].T.reshape(-1), "Orthogonal(gain=1.5)"),
    ],
)
def test_the_initializer_is_recognised(drawn: Callable[..., np.ndarray], text: str) -> None:
    found = common({"": matches(drawn(np.random.default_rng(0), 4000), (24, 8, 3, 3))})
    assert found[""].text == text


def _cut(rng: np.random.Generator, count: int, sigma: float) -> np.ndarray:
    values = rng.standard_normal(2 * count)
    return sigma * values[np.abs(values) <= 2.0][:count]


def test_a_bias_is_drawn_by_what_feeds_its_layer() -> None:
    bias = np.random.default_rng(0).uniform(-1, 1, 400) / np.sqrt(72)
    found = common({"": matches(bias, (24,), (24, 8, 3, 3))})
    assert found[""].text == "HeUniform(mode='fan_in', negative_slope=math.sqrt(5))"


def test_what_nobody_draws_matches_nothing() -> None:
    assert matches(np.random.default_rng(0).exponential(0.1, 4000), (16, 8, 3, 3)) == []


def test_of_initializers_that_one_layer_cannot_tell_apart_the_others_decide() -> None:
    rng = np.random.default_rng(0)
    square = matches(rng.normal(0, np.sqrt(2 / 72), 4000), (8, 8, 3, 3))
    narrow = matches(rng.normal(0, np.sqrt(2 / 36), 4000), (4, 8, 3, 3))
    assert len(square) > 1
    chosen = common({"square": square, "narrow": narrow})
    assert {match.text for match in chosen.values()} == {"HeNormal(mode='fan_out', nonlinearity='relu')"}


NAMES = ["conv1.weight", "bn1.weight", "bn1.bias", "layer.0.fc.weight", "layer.0.fc.bias"]
KINDS = dict(zip(NAMES, ["Conv2d", "BatchNorm2d", "BatchNorm2d", "Linear", "Linear"], strict=True))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (NAMES, "every parameter"),
        (["conv1.weight"], "conv1.weight"),
        (["bn1.weight", "bn1.bias"], "bn1"),
        (["bn1.bias", "layer.0.fc.bias"], "bn1.bias and layer.0.fc.bias: every bias"),
        (["conv1.weight", "bn1.bias", "layer.0.fc.bias"], "conv1.weight and 2 more"),
        (["layer.0.fc.weight", "layer.0.fc.bias"], "layer.0.fc"),
        (["conv1.weight", "layer.0.fc.weight"], "conv1.weight and layer.0.fc.weight: every weight but the norms'"),
    ],
)
def test_many_names_are_one_phrase(names: list[str], said: str) -> None:
    assert place(names, NAMES, KINDS) == said


def test_what_is_drawn_by_a_weight_s_fans_is_none_for_its_bias() -> None:
    """MindSpore cannot compute the fans of one dimension: the initializer as code would raise there."""
    assert _as_argument("bias_init", OF_THE_WEIGHT) == "None"
    assert _as_argument("weight_init", OF_THE_WEIGHT) == OF_THE_WEIGHT
    assert _as_argument("bias_init", "Normal(sigma=0.01)") == "Normal(sigma=0.01)"
