"""A run's checkpoints: written, verified, read, retained; their weights compared with those that a net needs; the
position of the run, and whether it may continue from one of them.

A checkpoint is one MindSpore `.ckpt` (see migrate/checkpoint/formats/ckpt.py) that ends in MindSpore's own checksum,
so that `mindspore.load_checkpoint(crc_check=True)` reads it too. It holds

    msmigrate.run               uint8: UTF-8 JSON that says where the run stands; first, so that no cut leaves it out
    conv1.weight, bn1.gamma, …  the net, under MindSpore's names
    optimizer.…, msmigrate.…    what mindspore_step_state.state keeps besides the weights
    ema.conv1.weight, …         the moving average, under torch's state_dict names
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..atomic_files import atomic_file
from ..errors import BadCheckpoint, BadInput
from ..input_files import json_value, open_regular
from ..migrate.checkpoint.formats.ckpt import CRC_MARK, TENSOR_TYPES, Value, begins, entries, header, pieces
from ..migrate.checkpoint.inspect_file import DIGEST
from ..printable import few, quoted
from .recipe.digest import OUTSIDE_THE_STEP
from .recipe.schema import Recipe

HEAD = 512  # bytes that are examined

Shape = tuple[int, ...]


def is_foreign(path: Path) -> bool:
    """Whether a file has to be converted first: by its first bytes a zip, pickle or safetensors, or not named .ckpt.

    Raises BadCheckpoint for a file that cannot be read.
    """
    try:
        with open_regular(path) as file:
            head = file.read(HEAD)
    except FileNotFoundError:
        raise BadCheckpoint(f"there is no file {path}") from None
    except OSError as error:
        raise BadCheckpoint(f"{path} cannot be read: {error.strerror}") from error
    known = head[:4] == b"PK\x03\x04" or head[:1] == b"\x80" or head[8:9] == b"{"
    return not begins(head) and (known or path.suffix.lower() != ".ckpt")


def fit(
    path: str, tensors: Mapping[str, np.ndarray], wanted: Mapping[str, tuple[Shape, str]], recipe: Recipe
) -> dict[str, np.ndarray]:
    """The tensors that a net needs, under its own names, if they are exactly those that the checkpoint has for it.

    wanted: name in the file -> (shape, dtype); names below 'ema.' select the moving average in place of the weights.
    recipe: what the net was made from. Raises BadCheckpoint where a tensor is missing or left over, has another shape
    or dtype, or holds a number that is not finite.
    """
    model = recipe.model.name
    classes = recipe.model.num_classes
    averages = bool(wanted) and all(name.startswith(EMA) for name in wanted)
    stored = {n: array for n, array in tensors.items() if (n.startswith(EMA) if averages else not n.startswith(BESIDE))}
    missing = [name for name in wanted if name not in stored]
    extra = [name for name in stored if name not in wanted]
    if missing or extra:
        parts = [f"it lacks {_named(missing, extra)}"] if missing else []
        parts += [f"the net has no {few(extra)}"] if extra else []
        raise BadCheckpoint(f"{path} does not hold the weights of the recipe's {model}: {'; '.join(parts)}")
    for name, (shape, dtype) in wanted.items():
        found = stored[name]
        if found.shape != shape:
            last = name in list(wanted)[-2:]  # weight and bias of the classifier, whose size is the number of classes
            raise BadCheckpoint(_other_shape(path, name, found.shape, shape, classes if last else 0, model))
        if found.dtype != dtype:
            raise BadCheckpoint(f"{path}: {name} is {found.dtype} and the recipe's {model} needs {dtype}")
        if not np.isfinite(found).all():
            raise BadCheckpoint(f"{path}: {name} holds numbers that are not finite; its training has diverged")
    return {name: stored[name] for name in wanted}


def _other_shape(path: str, name: str, found: Shape, wanted: Shape, classes: int, model: str) -> str:
    if len(found) == len(wanted) and wanted[:1] == (classes,) and found[1:] == wanted[1:]:
        return (
            f"{path} has {found[0]} classes ({name} is {_size(found)}) and the recipe's {model} has {classes}: "
            f"set model.args.num_classes to {found[0]}"
        )
    return f"{path}: {name} is {_size(found)} and the recipe's {model} needs {_size(wanted)}"


NEW_HEAD = 8  # with up to this many tensors that do not fit, a new head may be meant


def new_head(stored: Mapping[str, Shape], wanted: Mapping[str, Shape]) -> str:
    """What to write where a checkpoint fits a net except for a head: the end of a message; empty where more differs.

    stored, wanted: the shapes of the file's and of the net's tensors, by torch's names.
    """
    odd = [name for name in {**wanted, **stored} if stored.get(name) != wanted.get(name)]
    heads = list(dict.fromkeys(f"{name.rpartition('.')[0]}.*".removeprefix(".") for name in odd))
    learnt = [name for name in odd if not name.endswith("num_batches_tracked")]
    if not learnt or len(odd) > NEW_HEAD or len(odd) == len({**wanted, **stored}):
        return ""
    return f"; for a new head write fresh: [{', '.join(heads)}] under model"


def _size(shape: Shape) -> str:
    return " × ".join(map(str, shape)) or "a single number"


def _named(missing: list[str], extra: Iterable[str]) -> str:
    """The first missing names; the very first one with the closest of the existing names."""
    near = difflib.get_close_matches(missing[0], list(extra), n=1, cutoff=0.5)
    first = f"{missing[0]} (it has {near[0]})" if near else missing[0]
    return few([first, *missing[1:]])


RUN = "msmigrate.run"
FORMAT = 1
EMA = "ema."
BESIDE = ("msmigrate.", "optimizer.", EMA)  # prefixes of tensors that do not belong to the net
BEST = "best.ckpt"

_STEP = re.compile(r"step-(\d{8,})\.ckpt")
_TAIL = len(CRC_MARK) + 10
_BLOCK = 8 << 20  # bytes that are summed at a time


class Checkpoint(NamedTuple):
    """The tensors of a file by name, without `msmigrate.run`, and the content of that (None: the file has none)."""

    tensors: dict[str, np.ndarray]
    run: dict[str, Any] | None

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """The net's own tensors."""
        return {name: array for name, array in self.tensors.items() if not name.startswith(BESIDE)}

    @property
    def ema(self) -> dict[str, np.ndarray]:
        """The moving average by state_dict name; empty when the run kept none."""
        return {name[len(EMA) :]: array for name, array in self.tensors.items() if name.startswith(EMA)}


def path_of(folder: Path, step: int) -> Path:
    """The file of the checkpoint after `step` optimizer steps."""
    return folder / f"step-{step:08d}.ckpt"


def write(path: Path, tensors: Mapping[str, np.ndarray], run: Mapping[str, Any]) -> None:
    """Write a checkpoint that appears whole or not at all; an existing one is replaced.

    tensors: name -> array, in the order in which they are written. run: stored as JSON, with the format's number.
    Raises BadDestination where the file cannot be written, for instance because the disk is full.
    """
    about = json.dumps({"format": FORMAT, **run}, allow_nan=False).encode()
    content = {RUN: np.frombuffer(about, dtype=np.uint8), **tensors}
    with atomic_file(path, force=True) as fd, open(fd, "wb", closefd=False) as file:
        checksum = 0
        for name, array in content.items():
            for part in _parts(name, array):
                checksum = zlib.crc32(part, checksum)
                file.write(part)
        file.write(CRC_MARK + checksum.to_bytes(10, "big"))


def _parts(name: str, array: np.ndarray) -> list[Any]:
    """The bytes of one tensor: pieces, each with a header before it."""
    ordered = np.asarray(array, order="C")
    if ordered.shape == (0,) or ordered.dtype.name not in TENSOR_TYPES:
        raise ValueError(f"{name} of {ordered.dtype}, shape {ordered.shape}, does not fit a MindSpore checkpoint")
    dims = ordered.shape or (0,)  # MindSpore's way to write a single number
    raw = ordered.astype(ordered.dtype.newbyteorder("<"), copy=False).reshape(-1).view(np.uint8).data
    kind = TENSOR_TYPES[ordered.dtype.name]
    parts: list[Any] = []
    for start, length in pieces(len(raw)):
        parts += [header(name, dims, kind, length), raw[start : start + length]]
    return parts


def read(path: Path) -> Checkpoint:
    """Read a checkpoint of ours, or one that MindSpore wrote (run is then None), after verifying all of it.

    Checked are the structure, every length against shape and type, and the checksum, which a file that holds
    `msmigrate.run` must have. Raises BadCheckpoint for a file that is damaged, foreign, unreadable, or of bfloat16,
    which NumPy does not have.
    """
    try:
        with open_regular(path) as file:
            return _read(file.fileno(), path)
    except OSError as error:
        raise BadCheckpoint(f"{path} cannot be read: {error.strerror}") from error


def _read(fd: int, path: Path) -> Checkpoint:
    values = entries(fd, str(path))
    if not values:
        raise BadCheckpoint(f"{path} is not a MindSpore checkpoint: it holds no tensor")
    summed = _verify_checksum(fd, path)
    tensors = {value.tag: _tensor(fd, path, value) for value in values}
    stored = tensors.pop(RUN, None)
    if stored is None:
        return Checkpoint(tensors, None)
    if not summed:
        raise BadCheckpoint(f"{path} is damaged: its end, with the checksum, is missing")
    return Checkpoint(tensors, _run(stored, path))


def _verify_checksum(fd: int, path: Path) -> bool:
    """Whether the file ends in a checksum; raises BadCheckpoint where that does not fit the rest."""
    end = os.fstat(fd).st_size - _TAIL
    tail = os.pread(fd, _TAIL, end) if end >= 0 else b""
    if not tail.startswith(CRC_MARK):
        return False
    found = at = 0
    while at < end:
        block = os.pread(fd, min(_BLOCK, end - at), at)
        if not block:
            raise BadCheckpoint(f"{path} became shorter while it was read")
        found = zlib.crc32(block, found)
        at += len(block)
    if found != int.from_bytes(tail[len(CRC_MARK) :], "big"):
        raise BadCheckpoint(f"{path} is damaged: its checksum does not fit its content")
    return True


def _tensor(fd: int, path: Path, value: Value) -> np.ndarray:
    if value.tensor_type == "BFloat16":
        raise BadCheckpoint(f"{path}: {value.tag} is bfloat16; save the weights as float32")
    length = sum(size for _, size in value.pieces)
    raw = np.empty(length, dtype=np.uint8)
    at = 0
    for offset, size in value.pieces:
        stop = at + size
        while at < stop:
            got = os.preadv(fd, [raw.data[at:stop]], offset + size - (stop - at))
            if not got:
                raise BadCheckpoint(f"{path} became shorter while it was read")
            at += got
    try:
        # dims (0,) is how MindSpore writes a single number
        return raw.view(value.tensor_type.lower()).reshape(() if value.dims == (0,) else value.dims)
    except ValueError:  # a hostile shape: more dimensions than NumPy has, or empty and huge
        raise BadCheckpoint(f"{path}: {value.tag} has the shape {value.dims}, which no array can have") from None


def _run(stored: np.ndarray, path: Path) -> dict[str, Any]:
    try:
        run = json_value(stored.tobytes())
    except ValueError:
        raise BadCheckpoint(f"{path} is damaged: {RUN} is not JSON") from None
    if not isinstance(run, dict) or type(run.get("format")) is not int:
        raise BadCheckpoint(f"{path} is damaged: {RUN} is not what a training run writes")
    if run["format"] != FORMAT:
        raise BadCheckpoint(
            f"{path} is of checkpoint format {run['format']} and this msmigrate reads {FORMAT}: "
            "use the msmigrate that wrote it"
        )
    return run


def newest(folder: Path, warn: Callable[[str], None]) -> tuple[Path, Checkpoint] | None:
    """The undamaged checkpoint of the most steps in a run's checkpoint folder; None when there is no checkpoint at all.

    `warn` is called for every damaged one that is passed over. best.ckpt is taken when no other is left. Raises
    BadCheckpoint when there are checkpoints and all of them are damaged.
    """
    why = ""
    candidates = [path for _, path in reversed(_by_step(folder))]
    if (folder / BEST).exists():
        candidates.append(folder / BEST)
    for path in candidates:
        try:
            found = read(path)
            if found.run is None:
                raise BadCheckpoint(f"{path} does not say where its training run stands")
        except BadCheckpoint as error:
            why = why or str(error)
            if path.exists():  # another process may have set it aside in the meantime
                warn(f"{error}; taking the checkpoint before it")
            continue
        return path, found
    if candidates:
        which = "the only checkpoint is" if len(candidates) == 1 else f"all {len(candidates)} checkpoints are"
        raise BadCheckpoint(
            f"{folder} has nothing to continue from, since {which} damaged ({why}): put an undamaged one there, or "
            "remove what is there to begin the run anew"
        )
    return None


def set_aside(folder: Path, step: int) -> list[Path]:
    """Rename the checkpoints of more than `step` steps to *.damaged and return their new names.

    newest() has passed them over. Under their own names they would count as the newest ones when the run goes on, and
    retain() would remove the undamaged ones first.
    """
    moved = []
    for number, path in _by_step(folder):
        if number > step:
            aside = path.with_name(f"{path.name}.damaged")
            with contextlib.suppress(OSError):
                path.replace(aside)
                moved.append(aside)
    return moved


def retain(folder: Path, keep: int) -> list[Path]:
    """Remove all but the `keep` checkpoints of the most steps, never best.ckpt; returns what was removed."""
    removed = [path for _, path in _by_step(folder)[:-keep]]
    for path in removed:
        path.unlink(missing_ok=True)
    return removed


def _by_step(folder: Path) -> list[tuple[int, Path]]:
    found = ((match, path) for path in folder.glob("step-*.ckpt") if (match := _STEP.fullmatch(path.name)))
    return sorted((int(match[1]), path) for match, path in found)


# Where a run stands, and whether it may go on from a checkpoint

# data options that do not change a step, but decide which images it gets
ORDER_OPTIONS = ("shuffle", "drop_last", "on_corrupt")
OUTSIDE_DATA = {f"data.{key}" for key in OUTSIDE_THE_STEP["data"]}


@dataclass
class Progress:
    """The position of a run; a checkpoint holds all of it.

    step: optimizer steps done, skipped ones included. epoch, step_in_epoch: where the next batch is. best_top1,
    best_loss, best_step: of the best checkpoint, by validation or, without one, by an epoch's mean training loss.
    loss_sum, loss_steps: of this epoch so far. skipped: steps in a row that overflowed. validated: the step of the last
    validation.
    """

    step: int = 0
    epoch: int = 0
    step_in_epoch: int = 0
    best_top1: float | None = None
    best_loss: float | None = None
    best_step: int | None = None
    loss_sum: float = 0.0
    loss_steps: int = 0
    skipped: int = 0
    validated: int | None = None

    def next_epoch(self) -> None:
        """Go to the first batch of the next epoch."""
        self.epoch += 1
        self.step_in_epoch = self.loss_steps = 0
        self.loss_sum = 0.0

    def better(self, *, top1: float | None = None, loss: float | None = None) -> bool:
        """Whether these numbers are the best so far; if so, they are kept with the step. NaN is never the best."""
        if top1 is not None:
            best = top1 == top1 and (self.best_top1 is None or top1 > self.best_top1)
            self.best_top1 = top1 if best else self.best_top1
        else:
            best = loss is not None and loss == loss and (self.best_loss is None or loss < self.best_loss)
            self.best_loss = loss if best else self.best_loss
        if best:
            self.best_step = self.step
        return best

    def record(self) -> dict[str, Any]:
        """The position as stored in a checkpoint; JSON gives floats back to the bit."""
        return asdict(self)

    @classmethod
    def of(cls, path: Path, run: Mapping[str, Any]) -> Progress:
        """The position from record()'s values; raises BadCheckpoint where these are damaged."""
        found: dict[str, Any] = {field.name: run.get(field.name) for field in fields(cls)}
        wholes = ("step", "epoch", "step_in_epoch", "loss_steps", "skipped")
        for name, value in found.items():
            kinds = (int,) if name in wholes else (int, float) if name == "loss_sum" else (int, float, type(None))
            if type(value) not in kinds or (name in wholes and value < 0):
                raise BadCheckpoint(f"{path} is damaged: it says that {name} is {quoted(value)}")
        return cls(**found)


@dataclass(frozen=True)
class Facts:
    """What stays the same over a run, and the classes of its net, in label order."""

    recipe: Recipe
    seed: int
    images: int
    steps_per_epoch: int
    processes: int
    classes: tuple[str, ...]
    mode: str
    target: str
    versions: Mapping[str, str]
    source_digest: str | None = None  # of the source file that the net was made from

    def record(self) -> dict[str, Any]:
        """The facts as stored in a checkpoint."""
        return {
            "recipe": self.recipe.model_dump(mode="json"),
            "recipe_digest": self.recipe.digest,
            "seed": self.seed,
            "images": self.images,
            "steps_per_epoch": self.steps_per_epoch,
            "processes": self.processes,
            "classes": list(self.classes),
            "mode": self.mode,
            "target": self.target,
            "versions": dict(self.versions),
            **({} if self.source_digest is None else {DIGEST: self.source_digest}),
        }


def check_resumable(path: Path, run: Mapping[str, Any], now: Facts) -> list[str]:
    """Raise BadInput where a run cannot continue exactly from this checkpoint; returns what may change its last bits.

    The recipe's `train` section may have changed, such as the number of epochs.
    """
    new = "or start a new run with another --out"
    if run.get("recipe_digest") != now.recipe.digest:
        changed = "; ".join(_changes(run.get("recipe"), now.recipe))
        raise BadInput(f"{path} is from another recipe ({changed or 'another version of it'}): set it back, {new}")
    data = run["recipe"]["data"] if _has_data(run.get("recipe")) else {}
    for name in ORDER_OPTIONS:
        if data.get(name) != getattr(now.recipe.data, name):
            was, wanted = data.get(name), getattr(now.recipe.data, name)
            raise BadInput(f"{path}: data.{name} was {was} and is now {wanted}: set it back, {new}")
    words = {
        "seed": "has the seed",
        "images": "was trained on this many images:",
        "processes": "is from a run with this many processes:",
        "steps_per_epoch": "is from a run with this many steps per epoch:",
    }
    for name, text in words.items():
        if run.get(name) != getattr(now, name):
            raise BadInput(f"{path} {text} {run.get(name)}, and now it is {getattr(now, name)}: set it back, {new}")
    if run.get("classes") != list(now.classes):
        raise BadInput(f"{path} was trained on other classes than {now.recipe.data.source} has: set it back, {new}")
    notes = [
        f"{name} was {run.get(name)} and is now {getattr(now, name)}"
        for name in ("mode", "target", "versions")
        if run.get(name) != getattr(now, name)
    ]
    return [f"{note}: the last bits of the weights may differ from an uninterrupted run's" for note in notes]


def _has_data(recipe: Any) -> bool:
    return isinstance(recipe, dict) and isinstance(recipe.get("data"), dict)


def _changes(old: Any, new: Recipe) -> list[str]:
    """The first three keys, dotted, by which the recipes' steps differ."""
    tree = new.model_dump(mode="json", exclude=OUTSIDE_THE_STEP)
    found = [
        f"{'.'.join(place)} was {quoted(was)} and is now {quoted(wanted)}"
        for place, was, wanted in _differences(old, tree, ())
        if ".".join(place) not in OUTSIDE_DATA and place != ("model", "checkpoint")
    ]
    return found[:3]


def _differences(old: Any, new: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*new, *(key for key in old if key not in new and place)]:
            if key in old or place:
                yield from _differences(old.get(key), new.get(key), (*place, key))
    elif old != new:
        yield place, old, new
