"""The effects of statements: assignments, both branches of conditions, loops over epochs and batches, definitions,
imports."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from ...printable import shortened
from .. import library_names as names
from .abstract_values import (
    Constant,
    DictValue,
    LibraryName,
    LibraryObject,
    ListValue,
    Origin,
    ParsedArguments,
    RangeValue,
    Scope,
    ScriptClass,
    ScriptFunction,
    ScriptModule,
    ScriptObject,
    Value,
    either,
    first,
    forget,
    forget_inside,
    inside,
    is_known,
    is_none,
    known,
    no_round,
    or_else,
    origins,
    with_other,
    wrapped,
)
from .calls import CHANGING_TABLES, entered, set_attribute
from .command_line import class_made, decorated, make_defaults, rounds_that_declare
from .expressions import BATCHES, EPOCHS, LISTED, OTHER, ROUNDS, binary, each_of, of_library, truth
from .interpreter import (
    CERTAINTIES,
    DEFAULT,
    FORGETS,
    LONGEST,
    OPTION,
    PARTLY,
    PERHAPS,
    RAISED,
    RETURNED,
    End,
    Interpreter,
    assigns,
    executes,
    is_table,
    names_the_file,
    with_line,
)
from .syntax import (
    absolute,
    bindings,
    counts_epochs,
    given_to,
    gives_a_value,
    inside_of,
    is_quiet,
    may_change,
    may_define,
    method_of,
    range_of,
    running,
    stores,
)

RAISES = "an exception is raised"  # the condition of an `except`

# assignments


@executes(ast.Assign)
def _assign(interpreter: Interpreter, node: ast.Assign, scope: Scope) -> None:
    found = _written(interpreter, node.value, node.targets[0], scope)
    interpreter.note_named(found, node.value, scope)
    for target in node.targets:
        interpreter.assign(target, _kept(target, found, scope) or found, scope)


@executes(ast.AnnAssign)
def _annassign(interpreter: Interpreter, node: ast.AnnAssign, scope: Scope) -> None:
    if node.value is not None:
        interpreter.assign(node.target, _written(interpreter, node.value, node.target, scope), scope)


def _written(interpreter: Interpreter, node: ast.expr, target: ast.expr, scope: Scope) -> Value:
    """The value of an assignment; a literal constant keeps its place."""
    found = interpreter.value(node, scope)
    of = scope.names.get("__class__") if isinstance(target, ast.Name) else None
    field = isinstance(of, ScriptClass) and isinstance(node, ast.Call) and isinstance(found, Constant)
    if (isinstance(node, ast.Constant) or field) and is_known(found) and isinstance(target, (ast.Name, ast.Attribute)):
        owner = f"{of.node.name}." if isinstance(of, ScriptClass) else ""
        text = f"{owner}{ast.unparse(target)} = {repr(known(found)) if field else scope.source.text(node)}"
        return wrapped(known(found), (Origin(scope.source.shown, node.lineno, text),))
    text = f"{ast.unparse(target)} = {scope.source.text(node)}" if isinstance(node, ast.BinOp) else ""
    return with_line(found, node, text, scope) if text else found


@executes(ast.AugAssign)
def _augassign(interpreter: Interpreter, node: ast.AugAssign, scope: Scope) -> None:
    left, right = interpreter.value(node.target, scope), interpreter.value(node.value, scope)
    if isinstance(left, ListValue) and isinstance(node.op, ast.Add) and interpreter.certainty != OPTION:
        perhaps_ = interpreter.certainty == PERHAPS and is_known(left) and is_known(right)  # plain values, or none more
        left.extend([Value()] if perhaps_ else list(right.items) if isinstance(right, ListValue) else [])
        left.closed = left.closed and isinstance(right, ListValue) and right.closed and not perhaps_
    elif isinstance(left, DictValue) and isinstance(node.op, ast.BitOr) and interpreter.certainty != OPTION:
        forget(left.pairs, list(left.pairs) if not isinstance(right, DictValue) else [])
        left.put(getattr(right, "pairs", {}), interpreter.certainty == DEFAULT)
    elif isinstance(node.target, ast.Name) or not isinstance(left, ListValue):
        tensor = any(isinstance(side, LibraryObject) and side.family == names.TENSOR for side in (left, right))
        found = with_line(binary(node.op, left, right), node, scope.source.text(node), scope)
        if isinstance(node.target, ast.Name):  # inside a loop the number of additions is not known
            found = LibraryObject(names.TENSOR) if tensor else Value() if interpreter.loops else found
        interpreter.assign(node.target, found, scope)


# targets


@assigns(ast.Name)
def _to_name(interpreter: Interpreter, target: ast.Name, value: Value, scope: Scope) -> None:
    of = scope.shared.get(target.id, scope)
    if of is scope or interpreter.certainty != OPTION:
        of.put(target.id, value, scope)


@assigns(ast.Starred)
def _to_starred(interpreter: Interpreter, target: ast.Starred, value: Value, scope: Scope) -> None:
    interpreter.assign(target.value, Value(), scope)


@assigns(ast.Subscript)
def _to_subscript(interpreter: Interpreter, target: ast.Subscript, value: Value, scope: Scope) -> None:
    holder, key = interpreter.value(target.value, scope), known(interpreter.value(target.slice, scope))
    forget_inside(Value(among=holder.among if interpreter.certainty != OPTION else ()))
    if isinstance(holder, DictValue) and not isinstance(key, (str, int)):
        holder.closed, holder.more = False, holder.more or interpreter.certainty != OPTION
        forget(holder.pairs, list(holder.pairs) if interpreter.certainty != OPTION else [])
    if isinstance(holder, ListValue) and interpreter.certainty != OPTION:
        holder.put(key, value, interpreter.certainty == DEFAULT)
    elif isinstance(holder, DictValue) and isinstance(key, (str, int)) and interpreter.certainty != OPTION:
        holder.put({key: value}, interpreter.certainty == DEFAULT)
    elif is_table(holder, "__setitem__"):
        set_attribute(interpreter, holder, key if isinstance(key, str) else None, value, scope)
    elif key == "lr" and isinstance(target.slice, ast.Constant) and not interpreter.elsewhere:  # a group's, by hand
        text = scope.source.text(target)
        interpreter.rates.append((Origin(scope.source.shown, target.lineno, text), interpreter.certainty))


@assigns(ast.Attribute)
def _to_attribute(interpreter: Interpreter, target: ast.Attribute, value: Value, scope: Scope) -> None:
    holder = interpreter.value(target.value, scope)
    if isinstance(holder, LibraryName) and names.is_library(holder.name):
        interpreter.note(f"{holder.name}.{target.attr}", target, scope, None)  # torch.backends.cudnn.benchmark = True
    set_attribute(interpreter, holder, target.attr, value, scope)


@assigns(ast.Tuple, ast.List)
def _to_several(interpreter: Interpreter, target: ast.Tuple | ast.List, value: Value, scope: Scope) -> None:
    targets = target.elts
    items = value.items if isinstance(value, ListValue) and value.closed and len(value.items) == len(targets) else None
    share = value if isinstance(value, LibraryObject) and value.family in (names.TENSOR, names.DATASET) else None
    for index, one in enumerate(targets):
        kept = _kept(one, value, scope)
        interpreter.assign(one, items[index] if items else share or kept or _part(value, index), scope)


def _kept(target: ast.expr, value: Value, scope: Scope) -> Value | None:
    """The value for `model, optimizer = amp.initialize(model, optimizer)`: an argument that the library returns."""
    if not isinstance(target, ast.Name) or not isinstance(value, LibraryObject) or value.family or value.seen is None:
        return None
    current = scope.find(target.id)
    taken = [argument.value for argument in value.seen.arguments or []]
    kept = isinstance(current, (LibraryObject, ScriptObject)) and any(current is one for one in taken)
    return current if kept else None


def _part(value: Value, index: int) -> Value:
    """One of several results of a library's call: a factory of schedules returns the schedule first."""
    if isinstance(value, LibraryObject) and value.family and not index:
        return LibraryObject(value.family, value.seen, value.name)
    several = (one.items for one in value.among if isinstance(one, ListValue))
    return Value(among=tuple(items[index] for items in several if index < len(items)))


# conditions and loops


@executes(ast.If)
def _if(interpreter: Interpreter, node: ast.If, scope: Scope) -> End:
    holds = truth(interpreter.value(node.test, scope))
    if isinstance(node.test, ast.Name) and scope.perhaps_none(node.test.id):
        holds = None
    refuses = any(isinstance(one, ast.Raise) for one in node.body)
    if holds and refuses and interpreter.certainty != OPTION:
        holds = False  # a script that refuses its own defaults is run with others
    elif holds is False and interpreter.certainty != OPTION and _refuses(interpreter, node.orelse, scope):
        holds = None
    if holds is not None and names_the_file(node.test):
        interpreter.never |= {id(one) for one in (node.orelse if holds else node.body)}
    before, unset = interpreter.names_of(scope), set(scope.unset)
    after: list[dict[str, Value]] = []
    ends: list[End] = []
    still: list[set[str]] = []  # names that are unset after each branch
    otherwise: list[str] = []
    for block, of in ((node.body, True), (node.orelse, False)):
        scope.names, scope.unset = dict(before), set(unset)
        taken = None if holds is None else holds is of
        ends.append(interpreter.under(taken, node.test, of, scope, partial(interpreter.block, block, scope)))
        after.append(scope.names)
        still.append(scope.unset)
        otherwise.append(interpreter.otherwise)
    if holds is not None:
        interpreter.otherwise = otherwise[0 if holds else 1]
        scope.unset = still[0 if holds else 1]
        taken_names, other = (after[0], after[1]) if holds else (after[1], after[0])
        scope.names = {**{key: value for key, value in other.items() if key not in before}, **taken_names}
        scope.names = {key: with_other(value, other.get(key)) for key, value in scope.names.items()}
        return ends[0 if holds else 1]
    over = [ended in (RETURNED, RAISED) for ended in ends]  # and not only in a part of the branch
    live = [names_ for names_, ended in zip(after, over, strict=True) if not ended] or after
    nothing = {key for names_ in live for key, value in names_.items() if is_none(value)}
    scope.unset = set().union(*still) | {key for key in nothing if not all(is_none(names_.get(key)) for names_ in live)}
    text = shortened(scope.source.text(node.test), LONGEST)
    sides = [(after[i], (text, f"not ({text})")[i]) for i in (0, 1) if any(after[i] is one for one in live)]
    scope.names = {
        key: either([(found[key], of) for found, of in sides if key in found])
        or first([found[key] for found in after if key in found])
        for key in dict.fromkeys(key for found in after for key in found)
    }
    interpreter.otherwise = ""
    if all(over):
        return ends[0]
    if gives_a_value(node.body if over[0] else node.orelse) and len(interpreter.loops) == interpreter.outside:
        interpreter.otherwise = f"not ({text})" if over[0] else text
    return PARTLY if {RETURNED, PARTLY} & {*ends} else None


def _refuses(interpreter: Interpreter, block: list[ast.stmt], scope: Scope) -> bool:
    """Whether what the defaults choose of `elif` and `else` only refuses them."""
    seen, values, varied = interpreter.seen, interpreter.values, interpreter.varied
    interpreter.seen, interpreter.values, interpreter.varied = [], {}, set()  # these conditions are not evaluated here
    while len(block) == 1 and isinstance(block[0], ast.If):
        holds = truth(interpreter.value(block[0].test, scope))
        block = [] if holds is None else block[0].body if holds else block[0].orelse
    interpreter.seen, interpreter.values, interpreter.varied = seen, values, varied
    return bool(block) and isinstance(block[-1], ast.Raise)


@executes(ast.For, ast.AsyncFor)
def _for(interpreter: Interpreter, node: Any, scope: Scope) -> None:
    outer, interpreter.over = interpreter.over, None
    declared = rounds_that_declare(interpreter, node, scope)
    kind, element = each_of(interpreter, node.iter, scope) if declared is None else (LISTED, declared)
    most = len(declared.items) if declared is not None else ROUNDS
    interpreter.over = interpreter.over if kind == BATCHES else outer
    if interpreter.over is not outer:
        interpreter.note_batches("over")
    if counts_epochs(node, scope.source.text, EPOCHS in interpreter.loops, kind == OTHER):
        kind, element = EPOCHS, Value(among=inside(element)) if kind == LISTED else element
        _note_epochs(interpreter, node, scope)
    rounds = element.items[:most] if kind == LISTED and isinstance(element, ListValue) else [element]
    followed = kind == LISTED and isinstance(element, ListValue) and element.closed and len(element.items) <= most
    before = interpreter.names_of(scope)
    _forget(interpreter, [] if followed else node.body, scope)
    interpreter.loops.append(OTHER if kind == LISTED else kind)
    interpreter.repeats += not followed
    interpreter.breaks.append([])
    for item in rounds:
        interpreter.assign(node.target, item, scope)
        interpreter.block(node.body, scope)
    interpreter.repeats -= not followed
    interpreter.loops.pop()
    interpreter.over = outer
    no_round(before if not followed else {}, scope.names)
    _leave(interpreter, node.orelse, scope)


def _leave(interpreter: Interpreter, orelse: list[ast.stmt], scope: Scope) -> None:
    """Go on behind a loop, which may have ended at any `break` that was seen: then without its `else`."""
    left = interpreter.breaks.pop()
    before, around = interpreter.certainty, interpreter.conditions
    if left and orelse:
        interpreter.certainty = max(before, PERHAPS, key=CERTAINTIES.index)
        interpreter.conditions = [*around, "no break leaves the loop"]
    interpreter.block(orelse, scope)
    interpreter.certainty, interpreter.conditions = before, around
    or_else(scope.names, left)


def _note_epochs(interpreter: Interpreter, node: Any, scope: Scope) -> None:
    """Remember how many epochs a loop over a range has."""
    if interpreter.elsewhere:
        return
    call = range_of(node.iter)
    place = Origin(scope.source.shown, node.lineno, scope.source.text(call))
    if not isinstance(call, ast.Call) or not call.args:
        rounds = interpreter.value(call, scope)  # a range that a function is given
        listed = rounds.items if isinstance(rounds, ListValue) and rounds.closed else []
        count = rounds.count if isinstance(rounds, RangeValue) else len(listed)
        if count:
            interpreter.epochs.append((Constant(count, origins=origins(rounds)), place, interpreter.certainty))
        return
    ends = [interpreter.value(end, scope) for end in call.args[:2]]
    bound = ends[-1]
    if len(ends) == 2:
        bound = binary(ast.Sub(), ends[1], ends[0]) if is_known(ends[0]) else ends[1]
    interpreter.epochs.append((bound, place, interpreter.certainty))


@executes(ast.While)
def _while(interpreter: Interpreter, node: ast.While, scope: Scope) -> None:
    before = interpreter.names_of(scope)
    _forget(interpreter, node.body, scope)
    interpreter.value(node.test, scope)
    interpreter.loops.append(OTHER)
    interpreter.repeats += 1
    interpreter.breaks.append([])
    interpreter.block(node.body, scope)
    interpreter.repeats -= 1
    interpreter.loops.pop()
    no_round(before, scope.names)
    _leave(interpreter, node.orelse, scope)


MOST_CALLED, PASSES = 40, 2  # functions that are searched for what a round of a loop sets; how often
Anew = tuple[ast.expr, ast.expr | None, Scope, Scope]


def _forget(interpreter: Interpreter, body: list[ast.stmt], scope: Scope) -> None:
    """Forget the known values that a round of a loop sets anew, itself or in the script's own functions that it calls:
    they hold in the first round only."""
    seen, values, varied, spent = interpreter.seen, interpreter.values, interpreter.varied, interpreter.spent
    interpreter.seen, interpreter.values, interpreter.varied = [], {}, set()  # what is evaluated here does not run here
    for _ in range(PASSES):  # what is unknown now may open a branch
        for target, value, of, inner in _set_anew(interpreter, body, scope):
            if interpreter.certainty != OPTION or isinstance(target, ast.Name):  # objects are those of all branches
                _forget_one(interpreter, target, value, of, inner)
    interpreter.seen, interpreter.values, interpreter.varied = seen, values, varied
    interpreter.spent = spent + (interpreter.spent - spent) // 8


def _set_anew(interpreter: Interpreter, body: list[ast.stmt], scope: Scope) -> list[Anew]:
    """What a round writes to, and the calls of methods that change a list or a table; each with its scope, and with the
    objects that its names have in a round."""
    waiting, done, found = [(body, scope)], set[tuple[int, ...]](), list[Anew]()
    while waiting and len(done) < MOST_CALLED:
        block, of = waiting.pop()
        nodes = list(running(block, lambda test, scope: truth(interpreter.value(test, scope)), of))
        interpreter.spent += len(nodes) // 8
        inner, straight = Scope(of.source, of), {id(getattr(node, "value", None)) for node in nodes}
        for target, value in (pair for node in nodes for pair in bindings(node) if isinstance(pair[0], ast.Name)):
            one = _object(interpreter, value, inner)
            one = one if id(value) in straight else Value(among=inside(one))
            inner.names |= {ast.unparse(target): one} if one.among or may_change(one) else {}
        for node in nodes:
            found += [(target, value, of, inner) for target, value in stores(node)]
            if not isinstance(node, ast.Call) or not is_quiet(node.func):
                continue
            found += [(node, None, of, inner)]
            called = interpreter.value(node.func, inner)
            if isinstance(called, ScriptFunction) and isinstance(called.node.body, list):
                bound = inside_of(called)
                for name, given in given_to(node, called):
                    one = _object(interpreter, given, inner)
                    bound.names |= {name: one} if one.among or may_change(one) else {}
                key = (id(called.node), *(id(one) for one in bound.names.values() if may_change(one)))
                waiting += [(called.node.body, bound)] if key not in done else []
                done.add(key)
    return found


def _object(interpreter: Interpreter, node: ast.expr, scope: Scope) -> Value:
    """What an expression gives where nothing of the script runs for it; any element where a call chooses it."""
    if isinstance(node, ast.Subscript) and not is_quiet(node.slice):
        return Value(among=inside(_object(interpreter, node.value, scope)))
    return interpreter.value(node, scope) if is_quiet(node) else Value()


def _forget_again(interpreter: Interpreter, function: ScriptFunction) -> None:
    """Forget the known values that a function sets anew whenever it is called."""
    if isinstance(function.node.body, list):
        _forget(interpreter, function.node.body, inside_of(function))


FORGETS.append(_forget_again)


def _forget_changed(interpreter: Interpreter, call: ast.Call, scope: Scope) -> None:
    """Forget what a method changes in its list or table, or `setattr` in its object."""
    method, of = method_of(call)
    if of is None or method not in (*CHANGING_TABLES, *names.TABLES["list_changes"], "sort"):
        return
    holder = _object(interpreter, of, scope)
    pairs = getattr(holder, "pairs", getattr(holder, "attributes", {}))
    if isinstance(holder, ListValue) and method in ("append", "extend"):
        holder.closed = False  # the first ones stay
    elif method == "update" and not call.args and all(one.arg for one in call.keywords):
        forget(pairs, [one.arg for one in call.keywords if one.arg in pairs])
    elif holder.among or isinstance(holder, (ListValue, DictValue)) or is_table(holder, method):
        forget_inside(holder)


def _forget_one(interpreter: Interpreter, target: ast.expr, value: ast.expr | None, scope: Scope, inner: Scope) -> None:
    if isinstance(target, ast.Call):
        _forget_changed(interpreter, target, inner)

    def held(names_: dict[Any, Value], key: Any) -> None:
        before = names_.get(key)
        same = isinstance(value, ast.Constant) and isinstance(before, Constant) and before.value == value.value
        if is_known(before) and not same:
            names_[key] = Value()

    if isinstance(target, ast.Name):
        if (of := scope.holding(target.id)) is not None:
            held(of.names, target.id)
    elif isinstance(target, (ast.Attribute, ast.Subscript)):
        holder = _object(interpreter, target.value, inner)
        key = target.attr if isinstance(target, ast.Attribute) else known(_object(interpreter, target.slice, inner))
        for one in (holder, *holder.among):
            if isinstance(target, ast.Subscript) and isinstance(one, DictValue) and isinstance(key, (str, int)):
                held(one.pairs, key)
            elif isinstance(target, ast.Subscript):
                forget_inside(one) if isinstance(one, (ListValue, DictValue)) else None
            elif isinstance(one, ParsedArguments) and is_known(one.get(key)):
                one.assigned[key] = Value()
            elif isinstance(one, (ScriptObject, ScriptModule, ScriptClass)):
                held(one.attributes if isinstance(one, ScriptObject) else one.scope.names, key)


@executes(ast.With, ast.AsyncWith)
def _with(interpreter: Interpreter, node: Any, scope: Scope) -> End:
    start, risky = interpreter.names_of(scope), False
    for item in node.items:
        found = entered(interpreter, interpreter.value(item.context_expr, scope))
        risky = risky or getattr(found, "name", "") == "contextlib.suppress"
        if item.optional_vars is not None:
            interpreter.assign(item.optional_vars, found, scope)
    ended = interpreter.block(node.body, scope)
    or_else(scope.names, [{one: start[one] for one in names.at_risk(node.body) & start.keys() if risky}])
    return ended


@executes(ast.Try, getattr(ast, "TryStar", ast.Try))
def _try(interpreter: Interpreter, node: Any, scope: Scope) -> End:
    start = interpreter.names_of(scope)
    ended = interpreter.block(node.body, scope)
    before, sure, around = interpreter.names_of(scope), interpreter.certainty, interpreter.conditions
    caught: list[dict[str, Value]] = []
    for handler in node.handlers:
        interpreter.names_of(scope)
        rather = OPTION if names.of_another_run(node, handler) else PERHAPS
        interpreter.certainty = max(sure, rather, key=CERTAINTIES.index)
        interpreter.conditions = [*around, *[RAISES] * (RAISES not in around)]
        over = interpreter.block(handler.body, scope)
        caught += [scope.names] if rather == PERHAPS and over in (None, PARTLY) else []
        interpreter.conditions = around
        interpreter.certainty = sure
        scope.names = {**scope.names, **before}
    or_else(scope.names, caught)
    ended = interpreter.block(node.orelse, scope) or ended
    risk = names.at_risk(node.body, node.orelse) & start.keys() if caught else ()
    or_else(scope.names, [{name: start[name] for name in risk}])
    return interpreter.block(node.finalbody, scope) or ended


@executes(ast.Match)
def _match(interpreter: Interpreter, node: Any, scope: Scope) -> None:
    interpreter.value(node.subject, scope)
    before = interpreter.names_of(scope)
    after: list[dict[str, Value]] = []
    for case in node.cases:
        interpreter.names_of(scope)
        words, run = f" matches {ast.unparse(case.pattern)}", partial(interpreter.block, case.body, scope)
        ended = interpreter.under(None, node.subject, True, scope, run, words)
        after += [scope.names] if ended in (None, PARTLY) else []
        scope.names = {**scope.names, **before}
    or_else(scope.names, after)


@executes(ast.Global)
def _global(interpreter: Interpreter, node: ast.Global, scope: Scope) -> None:
    scope.shared |= dict.fromkeys(node.names, scope.top())


@executes(ast.Nonlocal)
def _nonlocal(interpreter: Interpreter, node: ast.Nonlocal, scope: Scope) -> None:
    for name in node.names:
        if scope.parent is not None and (around := scope.parent.holding(name)) is not None:
            scope.shared[name] = around


@executes(ast.Raise)
def _raise(interpreter: Interpreter, node: ast.Raise, scope: Scope) -> End:
    interpreter.value(node.exc, scope)
    return RAISED


@executes(ast.Continue, ast.Break)
def _continue(interpreter: Interpreter, node: ast.stmt, scope: Scope) -> End:
    if isinstance(node, ast.Break) and interpreter.breaks and interpreter.certainty != OPTION:
        interpreter.breaks[-1].append(interpreter.names_of(scope))
    return RETURNED


@executes(ast.Delete)
def _delete(interpreter: Interpreter, node: ast.Delete, scope: Scope) -> None:
    for target in node.targets if interpreter.certainty != OPTION else ():
        holder = interpreter.value(getattr(target, "value", None), scope)
        if isinstance(target, ast.Attribute):
            set_attribute(interpreter, holder, target.attr, Value(), scope)
        elif isinstance(target, ast.Subscript):
            key = known(interpreter.value(target.slice, scope))
            forget_inside(Value(among=holder.among))
            forget(holder.pairs, [key] if key in holder.pairs else []) if isinstance(holder, DictValue) else None
            holder.forget() if isinstance(holder, ListValue) else None


# definitions and imports


@executes(ast.FunctionDef, ast.AsyncFunctionDef)
def _functiondef(interpreter: Interpreter, node: Any, scope: Scope) -> None:
    owner = scope.names.get("__class__")
    around = scope.parent if owner is not None and scope.parent is not None else scope
    function = ScriptFunction(node, around, owner=owner if isinstance(owner, ScriptClass) else None)
    make_defaults(interpreter, interpreter.functions.setdefault(id(node), function), scope)
    scope.names[node.name] = decorated(interpreter, function, scope)


@executes(ast.ClassDef)
def _classdef(interpreter: Interpreter, node: ast.ClassDef, scope: Scope) -> None:
    inner = Scope(scope.source, scope)
    bases = []
    for base in node.bases:
        found = interpreter.value(base, scope)
        bases.append(found)
        if isinstance(found, LibraryName) and names.is_library(found.name):
            interpreter.note(found.name, base, scope, None)
    inner.names["__class__"] = made = ScriptClass(node, inner, bases)
    scope.names[node.name] = made
    interpreter.block(node.body, inner)
    class_made(interpreter, made, scope)
    scope.names[node.name] = decorated(interpreter, made, scope)


@executes(ast.Return)
def _return(interpreter: Interpreter, node: ast.Return, scope: Scope) -> End:
    found = interpreter.value(node.value, scope) if node.value else Constant(None)
    if interpreter.returns:
        sure = OPTION if RAISES in interpreter.conditions else interpreter.certainty  # a plain start counts
        interpreter.returns[-1].append((CERTAINTIES.index(sure), found))
    return RETURNED


@executes(ast.Import)
def _import(interpreter: Interpreter, node: ast.Import, scope: Scope) -> None:
    for alias in node.names:
        top = alias.name.partition(".")[0]
        own = interpreter.own_file(alias.name if alias.asname else top, node, scope)
        if own is not None and not alias.asname and interpreter.file(alias.name) is None:
            interpreter.not_there.setdefault(alias.name, (scope.source.shown, node.lineno))
        scope.names[alias.asname or top] = own or LibraryName(alias.name if alias.asname else top)


@executes(ast.ImportFrom)
def _importfrom(interpreter: Interpreter, node: ast.ImportFrom, scope: Scope) -> None:
    base = node.module or ""
    if node.level:
        base = absolute(node, known(scope.find("__name__")) or "", scope.source.path.name == "__init__.py")
    own = interpreter.own_file(base, node, scope, relative=bool(node.level)) if base else None
    for alias in node.names:
        if alias.name == "*":
            if isinstance(own, ScriptModule):
                scope.names |= {k: v for k, v in own.scope.names.items() if not k.startswith("_")}
                scope.stars += own.scope.stars
            elif not node.level:
                scope.stars.append(base)
            if own is None and (node.level or not names.is_library(base)):  # it may have any of these names
                forget(scope.names, [one for one in scope.names if not one.startswith("__")])
            continue
        inside = own.scope.names.get(alias.name) if isinstance(own, ScriptModule) else None
        inside = inside or interpreter.file(f"{base}.{alias.name}" if base else alias.name) if own or not base else None
        found = inside or (Value() if own or node.level else of_library(interpreter, f"{base}.{alias.name}"))
        lacks = isinstance(own, ScriptModule) and not own.scope.stars and not may_define(own.scope, alias.name)
        if inside is None and (lacks or not base):
            whole = f"{base}.{alias.name}" if lacks else f"{'.' * node.level}{alias.name}"
            interpreter.not_there.setdefault(whole, (scope.source.shown, node.lineno))
        scope.names[alias.asname or alias.name] = found
