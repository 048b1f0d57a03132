"""Watchpoints: what a look at one step's gradients, weights and activations finds; no framework.

Each finding is one line that names the worst tensors with their numbers, however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..recipe import Watch

Arrays = Mapping[str, np.ndarray]

NAMED = 3  # tensors that a warning names
# A change is measured against a weight's norm, and a weight that is still zero has none: what is smaller than this on
# (quadratic) average is taken to be this large.
SMALLEST = 1e-3


def gradients(watch: Watch, grads: Arrays) -> list[str]:
    """Overflow, vanishing and exploding gradients; grads: by state_dict name, unscaled and before clipping."""
    found = {
        name: int(grad.size - np.isfinite(grad).sum()) for name, grad in grads.items() if not np.isfinite(grad).all()
    }
    said = _say("not finite: gradient of", found, lambda n: f"{found[n]:,} of {grads[n].size:,} values", found)
    largest = {name: float(np.abs(grad).max()) for name, grad in grads.items() if name not in found and grad.size}
    if watch.vanishing is not None:
        small = {name: value for name, value in largest.items() if value < watch.vanishing}
        order = {name: -value for name, value in small.items()}
        bound = f"below {watch.vanishing:g}"
        said += _say(f"vanishing ({bound}): gradient of", order, lambda n: f"at most {small[n]:.3g}", small)
    if watch.exploding is not None:
        large = {name: value for name, value in largest.items() if value > watch.exploding}
        bound = f"above {watch.exploding:g}"
        said += _say(f"exploding ({bound}): gradient of", large, lambda n: f"up to {large[n]:.3g}", large)
    return said


def weights(watch: Watch, before: Arrays, after: Arrays, rate: float) -> list[str]:
    """Weights that an update at learning rate `rate` left as they were, or changed by a large share.

    Biases, and scales and shifts of norms, are looked at for the former only: they start at zero, and while they are
    small a healthy update is several times their norm.
    """
    said: list[str] = []
    if watch.unchanged:
        same = {name: 0.0 for name in after if np.array_equal(before[name], after[name], equal_nan=True)}
        said += _say(f"unchanged by an update at learning rate {rate:.3g}:", same, None, same)
    if watch.large_change is not None:
        shares = {name: _share(before[name], after[name]) for name in after if after[name].ndim > 1}
        large = {name: share for name, share in shares.items() if not share <= watch.large_change}
        bound = f"more than {watch.large_change:.3g} of its norm"
        said += _say(f"large change ({bound}):", large, lambda n: f"{large[n]:.3g}", large)
    return said


def relus(watch: Watch, zeros: Mapping[str, float]) -> list[str]:
    """Dead ReLUs; zeros: name -> the share of its outputs that are zero."""
    assert watch.dead_relu is not None
    dead = {name: share for name, share in zeros.items() if share >= watch.dead_relu}
    return _say(f"dead ReLU (zero for at least {watch.dead_relu:.3g}):", dead, lambda n: f"{dead[n]:.4g}", dead)


def _share(before: np.ndarray, after: np.ndarray) -> float:
    old = before.astype(np.float64)
    norm = max(float(np.linalg.norm(old)), SMALLEST * old.size**0.5)
    return float(np.linalg.norm(after - old)) / norm


def _say(what: str, order: Mapping[str, float], number: object, found: Mapping[str, object]) -> list[str]:
    """One line for all the tensors found, the largest of `order` first; number: what is said of one by name."""
    if not found:
        return []
    names = sorted(found, key=lambda name: -order[name])
    shown = [f"{name} ({number(name)})" if callable(number) else name for name in names[:NAMED]]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return [f"{what} {', '.join(shown)}{more}"]
