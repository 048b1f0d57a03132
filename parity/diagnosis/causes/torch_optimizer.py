"""Why updates differ: the optimizer on given gradients, under other rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ....mappings import table
from ....training.recipe.schema import Recipe
from ....training.step.parameter_groups import parameter_groups
from ....training.step.torch_step import build_schedule
from ...compare import Traces
from ...record import injected_values
from ...result import Cause, Finding
from ...trace import Entry, sample_positions
from ...verdict import EPS32, FLOOR_ULPS, RATIO, Measure, Verdict
from ..context import Context, owners, place
from ..differences import pattern
from ..evidence import Trial, attempt, cause, comparable, failed, storing, weigh
from ..mutations import optimizer_formulas
from ..mutations.optimizer_formulas import CLIP_EPS
from ..mutations.update_rules import Hypothesis, Plan, fits, general, known
from . import clipping, ema, loss_scale

BEAM = 12  # plans that are taken further where no single change explains everything
DEPTH = 3  # faults at once
STEPS_OF_A_FIT = 60
FAINT = 0.3  # decimal orders of magnitude, in the mean, that a fault at the edge of noise has to bring torch nearer
GOLDEN = 0.6180339887498949
PART = "given gradients"
FEW = 512  # elements of a parameter that a first look takes


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
        causes += clipping.explain(recipe, traces, findings) if not causes else []
        causes += ema.explain(recipe, traces, findings)
        causes += loss_scale.loss_scaling(recipe, traces, findings)
        causes += loss_scale.statistics_decayed(recipe, traces, findings)
        if not causes:
            causes += _skipped_rates(alone, findings)
        if not causes and alone.names:
            plan = alone.plan
            causes += clipping.clipping(recipe, traces, alone.rates(plan), plan.kind, plan.switches)
    return causes


def _skipped_rates(given: GivenGradients, findings: Sequence[Finding]) -> list[Cause]:
    """A schedule that stands still in a step that is skipped; the rates are recorded step by step."""
    part = "learning rate and weight decay"
    wrong = failed(findings, "update", part)
    traces = given.traces
    finite = [float(v) for v in loss_scale.series(traces, "finite")]
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


@dataclass(frozen=True)
class Tried:
    """How a plan did on some parameters: the largest ratio, and the parameters that it does not reproduce."""

    worst: float
    failing: frozenset[str]

    @property
    def reproduces(self) -> bool:
        """Whether it reproduces them all."""
        return not self.failing


class GivenGradients:
    """What MindSpore made of the given gradients, and what any plan makes of them, from MindSpore's own weights."""

    steps = injected_values.STEPS

    def __init__(self, recipe: Recipe, traces: Traces) -> None:
        self.plan = Plan.of(recipe)
        self.traces = traces
        self.entries = {
            e.name: e
            for e in traces.mindspore.select("update", PART)
            if comparable(traces, e.key) and ("init", "values", e.name, 0) in traces.mindspore.entries
        }
        self.names = list(self.entries)
        self.kinds = owners(traces.alone[1], self.names)
        self.everything = {e.name: e for e in traces.alone[1].select("update", PART)}
        self._rates: dict[Any, dict[str, tuple[list[float], list[float]]]] = {}
        self._whole: dict[str, list[np.ndarray]] = {}

    def theirs(self, name: str) -> np.ndarray:
        """The change that MindSpore recorded, float64, flat."""
        return self.traces.mindspore.array(("update", PART, name, 0))

    def start(self, name: str) -> np.ndarray:
        """The weights that MindSpore began with, float32, the recorded elements."""
        return self.traces.mindspore.array(("init", "values", name, 0)).astype(np.float32)

    def gradients(self, name: str, count: int) -> list[np.ndarray]:
        """The given gradients at the `count` recorded elements, before clipping."""
        entry = self.entries[name]
        size = int(np.prod(entry.shape, dtype=np.int64))
        if name in self._whole:
            return self._whole[name]
        whole = [injected_values.gradient(name, entry.shape, i).reshape(-1) for i in range(self.steps)]
        kept = whole if count == size else [g[sample_positions(size, count)] for g in whole]
        if count <= 1 << 14:
            self._whole[name] = kept
        return kept

    @cached_property
    def norms(self) -> dict[str, np.ndarray]:
        """Each parameter's gradient norms, one a step, over all that torch trains."""
        return {
            name: np.array(
                [
                    np.linalg.norm(injected_values.gradient(name, e.shape, i).astype(np.float64))
                    for i in range(self.steps)
                ]
            )
            for name, e in self.everything.items()
        }

    @cached_property
    def norm(self) -> np.ndarray:
        """The global norm of the given gradients at each step."""
        return np.asarray(np.sqrt(sum(norm**2 for norm in self.norms.values())))

    def clipped(self, plan: Plan, name: str, gradients: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The gradients as the plan clips and scales them."""
        if plan.clip is None:
            factors = np.ones(self.steps)
        elif plan.clip_by == "value":
            return [np.clip(g.astype(np.float64), -plan.clip, plan.clip) * plan.gradient for g in gradients]
        else:
            norm = self.norms[name] if plan.clip_by == "each" else self.norm
            eps = 0.0 if plan.clip_by == "no_eps" else CLIP_EPS
            summed = plan.micro if plan.clip_by == "sum" else 1  # clipped before the division by the micro-batches
            factors = plan.clip / (summed * norm + eps)
            factors = factors if plan.clip_by == "always" else np.minimum(1.0, factors)
        factors = factors * plan.gradient
        return [g if f == 1.0 else g.astype(np.float64) * f for g, f in zip(gradients, factors, strict=True)]

    def rates(self, plan: Plan) -> dict[str, tuple[list[float], list[float], dict[str, Any]]]:
        """Parameter -> learning rate and weight decay of each update, and torch's other arguments."""
        owned = {name: self.kinds.get(name, "") for name in self.everything}
        found: dict[str, tuple[list[float], list[float], dict[str, Any]]] = {}
        groups = parameter_groups(owned, plan.optimizer)
        all_rates = moved_rates(plan, [{**plan.args, **group.args}["lr"] for group in groups], self.steps)
        for group, lrs in zip(groups, all_rates, strict=True):
            args = {**plan.args, **group.args}
            for name in group.names:
                found[name] = ([lr * plan.rate for lr in lrs], [args.get("weight_decay", 0.0)] * self.steps, args)
        return found

    def _known_rates(self, plan: Plan) -> dict[str, tuple[list[float], list[float], dict[str, Any]]]:
        key = repr((plan.optimizer, plan.schedule, plan.moves, plan.rate, plan.micro))
        if key not in self._rates:
            self._rates = {**dict(list(self._rates.items())[-64:]), key: self.rates(plan)}  # type: ignore[dict-item]
        return self._rates[key]  # type: ignore[return-value]

    def trial(self, plan: Plan, name: str, few: bool = False) -> dict[str, Trial]:
        """The change and the state of one parameter under a plan, by part of the trace."""
        lrs, decays, args = self._known_rates(plan)[name]
        if any(word in name for word in plan.spared.split()):
            decays = [0.0] * self.steps
        weight = self.start(name)
        gradients = self.clipped(plan, name, self.gradients(name, weight.size))
        if few:
            weight, gradients = weight[:FEW], [g[:FEW] for g in gradients]
        runs = []
        for dtype in (np.float64, np.float32):
            given = [g.astype(dtype) for g in gradients]
            change, state = optimizer_formulas.run(plan.kind, weight, given, lrs, decays, args, plan.switches, dtype)
            runs.append({PART: change, **{f"{PART} {key}": value for key, value in state.items()}})
        return {part: Trial(runs[0][part], runs[1][part]) for part in runs[0]}

    def measures(self, plan: Plan, name: str, few: bool = False) -> list[Measure]:
        """MindSpore's change and state of one parameter, judged against a plan's."""
        found = []
        for part, trial in self.trial(plan, name, few).items():
            key = ("update", part, name, 0)
            if not comparable(self.traces, key):
                continue
            subject = self.traces.mindspore.array(key)
            start: Entry | None = (
                self.traces.mindspore.entries.get(("init", "values", name, 0)) if part == PART else None
            )
            floor = storing(start) * (np.sqrt(trial.exact.size / subject.size) if few else 1.0)
            subject = subject[: trial.exact.size] if few else subject
            found.append(weigh(subject, trial, 2 * FLOOR_ULPS * EPS32, 2 * floor))
        return found

    def attempt(self, plan: Plan, names: Sequence[str]) -> Tried | None:
        """How a plan does on some parameters; None where torch cannot run it."""
        measures = attempt(lambda: {name: self.measures(plan, name) for name in names})
        if measures is None:
            return None
        bad = frozenset(name for name, found in measures.items() if any(m.verdict is Verdict.FAIL for m in found))
        return Tried(max((m.ratio for found in measures.values() for m in found), default=0.0), bad)

    def score(self, plan: Plan, names: Sequence[str]) -> float | None:
        """How far a plan is from MindSpore on the first elements of some parameters: a sum of logarithms, the smaller
        the closer, with nothing to gain below noise; None where torch cannot run it."""
        found = attempt(lambda: [m for name in names for m in self.measures(plan, name, few=True)])
        if found is None or not all(np.isfinite(m.ratio) or m.error for m in found):
            return None
        return float(sum(np.log10(min(max(m.ratio, 1e-2), 1e12)) for m in found))

    def within(self, plan: Plan, names: Sequence[str]) -> bool:
        """Whether a plan reproduces the first elements of some parameters."""
        found = attempt(lambda: [m for name in names for m in self.measures(plan, name, few=True)])
        return bool(found) and all(m.ratio <= 2 * RATIO for m in found or [])

    def holds(self, plan: Plan, names: Sequence[str]) -> bool:
        """Whether a plan reproduces some parameters, wholly."""
        tried = self.attempt(plan, names)
        return tried is not None and tried.reproduces

    def differ(self, plan: Plan, name: str) -> bool:
        """Whether a plan moves the first elements of a parameter otherwise than the recipe does."""
        one, other = self.trial(plan, name, few=True), self.trial(self.plan, name, few=True)
        return any(not np.allclose(one[part].exact, other[part].exact, rtol=1e-9, atol=0.0) for part in one)

    def representatives(self, names: Sequence[str], wrong: Sequence[str]) -> list[str]:
        """One small parameter of each sort: class of its module, weight or bias, group, failing or not."""
        rates = self._known_rates(self.plan)
        chosen: dict[Any, str] = {}
        for name in names:
            sort = (self.kinds[name], name.rsplit(".", 1)[-1], repr(rates[name]), name in wrong)
            size, best = self.entries[name].shape, chosen.get(sort)
            if best is None or _better(size, self.entries[best].shape):
                chosen[sort] = name
        return list(chosen.values())


def moved_rates(plan: Plan, bases: Sequence[float], steps: int) -> list[list[float]]:
    """The learning rates of each group, by its base rate, under the plan's schedule moved as the plan says."""
    if plan.schedule is None:
        return [[base] * steps for base in bases]
    row = table.row(plan.optimizer.name)
    parameters = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": base} for base in bases]
    optimizer = getattr(torch.optim, row.short)(parameters, lr=bases[0])
    moved: list[list[float]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no optimizer step is taken here
        schedule = build_schedule(plan.schedule, optimizer)
        for _ in range(steps * max(2, plan.micro) + 2):
            moved.append([group["lr"] for group in optimizer.param_groups])
            schedule.step()
    at = {
        "never": [0] * steps,
        "late": [max(0, i - 1) for i in range(steps)],
        "early": [i + 1 for i in range(steps)],
        "twice": [2 * i for i in range(steps)],
        "micro": [plan.micro * i for i in range(steps)],
    }.get(plan.moves, list(range(steps)))
    rates = [[moved[i][g] for i in at] for g in range(len(bases))]
    if plan.moves == "from_zero":
        return [_from_zero(plan, base, found) for base, found in zip(bases, rates, strict=True)]
    if plan.moves == "continuous":
        args = table.arguments(plan.schedule.name, plan.schedule.args)
        if "step_size" not in args:
            raise ValueError("only a staircase can be made continuous")
        return [[base * args["gamma"] ** (i / args["step_size"]) for i in range(steps)] for base in bases]
    return rates


def _from_zero(plan: Plan, base: float, rates: list[float]) -> list[float]:
    """The warm-up from 0 instead of from start_factor, which nn.WarmUpLR makes. Raises ValueError without a warm-up."""
    assert plan.schedule is not None
    args, name = plan.schedule.args, plan.schedule.name
    if "schedulers" in args:
        name, args = args["schedulers"][0]["name"], args["schedulers"][0].get("args", {})
    filled = table.arguments(name, args)
    if table.row(name).short != "LinearLR":
        raise ValueError("there is no warm-up")
    total = filled["total_iters"]
    return [base * i / total if i < total else rate for i, rate in enumerate(rates)]


def _better(size: Sequence[int], best: Sequence[int]) -> bool:
    """Whether a parameter of this shape is better to try on: at least 8 elements, and then the fewer the better."""
    one, other = int(np.prod(size, dtype=np.int64)), int(np.prod(best, dtype=np.int64))
    return (one < other) if one >= 8 else (one > other)
