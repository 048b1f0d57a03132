"""Why the loss differs: the recipe's loss under every change that is known, on the given logits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from ...training.recipe.schema import Recipe
from ..compare import Traces
from ..record import injected_values
from ..result import Cause
from ..verdict import EPS32, FLOOR_ULPS, Measure, Verdict
from .context import Context
from .evidence import Trial, attempt, cause, failed, pattern, weigh
from .torch_loss_verbs import Loss, LossHypothesis, as_written, hypotheses, with_smoothing

PART = "given logits"
FLOOR = 2 * FLOOR_ULPS * EPS32


@dataclass(frozen=True)
class Explained:
    """The loss that reproduces MindSpore's on given logits, and its causes; the recipe's own where that does."""

    loss: Loss
    causes: tuple[Cause, ...] = ()


def explain(context: Context) -> list[Cause]:
    """The causes of what failed in stage loss, logits excepted."""
    wrong = failed(context.findings, "loss")
    if not wrong:
        return []
    found = explained(context)
    return list(found.causes) or _of_the_step(context, found.loss)


def explained(context: Context) -> Explained:
    """Look for the loss that MindSpore computes on the given logits."""
    recipe, traces = context.recipe, context.traces
    own = context.paired.given.loss if context.paired is not None else None
    plain: Loss = own or as_written(recipe)
    if not failed(context.findings, "loss", PART):
        return Explained(plain)
    labels = context.inputs.labels[0]
    shape = context.inputs.logits or (len(labels), context.inputs.classes)
    if len(shape) != 2:
        return Explained(plain)
    logits = injected_values.logits(*shape)
    before = _measures(traces, plain, logits, labels) or []
    worst = max((m.ratio for m in before), default=None)
    for one in hypotheses(recipe, logits.shape, own):
        found = _measures(traces, one.loss, logits, labels)
        if found and all(m.verdict is not Verdict.FAIL for m in found):
            return Explained(one.loss, (_cause(recipe, one, max(m.ratio for m in found), worst),))
    fitted = None if own is not None else _smoothing(recipe, traces, logits, labels, worst)
    if fitted is not None:
        return fitted
    text = "nothing known reproduces the loss of given logits"
    evidence = _numbers(traces, plain, logits, labels)
    return Explained(plain, (cause("loss", recipe.loss.name, None, text, evidence, None, worst),))


def _cause(recipe: Recipe, one: LossHypothesis, ratio: float, before: float | None) -> Cause:
    as_it_is = "another shape" if before is None else f"{before:.3g} times"
    evidence = f"value and gradient of the given logits: {ratio:.2g} times the noise; by the recipe {as_it_is}"
    return cause("loss", recipe.loss.name, one.fault, one.text, evidence, ratio, before, one.fix)


def value_and_gradient(
    loss: Loss, logits: np.ndarray, labels: np.ndarray, dtype: torch.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """The loss of logits (N, K) with labels (N,) or (N, K), and its gradient; a vector's gradient is its sum's."""
    x = torch.from_numpy(logits).to(dtype).requires_grad_()
    y = torch.from_numpy(labels)
    value = loss(x, y.to(dtype) if y.is_floating_point() else y)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    return value.detach().numpy(), gradient.numpy()


def _measures(traces: Traces, loss: Loss, logits: np.ndarray, labels: np.ndarray) -> list[Measure] | None:
    """MindSpore's loss and gradient judged against a hypothesis; None where the shapes differ or torch refuses."""
    runs = [attempt(partial(value_and_gradient, loss, logits, labels, t)) for t in (torch.float64, torch.float32)]
    if runs[0] is None or runs[1] is None:
        return None
    found = []
    for name, exact, single in zip(("loss", "logits.grad"), runs[0], runs[1], strict=True):
        entry = traces.mindspore.entries.get(("loss", PART, name, 0))
        if entry is None or entry.shape != exact.shape or entry.nonfinite:
            return None
        subject = traces.mindspore.array(entry.key)
        trial = Trial(exact.reshape(-1), single.reshape(-1))
        if entry.sampled or subject.size != trial.exact.size:
            return None
        found.append(weigh(subject, trial, FLOOR))
    return found


def _smoothing(
    recipe: Recipe, traces: Traces, logits: np.ndarray, labels: np.ndarray, before: float | None
) -> Explained | None:
    """Another label smoothing: the loss is linear in it, so two evaluations tell which."""
    entry = traces.mindspore.entries.get(("loss", PART, "loss", 0))
    if entry is None or entry.shape != () or recipe.loss.name.rpartition(".")[2] != "CrossEntropyLoss":
        return None
    value = float(traces.mindspore.array(entry.key)[0])
    at = [
        attempt(partial(value_and_gradient, with_smoothing(recipe, s), logits, labels, torch.float64))
        for s in (0.0, 0.5)
    ]
    if at[0] is None or at[1] is None or float(at[1][0]) == float(at[0][0]):
        return None
    smoothing = 0.5 * (value - float(at[0][0])) / (float(at[1][0]) - float(at[0][0]))
    if not 0.0 <= smoothing <= 1.0:
        return None
    loss = with_smoothing(recipe, smoothing)
    found = _measures(traces, loss, logits, labels)
    if not found or any(m.verdict is Verdict.FAIL for m in found):
        return None
    given = recipe.loss.args.get("label_smoothing", 0.0)
    text = f"label_smoothing is {smoothing:.5g} where the recipe has {given}"
    one = LossHypothesis("loss-argument", text, loss, f"label_smoothing={given}")
    return Explained(loss, (_cause(recipe, one, max(m.ratio for m in found), before),))


def _numbers(traces: Traces, plain: Loss, logits: np.ndarray, labels: np.ndarray) -> str:
    value, gradient = value_and_gradient(plain, logits, labels, torch.float64)
    said = []
    for name, exact in (("loss", value), ("logits.grad", gradient)):
        entry = traces.mindspore.entries.get(("loss", PART, name, 0))
        if entry is None or entry.nonfinite:
            said.append(f"{name}: MindSpore has no finite one")
        elif entry.shape != exact.shape or entry.sampled:
            said.append(f"{name}: shape {list(entry.shape)} where torch has {list(exact.shape)}")
        else:
            said.append(f"{name}: {pattern(exact, traces.mindspore.array(entry.key))}")
    return "; ".join(said)


def _of_the_step(context: Context, loss: Loss) -> list[Cause]:
    """The step's loss from MindSpore's own logits, where the loss alone is right: how the micro-batches are joined."""
    recipe, traces = context.recipe, context.traces
    entries = traces.mindspore.entries
    value, logits = entries.get(("loss", "step1", "loss", 0)), entries.get(("loss", "step1", "logits", 0))
    if value is None or logits is None or value.shape or logits.sampled or value.nonfinite or logits.nonfinite:
        return []
    x = traces.mindspore.array(logits.key).reshape(logits.shape)
    labels = context.inputs.labels[0]
    if len(labels) != len(x):
        return []
    subject = traces.mindspore.array(value.key)
    parts = recipe.accumulate

    def judged(factor: float) -> Measure:
        means = [_joined(loss, x, labels, parts, dtype) * factor for dtype in (torch.float64, torch.float32)]
        return weigh(subject, Trial(means[0], means[1]), FLOOR)

    usual = judged(1.0)
    if usual.verdict is not Verdict.FAIL:
        return []
    tries: list[tuple[str, str, float]] = [
        ("accumulate-sum", f"the losses of the {parts} micro-batches are summed", float(parts)),
        ("loss-factor", f"the loss is divided by the {parts} micro-batches once more", 1.0 / parts),
    ]
    for fault, text, factor in tries if parts > 1 else []:
        found = judged(factor)
        if found.verdict is not Verdict.FAIL:
            evidence = (
                f"from MindSpore's own logits: {found.ratio:.2g} times the noise, by the recipe {usual.ratio:.3g}"
            )
            return [cause("loss", "the step's loss", fault, text, evidence, found.ratio, usual.ratio)]
    expected = float(_joined(loss, x, labels, parts, torch.float64)[0])
    told = f"MindSpore {float(subject[0]):.7g}, torch from MindSpore's logits {expected:.7g}"
    text = "the step's loss is not that of its own logits and labels, though the loss alone is right"
    return [cause("loss", "the step's loss", None, text, told, None, usual.ratio)]


def _joined(loss: Loss, logits: np.ndarray, labels: np.ndarray, parts: int, dtype: torch.dtype) -> np.ndarray:
    chunks: list[Any] = list(zip(np.split(logits, parts), np.split(labels, parts), strict=True))
    values = [value_and_gradient(loss, x, y, dtype)[0].sum() for x, y in chunks]
    return np.asarray([np.mean(values)])
