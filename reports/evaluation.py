"""What a net is worth on labelled images: figures over all of them, class by class, and its plainest mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import classification_report, confusion_matrix

from ..train.inference.inference_results import Results

PAIRS = 10  # confused pairs and mistakes that are listed


class ClassReport(NamedTuple):
    """scikit-learn's figures of one class (or of an average over classes); support: how many images are of it."""

    name: str
    precision: float
    recall: float
    f1: float
    support: int


class Pair(NamedTuple):
    """How many images of one class were taken for another, and which share of the class that is."""

    label: str
    predicted: str
    images: int
    share: float


class Mistake(NamedTuple):
    """An image that was taken for something else, and how sure the net was."""

    name: str
    label: str
    predicted: str
    probability: float


@dataclass(frozen=True)
class Evaluation:
    """The figures of one evaluation.

    top1, top5: shares of the images, top5 with fewer classes if the net has no five. loss: mean cross entropy.
    classes: those that an image is of or was taken for; averages: scikit-learn's macro and weighted ones over them.
    matrix: int64 (C, C) over the same classes, a row for each true one.
    """

    images: int
    top1: float
    top5: float
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
    """The figures of these results; names: of all the net's classes.

    A class that was never predicted has precision 0, and one without images recall 0, as scikit-learn's
    zero_division=0 has it.
    """
    labels, predicted = results.labels, results.classes[:, 0]
    hits = results.classes[:, :5] == labels[:, None]
    present = np.union1d(labels, predicted)
    matrix = confusion_matrix(labels, predicted, labels=present)
    # numbers stand for the names: two classes may share one, and one may be called 'accuracy'
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
    """Image by image: its name, its class, what it was taken for, and the likeliest classes with probabilities."""
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
    """The pairs of classes with the most images of one taken for the other, most first."""
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
