"""ToTensor and Normalize as a table: of 8-bit values there are 256 in each channel, so each needs computing once.

MindSpore's own operators fill the table, so what it gives is theirs to the bit, in half the time; and unlike them
NumPy lets other threads run meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from ...mappings import table
from ..models.mindspore_build import construct
from ..recipe import Part
from .draws import short

_CHANNELS = {"RGB": 3, "L": 1}


class ValueTable:
    """A ToTensor and the Normalize behind it, as one function of a PIL image of mode RGB or L."""

    def __init__(self, fixed: Sequence[Part]) -> None:
        self._operators = [construct(table.translate(part.name, part.args)) for part in fixed]
        self._tables: dict[int, np.ndarray] = {}

    def __call__(self, image: Any) -> np.ndarray:
        """float32 (C, H, W); what is no such image goes through MindSpore's operators themselves."""
        if not isinstance(image, Image.Image) or image.mode not in _CHANNELS:
            return np.asarray(self._computed(image))
        values = self._values(_CHANNELS[image.mode])
        pixels = np.asarray(image).reshape(image.height, image.width, len(values))
        out = np.empty((len(values), image.height, image.width), dtype=np.float32)
        for channel, row in enumerate(values):
            np.take(row, pixels[:, :, channel], out=out[channel], mode="clip")  # 'raise' would work on a copy
        return out

    def _values(self, channels: int) -> np.ndarray:
        """float32 (C, 256): what the operators make of each value of each channel."""
        if channels not in self._tables:
            ramp = np.repeat(np.arange(256, dtype=np.uint8)[:, None, None], channels, axis=2)
            image = Image.fromarray(ramp if channels > 1 else ramp[:, :, 0])
            self._tables[channels] = np.ascontiguousarray(np.asarray(self._computed(image))[:, :, 0])
        return self._tables[channels]

    def _computed(self, image: Any) -> Any:
        for operator in self._operators:
            image = operator(image)
        return image


def tabled(parts: Sequence[Part]) -> tuple[int, int]:
    """Where a table can stand for the transforms: from a ToTensor up to behind the Normalize that follow it.

    An empty range where there is no ToTensor.
    """
    names = [short(part) for part in parts]
    if "ToTensor" not in names:
        return 0, 0
    start = end = names.index("ToTensor")
    end += 1
    while names[end : end + 1] == ["Normalize"]:
        end += 1
    return start, end
