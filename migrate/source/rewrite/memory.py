"""Which memory the variables, attributes and items of containers of a function may have, and what is old in them.

A tensor's memory, or a container, is a cell. What has a cell is a place. shared_writes.py goes through a function and
asks this for the cells of its expressions; memory_of_calls.py says what functions of the model do.
"""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...library_names import TABLES
from ...source_files import literal, own_nodes
from ..observe.observations import PlainKind, TensorKind, always, callees_of, kinds_of

SHARED_MEMORY = TABLES["shared_memory"]
ABOUT, VIEWS, PIECES = ({*SHARED_MEMORY[key]} for key in ("facts", "views", "pieces"))
ITEMS = {"append", "extend", "insert", "update", "setdefault", "add", "appendleft"}  # put something into a container
TAKEN = {"pop", "get", "popitem", "popleft", "values", "items", "copy", "__getitem__"}  # give what is in one
ORDERED = {"reverse", "sort", "remove", "clear", "index", "count", "keys"}  # these leave its items in it
ASKING = {"get", "values", "items", "copy", "__getitem__", "index", "count", "keys"}  # these change nothing
DEEPEST = 6  # attributes of attributes that are distinguished
IN_PLACE = re.compile(r"(?!requires_grad_|share_memory_)\w*[a-z0-9]_")
ANY = "*"  # an item of a container of which it is not known which one it is


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
        return self._replace(part=self.part or ((kind, key),))


class Place(NamedTuple):
    """What may have a cell: a variable, for which `of` is None, or an attribute or an item of another cell."""

    of: Cell | None
    name: str


Cells = frozenset[Cell]
State = dict[Place, frozenset[Cell | int]]  # the cells, and by which writes, as numbers, the place has become old
NONE: Cells = frozenset()
SELF: Cells = frozenset({Cell("self")})


class Places(ABC):
    """What the places of a function have, in a state that a statement's expressions change.

    found: for each write and each statement that reads what it has made old, the place.
    """

    def __init__(self) -> None:
        self.containers: dict[str, str] = {}  # where a container was made -> what it is
        self.separate: set[str] = set()  # containers whose items share nothing with each other
        self.found: dict[tuple[int, ast.AST], str] = {}
        self.local: set[str] = set()  # the names of its variables
        self.now: ast.stmt = ast.Pass()  # the statement that is looked at

    @abstractmethod
    def value(self, node: ast.expr, state: State) -> Cells:
        """The cells of an expression that is read."""

    @abstractmethod
    def parts(self, nodes: Sequence[ast.expr], state: State) -> list[Cells]:
        """The cells of expressions that are read one after the other."""

    @abstractmethod
    def list_changed(self, owner: ast.expr, state: State) -> None:
        """Note that a list or a dictionary gets other items."""

    @abstractmethod
    def of_property(self, node: ast.Attribute, state: State) -> Cells | None:
        """What a property gives, or an attribute that is a number; None for any other attribute."""

    def places(self, node: ast.expr | None, state: State) -> list[Place]:
        """The places that an expression names: of a variable, an attribute, or an item of a container."""
        match node:
            case ast.Name(id=name):
                return [Place(None, name)]
            case ast.Attribute(value=owner, attr=attr) if attr not in VIEWS and attr not in ABOUT:
                return [Place(cell, attr) for cell in self.look_up(owner, state)]
            case ast.Subscript(value=owner, slice=index):
                cells = self.look_up(owner, state)
                if key_of(index).startswith("'") or (cells and all(cell.made in self.containers for cell in cells)):
                    return [Place(cell, self._at(cell, key_of(index), state)) for cell in cells]
        return []

    def targets(self, node: ast.expr, state: State) -> list[Place]:
        """The places that get the new values where an expression is written into: `y` of `y[0]`, `l[0]` of a list."""
        while not (found := self.places(node, state)) and isinstance(node, (ast.Subscript, ast.Attribute, ast.Call)):
            if isinstance(node, ast.Call) or (isinstance(node, ast.Attribute) and node.attr != "data"):
                return []
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Subscript) and _adds_axis(node.value):
                return []
            node = node.value
        return found

    def look_up(self, node: ast.expr, state: State, *, deep: bool = False) -> Cells:
        """The cells of an expression, without reading what is old in a container, or in the place itself."""
        match node:
            case ast.Name(id=name):
                if deep:
                    self.read(Place(None, name), state, name)
                return cells_in(state.get(Place(None, name), NONE)) if name != "self" else frozenset({Cell("self")})
            case ast.Attribute(value=owner, attr=attr) if attr in VIEWS:
                return self.look_up(owner, state, deep=deep)
            case ast.Attribute(attr=attr) if attr in ABOUT:
                return NONE
            case ast.Attribute(value=owner, attr=attr):
                return self.attribute(node, self.look_up(owner, state), state)
            case ast.Subscript(value=owner, slice=index):
                cells = self.look_up(owner, state)
                self.value(index, state)
                return self.picked(cells, index, state)
        return self.value(node, state)

    def attribute(self, node: ast.Attribute, owners: Cells, state: State) -> Cells:
        """The cells of an attribute of cells: of one that nothing is known of, a cell of its own."""
        if (given := self.of_property(node, state) if owners == SELF else None) is not None:
            return given
        found: set[Cell] = set()
        for cell in owners:
            known = state.get(Place(cell, node.attr))
            if known is None and cell.made in self.containers:
                known = self.items(frozenset({cell}), state)
            if known is None:
                known = state[Place(cell, node.attr)] = self.unknown(cell, node.attr)
            found |= cells_in(known)
        return frozenset(found)

    def outer(self, cell: Cell) -> bool:
        """Whether it was there before the call."""
        return not cell.made[:1].isdigit()

    def read(self, place: Place, state: State, text: str = "") -> None:
        """Note that a place is read: a fault, where a write has made it old."""
        for one in state.get(place, NONE):
            if isinstance(one, int):
                self.found.setdefault((one, self.now), text or self.text(place, state))

    def text(self, place: Place, state: State) -> str:
        """A place as a reader knows it: `self.h`, `parts[0]`."""
        if place.of is None:
            return place.name
        holders = [one.name for one, there in state.items() if one.of is None and place.of in there]
        owner = next(iter(sorted(holders)), place.of.made if self.outer(place.of) else "it")
        return f"{owner}.{place.name}" if place.name.isidentifier() else f"{owner}[{place.name.replace(ANY, '…')}]"

    def seen(self, node: ast.expr, state: State) -> Cells:
        """The cells of a name, an attribute or an item, which is read with all that is in it."""
        if isinstance(node, ast.Name):
            self.read(Place(None, node.id), state, node.id)
        elif isinstance(node, ast.Attribute) and node.attr in ABOUT:
            return self.look_up(node.value, state) & NONE
        elif isinstance(node, ast.Attribute) and node.attr in VIEWS:
            return self.value(node.value, state)
        elif isinstance(node, ast.Subscript):
            for place in self.places(node.value, state):
                self.read(place, state, ast.unparse(node.value))
        cells = self.look_up(node, state)
        for place in self.places(node, state):
            self.read(place, state, ast.unparse(node))
        for place in self.within(cells - {Cell("self")}, state):
            self.read(place, state, ast.unparse(node))
        return cells

    def within(self, cells: Cells, state: State) -> list[Place]:
        """The attributes and items of cells, and of what these have."""
        inside: dict[Cell | None, list[Place]] = {}
        for place in state:
            inside.setdefault(place.of, []).append(place)
        found: list[Place] = []
        waiting, done = {*cells}, set[Cell]()
        while waiting:
            cell = waiting.pop()
            done.add(cell)
            found += inside.get(cell, [])
            waiting |= {one for place in inside.get(cell, ()) for one in cells_in(state[place])} - done
        return found

    def items(self, cells: Cells, state: State) -> Cells:
        """What may be an item of cells, each of which is a container, or a tensor, whose rows have its memory."""
        found = {cell for cell in cells if cell.made not in self.containers}
        for place in [*state]:
            if place.of in cells and (
                place.of.made in self.containers or place.name == ANY or place.name[:1] in "'-0123456789"
            ):
                found |= cells_in(state[place])
                self.read(place, state)
        return frozenset(found)

    def item(self, cells: Cells, key: str, state: State) -> Cells:
        """What is at a place of cells; parts of one that share nothing are distinguished."""
        found: set[Cell] = set()
        for cell in cells:
            at = self._at(cell, key, state)
            known = [place for place in (Place(cell, at), Place(cell, ANY)) if place in state]
            if cell.made in self.containers:
                every = [place for place in state if place.of == cell]
                for place in known if known and at != ANY else every:
                    self.read(place, state)
                    items = cells_in(state[place])
                    other = place.name == ANY and key != ANY
                    found |= {
                        one.of_part(cell.made, key) if other and self._is_separate(cell, one) else one for one in items
                    }
                continue
            if key.startswith("'") and Place(cell, key) not in state:  # no tensor has such items
                known.append(Place(cell, key))
                state[Place(cell, key)] = self.unknown(cell, key)
            found |= set() if key.startswith("'") else {cell.of_part("[]", key) if key != ANY else cell}
            for place in known:
                self.read(place, state)
                found |= cells_in(state[place])
        return frozenset(found)

    def unknown(self, cell: Cell, name: str) -> Cells:
        """What an attribute or an item has of which nothing is known: a cell of its own."""
        return frozenset({Cell(f"{cell.made}.{name}") if cell.made.count(".") < DEEPEST else cell})

    def _at(self, cell: Cell, key: str, state: State) -> str:
        """The name of an item that an index picks, also of one from the end; any, where that is not known."""
        if not key.startswith("-"):
            return key
        count = self.length(cell, state)
        return ANY if count is None else str(count + int(key))

    def length(self, cell: Cell, state: State) -> int | None:
        """How many items a list or tuple has, where that is known."""
        names = {place.name for place in state if place.of == cell}
        known = self.containers.get(cell.made) in ("list", "tuple") and names == {str(n) for n in range(len(names))}
        return len(names) if known else None

    def _is_separate(self, holder: Cell, item: Cell) -> bool:
        return holder.made in self.separate or item.earlier

    def picked(self, cells: Cells, index: ast.expr, state: State) -> Cells:
        """What an index gives of cells: of a tensor a part, if it has numbers and slices alone, and else a new one."""
        containers = frozenset(cell for cell in cells if cell.made in self.containers)
        found = self.item(containers, key_of(index), state)
        if containers and isinstance(index, ast.Slice):
            kind = self.containers[next(iter(containers)).made]
            found = self.container(index, kind, {ANY: self.items(containers, state)}, state)
        others = cells - containers
        if key_of(index).startswith("'"):
            return found | self.item(others, key_of(index), state)
        if not others or self._copies(index, state):
            return found | (self.new(index, state) if others else NONE)
        kind, key = cut(index)
        stored = self.item(others, key_of(index), state) - others if key_of(index) != ANY else NONE
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
            cells = self.look_up(item, state) if not isinstance(item, ast.Slice) else NONE
            if cells and all(not self.outer(cell) for cell in cells):
                return True
        return False

    def new(self, node: ast.AST, state: State, tag: str = "") -> Cells:
        """A new tensor; what an earlier round of a loop made at this place is another one."""
        cell = Cell(f"{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}{tag}{type(node).__name__}")
        self.age({cell.made}, state)
        return frozenset({cell})

    def age(self, made: set[str], state: State) -> None:
        """Tell what was made at these places from what is made there next."""

        def aged(one: Cell | int) -> Cell | int:
            return one._replace(earlier=True) if isinstance(one, Cell) and one.made in made else one

        every = ([place.of, *there] for place, there in state.items())
        hit = any(isinstance(one, Cell) and one.made in made for there in every for one in there)
        for place in [*state] if hit else ():
            there = frozenset(map(aged, state.pop(place)))
            of = place._replace(of=place.of._replace(earlier=True)) if place.of and place.of.made in made else place
            state[of] = state.get(of, NONE) | there

    def container(
        self, node: ast.AST, kind: str, items: Mapping[str, frozenset[Cell | int]], state: State, tag: str = ""
    ) -> Cells:
        """A new list, dictionary or the like with these items."""
        (cell,) = self.new(node, state, tag)
        self.containers[cell.made] = kind
        state.update({Place(cell, key): there for key, there in items.items()})
        return frozenset({cell})

    def fill(self, cell: Cell, cells: Cells, state: State, *, appended: bool = False) -> None:
        """Put something into a container."""
        count = self.length(cell, state) if appended and not cell.earlier else None
        place = Place(cell, ANY if count is None else str(count))
        if count is None and self.containers.get(cell.made) == "list":
            loosen(cell, state)
        if cell.made in self.containers or self.outer(cell):
            state[place] = state.get(place, NONE) | cells

    def of_module(self, node: ast.Call) -> bool:
        """Whether a call is of a function of a module, or of a class, by its name."""
        root: ast.expr = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        return isinstance(root, ast.Name) and root.id not in self.local | {"self", "cls"}

    def layers(self, function: ast.expr, state: State) -> list[tuple[str, bool]]:
        """The paths of the layers that a call may run, and whether it runs what is in one of them: a list's item."""
        item = not isinstance(function, ast.Attribute)
        root: ast.expr = function
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        if not isinstance(root, ast.Name):
            return []
        key = key_of(function.slice).strip("'") if isinstance(function, ast.Subscript) else ANY
        if isinstance(function, ast.Subscript) and (key.isidentifier() or key.isdigit()):
            owners = self.look_up(function.value, state)
            return [(f"{cell.made.removeprefix('self.')}.{key}", False) for cell in owners if cell.made[:5] == "self."]
        cells = self.look_up(function.value if isinstance(function, ast.Attribute) else function, state)
        if isinstance(function, ast.Attribute):
            made = [
                one
                for cell in cells
                for one in state.get(Place(cell, function.attr), [Cell(f"{cell.made}.{function.attr}")])
            ]
            cells = cells_in(made)
        return [(cell.made.removeprefix("self."), item) for cell in cells if cell.made.startswith("self.")]

    def of_container(self, node: ast.Call, name: str, owner: Cells, state: State) -> Cells | None:
        """What a method of a list or a dictionary does and gives; None for any other method."""
        containers = any(cell.made in self.containers for cell in owner)
        if not owner or name not in ITEMS | TAKEN | ORDERED or not (containers or name in ITEMS | {"get", "items"}):
            return None
        parts = self.parts([*node.args, *(word.value for word in node.keywords)], state)
        if isinstance(node.func, ast.Attribute) and name not in ASKING:
            self.list_changed(node.func.value, state)
        if name in ITEMS:
            unpacked = name in ("extend", "update")
            cells = NONE.union(*(self.items(one, state) if unpacked and one else one for one in parts))
            cells |= NONE.union(*parts) if name == "update" and node.keywords else NONE
            for cell in owner:
                if name == "insert":
                    loosen(cell, state)
                self.fill(cell, cells, state, appended=name == "append")
            return self.items(owner, state) if name == "setdefault" else NONE
        if name in ORDERED:
            for cell in owner if name not in ASKING else ():
                loosen(cell, state)
            return NONE
        if name == "pop":
            return self._popped(node, owner, state)
        if name in ("get", "__getitem__") and node.args:
            return self.item(owner, key_of(node.args[0]), state) | NONE.union(*parts[1:])
        items = self.items(owner, state)
        whole = name in ("values", "items", "copy")
        return self.container(node, "list", {ANY: items}, state) if whole else items

    def _popped(self, node: ast.Call, owner: Cells, state: State) -> Cells:
        """What `pop` takes out of a list or a dictionary."""
        key = key_of(node.args[0]) if node.args else "-1"
        found = self.item(owner, key, state) if key != ANY else self.items(owner, state)
        for cell in owner:
            at = self._at(cell, key, state)
            last = self.length(cell, state) == int(at) + 1 if at.isdigit() else at.startswith("'")
            if last and len(owner) == 1:
                state.pop(Place(cell, at), None)
            elif self.containers.get(cell.made) == "list":
                loosen(cell, state)
        return found


def cells_in(there: Iterable[Cell | int]) -> Cells:
    return frozenset(one for one in there if isinstance(one, Cell))


def joined(states: Iterable[State | None]) -> State | None:
    """What is known where several ways meet; None where none gets there."""
    every = [state for state in states if state is not None]
    found: State = {}
    numbered = [_numbered(state) for state in every]
    for cell in {cell for one in numbered for cell in one}:
        if len({frozenset(one.get(cell, ())) for one in numbered}) > 1:
            has = [n for n, state in enumerate(every) if any(cell in there for there in state.values())]
            differ = len({frozenset(numbered[n].get(cell, ())) for n in has}) > 1
            for n in has if differ else ():
                loosen(cell, every[n])
    for place in dict.fromkeys(place for state in every for place in state):
        named = not place.name.isdigit() and place.name != ANY
        outer = named and place.of is not None and not place.of.made[:1].isdigit()
        default = frozenset({Cell(f"{place.of.made}.{place.name}")}) if outer and place.of is not None else NONE
        found[place] = frozenset[Cell | int]().union(*(state.get(place, default) for state in every))
    return found if every else None


def loosen(cell: Cell, state: State) -> None:
    """Forget the order of a list's items."""
    places = [place for place in state if place.of == cell and place.name != ANY]
    there = frozenset[Cell | int]().union(*(state.pop(place) for place in places))
    if places:
        state[Place(cell, ANY)] = state.get(Place(cell, ANY), NONE) | there


def _numbered(state: State) -> dict[Cell, set[str]]:
    """The numbers of the items that lists and tuples are known to have."""
    found: dict[Cell, set[str]] = {}
    for place in state:
        if place.of is not None and place.name.isdigit():
            found.setdefault(place.of, set()).add(place.name)
    return found


def meet(one: Cell, other: Cell) -> bool:
    """Whether two cells may have memory in common: not, where they are two parts of one kind."""
    if (one.made, one.earlier) != (other.made, other.earlier):
        return False
    for (kind, key), (of, other_key) in zip(one.part, other.part, strict=False):
        if kind != of:
            return True
        if key != other_key:
            return not _share_nothing(key, other_key)
    return True


def _share_nothing(key: str, other: str) -> bool:
    if "|" in key:  # slices
        (low, high), (other_low, other_high) = key.split("|"), other.split("|")
        return (high == other_low != "") or (other_high == low != "")
    numbers = all(one.lstrip("-").isdigit() for one in (key, other))
    return not numbers or key.startswith("-") == other.startswith("-")


def key_of(index: ast.expr) -> str:
    """An index that is a constant, as the name of an item."""
    known, value = literal(index)
    plain = isinstance(value, (int, str)) and not isinstance(value, bool)
    return repr(value) if known and plain and not {".", '"', "'"}.intersection(str(value)) else ANY


def cut(index: ast.expr) -> tuple[str, str]:
    """Which part of a tensor an index gives, where it is cut along one axis: the kind, and the number or bounds."""
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    cut = [one for one in items if ast.unparse(one) not in (":", "...", "Ellipsis")]
    if len(cut) != 1:
        return "", ""
    kind = ",".join("#" if one is cut[0] else ast.unparse(one) for one in items)
    if isinstance(cut[0], ast.Slice) and cut[0].step is None:
        bounds = [ast.unparse(one) if one is not None else "" for one in (cut[0].lower, cut[0].upper)]
        return f"{kind}:", "|".join(bounds)
    key = key_of(cut[0])
    return ("[]" if kind == "#" else kind, key) if key.lstrip("-").isdigit() else ("", "")


def overlap(target: ast.expr, value: ast.expr) -> bool:
    """Whether what is written into a part of a tensor may come from other places of that part: `y[1:] = y[:-1]`."""
    part: ast.expr = value
    while isinstance(part, (ast.Attribute, ast.Call)) and (getattr(part, "attr", "") in VIEWS or _is_view(part)):
        inside = part.func if isinstance(part, ast.Call) else part
        part = inside.value if isinstance(inside, ast.Attribute) else ast.Constant(None)
    match target, part:
        case ast.Subscript(value=one, slice=to), ast.Subscript(value=other, slice=of):
            (kind, key), (of_kind, of_key) = cut(to), cut(of)
            same = ast.unparse(one) == ast.unparse(other)
            sliced = [isinstance(n, ast.Slice) and n.lower != n.upper for i in (to, of) for n in ast.walk(i)]
            differ = ast.unparse(to) != ast.unparse(of) or part is not value
            return same and differ and any(sliced) and not (kind and kind == of_kind and _share_nothing(key, of_key))
        case ast.Subscript(value=one), _:
            return part is not value and ast.unparse(part) == ast.unparse(one)
    return part is not value and ast.unparse(part) == ast.unparse(target)


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in VIEWS


def _adds_axis(node: ast.Subscript) -> bool:
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(literal(one) == (True, None) for one in items)


def in_turn(node: ast.expr) -> list[ast.expr]:
    """A call such as `y.mul_(2).add_(1)`, those that it writes into, and what the first one does."""
    found = [node]
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and IN_PLACE.fullmatch(node.func.attr):
        node = node.func.value
        found.append(node)
    return found


def is_path(node: ast.expr | None) -> bool:
    """Whether it is a name, or attributes of one."""
    while isinstance(node, ast.Attribute) and node.attr not in VIEWS | ABOUT:
        node = node.value
    return isinstance(node, ast.Name)


def loading(target: ast.expr) -> ast.expr:
    """A target as an expression that is read."""
    found = ast.parse(ast.unparse(target), mode="eval").body
    for new, old in zip(ast.walk(found), ast.walk(target), strict=True):
        if isinstance(new, ast.expr):
            ast.copy_location(new, old)
            vars(new).update({key: one for key, one in vars(old).items() if key == "observed"})
    return found


def bound(function: ast.FunctionDef, *, arguments: bool = True) -> set[str]:
    """The variables that a function gives values to."""
    nodes = [*own_nodes(function)]
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    changed = {n.target.id for n in nodes if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
    given = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    again = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - changed
    return stored | given if arguments else again


def number_arguments(function: ast.FunctionDef) -> set[str]:
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


def was_run(node: ast.expr) -> bool:
    """Whether an expression was evaluated in the run."""
    return bool(kinds_of(node)) or (isinstance(node, ast.Call) and bool(callees_of(node)))


def writes_into(function: ast.FunctionDef) -> bool:
    """Whether a function that did not run writes into a tensor that it is given: its caller's would stay as it was."""
    given = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)} - {"self", "cls"}
    for node in ast.walk(function):
        into: ast.expr | None = None
        if isinstance(node, ast.AugAssign):
            into = node.target
        elif isinstance(node, ast.Assign) and any(isinstance(target, ast.Subscript) for target in node.targets):
            into = node.targets[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            in_place = node.func.attr.endswith("_") and not node.func.attr.endswith("__")
            into = node.func.value if in_place or node.func.attr in ("append", "extend", "update", "pop") else None
        while isinstance(into, (ast.Subscript, ast.Attribute, ast.Call)):
            into = into.func if isinstance(into, ast.Call) else into.value
        if isinstance(into, ast.Name) and into.id in given:
            return True
    return False
