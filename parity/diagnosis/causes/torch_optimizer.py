"""Why updates differ: the optimizer on given gradients, under other rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
import torch

from ....mappings import table
from ....training.recipe.schema import Recipe
from ....training.step.parameter_groups import parameter_groups
from ....training.step.torch_step import build_schedule
from ...compare import Traces
from ...record.randomness import GIVEN_STEPS, given_gradient
from ...result import Cause, Finding
from ...trace import Entry, sample_positions
from ...verdict import EPS32, FLOOR_ULPS, RATIO, Measure, Verdict
from ..context import Context, owners, place
from ..differences import pattern
from ..evidence import (
    Outcome,
    Prediction,
    cause,
    comparable,
    failed,
    golden_section,
    judge_prediction,
    or_none,
    storing,
)
from ..hypotheses import Hypothesis
from ..mutations import optimizer_formulas
from ..mutations.optimizer_formulas import CLIP_EPS
from ..mutations.update_rules import UpdateHypothesis, UpdateRule, free_numbers, of_fault_tables, single_changes
from . import clipping, ema, loss_scale

BEAM = 12  # plans that are taken further where no single change explains everything
DEPTH = 3  # faults at once
STEPS_OF_A_FIT = 45  # to 4e-10 of the interval
FAINT = 0.3  # decimal orders of magnitude, in the mean, that a fault at the edge of noise has to bring torch nearer
PART = "given gradients"
FEW = 512  # elements of a parameter that a first look takes


@dataclass(frozen=True)
class Chain:
    """A plan that was reached by these hypotheses."""

    rule: UpdateRule
    steps: tuple[UpdateHypothesis, ...]


def explain(context: Context) -> list[Cause]:
    """The causes of what failed in stage update, buffers excepted (their modules explain those)."""
    recipe = context.recipe
    causes: list[Cause] = []
    given = context.paired.given if context.paired is not None else None
    if given is not None and (given.optimizer is not None or given.step is not None):
        return []  # the recipe does not describe the user's own optimizer
    if failed(context.findings, "update"):
        traces, findings = context.traces, context.findings
        alone = OptimizerSubject(recipe, traces)
        scale = recipe.dynamic_loss_scale.init_scale if recipe.dynamic_loss_scale else recipe.loss_scale
        causes += _given(alone, scale) or _weak_match(alone, scale, findings)
        causes += clipping.explain(recipe, traces, findings) if not causes else []
        causes += ema.explain(recipe, traces, findings)
        causes += loss_scale.loss_scaling(recipe, traces, findings)
        causes += loss_scale.statistics_decayed(recipe, traces, findings)
        if not causes:
            causes += _skipped_rates(alone, findings)
        if not causes and alone.names:
            rule = alone.rule
            causes += clipping.clipping(recipe, traces, alone.rates(rule), rule.kind, rule.switches)
    return causes


def _skipped_rates(given: OptimizerSubject, findings: Sequence[Finding]) -> list[Cause]:
    """A schedule that stands still in a step that is skipped; the rates are recorded step by step."""
    part = "learning rate and weight decay"
    wrong = failed(findings, "update", part)
    traces = given.traces
    finite = [float(v) for v in loss_scale.series(traces, "finite")]
    keys = [("update", part, f.name, 0) for f in wrong if comparable(traces, ("update", part, f.name, 0))]
    if not keys or not finite or all(finite) or given.rule.schedule is None:
        return []
    moved = [int(sum(finite[:i])) for i in range(len(finite))]
    for key in keys:
        of_torch, of_mindspore = (
            t.array(key).reshape(-1, 2)[:, 0] for t in (given.traces.matched[0], traces.mindspore)
        )
        if len(of_torch) != len(moved) or not np.allclose(of_mindspore, of_torch[moved], rtol=1e-6, atol=0.0):
            return []
    text = "the schedule stands still in a step that is skipped; in torch's loop it moves on"
    evidence = f"learning rates of {len(keys)} parameters over {len(finite)} steps, which were {finite} finite"
    where = place([key[2] for key in keys], given.names, given.kinds)
    return [cause("update", where, "overflow-drop-update", text, evidence, 0.0, wrong[0].ratio)]


def _given(given: OptimizerSubject, scale: float | None) -> list[Cause]:
    base = given.outcome(given.rule, given.names)
    if base is None or base.reproduces:
        return []
    wrong = [name for name in given.names if name in base.failing]
    found = _search(given, wrong, scale)
    if found is None:
        return _unexplained(given, wrong, base)
    tried = given.outcome(found.rule, wrong)
    assert tried is not None
    # a plan that holds for all parameters is at fault wherever it says something else than the recipe
    whole = given.holds(found.rule, given.names)
    touched = [name for name in given.names if given.differ(found.rule, name)] if whole else wrong
    tried = given.outcome(found.rule, touched)
    assert tried is not None
    where = place(touched, given.names, given.kinds)
    evidence = (
        f"{given.steps} updates with given gradients: if {' and '.join(step.text for step in found.steps)}, torch is "
        f"{tried.worst:.2g} times the noise from MindSpore, as it is {base.worst:.3g} times"
    )
    undecayed = [name for name in touched if any(word in name for word in found.rule.undecayed.split())]
    return [
        cause(
            "update",
            place(undecayed, given.names, given.kinds)
            if step.change.undecayed and undecayed and len(found.steps) > 1
            else where,
            step.fault,
            step.text,
            evidence,
            tried.worst,
            base.worst,
            step.fix,
        )
        for step in found.steps
    ]


def _weak_match(given: OptimizerSubject, scale: float | None, findings: Sequence[Finding]) -> list[Cause]:
    """Of updates at the edge of noise, the known fault under which torch comes clearly nearer in all of them."""
    if not given.names or not any(f.part.startswith(PART) for f in failed(findings, "update")):
        return []
    sample = given.representatives(given.names, [])
    usual = given.score(given.rule, sample)
    best: tuple[float, UpdateHypothesis] | None = None
    for step in of_fault_tables(given.rule, table.faults(), scale):
        score = given.score(step.change, sample)
        if score is not None and (best is None or score < best[0]):
            best = (score, step)
    if usual is None or best is None or usual - best[0] < FAINT * len(sample):
        return []
    step = best[1]
    touched = [name for name in given.names if given.differ(step.change, name)]
    before, after = given.outcome(given.rule, touched), given.outcome(step.change, touched)
    if before is None or after is None or not after.reproduces:
        return []
    evidence = (
        f"{given.steps} updates with given gradients, at the edge of noise: if {step.text}, torch is at most "
        f"{after.worst:.2g} times the noise from MindSpore, as it is {before.worst:.2g}"
    )
    where = place(touched, given.names, given.kinds)
    return [cause("update", where, step.fault, step.text, evidence, after.worst, before.worst, step.fix)]


def _search(given: OptimizerSubject, wrong: Sequence[str], scale: float | None) -> Chain | None:
    """The fewest changes under which every parameter comes out as MindSpore's."""
    sample, only = given.representatives(given.names, wrong), given.representatives(wrong, wrong)
    beam = [Chain(given.rule, ())]
    for _ in range(DEPTH):
        ranked: list[tuple[float, Chain]] = []
        for held in beam:
            for step in _candidates(given, held.rule, scale):
                reached = Chain(step.change, (*held.steps, step))
                score = given.score(reached.rule, sample)
                if score is None:
                    continue
                ranked.append((score, reached))
                if given.within(reached.rule, sample) and given.holds(reached.rule, given.names):
                    return reached
        # the same change on the parameters that differ, and on no other
        for _, reached in ranked:
            if not reached.rule.undecayed and given.within(reached.rule, only) and given.holds(reached.rule, wrong):
                return reached
        ranked.sort(key=lambda pair: (pair[0], len(pair[1].steps)))
        for held in [*beam[:2], *(reached for _, reached in ranked[:2])]:
            fitted = _fitted(given, held, sample, wrong)
            if fitted is not None:
                return fitted
        beam = _distinct([reached for _, reached in ranked])[:BEAM]
    return None


def _candidates(given: OptimizerSubject, rule: UpdateRule, scale: float | None) -> Iterator[UpdateHypothesis]:
    for step in of_fault_tables(rule, table.faults(), scale):
        words = step.change.undecayed.split()
        if not words or any(word in name for word in words for name in given.names):
            yield step
    yield from single_changes(rule)


def _distinct(found: list[Chain]) -> list[Chain]:
    kept: list[Chain] = []
    for one in found:
        if all(one.rule != other.rule for other in kept):
            kept.append(one)
    return kept


def _fitted(given: OptimizerSubject, held: Chain, sample: Sequence[str], wrong: Sequence[str]) -> Chain | None:
    """One number with another value, found by the golden section, that explains everything."""
    for fault, name, value, put, fix in free_numbers(held.rule):
        best = _minimum(lambda x, put=put: given.score(put(x), sample), value)  # type: ignore[misc]
        if best is None:
            continue
        rule = put(best)
        if given.within(rule, sample) and (given.holds(rule, given.names) or given.holds(rule, wrong)):
            factor = f"{best:.5g} times the recipe's" if value == 1.0 else f"{best:.5g} where the recipe has {value}"
            return Chain(rule, (*held.steps, Hypothesis(fault, f"{name} is {factor}", rule, fix)))
    return None


def _minimum(score: Callable[[float], float | None], value: float) -> float | None:
    """Where `score` is least within a factor of 3 of value, on a logarithmic scale; None where it cannot be told.

    A first scan finds the valley, for the score is flat far from it; golden section then goes down it.
    """
    ratios = [3.0 ** (i / 12) for i in range(-12, 13)]
    scores = [score(value * r) for r in ratios]
    known = [(s, i) for i, s in enumerate(scores) if s is not None]
    if not known:
        return None
    at = min(known)[1]

    def distance(ratio: float) -> float:
        found = score(value * ratio)
        return inf if found is None else found

    low, high = ratios[max(at - 1, 0)], ratios[min(at + 1, len(ratios) - 1)]
    return value * golden_section(distance, low, high, STEPS_OF_A_FIT)


def _unexplained(given: OptimizerSubject, wrong: Sequence[str], base: Outcome) -> list[Cause]:
    where = place(wrong, given.names, given.kinds)
    name = wrong[0]
    prediction = given.prediction(given.rule, name)["given gradients"]
    found = pattern(prediction.exact, given.change(name))
    text = "nothing known reproduces the updates that MindSpore computes from given gradients"
    evidence = f"{len(wrong)} of {len(given.names)} parameters differ; {name}: {found}"
    return [cause("update", where, None, text, evidence, None, base.worst)]


class OptimizerSubject:
    """What MindSpore made of the given gradients, and what any plan makes of them, from MindSpore's own weights."""

    steps = GIVEN_STEPS

    def __init__(self, recipe: Recipe, traces: Traces) -> None:
        self.rule = UpdateRule.of(recipe)
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

    def change(self, name: str) -> np.ndarray:
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
        whole = [given_gradient(name, entry.shape, i).reshape(-1) for i in range(self.steps)]
        kept = whole if count == size else [g[sample_positions(size, count)] for g in whole]
        if count <= 1 << 14:
            self._whole[name] = kept
        return kept

    @cached_property
    def norms(self) -> dict[str, np.ndarray]:
        """Each parameter's gradient norms, one a step, over all that torch trains."""
        return {
            name: np.array(
                [np.linalg.norm(given_gradient(name, e.shape, i).astype(np.float64)) for i in range(self.steps)]
            )
            for name, e in self.everything.items()
        }

    @cached_property
    def norm(self) -> np.ndarray:
        """The global norm of the given gradients at each step."""
        return np.asarray(np.sqrt(sum(norm**2 for norm in self.norms.values())))

    def clipped(self, rule: UpdateRule, name: str, gradients: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The gradients as the plan clips and scales them."""
        if rule.clip is None:
            factors = np.ones(self.steps)
        elif rule.clip_by == "value":
            return [np.clip(g.astype(np.float64), -rule.clip, rule.clip) * rule.gradient for g in gradients]
        else:
            norm = self.norms[name] if rule.clip_by == "each" else self.norm
            eps = 0.0 if rule.clip_by == "no_eps" else CLIP_EPS
            summed = rule.micro if rule.clip_by == "sum" else 1  # clipped before the division by the micro-batches
            factors = rule.clip / (summed * norm + eps)
            factors = factors if rule.clip_by == "always" else np.minimum(1.0, factors)
        factors = factors * rule.gradient
        return [g if f == 1.0 else g.astype(np.float64) * f for g, f in zip(gradients, factors, strict=True)]

    def rates(self, rule: UpdateRule) -> dict[str, tuple[list[float], list[float], dict[str, Any]]]:
        """Parameter -> learning rate and weight decay of each update, and torch's other arguments."""
        owned = {name: self.kinds.get(name, "") for name in self.everything}
        found: dict[str, tuple[list[float], list[float], dict[str, Any]]] = {}
        groups = parameter_groups(owned, rule.optimizer)
        all_rates = moved_rates(rule, [{**rule.args, **group.args}["lr"] for group in groups], self.steps)
        for group, lrs in zip(groups, all_rates, strict=True):
            args = {**rule.args, **group.args}
            for name in group.names:
                found[name] = ([lr * rule.rate for lr in lrs], [args.get("weight_decay", 0.0)] * self.steps, args)
        return found

    def _known_rates(self, rule: UpdateRule) -> dict[str, tuple[list[float], list[float], dict[str, Any]]]:
        key = repr((rule.optimizer, rule.schedule, rule.moves, rule.rate, rule.micro))
        if key not in self._rates:
            self._rates = {**dict(list(self._rates.items())[-64:]), key: self.rates(rule)}  # type: ignore[dict-item]
        return self._rates[key]  # type: ignore[return-value]

    def prediction(self, rule: UpdateRule, name: str, few: bool = False) -> dict[str, Prediction]:
        """The change and the state of one parameter under a plan, by part of the trace."""
        lrs, decays, args = self._known_rates(rule)[name]
        if any(word in name for word in rule.undecayed.split()):
            decays = [0.0] * self.steps
        weight = self.start(name)
        gradients = self.clipped(rule, name, self.gradients(name, weight.size))
        if few:
            weight, gradients = weight[:FEW], [g[:FEW] for g in gradients]
        runs = []
        for dtype in (np.float64, np.float32):
            given = [g.astype(dtype) for g in gradients]
            change, state = optimizer_formulas.run(rule.kind, weight, given, lrs, decays, args, rule.switches, dtype)
            runs.append({PART: change, **{f"{PART} {key}": value for key, value in state.items()}})
        return {part: Prediction(runs[0][part], runs[1][part]) for part in runs[0]}

    def measures(self, rule: UpdateRule, name: str, few: bool = False) -> list[Measure]:
        """MindSpore's change and state of one parameter, judged against a plan's."""
        found = []
        for part, prediction in self.prediction(rule, name, few).items():
            key = ("update", part, name, 0)
            if not comparable(self.traces, key):
                continue
            subject = self.traces.mindspore.array(key)
            start: Entry | None = (
                self.traces.mindspore.entries.get(("init", "values", name, 0)) if part == PART else None
            )
            floor = storing(start) * (np.sqrt(prediction.exact.size / subject.size) if few else 1.0)
            subject = subject[: prediction.exact.size] if few else subject
            found.append(judge_prediction(subject, prediction, 2 * FLOOR_ULPS * EPS32, 2 * floor))
        return found

    def outcome(self, rule: UpdateRule, names: Sequence[str]) -> Outcome | None:
        """How a plan does on some parameters; None where torch cannot run it."""
        measures = or_none(lambda: {name: self.measures(rule, name) for name in names})
        if measures is None:
            return None
        bad = frozenset(name for name, found in measures.items() if any(m.verdict is Verdict.FAIL for m in found))
        return Outcome({name: max((m.ratio for m in found), default=0.0) for name, found in measures.items()}, bad)

    def score(self, rule: UpdateRule, names: Sequence[str]) -> float | None:
        """How far a plan is from MindSpore on the first elements of some parameters: a sum of logarithms, the smaller
        the closer, with nothing to gain below noise; None where torch cannot run it."""
        found = or_none(lambda: [m for name in names for m in self.measures(rule, name, few=True)])
        if found is None or not all(np.isfinite(m.ratio) or m.error for m in found):
            return None
        return float(sum(np.log10(min(max(m.ratio, 1e-2), 1e12)) for m in found))

    def within(self, rule: UpdateRule, names: Sequence[str]) -> bool:
        """Whether a plan reproduces the first elements of some parameters."""
        found = or_none(lambda: [m for name in names for m in self.measures(rule, name, few=True)])
        return bool(found) and all(m.ratio <= 2 * RATIO for m in found or [])

    def holds(self, rule: UpdateRule, names: Sequence[str]) -> bool:
        """Whether a plan reproduces some parameters, wholly."""
        tried = self.outcome(rule, names)
        return tried is not None and tried.reproduces

    def differ(self, rule: UpdateRule, name: str) -> bool:
        """Whether a plan moves the first elements of a parameter otherwise than the recipe does."""
        one, other = self.prediction(rule, name, few=True), self.prediction(self.rule, name, few=True)
        return any(not np.allclose(one[part].exact, other[part].exact, rtol=1e-9, atol=0.0) for part in one)

    def representatives(self, names: Sequence[str], wrong: Sequence[str]) -> list[str]:
        """One small parameter of each sort: class of its module, weight or bias, group, failing or not."""
        rates = self._known_rates(self.rule)
        chosen: dict[Any, str] = {}
        for name in names:
            sort = (self.kinds[name], name.rsplit(".", 1)[-1], repr(rates[name]), name in wrong)
            size, best = self.entries[name].shape, chosen.get(sort)
            if best is None or _better(size, self.entries[best].shape):
                chosen[sort] = name
        return list(chosen.values())


def moved_rates(rule: UpdateRule, bases: Sequence[float], steps: int) -> list[list[float]]:
    """The learning rates of each group, by its base rate, under the plan's schedule moved as the plan says."""
    if rule.schedule is None:
        return [[base] * steps for base in bases]
    row = table.row(rule.optimizer.name)
    parameters = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": base} for base in bases]
    optimizer = getattr(torch.optim, row.short)(parameters, lr=bases[0])
    moved: list[list[float]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no optimizer step is taken here
        schedule = build_schedule(rule.schedule, optimizer)
        for _ in range(steps * max(2, rule.micro) + 2):
            moved.append([group["lr"] for group in optimizer.param_groups])
            schedule.step()
    at = {
        "never": [0] * steps,
        "late": [max(0, i - 1) for i in range(steps)],
        "early": [i + 1 for i in range(steps)],
        "twice": [2 * i for i in range(steps)],
        "micro": [rule.micro * i for i in range(steps)],
    }.get(rule.moves, list(range(steps)))
    rates = [[moved[i][g] for i in at] for g in range(len(bases))]
    if rule.moves == "from_zero":
        return [_from_zero(rule, base, found) for base, found in zip(bases, rates, strict=True)]
    if rule.moves == "continuous":
        args = table.arguments(rule.schedule.name, rule.schedule.args)
        if "step_size" not in args:
            raise ValueError("only a staircase can be made continuous")
        return [[base * args["gamma"] ** (i / args["step_size"]) for i in range(steps)] for base in bases]
    return rates


def _from_zero(rule: UpdateRule, base: float, rates: list[float]) -> list[float]:
    """The warm-up from 0 instead of from start_factor, which nn.WarmUpLR makes. Raises ValueError without a warm-up."""
    assert rule.schedule is not None
    args, name = rule.schedule.args, rule.schedule.name
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
