"""Images: in another size, boxes in them, and the blocks that torchvision and timm add to layers.

Boxes: overlaps, forms, suppression, and the features inside them. Blocks: squeeze and excitation, feed-forward, layer
scale, permute. Sizes: torch.nn.functional.interpolate in all its modes, and pixels between space and channels. A resize
is a product with matrices that hold each output's weights: ops.interpolate has no antialias, is 7 % off in bicubic
mode, and takes a scale_factor in few modes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore import dtype as mstype


def box_area(boxes: Tensor) -> Tensor:
    """The areas (N,) of boxes."""
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """The area that two boxes share, divided by the area that they cover: (N, M) for N and M boxes."""
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
    return shared, ops.unsqueeze(box_area(boxes1), 1) + ops.unsqueeze(box_area(boxes2), 0) - shared


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
        # torch gives values on the border no gradient, ops.clamp gives them all of it
        inside = ops.where(place > 0, place, ops.zeros_like(place))
        clipped.append(ops.where(inside < limit, inside, limit * ops.ones_like(place)))
    return ops.stack(tuple(clipped), -1)


BY_CLASS = 4000  # above this many numbers torchvision compares boxes class by class, else it moves classes apart


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The indices (int64) of the boxes (K, 4) to keep, best first: those that overlap no better kept one by more than
    the threshold."""
    if boxes.shape[0] == 0:
        return ops.zeros((0,), mstype.int64)
    order = ops.argsort(scores, -1, True)
    ours = ops.gather(boxes, order, 0)
    return _left(order, _overlap(ours) > iou_threshold)


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """nms among the boxes of each class, `idxs` (K,), separately."""
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
    areas = box_area(boxes)
    shared = _common(boxes[:, 0], boxes[:, 2]) * _common(boxes[:, 1], boxes[:, 3])
    return shared / (ops.unsqueeze(areas, 1) + ops.unsqueeze(areas, 0) - shared)


def _common(start: Tensor, end: Tensor) -> Tensor:
    """The length over which pairs of sides (K,) overlap: (K, K)."""
    shape = (start.shape[0], start.shape[0])
    near = ops.maximum(ops.broadcast_to(ops.unsqueeze(start, 1), shape), ops.broadcast_to(start, shape))
    far = ops.minimum(ops.broadcast_to(ops.unsqueeze(end, 1), shape), ops.broadcast_to(end, shape))
    return ops.relu(far - near)


def _left(order: Tensor, over: Tensor) -> Tensor:
    """Those of `order` that stay, where over[i, j] says that i hides j.

    A box that only a hidden one hides is not hidden: so this is repeated with the boxes that stayed, until nothing
    changes. After n rounds the first n are right, and mostly a few rounds are enough.
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
    """The indices (int64) of the boxes (K, 4) whose sides are both at least this long."""
    wide, high = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    large = ops.logical_and(wide >= min_size, high >= min_size)
    return ops.masked_select(ops.arange(boxes.shape[0]).astype(mstype.int64), large)


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
        else:  # which image a box is in is only known as a value, so the other images get the weight 0
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


class SEModule(nn.Cell):
    """Squeeze-and-excitation: scales channels by a ReLU and a sigmoid over their means."""

    def __init__(
        self,
        channels: int,
        rd_ratio: float = 0.0625,
        rd_channels: int | None = None,
        rd_divisor: int = 8,
        add_maxpool: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        rounded = int(channels * rd_ratio + rd_divisor / 2) // rd_divisor * rd_divisor
        inner = rd_channels or max(rd_divisor, rounded)
        self.add_maxpool = add_maxpool
        self.fc1 = nn.Conv2d(channels, inner, 1, pad_mode="valid", has_bias=bias)
        self.fc2 = nn.Conv2d(inner, channels, 1, pad_mode="valid", has_bias=bias)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        return x * ops.sigmoid(self.fc2(ops.relu(self.fc1(_squeezed(x, self.add_maxpool)))))


class SqueezeExcitation(SEModule):
    """Scales channels by a ReLU and a sigmoid over their means."""

    def __init__(self, input_channels: int, squeeze_channels: int) -> None:
        super().__init__(input_channels, rd_channels=squeeze_channels)


def _squeezed(x: Tensor, add_maxpool: bool) -> Tensor:
    """The means (N, C, 1, 1) of channels, or half of them and of the largest values."""
    means = ops.mean(x, (2, 3), True)
    return 0.5 * means + 0.5 * ops.amax(x, (2, 3), True) if add_maxpool else means


class EffectiveSEModule(nn.Cell):
    """Scales channels by a hard sigmoid of one convolution over their means."""

    def __init__(self, channels: int, add_maxpool: bool = False) -> None:
        super().__init__()
        self.add_maxpool = add_maxpool
        self.fc = nn.Conv2d(channels, channels, 1, pad_mode="valid", has_bias=True)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        return x * ops.clamp(self.fc(_squeezed(x, self.add_maxpool)) + 3, 0, 6) / 6


class EcaModule(nn.Cell):
    """Scales channels by a sigmoid of a convolution along the channels' means."""

    def __init__(self, channels: int | None = None, kernel_size: int = 3, gamma: float = 2, beta: float = 1) -> None:
        super().__init__()
        size = kernel_size
        if channels is not None:
            near = int(abs(math.log(channels, 2) + beta) / gamma)
            size = max(near if near % 2 else near + 1, 3)
        self.conv = nn.Conv1d(1, 1, size, pad_mode="pad", padding=(size - 1) // 2, has_bias=False)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        means = ops.expand_dims(ops.mean(x, (2, 3)), 1)
        return x * ops.sigmoid(self.conv(means)).reshape((x.shape[0], -1, 1, 1))


class Mlp(nn.Cell):
    """Two linear layers with a GELU between."""

    def __init__(
        self,
        in_features: int,
        hidden_features: int | None = None,
        out_features: int | None = None,
        bias: bool = True,
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        inner = hidden_features or in_features
        self.fc1 = nn.Dense(in_features, inner, has_bias=bias)
        self.fc2 = nn.Dense(inner, out_features or in_features, has_bias=bias)
        self.act = nn.GELU(approximate=False)
        self.drop1, self.drop2 = nn.Dropout(p=float(drop)), nn.Dropout(p=float(drop))

    def construct(self, x: Tensor) -> Tensor:
        """x: (..., in_features)."""
        return self.drop2(self.fc2(self.drop1(self.act(self.fc1(x)))))


class SwiGLU(nn.Cell):
    """Two linear layers, the inner gated by a third through a SiLU."""

    def __init__(
        self,
        in_features: int,
        hidden_features: int | None = None,
        out_features: int | None = None,
        bias: bool = True,
        drop: float = 0.0,
        align_to: int = 0,
    ) -> None:
        super().__init__()
        inner = hidden_features or in_features
        if align_to:
            inner = inner + (-inner % align_to)
        self.fc1_g = nn.Dense(in_features, inner, has_bias=bias)
        self.fc1_x = nn.Dense(in_features, inner, has_bias=bias)
        self.fc2 = nn.Dense(inner, out_features or in_features, has_bias=bias)
        self.drop1, self.drop2 = nn.Dropout(p=float(drop)), nn.Dropout(p=float(drop))

    def construct(self, x: Tensor) -> Tensor:
        """x: (..., in_features)."""
        gated = ops.silu(self.fc1_g(x)) * self.fc1_x(x)
        return self.drop2(self.fc2(self.drop1(gated)))


class Permute(nn.Cell):
    """The axes in another order."""

    def __init__(self, dims: Sequence[int]) -> None:
        super().__init__()
        self.dims = tuple(dims)

    def construct(self, x: Tensor) -> Tensor:
        """x: of as many axes as `dims` names."""
        return ops.permute(x, self.dims)


class LayerScale(nn.Cell):
    """A trained factor for each value of the last axis."""

    def __init__(self, dim: int, init_values: float = 1e-05) -> None:
        super().__init__()
        self.gamma = Parameter(init_values * ops.ones((dim,)), name="gamma")

    def construct(self, x: Tensor) -> Tensor:
        """x: (..., dim)."""
        return x * self.gamma


class LayerScale2d(LayerScale):
    """A trained factor for each channel."""

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, dim, H, W)."""
        return x * self.gamma.reshape((1, -1, 1, 1))


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize (N, C, ...) to `size`, or by a factor; modes nearest, nearest-exact, linear, bilinear, bicubic, trilinear,
    area. A factor's size is rounded down, and the factor itself sets the places, unless it is to be recomputed."""
    x = input
    rank = input.ndim - 2
    plan = _plan(tuple(input.shape[2:]), size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    for index in range(rank):
        axis = 2 + index
        chosen, weights = plan[index]
        if chosen is not None:
            x = ops.index_select(x, axis, Tensor(chosen))
        elif weights is not None:
            matrix = Tensor(weights).astype(input.dtype)
            x = _times(x.swapaxes(axis, -1), matrix).swapaxes(axis, -1)
    return x


def _times(x: Tensor, matrix: Tensor) -> Tensor:
    """`x @ matrix`, in rows: for a single row among axes of size 1, MindSpore's gradient has an axis too many."""
    rows = ops.matmul(x.reshape((-1, x.shape[-1])), matrix)
    return rows.reshape((*x.shape[:-1], matrix.shape[1]))


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """What interpolate does, under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@ops.constexpr
def _plan(
    shape: tuple[int, ...],
    size: int | Sequence[int] | None,
    scale_factor: float | Sequence[float] | None,
    mode: str,
    align_corners: bool | None,
    recompute: bool | None,
    antialias: bool,
) -> Any:
    """For every dimension the places to take, or the weights (in, out) as rows of numbers, or neither."""
    rank = len(shape)
    wanted: tuple[int, ...]
    factors: tuple[float | None, ...] = (None,) * rank
    if size is not None:
        wanted = (size,) * rank if isinstance(size, int) else tuple(size)
    else:
        given: Any = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * rank
        wanted = tuple(math.floor(length * factor) for length, factor in zip(shape, given, strict=True))
        if not recompute:
            factors = tuple(given)
    plan: list[Any] = []
    for length, out, factor in zip(shape, wanted, factors, strict=True):
        ratio = length / out if factor is None else 1.0 / factor
        if mode in ("nearest", "nearest-exact"):
            shift = 0.5 if mode == "nearest-exact" else 0.0
            # torch computes the ratio in float32
            single = np.float32(length) / np.float32(out) if factor is None else np.float32(1.0 / factor)
            places = [min(int(np.float32(place + shift) * single), length - 1) for place in range(out)]
            plan.append((tuple(places), None))
        else:
            matrix = _matrix(length, out, ratio, mode, bool(align_corners), antialias)
            plan.append((None, tuple(map(tuple, matrix.tolist()))))
    return tuple(plan)


def _matrix(length: int, out: int, ratio: float, mode: str, aligned: bool, antialias: bool) -> np.ndarray:
    """The weights (in, out) of one dimension."""
    weights = np.zeros((length, out))
    if mode == "area":
        for place in range(out):
            first, last = place * length // out, -((place + 1) * length // -out)
            weights[first:last, place] = 1.0 / (last - first)
        return weights
    cubic = mode == "bicubic"
    if aligned:
        ratio = (length - 1) / (out - 1) if out > 1 else 0.0
    if antialias:
        return _antialiased(length, out, ratio, cubic, aligned)
    for place in range(out):
        centre = place * ratio if aligned else (place + 0.5) * ratio - 0.5
        if not cubic and not aligned:
            centre = max(centre, 0.0)
        base = math.floor(centre)
        taps = range(base - 1, base + 3) if cubic else range(base, base + 2)
        for tap in taps:
            weight = _cubic(centre - tap, -0.75) if cubic else max(1.0 - abs(centre - tap), 0.0)
            weights[min(max(tap, 0), length - 1), place] += weight
    return weights


def _antialiased(length: int, out: int, ratio: float, cubic: bool, aligned: bool) -> np.ndarray:
    """The weights of a filter that is widened by the ratio, normalized, and cut off at the borders."""
    weights = np.zeros((length, out))
    wide = max(ratio, 1.0)
    support = (2.0 if cubic else 1.0) * wide
    for place in range(out):
        centre = ratio * (place + 0.5)
        first, last = max(int(centre - support + 0.5), 0), min(int(centre + support + 0.5), length)
        for tap in range(first, last):
            away = (tap + 0.5 - centre) / wide
            weights[tap, place] = _cubic(away, -0.5) if cubic else max(1.0 - abs(away), 0.0)
    return weights / weights.sum(0, keepdims=True)


def _cubic(away: float, a: float) -> float:
    """Keys' cubic kernel."""
    x = abs(away)
    if x <= 1.0:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a if x < 2.0 else 0.0


class Upsampling2d(nn.Upsample):
    """A size, or factors of one, for two layers neither of which is the other."""

    def __init__(
        self, size: int | tuple[int, int] | None = None, scale_factor: float | tuple[float, float] | None = None
    ) -> None:
        super().__init__()
        self.size = (size, size) if isinstance(size, int) else size
        self.factors = (scale_factor, scale_factor) if isinstance(scale_factor, (int, float)) else scale_factor

    def wanted(self, input: Tensor) -> Any:
        """The height and width of the result."""
        if self.factors is None:
            return self.size
        return int(input.shape[2] * self.factors[0]), int(input.shape[3] * self.factors[1])


class UpsamplingNearest2d(Upsampling2d):
    """Repeats pixels up to a size, or a whole number of times."""

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, H, W)."""
        return ops.interpolate(input, size=self.wanted(input), mode="nearest")


class UpsamplingBilinear2d(Upsampling2d):
    """Bilinear up to a size, or by a factor, with the corners aligned."""

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, H, W)."""
        return ops.interpolate(input, size=self.wanted(input), mode="bilinear", align_corners=True)


class Upsample(nn.Upsample):
    """Resizes as torch does, in every mode and by any factor; MindSpore's nn.Upsample takes whole factors alone."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.mode = size, mode
        self.scale_factor = tuple(scale_factor) if isinstance(scale_factor, (list, tuple)) else scale_factor
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, ...)."""
        kept = self.recompute_scale_factor
        return interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners, kept)


class SpaceToDepth(nn.Cell):
    """Squares of block_size pixels become channels, the place in the square before the channel."""

    def __init__(self, block_size: int = 4) -> None:
        super().__init__()
        self.block_size = block_size

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        count, channels, height, width = x.shape
        block = self.block_size
        split = x.reshape((count, channels, height // block, block, width // block, block))
        return split.permute((0, 3, 5, 1, 2, 4)).reshape(
            (count, channels * block * block, height // block, width // block)
        )


class DepthToSpace(nn.Cell):
    """Channels become squares of block_size pixels, the place in the square before the channel."""

    def __init__(self, block_size: int) -> None:
        super().__init__()
        self.block_size = block_size

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, C, H, W)."""
        count, channels, height, width = x.shape
        block = self.block_size
        inner = channels // (block * block)
        split = x.reshape((count, block, block, inner, height, width))
        return split.permute((0, 3, 4, 1, 5, 2)).reshape((count, inner, height * block, width * block))
