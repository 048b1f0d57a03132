"""What evaluation and prediction ask of a MindSpore process, settled before one is started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ...errors import BadInput, BadRecipe, NotTrusted
from .. import recipe as recipes
from ..data import source_names
from ..data.data_sources import check_place
from ..data.draws import is_random
from ..recipe import FOLDER, IN_FOLDERS, Part, Recipe
from ..recipe_parts import Strict

Mode = Literal["RGB", "L"]
Target = Literal["Ascend", "GPU", "CPU"]
Told = Callable[[dict[str, Any]], None]  # {"doing": what} or {"done": images so far, "of": all of them}


class Request(Strict):
    """What the worker is told.

    weights: the MindSpore checkpoint that is read; shown: what the user calls it. net: `FILE.py:FUNCTION` that makes
    the Cell, where that is not the recipe's model. ema: take its moving average. source: labelled images, of which
    class i is the net's class classes[i] (None: the same numbers); or images: files without labels. mode: what they
    are decoded to (None: what the source says). batch: images at a time. target: None takes what is there. top: how
    many classes are kept of each image. on_corrupt: an image that cannot be read or decoded ends the work, or is passed
    over and named.
    """

    recipe: Recipe
    weights: Path = Field(strict=False)
    shown: str
    net: str | None = None
    ema: bool = False
    source: str | None = None
    classes: list[int] | None = None
    images: list[str] | None = None
    mode: Mode | None = None
    batch: int = 32
    target: Target | None = None
    top: int = 5
    on_corrupt: Literal["fail", "skip"] = "fail"


def preparation(recipe: Recipe) -> list[Part]:
    """The transforms that prepare images for evaluation; raises BadRecipe where they draw random numbers."""
    own = recipe.data.eval_transforms
    transforms = recipe.data.transforms if own is None else own
    drawing = [part.name for part in transforms if is_random(part)]
    if drawing:
        section = "data.transforms" if own is None else "data.eval_transforms"
        remedy = "add data.eval_transforms" if own is None else "take it out there"
        raise BadRecipe(f"the recipe's {section} prepare images at random ({drawing[0]}): {remedy}")
    return transforms


def source_named(data: str | None, recipe: Recipe, *, stored: bool = False) -> str:
    """The source that DATA means: one that a recipe may name, or the path of a tree of class folders.

    Without DATA, the recipe's data.validation; stored: the recipe is the checkpoint's own. Raises BadInput where there
    is neither, or no such folder; NotTrusted for a place that only a checkpoint names.
    """
    if data is not None:
        return source_at(data)
    named = recipe.data.validation
    if named is None:
        raise BadInput("the recipe has no data.validation: say on which images, such as folder:PATH or digits:test")
    if stored and named.startswith(IN_FOLDERS):
        raise NotTrusted(
            f"the checkpoint's validation images are in {named}, and no place is read at a checkpoint's word; if "
            "you mean these",
            (named,),
        )
    return named


def source_at(data: str) -> str:
    """The source that DATA names, or is the path of. Raises BadInput where there is no such source or folder."""
    folder = recipes.expanded(Path(data))
    if data not in source_names.SOURCES and folder.is_dir():
        return f"{FOLDER}{folder.absolute()}"
    if ":" not in data and ("/" in data or data.startswith("~")):
        raise BadInput(f"there is no folder {data}")
    try:
        source_names.check(data)
    except BadRecipe as error:
        nor = "" if ":" in data else f"there is no folder {data}, and "
        raise BadInput(f"{nor}{error}") from error
    check_place(data)
    return data


def own_mode(recipe: Recipe) -> Mode:
    """The mode in which the net saw the images it was trained on: digits are grey, all else is in colour."""
    return "L" if recipe.data.source.partition(":")[0] == "digits" else "RGB"


def mode_of(source: str, recipe: Recipe) -> Mode | None:
    """The mode for a source's images: files are decoded as the net's own were, other sources know theirs (None)."""
    return own_mode(recipe) if source.startswith(FOLDER) else None


def batch_of(recipe: Recipe) -> int:
    """How many images at a time the recipe evaluates."""
    return recipe.data.eval_batch or recipe.data.batch
