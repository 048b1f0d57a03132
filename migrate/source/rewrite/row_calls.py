"""A torch call as the call of its row, on expressions: arguments bound, translated and written."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ....errors import Unsupported
from ....mappings import table
from ....mappings.rows import Argument, Name, Row
from ....mappings.verbs import VERBS, ValueType, as_tuple
from ...library_names import TABLES, is_constant, of_distributions
from ...source_files import alternatives, literal
from ..observe.observations import (
    NONE,
    DictKind,
    DtypeKind,
    Kind,
    PlainKind,
    PythonModule,
    SequenceKind,
    SizeKind,
    TensorKind,
    constants_of,
    entries_of,
    kinds_of,
    of_constant,
)
from . import argument_kinds
from .argument_kinds import are_tensors, as_buffers, by_class, call_with_complex, pythons_number, write_template
from .context import (
    UNSEEN,
    Asked,
    ByComputedValue,
    Context,
    Given,
    Namer,
    ObservedArgument,
    Unwritable,
    by_value,
    expression,
    number_or_tuple,
)

PLACES = ("device", "dtype", "memory_format", "layout")  # for these, constructors drop a None
SIDES_OF_CONVOLUTIONS = {f"{n}_padding" for n in ("conv2d", "conv3d", "transposed2d", "transposed3d", "output")}
SIDES = {"1d": 1, "2d": 2, "3d": 3}
SCALED, TRANSFORMER = ("torch.add", "torch.sub"), "torch.nn.Transformer"  # the class that has a function
STARTING = "msmigrate.nn.starting_at"
MOMENTUM = "msmigrate.nn.momentum_of"
READ_AGAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Dict)  # what may be read several times
ASKS_WHETHER = ("recompute",)  # verbs that only need to know whether another argument is given


def bind_arguments(row: Row, positional: list[ObservedArgument], named: Mapping[str, ObservedArgument]) -> Given:
    """The arguments under torch's names; raises Unwritable for arguments that the row does not have.

    `inplace` may be passed to a class that does not have it: one in a variable, which torch did not make in the run.
    """
    given = Given({})
    if takes_anything(row):
        return given
    waiting = list(positional)
    for argument in row.arguments:
        if not waiting:
            break
        if argument.rest and (len(waiting) > 1 or isinstance(waiting[0].node, ast.Starred)):
            node = ast.Tuple([item.node for item in waiting], ast.Load())
            given[argument.torch], waiting = ObservedArgument(node, [], None), []
        else:
            given[argument.torch] = waiting.pop(0)
    if waiting:
        raise Unwritable(f"{row.torch} takes {len(row.arguments)} arguments, and gets {len(positional)}")
    for name, item in ((row.own_name(name), item) for name, item in named.items()):
        if all(name != argument.torch for argument in row.arguments):
            if name == "inplace":
                continue
            raise Unwritable(f"{row.torch} has no argument {name} in the mapping table")
        if name in given:
            raise Unwritable(f"{row.torch} gets {name} twice")
        given[name] = item
    return given


def takes_anything(row: Row) -> bool:
    """Whether a class ignores all its arguments in both frameworks, as Identity does."""
    return bool(row.arguments) and {argument.torch for argument in row.arguments} <= {"*args", "**kwargs"}


def write_call(row: Row, given: Mapping[str, ObservedArgument], name: Namer, *, partial: bool = False) -> ast.Call:
    """The MindSpore call: the arguments of torch's call, and those whose default differs in MindSpore.

    name: makes the expression for a MindSpore name. partial: required arguments may come later. Raises Unwritable.
    """
    row, given = _otherwise(row, given, name), _scaled(row, given)
    keywords = keywords_of(row, given, name)
    for argument in row.arguments:
        if argument.torch in given:
            continue
        if not argument.required:
            keywords.update(_defaults(row, argument, given, name))
        elif not partial:
            raise Unwritable(f"{row.torch} needs {argument.torch}")
    for item in row.written:
        if not _is_default(row, item.mindspore, item.value):
            keywords[item.mindspore] = expression(item.value, name)
    return ast.Call(name(str(row.mindspore)), *_placed(row, given, keywords))


def with_initial_values(row: Row, made: ast.expr, name: Namer) -> ast.expr:
    """A new layer with torch's constant initial values, where MindSpore draws them."""
    starts: dict[float, list[ast.expr]] = {}
    for state in row.state:
        if state.start is not None and state.mindspore is not None:
            starts.setdefault(state.start, []).append(ast.Constant(state.mindspore))
    for start, names in starts.items():
        made = ast.Call(name(STARTING), [made, ast.Constant(start), *names], [])
    return made


def _otherwise(row: Row, given: Mapping[str, ObservedArgument], name: Namer) -> Row:
    """The row, or that of its alternative class, for a call with arguments that MindSpore's own does not take."""
    other = row.otherwise
    if other is None:
        return row
    pairs = [pair for pair in zip(row.arguments, other.arguments, strict=True) if pair[0] != pair[1]]
    unsaid = [of_row for of_row, _ in pairs if of_row.torch not in given and of_row.default in of_row.refuse]
    if unsaid or any(key in given and not is_constant(given[key].node, one) for key, one in other.unless.items()):
        return other
    for argument in (of_row for of_row, _ in pairs if of_row.torch in given):
        if argument.verb and VERBS[argument.verb].symbolic is None and not literal(given[argument.torch].node)[0]:
            return other  # which takes any value, where MindSpore's own takes those that were seen
        try:
            _crossed(row, argument, given, name, every=False)
        except Unwritable:
            return other
    return row


def _scaled(row: Row, given: Mapping[str, ObservedArgument]) -> Mapping[str, ObservedArgument]:
    """`add(x, y, alpha=2)` as `add(x, 2 * y)`, since MindSpore's does not scale."""
    if row.torch not in SCALED or "alpha" not in given or "other" not in given:
        return given
    product = ast.BinOp(given["alpha"].node, ast.Mult(), given["other"].node)
    items = {**given, "other": ObservedArgument(product, given["other"].kinds, None)}
    del items["alpha"]
    return Given(items, given.by_value if isinstance(given, Given) else None)


def keywords_of(
    row: Row, given: Mapping[str, ObservedArgument], name: Namer, *, every: bool = False
) -> dict[str, ast.expr]:
    """The MindSpore arguments for the given ones, and no others; raises Unwritable.

    every: also those that equal MindSpore's defaults.
    """
    if row.mindspore is None:
        raise Unwritable(f"{row.torch} has no counterpart: {row.why}")
    keywords: dict[str, ast.expr] = {}
    for argument in row.arguments:
        if argument.torch in given:
            item = given[argument.torch]
            unsaid = argument.default is None and (item.constants == [None] or literal(item.node) == (True, None))
            keywords.update(_crossed(row, argument, given, name, every and not unsaid))
    return keywords


def call_through_variable(row: Row, given: Mapping[str, ObservedArgument], name: Namer, function: ast.expr) -> ast.Call:
    """A call of a class in a variable: all given arguments and no others, since the class may have other defaults; and
    a pool's stride, which follows from its window. A norm's momentum is as the class takes it."""
    keywords = keywords_of(row, given, name, every=True)
    if row.kind != "function" and "momentum" in given and ast.unparse(function) != "_":
        keywords["momentum"] = ast.Call(name(MOMENTUM), [copy.deepcopy(function), given["momentum"].node], [])
    for argument in row.arguments:
        if _as_window(argument) and argument.torch not in given:
            keywords.update(_defaults(row, argument, given, name))
    return ast.Call(function, *_placed(row, given, keywords))


def _placed(row: Row, given: Mapping[str, ObservedArgument], keywords: dict[str, ast.expr]) -> Any:
    """The leading required arguments by position, as is usual; the others by name."""
    first: list[ast.expr] = []
    starred = [keywords.pop(key) for key in list(keywords) if key[:1] == "*" != key[1:2]]
    for argument in row.arguments if row.in_order else ():
        plain = argument.required and argument.torch in given and len(argument.to) == 1 and argument.to[0] in keywords
        if not plain or argument.to[0] in row.defaults:
            break
        first.append(keywords.pop(argument.to[0]))
    for each in starred:
        first += each.elts if isinstance(each, ast.Tuple) else [ast.Starred(each, ast.Load())]
    return first, [ast.keyword(key, value) for key, value in keywords.items()]


def _crossed(
    row: Row, argument: Argument, given: Mapping[str, ObservedArgument], name: Namer, every: bool
) -> dict[str, ast.expr]:
    item = _with_window(argument, given)
    known, value = literal(item.node)
    symbolic = VERBS[argument.verb].symbolic if argument.verb else None
    if UNSEEN in item.kinds and argument.verb in TABLES["number_or_raises"]:
        item = item._replace(kinds=[PlainKind(TABLES["number_or_raises"][argument.verb])])
    if UNSEEN in item.kinds and (argument.verb or argument.values or argument.only or argument.refuse):
        raise Unwritable(f"{row.torch}: the value of {argument.torch} was not seen")
    if argument.torch == "inplace":
        return {}  # the result is the same; other uses of the tensor that torch overwrites show in the parity check
    if known:
        try:
            return _constant(row, argument, value, given, name, every)
        except ByComputedValue:
            nodes = symbolic(item.node, frozenset({_type(of_constant(value))})) if symbolic else None
            if nodes is None:
                raise
            return dict(zip(argument.to, nodes, strict=True))
    text, only = ast.unparse(item.node), [str(one).removeprefix("torch.") for one in argument.only or ()]
    if item.kinds == [DtypeKind()] and (argument.to or text.removeprefix("mindspore.") in only):
        return dict.fromkeys(argument.to, item.node)  # already a MindSpore name, or a tensor's attribute
    limited = bool(argument.only or argument.refuse or (argument.values and not argument.to))
    if limited and not argument.checked and not _never(item, argument):
        refused = () if argument.only or argument.values or argument.verb else argument.refuse
        if item.constants is None and not (refused and all(isinstance(kind, PlainKind) for kind in item.kinds)):
            raise Unwritable(f"{row.torch}: {argument.torch} may be another than {' or '.join(only)}: {argument.why}")
        for constant in item.constants or ():
            _value(row, argument, constant, given)  # raises where it does not cross
        by_value(given, argument.torch, refused)
        if not argument.to:
            return {}
    if argument.values or (symbolic is None and argument.verb):
        if item.constants is not None and len(item.constants) == 1:
            by_value(given, argument.torch)
            return _constant(row, argument, item.constants[0], given, name, every)
        raise Unwritable(f"{row.torch}: {argument.torch} is computed, and crosses by its value")
    if symbolic is not None:
        others = [one.value for one in alternatives(item.node) if isinstance(one, ast.Constant)]  # may not have run
        nodes = symbolic(item.node, frozenset(map(_type, [*item.kinds, *map(of_constant, others)])))
        if nodes is None:
            raise Unwritable(f"{row.torch}: {argument.torch} is {', '.join(map(str, item.kinds))} here")
        return dict(zip(argument.to, nodes, strict=True))
    types = {*map(_type, item.kinds)}
    if row.kind == "layer" and types == {ValueType.INT_LIST}:
        return dict.fromkeys(argument.to, as_tuple(item.node))  # sizes
    if row.kind == "layer" and row.torch[-2:] in SIDES and types == {ValueType.INT, ValueType.INT_LIST}:
        return dict.fromkeys(argument.to, number_or_tuple(item.node, SIDES[row.torch[-2:]]))
    return dict.fromkeys(argument.to, item.node)


def _with_window(argument: Argument, given: Mapping[str, ObservedArgument]) -> ObservedArgument:
    """The argument; for a pool's stride that may be None `kernel_size if stride is None else stride`."""
    item, window = given[argument.torch], given.get("kernel_size")
    if not _as_window(argument) or window is None or NONE not in item.kinds or literal(item.node)[0]:
        return item
    is_none = ast.Compare(copy.deepcopy(item.node), [ast.Is()], [ast.Constant(None)])
    kinds = dict.fromkeys([*window.kinds, *(kind for kind in item.kinds if kind != NONE)])
    return ObservedArgument(ast.IfExp(is_none, copy.deepcopy(window.node), item.node), [*kinds], None)


def _type(kind: Kind) -> ValueType:
    """The type of a kind, as far as verbs need it."""
    match kind:
        case PlainKind("int"):
            return ValueType.INT
        case PlainKind("float"):
            return ValueType.FLOAT
        case SequenceKind("tuple" | "list" as what, inside):
            return ValueType[f"{'INT_' if inside[:1] == (PlainKind('int'),) else ''}{what.upper()}"]
        case SizeKind(1):
            return ValueType.SIZE_OF_ONE
        case SizeKind():
            return ValueType.SIZE
    return ValueType.OTHER


def _never(item: ObservedArgument, argument: Argument) -> bool:
    """Whether the argument was never of the type of a value that has no counterpart."""
    refused = [PlainKind(type(value).__name__) for value in argument.refuse]
    return bool(item.kinds) and not (argument.only or argument.values or any(kind in refused for kind in item.kinds))


def _constant(
    row: Row, argument: Argument, value: Any, given: Mapping[str, ObservedArgument], name: Namer, every: bool = False
) -> dict[str, ast.expr]:
    """Cross a known value; unless `every`, an argument that equals MindSpore's default is left out."""
    found = {key: _plainly(row, argument, crossed) for key, crossed in _value(row, argument, value, given).items()}
    return {key: expression(one, name) for key, one in found.items() if every or not _is_default(row, key, one)}


def _plainly(row: Row, argument: Argument, value: Any) -> Any:
    """One number where MindSpore's convolutions take it for equal numbers on every side."""
    sides = argument.verb in SIDES_OF_CONVOLUTIONS and (row.mindspore or "").startswith("mindspore.nn.")
    return value[0] if sides and isinstance(value, tuple) and len({*value}) == 1 else value


def _value(row: Row, argument: Argument, value: Any, given: Mapping[str, ObservedArgument]) -> dict[str, Any]:
    others = {item.torch: item.default for item in row.arguments if not item.required}
    for key, item in given.items():
        known, constant = literal(item.node)
        if known:
            others[key] = constant
        elif argument.verb in ASKS_WHETHER and item.kinds and NONE not in item.kinds:
            others[key] = item.node
        elif item.constants is not None and len(item.constants) == 1:
            others[key] = item.constants[0]
        else:
            others.pop(key, None)
    computed = {*given} - {*others, argument.torch}
    values = Asked({**others, argument.torch: table.plain(value)}, computed)
    try:
        found = table.cross(row, argument, values)
        for key in values.names - {argument.torch}:
            if not isinstance(others.get(key), ast.AST):  # whether there is one is the same for every value
                by_value(given, key)
        return found
    except Unsupported as error:
        raise Unwritable(str(error)) from None
    except KeyError as error:
        why = f"{row.torch}: {argument.torch} crosses by the value of {error}, which is computed"
        raise ByComputedValue(why) from None


def _defaults(row: Row, argument: Argument, given: Mapping[str, ObservedArgument], name: Namer) -> dict[str, ast.expr]:
    if not argument.to or (argument.verb == "output_padding" and "padding" in given):  # 0: the padding is as it is
        return {}
    if argument.verb is None and not argument.values:
        value = argument.default
        return {key: expression(value, name) for key in argument.to if not _is_default(row, key, value)}
    if _as_window(argument):
        # for a class that is passed on, the call with the window adds this too: see call_through_variable
        window = given.get("kernel_size")
        return {} if window is None else _crossed(row, argument, {**given, argument.torch: window}, name, False)
    return _constant(row, argument, argument.default, given, name)


def _as_window(argument: Argument) -> bool:
    """Whether it is a pool's stride, whose default is the window."""
    return argument.verb in ("stride_or_kernel", "single_or_kernel") and argument.default is None


def _is_default(row: Row, argument: str, value: Any) -> bool:
    """Whether MindSpore would do the same without this argument, in its next versions too."""
    if argument not in row.defaults or argument in TABLES["changing_defaults"].get(str(row.mindspore), ()):
        return False
    try:
        default = ast.literal_eval(row.defaults[argument])
    except (ValueError, SyntaxError):
        return isinstance(value, Name) and str(value) == row.defaults[argument]
    if value == [] and default == ():  # a row's list is either
        return True
    return type(default) is type(value) and bool(default == value)


def arguments_of(row: Row, node: ast.Call, context: Context, *, method: bool = False) -> Given:
    """The call's arguments, under the row's names."""
    positional: list[ObservedArgument] = []
    if method and isinstance(node.func, ast.Attribute):
        positional.append(argument_of(node.func.value, context))
    rest = next((place for place, argument in enumerate(row.arguments) if argument.rest), len(row.arguments))
    for argument in node.args:
        if isinstance(argument, ast.Starred) and len(positional) < rest:
            positional += _unpacked_list(row, argument, context)
        else:
            positional.append(argument_of(argument, context))
    named = {word.arg: argument_of(word.value, context) for word in node.keywords if word.arg is not None}
    for word in node.keywords:
        if word.arg is None:
            named |= _unpacked_dict(row, word.value, context)
    return bind_arguments(row, positional, named)


def _unpacked_list(row: Row, node: ast.Starred, context: Context) -> list[ObservedArgument]:
    """The items of `*sizes`, for a variable that always has the same length, or of `*[3, 16]`."""
    if isinstance(node.value, (ast.List, ast.Tuple)) and not any(isinstance(n, ast.Starred) for n in node.value.elts):
        return [argument_of(one, context) for one in node.value.elts]
    counts, kinds = {*(constants_of(node) or ())}, kinds_of(node.value)
    lists = [kind for kind in kinds if isinstance(kind, SequenceKind) and kind.type in ("tuple", "list")]
    if len(counts) != 1 or len(lists) < len(kinds):
        raise Unwritable(f"{row.torch} with {ast.unparse(node)}")
    inside = list(dict.fromkeys(item for kind in lists for item in kind.items))
    if any(isinstance(item, SequenceKind) for item in inside):  # no verb takes such items
        inside = []
    whole, (count,) = context.visit(node.value), counts
    places = (ast.Constant(place) for place in range(count))
    test = ast.parse(f"len({ast.unparse(whole)}) != {count}", mode="eval").body
    context.raise_where(test, whole, f"{ast.unparse(node)} had {count} items", node.value)
    return [ObservedArgument(ast.Subscript(copy.deepcopy(whole), place, ast.Load()), inside, None) for place in places]


def _unpacked_dict(row: Row, node: ast.expr, context: Context) -> dict[str, ObservedArgument]:
    """The entries of `**options`, for keys that are always the same."""
    if isinstance(node, ast.Dict):
        words = {k.value: v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)}
        if len(words) == len(node.keys):
            return {str(key): argument_of(value, context) for key, value in words.items()}
    entries = entries_of(node)
    whole, parts = kinds_of(node), node.values if isinstance(node, ast.BoolOp) else [node]
    again = (shown := argument_kinds.gives_display(node, context)) or all(isinstance(one, READ_AGAIN) for one in parts)
    if entries is None or (not again and set(entries) - {"inplace"}):
        raise Unwritable(f"{row.torch} with **{ast.unparse(node)}")
    if not takes_anything(row) and not shown:
        guard_keys(node, [*entries], context)
    defaults = {argument.torch: argument.default for argument in row.arguments if not argument.required}
    items = {}
    for key, kinds in entries.items():
        there: Any = ast.Subscript(context.visit(copy.deepcopy(node)), ast.Constant(key), ast.Load())
        if key != "inplace" and not all(isinstance(kind, DictKind) and key in dict(kind.entries) for kind in whole):
            if not isinstance(defaults.get(key), (bool, int, float, str)):
                raise Unwritable(f"{row.torch} with **{ast.unparse(node)} that has {key} only sometimes")
            pair: list[ast.expr] = [*map(ast.Constant, (key, defaults[key]))]
            there = ast.Call(ast.Attribute(there.value, "get", ast.Load()), pair, [])
            kinds = list(dict.fromkeys([*kinds, of_constant(defaults[key])]))
        items[key] = ObservedArgument(there, kinds, [None] if kinds == [NONE] else None)
    return items


def guard_keys(given: ast.expr, keys: list[str], context: Context) -> None:
    """Make the new file raise where a dictionary has other keys than these, the only ones that are written."""
    if _stays(given, context.function or given):
        return
    value = context.visit(copy.deepcopy(given))
    test, text = value, f"**{ast.unparse(value)} was empty"
    if keys:
        test = ast.parse(f"any(key not in {(*keys,)} for key in {ast.unparse(value)})", mode="eval").body
        text = f"**{ast.unparse(value)} had no key but {', '.join(keys)}"
    context.raise_where(test, value, text, given)


def _stays(given: ast.expr, function: ast.AST) -> bool:
    """Whether it is a variable that a function sets once, to a new dictionary, and only unpacks and takes items of."""
    kept: list[ast.AST] = []
    for node in ast.walk(function):
        match node:
            case ast.Assign([target], ast.Dict(keys)) if all(isinstance(key, ast.Constant) for key in keys):
                kept.append(target)
            case ast.keyword(None, value) | ast.Subscript(value, _, ast.Load()):
                kept.append(value)
    uses = [n for n in ast.walk(function) if ast.unparse(given) in (getattr(n, "id", ""), getattr(n, "arg", ""))]
    return sum(isinstance(getattr(n, "ctx", n), ast.Store) for n in uses) == 1 and all(n in kept for n in uses)


def known_argument(node: ast.expr) -> ObservedArgument:
    """An argument outside of the functions that ran, of which only constants are known."""
    known, constant = literal(node)
    return ObservedArgument(node, [of_constant(constant)] if known else [], [constant] if known else None)


def argument_of(node: ast.expr, context: Context) -> ObservedArgument:
    """An argument, rewritten, with what it was."""
    kinds, constants = kinds_of(node), constants_of(node)
    of_python = [TABLES["python_dtypes"].get(str(kind)) for kind in kinds]
    if any(of_python):  # dtype=bool
        if len(of_python) > 1 or not isinstance(node, ast.Name) or node.id in context.local:
            raise Unwritable(f"{ast.unparse(node)} is a Python class used as a dtype: write torch's dtype")
        return ObservedArgument(context.name(f"mindspore.{of_python[0]}"), [DtypeKind()], None)
    found = context.visit(node)
    weight_of = kinds_of(node.value) if isinstance(node, ast.Attribute) and node.attr == "weight" else []
    if context.program.all_derive(weight_of, TABLES["one_row"]):  # in such a layer its shape has another 1
        found = ast.Call(context.name("mindspore.ops.squeeze"), [found, ast.Constant(2)], [])
    return ObservedArgument(*pythons_number(found, kinds), constants)


def call_of_row(node: ast.Call, callees: Sequence[str], context: Context) -> ast.AST:
    """A torch call as the call of its row."""
    if is_super(node.func):
        return context.kept(node) if getattr(node.func, "attr", "") == "forward" else base(node, context)
    callees, called = [name.removeprefix("partial ") for name in callees], callees
    rows = {name: context.program.row(name) for name in callees}
    for name, row in rows.items():
        if row is None and not context.is_user_code(name):
            hint = next((f": {said}" for of, said in TABLES["write_instead"].items() if name.startswith(of)), "")
            raise Unwritable(f"{name} has no row in the mapping table{hint}")
    method = of_distributions(callees)
    match node.func:
        case ast.Call(ast.Name("getattr"), [_, named, *_]) if not literal(named)[0]:
            context.guard(context.visit(copy.deepcopy(named)), constants_of(named) or (), node)
    if (is_variable(node.func, context) and not method) or callees != called:
        return common_call(node, rows, context)
    row = next(iter(rows.values()))
    if row is None or len(rows) > 1:
        return common_call(node, rows, context)
    arguments = arguments_of(row, node, context, method=method or is_method(callees))
    first = arguments.get("input")
    if first is not None and row.torch in TABLES["of_floats"] and are_tensors(first.kinds, "int", "uint", "bool"):
        given = ast.Attribute(first.node, "astype", ast.Load())
        arguments["input"] = first._replace(node=ast.Call(given, [context.name("mindspore.float32")], []))
    plain = call_with_complex(row, arguments, context) or write_template(row.torch, arguments, context.name)
    if plain is not None:
        return plain
    call = write_call(row, arguments, context.name)
    only_as_seen(arguments, node, context)
    if callees[0] in context.program.translated:  # a class with the constructor of its torch base
        call.func = context.visit(node.func)
    return as_buffers(row, call, context.name, with_initial_values(row, call, context.name))


def only_as_seen(given: Given, node: ast.Call, context: Context) -> None:
    """Make the new file raise where an argument that crossed by its value has another value than in the run."""
    for name in sorted(given.by_value):
        constants, refused = given[name].constants, given.by_value[name]
        if refused or (constants is not None and not (name in PLACES and constants == [None])):
            context.guard(given[name].node, constants or (), node, refused)


def common_call(node: ast.Call, rows: Mapping[str, Row | None], context: Context) -> ast.expr:
    """A call of a variable that holds different classes or functions: written where the call is the same for all."""
    calls: list[ast.expr] = []
    lenient = [name for name, row in rows.items() if row is not None and takes_anything(row)]
    for name, row in rows.items():
        if name in lenient and len(lenient) < len(rows):
            continue  # it takes any arguments
        copied = copy.deepcopy(node)
        if len(rows) > 1:  # without `inplace` the result is the same, and not every class takes it
            copied.keywords = [word for word in copied.keywords if word.arg != "inplace"]
        function = context.visit(copied.func)
        if row is None or (row.takes_torchs and any(isinstance(one, ast.Starred) for one in copied.args)):
            if any(other is not None and one not in lenient for one, other in rows.items()):  # these raise with more
                copied.keywords = [word for word in copied.keywords if word.arg or entries_of(word.value) != {}]
            calls.append(kept_call(copied, rows, context))
        else:
            arguments = arguments_of(row, copied, context)
            calls.append(as_buffers(row, call_through_variable(row, arguments, context.name, function), context.name))
            only_as_seen(arguments, node, context)
    if len({ast.dump(call) for call in calls}) > 1:
        return by_class(calls, [*rows.values()], function, node, context)
    if len(lenient) == len(rows) and (node.args or any(word.arg != "inplace" for word in node.keywords)):
        other = ast.Compare(function, [ast.IsNot()], [context.name("mindspore.nn.Identity")])  # which would lack them
        context.raise_where(other, function, f"{ast.unparse(node.func)} was {' or '.join(rows)}", node)
    return calls[0]


def kept_call(node: ast.Call, callees: Iterable[str], context: Context) -> ast.Call:
    """A call of the model's own code; of a class in a variable, with a norm's momentum as that class takes it."""
    rows = [context.program.row(name) for name in callees if name not in context.program.owners]
    classes = is_variable(node.func, context) and all(row is not None and row.kind != "function" for row in rows)
    kept = context.kept(node)
    for word in kept.keywords:
        if word.arg == "momentum" and classes and [*callees]:
            word.value = ast.Call(context.name(MOMENTUM), [copy.deepcopy(kept.func), word.value], [])
    return kept


def base(node: ast.Call, context: Context) -> ast.Call:
    """`super().__init__(…)` of a class that derives from one of torch's."""
    row = context.program.torch_base(context.owner)
    if row is None:
        raise Unwritable(f"{ast.unparse(node.func)} of {context.owner}")
    arguments = arguments_of(row, node, context)
    call = write_call(row, arguments, context.name)
    only_as_seen(arguments, node, context)
    instead = _otherwise(row, arguments, context.name)
    if instead is not row and row.mindspore and instead.mindspore:
        context.program.other_bases[context.owner] = (row.mindspore, instead.mindspore)
    call.func = context.generic_visit(node.func)
    _keep(row, arguments, context)
    itself = ast.Name("self", ast.Load())
    begun = as_buffers(row, call, context.name, with_initial_values(row, itself, context.name))
    if begun is not itself:
        context.after.append(ast.Expr(begun))
    return call


def _keep(row: Row, given: Mapping[str, ObservedArgument], context: Context) -> None:
    """Assign after the statement those attributes of torch's layer that the class's own methods read and MindSpore's
    layer lacks; nothing where they call the base's methods, since MindSpore's read such attributes in their own way."""
    own = (f for f in context.program.owners.get(context.owner, ()) if not f.name.endswith(".__init__"))
    inside = [inner for method in map(context.program.node, own) if method is not None for inner in ast.walk(method)]
    read = {n.attr for n in inside if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "self"}
    if any(is_super(node) for node in inside if isinstance(node, ast.expr)):
        return
    for name in sorted(read.intersection(TABLES["not_kept"].get(row.torch, ()))):
        default = next(argument.default for argument in row.arguments if argument.torch == name)
        value = copy.deepcopy(given[name].node) if name in given else expression(default, context.name)
        kept = ast.Attribute(ast.Name("self", ast.Load()), name, ast.Store())
        context.after.append(ast.Assign([kept], value))


def is_variable(function: ast.expr, context: Context) -> bool:
    """Whether the callee is the value of a variable, and not a name that a module defines or imports."""
    if isinstance(function, ast.Name):
        # a method's own name is none of its local ones
        itself = context.function is not None and function.id == context.function.name
        return (function.id in context.local and not itself) or not context.program.is_global(context.file, function.id)
    if isinstance(function, ast.Call):  # which gives the same for the same constants
        return not all(literal(one)[0] for one in (*function.args, *(word.value for word in function.keywords)))
    if isinstance(function, (ast.Subscript, ast.IfExp, ast.BoolOp)):
        return True
    of = kinds_of(function.value) if isinstance(function, ast.Attribute) else [PythonModule("")]
    return not any(isinstance(k, (PythonModule, TensorKind)) or getattr(k, "name", "") == TRANSFORMER for k in of)


def is_super(function: ast.expr) -> bool:
    """Whether it is `super().something`."""
    match function:
        case ast.Attribute(ast.Call(ast.Name("super"))):
            return True
    return False


def is_method(callees: Sequence[str]) -> bool:
    """Whether all of these are methods of tensors."""
    return all(name.startswith("torch.Tensor.") for name in callees)
