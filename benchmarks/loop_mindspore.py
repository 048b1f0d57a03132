"""Seconds of a training step in MindSpore: loop_mindspore.py KIND MODEL SIDE BATCH STEPS, KIND one of

functional   the loop of MindSpore's own tutorials: value_and_grad and the optimizer in one compiled function
model        mindspore.Model.train with the network, loss and nn.SGD
msmigrate    the step that `msmigrate train` runs
msmigrate-loss   the same with `train.finite: loss` in the recipe, which looks at the loss alone before an update

Every kind gets the same batches from memory and the same starting weights. Prints JSON: seconds of every step after the
first three, and of the first with its compilation.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any, Literal

from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, dataset, nn  # noqa: E402
from msmigrate.training import device_targets  # noqa: E402
from msmigrate.training.models import mindspore_models  # noqa: E402
from msmigrate.training.recipe.schema import Recipe  # noqa: E402
from msmigrate.training.step.mindspore_step import TrainStep  # noqa: E402

RATE, MOMENTUM, DECAY = 0.01, 0.9, 1e-4
WARM = 3


def batches(side: int, batch: int, steps: int) -> list[tuple[np.ndarray, np.ndarray]]:
    generator = np.random.default_rng(0)
    images = generator.standard_normal((batch, 3, side, side), dtype=np.float32)
    labels = generator.integers(0, 10, batch).astype(np.int32)
    return [(images, labels)] * steps


def functional(net: nn.Cell, given: list[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    loss_function = nn.CrossEntropyLoss()
    optimizer = nn.SGD(net.trainable_params(), RATE, MOMENTUM, weight_decay=DECAY)

    def forward(images: Tensor, labels: Tensor) -> Tensor:
        return loss_function(net(images), labels)

    value_and_grad = mindspore.value_and_grad(forward, None, optimizer.parameters)

    @mindspore.jit
    def step(images: Tensor, labels: Tensor) -> Tensor:
        loss, grads = value_and_grad(images, labels)
        optimizer(grads)
        return loss

    return timed(lambda x, y: step(x, y).asnumpy(), given)


def msmigrate(
    net: nn.Cell, given: list[tuple[np.ndarray, np.ndarray]], model: str, look: Literal["gradients", "loss"]
) -> list[float]:
    recipe = Recipe.model_validate(
        {
            "model": {"name": model, "args": {"num_classes": 10}},
            "optimizer": {"name": "SGD", "args": {"lr": RATE, "momentum": MOMENTUM, "weight_decay": DECAY}},
        }
    )
    device_targets.use("CPU", 0, mindspore.PYNATIVE_MODE)  # as `msmigrate train` does before it compiles the step
    step = TrainStep(recipe, net, mode="graph", look=look)
    return timed(lambda x, y: step.train(x, y).loss.asnumpy(), given)


def timed(step: Callable[[Tensor, Tensor], Any], given: list[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    seconds = []
    for images, labels in given:
        began = time.perf_counter()
        step(Tensor(images), Tensor(labels))
        seconds.append(time.perf_counter() - began)
    return seconds


class Clock(mindspore.Callback):
    """The end of every step, which waits for the loss as the other loops do."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def step_begin(self, run_context: Any) -> None:
        self.began = time.perf_counter()

    def step_end(self, run_context: Any) -> None:
        run_context.original_args().net_outputs.asnumpy()
        self.seconds.append(time.perf_counter() - self.began)


def model_train(net: nn.Cell, given: list[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    optimizer = nn.SGD(net.trainable_params(), RATE, MOMENTUM, weight_decay=DECAY)
    model = mindspore.Model(net, nn.CrossEntropyLoss(), optimizer)
    images = dataset.GeneratorDataset(given, ["image", "label"], shuffle=False, num_parallel_workers=1)
    clock = Clock()
    model.train(1, images, callbacks=[clock], dataset_sink_mode=False)
    return clock.seconds


def main(kind: str, name: str, side: int, batch: int, steps: int) -> None:
    mindspore.set_seed(1)
    net = mindspore_models.build(name, num_classes=10).set_train()
    given = batches(side, batch, steps + WARM)
    if kind.startswith("msmigrate"):
        seconds = msmigrate(net, given, name, "loss" if kind.endswith("loss") else "gradients")
    else:
        seconds = functional(net, given) if kind == "functional" else model_train(net, given)
    print(json.dumps({"first": seconds[0], "steps": seconds[WARM:]}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
    leave(0)
