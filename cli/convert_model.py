"""`msmigrate convert-model`: parse, one library call, exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..migrate.model_spec import with_words
from ..parity.options import StepOptions
from .inputs import CHECKPOINT, RECIPE, TORCH_MODEL
from .options import Command, input_option, json_option, mappings_option, mindspore_version_option, options_of

FILE = click.Path(path_type=Path)


class WithWords(Command):
    """A command that passes the words behind `--` to the user's file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; the words behind `--` become part of the model's name."""
        at = args.index("--") if "--" in args else len(args)
        found = super().parse_args(ctx, args[:at])
        ctx.params["model"] = with_words(ctx.params["model"], args[at + 1 :])
        return found


@click.command("convert-model", cls=WithWords)
@click.argument("model", metavar="MODEL", type=TORCH_MODEL)
@click.argument("shapes", metavar="[SHAPE]… [-- WORDS…]", nargs=-1)
@input_option("inputs")
@click.option("-o", "--out", metavar="FILE.py", type=FILE, required=True, help="The new file of MindSpore source.")
@click.option(
    "--weights", metavar="FILE", type=CHECKPOINT, help="Trained torch weights.  [default: MODEL as it is made]"
)
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="The seed with which MODEL is made."
)
@click.option("--no-proof", is_flag=True, help="Do not run parity-step on the pair.")
@click.option("--recipe", metavar="RECIPE", type=RECIPE, help="The loss and the optimizer of the proven step.")
@click.option("--batch", type=click.IntRange(1), default=4, show_default=True, help="Examples of a proven step.")
@options_of(
    StepOptions,
    *("steps", "mode", "no_replay", "timeout"),
    steps="Training steps to prove.",
    mode="graph: prove the compiled step too.",
    timeout="End a framework that is silent for this long.",
)
@click.option("--html", metavar="FILE", type=FILE, help="Write parity-step's page, too.")
@click.option("--parity-report", metavar="FILE", type=FILE, help="Write parity-step's findings as JSON, as its --json.")
@mappings_option
@mindspore_version_option
@json_option("What was written, and the verdict")
@click.option("--force", is_flag=True, help="Replace FILE.py and FILE.ckpt when they exist.")
def convert_model(shapes: tuple[str, ...], inputs: tuple[str, ...], **options: Any) -> None:
    """Write a torch model as MindSpore source, convert its weights, and prove that both are the same model.

    MODEL is one of the following. SHAPE is the shape of an input, as with --input; it is needed where MODEL does not
    bring its inputs, or takes another size than usual:

    \b
      torchvision:convnext_tiny, timm:vit_tiny_patch16_224    built without trained weights
      FILE.py:FUNCTION, MODULE:FUNCTION                       a function that returns a model, or (model, inputs)
      'FILE.py:Net(num_classes=10)'                           a class, with constant arguments if it needs some

    The model runs once in evaluation and once in training mode, and its classes are written as Cells with the original
    names, arguments and loops. The new file imports only MindSpore. The weights go to FILE.ckpt next to it, every
    tensor accounted for, and are loaded into the new net. Then parity-step compares the two models on random inputs
    like those that MODEL ran on.

    Code without a counterpart in MindSpore is listed with its line and raises NotImplementedError in the new file.

    Naming a function or a class imports its file and calls it. A file that parses its command line gets WORDS as its
    arguments; where it goes on to train, or to read data that are not there, its import ends there.

    Exit code: 0 parity, 1 mismatch, unproven or something could not be written, 2 bad input.
    """
    from ..workflows.convert_model import ConvertModelOptions, run

    sys.exit(run(ConvertModelOptions(shapes=(*shapes, *inputs), **options)))
