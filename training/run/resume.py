"""Where a training run stands, what its checkpoints say of it, and whether it may go on from one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ...errors import BadCheckpoint, BadInput
from ...migrate.checkpoint.stored_source import DIGEST
from ...printable import quoted
from ..recipe.schema import OUTSIDE_THE_STEP, Recipe

# data options that leave a step as it is, and still decide which images it gets
ORDER = ("shuffle", "drop_last", "on_corrupt")
OUTSIDE = {f"data.{key}" for key in OUTSIDE_THE_STEP["data"]}


@dataclass
class Progress:
    """Where a run stands; a checkpoint holds all of it.

    step: optimizer steps done, skipped ones included. epoch, step_in_epoch: where the next batch is. best_top1,
    best_loss, best_step: of the best checkpoint, by validation or, without one, by an epoch's mean training loss.
    loss_sum, loss_steps: of this epoch so far. skipped: steps in a row that overflowed. validated: the step of the last
    validation.
    """

    step: int = 0
    epoch: int = 0
    step_in_epoch: int = 0
    best_top1: float | None = None
    best_loss: float | None = None
    best_step: int | None = None
    loss_sum: float = 0.0
    loss_steps: int = 0
    skipped: int = 0
    validated: int | None = None

    def next_epoch(self) -> None:
        """The first batch of the next epoch comes next."""
        self.epoch += 1
        self.step_in_epoch = self.loss_steps = 0
        self.loss_sum = 0.0

    def better(self, *, top1: float | None = None, loss: float | None = None) -> bool:
        """Whether these numbers are the best so far; then they are kept with the step. Not a number is never best."""
        if top1 is not None:
            best = top1 == top1 and (self.best_top1 is None or top1 > self.best_top1)
            self.best_top1 = top1 if best else self.best_top1
        else:
            best = loss is not None and loss == loss and (self.best_loss is None or loss < self.best_loss)
            self.best_loss = loss if best else self.best_loss
        if best:
            self.best_step = self.step
        return best

    def record(self) -> dict[str, Any]:
        """For the checkpoint; floats come back to the bit from JSON."""
        return asdict(self)

    @classmethod
    def of(cls, path: Path, run: Mapping[str, Any]) -> Progress:
        """What record() gave; raises BadCheckpoint where something else stands there."""
        found: dict[str, Any] = {field.name: run.get(field.name) for field in fields(cls)}
        wholes = ("step", "epoch", "step_in_epoch", "loss_steps", "skipped")
        for name, value in found.items():
            kinds = (int,) if name in wholes else (int, float) if name == "loss_sum" else (int, float, type(None))
            if type(value) not in kinds or (name in wholes and value < 0):
                raise BadCheckpoint(f"{path} is damaged: it says that {name} is {quoted(value)}")
        return cls(**found)


@dataclass(frozen=True)
class Facts:
    """What stays the same over a run, and which classes, in label order, its net tells apart."""

    recipe: Recipe
    seed: int
    images: int
    steps_per_epoch: int
    processes: int
    classes: tuple[str, ...]
    mode: str
    target: str
    versions: Mapping[str, str]
    source_digest: str | None = None  # of the file of source that the net was made from

    def record(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {
            "recipe": self.recipe.model_dump(mode="json"),
            "recipe_digest": self.recipe.digest,
            "seed": self.seed,
            "images": self.images,
            "steps_per_epoch": self.steps_per_epoch,
            "processes": self.processes,
            "classes": list(self.classes),
            "mode": self.mode,
            "target": self.target,
            "versions": dict(self.versions),
            **({} if self.source_digest is None else {DIGEST: self.source_digest}),
        }


def check_resumable(path: Path, run: Mapping[str, Any], now: Facts) -> list[str]:
    """Raise BadInput where a run cannot go on from this checkpoint to the bit; returns what may change its last bits.

    The recipe's `train` section may have changed, such as the number of epochs.
    """
    new = "or start a new run with another --out"
    if run.get("recipe_digest") != now.recipe.digest:
        changed = "; ".join(_changes(run.get("recipe"), now.recipe))
        raise BadInput(f"{path} is of another recipe ({changed or 'another version of it'}): set it back, {new}")
    data = run["recipe"]["data"] if _has_data(run.get("recipe")) else {}
    for name in ORDER:
        if data.get(name) != getattr(now.recipe.data, name):
            was, wanted = data.get(name), getattr(now.recipe.data, name)
            raise BadInput(f"{path}: data.{name} was {was} and is now {wanted}: set it back, {new}")
    words = {
        "seed": "has the seed",
        "images": "was trained on this many images:",
        "processes": "is of a run with this many processes:",
        "steps_per_epoch": "is of a run with this many steps an epoch:",
    }
    for name, text in words.items():
        if run.get(name) != getattr(now, name):
            raise BadInput(f"{path} {text} {run.get(name)}, and now it is {getattr(now, name)}: set it back, {new}")
    if run.get("classes") != list(now.classes):
        raise BadInput(f"{path} was trained on other classes than {now.recipe.data.source} has: set it back, {new}")
    notes = [
        f"{name} was {run.get(name)} and is now {getattr(now, name)}"
        for name in ("mode", "target", "versions")
        if run.get(name) != getattr(now, name)
    ]
    return [f"{note}: the last bits of the weights may differ from an uninterrupted run's" for note in notes]


def _has_data(recipe: Any) -> bool:
    return isinstance(recipe, dict) and isinstance(recipe.get("data"), dict)


def _changes(old: Any, new: Recipe) -> list[str]:
    """The first three keys, dotted, in which the recipes differ as to the step."""
    tree = new.model_dump(mode="json", exclude=OUTSIDE_THE_STEP)
    found = [
        f"{'.'.join(place)} was {quoted(was)} and is now {quoted(wanted)}"
        for place, was, wanted in _differences(old, tree, ())
        if ".".join(place) not in OUTSIDE and place != ("model", "checkpoint")
    ]
    return found[:3]


def _differences(old: Any, new: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*new, *(key for key in old if key not in new and place)]:
            if key in old or place:
                yield from _differences(old.get(key), new.get(key), (*place, key))
    elif old != new:
        yield place, old, new
