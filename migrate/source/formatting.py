"""The layout of a written file: black's, without the brackets of tuples that nobody writes."""

from __future__ import annotations

import ast

import black

from ...errors import WorkerFailed

LINE = 120


def formatted(text: str, model: str) -> str:
    """The text as black formats it, `return a, b` for `return (a, b)`. Raises WorkerFailed where it is no Python."""
    try:
        return black.format_str(without_brackets(text), mode=black.Mode(line_length=LINE))
    except (SyntaxError, black.parsing.InvalidInput, black.parsing.ASTSafetyError) as error:
        raise WorkerFailed(f"what was written of {model} is no Python: {' '.join(str(error).split())[:300]}") from None


def without_brackets(text: str) -> str:
    """The same without the brackets around tuples that are returned, or given to several names.

    Raises SyntaxError where it is no Python.
    """
    lines = [line.encode() for line in text.split("\n")]  # ast counts bytes
    found = [node for node in map(_tuple, ast.walk(ast.parse(text))) if node is not None]
    for node in sorted(found, key=lambda node: (node.lineno, -node.col_offset)):
        line, begin, end = lines[node.lineno - 1], node.col_offset, node.end_col_offset
        assert end is not None
        if node.end_lineno == node.lineno and _in_brackets(line[begin:end]):
            lines[node.lineno - 1] = line[:begin] + line[begin + 1 : end - 1] + line[end:]
    return "\n".join(line.decode() for line in lines)


def _in_brackets(text: bytes) -> bool:
    """Whether the first and the last bracket are one pair: of `(a), (b)` they are not."""
    try:
        inside = ast.parse(text[1:-1].strip(), mode="eval").body
    except SyntaxError:
        return False
    return text[:1] == b"(" and text[-1:] == b")" and isinstance(inside, ast.Tuple)


def _tuple(node: ast.AST) -> ast.Tuple | None:
    """The tuple that a statement returns, or opens into names."""
    opens = isinstance(node, ast.Assign) and any(isinstance(target, ast.Tuple) for target in node.targets)
    if not opens and not isinstance(node, ast.Return):
        return None
    assert isinstance(node, (ast.Assign, ast.Return))
    return node.value if isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1 else None
