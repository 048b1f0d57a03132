"""A small folder of images in place of yours: scikit-learn's handwritten digits as JPEGs, a folder for each class.

python make_images.py images
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

EACH = 16  # images of a class


def main(folder: str) -> None:
    digits = load_digits()
    for number in range(10):
        place = Path(folder, f"digit_{number}")
        place.mkdir(parents=True)
        for index in np.flatnonzero(digits.target == number)[:EACH]:
            grey = Image.fromarray((digits.images[index] * 255 / 16).round().astype(np.uint8))
            grey.resize((80, 80), Image.Resampling.BILINEAR).convert("RGB").save(place / f"{index}.jpg", quality=90)


if __name__ == "__main__":
    main(sys.argv[1])
