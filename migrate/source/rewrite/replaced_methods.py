"""Methods that an object replaces on itself, `self.forward = self.forward_split`, and settings of finished layers.

A Cell looks up its construct as Python looks up every attribute, on itself first, in both modes and inside of other
Cells; so an assignment to `forward` becomes one to construct, under the same conditions. Other methods need no change:
`self.act = self.fast_act` is the same in MindSpore. A module under the name of one of a Cell's own methods is refused.

torch's layers look at `self.eps` or `self.p` whenever they run; MindSpore's do not, so that an assignment to these is
a call that changes the layer, or refused.

Below stand the lookups of unexecuted_code.py: what a class, an attribute or a call gives in code that did not run.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...library_names import CONTAINERS, COUNTERPARTS, DROPPED, INSTALLED, MODULE_METHODS, OF_PYTHON, TABLES
from ...source_files import all_of, alternatives, class_question, defaults_of, literal, local_names, own_nodes, short
from ..observe.observations import (
    NONE,
    CallableKind,
    Kind,
    ModuleKind,
    ObjectKind,
    PlainKind,
    SequenceKind,
    TensorKind,
    kinds_of,
    of_constant,
)
from .argument_kinds import kinds_read
from .context import UNSEEN, Context, Program, Stage, Unwritable, handles, row_of
from .layer_methods import where_it_is_made
from .memory import writes_into
from .signatures import OF_TENSORS, SOME_TENSOR, gives

FORWARD, CONSTRUCT = "forward", "construct"
MODULE = "torch.nn.Module"
VOLUMES = "torch.nn.BatchNorm3d"
CHANGE = "msmigrate.nn.change_layer"
OF_CELL_ITSELF = {*TABLES["cell_properties"]}
OF_NO_USE = {*TABLES["settings_of_no_use"]}
PARAMETER = TensorKind("float32", 99, parameter=True)
CONVOLUTION = re.compile(r"torch\.nn\.Conv(?:Transpose)?(\d)d")
GIVEN: dict[str, Kind] = {  # what calls give in code that did not run: methods of modules, and functions by their names
    "parameters": SequenceKind("list", (PARAMETER,)),
    "torch.Size": OF_TENSORS["shape"],
    "torch.finfo": ObjectKind("torch.finfo"),
    "torch.iinfo": ObjectKind("torch.iinfo"),
}


@handles(syntax=[ast.Assign, ast.AnnAssign], stage=Stage.IN_PLACE)
def in_place_of_forward(node: ast.Assign | ast.AnnAssign, context: Context) -> list[ast.stmt] | None:
    """`self.construct = self.forward_split` for `self.forward = self.forward_split`; None for any other statement."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    owners = [n.value for one in targets for n in ast.walk(one) if isinstance(n, ast.Attribute) and _stored(n)]
    owner = next((one for one in owners if _may_be_module(one, context)), None)
    if owner is None or node.value is None:
        return None
    if len(owners) > 1 or not isinstance(targets[0], ast.Attribute):
        raise Unwritable(f"{ast.unparse(node)}: assign to forward in a statement of its own")
    known = all(_is_method(one, owner, context) for one in alternatives(node.value))
    if not known and not _was_method(node.value, context):
        raise Unwritable(f"{ast.unparse(node)}: forward's replacement is not a method of the model, write a forward")
    place = ast.Attribute(context.visit(owner), CONSTRUCT, ast.Store())
    return [ast.Assign([place], context.visit(node.value))]


@handles(syntax=[ast.Assign, ast.AugAssign], stage=Stage.IN_PLACE)
def setting_of_layer(node: ast.Assign | ast.AugAssign, context: Context) -> list[ast.stmt] | None:
    """`change_layer(norm, eps=0.001)` for `norm.eps = 0.001`; None for any other statement."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    stored = [
        n for one in targets for n in ast.walk(one) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
    ]
    settings = [one for one in stored if _is_setting(one.value, one.attr, context)]
    if not settings:
        return None
    if settings != targets:
        raise Unwritable(f"{ast.unparse(node)}: assign to {ast.unparse(settings[0])} in a statement of its own")
    value = node.value
    if isinstance(node, ast.AugAssign):
        before = copy.deepcopy(settings[0])
        before.ctx = ast.Load()
        value = ast.BinOp(before, node.op, value)
    return [ast.Expr(_changed(settings[0].value, settings[0].attr, value, context))]


def _changed(layer: ast.expr, setting: str, value: ast.expr, context: Context) -> ast.Call:
    word = ast.keyword(setting, context.visit(value))
    return ast.Call(context.name(CHANGE), [context.visit(layer)], [word])


def _is_setting(owner: ast.expr, name: str, context: Context) -> bool:
    """Whether a layer of torch's, or what may be one, computes with an attribute, and MindSpore's can be changed.

    Raises Unwritable where that keeps it as it was made.
    """
    own = isinstance(owner, ast.Name) and owner.id == "self"
    changes, rows = TABLES["changed_settings"].get(name, ()), []
    for cls in _classes(owner, context):
        row = context.program.torch_base(cls)
        if row is not None and not method_of(cls, FORWARD, context.program):
            rows.append(row)
    for row in rows:
        takes = any(one.torch == name and bool(one.to or one.only or one.refuse) for one in row.arguments)
        its_own = (row.mindspore or "").startswith("mindspore.")
        if takes and its_own and row.torch not in changes and name not in OF_NO_USE:
            layer = row.torch.rpartition(".")[2]
            raise Unwritable(f"MindSpore's {layer} keeps its {name} as it was made: make it with that")
    unknown = not own and (not kinds_of(owner) or not {UNSEEN, ModuleKind(MODULE)}.isdisjoint(kinds_of(owner)))
    return any(row.torch in changes for row in rows) or (unknown and bool(changes))


@handles("builtins.setattr")
def by_name(call: ast.Call, context: Context) -> ast.expr | None:
    """`change_layer(norm, eps=0.001)` for `setattr(norm, "eps", 0.001)`; refuses `setattr(self, "forward", …)` of a
    module; None for any other call."""
    match call.args:
        case [owner, ast.Constant("forward"), _] if _may_be_module(owner, context):
            raise Unwritable(f"{ast.unparse(call)}: write {ast.unparse(owner)}.forward = …")
        case [owner, ast.Constant(str() as setting), _] if any(
            beside_property(kind, setting, context) for kind in kinds_of(owner) if setting in OF_CELL_ITSELF
        ):
            raise Unwritable(f"{ast.unparse(call)}: write {ast.unparse(owner)}.{setting} = …")
        case [owner, ast.Constant(str() as setting), value] if _is_setting(owner, setting, context):
            return _changed(owner, setting, value, context)
    return None


@handles(syntax=[ast.Attribute])
def handed_on(node: ast.Attribute, context: Context) -> ast.expr | None:
    """A module's `forward` that is passed on, not called, as its construct."""
    if node.attr != FORWARD or not isinstance(node.ctx, ast.Load):
        return None
    methods = [kind.name for kind in kinds_of(node) if isinstance(kind, CallableKind)]
    seen = bool(methods) and all(name.endswith(f".{FORWARD}") for name in methods)
    if not seen and not _classes(node.value, context):
        return None
    return ast.Attribute(context.visit(node.value), CONSTRUCT, ast.Load())


def handed_methods(cls: ast.ClassDef) -> set[str]:
    """The names of a class's methods that are assigned to an attribute: `fast` in `self.forward = self.fast`."""
    methods = {node.name for node in cls.body if isinstance(node, ast.FunctionDef)}
    given = [node.value for node in ast.walk(cls) if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value]
    values = [one for value in given for one in alternatives(value)]
    return {one.attr for one in values if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "self"} & methods


def as_construct(statement: ast.stmt, of_module: bool) -> ast.stmt:
    """A class's `forward = run`, or `run = forward`, of its methods, with the name that MindSpore has for it.

    of_module: also `phase = "train"`, where a Cell has a property of that name.
    """
    if isinstance(statement, ast.Assign):
        for node in (*statement.targets, statement.value):
            if isinstance(node, ast.Name) and node.id == FORWARD:
                node.id = CONSTRUCT
        for node in statement.targets if of_module else ():
            if isinstance(node, ast.Name) and node.id in OF_CELL_ITSELF:
                node.id = f"{node.id}_"
    return statement


def derives_from_layer(bases: list[str]) -> bool:
    return any(name.startswith("torch.nn.") and not name.endswith(".Module") for name in bases)


def _stored(node: ast.Attribute) -> bool:
    return node.attr == FORWARD and isinstance(node.ctx, ast.Store)


def _may_be_module(node: ast.expr, context: Context) -> bool:
    """Whether an expression may be a module; false where it always was something else."""
    own = isinstance(node, ast.Name) and node.id == "self"
    return bool(_classes(node, context)) or not (own or (kinds_of(node) and UNSEEN not in kinds_of(node)))


def _classes(node: ast.expr, context: Context) -> list[str]:
    """The classes of the modules that an expression was; for `self` the function's class."""
    if isinstance(node, ast.Name) and node.id == "self":
        return [context.owner] if any(context.owner in bases for bases in context.program.facts.orders) else []
    return [kind.cls for kind in kinds_of(node) if isinstance(kind, ModuleKind)]


def _is_method(node: ast.expr, owner: ast.expr, context: Context) -> bool:
    """Whether it is `owner.name`, where `name` is a method of the owner's class."""
    if not isinstance(node, ast.Attribute) or ast.unparse(node.value) != ast.unparse(owner):
        return False
    bases = [context.program.facts.bases(cls) for cls in _classes(owner, context)]
    return bool(bases) and all(any(defines(name, node.attr, context.program) for name in names) for names in bases)


def _was_method(node: ast.expr, context: Context) -> bool:
    """Whether it always was a function of the program."""
    kinds = kinds_of(node)
    names = [kind.name for kind in kinds if isinstance(kind, CallableKind) and kind.what == "function"]
    return bool(kinds) and len(names) == len(kinds) and all(name in context.program.functions for name in names)


def beside_property(kind: Kind, attribute: str, context: Context) -> str:
    """Another name for an attribute that a class of the program gives itself, where a Cell has a property of that name.

    Empty for any other attribute. Raises Unwritable for what may be one.
    """
    program = context.program
    classes = [kind.cls] if isinstance(kind, ModuleKind) else [*program.translated] if kind == UNSEEN else []
    bodies = [found[1] for cls in classes for base in program.facts.bases(cls) if (found := program.class_of(base))]
    own = any(_gives_itself(body, attribute) for body in bodies)
    if own and kind == UNSEEN:
        raise Unwritable(f"whether {attribute} is that of a module was not seen, and a Cell has one of its own")
    return f"{attribute}_" if own else ""


def _gives_itself(cls: ast.ClassDef, attribute: str) -> bool:
    """Whether a class has an attribute itself, or a method of it assigns that of `self`."""
    stored = (n for n in ast.walk(cls) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    by_method = any(n.attr == attribute and ast.unparse(n.value) == "self" for n in stored)
    return by_method or attribute in map(_assigned, cls.body)


def _assigned(statement: ast.stmt) -> str:
    """The name of a class's plain attribute; empty for any other statement."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def assigns(owner: str, attribute: str, program: Program) -> bool:
    """Whether a class of the program, or a base of it, assigns an attribute of `self`."""
    classes = filter(None, map(program.class_of, program.facts.bases(owner)))
    inside = (n for _, cls in classes for n in ast.walk(cls) if isinstance(n, ast.Attribute))
    return any(n.attr == attribute and isinstance(n.ctx, ast.Store) for n in inside)


def handed_function(attribute: str, context: Context) -> tuple[list[str], list[Kind]]:
    """What calls, and what gives, an attribute that a class only ever takes from an argument, where it computes: the
    functions that calls and the argument's default name, if they are known; raises Unwritable for any other, and for a
    constructor, which would make layers with it."""
    every, named = [*_values(context.owner, attribute, context.program)], list[Kind]()
    for _, function, kinds, value in every:
        arguments = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
        if getattr(value, "id", "") not in arguments and literal(value) != (True, None):
            every = []
        named += kinds.get(getattr(value, "id", ""), [])
    if context.in_python or not every:
        raise Unwritable(f"self.{attribute} is made by code of its class that did not run")
    functions = [kind.name for kind in named if isinstance(kind, CallableKind) and kind.what == "function"]
    whole = bool(functions) and len(functions) == len(named)
    return functions if whole else ["builtins.object.__call__"], [UNSEEN]


Made = tuple[str, ast.FunctionDef, dict[str, list[Kind]], ast.expr]


def _values(owner: str, attribute: str, program: Program) -> Iterator[Made]:
    """What a class or a base of it assigns to an attribute of `self`: the file, the method, the kinds of a
    constructor's arguments, and the value."""
    for base in program.facts.bases(owner):
        file, cls = program.class_of(base) or ("", ast.Pass())
        for function in [n for n in ast.walk(cls) if isinstance(n, ast.FunctionDef)]:
            kinds = arguments_given(function, base, file, program) if function.name == "__init__" else {}
            assigned = (node for node in ast.walk(function) if isinstance(node, ast.Assign))
            for target, value in (pair for node in assigned for pair in assigned_pairs(node)):
                if ast.unparse(target) == f"self.{attribute}":
                    yield from _returned(value, owner, program) or [(file, function, kinds, value)]


def _returned(value: ast.expr, owner: str, program: Program) -> list[Made]:
    """The same of what a method of the class returns, for a call of it as in `self._make_layer(64)`; else nothing."""
    match value:
        case ast.Call(ast.Attribute(ast.Name("self"), called)):
            classes = [found for base in program.facts.bases(owner) if (found := program.class_of(base))]
        case _:
            return []
    named = [
        (file, n) for file, cls in classes for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == called
    ]
    file, method = named[0] if named else ("", None)
    nodes = [] if method is None else list(ast.walk(method))
    assigned = [pair for node in nodes if isinstance(node, ast.Assign) for pair in assigned_pairs(node)]
    values = [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    made = {one: [new for target, new in assigned if ast.unparse(target) == ast.unparse(one)] for one in values}
    return [(file, method, {}, new) for one in values for new in made[one] or [one] if method is not None]


def assigned_pairs(node: ast.stmt) -> Iterator[tuple[Any, Any]]:
    """The targets of an assignment, each with its value: of `a, b = x, y` both pairs."""
    value = getattr(node, "value", None)
    for target in getattr(node, "targets", [getattr(node, "target", None)]):
        sides = [getattr(side, "elts", []) if isinstance(side, ast.Tuple) else [] for side in (target, value)]
        starred = any(isinstance(item, ast.Starred) for side in sides for item in side)
        if sides[0] and len(sides[0]) == len(sides[1]) and not starred:
            yield from zip(*sides, strict=True)
        else:
            yield target, value


def methods_of_modules(method: str, kind: Kind, program: Program) -> list[str]:
    """The methods of this name that the model's modules have, of what is one of them, or of what is not known where
    other objects have none of that name."""
    others = kind != ModuleKind("torch.nn.Module") and (kind != UNSEEN or method in OF_PYTHON or of_torch(method))
    modules = {cls for order in program.facts.orders for cls in order} & {*program.owners}
    return [] if others else [f"{cls}.{method}" for cls in sorted(modules) if defines(cls, method, program)]


def of_torch(method: str) -> bool:
    """Whether torch's modules or tensors have a method of this name."""
    return method in MODULE_METHODS or row_of(f"torch.Tensor.{method}") is not None


def of_class(cls: str, attribute: str, program: Program) -> list[Kind]:
    """The kind of an attribute that a class of the program has itself, as `expansion = 4`, by its value there."""
    found = program.class_of(cls)
    given = [one for one in (found[1].body if found is not None else []) if _assigned(one) == attribute]
    values = [literal(one.value) for one in given if isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value]
    return [of_constant(values[-1][1])] if values and values[-1][0] else []


def defines(cls: str, method: str, program: Program) -> bool:
    """Whether a class of the program has a method itself."""
    own = program.class_of(cls)
    return own is not None and any(isinstance(n, ast.FunctionDef) and n.name == method for n in own[1].body)


def method_of(cls: str, method: str, program: Program) -> tuple[list[str], list[Kind]] | None:
    """The name of a class's own or inherited method, and what it gives, where that was seen; None for any other."""
    for base in program.facts.bases(cls):
        name = f"{base}.{method}"
        function = program.functions.get(name)
        if function is not None or defines(base, method, program):
            return [name], gives(name, program)
        if name in DROPPED or name in TABLES["masks"]:
            return [name], [NONE if name in DROPPED else SOME_TENSOR]
    return None


def _by_property(owner: str, attribute: str, program: Program) -> list[Kind]:
    """The kind of the distribution that a class's property makes, as `return Normal(self.mean, self.scale)`."""
    for base in program.facts.bases(owner):
        file, cls = program.class_of(base) or ("", None)
        for one in getattr(cls, "body", ()):
            if isinstance(one, ast.FunctionDef) and one.name == attribute:
                plain = [ast.unparse(item) for item in one.decorator_list] == ["property"]
                given = [n.value for n in own_nodes(one) if isinstance(n, ast.Return)]
                made = [program.names(file).name(n.func) if isinstance(n, ast.Call) else "" for n in given]
                kinds = [made_by(name) for name in dict.fromkeys(made) if name]
                return kinds if plain and all(made) and all(isinstance(k, ObjectKind) for k in kinds) else []
    return []


def layers_made(owner: str, attribute: str, program: Program) -> list[Kind]:
    """The kinds of an attribute, by the layers and parameters that its class assigns to it anywhere, or that it had: of
    classes that it names, or that its constructor is given; of a property, the distribution that it makes."""
    if found := _by_property(owner, attribute, program):
        return found
    for file, function, given, value in _values(owner, attribute, program):
        for made in map(where_it_is_made, alternatives(value)):
            kinds: list[Kind] = []
            if isinstance(made, ast.Call):
                name = "" if ast.unparse(made.func) in local_names(function) else program.names(file).name(made.func)
                read = kinds_read(made.func, function) or given.get(ast.unparse(made.func), [])
                kinds = [CallableKind("class", name)] if name else read
                kinds = kinds or _chosen(made.func, file, function, program)
            classes = [kind.name for kind in kinds if isinstance(kind, CallableKind)]
            if classes and len(classes) == len(kinds) and all(of_modules(cls, program) for cls in classes):
                found += map(made_by, classes)
            elif not isinstance(made, ast.Constant) or made.value is not None:
                return []
    held = ((f"{path}.{attribute}", of) for path, of in program.facts.classes.items() if owner in of)
    return list(dict.fromkeys(found or [ModuleKind(at[0]) for p, _ in held if (at := program.facts.classes.get(p))]))


def kinds_in_layer(cls: str, attribute: str, program: Program) -> list[Kind]:
    """The kinds of what a torch layer of this class holds: parameters, how it was made, a convolution's sizes for each
    axis, and modules by their names, as in a Sequential of the model; empty for anything else."""
    if attribute in ("weight", "bias", "running_mean", "running_var"):
        return [PARAMETER]
    if cls in TABLES["changed_settings"].get(attribute, ()):
        return [PlainKind("float")]
    found = CONVOLUTION.fullmatch(cls) if attribute in ("kernel_size", "stride", "padding", "dilation") else None
    if found is not None:
        return [SequenceKind("tuple", (PlainKind("int"),) * int(found[1]))]
    if attribute in TABLES["numbers_of_layers"] or cls in program.translated:
        return [UNSEEN] if attribute in TABLES["numbers_of_layers"] else []
    classes = {path: bases[0] for path, bases in program.facts.classes.items() if bases}
    inside = [
        (of, classes.get(path.rpartition(".")[0]))
        for path, of in classes.items()
        if path.rpartition(".")[2] == attribute
    ]
    return [ModuleKind(of) for of, around in dict.fromkeys(inside) if around == cls]


def _chosen(node: ast.expr, file: str, function: ast.FunctionDef, program: Program) -> list[Kind]:
    """The classes that a function assigns to a variable: of `norm = nn.BatchNorm1d if wide else nn.LayerNorm` both."""
    assigned = [n for n in ast.walk(function) if isinstance(n, ast.Assign)]
    values = [
        value for n in assigned for target, value in assigned_pairs(n) if ast.unparse(target) == ast.unparse(node)
    ]
    kinds = [named_callable(one, file, program) for value in values for one in alternatives(value)]
    return list(dict.fromkeys(kind for found in kinds for kind in found)) if all(kinds) else []


def made_by(cls: str) -> Kind:
    """The kind of what a class of torch's, or of modules, makes."""
    if COUNTERPARTS.get(cls) in ("mindspore.Parameter", "mindspore.Tensor"):
        return replace(PARAMETER, parameter=COUNTERPARTS[cls] == "mindspore.Parameter")
    row = row_of(cls)
    return ObjectKind(row.torch) if row is not None and row.kind == "distribution" else ModuleKind(cls)


def no_lists(kinds: Sequence[Kind]) -> list[Kind]:
    """The kinds, of `self.net` that was a list before it was a Sequential without that of the list."""
    lists = not any(isinstance(kind, ModuleKind) for kind in kinds)
    return [kind for kind in kinds if lists or not isinstance(kind, SequenceKind)]


def holds_modules(cls: str, program: Program) -> bool:
    """Whether it is a container of modules, torch's or one that derives from it."""
    return not {*CONTAINERS}.isdisjoint((cls, *program.facts.bases(cls)))


def of_modules(cls: str, program: Program) -> bool:
    """Whether it is a class of modules, a library's or of the program, or of torch's parameters."""
    if cls in COUNTERPARTS or any(cls in order for order in program.facts.orders):
        return True
    return (row := row_of(cls)) is not None and row.is_module


def modules_asked_for(test: ast.expr, resolve: Callable[[ast.expr], str], program: Program) -> dict[str, list[Kind]]:
    """The variables that are modules where a test holds, of the classes that it asks for: `isinstance(m, C)`."""
    found: dict[str, list[Kind]] = {}
    for one in all_of(test):
        questions = [class_question(side) for side in (one.values if isinstance(one, ast.BoolOp) else [one])]
        bases = [resolve(cls) for _, part in questions for cls in part]
        classes = [cls for base in bases for cls in TABLES["layers_of_bases"].get(base, [base])]
        if len({name for name, _ in questions}) == 1 and classes and all(of_modules(cls, program) for cls in classes):
            found[questions[0][0]] = [made_by(cls) for cls in classes]
    return found


def pair_given(names: list[str], call: ast.Call) -> list[Kind]:
    """The kind of the values and indices that a call gives, such as topk, or max along a dimension; else empty."""
    package, _, name = names[0].rpartition(".") if len(names) == 1 else ("", "", "")
    if package not in ("torch", "torch.Tensor") or name not in TABLES["pairs"]:
        return []
    numbers = [literal(item)[1] for item in (*call.args, *(w.value for w in call.keywords)) if literal(item)[0]]
    along = any(word.arg == "dim" for word in call.keywords) or any(type(number) is int for number in numbers)
    sure = along or name not in TABLES["one_or_pair"]
    return [SequenceKind(name, (TensorKind("float32", 99),))] if sure else []


def hint(argument: ast.arg) -> str:
    """The type hint of an argument, as text; empty where there is none."""
    return "" if argument.annotation is None else ast.unparse(argument.annotation)


def named_cells(owner: ast.expr, context: Context) -> ast.Call:
    """The names and cells of a net, without what only MindSpore's BatchNorm3d has inside."""
    if any(VOLUMES in bases for bases in context.program.facts.classes.values()):
        return ast.Call(context.name("msmigrate.nn.named_modules"), [owner], [])
    return ast.Call(ast.Attribute(owner, "cells_and_names", ast.Load()), [], [])


def readable(name: str, program: Program) -> bool:
    """Whether a class of modules or a function of the model's files that never ran can be written by its source alone;
    it is defined then, and a class's bases are noted as if it had run."""
    module, last, place = program.module_of(name), short(name), program.class_of(name)
    file, node = program.all_files.get(module), None
    if file is None or INSTALLED.intersection(Path(file).parts):
        return False
    if place is not None:
        before = any(order[0] == name for order in program.facts.orders)
        noted = _noted_bases(name, program)
        plain = not noted and is_plain(file, last, program)
        known = plain or noted
        program.unread |= {name} if plain else set()
        if known and not before and not isinstance(program.definitions.get(name, ast.Pass()), ast.Pass):  # only named
            del program.definitions[name]
            program.not_written.get(file, {}).pop(last, None)
        for one in (name, *program.facts.bases(name)) if known else ():  # the bases of one that never ran, too
            if one not in program.owners and (program.class_of(one) is not None or one == name):
                program.owners[one] = []
                program.translated |= {one}
    else:
        node = next((n for n in program.tree(file).body if isinstance(n, ast.FunctionDef) and n.name == last), None)
        known = node is not None and not node.decorator_list and not writes_into(node)
        program.unread |= {name} if known else set()
    if known:
        program.modules.setdefault(module, file)  # also where nothing of that file ran
        for method in ast.walk((place or ("", node))[1] or ast.Pass()):
            for default in defaults_of(method.args).values() if isinstance(method, ast.FunctionDef) else ():
                named_callable(default, file, program)
        program.define(name)
    return known and name in program.definitions


def note_given(name: str, call: ast.Call, read: Callable[[ast.expr], list[Kind]], program: Program) -> None:
    """Note what a class or function that never ran is given, for its arguments' kinds; where a later call gives another
    kind, it is written anew. read: infers an expression."""
    module, last = program.module_of(name), short(name)
    ran = name in program.functions or f"{name}.__init__" in program.functions
    if module not in program.all_files or ran or any(isinstance(one, ast.Starred) for one in call.args):
        return
    words: dict[str | int, list[Kind]] = {word.arg: read(word.value) for word in call.keywords if word.arg}
    given = {place: read(one) for place, one in enumerate(call.args)} | words
    known = program.given.get(name)
    program.given[name] = merged = dict(known or {})
    for key, kinds in given.items():
        merged[key] = list(dict.fromkeys([*merged.get(key, ()), *kinds]))
    from_source = name in program.unread or any(order[0] == name for order in program.facts.orders)
    if name in program.definitions and merged != known and from_source:  # an Enum stays
        del program.definitions[name]
        file = program.all_files[module]
        found = (n for n in ast.walk(program.tree(file)) if isinstance(n, (ast.ClassDef, ast.FunctionDef)))
        node = next(n for n in found if n.name == last)
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        program.not_run[:] = [one for one in program.not_run if one.file != file or one.line not in lines]


def given_to(function: ast.FunctionDef, context: Context) -> dict[str, list[Kind]]:
    """The kinds of the arguments of a function that never ran, as a call gives them or by their defaults."""
    module = next((one for one, file in context.program.modules.items() if file == context.file), "")
    inside = function.name == "__init__"
    name = context.owner if inside else f"{module}.{function.name}"
    known = name in context.program.given or (inside and f"{name}.__init__" not in context.program.functions)
    if not known or (context.owner and not inside):
        return {}
    return arguments_given(function, name, context.file, context.program)


def arguments_given(function: ast.FunctionDef, name: str, file: str, program: Program) -> dict[str, list[Kind]]:
    """The kinds of the arguments of a function of this name, or of a class's constructor."""
    known = {key: literal(one) for key, one in defaults_of(function.args).items()}
    found = {key: [of_constant(value)] for key, (plain, value) in known.items() if plain and value is not None}
    names = [argument.arg for argument in function.args.args][function.name == "__init__" :]
    for key, kinds in program.given.get(name, {}).items():
        if isinstance(key, str) or key < len(names):
            found[key if isinstance(key, str) else names[key]] = kinds
    for argument, one in defaults_of(function.args).items():  # a call may leave it out
        if kinds := named_callable(one, file, program):
            found[argument] = list(dict.fromkeys([*found.get(argument, ()), *kinds]))
    return found


def named_callable(node: ast.expr, file: str, program: Program) -> list[Kind]:
    """The kind of a class or function that the new file has, by its name: a layer or function of torch's that has a
    counterpart, and what the model's own files define, where that is written; none for anything else."""
    name = program.names(file).name(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    row = row_of(name) if name.startswith("torch.") else None
    known = row is not None and row.mindspore and name not in COUNTERPARTS
    if row is not None and known and (row.is_module or row.kind == "function"):
        return [CallableKind("class" if row.is_module else "function", name)]
    ran = any(one in program.functions for one in (name, f"{name}.__init__", f"{name}.forward"))
    if name.startswith("torch.") or not (ran or readable(name, program)):
        return []
    return [CallableKind("class" if name in program.owners else "function", name)]


def _noted_bases(name: str, program: Program) -> bool:
    """Whether a class is one of modules, also if it never ran: then its bases are added to those of the run."""
    if name == MODULE or any(order[0] == name for order in program.facts.orders):
        return True
    file, cls = program.class_of(name) or ("", None)
    if cls is None or cls.decorator_list or cls.keywords or len(cls.bases) != 1:
        return False
    base = program.names(file).name(cls.bases[0])
    methods = [method for method in cls.body if isinstance(method, ast.FunctionDef)]
    if any(map(writes_into, methods)) or (base != MODULE and program.class_of(base) is None):
        return False
    if not _noted_bases(base, program):
        return False
    program.facts.orders.append([name, *(program.facts.bases(base) if base != MODULE else [MODULE])])
    return True


def is_plain(file: str, name: str, program: Program) -> bool:
    """Whether it is a class without bases, of whose methods none writes into what it is given."""
    cls = program.class_node(file, name)
    plain = cls is not None and not (cls.decorator_list or cls.keywords or cls.bases)
    return plain and not any(isinstance(one, ast.FunctionDef) and writes_into(one) for one in getattr(cls, "body", ()))
