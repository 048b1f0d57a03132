"""What the two workers share; it imports no framework. They run as scripts, so it is found beside them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
from msmigrate.training.data.sample import Sample
from msmigrate.training.data.sources import samples

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))
LARGEST_DRAW = 20_000  # values of one parameter that are kept: enough to tell two distributions apart


def damaged_batches() -> dict[str, tuple[list[Sample], list[dict]]]:
    """Case -> a batch and transforms that must be refused."""
    good = samples("photographs", 3, 1, seed=0)[0]
    half = dataclasses.replace(good[1], data=good[1].data[:3000])
    noise = dataclasses.replace(good[1], data=b"not a JPEG at all")
    empty = dataclasses.replace(good[1], data=b"")
    resize, crop, tensor, normalize = CASES["data"]["photographs"]
    return {
        "truncated": ([good[0], half, good[2]], [resize, crop, tensor]),
        "not an image": ([good[0], noise, good[2]], [resize, crop, tensor]),
        "empty": ([good[0], empty, good[2]], [resize, crop, tensor]),
        "several sizes": (good, [resize, tensor]),
        "no array": (good, [resize, crop]),
        "normalize before tensor": (good, [resize, crop, normalize]),
        "not drawn": (good, [{"name": "RandomRotation", "args": {"degrees": 9}}, tensor]),
        "erasing a picture": (good, [resize, crop, {"name": "RandomErasing", "args": {"p": 1.0}}, tensor]),
        "flipping an array": (good, [resize, crop, tensor, {"name": "RandomHorizontalFlip"}]),
        "too small to crop": (good, [resize, {"name": "RandomCrop", "args": {"size": 900}}, tensor]),
        "random": (good, [{"name": "RandomResizedCrop", "args": {"size": 224}}, tensor]),
    }


def keys_for(case: str, epoch: int, count: int) -> list[tuple[int, int, int]] | None:
    """The keys of a batch; None where nothing is to be drawn."""
    return None if case == "random" else [(11, epoch, index) for index in range(count)]


def dump(stem: Path, facts: dict, arrays: dict[str, np.ndarray]) -> None:
    """Write the facts to STEM.json and the arrays to STEM.npz."""
    stem.with_suffix(".json").write_text(json.dumps(facts), encoding="utf-8")
    np.savez(stem.with_suffix(".npz"), **arrays)
