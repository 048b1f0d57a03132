"""Configurations: dataclasses of numbers that a library made with more than a decorator, as plain dataclasses.

A model of transformers takes everything that it is made of from one object, whose class knows how to be saved, merged
and validated too. Written is a dataclass of what the model reads of it, with the library's defaults.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..rewrite.context import Definitions, receivers

Make = Callable[[Any], ast.expr]  # the expression for a value of the worker's report
NAMED = {bool: "bool", int: "int", float: "float", str: "str", list: "list[Any]", tuple: "tuple[Any, ...]"}


def is_configuration(name: str, node: ast.ClassDef, definitions: Definitions) -> bool:
    """Whether a class is a configuration, and no dataclass by a decorator alone."""
    own = [ast.unparse(item.func if isinstance(item, ast.Call) else item) for item in node.decorator_list]
    return name in definitions.facts.configurations and not any(item.rpartition(".")[2] == "dataclass" for item in own)


def fill(names: Sequence[str], definitions: Definitions, make: Make, more: Sequence[ast.AST]) -> None:
    """Write the fields of configurations, once it is known what is read of them, and give none that is not."""
    trees = [*definitions.definitions.values(), *more]
    read = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    read |= {str(n.value) for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    for name in names:
        calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call) and _makes(node, name)]
        known = definitions.facts.configurations[name]
        wanted = {key: values for key, values in definitions.reads.get(name, {}).items() if key in read}
        aliases = {key: to for key, to in known["aliases"].items() if key in wanted}
        wanted.update({to: None for to in aliases.values() if to not in wanted})
        given = {str(word.arg) for call in calls for word in call.keywords}
        fields = [key for key in known["held"] if key in wanted and key not in aliases]
        fields += [key for key in wanted if key not in fields and key not in aliases]
        node = definitions.definitions[name]
        assert isinstance(node, ast.ClassDef)
        body = [line for key in fields for line in _field(key, known, wanted[key], key in given, definitions, make)]
        node.body = [*node.body[:1], *body, *(_alias(key, to) for key, to in aliases.items())]
        for call in calls:
            call.keywords = [word for word in call.keywords if word.arg is None or word.arg in fields]


def _makes(node: ast.Call, name: str) -> bool:
    return name in receivers(node)


def _field(
    key: str, known: Mapping[str, Any], values: list[Any] | None, given: bool, definitions: Definitions, make: Make
) -> Iterator[ast.stmt]:
    """`hidden_size: int = 768`: the class's default, or what the model's was where nobody gave it."""
    if given and key in known["defaults"]:
        value = known["defaults"][key]
    elif key in known["held"]:
        value = known["held"][key]
    elif values is not None and len(values) == 1:
        value = values[0]
    else:
        return  # it was asked for, and not there
    default = make(value)
    try:
        constant = ast.literal_eval(default)
        hint = NAMED.get(type(constant), "dict[Any, Any]" if isinstance(constant, dict) else "Any")
    except ValueError:
        hint = default.func.id if isinstance(default, ast.Call) and isinstance(default.func, ast.Name) else "Any"
        constant = []
    if "Any" in hint:
        definitions.name("typing.Any")
    if isinstance(constant, (list, dict)):
        factory = ast.Lambda(ast.arguments([], [], None, [], [], None, []), default)
        default = ast.Call(definitions.name("dataclasses.field"), [], [ast.keyword("default_factory", factory)])
    yield ast.AnnAssign(ast.Name(key, ast.Store()), ast.parse(hint, mode="eval").body, default, 1)


def _alias(key: str, to: str) -> ast.stmt:
    """Another name of a field."""
    text = f'@property\ndef {key}(self) -> Any:\n    """Another name of `{to}`."""\n    return self.{to}'
    return ast.parse(text).body[0]


def empty_dataclass(name: str, definitions: Definitions) -> ast.ClassDef:
    """The class, without its fields."""
    package = name.partition(".")[0]
    short = name.rpartition(".")[2]
    says = f"What the model is made of: the part of {package}'s {short} that it reads."
    decorator = definitions.name("dataclasses.dataclass")
    return ast.ClassDef(definitions.called(name), [], [], [ast.Expr(ast.Constant(says))], [decorator])
