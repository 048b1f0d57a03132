"""convert-model from start to end: the source written, the weights converted, the pair compared."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import click

from ..atomic_files import atomic_file, check_destination, refuse_unwritable
from ..errors import BadDestination, MsmigrateError
from ..migrate import model_spec
from ..migrate.checkpoint.convert import Result as Conversion
from ..migrate.checkpoint.convert import convert, make_plan
from ..migrate.source.convert_model import ConvertedModel, ProofInputs, flat_pair, start, write_source
from ..migrate.source.variations import now_trying, try_variations
from ..option_fields import STDOUT, as_path, model_name, values_of
from ..parity.job import Pair, ParityJob
from ..parity.options import StepOptions
from ..parity.result import Report
from ..printable import echo
from ..reports.converted_model import Converted, as_json, ckpt_line, source_lines, tried_lines, untrained_line
from ..reports.html.parity_page import write_html
from ..reports.parity_json import write_json
from ..reports.parity_terminal import show
from ..reports.progress import doing
from ..reports.terminal import Console
from ..temporary import temporary_folder
from ..training.recipe import reader as recipes
from .parity_step import UNPROVEN, ParityResult, made_by, with_progress
from .results import Result, only_json

HIDING = (
    "mindspore",
    "numpy",
    "torch",
    "torchvision",
    "timm",
    "msmigrate",
)  # a file of such a name would hide the package


@dataclass(frozen=True)
class ConvertModelOptions(StepOptions):
    """The options of convert-model; StepOptions are those of the step that proves it, on `batch` examples."""

    model: str
    shapes: tuple[str, ...]
    out: Path
    weights: Path | None = None
    seed: int = 0
    no_proof: bool = False
    recipe: Path | None = None
    batch: int = field(default=4, kw_only=True)
    html: Path | None = None
    parity_report: Path | None = None
    json_file: Path | None = None
    force: bool = False

    @property
    def ckpt(self) -> Path:
        """Where the weights go: beside the source."""
        return self.out.with_suffix(".ckpt")


@dataclass(frozen=True, repr=False)
class ConvertedModelResult(Result):
    """A model written in MindSpore, its weights, and the proof; true where all of it is whole and the same."""

    converted: Converted
    lines: list[str]

    @property
    def ok(self) -> bool:
        """Whether the source is whole, the weights load, and the step is the same unless no proof was asked for."""
        return self.converted.sound

    @property
    def proof(self) -> ParityResult | None:
        """The verdict of the step, None where there is none."""
        report = self.converted.report
        return None if report is None else ParityResult(replace(report, recipe=self.converted.model))

    def text(self) -> str:
        """What was written, what could not be, and the proof's verdict."""
        proof = [] if self.proof is None else [self.proof.text().rstrip("\n")]
        return "\n".join([*self.lines, *proof, *self.converted.stopped])

    def as_dict(self) -> dict[str, Any]:
        """The result as `convert-model --json` prints it."""
        return as_json(self.converted)


def convert_model(model: Any, out: str | Path, *, shapes: Sequence[str] = (), **options: Any) -> ConvertedModelResult:
    """Write a torch model as a MindSpore class in a source file, convert its weights, and prove the step.

    model: the torch model by name (torchvision:resnet18, FILE.py:FUNCTION) or as the function that builds it.
    out: the new source file, which ends in .py; the weights go into a .ckpt next to it.
    shapes: those of the model's inputs, such as "1x3x224x224"; found by trying where none are given.
    options: those of the command, with underscores: weights, seed, no_proof, recipe, batch, steps, mode, no_replay,
        timeout, html, parity_report, force.

    Raises BadInput, BadDestination, BadCheckpoint and WorkerFailed before anything is written. What stops later is part
    of the result, which is false then; the files that are whole by then stay.
    """
    values = values_of(ConvertModelOptions, options, "convert_model", ("model", "out", "shapes", "json_file"))
    values |= {"model": model_name(model, "model"), "out": as_path(out, "out"), "shapes": shapes}
    chosen = ConvertModelOptions(**values)
    return _converted(chosen, lambda text: None, lambda report: None)


def run(options: ConvertModelOptions) -> int:
    """Convert a model and print what came of it; returns the exit code, 0 for parity, 1 where something is missing or
    not the same. Raises what `convert_model` raises."""
    quiet = options.json_file == STDOUT
    say: Callable[[str], None] = (lambda text: None) if quiet else click.echo
    result = _converted(options, say, lambda report: None if quiet else show(report, Console()))
    only_json(result.as_dict, options.json_file)
    for line in result.converted.stopped:
        echo(f"msmigrate: {line}", err=True)
    return 0 if result else 1


def _converted(
    options: ConvertModelOptions, say: Callable[[str], None], show_proof: Callable[[Report], None]
) -> ConvertedModelResult:
    """The conversion that the options describe. say, show_proof: called when a line, or the verdict, is known."""
    lines: list[str] = []

    def add_line(text: str) -> None:
        lines.append(text)
        say(text)

    recipe_file = recipes.find(options.recipe)
    recipes.load(recipe_file)  # so that its errors are reported before minutes of work, not after
    target = _target(options)
    with temporary_folder("convert") as folder:
        with model_spec.one_start():
            if options.weights is not None:
                make_plan(options.weights, options.ckpt, model=options.model).check()
            with doing("running the torch model to see which of its code runs"):
                written = write_source(options.model, options.shapes)
            with doing("building the torch model's weights and a batch"):
                begin = start(
                    options.model, options.shapes, folder, seed=options.seed, batch=options.batch, steps=options.steps
                )
            _write(target, written.text, force=options.force)
            for line in source_lines(options.model, options.out, written):
                add_line(line)
            converted = Converted(options.model, options.out, written, proof=not options.no_proof and begin.trains)
            if begin.saved or options.weights is not None:
                converted = _with_weights(options, converted, options.weights or begin.weights, add_line)
            else:
                converted = replace(converted, weightless=True, loaded=not written.problems)
            converted = _with_variations(options, converted, folder / "variations", add_line)
        if not options.no_proof and converted.loaded and not begin.trains:
            spec = model_spec.parse(options.model)
            add_line(untrained_line(spec.place, spec.name, options.out))
        elif not options.no_proof and converted.loaded:
            converted = _with_proof(options, converted, begin, recipe_file, folder / "run")
            if converted.report is not None:
                show_proof(replace(converted.report, recipe=options.model))
        elif not options.no_proof:
            add_line("not proven, because the source is incomplete")
    return ConvertedModelResult(converted, lines)


def _target(options: ConvertModelOptions) -> Path:
    """Where the source goes. Raises BadDestination where that, or the checkpoint beside it, cannot be written."""
    out = options.out
    if out.suffix != ".py":
        raise BadDestination(f"{out}: MindSpore source is a Python file; give it a name that ends in .py")
    if out.stem in (*sys.stdlib_module_names, *HIDING):
        raise BadDestination(f"{out}: `import {out.stem}` would get this file instead; give it another name")
    place = model_spec.parse(options.model).place
    check_destination(options.ckpt, options.weights or Path(place), force=options.force)
    for file in (options.html, options.parity_report):
        if file is not None:
            refuse_unwritable(file)
    return check_destination(out, Path(place), force=options.force)


def _write(target: Path, text: str, *, force: bool) -> None:
    with atomic_file(target, force=force) as descriptor, os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(text.encode("utf-8"))


def _with_weights(
    options: ConvertModelOptions, converted: Converted, weights: Path, add_line: Callable[[str], None]
) -> Converted:
    """Convert the weights, and load them into the new net where its source is complete."""
    whole = not converted.written.problems
    into = _net(options, converted.written) if whole else None
    try:
        with doing("converting the weights, and loading them in MindSpore"):
            result: Conversion = convert(weights, options.ckpt, model=options.model, into=into, force=options.force)
    except MsmigrateError as error:
        return replace(converted, stopped=[f"the weights are not converted: {error}"])
    add_line(ckpt_line(result, converted.written.maker, loaded=whole))
    return replace(converted, ckpt=result, loaded=whole)


def _with_variations(
    options: ConvertModelOptions, converted: Converted, folder: Path, add_line: Callable[[str], None]
) -> Converted:
    """Run the new classes next to torch's, as they are and with other arguments."""
    if not converted.loaded:
        return converted
    written = converted.written
    try:
        plan = written.variations
        with doing(lambda: now_trying(plan, folder)):
            tried = try_variations(
                options.model, options.shapes, written.text, written.maker, plan, folder, options.out.name
            )
    except MsmigrateError as error:
        return replace(converted, stopped=[f"not tried with other arguments: {error}"])
    for line in tried_lines(tried):
        add_line(line)
    return replace(converted, tried=tried)


def _with_proof(
    options: ConvertModelOptions, converted: Converted, begin: ProofInputs, recipe_file: Path, folder: Path
) -> Converted:
    """Run parity-step on the torch model and the new one, and show its verdict."""
    if begin.batch is None or (begin.call is not None and options.weights is not None):
        return replace(converted, stopped=[f"not proven: {UNPROVEN}"])
    specs = (options.model, _net(options, converted.written))
    if begin.call is not None:
        specs = flat_pair(specs[0], options.out.absolute(), converted.written.maker, begin, folder.with_name("flat"))
    pair = Pair(*specs, None, options.weights, begin.batch, outputs=not begin.plain, freezes=True)
    of_step = (each.name for each in fields(StepOptions) if each.name != "batch")  # the batch file has it
    steps: Any = {name: getattr(options, name) for name in of_step}
    try:
        report: Report = with_progress(recipe_file, ParityJob(recipes.load(recipe_file), folder, pair, **steps))
    except MsmigrateError as error:
        return replace(converted, stopped=[f"not proven: {error}"])
    if options.parity_report is not None:
        write_json(report, options.parity_report)
    if options.html is not None:
        write_html(report, folder, options.html, made=made_by())
    return replace(converted, report=report)


def _net(options: ConvertModelOptions, written: ConvertedModel) -> str:
    return f"{options.out}:{written.maker}"
