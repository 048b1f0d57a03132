"""Losses that people write in place of the recipe's, as torch functions of logits (N, K) and targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F

from ...mappings import table
from ...training.recipe.schema import Recipe
from ...training.step import torch_step

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class LossHypothesis:
    """One thing that a loss may do differently: the fault's id, what it is in words, and the loss."""

    fault: str
    text: str
    loss: Loss
    fix: str = ""


def as_written(recipe: Recipe, **changed: Any) -> Loss:
    """The recipe's loss, with some arguments changed; None takes an argument out."""
    args = {**recipe.loss.args, **changed}
    part = recipe.loss.model_copy(update={"args": {k: v for k, v in args.items() if v is not None}})
    other = recipe.model_copy(update={"loss": part})
    return lambda logits, labels: torch_step.build_loss(other, logits.dtype)(logits, labels)


def with_smoothing(recipe: Recipe, smoothing: float) -> Loss:
    """The recipe's loss with another label smoothing."""
    return as_written(recipe, label_smoothing=smoothing)


def hypotheses(recipe: Recipe, shape: tuple[int, ...], own: Loss | None = None) -> Iterator[LossHypothesis]:
    """What a loss of logits of `shape` (N, K) may do differently; the likelier first. own: the user's loss, where it
    is not the recipe's."""
    name = table.row(recipe.loss.name).short if own is None else ""
    plain = own or as_written(recipe)
    if name == "CrossEntropyLoss":
        yield from _cross_entropy(recipe)
    if own is None:
        yield from _arguments(recipe)
    yield from _functions(plain)
    yield from _fed(plain, shape)
    yield from _scaled(plain, shape)
    if name == "CrossEntropyLoss":
        yield from _otherwise(recipe)
    if name == "BCEWithLogitsLoss":
        yield from _binary(recipe)


def _cross_entropy(recipe: Recipe) -> Iterator[LossHypothesis]:
    smoothing = recipe.loss.args.get("label_smoothing", 0.0)
    if smoothing:
        text = f"the smoothing's mass goes to the K - 1 other classes, {smoothing}/(K - 1) each, not to all K"
        yield LossHypothesis("label-smoothing-k-1", text, _smoothed_over_others(recipe, smoothing))
        text = f"label_smoothing is 0 where the recipe has {smoothing}"
        fix = f"label_smoothing={smoothing}"
        yield LossHypothesis("loss-argument", text, as_written(recipe, label_smoothing=0.0), fix)
    none = as_written(recipe, reduction="none")
    text = "the loss is not reduced, and its gradient is that of the sum"
    yield LossHypothesis("softmaxce-reduction-none", text, none)
    weight = recipe.loss.args.get("weight")
    if weight:
        text = "the weighted losses are divided by the number of samples, not by the sum of their weights"
        mean = lambda x, y: none(x, y).sum() / x.shape[0]  # noqa: E731
        yield LossHypothesis(
            "weight-mean-by-count", text, mean, "nn.CrossEntropyLoss, which divides by the weights' sum"
        )
    if recipe.loss.args.get("ignore_index", -100) != -100:
        text = "ignored samples count in the mean's denominator"
        yield LossHypothesis("ignore-index-mean", text, lambda x, y: none(x, y).sum() / x.shape[0])


def _smoothed_over_others(recipe: Recipe, smoothing: float) -> Loss:
    def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        classes = logits.shape[1]
        log = F.log_softmax(logits, 1)
        if labels.is_floating_point():
            return -(labels * log).sum(1).mean()
        rows = torch.full_like(log, smoothing / (classes - 1))
        rows.scatter_(1, labels.view(-1, 1), 1.0 - smoothing)
        return -(rows * log).sum(1).mean()

    return loss


def _arguments(recipe: Recipe) -> Iterator[LossHypothesis]:
    """Each argument at torch's default, and every reduction."""
    for argument in table.row(recipe.loss.name).arguments:
        name, given = argument.torch, recipe.loss.args.get(argument.torch)
        if not argument.to or argument.required:
            continue
        now = argument.default if given is None else given
        others = ["mean", "sum", "none"] if name == "reduction" else [argument.default]
        for other in others:
            if other == now:
                continue
            text = f"{name} is {other!r} where the recipe has {now!r}"
            yield LossHypothesis("loss-argument", text, as_written(recipe, **{name: other}), f"{name}={now!r}")


def _fed(plain: Loss, shape: tuple[int, ...]) -> Iterator[LossHypothesis]:
    """Other samples, other labels, other logits than it should be given."""
    batch, classes = shape
    for by in (1, -1):
        text = f"the labels are shifted by {by:+d} when the loss gets them"
        yield LossHypothesis("labels-shifted", text, _relabelled(plain, partial(_shifted, by=by, classes=classes)))
    text = "the classes are counted in reverse order"
    yield LossHypothesis("labels-reversed", text, lambda x, y: plain(x.flip(1), y))
    for i in reversed(range(min(batch, 64))):
        keep = [j for j in range(batch) if j != i]
        text = f"sample {i + 1} of {batch} is left out of the loss"
        if keep:
            yield LossHypothesis("sample-left-out", text, partial(_of_some, plain, keep))
    yield LossHypothesis(
        "labels-permuted", "the labels are in reverse order of the samples", lambda x, y: plain(x, y.flip(0))
    )
    for by in (1, -1):
        text = "the labels belong to the neighbouring samples"
        yield LossHypothesis("labels-permuted", text, _relabelled(plain, partial(torch.roll, shifts=by, dims=0)))
    text = "the loss takes the softmax of what is a softmax already"
    yield LossHypothesis("softmax-twice", text, lambda x, y: plain(x.softmax(1), y), "hand the logits over as they are")
    text = "the loss takes the softmax of what is a log-softmax already"
    yield LossHypothesis("softmax-twice", text, lambda x, y: plain(2 * x.log_softmax(1), y))
    text = "the logits reach the loss in half precision"
    yield LossHypothesis("amp-black-list", text, lambda x, y: plain(x + (x.half().to(x.dtype) - x).detach(), y))
    text = "the logits reach the loss in half precision, and their gradient comes back in it"
    yield LossHypothesis("amp-black-list", text, lambda x, y: plain(x.half().to(x.dtype), y))
    yield LossHypothesis("loss-sign", "the loss has the other sign", lambda x, y: -plain(x, y))


def _relabelled(loss: Loss, change: Callable[[torch.Tensor], torch.Tensor]) -> Loss:
    return lambda logits, labels: loss(logits, change(labels))


def _of_some(loss: Loss, keep: list[int], logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return loss(logits[keep], labels[keep])


def _multiplied(loss: Loss, factor: float, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return factor * loss(logits, labels)


def _shifted(labels: torch.Tensor, by: int, classes: int) -> torch.Tensor:
    return labels.roll(by, 1) if labels.is_floating_point() else (labels + by) % classes


def _scaled(plain: Loss, shape: tuple[int, ...]) -> Iterator[LossHypothesis]:
    batch, classes = shape
    factors = {
        "divided by the number of classes as well": 1.0 / classes,
        "multiplied by the number of classes": float(classes),
        "divided by the batch once more": 1.0 / batch,
        "multiplied by the batch": float(batch),
        "halved": 0.5,
        "doubled": 2.0,
        "taken with logarithms of base 2": 1.0 / 0.6931471805599453,
    }
    for text, factor in factors.items():
        yield LossHypothesis("loss-factor", f"the loss is {text}", partial(_multiplied, plain, factor))


def _functions(plain: Loss) -> Iterator[LossHypothesis]:
    """The functions that the loss, whoever wrote it, calls inside: another reduction, another clamp."""
    for name, (fault, usual) in FUNCTIONS.items():
        for reduction in ("none", "mean", "sum"):
            if reduction == usual:
                continue
            text = f"{name} has reduction={reduction!r}"
            yield LossHypothesis(fault, text, partial(_with_function, plain, name, {"reduction": reduction}))
    text = "the logarithm is of p + 1e-12, so that a term costs 27.6 at most, not 100"
    yield LossHypothesis("bce-log-clamp", text, partial(_with_function, plain, "binary_cross_entropy", None))


# functions of torch.nn.functional that losses are made of: the fault of another reduction, and the usual one
FUNCTIONS = {
    "smooth_l1_loss": ("smoothl1-reduction-none", "mean"),
    "kl_div": ("kl-batchmean", "batchmean"),
    "l1_loss": ("vector-loss-sums", "mean"),
    "mse_loss": ("vector-loss-sums", "mean"),
    "huber_loss": ("vector-loss-sums", "mean"),
    "nll_loss": ("vector-loss-sums", "mean"),
    "cross_entropy": ("softmaxce-reduction-none", "mean"),
}


def _with_function(
    loss: Loss, name: str, changed: dict[str, Any] | None, logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """The loss while one function is another: with some arguments changed, or (None) nn.BCELoss's own clamp. Raises
    ValueError where the loss does not call it."""
    real, called = getattr(F, name), []

    def other(*args: Any, **given: Any) -> torch.Tensor:
        called.append(name)
        return _added(real, args[0], args[1]) if changed is None else real(*args[:2], **{**given, **changed})

    with patch.object(F, name, other):
        value = loss(logits, labels)
    if not called:
        raise ValueError(f"the loss does not call {name}")
    return value


def _otherwise(recipe: Recipe) -> Iterator[LossHypothesis]:
    """Another loss altogether."""

    def rows(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y if y.is_floating_point() else F.one_hot(y, x.shape[1]).to(x.dtype)

    makes: dict[str, Loss] = {
        "a binary cross entropy of every class": lambda x, y: F.binary_cross_entropy_with_logits(x, rows(x, y)),
        "the squared distance from one-hot rows": lambda x, y: F.mse_loss(x, rows(x, y)),
        "the negative logit of the class, without log_softmax": lambda x, y: -(rows(x, y) * x).sum(1).mean(),
        "the negative probability of the class, without the logarithm": lambda x, y: (
            -(rows(x, y) * x.softmax(1)).sum(1).mean()
        ),
        "a log-softmax over the batch instead of over the classes": lambda x, y: (
            -(rows(x, y) * x.log_softmax(0)).sum(1).mean()
        ),
        "the squared distance of the probabilities": lambda x, y: F.mse_loss(x.softmax(1), rows(x, y)),
    }
    for text, loss in makes.items():
        yield LossHypothesis("loss-other", f"the loss is {text}", loss, "nn.CrossEntropyLoss on the logits")


def _binary(recipe: Recipe) -> Iterator[LossHypothesis]:
    makes: dict[str, tuple[str, Loss]] = {
        "bce-log-clamp": (
            "the loss is nn.BCELoss of the sigmoid, whose logarithm is of p + 1e-12",
            lambda x, y: _added(F.binary_cross_entropy, x.sigmoid(), y),
        ),
        "loss-other": ("the loss is a cross entropy over the classes", lambda x, y: F.cross_entropy(x, y)),
        "sigmoid-twice": (
            "the loss takes the sigmoid of what is a sigmoid already",
            lambda x, y: as_written(recipe)(x.sigmoid(), y),
        ),
    }
    for fault, (text, loss) in makes.items():
        yield LossHypothesis(fault, text, loss)


def _added(real: Loss, p: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """MindSpore's binary cross entropy: 1e-12 inside the logarithm, and torch's gradient."""
    torchs = real(p, targets)
    least = 1e-12
    value = -(targets * (p + least).log() + (1 - targets) * (1 - p + least).log()).mean()
    return torchs + (value - torchs).detach()
