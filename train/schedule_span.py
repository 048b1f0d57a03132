"""How long a learning-rate schedule goes on, held against how long the run does."""

from __future__ import annotations

from typing import Any

from .recipe_parts import Schedule

CLOSE = 0.02  # a schedule that ends so near the run's end, as a share, was meant to


def span(name: str, args: dict[str, Any]) -> int | None:
    """The moves after which a schedule has come to its end; None for one that has none (StepLR, a warm-up alone).

    name, args: torch's. CosineAnnealingLR climbs again after T_max (torch's documentation gives the recursive form), so
    its end is one too.
    """
    short = name.rpartition(".")[2]
    try:
        if short == "CosineAnnealingLR":
            return int(args["T_max"])
        if short == "PolynomialLR":
            return int(args.get("total_iters", 5))
        if short == "OneCycleLR":
            return int(args.get("total_steps") or args["epochs"] * args["steps_per_epoch"])
        if short == "SequentialLR":
            last = args["schedulers"][-1]
            after = span(last["name"], last.get("args", {}))
            return None if after is None else int(args["milestones"][-1]) + after
    except (KeyError, IndexError, TypeError, ValueError):
        pass  # what is wrong with the schedule is said where it is made
    return None


def warnings(schedule: Schedule | None, steps: int, epochs: int) -> list[str]:
    """A warning where a schedule ends long before or after a run of so many optimizer steps and epochs."""
    if schedule is None or not steps:
        return []
    moves, unit = (steps, "step") if schedule.per == "step" else (epochs, "epoch")
    end = span(schedule.name, schedule.args)
    if end is None or abs(end - moves) <= max(1.0, CLOSE * moves):
        return []
    what = f"the schedule is made for {_count(end, unit)}, and the run has {_count(moves, unit)}"
    if end > moves:
        return [f"{what}: the learning rate does not come down to its end"]
    return [f"{what}: after that its learning rate stays at the end, or climbs again as torch's cosine does"]


def _count(number: int, unit: str) -> str:
    return f"{number:,} {unit}{'s' * (number != 1)}"
