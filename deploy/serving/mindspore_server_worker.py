"""Answer requests for a model: uvicorn, the application of rest_app.py, and MindSpore in a thread of its own.

    python -m msmigrate.deploy.serving.mindspore_server_worker FOLDER

FOLDER holds serve.json, a ServeJob.
"""

from __future__ import annotations

from ...workers.worker import answer, prepare_mindspore, progress, send

prepare_mindspore()

import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Sequence  # noqa: E402
from concurrent.futures import ThreadPoolExecutor  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
import uvicorn  # noqa: E402
from mindspore import nn  # noqa: E402
from PIL import Image  # noqa: E402

from ...errors import BadDestination, BadInput  # noqa: E402
from ...training.data.mindspore_pipeline import Prepare  # noqa: E402
from ...training.data.sample import alone, in_mode  # noqa: E402
from ...training.inference import preparation  # noqa: E402
from ...training.mindspore_inference_worker import (  # noqa: E402
    NO_KEY,
    loaded,
    use,
)
from ...workers.messages import Event  # noqa: E402
from ..job import FILE, ServeJob, shape_of  # noqa: E402  # noqa: E402
from ..mindspore_export_worker import (  # noqa: E402
    first_line,
    run,
    size_of_images,
)
from .batching import (  # noqa: E402
    Batches,
    Split,
    sizes_up_to,
)
from .rest_app import Connection, Method, application, array_of, image_of, most_connections  # noqa: E402  # noqa: E402

THREADS = 4  # that decode and prepare images
GRACE = 20  # seconds in which requests may end after the stop
BACKLOG = 64  # connections that are accepted at a time, before they are looked at
TOP = 5
TIMED, LONG = 3, 1.0  # batches that are timed for each size, and the seconds after which no further one is


class Net:
    """The net in a thread of its own, compiled for single instances, for whole batches, and for sizes between them.

    shapes, dtypes: of one instance's inputs. outputs: shapes of one instance's outputs. split: the sizes of batches,
    and how the waiting instances are split into them.
    """

    def __init__(self, job: ServeJob) -> None:
        self.thread = ThreadPoolExecutor(1)
        self.job = job
        self.thread.submit(self._load).result()

    def _load(self) -> None:
        """Load and compile the net, all in one thread, because MindSpore keeps its mode by thread."""
        use("CPU", 0)
        job = self.job
        sizes = sizes_up_to(job.batch)
        inputs = [shape_of(text) for text in job.job.shapes]
        if job.mindir is None:
            self.net: nn.Cell = loaded(job.job.request)
        else:
            options = job.job.key("dec")
            try:
                self.net = nn.GraphCell(mindspore.load(str(job.mindir), **options))
            except (RuntimeError, ValueError) as error:
                raise BadInput(f"{job.mindir} cannot be loaded: {_lacks(job.mindir) or first_line(error)}") from None
            if not inputs and not options:
                inputs, sizes = _inputs(job.mindir, sizes)
        if not inputs and job.images:
            inputs = [((1, *size_of_images(job.job)), "float32")]
        if not inputs:
            raise BadInput("nothing says which inputs the net takes: add --input SHAPE")
        self.shapes, self.dtypes = [shape[1:] for shape, _ in inputs], [dtype for _, dtype in inputs]
        self.split = Split({size: self._compiled(size) for size in sizes})

    def _compiled(self, size: int) -> float:
        """Compile for batches of a size; returns the seconds that such a batch takes then."""
        zeros = [np.zeros((size, *shape), dtype) for shape, dtype in zip(self.shapes, self.dtypes, strict=True)]
        try:
            outputs = run(self.net, zeros)
        except (RuntimeError, TypeError, ValueError) as error:
            raise BadInput(f"the net does not run on batches of {size}: {first_line(error)}") from None
        if not outputs or any(not x.ndim or len(x) != size for x in outputs):
            raise BadInput(
                f"the net gives {[list(x.shape) for x in outputs]} for a batch of {size}: not one for each example"
            )
        self.outputs = [x.shape[1:] for x in outputs]
        times: list[float] = []
        while len(times) < TIMED and sum(times) < LONG:
            began = time.perf_counter()
            run(self.net, zeros)
            times.append(time.perf_counter() - began)
        return min(times)

    def __call__(self, instances: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
        """Each instance's outputs; the batch is filled up with its last, so that nothing has to be compiled again."""
        size = self.split.filled(len(instances))
        filled = [*instances, *[instances[-1]] * (size - len(instances))]
        outputs = run(self.net, [np.stack(arrays) for arrays in zip(*filled, strict=True)])
        return [[output[i] for output in outputs] for i in range(len(instances))]


def _lacks(mindir: Path) -> str | None:
    """Which of the files beside a large MindIR, which hold its numbers, is missing; None where none is."""
    from mindspore.train import mind_ir_pb2

    model = mind_ir_pb2.ModelProto()
    try:
        model.ParseFromString(mindir.read_bytes())
    except Exception:  # protobuf's own: it is encrypted, or no MindIR
        return None
    places = sorted({one.external_data.location for one in model.graph.parameter if one.external_data.location})
    lost = next((place for place in places if not (mindir.parent / place).exists()), None)
    return None if lost is None else f"its numbers are in {lost}, which is not next to it"


def _inputs(mindir: Path, sizes: list[int]) -> tuple[list[tuple[tuple[int, ...], str]], list[int]]:
    """Shapes and dtypes of a MindIR's inputs, and the sizes of batches: the one it was exported with, if above 1."""
    from mindspore.train import mind_ir_pb2

    model = mind_ir_pb2.ModelProto()
    model.ParseFromString(mindir.read_bytes())
    kinds = mind_ir_pb2.TensorProto.DataType
    names = {kinds.Value("FLOAT"): "float32", kinds.Value("INT32"): "int32", kinds.Value("INT64"): "int64"}
    found = []
    for each in model.graph.input:
        dims = [int(size) for size in each.tensor[0].dims] if each.tensor else []
        dtype = names.get(each.tensor[0].data_type) if each.tensor else None
        if not dims or min(dims[1:], default=1) < 1 or dtype is None:
            raise BadInput(f"{mindir} does not say which inputs it takes: add --input SHAPE")
        found.append(((max(dims[0], 1), *dims[1:]), dtype))
    fixed = found[0][0][0] if found else 1
    return found, sizes if fixed == 1 else [fixed]


def methods_of(net: Net, job: ServeJob) -> dict[str, Method]:
    """The methods: predict, and for classifiers of images the others of a servable of `msmigrate export`, too."""
    single = len(net.shapes) == 1
    inputs = ["x"] if single else [f"x{i}" for i in range(len(net.shapes))]
    outputs = ["logits"] if len(net.outputs) == 1 else [f"y{i}" for i in range(len(net.outputs))]

    def tensors(values: list[Any]) -> list[np.ndarray]:
        given = zip(values, net.shapes, net.dtypes, strict=True)
        return [array_of(value, shape, dtype) for value, shape, dtype in given]

    found = {"predict": Method(inputs, outputs, tensors, lambda made: made)}
    if job.images and single and len(net.outputs) == 1 and len(net.outputs[0]) == 1:
        names = list(job.classes or ())[: net.outputs[0][0]]
        names += [f"class {i}" for i in range(len(names), net.outputs[0][0])]
        ready = _images(net, job)
        found["classify_top1"] = Method(["image"], ["label"], ready, lambda made: [names[int(np.argmax(made[0]))]])
        found["classify_top5"] = Method(["image"], ["label", "score"], ready, lambda made: _top(made[0], names))
    return found


def _images(net: Net, job: ServeJob) -> Callable[[list[Any]], list[np.ndarray]]:
    prepare = Prepare(preparation(job.job.request.recipe), job.job.request.mode or "RGB")
    size = _only_size(prepare, net.shapes[0])

    def ready(values: list[Any]) -> list[np.ndarray]:
        image = image_of(values[0])
        if size is not None and image.size != size:
            raise BadInput("the image has {} × {} pixels; expected {} × {}".format(*image.size, *size))
        try:
            with alone(image):
                array = prepare.from_image(in_mode(image, "RGB"), NO_KEY)
        except Exception as error:  # decoders and transforms fail in many ways on what is no image
            raise BadInput(f"the image cannot be prepared: {first_line(error)[:100]}") from None
        if array.shape != net.shapes[0]:
            raise BadInput(f"the image is prepared as {list(array.shape)}; expected {list(net.shapes[0])}")
        return [array]

    return ready


def _only_size(prepare: Prepare, shape: Sequence[int]) -> tuple[int, int] | None:
    """The width and height that images have to have; None where another size is turned into the net's.

    Without this an image of many megapixels would become an array of floats before it is refused.
    """
    height, width = shape[-2:]
    try:
        other = prepare.from_image(Image.new("RGB", (width + 1, height + 1)), NO_KEY)
        return None if other.shape == tuple(shape) else (width, height)
    except Exception:  # transforms fail in many ways
        return None


def _top(logits: np.ndarray, names: Sequence[str]) -> list[Any]:
    shares = np.exp(logits.astype(np.float64) - logits.max())
    shares /= shares.sum()
    order = np.argsort(-shares, kind="stable")[:TOP]
    return [";".join(names[int(i)] for i in order), shares[order].astype(np.float32)]


class Server(uvicorn.Server):
    """uvicorn's server, which reports the port once it listens."""

    def __init__(self, config: uvicorn.Config, methods: Sequence[str]) -> None:
        super().__init__(config)
        self.methods = list(methods)

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and report the port."""
        await super().startup(sockets)
        if self.started:
            port = self.servers[0].sockets[0].getsockname()[1]
            send(Event("listening", {"port": port, "methods": self.methods}))


def serve(job: ServeJob) -> None:
    """Serve until a signal. Raises BadInput for a net that does not run, BadDestination where nothing can listen."""
    send(Event("started", {"pid": os.getpid()}))
    progress("loading and compiling the net")
    net = Net(job)
    size = net.split.sizes[-1]
    batches = Batches(net, net.thread, size=size, wait=job.wait / 1000, most=job.most_waiting, take=net.split)
    methods = methods_of(net, job)
    with ThreadPoolExecutor(THREADS) as workers:
        app = application(job.name, methods, batches, workers, job.most_bytes)
        Connection.most = most_connections()
        config = uvicorn.Config(
            app,
            job.host,
            job.port,
            http=Connection,
            ws="none",
            log_level="warning",
            access_log=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=GRACE,
        )
        for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn stops at them, and then raises them once more
            signal.signal(number, lambda number, frame: None)
        try:
            Server(config, [*methods]).run()
        except SystemExit:
            raise BadDestination(f"cannot listen on {job.host}:{job.port}; try another --port, or --port 0") from None
    send(Event("stopped", {"instances": batches.instances, "batches": batches.batches}))


if __name__ == "__main__":
    answer(lambda: serve(ServeJob.read(Path(sys.argv[1]) / FILE)))
