"""What of a script reaches its training: the statements whose values do, and the objects and methods that may run."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice

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
    known,
)
from ..read_script.interpreter import CERTAINTIES, OPTION, UNCALLED
from ..read_script.syntax import ALTERS, defined_alone
from .data_flow import ADDS, EACH, FUNCTIONS, GIVEN, INNER, IS, MOST_BEHIND, Definition, Flow, Statement
from .passed_over import ENVIRONMENT, LEAVING_FUNCTIONS, decorators, matches, name_of, reason
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
    found |= {name for one in statements if flow is not None for name in by_computed_names(flow, one)}
    constants = (node.value for node in looked_up if isinstance(node, ast.Constant))
    found |= {*listed} | {value for value in constants if isinstance(value, str)}
    imports = (name for one in statements if isinstance(one.node, ast.ImportFrom) for name in one.node.names)
    return found | {name.name for name in imports if name.asname in found}


def by_computed_names(flow: Flow, statement: Statement) -> set[str]:
    """The functions that a statement may call by a name that it computes, or torch may; a class that its base lists:
    `getattr(one, f"on_{when}")(self)`, `methodcaller(name)(one)`, `eval(name)()`, `for of in Base.__subclasses__()`."""
    found: set[str] = set()
    for call in statement.calls:
        of, named = _looked_up(call)
        plain = isinstance(flow.value(of), (ParsedArguments, LibraryName, LibraryObject, DictValue)) if of else False
        if named is None or plain or not _may_call(flow, statement, call):
            continue
        patterns = [re.compile(text) for text in _texts(flow, named)]
        found |= {name for name in _names_of(flow, of) if any(one.fullmatch(name) for one in patterns)}
        run = known(flow.value(named) or Value()) if getattr(call.func, "id", "") in ("eval", "exec") else None
        found |= {*re.findall(r"[^\W\d]\w*", run)} if isinstance(run, str) else set()
    if isinstance(statement.node, ast.ClassDef) and (made := flow.class_of(statement.node)) is not None:
        bases = [one for one in made.lineage() if isinstance(one, ScriptClass)]
        listed = any(one.node.name in _listing(flow) or one.find("__init_subclass__") for one in bases)
        found |= {statement.node.name} if listed else set()
        found |= {*BY_TORCH} if (made.library_base() or "").startswith("torch.optim.") else set()
    return found


BY_TORCH = ("get_lr", "_get_closed_form_lr", "step")  # methods of schedules and optimizers that torch calls


def _looked_up(call: ast.Call) -> tuple[ast.expr | None, ast.expr | None]:
    """The object that a call looks something up in, and the expression of its name; None where it does neither."""
    match call.func:
        case ast.Name("getattr") if len(call.args) > 1 and not isinstance(call.args[1], ast.Constant):
            return call.args[0], call.args[1]
        case ast.Attribute(of, "__getattribute__") if call.args:
            return of if len(call.args) == 1 else call.args[0], call.args[-1]
        case ast.Name("methodcaller" | "attrgetter" | "eval" | "exec") | ast.Attribute(
            _, "methodcaller" | "attrgetter"
        ) if call.args:
            return None, call.args[0]
    return None, None


def _may_call(flow: Flow, statement: Statement, call: ast.Call) -> bool:
    """Whether what is looked up may be called: at once, by a name that it gets, or by what gets it."""
    printed = getattr(getattr(statement.alone, "func", None), "id", "") in (*LEAVING_FUNCTIONS, "print")
    inner = {id(part) for one in statement.calls for part in (*one.args, *one.keywords)} if printed else set()
    if isinstance(flow.value(call), (Constant, ListValue, DictValue)):
        return False
    targets = [t for t in getattr(statement.node, "targets", []) if isinstance(t, ast.Name)]
    if getattr(statement.node, "value", None) is not call or not targets:
        return id(call) not in inner and not isinstance(statement.node, (ast.AugAssign, ast.AnnAssign))
    of = flow.inside_of.get(id(statement.function), ()) if statement.function is not None else flow.statements
    used = [node for one in of for node in one.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    called = {id(one.func) for each in of for one in each.calls}
    names = {one.id for one in targets}
    return any(node.id in names and id(node) in called for node in used)


def _names_of(flow: Flow, of: ast.expr | None) -> Iterator[str]:
    """The names of the functions that an object may have: of its class, of a file, or of any class where it is not
    known."""
    value = flow.value(of) if of is not None else None
    made = value.of if isinstance(value, ScriptObject) else value
    classes = [one for one in made.lineage() if isinstance(one, ScriptClass)] if isinstance(made, ScriptClass) else []
    own = {id(one.node) for one in classes}
    for one in flow.statements:
        if not isinstance(one.node, (*FUNCTIONS, ast.ClassDef)):
            continue
        inside = id(one.owner) in own if own else one.owner is not None
        top = isinstance(value, ScriptModule) and one.owner is None and one.function is None
        if top or (inside and not isinstance(value, ScriptModule)):
            yield one.node.name


def _texts(flow: Flow, node: ast.expr, depth: int = 0) -> list[str]:
    """Patterns of the strings that an expression may be; any string where reading cannot tell."""
    value, parts = flow.value(node), list[ast.expr]()
    if isinstance(node, ast.Constant) or (isinstance(value, Constant) and id(node) not in flow.interpreter.varied):
        return [re.escape(str(known(value or Value(), getattr(node, "value", ""))))]
    if isinstance(node, ast.JoinedStr):
        parts = [one.value if isinstance(one, ast.FormattedValue) else one for one in node.values]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [node.left, node.right]
    if parts:
        return ["".join(f"({'|'.join(_texts(flow, one, depth + 1))})" for one in parts)]
    found: list[ast.expr | None] = []
    for one in flow.written(node) if depth < DEEPEST else ():
        literal = isinstance(one.value, (ast.List, ast.Tuple, ast.Set))
        if one.way == GIVEN:
            found += flow.arguments_of(one)
        elif one.way in (EACH, INNER) and literal and not one.path:
            found += one.value.elts  # type: ignore[union-attr]
        else:
            found.append(one.value if one.way == IS and not one.path else None)
    texts = [text for one in found for text in ([".*"] if one is None else _texts(flow, one, depth + 1))]
    return [*dict.fromkeys(texts)] or [".*"]


DEEPEST = 6  # names behind a name


@lru_cache(maxsize=2)
def _listing(flow: Flow) -> frozenset[str]:
    """The classes whose subclasses a script lists: `Base.__subclasses__()`."""
    found = (node.func for one in flow.statements for node in one.calls)
    of = (f.value for f in found if isinstance(f, ast.Attribute) and f.attr == "__subclasses__")
    return frozenset(getattr(one, "attr", getattr(one, "id", "")) for one in of)


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


def with_defaults(flow: Flow, reaches: Callable[[Statement], bool], driven: set[int]) -> dict[int, str]:
    """Definition (its id) -> words, of functions that nothing that was read calls, whose statements reach training, and
    whose parameters have values by default, which no call shows; driven: the classes whose methods a library calls."""
    found: dict[int, str] = {}
    for statement, node in ((one, one.node) for one in flow.statements if isinstance(one.node, FUNCTIONS)):
        uncalled = id(node) not in flow.calls and id(statement.owner) not in driven
        arguments: ast.arguments = node.args
        given = [*arguments.defaults, *(one for one in arguments.kw_defaults if one is not None)]
        usual = [one for one in given if not isinstance(one, ast.Constant) or type(one.value) in (int, float, str)]
        inside = flow.inside_of.get(id(node), ()) if uncalled and usual else ()
        ranks = (flow.interpreter.reached.get(id(one.node), (0, ()))[0] for one in inside if reaches(one))
        if any(CERTAINTIES[rank] == UNCALLED for rank in ranks):
            found[id(statement)] = UNCALLED_DEFAULTS
    return found


UNCALLED_DEFAULTS = "nothing that was read calls this: these are its defaults"


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


def named(flow: Flow) -> list[Statement]:
    """The statements without those of functions that nothing names."""
    return [one for one in flow.statements if id(one.node) not in flow.interpreter.unnamed]


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
