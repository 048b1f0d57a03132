"""The result of a call: of a library, of Python itself, of argparse, or of the script's own functions and classes."""

from __future__ import annotations

import ast
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import BadInput
from .. import library_names as names
from ..source_files import ScriptFile, read_script_file
from . import syntax
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
    Origin,
    ParsedArguments,
    Scope,
    ScriptClass,
    ScriptFunction,
    ScriptModule,
    ScriptObject,
    Value,
    forget,
    forget_inside,
    inside,
    is_known,
    keys_of,
    known,
    origins,
    perhaps,
    wrapped,
)
from .command_line import (
    CHANGED_DEFAULTS,
    FIELDS,
    PARSERS_OF_ARGUMENTS,
    PARSES,
    Declared,
    as_command,
    declare,
    default_of_field,
    forget_defaults,
    hyperparameters,
    launch,
    of_command_line,
    of_launcher,
    of_namespace,
    of_parser,
    parents_of,
    parsed_settings,
    sets_another,
    updated_by,
)
from .expressions import attribute, builtin, joined, of_math, of_text
from .interpreter import (
    DEFAULT,
    OPTION,
    PERHAPS,
    Interpreter,
    copied,
    evaluates,
    executes,
    is_decorated,
    is_table,
)

KEPT_BY_TRAINERS = ("model", "args", "train_dataset", "eval_dataset", "data_collator")  # of transformers and its like
PARSERS = (".HfArgumentParser", ".TrlParser")  # of settings, into objects of dataclasses
_SAME = ("copy.copy", "copy.deepcopy", "pathlib.Path", "os.path.expanduser")  # they return their argument
_ITSELF = ("to", "cuda", "cpu", "train", "eval", "half", "float", "requires_grad_")  # methods that return their module
FROM_ARGUMENTS, ADDS_ARGUMENTS = ".Trainer.from_argparse_args", ".add_argparse_args"  # of Lightning

HOLDERS = ("torch.nn.ModuleDict", "torch.nn.ModuleList", "torch.nn.Sequential")  # their attributes are modules


@evaluates(ast.Call)
def _call(interpreter: Interpreter, node: ast.Call, scope: Scope) -> Value:
    receiver: Value | None = None
    if isinstance(node.func, ast.Attribute):
        receiver = interpreter.value(node.func.value, scope)
        receiver = receiver.other or receiver
        function = attribute(interpreter, receiver, node.func.attr)
        interpreter.remember(node.func, function)
    else:
        function = interpreter.value(node.func, scope)
        function = function.other or function
    if isinstance(function, Declared) and node.args:
        return declare(interpreter, function, interpreter.value(node.args[0], scope))
    launch(interpreter, function, node, scope)
    arguments = _arguments(interpreter, node, scope)
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if method in ("step", "backward") and _family(receiver or Value())[0] != names.SCHEDULE:
        interpreter.note_batches(method)
    if isinstance(function, LibraryName):
        return _of_library(interpreter, function.name, node, scope, arguments)
    if isinstance(function, ScriptFunction):
        found = interpreter.call(function, as_command(interpreter, function, _placed(arguments, scope)))
        if isinstance(found, ScriptObject) and is_decorated(function.node, "classmethod") and _made_in(found, function):
            found.node, found.source = node, scope.source  # the class's own way to make it
        return found
    if isinstance(function, ScriptClass):
        made = interpreter.make(function, _placed(arguments, scope), node, scope)
        base = function.library_base() or ""
        of_command_line(interpreter, base, arguments, node, scope)
        if names.by_torch(base) and base.endswith("Trainer") and isinstance(made, ScriptObject):
            kept = {one.name: one.value for one in arguments if one.name in KEPT_BY_TRAINERS}
            made.attributes = kept | made.attributes
        return made
    if isinstance(of := getattr(function, "of", None), ArgumentParser) and receiver is None:
        return of_parser(interpreter, of, "add_argument", arguments, node, scope.source)  # by another name
    if isinstance(function, (LibraryObject, ScriptObject)) and receiver is None:
        if isinstance(function, LibraryObject) and not function.family and names.is_class(function.name):
            interpreter.note(f"{function.name}.__call__", node, scope, arguments, function)
        return _object_called(interpreter, function, node, _placed(arguments, scope))
    if isinstance(node.func, ast.Attribute) and receiver is not None:
        if isinstance(function, (LibraryObject, ScriptObject)) and type(function) is not LibraryObject:
            return _object_called(interpreter, function, node, _placed(arguments, scope))
        if isinstance(function, LibraryObject) and function.family:
            return _object_called(interpreter, function, node, _placed(arguments, scope))
        return _method(interpreter, receiver, node.func.attr, node, scope, arguments)
    if isinstance(node.func, ast.Name) and scope.find(node.func.id) is None:
        if node.func.id == "dict" and all(argument.name for argument in arguments):
            given = {argument.name: argument.value for argument in arguments}
            return DictValue(given, closed="**" not in given, more="**" in given)
        return _of_python(interpreter, node.func.id, node, scope, [argument.value for argument in arguments])
    return Value()


def _made_in(made: ScriptObject, function: ScriptFunction) -> bool:
    line, last = made.node.lineno if made.node is not None else 0, getattr(function.node, "end_lineno", 0) or 0
    return made.source is function.scope.source and function.node.lineno <= line <= last


def _arguments(interpreter: Interpreter, node: ast.Call, scope: Scope) -> list[CallArgument]:
    found = []
    for part in node.args:
        if isinstance(part, ast.Starred):
            value = interpreter.value(part.value, scope)
            if isinstance(value, ListValue) and value.closed:
                items = enumerate(value.items)
                found += [CallArgument(None, part.value, item, f"[{index}]") for index, item in items]
            else:
                found.append(CallArgument("*", part, value))
        else:
            found.append(CallArgument(None, part, interpreter.value(part, scope)))
    for keyword in node.keywords:
        value = interpreter.value(keyword.value, scope)
        if keyword.arg is None and isinstance(value, DictValue):
            pairs = value.pairs.items()
            found += [CallArgument(str(key), keyword.value, item, f"[{key!r}]") for key, item in pairs]
        else:
            found.append(CallArgument(keyword.arg or "**", keyword.value, value))
    for argument in found:
        interpreter.note_named(argument.value, argument.node, scope)
        if isinstance(argument.value, ScriptFunction):  # passed on, so that other code calls it
            interpreter.handed_on(argument.value)
        changes = (*names.TABLES["list_changes"], "__setitem__")
        if isinstance(argument.node, ast.Attribute) and argument.node.attr in changes:
            forget_inside(interpreter.value(argument.node.value, scope))
    return found


def _placed(arguments: list[CallArgument], scope: Scope) -> list[CallArgument]:
    """The arguments of the script's own function: literals keep their place, `**vars(args)` has each option's name."""
    found = []
    for argument in arguments:
        value = argument.value
        options = value if argument.name == "**" and isinstance(value, ParsedArguments) else None
        pairs = options.parser.defaults | options.assigned if options is not None else {}
        found += [CallArgument(key, argument.node, item, f"[{key!r}]") for key, item in pairs.items()]
        written = isinstance(argument.node, (ast.Constant, ast.UnaryOp)) and not argument.at
        if written and isinstance(value, Constant) and not value.origins:
            text = f"{argument.name}=" * bool(argument.name) + scope.source.text(argument.node)
            value = Constant(value.value, origins=(Origin(scope.source.shown, argument.node.lineno, text),))
        found.append(replace(argument, value=value))
    return found


def _of_library(
    interpreter: Interpreter, name: str, node: ast.Call, scope: Scope, arguments: list[CallArgument]
) -> Value:
    values = [argument.value for argument in arguments]
    if name in PARSERS_OF_ARGUMENTS:
        return parents_of(arguments)
    if name in ("argparse.Namespace", "types.SimpleNamespace") and all(one.name not in UNNAMED for one in arguments):
        return ParsedArguments(ArgumentParser({one.name: one.value for one in arguments if one.name}))
    if (of_options := of_launcher(interpreter, name, arguments, node, scope)) is not None:
        return of_options
    if name.endswith(FROM_ARGUMENTS):
        name, arguments = name.rpartition(".")[0], of_namespace(arguments, None)
    if (name in _SAME or name.endswith(ADDS_ARGUMENTS)) and values:
        return copied(values[0], 3 * (name == "copy.copy")) if name.startswith("copy.") else values[0]
    if name == "os.path.join":
        return joined(values)
    if name == "importlib.reload" and values and isinstance(values[0], ScriptModule):
        forget(values[0].scope.names, [one for one in values[0].scope.names if not one.startswith("__")])
    if name == "importlib.import_module" and isinstance(module := known(values[0] if values else None), str):
        return interpreter.own_file(module, node, scope) or LibraryName(module)
    if name.endswith(".shuffle") and values and isinstance(values[0], ListValue) and interpreter.certainty != OPTION:
        values[0].forget()
    if name in ("sys.path.insert", "sys.path.append") and arguments and interpreter.certainty != OPTION:
        _search_in(interpreter, arguments[-1].node, scope.source, first=name.endswith("insert"))
    if name == "ast.literal_eval" and values:
        return _literal(values[0])
    if name.startswith("math."):
        return of_math(name.removeprefix("math."), values)
    if name in FIELDS:
        return default_of_field(interpreter, node, arguments, scope)
    if not names.is_library(name):
        for one in values if interpreter.lacks(name) else ():  # a launcher's options, which it may set
            if isinstance(one, ParsedArguments):
                forget(one.assigned, filter(names.OF_LAUNCHERS.fullmatch, {**one.parser.defaults, **one.assigned}))
        kept = values[0] if values and name.endswith(PARSERS) else None
        if name.endswith("TrainingArguments"):  # whose attributes are its arguments
            kept = DictValue({argument.name: argument.value for argument in arguments if argument.name})
        chosen = inside(values[0]) if values and name.endswith((".choice", ".choices", ".sample")) else ()
        chosen = tuple(values) if name.startswith("itertools.") else chosen  # it gives what these have
        return _loader_inside(values) or LibraryObject("", name=name, of=kept, among=chosen)
    seen = interpreter.note(name, node, scope, arguments)
    of_command_line(interpreter, name, arguments, node, scope)
    family = names.family_of(name)
    if family == names.LOADER and interpreter.certainty != OPTION:
        _used_as_data(seen.get("dataset", 0))
    made_of = next((v for v in values if isinstance(v, (LibraryObject, ScriptObject)) and _wraps(family, v)), None)
    return LibraryObject(family, seen=seen, name=name, of=made_of)


def _literal(value: Value) -> Value:
    """What a text evaluates to, where it is one of numbers, texts and lists of them: eval("[2, 4]")."""
    text = known(value)
    try:
        return wrapped(ast.literal_eval(text.strip()), origins(value)) if isinstance(text, str) else Value()
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return Value()


def _used_as_data(value: Value | None) -> None:
    """Note that a class of the script's own, and those that it has its samples from, is one of data sets, since a
    loader gets an object of it."""
    for of in value.of.lineage() if isinstance(value, ScriptObject) else ():
        if isinstance(of, ScriptClass) and {"__getitem__", "__iter__"} & of.scope.names.keys():
            of.used_as = names.DATASET


MOST_FOLDERS = 20  # that a script adds to where it is imported from


def _search_in(interpreter: Interpreter, node: ast.expr, source: ScriptFile, first: bool) -> None:
    """Look for imports in a folder that a script adds to sys.path, where reading can tell which it is."""
    named = syntax.path_of(node, source.tree, source.path, MOST_FOLDERS)
    folder = Path(os.path.normpath(interpreter.folder.absolute() / named)) if named else None
    if folder is not None and folder.is_dir() and len(interpreter.search) < MOST_FOLDERS:
        interpreter.search.insert(0 if first else len(interpreter.search), folder)


def _object_called(interpreter: Interpreter, value: Value, node: ast.Call, arguments: list[CallArgument]) -> Value:
    """The result of calling an object; a module returns a tensor."""
    if isinstance(value, ScriptObject):
        steps = value.of.family() == names.MODULE and _steps(value.of)
        call = value.of.find("forward" if steps else "__call__")
        if isinstance(call, ScriptFunction):
            bound = ScriptFunction(call.node, call.scope, value, call.owner)
            if (steps or not value.of.family()) and id(node.func) in interpreter.values:
                interpreter.values[id(node.func)] = (interpreter.values[id(node.func)][0], bound)
            return interpreter.call(bound, arguments)
        return LibraryObject(names.TENSOR) if value.of.family() == names.MODULE else Value()
    gives = isinstance(value, LibraryObject) and value.family in (names.MODULE, names.TENSOR)
    return LibraryObject(names.TENSOR) if gives else Value()


def _steps(of: ScriptClass) -> bool:
    """Whether a model makes a training step where it is called: in `forward`, or in a method that this calls."""
    waiting, done = ["forward"], set[str]()
    while waiting:
        done.add(name := waiting.pop())
        method = of.find(name)
        parts = ast.walk(method.node) if isinstance(method, ScriptFunction) else ()
        called = [part.func for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)]
        if any(one.attr in ("backward", "step") for one in called):
            return True
        own = {one.attr for one in called if getattr(one.value, "id", "") == "self"}
        waiting += own - done - {*waiting}
    return False


def _method(
    interpreter: Interpreter, value: Value, method: str, node: ast.Call, scope: Scope, arguments: list[CallArgument]
) -> Value:
    values = [argument.value for argument in arguments]
    keep = interpreter.certainty != OPTION
    for one in value.among if keep and method in (*names.TABLES["list_changes"], *CHANGING_TABLES, "sort") else ():
        forget_inside(one)
    if method in CHANGING_TABLES and keep and is_table(value, method):
        given = updated_by(arguments) if method == "update" and isinstance(value, ScriptObject) else None
        for key, one in (given if given is not None else {None: Value()}).items():
            set_attribute(interpreter, value, key, one, scope)
    if isinstance(value, ArgumentParser):
        return of_parser(interpreter, value, method, arguments, node, scope.source)
    if isinstance(value, ListValue):
        if keep and interpreter.certainty == PERHAPS and _may_change(value, method, values):
            return Value()
        found = _of_items(value, method, values, keep)
        value.closed = value.closed and (interpreter.repeats <= value.loops or method in ("index", "count", "copy"))
        return found
    if isinstance(value, DictValue):
        return _of_pairs(value, method, arguments, keep, interpreter.certainty == DEFAULT)
    if isinstance(value, Constant):
        return of_text(value, method, values)
    if isinstance(value, ScriptClass) and method == "from_argparse_args":  # of a data module
        return interpreter.make(value, of_namespace(arguments, value), node, scope)
    if isinstance(value, ScriptClass) and f".{method}" == ADDS_ARGUMENTS and values:
        return values[0]
    if value is interpreter.flags and method == "set_default" and len(values) == 2:
        set_attribute(interpreter, value, known(values[0]), values[1], scope)
    if isinstance(value, (ParsedArguments, ScriptModule, ScriptClass, ScriptFunction)):
        return _loader_inside(values) or Value()
    if method in PARSES:
        return parsed_settings(interpreter, value, node, arguments, scope)
    if method == "save_hyperparameters" and isinstance(value, ScriptObject):
        value.attributes["hparams"] = hyperparameters(value, arguments, scope)
    if method == "fit" and not isinstance(value, ScriptObject):
        interpreter.drive(values)
    family, name = _family(value)
    if not family and not (names.is_library(name) and names.is_class(name)):
        text = hasattr(str, method) and any(isinstance(known(given), str) for given in values)
        likely = names.TABLES["either"].get(method)
        surely = _by_use(interpreter, node, method, scope) or (_by_habit(node, method) if likely else None)
        guessed = None if text else surely or likely or _by_habit(node, method) or names.telling_method(method)
        guessed = None if guessed == names.MODULE and names.no_module(name) else guessed
        other = names.telling_method(method) if guessed and likely and not surely else None
        if guessed is None and not names.is_library(name):
            return _loader_inside(values) or Value()
        family, name = (guessed, "") if guessed else ("", name)
    else:
        other = None
    qualified, row = names.method_row(family, name, method)
    if row is None and name in HOLDERS and method not in names.MODULE_METHODS:
        return LibraryObject(names.MODULE if method in ("values", "pop") else names.TENSOR)  # a module in it is called
    own = isinstance(value, ScriptObject) and not qualified.endswith(".Trainer.fit")
    own = own or family == names.LOADER  # it has none; a progress bar around it does
    if row is None and own and method not in names.MODULE_METHODS:
        return _loader_inside(values) or Value()  # a method that was not read
    receiver = (
        value if isinstance(value, (LibraryObject, ScriptObject)) and _family(value)[0] else LibraryObject(family)
    )
    seen = interpreter.note(qualified, node, scope, arguments, receiver)
    seen.perhaps = names.method_row(other, "", method)[0] if other and other != family else ""
    if family == names.TENSOR:
        return Value() if method in names.PLAIN_RESULTS else LibraryObject(names.TENSOR, seen=seen)
    if family == names.MODULE and method in _ITSELF:
        return value if type(value) is not Value else receiver
    return LibraryObject("", seen=seen)


def _of_python(interpreter: Interpreter, name: str, node: ast.Call, scope: Scope, values: list[Value]) -> Value:
    if name == "getattr" and len(values) >= 2 and isinstance(known(values[1]), str):
        value = attribute(interpreter, values[0], known(values[1]))
        lacks = type(value) is Value and len(values) > 2 and _lacks(values[0], known(values[1]))
        return values[2] if lacks else value
    if name == "hasattr" and len(values) == 2 and isinstance(values[0], ParsedArguments):
        return Constant(known(values[1]) in {**values[0].parser.defaults, **values[0].assigned})
    if name in ("setattr", "delattr") and len(values) >= 2:
        key = known(values[1])
        set_attribute(interpreter, values[0], key if isinstance(key, str) else None, (*values, Value())[2], scope)
    if name == "eval" and values:
        return _literal(values[0])
    if name == "exec" and values and interpreter.certainty != OPTION:
        _executed(interpreter, node, values, scope)
    if len(values) == 1 and (name == "vars" or (name == "type" and isinstance(values[0], ScriptObject))):
        return attribute(interpreter, values[0], "__dict__" if name == "vars" else "__class__")
    if name in ("super", "property"):
        return _super(scope) if name == "super" else LibraryObject("", name=name)
    if name in ("globals", "locals", "vars") and not values and (name == "globals" or scope.parent is None):
        return ScriptModule(scope.top())
    if name == "locals" and not values:
        return DictValue({key: one for key, one in scope.names.items() if not key.startswith("__")}, more=True)
    if name in ("iter", "enumerate", "zip", "next", "list", "tuple") and values:
        found = _loader_inside(values)
        if found is not None:
            return LibraryObject(names.TENSOR) if name == "next" else found
    given = builtin(name, values)
    return given if type(given) is not Value else _loader_inside(values) or given


def _executed(interpreter: Interpreter, node: ast.Call, values: list[Value], scope: Scope) -> None:
    """Forget what `exec` may set: all, or what a file of the folder binds where it runs that."""
    of = values[1] if len(values) > 1 else ScriptModule(scope.top())
    if len(values) == 1 and scope.parent is not None:
        return  # in a function only a copy of its names is changed
    opened = [one for one in ast.walk(node.args[0]) if isinstance(one, ast.Call) and one.args]
    opened = [one for one in opened if getattr(one.func, "id", "") in ("open", "Path")]
    path, bound = known(interpreter.value(opened[0].args[0], scope)) if opened else None, None
    if isinstance(path, str) and not Path(path).is_absolute() and ".." not in Path(path).parts:
        bound = _bound_by_file(interpreter.folder / path)
    names_ = of.pairs if isinstance(of, DictValue) else of.scope.names if isinstance(of, ScriptModule) else {}
    forget(names_, [one for one in names_ if not str(one).startswith("__")] if bound is None else bound)
    if isinstance(of, DictValue):
        of.more = True


def _bound_by_file(path: Path) -> list[str] | None:
    try:
        return syntax.bound_by(read_script_file(path).tree)
    except BadInput:
        return None


def _lacks(owner: Value, name: str) -> bool:
    """Whether an object is known to have no such attribute; code that was not read may define any."""
    if isinstance(owner, ParsedArguments):
        return name not in {**owner.parser.defaults, **owner.assigned}
    if isinstance(owner, ScriptObject):
        return name not in owner.attributes and all(isinstance(one, ScriptClass) for one in owner.of.lineage())
    return isinstance(owner, ScriptModule) or (isinstance(owner, Constant) and owner.value is None)


def _super(scope: Scope) -> Value:
    """The base class for `super()`: one of the script's own; a library's needs nothing."""
    own = scope.find("self")
    around = scope.find("__class__")
    if not isinstance(own, ScriptObject) or not isinstance(around, ScriptClass):
        return Value()
    bases = [base for base in around.bases if isinstance(base, ScriptClass)]
    return ScriptObject(bases[0], own.attributes, own.arguments) if bases else Value()


def _family(value: Value) -> tuple[str, str]:
    """Family and qualified class name of an object."""
    if isinstance(value, ScriptObject):
        return value.of.family(), value.of.library_base() or ""
    if isinstance(value, LibraryObject):
        return value.family, value.name  # a method of a method's result is not the library's own function
    return "", ""


def _wraps(family: str, value: Value) -> bool:
    """Whether the new object wraps this argument: a module another module, a loader its data set."""
    inner = _family(value)[0]
    return (family in (names.MODULE, "") and inner == names.MODULE) or (
        family in (names.LOADER, names.DATASET) and inner == names.DATASET
    )


def _loader_inside(values: list[Value]) -> Value | None:
    """A loader among the arguments of a function that is not read: a wrapper such as tqdm is iterated like it."""
    return next((v for v in values if isinstance(v, LibraryObject) and v.family == names.LOADER), None)


def _by_use(interpreter: Interpreter, node: ast.Call, method: str, scope: Scope) -> str | None:
    """The family of an unknown object, where the file uses it as a module elsewhere, and modules have the method."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if not isinstance(inner, (ast.Name, ast.Attribute)) or getattr(inner, "id", "") == "self":
        return None
    used = ast.unparse(inner) in interpreter.modules_of(scope.source)
    return names.MODULE if used and names.method_row(names.MODULE, "", method)[1] is not None else None


def _by_habit(node: ast.Call, method: str) -> str | None:
    """The family of an unknown object, guessed from its variable's name, where that family has the method."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    name = inner.id if isinstance(inner, ast.Name) else inner.attr if isinstance(inner, ast.Attribute) else ""
    family = names.habit(name)
    return family if family and names.method_row(family, "", method)[1] is not None else None


def _may_change(items: ListValue, method: str, values: list[Value]) -> bool:
    """Whether a list of plain values was changed by a method that may not run: what it has is unknown then."""
    if method in ("index", "count", "copy") or not all(map(is_known, (*items.items, *values))):
        return False
    if method in ("append", "extend"):
        items.items.append(Value())  # the first ones stay
        items.closed = False
    else:
        items.forget()
    return True


def _of_items(items: ListValue, method: str, values: list[Value], keep: bool) -> Value:
    if not keep:
        return Value()
    if method == "append" and values:
        items.extend([values[0]])
    elif method == "insert" and len(values) == 2 and len(items.items) < LARGEST:
        at = known(values[0])
        items.items.insert(at if isinstance(at, int) else len(items.items), values[1])
    elif method == "extend" and values:
        if isinstance(values[0], ListValue):
            items.extend(list(values[0].items))
        items.closed = items.closed and isinstance(values[0], ListValue) and values[0].closed
    elif method == "pop":
        at = known(values[0]) if values else -1
        if isinstance(at, int) and -len(items.items) <= at < len(items.items):
            return items.items.pop(at)
        items.forget()
    elif method == "copy":
        return ListValue(list(items.items), closed=items.closed, origins=items.origins)
    elif method == "reverse":
        items.items.reverse()
    elif method not in ("index", "count"):
        items.forget()
    return Value()


@executes(ast.Expr)
def _for_its_effect(interpreter: Interpreter, node: ast.Expr, scope: Scope) -> None:
    """A call that is a statement, of a function that was not found, may change the settings that it is given."""
    interpreter.value(call := node.value, scope)
    if not isinstance(call, ast.Call) or interpreter.certainty == OPTION:
        return
    of = [interpreter.values.get(id(one), (0, None))[1] for one in (call.func, getattr(call.func, "value", None))]
    name = next((one.name for one in of if isinstance(one, (LibraryName, LibraryObject))), "")
    if interpreter.lacks(name) and name.partition(".")[0] not in names.TABLES["only_read"]:
        for given in (*call.args, *(one.value for one in call.keywords if one.arg)):
            forget_inside(interpreter.value(given, scope)) if isinstance(syntax.root(given), ast.Name) else None


CHANGING_TABLES = ("update", "pop", "setdefault", "clear", "__setitem__", "__setattr__")


def entered(interpreter: Interpreter, of: Value) -> Value:
    """What `with … as` gives: of the script's own object, what its `__enter__` returns."""
    start = of.of.find("__enter__") if isinstance(of, ScriptObject) else None
    if not isinstance(start, ScriptFunction):
        return of
    return interpreter.call(ScriptFunction(start.node, start.scope, of, start.owner), [])


def set_attribute(interpreter: Interpreter, holder: Value, name: str | None, value: Value, scope: Scope) -> None:
    """Give an object, a class or a file of the script an attribute; name: None where it may be any of them."""
    for one in holder.among if interpreter.certainty != OPTION else ():
        inner = getattr(one, "attributes", {})
        forget(inner, [name]) if name in inner and name != "__dict__" else forget_inside(one)
    found: dict[str, Value] | None = getattr(holder, "assigned", getattr(holder, "attributes", None))
    if isinstance(holder, (ScriptModule, ScriptClass)):
        found = holder.scope.names
    if isinstance(holder, ScriptFunction) and name in (*CHANGED_DEFAULTS, "__code__", None):
        forget_defaults(interpreter, holder, name)
    if found is None or interpreter.certainty == OPTION:
        return
    if name in (None, "__dict__", "__class__"):
        declared = holder.parser.defaults if isinstance(holder, ParsedArguments) else {}
        forget(found, [one for one in (*declared, *found) if not one.startswith("__")])
        return
    setter = holder.of.find(name) if isinstance(holder, ScriptObject) else None
    marks = getattr(setter.node, "decorator_list", []) if isinstance(setter, ScriptFunction) else []
    if isinstance(setter, ScriptFunction) and any(getattr(one, "attr", "") == "setter" for one in marks):
        bound = ScriptFunction(setter.node, setter.scope, holder, setter.owner)
        interpreter.call(bound, [CallArgument(None, ast.Constant(None), value)])
        return
    before = attribute(interpreter, holder, name)
    launched = isinstance(holder, ParsedArguments) and names.OF_LAUNCHERS.fullmatch(name) and not is_known(value)
    if launched and interpreter.certainty == PERHAPS and is_known(before):
        return  # a plain start counts
    another = isinstance(holder, ScriptClass) and is_decorated(holder.node, "dataclass")
    value = Value() if another or (is_known(value) and sets_another(holder, name)) else value
    found[name] = scope.sure(before, perhaps(before, value) if interpreter.certainty == PERHAPS else value)
    for one in interpreter.made if isinstance(holder, ScriptClass) else ():  # those that have it of their class
        one.attributes |= {name: found[name]} if one.attributes.get(name) is before else {}


def _of_pairs(pairs: DictValue, method: str, arguments: list[CallArgument], keep: bool, sure: bool) -> Value:
    """The result of a method of a dictionary; keep: whether the call may run, and change it; sure: whether it does."""
    values = [argument.value for argument in arguments if argument.name is None]
    key: Any = known(values[0]) if values else None
    if method in ("get", "pop", "setdefault") and isinstance(key, (str, int)):
        found = pairs.pairs.get(key) or (values[1] if len(values) > 1 and not pairs.more else Value())
        if method == "pop" and keep:
            pairs.pairs.pop(key, None)
        elif method == "setdefault" and keep:
            pairs.pairs.setdefault(key, found)
        return found
    if method == "values":
        complete = pairs.closed or not all(map(is_known, pairs.pairs.values()))  # of objects, those that were seen
        return ListValue(list(pairs.pairs.values()), complete, origins=origins(*pairs.pairs.values()))
    if method in ("keys", "items"):
        return keys_of(pairs, method == "items")
    pairs.closed = pairs.closed and method in ("get", "copy")
    if method == "update" and keep:
        whole = [one.value for one in arguments if one.name in UNNAMED]
        if not all(isinstance(one, DictValue) and not one.more for one in whole):
            forget(pairs.pairs, list(pairs.pairs))
            pairs.more = True
        pairs.put({k: one for given in whole if isinstance(given, DictValue) for k, one in given.pairs.items()}, sure)
        pairs.put({one.name: one.value for one in arguments if one.name not in UNNAMED}, sure)
    one = Value(among=inside(pairs) if method in ("get", "pop", "setdefault") else ())
    return one if method != "copy" else DictValue(dict(pairs.pairs), origins=pairs.origins, more=pairs.more)
