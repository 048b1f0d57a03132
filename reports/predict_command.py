"""What `msmigrate predict` does around the net: which images, whose names the classes have, and how they are told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from ..errors import BadInput
from ..input_files import read_text
from ..printable import echo, json_line
from ..temporary import temporary_folder
from ..train.data.image_folder import class_names
from ..train.inference import request as requests
from ..train.inference import subject as subjects
from ..train.inference.inference_images import image_files
from ..train.inference.inference_process import WORKER
from ..train.inference.inference_results import Results
from ..train.inference.request import Request, Target
from ..train.inference.subject import LONGEST_CLASS, NetOptions, Subject
from .evaluation import likeliest
from .inference_progress import infer_with_progress
from .terminal import Console, one_line

MOST_NAMES = 1 << 24  # bytes of a file of class names
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
        results = infer_with_progress(request, folder, worker)
    if as_json:
        echo(json_line(_json(subject, request, results, names, files)))
    else:
        _show(results, names, Console())
    for _, reason in results.skipped:
        echo(f"msmigrate: {reason}", err=True)
    return UNREADABLE if results.skipped else 0


def names_in(place: Path, subject: Subject) -> list[str]:
    """Class names from a tree of class folders, or from a file with one a line, as many as the model has classes, where
    that is known."""
    names = class_file(place)
    if subject.counted and len(names) != subject.num_classes:
        raise BadInput(
            f"--classes {place} names {len(names)} classes and the model of {subject.checkpoint} has "
            f"{subject.num_classes}"
        )
    return names


def class_file(place: Path) -> list[str]:
    """The names in a tree of class folders, or in a file with one a line. Raises BadInput."""
    if place.is_dir():
        return class_names(place)
    try:
        names = [line.strip() for line in read_text(place, MOST_NAMES).rstrip().splitlines()]
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"--classes {place} cannot be read: {why}") from error
    for number, name in enumerate(names, 1):
        if len(name) > LONGEST_CLASS:
            raise BadInput(
                f"--classes {place}, line {number}: {len(name):,} letters, and the name of a class has at most "
                f"{LONGEST_CLASS}: give a file with one name on each line"
            )
    return names


def _json(
    subject: Subject, request: Request, results: Results, names: Sequence[str], files: Sequence[str]
) -> dict[str, Any]:
    rows = zip(results.names, results.classes, results.probabilities, strict=True)
    return {
        "checkpoint": str(subject.checkpoint),
        "model": subject.recipe.model.name,
        "recipe": subject.digest,
        "weights": "moving average" if request.ema else "weights",
        "target": results.target,
        "versions": results.versions,
        "predictions": [
            {"image": name, "classes": likeliest(numbers, shares, names)} for name, numbers, shares in rows
        ],
        "errors": [{"image": files[index], "error": reason} for index, reason in results.skipped],
    }


def _show(results: Results, names: Sequence[str], console: Console) -> None:
    """A block of lines for each image: its name, then its classes."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("image", overflow="fold")
    table.add_column("class", overflow="fold")
    table.add_column("probability", justify="right", no_wrap=True)
    for image, numbers, shares in zip(results.names, results.classes, results.probabilities, strict=True):
        for place, (number, share) in enumerate(zip(numbers, shares, strict=True)):
            table.add_row(one_line(image if place == 0 else ""), one_line(names[number]), f"{share:.2%}")
        table.add_section()
    console.print(table)
