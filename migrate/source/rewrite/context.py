"""What the parts of a conversion see of each other: the program that is translated, the file that is written, and the
function in which a handler stands."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeVar

from ....errors import UnknownRow
from ....mappings import table
from ....mappings.aliases import find
from ....mappings.rows import Row
from ..observe.observations import Kind, Observations
from ..source_files import Imported

Namer = Callable[[str], ast.expr]  # the expression for a qualified name of MindSpore's
Reads = MutableMapping[str, dict[str, list[Any] | None]]  # a configuration's class -> what is read of it -> its values


class Problem(NamedTuple):
    """What could not be written, where, and why."""

    file: str
    line: int
    text: str


class ObservedArgument(NamedTuple):
    """What the source gives for one argument: its expression, and what that was when it ran."""

    node: ast.expr
    kinds: list[Kind]
    constants: list[Any] | None  # None: other things than a few constants


class Unwritable(Exception):
    """There is no MindSpore source for this; the text says why."""


class Program(Protocol):
    """What the functions of one model share while they are translated.

    translated: the qualified names of the classes and functions that are translated too. settings: the functions of
    these that only say how a package is set. reads: what the model reads of its configurations. problems: what could
    not be written.
    """

    facts: Observations
    translated: frozenset[str]
    settings: frozenset[str]
    reads: Reads
    problems: list[Problem]

    def name(self, qualified: str) -> ast.expr:
        """The expression for a name of MindSpore's, of msmigrate's or of Python's library, noted for the imports."""

    def called(self, qualified: str) -> str:
        """The name in the new file of a class, function or constant of the program."""

    def names(self, file: str) -> Imported:
        """What the names of a file stand for."""

    def is_global(self, file: str, name: str) -> bool:
        """Whether a file defines or imports a name at its top."""

    def python(self, file: str, name: str) -> str:
        """Note that a file's name for something of Python's own is used; the name that it has in the new file."""

    def constant(self, module: str, name: str, seen: Sequence[Any] | None) -> ast.expr | None:
        """A constant of a module of the program, which was `seen` to be these values; None for anything else."""

    def derives(self, name: str, base: str) -> bool:
        """Whether a module's class is another one, or has it among its bases."""

    def unseen(self, name: str) -> bool:
        """Whether a class or function was neither a value nor called."""

    def signature(self, name: str) -> ast.arguments | None:
        """What a function or class of the program takes; None for a class that is made as torch's is."""

    def row(self, name: str) -> Row | None:
        """The row by which a call of this name is translated."""

    def torch_base(self, name: str) -> Row | None:
        """The row of the class of torch's that a class of modules is, or comes from."""


class Definitions(Program, Protocol):
    """What is known of the new file by those who write its parts.

    definitions: what stands in it, by qualified name. all_files: the files of the program's modules.
    """

    definitions: dict[str, ast.stmt]
    all_files: dict[str, str]

    def define(self, qualified: str) -> None:
        """Translate a class or function, after those that it names."""

    def imported_name(self, module: str, name: str) -> ast.expr:
        """A name that is imported from a module."""

    def parameters(self, name: str) -> list[str]:
        """What a function or a class of the program takes by position."""

    def tree(self, file: str) -> ast.Module:
        """The parsed file."""


class Context(Protocol):
    """All that a handler sees: the function in which its statement or expression stands, and how to go on.

    program: what all functions share. local: the names that belong to the function; own: to the innermost of those in
    it. handed: its parameters. in_python: whether MindSpore never compiles it. strict: whether what cannot be written
    raises CannotWrite, and does not become a part of the file. adds: whether cells are added to one that has its name
    already. in_type_check: inside isinstance(…, …), where a class is a class.
    """

    program: Program
    file: str
    owner: str
    local: set[str]
    own: set[str]
    handed: set[str]
    in_python: bool
    strict: bool
    adds: bool
    in_type_check: bool

    def name(self, qualified: str) -> ast.expr:
        """The expression for a name of MindSpore's, of msmigrate's or of Python's library, noted for the imports."""

    def visit(self, node: ast.AST) -> Any:
        """An expression, rewritten."""

    def generic_visit(self, node: ast.AST) -> Any:
        """The same expression with its parts rewritten."""

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """What becomes of one statement: one, several or none."""

    def kept(self, call: ast.Call) -> ast.Call:
        """The same call with arguments that are rewritten."""

    def read(self, kinds: list[Kind], attribute: str, seen: list[Any] | None) -> None:
        """Note that an attribute is read, of an expression of these kinds."""

    def is_user_code(self, name: str) -> bool:
        """Whether a function or class is translated too, or of Python's own."""

    def missing(self, node: ast.expr | ast.stmt, text: str) -> ast.Call:
        """What stands where something could not be written: an error that says so, and a line of the report."""


class Stage(IntEnum):
    """When a handler is asked: of a statement in this order, of an expression in the last."""

    IN_PLACE = 1  # what writes into tensors
    GRAPH_MODE = 2  # what Graph mode does not compile
    STATEMENT = 3
    EXPRESSION = 4


STATEMENTS = (Stage.IN_PLACE, Stage.GRAPH_MODE, Stage.STATEMENT)
Handler = Callable[[Any, Context], Any]  # (node, context) -> what takes its place; None where it is not this handler's
_Handler = TypeVar("_Handler", bound=Callable[..., Any])


class _Entry(NamedTuple):
    """A handler with the names that it is registered for, of which some may be prefixes."""

    names: frozenset[str]
    prefixes: tuple[str, ...]
    handler: Handler


_BY_NAME: dict[tuple[Stage, str], _Entry] = {}
_BY_PREFIX: dict[Stage, list[tuple[str, _Entry]]] = {stage: [] for stage in Stage}
_BY_SYNTAX: dict[tuple[Stage, type[ast.AST]], list[Handler]] = {}


def handles(
    *callees: str, syntax: Sequence[type[ast.AST]] = (), stage: Stage = Stage.EXPRESSION
) -> Callable[[_Handler], _Handler]:
    """Register a handler for calls by what they call, or for a form of syntax.

    callees: qualified names; one that ends with `*` stands for all that begin so. At the stage of statements the
    handler gets the call that stands alone, and gives a list of statements.
    """
    prefixes = tuple(name[:-1] for name in callees if name.endswith("*"))

    def register(handler: _Handler) -> _Handler:
        entry = _Entry(frozenset(callees), prefixes, handler)
        for name in callees:
            if name.endswith("*"):
                _BY_PREFIX[stage].append((name[:-1], entry))
            elif (stage, name) in _BY_NAME:
                raise ValueError(f"{name} has a handler at this stage: {_BY_NAME[stage, name].handler.__name__}")
            else:
                _BY_NAME[stage, name] = entry
        for kind in syntax:
            _BY_SYNTAX.setdefault((stage, kind), []).append(handler)
        return handler

    return register


def by_callee(callees: Sequence[str], stage: Stage) -> Iterator[Handler]:
    """The handlers for a call of all of these names: that of the name itself, then those of the longest prefix."""
    if not callees:
        return
    exact = _BY_NAME.get((stage, callees[0]))
    entries = [] if exact is None else [exact]
    known = sorted(_BY_PREFIX[stage], key=lambda pair: -len(pair[0]))
    entries += [entry for prefix, entry in known if callees[0].startswith(prefix)]
    for entry in entries:
        if all(name in entry.names or name.startswith(entry.prefixes) for name in callees):
            yield entry.handler


def by_syntax(node: ast.AST, stage: Stage) -> Sequence[Handler]:
    """The handlers for a form of syntax, in the order in which they were registered."""
    return _BY_SYNTAX.get((stage, type(node)), ())


def row_of(name: str) -> Row | None:
    """The row of a torch name, also of one that is no part of a model as it computes, such as an initializer."""
    if name.startswith("torch.nn.init."):
        try:
            return table.row(name)
        except UnknownRow:
            return None
    return find(name).row


def set_receivers(call: ast.Call, names: Sequence[str]) -> None:
    """Note with a call which functions and classes of the program it may give its arguments to."""
    vars(call)["receivers"] = [*names]


def receivers(call: ast.Call) -> list[str]:
    """What was noted of a call by `set_receivers`."""
    return list(vars(call).get("receivers", ()))
