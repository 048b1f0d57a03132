"""torchvision's functions on boxes, which are (N, 4) of left, top, right and bottom; MindSpore 2.10 has none."""

from __future__ import annotations

from collections.abc import Sequence

from mindspore import Tensor, ops


def box_area(boxes: Tensor) -> Tensor:
    """The areas (N,) of boxes."""
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """The area that two boxes share, divided by that which they cover: (N, M) for N boxes and M."""
    shared, union = _shared(boxes1, boxes2)
    return shared / union


def generalized_box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """box_iou, less the part of the box around both that neither covers: (N, M)."""
    shared, union = _shared(boxes1, boxes2)
    corner = ops.minimum(ops.unsqueeze(boxes1[:, :2], 1), ops.unsqueeze(boxes2[:, :2], 0))
    far = ops.maximum(ops.unsqueeze(boxes1[:, 2:], 1), ops.unsqueeze(boxes2[:, 2:], 0))
    sides = ops.relu(far - corner)
    around = sides[:, :, 0] * sides[:, :, 1]
    return shared / union - (around - union) / around


def _shared(boxes1: Tensor, boxes2: Tensor) -> tuple[Tensor, Tensor]:
    """The areas (N, M) that pairs of boxes share, and those that they cover."""
    corner = ops.maximum(ops.unsqueeze(boxes1[:, :2], 1), ops.unsqueeze(boxes2[:, :2], 0))
    far = ops.minimum(ops.unsqueeze(boxes1[:, 2:], 1), ops.unsqueeze(boxes2[:, 2:], 0))
    sides = ops.relu(far - corner)
    shared = sides[:, :, 0] * sides[:, :, 1]
    first = (boxes1[:, 2] - boxes1[:, 0]) * (boxes1[:, 3] - boxes1[:, 1])
    second = (boxes2[:, 2] - boxes2[:, 0]) * (boxes2[:, 3] - boxes2[:, 1])
    return shared, ops.unsqueeze(first, 1) + ops.unsqueeze(second, 0) - shared


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """Boxes (..., 4) from one of the forms xyxy, xywh and cxcywh to another."""
    a, b, c, d = ops.unbind(boxes, -1)
    if in_fmt == out_fmt:
        return boxes
    if in_fmt == "xywh":
        c, d = a + c, b + d
    if in_fmt == "cxcywh":
        a, b, c, d = a - 0.5 * c, b - 0.5 * d, a + 0.5 * c, b + 0.5 * d
    if out_fmt == "xywh":
        c, d = c - a, d - b
    if out_fmt == "cxcywh":
        a, b, c, d = (a + c) / 2, (b + d) / 2, c - a, d - b
    return ops.stack((a, b, c, d), -1)


def clip_boxes_to_image(boxes: Tensor, size: Sequence[int]) -> Tensor:
    """Boxes (..., 4) cut off at the borders of an image of this height and width."""
    height, width = size
    clipped = []
    for place, limit in zip(ops.unbind(boxes, -1), (width, height, width, height)):  # noqa: B905
        # torch gives what lies on the border no gradient, ops.clamp the whole
        inside = ops.where(place > 0, place, ops.zeros_like(place))
        clipped.append(ops.where(inside < limit, inside, limit * ops.ones_like(place)))
    return ops.stack(tuple(clipped), -1)
