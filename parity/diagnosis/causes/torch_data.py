"""Why batches differ: torch's pipeline with one thing changed, over the images of the step; and how it mixes them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from ....mappings import table
from ....training.data import random_draws
from ....training.data.random_draws import Key, Mix, apply_random
from ....training.data.sample import Sample, decode
from ....training.recipe.part_arguments import is_random, short
from ....training.recipe.schema import Part
from ...record.batches import classes, step_keys, step_mix, step_samples
from ...result import Cause, Finding
from ...tensor_verdict import Verdict
from ...trace import Entry, sample_positions
from ..context import Context, key_of
from ..differences import ChannelMap, OtherBatch, affine, listed, order, pattern, read_normalisation, shifted
from ..hypotheses import Hypothesis, Outcome, Prediction, cause, caused, first, judge_prediction, or_none

GREY = 1.05 / 255  # two libraries that round the same resized pixel are at most one grey level apart
MODES = ("nearest", "bilinear", "bicubic", "lanczos", "box", "hamming")
Drawn = Mapping[str, Any]
Change = Callable[[dict[str, Any]], dict[str, Any]]
Partner = Callable[[np.ndarray], np.ndarray]
PARTNERS: dict[str, Partner] = {
    "each is mixed with the one before it, not with the batch in reverse": lambda batch: np.roll(batch, 1, 0),
    "each is mixed with the one after it, not with the batch in reverse": lambda batch: np.roll(batch, -1, 0),
    "each is mixed with itself": lambda batch: batch,
}


def explain(context: Context) -> list[Cause]:
    """The causes of what failed in stage data."""
    if context.options.pair is not None:
        return []
    causes: list[Cause] = []
    for name, explained in (("labels", _labels), ("images", _images)):
        found = next((f for f in context.failed("data") if f.name == name), None)
        causes += explained(context, found) if found is not None else []
    return causes + _mixing(context)


def _labels(context: Context, wrong: Finding) -> list[Cause]:
    key, of_torch = key_of(wrong), context.traces.alone[1]
    entry, expected = context.mindspore.entries.get(key), of_torch.entries.get(key)
    if entry is None or expected is None or entry.shape != expected.shape:
        return [cause("data", "labels", None, wrong.why)]
    y, x = context.mindspore_values(key).astype(np.int64), of_torch.array(key).astype(np.int64)
    every = [e for e in of_torch.select("data") if e.name == "labels"]
    same = [e.part for e in every if np.array_equal(of_torch.array(e.key), y)]
    off, classes, fix = np.unique(y - x), context.inputs.classes, ""
    if len(same) == 1 and same[0] != wrong.part:
        fault, text = "randperm-fixed", f"{wrong.part} gets the samples of step {same[0].removeprefix('step')} again"
    elif len(np.unique(off % classes)) == 1:
        fault, fix = "labels-shifted", "labels counted from 0, in torch's order"
        text = f"every label is {int((y - x)[0] % classes):+d}, modulo the {classes} classes"
        if len(off) == 1:
            text = f"the classes are counted from {int(off[0])} more than in torch"
    elif np.array_equal(np.sort(x), np.sort(y)):
        fault, text = "shuffle-default", "the samples come in another order"
    elif len(set(zip(x.tolist(), y.tolist(), strict=True))) == len(np.unique(x)) == len(np.unique(y)):
        fault, text = "labels-permuted", "the classes have other numbers: folders were counted in another order"
    else:
        fault, text = "", "nothing known reproduces the labels"
    shown = f"torch {x[:8].tolist()}, MindSpore {y[:8].tolist()} in {wrong.part}"
    return [cause("data", "labels", fault or None, text, shown, fix=fix)]


def _images(context: Context, wrong: Finding) -> list[Cause]:
    key, of_torch = key_of(wrong), context.traces.alone[0]
    entry = context.mindspore.entries.get(key)
    if entry is None or entry.nonfinite or len(entry.shape) != 4:
        return [cause("data", "images", None, wrong.why)]
    step, images = int(wrong.part.removeprefix("step")) - 1, context.mindspore_values(key)
    for other in range(min(step, 4)):
        earlier = ("data", f"step{other + 1}", "images", 0)
        if earlier in of_torch.entries and of_torch.array(earlier).size == images.size:
            found = judge_prediction(images, context.unchanged(earlier))
            if found.verdict is not Verdict.FAIL:
                text = f"{wrong.part} gets the images of step {other + 1} again"
                evidence = f"{found.ratio:.2g} times the noise from those"
                return [cause("data", "images", "randperm-fixed", text, evidence, found.ratio, wrong.ratio)]
    return PipelineSubject(context, step, images, entry.shape).causes()


class PipelineSubject:
    """One batch of MindSpore's images, for comparison with what other pipelines make of its samples."""

    def __init__(self, context: Context, step: int, images: np.ndarray, shape: tuple[int, ...]) -> None:
        recipe, size = context.recipe, int(np.prod(shape, dtype=np.int64))
        self.parts = [Part.model_validate(part) for part in recipe.data.transforms]
        self.samples, self.keys = step_samples(recipe, step + 1)[step], step_keys(recipe, step)
        self.positions = None if images.size == size else sample_positions(size, images.size)
        self.seen = OtherBatch.of(images, shape, self.positions)
        normalize = [part for part in self.parts if short(part) == "Normalize"]
        args = table.arguments("Normalize", normalize[0].args) if normalize else {}
        self.mean, self.std = args.get("mean", [0.0] * 64), args.get("std", [1.0] * 64)
        self.before: float | None = None  # the ratio by torch's own pipeline, None where its images have another size

    def made(self, pipeline: Pipeline) -> np.ndarray | None:
        """The batch that a pipeline makes, None where it cannot or has another size."""

        def batch() -> np.ndarray:
            from ....training.data.torch_pipeline import exact_transforms  # not above: it brings torchvision

            with exact_transforms(torch.float64):
                return pipeline.batch(self.samples, self.keys)

        try:
            found = or_none(batch)
        except (OSError, RuntimeError, AssertionError):
            return None
        return found if found is not None and found.shape == self.seen.shape else None

    def outcome(self, batch: np.ndarray) -> Outcome:
        """MindSpore's images judged against a batch."""
        return Outcome.of({"images": judge_prediction(self.seen.values, Prediction.rounded(self._recorded(batch)))})

    def _recorded(self, batch: np.ndarray) -> np.ndarray:
        flat = batch.reshape(-1)
        return flat if self.positions is None else flat[self.positions]

    def causes(self) -> list[Cause]:
        """The causes of the batch's difference."""
        of_torch = self.made(Pipeline(self.parts))
        if of_torch is None:
            shape = f"shape {list(self.seen.shape)}"
            return self._tried() or [cause("data", "images", None, f"nothing known gives images of {shape}")]
        self.before = self.outcome(of_torch).worst
        return self._read(of_torch) or self._tried() or [self._unexplained(of_torch)]

    def _cause(self, place: str, fault: str | None, text: str, evidence: str, ratio: float | None = 0.0) -> Cause:
        return cause("data", place, fault, text, evidence, ratio, self.before)

    def _read(self, of_torch: np.ndarray) -> list[Cause]:
        """Causes that the numbers themselves show."""
        found = order(of_torch, self.seen)
        if found is not None and found != sorted(found):
            evidence = f"sample by sample they are torch's number {', '.join(str(i + 1) for i in found[:8])}"
            return [self._cause("images", "shuffle-default", "the images come in another order", evidence)]
        channels = affine(of_torch, self.seen)
        if channels is not None:
            return self._normalised(channels)
        turned = {"mirrored": of_torch[..., ::-1], "upside down": of_torch[..., ::-1, :]}
        if of_torch.shape[-1] == of_torch.shape[-2]:
            turned["transposed, rows for columns"] = of_torch.swapaxes(-1, -2)
        for text, other in turned.items():
            if self.outcome(other).reproduces:
                return [self._cause("images", "images-turned", f"the images are {text}", "equal to torch's then")]
        moved = shifted(of_torch, self.seen)
        if moved is not None:
            text = f"the crop is off by {moved[0]:+d} rows and {moved[1]:+d} columns"
            evidence = "except at the border, the images moved by that equal torch's"
            where = next((short(p) for p in self.parts if short(p) in ("CenterCrop", "RandomCrop")), "images")
            return [self._cause(where, "centercrop-rounding", text, evidence)]
        return []

    def _normalised(self, found: ChannelMap) -> list[Cause]:
        reading = read_normalisation(found, self.mean[: len(found.scale)], self.std[: len(found.scale)])
        where = "channels" if reading.fault in ("bgr", "channels-permuted") else "Normalize"
        evidence = (
            f"channel by channel MindSpore's images are {listed(found.scale)} times torch's plus {listed(found.offset)}"
        )
        fix = f"mean={list(self.mean)}, std={list(self.std)}" if reading.fault.startswith("normalize-") else ""
        return [cause("data", where, reading.fault, reading.text, evidence, 0.0, self.before or 0.0, fix)]

    def _tried(self) -> list[Cause]:
        """Causes by trying pipelines with one thing changed, and perhaps another normalisation as well."""
        close: tuple[DataHypothesis, float] | None = None
        as_it_is = "as it is it has another size" if self.before is None else f"as it is {self.before:.3g}"
        for one in hypotheses(self.parts):
            made = self.made(one.change)
            if made is None:
                continue
            found = self.outcome(made)
            if found.reproduces:
                evidence = f"torchvision's pipeline changed like this: {found.worst:.2g} times the noise; {as_it_is}"
                return [self._cause(one.place, one.fault, one.text, evidence, found.worst)]
            both = affine(made, self.seen)
            if both is not None:
                evidence = "with both, torchvision's pipeline gives MindSpore's images"
                return [self._cause(one.place, one.fault, one.text, evidence), *self._normalised(both)]
            off = np.abs(self._recorded(made).astype(np.float64) - self.seen.values)
            grey = GREY / float(np.min(self.std[: made.shape[1]]))
            if off.max() <= grey and (close is None or off.mean() < close[1]):
                close = (one, float(off.mean()))
        if close is None or self.before is None:
            return []
        evidence = f"torchvision's pipeline changed like this agrees to one grey level in each pixel; {as_it_is}"
        return [self._cause(close[0].place, close[0].fault, close[0].text, evidence, None)]

    def _unexplained(self, of_torch: np.ndarray) -> Cause:
        found = pattern(self._recorded(of_torch), self.seen.values)
        off = np.abs(self._recorded(of_torch) - self.seen.values) > 1e-3 * self.seen.spread
        evidence = f"{found}; {float(off.mean()):.1%} of the pixels differ"
        return self._cause("images", None, "nothing known reproduces the images", evidence, None)


@dataclass(frozen=True)
class Pipeline:
    """A recipe's transforms, and how one of them is done otherwise.

    done: index of a transform -> a function of a PIL image in its place; drawn: index of a random one -> a change of
    its draws; key: a change of each image's key.
    """

    parts: Sequence[Part]
    done: Mapping[int, Callable[[Any], Any]] = field(default_factory=dict)
    drawn: Mapping[int, Change] = field(default_factory=dict)
    key: Callable[[Key], Key] = lambda key: key

    def batch(self, samples: Sequence[Sample], keys: Sequence[Key]) -> np.ndarray:
        """The images (N, C, H, W) of the samples, in torch's default dtype."""
        from ....training.data import torch_pipeline  # not above: it brings torchvision

        steps = list(torch_pipeline.pipeline(self.parts))
        return np.stack([np.asarray(self._one(sample, steps, key)) for sample, key in zip(samples, keys, strict=True)])

    def _one(self, sample: Sample, steps: Sequence[Any], key: Key) -> Any:
        image, generator = decode(sample), random_draws.generator(self.key(key))
        for i, step in enumerate(steps):
            if i in self.done:
                image = self.done[i](image)
            elif isinstance(step, Part):
                change = self.drawn.get(i, dict)
                image = apply_random(step, partial(_applied, change), image, generator)
            else:
                image = step(image)
        return image


def _applied(change: Change, part: Part, drawn: Drawn, image: Any) -> Any:
    from ....training.data import torch_pipeline

    return torch_pipeline.apply(part, change(dict(drawn)), image)


def _set_off(key: str, by: int, drawn: dict[str, Any]) -> dict[str, Any]:
    return {**drawn, key: drawn[key] + by}


DataHypothesis = Hypothesis[Pipeline]


def hypotheses(parts: Sequence[Part]) -> Iterator[DataHypothesis]:
    """All hypotheses on a list of transforms, the likelier first."""
    for i, part in enumerate(parts):
        name = short(part)
        if name == "Resize":
            yield from _resized(parts, i)
        if name == "CenterCrop":
            yield from _cropped(parts, i)
        if is_random(part):
            yield from _drawn(parts, i)
        yield from _arguments(parts, i)
        if name not in ("ToTensor", "Normalize"):
            rest = Pipeline([*parts[:i], *parts[i + 1 :]])
            yield Hypothesis("transform-missing", f"{name} is left out", rest, place=name)
    if any(is_random(part) for part in parts):
        for text, change in {
            "each image gets the draws of the next": lambda k: (k[0], k[1], k[2] + 1),
            "each image gets the draws of the one before": lambda k: (k[0], k[1], max(k[2] - 1, 0)),
            "the draws are of another epoch": lambda k: (k[0], k[1] + 1, k[2]),
            "the draws are of another seed": lambda k: (k[0] + 1, k[1], k[2]),
            "every image gets the draws of the first": lambda k: (k[0], k[1], 0),
        }.items():
            yield Hypothesis("draws-of-another-key", text, Pipeline(parts, key=change), place="random transforms")


def _changed(parts: Sequence[Part], i: int, **args: Any) -> list[Part]:
    made = parts[i].model_copy(update={"args": {**parts[i].args, **args}})
    return [*parts[:i], made, *parts[i + 1 :]]


def _resized(parts: Sequence[Part], i: int) -> Iterator[DataHypothesis]:
    args = table.arguments("Resize", parts[i].args)
    given = str(args.get("interpolation", "bilinear")).rpartition(".")[2].lower()
    size = args["size"]
    for mode in ("bilinear", "bicubic"):
        text = f"resized ({mode}) without the smoothing that PIL does when it shrinks an image"
        done = {i: partial(_unsmoothed, size=size, mode=mode)}
        yield Hypothesis("resize-antialias", text, Pipeline(parts, done), place="Resize")
    for mode in MODES:
        if mode != given:
            fault = "resize-antialias-enum" if mode == "lanczos" else "resize-interpolation"
            text = f"resized by {mode} where the recipe has {given}"
            yield Hypothesis(fault, text, Pipeline(_changed(parts, i, interpolation=mode)), place="Resize")
    others = {}
    for by in (1, -1):
        other = size + by if isinstance(size, int) else [s + by for s in size]
        others[f"resized to {other} where the recipe has {size}"] = other
    if isinstance(size, int):
        others[f"resized to {size}×{size}, not the shorter side to {size}"] = [size, size]
    for text, other in others.items():
        yield Hypothesis("transform-argument", text, Pipeline(_changed(parts, i, size=other)), place="Resize")


def _unsmoothed(image: Any, size: Any, mode: str) -> Any:
    """A PIL image resized as arrays are: no antialiasing, half-pixel centres, rounded to whole grey levels."""
    width, height = image.size
    if isinstance(size, int) or len(size) == 1:
        least = size if isinstance(size, int) else size[0]
        big = int(least * max(width, height) / min(width, height))
        shape = (least, big) if height < width else (big, least)
    else:
        shape = (size[0], size[1])
    pixels = np.asarray(image)
    x = torch.from_numpy(pixels.copy()).double()
    x = x.permute(2, 0, 1)[None] if pixels.ndim == 3 else x[None, None]
    y = F.interpolate(x, size=shape, mode=mode, align_corners=False, antialias=False)[0].round().clamp(0, 255)
    back = (y.permute(1, 2, 0) if pixels.ndim == 3 else y[0]).byte().numpy()
    return Image.fromarray(back)


def _cropped(parts: Sequence[Part], i: int) -> Iterator[DataHypothesis]:
    size = parts[i].args["size"]
    shape = (size, size) if isinstance(size, int) else (size[0], size[-1])
    for down, right, how in itertools.product((0, -1, 1), (0, -1, 1), ("floor", "ceil")):
        where = f"{down:+d} rows and {right:+d} columns" if down or right else f"an odd margin's {how}"
        done = {i: partial(_cut, shape=shape, down=down, right=right, how=how)}
        text = f"the centre crop is off by {where}"
        yield Hypothesis("centercrop-rounding", text, Pipeline(parts, done), place="CenterCrop")


def _cut(image: Any, shape: tuple[int, int], down: int, right: int, how: str) -> Any:
    height, width = shape
    up = (lambda n: -(-n // 2)) if how == "ceil" else (lambda n: n // 2)
    left, top = up(image.size[0] - width) + right, up(image.size[1] - height) + down
    return image.crop((left, top, left + width, top + height))


def _drawn(parts: Sequence[Part], i: int) -> Iterator[DataHypothesis]:
    name = short(parts[i])
    changes: dict[str, Change] = {}
    if "Flip" in name:
        changes = {"never flips": lambda d: {**d, "flip": False}, "always flips": lambda d: {**d, "flip": True}}
        changes["flips where it should not"] = lambda d: {**d, "flip": not d["flip"]}
    if "Crop" in name:
        for key in ("top", "left", "width", "height"):
            for by in (1, -1):
                changes[f"has its {key} off by {by:+d}"] = partial(_set_off, key, by)
        changes["has its height and width exchanged"] = lambda d: {**d, "height": d["width"], "width": d["height"]}
    if name == "RandomErasing":
        changes["never erases"] = lambda d: {**d, "box": None}
        changes["erases a box with height and width exchanged"] = lambda d: {
            **d,
            "box": d["box"] and (*d["box"][:2], d["box"][3], d["box"][2]),
        }
    if name == "RandAugment":
        changes["does nothing"] = lambda d: {**d, "ops": []}
        changes["has its magnitudes negated"] = lambda d: {**d, "ops": [(op, -m) for op, m in d["ops"]]}
    if name == "ColorJitter":
        changes["jitters in the order of its arguments"] = lambda d: {**d, "order": sorted(d["order"])}
    for text, change in changes.items():
        yield Hypothesis("random-transform", f"{name} {text}", Pipeline(parts, drawn={i: change}), place=name)


def _arguments(parts: Sequence[Part], i: int) -> Iterator[DataHypothesis]:
    """Each argument at torch's default, and the interpolations."""
    name = short(parts[i])
    if name in ("Resize", "Normalize"):
        return
    for argument in table.row(parts[i].name).arguments:
        key, given = argument.torch, parts[i].args.get(argument.torch)
        others: list[Any] = []
        if key == "interpolation":
            now = str(argument.default if given is None else given).rpartition(".")[2].lower()
            others = [mode for mode in MODES[:3] if mode != now]
        elif given is not None and not argument.required and argument.default not in (None, given):
            others = [argument.default]
        for other in others:
            shown = given if given is not None else str(argument.default)
            text = f"{name}'s {key} is {other} where the recipe has {shown}"
            yield Hypothesis("transform-argument", text, Pipeline(_changed(parts, i, **{key: other})), place=name)


def _mixing(context: Context) -> list[Cause]:
    """The causes of mixed images or soft targets that differ, although the images and labels before mixing agree."""
    causes: list[Cause] = []
    if context.recipe.mixup is None:
        return causes
    entries = context.mindspore.entries
    for name, source, explained in (("mixed images", "images", _mixed_images), ("soft targets", "labels", _targets)):
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
            causes += explained(context, entry, context.mindspore_values(given.key).reshape(given.shape), mix)
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
    yield Hypothesis("mixup-lambda-complement", "λ goes to the other image, 1 - λ to its own", (other, _reverse))
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


def _mixed_images(context: Context, entry: Entry, images: np.ndarray, mix: Mix) -> list[Cause]:
    subject, images = context.mindspore_values(entry.key), images.astype(np.float64)
    usual = _mixed(images, mix, _reverse).reshape(-1)
    before = _outcome(subject, usual)
    if before.reproduces:
        return []  # the input was wrong already
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
    # torch's own targets, apart from the mix: without a mix λ is 1
    before = _outcome(subject, mix.lam * smooth + (1.0 - mix.lam) * smooth[::-1])
    if before.reproduces:
        return []
    unsmoothed, others = _rows(labels, count, 1.0, 0.0), _rows(labels, count, 1.0 - s, s / (count - 1))
    # the right value, and the wrong ones: fault, text, value
    rows = [
        ("", "", smooth),
        ("mixup-targets-smoothing", "the soft targets are not smoothed", unsmoothed),
        ("label-smoothing-k-1", "the smoothing's mass goes to the K - 1 other classes", others),
    ]
    partners = [("", "", _reverse), *(("mixup-partner", text, partner) for text, partner in PARTNERS.items())]
    shares = [
        ("", "", mix.lam),
        ("mixup-targets-not-mixed", "the soft targets are not mixed", 1.0),
        ("mixup-lambda-complement", "λ goes to the other label, 1 - λ to its own", 1.0 - mix.lam),
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
