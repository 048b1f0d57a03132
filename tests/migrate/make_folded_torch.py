"""Torch checkpoints of computed weights, and what torch computes: `python make_folded_torch.py FOLDER`."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

warnings.filterwarnings("ignore", category=FutureWarning)  # the older forms, which checkpoints still hold


def trained(module: nn.Module, *shape: int) -> nn.Module:
    """Some passes in training mode, which move the vectors of a spectral norm; evaluation leaves them."""
    with torch.no_grad():
        for _ in range(30):
            module.train()(torch.randn(shape))
    return module.eval()


def cases() -> dict[str, tuple[nn.Module, tuple[int, ...]]]:
    """Name -> a layer, and the shape of an input."""
    flat, image = (2, 6), (2, 6, 5, 5)
    scaled = parametrizations.weight_norm(nn.Conv2d(6, 4, 3))
    with torch.no_grad():
        scaled.parametrizations.weight.original0 *= 1.7
    pruned = prune.random_unstructured(nn.Linear(6, 4), "weight", amount=0.4)
    return {
        "weight norm": (scaled, image),
        "older weight norm": (nn.utils.weight_norm(nn.Linear(6, 4)), flat),
        "of everything": (nn.utils.weight_norm(nn.Linear(6, 4), dim=None), flat),
        "along the second": (parametrizations.weight_norm(nn.Linear(6, 4), dim=1), flat),
        "half": (parametrizations.weight_norm(nn.Linear(6, 4)).half(), flat),
        "spectral norm": (parametrizations.spectral_norm(nn.Conv2d(6, 4, 3)), image),
        "older spectral norm": (nn.utils.spectral_norm(nn.Linear(6, 4)), flat),
        "transposed": (nn.utils.spectral_norm(nn.ConvTranspose2d(6, 6, 3)), image),
        "pruned": (pruned, flat),
    }


def main(folder: Path) -> None:
    torch.manual_seed(3)
    weights = {}
    for name, (layer, shape) in cases().items():
        if name != "half":
            trained(layer, *shape)
        state = {f"net.0.{key}": value for key, value in layer.state_dict().items()}
        torch.save(state, folder / f"{name}.pth")
        weights[name] = layer.eval().weight.detach().float().numpy()
    np.savez(folder / "weights.npz", **weights)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
