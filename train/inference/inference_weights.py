"""The weights in a checkpoint, held against the net that they are for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from ...errors import BadCheckpoint
from ...input_files import open_regular
from ...migrate.formats.mindspore_ckpt import begins
from ..models.model_names import num_classes
from ..recipe import Recipe
from ..run.checkpoints import BESIDE, EMA

HEAD = 512  # bytes that are looked at

Shape = tuple[int, ...]


def is_foreign(path: Path) -> bool:
    """Whether a file is to be converted first: a zip, a pickle or safetensors by its first bytes, or not called .ckpt.

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
    """The tensors that a net wants, under its own names, when they are exactly what the checkpoint holds of it.

    wanted: name in the file -> (shape, dtype); with names below 'ema.' those are taken and the weights left. recipe:
    what the net was made from. Raises BadCheckpoint where a tensor is missing or left over, has
    another shape or dtype, or holds a number that is not finite.
    """
    model = recipe.model.name
    classes = num_classes(model, recipe.model.args)
    averages = bool(wanted) and all(name.startswith(EMA) for name in wanted)
    held = {n: array for n, array in tensors.items() if (n.startswith(EMA) if averages else not n.startswith(BESIDE))}
    missing = [name for name in wanted if name not in held]
    extra = [name for name in held if name not in wanted]
    if missing or extra:
        parts = [f"it lacks {_named(missing, extra)}"] if missing else []
        parts += [f"the net has no {_few(extra)}"] if extra else []
        raise BadCheckpoint(f"{path} does not hold the weights of the recipe's {model}: {'; '.join(parts)}")
    for name, (shape, dtype) in wanted.items():
        found = held[name]
        if found.shape != shape:
            last = name in list(wanted)[-2:]  # weight and bias of the classifier, which goes by the classes
            raise BadCheckpoint(_other_shape(path, name, found.shape, shape, classes if last else 0, model))
        if found.dtype != dtype:
            raise BadCheckpoint(f"{path}: {name} is {found.dtype} and the recipe's {model} wants {dtype}")
        if not np.isfinite(found).all():
            raise BadCheckpoint(f"{path}: {name} holds numbers that are not finite; its training has diverged")
    return {name: held[name] for name in wanted}


def _other_shape(path: str, name: str, found: Shape, wanted: Shape, classes: int, model: str) -> str:
    if len(found) == len(wanted) and wanted[:1] == (classes,) and found[1:] == wanted[1:]:
        return (
            f"{path} tells {found[0]} classes apart ({name} is {_size(found)}) and the recipe's {model} {classes}: "
            f"set model.args.num_classes to {found[0]}"
        )
    return f"{path}: {name} is {_size(found)} and the recipe's {model} wants {_size(wanted)}"


def _size(shape: Shape) -> str:
    return " × ".join(map(str, shape)) or "a single number"


def _named(missing: list[str], extra: Iterable[str]) -> str:
    """The first missing names, the very first with the closest name that is there instead."""
    near = difflib.get_close_matches(missing[0], list(extra), n=1, cutoff=0.5)
    first = f"{missing[0]} (it has {near[0]})" if near else missing[0]
    return ", ".join([first, *missing[1:3]]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
