"""What an export is asked for, and what its workers are told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from ..errors import BadInput
from ..input_files import read_bytes
from ..train.inference.request import Request
from ..train.recipe_parts import Strict

ENC_MODES = ("AES-GCM", "AES-CBC", "SM4-CBC")
LARGEST_KEY = 1 << 10  # bytes of its file
KEY_SIZES = {"AES-GCM": (16, 24, 32), "AES-CBC": (16, 24, 32), "SM4-CBC": (16,)}
MINDIR, ONNX = "mindir", "onnx"
INPUTS, FACTS, REQUEST = "inputs.npz", "facts.json", "export.json"  # in the folder that the workers share
OTHER = "other"  # a folder in it, for the net exported with batches of MORE examples more
MORE = 2  # by which the second size of batches is larger, on which a file with an open batch is run, too


@dataclass(frozen=True)
class Asked:
    """What the command line asks of the net: the checkpoint and what it is of, the inputs it takes, and its images.

    model: a name, `torchvision:NAME(…)`, or `FILE.py:FUNCTION` that makes a MindSpore Cell, whose torch model `torch`
    names. shapes: of the inputs, as `1x3x224x224` or `1x16:int64`. batch: examples at a time. key_file, enc_mode: of an
    encrypted MindIR. stem: of the file's name; a large net's numbers lie beside it under a name that begins so. trust:
    the source that the checkpoint may name. prepares: whether something has to say how images are prepared.
    """

    checkpoint: Path
    form: str = MINDIR
    model: str | None = None
    recipe: Path | None = None
    torch: str | None = None
    ema: bool = False
    shapes: tuple[str, ...] = ()
    batch: int | None = None
    dynamic: bool = False
    images: Path | None = None
    key_file: Path | None = None
    enc_mode: str = ENC_MODES[0]
    stem: str = "model"
    trust: str | None = None
    prepares: bool = False


class Job(Strict):
    """What the MindSpore process is told.

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
