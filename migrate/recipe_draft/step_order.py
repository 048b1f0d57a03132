"""The order and number of the calls that make a training step, where a script's differ from a recipe's; what a
round leaves to the next; and what is changed after it was handed over.

A recipe's step clears the gradients, runs the model, runs the backward pass, after every N batches unscales, clips and
updates, then averages the weights and moves the rate. The same calls in another order, in another loop or more often
are another step, so each of these is reported with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from ...printable import shortened
from .. import library_names as families
from ..read_script.abstract_values import (
    Constant,
    DictValue,
    LibraryObject,
    ListValue,
    ScriptClass,
    ScriptFunction,
    Value,
    known,
)
from ..read_script.interpreter import joined
from ..read_script.syntax import IN_PLACE, root
from .data_flow import ADDS, COMPOUND, EACH, FUNCTIONS, IS, LOOPS, Definition, Flow, Statement
from .passed_over import EXITS, LEAVING_ATTRIBUTES, leaves, name_of, raises_exit
from .roles import EMA, LOADER, MODEL, OPTIMIZER, OUTPUT, SCALER, SCHEDULE, STRONGEST, Roles
from .trained_model import DEPTH, UPDATE, Event, events, part_of, several_train

EARLY = "before there are gradients of this step"
NO_UPDATE = "no step() of an optimizer was found that takes these gradients"
SEPARATE = "no step() of an optimizer takes these gradients in the same round"
EACH_PART = "at every micro-batch: an update only takes the gradients of the last one"
IDLE = "with the defaults of the arguments nothing trains"
BEHIND, MOST_NESTED = "what trains stands behind it, and never runs", 4
ENDS = "the run ends here, and its steps come later"
CLEAR, RUN, BACKWARD, UNSCALE, CLIP = "clear", "run", "backward", "unscale", "clip"
RESCALE, AVERAGE, MOVE, MAKE = "rescale", "average", "move", "make"
TWICE = {RUN: "the model runs again", UPDATE: "a second update", BACKWARD: "a second backward pass"}
KEEPING = (OPTIMIZER, SCHEDULE, SCALER, EMA)  # these keep state from step to step
CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_norm_")
Runs = Callable[[Statement], bool]
Undecided = Callable[[Statement], Iterable[str]]


def holding_steps(flow: Flow, acting: Iterable[Statement]) -> tuple[set[int], set[int]]:
    """The loops and functions (their ids) with an optimizer's step or a backward pass in them, or in what they call;
    and the functions among them."""
    waiting = [
        one
        for one in acting
        if any(getattr(call.func, "attr", "") in ("backward", "step") or families.trains(call) for call in one.calls)
    ]
    found, functions, done = set[int](), set[int](), set[int]()
    while waiting:
        statement = waiting.pop()
        if id(statement) in done:
            continue
        done.add(id(statement))
        found |= {id(head) for head in statement.around}
        if statement.function is not None:
            waiting += [caller for caller, _, _ in flow.calls.get(id(statement.function), [])]
            functions.add(id(statement.function))
    return found | functions, functions


def generators(flow: Flow, roles: Roles) -> set[int]:
    """The generators (their ids) that loops over batches go through, while a recipe's batches are the loader's own."""
    heads = [s for s in flow.statements if isinstance(s.node, (ast.For, ast.AsyncFor))]
    over = (s for s in heads if roles.loops_over(s.expressions[-1]) == LOADER)
    return {one for s in over for call in s.calls if flow.yields.get(one := id(flow.function_of(call)))}


def ends_early(statement: Statement, acting: dict[int, Statement], steps: set[int]) -> bool:
    """Whether this is a `return` without a value before what trains in its function, which has a step."""
    bare = isinstance(statement.node, ast.Return) and statement.node.value is None
    if not bare or id(statement.function) not in steps:
        return False
    line = statement.node.lineno
    return any(one.function is statement.function and one.node.lineno > line for one in acting.values())


def caught(flow: Flow, statement: Statement, steps: set[int]) -> bool:
    """Whether a `try` catches what this raises, and goes on, in or around a loop with a step: it leaves the loop, or a
    part of its round; steps: the loops and functions (their ids) that hold one."""
    for event in events(flow, statement, "raise"):
        tried = (head for head, part, _ in event.around if part == "body" and _goes_on(head.node))
        if any(tried) and any(isinstance(head.node, LOOPS) and id(head) in steps for head, *_ in event.around):
            return True
    return False


def _goes_on(node: ast.AST) -> bool:
    """Whether this is a `try` with a handler that does not raise again, or `with suppress(…)`."""
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return any("suppress(" in ast.unparse(item.context_expr) for item in node.items)
    return any(not isinstance(one.body[-1], ast.Raise) for one in getattr(node, "handlers", ()))


def stands_in_try(statement: Statement) -> bool:
    """Whether it runs only where what stands before it in a `try` raises nothing."""
    heads = [head for head in statement.around if isinstance(head.node, LOOPS) or _goes_on(head.node)]
    of = heads[-1].node if heads and not isinstance(heads[-1].node, LOOPS) else None
    part = part_of(heads[-1], statement) if of is not None else ""
    first = getattr(of, "body", [statement.node])[0].lineno < statement.node.lineno
    return part == "orelse" or (part == "body" and first)


def leaving(
    flow: Flow, acting: dict[int, Statement], steps: set[int], runs: Runs, undecided: Undecided
) -> Iterator[Statement]:
    """The statements that leave a training loop under a condition, which decide how long or on what is trained."""
    for statement in flow.statements:
        if not leaves(flow, statement) or not runs(statement):
            continue
        heads = [head for head in statement.around if isinstance(head.node, LOOPS)]
        if isinstance(statement.node, (ast.Break, ast.Continue)):
            heads = heads[-1:]
        ends = any(id(head) in steps for head in heads) or ends_early(statement, acting, steps)
        if isinstance(statement.node, (ast.Raise, ast.Assert)) and not raises_exit(statement.node):
            ends = caught(flow, statement, steps)
        if ends and (undecided(statement) or isinstance(statement.node, ast.Assert) or stands_in_try(statement)):
            yield statement


def misplaced(flow: Flow, roles: Roles, runs: Runs, undecided: Undecided) -> dict[int, str]:
    """Statement (its id) -> why a recipe's step has its call elsewhere, or not at all; empty where no step was found;
    runs: whether a statement runs with the defaults; undecided: gives the undecided conditions that it depends on."""
    every = ([*events(flow, s, kind)] for s in flow.statements if runs(s) for kind in _kinds(flow, roles, s))
    found = [one for of in every for one in [one for one in of if all(map(runs, one.calls))] or of]
    of: dict[str, list[Event]] = {}
    outer = {(one.kind, one.at[:level]) for one in found for level in range(1, len(one.at))}  # the step() that has it
    for event in sorted((one for one in found if (one.kind, one.at) not in outer), key=lambda event: event.at):
        of.setdefault(event.kind, []).append(event)
    backward = of.get(BACKWARD, [])
    unmet = _cuts_off(flow, runs, undecided)
    loops = [head for head, *_ in backward[0].around if isinstance(head.node, LOOPS)] if backward else []
    made = [(head, [one for one in of.get(UPDATE, []) if one.loop is head]) for head in loops[::-1]]
    loop, updates = next(((head, found) for head, found in made if found), (None, []))  # around a loop of micro-batches
    if loop is None:
        alone = backward and of.get(MAKE) and not of.get(UPDATE) and not several_train(flow.interpreter)
        separate = backward and of.get(UPDATE) and (loops or any(one.loop for one in of[UPDATE]))
        return unmet | ({id(backward[0].statement): NO_UPDATE if alone else SEPARATE} if alone or separate else {})
    said = {id(one.statement): why for one, why in [*_wrong(of, loop, backward, updates, roles, undecided)][::-1]}
    said |= unmet | dict(_ends_before(flow, updates[0], runs, undecided))
    for statement in _again(of[UPDATE], updates[0], runs, undecided):
        where = f", only where {' and '.join(undecided(statement))}" if undecided(statement) else ""
        said.setdefault(id(statement), f"steps run here too{where}; a recipe's epoch is one loop over its batches")
    return said


def _ends_before(flow: Flow, first: Event, runs: Runs, undecided: Undecided) -> Iterator[tuple[int, str]]:
    """The statements (their ids) that end the run before its steps, or in their first round, each with words; but not
    those that refuse a start under a condition, as `raise` does: `sys.exit("no data")`."""
    for statement in flow.statements:
        exits = [call for call in statement.calls if name_of(flow, call) in EXITS]
        if not exits or not runs(statement):
            continue
        refuses = any(known(flow.value(call.args[0])) not in (0, None) for call in exits if call.args)
        where = list(undecided(statement)) if exits == [statement.alone] else ["a part of the line says so"]
        for event in events(flow, statement, "leave"):
            same = event.calls[0].source is first.calls[0].source and event.meets(first)
            heads = [head for head, *_ in first.around if isinstance(head.node, LOOPS)]
            shared = any(head is one for head, *_ in event.around for one in heads)
            if same and (event.at < first.at or (shared and not where)) and not (where and refuses):
                yield id(statement), ENDS + (f", only where {' and '.join(where)}" if where else "")


def _cuts_off(flow: Flow, runs: Runs, undecided: Undecided) -> dict[int, str]:
    """Statement (its id) -> words, for a `raise` or a `return` that surely runs, with steps behind it in its block."""
    trees = {one.node.name: one.node for one in flow.statements if isinstance(one.node, FUNCTIONS)}
    steps: set[str] = {"backward", "step"}
    for _ in range(MOST_NESTED):  # functions that call such functions
        steps |= {name for name, node in trees.items() if steps & set(_called(node))}
    found = {}
    for one in (s for s in flow.statements if isinstance(s.node, (ast.Raise, ast.Return)) and runs(s)):
        surely = id(one.node) in flow.interpreter.reached and not [*undecided(one)]
        near = flow.inside_of.get(id(one.function), []) if surely else []
        later = [s for s in near if s.source is one.source and s.around == one.around and s.place > one.place]
        if any(steps & set(_called(s.node)) for s in later if not isinstance(s.node, (*FUNCTIONS, ast.ClassDef))):
            found[id(one)] = BEHIND
    direct = [s for s in flow.statements if {"backward", "step"} & {getattr(c.func, "attr", "") for c in s.calls}]
    idle = direct and not any(map(runs, direct))  # with the arguments' defaults
    entered = {id(s.function) for s in flow.statements if idle and (s.function is None or runs(s))}
    for one in (s for s in flow.statements if id(s.function) in entered and not isinstance(s.node, COMPOUND)):
        if steps & set(_called(one.node)) and not runs(one):
            where = flow.interpreter.reached.get(id(one.node), (0, ()))[1]
            found[id(one)] = IDLE + f", only where {joined(where)}" * bool(where)
    return found


def _called(tree: ast.AST) -> Iterator[str]:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    yield from (getattr(func, "attr", getattr(func, "id", "")) for func in calls)


def _again(every: list[Event], first: Event, runs: Runs, undecided: Undecided) -> Iterator[Statement]:
    """The loops, calls and updates that make steps in the same round of a loop as the first one's, in another place."""
    parts = {id(head): part for head, part, _ in first.around}
    for event in (one for one in every if one.at != first.at and all(map(runs, one.calls))):
        loops = [(head, level) for head, _, level in event.around if isinstance(head.node, LOOPS)]
        round_ = any(id(head) in parts and event.at[:level] == first.at[:level] for head, level in loops)
        split = next((at for at, (mine, other) in enumerate(zip(event.at, first.at, strict=False)) if mine != other), 0)
        own = [head for head, level in loops if level == split and id(head) not in parts]
        later = (
            event.statement is first.statement and event.at > first.at and not own and not [*undecided(event.calls[0])]
        )
        if not (round_ or later) or any(parts.get(id(head), part) != part for head, part, _ in event.around):
            continue  # or they are in two branches of a condition
        if split < len(event.at) - 1:  # where a condition decides, this call may make none
            inner = [head for head, _, level in event.around if level > split and isinstance(head.node, ast.If)]
            yield from () if inner else (event.calls[split],)
        elif not undecided(event.statement) and (own or event.loop is not first.loop):
            yield next(iter(own), event.statement)


def _wrong(
    of: dict[str, list[Event]],
    loop: Statement,
    backward: list[Event],
    updates: list[Event],
    roles: Roles,
    undecided: Undecided,
) -> Iterator[tuple[Event, str]]:
    def inside(kind: str) -> list[Event]:
        return [one for one in of.get(kind, []) if one.loop is loop]

    def before(event: Event, others: list[Event]) -> bool:
        return any(other.at < event.at and other.meets(event) for other in others)

    def round_of(event: Event) -> Statement | None:  # of the loops around the backward pass, and not over parameters
        heads = [head for head, *_ in event.around if isinstance(head.node, LOOPS)]
        return next((head for head in heads[::-1] if any(head is one for one, *_ in backward[0].around)), None)

    clears = [one for one in of.get(CLEAR, []) if round_of(one) is loop]
    always = [set(undecided(one.statement)) for one in backward]  # conditions of the backward passes too are harmless
    good = [one for one in clears if all(set(undecided(one.statement)) <= each for each in always)]
    if not good:
        for event in of.get(CLEAR, []):
            where = " and ".join(undecided(event.statement)) if event in clears else ""
            what = f"only where {where}: else" if where else "not at every step:"
            each = not where and event.loop is backward[0].loop is not loop
            yield event, EACH_PART if each else f"{what} gradients add up"
        if not of.get(CLEAR):
            yield backward[0], "nothing clears the gradients, so they add up from step to step"
    if roles.accumulate > 1 and not any(map(roles.divides, roles.flow.statements)):
        for event in (one for one in backward if not roles.divides_before(one.statement)):
            yield event, f"the losses of {roles.accumulate} micro-batches are added, and a recipe takes their mean"
    for event in clears if not several_train(roles.flow.interpreter) else ():  # those of another model are not taken
        later = [one for one in updates if one.at > event.at and one.meets(event)]
        made = [one for one in backward if one.at < event.at and one.meets(event)]
        if later and made and not any(made[-1].at < one.at < event.at and one.meets(event) for one in updates):
            yield event, "it clears the gradients before the update takes them"
    for event in updates:
        if not before(event, backward):
            yield event, "the update comes before the backward pass"
        for head in (head for head, *_ in event.around if roles.accumulate > 1 and isinstance(head.node, ast.If)):
            why = _uneven(roles, head.node.test)  # type: ignore[attr-defined]
            if why is not None:
                yield event, why
    for kind, what in TWICE.items():
        events = inside(kind) if kind != BACKWARD else [one for one in backward if one.loop is backward[0].loop]
        for event in events:
            if before(event, [one for one in events if one.statement is not event.statement]):
                yield event, f"{what} in this step"
    for event in of.get(CLIP, []):
        scaled = [one for one in updates if one.meets(event) and _scaled(one, roles)]
        if event.loop is not loop or not before(event, backward):
            each = event.loop is backward[0].loop is not loop
            what = "at every micro-batch, and a recipe once before the update" if each else EARLY
            yield event, f"it clips {what}"
        elif not any(one.at > event.at and one.meets(event) for one in updates):
            yield event, "it clips after the update"
        elif roles.accumulate > 1 and not any(one.conditions() <= event.conditions() for one in updates):
            yield event, "it clips the sum of every micro-batch, and a recipe their mean once"
        elif scaled and not before(event, of.get(UNSCALE, [])):
            yield event, "it clips gradients that are still multiplied by the loss scale: nothing unscales them before"
    scaled = [one for one in updates if _scaled(one, roles)]
    if scaled and not of.get(RESCALE):
        yield scaled[0], "the loss scale never changes, since nothing calls the scaler's update()"
    for kind, what in ((AVERAGE, "it averages"), (MOVE, "the rate moves")):
        for event in inside(kind):
            if not before(event, updates):
                yield event, f"{what} before the update"
            elif roles.accumulate > 1 and not any(one.conditions() <= event.conditions() for one in updates):
                yield event, f"{what} at every micro-batch, and a recipe at every update"
        for event in (one for one in of.get(kind, []) if one.loop is not loop):
            if kind == AVERAGE:
                yield event, "it does not average at every update"
            elif not before(event, backward):
                yield event, "the rate moves before the steps of its epoch, in a recipe after them"
    models = [one.around for one in of.get(MODEL, [])]
    for event in of.get(MAKE, []):
        rounds = [head for head, *_ in event.around if isinstance(head.node, LOOPS)]
        anew = [head for head in rounds if not any(head is other for each in models for other, *_ in each)]
        if anew and any(anew[0] is head for one in backward for head, *_ in one.around):
            yield event, "it is made anew in every round of a loop, and loses its state"
    moves = of.get(MOVE, [])
    for event in moves:
        if before(event, [one for one in moves if one.statement is not event.statement]):
            yield event, "the rate moves here too"


def _uneven(roles: Roles, test: ast.expr) -> str | None:
    """Words for a condition of updates under which some have fewer micro-batches than a recipe's, or None."""
    count = roles.accumulate
    either = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
    modulo = next((one for one in either if any(isinstance(part, ast.Mod) for part in ast.walk(one))), None)
    if modulo is None:
        return None
    others = [" ".join(ast.unparse(one).split()) for one in either if one is not modulo]
    if others:
        return f"it also updates where {' or '.join(others)}, with fewer than {count} micro-batches"
    left = modulo.left.left if isinstance(modulo, ast.Compare) and isinstance(modulo.left, ast.BinOp) else None
    first = _at_first(roles.flow, left) if left is not None else None
    wanted = roles.number(modulo.comparators[0]) if isinstance(modulo, ast.Compare) else None
    if first is None or not isinstance(wanted, int):
        return f"whether the first update has all {count} micro-batches could not be read"
    number = (wanted - first) % count + 1
    return f"the first update has {number} of {count} micro-batches" if number != count else None


def _at_first(flow: Flow, node: ast.expr, depth: int = 0) -> int | None:
    """The value of a counter of batches at the first batch, as far as it can be read."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        left, right = _at_first(flow, node.left, depth + 1), _at_first(flow, node.right, depth + 1)
        if isinstance(node.op, ast.Mult) and 0 in (left, right):
            return 0
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Mult):
            return left * right
        return left + right if isinstance(node.op, ast.Add) else left - right
    if isinstance(node, (ast.Name, ast.Attribute)) and depth < 8:
        found = flow.reads.get(id(node), ()) if isinstance(node, ast.Name) else flow.attributes.get(node.attr, ())
        return _counted(flow, node, list(found), depth + 1)
    value = node.value if isinstance(node, ast.Constant) else known(flow.value(node))
    return value if type(value) is int else None


def _counted(flow: Flow, node: ast.expr, found: list[Definition], depth: int) -> int | None:
    """The value of a counter where it is first read, by its definitions: its start, plus the increments before."""
    added = [one for one in found if isinstance(one.statement.node, ast.AugAssign)]
    begins = [one for one in found if one not in added and one.way in (IS, EACH)]
    if len(begins) != 1 or len(added) > 1 or begins[0].value is None:
        return None
    over, way = begins[0].value, begins[0].way
    if way == IS:
        first = _at_first(flow, over, depth)
    else:
        while isinstance(over, ast.Call) and over.args and name_of(flow, over).rpartition(".")[2] in ("tqdm", "list"):
            over = over.args[0]
        name = name_of(flow, over) if isinstance(over, ast.Call) else ""
        counts = name == "range" or (name == "enumerate" and begins[0].path == (0,))
        given = over.args if isinstance(over, ast.Call) else []
        starts = given[1:2] if name == "enumerate" else given[:1] if len(given) > 1 else []
        starts += [k.value for k in over.keywords if k.arg == "start"] if isinstance(over, ast.Call) else []
        first = None if not counts else _at_first(flow, starts[0], depth) if starts else 0
    for one in added:
        step = _at_first(flow, one.statement.node.value, depth)  # type: ignore[attr-defined]
        earlier = one.statement.place < flow.of[id(node)].place
        first = None if first is None or step is None else first + step * earlier
    return first


def _scaled(event: Event, roles: Roles) -> bool:
    """Whether an update goes through a loss scale that is on."""
    for call in event.statement.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step" and roles.role(call.func.value) == SCALER:
            made = roles.flow.value(call.func.value)
            seen = made.seen if isinstance(made, LibraryObject) else None
            return seen is None or known(seen.get("enabled"), True) is not False
    return False


def _kinds(flow: Flow, roles: Roles, statement: Statement) -> Iterator[str]:
    """The kinds of a step's calls that a statement makes."""
    node = statement.node
    none = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None
    if none and any(getattr(target, "attr", "") == "grad" for target in getattr(node, "targets", [])):
        yield CLEAR
    for call in statement.calls:
        root = roles.roots.get(id(call))
        if root in (*KEEPING, MODEL) and not isinstance(statement.node, (ast.With, ast.AsyncWith)):
            yield MODEL if root == MODEL else MAKE
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name_of(flow, call) in CLIPS or method.startswith("clip_grad"):
            yield CLIP
        owner = roles.role(call.func.value) if isinstance(call.func, ast.Attribute) else None
        if method == "zero_grad":
            yield CLEAR
        elif method in ("backward", "manual_backward"):
            yield BACKWARD
        elif method == "step" and (owner in (OPTIMIZER, SCALER) or (owner is None and _named_so(call, flow))):
            yield UPDATE
        elif method == "step" and owner == SCHEDULE:
            yield MOVE
        elif method == "unscale_":
            yield UNSCALE
        elif method == "update" and owner == SCALER:
            yield RESCALE
        elif method in ("update", "update_parameters") and owner == EMA:
            yield AVERAGE
        elif roles.exact(call) == OUTPUT and roles.role(call.func) == MODEL and not _measures(flow, statement):
            yield RUN


def _named_so(call: ast.Call, flow: Flow) -> bool:
    """Whether a method is that of what has an optimizer's name, where no optimizers are known."""
    of = getattr(call.func, "value", None)
    named = families.habit(getattr(of, "attr", getattr(of, "id", ""))) == families.OPTIMIZER
    return named and not several_train(flow.interpreter)


def _measures(flow: Flow, statement: Statement) -> bool:
    """Whether a statement runs with gradients switched off."""
    withs = (head for head in statement.around if isinstance(head.node, (ast.With, ast.AsyncWith)))
    heads = [expression for head in withs for expression in head.expressions]
    heads += statement.function.decorator_list if isinstance(statement.function, FUNCTIONS) else []
    calls = [head for head in heads if isinstance(head, ast.Call)]
    return any(name_of(flow, call).rpartition(".")[2] in ("no_grad", "inference_mode") for call in calls)


def picks(roles: Roles, node: ast.expr, loops: set[int]) -> bool:
    """Whether an expression takes an entry out of a batch, or out of what is computed from one, that is not surely the
    input or the label: batch["image"], x[1], batch.x. loops: those with a step, whatever they go over."""
    called = {id(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}
    parts = [one for one in ast.walk(node) if isinstance(one, (ast.Subscript, ast.Attribute)) and id(one) not in called]
    return any(
        (roles.role(one) in STRONGEST and roles.exact(one) is None) or _of_a_round(roles.flow, one, loops)
        for one in parts
    )


def _of_a_round(flow: Flow, part: ast.Subscript | ast.Attribute, loops: set[int]) -> bool:
    """Whether it is an entry of a part of what one of these loops gives in a round, or of all of it, by a key."""
    whole = isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant) and type(part.slice.value) is int
    for one in flow.reads.get(id(part.value), ()):
        numbered = isinstance(one.value, ast.Call) and getattr(one.value.func, "id", "") == "enumerate"
        path = one.path[1:] if numbered else one.path
        if one.way == EACH and id(one.statement) in loops and (path or not whole):
            return getattr(part, "attr", "") not in LEAVING_ATTRIBUTES
    return False


# what a round leaves to the next


def carried_on(flow: Flow) -> dict[int, dict[str, str]]:
    """The statements that set a name which an earlier statement of their loop reads, in the next round."""
    found: dict[int, dict[str, str]] = {}
    for reader in flow.statements:
        loops = {id(head) for head in (*reader.around, reader) if isinstance(head.node, LOOPS)}
        for node in reader.nodes if loops else ():
            ways = flow.reads.get(id(node), frozenset()) if isinstance(node, ast.Name) else frozenset()
            for one in (one for one in ways if one.way in (IS, ADDS) and one.value is not None):
                shared = loops & {id(head) for head in one.statement.around}
                if shared and one.statement.place >= reader.place:
                    assert isinstance(node, ast.Name)
                    inner = next(id(head) for head in (reader, *reader.around[::-1]) if id(head) in shared)
                    first = [other for other in ways if inner not in map(id, other.statement.around)]
                    found.setdefault(id(one.statement), {})[node.id] = text_of(flow, *first) if len(first) == 1 else ""
    for changed, name, before in _added_to(flow):
        first = [one for one in before if one.way == IS and one.statement is not changed]
        found.setdefault(id(changed), {}).setdefault(name, text_of(flow, *first) if len(first) == 1 else "")
    return found


def _added_to(flow: Flow) -> Iterator[tuple[Statement, str, list[Definition]]]:
    """The statements of functions that give a name of their file, or an attribute, another value: with the name, and
    the definitions of it."""
    for name, scope, definition in flow.outside:
        if id(definition.statement) in flow.rebinds:
            yield definition.statement, name, [one for one in scope.find(name) if one.statement.function is None]
    for statement in flow.statements:
        target = statement.node.target if isinstance(statement.node, ast.AugAssign) else None
        if isinstance(target, ast.Attribute):
            yield statement, ast.unparse(target), flow.attributes.get(target.attr, [])


def targets_of(statement: Statement) -> list[ast.expr]:
    """What a statement assigns to."""
    found = getattr(statement.node, "targets", [getattr(statement.node, "target", None)])
    return [one for one in found if one is not None]


def text_of(flow: Flow, definition: Definition) -> str:
    """The number or short string that a definition binds, as text; "" for anything else."""
    value = definition.value
    for index in definition.path:
        value = value.elts[index] if isinstance(value, (ast.Tuple, ast.List)) and index < len(value.elts) else None
    found = flow.value(value) if value is not None else None
    plain = isinstance(found, Constant) and isinstance(found.value, (int, float, str))
    return shortened(repr(known(found)), 60) if plain else ""


def plain_loop(flow: Flow, roles: Roles, statement: Statement) -> bool:
    """Whether it is a loop over epochs, or over known batches."""
    node = statement.node
    if not isinstance(node, (ast.For, ast.AsyncFor)):
        return False
    if roles.loops_over(node.iter) == LOADER:
        return True
    found = flow.value(node.iter)
    return isinstance(found, ListValue) and found.closed and len(found.items) == 1


def taken_before(flow: Flow, statement: Statement, runs: Runs) -> bool:
    """Whether a statement keeps what a name has before another statement of its function, or the next round, gives that
    name something else, or gives its own name something else under a condition: `before = size`."""
    value = getattr(statement.node, "value", None)
    names = {one.id for one in targets_of(statement) if isinstance(one, ast.Name)}
    for other in flow.inside_of.get(id(statement.function), ()):
        if other is statement or other.function is not statement.function or other.source is not statement.source:
            continue
        if other in statement.around:
            continue  # the variable of its own loop
        again = any(head in other.around for head in statement.around if isinstance(head.node, LOOPS))
        stored = (part for one in targets_of(other) for part in ast.walk(one) if isinstance(part, ast.Name))
        written = {part.id for part in stored if isinstance(part.ctx, ast.Store)}
        later = other.place > statement.place or again
        if getattr(value, "id", "") in written and later and runs(other):
            return True
        inner = [head for head in other.around if head not in statement.around and isinstance(head.node, ast.If)]
        kept = getattr(other.node, "value", None)
        read = {part.id for part in ast.walk(kept) if isinstance(part, ast.Name)} if kept is not None else set()
        if (names & written) - read and inner and other.place > statement.place and runs(other):
            return True
    return False


# what is changed after it was handed over


def changed_later(flow: Flow, call: ast.Call, of: Statement) -> Iterator[Statement]:
    """The statements that change a list or a table after this statement's call has made an object with it."""
    return (one for one in changed_for(flow, call) if one.function is of.function and one.place > of.place)


def changed_for(flow: Flow, call: ast.Call) -> Iterator[Statement]:
    """The statements that change a list, a table or an object of data in place which a call is given by its name."""
    for given in (*call.args, *(k.value for k in call.keywords)):
        value, family = flow.value(given), getattr(flow.value(given), "family", "")
        plain = isinstance(value, (ListValue, DictValue)) or type(value) in (Value, type(None))
        plain = plain or (isinstance(value, LibraryObject) and family in ("", families.DATASET, families.LOADER))
        ways = flow.reads.get(id(given), ()) if plain and isinstance(given, ast.Name) else ()
        yield from (one for way in ways for one in _in_place(flow).get(id(way), ()))


def changed_for_objects(flow: Flow, live: set[int], open_: set[int]) -> set[int]:
    """The definitions (their ids) that change a list or a table with which one of these statements makes an object of a
    class that is not read line by line; open_: the functions that are."""
    found: set[int] = set()
    for call in (call for one in flow.statements if id(one) in live for call in one.calls):
        of = flow.value(call.func)
        start = of.find("__init__") if isinstance(of, ScriptClass) else None
        if isinstance(start, ScriptFunction) and id(start.node) not in open_:
            found |= {id(way) for one in changed_for(flow, call) for way in one.defines}
    return found


KEEPERS = (ast.Subscript, ast.Attribute)  # what an assignment to these changes is an object that is there


@lru_cache(maxsize=2)
def _in_place(flow: Flow) -> dict[int, list[Statement]]:
    """By definition of a name (its id): the statements that change its object in place."""
    found: dict[int, list[Statement]] = {}
    for one in (one for one in flow.statements if any(way.way == ADDS for way in one.defines)):
        targets = getattr(one.node, "targets", [getattr(one.node, "target", None)])
        written = [part for call in one.calls for part in flow.writes(call)]
        written += [part for part in targets if isinstance(part, KEEPERS) or isinstance(one.node, ast.AugAssign)]
        written += _may_change(flow, one)
        sorts = getattr(getattr(one.alone, "func", None), "attr", "") in IN_PLACE
        written += [one.alone] if sorts and one.alone is not None else []
        for way in (way for part in written for way in _ways_behind(flow, root(part))):
            found.setdefault(id(way), []).append(one)
    return found


def _ways_behind(flow: Flow, node: ast.expr, depth: int = 0) -> Iterator[Definition]:
    """The definitions of a name, and of what it is another name of, or an element."""
    for way in flow.reads.get(id(node), ()):
        yield way
        of = root(way.value) if way.value is not None and way.way in (IS, EACH) else None
        if of is not None and depth < DEPTH:
            yield from _ways_behind(flow, of, depth + 1)


def _may_change(flow: Flow, statement: Statement) -> list[ast.expr]:
    """What a call of something that was not read, which is the whole statement, may change."""
    call = statement.alone
    if not isinstance(call, ast.Call) or flow.function_of(call) is not None or flow.passed(call.func):
        return []
    own = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return [*own, *call.args]
