"""Layers that a class makes and never runs are frozen, as they do not train in torch; what a class raises that was
never made, or has no construct, what it calls as it is made, and a list of cells that it keeps; and what stands in a
file's tables for classes and functions that never ran.

torch's optimizer skips parameters without a gradient; MindSpore's gets zeros for them, and decays them. A layer is
frozen only where no method of the class runs it, or where methods run it only under other settings, as in
`if self.expand_ratio != 1`. All other layers train: those that another input or mode may run, that other code may use,
or that may belong to another object too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ....mappings.rows import Row
from ...library_names import CONTAINERS, INSTALLED, NOT_CONVERTED, is_dtype
from ...source_files import all_parameters, comment, is_comment, substitute
from ..observe.observations import (
    CallableKind,
    DtypeKind,
    Kind,
    ModuleKind,
    PlainKind,
    SequenceKind,
    SizeKind,
    TensorKind,
    callees_of,
    kinds_of,
)
from ..rewrite.context import Context, Problem, Program
from ..rewrite.replaced_methods import CONSTRUCT, FORWARD, defines, derives_from_layer
from ..rewrite.rewriter import unseen_function
from ..rewrite.signatures import names_in

MODULE, PARAMETER = "torch.nn.Module", "torch.nn.Parameter"
REASON = "torch's optimizer skips layers that never run, MindSpore's would decay them"
OF_INITIALIZERS = "torch.nn.init."
# attributes through which code reaches layers without naming them, and through which a class reaches its parameters
UNNAMED = {"children", "named_children", "modules", "named_modules", "get_submodule", "_modules", "__dict__"}
OWN_UNNAMED = {"parameters", "named_parameters", "get_parameter", "_parameters"}
NEGATED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OF_VALUES = ("layer", "loss")  # the kinds of rows whose state is the tensors that they hold
PLAIN_TEST = (ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.cmpop, ast.boolop, ast.unaryop)
CLASS_WITHOUT = """
def construct(self, *args, **kwargs):
    raise NotImplementedError('no method was put in the place of construct')
"""
RESETTING = """
def __init__(self, *args, **kwargs):
    super().__init__(*args, **kwargs)
    self.reset_parameters()
"""
NEVER_MADE = """
def __init__(self, *args, **kwargs):
    raise NotImplementedError('{place}: when this was written, no {name} was made, and its methods are not written')
"""


class Use(NamedTuple):
    """A read of an attribute of `self`: the attribute's name, and the settings under which the code runs."""

    name: str
    settings: tuple[ast.expr, ...]


def freeze_idle_layers(program: Program, definitions: Mapping[str, ast.stmt], more: Sequence[ast.AST]) -> None:
    """Freeze, in every class of the file, the layers that it never runs.

    more: the code that makes the model from the definitions.
    """
    places = [program.class_of(name) for name in definitions if name in program.owners]
    trees = [program.tree(file) for file in dict.fromkeys(place[0] for place in places if place is not None)]
    if any(_reads_unnamed(tree, UNNAMED) for tree in trees):
        return
    named = _named_elsewhere([*trees, *definitions.values(), *more])
    for qualified, cell in definitions.items():
        if not isinstance(cell, ast.ClassDef) or qualified not in program.owners or not _is_plain(program, qualified):
            continue
        start = next((n for n in cell.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
        if start is None or program.class_of(qualified) is None:
            continue
        read = _Class(program, qualified, definitions)
        kept = _always_set(start.body)
        idle: dict[str, dict[str, ast.expr]] = {}  # settings -> the layers that never run under them
        for name, made in read.layers().items():
            if (
                has_parameters(made, program)
                and name in kept
                and name not in named
                and (settings := read.never_runs(name, kept)) is not None
            ):
                idle.setdefault(settings, {})[name] = made
        for settings, layers in idle.items():
            start.body += _frozen(settings, layers)


def _frozen(settings: str, layers: Mapping[str, ast.expr]) -> list[ast.stmt]:
    """`for parameter in self.norm.get_parameters(): parameter.requires_grad = False`, under these settings."""
    of_tensors = {name for name, made in layers.items() if any(isinstance(k, TensorKind) for k in kinds_of(made))}
    cells = [f"self.{name}" for name in layers if name not in of_tensors]
    lines = [f"self.{name}.requires_grad = False" for name in layers if name in of_tensors]
    if len(cells) == 1:
        lines.append(f"for parameter in {cells[0]}.get_parameters():\n    parameter.requires_grad = False")
    elif cells:
        loop = "    for parameter in cell.get_parameters():\n        parameter.requires_grad = False"
        lines.append(f"for cell in ({', '.join(cells)}):\n{loop}")
    made = ast.parse("\n".join(lines)).body
    return [comment(REASON), *([ast.If(ast.parse(settings, mode="eval").body, made, [])] if settings else made)]


def has_parameters(made: ast.expr, program: Program) -> bool:
    """Whether a new layer may have parameters, unlike a Dropout, or a Sequential of such."""
    kinds = kinds_of(made)
    names = [kind.cls for kind in kinds if isinstance(kind, ModuleKind)]
    if not names or len(names) < len(kinds):
        return True
    if isinstance(made, ast.Call) and all(name in CONTAINERS for name in names):
        inside = [e for a in made.args for e in (a.elts if isinstance(a, (ast.List, ast.Tuple)) else [a])]
        return bool(made.keywords) or any(has_parameters(one, program) for one in inside)
    rows = [program.row(name) for name in names]
    return any(row is None or row.torch in CONTAINERS or row.kind not in OF_VALUES or _trains(row) for row in rows)


def _trains(row: Row) -> bool:
    """Whether a row's layer has parameters: a loss may have tensors, which are buffers."""
    return row.kind != "loss" and bool(row.state)


def _is_plain(program: Program, qualified: str) -> bool:
    """Whether only a class's own methods run its layers, unlike in a Sequential."""
    bases = program.facts.bases(qualified)
    own = [base for base in bases if base.startswith("torch.")]
    return bool(own) and own[0] == MODULE


class _Class:
    """A class as the user wrote it, with its base classes and the classes derived from it."""

    def __init__(self, program: Program, qualified: str, definitions: Mapping[str, ast.stmt]) -> None:
        family = [qualified, *program.facts.bases(qualified)]
        family += [name for name in definitions if qualified in program.facts.bases(name)]
        self.nodes: list[ast.ClassDef] = []
        for name in dict.fromkeys(family):
            if (place := program.class_of(name)) is not None:
                file, node = place
                self.nodes.append(node)
                self.nodes += [n for n in _derived(program.tree(file), node.name) if n not in self.nodes]
        self.own = self.nodes[0]
        methods = [n for node in self.nodes for n in node.body if isinstance(n, ast.FunctionDef)]
        of_self = all(n.args.args[:1] and n.args.args[0].arg == "self" for n in methods if not n.decorator_list)
        by_name = any(_reads_unnamed(node, OWN_UNNAMED) or _asks_by_name(node) for node in self.nodes)
        self.known = of_self and not by_name
        inside = (n for node in self.nodes for n in ast.walk(node))
        self.stores = [n.attr for n in inside if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
        inside = (n for one in self.own.body if getattr(one, "name", "") == "__init__" for n in ast.walk(one))
        self.begun = [n.attr for n in inside if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
        self.uses = [use for method in methods for use in _uses(method)]

    def layers(self) -> dict[str, ast.expr]:
        """The attributes to which the class's own `__init__` assigns a new layer or parameter, which nothing shares."""
        if not self.known:
            return {}
        starts = (n for n in self.own.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
        named = [(_attribute(line), getattr(line, "value", None)) for start in starts for line in start.body]
        return {name: value for name, value in named if name and value and _is_layer(value) and _is_fresh(value)}

    def never_runs(self, name: str, kept: set[str]) -> str | None:
        """The settings under which nothing runs a layer, as an expression; empty for any, None where it may run.

        kept: the attributes that the written class has.
        """
        uses = [use.settings for use in self.uses if use.name == name]
        if self.stores.count(name) != 1 or not all(uses):
            return None
        read = {
            n.attr for settings in uses for test in settings for n in ast.walk(test) if isinstance(n, ast.Attribute)
        }
        if any(self.stores.count(one) != self.begun.count(one) or one not in kept for one in read):
            return None  # it may change after the constructor
        alone = {ast.unparse(negation(settings[0])) for settings in uses if len(settings) == 1}
        rest = [[one for one in use if len(use) == 1 or ast.unparse(one) not in alone] for use in uses]
        if not all(rest):
            return None
        conditions = {ast.unparse(found): found for found in map(_none_of, rest)}
        if any(ast.unparse(negation(one)) in conditions for one in conditions.values()):
            return None  # one use or the other always runs
        each = [*conditions.values()]
        return ast.unparse(ast.BoolOp(ast.And(), each) if len(each) > 1 else each[0]) if each else ""


def _is_setting(test: ast.expr) -> bool:
    """Whether an expression depends only on plain attributes of `self`, and not on `training`."""
    for node in ast.walk(test):
        if isinstance(node, ast.Attribute):
            kinds = kinds_of(node)
            if node.attr == "training" or not _of_self(node) or not kinds:
                return False
            if not all(isinstance(kind, PlainKind) for kind in kinds):
                return False
        elif not isinstance(node, (*PLAIN_TEST, ast.expr_context)) and not (
            isinstance(node, ast.Name) and node.id == "self"
        ):
            return False
    return True


def _uses(method: ast.FunctionDef) -> Iterator[Use]:
    """The attributes of `self` that a method reads, except for arguments of initializers."""

    def block(lines: Sequence[ast.stmt], settings: tuple[ast.expr, ...]) -> Iterator[Use]:
        for line in lines:
            yield from visit(line, settings)
            if isinstance(line, ast.If) and _is_setting(line.test):
                if _ends(line.body):
                    settings = (*settings, negation(line.test))
                elif _ends(line.orelse):
                    settings = (*settings, line.test)

    def visit(node: ast.AST, settings: tuple[ast.expr, ...]) -> Iterator[Use]:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and _of_self(node):
            yield Use(node.attr, settings)
        if method.name == "__init__" and isinstance(node, ast.Expr) and _is_initializer(node.value):
            return
        if isinstance(node, (ast.If, ast.IfExp)):
            known = _is_setting(node.test)
            yield from visit(node.test, settings)
            for side, test in ((node.body, node.test), (node.orelse, negation(node.test))):
                inside = (*settings, test) if known else settings
                yield from block(side, inside) if isinstance(side, list) else visit(side, inside)
            return
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield from block(value, settings)
            else:
                for inner in value if isinstance(value, list) else [value]:
                    if isinstance(inner, ast.AST):
                        yield from visit(inner, settings)

    yield from block(method.body, ())


def _none_of(settings: Sequence[ast.expr]) -> ast.expr:
    """A condition for: not all of these are true."""
    each = [negation(test) for test in {ast.unparse(test): test for test in settings}.values()]
    return each[0] if len(each) == 1 else ast.BoolOp(ast.Or(), each)


def negation(test: ast.expr) -> ast.expr:
    """`x != 1` for `x == 1`, and `not x` for `x`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in NEGATED:
        return ast.Compare(test.left, [NEGATED[type(test.ops[0])]()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


def _ends(lines: Sequence[ast.stmt]) -> bool:
    return bool(lines) and isinstance(lines[-1], (ast.Return, ast.Raise))


def _of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _attribute(line: ast.stmt) -> str | None:
    """The attribute of `self` that a statement assigns."""
    targets = line.targets if isinstance(line, ast.Assign) else [line.target] if isinstance(line, ast.AnnAssign) else []
    target = targets[0] if len(targets) == 1 else None
    return target.attr if isinstance(target, ast.Attribute) and _of_self(target) else None


def _always_set(lines: Sequence[ast.stmt]) -> set[str]:
    """The attributes of `self` that statements assign on every way through them."""
    found: set[str] = set()
    for line in lines:
        if (name := _attribute(line)) is not None:
            found.add(name)
        elif isinstance(line, ast.If):
            ways = [side for side in (line.body, line.orelse) if not (side and isinstance(side[-1], ast.Raise))]
            found |= set.intersection(*map(_always_set, ways)) if ways else set()
    return found


def _is_fresh(node: ast.expr) -> bool:
    """Whether an expression's value has no layers, or only new ones, which no other object has."""
    kinds = kinds_of(node)
    if isinstance(node, ast.Constant) or (kinds and all(map(_is_plain_value, kinds))):
        return True
    if isinstance(node, ast.Call):
        of_class = {kind.cls if isinstance(kind, ModuleKind) else PARAMETER for kind in kinds} == {*callees_of(node)}
        return of_class and all(map(_is_fresh, [*node.args, *(word.value for word in node.keywords)]))
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
    return bool(parts) and all(map(_is_fresh, parts))


def _is_plain_value(kind: Kind) -> bool:
    """Whether a value holds no layer and no parameter."""
    if isinstance(kind, SequenceKind):
        return all(map(_is_plain_value, kind.items))
    if isinstance(kind, CallableKind):
        return kind.what == "class"
    return isinstance(kind, (PlainKind, DtypeKind, SizeKind)) or (isinstance(kind, TensorKind) and not kind.parameter)


def _is_layer(node: ast.expr) -> bool:
    """Whether an expression was always a layer, or a parameter."""
    kinds = kinds_of(node)
    return bool(kinds) and all(isinstance(k, ModuleKind) or (isinstance(k, TensorKind) and k.parameter) for k in kinds)


def _is_initializer(node: ast.expr) -> bool:
    """Whether a call initializes its arguments: `nn.init.zeros_(self.norm.weight)`."""
    return (
        isinstance(node, ast.Call)
        and bool(callees_of(node))
        and all(name.startswith(OF_INITIALIZERS) for name in callees_of(node))
    )


def _reads_unnamed(tree: ast.AST, names: set[str]) -> bool:
    """Whether code reaches layers or parameters without naming them, other than to loop over them, as in
    `for layer in self.modules(): if isinstance(layer, nn.Linear): nn.init.zeros_(layer.bias)`."""
    looked: set[int] = set()
    for loop in ast.walk(tree):
        if isinstance(loop, ast.For):
            each = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
            inside = [n for line in loop.body for n in ast.walk(line)]
            owners = {id(n.value) for n in inside if isinstance(n, ast.Attribute)}
            calls = [n for n in inside if isinstance(n, ast.Call) and ast.unparse(n.func) == "isinstance"]
            owners |= {id(argument) for call in calls for argument in call.args}
            if all(id(n) in owners for n in inside if isinstance(n, ast.Name) and n.id in each):
                looked |= {id(n) for n in ast.walk(loop.iter)}
    return any(isinstance(n, ast.Attribute) and n.attr in names and id(n) not in looked for n in ast.walk(tree))


def _asks_by_name(tree: ast.AST) -> bool:
    """Whether a class may read any attribute: by `getattr` with a computed name, or `vars(self)`."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    return any(
        call.func.id in ("vars", "eval", "exec")
        or (call.func.id in ("getattr", "setattr") and not isinstance(call.args[1:2] and call.args[1], ast.Constant))
        for call in calls
        if isinstance(call.func, ast.Name)
    )


def _named_elsewhere(trees: Sequence[ast.AST]) -> set[str]:
    """The attributes that are read of anything but `self`, and all strings, which may name one."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    found = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return found | {node.attr for node in nodes if isinstance(node, ast.Attribute) and not _of_self(node)}


def _derived(tree: ast.AST, name: str) -> Iterator[ast.ClassDef]:
    """The classes of a file that are derived from one of its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == name for base in node.bases):
            yield node
            yield from _derived(tree, node.name)


def lacks_forward(qualified: str, body: list[ast.stmt], program: Program) -> bool:
    """Whether a class with this body assigns to a construct that neither it nor a base defines."""
    puts = any(
        isinstance(node, ast.Attribute) and node.attr == CONSTRUCT and isinstance(node.ctx, ast.Store)
        for statement in body
        for node in ast.walk(statement)
    )
    bases = program.facts.bases(qualified)
    return puts and not any(defines(name, FORWARD, program) for name in bases) and not derives_from_layer(bases)


def completed(qualified: str, node: ast.ClassDef, body: list[ast.stmt], program: Program) -> list[ast.stmt]:
    """What the class `node` needs besides this body: a construct, since a Cell is not run without one; an `__init__`
    that raises, where the class was never made, as one that is only named in an `isinstance`, and loses methods."""
    if lacks_forward(qualified, body, program):
        return ast.parse(CLASS_WITHOUT).body
    if (made := _draws_anew(qualified, body, program)) is not None:
        return made
    has, had = ({one.name for one in inside if isinstance(one, ast.FunctionDef)} for inside in (body, node.body))
    known = qualified in program.facts.called or any(qualified in order for order in program.facts.orders)
    if known or has or not had or not ("__init__" in had or _of_modules(qualified, program)):
        return []
    file, _ = program.class_of(qualified) or ("", None)
    return ast.parse(NEVER_MADE.format(name=node.name, place=f"{Path(file).name}:{node.lineno}")).body


def _draws_anew(qualified: str, body: Sequence[ast.stmt], program: Program) -> list[ast.stmt] | None:
    """What calls a class's own `reset_parameters`, as the constructor of torch's layer does, and MindSpore's does not:
    a call after `super().__init__(…)`, in place, or an `__init__`. None where nothing is to be called."""
    methods = {one.name: one for one in body if isinstance(one, ast.FunctionDef)}
    base = program.torch_base(qualified)
    if "reset_parameters" not in methods or base is None or base.kind not in ("layer", "module"):
        return None
    if (own := methods.get("__init__")) is None:
        return ast.parse(RESETTING).body
    calls = [place for place, one in enumerate(own.body) if ast.unparse(one).startswith("super().__init__(")]
    if not calls or any("self.reset_parameters(" in ast.unparse(one) for one in own.body):
        return None
    own.body.insert(calls[0] + 1, ast.parse("self.reset_parameters()").body[0])
    return []


def _of_modules(name: str, program: Program) -> bool:
    """Whether a class is one of modules by its bases' names."""
    file, cls = program.class_of(name) or ("", None)
    bases = [] if cls is None else map(program.names(file).name, cls.bases)
    return name.startswith("torch.nn.") or any(_of_modules(base, program) for base in bases if base != name)


def keep_cell_list(body: list[ast.stmt]) -> None:
    """SequentialCell runs the cells of a list that it makes in its own `__init__`: make the list again at the end."""
    for statement in body:
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        own = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "__init__"]
        if any(not call.args for call in own):
            append([statement], "self.cell_list = list(self.cells())")


def append(body: list[ast.stmt], text: str) -> None:
    """Add a statement to `__init__`."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            statement.body.append(ast.parse(text).body[0])


# Tables of a file's top


class ChosenEntries(ast.NodeTransformer):
    """Replaces in dictionaries the classes and functions that were not used in the run, and removes them from sets.

    The key of an entry of a dictionary stays: `key in table`, `table.get(key, other)` and `len(table)` would be others
    without it. Those of an installed package, which may have all that it knows in a table, go. file: of the table.
    """

    def __init__(self, file: str, program: Program) -> None:
        self.resolve, self.unseen = program.names(file).name, program.unseen
        self.file, self.program = file, program

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        """A dictionary, by its values."""
        found = [self.kept(value) or self._unused(value) for value in node.values]
        there = [(key, value) for key, value in zip(node.keys, found, strict=True) if value is not None]
        return ast.Dict([key for key, _ in there], [value for _, value in there])

    def _unused(self, node: ast.expr) -> ast.expr | None:
        if INSTALLED.intersection(Path(self.file).parts):
            return None
        named = node.args[0] if isinstance(node, ast.Call) and node.args else node
        name = self.resolve(named) if isinstance(named, (ast.Name, ast.Attribute)) else ""
        return unused_entry(node, name, self.file, self.program)

    def visit_Set(self, node: ast.Set) -> ast.AST:
        """A set; an empty one is written as a call."""
        kept = [found for item in node.elts if (found := self.kept(item))]
        return ast.Set(kept) if kept else ast.Call(ast.Name("set", ast.Load()), [], [])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`dict(relu=nn.ReLU)`."""
        if isinstance(node.func, ast.Name) and node.func.id == "dict":
            words = [(word.arg, self.kept(word.value) or self._unused(word.value)) for word in node.keywords]
            node.keywords = [ast.keyword(key, value) for key, value in words if value is not None]
        return node

    def kept(self, node: ast.expr) -> ast.expr | None:
        """The value of an entry, for `a if c else b` the one that was used; None where it was not used."""
        if isinstance(node, ast.IfExp):
            sides = [side for side in (self.kept(node.body), self.kept(node.orelse)) if side is not None]
            return node if len(sides) == 2 else next(iter(sides), None)
        if isinstance(node, ast.Call) and self.resolve(node.func) == "functools.partial" and node.args:
            return node if self.kept(node.args[0]) is not None else None
        name = self.resolve(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if not name:
            found: ast.expr = self.visit(node)
            return found
        return None if self.unseen(name) else node


def unused_entry(node: ast.expr, name: str, file: str, program: Program) -> ast.expr:
    """What stands in a table of a file's top for a class or function that never ran, in torch's words: a lambda for one
    of torch's that takes nothing but what it needs, the name of a function of the model's own, and else a function that
    raises, which is listed."""
    if name.startswith("torch.") and is_dtype(name.removeprefix("torch.")):
        return node
    row = program.row(name) if name.startswith("torch.") and isinstance(node, (ast.Name, ast.Attribute)) else None
    needed = [one.torch for one in row.arguments if one.required] if row is not None and row.mindspore else ["*"]
    given = ast.arguments([], [], None, [], [], None, [])
    if row is not None and row.is_module and not needed:
        return ast.Lambda(given, ast.Call(node, [], []))
    if row is not None and row.kind == "function" and needed and needed != ["*"]:
        given.args = [ast.arg(letter) for letter, _ in zip("xyz", needed, strict=False)]
        if len(given.args) == len(needed):
            return ast.Lambda(given, ast.Call(node, [ast.Name(one.arg, ast.Load()) for one in given.args], []))
        given.args = []
    if isinstance(node, ast.Name) and any(getattr(one, "name", "") == node.id for one in _functions(file, program)):
        program.unread.add(name)
        return node
    text = f"{ast.unparse(node)}, an entry of a table that did not run"
    line = getattr(node, "lineno", 0)
    if not line:  # of a table that is written with the values of the run
        named = (one for one in ast.walk(program.tree(file)) if isinstance(one, (ast.Name, ast.Attribute)))
        line = next((one.lineno for one in named if ast.unparse(one) == ast.unparse(node)), 1)
    program.not_run.append(Problem(file, line, text))
    text = f"{Path(file).name}:{line}: {text}"
    given.vararg, given.kwarg = ast.arg("args"), ast.arg("kwargs")
    return ast.Lambda(given, ast.Call(program.name(NOT_CONVERTED), [ast.Constant(text)], []))


def _functions(file: str, program: Program) -> Iterable[ast.FunctionDef]:
    return (one for one in program.tree(file).body if isinstance(one, ast.FunctionDef))


def take_lambdas(statement: ast.Assign | ast.AnnAssign, file: str, program: Program) -> dict[str, ast.expr]:
    """The lambdas of a statement at a file's top that use more than Python's own, written as functions are: by what ran
    in them, or by what can be read. In the statement, names stand in their places."""
    found: dict[str, ast.expr] = {}

    def change(node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.Lambda):
            return None
        tensors = [argument for argument in all_parameters(node.args) if _is_tensor(argument.arg, node.body, program)]
        if not tensors and all(map(_is_pythons, names_in(node.body, program.names(file).name))):
            return None
        for argument in tensors:
            argument.annotation = ast.Name("Tensor", ast.Load())  # which is read like a hint
        name = f"lambda {len(found)}"
        body = [ast.copy_location(ast.Return(node.body), node.body)]
        function = ast.copy_location(ast.FunctionDef(name, node.args, body, []), node)  # type: ignore[arg-type]
        found[name] = _as_lambda(unseen_function(function, name, Context(program, file)), program)
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    substitute(statement, change)
    return found


def _is_pythons(name: str) -> bool:
    return name.partition(".")[0] in {"", "builtins", "math", "functools", "operator", "itertools"}


def _is_tensor(name: str, body: ast.expr, program: Program) -> bool:
    """Whether an argument of a lambda has methods of tensors called."""
    owned = [one for one in ast.walk(body) if isinstance(one, ast.Attribute) and ast.unparse(one.value) == name]
    return any(program.row(f"torch.Tensor.{one.attr}") is not None for one in owned)


def _as_lambda(function: ast.FunctionDef, program: Program) -> ast.Lambda:
    body = [one for one in function.body if not is_comment(one)]
    if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
        for argument in all_parameters(function.args):
            argument.annotation = None
        return ast.Lambda(function.args, body[0].value)
    said = [one.value for one in ast.walk(function) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    anything = ast.arguments([], [], ast.arg("args"), [], [], ast.arg("kwargs"), [])
    return ast.Lambda(anything, ast.Call(program.name(NOT_CONVERTED), [ast.Constant("; ".join(said))], []))
