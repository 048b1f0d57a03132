"""A recipe's loss, optimizer and schedule as MindSpore objects."""

from __future__ import annotations

from typing import Any

from mindspore import nn

from ...mappings import table
from ..models.mindspore_build import construct
from ..recipe import Part, Recipe, table_args


def build_loss(recipe: Recipe) -> nn.Cell:
    """The recipe's loss, every argument written; list arguments (class weights) become float32 tensors."""
    return construct(table.translate(recipe.loss.name, recipe.loss.args))


def build_optimizer(recipe: Recipe, groups: list[tuple[dict[str, Any], list[Any]]]) -> Any:
    """The recipe's optimizer over (a group's own torch arguments, its parameters).

    Always as groups: MindSpore leaves ungrouped parameters whose name contains gamma or beta undecayed.
    """
    name, shared = recipe.optimizer.name, recipe.optimizer.args
    own = [table.translate(name, args, partial=True).kwargs for args, _ in groups]
    members = [{"params": params, **args} for (_, params), args in zip(groups, own, strict=True)]
    return construct(table.translate(name, shared), members)


def build_schedule(part: Part, optimizer: Any) -> Any:
    """The recipe's schedule on an optimizer."""
    return construct(table.translate(part.name, table_args(part)), optimizer)
