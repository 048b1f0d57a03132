"""Pipelines that differ from the recipe's in one thing: a transform left out, another argument, another draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from ...mappings import table
from ...training.data import random_draws, torch_pipeline
from ...training.data.random_draws import Key, apply_random
from ...training.data.sample import Sample, decode
from ...training.recipe.schema import Part
from ...training.recipe.transforms import is_random, short

MODES = ("nearest", "bilinear", "bicubic", "lanczos", "box", "hamming")
Drawn = Mapping[str, Any]
Change = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Pipeline:
    """A recipe's transforms, and how one of them is done otherwise.

    done: index of a transform -> a function of a PIL image in its place; drawn: index of a random one -> what becomes
    of its draws; key: what becomes of each image's key.
    """

    parts: Sequence[Part]
    done: Mapping[int, Callable[[Any], Any]] = field(default_factory=dict)
    drawn: Mapping[int, Change] = field(default_factory=dict)
    key: Callable[[Key], Key] = lambda key: key

    def batch(self, samples: Sequence[Sample], keys: Sequence[Key]) -> np.ndarray:
        """The images (N, C, H, W) of the samples, in torch's default dtype."""
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
    return torch_pipeline.apply(part, change(dict(drawn)), image)


def _set_off(key: str, by: int, drawn: dict[str, Any]) -> dict[str, Any]:
    return {**drawn, key: drawn[key] + by}


@dataclass(frozen=True)
class DataHypothesis:
    """One thing that a pipeline may do differently: the fault's id, what it is in words, which transform."""

    fault: str
    text: str
    transform: str
    pipeline: Pipeline
    fix: str = ""


def hypotheses(parts: Sequence[Part]) -> Iterator[DataHypothesis]:
    """Everything that is tried on a list of transforms, the likelier first."""
    for i, part in enumerate(parts):
        name = short(part)
        if name == "Resize":
            yield from _resized(parts, i)
        if name == "CenterCrop":
            yield from _cropped(parts, i)
        if is_random(part):
            yield from _drawn(parts, i)
        yield from _arguments(parts, i)
        rest = [other for k, other in enumerate(parts) if k != i]
        if name not in ("ToTensor", "Normalize"):
            yield DataHypothesis("transform-missing", f"{name} is left out", name, Pipeline(rest))
    if any(is_random(part) for part in parts):
        for text, change in {
            "each image gets the draws of the next": lambda k: (k[0], k[1], k[2] + 1),
            "each image gets the draws of the one before": lambda k: (k[0], k[1], max(k[2] - 1, 0)),
            "the draws are of another epoch": lambda k: (k[0], k[1] + 1, k[2]),
            "the draws are of another seed": lambda k: (k[0] + 1, k[1], k[2]),
            "every image gets the draws of the first": lambda k: (k[0], k[1], 0),
        }.items():
            yield DataHypothesis("draws-of-another-key", text, "random transforms", Pipeline(parts, key=change))


def _changed(parts: Sequence[Part], i: int, **args: Any) -> list[Part]:
    made = parts[i].model_copy(update={"args": {**parts[i].args, **args}})
    return [*parts[:i], made, *parts[i + 1 :]]


def _resized(parts: Sequence[Part], i: int) -> Iterator[DataHypothesis]:
    args = table.arguments("Resize", parts[i].args)
    given = str(args.get("interpolation", "bilinear")).rpartition(".")[2].lower()
    for mode in ("bilinear", "bicubic", "nearest"):
        text = f"resized ({mode}) without the smoothing that PIL does while it shrinks"
        done = {i: lambda image, mode=mode: _unsmoothed(image, args["size"], mode)}
        if mode != "nearest":
            yield DataHypothesis("resize-antialias", text, "Resize", Pipeline(parts, done))
    for mode in MODES:
        if mode != given:
            fault = "resize-antialias-enum" if mode == "lanczos" else "resize-interpolation"
            text = f"resized by {mode} where the recipe has {given}"
            yield DataHypothesis(fault, text, "Resize", Pipeline(_changed(parts, i, interpolation=mode)))
    size = args["size"]
    for by in (1, -1):
        other = size + by if isinstance(size, int) else [s + by for s in size]
        yield DataHypothesis(
            "transform-argument",
            f"resized to {other} where the recipe has {size}",
            "Resize",
            Pipeline(_changed(parts, i, size=other)),
        )
    if isinstance(size, int):
        text = f"resized to {size}×{size}, not the shorter side to {size}"
        yield DataHypothesis("transform-argument", text, "Resize", Pipeline(_changed(parts, i, size=[size, size])))


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
    height, width = (size, size) if isinstance(size, int) else (size[0], size[-1])
    for down in (0, -1, 1):
        for right in (0, -1, 1):
            for rounding in ("floor", "ceil"):
                done = {i: lambda x, d=down, r=right, how=rounding: _cut(x, height, width, d, r, how)}
                where = (
                    f"{down:+d} rows and {right:+d} columns"
                    if (down, right) != (0, 0)
                    else f"an odd margin's {rounding}"
                )
                text = f"the centre crop is off by {where}"
                yield DataHypothesis("centercrop-rounding", text, "CenterCrop", Pipeline(parts, done))


def _cut(image: Any, height: int, width: int, down: int, right: int, how: str) -> Any:
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
        changes["jitters in the order of its arguments"] = lambda d: {
            **d,
            "order": sorted(d["order"]),
        }
    for text, change in changes.items():
        yield DataHypothesis("random-transform", f"{name} {text}", name, Pipeline(parts, drawn={i: change}))


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
            yield DataHypothesis("transform-argument", text, name, Pipeline(_changed(parts, i, **{key: other})))
