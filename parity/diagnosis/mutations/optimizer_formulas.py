"""torch's optimizers for one parameter, element by element, and the ways in which others compute them.

The formulas are those of torch.optim's pages; a `switch` names one deviation, and a formula
ignores those of others. Element by element, so a stratified
sample of a large parameter is enough. NumPy in the dtype that is asked for: float64 for what a hypothesis says
exactly, float32 for its rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..hypotheses import Prediction

CLIP_EPS = 1e-6  # torch.nn.utils.clip_grad_norm_ divides by norm + 1e-6

State = dict[str, np.ndarray]
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
    for step, (gradient, rate, decay) in enumerate(zip(gradients, rates, decays, strict=True), 1):
        given = {**args, "weight_decay": decay}
        g = gradient.astype(dtype)
        with np.errstate(all="ignore"):  # what a hypothesis makes of a weight need not be finite
            now = update(now, -g if args.get("maximize") else g, rate, step, given, switches, state)
    return np.subtract(now, start, dtype=np.float64), state


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
    state["exp_avg"] = m = m + t(1.0 - first) * (g - m)
    state["exp_avg_sq"] = v = t(second) * v + t(1.0 - second) * g * g
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
