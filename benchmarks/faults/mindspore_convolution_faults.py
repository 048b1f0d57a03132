"""Faults in a net's convolutions and pools."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import Tensor, nn, ops
from mindspore_injectors import Places, built, forward_of, injector, substituted


def _convolution(old: Any, **changed: Any) -> Any:
    arguments = {
        "kernel_size": old.kernel_size,
        "stride": old.stride,
        "pad_mode": old.pad_mode,
        "padding": old.padding,
        "dilation": old.dilation,
        "group": old.group,
        "has_bias": old.has_bias,
        **changed,
    }
    return nn.Conv2d(old.in_channels, old.out_channels, **arguments)


def _is_strided(found: Any) -> bool:
    return tuple(found.stride) == (2, 2) and found.pad_mode == "pad"


@injector
def conv_same(places: Places, strided: bool) -> Any:
    """A convolution with pad_mode 'same': a strided one that pads, or one that does not pad."""

    def accept(found: Any) -> bool:
        return _is_strided(found) if strided else found.pad_mode == "valid" and tuple(found.kernel_size) == (3, 3)

    return substituted(places, "Conv2d", lambda old: _convolution(old, pad_mode="same", padding=0), 0.5, accept)


@injector
def conv_without_bias(places: Places) -> Any:
    """A convolution born without its bias."""
    return substituted(places, "Conv2d", lambda old: _convolution(old, has_bias=False), 0.5, lambda c: c.has_bias)


@injector
def conv_dilated(places: Places) -> Any:
    """A 3×3 convolution with dilation 2, padded so that the shape stays."""

    def accept(found: Any) -> bool:
        return tuple(found.kernel_size) == (3, 3) and found.pad_mode == "pad" and tuple(found.stride) == (1, 1)

    return substituted(places, "Conv2d", lambda old: _convolution(old, dilation=2, padding=2), 0.5, accept)


@injector
def conv_half(places: Places) -> Any:
    """Convolutions that round their operands to float16, as Ascend does by default; the sums are float32."""

    def change(net: Any) -> None:
        for path, found in net.cells_and_names():
            if isinstance(found, nn.Conv2d):
                real = found.construct
                found.construct = lambda x, real=real: real(x).astype(mindspore.float32)
                found.to_float(mindspore.float16)
                places.append(path)

    return built(change)


@injector
def transposed_same(places: Places, which: float) -> Any:
    """A transposed convolution with pad_mode 'same'."""

    def make(old: Any) -> Any:
        return nn.Conv2dTranspose(old.in_channels, old.out_channels, 3, 2, pad_mode="same", has_bias=True)

    return substituted(places, "Conv2dTranspose", make, which)


@injector
def transposed_output_padding(places: Places) -> Any:
    """A transposed convolution with MindSpore's own output_padding."""

    def make(old: Any) -> Any:
        channels = (old.in_channels, old.out_channels)
        return nn.Conv2dTranspose(*channels, 3, 2, pad_mode="pad", padding=1, output_padding=1, has_bias=True)

    return substituted(places, "Conv2dTranspose", make, 0.0)


@injector
def max_pool(places: Places, **changed: Any) -> Any:
    """The max-pool with other arguments."""
    arguments = {"kernel_size": 3, "stride": 2, "pad_mode": "pad", "padding": 1, **changed}
    return substituted(places, "MaxPool2d", lambda old: nn.MaxPool2d(**arguments))


@injector
def max_pool_zero_padded(places: Places) -> Any:
    """The old idiom: pad with zeros, then pool."""

    def forward(self: Any, x: Tensor) -> Tensor:
        return ops.max_pool2d(ops.pad(x, (1, 1, 1, 1)), 3, 2)

    return forward_of(places, "MaxPool2d", forward)


@injector
def average_pool(places: Places, accept_padded: bool = True, **changed: Any) -> Any:
    """An average pool with other arguments."""

    def make(old: Any) -> Any:
        return nn.AvgPool2d(**{**old.given, **changed})

    accept = (lambda found: found.given["padding"] > 0) if accept_padded else (lambda found: True)
    return substituted(places, "AvgPool2d", make, 0.5, accept)
