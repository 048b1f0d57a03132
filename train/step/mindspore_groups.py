"""The parameter groups of a step as torch's optimizer has them, for whoever goes on in torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ...mappings import table

if TYPE_CHECKING:
    from .mindspore_step import TrainStep


def told_to_torch(step: TrainStep) -> np.ndarray:
    """uint8: JSON of what torch's `load_state_dict` takes besides tensors.

    `optimizer`: torch's class. `param_groups`: each with all options, the rate in force as `lr`, and the names of its
    parameters. `scaler`: with a dynamic loss scale, its rule.
    """
    row = table.row(step.recipe.optimizer.name)
    told: dict[str, Any] = {"optimizer": row.torch, "param_groups": []}
    for index, held in enumerate(step.optimizer.param_groups):
        names = [name for name in step.names if step.group(name) is held]
        given = {**step.recipe.optimizer.args, **step.group_args[index]}
        options = {key: _plain(value) for key, value in table.arguments(row.torch, given).items() if key != "params"}
        rates = {"lr": float(held["lr"])}
        if step.schedule is not None:
            rates["initial_lr"] = step.schedule.base_rates[index]
            rates["lr"] = step.schedule.rates[index]
        told["param_groups"].append({**options, **rates, "params": names})
    rule = step.recipe.dynamic_loss_scale
    if rule is not None:
        told["scaler"] = {key: getattr(rule, key) for key in ("growth_factor", "backoff_factor", "growth_interval")}
    return np.frombuffer(json.dumps(told, allow_nan=False).encode(), np.uint8)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
