"""Writes into memory that something else has, too, in a function of which parts did not run.

torch writes into memory, `x += 1`, and whatever else has it changes too; MindSpore makes a new tensor, which only the
name written into gets. So this goes through a function once, statement by statement, and knows for each name, each
attribute and each item of a list or dictionary which memory it may have. A write makes all other places of that memory
old; an old place that is read before it gets another value is a fault: the write is refused where it did not run, and
else the read, where that did not. What ran on both sides was observed, and is not looked at here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...source_files import literal
from ..observe.observations import TensorKind, always, kinds_of, reached
from .context import Program
from .initializers import underlying_tensor
from .memory import (
    ABOUT,
    ANY,
    IN_PLACE,
    NONE,
    PIECES,
    SELF,
    VIEWS,
    Cell,
    Cells,
    Place,
    Places,
    State,
    bound,
    cells_in,
    in_turn,
    is_path,
    joined,
    key_of,
    loading,
    meet,
    number_arguments,
    overlap,
    was_run,
)
from .memory_of_calls import (
    Callee,
    Effects,
    Imported,
    Model,
    Write,
    arguments_of,
    called_names,
    in_place_said,
    refuse_all,
    refuse_write,
    says_in_place,
)
from .tensors import gives_back

LEAVES_AS_IS = "leaves_as_is"  # attribute of a statement that gives a name the values written under another one
COPIES = {"list", "tuple", "dict", "set", "sorted", "reversed", "iter", "filter", "OrderedDict", "deque", "defaultdict"}
NUMBERS = {"len", "int", "float", "bool", "str", "isinstance", "hasattr", "type", "id", "round", "range", "callable"}
DEEP = 4  # calls of calls that are followed


MOST = 4000  # statements that are gone over, loops again, and places


class TooMuch(Exception):
    """A function has too many ways and places to follow."""


class Memory(Places):
    """The places of one function: `found` has, for each write and each statement that reads an old place, its name."""

    def __init__(
        self, function: ast.FunctionDef, model: Model, around: Sequence[ast.AST] = (), free: Iterable[str] = (), *,
        compiled: bool = False,
    ) -> None:  # fmt: skip
        self.function, self.model, self.around, self.compiled = function, model, (*around, function), compiled
        super().__init__()
        self.writes: list[Write] = []
        self.effects = Effects(writes=self.writes, containers=self.containers)
        self.acting: set[str] = set()  # layers in variables that change what they are given
        self.steps = 0
        self._given: dict[ast.Call, Cells] = {}  # what the calls of the statement gave
        self._log: list[tuple[Cells, int]] = []  # the writes so far
        self._loops: list[list[State]] = []
        self.now = function
        self._ends: list[State] = []
        self.inner = {n.name: n for n in ast.walk(function) if isinstance(n, ast.FunctionDef) and n is not function}
        self.local |= {*bound(function), *free} - {"self"}
        arguments = function.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        numbers = number_arguments(function)
        self.arguments = {one.arg for one in named if one is not None and one.arg not in numbers}
        state: State = {Place(None, one): frozenset({Cell(one)}) for one in {*self.arguments, *free}}
        last = self._block(function.body, state)
        self._leave([*self._ends, *([last] if last is not None else [])])

    def _block(self, body: Iterable[ast.stmt], state: State | None) -> State | None:
        """What is known behind the statements of a block; None where nothing runs behind it."""
        for statement in body:
            if state is None:
                return None
            self.now, self._given = statement, {}
            state = self._statement(statement, state)
        return state

    def _statement(self, node: ast.stmt, state: State) -> State | None:
        self.steps += 1
        if self.steps > MOST or len(state) > MOST:
            raise TooMuch
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
                self.value(value, state)
            case ast.Return(value=value):
                self.effects.gives |= self.value(value, state) if value is not None else NONE
                self._ends.append(state)
                return None
            case ast.Raise():
                return None
            case ast.Break() | ast.Continue():
                self._loops[-1].append(state) if self._loops else None
                return None
            case ast.If(test=test, body=body, orelse=orelse):
                self.value(test, state)
                return joined([self._block(body, {**state}), self._block(orelse, {**state})])
            case ast.For() | ast.While():
                return self._loop(node, state)
            case ast.With(items=items, body=body):
                for item in items:
                    self.value(item.context_expr, state)
                return self._block(body, state)
            case ast.Try():
                return self._try(node, state)
            case ast.Match(subject=subject, cases=cases):
                self.value(subject, state)
                return joined([state, *(self._block(case.body, {**state}) for case in cases)])
            case ast.Delete(targets=targets):
                for one in targets:
                    if isinstance(one, ast.Name):
                        state.pop(Place(None, one.id), None)
        return state

    def _loop(self, node: ast.For | ast.While, state: State) -> State | None:
        before: State = {}
        for _ in range(8):
            if before == state:
                break
            before, self.now, self._given = {**state}, node, {}
            self._loops.append([])
            now = {**state}
            if isinstance(node, ast.For):
                self._iterate(node.target, node.iter, now)
            else:
                self.value(node.test, now)
            last = self._block(node.body, now)
            state = joined([before, last, *self._loops.pop()]) or before
        return self._block(node.orelse, state)

    def _try(self, node: ast.Try, state: State) -> State | None:
        now: State | None = {**state}
        reached_: list[State | None] = [{**state}]
        for statement in node.body:
            now = self._block([statement], now)
            reached_.append({**now} if now is not None else None)
        now = self._block(node.orelse, now)
        caught = [self._block(one.body, {**(joined(reached_) or state)}) for one in node.handlers]
        return self._block(node.finalbody, joined([now, *caught]))

    def _refresh(self, node: ast.stmt, state: State) -> None:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        while isinstance(target, (ast.Subscript, ast.Attribute)) and not is_path(target):
            target = target.value
        for place in self.places(target, state) if target is not None else ():
            state[place] = cells_in(state.get(place, NONE))

    def _leave(self, ends: list[State]) -> None:
        """Note what the caller, or the next call, finds: no attribute, and no item of an argument, may be old."""
        end = joined([*ends]) or {}
        own = {cell for cells in end.values() for cell in cells_in(cells) if self.outer(cell)} | {Cell("self")}
        self.now = self.function
        for place in self.within(frozenset(own), end):
            self.read(place, end)
        self.effects.end = end
        if not gives_back(self.function):
            self.effects.whole = frozenset(self.arguments - bound(self.function, arguments=False))

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr, state: State) -> None:
        first = targets[0]
        match first, value:
            case (ast.Tuple(elts=elts) | ast.List(elts=elts), ast.Tuple(elts=values) | ast.List(elts=values)) if len(
                elts
            ) == len(values) and not any(isinstance(one, ast.Starred) for one in (*elts, *values)):
                found = [self._handed_on(one, state) for one in values]
                for one, cells in zip(elts, found, strict=True):
                    self._put(one, cells, state)
                return
        handed = self._handed_on(value, state)
        for target in targets:
            if isinstance(target, ast.Subscript) and overlap(target, value):
                self._fault(target, ast.unparse(target))
            self._put(target, handed, state)

    def _handed_on(self, value: ast.expr, state: State) -> frozenset[Cell | int]:
        """What a name gets: of another name or attribute also what is old in it, which is no fault until it is read."""
        places = self.places(value, state) if is_path(value) else []
        if len(places) == 1:
            self.look_up(value, state)
            return state.get(places[0], NONE)
        return self.value(value, state)

    def _put(self, target: ast.expr, given: frozenset[Cell | int], state: State) -> None:
        cells = cells_in(given)
        match target:
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                for number, one in enumerate(elts):
                    if isinstance(one, ast.Starred) or any(isinstance(n, ast.Starred) for n in elts[:number]):
                        self._put(one.value if isinstance(one, ast.Starred) else one, self.items(cells, state), state)
                    else:
                        self._put(one, self.item(cells, str(number), state), state)
            case ast.Name(id=name):
                state[Place(None, name)] = given
            case ast.Attribute(value=owner, attr="data"):
                cells = self.look_up(owner, state)
                self._write(cells, self._own(owner, cells, state), self.now, state)
            case ast.Attribute():
                places = self.places(target, state)
                for place in places:
                    state[place] = given if len(places) == 1 else state.get(place, NONE) | given
            case ast.Subscript(value=owner, slice=index):
                self.value(index, state)
                self._put_item(owner, index, given, state)

    def _put_item(self, owner: ast.expr, index: ast.expr, given: frozenset[Cell | int], state: State) -> None:
        cells, key = self.look_up(owner, state), key_of(index)
        containers = [cell for cell in cells if cell.made in self.containers]
        self.list_changed(owner, state)
        tensor = always(kinds_of(owner), TensorKind)
        if len(containers) < len(cells) and not isinstance(literal(index)[1], str):
            self._write(frozenset({*cells} - {*containers}), self.targets(owner, state), self.now, state)
        for cell in cells if not tensor else ():
            if cell.made in self.containers or self.outer(cell):
                place = Place(cell, self._at(cell, key, state))
                sure = len(cells) == 1 and key != ANY and not cell.earlier
                state[place] = given if sure else state.get(place, NONE) | given

    def _augment(self, node: ast.AugAssign, state: State) -> None:
        value = self.value(node.value, state)
        load = loading(node.target)
        cells = self.value(load, state) if not isinstance(load, ast.Name) else self.look_up(load, state, deep=True)
        kinds = {self.containers.get(cell.made, "") for cell in cells}
        listed = isinstance(node.value, (ast.List, ast.ListComp, ast.Tuple))
        if isinstance(node.op, ast.Add) and cells and (kinds <= {"list"} or (listed and "tuple" not in kinds)):
            self.list_changed(load, state)
            for cell in cells:
                self.fill(cell, self.items(value, state), state)
        elif isinstance(node.op, ast.Add) and kinds == {"tuple"}:
            items = self.items(cells, state) | self.items(value, state)
            self._put(node.target, self.container(node, "tuple", {ANY: items}, state), state)
        elif not cells:
            self._put(node.target, self.new(node, state) if value else NONE, state)
        elif not reached(node) or any(isinstance(kind, TensorKind) for kind in kinds_of(node.target)):
            if isinstance(node.target, ast.Subscript) and overlap(node.target, node.value):
                self._fault(node.target, ast.unparse(node.target))
            self._write(cells, self._own(node.target, cells, state), node, state)

    def _own(self, into: ast.expr, cells: Cells, state: State) -> set[Place]:
        """The places that get the new values: of a parameter, which stays the same object, all that have it whole."""
        found, under = {*self.targets(into, state)}, underlying_tensor(into)
        paths = [cell.made.partition(".")[2] for cell in cells if not cell.part and self.outer(cell)]
        if is_path(under) and len(paths) == len(cells) and all(map(self.model.parameter, paths)):
            found |= {place for place, there in state.items() if cells & there}
        return found

    def _write(
        self, cells: Cells, own: Iterable[Place], node: ast.AST, state: State, causes: tuple[Write, ...] = ()
    ) -> None:  # fmt: skip
        """Note that all places but the own ones are old now."""
        idle = not reached(self.now) or (isinstance(node, ast.expr) and not was_run(node))
        number = self._number(Write(node, self.now, idle, self.model.file, causes))
        own = {*own}
        self._log.append((cells, number))
        for place, there in state.items():
            if place not in own and any(meet(one, cell) for one in cells_in(there) for cell in cells):
                state[place] = there | {number}
        for cell in cells:
            if self.outer(cell):
                through = next((place for place in own if place.of is None or self.outer(place.of)), None)
                self.effects.changed.setdefault(cell, {})[number] = through

    def list_changed(self, owner: ast.expr, state: State) -> None:
        """Note that a list or a dictionary gets other items: where MindSpore compiles, a variable has its own."""
        own = self.places(owner, state)
        cells = frozenset(cell for cell in self.look_up(owner, state) if cell.made in self.containers)
        others = [place for place, there in state.items() if place.of is None and place not in own and cells & there]
        for place in others if self.compiled else ():
            state[place] |= {self._number(Write(self.now, self.now, not reached(self.now), self.model.file))}

    def _number(self, write: Write) -> int:
        known = [number for number, one in enumerate(self.writes) if one.node is write.node]
        if not known:
            self.writes.append(write)
        return known[0] if known else len(self.writes) - 1

    def _fault(self, node: ast.AST, name: str) -> None:
        """Note a write that is refused whatever is read afterwards: it reads places that it writes into."""
        number = self._number(Write(node, self.now, not reached(self.now), self.model.file))
        self.found[number, self.now] = name

    def _iterate(self, target: ast.expr, over: ast.expr, state: State) -> None:
        """Give a loop's target the items of what it goes over."""
        match target, over:
            case ast.Tuple(elts=[first, second]), ast.Call(func=ast.Name(id="enumerate"), args=[given, *_]):
                self._put(first, NONE, state)
                self._iterate(second, given, state)
            case ast.Tuple(elts=[first, second]), ast.Call(func=ast.Attribute(value=owner, attr="items"), args=[]):
                self._put(first, NONE, state)
                self._put(second, self.items(self.look_up(owner, state), state), state)
            case ast.Tuple(elts=elts), ast.Call(func=ast.Name(id="zip"), args=given) if len(elts) == len(given):
                for one, each in zip(elts, given, strict=True):
                    self._iterate(one, each, state)
            case _, ast.Call(func=ast.Name(id="reversed"), args=[given]):
                self._iterate(target, given, state)
            case _, ast.List(elts=elts) | ast.Tuple(elts=elts):
                self._put(target, frozenset[Cell]().union(*(self.value(one, state) for one in elts)), state)
            case _:
                self._put(target, self.items(self.look_up(over, state, deep=True), state), state)

    def value(self, node: ast.expr, state: State) -> Cells:
        """The cells of an expression that is read."""
        match node:
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self.seen(node, state)
            case ast.Starred(value=value) | ast.Await(value=value):
                return self.items(self.value(value, state), state)
            case ast.NamedExpr(target=target, value=value):
                given = self._handed_on(value, state)
                self._put(target, given, state)
                return cells_in(given)
            case ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts):
                parts = self.parts(elts, state)
                starred = any(isinstance(one, ast.Starred) for one in elts)
                items = {ANY: NONE.union(*parts)} if starred else {str(n): part for n, part in enumerate(parts)}
                return self.container(node, "tuple" if isinstance(node, ast.Tuple) else "list", items, state)
            case ast.Dict(keys=keys, values=values):
                parts = self.parts(values, state)
                entries: dict[str, frozenset[Cell | int]] = {}
                for key, part in zip(keys, parts, strict=True):
                    name = key_of(key) if key is not None else ANY
                    entries[name] = entries.get(name, NONE) | (part if key is not None else self.items(part, state))
                return self.container(node, "dict", entries, state)
            case ast.BoolOp(values=values):
                return NONE.union(*(self.value(one, state) for one in values))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.value(test, state)
                return self.value(body, state) | self.value(orelse, state)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                return self._comprehension(node, state)
            case ast.Call():
                if node not in self._given:
                    self._given[node] = self._call(node, state)
                return self._given[node]
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand, state)
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[right]):
                return self.look_up(left, state) & self.look_up(right, state) & NONE
            case ast.Lambda():
                return NONE
        return self._computed(node, state)

    def _computed(self, node: ast.expr, state: State) -> Cells:
        parts = self.parts([one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)], state)
        kinds = {self.containers.get(cell.made, "") for part in parts for cell in part}
        if isinstance(node, ast.BinOp) and kinds & {"list", "tuple"}:
            items = NONE.union(*(self.items(part, state) for part in parts))
            return self.container(node, (kinds & {"list", "tuple"}).pop(), {ANY: items}, state)
        if isinstance(node, (ast.JoinedStr, ast.FormattedValue, ast.Slice)) or not any(parts):
            return NONE
        return self.new(node, state)

    def parts(self, nodes: Sequence[ast.expr], state: State) -> list[Cells]:
        """The cells of expressions one after the other; what a later one writes into is not yet computed with."""
        found: list[Cells] = []
        begins: list[int] = []
        for node in nodes:
            found.append(self.value(node, state))
            begins.append(len(self._log))
        for node, part, begin in zip(nodes, found, begins, strict=True):
            for cells, number in self._log[begin:]:
                if any(meet(one, cell) for one in part for cell in cells):
                    self.found.setdefault((number, self.now), ast.unparse(node))
        return found

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp, state: State) -> Cells:
        within, before = {**state}, {cell.made for there in state.values() for cell in cells_in(there)}
        for one in node.generators:
            self._iterate(one.target, one.iter, within)
            for test in one.ifs:
                self.value(test, within)
        parts = [node.elt] if not isinstance(node, ast.DictComp) else [node.key, node.value]
        items = self.value(parts[-1], within)
        inner = {n.id for one in node.generators for n in ast.walk(one.target) if isinstance(n, ast.Name)}
        state.update(
            {place: there for place, there in within.items() if place.of is not None or place.name not in inner}
        )
        items = frozenset(one if one.made in before or self.outer(one) else one._replace(earlier=True) for one in items)
        self.age({one.made for one in items if one.earlier}, state)
        return self.container(node, "dict" if isinstance(node, ast.DictComp) else "list", {ANY: items}, state)

    def _call(self, node: ast.Call, state: State) -> Cells:
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        method = isinstance(function, ast.Attribute) and not self.of_module(node)
        if (name in NUMBERS and not method) or (method and name in ABOUT):
            for one in (*node.args, *(word.value for word in node.keywords)):
                if any(cell.made in self.containers for cell in self.look_up(one, state)):
                    self.look_up(one, state, deep=True)
            return self.look_up(function.value, state) & NONE if isinstance(function, ast.Attribute) else NONE
        owner = self.look_up(function.value, state) if isinstance(function, ast.Attribute) and method else NONE
        ran = self._callees(node, state)
        if method and not ran and (found := self.of_container(node, name, owner, state)) is not None:
            return found
        computes = method and not ran and isinstance(function, ast.Attribute) and Cell("self") not in owner
        given = [function.value] if computes and isinstance(function, ast.Attribute) else []
        given += [*node.args, *(word.value for word in node.keywords)]
        parts = self.parts(given, state)
        if ran:
            layer = isinstance(function, ast.Attribute) and function.attr != "forward"
            itself = self.look_up(function, state) if layer else owner  # the layer, in its own function
            whose = {one.node: itself if one.node.name == "forward" else owner for one in ran}
            of_class = not method and isinstance(function, ast.Attribute)
            takes = {one.node: arguments_of(one.node, node, parts, of_class=of_class) for one in ran}
            return NONE.union(*(self._run(one, node, takes[one.node], state, whose[one.node]) for one in ran))
        return self._outside(node, name, dict(zip(given, parts, strict=True)), state)

    def _outside(self, node: ast.Call, name: str, given: dict[ast.expr, Cells], state: State) -> Cells:
        """What a call of torch's, of Python's, or of a layer does and gives; given: the tensor of a method, the
        arguments and their cells."""
        parts = [*given.values()]
        first = next(iter(given), None)
        words = {word.arg: word.value for word in node.keywords}
        layers = self.layers(node.func, state)
        own = isinstance(node.func, ast.Name) and node.func.id in COPIES
        into = words.get("out")
        said = in_place_said(words) and not name[:1].isupper()
        if first is not None and (IN_PLACE.fullmatch(name) or said or self._acts(node.func, layers, state)):
            of_init = self.of_module(node) and self.model.name(node.func).startswith("torch.nn.init.")
            into = first if not of_init and not isinstance(first, ast.Starred) else into
        if into is not None and (cells := given.get(into)):
            alone = isinstance(self.now, ast.Expr) and node in in_turn(self.now.value)
            into = in_turn(into)[-1]
            method = isinstance(node.func, ast.Attribute) and not self.of_module(node)
            written = alone and (method or IN_PLACE.fullmatch(name) is not None)
            if alone and len(given) > 1 and any(overlap(into, one) for one in [*given][1:]):
                self._fault(node, ast.unparse(into))
            self._write(cells, self._own(into, cells, state) if written else (), node, state)
            return cells
        if name == "getattr" and len(node.args) > 1 and isinstance(literal(node.args[1])[1], str):
            return self.value(ast.Attribute(node.args[0], literal(node.args[1])[1], ast.Load()), state)
        if own or (isinstance(node.func, ast.Name) and node.func.id in ("zip", "enumerate", "map")):
            items = NONE.union(*(self.items(part, state) for part in parts))
            kept = {p.name: state[p] for p in [*state] if own and len(parts) == 1 and p.of in parts[0]}
            kind = name if name in ("tuple", "dict") else "list"
            return self.container(node, kind, kept or {ANY: items}, state)
        if name in ("next", "max", "min", "sum"):
            return NONE.union(*(self.items(part, state) for part in parts)) if name == "next" else self.new(node, state)
        shared = name in VIEWS or any(self.model.handing(*one) for one in layers)
        if name in PIECES and parts:
            cells = self.container(node, "tuple", {ANY: parts[0]}, state)
            self.separate |= {cell.made for cell in cells}
            return cells
        if shared and parts:
            return parts[0] | (self.new(node, state) if layers else NONE)
        if name[:1].isupper() and says_in_place(node):
            (cell,) = self.new(node, state)
            self.acting.add(cell.made)
            return frozenset({cell})
        if (
            name[:1].isupper() and parts and not self.model.name(node.func).startswith("torch.")
        ):  # an object that has them
            return self.container(node, "object", {ANY: NONE.union(*parts)}, state)
        return self.new(node, state)

    def _acts(self, function: ast.expr, layers: Sequence[tuple[str, bool]], state: State) -> bool:
        if isinstance(function, ast.Call):
            return says_in_place(function)
        made = {cell.made for cell in self.look_up(function, state)} if isinstance(function, ast.Name) else set()
        return bool(made & self.acting) or any(self.model.in_place(*one) for one in layers)

    def _callees(self, node: ast.Call, state: State) -> list[Callee]:
        if isinstance(node.func, ast.Name) and node.func.id in self.inner:
            found = [Callee(self.inner[node.func.id], self.model)]
        else:
            found = self.model.called(node)
        for path, item in self.layers(node.func, state) if not found else ():
            found = [*found, *self.model.forwards(path, item)]
        return [one for one in found if one.node not in self.around and len(self.around) <= DEEP]

    def of_property(self, node: ast.Attribute, state: State) -> Cells | None:
        """What a property gives, or an attribute that is a number; None for any other attribute."""
        path = ast.unparse(node).removeprefix("self.")
        if self.model.number(path):
            return NONE
        call = ast.copy_location(ast.Call(node, [], []), node)
        given = [self._run(one, call, {}, state) for one in self.model.property(path) if one.node not in self.around]
        return NONE.union(*given) if given else None

    def _effects(self, callee: Callee) -> Effects:
        """What a function of the model does, found once."""
        known: dict[tuple[int, str], tuple[ast.AST, Effects]] = vars(self.model.program).setdefault("effects", {})
        key = (id(callee.node), callee.model.owner)
        if key not in known:
            free = self.local if callee.node in self.inner.values() else ()
            known[key] = callee.node, Memory(callee.node, callee.model, self.around, free).effects
        return known[key][1]

    def caused(self) -> Iterator[tuple[tuple[str, int | None], str]]:
        """The writes of functions it calls that did not run, and cause faults here where it ran; and what is read."""
        for (number, _), place in self.found.items():
            waiting = [*self.writes[number].causes] if not self.writes[number].idle else []
            while waiting:
                write = waiting.pop()
                waiting += write.causes
                yield (write.file, vars(write.node).get("number")), place

    def _run(
        self, callee: Callee, node: ast.Call, given: Mapping[str, tuple[ast.expr | None, Cells]], state: State,
        owner: Cells = SELF,
    ) -> Cells:  # fmt: skip
        """Do what a function of the model does to the places here; returns what it gives."""
        effects = self._effects(callee)
        imported = Imported(effects, {name: cells for name, (_, cells) in given.items()}, owner, node, self, state)
        alone = isinstance(self.now, ast.Expr) and self.now.value is node
        for cell, numbers in effects.changed.items():
            wrote = {n: through for n, through in numbers.items() if effects.writes[n].idle or not was_run(node)}
            if not wrote or not (cells := imported.cells(frozenset({cell}))):
                continue
            through = {(at.of, at.name) for at in wrote.values() if at is not None and at.of is not None}
            own = {Place(one, named) for of, named in through for one in imported.cells({of})}
            expression = given.get(cell.made, (None, NONE))[0]
            whole = cell.made in effects.whole and {*wrote.values()} == {Place(None, cell.made)}
            if alone and whole and isinstance(expression, (ast.Name, ast.Attribute)):
                own |= {*self.places(expression, state)}
            self._write(cells, own, node, state, tuple(effects.writes[n] for n in wrote))
        imported.stores()
        return imported.cells(effects.gives)


def refuse_shared(function: ast.FunctionDef, program: Program, file: str, owner: str, *, compiled: bool) -> None:
    """Mark what did not run and writes into memory of which another place is read, or reads what a write has made old,
    as code that cannot be written; in place."""
    nodes = [*ast.walk(function)]
    if all(reached(n) for n in nodes if isinstance(n, ast.stmt) and n is not function):
        return
    try:
        memory = Memory(function, Model(program, file, owner), compiled=compiled)
        every = [memory, *(Memory(one, memory.model, (function,), memory.local) for one in memory.inner.values())]
    except TooMuch:
        refuse_all(function)
        return
    for each in every:
        for (number, where), name in each.found.items():
            refuse_write(each.writes[number], where, name)
    changed = [number for numbers in memory.effects.changed.values() for number in numbers]
    idle = [memory.writes[number] for number in dict.fromkeys(changed) if memory.writes[number].idle]
    if idle and any(map(reached, function.body)):
        faults = _faults_of_callers(program, function.name)
        for write in idle:
            if (place := faults.get((file, vars(write.node).get("number")), faults.get(("", None)))) is not None:
                refuse_write(write, function, place)


def _faults_of_callers(program: Program, name: str) -> dict[tuple[str, int | None], str]:
    """The writes that did not run, by file and number, into what a caller of functions of this name reads afterwards;
    what it reads. Callers that hand it on are gone over as well."""
    known: dict[str, dict[tuple[str, int | None], str]] = vars(program).setdefault("faults_of_callers", {})
    if name in known:
        return known[name]
    found = known[name] = {}
    for one in program.facts.functions:
        node = program.node(one)
        if node is None or "<locals>" in one.name or name not in called_names(node):
            continue
        try:
            memory = Memory(node, Model(program, one.file, one.qualified.rpartition(".")[0] * ("." in one.name)))
            found |= {key: place for key, place in memory.caused() if key not in found}
            if any(memory.writes[n].causes for numbers in memory.effects.changed.values() for n in numbers):
                found |= {key: at for key, at in _faults_of_callers(program, node.name).items() if key not in found}
        except TooMuch:  # of it everything counts as read
            found["", None] = f"what {one.name} has"
    return found
