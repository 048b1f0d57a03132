"""Why mixed images or soft targets differ, although what was mixed is right: the share, the partner, the smoothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ....training.data.random_draws import Mix
from ....training.recipe.schema import Recipe
from ...compare import Traces
from ...record.batches import classes, step_mix
from ...result import Cause, Finding
from ...trace import Entry
from ...verdict import EPS32, FLOOR_ULPS, Measure, Verdict
from ..differences import pattern
from ..evidence import Prediction, cause, judge_prediction, key_of

FLOOR = 2 * FLOOR_ULPS * EPS32
Partner = Callable[[np.ndarray], np.ndarray]
PARTNERS: dict[str, Partner] = {
    "each is mixed with the one before it, not with the batch in reverse": lambda batch: np.roll(batch, 1, 0),
    "each is mixed with the one after it, not with the batch in reverse": lambda batch: np.roll(batch, -1, 0),
    "each is mixed with itself": lambda batch: batch,
}


def mixing(recipe: Recipe, traces: Traces, wrong: Sequence[Finding]) -> list[Cause]:
    """The causes of failed mixed images and soft targets."""
    causes: list[Cause] = []
    if recipe.mixup is None:
        return causes
    for name, explain in (("mixed images", _images), ("soft targets", _targets)):
        found = next((f for f in wrong if f.name == name), None)
        if found is None:
            continue
        entry = traces.mindspore.entries.get(key_of(found))
        source = ("data", found.part, "images" if name == "mixed images" else "labels", 0)
        given = traces.mindspore.entries.get(source)
        mix = step_mix(recipe, int(found.part.removeprefix("step")) - 1, given.shape) if given else None
        if name == "soft targets":
            images = traces.mindspore.entries.get(("data", found.part, "images", 0))
            mix = step_mix(recipe, int(found.part.removeprefix("step")) - 1, images.shape) if images else None
        if entry is None or given is None or mix is None or entry.nonfinite or entry.sampled or given.sampled:
            causes.append(cause("data", name, None, found.why or "the tensor cannot be compared"))
            continue
        causes += explain(recipe, traces, entry, traces.mindspore.array(source).reshape(given.shape), mix)
    return causes


def _judged(subject: np.ndarray, exact: np.ndarray) -> Measure:
    return judge_prediction(subject, Prediction(exact.reshape(-1), exact.reshape(-1).astype(np.float32)), FLOOR)


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


def _mixes(mix: Mix) -> Iterator[tuple[str, str, Mix]]:
    yield "mixup-lambda-complement", "λ goes to the other one, 1 - λ to one's own", replace(mix, lam=1.0 - mix.lam)
    yield "mixup-missing", "nothing is mixed", replace(mix, lam=1.0, box=None)
    if mix.box is not None:
        top, bottom, left, right = mix.box
        yield "mixup-box", "the box has rows and columns exchanged", replace(mix, box=(left, right, top, bottom))
        yield "mixup-box", "mixed where CutMix was drawn", replace(mix, box=None)


def _images(recipe: Recipe, traces: Traces, entry: Entry, images: np.ndarray, mix: Mix) -> list[Cause]:
    subject, images = traces.mindspore.array(entry.key), images.astype(np.float64)
    before = _judged(subject, _mixed(images, mix, _reverse))
    if before.verdict is not Verdict.FAIL:
        return []  # what went in was wrong already

    def shown(fault: str | None, text: str, ratio: float | None, evidence: str = "") -> list[Cause]:
        said = evidence or f"from MindSpore's own images: {ratio:.2g} times the noise, by the recipe {before.ratio:.3g}"
        return [cause("data", "mixed images", fault, text, said, ratio, before.ratio)]

    for fault, text, other in _mixes(mix):
        found = _judged(subject, _mixed(images, other, _reverse))
        if found.verdict is not Verdict.FAIL:
            return shown(fault, text, found.ratio)
    for text, partner in PARTNERS.items():
        for one in (mix, replace(mix, lam=1.0 - mix.lam)):
            found = _judged(subject, _mixed(images, one, partner))
            if found.verdict is not Verdict.FAIL:
                return shown("mixup-partner", text, found.ratio)
    lam = _share(subject, images.reshape(-1), _reverse(images).reshape(-1))
    found = _judged(subject, _mixed(images, Mix(True, lam), _reverse))
    if found.verdict is not Verdict.FAIL:
        return shown("mixup-lambda", f"λ is {lam:.8g} where {mix.lam:.8g} was drawn", found.ratio)
    exact = _mixed(images, mix, _reverse)
    return shown(None, "nothing known reproduces the mixed images", None, str(pattern(exact.reshape(-1), subject)))


def _share(subject: np.ndarray, own: np.ndarray, other: np.ndarray) -> float:
    """The λ that brings λ·own + (1 - λ)·other closest to the subject."""
    difference = own - other
    square = float(difference @ difference)
    return float((subject.astype(np.float64) - other) @ difference / square) if square else 1.0


def _rows(labels: np.ndarray, count: int, on: float, off: float) -> np.ndarray:
    rows = np.full((len(labels), count), off)
    rows[np.arange(len(labels)), labels.astype(np.int64)] = on
    return rows


def _targets(recipe: Recipe, traces: Traces, entry: Entry, labels: np.ndarray, mix: Mix) -> list[Cause]:
    assert recipe.mixup is not None
    subject, count, s = traces.mindspore.array(entry.key), classes(recipe), recipe.mixup.label_smoothing
    if np.any((labels < 0) | (labels >= count)) or entry.shape != (len(labels), count):
        return [cause("data", "soft targets", None, "the targets are not one row of classes for each label")]
    smooth = _rows(labels, count, 1.0 - s + s / count, s / count)
    # torch sets the mix's use aside: without one λ is 1
    before = _judged(subject, mix.lam * smooth + (1.0 - mix.lam) * smooth[::-1])
    if before.verdict is not Verdict.FAIL:
        return []
    sorts = {
        "": ("", smooth),
        "the soft targets are not smoothed": ("mixup-targets-smoothing", _rows(labels, count, 1.0, 0.0)),
        "the smoothing's mass goes to the K - 1 other classes": (
            "label-smoothing-k-1",
            _rows(labels, count, 1.0 - s, s / (count - 1)),
        ),
    }
    shares = {
        "": ("", mix.lam),
        "the soft targets are not mixed": ("mixup-targets-not-mixed", 1.0),
        "λ goes to the other one, 1 - λ to one's own": ("mixup-lambda-complement", 1.0 - mix.lam),
    }
    partners = {"": ("", _reverse), **{text: ("mixup-partner", p) for text, p in PARTNERS.items()}}
    for a, (first, rows) in sorts.items():
        for c, (third, partner) in partners.items():
            for b, (second, lam) in shares.items():
                found = _judged(subject, lam * rows + (1.0 - lam) * partner(rows))
                if found.verdict is Verdict.FAIL:
                    continue
                evidence = f"{found.ratio:.2g} times the noise, by the recipe {before.ratio:.3g}"
                pairs = [(fault, text) for fault, text in ((first, a), (second, b), (third, c)) if fault]
                return [
                    cause("data", "soft targets", fault, text, evidence, found.ratio, before.ratio)
                    for fault, text in pairs
                ]
    return [cause("data", "soft targets", None, "nothing known reproduces the soft targets", "", None, before.ratio)]
