"""Why a step with a loss scale differs: the scales of the steps, and which of them overflowed.

Each is computed from what MindSpore itself recorded before it, so that a fault upstream explains nothing here twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ....training.recipe.schema import Recipe
from ...compare import Traces
from ...result import Cause, Finding
from ...verdict import EPS32
from ..evidence import cause, comparable, failed
from .clipping import CLEAR, _list, first_step


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
    return [i for i, (of_torch, of_mindspore) in enumerate(pairs, 1) if of_mindspore and not of_torch]


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
