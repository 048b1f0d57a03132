"""How MindSpore's CPU kernels add: the figures of sums in parity/record/kernels.yaml, `python benchmarks/sums.py`.

Prints how far sums, a bias's gradient and that of a BatchNorm's bias are from float64, as shares of the result's root
mean square, with NumPy's float32 whose numbers are added one after the other, and what `distance` of the table says of
such sums; with --json only the distances of one addition that the gradients of normal numbers give, in the mean.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from msmigrate.parity.noise import kernels
from msmigrate.workers import mindspore_environment
from msmigrate.workers.worker import leave

mindspore_environment.prepare()

import numpy as np  # noqa: E402
from mindspore import ParameterTuple, Tensor, nn, ops  # noqa: E402

SHAPES = ((1000, 64), (12544, 64), (200704, 64), (16, 784, 64), (16, 28, 28, 64))


def apart(found: np.ndarray, exact: np.ndarray) -> float:
    """Root mean square of the error, as a share of the result's."""
    return float(np.sqrt(((found - exact) ** 2).mean() / (exact**2).mean()))


def one_by_one(rows: np.ndarray) -> np.ndarray:
    """The sum over the rows, each rounded to float32."""
    total = np.zeros(rows.shape[1], np.float32)
    for row in rows:
        total += row
    return total


def bias_gradient(upstream: np.ndarray) -> np.ndarray:
    """The gradient of a Dense layer's bias."""
    layer, x = nn.Dense(4, upstream.shape[-1]), Tensor(np.zeros((*upstream.shape[:-1], 4), np.float32))
    by_bias = ops.GradOperation(get_by_list=True, sens_param=True)(layer, ParameterTuple([layer.bias]))
    found: np.ndarray = by_bias(x, Tensor(upstream))[0].asnumpy()
    return found


def norm_gradient(upstream: np.ndarray) -> np.ndarray:
    """The gradient of a BatchNorm's bias. upstream: in rows, one a pixel; in memory the channels come first."""
    rows, channels = upstream.reshape(-1, upstream.shape[-1]), upstream.shape[-1]
    images = np.ascontiguousarray(rows.T.reshape(channels, 8, -1, 1).transpose(1, 0, 2, 3))
    layer, x = nn.BatchNorm2d(channels), np.random.default_rng(1).standard_normal(images.shape).astype(np.float32)
    layer.set_train()
    by_bias = ops.GradOperation(get_by_list=True, sens_param=True)(layer, ParameterTuple([layer.beta]))
    found: np.ndarray = by_bias(Tensor(x), Tensor(images))[0].asnumpy()
    return found


def sums(terms: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The terms in rows, their exact sum, and by how much a rounding of 1 in each addition moves it, as a share."""
    rows = terms.reshape(-1, terms.shape[-1])
    so_far = rows.astype(np.float64).cumsum(0)
    return rows, so_far[-1], float(np.sqrt((so_far**2).sum(0).mean() / (so_far[-1] ** 2).mean()))


def one_addition(gradient: Callable[[np.ndarray], np.ndarray]) -> float:
    """The distance of one addition, as the gradients of biases give it: the geometric mean over shapes and draws."""
    distances = []
    for shape in SHAPES[:3]:
        for seed in range(4):
            terms = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
            _, exact, moved = sums(terms)
            distances.append(apart(gradient(terms), exact) / moved)
    return float(np.exp(np.log(distances).mean()))


def main() -> None:
    """Print the table, or the one figure."""
    if "--json" in sys.argv[1:]:
        print(json.dumps({"sum": one_addition(bias_gradient), "batch_norm": one_addition(norm_gradient)}))
        return
    distances = {kernel.function: kernel.distance for kernel in kernels() if kernel.each_addition}
    print("| added | of | ops.sum | Dense's bias | one after the other | the table | BatchNorm's bias | the table |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in ("normal numbers", "their squares"):
        for shape in SHAPES:
            terms = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
            terms = terms if kind == "normal numbers" else terms**2
            rows, exact, moved = sums(terms)
            summed = ops.sum(Tensor(terms), tuple(range(len(shape) - 1))).asnumpy()
            found = [apart(one, exact) for one in (summed, bias_gradient(terms), one_by_one(rows))]
            of_norm = [apart(norm_gradient(terms), exact), distances["batch_norm"] * moved]
            cells = [f"{off:.1e}" for off in (*found, distances["sum"] * moved, *of_norm)]
            print(f"| {' × '.join(map(str, shape))} | {kind} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
    leave()
