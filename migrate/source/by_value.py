"""What a tensor's value decides: where a model's control flow looks at its data."""

from __future__ import annotations

import ast

from .facts import Facts

ASKS = {"torch.Tensor.item", "torch.Tensor.tolist", "torch.Tensor.numpy", "torch.equal", "torch.allclose"}
NUMBERS = {"builtins.bool", "builtins.int", "builtins.float"}
TENSORS = ("Tensor", "Parameter")


class ByValue:
    """Tells the conditions of one function that depend on values; `file` is where it stands."""

    def __init__(self, function: ast.FunctionDef, facts: Facts, file: str) -> None:
        self.facts, self.file = facts, file
        self.names: set[str] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and self._number(node.value):
                self.names |= {target.id for target in node.targets if isinstance(target, ast.Name)}

    def decides(self, test: ast.expr) -> bool:
        """Whether a condition is a tensor, or a number that was taken out of one."""
        return self._tensor(test) or self._number(test)

    def _tensor(self, node: ast.AST) -> bool:
        return any(kind.startswith(TENSORS) for kind in self.facts.kinds(self.file, node))

    def _number(self, node: ast.expr) -> bool:
        return any(map(self._taken, ast.walk(node)))

    def _taken(self, node: ast.AST) -> bool:
        """Whether a part of an expression makes a number, or an answer, of a tensor."""
        if isinstance(node, ast.Call):
            callees = set(self.facts.callees(self.file, node))
            return bool(callees & ASKS) or (bool(callees & NUMBERS) and any(map(self._tensor, node.args)))
        if isinstance(node, ast.Name):
            return node.id in self.names
        return isinstance(node, (ast.BoolOp, ast.UnaryOp)) and self._asked(node)

    def _asked(self, node: ast.BoolOp | ast.UnaryOp) -> bool:
        """Whether Python asks a tensor for its truth, as in `x.any() and y`."""
        if isinstance(node, ast.BoolOp):
            return any(map(self._tensor, node.values))
        return isinstance(node.op, ast.Not) and self._tensor(node.operand)
