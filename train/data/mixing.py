"""Mixup and CutMix of a whole batch with itself in reverse order, and the soft targets that come with it.

The rule is that of timm.data.Mixup in batch mode, drawn in its order and computed in its arithmetic, so the same draws
give the same bits. One thing is wider here: timm refuses a batch of an odd number, and here its middle image is mixed
with itself, for the last batch of an epoch may be one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..recipe import Mixup

Box = tuple[int, int, int, int]  # top, bottom, left, right; bottom and right are outside


@dataclass(frozen=True)
class Mix:
    """What was drawn for one batch.

    use: whether it is mixed at all. lam: the share of a batch's own images and labels; with a box the share of the
    image's area that the box leaves. box: what CutMix pastes from the reversed batch; None: mixup.
    """

    use: bool
    lam: float = 1.0
    box: Box | None = None


def draw_mix(mixup: Mixup, generator: np.random.Generator, shape: tuple[int, ...]) -> Mix:
    """Draw how a batch of `shape` (N, C, H, W) is mixed; the generator is `draws.batch_generator`'s."""
    if not generator.random() < mixup.prob:
        return Mix(False)
    cut = mixup.cutmix_alpha > 0 and (mixup.mixup_alpha == 0 or bool(generator.random() < mixup.switch_prob))
    alpha = mixup.cutmix_alpha if cut else mixup.mixup_alpha
    lam = float(generator.beta(alpha, alpha))
    if lam == 1.0:
        return Mix(False)
    if not cut:
        return Mix(True, lam)
    box = _box(generator, shape, lam)
    top, bottom, left, right = box
    return Mix(True, 1.0 - (bottom - top) * (right - left) / float(shape[-2] * shape[-1]), box)


def _box(generator: np.random.Generator, shape: tuple[int, ...], lam: float) -> Box:
    """A box of 1 - lam of the area around a centre drawn anywhere, cut off at the borders."""
    height, width = shape[-2:]
    ratio = np.sqrt(1 - lam)
    h, w = int(height * ratio), int(width * ratio)
    y, x = int(generator.integers(0, height)), int(generator.integers(0, width))
    return (
        min(max(y - h // 2, 0), height),
        min(max(y + (h + 1) // 2, 0), height),
        min(max(x - w // 2, 0), width),
        min(max(x + (w + 1) // 2, 0), width),
    )


def mix_images(images: np.ndarray, mix: Mix) -> np.ndarray:
    """The mixed batch, of the dtype of `images` (N, C, H, W), which stay as they are."""
    if not mix.use:
        return images
    if mix.box is not None:
        top, bottom, left, right = mix.box
        mixed = images.copy()
        mixed[:, :, top:bottom, left:right] = images[::-1, :, top:bottom, left:right]
        return mixed
    mixed = images * images.dtype.type(mix.lam)
    mixed += images[::-1] * images.dtype.type(1.0 - mix.lam)
    return mixed


def soft_targets(labels: np.ndarray, mix: Mix, num_classes: int, smoothing: float) -> np.ndarray:
    """float32 (N, num_classes): the smoothed one-hot rows of `labels` (N,), mixed as the images are."""
    off = smoothing / num_classes
    rows = np.full((len(labels), num_classes), off, dtype=np.float32)
    rows[np.arange(len(labels)), labels] = 1.0 - smoothing + off
    return rows * np.float32(mix.lam) + rows[::-1] * np.float32(1.0 - mix.lam)
