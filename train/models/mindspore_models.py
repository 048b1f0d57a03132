"""The MindSpore models a recipe may name; each one starts from its own random initial values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mindspore import nn

from ...errors import BadRecipe
from ...migrate import model_spec
from ..recipe_parts import Model
from . import converted
from .mindspore_lenet import LeNet5
from .mindspore_resnet import BasicBlock, Bottleneck, ResNet
from .model_names import NAMES, check, is_zoo

__all__ = ["NAMES", "build", "lenet5", "of_recipe", *("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")]
__all__ += ["resnet_tiny"]

lenet5 = LeNet5
resnet18 = partial(ResNet, BasicBlock, (2, 2, 2, 2))
resnet34 = partial(ResNet, BasicBlock, (3, 4, 6, 3))
resnet50 = partial(ResNet, Bottleneck, (3, 4, 6, 3))
resnet101 = partial(ResNet, Bottleneck, (3, 4, 23, 3))
resnet152 = partial(ResNet, Bottleneck, (3, 8, 36, 3))


def resnet_tiny(
    num_classes: int = 10,
    zero_init_residual: bool = False,
    block: str = "bottleneck",
    layers: Sequence[int] = (1, 1, 1, 1),
    width: int = 8,
) -> ResNet:
    """A ResNet small enough for a test; `block` is 'basic' or 'bottleneck', `width` the channels of the first stage."""
    kind: type[BasicBlock] | type[Bottleneck] = BasicBlock if block == "basic" else Bottleneck
    return ResNet(kind, layers, num_classes, zero_init_residual, width=width)


_MODELS: dict[str, Callable[..., nn.Cell]] = {
    "lenet5": lenet5,
    "resnet18": resnet18,
    "resnet34": resnet34,
    "resnet50": resnet50,
    "resnet101": resnet101,
    "resnet152": resnet152,
    "resnet_tiny": resnet_tiny,
}


def of_recipe(model: Model) -> nn.Cell:
    """The network that a recipe names, drawn as `build` draws it; one of torchvision's or timm's from its source.

    Raises BadRecipe, and what converting a model raises (see converted.py).
    """
    if not is_zoo(model.name):
        return build(model.name, **model.args)
    spec = model_spec.parse(converted.mindspore_spec(model.name, model.args, model.source))
    net = model_spec.function(spec)()
    if not isinstance(net, nn.Cell):
        raise BadRecipe(f"model.source: {spec.name} of {spec.place} returns {type(net).__name__}, not a Cell")
    return net.set_train(False)


def build(name: str, **arguments: Any) -> nn.Cell:
    """A new network, in evaluation mode as MindSpore makes them, drawn from the seed of `mindspore.set_seed`.

    Raises BadRecipe for a model or an argument that nobody knows.
    """
    check(name, arguments)
    return _MODELS[name](**arguments)
