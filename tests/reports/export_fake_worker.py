"""What the workers of an export leave, for a net of ten classes: NAME OFF FOLDER…; the file is off by OFF."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    name, off, folder = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
    exact = np.random.default_rng(0).standard_normal((4, 10))
    rounded = exact.astype(np.float32)
    near = (exact * (1 + 1e-6 * np.random.default_rng(1).standard_normal(exact.shape))).astype(np.float32)
    if name == "mindspore_export":
        form = json.loads((folder / "export.json").read_text())["form"]
        facts = {
            "file": f"model.{form}",
            "batch": 1,
            "inputs": "4 made up",
            "shapes": [[1, 1, 8, 8]],
            "rewritten": [],
            "outputs": [[10]],
        }
        (folder / "facts.json").write_text(json.dumps({**facts, "versions": {"mindspore": "none"}}))
        (folder / facts["file"]).write_bytes(b"a net")
        np.savez(folder / "inputs.npz", exact)
        for file in ("net", "moved0", "moved1"):
            np.savez(folder / f"{file}.npz", rounded if file == "net" else near)
    elif name == "torch_reference":
        assert sys.argv[4].startswith("msmigrate:resnet_tiny") and (folder / "torch.pth").exists()
        for file, array in (("torch64", exact), ("torch32", rounded), ("torch32_other", near)):
            np.savez(folder / f"{file}.npz", array)
    elif name == "mindspore_servable":
        assert (Path(sys.argv[4]) / "1" / "model.mindir").read_bytes() == b"a net"
        sys.exit(off != 0.0)
    else:
        sizes = sys.argv[4:] if name == "mindspore_load" else sys.argv[5:]
        for size in sizes:
            np.savez(folder / f"exported{size}.npz", rounded * np.float32(1 + off))
