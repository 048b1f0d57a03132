"""How far MindSpore's cross-entropy stands from float64 on this CPU, for nets that are ever surer of what they see.

    python benchmarks/cross_entropy_mindspore.py

Logits of ten classes are normal numbers, the right one's larger by a margin. NumPy's float64 is the reference. Prints
markdown: the loss in the mean, and the largest of the mean distances over batches of 8 images; then how far the
gradient of the last layer's bias is off for 64 images whose logits are nearly alike, as before any training.
"""

from __future__ import annotations

import os

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

import mindspore as ms
import numpy as np
from mindspore import ops

BATCH, BATCHES, CLASSES = 8, 512, 10


def distances(margin: float, draws: np.random.Generator) -> tuple[float, float]:
    """The mean loss, and how far a batch's mean is off at the most."""
    count = BATCH * BATCHES
    x = draws.normal(size=(count, CLASSES)).astype(np.float32)
    y = draws.integers(0, CLASSES, count).astype(np.int32)
    x[np.arange(count), y] += np.float32(margin)
    exact = x.astype(np.float64)
    largest = exact.max(axis=1)
    reference = largest + np.log(np.exp(exact - largest[:, None]).sum(axis=1)) - exact[np.arange(count), y]
    found = ops.cross_entropy(ms.Tensor(x), ms.Tensor(y), reduction="none").asnumpy().astype(np.float64)
    off = np.abs((found - reference).reshape(BATCHES, BATCH).mean(axis=1))
    return float(reference.mean()), float(off.max())


def bias_gradients(spread: float, draws: np.random.Generator) -> tuple[float, float]:
    """How far the sum over a batch of the logits' gradients is off, as a share of it: MindSpore's and NumPy's float32,
    each the largest of 100 batches. spread: the standard deviation of an image's logits from those of the others."""
    worst = [0.0, 0.0]
    for _ in range(100):
        x = (draws.normal(size=CLASSES) + spread * draws.normal(size=(64, CLASSES))).astype(np.float32)
        y = draws.integers(0, CLASSES, 64).astype(np.int32)
        exact = by_logits(x.astype(np.float64), y)
        found = ms.grad(lambda x, y=y: ops.cross_entropy(x, ms.Tensor(y)))(ms.Tensor(x)).asnumpy()
        for i, each in enumerate((found, by_logits(x, y))):
            off = each.astype(np.float64).sum(0) - exact.sum(0)
            worst[i] = max(worst[i], float(np.linalg.norm(off) / np.linalg.norm(exact.sum(0))))
    return worst[0], worst[1]


def by_logits(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The gradient of the mean loss by the logits, in their dtype."""
    shares = np.exp(x - x.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(y)), y] -= 1
    found: np.ndarray = shares / len(y)
    return found


def main() -> None:
    draws = np.random.default_rng(0)
    print("| margin | mean loss | largest distance of a batch's mean | as a share of the mean loss |")
    print("|---|---|---|---|")
    for margin in (0, 2, 4, 6, 8, 12):
        loss, off = distances(margin, draws)
        print(f"| {margin} | {loss:.2e} | {off:.1e} | {off / loss:.1e} |")
    print(
        "\n| logits of the images apart by | the last bias's gradient is off by | NumPy's float32 by |\n|---|---|---|"
    )
    for spread in (0.0, 0.01, 0.1, 1.0):
        theirs, plain = bias_gradients(spread, draws)
        print(f"| {spread:g} | {theirs:.1e} | {plain:.1e} |")


if __name__ == "__main__":
    main()
