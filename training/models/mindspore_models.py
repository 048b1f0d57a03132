"""ResNet, LeNet5 and build() in MindSpore; torch's names of a net's parameters, and its weights from a checkpoint.

Every Cell has the name that torchvision gives the module, so a checkpoint crosses by renaming alone (`weight` and
`bias` of a BatchNorm become `gamma` and `beta`, its running statistics `moving_mean` and `moving_variance`). Each block
has one ReLU that it calls several times, as in torchvision, so that the calls in both nets correspond one to one.

Arguments whose default in MindSpore differs from PyTorch's are always written out.
Architecture: He et al. 2015, "Deep Residual Learning for Image Recognition", with the stride of a bottleneck in its
3x3 convolution (v1.5), which is what torchvision trains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import HeNormal, HeUniform, Uniform

from ...errors import BadCheckpoint, BadRecipe
from ...mappings import table
from ...mappings.state_names import LAYER_STATES, is_constant
from ...migrate import model_spec
from ...migrate.checkpoint.convert import convert
from ..checkpoints import fit, is_foreign, new_head, read
from ..recipe.schema import Model, Recipe
from ..step.parameter_groups import picked
from . import converted_models
from .model_names import BLOCKS, check, is_ours


def convolution(inputs: int, outputs: int, kernel: int) -> nn.Conv2d:
    """A convolution with bias and without padding, initialized as `torch.nn.Conv2d` initializes itself."""
    return nn.Conv2d(
        inputs,
        outputs,
        kernel_size=kernel,
        stride=1,
        pad_mode="valid",
        padding=0,
        dilation=1,
        group=1,
        has_bias=True,
        weight_init=HeUniform(negative_slope=math.sqrt(5), mode="fan_in", nonlinearity="leaky_relu"),
        bias_init=Uniform(scale=1 / math.sqrt(inputs * kernel * kernel)),
    )


class LeNet5(nn.Cell):
    """LeNet5 (LeCun et al. 1998) for images of 32 x 32, with ReLU and max pooling.

    Takes images (N, channels, 32, 32) and gives logits (N, num_classes), both float32.
    """

    def __init__(self, channels: int = 1, num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = convolution(channels, 6, kernel=5)
        self.conv2 = convolution(6, 16, kernel=5)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2, pad_mode="valid", padding=0)
        self.fc1 = linear(16 * 5 * 5, 120)
        self.fc2 = linear(120, 84)
        self.fc3 = linear(84, num_classes)

    def construct(self, x: Tensor) -> Tensor:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = ops.flatten(x, order="C", start_dim=1, end_dim=-1)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


STEM_CHANNELS = 64
STAGES = 4


def padded_convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution without bias whose padding keeps the size at stride 1, drawn as torchvision draws it."""
    return nn.Conv2d(
        inputs,
        outputs,
        kernel_size=kernel,
        stride=stride,
        pad_mode="pad",  # the default, 'same', pads strided convolutions on one side only
        padding=kernel // 2,
        dilation=1,
        group=groups,
        has_bias=False,
        weight_init=HeNormal(negative_slope=0, mode="fan_out", nonlinearity="relu"),
    )


def batch_norm(channels: int, gamma: str = "ones") -> nn.BatchNorm2d:
    """A BatchNorm with PyTorch's defaults; `gamma` is the initial scale, 'ones' or 'zeros'."""
    return nn.BatchNorm2d(
        channels,
        eps=1e-5,
        momentum=0.9,  # the share of the old statistics that stays: 1 - PyTorch's 0.1
        affine=True,
        gamma_init=gamma,
        beta_init="zeros",
        moving_mean_init="zeros",
        moving_var_init="ones",
        use_batch_statistics=None,  # follow set_train(): batch statistics in training, moving ones in evaluation
    )


def linear(inputs: int, outputs: int) -> nn.Dense:
    """A fully connected layer, initialized as `torch.nn.Linear`: both ranges depend on the number of inputs."""
    return nn.Dense(
        inputs,
        outputs,
        weight_init=HeUniform(negative_slope=math.sqrt(5), mode="fan_in", nonlinearity="leaky_relu"),
        bias_init=Uniform(scale=1 / math.sqrt(inputs)),
        has_bias=True,
        activation=None,
    )


class BasicBlock(nn.Cell):
    """Two 3x3 convolutions and a shortcut, the block of ResNet 18 and 34."""

    expansion = 1

    def __init__(
        self,
        inputs: int,
        channels: int,
        stride: int,
        downsample: nn.SequentialCell | None,
        groups: int,
        width_per_group: int,
        last_gamma: str,
    ) -> None:
        super().__init__()
        if groups != 1 or width_per_group != 64:
            raise ValueError(f"a basic block has groups=1 and width_per_group=64, not {groups} and {width_per_group}")
        self.conv1 = padded_convolution(inputs, channels, kernel=3, stride=stride)
        self.bn1 = batch_norm(channels)
        self.relu = nn.ReLU()
        self.conv2 = padded_convolution(channels, channels, kernel=3)
        self.bn2 = batch_norm(channels, gamma=last_gamma)
        self.downsample = downsample

    def construct(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(out + shortcut)


class Bottleneck(nn.Cell):
    """1x1, 3x3 and 1x1 convolutions and a shortcut, the block of ResNet 50, 101 and 152."""

    expansion = 4

    def __init__(
        self,
        inputs: int,
        channels: int,
        stride: int,
        downsample: nn.SequentialCell | None,
        groups: int,
        width_per_group: int,
        last_gamma: str,
    ) -> None:
        super().__init__()
        width = int(channels * (width_per_group / 64)) * groups
        outputs = channels * self.expansion
        self.conv1 = padded_convolution(inputs, width, kernel=1)
        self.bn1 = batch_norm(width)
        self.conv2 = padded_convolution(width, width, kernel=3, stride=stride, groups=groups)
        self.bn2 = batch_norm(width)
        self.conv3 = padded_convolution(width, outputs, kernel=1)
        self.bn3 = batch_norm(outputs, gamma=last_gamma)
        self.relu = nn.ReLU()
        self.downsample = downsample

    def construct(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(out + shortcut)


class ResNet(nn.Cell):
    """A residual network for images.

    block: the kind of block that every stage is made of.
    layers: the number of blocks in each of the four stages.
    zero_init_residual: start the last BatchNorm of every block at zero, so that each block starts as its shortcut.
    groups, width_per_group: the grouping of the 3x3 convolutions of a bottleneck.
    width: channels of the first stage, doubled from stage to stage; the stem keeps its 64.

    Takes images (N, 3, H, W) and gives logits (N, num_classes), both float32.
    """

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        width: int = 64,
    ) -> None:
        super().__init__()
        if len(layers) != STAGES:
            raise ValueError(f"layers has the number of blocks of {STAGES} stages, not {list(layers)}")
        self._last_gamma = "zeros" if zero_init_residual else "ones"
        self._groups, self._width_per_group = groups, width_per_group
        outputs = [width * 2**stage * block.expansion for stage in range(STAGES)]

        self.conv1 = padded_convolution(3, STEM_CHANNELS, kernel=7, stride=2)
        self.bn1 = batch_norm(STEM_CHANNELS)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(
            kernel_size=3, stride=2, pad_mode="pad", padding=1, dilation=1, return_indices=False, ceil_mode=False
        )
        self.layer1 = self._stage(block, STEM_CHANNELS, outputs[0], layers[0], stride=1)
        self.layer2 = self._stage(block, outputs[0], outputs[1], layers[1], stride=2)
        self.layer3 = self._stage(block, outputs[1], outputs[2], layers[2], stride=2)
        self.layer4 = self._stage(block, outputs[2], outputs[3], layers[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(output_size=(1, 1))
        self.fc = linear(outputs[3], num_classes)

    def _stage(
        self, block: type[BasicBlock] | type[Bottleneck], inputs: int, outputs: int, blocks: int, stride: int
    ) -> nn.SequentialCell:
        """The blocks of one stage; the first one changes size and channels, and its shortcut with it."""
        downsample = None
        if stride != 1 or inputs != outputs:
            downsample = nn.SequentialCell(
                [padded_convolution(inputs, outputs, kernel=1, stride=stride), batch_norm(outputs)]
            )
        channels = outputs // block.expansion
        shared = (self._groups, self._width_per_group, self._last_gamma)
        first = block(inputs, channels, stride, downsample, *shared)
        rest = [block(outputs, channels, 1, None, *shared) for _ in range(blocks - 1)]
        return nn.SequentialCell([first, *rest])

    def construct(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = ops.flatten(self.avgpool(x), order="C", start_dim=1, end_dim=-1)
        return self.fc(x)


KINDS: dict[str, type[BasicBlock] | type[Bottleneck]] = {"basic": BasicBlock, "bottleneck": Bottleneck}


def resnet_tiny(
    num_classes: int = 10,
    zero_init_residual: bool = False,
    block: str = "bottleneck",
    layers: Sequence[int] = (1, 1, 1, 1),
    width: int = 8,
) -> ResNet:
    """A ResNet small enough for a test; `block` is 'basic' or 'bottleneck', `width` the channels of the first stage."""
    return ResNet(KINDS[block], layers, num_classes, zero_init_residual, width=width)


_MODELS: dict[str, Callable[..., nn.Cell]] = {
    "lenet5": LeNet5,
    **{name: partial(ResNet, KINDS[kind], layers) for name, (kind, layers) in BLOCKS.items()},
    "resnet_tiny": resnet_tiny,
}


def of_recipe(model: Model) -> nn.Cell:
    """The network that a recipe names, initialized as by `build`; a torchvision or timm model comes from its source.

    Raises BadRecipe, and what converting a model raises (see converted_models.py).
    """
    if is_ours(model.name):
        return build(model.name, **model.args)
    spec = model_spec.parse(converted_models.mindspore_spec(model.name, model.args, model.source))
    net = model_spec.called(spec)
    if not isinstance(net, nn.Cell):
        raise BadRecipe(f"model.source: {spec.name} of {spec.place} returns {type(net).__name__}, not a Cell")
    return net.set_train(False)


def build(name: str, **arguments: Any) -> nn.Cell:
    """A new network, in evaluation mode as MindSpore makes them, drawn from the seed of `mindspore.set_seed`.

    Raises BadRecipe for an unknown model or argument.
    """
    check(name, arguments)
    return _MODELS[name](**arguments)


@dataclass(frozen=True)
class Canonical:
    """One parameter of a net under its torch name; `owner` is the torch class name of the layer that holds it, `shape`
    torch's shape, where the net's has other axes of 1; `patterns`: the torch name that a recipe's patterns match, where
    `name` is no torch name because torch has the tensor whole or in parts."""

    name: str
    owner: str
    parameter: Parameter
    shape: tuple[int, ...] | None = None
    patterns: str = ""


def canonical_parameters(net: nn.Cell, every_name: bool = False) -> list[Canonical]:
    """Every parameter and buffer of `net`, in definition order, under its torch state_dict name.

    The names go by the class of the owning Cell (a BatchNorm2d's gamma is torch's weight), or the first of its bases
    that the mapping table knows, never by suffix. A Cell without a row there keeps its own parameter names. Attribute
    paths are used rather than Parameter.name, which drops `moving_` on a stand-alone norm and changes under an
    optimizer's prefix. A Parameter that several Cells share counts once, under its first name, as in torch's
    `named_parameters`; with `every_name` under each. Parameters that a norm without weights holds nevertheless are left
    out.
    """
    rows = {row.mindspore.rsplit(".", 1)[-1]: row for row in table.rows("layer") if row.mindspore}
    found: list[Canonical] = []
    seen: set[int] = set()
    for path, cell in net.cells_and_names():
        row = next((rows[kind.__name__] for kind in type(cell).mro() if kind.__name__ in rows), None)
        torch_names = {state.mindspore: state.torch for state in row.state if state.mindspore} if row else {}
        owner = row.torch.rsplit(".", 1)[-1] if row else type(cell).__name__
        for attribute, parameter in cell.parameters_and_names(expand=False):
            if (id(parameter) in seen and not every_name) or is_constant(cell, attribute):
                continue
            seen.add(id(parameter))
            name = torch_names.get(attribute, attribute)
            found.append(Canonical(f"{path}.{name}" if path else name, owner, parameter))
    return found


def fine_tune(net: nn.Cell, options: Model) -> list[str]:
    """Freeze, in place, what a recipe's model.freeze and model.freeze_statistics name; returns torch's names of the
    parameters that model.freeze froze.

    Raises BadRecipe for a pattern that matches nothing, and where nothing is left to train.
    """
    trained = {each.name: each.parameter for each in canonical_parameters(net) if each.parameter.requires_grad}
    frozen = picked(options.freeze, trained, "model.freeze", "parameter")
    if len(frozen) == len(trained):
        raise BadRecipe("model.freeze: every parameter is frozen, and none is left to train")
    for name in frozen:
        trained[name].requires_grad = False
    norms = {name: cell for name, cell in net.cells_and_names() if hasattr(cell, "use_batch_statistics")}
    for name in picked(options.freeze_statistics, norms, "model.freeze_statistics", "norm with running statistics"):
        norms[name].use_batch_statistics = False  # unlike a Cell's training flag, set_train() leaves this alone
    return frozen


def load_weights(
    net: nn.Cell,
    tensors: Mapping[str, np.ndarray],
    shown: str,
    recipe: Recipe,
    prefix: str = "",
    fresh: Collection[str] = (),
) -> None:
    """Give a net its weights and buffers from a checkpoint's tensors.

    shown: the user's name for the file. prefix: EMA for the moving average, which has torch's names. fresh: parameters
    of the net that keep their own values, by MindSpore's names. Raises BadCheckpoint where they do not fit.
    """
    parameters = {f"{prefix}{c.name}" if prefix else c.parameter.name: c.parameter for c in canonical_parameters(net)}
    wanted = {name: (tuple(p.shape), str(p.dtype).lower()) for name, p in parameters.items() if name not in fresh}
    for name, array in fit(shown, tensors, wanted, recipe).items():
        parameters[name].set_data(Tensor(np.array(array)))  # a copy, which MindSpore may take over


def load_start(net: nn.Cell, recipe: Recipe, folder: Path) -> list[str]:
    """Fill the net with the weights of model.checkpoint, except those of model.fresh; returns torch's names of these.

    A torch file is converted into the folder first. Raises BadCheckpoint, Ambiguous or Unsupported as convert-ckpt
    does, BadCheckpoint where the weights do not fit the net, and BadRecipe for a pattern that matches nothing.
    """
    given = recipe.model.checkpoint
    assert given is not None
    stored = given
    if is_foreign(given):
        stored = folder / "start.ckpt"
        convert(given, stored, to="mindspore", force=True)
    tensors = read(stored).weights
    torch_names = {each.parameter.name: each.name for each in canonical_parameters(net)}
    torch_names |= {name: _torch_name(name) for name in tensors if name not in torch_names}
    fresh = set(picked(recipe.model.fresh, torch_names.values(), "model.fresh", "tensor"))
    own = {each.parameter.name for each in canonical_parameters(net) if each.name in fresh}
    given_tensors = {name: array for name, array in tensors.items() if torch_names[name] not in fresh}
    try:
        load_weights(net, given_tensors, str(given), recipe, fresh=own)
    except BadCheckpoint as error:
        stored_shapes = {torch_names[name]: array.shape for name, array in given_tensors.items()}
        held = {c.name: tuple(c.parameter.shape) for c in canonical_parameters(net) if c.name not in fresh}
        raise BadCheckpoint(f"{error}{new_head(stored_shapes, held)}") from None
    return [torch_names[name] for name in torch_names if name in own]


_NORM = {c.mindspore: name for name, c in LAYER_STATES["torch.nn.BatchNorm2d"].items() if c.mindspore}


def _torch_name(name: str) -> str:
    """Torch's name of a MindSpore tensor in a part that the net does not have; only norms' names differ."""
    path, dot, leaf = name.rpartition(".")
    return f"{path}{dot}{_NORM.get(leaf, leaf)}"
