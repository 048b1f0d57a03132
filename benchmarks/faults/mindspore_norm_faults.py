"""Faults in a net's norms, and in the training mode that they need."""

from __future__ import annotations

import types
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from layers_mindspore import InstanceNorm2d
from mindspore import Tensor, nn, ops
from mindspore_injectors import Places, built, cell, forward_of, injector, pick, substituted

# Norms


@injector
def batch_norm(places: Places, which: float = 0.5, **changed: Any) -> Any:
    """One BatchNorm with another eps, torch momentum or use_batch_statistics; momentum 'complement': torch's own."""

    def make(old: Any) -> Any:
        momentum = 1.0 - old.momentum  # of nn.BatchNorm2d: the share that stays
        if "momentum" in changed:
            momentum = 1.0 - momentum if changed["momentum"] == "complement" else 1.0 - changed["momentum"]
        use = changed.get("use_batch_statistics", old.use_batch_statistics)
        eps = changed.get("eps", old.eps)
        return nn.BatchNorm2d(old.num_features, eps=eps, momentum=momentum, use_batch_statistics=use)

    return substituted(places, "BatchNorm2d", make, which)


@injector
def frozen_norm(places: Places) -> Any:
    """The frozen BatchNorm is one like the others."""

    def make(old: Any) -> Any:
        return nn.BatchNorm2d(old.num_features, eps=old.eps, momentum=1.0 - old.momentum)

    return substituted(places, "BatchNorm2d", make, accept=lambda found: found.use_batch_statistics is False)


@injector
def layer_norm(places: Places, eps: float = 1e-7, which: float = 0.5) -> Any:
    """One LayerNorm with another eps."""

    def make(old: Any) -> Any:
        return nn.LayerNorm(old.normalized_shape, epsilon=eps)

    return substituted(places, "LayerNorm", make, which)


@injector
def group_norm(places: Places, eps: float) -> Any:
    """One GroupNorm with another eps."""
    return substituted(places, "GroupNorm", lambda old: nn.GroupNorm(old.num_groups, old.num_channels, eps=eps))


@injector
def instance_norm_affine(places: Places) -> Any:
    """An InstanceNorm with scale and shift that torch's lacks."""
    return substituted(places, "InstanceNorm2d", lambda old: InstanceNorm2d(8, affine=True))


@injector
def l2_normalize(places: Places) -> Any:
    """ops.L2Normalize with its own epsilon."""
    return forward_of(places, "Normalize", lambda self, x: ops.L2Normalize(1, 1e-4)(x * 1e-3))


@injector
def lrn_alpha(places: Places) -> Any:
    """LRN with torch's alpha, which torch divides by the size."""
    return substituted(places, "LRN", lambda old: nn.LRN(1, 1.0, 1e-2, 0.75))


# What is believed to be a fault and is none


@injector
def functional_norm(places: Places) -> Any:
    """BatchNorm by ops.batch_norm, whose momentum is torch's: no fault."""

    def forward(self: Any, x: Tensor) -> Tensor:
        state = (self.moving_mean, self.moving_variance, self.gamma, self.beta)
        return ops.batch_norm(x, *state, self.training, self.momentum, self.eps)

    return forward_of(places, "BatchNorm2d", forward)


# Training mode


@injector
def not_training(places: Places, kind: str) -> Any:
    """A Cell that set_train does not reach: it came in later."""

    def change(net: Any) -> None:
        path = pick(net, kind)
        found = cell(net, path)
        found.set_train(False)
        found.add_flags = types.MethodType(lambda self, **flags: self, found)
        places.append(path)

    return built(change)


@injector
def set_train_forgotten(places: Places) -> Any:
    """A step in evaluation mode, as a Cell is born."""
    real = nn.Cell.set_train

    def change(net: Any) -> None:
        places.extend(p for p, each in net.cells_and_names() if isinstance(each, (nn.BatchNorm2d, nn.Dropout)))
        places.append("(model)")

    stack = ExitStack()
    stack.enter_context(built(change))
    stack.enter_context(patch.object(nn.Cell, "set_train", lambda self, mode=True: real(self, False)))
    return stack
