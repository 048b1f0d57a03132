"""A recipe's update rule, as one value, and its moving average; the changes of both that hypotheses make.

torch's optimizers are written for one parameter, element by element, so that a stratified sample of a large parameter
is enough. The formulas are those of torch.optim's pages; a `switch` names one deviation, and a formula ignores those of
others. NumPy, in the given dtype: float64 for a hypothesis's exact values, float32 for its rounding.
"""

from __future__ import annotations

import glob
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ....errors import BadInput, UnknownRow
from ....mappings import table
from ....mappings.rows import Fault
from ....printable import few
from ....training.recipe.schema import Ema, Group, Optimizer, Recipe, Schedule, decay
from ..hypotheses import Hypothesis, Prediction, golden_section

Decay = Callable[[int], float]  # of a moving average, by the number of the update
EPOCHS = (2, 3, 4)  # lengths of an epoch, in updates, whose end the compared updates would show


@dataclass(frozen=True)
class UpdateRule:
    """How weights are updated from given gradients.

    optimizer, schedule: the recipe's. clip: the norm that gradients are clipped to, None without; clip_by: global, each
    (parameter's), value, no_eps, always, or sum (of the micro-batches). switches: deviations of the optimizer's
    formula. moves: how the schedule moves: as it is, never, late, early, twice, micro (after each micro-batch), every N
    (updates), from_zero or continuous; micro: how many micro-batches a step has. rate, gradient: factors of every
    learning rate and of every gradient. undecayed: parameters that the decay leaves out because of their names.
    """

    optimizer: Optimizer
    schedule: Schedule | None = None
    clip: float | None = None
    clip_by: str = "global"
    switches: frozenset[str] = frozenset()
    moves: str = "as it is"
    micro: int = 1
    rate: float = 1.0
    gradient: float = 1.0
    undecayed: str = ""

    @classmethod
    def of(cls, recipe: Recipe) -> UpdateRule:
        """The recipe's update rule."""
        return cls(
            recipe.optimizer, recipe.schedule, recipe.clip.max_norm if recipe.clip else None, micro=recipe.accumulate
        )

    @property
    def kind(self) -> str:
        """The optimizer's class name."""
        return table.row(self.optimizer.name).short

    @property
    def args(self) -> dict[str, Any]:
        """The optimizer's arguments with torch's defaults filled in."""
        return table.arguments(self.optimizer.name, self.optimizer.args)

    def with_args(self, **args: Any) -> UpdateRule:
        """The rule with other optimizer arguments, in every group that does not set its own."""
        return self.with_optimizer(args={**self.optimizer.args, **args})

    def with_optimizer(self, **fields: Any) -> UpdateRule:
        """The rule with some fields of its optimizer changed."""
        return replace(self, optimizer=self.optimizer.model_copy(update=fields))


UpdateHypothesis = Hypothesis[UpdateRule]
Groups = Sequence[tuple[Sequence[str], Mapping[str, Any]]]  # names of parameters, and their options
# names that users' own optimizers have for torch's options
OWN_NAMES = {"learning_rate": "lr", "epsilon": "eps", "wd": "weight_decay", "decay": "weight_decay", "rho": "alpha"}
BETAS = (("beta1", "beta2"), ("beta_1", "beta_2"), ("b1", "b2"))


def described(kind: str, defaults: Mapping[str, Any], groups: Groups, recipe: Recipe) -> UpdateRule | None:
    """The rule of an optimizer of one of torch's classes, by its options; None where the table lacks its class.

    recipe: for the rest of the rule.
    """
    try:
        usual = table.arguments(kind, {"lr": 1.0})
    except (UnknownRow, BadInput):
        return None

    def plain(options: Mapping[str, Any]) -> dict[str, Any]:
        found = {key: options[key] for key in usual if key != "params" and options.get(key) is not None}
        return {key: v.item() if hasattr(v, "item") else v for key, v in found.items()}

    base = {key: value for key, value in plain(defaults).items() if key == "lr" or value != usual[key]}
    own = []
    for names, options in groups:
        changed = {key: value for key, value in plain(options).items() if value != base.get(key, usual[key])}
        if changed:
            own.append(Group(params=[glob.escape(name) for name in names], args=changed))
    optimizer = Optimizer(name=kind, args=base, groups=own)
    return UpdateRule.of(recipe.model_copy(update={"optimizer": optimizer}))


def stand_ins(defaults: Mapping[str, Any], groups: Groups, recipe: Recipe) -> Iterator[UpdateRule]:
    """Torch's rules that a user's own optimizer may follow, as they are and with one deviation."""

    def in_torchs_words(options: Mapping[str, Any]) -> dict[str, Any]:
        found = {OWN_NAMES.get(key, key): value for key, value in options.items()}
        both = [(options[one], options[two]) for one, two in BETAS if one in options and two in options]
        return {**found, "betas": both[0]} if both else found

    own = [(names, in_torchs_words(options)) for names, options in groups]
    for kind in _UPDATES if "lr" in in_torchs_words(defaults) else ():
        rule = described(kind, in_torchs_words(defaults), own, recipe)
        if rule is not None:
            yield rule
            for fault in table.faults().values():
                say = fault.hypothesis
                if say.get("verb") == "update" and "switches" in say and kind in say.get("of", [kind]):
                    yield replace(rule, switches=frozenset(say["switches"]))


def of_fault_tables(rule: UpdateRule, faults: Mapping[str, Fault], scale: float | None) -> Iterator[UpdateHypothesis]:
    """The hypotheses of the fault tables on updates; scale: the loss scale, where there is one."""
    for fault in faults.values():
        say = fault.hypothesis
        if say.get("verb") != "update" or rule.kind not in say.get("of", [rule.kind]):
            continue
        changed = rule
        if "args" in say:
            changed = changed.with_args(**{k: v for k, v in say["args"].items() if k in rule.args})
        if "no_weight_decay" in say:
            changed = changed.with_optimizer(no_weight_decay=say["no_weight_decay"])
        if "switches" in say:
            changed = replace(changed, switches=changed.switches | set(say["switches"]))
        if "clip_by" in say and rule.clip is not None and (say["clip_by"] != "sum" or rule.micro > 1):
            changed = replace(changed, clip_by=say["clip_by"])
        if "moves" in say and rule.schedule is not None and (say["moves"] != "micro" or rule.micro > 1):
            changed = replace(changed, moves=say["moves"])
        if "spared" in say:
            changed = replace(changed, undecayed=say["spared"])
        if say.get("gradient") == "unscaled again" and scale:
            changed = replace(changed, gradient=1.0 / scale)
        if changed != rule:
            yield Hypothesis(fault.id, say.get("text", fault.mindspore), changed)


def single_changes(rule: UpdateRule) -> Iterator[UpdateHypothesis]:
    """Every change of one argument: left to torch's default, switched off, complemented, or swapped."""
    yield from _arguments(rule)
    yield from _groups(rule)
    yield from _schedule(rule)
    if rule.clip is not None:
        yield Hypothesis("clip-missing", "the gradients are not clipped", replace(rule, clip=None))
        text = "each element is clipped, not the norm"
        yield Hypothesis("clip-by-value", text, replace(rule, clip_by="value"))
        text = "gradients below the norm are scaled up to it"
        yield Hypothesis("clip-always", text, replace(rule, clip_by="always"))
    if rule.micro > 1:
        text = f"the gradients of the {rule.micro} micro-batches are divided by {rule.micro} once more"
        yield Hypothesis("gradient-factor", text, replace(rule, gradient=1.0 / rule.micro))
        text = f"the gradients are {rule.micro} times too large: the micro-batches are summed"
        yield Hypothesis("accumulate-sum", text, replace(rule, gradient=float(rule.micro)))
    for switch, text in OWN_SWITCHES.items() if rule.kind in ("Adam", "AdamW") else ():
        yield Hypothesis(None, text, replace(rule, switches=rule.switches | {switch}), "compute as torch does")
    yield Hypothesis("gradient-flipped", "the update goes up the gradient", replace(rule, gradient=-1.0))


# deviations that none of MindSpore's optimizers has, but a user's own may have
OWN_SWITCHES = {
    "eps_inside_root": "eps stands inside the root",
    "no_second_correction": "the second moment has no bias correction",
}


def _arguments(rule: UpdateRule) -> Iterator[UpdateHypothesis]:
    row, args = table.row(rule.optimizer.name), rule.args
    for argument in row.arguments:
        name = argument.torch
        if not argument.to or argument.required or name not in args:
            continue
        value = args[name]
        others: list[Any] = [argument.default]
        if isinstance(value, bool):
            others.append(not value)
        elif isinstance(value, (int, float)):
            others.append(0.0)
            others += [1.0 - value] if 0.0 < value < 1.0 and name not in ("lr", "eps", "weight_decay") else []
        elif name == "betas":
            first, second = value
            others += [[second, first], [1 - first, second], [first, 1 - second]]
            others += [[1 - first, 1 - second], [first, first]]
        for other in others:
            if other is None or other == value or (name == "lr" and not other):
                continue
            changed = {name: other, **({"nesterov": False} if name == "momentum" and not other else {})}
            default = " (the default)" if other == argument.default else ""
            text = f"{name} is {other}{default} where torch has {value}"
            yield Hypothesis("optimizer-argument", text, rule.with_args(**changed), f"{name}={value}")


def _groups(rule: UpdateRule) -> Iterator[UpdateHypothesis]:
    groups, spared = rule.optimizer.groups, rule.optimizer.no_weight_decay
    for i, group in enumerate(groups):
        named = f"the group {few(group.params, 4)}"
        rest = [*groups[:i], *groups[i + 1 :]]
        text = f"{named} is treated like all other parameters"
        yield Hypothesis("group-ignored", text, rule.with_optimizer(groups=rest))
        for other in rest:
            swapped = Group(params=group.params, args=other.args)
            same = rule.with_optimizer(groups=[*groups[:i], swapped, *groups[i + 1 :]])
            yield Hypothesis("group-ignored", f"{named} is treated like the group {few(other.params, 4)}", same)
        for name in group.args:
            kept = Group(params=group.params, args={k: v for k, v in group.args.items() if k != name})
            changed = rule.with_optimizer(groups=[*groups[:i], kept, *groups[i + 1 :]])
            yield Hypothesis("group-ignored", f"{name} of {named} is ignored", changed)
    if spared:
        text = f"the weight decay reaches {' and '.join(spared)} parameters that it should spare"
        yield Hypothesis("decay-not-spared", text, rule.with_optimizer(no_weight_decay=[]))
    for undecayed in (["bias"], ["norm"], ["norm", "bias"]):
        text = f"the weight decay spares the {' and '.join(undecayed)} parameters"
        yield Hypothesis("decay-spares", text, rule.with_optimizer(no_weight_decay=undecayed))


def _schedule(rule: UpdateRule) -> Iterator[UpdateHypothesis]:
    schedule = rule.schedule
    if schedule is None:
        return
    texts = {
        "never": (
            "schedule-not-moving",
            "the learning rate stays at its first value in all compared updates: it never moves, or is constant within "
            "an epoch, as nn.cosine_decay_lr's is",
        ),
        "late": ("schedule-late", "the schedule is one step late"),
        "early": ("schedule-early", "the schedule is one step ahead"),
        "twice": ("cosine-step-epoch", "the schedule moves after every step and after every epoch"),
    }
    for moves, (fault, text) in texts.items():
        yield Hypothesis(fault, text, replace(rule, moves=moves))
    for steps in EPOCHS:
        text = f"the learning rate is constant within every {steps} updates, as nn.cosine_decay_lr's within an epoch"
        fix = "one rate for each update; with nn.cosine_decay_lr and the like: step_per_epoch=1, decay_epoch in steps"
        yield Hypothesis("cosine-step-epoch", text, replace(rule, moves=f"every {steps}"), fix)
    text = "there is no schedule: the rate is the optimizer's own"
    yield Hypothesis("schedule-missing", text, replace(rule, schedule=None))
    yield from _still_momentum(rule, schedule)
    for text, changed in _schedule_arguments(schedule):
        yield Hypothesis("schedule-argument", text, replace(rule, schedule=changed))
    parts = schedule.args.get("schedulers")
    if isinstance(parts, list) and len(parts) > 1:
        for part, text in ((parts[1], "the warm-up is left out"), (parts[0], "only the first of the schedules runs")):
            alone = Schedule(name=part["name"], args=part.get("args", {}), per=schedule.per)
            yield Hypothesis("warmup-missing", text, replace(rule, schedule=alone))


def _still_momentum(rule: UpdateRule, schedule: Schedule) -> Iterator[UpdateHypothesis]:
    """A momentum that does not cycle with the rate."""
    args = table.arguments(schedule.name, schedule.args)
    if not args.get("cycle_momentum"):
        return
    still = replace(rule, schedule=_replaced(schedule, None, "cycle_momentum", False))
    text = "the momentum does not move with the rate: it is the optimizer's own, as with cycle_momentum=False"
    yield Hypothesis("schedule-argument", text, still)
    first = args["max_momentum"]
    if isinstance(first, float):
        of_betas = "betas" in rule.args
        held = {"betas": [first, *rule.args["betas"][1:]]} if of_betas else {"momentum": first}
        text = f"the momentum does not move with the rate: it stays at max_momentum, {first}"
        yield Hypothesis("schedule-argument", text, still.with_args(**held))


def _schedule_arguments(schedule: Schedule) -> Iterator[tuple[str, Schedule]]:
    parts = schedule.args.get("schedulers", [])
    every: list[tuple[int | None, str, dict[str, Any]]] = [(None, schedule.name, schedule.args)]
    every += [(i, part["name"], part.get("args", {})) for i, part in enumerate(parts)]
    for path, name, args in every:
        row = table.row(name)
        for argument in row.arguments:
            key, value = argument.torch, args.get(argument.torch, argument.default)
            if not argument.to or key == "schedulers":
                continue
            others: list[Any] = [] if argument.required else [argument.default]
            if key in ("T_max", "step_size", "total_iters") and isinstance(value, int):
                others += [value - 1, value + 1]
            elif key == "milestones" and isinstance(value, list):
                others += [[m - 1 for m in value], [m + 1 for m in value]]
            elif isinstance(value, float) and key == "eta_min" and value:
                others.append(0.0)
            for other in others:
                if other is not None and other != value and other != 0:
                    text = f"{row.short}'s {key} is {other} where torch has {value}"
                    yield text, _replaced(schedule, path, key, other)


def _replaced(schedule: Schedule, at: int | None, key: str, value: Any) -> Schedule:
    if at is None:
        return schedule.model_copy(update={"args": {**schedule.args, key: value}})
    parts = [dict(part) for part in schedule.args["schedulers"]]
    parts[at] = {**parts[at], "args": {**parts[at].get("args", {}), key: value}}
    return schedule.model_copy(update={"args": {**schedule.args, "schedulers": parts}})


class FreeNumber(NamedTuple):
    """A number whose value can be fitted to what MindSpore computed.

    value: torch's. put: how to set another. fix: what to write. reach: the largest factor off torch's that is tried.
    """

    fault: str
    name: str
    value: float
    put: Callable[[float], UpdateRule]
    fix: str
    reach: float = 3.0


def free_numbers(rule: UpdateRule) -> Iterator[FreeNumber]:
    """All free numbers of a rule."""
    args = rule.args
    for name in ("lr", "weight_decay", "momentum", "dampening", "alpha", "eps"):
        value = args.get(name)
        if isinstance(value, (int, float)) and value:
            if name == "lr":
                yield FreeNumber(
                    "optimizer-argument",
                    "the learning rate",
                    1.0,
                    lambda x: replace(rule, rate=x),
                    f"lr={value}",
                    reach=100.0,
                )
            else:
                reach = 1e5 if name == "eps" else 3.0  # people mistake the exponent of eps
                yield FreeNumber(
                    "optimizer-argument", name, value, partial(_with, rule, name), f"{name}={value}", reach
                )
    if "betas" in args:
        first, second = args["betas"]
        fix = f"betas=({first}, {second})"
        yield FreeNumber("optimizer-argument", "betas[0]", first, lambda x: rule.with_args(betas=[x, second]), fix)
        yield FreeNumber("optimizer-argument", "betas[1]", second, lambda x: rule.with_args(betas=[first, x]), fix)
    if rule.clip is not None:
        fix = f"max_norm={rule.clip}"
        yield FreeNumber("clip-argument", "max_norm", rule.clip, lambda x: replace(rule, clip=x), fix)
    yield FreeNumber("gradient-factor", "the gradient's factor", 1.0, lambda x: replace(rule, gradient=x), "")


def _with(rule: UpdateRule, name: str, value: float) -> UpdateRule:
    return rule.with_args(**{name: value})


CLIP_EPS = 1e-6  # torch.nn.utils.clip_grad_norm_ divides by norm + 1e-6

State = dict[str, np.ndarray]
CYCLED = "momentum of each update"  # among the arguments, where a schedule moves it
# learning rate and weight decay of each update, and torch's other arguments
Rates = tuple[list[float], list[float], dict[str, Any]]
Update = Callable[[np.ndarray, np.ndarray, float, int, Mapping[str, Any], frozenset[str], State], np.ndarray]


def run(
    kind: str,
    weight: np.ndarray,
    gradients: Sequence[np.ndarray],
    rates: Sequence[float],
    decays: Sequence[float],
    args: Mapping[str, Any],
    switches: frozenset[str],
    dtype: type[np.floating[Any]],
) -> tuple[np.ndarray, State]:
    """Take one update for each gradient.

    kind: SGD, Adam, AdamW or RMSprop; weight: float32, flat; rates and decays: learning rate and weight decay of each
    update; args: torch's other arguments, complete. Returns the weight's change in float64, and the state under
    torch's names.
    """
    update = _UPDATES[kind]
    start = weight.astype(dtype)
    now, state = start.copy(), State()
    for step, (gradient, rate, decayed) in enumerate(zip(gradients, rates, decays, strict=True), 1):
        given = {**args, "weight_decay": decayed, **_momentum_of(args, step)}
        g = gradient.astype(dtype)
        with np.errstate(all="ignore"):  # under a hypothesis a weight need not stay finite
            now = update(now, -g if args.get("maximize") else g, rate, step, given, switches, state)
    return np.subtract(now, start, dtype=np.float64), state


def _momentum_of(args: Mapping[str, Any], step: int) -> dict[str, Any]:
    """The momentum of an update, from 1, where a schedule moves it."""
    if CYCLED not in args:
        return {}
    now = args[CYCLED][step - 1]
    return {"betas": (now, *args["betas"][1:])} if "betas" in args else {"momentum": now}


def predictions(
    kind: str, weight: np.ndarray, gradients: Sequence[np.ndarray], rates: Rates, switches: frozenset[str]
) -> dict[str, Prediction]:
    """The change ("") and the state, by torch's names, after these updates."""
    runs = []
    for dtype in (np.float64, np.float32):
        change, state = run(kind, weight, gradients, *rates, switches, dtype)
        runs.append({"": change, **state})
    return {name: Prediction(runs[0][name], runs[1][name]) for name in runs[0]}


def _decayed(
    w: np.ndarray, g: np.ndarray, rate: float, decay: float, decoupled: bool, unscaled: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The weight and the gradient with the decay in one of them; unscaled: a decoupled decay without the rate."""
    if not decay:
        return w, g
    if decoupled or unscaled:
        return w * w.dtype.type(1.0 - (decay if unscaled else rate * decay)), g
    return w, g + w.dtype.type(decay) * w


def _sgd(
    w: np.ndarray, g: np.ndarray, rate: float, step: int, args: Mapping[str, Any], how: frozenset[str], state: State
) -> np.ndarray:
    t = w.dtype.type
    late = "decay_after_momentum" in how
    if not late:
        w, g = _decayed(w, g, rate, args["weight_decay"], "decoupled_decay" in how, "decay_unscaled" in how)
    momentum, damped = args["momentum"], t(1.0 - args["dampening"])
    inside = "lr_in_velocity" in how
    if momentum:
        part = g * t(rate) if inside else g
        if "momentum_buffer" in state:
            state["momentum_buffer"] = t(momentum) * state["momentum_buffer"] + damped * part
        else:
            state["momentum_buffer"] = part * damped if "dampened_first" in how else part.copy()
        buffer = state["momentum_buffer"]
        if "plain_nesterov" in how and args["nesterov"]:
            g = buffer
        else:
            g = part + t(momentum) * buffer if args["nesterov"] else buffer
    elif inside:
        g = g * t(rate)
    if late:
        g = g + t(args["weight_decay"]) * w
    return np.asarray(w - (g if inside and not late else t(rate) * g))


def _adam(
    w: np.ndarray,
    g: np.ndarray,
    rate: float,
    step: int,
    args: Mapping[str, Any],
    how: frozenset[str],
    state: State,
    adamw: bool,
) -> np.ndarray:
    decoupled = "coupled_decay" not in how if adamw else "decoupled_decay" in how
    t = w.dtype.type
    w, g = _decayed(w, g, rate, args["weight_decay"], decoupled, "decay_unscaled" in how)
    first, second = args["betas"]
    ones = np.ones_like if "square_starts_at_one" in how else np.zeros_like
    m = state.get("exp_avg", np.zeros_like(w))
    v = state.get("exp_avg_sq", ones(w))
    # in float32 1 - 0.999 has a relative error of 5e-5, and MindSpore's kernels compute it that way
    state["exp_avg"] = m = m + (t(1.0) - t(first)) * (g - m)
    state["exp_avg_sq"] = v = t(second) * v + (t(1.0) - t(second)) * g * g
    if args.get("amsgrad"):
        state["max_exp_avg_sq"] = v = np.maximum(state.get("max_exp_avg_sq", np.zeros_like(v)), v)
    uncorrected = "no_bias_correction" in how
    one = 1.0 if uncorrected else 1.0 - first**step
    two = 1.0 if uncorrected or "no_second_correction" in how else 1.0 - second**step
    eps = args["eps"]
    if "eps_inside_root" in how:
        root = np.sqrt(v / t(two) + t(eps))
    elif "eps_before_correction" in how:  # lr·sqrt(1-b2^t)/(1-b1^t)·m/(sqrt(v)+eps), the paper's eps hat
        root = (np.sqrt(v) + t(eps)) / t(np.sqrt(two))
    else:
        root = np.sqrt(v) / t(np.sqrt(two)) + t(eps)
    return np.asarray(w - t(rate / one) * (m / root))


def _rmsprop(
    w: np.ndarray, g: np.ndarray, rate: float, step: int, args: Mapping[str, Any], how: frozenset[str], state: State
) -> np.ndarray:
    t = w.dtype.type
    w, g = _decayed(w, g, rate, args["weight_decay"], "decoupled_decay" in how, False)
    alpha, eps, momentum = args["alpha"], args["eps"], args["momentum"]
    ones = np.ones_like if "square_starts_at_one" in how else np.zeros_like
    square = state.get("square_avg", ones(w))
    state["square_avg"] = square = t(alpha) * square + t(1.0 - alpha) * g * g
    if args.get("centered"):
        mean = state.get("grad_avg", np.zeros_like(w))
        state["grad_avg"] = mean = mean + t(1.0 - alpha) * (g - mean)
        square = square - mean * mean
    root = np.sqrt(square + t(eps)) if "eps_inside_root" in how else np.sqrt(square) + t(eps)
    inside = "lr_in_velocity" in how
    step_by = t(rate) * g / root if inside else g / root
    if momentum:
        buffer = state.get("momentum_buffer", np.zeros_like(w))
        state["momentum_buffer"] = step_by = t(momentum) * buffer + step_by
    return np.asarray(w - (step_by if inside else t(rate) * step_by))


_UPDATES: dict[str, Update] = {
    "SGD": _sgd,
    "Adam": partial(_adam, adamw=False),
    "AdamW": partial(_adam, adamw=True),
    "RMSprop": _rmsprop,
}


def average_decays(rule: Ema, distance: Callable[[Decay], float]) -> Iterator[Hypothesis[Decay]]:
    """Other decays of the moving average, by the update, counted from one; distance: for fitting a factor."""
    argument = partial(Hypothesis[Decay], "ema-argument", fix=f"decay={rule.decay}")
    text = "each weight enters the average with the share decay, not 1 - decay"
    yield Hypothesis("ema-decay-complement", text, lambda i: 1.0 - decay(rule, i))
    yield argument("the average is never moved", lambda i: 1.0)
    yield argument("the average is a copy of the weights", lambda i: 0.0)
    if rule.warmup or rule.update_after_step:
        yield Hypothesis("ema-warmup", "the decay does not warm up", lambda i: rule.decay)
    text = "the decay warms up as (1 + n) / (10 + n)"
    yield Hypothesis("ema-warmup", text, lambda i: min(rule.decay, (1 + i) / (10 + i)))
    text = "the decay rises as decay · (1 - exp(-n / 2000)), mindcv's"
    yield Hypothesis("ema-buffers", text, lambda i: rule.decay * (1 - math.exp(-i / 2000)))
    yield argument("the count of updates is one too low", lambda i: decay(rule, max(i - 1, 1)))
    yield argument("the count of updates is one too high", lambda i: decay(rule, i + 1))
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

    factor = golden_section(lambda x: distance(taking(x)), 0.2, 5.0)
    yield argument(
        f"each update takes {factor:.5g} times the recipe's share (1 - decay) of the weights", taking(factor)
    )
