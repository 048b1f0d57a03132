"""What msmigrate's optimizers for MindSpore share: groups, decay, the state that starts at zero, the step counter."""

from __future__ import annotations

from math import log
from typing import Any

from mindspore import Parameter, Tensor, ops
from mindspore import dtype as mstype
from mindspore.experimental import optim

_negative = ops.Neg()


def log_of(beta: float) -> float:
    """The logarithm of a decay rate; of 0 a number whose exponential is 0."""
    return log(beta) if beta else -1e3


class Optimizer(optim.Optimizer):
    """A base class: zeros for every trained parameter under each name in `slots`, and state_step, how
    many steps have been taken (int32, one for all)."""

    slots: tuple[str, ...] = ()

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(params, defaults)
        for name in self.slots:
            setattr(self, name, self.parameters.clone(prefix=name, init="zeros"))
        self.state_step = Parameter(Tensor(0, mstype.int32), "state_step")
        self.one = Tensor(1, mstype.int32)

    def per_group(self, name: str) -> list[Any]:
        """One option of every group."""
        return [group[name] for group in self.param_groups]

    def given(self, group_id: int, gradients: Any) -> tuple[Any, Any]:
        """The weights of a group, and the gradients to use: turned round to maximize, with the decay added."""
        group = self.param_groups[group_id]
        start = self.group_start_id[group_id]
        end = self.group_start_id[group_id + 1]
        weights = self.parameters[start:end]
        grads = gradients[start:end]
        if group["maximize"]:
            grads = self.hyper_map(_negative, grads)
        if "decoupled_weight_decay" not in group or not group["decoupled_weight_decay"]:
            grads = self._decay_weight(group["weight_decay"], weights, grads)
        return weights, grads

    def advance(self, group_id: int, gradients: Any) -> bool:
        """Step one group; compiled in PyNative too."""
        raise NotImplementedError

    def construct(self, gradients: Any) -> bool:
        """Take one step; `gradients` is a tuple in the order of the parameters."""
        ops.assign_add(self.state_step, self.one)
        for group_id in range(len(self.param_groups)):
            self.advance(group_id, gradients)
        return True
