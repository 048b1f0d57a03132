"""Calls that register or change modules' tensors (parameters, buffers, gradients), and calls that run modules."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from ...library_names import CELL_METHODS, CONTAINERS, COUNTERPARTS, DROPPED, SIMPLIFIED, TABLES
from ...source_files import literal, short
from ..observe.observations import (
    NONE,
    Kind,
    ModuleKind,
    SequenceKind,
    always,
    always_sequences,
    callees_of,
    constants_of,
    kinds_of,
    replacing,
    set_callee,
)
from .context import UNSEEN, Context, Problem, Stage, Unwritable, handles, row_of
from .devices_and_no_grad import flag_of
from .layer_methods import by_construct
from .replaced_methods import beside_property, named_cells
from .row_calls import is_super

PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
BUFFERS = ("torch.nn.Buffer", "torch.nn.parameter.Buffer")
MODES = ("torch.nn.Module.train", "torch.nn.Module.eval")
LOADING = [
    f"torch.nn.Module.{name}"
    for name in (
        *("register_load_state_dict_pre_hook", "_register_load_state_dict_pre_hook", "register_state_dict_pre_hook"),
        *("register_load_state_dict_post_hook", "register_state_dict_post_hook", "_register_state_dict_hook"),
    )
]
FIRST_NAME, OPTIONAL = "msmigrate.nn.first_name", "msmigrate.nn.OptionalCells"  # a list in which None may stand
ATTENTION = "torch.nn.MultiheadAttention"
MASKS: dict[str, list[dict[str, int]]] = TABLES["masks"]
ADDED = "msmigrate.nn.functional.added_mask"
KEPT_CALLS: dict[str, str] = TABLES["kept_calls"]
OWNERS = [f"torch.nn.{one}." for one in ("Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList")]
# what makes a layer's weight computed from other parameters -> its counterpart
_KINDS = [(of, n) for n in ("weight_norm", "spectral_norm") for of in ("", f"{n}.", "parametrizations.")]
NORMS = {f"torch.nn.utils.{of}{n}": f"msmigrate.nn.{n}" for of, n in _KINDS}
NORMS |= {f"torch.nn.utils.{of}remove_{n}": "msmigrate.nn.remove_norm" for of, n in _KINDS if "para" not in of}
NORMED = ("Linear", "Embedding", *(f"{kind}{rank}d" for kind in ("Conv", "ConvTranspose") for rank in (1, 2, 3)))
GROWING = {"append", "extend", "insert", "update"}
PARAMETERS_OF = {"parameters", "named_parameters"}  # MindSpore's counterparts give buffers as well
NUMBERED = ("torch.nn.Sequential", "torch.nn.ModuleList")
KEPT = {*CELL_METHODS, *GROWING, "__init__", "items", "values", "keys"}  # methods that Cells have too


@handles("torch.nn.Module.register_buffer", stage=Stage.STATEMENT)
def register_buffer(call: ast.Call, context: Context) -> list[ast.stmt]:
    """`self.name = Parameter(value, requires_grad=False)`, since MindSpore saves only parameters in a checkpoint; a
    buffer that torch does not save becomes a tensor. In a file that goes over parameters it is marked as a buffer."""
    owner, name, value = _named(call, context)
    absent = kinds_of(value) == [NONE] or ast.unparse(value) == "None"
    node = context.visit(value)
    if absent or not _saved(call, 2):
        return [_put(owner, name, node)]
    made = _untrained(node, context, ast.keyword("name", name))
    if NONE in kinds_of(value):  # at least sometimes
        made = ast.IfExp(ast.Compare(copy.deepcopy(node), [ast.Is()], [ast.Constant(None)]), ast.Constant(None), made)
    return [_put(owner, name, made)]


@handles("torch.nn.Module.register_parameter", stage=Stage.STATEMENT)
def register_parameter(call: ast.Call, context: Context) -> list[ast.stmt]:
    """`self.name = value`."""
    owner, name, value = _named(call, context)
    return [_put(owner, name, context.visit(value))]


@handles("torch.nn.Embedding.__init__", stage=Stage.STATEMENT)
def frozen_embedding(call: ast.Call, context: Context) -> list[ast.stmt] | None:
    """`super().__init__(…, _freeze=True)` of an embedding, as a table that does not train."""
    frozen = next((word.value for word in call.keywords if word.arg == "_freeze"), None)
    if frozen is None or not is_super(call.func):
        return None
    known, value = literal(frozen)
    trained = ast.Constant(not value) if known else ast.UnaryOp(ast.Not(), context.visit(frozen))
    call.keywords = [word for word in call.keywords if word.arg != "_freeze"]
    table = ast.Attribute(ast.Name("self", ast.Load()), "embedding_table", ast.Load())
    flag = ast.Attribute(table, "requires_grad", ast.Store())
    return [ast.Expr(context.visit(call)), ast.Assign([flag], trained)]


def _named(call: ast.Call, context: Context) -> tuple[ast.expr, ast.expr, ast.expr]:
    """`self`, the name and the value, of `self.register_…("name", value)`."""
    name, value = _given(call, 0, "name"), _given(call, 1, "tensor", "param")
    assert isinstance(call.func, ast.Attribute) and name is not None
    context.adds |= ast.unparse(call.func.value) != "self"  # that layer may already have its name
    return context.visit(call.func.value), context.visit(name), value or ast.Constant(None)


def _given(call: ast.Call, place: int, *names: str) -> ast.expr | None:
    """An argument of a call, by its position or one of its names."""
    words = {word.arg: word.value for word in call.keywords}
    return call.args[place] if len(call.args) > place else next((words[name] for name in names if name in words), None)


def _put(owner: ast.expr, name: ast.expr, value: ast.expr) -> ast.stmt:
    """`self.name = value`, or `setattr` where the name is computed."""
    if isinstance(name, ast.Constant) and str(name.value).isidentifier():
        return ast.Assign([ast.Attribute(owner, str(name.value), ast.Store())], value)
    return ast.Expr(ast.Call(ast.Name("setattr", ast.Load()), [owner, name, value], []))


def _saved(call: ast.Call, place: int) -> bool:
    """Whether a buffer is part of a state dict, by the argument `persistent`; place: its position."""
    persistent = _given(call, place, "persistent") or ast.Constant(True)
    return not isinstance(persistent, ast.Constant) or bool(persistent.value)


def _untrained(value: ast.expr, context: Context, *options: ast.keyword) -> ast.expr:
    if _asks_for_parameters(context):
        return ast.Call(context.name("msmigrate.nn.buffer"), [value], [*options])
    untrained = ast.keyword("requires_grad", ast.Constant(False))
    return ast.Call(context.name("mindspore.Parameter"), [value], [*options, untrained])


def _asks_for_parameters(context: Context) -> bool:
    """Whether any class of the model, or a function that ran, asks a module for its parameters."""
    program = context.program
    ran = {part for name in program.functions for part in name.split(".")[-2:]}  # functions, and methods' classes
    return any(
        isinstance(inner, ast.Attribute) and inner.attr in PARAMETERS_OF
        for file in {function.file for function in program.functions.values()}
        for node in program.tree(file).body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in ran
        for inner in ast.walk(node)
    )


@handles(*LOADING, stage=Stage.STATEMENT)
def loading_hook(call: ast.Call, context: Context) -> list[ast.stmt]:
    """Nothing: a hook on a state dict is no part of what a model computes; it is listed."""
    text = f"{ast.unparse(call.func)}: a hook that changes a state dict when it is loaded or saved"
    context.program.left_out.append(Problem(context.file, call.lineno, text))
    return []


@handles("torch.nn.*")
def called_forward(call: ast.Call, context: Context) -> ast.expr | None:
    """`layer.forward(x)` of a torch layer as `layer(x)`; it calls no hooks, so with such `layer.construct(x)`."""
    callees = callees_of(call)
    if not isinstance(call.func, ast.Attribute) or not always(kinds_of(call.func.value), ModuleKind):
        return None  # `super().forward(x)` and `nn.Linear.forward(self, x)` call a base class
    if not all(name.endswith(".forward") and not name.startswith("torch.nn.Module.") for name in callees):
        return None
    called = replacing(ast.Call(call.func.value, call.args, call.keywords), call)
    set_callee(call.func.value, *(f"module {name.removesuffix('.forward')}" for name in callees))
    found: ast.Call = context.visit(called)
    return by_construct(found, context)


@handles(*BUFFERS)
def buffer(call: ast.Call, context: Context) -> ast.expr:
    """A parameter that does not train, for a buffer that torch saves; else its value."""
    value = context.visit(call.args[0] if call.args else call.keywords[0].value)
    return _untrained(value, context) if _saved(call, 1) else value


@handles(*MODES)
def set_train(call: ast.Call, context: Context) -> ast.expr | None:
    """`net.train(mode)` and `net.eval()` as `net.set_train(mode)`."""
    callees = callees_of(call)
    if len(callees) != 1 or not isinstance(call.func, ast.Attribute):
        return None
    owner = ast.Attribute(context.visit(call.func.value), "set_train", ast.Load())
    training = flag_of(call, context) if callees[0] == MODES[0] else ast.Constant(False)
    return ast.Call(owner, [training], [])


@handles(*(f"module torch.nn.{name}" for name in ("LSTM", "GRU", "RNN")))
def packed_sequences(call: ast.Call, context: Context) -> ast.expr | None:
    """`run_packed(self.lstm, packed)`, for a recurrent layer that is given packed sequences."""
    given = [*call.args[:1], *(word.value for word in call.keywords if word.arg == "input")]
    if not given or any(getattr(kind, "type", "") != "PackedSequence" for kind in kinds_of(given[0])):
        return None
    args = [context.visit(one) for one in (call.func, *call.args)]
    words = [ast.keyword(word.arg, context.visit(word.value)) for word in call.keywords]
    return ast.Call(context.name("msmigrate.nn.run_packed"), args, words)


@handles(*KEPT_CALLS)
def kept_call(call: ast.Call, context: Context) -> ast.expr | None:
    """The same call of msmigrate's class or function, such as a list of parameters."""
    callees = callees_of(call)
    if len(callees) != 1:
        return None
    kept = context.kept(call)
    kept.func = context.name(KEPT_CALLS[callees[0]])
    return kept


@handles(*NORMS)
def computed_weight(call: ast.Call, context: Context) -> ast.expr:
    """`weight_norm(nn.Linear(6, 4))`: a layer whose weight is computed from other parameters each time it runs."""
    callees = callees_of(call)
    words = {word.arg: word.value for word in call.keywords}
    layer, name = _given(call, 0, "module"), _given(call, 1, "name") or ast.Constant("weight")
    kinds = kinds_of(layer) if layer is not None else []
    known = {f"torch.nn.{one}" for one in NORMED} - {"torch.nn.ConvTranspose3d"}
    bases = {str(k): context.program.facts.bases(k.cls) if isinstance(k, ModuleKind) else () for k in kinds}
    removes = "remove_" in callees[0]  # raises ValueError of other layers, as torch's does
    other = [] if removes else [kind for kind, found in bases.items() if not known.intersection(found)]
    names = constants_of(name) if not isinstance(name, ast.Constant) else [name.value]
    if len(callees) != 1 or layer is None or None in words or other or names != ["weight"]:
        of = f"{ast.unparse(name)} of {' and '.join(other) or 'a layer'}"
        raise Unwritable(f"{callees[0]} of {of}: only the weight of {', '.join(NORMED[:-1])} can be written")
    kept = context.kept(replacing(ast.Call(call.func, call.args, call.keywords), call))
    kept.func = context.name(NORMS[callees[0]])
    for word in kept.keywords:
        word.arg = "cell" if word.arg == "module" else word.arg
    if callees[0].endswith("parametrizations.spectral_norm"):  # its power iteration updates u first
        kept.keywords.append(ast.keyword("u_first", ast.Constant(True)))
    return kept


@handles(*CONTAINERS, "torch.nn.Module")
def container(call: ast.Call, context: Context) -> ast.expr | None:
    """`nn.Sequential(…)` and the other containers, and `nn.Module()`, which only holds others."""
    callees = callees_of(call)
    if len(callees) != 1:
        return None
    kept, of_list = context.kept(call), callees[0] == "torch.nn.ModuleList"
    given = [*call.args, *(word.value for word in call.keywords if of_list)]
    empty = any(isinstance(kind, SequenceKind) and NONE in kind.items for one in given for kind in kinds_of(one))
    empty = empty or _is_given_none(call, context)
    kept.func = context.name(OPTIONAL if empty and of_list else COUNTERPARTS[callees[0]])
    if of_list:
        kept.args, kept.keywords = [*kept.args, *(word.value for word in kept.keywords)], []
    kept.args = [_listed(one, was, of_list) for one, was in zip(kept.args, given, strict=True)]
    return kept


def _is_given_none(call: ast.Call, context: Context) -> bool:
    """Whether the function that makes a list of layers appends a None to it, `self.skips.append(None)`."""
    inside, text = [*ast.walk(context.function or call)], ast.unparse(call)
    made = [n for n in inside if isinstance(n, ast.Assign) and (n.value is call or ast.unparse(n.value) == text)]
    adding = {f"{ast.unparse(target)}.append" for one in made for target in one.targets}
    calls = [n for n in inside if isinstance(n, ast.Call) and ast.unparse(n.func) in adding]
    return any(NONE in kinds_of(one) for n in calls for one in n.args)


@handles(*(f"{prefix}*" for prefix in OWNERS))
def module_method(call: ast.Call, context: Context) -> ast.expr | None:
    """A method that Cells have too; a method that gives the children by name gives a dictionary in MindSpore, and one
    that gives the parameters gives buffers as well."""
    last = {name.rpartition(".")[2] for name in callees_of(call)}
    if not last <= KEPT:
        return None
    if last <= GROWING and isinstance(call.func, ast.Attribute) and not isinstance(call.func.value, ast.Name):
        context.adds = True
    kept = context.kept(call)
    if last == {"extend"}:
        kept.args = [_listed(one, was) for one, was in zip(kept.args, call.args, strict=True)]
    if len(last) == 1 and last <= PARAMETERS_OF and isinstance(kept.func, ast.Attribute):
        owner = kept.func.value
        return ast.Call(context.name(f"msmigrate.nn.{last.pop()}"), [owner, *kept.args], kept.keywords)
    if last == {"named_children"}:
        return ast.Call(ast.Attribute(kept, "items", ast.Load()), [], [])
    match kept:
        case ast.Call(ast.Attribute(owner), [], []) if last <= {"modules", "named_modules"}:
            kept = named_cells(owner, context)
    if last == {"modules"}:  # without their names
        pair = ast.Tuple([ast.Name("_", ast.Store()), ast.Name("cell", ast.Store())], ast.Store())
        return ast.ListComp(ast.Name("cell", ast.Load()), [ast.comprehension(pair, kept, [], 0)])
    return kept


@handles(*(n for one in MASKS for n in ([f"module {one}", f"{one}.forward"] if short(one)[0].isupper() else [one])))
def attention(node: ast.Call, context: Context) -> ast.expr:
    """A call of attention, of a layer with attention inside, or of such a layer's method. Of one attention's two masks
    one may be of bools, which become numbers, `added_mask(mask)`, for MindSpore's adds them as 0 and 1."""
    layer = callees_of(node)[0].removeprefix("module ").removesuffix(".forward")
    wanted = _given(node, 4, "need_weights") or ast.Constant(True)
    places = [found for pair in MASKS[layer] for found in _bools_beside_numbers(node, pair)]
    kept = context.kept(node)
    for name, place in places:
        name = TABLES["forwards"].get(layer, {}).get(name, name)
        if place < len(kept.args):
            kept.args[place] = ast.Call(context.name(ADDED), [kept.args[place]], [])
        for word in (word for word in kept.keywords if word.arg == name):
            word.value = ast.Call(context.name(ADDED), [word.value], [])
    return _output_of_attention(kept, wanted) if layer == ATTENTION else kept


def _bools_beside_numbers(node: ast.Call, pair: dict[str, int]) -> list[tuple[str, int]]:
    """Which of two masks, argument: its place, may be of bools beside numbers; None may be either another time."""
    found = {name: _given(node, place, name) for name, place in pair.items()}
    given = {name: mask for name, mask in found.items() if mask is not None and not isinstance(mask, ast.Constant)}
    dtypes = [{getattr(kind, "dtype", "") for kind in kinds_of(mask) or [NONE]} for mask in given.values()]
    if len(given) < 2 or dtypes == [{"bool"}] * 2:
        return []
    return [(name, pair[name]) for name, of in zip(given, dtypes, strict=True) if of & {"", "bool"}]


def _output_of_attention(kept: ast.Call, wanted: ast.expr) -> ast.expr:
    """A call of MultiheadAttention, whose tuple in MindSpore has the output alone where no weights are requested:
    `(attention(x, x, x, need_weights=wanted) + (None,))[:2]`, where that is not known."""
    if isinstance(wanted, ast.Constant):
        alone = ast.Subscript(kept, ast.Constant(0), ast.Load())  # MindSpore's is a tuple of one
        return kept if wanted.value else ast.Tuple([alone, ast.Constant(None)], ast.Load())
    padded = ast.BinOp(kept, ast.Add(), ast.Tuple([ast.Constant(None)], ast.Load()))
    return ast.Subscript(padded, ast.Slice(None, ast.Constant(2)), ast.Load())


@handles("torch.nn.Module.__setattr__", "torch.nn.Module.__getattr__")
def by_name(call: ast.Call, context: Context) -> ast.expr | None:
    """`self.__setattr__("level1", cell)` as `setattr(self, "level1", cell)`, and `__getattr__` likewise."""
    if not isinstance(call.func, ast.Attribute) or is_super(call.func):
        return None
    given = [context.visit(one) for one in (call.func.value, *call.args)]
    return ast.Call(ast.Name(call.func.attr.strip("_"), ast.Load()), given, [])


@handles("builtins.setattr", stage=Stage.STATEMENT)
def put_by_name(call: ast.Call, context: Context) -> list[ast.stmt] | None:
    """`replace_cell(net, name, cell)` for `setattr(net, name, layer)`: a SequentialCell keeps a list of its own."""
    return _put_into(context, *call.args) if len(call.args) == 3 else None


@handles(syntax=[ast.Assign], stage=Stage.IN_PLACE)
def put_in_place(node: ast.Assign, context: Context) -> list[ast.stmt] | None:
    """The same for `net._modules[name] = layer` and `net.conv = layer`; and what is put into a layer that is already in
    its place, `net[0] = layer`, gets its name from there. None for any other statement."""
    match node.targets:
        case [ast.Subscript(ast.Attribute(owner, "_modules"), name)]:
            return _put_into(context, owner, name, node.value)
        case [ast.Attribute(owner, name)]:
            return _put_into(context, owner, ast.Constant(name), node.value, of=("Sequential", "ModuleDict"))
        case [ast.Subscript(owner, place)] if not isinstance(place, ast.Slice):
            return _put_into(context, owner, place, node.value, of=("Sequential", "ModuleList"))
    return None


def _put_into(
    context: Context, owner: ast.expr, name: ast.expr, value: ast.expr, *, of: Sequence[str] = ()
) -> list[ast.stmt] | None:
    """The statement; None where nothing has to be done, or where only other modules than one of these are meant."""
    classes, put = ([k.cls for k in kinds_of(one) if isinstance(k, ModuleKind)] for one in (owner, value))
    names = [f"torch.nn.{one}" for one in of or ("Sequential", "ModuleDict")]
    listed = any(context.program.derives(cls, one) for cls in classes for one in names)
    first = [one.arg for one in context.function.args.args[:1]] if context.function else []
    if not classes or not put or (ast.unparse(owner) in ("self", *first) and (of or not listed)):
        return None
    context.adds = True
    if of and not listed:
        return None
    parts = [context.visit(copy.deepcopy(one)) for one in (owner, name, value)]
    return [ast.Expr(ast.Call(context.name("msmigrate.nn.replace_cell"), parts, []))]


@handles("torch.nn.Module.add_module", "torch.nn.Module.register_module", stage=Stage.STATEMENT)
def add_module(call: ast.Call, context: Context) -> list[ast.stmt] | None:
    """`add_module` in MindSpore's way: a SequentialCell keeps a list of its own, NamedCells is a dictionary."""
    if not isinstance(call.func, ast.Attribute):
        return None
    owner = call.func.value
    given = [context.visit(argument) for argument in (*call.args, *(word.value for word in call.keywords))]
    kinds = kinds_of(owner)
    owners = [kind.cls for kind in kinds if isinstance(kind, ModuleKind)]
    into = context.visit(owner)
    if len(given) != 2:  # add_module(*pair)
        return [ast.Expr(ast.Call(ast.Name("setattr", ast.Load()), [into, *given], []))]
    name, cell = given
    if any(context.program.derives(kind, "torch.nn.ModuleDict") for kind in owners):
        context.adds = True
        return [ast.Assign([ast.Subscript(into, name, ast.Store())], cell)]
    if any(context.program.derives(kind, "torch.nn.Sequential") for kind in owners):
        context.adds = True
        helper = context.name("msmigrate.nn.add_cell")
        return [ast.Expr(ast.Call(helper, [into, name, cell], []))]
    return [_put(into, name, cell)]


def _taken(owner: ast.expr, place: ast.expr, context: Context) -> ast.expr:
    context.adds = True  # the others have other names then
    if isinstance(place, ast.Slice):
        parts = [one or ast.Constant(None) for one in (place.lower, place.upper, place.step)]
        place = ast.Call(ast.Name("slice", ast.Load()), parts, [])
    return ast.Call(context.name("msmigrate.nn.take_cell"), [context.visit(owner), context.visit(place)], [])


@handles(syntax=[ast.Delete], stage=Stage.STATEMENT)
def taken_out(node: ast.Delete, context: Context) -> list[ast.stmt] | None:
    """`take_cell(net.layers, -1)` for `del net.layers[-1]`; None for any other statement."""
    match node.targets:
        case [ast.Subscript(owner, place)] if context.program.all_derive(kinds_of(owner), NUMBERED):
            return [ast.Expr(_taken(owner, place, context))]
    return None


@handles(*(f"{one}.pop" for one in NUMBERED))
def popped(call: ast.Call, context: Context) -> ast.expr | None:
    """`take_cell(net.layers, -1)` for `net.layers.pop(-1)`."""
    if not isinstance(call.func, ast.Attribute) or len(call.args) != 1:
        return None
    return _taken(call.func.value, call.args[0], context)


@handles(*DROPPED, f"{SIMPLIFIED}*", stage=Stage.STATEMENT)
def dropped(call: ast.Call, context: Context) -> list[ast.stmt] | None:
    """Nothing, for calls that are no part of a model: torch's usage counters, and a library's code that is left out."""
    translated = any(name in context.program.translated for name in callees_of(call) if name not in DROPPED)
    return None if translated else []


@handles(syntax=[ast.Subscript])
def parameter_by_name(node: ast.Subscript, context: Context) -> ast.expr | None:
    """`layer._parameters["weight"]` as a Cell's attribute; None for anything else."""
    match node.value:
        case ast.Attribute(owner, "_parameters") if always(kinds_of(owner), ModuleKind):
            names = {_name_in_mindspore(kind, str(one), context) for kind in kinds_of(owner) for one in _said(node)}
            if names != {*map(str, _said(node))}:
                raise Unwritable(f"{ast.unparse(node)}, which MindSpore's layer calls {' or '.join(sorted(names))}")
            node.value.attr = "_params"
            found: ast.expr = context.generic_visit(node)
            return found
    return None


def _said(node: ast.Subscript) -> list[Any]:
    """The names that a subscript was."""
    return [literal(node.slice)[1]] if literal(node.slice)[0] else constants_of(node.slice) or []


@handles(syntax=[ast.Attribute])
def attribute(node: ast.Attribute, context: Context) -> ast.expr | None:
    """A tensor or a number of a module by its name in MindSpore, or with another leading 1 in its shape."""
    kinds = kinds_of(node.value)
    names = {_name_in_mindspore(kind, node.attr, context) for kind in kinds}
    if len(names) == 1:
        node.attr = names.pop()
    elif always(kinds, ModuleKind) and len(names) > 1:
        name = _name_of_each(node.value, names, node.attr, context) if _read(node) else None
        if name is None:
            raise Unwritable(f"{ast.unparse(node)}, which MindSpore's layers call {' or '.join(sorted(names))}")
        return ast.Call(ast.Name("getattr", ast.Load()), [context.visit(node.value), name], [])
    if node.attr in TABLES["one_row_attributes"] and context.program.all_derive(kinds, TABLES["one_row"]):
        return ast.Subscript(context.generic_visit(node), ast.Slice(ast.Constant(1)), ast.Load())
    if uncounted(node, context):
        raise Unwritable(f"{ast.unparse(node)}, which no layer of MindSpore has")
    if node.attr in AFFINE and _read(node) and always(kinds, ModuleKind) and _are_norms(kinds, node.attr, context):
        return ast.Call(ast.Name("getattr", ast.Load()), [context.visit(node.value), ast.Constant(node.attr), TRUE], [])
    fixed = {_fixed(kind, node.attr, context) for kind in kinds}
    return ast.Constant(*fixed.pop()) if len(fixed) == 1 and fixed != {()} and _read(node) else None


def _read(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


AFFINE, TRUE = ("affine", "elementwise_affine"), ast.Constant(True)


def _are_norms(kinds: list[Kind], attribute: str, context: Context) -> bool:
    """Whether all are norms that may have no weights: MindSpore's own have them, and do not all say so."""
    rows = [context.program.torch_base(kind.cls) for kind in kinds if isinstance(kind, ModuleKind)]
    return all(row is not None and any(a.torch == attribute for a in row.arguments) for row in rows)


def _fixed(kind: Kind, attribute: str, context: Context) -> tuple[Any, ...]:
    """The only value of a torch layer's argument with a counterpart, where MindSpore's layer has no such argument;
    empty for any other attribute."""
    row = context.program.torch_base(kind.cls) if isinstance(kind, ModuleKind) else None
    takes = row.arguments if row is not None else ()
    return next((a.only for a in takes if a.torch == attribute and not a.to and len(a.only) == 1), ())


def uncounted(node: ast.AST, context: Context) -> bool:
    """Whether it is a tensor of torch's layer that MindSpore's does not have, and that changes nothing there: a norm's
    count of batches."""
    if not isinstance(node, ast.Attribute):
        return False
    rows = [context.program.torch_base(kind.cls) for kind in kinds_of(node.value) if isinstance(kind, ModuleKind)]
    states = [[s for s in row.state if s.torch == node.attr] if row is not None else [] for row in rows]
    return bool(states) and all(found and found[0].mindspore is None for found in states)


@handles("torch.nn.init.zeros_", "torch.nn.init.constant_", stage=Stage.STATEMENT)
@handles(syntax=[ast.Expr, ast.Assign, ast.AugAssign], stage=Stage.IN_PLACE)
def count(node: ast.stmt | ast.Call, context: Context) -> list[ast.stmt] | None:
    """Nothing, for a statement that changes such a count."""
    into = node.args[:1] if isinstance(node, ast.Call) else [*getattr(node, "targets", [getattr(node, "target", None)])]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        into = [node.value.func.value] if isinstance(node.value.func, ast.Attribute) else []
    return [] if into and all(one is not None and uncounted(one, context) for one in into) else None


@handles(syntax=[ast.Compare])
def counts(node: ast.Compare, context: Context) -> ast.expr | None:
    """`self.num_batches_tracked is not None`, which torch's layer with running statistics has."""
    whether = uncounted(node.left, context) and len(node.ops) == 1 and ast.unparse(node.comparators[0]) == "None"
    return ast.Constant(isinstance(node.ops[0], ast.IsNot)) if whether else None


@handles(syntax=[ast.Call])
def attribute_by_name(node: ast.Call, context: Context) -> ast.expr | None:
    """`getattr(norm, "weight", None)` and `hasattr(norm, "weight")`, by the name that MindSpore's layer has for it."""
    match node:
        case ast.Call(ast.Name("getattr" | "hasattr"), [owner, ast.Constant(str() as attribute), *_], []):
            kinds = kinds_of(owner)
        case _:
            return None
    names = {_name_in_mindspore(kind, attribute, context) for kind in kinds}
    if not always(kinds, ModuleKind) or names == {attribute}:
        return None
    name = ast.Constant(names.pop()) if len(names) == 1 else _name_of_each(owner, names, attribute, context)
    if name is None:
        raise Unwritable(f"{ast.unparse(node)}, which has different names in MindSpore's layers")
    node.args[0] = context.visit(owner)
    return ast.Call(node.func, [node.args[0], name, *map(context.visit, node.args[2:])], [])


def _name_of_each(owner: ast.expr, names: set[str], attribute: str, context: Context) -> ast.expr | None:
    """`first_name(m, "weight", "gamma")`, for a module that may be of several classes."""
    if not isinstance(owner, (ast.Name, ast.Attribute)) or any("." in name for name in names):
        return None
    each = [ast.Constant(name) for name in (attribute, *sorted(names - {attribute}))]
    return ast.Call(context.name(FIRST_NAME), [context.visit(copy.deepcopy(owner)), *each], [])


def _name_in_mindspore(kind: Kind, attribute: str, context: Context) -> str:
    """The name in MindSpore of a tensor, or of a number, that a module of this kind has."""
    other = beside_property(kind, attribute, context) if attribute in TABLES["cell_properties"] else ""
    if other or not isinstance(kind, ModuleKind):
        return other or attribute
    row, held = context.program.torch_base(kind.cls), TABLES["held_by_modules"].get(attribute)
    if row is None or held is not None:
        return held or attribute
    within = [s for s in row.state if s.mindspore and f"{s.torch}.".startswith(f"{attribute}.")]  # or it is a layer
    states = [str(s.mindspore) if s.torch == attribute else str(s.mindspore).partition(".")[0] for s in within]
    numbers = [a.to[0] for a in row.arguments if a.torch == attribute and a.verb is None and len(a.to) == 1]
    return next(iter([*states, *numbers]), attribute)


@handles(syntax=[ast.Attribute])
def name_of_class(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`class_name(m, Dense="Linear")` for `m.__class__.__name__` and `type(m).__name__`, where a class that the model
    names, or that was there, is called otherwise in MindSpore."""
    match node:
        case ast.Attribute(ast.Attribute(value, "__class__"), "__name__"):
            kinds = kinds_of(value)
        case ast.Attribute(ast.Call(ast.Name("type"), [value], []), "__name__"):
            kinds = kinds_of(value)
        case _:
            return None
    there = {kind.cls for kind in kinds if isinstance(kind, ModuleKind)}
    named = set() if ast.unparse(value) == "self" else {name.removesuffix("()") for name in context.program.named}
    names = _other_names(there | {name for name in named if not name.endswith("Tensor")}, context)
    if not names or (kinds and not there and UNSEEN not in kinds):
        return None
    words = [ast.keyword(own, ast.Constant(torchs)) for own, torchs in sorted(names.items())]
    return ast.Call(context.name("msmigrate.nn.class_name"), [context.visit(value)], words)


def _other_names(classes: set[str], context: Context) -> dict[str, str]:
    """The names in MindSpore, and in torch, of those classes whose names differ; raises Unwritable where one of
    MindSpore's stands for several of torch's."""
    found: dict[str, set[str]] = {}
    for name in classes - {"torch.nn.Module"}:
        row = row_of(name) if name not in COUNTERPARTS else None
        own = name in context.program.translated
        counterpart = context.program.called(name) if own else COUNTERPARTS.get(name) or (row and row.mindspore) or ""
        if own or name in COUNTERPARTS or (row is not None and row.kind == "layer"):
            found.setdefault(short(counterpart), set()).add(short(name))
    for ours, torchs in found.items():
        if len(torchs) > 1:
            raise Unwritable(f"the name of a class: MindSpore's {ours} is torch's {' and '.join(sorted(torchs))}")
    return {ours: name for ours, (name,) in found.items() if ours and ours != name}


@handles(*PARAMETERS)
def parameter(call: ast.Call, context: Context) -> ast.expr:
    """MindSpore's `Parameter(value)`."""
    value, trained = _given(call, 0, "data"), _given(call, 1, "requires_grad")
    assert value is not None
    plain = trained is None or (isinstance(trained, ast.Constant) and trained.value is True)
    options = [] if plain or trained is None else [ast.keyword("requires_grad", context.visit(trained))]
    return ast.Call(context.name("mindspore.Parameter"), [context.visit(value)], options)


def _listed(node: ast.expr, was: ast.expr, of_list: bool = True) -> ast.expr:
    """What MindSpore's containers take: a CellList takes nothing but a list, none of them takes a generator."""
    match node:
        case ast.GeneratorExp(value, loops):
            return replacing(ast.ListComp(value, loops), node)
        case ast.Tuple(items) if of_list:
            return replacing(ast.List(items, ast.Load()), node)
    is_list = isinstance(node, (ast.List, ast.ListComp)) or always_sequences(kinds_of(was), "list")
    return node if is_list or not of_list else ast.Call(ast.Name("list", ast.Load()), [node], [])
