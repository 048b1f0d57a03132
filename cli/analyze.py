"""The command analyze: a model, an ONNX file, a script, or the coverage of many models."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..printable import echo, json_line
from .options import mappings_option

FILE = click.Path(path_type=Path)


@click.command("analyze")
@click.argument("targets", metavar="TARGET…", nargs=-1, required=True)
@click.option(
    "--mode",
    type=click.Choice(["pynative", "graph"]),
    default="pynative",
    show_default=True,
    help="Of MindSpore, whose statuses to show.",
)
@click.option(
    "--target",
    type=click.Choice(["CPU", "Ascend", "GPU"]),
    default="CPU",
    show_default=True,
    help="What it is to run on: CPU is measured, Ascend is from documentation.",
)
@click.option(
    "--input",
    "inputs",
    metavar="SHAPE",
    multiple=True,
    help="An input of the model, 1x3x224x224 or 1x16:int64; once for each.",
)
@click.option("--coverage", is_flag=True, help="A table of many models: which move, and what the others lack.")
@click.option("--all", "whole", is_flag=True, help="Print the call to write for every operator, too.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, with every path and every argument.")
@click.option("--html", "page", metavar="FILE", type=FILE, help="Write a page, too.")
@click.option("--write-recipe", "recipe", metavar="FILE", type=FILE, help="Of a script: write a draft of its recipe.")
@click.option("--force", is_flag=True, help="Replace FILE of --write-recipe when it exists.")
@mappings_option
def analyze(targets: tuple[str, ...], coverage: bool, inputs: tuple[str, ...], **options: Any) -> None:
    """Say what a model uses, and what becomes of it in MindSpore: before anything is converted.

    TARGET is a model, a file of ONNX, or a training script:

    \b
      torchvision:resnet50, timm:vit_base_patch16_224     built without weights, and run without values
      FILE.py:FUNCTION, MODULE:FUNCTION                   a function that returns a model, or (model, inputs)
      model.onnx                                          read, never run
      train.py                                            a training script: read, never run

    With --coverage, TARGET is any number of those, and torchvision or timm for all that these have, timm:resnet* for
    those of a pattern.

    Naming a function runs it, and the model that it returns.

    Exit code: 0 everything has a counterpart, 1 something has none, or no row in the table, 2 bad input.
    """
    if coverage:
        _coverage(targets, inputs, options)
        return
    if len(targets) > 1:
        raise click.UsageError("One TARGET, or several with --coverage.")
    (target,) = targets
    if target.endswith(".py"):
        _script(target, inputs, options)
        return
    if options["recipe"] is not None:
        raise click.UsageError("--write-recipe is for a training script: analyze train.py")
    from ..migrate.analyze.model_analysis import analyze as run
    from ..reports import model_analysis

    analysis = run(target, mode=options["mode"], target=options["target"], inputs=inputs)
    _print(analysis, model_analysis, options)


def _print(analysis: Any, report: Any, options: dict[str, Any]) -> None:
    """Print an analysis as its report says it, and exit with 1 when something is missing."""
    if options["page"] is not None:
        from ..atomic_files import write_whole

        write_whole(report.html(analysis), options["page"])
    if options["as_json"]:
        echo(json_line(report.as_json(analysis)))
    else:
        from ..reports.terminal import Console

        # Elsewhere than in a terminal nothing is cut to its width.
        console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
        report.show(analysis, console, whole=options["whole"])
    sys.exit(1 if analysis.missing else 0)


def _script(path: str, inputs: tuple[str, ...], options: dict[str, Any]) -> None:
    if inputs:
        raise click.UsageError("--input is for models; a script is read, not run.")
    from ..errors import BadDestination
    from ..migrate.analyze.script_analysis import analyze_script
    from ..reports import script_analysis

    file = options["recipe"]
    if file is not None and file.exists() and not options["force"]:
        raise BadDestination(f"{file} is there already; --force replaces it")
    analysis = analyze_script(path, mode=options["mode"], target=options["target"])
    if file is not None:
        from ..atomic_files import write_whole

        write_whole(script_analysis.recipe_text(analysis), file)
    _print(analysis, script_analysis, options)


def _coverage(targets: tuple[str, ...], inputs: tuple[str, ...], options: dict[str, Any]) -> None:
    if inputs or options["recipe"] is not None or options["page"] is not None:
        raise click.UsageError("--coverage goes with --mode, --target, --all and --json alone.")
    from ..migrate.analyze.coverage import cover
    from ..reports import model_analysis
    from ..reports import progress as progress_module

    with progress_module.Progress() as progress:
        found = cover(targets, mode=options["mode"], target=options["target"], progress=progress)
    if options["as_json"]:
        echo(json_line(model_analysis.coverage_json(found)))
    else:
        model_analysis.show_coverage(found, whole=options["whole"])
    sys.exit(0 if all(entry.moves for entry in found.models) else 1)
