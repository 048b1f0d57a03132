"""A function's signature: type hints, defaults, `**kwargs` written out; and its decorators.

A decorator cannot simply be kept: where it uses functools.wraps, MindSpore's compiler reads the source of the function
inside, and silently ignores the wrapper (benchmarks/graph_decorators_mindspore.py).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

from ...library_names import COUNTERPARTS, TABLES, dtype_name, is_dtype
from ...source_files import SourceFiles, all_parameters, comment, defaults_of, local_names
from ..observe.observations import (
    NONE,
    CallableKind,
    DictKind,
    Function,
    Kind,
    PlainKind,
    SequenceKind,
    callees_of,
    entries_of,
    kinds_of,
    of_constant,
    reached,
    set_kinds,
)
from .autograd_functions import made_of, own_gradient
from .context import Context, Problem, Program, Stage, Unwritable, handles, row_of, set_receivers
from .library_lookups import write_reference
from .row_calls import bind_arguments, is_super, known_argument

UNNAMED = ("torch.dtype", "torch.device")  # MindSpore has no public class for these


class SignatureRewriter(ast.NodeTransformer):
    """Rewrites code outside the bodies of the functions that ran: hints, defaults and constants."""

    def __init__(self, program: Program, file: str) -> None:
        self.program, self.file, self.resolve = program, file, program.names(file).name
        self.value = False  # inside a value, where a class gets torch's defaults, and a string is no hint

    def hint(self, node: ast.expr) -> ast.expr:
        """A type hint with MindSpore's classes."""
        before, self.value = self.value, False
        found: ast.expr = self.visit(node)
        self.value = before
        return found

    def base(self, node: ast.expr, of: str) -> ast.expr:
        """A base of the class `of`; a problem for one of torch's without a counterpart, if the model has `of`."""
        name, found = self.resolve(node), self.hint(node)
        if (row := row_of(name)) is not None and row.mindspore in TABLES["derived_from"]:
            return self.program.name(TABLES["derived_from"][row.mindspore])
        if name.partition(".")[0] != "torch" or not ast.unparse(found).endswith("Any"):
            return found
        if any(of in order for order in self.program.facts.orders):
            self.program.missing(Problem(self.file, node.lineno, f"{name} has no row in the mapping table"))
        return (
            self.program.name("mindspore.nn.Cell") if name.startswith("torch.nn.") else ast.Name("object", ast.Load())
        )

    def signature(self, function: ast.FunctionDef) -> None:
        """Rewrite the hints and defaults of a definition."""
        given = function.args
        for argument in all_parameters(given):
            if argument.annotation is not None:
                argument.annotation = self.hint(argument.annotation)
        if function.returns is not None:
            function.returns = self.hint(function.returns)
        given.defaults = [self._of_parameter(item) for item in given.defaults]
        given.kw_defaults = [None if item is None else self._of_parameter(item) for item in given.kw_defaults]

    def _of_parameter(self, node: ast.expr) -> ast.expr:
        """The default of a parameter; None for a class that was never used, and that the file does not have."""
        name = self.resolve(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        known = name in self.program.translated or name.startswith("torch.")
        return ast.Constant(None) if name and not known and self.program.unseen(name) else self.default(node)

    def default(self, node: ast.expr) -> ast.expr:
        """A default; a torch class gets torch's defaults, also inside of `partial`."""
        if isinstance(node, ast.Call) and self.resolve(node.func) == "functools.partial" and node.args:
            return self._partial(node)
        if isinstance(node, ast.Call) and self.resolve(node.func) == "torch.device" and node.args:
            return node.args[0]  # as a string, as devices are in the new file
        name = self.resolve(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if name.endswith(".apply") and own_gradient(name.removesuffix(".apply"), self.program) is not None:
            return made_of(name.removesuffix(".apply"), self.program)
        if name.startswith("torch.") and is_dtype(name.removeprefix("torch.")):
            return self.program.name(dtype_name(name.removeprefix("torch.")))
        row = self.program.row(name) if name and name not in {*TABLES["classes"], *self.program.translated} else None
        if row is not None and row.mindspore:
            return write_reference(row, {}, self.program.name)
        before, self.value = self.value, True
        found: Any = self._class(node) if isinstance(node, (ast.Name, ast.Attribute)) else self.generic_visit(node)
        self.value = before
        return found

    def _partial(self, node: ast.Call) -> ast.expr:
        name = self.resolve(node.args[0])
        row = self.program.row(name)
        words = {word.arg: known_argument(self.default(word.value)) for word in node.keywords if word.arg is not None}
        if row is None:
            keywords = [ast.keyword(key, item.node) for key, item in words.items()]
            first = self.hint(node.args[0])
            rest = list(map(self.default, node.args[1:]))
            made = ast.Call(self.program.name("functools.partial"), [first, *rest], keywords)
            set_receivers(made, [name])
            return made
        try:
            given = bind_arguments(row, [*map(known_argument, node.args[1:])], words)
            found = write_reference(row, given, self.program.name, a_partial="functools.partial" in self.program.named)
        except Unwritable:
            return node
        if name in self.program.translated and isinstance(found, ast.Call):
            found.args[0] = self.hint(node.args[0])
        return found

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """MindSpore's class for one of torch; for a class of the program the name of its definition."""
        return self.default(node) if self.value else self._class(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """The same with a module in front; torch's version as it is now."""
        if (name := self.resolve(node)).startswith("torch.__version__"):
            version = ast.Constant(metadata.version("torch").partition("+")[0])
            return version if name.endswith("__") else self.generic_visit(node)  # or a method of the text
        return self.default(node) if self.value else self._class(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """`Final[bool]`, which tells TorchScript that an attribute is a constant, as `bool`."""
        final = self.resolve(node.value) in ("torch.jit.Final", "typing.Final")
        return self.visit(node.slice) if final and not self.value else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`partial` inside a value."""
        partial = self.value and self.resolve(node.func) == "functools.partial"
        return self.default(node) if partial else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """A hint in quotes, without the quotes."""
        if self.value or not isinstance(node.value, str):
            return node
        try:
            found: ast.AST = self.visit(ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return node
        return found

    def _class(self, node: ast.Name | ast.Attribute) -> ast.expr:
        name = self.resolve(node)
        if name in self.program.translated:
            return ast.Name(self.program.called(name), ast.Load())
        if not name.startswith("torch."):
            if isinstance(node, ast.Name):
                node.id = self.program.python(self.file, node.id)
            return node
        if name in UNNAMED and not self.value:
            return self.program.name("typing.Any")
        if name in COUNTERPARTS:
            return self.program.name(COUNTERPARTS[name])
        row = self.program.row(name)
        if row is not None and row.mindspore:
            return self.program.name(row.mindspore)
        return node if self.value else self.program.name("typing.Any")


@handles(syntax=[ast.AnnAssign], stage=Stage.STATEMENT)
def annotated_assignment(node: ast.AnnAssign, context: Context) -> list[ast.stmt]:
    """`name: hint = value`."""
    node.annotation = SignatureRewriter(context.program, context.file).hint(node.annotation)
    node.value = node.value and context.visit(node.value)
    return [node]


def names_in(node: ast.AST, resolve: Callable[[ast.expr], str]) -> list[str]:
    """The full names of all names in an expression."""
    return [resolve(inner) for inner in ast.walk(node) if isinstance(inner, (ast.Name, ast.Attribute))]


def rename_hiding(function: ast.FunctionDef, context: Context) -> None:
    """Rename local variables that would hide what the function uses of the new file, `Block = partial(layers.Block)`;
    in place. A parameter keeps its name, and is a problem."""
    resolve, own, hidden = context.program.names(context.file).name, {*local_names(function)}, set[str]()
    for node in ast.walk(function):
        full = resolve(node) if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Load) else ""
        defined = full.rpartition(".")[0] in context.program.modules and not full.startswith("torch.")
        if defined and not (isinstance(node, ast.Name) and node.id in own):
            hidden |= {context.program.called(full)} & own
    for given in (node for node in ast.walk(function.args) if isinstance(node, ast.arg) and node.arg in hidden):
        context.missing(function, f"{given.arg} is a parameter of {function.name}, and a class or function used there")
    for name in (node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in hidden):
        name.id = f"{name.id}_"


def expand_kwargs(function: ast.FunctionDef, program: Program) -> None:
    """Give a function named parameters instead of a `**kwargs` that it only passes to torch calls.

    The names are those that were passed in the run; one that was not always passed has torch's default.
    """
    rest = function.args.kwarg
    if rest is None:
        return
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == rest.arg]
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and callees_of(node)]
    ran = [(call, word.value) for call in calls if (word := _word(call, rest.arg)) is not None]
    rows = [program.row(name) for call, _ in ran for name in callees_of(call)]
    entries = [entries_of(value) or {} for _, value in ran]
    if len(uses) != len(ran) or not rows or any(entries_of(value) is None for _, value in ran):
        return
    names = dict.fromkeys(key for one in entries for key in one)
    defaults = {a.torch: a.default for row in rows if row is not None for a in row.arguments if not a.required}
    if None in rows or any(name in _parameters(function) for name in names):
        return
    given = [kind for _, value in ran for kind in kinds_of(value)]
    sometimes = [
        name
        for name in names
        if name in defaults and not all(isinstance(kind, DictKind) and name in dict(kind.entries) for kind in given)
    ]
    kinds: dict[str, list[Kind]] = {}
    for name in sorted(names, key=sometimes.__contains__):  # first those that are always passed
        default = [of_constant(defaults[name])] if name in sometimes else []
        kinds[name] = list(dict.fromkeys([*(kind for one in entries for kind in one.get(name, ())), *default]))
    for call, value in ran:
        words = [word for word in call.keywords if word.value is not value]
        made = [ast.keyword(name, set_kinds(ast.Name(name, ast.Load()), kinds[name])) for name in names]
        call.keywords = [*words, *made]
    _declare(function, kinds, {name: defaults[name] for name in sometimes})


def _word(call: ast.Call, name: str) -> ast.keyword | None:
    rest = (word for word in call.keywords if word.arg is None and isinstance(word.value, ast.Name))
    return next((word for word in rest if ast.unparse(word.value) == name), None)


def _parameters(function: ast.FunctionDef) -> set[str]:
    arguments = function.args
    return {item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _declare(function: ast.FunctionDef, kinds: dict[str, list[Kind]], defaults: dict[str, object]) -> None:
    """Add the parameters to the signature: after the others, or as keyword-only ones where defaults do not allow it."""
    arguments = function.args
    arguments.kwarg = None
    named = bool(arguments.vararg or arguments.kwonlyargs or (arguments.defaults and kinds.keys() - defaults.keys()))
    for name, found in kinds.items():
        argument = ast.arg(name, ast.parse(_hint(found), mode="eval").body)
        default = ast.parse(repr(defaults[name]), mode="eval").body if name in defaults else None
        if named:
            arguments.kwonlyargs.append(argument)
            arguments.kw_defaults.append(default)
        else:
            arguments.args.append(argument)
            arguments.defaults += [] if default is None else [default]


def _hint(kinds: list[Kind]) -> str:
    words = [HINTS.get(kind) for kind in kinds]
    return " | ".join(word or "" for word in words) if all(words) else "Any"


def consumed_kwargs(function: ast.FunctionDef) -> list[ast.stmt]:
    """The statements `kwargs.pop("name", None)` of a function that only looks up single names in its `**kwargs`.

    Nothing reads what is left of the dictionary, so these statements have no effect, and every other
    `kwargs.pop("name", default)` is made a `kwargs.get`, in place.
    """
    reads = only_looked_up(function)
    for call in reads:
        assert isinstance(call.func, ast.Attribute)
        call.func.attr = "get"
    return [node for node in ast.walk(function) if isinstance(node, ast.Expr) and node.value in reads]


def only_looked_up(function: ast.FunctionDef) -> list[ast.Call]:
    """The calls that look up single names in a function's `**kwargs`, where it does nothing else with these."""
    rest = function.args.kwarg.arg if function.args.kwarg is not None else ""
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == rest]
    reads = [node for node in ast.walk(function) if isinstance(node, ast.Call) and _asks(node, rest)]
    names = {ast.unparse(call.args[0]) for call in reads}
    return reads if len(uses) == len(reads) == len(names) else []


def _asks(call: ast.Call, rest: str) -> bool:
    """Whether it is `rest.pop("name", constant)` or `rest.get(…)`, also with an attribute as default."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in ("pop", "get") or len(call.args) != 2:
        return False
    name, default = call.args
    plain = (ast.Constant, ast.Name, ast.Attribute, ast.expr_context)
    known = isinstance(name, ast.Constant) and all(isinstance(node, plain) for node in ast.walk(default))
    return known and ast.unparse(function.value) == rest and not call.keywords


# methods and functions that change their object or first argument
CHANGING = {
    *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault"),
    *("sort", "update", "setattr", "delattr", "__setattr__", "__delattr__", "__setitem__", "__delitem__"),
}
MAKING = {"bool", "dict", "float", "frozenset", "int", "len", "list", "repr", "set", "sorted", "str", "tuple"}
NEW = (ast.Constant, ast.Dict, ast.DictComp, ast.JoinedStr, ast.List, ast.ListComp, ast.Set, ast.SetComp)
HINTS: dict[Kind, str] = {
    **{PlainKind(name): name for name in ("int", "float", "bool", "str")},
    NONE: "None",
    SequenceKind("tuple", (PlainKind("int"),)): "tuple[int, ...]",
}
NUMBERS = [PlainKind(name) for name in ("bool", "float", "int", "str")]


def of_python(node: ast.expr, sources: SourceFiles, file: str) -> bool:
    """Whether a decorator is of Python's own library, such as `dataclass`; any other, such as one that only registers a
    class or a function, is of no use in the new file."""
    name = sources.names(file).name(_itself(node))
    return name.partition(".")[0] in sys.stdlib_module_names


def decorator_notes(
    node: ast.FunctionDef, sources: SourceFiles, file: str, missing: Callable[[ast.expr, str], ast.expr]
) -> Iterator[ast.stmt]:
    """Comments on decorators that only called the function with the example inputs, but do more with others, such as
    an argument by an old name; and errors for decorators that did more than the call.

    missing: makes the error.
    """
    errors: list[ast.stmt] = []
    for decorator, wrappers in _decorators(node, sources, file):
        text = " ".join(ast.unparse(decorator).split())
        if not all(_only_forwards(wrapper, node, sources) for wrapper in wrappers):
            reason = f"the decorator {ast.unparse(decorator)} does more than call {node.name}"
            errors.append(ast.Expr(missing(decorator, f"{reason}: write that into {node.name}")))
        elif not all(_only_forwards(wrapper, node, sources, everything=True) for wrapper in wrappers):
            yield comment(f"never with the example inputs: what {text} does besides calling {node.name}")
    yield from reversed(errors)


def noted_arguments(node: ast.FunctionDef, sources: SourceFiles, file: str) -> list[ast.stmt]:
    """`self._internal_dict = {"width": width}`, for a library's decorator of `__init__` that notes the arguments."""
    names = (sources.names(file).name(_itself(decorator)) for decorator in node.decorator_list)
    held = [attribute for name in names if (attribute := TABLES["noted_arguments"].get(name))]
    given = [item.arg for item in (*node.args.args, *node.args.kwonlyargs)][1:]
    noted = ast.Dict([*map(ast.Constant, given)], [ast.Name(name, ast.Load()) for name in given])
    return [ast.Assign([ast.Attribute(ast.Name("self", ast.Load()), name, ast.Store())], noted) for name in held]


def _decorators(node: ast.FunctionDef, sources: SourceFiles, file: str) -> Iterator[tuple[ast.expr, list[Function]]]:
    """The decorators of a function, and the wrappers of each that ran."""
    for decorator in node.decorator_list:
        name = sources.names(file).name(_itself(decorator))
        if name and name not in TABLES["noted_arguments"]:
            yield decorator, [f for f in sources.facts.functions if f.qualified.startswith(f"{name}.<locals>.")]


def _itself(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _only_forwards(
    wrapper: Function, decorated: ast.FunctionDef, sources: SourceFiles, *, everything: bool = False
) -> bool:
    """Whether a wrapper only returns the result of its function for the same arguments.

    everything: judge also the statements that did not run.
    """
    node = sources.node(wrapper)
    if node is None:
        return False
    around = [n for n in ast.walk(sources.tree(wrapper.file)) if isinstance(n, ast.FunctionDef) and node in ast.walk(n)]
    functions = {item.arg for outer in around if outer is not node for item in outer.args.args}
    return (
        _same_defaults(node.args, decorated.args)
        and _Wrapper(node, wrapper.file, functions, sources, everything).hands_on()
    )


class _Body:
    """Checks whether a function's statements change its arguments, or objects that it got from elsewhere."""

    def __init__(
        self, node: ast.FunctionDef, file: str, sources: SourceFiles, everything: bool, seen: set[str]
    ) -> None:
        self.node, self.file, self.sources, self.everything, self.seen = node, file, sources, everything, seen
        self.given = {argument.arg for argument in all_parameters(node.args)}
        made: dict[str, list[ast.AST | None]] = {}
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Assign, ast.AnnAssign)):
                for target in inner.targets if isinstance(inner, ast.Assign) else [inner.target]:
                    made.setdefault(ast.unparse(target), []).append(inner.value)
        stored = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        new = {name for name in stored if len(made.get(name, ())) == stored.count(name) and all(map(_new, made[name]))}
        self.names = self.given | {*stored}
        self.others = self.names - new  # names of objects that may be shared with other code
        texts = [inner for inner in ast.walk(node) if isinstance(inner, ast.JoinedStr)]
        self.in_texts = {inner for text in texts for inner in ast.walk(text)}  # which are not observed

    def ran(self, statement: ast.stmt) -> bool:
        """Whether a statement is judged."""
        return self.everything or reached(statement)

    def only_looks(self) -> bool:
        """Whether no statement of the function changes its arguments."""
        statements = (n for n in ast.walk(self.node) if isinstance(n, ast.stmt) and n is not self.node and self.ran(n))
        return all(map(self.quiet, statements))

    def quiet(self, statement: ast.stmt) -> bool:
        """Whether a statement, without those inside, changes only variables."""
        if isinstance(statement, ast.Delete):
            return False
        if isinstance(statement, ast.AugAssign):
            kinds = kinds_of(statement.target)
            if not isinstance(statement.target, ast.Name) or not kinds or not all(kind in NUMBERS for kind in kinds):
                return False
        inside = (ast.stmt, ast.arguments, ast.excepthandler)
        return all(self.computes(n) for n in ast.iter_child_nodes(statement) if not isinstance(n, inside))

    def computes(self, node: ast.AST) -> bool:
        """Whether an expression changes nothing."""
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                return False
            if isinstance(inner, (ast.Attribute, ast.Subscript)) and not isinstance(inner.ctx, ast.Load):
                return False
            if isinstance(inner, ast.Call) and not self._harmless(inner):
                return False
        return True

    def _harmless(self, call: ast.Call) -> bool:
        """Whether a call changes no argument of the function, and no object that it got from elsewhere."""
        names = callees_of(call)
        if not (names or kinds_of(call) or self.everything or call in self.in_texts):
            return True  # it did not run
        on = call.func.value if isinstance(call.func, ast.Attribute) else None
        if on is None or any(isinstance(kind, CallableKind) and kind.what == "class" for kind in kinds_of(on)):
            # `dict.pop(kwargs, …)`
            on = call.args[0] if call.args else None
        gets = [call.func, *call.args, *(word.value for word in call.keywords)]
        for name in names or [ast.unparse(call.func)]:
            last = name.rpartition(".")[2]
            in_place = last.endswith("_") and not last.endswith("__")
            if in_place or last.startswith("set_") or last in ("seed", "manual_seed") or name.startswith("module "):
                return False
            mine = self.others if isinstance(on, ast.Name) else self.names
            if last in CHANGING and on is not None and _root(on) in mine:
                return False
            if any(map(self._is_given, gets)) and not self._looks(name):
                return False
        return True

    def _is_given(self, node: ast.AST) -> bool:
        """Whether an expression passes one of this function's variables."""
        return any(isinstance(inner, ast.Name) and inner.id in self.names for inner in ast.walk(node))

    def _looks(self, name: str) -> bool:
        """Whether a function of the program changes none of its arguments; assumed of an unknown function."""
        name = f"{name.removeprefix('object ')}.__call__" if name.startswith("object ") else name
        function = self.sources.functions.get(name.removeprefix("partial "))
        if function is None or name in self.seen:
            return True
        node = self.sources.node(function)
        inside = {*self.seen, name}
        return node is not None and _Body(node, function.file, self.sources, self.everything, inside).only_looks()


class _Wrapper(_Body):
    """The wrapper that a decorator puts around a function; functions: names that may stand for the function in it."""

    def __init__(
        self, node: ast.FunctionDef, file: str, functions: set[str], sources: SourceFiles, everything: bool
    ) -> None:
        super().__init__(node, file, sources, everything, set())
        self.functions = functions
        outer = [n.names for n in ast.walk(node) if isinstance(n, (ast.Global, ast.Nonlocal))]
        self.kept = functions.union(self.given, *outer)  # names that may not be assigned
        self.results: set[str] = set()
        self.variables: set[str] = set()
        self.returns = False

    def hands_on(self) -> bool:
        """Whether it only returns the result of the function for the same arguments."""
        return self._block(self.node.body) and self.returns and not self.results & self.variables

    def _block(self, body: list[ast.stmt]) -> bool:
        return all(self._statement(statement) for statement in body if self.ran(statement))

    def _statement(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.If):
            return self.computes(statement.test) and self._block(statement.body) and self._block(statement.orelse)
        if isinstance(statement, ast.Return):
            self.returns = True
            result = isinstance(statement.value, ast.Name) and statement.value.id in self.results
            return result or self._calls_it(statement.value)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            if len(names) != len(targets) or names & self.kept:
                return False
            if self._calls_it(statement.value):
                self.results |= names
                return True
            self.variables |= names
            return self.quiet(statement)
        if isinstance(statement, ast.AugAssign):
            name = ast.unparse(statement.target)
            self.variables.add(name)
            return name not in self.kept and self.quiet(statement)
        plain = (ast.Assert, ast.Expr, ast.Global, ast.Nonlocal, ast.Pass, ast.Raise)
        return isinstance(statement, plain) and self.quiet(statement)

    def _calls_it(self, value: ast.expr | None) -> bool:
        """Whether it is the first call of the function, with the same arguments."""
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) or self.results:
            return False
        return value.func.id in self.functions and _same_arguments(value, self.node.args)

    def _harmless(self, call: ast.Call) -> bool:
        own = isinstance(call.func, ast.Name) and call.func.id in self.functions  # again, or with other arguments
        return not own and super()._harmless(call)


def _new(value: ast.AST | None) -> bool:
    """Whether an expression makes a new object, which nothing else refers to."""
    makes = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in MAKING
    return value is None or makes or isinstance(value, NEW)


def _root(node: ast.expr) -> str:
    """The variable that an expression is read from, `args` of `args[0].weight`; empty for a new object."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func
        elif isinstance(node, ast.Call) and node.args and not _new(node):  # `vars(module)`
            node = node.args[0]
        else:
            return ""
    return node.id


def _same_defaults(wrapper: ast.arguments, decorated: ast.arguments) -> bool:
    """Whether a wrapper's defaults are those of its function."""
    known = {name: ast.unparse(default) for name, default in defaults_of(decorated).items()}
    own, others = ([item.arg for item in (*given.posonlyargs, *given.args)] for given in (wrapper, decorated))
    by_place = dict(zip(own, others, strict=False))
    defaults = defaults_of(wrapper).items()
    return all(known.get(name, known.get(by_place.get(name, ""))) == ast.unparse(default) for name, default in defaults)


def _same_arguments(call: ast.Call, given: ast.arguments) -> bool:
    """Whether a call passes on all arguments of a function, in their order."""
    takes = [item.arg for item in (*given.posonlyargs, *given.args)]
    hands = [item.id for item in call.args if isinstance(item, ast.Name)]
    stars = [item.value.id for item in call.args if isinstance(item, ast.Starred) and isinstance(item.value, ast.Name)]
    words = {word.arg: word.value.id for word in call.keywords if isinstance(word.value, ast.Name)}
    named: dict[str | None, str] = {
        name: name for name in (*takes[len(hands) :], *(item.arg for item in given.kwonlyargs))
    }
    if given.kwarg is not None:
        named[None] = given.kwarg.arg
    return (
        len(hands) + len(stars) == len(call.args)
        and len(words) == len(call.keywords)
        and hands == takes[: len(hands)]
        and stars == ([given.vararg.arg] if given.vararg is not None else [])
        and words == named
    )


def hands_on(node: ast.FunctionDef) -> bool:
    """Whether a method gives back what its base's makes of the same arguments, which it may cast to a tensor's."""
    result = node.body[-1].value if isinstance(node.body[-1], ast.Return) else None
    alone = len(node.body) == 1 + (ast.get_docstring(node) is not None)
    if not alone or not isinstance(result, ast.Call) or not is_super(result.func) or result.keywords:
        return False
    same = isinstance(result.func, ast.Attribute) and result.func.attr == node.name
    return same and [*map(_uncast, result.args)] == [one.arg for one in node.args.args[1:]]


def _uncast(value: ast.expr) -> str:
    """The name of a tensor, without a cast, and a choice of None where it is None."""
    match value:
        case ast.IfExp(ast.Compare(ast.Name(name), [ast.Is()], [ast.Constant(None)]), ast.Constant(None), other):
            return name if _uncast(other) == name else ""
        case ast.Call(ast.Attribute(ast.Name(name), "to" | "type"), [ast.Attribute(ast.Name(), "dtype")], []):
            return name
        case ast.Call(ast.Attribute(ast.Name(name), "type_as"), [ast.Name()], []):
            return name
        case ast.Name(name):
            return name
    return ""
