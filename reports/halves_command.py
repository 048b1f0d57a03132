"""What `msmigrate record` and `msmigrate compare` do: one framework's half at a time, on whichever machine has it."""

from __future__ import annotations

from pathlib import Path

from ..parity import halves
from ..parity.run_file import RECIPE
from ..train import recipe as recipes
from .parity_command import Asked, progressing, refuse_unwritable, write
from .parity_report import show
from .terminal import Console


def record(framework: str, recipe_file: Path | None, out: Path, other: Path | None, asked: Asked) -> int:
    """Record one framework ('torch' or 'mindspore') into the new folder `out`; returns the exit code 0.

    other: the half from the other machine, which MindSpore's needs and torch's is sharper with.
    """
    path = recipe_file or recipes.DEFAULT
    options = asked.options(recipes.load(path), out, (framework,))
    with progressing({"torch": ("torch",), "mindspore": ("MindSpore",)}[framework]) as told:
        halves.record(framework, path, options, other, told, timeout=asked.timeout)
    Console().print(f"{out}: {framework}'s half of {path.name}, {asked.steps} steps.", highlight=False, markup=False)
    return 0


def compare(one: Path, other: Path | None, asked: Asked) -> int:
    """Judge two halves, or a run that was kept, and print the verdict; returns 0 for parity and 1 for a mismatch."""
    for file in asked.files:
        refuse_unwritable(file)
    report = halves.compare_folders(one, other)
    show(report, Console(), asked.worst)
    write(report, asked, one if other is None else None, one / RECIPE)
    return 0 if report.parity else 1
