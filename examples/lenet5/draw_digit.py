"""Write one of scikit-learn's digits, a seven that no training saw, as an image."""

from __future__ import annotations

import sys

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

SEVEN = 1779

if __name__ == "__main__":
    digits = load_digits()
    assert digits.target[SEVEN] == 7
    Image.fromarray((digits.images[SEVEN] * 255 / 16).round().astype(np.uint8)).save(sys.argv[1])
