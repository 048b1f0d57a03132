"""Run a servable's own configuration, without MindSpore Serving, on images, and compare it with the export.

    python -m msmigrate.deploy.serving.mindspore_servable_worker FOLDER SERVABLE

FOLDER is the export's, with its job and its net's outputs. `register` of MindSpore Serving is replaced by one that runs
each stage at once, as the documentation describes it; the model is the MindIR in the servable.
"""

from __future__ import annotations

from ...workers.worker import answer, prepare_mindspore, progress

prepare_mindspore()

import json  # noqa: E402
import sys  # noqa: E402
import types  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import nn  # noqa: E402

from ...errors import BadInput, WorkerFailed  # noqa: E402
from ...training.data.mindspore_pipeline import Prepare  # noqa: E402
from ...training.inference import (  # noqa: E402
    images_of,
    preparation,
)
from ...training.mindspore_inference_worker import (  # noqa: E402
    NO_KEY,
    use,
)
from ..job import FACTS, REQUEST, Job  # noqa: E402
from ..mindspore_export_worker import (  # noqa: E402
    MADE_UP,
    encoded,
    run,
)
from .servable import CLASSES, CONFIG, MODEL  # noqa: E402

SQUARE = (500, 500)


class Register:
    """MindSpore Serving's `register` with its documented arguments; each stage is run when it is added."""

    def __init__(self, servable: Path, batch: int) -> None:
        self.servable, self.batch = servable, batch
        self.methods: dict[str, tuple[list[str], Callable[..., Any]]] = {}

    def declare_model(self, model_file: str, model_format: str, with_batch_dim: bool = True) -> Callable[..., Any]:
        """The net of version 1, which runs one instance in a batch that is filled up with it."""
        file = (self.servable / MODEL).with_name(model_file)
        net = nn.GraphCell(mindspore.load(str(file)))

        def model(x: np.ndarray) -> np.ndarray:
            return run(net, [np.repeat(x[None], self.batch, axis=0)])[0][0]

        return model

    def register_method(self, output_names: list[str]) -> Callable[..., Any]:
        """Keep a method under its name."""

        def keep(method: Callable[..., Any]) -> Callable[..., Any]:
            self.methods[method.__name__] = (output_names, method)
            return method

        return keep

    def add_stage(self, stage: Callable[..., Any], *inputs: Any, outputs_count: int, batch_size: int = 0) -> Any:
        """The stage's outputs for one instance. Raises WorkerFailed where they are not as many as it declares."""
        outputs = stage(*inputs)
        count = len(outputs) if isinstance(outputs, tuple) else 1
        if count != outputs_count:
            raise WorkerFailed(f"{CONFIG}: a stage gives {count} outputs and declares {outputs_count}")
        return outputs


def load_config(servable: Path, batch: int) -> Register:
    """Run servable_config.py with this register in MindSpore Serving's place."""
    register = Register(servable, batch)
    server = types.ModuleType("mindspore_serving.server")
    server.register = register  # type: ignore[attr-defined]
    sys.modules["mindspore_serving"] = types.ModuleType("mindspore_serving")
    sys.modules["mindspore_serving.server"] = server
    path = servable / CONFIG
    scope = {"__file__": str(path), "__name__": "servable_config"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
    return register


def check(folder: Path, servable: Path) -> None:
    """Compare every method with the export's own preparation and the net's own outputs. Raises WorkerFailed."""
    progress("running the servable's methods")
    use("CPU", 0)
    job = Job.read(folder / REQUEST)
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    classes = json.loads((servable / CLASSES).read_text(encoding="utf-8"))
    register = load_config(servable, facts["batch"])
    if job.request.images is not None:
        source = images_of(job.request)
        images = [np.frombuffer(source[index].data, dtype=np.uint8) for index in range(len(source))]
    else:
        images = [encoded(size) for size in (*MADE_UP, SQUARE)]
    prepare = Prepare(preparation(job.request.recipe), job.request.mode or "RGB")
    ran = 0
    for image in images:
        ready = prepare(image, NO_KEY)
        if list(ready.shape) != facts["shapes"][0][1:]:
            if job.request.images is None and (ran or image is not images[-1]):
                continue  # a recipe that keeps an image's proportions is for images with the net's own
            raise BadInput(f"images are prepared as {list(ready.shape)} and the net takes {facts['shapes'][0][1:]}")
        ran += 1
        logits = register.methods["predict"][1](ready)
        likeliest = classes[int(np.argmax(logits))]
        top1 = register.methods["classify_top1"][1](image)
        label, score = register.methods["classify_top5"][1](image.tobytes())
        shares = np.exp(logits.astype(np.float64) - logits.max())
        expected = np.sort(shares / shares.sum())[::-1][: len(score)]
        same = top1 == likeliest == label.split(";")[0] and np.allclose(score, expected, rtol=1e-5, atol=1e-7)
        if not same or score.dtype != np.float32:
            raise WorkerFailed(f"{CONFIG} prepares or names an image differently: {top1!r}, expected {likeliest!r}")


if __name__ == "__main__":
    answer(lambda: check(Path(sys.argv[1]), Path(sys.argv[2])))
