"""What the workers of an export leave, for a net of ten classes: NAME OFF FOLDER…; the file is off by OFF.

The arrays are made once, by the test, for an interpreter without NumPy starts in a fifth of the time.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

if __name__ == "__main__":
    name, off, arrays, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
    rest = sys.argv[5:]

    def leave(array: str, *files: str) -> None:
        for file in files:
            shutil.copyfile(arrays / f"{array}.npz", folder / f"{file}.npz")

    if name == "mindspore_export_worker" and not rest:
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
        leave("exact", "inputs")
        leave("rounded", "net")
        leave("near", "moved0", "moved1")
    elif name == "torch_reference_worker":
        assert rest[0].startswith("msmigrate:resnet_tiny") and (folder / "torch.pth").exists()
        leave("exact", "torch64")
        leave("rounded", "torch32")
        leave("near", "torch32_other")
    elif name == "serving.mindspore_servable_worker":
        assert (Path(rest[0]) / "1" / "model.mindir").read_bytes() == b"a net"
        sys.exit(float(off) != 0.0)
    else:
        for size in rest if name == "mindspore_export_worker" else rest[1:]:
            leave(f"off{off}", f"exported{size}")
