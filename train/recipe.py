"""The recipe: one YAML file that describes a training step for both frameworks, read into checked types."""

from __future__ import annotations

import difflib
import hashlib
import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError, field_validator, model_validator

from ..errors import BadInput, BadRecipe
from ..mappings import table
from . import strict_yaml

DEFAULT = Path(__file__).parent.parent / "recipes" / "resnet50.yaml"
FOLDER = "folder:"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Part(_Strict):
    """Something the mapping table has a row for: its torch name and its torch arguments."""

    name: str
    args: dict[str, Any] = Field(default_factory=dict)

    @field_validator("args")
    @classmethod
    def _plain(cls, args: dict[str, Any]) -> dict[str, Any]:
        strict_yaml.refuse_odd(args)
        return args


class Model(Part):
    """The network by name, and optionally the torch checkpoint that training starts from."""

    checkpoint: Path | None = Field(default=None, strict=False)


class Data(_Strict):
    """Where the images come from, how many make a step, and how they are prepared."""

    source: str = "photographs"
    batch: PositiveInt = 8
    transforms: list[Part] = Field(default_factory=lambda: [Part(name="ToTensor")])


class Group(_Strict):
    """Parameters by glob patterns over their state_dict names, and the optimizer arguments they get instead."""

    params: list[str] = Field(min_length=1)
    args: dict[str, Any]

    @field_validator("args")
    @classmethod
    def _plain(cls, args: dict[str, Any]) -> dict[str, Any]:
        strict_yaml.refuse_odd(args)
        return args


class Optimizer(Part):
    """The optimizer, its arguments, what is left out of the weight decay, and further groups."""

    no_weight_decay: list[Literal["norm", "bias"]] = Field(default_factory=list)
    groups: list[Group] = Field(default_factory=list)


class Clip(_Strict):
    """Clipping of the gradients by their global L2 norm."""

    max_norm: float = Field(gt=0)


class Recipe(_Strict):
    """One training step: model, data, loss, optimizer, schedule, clipping, accumulation, loss scale, seed."""

    model: Model
    data: Data = Field(default_factory=Data)
    loss: Part = Field(default_factory=lambda: Part(name="CrossEntropyLoss"))
    optimizer: Optimizer
    schedule: Part | None = None
    clip: Clip | None = None
    accumulate: PositiveInt = 1
    loss_scale: float | None = Field(default=None, gt=0)
    seed: int = Field(default=42, ge=0, lt=2**31)

    @model_validator(mode="after")
    def _micro_batches_are_equal(self) -> Recipe:
        if self.data.batch % self.accumulate:
            raise ValueError(
                f"data.batch {self.data.batch} does not divide into accumulate {self.accumulate} equal micro-batches"
            )
        return self

    @property
    def digest(self) -> str:
        """Sixteen hex digits that two recipes share when they describe the same step.

        Neither the order of keys, nor how a number is written, nor where the checkpoint and the images lie counts:
        the same recipe has the same digest on every machine. What is in those files is compared by itself, to the
        bit: the starting weights and the batches are part of every trace.
        """
        tree = _canonical(self.model_dump(mode="json"))
        if self.model.checkpoint is not None:
            tree["model"]["checkpoint"] = "a checkpoint"
        if self.data.source.startswith(FOLDER):
            tree["data"]["source"] = FOLDER
        return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def one_hot(self) -> bool:
        """Whether the loss wants float targets of the logits' shape rather than class indices."""
        return table.row(self.loss.name).short != "CrossEntropyLoss"


def load(path: Path) -> Recipe:
    """Read and check a recipe.

    A relative `checkpoint` and a relative `folder:` source are taken from the recipe's own folder, `~` is the user's
    home. Nothing in the file is ever executed. Raises BadRecipe with file, line and the nearest known key; Unsupported
    where the mapping table has no counterpart for an argument.
    """
    from .recipe_check import first_problem  # which knows the types of this module

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


def _beside(recipe: Recipe, folder: Path) -> Recipe:
    model, data = recipe.model, recipe.data
    if model.checkpoint is not None:
        model = model.model_copy(update={"checkpoint": folder / model.checkpoint.expanduser()})
    if data.source.startswith(FOLDER):
        images = folder / Path(data.source.removeprefix(FOLDER)).expanduser()
        data = data.model_copy(update={"source": f"{FOLDER}{images}"})
    return recipe.model_copy(update={"model": model, "data": data})
