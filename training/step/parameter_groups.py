"""Which parameters a recipe's patterns pick, and which optimizer group each goes into: one rule for both frameworks.

Patterns are globs over state_dict names, in model.freeze and the like and in optimizer.groups.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from re import Pattern
from typing import Any

from ...errors import BadRecipe
from ..recipe.schema import Optimizer

BACK = "!"  # begins a pattern that excludes names which the patterns before it include


def compiled(patterns: Sequence[str]) -> list[Pattern[str]]:
    """The globs as regular expressions over whole names; compiled once, as each name is matched with all of them."""
    return [re.compile(translate(pattern)) for pattern in patterns]


def picked(patterns: Sequence[str], names: Iterable[str], where: str, what: str) -> list[str]:
    """The names that the patterns pick, in the order of `names`; see matching().

    where: the key of the recipe, such as "model.freeze". what: the thing named, such as "parameter". Raises BadRecipe
    for a pattern that matches no name, with the nearest that would, and where everything is excluded again.
    """
    names = list(names)
    for index, pattern in enumerate(patterns):
        own = pattern.removeprefix(BACK)
        if not any(map(compiled([own])[0].match, names)):
            raise BadRecipe(f"{where}.{index}: {pattern!r} matches no {what}; {hint(own, names)}")
    found = matching(patterns, names)
    if patterns and not found:
        raise BadRecipe(f"{where}: the patterns exclude all names that they include: {', '.join(patterns)}")
    return found


def matching(patterns: Sequence[str], names: Iterable[str]) -> list[str]:
    """The names that the patterns pick, in the order of `names`; the last pattern that matches a name decides.

    "!PATTERN" excludes names that the patterns before it include: ["*", "!fc.*"] is all but the head.
    """
    globs = compiled([pattern.removeprefix(BACK) for pattern in patterns])
    takes = [not pattern.startswith(BACK) for pattern in patterns]
    found = []
    for name in names:
        if next((take for take, glob in zip(reversed(takes), reversed(globs), strict=True) if glob.match(name)), False):
            found.append(name)
    return found


def hint(pattern: str, names: Iterable[str]) -> str:
    """What to write in place of a pattern that matches none of the names."""
    names = list(names)
    if any(name.startswith(f"{pattern}.") for name in names):
        return f"did you mean {pattern + '.*'!r}?"
    near = difflib.get_close_matches(pattern, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"names look like {names[0]!r}" if names else "there is none"


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
    and when earlier groups have all parameters that a group matches.
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
