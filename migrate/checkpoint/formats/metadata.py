"""What a file holds beside the net's tensors: the note for the way back, the names of the training state.

    names     torch's name of a tensor -> its new one, where the tensor alone does not tell the way back
    shapes    torch's name -> its shape there, where the new one differs
    aliases   name -> the name of the tensor whose bytes it shares (tied weights), of which one is stored
    counters  name -> the integer that was dropped, since MindSpore has no place for it (num_batches_tracked)

It is JSON: in a `.ckpt` in a field that MindSpore passes over, in safetensors under `msmigrate` in the metadata. It
comes from a file, so it is believed only as far as it fits the tensors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ....errors import BadCheckpoint
from ....input_files import json_value
from .reader import MAX_DIM, MAX_RANK, Tensor, check_name

OURS = "msmigrate."  # no net has a parameter of this name
BESIDE = {OURS: "of the training run", "optimizer.": "of the optimizer's state", "ema.": "of the moving average"}


def beside_the_net(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those that are not the net's; none in a checkpoint that no training run of ours has written.

    A net of somebody else's may well have an `optimizer.weight`.
    """
    if not any(name.startswith(OURS) for name in tensors):
        return {}
    return {name: tensor for name, tensor in tensors.items() if name.startswith(tuple(BESIDE))}


def described(names: Iterable[str]) -> dict[str, str]:
    """What they are, a line for each kind: `optimizer.*` -> `161 tensors of the optimizer's state`."""
    told = list(names)
    counts = {start: sum(name.startswith(start) for name in told) for start in BESIDE}
    return {
        f"{start}*": f"{count} tensor{'s' * (count != 1)} {BESIDE[start]}" for start, count in counts.items() if count
    }


MAX_RECORD = 16 << 20  # bytes
FORMAT = 1
PARTS = {"names": str, "shapes": list, "aliases": str, "counters": int}


def packed(record: Mapping[str, Any]) -> bytes:
    """The record as bytes."""
    return json.dumps({"format": FORMAT, **record}, separators=(",", ":")).encode()


def unpacked(path: str, content: bytes | str) -> dict[str, Any] | None:
    """What packed() was given; None for no bytes. Raises BadCheckpoint when it is damaged or of a later format."""
    if not content:
        return None
    try:
        found = json_value(content)
        if type(found) is not dict or type(found.get("format")) is not int:
            raise ValueError
        for part, kind in PARTS.items():
            named = found.setdefault(part, {})
            if type(named) is not dict or any(type(value) is not kind for value in named.values()):
                raise ValueError
            for name in (*named, *(named.values() if kind is str else ())):
                check_name(path, name)
        for shape in found["shapes"].values():
            if len(shape) > MAX_RANK or any(type(size) is not int or not 0 <= size < MAX_DIM for size in shape):
                raise ValueError
    except (ValueError, BadCheckpoint):
        raise BadCheckpoint(f"{path}: what an earlier conversion noted in it is damaged") from None
    if found["format"] != FORMAT:
        raise BadCheckpoint(f"{path} was written by a later msmigrate; update this one")
    return found


STEPS = "msmigrate.steps"  # optimizer steps taken
EPOCH = "msmigrate.schedule_epoch"  # how often the schedule has moved
GROUPS = "msmigrate.training"  # the parameter groups as torch has them, as JSON, for the way to torch
RUN = "msmigrate.run"  # what `train` notes of its run
