"""What the functions and layers of a model do to memory, as code that did not run calls them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...source_files import literal
from ..observe.observations import PlainKind, TensorKind, callees_of, reached
from .aliasing import LOST, changes_too, refuse
from .context import Program
from .memory import ANY, NONE, SHARED_MEMORY, Cell, Cells, Place, Places, State, cells_in
from .tensors import SHARED


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


class Imported:
    """What the cells of a function of the model are where it is called."""

    def __init__(
        self, effects: Effects, given: Mapping[str, Cells], owner: Cells, node: ast.Call, memory: Places, state: State
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
            found = cells_in(self.state.get(Place(None, base), NONE))
        for attribute in rest.split(".") if rest else ():
            found = NONE.union(*(self._attribute(one, attribute) for one in found))
        for kind, key in cell.part:
            inside = self.memory.item(found, key, self.state) if kind == "[]" else found
            found = inside if kind == "[]" else frozenset(one.of_part(kind, key) for one in inside)
        return found

    def _attribute(self, cell: Cell, name: str) -> Cells:
        there = self.state.get(Place(cell, name))
        return frozenset({Cell(f"{cell.made}.{name}")}) if there is None else cells_in(there)

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
            given = cells_in(there) - {Cell(f"{place.of.made}.{place.name}")}
            for owner in self.cells({place.of}) if given else ():
                target = Place(owner, place.name)
                plain = place.name.isdigit() or place.name == ANY
                first = NONE if plain else self.memory.unknown(owner, place.name)
                before = self.state.get(target, first)
                self.state[target] = before | self.cells(given)


def arguments_of(
    callee: ast.FunctionDef, node: ast.Call, parts: list[Cells], *, of_class: bool
) -> dict[str, tuple[ast.expr | None, Cells]]:
    """What the arguments of a function get: the expression, where it is one, and the cells; of_class: whether the call
    names the class, and gives the object."""
    takes = callee.args
    names = [one.arg for one in (*takes.posonlyargs, *takes.args)]
    plain = any(isinstance(item, ast.Name) and item.id == "staticmethod" for item in callee.decorator_list)
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
            if name.startswith("torch."):
                continue
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

    def parameter(self, path: str) -> bool:
        """Whether an attribute is a parameter, which stays the same object where it gets other values."""
        kinds = self.program.attributes(self.owner).get(path, [])
        known = any(isinstance(kind, TensorKind) and kind.parameter for kind in kinds)
        if known or path.rpartition(".")[2] in ("weight", "bias"):
            return True
        made = [value.func for value in self._made(path) if isinstance(value, ast.Call)]
        return bool(made) and all(self.name(one).endswith(".Parameter") for one in made)

    def _matching(self, path: str, item: bool) -> list[tuple[str, list[str]]]:
        """The modules of the model, and their classes, that an attribute of the class is; item: or that are in it."""
        known: dict[tuple[str, str, bool], list[tuple[str, list[str]]]] = vars(self.program).setdefault("matching", {})
        if (self.owner, path, item) in known:
            return known[self.owner, path, item]
        classes = {at: bases for at, bases in self.program.facts.classes.items() if bases}
        found = known[self.owner, path, item] = list[tuple[str, list[str]]]()
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

    def _made(self, path: str) -> list[ast.expr]:
        """What the class assigns to an attribute of its objects, in any method."""
        known: dict[str, dict[str, list[ast.expr]]] = vars(self.program).setdefault("attributes_made", {})
        if self.owner not in known:
            found = known[self.owner] = {}
            for base in self.program.facts.bases(self.owner):
                _, cls = self.program.class_of(base) or ("", ast.Pass())
                for node in [one for one in ast.walk(cls) if isinstance(one, ast.Assign)]:
                    for target in node.targets:
                        if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                            found.setdefault(target.attr, []).append(node.value)
        return known[self.owner].get(path, [])

    def _says_so(self, made: ast.expr) -> bool:
        while (
            isinstance(made, ast.Call) and ast.unparse(made.func).endswith(("Sequential", "ModuleList")) and made.args
        ):
            made = made.args[0].elts[0] if isinstance(made.args[0], ast.List) and made.args[0].elts else made.args[0]
        return any(isinstance(call, ast.Call) and says_in_place(call) for call in ast.walk(made))

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


def in_place_said(words: Mapping[str | None, ast.expr]) -> bool:
    """Whether a call may be given `inplace=True`."""
    return "inplace" in words and literal(words["inplace"]) != (True, False)


def says_in_place(call: ast.Call) -> bool:
    """Whether a call makes a layer that may change what it is given, by its argument `inplace`."""
    place = SHARED_MEMORY["inplace"].get(ast.unparse(call.func).rpartition(".")[2], len(call.args))
    given = [*call.args[place : place + 1], *(word.value for word in call.keywords if word.arg == "inplace")]
    return any(literal(one) != (True, False) for one in given)


def refuse_write(write: Write, where: ast.AST, name: str) -> None:
    """Mark a write, or else what reads, where it did not run."""
    statement = write.statement
    if not write.idle:
        if isinstance(where, ast.stmt) and not reached(where):
            _lose(where, f"`{name}` is read here, which {ast.unparse(write.node)} may have changed")
        return
    here = f"{ast.unparse(statement)} changes `{name}`, which it reads"
    why = changes_too(statement, name) if where is not statement else here
    if isinstance(write.node, ast.AugAssign):
        vars(write.node)[SHARED] = why
    elif reached(statement) and isinstance(write.node, ast.Call):
        refuse(write.node, why)
    else:
        _lose(statement, why)


def refuse_all(function: ast.FunctionDef) -> None:
    """Mark all that did not run and may write into a tensor."""
    for node in ast.walk(function):
        match node:
            case ast.AugAssign() | ast.Assign(targets=[ast.Subscript(), *_]) | ast.Expr(value=ast.Call()):
                if not reached(node):
                    _lose(node, f"what else {ast.unparse(node)} may change is too much to follow")


def _lose(statement: ast.stmt, why: str) -> None:
    """Mark what a statement evaluates first."""
    values = (getattr(statement, field, None) for field in ("value", "test", "iter"))
    for value in [one for one in values if one is not None][:1]:
        vars(value)[LOST] = why


def called_names(function: ast.FunctionDef) -> set[str]:
    """The names of the functions that ran as a function called them."""
    known: set[str] | None = vars(function).get("called_names")
    if known is None:
        names = [name for node in ast.walk(function) if isinstance(node, ast.Call) for name in callees_of(node)]
        known = {"forward" if name.startswith("module ") else name.rpartition(".")[2] for name in names}
        vars(function)["called_names"] = known
    return known
