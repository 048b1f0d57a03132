"""What evaluation and prediction ask of a MindSpore process, settled before one is started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from ...errors import Ambiguous, BadCheckpoint, BadInput, BadRecipe, MsmigrateError
from ...migrate.convert import convert
from .. import recipe as recipes
from ..data import source_names
from ..data.data_sources import open_source
from ..data.draws import is_random
from ..data.image_folder import class_names
from ..models.converted import torch_spec
from ..models.model_names import is_zoo, num_classes
from ..recipe import FOLDER, Part, Recipe
from ..recipe_parts import Strict
from ..run.checkpoints import Checkpoint
from ..run.checkpoints import read as read_checkpoint
from .inference_weights import is_foreign

Mode = Literal["RGB", "L"]
Target = Literal["Ascend", "GPU", "CPU"]
Told = Callable[[dict[str, Any]], None]  # {"doing": what} or {"done": images so far, "of": all of them}


class Request(Strict):
    """What the worker is told.

    weights: the MindSpore checkpoint that is read; shown: what the user calls it. ema: take its moving average. source:
    labelled images, of which class i is the net's class classes[i] (None: the same numbers); or images: files without
    labels. mode: what they are decoded to (None: what the source says). batch: images at a time. target: None takes
    what is there. top: how many classes are kept of each image. on_corrupt: an image that cannot be read or decoded
    ends the work, or is passed over and named.
    """

    recipe: Recipe
    weights: Path = Field(strict=False)
    shown: str
    ema: bool = False
    source: str | None = None
    classes: list[int] | None = None
    images: list[str] | None = None
    mode: Mode | None = None
    batch: int = 32
    target: Target | None = None
    top: int = 5
    on_corrupt: Literal["fail", "skip"] = "fail"


class Subject(NamedTuple):
    """What is evaluated: the checkpoint as the user names it, the MindSpore file with its weights, the recipe that
    says how to use it, the names of its classes in label order (None: it does not say), and where it stands in its
    training run (None: it is of none). averaged: whether it holds a moving average too."""

    checkpoint: Path
    weights: Path
    recipe: Recipe
    classes: tuple[str, ...] | None
    run: dict[str, Any] | None
    torch: bool
    averaged: bool = False

    @property
    def num_classes(self) -> int:
        """How many classes the model tells apart."""
        return num_classes(self.recipe.model.name, self.recipe.model.args)

    def names(self, known: Sequence[str] | None = None) -> list[str]:
        """A name for every class of the model; those that `known` (or the checkpoint) does not name get a number."""
        names = list(known if known is not None else self.classes or ())[: self.num_classes]
        return names + [f"class {index}" for index in range(len(names), self.num_classes)]


def subject(
    checkpoint: Path, recipe_file: Path | None, *, ema: bool, folder: Path, known: Recipe | None = None
) -> Subject:
    """Settle what a checkpoint is and how it is used; a torch checkpoint is converted into `folder`.

    known: a recipe that stands in no file, where recipe_file is None.

    Raises BadCheckpoint, Ambiguous or Unsupported for a file that cannot be used, BadRecipe for a recipe that cannot,
    and BadInput where neither the checkpoint nor the command line says which model this is.
    """
    if checkpoint.is_dir():
        inside = checkpoint / "checkpoints" / "best.ckpt"
        hint = inside if inside.exists() else "a file in it"
        raise BadCheckpoint(f"{checkpoint} is a folder; a checkpoint is a file: name {hint}")
    given = recipes.load(recipe_file) if recipe_file is not None else known
    torch = is_foreign(checkpoint)
    if torch:
        if ema:
            raise BadInput(f"{checkpoint} is a torch checkpoint; --ema takes the moving average that msmigrate keeps")
        weights = _converted(checkpoint, folder, given)
        stored = Checkpoint({}, None)
    else:
        weights, stored = checkpoint, read_checkpoint(checkpoint)
        if ema and not stored.ema:
            raise BadInput(f"{checkpoint} holds no moving average; leave --ema out")
    recipe = given or _own_recipe(checkpoint, stored)
    preparation(recipe)  # or refuse it now
    found = Subject(checkpoint, weights, recipe, _classes(checkpoint, stored), stored.run, torch, bool(stored.ema))
    if found.classes is not None and len(found.classes) > found.num_classes:
        raise BadInput(
            f"{checkpoint} was trained on {len(found.classes)} classes and the recipe's {recipe.model.name} has "
            f"{found.num_classes}: the recipe is of another model"
        )
    return found


def _converted(checkpoint: Path, folder: Path, recipe: Recipe | None) -> Path:
    """The torch checkpoint as a MindSpore one in `folder`; a model of torchvision or timm tells its classes."""
    weights = folder / "converted.ckpt"
    model = recipe.model if recipe is not None else None
    spec = torch_spec(model.name, model.args) if model is not None and is_zoo(model.name) else None
    try:
        try:
            convert(checkpoint, weights, to="mindspore")
        except Ambiguous:
            if spec is None:
                raise
            convert(checkpoint, weights, to="mindspore", model=spec)
    except Ambiguous as error:
        advice = "convert it with msmigrate convert-ckpt, which has options for this, and name the new file"
        raise Ambiguous(f"{error}; {advice}") from error
    return weights


def _own_recipe(checkpoint: Path, stored: Checkpoint) -> Recipe:
    """The recipe that a checkpoint of ours carries; it is input like any other, and checked like any other."""
    if stored.run is None:
        raise BadInput(f"{checkpoint} does not say which model it is of: add --recipe FILE")
    try:
        recipe = Recipe.model_validate(stored.run.get("recipe"))
        recipes.check(recipe)
    except ValidationError as error:
        why = recipes.explain(recipes.worst(error), Recipe)
        raise BadCheckpoint(f"{checkpoint} carries a recipe that cannot be used ({why}): add --recipe FILE") from error
    except MsmigrateError as error:
        raise type(error)(f"{checkpoint} carries a recipe that cannot be used ({error}): add --recipe FILE") from error
    return recipe


def _classes(checkpoint: Path, stored: Checkpoint) -> tuple[str, ...] | None:
    """The class names that training left in the checkpoint."""
    names = (stored.run or {}).get("classes")
    if not names:
        return None
    sound = isinstance(names, list) and all(isinstance(name, str) and name.isprintable() for name in names)
    if not sound or len(set(names)) < len(names):
        raise BadCheckpoint(f"{checkpoint} is damaged: its class names are not a list of different names")
    return tuple(names)


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


def source_named(data: str | None, recipe: Recipe) -> str:
    """The source that DATA means: one that a recipe may name, or the path of a tree of class folders.

    Without DATA, the recipe's data.validation. Raises BadInput where there is neither, or no such folder.
    """
    if data is None:
        if recipe.data.validation is None:
            raise BadInput("the recipe has no data.validation: say on which images, such as folder:PATH or digits:test")
        return recipe.data.validation
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
    return data


def labelled(subject: Subject, named: str) -> tuple[tuple[str, ...], list[int] | None]:
    """The classes of a source, and of each its number in the net, by name (None: the checkpoint names no classes).

    Raises BadInput that lists the classes which the checkpoint does not know, and what open_source raises.
    """
    if subject.classes is not None and named.startswith(FOLDER):  # an unknown class is the better news than too many
        _refuse_unknown(class_names(recipes.expanded(Path(named.removeprefix(FOLDER)))), subject, named)
    classes = open_source(named, subject.num_classes, training=False).classes
    if subject.classes is None:
        return classes, None
    _refuse_unknown(classes, subject, named)
    number = {name: index for index, name in enumerate(subject.classes)}
    return classes, [number[name] for name in classes]


def _refuse_unknown(classes: Sequence[str], subject: Subject, named: str) -> None:
    assert subject.classes is not None
    unknown = [name for name in classes if name not in subject.classes]
    if unknown:
        raise BadInput(
            f"{named} has classes that {subject.checkpoint} was not trained on: {_few(unknown)}; "
            f"it knows {_few(subject.classes)}"
        )


def own_mode(recipe: Recipe) -> Mode:
    """The mode in which the net saw the images it was trained on: digits are grey, all else is in colour."""
    return "L" if recipe.data.source.partition(":")[0] == "digits" else "RGB"


def mode_of(source: str, recipe: Recipe) -> Mode | None:
    """The mode for a source's images: files are decoded as the net's own were, other sources know theirs (None)."""
    return own_mode(recipe) if source.startswith(FOLDER) else None


def batch_of(recipe: Recipe) -> int:
    """How many images at a time the recipe evaluates."""
    return recipe.data.eval_batch or recipe.data.batch


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
