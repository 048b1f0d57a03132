"""A batch of samples through MindSpore's dataset pipeline."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mindspore import dataset
from mindspore.dataset import vision

from ..errors import BadRecipe
from ..mappings import table
from .mindspore_build import construct
from .recipe import Part
from .sample import Sample, refuse_damaged
from .transforms import parts, refuse_random, refuse_unfit


def operations(transforms: Sequence[Part | dict[str, Any]], mode: str = "RGB") -> list[Callable[[Any], Any]]:
    """Decoding to the PIL mode 'RGB' or 'L', then the transforms as the mapping table translates them.

    Images are decoded to PIL: MindSpore's own resize, on arrays, does not antialias (up to 118 of 255 off torchvision).
    Raises UnknownRow, BadInput or Unsupported for a transform that has no translation.
    """
    decoding: list[Callable[[Any], Any]] = [vision.Decode(to_pil=True)]
    if mode == "L":  # Decode gives RGB always; the grey of three equal values is that value, exactly
        decoding.append(vision.Grayscale(num_output_channels=1))
    return decoding + [construct(table.translate(part.name, part.args)) for part in parts(transforms)]


def pipeline(
    samples: Sequence[Sample], transforms: Sequence[Part | dict[str, Any]], batch_size: int
) -> dataset.GeneratorDataset:
    """A dataset of (image, label) batches over the samples in their order; the last batch may be smaller."""
    modes = {sample.mode for sample in samples}
    if len(modes) != 1:
        raise BadRecipe(f"a batch wants images of one mode, not {sorted(modes)}")

    rows = [(np.frombuffer(sample.data, dtype=np.uint8), np.int32(sample.label)) for sample in samples]
    images = dataset.GeneratorDataset(
        rows, column_names=["image", "label"], shuffle=False, num_parallel_workers=1, python_multiprocessing=False
    )
    images = images.map(operations(transforms, modes.pop()), input_columns=["image"], num_parallel_workers=1)
    return images.batch(batch_size, drop_remainder=False, num_parallel_workers=1)


def batch(samples: Sequence[Sample], transforms: Sequence[Part | dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Decode and transform the samples in order: images float32 (N, C, H, W), labels int32 (N,).

    Raises BadInput naming a sample that cannot be decoded, Unsupported for a random transform, and BadRecipe where
    the transforms do not end in arrays of one size.
    """
    refuse_random(parts(transforms))
    try:
        images, labels = next(
            pipeline(samples, transforms, len(samples)).create_tuple_iterator(num_epochs=1, output_numpy=True)
        )
    except RuntimeError as error:  # MindSpore says this of every failure in a pipeline, at the end of a long text
        refuse_damaged(samples)
        raise BadRecipe(f"MindSpore's transforms failed on {len(samples)} images: {_reason(error)}") from error
    refuse_unfit(images)
    return images, labels


def _reason(error: RuntimeError) -> str:
    """The line that says what happened, out of MindSpore's report of headings, rules and source lines.

    A failure in Python code ends its call stack with the exception; one in C++ has a line that begins with [ERROR].
    """
    lines = str(error).splitlines()
    raised = [line for line in lines if re.match(r"\w+(Error|Exception): ", line)]
    told = [line.removeprefix("[ERROR] ") for line in lines if line.startswith("[ERROR]")]
    return raised[-1] if raised else (told or lines)[0]
