"""predict from start to end: images and class names found, the net run, results printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..printable import echo, json_line
from ..reports.evaluation import predictions_json, show_predictions
from ..reports.progress import images_counted
from ..reports.terminal import Console
from ..temporary import temporary_folder
from ..training import inference as requests
from ..training import inference as subjects
from ..training.inference import WORKER, NetOptions, Request, Target, image_files, infer, names_in

UNREADABLE = 2  # the exit code where an image could not be read, as for any bad input


def run(
    checkpoint: Path,
    images: Sequence[Path],
    recipe: Path | None,
    classes: Path | None,
    ema: bool,
    top: int,
    batch: int | None,
    target: Target | None,
    as_json: bool,
    model: str | None = None,
    trust_source: str | None = None,
    worker: Sequence[str] = WORKER,
) -> int:
    """Predict the images and print their likeliest classes; returns the exit code.

    An image that cannot be read or decoded is told on stderr and does not keep the others from being predicted; the
    exit code is then 2, and 0 where every image was predicted. worker: the command that runs the net.
    """
    files = image_files(images)
    with temporary_folder("predict") as folder:
        options = NetOptions(model=model, recipe=recipe, trust=trust_source, ema=ema)
        subject = subjects.subject(checkpoint, options, folder)
        names = subject.names(None if classes is None else names_in(classes, subject))
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
    if as_json:
        echo(json_line(predictions_json(subject, request, results, names, files)))
    else:
        show_predictions(results, names, Console())
    for _, reason in results.skipped:
        echo(f"msmigrate: {reason}", err=True)
    return UNREADABLE if results.skipped else 0
