"""Classes that only hold values: records of tensors as tuples and dictionaries, configurations as plain dataclasses.

A compiled MindSpore function passes no gradient through an object of a user's class: with a named tuple or a dataclass
between the net and the loss, `mindspore.jit` of `value_and_grad` gives zeros for every weight, with nothing but a
compiler warning (`python benchmarks/graph_outputs_mindspore.py`). Tuples and dictionaries pass it.

A configuration is a dataclass of plain settings that a library makes with more than a decorator. A model of
transformers takes all its settings from one object, whose class can also save, merge and validate them. The new file
gets a dataclass of what the model reads of it, with the library's defaults.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...library_names import SIMPLIFIED, TABLES
from ...source_files import blocks_of, comment, literal, short
from ..observe.observations import (
    NONE,
    CallableKind,
    Configuration,
    DictKind,
    Kind,
    ObjectKind,
    PythonModule,
    Record,
    SequenceKind,
    always,
    callees_of,
    constants_of,
    kinds_of,
    replacing,
)
from .argument_kinds import kinds_read
from .context import Context, Problem, Program, Unwritable, fill_template, handles, receivers
from .library_lookups import class_by_name

PLAIN_CALLS = {"abs", "bool", "dict", "float", "int", "isinstance", "len", "list", "max", "min", "range", "round"}
PLAIN_CALLS |= {"sorted", "str", "sum", "tuple", "zip", "enumerate"}  # functions that may compute a field from others
LEFT_OUT = "left_out"
NEW_DICTIONARIES = ("dict", "OrderedDict", "defaultdict")
NEW_ARRAYS = {
    f"{package}.{name}" for package in ("np", "numpy") for name in ("zeros", "ones", "empty", "full", "array", "eye")
}
Make = Callable[[Any], ast.expr]  # the expression for a value of the worker's report
NAMED = {bool: "bool", int: "int", float: "float", str: "str", list: "list[Any]", tuple: "tuple[Any, ...]"}


def record_of_call(records: Mapping[str, Record], names: Sequence[str]) -> Record | None:
    """The record that a call makes, by the names of its callees; None for anything else, or for several."""
    found = [records.get(name) for name in names]
    return found[0] if found and found[0] is not None and all(one == found[0] for one in found) else None


def record_of_value(records: Mapping[str, Record], kinds: Sequence[Kind]) -> Record | None:
    """The record that an expression was, by its kinds; a named tuple only by its short name."""
    short = {name.rpartition(".")[2]: name for name in records}
    names = [
        kind.cls if isinstance(kind, ObjectKind) else short.get(kind.type, "") if isinstance(kind, SequenceKind) else ""
        for kind in kinds
    ]
    return record_of_call(records, names)


def as_plain_value(record: Record, call: ast.Call) -> ast.expr | None:
    """The tuple or dictionary for a call of the class; None where it is not known which field each argument is."""
    fields = record.fields
    if any(isinstance(argument, ast.Starred) for argument in call.args) or len(call.args) > len(fields):
        return None
    given = dict(zip(fields, call.args, strict=False))
    for word in call.keywords:
        if word.arg not in fields or word.arg in given:
            return None
        given[word.arg] = word.value
    given = {**{name: ast.Constant(value) for name, value in record.defaults}, **given}
    if set(given) != set(fields):
        return None
    if record.named:
        kept = [name for name in present(record) if name not in vars(call).get(LEFT_OUT, ())]
        return ast.Dict([ast.Constant(name) for name in kept], [given[name] for name in kept])
    return ast.Tuple([given[name] for name in fields], ast.Load())


def leave_out(call: ast.Call, field: str) -> None:
    """Note that the result of a call has no such field."""
    vars(call)[LEFT_OUT] = (*vars(call).get(LEFT_OUT, ()), field)


def present(record: Record) -> list[str]:
    """The fields that are not always None; a class that is a dictionary has no others."""
    return [name for name in record.fields if record.present is None or name in record.present]


@handles(syntax=[ast.Call])
def record_call(node: ast.Call, context: Context) -> ast.expr | None:
    """A call of a record's class, as a tuple or a dictionary."""
    callees = callees_of(node)
    record = record_of_call(context.program.facts.records, callees)
    if record is None:
        return None
    plain = as_plain_value(record, node)
    if plain is None:
        raise Unwritable(f"it is not known which field of {callees[0]} each argument is: {ast.unparse(node)}")
    given = dict(zip(record.fields, node.args, strict=False)) | {str(word.arg): word.value for word in node.keywords}
    absent = {*record.fields} - {*present(record), *vars(node).get(LEFT_OUT, ())} if record.named else set()
    for name in [name for name in given if name in absent]:
        value = context.visit(copy.deepcopy(given[name]))
        if literal(value) != (True, None):  # given another time, it would be lost
            isnt = ast.Compare(value, [ast.IsNot()], [ast.Constant(None)])
            context.raise_where(isnt, given[name], f"{name} of {short(callees[0])} was None", node)
    return context.generic_visit(plain)


@handles(syntax=[ast.Subscript])
def record_item(node: ast.Subscript, context: Context) -> ast.expr | None:
    """`output[0]` as `output["name"]`, for a class that is a dictionary and can be indexed by number too."""
    record = record_of_value(context.program.facts.records, kinds_of(node.value))
    place = node.slice.value if isinstance(node.slice, ast.Constant) else None
    names = [] if record is None else present(record)
    if record is None or record.present is None or not isinstance(place, int) or not -len(names) <= place < len(names):
        return None
    return context.generic_visit(ast.Subscript(node.value, ast.Constant(names[place]), node.ctx))


@handles(syntax=[ast.Attribute])
def record_field(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`output.name` as `output["name"]` or `output[0]`; None for anything that is not a field."""
    record = record_of_value(context.program.facts.records, kinds_of(node.value))
    if record is None or node.attr not in record.fields:
        return None
    if node.attr not in present(record) and isinstance(node.ctx, ast.Load):
        return ast.Constant(None)
    key = node.attr if record.named else record.fields.index(node.attr)
    return context.generic_visit(ast.Subscript(node.value, ast.Constant(key), node.ctx))


@handles(syntax=[ast.Attribute])
def entry(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`config.depth` as `config["depth"]`, for a dictionary whose entries are also attributes, unlike a plain one's; in
    a text, into which nobody looks as it runs, by what the variable is elsewhere."""
    if not always(_also_in_texts(node.value, context), DictKind) or node.attr in dir(dict):
        return None
    return context.generic_visit(ast.Subscript(node.value, ast.Constant(node.attr), node.ctx))


def _also_in_texts(node: ast.expr, context: Context) -> Sequence[Kind]:
    if (kinds := kinds_of(node)) or not isinstance(node, ast.Attribute):
        return kinds or (kinds_read(node, context.function) if isinstance(node, ast.Name) and context.function else [])
    dictionaries = [one for one in _also_in_texts(node.value, context) if isinstance(one, DictKind)]
    return [kind for one in dictionaries for key, kind in one.entries if key == node.attr]


# Distributions


@handles(syntax=[ast.Attribute])
def part_of_distribution(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`dist.mean` as `dist[0]`, for a distribution, which is a pair; None for a method, whose call has a row."""
    of = distribution_of(kinds_of(node.value))
    template = TABLES["distributions"][of].get(node.attr) if of is not None else None
    if of is None or (template is None and context.program.row(f"{of}.{node.attr}") is not None):
        return None
    if template is None or not isinstance(node.ctx, ast.Load):
        raise Unwritable(f"{of}.{node.attr} is not written: a distribution is a pair of tensors here")
    return fill_template(template, {"self": context.visit(node.value)}, context.name)


@handles("torch.distributions.kl_divergence")
def divergence(node: ast.Call, context: Context) -> ast.expr:
    """The divergence of two distributions of one class, by the function for this class."""
    sides = {word.arg: word.value for word in node.keywords} | dict(zip("pq", node.args, strict=False))
    of = [distribution_of(kinds_of(sides[side])) for side in "pq" if side in sides]
    if len(sides) != 2 or len(of) != 2 or of[0] is None or of[0] != of[1]:
        raise Unwritable(f"{ast.unparse(node)} is not of two distributions of one class that has a divergence")
    return ast.Call(context.name(TABLES["divergences"][of[0]]), [context.visit(sides[side]) for side in "pq"], [])


def distribution_of(kinds: Sequence[Kind]) -> str | None:
    """The class of a distribution that is written as a pair; None for anything else. Raises Unwritable for what may be
    of several classes, whose pairs hold other things."""
    classes = {kind.cls if isinstance(kind, ObjectKind) else str(kind) for kind in kinds if kind != NONE}
    known = classes.intersection(TABLES["distributions"])
    if known and len(classes) > 1:
        raise Unwritable(f"a distribution is a pair of tensors here, and this is {' or '.join(sorted(classes))}")
    return known.pop() if known else None


@handles("torch.Size")
def size(node: ast.Call, context: Context) -> ast.expr:
    """`torch.Size([2, 3])` as a tuple."""
    (given,) = node.args or [ast.Tuple([], ast.Load())]
    if isinstance(given, ast.List):
        given = ast.Tuple(given.elts, ast.Load())
    found = context.visit(given)
    return found if isinstance(given, ast.Tuple) else ast.Call(ast.Name("tuple", ast.Load()), [found], [])


@handles("builtins.getattr", "builtins.hasattr")
def entry_by_name(node: ast.Call, context: Context) -> ast.expr | None:
    """`getattr(config, "depth", 2)` as `config.get("depth", 2)`, and `hasattr` as `in`, for such a dictionary; for
    another configuration the call stays, and the attribute is noted as read; of torch's modules and of files by name.
    """
    if len(callees_of(node)) == 1 and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
        itself = callees_of(node) == ["builtins.getattr"] and len(node.args) == 2  # neither hasattr nor a default
        context.read(kinds_of(node.args[0]), str(node.args[1].value), constants_of(node) if itself else None)
    if len(node.args) < 2 or not always(kinds_of(node.args[0]), DictKind):
        return class_by_name(node, context) or _class_of_file(node, context)
    owner, name, *default = map(context.visit, node.args)
    if callees_of(node) == ["builtins.hasattr"]:
        return ast.Compare(name, [ast.In()], [owner])
    if not default:
        return ast.Subscript(owner, name, ast.Load())
    return ast.Call(ast.Attribute(owner, "get", ast.Load()), [name, *default], [])


@handles(syntax=[ast.Subscript])
def entry_of_file(node: ast.Subscript, context: Context) -> ast.expr | None:
    """`{"Encoder": Encoder}[kind]` for `globals()[kind]`; None for any other subscript."""
    if not isinstance(node.ctx, ast.Load) or ast.unparse(node.value) != "globals()":
        return None
    found = _of_file(node, node.slice, context)
    if found is None:
        raise Unwritable(f"{ast.unparse(node)}: write a dictionary of what it may be")
    return found


def _class_of_file(node: ast.Call, context: Context) -> ast.expr | None:
    """`{"Encoder": Encoder}[kind]` for `getattr(models, kind)`, of what the model's files define."""
    if len(node.args) != 2 or not always(kinds_of(node.args[0]), PythonModule):
        return None
    return _of_file(node, node.args[1], context)


def _of_file(node: ast.expr, key: ast.expr, context: Context) -> ast.expr | None:
    """The entry of a dictionary of what a lookup by name gave; None where the model's files do not define all of it."""
    found = [kind.name for kind in kinds_of(node) if isinstance(kind, CallableKind)]
    named = {short(name): name for name in found if name in context.program.translated}
    if not named or len(found) < len(kinds_of(node)) or not {*(constants_of(key) or [""])} <= {*named}:
        return None
    for name in named.values():
        context.program.define(name)
    values: list[ast.expr] = [ast.Name(context.program.called(name), ast.Load()) for name in named.values()]
    return ast.Subscript(ast.Dict([*map(ast.Constant, named)], values), context.visit(key), ast.Load())


# Configurations


def is_named_tuple(name: str, program: Program) -> bool:
    """Whether it is a class of the model's files that derives from typing.NamedTuple."""
    _, cls = program.class_of(name) or ("", None)
    return cls is not None and any(ast.unparse(base).rpartition(".")[2] == "NamedTuple" for base in cls.bases)


def is_configuration(name: str, node: ast.ClassDef, definitions: Program) -> bool:
    """Whether a class is a configuration, and more than a dataclass by a decorator."""
    own = [ast.unparse(item.func if isinstance(item, ast.Call) else item) for item in node.decorator_list]
    return name in definitions.facts.configurations and not any(item.rpartition(".")[2] == "dataclass" for item in own)


def is_settings(name: str, definitions: Program) -> bool:
    """Whether a class is a dataclass by a decorator whose objects hold a model's settings; it is written as it is."""
    found = definitions.class_of(name) if name in definitions.facts.configurations else None
    return found is not None and not is_configuration(name, found[1], definitions)


def fill_configurations(names: Sequence[str], definitions: Program, make: Make, more: Sequence[ast.AST]) -> None:
    """Write the fields of configurations that the model reads, and remove all others from their calls."""
    trees = [*definitions.definitions.values(), *more]
    read = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    read |= {str(n.value) for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    for name in names:
        calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call) and _makes(node, name)]
        known, own = definitions.facts.configurations[name], _OwnCode(name, definitions)
        wanted = {key: values for key, values in definitions.reads.get(name, {}).items() if key in read}
        wanted = own.with_what_is_computed_from(wanted)
        aliases = {key: to for key, to in known.aliases if key in wanted}
        wanted.update({to: None for to in aliases.values() if to not in wanted})
        given = {str(word.arg) for call in calls for word in call.keywords}
        properties = [own.properties[key] for key in wanted if key in own.properties]
        others = {*aliases, *own.properties}
        fields = [key for key, _ in known.values if key in wanted and key not in others]
        fields += [key for key in wanted if key not in {*fields, *others}]
        computed = own.statements({*fields})
        plain = given | {key for statement in computed for key in _of_self(statement, ast.Store)}
        node = definitions.definitions[name]
        assert isinstance(node, ast.ClassDef)
        body = [line for key in fields for line in _field(key, known, wanted[key], key in plain, definitions, make)]
        after = [*computed, *own.guards({*fields} - plain, make)]
        node.body = [*node.body[:1], *body, *_after(after), *properties]
        node.body += [_alias(key, to) for key, to in aliases.items()]
        for call in calls:
            call.keywords = [word for word in call.keywords if word.arg is None or word.arg in fields]


class _OwnCode:
    """What a configuration's class computes from its fields: `__post_init__`, and properties.

    Code that is plain Python on numbers is written; where other code gave a field its value, the new file refuses other
    settings.
    """

    def __init__(self, name: str, definitions: Program) -> None:
        self.definitions = definitions
        self.known = definitions.facts.configurations[name]
        self.values = dict(self.known.values)
        self.lines: list[tuple[str, ast.stmt]] = []  # of `__post_init__`, with their files
        methods: dict[str, tuple[str, ast.FunctionDef]] = {}
        for file, method in _methods(name, definitions):
            if method.name == "__post_init__":
                self.lines += [(file, line) for line in method.body]
            elif any(ast.unparse(item) == "property" for item in method.decorator_list):
                methods.setdefault(method.name, (file, method))
        self.fields = {*self.values, *dict(self.known.defaults), *dict(self.known.aliases), *methods}
        plain = {key: self._taken(*found) for key, found in methods.items() if self._is_plain(*found)}
        self.properties = plain
        self.lines += [found for key, found in methods.items() if key not in plain]

    def _is_plain(self, file: str, node: ast.AST) -> bool:
        """Whether code computes only with the object's fields, numbers, and functions of Python's library."""
        bound = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        of_self = [n for n in ast.walk(node) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "self"]
        names = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id not in {*bound, "property"}]
        alone = [n for n in names if n.id == "self"]
        others = {n.id for n in names} - PLAIN_CALLS - {"self"}
        resolve = self.definitions.names(file).names
        python = all(resolve.get(one, "").partition(".")[0] in sys.stdlib_module_names for one in others)
        called = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
        methods = [one for one in called if isinstance(one, ast.Attribute) and ast.unparse(one.value) not in others]
        odd = any(isinstance(n, (ast.Raise, ast.Try, ast.With, ast.Assert)) for n in ast.walk(node))
        return (
            python
            and not methods
            and not odd
            and len(alone) == len(of_self)
            and all(one.attr in self.fields for one in of_self)
        )

    def _taken(self, file: str, node: Any) -> Any:
        """A copy; the names of Python's library in it are noted for the imports."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id not in {*PLAIN_CALLS, "self", "property"}:
                self.definitions.python(file, inner.id)
        return copy.deepcopy(node)

    def with_what_is_computed_from(self, wanted: dict[str, list[Any] | None]) -> dict[str, list[Any] | None]:
        """The attributes that are read, and those that these are computed from."""
        found, before = dict(wanted), -1
        while before != len(found):
            before = len(found)
            for _, line in self.lines:
                if found.keys() & _sets(line):
                    found |= {key: None for key in _of_self(line, ast.Load) if key in self.fields and key not in found}
            for key in [key for key in found if key in self.properties]:
                found |= {one: None for one in _of_self(self.properties[key], ast.Load) if one not in found}
        return found

    def statements(self, fields: set[str]) -> list[ast.stmt]:
        """The statements of `__post_init__` that assign a field and can be written."""
        lines = [(file, line) for file, line in self.lines if not isinstance(line, ast.FunctionDef)]
        plain = (pair for pair in lines if fields & _sets(pair[1]) and self._is_plain(*pair))
        return [self._taken(*pair) for pair in plain]

    def guards(self, computed: set[str], make: Make) -> Iterator[ast.stmt]:
        """Statements that raise where a field is computed by code that cannot be written, from other values than the
        run's."""
        defaults, absent = dict(self.known.defaults), object()
        for file, line in self.lines:
            sets = sorted(computed & self.values.keys() & _sets(line))
            isnt = [key for key in sets if self.values[key] != defaults.get(key, absent)]
            plain = not isinstance(line, ast.FunctionDef) and self._is_plain(file, line)
            of = [key for key in _of_self(line, ast.Load) if key in self.values and key not in _sets(line)]
            if plain or not isnt or not of:
                continue
            for key in of:
                seen = make(self.values[key])
                place = f"{Path(file).name}:{line.lineno}: when this was written, {key} was {ast.unparse(seen)}"
                text = f"{place}, which {', '.join(isnt)} is computed from"
                raised = ast.parse(f"raise NotImplementedError({text!r})").body
                is_other = ast.Compare(ast.parse(f"self.{key}", mode="eval").body, [ast.NotEq()], [seen])
                yield ast.If(is_other, raised, [])


def _methods(name: str, definitions: Program) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The methods of a configuration's class and of its bases, with their files; not of the library's own base."""
    of_library = name.startswith(SIMPLIFIED) or name in TABLES["configurations"]
    if of_library or (found := definitions.class_of(name)) is None:
        return
    file, node = found
    yield from ((file, method) for method in node.body if isinstance(method, ast.FunctionDef))
    for base in node.bases:
        yield from _methods(definitions.names(file).name(base), definitions)


def _of_self(node: ast.AST, context: type[ast.expr_context]) -> list[str]:
    """The attributes of `self` that are read, or assigned, in code."""
    found = (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "self")
    return list(dict.fromkeys(one.attr for one in found if isinstance(one.ctx, context)))


def _sets(line: ast.stmt) -> set[str]:
    """The attributes that a statement assigns, or the property's own name."""
    return {line.name} if isinstance(line, ast.FunctionDef) else {*_of_self(line, ast.Store)}


def _after(statements: list[ast.stmt]) -> list[ast.stmt]:
    """`__post_init__`, where there is something to do in it."""
    method = ast.parse("def __post_init__(self) -> None:\n    pass").body[0]
    assert isinstance(method, ast.FunctionDef)
    method.body = statements
    return [method] if statements else []


def _makes(node: ast.Call, name: str) -> bool:
    return name in receivers(node)


def _field(
    key: str, known: Configuration, values: list[Any] | None, given: bool, definitions: Program, make: Make
) -> Iterator[ast.stmt]:
    """`hidden_size: int = 768`: the class's default, or the model's value where no call gives the field."""
    if given and key in dict(known.defaults):
        value = dict(known.defaults)[key]
    elif key in dict(known.values):
        value = dict(known.values)[key]
    elif values is not None and len(values) == 1:
        value = values[0]
    else:
        return  # the model asked for it, and it did not exist
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


def empty_dataclass(name: str, definitions: Program) -> ast.ClassDef:
    """The class, without its fields."""
    package = name.replace(SIMPLIFIED, "transformers.").partition(".")[0]
    short = name.rpartition(".")[2]
    says = f"The model's configuration: the part of {package}'s {short} that it reads."
    decorator = definitions.name("dataclasses.dataclass")
    return ast.ClassDef(definitions.called(name), [], [], [ast.Expr(ast.Constant(says))], [decorator])


# Objects that a model keeps, and does not compute with


def leave_out_kept_objects(program: Program) -> None:
    """Put comments in the place of objects of libraries that a user's module keeps, and that nothing that ran reads,
    `self.generation_config = GenerationConfig(…)`, or an optimizer; and list them. A method that did not run and calls
    one raises as it does for all that is not known."""
    own, read = program.own_files, _read_attributes(program)
    for function in program.facts.functions:
        owner, _, method = function.qualified.rpartition(".")
        node = program.node(function) if method == "__init__" and function.file in own else None
        if node is None or "torch.nn.Module" not in program.facts.bases(owner):
            continue
        for block in [block for inner in ast.walk(node) for block in blocks_of(inner)]:
            for place, statement in enumerate(block):
                text = vars(statement).get(LEFT_OUT) or _kept_object(statement, read, program)
                if text:
                    block[place] = replacing(comment(text), statement)
                    vars(block[place])[LEFT_OUT] = text  # the file may be written once more, with other names
                    program.left_out.append(Problem(function.file, statement.lineno, text, function.name))


def _kept_object(statement: ast.stmt, read: set[str], program: Program) -> str:
    """What to say of a statement that only keeps such an object; empty for any other."""
    match statement:
        case ast.Assign([ast.Attribute(ast.Name("self"), name)], ast.Call() as call) if name not in read:
            kinds = kinds_of(call)
        case _:
            return ""
    classes = [kind.cls for kind in kinds if isinstance(kind, ObjectKind)]
    if len(classes) != 1 or len(kinds) != 1 or not _of_library(classes[0], program):
        return ""
    package, _, short = classes[0].replace(SIMPLIFIED, "transformers.").partition(".")
    return f"self.{name} is left out: nothing here computes with it ({short.rpartition('.')[2]} of {package})"


def _of_library(cls: str, program: Program) -> bool:
    """Whether a class is a library's, other than Python's, that is not written by a row."""
    package, row = cls.partition(".")[0], program.row(cls)
    if package in sys.stdlib_module_names or package == "builtins" or (row is not None and row.kind == "function"):
        return False
    return package == "torch" or program.modules.get(cls.rpartition(".")[0]) not in program.own_files


def _read_attributes(program: Program) -> set[str]:
    """The names of attributes that functions which ran read, and those that others of the user's read otherwise than
    to call them, or one of their methods."""
    owners = [f.qualified.rpartition(".")[0] for f in program.facts.functions if f.file in program.own_files]
    bases = {base for owner in owners for base in program.facts.bases(owner)}
    others = {*program.owners} - bases  # classes of packages whose objects are none of the user's classes
    candidates = [f for f in program.facts.functions if f.qualified.rpartition(".")[0] not in others]
    functions = [f for f in candidates if f"{f.module}." != SIMPLIFIED or f.qualified.rpartition(".")[0] in bases]
    nodes = [inner for f in functions for inner in ast.walk(program.node(f) or ast.Pass())]
    ran = {id(node) for node in nodes}
    nodes += [node for file in program.own_files for node in ast.walk(program.tree(file)) if id(node) not in ran]
    called: set[int] = set()
    for call in (node for node in nodes if isinstance(node, ast.Call) and id(node) not in ran):
        called |= {id(call.func), id(getattr(call.func, "value", None))}
    found = {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    loads = (node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load))
    return found | {node.attr for node in loads if id(node) not in called}


def kinds_before(node: ast.expr, function: ast.AST | None) -> list[Kind]:
    """What a function surely gave an attribute last before this line: `self.net` is a list there, and a Sequential
    below; nothing where that is not known."""
    body, line = getattr(function, "body", []), getattr(node, "lineno", 0)
    inside = [] if function is None else [*ast.walk(function)]
    given = [n for n in inside if isinstance(n, ast.Assign) and ast.unparse(node) in map(ast.unparse, n.targets)]
    last = max((one for one in given if one.lineno < line), key=lambda one: one.lineno, default=None)
    loops = [n for n in inside if isinstance(n, (ast.For, ast.While)) and n.lineno <= line <= (n.end_lineno or 0)]
    again = any(loop.lineno <= one.lineno <= (loop.end_lineno or 0) for loop in loops for one in given)
    return kinds_of(last.value) if last in body and last is not None and not again else []


def is_enum(name: str, program: Program) -> bool:
    """Whether a name is that of an enumeration of the program."""
    file, cls = program.class_of(name) or ("", None)
    return cls is not None and any(program.names(file).name(one).startswith("enum.") for one in cls.bases)


BY_PYTHON = [f"__{name}__" for name in TABLES["by_python"]]  # what Python calls of an object that is made, or handed on


def methods_by_syntax(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The classes of objects, and their methods, that Python calls for an expression or a loop: `len(words)` calls
    `Words.__len__`."""
    match node:
        case ast.Call(ast.Name("len" | "iter" | "next" as function), [of, *_]):
            method = f"__{function}__"
        case ast.Call(of):
            method = "__call__"
        case ast.Subscript(of, _, context):
            method = "__setitem__" if isinstance(context, ast.Store) else "__getitem__"
        case ast.For(iter=of) | ast.comprehension(iter=of):
            method = "__iter__"
        case ast.Compare(_, [ast.In() | ast.NotIn()], [of]):
            method = "__contains__"
        case _:
            return
    if isinstance(node, ast.Call):  # `filter(equals("a"), kinds)`, `sorted(words, key=order)`, `a + b`
        made = [node, *node.args, *(word.value for word in node.keywords)]
        kinds = [kind for one in made for kind in kinds_of(one)]
        yield from (
            (kind.cls, each) for kind in kinds if isinstance(kind, ObjectKind) and kind.cls for each in BY_PYTHON
        )
    called = callees_of(node) if isinstance(node, ast.Call) and method == "__call__" else []
    yield from ((name.removeprefix("object "), method) for name in called if name.startswith("object "))
    methods = [method, "__missing__"] if method == "__getitem__" else [method]  # of a dictionary of one's own
    objects = [kind.cls for kind in kinds_of(of) if isinstance(kind, ObjectKind) and kind.cls]
    yield from ((cls, one) for cls in objects for one in methods)


def takes_items(node: ast.expr, function: ast.AST | None) -> bool:
    """Whether it is a variable to which a function only ever assigns new dictionaries, or new arrays of NumPy's."""
    name, made = getattr(node, "id", ""), []
    for one in ast.walk(function or node):
        if isinstance(one, ast.Assign) and name in (getattr(target, "id", None) for target in one.targets):
            made.append(ast.unparse(one.value.func if isinstance(one.value, ast.Call) else one.value))
    return bool(made) and all(
        text.startswith("{") or text.rpartition(".")[2] in NEW_DICTIONARIES or text in NEW_ARRAYS for text in made
    )


@handles("torch.utils._pytree.tree_flatten", "torch.utils._pytree.tree_unflatten")
def tree(call: ast.Call, context: Context) -> ast.expr:
    """What lies in lists, tuples and dicts as one list, and back, by the functions of those names in msmigrate.nn."""
    wanted = [word for word in call.keywords if word.arg != "is_leaf" or literal(word.value) != (True, None)]
    name = callees_of(call)[0].rpartition(".")[2]
    if len(call.args) + len(wanted) != (1 if name == "tree_flatten" else 2):
        raise Unwritable(f"{ast.unparse(call)}: leave is_leaf out")
    keywords = [ast.keyword(word.arg, context.visit(word.value)) for word in wanted]
    return ast.Call(
        context.name(f"msmigrate.nn.functional.{name}"), [context.visit(one) for one in call.args], keywords
    )
