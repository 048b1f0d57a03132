"""The verbs of hypotheses on norms: other statistics, other dimensions, another place for eps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import nn

from .torch_module_verbs import Trial, Values, Verb, instead


def biased_variance(module: nn.Module, values: Values) -> Iterator[Trial]:
    """The running variance moves towards the biased variance of the batch instead of the unbiased one."""

    def apply(m: nn.Module) -> None:
        original = m.forward

        def forward(x: torch.Tensor) -> torch.Tensor:
            before = m.running_var.detach().clone()
            y: torch.Tensor = original(x)
            if m.training:
                n, kept = x.numel() / x.shape[1], 1.0 - (m.momentum or 0.0)
                with torch.no_grad():
                    m.running_var.copy_(kept * before + (m.running_var - kept * before) * (n - 1) / n)
            return y

        instead(m, forward)

    yield Trial("the biased variance of the batch in running_var", apply)


def unbiased_norm(module: nn.Module, values: Values) -> Iterator[Trial]:
    """The batch is normalised by the unbiased variance instead of the biased one."""

    def apply(m: nn.Module) -> None:
        original = m.forward

        def forward(x: torch.Tensor) -> torch.Tensor:
            y = original(x)
            n = x.numel() / x.shape[1]
            dims = [d for d in range(x.dim()) if d != 1]
            mean, var = x.mean(dims, keepdim=True), x.var(dims, correction=0, keepdim=True)
            shape = [1, -1] + [1] * (x.dim() - 2)
            z = (x - mean) / torch.sqrt(var * n / (n - 1) + m.eps)
            return z * m.weight.view(shape) + m.bias.view(shape) if m.affine and m.training else y

        instead(m, forward)

    yield Trial("the unbiased variance of the batch in the normalisation", apply)


def still_buffers(module: nn.Module, values: Values) -> Iterator[Trial]:
    """Batch statistics, but running statistics that do not move."""
    yield Trial("running statistics that do not move", lambda m: setattr(m, "momentum", 0.0), ("momentum",))


def other_axes(module: nn.Module, values: Values) -> Iterator[Trial]:
    """A LayerNorm over other dimensions than its last ones: over all but the batch, or over the first of its shape."""
    rank = len(module.normalized_shape)

    def over(pick: Callable[[torch.Tensor], list[int]]) -> Callable[[nn.Module], None]:
        def apply(m: nn.Module) -> None:
            def forward(x: torch.Tensor) -> torch.Tensor:
                dims = pick(x)
                mean, var = x.mean(dims, keepdim=True), x.var(dims, correction=0, keepdim=True)
                y = (x - mean) / torch.sqrt(var + m.eps)
                y = y if m.weight is None else y * m.weight
                return y if getattr(m, "bias", None) is None else y + m.bias

            instead(m, forward)

        return apply

    yield Trial("normalisation over all but the first dimension", over(lambda x: list(range(1, x.dim()))))
    yield Trial("normalisation over the second dimension", over(lambda x: [1]))
    yield Trial("normalisation without the mean (RMSNorm)", _rms(rank))
    if rank > 1:
        yield Trial("normalisation over the last dimension alone", over(lambda x: [x.dim() - 1]))


def _rms(rank: int) -> Callable[[nn.Module], None]:
    def apply(m: nn.Module) -> None:
        def forward(x: torch.Tensor) -> torch.Tensor:
            dims = list(range(x.dim() - rank, x.dim()))
            y = x * torch.rsqrt(x.square().mean(dims, keepdim=True) + m.eps)
            y = y if m.weight is None else y * m.weight
            return y if getattr(m, "bias", None) is None else y + m.bias

        instead(m, forward)

    return apply


def eps_outside(module: nn.Module, values: Values) -> Iterator[Trial]:
    """A norm that adds eps to the standard deviation instead of the variance."""

    def apply(m: nn.Module) -> None:
        def forward(x: torch.Tensor) -> torch.Tensor:
            norm = getattr(m, "normalized_shape", None)
            dims = [d for d in range(x.dim()) if d != 1] if norm is None else list(range(x.dim() - len(norm), x.dim()))
            mean, var = x.mean(dims, keepdim=True), x.var(dims, correction=0, keepdim=True)
            y = (x - mean) / (torch.sqrt(var) + m.eps)
            shape = [1, -1] + [1] * (x.dim() - 2) if norm is None else list(norm)
            y = y if m.weight is None else y * m.weight.view(shape)
            return y if getattr(m, "bias", None) is None else y + m.bias.view(shape)

        instead(m, forward)

    yield Trial("eps added to the standard deviation, not to the variance", apply, ("eps",))


VERBS: dict[str, Verb] = {
    "biased_variance": biased_variance,
    "unbiased_norm": unbiased_norm,
    "still_buffers": still_buffers,
    "other_axes": other_axes,
    "eps_outside": eps_outside,
}
