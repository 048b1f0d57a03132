"""A batch through MindSpore's dataset operators; value table; fast_transforms.

With data.fast_transforms, C++ resizes the images, which then differ slightly from torchvision's; parity's data stage
reports by how much, and judges them by bounds. Everything else, and all draws, stay the same: cropping, flipping and
colours cost little, and decoding is equal to the bit in both and no quicker in C++. Nor is shrinking an image quicker,
as measured on an EPYC; enlarging one is.

The value table is filled by MindSpore's own operators, so its results equal theirs to the bit, in half the time; and
unlike them NumPy lets other threads run in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from mindspore import dataset
from mindspore.dataset import vision
from PIL import Image

from ...errors import BadRecipe, Unsupported
from ..recipe.part_arguments import arguments, as_parts, is_random, short
from ..recipe.schema import Part, construct
from . import pil_transforms, random_draws
from .preprocessing import reason
from .random_draws import Drawn, Key, apply_random, pair, refuse_undrawn
from .sample import Sample, alone, opened, refuse_damaged, refuse_unfit


def operations(transforms: Sequence[Part | dict[str, Any]], mode: str = "RGB") -> list[Callable[[Any], Any]]:
    """Decoding to the PIL mode 'RGB' or 'L', then the fixed transforms as the mapping table translates them.

    Images are decoded to PIL: MindSpore's own resize, on arrays, does not antialias (up to 118 of 255 off torchvision).
    Raises UnknownRow, BadInput or Unsupported for a transform that has no translation.
    """
    return decoding(mode) + [construct(part) for part in as_parts(transforms)]


def decoding(mode: str) -> list[Callable[[Any], Any]]:
    """The operations that turn encoded bytes, uint8 (N,), into a PIL image of `mode`, 'RGB' or 'L'."""
    if mode == "L":  # Decode gives RGB always; the grey of three equal values is that value, exactly
        return [vision.Decode(to_pil=True), vision.Grayscale(num_output_channels=1)]
    return [vision.Decode(to_pil=True)]


class Prepare:
    """Decoding and all transforms of one image, as one function for a dataset's map over the columns image and key.

    Fixed transforms are MindSpore's operators, as in `operations`, or a table of their results; random ones draw from
    the image's own generator and do with PIL what torchvision does. It can be copied to another process, and makes its
    operators there. Raises what `operations` raises, and Unsupported for a random transform that cannot be drawn.
    """

    def __init__(self, transforms: Sequence[Part | dict[str, Any]], mode: str = "RGB") -> None:
        self.transforms, self.mode = as_parts(transforms), mode
        refuse_undrawn(self.transforms, keys=[])
        self._decoding, self._steps = decoding(self.mode), self._made()

    def __call__(self, data: np.ndarray, key: np.ndarray) -> np.ndarray:
        """The image from its encoded bytes `data`, uint8 (N,), and its key, int64 (3,): (seed, epoch, index).

        Returns the result of the last transform: with ToTensor, float32 (C, H, W).
        """
        with alone(opened(data.tobytes())):
            return self._transformed(self._decoded(data), key)

    def pixels(self, data: np.ndarray) -> np.ndarray:
        """The first half: the decoded image, uint8 (H, W, 3) or (H, W), as a cache can keep it."""
        with alone(opened(data.tobytes())):
            return np.asarray(self._decoded(data))

    def from_pixels(self, pixels: np.ndarray, key: np.ndarray) -> np.ndarray:
        """The second half: the decoded image transformed, equal to the bit to the call's result."""
        return self._transformed(Image.fromarray(pixels), key)

    def from_image(self, image: Image.Image, key: np.ndarray) -> np.ndarray:
        """The second half, from an RGB image that somebody else has decoded."""
        decoded: Any = image
        for step in self._decoding[1:]:
            decoded = step(decoded)
        return self._transformed(decoded, key)

    def _decoded(self, data: np.ndarray) -> Any:
        image: Any = data
        for step in self._decoding:
            image = step(image)
        return image

    def _transformed(self, image: Any, key: np.ndarray) -> np.ndarray:
        generator = random_draws.generator((int(key[0]), int(key[1]), int(key[2])))
        for step in self._steps:
            image = apply_random(step, self._apply, image, generator) if isinstance(step, Part) else step(image)
        return np.asarray(image)

    def _made(self) -> list[Part | Callable[[Any], Any]]:
        start, end = tabled(self.transforms)
        steps = [self._step(part) for part in self.transforms]  # all of them, so that each is checked
        return [*steps[:start], *([ValueTable(self.transforms[start:end])] if end else []), *steps[end:]]

    def _step(self, part: Part) -> Part | Callable[[Any], Any]:
        """One transform: the part itself if it draws."""
        return part if is_random(part) else construct(part)

    def _apply(self, part: Part, drawn: Drawn, image: Any) -> Any:
        return pil_transforms.apply(part, drawn, image)

    def __getstate__(self) -> dict[str, Any]:
        return {"transforms": self.transforms, "mode": self.mode}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.transforms, self.mode = state["transforms"], state["mode"]
        self._decoding, self._steps = decoding(self.mode), self._made()


def pipeline(
    samples: Sequence[Sample],
    transforms: Sequence[Part | dict[str, Any]],
    batch_size: int,
    keys: Sequence[Key],
    kind: type[Prepare] = Prepare,
) -> dataset.Dataset:
    """A dataset of (image, label) batches over the samples in their order; the last batch may be smaller.

    keys: of each sample, for the random transforms. kind: the class that prepares them.
    """
    modes = {sample.mode for sample in samples}
    if len(modes) != 1:
        raise BadRecipe(f"a batch needs images of one mode, not {sorted(modes)}")

    rows = [
        (np.frombuffer(sample.data, dtype=np.uint8), np.array(key, dtype=np.int64), np.int32(sample.label))
        for sample, key in zip(samples, keys, strict=True)
    ]
    images = dataset.GeneratorDataset(
        rows,
        column_names=["image", "key", "label"],
        shuffle=False,
        num_parallel_workers=1,
        python_multiprocessing=False,
    )
    prepare = kind(transforms, modes.pop())
    images = images.map(prepare, ["image", "key"], ["image"], num_parallel_workers=1).project(["image", "label"])
    return images.batch(batch_size, drop_remainder=False, num_parallel_workers=1)


def batch(
    samples: Sequence[Sample],
    transforms: Sequence[Part | dict[str, Any]],
    keys: Sequence[Key] | None = None,
    kind: type[Prepare] = Prepare,
) -> tuple[np.ndarray, np.ndarray]:
    """Decode and transform the samples in order: images float32 (N, C, H, W), labels int32 (N,).

    keys: (seed, epoch, index) of each sample; random transforms draw from them, and without keys are refused.
    kind: the class that prepares an image; FastPrepare for data.fast_transforms.

    Raises BadInput naming a sample that cannot be decoded, Unsupported for a random transform that cannot be drawn,
    and BadRecipe where the transforms do not end in arrays of one size.
    """
    refuse_undrawn(as_parts(transforms), keys)
    known = [(0, 0, 0)] * len(samples) if keys is None else keys
    try:
        batches = pipeline(samples, transforms, len(samples), known, kind)
        images, labels = next(batches.create_tuple_iterator(num_epochs=1, output_numpy=True))
    except RuntimeError as error:  # MindSpore says this of every failure in a pipeline, at the end of a long text
        refuse_damaged(samples)
        raise BadRecipe(f"MindSpore's transforms failed on {len(samples)} images: {reason(error)}") from error
    refuse_unfit(images)
    return images, labels


# Of OpenCV's interpolations, the closest to Pillow's: a plain average over the pixels that become one, where Pillow
# weights them by distance.
# PILCUBIC is Pillow's own bicubic, to the bit.
_SHRINKING = {"bilinear": vision.Inter.AREA, "bicubic": vision.Inter.PILCUBIC}
_GROWING = {"bilinear": vision.Inter.LINEAR, "bicubic": vision.Inter.PILCUBIC}


class FastPrepare(Prepare):
    """Like Prepare, with resizing by C++. Raises Unsupported for the nearest pixel: OpenCV takes another one."""

    def _made(self) -> list[Part | Callable[[Any], Any]]:
        for part in self.transforms:
            if arguments(part).get("interpolation") == "nearest":
                raise Unsupported(
                    f"data.fast_transforms: {part.name} with interpolation 'nearest' would take other pixels than "
                    "torchvision's: set data.fast_transforms to false"
                )
        return super()._made()

    def _step(self, part: Part) -> Part | Callable[[Any], Any]:
        if short(part) == "Resize":
            return lambda image: _resized(arguments(part), image)
        return super()._step(part)

    def _apply(self, part: Part, drawn: Drawn, image: Any) -> Any:
        if short(part) != "RandomResizedCrop":
            return pil_transforms.apply(part, drawn, image)
        args, (left, top) = arguments(part), (drawn["left"], drawn["top"])
        crop = image.crop((left, top, left + drawn["width"], top + drawn["height"]))
        return to_size(crop, pair(args["size"]), args["interpolation"])


def grey_level(transforms: Sequence[Part]) -> float:
    """The largest difference after ToTensor and Normalize that one of 255 grey levels makes."""
    level = 1 / 255
    for part in transforms:
        if short(part) == "Normalize":
            level /= float(np.min(np.atleast_1d(arguments(part)["std"])))
    return level


def to_size(image: Image.Image, size: tuple[int, int], interpolation: str) -> Image.Image:
    """The image in another size (height, width); interpolation 'bilinear' or 'bicubic'."""
    if (image.height, image.width) == size:
        return image
    smaller = size[0] * size[1] < image.height * image.width
    resize = _resize(size, (_SHRINKING if smaller else _GROWING)[interpolation])
    return Image.fromarray(np.asarray(resize(np.asarray(image))))


@lru_cache(maxsize=4096)
def _resize(size: tuple[int, int], interpolation: Any) -> Any:
    return vision.Resize(size, interpolation)


def _resized(args: dict[str, Any], image: Image.Image) -> Image.Image:
    size = args["size"]
    if not isinstance(size, int) and len(size) == 2:
        return to_size(image, pair(size), args["interpolation"])
    shorter = pair(size)[0]  # one number is for the shorter side; torchvision rounds the longer one down
    longer = int(shorter * max(image.size) / min(image.size))
    return to_size(
        image, (longer, shorter) if image.width <= image.height else (shorter, longer), args["interpolation"]
    )


_CHANNELS = {"RGB": 3, "L": 1}


class ValueTable:
    """A ToTensor and the Normalize after it, as one function of a PIL image of mode RGB or L."""

    def __init__(self, fixed: Sequence[Part]) -> None:
        self._operators = [construct(part) for part in fixed]
        self._tables: dict[int, np.ndarray] = {}

    def __call__(self, image: Any) -> np.ndarray:
        """float32 (C, H, W); any other image goes through MindSpore's operators themselves."""
        if not isinstance(image, Image.Image) or image.mode not in _CHANNELS:
            return np.asarray(self._computed(image))
        values = self._values(_CHANNELS[image.mode])
        pixels = np.asarray(image).reshape(image.height, image.width, len(values))
        out = np.empty((len(values), image.height, image.width), dtype=np.float32)
        for channel, row in enumerate(values):
            np.take(row, pixels[:, :, channel], out=out[channel], mode="clip")  # 'raise' would work on a copy
        return out

    def _values(self, channels: int) -> np.ndarray:
        """float32 (C, 256): the operators' result for each value of each channel."""
        if channels not in self._tables:
            ramp = np.repeat(np.arange(256, dtype=np.uint8)[:, None, None], channels, axis=2)
            image = Image.fromarray(ramp if channels > 1 else ramp[:, :, 0])
            self._tables[channels] = np.ascontiguousarray(np.asarray(self._computed(image))[:, :, 0])
        return self._tables[channels]

    def _computed(self, image: Any) -> Any:
        for operator in self._operators:
            image = operator(image)
        return image


def tabled(parts: Sequence[Part]) -> tuple[int, int]:
    """The range of transforms that a table can replace: from a ToTensor to the last Normalize right after it.

    An empty range where there is no ToTensor.
    """
    names = [short(part) for part in parts]
    if "ToTensor" not in names:
        return 0, 0
    start = end = names.index("ToTensor")
    end += 1
    while names[end : end + 1] == ["Normalize"]:
        end += 1
    return start, end
