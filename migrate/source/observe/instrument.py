"""A function rewritten so that it reports which of its statements run, and what its expressions are.

Python's source does not say whether `x` is a tensor or a number, nor which class `norm_layer` stands for. So the
model is built and run once more with functions that report: every statement that is reached, and the value of every
expression, by the number of its node in the file. Nothing is imported from a framework here.

A syntax tree has no comments: `placed_notes` finds the statement that each belongs to.
"""

from __future__ import annotations
import __future__

import ast
import copy
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from inspect import cleandoc
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeGuard

from .observations import number_of

REACHED, VALUE, CALL = "_msmigrate_reached", "_msmigrate_value", "_msmigrate_call"
MANY = 64  # distinct texts that are reported of what is evaluated
FUTURE = __future__.annotations.compiler_flag
EXPRESSIONS = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.BoolOp, ast.IfExp, ast.Compare, ast.UnaryOp),
    *(ast.Tuple, ast.List, ast.Dict, ast.ListComp),
)


# functions whose texts decide what is written: patterns of einops, and names of classes and models
PATTERNED = ("rearrange", "reduce", "repeat", "einsum", "getattr", "create_model", "get_model")


def sliced(node: ast.stmt) -> TypeGuard[ast.Assign]:
    """Whether a statement writes into one slice, such as `x[:, a:b] = y`, whose index calls nothing; `d[key[2:]] = y`
    may make a new entry of a dictionary."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Subscript):
        return False
    part: ast.expr = node.targets[0]
    calls = any(isinstance(inner, (ast.Call, ast.NamedExpr, ast.Await)) for inner in ast.walk(part))
    places = list[ast.expr]()
    while isinstance(part, (ast.Subscript, ast.Attribute)):
        places += [part.slice] if isinstance(part, ast.Subscript) else []
        part = part.value
    items = [item for place in places for item in (place.elts if isinstance(place, ast.Tuple) else [place])]
    return not calls and any(isinstance(item, ast.Slice) for item in items)


class _Reporting(ast.NodeTransformer):
    """Inserts calls around expressions and before statements; `nodes`: the node's number at each site that reports."""

    def __init__(self, nodes: list[int]) -> None:
        self.nodes = nodes

    def report(self, name: str, node: ast.AST, *values: ast.expr) -> ast.Call:
        """A call that reports for a node, under the number of this site."""
        self.nodes.append(number_of(node))
        call = ast.Call(ast.Name(name, ast.Load()), [ast.Constant(len(self.nodes) - 1), *values], [])
        return ast.copy_location(call, node)

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements, each preceded by a report that it is reached."""
        reporting: list[ast.stmt] = []
        for index, statement in enumerate(body):
            docstring = index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not docstring and not isinstance(statement, (ast.Global, ast.Nonlocal)):
                report = ast.Expr(self.report(REACHED, statement))
                reporting.append(ast.copy_location(report, statement))
            if isinstance(statement, ast.AugAssign) and not isinstance(statement.target, ast.Subscript):
                there = copy.deepcopy(statement.target)
                there.ctx = ast.Load()
                reporting.append(ast.copy_location(ast.Expr(self.report(VALUE, statement.target, there)), statement))
            if sliced(statement):
                reporting.append(ast.copy_location(ast.Expr(self._emptiness(statement.targets[0])), statement))
            reporting.append(self.visit(statement))
        return reporting

    def _emptiness(self, target: ast.expr) -> ast.Call:
        """A report of whether a slice that is written to is empty."""
        there: Any = copy.deepcopy(target)
        there.ctx = ast.Load()
        shape = ast.Call(ast.Name("getattr", ast.Load()), [there, ast.Constant("shape"), ast.Tuple([], ast.Load())], [])
        return self.report(VALUE, target, ast.Compare(ast.Constant(0), [ast.In()], [shape]))

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit everything inside, blocks of statements by `block`; annotations stay as they are."""
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "bases", "pattern", "type_comment"):
                continue
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self.block(value))
            elif isinstance(value, list):
                setattr(node, name, [self.visit(item) if isinstance(item, ast.AST) else item for item in value])
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node

    def visit(self, node: ast.AST) -> Any:
        """The node, wrapped in a report of its value where it is an expression that is read."""
        if isinstance(node, ast.JoinedStr):
            return node
        if isinstance(node, ast.Slice):
            return self._ended(node)
        if not isinstance(node, EXPRESSIONS) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return self.generic_visit(node)
        if isinstance(node, ast.Name) and node.id == "super":
            return node
        if isinstance(node, ast.Call):
            return self.report(VALUE, node, self._call(node))
        found: Any = self.generic_visit(node)
        return self.report(VALUE, node, found)

    def _ended(self, node: ast.Slice) -> ast.AST:
        """The slice; of `:count` with a report whether count was 0, for nothing is in it then."""
        end = copy.deepcopy(node.upper)
        found = self.generic_visit(node)
        calls = (ast.Call, ast.NamedExpr, ast.Await)
        if node.lower is None and end is not None and not any(isinstance(inner, calls) for inner in ast.walk(end)):
            ended = ast.Compare(ast.Constant(0), [ast.In()], [ast.Tuple([end], ast.Load())])
            empty = self.report(VALUE, node, ended)
            node.upper = ast.Subscript(ast.Tuple([empty, node.upper or end], ast.Load()), ast.Constant(1), ast.Load())
        return found

    def _call(self, node: ast.Call) -> ast.Call:
        """The call, with a report around its function; the report returns what is to be called."""
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "vars", "dir", "eval", "exec"):
            if node.func.id == "eval":
                node.args = [self._text(one) for one in node.args]
            return node  # they depend on the frame that calls them
        function = node.func
        inner: Any = self.generic_visit(function) if isinstance(function, ast.Attribute) else self.visit(function)
        callee = self.report(CALL, function, inner)
        arguments = [self._argument(argument) for argument in node.args]
        keywords = [ast.keyword(keyword.arg, self.visit(keyword.value)) for keyword in node.keywords]
        if str(getattr(function, "attr", getattr(function, "id", ""))).lower() in PATTERNED:
            arguments = [self.report(VALUE, one, one) if isinstance(one, ast.JoinedStr) else one for one in arguments]
        return ast.copy_location(ast.Call(callee, arguments, keywords), node)

    def _text(self, node: ast.expr) -> ast.expr:
        """What is evaluated, of which many values are reported."""
        found: Any = self.report(VALUE, node, node) if isinstance(node, ast.JoinedStr) else self.visit(node)
        if isinstance(found, ast.Call):
            found.args.append(ast.Constant(MANY))
        return found

    def _argument(self, node: ast.expr) -> ast.expr:
        """An argument of a call; for `*sizes`, where `sizes` is a variable, the star reports how many there are."""
        if not isinstance(node, ast.Starred) or not isinstance(node.value, (ast.Name, ast.Attribute)):
            return self.visit(node)
        there = copy.deepcopy(node.value)
        length = ast.Call(
            ast.Name("getattr", ast.Load()), [there, ast.Constant("__len__"), ast.Name("int", ast.Load())], []
        )
        count = self.report(VALUE, node, ast.Call(length, [], []))
        both = ast.Tuple([count, self.visit(node.value)], ast.Load())
        node.value = ast.Subscript(both, ast.Constant(1), ast.Load())
        return node


def first_line(node: ast.FunctionDef) -> int:
    """The first line of a function in Python's code objects: that of its first decorator."""
    return node.decorator_list[0].lineno if node.decorator_list else node.lineno


def definition(tree: ast.Module, name: str, line: int) -> ast.FunctionDef | None:
    """The definition in a file's tree of the function that begins at a line; None for lambdas and classes."""
    known: dict[tuple[str, int], ast.FunctionDef] | None = vars(tree).get("definitions")
    if known is None:
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        known = vars(tree)["definitions"] = {(node.name, first_line(node)): node for node in reversed(nodes)}
    return known.get((name, line))


def qualified(tree: ast.AST, node: ast.FunctionDef) -> str:
    """The qualified name of a definition in a file's tree, such as `decorator.<locals>.wrapper`; empty if not in there.

    From Python 3.11 on a function's code object has it too.
    """
    for outer in ast.iter_child_nodes(tree):
        if outer is node:
            return node.name
        if inside := qualified(outer, node):
            name = getattr(outer, "name", "")
            function = isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef))
            return f"{name}.<locals>.{inside}" if function else f"{name}.{inside}" if name else inside
    return ""


def instrumented(node: ast.FunctionDef, function: FunctionType, nodes: list[int]) -> CodeType:
    """The code of a function that also reports; adds the node of every site that reports to `nodes`.

    node: the function's definition, which is not changed, since a function inside may be instrumented by itself. Raises
    ValueError where the compiled code does not have the same free variables.
    """
    code, node = function.__code__, copy.deepcopy(node)
    node.decorator_list = []
    node.body = _Reporting(nodes).block(node.body)
    inside: ast.stmt = node
    *_, owner, _ = ("", *function.__qualname__.split("."))
    if owner.isidentifier():  # the class's name is part of names that begin with two underscores
        inside = ast.copy_location(ast.ClassDef(owner, [], [], [node], []), node)
    enclosing = ast.parse("def _msmigrate_enclosing(): pass").body[0]
    assert isinstance(enclosing, ast.FunctionDef)
    enclosing.args.args = [ast.arg(name) for name in code.co_freevars if name != "__class__"]
    names = [name for name in (owner, node.name) if name.isidentifier() and name not in code.co_freevars]
    enclosing.body = [ast.Global(names), inside] if names else [inside]  # so that a function still finds its own name
    ast.copy_location(enclosing, node)
    flags = code.co_flags & FUTURE
    module = ast.fix_missing_locations(ast.Module([enclosing], []))
    for found in _codes(compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True)):
        if found.co_name == code.co_name and found.co_firstlineno == node.lineno:
            if found.co_freevars != code.co_freevars:
                raise ValueError(f"{code.co_name}: {found.co_freevars} instead of {code.co_freevars}")
            return found
    raise ValueError(f"{code.co_name} is not in what it was compiled to")


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Every code object inside."""
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _codes(const)


def install(function: FunctionType, code: CodeType, reached: Any, value: Any, call: Any) -> None:
    """Make a function run the instrumented code, which calls `reached`, `value` and `call`."""
    function.__globals__.update({REACHED: reached, VALUE: value, CALL: call})
    function.__code__ = code


TO_TOOLS = re.compile(r"#\s*(type:|noqa|fmt:|pylint:|pyright:|isort:|pragma:|region|endregion|$)")
PART = re.compile(rb"(\s*)(else|elif|except|finally)\b")
ABOVE, BEHIND, AFTER, OF_BLOCK = "above", "behind", "after", "of its block"


class Note(NamedTuple):
    """A comment: its line and text, and whether it stands above a statement, behind its first line, after it, or above
    it and for the whole block, as behind an `else:`."""

    line: int
    text: str
    place: str


class _Statement(NamedTuple):
    """A statement: its first and its last line, the last line before its blocks, and the statement that it is in."""

    node: ast.stmt
    first: int
    last: int
    header: int
    outer: _Statement | None


def _statements(owner: ast.AST, outer: _Statement | None = None) -> Iterator[_Statement]:
    """The statements inside of a node, in the order of the file."""
    for value in (value for _, value in ast.iter_fields(owner) if isinstance(value, list)):
        for node in value:
            if isinstance(node, ast.stmt):
                parts = [*getattr(node, "body", ()), *(one for case in getattr(node, "cases", ()) for one in case.body)]
                last = node.end_lineno or node.lineno
                header = max(node.lineno, _first(parts[0]) - 1) if parts else last
                yield (found := _Statement(node, _first(node), last, header, outer))
                yield from _statements(node, found)
            elif isinstance(node, (ast.ExceptHandler, ast.match_case)):
                yield from _statements(node, outer)


def _first(node: ast.stmt) -> int:
    """The first line of a statement, with its decorators."""
    return min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))])


def comments_of(content: bytes) -> Iterator[tuple[int, int, str, bool]]:
    """The comments of a file, without those for tools: line, column, text, and whether each is alone in its line."""
    with suppress(tokenize.TokenError):  # ast reads such files
        for token in [*tokenize.tokenize(io.BytesIO(content).readline)]:
            if token.type == tokenize.COMMENT and not TO_TOOLS.match(token.string):
                said = token.string.lstrip("#").rstrip()
                said = said if said[:1] == " " else f" {said}"
                yield (*token.start, f"#{said}", token.line.lstrip().startswith("#"))


@lru_cache(maxsize=100)
def placed_notes(content: bytes) -> dict[int, list[Note]]:
    """The comments of a file, by the line of the statement that each belongs to.

    One at the end of a block belongs to the last statement there, one behind `else:` to the first below. Those of an
    `elif` or a docstring belong to the next statement. Of several on a statement's lines, each is above it. A string
    between a file's classes and functions is a comment, too.
    """
    tree, lines = ast.parse(content), enumerate(content.splitlines(), 1)
    parts = {number: len(begin[1]) for number, line in lines if (begin := PART.match(line))}
    order = [*_statements(tree)]
    documented = (node for node in ast.walk(tree) if isinstance(node, (ast.ClassDef, ast.FunctionDef)))
    docstrings = {node.body[0] for node in documented if ast.get_docstring(node) is not None}
    found: dict[int, list[Note]] = {}
    for line, column, text, alone in comments_of(content):
        place, statement = _place(line, column, order, parts, alone=alone)
        if statement is None:
            continue
        if place != AFTER and (statement.node in docstrings or _is_elif(statement.node, parts)):
            following = order[order.index(statement) + 1 :][:1]
            if following and following[0].outer in (statement, statement.outer):
                place, statement = ABOVE, following[0]
            elif statement.node in docstrings:
                place = AFTER
        if place == BEHIND and (takes := _taken(statement.node, line)):
            place, text = ABOVE, f"# {', '.join(takes)}: {text[2:]}"
        found.setdefault(statement.node.lineno, []).append(Note(line, text, place))
    for notes in found.values():
        if len([note for note in notes if note.place == BEHIND]) > 1:
            notes[:] = [note._replace(place=ABOVE) if note.place == BEHIND else note for note in notes]
    for above, below in pairwise(tree.body[ast.get_docstring(tree) is not None :]):
        if isinstance(above, ast.Expr) and isinstance(above.value, ast.Constant) and isinstance(above.value.value, str):
            said = [f"# {line}" for line in cleandoc(above.value.value).splitlines()]
            next_to = _first(below) - len(said)  # as if it stood right above the statement
            notes = [Note(next_to + number, line, ABOVE) for number, line in enumerate(said)]
            found[below.lineno] = [*notes, *found.get(below.lineno, [])]
    return found


def _taken(node: ast.stmt, line: int) -> list[str]:
    """The parameters in this line of a signature of several lines."""
    takes = [n for n in ast.walk(node.args) if isinstance(n, ast.arg)] if isinstance(node, ast.FunctionDef) else []
    return [n.arg for n in takes if n.lineno == line and n.arg != "self"] if len({n.lineno for n in takes}) > 1 else []


def _is_elif(node: ast.stmt, parts: dict[int, int]) -> bool:
    return isinstance(node, ast.If) and parts.get(node.lineno) == node.col_offset


def _place(
    line: int, column: int, order: list[_Statement], parts: dict[int, int], *, alone: bool
) -> tuple[str, _Statement | None]:
    """Where a comment stands, and the statement that it belongs to; None where it is below everything."""
    before = [one for one in order if one.first <= line]
    last = before[-1] if before else None  # the innermost
    after = next((one for one in order if one.first > line), None)
    compound = last is not None and last.header < last.last
    if last is not None and line <= last.header and not (compound and alone):
        return BEHIND if not alone and (compound or line in (last.first, last.last)) else ABOVE, last
    between = [indent for number, indent in parts.items() if last is not None and last.last < number <= line]
    if last is None or not alone or between or (after is not None and after.outer is last and line <= last.header):
        return ABOVE if alone else OF_BLOCK, after
    below = [indent for number, indent in parts.items() if line < number and (after is None or number <= after.first)]
    limit = min([*below, after.node.col_offset if after is not None else 0])
    one: _Statement | None = last
    while one is not None and one.node.col_offset > max(limit, column) and one.outer is not None:
        one = one.outer
    if column > limit and one is not None and one.node.col_offset > limit:
        return AFTER, one
    return ABOVE, after


def bound_inside(function: ast.AST) -> set[str]:
    """The names that lambdas and comprehensions bind."""
    found: set[str] = set()
    for part in ast.walk(function):
        if isinstance(part, ast.comprehension):
            found |= {inner.id for inner in ast.walk(part.target) if isinstance(inner, ast.Name)}
        elif isinstance(part, ast.Lambda):
            found |= {inner.arg for inner in ast.walk(part.args) if isinstance(inner, ast.arg)}
    return found


INSIDE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)  # with a scope of their own


def always_evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """The parts that are evaluated whenever an expression is, and itself, innermost and leftmost first."""
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, INSIDE):
        return
    if isinstance(node, ast.BoolOp):
        children = node.values[:1]
    elif isinstance(node, ast.IfExp):
        children = [node.test]
    elif isinstance(node, ast.Compare):
        children = [node.left, *node.comparators[:1]]
    for child in children:
        yield from always_evaluated(child)
    yield node
