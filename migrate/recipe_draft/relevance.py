"""What of a script reaches its training: the statements whose values do, the objects and methods that may run, and what
the calls of a function hand over."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from ...printable import shortened
from ..read_script.abstract_values import (
    Constant,
    DictValue,
    LibraryName,
    LibraryObject,
    ListValue,
    ParsedArguments,
    ScriptClass,
    ScriptFunction,
    ScriptModule,
    ScriptObject,
    Value,
    is_known,
    known,
)
from ..read_script.interpreter import CERTAINTIES, LONGEST, OPTION, PERHAPS, UNCALLED, joined
from ..read_script.syntax import ALTERS, defined_alone
from .data_flow import ADDS, EACH, FUNCTIONS, GIVEN, IS, LOOPS, MOST_BEHIND, Definition, Flow, Statement
from .passed_over import ENVIRONMENT, LEAVING_FUNCTIONS, decorators, matches, name_of, reason
from .recipe_entries import LONGEST_WORD
from .step_order import changed_later
from .trained_model import changing

TAKES = ("append", "add", "insert", "put", "appendleft", "setdefault", "update")  # methods that keep what they get
LAUNCHERS = ("torch.multiprocessing.spawn", "accelerate.notebook_launcher", "xmp.spawn")  # they give back no result


def reach(flow: Flow, ends: Iterable[Statement]) -> set[int]:
    """The statements (their ids) whose values reach these.

    The call of a function that one of them stands in is among them, but not what that function returns, if nothing that
    is among them reads it: a training function's mean loss reaches only prints.
    """
    waiting: list[tuple[Statement, ast.Call | None]] = [(end, None) for end in ends]
    kin = Kinship(flow)
    read: set[int] = set()  # with all that they read
    called: set[tuple[int, int]] = set()  # without the result of this call
    while waiting:
        statement, call = waiting.pop()
        if id(statement) in read or (call is not None and (id(statement), id(call)) in called):
            continue
        if call is None:
            read.add(id(statement))
        else:
            called.add((id(statement), id(call)))
        waiting += [(head, None) for head in statement.around]
        for source, definition, by_call in _sources(flow, statement, call, kin):
            by = _changed_by(flow, definition) if definition is not None else []
            waiting += [(source, one) for one in by or (by_call,)]
            waiting += [(one, None) for made in by for one in changing(flow, made, _changes)]
        if statement.function is not None and isinstance(statement.node, ast.stmt):
            waiting += [(caller, made) for caller, made, _ in flow.calls.get(id(statement.function), [])]
    return read | {statement for statement, _ in called}


def _changed_by(flow: Flow, definition: Definition) -> list[ast.Call]:
    """The calls of the script's functions that change an object which they are given, where a definition is that."""
    of = definition.statement
    if definition.way != ADDS or definition.value is not None or isinstance(of.alone, ast.Call):
        return []
    return [call for call in of.calls if isinstance(flow.function_of(call), FUNCTIONS) and flow.writes(call)]


Source = tuple[Statement, Definition | None, ast.Call | None]  # the last: only this call counts, not its result
Reached = tuple[Statement, ast.Call | None]


def _sources(flow: Flow, statement: Statement, without: ast.Call | None, kin: Kinship) -> Iterator[Source]:
    """The statements that wrote what one reads, each with how, but not the result of one call; those of functions
    passed on, and those that change something in a function that is called for this."""
    yield from ((found, None, None) for found in _others(flow, statement, without))
    calls = statement.calls if without is None else []
    yield from ((one, None, by) for call in calls for one, by in _changed_in(flow, call, statement, set()))
    called = {id(call.func) for call in statement.calls}
    for node in statement.nodes:
        for definition in flow.written(node):
            if definition.way != GIVEN and _may_be_of(flow, node, definition, id(node) in called, kin):
                yield definition.statement, definition, None


def _others(flow: Flow, statement: Statement, without: ast.Call | None) -> Iterator[Statement]:
    """The statements that a statement reaches by what it calls and passes on."""
    called = {id(call.func) for call in statement.calls}
    launches = isinstance(statement.alone, ast.Call) and matches(name_of(flow, statement.alone), LAUNCHERS)
    for node in statement.nodes:
        if isinstance(node, ast.Call):
            function = flow.function_of(node)
            inside = flow.inside_of.get(id(function), []) if function is not None else []
            given = [] if node is without else flow.given_by(function)
            dropped = node is statement.alone  # nothing reads the result
            yield from (s for s, _ in given if s.calls or not dropped)
            if isinstance(function, ast.ClassDef):  # whoever gets the object may call what the script does not
                yield from (s for s in inside if not flow.calls.get(id(s.function)) or _is_special(s.function))
                yield from changed_later(flow, node, statement)
            yield from _set_before(flow, node) if function is None else ()
            kept = function is None and statement.alone is None and not flow.passed(node.func)
            yield from changed_later(flow, node, statement) if kept else ()
        passed_on = isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in called and not launches
        value = flow.value(node) if passed_on and isinstance(node, ast.expr) else None
        yield from flow.inside_of.get(id(value.node), []) if isinstance(value, ScriptFunction) else ()


def _changed_in(flow: Flow, call: ast.Call, of: Statement, seen: set[int]) -> Iterator[Reached]:
    """The statements of a function that may change an object, where nothing reads what a call of it gives; of one that
    only calls another function for what it gives, that call, without its result."""
    function = flow.function_of(call)
    if not isinstance(function, FUNCTIONS) or id(function) in seen or (call is not of.alone and not seen):
        return
    seen.add(id(function))
    for one in (one for one in flow.inside_of.get(id(function), []) if _changes(flow, one)):
        value, targets = getattr(one.node, "value", None), getattr(one.node, "targets", ())
        plain = isinstance(one.node, ast.Assign) and all(isinstance(target, ast.Name) for target in targets)
        others = any(flow.writes(inner) for inner in one.calls if inner is not value)
        if isinstance(value, ast.Call) and plain and not others and isinstance(flow.function_of(value), FUNCTIONS):
            yield one, value
            yield from _changed_in(flow, value, one, seen)
        else:
            yield one, None


def _kin(flow: Flow) -> dict[int, int]:
    """Each class (its id) with one that stands for all that it shares objects with, by the classes that derive from
    both; empty where attributes may be copied from object to object."""
    copies = any(getattr(s.node, "name", "") in ("__getattr__", "__getattribute__") for s in flow.statements)
    used = (getattr(node, "attr", getattr(node, "id", "")) for node in _nodes(flow))
    copies = copies or any(one in ("__dict__", "vars") for one in used)
    if copies or any(_looks_up(flow)):
        return {}
    found = {id(node): id(node) for node in flow.classes()}
    for of in filter(None, map(flow.class_of, flow.classes())):
        for base in (one for one in of.lineage() if isinstance(one, ScriptClass)):
            mine, other = found.get(id(of.node)), found.get(id(base.node))
            found = {node: mine if stands == other and mine else stands for node, stands in found.items()}
    return found


class Kinship:
    """Which of the script's classes an object may be of.

    An object of a class is made by a call that was read, and reaches an expression by names, attributes, parameters and
    results that were read; those that code elsewhere is given may be anything.
    """

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._kin = _kin(flow)
        self._outside = {self._kin.get(one, one) for one in called_from_elsewhere(flow)}
        called = {id(call.func) for one in flow.statements for call in one.calls}
        named = (n for n in _nodes(flow) if isinstance(n, (ast.Name, ast.Attribute)) and id(n) not in called)
        self._handed = {id(of.node) for node in named if isinstance(of := flow.value(node), ScriptFunction)}
        self._found: dict[int, set[int] | None] = {}

    def may_hold(self, node: ast.expr, owner: ast.ClassDef) -> bool:
        """Whether an expression may have an object of this class, or of one that shares objects with it."""
        mine = self._kin.get(id(owner))
        if mine is None or mine in self._outside:
            return True
        if id(node) not in self._found:
            self._found[id(node)] = self._behind(node)
        found = self._found[id(node)]
        return found is None or mine in found

    def _behind(self, node: ast.expr) -> set[int] | None:
        """What stands for the classes of which an expression may have an object; None where that may be any."""
        found: set[int] = set()
        for count, one in enumerate(self.flow.behind(node)):
            if count >= MOST_BEHIND - 1:
                return None
            for part in ast.walk(one):
                value = self.flow.value(part) if isinstance(part, ast.expr) else None
                of = value.of if isinstance(value, ScriptObject) else value
                if isinstance(of, ScriptClass):
                    found |= {self._kin.get(id(of.node), 0)}
                own = self.flow.of.get(id(part))
                if _is_self(part) and own is not None and own.owner is not None:
                    found |= {self._kin.get(id(own.owner), 0)}
                elif self._is_open(part, value):
                    return None
        return found

    def _is_open(self, part: ast.AST, value: Value | None) -> bool:
        """Whether a part of an expression may be something that its definitions do not show."""
        unknown = value is None or type(value) is Value
        if isinstance(part, ast.Call):
            made_by = self.flow.value(part.func)
            owner = self.flow.value(part.func.value) if isinstance(part.func, ast.Attribute) else None
            known = isinstance(owner, (LibraryName, LibraryObject, ListValue, DictValue, Constant))
            known = known or hasattr(builtins, getattr(part.func, "id", ""))
            return unknown and (made_by is None or type(made_by) is Value) and not known
        written = list(self.flow.written(part))
        if isinstance(part, ast.Name):
            bare = not written and unknown and not hasattr(builtins, part.id)
            return bare or any(map(self._given_elsewhere, written))
        owner = self.flow.value(part.value) if isinstance(part, ast.Attribute) else None
        read = isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load)
        foreign = not isinstance(owner, (LibraryName, LibraryObject, ListValue, DictValue))
        return read and unknown and not written and foreign

    def _given_elsewhere(self, definition: Definition) -> bool:
        """Whether a parameter may have an argument that was not read."""
        function = id(definition.statement.node)
        return definition.way == GIVEN and (function not in self.flow.calls or function in self._handed)


def _nodes(flow: Flow) -> Iterator[ast.AST]:
    yield from (node for one in flow.statements for node in one.nodes)


def _looks_up(flow: Flow) -> Iterator[ast.Call]:
    """The calls that look up an attribute, which may be a method, by a name that reading cannot tell."""
    calls = [node for one in flow.statements for node in one.calls]
    read = {id(a) for call in calls if getattr(call.func, "id", "") in (*LEAVING_FUNCTIONS, "print") for a in call.args}
    for call in calls:
        named = getattr(call.func, "id", "") == "getattr" and len(call.args) > 1 and id(call) not in read
        owner = flow.value(call.args[0]) if named and not isinstance(call.args[1], ast.Constant) else DictValue({})
        if not isinstance(owner, (ParsedArguments, LibraryName, ScriptModule, DictValue)):
            yield call


def _may_be_of(flow: Flow, node: ast.AST, definition: Definition, called: bool, kin: Kinship) -> bool:
    """Whether a definition of an attribute may be that of the object that it is read from; called: whether what is read
    is called. A number is not called; and an attribute of `self` is none of another class's objects."""
    if not isinstance(node, ast.Attribute):
        changed = definition.way == ADDS and isinstance(definition.statement.node, ast.Expr)
        return not changed or not all(_counts(one) for one in flow.written(node) if one.way != ADDS)
    if definition.way == ADDS and definition.statement.alone and isinstance(flow.value(node), Constant):
        return False  # no call changes a number
    if called and (isinstance(definition.statement.node, ast.AugAssign) or isinstance(definition.value, ast.Constant)):
        return False
    owner, own = definition.statement.owner, flow.of.get(id(node))
    written = [one for one in definition.statement.nodes if isinstance(one, ast.Attribute) and one.attr == node.attr]
    if owner is None or own is None or not written or not all(_is_self(one.value) for one in written):
        return True
    return kin.may_hold(node.value, owner)


def _counts(definition: Definition) -> bool:
    """Whether a definition gives a number or a string, which no call changes: of a loop over a range, say."""
    value = definition.value
    if definition.way == EACH and isinstance(value, ast.Call):
        name = getattr(value.func, "id", "")
        return (name == "range" and not definition.path) or (name == "enumerate" and definition.path == (0,))
    return definition.way == IS and not definition.path and isinstance(value, ast.Constant)


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def is_path(node: ast.AST) -> bool:
    """Whether this is a name, an attribute or a constant."""
    return isinstance(node, (ast.Name, ast.Attribute, ast.Constant))


def _is_special(function: ast.AST | None) -> bool:
    return (name := getattr(function, "name", "")).startswith("__") and name != "__call__"


def _changes(flow: Flow, statement: Statement) -> bool:
    """Whether it may change an object: by an attribute, an element, `+=`, or a call that is the statement."""
    targets = getattr(statement.node, "targets", [getattr(statement.node, "target", None)])
    if len(targets) == 1 and getattr(targets[0], "attr", "") == "print":
        return False  # of builtins
    if len(targets) == 1 and isinstance(targets[0], ast.Subscript):
        table, key = flow.value(targets[0].value), targets[0].slice
        named = isinstance(key, ast.Constant) and matches(str(key.value), ENVIRONMENT)
        if named and isinstance(table, LibraryName) and table.name == "os.environ":
            return False
    written = any(isinstance(p, (ast.Attribute, ast.Subscript)) for t in targets for p in getattr(t, "elts", [t]))
    written = written or (isinstance(statement.node, ast.AugAssign) and not _only_counts(flow, statement))
    if written or not isinstance(statement.alone, ast.Call):
        return written or any(map(flow.writes, statement.calls))
    of = flow.value(getattr(statement.alone.func, "value", statement.alone))
    own = isinstance(of, ScriptObject) and not of.of.family() and flow.function_of(statement.alone) is not None
    if own and sum(one.way == ADDS for one in statement.defines) < 2:
        return False  # a method that changes its object only, whose attributes are followed by themselves
    return not flow.passed(statement.alone.func)


def _only_counts(flow: Flow, statement: Statement) -> bool:
    """Whether `+=` adds to a name that begins with a number, and that nothing else holds: no other object shares it."""
    target = getattr(statement.node, "target", None)
    begins = [one for one in flow.reads.get(id(target), ()) if one.way != ADDS]
    if not isinstance(target, ast.Name) or id(statement) in flow.rebinds or not begins:
        return False
    shared = set[str]()
    for one in flow.inside_of.get(id(statement.function), ()):
        given = [part for call in one.calls if getattr(call.func, "attr", "") in TAKES for part in call.args]
        given += [part for node in one.nodes for part in (*getattr(node, "elts", ()), *getattr(node, "values", ()))]
        plain = isinstance(one.node, (ast.Assign, ast.AnnAssign)) or any(isinstance(n, ast.Yield) for n in one.nodes)
        given += [value for node in (one.node, *one.nodes) if plain and (value := getattr(node, "value", None))]
        shared |= {part.id for part in given if isinstance(part, ast.Name)}
    return all(map(_counts, begins)) and target.id not in shared


def only_in_parts(flow: Flow, part: Callable[[Statement], bool]) -> set[int]:
    """The functions (their ids) that nothing but methods of models and data sets names, or functions of this kind.

    part: whether a statement stands in such a class.
    """
    users: dict[str, list[Statement]] = {}
    for statement in flow.statements:
        for name in names_in([statement]):
            users.setdefault(name, []).append(statement)
    imports = [name for one in flow.statements if isinstance(one.node, ast.ImportFrom) for name in one.node.names]
    for alias in imports:
        users[alias.name] = users.get(alias.name, []) + users.get(alias.asname or "", [])
    functions = (one for one in flow.statements if isinstance(one.node, FUNCTIONS) and one.owner is None)
    named = {id(one.node): name for one in functions if (name := getattr(one.node, "name", "")) in users}
    found: set[int] = set()
    while True:
        waiting = ((function, name) for function, name in named.items() if function not in found)
        inner = ((function, [one for one in users[name] if not part(one)]) for function, name in waiting)
        more = {function for function, by in inner if all(id(one.function) in found | {function} for one in by)}
        if not more:
            return found
        found |= more


def names_in(statements: Iterable[Statement], flow: Flow | None = None) -> set[str]:
    """The names and attributes in statements, and what is imported under one of them. With a flow, those of a function
    that only its own file can mean have the file before them, and what a library has is left out."""
    statements = list(statements)
    parts = [node for one in statements for node in one.nodes]
    left = {id(part) for node in parts if flow is not None for part in _not_chosen(flow, node)}
    nodes = [node for node in parts if id(node) not in left]
    own = {one.source.shown: one.source for one in statements} if flow is not None else {}
    alone = {file: defined_alone(source.tree) for file, source in own.items()}
    each = [(one.source.shown, node) for one in statements for node in one.nodes if isinstance(node, ast.Name)]
    each = [(file, node) for file, node in each if id(node) not in left]
    found = {f"{file}:{node.id}" if node.id in alone.get(file, ()) else node.id for file, node in each}
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    found |= {node.attr for node in attributes if flow is None or not isinstance(flow.value(node), LibraryName)}
    calls = (node for node in nodes if isinstance(node, ast.Call))
    looked_up = (one.args[1] for one in calls if getattr(one.func, "id", "") == "getattr" and one.args[1:])
    lists = {one.source.shown for one in statements if any(map(_lists_a_file, one.calls))}
    listed = [name for one in statements if one.source.shown in lists for name in _named_at_top(one)]
    marks = ((one, does) for one in statements if flow is not None for *_, does in decorators(flow, one))
    found |= {getattr(one.node, "name", "") for one, does in marks if does != ALTERS}
    constants = (node.value for node in looked_up if isinstance(node, ast.Constant))
    found |= {*listed} | {value for value in constants if isinstance(value, str)}
    imports = (name for one in statements if isinstance(one.node, ast.ImportFrom) for name in one.node.names)
    return found | {name.name for name in imports if name.asname in found}


def _not_chosen(flow: Flow, node: ast.AST) -> list[ast.AST]:
    """What is in the side of `a if args.small else b` that the defaults do not choose."""
    sides = [node.body, node.orelse] if isinstance(node, ast.IfExp) else []
    ranks = {id(one): flow.interpreter.values.get(id(one), (0, None))[0] for one in (node, *sides)}
    never = CERTAINTIES.index(OPTION)
    return [part for one in sides if ranks[id(one)] == never != ranks[id(node)] for part in ast.walk(one)]


def _lists_a_file(call: ast.Call) -> bool:
    """Whether a call gives all that a file has by name, so that a class of it may be called: globals()."""
    members = getattr(call.func, "attr", "") == "getmembers" and any("sys.modules" in ast.unparse(a) for a in call.args)
    return members or (getattr(call.func, "id", "") in ("globals", "vars") and not call.args)


def _named_at_top(statement: Statement) -> list[str]:
    """What a statement at the top of its file imports or defines."""
    node = statement.node
    defined = [node.name] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and statement.function is None else []
    return [one.asname or one.name for one in node.names] if isinstance(node, ast.ImportFrom) else defined


KNOWN = (
    "print",
    "len",
    "str",
    "repr",
    "isinstance",
    "type",
    "id",
    "hasattr",
    "getattr",
    "setattr",
    "super",
    "callable",
)
PLAIN_MARKS = ("abc.", "functools.", "torch.", "contextlib.", "typing.")  # decorators that call no methods
PLAIN_BASES = ("object", "abc.", "enum.", "typing.", "collections.", "torch.")  # these read no options, call no hooks


def called_from_elsewhere(flow: Flow) -> set[int]:
    """The classes (their ids) whose methods code that was not read may call: those that derive from a library's class,
    those that nothing that was read makes an object of, and those of which something is given to such code. All of
    them where the script looks up a method by a name that reading cannot tell."""
    nodes = [node for one in flow.statements for node in one.calls]
    made = {id(one.node) for made in flow.interpreter.made for one in made.of.lineage() if isinstance(one, ScriptClass)}
    if any(_looks_up(flow)):
        return {id(node) for node in flow.classes()}
    found = set()
    for node in flow.classes():
        of = flow.class_of(node)
        base = (of.library_base() if of is not None else None) or "object"
        marks = [flow.value(one) for part in node.body for one in getattr(part, "decorator_list", ())]
        kept = any(isinstance(one, ScriptFunction) for one in marks)  # a decorator may hand its method on
        kept = kept or any(isinstance(one, LibraryName) and not one.name.startswith(PLAIN_MARKS) for one in marks)
        found |= {id(node)} if kept or id(node) not in made or not base.startswith(PLAIN_BASES) else set()
    for call in nodes:
        called = flow.value(call.func)
        name = called.name if isinstance(called, LibraryName) else getattr(call.func, "id", "")
        own = isinstance(called, (ScriptFunction, ScriptClass)) or (name and (name in KNOWN or reason(name)))
        for given in () if own or name.startswith("torch.") else (*call.args, *(k.value for k in call.keywords)):
            for value in _values_in(flow.value(given)):
                its = value.of if isinstance(value, ScriptObject) else value
                lineage = its.lineage() if isinstance(its, ScriptClass) else ()
                found |= {id(one.node) for one in lineage if isinstance(one, ScriptClass)}
    return found


def _values_in(value: Value | None, depth: int = 0) -> Iterator[Value]:
    """A value, and those in its lists and tables."""
    if value is not None:
        yield value
    inside = value.items if isinstance(value, ListValue) else getattr(value, "pairs", {}).values()
    for one in islice(inside, 100) if depth < 3 else ():
        yield from _values_in(one, depth + 1)


def _set_before(flow: Flow, call: ast.Call) -> Iterator[Statement]:
    """The statements that set an argument of the command line, or what a class or an object of settings has, where a
    call gets all of these at once, so that it may read any of them."""
    given = [*call.args, *(k.value for k in call.keywords)]
    for inner in list(given):
        if isinstance(inner, ast.Call) and getattr(inner.func, "id", "") in ("vars", "dict", "asdict"):
            given += inner.args
    found = (flow.value(getattr(one, "value", one) if getattr(one, "attr", "") == "__dict__" else one) for one in given)
    for value in found:
        if isinstance(value, (ParsedArguments, ScriptObject, ScriptClass, ScriptModule)):
            yield from (statement for statement, of in flow.stores if flow.value(of) is value)


# functions that are called at several places, and values that are said


def named(flow: Flow) -> list[Statement]:
    """The statements without those of functions that nothing names."""
    return [one for one in flow.statements if id(one.node) not in flow.interpreter.unnamed]


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


def of_one_class(flow: Flow, definition: Definition, reader: Statement | None, node: ast.expr) -> bool:
    """Whether an attribute may be set for the object that it is read from: not by `self` in a class of another kind."""
    attributes = [one for one in definition.statement.nodes if isinstance(one, ast.Attribute)]
    written = [one for one in attributes if one.attr == getattr(node, "attr", "")]
    owners = definition.statement.owner, reader.owner if reader is not None else None
    if None in owners or any(getattr(one.value, "id", "") != "self" for one in written):
        return True
    classes = [of for one in owners if one and (of := flow.class_of(one))]
    kinds = [{id(base.node) for base in of.lineage() if isinstance(base, ScriptClass)} for of in classes]
    return len(kinds) < 2 or any(id(one) in kind for one, kind in zip(owners, kinds[::-1], strict=True))
