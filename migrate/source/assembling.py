"""One file of MindSpore source from what a torch model ran: imports, helpers, functions, classes, and what makes it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from . import not_run
from .facts import Facts, Function
from .finishing import finish
from .head import Head
from .hints import Hints, names_in
from .imported import Imported
from .instrument import definition, first_line
from .making import called, function_of, made
from .module_api import DROPPED
from .scope import Problem, Scope
from .translating import Translator


class Source(NamedTuple):
    """The text of the new file, and what could not be written."""

    text: str
    problems: list[Problem]


class Assembly:
    """Collects the definitions of one model in the order in which they need each other."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.trees: dict[str, ast.Module] = {}
        self.imported: dict[str, Imported] = {}
        self.functions = {function.qualified: function for function in facts.functions}
        self.modules = {**facts.files, **{f.module: f.file for f in facts.functions}}
        self.owners = self._owners()
        self.definitions: dict[str, ast.stmt] = {}
        self.problems: list[Problem] = []
        self.wanted = self._wanted()
        self.head = Head(self._taken())
        known = frozenset({*self.functions, *self.owners, *self._assigned()})
        self.scope = Scope(
            facts, known, self.head.name, self.derives, self.is_global, self.python, self.names, self.problems
        )

    def _owners(self) -> dict[str, list[Function]]:
        """Every class of their files -> those of its functions that ran."""
        found: dict[str, list[Function]] = {
            f"{module}.{node.name}": []
            for module, file in self.modules.items()
            for node in self.tree(file).body
            if isinstance(node, ast.ClassDef)
        }
        for function in self.facts.functions:
            owner, dot, _ = function.qualified.rpartition(".")
            if dot and owner != function.module:
                found.setdefault(owner, []).append(function)
        return found

    def _taken(self) -> frozenset[str]:
        """The names of parameters, variables, functions and classes in what is translated."""
        owners = self.owners.items()
        found = {name.rpartition(".")[2] for name, own in owners if any(f.qualified in self.wanted for f in own)}
        for function in self.functions.values():
            node = self._node(function) if function.qualified in self.wanted else None
            for inner in ast.walk(node) if node is not None else ():
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    found.add(inner.id)
                elif isinstance(inner, ast.arg):
                    found.add(inner.arg)
                elif isinstance(inner, ast.FunctionDef):
                    found.add(inner.name)
        return frozenset(found)

    def _assigned(self) -> Iterator[str]:
        """What their files define at the top without `class` or `def`, such as named tuples."""
        for module, file in self.modules.items():
            for node in self.tree(file).body:
                if isinstance(node, ast.Assign):
                    yield from (f"{module}.{target.id}" for target in node.targets if isinstance(target, ast.Name))

    def _wanted(self) -> set[str]:
        """The functions that a model needs once its arguments are known: what makes and runs its modules, and what
        these call; how somebody's own functions came by the arguments is not."""
        classes = {base for bases in self.facts.classes.values() for base in bases} | set(called(self.facts.root))
        waiting = [f"{name}{method}" for name in classes for method in ("", ".__init__", ".forward")]
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in found or name not in self.functions:
                continue
            found.add(name)
            node, file = self._node(self.functions[name]), self.functions[name].file
            for inner in ast.walk(node) if node is not None else ():
                if isinstance(inner, ast.Call):
                    for callee in self.facts.callees(file, inner):
                        plain = callee.removeprefix("partial ").removeprefix("module ")
                        waiting += [plain, f"{plain}.__init__", f"{plain}.forward"]
                elif isinstance(inner, (ast.Name, ast.Attribute)):  # handed on, as in self.apply(self._init)
                    kinds = self.facts.kinds(file, inner)
                    waiting += [kind.partition(" ")[2] for kind in kinds if kind.startswith("function ")]
        return found

    def derives(self, name: str, base: str) -> bool:
        """Whether a module of this class is one of that base."""
        return any(bases[0] == name and base in bases for bases in self.facts.classes.values()) or name == base

    def tree(self, file: str) -> ast.Module:
        """The parsed file."""
        if file not in self.trees:
            self.trees[file] = ast.parse(Path(file).read_bytes())
        return self.trees[file]

    def names(self, file: str) -> Imported:
        """What the names of a file stand for."""
        if file not in self.imported:
            module = next(module for module, place in self.modules.items() if place == file)
            self.imported[file] = Imported(self.tree(file), module, is_package=file.endswith("__init__.py"))
        return self.imported[file]

    def is_global(self, file: str, name: str) -> bool:
        """Whether a file defines or imports a name at its top."""
        for node in self.tree(file).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                if any((alias.asname or alias.name).partition(".")[0] == name for alias in node.names):
                    return True
            elif isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
                return True
        return False

    def python(self, file: str, name: str) -> None:
        """Note a name of Python's library for the imports, and define a constant of the file's top."""
        self.head.python(self.tree(file), name)
        for node in self.tree(file).body:
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                key = f"{file}:{name}"
                if key not in self.definitions:
                    made = self._attribute(file, node)
                    self.definitions.setdefault(key, made)

    def define(self, qualified: str) -> None:
        """Translate a class or function, after those that it names."""
        if qualified in self.definitions or qualified in DROPPED:
            return
        if qualified in self.owners:
            self._class(qualified)
        elif qualified.rpartition(".")[0] in self.owners:
            self.define(qualified.rpartition(".")[0])
        elif qualified in self.functions:
            self._function(self.functions[qualified])

    def _function(self, function: Function) -> None:
        node = self._node(function)
        if node is None:
            return
        self.definitions[function.qualified] = ast.Pass()  # so that recursion ends
        self._needed(function.file, node)
        made = Translator(self.scope, function.file).function(node, node.name)
        del self.definitions[function.qualified]
        self.definitions[function.qualified] = made

    def _class(self, qualified: str) -> None:
        module, _, _ = qualified.rpartition(".")
        file = self.modules.get(module)
        node = None if file is None else self._class_node(file, qualified.removeprefix(f"{module}."))
        if file is None or node is None:
            return
        self.definitions[qualified] = ast.Pass()
        bases = [self._base(file, base) for base in node.bases]
        body: list[ast.stmt] = []
        adds = False
        ran = {function.line: function for function in self.owners[qualified]}
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                first = first_line(statement)
                if first in ran and (ran[first].qualified in self.wanted or _is_property(statement)):
                    self._needed(file, statement)
                    name = "construct" if statement.name == "forward" else statement.name
                    translator = Translator(self.scope, file, qualified)
                    body.append(translator.function(statement, name))
                    adds |= translator.adds
            elif not _noise(statement):
                body.append(self._attribute(file, statement))
        del self.definitions[qualified]
        if any(
            self.derives(qualified, "torch.nn.Sequential") and ast.unparse(base) == "nn.SequentialCell"
            for base in bases
        ):
            _listed(body)
        if adds:
            _append(body, "self.update_parameters_name()")
        for decorator in node.decorator_list:  # dataclass
            for inner in ast.walk(decorator):
                if isinstance(inner, ast.Name):
                    self.python(file, inner.id)
        self.definitions[qualified] = ast.ClassDef(node.name, bases, [], body or [ast.Pass()], node.decorator_list)

    def _attribute(self, file: str, statement: ast.stmt) -> ast.stmt:
        """A statement in a class or at a file's top that gives a name a value."""
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            return statement
        statement = copy.deepcopy(statement)
        hints = Hints(self.scope, file)
        if isinstance(statement, ast.AnnAssign):
            statement.annotation = hints.hint(statement.annotation)
        if statement.value is not None:
            for name in names_in(statement.value, self.names(file).name):
                self.define(name)
            for inner in ast.walk(statement.value):
                if isinstance(inner, ast.Name):
                    self.python(file, inner.id)
            static = not_run.static(statement.value, Translator(self.scope, file))
            statement.value = static or hints.default(statement.value)
        return statement

    def _base(self, file: str, node: ast.expr) -> ast.expr:
        name = self.names(file).name(node)
        self.define(name)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                self.python(file, inner.id)
        return Hints(self.scope, file).hint(node)

    def _needed(self, file: str, node: ast.FunctionDef) -> None:
        """Define what a function calls or names, and what its defaults name."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call):
                for name in self.facts.callees(file, inner):
                    self._define_owner(name)
            if isinstance(inner, (ast.Name, ast.Attribute)):
                for kind in self.facts.kinds(file, inner):
                    if kind.startswith(("class ", "function ", "module ")):
                        self._define_owner(kind.partition(" ")[2])
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                for name in names_in(default, self.names(file).name):
                    self.define(name)
                for inner in ast.walk(default):
                    if isinstance(inner, ast.Name):
                        self.python(file, inner.id)

    def _define_owner(self, name: str) -> None:
        self.define(name if name in self.owners or name in self.functions else name.rpartition(".")[0])

    def _node(self, function: Function) -> ast.FunctionDef | None:
        return definition(self.tree(function.file), function.name.rpartition(".")[2], function.line)

    def _class_node(self, file: str, name: str) -> ast.ClassDef | None:
        return next((n for n in ast.walk(self.tree(file)) if isinstance(n, ast.ClassDef) and n.name == name), None)


def _is_property(node: ast.FunctionDef) -> bool:
    return any(isinstance(item, ast.Name) and item.id == "property" for item in node.decorator_list)


def _noise(statement: ast.stmt) -> bool:
    """Whether a statement of a class is neither its docstring nor an attribute that a model needs."""
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return True
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    return isinstance(target, ast.Name) and (target.id.startswith("__") or target.id == "_version")


def _listed(body: list[ast.stmt]) -> None:
    """SequentialCell runs the cells of a list that it makes in its own `__init__`: make it anew after ours."""
    for statement in body:
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        own = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "__init__"]
        if any(not call.args for call in own):
            _append([statement], "self.cell_list = list(self.cells())")


def _append(body: list[ast.stmt], text: str) -> None:
    """Add a statement to `__init__`."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            statement.body.append(ast.parse(text).body[0])


def assemble(facts: Facts, name: str, says: str) -> Source:
    """The whole file; name: of the function that makes the model. says: its docstring."""
    assembly = Assembly(facts)
    root = made(facts.root, assembly)
    finish(assembly.definitions, [root])
    maker = function_of(name, root, assembly.definitions)
    nodes = [ast.fix_missing_locations(node) for node in (*assembly.definitions.values(), maker)]
    body = "\n\n\n".join(map(ast.unparse, nodes))
    return Source(f'"""{says}"""\n\n{assembly.head.text(ast.parse(body))}\n\n\n{body}\n', assembly.problems)
