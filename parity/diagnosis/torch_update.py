"""Why the updates differ: the optimizer alone on given gradients, then what the steps do around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...mappings import table
from ..result import Cause, Finding
from . import average_causes, clip_causes, step_causes
from .context import Context
from .evidence import cause, comparable, failed, pattern
from .places import place
from .torch_given_gradients import PART, GivenGradients, Tried
from .update_plans import Hypothesis, Plan, fits, general, known

BEAM = 12  # plans that are taken further where no single change explains everything
DEPTH = 3  # faults at once
STEPS_OF_A_FIT = 60
FAINT = 0.3  # decimal orders of magnitude, in the mean, that a fault at the edge of noise has to bring torch nearer
GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Found:
    """A plan that was reached by these hypotheses."""

    plan: Plan
    steps: tuple[Hypothesis, ...]


def explain(context: Context) -> list[Cause]:
    """The causes of what failed in stage update, buffers excepted (their modules explain those)."""
    recipe = context.recipe
    causes: list[Cause] = []
    given = context.paired.given if context.paired is not None else None
    if given is not None and (given.optimizer is not None or given.step is not None):
        return []  # the recipe does not describe the user's own optimizer
    if failed(context.findings, "update"):
        traces, findings = context.traces, context.findings
        alone = GivenGradients(recipe, traces)
        scale = recipe.dynamic_loss_scale.init_scale if recipe.dynamic_loss_scale else recipe.loss_scale
        causes += _given(alone, scale) or _faint(alone, scale, findings)
        causes += clip_causes.explain(recipe, traces, findings) if not causes else []
        causes += average_causes.explain(recipe, traces, findings)
        causes += step_causes.loss_scaling(recipe, traces, findings)
        causes += step_causes.statistics_decayed(recipe, traces, findings)
        if not causes:
            causes += _skipped_rates(alone, findings)
        if not causes and alone.names:
            plan = alone.plan
            causes += step_causes.clipping(recipe, traces, alone.rates(plan), plan.kind, plan.switches)
    return causes


def _skipped_rates(given: GivenGradients, findings: Sequence[Finding]) -> list[Cause]:
    """A schedule that stands still in a step that is skipped; the rates are recorded step by step."""
    part = "learning rate and weight decay"
    wrong = failed(findings, "update", part)
    traces = given.traces
    finite = [float(v) for v in step_causes.series(traces, "finite")]
    keys = [("update", part, f.name, 0) for f in wrong if comparable(traces, ("update", part, f.name, 0))]
    if not keys or not finite or all(finite) or given.plan.schedule is None:
        return []
    moved = [int(sum(finite[:i])) for i in range(len(finite))]
    for key in keys:
        ours, theirs = (t.array(key).reshape(-1, 2)[:, 0] for t in (given.traces.matched[0], traces.mindspore))
        if len(ours) != len(moved) or not np.allclose(theirs, ours[moved], rtol=1e-6, atol=0.0):
            return []
    text = "the schedule stands still in a step that is skipped; in torch's loop it moves on"
    evidence = f"learning rates of {len(keys)} parameters over {len(finite)} steps, which were {finite} finite"
    where = place([key[2] for key in keys], given.names, given.kinds)
    return [cause("update", where, "overflow-drop-update", text, evidence, 0.0, wrong[0].ratio)]


def _given(given: GivenGradients, scale: float | None) -> list[Cause]:
    base = given.attempt(given.plan, given.names)
    if base is None or base.reproduces:
        return []
    wrong = [name for name in given.names if name in base.failing]
    found = _search(given, wrong, scale)
    if found is None:
        return _unexplained(given, wrong, base)
    tried = given.attempt(found.plan, wrong)
    assert tried is not None
    # a plan that holds for all parameters is at fault wherever it says something else than the recipe
    whole = given.holds(found.plan, given.names)
    touched = [name for name in given.names if given.differ(found.plan, name)] if whole else wrong
    tried = given.attempt(found.plan, touched)
    assert tried is not None
    where = place(touched, given.names, given.kinds)
    evidence = (
        f"{given.steps} updates with given gradients: if {' and '.join(step.text for step in found.steps)}, torch is "
        f"{tried.worst:.2g} times the noise from MindSpore, as it is {base.worst:.3g} times"
    )
    spared = [name for name in touched if any(word in name for word in found.plan.spared.split())]
    return [
        cause(
            "update",
            place(spared, given.names, given.kinds) if step.plan.spared and spared and len(found.steps) > 1 else where,
            step.fault,
            step.text,
            evidence,
            tried.worst,
            base.worst,
            step.fix,
        )
        for step in found.steps
    ]


def _faint(given: GivenGradients, scale: float | None, findings: Sequence[Finding]) -> list[Cause]:
    """Of updates at the edge of noise, the known fault under which torch comes clearly nearer in all of them."""
    if not given.names or not any(f.part.startswith(PART) for f in failed(findings, "update")):
        return []
    sample = given.representatives(given.names, [])
    usual = given.score(given.plan, sample)
    best: tuple[float, Hypothesis] | None = None
    for step in known(given.plan, table.faults(), scale):
        score = given.score(step.plan, sample)
        if score is not None and (best is None or score < best[0]):
            best = (score, step)
    if usual is None or best is None or usual - best[0] < FAINT * len(sample):
        return []
    step = best[1]
    touched = [name for name in given.names if given.differ(step.plan, name)]
    before, after = given.attempt(given.plan, touched), given.attempt(step.plan, touched)
    if before is None or after is None or not after.reproduces:
        return []
    evidence = (
        f"{given.steps} updates with given gradients, at the edge of noise: if {step.text}, torch is at most "
        f"{after.worst:.2g} times the noise from MindSpore, as it is {before.worst:.2g}"
    )
    where = place(touched, given.names, given.kinds)
    return [cause("update", where, step.fault, step.text, evidence, after.worst, before.worst, step.fix)]


def _search(given: GivenGradients, wrong: Sequence[str], scale: float | None) -> Found | None:
    """The fewest changes under which every parameter comes out as MindSpore's."""
    sample, only = given.representatives(given.names, wrong), given.representatives(wrong, wrong)
    beam = [Found(given.plan, ())]
    for _ in range(DEPTH):
        ranked: list[tuple[float, Found]] = []
        for held in beam:
            for step in _candidates(given, held.plan, scale):
                reached = Found(step.plan, (*held.steps, step))
                score = given.score(reached.plan, sample)
                if score is None:
                    continue
                ranked.append((score, reached))
                if given.within(reached.plan, sample) and given.holds(reached.plan, given.names):
                    return reached
        # the same change on the parameters that differ, and on no other
        for _, reached in ranked:
            if not reached.plan.spared and given.within(reached.plan, only) and given.holds(reached.plan, wrong):
                return reached
        ranked.sort(key=lambda pair: (pair[0], len(pair[1].steps)))
        for held in [*beam[:2], *(reached for _, reached in ranked[:2])]:
            fitted = _fitted(given, held, sample, wrong)
            if fitted is not None:
                return fitted
        beam = _distinct([reached for _, reached in ranked])[:BEAM]
    return None


def _candidates(given: GivenGradients, plan: Plan, scale: float | None) -> Iterator[Hypothesis]:
    for step in known(plan, table.faults(), scale):
        words = step.plan.spared.split()
        if not words or any(word in name for word in words for name in given.names):
            yield step
    yield from general(plan)


def _distinct(found: list[Found]) -> list[Found]:
    kept: list[Found] = []
    for one in found:
        if all(one.plan != other.plan for other in kept):
            kept.append(one)
    return kept


def _fitted(given: GivenGradients, held: Found, sample: Sequence[str], wrong: Sequence[str]) -> Found | None:
    """One number with another value, found by the golden section, that explains everything."""
    for fault, name, value, put, fix in fits(held.plan):
        best = _minimum(lambda x, put=put: given.score(put(x), sample), value)  # type: ignore[misc]
        if best is None:
            continue
        plan = put(best)
        if given.within(plan, sample) and (given.holds(plan, given.names) or given.holds(plan, wrong)):
            factor = f"{best:.5g} times the recipe's" if value == 1.0 else f"{best:.5g} where the recipe has {value}"
            return Found(plan, (*held.steps, Hypothesis(fault, f"{name} is {factor}", plan, fix)))
    return None


def _minimum(score: Callable[[float], float | None], value: float) -> float | None:
    """Where `score` is least within a factor of 3 of value, on a logarithmic scale; None where it cannot be told.

    A first scan finds the valley, for the score is flat far from it; golden section then goes down it.
    """
    ratios = [3.0 ** (i / 12) for i in range(-12, 13)]
    scores = [score(value * r) for r in ratios]
    told = [(s, i) for i, s in enumerate(scores) if s is not None]
    if not told:
        return None
    at = min(told)[1]
    low, high = ratios[max(at - 1, 0)], ratios[min(at + 1, len(ratios) - 1)]
    for _ in range(STEPS_OF_A_FIT):
        one, other = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        first, second = score(value * one), score(value * other)
        if first is None or second is None:
            return None
        low, high = (low, other) if first < second else (one, high)
        if high - low < 1e-9:
            break
    return value * (low + high) / 2


def _unexplained(given: GivenGradients, wrong: Sequence[str], base: Tried) -> list[Cause]:
    where = place(wrong, given.names, given.kinds)
    name = wrong[0]
    trial = given.trial(given.plan, name)["given gradients"]
    found = pattern(trial.exact, given.theirs(name))
    text = "nothing known reproduces the updates that MindSpore computes from given gradients"
    evidence = f"{len(wrong)} of {len(given.names)} parameters differ; {name}: {found}"
    return [cause("update", where, None, text, evidence, None, base.worst)]
