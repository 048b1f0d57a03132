"""The recipe that a checkpoint carries; like everything in a data file, it may come from anyone.

Nothing that it names is imported, opened or fetched. Only what evaluation needs is taken from it: the model's name with
arguments that are known to be harmless, how images are prepared, and how many at a time. Other arguments are refused:
the user may give them on the command line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from ...errors import BadCheckpoint, MsmigrateError
from ...printable import LONGEST, shortened
from ..models import model_names
from ..models.converted_models import torch_spec
from . import check, reader, schema
from .schema import PLACES, Model, Recipe

TAKEN = ("source", "validation", "batch", "eval_batch", "transforms", "eval_transforms", "workers", "on_corrupt")
CLASSES, CHANNELS, SIDE = 100_000, 64, 1024  # the largest that a checkpoint may ask for
BLOCKS, BATCH, WORKERS, TRANSFORMS, PIXELS = 1000, 4096, 256, 50, 8192
POOLS = ("", "avg", "max", "avgmax", "catavgmax", "fast", "token", "map")
REMEDY = "add --recipe FILE"

_Rule = tuple[str, Callable[[Any], bool]]


def _whole(value: Any, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def _sides(value: Any) -> bool:
    pair = isinstance(value, (list, tuple)) and len(value) == 2
    return all(_whole(side, SIDE) for side in value) if pair else _whole(value, SIDE)


_SIDES: _Rule = (f"a whole number, or two, from 1 to {SIDE}", _sides)
_RATE: _Rule = ("a number from 0 to 1", lambda value: type(value) in (int, float) and 0 <= value <= 1)
_SWITCH: _Rule = ("true or false", lambda value: type(value) is bool)
RATES = (
    *("drop_rate", "drop_path_rate", "attn_drop_rate", "proj_drop_rate", "pos_drop_rate", "patch_drop_rate"),
    *("drop_block_rate", "dropout", "attention_dropout", "stochastic_depth_prob"),
)
SWITCHES = (
    *("aux_logits", "init_weights", "memory_efficient", "transform_input"),
    *("qkv_bias", "zero_init_last", "zero_init_residual"),
)
# Arguments that torchvision's and timm's models may be built with: none of these reaches a file, the network, or the
# names of functions, or makes an endless net. Whether a model has the argument, its own signature shows.
HARMLESS: dict[str, _Rule] = {
    "num_classes": (f"a whole number from 1 to {CLASSES}", lambda value: _whole(value, CLASSES)),
    "in_chans": (f"a whole number from 1 to {CHANNELS}", lambda value: _whole(value, CHANNELS)),
    **dict.fromkeys(("img_size", "image_size"), _SIDES),
    **dict.fromkeys(RATES, _RATE),
    **dict.fromkeys(SWITCHES, _SWITCH),
    "global_pool": (f"one of {', '.join(map(repr, POOLS))}", lambda value: value in POOLS),
}


def read(checkpoint: object, tree: Any, instead: Model | None) -> Recipe:
    """The parts of a checkpoint's recipe that evaluation needs, with `model.source` as named there, not opened.

    checkpoint: the user's name for it. instead: the model that the user names in place of its own. Raises BadCheckpoint
    and BadRecipe where the recipe cannot be used.
    """
    try:
        return _read(tree, instead)
    except ValidationError as error:
        kind: type[MsmigrateError] = BadCheckpoint
        why = schema.explain(schema.worst(error), Recipe)
    except ValueError as error:
        kind, why = BadCheckpoint, str(error)
    except MsmigrateError as error:
        kind, why = type(error), str(error)
    raise kind(f"{checkpoint} carries a recipe that cannot be used ({shortened(why)}): {REMEDY}")


def _read(tree: Any, instead: Model | None) -> Recipe:
    odd = reader.odd_text(tree)
    if odd is not None:
        raise ValueError(f"a text in it holds {odd[1]!r}")
    if isinstance(tree, dict):
        data, train = tree.get("data", {}), tree.get("train")
        kept = {key: data[key] for key in TAKEN if key in data} if isinstance(data, dict) else data
        device = train.get("device_id") if isinstance(train, dict) else None
        tree = {
            "model": tree.get("model") if instead is None else instead.model_dump(mode="json"),
            "data": kept,
            "optimizer": {"name": "SGD"},
            "train": {"device_id": device} if type(device) is int and 0 <= device < CLASSES else {},
        }
    recipe = Recipe.model_validate(tree)
    check.check(recipe)
    _within_limits(recipe)
    kind, colon, _ = recipe.data.source.partition(":")
    if f"{kind}{colon}" in PLACES:  # the path is not used, but the kind may be
        recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update={"source": f"{kind}{colon}"})})
    return recipe


def _within_limits(recipe: Recipe) -> None:
    """Raise ValueError for numbers with which preparing an image would use up all memory, or never end."""
    data = recipe.data
    transforms = [*data.transforms, *(data.eval_transforms or ())]
    limits = {
        "model.classes": (recipe.model.classes or 1, CLASSES),
        "data.batch": (data.batch, BATCH),
        "data.eval_batch": (data.eval_batch or 1, BATCH),
        "data.workers": (data.workers, WORKERS),
        "the number of transforms": (len(transforms), TRANSFORMS),
        "the sizes in the transforms together": (sum(map(_sizes, (part.args for part in transforms))), PIXELS),
    }
    for what, (value, most) in limits.items():
        if value > most:
            raise ValueError(f"{what}: {value} is more than {most}")


def _sizes(value: Any) -> int:
    """The sum of all whole numbers in the arguments of a transform: no image grows by more than that."""
    if isinstance(value, dict):
        return sum(map(_sizes, value.values()))
    if isinstance(value, list):
        return sum(map(_sizes, value))
    return abs(value) if type(value) is int else 0


def foreign_argument(model: Model) -> str | None:
    """The argument of a model that is not known to be harmless, in words; None where all are."""
    if model_names.is_file(model.name):
        return "a file of its user's, which only the user names"
    if model_names.is_ours(model.name):  # msmigrate's own: its arguments are known, and can only be too large
        large = (
            name for name, value in model.args.items() if _sizes(value) > (BLOCKS if name == "layers" else CLASSES)
        )
        found = next(large, None)
        return None if found is None else f"{found}={_short(model.args[found])}, which is too large for a checkpoint's"
    return odd_argument(model)


def odd_argument(model: Model) -> str | None:
    """The first argument, not known to be harmless, of a model that is not msmigrate's own, in words."""
    for name, value in model.args.items():
        if name not in HARMLESS:
            return f"{name}={_short(value)}, which it may not set: only the user sets {name}"
        words, fits = HARMLESS[name]
        if not fits(value):
            return f"{name}={_short(value)}, which has to be {words}"
    return None


def enough(recipe: Recipe) -> bool:
    """Whether the parts of this recipe that are taken from a checkpoint suffice to evaluate it; else the user has to
    name the recipe."""
    named = recipe.data.validation or ""
    return recipe.model.source is None and foreign_argument(recipe.model) is None and not named.startswith(PLACES)


def spelled(model: Model) -> str | None:
    """The model as the command line names it; None where that would be too long to be read."""
    spec = torch_spec(model.name, model.args)
    return spec if len(spec) <= LONGEST else None


def classes_of(tree: Any, names: Any) -> dict[str, int]:
    """The argument `num_classes` for a net that is built otherwise than its recipe says: the recipe's, else the number
    of class names; nothing where there is neither."""
    model = tree.get("model") if isinstance(tree, dict) else None
    args = model.get("args") if isinstance(model, dict) else None
    count = args.get("num_classes") if isinstance(args, dict) else None
    if not _whole(count, CLASSES):
        count = len(names) if isinstance(names, list) and names else None
    return {} if count is None else {"num_classes": count}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
