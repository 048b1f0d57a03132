"""ResNet, LeNet5 and build() in torch; torchvision, whose import takes a second, comes with the first ResNet."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import BadRecipe
from ...migrate import model_spec
from ...migrate import torch_models as zoo
from ..recipe.schema import Model
from ..step.parameter_groups import picked
from .model_names import BLOCKS, check, is_ours


class LeNet5(nn.Module):
    """LeNet5 (LeCun et al. 1998) for images of 32 x 32.

    Takes images (N, channels, 32, 32) and gives logits (N, num_classes), both of the parameters' dtype.
    """

    def __init__(self, channels: int = 1, num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, kernel_size=5)
        self.conv2 = nn.Conv2d(6, 16, kernel_size=5)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


def resnet_tiny(
    num_classes: int = 10,
    zero_init_residual: bool = False,
    block: str = "bottleneck",
    layers: Sequence[int] = (1, 1, 1, 1),
    width: int = 8,
) -> nn.Module:
    """A ResNet small enough for a test; `block` is 'basic' or 'bottleneck', `width` the channels of the first stage."""
    from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

    class NarrowResNet(ResNet):
        """torchvision's ResNet with `width` in place of its fixed 64 channels of the first stage.

        `width_per_group` would narrow the inside of a bottleneck only, and its outputs would be 256 to 2048 wide.
        """

        def _make_layer(self, block: Any, planes: int, blocks: int, stride: int = 1, dilate: bool = False) -> Any:
            return super()._make_layer(block, planes // 64 * width, blocks, stride, dilate)

    kind = BasicBlock if block == "basic" else Bottleneck
    model = NarrowResNet(kind, list(layers), num_classes, zero_init_residual)
    model.fc = nn.Linear(8 * width * kind.expansion, num_classes)
    return model


def _torchvisions(name: str, **arguments: Any) -> nn.Module:
    from torchvision.models import resnet

    model: nn.Module = getattr(resnet, name)(**arguments)
    return model


_MODELS: dict[str, Callable[..., nn.Module]] = {
    "lenet5": LeNet5,
    **{name: partial(_torchvisions, name) for name in BLOCKS if name != "resnet_tiny"},
    "resnet_tiny": resnet_tiny,
}


def build(name: str, **arguments: Any) -> nn.Module:
    """A new model, in training mode as PyTorch makes them, drawn from the seed of `torch.manual_seed`.

    Raises BadRecipe for an unknown model or argument.
    """
    check(name, arguments)
    if not is_ours(name):
        with warnings.catch_warnings():  # GoogLeNet and Inception announce a new default
            warnings.simplefilter("ignore")
            return zoo.build(model_spec.parse(name)._replace(kwargs=arguments))
    return _MODELS[name](**arguments)


def fine_tune(model: nn.Module, options: Model) -> None:
    """Freeze, in place, what a recipe's model.freeze and model.freeze_statistics name.

    Raises BadRecipe for a pattern that matches nothing, and where nothing is left to train.
    """
    parameters = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    frozen = picked(options.freeze, parameters, "model.freeze", "parameter")
    if len(frozen) == len(parameters):
        raise BadRecipe("model.freeze: every parameter is frozen, and none is left to train")
    for name in frozen:
        parameters[name].requires_grad_(False)
    norms = {name: module for name, module in model.named_modules() if _has_statistics(module)}
    for name in picked(options.freeze_statistics, norms, "model.freeze_statistics", "norm with running statistics"):
        # train() on the model reaches all its modules, but this one stays in evaluation mode
        object.__setattr__(norms[name].eval(), "train", _StaysInEvaluation(norms[name]))


def with_frozen_statistics(model: nn.Module) -> list[str]:
    """The names of the norms whose running statistics fine_tune() froze."""
    return [name for name, module in model.named_modules() if "train" in vars(module)]


def _has_statistics(module: nn.Module) -> bool:
    return isinstance(getattr(module, "running_mean", None), Tensor) and hasattr(module, "track_running_stats")


class _StaysInEvaluation:
    """Replaces a module's train() and does nothing; a copy of the module gets a copy of this, bound to it."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def __call__(self, mode: bool = True) -> nn.Module:
        return self.module
