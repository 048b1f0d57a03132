"""How far torch's own float32 is from its float64 behind each block of a new net of timm, in a training step.

    python benchmarks/rounding_by_block_torch.py [MODEL:PIXELS:IMAGES …]

Prints markdown: the distance behind the first block and the last, as shares of the values' size, the factor from one
block to the next in the mean, and that of the gradient of the first convolution. Where every block multiplies it, a
deep net that has not trained has no gradients to compare, whatever the images. Needs timm.
"""

from __future__ import annotations

import copy
import sys

import timm
import torch
from torch import nn

MODELS = ("convmixer_768_32:64:2", "convmixer_768_32:64:8", "convmixer_768_32:224:2", "inception_v4:160:2")


def step(model: nn.Module, images: torch.Tensor) -> list[torch.Tensor]:
    """What each block gives, in order, and the gradient of the first convolution's weight."""
    found: list[torch.Tensor] = []
    blocks = model.get_submodule("blocks" if hasattr(model, "blocks") else "features")
    for block in blocks.children():
        block.register_forward_hook(lambda module, given, result: found.append(result.detach().double()))
    nn.functional.cross_entropy(model(images), torch.arange(len(images))).backward()
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d))
    assert first.weight.grad is not None
    return [*found, first.weight.grad.double()]


def main() -> None:
    """Print the table."""
    print("| model | pixels | images | first block | last block | factor of a block | gradient |")
    print(f"|{'---|' * 7}")
    for wanted in sys.argv[1:] or MODELS:
        name, pixels, images = wanted.split(":")
        torch.manual_seed(0)
        model = timm.create_model(name).train()
        exact = copy.deepcopy(model).double()
        x = torch.randn(int(images), 3, int(pixels), int(pixels))
        pairs = zip(step(model, x), step(exact, x.double()), strict=True)
        *blocks, gradient = [float((ours - theirs).norm() / theirs.norm()) for ours, theirs in pairs]
        factor = (blocks[-1] / blocks[0]) ** (1 / (len(blocks) - 1))
        cells = f"{blocks[0]:.1e} | {blocks[-1]:.1e} | {factor:.2f} | {gradient:.2f}"
        print(f"| {name} | {pixels} | {images} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
