"""Why the batches differ: transforms, their arguments, and what the numbers say by themselves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msmigrate.parity.diagnosis.differences import OtherBatch, affine, order, read_normalisation, shifted
from msmigrate.parity.trace import sample_positions

# what MindSpore's side does otherwise, and the stage, place and fault that have to come first
First = Callable[[str, tuple[str, str, str | None]], None]

CASES = [
    ("mean", ("data", "Normalize", "normalize-mean-missing")),
    pytest.param("deviation", ("data", "Normalize", "normalize-argument"), marks=pytest.mark.full),
    pytest.param("size", ("data", "Resize", "transform-argument"), marks=pytest.mark.full),
    pytest.param("mean and interpolation", ("data", "Resize", "resize-interpolation"), marks=pytest.mark.full),
]


@pytest.mark.parametrize(("case", "expected"), CASES)
def test_the_cause_comes_first(case: str, expected: tuple[str, str, str | None], first: First) -> None:
    first(case, expected)


SHAPE = (4, 3, 20, 24)
IMAGES = np.random.default_rng(0).standard_normal(SHAPE)
SAMPLE = sample_positions(IMAGES.size, 2000)


def seen(images: np.ndarray) -> OtherBatch:
    """The images as a trace keeps them: by a sample, in float32."""
    return OtherBatch.of(images.astype(np.float32).reshape(-1)[SAMPLE], SHAPE, SAMPLE)


def test_another_order_is_read_from_a_sample() -> None:
    assert order(IMAGES, seen(IMAGES[[2, 0, 3, 1]])) == [2, 0, 3, 1]
    assert order(IMAGES, seen(IMAGES[[2, 0, 0, 1]])) is None


@pytest.mark.parametrize("by", [(1, 0), (-1, 2), (0, -1)])
def test_a_shifted_crop_is_read(by: tuple[int, int]) -> None:
    wide = np.random.default_rng(1).standard_normal((4, 3, 28, 32))
    ours, theirs = wide[..., 4:24, 4:28], wide[..., 4 + by[0] : 24 + by[0], 4 + by[1] : 28 + by[1]]
    assert shifted(ours, seen(theirs)) == by
    assert shifted(ours, seen(ours)) is None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda v, m, s: (v[:, ::-1] - m) / s, "bgr"),
        (lambda v, m, s: v - 0 * m, "normalize-missing"),
        (lambda v, m, s: v / s, "normalize-mean-missing"),
        (lambda v, m, s: v - m, "normalize-std-missing"),
        (lambda v, m, s: 255 * v, "normalize-255"),
        (lambda v, m, s: (255 * v - m) / s, "normalize-255"),
        (lambda v, m, s: (v - m[:, ::-1]) / s[:, ::-1], "bgr"),
        (lambda v, m, s: (v - m) / (1.001 * s), "normalize-argument"),
    ],
)
def test_the_normalisation_is_read(change: Callable[..., np.ndarray], fault: str) -> None:
    values = np.random.default_rng(2).random(SHAPE)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    m, s = (np.array(numbers)[None, :, None, None] for numbers in (mean, std))
    found = affine((values - m) / s, seen(change(values, m, s)))
    assert found is not None
    assert read_normalisation(found, mean, std).fault == fault


def test_other_images_have_no_reading() -> None:
    other = seen(np.random.default_rng(3).standard_normal(SHAPE))
    assert affine(IMAGES, other) is None
    assert order(IMAGES, other) is None
    assert shifted(IMAGES, other) is None
