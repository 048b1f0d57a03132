"""The command analyze: a model, an ONNX file, a script, or the coverage of many models."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .options import mappings_option, mindspore_version_option

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
@mindspore_version_option
def analyze(targets: tuple[str, ...], **options: Any) -> None:
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
    from ..workflows.analyze import run

    sys.exit(run(targets, **options))
