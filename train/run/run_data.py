"""What a run's images come to, looked at before a framework is started: how many, of which classes, for whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import BadInput, BadRecipe
from ..data.data_sources import Source, open_source
from ..models import model_names
from ..recipe import Recipe


@dataclass(frozen=True)
class SourceFacts:
    """One source: how many images and classes it has, and how many images its smallest and largest class."""

    source: str
    images: int
    classes: int
    smallest: int
    largest: int


@dataclass(frozen=True)
class RunData:
    """The data of a run. shard: images of one process in an epoch; warnings: what looks like a mistake and may be
    meant."""

    training: SourceFacts
    validation: SourceFacts | None
    shard: int
    steps_per_epoch: int
    warnings: tuple[str, ...]


def look(recipe: Recipe, processes: int = 1) -> RunData:
    """Open the recipe's sources, without reading an image, and check that they can be trained on.

    Raises BadInput or BadRecipe, in one line with the remedy, for a source that is not there, for more classes than
    the model has, a label out of range, a validation set of other classes, and a batch larger than a process's shard.
    """
    classes = model_names.num_classes(recipe.model.name, recipe.model.args)
    training = open_source(recipe.data.source, classes, training=True)
    facts = _facts(recipe.data.source, training, classes)
    validation = None
    if recipe.data.validation is not None:
        held_out = open_source(recipe.data.validation, classes, training=False)
        validation = _facts(recipe.data.validation, held_out, classes)
        _refuse_other_classes(training, held_out)
    shard = shard_size(facts.images, processes, recipe.data.drop_last)
    batch = recipe.data.batch
    steps = shard // batch if recipe.data.drop_last else -(-shard // batch)
    if not steps:
        among = f" over {processes} processes are {shard} each" if processes > 1 else ""
        fewer = ", or use fewer processes" if processes > 1 else ""
        raise BadRecipe(
            f"data.batch {batch} is larger than what one process gets: {facts.images} images{among}; lower data.batch "
            f"to {max(shard, 1)} or less, or set data.drop_last: false{fewer}"
        )
    return RunData(facts, validation, shard, steps, tuple(_warnings(facts, classes, recipe)))


def shard_size(images: int, processes: int, drop_last: bool) -> int:
    """How many images one process gets in an epoch, as torch's DistributedSampler deals them out."""
    return images // processes if drop_last else -(-images // processes)


def _facts(name: str, source: Source, classes: int) -> SourceFacts:
    labels = np.asarray(source.labels)
    if not len(source) or not labels.size:
        raise BadInput(f"{name} has no images")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        at = int(np.argmax(labels >= classes) if high >= classes else np.argmax(labels < 0))
        raise BadInput(
            f"{name}: image {at} has label {labels[at]}, and the model's {classes} classes are 0 to {classes - 1}: set "
            "the model's num_classes, or mend the labels"
        )
    counts = np.bincount(labels, minlength=len(source.classes))
    return SourceFacts(name, len(source), len(source.classes), int(counts.min()), int(counts.max()))


def _refuse_other_classes(training: Source, validation: Source) -> None:
    """A label is a place among the sorted names: with other names, accuracy would be measured on the wrong classes."""
    ours, theirs = training.classes, validation.classes
    if ours == theirs:
        return
    missing, more = (sorted(set(a) - set(b)) for a, b in ((ours, theirs), (theirs, ours)))
    what = f"has no class {missing[0]!r}" if missing else f"has a class {more[0]!r} that training has not"
    if not missing and not more:
        what = "has the classes in another order"
    raise BadInput(
        f"{validation.name} {what} ({len(theirs)} classes, training {len(ours)}): labels would mean other classes; "
        "give both the same ones"
    )


def _warnings(facts: SourceFacts, classes: int, recipe: Recipe) -> list[str]:
    found = []
    if facts.classes < classes:
        found.append(
            f"{facts.source} has {facts.classes} classes and the model {classes}: the others will never be seen"
        )
    if recipe.data.validation == recipe.data.source:
        found.append("data.validation is what the model trains on: its accuracy says nothing about other images")
    return found
