"""Faults in activations, attention and other layers, in their parameters, and in how a net's Cells use them."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from blocks_mindspore import Attention
from mindspore import Parameter, Tensor, nn
from mindspore_injectors import Places, built, cell, early_injector, injector, pick, substituted


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
    return substituted(places, "Softmax", lambda old: nn.Softmax(axis), accept=lambda old: axis not in old.softmax.axis)


@injector
def dropout(places: Places, rate: float, kind: str = "Dropout") -> Any:
    """Dropout with another rate."""
    return substituted(places, kind, lambda old: nn.Dropout(p=rate), accept=lambda old: old.p != 0)


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


@early_injector
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
