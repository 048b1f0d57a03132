"""torchvision's and timm's half of the tests of draws, augmentation and mixing: augment_torch_worker.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from augment_cases import BINS, cases
from draw_cases import DISTRIBUTIONS, IMAGE, SPACES, TIMES, box, numbers_of
from mixing_cases import MIXES, inputs, mixups
from msmigrate.training.data import random_draws, torch_pipeline
from msmigrate.training.data.random_draws import draw_mix
from PIL import Image
from timm.data.mixup import Mixup
from timm.loss import SoftTargetCrossEntropy
from torchvision import transforms

FOLDER = Path(sys.argv[1])
arrays: dict[str, np.ndarray] = {}


def applied() -> None:
    """Every case of augment_cases, through torchvision."""
    for key, part, found, image in cases():
        given = torch.from_numpy(image) if isinstance(image, np.ndarray) else image
        arrays[f"applied/{key}"] = np.asarray(torch_pipeline.apply(part, found, given))


def space() -> None:
    """torchvision's magnitudes."""
    for bins, size in SPACES:
        found = transforms.RandAugment()._augmentation_space(bins, size[::-1])
        arrays[f"space/{bins}/{size}/names"] = np.array(list(found))
        for name, (magnitudes, signed) in found.items():
            arrays[f"space/{bins}/{size}/{name}"] = np.append(magnitudes.numpy().astype(np.float64), signed)


def distributions() -> None:
    """What torchvision draws on its own."""
    torch.manual_seed(3)
    width, height = IMAGE
    picture, tensor = Image.new("RGB", IMAGE), torch.full((3, height, width), 9.0)
    for name, (transform, args) in DISTRIBUTIONS.items():
        made = getattr(transforms, transform)(**args)
        rows = []
        for _ in range(TIMES):
            if transform == "RandomResizedCrop":
                rows.append(box(*made.get_params(picture, made.scale, made.ratio)))
            elif transform == "RandomCrop":
                rows.append(made.get_params(picture, made.size)[:2])
            elif transform == "RandomErasing":
                rows.append(numbers_of(made(tensor).numpy()))
            elif transform == "ColorJitter":
                order, *factors = made.get_params(made.brightness, made.contrast, made.saturation, made.hue)
                rows.append([*order.tolist(), *(-9.0 if factor is None else factor for factor in factors)])
            elif transform == "RandAugment":
                ops: list[tuple[str, float]] = []
                with patch(
                    "torchvision.transforms.autoaugment._apply_op",
                    lambda image, op, amount, ops=ops, **_: ops.append((op, amount)) or image,
                ):
                    made(picture)
                names = list(random_draws.augmentation_space(BINS, IMAGE))
                rows.append([value for op, amount in ops for value in (names.index(op), amount)])
        arrays[f"drawn/{name}"] = np.array(rows, dtype=np.float64)


def mixing() -> None:
    """timm's Mixup with its NumPy draws replaced by ours, and torch's side of our own."""
    for name, mixup, seed in mixups():
        x, y = inputs(name)
        generator = random_draws.batch_generator(seed, 2, 7, 1)
        with (
            patch("numpy.random.rand", lambda g=generator: g.random()),
            patch("numpy.random.beta", lambda a, b, g=generator: g.beta(a, b)),
            patch("numpy.random.randint", lambda low, high, size=None, g=generator: g.integers(low, high)),
        ):
            theirs = Mixup(**mixup.model_dump(), mode="batch", num_classes=MIXES["classes"])
            mixed, targets = theirs(torch.from_numpy(x).clone(), torch.from_numpy(y))
        arrays[f"mixed/{name}/{seed}/images"], arrays[f"mixed/{name}/{seed}/targets"] = mixed.numpy(), targets.numpy()
        mix = draw_mix(mixup, random_draws.batch_generator(seed, 2, 7, 1), x.shape)
        arrays[f"torch/{name}/{seed}/images"] = torch_pipeline.mix_images(torch.from_numpy(x), mix).numpy()
        soft = torch_pipeline.soft_targets(torch.from_numpy(y), mix, MIXES["classes"], mixup.label_smoothing)
        arrays[f"torch/{name}/{seed}/targets"] = soft.numpy()
        logits = torch.from_numpy(np.random.default_rng(seed).normal(size=targets.shape).astype(np.float32))
        arrays[f"loss/{name}/{seed}"] = np.array(
            [torch.nn.CrossEntropyLoss()(logits, targets).item(), SoftTargetCrossEntropy()(logits, targets).item()]
        )


for part in (applied, space, distributions, mixing):
    part()
np.savez(FOLDER / "augment.npz", **arrays)
