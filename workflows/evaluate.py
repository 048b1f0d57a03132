"""eval and predict from start to end: checkpoint and images found, the net run, figures, classes and files written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..atomic_files import atomic_file, refuse_unwritable
from ..errors import BadDestination, BadInput
from ..input_files import open_regular
from ..option_fields import as_path, values_of, with_model
from ..printable import echo
from ..reports.evaluation import (
    About,
    evaluation_json,
    output_lines,
    outputs_json,
    picture,
    predictions_json,
    show,
    show_predictions,
)
from ..reports.progress import images_counted
from ..reports.terminal import Console
from ..temporary import temporary_folder
from ..training import inference, metrics
from ..training.data.array_files import check_inputs
from ..training.inference import OUTPUTS, WORKER, Request, Subject, image_files, infer, names_in
from ..training.metrics import Evaluation, Results, predictions
from ..training.options import EvalOptions, PredictOptions
from ..training.recipe.schema import ARRAY_SUFFIXES, ARRAYS, FOLDER
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
    options: those of the command, with underscores: recipe, for a checkpoint that has none; model, the MindSpore net by
        name or as the function that builds it; trust_source, the source file that the checkpoint's recipe names, with
        its digest, as `inspect` shows it; ema, the moving average of the weights; batch, images at once; target, the
        device; out, a folder that gets report.json, predictions.json and confusion.png, which replace those of an
        earlier evaluation.

    Raises BadCheckpoint, BadInput, BadDestination and WorkerFailed.
    """
    values = values_of(EvalOptions, options, "evaluate", ("checkpoint", "data", "json_file"))
    chosen = EvalOptions(**with_model(values), checkpoint=as_path(checkpoint, "checkpoint"), data=data)
    return _evaluated(chosen, worker)


def run_evaluate(checkpoint: Path, *, worker: Sequence[str] = WORKER, **options: Any) -> int:
    """Evaluate a checkpoint and print its report, or write it as JSON; returns the exit code, which is 0.

    options: those of EvalOptions.
    """
    chosen = EvalOptions(checkpoint=checkpoint, **options)
    result = _evaluated(chosen, worker)
    if not only_json(result.as_dict, chosen.json_file):
        show(result.about, result.evaluation, Console())
        if chosen.out is not None:
            files = FILES if result.evaluation.top1 is not None else (REPORT,)
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
    result = EvaluationResult(about, metrics.evaluate(results, names), results)
    if options.out is not None:
        _write(options.out, about, result.evaluation, results, names)
    return result


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

    For a net that is no classifier only the report is written, and the other files of an earlier evaluation are
    removed.
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


# predict

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
    """Say what is on images, according to a checkpoint's net.

    checkpoint: of `train`, of MindSpore or of torch.
    images: files, and folders of files; for a net that was trained on arrays, one file of arrays.
    worker: the command that runs the net.
    options: those of the command, with underscores: recipe, for a checkpoint that has none; model, the MindSpore net by
        name or as the function that builds it; trust_source, the source file that the checkpoint's recipe names, with
        its digest, as `inspect` shows it; classes, a file with the names of the classes, one a line, or a tree of class
        folders; ema, the moving average of the weights; top, how many classes for each image; batch, images at once;
        target, the device; out, the .npz that gets the outputs for arrays.

    Raises BadCheckpoint, BadInput and WorkerFailed. An image that cannot be read is left out, and the result is false.
    """
    values = values_of(PredictOptions, options, "predict", ("checkpoint", "images", "json_file"))
    paths: Sequence[Any] = images if isinstance(images, (list, tuple)) else [images]
    files = tuple(str(as_path(each, "images")) for each in paths)
    return _predicted(
        PredictOptions(**with_model(values), checkpoint=as_path(checkpoint, "checkpoint"), images=files), worker
    )


def run_predict(checkpoint: Path, images: Sequence[Path], *, worker: Sequence[str] = WORKER, **options: Any) -> int:
    """Predict the images and print their likeliest classes; returns the exit code.

    An image that cannot be read or decoded is reported on stderr, and the others are predicted; the
    exit code is then 2, and 0 where every image was predicted. options: those of PredictOptions.
    """
    chosen = PredictOptions(checkpoint=checkpoint, images=tuple(map(str, images)), **options)
    result = _predicted(chosen, worker)
    if not only_json(result.as_dict, chosen.json_file):
        if result.results.outputs:
            echo(result.text())
        else:
            show_predictions(result.results, result.names, Console())
    for _, reason in result.results.skipped:
        echo(f"msmigrate: {reason}", err=True)
    return 0 if result else UNREADABLE


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
    """A net's outputs for the rows of a file of arrays, written to --out."""
    if len(options.images) > 1:
        raise BadInput(f"give one file of arrays at a time: {file}, without {len(options.images) - 1} more")
    if options.out is None or options.out.suffix != ".npz":
        raise BadInput(f"the net's outputs for {file} are written to a file: add --out outputs.npz")
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
