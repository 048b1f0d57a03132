"""The two photographs that scikit-learn ships, cut into as many different JPEGs as are wanted.

scikit-learn itself is not imported, which would take a second: only its files are read.
"""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from ...errors import BadInput
from .sample import Sample, encode

FILES = ("china.jpg", "flower.jpg")
COUNT = 64  # crops of the source 'photographs' where nobody says how many
SMALLEST_SIDE = 256
QUALITY = 95


def scikit_learn_file(relative: str) -> Path:
    """The path of a file inside scikit-learn's `datasets`; raises BadInput where it is not installed."""
    found = importlib.util.find_spec("sklearn")
    path = Path(found.origin).parent / "datasets" / relative if found and found.origin else None
    if path is None or not path.is_file():
        raise BadInput(f"scikit-learn's {relative} is needed and not there: pip install scikit-learn")
    return path


class Photographs:
    """`count` different crops of the two photographs by turns, each a JPEG; the same `seed` gives the same bytes.

    The sides of a crop are drawn on their own between `size` and the height of its photograph (427), so that a resize
    has fractions to round and a centre crop has odd margins. The labels are 0, 1, 2, … modulo `num_classes`: they have
    nothing to do with the images. A crop is cut when it is asked for.
    Raises BadInput if `size` is greater than the photographs.
    """

    mode: Literal["RGB", "L"] = "RGB"

    def __init__(
        self, count: int = COUNT, size: int = SMALLEST_SIDE, *, seed: int = 0, num_classes: int = 1000
    ) -> None:
        self.name = "the photographs"
        self.photographs = [Image.open(io.BytesIO(scikit_learn_file(f"images/{name}").read_bytes())) for name in FILES]
        for photograph in self.photographs:
            photograph.load()  # now, because a load that several threads begin at once fails
        self.classes = tuple(str(label) for label in range(num_classes))
        self.labels = np.arange(count, dtype=np.int32) % num_classes
        self.boxes = self._boxes(count, size, seed)

    def __len__(self) -> int:
        return len(self.boxes)

    def __getitem__(self, index: int) -> Sample:
        index = range(len(self))[index]
        which, (left, top, width, height) = index % len(FILES), self.boxes[index]
        crop = self.photographs[which].crop((left, top, left + width, top + height))
        name = f"{FILES[which]} {width}x{height} at {left},{top}"
        return Sample(encode(crop, "JPEG", quality=QUALITY), int(self.labels[index]), name)

    def _boxes(self, count: int, size: int, seed: int) -> list[tuple[int, int, int, int]]:
        """Left, top, width and height of every crop; the first ones do not depend on how many there are."""
        generator = np.random.default_rng(seed)
        boxes = []
        for index in range(count):
            photograph, name = self.photographs[index % len(FILES)], FILES[index % len(FILES)]
            largest = min(photograph.size)
            if size > largest:
                raise BadInput(f"crops of {size} pixels do not fit {name}, which is {largest} pixels high")
            width, height = (int(side) for side in generator.integers(size, largest + 1, 2))
            left = int(generator.integers(0, photograph.width - width + 1))
            top = int(generator.integers(0, photograph.height - height + 1))
            boxes.append((left, top, width, height))
        return boxes


def crops(count: int, size: int = SMALLEST_SIDE, *, seed: int, num_classes: int = 1000) -> list[Sample]:
    """The crops of Photographs, all of them at once."""
    source = Photographs(count, size, seed=seed, num_classes=num_classes)
    return [source[index] for index in range(count)]
