"""What a model does with a layer besides running it: hooks, which are called with a gradient or with what it is given;
states that are read and loaded while a model is made; a parameter that is assigned; sizes that are read; a layer that
is moved, frozen, or made by the constructor of a base, or has the name of a Cell's method; and what asks for its class,
or the dtype of its weights."""

from __future__ import annotations

import ast
import copy
import re

from ...library_names import CELL_METHODS, CONTAINERS, COUNTERPARTS, DROPPED, SIMPLIFIED, TABLES
from ...source_files import literal
from ..observe.observations import (
    CallableKind,
    DictKind,
    ModuleKind,
    TensorKind,
    always,
    callees_of,
    constants_of,
    kinds_of,
    reached,
    replacing,
)
from .argument_kinds import FLOAT32, NO_CAST, are_tensors
from .context import Context, Problem, Stage, Unwritable, handles
from .devices_and_no_grad import flag_of
from .library_lookups import handed_on, write_reference

MOVED = [f"torch.nn.Module.{name}" for name in ("to", "cuda", "cpu", "float")]
# sizes of these layers that MindSpore's keep in another form, or not at all
SIZES = ("kernel_size", "stride", "padding", "dilation", "output_padding")
SIZED = ("Conv", "MaxPool", "AvgPool")
IN_PLACE = re.compile(r"(?!requires_grad_)[a-z]\w*[a-z0-9]_|__setitem__")
READING = {"load_state_dict", "update", "len", "list", "dict", "zip", "enumerate", "sorted", "set", "tuple", "iter"}
READING |= {"OrderedDict", "print", "any", "all", "isinstance", "reversed", "type"}
HANDED = "handed"  # marks a state that is only loaded
OF_WEIGHTS = "transformers.modeling_utils.ModuleUtilsMixin.dtype"
PRETRAINED = [f"torch.nn.{where}Embedding.from_pretrained" for where in ("", "modules.sparse.")]
TAKES = ("embeddings", "freeze", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
OF_CELLS, MODULES = {*TABLES["cell_methods"]}, "torch.nn.ModuleList"
STATES = {f"torch.nn.Module.{name}": name for name in ("state_dict", "load_state_dict")}


@handles(*STATES)
def state(call: ast.Call, context: Context) -> ast.expr:
    """`load_state_dict(self.teacher, state_dict(self.student))` for `self.teacher.load_state_dict(…)`, where a model is
    made: by torch's names, which the code may look into."""
    (name, *others), function = callees_of(call), call.func
    if others or not context.builds or not isinstance(function, ast.Attribute):
        raise Unwritable(f"{ast.unparse(call)}: a state is read and loaded where a model is made, and not as it runs")
    words = [word for word in call.keywords if word.arg != "assign"]
    if len(call.args) > 2 or any(word.arg not in ("state_dict", "strict") for word in words):
        raise Unwritable(f"{ast.unparse(call)}: with other arguments than the state and strict")
    inner = [one for one in (*call.args, *(word.value for word in words)) if isinstance(one, ast.Call)]
    direct = [one for one in inner if callees_of(one) == ["torch.nn.Module.state_dict"]]  # handed on as it is
    for one in direct:
        vars(one)[HANDED] = True
    if not direct and HANDED not in vars(call):
        _has_its_shape(function.value, call, context)
    if STATES[name] == "state_dict" and HANDED not in vars(call) and (written := _writes_into_values(context)):
        raise Unwritable(f"{ast.unparse(call)}: {written} may write into what this gives: write it with parameters")
    given = [context.visit(one) for one in (function.value, *call.args)]
    named = [ast.keyword(str(word.arg).replace("_dict", ""), context.visit(word.value)) for word in words]
    return ast.Call(context.name(f"msmigrate.nn.{STATES[name]}"), given, named)


HOOKS: dict[str, str] = TABLES["hooks"]
OF_MODULES = {*CELL_METHODS, *(name.rpartition(".")[2] for name in HOOKS if "Module" in name)} - {"forward"}
OF_GRADIENT, OLD, KEEPS = (
    f"torch.{name}" for name in ("Tensor.register_hook", "nn.Module.register_backward_hook", "Tensor.retain_grad")
)
GRADIENTS = "torch.is_grad_enabled"
OTHERWISE_CALLED = {*TABLES["forwards"], *TABLES["by_position"]}  # MindSpore's layers take other arguments
OF_EACH_VALUE = {"clamp", "clip", "clamp_min", "clamp_max", "nan_to_num"}


@handles(*HOOKS)
def hook(call: ast.Call, context: Context) -> ast.expr:
    """`layer.register_backward_hook(f)` for `layer.register_full_backward_hook(f)`, and so for the other hooks."""
    (name, *others), function = callees_of(call), call.func
    if others or not isinstance(function, ast.Attribute):
        raise Unwritable(f"{ast.unparse(function)}, which is not always the same method")
    text, kinds = ast.unparse(call), kinds_of(function.value)
    layers = sorted({k.cls for k in kinds if isinstance(k, ModuleKind) and k.cls in OTHERWISE_CALLED})
    if layers and not _passes_over_inputs(call, context):
        raise Unwritable(f"{text}: MindSpore's {' and '.join(layers)} has other inputs, which this function reads")
    if name == OLD and not _passes_over_inputs(call, context, gives=False):
        raise Unwritable(f"{text} gives the gradients of a layer's last operation: call register_full_backward_hook")
    if bool(kinds) and all(isinstance(kind, TensorKind) and kind.parameter for kind in kinds):
        _has_its_shape(function.value.value if isinstance(function.value, ast.Attribute) else call, call, context)
    made = context.kept(call)
    assert isinstance(made.func, ast.Attribute)
    made.func.attr = HOOKS[name]
    if HOOKS[name] != "remove":
        _list(
            f"{text} is written for PyNative mode: graph mode compiles few such functions, and these keep nothing",
            call,
            context,
        )
    return made


def by_construct(call: ast.Call, context: Context) -> ast.Call:
    """`layer.construct(x)` for `layer(x)`, where the user's files give layers hooks."""
    names = OF_MODULES - {*CELL_METHODS}
    nodes = (node for file in context.program.own_files for node in ast.walk(context.program.tree(file)))
    if any(isinstance(node, ast.Attribute) and node.attr in names for node in nodes):
        call.func = ast.Attribute(call.func, "construct", ast.Load())
    return call


def _passes_over_inputs(call: ast.Call, context: Context, *, gives: bool = True) -> bool:
    """Whether a hook's function does not read what the layer is given, or the gradients of that; gives: and may give
    something back."""
    functions = _functions(call, context)
    for node in functions:
        inside = [*ast.walk(node)]
        back = isinstance(node, ast.Lambda) or any(isinstance(n, ast.Return) and n.value is not None for n in inside)
        takes = [one.arg for one in node.args.args if one.arg != "self"]
        read = {one.id for one in inside if isinstance(one, ast.Name)}
        if len(takes) < 2 or takes[1] in read or (back and not gives):
            return False
    return bool(functions)


def _functions(call: ast.Call, context: Context) -> list[ast.FunctionDef | ast.Lambda]:
    """The functions that a hook calls; none where one of them is not known."""
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Lambda):
        return [first]
    inner = {one.name: one for one in ast.walk(context.function or call) if isinstance(one, ast.FunctionDef)}
    found = list[ast.FunctionDef | ast.Lambda]()
    for kind in kinds_of(first) if first is not None else ():
        name = kind.name if isinstance(kind, CallableKind) else ""
        ran = context.program.functions.get(name)
        node = context.program.node(ran) if ran is not None else inner.get(name.rpartition(".")[2])
        if not isinstance(node, ast.FunctionDef):
            return []
        found.append(node)
    return found


def _writes_into_values(context: Context) -> str:
    """A statement of the function that may write into the tensors of a state, or hand them on; empty without any."""
    for node in ast.walk(context.function) if context.function is not None else ():
        match node:
            case ast.Call(ast.Attribute(owner, name)) if IN_PLACE.fullmatch(name) and _is_plain(owner):
                return ast.unparse(node)
            case ast.Assign([ast.Attribute(ast.Attribute(_, "weight" | "bias"), "data")]):
                continue
            case ast.AugAssign(target) | ast.Assign([ast.Attribute(target, "data")]) if _is_plain(target):
                return ast.unparse(node)
            case ast.Assign([ast.Subscript(target)]) if _is_plain(target):
                return ast.unparse(node)
            case ast.Call(function, given, words) if not _reads(ast.unparse(function)):
                if any(map(_is_state, (*given, *(word.value for word in words)))):
                    return ast.unparse(node)
    return ""


def _reads(function: str) -> bool:
    """Whether a function of this name only reads a dictionary."""
    return function in ("copy.copy", "copy.deepcopy") or function.rpartition(".")[2] in READING


def _is_state(node: ast.expr) -> bool:
    """Whether it was a dictionary of tensors that are no parameters, or one of too many entries to say."""
    kinds = [] if isinstance(node, ast.Dict) else [kind for kind in kinds_of(node) if isinstance(kind, DictKind)]
    values = [[one for _, one in kind.entries] for kind in kinds]
    return any(not one or any(isinstance(v, TensorKind) and not v.parameter for v in one) for one in values)


def _is_plain(node: ast.expr) -> bool:
    """Whether it was a tensor that is no parameter, now and then, or nothing is known of it."""
    kinds = kinds_of(node)
    return not kinds or any(isinstance(kind, TensorKind) and not kind.parameter for kind in kinds)


def _has_its_shape(owner: ast.expr, call: ast.Call, context: Context) -> None:
    """Raise Unwritable where a parameter of a layer, or of a net, may have another shape in MindSpore, and a function
    that gets its gradient does more than limit each value."""
    named = {kind.cls for kind in kinds_of(owner) if isinstance(kind, ModuleKind)}
    plain = named and not any(name in context.program.translated or name in CONTAINERS for name in named)
    classes = named if plain else {bases[0] for bases in context.program.facts.classes.values()}
    rows = [row for row in map(context.program.torch_base, classes) if row is not None]
    rows = [row for row in rows if any(state.verb for state in row.state)]
    functions = _functions(call, context)
    if rows and not (functions and all(map(_of_each_value, functions))):
        names = " and ".join(sorted(row.torch for row in rows))
        raise Unwritable(f"{ast.unparse(call)}: parameters of {names} have other shapes in MindSpore")


def _of_each_value(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a function computes with its argument and numbers alone, each value by itself."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    attributes = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    limits = all(isinstance(one.func, ast.Attribute) for one in calls) and attributes <= OF_EACH_VALUE
    return limits and names <= {"torch", *(one.arg for one in node.args.args)}


def _list(text: str, node: ast.expr, context: Context) -> None:
    """Note what the new file lacks, once."""
    problem = Problem(context.file, node.lineno, text)
    context.program.left_out += [problem] if problem not in context.program.left_out else []


@handles(KEEPS, stage=Stage.STATEMENT)
def kept_gradient(call: ast.Call, context: Context) -> list[ast.stmt]:
    """Nothing: a gradient that torch keeps for who reads it after the step is no part of what a model computes."""
    text = f"{ast.unparse(call)}: torch keeps this gradient; in MindSpore mindspore.grad of a function of it gives it"
    _list(text, call, context)
    return []


def hooks_anyway(body: list[ast.stmt]) -> list[ast.stmt]:
    """A block, with `h.register_hook(f)` in place of `if h.requires_grad: h.register_hook(f)`: without a gradient there
    is none to call it with."""
    return [one for statement in body for one in (_hooks(statement) or [statement])]


def _hooks(node: ast.stmt) -> list[ast.stmt]:
    """The statements in place of such a question; none for any other statement."""
    if not isinstance(node, ast.If) or node.orelse or not all(map(_is_hook, node.body)):
        return []
    terms = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]
    left = [one for one in terms if not _asks_gradient(one)]
    if len(left) == len(terms):
        return []
    if not left and reached(node.body[0]):
        return node.body
    test = ast.BoolOp(ast.And(), left) if len(left) > 1 else left[0] if left else ast.Constant(True)
    return [replacing(ast.If(ast.copy_location(test, node.test), node.body, []), node)]


def _is_hook(node: ast.stmt) -> bool:
    """Whether a statement only registers a hook on a tensor, or has its gradient kept."""
    call = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
    methods = [one.rpartition(".")[2] for one in (OF_GRADIENT, KEEPS)]
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in methods


def _asks_gradient(node: ast.expr) -> bool:
    """Whether an expression asks whether there is a gradient."""
    match node:
        case ast.Attribute(_, "requires_grad") | ast.Compare(
            ast.Attribute(_, "grad_fn"), [ast.IsNot()], [ast.Constant(None)]
        ):
            return True
        case ast.Call(function, [], []):
            return ast.unparse(function) == GRADIENTS
    return False


# What is called on a layer, or read of it, as a model is made and runs


@handles(syntax=[ast.Assign], stage=Stage.IN_PLACE)
def parameter_of_a_layer(node: ast.Assign, context: Context) -> list[ast.stmt] | None:
    """`layer.bias = Parameter(value, name=layer.bias.name)`: its name is from the net, and not from the layer."""
    match node:
        case ast.Assign([ast.Attribute(owner) as target], ast.Call() as call) if ast.unparse(owner) != "self":
            pass
        case _:
            return None
    parameter = [COUNTERPARTS.get(name) for name in callees_of(call)] == ["mindspore.Parameter"]
    inside = ast.walk(context.function or node)
    reads = (one for one in inside if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load))
    before = [kinds_of(one) for one in reads if ast.unparse(one) == ast.unparse(target)]
    of_class = any(isinstance(kind, CallableKind) for kind in kinds_of(owner))
    if not parameter or of_class or not any(are_tensors(kinds, "float") for kinds in before):
        return None
    made, layer = context.visit(call), context.visit(copy.deepcopy(owner))
    name = ast.Attribute(ast.Attribute(layer, target.attr, ast.Load()), "name", ast.Load())
    made.keywords.append(ast.keyword("name", name))
    return [ast.copy_location(ast.Assign([context.visit(target)], made), node)]


@handles(*MOVED)
def moved(call: ast.Call, context: Context) -> ast.expr | None:
    """The layer of `layer.to(device)`, `layer.cuda()` and the like: a process of MindSpore has one device. Refused with
    a dtype other than float32, which its weights have."""
    if not isinstance(call.func, ast.Attribute) or not {*callees_of(call)} <= {*MOVED}:
        return None
    for given in (*call.args, *(word.value for word in call.keywords)):
        plain = isinstance(given, (ast.Constant, ast.JoinedStr)) and not kinds_of(given)
        float32 = always(kinds_of(given), TensorKind, dtype="float32") or ast.unparse(context.visit(given)) == FLOAT32
        if not plain and not float32 and not {*kinds_of(given)} <= NO_CAST:
            raise Unwritable(f"{ast.unparse(call)}, which may be of another dtype: MindSpore's cells have to_float")
    found: ast.expr = context.visit(call.func.value)
    return found


@handles(*MOVED, stage=Stage.STATEMENT)
def moved_alone(call: ast.Call, context: Context) -> list[ast.stmt] | None:
    """Nothing for `self.to(device)` as a statement; where its layer is made there, that remains."""
    layer = moved(call, context)
    if layer is None or isinstance(layer, (ast.Name, ast.Attribute)):
        return None if layer is None else []
    return [ast.Expr(layer)]


def where_it_is_made(value: ast.expr) -> ast.expr:
    """`nn.Linear(4, 4)` of `nn.Linear(4, 4).cuda().float()`; any other expression as it is."""
    while (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Call)
    ):
        if f"torch.nn.Module.{value.func.attr}" not in MOVED:
            break
        value = value.func.value
    return value


@handles(syntax=[ast.Attribute])
def size_of_layer(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`padding_of(conv.padding, 2)` for `conv.padding`, of which MindSpore keeps one number or four; other sizes of
    pooling, and of layers of several kinds, by `layer_size(layer, "stride")`. None for what is the same there."""
    kinds = kinds_of(node.value)
    if node.attr not in SIZES or not isinstance(node.ctx, ast.Load) or not always(kinds, ModuleKind):
        return None
    rows = [context.program.torch_base(kind.cls) for kind in kinds if isinstance(kind, ModuleKind)]
    layers = {row.torch.removeprefix("torch.nn.") if row is not None else "" for row in rows}
    kept_by_torch = all(node.attr in TABLES["not_kept"].get(f"torch.nn.{n}", ()) for n in layers)
    if kept_by_torch and ast.unparse(node.value) == "self":
        return None  # its class keeps torch's
    ranks = {name[-2:] for name in layers}
    convolutions = all(name.startswith("Conv") for name in layers)
    named = any(isinstance(one, str) for one in constants_of(node) or ())
    if named or not all(name.startswith(SIZED) for name in layers):
        return None
    if node.attr == "padding" and convolutions and len(ranks) == 1:
        if _for_convolution(node, context):
            return None
        rank = ast.Constant(int(ranks.pop()[0]))
        return ast.Call(context.name("msmigrate.nn.padding_of"), [context.generic_visit(node), rank], [])
    kept = convolutions or (ranks <= {"2d", "3d"} and node.attr in ("kernel_size", "stride"))
    if kept and node.attr != "padding" and (len(ranks) == 1 or not convolutions):
        return None
    return ast.Call(context.name("msmigrate.nn.layer_size"), [context.visit(node.value), ast.Constant(node.attr)], [])


def _for_convolution(node: ast.Attribute, context: Context) -> bool:
    """Whether a convolution is given this padding as it is, and it was the same for all dimensions."""
    even = all(isinstance(one, tuple) and len({*one}) == 1 for one in constants_of(node) or [()])
    calls = [one for one in ast.walk(context.function or node) if isinstance(one, ast.Call)]
    given = {id(one): call for call in calls for one in (*call.args, *(word.value for word in call.keywords))}
    called = callees_of(given[id(node)]) if id(node) in given else []
    return even and bool(called) and all(".conv" in name for name in called)


@handles("torch.nn.modules.module.Module.__init__", "torch.nn.Module.__init__")
def made_as_module(call: ast.Call, context: Context) -> ast.expr | None:
    """`nn.Cell.__init__(self)` for `nn.Module.__init__(self)`, and for `Base.__init__(self)` of a base without one."""
    if not isinstance(call.func, ast.Attribute) or isinstance(call.func.value, ast.Call) or len(call.args) != 1:
        return None  # `super().__init__()`
    start = ast.Attribute(context.name("mindspore.nn.Cell"), "__init__", ast.Load())
    return ast.Call(start, [context.visit(call.args[0])], [])


@handles(syntax=[ast.Compare])
def compared_class(node: ast.Compare, context: Context) -> ast.expr | None:
    """`is_class(act, partial(nn.GELU, approximate=False))` for `act == nn.GELU`, where that is what is handed on in its
    place; partials are not equal to each other. What a partial calls, its `func`, is compared with the class alone."""
    if len(node.ops) != 1:
        return None
    (comparison,), (other,) = node.ops, node.comparators
    if _holds_partials(node.left, context) and _holds_partials(other, context):
        inside = isinstance(comparison, (ast.In, ast.NotIn))
        classes = ast.Starred(context.visit(other), ast.Load()) if inside else context.visit(other)
        found = ast.Call(context.name("msmigrate.nn.is_class"), [context.visit(node.left), classes], [])
        return ast.UnaryOp(ast.Not(), found) if isinstance(comparison, (ast.NotEq, ast.IsNot, ast.NotIn)) else found
    display = isinstance(comparison, (ast.In, ast.NotIn)) and isinstance(other, (ast.Tuple, ast.List, ast.Set))
    if not display and not isinstance(comparison, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        return None
    value, named = node.left, other.elts if isinstance(other, (ast.Tuple, ast.List, ast.Set)) else [other]
    if not display and _with_defaults(value, context) is not None:
        value, named = other, [value]
    made = [_with_defaults(one, context) for one in named]
    if not any(made):
        return None
    if _is_class_itself(value):
        classes = [context.visit(one) if call is None else call.args[0] for one, call in zip(named, made, strict=True)]
        against = ast.Tuple(classes, ast.Load()) if display else classes[0]
        return ast.Compare(context.visit(value), [comparison], [against])
    classes = [context.visit(one) if call is None else call for one, call in zip(named, made, strict=True)]
    found = ast.Call(context.name("msmigrate.nn.is_class"), [context.visit(value), *classes], [])
    negated = isinstance(comparison, (ast.NotEq, ast.IsNot, ast.NotIn))
    return ast.UnaryOp(ast.Not(), found) if negated else found


def _holds_partials(node: ast.expr, context: Context) -> bool:
    """Whether a variable holds classes that are handed on as partials, or a tuple or list of these."""
    plain = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and _with_defaults(node, context) is None
    rows = [context.program.row(name) for name in _classes_in(node) if plain]
    return any(isinstance(write_reference(row, {}, context.name), ast.Call) for row in rows if row and row.is_module)


def _classes_in(node: ast.expr) -> list[str]:
    """The names of torch's classes that a variable held, or a tuple or list of it."""
    kinds = (item for kind in kinds_of(node) for item in getattr(kind, "items", (kind,)))
    return [kind.name for kind in kinds if isinstance(kind, CallableKind) and kind.name.startswith("torch.")]


def _is_class_itself(node: ast.expr) -> bool:
    """Whether an expression is never a partial: `type(layer)`, `layer.__class__`, `made.func`."""
    match node:
        case ast.Attribute(attr="func" | "__class__") | ast.Call(ast.Name("type"), [_], []):
            return True
    return False


def _with_defaults(node: ast.expr, context: Context) -> ast.Call | None:
    """The partial that a class is handed on as, since MindSpore's has other defaults; None for anything else."""
    found = handed_on(node, context) if isinstance(node, (ast.Attribute, ast.Name)) else None
    return found if isinstance(found, ast.Call) and ast.unparse(found.func).endswith("partial") else None


@handles("builtins.isinstance", "builtins.issubclass")
def type_check(node: ast.Call, context: Context) -> ast.expr:
    """A type check, in which a class stands for itself, also where a variable holds a partial with torch's defaults."""
    context.in_type_check = "isinstance"
    kept = context.kept(node)
    context.in_type_check = ""
    for place in range(int(callees_of(node) != ["builtins.issubclass"]), len(kept.args)):
        kept.args[place] = classes_themselves(node.args[place], kept.args[place], context)
    return kept


def classes_themselves(node: ast.expr, written: ast.expr, context: Context) -> ast.expr:
    """The classes that a variable holds, without torch's defaults; anything else as it is written."""
    named = isinstance(node, (ast.Name, ast.Attribute)) and handed_on(node, context) is not None
    plain = isinstance(node, ast.Tuple) or named or not _classes_in(node)
    return written if plain else ast.Call(context.name("msmigrate.nn.classes_themselves"), [written], [])


@handles(syntax=[ast.Compare])
def type_compared(node: ast.Compare, context: Context) -> ast.AST | None:
    """`type(m) == nn.Conv2d`, in which a class stands for itself too."""
    of_type = any(isinstance(n, ast.Call) and ast.unparse(n.func) == "type" for n in (node.left, *node.comparators))
    if not of_type or context.in_type_check:
        return None
    context.in_type_check = "type"
    others = [classes_themselves(one, context.visit(one), context) for one in node.comparators]
    found = ast.Compare(context.visit(node.left), node.ops, others)
    context.in_type_check = ""
    return found


@handles(syntax=[ast.Attribute])
def dtype_of_weights(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`next(iter(self.get_parameters())).dtype` for the `dtype` of a model of transformers."""
    kinds = kinds_of(node.value)
    if node.attr != "dtype" or not always(kinds, ModuleKind) or OF_WEIGHTS not in context.program.functions:
        return None
    if not context.program.all_derive(
        kinds, [f"{SIMPLIFIED}PreTrainedModel", "transformers.modeling_utils.PreTrainedModel"]
    ):
        return None
    weights = ast.Call(ast.Attribute(context.visit(node.value), "get_parameters", ast.Load()), [], [])
    first = ast.Call(ast.Name("iter", ast.Load()), [weights], [])
    return ast.Attribute(ast.Call(ast.Name("next", ast.Load()), [first], []), "dtype", ast.Load())


@handles("torch.nn.Module.requires_grad_", stage=Stage.STATEMENT)
def freeze_module(call: ast.Call, context: Context) -> list[ast.stmt] | None:
    """`for parameter in module.get_parameters(): parameter.requires_grad = False`; of parameters alone, for True."""
    if not isinstance(call.func, ast.Attribute):
        return None
    owner, flag = context.visit(call.func.value), flag_of(call, context)
    parameters = ast.Call(ast.Attribute(owner, "get_parameters", ast.Load()), [], [])
    if literal(flag) != (True, False):  # buffers may be frozen once more; they are not to train
        parameters = ast.Call(context.name("msmigrate.nn.parameters"), [owner], [])
    target = ast.Attribute(ast.Name("parameter", ast.Load()), "requires_grad", ast.Store())
    change: ast.stmt = ast.Assign([target], flag)
    return [ast.For(ast.Name("parameter", ast.Store()), parameters, [change], [])]


@handles(*PRETRAINED)
def from_pretrained(call: ast.Call, context: Context) -> ast.expr:
    """`nn.Embedding.from_pretrained(vectors, freeze=False)`, a layer that begins with a tensor."""
    given = {**dict(zip(TAKES, call.args, strict=False)), **{str(word.arg): word.value for word in call.keywords}}
    other = [name for name, value in given.items() if name in TAKES[3:] and not _is_default(name, value)]
    if other or not given.keys() <= {*TAKES} or any(isinstance(one, ast.Starred) for one in call.args):
        raise Unwritable(f"{ast.unparse(call)}: MindSpore's Embedding has only a table, freeze and padding_idx")
    words = [ast.keyword(name, context.visit(given[name])) for name in TAKES[1:3] if name in given]
    return ast.Call(context.name("msmigrate.nn.embedding_from_pretrained"), [context.visit(given[TAKES[0]])], words)


def _is_default(name: str, value: ast.expr) -> bool:
    known, constant = literal(value)
    return (known and (constant is None or constant is False)) or name == "norm_type"


@handles(syntax=[ast.Expr], stage=Stage.STATEMENT)
def dropped_for_each(node: ast.Expr, context: Context) -> list[ast.stmt] | None:
    """Nothing, for a list of calls that are no part of a model: `[rnn.flatten_parameters() for rnn in self.rnns]`."""
    match node.value:
        case ast.ListComp(ast.Call() as call) if callees_of(call) and {*callees_of(call)} <= {*DROPPED}:
            return []
    return None


@handles(syntax=[ast.Assign, ast.AnnAssign, ast.AugAssign], stage=Stage.IN_PLACE)
def under_a_methods_name(node: ast.Assign | ast.AnnAssign | ast.AugAssign, context: Context) -> list[ast.stmt] | None:
    """`hold_cells(self, nn.CellList(…))` for `self.cells = nn.ModuleList(…)`, and `self.cells.extend(…)` for `+=`; no
    other module may have the name of a Cell's own method."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    match targets:
        case [ast.Attribute(owner, "cells") as target] if node.value is not None and _is_module(owner, context):
            adds, lists = isinstance(node, ast.AugAssign), [ModuleKind(MODULES)]
            if adds and kinds_of(target) in ([], lists):
                whole = ast.Attribute(context.visit(owner), "cells", ast.Load())
                add = ast.Call(ast.Attribute(whole, "extend", ast.Load()), [context.visit(node.value)], [])
                return [ast.Expr(add)]
            if not adds and kinds_of(node.value) == lists:
                given = [context.visit(owner), context.visit(node.value)]
                return [ast.Expr(ast.Call(context.name("msmigrate.nn.hold_cells"), given, []))]
    made = node.value is not None and not isinstance(node, ast.AugAssign) and always(kinds_of(node.value), ModuleKind)
    for one in targets if made else ():
        if isinstance(one, ast.Attribute) and one.attr in OF_CELLS and _is_module(one.value, context):
            raise Unwritable(f"{ast.unparse(one)}: a Cell has a method of this name, give the module another one")
    return None


def _is_module(owner: ast.expr, context: Context) -> bool:
    """Whether an attribute's owner is a module, as the `self` of a module's method is."""
    itself = isinstance(owner, ast.Name) and owner.id == "self"
    return (itself and context.program.derives(context.owner, "torch.nn.Module")) or always(kinds_of(owner), ModuleKind)
