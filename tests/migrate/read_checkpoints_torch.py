"""Worker: load every torch checkpoint of a folder as torch does by default and write what it holds to found.json.

    python read_checkpoints_torch.py FOLDER

found.json: file name -> {"tensors": name -> [shape, dtype, sha256 of the bytes], "tied": groups of names whose tensors
are the same memory, "strides": name -> strides}. The offsets that torch computes are held against those in the file.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

os.environ["TORCH_SERIALIZATION_DEBUG"] = "1"  # compare the offsets

import torch
from make_checkpoints_torch import digest

warnings.filterwarnings("ignore", "ComplexHalf support is experimental")


def describe(path: Path) -> dict[str, object]:
    state = torch.load(path, weights_only=True)
    places: dict[int, list[str]] = {}
    for name, value in state.items():
        if value.numel():
            places.setdefault(value.data_ptr(), []).append(name)
    return {
        "type": type(state).__name__,
        "tensors": {name: digest(value) for name, value in state.items()},
        "tied": [names for names in places.values() if len(names) > 1],
        "strides": {name: list(value.stride()) for name, value in state.items()},
    }


def main(folder: Path) -> None:
    found = {path.name: describe(path) for path in sorted(folder.iterdir()) if path.suffix in (".pth", ".pt", ".bin")}
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
