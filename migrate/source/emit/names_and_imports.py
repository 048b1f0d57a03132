"""The names in the new file: its imports, msmigrate's functions that are copied in, undefined names; and decorators.

A decorator cannot simply be kept: where it uses functools.wraps, MindSpore's compiler reads the source of the function
inside, and silently ignores the wrapper (benchmarks/graph_decorators_mindspore.py).
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ...library_names import IMPORTED, NOT_CONVERTED, TABLES
from ...source_files import SourceFiles, all_parameters, comment, local_names
from ..observe.observations import (
    CallableKind,
    Function,
    PlainKind,
    callees_of,
    constants_of,
    functions_in,
    kinds_of,
    reached,
)
from ..rewrite.context import Problem, Program
from ..rewrite.signatures import CHANGING, same_arguments, same_defaults
from .unused_code import defines

SHORT = {"mindspore.nn": "nn", "mindspore.ops": "ops"}
IMPORT = "import"  # marks a name that the file's head imports, where a variable may have that name too
TYPING = ("Any", "Callable", "Dict", "List", "Optional", "Sequence", "Tuple", "Union")


class Imports:
    """Collects the names that the file's body uses."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self.imports: dict[str, set[str]] = {"mindspore": {"nn"}}
        self.whole: set[str] = set()
        self.helpers = InlinedDefinitions(taken)

    def name(self, qualified: str) -> ast.expr:
        """The expression for a name of MindSpore, of Python's library, or of a composed function."""
        module, _, last = qualified.rpartition(".")
        if module.startswith("msmigrate."):
            return ast.Name(self.helpers.need(module, last), ast.Load())
        if module in SHORT:
            self.of("mindspore", SHORT[module])
            return ast.Attribute(_marked(ast.Name(SHORT[module], ast.Load())), last, ast.Load())
        if module == "numpy":
            self.whole.add("numpy as np")
            return ast.Attribute(_marked(ast.Name("np", ast.Load())), last, ast.Load())
        plain = module == "mindspore.common.initializer" or module in sys.stdlib_module_names
        if plain or qualified in ("mindspore.Tensor", "mindspore.Parameter"):
            return _marked(self.of(module, last))
        self.whole.add("mindspore")
        return _marked(ast.parse(qualified, mode="eval").body)

    def of(self, module: str, name: str) -> ast.Name:
        """A name that is imported from a module."""
        self.imports.setdefault(module, set()).add(name)
        return ast.Name(name.rpartition(" ")[2], ast.Load())

    def rename(self, names: set[str], gone: set[str]) -> None:
        """Import these names as `ms_ops`, too; gone: those that nothing reads as they were."""
        for found in (self.whole, *self.imports.values()):
            for words in [one for one in found if _called(one) in names]:
                found.add(f"{words.partition(' ')[0]} as ms_{_called(words)}")
                found -= {words} if words in gone else set()

    def python(self, tree: ast.Module, name: str) -> None:
        """Note a name that a file imports from Python's library."""
        for node in tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    whole = isinstance(node, ast.Import) and alias.name.partition(".")[0]  # import collections.abc
                    if (alias.asname or whole or alias.name) == name:
                        self._import(node, alias)

    def _import(self, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> None:
        words = alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"
        module = alias.name if isinstance(node, ast.Import) else node.module or "."
        relative = isinstance(node, ast.ImportFrom) and node.level > 0  # of a file called `types`, or `math`
        if relative or module.partition(".")[0] not in {*sys.stdlib_module_names, *IMPORTED} or module == "__future__":
            return
        if isinstance(node, ast.Import):
            self.whole.add(words)
        else:
            self.of(module, words)

    def text(self, body: ast.Module) -> str:
        """The imports that the body needs, sorted as usual, and the composed functions."""
        helpers = self.helpers.text(self)
        used = {n.id for tree in (body, ast.parse(helpers)) for n in ast.walk(tree) if isinstance(n, ast.Name)}
        noted = {name.rpartition(" ")[2] for names in self.imports.values() for name in names}
        for word in used.intersection(TYPING) - noted:
            self.of("typing", word)
        if "Tensor" in used:
            self.of("mindspore", "Tensor")
        lines = self.lines(body, ast.parse(helpers))
        others = [line for line in lines if line.split()[1].startswith(("mindspore", *IMPORTED))]
        others.sort(key=lambda line: line.split()[1].startswith("mindspore"))
        python = [line for line in lines if line not in others]
        blocks = ["from __future__ import annotations", "\n".join(python), "\n".join(others)]
        return "\n\n".join(filter(None, blocks)) + (f"\n\n\n{helpers}" if helpers else "")

    def lines(self, *trees: ast.AST) -> list[str]:
        """The lines that import what these need, sorted as usual."""
        used = {n.id for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Name)}
        lines = [f"import {module}" for module in sorted(self.whole) if _called(module) in used]
        for module, names in sorted(self.imports.items()):
            kept = sorted(name for name in names if name.rpartition(" ")[2] in used)
            lines += [f"from {module} import {', '.join(kept)}"] if kept else []
        return lines


def _called(module: str) -> str:
    """The name that an import of a module gives it: `np` for `numpy as np`, `collections` for `collections.abc`."""
    return module.rpartition(" ")[2].partition(".")[0]


def _marked(found: ast.expr) -> Any:
    for inner in ast.walk(found):
        vars(inner)[IMPORT] = isinstance(inner, ast.Name)
    return found


def rename_taken_imports(definitions: Mapping[str, ast.stmt], maker: ast.FunctionDef, head: Imports) -> None:
    """Another name for an import, `ms_ops`, where a function that uses it has a variable or a function of that name, or
    the file a class; in place."""
    trees = [*definitions.values(), maker]
    imported = {id(tree): [n for n in ast.walk(tree) if getattr(n, IMPORT, False)] for tree in trees}
    own = {name for node in definitions.values() for name in defines(node)}
    used = {name.id for names in imported.values() for name in names if isinstance(name, ast.Name)}
    found = used & own
    for scope in (n for tree in trees if imported[id(tree)] for n in ast.walk(tree)):
        if isinstance(scope, (ast.FunctionDef, ast.Lambda)) and used.intersection(names := {*local_names(scope)}):
            found |= {n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and getattr(n, IMPORT, False)} & names
    for name in (n for names in imported.values() for n in names if isinstance(n, ast.Name) and n.id in found):
        name.id = f"ms_{name.id}"
    text = "\n\n".join(map(ast.unparse, map(ast.fix_missing_locations, trees))) if found else ""
    head.rename(found, found - undefined(text) | own)


ROOT = Path(__file__).parents[3]
FOR_NORMS = "with_norm"  # an attribute of classes that only the functions which normalize weights read


class InlinedDefinitions:
    """Definitions of msmigrate's own modules, by module and name.

    taken: names that mean something else in the file; a definition avoids these and Python's own names.
    """

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self.taken = taken | set(dir(builtins))
        self.found: dict[tuple[str, str], str] = {}
        self.names: dict[tuple[str, str], str] = {}  # their names in the file
        self.used: list[tuple[ast.Module, str]] = []  # a file of definitions, and the name that is used from it

    def need(self, module: str, name: str) -> str:
        """Add a definition, after those that it uses; returns its name in the file."""
        module = _home(module, name)
        if (module, name) in self.names:
            return self.names[module, name]
        called = name
        while called in self.taken or called in self.names.values():
            called = f"tensor_{called}"
        self.names[module, name] = called
        text, tree = _source(module)
        defined = {key: node for node in tree.body for key in defines(node)}
        beside = [one for one in tree.body if isinstance(one, ast.ImportFrom) and one.level]
        others = {alias.name: f"{module.rpartition('.')[0]}.{one.module}" for one in beside for alias in one.names}
        node = defined[name]
        own = {item.arg for item in ast.walk(node) if isinstance(item, ast.arg)}
        own |= {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
        renamed = {name: called}
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id in defined and inner.id != name and inner.id not in own:
                renamed[inner.id] = self.need(module, inner.id)
            elif isinstance(inner, ast.Name) and inner.id in others and inner.id not in own:
                renamed[inner.id] = self.need(others[inner.id], inner.id)
            if isinstance(inner, ast.Name):
                self.used.append((tree, inner.id))
        self.found[module, name] = _text(text.splitlines(), node, renamed)
        return called

    def text(self, head: Imports) -> str:
        """All of them, their imports noted in the head."""
        for tree, name in self.used:
            head.python(tree, name)
            for node in tree.body:
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mindspore"):
                    for alias in node.names:
                        if (alias.asname or alias.name) == name:
                            head.of(str(node.module), alias.name if alias.asname is None else f"{alias.name} as {name}")
                elif isinstance(node, ast.Import) and any(alias.name == name == "mindspore" for alias in node.names):
                    head.whole.add(name)
        text = "\n\n\n".join(self.found.values())
        return text if f'"{FOR_NORMS}"' in text else re.sub(rf"(?m)^    {FOR_NORMS} = .*\n\n?", "", text)


def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _source(module: str) -> tuple[str, ast.Module]:
    """The text and the tree of a module of msmigrate's; nothing changes them."""
    text = _file(module).read_text(encoding="utf-8")
    return text, ast.parse(text)


def _home(module: str, name: str) -> str:
    """The module that defines a name, which `module` may only import, as msmigrate.nn imports SELU."""
    for node in _source(module)[1].body:
        if isinstance(node, ast.ImportFrom) and node.level and name in (alias.name for alias in node.names):
            package = module if _file(module).name == "__init__.py" else module.rpartition(".")[0]
            return f"{package}.{node.module}"
    return module


def _text(lines: list[str], node: ast.stmt, renamed: dict[str, str]) -> str:
    """The source of a definition, with other names."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(item.lineno for item in decorators)])
    own = {item.arg for item in ast.walk(node) if isinstance(item, ast.arg)}
    places = [
        (inner.lineno, inner.col_offset, inner.id)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and inner.id not in own and renamed.get(inner.id, inner.id) != inner.id
    ]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and renamed.get(node.name, node.name) != node.name:
        places.append((node.lineno, lines[node.lineno - 1].index(node.name, 4), node.name))
    for line, column, name in sorted(places, reverse=True):
        raw = lines[line - 1].encode()
        lines[line - 1] = (raw[:column] + renamed[name].encode() + raw[column + len(name.encode()) :]).decode()
    return "\n".join(lines[first - 1 : node.end_lineno])


OF_MODULES = {"__name__", "__file__", "__doc__", "__module__", "__qualname__", "__class__"}


def undefined(text: str) -> set[str]:
    """The names that a file reads when it runs, and neither defines nor imports; hints are not read."""
    top = symtable.symtable(text, "the new file", "exec")
    known = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    known |= {name for table in _tables(top) for name in _declared(table)} | set(dir(builtins)) | OF_MODULES
    return {name for table in _tables(top) for name in _read(table)} - known


def report_undefined(names: set[str], maker: ast.FunctionDef, definitions: Program) -> bool:
    """Replace names that the file does not define by an error, and note what uses them; returns whether there are
    any."""
    for key, node in {**definitions.definitions, "": maker}.items() if names else ():
        kind = key or next(functions_in(definitions.facts.root), "")
        module, _, own = kind.rpartition(":" if ":" in kind else ".")
        file = definitions.all_files.get(module, module if module.endswith(".py") else "")
        if ":" in kind and file and _constant_from_reads(node, names, file, own, definitions):
            continue
        at = next((n.lineno for n in definitions.tree(file).body if getattr(n, "name", "") == own), 1) if file else 1
        where = own if key else f"the function that makes the {own}"
        replaced = _Undefined(names, definitions.name(NOT_CONVERTED), _constant)
        replaced.visit(node)
        for name in replaced.found:
            definitions.problems.append(Problem(file or module, at, f"{where} uses {name}, which could not be written"))
    return bool(names)


def _constant_from_reads(node: ast.stmt, names: set[str], file: str, own: str, definitions: Program) -> bool:
    """Give a constant that is computed from such names the value that it always had; returns whether there is one."""
    value = getattr(node, "value", None)
    if value is None or not names & {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}:
        return False
    reads = [n for n in ast.walk(definitions.tree(file)) if isinstance(n, ast.Name) and n.id == own]
    values = [found for read in reads if (found := constants_of(read)) is not None]
    if not values or any(found != values[0] or len(found) != 1 for found in values):
        return False
    vars(node)["value"] = ast.Constant(values[0][0])
    return True


def _constant(node: ast.Name) -> ast.expr | None:
    """The number, string or the like that a name always was where it was read; None if there is no single one."""
    found = constants_of(node)
    return ast.Constant(found[0]) if found is not None and len(found) == 1 else None


class _Undefined(ast.NodeTransformer):
    """Replaces such names, where they are read, by their constant in the run, or else by an error.

    known: gives the constant that a name was, None where it was something else. found: names replaced by an error.
    """

    def __init__(self, names: set[str], error: ast.expr, known: Callable[[ast.Name], ast.expr | None]) -> None:
        self.names, self.error, self.known = names, error, known
        self.found: dict[str, None] = {}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """One of these names as a constant, or a call that raises."""
        if node.id not in self.names or not isinstance(node.ctx, ast.Load):
            return node
        constant = self.known(node)
        if constant is not None:
            return constant
        self.found[node.id] = None
        return ast.Call(self.error, [ast.Constant(f"{node.id} could not be written")], [])

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """A parameter; its hint is not evaluated."""
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """A variable, without its hint."""
        node.value = node.value and self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function, without its return hint, and without names that it defines itself."""
        hint, node.returns = node.returns, None
        names = self.names
        self.names = names - {inner.arg for inner in ast.walk(node) if isinstance(inner, ast.arg)}
        self.names -= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        self.generic_visit(node)
        node.returns, self.names = hint, names
        return node


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for inner in table.get_children():
        yield from _tables(inner)


def _declared(table: symtable.SymbolTable) -> Iterator[str]:
    """The names that a function declares global and assigns."""
    yield from (one.get_name() for one in table.get_symbols() if one.is_declared_global() and one.is_assigned())


def _read(table: symtable.SymbolTable) -> Iterator[str]:
    """The names that are looked up at the file's top level."""
    for symbol in table.get_symbols():
        at_top = table.get_type() == "module" and not (symbol.is_assigned() or symbol.is_imported())
        if symbol.is_referenced() and (symbol.is_global() or at_top):
            yield symbol.get_name()


MAKING = {"bool", "dict", "float", "frozenset", "int", "len", "list", "repr", "set", "sorted", "str", "tuple"}
NEW = (ast.Constant, ast.Dict, ast.DictComp, ast.JoinedStr, ast.List, ast.ListComp, ast.Set, ast.SetComp)
NUMBERS = [PlainKind(name) for name in ("bool", "float", "int", "str")]


def of_python(node: ast.expr, sources: SourceFiles, file: str) -> bool:
    """Whether a decorator is of Python's own library, such as `dataclass`; any other, such as one that only registers a
    class or a function, is of no use in the new file."""
    name = sources.names(file).name(_itself(node))
    return name.partition(".")[0] in sys.stdlib_module_names


def decorator_notes(
    node: ast.FunctionDef, sources: SourceFiles, file: str, missing: Callable[[ast.expr, str], ast.expr]
) -> Iterator[ast.stmt]:
    """Comments on decorators that only called the function with the example inputs, but do more with others, such as
    an argument by an old name; and errors for decorators that did more than the call.

    missing: makes the error.
    """
    errors: list[ast.stmt] = []
    for decorator, wrappers in _decorators(node, sources, file):
        text = " ".join(ast.unparse(decorator).split())
        if not all(_only_forwards(wrapper, node, sources) for wrapper in wrappers):
            reason = f"the decorator {ast.unparse(decorator)} does more than call {node.name}"
            errors.append(ast.Expr(missing(decorator, f"{reason}: write that into {node.name}")))
        elif not all(_only_forwards(wrapper, node, sources, everything=True) for wrapper in wrappers):
            yield comment(f"never with the example inputs: what {text} does besides calling {node.name}")
    yield from reversed(errors)


def noted_arguments(node: ast.FunctionDef, sources: SourceFiles, file: str) -> list[ast.stmt]:
    """`self._internal_dict = {"width": width}`, for a library's decorator of `__init__` that notes the arguments."""
    names = (sources.names(file).name(_itself(decorator)) for decorator in node.decorator_list)
    held = [attribute for name in names if (attribute := TABLES["noted_arguments"].get(name))]
    given = [item.arg for item in (*node.args.args, *node.args.kwonlyargs)][1:]
    noted = ast.Dict([*map(ast.Constant, given)], [ast.Name(name, ast.Load()) for name in given])
    return [ast.Assign([ast.Attribute(ast.Name("self", ast.Load()), name, ast.Store())], noted) for name in held]


def _decorators(node: ast.FunctionDef, sources: SourceFiles, file: str) -> Iterator[tuple[ast.expr, list[Function]]]:
    """The decorators of a function, and the wrappers of each that ran."""
    for decorator in node.decorator_list:
        name = sources.names(file).name(_itself(decorator))
        if name and name not in TABLES["noted_arguments"]:
            yield decorator, [f for f in sources.facts.functions if f.qualified.startswith(f"{name}.<locals>.")]


def _itself(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _only_forwards(
    wrapper: Function, decorated: ast.FunctionDef, sources: SourceFiles, *, everything: bool = False
) -> bool:
    """Whether a wrapper only returns the result of its function for the same arguments.

    everything: judge also the statements that did not run.
    """
    node = sources.node(wrapper)
    if node is None:
        return False
    around = [n for n in ast.walk(sources.tree(wrapper.file)) if isinstance(n, ast.FunctionDef) and node in ast.walk(n)]
    functions = {item.arg for outer in around if outer is not node for item in outer.args.args}
    return (
        same_defaults(node.args, decorated.args)
        and _Wrapper(node, wrapper.file, functions, sources, everything, decorated.name == "__init__").hands_on()
    )


class _Body:
    """Checks whether a function's statements change its arguments, or objects that it got from elsewhere."""

    def __init__(
        self, node: ast.FunctionDef, file: str, sources: SourceFiles, everything: bool, seen: set[str]
    ) -> None:
        self.node, self.file, self.sources, self.everything, self.seen = node, file, sources, everything, seen
        self.given = {argument.arg for argument in all_parameters(node.args)}
        made: dict[str, list[ast.AST | None]] = {}
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Assign, ast.AnnAssign)):
                for target in inner.targets if isinstance(inner, ast.Assign) else [inner.target]:
                    made.setdefault(ast.unparse(target), []).append(inner.value)
        stored = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        new = {name for name in stored if len(made.get(name, ())) == stored.count(name) and all(map(_new, made[name]))}
        self.names = self.given | {*stored}
        self.others = self.names - new  # names of objects that may be shared with other code
        texts = [inner for inner in ast.walk(node) if isinstance(inner, ast.JoinedStr)]
        self.in_texts = {inner for text in texts for inner in ast.walk(text)}  # which are not observed

    def ran(self, statement: ast.stmt) -> bool:
        """Whether a statement is judged."""
        return self.everything or reached(statement)

    def only_looks(self) -> bool:
        """Whether no statement of the function changes its arguments."""
        statements = (n for n in ast.walk(self.node) if isinstance(n, ast.stmt) and n is not self.node and self.ran(n))
        return all(map(self.quiet, statements))

    def quiet(self, statement: ast.stmt) -> bool:
        """Whether a statement, without those inside, changes only variables."""
        if isinstance(statement, ast.Delete):
            return False
        if isinstance(statement, ast.AugAssign):
            kinds = kinds_of(statement.target)
            if not isinstance(statement.target, ast.Name) or not kinds or not all(kind in NUMBERS for kind in kinds):
                return False
        inside = (ast.stmt, ast.arguments, ast.excepthandler)
        return all(self.computes(n) for n in ast.iter_child_nodes(statement) if not isinstance(n, inside))

    def computes(self, node: ast.AST) -> bool:
        """Whether an expression changes nothing."""
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                return False
            if isinstance(inner, (ast.Attribute, ast.Subscript)) and not isinstance(inner.ctx, ast.Load):
                return False
            if isinstance(inner, ast.Call) and not self._harmless(inner):
                return False
        return True

    def _harmless(self, call: ast.Call) -> bool:
        """Whether a call changes no argument of the function, and no object that it got from elsewhere."""
        names = callees_of(call)
        if not (names or kinds_of(call) or self.everything or call in self.in_texts):
            return True  # it did not run
        on = call.func.value if isinstance(call.func, ast.Attribute) else None
        if on is None or any(isinstance(kind, CallableKind) and kind.what == "class" for kind in kinds_of(on)):
            # `dict.pop(kwargs, …)`
            on = call.args[0] if call.args else None
        gets = [call.func, *call.args, *(word.value for word in call.keywords)]
        for name in names or [ast.unparse(call.func)]:
            last = name.rpartition(".")[2]
            in_place = last.endswith("_") and not last.endswith("__")
            if in_place or last.startswith("set_") or last in ("seed", "manual_seed") or name.startswith("module "):
                return False
            mine = self.others if isinstance(on, ast.Name) else self.names
            if last in CHANGING and on is not None and _root(on) in mine:
                return False
            if any(map(self._is_given, gets)) and not self._looks(name):
                return False
        return True

    def _is_given(self, node: ast.AST) -> bool:
        """Whether an expression passes one of this function's variables."""
        return any(isinstance(inner, ast.Name) and inner.id in self.names for inner in ast.walk(node))

    def _looks(self, name: str) -> bool:
        """Whether a function of the program changes none of its arguments; assumed of an unknown function."""
        name = f"{name.removeprefix('object ')}.__call__" if name.startswith("object ") else name
        function = self.sources.functions.get(name.removeprefix("partial "))
        if function is None or name in self.seen:
            return True
        node = self.sources.node(function)
        inside = {*self.seen, name}
        return node is not None and _Body(node, function.file, self.sources, self.everything, inside).only_looks()


class _Wrapper(_Body):
    """The wrapper that a decorator puts around a function; functions: names that may stand for the function in it."""

    def __init__(
        self, node: ast.FunctionDef, file: str, functions: set[str], sources: SourceFiles, everything: bool, init: bool
    ) -> None:
        super().__init__(node, file, sources, everything, set())
        self.functions, self.init = functions, init
        outer = [n.names for n in ast.walk(node) if isinstance(n, (ast.Global, ast.Nonlocal))]
        self.kept = functions.union(self.given, *outer)  # names that may not be assigned
        self.results: set[str] = set()
        self.variables: set[str] = set()
        self.returns = False

    def hands_on(self) -> bool:
        """Whether it only returns the result of the function for the same arguments."""
        return self._block(self.node.body) and self.returns and not self.results & self.variables

    def _block(self, body: list[ast.stmt]) -> bool:
        return all(self._statement(statement) for statement in body if self.ran(statement))

    def _statement(self, statement: ast.stmt) -> bool:
        if self.init and not self.returns and isinstance(statement, ast.Expr) and self._calls_it(statement.value):
            self.returns = True  # a constructor gives nothing back
            return True
        if isinstance(statement, ast.If):
            return self.computes(statement.test) and self._block(statement.body) and self._block(statement.orelse)
        if isinstance(statement, ast.Return):
            self.returns = True
            result = isinstance(statement.value, ast.Name) and statement.value.id in self.results
            return result or self._calls_it(statement.value)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            if len(names) != len(targets) or names & self.kept:
                return self.init and self._only_keeps(statement)
            if self._calls_it(statement.value):
                self.results |= names
                return True
            self.variables |= names
            return self.quiet(statement)
        if isinstance(statement, ast.AugAssign):
            name = ast.unparse(statement.target)
            self.variables.add(name)
            return name not in self.kept and self.quiet(statement)
        plain = (ast.Assert, ast.Expr, ast.Global, ast.Nonlocal, ast.Pass, ast.Raise)
        return isinstance(statement, plain) and self.quiet(statement)

    def _only_keeps(self, statement: ast.stmt) -> bool:
        """Whether it keeps in an attribute what no function of the model reads, `self._given = (args, kwargs)`."""
        match statement:
            case ast.Assign([ast.Attribute(ast.Name(), kept)], value) if self.computes(value):
                nodes = [self.sources.node(function) or ast.Pass() for function in self.sources.functions.values()]
                looked = (n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Attribute))
                return kept not in (one.attr for one in looked if isinstance(one.ctx, ast.Load))
        return False

    def _calls_it(self, value: ast.expr | None) -> bool:
        """Whether it is the first call of the function, with the same arguments."""
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) or self.results:
            return False
        return value.func.id in self.functions and same_arguments(value, self.node.args)

    def _harmless(self, call: ast.Call) -> bool:
        own = isinstance(call.func, ast.Name) and call.func.id in self.functions  # again, or with other arguments
        return not own and super()._harmless(call)


def _new(value: ast.AST | None) -> bool:
    """Whether an expression makes a new object, which nothing else refers to."""
    makes = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in MAKING
    return value is None or makes or isinstance(value, NEW)


def _root(node: ast.expr) -> str:
    """The variable that an expression is read from, `args` of `args[0].weight`; empty for a new object."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func
        elif isinstance(node, ast.Call) and node.args and not _new(node):  # `vars(module)`
            node = node.args[0]
        else:
            return ""
    return node.id
