"""Make the net with its weights, run it, and export it.

    python -m msmigrate.export.mindspore_export FOLDER

FOLDER holds export.json, a Job; inputs, outputs, the exported file and facts.json go there.
"""

from __future__ import annotations

from ..train import mindspore_environment

mindspore_environment.prepare()

import json  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn  # noqa: E402

from ..errors import BadInput  # noqa: E402
from ..parity.pairs.contents import flat  # noqa: E402
from ..train.inference.mindspore_inference import loaded, use  # noqa: E402
from ..train.inference.request import Told  # noqa: E402
from ..train.inference.worker_events import serve  # noqa: E402
from .asked import FACTS, INPUTS, MINDIR, REQUEST, Job  # noqa: E402
from .mindspore_functions import functions_for_onnx  # noqa: E402
from .mindspore_inputs import inputs_of  # noqa: E402
from .mindspore_operators import first_line  # noqa: E402
from .mindspore_rewriting import FOR_DYNAMIC, FOR_ONNX, rewrite  # noqa: E402
from .mindspore_writing import write  # noqa: E402
from .running import in_batches, save  # noqa: E402
from .stand_ins import StandIns  # noqa: E402

NET, MOVED = "net.npz", "moved{}.npz"  # the net's outputs, and those with its numbers moved by rounding
RUNS = 2
EPS = float(np.finfo(np.float32).eps)


def export(job: Job, folder: Path, told: Told) -> None:
    """Carry out one job. Raises Unsupported for what cannot be exported, and what reading the weights raises."""
    told({"doing": "building the net"})
    use("CPU", 0)
    net = loaded(job.request)
    inputs, batch, words = inputs_of(job)
    save(folder / INPUTS, inputs)
    told({"doing": "running the net"})
    outputs = in_batches(lambda arrays: _run(net, arrays), inputs, batch)
    if not outputs:
        raise BadInput("the net returns no tensor")
    save(folder / NET, outputs)
    if job.noise:
        told({"doing": "measuring how the net rounds"})
        for run in range(RUNS):
            save(folder / MOVED.format(run), _moved(net, inputs, batch, run))
    marks = StandIns()
    rewritten = []
    if job.form != MINDIR:
        functions_for_onnx(marks)
        rewritten = rewrite(net, FOR_ONNX, marks)
    elif job.dynamic:
        rewritten = rewrite(net, FOR_DYNAMIC, marks)
    told({"doing": f"exporting {job.form}"})
    file = write(net, job, inputs, batch, folder)
    facts: dict[str, Any] = {
        "file": file.name,
        "batch": batch,
        "inputs": words,
        "shapes": [[batch, *array.shape[1:]] for array in inputs],
        "dtypes": [str(array.dtype) for array in inputs],
        "outputs": [list(array.shape[1:]) for array in outputs],
        "rewritten": rewritten,
        "stand_ins": marks.as_json(),
        "versions": {"mindspore": mindspore.__version__, "numpy": np.__version__},
    }
    (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")


def _run(net: nn.Cell, arrays: list[np.ndarray]) -> list[np.ndarray]:
    try:
        return [output.asnumpy() for output in flat(net(*map(Tensor, arrays)), Tensor)]
    except (RuntimeError, TypeError, ValueError) as error:
        shapes = " and ".join("×".join(map(str, array.shape)) for array in arrays)
        raise BadInput(f"the net does not run on {shapes}: {first_line(error)}") from None


def _moved(net: nn.Cell, inputs: list[np.ndarray], batch: int, seed: int) -> list[np.ndarray]:
    """The outputs where every weight and input is off by up to one unit of float32's rounding, drawn for each number.

    So every layer's results are off by about what a sum in another order makes of them. The net is as before
    afterwards.
    """
    random = np.random.default_rng(seed)
    kept = [(parameter, parameter.asnumpy().copy()) for parameter in net.get_parameters()]
    for parameter, array in kept:
        if array.dtype == np.float32:
            parameter.set_data(Tensor(_off(array, random)))
    moved = [_off(array, random) if array.dtype == np.float32 else array for array in inputs]
    outputs = in_batches(lambda arrays: _run(net, arrays), moved, batch)
    for parameter, array in kept:
        parameter.set_data(Tensor(array))
    return outputs


def _off(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return (array * (1.0 + EPS * random.uniform(-1.0, 1.0, array.shape))).astype(np.float32)


def main(folder: Path) -> int:
    """Carry out the job in a folder; returns the exit code."""

    def work(told: Told) -> None:
        export(Job.model_validate_json((folder / REQUEST).read_text(encoding="utf-8")), folder, told)

    return serve(work, "MindSpore")


if __name__ == "__main__":
    mindspore_environment.leave(main(Path(sys.argv[1])))
