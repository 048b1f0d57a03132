"""Optimizers that MindSpore 2.10 does not have exactly as torch does, composed from those it has."""

from __future__ import annotations

from typing import Any

from mindspore import ops
from mindspore.experimental.optim import AdamW


class Adam(AdamW):
    """torch.optim.Adam: L2 decay added to the gradient, eps added to the bias-corrected root.

    MindSpore's own Adam adds eps before the bias correction, which makes it 31 times larger in the first step; its
    AdamW adds it after, as torch does. So this is AdamW run on gradient + weight_decay·parameter, without decay of
    its own. Takes the arguments of torch's Adam, parameter groups included; state: exp_avg, exp_avg_sq,
    max_exp_avg_sq (one parameter for each trained one, in their order) and state_step (int32).
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)

    def construct(self, gradients: Any) -> bool:
        """Take one step; `gradients` is a tuple in the order of the parameters."""
        self.assignadd(self.state_step, self.increase_tensor)
        for group_id, group in enumerate(self.param_groups):
            beta1, beta2 = group["betas"]
            start = self.group_start_id[group_id]
            end = self.group_start_id[group_id + 1]
            grads = tuple(ops.neg(grad) if group["maximize"] else grad for grad in gradients[start:end])
            grads = self._decay_weight(group["weight_decay"], self.parameters[start:end], grads)
            self.implementation(
                self.lrs[group_id], 0.0, beta1, beta2, group["amsgrad"], group["eps"], grads, start, end
            )
        return True
