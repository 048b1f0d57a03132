"""The factor that gradients of given norms are clipped by tells which rule clipped them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msmigrate.parity.diagnosis.causes.clipping_and_loss_scale import PART, given_norms
from msmigrate.parity.diagnosis.context import Context
from msmigrate.parity.record.recorder import NORMS
from msmigrate.parity.result import Cause, Finding
from msmigrate.parity.tensor_verdict import Verdict

LARGEST = 0.05
WRONG = [Finding("update", PART, "gradients' norms at 1.001", 0, Verdict.FAIL)]
NORM = np.array(NORMS)
TORCH = np.minimum(1.0, LARGEST / (NORM * LARGEST + 1e-6))


def trace(factors: np.ndarray) -> Any:
    """What a recorder leaves: for each given norm, the norms of two gradients after clipping."""
    keys = [("update", PART, f"gradients' norms at {norm:g}", 0) for norm in NORMS]
    norms = dict(zip(keys, factors * NORM * LARGEST, strict=True))
    entry = SimpleNamespace(shape=(2,), nonfinite=0, sampled=False)
    return SimpleNamespace(entries=dict.fromkeys(keys, entry), array=lambda key: norms[key] * np.array([0.6, 0.8]))


def explain(mindspore: Any, wrong: list[Finding] = WRONG, clips: bool = True) -> list[Cause]:
    recipe: Any = SimpleNamespace(clip=SimpleNamespace(max_norm=LARGEST) if clips else None)
    options: Any = SimpleNamespace(step_recipe=recipe)
    context = Context(options, wrong, [], model=None)  # type: ignore[arg-type]
    vars(context)["traces"] = SimpleNamespace(alone=[trace(TORCH)], mindspore=mindspore)
    return given_norms(context)


@pytest.mark.parametrize(
    ("factors", "fault"),
    [
        (np.minimum(1.0, 1.0 / NORM), "clip-global-eps"),
        (np.ones(len(NORMS)), "clip-missing"),
        (LARGEST / (NORM * LARGEST + 1e-6), "clip-always"),
        (1.0 / NORM, "clip-always"),
    ],
)
def test_a_rule_is_named(factors: np.ndarray, fault: str) -> None:
    (cause,) = explain(trace(factors))
    assert (cause.stage, cause.place, cause.fault) == ("update", "every parameter", fault)
    assert cause.ratio is not None and cause.before is not None and cause.ratio <= 1.0 < cause.before


def test_no_rule_is_named_without_need() -> None:
    assert explain(trace(TORCH)) == []  # these factors are torch's own
    assert explain(trace(0.9 * TORCH)) == []  # and these nobody's
    assert explain(trace(np.ones(len(NORMS))), []) == []
    assert explain(trace(np.ones(len(NORMS))), clips=False) == []
    assert explain(SimpleNamespace(entries={})) == []
