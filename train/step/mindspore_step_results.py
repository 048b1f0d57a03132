"""What one training step in MindSpore hands out."""

from __future__ import annotations

from dataclasses import dataclass

from mindspore import Tensor


@dataclass(frozen=True)
class StepResult:
    """What one step computed.

    loss: scalar mean over the micro-batches, unscaled. logits: (N, K). grads: state_dict name -> gradient, unscaled,
    before clipping.
    image_grad: gradient of the loss by the images, (N, C, H, W), or None when it was not asked for.
    finite: whether all gradients were finite (bool scalar), or None where nobody looks.
    """

    loss: Tensor
    logits: Tensor
    grads: dict[str, Tensor]
    image_grad: Tensor | None
    finite: Tensor | None = None


@dataclass(frozen=True)
class Outcome:
    """What the training loop gets of a step: the loss (scalar), the logits (N, K), and whether the gradients were all
    finite (bool scalar), or None where the step does not look. Nothing here has waited for the device."""

    loss: Tensor
    logits: Tensor
    finite: Tensor | None
