"""argparse without running it: what each argument of the script is by default, and on which line that is written."""

from __future__ import annotations

import ast
from typing import Any

from .abstract_values import (
    ArgumentParser,
    CallArgument,
    Constant,
    ListValue,
    Origin,
    ParsedArguments,
    Value,
    is_known,
    known,
    wrapped,
)
from .script_file import ScriptFile

_OF_A_GROUP = ("add_argument_group", "add_mutually_exclusive_group")
_CONVERSIONS = {"int": int, "float": float, "str": str}


def called(
    parser: ArgumentParser, method: str, arguments: list[CallArgument], node: ast.Call, source: ScriptFile, keep: bool
) -> Value:
    """What a method of a parser gives; keep: whether the call surely runs and so changes the parser."""
    if method == "add_argument" and keep:
        _add(parser, arguments, node, source)
    if method == "set_defaults" and keep:
        for argument in arguments:
            if argument.name:
                parser.defaults[argument.name] = _of(source, argument.name, argument.node, argument.value)
    if method == "parse_args":
        return ParsedArguments(parser)
    if method in ("parse_known_args", "parse_known_intermixed_args"):
        return ListValue([ParsedArguments(parser), Value()])
    return parser if method in _OF_A_GROUP else Value()


def _add(parser: ArgumentParser, arguments: list[CallArgument], node: ast.Call, source: ScriptFile) -> None:
    given = {argument.name: argument for argument in arguments if argument.name}
    flags = [flag for argument in arguments if argument.name is None and isinstance(flag := known(argument.value), str)]
    name = known(given["dest"].value) if "dest" in given else None
    if name is None and flags:
        long = [flag for flag in flags if flag.startswith("--")]
        name = (long or flags)[0].lstrip("-").replace("-", "_")
    if not isinstance(name, str) or not name:
        return
    action = known(given["action"].value) if "action" in given else "store"
    if "default" in given:
        value: Value = given["default"].value
        value = _converted(value, given.get("type"))
    elif action in ("store_true", "store_false"):
        value = Constant(action == "store_false")
    else:
        value = Constant(None) if not flags or flags[0].startswith("-") else Value()  # one that has to be given
        if "required" in given and known(given["required"].value):
            value = Value()
    parser.defaults[name] = _of(source, name, node, value)


def _of(source: ScriptFile, name: str, node: ast.expr, value: Value) -> Value:
    """The value, with the line of the argument as the one place that it comes from."""
    if not is_known(value):
        return value
    text = f"args.{name} has the default {known(value)!r} in argparse"
    return wrapped(known(value), (Origin(source.shown, node.lineno, text),))


def _converted(value: Value, kind: CallArgument | None) -> Value:
    """A default that is a text goes through the argument's type, as argparse does it."""
    if kind is None or not isinstance(value, Constant) or not isinstance(value.value, str):
        return value
    convert: Any = _CONVERSIONS.get(kind.node.id) if isinstance(kind.node, ast.Name) else None
    if convert is None:
        return Value()
    try:
        return Constant(convert(value.value))
    except ValueError:
        return Value()
