"""The weights of a torch checkpoint, into a torch model."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from ..errors import BadCheckpoint
from ..migrate.formats.source import check_before_torch


def load_checkpoint(model: nn.Module, path: Path) -> None:
    """Load a state dict, also under state_dict/model and with DDP's prefix; no code in the file is executed.

    Raises BadCheckpoint for a file that cannot be read, is damaged or hostile, or is of another model.
    """
    check_before_torch(str(path))
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
        for key in ("state_dict", "model"):
            found = found.get(key, found)
        state = OrderedDict((name.removeprefix("module."), tensor) for name, tensor in found.items())
        versions = getattr(found, "_metadata", None) or getattr(model.state_dict(), "_metadata", {})
        versions = {re.sub(r"^module(\.|$)", "", name): each for name, each in versions.items()}
        state.update(_counters(model, state))
        vars(state)["_metadata"] = versions  # some models, as MNASNet, ask which version of them was saved
        model.load_state_dict(state)
    except Exception as error:
        raise BadCheckpoint(f"{path}: does not load into the model: {' '.join(str(error).split())[:400]}") from error


def _counters(model: nn.Module, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The norms' counters of batches that a file has not, as the model has them.

    MindSpore holds none, so a checkpoint of `msmigrate train` comes back without them, and so did torch's before 0.4.1.
    Only a norm with momentum None, whose average is cumulative, computes with its counter: that one stays missing.
    """
    found = {}
    for path, module in model.named_modules():
        counter = getattr(module, "num_batches_tracked", None)
        name = f"{path}.num_batches_tracked".lstrip(".")
        if isinstance(counter, torch.Tensor) and name not in state and module.momentum is not None:
            found[name] = counter
    return found
