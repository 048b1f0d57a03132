"""The order and number of the calls that make a training step, where a script's differ from a recipe's.

A recipe's step clears the gradients, runs the model, runs the backward pass, after every N batches unscales, clips and
updates, then averages the weights and moves the rate. The same calls in another order, in another loop or more often
are another step, so each of these is reported with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ...printable import shortened
from .. import library_names as families
from ..read_script.abstract_values import (
    Constant,
    DictValue,
    LibraryObject,
    ListValue,
    ParsedArguments,
    ScriptFunction,
    is_known,
    known,
)
from ..read_script.interpreter import CERTAINTIES, OPTION
from ..read_script.syntax import root
from .data_flow import ADDS, EACH, FUNCTIONS, GIVEN, IS, LOOPS, Definition, Flow, Statement
from .passed_over import LEAVING_ATTRIBUTES, cuts_off, ends_before, name_of
from .recipe_entries import (
    LONGEST_WORD,
    behind_names,
    behind_settings,
    held_settings,
    read_alone,
    sets_held,
)
from .roles import EMA, LOADER, MODEL, OPTIMIZER, OUTPUT, SCALER, SCHEDULE, STRONGEST, Roles
from .trained_model import UPDATE, Event, events, several_train

SHORT = 20  # statements of a function whose values are said where it is handed over
EARLY = "before there are gradients of this step"
NO_UPDATE = "no step() of an optimizer was found that takes these gradients"
APART = "no step() of an optimizer takes these gradients in the same round"
EACH_PART = "at every micro-batch: an update only takes the gradients of the last one"
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


def misplaced(flow: Flow, roles: Roles, runs: Runs, undecided: Undecided) -> dict[int, str]:
    """Statement (its id) -> why a recipe's step has its call elsewhere, or not at all; empty where no step was found.

    runs: whether a statement runs with the defaults; undecided: gives the undecided conditions that it depends on.
    """
    found = [
        event for s in flow.statements if runs(s) for kind in _kinds(flow, roles, s) for event in events(flow, s, kind)
    ]
    of: dict[str, list[Event]] = {}
    outer = {(one.kind, one.at[:level]) for one in found for level in range(1, len(one.at))}  # the step() that has it
    for event in sorted((one for one in found if (one.kind, one.at) not in outer), key=lambda event: event.at):
        of.setdefault(event.kind, []).append(event)
    backward = of.get(BACKWARD, [])
    unmet = cuts_off(flow, runs, undecided)
    loops = [head for head, *_ in backward[0].around if isinstance(head.node, LOOPS)] if backward else []
    made = [(head, [one for one in of.get(UPDATE, []) if one.loop is head]) for head in loops[::-1]]
    loop, updates = next(((head, found) for head, found in made if found), (None, []))  # around a loop of micro-batches
    if loop is None:
        alone = backward and of.get(MAKE) and not of.get(UPDATE)
        apart = backward and of.get(UPDATE) and (loops or any(one.loop for one in of[UPDATE]))
        return unmet | ({id(backward[0].statement): NO_UPDATE if alone else APART} if alone or apart else {})
    said = {id(one.statement): why for one, why in [*_wrong(of, loop, backward, updates, roles, undecided)][::-1]}
    said |= unmet | dict(ends_before(flow, updates[0], runs, undecided))
    for statement in _again(of[UPDATE], updates[0], runs, undecided):
        where = f", only where {' and '.join(undecided(statement))}" if undecided(statement) else ""
        said.setdefault(id(statement), f"steps run here too{where}; a recipe's epoch is one loop over its batches")
    return said


def _again(every: list[Event], first: Event, runs: Runs, undecided: Undecided) -> Iterator[Statement]:
    """The loops, calls and updates that make steps in the same round of a loop as the first one's, in another place."""
    parts = {id(head): part for head, part, _ in first.around}
    for event in (one for one in every if one.at != first.at and all(map(runs, one.calls))):
        loops = [(head, level) for head, _, level in event.around if isinstance(head.node, LOOPS)]
        round_ = any(id(head) in parts and event.at[:level] == first.at[:level] for head, level in loops)
        split = next((at for at, (mine, other) in enumerate(zip(event.at, first.at, strict=False)) if mine != other), 0)
        own = [head for head, level in loops if level == split and id(head) not in parts]
        later = event.statement is first.statement and event.at > first.at and not (own or undecided(event.calls[0]))
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

    clears = inside(CLEAR)
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


@dataclass(frozen=True)
class Counting:
    """The counters of a script, of which reading only knows the first value.

    attributes: those that a method or a loop computes from their old value; names: variables that are added to, with
    their function; set_again: attributes that a method and another statement set; each: the variables of loops;
    carried: a statement (its id) -> the names that it sets for the next round of a loop, with what they begin with;
    changing: the names and attributes in the statements that change an object, such as a list; filled: the variables
    whose object a statement changes, or that one computes from their old value, with their function; read_alone: the
    settings that a live statement reads by their name, and those that were said: the object (its id) and the name;
    unsaid: the names of tables that statements change, and that something which was not read gets as a whole; held: the
    objects of settings that it gets.
    """

    flow: Flow
    attributes: frozenset[str]
    names: frozenset[tuple[int, str]]
    set_again: frozenset[str]
    each: frozenset[str]
    carried: dict[int, dict[str, str]]
    changing: frozenset[str]
    filled: frozenset[tuple[int, str]]
    read_alone: set[tuple[int, str]]
    unsaid: frozenset[str]
    held: frozenset[int]

    @classmethod
    def read(cls, flow: Flow, live: set[int]) -> Counting:
        """The counters in all statements of a script; live: the statements (their ids) that reach its training."""
        attributes: set[str] = set()
        names: set[tuple[int, str]] = set()
        setters: dict[str, list[bool]] = {}  # of each attribute: whether it is a method
        for statement in flow.statements:
            node, value = statement.node, getattr(statement.node, "value", None)
            for one in (part for target in _targets(statement) for part in ast.walk(target)):
                if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
                    setters.setdefault(one.attr, []).append(_is_method(statement))
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                names.add((id(statement.function), node.target.id))
            if value is None or not (_is_method(statement) or _in_a_loop(statement)):
                continue
            read = {ast.unparse(part) for part in ast.walk(value) if isinstance(part, ast.Attribute)}
            written = [one for one in _targets(statement) if isinstance(one, ast.Attribute)]
            attributes |= {one.attr for one in written if isinstance(node, ast.AugAssign) or ast.unparse(one) in read}
        set_again = {name for name, found in setters.items() if any(found) and len(found) > 1}
        heads = [part for s in flow.statements for part in (s.node, *s.nodes)]
        loops = (part.target for part in heads if isinstance(part, (ast.For, ast.AsyncFor, ast.comprehension)))
        each = {part.id for target in loops for part in ast.walk(target) if isinstance(part, ast.Name)}
        found = frozenset(attributes), frozenset(names), frozenset(set_again), frozenset(each)
        changing = _changing(flow)
        unsaid = _unsaid(flow, live, changing)
        held = frozenset(id(one) for s in flow.statements if id(s) in live for _, one in held_settings(s.nodes, flow))
        return cls(
            flow, *found, _carried(flow), changing, _filled(flow), read_alone(flow, live), unsaid, frozenset(held)
        )

    def of(self, node: ast.expr) -> bool:
        """Whether an expression reads such an attribute."""
        return any(isinstance(part, ast.Attribute) and part.attr in self.attributes for part in ast.walk(node))

    def values(self, statement: Statement, why: str = "") -> str:
        """The values of the names in a statement and in its conditions, as `why` says them; what those that it sets for
        the next round begin with; both values of one that has two: `x is 4, step begins with 0, w is 1 or 2`."""
        begin = [f"{name} begins with {v}" for name, v in self.carried.get(id(statement), {}).items() if v]
        several = {node.id: self._several(node) for node in statement.nodes if isinstance(node, ast.Name)}
        either = [f"{name} is {' or '.join(found)}" for name, found in several.items() if found and all(found)]
        tests = [head for head in statement.around if isinstance(head.node, ast.If)]
        said = (part for head in tests if head.source.text(head.expressions[0])[:40] in why for part in head.nodes)
        parts = [*statement.nodes, *said, *self._handed_over(statement)]
        plain = behind_names(parts, self.flow.interpreter, self.moves)
        return ", ".join(filter(None, [plain, *self._tables(statement), *begin, *either]))

    def settings(self, statement: Statement) -> Iterator[str]:
        """What settings have that a statement mentions as a whole, where nothing else says it: each is said once."""
        for holder, words in behind_settings(statement.nodes, self.flow, self.read_alone):
            if (holder, "") not in self.read_alone:
                self.read_alone.add((holder, ""))
                yield words

    def all_values(self, statement: Statement) -> str:
        """The values of the names in a statement, and of the settings that it mentions."""
        return ", ".join(filter(None, [self.values(statement), *self.settings(statement)]))

    def _handed_over(self, statement: Statement) -> Iterator[ast.AST]:
        """What a short function that a statement hands over reads of the function around it, or of its object: `steps`
        of `warmed(opt, steps)`, which makes `LambdaLR(opt, ramp)`."""
        called = {id(call.func) for call in statement.calls}
        parts = (one for one in statement.nodes if isinstance(one, (ast.Name, ast.Attribute)) and id(one) not in called)
        functions = {id(of.node): of for one in parts if isinstance(of := self.flow.value(one), ScriptFunction)}
        for of in functions.values():
            inside = self.flow.inside_of.get(id(of.node), [])
            nodes = (node for one in inside if len(inside) <= SHORT for node in one.nodes)
            for node in (node for node in nodes if isinstance(node, ast.expr)):
                ways = self.flow.reads.get(id(root(node)), ())
                around = (id(one.statement.node) if one.way == GIVEN else id(one.statement.function) for one in ways)
                outer = of.scope.parent is not None and of.owner is None and id(of.node) not in around
                own = isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"
                if (ways and outer) or (own and of.receiver is not None):
                    yield node

    def too_long(self, node: ast.stmt) -> bool:
        """Whether a statement has a table of numbers that is too long to be said where it is read, or sets a part of
        one that statements change, so that what it has is not said there."""
        targets = getattr(node, "targets", [])
        names = (getattr(part, "id", getattr(part, "attr", "")) for one in targets for part in ast.walk(one))
        if any(one in self.unsaid for one in names) or sets_held(targets, self.flow, self.held, self.read_alone):
            return True
        value = self.flow.value(node.value) if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value else None
        return isinstance(value, DictValue) and is_known(value) and len(repr(known(value))) > LONGEST_WORD

    def _tables(self, statement: Statement) -> Iterator[str]:
        """The short lists and tables that its calls are given by name."""
        given = (one for call in statement.calls for one in (*call.args, *(k.value for k in call.keywords)))
        named = [one.value if isinstance(one, ast.Starred) else one for one in given]
        named += [statement.node.iter] if isinstance(statement.node, (ast.For, ast.AsyncFor)) else []
        named = [one.func.value if getattr(getattr(one, "func", one), "attr", "") == "copy" else one for one in named]
        for one in (one for one in named if isinstance(one, (ast.Name, ast.Attribute, ast.Subscript))):
            value, of = self.flow.value(one), root(one) if isinstance(one, ast.Subscript) else one
            name = getattr(of, "id", getattr(of, "attr", ""))
            varied = id(one) in self.flow.interpreter.varied or name in self.changing
            if isinstance(value, (ListValue, DictValue)) and not varied and not self.moves(one):
                text = repr(known(value))
                if is_known(value) and known(value) and len(text) <= LONGEST_WORD:
                    yield f"{ast.unparse(one)} is {text}"

    def moves(self, node: ast.AST) -> bool:
        """Whether a name, an attribute or an element may have another value whenever it is read."""
        if isinstance(node, ast.Name):
            return node.id in self.each or any(node.id == name for _, name in self.names) or bool(self._several(node))
        if isinstance(node, ast.Attribute):
            written = (part for one in self.flow.options for target in _targets(one) for part in ast.walk(target))
            of_line = isinstance(self.flow.value(node.value), ParsedArguments)  # args.k is not self.k
            stays = of_line and all(getattr(part, "attr", "") != node.attr for part in written)
            return not stays and (node.attr in self.attributes or node.attr in self.set_again)
        return isinstance(node, ast.Subscript) and self.moves(node.value)

    def _several(self, node: ast.Name) -> list[str]:
        """The values of a name that has one or another by a condition that reading does not decide, each as text, ""
        for what is no number or string; nothing where it has one value."""
        ways = [one for one in self.flow.reads.get(id(node), ()) if one.way == IS and one.value is not None]
        reached = self.flow.interpreter.reached
        ranks = {id(one): reached.get(id(one.statement.node), (0, ()))[0] for one in ways}
        live = [one for one in ways if CERTAINTIES[ranks[id(one)]] != OPTION]
        values = sorted({_text(self.flow, one) for one in live})
        return values if len({ranks[id(one)] for one in live}) > 1 and len(values) > 1 else []

    def starts_anew(self, statement: Statement) -> bool:
        """Whether it sets such a counter again, in a method or in a round of a loop, or a name for the next round."""
        targets = _targets(statement)
        if id(statement) in self.carried:
            return True
        if _is_method(statement) and any(isinstance(one, ast.Attribute) and self.of(one) for one in targets):
            return True
        value = getattr(statement.node, "value", None) or ast.Pass()
        called = {id(root(part.func)) for part in ast.walk(value) if isinstance(part, ast.Call)}
        reads = any(isinstance(part, ast.Name) and id(part) not in called for part in ast.walk(value))
        if not _in_a_loop(statement) or reads:  # what is read may be new by itself
            return False
        parts = [part for one in targets for part in ast.walk(one)]
        names = {(id(statement.function), part.id) for part in parts if isinstance(part, ast.Name)}
        filled = bool(names & (self.names | self.filled))
        return filled or any(getattr(one, "attr", "") in self.changing for one in parts)


def _changing(flow: Flow) -> frozenset[str]:
    found = [s for s in flow.statements if any(one.way == ADDS for one in s.defines)]
    calls = [call for s in found if isinstance(s.node, ast.Assign) for call in s.calls]
    own = [part for call in calls for part in (*flow.writes(call), getattr(call.func, "value", call.func))]
    each = (s.node.targets if isinstance(s.node, ast.Assign) and s.calls else s.nodes for s in found)
    parts = (node for part in (*own, *(part for nodes in each for part in nodes)) for node in ast.walk(part))
    return frozenset(getattr(node, "id", getattr(node, "attr", "")) for node in parts) - {""}


def _unsaid(flow: Flow, live: set[int], changing: frozenset[str]) -> frozenset[str]:
    each = [s for s in flow.statements if id(s) in live]
    unread = (call for s in each for call in s.calls if flow.function_of(call) is None and not flow.passed(call.func))
    given = [one for call in unread for one in (*call.args, *(k.value for k in call.keywords))]
    added = [s.node.target for s in each if isinstance(s.node, ast.AugAssign)]  # to a part of a table
    given += [one.value for one in added if isinstance(one, ast.Subscript)]
    return changing & {
        getattr(one, "id", getattr(one, "attr", "")) for one in given if isinstance(flow.value(one), DictValue)
    }


def _filled(flow: Flow) -> frozenset[tuple[int, str]]:
    found: set[tuple[int, str]] = set()
    for statement in flow.statements:
        value = (
            getattr(statement.node, "value", None) if isinstance(statement.node, (ast.Assign, ast.AnnAssign)) else None
        )
        read = {part.id for part in ast.walk(value or ast.Pass()) if isinstance(part, ast.Name)}
        written = {part.id for one in _targets(statement) for part in ast.walk(one) if isinstance(part, ast.Name)}
        found |= {(id(statement.function), name) for name in read & written}
        for node in (one for one in statement.nodes if isinstance(one, ast.Name)):
            changes = (one.statement for one in flow.reads.get(id(node), ()) if one.way == ADDS)
            found |= {(id(one.function), node.id) for one in changes}
    return frozenset(found)


def _carried(flow: Flow) -> dict[int, dict[str, str]]:
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
                    first = [other for other in ways if not shared & {id(head) for head in other.statement.around}]
                    found.setdefault(id(one.statement), {})[node.id] = _text(flow, *first) if len(first) == 1 else ""
    return found


def _text(flow: Flow, definition: Definition) -> str:
    """The number or short string that a definition binds, as text; "" for anything else."""
    value = definition.value
    for index in definition.path:
        value = value.elts[index] if isinstance(value, (ast.Tuple, ast.List)) and index < len(value.elts) else None
    found = flow.value(value) if value is not None else None
    plain = isinstance(found, Constant) and isinstance(found.value, (int, float, str))
    return shortened(repr(known(found)), 60) if plain else ""


def _targets(statement: Statement) -> list[ast.expr]:
    found = getattr(statement.node, "targets", [getattr(statement.node, "target", None)])
    return [one for one in found if one is not None]


def _is_method(statement: Statement) -> bool:
    """Whether it stands in a method that may run more than once."""
    return statement.owner is not None and getattr(statement.function, "name", "__init__") != "__init__"


def _in_a_loop(statement: Statement) -> bool:
    return any(isinstance(head.node, LOOPS) for head in statement.around)
