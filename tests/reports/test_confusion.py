"""The picture of a confusion matrix: readable for two classes and for a thousand, and true to its numbers."""

from __future__ import annotations

import io
import itertools
from functools import cache

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from msmigrate.reports import evaluation
from PIL import Image


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are drawn, to be looked at with matplotlib's own eyes."""
    figures: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (figures.append(self), save(self, *a, **k))[1])
    return figures


def matrix_of(count: int) -> np.ndarray:
    matrix = np.random.default_rng(count).binomial(3, 0.05, (count, count))
    return matrix + 40 * np.eye(count, dtype=int)


def name(index: int) -> str:
    return f"n{index:08} a class with a name far too long"


@cache
def picture(count: int) -> tuple[bytes, Figure, np.ndarray]:
    """What is drawn of so many classes, the figure that it was drawn from, and their matrix."""
    matrix, figures = matrix_of(count), list[Figure]()
    save = Figure.savefig
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda self, *a, **k: (figures.append(self), save(self, *a, **k))[1])
        content = evaluation.picture(matrix, [name(index) for index in range(count)], "a title")
    return content, figures[0], matrix


def overlapping(texts: list[Text], figure: Figure) -> list[tuple[str, str]]:
    """Neighbours whose texts lie on one another."""
    boxes = [(text.get_text(), text.get_window_extent(figure.canvas.get_renderer())) for text in texts]
    pairs = itertools.pairwise(boxes)
    return [(one[0], other[0]) for one, other in pairs if one[1].overlaps(other[1])]


SLOWER = [pytest.param(count, marks=pytest.mark.full) for count in (1, 3, 10, 100, 257, 500)]


@pytest.mark.parametrize("count", [2, 30, 31, 1000, *SLOWER])
def test_labels_never_overlap_and_the_picture_has_a_fit_size(count: int) -> None:
    content, figure, _ = picture(count)
    image = Image.open(io.BytesIO(content))
    assert image.format == "PNG" and all(200 < side < 2800 for side in image.size)
    axes = figure.axes[0]
    assert overlapping(axes.get_xticklabels(), figure) == overlapping(axes.get_yticklabels(), figure) == []
    assert min(label.get_fontsize() for label in axes.get_xticklabels()) > 5
    assert len(axes.get_yticklabels()) == count if count <= 100 else 50 < len(axes.get_yticklabels()) < 200
    assert all(label.get_text().endswith("…") for label in axes.get_yticklabels())
    # a whole number of pixels for each class, or rows would have several sizes
    side = axes.get_window_extent().width / count
    assert side == pytest.approx(round(side)) and side >= 1


def test_counts_are_written_for_up_to_thirty_classes() -> None:
    for count in (30, 31):
        _, figure, matrix = picture(count)
        written = {text.get_position()[::-1]: text.get_text() for text in figure.axes[0].texts}
        expected = {place: str(number) for place, number in np.ndenumerate(matrix) if number}
        assert written == (expected if count == 30 else {})


def test_counts_fit_into_their_cells(drawn: list[Figure]) -> None:
    matrix = np.full((10, 10), 123456)
    evaluation.picture(matrix, list("abcdefghij"), "a title")
    axes = drawn[0].axes[0]
    cell = axes.get_window_extent().width / 10
    assert all(text.get_window_extent().width < cell for text in axes.texts)


def test_rows_are_true_classes_coloured_by_share() -> None:
    """Row 0 is all right, of row 1 a quarter is taken for class 0, and row 2 has no image."""
    matrix = np.array([[7, 0, 0], [25, 75, 0], [0, 0, 0]])
    content = evaluation.picture(matrix, ["a", "b", "c"], "")
    pixels = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"), dtype=int)
    shades = matplotlib.colormaps["Blues"](np.linspace(0.2, 1, 256))[:, :3] * 255
    darkest = np.abs(pixels - shades[-1]).sum(-1) < 6
    quarter = np.abs(pixels - shades[128]).sum(-1) < 12  # the square root of a quarter is a half
    top, left = np.argwhere(darkest).min(axis=0)
    assert darkest[top + 20, left + 20] and quarter[top + 140, left + 20]
    assert (pixels[top + 20, left + 200] == 255).all() and (pixels[top + 250, left + 250] == 255).all()


def test_a_name_is_no_formula() -> None:
    evaluation.picture(matrix_of(2), ["$x^{$", "a_b$" + "x" * 21 + "$"], "from $1 to $2^{")
