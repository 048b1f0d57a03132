"""The same steps as wrappers of MindSpore's: with a reducer of the parent cell, of a flag, or none, and with sums in
lists, in parameters, and in an object of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from msmigrate.optim import AdamW


def net() -> nn.Cell:
    conv = nn.Conv2d(3, 6, 3, stride=2, pad_mode="pad", padding=1, has_bias=True)
    return nn.SequentialCell(conv, nn.Tanh(), nn.Flatten(), nn.Dense(6 * 8 * 8, 12), nn.Tanh(), nn.Dense(12, 5))


def optimizer(model: nn.Cell, decay: float = 0.1) -> Any:
    return AdamW(model.trainable_params(), lr=0.01, weight_decay=decay)


def clipped(grads: Sequence[Tensor], by: str) -> tuple[Tensor, ...]:
    if by == "value":
        return tuple(ops.clip_by_value(grad, Tensor(-0.003, ms.float32), Tensor(0.003, ms.float32)) for grad in grads)
    if by == "each":
        return tuple(ops.clip_by_norm(grad, 0.05) for grad in grads)
    return tuple(ops.clip_by_global_norm(tuple(grads), 20.0 if by == "high" else 0.1)) if by else tuple(grads)


class Inherited(nn.TrainOneStepCell):
    """A cell of MindSpore's with its reducer, and clipping on one side of it."""

    def __init__(self, model: nn.Cell, by: str, before: bool) -> None:
        super().__init__(nn.WithLossCell(model, nn.CrossEntropyLoss()), optimizer(model))
        self.by, self.before = by, before

    def construct(self, images: Tensor, labels: Tensor) -> Any:
        loss = self.network(images, labels)
        grads = ops.grad(self.network, None, self.weights)(images, labels)
        if self.before:
            grads = self.grad_reducer(clipped(grads, self.by))
        else:
            grads = clipped(self.grad_reducer(grads), self.by)
        self.optimizer(grads)
        return loss


class Flagged(nn.Cell):
    """A wrapper that asks for its reducer on several processes only; `compiled` hides all of it."""

    def __init__(self, model: nn.Cell, by: str, before: bool, calls: Any) -> None:
        super().__init__(auto_prefix=False)
        self.backbone, self.criterion, self.by, self.before = model, nn.CrossEntropyLoss(), by, before
        self.opt = optimizer(model)
        self.reducer_flag, self.grad_reducer, self.calls = False, None, calls
        self.differentiate = ms.value_and_grad(self.forward, None, self.opt.parameters)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.criterion(self.backbone(images), labels)

    def construct(self, images: Tensor, labels: Tensor) -> Any:
        loss, grads = self.differentiate(images, labels)
        if self.before:
            grads = clipped(grads, self.by)
        if self.reducer_flag and self.calls:
            grads = self.grad_reducer(grads)
        if not self.before:
            grads = clipped(grads, self.by)
        self.opt(grads)
        return loss


def inherited(by: str = "", before: bool = False) -> Any:
    model = net()
    return {"model": model, "step": Inherited(model, by, before)}


def flagged(by: str = "", before: bool = False, calls: bool = True) -> Any:
    model = net()
    return {"model": model, "step": Flagged(model, by, before, calls)}


class Listed:
    """An engine that is no Cell and keeps its sums in a list."""

    def __init__(self, model: nn.Cell, every: int, forgets: bool, made: Any) -> None:
        self.optimizer, self.every, self.forgets = made, every, forgets
        self.grads: list[Tensor] | None = None
        self.batches = 0

        def forward(images: Tensor, labels: Tensor) -> Tensor:
            return ops.cross_entropy(model(images), labels) / every

        self.value_and_grad = ms.value_and_grad(forward, None, self.optimizer.parameters)

    def __call__(self, images: Tensor, labels: Tensor) -> Any:
        loss, grads = self.value_and_grad(images, labels)
        self.grads = list(grads) if self.grads is None else [a + b for a, b in zip(self.grads, grads, strict=True)]
        self.batches += 1
        if self.batches % self.every == 0:
            self.optimizer(tuple(self.grads))
            if not self.forgets:
                self.grads = None
        return loss * self.every


def sgd(lr: float = 0.01, of_biases: float = 0.01) -> Any:
    """MindSpore's SGD, with a rate of the biases' own."""
    model = net()
    params = model.trainable_params()
    biases = {"params": [p for p in params if p.ndim == 1], "lr": of_biases}
    made = nn.SGD([{"params": [p for p in params if p.ndim > 1]}, biases], lr)
    return {"model": model, "step": Listed(model, 1, False, made)}


def listed(every: int = 1, forgets: bool = False, decay: float = 0.1) -> Any:
    model = net()
    return {"model": model, "step": Listed(model, every, forgets, optimizer(model, decay))}


class Accumulator:
    """What stands where the optimizer would: it adds up, and calls the optimizer at every n-th time."""

    def __init__(self, model: nn.Cell, every: int, by: str, forgets: bool) -> None:
        self.optimizer, self.every, self.by, self.forgets = optimizer(model), every, by, forgets
        self.inner_grads = self.optimizer.parameters.clone(prefix="accumulate_", init="zeros")
        self.counter = Parameter(Tensor(1, ms.int32), "counter_")

    def __call__(self, grads: Sequence[Tensor]) -> None:
        for total, grad in zip(self.inner_grads, grads, strict=True):
            ops.assign_add(total, grad)
        if int(self.counter) % self.every == 0:
            self.optimizer(clipped(self.inner_grads, self.by))
            kept = list(self.inner_grads)[:2] if self.forgets else []  # the first layer's
            for total in self.inner_grads:
                if all(total is not one for one in kept):
                    ops.assign(total, ops.zeros_like(total))
        ops.assign_add(self.counter, Tensor(1, ms.int32))


class Engine:
    """Holds its optimizer in an accumulator."""

    def __init__(self, model: nn.Cell, every: int, by: str, forgets: bool) -> None:
        self.accumulator = Accumulator(model, every, by, forgets)
        self.loss = nn.WithLossCell(model, nn.CrossEntropyLoss())

        def forward(images: Tensor, labels: Tensor) -> Tensor:
            return self.loss(images, labels) / every

        self.grad_fn = ms.value_and_grad(forward, None, self.accumulator.optimizer.parameters)
        self.every = every

    def __call__(self, images: Tensor, labels: Tensor) -> Any:
        loss, grads = self.grad_fn(images, labels)
        self.accumulator(grads)
        return {"loss": loss * self.every}


def engine(every: int = 2, by: str = "", forgets: bool = False) -> Any:
    model = net()
    return {"model": model, "step": Engine(model, every, by, forgets)}


def function() -> Any:
    model = net()

    def step(model: nn.Cell, optimizer: Any, images: Tensor, labels: Tensor) -> Any:
        def forward(images: Tensor, labels: Tensor) -> Tensor:
            return ops.cross_entropy(model(images), labels)

        loss, grads = ms.value_and_grad(forward, None, optimizer.parameters)(images, labels)
        optimizer(grads)
        return loss

    return {"model": model, "optimizer": optimizer(model), "step": step}


class Cut(nn.Cell):
    """A wrapper that cuts a batch into micro-batches and clips each one's gradients, or their mean."""

    def __init__(self, model: nn.Cell, parts: int, by: str, each: bool) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.optimizer = nn.WithLossCell(model, nn.CrossEntropyLoss()), optimizer(model)
        self.grad_fn = ms.value_and_grad(self.network, None, self.optimizer.parameters)
        self.parts, self.by, self.each = parts, by, each

    def construct(self, images: Tensor, labels: Tensor) -> Any:
        total, losses = [ops.zeros_like(weight) for weight in self.optimizer.parameters], 0.0
        x, y = ops.chunk(images, self.parts), ops.chunk(labels, self.parts)
        for part in range(self.parts):
            loss, grads = self.grad_fn(x[part], y[part])
            grads = clipped(grads, self.by if self.each else "")
            total = [total[i] + grads[i] / self.parts for i in range(len(total))]  # graph mode has no zip(strict=…)
            losses += loss / self.parts
        self.optimizer(tuple(total) if self.each else clipped(total, self.by))
        return losses


def cut(parts: int = 2, by: str = "norm", each: bool = True) -> Any:
    model = net()
    return {"model": model, "step": Cut(model, parts, by, each)}


class Averaging:
    """A trainer that is no Cell, whose step is a method, with the averages in a Cell of their own."""

    def __init__(self, model: nn.Cell, decay: float) -> None:
        self.opt = nn.SGD(model.trainable_params(), 0.01)
        self.average = Average(list(model.get_parameters()), decay)

        def forward(images: Tensor, labels: Tensor) -> Tensor:
            return ops.cross_entropy(model(images), labels)

        self.value_and_grad = ms.value_and_grad(forward, None, self.opt.parameters)

    def train_step(self, images: Tensor, labels: Tensor) -> Any:
        loss, grads = self.value_and_grad(images, labels)
        self.opt(grads)
        self.average()
        return loss


class Average(nn.Cell):
    def __init__(self, weights: list[Parameter], decay: float) -> None:
        super().__init__()
        self.weights, self.decay = weights, decay
        self.held = [Parameter(p.value().copy(), name=f"average.{p.name}", requires_grad=False) for p in weights]

    def construct(self) -> None:
        for average, weight in zip(self.held, self.weights, strict=True):
            ops.assign(average, average * self.decay + weight * (1 - self.decay))


def averaging(decay: float = 0.9) -> Any:
    conv = nn.Conv2d(3, 6, 3, stride=2, pad_mode="pad", padding=1, has_bias=True)
    model = nn.SequentialCell(conv, nn.BatchNorm2d(6), nn.Flatten(), nn.Dense(6 * 8 * 8, 5))
    return {"model": model, "step": Averaging(model, decay).train_step}
