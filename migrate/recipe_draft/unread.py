"""What could not be read: settings of calls, the line that makes a model, an optimizer or a loss, library options."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...printable import shortened
from ..source.infer.abstract_values import (
    Constant,
    LibraryObject,
    LibraryUse,
    ScriptClass,
    ScriptObject,
    Value,
    is_known,
    known,
)
from ..source.infer.interpreter import CERTAINTIES, LONGEST, OPTION, PERHAPS, joined
from ..source.library_names import MODULE, OPTIMIZER
from .entries import ASK, LONGEST_WORD, Comment, Entry, partly_unread, shown
from .flow import ADDS, FUNCTIONS, GIVEN, IS, Definition, Flow, Statement
from .roles import LOSS, Roles
from .silence import PLAIN_BASES
from .step_order import part_of


def named(flow: Flow) -> list[Statement]:
    """The statements without those of functions that nothing names."""
    return [one for one in flow.statements if id(one.node) not in flow.interpreter.unnamed]


def _makers(flow: Flow) -> Iterator[tuple[Statement, ast.Call]]:
    """The calls that get parameters, and make an optimizer of torch, or something whose `step()` is called."""
    calls = [call for s in named(flow) for call in s.calls]
    steps = (call.func.value for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "step")
    unread = [one for start in steps for one in flow.behind(start) if isinstance(one, ast.Call)]
    known = (call for call in calls if getattr(made := flow.value(call), "family", "") == OPTIMIZER and _is_read(made))
    for one in {id(call): call for call in (*unread, *known)}.values():
        statement = flow.of.get(id(one))
        if statement is not None and statement.alone is None and list(_given(one)):
            yield statement, one


def _stepped(flow: Flow) -> Iterator[str]:
    """The source of the objects whose `step()` is called, without those named as schedules and scalers."""
    for call in (call for s in named(flow) for call in s.calls if getattr(call.func, "attr", "") == "step"):
        words = ast.unparse(call.func.value)  # type: ignore[attr-defined]
        if not re.search("sched|scale", words, re.IGNORECASE):
            yield words


def _given(call: ast.Call) -> Iterator[ast.expr]:
    """The models whose parameters a call gets."""
    for part in (part for given in (*call.args, *call.keywords) for part in ast.walk(given)):
        if isinstance(part, ast.Attribute) and "parameters" in part.attr:
            yield part.value


def unread_optimizer(flow: Flow) -> str:
    """Words where no optimizer of torch was found: the line that makes another one."""
    unread = (statement for statement, call in _makers(flow) if not _is_read(flow.value(call)))
    return next((_words(statement, "what this makes was not read") for statement in unread), "no optimizer was found")


def unread_model(flow: Flow) -> str:
    """Words for a trained model that could not be read: the line that makes the model of the optimizer."""
    makers = {id(call): call for _, call in _makers(flow)}
    alone = len(makers) == 1 and len(set(_stepped(flow))) <= 1  # with several optimizers there is no single model
    owners = (owner for call in makers.values() for owner in _given(call) if alone)
    for one in (one for owner in owners for one in flow.behind(owner)):
        statement, value = flow.of.get(id(one)), flow.value(one)
        read = isinstance(value, ScriptObject) or getattr(value, "family", "") == MODULE
        if isinstance(one, ast.Call) and not read and statement is not None and statement.alone is None:
            return _words(statement, "what this makes was not read")
    return "which model is trained was not found"


def unread_loss(flow: Flow) -> str:
    """Words where the backward pass does not start from a loss of torch: the line that makes its start."""
    backward = [(s, call) for s in named(flow) for call in s.calls if getattr(call.func, "attr", "") == "backward"]
    if not backward:
        return "no call of backward() was found in the files that were read"
    reached, never = flow.interpreter.reached, (len(CERTAINTIES), ())
    backward.sort(key=lambda found: reached.get(id(found[0].node), never)[0])  # the surest first
    for statement, call in backward:
        start = call.func.value  # type: ignore[attr-defined]
        if isinstance(start, ast.Call) and getattr(start.func, "attr", "") == "scale" and start.args:
            start = start.args[0]  # a scaler's loss
        elif call.args and (isinstance(flow.value(start), ScriptObject) or re.search(TAKES_LOSS, ast.unparse(start))):
            start = call.args[0]
        for one in flow.behind(start):
            made = flow.of.get(id(one))
            inside = made is not None and made is not statement and made.alone is None
            if made is not None and inside and not isinstance(one, ast.Constant):
                return _words(made, "the backward pass starts from this, and its loss was not read")
    return "which loss the backward pass starts from was not found"


# a loss of several terms, or of several branches


def _starts(flow: Flow) -> Iterator[ast.expr]:
    """The expressions that backward passes start from, and their arguments."""
    for call in (call for s in named(flow) for call in s.calls):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            yield from (call.func.value, *call.args)


def starts_backward(roles: Roles) -> bool:
    """Whether a backward pass starts from a loss."""
    return any(roles.role(node) == LOSS for node in _starts(roles.flow))


def added_to_the_loss(roles: Roles) -> list[Statement]:
    """The statements that add something else to the loss of a backward pass, in the order of the script."""
    flow = roles.flow
    behind = [node for start in _starts(flow) for node in flow.behind(start, lambda one: roles.role(one) == LOSS)]
    names = (part for node in behind for part in ast.walk(node) if isinstance(part, ast.Name))
    found = {d.statement for name in names if roles.role(name) == LOSS for d in flow.reads.get(id(name), ())}
    found |= {flow.of[id(node)] for node in behind if id(node) in flow.of}
    return sorted((one for one in found if _adds(roles, one)), key=lambda statement: statement.place)


def _adds(roles: Roles, statement: Statement) -> bool:
    node = statement.node
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, (ast.Add, ast.Sub)) and roles.role(node.target) == LOSS
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)) else None
    sums = [terms(part) for part in ast.walk(value) if isinstance(part, ast.expr)] if value is not None else []
    return any({LOSS, None} <= {LOSS if roles.role(one) == LOSS else None for one in several} for several in sums)


def terms(node: ast.expr) -> list[ast.expr]:
    """The terms of a sum or difference, also of its mean; for anything else the expression itself."""
    inside = node.func if isinstance(node, ast.Call) else None
    if isinstance(inside, ast.Attribute) and inside.attr in ("mean", "sum") and len(terms(inside.value)) > 1:
        return terms(inside.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return [*terms(node.left), *terms(node.right)]
    return [node]


def instead_of(seen: LibraryUse, flow: Flow) -> Iterator[str]:
    """Words for what stands in place of a call that a condition chooses: for the same name, or result, elsewhere."""
    own = flow.of.get(id(seen.node))
    if own is None or seen.certainty != PERHAPS:
        return
    for other in (s for s in flow.statements if s.function is own.function and s.source is own.source and s is not own):
        rank, conditions = flow.interpreter.reached.get(id(other.node), (0, ()))
        if CERTAINTIES[rank] != OPTION and _replaces(other, own):
            where = f", where {joined(conditions)}" if conditions else ""
            yield f"{Comment(other.place, shown(other.text))}{where}: in its place"


def _replaces(one: Statement, other: Statement) -> bool:
    """Whether of two statements of a function one or the other gives a name its value, or the function its result."""
    if isinstance(one.node, ast.Return):
        return isinstance(other.node, ast.Return)
    written = [{ast.unparse(target) for target in getattr(each.node, "targets", [])} for each in (one, other)]
    if not written[0] & written[1] or isinstance(getattr(one.node, "value", None), ast.Constant):
        return False
    before = one.place < other.place and one.around == other.around[: len(one.around)]
    return before or any(part_of(head, one) != part_of(head, other) for head in one.around if head in other.around)


TAKES_LOSS = r"(?i)accelerator|fabric|engine|scaler"  # whose backward() takes the loss


def read_by_libraries(flow: Flow) -> dict[int, str]:
    """Statement (its id) -> words, for the options in a data class that derives from a library's class: the library may
    read them, also where the script does not."""
    found: dict[int, str] = {}
    for statement in (s for s in flow.statements if s.owner is not None and s.function is None):
        node, owner = statement.node, statement.owner
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if value is None or owner is None or not any("dataclass" in ast.unparse(one) for one in owner.decorator_list):
            continue
        defaults = [k.value for k in value.keywords if k.arg == "default"] if isinstance(value, ast.Call) else [value]
        of = flow.class_of(owner)
        base = (of.library_base() if of is not None else None) or "object"
        if base.startswith(PLAIN_BASES) or any(isinstance(one, ast.Constant) and one.value is None for one in defaults):
            continue
        found[id(statement)] = f"{base} reads it"
    return found


def _is_read(made: Value | None) -> bool:
    """Whether the class of an object is known."""
    return isinstance(made, ScriptObject) or (isinstance(made, LibraryObject) and made.seen is not None)


def _words(statement: Statement, why: str) -> str:
    """The place, text and a reason, not as a Comment: the line is listed too, and does not count as drafted."""
    return str(Comment(statement.place, f"{shown(statement.text)}: {why}"))


def say_values(sections: Iterable[Entry], flow: Flow, values: Callable[[Statement], str], listed: set[int]) -> None:
    """Add to the lines that are named where a draft asks for something what their names are, as in a listed line.

    values: gives them in words. listed: statements (their ids) that say it themselves.
    """
    waiting, known = list(sections), dict[int, str]()
    while waiting:
        entry = waiting.pop(0)
        waiting += entry.below or []
        for index, comment in enumerate(entry.comments if entry.asks and not entry.out else []):
            at = {comment.at} if isinstance(comment, Comment) else set()
            for statement in (s for s in flow.statements if s.stands_at(at) and id(s) not in listed | known.keys()):
                said = known[id(statement)] = values(statement)
                if said and isinstance(comment, Comment):
                    entry.comments[index] = Comment(comment.at, f"{comment.about} [{said}]".lstrip())


def setting(seen: LibraryUse, name: str, position: int | None = None) -> Any:
    """The value of a call's argument: None where there is none, ??? where it could not be read."""
    value = seen.get(name, position)
    if value is None:
        return ASK if partly_unread(seen) else None
    return known(value, ASK)


def unread(name: str) -> str:
    """The comment on a key whose value could not be read."""
    return f"its {name} could not be read"


def settings(seen: LibraryUse, places: Mapping[str, int | None]) -> dict[str, Any]:
    """The numbers of a call's arguments with these names, or at these positions; ??? where one could not be read."""
    given = {name: setting(seen, name, at) for name, at in places.items()}
    return {name: float(v) if isinstance(v, (int, float)) else ASK for name, v in given.items() if v is not None}


def called_where(
    statement: Statement, flow: Flow, runs: Callable[[Statement], bool], undecided: Callable[[Statement], list[str]]
) -> str:
    """The places that call a statement's function where they are several and one has a condition; else "".

    runs: whether a statement runs with the defaults. undecided: gives the undecided conditions of a statement.
    """
    function, seen = statement.function, set[int]()
    while function is not None and id(function) not in seen:
        seen.add(id(function))
        callers = list({id(one): one for one, _, _ in flow.calls.get(id(function), []) if runs(one)}.values())
        if len(callers) > 1:
            conditions = [undecided(one) for one in callers]
            places = [
                ":".join(map(str, one.place)) + (f" only where {joined(found)}" if found else "")
                for one, found in zip(callers, conditions, strict=True)
            ]
            return f"called at {', and at '.join(places)}" if any(conditions) else ""
        function = callers[0].function if callers else None
    return ""


def by_callers(statement: Statement, flow: Flow, runs: Callable[[Statement], bool]) -> list[str]:
    """The conditions around a statement that hold where one place calls its function, and not where another does."""
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
    return found


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
    if (
        given is None
        or any(isinstance(one, ast.Starred) for one in call.args)
        or None in [k.arg for k in call.keywords]
    ):
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
    ways = [one for one in flow.written(node) if isinstance(node, ast.Name) or _of_one_class(flow, one, own, node)]
    mine = isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self")
    for one in ways if mine and depth < 3 else ():
        if one.way == GIVEN and one.parameter is not None:
            callers = [call for of, call, _ in flow.calls.get(id(one.statement.node), []) if runs(of)]
            yield from (_handed(flow, one.statement.node, call, one.parameter) for call in callers)
        elif one.way == IS and isinstance(one.value, (ast.Name, ast.Attribute)) and not one.path:
            yield from _given_values(flow, one.value, runs, depth + 1)
        elif (
            one.way != ADDS
            or not isinstance(one.statement.node, ast.Expr)
            or not isinstance(flow.value(node), Constant)
        ):
            yield ""  # no call changes a number


def _of_one_class(flow: Flow, definition: Definition, reader: Statement | None, node: ast.expr) -> bool:
    """Whether an attribute may be set for the object that it is read from: not by `self` in a class of another kind."""
    written = [
        one
        for one in definition.statement.nodes
        if isinstance(one, ast.Attribute) and isinstance(node, ast.Attribute) and one.attr == node.attr
    ]
    owners = definition.statement.owner, reader.owner if reader is not None else None
    if None in owners or any(getattr(one.value, "id", "") != "self" for one in written):
        return True
    kinds = [
        {id(base.node) for base in of.lineage() if isinstance(base, ScriptClass)}
        for one in owners
        if one and (of := flow.class_of(one))
    ]
    return len(kinds) < 2 or any(id(one) in kind for one, kind in zip(owners, kinds[::-1], strict=True))
