"""One torch call of a script as the MindSpore call that means the same, with every argument written out.

Literal values are translated by the mapping table. An expression stays as it is: where the table computes something
from the value, that is written around it, or noted where it cannot be.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...errors import BadInput, Unsupported
from ...mappings import table
from ...mappings.aliases import row_of
from ...mappings.rows import Argument, Call, Row
from ...mappings.verbs import VERBS, Verb
from ..library_names import MODULE, SCHEDULE, TABLES, TENSOR, dtype_name, family_of, is_dtype
from ..read_script.abstract_values import (
    CallArgument,
    LibraryName,
    LibraryObject,
    LibraryUse,
    ListValue,
    Value,
    is_known,
    known,
)
from ..source_files import LONGEST_TEXT

MOVES = ("to", "cuda", "cpu", "float")  # methods that return their object
SCHEDULES = "schedules"  # the verb of arguments that hold schedules
# expressions that need no brackets next to an operator, a dot or a bracket
OPERANDS: dict[type, tuple[str, ...]] = {
    ast.Attribute: ("value",),
    ast.Subscript: ("value",),
    ast.Call: ("func",),
    ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",),
    ast.Compare: ("left",),
}
SHORT = {"long": "int64", "int": "int32", "short": "int16", "half": "float16", "float": "float32", "double": "float64"}
OF_A_TUPLE = ("torch.reshape", "torch.broadcast_to", "torch.permute", "torch.tile")  # take sizes or axes as one tuple
DEVICES = re.compile(r"device|cuda|gpu|cpu|rank", re.IGNORECASE)  # in the text of an argument that is a device
SIMPLE = (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript)


class Expression:
    """An expression inside a call's arguments: it prints as its text, and refuses to be computed with."""

    def __init__(self, text: str, value: Any = None) -> None:
        self.text, self.value = text, value
        self.names: tuple[str, ...] = ()  # its possible names in the tables, where it is a library's own value
        self.several = False  # whether it is known to be a list or a tuple
        self.tensor = self.device = False  # whether it is known to be a tensor, a device
        self.moves: bool | None = False  # whether it is the device of x.to(…); None: or a dtype, which nothing tells

    def __repr__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return True  # as a number other than 0, which a note says


def _refuse(self: Expression, *rest: Any) -> Any:
    raise ValueError(f"it depends on {self.text}")


for _name in "float int index iter len add radd sub rsub mul rmul truediv neg lt le gt ge".split():  # noqa: SIM905
    setattr(Expression, f"__{_name}__", _refuse)


@dataclass(frozen=True)
class Rewritten:
    """The MindSpore call as source, notes on what to check, and why there is none: a value is refused, or the call is
    mistaken in torch too.

    other: the class that it calls, where that is the row's alternative for values that MindSpore's own does not take.
    """

    text: str | None = None
    notes: tuple[str, ...] = ()
    refused: Unsupported | None = None
    mistaken: str | None = None
    other: str | None = None


def rewrite(seen: LibraryUse, row: Row, texts: Texts) -> Rewritten:
    """Rewrite one call; texts: the calls inside it that were rewritten before."""
    try:
        given = _bound(seen, row, texts)
    except BadInput as error:
        return Rewritten(mistaken=str(error))
    notes: list[str] = []
    unpacked = [argument.node for argument in seen.arguments or [] if argument.name in ("*", "**")]
    unpacked = [node for node in unpacked if not (isinstance(node, ast.Starred) and _takes_any(row))]
    if unpacked:
        notes.append(f"arguments are unpacked from {seen.source.text(unpacked[0])}: write them out")
    if given.get("copy") is True and row.torch == "torch.Tensor.to":
        notes.append("copy=True: cast gives its own input where the dtype is the same: write .copy() after it")
    moved = _moved(row, given)
    if moved is not None:
        return moved
    values, after = _stand_ins(row, given, notes)
    try:
        call = table.translate(row.torch, values)
    except Unsupported as error:
        return Rewritten(notes=tuple(notes), refused=error)
    except BadInput as error:
        return Rewritten(notes=tuple(notes), mistaken=None if unpacked else str(error))
    except (TypeError, ValueError, AttributeError, KeyError, IndexError):
        return Rewritten(notes=(*notes, "its arguments are not known from the source"))
    if row.left_out and row.arguments[0].torch in given:  # a wrapper: its content stays
        return Rewritten(written(given[row.arguments[0].torch]), tuple(dict.fromkeys(notes)))
    kwargs = {**call.kwargs, **after}
    elements = "*args" in row.unwritten  # both take them by position, as the items of a list of modules
    leading = [a for a in row.arguments if a.torch in row.unwritten or (elements and not a.to)]
    first = [written(given[a.torch]) for a in leading if a.torch in given]
    words = [*first, *(word(name, value) for name, value in kwargs.items())]
    target = call.target
    if target.startswith("mindspore.Tensor.") and seen.name.startswith("torch.Tensor."):  # a method there, too
        target = f"{operand(written(given[row.arguments[0].torch]))}.{target.rpartition('.')[2]}"
    other = target if row.otherwise is not None and target == row.otherwise.mindspore else None
    return Rewritten(f"{target}({', '.join(words)})", tuple(dict.fromkeys(notes)), other=other)


def applied(
    row: Row, seen: LibraryUse, crossed: Rewritten, texts: Texts, *, statement: bool
) -> tuple[Rewritten, str | None]:
    """The rewritten call as it is written where the script has the call, and as a part of another call; statement:
    whether its result is not used.

    What an initializer of MindSpore's makes has to be given to a tensor, where torch's changes the tensor itself.
    """
    forms = TABLES["applied"].get(row.kind)
    if forms is None or crossed.text is None:
        return crossed, crossed.text
    tensor = next((one for one in seen.arguments or [] if one.name in (None, row.arguments[0].torch)), None)
    if tensor is None:
        return crossed, crossed.text
    node = _underlying(tensor.node)
    own = operand(text_of(seen, node, texts))
    if isinstance(node, ast.Subscript):  # what MindSpore's .data gives is another tensor: writing to it changes nothing
        whole = _underlying(node.value)
        own = f"{operand(text_of(seen, whole, texts))}[{seen.source.text(node.slice)}]"
    of = row_of(tensor.value.name) if isinstance(tensor.value, LibraryObject) and tensor.value.name else None
    plain = isinstance(node, ast.Name) and of is not None and of.kind == "function"
    given = "tensor" if plain or isinstance(node, ast.Subscript) else "parameter"
    form = given if statement else "value"

    def put(which: str) -> str:
        filling = {"TENSOR": own, "CALL": crossed.text or ""}
        return re.sub("TENSOR|CALL", lambda found: filling[found[0]], forms[which])

    return replace(crossed, text=put(form)), put("value")


def _underlying(node: ast.expr) -> ast.expr:
    """The tensor `x` of `x.data` and `x.detach()`."""
    match node:
        case ast.Attribute(value=inner, attr="data") | ast.Call(func=ast.Attribute(value=inner, attr="detach")):
            return _underlying(inner)
    return node


def left_out(seen: LibraryUse, row: Row, texts: Texts) -> str | None:
    """The object itself, for a call that returns it and that the row leaves out: x for x.cuda(), net for a wrapper."""
    if not row.left_out:
        return None
    if family_of(seen.name) == MODULE and seen.receiver is None and seen.arguments:
        held = seen.arguments[0]
        return text_of(seen, held.node, texts) if held.name in (None, "module") else None
    if seen.receiver is None or not isinstance(seen.node, ast.Call) or not isinstance(seen.node.func, ast.Attribute):
        return None
    names = [argument.value.name for argument in seen.arguments or [] if isinstance(argument.value, LibraryName)]
    if seen.node.func.attr not in MOVES or any(names):
        return None
    return text_of(seen, seen.node.func.value, texts)


def _moved(row: Row, given: Mapping[str, Any]) -> Rewritten | None:
    """The tensor itself for x.to(device), with the row's remark; both where nothing tells what it is."""
    argument = next((argument for argument in row.arguments if argument.device), None)
    value = given.get(argument.torch) if argument else None
    if argument is None or not isinstance(value, Expression) or value.moves is False:
        return None
    own = written(given[row.arguments[0].torch])
    if value.moves:
        again = given.get("copy") is True
        return Rewritten(f"{operand(own)}.copy()" if again else own, (argument.remedy or "",))
    cast = f"{row.mindspore}(input={own}, dtype={value})"
    return Rewritten(
        notes=(f"{value}: of a device leave .to({value}) out; of a dtype write {cast}, of a tensor its .dtype there",)
    )


def _named_to(positional: list[Any], named: dict[str, Any]) -> None:
    """The arguments of x.to in any order that torch takes: the dtype, or the dtype of a tensor, or else the device."""

    def is_dtype_of(value: Any) -> bool:
        known_one = isinstance(value, Expression) and any(is_dtype(name.rpartition(".")[2]) for name in value.names)
        return known_one or str(value).endswith(".dtype")

    device, rest = named.pop("device", None), positional[1:]
    del positional[1:]
    first = rest.pop(0) if rest else named.pop("other", None)
    if is_dtype_of(first) or (first is not None and device is not None):  # also x.to(dtype, device=device)
        named["dtype"] = first
    elif isinstance(first, Expression) and first.tensor:
        named["dtype"] = Expression(f"{operand(first.text)}.dtype")
    else:
        if rest and not isinstance(rest[0], bool):
            named["dtype"] = rest.pop(0)
        if "dtype" not in named:
            device = first if device is None else device
            text = device if isinstance(device, str) else repr(device)
            named["dtype"] = Expression(text)
            unsure = isinstance(first, Expression) and not first.device and not DEVICES.search(text)
            named["dtype"].moves = None if unsure else True
    named.update(zip(("non_blocking", "copy"), rest, strict=False))


def _bound(seen: LibraryUse, row: Row, texts: Texts) -> dict[str, Any]:
    """Every given argument by its torch name: a literal's value, or an Expression."""
    known_names = {argument.torch: argument for argument in row.arguments}
    positional: list[Any] = []
    named: dict[str, Any] = {}
    if seen.name.startswith("torch.Tensor.") and isinstance(seen.node, ast.Call):
        assert isinstance(seen.node.func, ast.Attribute)  # it was seen as a method
        positional.append(Expression(text_of(seen, seen.node.func.value, texts)))
    placed = seen.node.args if isinstance(seen.node, ast.Call) and _takes_any(row) else []
    starred = any(isinstance(one, ast.Starred) for one in placed)
    if starred:  # as written: the known elements of a list are those of one call only
        positional += [Expression(text_of(seen, one, texts)) for one in placed]
    for argument in seen.arguments or []:
        if argument.name in ("*", "**") or (starred and argument.name is None):
            continue
        value = _value(seen, argument, texts)
        if argument.name is None:
            positional.append(value)
        else:
            crossing = known_names.get(argument.name)
            schedules = _schedules(argument.value, texts) if crossing and crossing.verb == SCHEDULES else None
            named[argument.name] = value if schedules is None else schedules
            if isinstance(value, str):
                named[argument.name] = TABLES["old_values"].get(argument.name, {}).get(value, value)
    _in_old_order(seen, positional, named)
    if row.torch == "torch.Tensor.to":
        _named_to(positional, named)
    if row.torch == "torch.randint" and not {"low", "high"} & named.keys() and len(positional) == 2 - ("size" in named):
        positional.insert(0, 0)  # one number before the size is the upper bound
    return table.bind(row, named, tuple(positional))


def _takes_any(row: Row) -> bool:
    """Whether it takes any number of positional arguments, which are the elements of one tuple or stay as they are."""
    return any(argument.rest and argument.verb in (None, "dims") for argument in row.arguments)


# Methods that still take their factors before the tensors, x.addmm_(1, -2, a, b) -> the number of these tensors
OLD_ORDER = {
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm", "sspaddmm"), (("beta", "alpha"), 2)),
    **dict.fromkeys(("addcmul", "addcdiv"), (("value",), 2)),
    **dict.fromkeys(("add", "sub"), (("alpha",), 1)),
}


def _in_old_order(seen: LibraryUse, positional: list[Any], named: dict[str, Any]) -> None:
    """Name the numbers that come before the tensors of such a method."""
    method = seen.name.removeprefix("torch.Tensor.").removesuffix("_")
    factors, tensors = OLD_ORDER.get(method, ((), 0)) if seen.name.startswith("torch.Tensor.") else ((), 0)
    given = positional[1 : len(positional) - tensors]
    if 0 < len(given) <= len(factors) and all(type(one) in (int, float) for one in given):
        named.update(zip(factors, given, strict=False))
        del positional[1 : 1 + len(given)]


def _value(seen: LibraryUse, argument: CallArgument, texts: Texts) -> Any:
    if argument.at and is_known(argument.value):
        return known(argument.value)
    try:
        return ast.literal_eval(argument.node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        found = Expression(f"{text_of(seen, argument.node, texts)}{argument.at}", known(argument.value))
        object_ = argument.value if isinstance(argument.value, LibraryObject) else LibraryObject("")
        found.tensor, found.device = object_.family == TENSOR, object_.name == "torch.device"
        found.several = isinstance(argument.value, ListValue) or seen.name in OF_A_TUPLE
        if isinstance(argument.value, LibraryName):  # torch.float32; a member of an enumeration, by its value
            last = argument.value.name.rpartition(".")[2]
            found.names = (argument.value.name, f"torch.{SHORT.get(last, last)}", last, last.lower())
        return found


def _schedules(value: Value, texts: Texts) -> Any:
    """Schedules inside a schedule, each by its name and arguments; None where they are not known."""
    if not isinstance(value, ListValue) or not value.closed:
        return None
    found = []
    for item in value.items:
        row = row_of(item.name) if isinstance(item, LibraryObject) and item.family == SCHEDULE else None
        if row is None or not isinstance(item, LibraryObject) or item.seen is None:
            return None
        try:
            given = _bound(item.seen, row, texts)
        except BadInput:
            return None
        found.append([row.torch, {key: inner for key, inner in given.items() if key not in row.unwritten}])
    return found


def _stand_ins(row: Row, given: Mapping[str, Any], notes: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values to translate by the table, and the expressions that replace the results."""
    values: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for argument in row.arguments:
        if argument.torch not in given:
            continue
        value = given[argument.torch]
        values[argument.torch] = value
        if argument.verb == "half_width" and _opposite(given.get("a"), value):  # bounds -x and x, whatever x is
            values |= {"a": -1.0, argument.torch: 1.0}
            after[argument.to[0]] = value
            notes[:] = [note for note in notes if not note.startswith("a=")]
            continue
        whole = _whole_sizes(argument, value)
        if whole is not None:
            values[argument.torch], after[argument.to[0]] = _stand_in(row, argument, whole), whole
            continue
        if argument.verb == "dims" and isinstance(value, tuple) and len(value) == 1 and _unknown_name(value[0]):
            notes.append(
                f"{argument.torch}=({value[0]},): as for a number; where it is a list or a tuple, write it unchanged"
            )
        if not isinstance(value, Expression):
            continue
        named = next((name for name in value.names if name in _listed(argument)), None)
        other = next((name for name in value.names if name.startswith("torch.") and is_dtype(name[6:])), None)
        if named is not None:
            values[argument.torch] = named
        elif argument.values and other is not None and argument.verb != "refuse":
            values[argument.torch] = argument.values[0][0]
            after |= dict.fromkeys(argument.to, Expression(dtype_name(other[6:])))
            notes.append(f"{argument.torch}={value}: a dtype that the row's tests do not run")
        elif argument.only:
            values[argument.torch] = argument.only[0]
            after |= dict.fromkeys(argument.to, value)
            allowed = " or ".join(repr(one) for one in argument.only)
            notes.append(f"{argument.torch}={value}: only {allowed} has a counterpart{_because(argument)}")
        elif argument.values:
            values[argument.torch] = argument.values[0][0]
            by_name = any(str(torchs).startswith("torch.") for torchs, _ in argument.values)
            table_of = ", ".join(
                f"{torchs!r}: {mindspores!r}"
                for torchs, mindspores in argument.values
                if not by_name or is_dtype(str(torchs).rpartition(".")[2])
            )
            after |= dict.fromkeys(argument.to, value if by_name else Expression(f"{{{table_of}}}[{value}]"))
            own = value.text.endswith(".dtype")  # of a tensor of MindSpore's
            notes += [f"{argument.torch}={value} crosses by {{{table_of}}}"] if by_name and not own else []
        elif argument.verb:
            _through_verb(row, argument, value, values, after, notes)
    return values, after


def _opposite(one: Any, other: Any) -> bool:
    """Whether one expression is the other with a minus before it."""
    if not isinstance(one, Expression) or not isinstance(other, Expression):
        return False
    node, same = _parsed(one.text), _parsed(other.text)
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return same is not None and ast.dump(operand) == ast.dump(same)
        case ast.BinOp(op=ast.Mult() | ast.Div()):
            return same is not None and ast.unparse(node) == f"-{ast.unparse(same)}"
    return False


def _whole_sizes(argument: Argument, value: Any) -> Expression | None:
    """The expression that has all the sizes of such an argument: given by name, or in place of numbers one by one."""
    if argument.verb != "dims":
        return None
    one = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    if not isinstance(one, Expression):
        return None
    node = _parsed(one.text)
    if isinstance(node, ast.List):  # not every function of MindSpore's takes a list
        return Expression(ast.unparse(ast.Tuple(node.elts, ast.Load())))
    if isinstance(node, ast.ListComp):
        return Expression(f"tuple({one.text})")
    # by name torch takes a list or a tuple, and no number
    return one if one is value or one.several or _are_sizes(node) else None


def _are_sizes(node: ast.expr | None) -> bool:
    """Whether an expression is a whole shape, a part of one or several of them, such as `(n, *x.shape[1:])`."""
    match node:
        case ast.Tuple() | ast.List() | ast.Attribute(attr="shape") | ast.Subscript(slice=ast.Slice()):
            return True
        case ast.Call(func=ast.Name(id="tuple" | "list" | "sorted") | ast.Attribute(attr="Size")):
            return True
        case ast.Call(func=ast.Attribute(attr="size"), args=args, keywords=named):
            dims = [*args, *(one.value for one in named if one.arg != "input")]
            return all(isinstance(dim, ast.Constant) and dim.value is None for dim in dims)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
            return _are_sizes(left) or _are_sizes(right)
        case ast.IfExp(body=body, orelse=orelse):
            return _are_sizes(body) or _are_sizes(orelse)
    return False


def _unknown_name(value: Any) -> bool:
    """Whether this is a variable, attribute or item whose value is unknown, and not one size of a shape."""
    if not isinstance(value, Expression) or value.value is not None:
        return False
    node = _parsed(value.text)
    of_shape = isinstance(node, ast.Subscript) and _are_sizes(node.value)
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and not of_shape


def _parsed(text: str) -> ast.expr | None:
    """The parsed expression, None where the text is not an expression by itself."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def operand(text: str) -> str:
    """The text, in brackets where an operator or a dot after it would apply only to a part of it."""
    inner = _parsed(text)
    return text if inner is None or isinstance(inner, SIMPLE) else f"({text})"


def _listed(argument: Argument) -> list[Any]:
    """The values that an argument's row lists."""
    return [*(ours for ours, _ in argument.values), *argument.only, *argument.refuse]


def _because(argument: Argument) -> str:
    return f": {argument.why}" if argument.why else ""


def _through_verb(
    row: Row,
    argument: Argument,
    value: Expression,
    values: dict[str, Any],
    after: dict[str, Any],
    notes: list[str],
) -> None:
    """Cross an expression that the table computes with: symbolically, or with a value in its place."""
    verb = VERBS[argument.verb or ""]
    says = verb.description
    formula = _formula(verb, value)
    stand_in = _stand_in(row, argument, value)
    if formula is not None and len(argument.to) == 1:
        values[argument.torch] = stand_in
        after[argument.to[0]] = Expression(formula)
        return
    try:
        table.translate(row.torch, {**_examples(row), argument.torch: value})
    except (Unsupported, BadInput, TypeError, ValueError, AttributeError, KeyError, IndexError):
        values[argument.torch] = stand_in
        if len(argument.to) == 1:
            after[argument.to[0]] = value
            notes.append(f"{argument.torch}={value} crosses as: {says}")
        else:
            notes.append(f"{' and '.join(argument.to)} follow from {value}: {says}; written here for {stand_in!r}")
        return
    if len(argument.to) > 1 or verb.none_differs:
        notes.append(f"{argument.torch}={value} crosses as: {says}; written here for a number other than 0")


def _formula(verb: Verb, value: Expression) -> str | None:
    """The expression's crossing as source, such as `1 - value`, where the verb has such a formula for every number."""
    if _parsed(value.text) is None:
        return None
    nodes = verb.symbolic(ast.Name(operand(value.text), ast.Load()), None) if verb.symbolic else None
    return ast.unparse(nodes[0]) if nodes else None


def _stand_in(row: Row, argument: Argument, value: Expression) -> Any:
    """A value to translate in place of an expression: its own by default, torch's default, or one from a test."""
    if value.value is not None:
        return value.value
    return _examples(row).get(argument.torch) if argument.required else argument.default


def _examples(row: Row) -> dict[str, Any]:
    """Arguments that surely cross: those of the row's first case."""
    return dict(next((case.args for case in row.cases if case.raises is None), {}))


# the call as source text

Texts = Mapping[int, str]  # a node of a call -> the call rewritten


def text_of(seen: LibraryUse, node: ast.expr, texts: Texts) -> str:
    """The source of a node, with the calls inside it rewritten."""
    if seen.source.length(node) > LONGEST_TEXT:
        return seen.source.text(node)
    inside = {id(part) for part in ast.walk(node)} & texts.keys()
    if not inside:
        return seen.source.text(node)
    if id(node) in inside:
        return texts[id(node)]
    return " ".join(ast.unparse(replaced(node, lambda part: texts.get(id(part)))).split())


def replaced(node: Any, new: Callable[[ast.AST], str | None]) -> Any:
    """A copy of a tree with some of its nodes replaced by names, whose text unparse writes unchanged."""
    if isinstance(node, list):
        return [replaced(item, new) for item in node]
    if not isinstance(node, ast.AST):
        return node
    text = new(node)
    if text is not None:
        return ast.Name(id=text, ctx=ast.Load())
    made = copy.copy(node)
    for name, value in ast.iter_fields(node):
        changed = replaced(value, new)
        if name in OPERANDS.get(type(node), ()) and changed is not value and isinstance(changed, ast.Name):
            changed = ast.Name(id=operand(changed.id), ctx=ast.Load())
        setattr(made, name, changed)
    return made


def word(name: str, value: Any) -> str:
    """One argument of a call as source; those of `*args` by position."""
    if name == "*args":
        return ", ".join(map(written, value)) if isinstance(value, (list, tuple)) else written(value)
    return f"{name}={written(value)}"


def written(value: Any) -> str:
    """A value inside a call as source."""
    if isinstance(value, Call):
        return f"{value.target}({', '.join(word(name, inner) for name, inner in value.kwargs.items())})"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(written(item) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {written(item)}' for key, item in value.items())}}}"
    return repr(value)
