"""A worker of an export for which every net is a large one: `python large_worker.py NAME FOLDER…`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from msmigrate.deploy import output_files
from msmigrate.workers import worker

if __name__ == "__main__":
    name, folder, *rest = sys.argv[1:]
    output_files.ONNX_WHOLE = 100
    module = importlib.import_module(f"msmigrate.deploy.{name}")
    if name == "onnx_check_worker":
        worker.answer(lambda: module.main(Path(folder), *rest))
    import mindspore.train.serialization

    mindspore.train.serialization.TOTAL_SAVE = 0.1  # KB
    worker.answer(lambda: module.main(Path(folder), [int(size) for size in rest]))
