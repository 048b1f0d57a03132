"""The same net in MindSpore with the parts of a step, as docs/your_own_pair.md shows them; every function is a
--mindspore. What `Wrapper` is given as `fault` are mistakes that people make in such wrappers."""

import math
from typing import Any

import mindspore as ms
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.fc = nn.Dense(8, 5)

    def construct(self, x: Tensor) -> Any:
        return self.fc(ops.relu(self.bn(self.conv(x))).mean((2, 3)))


def model() -> Any:
    return Net()


def with_loss(weights: Any = (1.0, 2.0, 1.0, 2.0, 1.0)) -> Any:
    return {"model": Net(), "loss": nn.CrossEntropyLoss(Tensor(weights, ms.float32), label_smoothing=0.1)}


def with_optimizer() -> Any:
    net = Net()
    return {"model": net, "optimizer": nn.SGD(net.trainable_params(), 0.05, momentum=0.9)}


def with_step(parts: int = 2, clip: float = 0.05, compiled: bool = False) -> Any:
    def step(model: Any, optimizer: Any, images: Any, labels: Any) -> Any:
        weights = optimizer.parameters

        def forward(x: Any, y: Any) -> Any:
            logits = model(x)
            return ops.cross_entropy(logits, y) / parts, logits

        def gradients(x: Any, y: Any) -> Any:
            return ms.value_and_grad(forward, None, weights, has_aux=True)(x, y)

        gradients = ms.jit(gradients) if compiled else gradients
        total: Any = 0.0
        sums: Any = None
        size = images.shape[0] // parts
        for at in range(0, images.shape[0], size):
            (loss, _), grads = gradients(images[at : at + size], labels[at : at + size])
            total = total + loss
            sums = grads if sums is None else [a + b for a, b in zip(sums, grads, strict=True)]
        clipped = ops.clip_by_global_norm(tuple(sums), clip)
        optimizer(clipped)
        if not compiled:
            return total
        # of a compiled step nothing can be seen from outside
        return {"loss": total, "grads": {weight.name: grad for weight, grad in zip(weights, clipped, strict=True)}}

    return {"model": Net(), "step": step}


def with_cell() -> Any:
    net = Net()
    optimizer = nn.SGD(net.trainable_params(), 0.05, momentum=0.9)
    return {"model": net, "step": nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)}


def scheduled(total: int = 8) -> Any:
    """A rate for each step, as MindSpore's optimizers take them."""
    rates = [0.025 * (1 + math.cos(math.pi * i / total)) for i in range(total)]
    net = Net()
    optimizer = nn.SGD(net.trainable_params(), rates, momentum=0.9)
    return {"model": net, "step": nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)}


class Wrapper(nn.Cell):
    """A training wrapper: loss scale, accumulation over calls, clipping by the global norm, a moving average."""

    def __init__(
        self,
        net: nn.Cell,
        optimizer: nn.Optimizer,
        calls: int = 1,
        clip: Any = None,
        sens: float = 1.0,
        decay: float = 0.9,
        fault: str = "",
    ) -> None:
        super().__init__(auto_prefix=False)
        self.network = nn.WithLossCell(net, nn.CrossEntropyLoss())
        self.optimizer, self.weights = optimizer, optimizer.parameters
        self.calls, self.clip, self.sens, self.decay, self.fault = calls, clip, sens, decay, fault
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.sums = self.weights.clone(prefix="sums", init="zeros")
        self.count = Parameter(Tensor(0, ms.int32), name="count", requires_grad=False)
        several = ms.get_auto_parallel_context("parallel_mode") == ms.ParallelMode.DATA_PARALLEL
        self.grad_reducer = nn.DistributedGradReducer(self.weights) if several else nn.Identity()
        held = net.trainable_params() if fault == "average without buffers" else list(net.get_parameters())
        self.held = ParameterTuple(held)
        self.averages = ParameterTuple(
            [Parameter(p.value().copy(), f"average.{p.name}", requires_grad=False) for p in held]
        )

    def construct(self, images: Tensor, labels: Tensor) -> Any:
        loss = self.network(images, labels)
        parts = 1 if self.fault == "not divided" else self.calls
        sens = ops.fill(loss.dtype, loss.shape, self.sens / parts)
        grads = self.grad(self.network, self.weights)(images, labels, sens)
        if self.fault != "scale left":
            grads = [grad / self.sens for grad in grads]
        if self.fault == "clipped separately":
            grads = ops.clip_by_global_norm(tuple(grads), self.clip / self.calls)
        for total, grad in zip(self.sums, grads):  # noqa: B905 (compiled, zip has no strict)
            ops.assign_add(total, grad)
        self.count += 1
        if int(self.count) % self.calls == 0:
            self.update()
        return loss

    def update(self) -> None:
        grads = tuple(self.sums)  # the parameters themselves, which are cleared next
        if self.fault == "clipped before the reducer":
            grads = ops.clip_by_global_norm(grads, self.clip)
        grads = self.grad_reducer(grads)
        if self.clip and not self.fault.startswith(("clipped", "not clipped")):
            grads = ops.clip_by_global_norm(grads, self.clip)
        if self.fault == "averaged before":
            self.average()
        self.optimizer(grads)
        if self.fault != "sums kept":
            for total in self.sums:
                ops.assign(total, ops.zeros_like(total))
        if self.fault != "averaged before":
            self.average()

    def average(self) -> None:
        for average, value in zip(self.averages, self.held):  # noqa: B905
            ops.assign(average, average * self.decay + value * (1 - self.decay))


def wrapper(**options: Any) -> Any:
    net = Net()
    return {"model": net, "step": Wrapper(net, nn.SGD(net.trainable_params(), 0.05, momentum=0.9), **options)}
