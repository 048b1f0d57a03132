"""torchvision's roi_align: each box's samples of a feature map, as products with matrices that hold their weights."""

from __future__ import annotations

from collections.abc import Sequence

from mindspore import Tensor, ops
from mindspore import dtype as mstype


def roi_align(
    input: Tensor,
    boxes: Tensor | Sequence[Tensor],
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Tensor:
    """Means of bilinear samples in the parts of each box: (K, C, height, width) of `output_size` for K boxes.

    input: (N, C, H, W). boxes: (K, 5) with the image's number in front, or one (K, 4) for every image. Boxes get no
    gradient, as in torch. A sampling_ratio below 1 takes as many samples as a part has pixels, at most H by W of them.
    """
    high, wide = (output_size, output_size) if isinstance(output_size, int) else (output_size[0], output_size[1])
    count, channels, height, width = input.shape
    images = ops.permute(input.astype(mstype.float32), (0, 2, 3, 1))
    lists = tuple(boxes) if isinstance(boxes, (tuple, list)) else (boxes,)
    found: tuple[Tensor, ...] = ()
    for number in range(len(lists)):
        rois = ops.stop_gradient(lists[number]).astype(mstype.float32)
        total = rois.shape[0]
        if total == 0:
            continue
        corner = rois[:, -4:] * spatial_scale - (0.5 if aligned else 0.0)
        down = _weights(corner[:, 1], corner[:, 3], high, height, sampling_ratio, aligned)
        across = _weights(corner[:, 0], corner[:, 2], wide, width, sampling_ratio, aligned)
        if isinstance(boxes, (tuple, list)):
            one = ops.narrow(images, 0, number, 1)
        else:  # which image a box lies in is a value, so that the other images are given no weight
            one = images
            own = (ops.unsqueeze(rois[:, 0], 1) == ops.arange(count).astype(mstype.float32)).astype(mstype.float32)
            down = ops.unsqueeze(down, 2) * own.reshape((total, 1, count, 1))
        rows = ops.matmul(down.reshape((total * high, -1)), one.reshape((-1, width * channels)))
        parts = ops.matmul(ops.unsqueeze(across, 1), rows.reshape((total, high, width, channels)))
        found = (*found, ops.permute(parts, (0, 3, 1, 2)))
    if len(found) == 0:
        return ops.zeros((0, channels, high, wide), input.dtype)
    return (ops.cat(found) if len(found) > 1 else found[0]).astype(input.dtype)


def _weights(start: Tensor, end: Tensor, parts: int, length: int, sampling_ratio: int, aligned: bool) -> Tensor:
    """The weight (K, parts, length) of each place along a side in each part of a box's side from start to end (K,)."""
    side = end - start if aligned else ops.maximum(end - start, ops.ones_like(start))
    part = (side / parts).reshape((-1, 1, 1))
    if sampling_ratio > 0:
        samples, number = sampling_ratio, ops.full_like(part, sampling_ratio)
    else:
        samples, number = length, ops.ceil(part)
    divisor = ops.maximum(number, ops.ones_like(number))
    index = ops.arange(samples).astype(mstype.float32)
    first = start.reshape((-1, 1, 1)) + ops.arange(parts).astype(mstype.float32).reshape((1, -1, 1)) * part
    place = first + (index + 0.5) * part / divisor
    counted = ops.logical_and(index < number, ops.logical_and(place >= -1, place <= length))
    near = ops.unsqueeze(ops.clamp(place, 0, length - 1), -1) - ops.arange(length).astype(mstype.float32)
    weights = ops.relu(1 - ops.abs(near)) * ops.unsqueeze(counted, -1).astype(mstype.float32)
    return ops.sum(weights, 2) / divisor
