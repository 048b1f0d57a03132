"""The recipe: one YAML file that describes a training step for both frameworks, read into checked types."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, Field, PositiveInt, ValidationError

from ..errors import BadInput, BadRecipe
from ..input_files import LARGEST_PYTHON, read_bytes
from ..mappings import table
from ..printable import shortened
from . import strict_yaml
from .recipe_parts import (
    Amp,
    Clip,
    Data,
    DynamicLossScale,
    Ema,
    Group,
    Mixup,
    Model,
    Optimizer,
    Part,
    Schedule,
    Strict,
    Train,
    Watch,
)

__all__ = [
    "DEFAULT",
    "FOLDER",
    "Amp",
    "Clip",
    "Data",
    "DynamicLossScale",
    "Ema",
    "Group",
    "Mixup",
    "Model",
    "Optimizer",
    "Part",
    "Recipe",
    "Schedule",
    "Train",
    "Watch",
    "check",
    "expanded",
    "explain",
    "load",
    "table_args",
    "worst",
]

DEFAULT = Path(__file__).parent.parent / "recipes" / "resnet50.yaml"
FOLDER = "folder:"
IN_FOLDERS = (FOLDER, "cifar10:", "cifar100:")  # the sources that name a place on this machine
# what a step does not depend on, and its digest leaves out
OUTSIDE_THE_STEP: Any = {
    "train": True,
    "data": {"validation", "eval_batch", "eval_transforms", "shuffle", "drop_last", "workers", "cache", "on_corrupt"},
}


class Recipe(Strict):
    """One training step (model, data, mixing, loss, optimizer, schedule, clipping, accumulation, loss scale, mixed
    precision, moving average, seed), and under `train` how the whole run goes."""

    model: Model
    data: Data = Field(default_factory=Data)
    loss: Part = Field(default_factory=lambda: Part(name="CrossEntropyLoss"))
    optimizer: Optimizer
    schedule: Schedule | None = None
    clip: Clip | None = None
    accumulate: PositiveInt = 1
    loss_scale: float | None = Field(default=None, gt=0)
    dynamic_loss_scale: DynamicLossScale | None = None
    amp: Amp | None = None
    ema: Ema | None = None
    mixup: Mixup | None = None
    sync_batchnorm: bool = False
    train: Train = Field(default_factory=Train)
    seed: int = Field(default=42, ge=0, lt=2**31)

    @property
    def digest(self) -> str:
        """Sixteen hex digits that two recipes share when they describe the same step.

        Neither the order of keys, nor how a number is written, nor where the checkpoint and the images lie counts,
        nor anything that leaves the step as it is (`train`, how images are fetched, validation):
        the same recipe has the same digest on every machine. What is in those files is compared by itself, to the
        bit: the starting weights and the batches are part of every trace.
        """
        tree = _canonical(self.model_dump(mode="json", exclude=OUTSIDE_THE_STEP))
        if self.model.checkpoint is not None:
            tree["model"]["checkpoint"] = "a checkpoint"
        tree["model"].pop("source")
        if self.model.source is not None:
            tree["model"]["source"] = _content(self.model.source)
        kind, colon, _ = self.data.source.partition(":")
        tree["data"]["source"] = kind + colon if kind + colon in IN_FOLDERS else self.data.source
        return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def one_hot(self) -> bool:
        """Whether the loss wants float targets of the logits' shape rather than class indices."""
        return self.mixup is not None or table.row(self.loss.name).short != "CrossEntropyLoss"


def load(path: Path) -> Recipe:
    """Read and check a recipe.

    A relative `checkpoint` and a relative `folder:` source are taken from the recipe's own folder, `~` is the user's
    home. Nothing in the file is ever executed. Raises BadRecipe with file, line and the nearest known key; Unsupported
    where the mapping table has no counterpart for an argument.
    """
    from .recipe_check import first_problem

    raw, tree = strict_yaml.read(path)
    if not isinstance(raw, dict):
        raise BadRecipe(f"{path}: a recipe is a mapping with the keys {', '.join(Recipe.model_fields)}")
    odd = strict_yaml.odd_text(raw)
    if odd is not None:
        place = repr(".".join(map(str, odd[0])))[1:-1]
        raise BadRecipe(_placed(path, tree, odd[0], f"{place}: a text must not hold {odd[1]!r}"))
    try:
        recipe = Recipe.model_validate(raw)
    except ValidationError as error:
        first = worst(error)
        raise BadRecipe(_placed(path, tree, first["loc"], explain(first, Recipe))) from None
    problem = first_problem(recipe)
    if problem:
        raise type(problem.error)(_placed(path, tree, problem.loc, str(problem.error))) from problem.error
    return _beside(recipe, path.parent)


def _placed(path: Path, tree: Any, loc: tuple[Any, ...], text: str) -> str:
    return f"{path}:{strict_yaml.line(tree, loc)}: {shortened(text)}"


def check(recipe: Recipe) -> None:
    """Ask the mapping table for every part, so that a recipe nobody can run fails before a framework is started."""
    from .recipe_check import first_problem

    problem = first_problem(recipe)
    if problem:
        raise problem.error


def table_args(part: Part) -> dict[str, Any]:
    """The part's arguments as the mapping table takes them: the schedules inside a schedule as [name, args]."""
    args = dict(part.args)
    if "schedulers" in args:
        inner = [Part.model_validate(scheduler) for scheduler in args["schedulers"]]
        args["schedulers"] = [[found.name, found.args] for found in inner]
    return args


def worst(error: ValidationError) -> Any:
    """The one of pydantic's errors to tell: an unknown key first, for a key that is missing may be that one."""
    found = error.errors()
    return next((one for one in found if one["type"] == "extra_forbidden"), found[0])


def explain(error: Any, kind: type[BaseModel], where: tuple[Any, ...] = ()) -> str:
    """One line for one of pydantic's errors about a `kind` that stands at `where` in the recipe."""
    loc = error["loc"][:-1] if error["loc"][-1:] == ("[key]",) else error["loc"]
    place = ".".join(str(part) for part in (*where, *loc)) or "recipe"
    if error["type"] == "extra_forbidden":
        known = _known_keys(kind, loc[:-1])
        key = str(loc[-1])
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
        return f"unknown key {place!r}; {hint}"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] in ("model_type", "model_attributes_type"):
        message = f"must be a mapping with the keys {', '.join(_known_keys(kind, loc))}"
    elif loc != error["loc"]:
        message = "a key must be a word"
    shown = repr(error["input"])
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return f"{place}: {message}" + (f", got {shown}" if (*where, *loc) and error["type"] != "missing" else "")


def _known_keys(kind: Any, loc: tuple[Any, ...]) -> list[str]:
    """The keys of the part at `loc` in a `kind`; none where the recipe's types name no part there."""
    for step in loc:
        annotation = kind.model_fields[step].annotation if not isinstance(step, int) else kind
        kind = next(_parts_of(annotation), None)
        if kind is None:
            return []
    return list(kind.model_fields)


def _parts_of(annotation: Any) -> Iterator[type[BaseModel]]:
    """The parts of a recipe in an annotation such as `list[Part] | None`, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _parts_of(inner)


def _canonical(value: Any) -> Any:
    """The value with every number as a float, and every part under its row's full name."""
    if isinstance(value, dict):
        return {k: _full_name(v) if k == "name" and isinstance(v, str) else _canonical(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _full_name(name: str) -> str:
    try:
        return table.row(name).torch
    except BadInput:  # a model's name, which stands for itself
        return name


def _content(source: Path) -> str:
    """The digest of a file of source. Raises BadRecipe where it cannot be read."""
    try:
        return hashlib.sha256(read_bytes(source, LARGEST_PYTHON).replace(b"\r\n", b"\n")).hexdigest()
    except OSError as error:
        raise BadRecipe(f"model.source: {source} cannot be read: {error.strerror or error}") from None


def _beside(recipe: Recipe, folder: Path) -> Recipe:
    model, data = recipe.model, recipe.data
    for key, path in (("checkpoint", model.checkpoint), ("source", model.source)):
        if path is not None:
            model = model.model_copy(update={key: folder / expanded(path)})
    places = {"source": data.source, "validation": data.validation}
    data = data.model_copy(update={key: _absolute(source, folder) for key, source in places.items()})
    return recipe.model_copy(update={"model": model, "data": data})


def expanded(path: Path) -> Path:
    """The path with `~` for the user's home; as it stands where it begins with another user's name that is none."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _absolute(source: str | None, folder: Path) -> str | None:
    """A source that lies in a folder ('folder:PATH', 'cifar10:PATH'), with its path taken from `folder`."""
    kind, colon, path = (source or "").partition(":")
    return f"{kind}:{folder / expanded(Path(path))}" if f"{kind}{colon}" in IN_FOLDERS and path else source
