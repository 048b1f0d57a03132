"""Why clipped gradients or their norms differ: another norm, another limit, another kind of clipping."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ....training.recipe.schema import Recipe
from ...compare import Traces
from ...record.recorder import NORMS
from ...result import Cause, Finding
from ...verdict import Measure, Verdict
from ..context import owners, place
from ..differences import pattern
from ..evidence import Prediction, cause, comparable, failed, judge_prediction, storing
from ..mutations import optimizer_formulas
from ..mutations.optimizer_formulas import CLIP_EPS

PART = "given norms"
NEAR = 4e-7  # how near the factors of a hypothesis have to be: norms are recorded from float32 values
NORM_FLOOR = 2e-6  # a norm is recorded from a float32 sum over the whole tensor
CLEAR = 0.2  # what one factor may leave of a difference that it explains
Factor = tuple[str | None, str, float]


def explain(recipe: Recipe, traces: Traces, findings: Sequence[Finding]) -> list[Cause]:
    """The cause of what failed with given norms: which factor MindSpore multiplied the gradients by at each norm."""
    if recipe.clip is None or not failed(findings, "update", PART):
        return []
    factors = _factors(traces)
    if factors is None:
        return []
    largest = recipe.clip.max_norm
    usual = np.array([min(1.0, largest / (norm * largest + CLIP_EPS)) for norm in NORMS])
    off = float(np.max(np.abs(factors - 1.0)))
    factors = factors * usual
    for fault, text, expected in _hypotheses(largest):
        left = float(np.max(np.abs(factors / expected - 1.0)))
        if left <= NEAR < off:
            shown = ", ".join(f"{factor:.8g}" for factor in factors)
            norms = ", ".join(f"{norm:g}" for norm in NORMS)
            evidence = (
                f"gradients with {norms} times the allowed norm are multiplied by {shown}: to {left:.1g} as if {text}; "
                f"torch's factors are {off:.2g} away"
            )
            return [cause("update", "every parameter", fault, text, evidence, left / NEAR, off / NEAR)]
    return []


def _factors(traces: Traces) -> np.ndarray | None:
    """The norm of all gradients as MindSpore clipped them over torch's, one for each given norm."""
    found = []
    for norm in NORMS:
        key = ("update", PART, f"gradients' norms at {norm:g}", 0)
        of_torch, of_mindspore = traces.alone[0].entries.get(key), traces.mindspore.entries.get(key)
        if (
            of_torch is None
            or of_mindspore is None
            or of_torch.shape != of_mindspore.shape
            or of_mindspore.nonfinite
            or of_torch.sampled
        ):
            return None
        exact = float(np.linalg.norm(traces.alone[0].array(key)))
        share = float(np.linalg.norm(traces.mindspore.array(key))) / exact
        found.append(share)
    return np.array(found)


def _hypotheses(largest: float) -> Iterator[tuple[str, str, np.ndarray]]:
    norms = np.array(NORMS)
    without = np.minimum(1.0, 1.0 / norms)
    yield "clip-global-eps", "clipped without the 1e-6 that torch adds to the norm", without
    yield "clip-missing", "the gradients are not clipped", np.ones_like(norms)
    always = largest / (norms * largest + CLIP_EPS)
    yield "clip-always", "gradients below the norm are scaled up to it", always
    yield "clip-always", "gradients below the norm are scaled up to it, without torch's 1e-6", 1.0 / norms


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
    for fault, text, factor in _possible_factors(recipe, traces, step, norm):
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
    prediction = _trial(traces, wrong[0], step, rates[wrong[0]], kind, switches, usual)
    how = pattern(prediction.exact, traces.mindspore.array(("update", f"step{step}", wrong[0], 0)))
    text = "the update of a whole step is not what its own gradients give, though the optimizer alone is right"
    return [cause("update", where, None, text, f"step {step}, {wrong[0]}: {how}", None, worst)]


def _clip(recipe: Recipe, norm: float, scale: float) -> float:
    return min(1.0, recipe.clip.max_norm / (scale * norm + CLIP_EPS)) if recipe.clip else 1.0


def _possible_factors(recipe: Recipe, traces: Traces, step: int, norm: float) -> Iterator[Factor]:
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
) -> Prediction:
    weight = traces.mindspore.array(("init", "values", name, 0))
    gradient = traces.mindspore.array(("gradients", "parameters", name, 0)).astype(np.float64) * factor
    lr, decay, args = rate[0][step - 1], rate[1][step - 1], rate[2]
    runs = [
        optimizer_formulas.run(kind, weight, [gradient.astype(t)], [lr], [decay], args, switches, t)[0]
        for t in (np.float64, np.float32)
    ]
    return Prediction(runs[0], runs[1])


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
    prediction = _trial(traces, name, step, rate, kind, switches, factor)
    return judge_prediction(subject, prediction, NORM_FLOOR, 2 * storing(start))


def scale_at(recipe: Recipe, traces: Traces, step: int) -> float:
    """The loss scale that MindSpore had when a step began; 1 without one."""
    key = ("update", "loss scale", f"step{step - 1} scale", 0)
    if key in traces.mindspore.entries and traces.mindspore.entries[key].shape == (1,):
        return float(traces.mindspore.array(key)[0])
    if recipe.dynamic_loss_scale is not None:
        return recipe.dynamic_loss_scale.init_scale
    return recipe.loss_scale or 1.0


def _list(values: Sequence[float]) -> str:
    return "[" + ", ".join(f"{value:g}" for value in values) + "]"
