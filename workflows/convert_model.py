"""convert-model from start to end: the source written, the weights converted, the pair compared."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import click

from ..atomic_files import atomic_file, check_destination, refuse_unwritable
from ..errors import BadDestination, MsmigrateError
from ..migrate import model_spec
from ..migrate.checkpoint.convert import Result, convert, make_plan
from ..migrate.source.convert_model import ConvertedModel, ProofInputs, start, write_source
from ..parity.options import Options, Pair
from ..parity.result import Report
from ..parity.run import MINDSPORE_WORKER
from ..printable import echo, json_line
from ..reports.converted_model import Converted, as_json, ckpt_line, source_lines
from ..reports.html.parity_page import write_html
from ..reports.parity_json import write_json
from ..reports.parity_terminal import show
from ..reports.progress import doing
from ..reports.terminal import Console
from ..temporary import temporary_folder
from ..training.recipe import reader as recipes
from ..training.recipe import schema
from .parity_step import UNPROVEN, with_progress

HIDING = ("mindspore", "numpy", "torch", "torchvision", "timm", "msmigrate")  # as the file's name hides these


@dataclass(frozen=True)
class Asked:
    """What the command line asks for; the names are its options'."""

    model: str
    shapes: tuple[str, ...]
    out: Path
    weights: Path | None = None
    seed: int = 0
    no_proof: bool = False
    recipe: Path | None = None
    batch: int = 4
    steps: int = 3
    mode: str = "pynative"
    no_replay: bool = False
    timeout: float | None = None
    html: Path | None = None
    report: Path | None = None
    as_json: bool = False
    force: bool = False

    @property
    def ckpt(self) -> Path:
        """Where the weights go: beside the source."""
        return self.out.with_suffix(".ckpt")

    def options(self, recipe: schema.Recipe, folder: Path, pair: Pair) -> Options:
        """What the recorders of the proof need to know."""
        return Options(recipe, folder, self.steps, pair=pair, replay=not self.no_replay, mode=self.mode)


def run(asked: Asked) -> int:
    """Convert a model; returns the exit code, 0 for parity, 1 where something is missing or not the same.

    Raises BadInput, BadDestination, BadCheckpoint and others before anything is written; what stops later is told,
    and the files that are whole by then stay.
    """
    recipe_file = asked.recipe or recipes.DEFAULT
    recipes.load(recipe_file)  # what is wrong with it is said before minutes of work, not after
    target = _target(asked)
    said: Callable[[str], None] = (lambda text: None) if asked.as_json else click.echo
    with temporary_folder("convert") as folder:
        if asked.weights is not None:
            make_plan(asked.weights, asked.ckpt, model=asked.model).check()
        with doing("running the torch model to see what of it runs"):
            written = write_source(asked.model, asked.shapes)
        with doing("building the torch model's weights and a batch"):
            begin = start(asked.model, asked.shapes, folder, seed=asked.seed, batch=asked.batch, steps=asked.steps)
        _write(target, written.text, force=asked.force)
        for line in source_lines(asked.model, asked.out, written):
            said(line)
        found = Converted(asked.model, asked.out, written, proof=not asked.no_proof)
        found = _with_weights(asked, found, asked.weights or begin.weights, said)
        if not asked.no_proof and found.loaded:
            found = _with_proof(asked, found, begin, recipe_file, folder / "run")
        elif not asked.no_proof:
            said("not proven, for the source is not whole")
    if asked.as_json:
        echo(json_line(as_json(found)))
    for line in found.stopped:
        echo(f"msmigrate: {line}", err=True)
    return 0 if found.sound else 1


def _target(asked: Asked) -> Path:
    """Where the source goes. Raises BadDestination where that, or the checkpoint beside it, cannot be written."""
    out = asked.out
    if out.suffix != ".py":
        raise BadDestination(f"{out}: MindSpore source is a file of Python; give it a name that ends in .py")
    if out.stem in (*sys.stdlib_module_names, *HIDING):
        raise BadDestination(f"{out}: who imports {out.stem} would get this file instead; give it another name")
    place = model_spec.parse(asked.model).place
    check_destination(asked.ckpt, asked.weights or Path(place), force=asked.force)
    for file in (asked.html, asked.report):
        if file is not None:
            refuse_unwritable(file)
    return check_destination(out, Path(place), force=asked.force)


def _write(target: Path, text: str, *, force: bool) -> None:
    with atomic_file(target, force=force) as descriptor, os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(text.encode("utf-8"))


def _with_weights(asked: Asked, found: Converted, weights: Path, said: Callable[[str], None]) -> Converted:
    """Convert the weights, and load them into the new net where its source is whole."""
    whole = not found.written.problems
    into = _net(asked, found.written) if whole else None
    try:
        with doing("converting the weights, and loading them in MindSpore"):
            result: Result = convert(weights, asked.ckpt, model=asked.model, into=into, force=asked.force)
    except MsmigrateError as error:
        return replace(found, stopped=[f"the weights are not converted: {error}"])
    said(ckpt_line(result, found.written.maker, loaded=whole))
    return replace(found, ckpt=result, loaded=whole)


def _with_proof(asked: Asked, found: Converted, begin: ProofInputs, recipe_file: Path, folder: Path) -> Converted:
    """Run parity-step on the torch model and the new one, and show its verdict."""
    if begin.batch is None:
        return replace(found, stopped=[f"not proven: {UNPROVEN}"])
    pair = Pair(asked.model, _net(asked, found.written), None, asked.weights, begin.batch, outputs=not begin.plain)
    options = asked.options(recipes.load(recipe_file), folder, pair)
    try:
        report: Report = with_progress(recipe_file, options, MINDSPORE_WORKER, timeout=asked.timeout)
    except MsmigrateError as error:
        return replace(found, stopped=[f"not proven: {error}"])
    if not asked.as_json:
        show(replace(report, recipe=asked.model), Console())
    if asked.report is not None:
        write_json(report, asked.report)
    if asked.html is not None:
        write_html(report, folder, asked.html)
    return replace(found, report=report)


def _net(asked: Asked, written: ConvertedModel) -> str:
    return f"{asked.out}:{written.maker}"
