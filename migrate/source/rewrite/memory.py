"""Which names, attributes and containers have the memory of one tensor, in a function of which parts did not run.

torch writes into memory, `x += 1`, and whatever else has it changes too; MindSpore makes a new tensor, which only the
name written into gets. So this goes through a function once, statement by statement, and knows for each name, each
attribute and each item of a list or dictionary which memory it may have. A write makes all other places of that memory
old; an old place that is read before it gets another value is a fault: the write is refused where it did not run, and
else the read, where that did not. What ran on both sides was observed, and is not looked at here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...library_names import TABLES
from ...source_files import literal, own_nodes
from ..observe.observations import PlainKind, TensorKind, always, callees_of, kinds_of, reached
from .aliasing import LOST, OF_MODULE, changes_too, refuse
from .context import Program
from .tensors import SHARED, gives_back

LEAVES_AS_IS = "leaves_as_is"  # attribute of a statement that gives a name the values written under another one
IN_PLACE = re.compile(r"(?!requires_grad_|share_memory_)\w*[a-z0-9]_")
SHARED_MEMORY = TABLES["shared_memory"]
ABOUT, VIEWS, PIECES = ({*SHARED_MEMORY[key]} for key in ("facts", "views", "pieces"))
ITEMS = {"append", "extend", "insert", "update", "setdefault", "add", "appendleft"}  # put something into a container
TAKEN = {"pop", "get", "popitem", "popleft", "values", "items", "copy", "__getitem__"}  # give what is in one
ORDERED = {"reverse", "sort", "remove", "clear", "index", "count", "keys"}  # these leave its items in it
COPIES = {"list", "tuple", "dict", "set", "sorted", "reversed", "iter", "filter", "OrderedDict", "deque", "defaultdict"}
NUMBERS = {"len", "int", "float", "bool", "str", "isinstance", "hasattr", "type", "id", "round", "range", "callable"}
ANY = "*"  # an item of a container of which it is not known which one it is
DEEP = 4  # calls of calls that are followed


class Cell(NamedTuple):
    """The memory of a tensor, or a container: where it was made, as a place in the source, or the argument or attribute
    that has it from the start.

    earlier: whether an earlier round of a loop made it. part: which part of it, each as the kind of part and a number.
    """

    made: str
    earlier: bool = False
    part: tuple[tuple[str, str], ...] = ()

    def of_part(self, kind: str, key: str) -> Cell:
        """A part of it."""
        return self._replace(part=(*self.part, (kind, key))[:3])


class Place(NamedTuple):
    """What may have a cell: a variable, for which `of` is None, or an attribute or an item of another cell."""

    of: Cell | None
    name: str


Cells = frozenset[Cell]
State = dict[Place, frozenset[Cell | int]]  # the cells, and by which writes, as numbers, the place has become old
NONE: Cells = frozenset()
SELF: Cells = frozenset({Cell("self")})


class Write(NamedTuple):
    """A statement that writes, or the call in one; its statement; whether it did not run; for a call that ran, the
    writes of the function that did not."""

    node: ast.AST
    statement: ast.stmt
    idle: bool
    file: str
    causes: tuple[Write, ...] = ()


@dataclass
class Effects:
    """What a call of a function does: which cells it writes into, by which of its writes; what it gives back; and what
    its places have at its end. whole: the arguments that get their new values, as the function gives nothing back."""

    changed: dict[Cell, dict[int, Place | None]] = field(default_factory=dict)
    gives: Cells = NONE
    end: State = field(default_factory=dict)
    containers: dict[str, str] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    whole: frozenset[str] = frozenset()


class Memory:
    """The places of one function: `found` has, for each write and each statement that reads an old place, its name."""

    def __init__(
        self, function: ast.FunctionDef, model: Model, around: Sequence[ast.AST] = (), free: Iterable[str] = ()
    ) -> None:  # fmt: skip
        self.function, self.model, self.around = function, model, (*around, function)
        self.writes: list[Write] = []
        self.found: dict[tuple[int, ast.AST], str] = {}
        self.effects = Effects(writes=self.writes)
        self.containers: dict[str, str] = self.effects.containers
        self.pieces: set[str] = set()  # containers whose items share nothing with each other
        self.acting: set[str] = set()  # layers in variables that change what they are given
        self._log: list[tuple[Cells, int]] = []  # the writes so far
        self._loops: list[list[State]] = []
        self._now: ast.stmt = function
        self._ends: list[State] = []
        self.inner = {n.name: n for n in ast.walk(function) if isinstance(n, ast.FunctionDef) and n is not function}
        self.local = {*_bound(function), *free} - {"self"}
        arguments = function.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        numbers = _numbers(function)
        self.arguments = {one.arg for one in named if one is not None and one.arg not in numbers}
        state: State = {Place(None, one): frozenset({Cell(one)}) for one in {*self.arguments, *free}}
        last = self._block(function.body, state)
        self._leave([*self._ends, *([last] if last is not None else [])])

    # Statements

    def _block(self, body: Iterable[ast.stmt], state: State | None) -> State | None:
        """What is known behind the statements of a block; None where nothing runs behind it."""
        for statement in body:
            if state is None:
                return None
            self._now = statement
            state = self._statement(statement, state)
        return state

    def _statement(self, node: ast.stmt, state: State) -> State | None:
        match node:
            case _ if LEAVES_AS_IS in vars(node):
                self._refresh(node, state)
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, value, state)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign([target], value, state)
            case ast.AugAssign():
                self._augment(node, state)
            case ast.Expr(value=value) | ast.Assert(test=value):
                self._value(value, state)
            case ast.Return(value=value):
                self.effects.gives |= self._value(value, state) if value is not None else NONE
                self._ends.append(state)
                return None
            case ast.Raise():
                return None
            case ast.Break() | ast.Continue():
                self._loops[-1].append(state) if self._loops else None
                return None
            case ast.If(test=test, body=body, orelse=orelse):
                self._value(test, state)
                return _joined([self._block(body, {**state}), self._block(orelse, {**state})])
            case ast.For() | ast.While():
                return self._loop(node, state)
            case ast.With(items=items, body=body):
                for item in items:
                    self._value(item.context_expr, state)
                return self._block(body, state)
            case ast.Try():
                return self._try(node, state)
            case ast.Match(subject=subject, cases=cases):
                self._value(subject, state)
                return _joined([state, *(self._block(case.body, {**state}) for case in cases)])
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        state.pop(Place(None, target.id), None)
        return state

    def _loop(self, node: ast.For | ast.While, state: State) -> State | None:
        before: State = {}
        for _ in range(8):
            if before == state:
                break
            before, self._now = {**state}, node
            self._loops.append([])
            now = {**state}
            if isinstance(node, ast.For):
                self._iterate(node.target, node.iter, now)
            else:
                self._value(node.test, now)
            last = self._block(node.body, now)
            state = _joined([before, last, *self._loops.pop()]) or before
        return self._block(node.orelse, state)

    def _try(self, node: ast.Try, state: State) -> State | None:
        now: State | None = {**state}
        reached_: list[State | None] = [{**state}]
        for statement in node.body:
            now = self._block([statement], now)
            reached_.append({**now} if now is not None else None)
        now = self._block(node.orelse, now)
        caught = [self._block(one.body, {**(_joined(reached_) or state)}) for one in node.handlers]
        return self._block(node.finalbody, _joined([now, *caught]))

    def _refresh(self, node: ast.stmt, state: State) -> None:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        while isinstance(target, (ast.Subscript, ast.Attribute)) and not _path(target):
            target = target.value
        for place in self._places(target, state) if target is not None else ():
            state[place] = _cells(state.get(place, NONE))

    def _leave(self, ends: list[State]) -> None:
        """Note what the caller, or the next call, finds: no attribute, and no item of an argument, may be old."""
        end = _joined([*ends]) or {}
        own = {cell for cells in end.values() for cell in _cells(cells) if self._outer(cell)} | {Cell("self")}
        self._now = self.function
        for place in self._within(frozenset(own), end):
            self._read(place, end, self._text(place, end))
        self.effects.end = end
        if not gives_back(self.function):
            stored = _bound(self.function, arguments=False)
            self.effects.whole = frozenset(self.arguments - stored)

    def _outer(self, cell: Cell) -> bool:
        """Whether it was there before the call."""
        return not cell.made[:1].isdigit()

    # Giving values

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr, state: State) -> None:
        first = targets[0]
        if isinstance(first, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            if len(first.elts) == len(value.elts) and not any(isinstance(n, ast.Starred) for n in value.elts):
                found = [self._handed_on(one, state) for one in value.elts]
                for one, cells in zip(first.elts, found, strict=True):
                    self._put(one, cells, state)
                return
        handed = self._handed_on(value, state)
        for target in targets:
            if isinstance(target, ast.Subscript) and _overlap(target, value):
                self._fault(target, ast.unparse(target))
            self._put(target, handed, state)

    def _handed_on(self, value: ast.expr, state: State) -> frozenset[Cell | int]:
        """What a name gets: of another name or attribute also what is old in it, which is no fault until it is read."""
        places = self._places(value, state) if _path(value) else []
        if len(places) == 1:
            self._look_up(value, state)
            return state.get(places[0], NONE)
        return self._value(value, state)

    def _put(self, target: ast.expr, given: frozenset[Cell | int], state: State) -> None:
        cells = _cells(given)
        match target:
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                for number, one in enumerate(elts):
                    if isinstance(one, ast.Starred) or any(isinstance(n, ast.Starred) for n in elts[:number]):
                        self._put(one.value if isinstance(one, ast.Starred) else one, self._items(cells, state), state)
                    else:
                        self._put(one, self.item(cells, str(number), state), state)
            case ast.Name(id=name):
                state[Place(None, name)] = given
            case ast.Attribute(value=owner, attr="data"):
                self._write(self._look_up(owner, state), self._places(owner, state), self._now, state)
            case ast.Attribute():
                places = self._places(target, state)
                for place in places:
                    state[place] = given if len(places) == 1 else state.get(place, NONE) | given
            case ast.Subscript(value=owner, slice=index):
                self._value(index, state)
                self._put_item(owner, index, given, state)

    def _put_item(self, owner: ast.expr, index: ast.expr, given: frozenset[Cell | int], state: State) -> None:
        cells, key = self._look_up(owner, state), _key(index)
        containers = [cell for cell in cells if cell.made in self.containers]
        tensor = always(kinds_of(owner), TensorKind)
        if len(containers) < len(cells) and not isinstance(literal(index)[1], str):
            self._write(frozenset({*cells} - {*containers}), self._targets(owner, state), self._now, state)
        for cell in cells if not tensor else ():
            if cell.made in self.containers or self._outer(cell):
                place = Place(cell, self._at(cell, key, state))
                sure = len(cells) == 1 and key != ANY and not cell.earlier
                state[place] = given if sure else state.get(place, NONE) | given

    def _augment(self, node: ast.AugAssign, state: State) -> None:
        value = self._value(node.value, state)
        load = _loading(node.target)
        cells = self._value(load, state) if not isinstance(load, ast.Name) else self._look_up(load, state, deep=True)
        kinds = {self.containers.get(cell.made, "") for cell in cells}
        listed = isinstance(node.value, (ast.List, ast.ListComp, ast.Tuple))
        if isinstance(node.op, ast.Add) and cells and (kinds <= {"list"} or (listed and "tuple" not in kinds)):
            for cell in cells:
                self._fill(cell, self._items(value, state), state)
        elif isinstance(node.op, ast.Add) and kinds == {"tuple"}:
            items = self._items(cells, state) | self._items(value, state)
            self._put(node.target, self._container(node, "tuple", {ANY: items}, state), state)
        elif not cells:
            self._put(node.target, self._new(node, state) if value else NONE, state)
        elif not reached(node) or any(isinstance(kind, TensorKind) for kind in kinds_of(node.target)):
            if isinstance(node.target, ast.Subscript) and _overlap(node.target, node.value):
                self._fault(node.target, ast.unparse(node.target))
            self._write(cells, self._targets(node.target, state), node, state)

    def _write(
        self, cells: Cells, own: Iterable[Place], node: ast.AST, state: State, causes: tuple[Write, ...] = ()
    ) -> None:  # fmt: skip
        """Note that all places but the own ones are old now."""
        idle = not reached(self._now) or (isinstance(node, ast.expr) and not _was_run(node))
        number = self._number(Write(node, self._now, idle, self.model.file, causes))
        own = {*own}
        self._log.append((cells, number))
        for place, there in state.items():
            if place not in own and any(_meet(one, cell) for one in _cells(there) for cell in cells):
                state[place] = there | {number}
        for cell in cells:
            if self._outer(cell):
                through = next((place for place in own if place.of is None or self._outer(place.of)), None)
                self.effects.changed.setdefault(cell, {})[number] = through

    def _number(self, write: Write) -> int:
        known = [number for number, one in enumerate(self.writes) if one.node is write.node]
        if not known:
            self.writes.append(write)
        return known[0] if known else len(self.writes) - 1

    def _fault(self, node: ast.AST, name: str) -> None:
        """Note a write that is refused whatever is read afterwards: it reads places that it writes into."""
        number = self._number(Write(node, self._now, not reached(self._now), self.model.file))
        self.found[number, self._now] = name

    # Places

    def _places(self, node: ast.expr | None, state: State) -> list[Place]:
        """The places that an expression names: of a variable, an attribute, or an item of a container."""
        match node:
            case ast.Name(id=name):
                return [Place(None, name)]
            case ast.Attribute(value=owner, attr=attr) if attr not in VIEWS and attr not in ABOUT:
                return [Place(cell, attr) for cell in self._look_up(owner, state)]
            case ast.Subscript(value=owner, slice=index):
                cells = self._look_up(owner, state)
                if cells and all(cell.made in self.containers for cell in cells):
                    return [Place(cell, self._at(cell, _key(index), state)) for cell in cells]
        return []

    def _targets(self, node: ast.expr, state: State) -> list[Place]:
        """The places that get the new values where an expression is written into: `y` of `y[0]`, `l[0]` of a list."""
        while not (found := self._places(node, state)) and isinstance(node, (ast.Subscript, ast.Attribute, ast.Call)):
            if isinstance(node, ast.Call) or (isinstance(node, ast.Attribute) and node.attr != "data"):
                return []
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Subscript) and _adds_axis(node.value):
                return []
            node = node.value
        return found

    def _look_up(self, node: ast.expr, state: State, *, deep: bool = False) -> Cells:
        """The cells of an expression, without reading what is old in a container, or in the place itself."""
        match node:
            case ast.Name(id=name):
                if deep:
                    self._read(Place(None, name), state, name)
                return _cells(state.get(Place(None, name), NONE)) if name != "self" else frozenset({Cell("self")})
            case ast.Attribute(value=owner, attr=attr) if attr in VIEWS:
                return self._look_up(owner, state, deep=deep)
            case ast.Attribute(attr=attr) if attr in ABOUT:
                return NONE
            case ast.Attribute(value=owner, attr=attr):
                return self._attribute(node, self._look_up(owner, state), state)
            case ast.Subscript(value=owner, slice=index):
                cells = self._look_up(owner, state)
                self._value(index, state)
                return self._picked(cells, index, state)
        return self._value(node, state)

    def _attribute(self, node: ast.Attribute, owners: Cells, state: State) -> Cells:
        found: set[Cell] = set()
        path = ast.unparse(node).removeprefix("self.") if owners == {Cell("self")} else ""
        if path and self.model.number(path):
            return NONE
        for one in self.model.property(path) if path else ():
            found |= self._run(one, ast.copy_location(ast.Call(node, [], []), node), {}, state)
        for cell in owners:
            known = state.get(Place(cell, node.attr))
            if known is None and cell.made in self.containers:
                known = self._items(frozenset({cell}), state)
            if known is None and not found:
                known = state[Place(cell, node.attr)] = frozenset({Cell(f"{cell.made}.{node.attr}")})
            found |= _cells(known or NONE)
        return frozenset(found)

    def _read(self, place: Place, state: State, text: str) -> None:
        for one in state.get(place, NONE):
            if isinstance(one, int):
                self.found.setdefault((one, self._now), text)

    def _text(self, place: Place, state: State) -> str:
        """A place as a reader knows it: `self.h`, `parts[0]`."""
        if place.of is None:
            return place.name
        holders = [one.name for one, there in state.items() if one.of is None and place.of in there]
        owner = next(iter(sorted(holders)), place.of.made if self._outer(place.of) else "it")
        return f"{owner}.{place.name}" if place.name.isidentifier() else f"{owner}[{place.name.replace(ANY, '…')}]"

    def _within(self, cells: Cells, state: State) -> list[Place]:
        """The attributes and items of cells, and of what these have."""
        found: list[Place] = []
        waiting, done = [*cells], set()
        while waiting:
            cell = waiting.pop()
            done.add(cell)
            for place in state:
                if place.of == cell:
                    found.append(place)
                    waiting += [one for one in _cells(state[place]) if one not in done]
        return found

    def _items(self, cells: Cells, state: State) -> Cells:
        """What may be an item of cells, each of which is a container, or a tensor, whose rows have its memory."""
        found = {cell for cell in cells if cell.made not in self.containers}
        for place in [*state]:
            if place.of in cells and (
                place.of.made in self.containers or place.name == ANY or place.name[:1] in "'-0123456789"
            ):
                found |= _cells(state[place])
                self._read(place, state, self._text(place, state))
        return frozenset(found)

    def item(self, cells: Cells, key: str, state: State) -> Cells:
        """What is at a place of cells; parts of one that share nothing are told apart."""
        found: set[Cell] = set()
        for cell in cells:
            at = self._at(cell, key, state)
            known = [place for place in (Place(cell, at), Place(cell, ANY)) if place in state]
            if cell.made in self.containers:
                every = [place for place in state if place.of == cell]
                for place in known if known and at != ANY else every:
                    self._read(place, state, self._text(place, state))
                    items = _cells(state[place])
                    apart = place.name == ANY and key != ANY
                    found |= {one.of_part(cell.made, key) if apart and self._apart(cell, one) else one for one in items}
            else:
                found.add(cell.of_part("[]", key) if key != ANY else cell)
                for place in known:
                    self._read(place, state, self._text(place, state))
                    found |= _cells(state[place])
        return frozenset(found)

    def _at(self, cell: Cell, key: str, state: State) -> str:
        """The name of an item that an index picks, also of one from the end; any, where that is not known."""
        if not key.startswith("-"):
            return key
        count = self._length(cell, state)
        return ANY if count is None else str(count + int(key))

    def _length(self, cell: Cell, state: State) -> int | None:
        """How many items a list or tuple has, where that is known."""
        names = {place.name for place in state if place.of == cell}
        known = self.containers.get(cell.made) in ("list", "tuple") and names == {str(n) for n in range(len(names))}
        return len(names) if known else None

    def _apart(self, holder: Cell, item: Cell) -> bool:
        return holder.made in self.pieces or item.earlier

    def _picked(self, cells: Cells, index: ast.expr, state: State) -> Cells:
        """What an index gives of cells: of a tensor a part, if it has numbers and slices alone, and else a new one."""
        containers = frozenset(cell for cell in cells if cell.made in self.containers)
        found = self.item(containers, _key(index), state)
        if containers and isinstance(index, ast.Slice):
            kind = self.containers[next(iter(containers)).made]
            found = self._container(index, kind, {ANY: self._items(containers, state)}, state)
        others = cells - containers
        if not others or self._copies(index, state):
            return found | (self._new(index, state) if others else NONE)
        kind, key = _cut(index)
        stored = self.item(others, _key(index), state) - others if _key(index) != ANY else NONE
        return (
            found
            | frozenset(one.of_part(kind, key) if kind else one for one in others)
            | {one for one in stored if one.part == () or one.made not in {cell.made for cell in others}}
        )

    def _copies(self, index: ast.expr, state: State) -> bool:
        """Whether a part of an index surely is a tensor or a list, so that torch makes a copy."""
        for item in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(item, (ast.List, ast.Compare, ast.Invert)) or always(kinds_of(item), TensorKind):
                return True
            cells = self._look_up(item, state) if not isinstance(item, ast.Slice) else NONE
            if cells and all(not self._outer(cell) for cell in cells):
                return True
        return False

    # Making values

    def _new(self, node: ast.AST, state: State, tag: str = "") -> Cells:
        """A new tensor; what an earlier round of a loop made at this place is another one."""
        cell = Cell(f"{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}{tag}{type(node).__name__}")
        self.age({cell.made}, state)
        return frozenset({cell})

    def age(self, made: set[str], state: State) -> None:
        def aged(one: Cell | int) -> Cell | int:
            return one._replace(earlier=True) if isinstance(one, Cell) and one.made in made else one

        for place in [*state]:
            there = frozenset(map(aged, state.pop(place)))
            of = place._replace(of=place.of._replace(earlier=True)) if place.of and place.of.made in made else place
            state[of] = state.get(of, NONE) | there

    def _container(
        self, node: ast.AST, kind: str, items: Mapping[str, frozenset[Cell | int]], state: State, tag: str = ""
    ) -> Cells:
        (cell,) = self._new(node, state, tag)
        self.containers[cell.made] = kind
        state.update({Place(cell, key): there for key, there in items.items()})
        return frozenset({cell})

    def _fill(self, cell: Cell, cells: Cells, state: State, *, appended: bool = False) -> None:
        count = self._length(cell, state) if appended and not cell.earlier else None
        place = Place(cell, ANY if count is None else str(count))
        if count is None and self.containers.get(cell.made) == "list":
            loosen(cell, state)
        if cell.made in self.containers or self._outer(cell):
            state[place] = state.get(place, NONE) | cells

    def _iterate(self, target: ast.expr, over: ast.expr, state: State) -> None:
        """Give a loop's target the items of what it goes over."""
        match target, over:
            case ast.Tuple(elts=[first, second]), ast.Call(func=ast.Name(id="enumerate"), args=[given, *_]):
                self._put(first, NONE, state)
                self._iterate(second, given, state)
            case ast.Tuple(elts=[first, second]), ast.Call(func=ast.Attribute(value=owner, attr="items"), args=[]):
                self._put(first, NONE, state)
                self._put(second, self._items(self._look_up(owner, state), state), state)
            case ast.Tuple(elts=elts), ast.Call(func=ast.Name(id="zip"), args=given) if len(elts) == len(given):
                for one, each in zip(elts, given, strict=True):
                    self._iterate(one, each, state)
            case _, ast.Call(func=ast.Name(id="reversed"), args=[given]):
                self._iterate(target, given, state)
            case _, ast.List(elts=elts) | ast.Tuple(elts=elts):
                self._put(target, frozenset[Cell]().union(*(self._value(one, state) for one in elts)), state)
            case _:
                self._put(target, self._items(self._look_up(over, state), state), state)

    def _value(self, node: ast.expr, state: State) -> Cells:
        """The cells of an expression that is read."""
        match node:
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self._seen(node, state)
            case ast.Starred(value=value) | ast.Await(value=value):
                return self._items(self._value(value, state), state)
            case ast.NamedExpr(target=target, value=value):
                given = self._handed_on(value, state)
                self._put(target, given, state)
                return _cells(given)
            case ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts):
                parts = self._parts(elts, state)
                starred = any(isinstance(one, ast.Starred) for one in elts)
                items = {ANY: NONE.union(*parts)} if starred else {str(n): part for n, part in enumerate(parts)}
                return self._container(node, "tuple" if isinstance(node, ast.Tuple) else "list", items, state)
            case ast.Dict(keys=keys, values=values):
                parts = self._parts(values, state)
                entries: dict[str, frozenset[Cell | int]] = {}
                for key, part in zip(keys, parts, strict=True):
                    name = _key(key) if key is not None else ANY
                    entries[name] = entries.get(name, NONE) | (part if key is not None else self._items(part, state))
                return self._container(node, "dict", entries, state)
            case ast.BoolOp(values=values):
                return NONE.union(*(self._value(one, state) for one in values))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._value(test, state)
                return self._value(body, state) | self._value(orelse, state)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                return self._comprehension(node, state)
            case ast.Call():
                return self._call(node, state)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._value(operand, state)
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[right]):
                return self._look_up(left, state) & self._look_up(right, state) & NONE
            case ast.Lambda():
                return NONE
        return self._computed(node, state)

    def _computed(self, node: ast.expr, state: State) -> Cells:
        parts = self._parts([one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)], state)
        kinds = {self.containers.get(cell.made, "") for part in parts for cell in part}
        if isinstance(node, ast.BinOp) and kinds & {"list", "tuple"}:
            items = NONE.union(*(self._items(part, state) for part in parts))
            return self._container(node, (kinds & {"list", "tuple"}).pop(), {ANY: items}, state)
        if isinstance(node, (ast.JoinedStr, ast.FormattedValue, ast.Slice)) or not any(parts):
            return NONE
        return self._new(node, state)

    def _seen(self, node: ast.expr, state: State) -> Cells:
        """The cells of a name, an attribute or an item, which is read with all that is in it."""
        if isinstance(node, ast.Name):
            self._read(Place(None, node.id), state, node.id)
        elif isinstance(node, ast.Attribute) and node.attr in ABOUT:
            return self._look_up(node.value, state) & NONE
        elif isinstance(node, ast.Attribute) and node.attr in VIEWS:
            return self._value(node.value, state)
        elif isinstance(node, ast.Subscript):
            owner = self._look_up(node.value, state)
            if any(cell.made not in self.containers for cell in owner):
                for place in self._places(node.value, state):
                    self._read(place, state, ast.unparse(node.value))
        cells = self._look_up(node, state)
        for place in self._places(node, state):
            self._read(place, state, ast.unparse(node))
        for place in self._within(cells - {Cell("self")}, state):
            self._read(place, state, ast.unparse(node))
        return cells

    def _parts(self, nodes: Sequence[ast.expr], state: State) -> list[Cells]:
        """The cells of expressions one after the other; what a later one writes into is not yet computed with."""
        found: list[Cells] = []
        begins: list[int] = []
        for node in nodes:
            found.append(self._value(node, state))
            begins.append(len(self._log))
        for node, part, begin in zip(nodes, found, begins, strict=True):
            for cells, number in self._log[begin:]:
                if any(_meet(one, cell) for one in part for cell in cells):
                    self.found.setdefault((number, self._now), ast.unparse(node))
        return found

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp, state: State) -> Cells:
        within, before = {**state}, {cell.made for there in state.values() for cell in _cells(there)}
        for one in node.generators:
            self._iterate(one.target, one.iter, within)
            for test in one.ifs:
                self._value(test, within)
        parts = [node.elt] if not isinstance(node, ast.DictComp) else [node.key, node.value]
        items = self._value(parts[-1], within)
        inner = {n.id for one in node.generators for n in ast.walk(one.target) if isinstance(n, ast.Name)}
        state.update(
            {place: there for place, there in within.items() if place.of is not None or place.name not in inner}
        )
        items = frozenset(
            one if one.made in before or self._outer(one) else one._replace(earlier=True) for one in items
        )
        self.age({one.made for one in items if one.earlier}, state)
        return self._container(node, "dict" if isinstance(node, ast.DictComp) else "list", {ANY: items}, state)

    # Calls

    def _call(self, node: ast.Call, state: State) -> Cells:
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        method = isinstance(function, ast.Attribute) and not self._of_module(node)
        if name in NUMBERS and not method or (method and name in ABOUT):
            for one in (*node.args, *(word.value for word in node.keywords)):
                self._look_up(one, state)
            return self._look_up(function.value, state) & NONE if isinstance(function, ast.Attribute) else NONE
        owner = self._look_up(function.value, state) if isinstance(function, ast.Attribute) and method else NONE
        ran = self._callees(node, state)
        if method and not ran and (found := self._of_container(node, name, owner, state)) is not None:
            return found
        computes = method and not ran and isinstance(function, ast.Attribute) and Cell("self") not in owner
        given = [function.value] if computes and isinstance(function, ast.Attribute) else []
        given += [*node.args, *(word.value for word in node.keywords)]
        parts = self._parts(given, state)
        if ran:
            layer = isinstance(function, ast.Attribute) and function.attr != "forward"
            whose = {
                one.node: self._look_up(function, state) if layer and one.node.name == "forward" else owner
                for one in ran
            }
            given_ = [(one, self._arguments(one, node, parts)) for one in ran]
            return NONE.union(*(self._run(one, node, takes, state, whose[one.node]) for one, takes in given_))
        return self._outside(node, name, dict(zip(given, parts, strict=True)), state)

    def _outside(self, node: ast.Call, name: str, given: dict[ast.expr, Cells], state: State) -> Cells:
        """What a call of torch's, of Python's, or of a layer does and gives; given: the tensor of a method, the
        arguments and their cells."""
        parts = [*given.values()]
        first = next(iter(given), None)
        words = {word.arg: word.value for word in node.keywords}
        layers = self._layers(node.func, state)
        own = isinstance(node.func, ast.Name) and node.func.id in COPIES
        into = words.get("out")
        if first is not None and (
            IN_PLACE.fullmatch(name) or self._says_so(words) or self._acts(node.func, layers, state)
        ):
            of_init = ".init." in self.model.name(node.func) if self._of_module(node) else False
            into = first if not of_init and not isinstance(first, ast.Starred) else into
        if into is not None and (cells := given.get(into)):
            alone = isinstance(self._now, ast.Expr) and self._now.value is node
            method = isinstance(node.func, ast.Attribute) and not self._of_module(node)
            written = alone and (method or IN_PLACE.fullmatch(name) is not None)
            if alone and len(given) > 1 and any(_overlap(into, one) for one in [*given][1:]):
                self._fault(node, ast.unparse(into))
            self._write(cells, self._targets(into, state) if written else (), node, state)
            return cells
        if name == "getattr" and len(node.args) > 1 and isinstance(literal(node.args[1])[1], str):
            return self._value(ast.Attribute(node.args[0], literal(node.args[1])[1], ast.Load()), state)
        if own or (isinstance(node.func, ast.Name) and node.func.id in ("zip", "enumerate", "map")):
            items = NONE.union(*(self._items(part, state) for part in parts))
            kept = {p.name: state[p] for p in [*state] if own and len(parts) == 1 and p.of in parts[0]}
            kind = name if name in ("tuple", "dict") else "list"
            return self._container(node, kind, kept or {ANY: items}, state)
        if name in ("next", "max", "min", "sum"):
            return (
                NONE.union(*(self._items(part, state) for part in parts)) if name == "next" else self._new(node, state)
            )
        shared = name in VIEWS or any(self.model.handing(*one) for one in layers)
        if name in PIECES and parts:
            cells = self._container(node, "tuple", {ANY: parts[0]}, state)
            self.pieces |= {cell.made for cell in cells}
            return cells
        if shared and parts:
            return parts[0] | (self._new(node, state) if layers else NONE)
        if self._says_so(words) and first is None:
            (cell,) = self._new(node, state)
            self.acting.add(cell.made)
            return frozenset({cell})
        return self._made(node, name, parts, state)

    def _made(self, node: ast.Call, name: str, parts: list[Cells], state: State) -> Cells:
        """A new tensor; of a class of the model's own an object that has what it is given."""
        if name[:1].isupper() and parts and "torch." not in self.model.name(node.func):
            return self._container(node, "object", {ANY: NONE.union(*parts)}, state)
        return self._new(node, state)

    def _of_module(self, node: ast.Call) -> bool:
        return OF_MODULE in vars(node)

    def _says_so(self, words: Mapping[str | None, ast.expr]) -> bool:
        return "inplace" in words and literal(words["inplace"]) != (True, False)

    def _layers(self, function: ast.expr, state: State) -> list[tuple[str, bool]]:
        """The paths of the layers that a call may run, and whether it runs what is in one of them: a list's item."""
        item = not isinstance(function, ast.Attribute)
        root: ast.expr = function
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        if not isinstance(root, ast.Name) or (item and isinstance(function, ast.Call)):
            return []
        cells = self._look_up(function, state)
        return [(cell.made.removeprefix("self."), item) for cell in cells if cell.made.startswith("self.")]

    def _acts(self, function: ast.expr, layers: Sequence[tuple[str, bool]], state: State) -> bool:
        if isinstance(function, ast.Call):
            return self._says_so({word.arg: word.value for word in function.keywords})
        made = {cell.made for cell in self._look_up(function, state)} if isinstance(function, ast.Name) else set()
        return bool(made & self.acting) or any(self.model.in_place(*one) for one in layers)

    def _of_container(self, node: ast.Call, name: str, owner: Cells, state: State) -> Cells | None:
        """What a method of a list or a dictionary does and gives; None for any other method."""
        containers = any(cell.made in self.containers for cell in owner)
        if not owner or name not in ITEMS | TAKEN | ORDERED or not (containers or name in ITEMS | {"get", "items"}):
            return None
        parts = self._parts([*node.args, *(word.value for word in node.keywords)], state)
        if name in ITEMS:
            unpacked = name in ("extend", "update")
            cells = NONE.union(*(self._items(one, state) if unpacked and one else one for one in parts))
            cells |= NONE.union(*parts) if name == "update" and node.keywords else NONE
            for cell in owner:
                if name == "insert":
                    loosen(cell, state)
                self._fill(cell, cells, state, appended=name == "append")
            return self._items(owner, state) if name == "setdefault" else NONE
        if name in ORDERED:
            for cell in owner if name not in ("index", "count", "keys") else ():
                loosen(cell, state)
            return NONE
        if name == "pop":
            return self._popped(node, owner, state)
        if name in ("get", "__getitem__") and node.args:
            return self.item(owner, _key(node.args[0]), state) | NONE.union(*parts[1:])
        items = self._items(owner, state)
        whole = name in ("values", "items", "copy")
        return self._container(node, "list", {ANY: items}, state) if whole else items

    def _popped(self, node: ast.Call, owner: Cells, state: State) -> Cells:
        """What `pop` takes out of a list or a dictionary."""
        key = _key(node.args[0]) if node.args else "-1"
        found = self.item(owner, key, state) if key != ANY else self._items(owner, state)
        for cell in owner:
            at = self._at(cell, key, state)
            last = self._length(cell, state) == int(at) + 1 if at.isdigit() else at.startswith("'")
            if last and len(owner) == 1:
                state.pop(Place(cell, at), None)
            elif self.containers.get(cell.made) == "list":
                loosen(cell, state)
        return found

    def _callees(self, node: ast.Call, state: State) -> list[Callee]:
        if isinstance(node.func, ast.Name) and node.func.id in self.inner:
            found = [Callee(self.inner[node.func.id], self.model)]
        else:
            found = self.model.called(node)
        for path, item in self._layers(node.func, state) if not found else ():
            found = [*found, *self.model.forwards(path, item)]
        return [one for one in found if one.node not in self.around and len(self.around) <= DEEP]

    def _arguments(
        self, callee: Callee, node: ast.Call, parts: list[Cells]
    ) -> dict[str, tuple[ast.expr | None, Cells]]:
        """What the arguments of a function get: the expression, where it is one, and the cells."""
        takes = callee.node.args
        names = [one.arg for one in (*takes.posonlyargs, *takes.args)]
        plain = any(isinstance(item, ast.Name) and item.id == "staticmethod" for item in callee.node.decorator_list)
        of_class = isinstance(node.func, ast.Attribute) and self.model.name(node.func) != "" and self._of_module(node)
        if names[:1] in (["self"], ["cls"]) and not plain and not of_class:
            names = names[1:]
        found: dict[str, tuple[ast.expr | None, Cells]] = {}
        given = [*node.args, *(word.value for word in node.keywords)]
        for number, (one, cells) in enumerate(zip(given, parts, strict=True)):
            word = node.keywords[number - len(node.args)].arg if number >= len(node.args) else None
            name = word or (names[number] if number < len(names) else getattr(takes.vararg, "arg", ""))
            if isinstance(one, ast.Starred):
                found |= {each: (None, found.get(each, (None, NONE))[1] | cells) for each in names[number:]}
            elif name:
                found[name] = (one, found.get(name, (None, NONE))[1] | cells)
        return found

    def _run(
        self, callee: Callee, node: ast.Call, given: Mapping[str, tuple[ast.expr | None, Cells]], state: State,
        owner: Cells = SELF,
    ) -> Cells:  # fmt: skip
        """Do what a function of the model does to the places here; returns what it gives."""
        inner = callee.node in self.inner.values()
        effects = callee.model.effects(callee.node, self.around, self.local if inner else ())
        imported = _Import(effects, {name: cells for name, (_, cells) in given.items()}, owner, node, self, state)
        alone = isinstance(self._now, ast.Expr) and self._now.value is node
        for cell, numbers in effects.changed.items():
            wrote = {n: through for n, through in numbers.items() if effects.writes[n].idle or not _was_run(node)}
            if not wrote or not (cells := imported.cells(frozenset({cell}))):
                continue
            through = {place for place in wrote.values() if place is not None and place.of is not None}
            own = {Place(one, place.name) for place in through for one in imported.cells(frozenset({place.of}))}
            expression = given.get(cell.made, (None, NONE))[0]
            whole = cell.made in effects.whole and {*wrote.values()} == {Place(None, cell.made)}
            if alone and whole and isinstance(expression, (ast.Name, ast.Attribute)):
                own |= {*self._places(expression, state)}
            self._write(cells, own, node, state, tuple(effects.writes[n] for n in wrote))
        imported.stores()
        return imported.cells(effects.gives)


class _Import:
    """What the cells of a function of the model are where it is called."""

    def __init__(
        self, effects: Effects, given: Mapping[str, Cells], owner: Cells, node: ast.Call, memory: Memory, state: State
    ) -> None:  # fmt: skip
        self.effects, self.given, self.owner, self.memory, self.state = effects, given, owner, memory, state
        self.site = f"{node.lineno}:{node.col_offset}>"
        self.known: dict[Cell, Cells] = {}

    def cells(self, cells: Iterable[Cell | int]) -> Cells:
        """The cells here."""
        return NONE.union(*(self._one(cell) for cell in cells if isinstance(cell, Cell)))

    def _one(self, cell: Cell) -> Cells:
        base, _, rest = cell.made.partition(".")
        if cell in self.known:
            return self.known[cell]
        if cell.made[:1].isdigit():
            return self._new(cell)
        found = self.owner if base == "self" else self.given.get(base, NONE)
        if base != "self" and base not in self.given:
            found = _cells(self.state.get(Place(None, base), NONE))
        for attribute in rest.split(".") if rest else ():
            found = NONE.union(*(self._attribute(one, attribute) for one in found))
        for kind, key in cell.part:
            inside = self.memory.item(found, key, self.state) if kind == "[]" else found
            found = inside if kind == "[]" else frozenset(one.of_part(kind, key) for one in inside)
        return found

    def _attribute(self, cell: Cell, name: str) -> Cells:
        there = self.state.get(Place(cell, name))
        return frozenset({Cell(f"{cell.made}.{name}")}) if there is None else _cells(there)

    def _new(self, cell: Cell) -> Cells:
        made = Cell(f"{self.site}{cell.made}", cell.earlier, cell.part)
        if not any(one.made == cell.made for one in self.known):
            self.memory.age({made.made}, self.state)
        self.known[cell] = frozenset({made})
        if cell.made in self.effects.containers:
            self.memory.containers[made.made] = self.effects.containers[cell.made]
            for place, there in self.effects.end.items():
                if place.of == cell:
                    self.state[Place(made, place.name)] = self.cells(there)
        return self.known[cell]

    def stores(self) -> None:
        """Give the attributes and items here what the function has put into them."""
        for place, there in self.effects.end.items():
            if place.of is None or place.of.made[:1].isdigit():
                continue
            given = _cells(there) - {Cell(f"{place.of.made}.{place.name}")}
            for owner in self.cells({place.of}) if given else ():
                target = Place(owner, place.name)
                before = self.state.get(target, frozenset({Cell(f"{owner.made}.{place.name}")}))
                self.state[target] = before | self.cells(given)


def _cells(there: Iterable[Cell | int]) -> Cells:
    return frozenset(one for one in there if isinstance(one, Cell))


def _joined(states: Iterable[State | None]) -> State | None:
    """What is known where several ways meet; None where none gets there."""
    every = [state for state in states if state is not None]
    found: State = {}
    for cell in {place.of for state in every for place in state if place.of is not None and place.name.isdigit()}:
        kept = {
            frozenset(place.name for place in state if place.of == cell) for state in every if cell in _known(state)
        }
        for state in every if len(kept) > 1 else ():
            loosen(cell, state)
    for place in dict.fromkeys(place for state in every for place in state):
        outer = place.of is not None and not place.of.made[:1].isdigit() and place.name[:1].isalpha()
        default = frozenset({Cell(f"{place.of.made}.{place.name}")}) if outer and place.of is not None else NONE
        found[place] = frozenset[Cell | int]().union(*(state.get(place, default) for state in every))
    return found if every else None


def loosen(cell: Cell, state: State) -> None:
    """Forget the order of a list's items."""
    places = [place for place in state if place.of == cell and place.name != ANY]
    there = frozenset[Cell | int]().union(*(state.pop(place) for place in places))
    if places:
        state[Place(cell, ANY)] = state.get(Place(cell, ANY), NONE) | there


def _known(state: State) -> set[Cell]:
    """The cells that something has."""
    return {cell for there in state.values() for cell in _cells(there)}


def _meet(one: Cell, other: Cell) -> bool:
    """Whether two cells may have memory in common: not, where they are two parts of one kind."""
    if (one.made, one.earlier) != (other.made, other.earlier):
        return False
    for (kind, key), (of, other_key) in zip(one.part, other.part, strict=False):
        if kind != of:
            return True
        if key != other_key:
            return not _apart(key, other_key)
    return True


def _apart(key: str, other: str) -> bool:
    if "|" in key:  # slices
        (low, high), (other_low, other_high) = key.split("|"), other.split("|")
        return (high == other_low != "") or (other_high == low != "")
    numbers = all(one.lstrip("-").isdigit() for one in (key, other))
    return not numbers or key.startswith("-") == other.startswith("-")


def _key(index: ast.expr) -> str:
    """An index that is a constant, as the name of an item."""
    known, value = literal(index)
    return repr(value) if known and isinstance(value, (int, str)) and not isinstance(value, bool) else ANY


def _cut(index: ast.expr) -> tuple[str, str]:
    """Which part of a tensor an index gives, where it is cut along one axis: the kind, and the number or bounds."""
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    cut = [one for one in items if ast.unparse(one) not in (":", "...", "Ellipsis")]
    if len(cut) != 1:
        return "", ""
    kind = ",".join("#" if one is cut[0] else ast.unparse(one) for one in items)
    if isinstance(cut[0], ast.Slice) and cut[0].step is None:
        bounds = [ast.unparse(one) if one is not None else "" for one in (cut[0].lower, cut[0].upper)]
        return f"{kind}:", "|".join(bounds)
    key = _key(cut[0])
    return ("[]" if kind == "#" else kind, key) if key.lstrip("-").isdigit() else ("", "")


def _overlap(target: ast.expr, value: ast.expr) -> bool:
    """Whether what is written into a part of a tensor may come from other places of that part: `y[1:] = y[:-1]`."""
    part: ast.expr = value
    while isinstance(part, (ast.Attribute, ast.Call)) and (getattr(part, "attr", "") in VIEWS or _is_view(part)):
        inside = part.func if isinstance(part, ast.Call) else part
        part = inside.value if isinstance(inside, ast.Attribute) else ast.Constant(None)
    match target, part:
        case ast.Subscript(value=one, slice=to), ast.Subscript(value=other, slice=of):
            (kind, key), (of_kind, of_key) = _cut(to), _cut(of)
            same = ast.unparse(one) == ast.unparse(other)
            sliced = [isinstance(n, ast.Slice) and n.lower != n.upper for i in (to, of) for n in ast.walk(i)]
            differ = ast.unparse(to) != ast.unparse(of) or part is not value
            return same and differ and any(sliced) and not (kind and kind == of_kind and _apart(key, of_key))
        case ast.Subscript(value=one), _:
            return part is not value and ast.unparse(part) == ast.unparse(one)
    return part is not value and ast.unparse(part) == ast.unparse(target)


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in VIEWS


def _adds_axis(node: ast.Subscript) -> bool:
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(literal(one) == (True, None) for one in items)


def _path(node: ast.expr | None) -> bool:
    """Whether it is a name, or attributes of one."""
    while isinstance(node, ast.Attribute) and node.attr not in VIEWS | ABOUT:
        node = node.value
    return isinstance(node, ast.Name)


def _loading(target: ast.expr) -> ast.expr:
    """A target as an expression that is read."""
    found = ast.parse(ast.unparse(target), mode="eval").body
    for new, old in zip(ast.walk(found), ast.walk(target), strict=True):
        if isinstance(new, ast.expr):
            ast.copy_location(new, old)
            vars(new).update({key: one for key, one in vars(old).items() if key == "observed"})
    return found


def _bound(function: ast.FunctionDef, *, arguments: bool = True) -> set[str]:
    """The variables that a function gives values to."""
    nodes = [*own_nodes(function)]
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    changed = {n.target.id for n in nodes if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
    given = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    again = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - changed
    return stored | given if arguments else again


def _numbers(function: ast.FunctionDef) -> set[str]:
    """The arguments that are numbers or texts, by what was seen, their annotations or their defaults."""
    takes = function.args
    positional = [*takes.posonlyargs, *takes.args]
    defaults = [*zip(reversed(positional), reversed(takes.defaults), strict=False)]
    defaults += [(one, default) for one, default in zip(takes.kwonlyargs, takes.kw_defaults, strict=True) if default]
    found = {one.arg for one, default in defaults if isinstance(literal(default)[1], (int, float, str))}
    found |= {
        one.arg
        for one in ast.walk(takes)
        if isinstance(one, ast.arg) and one.annotation is not None
        if ast.unparse(one.annotation) in ("int", "float", "bool", "str")
    }
    kinds: dict[str, set[object]] = {}
    for node in own_nodes(function):
        if isinstance(node, ast.Name):
            kinds.setdefault(node.id, set()).update(kinds_of(node))
    return found | {name for name, seen in kinds.items() if seen and all(isinstance(k, PlainKind) for k in seen)}


def _was_run(node: ast.expr) -> bool:
    return bool(kinds_of(node) or callees_of(node))


class Callee(NamedTuple):
    """A function of the model, with what it can ask for."""

    node: ast.FunctionDef
    model: Model


@dataclass(frozen=True)
class Model:
    """What a function of a file, or a method of a class, can ask for about the model that it is in."""

    program: Program
    file: str
    owner: str = ""

    def effects(self, node: ast.FunctionDef, around: Sequence[ast.AST], free: Iterable[str] = ()) -> Effects:
        """What a function of this class does, found once."""
        known: dict[tuple[int, str], tuple[ast.AST, Effects]] = vars(self.program).setdefault("effects", {})
        key = (id(node), self.owner)
        if key not in known:
            known[key] = node, Memory(node, self, around, free).effects
        return known[key][1]

    def name(self, node: ast.expr) -> str:
        """The full name of what a file imports or defines at its top; empty for anything else."""
        return self.program.names(self.file).name(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""

    def called(self, call: ast.Call) -> list[Callee]:
        """The functions of the model that a call runs."""
        function, seen = call.func, callees_of(call)
        if seen:
            return [
                one for name in seen for one in self._methods(name.removeprefix("module "), name.startswith("module "))
            ]
        match function:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attr):
                return self._first(f"{base}.{attr}" for base in self.program.facts.bases(self.owner))
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=attr):
                return self._first(f"{base}.{attr}" for base in self.program.facts.bases(self.owner)[1:])
        return self._first([name]) if (name := self.name(function)) else []

    def _methods(self, name: str, module: bool) -> list[Callee]:
        return (
            self._first(f"{base}.forward" for base in self.program.facts.bases(name)) if module else self._first([name])
        )

    def _first(self, names: Iterable[str]) -> list[Callee]:
        """The first function of these names that the model has."""
        for name in names:
            owner, _, last = name.rpartition(".")
            found = self.program.class_of(owner)
            file = found[0] if found is not None else self.program.all_files.get(owner, "")
            body = found[1].body if found is not None else self.program.tree(file).body if file else []
            for node in reversed(body):
                if isinstance(node, ast.FunctionDef) and node.name == last:
                    return [Callee(node, Model(self.program, file, owner if found is not None else ""))]
        return []

    def property(self, name: str) -> list[Callee]:
        """The function of a property of the class."""
        found = self._first(f"{base}.{name}" for base in self.program.facts.bases(self.owner))
        return [one for one in found if any("property" in ast.unparse(item) for item in one.node.decorator_list)]

    def number(self, path: str) -> bool:
        """Whether an attribute was always a number or a text."""
        kinds = self.program.attributes(self.owner).get(path, [])
        made = [literal(value) for value in self._made(path)] if not kinds else []
        plain = bool(made) and all(known and isinstance(value, (int, float, str)) for known, value in made)
        return plain or (bool(kinds) and all(isinstance(kind, PlainKind) for kind in kinds))

    def _matching(self, path: str, item: bool) -> list[tuple[str, list[str]]]:
        """The modules of the model, and their classes, that an attribute of the class is; item: or that are in it."""
        classes = {at: bases for at, bases in self.program.facts.classes.items() if bases}
        found: list[tuple[str, list[str]]] = []
        for above in [at for at, bases in classes.items() if self.owner in bases]:
            for at, bases in classes.items():
                if at == above or not f"{at}.".startswith(f"{above}." if above else ""):
                    continue
                inner = at[len(above) + 1 :] if above else at
                plain = ".".join(part for part in inner.split(".") if not part.isdigit())
                exact = inner == path or (plain == path and not inner.rpartition(".")[2].isdigit())
                if exact or (item and (plain == path or inner.rpartition(".")[0] == path)):
                    found.append((at, bases))
        return found

    def in_place(self, path: str, item: bool) -> bool:
        """Whether a layer changes what it is given."""
        found = self._matching(path, item)
        known = self.program.facts.in_place
        return any(at in known for at, _ in found) if found else any(map(self._says_so, self._made(path)))

    def _made(self, path: str) -> Iterator[ast.expr]:
        """What the class assigns to an attribute, where no such module was made."""
        for base in self.program.facts.bases(self.owner):
            _, cls = self.program.class_of(base) or ("", None)
            for node in ast.walk(cls) if cls is not None else ():
                if isinstance(node, ast.Assign) and f"self.{path}" in map(ast.unparse, node.targets):
                    yield node.value

    def _says_so(self, made: ast.expr) -> bool:
        while (
            isinstance(made, ast.Call) and ast.unparse(made.func).endswith(("Sequential", "ModuleList")) and made.args
        ):
            made = made.args[0].elts[0] if isinstance(made.args[0], ast.List) and made.args[0].elts else made.args[0]
        for call in ast.walk(made):
            if isinstance(call, ast.Call):
                place = SHARED_MEMORY["inplace"].get(ast.unparse(call.func).rpartition(".")[2], len(call.args))
                given = [
                    *call.args[place : place + 1],
                    *(word.value for word in call.keywords if word.arg == "inplace"),
                ]
                if any(literal(one) != (True, False) for one in given):
                    return True
        return False

    def handing(self, path: str, item: bool) -> bool:
        """Whether a layer may give back what it is given."""
        return any(self._hands(at) for at, _ in self._matching(path, item))

    def _hands(self, at: str) -> bool:
        classes = self.program.facts.classes
        if classes[at][0] == "torch.nn.Sequential":
            inside = [one for one in classes if one.rpartition(".")[0] == at]
            return all(map(self._hands, inside))
        cls = classes[at][0]
        return cls.startswith("torch.nn.") and cls.rpartition(".")[2] in SHARED_MEMORY["layers"]

    def forwards(self, path: str, item: bool) -> list[Callee]:
        """The functions of the model that a layer runs first."""
        return [one for at, _ in self._matching(path, item) for one in self._forward(at)]

    def _forward(self, at: str) -> list[Callee]:
        classes = self.program.facts.classes
        if classes[at][0] == "torch.nn.Sequential":
            return self._forward(f"{at}.0") if f"{at}.0" in classes else []
        return self._first(f"{base}.forward" for base in classes[at] if not base.startswith("torch."))


def refuse_shared(function: ast.FunctionDef, program: Program, file: str, owner: str) -> None:
    """Mark what did not run and writes into memory of which another place is read, or reads what a write has made old,
    as code that cannot be written; in place."""
    nodes = [*ast.walk(function)]
    if all(reached(n) for n in nodes if isinstance(n, ast.stmt) and n is not function):
        return
    memory = Memory(function, Model(program, file, owner))
    every = [memory, *(Memory(one, memory.model, (function,), memory.local) for one in memory.inner.values())]
    for each in every:
        for (number, where), name in each.found.items():
            _refuse(each.writes[number], where, name)
    changed = [number for numbers in memory.effects.changed.values() for number in numbers]
    idle = [memory.writes[number] for number in dict.fromkeys(changed) if memory.writes[number].idle]
    if idle and any(map(reached, function.body)):
        faults = _faults_of_callers(program)
        for write in idle:
            if (name := faults.get((file, vars(write.node).get("number")))) is not None:
                _refuse(write, write.statement, name)


def _refuse(write: Write, where: ast.AST, name: str) -> None:
    """Mark a write, or else what reads, where it did not run."""
    statement = write.statement
    if not write.idle:
        if isinstance(where, ast.stmt) and not reached(where) and not isinstance(where, ast.FunctionDef):
            vars(where)[LOST] = f"`{name}` is read here, which {ast.unparse(write.node)} may have changed"
        return
    why = (
        changes_too(statement, name)
        if where is not statement
        else f"{ast.unparse(statement)} changes `{name}`, which it reads"
    )
    if isinstance(write.node, ast.AugAssign):
        vars(write.node)[SHARED] = why
    elif reached(statement) and isinstance(write.node, ast.Call):
        refuse(write.node, why)
    else:
        vars(statement)[LOST] = why


def _faults_of_callers(program: Program) -> dict[tuple[str, int | None], str]:
    """The writes that did not run, by file and number, into what a caller that ran reads afterwards; what it reads."""
    known: dict[tuple[str, int | None], str] | None = vars(program).get("faults_of_callers")
    if known is None:
        known = vars(program)["faults_of_callers"] = {}
        for one in program.facts.functions:
            node = program.node(one)
            if node is None or "<locals>" in one.name:
                continue
            owner = one.qualified.rpartition(".")[0] if "." in one.name else ""
            memory = Memory(node, Model(program, one.file, owner))
            for (number, where), name in memory.found.items():
                waiting = [*memory.writes[number].causes] if reached(memory.writes[number].statement) else []
                while waiting:
                    write = waiting.pop()
                    waiting += write.causes
                    known.setdefault((write.file, vars(write.node).get("number")), name)
    return known
