"""The recipe: one YAML file that describes a training step for both frameworks, read into checked types."""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError, model_validator

from ..errors import BadRecipe, MsmigrateError
from ..mappings import table
from . import model_names

DEFAULT = Path(__file__).parent.parent / "recipes" / "resnet50.yaml"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Part(_Strict):
    """Something the mapping table has a row for: its torch name and its torch arguments."""

    name: str
    args: dict[str, Any] = Field(default_factory=dict)


class Model(Part):
    """The network by name, and optionally the torch checkpoint that training starts from."""

    checkpoint: Path | None = None


class Data(_Strict):
    """Where the images come from, how many make a step, and how they are prepared."""

    source: str = "photographs"
    batch: PositiveInt = 8
    transforms: list[Part] = Field(default_factory=lambda: [Part(name="ToTensor")])


class Group(_Strict):
    """Parameters by glob patterns over their state_dict names, and the optimizer arguments they get instead."""

    params: list[str] = Field(min_length=1)
    args: dict[str, Any]


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
        """Sixteen hex digits that two recipes share exactly when they describe the same step."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    @property
    def one_hot(self) -> bool:
        """Whether the loss wants float targets of the logits' shape rather than class indices."""
        return not self.loss.name.endswith("CrossEntropyLoss")


def load(path: Path) -> Recipe:
    """Read and check a recipe.

    A relative `checkpoint` and a relative `folder:` source are taken from the recipe's own folder. The YAML is read
    with the safe loader, so nothing in it is ever executed. Raises BadRecipe with file, line and the nearest known
    key; Unsupported where the mapping table has no counterpart for an argument.
    """
    try:
        text = path.read_text(encoding="utf-8")
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        raw = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError) as error:
        raise BadRecipe(f"{path}: cannot be read: {error}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise BadRecipe(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(raw, dict):
        raise BadRecipe(f"{path}: a recipe is a mapping with the keys {', '.join(Recipe.model_fields)}")
    try:
        recipe = Recipe.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        line = _line(tree, first["loc"])
        raise BadRecipe(f"{path}:{line}: {_explain(first)}") from None
    recipe = _beside(recipe, path.parent)
    try:
        check(recipe)
    except MsmigrateError as error:
        raise type(error)(f"{path}: {error}") from error
    return recipe


def check(recipe: Recipe) -> None:
    """Ask the mapping table for every part, so that a recipe nobody can run fails before a framework is started."""
    model_names.check(recipe.model.name, recipe.model.args)
    parts = [("loss", recipe.loss), ("optimizer", recipe.optimizer), ("schedule", recipe.schedule)]
    parts += [("transform", part) for part in recipe.data.transforms]
    for kind, part in parts:
        if part is None:
            continue
        row = table.row(part.name)
        if row.kind != kind:
            raise BadRecipe(f"{part.name} is a {row.kind}, not a {kind}")
        table.translate(part.name, part.args)


def _beside(recipe: Recipe, folder: Path) -> Recipe:
    model, data = recipe.model, recipe.data
    if model.checkpoint is not None:
        model = model.model_copy(update={"checkpoint": folder / model.checkpoint})
    if data.source.startswith("folder:"):
        data = data.model_copy(update={"source": f"folder:{folder / data.source.removeprefix('folder:')}"})
    return recipe.model_copy(update={"model": model, "data": data})


def _explain(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "recipe"
    if error["type"] != "extra_forbidden":
        message = error["msg"].removeprefix("Value error, ")
        return f"{where}: {message}" + (f", got {error['input']!r}" if error["loc"] else "")
    known = _known_keys(error["loc"][:-1])
    key = str(error["loc"][-1])
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
    return f"unknown key {where!r}; {hint}"


def _known_keys(loc: tuple[Any, ...]) -> list[str]:
    kind: Any = Recipe
    for part in loc:
        if isinstance(part, int):
            continue
        annotation = kind.model_fields[part].annotation
        options = [annotation, *getattr(annotation, "__args__", ())]
        kind = next(option for option in options if isinstance(option, type) and issubclass(option, BaseModel))
    return list(kind.model_fields)


def _line(node: Any, loc: tuple[Any, ...]) -> int:
    """The line, counted from 1, of the deepest node on the way to `loc`."""
    line = node.start_mark.line + 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == str(part)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line
