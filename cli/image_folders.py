"""The commands that look after folders of images: parse, one library call, exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .options import Command, json_option

FOLDER = click.Path(path_type=Path)


@click.group("data")
def data() -> None:
    """Look after folders of images: statistics, and a split into training and validation."""


@data.command("stats", cls=Command)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--resize", type=click.IntRange(1), help="Resize the shorter side first, as training will.")
@click.option(
    "--on-corrupt",
    type=click.Choice(["fail", "skip", "list"]),
    default="fail",
    show_default=True,
    help="A corrupt image ends the command, is passed over, or all are listed and nothing else is done.",
)
@json_option("The statistics")
def stats(**options: Any) -> None:
    """Print mean and standard deviation of each channel over all images below DIR, in one pass and exactly.

    The numbers go into a recipe's Normalize as they stand.

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
    """Split a tree with a folder for each class into train/ and val/, each class in the same share.

    Nothing in DIR is changed, moved or deleted, and nothing that is in the destination already is replaced.

    Exit code: 0 split, 2 bad input, or a destination that cannot be written.
    """
    from ..workflows.image_folders import split as run

    sys.exit(run(**options))
