"""`msmigrate inspect`: what a file holds, read from its structure; no tensor is loaded and nothing is imported. And the
file of MindSpore source that it says its model was made from.

`msmigrate train` notes the file of a recipe's `model.source` with its digest. Importing it would run whatever the file
contains now, and a checkpoint may come from anyone, so it is imported only where the user names the file and its
content: `--trust-source FILE@sha256:…`. What runs then is a copy of exactly these bytes, in a folder with no other
files.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import Ambiguous, BadCheckpoint, BadInput, MsmigrateError
from ...input_files import json_value, read_bytes
from . import plan as plans
from . import tensor_names
from .formats.byte_copy import compare_checksums
from .formats.pth_weights import TorchSource, is_module, read
from .formats.reader import RUN, Checkpoint, Source, Tensor, product, read_at
from .formats.registry import open_source
from .plan import AFFINE_NORM, BATCH_NORM, BATCH_NORM_3D, EMBEDDING, LINEAR, OWN, PRELU, RMS_NORM, Family

UNKNOWN = "no layer known"
LARGEST_NOTE = 1 << 20  # bytes of a training run's note about itself
MOST = 20  # state dicts that are looked at in one file
# In MindSpore the class of a Linear has another name; of the other families the tensors have other names.
CELLS = {LINEAR: "Dense"}
OTHER_NAMES = {BATCH_NORM, BATCH_NORM_3D, AFFINE_NORM, EMBEDDING, PRELU, RMS_NORM}


class Sum(NamedTuple):
    """How much some tensors are: how many, their elements and bytes."""

    tensors: int
    elements: int
    nbytes: int


class Group(NamedTuple):
    """The tensors under one top-level module, and the classes that its modules seem to be of, each with their number.

    `name` is empty for the tensors that stand in no module.
    """

    name: str
    sum: Sum
    classes: Mapping[str, int]


class Facts(NamedTuple):
    """What a file holds.

    size: bytes of all its files, `files` their number. checkpoint: None where two state dicts could be meant; then
    `ambiguous` says so and `nested` has them, key -> how much. classes: tensor name -> class of the tensor's module, as
    the file or the structure tells. dtypes: how much of each. tied: groups of names of the same bytes, seen in the same
    way; in `total` and `dtypes` such bytes count once. compared: bytes whose checksums are right, where they were
    compared. source: the file of source that the checkpoint's training run names.
    """

    path: str
    format: str
    size: int
    files: int
    checkpoint: Checkpoint | None
    classes: Mapping[str, str] = {}
    total: Sum = Sum(0, 0, 0)
    dtypes: Mapping[str, Sum] = {}
    groups: Sequence[Group] = ()
    tied: Sequence[Sequence[str]] = ()
    nested: Mapping[str, Sum] = {}
    ambiguous: str | None = None
    compared: int | None = None
    source: StoredSource | None = None


def inspect_file(path: str | Path, key: str | None = None, *, crc: bool = False) -> Facts:
    """What the file at `path` holds, under `key` where more than one state dict is in it.

    Where there are several state dicts, and no key or an unknown one is given, the facts list them instead. crc: read
    all of the file and compare its checksums. Raises BadCheckpoint, Unsupported for a file that cannot be read, and
    BadCheckpoint for one that is damaged.
    """
    with open_source(str(path)) as source:
        size = sum(os.fstat(file.fileno()).st_size for file in source.files)
        try:
            checkpoint = source.checkpoint(key)
        except (Ambiguous, BadCheckpoint) as error:
            nested = _nested(source) if isinstance(error, Ambiguous) or key is not None else {}
            if len(nested) < 2:
                raise
            called = source.format if isinstance(source, TorchSource) else ""
            return Facts(str(path), called, size, len(source.files), None, nested=nested, ambiguous=str(error))
        compared = compare_checksums(source, lambda: checkpoint.tensors, whole=True) if crc else None
        found = _facts(str(path), size, len(source.files), checkpoint)
        return found._replace(compared=compared, source=_named(source, checkpoint))


def _named(source: Source, checkpoint: Checkpoint) -> StoredSource | None:
    """The file of source that the note of a training run names; None where there is no readable note."""
    noted = (checkpoint.training or {}).get(RUN)
    if not isinstance(noted, Tensor) or noted.nbytes > LARGEST_NOTE:
        return None
    content = b"".join(read_at(source.files[span.file], source.path, span.offset, span.length) for span in noted.spans)
    try:
        run = json_value(content)
    except ValueError:
        return None
    return stored_source(run) if isinstance(run, dict) else None


def _nested(source: Source) -> dict[str, Sum]:
    """The state dicts under the keys of the file, and how much each is."""
    found: dict[str, Sum] = {}
    if not isinstance(source, TorchSource):
        return found
    loaded = source.load()
    if type(loaded.value) is not dict or loaded.refused:
        return found
    held = loaded.value.items()
    keys = [key for key, value in held if isinstance(key, str) and (type(value) is dict or is_module(value))]
    for key in [key for key in keys if key.isprintable()][:MOST]:
        try:
            found[key] = _sum(read(source, loaded, key).tensors.values())
        except MsmigrateError:
            continue
    return found


def _facts(path: str, size: int, files: int, checkpoint: Checkpoint) -> Facts:
    tensors = checkpoint.tensors
    classes = _classes(checkpoint)
    groups: dict[str, list[str]] = {}
    names: dict[Tensor, list[str]] = {}
    dtypes: dict[str, list[Tensor]] = {}
    for name, tensor in tensors.items():
        top, dot, _ = name.partition(".")
        groups.setdefault(top if dot else "", []).append(name)
        names.setdefault(tensor, []).append(name)
    once = list(names)
    once += [tensor for tensor, held in names.items() if not tensor.nbytes for _ in held[1:]]
    for tensor in once:
        dtypes.setdefault(tensor.dtype, []).append(tensor)
    return Facts(
        path,
        checkpoint.format,
        size,
        files,
        checkpoint,
        classes,
        _sum(once)._replace(tensors=len(tensors)),
        {dtype: _sum(held) for dtype, held in dtypes.items()},
        [Group(top, _sum(map(tensors.__getitem__, held)), _counted(held, classes)) for top, held in groups.items()],
        [held for tensor, held in names.items() if len(held) > 1 and tensor.nbytes],
    )


def _sum(tensors: Iterable[Tensor]) -> Sum:
    held = list(tensors)
    return Sum(len(held), sum(product(tensor.shape) for tensor in held), sum(tensor.nbytes for tensor in held))


def _counted(names: Iterable[str], classes: Mapping[str, str]) -> dict[str, int]:
    """The classes of the modules that these tensors belong to, each with the number of its modules."""
    modules = {plans.split(name)[0]: classes[name] for name in names}
    counts: dict[str, int] = {}
    for label in modules.values():
        counts[label] = counts.get(label, 0) + 1
    return counts


def _classes(checkpoint: Checkpoint) -> dict[str, str]:
    """Tensor -> the class of the module that it belongs to."""
    shapes = {name: tensor.shape for name, tensor in checkpoint.tensors.items()}
    ways = tensor_names.by_structure(shapes) if checkpoint.framework == "mindspore" else {}
    owners = checkpoint.owners or {}
    found: dict[str, str] = {}
    for module in plans.modules({**shapes, **dict.fromkeys(checkpoint.refused, ())}):
        for leaf in module.leaves:
            name = f"{module.path}.{leaf}" if module.path else leaf
            way = ways.get(name)
            if module.path in owners:
                found[name] = owners[module.path][0].removeprefix("torch.nn.")
            elif isinstance(way, MsmigrateError):
                choices = str(way).removeprefix("it may belong to ")
                found[name] = choices.replace(", or to ", " or ").replace(", or be ", " or ")
            elif way is not None and way.owner != OWN:
                found[name] = way.owner
            else:
                found[name] = _label(module.families, checkpoint.framework)
    return found


def _label(families: Sequence[Family] | None, framework: str) -> str:
    """The names of the families, or what stands for them where there are none."""
    if families is None:
        return OWN
    if framework == "mindspore":
        labels = [CELLS.get(family, family.label) for family in families if family not in OTHER_NAMES]
        return " or ".join(labels) or OWN
    return " or ".join(family.label for family in families) or UNKNOWN


DIGEST = "source_sha256"  # the key under which `train` notes it, next to its recipe


LARGEST = 4 << 20  # bytes; convert-model's files of the largest models have 60 KB


OPTION = "--trust-source"


_TRUST = re.compile(r"(?P<file>.+)@sha256:(?P<digest>[0-9a-fA-F]{64})", re.DOTALL)


class StoredSource(NamedTuple):
    """A file of source that a checkpoint names: its path, its digest when the net was trained (None: not noted) and
    now (None: there is no such file here that could be source)."""

    path: str
    then: str | None
    now: str | None

    @property
    def trusting(self) -> tuple[str, str] | None:
        """The option and its value by which a user trusts the file as it is now; None where there is no such value."""
        return None if self.now is None or not self.path.isprintable() else (OPTION, f"{self.path}@sha256:{self.now}")

    @property
    def words(self) -> str:
        """The state of the file, as the end of a sentence about it."""
        if self.now is None:
            return "which is not here" if self.then is None else f"which is not here (it was sha256:{self.then})"
        if self.then is None:
            return "whose content at training was not noted"
        return "as it was at training" if self.then == self.now else "which has changed since training"


def stored_source(run: Mapping[str, Any]) -> StoredSource | None:
    """The source that a training run's note names, as it is now; None where it names none. The source is not run."""
    recipe = run.get("recipe")
    model = recipe.get("model") if isinstance(recipe, dict) else None
    path = model.get("source") if isinstance(model, dict) else None
    if not isinstance(path, str):
        return None
    then = run.get(DIGEST)
    then = then.lower() if isinstance(then, str) and re.fullmatch(r"[0-9a-fA-F]{64}", then) else None
    content = _content(Path(path)) if path.endswith(".py") else None
    return StoredSource(path, then, None if content is None else hashlib.sha256(content).hexdigest())


def source_digest(file: Path) -> str | None:
    """The SHA-256 of a file of source, in hex; None where it cannot be read."""
    content = _content(file)
    return None if content is None else hashlib.sha256(content).hexdigest()


def trusted(trust: str, folder: Path) -> Path:
    """A copy in `folder` of the file that `FILE@sha256:DIGEST` names, whose content has this digest.

    Raises BadInput where `trust` has another form, the file cannot be read, or its content has another digest.
    """
    parsed = _TRUST.fullmatch(trust)
    if parsed is None:
        raise BadInput(f"{OPTION} {trust}: expected FILE@sha256:DIGEST, as msmigrate inspect shows it")
    file, content = Path(parsed["file"]), _content(Path(parsed["file"]))
    if content is None or file.suffix != ".py":
        raise BadInput(f"{OPTION} {trust}: there is no Python file {file} of at most {LARGEST >> 20} MB")
    digest = hashlib.sha256(content).hexdigest()
    if digest != parsed["digest"].lower():
        raise BadInput(f"{OPTION}: the content of {file} has changed: read it, then name it with sha256:{digest}")
    place = folder / "source"
    place.mkdir()
    copy = place / file.name
    copy.write_bytes(content)
    return copy


def _content(file: Path) -> bytes | None:
    """The content of a regular file that is small enough for source; None for anything else, such as a pipe."""
    try:
        return read_bytes(file, LARGEST)
    except (OSError, ValueError):
        return None
