"""eval from start to end: checkpoint and data found, the net run, figures and files written."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from ..atomic_files import atomic_file
from ..errors import BadDestination
from ..printable import echo, json_line
from ..reports.evaluation import About, evaluation_json, picture, show
from ..reports.progress import images_counted
from ..reports.terminal import Console
from ..temporary import temporary_folder
from ..training import inference as requests
from ..training import inference as subjects
from ..training.inference import WORKER, NetOptions, Request, Subject, Target, infer
from ..training.metrics import Evaluation, Results, evaluate, predictions
from ..training.recipe.schema import FOLDER

REPORT, PREDICTIONS, CONFUSION = FILES = ("report.json", "predictions.json", "confusion.png")
TOP = 5


def run(
    checkpoint: Path,
    data: str | None,
    recipe: Path | None,
    ema: bool,
    batch: int | None,
    target: Target | None,
    out: Path | None,
    as_json: bool,
    model: str | None = None,
    trust_source: str | None = None,
    worker: Sequence[str] = WORKER,
) -> int:
    """Evaluate a checkpoint and print its report, or write it as JSON; returns the exit code, which is 0.

    out: a folder that gets report.json, predictions.json and confusion.png; it may hold other files, and those three
    of an earlier evaluation are replaced. worker: the command that runs the net.
    """
    if out is not None:
        _refuse_unwritable(out)
    with temporary_folder("eval") as folder:
        options = NetOptions(model=model, recipe=recipe, trust=trust_source, ema=ema)
        subject = subjects.subject(checkpoint, options, folder)
        named = requests.source_named(data, subject.recipe, stored=subject.stored)
        classes, numbers = subjects.labelled(subject, named)
        request = Request(
            recipe=subject.recipe,
            weights=subject.weights,
            shown=str(checkpoint),
            net=subject.net,
            ema=ema,
            source=named,
            classes=numbers,
            mode=requests.mode_of(named, subject.recipe),
            batch=batch or requests.batch_of(subject.recipe),
            target=target,
            top=TOP,
            on_corrupt=subject.recipe.data.on_corrupt,
        )
        with images_counted() as on_message:
            results = infer(request, folder, on_message, worker)
    names = subject.names(None if subject.classes else classes)
    evaluation = evaluate(results, names)
    about = _about(subject, request, named, classes, results)
    if out is not None:
        _write(out, about, evaluation, results, names)
    if as_json:
        echo(json_line(evaluation_json(about, evaluation)))
    else:
        show(about, evaluation, Console())
        if out is not None:
            echo(f"Written to {out}: {', '.join(FILES)}")
    return 0


def _about(subject: Subject, request: Request, named: str, of_source: Sequence[str], results: Results) -> About:
    run = subject.run or {}
    notes = []
    if subject.classes is None and (named.startswith(FOLDER) or len(of_source) < subject.num_classes):
        last = f" to {len(of_source) - 1}" if len(of_source) > 1 else ""
        notes.append(
            f"{subject.checkpoint} names no classes: those of the images, in sorted order, were taken for the model's "
            f"classes 0{last} of {subject.num_classes}"
        )
    if subject.averaged and not request.ema:
        notes.append(
            f"{subject.checkpoint} also holds a moving average, which training validated: --ema evaluates that"
        )
    return About(
        checkpoint=str(subject.checkpoint),
        model=subject.recipe.model.name,
        recipe=subject.digest,
        weights="moving average" if request.ema else "weights",
        step=run.get("step"),
        epoch=run.get("epoch"),
        source=named,
        target=results.target,
        versions=results.versions,
        seconds=round(results.seconds, 3),
        skipped=[reason for _, reason in results.skipped],
        notes=notes,
    )


def _write(out: Path, about: About, evaluation: Evaluation, results: Results, names: Sequence[str]) -> None:
    """Write the three files, each of which appears whole or not at all; the report comes last."""
    title = (
        f"{Path(about.checkpoint).name} on {about.source}: top-1 {evaluation.top1:.2%} of {evaluation.images} images"
    )
    drawn = picture(evaluation.matrix, [row.name for row in evaluation.classes], title)
    listed = json.dumps(predictions(results, names), indent=1, ensure_ascii=False)
    report = json.dumps(evaluation_json(about, evaluation), indent=1, ensure_ascii=False)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadDestination(f"the folder {out} cannot be made: {error.strerror}") from error
    for name, content in ((CONFUSION, drawn), (PREDICTIONS, listed.encode()), (REPORT, report.encode())):
        with atomic_file(out / name, force=True) as fd, open(fd, "wb", closefd=False) as file:
            file.write(content)


def _refuse_unwritable(out: Path) -> None:
    """Raise BadDestination now where writing could only fail after all the work."""
    place = out
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise BadDestination(f"{out} cannot be a folder: {place} is a file")
    if not os.access(place, os.W_OK | os.X_OK):
        raise BadDestination(f"nothing can be written to {out}: no permission for {place}")
    taken = next((out / name for name in FILES if (out / name).is_dir()), None)
    if taken is not None:
        raise BadDestination(f"{taken} cannot be written: it is a folder")
