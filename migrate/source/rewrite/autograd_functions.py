"""An autograd.Function with a gradient of its own, as a Cell with `bprop`; and checkpointing, by which torch's autograd
computes twice to save memory, which is left out.

What torch's context keeps for the backward is often what forward is given or gives back, which bprop has as well: then
forward is `construct` as it is. Anything else forward computes once more, in bprop.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ...library_names import TABLES
from ...source_files import is_comment, literal, local_names, substitute
from ..observe.observations import callees_of, replacing
from .context import Context, Problem, Program, Stage, Unwritable, handles

CHECKPOINT = "torch.utils.checkpoint.checkpoint"
SPARING = {*TABLES["checkpoint_arguments"]}
SAVED = "saved_tensors"
IGNORED = {"set_materialize_grads", "mark_non_differentiable"}  # MindSpore's bprop is given zeros, and gives them
DRAWING = re.compile(r"rand|bernoulli|multinomial|dropout|uniform_?$|normal_?$|exponential_|poisson")
KNOWN = re.compile(r"^staticmethod$|\b(once_differentiable|custom_fwd|custom_bwd|no_grad)\b")  # decorators
COMPUTED = "computed"
LEFT = ("setup_context", "vmap", "jvp")  # that MindSpore does not ask for


@dataclass(frozen=True)
class Gradient:
    """An autograd.Function, taken apart. given: the names of forward's arguments; context, back: what its methods call
    the context; kept: the names under which it keeps something -> what that is, where bprop has it anyway; several: the
    gradients that backward is given, one for each output."""

    forward: ast.FunctionDef
    backward: ast.FunctionDef
    given: list[str]
    context: str
    back: str
    kept: dict[str, ast.expr | None]
    several: list[str]

    @property
    def recomputes(self) -> bool:
        """Whether forward has to run once more for the backward."""
        return any(value is None for value in self.kept.values())

    @property
    def result(self) -> str:
        """What bprop calls the output of forward."""
        taken = {*self.given, *self.several, *local_names(self.forward), *local_names(self.backward)}
        return next((one for one in ("out", "output", "result") if one not in taken), _free("out", taken))


def taken_apart(node: ast.ClassDef) -> Gradient:
    """The parts of a class. Raises Unwritable for what cannot be a Cell."""
    methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    forward, backward = methods.get("forward"), methods.get("backward")
    if forward is None or backward is None or "setup_context" in methods:
        raise Unwritable("it has no forward and backward with a context")
    for each in (forward, backward):
        if each.args.vararg or each.args.kwarg or each.args.kwonlyargs or not each.args.args:
            raise Unwritable(f"its {each.name} takes any number of arguments")
    context, *given = (each.arg for each in forward.args.args)
    forward = copy.deepcopy(forward)
    _OneByOne(context).visit(forward)
    back, *several = (each.arg for each in backward.args.args)
    kept = dict.fromkeys(_stored(forward, context))
    found = Gradient(forward, backward, given, context, back, dict(kept), several)
    found.kept.update({name: _at_hand(name, found) for name in kept})
    if any(value is not None for value in found.kept.values()) and _gives_other_values(found):
        found.kept.update(dict.fromkeys(kept))
    _check(found)
    nothing = [False] * len(given)
    _forward(found, nothing), _backward(found, nothing)  # raise what they do before any call is written
    return found


def _gives_other_values(found: Gradient) -> bool:
    """Whether backward assigns something else to a name that bprop has for an input."""
    body = _backward(found, [False] * len(found.given)).body
    nodes = [node for statement in body for node in ast.walk(statement)]
    return any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in found.given for n in nodes)


class _OneByOne(ast.NodeTransformer):
    """Writes `ctx.a, ctx.b = x, y` and `ctx.a = ctx.b = x` as an assignment each."""

    def __init__(self, context: str) -> None:
        self.context = context

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        kept = [n for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Attribute)]
        if not any(isinstance(n.value, ast.Name) and n.value.id == self.context for n in kept):
            return node
        pairs: list[tuple[ast.expr, ast.expr]] = []
        for target in node.targets:
            match target, node.value:
                case ast.Tuple(targets), ast.Tuple(values) if len(targets) == len(values) and all(
                    isinstance(one, ast.Attribute) for one in targets
                ):
                    pairs += zip(targets, values, strict=True)
                case ast.Attribute() | ast.Name(), value:
                    pairs.append((target, value))
                case _:
                    raise Unwritable(f"its forward has {ast.unparse(node)}")
        return [replacing(ast.Assign([target], copy.deepcopy(value)), node) for target, value in pairs]


def _check(found: Gradient) -> None:
    """Raise Unwritable for a context that does more than keep values, and for a forward that must not run twice."""
    if {*found.several} & {*found.given}:
        raise Unwritable(f"its backward calls a gradient {', '.join({*found.several} & {*found.given})}, as an input")
    for method, context in ((found.forward, found.context), (found.backward, found.back)):
        if any(isinstance(node, ast.FunctionDef) and node is not method for node in ast.walk(method)):
            raise Unwritable(f"its {method.name} has a function of its own")
        others = [one for one in method.decorator_list if not KNOWN.search(ast.unparse(one))]
        if others:
            raise Unwritable(f"what @{ast.unparse(others[0])} does to its {method.name} is not known")
        known = {id(node.value) for node in ast.walk(method) if isinstance(node, ast.Attribute)}
        if any(isinstance(n, ast.Name) and n.id == context and id(n) not in known for n in ast.walk(method)):
            raise Unwritable(f"its {method.name} hands its context on")
        for node in ast.walk(method):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == context:
                stores = isinstance(node.ctx, ast.Store) and method is found.backward
                if node.attr == "mark_dirty" or stores:
                    raise Unwritable(f"its {method.name} has {ast.unparse(node)}")
    stored = [node for node in ast.walk(found.forward) if isinstance(node, ast.Attribute)]
    others = [n for n in stored if isinstance(n.ctx, ast.Store) and ast.unparse(n.value) != found.context]
    if found.recomputes and others:
        raise Unwritable(f"its forward sets {ast.unparse(others[0])}, and would have to run again for its backward")


def _stored(forward: ast.FunctionDef, context: str) -> Iterator[str]:
    """The names under which forward keeps something."""
    for node in ast.walk(forward):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == context:
            if node.attr in ("save_for_backward", "save_for_forward"):
                yield SAVED
            elif isinstance(node.ctx, ast.Store):
                yield node.attr


def _at_hand(name: str, found: Gradient) -> ast.expr | None:
    """What forward keeps under a name, where that is made of its arguments and its result alone; else None."""
    body, nodes = found.forward.body, [*ast.walk(found.forward)]
    keeps = [(n, value) for n in nodes if isinstance(n, ast.stmt) for key, value in _keeps(n, found) if key == name]
    reads = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)]
    read = any(ast.unparse(node) == f"{found.context}.{name}" for node in reads)
    if len(keeps) != 1 or keeps[0][0] not in body or read:
        return None
    statement, value = keeps[0]
    returns = [node for node in nodes if isinstance(node, ast.Return)]
    given_back = body[-1].value if isinstance(body[-1], ast.Return) and returns == body[-1:] else None
    result = given_back.id if isinstance(given_back, ast.Name) else None
    later = {name for each in body[body.index(statement) + 1 :] for name in _assigned(each)}

    def known(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Name) and node.id == result and result not in later:
            return replacing(ast.Name(found.result, ast.Load()), node)
        return None

    whole: ast.expr = substitute(ast.Tuple([copy.deepcopy(value)], ast.Load()), known).elts[0]
    names = {node.id for node in ast.walk(whole) if isinstance(node, ast.Name)} - {found.result}
    plain = all(isinstance(node, (ast.Name, ast.Tuple, ast.Constant, ast.Load)) for node in ast.walk(whole))
    changed = _assigned(found.forward) | {name for n in nodes for name in _written(n)}
    return whole if plain and names <= {*found.given} - changed else None


def _assigned(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _written(node: ast.AST) -> Iterator[str]:
    """The variable that an expression writes into, as `x[0] = 1` and `x.view(-1).mul_(2)` do."""
    into = node.value if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        into = node.func.value if re.fullmatch(r"\w*[a-z0-9]_", node.func.attr) else None
    while isinstance(into, (ast.Subscript, ast.Attribute, ast.Call)):
        into = into.func if isinstance(into, ast.Call) else into.value
    if isinstance(into, ast.Name):
        yield into.id


def _keeps(statement: ast.stmt, found: Gradient) -> Iterator[tuple[str, ast.expr]]:
    """What a statement keeps in forward's context: names and values."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(context), "save_for_backward"), args)) if (
            context == found.context
        ):
            yield SAVED, ast.Tuple(args, ast.Load())
        case ast.Assign([ast.Attribute(ast.Name(context), name)], value) if context == found.context:
            yield name, value


def _variable(name: str, found: Gradient) -> str:
    """The variable in which a method has what is kept under a name."""
    taken = {*found.given, *found.several, *local_names(found.forward), *local_names(found.backward)}
    return _free(name, taken)


def _free(name: str, taken: set[str]) -> str:
    return next(one for one in (name, f"{name}_kept", *(f"{name}_{n}" for n in range(2, 99))) if one not in taken)


def _forward(found: Gradient, floating: Sequence[bool]) -> ast.FunctionDef:
    """Forward without its context."""
    method = substitute(copy.deepcopy(found.forward), partial(_needed, found.context, found.given, floating))
    method = _AsItIs().visit(method)
    method.args.args[0], method.decorator_list = ast.arg("self"), []
    method.name = COMPUTED if found.recomputes else "construct"
    kept = {name: _variable(name, found) for name in found.kept}
    method.body = _block(method.body, found, kept)
    if not found.recomputes:
        return method
    names = ", ".join(kept.values())

    def with_kept(node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.Return):
            return None
        several = ast.parse(f"({names},)", mode="eval").body
        return replacing(ast.Return(ast.Tuple([node.value or ast.Constant(None), several], ast.Load())), node)

    return ast.fix_missing_locations(substitute(method, with_kept))


def _with_nothing_kept(computed: ast.FunctionDef, found: Gradient) -> ast.FunctionDef:
    """Forward with None for what it keeps under a condition."""
    always = {name for each in computed.body if isinstance(each, ast.Assign) for name in _assigned(each)}
    lacking = [name for name in (_variable(each, found) for each in found.kept) if name not in always]
    place = int(ast.get_docstring(computed) is not None)
    computed.body[place:place] = [ast.parse(f"{name} = None").body[0] for name in lacking]
    return computed


def _needed(context: str, given: Sequence[str], floating: Sequence[bool], node: ast.AST) -> ast.AST | None:
    """True for `ctx.needs_input_grad[0]` and `x.requires_grad` of a tensor of real numbers: it gets a gradient."""
    match node:
        case ast.Subscript(ast.Attribute(ast.Name(owner), "needs_input_grad"), ast.Constant(int() as place)):
            if owner == context:
                return replacing(ast.Constant(place < len(floating) and floating[place]), node)
        case ast.Attribute(ast.Name(owner), "needs_input_grad", ast.Load()) if owner == context:
            return replacing(ast.Tuple([ast.Constant(one) for one in floating], ast.Load()), node)
        case ast.Attribute(ast.Name(name), "requires_grad", ast.Load()) if name in given:
            return replacing(ast.Constant(floating[given.index(name)]), node)
    return None


class _AsItIs(ast.NodeTransformer):
    """Takes what `with torch.no_grad()` holds out of it: nothing in a forward with a bprop is differentiated."""

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        held = [ast.unparse(item.context_expr).rpartition(".")[2] for item in node.items]
        return node.body if held == ["no_grad()"] else node


def _block(body: Sequence[ast.stmt], found: Gradient, kept: Mapping[str, str]) -> list[ast.stmt]:
    """Statements of forward with variables in place of the context."""
    made: list[ast.stmt] = []
    for statement in body:
        for name, value in _keeps(statement, found):
            if found.recomputes:
                kept_now = replacing(ast.Assign([ast.Name(kept[name], ast.Store())], value), statement)
                made.append(substitute(ast.fix_missing_locations(kept_now), partial(_read, found.context, kept)))
            break
        else:
            if _ignored(statement, found.context):
                continue
            for part in ("body", "orelse", "finalbody"):
                if isinstance(inner := getattr(statement, part, None), list):
                    setattr(statement, part, _block(inner, found, kept) or ([ast.Pass()] if part == "body" else []))
            made.append(substitute(statement, partial(_read, found.context, kept)))
    return made


def _ignored(statement: ast.stmt, context: str) -> bool:
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(owner), name))):
            return owner == context and name in IGNORED
    return False


def _read(context: str, kept: Mapping[str, str], node: ast.AST) -> ast.AST | None:
    """The variable for a read of the context."""
    match node:
        case ast.Attribute(ast.Name(owner), name, ast.Load()) if owner == context:
            name = SAVED if name == "saved_variables" else name
            if name not in kept:
                raise Unwritable(f"its {ast.unparse(node)} is not kept by forward")
            return replacing(ast.Name(kept[name], ast.Load()), node)
    return None


def _backward(found: Gradient, floating: Sequence[bool]) -> ast.FunctionDef:
    """`bprop`: backward with the inputs, the output and its gradient in place of the context."""
    method = copy.deepcopy(found.backward)
    kept = {name: _variable(name, found) for name in found.kept}
    document = [method.body.pop(0)] if ast.get_docstring(method) is not None else []

    def change(node: ast.AST) -> ast.AST | None:
        match node:
            case ast.Attribute(ast.Name(owner), name, ast.Load()) if owner == found.back and not found.recomputes:
                value = found.kept.get(SAVED if name == "saved_variables" else name)
                if value is not None:
                    return copy.deepcopy(value)
        return _read(found.back, kept, node)

    returned, needed = partial(_returned, found.given), partial(_needed, found.back, found.given, floating)
    body = [substitute(substitute(substitute(each, needed), change), returned) for each in method.body]
    method.body = [*document, *(each for each in body if not _says_nothing(each))]
    given = [*found.given, found.result, *found.several, *(kept.values() if found.recomputes else ())]
    method.args = ast.arguments([], [ast.arg("self"), *map(ast.arg, given)], None, [], [], None, [])
    method.name, method.decorator_list, method.returns = "bprop", [], None
    return ast.fix_missing_locations(method)


def _finished(bprop: ast.FunctionDef, found: Gradient, floating: Sequence[bool], zeros: ast.expr) -> ast.FunctionDef:
    """`bprop` as MindSpore calls it: with the inputs, the output and its gradient, a tuple for several outputs; what
    was kept is computed. With `ops.zeros_like(w)` in place of None for a tensor: MindSpore has no gradient of None."""
    names = [_variable(name, found) for name in found.kept]
    gradient = found.several[0] if len(found.several) == 1 else _free("gradients", {*found.given, *found.several})
    first = [f"_, ({', '.join(names)},) = {_computed(found)}"] if found.recomputes else []
    first += [f"{', '.join(found.several)} = {gradient}"] if len(found.several) != 1 else []
    given = ["self", *found.given, found.result, gradient]
    bprop.args = ast.arguments([], [*map(ast.arg, given)], None, [], [], None, [])
    place = int(ast.get_docstring(bprop) is not None)
    bprop.body[place:place] = [ast.parse(text).body[0] for text in first]
    for node in ast.walk(bprop):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            for at, item in enumerate(node.value.elts[: len(found.given)]):
                if isinstance(item, ast.Constant) and item.value is None and floating[at]:
                    node.value.elts[at] = ast.Call(zeros, [ast.Name(found.given[at], ast.Load())], [])
    return bprop


def _gradients(returned: ast.Return, given: Sequence[str]) -> ast.Return:
    """`return (x, None)` for `return x, None, None`: one for each argument."""
    value = returned.value
    if not isinstance(value, ast.Tuple):
        if len(given) != 1 or value is None:
            return returned
        value = ast.Tuple([value], ast.Load())
    value = ast.Tuple(value.elts[: len(given)], ast.Load())
    return ast.fix_missing_locations(replacing(ast.Return(value), returned))


def _returned(given: Sequence[str], node: ast.AST) -> ast.AST | None:
    return _gradients(node, given) if isinstance(node, ast.Return) else None


def _says_nothing(statement: ast.stmt) -> bool:
    """Whether a statement gives variables the values that they have, as `x, w = x, w`."""
    match statement:
        case ast.Assign([target], value):
            return ast.unparse(target) == ast.unparse(value)
    return False


def written(
    node: ast.ClassDef,
    found: Gradient,
    floating: Sequence[bool],
    translate: Callable[[ast.FunctionDef, bool], ast.FunctionDef],
    zeros: ast.expr,
) -> list[ast.stmt]:
    """The methods of the Cell: `construct`, which calls `computed` where forward has to run once more, and `bprop`.

    floating: of forward's arguments, whether each was a tensor of real numbers. translate: writes a method for
    MindSpore; given whether it is the backward. zeros: the name of MindSpore's zeros_like.
    """
    floating = [*floating, *[False] * len(found.given)][: len(found.given)]
    forward, backward = _forward(found, floating), _backward(found, floating)
    made: list[ast.FunctionDef] = [translate(forward, False)]
    if found.recomputes:
        made = [_with_nothing_kept(made[0], found)]
        text = f"def construct(self, {', '.join(found.given)}):\n    return {_computed(found)}[0]"
        made += [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)]
        made[-1].args.defaults = copy.deepcopy(made[0].args.defaults)
    others = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name not in (*LEFT, "forward", "backward")]
    return [*made, _finished(translate(backward, True), found, floating, zeros), *(translate(n, False) for n in others)]


def _computed(found: Gradient) -> str:
    return f"self.{COMPUTED}({', '.join(found.given)})"


def own_gradient(name: str, program: Program) -> Gradient | None:
    """The parts of an autograd.Function that becomes a Cell; None for any other class."""
    found = _own(name, program)
    return found if isinstance(found, Gradient) else None


def why_not(name: str, program: Program) -> str:
    """Why an autograd.Function whose backward is not the derivative of its forward does not become a Cell."""
    return str(_own(name, program) or program.facts.autograd[name][0])


def _own(name: str, program: Program) -> Gradient | Unwritable | None:
    if not program.facts.autograd.get(name, ("", []))[0] or (found := program.class_of(name)) is None:
        return None
    try:
        parts = taken_apart(found[1])
        if parts.recomputes and _draws(parts.forward, program, set()):
            raise Unwritable("its forward draws, and would have to run again for its backward")
    except Unwritable as error:
        return error
    return parts


def _draws(function: ast.FunctionDef, program: Program, seen: set[str]) -> bool:
    """Whether a function draws random numbers, itself or by functions of the model that it calls."""
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    names = {name for call in calls for name in (callees_of(call) or [ast.unparse(call.func)])}
    if any(DRAWING.search(name.rpartition(".")[2]) for name in names):
        return True
    inner = [program.node(program.functions[name]) for name in names - seen if name in program.functions]
    seen |= names
    return any(_draws(node, program, seen) for node in inner if node is not None)


@handles(syntax=[ast.Call])
def applied(node: ast.Call, context: Context) -> ast.expr | None:
    """`Reverse()(x, 0.5)` for `Reverse.apply(x, 0.5)`; with the defaults, since bprop takes every argument."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "apply":
        return None
    names = [name.removesuffix(".apply") for name in callees_of(node)]
    found = own_gradient(names[0], context.program) if len(names) == 1 else None
    if found is None:
        return None
    made = context.kept(node)
    made.func = made_of(names[0], context.program)
    defaults = found.forward.args.defaults
    lacking = len(found.given) - len(made.args)
    if lacking > 0 and len(defaults) >= lacking and not any(isinstance(one, ast.Starred) for one in made.args):
        made.args += [copy.deepcopy(one) for one in defaults[len(defaults) - lacking :]]
    return made


@handles(syntax=[ast.Attribute])
def handed_on(node: ast.Attribute, context: Context) -> ast.expr | None:
    """`Reverse()` for `Reverse.apply` that is handed on."""
    if node.attr != "apply" or not isinstance(node.ctx, ast.Load):
        return None
    name = context.program.names(context.file).name(node.value)
    return None if own_gradient(name, context.program) is None else made_of(name, context.program)


def made_of(name: str, program: Program) -> ast.expr:
    """`Reverse()`, the Cell that an autograd.Function became."""
    program.define(name)
    return ast.Call(ast.Name(program.called(name), ast.Load()), [], [])


def without_backward(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """The methods of a Function whose backward is the derivative of its forward, which MindSpore computes itself:
    `forward`, without what it keeps, is `apply`."""
    methods = {each.name: copy.deepcopy(each) for each in node.body if isinstance(each, ast.FunctionDef)}
    for name, method in methods.items():
        if name == "forward" and "setup_context" not in methods:
            context = method.args.args.pop(0).arg
            method.body = [one for one in method.body if not _of_context(one, context)]
        if name not in (*LEFT, "backward"):
            yield method


def _of_context(statement: ast.stmt, context: str) -> bool:
    """Whether a statement only keeps something for the backward: `ctx.save_for_backward(x)`, `ctx.dim = dim`."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name)))) | ast.Assign([ast.Attribute(ast.Name(name))]):
            return name == context
    return False


def refused(error: ast.expr) -> ast.stmt:
    """`apply` of a Function that cannot be written: it raises."""
    raises = ast.parse("@staticmethod\ndef apply(*args): ...").body[0]
    assert isinstance(raises, ast.FunctionDef)
    raises.body = [ast.Expr(error)]
    return raises


# Checkpointing, and conditions by which torch only saves memory: whether gradients are needed decides between a call
# and the same one under checkpointing


@handles(CHECKPOINT)
def checkpointed(call: ast.Call, context: Context) -> ast.expr:
    """The call without checkpointing."""
    words = [word for word in call.keywords if word.arg not in SPARING]
    function, *args = call.args
    return context.kept(replacing(ast.Call(function, args, words), call))


@handles(f"{CHECKPOINT}_sequential")
def checkpointed_in_turn(call: ast.Call, context: Context) -> ast.expr:
    """`in_turn(list(self.layers), x)` for `checkpoint_sequential(self.layers, segments, x)`."""
    given = dict(zip(("functions", "segments", "input"), call.args, strict=False))
    given |= {word.arg: word.value for word in call.keywords if word.arg is not None and word.arg not in SPARING}
    if {*given} != {"functions", "segments", "input"} or any(isinstance(one, ast.Starred) for one in call.args):
        raise Unwritable(f"{ast.unparse(call)}: expected its functions, their number of parts and one input")
    layers: ast.expr = context.visit(given["functions"])
    if not isinstance(layers, ast.List):
        layers = ast.Call(ast.Name("list", ast.Load()), [layers], [])
    return ast.Call(context.name("msmigrate.nn.in_turn"), [layers, context.visit(given["input"])], [])


@handles(syntax=[ast.IfExp])
def saving_memory(node: ast.IfExp, context: Context) -> ast.expr | None:
    """`f` for `partial(checkpoint, f) if x.requires_grad else f`."""
    kept = _same_side(node, context)
    return None if kept is None else context.visit(kept[0])


@handles(syntax=[ast.If], stage=Stage.IN_PLACE)
def branches_saving_memory(node: ast.If, context: Context) -> list[ast.stmt] | None:
    """`y = f(x)` for both branches of `if x.requires_grad: y = checkpoint(f, x)`, `else: y = f(x)`."""
    kept = _same_side(node, context)
    statements = [one for one in kept or () if isinstance(one, ast.stmt)]
    return None if kept is None else [new for one in statements for new in context.statement(one)]


@handles(syntax=[ast.Assign], stage=Stage.IN_PLACE)
def flag_saving_memory(node: ast.Assign, context: Context) -> list[ast.stmt] | None:
    """Nothing for `needed = x.requires_grad or y.requires_grad`, where that only decides about checkpointing."""
    match node.targets, context.function:
        case [ast.Name(name)], ast.FunctionDef() if _asks_gradient(node.value):
            inside = [*ast.walk(context.function)]
            reads = {id(one) for one in inside if isinstance(one, ast.Name) and one.id == name and _is_read(one)}
            tests = [one for one in inside if isinstance(one, (ast.If, ast.IfExp)) and _same_side(one, context)]
            in_tests = {id(part) for one in tests for part in ast.walk(one.test)}
            return [] if reads and reads <= in_tests else None
    return None


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def _asks_gradient(node: ast.expr) -> bool:
    """Whether an expression only asks whether gradients are wanted, and for plain values."""
    asks = any(isinstance(one, ast.Attribute) and one.attr == "requires_grad" for one in ast.walk(node))
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    return asks and not any(isinstance(one, ast.NamedExpr) for one in ast.walk(node)) and not calls


def _same_side(node: ast.If | ast.IfExp, context: Context) -> list[ast.AST] | None:
    """What both sides are but for checkpointing, as the one that has none; None where they differ by more, or where the
    question is none about gradients."""
    about = [one.id for one in ast.walk(node.test) if isinstance(one, ast.Name)]
    given = [
        one for one in ast.walk(context.function or node) if isinstance(one, ast.Assign) and _names(one) & {*about}
    ]
    if not (_asks_gradient(node.test) or (given and all(_asks_gradient(one.value) for one in given))):
        return None
    if any(isinstance(one, (ast.Call, ast.NamedExpr)) for one in ast.walk(node.test)):
        return None
    sides = [side if isinstance(side, list) else [side] for side in (node.body, node.orelse)]
    body, orelse = ([one for one in side if not is_comment(one)] for side in sides)
    plain = [[ast.unparse(_without_checkpoint(one, context)) for one in side] for side in (body, orelse)]
    if not orelse or plain[0] != plain[1]:
        return None
    side = orelse if [*map(ast.unparse, orelse)] == plain[1] else body
    return [*side]


def _names(node: ast.Assign) -> set[str]:
    return {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}


def _without_checkpoint(node: ast.AST, context: Context) -> ast.AST:
    """The same with `f(x)` for `checkpoint(f, x)`, and `f` for a name of the file that is `partial(checkpoint, f)`."""
    resolve = context.program.names(context.file).name

    def change(inner: ast.AST) -> ast.AST | None:
        if isinstance(inner, ast.Name) and inner.id not in context.local:
            constant = context.program.origin(context.file, inner.id)
            match constant.node.value if constant is not None else None:
                case ast.Call(function, [checkpoint, given]) if resolve(function) == "functools.partial":
                    return given if resolve(checkpoint) == CHECKPOINT else None
            return None
        if isinstance(inner, ast.Call) and inner.args and resolve(inner.func) == CHECKPOINT:
            words = [word for word in inner.keywords if word.arg not in SPARING]
            return ast.Call(inner.args[0], inner.args[1:], words)
        return None

    return substitute(copy.deepcopy(node), change)


@handles(syntax=[ast.With], stage=Stage.STATEMENT)
def of_another_precision(node: ast.With, context: Context) -> None:
    """List `with autocast(enabled=…)`, whose statements are written without it."""
    for call in (item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)):
        given = [literal(one) for one in (*call.args, *(word.value for word in call.keywords))]
        if "".join(callees_of(call)[:1]).endswith("autocast") and (True, False) not in given:
            why = "MindSpore's precision is chosen for the whole net: train.amp of a recipe, or to_float"
            context.program.left_out.append(Problem(context.file, node.lineno, f"{ast.unparse(call)}: {why}"))
