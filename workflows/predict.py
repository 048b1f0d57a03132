"""predict from start to end: images and class names found, the net run, results printed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..atomic_files import atomic_file, refuse_unwritable
from ..errors import BadInput
from ..input_files import open_regular
from ..option_fields import as_path, values_of, with_model
from ..printable import echo
from ..reports.evaluation import output_lines, outputs_json, predictions_json, show_predictions
from ..reports.progress import images_counted
from ..reports.terminal import Console
from ..temporary import temporary_folder
from ..training import inference
from ..training.data.array_files import check_inputs
from ..training.inference import OUTPUTS, WORKER, Request, Subject, image_files, infer, names_in
from ..training.metrics import Results
from ..training.options import PredictOptions
from ..training.recipe.schema import ARRAY_SUFFIXES, ARRAYS
from .results import Result, console_text, only_json

UNREADABLE = 2  # the exit code where an image could not be read, as for any bad input


@dataclass(frozen=True, repr=False)
class PredictionsResult(Result):
    """The likeliest classes of each image, or what the net gives for arrays; true where every image could be read."""

    subject: Subject
    request: Request
    results: Results
    names: list[str]
    files: list[str]

    @property
    def ok(self) -> bool:
        """Whether no image was left out."""
        return not self.results.skipped

    def text(self) -> str:
        """A few lines for each image, or one for each output."""
        if self.results.outputs:
            return "\n".join(output_lines(self.results.outputs))
        return console_text(lambda console: show_predictions(self.results, self.names, console))

    def as_dict(self) -> dict[str, Any]:
        """Every image with its classes, or every output, as `predict --json` prints them."""
        if self.results.outputs:
            return outputs_json(self.subject, self.request, self.results)
        return predictions_json(self.subject, self.request, self.results, self.names, self.files)


def predict(
    checkpoint: str | Path,
    images: Sequence[str | Path] | str | Path,
    *,
    worker: Sequence[str] = WORKER,
    **options: Any,
) -> PredictionsResult:
    """Say what is on images, by a checkpoint's net.

    checkpoint: of `train`, of MindSpore or of torch.
    images: files, and folders of files; of a net that was trained on arrays one file of them.
    worker: the command that runs the net.
    options: those of the command, with underscores: recipe, of a checkpoint that has none; model, the MindSpore net by
        name or as the function that builds it; trust_source, the source file that the checkpoint's recipe names, with
        its digest, as `inspect` shows it; classes, a file with the names of the classes, one a line, or a tree of class
        folders; ema, the moving average of the weights; top, how many classes for each image; batch, images at once;
        target, the device; out, the .npz that gets the outputs, of arrays.

    Raises BadCheckpoint, BadInput and WorkerFailed. An image that cannot be read is left out, and the result is false.
    """
    values = values_of(PredictOptions, options, "predict", ("checkpoint", "images", "json_file"))
    given: Sequence[Any] = images if isinstance(images, (list, tuple)) else [images]
    files = tuple(str(as_path(each, "images")) for each in given)
    return _predicted(
        PredictOptions(**with_model(values), checkpoint=as_path(checkpoint, "checkpoint"), images=files), worker
    )


def run(checkpoint: Path, images: Sequence[Path], *, worker: Sequence[str] = WORKER, **options: Any) -> int:
    """Predict the images and print their likeliest classes; returns the exit code.

    An image that cannot be read or decoded is reported on stderr, and the others are predicted; the
    exit code is then 2, and 0 where every image was predicted. options: those of PredictOptions.
    """
    chosen = PredictOptions(checkpoint=checkpoint, images=tuple(map(str, images)), **options)
    found = _predicted(chosen, worker)
    if not only_json(found.as_dict, chosen.json_file):
        if found.results.outputs:
            echo(found.text())
        else:
            show_predictions(found.results, found.names, Console())
    for _, reason in found.results.skipped:
        echo(f"msmigrate: {reason}", err=True)
    return 0 if found else UNREADABLE


def _predicted(options: PredictOptions, worker: Sequence[str]) -> PredictionsResult:
    """The predictions that the options describe."""
    arrays = [each for each in options.images if each.endswith(ARRAY_SUFFIXES)]
    if arrays:
        return _outputs(options, Path(arrays[0]), worker)
    files = image_files([Path(each) for each in options.images])
    with temporary_folder("predict") as folder:
        subject = inference.subject(options, folder)
        if subject.recipe.data.of_arrays:
            raise BadInput(
                f"{options.checkpoint} was trained on arrays: give a file that ends in {' or '.join(ARRAY_SUFFIXES)}"
            )
        if options.out is not None:
            raise BadInput("--out is for the outputs of a net that takes arrays; --json FILE has the classes of images")
        names = subject.names(None if options.classes is None else names_in(options.classes, subject))
        request = subject.request(
            images=files,
            mode=inference.own_mode(subject.recipe),
            batch=options.batch or inference.batch_of(subject.recipe),
            target=options.device,
            top=min(options.top, subject.num_classes),
            on_corrupt="skip",
        )
        with images_counted() as on_message:
            results = infer(request, folder, on_message, worker)
    return PredictionsResult(subject, request, results, names, files)


def _outputs(options: PredictOptions, file: Path, worker: Sequence[str]) -> PredictionsResult:
    """What a net gives for the rows of a file of arrays, in a file of their own."""
    if len(options.images) > 1:
        raise BadInput(f"of arrays one file is predicted at a time: {file}, without {len(options.images) - 1} more")
    if options.out is None or options.out.suffix != ".npz":
        raise BadInput(f"what the net gives for {file} is written to a file: add --out outputs.npz")
    check_inputs(file)
    refuse_unwritable(options.out)
    with temporary_folder("predict") as folder:
        subject = inference.subject(options, folder)
        if not subject.recipe.data.of_arrays:
            raise BadInput(f"{options.checkpoint} was trained on images, and {file} holds arrays")
        request = subject.request(
            source=f"{ARRAYS}{file.absolute()}",
            outputs=True,
            batch=options.batch or inference.batch_of(subject.recipe),
            target=options.device,
        )
        with images_counted() as on_message:
            results = infer(request, folder, on_message, worker)
        with (
            open_regular(folder / OUTPUTS) as made,
            atomic_file(options.out, force=True) as descriptor,
            open(descriptor, "wb", closefd=False) as written,
        ):
            shutil.copyfileobj(made, written)
    return PredictionsResult(subject, request, results, [], [str(file)])
