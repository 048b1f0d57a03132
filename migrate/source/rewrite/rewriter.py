"""One function of a torch model as a function of a MindSpore Cell: its body normalised, its branches selected, and its
statements and expressions rewritten by the handlers that are registered for them.

What changes a function's body before any of its statements is rewritten is here, too:

A comprehension inside another becomes a loop, where nothing else of the function uses the names that a loop leaves.

`if (n := len(x)) > 3:` is not compiled by MindSpore. The name is assigned in a statement before, where that changes
nothing: the value is always computed, and nothing before it in the statement has an effect or reads the name.
`if a and (n := b):` without `else` becomes two nested `if`s.

`kwargs.pop("mask", None)` of a `**kwargs` that is passed on is not compiled: it becomes the parameter `mask=None`.
"""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
import keyword
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ...library_names import INSTALLED, NOT_CONVERTED, TABLES, in_todays_order
from ...source_files import all_parameters, defaults_of, literal, local_names, short, substitute
from ..observe.instrument import INSIDE, always_evaluated
from ..observe.observations import ModuleKind, callees_of, kinds_of, reached, replacing
from . import (
    argument_kinds,
    autograd_functions,
    control_flow,
    dataclasses_and_configs,
    devices_and_no_grad,
    einops_patterns,
    graph_mode,
    initializers,
    layer_methods,
    library_lookups,
    modules,
    replaced_methods,
    row_calls,
    tensors,
)
from .aliasing import LOST, write_first
from .collected_outputs import go_on_with_locals, hand_back, rename_hiding, write_collecting
from .context import Context, Problem, Program, Unwritable, handles
from .control_flow import pick_by_index, select_branches
from .devices_and_no_grad import without_gradient, without_gradient_by_decorator
from .graph_mode import ALWAYS, in_blocks, is_pure, list_mapped, not_compiled, place_of, put
from .shared_writes import refuse_shared
from .signatures import SignatureRewriter, expand_kwargs, hands_on, name_arguments, only_looked_up
from .tensors import StridedSlices, note_of_caller
from .unexecuted_code import unseen_expression
from .views import write_through_views

# the files whose import registers their handlers; ORDER says whose come first
HANDLERS = (
    *(autograd_functions, einops_patterns, library_lookups, dataclasses_and_configs, modules, initializers, tensors),
    *(graph_mode, control_flow, argument_kinds, layer_methods, devices_and_no_grad, replaced_methods),
)


def rewrite_function(node: ast.FunctionDef, name: str, context: Context) -> ast.FunctionDef:
    """The definition under another name, with the parts of its body that ran."""
    found = context.function = copy.deepcopy(node)
    rename_hiding(found, context)
    why = write_collecting(found, context)
    name_arguments(found, context)
    context.local = context.own = set(local_names(found))
    context.handed = {argument.arg for argument in ast.walk(found.args) if isinstance(argument, ast.arg)}
    context.in_python = name == "__init__"
    context.builds = context.in_python or not_compiled(node.name, context.program, context.owner)
    _normalise(found, context)
    entered = node.name == "forward" and context.owner in context.program.facts.classes.get("", ())
    body = select_branches(found, context, entered=entered)
    cut = not context.in_python and without_gradient_by_decorator(node)
    statements = without_gradient(body, context) if cut else [new for old in body for new in context.statement(old)]
    found.name, found.body = name, statements or [ast.Pass()]
    if lost := context.local - {*local_names(found)}:  # names assigned only in code that did not run, and raises
        text = context.place(node, "this did not run")

        def change(inner: ast.AST) -> ast.AST | None:
            read = isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load) and inner.id in lost
            return ast.Call(context.name(NOT_CONVERTED), [ast.Constant(text)], []) if read else None

        found.body = [substitute(statement, change) for statement in found.body]
    found.decorator_list = [item for item in node.decorator_list if KEPT.fullmatch(ast.unparse(item))]
    SignatureRewriter(context.program, context.file).signature(found)
    if why := why or _make_defaults(node.args, found.args, context):
        found.body.insert(0, ast.Expr(context.missing(node, why)))
    return found


def _make_defaults(before: ast.arguments, after: ast.arguments, context: Context) -> str:
    """Write what defaults make, `act=nn.ReLU(True)`, by torch or a function that ran as the file was imported, or read
    of settings, `width=cfg.width`; returns why one that is made cannot be written."""
    why = ""
    for given, written in ((before.defaults, after.defaults), (before.kw_defaults, after.kw_defaults)):
        for place, one in enumerate(given):
            if one is None:
                continue  # an argument without a default
            made = isinstance(one, ast.Call) and (_of_torch(one, context) or _of_model(one, context))
            if made and dataclasses_and_configs.is_named_tuple(_decorator(one, context), context.program):
                continue  # it stays as it is
            if made or _reads_settings(one, context):
                try:
                    around = context if made else Context(context.program, context.file)  # no argument is there yet
                    written[place] = unseen_expression(one, around)
                except Unwritable as error:
                    if made:  # what is read of a namespace stays as it is
                        written[place] = ast.Constant(None)
                        why = why or f"the default {ast.unparse(one)}: {error}"
    return why


def _reads_settings(node: ast.expr, context: Context) -> bool:
    owners = [one.value for one in ast.walk(node) if isinstance(one, ast.Attribute)]
    program, here = context.program, [one.id for one in owners if isinstance(one, ast.Name)]
    by_name = (library_lookups.of_settings(_decorator(one, context), program) for one in owners)
    return any(by_name) or any(library_lookups.kinds_at_top(name, program, context.file) for name in here)


KEPT = re.compile(r"staticmethod|classmethod|property|\w+\.(setter|getter|deleter)")
# methods that torch calls to load, save, move or print a module, which are no part of what it computes
AROUND = re.compile(
    r"_?(load|save|register)\w*|state_dict|[sg]et_extra_state|_apply|_version|extra_repr|__(?!len__|contains__|iter__)\w+__"
)
SILENT = {*TABLES["decorators"]}
CALLED = ("eval", "__call__")  # called to run a model in torch, but not in MindSpore


def unseen_method(node: ast.FunctionDef, context: Context, wanted: bool) -> list[ast.FunctionDef]:
    """A method that did not run, by what can be inferred; one that raises, where that does not suffice. Methods that
    are no part of what a module computes are left out and listed, and so are unused methods of installed packages.

    wanted: whether an object may use the method to replace another one, so that it is written in any case.
    """
    if not context.program.derives(context.owner, replaced_methods.MODULE):
        return [unseen_function(node, node.name, context)]
    if node.name in CALLED:
        context.missing(node, f"{node.name} of {short(context.owner)}, which torch calls, and MindSpore does not")
        return []
    if node.name in TABLES["called_by_layers"] and context.program.torch_base(context.owner) is not None:
        text = f"{node.name} of {short(context.owner)}, which torch's layer calls, and MindSpore's does not"
        if hands_on(node):  # a layer's weights have the dtype of its input here
            text = f"{text}, is not written: it only hands on what it is given, or casts it"
            context.program.left_out.append(Problem(context.file, node.lineno, text))
        else:
            context.missing(node, f"{text}: write a forward")
        return []
    around = AROUND.fullmatch(node.name) or node.name in layer_methods.OF_CELLS
    if not wanted and (around or INSTALLED.intersection(Path(context.file).parts)):
        list_method(node, context)
        return []
    return [unseen_function(node, "construct" if node.name == "forward" else node.name, context)]


def list_method(node: ast.FunctionDef, context: Context) -> None:
    """Note a method that the new file does not have."""
    written = context.program.not_written.setdefault(context.file, {})
    written.setdefault(short(context.owner), []).append(node.name)


def unseen_function(node: ast.FunctionDef, name: str, context: Context) -> ast.FunctionDef:
    """A function that did not run, under another name, by what can be inferred; one that raises, where that does not
    suffice."""
    decorators = [ast.unparse(item) for item in node.decorator_list]
    silent = [ast.unparse(item) for item in node.decorator_list if _decorator(item, context) in SILENT]
    plain = all(KEPT.fullmatch(name) or name in silent or without_gradient_by_decorator(node) for name in decorators)
    unknown = [one for one in defaults_of(node.args).values() if not _is_known(one, context)]
    if plain and not unknown:
        made = rewrite_function(node, name, context)
    else:
        (made := copy.deepcopy(node)).name = name
        why = f"what its default {ast.unparse(unknown[0])} is" if unknown else "what its decorators do"
        made.body = [control_flow.refused(context.did_not_run(node, f"{why}, is not known"), node)]
        made.decorator_list = [item for item in node.decorator_list if KEPT.fullmatch(ast.unparse(item))]
    if any(isinstance(statement, ast.Raise) for statement in made.body[-1:]) and len(made.body) <= 2:
        made.args, made.returns = copy.deepcopy(node.args), None
        for argument in (one for one in ast.walk(made.args) if isinstance(one, ast.arg)):
            argument.annotation = None
        if unknown:  # what its arguments begin with is not said
            first = [] if "staticmethod" in decorators else made.args.args[:1]
            made.args = ast.arguments([], first, ast.arg("args"), [], [], ast.arg("kwargs"), [])
    return made


def _is_known(default: ast.expr, context: Context) -> bool:
    """Whether the default of an argument is a plain value, or made of such and of names that the file has for one, by
    operators or functions of the model's files; the name of a class or function that the new file has; or a lambda that
    computes with its arguments alone."""
    if isinstance(default, ast.BinOp):
        return _is_known(default.left, context) and _is_known(default.right, context)
    if isinstance(default, ast.Call) and _of_model(default, context):
        return all(_is_known(one, context) for one in (*default.args, *(word.value for word in default.keywords)))
    if isinstance(default, ast.Lambda):
        names = {node.id for node in ast.walk(default.body) if isinstance(node, ast.Name)}
        calls = any(isinstance(node, (ast.Call, ast.Attribute)) for node in ast.walk(default.body))
        return not calls and names <= {argument.arg for argument in all_parameters(default.args)}
    if replaced_methods.named_callable(default, context.file, context.program):
        return True
    constant = context.program.origin(context.file, default.id) if isinstance(default, ast.Name) else None
    return literal(default if constant is None else constant.node.value)[0]


def _of_torch(call: ast.Call, context: Context) -> bool:
    return re.match(r"torch\.(?!device$)", _decorator(call, context)) is not None


def _of_model(call: ast.Call, context: Context) -> bool:
    """Whether a call is of a function at the top of one of the model's files."""
    return _decorator(call, context).rpartition(".")[0] in context.program.all_files


def _decorator(node: ast.expr, context: Context) -> str:
    """The full name of a decorator, also of one with arguments."""
    return context.program.names(context.file).name(node.func if isinstance(node, ast.Call) else node)


def _normalise(function: ast.FunctionDef, context: Context) -> None:
    """Rewrite what Graph mode does not compile, and what MindSpore's CPU does not compute; in place."""
    in_blocks(in_todays_order(function), lambda body: layer_methods.hooks_anyway(name_lambdas(body)))
    if not context.in_python:
        name_kwargs(function, context.program)
        list_mapped(function)
        expand_nested_comprehensions(function)
        pick_by_index(function)
    argument_kinds.format_texts(function, compiled=not context.builds)
    if not context.builds:
        go_on_with_locals(function, context)
    hoist_walrus(function)
    write_first(function, context.local | {*local_names(function)})
    hand_back(function, context.program)
    note_of_caller(function)
    left_out, file = context.program.left_out, context.file
    write_through_views(
        function,
        context.program,
        compiled=not context.builds,
        note=lambda line, text: left_out.append(Problem(file, line, text, function.name)),
    )
    refuse_shared(function, context.program, context.file, context.owner, compiled=not context.builds)
    context.local |= {*local_names(function)}
    graph_mode.start_with_braces(function)
    expand_kwargs(function, context.program)
    StridedSlices(context.program).visit(function)


def name_lambdas(body: list[ast.stmt]) -> list[ast.stmt]:
    """A block that did not run, with `halve = lambda x: x / 2` as a function, which is read as such."""
    found = list[ast.stmt]()
    for one in body:
        match one:
            case ast.Assign([ast.Name(name)], ast.Lambda(takes, value)) if not reached(one):
                given = ast.copy_location(ast.Return(value), value)
                one = ast.copy_location(ast.FunctionDef(name, takes, [given], []), one)
        found.append(one)
    return found


NAME = "parts"  # the name for a list that has none


def expand_nested_comprehensions(function: ast.FunctionDef) -> None:
    """Write such lists as loops, in statements before those that they are in; in place."""
    names = Counter(node.id for node in ast.walk(function) if isinstance(node, ast.Name))
    names.update(argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg))
    naming = _Naming(names)
    for statement in [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function]:
        if not _named(statement, naming):
            for field in ("value", "test"):
                value = getattr(statement, field, None)
                if isinstance(value, ast.expr):
                    setattr(statement, field, naming.visit(value))
    hoist_walrus(function)
    substitute(function, lambda node: _unnamed(node, naming))  # those that could not be moved to a statement before
    in_blocks(function, lambda block: [new for old in block for new in _loops(old, naming)])


class _Naming(ast.NodeTransformer):
    """Gives names to lists over two loops, `(parts := […])`."""

    def __init__(self, names: Counter[str]) -> None:
        self.names = names
        self.given: set[str] = set()

    def takes(self, node: ast.AST) -> bool:
        """Whether it is such a list, and the function uses its loops' names nowhere else."""
        if not isinstance(node, ast.ListComp) or len(node.generators) < 2:
            return False
        inside = Counter(found.id for found in ast.walk(node) if isinstance(found, ast.Name))
        stored = {found.id for found in ast.walk(node) if isinstance(found, ast.Name) and _stored(found)}
        return all(inside[name] == self.names[name] for name in stored)

    def visit(self, node: ast.AST) -> ast.AST:
        """Give such a list a name; anything else, and anything inside of such a list, is not changed."""
        if self.takes(node):
            assert isinstance(node, ast.ListComp)
            free = (f"{NAME}{number or ''}" for number in itertools.count())
            name = next(name for name in free if name not in self.names)
            self.names[name] += 1
            self.given.add(name)
            target = replacing(ast.Name(name, ast.Store()), node)
            return replacing(ast.NamedExpr(target, node), node)
        return node if isinstance(node, INSIDE) else self.generic_visit(node)


def _unnamed(node: ast.AST, naming: _Naming) -> ast.expr | None:
    """`(parts := […])` as the list; None for anything else."""
    return node.value if isinstance(node, ast.NamedExpr) and node.target.id in naming.given else None


def _loops(statement: ast.stmt, naming: _Naming) -> list[ast.stmt]:
    """`name = […]` over two loops, written as loops; any other statement unchanged."""
    if not _named(statement, naming):
        return [statement]
    assert isinstance(statement, ast.Assign) and isinstance(statement.value, ast.ListComp)
    target, value = statement.targets[0], statement.value
    assert isinstance(target, ast.Name)
    grows = ast.Attribute(ast.Name(target.id, ast.Load()), "append", ast.Load())
    body: ast.stmt = ast.Expr(ast.Call(grows, [value.elt], []))
    for loop in reversed(value.generators):
        for test in reversed(loop.ifs):
            body = ast.If(test, [body], [])
        body = ast.For(loop.target, loop.iter, [body], [])
    made = [ast.Assign([target], ast.List([], ast.Load())), body]
    for node in (inner for one in made for inner in ast.walk(one)):
        if isinstance(node, (ast.stmt, ast.expr)) and not hasattr(node, "lineno"):
            replacing(node, statement if isinstance(node, ast.stmt) else value)  # so that it counts as one that ran
    return made


def _named(statement: ast.stmt, naming: _Naming) -> bool:
    """Whether it is `name = […]` over two loops, neither of which reads the name."""
    if not isinstance(statement, ast.Assign) or not naming.takes(statement.value):
        return False
    names = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
    target = statement.targets[0]
    return len(statement.targets) == 1 and isinstance(target, ast.Name) and target.id not in names


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


BY_NAME = {"dir", "eval", "exec", "locals", "vars"}  # functions that may read any variable
# names that stand for something else in what is written
RESERVED = {*dir(builtins), *keyword.kwlist, "Parameter", "Tensor", "mindspore", "nn", "np", "ops"}


def name_kwargs(function: ast.FunctionDef, program: Program) -> None:
    """Give a function parameters for what it takes out of its `**kwargs` before it passes on the others; in place.

    Only where a name is always taken out, with a constant as its default, and before anything else may see it there.
    """
    rest = function.args.kwarg.arg if function.args.kwarg is not None else ""
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    if not rest or names & BY_NAME or only_looked_up(function):
        return
    body: list[ast.stmt] = []
    for statement in function.body:
        value = getattr(statement, ALWAYS.get(type(statement), ""), None)
        taken: ast.AST | None = None
        for call in [] if value is None else list(always_evaluated(value)):
            name, default = _popped(call, rest)
            if default is None or not _is_free(name, statement, function, program):
                continue
            if _seen_before(name, call, rest, function):
                continue
            function.args.kwonlyargs.append(ast.arg(name))
            function.args.kw_defaults.append(default)
            taken = replacing(ast.Name(name, ast.Load()), call)
            put(taken, call, statement)
        if not isinstance(statement, ast.Expr) or statement.value is not taken:
            body.append(statement)
    function.body = body


def _popped(node: ast.AST, rest: str) -> tuple[str, ast.expr | None]:
    """The name and the default of `rest.pop("name", constant)`; no default for anything else."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(owner), "pop"), [ast.Constant(str() as name), default], []):
            fixed = all(
                isinstance(n, (ast.Constant, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)) for n in ast.walk(default)
            )
            return name, default if owner == rest and fixed else None
    return "", None


def popped_names(function: ast.AST) -> Iterator[str]:
    """The names that may become parameters so."""
    for node in ast.walk(function):
        match node:
            case ast.Call(ast.Attribute(_, "pop"), [ast.Constant(str() as name), _]):
                yield name


def _is_free(name: str, statement: ast.stmt, function: ast.FunctionDef, program: Program) -> bool:
    """Whether a name can be a parameter: in the function it means nothing, or what this statement first assigns."""
    others = {getattr(node, "name", None) for node in ast.walk(function)} | {
        one.arg for one in all_parameters(function.args)
    }
    if not name.isidentifier() or name.startswith("__") or name in others | RESERVED:
        return False
    if any(f"{module}.{name}" in program.translated for module in program.modules):
        return False  # it is a name of the new file
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    assigned = any(isinstance(target, ast.Name) and target.id == name for target in targets)
    return not uses or (assigned and all(place_of(node) >= place_of(statement) for node in uses))


def _seen_before(name: str, call: ast.AST, rest: str, function: ast.FunctionDef) -> bool:
    """Whether anything before a call but a look-up of another name may read a function's `**kwargs`."""
    others: list[ast.AST] = []
    for node in ast.walk(function):
        match node:
            case (
                ast.Call(ast.Attribute(owner, "get" | "pop"), [ast.Constant(key), *_])
                | ast.Subscript(owner, ast.Constant(key), ast.Load())
                | ast.Compare(ast.Constant(key), [ast.In() | ast.NotIn()], [owner])
            ) if key != name:
                others.append(owner)
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == rest]
    return any(place_of(node) < place_of(call) and node not in others for node in uses)


WALRUS_SIMPLE = (ast.If, ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)


def hoist_walrus(function: ast.FunctionDef) -> None:
    """Assign such names in statements of their own, before the statement that they are in; in place."""
    in_blocks(function, lambda block: [new for old in block for new in _apart(old)])


def _apart(statement: ast.stmt) -> list[ast.stmt]:
    """The statement, preceded by those that assign the names in it."""
    field = "test" if isinstance(statement, ast.If) else "value"
    value = getattr(statement, field, None) if isinstance(statement, WALRUS_SIMPLE) else None
    before: list[ast.stmt] = []
    while value is not None and (found := next(_walrus_named(value), None)) and _first(found, value):
        target = replacing(ast.Name(found.target.id, ast.Store()), found.target)
        before.append(replacing(ast.Assign([target], found.value), statement))
        # the name replaces its value, and gets what was observed of it
        value = put(replacing(ast.Name(found.target.id, ast.Load()), found.value), found, value)
        setattr(statement, field, value)
    return [*before, *_in_two(statement)]


def _in_two(statement: ast.stmt) -> list[ast.stmt]:
    """`if a and (n := b):` as one `if` inside of another; any other statement unchanged."""
    if not isinstance(statement, ast.If) or statement.orelse or not isinstance(statement.test, ast.BoolOp):
        return [statement]
    test = statement.test
    if not isinstance(test.op, ast.And):
        return [statement]
    given = [n for n, part in enumerate(test.values) if n and next(_walrus_named(part), None)]
    if not given:
        return [statement]
    first, rest = (_all_of(part, test) for part in (test.values[: given[0]], test.values[given[0] :]))
    inner = replacing(ast.If(rest, statement.body, []), statement)
    return [replacing(ast.If(first, _apart(inner), []), statement)]


def _all_of(parts: list[ast.expr], test: ast.BoolOp) -> ast.expr:
    return parts[0] if len(parts) == 1 else replacing(ast.BoolOp(ast.And(), parts), test)


def _walrus_named(node: ast.AST) -> Iterator[ast.NamedExpr]:
    """The `:=` that are evaluated whenever an expression is, innermost and leftmost first."""
    return (found for found in always_evaluated(node) if isinstance(found, ast.NamedExpr))


def _first(found: ast.NamedExpr, value: ast.expr) -> bool:
    """Whether nothing that is evaluated before it has an effect, or reads the name."""
    start, around = (found.lineno, found.col_offset), {id(node) for node in ast.walk(found)}
    for node in ast.walk(value):
        if not isinstance(node, ast.expr) or id(node) in around or (node.lineno, node.col_offset) >= start:
            continue
        if isinstance(node, ast.Name) and node.id == found.target.id:
            return False
        if (node.end_lineno, node.end_col_offset) <= start and not is_pure(node):
            return False
    return True


LISTS = ("torch.nn.ModuleList", "torch.nn.Sequential")


@handles(syntax=[ast.Subscript])
def some_of_list(node: ast.Subscript, context: Context) -> ast.expr | None:
    """`list(self.layers)[:-1]`, for modules that are gone over or run; a slice of MindSpore's own is another container,
    which names all parameters anew, `0.weight`, so that those of two are saved under one name."""
    if not isinstance(node.slice, ast.Slice) or not isinstance(node.ctx, ast.Load):
        return None
    kinds, all_derive = kinds_of(node.value), context.program.all_derive
    if not all_derive(kinds, LISTS):
        return None
    if not _gone_over(node, context) and (context.builds or not all_derive(kinds, LISTS[:1])):
        return None  # it becomes a part of the model, or is called under another name
    whole = ast.Call(ast.Name("list", ast.Load()), [context.visit(node.value)], [])
    return ast.Subscript(whole, context.visit(node.slice), ast.Load())


@handles(syntax=[ast.Call])
def run_some(node: ast.Call, context: Context) -> ast.expr | None:
    """`in_turn(list(self.layers)[:2], x)` for `self.layers[:2](x)`."""
    part = node.func
    if not isinstance(part, ast.Subscript) or not isinstance(part.slice, ast.Slice) or len(node.args) != 1:
        return None
    if kinds_of(part.value) != [ModuleKind("torch.nn.Sequential")]:
        return None
    whole = ast.Call(ast.Name("list", ast.Load()), [context.visit(part.value)], [])
    some = ast.Subscript(whole, context.visit(part.slice), ast.Load())
    return ast.Call(context.name("msmigrate.nn.in_turn"), [some, context.visit(node.args[0])], [])


def _gone_over(node: ast.Subscript, context: Context) -> bool:
    """Whether a loop, an unpacking, or `len` is what reads this expression."""
    for outer in ast.walk(context.function or node):
        match outer:
            case ast.For(iter=one) | ast.comprehension(iter=one) | ast.Starred(value=one):
                read = [one]
            case ast.Call(ast.Name("enumerate" | "zip" | "reversed" | "len" | "list" | "tuple"), read):
                pass
            case _:
                continue
        if any(isinstance(one, ast.Subscript) and place_of(one) == place_of(node) for one in read):
            return True
    return False


@handles(syntax=[ast.Call])
def call(node: ast.Call, context: Context) -> ast.AST:
    """A call by the program's own source, or by the row of the mapping table."""
    if LOST in vars(node):
        raise Unwritable(vars(node)[LOST])
    callees = callees_of(node)
    as_base = any(name in context.program.translated and context.program.row(name) for name in callees)
    if not as_base and all(map(context.is_user_code, callees)):
        return row_calls.kept_call(node, callees, context)
    return row_calls.call_of_row(node, callees, context)


@handles(syntax=[ast.Subscript])
def item(node: ast.Subscript, context: Context) -> ast.AST:
    """A subscript; `a` for `(a, b)[0]`, and `a[1]` for `a[1:][0]`, to which some are rewritten."""
    found: ast.AST = context.generic_visit(node)
    match found:
        case ast.Subscript(ast.Tuple([first, *_]), ast.Constant(0), ast.Load()):
            return first
        case ast.Subscript(ast.Tuple([_, second, *_]), ast.Constant(1), ast.Load()):
            return second
        case ast.Subscript(
            ast.Subscript(of, ast.Slice(ast.Constant(int() as first), None, None)), ast.Constant(int() as n)
        ):
            return ast.Subscript(of, ast.Constant(first + n), node.ctx) if min(first, n) >= 0 else found
    return found


@handles(syntax=[ast.Name])
def name(node: ast.Name, context: Context) -> ast.AST:
    """A name of Python's library, noted for the imports, or of a constant of the file."""
    if isinstance(node.ctx, ast.Load) and node.id not in context.local:
        node.id = context.program.python(context.file, node.id)
    return node
