"""The commands that compare: parse, one library call, exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..parity.options import ParityOptions
from .inputs import READ_FIRST, RECIPE, RECIPE_OR_MODEL
from .options import command, mappings_option, options_of

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
