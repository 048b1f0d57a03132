"""Names for one tensor: views, what a layer changes in place, what is a tensor of its own, and attributes.

What a tensor that is written into is a view of, is found by the calls that made it; that a layer such as
`nn.ReLU(inplace=True)` writes into its input, by the run. views.py writes the values back.

What a forward keeps as an attribute and goes on with has a name besides: graph mode's gradient ends at the attribute.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeGuard

from ...source_files import literal, local_names, substitute
from ..observe.instrument import always_evaluated
from ..observe.observations import (
    Kind,
    ModuleKind,
    PlainKind,
    SizeKind,
    TensorKind,
    always,
    callees_of,
    kinds_of,
    observed,
    replacing,
    set_callee,
    set_kinds,
)
from .context import Context, Problem, row_of
from .graph_mode import put
from .initializers import underlying_tensor

BLOCKS = ("body", "orelse", "finalbody")
CHANGED = "changed"  # attribute of the node of `x = self.act(x)`, which changes x under all of its names

# methods of tensors whose result shares the memory of what they are called on, at least sometimes
SHARING = {
    *("view", "reshape", "transpose", "permute", "squeeze", "unsqueeze", "expand", "t", "detach", "contiguous", "to"),
    *("chunk", "split", "narrow", "select", "unbind", "flatten", "unflatten", "swapaxes", "movedim", "float", "type"),
    *("diagonal", "unfold", "view_as", "expand_as", "reshape_as", "type_as", "requires_grad_", "swapdims", "ravel"),
}
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


def shares(target: ast.Subscript, function: ast.AST | None) -> bool:
    """Whether what is written into may be a part of another tensor, which changes with it: all but a variable that
    holds a new tensor, or an item of an argument. An item of an item, `x[0][1] = 2`, is one of the variable."""
    sliced, name = _is_sliced(target), target.value
    while isinstance(name, ast.Subscript) and not _is_sliced(name):
        name = name.value
    if not isinstance(name, ast.Name):
        return True
    bound: list[tuple[int, bool]] = []  # in which line, and whether to a new tensor
    for node in ast.walk(function or name):
        if isinstance(node, (ast.Assign, ast.For)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part for each in targets for part in ast.walk(each) if isinstance(part, ast.Name)]
            if any(part.id == name.id and isinstance(part.ctx, ast.Store) for part in names):
                bound.append((node.lineno, isinstance(node, ast.Assign) and _makes_new(node.value)))
    last = max((each for each in bound if each[0] < name.lineno), default=(0, not sliced))
    reaching = [last, *(each for each in bound if each[0] >= name.lineno)]
    return not all(new for _, new in reaching)


def _is_sliced(target: ast.Subscript) -> bool:
    index = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return any(isinstance(item, ast.Slice) for item in index)


def _makes_new(value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):  # torch.zeros(2, 4).float() is new, too
        return value.func.attr not in SHARING or _makes_new(value.func.value)
    return isinstance(value, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare))


@dataclass(frozen=True)
class View:
    """A name for a part of the tensor `base`: what the index picks, what the expression `made` gives, or all of it."""

    base: str
    index: ast.expr | None = None
    made: ast.expr | None = None
    sure: bool = True  # whether it is a tensor: not in code that did not run, whose numbers may be items of a list

    def names(self) -> set[str]:
        """The names that it depends on."""
        inside = [node for part in (self.index, self.made) if part is not None for node in ast.walk(part)]
        return {self.base, *(node.id for node in inside if isinstance(node, ast.Name))}


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


_IN_PLACE = re.compile(r"torch\.((Tensor|nn\.functional)\.)?(?!requires_grad_)\w*[a-z0-9]_")


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
        into = written_into(call)
        if into is not None and call not in chained and not (call is value and isinstance(statement, ast.Expr)):
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
    others = [n for n in {*ast.walk(statement)} - {*ast.walk(call)} if isinstance(n, ast.Attribute) and _read(n)]
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


def go_on_with_locals(function: ast.FunctionDef, context: Context) -> None:
    """Write `h_now = tanh(x)`, `self.h = h_now` for `self.h = tanh(x)`, and read `h_now` for `self.h` behind it: what a
    compiled function reads of an attribute that it has set passes no gradient, without an error, and nor does what is
    computed with it, be it a size (`python benchmarks/graph_attributes_mindspore.py`); in place."""
    if not context.owner:
        return
    nodes = [node for node in ast.walk(function) if _of_itself(node)]
    stored = {
        name: min(n.lineno for n in nodes if n.attr == name and not _read(n)) for name in stored_attributes(function)
    }
    kept = {n.attr for n in nodes if _read(n) and n.attr in stored and n.lineno > stored[n.attr]}
    kept -= {n.attr for n in nodes if not _read(n) and all(n is not part for _, part in _sets(function))}
    _note_kept([n for n in nodes if _read(n) and n.attr not in stored], function, context)
    taken = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} | {*local_names(function)}
    names: dict[str, str] = {}
    for name in sorted(kept - _written_into(function) - _set_elsewhere(function, context)):
        names[name] = f"{name}_now"
        while names[name] in taken:
            names[name] += "_"
    tried = [node for part in _with_locals(copy.deepcopy(function.body), names, {}) for node in ast.walk(part)]
    again = [node.value.id for node in tried if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)]
    read = [node.id for node in tried if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    names = {name: own for name, own in names.items() if read.count(own) > again.count(own)}
    function.body = _with_locals(function.body, names, {}) if names else function.body


def _note_kept(reads: list[ast.Attribute], function: ast.FunctionDef, context: Context) -> None:
    """List the tensors that a method reads as attributes of `self` which another method of the class sets."""
    _, cls = context.program.class_of(context.owner) or ("", None)
    others = [one for one in getattr(cls, "body", ()) if isinstance(one, ast.FunctionDef) and one.name != function.name]
    begun = "".join(ast.unparse(one) for one in others if one.name == "__init__")
    for name, node in {node.attr: node for node in reversed(reads) if always(kinds_of(node), TensorKind)}.items():
        setter = next((one.name for one in others if one.name != "__init__" and name in stored_attributes(one)), None)
        if setter is not None and not re.search(rf"'{name}'|self\.{name} = (nn\.)?Parameter", begun):  # a buffer
            text = f"self.{name}, which {setter} sets and {function.name} reads: compiled, it has no type and passes no"
            text = f"{text} gradient. Return it from {setter} and hand it on, or train with --mode pynative"
            context.program.left_out.append(Problem(context.file, node.lineno, text, function.name))


def _of_itself(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Whether it is an attribute of `self`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _read(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _written_into(function: ast.FunctionDef) -> set[str]:
    """The attributes of `self` whose value a function changes by an operator or a method, `self.h += x` and
    `self.h.mul_(2)`, and those that it only puts on a device, `self.h = self.h.to(x)`."""
    places: list[ast.AST] = [node.target for node in ast.walk(function) if isinstance(node, ast.AugAssign)]
    places += [node for node in ast.walk(function) if isinstance(node, ast.Attribute) and node.attr.endswith("_")]
    for value, part in _sets(function):
        if ast.unparse(value).partition("(")[0] in [f"self.{part.attr}.{name}" for name in ("to", "cuda", "cpu")]:
            places.append(part)
    return {inner.attr for place in places for inner in ast.walk(place) if _of_itself(inner)}


def _set_elsewhere(function: ast.FunctionDef, context: Context) -> set[str]:
    """The attributes that another function of the object sets, or one inside of this one."""
    bases = [name for name in context.program.facts.bases(context.owner)[1:] if "." in name]
    derived = [order[0] for order in context.program.facts.orders if context.owner in order[1:]]
    others = [node for node in ast.walk(function) if isinstance(node, (ast.FunctionDef, ast.Lambda))][1:]
    for owner in (context.owner, *bases, *derived):
        _, cls = context.program.class_of(owner) or ("", None)
        own = {"__init__", function.name} if owner == context.owner else {"__init__"}
        found = [node for node in getattr(cls, "body", ()) if isinstance(node, ast.FunctionDef)]
        others += [node for node in found if node.name not in own]
    return {name for node in others for name in stored_attributes(node)}


def _sets(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.Attribute]]:
    """The attributes of `self` that assignments set, alone or in a tuple, each with what is assigned."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                if _of_itself(part):
                    yield node.value, part


def _with_locals(statements: list[ast.stmt], names: Mapping[str, str], now: dict[str, list[Kind]]) -> list[ast.stmt]:
    """The statements of a block; now: the attributes whose value has a name there, and their kinds. It is changed: a
    name stays in step with its attribute, wherever it has been given."""
    found: list[ast.stmt] = []
    for statement in statements:
        before = [n.attr for target in getattr(statement, "targets", ()) for n in ast.walk(target) if _of_itself(n)]
        ends: list[dict[str, list[Kind]]] = []
        for field, value in ast.iter_fields(statement):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                ends.append({**now})
                setattr(statement, field, _with_locals(value, names, ends[-1]))
            elif isinstance(value, list):
                setattr(statement, field, [_by_local(one, names, now) for one in value])
            else:
                setattr(statement, field, _by_local(value, names, now))
        if isinstance(statement, ast.With) or (isinstance(statement, ast.If) and len(ends) == 2):
            now.update({name: kinds for name, kinds in ends[0].items() if name in ends[-1]})
        found.append(statement)
        if isinstance(statement, ast.Assign):
            found += [*_again(statement, before, names, now), *_named(statement, names, now)]
    return found


def _again(statement: ast.Assign, parts: Iterable[str], names: Mapping[str, str], now: Mapping[str, Any]) -> Any:
    """What sets the attributes again into whose parts an assignment writes: compiled, it makes new tensors."""
    for part in parts:
        if part in now and isinstance(statement.targets[0], ast.Subscript):
            read = set_kinds(ast.copy_location(ast.Name(names[part], ast.Load()), statement), now[part])
            owner = ast.copy_location(ast.Name("self", ast.Load()), statement)
            target = ast.copy_location(ast.Attribute(owner, part, ast.Store()), statement)
            yield replacing(ast.Assign([target], read), statement)


def _named(statement: ast.Assign, names: Mapping[str, str], now: dict[str, list[Kind]]) -> list[ast.stmt]:
    """What sets the attributes behind an assignment, which sets their names instead; in place."""
    more: list[ast.stmt] = []
    for value, part in [*_sets(statement)]:
        if part.attr in names:
            now[part.attr] = kinds_of(value) if part is statement.targets[0] else []
            name = ast.copy_location(ast.Name(names[part.attr], ast.Store()), part)
            read = set_kinds(ast.copy_location(ast.Name(names[part.attr], ast.Load()), part), now[part.attr])
            statement.targets = [put(name, part, statement.targets[0])]
            more.append(replacing(ast.Assign([part], read), statement))
    return more


def _by_local(node: Any, names: Mapping[str, str], now: Mapping[str, list[Kind]]) -> Any:
    """An expression that reads names for attributes."""

    def change(one: ast.AST) -> ast.AST | None:
        if not _of_itself(one) or not _read(one) or one.attr not in now:
            return None
        return set_kinds(ast.copy_location(ast.Name(names[one.attr], ast.Load()), one), kinds_of(one) or now[one.attr])

    return substitute(node, change) if isinstance(node, ast.AST) else node


def stored_attributes(part: ast.AST) -> list[str]:
    """The attributes of `self` that a part of a constructor sets."""
    inside = [node for node in ast.walk(part) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    return [node.attr for node in inside if ast.unparse(node.value) == "self"]
