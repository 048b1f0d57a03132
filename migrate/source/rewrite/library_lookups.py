"""Lookups that always give the same: entries of tables, constants of modules, settings of a package.

An object such as `ACT2FN` in `ACT2FN["gelu"]` is a library's way to look up a function, a class or a layer, and no part
of the model. Where it always gave the same one, that is written in its place. So are torch's own classes and functions
that are not called but passed on, also by `partial`.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....mappings.rows import Row
from ...library_names import CONTAINERS, COUNTERPARTS, TABLES, dtype_name
from ...source_files import literal
from ..observe.observations import (
    CallableKind,
    DictKind,
    DtypeKind,
    Items,
    Kind,
    Made,
    ModuleKind,
    ObjectKind,
    Observed,
    Pairs,
    PlainKind,
    PythonModule,
    Reference,
    SequenceKind,
    always,
    callees_of,
    constants_of,
    kinds_of,
    observed,
    of_constant,
)
from .argument_kinds import tensors_of_loss
from .context import (
    UNSEEN,
    Context,
    Namer,
    ObservedArgument,
    Problem,
    Program,
    Stage,
    Unwritable,
    handles,
    set_receivers,
)
from .initializers import filling_function, fills
from .row_calls import arguments_of, call_through_variable, is_variable, only_as_seen, with_initial_values, write_call

# arguments of a model zoo's function that choose trained weights
LOADING = {"pretrained", "weights", "weights_backbone", "progress", "model_name", "checkpoint_path", "force_reload"}
DICTIONARIES, PLAIN = ("dict", "OrderedDict", "defaultdict", "UserDict"), {bool, int, float, str}
FREE = {"inplace", "device", "dtype"}  # arguments that no result depends on
SETTINGS = ("torch.backends.", "torch.version.")
BACKENDS = ("torch.nn.attention.SDPBackend.", "torch._C._SDPBackend.")


def write_reference(
    row: Row, given: Mapping[str, ObservedArgument], name: Namer, *, a_partial: bool = False
) -> ast.expr:
    """A class that is not called here but passed on, with torch's defaults where MindSpore has others; for a function
    that fills a tensor, a function that does the same. a_partial: whether it is a partial without arguments, too."""
    if fills(row):
        return filling_function(row, given, name)
    call = write_call(row, given, name, partial=True)
    if tensors := tensors_of_loss(row, call):
        raise Unwritable(f"{row.torch} in a partial with {tensors[0].arg}: give that where the loss is made")
    if not call.args and not call.keywords and not a_partial:
        return call.func
    return ast.Call(name("functools.partial"), [call.func, *call.args], call.keywords)


def keep_torchs_defaults(definitions: Mapping[str, ast.stmt], more: Sequence[ast.AST], program: Program) -> None:
    """Give the user's layers without a constructor, where they are handed on, torch's defaults; in place.

    A call by their name has these, and one of a variable does not: `norm(width)` of a LayerNorm that a class refines.
    """
    nodes = [node for tree in (*definitions.values(), *more) for node in ast.walk(tree)]
    known = {id(one) for node in nodes if isinstance(node, ast.ClassDef) for one in node.bases}
    for node in nodes:
        if isinstance(node, ast.Call):
            known |= {id(one) for one in (node.func, *(node.args if ast.unparse(node.func) == "isinstance" else ()))}
    handed = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in known}
    for qualified, cls in definitions.items():
        row = program.torch_base(qualified) if isinstance(cls, ast.ClassDef) and cls.name in handed else None
        owners = filter(None, map(program.class_of, program.facts.bases(qualified)))
        made = any(getattr(one, "name", "") == "__init__" for _, owner in owners for one in owner.body)
        reference = write_reference(row, {}, program.name) if row is not None and not made else None
        if isinstance(reference, ast.Call) and isinstance(cls, ast.ClassDef):
            words = "".join(f"{word.arg!r}: {ast.unparse(word.value)}, " for word in reference.keywords)
            place = int(ast.get_docstring(cls) is not None)
            cls.body[place:place] = ast.parse(
                "def __init__(self, *args, **kwargs):\n    super().__init__(*args, **{" + words + "**kwargs})"
            ).body


@handles(syntax=[ast.Call])
def plain_super(node: ast.Call, context: Context) -> ast.expr | None:
    """`super(Net, self)` as `super()`: the class may have another name in the new file."""
    named = isinstance(node.func, ast.Name) and node.func.id == "super" and len(node.args) == 2
    own = named and ast.unparse(node.args[0]) == context.owner.rpartition(".")[2]
    return ast.Call(node.func, [], []) if own else None


@handles(syntax=[ast.Attribute])
def named_partial(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`partial` for `functools.partial`, as what is written in place of torch's classes calls it."""
    whole = node.attr == "partial" and context.program.names(context.file).name(node) == "functools.partial"
    return context.name("functools.partial") if whole and isinstance(node.ctx, ast.Load) else None


@handles(syntax=[ast.Attribute])
def setting_of_torch(node: ast.Attribute, context: Context) -> None:
    """Refuse `torch.backends.cudnn.enabled` and the like, of which MindSpore has nothing: a condition is assumed to be
    as in the run then."""
    name = context.program.names(context.file).name(node)
    if name.startswith(SETTINGS) and always(kinds_of(node), PlainKind):
        raise Unwritable(f"{ast.unparse(node)}, a setting of torch's")


@handles(syntax=[ast.Assign, ast.AugAssign], stage=Stage.STATEMENT)
def sets_torch(node: ast.Assign | ast.AugAssign, context: Context) -> list[ast.stmt] | None:
    """Nothing for `torch.backends.cudnn.benchmark = True`, which says how torch computes, and not what."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [context.program.names(context.file).name(one) for one in targets if isinstance(one, ast.Attribute)]
    return [] if len(names) == len(targets) and all(name.startswith(SETTINGS) for name in names) else None


@handles("functools.partial")
def partial(node: ast.Call, context: Context) -> ast.AST:
    """`partial` of a torch class: of its row's class, with its arguments and torch's defaults; of one in a variable,
    with the arguments alone."""
    kinds = kinds_of(node.args[0])
    kind = kinds[0] if len(kinds) == 1 else None
    name = kind.name if isinstance(kind, CallableKind) and kind.what != "partial" else ""
    row = context.program.row(name) if name else None
    if row is None:
        return context.kept(node)
    rest = ast.Call(node.args[0], node.args[1:], node.keywords)
    arguments = arguments_of(row, rest, context)
    if is_variable(node.args[0], context) and not fills(row):  # another class may be given
        call = call_through_variable(row, arguments, context.name, context.visit(node.args[0]))
        return ast.Call(context.name("functools.partial"), [call.func, *call.args], call.keywords)
    found = write_reference(row, arguments, context.name, a_partial="functools.partial" in context.program.named)
    only_as_seen(arguments, node, context)
    if name in context.program.translated and isinstance(found, ast.Call):
        found.args[0] = context.visit(node.args[0])
    return found


@handles(syntax=[ast.Call])
def given_to_class(node: ast.Call, context: Context) -> ast.expr | None:
    """`Block.scaled(x)` as `scaled(x)`, for a top-level function that was assigned to the class later."""
    callees, function = callees_of(node), node.func
    if len(callees) != 1 or not isinstance(function, ast.Attribute) or callees[0] not in context.program.translated:
        return None
    kinds = kinds_of(function.value)
    of_class = len(kinds) == 1 and isinstance(kinds[0], CallableKind) and kinds[0].what == "class"
    if not of_class or callees[0] in context.program.owners or callees[0].rpartition(".")[0] in context.program.owners:
        return None
    found = context.kept(node)
    found.func = ast.Name(context.program.called(callees[0]), ast.Load())
    return found


@handles(syntax=[ast.Attribute, ast.Name])
def common_base(node: ast.Attribute | ast.Name, context: Context) -> ast.expr | None:
    """The MindSpore layers that stand, in a type check, for a class from which several of torch's layers derive."""
    kinds = kinds_of(node) if context.in_type_check == "isinstance" else []
    name = kinds[0].name if len(kinds) == 1 and isinstance(kinds[0], CallableKind) else ""
    layers = [context.name(one) for one in TABLES["type_checks"].get(name, ())]
    if not layers and name.startswith("torch.nn.modules.") and "._" in name:
        raise Unwritable(f"{name}, from which several of torch's layers derive: name the layers that you mean")
    return ast.Tuple(layers, ast.Load()) if len(layers) > 1 else next(iter(layers), None)


@handles(syntax=[ast.Attribute, ast.Name])
def handed_on(node: ast.Attribute | ast.Name, context: Context) -> ast.expr | None:
    """The MindSpore name for a torch class or function that is not called here; None for anything else."""
    kinds = kinds_of(node)
    kind = kinds[0] if len(kinds) == 1 and isinstance(node.ctx, ast.Load) else None
    if not isinstance(kind, (CallableKind, DtypeKind)) or is_variable(node, context):
        return None
    if isinstance(kind, DtypeKind):
        if isinstance(node, ast.Attribute):
            of_torch = kinds_of(node.value) == [PythonModule("torch")]  # not x.dtype
            return context.name(dtype_name(node.attr)) if of_torch else None
        imported = context.program.names(context.file).name(node)  # `from torch import int32`
        return context.name(dtype_name(imported.removeprefix("torch."))) if imported.startswith("torch.") else None
    if kind.what == "partial":
        return None
    name = kind.name
    if name in context.program.translated or name in context.program.definitions:  # its name here may differ
        of_file = isinstance(node, ast.Name) or always(kinds_of(node.value), PythonModule)
        return ast.Name(context.program.called(name), ast.Load()) if of_file else None
    if not name.startswith(("torch.", "torchvision.", "timm.")):
        return None
    if name in COUNTERPARTS:
        return context.name(COUNTERPARTS[name])
    row = context.program.row(name)
    if row is None or row.mindspore is None:
        return None
    if context.in_type_check:
        return context.name(row.mindspore)
    if context.strict and row.kind == "function" and not fills(row):  # its calls are written for what ran there
        verbs = [one.torch for one in row.arguments if one.verb and not one.required]
        if way := [*verbs, *([] if row.in_order else ["its arguments"])]:
            raise Unwritable(f"{row.torch} as a value: MindSpore's takes {way[0]} in another way, so call it at once")
    return write_reference(row, {}, context.name)


@handles(syntax=[ast.Call, ast.Subscript])
def resolve_lookup(node: ast.Call | ast.Subscript, context: Context) -> ast.expr | None:
    """The function, class or new layer that a lookup in a top-level object returned; None for anything else."""
    owner = _looked_in(node)
    kinds = kinds_of(node)
    if owner is None or owner.id in context.local or len(kinds) != 1 or not _is_object(owner, context):
        return None
    kind, found = kinds[0], None
    if isinstance(kind, ModuleKind):
        found = _layer(kind.cls, _made_with(kind.cls, owner, node, context), context)
        if found is None and not _is_dictionary(owner, context):
            made = f"{ast.unparse(node)} made a {kind.cls}, which may have been given arguments"
            raise Unwritable(f"{made}: make the layer by its class")
    if isinstance(kind, CallableKind) and kind.what != "partial" and kind.name in context.program.translated:
        found = ast.Name(context.program.called(kind.name), ast.Load())
    elif isinstance(kind, CallableKind) and kind.what == "class" and (row := context.program.row(kind.name)):
        found = write_reference(row, {}, context.name)
    if found is not None:  # only valid for the keys that were seen
        _ask(node, owner.id, context)
    return found


def _ask(node: ast.Call | ast.Subscript, owner: str, context: Context) -> None:
    """Make the new file raise where another key or argument is looked up."""
    given = [node.slice] if isinstance(node, ast.Subscript) else [*node.args, *(word.value for word in node.keywords)]
    for key in [part for one in given for part in (one.elts if isinstance(one, ast.Tuple) else [one])]:
        if isinstance(key, ast.Constant) or ast.unparse(key).startswith(f"{owner}."):
            continue
        seen = constants_of(key)
        if not seen and not always(kinds_of(key), PlainKind):
            continue  # a function or an object
        if not seen:
            raise Unwritable(f"the result of {ast.unparse(node)} depends on {ast.unparse(key)}, which is not constant")
        context.guard(context.visit(copy.deepcopy(key)), seen, node)


def _looked_in(node: ast.Call | ast.Subscript) -> ast.Name | None:
    """The name in front: of `name[…]`, or of `name.method(…)`."""
    looked = node.func if isinstance(node, ast.Call) else node  # not `name[…]()`, whose lookup is a node of its own
    method = isinstance(looked, ast.Attribute) if isinstance(node, ast.Call) else True
    inner = getattr(looked, "value", None)
    return inner if method and isinstance(inner, ast.Name) else None


def _is_object(owner: ast.Name, context: Context) -> bool:
    kinds = kinds_of(owner)
    return len(kinds) == 1 and isinstance(kinds[0], ObjectKind) and not kinds[0].cls.startswith("torch.")


def _is_dictionary(owner: ast.Name, context: Context) -> bool:
    """Whether an object is a dictionary of the model's own class, which is written with its methods."""
    classes = [context.program.class_of(kind.cls) for kind in kinds_of(owner) if isinstance(kind, ObjectKind)]
    names = {ast.unparse(one).rpartition(".")[2] for found in classes if found for one in found[1].bases}
    return not names.isdisjoint(DICTIONARIES)


def _made_with(cls: str, owner: ast.Name, node: ast.Call | ast.Subscript, context: Context) -> dict[str, Any] | None:
    """The arguments of a new layer that a table gave: of an entry that is a class, none, and of one with a dictionary
    behind it these; None where that is not known."""
    program, here = context.program, next((n for n, f in context.program.modules.items() if f == context.file), "")
    module, _, table = (program.names(context.file).name(owner) or f"{here}.{owner.id}").rpartition(".")
    key = node.slice if isinstance(node, ast.Subscript) else next(iter(node.args), ast.Constant(None))
    keys = [key.value] if isinstance(key, ast.Constant) else constants_of(key) or []
    entries = program.facts.registers.get(module, {}).get(table, {})
    match [entries.get(one) for one in keys if isinstance(one, str)]:
        case [Reference(name)] if name == cls:
            return {}
        case [Items(_, (Reference(name), Pairs(pairs)))] if name == cls and {type(one) for _, one in pairs} <= PLAIN:
            return {str(key): value for key, value in pairs}
    return None


def _layer(name: str, words: Mapping[str, Any] | None, context: Context) -> ast.expr | None:
    """A new layer with these arguments; None for one that needs others, or may have got some that are not known."""
    program, known = context.program, {key: ast.Constant(value) for key, value in (words or {}).items()}
    row = program.row(name)
    if row is not None and name not in CONTAINERS:
        needed, may = ({one.torch for one in row.arguments if one.required is which} for which in (True, False))
        if needed - {*known} or (words is None and may - FREE):
            return None
        given = {key: ObservedArgument(one, [of_constant(one.value)], [one.value]) for key, one in known.items()}
        return with_initial_values(row, write_call(row, given, program.name), program.name)
    if name not in program.translated:
        return None
    if (takes := program.signature(name)) is not None:
        named = dict(zip([one.arg for one in takes.args][-len(takes.defaults) :], takes.defaults, strict=False))
        named |= {one.arg: value for one, value in zip(takes.kwonlyargs, takes.kw_defaults, strict=True) if value}
        needed = {one.arg for one in (*takes.args[1:], *takes.kwonlyargs)} - {*named, *known}
        if needed or (words is None and not all(_never_given(name, *one, context) for one in named.items())):
            return None
    words_given = [ast.keyword(key, value) for key, value in known.items()]
    made = ast.Call(ast.Name(program.called(name), ast.Load()), [], words_given)
    set_receivers(made, [name])
    return made


def _never_given(cls: str, name: str, default: ast.expr, context: Context) -> bool:
    """Whether an argument of a constructor was its default wherever the constructor reads it."""
    _, node = context.program.class_of(cls) or ("", ast.Pass())
    inits = [one for one in ast.walk(node) if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
    names = (one for init in inits for one in ast.walk(init) if isinstance(one, ast.Name) and one.id == name)
    seen = [constants_of(one) for one in names if kinds_of(one)]
    return all(one is not None and literal(default)[0] and one == [literal(default)[1]] for one in seen)


@handles(syntax=[ast.Attribute])
def read_attribute(node: ast.Attribute, context: Context) -> None:
    """Note what is read of a configuration; the attribute itself is handled elsewhere."""
    context.read(kinds_of(node.value), node.attr, constants_of(node))


@handles(syntax=[ast.Attribute])
def constant_of_module(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`settings.WIDTH`, of a module of the program."""
    kinds = kinds_of(node.value)
    if len(kinds) != 1 or not isinstance(kinds[0], PythonModule):
        return None
    return context.program.constant(kinds[0].name, node.attr, constants_of(node))


def kinds_at_top(name: str, program: Program, file: str = "") -> list[Kind]:
    """The kind of an object of settings, or a dictionary of these, at the top of a file of the user's; empty for
    anything else. name: its full name, or its own in a file."""
    module, _, last = name.rpartition(".")
    modules = [one for one, path in program.all_files.items() if path == file] if file else [module]
    values = [known[last] for one in modules if last in (known := program.facts.constants.get(one, {}))]
    return [_kind_made(values[0])] if values and isinstance(values[0], (Pairs, Made)) else []


def of_settings(name: str, program: Program) -> bool:
    """Whether a full name is that of such an object, or of something inside of it."""
    return bool(name) and (bool(kinds_at_top(name, program)) or of_settings(name.rpartition(".")[0], program))


def _kind_made(value: Any) -> Kind:
    if isinstance(value, Pairs) and all(isinstance(key, str) for key, _ in value.pairs):
        return DictKind(tuple((key, _kind_made(item)) for key, item in value.pairs))
    if isinstance(value, Items):
        return SequenceKind(value.type, tuple(dict.fromkeys(map(_kind_made, value.items))))
    if isinstance(value, Made):
        return ObjectKind(value.function)
    return of_constant(value) if value is None or type(value) in PLAIN else UNSEEN


@handles(syntax=[ast.Attribute])
def constant_of_object(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`Norm.BATCH`, a constant of a library's table; None for anything else, and for settings in a user's file."""
    owner, seen = node.value, constants_of(node)
    if not isinstance(owner, ast.Name) or owner.id in context.local or seen is None or len(seen) != 1:
        return None
    here = next((module for module, file in context.program.modules.items() if file == context.file), "")
    full = context.program.names(context.file).name(owner) or f"{here}.{owner.id}"
    module, _, name = full.rpartition(".")
    settings = {*context.program.facts.configurations, *context.program.facts.records}
    own = name in context.program.facts.constants.get(module, {}) or full in context.program.functions
    kept = own or any(isinstance(kind, ObjectKind) and kind.cls in settings for kind in kinds_of(owner))
    return None if kept or not _is_object(owner, context) else ast.Constant(seen[0])


@handles(syntax=[ast.Call])
def from_zoo(node: ast.Call, context: Context) -> ast.expr | None:
    """`torchvision.models.resnet18(weights=None)` as a function of the new file that makes that model; computed
    arguments are passed on where the model's class has parameters of their names."""
    made = observed(node.func).zoo
    if not made:
        return None
    name, alike = callees_of(node)[0], {to_text(one) for one in made}
    if len(alike) != 1 or not isinstance(made[0], Made):
        raise Unwritable(f"{name} returned several models, or one that is changed after it is made: write them by name")
    given, words = dict(made[0].kwargs), list[ast.keyword]()
    for word in node.keywords:
        if word.arg in LOADING or literal(word.value)[0]:
            continue
        if word.arg in given and not isinstance(given[word.arg], Reference):
            del given[word.arg]
            words.append(ast.keyword(word.arg, context.visit(word.value)))
        elif word.arg not in given or not always(kinds_of(word.value), CallableKind):
            _as_seen(word.value, context, whole=word.arg is None)
    by_name = node.func.args[1:] if isinstance(node.func, ast.Call) else []
    for one in (*node.args, *by_name, *([node.func.slice] if isinstance(node.func, ast.Subscript) else [])):
        _as_seen(one, context)
    first = [literal(one)[1:] if literal(one)[0] else constants_of(one) or () for one in node.args[:1]]
    strings = [value for values in first for value in values if isinstance(value, str)]
    wanted = re.sub(r"\W", "_", (strings[0] if len(strings) == 1 else name.rpartition(".")[2]).partition(".")[0])
    maker = context.program.maker(wanted, replace(made[0], kwargs=tuple(given.items())))
    return ast.Call(ast.Name(maker, ast.Load()), [], words)


def _as_seen(argument: ast.expr, context: Context, *, whole: bool = False) -> None:
    """Make the new file raise where what decides about a zoo's model is another than it was; whole: `**settings`."""
    if literal(argument)[0] or getattr(argument, "id", getattr(argument, "attr", "")) in LOADING:
        return
    seen, value = constants_of(argument), context.visit(copy.deepcopy(argument))
    if whole and always(kinds_of(argument), DictKind, entries=()):
        context.raise_where(value, value, f"{ast.unparse(argument)} was empty", argument)
    elif seen and not isinstance(argument, ast.Starred):
        context.guard(value, seen, argument)
    else:
        raise Unwritable(f"{ast.unparse(argument)} decides about a model of a zoo, and is not one of a few constants")


def to_text(made: Any) -> str:
    """A construction as text without ids."""
    return re.sub(r"\bid=\d+", "", repr(made))


def class_by_name(node: ast.Call, context: Context) -> ast.expr | None:
    """`{"LSTM": nn.LSTM, "GRU": nn.GRU}[kind]` for `getattr(nn, kind)`; None for any other call."""
    rows = rows_by_name(node, context)
    return _by_name(node, rows, context) if rows else None


@handles(syntax=[ast.Call])
def call_by_name(node: ast.Call, context: Context) -> ast.expr | None:
    """`getattr(nn, kind)(…)`, for all possible names, where the call is the same for all."""
    getter = node.func
    if not isinstance(getter, ast.Call) or not (rows := rows_by_name(getter, context)):
        return None
    function = ast.Name("_", ast.Load())
    calls: dict[str, ast.Call] = {}
    for name, row in rows.items():
        try:
            with context.strictly():
                arguments = arguments_of(row, copy.deepcopy(node), context)
                calls[name] = call_through_variable(row, arguments, context.name, function)
                if arguments.by_value:
                    raise Unwritable(f"these arguments of {name} cross by their values, which may differ")
        except Unwritable:
            continue
    first = next((name for name in constants_of(getter.args[1]) or () if name in calls), None)
    if first is None:
        return None
    same = {name: rows[name] for name, call in calls.items() if ast.dump(call) == ast.dump(calls[first])}
    calls[first].func = _by_name(getter, same, context)
    return calls[first]


@handles(syntax=[ast.Call])
def evaluated(node: ast.Call, context: Context) -> ast.expr | None:
    """`{"nn.ReLU()": nn.ReLU}[text]()` for `eval(text)`, by all texts that it was; None where it names nothing."""
    if not isinstance(node.func, ast.Name) or node.func.id not in ("eval", "exec") or node.func.id in context.local:
        return None
    text = node.args[0] if len(node.args) == 1 and not node.keywords else None
    one = None if text is None or not literal(text)[0] else str(literal(text)[1])
    seen = [] if text is None else [one] if one is not None else [*map(str, constants_of(text) or ())]
    plain = always(kinds_of(node), PlainKind) if not seen else not any(_names_more(each, context) for each in seen)
    if node.func.id == "eval" and plain:
        return None
    read = {each: _evaluated(each, context) for each in seen}
    known = {each: found for each, found in read.items() if found is not None}
    gone = [each for each in read if each not in known and _is_undefined(each, context)]
    if text is None or not known or len(known) + len(gone) < len(read):
        said = f", which was {' or '.join(map(repr, seen))}," if seen else ""
        raise Unwritable(
            f"{ast.unparse(node)}{said} may name what MindSpore has not: write a dictionary of what it may be"
        )
    calls = any(called for _, called in known.values())
    values = [value if called or not calls else _later(value) for value, called in known.values()]
    if one is not None:
        return (
            values[0].body if isinstance(values[0], ast.Lambda) else ast.Call(values[0], [], []) if calls else values[0]
        )
    table = ast.Dict([*map(ast.Constant, known)], values)
    key = context.visit(text)
    found: ast.expr = ast.Subscript(table, key, ast.Load())
    if gone:  # a NameError, which the function may catch
        found = ast.Call(context.name("msmigrate.nn.evaluated"), [key, table, *map(ast.Constant, gone)], [])
    return ast.Call(found, [], []) if calls else found


def _later(value: ast.expr) -> ast.expr:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def _names_more(text: str, context: Context) -> bool:
    """Whether an evaluated text has names other than Python's own and the function's."""
    try:
        inside = ast.walk(ast.parse(text.strip(), mode="eval"))
    except SyntaxError:
        return True
    names = {one.id for one in inside if isinstance(one, ast.Name)} - context.local
    return any(not hasattr(builtins, name) for name in names)


def _is_undefined(text: str, context: Context) -> bool:
    """Whether a text is a name that means nothing in the file."""
    nodes = [*ast.walk(context.program.tree(context.file))]
    there = {getattr(node, field, None) for node in nodes for field in ("id", "name", "asname", "arg")}
    name = context.program.names(context.file).name(ast.Name(text, ast.Load()))
    return text.isidentifier() and text not in there and not name and not hasattr(builtins, text)


def _evaluated(text: str, context: Context) -> tuple[ast.expr, bool] | None:
    """The class or function that a text names, and whether it calls that without arguments; or what it computes of the
    function's own names; None for other texts."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
    if not _names_more(text, context):
        return node, False
    named = node.func if isinstance(node, ast.Call) else node
    name = context.program.names(context.file).name(named) if isinstance(named, (ast.Name, ast.Attribute)) else ""
    here = next((module for module, file in context.program.modules.items() if file == context.file), "")
    own = next((one for one in (name, f"{here}.{ast.unparse(named)}") if one in context.program.translated), "")
    row = context.program.row(name) if name and not own else None
    if not own and (row is None or row.mindspore is None or any(state.start is not None for state in row.state)):
        return None
    given = [*node.args, *(word.value for word in node.keywords)] if isinstance(node, ast.Call) else []
    if not all(literal(one)[0] for one in given):
        return None
    if not given:
        itself = ast.Name(context.program.called(own), ast.Load())
        return itself if row is None else write_reference(row, {}, context.name), named is not node
    assert isinstance(node, ast.Call)
    if row is None:
        node.func = ast.Name(context.program.called(own), ast.Load())
    return _later(node if row is None else write_call(row, arguments_of(row, node, context), context.name)), True


def rows_by_name(node: ast.Call, context: Context) -> dict[str, Row]:
    """The rows of what `getattr(nn, kind)` may be: the classes that it was, and those that the function's strings name;
    else nothing."""
    match node:
        case ast.Call(ast.Name("getattr"), [module, ast.expr() as name, *_], []) if not isinstance(name, ast.Constant):
            kinds = kinds_of(module)
        case _:
            return {}
    if len(kinds) != 1 or not isinstance(kinds[0], PythonModule) or not kinds[0].name.startswith("torch"):
        return {}
    inside = [*ast.walk(context.function)] if context.function is not None else []
    texts = [n.value for n in inside if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    texts += [one for n in inside if getattr(n, "id", "") == ast.unparse(name) for one in constants_of(n) or ()]
    names = dict.fromkeys([*(constants_of(name) or ()), *(text for text in texts if str(text).isidentifier())])
    rows = {str(one): context.program.row(f"{kinds[0].name}.{one}") for one in names}
    known = {one: row for one, row in rows.items() if row is not None and row.mindspore is not None}
    return {one: row for one, row in known.items() if all(state.start is None for state in row.state)}


def named_callees(getter: ast.expr, read: Callable[[ast.expr], list[Kind]], context: Context) -> list[str]:
    """The classes or functions of torch's that `getattr(nn, kind)` may be, by the texts in the function; none for
    anything else. read: infers an expression."""
    match getter:
        case ast.Call(ast.Name("getattr"), [ast.Name() | ast.Attribute() as module, ast.Name() as kind], []):
            of, _ = read(module), read(kind)
            rows = rows_by_name(getter, context)
            vars(kind)["observed"] = Observed(kinds=[PlainKind("str")], constants=[*rows] or None)
            return [f"{getattr(of[0], 'name', '')}.{one}" for one in rows]
    return []


def _by_name(node: ast.Call, rows: Mapping[str, Row], context: Context) -> ast.expr:
    table = ast.Dict([*map(ast.Constant, rows)], [write_reference(row, {}, context.name) for row in rows.values()])
    return ast.Subscript(table, context.visit(node.args[1]), ast.Load())


@handles(syntax=[ast.Attribute])
def backend(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`SDPBackend.MATH`, which chooses torch's kernel for attention, as a string that is not used."""
    return ast.Constant(node.attr) if context.program.names(context.file).name(node).startswith(BACKENDS) else None


@handles("torch.jit.annotate")
def annotated(node: ast.Call, context: Context) -> ast.expr | None:
    """`torch.jit.annotate(type, value)`, which is the value."""
    return context.visit(node.args[1]) if len(node.args) == 2 else None


@handles("torch.Tensor.is_contiguous")
def lies_in_order(node: ast.Call, context: Context) -> ast.expr:
    """`x.is_contiguous()`, which should decide only how torch goes on with the same values, as True, and said."""
    text = f"{ast.unparse(node)} is taken to be True: no value depends on how a tensor lies in MindSpore's memory"
    problem = Problem(context.file, node.lineno, text)
    context.program.left_out += [problem] if problem not in context.program.left_out else []
    return ast.Constant(True)
