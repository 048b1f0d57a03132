"""Layers that leave out values at random in training: dropout of channels, alpha dropout, blocks, whole branches."""

from __future__ import annotations

from mindspore import Tensor, nn, ops


class Dropout1d(nn.Cell):
    """Zeros whole channels of (N, C, L) with probability p in training, and scales the others by 1 / (1 - p)."""

    drops_by_cell = True

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p
        self.dropout = nn.Dropout(p=p)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, ...)."""
        one_each = ops.ones(input.shape[:2] + (1,) * (input.ndim - 2), input.dtype)
        return input * ops.stop_gradient(self.dropout(one_each))


class Dropout2d(Dropout1d):
    """Dropout1d for (N, C, H, W)."""


class Dropout3d(Dropout1d):
    """Dropout1d for (N, C, D, H, W)."""


class AlphaDropout(nn.Cell):
    """Sets values to the lower limit of SELU with probability p in training, and restores mean 0 and variance 1."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def construct(self, input: Tensor) -> Tensor:
        """input: of any shape."""
        return alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(AlphaDropout):
    """AlphaDropout of whole channels."""

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, ...)."""
        if not self.training or self.p == 0:
            return input
        return _alpha_dropped(input, self.p, input.shape[:2] + (1,) * (input.ndim - 2))


class StochasticDepth(nn.Cell):
    """In training zeros samples ('row'), or the whole batch ('batch'), with probability p, and scales the others."""

    drops_by_cell = True

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p, self.mode = p, mode
        if p < 1.0:
            self.dropout = nn.Dropout(p=p)

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, ...)."""
        if not self.training or self.p == 0.0:
            return input
        if self.p == 1.0:
            return ops.zeros_like(input)
        count = input.shape[0] if self.mode == "row" else 1
        kept = self.dropout(ops.ones((count,) + (1,) * (len(input.shape) - 1), input.dtype))
        return input * kept


class DropBlock2d(nn.Cell):
    """In training zeros square blocks of an image, a share p of it, and scales the rest."""

    def __init__(self, p: float, block_size: int, eps: float = 1e-06) -> None:
        super().__init__()
        self.p, self.block_size, self.eps = p, block_size, eps

    def construct(self, input: Tensor) -> Tensor:
        """input: (N, C, H, W)."""
        if not self.training or self.p == 0.0:
            return input
        count, channels, height, width = input.shape
        block = min(self.block_size, height, width)
        rows, columns = height - block + 1, width - block + 1
        gamma = self.p * height * width / (block**2 * rows * columns)
        drawn = (ops.rand(count, channels, rows, columns) < gamma).astype(input.dtype)
        half = block // 2
        drawn = ops.pad(drawn, (half, half, half, half))
        if block > 1:
            drawn = ops.max_pool2d(drawn, block, 1, half)
        kept = ops.stop_gradient(1 - drawn)
        return input * kept * (kept.size / (self.eps + kept.sum()))


class DropPath(nn.Cell):
    """In training zeros samples with probability drop_prob, and scales the others."""

    drops_by_cell = True

    def __init__(self, drop_prob: float = 0.0, scale_by_keep: bool = True) -> None:
        super().__init__()
        self.drop_prob, self.scale_by_keep = drop_prob, scale_by_keep
        if drop_prob < 1.0:
            self.dropout = nn.Dropout(p=drop_prob)

    def construct(self, x: Tensor) -> Tensor:
        """x: (N, ...)."""
        if not self.training or self.drop_prob == 0.0:
            return x
        if self.drop_prob == 1.0:
            return ops.zeros_like(x)
        kept = self.dropout(ops.ones((x.shape[0],) + (1,) * (len(x.shape) - 1), x.dtype))
        if not self.scale_by_keep:
            kept = (kept > 0).astype(x.dtype)
        return x * kept


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """Set values to SELU's lowest with probability p, then scale and shift, so that mean and variance stay."""
    return _alpha_dropped(input, p, input.shape) if training and p != 0 else input


def _alpha_dropped(input: Tensor, p: float, drawn: tuple[int, ...]) -> Tensor:
    """alpha_dropout by values drawn in a shape that broadcasts to the input's."""
    lowest = -1.7580993408473766  # of SELU
    scale = ((lowest**2 * p + 1) * (1 - p)) ** -0.5
    kept = ops.stop_gradient((ops.rand(*drawn) >= p).astype(input.dtype))
    return (input * kept + lowest * (1 - kept)) * scale - lowest * p * scale


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """Drop whole samples (mode "row") or the whole batch ("batch") with probability p, and scale the rest."""
    if not training or p == 0.0:
        return input
    rows = input.shape[0] if mode == "row" else 1
    kept = (ops.rand(rows) >= p).astype(input.dtype).reshape((rows,) + (1,) * (input.ndim - 1))
    return input * kept / (1.0 - p) if p < 1.0 else input * kept
