"""Source text of a rewritten call: values, expressions as their writer wrote them, and the calls inside them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping
from typing import Any

from ...mappings.rows import Call
from .source import LONGEST_TEXT
from .values import Seen

Texts = Mapping[int, str]  # a node of a call -> the call rewritten


class Expression:
    """An expression inside a call's arguments: it prints as its text, and refuses to be computed with."""

    def __init__(self, text: str, value: Any = None) -> None:
        self.text, self.value = text, value
        self.names: tuple[str, ...] = ()  # what the tables may call it, where it is a library's own value

    def __repr__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return True  # a number other than 0, which a note then says


def _refuse(self: Expression, *rest: Any) -> Any:
    raise ValueError(f"it depends on {self.text}")


for _name in "float int index iter len add radd sub rsub mul rmul truediv neg lt le gt ge".split():  # noqa: SIM905
    setattr(Expression, f"__{_name}__", _refuse)


def text_of(seen: Seen, node: ast.expr, texts: Texts) -> str:
    """The source of a node, with the calls inside it rewritten."""
    if seen.source.length(node) > LONGEST_TEXT:
        return seen.source.text(node)
    inside = {id(part) for part in ast.walk(node)} & texts.keys()
    if not inside:
        return seen.source.text(node)
    if id(node) in inside:
        return texts[id(node)]
    return " ".join(ast.unparse(_replaced(node, lambda part: texts.get(id(part)))).split())


def _replaced(node: Any, new: Callable[[ast.AST], str | None]) -> Any:
    """A copy of a tree with some of its nodes replaced by names, which unparse writes as they are."""
    if isinstance(node, list):
        return [_replaced(item, new) for item in node]
    if not isinstance(node, ast.AST):
        return node
    text = new(node)
    if text is not None:
        return ast.Name(id=text, ctx=ast.Load())
    made = copy.copy(node)
    for field, value in ast.iter_fields(node):
        setattr(made, field, _replaced(value, new))
    return made


def word(name: str, value: Any) -> str:
    """One argument of a call as source."""
    return written(value) if name == "*args" else f"{name}={written(value)}"


def written(value: Any) -> str:
    """A value inside a call as source."""
    if isinstance(value, Call):
        return f"{value.target}({', '.join(word(name, inner) for name, inner in value.kwargs.items())})"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(written(item) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {written(item)}' for key, item in value.items())}}}"
    return repr(value)
