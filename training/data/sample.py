"""One encoded image with its label, and what both frameworks' data code has to check about it.

Both frameworks get the same encoded bytes and decode them on their own: decoding is part of what parity compares. What
an image's header says is checked here before anything of that size is allocated; the bytes may be anybody's.
"""

from __future__ import annotations

import io
import re
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image, UnidentifiedImageError

from ...errors import BadInput, BadRecipe

MOST_PIXELS = 64_000_000  # of an image that is decoded, half of it for WebP
# Of what image_folder lists, and GIF. Pillow knows many more, and hands one of them, EPS, to another program.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
MOST_SCANS = 64  # of a progressive JPEG, which has about ten; each goes over all pixels, and a hundred bytes make one
LARGE = 16_000_000  # pixels above which images are decoded one at a time: each takes a quarter of a gigabyte
_LARGE_ONES = threading.Lock()
# Pillow allocates large images in blocks. malloc keeps blocks up to 32 MB for the thread that has freed them, which was
# measured to be 750 MB after four threads had decoded one image each; larger ones go back to the system.
Image.core.set_block_size(64 << 20)  # type: ignore[attr-defined]
_MARKER = re.compile(rb"\xff([^\x00\xd0-\xd7\xff])")
# What PIL raises, depending on the format and on where a file is damaged.
_DAMAGE = (
    *(OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError, struct.error),
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
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
        image = opened(sample.data)
        with alone(image):
            return in_mode(image, sample.mode)
    except UnidentifiedImageError as damage:
        raise BadInput(f"{sample.name} is not an image: its {len(sample.data)} bytes have no known format") from damage
    except _DAMAGE as damage:
        raise BadInput(f"{sample.name} cannot be decoded: {damage}") from damage


def opened(data: bytes, formats: tuple[str, ...] = FORMATS) -> Image.Image:
    """The image of encoded bytes, of which only the header has been read.

    formats: those that it may have, as PIL calls them. Raises what PIL raises for other bytes, and ValueError for an
    image that is too large or too slow to decode.
    """
    try:
        image = Image.open(io.BytesIO(data), formats=formats)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ValueError(f"it has more than {MOST_PIXELS / 1e6:g} megapixels, which are not decoded") from None
    most = MOST_PIXELS // 2 if image.format == "WEBP" else MOST_PIXELS  # whose decoder holds the image twice more
    if image.width * image.height > most:
        size = f"{image.width} × {image.height} pixels"
        raise ValueError(f"it has {size}, more than {most / 1e6:g} megapixels, which are not decoded")
    if image.info.get("progressive") and _scans(data) > MOST_SCANS:
        raise ValueError(f"it is a JPEG of more than {MOST_SCANS} scans, which would take minutes to decode")
    return image


def in_mode(image: Image.Image, mode: str) -> Image.Image:
    """The decoded image in a mode; as itself where it has that, for a copy takes as much memory once more."""
    image.load()
    return image if image.mode == mode else image.convert(mode)


@contextmanager
def alone(image: Image.Image) -> Iterator[None]:
    """For an image above LARGE, wait until no other such one is at work; other images do not wait."""
    if image.width * image.height <= LARGE:
        yield
        return
    with _LARGE_ONES:
        yield


def _scans(data: bytes) -> int:
    """How many scans a JPEG has, up to one more than it may."""
    at, scans = 2, 0
    while scans <= MOST_SCANS:
        found = _MARKER.search(data, at)
        if found is None or found[1] == b"\xd9":  # the end of the image, behind which more may stand
            break
        scans += found[1] == b"\xda"
        at = found.end() + int.from_bytes(data[found.end() : found.end() + 2], "big")
    return scans


def refuse_damaged(samples: Iterable[Sample]) -> None:
    """Raise BadInput for the first sample that cannot be decoded; to be asked once a pipeline has failed."""
    for sample in samples:
        decode(sample)


def refuse_unfit(images: np.ndarray, dtype: str = "float32") -> None:
    """Raise BadRecipe unless `images` is a batch (N, C, H, W) of `dtype`, which every model takes."""
    if images.ndim != 4 or images.dtype != dtype:
        raise BadRecipe(
            f"the transforms give {images.dtype} {images.shape} and models take {dtype} (N, C, H, W): add ToTensor"
        )


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
