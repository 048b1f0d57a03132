"""Which of a script's models is trained: the one whose parameters the optimizer gets; and where a model runs in which
mode, as the calls of a script follow one another; which methods and functions change their
objects, and which are never called."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

from ...mappings.aliases import restated
from ..library_names import MODULE, TABLES, is_class
from ..read_script.abstract_values import (
    LibraryName,
    LibraryObject,
    LibraryUse,
    ScriptClass,
    ScriptFunction,
    ScriptObject,
    Value,
)
from ..read_script.expressions import truth
from ..read_script.interpreter import CERTAINTIES, OPTION, PERHAPS, UNCALLED, Interpreter
from ..read_script.syntax import root
from .data_flow import EACH, FUNCTIONS, GIVEN, IS, LOOPS, NAMED, Flow, Statement
from .recipe_entries import by_sureness, calls, distinct, of_made_classes, surely

MODES = ("train", "eval")
BACKWARDS = ("backward", "manual_backward")
PARTS = re.compile(
    r"(forward|encode|decode|generate|predict|get_\w*features?)(_\w+)?|features|backbone|(en|de)coder|"
    r"classifier|fc|head|(layer|conv|block)s?\d*"
)  # what runs a library's model, or a part of it
OF_MODELS = ("parameters", "named_parameters", "state_dict", "load_state_dict", "forward", "zero_grad", "module")
UPDATE = "update"
BEHIND = (sys.maxsize, 0)  # the place of an update within its call: it runs a closure first
DEPTH = 6  # of nested function calls
Head = tuple[Statement, str, int]  # a statement around, in which of its parts, and the level of function calls


def makes_model(seen: LibraryUse) -> bool:
    """Whether a call makes one of torchvision's or timm's models."""
    made_by = ("torchvision.models.", "timm.create_model", "timm.models.", "torch.hub.load")
    named = seen.name.rpartition(".")[2]
    called = any(n.startswith(made_by) and ".utils." not in n for n in restated(seen.name)) and not seen.receiver
    return called and not is_class(named) and not named.startswith(("load_", "list_"))


def unwrapped(value: Value | None) -> Value | None:
    """The model inside of its wrappers."""
    while isinstance(value, LibraryObject) and isinstance(value.of, (LibraryObject, ScriptObject)):
        value = value.of
    return value


def several_train(interpreter: Interpreter) -> bool:
    """Whether more than one optimizer may train at once, other than alternatives under a condition."""
    found = distinct(surely(calls(interpreter, "optimizer")))
    return any(not either(one, other) for one, other in combinations(found, 2))


def trained(interpreter: Interpreter) -> Value | None:
    """The model whose parameters the optimizer gets; without an optimizer, the only one that is made."""
    if several_train(interpreter):
        return None
    owners = [_owner(interpreter, seen) for seen in distinct(surely(calls(interpreter, "optimizer")))]
    if any(owner is not None for owner in owners):
        return owners[0] if all(owner is owners[0] for owner in owners) else None
    zoo = distinct(surely(by_sureness(s for s in interpreter.seen if s.arguments is not None and makes_model(s))))
    zoo = [seen for seen in zoo if not _is_part(interpreter, seen)]
    zoo = of_made_classes(interpreter, zoo)
    if len(zoo) == 1:
        made = interpreter.values.get(id(zoo[0].node), (0, None))[1]
        return made if isinstance(made, LibraryObject) and made.seen is not None else None
    own = [made for made in interpreter.made if made.of.family() == MODULE and made.node is not None]
    parts = _put_into_others(interpreter) if own else set()  # this searches every statement
    own = [made for made in own if id(made.node) not in parts]
    sure = list({id(made.node): made for made in own if made.certainty not in (OPTION, UNCALLED)}.values())
    known = (
        len(sure) == 1 and not _another_is_read(interpreter, sure[0]) and (not owners or _is_used(interpreter, sure[0]))
    )
    return sure[0] if known else None


def misses_some(flow: Flow, node: ast.expr) -> bool:
    """Whether an expression of parameters lacks those of an object whose parameters the only optimizer gets, too."""
    made = surely(calls(flow.interpreter, "optimizer"))
    given = [one.node for seen in made[:1] for one in seen.arguments or [] if one.name in (None, "params")]

    def names(of: ast.expr | None, depth: int = 0) -> set[str]:
        while isinstance(of, ast.Call) and isinstance(of.func, ast.Attribute):  # net.to(device)
            of = of.func.value
        found = [*flow.written(of)] if isinstance(of, (ast.Name, ast.Attribute)) and depth < DEPTH else []
        values = [v for d in found for v in (flow.arguments_of(d) if d.way == GIVEN else [d.value]) if not d.path]
        own = {ast.unparse(of).removesuffix(".module")} if isinstance(of, (ast.Name, ast.Attribute)) else set()
        return own.union(*(names(one, depth + 1) for one in values))

    def objects(of: ast.expr) -> list[set[str]]:
        behind = (part for one in flow.behind(of) for part in ast.walk(one) if isinstance(part, ast.Attribute))
        each = {ast.unparse(one.value): one.value for one in behind if one.attr in ("parameters", "named_parameters")}
        return [names(one) for one in each.values()]

    has = set().union(*objects(node))
    return len(made) == 1 and bool(given and has) and any(one and not one & has for one in objects(given[0]))


def _is_used(interpreter: Interpreter, made: ScriptObject) -> bool:
    """Whether a script runs this model, reads its parameters or its state, or switches its mode: not an image in a
    class of modules, where the optimizer has other parameters."""
    nodes = [node for module in interpreter.files.values() for node in ast.walk(module.scope.source.tree)]
    used = [node.func for node in nodes if isinstance(node, ast.Call)]
    used += [node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr in (*MODES, *OF_MODELS)]
    return any(unwrapped(interpreter.values.get(id(one), (0, None))[1]) is made for one in used)


def _another_is_read(interpreter: Interpreter, made: ScriptObject) -> bool:
    """Whether a script reads the parameters of a model that is not known, and not those of this one."""
    nodes = (node for module in interpreter.files.values() for node in ast.walk(module.scope.source.tree))
    owners = [one.value for one in nodes if isinstance(one, ast.Attribute) and one.attr == "parameters"]
    values = [unwrapped(interpreter.values.get(id(one), (0, None))[1]) for one in owners]
    known = [isinstance(one, ScriptObject) or getattr(one, "seen", None) is not None for one in values]
    return all(value is not made for value in values) and not all(known)


def _owner(interpreter: Interpreter, seen: LibraryUse) -> Value | None:
    """The model whose parameters an optimizer gets."""
    given = [argument.node for argument in seen.arguments or [] if argument.name in (None, "params")]
    waiting, done = [all_handed_over(interpreter, node) for node in given] or [seen.node], set[str]()
    while waiting:
        parts = [part for node in waiting for part in ast.walk(node)]
        for inner in parts:
            of = inner.value if isinstance(inner, ast.Attribute) and "parameters" in inner.attr else inner
            for candidate in (of, *(name for name in ast.walk(of) if isinstance(name, ast.Name))):
                value = unwrapped(interpreter.values.get(id(candidate), (0, None))[1])
                if isinstance(value, ScriptObject) and value.of.family() == MODULE:
                    return value
                made = value.seen if isinstance(value, LibraryObject) and value.family == MODULE else None
                if made is not None and not made.name.endswith(("ParameterList", "ParameterDict")):
                    return value
        called = {part.id: part for part in parts if isinstance(part, ast.Name) and part.id not in done}
        done |= called.keys()
        waiting = [value for name in called.values() for value in _gathered(interpreter, name)]
    return None


def _gathered(interpreter: Interpreter, name: ast.Name) -> Iterator[ast.expr]:
    """What a name is assigned, or extended by, above the place where it is read, in the same function."""
    trees = (module.scope.source.tree for module in interpreter.files.values())
    tree = next((tree for tree in trees if any(node is name for node in ast.walk(tree))), ast.Module([], []))
    around = [one for one in ast.walk(tree) if isinstance(one, FUNCTIONS) and any(n is name for n in ast.walk(one))]
    for node in ast.walk(around[-1] if around else tree):
        match node:
            case (
                ast.Assign([ast.Name(named)], value)
                | ast.AugAssign(ast.Name(named), _, value)
                | ast.Call(ast.Attribute(ast.Name(named), "append" | "extend"), [value])
            ) if named == name.id and node.lineno < name.lineno:
                yield value


def all_handed_over(interpreter: Interpreter, node: ast.expr) -> ast.expr:
    """The call `model.parameters()`, in list(…), in a choice of those that train, or where the name is a parameter for
    it; else the expression itself."""
    behind: list[ast.expr] = []
    match node:
        case ast.Call(ast.Name("list" | "tuple" | "iter"), [of]) | ast.Call(
            ast.Name("filter"), [ast.Lambda(_, ast.Attribute(_, "requires_grad")), of]
        ):
            behind = [of]
        case ast.ListComp(ast.Name(kept), [one]) | ast.GeneratorExp(ast.Name(kept), [one]):
            trains = all(isinstance(test, ast.Attribute) and test.attr == "requires_grad" for test in one.ifs)
            behind = [one.iter] if trains and getattr(one.target, "id", "") == kept else []
        case ast.Name():
            value = interpreter.values.get(id(node), (0, None))[1]
            seen = value.seen if isinstance(value, LibraryObject) else None
            behind = [seen.node] if seen is not None else list(_gathered(interpreter, node))
    found = all_handed_over(interpreter, behind[0]) if len(behind) == 1 and behind[0] is not node else node
    called = found.func if isinstance(found, ast.Call) else None
    return found if isinstance(called, ast.Attribute) and called.attr == "parameters" else node


def _is_part(interpreter: Interpreter, seen: LibraryUse) -> bool:
    """Whether a model is made inside of a class of models of the script, of which an object is made."""
    line = seen.node.lineno
    for node in ast.walk(seen.source.tree):
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or line):
            of = next((made.of for made in interpreter.made if made.of.node is node), None)
            if of is not None and (of.library_base() or "").startswith("torch.nn."):
                return True
    return False


def _put_into_others(interpreter: Interpreter) -> set[int]:
    """The calls of the script's statements that make a part of another object: model.head = Head(…)."""
    found: set[int] = set()
    for module in interpreter.files.values():
        for node in ast.walk(module.scope.source.tree):
            targets = node.targets if isinstance(node, ast.Assign) else []
            parts = (one for one in targets if isinstance(one, ast.Attribute))
            if any(not (isinstance(one.value, ast.Name) and one.value.id in ("self", "cls")) for one in parts):
                found |= {id(part) for part in ast.walk(node) if isinstance(part, ast.Call)}
    return found


def either(one: LibraryUse, other: LibraryUse) -> bool:
    """Whether two calls are in the two branches of an undecided condition."""
    mine, others = set((one.condition or "").split(" and ")), set((other.condition or "").split(" and "))
    return any(f"not ({text})" in b for a, b in ((mine, others), (others, mine)) for text in a)


# where it runs, and in which mode


@dataclass(frozen=True)
class Event:
    """A call of the step as it runs: the calls of its functions and its own statement, their positions, the outermost
    one first, and the statements around them."""

    kind: str
    calls: tuple[Statement, ...]
    at: tuple[tuple[int, int], ...]
    around: tuple[Head, ...]

    @property
    def statement(self) -> Statement:
        """Its own statement."""
        return self.calls[-1]

    @property
    def loop(self) -> Statement | None:
        """The innermost loop."""
        return next((head for head, *_ in reversed(self.around) if isinstance(head.node, LOOPS)), None)

    def meets(self, other: Event) -> bool:
        """Whether both may run in one round: not in two branches of one condition, nor in two calls of a function."""
        mine = {id(head): part for head, part, _ in self.around}
        loops = [level for head, _, level in self.around if isinstance(head.node, LOOPS)]
        shared = [level for head, _, level in other.around if level in loops and id(head) in mine]
        deepest = max(shared, default=0)
        separate = any(mine.get(id(head), part) != part for head, part, _ in other.around)
        return not separate and self.at[:deepest] == other.at[:deepest]

    def conditions(self) -> set[tuple[int, str]]:
        """The conditions inside of its loop."""
        found: set[tuple[int, str]] = set()
        for head, part, _ in self.around:
            found = set() if isinstance(head.node, LOOPS) else found
            found |= {(id(head), part)} if isinstance(head.node, ast.If) else set()
        return found


def events(flow: Flow, statement: Statement, kind: str, depth: int = 0) -> Iterator[Event]:
    """A statement's call, once for every call of its function."""
    callers = flow.calls.get(id(statement.function), []) if statement.function is not None else []
    closes = any(getattr(call.func, "attr", "") == "step" and call.args for call in statement.calls)
    own = ((statement.node.lineno, statement.node.col_offset), *[BEHIND] * (kind == UPDATE and closes and not depth))
    if not callers or depth > DEPTH:
        yield Event(kind, (statement,), own, _around(statement, 0))
    for caller in dict.fromkeys(caller for caller, *_ in callers) if depth <= DEPTH else ():
        for outer in events(flow, caller, kind, depth + 1):
            around = (*outer.around, *_around(statement, len(outer.at)))
            yield Event(kind, (*outer.calls, statement), (*outer.at, *own), around)


def _around(statement: Statement, level: int) -> tuple[Head, ...]:
    return tuple((head, part_of(head, statement), level) for head in statement.around)


def part_of(head: Statement, statement: Statement) -> str:
    """The part of a compound statement that another one is in: body, orelse, …"""
    line = statement.place[1]
    for part in ("body", "orelse", "finalbody"):
        inner = getattr(head.node, part, None)
        if inner and inner[0].lineno <= line <= (inner[-1].end_lineno or line):
            return part
    return ""


def loops_around(
    flow: Flow, statement: Statement, runs: Callable[[Statement], bool], steps: set[int], depth: int = 0
) -> list[Statement]:
    """The loops without a step around a statement and the only call of its function: how often it runs."""
    callers = flow.calls.get(id(statement.function), []) if depth < DEPTH else []
    only = list({id(one): one for one, _, _ in callers if runs(one)}.values())
    outer = loops_around(flow, only[0], runs, steps, depth + 1) if len(only) == 1 else []
    return outer + [one for one in statement.around if isinstance(one.node, LOOPS) and id(one) not in steps]


def trains_at(flow: Flow, statement: Statement, is_model: Callable[[ast.expr], Any]) -> bool:
    """Whether a statement runs the model where it may be in training mode, before a backward pass: the last switch
    before is not `eval()`.

    is_model: whether an expression is one of models.
    """
    if getattr(statement.function, "name", "") == "forward":
        return False  # it is what runs
    called = [call.func for call in statement.calls if is_model(call.func)]
    if not any(is_object(flow, one) for one in called) and not any(_runs(flow, c, is_model) for c in statement.calls):
        return False
    for event in events(flow, statement, "run"):
        last = max((one for one in _switches(flow) if one[0] < event.at), default=None)
        followed = [one for one in passes(flow) if one.at > event.at or any(shared_loops(event, one))]
        if (last is None or last[1] == "train") and (followed or not passes(flow)):
            return True
    return False


@lru_cache(maxsize=2)
def passes(flow: Flow) -> list[Event]:
    """The backward passes of a script."""
    found = (s for s in flow.statements if any(getattr(call.func, "attr", "") in BACKWARDS for call in s.calls))
    return [event for one in found for event in events(flow, one, "backward")]


@lru_cache(maxsize=2)
def _switches(flow: Flow) -> list[tuple[tuple[tuple[int, int], ...], str]]:
    """The places of all switches of a mode, each with its name."""
    calls = [(one, call.func) for one in flow.statements for call in one.calls if len(call.args) < 2]
    named = [(one, func.attr) for one, func in calls if isinstance(func, ast.Attribute) and func.attr in MODES]
    return [(event.at, name) for one, name in named for event in events(flow, one, name)]


def _runs(flow: Flow, call: ast.Call, is_model: Callable[[ast.expr], Any]) -> bool:
    """Whether a function of a library runs the model that it is given, or that its method is of."""
    called, bare = flow.value(call.func), getattr(call.func, "id", "") * (not flow.reads.get(id(call.func)))
    if (called.name if isinstance(called, LibraryName) else bare) in TABLES["running_models"]:
        return any(map(is_model, (*call.args, *(k.value for k in call.keywords))))
    method = call.func if isinstance(call.func, ast.Attribute) else None
    return method is not None and method.attr in ("forward", "__call__") and bool(is_model(method.value))


def is_object(flow: Flow, node: ast.expr) -> bool:
    """Whether the callee is an object that the script keeps in a variable or an attribute, and not a function."""
    if isinstance(flow.value(node), (LibraryName, ScriptFunction, ScriptClass)):
        return False
    found = flow.value(node.value) if isinstance(node, ast.Attribute) else None
    if isinstance(found, LibraryObject) and found.family == MODULE and PARTS.fullmatch(getattr(node, "attr", "")):
        return True  # a layer of a library's model
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and any(d.way != NAMED for d in flow.attributes.get(node.attr, ()))
    return isinstance(node, ast.Name) and bool(flow.reads.get(id(node)))


def in_evaluation(flow: Flow, model_of: Callable[[ast.expr], str | None]) -> set[int]:
    """The switches (their calls' ids) of a trained model to evaluation mode that a backward pass follows, in this round
    of a loop or in the next one, with no switch back in between that runs whenever one of the two does.

    model_of: gives a name to the model that an expression is, as a whole; None for any other expression.
    """
    switches = [(s, c, *mode) for s in flow.statements for c in s.calls for mode in _modes(flow, c, model_of)]
    each = {id(event.statement): event.statement for event in passes(flow)}.values()
    backward = [one for s in each for one in _with_conditions(flow, s)]
    back = [(name, one) for s, call, name, trains in switches if trains for one in _with_conditions(flow, s, call)]
    return {
        id(call)
        for s, call, name, trains in switches
        if not trains
        for one in _with_conditions(flow, s, call)
        if any(_reaches(one, other, [each for of, each in back if of == name]) for other in backward)
    }


def _modes(flow: Flow, call: ast.Call, model_of: Callable[[ast.expr], str | None]) -> Iterator[tuple[str, bool]]:
    """The model that a call switches, if it switches one as a whole, and whether to training mode."""
    method, owner = getattr(call.func, "attr", ""), getattr(call.func, "value", call.func)
    given = [*call.args, *(k.value for k in call.keywords)]
    if method in MODES and flow.of_library(call) and given:
        owner, given = given[0], given[1:]  # nn.Module.eval(net)
    if method in MODES and (name := model_of(owner)) is not None:
        changes = any(id(one) in flow.interpreter.varied for one in given)  # from call to call
        known_ = all(truth(flow.value(one) or Value()) for one in given)
        yield name, method == "train" and (changes or known_)


Conditioned = tuple["Event", frozenset[str]]  # with the undecided conditions around it and the calls of its functions


def _with_conditions(flow: Flow, statement: Statement, call: ast.Call | None = None) -> Iterator[Conditioned]:
    within: set[str] = set()
    for choice in (node for node in statement.nodes if isinstance(node, ast.IfExp) and call is not None):
        test = statement.source.text(choice.test)
        within |= {test} if any(part is call for part in ast.walk(choice.body)) else set()
        within |= {f"not ({test})"} if any(part is call for part in ast.walk(choice.orelse)) else set()
    for event in events(flow, statement, ""):
        found = set(within)
        surely = True
        for one in event.calls:
            rank, conditions = flow.interpreter.reached.get(id(one.node), (0, ()))
            found |= set(conditions) if CERTAINTIES[rank] in (PERHAPS, OPTION) else set()
            found |= {text for text, _ in flow.conditions(one, by_call=True)}
            surely = surely and (CERTAINTIES[rank] != OPTION or flow.doubtful(one, set()))
        if surely:
            yield event, frozenset(found)


def _reaches(switch: Conditioned, backward: Conditioned, back: list[Conditioned]) -> bool:
    (mine, if_mine), (other, if_other) = switch, backward
    sure = [event for event, conditions in back if conditions <= if_mine | if_other]
    excluded = any(f"not ({text})" in b for a, b in ((if_mine, if_other), (if_other, if_mine)) for text in a)
    if mine.at < other.at and mine.meets(other) and not excluded:
        return not any(mine.at < one.at < other.at for one in sure)
    for head, level in shared_loops(mine, other):
        within = [one for one in sure if one.at[:level] == mine.at[:level]]
        within = [one for one in within if any(each is head for each, *_ in one.around)]
        if not any(one.at > mine.at or one.at < other.at for one in within):
            return True
    return False


def shared_loops(mine: Event, other: Event) -> Iterator[tuple[Statement, int]]:
    """The loops around both, each with the level of function calls."""
    loops = {(id(head), level) for head, _, level in mine.around if isinstance(head.node, LOOPS)}
    for head, _, level in other.around:
        if (id(head), level) in loops and mine.at[:level] == other.at[:level]:
            yield head, level


ENTERS, AUGMENTS = ("__enter__", "__exit__"), {"MatMult": "matmul", "LShift": "lshift", "RShift": "rshift"}
AUGMENTS |= {"BitOr": "or", "BitAnd": "and", "BitXor": "xor", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv"}


def called_by_syntax(flow: Flow, statement: Statement) -> Iterator[ScriptFunction]:
    """The special methods of the script's objects that a statement runs: by `with`, a call, an operator, or by name."""
    items = [item.context_expr for item in getattr(statement.node, "items", ())]
    for node in (statement.node, *statement.nodes):
        of, names = None, tuple[str, ...]()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("__"):
            of, names = node.func.value, (node.func.attr,)
        elif isinstance(node, ast.Call):
            entered = [node.args[0]] if getattr(node.func, "attr", "") == "enter_context" and node.args else []
            of, names = (entered[0], ENTERS) if entered else (node.func, ("__call__",))
        elif isinstance(node, ast.expr) and any(node is item for item in items):
            of, names = node, ENTERS
        elif isinstance(node, (ast.BinOp, ast.AugAssign)):
            named = AUGMENTS.get(kind := type(node.op).__name__, kind.lower())
            names = (f"__i{named}__", f"__{named}__") if isinstance(node, ast.AugAssign) else (f"__{named}__",)
            of = node.target if isinstance(node, ast.AugAssign) else node.left
        made = flow.value(of) if isinstance(of, ast.expr) else None
        found = [made.of.find(name) for name in names] if isinstance(made, ScriptObject) else []
        yield from (one for one in found if isinstance(one, ScriptFunction))


UNARY = {"Not": ("__bool__", "__len__"), "USub": ("__neg__",), "UAdd": ("__pos__",), "Invert": ("__invert__",)}
BY_CONTEXT = {"Load": "get", "Store": "set", "Del": "del"}
ITERATES = ("__iter__", "__next__", "__getitem__")
BY_BUILTIN = dict.fromkeys(
    ("list", "tuple", "set", "sum", "sorted", "min", "max", "enumerate", "zip", "iter"), ITERATES
)


def run_by_syntax(flow: Flow, statement: Statement) -> Iterator[ScriptFunction]:
    """The special methods and properties of the script's objects that a statement runs by any other syntax than a call
    of the object, `with` or an operator between two: elements, loops, conditions, comparisons, attributes."""
    head = statement.node
    tested = [head.test] if isinstance(head, (ast.If, ast.While, ast.Assert)) else []
    each = [head.iter] if isinstance(head, (ast.For, ast.AsyncFor)) else []
    runs: list[tuple[ast.expr, tuple[str, ...]]] = [(one, UNARY["Not"]) for one in tested]
    runs += [(one, ITERATES) for one in each]
    targets = getattr(head, "targets", [getattr(head, "target", None)])
    for node in (*statement.nodes, *(part for one in filter(None, targets) for part in ast.walk(one))):
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            way = BY_CONTEXT[type(node.ctx).__name__]
            named = [node.attr, f"__{way}attribute__"] if isinstance(node, ast.Attribute) else []
            runs += [(node.value, (f"__{way}{'attr' if named else 'item'}__", *named))]
        elif isinstance(node, ast.comprehension):
            runs += [(node.iter, ITERATES), *((one, UNARY["Not"]) for one in node.ifs)]
        elif isinstance(node, (ast.IfExp, ast.BoolOp)):
            runs += [(one, UNARY["Not"]) for one in ([node.test] if isinstance(node, ast.IfExp) else node.values)]
        elif isinstance(node, ast.UnaryOp):
            runs += [(node.operand, UNARY[type(node.op).__name__])]
        elif isinstance(node, ast.BinOp):
            kind = type(node.op).__name__
            runs += [(node.right, (f"__r{AUGMENTS.get(kind, kind.lower())}__",))]
        elif isinstance(node, ast.Compare):
            sides = zip((node.left, *node.comparators), node.ops, node.comparators, strict=False)
            for left, op, right in sides:
                kind = {"NotEq": "ne", "LtE": "le", "GtE": "ge"}.get(type(op).__name__, type(op).__name__.lower())
                runs += [(right, ("__contains__",))] if kind in ("in", "notin") else [(left, (f"__{kind}__",))]
        elif isinstance(node, ast.FormattedValue):
            runs += [(node.value, ("__format__", "__str__"))]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id):
            names = BY_BUILTIN.get(node.func.id, (f"__{node.func.id}__",))
            runs += [(one, names) for one in node.args]
    for of, methods in runs:
        made = flow.value(of)
        found = [made.of.find(name) for name in methods] if isinstance(made, ScriptObject) else []
        yield from (one for one in found if isinstance(one, ScriptFunction) and _is_run(one))


def _is_run(method: ScriptFunction) -> bool:
    """Whether reading or writing an attribute of this name runs it: a special method, or one under `@property`."""
    marks = (ast.unparse(mark) for mark in getattr(method.node, "decorator_list", ()))
    special = getattr(method.node, "name", "").startswith("__")
    return special or any(mark.endswith(("property", ".setter", ".deleter")) for mark in marks)


def changes_outside(flow: Flow, call: ast.Call, live: set[int], read: set[int]) -> bool:
    """Whether a call writes to what it is given, or calls a function that changes a name of its file, or what this
    holds, by one of these statements; read: the functions that are read line by line, where that shows."""
    return bool(flow.writes(call)) or _changes_names(flow, call, live, read)


def _changes_names(flow: Flow, call: ast.Call, live: set[int], read: set[int]) -> bool:
    function = flow.function_of(call)
    if not isinstance(function, FUNCTIONS) or id(function) in read:
        return False
    own = [s for s in flow.inside_of.get(id(function), []) if s.function is function and id(s) in live]
    inner = (each for one in own for each in one.calls)
    read = read | {id(function)}
    return any(id(one) in flow.outer for one in own) or any(_changes_names(flow, one, live, read) for one in inner)


def adds_by_lambda(statement: Statement, roots: Container[int]) -> bool:
    """Whether a lambda does more than make what the draft has, or has defaults: `lambda a, b: w * cross_entropy(a, b)`;
    roots: what makes it, by its id."""
    for one in (node for node in statement.nodes if isinstance(node, ast.Lambda)):
        more = id(one.body) not in roots or one.args.defaults or one.args.kw_defaults
        if more and any(id(part) in roots for part in ast.walk(one.body)):
            return True
    return False


def changing(flow: Flow, call: ast.Call, changes: Callable[[Flow, Statement], bool]) -> Iterator[Statement]:
    """The statements of a function that change what this call gives it, of those that may change an object."""
    names = flow.written_by.get(id(flow.function_of(call)), ()) if flow.writes(call) else ()
    for one in flow.inside_of.get(id(flow.function_of(call)), []) if names else ():
        own = (node for node in one.nodes if getattr(node, "id", "") in names)
        if changes(flow, one) and any(_from_outside(flow, node, one) for node in own):
            yield one


def _from_outside(flow: Flow, node: ast.AST, of: Statement, depth: int = 0) -> bool:
    """Whether a name may be that of an object, or a part of one, which a statement's function did not make."""
    for one in flow.reads.get(id(node), ()) if depth < DEPTH else ():
        if one.way == GIVEN or one.statement.function is not of.function:
            return True
        taken = root(one.value) if one.value is not None and one.way in (IS, EACH) else None
        inside = taken.args if isinstance(taken, ast.Call) and one.way == EACH else filter(None, [taken])
        if any(_from_outside(flow, root(part), of, depth + 1) for part in inside):
            return True
    return False


def started_elsewhere(flow: Flow, used: set[str]) -> set[str]:
    """The functions that call these, with their files, where nothing at the top of a file starts them: another file
    does."""
    functions = {f"{s.source.shown}:{s.node.name}": s.node for s in flow.statements if isinstance(s.node, FUNCTIONS)}
    places = {id(node): place for place, node in functions.items()}
    top = [s for s in flow.statements if s.function is None and not isinstance(s.node, (*FUNCTIONS, ast.ClassDef))]
    named = {getattr(node, "attr", getattr(node, "id", "")) for one in top for node in one.nodes}
    found = set[str]()
    for start in (functions[place] for place in used if place in functions):
        waiting, seen = [start], dict[str, None]()
        while waiting:
            function = waiting.pop()
            seen[places.get(id(function), "")] = None
            callers = [one.function for one, *_ in flow.calls.get(id(function), [])]
            more = (functions[places[id(one)]] for one in callers if id(one) in places)
            waiting += [one for one in more if places[id(one)] not in seen]
            if None in callers or getattr(function, "name", "") in named:
                seen.clear()
                break
        found |= seen.keys()
    return found - {""}


def overridden(flow: Flow) -> set[int]:
    """The methods (their ids) of base classes that every object that was seen has otherwise, and no `super()` calls.

    A class that a statement names may have objects that were not seen, and its methods may be called by its name.
    """
    heads = [one for one in flow.statements if not isinstance(one.node, ast.ClassDef)]
    nodes = [node for one in heads for node in one.nodes if isinstance(node, (ast.Name, ast.Attribute))]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    above = {node.attr for node in attributes if isinstance(node.value, ast.Call) and _is_super(node.value)}
    named = {id(of.node) for node in nodes if isinstance(of := flow.value(node), ScriptClass)}
    classes = {id(made.of.node): made.of for made in flow.interpreter.made}.values()
    used: set[int] = set()
    bases: dict[int, str] = {}
    for of in classes:
        for base in (one for one in of.lineage() if isinstance(one, ScriptClass)):
            for name, found in base.scope.names.items():
                if isinstance(found, ScriptFunction) and not isinstance(found.node, ast.Lambda):
                    bases[id(found.node)] = name
                    used |= {id(found.node)} if of.find(name) is found or id(base.node) in named else set()
    return {function for function, name in bases.items() if function not in used and name not in above}


def _is_super(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "super"
