"""Calls that are written by the kinds of what they are given: by a template, for complex tensors, as torch.fft gives
them, for tensors of several dtypes that are joined, the labels of a cross-entropy, the weights of losses and the words
that these had for a reduction, NumPy's, ranges, bounds and whole numbers; places that are everywhere; calls of one of
several classes that a variable holds, stacks of layers and checks of an input; and texts of tensors."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ....mappings.rows import Row
from ...library_names import TABLES
from ...source_files import literal, substitute
from ..observe.observations import (
    NONE,
    UNKNOWN_RANK,
    CallableKind,
    Kind,
    ModuleKind,
    ObjectKind,
    PlainKind,
    SequenceKind,
    SizeKind,
    TensorKind,
    always,
    callees_of,
    kinds_of,
    of_constant,
    replacing,
    set_callee,
    set_kinds,
)
from .context import Context, Namer, ObservedArgument, Unwritable, fill_template, handles, row_of

F = "msmigrate.nn.functional."
DRAWN = {f"torch.{one}": f"mindspore.ops.{one}" for one in ("rand", "randn")}  # of sizes that are written out
FULL = "mindspore.ops.full(size, value, dtype=mindspore.float32)"
OPERATORS = {ast.Mult: "mul", ast.Div: "div"}  # those in which MindSpore's complex tensors have no gradient, or another
NUMBERS = [{PlainKind("int")}, {PlainKind("float")}, {PlainKind("int"), PlainKind("float")}]
FLOAT32 = "mindspore.float32"
# what x.to(…) is given besides a dtype or a tensor: a device, how it is copied, and how it lies in memory
NO_CAST = {ObjectKind("torch.device"), ObjectKind("torch.memory_format"), NONE, *map(PlainKind, ("str", "bool", "int"))}
OF_ALL = ("max", "mean", "min", "sum")  # methods of tensors that give one number of all values
MEASURED = (ast.Add, ast.Sub, ast.MatMult)


def is_complex(kind: Kind) -> bool:
    """Whether it is a complex tensor, or a list of some, or a complex number of Python's."""
    if isinstance(kind, SequenceKind):
        return any(map(is_complex, kind.items))
    return kind == PlainKind("complex") or (isinstance(kind, TensorKind) and kind.dtype.startswith("complex"))


def may_be_complex(kinds: Iterable[Kind]) -> bool:
    """Whether it was a complex tensor now and then, or a complex number."""
    return any(map(is_complex, kinds))


def write_template(torch: str, given: Mapping[str, ObservedArgument], name: Namer) -> ast.expr | None:
    """The expression for a call that has a template, by torch's names of the arguments; else None."""
    names = set(given) - {"device"}  # a process of MindSpore has one
    if torch in TABLES["makes_float32"] and "dtype" in given and ast.unparse(given["dtype"].node) == FLOAT32:
        names -= {"dtype"}
    wide = "input" in given and are_tensors(given["input"].kinds, "float", "bfloat16", "int64")
    for row, arguments, template in (*TABLES["plain_calls"], *(TABLES["plain_calls_of_wide"] if wide else ())):
        if row == torch and {*arguments} == names:
            return fill_template(template, {key: item.node for key, item in given.items()}, name)
    size = given["size"].node if "size" in given else None
    if not isinstance(size, (ast.Tuple, ast.List)):
        return None
    value = given.get("fill_value")
    if torch == "torch.full" and names == {"size", "fill_value"} and value is not None:
        number = [of_constant(literal(value.node)[1])] if literal(value.node)[0] else value.kinds
        nodes = {"size": ast.Tuple(size.elts, ast.Load()), "value": value.node}
        return fill_template(FULL, nodes, name) if {*number} == {PlainKind("float")} else None
    if torch not in DRAWN or names - {"size", "dtype"}:
        return None
    words = [ast.keyword("dtype", given["dtype"].node)] if "dtype" in given else []
    return ast.Call(name(DRAWN[torch]), size.elts, words)


def are_tensors(kinds: Sequence[Kind], *dtypes: str) -> bool:
    """Whether an expression was always a tensor whose dtype begins with one of these names."""
    return bool(kinds) and all(isinstance(kind, TensorKind) and kind.dtype.startswith(dtypes) for kind in kinds)


def call_with_complex(row: Row, given: Mapping[str, ObservedArgument], context: Context) -> ast.expr | None:
    """A call with complex tensors, where it is not the row's own; raises Unwritable where neither is right."""
    if not any(may_be_complex(item.kinds) for item in given.values()):
        return None
    for name, arguments, template in TABLES["plain_calls_of_complex"]:
        if row.torch == name and {*arguments} == {*given}:
            nodes = {key: _complex(item.node, context) for key, item in given.items()}
            return fill_template(template, nodes, context.name)
    if row.torch not in TABLES["of_complex"] and not row.torch.startswith("torch.fft."):
        raise Unwritable(f"{row.torch} of a complex tensor: write it with the parts, by torch.view_as_real")
    return None


COMPLEX = TensorKind("complex64", UNKNOWN_RANK)


def of_dtype(names: Iterable[str], given: Iterable[Kind], result: list[Kind]) -> list[Kind]:
    """The kinds of what functions give in code that did not run: complex tensors of such, and of Fourier transforms."""
    last = {name.rpartition(".")[2] for name in names if name.startswith("torch.")}
    complex_ones = last and (last <= {*TABLES["makes_complex"]} or may_be_complex(given))
    if not complex_ones or not last.isdisjoint(TABLES["real_of_complex"]):
        return result
    return [COMPLEX if isinstance(kind, TensorKind) else kind for kind in result]


def sized(call: ast.Call, names: list[str], kinds: list[Kind]) -> tuple[list[str], list[Kind]]:
    """A call's callees and the kinds of its result: of `x.size(0)` a number."""
    one = ast.unparse(call.func).endswith(".size") and (call.args or call.keywords)
    return names, [PlainKind("int") if one and isinstance(kind, SizeKind) else kind for kind in kinds]


@handles(syntax=[ast.BinOp])
def operation(node: ast.BinOp, context: Context) -> ast.expr | None:
    """`x * y`, `x / y` of complex tensors as calls; the other operators as they stand, or not at all. A complex number
    becomes a tensor next to one."""
    sides = [of_constant(literal(one)[1]) if literal(one)[0] else kinds_of(one) for one in (node.left, node.right)]
    kinds = [kind for side in sides for kind in (side if isinstance(side, list) else [side])]
    if not may_be_complex(kinds) or not any(isinstance(kind, TensorKind) for kind in kinds):
        return None
    left, right = (_complex(context.visit(one), context) for one in (node.left, node.right))
    if isinstance(node.op, MEASURED):
        return ast.BinOp(left, node.op, right)
    name = OPERATORS.get(type(node.op))
    if name is not None and (_is_number(node.left) or _is_number(node.right)):
        return None
    if name is None:
        raise Unwritable(f"{ast.unparse(node)} of a complex tensor, of which MindSpore has no gradient: write products")
    return ast.Call(context.name(F + name), [left, right], [])


def _complex(node: ast.expr, context: Context) -> ast.expr:
    """A complex number of the source as a tensor, for MindSpore computes with no other; anything else as it is."""
    known, value = literal(node)
    if not known or not isinstance(value, complex):
        return node
    parts = (ast.Call(context.name("mindspore.Tensor"), [ast.Constant(one)], []) for one in (value.real, value.imag))
    return ast.Call(context.name(f"{F}complex"), [*parts], [])


def _is_number(node: ast.expr) -> bool:
    """Whether it was always a number of Python's, and no complex one."""
    known, value = literal(node)
    return isinstance(value, (int, float)) if known else {*kinds_of(node)} in NUMBERS


@handles("builtins.abs")
def absolute(node: ast.Call, context: Context) -> ast.expr | None:
    """Python's `abs(x)` of a complex tensor, whose values are real."""
    if len(node.args) != 1 or not may_be_complex(kinds_of(node.args[0])):
        return None
    return ast.Call(context.name(f"{F}abs"), [context.visit(node.args[0])], [])


@handles(syntax=[ast.Attribute])
def part(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`x.real` and `x.imag`, which are methods in MindSpore; the real part of a real tensor is itself."""
    kinds = kinds_of(node.value)
    if node.attr not in ("real", "imag") or not isinstance(node.ctx, ast.Load) or not always(kinds, TensorKind):
        return None
    if not may_be_complex(kinds) and node.attr == "real":
        return context.visit(node.value)
    place = "mindspore.ops." if node.attr == "imag" or all(map(is_complex, kinds)) else F
    return ast.Call(context.name(place + node.attr), [context.visit(node.value)], [])


@handles(*(f"torch.{name}" for name in ("cat", "concat", "concatenate", "stack", "hstack", "vstack")))
def joined(node: ast.Call, context: Context) -> ast.expr | None:
    """`ops.cat((x, y.astype(x.dtype)))` for `torch.cat((x, y))` of two dtypes, which MindSpore's CPU does not join."""
    items = node.args[0].elts if node.args and isinstance(node.args[0], (ast.Tuple, ast.List)) else []
    results = {kind.dtype for kind in kinds_of(node) if isinstance(kind, TensorKind)}
    dtypes = [{kind.dtype for kind in kinds_of(item) if isinstance(kind, TensorKind)} for item in items]
    like = next((item for item, own in zip(items, dtypes, strict=True) if own == results), None)
    if len(results) != 1 or like is None or any(len(own) != 1 for own in dtypes):
        return None
    if all(own == results for own in dtypes) or not isinstance(like, (ast.Name, ast.Attribute)):
        return None
    for place, (item, own) in enumerate(zip(items, dtypes, strict=True)):
        if own != results:
            method = replacing(ast.Attribute(item, "type_as", ast.Load()), item)
            set_callee(method, "torch.Tensor.type_as")
            items[place] = set_kinds(ast.copy_location(ast.Call(method, [like], []), item), kinds_of(like))
    found: ast.expr = context.visit(node)
    return found


@handles("module torch.nn.CrossEntropyLoss")
def cross_entropy(call: ast.Call, context: Context) -> ast.expr | None:
    """`self.ce(logits, target.astype(mindspore.int32))`: MindSpore's class takes no classes of int64, as torch's are,
    and has other names for both. Of labels in code that did not run it is not known whether they are classes."""
    words = {word.arg: word.value for word in call.keywords}
    given = [*call.args, *(words[name] for name in ("input", "target")[len(call.args) :] if name in words)]
    if len(given) != 2 or len(given) != len(call.args) + len(words):
        return None
    logits, labels = map(context.visit, given)
    kinds = kinds_of(given[1])
    seen = bool(kinds) and all(isinstance(kind, TensorKind) and kind.rank < UNKNOWN_RANK for kind in kinds)
    if are_tensors(kinds, "int64"):
        labels = ast.Call(ast.Attribute(labels, "astype", ast.Load()), [context.name("mindspore.int32")], [])
    elif not seen:
        labels = ast.Call(context.name(f"{F}class_labels"), [labels], [])
    return ast.Call(context.visit(call.func), [logits, labels], [])


def tensors_of_loss(row: Row, call: ast.Call) -> list[ast.keyword]:
    """The arguments of a loss's call that are tensors."""
    tensors = {state.mindspore for state in row.state} if row.kind == "loss" else set()
    return [word for word in call.keywords if word.arg in tensors and ast.unparse(word.value) != "None"]


def as_buffers(row: Row, call: ast.Call, name: Namer, made: ast.expr | None = None) -> ast.expr:
    """`made`, or the call, with the tensors of a loss's call as its buffers, which torch saves with the model; they
    leave the call, for MindSpore's classes take no Parameter there, and save no Tensor."""
    given = tensors_of_loss(row, call)
    call.keywords = [word for word in call.keywords if word not in given]
    made = call if made is None else made
    return ast.Call(name("msmigrate.nn.with_buffers"), [made], given) if given else made


NUMPYS: dict[Kind, str] = {  # without NumPy's float64, which is a Python float too
    PlainKind("float64"): "float",
    **{ObjectKind(f"numpy.{name}"): "float" for name in ("float64", "float32", "float16")},
    **{ObjectKind(f"numpy.{name}"): "int" for name in ("int64", "int32")},
}


def pythons_number(node: ast.expr, kinds: list[Kind]) -> tuple[ast.expr, list[Kind]]:
    """A Python number for a NumPy one, such as an item of an array of sizes: MindSpore's layers take only these."""
    names = {NUMPYS.get(kind) or getattr(kind, "type", "") for kind in kinds}
    if names not in ({"int"}, {"float"}) or not any(isinstance(kind, ObjectKind) for kind in kinds):
        return node, kinds
    (name,) = names
    return ast.Call(ast.Name(name, ast.Load()), [node], []), [PlainKind(name)]


@handles(syntax=[ast.BinOp])
def numpys_number(node: ast.BinOp, context: Context) -> ast.expr | None:
    """`numpy.log(8) * x` with Python's number for NumPy's, which makes an array of MindSpore's tensor."""
    number, other = node.left, node.right
    functions = {NUMPYS.get(kind) for kind in kinds_of(number)}
    if len(functions) != 1 or None in functions or not always(kinds_of(other), TensorKind):
        return None
    left = ast.Call(ast.Name(str(*functions), ast.Load()), [context.visit(number)], [])
    return ast.BinOp(left, node.op, context.visit(other))


@handles("torch.masked_fill", "torch.Tensor.masked_fill", "torch.Tensor.masked_fill_")
def filled_where(node: ast.Call, context: Context) -> ast.expr | None:
    """`masked_fill(x, mask, 0)` where x may be floating: MindSpore's takes a number of x's kind alone."""
    method = callees_of(node)[0].startswith("torch.Tensor.")
    if method and not isinstance(node.func, ast.Attribute):
        return None
    owner = [node.func.value] if method and isinstance(node.func, ast.Attribute) else []
    given = dict(zip(("input", "mask", "value"), (*owner, *node.args), strict=False))
    given |= {str(word.arg): word.value for word in node.keywords}
    if {*given} != {"input", "mask", "value"}:
        return None
    known, value = literal(given["value"])
    kinds = [of_constant(value)] if known else kinds_of(given["value"])
    whole = [kind for kind in kinds if kind in (PlainKind("int"), PlainKind("bool"))]
    if not whole or are_tensors(kinds_of(given["input"]), "int", "uint", "bool"):
        return None
    filled = [context.visit(given[name]) for name in ("input", "mask", "value")]
    return ast.Call(context.name(f"{F}masked_fill"), filled, [])


def by_class(
    calls: Sequence[ast.expr], rows: Sequence[Row | None], kind: ast.expr, node: ast.Call, context: Context
) -> ast.expr:
    """`kind(…) if kind is nn.Conv2d else kind(…)`, for a variable that holds classes which take arguments in different
    ways, or partials of these; any other raises. Raises Unwritable where they are no classes of layers, or one is
    written in several forms."""
    names = [row.mindspore for row in rows if row is not None and row.is_module and row.mindspore]
    plain = isinstance(kind, (ast.Name, ast.Attribute)) and context.in_python
    plain = plain and context.program.translated.isdisjoint(callees_of(node))
    if len({*names}) < len(rows) or len(calls) < len(rows) or not plain:
        raise Unwritable(f"{' and '.join(callees_of(node))} take these arguments in different ways")
    itself = ast.Call(ast.Name("getattr", ast.Load()), [copy.deepcopy(kind), ast.Constant("func"), kind], [])
    classes = [context.name(name) for name in names]
    other = ast.Compare(itself, [ast.NotIn()], [ast.Tuple([*classes], ast.Load())])
    context.raise_where(other, kind, f"{ast.unparse(node.func)} was {' or '.join(names)}", node)
    found = calls[-1]
    for cls, call in reversed([*zip(classes[:-1], calls[:-1], strict=True)]):
        found = ast.IfExp(ast.Compare(copy.deepcopy(itself), [ast.Is()], [cls]), call, found)
    return found


@handles(*(f"{layer}._check_input_dim" for layer in TABLES["checked_axes"]))
def axes_checked(node: ast.Call, context: Context) -> ast.expr | None:
    """`check_axes(x, 4)` for a norm's `self._check_input_dim(x)`, which a class derived from it calls."""
    layers = {name.rpartition(".")[0] for name in callees_of(node)}
    taken = {number for layer in layers for number in TABLES["checked_axes"].get(layer, ())}
    if len(layers) != 1 or len(node.args) != 1 or node.keywords or not taken:
        return None
    function = context.name(f"{F}check_axes")
    return ast.Call(function, [context.visit(node.args[0]), *map(ast.Constant, sorted(taken))], [])


@handles("msmigrate.nn.functional.detached")
def detached(node: ast.Call, context: Context) -> ast.expr:
    """`detached(self.forward(x))`, of a call that gives lists of tensors in a context without gradients."""
    return ast.Call(context.name(f"{F}detached"), [context.visit(one) for one in node.args], [])


STACKS = {f"torch.nn.Transformer{kind}": f"torch.nn.Transformer{kind}Layer" for kind in ("Encoder", "Decoder")}


@handles(*STACKS)
def stack_of_layers(call: ast.Call, context: Context) -> ast.expr | None:
    """A stack of transformer layers: msmigrate's, which copies the given layer as torch's does, where that may be other
    than what MindSpore's makes in its place by its numbers. None for MindSpore's own."""
    name = callees_of(call)[0]
    given = [*call.args[:1], *(word.value for word in call.keywords if str(word.arg).endswith("_layer"))]
    kinds = kinds_of(given[0]) if given else []
    own = [kind.cls for kind in kinds if isinstance(kind, ModuleKind) and kind.cls != STACKS[name]]
    if not own and not _is_changed(STACKS[name], context):
        return None
    for cls in own:
        _says_no_cause(cls, call, context)
    words = {word.arg: word.value for word in call.keywords if word.arg not in ("enable_nested_tensor", "mask_check")}
    visited = [ast.keyword(word, context.visit(value)) for word, value in words.items()]
    instead = context.name(f"msmigrate.nn.{name.rpartition('.')[2]}")
    return ast.Call(instead, [context.visit(one) for one in call.args[:3]], visited)


def _is_changed(layer: str, context: Context) -> bool:
    """Whether the model's files make such a layer with another activation than one by its name, or change a layer's
    parts: `layer.norm1 = …`."""
    for file in context.program.own_files:
        names = context.program.names(file)
        for node in ast.walk(context.program.tree(file)):
            if isinstance(node, ast.Call) and names.name(node.func) == layer:
                said = [*node.args[4:5], *(word.value for word in node.keywords if word.arg in ("activation", None))]
                if not all(isinstance(one, ast.Constant) for one in said):
                    return True
            if isinstance(getattr(node, "ctx", None), ast.Store) and ModuleKind(layer) in kinds_of(
                getattr(node, "value", node)
            ):
                return True
    return False


def _says_no_cause(cls: str, call: ast.Call, context: Context) -> None:
    """Raise where a layer's own `forward` computes with the `is_causal` that torch's stack gives it, and MindSpore's
    does not."""
    functions = [context.program.functions.get(f"{base}.forward") for base in context.program.facts.bases(cls)]
    for node in (context.program.node(one) for one in functions if one is not None):
        inside = [*ast.walk(node)] if node is not None else []
        handed = {id(n.value) for n in inside if isinstance(n, ast.keyword) and str(n.arg).endswith("is_causal")}
        read = [n for n in inside if isinstance(n, ast.Name) and n.id.endswith("is_causal") and id(n) not in handed]
        if read:
            raise Unwritable(f"{ast.unparse(call.func)} of {cls}, whose forward reads {read[0].id}: write a ModuleList")


def format_texts(function: ast.FunctionDef, *, compiled: bool) -> None:
    """The numbers of tensors for these where a text has a format, which MindSpore's do not take; and
    `"{:02d}".format(n)` for `f"{n:02d}"`, where a text is more than that of an error; in place."""
    for node in ast.walk(function):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            node.value = _number(node.value, function)
        elif isinstance(node, ast.Call) and callees_of(node) == ["builtins.str.format"]:
            node.args = [_number(one, function) if ":" in ast.unparse(node.func) else one for one in node.args]
        elif isinstance(node, ast.Call) and callees_of(node) == ["builtins.format"] and len(node.args) > 1:
            node.args[0] = _number(node.args[0], function)
    shown = {id(inner) for node in ast.walk(function) for inner in _shown(node)}
    if compiled:
        substitute(function, lambda node: None if id(node) in shown else _formatted(node))


def _number(node: ast.expr, function: ast.FunctionDef) -> ast.expr:
    """`x.item()` for a tensor without dimensions, also where only another place of the function says that it is one."""
    match node:
        case ast.Call(ast.Attribute(owner, name), [], []) if name in OF_ALL:  # a text is not looked into as it runs
            found = always(kinds_read(owner, function), TensorKind)
        case _:
            found = always(kinds_of(node) or kinds_read(node, function), TensorKind, rank=0)
    if not found:
        return node
    method = ast.Attribute(node, "item", ast.Load())
    set_callee(method, "torch.Tensor.item")
    return set_kinds(ast.copy_location(ast.Call(method, [], []), node), [PlainKind("float")])


def _shown(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement that are only shown to people."""
    if isinstance(node, ast.Raise):
        yield from ast.walk(node)
    elif isinstance(node, ast.Assert) and node.msg is not None:
        yield from ast.walk(node.msg)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):  # print(…), log.info(…)
        yield from ast.walk(node.value)


def _formatted(node: ast.AST) -> ast.expr | None:
    """The call for a text with a format; None for anything else."""
    if not isinstance(node, ast.JoinedStr):
        return None
    text, values = _template(node)
    inside = [part for part in ast.walk(node) if isinstance(part, ast.FormattedValue)]
    if all(part.format_spec is None and part.conversion == -1 for part in inside):
        return None
    return replacing(ast.Call(ast.Attribute(ast.Constant(text), "format", ast.Load()), values, []), node)


def _template(node: ast.JoinedStr) -> tuple[str, list[ast.expr]]:
    """The text with braces that `format` takes, and the values for these."""
    text, values = "", []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            values.append(part.value)
            spec, inner = _template(part.format_spec) if isinstance(part.format_spec, ast.JoinedStr) else ("", [])
            values += inner
            text += f"{{{'' if part.conversion == -1 else '!' + chr(part.conversion)}{':' if spec else ''}{spec}}}"
        elif isinstance(part, ast.Constant):
            text += str(part.value).replace("{", "{{").replace("}", "}}")
    return text, values


def kinds_read(node: ast.expr, function: ast.AST) -> list[Kind]:
    """What an expression was wherever the same text stands in a function; of what is called, what it called."""
    text, found = ast.unparse(node), list[Kind]()
    for one in ast.walk(function):
        if isinstance(one, type(node)) and ast.unparse(one) == text:
            found += [kind for kind in kinds_of(one) if kind != NONE]
        elif isinstance(one, ast.Assign) and [*map(ast.unparse, one.targets)] == [text]:
            found += [kind for kind in kinds_of(one.value) if kind != NONE]
        elif isinstance(one, ast.Call) and ast.unparse(one.func) == text:
            plain = [name.removeprefix("partial ") for name in callees_of(one)]
            found += [CallableKind("class", name) for name in plain if " " not in name]
    return list(dict.fromkeys(found))


def gives_display(node: ast.expr, context: Context) -> bool:
    """Whether it calls a function that only returns a dictionary of what its arguments are: `**to(x)`, for
    `return {"device": x.device, "dtype": x.dtype}`."""
    functions = [
        context.program.functions.get(name) for name in (callees_of(node) if isinstance(node, ast.Call) else ())
    ]
    nodes = [None if one is None else context.program.node(one) for one in functions]
    bodies = [[] if one is None else one.body[ast.get_docstring(one) is not None :] for one in nodes]
    for body in bodies:
        match body:
            case [ast.Return(ast.Dict(keys, values))] if all(isinstance(key, ast.Constant) for key in keys):
                if any(isinstance(inner, ast.Call) for value in values for inner in ast.walk(value)):
                    return False
            case _:
                return False
    given = [*node.args, *(word.value for word in node.keywords)] if isinstance(node, ast.Call) else []
    return bool(bodies) and all(isinstance(one, (ast.Name, ast.Attribute, ast.Constant)) for one in given)


@handles("torch.tensor", "torch.as_tensor")
def of_range(call: ast.Call, context: Context) -> ast.expr | None:
    """`torch.tensor(range(5))` with the list of its numbers, which MindSpore's takes; None for anything else."""
    if not call.args or kinds_of(call.args[0]) != [ObjectKind("builtins.range")]:
        return None
    numbers = ast.Call(ast.Name("list", ast.Load()), [call.args[0]], [])
    set_callee(numbers.func, "builtins.list")
    set_kinds(numbers, [SequenceKind("list", (PlainKind("int"),))])
    found: ast.expr = context.visit(replacing(ast.Call(call.func, [numbers, *call.args[1:]], call.keywords), call))
    return found


OLD = ("size_average", "reduce")  # what losses took before `reduction`, which these overrule


@handles(syntax=[ast.Call])
def in_one_word(call: ast.Call, context: Context) -> None:
    """`nn.MSELoss(size_average=False)` with `reduction="sum"`, as torch makes it of the two old arguments."""
    said = any(word.arg in OLD for word in call.keywords) or any(isinstance(literal(one)[1], bool) for one in call.args)
    rows = [row_of(name) for name in callees_of(call)] if said else []
    takes = [[argument.torch for argument in row.arguments] for row in rows if row is not None]
    if not takes or len(takes) < len(rows) or any(one != takes[0] or not {*OLD} <= {*one} for one in takes):
        return
    given = dict(zip(takes[0], call.args, strict=False)) | {str(word.arg): word.value for word in call.keywords}
    averages, reduces = (given.get(name) or ast.Constant(None) for name in OLD)
    (known, averaged), (reduces_known, reduced) = literal(averages), literal(reduces)
    computed = not known and kinds_of(averages) == [PlainKind("bool")]
    if not reduces_known or not (known or computed) or (known and averaged is None and reduced is None):
        return
    reduction: ast.expr = ast.Constant("sum" if known and averaged is not None and not averaged else "mean")
    if computed:
        reduction = ast.IfExp(averages, ast.Constant("mean"), ast.Constant("sum"))
    if reduced is not None and not reduced:
        reduction = ast.Constant("none")
    first = min(takes[0].index(name) for name in OLD)
    names = dict(zip(takes[0][first:], call.args[first:], strict=False))
    more = [ast.keyword(name, value) for name, value in names.items() if name not in OLD]
    kept = [word for word in [*more, *call.keywords] if word.arg not in (*OLD, "reduction")]
    call.args, call.keywords = call.args[:first], [*kept, ast.keyword("reduction", reduction)]


@handles(syntax=[ast.Subscript])
def everywhere(node: ast.Subscript, context: Context) -> ast.expr | None:
    """`x[:] = 0` for `x[...] = 0`, which changes a copy in MindSpore where x is the data of a parameter."""
    whole = isinstance(node.slice, ast.Constant) and node.slice.value is ... and not isinstance(node.ctx, ast.Load)
    if not whole or any(isinstance(kind, TensorKind) and kind.rank == 0 for kind in kinds_of(node.value)):
        return None
    return ast.Subscript(context.visit(node.value), ast.Slice(), node.ctx)


@handles("torch.randint")
def between(call: ast.Call, context: Context) -> None:
    """`torch.randint(5, (2, 3))` with the 0 that it starts from, and `int(…)` of a bound that is a tensor, which
    MindSpore's does not take; the rest is the row's."""
    words = {word.arg for word in call.keywords}
    if not words & {"low", "high"} and len(call.args) == 2 - ("size" in words):
        call.args.insert(0, ast.Constant(0))
    call.args[:2] = map(_whole, call.args[:2])
    for word in call.keywords:
        word.value = _whole(word.value) if word.arg in ("low", "high") else word.value


def _whole(node: ast.expr) -> ast.expr:
    """`int(x)` of what was a tensor now and then."""
    if not any(isinstance(kind, TensorKind) for kind in kinds_of(node)):
        return node
    function = ast.copy_location(ast.Name("int", ast.Load()), node)
    set_callee(function, "builtins.int")
    return set_kinds(replacing(ast.Call(function, [node], []), node), [PlainKind("int")])
