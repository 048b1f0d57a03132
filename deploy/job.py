"""The jobs of the processes that export and serve, and the names and arrays that they hand each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveInt

from ..errors import BadInput
from ..input_files import read_bytes
from ..training.inference import Request
from ..training.recipe.schema import Strict

LARGEST_KEY = 1 << 10  # bytes of its file
KEY_SIZES = {"AES-GCM": (16, 24, 32), "AES-CBC": (16, 24, 32), "SM4-CBC": (16,)}
MINDIR, ONNX = "mindir", "onnx"
INPUTS, FACTS, REQUEST = "inputs.npz", "facts.json", "export.json"  # in the folder that the workers share
OTHER = "other"  # a folder in it, for the net exported with batches of MORE examples more
MORE = 2  # by which the second size of batches is larger, on which a file with an open batch is run, too


class Job(Strict):
    """What the MindSpore process has to make.

    request: the net, its weights and its images.
    form: mindir or onnx. shapes, batch, dynamic, key_file, enc_mode, stem: as asked. noise: measure the rounding of the
    net itself, where there is no torch model to measure it.
    """

    request: Request
    form: Literal["mindir", "onnx"] = "mindir"
    shapes: list[str] = Field(default_factory=list)
    batch: int | None = None
    dynamic: bool = False
    noise: bool = False
    key_file: Path | None = Field(default=None, strict=False)
    enc_mode: Literal["AES-GCM", "AES-CBC", "SM4-CBC"] = "AES-GCM"
    stem: str = "model"

    def key(self, way: Literal["enc", "dec"]) -> dict[str, Any]:
        """What MindSpore's export (enc) and load (dec) take of the key; nothing without one. Raises BadInput."""
        if self.key_file is None:
            return {}
        return {f"{way}_key": read_key(self.key_file, self.enc_mode), f"{way}_mode": self.enc_mode}


def read_key(path: Path, mode: str) -> bytes:
    """The key in a file, without the newline at its end. Raises BadInput, which never says what the key is."""
    try:
        key = read_bytes(path, LARGEST_KEY)
    except OSError as error:
        raise BadInput(f"--key-file {path} cannot be read: {error.strerror}") from None
    sizes = KEY_SIZES[mode]
    for content in (key, key.removesuffix(b"\n").removesuffix(b"\r")):
        if len(content) in sizes:
            return content
    wanted = " or ".join(map(str, sizes))
    raise BadInput(f"--key-file {path} holds {len(key)} bytes; a key for {mode} has {wanted}: head -c 16 /dev/urandom")


def shape_of(text: str) -> tuple[tuple[int, ...], str]:
    """Sizes and dtype of `1x3x224x224` or `1x16:int64`. Raises BadInput."""
    sizes, _, dtype = text.replace("×", "x").partition(":")
    try:
        shape = tuple(int(size) for size in sizes.split("x"))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1 or (dtype or "float32") not in ("float32", "int32", "int64"):
        raise BadInput(
            f"--input {text}: expected sizes from 1 on, the batch first, and float32, int32 or int64, as in "
            "1x3x224x224 or 1x16:int64"
        )
    return shape, dtype or "float32"


EXPORTED = "exported{}.npz"  # outputs of the exported file, by the size of a batch
TORCH64, TORCH32, TORCH32_OTHER = TORCH = ("torch64.npz", "torch32.npz", "torch32_other.npz")

Run = Callable[[list[np.ndarray]], list[np.ndarray]]


def in_batches(run: Run, inputs: Sequence[np.ndarray], size: int) -> list[np.ndarray]:
    """What `run` makes of all examples, `size` at a time; each output (M, …) is that of all.

    inputs: of one first axis M, of which size is a divisor, but for a net that takes any batch. Outputs that have no
    axis for examples are those of the first batch.
    """
    starts = range(0, len(inputs[0]), size)
    sizes = [min(size, len(inputs[0]) - start) for start in starts]
    parts = [run([array[start : start + size] for array in inputs]) for start in starts]
    joined = []
    for pieces in zip(*parts, strict=True):
        of_examples = all(piece.ndim and len(piece) == n for piece, n in zip(pieces, sizes, strict=True))
        joined.append(np.concatenate(pieces) if of_examples else pieces[0])
    return joined


def save(path: Path, arrays: Sequence[np.ndarray]) -> None:
    """Store arrays in order."""
    np.savez(path, *[np.ascontiguousarray(array) for array in arrays])


def load(path: Path) -> list[np.ndarray]:
    """Read what save() stored."""
    with np.load(path, allow_pickle=False) as stored:
        return [stored[f"arr_{i}"] for i in range(len(stored.files))]


FILE = "serve.json"
VERSION = 1  # of the model, as MindSpore Serving counts them


class ServeJob(Strict):
    """A model and how it is served.

    name: under which it is asked for. job: the net and how images are prepared; mindir: a file to load in its place.
    images: whether the job's recipe says how images are prepared. classes: names of the net's classes, of which those
    that it does not name get a number. batch: the most instances that run at once; wait: milliseconds for which a batch
    waits to fill. most_bytes: of a request. most_waiting: instances that wait before further ones are sent away.
    """

    name: str
    job: Job
    mindir: Path | None = Field(default=None, strict=False)
    images: bool = True
    classes: list[str] | None = None
    host: str = "127.0.0.1"
    port: NonNegativeInt = 1500
    batch: PositiveInt = 8
    wait: float = Field(default=2.0, ge=0)
    most_bytes: PositiveInt = 16 << 20
    most_waiting: PositiveInt = 256
