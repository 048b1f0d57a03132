"""The parts of a recipe, checked before a framework is started, and without NumPy.

What their arguments must be, as for torch; which transforms draw random numbers, and where in the list they may be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import BadRecipe, Unsupported
from ...mappings import table
from .schema import Part

# random transforms for which both frameworks can be given the same draws: see random_draws.py
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
CANDIDATES: tuple[Any, ...] = (1, [1], [0.5, 0.5], [0.5, 0.5, 0.5], "")  # stand-ins for what a draft asks for
# torchvision's transforms that draw although their name does not begin with Random
_DRAWING = ("AugMix", "AutoAugment", "ColorJitter", "ElasticTransform", "RandAugment", "TrivialAugmentWide")


def check(part: Part) -> None:
    """Raise BadRecipe where an argument of a random transform is not what torchvision takes."""
    args = arguments(part)
    for name, value in args.items():
        should = wanted(short(part), name, value)
        if should:
            raise BadRecipe(f"{short(part)}'s {name} must be {should}, not {value!r}")
    if short(part) == "ColorJitter":
        for name in ("brightness", "contrast", "saturation", "hue"):
            jitter_range(args[name], name)
    if short(part) == "RandAugment" and args["magnitude"] >= args["num_magnitude_bins"]:
        raise BadRecipe(
            f"RandAugment: magnitude {args['magnitude']} must be below num_magnitude_bins {args['num_magnitude_bins']}"
        )


def wanted(part: str, argument: str, value: Any, default: Any = None) -> str | None:
    """What the argument of a part, by its short name, should have been, in words; None when the value fits.

    Where no rule is known, a value has to be of the type of torch's own default, if there is one.
    """
    rule = _RULES.get((part, argument)) or _RULES.get(("", argument)) or _like(default)
    return None if rule is None or rule[1](value) else rule[0]


def stand_ins(part: str, unknown: Sequence[str]) -> dict[str, Any]:
    """For those of these arguments that torch has no default for, a value that it takes; nothing where no rule says
    which."""
    needed = {a.torch for row in table.rows() if part in (row.short, row.torch) for a in row.arguments if a.required}
    fitting = {name: [one for one in CANDIDATES if wanted(part, name, one) is None] for name in needed & {*unknown}}
    return {name: found[0] for name, found in fitting.items() if 0 < len(found) < len(CANDIDATES)}


def jitter_range(value: Any, name: str) -> tuple[float, float] | None:
    """The bounds of a ColorJitter factor: a number is a distance from the neutral factor; None: always neutral."""
    centre, low, high = (0.0, -0.5, 0.5) if name == "hue" else (1.0, 0.0, math.inf)
    if isinstance(value, (int, float)):
        first, last = centre - value, centre + value
        first = first if name == "hue" else max(first, 0.0)
        if value < 0:
            raise BadRecipe(f"ColorJitter: {name} as a single number must not be negative, got {value}")
    else:
        first, last = float(value[0]), float(value[1])
    if not low <= first <= last <= high:
        raise BadRecipe(f"ColorJitter: {name} must lie between {low} and {high}, got {value!r}")
    return None if first == last == centre else (first, last)


def _whole(value: Any, least: int) -> bool:
    return type(value) is int and value >= least


def _number(value: Any) -> bool:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer larger than any float, which JSON may contain
        return False


def _numbers(value: Any, *counts: int) -> bool:
    return isinstance(value, (list, tuple)) and len(value) in counts and all(map(_number, value))


def _whole_numbers(value: Any, least: int, *counts: int) -> bool:
    return _whole(value, least) or (_numbers(value, *counts) and all(_whole(item, least) for item in value))


def _range(value: Any, low: float, high: float = math.inf) -> bool:
    return _numbers(value, 2) and low <= value[0] <= value[1] <= high


def _fill(value: Any) -> bool:
    return value is None or _number(value) or _numbers(value, 1, 3)


_Rule = tuple[str, Callable[[Any], bool]]
_FILL: _Rule = ("a number, or one for each channel", _fill)
_FACTOR: _Rule = ("a number, or a list of two", lambda value: _number(value) or _numbers(value, 2))
_YES_OR_NO: _Rule = ("true or false", lambda value: isinstance(value, bool))
_CHOICE: _Rule = ("true, false or null", lambda value: value is None or isinstance(value, bool))
_COUNT: _Rule = ("a whole number from 0 up", lambda value: _whole(value, 0))
_POSITIVE: _Rule = ("a whole number above 0", lambda value: _whole(value, 1))
_NUMBER: _Rule = ("a number", _number)
_FROM_ZERO: _Rule = ("a number from 0 up", lambda value: _number(value) and value >= 0)
_SHARE: _Rule = ("a number above 0 and below 1", lambda value: _number(value) and 0 < value < 1)
_EACH_CLASS: _Rule = (
    "null or a list of numbers, one for each class",
    lambda value: value is None or (bool(value) and isinstance(value, list) and all(map(_number, value))),
)


def _like(default: Any) -> _Rule | None:
    """The rule that follows from torch's own default."""
    if isinstance(default, bool):
        return _YES_OR_NO
    if isinstance(default, (int, float)):
        return _NUMBER
    if isinstance(default, (list, tuple)) and all(map(_number, default)):
        return f"a list of {len(default)} numbers", lambda value: _numbers(value, len(default))
    return None


def _or_null(rule: _Rule) -> _Rule:
    return f"{rule[0]}, or null", lambda value: value is None or rule[1](value)


_RULES: dict[tuple[str, str], _Rule] = {
    # of optimizers
    **{("", name): _FROM_ZERO for name in ("lr", "weight_decay", "momentum", "eps")},
    **{("", name): _CHOICE for name in ("foreach", "fused")},
    ("", "betas"): (
        "a list of two numbers from 0 to below 1",
        lambda value: _numbers(value, 2) and all(0 <= beta < 1 for beta in value),
    ),
    # of schedules
    **{("", name): _POSITIVE for name in ("T_max", "T_0", "T_mult", "step_size", "step_size_up")},
    **{("", name): _or_null(_POSITIVE) for name in ("step_size_down", "total_steps", "epochs", "steps_per_epoch")},
    **{("", name): _NUMBER for name in ("gamma", "base_lr", "max_lr")},
    **{("", name): _SHARE for name in ("base_momentum", "max_momentum")},
    ("", "total_iters"): _COUNT,
    ("", "milestones"): (
        "a list of whole numbers",
        lambda value: isinstance(value, list) and all(_whole(item, 0) for item in value),
    ),
    # of losses
    **{("", name): _EACH_CLASS for name in ("weight", "pos_weight")},
    # of transforms
    ("", "mean"): ("a list of numbers, one for each channel", lambda value: _numbers(value, 1, 3)),
    ("", "std"): (
        "a list of numbers other than 0, one for each channel",
        lambda value: _numbers(value, 1, 3) and all(value),
    ),
    ("", "num_output_channels"): ("1 or 3", lambda value: type(value) is int and value in (1, 3)),
    ("", "max_size"): _or_null(_POSITIVE),
    ("Pad", "padding"): ("1, 2 or 4 whole numbers from 0 up", lambda value: _whole_numbers(value, 0, 1, 2, 4)),
    ("", "p"): ("a probability from 0 to 1", lambda value: _number(value) and 0 <= value <= 1),
    ("", "size"): (
        "a whole number above 0, or a list of height and width",
        lambda value: _whole_numbers(value, 1, 1, 2),
    ),
    ("", "scale"): ("a list of two shares in rising order, from 0 up", lambda value: _range(value, 0)),
    ("RandomErasing", "scale"): ("a list of two shares from 0 to 1 in rising order", lambda value: _range(value, 0, 1)),
    ("", "ratio"): (
        "a list of two ratios above 0 in rising order",
        lambda value: _range(value, 0) and value[0] > 0,
    ),
    ("", "padding"): (
        "null, or 1, 2 or 4 whole numbers from 0 up",
        lambda value: value is None or _whole_numbers(value, 0, 1, 2, 4),
    ),
    ("", "pad_if_needed"): _YES_OR_NO,
    ("", "inplace"): _YES_OR_NO,
    ("", "fill"): _FILL,
    ("", "num_ops"): ("a whole number from 0 up", lambda value: _whole(value, 0)),
    ("", "magnitude"): ("a whole number from 0 up", lambda value: _whole(value, 0)),
    ("", "num_magnitude_bins"): ("a whole number from 2 up", lambda value: _whole(value, 2)),
    ("", "value"): (
        "a number, one for each channel, or 'random'",
        lambda value: value == "random" or _number(value) or _numbers(value, 1, 3),
    ),
    **{("ColorJitter", name): _FACTOR for name in ("brightness", "contrast", "saturation", "hue")},
}


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
    """The first random transform on the wrong side of ToTensor: its place in the list, and its error."""
    names = [short(part) for part in transforms]
    border = names.index("ToTensor") if "ToTensor" in names else len(names)
    for index, part in enumerate(transforms):
        if can_draw(part) and (index > border) != (names[index] in AFTER_TO_TENSOR):
            return index, wrong_side(part)
    return None


def wrong_side(part: Part) -> BadRecipe:
    """The error for a random transform on the wrong side of ToTensor."""
    if short(part) in AFTER_TO_TENSOR:
        return BadRecipe(f"{part.name} works on the output of ToTensor: put it after ToTensor")
    return BadRecipe(f"{part.name} works on images, not on the output of ToTensor: put it before ToTensor")


def as_parts(transforms: Sequence[Part | dict[str, Any]]) -> list[Part]:
    """The transforms as recipe parts; each may also be a plain {'name': …, 'args': …}."""
    return [Part.model_validate(transform) for transform in transforms]


def refuse_random(transforms: Sequence[Part]) -> None:
    """Raise Unsupported if a transform draws random numbers, where images have to be the same every time."""
    for transform in transforms:
        if is_random(transform):
            raise Unsupported(
                f"{transform.name} draws random numbers, and these images have to be the same every time: "
                "use fixed transforms, such as Resize and CenterCrop (data.eval_transforms)"
            )
