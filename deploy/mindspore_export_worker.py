"""The worker: build the net and its inputs, run it, write the file; where a refused operator is; load the file.

    python -m msmigrate.deploy.mindspore_export_worker FOLDER [SIZE…]

FOLDER holds export.json, a Job; inputs, outputs, the exported file and facts.json go there. With SIZE, the MindIR in
FOLDER is loaded and run on the inputs of its export, SIZE examples at a time, and its outputs for each SIZE are left.
"""

from __future__ import annotations

from ..workers.worker import answer, prepare_mindspore, progress

prepare_mindspore()

import io  # noqa: E402
import json  # noqa: E402
import re  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn  # noqa: E402
from PIL import Image  # noqa: E402

from ..errors import BadInput, BadRecipe, Unsupported  # noqa: E402
from ..printable import few  # noqa: E402
from ..training.data.mindspore_pipeline import Prepare  # noqa: E402
from ..training.data.sources import open_arrays, open_source  # noqa: E402
from ..training.inference import images_of, preparation  # noqa: E402
from ..training.mindspore_inference_worker import NO_KEY, batches, loaded, use  # noqa: E402
from ..training.models.model_names import flat  # noqa: E402
from ..training.recipe.schema import ARRAYS  # noqa: E402
from .job import (  # noqa: E402
    EXPORTED,
    FACTS,
    INPUTS,
    MINDIR,
    MORE,
    OTHER,
    REQUEST,
    Job,
    in_batches,
    load,
    save,
    shape_of,
)
from .mindspore_lowering import FOR_DYNAMIC, FOR_ONNX, functions_for_onnx, rewrite  # noqa: E402
from .onnx_graph import StandIns  # noqa: E402
from .output_files import ONNX_WHOLE, beside, graph_of  # noqa: E402

NET, MOVED = "net.npz", "moved{}.npz"  # the net's outputs, and those with its numbers moved by rounding
RUNS = 2
EPS = float(np.finfo(np.float32).eps)


def export(job: Job, folder: Path) -> None:
    """Carry out one job. Raises Unsupported for what cannot be exported, and what reading the weights raises."""
    progress("building the net")
    use("CPU", 0)
    net = loaded(job.request)
    inputs, batch, words = inputs_of(job)
    save(folder / INPUTS, inputs)
    progress("running the net")
    outputs = in_batches(lambda arrays: _run(net, arrays), inputs, batch)
    if not outputs:
        raise BadInput("the net returns no tensor")
    save(folder / NET, outputs)
    if job.noise:
        progress("measuring how the net rounds")
        for run in range(RUNS):
            save(folder / MOVED.format(run), _moved(net, inputs, batch, run))
    marks = StandIns()
    rewritten = []
    if job.form != MINDIR:
        functions_for_onnx(marks)
        rewritten = rewrite(net, FOR_ONNX, marks)
    elif job.dynamic:
        rewritten = rewrite(net, FOR_DYNAMIC, marks)
    progress(f"exporting {job.form}")
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
        return run(net, arrays)
    except (RuntimeError, TypeError, ValueError) as error:
        shapes = " and ".join("×".join(map(str, array.shape)) for array in arrays)
        raise BadInput(f"the net does not run on {shapes}: {first_line(error)}") from None


def _moved(net: nn.Cell, inputs: list[np.ndarray], batch: int, seed: int) -> list[np.ndarray]:
    """The outputs where every weight and input is off by up to one unit of float32's rounding, drawn for each number.

    So every layer's results are off by about as much as by sums in another order. Afterwards the net is as before.
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


EXAMPLES = 4  # at least this many are run
MADE_UP = ((480, 640), (333, 517))  # sizes of two images: if both are prepared to one size, the net takes that


def inputs_of(job: Job) -> tuple[list[np.ndarray], int, str]:
    """The inputs (M, …), the size of a batch, of which M is a multiple, and a description of the inputs.

    Raises BadInput where nothing says which inputs the net takes, and what preparing images raises.
    """
    shapes = [shape_of(text) for text in job.shapes]
    if job.request.images is not None:
        images = prepared(job)
        if shapes and shapes[0][0][1:] != images.shape[1:]:
            raise BadInput(f"--input {job.shapes[0]}: the images are prepared as {_words(images.shape[1:])}")
        batch = job.batch or (shapes[0][0][0] if shapes else 1)
        short = -len(images) % batch
        arrays = [np.concatenate([images, np.repeat(images[-1:], short, axis=0)])]
        return arrays, batch, f"{len(images)} image{'s' * (len(images) > 1)}"
    if not shapes and job.request.recipe.data.of_arrays:
        return rows_of(job)
    if not shapes:
        shapes = [((1, *size_of_images(job)), "float32")]
    batch = job.batch or shapes[0][0][0]
    count = batch * -(-EXAMPLES // batch)
    random = np.random.default_rng(0)
    arrays = [_drawn(random, (count, *shape[1:]), dtype) for shape, dtype in shapes]
    return (
        arrays,
        batch,
        f"{count} drawn input{'s' * (count > 1)} ({' and '.join(_words(a.shape[1:]) for a in arrays)})",
    )


def rows_of(job: Job) -> tuple[list[np.ndarray], int, str]:
    """Inputs out of the file of arrays that the recipe trains on; returns what inputs_of does."""
    recipe, batch = job.request.recipe, job.batch or 1
    if recipe.data.source == ARRAYS:  # a checkpoint's own recipe, whose paths are not read
        raise BadInput("nothing says which inputs the net takes: add --recipe FILE, or --input SHAPE for each")
    source = open_arrays(recipe.data.source, recipe.model)
    count = batch * -(-EXAMPLES // batch)
    inputs, _ = source.rows(np.arange(count) % len(source))
    return [*inputs], batch, f"{count} rows of {source.name}"


def prepared(job: Job) -> np.ndarray:
    """The images, float32 (M, C, H, W), as the recipe prepares them for evaluation."""
    source = images_of(job.request)
    prepare = Prepare(preparation(job.request.recipe), source.mode)
    ready = batches(source, prepare, size=len(source), workers=job.request.recipe.data.workers, skip=False)
    return next(iter(ready)).images


def size_of_images(job: Job) -> tuple[int, ...]:
    """The shape of one image as the recipe prepares it: that of every image if it is the same, else of its first."""
    recipe, mode = job.request.recipe, job.request.mode or "RGB"
    prepare = Prepare(preparation(recipe), mode)
    try:
        shapes = {prepare(encoded(size), NO_KEY).shape for size in MADE_UP}
        if len(shapes) == 1:
            return shapes.pop()
        classes = recipe.model.num_classes
        first = open_source(recipe.data.source, classes, training=False)[0]
        return Prepare(preparation(recipe), first.mode)(np.frombuffer(first.data, dtype=np.uint8), NO_KEY).shape
    except (BadInput, RuntimeError, ValueError, TypeError) as error:
        why = f" ({error})" if isinstance(error, BadInput) and not isinstance(error, BadRecipe) else ""
        raise BadInput(
            f"nothing says which size of images the net takes{why}: add --input SHAPE, or --images"
        ) from None


def encoded(size: tuple[int, int]) -> np.ndarray:
    """The bytes of a made-up image, uint8 (N,)."""
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)).save(buffer, "png")
    return np.frombuffer(buffer.getvalue(), dtype=np.uint8)


def _drawn(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Normal numbers, or for integers zeros and ones, which are valid indices of every embedding."""
    if dtype == "float32":
        return random.standard_normal(shape, dtype=np.float32)
    return random.integers(0, 2, shape).astype(dtype)


def _words(shape: Any) -> str:
    return "×".join(map(str, shape)) or "numbers"


MISSING = (
    re.compile(r"Can not find key (\w+) in convert map"),
    re.compile(r"currently the (\w+) operator in your model is not support"),
    re.compile(r"(?:Unsupported|unsupported|not supported)[^\n]*?operator:? (\w+)"),
)
LONGEST = 300


def operator_in(text: str) -> str | None:
    """The operator that MindSpore's error is about, if it names one."""
    return next((found[1] for pattern in MISSING if (found := pattern.search(text))), None)


def of_operator(net: nn.Cell, inputs: list[Tensor], operator: str, folder: Path) -> list[str]:
    """The modules that contain an operator, as `features.0: HSwish`; empty where MindSpore does not say."""
    from mindspore.train import mind_ir_pb2

    file = folder / "places.mindir"
    try:
        mindspore.export(net, *inputs, file_name=str(file), file_format="MINDIR")
        model = mind_ir_pb2.ModelProto()
        model.ParseFromString(file.read_bytes())
    except Exception:  # this is only for the words of an error
        return []
    nodes = [node for graph in (model.graph, *model.functions) for node in graph.node]
    scopes = [node.domain for node in nodes if re.fullmatch(rf"REF::{operator}(:\d+)?", node.op_type)]
    return list(dict.fromkeys(place(scope) for scope in scopes))


def place(scope: str) -> str:
    """`Default/features-SequentialCell/0-HSwish/HSwish-op3` as `features.0: HSwish`."""
    parts = [part.partition("-") for part in scope.split("/")[1:-1]]
    if not parts:
        return "the net's own construct"
    return f"{'.'.join(name for name, _, _ in parts)}: {parts[-1][2]}"


def first_line(error: Exception) -> str:
    """The first line of an error of MindSpore's; the rest is for its developers."""
    lines = [line.strip() for line in str(error).splitlines()]
    first = next((line for line in lines if line and not line.startswith("-")), type(error).__name__)
    return first[:LONGEST]


def write(net: nn.Cell, job: Job, inputs: list[np.ndarray], batch: int, folder: Path) -> Path:
    """Export the net, always in evaluation mode, into a folder; returns the file.

    An ONNX file that is to have an open batch is exported with a second size of batches, too. Raises Unsupported, which
    names the operator and where it is.
    """
    net.set_train(False)
    given = [Tensor(array[:batch]) for array in inputs]
    if job.form == MINDIR:
        return _mindir(net, job, given, folder)
    file = _onnx(net, job, given, folder)
    if job.dynamic:
        (folder / OTHER).mkdir()
        more = [Tensor(np.zeros((batch + MORE, *array.shape[1:]), array.dtype)) for array in inputs]
        _onnx(net, job, more, folder / OTHER)
    return file


def _mindir(net: nn.Cell, job: Job, given: list[Tensor], folder: Path) -> Path:
    file = folder / f"{job.stem}.mindir"
    if job.dynamic:
        given = [Tensor(shape=[None, *one.shape[1:]], dtype=one.dtype) for one in given]
    options = job.key("enc")
    _try(
        lambda: mindspore.export(net, *given, file_name=str(file), file_format="MINDIR", **options),
        lambda error: Unsupported(
            f"MindSpore cannot export this net as mindir{' with an open batch' * job.dynamic}: {first_line(error)}"
        ),
    )
    if not file.exists():  # a graph alone, and what it reads from a folder beside it
        graph_of(file).rename(file)
        for part in beside(file).iterdir():
            part.chmod(0o600)
    file.chmod(0o600)
    return file


def _onnx(net: nn.Cell, job: Job, given: list[Tensor], folder: Path) -> Path:
    """Export as ONNX; a net too large for one file with MindSpore's other exporter, which writes one per parameter."""
    file = folder / f"{job.stem}.onnx"
    size = sum(parameter.nbytes for parameter in net.get_parameters())

    def export() -> None:
        if size > ONNX_WHOLE:
            mindspore.onnx.export(net, *given, file_name=str(file))
        else:
            mindspore.export(net, *given, file_name=str(file), file_format="ONNX")

    _try(export, lambda error: _cannot(net, given, folder, error))
    file.chmod(0o600)
    return file


def _try(export: Callable[[], None], refusal: Callable[[Exception], Unsupported]) -> None:
    try:
        export()
    except (RuntimeError, TypeError, ValueError, AttributeError) as error:
        raise refusal(error) from None


def _cannot(net: nn.Cell, given: list[Tensor], folder: Path, error: Exception) -> Unsupported:
    operator = operator_in(str(error))
    if operator is None:
        return Unsupported(f"MindSpore cannot export this net as onnx: {first_line(error)}")
    at = of_operator(net, given, operator, folder)
    where = f" ({few(at)})" if at else ""
    return Unsupported(
        f"MindSpore's ONNX exporter has no converter for {operator}{where}, and msmigrate knows no equivalent form; "
        "--format mindir takes it"
    )


def load_and_run(job: Job, folder: Path, sizes: list[int]) -> None:
    """Run a MindIR as anyone would, in batches of each size; raises Unsupported where it does not load or run."""
    progress("loading the MindIR")
    use("CPU", 0)
    file, inputs = str(folder / f"{job.stem}.mindir"), load(folder / INPUTS)
    options = job.key("dec")
    if options and _loads(file):
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
    """Carry out the job in a folder, or load what is there and run it in batches of these sizes."""
    job = Job.read(folder / REQUEST)
    if sizes:
        load_and_run(job, folder, sizes)
    else:
        export(job, folder)


if __name__ == "__main__":
    answer(lambda: main(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]]))
