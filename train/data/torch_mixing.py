"""torch's side of mixup and CutMix: what was drawn, applied with torch as timm.data.Mixup does in batch mode."""

from __future__ import annotations

import torch

from .mixing import Mix


def mix_images(images: torch.Tensor, mix: Mix) -> torch.Tensor:
    """The mixed batch, of the dtype of `images` (N, C, H, W), which stay as they are."""
    if not mix.use:
        return images
    if mix.box is not None:
        top, bottom, left, right = mix.box
        mixed = images.clone()
        mixed[:, :, top:bottom, left:right] = images.flip(0)[:, :, top:bottom, left:right]
        return mixed
    return images.mul(mix.lam).add_(images.flip(0).mul_(1.0 - mix.lam))


def soft_targets(
    labels: torch.Tensor, mix: Mix, num_classes: int, smoothing: float, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """(N, num_classes) of `dtype`: the smoothed one-hot rows of `labels` (N,), mixed as the images are."""
    off = smoothing / num_classes
    rows = torch.full((len(labels), num_classes), off, dtype=dtype)
    rows.scatter_(1, labels.long().view(-1, 1), 1.0 - smoothing + off)
    return rows * mix.lam + rows.flip(0) * (1.0 - mix.lam)
