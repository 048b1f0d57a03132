"""What each option of a recipe costs a training step: option_cost.py [--model resnet18] [--side 64] [--batch 32].

All steps are compiled and take turns in one process, on the same batch; the median of the steps counts. Watchpoints
look at every step here, which a recipe would have them do every hundredth. Prints markdown.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor  # noqa: E402
from msmigrate.training.models import mindspore_models  # noqa: E402
from msmigrate.training.recipe.schema import Recipe, Watch  # noqa: E402
from msmigrate.training.run.mindspore_watchpoints import Watchpoints  # noqa: E402
from msmigrate.training.step.mindspore_step import TrainStep  # noqa: E402

WARM = 3
OPTIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "clip": {"clip": {"max_norm": 5.0}},
    "loss_scale": {"loss_scale": 1024.0},
    "dynamic_loss_scale": {"dynamic_loss_scale": {}},
    "ema": {"ema": {"decay": 0.999}},
    "accumulate 2": {"accumulate": 2},
    "accumulate 4": {"accumulate": 4},
    "clip, dynamic_loss_scale, ema": {"clip": {"max_norm": 5.0}, "dynamic_loss_scale": {}, "ema": {"decay": 0.999}},
    "watch: gradients": {"watch": {"vanishing": 1e-12, "exploding": 1e6}},
    "watch: gradients, weights": {"watch": {"exploding": 1e6, "unchanged": True, "large_change": 10.0}},
    "watch: dead ReLUs too": {"watch": {"exploding": 1e6, "unchanged": True, "dead_relu": 1.0}},
    "amp O1": {"amp": {"level": "O1"}, "loss_scale": 1024.0},
    "amp O2": {"amp": {"level": "O2"}, "loss_scale": 1024.0},
}


def build(model: str, options: dict[str, Any]) -> Callable[[Tensor, Tensor], Any]:
    optimizer = {"name": "SGD", "args": {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-4}}
    tree = {"model": {"name": model, "args": {"num_classes": 10}}, "data": {"batch": 32}, "optimizer": optimizer}
    mindspore.set_seed(1)
    net = mindspore_models.build(model, num_classes=10).set_train()
    watch = options.get("watch")
    if watch is not None:
        step = TrainStep(Recipe.model_validate(tree), net, mode="graph", look="gradients")
        points = Watchpoints(step, Watch.model_validate({**watch, "every": 1}))
        return lambda images, labels: points.take(images, labels)[0].loss.asnumpy()
    step = TrainStep(Recipe.model_validate({**tree, **options}), net, mode="graph", look="gradients")
    return lambda images, labels: step.train(images, labels).loss.asnumpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=12)
    arguments = parser.parse_args()
    generator = np.random.default_rng(0)
    images = Tensor(generator.standard_normal((arguments.batch, 3, arguments.side, arguments.side), dtype=np.float32))
    labels = Tensor(generator.integers(0, 10, arguments.batch).astype(np.int32))
    steps = {name: build(arguments.model, options) for name, options in OPTIONS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(arguments.steps + WARM):
        for name, step in steps.items():
            began = time.perf_counter()
            step(images, labels)
            seconds[name].append(time.perf_counter() - began)
    bare = statistics.median(seconds["none"][WARM:])
    print(f"{os.cpu_count()} cores, {arguments.model}, batch {arguments.batch}, {arguments.side}²\n")
    print("| option | s a step, median | against none | first step, with compilation |\n|---|---|---|---|")
    for name, values in seconds.items():
        median = statistics.median(values[WARM:])
        print(f"| {name} | {median:.3f} | {median / bare:.2f} × | {values[0]:.1f} s |")


if __name__ == "__main__":
    main()
    leave(0)
