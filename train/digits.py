"""The 1797 handwritten digits that scikit-learn ships, 8 x 8 grey values each, as PNG files."""

from __future__ import annotations

import numpy as np
from PIL import Image

from ..errors import BadRecipe
from .photographs import scikit_learn_file
from .sample import Sample, encode, picks

CLASSES = 10
SIDE = 8
DARKEST = 16  # the file has counts of ink in 4 x 4 dots: 0 to 16


def digits(count: int, *, seed: int, num_classes: int = CLASSES) -> list[Sample]:
    """`count` digits in an order drawn from `seed`, as lossless grey PNGs with the digit as label.

    Raises BadRecipe where a model has fewer classes than there are digits.
    """
    if num_classes < CLASSES:
        raise BadRecipe(f"the digits have {CLASSES} classes and the model only {num_classes}")
    rows = np.loadtxt(scikit_learn_file("data/digits.csv.gz"), delimiter=",", dtype=np.int64)
    grey = np.round(rows[:, :-1] * (255 / DARKEST)).astype(np.uint8).reshape(-1, SIDE, SIDE)
    return [
        Sample(encode(Image.fromarray(grey[row]), "PNG"), label=int(rows[row, -1]), name=f"digit {row}", mode="L")
        for row in picks(len(rows), count, seed)
    ]
