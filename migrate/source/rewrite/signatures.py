"""A function's signature: type hints, defaults, `*args` and `**kwargs` written out; what arguments are taken to be."""

from __future__ import annotations

import ast
import copy
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

from ....mappings.rows import Argument, Row
from ...library_names import COUNTERPARTS, TABLES, dtype_name, is_dtype, tensors_by_use
from ...source_files import all_parameters, alternatives, defaults_of, literal, own_nodes
from ..observe.observations import (
    NONE,
    UNKNOWN_RANK,
    DictKind,
    DtypeKind,
    Kind,
    ObjectKind,
    PlainKind,
    SequenceKind,
    SizeKind,
    TensorKind,
    callees_of,
    constants_of,
    entries_of,
    kinds_of,
    observed,
    of_constant,
    set_kinds,
)
from .autograd_functions import made_of, own_gradient
from .context import (
    UNSEEN,
    Context,
    ObservedArgument,
    Problem,
    Program,
    Stage,
    Unwritable,
    handles,
    row_of,
    set_receivers,
)
from .library_lookups import write_reference
from .row_calls import PLACES, bind_arguments, is_super, is_variable, keywords_of, known_argument

# what code that did not run is taken to be
TOP = {"torch.device": ObjectKind("torch.device"), "logging.getLogger": ObjectKind("logging.Logger")}
SOME_TENSOR = TensorKind("float32", UNKNOWN_RANK)
_GIVES = {"len": "int", "round": "int", "isinstance": "bool", "hasattr": "bool", "callable": "bool"}
OF_BUILTINS = {of: PlainKind(_GIVES.get(of, of)) for of in ("int", "float", "str", "bool", *_GIVES)}
OF_TENSORS: dict[str, Kind] = {
    **{name: PlainKind("int") for name in ("dim", "ndimension", "numel", "nelement", "ndim")},
    **dict.fromkeys(("T", "mT", "H", "data", "grad", "real", "imag"), SOME_TENSOR),
    "shape": SizeKind(UNKNOWN_RANK),
    "dtype": DtypeKind(),
    "item": PlainKind("float"),
    "tolist": SequenceKind("list", (PlainKind("float"),)),
    "device": ObjectKind("torch.device"),
    **dict.fromkeys((*TABLES["tensor_answers"], "requires_grad"), PlainKind("bool")),
}
PLAIN = {n: PlainKind(n) for n in ("int", "float", "bool", "str")}
OF_HINTS: dict[str, Kind] = {"torch.Tensor": SOME_TENSOR, "Tensor": SOME_TENSOR, **PLAIN}
RESULT = "return"  # in place of an argument's name, what a function gives
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
        """The default of a parameter; a function that never ran is read, and None stands for what no file has."""
        name = self.resolve(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if name.startswith("torch.distributed."):
            return ast.Constant(name)  # such as ReduceOp.SUM, for calls that are refused
        if not name or name.startswith("torch.") or not self.program.unseen(name) or name in self.program.translated:
            return self.default(node)
        file = self.program.all_files.get(self.program.module_of(name))
        body = [] if file is None else self.program.tree(file).body
        if not any(isinstance(one, ast.FunctionDef) and one.name == name.rpartition(".")[2] for one in body):
            return ast.Constant(None)
        self.program.unread.add(name)
        return ast.Name(self.program.called(name), ast.Load())

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
            elif isinstance(node.value, ast.Attribute) or self.resolve(node.value) in self.program.translated:
                assert isinstance(node.value, (ast.Name, ast.Attribute))
                node.value = self._class(node.value)  # `settings.Kind` of `settings.Kind.SUM`
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


def expand_kwargs(function: ast.FunctionDef, program: Program) -> None:
    """Give a function named parameters instead of a `**kwargs` that it only passes to torch calls.

    The names are those that were passed in the run; one that was not always passed has torch's default.
    """
    if (rest := function.args.kwarg) is None:
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
HINTS: dict[Kind, str] = {
    **{PlainKind(name): name for name in ("int", "float", "bool", "str")},
    NONE: "None",
    SequenceKind("tuple", (PlainKind("int"),)): "tuple[int, ...]",
}


def name_arguments(function: ast.FunctionDef, context: Context) -> None:
    """Give a function the arguments of torch's layer or function by their names, in place of an `*args` and `**kwargs`
    that it only hands on to one call of that: callers give now two of them by place, now three. In place."""
    takes, rest, words = function.args, function.args.vararg, function.args.kwarg
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and _ends_with(node, rest)]
    used = Counter(node.id for node in ast.walk(function) if isinstance(node, ast.Name))
    if rest is None or len(calls) != 1 or any(used[one.arg] != 1 for one in (rest, words) if one is not None):
        return
    (call,) = calls
    row, said = _row_handed_to(call, function, context), {word.arg: word.value for word in call.keywords}
    if row is None or ast.unparse(said.pop(None, ast.Constant(None))) != (words.arg if words is not None else "None"):
        return
    arguments = row.arguments[len(call.args) - 1 :]
    count = next((place for place, one in enumerate(arguments) if one.torch in said), len(arguments))
    own = [one.arg for one in (*takes.posonlyargs, *takes.args)]
    given = _given([*own[bool(context.owner) :], *(one.torch for one in arguments[:count])], function, call, context)
    by_place = [*itertools.takewhile(lambda one: _takes(row, one, given), arguments[:count])]
    others = arguments[len(by_place) :] if words is not None else ()
    by_name = [one for one in others if one.torch not in said and _takes(row, one, given)]
    names = [one.torch for one in (*by_place, *by_name)]
    late = bool(takes.defaults) and any(one.required for one in by_place)
    if late or {*names} & {*own, *used} or not all(map(str.isidentifier, names)):
        return
    takes.vararg = takes.kwarg = None
    takes.args += [ast.arg(one.torch) for one in by_place]
    takes.defaults += [_constant(one.default) for one in by_place if not one.required]
    takes.kwonlyargs += [ast.arg(one.torch) for one in by_name]
    takes.kw_defaults += [None if one.required else _constant(one.default) for one in by_name]
    read = [_noted(one, given) for one in (*by_place, *by_name)]
    first = sum(one.required for one in by_place)
    call.args[-1:] = read[:first]
    call.keywords = [word for word in call.keywords if word.arg is not None]
    call.keywords += [ast.keyword(one.id, one) for one in read[first:]]


def _ends_with(call: ast.Call, rest: ast.arg | None) -> bool:
    """Whether the last argument by place, and no other, is `*rest`."""
    starred = [one for one in call.args if isinstance(one, ast.Starred)]
    return rest is not None and [*map(ast.unparse, starred)] == [f"*{rest.arg}"] and starred == call.args[-1:]


def _row_handed_to(call: ast.Call, function: ast.FunctionDef, context: Context) -> Row | None:
    """The row of the layer or function of torch's that a call makes or runs, whose arguments have names."""
    program, names = context.program, {*callees_of(call)} or {context.program.names(context.file).name(call.func)}
    if is_super(call.func):
        own = (f"{base}.__init__" in program.translated for base in program.facts.bases(context.owner)[1:])
        row = program.torch_base(context.owner) if function.name == "__init__" and not any(own) else None
    else:
        row = program.row(names.pop()) if len(names) == 1 and not is_variable(call.func, context) else None
    return row if row is not None and not any(one.rest or "*" in one.torch for one in row.arguments) else None


def _given(
    names: list[str], function: ast.FunctionDef, handed: ast.Call, context: Context
) -> dict[str, list[ast.expr]]:
    """What the calls that ran gave a function, by the names of its arguments; what `*` and `**` may be, under each."""
    program, found = context.program, dict[str, list[ast.expr]]()
    for call in callers(function, context.owner, context.file, program):
        by_place = itertools.takewhile(lambda one: not isinstance(one, ast.Starred), call.args)
        for name, value in zip(names, by_place, strict=False):
            found.setdefault(name, []).append(value)
        for word in call.keywords:
            if word.arg is not None:
                found.setdefault(word.arg, []).append(word.value)
        if any(isinstance(one, ast.Starred) for one in call.args):
            rest = next(one.value for one in handed.args if isinstance(one, ast.Starred))
            inside = [item for kind in kinds_of(rest) for item in getattr(kind, "items", ())]
            for name in names:
                found.setdefault(name, []).append(set_kinds(ast.Name(name, ast.Load()), inside))
    for word in handed.keywords:
        for name, kinds in (entries_of(word.value) or {}).items() if word.arg is None else ():
            found.setdefault(name, [set_kinds(ast.Name(name, ast.Load()), kinds)])
    return found


def callers(function: ast.FunctionDef, owner: str, file: str, program: Program) -> Iterator[ast.Call]:
    """The calls that ran of a function, or of a class by its constructor."""
    ran = [(one, node) for one in program.facts.functions if (node := program.node(one)) is not None]
    names = {one.qualified for one, node in ran if (one.file, node.lineno) == (file, function.lineno)}
    if function.name == "__init__":
        for order in program.facts.orders:
            maker = next((one for one in order if f"{one}.__init__" in program.functions), "")
            names |= {order[0]} if maker == owner else set()
    for call in (inner for _, node in ran for inner in ast.walk(node)):
        if isinstance(call, ast.Call) and names.intersection(callees_of(call)):
            yield call


def _takes(row: Row, argument: Argument, given: Mapping[str, Sequence[ast.expr]]) -> bool:
    """Whether an argument of torch's becomes one of a function that hands it on: one that a caller gave or has to give,
    and one that crosses by what it is; not where tensors live."""
    if argument.torch in given or argument.required:
        return True
    one = _noted(argument, {})
    item = ObservedArgument(one, kinds_of(one), [argument.default])
    try:
        keywords_of(row, {argument.torch: item}, lambda _: one)
    except Unwritable:
        return False
    return argument.torch not in PLACES


def _noted(argument: Argument, given: Mapping[str, Sequence[ast.expr]]) -> ast.Name:
    """The name of an argument, with what callers gave for it, and torch's default."""
    values = [*given.get(argument.torch, ()), *([] if argument.required else [_constant(argument.default)])]
    kinds, seen = list[Kind](), list[list[Any] | None]()
    for value in values:
        known, constant = literal(value)
        kinds += [of_constant(constant)] if known else kinds_of(value)
        seen.append(constants_of(value) if not known else None if isinstance(constant, (list, tuple)) else [constant])
    made = set_kinds(ast.Name(argument.torch, ast.Load()), dict.fromkeys(kinds))
    every = None if None in seen else [one for constants in seen if constants is not None for one in constants]
    vars(made)["observed"] = replace(observed(made), constants=every and [*dict.fromkeys(every)])
    return made


def _constant(value: object) -> ast.expr:
    return ast.parse(repr(value), mode="eval").body


def same_defaults(wrapper: ast.arguments, decorated: ast.arguments) -> bool:
    """Whether a wrapper's defaults are those of its function."""
    known = {name: ast.unparse(default) for name, default in defaults_of(decorated).items()}
    own, others = ([item.arg for item in (*given.posonlyargs, *given.args)] for given in (wrapper, decorated))
    by_place = dict(zip(own, others, strict=False))
    defaults = defaults_of(wrapper).items()
    return all(known.get(name, known.get(by_place.get(name, ""))) == ast.unparse(default) for name, default in defaults)


def same_arguments(call: ast.Call, given: ast.arguments) -> bool:
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


def of_inner(function: ast.FunctionDef, context: Context) -> None:
    """Rewrite the defaults of a function inside of one, and leave out its hints; in place."""
    takes, rewriter = function.args, SignatureRewriter(context.program, context.file)
    for one in all_parameters(takes):
        one.annotation = (
            None if one.annotation is not None and "torch" in ast.unparse(one.annotation) else one.annotation
        )

    def default(node: ast.expr) -> ast.expr:
        local = any(isinstance(one, ast.Name) and one.id in context.local for one in ast.walk(node))
        made: ast.expr = context.visit(node) if local else rewriter.default(node)
        return made

    takes.defaults = [*map(default, takes.defaults)]
    takes.kw_defaults = [None if one is None else default(one) for one in takes.kw_defaults]


def read_inner(
    function: ast.FunctionDef,
    within: ast.AST,
    variables: dict[str, list[Kind]],
    read: Callable[[ast.expr], list[Kind]],
    resolve: Callable[[ast.expr], str],
) -> dict[str, list[Kind]]:
    """The kinds of the arguments of a function inside of one that did not run: by their hints and defaults, by how they
    are used, and by the calls in the function around it. Raises Unwritable."""
    takes = function.args
    if function.decorator_list or any(isinstance(node, (ast.Nonlocal, ast.Yield)) for node in ast.walk(function)):
        raise Unwritable(f"what {function.name}, a function inside of one, does")
    names = [one.arg for one in (*takes.posonlyargs, *takes.args)]
    found: dict[str, list[Kind]] = {one.arg: [] for one in all_parameters(takes)}
    for one in all_parameters(takes):
        found[one.arg] += [OF_HINTS[said]] if (said := ast.unparse(one.annotation or one)) in OF_HINTS else []
    for name, default in defaults_of(takes).items():
        found[name] += [kind for kind in read(default) if kind != NONE]
    for call in ast.walk(within):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == function.name:
            words = [(str(word.arg), word.value) for word in call.keywords]
            for name, value in [*zip(names, call.args, strict=False), *words]:
                known = literal(value)[0] or (isinstance(value, ast.Name) and value.id in variables)
                if name in found and known:
                    found[name] += [kind for kind in read(copy.deepcopy(value)) if kind not in (NONE, UNSEEN)]
    for name in tensors_by_use(function, resolve, of_module=True):
        if name in found and not found[name]:
            found[name] = [SOME_TENSOR]
    return {name: list(dict.fromkeys(kinds)) or [UNSEEN] for name, kinds in found.items()}


def joined(kinds: Sequence[Kind]) -> Kind | None:
    """The kind of what `+` or `*` makes of lists, of tuples and sizes, or of one and a number; None of others."""
    types = {getattr(kind, "type", "tuple") for kind in kinds if isinstance(kind, (SequenceKind, SizeKind))}
    if len(types) != 1 or not all(isinstance(k, (SequenceKind, SizeKind)) or k == PlainKind("int") for k in kinds):
        return None
    items = dict.fromkeys(item for kind in kinds for item in getattr(kind, "items", [PlainKind("int")]))
    return SequenceKind(types.pop(), tuple(items))


def gives(name: str, program: Program) -> list[Kind]:
    """What a function or method of the model gives: a tensor, where it ran; what its code was read to give."""
    function = program.functions.get(name)
    if function is None:
        return program.given.get(name, {}).get(RESULT) or [UNSEEN]
    node = program.node(function)
    returns = [n.value for n in own_nodes(node) if isinstance(n, ast.Return)] if node is not None else []
    kinds = [kind for value in returns for kind in (kinds_of(value) if value is not None else ())]
    tensors = bool(kinds) and all(isinstance(kind, TensorKind) for kind in kinds)
    return [SOME_TENSOR] if tensors else [UNSEEN]


def note_result(kinds: list[Kind], context: Context) -> None:
    """Note what a function that never ran was read to give."""
    module = next((one for one, file in context.program.modules.items() if file == context.file), "")
    name = f"{context.owner or module}.{getattr(context.function, 'name', '')}"
    if name not in context.program.functions:
        context.program.given.setdefault(name, {})[RESULT] = list(dict.fromkeys(kinds))


def made_at_top(value: ast.expr, resolve: Callable[[ast.expr], str]) -> list[Kind]:
    """The kind of a file's constant that is a device, or one of two by a condition, a logger, or one of some texts."""
    some = [TOP.get(resolve(one.func)) if isinstance(one, ast.Call) else literal(one)[1] for one in alternatives(value)]
    kinds = {
        one if isinstance(one, ObjectKind) else PlainKind("str") for one in some if isinstance(one, (str, ObjectKind))
    }
    return [*kinds] if len(kinds) == 1 and all(isinstance(one, (str, ObjectKind)) for one in some) else []
