"""Finish an exported ONNX file, check it, and run it in onnxruntime; or check one that the user names.

    python -m msmigrate.deploy.onnx_check_worker FOLDER DYNAMIC SIZE…
    python -m msmigrate.deploy.onnx_check_worker FILE

Stand-ins are replaced by the operators that the exporter lacks, and with DYNAMIC 1 the batch becomes a symbol. SIZE:
examples at a time; the outputs for each SIZE are left in the folder. Neither framework is imported.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from ..errors import BadInput, Unsupported
from ..workers.worker import answer, progress
from .job import EXPORTED, FACTS, INPUTS, MORE, OTHER, in_batches, load, save
from .onnx_graph import open_batch, put_in, put_right
from .output_files import ONNX_WHOLE, beside


def check(folder: Path, dynamic: bool, sizes: list[int]) -> None:
    """Finish, check and run model.onnx. Raises Unsupported where it is not valid or does not run."""
    progress("checking the ONNX file")
    facts: dict[str, Any] = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    file = folder / facts["file"]
    model = onnx.load(file)
    if dynamic:
        open_batch(model, onnx.load(folder / OTHER / file.name), (facts["batch"], facts["batch"] + MORE))
    put_right(model)
    put_in(model, facts["stand_ins"])
    _save(model, file)
    try:
        onnx.checker.check_model(str(file), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise Unsupported(f"MindSpore wrote an ONNX file that onnx.checker refuses: {_one_line(error)}") from None
    facts["nodes"] = len(model.graph.node)
    facts["opset"] = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    onnxruntime.set_default_logger_severity(3)
    try:
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    except Exception as error:  # its classes share no base but Exception
        raise Unsupported(f"onnxruntime does not take the ONNX file: {_one_line(error)}") from None
    names = [one.name for one in session.get_inputs()]
    inputs = load(folder / INPUTS)
    if len(names) != len(inputs):
        raise Unsupported(f"the ONNX file takes {len(names)} inputs and the net {len(inputs)}: one has no effect in it")

    def run(arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [np.asarray(output) for output in session.run(None, dict(zip(names, arrays, strict=True)))]

    for size in sizes:
        progress(f"running the ONNX file on batches of {size}")
        try:
            save(folder / EXPORTED.format(size), in_batches(run, inputs, size))
        except Exception as error:
            dynamic_ = " (--dynamic)" if dynamic else ""
            raise Unsupported(
                f"the ONNX file does not run on batches of {size}{dynamic_}: {_one_line(error)}"
            ) from None
    facts["versions"] |= {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__}
    (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")


def _save(model: Any, file: Path) -> None:
    """Store the model, with its parameters beside it where one file does not hold them."""
    if sum(one.ByteSize() for one in model.graph.initializer) <= ONNX_WHOLE:
        onnx.save(model, file)
        return
    beside(file).unlink(missing_ok=True)
    onnx.save(model, file, save_as_external_data=True, all_tensors_to_one_file=True, location=beside(file).name)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def check_given(file: Path) -> None:
    """Raise BadInput where a file is no valid ONNX model."""
    try:
        onnx.checker.check_model(str(file), full_check=True)
    except Exception as error:  # protobuf, the checker and shape inference each raise their own
        raise BadInput(f"{file} is no valid ONNX model: {_one_line(error) or type(error).__name__}") from None


def main(place: Path, *words: str) -> None:
    """Finish what is in a folder, or check a file."""
    if words:
        check(place, words[0] == "1", [int(size) for size in words[1:]])
    else:
        check_given(place)


if __name__ == "__main__":
    answer(lambda: main(Path(sys.argv[1]), *sys.argv[2:]))
