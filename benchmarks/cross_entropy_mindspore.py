"""How far MindSpore's cross-entropy stands from float64 on this CPU, for nets that are ever surer of what they see.

    python benchmarks/cross_entropy_mindspore.py

Logits of ten classes are normal numbers, the right one's larger by a margin. NumPy's float64 is the reference. Prints
markdown: the loss in the mean, and the largest of the mean distances over batches of 8 images.
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


def main() -> None:
    draws = np.random.default_rng(0)
    print("| margin | mean loss | largest distance of a batch's mean | as a share of the mean loss |")
    print("|---|---|---|---|")
    for margin in (0, 2, 4, 6, 8, 12):
        loss, off = distances(margin, draws)
        print(f"| {margin} | {loss:.2e} | {off:.1e} | {off / loss:.1e} |")


if __name__ == "__main__":
    main()
