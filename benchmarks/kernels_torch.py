"""Kernels of torch on this CPU, for kernels.py: `python kernels_torch.py FOLDER FUNCTION …`.

Writes FOLDER/FUNCTION.npz, result and gradient in float64, and prints JSON: function -> forward and backward -> how far
float32 stands from that.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch
from kernels_values import ALONG_ROWS, distance, values


def both(name: str, dtype: torch.dtype) -> dict[str, np.ndarray]:
    """Result and gradient."""
    x, upstream = (torch.from_numpy(array).to(dtype) for array in values(name))
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    along = {"dim": -1} if name in ALONG_ROWS else {}
    found = function(x.requires_grad_(), **along)
    (gradient,) = torch.autograd.grad(found, x, upstream[:, : found.shape[1]])
    return {"forward": found.detach().numpy(), "backward": gradient.numpy()}


def main(folder: Path, names: list[str]) -> None:
    told = {}
    for name in names:
        exact, short = both(name, torch.float64), both(name, torch.float32)
        np.savez(folder / f"{name}.npz", **exact)
        told[name] = {way: distance(short[way], exact[way]) for way in exact}
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
