"""Names that a file uses and does not have: what the model took from somewhere that could not be written."""

from __future__ import annotations

import ast
import builtins
import functools
import symtable
from collections.abc import Callable, Iterator

from .context import Definitions, Problem
from .facts import Facts
from .model_function import constructors_in
from .module_api import NOT_CONVERTED

OF_MODULES = {"__name__", "__file__", "__doc__", "__module__", "__qualname__", "__class__"}


def undefined(text: str) -> set[str]:
    """The names that a file reads when it runs, and neither defines nor imports; hints are not read."""
    top = symtable.symtable(text, "the new file", "exec")
    known = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    known |= {name for table in _tables(top) for name in _declared(table)} | set(dir(builtins)) | OF_MODULES
    return {name for table in _tables(top) for name in _read(table)} - known


def tell(names: set[str], maker: ast.FunctionDef, definitions: Definitions) -> bool:
    """Put an error in the place of names that the file does not have, and note what uses them; returns whether there
    are any."""
    for key, node in {**definitions.definitions, "": maker}.items() if names else ():
        kind = key or next(constructors_in(definitions.facts.root), "")
        module, _, own = kind.rpartition(":" if ":" in kind else ".")
        file = definitions.all_files.get(module, module if ":" in kind else "")
        if ":" in kind and _told_by_its_uses(node, names, file, own, definitions):
            continue
        at = next((n.lineno for n in definitions.tree(file).body if getattr(n, "name", "") == own), 1) if file else 1
        where = own if key else f"what makes the {own}"
        known = functools.partial(_constant, definitions.facts, file)
        replaced = _Undefined(names, definitions.name(NOT_CONVERTED), known)
        replaced.visit(node)
        for name in replaced.found:
            definitions.problems.append(Problem(file or module, at, f"{where} uses {name}, which could not be written"))
    return bool(names)


def _told_by_its_uses(node: ast.stmt, names: set[str], file: str, own: str, definitions: Definitions) -> bool:
    """Give a constant that is computed from such names the one value that it had wherever the file reads it."""
    if not isinstance(node, ast.Assign) or not names & {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}:
        return False
    reads = [n for n in ast.walk(definitions.tree(file)) if isinstance(n, ast.Name) and n.id == own]
    told = [found for read in reads if (found := definitions.facts.constants(file, read)) is not None]
    if not told or any(found != told[0] or len(found) != 1 for found in told):
        return False
    node.value = ast.Constant(told[0][0])
    return True


def _constant(facts: Facts, file: str, node: ast.Name) -> ast.expr | None:
    """The one number, string or the like that a name was wherever it was read."""
    found = facts.constants(file, node)
    return ast.Constant(found[0]) if found is not None and len(found) == 1 else None


class _Undefined(ast.NodeTransformer):
    """Puts what such names were, where that is known, in the place of those that are read, and else an error.

    known: the constant that a name was, None where it was something else. found: the names of which that is so.
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
        """A parameter, whose hint nobody reads."""
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """A variable, without its hint."""
        node.value = node.value and self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function, without the hint of what it returns, and without what it calls so itself."""
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
    """What a function says is global, and gives a value."""
    for symbol in table.get_symbols():
        if symbol.is_declared_global() and symbol.is_assigned():
            yield symbol.get_name()


def _read(table: symtable.SymbolTable) -> Iterator[str]:
    """What is looked up at the file's top."""
    for symbol in table.get_symbols():
        at_top = table.get_type() == "module" and not (symbol.is_assigned() or symbol.is_imported())
        if symbol.is_referenced() and (symbol.is_global() or at_top):
            yield symbol.get_name()
