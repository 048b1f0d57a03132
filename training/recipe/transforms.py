"""Which transforms of a recipe draw random numbers, and where in a pipeline they may stand; NumPy is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import BadRecipe, Unsupported
from ...mappings import table
from .schema import Part

# those whose draws both frameworks can be given: see random_draws.py
DRAWABLE = (
    "ColorJitter",
    "RandAugment",
    "RandomCrop",
    "RandomErasing",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
)
AFTER_TO_TENSOR = ("RandomErasing",)
# torchvision's transforms that draw although their name does not begin with Random
_DRAWING = ("AugMix", "AutoAugment", "ColorJitter", "ElasticTransform", "RandAugment", "TrivialAugmentWide")


def short(part: Part) -> str:
    """The transform's class name, without its module."""
    return part.name.rpartition(".")[2]


def is_random(part: Part) -> bool:
    """Whether the transform draws random numbers."""
    return short(part).startswith(("Random", *_DRAWING))


def can_draw(part: Part) -> bool:
    """Whether `draws.draw` knows what this random transform draws."""
    return short(part) in DRAWABLE


def arguments(part: Part) -> dict[str, Any]:
    """The transform's torch arguments with torch's defaults filled in."""
    return table.arguments(part.name, part.args)


def misplaced(transforms: Sequence[Part]) -> tuple[int, BadRecipe] | None:
    """The first random transform on the wrong side of ToTensor, by its place in the list, and what to say of it."""
    names = [short(part) for part in transforms]
    border = names.index("ToTensor") if "ToTensor" in names else len(names)
    for index, part in enumerate(transforms):
        if can_draw(part) and (index > border) != (names[index] in AFTER_TO_TENSOR):
            return index, wrong_side(part)
    return None


def wrong_side(part: Part) -> BadRecipe:
    """What to say of a random transform on the wrong side of ToTensor."""
    if short(part) in AFTER_TO_TENSOR:
        return BadRecipe(f"{part.name} works on what ToTensor gives: put it after ToTensor")
    return BadRecipe(f"{part.name} works on images, not on what ToTensor gives: put it before ToTensor")


def parts(transforms: Sequence[Part | dict[str, Any]]) -> list[Part]:
    """The transforms as recipe parts; each may also be a plain {'name': …, 'args': …}."""
    return [Part.model_validate(transform) for transform in transforms]


def refuse_random(transforms: Sequence[Part]) -> None:
    """Raise Unsupported if a transform draws random numbers, where images have to be the same every time."""
    for transform in transforms:
        if is_random(transform):
            raise Unsupported(
                f"{transform.name} draws random numbers, and these images are to be the same every time: "
                "use fixed transforms, such as Resize and CenterCrop (data.eval_transforms)"
            )
