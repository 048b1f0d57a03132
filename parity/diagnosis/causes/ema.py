"""Why the moving average of the weights differs: its decay, its start, its order, the buffers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from ....training.recipe.schema import Ema, Recipe, decay
from ...compare import Traces
from ...record.randomness import GIVEN_STEPS, given_weights
from ...result import Cause, Finding
from ...trace import sample_positions
from ...verdict import EPS32, FLOOR_ULPS, Measure, Verdict
from ..context import owners, place
from ..evidence import Prediction, cause, comparable, failed, judge_prediction, storing
from .clipping import first_step

GIVEN = "given weights ema"
Decay = Callable[[int], float]


def explain(recipe: Recipe, traces: Traces, findings: Sequence[Finding]) -> list[Cause]:
    """Causes of what failed in the moving average."""
    rule = recipe.ema
    if rule is None:
        return []
    causes = _rule(rule, traces) if failed(findings, "update", GIVEN) else []
    step = first_step(traces)
    wrong = failed(findings, "update", f"step{step} ema")
    if causes or not wrong:
        return causes
    return _buffers(rule, traces, step) or _order(rule, traces, step)


def _rule(rule: Ema, traces: Traces) -> list[Cause]:
    names = [e.name for e in traces.mindspore.select("update", GIVEN) if comparable(traces, e.key)]
    names = [name for name in names if ("init", "values", name, 0) in traces.mindspore.entries]

    def measures(at: Decay, of: Sequence[str]) -> list[Measure]:
        return [_given(traces, name, at) for name in of]

    before = measures(lambda i: decay(rule, i), names)
    if all(m.verdict is not Verdict.FAIL for m in before):
        return []
    worst = max(m.ratio for m in before)
    wrong = [name for name, m in zip(names, before, strict=True) if m.verdict is Verdict.FAIL]
    where = place(wrong, names, owners(traces.alone[1], names))
    few = sorted(names, key=lambda name: traces.mindspore.entries[("update", GIVEN, name, 0)].norm)[-3:]
    tries = [*_decays(rule), *_fitted(rule, traces, few)]
    for fault, text, at in tries:
        if any(m.verdict is Verdict.FAIL for m in measures(at, few)):
            continue
        found = measures(at, names)
        if all(m.verdict is not Verdict.FAIL for m in found):
            ratio = max(m.ratio for m in found)
            steps = GIVEN_STEPS
            evidence = f"{steps} averages of given weights: {ratio:.2g} times the noise, by the recipe {worst:.3g}"
            fix = f"decay={rule.decay}" if fault == "ema-argument" else ""
            return [cause("update", f"ema of {where}", fault, text, evidence, ratio, worst, fix)]
    text = "no known rule gives MindSpore's moving average of given weights"
    return [cause("update", f"ema of {where}", None, text, "", None, worst)]


def _decays(rule: Ema) -> Iterator[tuple[str, str, Decay]]:
    yield (
        "ema-decay-complement",
        "the average takes in the decay's share of each weight, not 1 - decay",
        lambda i: 1.0 - decay(rule, i),
    )
    yield "ema-argument", "the average is never moved", lambda i: 1.0
    yield "ema-argument", "the average is a copy of the weights", lambda i: 0.0
    if rule.warmup or rule.update_after_step:
        yield "ema-warmup", "the decay does not warm up", lambda i: rule.decay
    yield "ema-warmup", "the decay warms up as (1 + n) / (10 + n)", lambda i: min(rule.decay, (1 + i) / (10 + i))
    yield (
        "ema-buffers",
        "the decay rises as decay · (1 - exp(-n / 2000)), mindcv's",
        lambda i: rule.decay * (1 - math.exp(-i / 2000)),
    )
    yield "ema-argument", "the updates are counted from one less", lambda i: decay(rule, max(i - 1, 1))
    yield "ema-argument", "the updates are counted from one more", lambda i: decay(rule, i + 1)
    for field, info in Ema.model_fields.items():
        default, value = info.default, getattr(rule, field)
        if default == value or not isinstance(default, (int, float)):
            continue
        try:
            other = Ema(**{**rule.model_dump(), field: default})
        except ValueError:
            continue
        text = f"{field} is {default} (the default) where the recipe has {value}"
        yield "ema-argument", text, partial(decay, other)


def _fitted(rule: Ema, traces: Traces, names: Sequence[str]) -> Iterator[tuple[str, str, Decay]]:
    """One factor on what each update takes of the weights."""
    low, high = 0.2, 5.0

    def at(factor: float) -> Decay:
        return lambda i: 1.0 - factor * (1.0 - decay(rule, i))

    def off(factor: float) -> float:
        return sum(_given(traces, name, at(factor)).relative for name in names)

    for _ in range(80):
        one, other = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, other) if off(one) < off(other) else (one, high)
    factor = (low + high) / 2
    text = f"each update takes {factor:.5g} times the recipe's share (1 - decay) of the weights"
    yield "ema-argument", text, at(factor)


def _given(traces: Traces, name: str, at: Decay) -> Measure:
    """The average of the given weights of one parameter under a rule, held against MindSpore's."""
    key = ("update", GIVEN, name, 0)
    entry, subject = traces.mindspore.entries[key], traces.mindspore.array(key)
    start = traces.mindspore.array(("init", "values", name, 0))
    runs = []
    for dtype in (np.float64, np.float32):
        average: np.ndarray = start.astype(dtype)
        for i in range(1, GIVEN_STEPS + 1):
            given = given_weights(name, entry.shape, i).reshape(-1)
            given = given if given.size == subject.size else given[sample_positions(given.size, subject.size)]
            average = np.asarray(average + dtype(1.0 - at(i)) * (given.astype(dtype) - average), dtype)
        runs.append(np.subtract(average, start, dtype=np.float64))
    first = traces.mindspore.entries[("init", "values", name, 0)]
    return judge_prediction(subject, Prediction(runs[0], runs[1]), 2 * FLOOR_ULPS * EPS32, 2 * storing(first))


def _buffers(rule: Ema, traces: Traces, step: int) -> list[Cause]:
    """The average of the buffers: left at the start, or a copy of them."""
    names = [e.name for e in traces.mindspore.select("update", f"step{step} buffers")]
    sound = [n for n in names if all(k in traces.mindspore.entries for k in _keys(step, n)) and _moves(traces, step, n)]
    if not sound:
        return []
    ratios = {
        how: max(_buffer(rule, traces, step, n, how).ratio for n in sound) for how in ("averaged", "left", "copied")
    }
    how = min(ratios, key=lambda k: ratios[k])
    if how == "averaged" or ratios[how] > 4.0:
        return []
    text = {"left": "the average leaves the buffers as they were", "copied": "the buffers are copied, not averaged"}[
        how
    ]
    evidence = f"after step {step}: {ratios[how]:.2g} times the noise, averaged {ratios['averaged']:.3g} times"
    return [cause("update", "ema of every buffer", "ema-buffers", text, evidence, ratios[how], ratios["averaged"])]


def _order(rule: Ema, traces: Traces, step: int) -> list[Cause]:
    """The average taken before the update of the weights."""
    names = [e.name for e in traces.mindspore.select("update", f"step{step}")]
    sound = [n for n in names if ("update", f"step{step} ema", n, 0) in traces.mindspore.entries]
    if step != 1 or not sound:
        return []
    exact = all(
        np.array_equal(
            traces.mindspore.array(("update", f"step{step} ema", n, 0)),
            traces.mindspore.array(("init", "values", n, 0)),
        )
        for n in sound
        if ("init", "values", n, 0) in traces.mindspore.entries
    )
    if not exact:
        return []
    text = "the average is taken before the update: after the first step it is still the starting weights"
    return [cause("update", "ema", "ema-order", text, f"{len(sound)} averages equal to the bit", 0.0)]


def _keys(step: int, name: str) -> list[tuple[str, str, str, int]]:
    return [
        ("update", f"step{step} buffers", name, 0),
        ("update", f"step{step} ema", name, 0),
        ("init", "values", name, 0),
    ]


def _moves(traces: Traces, step: int, name: str) -> bool:
    return traces.mindspore.entries[("update", f"step{step} buffers", name, 0)].norm > 0.0


def _buffer(rule: Ema, traces: Traces, step: int, name: str, how: str) -> Measure:
    change, average, start = (traces.mindspore.array(key).astype(np.float64) for key in _keys(step, name))
    share = {"averaged": 1.0 - decay(rule, step), "left": 0.0, "copied": 1.0}[how]
    exact = start + share * change
    return judge_prediction(average, Prediction(exact, exact.astype(np.float32)), EPS32)
