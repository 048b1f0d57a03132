"""The commands that compare, and convert-model, which compares what it writes: parse, one library call, exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..migrate.model_spec import with_words
from ..parity.options import ParityOptions, StepOptions
from .inputs import CHECKPOINT, READ_FIRST, RECIPE, RECIPE_OR_MODEL, TORCH_MODEL
from .options import (
    Command,
    command,
    input_option,
    json_option,
    mappings_option,
    mindspore_version_option,
    options_of,
)

FILE = click.Path(path_type=Path)
PAIR = ("torch", "mindspore", "ckpt", "batch_file", "map_file")
STEPS = (
    *("steps", "init_seeds", "batch", "mode", "precision", "stages", "modules"),
    *("device", "target", "device_id", "no_replay", "thorough", "timeout"),
)
FILES = ("html", "json_file", "junit", "markdown", "worst")


@command("parity-step")
@click.argument("recipe", metavar="[RECIPE|MODEL]", required=False, type=RECIPE_OR_MODEL)
@options_of(ParityOptions, *PAIR, "write_map")
@mappings_option
@options_of(ParityOptions, *STEPS, "no_diagnosis", *FILES, "keep", "continue_from")
def parity_step(recipe: Path | None, **options: Any) -> None:
    """Run one training step in both frameworks and compare it tensor by tensor.

    RECIPE is a YAML file; without one, ResNet50 on two photographs. A torch model in its place, such as
    torchvision:convnext_tiny or FILE.py:FUNCTION, is converted on the fly as convert-model does, and compared with the
    result on random inputs; --torch without --mindspore does the same, on the recipe's images.

    With --continue-from the steps are those that follow a checkpoint of the torch run: torch goes on from it with its
    own optimizer, loss scale and moving average, MindSpore as `train --continue-from` does. The learning rate and the
    other options of the optimizer are then the checkpoint's, and a recipe with other values fails.

    Six stages are judged: data, init, forward, loss, gradients, update. Every layer also runs alone on torch's inputs
    and gradients, and every container with torch's outputs of the modules in it, so that each fault is found where it
    is, and causes are looked for. A tensor above 65,536 elements is compared in a stratified sample, unless --thorough.

    With --stages and --modules only what these need is run, and only their tensors are judged: good for finding a
    fault, no proof of the step. The verdict says what was left out, and `train --parity-report` does not take it.

    With --mode graph the step is compiled before it is compared. Code that does not compile is reported in one line:
    where it is in your file, and what to write instead. What is compiled again, and why, is a note.

    SPEC is torchvision:NAME, FILE.py:FUNCTION or MODULE:FUNCTION, with constant arguments if need be. Naming a
    function runs it.

    Exit code: 0 parity, 1 mismatch or unproven, 2 bad input or a framework that stopped.
    """
    from ..workflows.parity_step import run

    sys.exit(run(recipe, **options))


@command("demo")
@click.option("--keep", metavar="DIR", type=FILE, help="Leave the two files in this folder.")
def demo(keep: Path | None) -> None:
    """See parity-step at work: a small pair with one wrong line, red; the line put right, green. Half a minute.

    A net in torch, and the same moved to MindSpore by hand, with a mistake that people make. Both files are shown by
    name, and the commands that are printed are those that run, so that with --keep you can change any line and run
    them again: nothing is recorded.

    Exit code: 0 the pair failed and then passed, 1 it did not, 2 bad input or a framework that stopped.
    """
    from ..workflows.parity_step import demo as run

    sys.exit(run(keep))


@command("record")
@click.argument("recipe", required=False, type=RECIPE)
@click.option(
    "--framework",
    type=click.Choice(["torch", "mindspore"]),
    required=True,
    is_eager=True,  # it decides which of the other options are read
    help="Whose half is recorded.",
)
@click.option(
    "-o",
    "--out",
    metavar="TRACE",
    type=FILE,
    required=True,
    help="The new folder that the trace becomes.",
)
@click.option("--with", "other", metavar="TRACE", type=READ_FIRST, help="The half that the other machine recorded.")
@options_of(ParityOptions, *PAIR)
@mappings_option
@options_of(ParityOptions, *STEPS, "noise")
def record(recipe: Path | None, framework: str, out: Path, other: Path | None, **options: Any) -> None:
    """Record one framework's half of parity-step, on the machine that has it.

    \b
    msmigrate record --framework torch -o A                 # weights, batches, torch's traces
    msmigrate record --framework mindspore --with A -o B    # on the other machine, from the same start
    msmigrate compare A B                                   # anywhere
    msmigrate record --framework torch --with B -o C        # for a verdict as sharp as parity-step's:
    msmigrate compare C B
    msmigrate record --framework torch --with A -o A2       # torch again, from the same start, in another torch
    msmigrate compare A A2
    msmigrate record --framework mindspore --with A --noise -o B    # and MindSpore again, elsewhere or compiled
    msmigrate record --framework mindspore --with A -o B2
    msmigrate compare B B2

    Without C, torch does not know which side of its ReLUs and max-pools MindSpore took where rounding decides, so
    gradients are judged at a coarser noise, and no module runs alone. In two halves of one framework each module does:
    a layer that computes otherwise is named itself, whatever differs after it.

    Exit code: 0 recorded, 2 bad input or a framework that stopped.
    """
    from ..workflows.record import run_record as run

    sys.exit(run(framework, recipe, out, other, ParityOptions(**options)))


@command("compare")
@click.argument("one", metavar="TRACE", type=READ_FIRST)
@click.argument("other", metavar="[TRACE]", required=False, type=READ_FIRST)
@click.option(
    "--with",
    "start",
    metavar="TRACE",
    type=READ_FIRST,
    help="For two halves of MindSpore: torch's half that both started from, by whose noise they are judged.",
)
@mappings_option
@options_of(ParityOptions, *FILES, "no_diagnosis")
def compare(one: Path, other: Path | None, start: Path | None, **options: Any) -> None:
    """Judge two recorded halves, or one run that `parity-step --keep` left; nothing runs again.

    \b
    msmigrate compare A B              # torch's half and MindSpore's, in any order
    msmigrate compare A A2             # torch's twice, of another version or machine: A is the reference
    msmigrate compare B B2             # MindSpore's twice, of another version, machine or device: B with --noise
    msmigrate compare B B2 --with A    # the same by torch's noise, where B was recorded without

    Needs NumPy and safetensors only, so any machine can do it. Where two halves of one framework differ in a module
    that ran alone, and torch is installed, what the module computes instead is tried out in torch; for two halves of
    MindSpore this needs --with A.

    Exit code: 0 parity, 1 mismatch or unproven, 2 bad input.
    """
    from ..workflows.compare import run_compare as run

    sys.exit(run(one, other, start, ParityOptions(**options)))


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
