"""Worker: let MindSpore load every .safetensors in a folder, and write one of its own.

    python read_safetensors_mindspore.py FOLDER

found_mindspore.json: file name -> parameter name -> [shape, dtype, sha256 of the bytes]; saved_by_mindspore.safetensors
and what it holds are among them.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import mindspore
import numpy as np
from read_checkpoints_mindspore import digest


def main(folder: Path) -> None:
    content = {
        "norm.gamma": np.arange(3, dtype=np.float32),
        "conv.weight": np.arange(6, dtype=np.float16).reshape(2, 3),
        "steps": np.array([3], np.int64),
        "flags": np.array([True, False, True]),
    }
    parameters = [{"name": name, "data": mindspore.Tensor(value)} for name, value in content.items()]
    mindspore.save_checkpoint(parameters, str(folder / "saved_by_mindspore.safetensors"), format="safetensors")
    found = {
        path.name: {
            name: digest(value) for name, value in mindspore.load_checkpoint(str(path), format="safetensors").items()
        }
        for path in sorted(folder.glob("*.safetensors"))
    }
    (folder / "found_mindspore.json").write_text(json.dumps(found))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
