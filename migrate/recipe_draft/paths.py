"""The ways that calls take through a script, with what parameters and the variables of loops are on each of them: by
which of them a function that trains otherwise runs the model in training mode, and no backward pass follows; what a
line says of the calls of its function; what an expression chooses from, and a method changes of its object."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ...printable import shortened
from ..library_names import is_class
from ..read_script.abstract_values import (
    Constant,
    DictValue,
    LibraryName,
    LibraryObject,
    ListValue,
    ScriptClass,
    ScriptFunction,
    ScriptObject,
    Value,
    is_known,
    known,
)
from ..read_script.expressions import compare, truth, unary
from ..read_script.interpreter import CERTAINTIES, LONGEST, OPTION, PERHAPS, UNCALLED, joined
from ..read_script.syntax import defaults_of, given_to, root
from .data_flow import ADDS, EACH, FUNCTIONS, GIVEN, INNER, IS, LOOPS, Flow, Statement
from .passed_over import CHANGERS
from .recipe_entries import LONGEST_WORD
from .relevance import of_one_class
from .trained_model import DEPTH, MODES, Event, events, is_object, part_of, passes, shared_loops

Bound = dict[str, Value]  # by the name of a parameter or of a loop's variable
MOST_PATHS, MOST_ROUNDS = 200, 8
GRADIENTS = "torch.is_grad_enabled()"
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, eq=False)
class Path:
    """One way to a statement: the calls that lead to it, and what is known at each."""

    event: Event
    bound: list[Bound]


def without_a_pass(
    flow: Flow, is_model: Callable[[ast.expr], Any], reaches: Callable[[Statement], bool]
) -> dict[int, Statement]:
    """The calls, and the heads of loops, by which a statement that a backward pass follows otherwise runs the model in
    training mode and none follows: `run(valid, train=False)` without `eval()`; by their ids.

    is_model: whether an expression is one of models. reaches: whether a statement is part of the training.
    """
    backward, found = passes(flow), dict[int, Statement]()
    for of in flow.statements:
        called = [call.func for call in of.calls if is_model(call.func) and is_object(flow, call.func)]
        if not called or not reaches(of):
            continue
        each = ((one, bound) for one in events(flow, of, "run") for bound in _bound(flow, one.calls, {}))
        ways = [Path(*one) for one in islice(each, MOST_PATHS)]
        ways = [way for way in ways if all(_runs(flow, *one) for one in zip(way.event.calls, way.bound, strict=True))]
        trained = [way for way in ways if any(_follows(flow, way, one) for one in backward)]
        for way in ways if trained else ():
            later = any(one.at > way.event.at or any(shared_loops(way.event, one)) for one in backward)
            if way not in trained and later and _in_training(flow, way, is_model):
                at = _first_that_differs(way, trained)
                found[id(at)] = at
    return found


def _bound(flow: Flow, calls: tuple[Statement, ...], before: Bound) -> Iterator[list[Bound]]:
    """What is known at each of these calls, each in the function that the one before calls; once for every round of a
    loop over a known list."""
    for own in _rounds(flow, [one.node for one in calls[0].around if isinstance(one.node, ast.For)], before):
        if len(calls) == 1:
            yield [own]
        function = calls[1].function if len(calls) > 1 else None
        for call in (call for by, call, _ in flow.calls.get(id(function), ()) if by is calls[0] and function):
            called = flow.value(call.func)
            if not isinstance(called, ScriptFunction) or called.node is not function:
                yield from ([own, *more] for more in _bound(flow, calls[1:], {}))
                continue
            given = {one.arg: _value(flow, node, {}) for one, node in defaults_of(called.node)}
            given |= {name: _value(flow, node, own) for name, node in given_to(call, called)}
            unpacks = any(isinstance(one, ast.Starred) for one in call.args) or any(not k.arg for k in call.keywords)
            given = dict.fromkeys(given, Value()) if unpacks else given
            off = any(_switches_off(one) for one in calls[0].around)
            given[GRADIENTS] = Constant(False) if off else own.get(GRADIENTS, Constant(True))
            yield from ([own, *more] for more in _bound(flow, calls[1:], given))


def _rounds(flow: Flow, loops: list[ast.For], before: Bound) -> Iterator[Bound]:
    """What is known, with the variables of these loops."""
    counts = bool(loops) and getattr(getattr(loops[0].iter, "func", None), "id", "") == "range"
    rounds = flow.value(loops[0].iter) if loops and not counts else None
    if not loops:
        yield before
    elif isinstance(rounds, ListValue) and rounds.closed and 0 < len(rounds.items) <= MOST_ROUNDS:
        target = loops[0].target
        for item in rounds.items:
            pairs = [(target, item)]
            if isinstance(target, (ast.Tuple, ast.List)) and isinstance(item, ListValue):
                pairs = list(zip(target.elts, item.items, strict=False))
            named = {one.id: value for one, value in pairs if isinstance(one, ast.Name)}
            yield from _rounds(flow, loops[1:], {**before, **named})
    else:
        yield from _rounds(flow, loops[1:], before)


def _switches_off(head: Statement) -> bool:
    """Whether this is `with torch.no_grad():`."""
    items = [ast.unparse(one.context_expr) for one in getattr(head.node, "items", ())]
    return any("no_grad" in one or "inference_mode" in one for one in items)


def _value(flow: Flow, node: ast.expr, bound: Bound) -> Value:
    """The value of an expression, where this is known."""
    match node:
        case ast.Name(name) if name in bound:
            ways = (GIVEN, EACH) if isinstance(bound[name], (ListValue, DictValue)) else (GIVEN, EACH, ADDS)
            if all(one.way in ways for one in flow.reads.get(id(node), ())):
                return bound[name]
        case ast.UnaryOp(ast.Not(), of):
            return unary(ast.Not(), _value(flow, of, bound))
        case ast.Compare(left, [op], [right]):
            return compare(op, _value(flow, left, bound), _value(flow, right, bound))
        case ast.BoolOp(op, parts):
            each, wanted = [truth(_value(flow, one, bound)) for one in parts], isinstance(op, ast.Or)
            return Constant(wanted) if wanted in each else Value() if None in each else Constant(not wanted)
        case ast.Call(ast.Name("bool"), [of], []):
            return _value(flow, of, bound)
        case ast.Call() if ast.unparse(node) == GRADIENTS:
            return bound.get(GRADIENTS, Value())
    return Value() if id(node) in flow.interpreter.varied else flow.value(node) or Value()


def _runs(flow: Flow, statement: Statement, bound: Bound) -> bool:
    """Whether a statement may run where this is known: no condition around it is false, and nothing before leaves."""
    if CERTAINTIES[flow.interpreter.reached.get(id(statement.node), (0, ()))[0]] == OPTION:
        return False
    if not all(_holds(flow, head, statement, bound) is not False for head in statement.around):
        return False
    for one in flow.inside_of.get(id(statement.function), ()) if statement.function is not None else ():
        inner = [head for head in one.around if head not in statement.around]
        before = isinstance(one.node, LEAVES) and one.node.lineno < statement.node.lineno
        if before and all(isinstance(h.node, ast.If) and _holds(flow, h, one, bound) for h in inner):
            return False
    return True


def _holds(flow: Flow, head: Statement, statement: Statement, bound: Bound) -> bool | None:
    """Whether the condition of an `if` has the statement in it run; True for any other head."""
    if not isinstance(head.node, ast.If):
        return True
    found = truth(_value(flow, head.expressions[0], bound))
    return None if found is None else found is (part_of(head, statement) == "body")


def _follows(flow: Flow, way: Path, backward: Event) -> bool:
    """Whether a backward pass follows on a way: in the same loop of one of its functions, or in one that is called."""
    for level, (mine, own) in enumerate(zip(way.event.calls, way.bound, strict=True)):
        other = backward.calls[level] if level < len(backward.calls) else None
        if other is None or other.function is not mine.function:
            return False
        if other is not mine:
            loops, others = ([head for head in one.around if isinstance(head.node, LOOPS)] for one in (mine, other))
            near = loops[-1:] == others[-1:] or others[-1:] == [one for one in loops if one in others[-1:]]
            near = near or loops[-1:] == [one for one in others if one in loops[-1:]]
            called = [one[level + 1].function for one in (way.event.calls, backward.calls) if len(one) > level + 1]
            another = len(called) == 2 and called[0] is called[1]  # call of the same function, which has its own
            return near and not another and _runs(flow, other, own)
    return True


def _in_training(flow: Flow, way: Path, is_model: Callable[[ast.expr], Any]) -> bool:
    """Whether the last switch before, on a way, is none to evaluation."""
    last: tuple[tuple[int, int], ...] = ()
    trains = True
    calls = ((of, call, call.func) for of in flow.statements for call in of.calls)
    for of, call, func in calls:
        if not isinstance(func, ast.Attribute) or func.attr not in MODES or not is_model(func.value):
            continue
        for event in events(flow, of, "switch"):
            both = zip(event.calls, way.event.calls, strict=False)
            level = next((at for at, (one, mine) in enumerate(both) if one is not mine), len(way.bound) - 1)
            bound = way.bound[level]
            own = bound if event.calls[level] is of else {}
            chosen = [_chosen(flow, choice, call, own) for choice in of.nodes if isinstance(choice, ast.IfExp)]
            if last < event.at < way.event.at and _runs(flow, event.calls[level], bound) and False not in chosen:
                given = [*call.args[:1], *(k.value for k in call.keywords)]
                sure = all(truth(_value(flow, one, own)) is True for one in given)
                last, trains = event.at, func.attr == "train" and sure
    return trains


def _chosen(flow: Flow, choice: ast.IfExp, call: ast.Call, bound: Bound) -> bool | None:
    """Whether `a if test else b` makes a call that is in one of the two."""
    found = truth(_value(flow, choice.test, bound))
    sides = [any(one is call for one in ast.walk(side)) for side in (choice.body, choice.orelse)]
    return True if not any(sides) else None if found is None else found is sides[0]


def _first_that_differs(way: Path, others: list[Path]) -> Statement:
    """The call that leads another way than the nearest of these; the loop, where only its round is another."""
    calls = way.event.calls
    shared = [sum(1 for one in _same(calls, other.event.calls)) for other in others]
    most = max(shared)
    if most < len(calls):
        return calls[most]
    other = others[shared.index(most)]
    for at, one in enumerate(calls):
        for head in one.around:
            parts = ast.walk(head.node.target) if isinstance(head.node, ast.For) else ()
            names = {part.id for part in parts if isinstance(part, ast.Name)}
            if any(way.bound[at].get(name) is not other.bound[at].get(name) for name in names):
                return head
    return calls[-1]


def _same(calls: tuple[Statement, ...], others: tuple[Statement, ...]) -> Iterator[Statement]:
    for one, other in zip(calls, others, strict=False):
        if one is not other:
            return
        yield one


# what a line says of the calls of its function


def called_where(
    statement: Statement,
    flow: Flow,
    runs: Callable[[Statement], bool],
    undecided: Callable[[Statement], list[str]],
    steps: set[int],
) -> str:
    """The places that call a statement's function where they are several and one has a condition, or that call it in
    every round of a loop with a step in it, while the function has none; else "".

    runs: whether a statement runs with the defaults. undecided: gives the undecided conditions of a statement. steps:
    the loops and functions (their ids) that hold a step.
    """
    function, seen = statement.function, set[int]()
    while function is not None and id(function) not in seen:
        seen.add(id(function))
        callers = list({id(one): one for one, _, _ in flow.calls.get(id(function), []) if runs(one)}.values())
        callers = [one for one in callers if one.function is not function]
        if len(callers) > 1:
            conditions = [undecided(one) for one in callers]
            where = [f" only where {joined(found)}" if found else "" for found in conditions]
            places = [":".join(map(str, one.place)) + of for one, of in zip(callers, where, strict=True)]
            return f"called at {', and at '.join(places)}" if any(conditions) else ""
        for caller in callers:
            rounds = [one for one in caller.around if isinstance(one.node, LOOPS) and id(one) in steps]
            if rounds and id(function) not in steps:
                each = " ".join(rounds[-1].text.rstrip(":").split())
                return f"called at {':'.join(map(str, caller.place))} in every round of {shortened(each, LONGEST)}"
        function = callers[0].function if callers else None
    return ""


def by_callers(statement: Statement, flow: Flow, runs: Callable[[Statement], bool]) -> list[str]:
    """The conditions around a statement that hold where one place calls its function, and not where another does; and
    those under which no `return` before it has left its function."""
    function = statement.function
    callers = [call for one, call, _ in flow.calls.get(id(function), []) if runs(one)]
    found: list[str] = []
    for head in (one for one in statement.around if isinstance(one.node, ast.If)) if len(callers) > 1 else ():
        test = head.expressions[0]
        names = [part for one in flow.behind(test) for part in ast.walk(one) if isinstance(part, ast.Name)]
        given = {d for name in names for d in flow.reads.get(id(name), ()) if d.statement.node is function}
        if any(len({_handed(flow, function, call, d.parameter) for call in callers}) > 1 for d in given if d.parameter):
            text = shortened(head.source.text(test), LONGEST)
            otherwise = getattr(head.node, "orelse", [])
            other = any(node is statement.node for part in otherwise for node in ast.walk(part))
            found.append(f"not ({text})" if other else text)
    return [*found, *_after_returns(statement, flow, runs)]


def _after_returns(statement: Statement, flow: Flow, runs: Callable[[Statement], bool]) -> list[str]:
    """The conditions under which no `return` before a statement has left its function: `not (done(epoch))`."""
    found: list[str] = []
    leaves = isinstance(statement.node, (ast.Return, ast.Break, ast.Continue))  # it has a condition of its own
    function = statement.function if isinstance(statement.function, FUNCTIONS) and not leaves else None
    blocks = [head.node for head in statement.around]
    for one in flow.inside_of.get(id(function), []) if function is not None else ():
        if not isinstance(one.node, ast.Return) or one.node.lineno >= statement.node.lineno or not runs(one):
            continue
        rank, _ = flow.interpreter.reached.get(id(one.node), (0, ()))
        inner = [head for head in one.around if head.node not in blocks]
        excluded = _in_other_branch(one, statement)
        if CERTAINTIES[rank] not in (PERHAPS, UNCALLED) or excluded or any(isinstance(i.node, ast.Try) for i in inner):
            continue
        tests = [_test_of(head, one) for head in inner if isinstance(head.node, ast.If)]
        rounds = [" ".join(head.text.rstrip(":").split()) for head in inner if isinstance(head.node, LOOPS)]
        bare = tests[0].removeprefix("not (").removesuffix(")") if len(tests) == 1 else ""
        text = bare if tests == [f"not ({bare})"] else f"not ({joined(tests)})"
        text += f" in every round ({', '.join(rounds)})" * bool(rounds)
        found += [shortened(text, LONGEST)] if tests and text not in found else []
    return found


def _test_of(head: Statement, of: Statement) -> str:
    """The condition of an `if` under which a statement in it runs."""
    test = head.expressions[0]
    text = head.source.text(test)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        text = f"not ({head.source.text(test.operand)})"
    other = any(node is of.node for part in getattr(head.node, "orelse", []) for node in ast.walk(part))
    return f"not ({text})" if other else text


def _in_other_branch(one: Statement, other: Statement) -> bool:
    """Whether an `if` around both has them in different branches."""
    shared = [head for head in one.around if head in other.around and isinstance(head.node, ast.If)]
    return any(_test_of(head, one) != _test_of(head, other) for head in shared)


def _handed(flow: Flow, function: ast.AST | None, call: ast.Call, parameter: ast.arg) -> str:
    """What a call gives for a function's parameter, as text: its value where that is known; "" where it is the default,
    or where what is unpacked may hold it."""
    start = function if isinstance(function, FUNCTIONS) else None
    plain = [*start.args.posonlyargs, *start.args.args] if start is not None else []
    plain = plain[1:] if plain and plain[0].arg in ("self", "cls") else plain
    defaults = dict(zip(plain[::-1], start.args.defaults[::-1], strict=False)) if start is not None else {}
    named = next((k.value for k in call.keywords if k.arg == parameter.arg), None)
    at = plain.index(parameter) if parameter in plain else len(call.args)
    given = named or (call.args[at] if at < len(call.args) else defaults.get(parameter))
    unpacks = any(isinstance(one, ast.Starred) for one in call.args) or None in [k.arg for k in call.keywords]
    if given is None or unpacks:
        return ""
    value = None if id(given) in flow.interpreter.varied else flow.value(given)
    return repr(known(value, ast.unparse(given))) if is_known(value) else ast.unparse(given)


def handed_values(statement: Statement, flow: Flow, runs: Callable[[Statement], bool]) -> str:
    """The values of a statement's parameters, and of its object's attributes that are parameters, where the calls of
    their function differ: `ratio is 0.3 or 0.7`."""
    found: dict[str, list[str]] = {}
    for node in statement.nodes:
        if isinstance(node, (ast.Name, ast.Attribute)) and id(node) in flow.interpreter.varied:
            texts = [shortened(one, LONGEST_WORD) for one in dict.fromkeys(_given_values(flow, node, runs))]
            if all(texts) and texts not in ([], [ast.unparse(node)]):
                found[ast.unparse(node)] = texts if len(texts) <= MOST_VALUES else [*texts[:MOST_VALUES], "others"]
    return ", ".join(f"{name} is {' or '.join(texts)}" for name, texts in found.items())


MOST_VALUES = 8  # of one parameter that are said


def _given_values(flow: Flow, node: ast.expr, runs: Callable[[Statement], bool], depth: int = 0) -> Iterator[str]:
    """What a name or an attribute of `self` is in the calls of the function whose parameter it is, as text; an empty
    one where it may be something else."""
    own = flow.of.get(id(node))
    ways = [one for one in flow.written(node) if isinstance(node, ast.Name) or of_one_class(flow, one, own, node)]
    mine = isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self")
    for one in ways if mine and depth < 3 else ():
        if one.way == GIVEN and one.parameter is not None:
            callers = [call for of, call, _ in flow.calls.get(id(one.statement.node), []) if runs(of)]
            yield from (_handed(flow, one.statement.node, call, one.parameter) for call in callers)
        elif one.way == IS and isinstance(one.value, (ast.Name, ast.Attribute)) and not one.path:
            yield from _given_values(flow, one.value, runs, depth + 1)
        elif not isinstance(flow.value(node), Constant) or one.way != ADDS or one.statement.alone is None:
            yield ""  # no call changes a number


# choices


def chooses(flow: Flow, statement: Statement, role: Callable[[ast.expr], str | None]) -> bool:
    """Whether a statement takes one of several objects, and reading does not decide which: `A() if wide else B()`.

    role: what an expression is in a recipe's step; what is the same on each side is no choice.
    """
    if isinstance(statement.node, (ast.If, ast.While, ast.Assert)):
        return False
    tests = [node.test for node in statement.nodes if isinstance(node, ast.IfExp)]
    tests += [test for node in statement.nodes for test in getattr(node, "ifs", ())]
    within = {id(part) for test in tests for part in ast.walk(test)}
    for sides in (_sides(flow, node) for node in statement.nodes if id(node) not in within):
        roles = {role(side) for side in sides}
        if any(_gives_object(flow, side) for side in sides) and (None in roles or len(roles) > 1):
            return True
    return False


def _sides(flow: Flow, node: ast.AST) -> list[ast.expr]:
    """What an expression chooses from, if reading does not decide which it is."""

    def open_(test: ast.expr) -> bool:
        return id(test) in flow.interpreter.varied or truth(flow.value(test) or Value()) is None

    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse] if open_(node.test) else []
    if isinstance(node, ast.BoolOp):
        return [*node.values] if open_(node.values[0]) else []
    if isinstance(node, ast.Subscript):
        known_ = isinstance(node.slice, (ast.Constant, ast.Slice)) or is_known(flow.value(node.slice))
        return [node.value] if isinstance(node.value, (ast.Dict, ast.List, ast.Tuple)) and not known_ else []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Dict):
        return [node.func.value]
    return [*node.args] if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("max", "min", "next") else []


def _gives_object(flow: Flow, node: ast.AST | None) -> bool:
    """Whether an expression is a class, an object of one of the kinds that training is made of, or what this gives."""
    value = flow.value(node) if isinstance(node, ast.expr) else None
    named = isinstance(value, (LibraryName, LibraryObject)) and is_class(value.name)
    named = named or (isinstance(value, LibraryObject) and bool(value.family))
    if named or isinstance(value, (ScriptObject, ScriptClass)):
        return True
    if isinstance(node, (ast.List, ast.Tuple, ast.Dict)):
        return any(_gives_object(flow, one) for one in (node.values if isinstance(node, ast.Dict) else node.elts))
    if isinstance(node, ast.Attribute):
        return node.attr not in NO_OBJECTS and _gives_object(flow, node.value)
    if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        return _gives_object(flow, node.generators[0].iter)
    inner = node.func if isinstance(node, ast.Call) else getattr(node, "value", getattr(node, "body", None))
    return isinstance(inner, ast.expr) and _gives_object(flow, inner)


NO_OBJECTS = ("shape", "device", "dtype", "size", "item", "tolist", "numpy", "numel", "dim", "__name__", "training")


# what a method changes of its object


def changes_itself(flow: Flow, method: ast.AST, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a method may change the object or the class that it is called for, or what this holds, by itself or by
    another method: `self.rows[0]["label"] = 1`, `for row in self.rows: row.update(label=1)`."""
    inside = flow.inside_of.get(id(method), []) if id(method) not in seen else []
    for one in (one for one in inside if one.function is method):
        own = [node for node in one.nodes if isinstance(node, ast.Attribute) and _is_own(root(node), one)]
        if any(d.statement is one for node in own for d in flow.attributes.get(node.attr, ())):
            return True
        if any(_of_own(flow, node, one) for node in _changed(flow, one)):
            return True
        for call in one.calls:
            given = any(_is_own(part, one) for part in call.args)
            if given and getattr(call.func, "id", "") in ("setattr", "delattr"):
                return True
            inner = flow.function_of(call) if given or _is_own(root(call.func), one) else None
            if isinstance(inner, FUNCTIONS) and changes_itself(flow, inner, seen | {id(method)}):
                return True
    return False


def _changed(flow: Flow, one: Statement) -> Iterator[ast.expr]:
    """The expressions whose objects a statement changes: of which it sets or deletes a part, or calls a method that
    changes it."""
    targets = getattr(one.node, "targets", [getattr(one.node, "target", None)])
    for target in (part for each in targets for part in getattr(each, "elts", [each])):
        loops = isinstance(one.node, (ast.For, ast.AsyncFor))
        yield from [target.value] if isinstance(target, (ast.Attribute, ast.Subscript)) and not loops else []
    for call in one.calls:
        method, of = getattr(call.func, "attr", ""), getattr(call.func, "value", None)
        writes = method in CHANGERS or (method.endswith("_") and not method.endswith("__"))
        yield from [of] if writes and isinstance(of, ast.expr) else []
        yield from flow.writes(call)


def sets_group(flow: Flow, call: ast.Call) -> bool:
    """Whether a call is a method that changes a parameter group of an optimizer: `group.update(lr=rate)`."""
    of, seen = getattr(call.func, "value", None), set[int]()
    waiting = [of] if getattr(call.func, "attr", "") in CHANGERS else []
    while waiting:
        one = waiting.pop()
        while isinstance(one, ast.Subscript):
            one = one.value
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if getattr(one, "attr", "") == "param_groups":
            return True
        found = flow.reads.get(id(one), ()) if isinstance(one, ast.Name) else ()
        waiting += [d.value for d in found if d.way in (IS, EACH, INNER)]
    return False


PARTS_OF = ("items", "values", "get", "setdefault", "iterrows", "reshape", "view", "unsqueeze", "squeeze")
HANDED_ON = ("enumerate", "zip", "reversed", "iter", "from_numpy", "asarray", "as_tensor")


def _of_own(flow: Flow, node: ast.expr | None, of: Statement, depth: int = 0) -> bool:
    """Whether an expression is a part of the object of the method that a statement is in, also by another name."""
    while isinstance(node, (ast.Attribute, ast.Subscript)) or (
        isinstance(node, ast.Call) and getattr(node.func, "attr", "") in PARTS_OF
    ):
        node = node.func.value if isinstance(node, ast.Call) else node.value  # type: ignore[attr-defined]
    if node is None or depth > DEPTH:
        return False
    if isinstance(node, ast.Call):
        hands = getattr(node.func, "attr", getattr(node.func, "id", "")) in HANDED_ON
        return hands and any(_of_own(flow, one, of, depth + 1) for one in node.args)
    found = flow.reads.get(id(node), ()) if isinstance(node, ast.Name) else ()
    held = [d.value for d in found if d.way in (IS, EACH, INNER) and d.statement.function is of.function]
    held = [arg for one in held for arg in (one.args if isinstance(one, ast.Call) and _maps(one) else [one])]
    return _is_own(node, of) or any(_of_own(flow, one, of, depth + 1) for one in held)


def _maps(call: ast.Call) -> bool:
    """Whether this is `map(…)`, whose function gets the elements of its other arguments."""
    return getattr(call.func, "id", "") in ("map", "filter")


def _is_own(node: ast.AST, of: Statement) -> bool:
    """Whether this is the object of the method that a statement is in, or its class."""
    above = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "super"
    return above or getattr(node, "id", "") in ("self", "cls", getattr(of.owner, "name", "self"))
