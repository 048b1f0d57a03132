"""What one writes in MindSpore without a function's name, or with a shorter one, for what is known of the arguments."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from .context import Given, Namer

# torch's name, the arguments that are given, and how one writes it with them
PLAIN = (
    ("torch.Tensor.size", {"self"}, "self.shape"),
    ("torch.Tensor.size", {"self", "dim"}, "self.shape[dim]"),
    ("torch.Tensor.dim", {"self"}, "self.ndim"),
    ("torch.Tensor.contiguous", {"self"}, "self"),
    ("torch.numel", {"input"}, "input.size"),
    ("torch.arange", {"start"}, "mindspore.ops.arange(start)"),
    ("torch.arange", {"end"}, "mindspore.ops.arange(end)"),
    ("torch.arange", {"start", "end"}, "mindspore.ops.arange(start, end)"),
)
# the same for tensors of these dtypes, which MindSpore's own function keeps as torch does
WIDE = ("float", "bfloat16", "int64")
PLAIN_WIDE = (
    ("torch.sum", {"input"}, "mindspore.ops.sum(input)"),
    ("torch.sum", {"input", "dim"}, "mindspore.ops.sum(input, dim)"),
    ("torch.sum", {"input", "dim", "keepdim"}, "mindspore.ops.sum(input, dim, keepdim)"),
)


def plainly(torch: str, given: Mapping[str, Given], name: Namer) -> ast.expr | None:
    """The expression for a call, by torch's names of the arguments; None where there is no plainer way."""
    names = set(given)
    wide = "input" in given and all(_dtype(kind).startswith(WIDE) for kind in given["input"].kinds or ["?"])
    for row, arguments, template in (*PLAIN, *(PLAIN_WIDE if wide else ())):
        if row == torch and arguments == names:
            nodes = {key: item.node for key, item in given.items()}
            found: ast.expr = _Filled(nodes, name).visit(ast.parse(template, mode="eval").body)
            return found
    return None


def _dtype(kind: str) -> str:
    """The dtype in `Tensor float32 4`."""
    words = kind.split(" ")
    return words[1] if words[0] in ("Tensor", "Parameter") else "?"


class _Filled(ast.NodeTransformer):
    """Puts expressions in the place of a template's names."""

    def __init__(self, nodes: Mapping[str, ast.expr], name: Namer) -> None:
        self.nodes, self.name = nodes, name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """The expression of that name."""
        return copy.deepcopy(self.nodes[node.id])

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """A name of MindSpore's, or an attribute of what stands in a name's place."""
        text = ast.unparse(node)
        return self.name(text) if text.startswith("mindspore.") else self.generic_visit(node)
