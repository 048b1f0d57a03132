"""Random transforms on torch's side, with what was drawn already known: torchvision's own functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torchvision.transforms import InterpolationMode, autoaugment
from torchvision.transforms import functional as vision

from ..random_parts import arguments, short
from ..recipe import Part
from .draws import Drawn, pair
from .pil_transforms import patch_value


def apply(part: Part, drawn: Drawn, image: Any) -> Any:
    """Do to `image` what `draws.draw` drew for it; a PIL image, for RandomErasing a float tensor (C, H, W)."""
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
