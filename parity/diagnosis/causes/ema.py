"""Why the moving average of the weights differs: its decay, its start, its order, the buffers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from ....printable import few
from ....training.recipe.schema import Ema, decay
from ...record.randomness import GIVEN_STEPS, given_weights
from ...result import Cause
from ...trace import Key
from ...verdict import EPS32, Measure
from ..context import Context, recorded
from ..hypotheses import FLOOR, Hypothesis, Outcome, Prediction, cause, caused, first, golden_section, judge_prediction
from .gradient_scaling import first_step

GIVEN = "given weights ema"
NEAR = 1e-3  # share of a step's change that rounding of the stored average may be
Decay = Callable[[int], float]


def explain(context: Context) -> list[Cause]:
    """Causes of what failed in the moving average."""
    rule = context.recipe.ema
    if rule is None:
        return []
    causes = _rule(rule, context) if context.failed("update", GIVEN) else []
    step = first_step(context.mindspore)
    if causes or not context.failed("update", f"step{step} ema"):
        return causes
    return _buffers(rule, context, step) or _order(context, step)


def between_steps(context: Context) -> list[Cause]:
    """What the moving average of a user's own step does otherwise than the other side's: what it holds, when it is
    taken, and its decay, as far as the first of them tells."""
    paired, step = context.paired, first_step(context.mindspore)
    part = f"step{step} ema"
    if paired is None or not paired.alignment.scope.own_step or not context.failed("update", part):
        return []
    entries = context.mindspore.entries
    wrong = [f.name for f in context.failed("update", part)]
    lacking = [name for name in wrong if ("update", part, name, 0) not in entries]
    if lacking and len(lacking) == len(wrong):
        text = f"the moving average does not hold {few(lacking, 2)}; torch's does"
        fix = "average net.get_parameters(), running statistics included, where torch's averages them; copy them if not"
        return [cause("update", "the moving average", "ema-buffers", text, "", 0.0, fix=fix)]
    names = [e.name for e in context.mindspore.select("update", part) if context.comparable(e.key)]
    names = [
        n for n in names if all(key in entries for key in (("init", "values", n, 0), ("update", f"step{step}", n, 0)))
    ]
    shares = [_share(context, values, step, names) for values in (context.mindspore_values, context.torch_values)]
    if step != 1 or None in shares:
        return []
    mindspore, torch = (round(1.0 - float(share), 4) for share in shares if share is not None)
    if mindspore == torch:
        return []
    evidence = f"of the first update, {shares[0]:.4g} reaches MindSpore's average and {shares[1]:.4g} torch's"
    if mindspore == 1.0:
        text = "the moving average is taken before the update, of the weights as they were"
        return [cause("update", "the moving average", "ema-order", text, evidence, 0.0)]
    text = f"the moving average keeps {mindspore:g} of itself, torch's {torch:g}"
    return [cause("update", "the moving average", "ema-argument", text, evidence, 0.0)]


def _share(context: Context, values: Callable[[Key], np.ndarray], step: int, names: Sequence[str]) -> float | None:
    """How much of a step's change reaches the average that began as the starting weights; None where no one number
    says it."""
    changes = [values(("update", f"step{step}", name, 0)).astype(np.float64) for name in names]
    starts = [context.mindspore_values(("init", "values", name, 0)).astype(np.float64) for name in names]
    averages = [values(("update", f"step{step} ema", name, 0)).astype(np.float64) for name in names]
    if not names or any(len({a.size, b.size, c.size}) > 1 for a, b, c in zip(changes, starts, averages, strict=True)):
        return None
    change = np.concatenate(changes)
    moved = np.concatenate([average - start for average, start in zip(averages, starts, strict=True)])
    share = float(change @ moved / (change @ change)) if change.any() else 0.0
    return share if np.linalg.norm(moved - share * change) < NEAR * np.linalg.norm(change) else None


def _rule(rule: Ema, context: Context) -> list[Cause]:
    entries = context.mindspore.entries
    names = [e.name for e in context.mindspore.select("update", GIVEN) if context.comparable(e.key)]
    names = [name for name in names if ("init", "values", name, 0) in entries]
    few = sorted(names, key=lambda name: entries["update", GIVEN, name, 0].norm)[-3:]

    def outcome(at: Decay, of: Sequence[str] = names) -> Outcome:
        return Outcome.of({name: _given(context, name, at) for name in of})

    before = outcome(partial(decay, rule))
    if before.reproduces:
        return []
    wrong = [name for name in names if name in before.failing]
    where = f"ema of {context.place(wrong, names)}"
    tries = (each for each in _decays(rule, context, few) if outcome(each.change, few).reproduces)
    found = first(tries, outcome, before)
    if found is not None:
        evidence = (
            f"{GIVEN_STEPS} averages of given weights: {found.outcome.worst:.2g} times the noise, by the "
            f"recipe {before.worst:.3g}"
        )
        return [caused("update", where, found, evidence)]
    text = "no known rule gives MindSpore's moving average of given weights"
    return [cause("update", where, None, text, "", None, before.worst)]


def _decays(rule: Ema, context: Context, few: Sequence[str]) -> Iterator[Hypothesis[Decay]]:
    """Other decays at the update that is counted from one; `few`: the names that a factor is fitted to."""
    argument = partial(Hypothesis[Decay], "ema-argument", fix=f"decay={rule.decay}")
    text = "the average takes in the decay's share of each weight, not 1 - decay"
    yield Hypothesis("ema-decay-complement", text, lambda i: 1.0 - decay(rule, i))
    yield argument("the average is never moved", lambda i: 1.0)
    yield argument("the average is a copy of the weights", lambda i: 0.0)
    if rule.warmup or rule.update_after_step:
        yield Hypothesis("ema-warmup", "the decay does not warm up", lambda i: rule.decay)
    text = "the decay warms up as (1 + n) / (10 + n)"
    yield Hypothesis("ema-warmup", text, lambda i: min(rule.decay, (1 + i) / (10 + i)))
    text = "the decay rises as decay · (1 - exp(-n / 2000)), mindcv's"
    yield Hypothesis("ema-buffers", text, lambda i: rule.decay * (1 - math.exp(-i / 2000)))
    yield argument("the updates are counted from one less", lambda i: decay(rule, max(i - 1, 1)))
    yield argument("the updates are counted from one more", lambda i: decay(rule, i + 1))
    for field, info in Ema.model_fields.items():
        default, value = info.default, getattr(rule, field)
        if default == value or not isinstance(default, (int, float)):
            continue
        try:
            other = Ema(**{**rule.model_dump(), field: default})
        except ValueError:
            continue
        yield argument(f"{field} is {default} (the default) where the recipe has {value}", partial(decay, other))

    def taking(factor: float) -> Decay:
        return lambda i: 1.0 - factor * (1.0 - decay(rule, i))

    factor = golden_section(lambda x: sum(_given(context, name, taking(x)).relative for name in few), 0.2, 5.0)
    yield argument(
        f"each update takes {factor:.5g} times the recipe's share (1 - decay) of the weights", taking(factor)
    )


def _given(context: Context, name: str, at: Decay) -> Measure:
    """The average of the given weights of one parameter under a rule, judged against MindSpore's."""
    key = ("update", GIVEN, name, 0)
    shape, subject = context.mindspore.entries[key].shape, context.mindspore_values(key)
    start = context.mindspore_values(("init", "values", name, 0))
    runs = []
    for dtype in (np.float64, np.float32):
        average: np.ndarray = start.astype(dtype)
        for i in range(1, GIVEN_STEPS + 1):
            given = recorded(given_weights(name, shape, i), subject.size).astype(dtype)
            average = np.asarray(average + dtype(1.0 - at(i)) * (given - average), dtype)
        runs.append(np.subtract(average, start, dtype=np.float64))
    return judge_prediction(subject, Prediction(runs[0], runs[1]), FLOOR, 2 * context.storing(name))


def _buffers(rule: Ema, context: Context, step: int) -> list[Cause]:
    """The average of the buffers: left at the start, or a copy of them."""
    ratios: dict[str, float] = {}
    shares = {"averaged": 1.0 - decay(rule, step), "left": 0.0, "copied": 1.0}
    for entry in context.mindspore.select("update", f"step{step} buffers"):
        keys = (entry.key, ("update", f"step{step} ema", entry.name, 0), ("init", "values", entry.name, 0))
        if not entry.norm > 0.0 or any(key not in context.mindspore.entries for key in keys):
            continue
        change, average, start = (context.mindspore_values(key).astype(np.float64) for key in keys)
        for how, share in shares.items():
            ratio = judge_prediction(average, Prediction.rounded(start + share * change), EPS32).ratio
            ratios[how] = max(ratios.get(how, 0.0), ratio)
    how = min(ratios, key=ratios.__getitem__, default="averaged")
    if how == "averaged" or ratios[how] > 4.0:
        return []
    left, copied = "the average leaves the buffers as they were", "the buffers are copied, not averaged"
    evidence = f"after step {step}: {ratios[how]:.2g} times the noise, averaged {ratios['averaged']:.3g} times"
    text = left if how == "left" else copied
    return [cause("update", "ema of every buffer", "ema-buffers", text, evidence, ratios[how], ratios["averaged"])]


def _order(context: Context, step: int) -> list[Cause]:
    """The average taken before the update of the weights."""
    entries = context.mindspore.entries
    names = [e.name for e in context.mindspore.select("update", f"step{step}")]
    names = [name for name in names if ("update", f"step{step} ema", name, 0) in entries]
    pairs = [(("update", f"step{step} ema", name, 0), ("init", "values", name, 0)) for name in names]
    if (
        step != 1
        or not names
        or any(
            not np.array_equal(context.mindspore_values(one), context.mindspore_values(start))
            for one, start in pairs
            if start in entries
        )
    ):
        return []
    text = "the average is taken before the update: after the first step it is still the starting weights"
    return [cause("update", "ema", "ema-order", text, f"{len(names)} averages equal to the bit", 0.0)]
