"""Why gradients differ: what was differentiated, and by which factor.

A gradient is linear in what is differentiated. So MindSpore's gradients are decomposed into a multiple of the loss's
own gradient and a multiple of the gradient of the logits' sum, which `value_and_grad` adds without has_aux. The last
linear layer is examined first: its gradient follows from the logits and features that MindSpore itself computed,
whatever is wrong before it.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from ....migrate.torch_models import in_mode
from ....training.step import torch_step
from ...align.torch_user_model import replay_loss, tensors
from ...noise import UsualNoise
from ...record.torch_kinks import KinkSides, taking
from ...result import Cause, Finding
from ...tensor_verdict import Measure, Verdict
from ...trace import ALONE, DISTRIBUTION, WIRING, Key, Part
from ..context import Context, key_of, recorded
from ..differences import pattern
from ..hypotheses import Outcome, Prediction, cause, judge_prediction, or_none
from .clipping_and_loss_scale import (
    behind_the_reducer,
    between_steps,
    first_step,
    kept_from_before,
    overflowing_steps,
    scale_at,
)
from .torch_loss import Loss, explained, value_and_gradient

ROUND = 2e-3  # how near a coefficient has to be to a number with a meaning
HEAD_FLOOR = 4e-6  # the head's inputs are MindSpore's own, rounded to float32
ROUGHLY = 0.01
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class GradientCombination:
    """MindSpore's gradient as loss · (gradient of the loss) + logits · (gradient of the logits' sum)."""

    loss: float
    logits: float

    @property
    def plain(self) -> bool:
        """Whether it is the loss's own gradient."""
        return abs(self.loss - 1.0) < ROUND and abs(self.logits) < ROUND

    def times(self, factor: float) -> GradientCombination:
        """The combination multiplied."""
        return GradientCombination(self.loss * factor, self.logits * factor)


PLAIN = GradientCombination(1.0, 0.0)
UNKNOWNS = 2  # the coefficients of a combination


@dataclass(frozen=True)
class GradientBasis:
    """Gradients of the loss and of the logits' sum by parameter, in recorded elements; what: whose gradients, in words.

    floor: noise that comes with their inputs, 0 where torch's recorded noise counts. samples: each sample's part of the
    loss's gradients.
    """

    what: str
    loss: dict[str, Prediction]
    logits: dict[str, Prediction]
    floor: float = 0.0
    samples: tuple[Arrays, ...] = ()

    def combined(self, mix: GradientCombination, name: str) -> Prediction:
        """A parameter's gradient under a combination."""
        loss, logits = self.loss[name], self.logits[name]
        exact = mix.loss * loss.exact + mix.logits * logits.exact
        return Prediction(exact, mix.loss * loss.single + mix.logits * logits.single)

    def outcome(self, context: Context, mix: GradientCombination, names: Sequence[str]) -> Outcome:
        """MindSpore's gradients of these parameters, judged against a combination."""
        return Outcome.of({name: self._judged(context, mix, name) for name in names})

    def _judged(self, context: Context, mix: GradientCombination, name: str) -> Measure:
        key, floor = _key(name), self.floor
        if not floor:
            family = context.family(key)
            exact = family[0].array(key)
            runs = [trace.array(key) for trace in family[1:] if key in trace.entries]
            size = float(np.linalg.norm(exact)) or 1.0
            floor = max((float(np.linalg.norm(run - exact)) / size for run in runs), default=0.0)
            floor = max(floor, UsualNoise(family, context.traces.alone[1]).floor(family[0].entries[key]))
        return judge_prediction(context.mindspore_values(key), self.combined(mix, name), floor)


def _key(name: str) -> tuple[str, str, str, int]:
    return ("gradients", "parameters", name, 0)


def explain(context: Context) -> list[Cause]:
    """The causes of what failed in stage gradients."""
    wrong = [f for f in context.failed("gradients") if f.part not in (ALONE, WIRING)]  # which do not come from the loss
    if not wrong:
        return []
    causes = _absent(context, [f for f in wrong if f.part == "parameters"])
    if context.paired is not None and context.paired.alignment.scope.own_step:  # gradients as the optimizers get them
        if not any(f.part == "parameters" for f in wrong):  # the first update is right
            return causes + (behind_the_reducer(context) or kept_from_before(context))
        own = between_steps(context) or _clipped_separately(context)
        if own or context.recipe.clip is not None:
            return causes + own
    found_loss = explained(context)
    if any(each.fault is None for each in found_loss.causes):
        return causes  # the loss of these gradients is unknown
    loss, step = found_loss.loss, max(1, first_step(context.mindspore))
    at_head = last_layer_gradients(context, loss, step)
    mix, found = _from(context, at_head) if at_head is not None else (PLAIN, [])
    causes += found
    if _reached(context):  # the forward pass is right, so the gradients of all parameters can be computed
        whole = step_gradients(context, loss, step)
        if whole is not None:
            if at_head is None:
                mix, found = _from(context, whole)
                causes += found
            causes += _one_by_one(context, wrong, whole, mix)
        causes += _of_the_images(context, wrong) if not causes else []
    return causes


PARTS = (2, 3, 4, 8)  # numbers of micro-batches that a step may divide its images into
ALIGNED = 1e-6  # the largest 1 - cos of the angle between two gradients that differ in size only


def _clipped_separately(context: Context) -> list[Cause]:
    """Gradients of micro-batches, or of the calls before an update, that are each clipped before they are added, in
    MindSpore's step or in torch's: their sum has the direction of a sum of unit vectors, whatever their norms were."""
    step, paired = first_step(context.mindspore), context.paired
    keys = [entry.key for entry in context.mindspore.select("gradients", "parameters") if context.comparable(entry.key)]
    if paired is None or not keys or step < 1:
        return []
    sides = {
        side: np.concatenate([values(key).astype(np.float64) for key in keys])
        for side, values in (("MindSpore", context.mindspore_values), ("torch", context.torch_values))
    }
    inputs, loss = context.inputs, replay_loss(context.recipe, paired.given)
    calls = [(inputs.images[i], inputs.labels[i]) for i in range(step)]
    last = [torch.from_numpy(each) for each in calls[-1]] if isinstance(calls[-1][0], np.ndarray) else None
    tried = [("call", calls)] if step > 1 else []
    if last is not None:
        cut = [(n, zip(*(each.chunk(n) for each in last), strict=True)) for n in PARTS if len(last[0]) >= n]
        tried += [("part", [(x.numpy(), y.numpy()) for x, y in parts]) for _, parts in cut]
    for what, batches in tried:
        units = np.zeros_like(sides["torch"])
        for images, labels in batches:
            model = in_mode(copy.deepcopy(context.model).double(), training=True)
            own = {n: p for n, p in model.named_parameters() if p.requires_grad}
            outputs = model(*tensors(images, torch.float64))
            found = torch.autograd.grad(
                loss(outputs, torch.from_numpy(labels)).sum(), list(own.values()), allow_unused=True
            )
            grads = {n: g.numpy() for n, g in zip(own, found, strict=True) if g is not None}
            if any(key[2] not in grads for key in keys):
                return []
            one = np.concatenate(
                [recorded(grads[key[2]], context.mindspore_values(key).size).reshape(-1) for key in keys]
            )
            units += one / np.linalg.norm(one)
        norm, count = float(np.linalg.norm(units)), len(batches)
        lengths = {side: float(np.linalg.norm(values)) for side, values in sides.items()}
        those = [
            side
            for side, values in sides.items()
            if norm and lengths[side] and 1.0 - float(units @ values) / (norm * lengths[side]) < ALIGNED
        ]
        if len(those) == 1:
            each = lengths[those[0]] / norm
            mean = f" (to {each * count:.3g} where their mean is taken)"
            text = f"each {what}'s gradients are clipped before they are added, to a norm of {each:.3g}{mean}"
            evidence = f"they have the direction of {count} gradients of one length each, computed in torch"
            fault: str | None = "clip-on-accumulated-sum"
            fix = "add the gradients, divide by their number, and clip once"
            if those == ["torch"]:
                text, fault = f"in torch's step {text}, and in MindSpore's they are not", None
                fix = f"clip the gradients of each of the {count}, then add them"
            return [cause("gradients", "every parameter", fault, text, evidence, 0.0, fix=fix)]
    return []


def _of_the_images(context: Context, wrong: Sequence[Finding]) -> list[Cause]:
    """The gradient of the images, where it alone is off."""
    found = next((f for f in wrong if f.part == "images"), None)
    if found is None or any(f.part == "parameters" for f in wrong) or not context.comparable(key_of(found)):
        return []
    how = pattern(context.torch_values(key_of(found)), context.mindspore_values(key_of(found)))
    text = "the gradient of the images alone is off: it is wrong as it leaves the first layer"
    return [cause("gradients", "images", None, text, str(how), None, found.ratio)]


def _reached(context: Context) -> bool:
    """Whether MindSpore's forward pass in training, including the logits, agrees with torch's."""
    wrong = [*context.failed("forward", "train"), *(f for f in context.failed("loss", "step1") if f.name == "logits")]
    return not wrong


def _absent(context: Context, wrong: Sequence[Finding]) -> list[Cause]:
    """The causes of gradients that one side lacks, and of gradients that are not finite."""
    traces, entries = context.traces, context.mindspore.entries
    causes: list[Cause] = []
    everything = [e.name for e in traces.matched[0].select("gradients", "parameters")]
    # stage init has reported parameters that are frozen or missing
    drawn = [f.name for f in context.failed("init", DISTRIBUTION)]
    frozen = {name for name in drawn if ("init", DISTRIBUTION, name, 0) not in entries}
    missing = [f.name for f in wrong if key_of(f) not in entries and f.name not in frozen]
    missing = [name for name in missing if ("init", "values", name, 0) in entries]
    extra = [f.name for f in wrong if not any(key_of(f) in t.entries for t in traces.matched)]
    zero = [name for name in extra if entries[_key(name)].norm == 0.0]
    moving = [name for name in extra if name not in zero]

    def add(names: list[str], fault: str | None, text: str, evidence: str, fix: str = "") -> None:
        if names:
            where = context.place(names, [*everything, *names])
            causes.append(cause("gradients", where, fault, text, evidence, fix=fix))

    text = "the parameter has no gradient: it is frozen, or not among the weights that are differentiated"
    evidence = f"MindSpore records {len(everything) - len(missing)} of {len(everything)} gradients"
    fix = "requires_grad=True, and value_and_grad over net.trainable_params()"
    add(missing, "parameter-frozen", text, evidence, fix)
    text = "the loss does not reach it: torch gives it no gradient and leaves it alone, MindSpore one of zeros"
    add(zero, "unused-param-zero-grad", text, f"{len(zero)} gradients")
    text, fix = "it trains in MindSpore, and is frozen in torch", "requires_grad=False before the optimizer is made"
    add(moving, "requires-grad-frontend", text, f"{len(moving)} gradients", fix)
    bad = {e.name: e.nonfinite for e in context.mindspore.select("gradients", "parameters") if e.nonfinite}
    nan = [f.name for f in wrong if f.name in bad]
    if nan:
        counts = "values that are not finite: " + ", ".join(f"{name} {bad[name]}" for name in nan[:3])
        if over := overflowing_steps(traces):
            text = f"step {over[0]}, whose gradients overflow, is taken and not skipped"
            fix = "mindspore.amp.all_finite of the gradients decides whether the optimizer runs"
            causes.append(cause("gradients", "loss scale", "overflow-not-skipped", text, counts, fix=fix))
        else:
            add(nan, None, "the gradient is not finite", counts)
    return causes


def _from(context: Context, basis: GradientBasis) -> tuple[GradientCombination, list[Cause]]:
    """The combination that gives MindSpore's gradients, and its causes; the plain combination where none does."""
    names = [name for name in basis.loss if context.comparable(_key(name))]
    before = basis.outcome(context, PLAIN, names)
    if before.reproduces:
        return PLAIN, []
    if sum(basis.loss[name].exact.size for name in names) <= UNKNOWNS:
        return PLAIN, []  # as many numbers as are solved for always fit
    mix = _solved(context, basis, names)
    after = basis.outcome(context, mix, names)
    if not after.reproduces or mix.plain:
        shares = share_of_samples(context, basis)
        return PLAIN, [_shared(context, shares, before.worst)] if shares is not None else []
    fault, text, fix = _meaning(context, mix)
    sums = "" if abs(mix.logits) < ROUND else f" + {mix.logits:.6g} times that of the logits' sum"
    evidence = (
        f"{basis.what}: MindSpore's gradient is {mix.loss:.6g} times the loss's own{sums}, to {after.worst:.2g} times "
        f"the noise; the loss's own is {before.worst:.3g} times the noise away"
    )
    return mix, [cause("gradients", "every parameter", fault, text, evidence, after.worst, before.worst, fix)]


def _shared(context: Context, shares: np.ndarray, before: float) -> Cause:
    """The cause that the samples' shares in the gradient point to; by the recipe each share is 1."""
    parts, count = context.recipe.accumulate, len(shares)
    shown = f"the samples' shares, 1 by the recipe, are {', '.join(f'{share:.3g}' for share in shares[:8])}"
    size = count // parts
    kept = np.flatnonzero(np.abs(shares) > ROUND)
    fault, text = "samples-weighted", "the samples do not have equal weights in the gradient"
    if parts > 1 and len(kept) == size and kept[0] % size == 0 and np.ptp(kept) == size - 1:
        fault = "grad-not-accumulated"
        text = f"only the gradients of micro-batch {kept[0] // size + 1} of {parts} are used: they are not added up"
    else:
        for cut in range(1, count):
            uneven = np.array([1 / cut] * cut + [1 / (count - cut)] * (count - cut)) * count / 2
            if 2 * cut != count and np.allclose(shares, uneven, rtol=ROUND):
                fault, text = "accumulate-uneven", f"the mean of the means of {cut} and {count - cut} samples is taken"
                break
    return cause("gradients", "every parameter", fault, text, shown, None, before)


def _solved(context: Context, basis: GradientBasis, names: Sequence[str]) -> GradientCombination:
    """The least-squares coefficients over all parameters, with equal weights."""
    rows, values = [], []
    for name in names:
        subject = context.mindspore_values(_key(name)).astype(np.float64)
        weight = 1.0 / (np.linalg.norm(subject) or 1.0)
        rows.append(np.stack([basis.loss[name].exact, basis.logits[name].exact], 1) * weight)
        values.append(subject * weight)
    solved = np.linalg.lstsq(np.concatenate(rows), np.concatenate(values), rcond=None)[0]
    loss, logits = float(solved[0]), float(solved[1])
    return GradientCombination(loss, 0.0 if abs(logits) < 1e-6 * max(abs(loss), 1e-30) else logits)


def _meaning(context: Context, mix: GradientCombination) -> tuple[str | None, str, str]:
    """The fault that the coefficients point to, its text, and its fix where the fault's row is not enough."""
    recipe = context.recipe
    scale, parts = scale_at(context, max(1, first_step(context.mindspore))), recipe.accumulate
    micro = recipe.data.batch // parts
    if abs(mix.logits) >= ROUND:
        extra = f"{mix.logits:.4g} times the sum of the logits"
        return "value-and-grad-has-aux", f"{extra} is differentiated with the loss", "value_and_grad(…, has_aux=True)"
    if abs(mix.loss) < ROUND:
        return "detach", "the gradients are zero: the loss is cut off from the weights", "no stop_gradient on the way"
    if mix.loss < 0:
        return "gradient-flipped", f"the gradients are {mix.loss:.6g} times torch's: the step goes uphill", ""
    hidden = recipe.optimizer.name.rpartition(".")[2] != "SGD"  # a gradient divided by its own size hides the scale
    kept = "loss-scale-hidden-by-adam" if hidden else "loss-scale-not-removed"
    both = "neither the loss scale nor the micro-batches are taken out"
    every = "the loss is summed over all samples, not averaged"
    # factor, fault, text; a factor of 1 is no fault
    meanings: list[tuple[float, str, str]] = [
        (scale, kept, "the loss scale is not taken out of the gradients"),
        (1 / scale, "loss-scale-removed-twice", "the loss scale is taken out twice"),
        (scale * parts if scale != 1.0 else 1.0, "loss-scale-not-removed", both),
        (float(parts), "accumulate-sum", "the gradients of the micro-batches are summed, not averaged"),
        (1.0 / parts, "gradient-factor", "the gradients are divided by the micro-batches twice"),
        (float(micro), "vector-loss-sums", f"the loss is summed over the {micro} samples, not averaged"),
        (1.0 / micro, "gradient-factor", f"the gradients are divided by the {micro} samples twice"),
        (float(micro * parts if micro > 1 else 1), "vector-loss-sums", every),
    ]
    for value, fault, text in meanings:
        if value != 1.0 and abs(mix.loss / value - 1.0) < ROUND:
            return fault, f"{text}: they are {value:.6g} times torch's", ""
    text = f"all gradients are {mix.loss:.6g} times torch's"
    return "gradient-factor", text, "look for a factor on the loss or a loss scale"


def _one_by_one(
    context: Context, wrong: Sequence[Finding], whole: GradientBasis, mix: GradientCombination
) -> list[Cause]:
    """Causes for parameters whose gradient is still off under the common combination, grouped by how it is off."""
    sorts: dict[str, list[str]] = {}
    numbers: dict[str, tuple[str, float]] = {}
    for finding in wrong:
        name, key = finding.name, key_of(finding)
        if finding.part != "parameters" or name not in whole.loss or not context.comparable(key):
            continue
        before = whole.outcome(context, mix, [name])
        if before.reproduces:
            continue
        found, sort = pattern(whole.combined(mix, name).exact, context.mindspore_values(key)), "other"
        if not np.any(context.mindspore_values(key)):
            sort = "zero"
        elif whole.outcome(context, mix.times(found.factor), [name]).reproduces:
            sort = f"{found.factor:.5g}"
        sorts.setdefault(sort, []).append(name)
        numbers.setdefault(sort, (f"{name}: {found}", before.worst))
    causes = []
    for sort, names in sorts.items():
        fault, text = {
            "zero": ("detach", "the gradient is zero: the parameter is cut off from the loss"),
            "-1": ("gradient-flipped", "the gradient has the other sign"),
            "other": (None, "nothing known reproduces the gradient"),
        }.get(sort, (None, f"the gradient is {sort} times what it should be"))
        if sort == "other" and any(module.own for module in context.modules if module.verdict is Verdict.FAIL):
            continue  # the modules say more
        shown, ratio = numbers[sort]
        where = context.place(names, list(whole.loss))
        causes.append(cause("gradients", where, fault, text, f"{len(names)} gradients; {shown}", None, ratio))
    return causes


def step_gradients(context: Context, loss: Loss, step: int) -> GradientBasis | None:
    """The gradients of training step `step`, with MindSpore's choices at kinks; None where torch refuses."""
    if context.options.pair is not None or step > len(context.inputs.images):
        return None
    runs = or_none(lambda: [_gradients(context, loss, step, dtype) for dtype in (torch.float64, torch.float32)])
    if runs is None:
        return None
    (loss64, logits64), (loss32, logits32) = runs
    entries = {e.name: e for e in context.mindspore.select("gradients", "parameters")}
    names = [name for name in loss64 if name in entries and entries[name].shape == loss64[name].shape]
    return GradientBasis(
        f"all parameters in step {step}",
        {name: _recorded(context, name, loss64[name], loss32[name]) for name in names},
        {name: _recorded(context, name, logits64[name], logits32[name]) for name in names},
    )


def _gradients(context: Context, loss: Loss, step: int, dtype: torch.dtype) -> tuple[Arrays, Arrays]:
    recipe, inputs = context.recipe, context.inputs
    model = in_mode(copy.deepcopy(context.model).to(dtype), training=True)
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    half = recipe.amp is not None and recipe.amp.level != "O0"
    x = torch.from_numpy(inputs.images[step - 1]).to(dtype, copy=True)  # a model may write into what it is given
    y = torch.from_numpy(inputs.labels[step - 1])
    y = y.to(dtype) if y.is_floating_point() else y
    sums: list[Arrays] = [{}, {}]
    with taking(KinkSides.of(context.mindspore, Part.of_step(step), half), model):
        for images, labels in zip(x.chunk(recipe.accumulate), y.chunk(recipe.accumulate), strict=True):
            logits = torch_step.forward(recipe.amp, model, images)
            for total, value in zip(sums, (loss(logits, labels).sum() / recipe.accumulate, logits.sum()), strict=True):
                found = torch.autograd.grad(value, list(parameters.values()), retain_graph=True, allow_unused=True)
                for name, gradient in zip(parameters, found, strict=True):
                    if gradient is not None:
                        array = gradient.numpy()
                        total[name] = total[name] + array if name in total else array
    return sums[0], sums[1]


def _recorded(context: Context, name: str, exact: np.ndarray, single: np.ndarray) -> Prediction:
    count = context.mindspore_values(_key(name)).size
    return Prediction(recorded(exact, count), recorded(single, count))


def last_layer_gradients(context: Context, loss: Loss, step: int) -> GradientBasis | None:
    """The gradients of the last linear layer, from the logits and features that MindSpore computed in the first step;
    None where that layer, or what it takes, is not recorded whole."""
    if step != 1:
        return None
    logits = context.mindspore.entries.get(("loss", "step1", "logits", 0))
    name, layer = _last_linear(context.model)
    if logits is None or logits.sampled or logits.nonfinite or layer is None or layer.out_features != logits.shape[-1]:
        return None
    x, labels = context.mindspore_values(logits.key).reshape(logits.shape), context.inputs.labels[0]
    gave = _given(context, name)
    if len(labels) != len(x) or (gave is not None and not _alike(gave, x)):
        return None  # the logits are computed from its output, for instance as a mean over several heads
    features, rows = _features(context, name), x.size // layer.out_features
    features = features.reshape(rows, -1) if features is not None and features.size % rows == 0 else None
    if features is not None and features.shape[1] != layer.in_features:
        features = None
    if features is not None and not _alike(_made(layer, features), x):
        features = None  # the output before it belongs to another branch
    parts = context.recipe.accumulate

    def joined(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        pairs = zip(logits.chunk(parts), labels.chunk(parts), strict=True)
        return torch.stack([loss(a, b).sum() / parts for a, b in pairs]).sum()

    runs = or_none(lambda: [value_and_gradient(joined, x, labels, t)[1] for t in (torch.float64, torch.float32)])
    if runs is None or not _of_the_logits(context, joined, logits.key):
        return None
    exact, single = runs

    def layers(exact: np.ndarray, single: np.ndarray) -> dict[str, Prediction]:
        """The layer's gradients from those of its output."""
        stem = f"{name}." if name else ""
        makes: dict[str, Callable[[np.ndarray], np.ndarray]] = {}
        if layer.bias is not None:
            makes[f"{stem}bias"] = lambda g: np.asarray(g.reshape(rows, -1).sum(0))
        if features is not None:
            makes[f"{stem}weight"] = lambda g: np.asarray(g.reshape(rows, -1).T @ features.astype(g.dtype))
        there = {key: make for key, make in makes.items() if _key(key) in context.mindspore.entries}
        return {key: _recorded(context, key, make(exact), make(single)) for key, make in there.items()}

    samples = []
    for i in range(len(x)):
        alone = np.zeros_like(exact)
        alone[i] = exact[i]
        samples.append({key: prediction.exact for key, prediction in layers(alone, alone).items()})
    found, sums = layers(exact, single), layers(np.ones_like(exact), np.ones_like(single))
    what = "the last layer, from MindSpore's own logits"
    return GradientBasis(what, found, sums, HEAD_FLOOR, tuple(samples))


def _of_the_logits(context: Context, loss: Loss, logits: Key) -> bool:
    """Whether the loss of the logits alone is the step's, on one side at least, or no loss was recorded: of a net with
    several outputs it takes them all, and by its first one says nothing of how large the gradients have to be."""
    key, labels = ("loss", "step1", "loss", 0), context.inputs.labels[0]
    sides = [one for one in (context.mindspore, context.family(logits)[0]) if key in one.entries]
    for side in sides:
        if logits in side.entries:
            given, value = side.array(logits).reshape(side.entries[logits].shape), float(side.array(key).reshape(-1)[0])
            made = value_and_gradient(loss, given, labels, torch.float64)[0]
            if math.isclose(float(made), value, rel_tol=SAME_LOSS):
                return True
    return not sides


SAME_LOSS = 1e-3  # relative difference of a loss from the same one in other rounding


def share_of_samples(context: Context, basis: GradientBasis) -> np.ndarray | None:
    """The factor of each sample's part in MindSpore's gradient; None where such factors do not explain it."""
    names = list(basis.loss)
    if not basis.samples or not all(context.comparable(_key(name)) for name in names):
        return None
    matrix = np.stack([np.concatenate([sample[name] for name in names]) for sample in basis.samples], 1)
    subject = np.concatenate([context.mindspore_values(_key(name)) for name in names]).astype(np.float64)
    if matrix.shape[0] <= matrix.shape[1]:
        return None
    shares = np.linalg.lstsq(matrix, subject, rcond=None)[0]
    left = float(np.linalg.norm(matrix @ shares - subject))
    return np.asarray(shares) if left <= 1e-5 * float(np.linalg.norm(subject)) else None


def _last_linear(model: nn.Module) -> tuple[str, nn.Linear | None]:
    last: tuple[str, nn.Linear | None] = ("", None)
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            last = (name, module)
    return last


def _features(context: Context, name: str) -> np.ndarray | None:
    """The input of the last layer: the output before it, where that is recorded whole."""
    before = list(itertools.takewhile(lambda e: e.name != name, context.mindspore.select("forward", "train")))[-1:]
    return _given(context, before[0].name) if before else None


def _given(context: Context, name: str) -> np.ndarray | None:
    """A layer's outputs in all its calls, a row for each example; None where these are not recorded whole."""
    calls = [e for e in context.mindspore.select("forward", "train") if e.name == name]
    if not calls or any(e.sampled or e.nonfinite or not e.shape for e in calls):
        return None
    arrays = [context.mindspore_values(e.key).reshape(e.shape[0], -1) for e in calls]
    return np.concatenate(arrays) if len({array.shape[1] for array in arrays}) == 1 else None


def _made(layer: nn.Linear, features: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        made: np.ndarray = layer(torch.from_numpy(features.astype(np.float32))).numpy()
    return made


def _alike(made: np.ndarray, logits: np.ndarray) -> bool:
    """Whether `made` roughly equals the logits."""
    return made.size == logits.size and bool(
        np.linalg.norm(made.reshape(-1) - logits.reshape(-1)) < ROUGHLY * np.linalg.norm(logits)
    )
