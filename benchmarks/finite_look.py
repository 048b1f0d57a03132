"""Seconds that MindSpore's CPU takes to see whether ResNet-18's gradients are finite: its own function, and ours.

    python benchmarks/finite_look.py [--rounds 15]

Both are compiled and take turns. Prints markdown.
"""

from __future__ import annotations

import argparse
import statistics
import time

from msmigrate.workers.worker import prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, amp  # noqa: E402
from msmigrate.training.models import mindspore_models  # noqa: E402
from msmigrate.training.step.mindspore_amp import all_times_zero  # noqa: E402


@mindspore.jit
def theirs(grads: tuple[Tensor, ...]) -> Tensor:
    return amp.all_finite(grads)


@mindspore.jit
def ours(grads: tuple[Tensor, ...]) -> Tensor:
    return all_times_zero(grads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    generator = np.random.default_rng(0)
    net = mindspore_models.build("resnet18", num_classes=10)
    shapes = [parameter.shape for parameter in net.trainable_params()]
    # a tuple that is not mutable is a constant to what is compiled
    grads = mindspore.mutable(tuple(Tensor(generator.standard_normal(s).astype(np.float32)) for s in shapes))
    seconds: dict[str, list[float]] = {"mindspore.amp.all_finite": [], "msmigrate": []}
    for _ in range(rounds + 1):
        for name, look in zip(seconds, (theirs, ours), strict=True):
            start = time.perf_counter()
            assert bool(look(grads).asnumpy())
            seconds[name].append(time.perf_counter() - start)
    base = statistics.median(seconds["mindspore.amp.all_finite"][1:])
    print(f"{len(shapes)} gradients, {sum(int(np.prod(shape)) for shape in shapes) / 1e6:.1f} million numbers\n")
    print("| | s, median (range) | |\n|---|---|---|")
    for name, (_, *values) in seconds.items():
        median = statistics.median(values)
        print(f"| {name} | {median:.3f} ({min(values):.3f}–{max(values):.3f}) | {median / base:.2f} × |")


if __name__ == "__main__":
    main()
