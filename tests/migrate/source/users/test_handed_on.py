"""What a constructor or a function hands on has torch's names, for callers that give now two arguments, now three."""

from __future__ import annotations

import ast

from written import Written

Users = dict[str, Written]


def classes(found: Written) -> dict[str, str]:
    """The text of each class and function."""
    nodes = [node for node in ast.parse(found.source.text).body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    return {node.name: ast.unparse(node) for node in nodes}


def test_args_of_several_lengths_are_named(users: Users) -> None:
    for name in ("points", "points_long"):
        users[name].agrees()
        assert not users[name].source.not_run
    short, long = (classes(users[name]) for name in ("points", "points_long"))
    assert short["Point"] == long["Point"] and short["Points"] == long["Points"]
    users["points"].holds(
        "def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1",
        "if padding_mode not in ('zeros',):",
        "kernel_size if isinstance(kernel_size, int) else kernel_size[0]",
    )
    users["points_long"].holds("super().__init__(in_channels, out_channels, kernel_size, stride=stride")


def test_layers_functions_and_classes_without_a_constructor(users: Users) -> None:
    first, other = (users[name] for name in ("hands_layers", "hands_layers_otherwise"))
    first.agrees()
    other.agrees()
    assert {**classes(first), "build": ""} == {**classes(other), "build": ""}
    first.holds(
        "groups=1, *, act=True, padding_mode='zeros'):",  # whose bias is given, so that no place is left behind it
        "stride=kernel_size if stride is None else stride",
        "def __init__(self, num_channels, eps=1e-05, affine=True):",
        "def mixed(in_features, out_features, bias=True):",
        "def enlarged(x, size=None, scale_factor=None, mode='nearest'",
    )


def test_a_list_of_another_length_raises(users: Users) -> None:
    """It was taken for its first items."""
    found = users["lengths"]
    found.agrees()
    found.holds(
        "if len(sizes) != 3:\n            raise NotImplementedError('handed_on_torch.py:",
        "when this was written, *sizes had 3 items')",
    )


def test_keywords_that_were_all_none_go_on(users: Users) -> None:
    """They were left out, so that a mask that is given another time was ignored."""
    found = users["room"]
    found.agrees()
    found.holds(
        "super().__init__(width, **settings)",
        "super().construct(x, **given)",
        "return lamp(x, **given)",
        "x = self.each(lamp, x, **given)",
        "return dimmed(x if among is None else x[:, among], **{'by': by})",
        "if any((value is not None for value in given.values())):\n            raise NotImplementedError(",
        "given had no value but None",
    )
