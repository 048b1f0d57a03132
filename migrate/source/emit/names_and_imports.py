"""The names in the new file: its imports, msmigrate's own functions that are copied in, and undefined names."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import sys
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path

from ...library_names import IMPORTED, INSTALLED, NOT_CONVERTED
from ..observe.instrument import comments_of
from ..observe.observations import constants_of, functions_in
from ..rewrite.context import Problem, Program
from .unused_code import defines

SHORT = {"mindspore.nn": "nn", "mindspore.ops": "ops"}
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
            return ast.Attribute(ast.Name(SHORT[module], ast.Load()), last, ast.Load())
        if module == "numpy":
            self.whole.add("numpy as np")
            return ast.Attribute(ast.Name("np", ast.Load()), last, ast.Load())
        plain = module == "mindspore.common.initializer" or module in sys.stdlib_module_names
        if plain or qualified in ("mindspore.Tensor", "mindspore.Parameter"):
            return self.of(module, last)
        self.whole.add("mindspore")
        return ast.parse(qualified, mode="eval").body

    def of(self, module: str, name: str) -> ast.Name:
        """A name that is imported from a module."""
        self.imports.setdefault(module, set()).add(name)
        return ast.Name(name.rpartition(" ")[2], ast.Load())

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
        if module.partition(".")[0] not in {*sys.stdlib_module_names, *IMPORTED} or module == "__future__":
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
        for word in TYPING:
            if word in used - noted:
                self.of("typing", word)
        if "Tensor" in used:
            self.of("mindspore", "Tensor")
        lines = [f"import {module}" for module in sorted(self.whole) if _called(module) in used]
        for module, names in sorted(self.imports.items()):
            kept = sorted(name for name in names if name.rpartition(" ")[2] in used)
            lines += [f"from {module} import {', '.join(kept)}"] if kept else []
        python = [line for line in lines if not line.split()[1].startswith(("mindspore", *IMPORTED))]
        mindspore = [line for line in lines if line.split()[1].startswith("mindspore")]
        arrays = [line for line in lines if line.split()[1].startswith(IMPORTED)]
        blocks = ["from __future__ import annotations", "\n".join(python), "\n".join(arrays + mindspore)]
        return "\n\n".join(filter(None, blocks)) + (f"\n\n\n{helpers}" if helpers else "")


def _called(module: str) -> str:
    """The name that an import of a module gives it: `np` for `numpy as np`, `collections` for `collections.abc`."""
    return module.rpartition(" ")[2].partition(".")[0]


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


TECHNICAL = re.compile(r"# *(!|-\*-|(en)?coding[:=]|vim?:)")  # for the shell, Python or an editor


def said_at_top(files: Program, root: str) -> str:
    """What the user's files say above their imports, such as who wrote them, as comments below the new docstring; root:
    the qualified name whose file's docstring is in there, where it is a short one."""
    found: dict[str, list[str]] = {}
    for key in (root, *files.definitions):
        module = key.rpartition(":" if ":" in key else ".")[0]
        file = module if ":" in key else files.modules.get(module, "")
        if file and file not in found and Path(file).is_file() and INSTALLED.isdisjoint(Path(file).parts):
            found[file] = _top(Path(file).read_bytes(), docstring=key != root or not files.docstring_of(root))
    said = {file: lines for file, lines in found.items() if lines}
    titled = [*said] != [files.modules.get(root.rpartition(".")[0])]
    texts = ("\n".join([*([f"# {Path(file).name}:"] if titled else []), *lines]) for file, lines in said.items())
    return "".join(f"\n\n{text}" for text in texts)


@lru_cache(maxsize=100)
def _top(content: bytes, *, docstring: bool) -> list[str]:
    """The comments above a file's first statement, without those that stand right above a class or function, and the
    file's docstring as comments."""
    tree = ast.parse(content)
    text = ast.get_docstring(tree)
    body = tree.body[text is not None :]
    line = body[0].lineno if body else 1
    said = [(number, words) for number, _, words, alone in comments_of(content) if alone and number < line]
    while said and not isinstance(body[0], (ast.Import, ast.ImportFrom)) and said[-1][0] == line - 1:
        line = said.pop()[0]
    lines: list[str] = []
    for (number, words), (before, _) in zip(said, [said[0], *said] if said else [], strict=False):
        lines += [] if TECHNICAL.match(words) else [*(["#"] if lines and number - before > 1 else []), words]
    plain = ["".join(c for c in one if c.isprintable()) for one in (text or "").splitlines() if docstring]
    comments = [f"# {one}".rstrip() for one in plain]
    return [*lines, *(["#"] if lines and comments else []), *comments]


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
        known = _constant
        replaced = _Undefined(names, definitions.name(NOT_CONVERTED), known)
        replaced.visit(node)
        for name in replaced.found:
            definitions.problems.append(Problem(file or module, at, f"{where} uses {name}, which could not be written"))
    return bool(names)


def _constant_from_reads(node: ast.stmt, names: set[str], file: str, own: str, definitions: Program) -> bool:
    """Give a constant that is computed from such names the value that it always had where the file reads it; returns
    whether there is one."""
    if not isinstance(node, ast.Assign) or not names & {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}:
        return False
    reads = [n for n in ast.walk(definitions.tree(file)) if isinstance(n, ast.Name) and n.id == own]
    values = [found for read in reads if (found := constants_of(read)) is not None]
    if not values or any(found != values[0] or len(found) != 1 for found in values):
        return False
    node.value = ast.Constant(values[0][0])
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
    for symbol in table.get_symbols():
        if symbol.is_declared_global() and symbol.is_assigned():
            yield symbol.get_name()


def _read(table: symtable.SymbolTable) -> Iterator[str]:
    """The names that are looked up at the file's top level."""
    for symbol in table.get_symbols():
        at_top = table.get_type() == "module" and not (symbol.is_assigned() or symbol.is_imported())
        if symbol.is_referenced() and (symbol.is_global() or at_top):
            yield symbol.get_name()
