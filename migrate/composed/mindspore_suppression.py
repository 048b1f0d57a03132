"""Which of many boxes stay: torchvision's nms and what goes with it; the length of the result depends on values."""

from __future__ import annotations

from mindspore import Tensor, ops
from mindspore import dtype as mstype

BY_CLASS = 4000  # from so many numbers on torchvision compares boxes of one class, below it moves classes apart


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The places (int64) of the boxes (K, 4) that overlap no better one that stays by more than the threshold, best
    first."""
    if boxes.shape[0] == 0:
        return ops.zeros((0,), mstype.int64)
    order = ops.argsort(scores, -1, True)
    ours = ops.gather(boxes, order, 0)
    return _left(order, _overlap(ours) > iou_threshold)


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """nms among the boxes of each class `idxs` (K,) alone."""
    if boxes.shape[0] == 0:
        return ops.zeros((0,), mstype.int64)
    if boxes.shape[0] * 4 <= BY_CLASS:
        apart = idxs.astype(boxes.dtype) * (boxes.max() + 1)
        return nms(boxes + ops.unsqueeze(apart, 1), scores, iou_threshold)
    order = ops.argsort(scores, -1, True)
    ours, classes = ops.gather(boxes, order, 0), ops.gather(idxs, order, 0)
    alike = ops.unsqueeze(classes, 0) == ops.unsqueeze(classes, 1)
    return _left(order, ops.logical_and(_overlap(ours) > iou_threshold, alike))


def _overlap(boxes: Tensor) -> Tensor:
    """The share (K, K) that pairs of boxes have in common; coordinate by coordinate, which is faster on the CPU."""
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    shared = _common(boxes[:, 0], boxes[:, 2]) * _common(boxes[:, 1], boxes[:, 3])
    return shared / (ops.unsqueeze(areas, 1) + ops.unsqueeze(areas, 0) - shared)


def _common(start: Tensor, end: Tensor) -> Tensor:
    """How long pairs of sides (K,) lie over each other: (K, K)."""
    shape = (start.shape[0], start.shape[0])
    near = ops.maximum(ops.broadcast_to(ops.unsqueeze(start, 1), shape), ops.broadcast_to(start, shape))
    far = ops.minimum(ops.broadcast_to(ops.unsqueeze(end, 1), shape), ops.broadcast_to(end, shape))
    return ops.relu(far - near)


def _left(order: Tensor, over: Tensor) -> Tensor:
    """Those of `order` that stay, where over[i, j] says that i hides j.

    What is hidden by a hidden box is not: the answer is asked again with those that stayed, until it is the same. After
    n rounds the first n are right, and mostly a few rounds do.
    """
    number = over.shape[0]
    places = ops.arange(number)
    hides = ops.logical_and(over, ops.unsqueeze(places, 1) < ops.unsqueeze(places, 0)).astype(mstype.float32)
    before = ops.zeros((number,), mstype.bool_)
    stays = ops.ones((number,), mstype.bool_)
    while ops.not_equal(before, stays).any():
        before = stays
        stays = ops.matmul(before.astype(mstype.float32), hides) == 0
    return ops.masked_select(order.astype(mstype.int64), stays)


def remove_small_boxes(boxes: Tensor, min_size: float) -> Tensor:
    """The places (int64) of the boxes (K, 4) whose sides are both at least this long."""
    wide, high = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    large = ops.logical_and(wide >= min_size, high >= min_size)
    return ops.masked_select(ops.arange(boxes.shape[0]).astype(mstype.int64), large)
