"""Nested lists, tuples and dicts as one list of what they hold, and back, as torch.utils._pytree has them."""

from __future__ import annotations

from typing import Any


def tree_flatten(tree: Any) -> tuple[list[Any], Any]:
    """What lists, tuples and dicts hold, in order and at any depth, and how it lies there, for tree_unflatten.

    Raises TypeError for classes that are made of these: torch flattens some of them, and takes others as they are.
    """
    if not isinstance(tree, (list, tuple, dict)):
        return [tree], None
    if type(tree) not in (list, tuple, dict):
        raise TypeError(f"{type(tree).__name__} in a tree: give lists, tuples and dicts alone")
    leaves: list[Any] = []
    parts = []
    for part in tree.values() if isinstance(tree, dict) else tree:
        found, inside = tree_flatten(part)
        leaves += found
        parts.append((len(found), inside))
    return leaves, (type(tree), list(tree) if isinstance(tree, dict) else [], parts)


def tree_unflatten(leaves: Any, treespec: Any) -> Any:
    """What tree_flatten took apart, with other leaves. Raises ValueError where there are more or fewer of them."""
    rest = list(leaves)
    if treespec is None:
        if len(rest) != 1:
            raise ValueError(f"{len(rest)} leaves for a tree of 1")
        return rest[0]
    kind, keys, parts = treespec
    if len(rest) != sum(count for count, _ in parts):
        raise ValueError(f"{len(rest)} leaves for a tree of {sum(count for count, _ in parts)}")
    made = []
    for count, inside in parts:
        made.append(tree_unflatten(rest[:count], inside))
        rest = rest[count:]
    return dict(zip(keys, made, strict=True)) if kind is dict else kind(made)
