"""The commands that train, evaluate and predict: parse, one library call, exit code."""

from __future__ import annotations

import sys
from typing import Any

import click

from ..training.options import EvalOptions, PredictOptions, TrainOptions
from .inputs import IMAGES, NET, READ_FIRST, RECIPE
from .options import command, mappings_option, options_of

OF_NET = {  # in the words of eval and predict
    "recipe": "Model and transforms.  [default: what CKPT was trained with]",
    "model": "Which net CKPT is of, as for export.  [default: what CKPT says]",
}


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

    First parity-step runs on the same recipe, and training stops there if it fails. On a machine without torch, bring
    the report of a machine that has it: `msmigrate parity-step RECIPE --json FILE`, then --parity-report FILE.

    In graph mode --dry-run compiles the step that training runs, on made-up images. What does not compile is one line:
    where it stands in your file, and what to write instead. What is compiled again, and why, is a warning.

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
    recipe's data.validation, unless that is a place which CKPT alone names. Classes go by name where the checkpoint
    knows their names.

    CKPT may come from anyone. A file of source that it names is imported only with --trust-source, and arguments of
    its model that are more than sizes, rates and switches are taken only from --model or --recipe.

    Exit code: 0 evaluated, 2 bad input.
    """
    from ..workflows.evaluate import run

    sys.exit(run(**options))


@command("predict")
@click.argument("checkpoint", metavar="CKPT", type=NET)
@click.argument("images", metavar="IMAGE|DIR", nargs=-1, required=True, type=READ_FIRST)
@options_of(PredictOptions, "recipe", "model", "trust_source", "classes", "ema", **OF_NET)
@mappings_option
@options_of(PredictOptions, "top", "batch", "target", "out", "json_file")
def predict(**options: Any) -> None:
    """Print the classes that CKPT sees in images, with their probabilities.

    An image that cannot be read is reported on stderr, and the others are predicted. Of a net that was trained on
    arrays (data.source: arrays:FILE) give one such file; what the net gives is written to --out.

    CKPT may come from anyone. A file of source that it names is imported only with --trust-source, and arguments of
    its model that are more than sizes, rates and switches are taken only from --model or --recipe.

    Exit code: 0 all predicted, 2 bad input or an image that could not be read.
    """
    from ..workflows.predict import run

    sys.exit(run(**options))
