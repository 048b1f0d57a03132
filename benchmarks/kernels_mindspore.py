"""Kernels of MindSpore on this CPU, for kernels.py: `python kernels_mindspore.py FOLDER FUNCTION …`.

Reads FOLDER/FUNCTION.npz, what kernels_torch.py has computed in float64, and prints JSON: function -> forward and
backward -> how far MindSpore stands from that.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from kernels_values import distance, values  # noqa: E402
from mindspore import ops  # noqa: E402


def both(name: str) -> dict[str, np.ndarray]:
    """Result and gradient."""
    x, upstream = (mindspore.Tensor(array) for array in values(name))
    function = getattr(ops, name)
    found = function(x)
    gradient = mindspore.grad(lambda given: (function(given) * upstream[:, : found.shape[1]]).sum())(x)
    return {"forward": found.asnumpy(), "backward": gradient.asnumpy()}


def main(folder: Path, names: list[str]) -> None:
    told = {}
    for name in names:
        found = both(name)
        with np.load(folder / f"{name}.npz") as exact:
            told[name] = {way: distance(found[way], exact[way]) for way in found}
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
    leave()
