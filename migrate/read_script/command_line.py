"""What settings are at a plain start: the defaults of argparse's arguments, of the options and flags of other packages,
of classes' fields, and of functions; what decorators make of a function; and which classes of the script make others of
what they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .. import library_names as names
from ..source_files import ScriptFile
from .abstract_values import (
    LARGEST,
    UNNAMED,
    ArgumentParser,
    CallArgument,
    Constant,
    DictValue,
    LibraryName,
    LibraryObject,
    ListValue,
    Member,
    Origin,
    ParsedArguments,
    Scope,
    ScriptClass,
    ScriptFunction,
    ScriptModule,
    ScriptObject,
    Value,
    forget,
    is_known,
    known,
    wrapped,
)
from .interpreter import FORGETS, OPTION, Interpreter
from .syntax import CALLS, KEEPS, PASSES, decorates, defaults_of

# classes of parsers; what configargparse reads of files is not known, so that a parser with such a default has none
PARSERS_OF_ARGUMENTS = ("argparse.ArgumentParser", "configargparse.ArgumentParser", "configargparse.ArgParser")
FILES_OF_OPTIONS, OF_A_FILE = ("default_config_files", "default_files"), ("is_config_file", "is_config_file_arg")
ADDS_AN_ARGUMENT = ("add_argument", "add_arg", "add")
_OF_A_GROUP = ("add_argument_group", "add_mutually_exclusive_group")


def parents_of(arguments: list[CallArgument]) -> ArgumentParser:
    """A parser of argparse, with the defaults of those whose arguments it has too."""
    given = next((one.value for one in arguments if one.name == "parents"), None)
    parents = [one for one in given.items if isinstance(one, ArgumentParser)] if isinstance(given, ListValue) else []
    made = ArgumentParser({name: value for one in parents for name, value in one.defaults.items()})
    made.of_files = any(one.name in FILES_OF_OPTIONS for one in arguments)
    return made


def of_namespace(arguments: list[CallArgument], of: ScriptClass | None) -> list[CallArgument]:
    """What Lightning's Trainer, or a data module of the script's own, takes of a parsed command line, and what it is
    given besides."""
    own = of.find("__init__") if of is not None else None
    takes = [one.arg for one in own.node.args.args] if isinstance(own, ScriptFunction) else []
    takes = takes if of is not None else [name for line in names.TABLES["of_lightnings_trainer"] for name in line]
    found = [one for one in arguments if one.name not in (None, "args")]
    given = {one.name for one in found}
    for one in (one for one in arguments if one.name in (None, "args")):
        parsed = one.value if isinstance(one.value, ParsedArguments) else None
        declared = parsed.parser.defaults | parsed.assigned if parsed is not None else {}
        names_ = [name for name in takes if name in declared and name not in given]
        names_ = [name for name in names_ if of is not None or known(declared[name], "") is not None]
        found += [CallArgument(name, one.node, declared[name], f".{name}") for name in names_]
        found += [CallArgument("**", one.node, one.value)] if parsed is None else []
    return found


_CONVERSIONS = {"int": int, "float": float, "str": str}


def _declare(
    interpreter: Interpreter, parser: ArgumentParser, arguments: list[CallArgument], node: ast.Call, source: ScriptFile
) -> None:
    """Keep the default of an argument that `add_argument` declares."""
    given = {argument.name: argument for argument in arguments if argument.name}
    flags = [flag for argument in arguments if argument.name is None and isinstance(flag := known(argument.value), str)]
    name = known(given["dest"].value) if "dest" in given else None
    if name is None and flags:
        long = [flag for flag in flags if flag.startswith("--")]
        name = (long or flags)[0].lstrip("-").replace("-", "_")
    more = "**" in given
    if not isinstance(name, str) or not name:
        interpreter.unread += [("", source, node)] if "default" in given or more else []
        return
    action = known(given["action"].value) if "action" in given else "store"
    if "default" in given:
        value: Value = given["default"].value
        value = _converted(value, given.get("type"))
    elif action in ("store_true", "store_false"):
        value = Constant(action == "store_false")
    else:
        value = Constant(None) if not flags or flags[0].startswith("-") else Value()  # a required argument
        if "required" in given and known(given["required"].value):
            value = Value()
    value = Value() if more and "default" not in given else value
    if name not in parser.declared:
        parser.defaults[name] = _default_of(source, f"args.{name}", node, value, "argparse")
        parser.flags |= dict.fromkeys((flag.lstrip("-").replace("-", "_") for flag in flags), name)
        interpreter.unread += [(name, source, node)] if (more or "default" in given) and not is_known(value) else []
    parser.declared.add(name)


def _default_of(source: ScriptFile, name: str, node: ast.expr, value: Value, package: str) -> Value:
    """The value, with the line of the argument as its only origin."""
    if not is_known(value):
        return value
    text = f"{name} has the default {known(value)!r} in {package}"
    return wrapped(known(value), (Origin(source.shown, node.lineno, text),))


def _converted(value: Value, kind: CallArgument | None) -> Value:
    """A default that is a string, converted by the argument's type, as argparse does."""
    if kind is None or not isinstance(value, Constant) or not isinstance(value.value, str):
        return value
    of = kind.value.scope.names.values() if isinstance(kind.value, ScriptClass) else ()
    if isinstance(value.value, Member) or any(known(one) == value.value for one in of):
        return value  # of an enumeration
    if getattr(kind.value, "name", "").startswith(("pathlib.", "click.Choice", "click.Path")):
        return value  # whose text is the same
    if isinstance(kind.node, ast.Call) and getattr(kind.node.func, "id", "") == "type":
        return value  # its own
    convert: Any = _CONVERSIONS.get(kind.node.id) if isinstance(kind.node, ast.Name) else None
    if convert is None:
        return Value()
    try:
        return Constant(convert(value.value))
    except ValueError:
        return Value()


def of_parser(
    interpreter: Interpreter,
    parser: ArgumentParser,
    method: str,
    arguments: list[CallArgument],
    node: ast.Call,
    source: ScriptFile,
) -> Value:
    """The result of a method of an argparse parser; one that surely runs changes the parser."""
    keep = interpreter.certainty != OPTION
    if method in ADDS_AN_ARGUMENT and keep:
        _declare(interpreter, parser, arguments, node, source)
        given = {one.name for one in arguments}
        parser.of_files = parser.of_files or bool(given & {*OF_A_FILE} and given & {"default", "required"})
    for argument in arguments if method == "set_defaults" and keep else ():
        if argument.name == "**" and (pairs := table_of(argument.value)) is not None:
            found = {
                key: _default_of(source, f"args.{key}", argument.node, one, "argparse") for key, one in pairs.items()
            }
            parser.defaults.update(found)
            continue
        if argument.name == "**":
            forget(parser.defaults, list(parser.defaults))
        elif argument.name:
            text = f"args.{argument.name}"
            parser.defaults[argument.name] = _default_of(source, text, argument.node, argument.value, "argparse")
        unread = not is_known(argument.value) or argument.name == "**"
        interpreter.unread += [(argument.name.strip("*"), source, node)] if unread and argument.name else []
    if method.startswith("parse_") and names.gives_arguments(source.tree):
        arguments = [*arguments, CallArgument("argv", node, Value())]
    if method.startswith("parse_"):
        forget(parser.defaults, list(parser.defaults if parser.of_files else refused(source.tree, parser.defaults)))
    if method == "parse_args":
        return ParsedArguments(parser).given(arguments)
    if method in ("parse_known_args", "parse_known_intermixed_args"):
        return ListValue([ParsedArguments(parser).given(arguments), Value()])
    return parser if method in _OF_A_GROUP else Value()


def refused(tree: ast.AST, defaults: dict[str, Value]) -> Iterator[str]:
    """The arguments whose default a file refuses by what it chooses from."""
    for name, values in names.chosen_or_refused(tree):
        if is_known(defaults.get(name)) and known(defaults[name]) not in values:
            yield name


# options that a loop declares, and tables that become settings

MOST_OPTIONS = 200  # that a loop declares


def table_of(value: Value | None, own: bool = True) -> dict[Any, Value] | None:
    """What a table, parsed arguments, or the attributes of an object or a class of the script have by name; None where
    that may be more than is known. own: whether an object's class has none of them."""
    found: dict[Any, Value] | None = None
    if isinstance(value, DictValue) and not value.more:
        found = value.pairs
    elif isinstance(value, ParsedArguments):
        found = {**value.parser.defaults, **value.assigned}
    elif isinstance(value, ScriptClass):
        found = {
            key: one for key, one in value.scope.names.items() if not isinstance(one, (ScriptFunction, ScriptClass))
        }
    elif isinstance(value, ScriptObject) and not value.of.family():
        found = {key: one for key, one in value.attributes.items() if not own or value.of.find(key) is not one}
    if found is None or len(found) > MOST_OPTIONS or not all(isinstance(key, str) for key in found):
        return None
    return {key: one for key, one in found.items() if not key.startswith("__")}


def updated_by(arguments: list[CallArgument]) -> dict[Any, Value] | None:
    """What `settings.update(…)` sets; None where that is not known."""
    found: dict[Any, Value] = {}
    for one in arguments:
        pairs = table_of(one.value) if one.name in UNNAMED else {one.name: one.value}
        if pairs is None or one.name == "*":
            return None
        found |= pairs
    return found


def rounds_that_declare(interpreter: Interpreter, node: ast.For | ast.AsyncFor, scope: Scope) -> ListValue | None:
    """The rounds of a loop that declares an option, or sets an attribute, for each entry of a table, or for each
    attribute of an object: `for key, value in vars(self).items(): parser.add_argument(…)`; None for any other loop."""
    calls = (one for part in node.body for one in ast.walk(part) if isinstance(one, ast.Call))
    named = {getattr(one.func, "attr", getattr(one.func, "id", "")) for one in calls}
    over, gives, own = node.iter, "keys", True
    while isinstance(over, ast.Call) and named & {*ADDS_AN_ARGUMENT, "setattr"}:
        match over:
            case ast.Call(ast.Name("sorted" | "list" | "tuple"), [of]):
                over = of
            case ast.Call(ast.Name("dir"), [of]):
                over, own = of, False
            case ast.Call(ast.Attribute(of, "items" | "keys" | "values" as gives), []):
                over = of
            case ast.Call(ast.Name("fields") | ast.Attribute(_, "fields"), [of]):
                over, gives = of, "fields"
            case _:
                break
    found = table_of(interpreter.value(over, scope), own) if named & {*ADDS_AN_ARGUMENT, "setattr"} else None
    if found is None or (over is node.iter and isinstance(over, ast.Call) and ast.unparse(over)[:5] != "vars("):
        return None
    each = [(wrapped(key), one) for key, one in found.items()]
    kinds: dict[str, list[Value]] = {
        "keys": [key for key, _ in each],
        "values": [one for _, one in each],
        "items": [ListValue([key, one]) for key, one in each],
        "fields": [DictValue({"name": key, "default": one}) for key, one in each],
    }
    return ListValue(kinds[gives])


# functions that a package calls with options of the command line


@dataclass(eq=False)
class Declared(Value):
    """An option that a decorator declares: what `click.option(…)` gives."""

    name: str
    default: Value
    node: ast.Call
    flags: tuple[str, ...]  # of a command line, that set it


OPTIONS = ("option", "argument")  # what decorators of click and its like declare
COMMANDS = ("command", "group", "callback")  # decorators that make a function one that the command line calls
# arguments of what calls them that change no default
PASSED = ("component", "main", "f", "func", "function", "name", "description", "prog", "argv")


def of_launcher(
    interpreter: Interpreter, name: str, arguments: list[CallArgument], node: ast.Call, scope: Scope
) -> Value | None:
    """What a call gives that declares an option, or has a package make an object of a class of settings; else None."""
    package, _, function = name.rpartition(".")
    if function in OPTIONS and name.partition(".")[0] in names.TABLES["declares_options"]:
        return _of_click(interpreter, arguments, node, scope.source)
    if name in ("typer.Option", "typer.Argument"):
        given = {one.name: one for one in arguments}
        default = given.get("default", next((one for one in arguments if one.name is None), None))
        unread = "default_factory" in given or "callback" in given or default is None
        value = (
            Value() if unread or default is None or ast.unparse(default.node) in ("...", "Ellipsis") else default.value
        )
        origin = (Origin(scope.source.shown, node.lineno, scope.source.text(node)),)
        return wrapped(known(value), origin) if is_known(value) else value
    if package == "absl.flags" and function.startswith("DEFINE_"):
        return _of_absl(interpreter, function, arguments, node, scope.source)
    if (
        package == "absl.flags"
        and function.startswith(("mark_flag", "set_default"))
        and interpreter.certainty != OPTION
    ):
        _change_flags(interpreter.flags, [one.value for one in arguments], function == "set_default")
    made = next((one.value for one in arguments if one.name in (None, *PASSED)), None)
    if name in names.TABLES["runs_commands"] and isinstance(made, ScriptClass) and _plainly(arguments):
        return interpreter.make(made, [], node, scope)
    return None


def _plainly(arguments: Iterable[CallArgument]) -> bool:
    """Whether these hand a package nothing that stands for the command line, or for defaults."""
    return all(one.name in (None, *PASSED) for one in arguments)


def _of_click(interpreter: Interpreter, arguments: list[CallArgument], node: ast.Call, source: ScriptFile) -> Value:
    """An option of click's, by the name that its function gets, with its default as the command gives it."""
    given = {one.name: one for one in arguments if one.name}
    texts = [text for one in arguments if one.name is None and isinstance(text := known(one.value), str)]
    named = [text for text in texts if text.isidentifier()]
    long = [text.partition("/")[0] for text in texts]
    long = [text for text in long if text.startswith("--")] or long
    if not named and not long:
        return Value()
    name = (named or [long[0].lstrip("-").replace("-", "_").lower()])[0]
    own = getattr(node.func, "attr", getattr(node.func, "id", "")) == "argument"
    on = {key: known(given[key].value) for key in ("is_flag", "multiple", "count", "required") if key in given}
    value: Value = Constant(None)
    if "default" in given:
        value = _converted(given["default"].value, given.get("type"))
    elif on.get("is_flag") or any("/" in text for text in texts):
        value = Constant(False)
    elif on.get("count"):
        value = Constant(0)
    elif on.get("multiple"):
        value = ListValue([])
    required = own and "default" not in given and on.get("required") is not False
    if required or on.get("required") or {"callback", "cls", "flag_value", "default_map"} & given.keys():
        value = Value()
    value = value if is_known(value) else Value()
    interpreter.unread += [(name, source, node)] if "default" in given and not is_known(value) else []
    flags = (flag.lstrip("-").replace("-", "_") for text in texts for flag in text.split("/"))
    return Declared(name, _default_of(source, name, node, value, "click"), node, tuple(flags))


_FLAGS: dict[str, Any] = {"float": float, "integer": int, "string": str, "enum": str, "bool": None, "boolean": None}


def _of_absl(
    interpreter: Interpreter, function: str, arguments: list[CallArgument], node: ast.Call, source: ScriptFile
) -> Value:
    """A flag of absl's, which its FLAGS have from then on."""
    plain = (one for one in arguments if one.name is None)
    given = {**dict(zip(("name", "default"), plain, strict=False)), **{one.name: one for one in arguments if one.name}}
    name, kind = known(given["name"].value) if "name" in given else None, function.removeprefix("DEFINE_")
    if not isinstance(name, str) or interpreter.certainty == OPTION:
        return Value()
    value = given["default"].value if "default" in given and kind in (*_FLAGS, "multi_string", "list") else Value()
    text = known(value)
    if isinstance(text, str) and kind in ("float", "integer"):
        value = _converted(value, CallArgument("type", ast.Name(_FLAGS[kind].__name__), Value()))
    elif isinstance(text, str) and kind not in ("string", "enum"):
        value = Value()
    needed = "required" in given and known(given["required"].value) is not False
    value = Value() if needed or names.gives_arguments(source.tree) else value
    interpreter.unread += [(name, source, node)] if not needed and not is_known(value) else []
    value = _default_of(source, f"FLAGS.{name}", node, value, "absl")
    interpreter.flags.parser.defaults[name] = value
    return holder(name, value)


def holder(name: str, value: Value) -> Value:
    """What absl's flags have by the name of one."""
    return LibraryObject("", name="absl.flags.FlagHolder", of=DictValue({"value": value, "name": Constant(name)}))


def _change_flags(flags: ParsedArguments, given: list[Value], sets: bool) -> None:
    """Take the flags that something names as unknown, or all of them; sets: it gives one another default."""
    of = getattr(given[0], "of", None) if given else None
    named = known(of.pairs.get("name") if isinstance(of, DictValue) else given[0] if given else None)
    listed = [named] if isinstance(named, str) else named if isinstance(named, list) else list(flags.parser.defaults)
    forget(flags.assigned, listed)
    if sets and isinstance(named, str) and len(given) == 2:
        flags.assigned[named] = given[1]


def declare(interpreter: Interpreter, option: Declared, function: Value) -> Value:
    """Keep an option of the function that it decorates; returns the function."""
    if isinstance(function, ScriptFunction):
        parser = interpreter.commands.setdefault(id(function.node), ArgumentParser())
        parser.defaults.setdefault(option.name, option.default)
        parser.flags |= dict.fromkeys(option.flags, option.name)
        parts = list(ast.walk(function.node))
        taken = any(isinstance(one, ast.arg) and one.arg == option.name for one in parts)
        if not taken and any(isinstance(one, ast.Attribute) and one.attr == "params" for one in parts):
            interpreter.unread.append((option.name, function.scope.source, option.node))  # ctx.params["lr"]
    return function


def launch(interpreter: Interpreter, function: Value, node: ast.Call, scope: Scope) -> None:
    """Note what a package calls with options of the command line: functions, and the methods of classes and objects,
    also those of a table; without arguments, all of the file."""
    name = function.name if isinstance(function, LibraryName) else ""
    if name not in names.TABLES["runs_commands"] or names.gives_arguments(scope.source.tree):
        return
    plain = all(one.arg in PASSED for one in node.keywords)
    given = [interpreter.value(one, scope) for one in (*node.args, *(k.value for k in node.keywords)) if plain]
    waiting = given if given or not plain else list(scope.top().names.values())
    inner = [each for one in waiting for each in (*getattr(one, "items", ()), *getattr(one, "pairs", {}).values())]
    for one in (*waiting, *inner):
        of = one.of if isinstance(one, ScriptObject) else one
        found = of.scope.names.values() if isinstance(of, ScriptClass) and not of.family() else [one]
        for each in (each for each in found if isinstance(each, ScriptFunction)):
            interpreter.commands.setdefault(id(each.node), ArgumentParser())


def as_command(interpreter: Interpreter, function: ScriptFunction, arguments: list[CallArgument]) -> list[CallArgument]:
    """What the script's own function is given by a call: a command of click's its options, where it names none."""
    parser = interpreter.commands.get(id(function.node))
    if parser is None or not parser.defaults:
        return arguments
    options = ParsedArguments(parser).given([one for one in arguments if one.name in (None, "args")])
    if any(one.name in ("default_map", "**") for one in arguments):
        forget(options.assigned, parser.defaults)
    return options.arguments()


def _is_command(interpreter: Interpreter, node: ast.expr, by: Value, scope: Scope) -> bool:
    """Whether a decorator makes a function a command of click's or typer's, or of one of the script's own groups."""
    func = node.func if isinstance(node, ast.Call) else node
    name = by.name if isinstance(by, (LibraryName, LibraryObject)) else ""
    method = func.attr if isinstance(func, ast.Attribute) else name.rpartition(".")[2]
    owner = interpreter.value(func.value, scope) if isinstance(func, ast.Attribute) else None
    group = isinstance(owner, ScriptFunction) and id(owner.node) in interpreter.commands
    made = getattr(owner, "name", name) if isinstance(owner, (LibraryName, LibraryObject)) else name
    return method in COMMANDS and (group or made.partition(".")[0] in names.TABLES["declares_options"])


def _by_name(of: ScriptFunction | ScriptClass) -> bool:
    """Whether one of its decorators is named as those are that make commands."""
    marks = of.node.decorator_list if not isinstance(of.node, ast.Lambda) else []
    funcs = [one.func if isinstance(one, ast.Call) else one for one in marks]
    return any(getattr(one, "attr", getattr(one, "id", "")) in COMMANDS for one in funcs)


def decorated(interpreter: Interpreter, of: ScriptFunction | ScriptClass, scope: Scope) -> Value:
    """What the decorators make of a function or a class: a wrapper that only hands on is that function itself."""
    found: Value = of
    for node in reversed(of.node.decorator_list) if not isinstance(of.node, ast.Lambda) else ():
        by, name = interpreter.value(node, scope), ast.unparse(node)
        if isinstance(by, Declared):
            declare(interpreter, by, of)
            continue
        if isinstance(of, ScriptFunction) and _is_command(interpreter, node, by, scope):
            options = interpreter.commands.setdefault(id(of.node), ArgumentParser()).defaults
            forget(options, list(options) if "default_map" in name or "cls=" in name else [])
            continue
        name = by.name if isinstance(by, (LibraryName, LibraryObject)) else name
        if isinstance(by, LibraryName) and names.is_library(name):
            interpreter.note(name, node, scope, None)
        does = decorates(by.node, by.receiver is not None) if isinstance(by, ScriptFunction) else ""
        given, made = [CallArgument(None, ast.Constant(None), found)], Value()
        if isinstance(by, ScriptClass):
            made = interpreter.make(by, given, ast.copy_location(ast.Call(node, [], []), node), scope)
        elif isinstance(by, ScriptFunction) and (does == CALLS or isinstance(of, ScriptClass)):
            made = interpreter.call(by, given)
        elif isinstance(by, ScriptFunction) and _by_name(of) and interpreter.call(by, given) is found:
            continue  # it declares options of a command
        elif does not in (PASSES, KEEPS) and not names.is_plain_decorator(name):
            interpreter.altered.add(id(of.node))
            for forget_again in FORGETS if not does else ():
                forget_again(interpreter, of) if isinstance(of, ScriptFunction) else None  # a library may call it
        found = made if type(made) is not Value else found
    return found


# classes of settings


def hyperparameters(of: ScriptObject, arguments: list[CallArgument], scope: Scope) -> Value:
    """What Lightning's `self.save_hyperparameters(…)` keeps in `hparams`: the arguments of `__init__`, those that it
    names, or what it is given."""
    starts = [one.scope.names.get("__init__") for one in of.of.lineage() if isinstance(one, ScriptClass)]
    nodes = [one.node.args for one in starts if isinstance(one, ScriptFunction)]
    every = [a.arg for one in nodes for a in (*one.posonlyargs, *one.args, *one.kwonlyargs)][:LARGEST]
    given = [argument.value for argument in arguments if argument.name is None]
    only = [known(value) for value in given]
    if given and not all(isinstance(name, str) for name in only):
        return given[0] if len(given) == 1 else Value()
    ignored = next((known(argument.value, every) for argument in arguments if argument.name == "ignore"), ())
    ignored = [ignored] if isinstance(ignored, str) else ignored
    kept = [name for name in only or every if name in scope.names and name not in ignored]
    unpacked = [scope.names.get(one.kwarg.arg) for one in nodes[:1] if one.kwarg is not None and not only]
    more = {k: v for one in unpacked if isinstance(one, DictValue) for k, v in one.pairs.items() if k not in ignored}
    return DictValue(more | {name: scope.names[name] for name in kept if scope.names[name] is not of})


FIELDS = ("dataclasses.field", "attr.ib", "attrs.field", "pydantic.Field")
PARSES = ("parse_args_into_dataclasses", "parse_args_and_config")  # of transformers' and trl's parsers


def default_of_field(interpreter: Interpreter, node: ast.Call, arguments: list[CallArgument], scope: Scope) -> Value:
    """The default of a field of a class of settings: `rate: float = field(default=0.1)`."""
    given = {one.name: one for one in arguments if one.name in ("default", "default_factory", "factory")}
    if "default" in given:
        return given["default"].value
    made_by = next((given[key] for key in ("default_factory", "factory") if key in given), None)
    if made_by is None:
        return Value()
    if isinstance(made_by.node, ast.Lambda):
        return interpreter.value(made_by.node.body, scope)
    if isinstance(made_by.value, ScriptClass):
        return interpreter.make(made_by.value, [], node, scope)
    empty: dict[str, Value] = {"list": ListValue([]), "dict": DictValue({}, closed=True)}
    return empty.get(getattr(made_by.node, "id", ""), Value())


def parsed_settings(
    interpreter: Interpreter, parser: Value, node: ast.Call, arguments: list[CallArgument], scope: Scope
) -> Value:
    """What HfArgumentParser makes where the command line gives nothing: an object of each class that it was given."""
    given = parser.of if isinstance(parser, LibraryObject) else None
    if isinstance(parser, ScriptObject):
        given = next((one.value for one in parser.arguments if one.name in (None, "dataclass_types")), None)
    found: list[Value] = []
    for one in given.items if isinstance(given, ListValue) else [given]:
        if isinstance(one, ScriptClass):
            found.append(interpreter.make(one, [], node, scope))
        else:
            found.append(LibraryObject("", name=one.name) if isinstance(one, LibraryName) else Value())
    rest = any(one.name == "return_remaining_strings" and known(one.value) for one in arguments)
    return ListValue([*found, *([Value()] if rest else [])])


def of_command_line(
    interpreter: Interpreter, name: str, arguments: list[CallArgument], node: ast.Call, scope: Scope
) -> None:
    """Make what Lightning's LightningCLI makes of its classes where the command line gives nothing."""
    if name.endswith(".LightningCLI"):
        classes = [one.value for one in arguments if isinstance(one.value, ScriptClass)]
        interpreter.drive([interpreter.make(one, [], node, scope) for one in classes])


CHANGED_DEFAULTS = ("__defaults__", "__kwdefaults__")  # of a function


def make_defaults(interpreter: Interpreter, function: ScriptFunction, scope: Scope) -> None:
    """Make the defaults of a function, where it is defined; those that it had otherwise before are unknown."""
    for parameter, default in defaults_of(function.node):
        found, before = interpreter.value(default, scope), function.defaults.get(parameter.arg)
        anew = before is not None and not (is_known(before) and is_known(found) and known(before) == known(found))
        function.defaults[parameter.arg] = Value() if anew else found


def forget_defaults(interpreter: Interpreter, function: ScriptFunction, name: str | None) -> None:
    """Take the defaults of a function as unknown, or all that it does, where its `__code__` is another one's."""
    kept = interpreter.functions.get(id(function.node), function).defaults
    if interpreter.certainty != OPTION:
        kept.update({parameter.arg: Value() for parameter, _ in defaults_of(function.node)})
        interpreter.altered |= {id(function.node)} if name not in CHANGED_DEFAULTS else set()


def settings_of(holder: Value | None, longest: int) -> dict[str, Value]:
    """The plain values that an object of options, a class, an object of one, or a file has, by their names;
    longest: the most characters of one."""
    has: dict[str, Value] = {}
    if isinstance(holder, ParsedArguments):
        has = {name: holder.get(name) for name in (*holder.parser.defaults, *holder.assigned)}
    elif isinstance(holder, ScriptModule):
        has = holder.scope.names
    elif isinstance(holder, (ScriptObject, ScriptClass)):
        of = holder if isinstance(holder, ScriptClass) else holder.of
        own = not of.family() and (of.library_base() or "collections").startswith(("collections", "typing."))
        bases = [one for one in of.lineage() if isinstance(one, ScriptClass)] if own else []
        has = {name: value for base in bases[::-1] for name, value in base.scope.names.items()}
        has |= holder.attributes if isinstance(holder, ScriptObject) and bases else {}
    return {k: v for k, v in has.items() if not k.startswith("_") and is_known(v) and len(repr(known(v))) <= longest}


# classes that make others of the settings that they are given


def sets_another(holder: Value, name: str) -> bool:
    """Whether an object of the script may have another attribute than it is given: by its class's own `__setattr__`, a
    descriptor, or what `property(…)` makes."""
    if not isinstance(holder, ScriptObject):
        return False
    own, part = holder.of.find("__setattr__"), holder.of.find(name)
    descriptor = isinstance(part, ScriptObject) and part.of.find("__set__") is not None
    made = isinstance(part, LibraryObject) and part.name == "property"
    return descriptor or made or (isinstance(own, ScriptFunction) and not names.sets_what_is_given(own.node))


def class_made(interpreter: Interpreter, made: ScriptClass, scope: Scope) -> None:
    """What making a class runs: its metaclass, after which its plain values may be others, and `__init_subclass__`."""
    nodes = (one.node for one in made.lineage() if isinstance(one, ScriptClass))
    metas = (one.value for node in nodes for one in node.keywords if one.arg == "metaclass")
    if any(changes_classes(interpreter.value(one, scope)) for one in metas):
        forget(made.scope.names, [one for one in made.scope.names if not one.startswith("__")])
    begins = next((one.find("__init_subclass__") for one in made.bases if isinstance(one, ScriptClass)), None)
    if isinstance(begins, ScriptFunction):
        interpreter.call(ScriptFunction(begins.node, begins.scope, made, begins.owner), [])


def changes_classes(meta: Value) -> bool:
    """Whether a metaclass of the script may give its classes, or their objects, other attributes than they say; that it
    keeps objects in a table of its own changes none."""
    found = meta.scope.names if isinstance(meta, ScriptClass) else {}
    if {"__prepare__", "__getattribute__", "__setattr__"} & found.keys():
        return True
    methods = [found[name] for name in ("__new__", "__init__", "__call__") if name in found]
    return names.sets_attributes(one.node for one in methods if isinstance(one, ScriptFunction))
