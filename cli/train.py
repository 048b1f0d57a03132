"""The commands that train, evaluate and predict: parse, one library call, exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .inputs import CHECKPOINT, EXPORTED_MODEL, FILE_OR_FOLDER, IMAGES, NET, PARITY_REPORT, READ_FIRST, READABLE
from .options import mappings_option

FILE = click.Path(path_type=Path)
TARGETS = click.Choice(["Ascend", "GPU", "CPU"], case_sensitive=False)


@click.command("train")
@click.argument("recipe", required=False, type=READABLE)
@click.option("--out", metavar="DIR", type=FILE, help="Where the run's files go.  [default: runs/RECIPE]")
@click.option("--target", type=TARGETS, help="The device to train on.  [default: the recipe's, else what is there]")
@click.option("--mode", type=click.Choice(["graph", "pynative"]), help="[default: the recipe's, else graph]")
@click.option("--device-id", type=click.IntRange(0), help="The first device of this machine.  [default: 0]")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Instead of the recipe's seed.")
@click.option("--amp", type=click.Choice(["O0", "O1", "O2", "O3"]), help="Mixed precision instead of the recipe's.")
@click.option("--amp-dtype", type=click.Choice(["float16", "bfloat16"]), help="Of --amp.  [default: float16]")
@click.option("--epochs", type=click.IntRange(1), help="Instead of the recipe's train.epochs.")
@click.option("--max-steps", type=click.IntRange(1), help="End after so many optimizer steps.")
@click.option("--resume", is_flag=True, help="Go on from the newest sound checkpoint in --out; without one begin anew.")
@click.option(
    "--continue-from", metavar="CKPT", type=CHECKPOINT, help="A torch training checkpoint to begin a run with."
)
@click.option(
    "--parity-report", metavar="FILE", type=PARITY_REPORT, help="A passing report of the same recipe opens the gate."
)
@click.option("--skip-parity", is_flag=True, help="Train on an unproven step; the run's log will say so.")
@click.option("--nproc", type=click.IntRange(1), default=1, show_default=True, help="Processes on this machine.")
@click.option("--nnodes", type=click.IntRange(1), default=1, show_default=True, help="Machines.")
@click.option("--node-rank", type=click.IntRange(0), default=0, show_default=True, help="Which of them this is.")
@click.option("--master-addr", default="127.0.0.1", show_default=True, help="The first machine's address.")
@click.option("--master-port", type=click.IntRange(1, 65535), help="[default: a free one, 8118 on several machines]")
@mappings_option
@click.option("--dry-run", is_flag=True, help="Print the whole plan and start nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan or the summary as JSON.")
def train(**options: Any) -> None:
    """Train what RECIPE says, once its step is proven equal to PyTorch's.

    First parity-step runs on the same recipe, and training stops there if it fails. On a machine without torch, bring
    the report of a machine that has it: `msmigrate parity-step RECIPE --json FILE`, then --parity-report FILE.

    Exit code: 0 trained, 1 the step is not proven or training stopped at a number that is not finite, 2 bad input.
    """
    from ..workflows.train import run

    sys.exit(run(**options))


@click.command("eval")
@click.argument("checkpoint", metavar="CKPT", type=NET)
@click.argument("data", metavar="DATA", required=False, type=IMAGES)
@click.option("--recipe", type=READABLE, help="Model and transforms.  [default: what CKPT was trained with]")
@click.option(
    "--model",
    metavar="MODEL",
    type=EXPORTED_MODEL,
    help="Which net CKPT is of, as for export.  [default: what CKPT says]",
)
@click.option("--trust-source", metavar="FILE@sha256:…", help="Import the source that CKPT names; inspect shows it.")
@click.option("--ema", is_flag=True, help="The moving average in the checkpoint instead of its weights.")
@click.option("--batch", type=click.IntRange(1), help="[default: the recipe's eval_batch]")
@click.option("--target", type=TARGETS, help="[default: what is there]")
@mappings_option
@click.option("--out", metavar="DIR", type=FILE, help="Write report.json, predictions.json, confusion.png here.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
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


@click.command("predict")
@click.argument("checkpoint", metavar="CKPT", type=NET)
@click.argument("images", metavar="IMAGE|DIR", nargs=-1, required=True, type=READ_FIRST)
@click.option("--recipe", type=READABLE, help="Model and transforms.  [default: what CKPT was trained with]")
@click.option(
    "--model",
    metavar="MODEL",
    type=EXPORTED_MODEL,
    help="Which net CKPT is of, as for export.  [default: what CKPT says]",
)
@click.option("--trust-source", metavar="FILE@sha256:…", help="Import the source that CKPT names; inspect shows it.")
@click.option(
    "--classes",
    metavar="FILE|DIR",
    type=FILE_OR_FOLDER,
    help="Class names: one a line, or a tree of class folders.",
)
@click.option("--ema", is_flag=True, help="The moving average in the checkpoint instead of its weights.")
@mappings_option
@click.option("--top", type=click.IntRange(1), default=5, show_default=True, help="How many classes to list.")
@click.option("--batch", type=click.IntRange(1), help="[default: the recipe's eval_batch]")
@click.option("--target", type=TARGETS, help="[default: what is there]")
@click.option("--json", "as_json", is_flag=True, help="Print the predictions as JSON.")
def predict(**options: Any) -> None:
    """Print the classes that CKPT sees in images, with their probabilities.

    An image that cannot be read is told on stderr, and the others are predicted.

    CKPT may come from anyone. A file of source that it names is imported only with --trust-source, and arguments of
    its model that are more than sizes, rates and switches are taken only from --model or --recipe.

    Exit code: 0 all predicted, 2 bad input or an image that could not be read.
    """
    from ..workflows.predict import run

    sys.exit(run(**options))
