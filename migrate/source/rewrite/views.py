"""A tensor that is written to under one of its names: in torch the other names change too, as views of one memory.

After `part = x[0]`, `part += 1` changes x in torch; MindSpore's x[0] is a copy. So a name that is read afterwards gets
the new values: `x[0] = part`. The same is done for the rows in a loop over a tensor, and for `y = x`.

Lists and dictionaries are values, too, when MindSpore compiles: after `more = found`, `more.append(x)` leaves found as
it was. `found = more` after it changes nothing in Python. A function without a result that changes one returns it.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...source_files import SourceFiles, local_names, own_nodes, substitute
from ..observe.observations import (
    DictKind,
    Kind,
    PlainKind,
    TensorKind,
    always,
    always_sequences,
    callees_of,
    kinds_of,
    reached,
    replacing,
    set_callee,
    set_kinds,
)
from .aliasing import (
    BLOCKS,
    CHANGED,
    LOST,
    ChangedInPlace,
    StaleReads,
    View,
    back,
    changed_in_place,
    changes_too,
    forget,
    given_anew,
    is_basic,
    mark,
    nested_writes,
    only_block,
    passed_over,
    read_behind,
    refuse,
    stored_names,
    view_of,
    views_of,
    written_into,
)
from .graph_mode import not_compiled, place_of
from .initializers import begins, root_of, underlying_tensor
from .shared_writes import LEAVES_AS_IS
from .signatures import CHANGING
from .tensors import SHARED, gives_back, written_tensor

Loop = ast.For | ast.While
Note = Callable[[int, str], None]
LISTS = (ast.List, ast.Dict, ast.ListComp, ast.DictComp)
_BLOCKS = (ast.For, ast.While, ast.If, ast.With, ast.Try)


ABOUT = {"shape", "dtype", "device", "ndim", "size", "dim", "numel", "is_cuda", "requires_grad"}  # not its values


def handed_back(function: ast.FunctionDef, files: SourceFiles) -> list[str]:
    """The arguments that a function of the model can return after writing into them: it has no other result, and its
    names still stand for them at its end. There are none for `__init__` and the like, which cannot return anything."""
    written = {} if gives_back(function) or function.name.startswith("__") else written_arguments(function, files)
    return [*written] if all(written.values()) else []


def written_arguments(function: ast.FunctionDef, files: SourceFiles, around: Sequence[ast.AST] = ()) -> dict[str, bool]:
    """The tensor arguments of a function that it, or a function that it calls, writes into -> whether the name still
    stands for that tensor at the end; with the lists and dictionaries that it changes, where it can return them.

    Without parameters, which stay the same object. Writing into a part, `x[0] = y`, reaches the caller's tensor where
    MindSpore does not compile. around: the functions from which this one is called.
    """
    known: dict[str, bool] | None = vars(function).get("written_arguments")
    if known is not None:
        return known
    kept = function.name.startswith("__") or gives_back(function) or not_compiled(function.name, files)
    writer = _Writer(function, compiled=not kept)
    arguments = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
    first: dict[str, ast.stmt] = {}
    whole: set[str] = set()
    for node in own_nodes(function):
        if isinstance(node, ast.stmt):
            given = [
                one
                for call, functions in _calls_of_model(node, files)
                for called in functions
                if called not in (*around, function)
                for one in _handed(called, call, files, (*around, function))
                if one is not None
            ]
            names = [name.id for name in (*_written_whole(node), *given) if isinstance(name, ast.Name)]
            parts = [root.id for root in map(root_of, given) if isinstance(root, ast.Name)] + writer.changed(node)
            whole.update(names)
            for name in names + (parts if writer.compiled else []):
                first.setdefault(name, node)
    found: dict[str, bool] = {}
    for name, statement in first.items():
        kinds = writer.kinds.get(name, {})
        held = name not in whole  # in Python it is the same object, unless it is compiled
        if name not in arguments or not kinds:
            continue
        if not writer.is_container(name) and not all(isinstance(k, TensorKind) and not k.parameter for k in kinds):
            continue
        stored = [n for n in own_nodes(function) if isinstance(n, ast.stmt) and name in _stored_itself(n)]
        if not any(n.lineno <= statement.lineno for n in stored):
            found |= {name: not stored} if not held or not stored else {}
    vars(function)["written_arguments"] = found
    return found


def _stored_itself(statement: ast.stmt) -> set[str]:
    return set() if isinstance(statement, (ast.FunctionDef, ast.ClassDef, *_BLOCKS)) else stored_names(statement)


def _written_whole(statement: ast.stmt) -> list[ast.Name]:
    """The names of tensors that a statement writes to as a whole."""
    into: ast.expr | None = None
    if isinstance(statement, ast.AugAssign):
        into = statement.target
    elif isinstance(statement, ast.Expr) and (target := written_tensor(statement.value)) is not None:
        into = underlying_tensor(target)
    nested = [underlying_tensor(one) for _, one in nested_writes(statement)]
    return [one for one in (into, *nested) if isinstance(one, ast.Name)]


def _calls_of_model(statement: ast.stmt, files: SourceFiles) -> Iterator[tuple[ast.Call, list[ast.FunctionDef]]]:
    """The calls in a statement, without those in statements inside, and the functions of the model that they call:
    several, where it is a method of several classes."""
    waiting: list[ast.AST] = [n for n in ast.iter_child_nodes(statement) if not isinstance(n, ast.stmt)]
    while waiting:
        node = waiting.pop(0)
        waiting += [n for n in ast.iter_child_nodes(node) if not isinstance(n, (ast.stmt, ast.Lambda))]
        if isinstance(node, ast.Call):
            ran = (
                files.functions.get(f"{name.removeprefix('module ')}.forward" if name.startswith("module ") else name)
                for name in callees_of(node)
            )
            functions = [files.node(function) for function in ran if function is not None]
            yield node, [function for function in functions if function is not None]


def _handed(
    called: ast.FunctionDef, call: ast.Call, files: SourceFiles, around: Sequence[ast.AST] = ()
) -> list[ast.expr | None]:
    """The call's expressions for the arguments that its function writes into; None where the call does not show it."""
    if any(isinstance(each, ast.Starred) for each in call.args):
        return []
    given = _arguments(called, call)
    return [given.get(name) for name in written_arguments(called, files, around)]


def _arguments(called: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr]:
    """A function's arguments by name, as a call gives them."""
    arguments = [each.arg for each in called.args.args]
    plain = any(isinstance(item, ast.Name) and item.id == "staticmethod" for item in called.decorator_list)
    if arguments[:1] in (["self"], ["cls"]) and not plain:
        arguments = arguments[1:]
    words = {word.arg: word.value for word in call.keywords if word.arg}
    return dict(zip(arguments, call.args, strict=False)) | words


def write_through_views(
    function: ast.FunctionDef, files: SourceFiles, *, compiled: bool = False, note: Note | None = None
) -> None:
    """Give every name that is read later the values that were written under another name or by a function that it was
    passed to, and a parameter the values that are written to its data under a name; in place.

    compiled: whether MindSpore may compile the function. note: called with a line, and what is otherwise there when it
    is compiled.
    """
    writer = _Writer(function, files, compiled=compiled, note=note)
    writer.name_parameters(function)
    stale = writer.stale = StaleReads(function.body, writer.written_at, writer.described).found
    function.body = writer.block(function.body, {}, [])
    for node in (one for one in own_nodes(function) if isinstance(one, (ast.Assign, ast.AugAssign, ast.Expr))):
        other = next(iter(stale.get(place_of(node), ())), None) if reached(node) else None  # else memory.py does it
        if other is not None and note is not None and stale.pop(place_of(node)):
            note(node.lineno, f"{changes_too(node, other)}, on one way through {function.name}: use .clone()")


class _Writer:
    def __init__(
        self,
        function: ast.FunctionDef,
        files: SourceFiles | None = None,
        *,
        compiled: bool = False,
        note: Note | None = None,
    ) -> None:
        self.files, self.compiled, self.note = files, compiled, note
        self.taken = {*local_names(function)}
        self.statements = [node for node in own_nodes(function) if isinstance(node, ast.stmt)]
        self.reads: dict[str, list[ast.Name]] = {}
        self.kinds: dict[str, dict[Kind, None]] = {}
        self.stale: dict[tuple[int, int], dict[str, None]] = {}
        self.idle: dict[str, list[ast.stmt]] = {}  # names -> what did not run and would give them other tensors
        pairs = [(t, n.value) for n in self.statements if isinstance(n, ast.Assign) for t in n.targets]
        others = {t for t, value in pairs if not isinstance(value, LISTS)}
        self.lists = {t.id for t, _ in pairs if isinstance(t, ast.Name)}
        self.lists -= {n.id for t in others for n in ast.walk(t) if isinstance(n, ast.Name)}
        self.described = {n.value for n in ast.walk(function) if isinstance(n, ast.Attribute) and n.attr in ABOUT}
        for node in ast.walk(function):
            if isinstance(node, ast.Name):
                self.kinds.setdefault(node.id, {}).update(dict.fromkeys(kinds_of(node)))
                if isinstance(node.ctx, ast.Load) and node not in self.described:
                    self.reads.setdefault(node.id, []).append(node)

    def name_parameters(self, function: ast.FunctionDef) -> None:
        """`w = self.weight` for `w = self.weight.data`, where w is only written to."""
        nodes = [*ast.walk(function)]
        for node in nodes:
            if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
                continue
            name, under = node.targets[0].id, underlying_tensor(node.value)
            if under is node.value or not always(kinds_of(under), TensorKind, parameter=True):
                continue
            writing = {inner for one in nodes if name in self._written_by(one) for inner in ast.walk(one)}
            if writing.issuperset(self.reads.get(name, ())):
                node.value = under
                for one in nodes:
                    if isinstance(one, ast.Name) and one.id == name:
                        set_kinds(one, kinds_of(under))
                self.kinds[name] = dict.fromkeys(kinds_of(under))

    def block(self, body: list[ast.stmt], views: dict[str, View], loops: Sequence[Loop]) -> list[ast.stmt]:
        """The statements, each followed by those that write values back; views: the views before them, updated to those
        after them."""
        found: list[ast.stmt] = []
        for statement in (
            part for each in body for one in self._named(each) for part in self._with_change(one, views, loops)
        ):
            taken = self._taking(statement, loops) or (statement if CHANGED in vars(statement) else None)
            found.append(taken or statement)
            if isinstance(statement, _BLOCKS):
                self._inside(statement, views, loops)
                continue
            names = self._written_by(statement)
            if taken is not None:
                names += [n for n in stored_names(taken) if self._is_tensor(n) or self.is_container(n)]
            for name in names:
                found += self._noted(statement, [*self._others(name, statement, views, loops)])
            forget(views, stored_names(statement) - {*names})
            for name in stored_names(statement) if reached(statement) else ():
                self.idle.pop(name, None)
            for target, view in views_of(statement):
                sure = self._is_tensor(view.base) or self._is_same(target, view)
                if target != view.base and (sure or (view.made is not None and not self.kinds.get(view.base))):
                    views[target] = view
        return found

    def _with_change(self, statement: ast.stmt, views: Mapping[str, View], loops: Sequence[Loop]) -> Iterator[ast.stmt]:
        """The statement, behind `x = self.act(x)` where a layer in it changes x in place, which is read afterwards."""
        for found in [*changed_in_place(statement)]:
            name, function = found.name.id, ast.unparse(found.call.func)
            if not self._is_seen(found, statement, views, loops):
                if self.note is not None and (holder := self._holder(name, statement, loops)):
                    what = f"{function} changes `{name}` in place, which `{holder}` may hold"
                    self.note(
                        found.call.lineno, f"{what}: in MindSpore it stays as it was there. Leave inplace=True out"
                    )
                continue
            itself = isinstance(statement, ast.Assign) and statement.value is found.call and found.how == "itself"
            if itself and isinstance(statement, ast.Assign) and [*map(ast.unparse, statement.targets)] == [name]:
                vars(statement)[CHANGED] = True
            elif (parts := found.split(statement)) is not None:
                first, statement = parts
                vars(first)[CHANGED] = True
                yield first
            elif self.note is not None:
                what = f"{function} changes `{name}` in place, which is read afterwards"
                self.note(found.call.lineno, f"{what}: in MindSpore it stays as it was. Leave inplace=True out")
        yield statement

    def _holder(self, name: str, statement: ast.stmt, loops: Sequence[Loop]) -> str:
        """The list, tuple or dictionary that has got a tensor and is read after a statement; empty for none."""
        around = {inner for loop in loops for inner in ast.walk(loop)}
        for one in self.statements:
            if isinstance(one, _BLOCKS) or not (one.lineno < statement.lineno or one in around) or one is statement:
                continue
            into: ast.AST | None = one.targets[0] if isinstance(one, ast.Assign) else None
            given: ast.AST | None = getattr(one, "value", None)
            if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr in CHANGING:
                into, given = given.func.value, ast.Tuple(given.args)
            items = [*getattr(given, "elts", ()), *getattr(given, "values", ())]
            items += [given] if isinstance(into, ast.Subscript) and given is not None else []
            place = root_of(into) if isinstance(into, ast.expr) else None
            gets = any(ast.unparse(item) == name for item in items if isinstance(item, ast.expr))
            if gets and isinstance(place, ast.Name) and self._read_after(place.id, statement, loops):
                return place.id
        return ""

    def _is_seen(
        self, found: ChangedInPlace, statement: ast.stmt, views: Mapping[str, View], loops: Sequence[Loop]
    ) -> bool:
        """Whether a tensor that a layer changes in place is read afterwards, under this name or another one."""
        name, related = found.name.id, {found.name.id}
        for _ in views:
            related |= {view.base for other, view in views.items() if other in related}
            related |= {other for other, view in views.items() if view.base in related}
        stored = stored_names(statement)
        return any(
            found.is_read(statement, one) or (one not in stored and self._read_after(one, statement, loops))
            for one in related
            if self._is_tensor(one) or one == name
        )

    def _named(self, statement: ast.stmt) -> list[ast.stmt]:
        """`part = y.view(-1)` in front of `part.mul_(2)` for `y.view(-1).mul_(2)`, and `y = part.reshape(y.shape)`
        behind it; a call that gives another view is marked as one that cannot be written."""
        into: ast.expr | None = None
        if isinstance(statement, (ast.Assign, ast.AugAssign)):
            into = root_of(statement.targets[0] if isinstance(statement, ast.Assign) else statement.target)
        elif isinstance(statement, ast.Expr) and (target := written_into(statement.value)) is not None:
            into = root_of(target)
        under = underlying_tensor(into) if into is not None else None
        whole, calls = view_of(under) if under is not None else (None, [])
        parameter = whole is not None and always(kinds_of(whole), TensorKind, parameter=True)
        if not calls or into is None or under is None or whole is None or (parameter and begins(statement)):
            return [statement]
        name = next(free for n in itertools.count() if (free := f"part{n or ''}") not in self.taken)
        part = set_kinds(ast.Name(name, ast.Load()), kinds_of(under))
        put = back(copy.deepcopy(part), calls, copy.deepcopy(whole))
        place = isinstance(whole, (ast.Name, ast.Attribute))
        target = copy.deepcopy(whole)
        if parameter and under is not into:  # past the gradient, as `self.weight.data = …`
            target, parameter = set_kinds(ast.Attribute(target, "data"), kinds_of(under)), False
        if put is None or parameter or not (place or (isinstance(whole, ast.Subscript) and is_basic(whole.slice))):
            refuse(calls[0], f"{ast.unparse(into)} is written into: write into {ast.unparse(whole)} by an index")
            return [statement]
        self.taken.add(name)
        vars(target)["ctx"] = ast.Store()
        first = replacing(ast.Assign([ast.Name(name, ast.Store())], copy.deepcopy(under)), statement)
        instead = under if isinstance(whole, ast.Name) else into  # of a variable `part.data` stays
        changed = substitute(statement, lambda n: part if n is instead else None)
        last = [] if isinstance(whole, ast.Name) else [replacing(ast.Assign([target], put), statement)]
        return [ast.fix_missing_locations(one) for one in (first, changed, *last)]

    def _inside(self, statement: ast.stmt, views: dict[str, View], loops: Sequence[Loop]) -> None:
        at_entry, (idle, loose, ran) = dict(views), passed_over(statement)
        forget(views, stored_names(statement) - ({name for name, _ in idle} - loose - ran))
        inner = dict(views) if isinstance(statement, (ast.For, ast.While)) else at_entry
        if isinstance(statement, ast.For):
            inner |= self._rows(statement, loops)
        within = [*loops, statement] if isinstance(statement, (ast.For, ast.While)) else loops
        for part in BLOCKS:
            if getattr(statement, part, None):
                now = dict(inner)
                setattr(statement, part, self.block(getattr(statement, part), now, within))
                if part == only_block(statement):
                    views.clear()
                    views.update(now)
                    forget(views, loose)
        related = {name for other, view in views.items() for name in (other, *view.names())}
        for name, one in (each for each in idle if each[0] in related):
            self.idle.setdefault(name, []).append(one)

    def _noted(self, statement: ast.stmt, found: list[ast.stmt]) -> list[ast.stmt]:
        """What writes values back behind a statement; it is right where the other branches do not run."""
        names = {n.id for one in found for n in ast.walk(one) if isinstance(n, ast.Name)}
        for one in found:
            vars(one)[LEAVES_AS_IS] = True
        for name in names:
            self.stale.get(place_of(statement), {}).pop(name, None)
            for one in self.idle.get(name, ()):
                vars(one)[SHARED] = f"`{name}` gets another value, and {changes_too(statement, name)}"
        return found

    def _taking(self, statement: ast.stmt, loops: Sequence[Loop]) -> ast.stmt | None:
        """The statement for a call of functions that write into their arguments and return them; None for any other.

        A call of a function that does not return them is noted, where such an argument is read afterwards.
        """
        if self.files is None:
            return None
        for call, functions in _calls_of_model(statement, self.files):
            for called in functions if self.compiled else ():
                self._note_changes(called, call, statement, loops)
            each = [_handed(called, call, self.files) for called in functions]
            given = next(filter(None, each), [])
            alike = len({tuple(n and ast.unparse(n) for n in one) for one in each}) == 1
            alone = isinstance(statement, ast.Expr) and statement.value is call
            if given and alone and alike and all(handed_back(called, self.files) for called in functions):
                targets: list[ast.expr] = [self._target(one) for one in given]
                target = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())
                return ast.fix_missing_locations(replacing(ast.Assign([target], call), statement))
            stored = stored_names(statement) if isinstance(statement, ast.Assign) else set()
            for name in [one.id for some in each for one in some if isinstance(one, ast.Name) and one.id not in stored]:
                if name in read_behind(call, statement) or self._read_next(name, statement, loops):
                    vars(call)[LOST] = (
                        f"{functions[0].name} writes into `{name}`, which is read afterwards, and does not return it: "
                        "return the tensor, and use the result"
                    )
        return None

    def _note_changes(
        self, called: ast.FunctionDef, call: ast.Call, statement: ast.stmt, loops: Sequence[Loop]
    ) -> None:
        """Note the lists, dictionaries and parts of tensors that a function with a result changes, and that are read
        after the call."""
        if not gives_back(called) or called.name.startswith("__"):
            return
        writer = _Writer(called, compiled=True)
        inside = [n for n in own_nodes(called) if isinstance(n, ast.stmt)]
        changed = {name for n in inside for name in writer.changed(n) if not given_anew(name, n, called)}
        refused = written_arguments(called, self.files) if self.files is not None else {}
        for name, given in _arguments(called, call).items():
            if name not in changed or name in refused or not isinstance(given, ast.Name):
                continue
            if not self.is_container(given.id) and not self._is_tensor(given.id):
                continue
            later = given.id not in stored_names(statement) and self._read_next(given.id, statement, loops)
            if self.note is not None and (later or given.id in read_behind(call, statement)):
                what = f"{called.name} changes `{given.id}`, which is read afterwards"
                self.note(statement.lineno, f"{what}; in graph mode it stays as it was: return it with the result")

    def _target(self, given: ast.expr | None) -> ast.expr:
        if not isinstance(given, (ast.Name, ast.Attribute, ast.Subscript)):
            return ast.Name("_", ast.Store())
        target = copy.deepcopy(given)
        target.ctx = ast.Store()
        return target

    def _read_next(self, name: str, statement: ast.stmt, loops: Sequence[Loop]) -> bool:
        """Whether a name is read after a statement, before it is assigned again; after a `return` nothing is."""
        if isinstance(statement, ast.Return) or not self._read_after(name, statement, loops):
            return False
        end = (statement.end_lineno or 0, statement.end_col_offset or 0)
        later = [n for n in self.statements if (n.lineno, n.col_offset) >= end and not isinstance(n, _BLOCKS)]
        for each in later:
            if any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(each)):
                return True
            if name in stored_names(each) and each.col_offset <= statement.col_offset:
                return False
        return True

    def _rows(self, loop: ast.For, loops: Sequence[Loop]) -> dict[str, View]:
        """The names of a loop for rows that are written to in it, as views; the loop is changed to count them."""
        counted = isinstance(loop.iter, ast.Call) and callees_of(loop.iter) == ["builtins.enumerate"]
        counted = counted and isinstance(loop.target, ast.Tuple) and len(loop.target.elts) == 2
        target: ast.expr = loop.target.elts[1] if counted and isinstance(loop.target, ast.Tuple) else loop.target
        over = loop.iter.args[0] if counted and isinstance(loop.iter, ast.Call) and loop.iter.args else loop.iter
        if isinstance(over, ast.Call) and callees_of(over) == ["builtins.zip"] and isinstance(target, ast.Tuple):
            pairs = [*zip(target.elts, over.args, strict=False)]
        else:
            pairs = [(target, over)]
        names = {name for part in loop.body for inner in ast.walk(part) for name in self._written_within(inner)}
        parts = {  # `for part in x.split(2):`, of which nothing can be put back
            one.id: View(whole.id, None, base)
            for one, base in pairs
            if isinstance(one, ast.Name) and one.id in names and isinstance(base, ast.Call)
            if isinstance(whole := view_of(base)[0], ast.Name) and self._is_tensor(whole.id)
        }
        rows = {
            one.id: base.id
            for one, base in pairs
            if isinstance(one, ast.Name) and isinstance(base, ast.Name) and one.id in names
            if self._is_tensor(base.id) and self._read_after(base.id, loop, loops)
        }
        if not rows:
            return parts
        if counted and isinstance(loop.target, ast.Tuple) and isinstance(loop.target.elts[0], ast.Name):
            if isinstance(loop.iter, ast.Call) and len(loop.iter.args) + len(loop.iter.keywords) > 1:
                return parts  # it does not count from 0
            number = loop.target.elts[0].id
        else:
            free = (f"index{number or ''}" for number in itertools.count())
            number = next(name for name in free if name not in self.taken)
            self.taken.add(number)
            count = ast.Name("enumerate", ast.Load())
            set_callee(count, "builtins.enumerate")
            loop.iter = ast.copy_location(ast.Call(count, [loop.iter], []), loop.iter)
            loop.target = ast.copy_location(
                ast.Tuple([ast.Name(number, ast.Store()), loop.target], ast.Store()), loop.target
            )
            ast.fix_missing_locations(loop)
        index = set_kinds(ast.Name(number, ast.Load()), [PlainKind("int")])
        return parts | {name: View(base, index) for name, base in rows.items()}

    def _written_within(self, statement: ast.AST) -> list[str]:
        """The names of the tensors that a statement, or a function that it calls, writes to."""
        found = self._written_by(statement)
        if isinstance(statement, ast.stmt) and self.files is not None:
            for call, functions in _calls_of_model(statement, self.files):
                handed = [one for called in functions for one in _handed(called, call, self.files)]
                found += [one.id for one in handed if isinstance(one, ast.Name)]
        return found

    def written_at(self, statement: ast.stmt) -> list[str]:
        """The names of what a statement changes, without those in it, by a layer too."""
        return [*self._written_within(statement), *(one.name.id for one in changed_in_place(statement))]

    def _written_by(self, statement: ast.AST) -> list[str]:
        """The names of the tensors that a statement writes to."""
        into: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            into = [target for target in statement.targets if isinstance(target, ast.Subscript)]
        elif isinstance(statement, ast.AugAssign):
            into = [statement.target]
        elif isinstance(statement, ast.Expr) and (target := written_into(statement.value)) is not None:
            into = [underlying_tensor(target)]
            while isinstance(into[0], ast.Call) and isinstance(into[0].func, ast.Attribute):  # of x.view(n, -1)
                into = [underlying_tensor(into[0].func.value)]
        roots = [root_of(target) for target in into]
        changed = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(changed, ast.Call) and isinstance(changed.func, ast.Attribute) and changed.func.attr in CHANGING:
            root = root_of(changed.func.value)
            roots += [root] if isinstance(root, ast.Name) and self._may_be(root.id) else []
        names = (root.id for root in roots if isinstance(root, ast.Name))
        return [name for name in names if self._is_tensor(name) or self._may_be(name) or not self.kinds.get(name)]

    def _is_tensor(self, name: str) -> bool:
        return always(self.kinds.get(name, ()), TensorKind)

    def is_container(self, name: str) -> bool:
        """Whether a name always was a list or a dictionary, or gets only new ones; where MindSpore may compile it."""
        kinds = [*self.kinds.get(name, ())]
        known = always(kinds, DictKind) or always_sequences(kinds, "list") or (not kinds and name in self.lists)
        return self.compiled and known

    def _may_be(self, name: str) -> bool:
        """Whether it is one, or is only in code that did not run."""
        return self.compiled and (self.is_container(name) or not self.kinds.get(name))

    def _is_same(self, name: str, view: View) -> bool:
        """Whether a name stands for a list or dictionary itself, or for one in another; a slice of a list is a copy."""
        whole = view.index is not None and (isinstance(view.index, ast.Slice) or not self.kinds.get(view.base))
        return self._may_be(name) and self.is_container(view.base) and not whole

    def changed(self, statement: ast.stmt) -> list[str]:
        """The names of the tensors, lists and dictionaries that a statement changes."""
        return [name for name in self._written_by(statement) if self.is_container(name) or self._is_tensor(name)]

    def _others(
        self, name: str, statement: ast.stmt, views: Mapping[str, View], loops: Sequence[Loop]
    ) -> Iterator[ast.stmt]:
        """The statements that give the other names of a tensor the values that were written under this one."""
        waiting, done = [name], {name}
        while waiting:
            now = waiting.pop()
            own = views.get(now)
            if own is not None and own.base not in done:
                done.add(own.base)
                waiting.append(own.base)
                if self._read_after(own.base, statement, loops):
                    yield from self._put_back(own, now, statement)
            for other, view in views.items():
                if view.base == now and other not in done:
                    done.add(other)
                    waiting.append(other)
                    if self._read_after(other, statement, loops) and view.made is not None:
                        mark(view, other)
                        again = ast.Assign([ast.Name(other, ast.Store())], copy.deepcopy(view.made))
                        yield ast.fix_missing_locations(replacing(again, statement))
                    elif self._read_after(other, statement, loops):
                        yield self._assignment(other, None, now, view.index, statement)

    def _put_back(self, view: View, name: str, after: ast.stmt) -> Iterator[ast.stmt]:
        """The statement that gives a tensor the values that were written under the name of a view of it."""
        if view.made is None:
            yield self._assignment(view.base, view.index, name, None, after)
            return
        whole, part = (self._known(ast.Name(one, ast.Load())) for one in (view.base, name))
        put = back(part, view_of(view.made)[1], whole) if isinstance(view.made, ast.Call) else None
        mark(view, name, unknown=put is None)
        if put is not None:
            found = replacing(ast.Assign([ast.Name(view.base, ast.Store())], put), after)
            yield ast.fix_missing_locations(found)

    def _assignment(self, to: str, at: ast.expr | None, of: str, picked: ast.expr | None, after: ast.stmt) -> ast.stmt:
        """`to[at] = of[picked]`."""
        target: ast.expr = ast.Name(to, ast.Store() if at is None else ast.Load())
        if at is not None:
            target = ast.Subscript(self._known(target), copy.deepcopy(at), ast.Store())
        value = self._known(ast.Name(of, ast.Load()))
        if picked is not None:
            value = self._known(ast.Subscript(value, copy.deepcopy(picked), ast.Load()), to)
        return ast.fix_missing_locations(replacing(ast.Assign([target], value), after))

    def _known(self, node: ast.expr, name: str = "") -> ast.expr:
        return set_kinds(node, self.kinds.get(name or getattr(node, "id", ""), ()))

    def _read_after(self, name: str, statement: ast.stmt, loops: Sequence[Loop]) -> bool:
        """Whether a name is read after a statement, also in the next iteration of a loop around it."""
        inside = {*ast.walk(statement)}
        reads = [node for node in self.reads.get(name, ()) if node not in inside]
        end = (statement.end_lineno or 0, statement.end_col_offset or 0)
        again = {node for loop in loops if name not in stored_names(loop) for node in ast.walk(loop)}
        return any((node.lineno, node.col_offset) >= end or node in again for node in reads)
