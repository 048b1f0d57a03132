"""How far kernels of both frameworks stand from float64 on this CPU: the figures of mappings/kernels.yaml.

    python benchmarks/kernels.py [--json] [FUNCTION …]

Functions are those of the table by default. The 400,000 values are normal ones, as they come out of a norm; so are the
gradients that come back. Distances are shares of the exact result's root mean square; `bias` is the part
that has one sign everywhere, as a share of the mean size. Prints markdown.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from msmigrate.mappings.kernels import kernels
from msmigrate.train import mindspore_environment

mindspore_environment.prepare()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from mindspore import ops  # noqa: E402

SHAPE = (400, 1000)


def values() -> tuple[np.ndarray, np.ndarray]:
    """What goes in, and what comes back from above."""
    draws = np.random.default_rng(0)
    x, upstream = (draws.standard_normal(SHAPE).astype(np.float32) for _ in range(2))
    return x, upstream


def in_torch(name: str, dtype: torch.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Result and gradient."""
    x, upstream = (torch.from_numpy(array).to(dtype) for array in values())
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    found = function(x.requires_grad_())
    (gradient,) = torch.autograd.grad(found, x, upstream[:, : found.shape[1]])
    return found.detach().numpy(), gradient.numpy()


def in_mindspore(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Result and gradient."""
    x, upstream = (mindspore.Tensor(array) for array in values())
    function = getattr(ops, name)
    found = function(x)
    gradient = mindspore.grad(lambda given: (function(given) * upstream[:, : found.shape[1]]).sum())(x)
    return found.asnumpy(), gradient.asnumpy()


def distance(found: np.ndarray, exact: np.ndarray) -> dict[str, float]:
    """Root mean square and bias, as shares."""
    error = found.astype(np.float64) - exact
    return {
        "off": float(np.sqrt((error**2).mean() / (exact**2).mean())),
        "bias": float(error.mean() / np.abs(exact).mean()),
    }


def measure(name: str) -> dict[str, Any]:
    """Of one function, forward and backward: each framework's distance."""
    exact, short, theirs = in_torch(name, torch.float64), in_torch(name, torch.float32), in_mindspore(name)
    return {
        way: {"torch": distance(short[i], exact[i]), "mindspore": distance(theirs[i], exact[i])}
        for i, way in enumerate(("forward", "backward"))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", metavar="FUNCTION")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    names = arguments.functions or list(dict.fromkeys(kernel.function for kernel in kernels()))
    found = {name: measure(name) for name in names}
    if arguments.json:
        print(json.dumps(found))
        return
    print("| function | | torch | MindSpore | of that one sign | MindSpore is off |\n|---|---|---|---|---|---|")
    for name, ways in found.items():
        for way, sides in ways.items():
            ours, theirs = sides["torch"], sides["mindspore"]
            ratio = theirs["off"] / ours["off"]
            print(
                f"| {name} | {way} | {ours['off']:.1e} | {theirs['off']:.1e} | {theirs['bias']:+.1e} | {ratio:.1f} × |"
            )


if __name__ == "__main__":
    main()
