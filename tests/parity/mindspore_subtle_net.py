"""Small faults of the MindSpore net and its starting weights, each with its size to shrink it by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore_faults import _built, _cell, _loaded, _set


def _output(path: str, change: Callable[[nn.Cell, Tensor], Tensor]) -> Any:
    """What the layer at `path` gives is changed, before anyone sees it."""

    def wrap(net: nn.Cell) -> None:
        cell = _cell(net, path)
        real = cell.construct
        cell.construct = lambda *inputs: change(cell, real(*inputs))

    return _built(wrap)


def _norm(path: str, eps: float = 1e-5, momentum: float = 0.1, **modes: bool) -> Any:
    """The BatchNorm at `path` with another eps, torch momentum or mode."""

    def change(net: nn.Cell) -> None:
        norm = _cell(net, path)
        norm.bn_train = ops.BatchNorm(is_training=True, epsilon=eps, momentum=momentum, data_format="NCHW")
        norm.bn_infer = ops.BatchNorm(is_training=False, epsilon=eps, data_format="NCHW")
        for name, value in modes.items():
            setattr(norm, name, value)

    return _built(change)


def eps_first(eps: float = 1.01e-5) -> Any:
    """The stem's BatchNorm with an eps a hundredth too large."""
    return _norm("bn1", eps)


def eps_last(eps: float = 1e-3) -> Any:
    """The last BatchNorm with another eps: few layers see it."""
    return _norm("layer4.0.bn3", eps)


def momentum_slight(momentum: float = 0.11) -> Any:
    """One BatchNorm with momentum 0.89 for 0.9."""
    return _norm("layer3.0.bn1", momentum=momentum)


def buffers_frozen() -> Any:
    """One BatchNorm whose running statistics never move."""
    return _norm("layer1.0.bn2", momentum=0.0)


def norm_always_moving() -> Any:
    """One BatchNorm in evaluation mode while the net trains."""
    return _norm("layer2.0.bn1", use_batch_statistics=False)


def norm_always_batch() -> Any:
    """One BatchNorm in training mode while the net is evaluated."""
    return _norm("layer2.0.bn1", use_batch_statistics=True)


def dilated(dilation: int = 2) -> Any:
    """One 3x3 convolution with dilation, padded so that the shape stays."""

    def change(net: nn.Cell) -> None:
        conv = _cell(net, "layer1.0.conv2")
        conv.construct = lambda x: ops.conv2d(x, conv.weight, None, 1, "pad", dilation, dilation, 1)

    return _built(change)


def conv_bias(bias: float = 1e-4) -> Any:
    """A constant on a convolution's output; the BatchNorm behind it takes it out again, save from its running mean."""
    return _output("layer1.0.conv1", lambda _, out: out + bias)


def relu_leaks(slope: float = 1e-5) -> Any:
    """One ReLU that lets a little of the negative side through."""

    def change(net: nn.Cell) -> None:
        relu = _cell(net, "layer2.0.relu")
        relu.construct = lambda x: ops.maximum(x, slope * x)

    return _built(change)


def relu_late(threshold: float = 1e-4) -> Any:
    """One ReLU that opens a little above zero, where parity takes either side to be right."""
    return _output("layer2.0.relu", lambda _, out: ops.select(out > threshold, out, ops.zeros_like(out)))


def half_precision() -> Any:
    """One convolution computed in float16."""

    def change(net: nn.Cell) -> None:
        conv = _cell(net, "layer3.0.conv2")
        real = conv.construct
        conv.construct = lambda x: real(x.astype(mindspore.float16).astype(mindspore.float32))

    return _built(change)


def nan_in_eval() -> Any:
    """Logits that are not a number, in evaluation mode only."""
    return _output("fc", lambda cell, out: out if cell.training else out * float("nan"))


def layer_twice() -> Any:
    """A BatchNorm that runs twice."""

    def change(net: nn.Cell) -> None:
        norm = _cell(net, "layer1.0.bn1")
        real = norm.construct
        norm.construct = lambda x: real(real(x))

    return _built(change)


def relu_called_again() -> Any:
    """A ReLU too many, which changes no value at all."""

    def change(net: nn.Cell) -> None:
        norm = _cell(net, "layer4.0")
        real = norm.construct
        norm.construct = lambda x: norm.relu(real(x))

    return _built(change)


def shortcut_detached(share: float = 1.0) -> Any:
    """The gradient does not pass a shortcut."""

    def change(net: nn.Cell) -> None:
        shortcut = _cell(net, "layer2.0.downsample")
        real = shortcut.construct

        def construct(x: Tensor) -> Tensor:
            out = real(x)
            return (1.0 - share) * out + share * ops.stop_gradient(out)

        shortcut.construct = construct

    return _built(change)


def extra_parameter() -> Any:
    """A parameter that torch does not have; the loader leaves it as it was born."""

    def change(net: nn.Cell) -> None:
        net.temperature = Parameter(Tensor(np.ones(1, np.float32)), name="temperature")

    return _built(change)


def one_ulp() -> Any:
    """One weight, one unit in its last place."""

    def nudge(values: np.ndarray) -> np.ndarray:
        values.flat[7] = np.nextafter(values.flat[7], np.float32(np.inf))
        return values

    return _loaded(lambda net: _set(net, "layer3.0.conv1.weight", nudge))


def convolution_transposed() -> Any:
    """A square convolution with its inputs and outputs exchanged."""
    return _loaded(lambda net: _set(net, "layer1.0.conv2.weight", lambda w: np.ascontiguousarray(w.swapaxes(0, 1))))


def buffer_not_loaded() -> Any:
    """A running mean left at zero."""
    return _loaded(lambda net: _set(net, "layer2.0.bn3.moving_mean", np.zeros_like))
