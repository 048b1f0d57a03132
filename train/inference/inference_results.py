"""What a net made of images: of each its likeliest classes, their probabilities, and the loss of its label."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BadInput

ARRAYS, FACTS = "results.npz", "results.json"


@dataclass(frozen=True)
class Results:
    """The results of M images, in the order of their source.

    names: of the images. labels: int32 (M,), the net's numbers. losses: float64 (M,), cross entropy of each. classes:
    int32 (M, top), the likeliest first; probabilities: float64 (M, top). skipped: index and reason of the images that
    could not be decoded. seconds: from the first image to the last. target, versions: of what computed this.
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

    def write(self, folder: Path) -> None:
        """Store the results for the process that asked for them."""
        arrays = {"labels": self.labels, "losses": self.losses, "classes": self.classes}
        np.savez(folder / ARRAYS, probabilities=self.probabilities, **arrays)
        facts = {name: getattr(self, name) for name in ("names", "skipped", "seconds", "target", "versions")}
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
            raise BadInput(
                f"{image} is of class {label}, and the net tells the classes 0 to {logits.shape[1] - 1} apart"
            )
        wrong = np.flatnonzero(~np.isfinite(logits).all(axis=1))
        if len(wrong):
            raise BadInput(f"the net's output for {names[wrong[0]]} is not finite: its weights are of no use")
        logs = log_softmax(logits)
        classes = np.argsort(-logits, axis=1, kind="stable")[:, : self.top].astype(np.int32)
        probabilities = np.exp(np.take_along_axis(logs, classes, axis=1))
        losses = -np.take_along_axis(logs, labels.astype(np.int64)[:, None], axis=1)[:, 0]
        self.names += names
        self._parts.append((labels.astype(np.int32), losses, classes, probabilities))

    def results(self, skipped: list[tuple[int, str]], seconds: float, target: str, versions: dict[str, str]) -> Results:
        """All that was added; raises BadInput where that is nothing."""
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
