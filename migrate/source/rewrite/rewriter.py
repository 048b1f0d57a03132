"""One function of a torch model as a function of a MindSpore Cell: its body normalised, its branches selected, and its
statements and expressions rewritten by the handlers that are registered for them."""

from __future__ import annotations

import ast
import copy
import re
from pathlib import Path

from ..library_names import INSTALLED, NOT_CONVERTED, TABLES
from ..observe.observations import (
    callees_of,
)
from ..source_files import defaults_of, literal, local_names, short, substitute
from . import (
    complex_tensors,
    control_flow,
    devices,
    einops_patterns,
    graph_mode,
    initializers,
    library_lookups,
    modules,
    records,
    replaced_methods,
    row_calls,
    tensors,
)
from .collected_outputs import write_collecting
from .context import Context, Unwritable, handles
from .control_flow import pick_by_index, select_branches
from .graph_mode import expand_nested_comprehensions, hoist_walrus, name_kwargs
from .signatures import SignatureRewriter, expand_kwargs
from .tensors import StridedSlices, note_of_caller
from .views import LOST, hand_back, write_through_views

# the files whose import registers their handlers
HANDLERS = (
    *(einops_patterns, library_lookups, records, modules, initializers, tensors, graph_mode, control_flow),
    *(complex_tensors, devices, replaced_methods),
)


def rewrite_function(node: ast.FunctionDef, name: str, context: Context) -> ast.FunctionDef:
    """The definition under another name, with the parts of its body that ran."""
    found = context.function = copy.deepcopy(node)
    why = write_collecting(found, context)
    context.local = context.own = set(local_names(found))
    context.handed = {argument.arg for argument in ast.walk(found.args) if isinstance(argument, ast.arg)}
    context.in_python = name == "__init__"
    _normalise(found, context)
    entered = node.name == "forward" and context.owner in context.program.facts.classes.get("", ())
    body = select_branches(found, context, entered=entered)
    if not context.in_python and control_flow.without_gradient_by_decorator(node):
        statements = control_flow.without_gradient(body, context)
    else:
        statements = [new for old in body for new in context.statement(old)]
    found.name, found.body = name, statements or [ast.Pass()]
    if lost := context.local - {*local_names(found)}:  # names assigned only in code that did not run, and raises
        text = context.place(node, "this did not run")

        def change(inner: ast.AST) -> ast.AST | None:
            read = isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load) and inner.id in lost
            return ast.Call(context.name(NOT_CONVERTED), [ast.Constant(text)], []) if read else None

        found.body = [substitute(statement, change) for statement in found.body]
    found.decorator_list = [item for item in node.decorator_list if isinstance(item, ast.Name) and item.id in KEPT]
    SignatureRewriter(context.program, context.file).signature(found)
    if why:
        found.body.insert(0, ast.Expr(context.missing(node, why)))
    return found


TOLD = """
def add_flags_recursive(self, **flags):
    \"\"\"MindSpore calls this for every cell when training begins or ends: `train` of torch's class.\"\"\"
    if 'training' not in flags:
        return super().add_flags_recursive(**flags)
    mode = flags['training']
"""


def as_told(train: ast.FunctionDef) -> ast.FunctionDef:
    """A class's own `train` under the name that MindSpore calls: for the cells inside, `set_train` calls
    `add_flags_recursive`, not their own `set_train`."""
    found = ast.parse(TOLD).body[0]
    assert isinstance(found, ast.FunctionDef)
    mode = next((argument.arg for argument in train.args.args[1:]), "mode")
    found.body[-1] = ast.parse(f"{mode} = flags['training']").body[0]
    for call in [node for node in ast.walk(train) if isinstance(node, ast.Call) and row_calls.is_super(node.func)]:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("train", "set_train"):
            value = call.args[0] if call.args else next((w.value for w in call.keywords), ast.Constant(True))
            call.func.attr, call.args = "add_flags_recursive", []
            flags = ast.Dict([None, ast.Constant("training")], [ast.Name("flags", ast.Load()), value])
            call.keywords = [ast.keyword(None, flags)]
    documented = ast.get_docstring(train) is not None
    found.body += train.body[1:] if documented else train.body
    return found


KEPT = ("staticmethod", "classmethod", "property")
# methods that torch calls to load, save, move or print a module, which are no part of what it computes
AROUND = re.compile(
    r"_?(load|save|register)\w*|state_dict|[sg]et_extra_state|_apply|_version|extra_repr|__(?!len__|contains__|iter__)\w+__"
)
SILENT = {*TABLES["decorators"]}
CALLED = ("eval", "__call__")  # called to run a model in torch, but not in MindSpore


def unseen_method(node: ast.FunctionDef, context: Context, *, wanted: bool) -> list[ast.FunctionDef]:
    """A method that did not run, by what can be inferred; one that raises, where that does not suffice. Methods that
    are no part of what a module computes are left out and listed, and so are unused methods of installed packages.

    wanted: whether an object may use the method to replace another one, so that it is written in any case.
    """
    if node.name in CALLED:
        context.missing(node, f"{node.name} of {short(context.owner)}, which torch calls, and MindSpore does not")
        return []
    around = AROUND.fullmatch(node.name) or node.name in replaced_methods.OF_CELLS
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
    plain = all(
        name in KEPT or name in silent or control_flow.without_gradient_by_decorator(node) for name in decorators
    )
    known = all(literal(default)[0] for default in defaults_of(node.args).values())
    if plain and known:
        made = rewrite_function(node, name, context)
    else:
        made = copy.deepcopy(node)
        made.name = name
        why = "its decorators" if known else "the defaults of its arguments"
        made.body = [control_flow.refused(context.did_not_run(node, f"{why} are not known"), node)]
        made.decorator_list = [item for item in node.decorator_list if ast.unparse(item) in KEPT]
    if any(isinstance(statement, ast.Raise) for statement in made.body[-1:]) and len(made.body) <= 2:
        made.args, made.returns = copy.deepcopy(node.args), None
        for argument in ast.walk(made.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        if not known:  # what its arguments begin with is not said
            first = [] if "staticmethod" in decorators else made.args.args[:1]
            made.args = ast.arguments([], first, ast.arg("args"), [], [], ast.arg("kwargs"), [])
    return made


def _decorator(node: ast.expr, context: Context) -> str:
    """The full name of a decorator, also of one with arguments."""
    return context.program.names(context.file).name(node.func if isinstance(node, ast.Call) else node)


def _normalise(function: ast.FunctionDef, context: Context) -> None:
    """Rewrite what Graph mode does not compile, and what MindSpore's CPU does not compute; in place."""
    if not context.in_python:
        name_kwargs(function, context.program)
        expand_nested_comprehensions(function)
        pick_by_index(function)
    hoist_walrus(function)
    hand_back(function, context.program)
    note_of_caller(function)
    write_through_views(function, context.program)
    context.local |= {*local_names(function)}
    graph_mode.start_with_braces(function)
    expand_kwargs(function, context.program)
    StridedSlices(context.program).visit(function)


@handles(syntax=[ast.Call])
def call(node: ast.Call, context: Context) -> ast.AST:
    """A call by the program's own source, or by the row of the mapping table."""
    if LOST in vars(node):
        raise Unwritable(vars(node)[LOST])
    callees = callees_of(node)
    as_base = any(name in context.program.translated and context.program.row(name) for name in callees)
    if not as_base and all(map(context.is_user_code, callees)):
        return context.kept(node)
    return row_calls.call_of_row(node, callees, context)


@handles(syntax=[ast.Subscript])
def item(node: ast.Subscript, context: Context) -> ast.AST:
    """A subscript; `a` for `(a, b)[0]`, to which some calls are rewritten."""
    found: ast.AST = context.generic_visit(node)
    match found:
        case ast.Subscript(ast.Tuple([first, *_]), ast.Constant(0), ast.Load()):
            return first
        case ast.Subscript(ast.Tuple([_, second, *_]), ast.Constant(1), ast.Load()):
            return second
    return found


@handles(syntax=[ast.Name])
def name(node: ast.Name, context: Context) -> ast.AST:
    """A name of Python's library, noted for the imports, or of a constant of the file."""
    if isinstance(node.ctx, ast.Load) and node.id not in context.local:
        node.id = context.program.python(context.file, node.id)
    return node
