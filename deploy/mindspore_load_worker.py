"""Load a MindIR file as anyone would, and run it on the inputs of its export.

    python -m msmigrate.deploy.mindspore_load_worker FOLDER SIZE…

In a process that has never seen the net. SIZE: examples at a time, for each of which outputs are left in the folder.
"""

from __future__ import annotations

from ..workers import mindspore_environment

mindspore_environment.prepare()

import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn  # noqa: E402

from ..errors import Unsupported  # noqa: E402
from ..parity.align.model_structure import flat  # noqa: E402
from ..training.mindspore_inference_worker import use  # noqa: E402
from ..workers.worker import answer, progress  # noqa: E402
from .job import (  # noqa: E402  # noqa: E402
    EXPORTED,
    INPUTS,
    REQUEST,
    Job,
    in_batches,
    load,
    read_key,
    save,
)
from .mindspore_export_worker import first_line  # noqa: E402


def check(job: Job, folder: Path, sizes: list[int]) -> None:
    """Run the file in batches of each size. Raises Unsupported where it does not load or does not run."""
    progress("loading the MindIR")
    use("CPU", 0)
    file, inputs = str(folder / f"{job.stem}.mindir"), load(folder / INPUTS)
    options: dict[str, Any] = {}
    if job.key_file is not None:
        options = {"dec_key": read_key(job.key_file, job.enc_mode), "dec_mode": job.enc_mode}
        if _loads(file):
            raise Unsupported("the encrypted MindIR loads without its key")
    net = nn.GraphCell(mindspore.load(file, **options))
    for size in sizes:
        progress(f"running the MindIR on batches of {size}")
        try:
            outputs = in_batches(lambda arrays: run(net, arrays), inputs, size)
        except (RuntimeError, TypeError, ValueError) as error:
            dynamic = " (--dynamic)" if job.dynamic else ""
            raise Unsupported(
                f"the MindIR was written and does not run on batches of {size}{dynamic}: {first_line(error)}"
            ) from None
        save(folder / EXPORTED.format(size), outputs)


def run(net: nn.Cell, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs for one batch."""
    return [output.asnumpy() for output in flat(net(*map(Tensor, arrays)), Tensor)]


def _loads(file: str) -> bool:
    try:
        mindspore.load(file)
    except (RuntimeError, ValueError):
        return False
    return True


def main(folder: Path, sizes: list[int]) -> None:
    """Check the file in a folder."""
    check(Job.model_validate_json((folder / REQUEST).read_text(encoding="utf-8")), folder, sizes)


if __name__ == "__main__":
    answer(lambda: main(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]]))
