"""Worker: load every .ckpt of a folder with MindSpore and write what it holds to found.json.

    python read_checkpoints_mindspore.py FOLDER

found.json: file name -> parameter name -> [shape, dtype, sha256 of the bytes].
"""

from __future__ import annotations

import os

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

import hashlib
import json
import sys
from pathlib import Path

import mindspore


def digest(parameter: mindspore.Parameter) -> list[object]:
    content = parameter.asnumpy().tobytes() if parameter.dtype != mindspore.bfloat16 else parameter.get_bytes()
    return [list(parameter.shape), str(parameter.dtype).lower(), hashlib.sha256(content).hexdigest()]


def main(folder: Path) -> None:
    found = {
        path.name: {name: digest(value) for name, value in mindspore.load_checkpoint(str(path)).items()}
        for path in sorted(folder.glob("*.ckpt"))
    }
    (folder / "found.json").write_text(json.dumps(found))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
