"""How handlers rewrite one function: their registry, the program that all functions share, and the context of the
function that is rewritten."""

from __future__ import annotations

import ast
import copy
import math
from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ....mappings import table
from ....mappings.aliases import find
from ....mappings.rows import Call, Name, Row
from ...library_names import CELL_METHODS, CONTAINERS, INSTALLED, NOT_CONVERTED, TABLES, gives, named, otherwise
from ...source_files import REFUSED, SourceFiles, blocks_of, literal, none_anyway, of_gap, substitute, with_notes
from ..observe.instrument import ABOVE, Note, bound_inside
from ..observe.observations import (
    NONE,
    CallableKind,
    Kind,
    Made,
    ModuleKind,
    ObjectKind,
    Observations,
    PythonModule,
    always,
    callees_of,
    entries_of,
    kinds_of,
)
from . import ORDER

Namer = Callable[[str], ast.expr]  # gives the expression for a qualified MindSpore name


class Problem(NamedTuple):
    """What could not be written, where, and why; function: the one that it is in, if any."""

    file: str
    line: int
    text: str
    function: str = ""


class ObservedArgument(NamedTuple):
    """One argument of a call in the source: its expression, and what that was when it ran."""

    node: ast.expr
    kinds: list[Kind]
    constants: list[Any] | None  # None: it was something else than a few constants


def fill_template(template: str, nodes: Mapping[str, ast.expr], name: Namer) -> ast.expr:
    """The expression of a template such as `input.size`, with its names replaced by these nodes."""

    def fill(node: ast.AST) -> ast.expr | None:
        text = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if text.startswith(("mindspore.", "msmigrate.")):
            return name(text)
        return copy.deepcopy(nodes[text]) if isinstance(node, ast.Name) else None

    found: ast.expr = substitute(ast.parse(template, mode="eval").body, fill)
    return found


def inside_its_line(node: ast.stmt) -> bool:
    """Whether a statement's block stands in its own line, `if a: b`."""
    return any(getattr(one, "lineno", 0) == getattr(node, "lineno", -1) for part in blocks_of(node) for one in part)


def number_or_tuple(node: ast.expr, sides: int) -> ast.expr:
    """The expression for a size that may be a number or a list: of one number for all sides, or a number for each."""
    one = ast.unparse(node)
    return ast.parse(f"{one} if isinstance({one}, int) else tuple({one}) * ({sides} // len({one}))", mode="eval").body


def expression(value: Any, name: Namer) -> ast.expr:
    """A value of the table as an expression; names and calls are looked up by `name`."""
    if isinstance(value, Name):
        return name(str(value))
    if isinstance(value, Call):
        keywords = [ast.keyword(key, expression(item, name)) for key, item in value.kwargs.items()]
        return ast.Call(name(value.target), [], keywords)
    if isinstance(value, (tuple, list)):
        items = [expression(item, name) for item in value]
        return ast.Tuple(items, ast.Load()) if isinstance(value, tuple) else ast.List(items, ast.Load())
    if isinstance(value, float) and not math.isfinite(value):
        return ast.Call(ast.Name("float", ast.Load()), [ast.Constant(str(value))], [])
    return ast.parse(repr(value), mode="eval").body


class Given(dict[str, ObservedArgument]):
    """The arguments of a call under torch's names; by_value: those that crossed by values seen, or by any but these."""

    def __init__(self, items: Mapping[str, ObservedArgument], by_value: dict[str, Sequence[Any]] | None = None) -> None:
        super().__init__(items)
        self.by_value: dict[str, Sequence[Any]] = {} if by_value is None else by_value


def by_value(given: Mapping[str, ObservedArgument], name: str, refused: Sequence[Any] = ()) -> None:
    """Note that a computed argument crossed by the values that it had in the run; or by any but the refused ones."""
    if isinstance(given, Given) and name in given and not literal(given[name].node)[0]:
        given.by_value[name] = refused if given.by_value.get(name, refused) else ()


class Asked(dict[str, Any]):
    """Arguments by name, which notes the `names` that are read; computed: given without a known value, which raises a
    KeyError when read."""

    def __init__(self, items: Mapping[str, Any], computed: Collection[str] = ()) -> None:
        super().__init__(items)
        self.names: set[str] = set()
        self.computed = computed

    def __getitem__(self, key: str) -> Any:
        self.names.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The argument; its name is noted."""
        self.names.add(key)
        if key in self.computed:
            raise KeyError(key)
        return super().get(key, default)


UNSEEN = ObjectKind("")  # the kind of an expression that did not run, and of which nothing is known


class Unwritable(Exception):
    """There is no MindSpore source for this; the text says why."""


class ByComputedValue(Unwritable):
    """An argument crosses by the value of another one, which is computed."""


class Stage(IntEnum):
    """When a handler is called: for a statement in this order, for an expression in the last."""

    IN_PLACE = 1  # statements that write into tensors
    GRAPH_MODE = 2  # statements that Graph mode does not compile
    STATEMENT = 3
    EXPRESSION = 4


STATEMENTS = (Stage.IN_PLACE, Stage.GRAPH_MODE, Stage.STATEMENT)
Handler = Callable[[Any, "Context"], Any]  # (node, context) -> its replacement; None where the handler does not apply
_Handler = TypeVar("_Handler", bound=Callable[..., Any])


class _Entry(NamedTuple):
    """A handler with the names that it is registered for, some of which may be prefixes."""

    names: frozenset[str]
    prefixes: tuple[str, ...]
    handler: Handler


_BY_NAME: dict[tuple[Stage, str], _Entry] = {}
_BY_PREFIX: dict[Stage, list[tuple[str, _Entry]]] = {stage: [] for stage in Stage}
_BY_SYNTAX: dict[tuple[Stage, type[ast.AST]], list[Handler]] = {}


def handles(
    *callees: str, syntax: Sequence[type[ast.AST]] = (), stage: Stage = Stage.EXPRESSION
) -> Callable[[_Handler], _Handler]:
    """Register a handler for calls of certain callees, or for a form of syntax.

    callees: qualified names; one that ends with `*` is a prefix. At the stage of statements the handler gets a call
    that is a statement of its own, and returns a list of statements.
    """

    def register(handler: _Handler) -> _Handler:
        entry = _Entry(frozenset(callees), tuple(name[:-1] for name in callees if name.endswith("*")), handler)
        for name in callees:
            if name.endswith("*"):
                _BY_PREFIX[stage].append((name[:-1], entry))
            elif (stage, name) in _BY_NAME:
                raise ValueError(f"{name} has a handler at this stage: {_BY_NAME[stage, name].handler.__name__}")
            else:
                _BY_NAME[stage, name] = entry
        for kind in syntax:
            insort(_BY_SYNTAX.setdefault((stage, kind), []), entry.handler, key=_rank)
        return handler

    return register


def _rank(handler: Any) -> int:
    return ORDER.index(handler.__module__.rpartition(".")[2])


def by_callee(callees: Sequence[str], stage: Stage) -> Iterator[Handler]:
    """The handlers for a call of all of these names: for the exact name first, then for the longest prefix first."""
    first = callees[0] if callees else ""
    exact = _BY_NAME.get((stage, first))
    known = sorted(_BY_PREFIX[stage], key=lambda pair: -len(pair[0]))
    for entry in (*([exact] if exact else ()), *(entry for prefix, entry in known if first.startswith(prefix))):
        if all(name in entry.names or name.startswith(entry.prefixes) for name in callees):
            yield entry.handler


def has_handler(name: str) -> bool:
    """Whether a call of just this name has a handler."""
    return any((stage, name) in _BY_NAME for stage in Stage)


def by_syntax(node: ast.AST, stage: Stage) -> Sequence[Handler]:
    """The handlers for a form of syntax, in the order of their files, and within a file of their lines."""
    return _BY_SYNTAX.get((stage, type(node)), ())


def _of_self(node: ast.AST) -> Iterator[tuple[str, list[Kind]]]:
    """The attributes of `self` that a node reads, calls or assigns, and their kinds."""
    pairs: list[tuple[ast.expr, list[Kind]]] = []
    if isinstance(node, ast.Attribute):
        pairs = [(node, kinds_of(node))]
    elif isinstance(node, ast.Call):
        called = (name.removeprefix("module ") for name in callees_of(node) if name.startswith("module "))
        pairs = [(node.func, [ModuleKind(name) for name in called])]
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            targets, values = (target.elts, node.value.elts) if both else ([target], [node.value])  # type: ignore[attr-defined]
            pairs += [(one, kinds_of(value)) for one, value in zip(targets, values, strict=False)]
    for target, kinds in pairs:
        first, _, path = ast.unparse(target).partition(".") if isinstance(target, ast.Attribute) else ("", "", "")
        if first == "self":
            yield path, kinds


class Program(SourceFiles, ABC):
    """The files of a model and the new file that is made from them, as the handlers see it.

    definitions: the statements of the new file, by qualified name. translated: the qualified names of the classes and
    functions that are translated. settings: those of these functions that only return a package's settings. reads: the
    attributes that the model reads from its configurations. problems: what could not be written. not_run: code that did
    not run, and raises in the new file because too little is known of it.
    """

    def __init__(self, facts: Observations) -> None:
        super().__init__(facts)
        self.definitions: dict[str, ast.stmt] = {}
        self.problems: list[Problem] = []
        self.not_run: list[Problem] = []
        self.left_out: list[Problem] = []  # what the new file lacks, or takes to be as in the run, without an error
        self.unread: set[str] = set()  # functions that never ran, and that code which did not run calls
        self.given: dict[str, dict[str | int, list[Kind]]] = {}  # a class or function that never ran -> its arguments
        self.not_written: dict[str, dict[str, list[str]]] = {}  # file -> class -> methods that are no part of the model
        self.other_bases: dict[str, tuple[str, str]] = {}  # a class -> its base, and another with what it needs
        self._attributes: dict[str, dict[str, list[Kind]]] = {}
        self.reads: dict[str, dict[str, list[Any] | None]] = {}  # a configuration's class -> attribute -> its values
        self.translated = frozenset({*self.functions, *self.owners, *self.assigned})
        self.settings = frozenset(self.settings_functions())

    @abstractmethod
    def define(self, qualified: str) -> None:
        """Translate a class or function, after those that it uses."""

    @abstractmethod
    def maker(self, wanted: str, made: Made) -> str:
        """Define a function that makes this module; returns its name, the wanted one where that is free."""

    @abstractmethod
    def called(self, qualified: str) -> str:
        """The name in the new file of a class, function or constant: `pkg.layers.Block`, `layers.py:WIDTH`."""

    @abstractmethod
    def name(self, qualified: str) -> ast.expr:
        """The expression for a name of MindSpore, msmigrate or Python's library, noted for the imports."""

    @abstractmethod
    def imported_name(self, module: str, name: str) -> ast.expr:
        """A name that is imported from a module."""

    @abstractmethod
    def python(self, file: str, name: str) -> str:
        """Note a name of Python's library for the imports, or define a constant of the file; returns the new name."""

    @abstractmethod
    def constant(self, module: str, name: str, seen: Sequence[Any] | None) -> ast.expr | None:
        """A constant of a module of the program: its new name, or its `seen` value where that differs from its file's;
        None for anything else."""

    def row(self, name: str) -> Row | None:
        """The row by which a call is translated; for a class that has its torch base's constructor, the base's row."""
        if name not in self.translated:
            return self._as_called(row_of(name))
        for base in self.facts.bases(name):
            if base in self.translated:
                if f"{base}.__init__" in self.translated:
                    return None
            else:
                return None if base in CONTAINERS else self._as_called(row_of(base), derived=True)
        return None

    def torch_base(self, name: str) -> Row | None:
        """The row of the torch class that a class of modules is, or derives from."""
        rows = (row_of(base) for base in self.facts.bases(name) if base not in self.translated)
        return next((self._as_called(row, derived=name in self.translated) for row in rows if row is not None), None)

    def _as_called(self, row: Row | None, *, derived: bool = False) -> Row | None:
        """The row, or that of its other class: where a model's class derives from it, a call of such a layer has
        arguments that MindSpore's own does not take, a softmax was over one value, or its class is handed on."""
        other = row.otherwise if row is not None else None
        if other is None or row is None or (derived and row.mindspore in TABLES["derived_from"]):
            return other or row
        of_one = other.over_one_value and self.facts.softmax_of_one
        as_value = other.as_value and self.named & {other.torch, "__name__"}
        if of_one or as_value or (other.unless and other.torch in self.named and self._gives_other(other)):
            return other
        calls = self._layer_calls.get(other.torch, ()) if other.called_with else ()
        return other if any(gives(call, other.called_with) for call in calls) else row

    def _gives_other(self, other: Row) -> bool:
        """Whether a call that ran, or one at a file's top, needs this class: the layer's, or one in a variable."""
        ran = [(f.file, self.node(f)) for f in self.facts.functions if f.file in self.own_files]
        places = [*ran, *((file, self.tree(file)) for file in self.own_files)]
        of = {name for file, tree in places for name in otherwise(tree, other.unless, self.names(file).name)}
        return any(not name or other.torch in (name, *self.facts.bases(name)) for name in of)

    @cached_property
    def named(self) -> set[str]:
        """What the model's files, and functions of packages that ran, name (see `library_names.named`) or look up."""
        calls = (node for file in self.own_files for node in ast.walk(self.tree(file)) if isinstance(node, ast.Call))
        others = (f for f in self.facts.functions if f.file not in self.own_files)
        ran = [(f.file, self.node(f)) for f in others if not f.module.startswith(("torch.", "msmigrate."))]
        places = [*((file, self.tree(file)) for file in self.own_files), *ran]
        found = {kind.name for call in calls for kind in kinds_of(call) if isinstance(kind, CallableKind)}
        return found | {name for file, tree in places for name in named(tree, self.names(file).name)}

    @cached_property
    def own_files(self) -> set[str]:
        """The files that are the user's."""
        found = (file for module, file in self.modules.items() if not module.startswith("msmigrate."))
        return {file for file in found if not INSTALLED.intersection(Path(file).parts)}

    @cached_property
    def _layer_calls(self) -> dict[str, list[ast.Call]]:
        """The calls that ran of torch's layers, of classes that derive from them, and of their `forward`, by layer."""
        found: dict[str, list[ast.Call]] = {}
        nodes = (self.node(function) for function in self.facts.functions)
        inside = (inner for node in nodes if node is not None for inner in ast.walk(node))
        for call in (inner for inner in inside if isinstance(inner, ast.Call)):
            for name in callees_of(call):
                called = name.removeprefix("module ").removesuffix(".forward")
                if called != name and f"{called}.forward" not in self.functions:
                    bases = {called, *self.facts.bases(called)}
                    rows = (row_of(base) for base in bases if base.startswith("torch.nn."))
                    for torch in {row.torch for row in rows if row is not None}:
                        found.setdefault(torch, []).append(call)
        return found

    def attributes(self, owner: str) -> dict[str, list[Kind]]:
        """The kinds of the attributes of a class's objects, and of their attributes, `norm.weight`, in its methods."""
        if owner not in self._attributes:
            found: dict[str, list[Kind]] = {}
            methods = (f for base in self.facts.bases(owner) for f in self.owners.get(base, ()))
            for inner in (inner for method in methods for inner in ast.walk(self.node(method) or ast.Pass())):
                for path, kinds in _of_self(inner):
                    known = found.setdefault(path, [])
                    known += [kind for kind in kinds if kind not in known and kind != NONE]
            self._attributes[owner] = found
        return self._attributes[owner]

    def missing(self, problem: Problem) -> ast.Call:
        """A call that raises, for code that could not be written; it is noted for the report."""
        self.problems.append(problem)
        return ast.Call(self.name(NOT_CONVERTED), [ast.Constant(problem.text)], [])


class Context(ast.NodeTransformer):
    """The context of a handler: the function that its statement or expression is in, and methods to rewrite its parts.

    program: what all functions share. file: the function's file; owner: its class; function: itself. local: its local
    names; own: those of the innermost function in it. handed: its parameters. in_python: whether MindSpore never
    compiles it. builds: whether no forward gets to it. strict: whether code that cannot be written raises Unwritable
    instead of becoming an error in the file. adds: whether cells are added to one that already has its name, so that
    the names of those inside have to be set. in_type_check: "isinstance", or "type" where these are compared.
    """

    def __init__(self, program: Program, file: str, owner: str = "") -> None:
        self.program, self.file, self.owner = program, file, owner
        self.name = program.name
        self.function: ast.FunctionDef | None = None
        self.commented: set[int] = set()  # the lines whose comments are written
        self.moved: dict[int, list[Note]] = {}  # comments of statements of which only others are left, by their lines
        self.before: list[ast.stmt] = []  # statements to insert before the current one, such as checks of values
        self.after: list[ast.stmt] = []  # statements to insert after it
        # when the current expression raises, and what it says; None outside of expressions
        self.inside: list[tuple[ast.expr, ast.Constant]] | None = None
        self.local: set[str] = set()
        self.own: set[str] = set()
        self.handed: set[str] = set()
        self.in_type_check, self.in_python, self.builds, self.strict, self.adds = "", False, False, False, False

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """The statements for one of the source, with its comments, those of `before`, and those of `after`."""
        outer, self.before, self.after = (self.before, self.after), [], []
        above = [] if self.strict or not inside_its_line(node) else [n for n in self.notes(node) if n.place == ABOVE]
        above = [note for note in above if note.line not in self.commented]
        self.commented.update(note.line for note in above)
        try:
            found = self._statement(node)
        except Unwritable as error:  # from an expression other than a call: errors of calls are handled there
            if self.strict:
                raise
            found = [ast.Expr(self.missing(node, str(error)))]
        found = self._with_comments(node, [*self.before, *found, *self.after]) if found else []
        found = with_notes(found, above) if found else []
        self.before, self.after = outer
        return found

    def _with_comments(self, node: ast.stmt, found: list[ast.stmt]) -> list[ast.stmt]:
        """The statements for one, with the comments that belong to it, each once."""
        if self.strict or not hasattr(node, "lineno") or REFUSED in vars(node):
            return found
        notes = [note for note in self.notes(node) if note.line not in self.commented]
        self.commented.update(note.line for note in notes)
        return with_notes(found, notes)

    def notes(self, node: ast.stmt) -> list[Note]:
        """The comments that belong to a statement."""
        return self.moved.get(node.lineno, []) + self.program.notes(self.file, node.lineno)

    def guard(self, value: ast.expr, seen: Sequence[Any], node: ast.expr, refused: Sequence[Any] = ()) -> None:
        """Make the new file raise before the current statement where a value is none of those seen, or is refused."""
        text = f"{ast.unparse(value)} was {' or '.join(map(repr, seen)) or 'another'}"
        among = ast.Tuple([ast.Constant(one) for one in refused or seen], ast.Load())
        test: ast.cmpop = ast.In() if refused else ast.NotIn()
        self.raise_where(ast.Compare(copy.deepcopy(value), [test], [among]), value, text, node)

    def raise_where(self, test: ast.expr, value: ast.expr, text: str, node: ast.expr) -> None:
        """Make the new file raise where a test holds: before the statement, or in a comprehension in its place."""
        said = ast.Constant(self.place(node, text))
        names = {inner.id for inner in ast.walk(value) if isinstance(inner, ast.Name)}
        if self.inside is not None and names & bound_inside(self.function or node):
            self.inside.append((test, said))
            return
        error = ast.Call(ast.Name("NotImplementedError", ast.Load()), [said], [])
        question = ast.If(test, [ast.Raise(error, None)], [])
        if all(ast.unparse(question) != ast.unparse(one) for one in self.before):
            self.before.append(question)

    def place(self, node: ast.expr | ast.stmt, text: str) -> str:
        """The text of an error, with the line of the torch file."""
        return f"{Path(self.file).name}:{node.lineno}: when this was written, {text}"

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        found: list[ast.stmt] | None
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            for handler in by_callee(callees_of(node.value), Stage.STATEMENT):
                if (found := handler(node.value, self)) is not None:
                    return found
        for stage in STATEMENTS:
            for handler in by_syntax(node, stage):
                if (found := handler(node, self)) is not None:
                    return found
        return [self.visit(node)]

    def visit(self, node: ast.AST) -> Any:
        """An expression, rewritten by the first handler that applies, or else part by part."""
        outer, self.inside = self.inside, []
        try:
            found = self._expression(node)
            for test, said in self.inside:
                found = ast.IfExp(test, ast.Call(self.name(NOT_CONVERTED), [said], []), found)
            return found
        except Unwritable as error:
            if self.strict or not isinstance(node, ast.Call):
                raise
            return self.missing(node, str(error))
        finally:
            self.inside = outer

    def _expression(self, node: ast.AST) -> Any:
        by_name = by_callee(callees_of(node), Stage.EXPRESSION) if isinstance(node, ast.Call) else ()
        for handler in (*by_name, *by_syntax(node, Stage.EXPRESSION)):
            if (found := handler(node, self)) is not None:
                return found
        return self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> Any:
        """The same expression with its parts rewritten."""
        return super().generic_visit(node)

    def is_user_code(self, name: str) -> bool:
        """Whether a function is translated too, or is Python's own."""
        return (
            name in self.program.translated
            or name.rpartition(".")[0] in self.program.translated
            or (".<locals>." in name and not name.startswith("torch."))  # made in a function of the program
            or not name.startswith(("torch.", "torchvision.", "timm.", "module ", "object torch", "partial "))
            or name.startswith("module ")
        )

    def kept(self, call: ast.Call) -> ast.Call:
        """The same call with its function and arguments rewritten."""
        called, function = callees_of(call), call.func
        set_receivers(call, self._receivers(call))
        of_module = isinstance(function, ast.Attribute) and always(kinds_of(function.value), PythonModule)
        if of_module and called and called[0] in self.program.translated | self.program.unread:
            call.func = ast.Name(self.program.called(called[0]), ast.Load())
        elif isinstance(function, ast.Attribute) and not (called and called[0].startswith("module ")):
            attribute = CELL_METHODS.get(function.attr, function.attr)
            call.func = ast.Attribute(self.visit(function.value), attribute, ast.Load())
        else:
            call.func = self.visit(function)
        call.args = [self.visit(argument) for argument in call.args]
        layer = called[0].removeprefix("module ").removesuffix(".forward") if len(called) == 1 else ""
        words, given = TABLES["forwards"].get(layer, {}), self._expanded(call, called)
        first_ones = ["input", "target"] if called and called[0].startswith("module torch.nn.") else []
        for first in TABLES["by_position"].get(layer, first_ones)[len(call.args) :]:
            named = next((word for word in given if word.arg == first), None)
            if named is None:
                break
            given.remove(named)
            call.args.append(self.visit(named.value))
        call.keywords = [
            ast.keyword(words.get(word.arg, word.arg) if word.arg else None, self.visit(word.value))
            for word in given
            if word.arg is None or words.get(word.arg, word.arg)
        ]
        return call

    def _expanded(self, call: ast.Call, called: Sequence[str]) -> list[ast.keyword]:
        """The keywords; a `**dictionary` of None alone is left out if it goes to torch, or says where a tensor is."""
        found: list[ast.keyword] = []
        of_torch = any(name.removeprefix("module ").startswith("torch.") for name in called)
        for word in call.keywords:
            entries = entries_of(word.value) if word.arg is None else None
            of_places = entries is not None and {*entries} <= {"device", "dtype"}
            if not entries or not (of_torch or of_places) or any(kinds != [NONE] for kinds in entries.values()):
                found.append(word)  # there may be others another time
                continue
            if not of_places:
                test = f"any(value is not None for value in {(rest := ast.unparse(word.value))}.values())"
                self.raise_where(ast.parse(test, mode="eval").body, word.value, f"{rest} had no value but None", call)
            takes = [self.program.signature(name) for name in self._receivers(call)]
            missing = [key for key in entries or () if not all(one is None or none_anyway(one, key) for one in takes)]
            found += [ast.keyword(key, ast.Constant(None)) for key in missing]
        return found

    def _receivers(self, call: ast.Call) -> list[str]:
        """The functions and classes of the program that get a call's arguments, also by `partial`; "" for others."""
        names = callees_of(call)
        if names == ["functools.partial"] and call.args:
            names = [kind.name for kind in kinds_of(call.args[0]) if isinstance(kind, CallableKind)]
        found = [one for name in names if (one := name.removeprefix("partial ")) in self.program.translated]
        return [*found, *([""] if 0 < len(found) < len(names) else [])]  # of another one nothing is known

    def read(self, kinds: list[Kind], attribute: str, seen: list[Any] | None) -> None:
        """Note that an attribute is read of an expression of these kinds, for dataclasses_and_configs.py. Code that did
        not run does not replace what was seen elsewhere."""
        for kind in kinds:
            if isinstance(kind, ObjectKind):
                known = self.program.reads.setdefault(kind.cls, {})
                known[attribute] = known.get(attribute, seen) if self.strict or seen is None else seen

    @contextmanager
    def strictly(self) -> Iterator[None]:
        """Within the block, code that cannot be written raises Unwritable."""
        before, self.strict = self.strict, True
        try:
            yield
        finally:
            self.strict = before

    def did_not_run(self, node: ast.expr | ast.stmt, why: str) -> str:
        """Note code that did not run and raises in the new file; returns the text of its error."""
        self.program.not_run.append(Problem(self.file, node.lineno, why, getattr(self.function, "name", "")))
        return self.place(node, f"this did not run, and could not be read: {why}")

    def missing(self, node: ast.expr | ast.stmt, text: str) -> ast.Call:
        """A call that raises, for code that could not be written; it is noted for the report."""
        problem = Problem(self.file, node.lineno, text, getattr(self.function, "name", ""))
        return of_gap(self.program.missing(problem), node)


def row_of(name: str) -> Row | None:
    """The row of a torch name, also of one that no forward uses, such as an initializer."""
    return table.known(name) if name.startswith("torch.nn.init.") else find(name).row


def set_receivers(call: ast.Call, names: Sequence[str]) -> None:
    """Note on a call the functions and classes of the program that may get its arguments."""
    vars(call)["receivers"] = [*names]


def receivers(call: ast.Call) -> list[str]:
    """The names that `set_receivers` noted on a call."""
    return list(vars(call).get("receivers", ()))
