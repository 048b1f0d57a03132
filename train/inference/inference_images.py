"""The images of an inference request: a labelled source, numbered as the net numbers its classes, or plain files."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import BadInput
from ..data.data_sources import Source, open_source
from ..data.image_folder import SUFFIXES, read
from ..data.image_folder import image_files as images_below
from ..data.sample import Sample
from ..models.model_names import num_classes
from .request import Mode, Request


class ImageFiles:
    """Files of images without labels, as a source; all of them decoded to one mode."""

    def __init__(self, paths: Sequence[str], mode: Mode) -> None:
        self.name = "images"
        self.classes: tuple[str, ...] = ()
        self.labels = np.zeros(len(paths), dtype=np.int32)
        self.mode = mode
        self._paths = list(paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> Sample:
        """The file's bytes, undecoded; raises BadInput that names a file that cannot be read."""
        path = self._paths[index]
        return Sample(read(Path(path)), 0, path, self.mode)


class Prepared:
    """A labelled source as a net wants it: its classes numbered as the net numbers them, in the net's own mode.

    classes: of class i of the source the net's number (None: the same); mode: of the images (None: their own).
    """

    def __init__(self, source: Source, classes: Sequence[int] | None, mode: Mode | None) -> None:
        self.name, self.classes = source.name, source.classes
        self.mode: Mode = mode or source.mode
        self._source = source
        self._number = np.asarray(range(len(source.classes)) if classes is None else classes, dtype=np.int32)
        self.labels = self._number[np.asarray(source.labels, dtype=np.int64)]

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> Sample:
        """As the source's own, relabelled."""
        sample = self._source[index]
        label = int(self._number[sample.label])
        return dataclasses.replace(sample, label=label, mode=self.mode)


def images_of(request: Request) -> Source:
    """The images that a request names, read one by one when they are asked for."""
    if request.images is not None:
        return ImageFiles(request.images, request.mode or "RGB")
    assert request.source is not None
    count = num_classes(request.recipe.model.name, request.recipe.model.args)
    return Prepared(open_source(request.source, count, training=False), request.classes, request.mode)


def image_files(places: Sequence[Path]) -> list[str]:
    """The files to predict: each file as named, each folder's images at any depth, sorted.

    Raises BadInput for a path that is not there and for a folder without images.
    """
    files: list[str] = []
    for place in places:
        if place.is_dir():
            found = list(images_below(place))
            if not found:
                raise BadInput(f"{place} has no images in it (looked for {', '.join(SUFFIXES)})")
            files += found
        elif place.exists():
            files.append(str(place))
        else:
            raise BadInput(f"there is no file or folder {place}")
    return files
