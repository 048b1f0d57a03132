"""How MindSpore's CPU kernels add: what `added` says in parity/record/kernels.yaml, `python benchmarks/sums.py`.

Prints how far sums and the gradients of the biases of a Dense, a BatchNorm and a Conv2d, and of a PReLU's slopes, are
from float64, as shares of the result's root mean square, with NumPy's float32 whose numbers are added row by row, image
by image and channel X Alike rows are what fills up a window, or
what an average hands back to its pixels.
"""

from __future__ import annotations

import json
import sys

from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

import numpy as np  # noqa: E402
from mindspore import ParameterTuple, Tensor, nn, ops  # noqa: E402

SHAPES = ((1000, 64), (12544, 64), (200704, 64), (392, 768), (500, 1), (16, 784, 64), (16, 28, 28, 64))
KINDS = ("normal numbers", "their squares", "alike rows")


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


def image_by_image(images: np.ndarray) -> np.ndarray:
    """The sum over the pixels of each image, then over the images, each addition rounded to float32."""
    channels = images.shape[1]
    return one_by_one(np.stack([one_by_one(image.reshape(channels, -1).T) for image in images]))


def gradients_of_images(upstream: np.ndarray) -> list[np.ndarray]:
    """The gradients of a BatchNorm's bias and of a convolution's; upstream: (N, C, H, W)."""
    channels = upstream.shape[1]
    norm, convolution = nn.BatchNorm2d(channels), nn.Conv2d(channels, channels, 1, has_bias=True)
    norm.set_train()
    x = Tensor(np.random.default_rng(1).standard_normal(upstream.shape).astype(np.float32))
    found = []
    for layer, bias in ((norm, norm.beta), (convolution, convolution.bias)):
        by_bias = ops.GradOperation(get_by_list=True, sens_param=True)(layer, ParameterTuple([bias]))
        found.append(by_bias(x, Tensor(upstream))[0].asnumpy())
    return found


def channel_by_channel(images: np.ndarray) -> np.ndarray:
    """The sum of each channel over all images, pixel after pixel, each addition rounded to float32."""
    return one_by_one(np.moveaxis(images, 1, -1).reshape(-1, images.shape[1]))


def gradient_of_slopes(upstream: np.ndarray) -> np.ndarray:
    """The gradient of a PReLU's slopes, one for each channel, where every input is -1; upstream: (N, C, H, W)."""
    layer = nn.PReLU(upstream.shape[1])
    by_slope = ops.GradOperation(get_by_list=True, sens_param=True)(layer, ParameterTuple([layer.w]))
    found: np.ndarray = by_slope(Tensor(-np.ones_like(upstream)), Tensor(upstream))[0].asnumpy()
    return -found


def drawn(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """What is added up."""
    terms = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    if kind == "alike rows":
        return np.broadcast_to(terms.reshape(-1, shape[-1])[0], shape).copy()
    return terms if kind == "normal numbers" else terms**2


def main() -> None:
    """Print the table, or how much of it is not to the bit what `added` says."""
    unlike = dict.fromkeys(("sum", "batch_norm", "convolution", "prelu"), 0.0)
    lines = ["| added | of | ops.sum | Dense's bias | row by row | BatchNorm's bias | Conv2d's | image by image "]
    lines[0] += "| PReLU's slopes | channel by channel |"
    lines += ["|---|---|---|---|---|---|---|---|---|---|"]
    for kind in KINDS:
        for shape in SHAPES:
            terms = drawn(kind, shape)
            rows = terms.reshape(-1, shape[-1])
            images = np.ascontiguousarray(rows.T.reshape(shape[-1], 4, -1, 1).transpose(1, 0, 2, 3))
            exact = rows.astype(np.float64).sum(0)
            summed = ops.sum(Tensor(terms), tuple(range(len(shape) - 1))).asnumpy()
            by_row, by_image, by_channel = one_by_one(rows), image_by_image(images), channel_by_channel(images)
            of_dense, (of_norm, of_convolution) = bias_gradient(terms), gradients_of_images(images)
            of_prelu = gradient_of_slopes(images)
            for name, found, expected in (
                ("sum", of_dense, by_row),
                ("batch_norm", of_norm, by_image),
                ("convolution", of_convolution, by_image),
            ):
                unlike[name] = max(unlike[name], float((found != expected).mean()))
            unlike["prelu"] = max(unlike["prelu"], abs(apart(of_prelu, exact) / apart(by_channel, exact) - 1))
            all_of_them = (summed, of_dense, by_row, of_norm, of_convolution, by_image, of_prelu, by_channel)
            cells = [f"{apart(found, exact):.1e}" for found in all_of_them]
            lines.append(f"| {' × '.join(map(str, shape))} | {kind} | {' | '.join(cells)} |")
    print(json.dumps(unlike) if "--json" in sys.argv[1:] else "\n".join(lines))


if __name__ == "__main__":
    main()
    leave()
