"""One function of a torch model as a function of a MindSpore Cell: its body normalised, its branches selected, and its
statements and expressions rewritten by the handlers that are registered for them.

Also einops' patterns, `"b n (h d) -> b h n d"`, as functions of reshape and transpose, one for each pattern of a file.
A pattern names every axis of a tensor. Its function takes the tensor, and the sizes that the call gives by name.
"""

from __future__ import annotations

import ast
import copy
import keyword
import re
import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ..library_names import INSTALLED, NOT_CONVERTED, TABLES
from ..observe.observations import (
    PythonModule,
    TensorKind,
    callees_of,
    constants_of,
    kinds_of,
    replacing,
    set_callee,
    set_kinds,
)
from ..source_files import defaults_of, literal, local_names, short, substitute
from . import control_flow, graph_mode, library_lookups, modules, records, row_calls, tensors
from .context import Context, Unwritable, handles
from .control_flow import pick_by_index, select_branches
from .graph_mode import expand_nested_comprehensions, hoist_walrus
from .signatures import SignatureRewriter, expand_kwargs
from .tensors import StridedSlices, note_of_caller
from .views import write_through_views

# the files whose handlers are registered as they are imported
HANDLERS = (library_lookups, records, modules, tensors, graph_mode, control_flow)


def rewrite_function(node: ast.FunctionDef, name: str, context: Context) -> ast.FunctionDef:
    """The definition under another name, with what ran of its body."""
    found = context.function = copy.deepcopy(node)
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
    if lost := context.local - {*local_names(found)}:  # to which only what did not run, and raises, gave a value
        text = context.place(node, "this did not run")

        def change(inner: ast.AST) -> ast.AST | None:
            read = isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load) and inner.id in lost
            return ast.Call(context.name(NOT_CONVERTED), [ast.Constant(text)], []) if read else None

        found.body = [substitute(statement, change) for statement in found.body]
    found.decorator_list = [item for item in node.decorator_list if isinstance(item, ast.Name) and item.id in KEPT]
    SignatureRewriter(context.program, context.file).signature(found)
    return found


TOLD = """
def add_flags_recursive(self, **flags):
    \"\"\"MindSpore tells every cell so that training begins or ends: `train` of torch's class.\"\"\"
    if 'training' not in flags:
        return super().add_flags_recursive(**flags)
    mode = flags['training']
"""


def as_told(train: ast.FunctionDef) -> ast.FunctionDef:
    """A class's own `train` under the name by which MindSpore calls it: `set_train` tells the cells inside by
    `add_flags_recursive`, and not by their own `set_train`."""
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
# what torch itself calls as it loads, saves, moves or shows a module, and no part of what it computes
AROUND = re.compile(
    r"_?(load|save|register)\w*|state_dict|[sg]et_extra_state|_apply|_version|extra_repr|__(?!len__|contains__|iter__)\w+__"
)
SILENT = {*TABLES["decorators"]}
CALLED = ("eval", "__call__")  # by who runs a model; MindSpore has another way


def unseen_method(node: ast.FunctionDef, context: Context) -> list[ast.FunctionDef]:
    """A method that did not run, by what is known of it; one that raises, where that does not suffice. What is around
    a module and not in what it computes is listed, and so is what did not run of an installed package."""
    program = context.program
    if node.name in CALLED:
        context.missing(node, f"{node.name} of {short(context.owner)}, which torch calls, and MindSpore does not")
        return []
    if AROUND.fullmatch(node.name) or INSTALLED.intersection(Path(context.file).parts):
        program.not_written.setdefault(context.file, {}).setdefault(short(context.owner), []).append(node.name)
        return []
    name = "construct" if node.name == "forward" else node.name
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
        first = [] if "staticmethod" in decorators else made.args.args[:1]
        made.args = ast.arguments([], first, ast.arg("args"), [], [], ast.arg("kwargs"), [])
        if "property" in decorators:
            made.args.vararg = made.args.kwarg = None
        made.returns = None
    return [made]


def _decorator(node: ast.expr, context: Context) -> str:
    """The full name of a decorator, of one with arguments too."""
    return context.program.names(context.file).name(node.func if isinstance(node, ast.Call) else node)


def _normalise(function: ast.FunctionDef, context: Context) -> None:
    """Spell out what Graph mode does not compile, and what MindSpore's CPU does not compute; in place."""
    if not context.in_python:
        expand_nested_comprehensions(function)
        pick_by_index(function)
    hoist_walrus(function)
    note_of_caller(function)
    write_through_views(function)
    context.local |= {*local_names(function)}
    graph_mode.start_with_braces(function)
    expand_kwargs(function, context.program)
    StridedSlices(context.program).visit(function)


@handles(syntax=[ast.Call])
def call(node: ast.Call, context: Context) -> ast.AST:
    """A call by the program's own source, or by the row of the mapping table."""
    callees = callees_of(node)
    as_base = any(name in context.program.translated and context.program.row(name) for name in callees)
    if not as_base and all(map(context.is_user_code, callees)):
        return context.kept(node)
    return row_calls.call_of_row(node, callees, context)


@handles(syntax=[ast.Subscript])
def item(node: ast.Subscript, context: Context) -> ast.AST:
    """A subscript; of `(a, b)[0]`, which some calls became, `a`."""
    found: ast.AST = context.generic_visit(node)
    match found:
        case ast.Subscript(ast.Tuple([first, *_]), ast.Constant(0), ast.Load()):
            return first
        case ast.Subscript(ast.Tuple([_, second, *_]), ast.Constant(1), ast.Load()):
            return second
    return found


@handles(syntax=[ast.Name])
def name(node: ast.Name, context: Context) -> ast.AST:
    """A name of Python's own, noted for the imports, or of a constant of the file."""
    if isinstance(node.ctx, ast.Load) and node.id not in context.local:
        node.id = context.program.python(context.file, node.id)
    return node


EINOPS = {f"einops.einops.{word}": word for word in ("rearrange", "repeat", "reduce")}
EINOPS_LAYERS = {"einops.layers.torch.Rearrange": "rearrange", "einops.layers.torch.Reduce": "reduce"}
REDUCTIONS = {"mean": "mean", "sum": "sum", "max": "amax", "min": "amin"}  # -> of mindspore.ops
LAYER = '''
class Rearranged(nn.Cell):
    """A change of axes as a layer."""

    def __init__(self, change, *sizes):
        super().__init__()
        self.change, self.sizes = change, sizes

    def construct(self, x):
        return self.change(x, *self.sizes)
'''


class Pattern(NamedTuple):
    """What becomes of a tensor's axes: both sides of a pattern, as groups of axes of which each becomes one.

    what: rearrange, repeat or reduce; reduction: by what. given: the axes whose sizes the call names.
    """

    text: str
    left: list[list[str]]
    right: list[list[str]]
    what: str
    reduction: str
    given: list[str]

    @property
    def name(self) -> str:
        """`b_n_hd_to_b_h_n_d` behind what is done."""
        sides = ("_".join("".join(group) or "1" for group in side) for side in (self.left, self.right))
        return f"{self.reduction or self.what}_{'_to_'.join(sides)}"

    def fault(self, why: str = "") -> Unwritable:
        """What is raised where it cannot be written."""
        return Unwritable(f"einops' {self.what} with {self.text!r}{why}: write it with reshape and permute")


@handles(*EINOPS)
def of_tensor(node: ast.Call, context: Context) -> ast.expr:
    """`rearrange(x, "b n (h d) -> b h n d", h=8)` as a call of that pattern's function."""
    kinds = kinds_of(node.args[0]) if node.args else []
    dimensions = {kind.rank if isinstance(kind, TensorKind) else None for kind in kinds}
    pattern, tensor, sizes = _pattern(node, context, EINOPS, dimensions.pop() if len(dimensions) == 1 else None)
    order = _order(pattern)
    if pattern.what == "rearrange" and order is not None:
        axes = ast.Tuple([ast.Constant(place) for place in order], ast.Load())
        return ast.Call(context.name("mindspore.ops.transpose"), [tensor, axes], [])
    return ast.Call(_function(pattern, context), [tensor, *sizes], [])


@handles("einops.einops.einsum")
def named_einsum(node: ast.Call, context: Context) -> ast.expr:
    """`einsum(x, y, "batch row, row column -> batch column")` with a letter for each name."""
    *tensors, text = node.args
    known = [text.value] if isinstance(text, ast.Constant) else constants_of(text) or []
    said = str(known[0]).replace("…", "...") if len(known) == 1 else ""
    names = dict.fromkeys(re.findall(r"[^\W\d]\w*", said))
    letters = dict(zip(names, string.ascii_letters, strict=False))
    if not names or node.keywords or len(letters) < len(names) or re.search(r"[()\d]", said):
        raise Unwritable(f"einops' einsum with {ast.unparse(text)}: write torch.einsum")
    equation = re.sub(r"[^\W\d]\w*", lambda found: letters[found[0]], said).replace(" ", "")
    torch = set_kinds(ast.Name("torch", ast.Load()), [PythonModule("torch")])
    called = replacing(ast.Attribute(torch, "einsum", ast.Load()), node.func)
    set_callee(called, "torch.einsum")
    found: ast.expr = context.visit(replacing(ast.Call(called, [ast.Constant(equation), *tensors], []), node))
    return found


@handles(*EINOPS_LAYERS)
def as_layer(node: ast.Call, context: Context) -> ast.expr:
    """`Rearrange("b c h w -> b (h w) c")` as a small Cell of that pattern's function."""
    node.args.insert(0, ast.Constant(None))
    pattern, _, sizes = _pattern(node, context, EINOPS_LAYERS, None)
    context.program.definitions.setdefault("einops:Rearranged", ast.parse(LAYER).body[0])
    return ast.Call(ast.Name("Rearranged", ast.Load()), [_function(pattern, context), *sizes], [])


def _pattern(
    node: ast.Call, context: Context, names: Mapping[str, str], dimensions: int | None
) -> tuple[Pattern, ast.expr, list[ast.expr]]:
    """The pattern, and the tensor and the sizes as they are given. Raises Unwritable."""
    words = {word.arg: word.value for word in node.keywords}
    reduction = words.pop("reduction", node.args[2] if len(node.args) > 2 else ast.Constant(""))
    what = names[callees_of(node)[0]]
    said = []
    for text in (node.args[1] if len(node.args) > 1 else words.pop("pattern", ast.Constant(None)), reduction):
        known = [text.value] if isinstance(text, ast.Constant) else constants_of(text)
        if known is None or len(known) != 1 or not isinstance(known[0], str) or None in words:
            raise Unwritable(f"einops' {what} with {ast.unparse(text)}, which is not always the same text")
        said.append(known[0])
    given = [str(key) for key in words]
    pattern = Pattern(said[0], *_sides(said[0], dimensions), what, said[1], given)
    return pattern, context.visit(node.args[0]), [context.visit(value) for value in words.values()]


def _sides(text: str, dimensions: int | None) -> tuple[list[list[str]], list[list[str]]]:
    """Both sides of a pattern, where `...` stands for what is left of so many dimensions. Raises Unwritable."""
    sides = [[*_groups(side)] for side in text.split("->")]
    names = [name for side in sides for group in side for name in group]
    plain = all(re.fullmatch(r"[^\W\d]\w*|\d+|\.\.\.", name) and not keyword.iskeyword(name) for name in names)
    if len(sides) != 2 or not plain:
        raise Unwritable(f"einops' pattern {text!r}: write it with reshape and permute")
    if "..." not in names:
        return sides[0], sides[1]
    if dimensions is None:
        raise Unwritable(f"einops' pattern {text!r} of tensors of any number of dimensions: write the axes out")
    rest = [f"rest{number}" for number in range(dimensions - len(sides[0]) + 1)]
    opened = []
    for side in sides:
        whole = [[[name] for name in rest] if group == ["..."] else [group] for group in side]
        flat = [group for groups in whole for group in groups]
        opened.append([[n for name in group for n in (rest if name == "..." else [name])] for group in flat])
    return opened[0], opened[1]


def _groups(side: str) -> Iterator[list[str]]:
    """The axes of one side, one group for each that they become; those of size 1 are in none."""
    for inside, alone in re.findall(r"\(([^()]*)\)|([^\s()]+)", side.replace("…", "...")):
        yield [name for name in (inside.split() if not alone else [alone]) if name != "1"]


def _order(pattern: Pattern) -> list[int] | None:
    """The order of axes, where that is all that changes."""
    left, right = (["".join(group) for group in side] for side in (pattern.left, pattern.right))
    alone = all(len(group) == 1 for group in (*pattern.left, *pattern.right))
    return [left.index(name) for name in right] if alone and sorted(left) == sorted(right) else None


def _function(pattern: Pattern, context: Context) -> ast.expr:
    """The name of the pattern's function, which is defined where it is not yet."""
    key = f"einops:{pattern.name}"
    if key not in context.program.definitions:
        context.program.definitions[key] = ast.parse(_written(pattern, context)).body[0]
    return ast.Name(pattern.name, ast.Load())


def _written(pattern: Pattern, context: Context) -> str:
    """The function's source."""
    inside = [axis for group in pattern.left for axis in group]
    made = [axis for group in pattern.right for axis in group]
    new, gone = [a for a in made if a not in inside], [a for a in inside if a not in made]
    known = {*inside, *pattern.given}
    other = (new and pattern.what != "repeat") or (gone and pattern.what != "reduce")  # another function's work
    if other or not {*filter(str.isidentifier, made)} <= known:
        raise pattern.fault()
    x = "x" if "x" not in known else "tensor"
    lines = [*_sizes(pattern, x)]
    if any(len(group) != 1 for group in pattern.left):
        lines.append(f"{x} = {x}.reshape({', '.join(inside)})")
    if gone:
        if pattern.reduction not in REDUCTIONS:
            raise pattern.fault(f" by {pattern.reduction or 'a function of your own'}")
        reduce = ast.unparse(context.name(f"mindspore.ops.{REDUCTIONS[pattern.reduction]}"))
        places = [inside.index(axis) for axis in gone]
        lines.append(f"{x} = {reduce}({x}, {places[0] if len(places) == 1 else tuple(places)})")
    kept, order = [a for a in inside if a in made], [a for a in made if a in inside]
    if order != kept:
        places = [kept.index(axis) for axis in order]
        lines.append(f"{x} = {ast.unparse(context.name('mindspore.ops.transpose'))}({x}, {tuple(places)})")
    if new:
        lines.append(f"{x} = {x}.reshape({', '.join(axis if axis in order else '1' for axis in made)})")
        lines.append(f"{x} = {ast.unparse(context.name('mindspore.ops.broadcast_to'))}({x}, ({', '.join(made)},))")
    ends = [" * ".join(group) or "1" for group in pattern.right]
    lines.append(f"return {x}" if ends == made else f"return {x}.reshape({', '.join(ends) or '()'})")
    if lines[-2:] == [last := lines[-2], f"return {x}"] and last.startswith(f"{x} = "):
        lines[-2:] = [f"return {last.removeprefix(f'{x} = ')}"]
    body = "".join(f"    {line}\n" for line in lines)
    return f'def {pattern.name}({", ".join([x, *pattern.given])}):\n    """`{pattern.text}`"""\n{body}'


def _sizes(pattern: Pattern, x: str) -> Iterator[str]:
    """`b, n, h_d = x.shape`, and `d = h_d // h`."""
    wholes = ["_".join(group) or "_" for group in pattern.left]
    yield f"{', '.join(wholes)}{',' * (len(wholes) == 1)} = {x}.shape"
    for group, whole in zip(pattern.left, wholes, strict=True):
        unknown = [axis for axis in group if axis not in pattern.given]
        if len(unknown) > 1:
            raise pattern.fault(f": the sizes of {' and '.join(unknown)} are not given")
        others = " * ".join(axis for axis in group if axis in pattern.given)
        if unknown and others:
            yield f"{unknown[0]} = {whole} // {others if ' ' not in others else f'({others})'}"
