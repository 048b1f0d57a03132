"""Measures torch_precision: prints {format: {what: relative errors}} as JSON."""

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from msmigrate.parity.record.torch_precision import (
    Precision,
    computing_in,
    rounding_as_mindspore,
    shortened,
    shortening,
)
from torch import nn

torch.manual_seed(0)
X = torch.randn(100_000)
X = X[X.abs() > 1e-3]  # below 6e-5 float16 has fewer bits
SPECIAL = torch.tensor([float("inf"), float("-inf"), float("nan"), 0.0])


def rounding(name: str) -> dict[str, list[float]]:
    short = shortened(X, name)
    unit = 2.0 ** -{"hf32": 11, "tf32": 10, "fp16": 10, "bf16": 7}.get(name, 23)
    ties = shortened(torch.tensor([1.0 + 0.5 * unit, 1.0 + 1.5 * unit]), name) - torch.tensor([1.0, 1.0 + 2 * unit])
    special = shortened(SPECIAL, name)
    return {
        "rounding": [float(((short - X) / X).abs().max()), float((shortened(short, name) - short).abs().max())],
        "ties": [float(difference == 0.0) for difference in ties],
        "special": [float(a == b or (a != a and b != b)) for a, b in zip(special, SPECIAL, strict=True)],
    }


class Attention(nn.MultiheadAttention):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x, x, x, need_weights=False)[0]


class Einsum(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.einsum("nld,kd->nlk", x, self.weight)


MODULES = {
    "convolution": (nn.Conv2d(3, 8, 3), (4, 3, 8, 8)),
    "transposed": (nn.ConvTranspose2d(3, 8, 2), (4, 3, 8, 8)),
    "linear": (nn.Linear(16, 8), (4, 16)),
    "attention": (Attention(8, 2, batch_first=True), (4, 5, 8)),
    "einsum": (Einsum(16, 8), (4, 5, 16)),
    "norm alone": (nn.LayerNorm(16), (4, 16)),
}


def passed(module: nn.Module, x: torch.Tensor, dtype: torch.dtype, name: str) -> list[torch.Tensor]:
    """Output, input gradient and weight gradients."""
    module = module.to(dtype)
    for parameter in module.parameters():
        parameter.grad = None
    x = x.detach().to(dtype, copy=True).requires_grad_()
    with computing_in(name):
        out = module(x)
        out.backward(torch.linspace(-1, 1, out.numel()).reshape(out.shape).sin().to(dtype))
    weights = [p.grad for n, p in module.named_parameters() if "weight" in n]
    return [t.detach().double().clone() for t in (out, x.grad, *weights) if t is not None]


def errors(module: nn.Module, shape: tuple[int, ...], name: str) -> list[float]:
    x = torch.randn(shape)
    exact = passed(module, x, torch.float64, "fp32")
    return [
        float((a - b).norm() / b.norm()) for a, b in zip(passed(module, x, torch.float32, name), exact, strict=True)
    ]


def apart(run: Callable[[str], list[torch.Tensor]]) -> float:
    return max(float((a - b).abs().max()) for a, b in zip(run("hf32"), run("fp32"), strict=True))


found = {}
for name in ("fp32", "hf32", "tf32", "fp16", "bf16"):
    found[name] = rounding(name)
    for what, (module, shape) in MODULES.items():
        found[name][what] = errors(module, shape, name)
module, shape = MODULES["linear"]
x = torch.randn(shape)
with computing_in("hf32"):
    module.float()(x)
found["hf32"]["after"] = [apart(lambda name: passed(module, x, torch.float32, "fp32"))]
found["hf32"]["float64"] = [apart(lambda name: passed(module, x, torch.float64, name))]


def kernels() -> dict[str, list[float]]:
    """Function -> how far result and gradient stand from float64, plain and with the kernels' rounding; then the result
    in float64, and after the block, against the plain ones."""
    x, upstream = torch.randn(400, 400), torch.randn(400, 400)
    told = {}
    functions = {
        "sigmoid": torch.sigmoid,
        "silu": nn.functional.silu,
        "relu": torch.relu,
        "sigmoid in place": lambda x: (1.0 * x).sigmoid_(),
        "silu in place": lambda x: nn.functional.silu(1.0 * x, inplace=True),
        "relu in place": lambda x: (1.0 * x).relu_(),
    }
    for name, function in functions.items():

        def both(dtype: torch.dtype, rounded: bool, function: Any = function) -> list[torch.Tensor]:
            given = x.to(dtype, copy=True).requires_grad_()
            with rounding_as_mindspore() if rounded else nullcontext():
                out = function(given)
                out.backward(upstream.to(dtype))
            assert given.grad is not None
            return [out.detach().double(), given.grad.double()]

        exact = both(torch.float64, False)
        told[name] = [
            float((a - b).norm() / b.norm())
            for rounded in (False, True)
            for a, b in zip(both(torch.float32, rounded), exact, strict=True)
        ]
        told[name].append(float((both(torch.float64, True)[0] - exact[0]).abs().max()))
        told[name].append(float((both(torch.float32, False)[0] - exact[0]).norm() / exact[0].norm()))
    return told


def sums() -> dict[str, list[float]]:
    """Of a bias's gradient over so many rows: how far it stands from float64, plain and as it is rounded, and which
    share of what was rounded is not to the bit what numbers give that are added one after the other; then sums of
    another kind, and in float64, against the plain ones."""
    told = {}
    for rows, columns in ((1_000, 64), (20_000, 64), (500, 1)):
        for alike in (False, True):
            layer, x = nn.Linear(2, columns), torch.randn(rows // 10, 10, 2)
            upstream = torch.randn(rows // 10, 10, columns)
            if alike:
                upstream = upstream[:1, :1].expand(upstream.shape).contiguous()
            exact = upstream.double().sum((0, 1))
            plain, rounded = gradients(layer, x, upstream)
            far = [float((run.double() - exact).norm() / exact.norm()) for run in (plain, rounded)]
            unlike = float((rounded != in_turn(upstream.reshape(-1, columns))).double().mean())
            told[f"{rows} x {columns}{' alike' if alike else ''}"] = [*far, unlike]

    upstream = torch.randn(2_000, 10, 64)

    def others() -> list[torch.Tensor]:
        return [upstream.sum(0), upstream.sum(-1), upstream.sum(), upstream[0, 0].sum(0), upstream.double().sum((0, 1))]

    plain = others()
    with rounding_as_mindspore():
        rounded = others()
    told["others"] = [float((a - b).abs().max()) for a, b in zip(rounded, plain, strict=True)]
    return told


def gradients(layer: nn.Module, x: torch.Tensor, upstream: torch.Tensor) -> list[torch.Tensor]:
    """The gradient of a layer's bias, plain and rounded."""
    found = []
    for context in (nullcontext(), rounding_as_mindspore()):
        with context:
            found.append(torch.autograd.grad(layer(x), layer.get_parameter("bias"), upstream)[0])
    return found


def in_turn(rows: torch.Tensor) -> torch.Tensor:
    """The float32 sum of rows that are added one after the other."""
    total = torch.zeros(rows.shape[1])
    for row in rows:
        total += row
    return total


def of_images() -> dict[str, list[float]]:
    """Layer and layout -> of its bias's gradient: how far it stands from float64, plain and rounded, of upstream
    gradients that are alike all over an image, and which share of what was rounded is not to the bit what the pixels of
    each image give, one after the other, and then the images."""
    told = {}
    upstream = torch.randn(3, 16, 1, 1).expand(3, 16, 20, 20)
    turns = in_turn(torch.stack([in_turn(image.flatten(1).T) for image in upstream]))
    exact = upstream.double().sum((0, 2, 3))
    layers = (
        nn.BatchNorm2d(16),
        nn.BatchNorm2d(16).eval(),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.ConvTranspose2d(16, 16, 1),
    )
    for number, layer in enumerate(layers):
        for layout in (torch.contiguous_format, torch.channels_last):
            x, given = (each.contiguous(memory_format=layout) for each in (torch.randn(3, 16, 20, 20), upstream))
            found = gradients(layer, x, given)
            far = [float((run.double() - exact).norm() / exact.norm()) for run in found]
            told[f"{number} {layer} {layout}"] = [*far, float((found[1] != turns).double().mean())]
    return told


def strided() -> list[float]:
    """How far the gradient of a strided filter of one pixel is from float64, channels last, in 50 backward passes."""
    layer = nn.Conv2d(3, 48, 1, 2, bias=False)
    x, upstream = (torch.randn(4, c, 32 // s, 32 // s) for c, s in ((3, 1), (48, 2)))
    exact = torch.autograd.grad(layer.double()(x.double()), layer.weight, upstream.double())[0]
    layer, x = layer.float().to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    found = []
    for _ in range(50):
        with rounding_as_mindspore():
            gradient = torch.autograd.grad(layer(x), layer.weight, upstream)[0]
        found.append(float((gradient.double() - exact).norm() / exact.norm()))
    return found


def shorter() -> list[float]:
    """How far rounding moves the gradients of biases in a step whose values are bfloat16, as shares of them."""
    net, x = (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(288, 4)),
        torch.randn(4, 3, 8, 8),
    )
    biases = [parameter for name, parameter in net.named_parameters() if name.endswith("bias")]
    runs = []
    for context in (nullcontext(), rounding_as_mindspore()):
        with context, torch.autocast("cpu", torch.bfloat16):
            runs.append(torch.autograd.grad(net(x).float().square().sum(), biases))
    return [float((a - b).norm() / a.norm()) for a, b in zip(*runs, strict=True)][1:]  # before a norm it is zero


def norm() -> dict[str, list[float]]:
    """Of a BatchNorm's gradients, in training and evaluation mode: how far those of weight and bias are from float64,
    plain and rounded; then by how much rounding moves the input's, and what is computed in float64."""
    told = {}
    x, upstream = torch.randn(8, 32, 40, 40), torch.randn(8, 32, 40, 40)
    for mode in ("train", "eval"):

        def of_a_norm(dtype: torch.dtype, rounded: bool, training: bool = mode == "train") -> list[torch.Tensor]:
            layer = nn.BatchNorm2d(32).to(dtype).train(training)
            given = x.to(dtype, copy=True).requires_grad_()
            with rounding_as_mindspore() if rounded else nullcontext():
                layer(given).backward(upstream.to(dtype))
            assert given.grad is not None and layer.weight.grad is not None and layer.bias.grad is not None
            return [layer.weight.grad.double(), layer.bias.grad.double(), given.grad.double()]

        exact, plain = of_a_norm(torch.float64, False), of_a_norm(torch.float32, False)
        rounded = of_a_norm(torch.float32, True)
        told[mode] = [float((run[i] - exact[i]).norm() / exact[i].norm()) for i in (0, 1) for run in (plain, rounded)]
        told[mode].append(float((rounded[2] - plain[2]).abs().max()))
        again = of_a_norm(torch.float64, True)
        told[mode].append(max(float((a - b).abs().max()) for a, b in zip(again, exact, strict=True)))
    return told


class TakesDown(nn.Module):
    """Takes its values down to float32 itself, or, with `to` float64, nothing."""

    def __init__(self, to: torch.dtype) -> None:
        super().__init__()
        self.to_dtype = to
        self.linear = nn.Linear(4, 4)
        self.register_buffer("rates", torch.rand(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        to, made = self.to_dtype, torch.ones(3, dtype=self.to_dtype)
        angles = self.get_buffer("rates").to(to)[:, None] @ torch.arange(3)[None].to(to)  # as a rotary embedding
        h = self.linear(x)
        h = h * torch.rsqrt(h.to(to).pow(2).mean(-1, keepdim=True) + 1e-6)
        h = torch.softmax(h, -1, dtype=torch.float32 if to == torch.float32 else None) @ (angles.sin() * made)
        out = torch.zeros(5, 3, dtype=x.dtype)
        out[torch.tensor([0, 2, 4])] = h.to(to).to(x.dtype) if to == torch.float32 else h
        made[torch.tensor([1])] = h[0, :1].to(to)
        return out * made.sum()


def exact() -> list[float]:
    """How far output and weight gradients in float64 of a model that computes in float32 itself are from those of one
    that does not: as the reference, then as the model is."""
    given = torch.randn(3, 4)
    distances = []
    for precision in (Precision("torch-fp64", torch.float64), None):
        runs = []
        for to in (torch.float32, torch.float64):
            torch.manual_seed(1)
            model = TakesDown(to).double()
            for _ in shortening([precision], "fp32") if precision else (None,):
                out = model(given.double())
                out.square().sum().backward()
            assert model.linear.weight.grad is not None
            runs.append([out.detach(), model.linear.weight.grad])
        distances += [float((a - b).norm() / b.norm()) for a, b in zip(*runs, strict=True)]
    return distances


json.dump(
    {
        **found,
        "exact": {"": exact()},
        "norm": norm(),
        "kernels": kernels(),
        "sums": sums(),
        "images": of_images(),
        "strided": {"": strided()},
        "shorter": {"": shorter()},
    },
    sys.stdout,
)
