"""A small folder of images in place of yours: scikit-learn's handwritten digits, images/train and images/val.

python make_images.py images
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

TRAINING, ALL = 128, 192  # the first 128 digits for training, the next 64 for validation


def main(folder: str) -> None:
    digits = load_digits()
    for index in range(ALL):
        place = Path(folder, "train" if index < TRAINING else "val", str(digits.target[index]))
        place.mkdir(parents=True, exist_ok=True)
        grey = Image.fromarray((digits.images[index] * 255 / 16).round().astype(np.uint8))
        grey.resize((36, 36), Image.Resampling.BILINEAR).convert("RGB").save(place / f"{index}.png")


if __name__ == "__main__":
    main(sys.argv[1])
