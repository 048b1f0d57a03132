"""The commands that compare: parse, one library call, exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .inputs import (
    BATCH_FILE,
    CHECKPOINT,
    MINDSPORE_MODEL,
    NAME_MAP,
    READ_FIRST,
    READABLE,
    RECIPE_OR_MODEL,
    TORCH_MODEL,
    TORCH_WEIGHTS,
)
from .options import mappings_option

FILE = click.Path(path_type=Path)
STAGES = click.Choice(["data", "init", "forward", "loss", "gradients", "update"])


def _together(*options: Any) -> Any:
    """One decorator out of several options."""

    def add(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return add


_pair_options = _together(
    click.option("--torch", metavar="SPEC", type=TORCH_MODEL, help="Your torch model in place of the recipe's."),
    click.option(
        "--mindspore",
        metavar="SPEC",
        type=MINDSPORE_MODEL,
        help="Your MindSpore model in place of msmigrate's; needs --torch.",
    ),
    click.option("--ckpt", metavar="FILE", type=TORCH_WEIGHTS, help="Torch weights that such a pair starts from."),
    click.option(
        "--batch-file",
        metavar="FILE",
        type=BATCH_FILE,
        help="The pair's inputs: .npz or .safetensors, images and labels.",
    ),
    click.option(
        "--map", "map_file", metavar="FILE", type=NAME_MAP, help="Names that alignment does not find by itself (YAML)."
    ),
)
_size_options = _together(
    click.option("--steps", type=click.IntRange(1, 100), default=3, show_default=True, help="Training steps to run."),
    click.option(
        "--init-seeds", type=click.IntRange(1, 1000), help="Models drawn for the initial distributions.  [default: 3]"
    ),
    click.option(
        "--batch", type=click.IntRange(1), help="Images of a step.  [default: the recipe's, at most 8 a micro-batch]"
    ),
    click.option(
        "--mode",
        type=click.Choice(["pynative", "graph"]),
        default="pynative",
        show_default=True,
        help="graph: judge the compiled step too, end to end.",
    ),
    click.option(
        "--precision",
        type=click.Choice(["fp32", "hf32", "tf32", "fp16", "bf16"]),
        default="fp32",
        show_default=True,
        help="The format in which the target computes convolutions and matrix products.",
    ),
    click.option("--stages", multiple=True, type=STAGES, help="Judge only these stages; may be repeated."),
    click.option(
        "--modules",
        multiple=True,
        metavar="GLOB",
        help="Judge only modules whose dotted name matches, and those in them; may be repeated.",
    ),
    click.option("--no-replay", is_flag=True, help="Do not run every module alone."),
    click.option("--thorough", is_flag=True, help="Compare every element of every tensor, and 10 initial models."),
    click.option(
        "--timeout", type=click.FloatRange(1), metavar="SECONDS", help="End a framework that says nothing for so long."
    ),
)
_file_options = _together(
    click.option("--html", metavar="FILE", type=FILE, help="Write one page to look at, without a network."),
    click.option("--json", "json_file", metavar="FILE", type=FILE, help="Write all findings as JSON."),
    click.option("--junit", metavar="FILE", type=FILE, help="Write JUnit XML, for a CI server."),
    click.option("--markdown", metavar="FILE", type=FILE, help="Write a summary for a pull request."),
    click.option("--worst", type=click.IntRange(1), default=5, show_default=True, help="How many tensors to list."),
)


@click.command("parity-step")
@click.argument("recipe", metavar="[RECIPE|MODEL]", required=False, type=RECIPE_OR_MODEL)
@_pair_options
@click.option("--write-map", metavar="FILE", type=FILE, help="Write the alignment that was found, for editing.")
@mappings_option
@_size_options
@click.option("--no-diagnosis", is_flag=True, help="Do not look for the causes of what fails.")
@_file_options
@click.option("--keep", metavar="DIR", type=FILE, help="Keep the traces in this (new) folder.")
@click.option("--continue-from", metavar="CKPT", type=CHECKPOINT, help="A torch training checkpoint to go on from.")
def parity_step(recipe: Path | None, **asked: Any) -> None:
    """Run one training step in both frameworks and compare it tensor by tensor.

    RECIPE is a YAML file; without one, ResNet50 on two photographs. A torch model in its place, such as
    torchvision:convnext_tiny or FILE.py:FUNCTION, is converted on the fly as convert-model does, and compared with
    that on random inputs; so is one that stands alone behind --torch, on the recipe's images.

    With --continue-from the steps are those that follow a checkpoint of the torch run: torch goes on from it with its
    own optimizer, loss scale and moving average, MindSpore as `train --continue-from` does. The learning rate and the
    other options of the optimizer are then the checkpoint's, and a recipe that says others fails.

    Six stages are judged: data, init, forward, loss, gradients, update. Every module also runs alone on torch's inputs
    and gradients, so that each fault is found where it is, and causes are looked for. Of a tensor above 65,536 elements
    a stratified sample is compared, unless --thorough.

    With --stages and --modules only what these need is run, and only their tensors are judged: good for finding a
    fault, no proof of the step. The verdict says what was left out, and `train --parity-report` does not take it.

    SPEC is torchvision:NAME, FILE.py:FUNCTION or MODULE:FUNCTION, with constant arguments if need be. Naming a
    function runs it.

    Exit code: 0 parity, 1 mismatch or unproven, 2 bad input or a framework that stopped.
    """
    from ..migrate.model_spec import names_a_model
    from ..workflows.parity_step import Asked, run

    if asked["torch"] is None and names_a_model(recipe):
        if asked["mindspore"] is not None:
            raise click.UsageError(f"--mindspore: name the torch model with --torch {recipe}, for it is compared.")
    else:
        _whole_pair(asked)
    sys.exit(run(recipe, Asked(**asked)))


@click.command("record")
@click.argument("recipe", required=False, type=READABLE)
@click.option(
    "--framework",
    type=click.Choice(["torch", "mindspore"]),
    required=True,
    is_eager=True,  # it says what of the rest is read
    help="Whose half this is.",
)
@click.option("-o", "--out", metavar="TRACE", type=FILE, required=True, help="The new folder that the trace becomes.")
@click.option("--with", "other", metavar="TRACE", type=READ_FIRST, help="The half that the other machine recorded.")
@_pair_options
@mappings_option
@_size_options
def record(recipe: Path | None, framework: str, out: Path, other: Path | None, **asked: Any) -> None:
    """Record one framework's half of parity-step, on the machine that has it.

    \b
    msmigrate record --framework torch -o A                 # weights, batches, torch's traces
    msmigrate record --framework mindspore --with A -o B    # on the other machine, from the same start
    msmigrate compare A B                                   # anywhere
    msmigrate record --framework torch --with B -o C        # for a verdict as sharp as parity-step's:
    msmigrate compare C B

    Without the last two, torch does not know which side of its ReLUs and max-pools MindSpore took where rounding
    decides, so gradients are judged at a coarser noise, and no module runs alone.

    Exit code: 0 recorded, 2 bad input or a framework that stopped.
    """
    from ..workflows.parity_step import Asked
    from ..workflows.record import run_record as run

    if asked["torch"] is not None and asked["mindspore"] is None:
        raise click.UsageError("--torch goes with --mindspore here: convert the model first, with convert-model.")
    _whole_pair(asked)
    sys.exit(run(framework, recipe, out, other, Asked(**asked)))


@click.command("compare")
@click.argument("one", metavar="TRACE", type=READ_FIRST)
@click.argument("other", metavar="[TRACE]", required=False, type=READ_FIRST)
@mappings_option
@_file_options
def compare(one: Path, other: Path | None, **asked: Any) -> None:
    """Judge two recorded halves, or one run that `parity-step --keep` left; nothing runs again.

    Needs NumPy and safetensors only, so any machine can do it.

    Exit code: 0 parity, 1 mismatch or unproven, 2 bad input.
    """
    from ..workflows.compare import run_compare as run
    from ..workflows.parity_step import Asked

    sys.exit(run(one, other, Asked(**asked)))


def _whole_pair(asked: dict[str, Any]) -> None:
    """Refuse half a pair, and options that only a pair has."""
    if asked["torch"] is None and asked["mindspore"] is not None:
        raise click.UsageError("--mindspore goes with --torch: name both models, or --torch alone to convert it.")
    options = {"ckpt": "ckpt", "batch_file": "batch-file", "map_file": "map", "write_map": "write-map"}
    given = [option for name, option in options.items() if asked.get(name) is not None]
    if asked["torch"] is None and given:
        raise click.UsageError(f"--{given[0]} is for a pair of your own: name it with --torch and --mindspore.")
