"""Which parameter goes into which optimizer group: one rule for both frameworks, over state_dict names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import BadRecipe
from ..recipe.patterns import compiled, hint
from ..recipe.schema import Optimizer


@dataclass(frozen=True)
class ParameterGroup:
    """The state_dict names of one optimizer group, in model order, and its own arguments."""

    names: tuple[str, ...]
    args: dict[str, Any]


def is_norm(class_name: str) -> bool:
    """Whether a layer of this class is a normalisation (BatchNorm2d, LayerNorm, GroupNorm, …)."""
    return "Norm" in class_name


def parameter_groups(owners: dict[str, str], optimizer: Optimizer) -> list[ParameterGroup]:
    """Sort the trainable parameters into groups.

    `owners` maps each parameter's torch state_dict name, in model order, to its layer's class name. The recipe's own
    groups come first (first match wins), then the parameters without weight decay, then the rest. A group always
    exists in both frameworks or in neither. Raises BadRecipe when nothing trains, when a pattern matches no parameter,
    and when earlier groups have taken all that a group matches.
    """
    if not owners:
        raise BadRecipe("the model has no parameter that trains")
    patterns = [compiled(group.params) for group in optimizer.groups]
    picked: list[list[str]] = [[] for _ in optimizer.groups]
    undecayed: list[str] = []
    rest: list[str] = []
    for name, owner in owners.items():
        match = next((i for i, group in enumerate(patterns) if any(p.match(name) for p in group)), None)
        if match is not None:
            picked[match].append(name)
        elif _undecayed(name, owner, optimizer):
            undecayed.append(name)
        else:
            rest.append(name)
    for index, group in enumerate(optimizer.groups):
        for pattern, glob in zip(group.params, patterns[index], strict=True):
            if not any(map(glob.match, owners)):
                what = "no parameter that trains"
                raise BadRecipe(f"optimizer.groups.{index}: {pattern!r} matches {what}; {hint(pattern, owners)}")
        if not picked[index]:
            taken = "earlier groups have all the parameters that it matches; the first match wins"
            raise BadRecipe(f"optimizer.groups.{index}: {taken}")
    groups = [
        ParameterGroup(tuple(names), dict(group.args)) for names, group in zip(picked, optimizer.groups, strict=True)
    ]
    groups += [ParameterGroup(tuple(undecayed), {"weight_decay": 0.0}), ParameterGroup(tuple(rest), {})]
    return [group for group in groups if group.names]


def _undecayed(name: str, owner: str, optimizer: Optimizer) -> bool:
    bias = "bias" in optimizer.no_weight_decay and name.rsplit(".", 1)[-1] == "bias"
    return bias or ("norm" in optimizer.no_weight_decay and is_norm(owner))
