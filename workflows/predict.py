"""predict from start to end: images and class names found, the net run, results printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..option_fields import as_path
from ..printable import echo, json_line
from ..reports.evaluation import predictions_json, show_predictions
from ..reports.progress import images_counted
from ..reports.terminal import Console
from ..temporary import temporary_folder
from ..training import inference as requests
from ..training import inference as subjects
from ..training.inference import WORKER, NetOptions, Request, Subject, Target, image_files, infer, names_in
from ..training.metrics import Results
from .live_models import model_name
from .results import Result, console_text

TOP = 5
UNREADABLE = 2  # the exit code where an image could not be read, as for any bad input


@dataclass(frozen=True, repr=False)
class PredictionsResult(Result):
    """The likeliest classes of each image; true where every image could be read."""

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
        """A few lines for each image."""
        return console_text(lambda console: show_predictions(self.results, self.names, console))

    def as_dict(self) -> dict[str, Any]:
        """Every image with its classes, as `predict --json` prints them."""
        return predictions_json(self.subject, self.request, self.results, self.names, self.files)


def predict(
    checkpoint: str | Path,
    images: Sequence[str | Path] | str | Path,
    *,
    recipe: str | Path | None = None,
    classes: str | Path | None = None,
    ema: bool = False,
    top: int = TOP,
    batch: int | None = None,
    target: Target | None = None,
    model: Any = None,
    trust_source: str | None = None,
    worker: Sequence[str] = WORKER,
) -> PredictionsResult:
    """Say what is on images, by a checkpoint's net.

    checkpoint: of `train`, of MindSpore or of torch.
    images: files, and folders of files.
    recipe: of a checkpoint that has none.
    classes: a file with the names of the classes, one a line or JSON.
    ema: the moving average of the weights.
    top: how many classes for each image.
    batch: images at once.
    target: the device, "CPU", "Ascend" or "GPU"; the best that is there by default.
    model: the MindSpore net, by name or as the function that builds it, of a checkpoint without a recipe.
    trust_source: the source file that the checkpoint's recipe names, with its digest, as `inspect` shows it.
    worker: the command that runs the net.

    Raises BadCheckpoint, BadInput and WorkerFailed. An image that cannot be read is left out, and the result is false.
    """
    given: Sequence[Any] = images if isinstance(images, (list, tuple)) else [images]
    files = image_files([as_path(each, "images") for each in given])
    with temporary_folder("predict") as folder:
        options = NetOptions(
            model=None if model is None else model_name(model, "model"),
            recipe=as_path(recipe, "recipe"),
            trust=trust_source,
            ema=ema,
        )
        subject = subjects.subject(as_path(checkpoint, "checkpoint"), options, folder)
        names = subject.names(None if classes is None else names_in(as_path(classes, "classes"), subject))
        request = Request(
            recipe=subject.recipe,
            weights=subject.weights,
            shown=str(checkpoint),
            net=subject.net,
            ema=ema,
            images=files,
            mode=requests.own_mode(subject.recipe),
            batch=batch or requests.batch_of(subject.recipe),
            target=target,
            top=min(top, subject.num_classes),
            on_corrupt="skip",
        )
        with images_counted() as on_message:
            results = infer(request, folder, on_message, worker)
    return PredictionsResult(subject, request, results, list(names), files)


def run(checkpoint: Path, images: Sequence[Path], as_json: bool, **options: Any) -> int:
    """Predict the images and print their likeliest classes; returns the exit code.

    An image that cannot be read or decoded is reported on stderr, and the others are predicted; the
    exit code is then 2, and 0 where every image was predicted. options: those of `predict`.
    """
    found = predict(checkpoint, images, **options)
    if as_json:
        echo(json_line(found.as_dict()))
    else:
        show_predictions(found.results, found.names, Console())
    for _, reason in found.results.skipped:
        echo(f"msmigrate: {reason}", err=True)
    return 0 if found else UNREADABLE
