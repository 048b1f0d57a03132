"""Torch's model with what MindSpore's net lacks taken out of it, so that what else is wrong is looked for beside it."""

from __future__ import annotations

import torch
from torch import nn

from ...training.step.parameter_groups import is_norm
from ..align.alignment import Alignment, Lack, Unlike
from ..trace import Trace

STATISTICS = ("running_mean", "running_var")


def adapt(model: nn.Module, alignment: Alignment, mindspore: Trace) -> list[Unlike]:
    """Give the model, in place, what MindSpore's net has: no shift where that has none, nothing that trains where that
    is frozen, and a parameter of its own with its values. What cannot be given is returned."""
    return [each for each in alignment.unlike if not _given(model, each, mindspore)]


def _given(model: nn.Module, each: Unlike, mindspore: Trace) -> bool:
    path, _, own = each.name.rpartition(".")
    try:
        module = model.get_submodule(path)
    except AttributeError:
        return False
    held = getattr(module, own, None)
    if each.module or (held is not None and not isinstance(held, torch.Tensor)):
        return False
    if each.lack is Lack.EXTRA:
        known = own in module._parameters or own in module._buffers
        return held is None and known and _with_its_own(module, own, each.name, mindspore)
    if each.lack is Lack.MISSING and own in STATISTICS and own in module._buffers:
        setattr(module, own, None)
        module.track_running_stats = False
        return True
    if not isinstance(held, nn.Parameter):
        return False
    if each.lack is Lack.UNSHARED:
        module.register_parameter(own, nn.Parameter(held.detach().clone()))
        return True
    scale = own == "weight" and is_norm(type(module).__name__)
    if each.lack is Lack.MISSING and (scale or "bias" in own):
        held.data.fill_(1.0 if scale else 0.0)
        held.requires_grad_(False)
        return True
    if each.lack in (Lack.FROZEN, Lack.TRAINS):
        held.requires_grad_(each.lack is Lack.TRAINS)
        return True
    return False


def _with_its_own(module: nn.Module, own: str, name: str, mindspore: Trace) -> bool:
    entry = mindspore.entries.get(("init", "values", name, 0))
    if entry is None or entry.sampled:
        return False
    values = torch.from_numpy(mindspore.array(entry.key).reshape(entry.shape).copy())
    if own in module._buffers:
        setattr(module, own, values)
        module.track_running_stats = True
        return True
    # what it gets of a gradient nobody recorded, for torch's module has none to compare it with
    module.register_parameter(own, nn.Parameter(values, requires_grad=False))
    return True
