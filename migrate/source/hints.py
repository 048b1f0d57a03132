"""Signatures: type hints and defaults, which went by when a function was defined, and are read by their words."""

from __future__ import annotations

import ast

from ..analyze.names import find
from .crossing_calls import Namer, held
from .module_api import NAMES

WORDS = (("torch.Tensor", "Tensor"), ("torch.nn.", "nn."), ("nn.Module", "nn.Cell"))


def hint(node: ast.expr) -> ast.expr:
    """A type hint with MindSpore's classes."""
    text = ast.unparse(node)
    for ours, theirs in WORDS:
        text = text.replace(ours, theirs)
    return ast.parse(text, mode="eval").body


def signature(function: ast.FunctionDef, name: Namer) -> None:
    """Rewrite the hints and defaults of a definition."""
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None and argument.annotation is not None:
            argument.annotation = hint(argument.annotation)
    if function.returns is not None:
        function.returns = hint(function.returns)
    arguments.defaults = [_default(item, name) for item in arguments.defaults]
    arguments.kw_defaults = [None if item is None else _default(item, name) for item in arguments.kw_defaults]


def _default(node: ast.expr, name: Namer) -> ast.expr:
    text = ast.unparse(node).replace("torch.nn.", "nn.")
    for ours, theirs in NAMES.items():
        if text == ours.replace("torch.nn.", "nn."):
            return name(theirs)
    row = find(f"torch.{text}").row if text.startswith("nn.") else None
    return held(row, {}, name) if row is not None and row.mindspore else node
