"""What a net is exported with and compared on: the user's images, prepared, or numbers that are drawn."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image

from ..errors import BadInput, BadRecipe
from ..train.data.data_sources import open_source
from ..train.data.mindspore_data import Prepare
from ..train.inference.inference_batches import NO_KEY, batches
from ..train.inference.inference_images import images_of
from ..train.inference.request import preparation
from ..train.models.model_names import num_classes
from .asked import Job, shape_of

EXAMPLES = 4  # at least so many are run
MADE_UP = ((480, 640), (333, 517))  # sizes of two images: what is made of both alike is the size that a net takes


def inputs_of(job: Job) -> tuple[list[np.ndarray], int, str]:
    """The inputs (M, …), how many examples make a batch, and the words for what they are; M is a multiple of it.

    Raises BadInput where nothing says which inputs the net takes, and what preparing images raises.
    """
    told = [shape_of(text) for text in job.shapes]
    if job.request.images is not None:
        images = prepared(job)
        if told and told[0][0][1:] != images.shape[1:]:
            raise BadInput(f"--input {job.shapes[0]}: the images are prepared as {_words(images.shape[1:])}")
        batch = job.batch or (told[0][0][0] if told else 1)
        short = -len(images) % batch
        arrays = [np.concatenate([images, np.repeat(images[-1:], short, axis=0)])]
        return arrays, batch, f"{len(images)} image{'s' * (len(images) > 1)}"
    if not told:
        told = [((1, *size_of_images(job)), "float32")]
    batch = job.batch or told[0][0][0]
    count = batch * -(-EXAMPLES // batch)
    random = np.random.default_rng(0)
    arrays = [_drawn(random, (count, *shape[1:]), dtype) for shape, dtype in told]
    return (
        arrays,
        batch,
        f"{count} drawn input{'s' * (count > 1)} ({' and '.join(_words(a.shape[1:]) for a in arrays)})",
    )


def prepared(job: Job) -> np.ndarray:
    """The images, float32 (M, C, H, W), as the recipe prepares them for evaluation."""
    source = images_of(job.request)
    prepare = Prepare(preparation(job.request.recipe), source.mode)
    ready = batches(source, prepare, size=len(source), workers=job.request.recipe.data.workers, skip=False)
    return next(iter(ready)).images


def size_of_images(job: Job) -> tuple[int, ...]:
    """The shape of one image as the recipe prepares it: the same of whatever image, or that of its own data's first."""
    recipe, mode = job.request.recipe, job.request.mode or "RGB"
    prepare = Prepare(preparation(recipe), mode)
    try:
        shapes = {prepare(encoded(size), NO_KEY).shape for size in MADE_UP}
        if len(shapes) == 1:
            return shapes.pop()
        classes = num_classes(recipe.model.name, recipe.model.args)
        first = open_source(recipe.data.source, classes, training=False)[0]
        return Prepare(preparation(recipe), first.mode)(np.frombuffer(first.data, dtype=np.uint8), NO_KEY).shape
    except (BadInput, RuntimeError, ValueError, TypeError) as error:
        said = f" ({error})" if isinstance(error, BadInput) and not isinstance(error, BadRecipe) else ""
        raise BadInput(
            f"nothing says which size of images the net takes{said}: add --input SHAPE, or --images"
        ) from None


def encoded(size: tuple[int, int]) -> np.ndarray:
    """The bytes of a made-up image, uint8 (N,)."""
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)).save(buffer, "png")
    return np.frombuffer(buffer.getvalue(), dtype=np.uint8)


def _drawn(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Normal numbers, or for whole ones zeros and ones: every embedding has these."""
    if dtype == "float32":
        return random.standard_normal(shape, dtype=np.float32)
    return random.integers(0, 2, shape).astype(dtype)


def _words(shape: Any) -> str:
    return "×".join(map(str, shape)) or "numbers"
