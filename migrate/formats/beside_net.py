"""What stands beside the net in the checkpoints of a training run (train/run/checkpoints.py), told by its names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .contents import Tensor

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
