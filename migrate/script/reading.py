"""Reading a script and the files of its folder that it imports; nothing of them is run."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from pathlib import Path

from ...errors import BadInput
from . import names
from .calling import family_of_class
from .functions import Functions
from .noting import BUDGET, SURENESS, UNCALLED
from .source import Source, read_source
from .values import Constant, Function, Instance, Module, Name, Scope, Value, known

MOST_FILES = 100


class Reader(Functions):
    """Reads one script and the files of its folder that it imports."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.files: dict[str, Module] = {}
        self.not_there: dict[str, tuple[str, int]] = {}  # module -> file and line of the import
        self.unreadable: dict[str, str] = {}  # file -> why
        self.libraries: set[str] = set()

    # files

    def script(self, path: Path) -> None:
        """Read the script, then what it does not call itself."""
        self._run_file(replace(read_source(path), shown=path.name), "__main__")
        before = self.certainty
        position = 0
        while position < len(self.functions) and self.spent <= BUDGET:
            waiting = list(self.functions.values())[position:]  # reading one may define further ones
            position += len(waiting)
            self._uncalled(waiting, before)
        self.certainty = before
        if self.spent > BUDGET:
            self.unreadable["too long"] = f"{path.name}: too much to follow to its end: uses may be missing here"

    def _uncalled(self, functions: list[Function], before: str) -> None:
        """Read those of the functions that nothing has called yet."""
        for function in functions:
            if id(function.node) in self.runs:
                continue
            own = self.instances.get(id(function.owner.node)) if function.owner else None
            name = getattr(function.node, "name", "")
            in_use = own is not None and (bool(family_of_class(own.of)) or name.startswith("__"))  # its forward runs
            self.certainty = max(before, own.certainty if own and in_use else UNCALLED, key=SURENESS.index)
            if own is None and function.owner is not None:  # the script makes no object of this class
                own = self.instances[id(function.owner.node)] = Instance(function.owner, certainty=UNCALLED)
            self.function(Function(function.node, function.scope, own, function.owner), [])

    def _run_file(self, source: Source, name: str) -> Module:
        scope = Scope(source, names={"__name__": Constant(name), "__file__": Value()})
        module = Module(scope)
        self.files[name] = module
        self._block(source.tree.body, scope)
        return module

    def file(self, name: str) -> Value | None:
        """A file of the script's folder by its dotted name."""
        if name in self.files:
            return self.files[name]
        parts = name.split(".")
        if not all(part.isidentifier() for part in parts) or len(self.files) >= MOST_FILES:
            return None
        self.spent += 5
        at = self.folder.joinpath(*parts)
        for path in (at.with_suffix(".py"), at / "__init__.py"):
            if path.is_file():
                shown = str(path.relative_to(self.folder))
                try:
                    source = read_source(path, shown)
                except BadInput as error:
                    self.unreadable[shown] = str(error)
                    return None
                loops, self.loops = self.loops, []
                try:
                    return self._run_file(source, name)
                finally:
                    self.loops = loops
        if at.is_dir():
            self.files[name] = Module(
                Scope(Source(at, name, (), ast.Module([], [])), names={"__name__": Constant(name)})
            )
            return self.files[name]
        return None

    def _do_import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            own = self._own(alias.name if alias.asname else top, node, scope)
            if own is not None and not alias.asname:
                self.file(alias.name)
            scope.names[alias.asname or top] = own or Name(alias.name if alias.asname else top)

    def _do_importfrom(self, node: ast.ImportFrom, scope: Scope) -> None:
        base = node.module or ""
        if node.level:
            package = (known(scope.find("__name__")) or "").split(".")
            is_package = scope.source.path.name == "__init__.py"
            package = [] if package == ["__main__"] else package[: len(package) - node.level + is_package]
            base = ".".join([*package, *([base] if base else [])])
        own = self._own(base, node, scope, relative=bool(node.level)) if base else None
        for alias in node.names:
            if alias.name == "*":
                if isinstance(own, Module):
                    scope.names |= {k: v for k, v in own.scope.names.items() if not k.startswith("_")}
                    scope.stars += own.scope.stars
                elif not node.level:
                    scope.stars.append(base)
                continue
            inside = own.scope.names.get(alias.name) if isinstance(own, Module) else None
            inside = inside or self.file(f"{base}.{alias.name}" if base else alias.name) if own or not base else None
            found = inside or (Value() if own or node.level else Name(f"{base}.{alias.name}"))
            if not base and inside is None:
                self.not_there.setdefault(f"{'.' * node.level}{alias.name}", (scope.source.shown, node.lineno))
            scope.names[alias.asname or alias.name] = found

    def _own(self, name: str, node: ast.stmt, scope: Scope, relative: bool = False) -> Value | None:
        """The file of the script's folder that an import means; what is neither there nor known is remembered."""
        top = name.partition(".")[0]
        if names.is_library(name) and not relative:
            self.libraries.add(top)
            return None
        found = self.file(name)
        if found is None and top not in sys.stdlib_module_names:
            self.not_there.setdefault(name, (scope.source.shown, node.lineno))
        return found
