"""The 1797 handwritten digits that scikit-learn ships, 8 x 8 grey values each, as PNG files."""

from __future__ import annotations

from typing import Literal

import numpy as np
from PIL import Image

from .photographs import scikit_learn_file
from .sample import Sample, encode

CLASSES = tuple("0123456789")
SIDE = 8
DARKEST = 16  # the file has counts of ink in 4 x 4 dots: 0 to 16
TRAINING = (
    1437  # rows of digits:train, four fifths as scikit-learn's own example splits them; the last 360 are the test
)
PARTS = {"": slice(None), "train": slice(TRAINING), "test": slice(TRAINING, None)}


class Digits:
    """The digits in the order of scikit-learn's file, as lossless grey PNGs with the digit as label.

    part: '' for all 1797, 'train' for the first 1437, 'test' for the last 360.
    """

    classes = CLASSES
    mode: Literal["RGB", "L"] = "L"

    def __init__(self, part: str = "") -> None:
        self.name = f"digits:{part}" if part else "the digits"
        table = np.loadtxt(scikit_learn_file("data/digits.csv.gz"), delimiter=",", dtype=np.int64)
        self.rows = np.arange(len(table))[PARTS[part]]
        table = table[PARTS[part]]
        self.grey = np.round(table[:, :-1] * (255 / DARKEST)).astype(np.uint8).reshape(-1, SIDE, SIDE)
        self.labels = table[:, -1].astype(np.int32)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Sample:
        data = encode(Image.fromarray(self.grey[index]), "PNG")
        return Sample(data, int(self.labels[index]), f"digit {self.rows[index]}", mode="L")
