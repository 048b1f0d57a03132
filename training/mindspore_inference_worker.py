"""The worker: every image once, in batches, through the net in evaluation mode.

    python -m msmigrate.training.mindspore_inference_worker REQUEST.json

Leaves the results in the folder of the request.
"""

from __future__ import annotations

from ..workers.worker import prepare_mindspore, progress, run

prepare_mindspore()

import time  # noqa: E402
from collections import deque  # noqa: E402
from collections.abc import Callable, Iterator, Sequence  # noqa: E402
from concurrent.futures import Future, ThreadPoolExecutor  # noqa: E402
from contextlib import nullcontext  # noqa: E402
from itertools import islice  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any, NamedTuple  # noqa: E402

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn  # noqa: E402
from mindspore.nn.utils import no_init_parameters  # noqa: E402

from ..errors import BadInput, BadRecipe, MsmigrateError, WorkerFailed  # noqa: E402
from ..migrate.model_spec import called, parse, place_of  # noqa: E402
from . import device_targets  # noqa: E402
from .checkpoints import EMA, read  # noqa: E402
from .data.array_files import read_inputs  # noqa: E402
from .data.mindspore_dataloader import target  # noqa: E402
from .data.mindspore_pipeline import Prepare as PrepareInMindSpore  # noqa: E402
from .data.preprocessing import Prepare, PreparedImages  # noqa: E402
from .data.sources import Source, open_arrays  # noqa: E402
from .inference import OUTPUTS, Request, images_of, preparation  # noqa: E402
from .metrics import Results, Scores  # noqa: E402
from .models import mindspore_models  # noqa: E402
from .models.model_names import flat, is_ours  # noqa: E402
from .options import TARGETS  # noqa: E402
from .recipe.schema import ARRAYS  # noqa: E402
from .step.mindspore_amp import first_tensor  # noqa: E402
from .step.mindspore_step import build_loss  # noqa: E402

AHEAD = 2  # batches that are prepared while the net works on one
NO_KEY = np.zeros(3, dtype=np.int64)  # nothing is drawn


class Batch(NamedTuple):
    """Up to a batch of images, in the order of their source.

    names, labels int32 (N,), images float32 (N, C, H, W). skipped: index and reason of the images that were passed over
    before it; done: the position in the source after this batch.
    """

    names: list[str]
    labels: np.ndarray
    images: np.ndarray
    skipped: list[tuple[int, str]]
    done: int


class _Image(NamedTuple):
    name: str
    label: int
    array: np.ndarray | None
    damage: str = ""


def batches(source: Source, prepare: Prepare, *, size: int, workers: int, skip: bool) -> Iterator[Batch]:
    """The source in batches of `size`, the last one with the rest (which may be nothing but skipped images).

    workers: threads that read, decode and transform. skip: pass over images that cannot be read or decoded, and list
    them; otherwise the first one is raised as BadInput. Raises BadRecipe where the transforms fail, or leave images of
    several sizes.
    """
    images: list[_Image] = []
    skipped: list[tuple[int, str]] = []
    for index, image in enumerate(_prepared(source, prepare, size, workers)):
        if image.array is not None:
            images.append(image)
        elif skip:
            skipped.append((index, image.damage))
        else:
            raise BadInput(
                f"{source.name}: {image.damage} (data.on_corrupt: skip in the recipe passes over such images)"
            )
        if len(images) == size or index + 1 == len(source):
            yield _batch(images, skipped, index + 1)
            images, skipped = [], []


def _prepared(source: Source, prepare: Prepare, size: int, workers: int) -> Iterator[_Image]:
    """The images in order, with `AHEAD` batches of them under way."""
    indices = iter(range(len(source)))
    images = PreparedImages(source, prepare, skip=False)
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[_Image]] = deque()
        try:
            while True:
                wanted = AHEAD * size + 1 - len(waiting)
                waiting.extend(pool.submit(_image, images, prepare, index) for index in islice(indices, wanted))
                if not waiting:
                    return
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _image(images: PreparedImages, prepare: Prepare, index: int) -> _Image:
    try:
        sample = images.source[index]
        data = np.frombuffer(sample.data, dtype=np.uint8)
        array = images.guarded(sample.name, lambda: prepare(data, NO_KEY), sample)
        return _Image(sample.name, sample.label, images.fit(array, sample.name))
    except BadRecipe:
        raise
    except BadInput as damage:
        return _Image("", 0, None, str(damage))


def _batch(images: list[_Image], skipped: list[tuple[int, str]], done: int) -> Batch:
    arrays = [image.array for image in images if image.array is not None]
    stacked = np.stack(arrays) if arrays else np.empty((0, 0, 0, 0), dtype=np.float32)
    labels = np.array([image.label for image in images], dtype=np.int32)
    return Batch([image.name for image in images], labels, stacked, skipped, done)


def carry_out(request: Request, folder: Path) -> Results:
    """Load the weights, run the net over all images, and keep the requested part of its outputs.

    folder: for the outputs, where these are requested.

    Raises what reading weights and images raises, and Unsupported for a target that MindSpore cannot use.
    """
    if request.recipe.data.of_arrays:
        return of_arrays(request, folder)
    progress("opening the images")
    source = images_of(request)
    progress("building the net")
    target = use(request.target, request.recipe.train.device_id)
    net = loaded(request)
    scores, skipped = Scores(request.top), []
    size = min(request.batch, len(source))
    began = time.monotonic()
    progress("compiling")
    for ready in batches(
        source,
        PrepareInMindSpore(preparation(request.recipe), source.mode),
        size=size,
        workers=request.recipe.data.workers,
        skip=request.on_corrupt == "skip",
    ):
        skipped += ready.skipped
        if ready.names:
            scores.add(ready.names, ready.labels, logits(net, [ready.images], size))
        progress("images", done=ready.done, total=len(source))
    versions = {"mindspore": mindspore.__version__, "numpy": np.__version__}
    return scores.results(skipped, time.monotonic() - began, target, versions)


def of_arrays(request: Request, folder: Path) -> Results:
    """Like carry_out, for the rows of a file of arrays, which are used as they are.

    With labels that are no classes, the losses are the recipe's own, each the mean of its batch.
    """
    progress("opening the arrays")
    assert request.source is not None
    recipe = request.recipe
    if request.outputs:
        return _outputs(request, read_inputs(Path(request.source.removeprefix(ARRAYS))), folder)
    source = open_arrays(request.source, recipe.model)
    progress("building the net")
    chosen = use(request.target, recipe.train.device_id)
    net = loaded(request)
    loss = None if source.classes else build_loss(recipe)
    scores, size = Scores(request.top), min(request.batch, len(source))
    began = time.monotonic()
    progress("compiling")
    for start in range(0, len(source), size):
        rows = np.arange(start, min(start + size, len(source)))
        inputs, labels = source.rows(rows)
        names = [f"row {row}" for row in rows]
        if loss is None:
            scores.add(names, labels, logits(net, inputs, size))
        else:
            scores.add_loss(names, _loss(net, inputs, labels, loss))
        progress("rows", done=int(rows[-1]) + 1, total=len(source))
    versions = {"mindspore": mindspore.__version__, "numpy": np.__version__}
    return scores.results([], time.monotonic() - began, chosen, versions)


def _outputs(request: Request, inputs: tuple[np.ndarray, ...], folder: Path) -> Results:
    """Leave the net's outputs for all rows in the folder, as output, output.1 and so on; for an output that is one
    number or has no rows in its first axis, that of each batch, one below the other, the last one filled up with its
    last row."""
    progress("building the net")
    chosen = use(request.target, request.recipe.train.device_id)
    net, total = loaded(request), len(inputs[0])
    size = min(request.batch, total)
    began = time.monotonic()
    progress("compiling")
    parts: list[list[np.ndarray]] = []
    of_rows: list[bool] = []
    for start in range(0, total, size):
        given = [each[start : start + size] for each in inputs]
        count = len(given[0])
        given = [np.concatenate([each, np.repeat(each[-1:], size - count, axis=0)]) for each in given]
        try:
            gave = [each.asnumpy() for each in flat(net(*map(Tensor, given)), Tensor)]
            of_rows = [_in_rows(each, size) for each in gave]
            rows = zip(gave, of_rows, strict=True)
            parts.append([each[: len(each) * count // size] if in_rows else each for each, in_rows in rows])
        except (RuntimeError, TypeError, ValueError) as error:
            raise _misfit(error, given, len(given[0])) from error
        progress("rows", done=min(start + size, total), total=total)
    joins = (np.concatenate if in_rows else np.stack for in_rows in of_rows)
    whole = [join(pieces) for join, pieces in zip(joins, zip(*parts, strict=True), strict=True)]
    arrays: dict[str, Any] = {f"output{f'.{place}' if place else ''}": each for place, each in enumerate(whole)}
    np.savez(folder / OUTPUTS, **arrays)
    versions = {"mindspore": mindspore.__version__, "numpy": np.__version__}
    nothing, shapes = np.zeros((0, 0)), {name: [*array.shape] for name, array in arrays.items()}
    names = [f"row {row}" for row in range(total)]
    none = nothing.reshape(-1)
    return Results(names, none, none, nothing, nothing, [], time.monotonic() - began, chosen, versions, shapes)


def _in_rows(output: np.ndarray, size: int) -> bool:
    """Whether an output has its rows in its first axis, one or several for each example."""
    return output.ndim > 0 and len(output) % size == 0


def _loss(net: nn.Cell, inputs: Sequence[np.ndarray], labels: np.ndarray, loss: Callable[..., Any]) -> float:
    try:
        return float(loss(net(*map(Tensor, inputs)), target(labels)).asnumpy())
    except (RuntimeError, TypeError, ValueError) as error:
        raise _misfit(error, inputs, len(labels)) from error


def use(target: str | None, device_id: int) -> str:
    """Compile for this target, or for the best available one, and return it.

    Raises Unsupported in one line where MindSpore cannot.
    """
    there = (name for name in TARGETS if getattr(mindspore.device_context, name.lower()).is_available())
    chosen = target or next(there, "CPU")
    device_targets.use(chosen, device_id, mindspore.GRAPH_MODE)
    return chosen


def loaded(request: Request) -> nn.Cell:
    """The recipe's net in evaluation mode with the weights of the checkpoint, or their moving average.

    The file is read by msmigrate's own reader: MindSpore's loader trusts every length in it.
    """
    return fill(made(request), request)


def made(request: Request) -> nn.Cell:
    """The request's net, without the weights of its checkpoint. Raises BadInput and WorkerFailed."""
    if request.net is None:
        model = request.recipe.model
        # shapes are compared before anything is allocated: a checkpoint may claim any width
        with no_init_parameters() if is_ours(model.name) else nullcontext():
            return mindspore_models.of_recipe(model)
    spec = parse(request.net)
    try:
        net = called(spec)
    except BadInput as error:
        raise BadInput(f"--model {request.net}: {error}") from None
    except Exception as error:  # the user's own code may fail in any way
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise WorkerFailed(f"--model {request.net} failed: {said}{place_of(error)}") from None
    if not isinstance(net, nn.Cell):
        raise BadInput(f"--model {request.net} returns {type(net).__name__}, not a mindspore.nn.Cell")
    return net


def fill(net: nn.Cell, request: Request) -> nn.Cell:
    """The net with the weights of the checkpoint, or their moving average, in evaluation mode."""
    tensors = read(request.weights).tensors
    mindspore_models.load_weights(net, tensors, request.shown, request.recipe, EMA if request.ema else "")
    return net.set_train(False)


def logits(net: nn.Cell, inputs: Sequence[np.ndarray], size: int) -> np.ndarray:
    """The logits (N, K) of N examples; a smaller batch is filled up to `size`, else MindSpore would compile again."""
    count = len(inputs[0])
    if count < size:
        inputs = [np.concatenate([each, np.repeat(each[-1:], size - count, axis=0)]) for each in inputs]
    try:
        outputs: np.ndarray = first_tensor(net(*map(Tensor, inputs))).asnumpy()[:count]
    except (RuntimeError, TypeError, ValueError) as error:
        raise _misfit(error, inputs, size) from error
    if outputs.ndim != 2:
        raise BadRecipe(
            f"the net returns {list(outputs.shape)} for {count} examples, where logits of {count} × classes are needed"
        )
    return outputs


def _misfit(error: Exception, inputs: Sequence[np.ndarray], size: int) -> MsmigrateError:
    """The error of a net that fails on a batch of `size`, in one line."""
    first = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
    images = len(inputs) == 1 and inputs[0].ndim == 4
    if "emory" in str(error):
        return WorkerFailed(f"a batch of {size} does not fit in memory ({first}): lower --batch")
    shape = " and ".join(" × ".join(map(str, each.shape[1:])) or "one number" for each in inputs)
    what = f"images of {shape} as the recipe prepares them" if images else f"inputs of {shape}"
    return BadRecipe(f"the net cannot be run on {what}: {first}")


def main(request_file: Path) -> None:
    """Carry out one request and leave its results where it lies."""
    request = Request.read(request_file)
    carry_out(request, request_file.parent).write(request_file.parent)


if __name__ == "__main__":
    run(main, Path)
