"""A schedule that is made for another number of steps than the run has is warned of."""

from __future__ import annotations

from typing import Any

import pytest
from msmigrate.training.recipe.schema import Schedule
from msmigrate.training.run.plan import span, warnings

COSINE = {"name": "CosineAnnealingLR", "args": {"T_max": 200}}
WARM = {"schedulers": [{"name": "LinearLR", "args": {"total_iters": 20}}, COSINE], "milestones": [20]}


@pytest.mark.parametrize(
    ("name", "args", "moves"),
    [
        ("CosineAnnealingLR", {"T_max": 90}, 90),
        ("torch.optim.lr_scheduler.CosineAnnealingLR", {"T_max": 90}, 90),
        ("PolynomialLR", {"total_iters": 30}, 30),
        ("PolynomialLR", {}, 5),
        ("OneCycleLR", {"max_lr": 0.1, "total_steps": 70}, 70),
        ("OneCycleLR", {"max_lr": 0.1, "epochs": 3, "steps_per_epoch": 20}, 60),
        ("OneCycleLR", {"max_lr": 0.1}, None),
        ("SequentialLR", WARM, 220),
        ("SequentialLR", {"schedulers": [COSINE, {"name": "StepLR", "args": {}}], "milestones": [20]}, None),
        ("LinearLR", {"total_iters": 5}, None),
        ("StepLR", {"step_size": 3}, None),
        ("CosineAnnealingLR", {}, None),
        ("CosineAnnealingLR", {"T_max": "many"}, None),
        ("SequentialLR", {"schedulers": [], "milestones": []}, None),
    ],
)
def test_where_a_schedule_ends(name: str, args: dict[str, Any], moves: int | None) -> None:
    assert span(name, args) == moves


def schedule(per: str = "step") -> Schedule:
    return Schedule.model_validate({**COSINE, "per": per})


@pytest.mark.parametrize(("steps", "epochs"), [(200, 5), (199, 5), (203, 5)])
def test_one_that_ends_with_the_run_is_right(steps: int, epochs: int) -> None:
    assert warnings(schedule(), steps, epochs) == []


def test_one_that_ends_too_soon_or_too_late_is_warned_of() -> None:
    (early,) = warnings(schedule(), 1000, 5)
    assert "made for 200 steps" in early and "has 1,000 steps" in early and "climbs again" in early
    (late,) = warnings(schedule(), 100, 5)
    assert "does not reach its final value" in late
    (epochs,) = warnings(schedule("epoch"), 200, 1)
    assert "made for 200 epochs" in epochs and "has 1 epoch:" in epochs
    assert warnings(None, 1000, 5) == [] and warnings(schedule(), 0, 5) == []
