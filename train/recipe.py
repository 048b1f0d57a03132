"""The recipe: one YAML file that describes a training step for both frameworks, read into checked types."""

from __future__ import annotations

import difflib
import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, PositiveInt, ValidationError, model_validator

from ..errors import BadInput, BadRecipe
from ..mappings import table
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

    @model_validator(mode="after")
    def _micro_batches_are_equal(self) -> Recipe:
        if self.data.batch % self.accumulate:
            raise ValueError(
                f"data.batch {self.data.batch} does not divide into accumulate {self.accumulate} equal micro-batches"
            )
        return self

    @model_validator(mode="after")
    def _says_one_thing(self) -> Recipe:
        if self.loss_scale is not None and self.dynamic_loss_scale is not None:
            raise ValueError("loss_scale and dynamic_loss_scale are both given: leave one out")
        if self.mixup is not None and self.loss.args.get("label_smoothing"):
            raise ValueError("mixup smooths the labels itself: take label_smoothing out of loss.args")
        return self

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
    try:
        recipe = Recipe.model_validate(raw)
    except ValidationError as error:
        first = worst(error)
        line = strict_yaml.line(tree, first["loc"])
        raise BadRecipe(f"{path}:{line}: {explain(first, Recipe)}") from None
    problem = first_problem(recipe)
    if problem:
        error_kind = type(problem.error)
        raise error_kind(f"{path}:{strict_yaml.line(tree, problem.loc)}: {problem.error}") from problem.error
    return _beside(recipe, path.parent)


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
    place = ".".join(str(part) for part in (*where, *error["loc"])) or "recipe"
    if error["type"] != "extra_forbidden":
        message = error["msg"].removeprefix("Value error, ")
        shown = repr(error["input"])
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        return f"{place}: {message}" + (f", got {shown}" if error["loc"] and error["type"] != "missing" else "")
    known = _known_keys(kind, error["loc"][:-1])
    key = str(error["loc"][-1])
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
    return f"unknown key {place!r}; {hint}"


def _known_keys(kind: Any, loc: tuple[Any, ...]) -> list[str]:
    for part in loc:
        if isinstance(part, int):
            continue
        annotation = kind.model_fields[part].annotation
        options = [annotation, *getattr(annotation, "__args__", ())]
        kind = next(option for option in options if isinstance(option, type) and issubclass(option, BaseModel))
    return list(kind.model_fields)


def _canonical(value: Any) -> Any:
    """The value with every number as a float, and every part under its row's full name."""
    if isinstance(value, dict):
        return {key: _full_name(item) if key == "name" else _canonical(item) for key, item in value.items()}
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
        return hashlib.sha256(source.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
    except OSError as error:
        raise BadRecipe(f"model.source: {source} cannot be read: {error.strerror or error}") from None


def _beside(recipe: Recipe, folder: Path) -> Recipe:
    model, data = recipe.model, recipe.data
    for key, path in (("checkpoint", model.checkpoint), ("source", model.source)):
        if path is not None:
            model = model.model_copy(update={key: folder / path.expanduser()})
    places = {"source": data.source, "validation": data.validation}
    data = data.model_copy(update={key: _absolute(source, folder) for key, source in places.items()})
    return recipe.model_copy(update={"model": model, "data": data})


def _absolute(source: str | None, folder: Path) -> str | None:
    """A source that lies in a folder ('folder:PATH', 'cifar10:PATH'), with its path taken from `folder`."""
    kind, colon, path = (source or "").partition(":")
    return f"{kind}:{folder / Path(path).expanduser()}" if f"{kind}{colon}" in IN_FOLDERS and path else source
