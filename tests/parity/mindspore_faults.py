"""Ways in which people break the MindSpore side, each as a context in which the recorder runs unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from msmigrate.mappings import table
from msmigrate.parity.record import mindspore_runner, mindspore_worker
from msmigrate.training.data import mindspore_pipeline
from msmigrate.training.models import mindspore_models
from msmigrate.training.step import mindspore_step, parameter_groups
from msmigrate.training.step.mindspore_step import TrainStep


def _built(change: Callable[[nn.Cell], None]) -> Any:
    """The net is built, then changed."""
    real = mindspore_models.build

    def build(name: str, **arguments: Any) -> nn.Cell:
        net = real(name, **arguments)
        change(net)
        return net

    return patch.object(mindspore_models, "build", build)


def _loaded(change: Callable[[nn.Cell], None]) -> Any:
    """The starting weights are loaded, then changed."""
    real = mindspore_worker.load_start

    def load(net: nn.Cell, checkpoint: str) -> None:
        real(net, checkpoint)
        change(net)

    return patch.object(mindspore_worker, "load_start", load)


def _cell(net: nn.Cell, path: str) -> Any:
    return dict(net.cells_and_names())[path]


def bn_eps() -> Any:
    """One BatchNorm with eps 1e-3."""

    def change(net: nn.Cell) -> None:
        norm = _cell(net, "layer2.0.bn2")
        norm.bn_train = ops.BatchNorm(is_training=True, epsilon=1e-3, momentum=norm.momentum, data_format="NCHW")
        norm.bn_infer = ops.BatchNorm(is_training=False, epsilon=1e-3, data_format="NCHW")

    return _built(change)


def bn_momentum() -> Any:
    """One BatchNorm whose momentum is torch's 0.1, not its complement."""

    def change(net: nn.Cell) -> None:
        norm = _cell(net, "layer3.0.bn1")
        norm.bn_train = ops.BatchNorm(is_training=True, epsilon=1e-5, momentum=1.0 - 0.1, data_format="NCHW")

    return _built(change)


def softmax_in_evaluation() -> Any:
    """What the net returns in evaluation has gone through a softmax, behind its last layer."""

    def change(net: nn.Cell) -> None:
        plain = net.construct
        net.construct = lambda x: plain(x) if net.training else ops.softmax(plain(x), 1)

    return _built(change)


def maxpool_same() -> Any:
    """The stem's max-pool with pad_mode 'same'."""

    def change(net: Any) -> None:
        net.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same")

    return _built(change)


class SmoothedByOthers(nn.Cell):
    """The model zoo's cross entropy: 1 - s for the class, s / (K - 1) for the others."""

    def __init__(self, smoothing: float) -> None:
        super().__init__()
        self.smoothing = smoothing

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        classes = logits.shape[1]
        on, off = Tensor(1.0 - self.smoothing), Tensor(self.smoothing / (classes - 1))
        return -(ops.one_hot(labels, classes, on, off) * ops.log_softmax(logits, 1)).sum(1).mean()


def label_smoothing() -> Any:
    """Label smoothing spread over K - 1 classes."""
    return patch.object(mindspore_step, "build_loss", lambda recipe: SmoothedByOthers(0.1))


def norm_undecayed() -> Any:
    """Weight decay that skips whatever is called gamma or beta."""
    real = parameter_groups.parameter_groups

    def groups(owners: dict[str, str], optimizer: Any) -> Any:
        return real(owners, optimizer.model_copy(update={"no_weight_decay": ["norm"]}))

    return patch.object(mindspore_step, "parameter_groups", groups)


def nesterov_ignored() -> Any:
    """nn.Momentum's fault: nesterov=True makes no difference."""
    real = table.translate

    def translate(name: str, args: Any, *rest: Any, **options: Any) -> Any:
        return real(name, {k: v for k, v in args.items() if k != "nesterov"}, *rest, **options)

    return patch.object(table, "translate", translate)


def no_has_aux() -> Any:
    """value_and_grad over everything the forward function returns."""
    real = mindspore.value_and_grad

    def value_and_grad(function: Any, position: Any = 0, weights: Any = None, has_aux: bool = False) -> Any:
        return real(function, position, weights, has_aux=False)

    return patch.object(mindspore, "value_and_grad", value_and_grad)


def _set(net: nn.Cell, name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    parameter = dict(net.parameters_and_names())[name]
    parameter.set_data(Tensor(change(parameter.asnumpy().copy())))


def swapped_weights() -> Any:
    """Two norm scales of one shape in each other's place."""

    def change(net: nn.Cell) -> None:
        found = {name: p.asnumpy().copy() for name, p in net.parameters_and_names()}
        one, other = "layer2.0.bn1.gamma", "layer2.0.bn2.gamma"
        _set(net, one, lambda _: found[other])
        _set(net, other, lambda _: found[one])

    return _loaded(change)


def variance_scaled() -> Any:
    """One running variance a hundredth too large."""
    return _loaded(lambda net: _set(net, "layer1.0.bn3.moving_variance", lambda v: v * np.float32(1.01)))


def mean_not_subtracted() -> Any:
    """Images divided by std without the mean subtracted."""
    real = mindspore_pipeline.batch

    def batch(samples: Any, transforms: Any, keys: Any) -> Any:
        without = [
            part.model_copy(update={"args": {**part.args, "mean": [0.0, 0.0, 0.0]}})
            if part.name == "Normalize"
            else part
            for part in transforms
        ]
        return real(samples, without, keys)

    return patch.object(mindspore_pipeline, "batch", batch)


def residual_forgotten() -> Any:
    """A block whose shortcut is not added: found at the first leaf behind it."""

    def change(net: nn.Cell) -> None:
        block = _cell(net, "layer3.0")
        block.construct = lambda x: block.relu(
            block.bn3(block.conv3(block.relu(block.bn2(block.conv2(block.relu(block.bn1(block.conv1(x))))))))
            + 0.0 * block.downsample(x)
        )

    return _built(change)


def set_train_forgotten() -> Any:
    """A step taken in evaluation mode, as a Cell is born."""
    return patch.object(nn.Cell, "set_train", lambda self, mode=True: self)


def not_unscaled() -> Any:
    """Gradients twice as large as they should be: a loss scale never taken out again."""
    return patch.object(TrainStep, "_unscaled", lambda self, grads: tuple(2.0 * grad for grad in grads))


def gradient_nan() -> Any:
    """One gradient that is not a number."""
    real = mindspore_runner.MindSporeSide.step

    def step(self: Any, images: Any, labels: Any, seen: Any) -> Any:
        result = real(self, images, labels, seen)
        result.grads["layer4.0.conv2.weight"] = np.full_like(result.grads["layer4.0.conv2.weight"], np.nan)
        return result

    return patch.object(mindspore_runner.MindSporeSide, "step", step)


def gradient_missing() -> Any:
    """A layer frozen by accident: its gradient is not there."""

    def change(net: nn.Cell) -> None:
        _cell(net, "layer1.0.conv2").weight.requires_grad = False

    return _built(change)


def schedule_forgotten() -> Any:
    """The learning rate never moves."""
    return patch.object(TrainStep, "_advance", lambda self: None)


def initializer_fan_in() -> Any:
    """Convolutions drawn from fan_in where torchvision takes fan_out."""

    def change(net: nn.Cell) -> None:
        from mindspore.common.initializer import HeNormal, initializer

        for cell in net.cells():
            for _, conv in cell.cells_and_names():
                if isinstance(conv, nn.Conv2d):
                    weight = conv.weight
                    weight.set_data(initializer(HeNormal(mode="fan_in", nonlinearity="relu"), weight.shape))

    return _built(change)


@contextmanager
def broken(fault: str) -> Iterator[None]:
    """The context of a fault by name, `name` or `name@size`; 'none' breaks nothing."""
    import mindspore_data_faults
    import mindspore_option_faults
    import mindspore_subtle_net
    import mindspore_subtle_step

    name, _, size = fault.partition("@")
    known = {**globals(), **vars(mindspore_subtle_net), **vars(mindspore_subtle_step)}
    known |= {**vars(mindspore_data_faults), **vars(mindspore_option_faults)}
    with nullcontext() if name == "none" else known[name](*([float(size)] if size else [])):
        yield
