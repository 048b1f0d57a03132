"""Names for one tensor: views, what a layer changes in place, what is a tensor of its own.

What a tensor that is written into is a view of, is found by the calls that made it; that a layer such as
`nn.ReLU(inplace=True)` writes into its input, by the run. views.py writes the values back.

Which names may stand for one tensor where several ways lead, `StaleReads` follows.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ...source_files import literal, substitute
from ..observe.instrument import always_evaluated
from ..observe.observations import (
    ModuleKind,
    PlainKind,
    SizeKind,
    TensorKind,
    always,
    callees_of,
    kinds_of,
    observed,
    reached,
    replacing,
    set_callee,
    set_kinds,
)
from .context import row_of
from .graph_mode import place_of
from .initializers import SHARING, underlying_tensor

BLOCKS = ("body", "orelse", "finalbody")
CHANGED = "changed"  # attribute of the node of `x = self.act(x)`, which changes x under all of its names

IN_ORDER = {"view", "view_as", "squeeze", "unsqueeze", "unflatten"}  # all of the values, in their order
TURNING = {"t", "transpose", "swapaxes", "swapdims"}  # what the same call turns back
ALWAYS = {  # what surely shares it
    *("chunk", "split", "narrow", "select", "unbind", "expand", "expand_as", "diagonal", "unfold", "permute"),
    *("movedim", "detach", *IN_ORDER, *TURNING),
}


# modules that may give back what they are given
UNCHANGED = {f"module torch.nn.{name}" for name in ("Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d")}


def view_of(node: ast.expr) -> tuple[ast.expr, list[ast.Call]]:
    """The expression whose memory a tensor shares, at least sometimes, and the calls by which, the last one first:
    `y` of `y.view(-1)` and of `torch.squeeze(y, 0)`."""
    calls: list[ast.Call] = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        callees = callees_of(node)
        of_torch = node.func.attr in SHARING and all(name.startswith("torch.") for name in callees)
        if not of_torch and not (callees and UNCHANGED.issuperset(callees)):
            break
        method = _is_method_call(node)
        if not method and not node.args:
            break
        calls.append(node)
        node = node.func.value if method else node.args[0]
    return node, calls


def back(part: ast.expr, calls: list[ast.Call], whole: ast.expr) -> ast.expr | None:
    """The values of a view in the shape of the tensor that it is a view of; None where that is not known."""
    names = [call.func.attr for call in calls if isinstance(call.func, ast.Attribute)]
    kinds, found = kinds_of(whole), copy.deepcopy(calls[0])
    if {*names} <= IN_ORDER:
        sizes = [SizeKind(kind.rank) for kind in kinds if isinstance(kind, TensorKind)]
        shape = set_kinds(ast.Attribute(whole, "shape", ast.Load()), sizes)
        found = ast.Call(ast.Attribute(part, "reshape", ast.Load()), [shape], [])
        set_callee(found.func, "torch.Tensor.reshape")
        return set_kinds(found, kinds)
    if (
        len(names) != 1
        or names[0] not in TURNING
        or any(isinstance(n, ast.Call) for one in found.args for n in ast.walk(one))
    ):
        return None
    if isinstance(found.func, ast.Attribute) and _is_method_call(found):
        found.func.value = part
    else:
        found.args[0] = part
    return set_kinds(found, kinds if callees_of(found) else [])  # what did not run is read


OF_MODULE = "of_module"  # attribute of the node of `F.relu(x)`, whose function no local name has


def note_functions(function: ast.FunctionDef, local: set[str]) -> None:
    """Note on calls whether they are of functions of a module, which code that did not run does not tell."""
    for call in ast.walk(function):
        root = call.func if isinstance(call, ast.Call) else None
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and isinstance(call, ast.Call) and root.id not in local:
            vars(call)[OF_MODULE] = True


def _is_method_call(call: ast.Call) -> bool:
    """Whether it is called on a tensor; of code that did not run it is taken for one."""
    callees = callees_of(call)
    return all(name.startswith("torch.Tensor.") for name in callees) and (bool(callees) or OF_MODULE not in vars(call))


def stored_names(statement: ast.AST) -> set[str]:
    """The names that a statement, or one inside of it, assigns."""
    written = {id(node.target) for node in ast.walk(statement) if isinstance(node, ast.AugAssign)}
    names = (node for node in ast.walk(statement) if isinstance(node, ast.Name) and id(node) not in written)
    return {node.id for node in names if isinstance(node.ctx, (ast.Store, ast.Del))}


def given_anew(name: str, statement: ast.stmt, function: ast.FunctionDef) -> bool:
    """Whether a function's body gives a name another value before a statement, so that it is no argument any more."""
    before = [n for n in function.body if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.lineno < statement.lineno]
    called = [callees_of(n.value) if isinstance(n.value, ast.Call) else [] for n in before if name in stored_names(n)]
    kept = {*SHARING, "dropout", "dropout1d", "dropout2d", "dropout3d", "identity"}  # these may return what they get
    return any(kept.isdisjoint(one.rpartition(".")[2].lower() for one in names) for names in called)


@dataclass(frozen=True)
class View:
    """A name for a part of the tensor `base`: what the index picks, what the expression `made` gives, or all of it."""

    base: str
    index: ast.expr | None = None
    made: ast.expr | None = None

    def names(self) -> set[str]:
        """The names that it depends on."""
        inside = [node for part in (self.index, self.made) if part is not None for node in ast.walk(part)]
        return {self.base, *(node.id for node in inside if isinstance(node, ast.Name))}


def forget(views: dict[str, View], names: set[str]) -> None:
    """Remove the views that depend on names that have been assigned."""
    for name in [name for name, view in views.items() if names & {name, *view.names()}]:
        del views[name]


def views_of(statement: ast.stmt) -> Iterator[tuple[str, View]]:
    """The names that an assignment makes a part of a tensor, or all of it."""
    if not isinstance(statement, ast.Assign):
        return
    first, *others = statement.targets
    if isinstance(first, ast.Name):
        yield from ((one.id, View(first.id)) for one in others if isinstance(one, ast.Name))
    for target in statement.targets:
        pairs: list[tuple[ast.expr, ast.expr]] = [(target, statement.value)]
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = [*zip(target.elts, statement.value.elts, strict=False)]
        for one, value in pairs:
            match one, value:
                case ast.Name(id=name), ast.Name(id=base):
                    yield name, View(base)
                case ast.Name(id=name), ast.Subscript(value=ast.Name(id=base), slice=ast.Constant(str()) as index):
                    yield name, View(base, index)
                case ast.Name(id=name), ast.Subscript(value=ast.Name(id=base), slice=index) if is_basic(index):
                    yield name, View(base, index)
                case ast.Name(id=name), ast.Call() if isinstance(whole := view_of(value)[0], ast.Name):
                    yield name, View(whole.id, None, value)
                case ast.Tuple(elts=elts), ast.Call() if isinstance(whole := view_of(value)[0], ast.Name):
                    for number, each in enumerate(elts):
                        if isinstance(each, ast.Name):
                            yield each.id, View(whole.id, None, ast.Subscript(value, ast.Constant(number), ast.Load()))


def is_basic(index: ast.expr) -> bool:
    """Whether an index has only numbers and slices: for any other, torch makes a copy."""
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        isinstance(item, ast.Slice)
        or always(kinds_of(item), PlainKind)
        or isinstance(getattr(item.operand if isinstance(item, ast.UnaryOp) else item, "value", None), (int, type(...)))
        for item in items
    )


def read_behind(call: ast.Call, statement: ast.stmt) -> set[str]:
    """The names that stand in a statement behind a call."""
    end = (call.end_lineno or 0, call.end_col_offset or 0)
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and (n.lineno, n.col_offset) >= end}


def changes_too(statement: ast.stmt, other: str) -> str:
    """What is wrong with a statement that may write into a tensor of another name."""
    return f"{ast.unparse(statement)} may change `{other}` too, which is read afterwards"


LOST = "lost"  # attribute of a call's node: why its writing into an argument cannot be converted


def mark(view: View, name: str, *, unknown: bool = False) -> None:
    """Mark the call that makes a view as one that cannot be written, where it may give a tensor of its own, or where
    what is written into the view cannot be put back."""
    made = view.made.value if isinstance(view.made, ast.Subscript) else view.made
    calls = view_of(made)[1] if made is not None else []
    unsure = any(isinstance(call.func, ast.Attribute) and call.func.attr not in ALWAYS for call in calls)
    if calls and (unknown or unsure):
        text = f"{ast.unparse(calls[0])} may share its values with `{view.base}`, and one of the two is written into"
        refuse(calls[0], f"{text} before the other is read (`{name}`): write with an index, or use .clone()")


def refuse(call: ast.Call, why: str) -> None:
    """Let a call be one that cannot be written, whatever it calls."""
    vars(call)[LOST] = why
    vars(call.func).pop("observed", None)


class ChangedInPlace(NamedTuple):
    """A call that changes a tensor under a name, as that of a layer with `inplace=True` does; how: see `Observed`."""

    call: ast.Call
    name: ast.Name
    how: str

    def split(self, statement: ast.stmt) -> tuple[ast.stmt, ast.stmt] | None:
        """`x = self.act(x)`, and the statement with x in place of the call; None where that would not be the same."""
        if not self.how or not self.may_go_first(statement):
            return None
        first: ast.expr = self.call
        instead: ast.expr = replacing(ast.Name(self.name.id, ast.Load()), self.call)
        if self.how != "itself":  # the first layer of a Sequential
            layer = ast.Subscript(copy.deepcopy(self.call.func), ast.Constant(0), ast.Load())
            first = ast.Call(set_kinds(layer, []), [copy.deepcopy(self.name)], [])
            set_callee(layer, "module torch.nn.ReLU")
            set_kinds(first, kinds_of(self.call))
            instead = self.call
        if self.how == "rest":
            all_layers = set_kinds(copy.deepcopy(self.call.func), [ModuleKind("torch.nn.Sequential")])
            whole = ast.Subscript(all_layers, ast.Slice(ast.Constant(1), None, None), ast.Load())
            instead = replacing(ast.Call(whole, self.call.args, self.call.keywords), self.call)
        made = replacing(ast.Assign([ast.Name(self.name.id, ast.Store())], first), statement)
        ast.fix_missing_locations(made)
        made.end_lineno, made.end_col_offset = (
            statement.lineno,
            statement.col_offset,
        )  # what the statement reads is after
        left = substitute(statement, lambda node: instead if node is self.call else None)
        return made, ast.fix_missing_locations(left)

    def is_read(self, statement: ast.stmt, name: str) -> bool:
        """Whether the statement reads a name, but for what it has computed with it before the call."""
        return any(self._at_hand(node, statement) is not None for node in self._reads(statement, name))

    def _reads(self, statement: ast.stmt, name: str) -> list[ast.Name]:
        """Where the statement reads a name, but for the call itself and what is in it."""
        inside = {*ast.walk(self.call)}
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == name]
        return [node for node in names if isinstance(node.ctx, ast.Load) and node not in inside]

    def _at_hand(self, read: ast.Name, statement: ast.stmt) -> ast.expr | None:
        """What the call changes too where a name is read: behind the call the name, before it a name, or a view of it,
        that has been read and not yet computed with; None for anything else."""
        if (read.lineno, read.col_offset) >= (self.call.lineno, self.call.col_offset):
            return read
        around = [node for node in ast.walk(statement) if any(inner is self.call for inner in ast.walk(node))]
        waiting = [child for node in around for child in ast.iter_child_nodes(node) if child not in around]
        part = next((child for child in waiting if any(inner is read for inner in ast.walk(child))), None)
        whole, calls = view_of(part) if isinstance(part, ast.expr) else (None, [])
        shared = all(callees_of(c) == IDENTITY or getattr(c.func, "attr", "") in ALWAYS for c in calls)
        return part if isinstance(part, ast.expr) and whole is read and shared else None

    def may_go_first(self, statement: ast.stmt) -> bool:
        """Whether nothing that the statement computes before the call computes with the tensor."""
        return all(self._at_hand(node, statement) is not None for node in self._reads(statement, self.name.id))


IDENTITY = ["module torch.nn.Identity"]


def changed_in_place(statement: ast.stmt) -> Iterator[ChangedInPlace]:
    """What a statement changes so, the first to run first."""
    field = {ast.If: "test", ast.For: "iter"}.get(type(statement), "value")
    value = getattr(statement, field, None)
    for call in [] if value is None else always_evaluated(value):
        if not isinstance(call, ast.Call):
            continue
        words = {word.arg: word.value for word in call.keywords}
        for key, how in observed(call.func).changed.items():
            given = call.args[int(key)] if key.isdigit() and int(key) < len(call.args) else words.get(key)
            if isinstance(given, ast.Name):
                yield ChangedInPlace(call, given, how)


INIT = re.compile(r"torch\.nn\.init\.\w+_")  # that fill a tensor: not calculate_gain, which gives a number
_IN_PLACE = re.compile(r"torch\.((Tensor|nn\.functional|nn\.init)\.)?(?!requires_grad_)\w*[a-z0-9]_")


def written_into(call: ast.expr) -> ast.expr | None:
    """The tensor that a call writes into, `y` of `y.mul_(2).add_(x)` and of `F.relu_(y)`; of code that did not run also
    of `F.relu(y, inplace=True)`. None for anything else."""
    found: ast.expr | None = None
    while isinstance(call, ast.Call) and (into := _written_directly(call)) is not None:
        found = call = into
    return found


def _written_directly(call: ast.Call) -> ast.expr | None:
    callees, of_module = callees_of(call), OF_MODULE in vars(call)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    names = callees or [f"torch.{name}" if of_module else f"torch.Tensor.{name}"]
    writes = all(_IN_PLACE.fullmatch(one) and (callees or row_of(one) or row_of(one[:-1])) for one in names)
    said = [word for word in call.keywords if word.arg == "inplace" and literal(word.value) == (True, True)]
    if not writes and not (said and of_module and not callees):
        return None
    if all(one.startswith("torch.Tensor.") for one in names) and isinstance(call.func, ast.Attribute):
        return call.func.value
    return call.args[0] if call.args else None


def nested_writes(statement: ast.stmt) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls within a statement's expression that write into tensors, each with what it writes into."""
    value = getattr(statement, {ast.If: "test", ast.For: "iter"}.get(type(statement), "value"), None)
    inside = list(always_evaluated(value)) if isinstance(value, ast.expr) else []
    calls = [node for node in inside if isinstance(node, ast.Call)]
    chained = {_written_directly(one) for one in calls}
    for call in calls:
        into, alone = written_into(call), call is value and isinstance(statement, ast.Expr)
        if into is not None and call not in chained and not alone:
            yield call, into


def write_first(function: ast.FunctionDef, local: set[str]) -> None:
    """Write `y.add_(1)` in front of `z = f(y.add_(1))`, which reads y then, where y is read elsewhere too: torch writes
    into y, where MindSpore's function gives a new tensor; in place. local: the names that are no module's."""
    note_functions(function, local)
    function.body = _Nested(function).block(function.body, [])


class _Nested:
    def __init__(self, function: ast.FunctionDef) -> None:
        self.function, nodes = function, [*ast.walk(function)]
        self.arguments = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)} - {"self", "cls"}
        self.related = [(name, view.base) for n in nodes if isinstance(n, ast.stmt) for name, view in views_of(n)]
        self.reads = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]

    def block(self, body: list[ast.stmt], loops: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block, with those that come first."""
        found: list[ast.stmt] = []
        for statement in body:
            moved = False
            for call, into in [*nested_writes(statement)]:
                place = _place(into)
                if not self._matters(call, place, statement, loops):
                    continue
                if moved := _may_go_first(call, place, statement):
                    found.append(_as_statement(call, into, statement))
                    substitute(statement, partial(_given_instead, call, into))
                else:
                    why = f"{ast.unparse(call)} writes into {ast.unparse(into)}, which is read elsewhere"
                    refuse(call, f"{why}: write it as a statement of its own")
            within = [*loops, statement] if isinstance(statement, (ast.For, ast.While)) else loops
            for part in BLOCKS if not isinstance(statement, (ast.FunctionDef, ast.ClassDef)) else ():
                if getattr(statement, part, None):
                    setattr(statement, part, self.block(getattr(statement, part), within))
            found += [] if moved and _says_nothing(statement) else [statement]
        return found

    def _matters(self, call: ast.Call, place: ast.expr, statement: ast.stmt, loops: list[ast.stmt]) -> bool:
        """Whether anything but the statement's own target shows that a call has written into a variable or attribute"""
        if isinstance(place, ast.Attribute):
            if any(map(INIT.fullmatch, callees_of(call))):
                return True  # MindSpore's initializer is a statement
            targets = [ast.unparse(target) for target in getattr(statement, "targets", ())]
            return ast.unparse(place).startswith("self.") and ast.unparse(place) not in targets
        names = {place.id} if isinstance(place, ast.Name) else set()
        for _ in self.related:
            names |= {one for pair in self.related if names.intersection(pair) for one in pair}
        if any(not given_anew(name, statement, self.function) for name in names & self.arguments):
            return True
        names -= stored_names(statement)
        inside, again = {*ast.walk(call)}, {node for part in (statement, *loops) for node in ast.walk(part)}
        end = (call.end_lineno or 0, call.end_col_offset or 0)
        reads = [node for node in self.reads if node.id in names and node not in inside]
        return any(node in again or (node.lineno, node.col_offset) >= end for node in reads)


def _given_instead(call: ast.Call, into: ast.expr, node: ast.AST) -> ast.AST | None:
    return copy.deepcopy(into) if node is call else None


def _place(into: ast.expr) -> ast.expr:
    """The variable or attribute whose values change with what is written into, such as `y` of `y.view(-1)[0].data`."""
    while True:
        whole, before = view_of(underlying_tensor(into))[0], into
        into = whole.value if isinstance(whole, ast.Subscript) else whole
        if into is before:
            return into


def _may_go_first(call: ast.Call, place: ast.expr, statement: ast.stmt) -> bool:
    """Whether nothing that a statement computes before a call computes with what the call changes."""
    if isinstance(place, ast.Name):
        return ChangedInPlace(call, place, "itself").may_go_first(statement)
    others = [
        n
        for n in {*ast.walk(statement)} - {*ast.walk(call)}
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)
    ]
    before = [n for n in others if (n.lineno, n.col_offset) < (call.lineno, call.col_offset)]
    return ast.unparse(place) not in map(ast.unparse, before)


def _as_statement(call: ast.Call, into: ast.expr, statement: ast.stmt) -> ast.stmt:
    found: ast.stmt = ast.Expr(copy.deepcopy(call))
    if any(word.arg == "inplace" for word in call.keywords) and isinstance(into, ast.Name):
        found = ast.Assign([ast.Name(into.id, ast.Store())], copy.deepcopy(call))
        vars(found)[CHANGED] = True
    found = ast.fix_missing_locations(replacing(found, statement))
    found.end_lineno, found.end_col_offset = statement.lineno, statement.col_offset  # what the statement reads is after
    return found


def _says_nothing(statement: ast.stmt) -> bool:
    """Whether a statement only names a tensor, or a view of one, or gives it to the name that it has."""
    if isinstance(statement, ast.Assign):
        return [*map(ast.unparse, statement.targets)] == [ast.unparse(statement.value)]
    calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return isinstance(statement, ast.Expr) and all(isinstance(f, ast.Attribute) and f.attr in SHARING for f in calls)


Position = tuple[int, int]
Facts = frozenset[frozenset[str] | tuple[str, Position]]  # two names may share a tensor; a name is stale by a write
NOTHING: Facts = frozenset()


class StaleReads:
    """Names that are read after a tensor has been written into under another name, which may stand for the same one:
    `found` has them by the place of the write. It follows every way through a function: branches, loops, handlers.

    writes: the names of what a statement writes into. described: names of which no value is read, as in `x.shape`.
    """

    def __init__(self, body: list[ast.stmt], writes: Callable[[ast.stmt], Iterable[str]], described: set[Any]) -> None:
        self._writes, self._described = writes, described
        self._left: list[Facts] = [NOTHING]  # of each loop around: what `break` and `continue` go on with
        self.found: dict[Position, dict[str, None]] = {}
        self._block(body, NOTHING)

    def _block(self, body: Iterable[ast.stmt], facts: Facts) -> Facts:
        for statement in body:
            facts = self._statement(statement, facts)
        return facts

    def _statement(self, statement: ast.stmt, facts: Facts) -> Facts:
        """What holds behind a statement; nothing where nothing runs behind it."""
        facts = self._bound(statement, self._written(statement, self._read(statement, facts)))
        match statement:
            case ast.Return() | ast.Raise():
                return NOTHING
            case ast.Break() | ast.Continue():
                self._left[-1] |= facts
                return NOTHING
            case ast.If(body=body, orelse=orelse):
                return self._block(body, facts) | self._block(orelse, facts)
            case ast.For() | ast.While():
                return self._loop(statement, facts)
            case ast.With(body=body):
                return self._block(body, facts)
            case ast.Match(cases=cases):
                return facts.union(*(self._block(case.body, facts) for case in cases))
            case ast.Try():
                now = reached = facts
                for each in statement.body:
                    now = self._statement(each, now)
                    reached |= now
                ends = self._block(statement.orelse, now)
                ends = ends.union(*(self._block(handler.body, reached) for handler in statement.handlers))
                self._block(statement.finalbody, reached | ends)
                return self._block(statement.finalbody, ends)
        return facts

    def _loop(self, loop: ast.For | ast.While, facts: Facts) -> Facts:
        before, around = None, facts
        while around != before:
            before = around
            self._left.append(NOTHING)
            around |= self._block(loop.body, self._bound(loop, around))
            around |= self._left.pop()
        return self._block(loop.orelse, around)

    def _read(self, statement: ast.stmt, facts: Facts) -> Facts:
        changed = statement.target if isinstance(statement, ast.AugAssign) else None
        for node in of_statement(statement):
            if isinstance(node, ast.Name) and node not in self._described:
                for fact in facts if isinstance(node.ctx, ast.Load) or node is changed else ():
                    if isinstance(fact, tuple) and fact[0] == node.id:
                        self.found.setdefault(fact[1], {})[node.id] = None
        return facts

    def _written(self, statement: ast.stmt, facts: Facts) -> Facts:
        others = {other for name in self._writes(statement) for other in _partners(name, facts)}
        return facts | {(other, place_of(statement)) for other in others}

    def _bound(self, statement: ast.stmt, facts: Facts) -> Facts:
        """What holds behind a statement's assignments."""
        if isinstance(statement, (ast.AugAssign, ast.FunctionDef, ast.ClassDef)):
            return facts
        given = [(name, base) for name, value in _given(statement) for base in _may_be(value)]
        bound = {node.id for node in of_statement(statement) if isinstance(node, ast.Name) and not _loaded(node)}
        shared = {
            frozenset({name, other})
            for name, base in given
            for other in (*{base, *_partners(base, facts)} - bound, *(one for one, of in given if of == base))
            if other != name
        }
        kept = {fact for fact in facts if bound.isdisjoint(fact if isinstance(fact, frozenset) else fact[:1])}
        return frozenset(kept | shared)


def of_statement(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, without those of statements in it, and of what comprehensions set."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        inner = [n for n in ast.iter_child_nodes(node) if not isinstance(n, (ast.stmt, ast.excepthandler))]
        waiting += [n for n in inner if not (isinstance(node, ast.comprehension) and n is node.target)]


def passed_over(statement: ast.stmt) -> tuple[list[tuple[str, ast.stmt]], set[str], set[str]]:
    """Names that assignments in a statement which did not run would set, each with one; what other such statements
    would set; and what those set that ran. All have run where the statement itself has not: nothing is known."""
    inside = [node for node in ast.walk(statement) if isinstance(node, ast.stmt)]
    names = [(n.id, one) for one in inside for n in of_statement(one) if isinstance(n, ast.Name) and not _loaded(n)]
    idle = [(name, one) for name, one in names if reached(statement) and not reached(one)]
    assigned: list[tuple[str, ast.stmt]] = [(name, one) for name, one in idle if isinstance(one, ast.Assign)]
    loose = {name for name, one in idle if (name, one) not in assigned}
    return assigned, loose, {name for name, one in names if (name, one) not in idle}


def only_block(statement: ast.stmt) -> str:
    """Which block of a statement ran whenever the statement did; empty where that is not known."""
    if isinstance(statement, ast.If) and statement.orelse and reached(statement):
        ran = [part for part in BLOCKS[:2] if any(map(reached, getattr(statement, part)))]
        return ran[0] if len(ran) == 1 else ""
    if isinstance(statement, ast.Try) and not statement.orelse and not statement.finalbody:
        return "" if any(reached(one) for handler in statement.handlers for one in handler.body) else "body"
    return "body" if isinstance(statement, ast.With) else ""


def _loaded(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def _partners(name: str, facts: Facts) -> set[str]:
    return {other for fact in facts if isinstance(fact, frozenset) and name in fact for other in fact - {name}}


def _given(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement assigns, each with a value, of which it may be a part."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(statement, ast.Assign):
        pairs = [(target, statement.value) for target in statement.targets]
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        pairs = [(statement.target, statement.value)]
    elif isinstance(statement, ast.For):
        pairs = [(statement.target, statement.iter)]
    pairs += [(node.target, node.value) for node in of_statement(statement) if isinstance(node, ast.NamedExpr)]
    for target, value in pairs:
        within = [target]
        if isinstance(target, (ast.Tuple, ast.List)):
            within = target.elts
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(within):
                pairs += zip(within, value.elts, strict=True)
                continue
        yield from ((one.id, value) for one in within if isinstance(one, ast.Name))


def _may_be(value: ast.expr) -> set[str]:
    """The names of the tensors that an expression may give, or a part of."""
    value = underlying_tensor(value)
    match value:
        case ast.Name(id=name):
            return {name}
        case ast.IfExp(body=body, orelse=orelse):
            return _may_be(body) | _may_be(orelse)
        case ast.BoolOp(values=values):
            return {name for each in values for name in _may_be(each)}
        case ast.NamedExpr(target=target, value=inner):
            return {target.id} | _may_be(inner)
        case ast.Subscript(value=whole, slice=index):
            return _may_be(whole) if is_basic(index) or isinstance(literal(index)[1], str) else set()
        case ast.Call(func=ast.Name(id="zip" | "enumerate" | "reversed"), args=args):
            return {name for each in args for name in _may_be(each)}
        case ast.Call():
            into = written_into(value) or view_of(value)[0]
            return _may_be(into) if into is not value else set()
    return set()
