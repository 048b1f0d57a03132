"""Why a step's updates differ although the optimizer alone is right: clipping, loss scale, moving average.

Each is computed from what MindSpore itself recorded before it, so that a fault upstream explains nothing here twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...training.recipe.schema import Recipe
from ..compare import Traces
from ..result import Cause, Finding
from ..verdict import EPS32, Measure, Verdict
from . import optimizer_formulas
from .evidence import Trial, cause, comparable, failed, pattern, storing, weigh
from .optimizer_formulas import CLIP_EPS
from .places import owners, place

NORM_FLOOR = 2e-6  # a norm is recorded from a float32 sum over the whole tensor
CLEAR = 0.2  # what one factor may leave of a difference that it explains
Factor = tuple[str | None, str, float]


def first_step(traces: Traces) -> int:
    """The first step that updated the weights, counted from 1: its gradients are the recorded ones."""
    steps = [int(m[1]) for e in traces.mindspore.select("update") if (m := re.fullmatch(r"step(\d+)", e.part))]
    return min(steps, default=0)


def clipping(
    recipe: Recipe,
    traces: Traces,
    rates: Mapping[str, tuple[list[float], list[float], dict[str, Any]]],
    kind: str,
    switches: frozenset[str],
) -> list[Cause]:
    """What was done to the gradients between the recorded ones and the first update that they led to."""
    step = first_step(traces)
    names = [
        e.name
        for e in traces.mindspore.select("gradients", "parameters")
        if e.name in rates and comparable(traces, ("update", f"step{step}", e.name, 0)) and not e.nonfinite
    ]
    if not names or step > len(next(iter(rates.values()))[0]):
        return []
    gradients = {name: traces.mindspore.entries[("gradients", "parameters", name, 0)] for name in names}
    norm = float(np.sqrt(sum(entry.norm**2 for entry in gradients.values())))
    usual = _clip(recipe, norm, 1.0)

    def measures(factor: float) -> dict[str, Measure]:
        return {name: _one(traces, name, step, rates[name], kind, switches, factor) for name in names}

    before = measures(usual)
    wrong = [name for name, m in before.items() if m.verdict is Verdict.FAIL]
    if not wrong:
        return []
    worst = max(m.ratio for m in before.values())
    where = place(wrong, names, owners(traces.alone[1], names))
    for fault, text, factor in _factors(recipe, traces, step, norm):
        if factor == usual:
            continue
        found = measures(factor)
        if all(m.verdict is not Verdict.FAIL for m in found.values()):
            ratio = max(m.ratio for m in found.values())
            evidence = (
                f"step {step} from MindSpore's own gradients, whose norm is {norm:.4g}: multiplied by {factor:.4g} "
                f"instead of {usual:.4g} they give its update to {ratio:.2g} times the noise, as they are {worst:.3g}"
            )
            return [cause("update", where, fault, text, evidence, ratio, worst)]
    trial = _trial(traces, wrong[0], step, rates[wrong[0]], kind, switches, usual)
    how = pattern(trial.exact, traces.mindspore.array(("update", f"step{step}", wrong[0], 0)))
    text = "the update of a whole step is not what its own gradients give, though the optimizer alone is right"
    return [cause("update", where, None, text, f"step {step}, {wrong[0]}: {how}", None, worst)]


def _clip(recipe: Recipe, norm: float, scale: float) -> float:
    return min(1.0, recipe.clip.max_norm / (scale * norm + CLIP_EPS)) if recipe.clip else 1.0


def _factors(recipe: Recipe, traces: Traces, step: int, norm: float) -> Iterator[Factor]:
    """What gradients may have been multiplied by: the fault, in words, and the number."""
    scale, parts = scale_at(recipe, traces, step), recipe.accumulate
    if recipe.clip:
        yield "clip-before-unscale", "gradients are clipped before they are unscaled", _clip(recipe, norm, scale)
        yield (
            "clip-on-accumulated-sum",
            "the sum of the micro-batches is clipped, then divided",
            _clip(recipe, norm, parts),
        )
        yield "clip-before-unscale", "the scaled sum is clipped", _clip(recipe, norm, scale * parts)
        yield "clip-missing", "the gradients are not clipped", 1.0
        yield "clip-always", "gradients below the norm are scaled up to it", recipe.clip.max_norm / (norm + CLIP_EPS)
    usual = _clip(recipe, norm, 1.0)
    if scale != 1.0:
        yield "optimizer-loss-scale", "the optimizer divides by the loss scale once more", usual / scale
        yield "loss-scale-not-removed", "the optimizer is given scaled gradients", usual * scale
    if parts > 1:
        yield "accumulate-sum", "the optimizer is given the sum of the micro-batches", usual * parts
        yield "gradient-factor", "the optimizer is given gradients divided by the micro-batches again", usual / parts


def _trial(
    traces: Traces,
    name: str,
    step: int,
    rate: tuple[list[float], list[float], dict[str, Any]],
    kind: str,
    switches: frozenset[str],
    factor: float,
) -> Trial:
    weight = traces.mindspore.array(("init", "values", name, 0))
    gradient = traces.mindspore.array(("gradients", "parameters", name, 0)).astype(np.float64) * factor
    lr, decay, args = rate[0][step - 1], rate[1][step - 1], rate[2]
    runs = [
        optimizer_formulas.run(kind, weight, [gradient.astype(t)], [lr], [decay], args, switches, t)[0]
        for t in (np.float64, np.float32)
    ]
    return Trial(runs[0], runs[1])


def _one(
    traces: Traces,
    name: str,
    step: int,
    rate: tuple[list[float], list[float], dict[str, Any]],
    kind: str,
    switches: frozenset[str],
    factor: float,
) -> Measure:
    start = traces.mindspore.entries[("init", "values", name, 0)]
    subject = traces.mindspore.array(("update", f"step{step}", name, 0))
    trial = _trial(traces, name, step, rate, kind, switches, factor)
    return weigh(subject, trial, NORM_FLOOR, 2 * storing(start))


def scale_at(recipe: Recipe, traces: Traces, step: int) -> float:
    """The loss scale that MindSpore had when a step began; 1 without one."""
    key = ("update", "loss scale", f"step{step - 1} scale", 0)
    if key in traces.mindspore.entries and traces.mindspore.entries[key].shape == (1,):
        return float(traces.mindspore.array(key)[0])
    if recipe.dynamic_loss_scale is not None:
        return recipe.dynamic_loss_scale.init_scale
    return recipe.loss_scale or 1.0


def loss_scaling(recipe: Recipe, traces: Traces, findings: Sequence[Finding]) -> list[Cause]:
    """Why the loss scale, or which steps were skipped, differ."""
    wrong = failed(findings, "update", "loss scale")
    rule = recipe.dynamic_loss_scale
    if not wrong:
        return []
    scales, finite = series(traces, "scale"), series(traces, "finite")
    if rule is None or not scales or len(scales) != len(finite):
        return []
    expected = _scales(rule.init_scale, rule.growth_factor, rule.backoff_factor, rule.growth_interval, finite)
    if _same(expected, scales):
        return []
    tries: list[tuple[str, tuple[float, float, float, float]]] = []
    init, grow, shrink, every = rule.init_scale, rule.growth_factor, rule.backoff_factor, rule.growth_interval
    for other in (every + 1, max(every - 1, 1), 2 * every, 2000, 1000, 10**9):
        said = "never" if other == 10**9 else f"after {other} good steps"
        tries.append((f"the scale grows {said}, where the recipe says {every}", (init, grow, shrink, other)))
    for other_factor in (2.0, 1.0 / shrink, 1.0):
        tries.append(
            (
                f"the scale grows by {other_factor:g}, where the recipe says {grow:g}",
                (init, other_factor, shrink, every),
            )
        )
    for other_factor in (0.5, 1.0 / grow, 1.0):
        tries.append(
            (
                f"the scale shrinks by {other_factor:g}, where the recipe says {shrink:g}",
                (init, grow, other_factor, every),
            )
        )
    for other_factor in (65536.0, 2.0**24, 1024.0, 1.0):
        tries.append(
            (
                f"the scale begins at {other_factor:g}, where the recipe says {init:g}",
                (other_factor, grow, shrink, every),
            )
        )
    for text, (a, b, c, d) in tries:
        if _same(_scales(a, b, c, d, finite), scales) and (a, b, c, d) != (init, grow, shrink, every):
            evidence = (
                f"scales {_list(scales)} after steps that were {_list(finite)} finite; by the recipe {_list(expected)}"
            )
            return [cause("update", "loss scale", "loss-scale-rule", text, evidence, 0.0, None)]
    evidence = f"MindSpore {_list(scales)}, by the recipe {_list(expected)}"
    return [cause("update", "loss scale", None, "no known rule gives MindSpore's loss scale", evidence)]


def statistics_decayed(recipe: Recipe, traces: Traces, findings: Sequence[Finding]) -> list[Cause]:
    """Running statistics that the optimizer decays, as it does when it is given all of get_parameters()."""
    step = first_step(traces)
    part = f"step{step} buffers"
    names = [e.name for e in traces.mindspore.select("update", part) if comparable(traces, e.key)]
    names = [name for name in names if ("init", "values", name, 0) in traces.mindspore.entries]
    wrong = {f.name for f in failed(findings, "update", part)}
    args = recipe.optimizer.args
    shrunk = args.get("lr", 0.0) * args.get("weight_decay", 0.0)
    if not names or not shrunk or len(wrong) < len(names) / 2:
        return []
    now, torch = [], []
    for name in (name for name in names if name in wrong):
        start = traces.mindspore.array(("init", "values", name, 0)).astype(np.float64)
        now.append(start + traces.mindspore.array(("update", part, name, 0)))
        torch.append(start + traces.matched[0].array(("update", part, name, 0)))
    x, y = np.concatenate(torch), np.concatenate(now)
    factor = float(x @ y / (x @ x))
    left = float(np.linalg.norm(y - factor * x) / np.linalg.norm(x))
    lost = (1.0 - factor) / shrunk
    if left > max(4 * EPS32, CLEAR * (1.0 - factor)) or not 0.01 < lost < 10.0:
        return []
    text = "the weight decay reaches the running statistics: the optimizer is given get_parameters()"
    evidence = f"all of them are {factor:.8f} times torch's after step {step}; lr times weight_decay is {shrunk:.2g}"
    return [cause("update", "buffers: every running mean and variance", "bn-stats-are-parameters", text, evidence, 0.0)]


def ran_over(traces: Traces) -> list[int]:
    """The steps that torch skips because their gradients overflow, and MindSpore takes."""
    pairs = zip(series(traces, "finite", torch=True), series(traces, "finite"), strict=False)
    return [i for i, (ours, theirs) in enumerate(pairs, 1) if theirs and not ours]


def series(traces: Traces, what: str, torch: bool = False) -> list[float]:
    """What was recorded of the loss scale after each step: "scale", "finite" or "good steps"."""
    trace = traces.matched[1] if torch else traces.mindspore
    found = []
    for entry in trace.select("update", "loss scale"):
        if re.fullmatch(rf"step\d+ {what}", entry.name) and entry.shape == (1,):
            found.append(float(trace.array(entry.key)[0]))
    return found


def _scales(scale: float, grow: float, shrink: float, every: float, finite: Sequence[float]) -> list[float]:
    """torch.amp.GradScaler's rule after each step."""
    good, scales = 0, []
    for fine in finite:
        scale, good = (scale, good + 1) if fine else (scale * shrink, 0)
        if good == every:
            scale, good = scale * grow, 0
        scales.append(scale)
    return scales


def _same(one: Sequence[float], other: Sequence[float]) -> bool:
    return len(one) == len(other) and bool(np.allclose(one, other, rtol=4 * EPS32, atol=0.0))


def _list(values: Sequence[float]) -> str:
    return "[" + ", ".join(f"{value:g}" for value in values) + "]"
