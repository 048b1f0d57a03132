"""The ways that calls take through a script, with what parameters and the variables of loops are on each of them: by
which of them a function that trains otherwise runs the model in training mode, and no backward pass follows."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..read_script.abstract_values import Constant, DictValue, ListValue, ScriptFunction, Value
from ..read_script.expressions import compare, truth, unary
from ..read_script.interpreter import CERTAINTIES, OPTION
from ..read_script.syntax import defaults_of, given_to
from .data_flow import ADDS, EACH, GIVEN, LOOPS, Flow, Statement
from .trained_model import MODES, Event, events, is_object, part_of, passes, shared_loops

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
