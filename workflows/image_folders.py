"""The commands data stats and data split, and what they say: for a terminal and as JSON."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, Literal

from rich import box
from rich.table import Table
from rich.text import Text

from ..printable import count_text, echo
from ..reports.progress import counted
from ..reports.terminal import Console
from ..training.data import image_folder
from ..training.data.image_folder import (
    TRAINING,
    VALIDATION,
    WHITE,
    Corrupt,
    Split,
    Statistics,
    Way,
    corrupt_images,
    measure,
)
from .results import only_json

CHANNELS = ("red", "green", "blue")


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


def corrupt_json(folder: Path, images: int, corrupt: list[Corrupt]) -> dict[str, Any]:
    return {"folder": str(folder), "images": images, "corrupt": _corrupt_json(corrupt)}


def show_corrupt(folder: Path, images: int, corrupt: list[Corrupt]) -> None:
    _list(corrupt)
    cannot = f"{len(corrupt):,} of {images:,} images below {_plain(folder)} cannot be decoded."
    echo(cannot if corrupt else f"All {images:,} images below {_plain(folder)} can be decoded.")


def show_statistics(folder: Path, resize: int | None, found: Statistics) -> None:
    console = Console()
    counts = _table("folder", "images")
    for name, images in found.folders.items():
        counts.add_row(Text(_plain(name)), f"{images:,}")
    console.print(counts, "")
    channels = _table("channel", "mean", "std", "mean of 255", "std of 255", "std in an image")
    for name, mean, std, own in zip(CHANNELS, found.mean, found.std, found.std_of_images, strict=True):
        of_255 = (f"{mean * WHITE:.3f}", f"{std * WHITE:.3f}")
        channels.add_row(name, f"{mean:.6f}", f"{std:.6f}", *of_255, f"{own:.6f}")
    console.print(channels)
    echo("\nstd is that of all pixels together; std in an image is the mean of each image's own, as the usual numbers")
    echo("of ImageNet (0.229, 0.224, 0.225) are. A net that was trained with one of the two needs the same.")
    width, height = (_range(*sides) for sides in (found.width, found.height))
    resized = "" if resize is None else f", measured with the shorter side resized to {resize}"
    echo(
        f"\n{count_text(found.images, 'image')}, {width} pixels wide, {height} high{resized}; {found.pixels:,} pixels."
    )
    if found.corrupt:
        echo(f"{count_text(len(found.corrupt), 'corrupt image')} left out:")
        _list(found.corrupt)
    echo("For a recipe's transforms, after ToTensor:")
    echo(f"    - {_normalize(found)}")
    if min(found.std) == 0:
        echo("Note: a channel is the same everywhere; Normalize would divide by its std of 0.")


def _normalize(found: Statistics) -> str:
    mean, std = (", ".join(f"{value:.6f}" for value in values) for values in (found.mean, found.std))
    return f"{{name: Normalize, args: {{mean: [{mean}], std: [{std}]}}}}"


def statistics_json(folder: Path, resize: int | None, found: Statistics) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "images": found.images,
        "resize": resize,
        "pixels": found.pixels,
        "mean": found.mean,
        "std": found.std,
        "std_of_images": found.std_of_images,
        "mean_255": [value * WHITE for value in found.mean],
        "std_255": [value * WHITE for value in found.std],
        "width": found.width,
        "height": found.height,
        "folders": found.folders,
        "corrupt": _corrupt_json(found.corrupt),
        "normalize": _normalize(found),
    }


def show_split(found: Split, target: Path, how: Way, dry_run: bool) -> None:
    shown = _table("class", TRAINING, VALIDATION)
    for name in found.training:
        shown.add_row(Text(_plain(name)), f"{len(found.training[name]):,}", f"{len(found.validation[name]):,}")
    totals = [sum(map(len, part.values())) for part in (found.training, found.validation)]
    shown.add_section()
    shown.add_row(count_text(len(found.training), "class", "classes"), *(f"{total:,}" for total in totals))
    Console().print(shown, "")
    if found.alone:
        names = ", ".join(found.alone[:5]) + (f" and {len(found.alone) - 5} more" if len(found.alone) > 5 else "")
        echo(f"Note: only one image in {_plain(names)}: it is in {TRAINING}/, and {VALIDATION}/ has none of it.")
    if found.others:
        are = "is no image" if found.others == 1 else "are no images"
        echo(f"Left out: {count_text(found.others, 'file')} that {are} of a class.")
    does = {"copy": "copied", "link": "hard-linked", "symlink": "linked"}[how]
    would = "would be " if dry_run else ""
    echo(f"{count_text(sum(totals), 'image')} {would}{does} into {_plain(target)}" + (" (dry run)" * dry_run) + ".")
    if not dry_run:
        echo("In a recipe, under data:")
        for key, part in (("source", TRAINING), ("validation", VALIDATION)):
            echo(f"    {key}: {_plain(json.dumps(f'folder:{target / part}', ensure_ascii=False))}")


def split_json(found: Split, target: Path, seed: int, how: Way, dry_run: bool) -> dict[str, Any]:
    return {
        "folder": str(found.folder),
        "into": str(target),
        "how": how,
        "seed": seed,
        "dry_run": dry_run,
        "classes": {
            name: {TRAINING: len(images), VALIDATION: len(found.validation[name])}
            for name, images in found.training.items()
        },
        "left_out": found.others,
        TRAINING: [image for images in found.training.values() for image in images],
        VALIDATION: [image for images in found.validation.values() for image in images],
    }


def _list(corrupt: list[Corrupt]) -> None:
    for image in corrupt:
        echo(f"  {_plain(image.file)}: {_plain(image.reason)}")


def _corrupt_json(corrupt: list[Corrupt]) -> list[dict[str, str]]:
    return [{"file": image.file, "reason": image.reason} for image in corrupt]


def _table(*headings: str) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, heading in enumerate(headings):
        shown.add_column(heading, justify="right" if place else "left", no_wrap=bool(place))
    return shown


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _plain(name: object) -> str:
    """A name that any terminal can print: bytes of it that are not UTF-8 become question marks."""
    return str(name).encode("utf-8", "replace").decode("utf-8")
