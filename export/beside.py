"""What lies beside the file of a large net: the numbers that it has no room for.

MindSpore writes the parameters of a MindIR into a folder of their own when they have more than 1 GiB, and names it for
the file; loading finds it by that name beside the file. A protobuf message ends at 2 GiB, and with it an ONNX file;
ONNX knows external data for that.
"""

from __future__ import annotations

import re
from pathlib import Path

ONNX_WHOLE = 2**31 - 2**26  # bytes of parameters that one file holds, the graph having room beside them
MARK, FOLDER, DATA = "_graph", "_variables", ".data"  # in names


def stem_for(out: Path) -> str:
    """What the names of a file and of what lies beside it begin with: MindSpore takes no others than these letters."""
    return re.sub(r"[^0-9a-zA-Z_.-]", "_", out.stem) or "model"


def graph_of(mindir: Path) -> Path:
    """Under which name MindSpore writes the graph of a large net, which may have any other."""
    return mindir.with_name(f"{mindir.stem}{MARK}{mindir.suffix}")


def beside(file: Path) -> Path:
    """What belongs to a MindIR or ONNX file if its net is large: a folder, or a file of external data."""
    return file.with_name(stem_for(file) + (f"{file.suffix}{DATA}" if file.suffix == ".onnx" else FOLDER))


def total(file: Path) -> int:
    """Bytes of a file and what lies beside it."""
    there = beside(file)
    parts = there.iterdir() if there.is_dir() else [there] if there.exists() else []
    return file.stat().st_size + sum(part.stat().st_size for part in parts)
