"""Made-up images that a network can learn: every class has its own pattern of colours, below noise.

For trials of speed and of the loop, where nothing has to be downloaded.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from .sample import Sample

BLOCKS = 4  # the pattern has 4 x 4 blocks of colour
NOISE = 96  # of 255, to either side
_PATTERNS, _TRAINING, _TEST = range(3)  # what is drawn, as part of the key


class Synthetic:
    """`count` images of `side` x `side` pixels, labels 0, 1, 2, … modulo `num_classes`, as lossless PPMs.

    An image is its class's pattern, seen through noise of its own. Everything is drawn from fixed keys: the same
    image always has the same bytes. training: other images of the same classes than otherwise.
    """

    mode: Literal["RGB", "L"] = "RGB"

    def __init__(self, count: int, side: int, *, num_classes: int, training: bool) -> None:
        self.name = "the synthetic images"
        self.side = side
        self.stream = _TRAINING if training else _TEST
        self.classes = tuple(str(label) for label in range(num_classes))
        self.labels = np.arange(count, dtype=np.int32) % num_classes
        generator = np.random.Generator(np.random.Philox(key=_PATTERNS))
        self.patterns = generator.integers(0, 256, (num_classes, BLOCKS, BLOCKS, 3), dtype=np.int16)
        self.blocks = np.arange(side) * BLOCKS // side  # the block that each row and column lies in

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        index, side = range(len(self))[index], self.side
        generator = np.random.Generator(np.random.Philox(key=self.stream + (index << 8)))
        noise = generator.integers(-NOISE, NOISE + 1, (side, side, 3), dtype=np.int16)
        pattern = self.patterns[self.labels[index]][np.ix_(self.blocks, self.blocks)]
        pixels = np.clip(pattern + noise, 0, 255).astype(np.uint8)
        return Sample(
            b"P6 %d %d 255\n" % (side, side) + pixels.tobytes(), int(self.labels[index]), f"synthetic {index}"
        )
