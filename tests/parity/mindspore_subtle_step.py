"""Small faults of MindSpore's data, loss, gradients and updates; each takes its size where it has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from mindspore import Tensor, nn, ops
from msmigrate.mappings import table
from msmigrate.parity.record import mindspore_runner
from msmigrate.training.data import mindspore_pipeline
from msmigrate.training.step import mindspore_step
from msmigrate.training.step.mindspore_step import TrainStep


def _arguments(row: str, **changed: Any) -> Any:
    """The row's torch arguments are others when MindSpore's are made from them."""
    real = table.translate

    def translate(name: str, args: Any, *rest: Any, **options: Any) -> Any:
        given = {**args, **changed} if name == row and not options.get("partial") else args
        return real(name, given, *rest, **options)

    return patch.object(table, "translate", translate)


def _gradients(change: Callable[[str, Tensor], Tensor]) -> Any:
    """The step's parameter gradients are changed by name before anyone sees them."""
    real = TrainStep._gradients

    def gradients(self: Any, images: Tensor, labels: Tensor) -> Any:
        loss, logits, grads, image_grad = real(self, images, labels)
        return loss, logits, tuple(change(n, g) for n, g in zip(self.names, grads, strict=True)), image_grad

    return patch.object(TrainStep, "_gradients", gradients)


def _batch(change: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]], **transform: Any) -> Any:
    """The prepared batch is changed, or one transform's arguments are."""
    real = mindspore_pipeline.batch

    def batch(samples: Any, transforms: Any, keys: Any) -> Any:
        parts = [part.model_copy(update={"args": {**part.args, **transform.get(part.name, {})}}) for part in transforms]
        return change(*real(samples, parts, keys))

    return patch.object(mindspore_pipeline, "batch", batch)


def gradient_scaled(factor: float = 1.001) -> Any:
    """One layer's gradient a thousandth too large."""
    return _gradients(lambda name, grad: grad * factor if name == "layer2.0.conv2.weight" else grad)


def gradient_scaled_later(factor: float = 1.001) -> Any:
    """The same from the second step on."""
    real = TrainStep._gradients

    def gradients(self: Any, images: Tensor, labels: Tensor) -> Any:
        loss, logits, grads, image_grad = real(self, images, labels)
        wrong = factor if self.steps > 1 else 1.0
        given = [g * wrong if n == "layer2.0.conv2.weight" else g for n, g in zip(self.names, grads, strict=True)]
        return loss, logits, tuple(given), image_grad

    return patch.object(TrainStep, "_gradients", gradients)


def statistics_later() -> Any:
    """One running mean that stays where the first step left it."""
    real = mindspore_runner.MindSporeSide.step

    def step(self: Any, images: Any, labels: Any, seen: Any) -> Any:
        mean = dict(self.net.parameters_and_names())["layer1.0.bn1.moving_mean"]
        before, later = mean.asnumpy().copy(), self.train_step.steps > 0
        result = real(self, images, labels, seen)
        if later:
            mean.set_data(Tensor(before))
        return result

    return patch.object(mindspore_runner.MindSporeSide, "step", step)


def gradient_flipped() -> Any:
    """The gradient of one small tensor with the other sign."""
    return _gradients(lambda name, grad: -grad if name == "layer1.0.bn2.bias" else grad)


def gradient_zero() -> Any:
    """The gradient of one small tensor is zero."""
    return _gradients(lambda name, grad: 0.0 * grad if name == "layer4.0.bn3.bias" else grad)


def gradient_clipped_by_tensor() -> Any:
    """Every gradient clipped by itself, where torch clips them all together."""

    def apply(self: Any, grads: Any) -> None:
        self.optimizer(tuple(ops.clip_by_norm([g], max_norm=self._max_norm, norm_type=2.0)[0] for g in grads))

    return patch.object(TrainStep, "_clip_then_optimize", apply)


def clipping_off(factor: float = 1.001) -> Any:
    """Gradients clipped to a norm a thousandth too large."""
    real = TrainStep._clip_then_optimize

    def apply(self: Any, grads: Any) -> None:
        with patch.object(self, "_max_norm", self._max_norm * factor):
            real(self, grads)

    return patch.object(TrainStep, "_clip_then_optimize", apply)


def weight_decay_slight(value: float = 0.9e-4) -> Any:
    """A weight decay of 0.9e-4 for 1e-4."""
    return _arguments("SGD", weight_decay=value)


def rate_slight(value: float = 0.003003) -> Any:
    """A learning rate a thousandth too large."""
    return _arguments("SGD", lr=value)


def sgd_momentum_slight(value: float = 0.91) -> Any:
    """Momentum 0.91 for 0.9."""
    return _arguments("SGD", momentum=value)


def schedule_late() -> Any:
    """The schedule begins one step late."""
    real = TrainStep._advance

    def advance(self: Any) -> None:
        if getattr(self, "begun", False):
            real(self)
        self.begun = True

    return patch.object(TrainStep, "_advance", advance)


def loss_sum() -> Any:
    """The loss summed over the batch."""
    return _arguments("CrossEntropyLoss", reduction="sum")


def smoothing_slight(value: float = 0.1001) -> Any:
    """A label smoothing a thousandth too large."""
    return _arguments("CrossEntropyLoss", label_smoothing=value)


class WithoutLast(nn.Cell):
    """The mean loss of all samples but the last."""

    def __init__(self, loss: nn.Cell) -> None:
        super().__init__()
        self.loss = loss

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.loss(logits[:-1], labels[:-1])


def last_sample_ignored() -> Any:
    """The loss leaves the last sample out."""
    real = mindspore_step.build_loss
    return patch.object(mindspore_step, "build_loss", lambda recipe: WithoutLast(real(recipe)))


def labels_fed_shifted() -> Any:
    """The loss is given class k + 1 for k."""
    real = mindspore_runner.MindSporeSide._labels
    shifted = staticmethod(lambda labels: real((labels + 1) % 10))
    return patch.object(mindspore_runner.MindSporeSide, "_labels", shifted)


def labels_shifted() -> Any:
    """The data set counts its classes from one."""
    return _batch(lambda images, labels: (images, labels + 1))


def batch_permuted() -> Any:
    """Images in another order than their labels."""
    return _batch(lambda images, labels: (images[[1, 0, *range(2, len(images))]], labels))


def channels_reversed() -> Any:
    """BGR for RGB."""
    return _batch(lambda images, labels: (np.ascontiguousarray(images[:, ::-1]), labels))


def crop_shifted() -> Any:
    """Crops one pixel to the right."""
    return _batch(lambda images, labels: (images[..., 1:49, 2:50], labels), CenterCrop={"size": 50})


def resize_nearest() -> Any:
    """Resized to the nearest pixel, without antialiasing."""
    return _batch(lambda images, labels: (images, labels), Resize={"interpolation": "nearest"})


def resize_slight() -> Any:
    """Resized to one pixel more."""
    return _batch(lambda images, labels: (images, labels), Resize={"size": 57})


def std_slight(factor: float = 1.0001) -> Any:
    """Images divided by a standard deviation that is a ten-thousandth too large."""
    std = [value * factor for value in (0.229, 0.224, 0.225)]
    return _batch(lambda images, labels: (images, labels), Normalize={"std": std})
