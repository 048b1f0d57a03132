"""The two photographs that scikit-learn ships, cut into as many different JPEGs as a step needs.

scikit-learn itself is not imported, which would take a second: only its files are read.
"""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path

import numpy as np
from PIL import Image

from ..errors import BadInput
from .sample import Sample, encode

FILES = ("china.jpg", "flower.jpg")
SMALLEST_SIDE = 256
QUALITY = 95


def scikit_learn_file(relative: str) -> Path:
    """The path of a file inside scikit-learn's `datasets`; raises BadInput where it is not installed."""
    found = importlib.util.find_spec("sklearn")
    path = Path(found.origin).parent / "datasets" / relative if found and found.origin else None
    if path is None or not path.is_file():
        raise BadInput(f"scikit-learn's {relative} is needed and not there: pip install scikit-learn")
    return path


def crops(count: int, size: int = SMALLEST_SIDE, *, seed: int, num_classes: int = 1000) -> list[Sample]:
    """`count` different crops of the two photographs by turns, each a JPEG; the same `seed` gives the same bytes.

    The sides of a crop are drawn on their own between `size` and the height of its photograph (427), so that a resize
    has fractions to round and a centre crop has odd margins. The labels are 0, 1, 2, … modulo `num_classes`.
    Raises BadInput if `size` is greater than the photographs.
    """
    photographs = [Image.open(io.BytesIO(scikit_learn_file(f"images/{name}").read_bytes())) for name in FILES]
    generator = np.random.default_rng(seed)
    samples = []
    for index in range(count):
        which = index % len(FILES)
        photograph = photographs[which]
        largest = min(photograph.size)
        if size > largest:
            raise BadInput(f"crops of {size} pixels do not fit {FILES[which]}, which is {largest} pixels high")
        width, height = (int(side) for side in generator.integers(size, largest + 1, 2))
        left = int(generator.integers(0, photograph.width - width + 1))
        top = int(generator.integers(0, photograph.height - height + 1))
        crop = photograph.crop((left, top, left + width, top + height))
        samples.append(
            Sample(
                data=encode(crop, "JPEG", quality=QUALITY),
                label=index % num_classes,
                name=f"{FILES[which]} {width}x{height} at {left},{top}",
            )
        )
    return samples
