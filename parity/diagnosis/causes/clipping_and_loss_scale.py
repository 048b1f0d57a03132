"""Why the factors that gradients are multiplied by on their way to the optimizer differ: the loss scale, clipping, and
the rate in a step of which nothing else is known.

Each is computed from what MindSpore itself recorded before it, so that a fault upstream is not reported here again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf, log2

import numpy as np

from ....training.recipe.schema import Recipe
from ...compare_traces import Traces
from ...record.recorder import NORMS, REDUCED
from ...result import Cause
from ...tensor_verdict import EPS32
from ...trace import REDUCED_GRADIENTS, Key, Part, Trace
from ..context import Context, key_of
from ..differences import pattern
from ..hypotheses import Hypothesis, Outcome, Prediction, cause, caused, first, judge_prediction
from ..mutations.optimizers import CLIP_EPS, Rates, predictions

Arrays = Mapping[Key, np.ndarray]
PART = "given norms"
NEAR = 4e-7  # how near a hypothesis's factors have to be: norms are computed from float32 values
NORM_FLOOR = 2e-6  # a norm is recorded from a float32 sum over the whole tensor
MOVED = 1e-3  # share of a step's change that a multiple of torch's may leave unexplained: weights are float32
CLEAR = 0.2  # share of a difference that a factor which explains it may leave


def given_norms(context: Context) -> list[Cause]:
    """The cause of failures with given norms, by the factor that MindSpore multiplied the gradients by at each norm."""
    clip, shares = context.recipe.clip, _shares(context.traces)
    if clip is None or not context.failed("update", PART) or shares is None:
        return []
    norms, largest = np.array(NORMS), clip.max_norm
    factors = shares * np.minimum(1.0, largest / (norms * largest + CLIP_EPS))

    def outcome(expected: np.ndarray) -> Outcome:
        left = float(np.max(np.abs(factors / expected - 1.0)))
        return Outcome({"factors": left / NEAR}, frozenset(["factors"] if left > NEAR else []))

    off = float(np.max(np.abs(shares - 1.0)))
    found = first(_clippings(norms, largest), outcome, Outcome({"factors": off / NEAR}, frozenset(["factors"])))
    if found is None or off <= NEAR:
        return []
    evidence = (
        f"gradients with {', '.join(f'{norm:g}' for norm in NORMS)} times the allowed norm are multiplied by "
        f"{', '.join(f'{factor:.8g}' for factor in factors)}: to {found.outcome.worst * NEAR:.1g} as if "
        f"{found.chain[0].text}; torch's factors are {off:.2g} away"
    )
    return [caused("update", "every parameter", found, evidence)]


def _shares(traces: Traces) -> np.ndarray | None:
    """The norm of all gradients after MindSpore's clipping, divided by torch's, for each given norm."""
    found = []
    for norm in NORMS:
        key = ("update", PART, f"gradients' norms at {norm:g}", 0)
        of_torch, of_mindspore = traces.alone[0].entries.get(key), traces.mindspore.entries.get(key)
        if of_torch is None or of_mindspore is None or of_torch.shape != of_mindspore.shape:
            return None
        if of_mindspore.nonfinite or of_torch.sampled:
            return None
        exact = float(np.linalg.norm(traces.alone[0].array(key)))
        found.append(float(np.linalg.norm(traces.mindspore.array(key))) / exact)
    return np.array(found)


def _clippings(norms: np.ndarray, largest: float) -> Iterator[Hypothesis[np.ndarray]]:
    text = "clipped without the 1e-6 that torch adds to the norm"
    yield Hypothesis("clip-global-eps", text, np.minimum(1.0, 1.0 / norms))
    yield Hypothesis("clip-missing", "the gradients are not clipped", np.ones_like(norms))
    always = "gradients below the norm are scaled up to it"
    yield Hypothesis("clip-always", always, largest / (norms * largest + CLIP_EPS))
    yield Hypothesis("clip-always", f"{always}, without torch's 1e-6", 1.0 / norms)


def first_step(mindspore: Trace) -> int:
    """The first step that updated the weights, counted from 1: its gradients are the recorded ones."""
    steps = [int(m[1]) for e in mindspore.select("update") if (m := re.fullmatch(r"step(\d+)", e.part))]
    return min(steps, default=0)


def first_update(context: Context, rates: Mapping[str, Rates], kind: str, switches: frozenset[str]) -> list[Cause]:
    """What was done to the recorded gradients before the first update with them."""
    entries, step = context.mindspore.entries, first_step(context.mindspore)
    names = [
        e.name
        for e in context.mindspore.select("gradients", "parameters")
        if e.name in rates and context.comparable(("update", f"step{step}", e.name, 0)) and not e.nonfinite
    ]
    if not names or step > len(next(iter(rates.values()))[0]):
        return []
    norm = float(np.sqrt(sum(entries["gradients", "parameters", name, 0].norm ** 2 for name in names)))
    usual = _clip(context.recipe, norm, 1.0)

    def prediction(name: str, factor: float) -> Prediction:
        lrs, decays, args = rates[name]
        gradient = context.mindspore_values(("gradients", "parameters", name, 0)).astype(np.float64) * factor
        weight, at = context.mindspore_values(("init", "values", name, 0)), slice(step - 1, step)
        return predictions(kind, weight, [gradient], (lrs[at], decays[at], args), switches)[""]

    def outcome(factor: float) -> Outcome:
        return Outcome.of(
            {
                name: judge_prediction(
                    context.mindspore_values(("update", f"step{step}", name, 0)),
                    prediction(name, factor),
                    NORM_FLOOR,
                    2 * context.storing(name),
                )
                for name in names
            }
        )

    before = outcome(usual)
    if before.reproduces:
        return []
    wrong = [name for name in names if name in before.failing]
    where = context.place(wrong, names)
    possible = [each for each in _possible_factors(context, step, norm) if each.change != usual]
    found = first(possible, outcome, before)
    if found is not None:
        evidence = (
            f"step {step} from MindSpore's own gradients, whose norm is {norm:.4g}: multiplied by "
            f"{found.chain[0].change:.4g} instead of {usual:.4g} they give its update to {found.outcome.worst:.2g} "
            f"times the noise, unchanged to {before.worst:.3g}"
        )
        return [caused("update", where, found, evidence)]
    exact = prediction(wrong[0], usual).exact
    how = pattern(exact, context.mindspore_values(("update", f"step{step}", wrong[0], 0)))
    text = "the update of a whole step does not follow from its own gradients, though the optimizer alone is right"
    return [cause("update", where, None, text, f"step {step}, {wrong[0]}: {how}", None, before.worst)]


SAME = 1e-3  # share of the gradients that a factor may leave, where two steps compute in float32 and float64
TIDY = 1e-4  # how near a norm has to be to a round number, as people write them


def between_steps(context: Context) -> list[Cause]:
    """What two steps, one of them the user's own, do differently to the gradients that their optimizers are given: one
    factor between all gradients shows it."""
    paired, part = context.paired, "parameters"
    if paired is None or not paired.alignment.scope.own_step or not context.failed("gradients", part):
        return []
    keys = [entry.key for entry in context.mindspore.select("gradients", part) if context.comparable(entry.key)]
    if not keys:
        return []
    x = np.concatenate([context.torch_values(key) for key in keys])
    y = np.concatenate([context.mindspore_values(key) for key in keys]).astype(np.float64)
    factor = float(x @ y / (x @ x)) if x.any() else 0.0
    if factor <= 0.0 or np.linalg.norm(y - factor * x) > SAME * np.linalg.norm(y):
        return _clipped_apart(context, keys)
    norms = [
        float(np.sqrt(sum(trace.entries[key].norm ** 2 for key in keys)))
        for trace in (context.family(keys[0])[0], context.mindspore)
    ]
    fault, text, fix = _fault_of(factor, *norms)
    evidence = (
        f"all gradients that MindSpore's optimizer is given are {factor:.6g} times torch's; their norm is "
        f"{norms[1]:.5g}, torch's {norms[0]:.5g}"
    )
    return [cause("gradients", "every parameter", fault, text, evidence, 0.0, fix=fix)]


APART = {  # ways to clip gradients that change their common direction: the fault, its text, and the call
    "norm": ("clip-per-tensor", "each gradient by itself is clipped to a norm of", "ops.clip_by_norm(grad, {at})"),
    "value": ("clip-by-value", "each element is clipped at", "ops.clip_by_value(grad, -{at}, {at})"),
}


def _clipped_apart(context: Context, keys: Sequence[Key]) -> list[Cause]:
    """Gradients that one side's step clips tensor by tensor, or element by element, at one number, and the other does
    not."""
    of_torch = {key: context.torch_values(key).astype(np.float64) for key in keys}
    of_mindspore = {key: context.mindspore_values(key).astype(np.float64) for key in keys}
    traces = {"MindSpore": context.mindspore, "torch": context.family(keys[0])[0]}
    norms = {side: {key: trace.entries[key].norm for key in keys} for side, trace in traces.items()}
    for side, cut, whole in (("MindSpore", of_mindspore, of_torch), ("torch", of_torch, of_mindspore)):
        largest = max(float(np.abs(values).max()) for values in cut.values())
        for by, at in (("norm", max(norms[side].values())), ("value", largest)):
            count = (_at_norm(cut, whole, norms[side], at) if by == "norm" else _at_value(cut, whole, at)) if at else 0
            if count < 2:
                continue
            shown = f"{_tidy(at) or at:g}"
            fault, text, call = APART[by]
            evidence = f"{count} {'gradients' if by == 'norm' else 'elements'} reach that number, and none exceeds it"
            text, fix = f"{text} {shown}", f"{call.format(at=shown)} for every gradient, before the optimizer"
            if side == "torch":
                text = f"in torch's step {text}, and in MindSpore's it is not"
                return [cause("gradients", "every parameter", None, text, evidence, 0.0, fix=fix)]
            together = _tidy(float(np.sqrt(sum(norm**2 for norm in norms["torch"].values()))))
            text += f", in torch all together to a norm of {together:g}" if together else ", and in torch it is not"
            fix = f"grads = ops.clip_by_norm(grads, {together:g})" if together else "leave the gradients as they are"
            return [cause("gradients", "every parameter", fault, text, evidence, 0.0, fix=fix)]
    return []


def _at_norm(cut: Arrays, whole: Arrays, norms: Mapping[Key, float], at: float) -> int:
    """How many tensors are cut to a norm, where all others equal the other side's up to one factor; 0 otherwise."""
    shares = {key: float(cut[key] @ whole[key] / (whole[key] @ whole[key] or 1.0)) for key in cut}
    if any(np.linalg.norm(cut[key] - shares[key] * whole[key]) > SAME * np.linalg.norm(cut[key]) for key in cut):
        return 0
    those = [key for key in cut if norms[key] > at * (1.0 - TIDY)]
    rest = [shares[key] for key in cut if key not in those]
    top = max(shares[key] for key in those)
    alike = not rest or (min(rest) > max(rest) * (1.0 - SAME) and min(rest) > top * (1.0 - SAME))
    return len(those) if alike and min(shares.values()) > 0.0 else 0


def _at_value(cut: Arrays, whole: Arrays, at: float) -> int:
    """How many elements are cut at a number, where all others equal the other side's up to one factor; 0 otherwise."""
    y, x = np.concatenate(list(cut.values())), np.concatenate(list(whole.values()))
    those = np.abs(y) > at * (1.0 - TIDY)
    rest = x[~those]
    factor = float(rest @ y[~those] / (rest @ rest or 1.0))
    same = np.linalg.norm(y[~those] - factor * rest) <= SAME * np.linalg.norm(y[~those])
    return int(those.sum()) if same and (np.sign(y) * x * factor > at * (1.0 - SAME))[those].all() else 0


def behind_the_reducer(context: Context) -> list[Cause]:
    """Clipping before the reducer, where torch clips after it: gradients that the reducer returns REDUCED times as
    large stay that large."""
    wrong = [key_of(finding) for finding in context.failed("gradients", REDUCED_GRADIENTS)]
    keys = [(key, ("gradients", "parameters", *key[2:])) for key in wrong]
    if not keys or not all(context.comparable(key) for pair in keys for key in pair):
        return []

    def times(values: Callable[[Key], np.ndarray]) -> float:
        reduced, plain = (np.concatenate([values(pair[i]) for pair in keys]) for i in (0, 1))
        return float(np.linalg.norm(reduced) / (np.linalg.norm(plain) or 1.0))

    mindspore, torch = times(context.mindspore_values), times(context.torch_values)
    evidence = (
        f"where the processes' gradients become {REDUCED:g} times this one's, MindSpore's optimizer is given "
        f"{mindspore:.5g} times what it was, and torch's {torch:.5g} times"
    )
    if abs(mindspore / REDUCED - 1.0) > SAME or torch > mindspore * (1.0 - SAME):
        text = "the gradients are clipped after the reducer, but not as torch clips them"
        return [cause("gradients", "every parameter", None, text, evidence, None, 0.0)]
    text = "each process clips its own gradients before the reducer averages them; torch's are averaged first"
    if abs(torch - 1.0) > SAME:  # the compared gradients were not clipped
        text = "the gradients that the reducer returns are not clipped: torch clips gradients after they are averaged"
    fix = "grads = self.grad_reducer(grads) first, then clip what it returns, then the optimizer"
    return [cause("gradients", "every parameter", "clip-before-allreduce", text, evidence, 0.0, fix=fix)]


KEPT = {
    "MindSpore": "set the sums to zero after each update, before the next call adds to them: "
    "ops.assign(total, ops.zeros_like(total)) for each, or a new list",
    "torch": "write optimizer.zero_grad() in torch's step, which adds to .grad; if the sums are intended, keep them in "
    "MindSpore's step, too",
}


def kept_from_before(context: Context) -> list[Cause]:
    """Gradients of later updates that contain those of the update before: sums that either step did not clear."""
    parts = [e.part for e in context.mindspore.select("gradients") if e.part.step is not None]
    sides = {"MindSpore": context.mindspore_values, "torch": context.torch_values}
    for before, part in pairwise([Part("parameters"), *dict.fromkeys(parts)]):
        names = [finding.name for finding in context.failed("gradients", part)]
        keys = {name: [("gradients", of, name, 0) for of in (part, before)] for name in names}
        if not names or not all(context.comparable(key) for pair in keys.values() for key in pair):
            continue
        for side, other in (("MindSpore", "torch"), ("torch", "MindSpore")):
            found = _kept(
                {name: (sides[side](now), sides[other](now), sides[side](then)) for name, (now, then) in keys.items()}
            )
            if found is None:
                continue
            new, old, left = found
            kept = [name for name, share in old.items() if share > SAME]
            text = f"{side}'s step keeps its gradients: those of step {part.step} are added to the previous update's"
            evidence = (
                f"{side}'s optimizer is given, in step {part.step}, {new:.4g} times {other}'s gradients plus "
                f"{old[kept[0]]:.4g} times its own of the update before, to {left:.1g} of their size"
            )
            where = context.place(kept, [e.name for e in context.mindspore.select("gradients", part)])
            return [cause("gradients", where, None, text, evidence, 0.0, fix=KEPT[side])]
    return []


def _kept(held: Mapping[str, tuple[np.ndarray, ...]]) -> tuple[float, dict[str, float], float] | None:
    """Gradients as one multiple of the other side's plus, by name, a multiple of their own of the update before: both
    multiples and the share left over; None where the gradients are no such sum. held: name -> (gradient, the other
    side's, the one before)."""
    rows = {name: tuple(np.asarray(each, np.float64) for each in three) for name, three in held.items()}

    def without(values: np.ndarray, before: np.ndarray) -> np.ndarray:
        return np.asarray(values - before * float(values @ before / (before @ before or 1.0)))

    y = np.concatenate([without(now, before) for now, _, before in rows.values()])
    x = np.concatenate([without(other, before) for _, other, before in rows.values()])
    size = float(np.linalg.norm(np.concatenate([now for now, _, _ in rows.values()])))
    if float(np.linalg.norm(x)) <= SAME * size:
        return None  # parallel to those of the update before: the two cannot be told apart
    new = float(x @ y / (x @ x))
    left = float(np.linalg.norm(y - new * x)) / size
    old = {
        name: float((now - new * other) @ before / (before @ before or 1.0))
        for name, (now, other, before) in rows.items()
    }
    shares = [share for share in old.values() if abs(share) > SAME]
    alike = bool(shares) and 0.0 < max(shares) < min(shares) * (1.0 + CLEAR)
    return (new, old, left) if left <= SAME and new > SAME and alike else None


def _fault_of(factor: float, torch_norm: float, mindspore_norm: float) -> tuple[str | None, str, str]:
    """The fault behind a factor between all gradients, its text, and its fix where the fault's row does not say it."""
    clips = [_tidy(torch_norm), _tidy(mindspore_norm)]
    if all(clips):
        text = f"the gradients are clipped to a norm of {clips[1]:g}, in torch to one of {clips[0]:g}"
        return "clip-argument", text, ""
    if clips[0] and factor > 1.0:
        text = f"torch's step clips the gradients to a norm of {clips[0]:g}, and MindSpore's does not"
        return "clip-missing", text, ""
    if clips[1] and factor < 1.0:
        return "clip-always", f"the gradients are clipped to a norm of {clips[1]:g}, and torch's are not", ""
    if (scale := _scale_besides(factor)) is not None:
        text = (
            f"the optimizer is given 1 + 1/{scale} times torch's gradients: besides the loss scaled by {scale}, "
            "value_and_grad differentiates the unscaled loss, which its function also returns"
        )
        return "value-and-grad-has-aux", text, ""
    times, parts = round(factor), round(1.0 / factor)
    if times > 1 and abs(factor / times - 1.0) < SAME:
        text = (
            f"the optimizer is given {times} times torch's gradients: {times} are added and not divided by their number"
            f", or a loss scale of {times} is not taken out, or value_and_grad differentiates the loss {times} times, "
            "as its function returns it several times"
        )
        fix = (
            "divide the loss, or the gradients by the scale; has_aux=True where the function returns more than the loss"
        )
        return "accumulate-sum", text, fix
    if parts > 1 and abs(factor * parts - 1.0) < SAME:
        text = f"the optimizer is given torch's gradients divided by {parts}, once more than in torch"
        return "gradient-factor", text, ""
    return None, f"the optimizer is given {factor:.6g} times torch's gradients", ""


def _scale_besides(factor: float) -> int | None:
    """The power of two S for which a factor is 1 + 1/S, from 64 on, as loss scales are; else None."""
    if not 1.0 < factor < 1.02:
        return None
    scale = 2 ** round(log2(1.0 / (factor - 1.0)))
    return scale if abs((factor - 1.0) * scale - 1.0) < 0.05 else None


def _tidy(norm: float) -> float | None:
    """The number of at most two digits that a norm equals, as after clipping to that number; else None."""
    written = float(f"{norm:.2g}")
    return written if norm > 0.0 and abs(norm / written - 1.0) < TIDY else None


def _clip(recipe: Recipe, norm: float, scale: float) -> float:
    return min(1.0, recipe.clip.max_norm / (scale * norm + CLIP_EPS)) if recipe.clip else 1.0


def _possible_factors(context: Context, step: int, norm: float) -> Iterator[Hypothesis[float]]:
    """What gradients may have been multiplied by."""
    recipe, scale, parts = context.recipe, scale_at(context, step), context.recipe.accumulate
    if recipe.clip:
        text = "gradients are clipped before they are unscaled"
        yield Hypothesis("clip-before-unscale", text, _clip(recipe, norm, scale))
        text = "the sum of the micro-batches is clipped, then divided"
        yield Hypothesis("clip-on-accumulated-sum", text, _clip(recipe, norm, parts))
        yield Hypothesis("clip-before-unscale", "the scaled sum is clipped", _clip(recipe, norm, scale * parts))
        yield Hypothesis("clip-missing", "the gradients are not clipped", 1.0)
        text = "gradients below the norm are scaled up to it"
        yield Hypothesis("clip-always", text, recipe.clip.max_norm / (norm + CLIP_EPS))
    usual = _clip(recipe, norm, 1.0)
    if scale != 1.0:
        yield Hypothesis("optimizer-loss-scale", "the optimizer divides by the loss scale once more", usual / scale)
        yield Hypothesis("loss-scale-not-removed", "the optimizer is given scaled gradients", usual * scale)
    if parts > 1:
        yield Hypothesis("accumulate-sum", "the optimizer is given the sum of the micro-batches", usual * parts)
        text = "the optimizer is given gradients divided by the micro-batches again"
        yield Hypothesis("gradient-factor", text, usual / parts)


def scale_at(context: Context, step: int) -> float:
    """The loss scale that MindSpore had when a step began; 1 without one."""
    key = ("update", "loss scale", f"step{step - 1} scale", 0)
    entry, rule = context.mindspore.entries.get(key), context.recipe.dynamic_loss_scale
    if entry is not None and entry.shape == (1,):
        return float(context.mindspore_values(key)[0])
    return rule.init_scale if rule is not None else context.recipe.loss_scale or 1.0


def loss_scaling(context: Context) -> list[Cause]:
    """Why the loss scale, or which steps were skipped, differ."""
    rule = context.recipe.dynamic_loss_scale
    scales, finite = series(context.mindspore, "scale"), series(context.mindspore, "finite")
    if not context.failed("update", "loss scale") or rule is None or not scales or len(scales) != len(finite):
        return []
    begins, grows, shrinks, every = rule.init_scale, rule.growth_factor, rule.backoff_factor, rule.growth_interval

    def outcome(change: dict[str, float]) -> Outcome:
        given = {"scale": begins, "grow": grows, "shrink": shrinks, "every": every, **change}
        made = _scales(finite=finite, **given)
        same = len(made) == len(scales) and np.allclose(made, scales, rtol=4 * EPS32, atol=0.0)
        return Outcome({"scales": 0.0 if same else inf}, frozenset([] if same else ["scales"]))

    expected = _scales(begins, grows, shrinks, every, finite)
    tries: list[tuple[str, dict[str, float]]] = []
    for other in (every + 1, max(every - 1, 1), 2 * every, 2000, 1000, 10**9):
        when = "never" if other == 10**9 else f"after {other} good steps"
        tries.append((f"grows {when}, where the recipe says {every}", {"every": other}))
    for factor in (2.0, 1.0 / shrinks, 1.0):
        tries.append((f"grows by {factor:g}, where the recipe says {grows:g}", {"grow": factor}))
    for factor in (0.5, 1.0 / grows, 1.0):
        tries.append((f"shrinks by {factor:g}, where the recipe says {shrinks:g}", {"shrink": factor}))
    for factor in (65536.0, 2.0**24, 1024.0, 1.0):
        tries.append((f"begins at {factor:g}, where the recipe says {begins:g}", {"scale": factor}))
    hypotheses = [Hypothesis("loss-scale-rule", f"the scale {text}", change) for text, change in tries]
    before = outcome({})
    if before.reproduces:
        return []
    found = first(hypotheses, outcome, before)
    if found is not None:
        evidence = (
            f"scales {_list(scales)} after steps that were {_list(finite)} finite; by the recipe {_list(expected)}"
        )
        return [cause("update", "loss scale", found.chain[0].fault, found.chain[0].text, evidence, 0.0)]
    evidence = f"MindSpore {_list(scales)}, by the recipe {_list(expected)}"
    return [cause("update", "loss scale", None, "no known rule gives MindSpore's loss scale", evidence)]


def another_rate(context: Context) -> list[Cause]:
    """A user's own step that moves parameters by a multiple of torch's change although the gradients agree; nothing
    else is known of its optimizer. One cause for each multiple, since parameter groups may have rates of their own."""
    step = first_step(context.mindspore)
    part = f"step{step}"
    names = [e.name for e in context.mindspore.select("update", part) if context.comparable(e.key)]
    wrong = [finding for finding in context.failed("update", part) if finding.name in names]
    if not wrong or context.failed("gradients"):
        return []
    multiples: dict[str, float] = {}
    for finding in wrong:
        torch = context.torch_values(key_of(finding)).astype(np.float64)
        now = context.mindspore_values(key_of(finding)).astype(np.float64)
        multiple = float(now @ torch / (torch @ torch)) if torch.any() else 0.0
        if multiple <= 0 or np.linalg.norm(now - multiple * torch) > MOVED * np.linalg.norm(now):
            return []
        multiples[finding.name] = multiple
    found: list[Cause] = []
    for near in sorted({float(f"{multiple:.4g}") for multiple in multiples.values()}):
        moved = [name for name, multiple in multiples.items() if float(f"{multiple:.4g}") == near]
        text = f"MindSpore's step moves them {near:g} times as far as torch's does, as with another learning rate"
        evidence = (
            f"their gradients agree, and their change in step {step} is {near:g} times torch's to {MOVED:g} of it"
        )
        fix = f"make their learning rate {1 / near:.4g} times what it is"
        place = context.place(moved, names)
        found.append(cause("update", place, "optimizer-argument", text, evidence, 0.0, fix=fix))
    return found


def statistics_decayed(context: Context) -> list[Cause]:
    """Running statistics that the optimizer decays, which happens if it is given all of get_parameters()."""
    step = first_step(context.mindspore)
    part = f"step{step} buffers"
    names = [e.name for e in context.mindspore.select("update", part) if context.comparable(e.key)]
    names = [name for name in names if ("init", "values", name, 0) in context.mindspore.entries]
    failed = {f.name for f in context.failed("update", part)}
    wrong = [name for name in names if name in failed]
    args = context.recipe.optimizer.args
    shrunk = args.get("lr", 0.0) * args.get("weight_decay", 0.0)
    if not wrong or not shrunk or len(wrong) < len(names) / 2:
        return []
    now, torch = [], []
    for name in wrong:
        start = context.mindspore_values(("init", "values", name, 0)).astype(np.float64)
        now.append(start + context.mindspore_values(("update", part, name, 0)))
        torch.append(start + context.traces.matched[0].array(("update", part, name, 0)))
    x, y = np.concatenate(torch), np.concatenate(now)
    factor = float(x @ y / (x @ x))
    left = float(np.linalg.norm(y - factor * x) / np.linalg.norm(x))
    lost = (1.0 - factor) / shrunk
    if left > max(4 * EPS32, CLEAR * (1.0 - factor)) or not 0.01 < lost < 10.0:
        return []
    text = "the weight decay reaches the running statistics: the optimizer is given get_parameters()"
    evidence = f"all of them are {factor:.8f} times torch's after step {step}; lr times weight_decay is {shrunk:.2g}"
    return [cause("update", "buffers: every running mean and variance", "bn-stats-are-parameters", text, evidence, 0.0)]


def overflowing_steps(traces: Traces) -> list[int]:
    """The steps that torch skips because their gradients overflow, and MindSpore takes."""
    pairs = zip(series(traces.matched[1], "finite"), series(traces.mindspore, "finite"), strict=False)
    return [i for i, (of_torch, of_mindspore) in enumerate(pairs, 1) if of_mindspore and not of_torch]


def series(trace: Trace, what: str) -> list[float]:
    """The recorded values after each step of one quantity of the loss scale: "scale", "finite" or "good steps"."""
    entries = [e for e in trace.select("update", "loss scale") if re.fullmatch(rf"step\d+ {what}", e.name)]
    return [float(trace.array(entry.key)[0]) for entry in entries if entry.shape == (1,)]


def _scales(scale: float, grow: float, shrink: float, every: float, finite: Sequence[float]) -> list[float]:
    """torch.amp.GradScaler's rule after each step."""
    good, scales = 0, []
    for fine in finite:
        scale, good = (scale, good + 1) if fine else (scale * shrink, 0)
        if good == every:
            scale, good = scale * grow, 0
        scales.append(scale)
    return scales


def _list(values: Sequence[float]) -> str:
    return "[" + ", ".join(f"{value:g}" for value in values) + "]"
