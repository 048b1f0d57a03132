"""eval from start to end: checkpoint and data found, the net run, figures and files written."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..atomic_files import atomic_file
from ..errors import BadDestination, BadInput
from ..option_fields import as_path, values_of, with_model
from ..printable import echo
from ..reports.evaluation import About, evaluation_json, picture, show
from ..reports.progress import images_counted
from ..reports.terminal import Console
from ..temporary import temporary_folder
from ..training import inference, metrics
from ..training.inference import WORKER, Request, Subject, infer
from ..training.metrics import Evaluation, Results, predictions
from ..training.options import EvalOptions
from ..training.recipe.schema import FOLDER
from .results import Result, console_text, only_json

REPORT, PREDICTIONS, CONFUSION = FILES = ("report.json", "predictions.json", "confusion.png")
TOP = 5


@dataclass(frozen=True, repr=False)
class EvaluationResult(Result):
    """Accuracy and confusions over every image once."""

    about: About
    evaluation: Evaluation
    results: Results

    @property
    def ok(self) -> bool:
        """True: the images were evaluated."""
        return True

    def text(self) -> str:
        """Accuracy, the classes, and what is most often confused."""
        return console_text(lambda console: show(self.about, self.evaluation, console))

    def as_dict(self) -> dict[str, Any]:
        """The report as `eval --json` prints it."""
        return evaluation_json(self.about, self.evaluation)


def evaluate(
    checkpoint: str | Path, data: str | None = None, *, worker: Sequence[str] = WORKER, **options: Any
) -> EvaluationResult:
    """Evaluate a checkpoint on every image once; `eval`.

    checkpoint: of `train`, of MindSpore or of torch.
    data: a folder of images, or a source that recipes name; the recipe's own validation images by default.
    worker: the command that runs the net.
    options: those of the command, with underscores: recipe, of a checkpoint that has none; model, the MindSpore net by
        name or as the function that builds it; trust_source, the source file that the checkpoint's recipe names, with
        its digest, as `inspect` shows it; ema, the moving average of the weights; batch, images at once; target, the
        device; out, a folder that gets report.json, predictions.json and confusion.png, in the place of those three of
        an earlier evaluation.

    Raises BadCheckpoint, BadInput, BadDestination and WorkerFailed.
    """
    values = values_of(EvalOptions, options, "evaluate", ("checkpoint", "data", "json_file"))
    chosen = EvalOptions(**with_model(values), checkpoint=as_path(checkpoint, "checkpoint"), data=data)
    return _evaluated(chosen, worker)


def run(checkpoint: Path, *, worker: Sequence[str] = WORKER, **options: Any) -> int:
    """Evaluate a checkpoint and print its report, or write it as JSON; returns the exit code, which is 0.

    options: those of EvalOptions.
    """
    chosen = EvalOptions(checkpoint=checkpoint, **options)
    found = _evaluated(chosen, worker)
    if not only_json(found.as_dict, chosen.json_file):
        show(found.about, found.evaluation, Console())
        if chosen.out is not None:
            files = FILES if found.evaluation.top1 is not None else (REPORT,)
            echo(f"Written to {chosen.out}: {', '.join(files)}")
    return 0


def _evaluated(options: EvalOptions, worker: Sequence[str]) -> EvaluationResult:
    """The evaluation that the options describe."""
    if options.out is not None:
        _refuse_unwritable(options.out)
    with temporary_folder("eval") as folder:
        subject = inference.subject(options, folder)
        named = inference.source_named(options.data, subject.recipe, stored=subject.stored)
        classes, numbers = inference.labelled(subject, named)
        if not classes and subject.stored:
            raise BadInput(
                f"the labels are no classes, and {subject.checkpoint} does not say which loss to measure: "
                "add --recipe FILE"
            )
        request = subject.request(
            source=named,
            classes=numbers,
            mode=inference.mode_of(named, subject.recipe),
            batch=options.batch or inference.batch_of(subject.recipe),
            target=options.device,
            top=TOP,
            on_corrupt=subject.recipe.data.on_corrupt,
        )
        with images_counted() as on_message:
            results = infer(request, folder, on_message, worker)
    names = subject.names(None if subject.classes else classes) if classes else []
    about = _about(subject, request, named, classes, results)
    found = EvaluationResult(about, metrics.evaluate(results, names), results)
    if options.out is not None:
        _write(options.out, about, found.evaluation, results, names)
    return found


def _about(subject: Subject, request: Request, named: str, of_source: Sequence[str], results: Results) -> About:
    run = subject.run or {}
    notes = []
    if of_source and subject.classes is None and (named.startswith(FOLDER) or len(of_source) < subject.num_classes):
        last = f" to {len(of_source) - 1}" if len(of_source) > 1 else ""
        count = f" of {subject.num_classes}" if subject.counted else ""  # a Cell of the user's does not say
        notes.append(
            f"{subject.checkpoint} names no classes: those of the images, in sorted order, were taken for the model's "
            f"classes 0{last}{count}"
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
    """Write the files, each of which appears whole or not at all; the report comes last.

    Of a net that tells no classes apart it is the report alone, and what an earlier evaluation left of others goes.
    """
    files = {}
    if evaluation.top1 is not None:
        share = f"top-1 {evaluation.top1:.2%} of {evaluation.images} images"
        title = f"{Path(about.checkpoint).name} on {about.source}: {share}"
        files[CONFUSION] = picture(evaluation.matrix, [row.name for row in evaluation.classes], title)
        files[PREDICTIONS] = json.dumps(predictions(results, names), indent=1, ensure_ascii=False).encode()
    report = json.dumps(evaluation_json(about, evaluation), indent=1, ensure_ascii=False)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadDestination(f"the folder {out} cannot be made: {error.strerror}") from error
    for name in {*FILES} - {*files, REPORT}:
        (out / name).unlink(missing_ok=True)
    for name, content in {**files, REPORT: report.encode()}.items():
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
