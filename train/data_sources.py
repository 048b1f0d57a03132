"""Where a recipe's images come from: photographs, digits, or a folder of the user's own."""

from __future__ import annotations

from pathlib import Path

from ..errors import BadRecipe
from .digits import digits
from .image_folder import images
from .photographs import crops
from .sample import Sample, in_steps

FOLDER = "folder:"


def samples(source: str, batch: int, steps: int, seed: int, num_classes: int = 1000) -> list[list[Sample]]:
    """`steps` batches of `batch` samples each, the same ones for the same arguments.

    Only the JPEGs cut from the photographs may differ by rounding between versions of Pillow's JPEG library.

    source: 'photographs', 'digits', or 'folder:PATH' with a folder for each class below PATH.
    Raises BadRecipe for another source and BadInput where the images are not there.
    """
    count = batch * steps
    if source == "photographs":
        return in_steps(crops(count, seed=seed, num_classes=num_classes), batch)
    if source == "digits":
        return in_steps(digits(count, seed=seed, num_classes=num_classes), batch)
    if source.startswith(FOLDER) and source != FOLDER:
        folder = Path(source.removeprefix(FOLDER)).expanduser()
        return in_steps(images(folder, count, seed=seed, num_classes=num_classes), batch)
    raise BadRecipe(f"no data source is called {source!r}; known: photographs, digits, {FOLDER}PATH")
