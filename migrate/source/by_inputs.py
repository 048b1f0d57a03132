"""What the example inputs decided: of a branch on a tensor's shape only one side is written, and a comment says so."""

from __future__ import annotations

import ast

from .facts import Facts


class ByInputs:
    """Tells the conditions of one function that depend on what a model is given; `file` is where it stands.

    entered: whether the function is the model's own `forward`, whose arguments are the inputs.
    """

    def __init__(self, function: ast.FunctionDef, facts: Facts, file: str, *, entered: bool) -> None:
        self.facts, self.file = facts, file
        given = function.args
        arguments = (*given.posonlyargs, *given.args, *given.kwonlyargs)
        self.inputs = {argument.arg for argument in arguments if argument.arg != "self"} if entered else set()
        self.names = set(self.inputs)
        self.silent = function.name == "__init__"  # there are no inputs yet
        before = -1
        while before < len(self.names):
            before = len(self.names)
            for node in ast.walk(function):
                if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and self._given(node.value):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    for target in targets:
                        self.names |= {n.id for n in ast.walk(target) if _stored(n)}  # type: ignore[attr-defined]

    def note(self, test: ast.expr, *, always: bool) -> list[ast.stmt]:
        """The comment for a condition that was always so with these inputs, or never; nothing for one on anything else,
        such as the model's own options."""
        text = " ".join(ast.unparse(test).split())
        if self.silent or "torch" in text or "isinstance" in text or not self._decides(test):
            return []
        return [comment(f"{'always' if always else 'never'} with the example inputs: {text}")]

    def _decides(self, test: ast.expr) -> bool:
        if isinstance(test, ast.BoolOp):
            return any(map(self._decides, test.values))
        if isinstance(test, ast.UnaryOp):
            return self._decides(test.operand)
        if isinstance(test, ast.Compare) and ast.unparse(test.comparators[-1]) == "None":  # an argument not given
            return isinstance(test.left, ast.Name) and test.left.id in self.inputs
        return self._given(test)

    def _given(self, node: ast.AST | None) -> bool:
        """Whether an expression names a tensor, or what was computed of one."""
        names = [inner for inner in ast.walk(node) if isinstance(inner, ast.Name)] if node is not None else []
        return any(name.id in self.names or self._tensor(name) for name in names)

    def _tensor(self, node: ast.Name) -> bool:
        return any(kind.startswith("Tensor") for kind in self.facts.kinds(self.file, node))


def comment(text: str) -> ast.stmt:
    """A statement that is written as a comment."""
    return ast.Expr(ast.Name(f"# {text}", ast.Load()))


def is_comment(node: ast.AST) -> bool:
    """Whether a statement is one of these."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id.startswith("# ")


def apart(body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The comments of a block that has nothing else, and what is left of it."""
    return (body, []) if all(map(is_comment, body)) else ([], body)


def settle(node: ast.AST) -> None:
    """Give every block that came to hold comments alone a statement, for Python wants one."""
    for inner in ast.walk(node):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(inner, field, None)
            if isinstance(block, list) and block and all(map(is_comment, block)):
                block.append(ast.Pass())


def _stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
