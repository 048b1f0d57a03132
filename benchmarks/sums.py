"""How MindSpore's CPU kernels add: the figure of sums in mappings/kernels.yaml, `python benchmarks/sums.py`.

Prints how far sums and a bias's gradient stand from float64, as shares of the result's root mean square, beside NumPy's
float32 with numbers that are added one after the other, and what `distance` of the table says of such a sum; with
--json only the distance of one addition that the gradients of normal numbers tell, in the mean.
"""

from __future__ import annotations

import json
import sys

from msmigrate.mappings.kernels import kernels
from msmigrate.training import mindspore_environment

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


def sums(terms: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The terms in rows, their exact sum, and by how much a rounding of 1 in each addition moves it, as a share."""
    rows = terms.reshape(-1, terms.shape[-1])
    so_far = rows.astype(np.float64).cumsum(0)
    return rows, so_far[-1], float(np.sqrt((so_far**2).sum(0).mean() / (so_far[-1] ** 2).mean()))


def one_addition() -> float:
    """The distance of one addition, as the gradients of biases tell it: the geometric mean over the shapes."""
    told = []
    for shape in SHAPES[:3]:
        terms = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        _, exact, moved = sums(terms)
        told.append(apart(bias_gradient(terms), exact) / moved)
    return float(np.exp(np.log(told).mean()))


def main() -> None:
    """Print the table, or the one figure."""
    if "--json" in sys.argv[1:]:
        print(json.dumps(one_addition()))
        return
    distance = next(kernel.distance for kernel in kernels() if kernel.each_addition)
    print("| added | of | ops.sum | gradient of Dense's bias | one after the other | the table |")
    print("|---|---|---|---|---|---|")
    for kind in ("normal numbers", "their squares"):
        for shape in SHAPES:
            terms = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
            terms = terms if kind == "normal numbers" else terms**2
            rows, exact, moved = sums(terms)
            summed = ops.sum(Tensor(terms), tuple(range(len(shape) - 1))).asnumpy()
            found = [apart(one, exact) for one in (summed, bias_gradient(terms), one_by_one(rows))]
            cells = [f"{off:.1e}" for off in (*found, distance * moved)]
            print(f"| {' × '.join(map(str, shape))} | {kind} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
    mindspore_environment.leave()
