"""The options of export and serve, each declared here for the command line and for the library; the jobs of their
processes, and the names and arrays that these hand each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveInt

from ..errors import BadInput
from ..input_files import read_bytes
from ..option_fields import SHAPES, Option
from ..training.inference import Request
from ..training.options import NetOptions
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


FORMS = ("mindir", "onnx", "lite", "serving", "air")


ENC_MODES = ("AES-GCM", "AES-CBC", "SM4-CBC")


@dataclass(frozen=True, kw_only=True)
class NetChoice(NetOptions):
    """Which net, and the inputs that it takes; the checkpoint may be a MindIR."""

    torch: Annotated[
        str | None,
        Option("The torch model of a FILE.py:FUNCTION, to compare with.", metavar="SPEC", reads="torch model"),
    ] = None
    shapes: Annotated[tuple[str, ...], SHAPES] = ()
    classes: Annotated[
        Path | None,
        Option("Class names: one a line, or a tree of class folders.", metavar="FILE|DIR", reads="file or folder"),
    ] = None
    key_file: Annotated[
        Path | None, Option("Encrypt the MindIR with the key in this file.", metavar="FILE", reads="key")
    ] = None
    enc_mode: Annotated[str | None, Option("[default: AES-GCM]", choices=ENC_MODES)] = None

    @property
    def encryption(self) -> str:
        """The mode of encryption of a MindIR with a key."""
        return self.enc_mode or ENC_MODES[0]


@dataclass(frozen=True, kw_only=True)
class ExportOptions(NetChoice):
    """What is exported, and as what. Raises BadInput for options that do not fit together."""

    out: Path
    form: Annotated[str, Option("The file format.", flag="format", choices=FORMS)] = FORMS[0]
    batch: Annotated[int | None, Option("Examples at a time.  [default: 1, or as --input has it]", least=1)] = None
    dynamic: Annotated[bool, Option("Any size of batch; refused where two sizes do not run.")] = False
    images: Annotated[
        Path | None,
        Option("Compare on these images.  [default: random numbers]", metavar="DIR|FILE", reads="file or folder"),
    ] = None
    from_onnx: Annotated[bool, Option("Make the lite model from ONNX instead of MindIR.")] = False
    json_file: Annotated[Path | None, Option("What was found", flag="json", stdout=True)] = None
    force: Annotated[bool, Option("Replace FILE when it exists.")] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.key_file is None:
            if self.enc_mode is not None:
                raise BadInput("--enc-mode says how a MindIR is encrypted, and --key-file with which key: give both")
        elif self.form != "mindir":
            raise BadInput(f"--key-file encrypts MindIR; --format {self.form} has no encryption")
        if self.classes is not None and self.form != "serving":
            raise BadInput("--classes names the classes of --format serving")
        if self.from_onnx and self.form != "lite":
            raise BadInput("--from-onnx says what --format lite is made from")
        if self.dynamic and self.form in ("lite", "serving"):
            raise BadInput(f"--dynamic is for --format mindir and onnx; {self.form} takes batches of --batch N")

    @property
    def net_form(self) -> str:
        """What MindSpore writes: mindir or onnx, of which the other forms are made."""
        return "onnx" if self.form == "onnx" or self.from_onnx else "mindir"


@dataclass(frozen=True, kw_only=True)
class ServeOptions(NetChoice):
    """What is served, where, and how requests are gathered into batches. Raises BadInput."""

    name: Annotated[str | None, Option("The model's name in requests.  [default: the name of the file]")] = None
    host: Annotated[str, Option("The address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Option("The port to listen on; 0: any free one.", least=0, most=65535)] = 1500
    batch: Annotated[int, Option("Most instances run at once.", least=1, most=1024)] = 8
    wait: Annotated[float, Option("Milliseconds to wait for a batch to fill.", least=0)] = 2.0
    max_request: Annotated[float, Option("Largest request, in MB.", least=0.001, most=2000)] = 16.0
    max_waiting: Annotated[int, Option("Most instances that may wait.", least=1)] = 256
