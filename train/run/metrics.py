"""How well a net does on labelled images: mean loss, top-1 and top-5, exact over batches and processes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..inference.inference_results import log_softmax

TOP = 5


class Metrics(NamedTuple):
    """loss: mean cross entropy of the plain labels. top1, top5: shares, 0 to 1, top5 of all classes if fewer."""

    loss: float
    top1: float
    top5: float


class Tally:
    """Adds up batches. The loss is the plain cross entropy whatever was trained on, as `msmigrate eval` reports it."""

    def __init__(self) -> None:
        self.sums = np.zeros(4)  # loss, hits among one, hits among five, images

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

    def metrics(self) -> Metrics:
        """Over all that was added, of which there must be at least one image."""
        loss, top1, top5, count = self.sums
        return Metrics(float(loss / count), float(top1 / count), float(top5 / count))
