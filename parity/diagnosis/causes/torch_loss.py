"""Why the loss differs, or only what the model returns in evaluation: other losses, functions behind the last layer."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from ....mappings import table
from ....training.recipe.schema import Recipe
from ....training.step import torch_step
from ...compare_traces import is_model_output
from ...options import MODEL
from ...record.randomness import given_logits
from ...result import Cause
from ..context import Context, key_of
from ..differences import pattern
from ..hypotheses import Hypothesis, Outcome, Prediction, cause, caused, first, judge_prediction, or_none

PART = "given logits"
OWN = "your own loss"
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
LossHypothesis = Hypothesis[Loss]
# functions of torch.nn.functional that losses call: the fault for another reduction, and the usual reduction
FUNCTIONS = {
    "smooth_l1_loss": ("smoothl1-reduction-none", "mean"),
    "kl_div": ("kl-batchmean", "batchmean"),
    "l1_loss": ("vector-loss-sums", "mean"),
    "mse_loss": ("vector-loss-sums", "mean"),
    "huber_loss": ("vector-loss-sums", "mean"),
    "nll_loss": ("vector-loss-sums", "mean"),
    "cross_entropy": ("softmaxce-reduction-none", "mean"),
}
FLOOR = 2e-6  # where torch happens to be nearly exact
NO_SUCH_SHAPE = Outcome({"loss": inf}, frozenset(["loss"]))


@dataclass(frozen=True)
class Explained:
    """The loss that reproduces MindSpore's on given logits (the recipe's own, if that does), and the causes."""

    loss: Loss
    causes: tuple[Cause, ...] = ()


def explain(context: Context) -> list[Cause]:
    """The causes of what failed in stage loss, logits excepted."""
    if not context.failed("loss"):
        return []
    found = explained(context)
    return list(found.causes) or _of_the_step(context, found.loss)


def explained(context: Context) -> Explained:
    """Look for the loss that MindSpore computes on the given logits."""
    recipe, own = context.recipe, context.paired.given.loss if context.paired is not None else None
    own = as_written(recipe) if own is None and recipe.loss.own else own
    plain: Loss = own or as_written(recipe)
    labels = context.inputs.labels[0] if context.failed("loss", PART) else np.zeros(0)
    shape = context.inputs.logits or (len(labels), context.inputs.classes)
    if not labels.size or len(shape) < 2:
        return Explained(plain)
    logits = given_logits(shape, context.inputs.values)
    outcome = partial(_outcome, context, logits, labels)
    usual = outcome(plain)
    tries = itertools.chain(
        hypotheses(recipe, logits.shape, own, labels), _smoothing(context, logits, labels, plain, own)
    )
    found = first(tries, outcome, usual or NO_SUCH_SHAPE)
    worst = usual.worst if usual else None
    place = recipe.loss.name if own is None else OWN
    if found is None:
        text = "nothing known reproduces the loss of given logits"
        evidence = _numbers(context, plain, logits, labels)
        return Explained(plain, (cause("loss", place, None, text, evidence, None, worst),))
    (one,), ratio = found.chain, found.outcome.worst
    as_it_is = "another shape" if worst is None else f"{worst:.3g} times"
    evidence = f"value and gradient of the given logits: {ratio:.2g} times the noise; by {_whose(own)} {as_it_is}"
    known = cause("loss", place, one.fault, one.text, evidence, ratio, worst, one.fix)
    return Explained(one.change, (known,))


def value_and_gradient(
    loss: Loss, logits: np.ndarray, labels: np.ndarray, dtype: torch.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """The loss of logits (N, K) with labels (N,) or (N, K), and its gradient; a vector's gradient is its sum's."""
    x = torch.from_numpy(logits).to(dtype).requires_grad_()
    y = torch.from_numpy(labels)
    value = loss(x, y.to(dtype) if y.is_floating_point() else y)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    return value.detach().numpy(), gradient.numpy()


def _outcome(context: Context, logits: np.ndarray, labels: np.ndarray, loss: Loss) -> Outcome | None:
    """MindSpore's loss and gradient judged against a hypothesis; None where the shapes differ or torch refuses."""
    runs = or_none(lambda: [value_and_gradient(loss, logits, labels, t) for t in (torch.float64, torch.float32)])
    measures = {}
    for name, exact, single in zip(("loss", "logits.grad"), *runs, strict=True) if runs else ():
        entry = context.mindspore.entries.get(("loss", PART, name, 0))
        if entry is None or entry.shape != exact.shape or entry.nonfinite or entry.sampled:
            return None
        prediction = Prediction(exact.reshape(-1), single.reshape(-1))
        measures[name] = judge_prediction(context.mindspore_values(entry.key), prediction)
    return Outcome.of(measures) if measures else None


def _whose(own: Loss | None) -> str:
    return "the recipe" if own is None else "torch's loss"


def _smoothing(
    context: Context, logits: np.ndarray, labels: np.ndarray, plain: Loss, own: Loss | None
) -> Iterator[LossHypothesis]:
    """Another label smoothing: the loss is linear in it, so two evaluations determine it."""
    entry = context.mindspore.entries.get(("loss", PART, "loss", 0))
    given = arguments_seen(plain, logits.shape, labels)
    if entry is None or entry.shape or given is None:
        return
    value = float(context.mindspore_values(entry.key)[0])

    def at(smoothing: float) -> float:
        loss = partial(_with_cross_entropy, plain, {"label_smoothing": smoothing})
        return float(value_and_gradient(loss, logits, labels, torch.float64)[0])

    # if the denominator is zero, None as well
    smoothing = or_none(lambda: 0.5 * (value - at(0.0)) / (at(0.5) - at(0.0)))
    if smoothing is not None and 0.0 <= smoothing <= 1.0:
        now = given["label_smoothing"]
        text = f"label_smoothing is {smoothing:.5g} where {_whose(own)} has {now}"
        changed = partial(_with_cross_entropy, plain, {"label_smoothing": smoothing})
        yield Hypothesis("loss-argument", text, changed, f"nn.CrossEntropyLoss(…, label_smoothing={now})")


def _numbers(context: Context, plain: Loss, logits: np.ndarray, labels: np.ndarray) -> str:
    value, gradient = value_and_gradient(plain, logits, labels, torch.float64)
    texts = []
    for name, exact in (("loss", value), ("logits.grad", gradient)):
        entry = context.mindspore.entries.get(("loss", PART, name, 0))
        if entry is None or entry.nonfinite:
            texts.append(f"{name}: MindSpore has no finite one")
        elif entry.shape != exact.shape or entry.sampled:
            texts.append(f"{name}: shape {list(entry.shape)} where torch has {list(exact.shape)}")
        else:
            texts.append(f"{name}: {pattern(exact, context.mindspore_values(entry.key))}")
    return "; ".join(texts)


def _of_the_step(context: Context, loss: Loss) -> list[Cause]:
    """The step's loss from MindSpore's own logits, where the loss alone is right: how the micro-batches are joined."""
    entries, parts, labels = context.mindspore.entries, context.recipe.accumulate, context.inputs.labels[0]
    value, logits = entries.get(("loss", "step1", "loss", 0)), entries.get(("loss", "step1", "logits", 0))
    alone = entries.get(("loss", PART, "loss", 0))
    if alone is None:  # of several outputs, or of labels of its own: nothing says that the loss is right
        return []
    if value is None or logits is None or value.shape or logits.sampled or value.nonfinite or logits.nonfinite:
        return []
    x, subject = context.mindspore_values(logits.key).reshape(logits.shape), context.mindspore_values(value.key)
    if len(labels) != len(x):
        return []

    def joined(dtype: torch.dtype) -> np.ndarray:
        chunks: list[Any] = list(zip(np.split(x, parts), np.split(labels, parts), strict=True))
        return np.asarray([np.mean([value_and_gradient(loss, a, b, dtype)[0].sum() for a, b in chunks])])

    exact, single = joined(torch.float64), joined(torch.float32)

    def outcome(factor: float) -> Outcome:
        return Outcome.of({"loss": judge_prediction(subject, Prediction(exact * factor, single * factor))})

    usual = outcome(1.0)
    if usual.reproduces:
        return []
    summed = f"the losses of the {parts} micro-batches are summed"
    divided = f"the loss is divided by the {parts} micro-batches once more"
    tries = [Hypothesis("accumulate-sum", summed, float(parts)), Hypothesis("loss-factor", divided, 1.0 / parts)]
    found = first(tries if parts > 1 else [], outcome, usual)
    if found is not None:
        ratio = found.outcome.worst
        evidence = f"from MindSpore's own logits: {ratio:.2g} times the noise, by the recipe {usual.worst:.3g}"
        return [caused("loss", "the step's loss", found, evidence)]
    shown = f"MindSpore {float(subject[0]):.7g}, torch from MindSpore's logits {float(exact[0]):.7g}"
    text = "the step's loss is not that of its own logits and labels, though the loss alone is right"
    return [cause("loss", "the step's loss", None, text, shown, None, usual.worst)]


def as_written(recipe: Recipe, **changed: Any) -> Loss:
    """The recipe's loss, with some arguments changed; None removes an argument."""
    args = {**recipe.loss.args, **changed}
    part = recipe.loss.model_copy(update={"args": {k: v for k, v in args.items() if v is not None}})
    other = recipe.model_copy(update={"loss": part})
    return lambda logits, labels: torch_step.build_loss(other, logits)(logits, labels)


def hypotheses(
    recipe: Recipe, shape: tuple[int, ...], own: Loss | None = None, labels: np.ndarray | None = None
) -> Iterator[LossHypothesis]:
    """What a loss of logits of `shape`, (N, K) or (N, …, K), may do differently; the likelier first. own: the user's
    loss, where it is not the recipe's; labels: its labels, by default (N,)."""
    name = table.row(recipe.loss.name).short if own is None else ""
    plain = own or as_written(recipe)
    given = arguments_seen(plain, shape, labels)
    if given is not None:
        yield from _cross_entropy(plain, given, _whose(own))
    if own is None:
        yield from _arguments(recipe)
    yield from _functions(plain)
    if len(shape) == 2:
        yield from _fed(plain, shape)
        yield from _scaled(plain, shape)
    if name == "CrossEntropyLoss":
        yield from _otherwise()
    if name == "BCEWithLogitsLoss":
        yield from _binary(plain)


def arguments_seen(loss: Loss, shape: tuple[int, ...], labels: np.ndarray | None = None) -> dict[str, Any] | None:
    """The arguments with which a loss, whoever wrote it, calls torch's cross_entropy for logits of `shape` and labels,
    by default (N,); None where it does not call it, or does not take such logits."""
    seen: list[dict[str, Any]] = []

    def keep(*args: Any, **given: Any) -> torch.Tensor:
        seen.append(_bound(args, given))
        return F.cross_entropy(*args, **given)

    targets = torch.zeros(shape[0], dtype=torch.long) if labels is None else torch.from_numpy(labels)
    try:
        _with(loss, "cross_entropy", keep, torch.zeros(shape), targets)
    except Exception:  # the user's code: if it refuses these inputs, it cannot be explained here
        return None
    return seen[0]


def _bound(args: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    bound = inspect.signature(F.cross_entropy).bind(*args, **given)
    bound.apply_defaults()
    return bound.arguments


def _cross_entropy(plain: Loss, given: dict[str, Any], whose: str) -> Iterator[LossHypothesis]:
    """Other arguments of the cross_entropy that a loss calls, and other formulas in its place."""
    smoothing, weight = given["label_smoothing"], given["weight"]
    if smoothing:
        text = f"the smoothing's mass goes to the K - 1 other classes, {smoothing}/(K - 1) each, not to all K"
        changed = partial(_with, plain, "cross_entropy", _smoothed_over_others)
        yield Hypothesis("label-smoothing-k-1", text, changed, f"nn.CrossEntropyLoss(…, label_smoothing={smoothing})")
    usual = {"label_smoothing": 0.0, "weight": None, "ignore_index": -100}
    for name, default in usual.items():
        now = given[name]
        if now is not None and (name == "weight" or now != default):
            shown = [float(f"{w:.5g}") for w in now.tolist()] if name == "weight" else now
            text = f"{name} is {default} where {whose} has {shown}"
            changed = partial(_with_cross_entropy, plain, {name: default})
            value = f"Tensor({shown}, mindspore.float32)" if name == "weight" else shown
            yield Hypothesis("loss-argument", text, changed, f"nn.CrossEntropyLoss(…, {name}={value})")
    none = partial(_with_cross_entropy, plain, {"reduction": "none"})
    text = "the loss is not reduced, and its gradient is that of the sum"
    yield Hypothesis("softmaxce-reduction-none", text, none)
    for reduction in {"mean", "sum"} - {given["reduction"]}:
        text = f"reduction is {reduction!r} where {whose} has {given['reduction']!r}"
        changed = partial(_with_cross_entropy, plain, {"reduction": reduction})
        yield Hypothesis("loss-argument", text, changed, f"nn.CrossEntropyLoss(…, reduction={given['reduction']!r})")
    by_count = partial(_with, plain, "cross_entropy", _mean_by_count)
    if weight is not None:
        text = "the weighted losses are divided by the number of samples, not by the sum of their weights"
        fix = "nn.CrossEntropyLoss(weight=weight), which divides by the weights' sum, as `/ weight[labels].sum()` does"
        yield Hypothesis("weight-mean-by-count", text, by_count, fix)
        if given["ignore_index"] != -100:
            text = text.replace("samples,", "samples that are not ignored,")
            kept = partial(_with, plain, "cross_entropy", partial(_mean_by_count, ignored=False))
            yield Hypothesis("weight-mean-by-count", text, kept, fix)
    if given["ignore_index"] != -100:
        index = given["ignore_index"]
        fix = f"nn.CrossEntropyLoss(…, ignore_index={index}), or `each.sum() / (labels != {index}).sum()`"
        yield Hypothesis("ignore-index-mean", "ignored samples count in the mean's denominator", by_count, fix)


def _mean_by_count(*args: Any, ignored: bool = True, **given: Any) -> torch.Tensor:
    """The sum of the losses divided by the number of all samples, or of those that are not ignored."""
    bound = _bound(args, given)
    each = F.cross_entropy(**{**bound, "reduction": "none"})
    return each.sum() / (each.numel() if ignored else (bound["target"] != bound["ignore_index"]).sum())


def _smoothed_over_others(*args: Any, **given: Any) -> torch.Tensor:
    """cross_entropy with the smoothing's mass on the K - 1 other classes alone."""
    bound = _bound(args, given)
    logits, labels, weight, smoothing = (bound[n] for n in ("input", "target", "weight", "label_smoothing"))
    if labels.is_floating_point():
        return F.cross_entropy(**{**bound, "label_smoothing": 0.0})
    kept = labels != bound["ignore_index"]
    log, chosen = F.log_softmax(logits, 1), torch.where(kept, labels, 0).unsqueeze(1)
    rows = torch.full_like(log, smoothing / (logits.shape[1] - 1)).scatter(1, chosen, 1.0 - smoothing)
    each = -(rows * log)
    scale = kept.to(log.dtype)
    if weight is not None:
        weight = weight.to(log.dtype)
        each = each * weight.view(1, -1, *[1] * (log.ndim - 2))
        scale = scale * weight[chosen.squeeze(1)]
    each = each.sum(1) * kept
    if bound["reduction"] == "mean":
        return each.sum() / scale.sum()
    return each.sum() if bound["reduction"] == "sum" else each


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
            yield Hypothesis("loss-argument", text, as_written(recipe, **{name: other}), f"{name}={now!r}")


def _fed(plain: Loss, shape: tuple[int, ...]) -> Iterator[LossHypothesis]:
    """The loss gets other samples, other labels or other logits than it should."""
    batch, classes = shape
    for by in (1, -1):
        text = f"the labels are shifted by {by:+d} when the loss gets them"
        yield Hypothesis("labels-shifted", text, partial(lambda by, x, y: plain(x, _shifted(y, by, classes)), by))
    text = "the classes are counted in reverse order"
    yield Hypothesis("labels-reversed", text, lambda x, y: plain(x.flip(1), y))
    for i in reversed(range(min(batch, 64) if batch > 1 else 0)):
        keep = [j for j in range(batch) if j != i]
        text = f"sample {i + 1} of {batch} is left out of the loss"
        yield Hypothesis("sample-left-out", text, partial(lambda keep, x, y: plain(x[keep], y[keep]), keep))
    text = "the labels are in reverse order of the samples"
    yield Hypothesis("labels-permuted", text, lambda x, y: plain(x, y.flip(0)))
    for by in (1, -1):
        text = "the labels belong to the neighbouring samples"
        yield Hypothesis("labels-permuted", text, partial(lambda by, x, y: plain(x, y.roll(by, 0)), by))
    text, fix = "the loss takes the softmax of a softmax", "pass the logits as they are"
    yield Hypothesis("softmax-twice", text, lambda x, y: plain(x.softmax(1), y), fix)
    text = "the loss takes the softmax of a log-softmax"
    yield Hypothesis("softmax-twice", text, lambda x, y: plain(2 * x.log_softmax(1), y))
    text = "the logits reach the loss in half precision"
    yield Hypothesis("amp-black-list", text, lambda x, y: plain(x + (x.half().to(x.dtype) - x).detach(), y))
    text += ", and so does their gradient on its way back"
    yield Hypothesis("amp-black-list", text, lambda x, y: plain(x.half().to(x.dtype), y))
    yield Hypothesis("loss-sign", "the loss has the other sign", lambda x, y: -plain(x, y))


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
        yield Hypothesis(
            "loss-factor", f"the loss is {text}", partial(lambda factor, x, y: factor * plain(x, y), factor)
        )


def _functions(plain: Loss) -> Iterator[LossHypothesis]:
    """The functions that the loss, whoever wrote it, calls inside: another reduction, another clamp."""
    for name, (fault, usual) in FUNCTIONS.items():
        for reduction in ("none", "mean", "sum"):
            if reduction == usual:
                continue
            text = f"{name} has reduction={reduction!r}"
            yield Hypothesis(fault, text, partial(_with_function, plain, name, {"reduction": reduction}))
    text = "the logarithm is of p + 1e-12, so that a term costs 27.6 at most, not 100"
    yield Hypothesis("bce-log-clamp", text, partial(_with_function, plain, "binary_cross_entropy", None))


def _with_function(
    loss: Loss, name: str, changed: dict[str, Any] | None, logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """The loss with one function replaced: by the same with some arguments changed or, for None, by nn.BCELoss's own
    clamp. Raises ValueError where the loss does not call it."""
    real = getattr(F, name)

    def other(*args: Any, **given: Any) -> torch.Tensor:
        return _added(real, args[0], args[1]) if changed is None else real(*args[:2], **{**given, **changed})

    return _with(loss, name, other, logits, labels)


def _with_cross_entropy(
    loss: Loss, changed: dict[str, Any], logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """The loss with other arguments in the cross_entropy that it calls. Raises ValueError where it calls none."""

    def other(*args: Any, **given: Any) -> torch.Tensor:
        return F.cross_entropy(**{**_bound(args, given), **changed})

    return _with(loss, "cross_entropy", other, logits, labels)


class _Instead(TorchFunctionMode):
    """Calls `other` in place of one function of torch.nn.functional, under whatever name the caller imported it."""

    def __init__(self, name: str, other: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.real, self.other, self.called = getattr(F, name), other, False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not self.real:
            return func(*args, **(kwargs or {}))
        self.called = True
        return self.other(*args, **(kwargs or {}))  # within the mode's own code the mode is off


def _with(
    loss: Loss, name: str, other: Callable[..., torch.Tensor], logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """The loss with one function of torch.nn.functional replaced. Raises ValueError where it does not call it."""
    with _Instead(name, other) as instead:
        value = loss(logits, labels)
    if not instead.called:
        raise ValueError(f"the loss does not call {name}")
    return value


def _otherwise() -> Iterator[LossHypothesis]:
    """Another loss altogether."""

    def rows(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y if y.is_floating_point() else F.one_hot(y, x.shape[1]).to(x.dtype)

    def mean(x: torch.Tensor, y: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
        return -(rows(x, y) * of).sum(1).mean()

    losses: dict[str, Loss] = {
        "a binary cross entropy of every class": lambda x, y: F.binary_cross_entropy_with_logits(x, rows(x, y)),
        "the squared distance from one-hot rows": lambda x, y: F.mse_loss(x, rows(x, y)),
        "the negative logit of the class, without log_softmax": lambda x, y: mean(x, y, x),
        "the negative probability of the class, without the logarithm": lambda x, y: mean(x, y, x.softmax(1)),
        "a log-softmax over the batch instead of over the classes": lambda x, y: mean(x, y, x.log_softmax(0)),
        "the squared distance of the probabilities": lambda x, y: F.mse_loss(x.softmax(1), rows(x, y)),
    }
    for text, loss in losses.items():
        yield Hypothesis("loss-other", f"the loss is {text}", loss, "nn.CrossEntropyLoss on the logits")


def _binary(plain: Loss) -> Iterator[LossHypothesis]:
    text = "the loss is nn.BCELoss of the sigmoid, whose logarithm is of p + 1e-12"
    yield Hypothesis("bce-log-clamp", text, lambda x, y: _added(F.binary_cross_entropy, x.sigmoid(), y))
    yield Hypothesis("loss-other", "the loss is a cross entropy over the classes", F.cross_entropy)
    text = "the loss takes the sigmoid of a sigmoid"
    yield Hypothesis("sigmoid-twice", text, lambda x, y: plain(x.sigmoid(), y))


def _added(real: Loss, p: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """MindSpore's binary cross entropy: 1e-12 inside the logarithm, and torch's gradient."""
    torchs = real(p, targets)
    least = 1e-12
    value = -(targets * (p + least).log() + (1 - targets) * (1 - p + least).log()).mean()
    return torchs + (value - torchs).detach()


# what the model returns in evaluation

RETURNED = "evaluation-output"
BEHIND_THE_LAST: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softmax": lambda x: x.softmax(1 if x.ndim > 1 else 0),
    "softmax over the last axis": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(1 if x.ndim > 1 else 0),
    "sigmoid": torch.sigmoid,
}


def returned(context: Context) -> list[Cause]:
    """The cause where in evaluation all layers agree, and what the model returns does not: code behind the last of them
    that runs in evaluation alone, or does not."""
    wrong = context.failed("forward", "eval")
    if not wrong or not all(is_model_output(each) for each in wrong):
        return []
    text = (
        "in evaluation every layer agrees, and what the model returns does not: the code behind the last layer differs"
    )
    key = key_of(wrong[0])
    entry = context.mindspore.entries.get(key)
    if entry is not None and context.comparable(key) and not entry.sampled:
        values, shape = (context.torch_values(key), context.mindspore_values(key)), entry.shape

        def applied(name: str, values: np.ndarray, dtype: torch.dtype) -> np.ndarray:
            tensor = torch.from_numpy(values).to(dtype).reshape(shape)
            found: np.ndarray = BEHIND_THE_LAST[name](tensor).reshape(-1).numpy()
            return found

        def outcome(tried: tuple[str, bool]) -> Outcome:
            (name, lacks), (exact, other) = tried, values
            if lacks:
                prediction, subject = Prediction.rounded(exact), applied(name, other, torch.float64)
            else:
                prediction = Prediction(applied(name, exact, torch.float64), applied(name, exact, torch.float32))
                subject = other
            return Outcome.of({MODEL: judge_prediction(subject, prediction, FLOOR)})

        found = first(_behind_the_last(), outcome, Outcome({MODEL: wrong[0].ratio or inf}, frozenset([MODEL])))
        if found is not None:
            return [caused("forward", MODEL, found, f"what the model returns in evaluation, {len(values[0])} numbers")]
    return [cause("forward", MODEL, None, text, fix="compare what construct and forward do where they do not train")]


def _behind_the_last() -> Iterator[Hypothesis[tuple[str, bool]]]:
    for name in BEHIND_THE_LAST:
        lacks = f"MindSpore's model lacks torch's {name} behind the last layer in evaluation"
        yield Hypothesis(RETURNED, lacks, (name, True), f"apply {name} in construct `if not self.training`")
        adds = f"MindSpore's model applies {name} behind the last layer in evaluation, and torch's does not"
        yield Hypothesis(RETURNED, adds, (name, False), f"take {name} out of construct where it does not train")
