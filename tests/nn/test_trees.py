"""Trees of lists, tuples and dicts as torch.utils._pytree takes them apart; this module needs no framework."""

from __future__ import annotations

import importlib.util
from collections import OrderedDict
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("trees", Path(__file__).parents[2] / "nn" / "trees.py")
assert SPEC is not None and SPEC.loader is not None
trees = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(trees)


@pytest.mark.parametrize("tree", [1, None, [], (), {}, [1, (2, {"b": 3, "a": [4]}), None], ({}, [[]], 5)])
def test_a_tree_comes_back(tree: object) -> None:
    leaves, spec = trees.tree_flatten(tree)
    assert trees.tree_unflatten(leaves, spec) == tree


def test_leaves_are_in_order() -> None:
    assert trees.tree_flatten({"b": (1, [2]), "a": 3})[0] == [1, 2, 3]


def test_what_is_no_plain_tree_is_refused() -> None:
    with pytest.raises(TypeError, match="OrderedDict in a tree"):
        trees.tree_flatten(OrderedDict(a=1))
    with pytest.raises(ValueError, match="1 leaves for a tree of 2"):
        trees.tree_unflatten([1], trees.tree_flatten([1, 2])[1])
