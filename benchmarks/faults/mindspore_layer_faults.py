"""Faults in a net's layers and in how its Cells use them."""

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import mindspore
from mindspore import Parameter, Tensor, nn, ops
from mindspore_injectors import Places, built, cell, forward_of, injector, pick, substituted
from nets_mindspore import Attention
from rare_layers_mindspore import InstanceNorm2d

# Norms


@injector
def batch_norm(places: Places, which: float = 0.5, **changed: Any) -> Any:
    """One BatchNorm with another eps, torch momentum or use_batch_statistics; momentum 'complement': torch's own."""

    def make(old: Any) -> Any:
        momentum = 1.0 - old.momentum  # of nn.BatchNorm2d: the share that stays
        if "momentum" in changed:
            momentum = 1.0 - momentum if changed["momentum"] == "complement" else 1.0 - changed["momentum"]
        use = changed.get("use_batch_statistics", old.use_batch_statistics)
        eps = changed.get("eps", old.eps)
        return nn.BatchNorm2d(old.num_features, eps=eps, momentum=momentum, use_batch_statistics=use)

    return substituted(places, "BatchNorm2d", make, which)


@injector
def frozen_norm(places: Places) -> Any:
    """The frozen BatchNorm is one like the others."""

    def make(old: Any) -> Any:
        return nn.BatchNorm2d(old.num_features, eps=old.eps, momentum=1.0 - old.momentum)

    return substituted(places, "BatchNorm2d", make, accept=lambda found: found.use_batch_statistics is False)


@injector
def layer_norm(places: Places, eps: float = 1e-7, which: float = 0.5) -> Any:
    """One LayerNorm with another eps."""

    def make(old: Any) -> Any:
        return nn.LayerNorm(old.normalized_shape, epsilon=eps)

    return substituted(places, "LayerNorm", make, which)


@injector
def group_norm(places: Places, eps: float) -> Any:
    """One GroupNorm with another eps."""
    return substituted(places, "GroupNorm", lambda old: nn.GroupNorm(old.num_groups, old.num_channels, eps=eps))


@injector
def instance_norm_affine(places: Places) -> Any:
    """An InstanceNorm with scale and shift that torch's lacks."""
    return substituted(places, "InstanceNorm2d", lambda old: InstanceNorm2d(8, affine=True))


@injector
def l2_normalize(places: Places) -> Any:
    """ops.L2Normalize with its own epsilon."""
    return forward_of(places, "Normalize", lambda self, x: ops.L2Normalize(1, 1e-4)(x * 1e-3))


@injector
def lrn_alpha(places: Places) -> Any:
    """LRN with torch's alpha, which torch divides by the size."""
    return substituted(places, "LRN", lambda old: nn.LRN(1, 1.0, 1e-2, 0.75))


@injector
def not_training(places: Places, kind: str) -> Any:
    """A Cell that set_train does not reach: it came in later."""

    def change(net: Any) -> None:
        path = pick(net, kind)
        found = cell(net, path)
        found.set_train(False)
        found.add_flags = types.MethodType(lambda self, **flags: self, found)
        places.append(path)

    return built(change)


@injector
def set_train_forgotten(places: Places) -> Any:
    """A step in evaluation mode, as a Cell is born."""
    real = nn.Cell.set_train

    def change(net: Any) -> None:
        places.extend(p for p, each in net.cells_and_names() if isinstance(each, (nn.BatchNorm2d, nn.Dropout)))
        places.append("(model)")

    stack = ExitStack()
    stack.enter_context(built(change))
    stack.enter_context(patch.object(nn.Cell, "set_train", lambda self, mode=True: real(self, False)))
    return stack


# Convolutions and pools


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
    """Convolutions that round their operands to float16, as Ascend does by default."""

    def change(net: Any) -> None:
        for path, found in net.cells_and_names():
            if isinstance(found, nn.Conv2d):
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


# Other layers


@injector
def gelu(places: Places, how: str, which: float = 0.5) -> Any:
    """nn.GELU as it comes, which is the tanh form, or nn.FastGelu."""
    make = nn.FastGelu if how == "fast" else lambda: nn.GELU(approximate=True)
    return substituted(places, "GELU", lambda old: make(), which)


@injector
def leaky_slope(places: Places, slope: float = 0.2) -> Any:
    """LeakyReLU with MindSpore's default slope."""

    def change(net: Any) -> None:
        path = pick(net, "LeakyReLU")
        cell(net, path).alpha = slope
        places.append(path)

    return built(change)


@injector
def softmax_axis(places: Places, axis: int) -> Any:
    """Softmax over another dimension."""
    return substituted(places, "Softmax", lambda old: nn.Softmax(axis))


@injector
def dropout(places: Places, rate: float, kind: str = "Dropout") -> Any:
    """Dropout with another rate."""
    return substituted(places, kind, lambda old: nn.Dropout(p=rate))


@injector
def in_container(places: Places, attribute: str, kind: str) -> Any:
    """A container's own code is wrong: `attribute` of the Cell that has it is another function."""
    functions: dict[str, Callable[..., Any]] = {
        "detach": lambda x: x,
        "pad_first": lambda x, pads: nn.Pad(((0, 0), (0, 0), (pads[0], pads[1]), (pads[2], pads[3])))(x),
    }

    def change(net: Any) -> None:
        setattr(net, attribute, functions[kind])
        places.append("(model)")

    return built(change)


@injector
def packed_by_head(places: Places, which: float = 0.5) -> Any:
    """Query, key and value taken as (heads, 3, size) out of the packed projection."""

    def split(self: Any, qkv: Tensor) -> Tensor:
        batch, length, packed = qkv.shape
        return qkv.reshape(batch, length, self.heads, 3, packed // 3 // self.heads).permute(3, 0, 2, 1, 4)

    def change(net: Any) -> None:
        path = pick(net, "Attention", which)
        found = cell(net, path)
        assert isinstance(found, Attention)
        found.split = types.MethodType(split, found)
        places.append(path)

    return built(change)


@injector
def last_of_all(places: Places) -> Any:
    """The state after the last step, padding included."""

    def change(net: Any) -> None:
        net.lengths = False
        places.append("(model)")

    return built(change)


@injector
def residual_forgotten(places: Places) -> Any:
    """A block without its shortcut: nobody listed this one."""

    def bottleneck(self: Any, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        return self.relu(self.bn3(self.conv3(out)))

    def block(self: Any, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return self.mlp(self.norm2(x))

    def inverted(self: Any, x: Tensor) -> Tensor:
        out = self.act(self.bn1(self.expand(x)))
        return self.bn3(self.project(self.se(self.act(self.bn2(self.depthwise(out))))))

    def change(net: Any) -> None:
        forwards = {"Bottleneck": bottleneck, "Block": block, "Inverted": inverted}
        path = next(p for p, each in net.cells_and_names() if type(each).__name__ in forwards)
        found = cell(net, path)
        found.construct = types.MethodType(forwards[type(found).__name__], found)
        places.append(path)

    return built(change)


@injector
def output_scaled(places: Places, kind: str, factor: float, which: float = 0.5) -> Any:
    """A layer whose output is off by a factor: nobody listed this one."""

    def change(net: Any) -> None:
        path = pick(net, kind, which)
        found = cell(net, path)
        real = found.construct
        found.construct = lambda *inputs: real(*inputs) * factor
        places.append(path)

    return built(change)


@injector
def constant(places: Places, name: str, owner: str = "") -> Any:
    """A parameter that is a mere Tensor, or a buffer that was not saved."""

    def change(net: Any) -> None:
        path, holder = next(
            (p, each) for p, each in net.cells_and_names() if name in each._params and (not owner or p.endswith(owner))
        )
        value = Tensor(holder._params[name].asnumpy() * 0.0 + 1.0)
        holder._params.pop(name)
        object.__setattr__(holder, name, value)
        places.extend([f"{path}.{name}" if path else name, path or "(model)"])

    return built(change)


@injector
def untied(places: Places) -> Any:
    """A shared weight that became two."""

    def change(net: Any) -> None:
        net.head.weight = Parameter(Tensor(net.head.weight.asnumpy()), name="head.weight")
        places.extend(["head.weight", "embedding.weight", "head"])

    return built(change)


@injector
def trainable(places: Places) -> Any:
    """A frozen layer that trains."""

    def change(net: Any) -> None:
        for path, parameter in net.parameters_and_names():
            if not parameter.requires_grad and path.rsplit(".", 1)[-1] in ("weight", "bias"):
                parameter.requires_grad = True
                places.extend([path, path.rsplit(".", 1)[0]])

    return built(change)


@injector
def nothing(places: Places, place: str = "") -> Any:
    """The fault is in the base already."""
    return built(lambda net: places.extend([place] if place else []))


@injector
def embedding_trains(places: Places) -> Any:
    """An Embedding that trains its padding row."""

    def change(net: Any) -> None:
        path = next(p for p, each in net.cells_and_names() if getattr(each, "trains", None) is not None)
        cell(net, path).trains = None
        places.extend([path, f"{path}.weight"])

    return built(change)


@injector
def functional_norm(places: Places) -> Any:
    """BatchNorm by ops.batch_norm, whose momentum is torch's: no fault."""

    def forward(self: Any, x: Tensor) -> Tensor:
        state = (self.moving_mean, self.moving_variance, self.gamma, self.beta)
        return ops.batch_norm(x, *state, self.training, self.momentum, self.eps)

    return forward_of(places, "BatchNorm2d", forward)
