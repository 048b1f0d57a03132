"""Why updates differ: the optimizer on given gradients, under other rules, and the moving average of the weights."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from math import inf
from typing import Any

import numpy as np
import torch

from ....mappings import table
from ....printable import few
from ....training.recipe.schema import Ema, decay
from ....training.step.parameter_groups import parameter_groups
from ....training.step.torch_step import build_schedule
from ...align.torch_user_model import PairStep
from ...align.user_model import without_optimizer
from ...record.randomness import GIVEN_STEPS, given_gradient, given_weights
from ...result import Cause
from ...tensor_verdict import EPS32, RATIO, Measure
from ...trace import Key
from ..context import Context, recorded
from ..differences import pattern
from ..hypotheses import (
    FLOOR,
    Hypothesis,
    Outcome,
    Prediction,
    Trial,
    cause,
    caused,
    first,
    fit,
    judge_prediction,
    or_none,
    search,
    slightly_nearer,
)
from ..mutations.optimizers import (
    CLIP_EPS,
    CYCLED,
    EPOCHS,
    Decay,
    Rates,
    UpdateHypothesis,
    UpdateRule,
    average_decays,
    described,
    free_numbers,
    of_fault_tables,
    predictions,
    single_changes,
    stand_ins,
)
from . import clipping_and_loss_scale

FAINT = 0.3  # decimal orders of magnitude per parameter by which a fault at the edge of noise has to bring torch nearer
BEAM = 12  # rules that are followed further where no single change explains everything
BELOW_ONE = ("betas[0]", "betas[1]", "alpha")
PART = "given gradients"
AVERAGES = "given weights ema"
NEAR = 1e-3  # share of a step's change by which rounding of the stored average may be off
FEW = 512  # elements of a parameter that a quick look uses
UpdateTrial = Trial[UpdateRule]


def explain(context: Context) -> list[Cause]:
    """The causes of what failed in stage update, buffers excepted (their modules explain those)."""
    given = context.paired.given if context.paired is not None else None
    if context.paired is not None and context.paired.alignment.scope.own_step:
        held = given is not None and given.step is not None and given.optimizer is not None
        causes = _average_between_steps(context) + (_of_an_own_optimizer(context) if held else [])
        return causes or clipping_and_loss_scale.another_rate(context)
    if not context.failed("update") or (given is not None and given.step is not None):
        return []
    if given is not None and given.optimizer is not None:
        return _of_an_own_optimizer(context)
    subject = OptimizerSubject(context, UpdateRule.of(context.recipe))
    causes = subject.causes() or clipping_and_loss_scale.given_norms(context)
    causes += _average(context) + clipping_and_loss_scale.loss_scaling(context)
    causes += clipping_and_loss_scale.statistics_decayed(context)
    if not causes:
        causes += _skipped_rates(subject)
    if not causes and subject.names:
        rule = subject.rule
        causes += clipping_and_loss_scale.first_update(context, subject.rates(rule), rule.kind, rule.switches)
    return causes


def _of_an_own_optimizer(context: Context) -> list[Cause]:
    """The causes where the user's function brings torch's optimizer: its own options take the place of the recipe's."""
    assert context.paired is not None
    step = PairStep(context.recipe, copy.deepcopy(context.model), context.paired.given)
    names = {id(parameter): name for name, parameter in step.model.named_parameters()}
    held = [names[id(parameter)] for group in step.optimizer.param_groups for parameter in group["params"]]
    wrong = [f for f in context.failed("update") if f.part.startswith(PART) and f.name in held]
    if not wrong:
        return []
    kind, recipe = type(step.optimizer), without_optimizer(context.recipe)
    groups = [([names[id(p)] for p in group["params"]], group) for group in step.optimizer.param_groups]
    ways: Iterable[UpdateRule] = stand_ins(step.optimizer.defaults, groups, recipe)
    if kind.__module__.startswith("torch.optim"):
        rule = described(kind.__name__, step.optimizer.defaults, groups, recipe)
        ways = [rule] if rule is not None else []
    for rule in ways:
        subject = OptimizerSubject(context, rule, held)
        if kind.__module__.startswith("torch.optim") or subject.is_torchs:
            return subject.causes()
    text = "the two optimizers differ, and nothing was tried out: "
    text += f"torch's {kind.__qualname__} follows no rule that is known"
    where = context.place([f.name for f in wrong], held)
    differ = len({f.name for f in wrong})
    evidence = f"{differ} of {len(held)} parameters differ after {GIVEN_STEPS} updates with given gradients"
    return [cause("update", where, None, text, evidence, None, wrong[0].ratio)]


def _skipped_rates(subject: OptimizerSubject) -> list[Cause]:
    """A schedule that stands still in a step that is skipped; the rates are recorded step by step."""
    part, context = "learning rate and weight decay", subject.context
    wrong = context.failed("update", part)
    finite = [float(v) for v in clipping_and_loss_scale.series(context.mindspore, "finite")]
    keys = [key for f in wrong if context.comparable(key := ("update", part, f.name, 0))]
    if not keys or not finite or all(finite) or subject.rule.schedule is None:
        return []
    moved = [int(sum(finite[:i])) for i in range(len(finite))]
    for key in keys:
        of_torch, of_mindspore = (
            trace.array(key).reshape(-1, 2)[:, 0] for trace in (context.traces.matched[0], context.mindspore)
        )
        if len(of_torch) != len(moved) or not np.allclose(of_mindspore, of_torch[moved], rtol=1e-6, atol=0.0):
            return []
    text = "the schedule stands still in a step that is skipped; in torch's loop it moves on"
    evidence = f"learning rates of {len(keys)} parameters over {len(finite)} steps, which were {finite} finite"
    where = context.place([key[2] for key in keys], subject.names)
    return [cause("update", where, "overflow-drop-update", text, evidence, 0.0, wrong[0].ratio)]


class OptimizerSubject:
    """MindSpore's updates by the given gradients, and those by any rule, from MindSpore's own weights."""

    steps = GIVEN_STEPS

    def __init__(self, context: Context, rule: UpdateRule, held: Container[str] | None = None) -> None:
        """rule: torch's; held: the parameters that the optimizer has, where those are not all."""
        self.context, recipe = context, context.recipe
        self.rule = rule
        self.scale = recipe.dynamic_loss_scale.init_scale if recipe.dynamic_loss_scale else recipe.loss_scale
        self.entries = {
            e.name: e
            for e in context.mindspore.select("update", PART)
            if context.comparable(e.key)
            and ("init", "values", e.name, 0) in context.mindspore.entries
            and (held is None or e.name in held)
        }
        self.names = list(self.entries)
        self.everything = {e.name: e for e in context.traces.alone[1].select("update", PART)}
        self.kinds = context.kinds({**self.entries, **self.everything})
        self._rates: dict[str, dict[str, Rates]] = {}
        self._whole: dict[str, list[np.ndarray]] = {}
        self._sample = self.names
        self._reached: list[UpdateRule] = [self.rule]

    @property
    def is_torchs(self) -> bool:
        """Whether torch's optimizer, written by the user, computes by this rule."""
        few = self.representatives(self.names, [])
        measures = or_none(lambda: self._measures(self.rule, few, few=True, values=self.context.torch_values))
        return bool(measures) and Outcome.of(measures or {}).reproduces

    def causes(self) -> list[Cause]:
        """The fewest changes of the rule under which every parameter comes out as MindSpore's; for a difference at the
        edge of noise, the known fault under which torch comes clearly nearer."""
        base = self.outcome([])
        if base is None or base.reproduces:
            return self._slight()
        wrong = self._names(base.failing)
        self._sample = self.representatives(self.names, wrong)
        found = search(self._steps, base, BEAM, partial(self._otherwise, wrong))
        if not found.reproduces:
            return [self._unexplained(wrong, base)]
        rule = found.chain[-1].change
        # a rule that holds for all parameters is at fault wherever it differs from the recipe's
        whole = self._reproduced(rule, self.names) is not None
        touched = self._touched(rule) if whole else wrong
        tried = self.outcome([rule], touched)
        assert tried is not None
        how = f": if {' and '.join(step.text for step in found.chain)}, torch is {tried.worst:.2g} times"
        return self._described(found.chain, touched, how, tried, base)

    def _slight(self) -> list[Cause]:
        if not self.names or not any(f.part.startswith(PART) for f in self.context.failed("update")):
            return []
        self._sample = self.representatives(self.names, [])
        usual = self.quick([])
        most = usual.distance - FAINT * len(self._sample) if usual is not None else -inf
        tables = of_fault_tables(self.rule, table.faults(), self.scale)
        for step in slightly_nearer(self, tables, lambda quick: quick.distance <= most)[:1]:
            touched = self._touched(step.change)
            before, after = self.outcome([], touched), self.outcome([step.change], touched)
            if before is not None and after is not None and after.reproduces:
                how = f", at the edge of noise: if {step.text}, torch is at most {after.worst:.2g} times"
                return self._described([step], touched, how, after, before)
        return []

    def _described(
        self, steps: Sequence[UpdateHypothesis], touched: Sequence[str], how: str, after: Outcome, before: Outcome
    ) -> list[Cause]:
        where = self.context.place(touched, self.names)
        evidence = f"{self.steps} updates with given gradients{how} the noise from MindSpore, as it is "
        evidence += f"{before.worst:.3g} times"
        spared = [name for name in touched if any(word in name for word in steps[-1].change.undecayed.split())]
        apart = self.context.place(spared, self.names) if spared and len(steps) > 1 else where
        return [
            caused("update", apart if step.change.undecayed else where, Trial((step,), after, before), evidence)
            for step in steps
        ]

    def _unexplained(self, wrong: Sequence[str], base: Outcome) -> Cause:
        where, name = self.context.place(wrong, self.names), wrong[0]
        exact = self.prediction(self.rule, name)[PART].exact
        found = pattern(exact, self.context.mindspore_values(("update", PART, name, 0)))
        text = "nothing known reproduces the updates that MindSpore computes from given gradients"
        evidence = f"{len(wrong)} of {len(self.names)} parameters differ; {name}: {found}"
        return cause("update", where, None, text, evidence, None, base.worst)

    def _steps(self, trial: UpdateTrial) -> Iterator[UpdateTrial]:
        """Every rule with one change more: its outcome at a quick look, or the full one where that finds no
        difference."""
        rule = trial.chain[-1].change if trial.chain else self.rule
        for each in (*of_fault_tables(rule, table.faults(), self.scale), *single_changes(rule)):
            words = each.change.undecayed.split()
            spares_none = words and not any(word in name for word in words for name in self.names)
            if spares_none or each.change in self._reached:
                continue
            self._reached.append(each.change)
            outcome = self.quick([each.change])
            if outcome is not None and outcome.reproduces:
                outcome = self.outcome([each.change])
            if outcome is not None:
                yield Trial((*trial.chain, each), outcome, trial.before)

    def _otherwise(
        self, wrong: Sequence[str], followed: Sequence[UpdateTrial], found: Sequence[UpdateTrial]
    ) -> UpdateTrial | None:
        """A single change, on the parameters that differ only; or another value of one number."""
        for trial in found:
            rule = trial.chain[-1].change
            if rule.undecayed or set(wrong) & set(self._names(trial.outcome.failing)):
                continue
            if (outcome := self._reproduced(rule, wrong)) is not None:
                return Trial(trial.chain, outcome, trial.before)
        for trial in (*followed[:2], *found[:2]):
            rule = trial.chain[-1].change if trial.chain else self.rule
            for fault, name, value, put, fix, reach in free_numbers(rule):
                valley = fit(partial(self._distance, put, value), 1 / reach, reach, True)
                if valley is None:
                    continue
                best = value * valley[0]
                if name in BELOW_ONE and best >= 1.0:
                    continue  # torch does not accept such a value
                changed = put(best)
                quick = self.quick([changed])
                if quick is None or not quick.reproduces:
                    continue
                outcome = self._reproduced(changed, self.names) or self._reproduced(changed, wrong)
                if outcome is not None:
                    than = "times torch's" if value == 1.0 else f"where torch has {value}"
                    one = Hypothesis(fault, f"{name} is {best:.5g} {than}", changed, fix)
                    return Trial((*trial.chain, one), outcome, trial.before)
        return None

    def _distance(self, put: Callable[[float], UpdateRule], value: float, ratio: float) -> float:
        quick = self.quick([put(value * ratio)])
        return inf if quick is None else quick.distance

    def _names(self, keys: Iterable[str]) -> list[str]:
        found = {key.rpartition(" ")[2] for key in keys}
        return [name for name in self.names if name in found]

    def gradients(self, name: str, count: int) -> list[np.ndarray]:
        """The given gradients at the `count` recorded elements, before clipping."""
        if name not in self._whole:
            shape = self.entries[name].shape
            found = [recorded(given_gradient(name, shape, i), count) for i in range(self.steps)]
            if count > 1 << 14:
                return found
            self._whole[name] = found
        return self._whole[name]

    @cached_property
    def norms(self) -> dict[str, np.ndarray]:
        """Each parameter's gradient norms, one per step, for all parameters that torch trains."""
        steps = range(self.steps)
        return {
            name: np.array([np.linalg.norm(given_gradient(name, e.shape, i).astype(np.float64)) for i in steps])
            for name, e in self.everything.items()
        }

    def clipped(self, rule: UpdateRule, name: str, gradients: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The gradients as the rule clips and scales them."""
        if rule.clip is None:
            factors = np.ones(self.steps)
        elif rule.clip_by == "value":
            return [np.clip(g.astype(np.float64), -rule.clip, rule.clip) * rule.gradient for g in gradients]
        else:
            norm = self.norms[name] if rule.clip_by == "each" else np.sqrt(sum(norm**2 for norm in self.norms.values()))
            eps = 0.0 if rule.clip_by == "no_eps" else CLIP_EPS
            summed = rule.micro if rule.clip_by == "sum" else 1  # clipped before the division by the micro-batches
            factors = rule.clip / (summed * norm + eps)
            factors = factors if rule.clip_by == "always" else np.minimum(1.0, factors)
        factors = factors * rule.gradient
        return [g if f == 1.0 else g.astype(np.float64) * f for g, f in zip(gradients, factors, strict=True)]

    def rates(self, rule: UpdateRule) -> dict[str, Rates]:
        """Parameter -> learning rate and weight decay of each update, and torch's other arguments."""
        key = repr((rule.optimizer, rule.schedule, rule.moves, rule.rate, rule.micro))
        if key not in self._rates:
            groups = parameter_groups({name: self.kinds[name] for name in self.everything}, rule.optimizer)
            every = [{**rule.args, **group.args} for group in groups]
            moved = moved_rates(rule, bases := [args["lr"] for args in every], self.steps)
            every = [args | more for args, more in zip(every, cycled_momenta(rule, bases, self.steps), strict=True)]
            found = {
                name: ([lr * rule.rate for lr in lrs], [args.get("weight_decay", 0.0)] * self.steps, args)
                for group, args, lrs in zip(groups, every, moved, strict=True)
                for name in group.names
            }
            self._rates = {**dict(list(self._rates.items())[-64:]), key: found}
        return self._rates[key]

    def prediction(self, rule: UpdateRule, name: str, few: bool = False) -> dict[str, Prediction]:
        """The change and the state of one parameter under a rule, by part of the trace."""
        lrs, decays, args = self.rates(rule)[name]
        if any(word in name for word in rule.undecayed.split()):
            decays = [0.0] * self.steps
        weight = self.context.mindspore_values(("init", "values", name, 0)).astype(np.float32)
        gradients = self.clipped(rule, name, self.gradients(name, weight.size))
        if few:
            weight, gradients = weight[:FEW], [g[:FEW] for g in gradients]
        found = predictions(rule.kind, weight, gradients, (lrs, decays, args), rule.switches)
        return {f"{PART} {key}".strip(): prediction for key, prediction in found.items()}

    def _measures(
        self, rule: UpdateRule, names: Iterable[str], few: bool, values: Callable[[Key], np.ndarray] | None = None
    ) -> dict[str, Measure]:
        """MindSpore's (or torch's) change and state of some parameters, judged against a rule, by part and name."""
        found, values = {}, values or self.context.mindspore_values
        for name in names:
            for part, prediction in self.prediction(rule, name, few).items():
                key = ("update", part, name, 0)
                if self.context.comparable(key):
                    subject, size = values(key), prediction.exact.size
                    floor = self.context.storing(name) * np.sqrt(size / subject.size) if part == PART else 0.0
                    found[f"{part} {name}"] = judge_prediction(subject[:size], prediction, FLOOR, 2 * floor)
        return found

    def outcome(self, changes: Sequence[UpdateRule], names: Sequence[str] | None = None) -> Outcome | None:
        """A rule's outcome on all parameters, or on some; None where torch cannot run it."""
        rule = changes[-1] if changes else self.rule
        measures = or_none(lambda: self._measures(rule, self.names if names is None else names, few=False))
        return None if measures is None else Outcome.of(measures)

    def quick(self, changes: Sequence[UpdateRule]) -> Outcome | None:
        """The outcome on the first elements of a sample of the parameters, with some room for their noise."""
        rule = changes[-1] if changes else self.rule
        measures = or_none(lambda: self._measures(rule, self._sample, few=True))
        if not measures or not all(np.isfinite(m.ratio) or m.error for m in measures.values()):
            return None
        failing = frozenset(key for key, measure in measures.items() if measure.ratio > 2 * RATIO)
        return Outcome({key: measure.ratio for key, measure in measures.items()}, failing)

    def _reproduced(self, rule: UpdateRule, names: Sequence[str]) -> Outcome | None:
        """The outcome on some parameters; None where one of them fails."""
        outcome = self.outcome([rule], names)
        return outcome if outcome is not None and outcome.reproduces else None

    def _touched(self, rule: UpdateRule) -> list[str]:
        """The parameters whose first elements a rule updates differently from the recipe's."""
        touched = []
        for name in self.names:
            one, other = self.prediction(rule, name, few=True), self.prediction(self.rule, name, few=True)
            if any(not np.allclose(one[part].exact, other[part].exact, rtol=1e-9, atol=0.0) for part in one):
                touched.append(name)
        return touched

    def representatives(self, names: Sequence[str], wrong: Sequence[str]) -> list[str]:
        """One small parameter of each sort; a sort is module class, weight or bias, group, failing or not."""
        rates = self.rates(self.rule)
        chosen: dict[Any, str] = {}
        for name in names:
            sort = (self.kinds[name], name.rsplit(".", 1)[-1], repr(rates[name]), name in wrong)
            size, best = self.entries[name].shape, chosen.get(sort)
            if best is None or _better(size, self.entries[best].shape):
                chosen[sort] = name
        return list(chosen.values())


def moved_rates(rule: UpdateRule, bases: Sequence[float], steps: int) -> list[list[float]]:
    """The learning rates of each group, from its base rate, under the rule's schedule, moved as the rule says."""
    if rule.schedule is None:
        return [[base] * steps for base in bases]
    rates = _moved(rule, bases, steps, lambda group: float(group["lr"]))
    if rule.moves == "from_zero":
        return [_from_zero(rule, base, found) for base, found in zip(bases, rates, strict=True)]
    if rule.moves == "continuous":
        args = table.arguments(rule.schedule.name, rule.schedule.args)
        if "step_size" not in args:
            raise ValueError("only a staircase can be made continuous")
        return [[base * args["gamma"] ** (i / args["step_size"]) for i in range(steps)] for base in bases]
    return rates


def cycled_momenta(rule: UpdateRule, bases: Sequence[float], steps: int) -> list[dict[str, list[float]]]:
    """CYCLED: the momentum, or beta1, of each group by update; nothing where the rule's schedule does not move it."""
    if not (plan := rule.schedule) or not table.arguments(plan.name, plan.args).get("cycle_momentum"):
        return [{}] * len(bases)
    moved = _moved(rule, bases, steps, lambda group: float(group.get("momentum", group.get("betas", (0.0,))[0])))
    return [{CYCLED: momenta} for momenta in moved]


def _moved(rule: UpdateRule, bases: Sequence[float], steps: int, of: Callable[[Any], float]) -> list[list[float]]:
    """What a schedule makes of a value of each group, by update."""
    assert rule.schedule is not None
    parameters = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": base} for base in bases]
    optimizer = getattr(torch.optim, rule.kind)(parameters, lr=bases[0])
    moved: list[list[float]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no optimizer step is taken here
        schedule = build_schedule(rule.schedule, optimizer)
        for _ in range(steps * max(2, rule.micro) + 2):
            moved.append([of(group) for group in optimizer.param_groups])
            with suppress(ValueError):  # OneCycleLR has an end, which a hypothesis may go beyond
                schedule.step()
    at = {
        "never": [0] * steps,
        "late": [max(0, i - 1) for i in range(steps)],
        "early": [i + 1 for i in range(steps)],
        "twice": [2 * i for i in range(steps)],
        "micro": [rule.micro * i for i in range(steps)],
        **{f"every {count}": [i - i % count for i in range(steps)] for count in EPOCHS},
    }.get(rule.moves, list(range(steps)))
    return [[moved[i][g] for i in at] for g in range(len(bases))]


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
    """Whether a parameter of this size is better for trials: at least 8 elements, and then the fewer the better."""
    one, other = int(np.prod(size, dtype=np.int64)), int(np.prod(best, dtype=np.int64))
    return (one < other) if one >= 8 else (one > other)


def _average(context: Context) -> list[Cause]:
    """Causes of what failed in the moving average."""
    rule = context.recipe.ema
    if rule is None:
        return []
    causes = _average_rule(rule, context) if context.failed("update", AVERAGES) else []
    step = clipping_and_loss_scale.first_step(context.mindspore)
    if causes or not context.failed("update", f"step{step} ema"):
        return causes
    return _averaged_buffers(rule, context, step) or _averaged_before(context, step)


def _average_between_steps(context: Context) -> list[Cause]:
    """How the moving average of a user's own step differs from the other side's: in what it holds, in when it is taken,
    or in its decay, as far as the first average shows."""
    paired, step = context.paired, clipping_and_loss_scale.first_step(context.mindspore)
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
    known = (("init", "values"), ("update", f"step{step}"))
    names = [name for name in names if all((*where, name, 0) in entries for where in known)]
    shares = [_share(context, values, step, names) for values in (context.mindspore_values, context.torch_values)]
    if step != 1 or None in shares:
        return []
    mindspore, torch = (round(1.0 - float(share), 4) for share in shares if share is not None)
    if mindspore == torch:
        return []
    evidence = f"a share of {shares[0]:.4g} of the first update reaches MindSpore's average, {shares[1]:.4g} torch's"
    if mindspore == 1.0:
        text = "the moving average is taken before the update, from the old weights"
        return [cause("update", "the moving average", "ema-order", text, evidence, 0.0)]
    text = f"the moving average keeps a share of {mindspore:g} of itself, torch's {torch:g}"
    return [cause("update", "the moving average", "ema-argument", text, evidence, 0.0)]


def _share(context: Context, values: Callable[[Key], np.ndarray], step: int, names: Sequence[str]) -> float | None:
    """The share of a step's change that reaches the average, which began as the starting weights; None where no single
    share explains it."""
    changes = [values(("update", f"step{step}", name, 0)).astype(np.float64) for name in names]
    starts = [context.mindspore_values(("init", "values", name, 0)).astype(np.float64) for name in names]
    averages = [values(("update", f"step{step} ema", name, 0)).astype(np.float64) for name in names]
    if not names or any(len({a.size, b.size, c.size}) > 1 for a, b, c in zip(changes, starts, averages, strict=True)):
        return None
    change = np.concatenate(changes)
    moved = np.concatenate([average - start for average, start in zip(averages, starts, strict=True)])
    share = float(change @ moved / (change @ change)) if change.any() else 0.0
    return share if np.linalg.norm(moved - share * change) < NEAR * np.linalg.norm(change) else None


def _average_rule(rule: Ema, context: Context) -> list[Cause]:
    entries = context.mindspore.entries
    names = [e.name for e in context.mindspore.select("update", AVERAGES) if context.comparable(e.key)]
    names = [name for name in names if ("init", "values", name, 0) in entries]
    some = sorted(names, key=lambda name: entries["update", AVERAGES, name, 0].norm)[-3:]

    def outcome(at: Decay, of: Sequence[str] = names) -> Outcome:
        return Outcome.of({name: _given_average(context, name, at) for name in of})

    before = outcome(partial(decay, rule))
    if before.reproduces:
        return []
    wrong = [name for name in names if name in before.failing]
    where = f"ema of {context.place(wrong, names)}"

    def distance(at: Decay) -> float:
        return sum(_given_average(context, name, at).relative for name in some)

    tries = (each for each in average_decays(rule, distance) if outcome(each.change, some).reproduces)
    found = first(tries, outcome, before)
    if found is not None:
        evidence = (
            f"{GIVEN_STEPS} averages of given weights: {found.outcome.worst:.2g} times the noise, by the "
            f"recipe {before.worst:.3g}"
        )
        return [caused("update", where, found, evidence)]
    text = "no known rule gives MindSpore's moving average of given weights"
    return [cause("update", where, None, text, "", None, before.worst)]


def _given_average(context: Context, name: str, at: Decay) -> Measure:
    """The average of the given weights of one parameter under a rule, judged against MindSpore's."""
    key = ("update", AVERAGES, name, 0)
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


def _averaged_buffers(rule: Ema, context: Context, step: int) -> list[Cause]:
    """The cause of a wrong average of the buffers: left at its start, or a copy of them."""
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


def _averaged_before(context: Context, step: int) -> list[Cause]:
    """The cause of an average that is taken before the update of the weights."""
    entries, values = context.mindspore.entries, context.mindspore_values
    names = [e.name for e in context.mindspore.select("update", f"step{step}")]
    averages = {n: key for n in names if (key := ("update", f"step{step} ema", n, 0)) in entries}
    starts = {n: key for n in averages if (key := ("init", "values", n, 0)) in entries}
    if step != 1 or not averages or any(not np.array_equal(values(averages[n]), values(starts[n])) for n in starts):
        return []
    text = "the average is taken before the update: after the first step it is still the starting weights"
    return [cause("update", "ema", "ema-order", text, f"{len(averages)} averages equal to the bit", 0.0)]
