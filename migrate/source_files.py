"""Files of the user's source, as text and syntax trees: a model's, and a training script's; nothing here runs them.

Of a model's files: what they define, what their names stand for, their parameters and constants. A file that is not
Python is an error of one line that says why.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from ..errors import BadInput
from ..input_files import LARGEST_PYTHON, python_tree, read_bytes
from ..printable import shortened
from .library_names import public, with_imports_by_star
from .source.observe.instrument import ABOVE, AFTER, BEHIND, OF_BLOCK, Note, definition, placed_notes
from .source.observe.observations import Function, Kind, ModuleKind, Observations, replacing

OWN = {"net", "name", "parameter", "kwargs"}  # local names of the function that makes the model
FAR = 5  # imports that a name is followed through
MAKE = {"dict", "float", "frozenset", "int", "list", "partial", "range", "set", "tuple"}


class Constant(NamedTuple):
    """A name at a file's top, and the statement that gives it a value."""

    file: str
    name: str
    node: ast.Assign | ast.AnnAssign

    @property
    def key(self) -> str:
        """Its name among the definitions."""
        return f"{self.file}:{self.name}"

    @property
    def value(self) -> Any:
        """The number, string or the like; None where it is computed."""
        return literal(self.node.value)[1]


def plain(node: ast.AST) -> bool:
    """Whether a value calls only functions that make numbers, lists and the like, but for what its lambdas call."""
    later = {inner for one in ast.walk(node) if isinstance(one, ast.Lambda) for inner in ast.walk(one.body)}
    return all(_makes(one.func) for one in ast.walk(node) if isinstance(one, ast.Call) and one not in later)


def _makes(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id in MAKE


def says_its_value(node: ast.Assign | ast.AnnAssign, resolve: Callable[[ast.expr], str]) -> bool:
    """Whether a constant's value can be read from its statement: it uses no attribute of a variable, and no result of a
    user's function. resolve: gives the full name of an import."""
    assert node.value is not None
    attributes = [inner for inner in ast.walk(node.value) if isinstance(inner, ast.Attribute) and not resolve(inner)]
    calls = [inner.func for inner in ast.walk(node.value) if isinstance(inner, ast.Call)]
    return not attributes and all(
        resolve(call).startswith(("torch.", "math.", "functools.", "collections.")) or _makes(call) for call in calls
    )


def _at_top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements at a file's top level, also those inside of `try` and `if`."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try)):
            handlers = [inner for handler in getattr(node, "handlers", ()) for inner in handler.body]
            yield from _at_top([*node.body, *handlers, *node.orelse])


class SourceFiles:
    """The files of the functions and classes that were seen."""

    def __init__(self, facts: Observations) -> None:
        self.facts = facts
        self.trees: dict[str, ast.Module] = {}
        self.imported: dict[str, Imported] = {}
        self._notes: dict[str, dict[int, list[Note]]] = {}
        self._classes: dict[str, dict[str, ast.ClassDef]] = {}
        self.functions = {function.qualified: function for function in facts.functions}
        self.modules = {**facts.files, **{f.module: f.file for f in facts.functions}}
        self.all_files = {**facts.beside, **self.modules}
        self.owners = self._owners()
        self.assigned = frozenset(self._assigned())

    def tree(self, file: str) -> ast.Module:
        """The parsed file, with the imports of its functions moved to its top level."""
        if file not in self.trees:
            self.trees[file] = with_imports_by_star(imports_at_top(self.facts.tree(file)), file, self.all_files)
        return self.trees[file]

    def notes(self, file: str, line: int) -> list[Note]:
        """The comments that belong to the statement that begins at a line of a file, without those for tools."""
        if file not in self._notes:
            self._notes[file] = placed_notes(Path(file).read_bytes())
        return self._notes[file].get(line, [])

    def notes_of(self, file: str, node: ast.stmt) -> list[Note]:
        """The comments of a class, function or constant at a file's top; none above it where there are so many, or so
        far away, that they are of the file."""
        line = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        notes = self.notes(file, node.lineno)
        above = [note for note in notes if note.place == ABOVE and note.line < line]
        near = [note for n, note in enumerate(above) if note.line == line - len(above) + n and note.line > 1]
        return [note for note in notes if note not in above or (len(near) <= MOST_COMMENTS and note in near)]

    def docstring_of(self, qualified: str) -> str:
        """The docstring of the file of a class or function, where it is a short one."""
        file = self.modules.get(self.module_of(qualified))
        text = (ast.get_docstring(self.tree(file)) or "").strip() if file is not None else ""
        odd = '"""' in text or "\\" in text or text.endswith('"') or len(text.splitlines()) > MOST_LINES
        return "" if odd else text

    def names(self, file: str) -> Imported:
        """What the names of a file stand for."""
        if file not in self.imported:
            module = next(module for module, place in self.all_files.items() if place == file)
            known, package = self.facts.names.get(module, {}), file.endswith("__init__.py")
            self.imported[file] = Imported(self.tree(file), module, known, is_package=package)
        return self.imported[file]

    def is_global(self, file: str, name: str) -> bool:
        """Whether a file defines or imports a name at its top."""
        for node in _at_top(self.tree(file).body):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                if any((alias.asname or alias.name).partition(".")[0] == name for alias in node.names):
                    return True
            elif isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
                return True
        return False

    def origin(self, file: str, name: str, far: int = FAR) -> Constant | None:
        """The statement that gives a top-level name its value, also in a file of the model that it is imported from."""
        tree = self.tree(file)
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
                continue
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return Constant(file, name, node)
        known = self.names(file).names
        for place in (known.get(name, ""), *(f"{module}.{name}" for module in self.names(file).stars)):
            module, _, last = place.rpartition(".")
            found = self.origin(self.all_files[module], last, far - 1) if far and module in self.all_files else None
            if found is not None and (plain(found.node) or last in self.facts.constants.get(module, {})):
                return found
        return None

    def derives(self, name: str, base: str) -> bool:
        """Whether a class of modules is this base or derives from it."""
        return any(bases[0] == name and base in bases for bases in self.facts.orders) or name == base

    def all_derive(self, kinds: Iterable[Kind], bases: Sequence[str]) -> bool:
        """Whether there are kinds, and all are modules of one of these classes, or derived from one."""
        classes = [kind.cls if isinstance(kind, ModuleKind) else "" for kind in kinds]
        return bool(classes) and all(any(self.derives(cls, base) for base in bases) for cls in classes)

    def at_top(self) -> set[str]:
        """The names that the new file may define at its top."""
        return {name.rpartition(".")[2] for name in (*self.functions, *self.owners, *self.assigned)}

    def unseen(self, name: str) -> bool:
        """Whether a class or function, of the model's packages or of torch, was neither called nor used as a value."""
        packages = {"torch", *(module.partition(".")[0] for module in self.modules)}
        of_model = name.partition(".")[0] in packages and not self._in_value(name)
        return of_model and name not in self.assigned and name not in self.facts.seen

    def _in_value(self, name: str) -> bool:
        """Whether a name is an attribute of a class or function, and no class or method: `Kind.SUM`, `Config.WIDTH`."""
        module = name
        while module and module not in self.all_files:
            module = module.rpartition(".")[0]
        owner, dot, last = name.removeprefix(f"{module}.").rpartition(".")
        of = self.class_node(self.all_files[module], owner) if module and dot else None
        inner = [n.name for n in getattr(of, "body", ()) if isinstance(n, (ast.ClassDef, ast.FunctionDef))]
        return bool(module and dot) and last not in inner

    def signature(self, name: str) -> ast.arguments | None:
        """The parameters of a function or a class of the model; None for a class with torch's constructor."""
        for owner in (name, *self.facts.bases(name)):
            found = self.functions.get(f"{owner}.__init__") or self.functions.get(owner)
            node = None if found is None else self.node(found)
            if node is not None:
                return node.args
        return None

    def parameters(self, name: str) -> list[str]:
        """The names of the positional parameters of a function or a class of the model."""
        takes = self.signature(name)
        return [] if takes is None else [argument.arg for argument in takes.args if argument.arg != "self"]

    def settings_functions(self) -> Iterator[str]:
        """Functions that call nothing and need no argument: they return settings of a package, no part of the model."""
        for function in self.facts.functions:
            node = self.node(function) if "." not in function.name else None
            calls = node is None or any(isinstance(inner, ast.Call) for inner in ast.walk(node))
            if node is not None and not calls and len(node.args.args) == len(node.args.defaults):
                yield function.qualified

    def _owners(self) -> dict[str, list[Function]]:
        """Every class in the files -> its methods that ran."""
        found: dict[str, list[Function]] = {
            f"{module}.{name}": [] for module, file in self.modules.items() for name in _defined(file)[0]
        }
        for function in self.facts.functions:
            owner, dot, _ = function.qualified.rpartition(".")
            if dot and owner != function.module:
                found.setdefault(owner, []).append(function)
        return found

    def _assigned(self) -> Iterator[str]:
        """What the files define at the top by assignment, such as named tuples."""
        for module, file in self.modules.items():
            yield from (f"{module}.{name}" for name in _defined(file)[1])

    def node(self, function: Function) -> ast.FunctionDef | None:
        """The definition of a function that ran."""
        return definition(self.tree(function.file), function.name.rpartition(".")[2], function.line)

    def class_of(self, name: str) -> tuple[str, ast.ClassDef] | None:
        """The file and the definition of a class of the model's packages, by its full name; None for any other."""
        file = self.all_files.get(module := self.module_of(name))
        node = None if file is None else self.class_node(file, name.removeprefix(f"{module}."))
        return None if file is None or node is None else (file, node)

    def module_of(self, name: str) -> str:
        """The module of a full name: what stands before its last dot, and of a class within a class before both."""
        module = name.rpartition(".")[0]
        file = self.all_files.get(outer := self.module_of(module)) if module and module not in self.all_files else None
        return module if file is None or self.class_node(file, name.removeprefix(f"{outer}.")) is None else outer

    def class_node(self, file: str, name: str) -> ast.ClassDef | None:
        """The definition of a class; name: `Outer.Inner` for a class within a class."""
        if file not in self._classes:
            nodes = [node for node in ast.walk(self.tree(file)) if isinstance(node, ast.ClassDef)]
            self._classes[file] = {node.name: node for node in reversed(nodes)} | dict(classes_in(self.tree(file)))
        return self._classes[file].get(name)


def _defined(file: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The classes that a file defines at its top, those within them, and the names that it assigns there."""
    return _defined_in(file, (status := Path(file).stat()).st_mtime_ns, status.st_size)


@lru_cache(maxsize=4096)  # most of a library's many files are read only for this
def _defined_in(file: str, *_: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    tree = ast.parse(Path(file).read_bytes())
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    names = (target.id for target in targets if isinstance(target, ast.Name))
    return tuple(name for name, _ in classes_in(tree)), tuple(names)


def classes_in(node: ast.Module | ast.ClassDef, outer: str = "") -> Iterator[tuple[str, ast.ClassDef]]:
    """The classes of a file's top and those within them, by name: `Outer`, `Outer.Inner`."""
    for inner in node.body:
        if isinstance(inner, ast.ClassDef):
            yield outer + inner.name, inner
            yield from classes_in(inner, f"{outer}{inner.name}.")


def own_nodes(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) -> Iterator[ast.AST]:
    """The nodes of a function or a file, in source order, without those inside of its functions and classes."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            waiting[:0] = ast.iter_child_nodes(node)


class Imported:
    """The names that a file imports or defines at its top -> their full names where they are defined.

    module: the name that the file is imported as. known: names that were seen to stand for something defined elsewhere.
    """

    def __init__(self, tree: ast.Module, module: str, known: Mapping[str, str], *, is_package: bool) -> None:
        self.names: dict[str, str] = {}
        self.stars: list[str] = []  # the modules of which everything is imported
        parts = module.split(".")
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    self.names[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom):
                up = parts[: len(parts) - node.level + is_package] if node.level else []
                place = ".".join([*up, *([node.module] if node.module else [])])
                self.stars += [place] * (node.names[0].name == "*")
                for alias in node.names:
                    self.names[alias.asname or alias.name] = f"{place}.{alias.name}"
        for node in tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                self.names[node.name] = f"{module}.{node.name}"
        self.names.update(known)

    def name(self, node: ast.expr) -> str:
        """The full name of an expression such as `nn.Module`; empty unless it begins with a top-level name."""
        rest: list[str] = []
        while isinstance(node, ast.Attribute):
            rest.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.names:
            return ""
        return public(".".join([self.names[node.id], *rest]))


def imports_at_top(tree: ast.Module) -> ast.Module:
    """The file with every import inside of a function moved to its end: MindSpore cannot compile such imports."""
    moved: list[ast.stmt] = []
    for function in [node for node in _with_blocks(tree) if isinstance(node, ast.FunctionDef)]:
        for block in (block for node in _with_blocks(function) for block in blocks_of(node)):
            for index, statement in enumerate(block):
                if isinstance(statement, (ast.Import, ast.ImportFrom)):
                    moved.append(statement)
                    block[index] = replacing(ast.Pass(), statement)
    tree.body += moved
    return tree


def _with_blocks(tree: ast.AST) -> Iterator[ast.AST]:
    """The node, and all nodes in it that hold statements, in the order of ast.walk, but without its expressions."""
    waiting = deque([tree])
    while waiting:
        node = waiting.popleft()
        yield node
        for field in ("body", "handlers", "orelse", "finalbody", "cases"):
            inner = getattr(node, field, None)
            if isinstance(inner, list):
                waiting.extend(one for one in inner if hasattr(one, "body") or hasattr(one, "cases"))


def blocks_of(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of statements directly inside a statement, without those of exception handlers."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


class _Substitution(ast.NodeTransformer):
    def __init__(self, change: Callable[[ast.AST], ast.AST | None]) -> None:
        self.change = change

    def visit(self, node: ast.AST) -> ast.AST:
        return self.change(node) or self.generic_visit(node)


def substitute(tree: ast.AST, change: Callable[[ast.AST], ast.AST | None]) -> Any:
    """Replace in place every node of a tree for which `change` returns something other than None."""
    return _Substitution(change).visit(tree)


def literal(node: ast.expr | None) -> tuple[bool, Any]:
    """Whether an expression is a literal number, string, or list or the like of these, and its value."""
    try:
        return (False, None) if node is None else (True, ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError):
        return False, None


IN_GAP = "in_gap"  # the names that the code which is missing in a place reads
REFUSED = "refused"  # marks a statement that raises in place of others, whose comments go with them
AT_END = "\ue000"  # ends a comment that belongs behind the first line of the statement below


def comment(text: str) -> ast.stmt:
    """A statement that is written as a comment."""
    return ast.Expr(ast.Name(f"# {text}", ast.Load()))


def is_comment(node: ast.AST) -> bool:
    """Whether a statement is one of these."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id.startswith("# ")


def of_gap(call: ast.Call, *nodes: ast.AST) -> ast.Call:
    """A call that raises in place of nodes, with the names that these read: who fills the gap needs their values."""
    names = (n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name))
    vars(call)[IN_GAP] = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    return call


def with_notes(found: list[ast.stmt], notes: Sequence[Note]) -> list[ast.stmt]:
    """Statements with their comments."""
    text = {note: note.text.removeprefix("# ") for note in notes}
    end = "" if is_comment(found[0]) else AT_END
    above = [comment(text[note]) for note in notes if note.place in (ABOVE, OF_BLOCK)]
    behind = [comment(f"{text[note]}{end}") for note in notes if note.place == BEHIND]
    return [*above, *behind, *found, *(comment(text[note]) for note in notes if note.place == AFTER)]


def all_parameters(takes: ast.arguments) -> list[ast.arg]:
    """Everything that a function takes, `*args` and `**kwargs` last."""
    named = [*takes.posonlyargs, *takes.args, *takes.kwonlyargs]
    return [*named, *(item for item in (takes.vararg, takes.kwarg) if item is not None)]


def defaults_of(takes: ast.arguments) -> dict[str, ast.expr]:
    """The parameters that have a default -> the default."""
    plain = [item.arg for item in (*takes.posonlyargs, *takes.args)]
    words = zip((item.arg for item in takes.kwonlyargs), takes.kw_defaults, strict=True)
    positional = zip(plain[len(plain) - len(takes.defaults) :], takes.defaults, strict=True)
    return {**dict(positional), **{name: default for name, default in words if default is not None}}


def local_names(function: ast.AST) -> Iterator[str]:
    """The names of the parameters, variables, functions and caught errors inside a function, at any depth."""
    for inner in ast.walk(function):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id
        elif isinstance(inner, ast.arg):
            yield inner.arg
        elif isinstance(inner, (ast.FunctionDef, ast.ExceptHandler)) and inner.name and inner is not function:
            yield inner.name


def short(name: str) -> str:
    """The last part of a qualified name."""
    return name.rpartition(".")[2]


def none_anyway(takes: ast.arguments, name: str) -> bool:
    """Whether a parameter's default is None, or it is one of `**kwargs`."""
    if name not in {item.arg for item in (*takes.posonlyargs, *takes.args, *takes.kwonlyargs)}:
        return takes.kwarg is not None
    default = defaults_of(takes).get(name)
    return isinstance(default, ast.Constant) and default.value is None


MOST_LINES = 20  # of a docstring that is kept
MOST_COMMENTS = 8  # lines above a class, a function or a constant
LINE_ENDS = re.compile("\r\n|\r|\n")  # the line ends by which Python counts lines
LONGEST_TEXT = 10_000  # letters of a node that is written anew, on one line
DEEPEST = 120  # levels of a syntax tree; an `elif` is one more


@dataclass(frozen=True)
class ScriptFile:
    """One file: its path, its name in reports, its lines and its tree."""

    path: Path
    shown: str
    lines: tuple[str, ...]
    tree: ast.Module

    def text(self, node: ast.AST) -> str:
        """The source text of a node on one line, with its original quotes and spaces."""
        if not isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword)) or node.end_lineno is None:
            return ast.unparse(node)
        start, end = node.lineno, node.end_lineno
        if start != end and self.length(node) > LONGEST_TEXT:
            return shortened(" ".join(" ".join(self.lines[start - 1 : end])[:LONGEST_TEXT].split()))
        if start != end:
            return " ".join(ast.unparse(node).split())
        line = self.encoded[start - 1]
        return line[node.col_offset : node.end_col_offset].decode("utf-8", "replace")

    def length(self, node: ast.AST) -> int:
        """How many bytes of the file a node spans, about."""
        if not isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword)) or node.end_lineno is None:
            return 0
        between = self.starts[node.end_lineno - 1] - self.starts[node.lineno - 1]
        return max(0, between + (node.end_col_offset or 0) - node.col_offset)

    @cached_property
    def encoded(self) -> list[bytes]:
        """The lines as bytes, by which Python counts columns."""
        return [line.encode() for line in self.lines]

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        """The classes of the file, those inside of others too."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins, in bytes."""
        return [0, *accumulate(len(line) + 1 for line in self.encoded)]


def read_script_file(path: Path, shown: str | None = None) -> ScriptFile:
    """Read and parse one file; raises BadInput with the file, and the line where there is one."""
    shown = shown or str(path)
    try:
        content = read_bytes(path, LARGEST_PYTHON)
    except FileNotFoundError:
        raise BadInput(f"{shown}: there is no such file") from None
    except IsADirectoryError:
        raise BadInput(f"{shown}: is not a file; give the Python file of the training script") from None
    except OSError as error:
        raise BadInput(f"{shown}: cannot be read: {error.strerror or error}") from None
    if b"\0" in content:
        raise BadInput(f"{shown}: not Python: it holds zero bytes, as binary files do")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
        tree = python_tree(content, shown)
    except SyntaxError as error:
        raise BadInput(f"{shown}{f':{error.lineno}' if error.lineno else ''}: not Python: {error.msg}") from None
    except (UnicodeDecodeError, LookupError) as error:
        raise BadInput(f"{shown}: not Python: not text in its encoding ({error})") from None
    except (RecursionError, MemoryError):
        raise BadInput(f"{shown}: nested too deeply for Python itself to read") from None
    except ValueError as error:  # an integer with more digits than Python reads
        raise BadInput(f"{shown}: not Python: {error}") from None
    if line := _too_deep(tree):
        raise BadInput(f"{shown}:{line}: nested more than {DEEPEST} deep, which no script written by a person is")
    _through_bars(tree)
    return ScriptFile(path, shown, tuple(LINE_ENDS.split(text.removeprefix("\N{BOM}"))), tree)


def _through_bars(tree: ast.Module) -> None:
    """Replace the name of a progress bar in a loop by the call that made it, so that its argument is seen.

    `bar = tqdm(loader)`, or `with tqdm(loader) as bar:`, and `for x, y in bar:` is `for x, y in tqdm(loader):`.
    """
    for scope in ast.walk(tree):
        if not isinstance(scope, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        made: dict[str, ast.Call] = {}
        for node in own_nodes(scope):
            if isinstance(node, (ast.For, ast.AsyncFor)):
                node.iter = _Bars(made).visit(node.iter)
            pairs: list[tuple[ast.AST | None, ast.expr]] = []
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                pairs = [(node.targets[0], node.value)]
            elif isinstance(node, (ast.With, ast.AsyncWith)):
                pairs = [(item.optional_vars, item.context_expr) for item in node.items]
            for target, value in pairs:
                if isinstance(target, ast.Name) and isinstance(value, ast.Call) and _is_tqdm(value.func):
                    made[target.id] = value
                elif isinstance(target, ast.Name):
                    made.pop(target.id, None)


class _Bars(ast.NodeTransformer):
    """Replaces the names of progress bars by the calls that made them."""

    def __init__(self, made: Mapping[str, ast.Call]) -> None:
        self.made = made

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The call that made the bar of this name."""
        return self.made.get(node.id, node)


def _is_tqdm(function: ast.expr) -> bool:
    return "tqdm" in (getattr(function, "attr", ""), getattr(function, "id", ""))


def _too_deep(tree: ast.Module) -> int | None:
    """The first line that is nested too deeply, or None."""
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return next((node.lineno for node in level if hasattr(node, "lineno")), 1) if level else None


def alternatives(value: ast.expr) -> list[ast.expr]:
    """What an expression may give, one way or the other."""
    match value:
        case ast.IfExp(_, body, orelse):
            return [*alternatives(body), *alternatives(orelse)]
        case ast.Subscript(ast.Dict(_, values)):
            return [one for value in values for one in alternatives(value)]
    return [value]


def all_of(test: ast.expr) -> list[ast.expr]:
    """What all has to hold."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def asks_class(test: ast.expr) -> TypeGuard[ast.Call]:
    """Whether it is `isinstance(x, Class)`."""
    match test:
        case ast.Call(ast.Name("isinstance"), [_, ast.Name() | ast.Attribute() | ast.Tuple()]):
            return True
    return False


def class_question(test: ast.expr) -> tuple[str, list[ast.expr]]:
    """The variable and the classes of `isinstance(x, C)`, `type(x) == C` and `type(x) in (C, D)`; else no name."""
    match test:
        case ast.Call(ast.Name("isinstance"), [ast.Name(name), classes]) | ast.Compare(
            ast.Call(ast.Name("type"), [ast.Name(name)]), [ast.Eq() | ast.Is() | ast.In()], [classes]
        ):
            return name, classes.elts if isinstance(classes, ast.Tuple) else [classes]
    return "", []
