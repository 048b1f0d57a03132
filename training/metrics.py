"""Loss, top-1, top-5: tallied over batches, kept per image, and summarized per class."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import BadInput

PAIRS = 10  # confused pairs and mistakes that are listed


class ClassReport(NamedTuple):
    """scikit-learn's figures for one class (or for an average over classes); support: how many images are of it."""

    name: str
    precision: float
    recall: float
    f1: float
    support: int


class Pair(NamedTuple):
    """How many images of one class were predicted as another, and which share of the class that is."""

    label: str
    predicted: str
    images: int
    share: float


class Mistake(NamedTuple):
    """An image whose prediction is wrong, and how sure the net was."""

    name: str
    label: str
    predicted: str
    probability: float


@dataclass(frozen=True)
class Evaluation:
    """The figures of one evaluation.

    top1, top5: shares of the images, top5 over all classes if the net has fewer than five. loss: mean cross entropy.
    For a net without classes there is only the recipe's own loss, and the rest is None or empty. classes: those that
    occur as labels or predictions; averages: scikit-learn's macro and weighted ones over them. matrix: int64 (C, C)
    over the same classes, a row for each true one.
    """

    images: int
    top1: float | None
    top5: float | None
    loss: float
    classes: list[ClassReport]
    averages: list[ClassReport]
    matrix: np.ndarray
    confused: list[Pair]
    mistakes: list[Mistake]

    def as_json(self) -> dict[str, Any]:
        """As plain values, the matrix as lists."""
        return {
            "images": self.images,
            "top1": self.top1,
            "top5": self.top5,
            "loss": self.loss,
            "classes": [row._asdict() for row in self.classes],
            "averages": [row._asdict() for row in self.averages],
            "confusion_matrix": self.matrix.tolist(),
            "most_confused": [pair._asdict() for pair in self.confused],
            "surest_mistakes": [mistake._asdict() for mistake in self.mistakes],
        }


def evaluate(results: Results, names: Sequence[str]) -> Evaluation:
    """The figures for these results; names: of all the net's classes.

    A class that was never predicted has precision 0, and one without images recall 0, as with scikit-learn's
    zero_division=0.
    """
    if not results.classes.shape[1]:
        nothing = np.zeros((0, 0), np.int64)
        return Evaluation(len(results.losses), None, None, float(results.losses.mean()), [], [], nothing, [], [])
    from sklearn.metrics import classification_report, confusion_matrix  # not at the top: predict needs no report

    labels, predicted = results.labels, results.classes[:, 0]
    hits = results.classes[:, :5] == labels[:, None]
    present = np.union1d(labels, predicted)
    matrix = confusion_matrix(labels, predicted, labels=present)
    # numbers instead of names: two classes may share a name, and one may be called 'accuracy'
    numbers = [str(number) for number in present]
    figures = classification_report(
        labels, predicted, labels=present, target_names=numbers, output_dict=True, zero_division=0
    )
    shown = [names[number] for number in present]
    return Evaluation(
        images=len(labels),
        top1=float(hits[:, 0].mean()),
        top5=float(hits.any(axis=1).mean()),
        loss=float(results.losses.mean()),
        classes=[_row(name, figures[number]) for name, number in zip(shown, numbers, strict=True)],
        averages=[_row(f"{kind} average", figures[f"{kind} avg"]) for kind in ("macro", "weighted")],
        matrix=matrix,
        confused=_confused(matrix, shown),
        mistakes=_mistakes(results, names),
    )


def predictions(results: Results, names: Sequence[str]) -> list[dict[str, Any]]:
    """For each image: its name, its class, the predicted one, and the likeliest classes with probabilities."""
    return [
        {
            "name": image,
            "label": names[label],
            "predicted": names[classes[0]],
            "probability": float(probabilities[0]),
            "loss": float(loss),
            "top": likeliest(classes, probabilities, names),
        }
        for image, label, loss, classes, probabilities in zip(
            results.names, results.labels, results.losses, results.classes, results.probabilities, strict=True
        )
    ]


def likeliest(classes: np.ndarray, probabilities: np.ndarray, names: Sequence[str]) -> list[dict[str, Any]]:
    """One image's likeliest classes, the first one first."""
    return [
        {"class": names[index], "index": int(index), "probability": float(probability)}
        for index, probability in zip(classes, probabilities, strict=True)
    ]


def _row(name: str, figures: dict[str, float]) -> ClassReport:
    return ClassReport(
        name,
        float(figures["precision"]),
        float(figures["recall"]),
        float(figures["f1-score"]),
        int(figures["support"]),
    )


def _confused(matrix: np.ndarray, names: Sequence[str]) -> list[Pair]:
    """The pairs of classes with the most images of one predicted as the other, most first."""
    wrong = matrix.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:PAIRS]
    found = [(int(place), *map(int, np.unravel_index(place, wrong.shape))) for place in order]
    return [
        Pair(names[label], names[taken], int(wrong.flat[place]), float(wrong.flat[place] / matrix[label].sum()))
        for place, label, taken in found
        if wrong.flat[place]
    ]


def _mistakes(results: Results, names: Sequence[str]) -> list[Mistake]:
    """The wrong predictions that the net was surest of."""
    wrong = np.flatnonzero(results.classes[:, 0] != results.labels)
    surest = wrong[np.argsort(-results.probabilities[wrong, 0], kind="stable")][:PAIRS]
    return [
        Mistake(
            results.names[image],
            names[results.labels[image]],
            names[results.classes[image, 0]],
            float(results.probabilities[image, 0]),
        )
        for image in surest
    ]


ARRAYS, FACTS = "results.npz", "results.json"
FACTS_OF = ("names", "skipped", "seconds", "target", "versions", "outputs")


@dataclass(frozen=True)
class Results:
    """The results of M images, in the order of their source.

    names: of the images. labels: int32 (M,), the net's numbers. losses: float64 (M,), cross entropy of each. classes:
    int32 (M, top), the likeliest first; probabilities: float64 (M, top). For examples without classes top is 0, and the
    losses are the recipe's own, each the mean of its batch. skipped: index and reason of the images that could not be
    decoded. seconds: from the first image to the last. target, versions: of what computed this. outputs: for arrays,
    the shapes of the net's outputs, which are in a file of their own.
    """

    names: list[str]
    labels: np.ndarray
    losses: np.ndarray
    classes: np.ndarray
    probabilities: np.ndarray
    skipped: list[tuple[int, str]]
    seconds: float
    target: str
    versions: dict[str, str]
    outputs: dict[str, list[int]] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Store the results for the process that asked for them."""
        arrays = {"labels": self.labels, "losses": self.losses, "classes": self.classes}
        np.savez(folder / ARRAYS, probabilities=self.probabilities, **arrays)
        facts = {name: getattr(self, name) for name in FACTS_OF}
        (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Results:
        """Read what write() stored."""
        with np.load(folder / ARRAYS, allow_pickle=False) as stored:
            arrays: dict[str, Any] = {name: stored[name] for name in stored.files}
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        facts["skipped"] = [(name, why) for name, why in facts["skipped"]]
        return cls(**arrays, **facts)


class Scores:
    """Collects the logits of one batch after another and keeps what Results holds of them."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.names: list[str] = []
        self._parts: list[tuple[np.ndarray, ...]] = []

    def add(self, names: list[str], labels: np.ndarray, logits: np.ndarray) -> None:
        """Take in a batch: logits float (N, K) and labels int (N,), in float64 from here on.

        Raises BadInput that names the first image whose logits are not finite, or whose class the net does not have.
        """
        beyond = np.flatnonzero(labels >= logits.shape[1])
        if len(beyond):
            image, label = names[beyond[0]], labels[beyond[0]]
            raise BadInput(f"{image} is of class {label}, and the net has the classes 0 to {logits.shape[1] - 1}")
        wrong = np.flatnonzero(~np.isfinite(logits).all(axis=1))
        if len(wrong):
            raise BadInput(f"the net's output for {names[wrong[0]]} is not finite: its weights are unusable")
        logs = log_softmax(logits)
        classes = np.argsort(-logits, axis=1, kind="stable")[:, : self.top].astype(np.int32)
        probabilities = np.exp(np.take_along_axis(logs, classes, axis=1))
        losses = -np.take_along_axis(logs, labels.astype(np.int64)[:, None], axis=1)[:, 0]
        self.names += names
        self._parts.append((labels.astype(np.int32), losses, classes, probabilities))

    def add_loss(self, names: list[str], loss: float) -> None:
        """Take in the mean loss of a batch of examples without classes. Raises BadInput if it is not finite."""
        if not np.isfinite(loss):
            raise BadInput(
                f"the loss of {names[0]} and the {len(names) - 1} after it is {loss}: the weights are unusable"
            )
        none, count = np.empty((len(names), 0)), len(names)
        self.names += names
        self._parts.append((np.zeros(count, np.int32), np.full(count, loss), none.astype(np.int32), none))

    def results(self, skipped: list[tuple[int, str]], seconds: float, target: str, versions: dict[str, str]) -> Results:
        """Everything that was added; raises BadInput where nothing was."""
        if not self._parts:
            first = f"; {skipped[0][1]}" if skipped else ""
            raise BadInput(f"not one of the images could be used{first}")
        labels, losses, classes, probabilities = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        return Results(self.names, labels, losses, classes, probabilities, skipped, seconds, target, versions)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """The logarithm of the softmax over the last axis, in float64."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    logs: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logs


TOP = 5


class Metrics(NamedTuple):
    """loss: mean cross entropy of the plain labels. top1, top5: shares, 0 to 1, top5 of all classes if fewer; None for
    a net without classes, whose loss is the recipe's own."""

    loss: float
    top1: float | None
    top5: float | None


class Tally:
    """Adds up batches. The loss is the plain cross entropy, whatever the training loss, as in `msmigrate eval`."""

    def __init__(self) -> None:
        self.sums = np.zeros(4)  # loss, hits among one, hits among five, images
        self._by_class = True

    def add(self, logits: np.ndarray, labels: np.ndarray) -> None:
        """Take in logits, float (N, K), and labels, int (N,); equal logits rank by class number.

        An image with a logit that is not finite counts as wrong, and its loss makes the mean nan.
        """
        rows = np.arange(len(labels))
        with np.errstate(invalid="ignore"):
            own = logits[rows, labels][:, None]
            before = (logits > own) | ((logits == own) & (np.arange(logits.shape[1]) < labels[:, None]))
            losses = -log_softmax(logits)[rows, labels]
        rank = np.where(np.isfinite(logits).all(axis=1), before.sum(axis=1), logits.shape[1])
        top = min(TOP, logits.shape[1])
        self.sums += [losses.sum(), (rank < 1).sum(), (rank < top).sum(), len(labels)]

    def add_loss(self, loss: float, count: int) -> None:
        """Take in the mean loss of `count` examples without classes."""
        self._by_class = False
        self.sums += [loss * count, 0.0, 0.0, count]

    def metrics(self) -> Metrics:
        """The metrics over everything that was added, which must be at least one image."""
        loss, top1, top5, count = self.sums
        if not self._by_class:
            return Metrics(float(loss / count), None, None)
        return Metrics(float(loss / count), float(top1 / count), float(top5 / count))
