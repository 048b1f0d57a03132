"""Why gradients differ: what was differentiated, and what it was multiplied by.

A gradient is linear in what is differentiated. So MindSpore's gradients are taken apart into a multiple of the loss's
own gradient and a multiple of that of the logits' sum, which `value_and_grad` adds without has_aux. The last linear
layer is looked at first: its gradient follows from the logits and features that MindSpore itself computed, whatever
is wrong before it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from ....training.step import torch_step
from ...noise import UsualNoise
from ...record.torch_kinks import KinkSides, taking
from ...result import Cause, Finding
from ...trace import DISTRIBUTION, Entry, Part, sample_positions
from ...verdict import Measure, Verdict
from ..context import Context, owners, place
from ..differences import pattern
from ..evidence import (
    Prediction,
    cause,
    comparable,
    failed,
    family,
    judge_prediction,
    key_of,
    mindspore_values,
    or_none,
    torch_values,
)
from .clipping import first_step, scale_at
from .loss_scale import ran_over
from .torch_loss import Loss, explained

ROUND = 2e-3  # how near a coefficient has to be to a number with a meaning
HEAD_FLOOR = 4e-6  # the head's inputs are MindSpore's own, rounded to float32
ROUGHLY = 0.01
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class GradientCombination:
    """MindSpore's gradient as loss·(the loss's own) + logits·(the logits' sum's)."""

    loss: float
    logits: float

    @property
    def plain(self) -> bool:
        """Whether it is the loss's own gradient."""
        return abs(self.loss - 1.0) < ROUND and abs(self.logits) < ROUND

    def times(self, factor: float) -> GradientCombination:
        """The mix multiplied."""
        return GradientCombination(self.loss * factor, self.logits * factor)

    def of(self, backward: GradientBasis, name: str) -> Prediction:
        """What the mix makes of a parameter's gradient."""
        exact = self.loss * backward.loss[name].exact + self.logits * backward.logits[name].exact
        single = self.loss * backward.loss[name].single + self.logits * backward.logits[name].single
        return Prediction(exact, single)


def explain(context: Context) -> list[Cause]:
    """The causes of what failed in stage gradients."""
    wrong = failed(context.findings, "gradients")
    if not wrong:
        return []
    causes = _absent(context, wrong)
    found_loss = explained(context)
    if any(each.fault is None for each in found_loss.causes):
        return causes  # gradients of a loss that nobody knows
    loss = found_loss.loss
    at_head = last_layer_gradients(context, loss, max(1, first_step(context.traces)))
    mix = GradientCombination(1.0, 0.0)
    if at_head is not None:
        mix, found = _from(context, at_head, HEAD_FLOOR)
        causes += found
    if _reached(context):  # the forward pass is right, so the gradients of all parameters can be computed
        whole = step_gradients(context, loss, max(1, first_step(context.traces)))
        if whole is not None:
            if at_head is None:
                mix, found = _from(context, whole, 0.0)
                causes += found
            causes += _one_by_one(context, wrong, whole, mix)
        causes += _of_the_images(context, wrong) if not causes else []
    return causes


def _of_the_images(context: Context, wrong: Sequence[Finding]) -> list[Cause]:
    """The gradient of the images, where it alone is off."""
    found = next((f for f in wrong if f.part == "images"), None)
    if found is None or any(f.part == "parameters" for f in wrong) or not comparable(context.traces, key_of(found)):
        return []
    how = pattern(torch_values(context.traces, key_of(found)), mindspore_values(context.traces, key_of(found)))
    text = "the gradient of the images alone is off: it leaves the first layer wrong"
    return [cause("gradients", "images", None, text, str(how), None, found.ratio)]


def _reached(context: Context) -> bool:
    """Whether MindSpore's forward pass in training, and with it the logits, agree with torch's."""
    return not failed(context.findings, "forward", "train") and not [
        f for f in failed(context.findings, "loss", "step1") if f.name == "logits"
    ]


def _absent(context: Context, wrong: Sequence[Finding]) -> list[Cause]:
    """Gradients that one side lacks, and such that are not finite."""
    traces = context.traces
    causes = []
    frozen = {
        f.name
        for f in failed(context.findings, "init", DISTRIBUTION)
        if ("init", DISTRIBUTION, f.name, 0) not in traces.mindspore.entries
    }
    missing = [f.name for f in wrong if f.part == "parameters" and key_of(f) not in traces.mindspore.entries]
    # of what is frozen or not there at all stage init has said so
    missing = [n for n in missing if n not in frozen and ("init", "values", n, 0) in traces.mindspore.entries]
    everything = [e.name for e in traces.matched[0].select("gradients", "parameters")]
    kinds = owners(traces.alone[1], everything)
    if missing:
        text = "the parameter has no gradient: it is frozen, or not among the weights that are differentiated"
        evidence = f"MindSpore records {len(everything) - len(missing)} of {len(everything)} gradients"
        fix = "requires_grad=True, and value_and_grad over net.trainable_params()"
        causes.append(
            cause("gradients", place(missing, everything, kinds), "parameter-frozen", text, evidence, fix=fix)
        )
    extra = [
        f.name for f in wrong if f.part == "parameters" and not any(key_of(f) in t.entries for t in traces.matched)
    ]
    zero = [name for name in extra if traces.mindspore.entries[("gradients", "parameters", name, 0)].norm == 0.0]
    if zero:
        text = "the loss does not reach it: torch gives it no gradient and leaves it alone, MindSpore one of zeros"
        causes.append(
            cause(
                "gradients",
                place(zero, [*everything, *zero], kinds),
                "unused-param-zero-grad",
                text,
                f"{len(zero)} gradients",
            )
        )
    moving = [name for name in extra if name not in zero]
    if moving:
        text = "it trains in MindSpore, and is frozen in torch"
        where = place(moving, [*everything, *moving], kinds)
        fix = "requires_grad=False before the optimizer is made"
        causes.append(cause("gradients", where, "requires-grad-frontend", text, f"{len(moving)} gradients", fix=fix))
    bad = {e.name: e.nonfinite for e in traces.mindspore.select("gradients", "parameters") if e.nonfinite}
    nan = [f.name for f in wrong if f.part == "parameters" and f.name in bad]
    if nan:
        counts = "values that are not finite: " + ", ".join(f"{name} {bad[name]}" for name in nan[:3])
        over = ran_over(traces)
        if over:
            text = f"step {over[0]}, whose gradients overflow, is taken and not skipped"
            fix = "mindspore.amp.all_finite of the gradients decides whether the optimizer runs"
            causes.append(cause("gradients", "loss scale", "overflow-not-skipped", text, counts, fix=fix))
        else:
            causes.append(cause("gradients", place(nan, everything, kinds), None, "the gradient is not finite", counts))
    return causes


def _from(context: Context, backward: GradientBasis, floor: float) -> tuple[GradientCombination, list[Cause]]:
    """The mix that MindSpore's gradients are, and what it means; the plain one where it is not a mix."""
    names = [n for n in backward.loss if comparable(context.traces, ("gradients", "parameters", n, 0))]
    if not names:
        return GradientCombination(1.0, 0.0), []
    plain = GradientCombination(1.0, 0.0)
    before = [_judged(context, backward, plain, name, floor) for name in names]
    if all(m.verdict is not Verdict.FAIL for m in before):
        return plain, []
    mix = _solved(context, backward, names)
    after = [_judged(context, backward, mix, name, floor) for name in names]
    if any(m.verdict is Verdict.FAIL for m in after) or mix.plain:
        shares = share_of_samples(context, backward)
        return plain, [_shared(context, shares, max(m.ratio for m in before))] if shares is not None else []
    fault, text, fix = _meaning(context, mix)
    worst, ratio = max(m.ratio for m in before), max(m.ratio for m in after)
    sums = "" if abs(mix.logits) < ROUND else f" + {mix.logits:.6g} times that of the logits' sum"
    evidence = (
        f"{backward.what}: MindSpore's gradient is {mix.loss:.6g} times the loss's own{sums}, to {ratio:.2g} times the "
        f"noise; the loss's own is {worst:.3g} times away"
    )
    return mix, [cause("gradients", "every parameter", fault, text, evidence, ratio, worst, fix)]


def _shared(context: Context, shares: np.ndarray, before: float) -> Cause:
    """What the samples' shares in the gradient speak of; by the recipe each has 1."""
    parts, count = context.recipe.accumulate, len(shares)
    shown = f"the samples' shares, 1 by the recipe, are {', '.join(f'{share:.3g}' for share in shares[:8])}"
    size = count // parts
    kept = np.flatnonzero(np.abs(shares) > ROUND)
    if parts > 1 and len(kept) == size and kept[0] % size == 0 and np.ptp(kept) == size - 1:
        text = f"only the gradients of micro-batch {kept[0] // size + 1} of {parts} are used: they are not added up"
        return cause("gradients", "every parameter", "grad-not-accumulated", text, shown, None, before)
    for cut in range(1, count):
        uneven = np.array([1 / cut] * cut + [1 / (count - cut)] * (count - cut)) * count / 2
        if 2 * cut != count and np.allclose(shares, uneven, rtol=ROUND):
            text = f"the mean of the means of {cut} and {count - cut} samples is taken"
            return cause("gradients", "every parameter", "accumulate-uneven", text, shown, None, before)
    text = "the samples do not weigh alike in the gradient"
    return cause("gradients", "every parameter", "samples-weighted", text, shown, None, before)


def _judged(context: Context, backward: GradientBasis, mix: GradientCombination, name: str, floor: float) -> Measure:
    key = ("gradients", "parameters", name, 0)
    traces = context.traces
    held = family(traces, key)
    exact = held[0].array(key)
    runs = [trace.array(key) for trace in held[1:] if key in trace.entries]
    size = float(np.linalg.norm(exact)) or 1.0
    recorded = max((float(np.linalg.norm(run - exact)) / size for run in runs), default=0.0)
    usual = 0.0 if floor else max(recorded, UsualNoise(held, traces.alone[1]).floor(held[0].entries[key]))
    return judge_prediction(mindspore_values(traces, key), mix.of(backward, name), max(floor, usual))


def _solved(context: Context, backward: GradientBasis, names: Sequence[str]) -> GradientCombination:
    """The least-squares coefficients over all parameters, each weighing alike."""
    rows, values = [], []
    for name in names:
        subject = mindspore_values(context.traces, ("gradients", "parameters", name, 0)).astype(np.float64)
        one, other = backward.loss[name].exact, backward.logits[name].exact
        weight = 1.0 / (np.linalg.norm(subject) or 1.0)
        rows.append(np.stack([one, other], 1) * weight)
        values.append(subject * weight)
    solved = np.linalg.lstsq(np.concatenate(rows), np.concatenate(values), rcond=None)[0]
    loss, logits = float(solved[0]), float(solved[1])
    return GradientCombination(loss, 0.0 if abs(logits) < 1e-6 * max(abs(loss), 1e-30) else logits)


def _meaning(context: Context, mix: GradientCombination) -> tuple[str | None, str, str]:
    """The fault that coefficients speak of, in words, and its fix where the fault's row is not enough."""
    recipe = context.recipe
    scale, parts = scale_at(recipe, context.traces, max(1, first_step(context.traces))), recipe.accumulate
    micro = recipe.data.batch // parts
    if abs(mix.logits) >= ROUND:
        extra = f"{mix.logits:.4g} times the sum of the logits"
        return "value-and-grad-has-aux", f"{extra} is differentiated with the loss", "value_and_grad(…, has_aux=True)"
    if abs(mix.loss) < ROUND:
        return "detach", "the gradients are zero: the loss is cut off from the weights", "no stop_gradient on the way"
    if mix.loss < 0:
        return "gradient-flipped", f"the gradients are {mix.loss:.6g} times torch's: the step goes uphill", ""
    meanings: list[tuple[float, str, str]] = []
    if scale != 1.0:
        hidden = recipe.optimizer.name.rpartition(".")[2] != "SGD"  # divided by its own size, the scale does not show
        left = "loss-scale-hidden-by-adam" if hidden else "loss-scale-not-removed"
        meanings += [(scale, left, "the loss scale is not taken out of the gradients")]
        meanings += [(1 / scale, "loss-scale-removed-twice", "the loss scale is taken out twice")]
        meanings += [
            (scale * parts, "loss-scale-not-removed", "neither the loss scale nor the micro-batches are taken out")
        ]
    if parts > 1:
        meanings += [(float(parts), "accumulate-sum", "the gradients of the micro-batches are summed, not averaged")]
        meanings += [(1.0 / parts, "gradient-factor", "the gradients are divided by the micro-batches twice")]
    if micro > 1:
        meanings += [(float(micro), "vector-loss-sums", f"the loss is summed over the {micro} samples, not averaged")]
        meanings += [(1.0 / micro, "gradient-factor", f"the gradients are divided by the {micro} samples twice")]
        meanings += [(float(micro * parts), "vector-loss-sums", "the loss is summed over all samples, not averaged")]
    for value, fault, text in meanings:
        if abs(mix.loss / value - 1.0) < ROUND:
            return fault, f"{text}: they are {value:.6g} times torch's", ""
    return (
        "gradient-factor",
        f"all gradients are {mix.loss:.6g} times torch's",
        "look for a factor on the loss or a loss scale",
    )


def _one_by_one(
    context: Context, wrong: Sequence[Finding], whole: GradientBasis, mix: GradientCombination
) -> list[Cause]:
    """Parameters whose gradient stays off once the common mix is accounted for, by how it is off."""
    everything = list(whole.loss)
    sorts: dict[str, list[str]] = {}
    numbers: dict[str, tuple[str, float]] = {}
    for finding in wrong:
        key = key_of(finding)
        if finding.part != "parameters" or finding.name not in whole.loss or not comparable(context.traces, key):
            continue
        judged = _judged(context, whole, mix, finding.name, 0.0)
        if judged.verdict is not Verdict.FAIL:
            continue
        found = pattern(mix.of(whole, finding.name).exact, mindspore_values(context.traces, key))
        if not np.any(mindspore_values(context.traces, key)):
            sort = "zero"
        elif _judged(context, whole, mix.times(found.factor), finding.name, 0.0).verdict is not Verdict.FAIL:
            sort = f"{found.factor:.5g}"
        else:
            sort = "other"
        sorts.setdefault(sort, []).append(finding.name)
        numbers.setdefault(sort, (f"{finding.name}: {found}", judged.ratio))
    kinds = owners(context.traces.alone[1], everything)
    causes = []
    for sort, names in sorts.items():
        fault, text = {
            "zero": ("detach", "the gradient is zero: the parameter is cut off from the loss"),
            "-1": ("gradient-flipped", "the gradient has the other sign"),
            "other": (None, "nothing known reproduces the gradient"),
        }.get(sort, (None, f"the gradient is {sort} times what it should be"))
        if sort == "other" and any(module.own for module in context.modules if module.verdict is Verdict.FAIL):
            continue  # the modules say more
        shown, before = numbers[sort]
        where = place(names, everything, kinds)
        causes.append(cause("gradients", where, fault, text, f"{len(names)} gradients; {shown}", None, before))
    return causes


@dataclass(frozen=True)
class GradientBasis:
    """Gradients of the loss and of the logits' sum by parameter, in recorded elements; what they are of, in words."""

    what: str
    loss: dict[str, Prediction]
    logits: dict[str, Prediction]
    samples: tuple[dict[str, np.ndarray], ...] = ()  # of the loss, what each sample adds to it


def step_gradients(context: Context, loss: Loss, step: int) -> GradientBasis | None:
    """The gradients of training step `step`, with MindSpore's choices at kinks; None where torch refuses."""
    if context.options.pair is not None or step > len(context.inputs.images):
        return None
    runs = [or_none(partial(_gradients, context, loss, step, t)) for t in (torch.float64, torch.float32)]
    if runs[0] is None or runs[1] is None:
        return None
    entries = {e.name: e for e in context.mindspore.select("gradients", "parameters")}
    names = [name for name in runs[0][0] if name in entries and entries[name].shape == runs[0][0][name].shape]
    found = [
        {
            name: Prediction(
                _kept(runs[0][i][name], entries[name], context), _kept(runs[1][i][name], entries[name], context)
            )
            for name in names
        }
        for i in (0, 1)
    ]
    return GradientBasis(f"all parameters in step {step}", found[0], found[1])


def _gradients(context: Context, loss: Loss, step: int, dtype: torch.dtype) -> tuple[Arrays, Arrays]:
    recipe, inputs = context.recipe, context.inputs
    model = copy.deepcopy(context.model).to(dtype).train()
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    half = recipe.amp is not None and recipe.amp.level != "O0"
    x = torch.from_numpy(inputs.images[step - 1]).to(dtype)
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


def _kept(array: np.ndarray, entry: Entry, context: Context) -> np.ndarray:
    flat = array.reshape(-1)
    count = context.mindspore.array(entry.key).size
    return flat if count == flat.size else flat[sample_positions(flat.size, count)]


def last_layer_gradients(context: Context, loss: Loss, step: int) -> GradientBasis | None:
    """The gradients of the last linear layer, from the logits and features that MindSpore computed in the first step;
    None where that layer, or what it takes, is not recorded whole."""
    if step != 1:
        return None
    traces, recipe = context.traces, context.recipe
    logits = traces.mindspore.entries.get(("loss", "step1", "logits", 0))
    name, layer = _last_linear(context.model)
    if logits is None or logits.sampled or logits.nonfinite or layer is None or layer.out_features != logits.shape[-1]:
        return None
    x = traces.mindspore.array(logits.key).reshape(logits.shape)
    features = _features(context, layer.in_features, logits.shape[0], name)
    if features is not None and not _leads_to(layer, features, x):
        features = None  # the output before it was another branch's
    labels = context.inputs.labels[0]
    if len(labels) != len(x):
        return None
    parts, found = recipe.accumulate, []
    for dtype in (torch.float64, torch.float32):
        by_loss = or_none(partial(_by_logits, loss, x, labels, parts, dtype))
        if by_loss is None:
            return None
        found.append((by_loss, np.ones_like(by_loss)))
    return GradientBasis(
        "the last layer, from MindSpore's own logits",
        _layer([run[0] for run in found], name, layer, features, context),
        _layer([run[1] for run in found], name, layer, features, context),
        tuple(_of_sample(found[0][0], i, name, layer, features, context) for i in range(len(x))),
    )


def _of_sample(
    by_logits: np.ndarray, i: int, name: str, layer: nn.Linear, features: np.ndarray | None, context: Context
) -> dict[str, np.ndarray]:
    alone = np.zeros_like(by_logits)
    alone[i] = by_logits[i]
    return {key: prediction.exact for key, prediction in _layer([alone, alone], name, layer, features, context).items()}


def share_of_samples(context: Context, backward: GradientBasis) -> np.ndarray | None:
    """What each sample's part of the gradient is multiplied by in MindSpore's; None where that does not explain it."""
    keys = {name: ("gradients", "parameters", name, 0) for name in backward.loss}
    if not backward.samples or not all(comparable(context.traces, key) for key in keys.values()):
        return None
    columns = [np.concatenate([sample[name] for name in keys]) for sample in backward.samples]
    subject = np.concatenate([context.mindspore.array(key) for key in keys.values()]).astype(np.float64)
    matrix = np.stack(columns, 1)
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


def _features(context: Context, width: int, batch: int, name: str) -> np.ndarray | None:
    """What reaches the last layer: the output before it, where that is recorded whole and of one micro-batch."""
    before = None
    for entry in context.mindspore.select("forward", "train"):
        if entry.name == name:
            break
        before = entry
    if before is None:
        return None
    calls = [e for e in context.mindspore.select("forward", "train") if e.name == before.name]
    if any(e.sampled or e.nonfinite or not e.shape for e in calls):
        return None
    arrays = [context.mindspore.array(e.key).reshape(e.shape[0], -1) for e in calls]
    if sum(len(array) for array in arrays) != batch or any(array.shape[1] != width for array in arrays):
        return None
    return np.concatenate(arrays)


def _leads_to(layer: nn.Linear, features: np.ndarray, logits: np.ndarray) -> bool:
    """Whether the layer makes these logits of these features, roughly."""
    with torch.no_grad():
        made = layer(torch.from_numpy(features.astype(np.float32))).numpy()
    return bool(np.linalg.norm(made - logits) < ROUGHLY * np.linalg.norm(logits))


def _by_logits(loss: Loss, logits: np.ndarray, labels: np.ndarray, parts: int, dtype: torch.dtype) -> np.ndarray:
    x = torch.from_numpy(logits).to(dtype).requires_grad_()
    y = torch.from_numpy(labels)
    y = y.to(dtype) if y.is_floating_point() else y
    pairs = zip(x.chunk(parts), y.chunk(parts), strict=True)
    value: Any = sum(loss(a, b).sum() / parts for a, b in pairs)
    (gradient,) = torch.autograd.grad(value, x)
    array: np.ndarray = gradient.numpy()
    return array


def _layer(
    by_logits: list[np.ndarray], name: str, layer: nn.Linear, features: np.ndarray | None, context: Context
) -> dict[str, Prediction]:
    """The layer's gradients from those of its output, float64 and float32."""
    stem = f"{name}." if name else ""
    entries = {e.name: e for e in context.mindspore.select("gradients", "parameters")}
    makes: dict[str, Callable[[np.ndarray], np.ndarray]] = {}
    if layer.bias is not None:
        makes[f"{stem}bias"] = lambda g: np.asarray(g.sum(0))
    if features is not None:
        makes[f"{stem}weight"] = lambda g: np.asarray(g.T @ features.astype(g.dtype))
    return {
        key: Prediction(
            _kept(make(by_logits[0]), entries[key], context), _kept(make(by_logits[1]), entries[key], context)
        )
        for key, make in makes.items()
        if key in entries
    }
