"""The commands around training: data, train, eval and predict: parse, one library call, exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..training.options import EvalOptions, PredictOptions, TrainOptions
from .inputs import IMAGES, NET, READ_FIRST, RECIPE
from .options import Command, command, json_option, mappings_option, options_of

FOLDER = click.Path(path_type=Path)
OF_NET = {  # the help of eval and predict
    "recipe": "Model and transforms.  [default: what CKPT was trained with]",
    "model": "The model of CKPT, as for export.  [default: the one that CKPT names]",
}


@click.group("data")
def data() -> None:
    """Prepare folders of images: statistics, and a split into training and validation."""


@data.command("stats", cls=Command)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--resize", type=click.IntRange(1), help="Resize the shorter side first, as training will.")
@click.option(
    "--on-corrupt",
    type=click.Choice(["fail", "skip", "list"]),
    default="fail",
    show_default=True,
    help="A corrupt image ends the command, is skipped, or all of them are listed and nothing else is done.",
)
@json_option("The statistics")
def stats(**options: Any) -> None:
    """Print mean and standard deviation of each channel over all images below DIR, in one pass and exactly.

    The numbers go into a recipe's Normalize as they are.

    Exit code: 0 printed, 1 --on-corrupt list has found corrupt images, 2 bad input.
    """
    from ..workflows.image_folders import stats as run

    sys.exit(run(**options))


@data.command("split", cls=Command)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--into", metavar="DIR", type=FOLDER, help="Where train/ and val/ are made.  [default: DIR-split]")
@click.option(
    "--val",
    "share",
    type=click.FloatRange(0, 1, True, True),
    default=0.3,
    show_default=True,
    help="Share of each class that goes into val/.",
)
@click.option("--seed", type=click.IntRange(0), default=42, show_default=True, help="Another seed, another split.")
@click.option(
    "--how",
    type=click.Choice(["copy", "link", "symlink"]),
    default="copy",
    show_default=True,
    help="Copy the files, hard-link them, or point at them.",
)
@click.option("--dry-run", is_flag=True, help="Print what would go where, and write nothing.")
@json_option("What went where")
def split(**options: Any) -> None:
    """Split a tree with a folder for each class into train/ and val/, with the same share of each class.

    Nothing in DIR is changed, moved or deleted, and nothing that is in the destination already is replaced.

    Exit code: 0 split, 2 bad input, or a destination that cannot be written.
    """
    from ..workflows.image_folders import split as run

    sys.exit(run(**options))


@command("train")
@click.argument("recipe", required=False, type=RECIPE)
@options_of(
    TrainOptions,
    *("out", "target", "mode", "device_id", "seed", "amp", "amp_dtype", "epochs", "max_steps", "resume"),
    *("continue_from", "parity_report", "skip_parity", "nproc", "nnodes", "node_rank", "master_addr", "master_port"),
)
@mappings_option
@options_of(TrainOptions, "dry_run", "json_file")
def train(**options: Any) -> None:
    """Train what RECIPE says, once its step is proven equal to PyTorch's.

    First parity-step runs on the same recipe, and training stops there if it fails. In graph mode the compiled step is
    judged, too. On a machine without torch, bring the report of a machine that has it: `msmigrate parity-step RECIPE
    --mode graph --json FILE`, then --parity-report FILE.

    In graph mode --dry-run compiles the step that training runs, on made-up images. Code that does not compile is
    reported in one line: where it is in your file, and what to write instead. What is compiled again, and why, is a
    warning.

    Exit code: 0 trained, 1 the step is not proven or training stopped at a number that is not finite, 2 bad input.
    """
    from ..workflows.train import run

    sys.exit(run(**options))


@command("eval")
@click.argument("checkpoint", metavar="CKPT", type=NET)
@click.argument("data", metavar="DATA", required=False, type=IMAGES)
@options_of(EvalOptions, "recipe", "model", "trust_source", "ema", "batch", "target", **OF_NET)
@mappings_option
@options_of(EvalOptions, "out", "json_file")
def evaluate(**options: Any) -> None:
    """Measure CKPT on labelled images: top-1, top-5, loss, a report per class and a confusion matrix.

    CKPT is a MindSpore checkpoint or a torch one, which is converted first. DATA is folder:PATH or a path, a tree with
    a folder for each class, cifar10:PATH, digits:test, or another source that a recipe may name; without it the
    recipe's data.validation, unless only CKPT names that place. Classes are shown by name where the checkpoint knows
    their names.

    CKPT may come from anyone. A source file that it names is imported only with --trust-source, and arguments of its
    model that are more than sizes, rates and switches are taken only from --model or --recipe.

    Exit code: 0 evaluated, 2 bad input.
    """
    from ..workflows.evaluate import run_evaluate

    sys.exit(run_evaluate(**options))


@command("predict")
@click.argument("checkpoint", metavar="CKPT", type=NET)
@click.argument("images", metavar="IMAGE|DIR", nargs=-1, required=True, type=READ_FIRST)
@options_of(PredictOptions, "recipe", "model", "trust_source", "classes", "ema", **OF_NET)
@mappings_option
@options_of(PredictOptions, "top", "batch", "target", "out", "json_file")
def predict(**options: Any) -> None:
    """Print the classes that CKPT sees in images, with their probabilities.

    An image that cannot be read is reported on stderr, and the others are predicted. For a net that was trained on
    arrays (data.source: arrays:FILE) give one such file; the net's output is written to --out.

    CKPT may come from anyone. A source file that it names is imported only with --trust-source, and arguments of its
    model that are more than sizes, rates and switches are taken only from --model or --recipe.

    Exit code: 0 all predicted, 2 bad input or an image that could not be read.
    """
    from ..workflows.evaluate import run_predict

    sys.exit(run_predict(**options))
