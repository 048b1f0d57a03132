"""A batch through torchvision's transforms, on given draws; mixup in torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torchvision import transforms
from torchvision.transforms import InterpolationMode, autoaugment
from torchvision.transforms import functional as vision

from ...errors import BadRecipe
from ..recipe.part_arguments import arguments, as_parts, is_random, short
from ..recipe.schema import Part
from . import random_draws
from .pil_transforms import patch_value
from .random_draws import Drawn, Key, Mix, apply_random, pair, refuse_undrawn
from .sample import Sample, decode, refuse_unfit


def apply(part: Part, drawn: Drawn, image: Any) -> Any:
    """Apply what `draws.draw` drew to `image`: a PIL image, for RandomErasing a float tensor (C, H, W)."""
    return _APPLY[short(part)](arguments(part), drawn, image)


def _resized_crop(args: Mapping[str, Any], drawn: Drawn, image: Any) -> Any:
    box = (drawn["top"], drawn["left"], drawn["height"], drawn["width"])
    size, mode = list(pair(args["size"])), InterpolationMode(args["interpolation"])
    return vision.resized_crop(image, *box, size=size, interpolation=mode, antialias=args["antialias"])


def _crop(args: Mapping[str, Any], drawn: Drawn, image: Any) -> Any:
    for border in drawn["pads"]:
        image = vision.pad(image, list(border), args["fill"], args["padding_mode"])
    return vision.crop(image, drawn["top"], drawn["left"], drawn["height"], drawn["width"])


def _jittered(args: Mapping[str, Any], drawn: Drawn, image: Any) -> Any:
    adjust = (vision.adjust_brightness, vision.adjust_contrast, vision.adjust_saturation, vision.adjust_hue)
    for which in drawn["order"]:
        if drawn["factors"][which] is not None:
            image = adjust[which](image, drawn["factors"][which])
    return image


def _augmented(args: Mapping[str, Any], drawn: Drawn, image: Any) -> Any:
    mode = InterpolationMode(args["interpolation"])
    for name, magnitude in drawn["ops"]:
        image = autoaugment._apply_op(image, name, magnitude, interpolation=mode, fill=args["fill"])
    return image


def _erased(args: Mapping[str, Any], drawn: Drawn, image: torch.Tensor) -> torch.Tensor:
    if drawn["box"] is None:
        return image
    noise = drawn["noise"]
    patch = torch.from_numpy(noise if noise is not None else patch_value(args["value"], len(image)))
    return vision.erase(image, *drawn["box"], patch)


_APPLY: dict[str, Callable[[Mapping[str, Any], Drawn, Any], Any]] = {
    "ColorJitter": _jittered,
    "RandAugment": _augmented,
    "RandomCrop": _crop,
    "RandomErasing": _erased,
    "RandomHorizontalFlip": lambda args, drawn, image: vision.hflip(image) if drawn["flip"] else image,
    "RandomResizedCrop": _resized_crop,
    "RandomVerticalFlip": lambda args, drawn, image: vision.vflip(image) if drawn["flip"] else image,
}


def prepared(image: Any, transforms: Sequence[Part | Callable[[Any], Any]], key: Key) -> Any:
    """One decoded PIL image after the transforms from `pipeline`; the random ones draw from `key`."""
    generator = random_draws.generator(key)
    for transform in transforms:
        if isinstance(transform, Part):
            image = apply_random(transform, apply, image, generator)
            continue
        image = transform(image)
    return image


def pipeline(transforms: Sequence[Part | dict[str, Any]]) -> list[Part | Callable[[Any], Any]]:
    """The fixed transforms as torchvision objects, the random ones as they are in the recipe.

    An interpolation may be given by its name, such as 'bilinear'. Raises BadRecipe for a transform that torchvision
    does not have, or whose arguments it refuses.
    """
    made = [(part, _transform(part)) for part in as_parts(transforms)]  # torchvision also checks the random ones
    return [part if is_random(part) else transform for part, transform in made]


def batch(
    samples: Sequence[Sample], transforms: Sequence[Part | dict[str, Any]], keys: Sequence[Key] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Decode and transform the samples in order: images float32 (N, C, H, W), labels int64 (N,).

    keys: (seed, epoch, index) of each sample; random transforms draw from them, and without keys are refused.
    Under a float64 default dtype the images are float64, exact to it: ToTensor divides in the default dtype.

    Raises BadInput naming a sample that cannot be decoded, Unsupported for a random transform that cannot be drawn,
    and BadRecipe where the transforms do not end in arrays of one size.
    """
    refuse_undrawn(as_parts(transforms), keys)
    known = [(0, 0, 0)] * len(samples) if keys is None else keys
    steps = pipeline(transforms)
    arrays = [_array(sample, steps, key) for sample, key in zip(samples, known, strict=True)]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise BadRecipe(f"the transforms leave images of several sizes, {sorted(shapes)}: add CenterCrop")
    images = np.stack(arrays)
    refuse_unfit(images, str(torch.get_default_dtype()).removeprefix("torch."))
    return images, np.array([sample.label for sample in samples], dtype=np.int64)


def _array(sample: Sample, transforms: Sequence[Part | Callable[[Any], Any]], key: Key) -> np.ndarray:
    image = decode(sample)
    try:
        return np.asarray(prepared(image, transforms, key))
    except (RuntimeError, TypeError, ValueError) as error:
        raise BadRecipe(f"torchvision's transforms failed on {sample.name}: {error}") from error


def _transform(part: Part) -> Callable[[Any], Any]:
    name = part.name.rpartition(".")[2]
    kind = getattr(transforms, name, None)
    if kind is None:
        raise BadRecipe(f"torchvision.transforms has no {name}")
    arguments = dict(part.args)
    try:
        if isinstance(arguments.get("interpolation"), str):
            arguments["interpolation"] = InterpolationMode(arguments["interpolation"])
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise BadRecipe(f"torchvision.transforms.{name}: {error}") from error


def mix_images(images: torch.Tensor, mix: Mix) -> torch.Tensor:
    """The mixed batch, of the dtype of `images` (N, C, H, W), which are not changed."""
    if not mix.use:
        return images
    if mix.box is not None:
        top, bottom, left, right = mix.box
        mixed = images.clone()
        mixed[:, :, top:bottom, left:right] = images.flip(0)[:, :, top:bottom, left:right]
        return mixed
    return images.mul(mix.lam).add_(images.flip(0).mul_(1.0 - mix.lam))


def soft_targets(
    labels: torch.Tensor, mix: Mix, num_classes: int, smoothing: float, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """(N, num_classes) of `dtype`: the smoothed one-hot rows of `labels` (N,), mixed as the images are."""
    off = smoothing / num_classes
    rows = torch.full((len(labels), num_classes), off, dtype=dtype)
    rows.scatter_(1, labels.long().view(-1, 1), 1.0 - smoothing + off)
    return rows * mix.lam + rows.flip(0) * (1.0 - mix.lam)


@contextmanager
def exact_transforms(dtype: torch.dtype) -> Iterator[None]:
    """Within this block torchvision's ToTensor divides in `dtype`, so that float64 images are exact to float64."""
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(previous)
