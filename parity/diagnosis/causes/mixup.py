"""Why mixed images or soft targets differ, although what was mixed is right: the share, the partner, the smoothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ....training.data.random_draws import Mix
from ...record.batches import classes, step_mix
from ...result import Cause
from ...trace import Entry
from ..context import Context, key_of
from ..differences import pattern
from ..hypotheses import Hypothesis, Outcome, Prediction, cause, caused, first, judge_prediction

Partner = Callable[[np.ndarray], np.ndarray]
PARTNERS: dict[str, Partner] = {
    "each is mixed with the one before it, not with the batch in reverse": lambda batch: np.roll(batch, 1, 0),
    "each is mixed with the one after it, not with the batch in reverse": lambda batch: np.roll(batch, -1, 0),
    "each is mixed with itself": lambda batch: batch,
}


def explain(context: Context) -> list[Cause]:
    """The causes of failed mixed images and soft targets."""
    causes: list[Cause] = []
    if context.recipe.mixup is None:
        return causes
    entries = context.mindspore.entries
    for name, source, explain in (("mixed images", "images", _images), ("soft targets", "labels", _targets)):
        found = next((f for f in context.failed("data") if f.name == name), None)
        if found is None:
            continue
        entry, given = entries.get(key_of(found)), entries.get(("data", found.part, source, 0))
        images = entries.get(("data", found.part, "images", 0))
        step = int(found.part.removeprefix("step")) - 1
        mix = step_mix(context.recipe, step, images.shape) if images is not None else None
        if entry is None or given is None or mix is None or entry.nonfinite or entry.sampled or given.sampled:
            causes.append(cause("data", name, None, found.why or "the tensor cannot be compared"))
        else:
            causes += explain(context, entry, context.mindspore_values(given.key).reshape(given.shape), mix)
    return causes


def _outcome(subject: np.ndarray, exact: np.ndarray) -> Outcome:
    return Outcome.of({"": judge_prediction(subject, Prediction.rounded(exact))})


def _mixed(images: np.ndarray, mix: Mix, partner: Partner) -> np.ndarray:
    other = partner(images)
    if not mix.use:
        return images
    if mix.box is None:
        return np.asarray(mix.lam * images + (1.0 - mix.lam) * other)
    top, bottom, left, right = mix.box
    mixed = images.copy()
    mixed[..., top:bottom, left:right] = other[..., top:bottom, left:right]
    return mixed


def _reverse(batch: np.ndarray) -> np.ndarray:
    return np.asarray(batch[::-1])


def _mixes(mix: Mix, fitted: float) -> Iterator[Hypothesis[tuple[Mix, Partner]]]:
    """Other mixes; fitted: the share that comes closest."""
    other = replace(mix, lam=1.0 - mix.lam)
    yield Hypothesis("mixup-lambda-complement", "λ goes to the other one, 1 - λ to one's own", (other, _reverse))
    yield Hypothesis("mixup-missing", "nothing is mixed", (replace(mix, lam=1.0, box=None), _reverse))
    if mix.box is not None:
        top, bottom, left, right = mix.box
        turned = replace(mix, box=(left, right, top, bottom))
        yield Hypothesis("mixup-box", "the box has rows and columns exchanged", (turned, _reverse))
        yield Hypothesis("mixup-box", "mixed where CutMix was drawn", (replace(mix, box=None), _reverse))
    for text, partner in PARTNERS.items():
        yield Hypothesis("mixup-partner", text, (mix, partner))
        yield Hypothesis("mixup-partner", text, (other, partner))
    text = f"λ is {fitted:.8g} where {mix.lam:.8g} was drawn"
    yield Hypothesis("mixup-lambda", text, (Mix(True, fitted), _reverse))


def _images(context: Context, entry: Entry, images: np.ndarray, mix: Mix) -> list[Cause]:
    subject, images = context.mindspore_values(entry.key), images.astype(np.float64)
    usual = _mixed(images, mix, _reverse).reshape(-1)
    before = _outcome(subject, usual)
    if before.reproduces:
        return []  # what went in was wrong already
    hypotheses = _mixes(mix, _share(subject, images.reshape(-1), _reverse(images).reshape(-1)))
    found = first(hypotheses, lambda change: _outcome(subject, _mixed(images, *change)), before)
    if found is not None:
        ratio = found.outcome.worst
        evidence = f"from MindSpore's own images: {ratio:.2g} times the noise, by the recipe {before.worst:.3g}"
        return [caused("data", "mixed images", found, evidence)]
    text = "nothing known reproduces the mixed images"
    return [cause("data", "mixed images", None, text, str(pattern(usual, subject)), None, before.worst)]


def _share(subject: np.ndarray, own: np.ndarray, other: np.ndarray) -> float:
    """The λ that brings λ·own + (1 - λ)·other closest to the subject."""
    difference = own - other
    square = float(difference @ difference)
    return float((subject.astype(np.float64) - other) @ difference / square) if square else 1.0


def _rows(labels: np.ndarray, count: int, on: float, off: float) -> np.ndarray:
    rows = np.full((len(labels), count), off)
    rows[np.arange(len(labels)), labels.astype(np.int64)] = on
    return rows


def _targets(context: Context, entry: Entry, labels: np.ndarray, mix: Mix) -> list[Cause]:
    assert context.recipe.mixup is not None
    subject, count, s = (
        context.mindspore_values(entry.key),
        classes(context.recipe),
        context.recipe.mixup.label_smoothing,
    )
    if np.any((labels < 0) | (labels >= count)) or entry.shape != (len(labels), count):
        return [cause("data", "soft targets", None, "the targets are not one row of classes for each label")]
    smooth = _rows(labels, count, 1.0 - s + s / count, s / count)
    # torch sets the mix's use aside: without one λ is 1
    before = _outcome(subject, mix.lam * smooth + (1.0 - mix.lam) * smooth[::-1])
    if before.reproduces:
        return []
    unsmoothed, others = _rows(labels, count, 1.0, 0.0), _rows(labels, count, 1.0 - s, s / (count - 1))
    # what is right, and how it may be otherwise: fault, in words, and its value
    rows = [
        ("", "", smooth),
        ("mixup-targets-smoothing", "the soft targets are not smoothed", unsmoothed),
        ("label-smoothing-k-1", "the smoothing's mass goes to the K - 1 other classes", others),
    ]
    partners = [("", "", _reverse), *(("mixup-partner", text, partner) for text, partner in PARTNERS.items())]
    shares = [
        ("", "", mix.lam),
        ("mixup-targets-not-mixed", "the soft targets are not mixed", 1.0),
        ("mixup-lambda-complement", "λ goes to the other one, 1 - λ to one's own", 1.0 - mix.lam),
    ]
    for row, partner, share in itertools.product(rows, partners, shares):
        found = _outcome(subject, share[2] * row[2] + (1.0 - share[2]) * partner[2](row[2]))
        if found.reproduces:
            evidence = f"{found.worst:.2g} times the noise, by the recipe {before.worst:.3g}"
            return [
                cause("data", "soft targets", fault, text, evidence, found.worst, before.worst)
                for fault, text, _ in (row, share, partner)
                if fault
            ]
    return [cause("data", "soft targets", None, "nothing known reproduces the soft targets", "", None, before.worst)]
