"""The commands that look before anything is moved: analyze, at a model or a script; mappings and explain, at the
table of counterparts and the pages of its faults; and doctor, at the machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .inputs import completed
from .options import command, input_option, json_option, mappings_option, mindspore_version_option, target_option

FILE = click.Path(path_type=Path)


@command("analyze")
@click.argument("targets", metavar="TARGET…", nargs=-1, required=True)
@click.option(
    "--mode",
    type=click.Choice(["pynative", "graph"]),
    default="pynative",
    show_default=True,
    help="The mode of MindSpore whose statuses are shown.",
)
@target_option("What it is to run on: CPU is measured, Ascend is from documentation.", default="CPU")
@input_option("inputs")
@click.option("--coverage", is_flag=True, help="A table of many models: which move, and what the others lack.")
@click.option("--all", "whole", is_flag=True, help="Print the call to write for every operator, too.")
@json_option("Every path and every argument")
@click.option("--html", "page", metavar="FILE", type=FILE, help="Write a page, too.")
@click.option("--write-recipe", "recipe", metavar="FILE", type=FILE, help="For a script: write a draft of its recipe.")
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

    With --coverage, TARGET is any number of those; torchvision or timm stands for all models that it has, timm:resnet*
    for those that match the pattern.

    Naming a function runs it, and the model that it returns.

    Exit code: 0 everything has a counterpart, 1 something has none, or no row in the table, 2 bad input.
    """
    from ..workflows.analyze import run

    sys.exit(run(targets, **options))


def _rows() -> list[str]:
    from ..mappings import table

    return [name for row in table.rows() for name in (row.torch, row.torch.removeprefix("torch."), row.short)]


def _faults() -> list[str]:
    from ..mappings import table

    return list(table.faults())


@command("mappings")
@click.argument("name", required=False, shell_complete=lambda ctx, param, word: completed(_rows, word))
@click.option("--kind", metavar="KIND", help="Only the rows of one kind, such as layer, loss or optimizer.")
@mappings_option
@mindspore_version_option
@json_option("The rows with every argument and pitfall")
def mappings(name: str | None, kind: str | None, json_file: Path | None) -> None:
    """Print what corresponds in torch and MindSpore: the table, or the row of NAME with its pitfalls.

    NAME is a name of torch's as you write it: torch.nn.Conv2d, nn.Conv2d, Conv2d, F.relu, Tensor.view; or one of
    MindSpore's, whose rows are then all printed: nn.Dense, ops.cat, mint.nn.Linear, nn.cosine_decay_lr.

    Exit code: 0 printed, 2 there is no such row, or wrong usage.
    """

    from ..mappings import aliases, table
    from ..reports import mapping_table
    from ..workflows.results import only_json

    if name is not None and kind is not None:
        raise click.UsageError("NAME or --kind, not both.")
    rows = table.rows(kind) if name is None else aliases.lookup(name)
    if not only_json(lambda: mapping_table.as_json(rows), json_file):
        mapping_table.show(rows, whole=name is not None)


@command("explain")
@click.argument("fault", required=False, shell_complete=lambda ctx, param, word: completed(_faults, word))
@json_option("The faults")
def explain(fault: str | None, json_file: Path | None) -> None:
    """Explain a fault that parity-step named: both sides, where it shows, the fix, the smallest example.

    Without FAULT, list every fault that is known.

    Exit code: 0 printed, 2 there is no such fault, or wrong usage.
    """
    from ..mappings import table
    from ..reports import mapping_table
    from ..reports.terminal import Console
    from ..workflows.results import only_json

    chosen = list(table.faults().values()) if fault is None else [mapping_table.find(fault)]
    if only_json(lambda: mapping_table.fault_json(chosen), json_file):
        return
    if fault is None:
        mapping_table.show_all(Console())
    else:
        mapping_table.show_fault(chosen[0], Console())


@command("doctor")
@target_option("Where you want to train: it is a problem if MindSpore cannot use it.  [default: any that it can use]")
@click.option("--quick", is_flag=True, help="Start no framework: takes a second, and checks no target.")
@json_option("The findings")
def doctor(target: str | None, quick: bool, json_file: Path | None) -> None:
    """Look at this machine and this environment, and say what to change, with the command.

    Versions are read from the packages' metadata, against each other and against this Python. MindSpore and torch are
    then started, each in a process of its own, and MindSpore is asked for its targets. Then come the instruction set,
    memory, disk, MindSpore's launcher and its cache server. It works where a framework is missing or broken.

    ok: nothing to do. warning: an option cannot be used, or something is slower than it need be. problem: commands
    fail until it is changed.

    Exit code: 0 nothing has to be changed (warnings do not count), 1 something has to be, 2 wrong usage.
    """
    if quick and target is not None:
        raise click.UsageError("--quick checks no target: leave out --quick or --target.")

    from ..doctor import examine
    from ..doctor.machine import as_json, blocks, here
    from ..doctor.packages import Packages
    from ..reports.terminal import Console, show_examination
    from ..workflows.results import only_json

    with Console(stderr=True).status("looking" if quick else "starting MindSpore and torch"):
        findings = examine(here(), Packages(), target=target, start=not quick)
    if not only_json(lambda: as_json(findings), json_file):
        show_examination(findings, Console())
    sys.exit(1 if blocks(findings) else 0)
