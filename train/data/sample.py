"""One encoded image with its label, and what both frameworks' data code has to check about it.

Both frameworks get the same encoded bytes and decode them on their own: decoding is part of what parity compares.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image, UnidentifiedImageError

from ...errors import BadInput

# What PIL raises, depending on the format and on where a file is damaged.
_DAMAGE = (
    *(OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError, struct.error),
    Image.DecompressionBombError,
)


@dataclass(frozen=True)
class Sample:
    """An encoded image (JPEG, PNG, …), its class, and a name that tells a reader where the image is from.

    mode: the PIL mode to decode to, 'RGB' as in torchvision's ImageFolder or 'L' (one grey channel) as in its MNIST.
    """

    data: bytes
    label: int
    name: str
    mode: Literal["RGB", "L"] = "RGB"


def decode(sample: Sample) -> Image.Image:
    """The image in its sample's mode; raises BadInput that names the sample if the bytes are damaged."""
    try:
        return Image.open(io.BytesIO(sample.data)).convert(sample.mode)
    except UnidentifiedImageError as damage:
        raise BadInput(f"{sample.name} is not an image: its {len(sample.data)} bytes have no known format") from damage
    except _DAMAGE as damage:
        raise BadInput(f"{sample.name} cannot be decoded: {damage}") from damage


def refuse_damaged(samples: Iterable[Sample]) -> None:
    """Raise BadInput for the first sample that cannot be decoded; to be asked once a pipeline has failed."""
    for sample in samples:
        decode(sample)


def encode(image: Image.Image, form: str, **options: int) -> bytes:
    """The bytes of `image` in the file format `form`, such as 'JPEG' with quality=95 or 'PNG'."""
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def picks(available: int, wanted: int, seed: int) -> list[int]:
    """`wanted` indices below `available` in an order drawn from `seed`; all come once before one comes twice."""
    generator = np.random.default_rng(seed)
    rounds = [generator.permutation(available) for _ in range(-(-wanted // available))]
    return [int(index) for order in rounds for index in order][:wanted]


def in_steps(samples: Sequence[Sample], batch: int) -> list[list[Sample]]:
    """The samples cut into batches of `batch`, one for each step."""
    return [list(samples[start : start + batch]) for start in range(0, len(samples), batch)]
