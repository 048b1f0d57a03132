"""Made-up inputs that both recorders compute for themselves: gradients for the optimizer, weights for the moving
average, logits for the loss.

On these the loss and the optimizer are compared at the arithmetic's own noise, whatever the network before them did:
in a net with ReLU the real gradients stand percents away from their exact values, and a forgotten weight decay of
1e-4 would drown in that.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping

import numpy as np

STEPS = 5


class Gradients(Mapping[str, np.ndarray]):
    """A gradient for each parameter, drawn when it is asked for: all of them at once are as large as the model.

    shapes: name -> shape.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], step: int) -> None:
        self._shapes, self._step = shapes, step

    def __getitem__(self, name: str) -> np.ndarray:
        return gradient(name, self._shapes[name], self._step)

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)


def gradient(name: str, shape: tuple[int, ...], step: int) -> np.ndarray:
    """Float32 values of `shape`, uniform within ±0.02, fixed by the parameter's name and the step.

    Uniform, for normal ones take four times as long to draw, and 25 million are drawn in each step of a ResNet50.
    """
    draws = _generator(f"{name}@{step}").random(shape, dtype=np.float32)
    return (draws - np.float32(0.5)) * np.float32(0.04)


def weights(name: str, shape: tuple[int, ...], step: int) -> np.ndarray:
    """Float32 values of `shape`, uniform within ±1, fixed by the parameter's name and the step."""
    return _generator(f"{name}#{step}").random(shape, dtype=np.float32) * np.float32(2) - np.float32(1)


def logits(batch: int, *classes: int) -> np.ndarray:
    """Normal float32 logits, (batch, classes, …), standard deviation 3: confident here, undecided there."""
    return _generator("logits").standard_normal((batch, *classes), dtype=np.float32) * np.float32(3.0)


def _generator(key: str) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(zlib.crc32(key.encode())))
