"""How two tensors differ is said by the pattern that holds, not by one that merely comes near."""

from __future__ import annotations

import numpy as np
import pytest
from msmigrate.parity.diagnosis.differences import difference, shapes

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((4, 6, 6, 6)).astype(np.float32)


def said(y: np.ndarray, x: np.ndarray = X) -> str:
    return difference(x.reshape(-1), y.reshape(-1), x.shape, None)


def changed(where: object) -> np.ndarray:
    y = X.copy()
    y[where] += 0.1 * RANDOM.standard_normal(y[where].shape)  # type: ignore[index]
    return y


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (X, "equal"),
        (X * 0, "all zero"),
        (X * 1.5, "a constant factor: MindSpore's is 1.5 times torch's"),
        (-X, "is -1 times"),
        (X + 0.25, "a constant offset of 0.25"),
        (X + np.arange(6, dtype=np.float32).reshape(1, 6, 1, 1), "a constant offset for each channel, from 0 to 5"),
        (X * np.arange(1, 7, dtype=np.float32).reshape(1, 6, 1, 1), "a constant factor for each channel, from 1 to 6"),
        (X * np.arange(1, 7, dtype=np.float32), "a constant factor for each position of the last dimension"),
        (X[:, ::-1], "reversed along dimension 1"),
        (X.swapaxes(2, 3), "dimensions 2 and 3 swapped"),
        (np.roll(X, 1, 3) + np.where(np.arange(6) == 0, 9.0, 0.0), "shifted by 1 along dimension 3"),
        (X.reshape(4, 6, 36)[:, :, np.random.default_rng(1).permutation(36)], "the same values in another order"),
        (changed((slice(None), slice(None), -1)), "only pixels at the lower and right border"),
        (changed((slice(None), slice(None), 0)), "only pixels at the border"),
        (changed((slice(None), 2)), "only channel 2 of 6"),
        (changed((1,)), "only sample 1 of 4"),
        (np.where(X > 0, X, X * X), "only elements that torch has at or below zero"),
        (np.where(X < 0, X, X * X), "only elements that torch has at or above zero"),
        (np.where(X.max() == X, np.nan, X), "1 of 864 elements are not finite"),
        (X + 0.1 * RANDOM.standard_normal(X.shape), "100% of the elements differ"),
    ],
)
def test_a_pattern_is_named(y: np.ndarray, words: str) -> None:
    assert words in said(y)


def test_noise_beside_a_pattern_hides_it() -> None:
    noisy = X * 1.5 + 0.01 * RANDOM.standard_normal(X.shape)
    assert "constant factor" not in said(noisy)


def test_a_zero_gradient_that_moves() -> None:
    assert "torch's is all zero" in said(X, np.zeros_like(X))


def test_a_sample_knows_its_places() -> None:
    positions = np.sort(RANDOM.choice(X.size, 200, replace=False))
    y = changed((slice(None), 2)).reshape(-1)[positions]
    assert "only channel 2 of 6" in difference(X.reshape(-1)[positions], y, X.shape, positions)


def test_shapes_are_compared_in_words() -> None:
    assert shapes((2, 3), (3, 2)) == "shape [3, 2] instead of [2, 3]: the dimensions in another order"
    assert shapes((2, 6), (3, 4)).endswith("the elements grouped otherwise")
    assert shapes((2, 6), (2, 5)) == "shape [2, 5] instead of [2, 6]"
