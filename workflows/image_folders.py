"""The commands data stats and data split."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Literal

from ..reports.image_folders import (
    corrupt_json,
    show_corrupt,
    show_split,
    show_statistics,
    split_json,
    statistics_json,
)
from ..reports.progress import counted
from ..training.data import image_folder
from ..training.data.image_folder import Way, corrupt_images, measure
from .results import only_json


def stats(folder: Path, resize: int | None, on_corrupt: Literal["fail", "skip", "list"], json_file: Path | None) -> int:
    """Print mean and standard deviation of all images below `folder`; returns the exit code.

    on_corrupt: 'list' prints the corrupt images and nothing else, and returns 1 if there are any.
    """
    warnings.filterwarnings("ignore", module="PIL")  # about images that it does decode, as training will
    if on_corrupt == "list":
        with counted("decoding") as on_progress:
            images, corrupt = corrupt_images(folder, on_progress)
        if not only_json(lambda: corrupt_json(folder, images, corrupt), json_file):
            show_corrupt(folder, images, corrupt)
        return 1 if corrupt else 0
    with counted("decoding") as on_progress:
        measured = measure(folder, resize=resize, on_corrupt=on_corrupt, on_progress=on_progress)
    if not only_json(lambda: statistics_json(folder, resize, measured), json_file):
        show_statistics(folder, resize, measured)
    return 0


def split(
    folder: Path, into: Path | None, share: float, seed: int, how: Way, dry_run: bool, json_file: Path | None
) -> int:
    """Split the tree `folder` into train/ and val/ below `into` and print what went where; returns the exit code."""
    target = image_folder.destination(folder, into)
    planned = image_folder.plan(folder, share, seed)
    if not dry_run:
        with counted({"copy": "copying"}.get(how, "linking")) as on_progress:
            image_folder.carry_out(planned, target, how, on_progress)
    if not only_json(lambda: split_json(planned, target, seed, how, dry_run), json_file):
        show_split(planned, target, how, dry_run)
    return 0
