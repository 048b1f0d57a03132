"""The trace: what one framework did in one training step, as a folder that any machine can read.

    trace.json            framework, versions, precision, recipe digest, the ordered list of entries, and the SHA-256
                          of each tensor file
    <stage>-<part>.safetensors    the recorded elements of every tensor of that part

Names are torch's state_dict and module names. A tensor with more elements than the sample size is recorded by a
stratified sample (the same elements in both frameworks), with the number of elements, of non-finite values and, where
it matters, the digest taken over the whole. A trace says on which device it was computed, and what a reader has to know
about that.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, GetCoreSchemaHandler
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from ..errors import BadCheckpoint, BadTrace
from ..input_files import open_regular, read_json, typed
from ..migrate.checkpoint.formats.reader import MAX_DIM, MAX_RANK
from ..migrate.checkpoint.formats.safetensors_file import read_header
from ..printable import printable_values
from .options import SAMPLE, WHOLE, Narrowing, Stage, joined

SIDES_STAGE: Literal["sides"] = "sides"  # not judged: the choices at kinks, for the other recorder (recorder.py)
RecordedStage = Stage | Literal["sides"]
Count = Annotated[int, Field(ge=0, lt=MAX_DIM)]
FORMAT = 3
CHUNK = 1 << 20  # bytes read at once

Key = tuple[str, str, str, int]  # stage, part, name, call
Elements = Callable[["Entry"], np.ndarray]


class Part(str):
    """Which of a stage's recordings a tensor is in; in files and reports it is its text."""

    @classmethod
    def of_step(cls, step: int, of: str = "") -> Part:
        """The part for a training step, from 1; of: what of the step, where that is not the stage's own."""
        return cls(f"step{step} {of}".rstrip())

    @classmethod
    def of_call(cls, path: str, number: int) -> Part:
        """The kinks inside of one call of a module that ran alone."""
        return cls(f"{ALONE} {path}#{number}")

    @classmethod
    def of_wiring(cls, path: str, number: int) -> Part:
        """The kinks of what a container itself computes in one of its calls."""
        return cls(f"{WIRING} {path}#{number}")

    @property
    def step(self) -> int | None:
        """The training step that it belongs to."""
        found = _STEP.match(self)
        return int(found[1]) if found else None

    @property
    def of(self) -> str:
        """What of its training step it is, where that is not the stage's own: what `of_step` was given."""
        return _STEP.sub("", self, count=1)

    @property
    def alone(self) -> bool:
        """Whether it is of modules that ran alone, or in a pass that replaces every module's output."""
        return self in (ALONE, WIRING)

    @property
    def given(self) -> bool:
        """Whether it was made of made-up values (randomness.py), and not of what the step itself computed."""
        return self.startswith("given")

    @property
    def of_buffers(self) -> bool:
        """Whether it holds what a step changed in buffers."""
        return self.endswith(f" {BUFFERS}")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return handler(str)  # dataclasses with a part turn the text into a Part


_STEP = re.compile(r"step(\d+)(?: |$)")
ALONE = Part("alone")  # modules that ran alone, on torch's inputs; entries are named "MODULE TENSOR"
WIRING = Part("wiring")  # the pass in which every module's output is replaced by the recorded one
DISTRIBUTION = Part("distribution")  # of init: values pooled over newly drawn models
BUFFERS = "buffers"  # of what a step did
RATES = Part("learning rate and weight decay")
MOMENTA = Part("momentum")  # or beta1, where a schedule moves it
STEPS_TAKEN = (
    "steps taken"  # in the head of a trace that ends before the float64 one: later steps are judged by its noise
)
GIVEN_GRADIENTS, GIVEN_OVERFLOWS = Part("given gradients"), Part("given overflows")  # what these did to the weights
GIVEN_WEIGHTS = Part("given weights ema")
REDUCED_GRADIENTS = Part("behind a reducer")  # as the optimizer gets them after a reducer that returns larger ones


@dataclass(frozen=True)
class Entry:
    """One recorded tensor.

    stage: one of STAGES; part: which of the stage's recordings (train, eval, step1, …); name: canonical torch name;
    call: how often the module had run before (modules are reused); order: position in execution; shape and dtype of
    the whole tensor; sampled: whether only a stratified sample is stored; nonfinite: NaN and infinities in the whole;
    norm: its L2 norm; digest: SHA-256 of its bytes, where the whole has to be equal to the bit; module: the torch
    class of the module that made it, where one did.
    """

    stage: RecordedStage
    part: Part
    name: str
    call: Count
    order: Count
    shape: Annotated[tuple[Count, ...], Field(max_length=MAX_RANK)]
    dtype: str
    sampled: bool
    nonfinite: Count
    norm: Annotated[float, Field(allow_inf_nan=False)]
    digest: str | None = None
    module: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "part", Part(self.part))

    @property
    def key(self) -> Key:
        """What makes the entry unique in its trace and equal to its counterpart in another."""
        return (self.stage, self.part, self.name, self.call)

    @property
    def label(self) -> str:
        """The name as people read it: the dotted name, and which call when the module ran more than once."""
        return f"{self.name}#{self.call}" if self.call else self.name


@dataclass(frozen=True)
class Kept:
    """What is recorded of one tensor: its elements or a sample of them, and what `Entry` says of the whole."""

    elements: np.ndarray
    shape: tuple[int, ...]
    dtype: str
    sampled: bool
    nonfinite: int
    norm: float
    digest: str | None

    @classmethod
    def of(cls, array: np.ndarray, sample: int | None, digest: bool = False) -> Kept:
        """A copy of at most so many elements of an array, of any shape, layout and numeric dtype; None: of all."""
        sampled = sample is not None and array.size > sample
        if sampled and not digest and not array.flags.c_contiguous and (laid := _as_laid(array)) is not None:
            # of images with the channels last in memory: no copy of the whole in another order
            steps = tuple(stride // array.itemsize for stride in array.strides)
            elements = laid[_laid_positions(array.shape, steps, sample or 0)]
            flat = laid
        else:
            flat = np.ascontiguousarray(array).reshape(-1)
            elements = flat[sample_positions(flat.size, sample)] if sampled and sample is not None else flat.copy()
        # a float32 dot product tells at once whether anything is not finite; the exact count only when it must be
        norm = float(np.sqrt(np.dot(flat, flat))) if flat.dtype.kind == "f" else float(np.linalg.norm(flat))
        finite = bool(np.isfinite(norm))
        nonfinite = 0 if finite else int(flat.size - np.isfinite(flat).sum())
        said = hashlib.sha256(flat.data).hexdigest() if digest else None
        shape = tuple(array.shape)
        return cls(elements, shape, str(array.dtype), sampled, nonfinite, norm if finite else -1.0, said)


def _as_laid(array: np.ndarray) -> np.ndarray | None:
    """The elements in the order in which they lie in memory, flat and not copied; None where there are gaps."""
    laid = array.transpose(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))
    return laid.reshape(-1) if laid.flags.c_contiguous else None


class TraceWriter:
    """Collect one framework's tensors and write them as a trace folder; `close` makes it readable.

    narrowing: stages that are not judged are not recorded; callers ask `wants` before work that only these need.
    """

    def __init__(
        self, folder: Path, about: dict[str, Any], sample: int | None = SAMPLE, narrowing: Narrowing = WHOLE
    ) -> None:
        self.folder = folder
        self.about = about
        self.sample = sample
        self.narrowing = narrowing
        self._entries: list[Entry] = []
        self._parts: dict[tuple[str, str], dict[str, np.ndarray]] = {}
        self._digests: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def wants(self, *stages: Stage) -> bool:
        """Whether one of these stages is judged."""
        return any(stage in self.narrowing.stages for stage in stages)

    def add(
        self,
        stage: RecordedStage,
        part: str,
        name: str,
        array: np.ndarray,
        call: int = 0,
        digest: bool = False,
        module: str | None = None,
        whole: bool = False,
    ) -> None:
        """Record one tensor, any shape and numeric dtype; the elements are copied before this returns.

        `digest` adds the SHA-256 of all its bytes; `whole` stores every element whatever the sample size.
        """
        if self.narrowing.records(stage):
            self.add_kept(stage, part, name, Kept.of(array, None if whole else self.sample, digest), call, module)

    def add_kept(
        self, stage: RecordedStage, part: str, name: str, kept: Kept, call: int = 0, module: str | None = None
    ) -> None:
        """Record what was kept of a tensor."""
        entry = Entry(
            stage,
            Part(part),
            name,
            call,
            len(self._entries),
            kept.shape,
            kept.dtype,
            kept.sampled,
            kept.nonfinite,
            kept.norm,
            kept.digest,
            module,
        )
        self._entries.append(entry)
        self._parts.setdefault((stage, part), {})[tensor_name(entry)] = kept.elements

    def flush(self, stage: str, part: str) -> None:
        """Write one finished part to disk and forget its tensors, so that memory holds one part at a time; what is
        added to it later joins them."""
        if (stage, part) in self._parts:
            path = self.folder / file_name(stage, part)
            before = load_file(path) if path.name in self._digests else {}
            save_file(before | self._parts.pop((stage, part)), path)
            self._digests[path.name] = sha256(path)

    def close(self) -> None:
        """Write what is left, then trace.json last: a folder without it is not a trace."""
        for stage, part in list(self._parts):
            self.flush(stage, part)
        entries = [vars(entry) for entry in self._entries]
        text = json.dumps({"format": FORMAT, **self.about, "files": self._digests, "entries": entries})
        partial = self.folder / "trace.json.partial"
        partial.write_text(text, encoding="utf-8")
        partial.replace(self.folder / "trace.json")


def write_entries(folder: Path, about: dict[str, Any], recorded: Mapping[Key, Entry], elements: Elements) -> None:
    """Write a new trace of entries that another had, part by part. elements: what is recorded of each, flat."""
    folder.mkdir(parents=True)
    parts: dict[tuple[str, Part], list[Entry]] = {}
    for entry in recorded.values():
        parts.setdefault((entry.stage, entry.part), []).append(entry)
    digests = {}
    for (stage, part), entries in parts.items():
        path = folder / file_name(stage, part)
        save_file({tensor_name(entry): np.ascontiguousarray(elements(entry)) for entry in entries}, path)
        digests[path.name] = sha256(path)
    document = {"format": FORMAT, **about, "files": digests, "entries": [asdict(one) for one in recorded.values()]}
    (folder / "trace.json").write_text(json.dumps(document), encoding="utf-8")


class Trace:
    """A trace folder, opened for reading; tensors are read one at a time.

    fresh: the trace was written in this run, by a process that is its own, and digests are not looked at.
    """

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        self.folder = folder
        self._fresh = fresh
        try:
            document = read_json(folder / "trace.json")
            self.entries: dict[Key, Entry] = {}
            for entry in typed(list[Entry], document.pop("entries")):
                if entry.key in self.entries:
                    raise BadTrace(f"{folder}: {'/'.join(map(str, entry.key))} is recorded twice")
                self.entries[entry.key] = entry
        except (FileNotFoundError, NotADirectoryError):
            raise BadTrace(f"{folder}: no trace.json; the recording did not finish, or this is no trace") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = " ".join(str(error).split())[:300]
            raise BadTrace(f"{folder / 'trace.json'}: cannot be read: {reason}") from error
        if document.get("format") != FORMAT:
            found = document.get("format")
            remedy = "record it again" if type(found) is int and found < FORMAT else "a newer msmigrate may read it"
            raise BadTrace(f"{folder}: trace format {str(found)[:40]}; this msmigrate reads {FORMAT}: {remedy}")
        digests = document.pop("files", None)
        if not isinstance(digests, dict) or not all(type(digest) is str for digest in digests.values()):
            raise BadTrace(f"{folder / 'trace.json'}: has no digests of its tensor files")
        self._digests: dict[str, str] = digests
        self.about: dict[str, Any] = printable_values(document)
        self._files: dict[tuple[str, str], Any] = {}

    def array(self, key: Key) -> np.ndarray:
        """The recorded elements of one tensor, flat. Raises BadTrace when they are missing or damaged: the digest of a
        tensor file is checked when it is opened."""
        entry = self.entries[key]
        at = entry.stage, entry.part
        try:
            if at not in self._files:
                self._files[at] = self._opened(self.folder / file_name(*at))
            found: np.ndarray = self._files[at].get_tensor(tensor_name(entry))
        except (OSError, SafetensorError, TypeError, ValueError, BadCheckpoint) as error:
            path = self.folder / file_name(*at)
            raise BadTrace(f"{path}: {tensor_name(entry)}: {' '.join(str(error).split())[:300]}") from error
        elements = math.prod(entry.shape)
        fits = found.size < elements if entry.sampled else found.size == elements
        if _name_of(found.dtype) != entry.dtype or not fits:
            raise BadTrace(
                f"{self.folder / file_name(*at)}: {tensor_name(entry)}: {found.size} {found.dtype} elements do not fit "
                f"what trace.json says: {entry.dtype} {list(entry.shape)}"
            )
        return found.reshape(-1)

    def _opened(self, path: Path) -> Any:
        if not self._fresh and _digest(path) != self._digests.get(path.name):
            raise ValueError("the file is not the one that was recorded: its SHA-256 differs")
        with open_regular(path) as file:
            read_header(file, path.name)  # checks more than safetensors does
        return safe_open(path, framework="numpy")

    def select(self, stage: RecordedStage, part: str | None = None) -> Iterator[Entry]:
        """The entries of a stage (and part) in execution order."""
        if part is None:
            yield from (entry for entry in self.entries.values() if entry.stage == stage)
        else:
            yield from self._by_part.get((stage, part), ())

    @cached_property
    def _by_part(self) -> dict[tuple[str, str], list[Entry]]:
        found: dict[tuple[str, str], list[Entry]] = {}
        for entry in self.entries.values():
            found.setdefault((entry.stage, entry.part), []).append(entry)
        return found


@cache
def _name_of(dtype: np.dtype[Any]) -> str:
    return str(dtype)  # cached: NumPy builds the name anew each time, and there are many small tensors


def file_name(stage: str, part: str) -> str:
    """The safetensors file of a part, whatever characters the part's name has."""
    safe = "".join(c if c.isalnum() or c in "_-" else "_" for c in part)
    # modules' dotted names: layer1.0 and layer1_0 are not one file
    suffix = f"-{zlib.crc32(part.encode()):08x}" if safe != part.replace(" ", "_") else ""
    return f"{stage}-{safe}{suffix}.safetensors"


def sha256(path: Path) -> str:
    """The digest of a file, in hex; raises OSError."""
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _digest(path: Path) -> str:
    """Like sha256, for a file that is opened again and again: it is only read anew where it has changed since."""
    state = path.stat()
    return _digest_of(path, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@lru_cache(maxsize=4096)
def _digest_of(path: Path, *_: int) -> str:
    return sha256(path)


def tensor_name(entry: Entry) -> str:
    """The tensor's name inside its safetensors file."""
    return f"{entry.name}#{entry.call}"


@lru_cache(maxsize=256)
def sample_positions(size: int, count: int) -> np.ndarray:
    """`count` ascending positions below `size`, one drawn in each of `count` equal strata, int64, read-only.

    Seeded by the size, so that both frameworks keep the same elements without speaking to each other, and drawn, so
    that no period of the layout (rows, channels) can fall between the positions. Kept, for a net has few sizes and
    thousands of tensors.
    """
    draws = np.random.Generator(np.random.Philox(size)).random(count)
    edges = np.arange(count + 1) * size // count  # whole numbers, so that no element falls into two strata
    positions = edges[:-1] + (draws * np.diff(edges)).astype(np.int64)
    positions.flags.writeable = False
    return positions


@lru_cache(maxsize=256)
def _laid_positions(shape: tuple[int, ...], steps: tuple[int, ...], count: int) -> np.ndarray:
    """Where in memory the sampled elements of an array without gaps lie; steps: between two elements of each axis."""
    positions = np.zeros(count, np.int64)
    for axis, step in zip(np.unravel_index(sample_positions(math.prod(shape), count), shape), steps, strict=True):
        positions += axis * step
    positions.flags.writeable = False
    return positions


SHORTER = {  # switch -> what to put before the command, or into one's own file, to switch it off
    "TF32 in matrix products": "NVIDIA_TF32_OVERRIDE=0 before the command",
    "TF32 in convolutions": "NVIDIA_TF32_OVERRIDE=0 before the command",
    "HF32 in matrix products": "torch.npu.matmul.allow_hf32 = False in the model's file",
    "HF32 in convolutions": "torch.npu.conv.allow_hf32 = False in the model's file",
}
COARSE = 30.0  # times the CPU's noise from which a device's is more than another order of additions


@dataclass(frozen=True)
class Device:
    """device: cpu, cuda:0, npu:0 or ascend:0; device_model: what it calls itself; driver, runtime: their versions where
    there are any; switches: what changes the numbers that it computes, by name."""

    device: str
    device_model: str = ""
    driver: str = ""
    runtime: str = ""
    switches: dict[str, bool | str] = field(default_factory=dict)

    @classmethod
    def of(cls, about: Mapping[str, Any], place: Path) -> Device:
        """What the head of a trace says, which may come from anyone. Raises BadTrace for nonsense."""
        said = {each.name: about[each.name] for each in fields(cls) if each.name in about}
        try:
            return typed(cls, {"device": "not said", **said}, whole=False)
        except ValueError as error:
            raise BadTrace(f"{place / 'trace.json'}: says nonsense about its device: {error}") from None

    @property
    def is_cpu(self) -> bool:
        """Whether it is a CPU, or an older trace that does not say."""
        return self.device in ("cpu", "not said")

    def said(self) -> str:
        """cuda:0 (NVIDIA H100, driver 550.54; TF32 in convolutions on, cudnn.benchmark off)."""
        versions = [self.device_model, f"driver {self.driver}" if self.driver else "", self.runtime]
        switches = [f"{name} {_state(value)}" for name, value in self.switches.items()]
        inside = "; ".join(part for part in (", ".join(filter(None, versions)), ", ".join(switches)) if part)
        return f"{self.device} ({inside})" if inside else self.device


def _state(value: bool | str) -> str:
    return value if isinstance(value, str) else "on" if value else "off"


def device_notes(
    torch: Device, reference: Device, mindspore: Device, precision: str, coarser: float | None = None
) -> list[str]:
    """What a reader has to know of the devices that both sides of a step were computed on.

    torch, reference: of its float32 and of its float64 run. precision: of the recording. coarser: how many times
    farther from float64 the device's float32 run is than one on the CPU, median over all outputs; None: not measured.
    """
    found = []
    if not torch.is_cpu:
        where = "there too" if reference.device == torch.device else "on the CPU"
        found.append(
            f"torch's float32 ran twice on {torch.device}, and what differs between the two counts as noise; float64 "
            f"and a float32 run of another memory layout ran {where}"
        )
    shorter = [name for name in SHORTER if torch.switches.get(name) is True]
    shorter = [] if torch.switches.get("NVIDIA_TF32_OVERRIDE") == "0" else shorter
    if coarser is not None and coarser >= COARSE:
        why = f" ({joined([f'{name} is on' for name in shorter])})" if shorter else ""
        remedy = joined(list(dict.fromkeys(SHORTER[name] for name in shorter)))
        sharper = f"; for a sharper verdict: {remedy}" if remedy else ""
        found.append(
            f"torch on {torch.device} is {coarser:,.0f} times as far from float64 as float32 on the CPU{why}, and "
            f"what differs by less than that noise is not seen{sharper}"
        )
    if mindspore.switches.get("HF32 in convolutions") is True and precision == "fp32":
        found.append(
            "MindSpore's convolutions may be in HF32, Ascend's default, and are judged as float32: --precision hf32 "
            "judges them as what they are"
        )
    return found
