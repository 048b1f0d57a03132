"""Remove what nothing uses: variables, parameters, attributes, definitions; hints and docstrings are adapted."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path

from ....printable import few
from ...library_names import INSTALLED
from ...source_files import AT_END, IN_GAP, all_parameters, blocks_of, comment, defaults_of, is_comment, short
from ..rewrite.context import Problem, Program, receivers
from ..rewrite.graph_mode import is_pure
from ..rewrite.signatures import consumed_kwargs

# torch's word -> MindSpore's, in docstrings; any other `torch.nn.` and `torch.` is removed
WORDS = (
    (r"\b(torch\.)?nn\.Module\b", "nn.Cell"),
    (r"\b(torch\.)?nn\.Linear\b", "nn.Dense"),
    (r"\b(torch\.)?nn\.Sequential\b", "nn.SequentialCell"),
    (r"\b(torch\.)?nn\.ModuleList\b", "nn.CellList"),
    (r"\btorch\.nn\.", "nn."),
    (r"\btorch\.Tensor\b", "Tensor"),
)

TYPING = {
    *("Any", "Callable", "ClassVar", "Dict", "Final", "Iterable", "Iterator", "List", "Literal", "Mapping"),
    *("NamedTuple", "Optional", "OrderedDict", "Sequence", "Set", "Tuple", "Type", "TypeVar", "Union"),
}


def tidy(definitions: MutableMapping[str, ast.stmt], more: Sequence[ast.AST]) -> dict[str, set[str]]:
    """Remove unused code from a file's definitions, and sort these; more: the code that makes the model from them.

    Returns the removed parameters, by the name of the class or function.
    """
    gone = remove_dead_code(definitions, more)
    drop_unused_attributes(definitions, more)
    needed = _needed(definitions, more)
    for name in [name for name in definitions if name not in needed]:
        del definitions[name]
    put_in_order(definitions)
    known = {name for node in definitions.values() for name in defines(node)} | set(dir(builtins))
    for name, node in definitions.items():
        for inner in ast.walk(node):
            if isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
                lost = gone.get(name, set()) | gone.get(f"{name}.{inner.name}", set())
                _docstring(inner, lost)
                _texts_as_comments(inner)
                inner.body = [line for line in inner.body if not _is_of(line, lost)]
        _Hints(known | {"nn", "ops", "mindspore", "Tensor", "Parameter"}).visit(node)
    return gone


def is_dropped(statement: ast.stmt) -> bool:
    """Whether a statement of a class is neither its docstring nor an attribute that a model needs."""
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return True
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    return isinstance(target, ast.Name) and (target.id.startswith("__") or target.id == "_version")


def lost_arguments(gone: Mapping[str, set[str]], program: Program) -> Iterator[Problem]:
    """The parameters that `tidy` removed from the user's own classes and functions, for the report."""
    for qualified in program.definitions:
        function, cls = program.functions.get(qualified), program.class_of(qualified)
        file, node = (function.file, program.node(function)) if function is not None else cls or (None, None)
        if qualified not in gone or file is None or INSTALLED.intersection(Path(file).parts):
            continue
        lost = few(sorted(one.lstrip("*") for one in gone[qualified]), 8)
        text = f"{short(qualified)} is written without {lost}, which nothing reads: a call that passes it has to change"
        yield Problem(file, node.lineno if node is not None else 1, text)


def _needed(definitions: Mapping[str, ast.stmt], more: Sequence[ast.AST]) -> set[str]:
    """The definitions that `more` uses, and those that these use; a type hint does not count as a use."""
    named: dict[str, list[str]] = {}
    for key, node in definitions.items():
        for name in defines(node):
            named.setdefault(name, []).append(key)
    found: set[str] = set()
    waiting: list[ast.AST] = [*more]
    while waiting:
        for name in _names(waiting.pop()):
            fresh = [key for key in named.get(name, ()) if key not in found]
            found.update(fresh)
            waiting += [definitions[key] for key in fresh]
    return found


def defines(node: ast.stmt) -> list[str]:
    """The names that a top-level statement of a file defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    return _targets(node)


def _names(node: ast.AST) -> Iterator[str]:
    """The names in a tree, without type hints."""
    if isinstance(node, ast.Name):
        yield node.id
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, ast.AST):
                    yield from _names(inner)


def _is_of(line: ast.stmt, gone: set[str]) -> bool:
    """Whether a statement is a comment on one of these parameters."""
    return is_comment(line) and ast.unparse(line).partition(":")[0].removeprefix("# ") in gone


def _docstring(node: ast.FunctionDef | ast.ClassDef, gone: set[str]) -> None:
    """Adapt a docstring: MindSpore's words, without removed parameters, and without examples, which were torch's."""
    first = node.body[0] if node.body else None
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant) or ast.get_docstring(node) is None:
        return
    text = str(first.value.value)
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    lines: list[str] = []
    skipped, example = -1, False
    for line in text.splitlines():
        indent = _indent(line)
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if skipped >= 0 and (not line.strip() or indent <= skipped):
            skipped = -1
        if any(re.match(rf"\s*{re.escape(name)}\s*(\(|:|-)", line) for name in gone if not name.startswith("*")):
            skipped = indent
        if skipped < 0 and not example:
            lines.append(line)
    found = "\n".join(_without_empty_examples(lines) if ">>>" in text else lines)
    if re.fullmatch(r"\s*", found) or re.fullmatch(r"\s*Args:\s*", found):
        node.body = node.body[1:] or [ast.Pass()]
    else:
        first.value.value = found if found.strip() == found or "\n" in found else found.strip()


def _texts_as_comments(node: ast.FunctionDef | ast.ClassDef) -> None:
    """Write texts that stand alone in a body, as behind `super().__init__()`, as comments; not the docstring."""
    for place, statement in reversed([*enumerate(node.body)][1:]):
        match statement:
            case ast.Expr(ast.Constant(str() as text)):
                node.body[place : place + 1] = [comment(line) for line in inspect.cleandoc(text).splitlines()]
    node.body = node.body or [ast.Pass()]


def _without_empty_examples(lines: list[str]) -> list[str]:
    """A docstring's lines without headings whose examples were all removed."""
    kept: list[str] = []
    for number, line in enumerate(lines):
        below = next((after for after in lines[number + 1 :] if after.strip()), "")
        if not re.fullmatch(r"\s*Examples?\s*:{0,2}\s*", line) or _indent(below) > _indent(line):
            kept.append(line)
    while len(kept) > 2 and not kept[-1].strip() and not kept[-2].strip():
        del kept[-2]
    return kept


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


class _Hints(ast.NodeTransformer):
    """Removes from type hints the names that the file does not have, of classes that this model does not need."""

    def __init__(self, known: set[str]) -> None:
        self.known = known
        self.in_class = False  # where a dataclass needs every hint

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """A class, with its attributes and methods."""
        self.in_class = True
        self.generic_visit(node)
        self.in_class = False
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """The hints of a signature, and those inside."""
        for argument in all_parameters(node.args):
            if argument.annotation is not None:
                argument.annotation = _something(self.hint(argument.annotation))
        if node.returns is not None:
            node.returns = self.hint(node.returns)
        before, self.in_class = self.in_class, False
        self.generic_visit(node)
        self.in_class = before
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """The hint of a variable."""
        hint = self.hint(node.annotation)
        self.generic_visit(node)
        if hint is None and node.value is not None and not self.in_class:
            return ast.Assign([node.target], node.value)
        node.annotation = hint or node.annotation
        return node

    def hint(self, node: ast.expr) -> ast.expr | None:
        """The hint, None where nothing is left of it."""
        if isinstance(node, ast.Name):
            return node if node.id in self.known or node.id in TYPING else None
        if isinstance(node, ast.BinOp):
            left, right = self.hint(node.left), self.hint(node.right)
            return ast.BinOp(left, node.op, right) if left and right else left or right
        if not isinstance(node, ast.Subscript):
            return node
        outer = ast.unparse(node.value).rpartition(".")[2]
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        kept = [found for item in inside for found in [self.hint(item)] if found is not None]
        if outer == "Union" and kept:
            node.slice = ast.Tuple(kept, ast.Load()) if len(kept) > 1 else kept[0]
            return node if len(kept) > 1 else kept[0]
        if len(kept) < len(inside) or self.hint(node.value) is None:
            return None
        node.slice = ast.Tuple(kept, ast.Load()) if isinstance(node.slice, ast.Tuple) else kept[0]
        return node


def _something(hint: ast.expr | None) -> ast.expr | None:
    """The hint, or None where only `None` is left of it."""
    return None if isinstance(hint, ast.Constant) and hint.value is None else hint


CELLS = ("nn.", "mindspore.nn.")


def put_in_order(definitions: MutableMapping[str, ast.stmt]) -> None:
    """Put before every definition the names that Python looks up to define it: base classes, defaults, attributes."""
    keys: dict[str, str] = {}
    for key, node in definitions.items():
        for name in defines(node):
            keys.setdefault(name, key)
    done: dict[str, ast.stmt] = {}
    open_: set[str] = set()

    def put(key: str) -> None:
        if key in done or key in open_:
            return
        open_.add(key)
        for name in looked_up(definitions[key]):
            if name in keys:
                put(keys[name])
        done[key] = definitions[key]

    for key in definitions:
        put(key)
    definitions.clear()
    definitions.update(done)


def looked_up(node: ast.AST) -> Iterator[str]:
    """The names that Python reads when it defines a class or a function, or runs a statement."""
    if isinstance(node, ast.Name):
        yield node.id
    parts: Sequence[ast.AST | None] = list(ast.iter_child_nodes(node))
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        parts = [*getattr(node, "decorator_list", ()), *node.args.defaults, *node.args.kw_defaults]
    elif isinstance(node, ast.AnnAssign):
        parts = [node.value]
    for part in parts:
        if part is not None:
            yield from looked_up(part)


def drop_unused_attributes(definitions: Mapping[str, ast.stmt], more: Sequence[ast.AST]) -> None:
    """Remove from modules' classes the class attributes that nothing reads."""
    trees = [*definitions.values(), *more]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    read |= {"construct", *(str(node.value) for node in nodes if isinstance(node, ast.Constant))}
    classes = {node.name: node for node in definitions.values() if isinstance(node, ast.ClassDef)}
    for node in classes.values():
        if _is_cell(node, classes):
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            kept: list[ast.stmt] = []
            for line in node.body:
                if _is_hint(line) or not {*_targets(line)} - read - names:
                    kept.append(line)
                else:
                    while kept and is_comment(kept[-1]):
                        kept.pop()
            node.body = kept or [ast.Pass()]


def _is_hint(line: ast.stmt) -> bool:
    return isinstance(line, ast.AnnAssign) and line.value is None


def _targets(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is_cell(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> bool:
    for base in node.bases:
        name = ast.unparse(base)
        if name.startswith(CELLS) or (name in classes and name != node.name and _is_cell(classes[name], classes)):
            return True
    return False


def remove_dead_code(definitions: Mapping[str, ast.stmt], more: Sequence[ast.AST]) -> dict[str, set[str]]:
    """Remove unused variables and parameters from the definitions, and their arguments in `more`, which calls them.

    Returns the removed parameters, by the name of the class or function. Not removed are the parameters of a `forward`,
    those of a class that come before one that it reads, and arguments whose evaluation may have an effect.
    """
    calls = Calls(definitions, more)
    gone: dict[str, set[str]] = {}
    while True:
        changed = sum(_variables(function.node) for function in calls.functions.values()) > 0
        found = _removable(calls)
        for name, parameter in found:
            gone.setdefault(name.removesuffix(".__init__"), set()).add(parameter)
        _remove(calls, found)
        if not changed and not found:
            return gone


def _variables(function: ast.FunctionDef) -> bool:
    """Remove assignments to variables that are never read; returns whether there were any."""
    if _asks_by_name(function):
        return False
    read = names_read(function)
    for node in ast.walk(function):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            read.add(node.target.id)
        if isinstance(node, ast.Try) and node.handlers:  # the value may be computed only for its exception
            read |= {n.id for tried in node.body for n in ast.walk(tried) if isinstance(n, ast.Name)}
    outer = (node.names for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)))
    return _sweep(function, read.union(*outer), consumed_kwargs(function))


def names_read(node: ast.AST) -> set[str]:
    """The names in a tree that are read, also by what is missing there."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Store):
            found.add(inner.id)
        found |= vars(inner).get(IN_GAP, set())
    return found


def _asks_by_name(function: ast.FunctionDef) -> bool:
    """Whether a function may read any of its variables: it calls `locals()`, or runs code from a string."""
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    named = ((call.func.id, bool(call.args)) for call in calls if isinstance(call.func, ast.Name))
    return any(name in ("eval", "exec") or (name in ("locals", "vars", "dir") and not args) for name, args in named)


def _sweep(node: ast.AST, read: set[str], dead: Sequence[ast.stmt]) -> bool:
    changed = False
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if not isinstance(block, list):
            continue
        for statement in list(block):
            changed |= _sweep(statement, read, dead)
            if statement in dead or _is_dead(statement, read):
                place = block.index(statement)
                while place and is_comment(block[place - 1]) and ast.unparse(block[place - 1]).endswith(AT_END):
                    place -= 1
                    del block[place]
                del block[place]
                changed = True
            elif isinstance(statement, ast.If) and not statement.body:  # its test may have an effect
                statement.body.append(ast.Pass())
        if field == "body" and not block and not isinstance(node, ast.If):
            block.append(ast.Pass())
    return changed


def _is_dead(statement: ast.stmt, read: set[str]) -> bool:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.AnnAssign):
        target, value = statement.target, statement.value or ast.Constant(None)
    elif isinstance(statement, ast.If):
        return (
            all(isinstance(inner, ast.Pass) for inner in statement.body)
            and not statement.orelse
            and is_pure(statement.test)
        )
    else:
        return False
    of_self = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    if (of_self or isinstance(target, ast.Name)) and ast.unparse(target) == ast.unparse(value):
        return True  # x = x.to(device), self.x = self.x.to(device)
    return isinstance(target, ast.Name) and target.id not in read and is_pure(value)


def _removable(calls: Calls) -> set[tuple[str, str]]:
    """The parameters that no body reads, and whose arguments can be removed from every call."""
    values = calls.values()
    found = {(each.name, name) for each in calls.functions.values() for name in _unread(each, calls, values)}
    while True:
        kept = {pair for pair in found if not _unused_needed(pair, found, calls)}
        if kept == found:
            return found
        found = kept


def _unread(function: Function, calls: Calls, values: set[str]) -> Iterator[str]:
    last = short(function.name)
    if last == "construct" or (last.startswith("__") and last != "__init__"):
        return
    if not calls.of(function.name):
        return
    # then other code may call it, with the arguments of any call in the file
    handed_on = function.node.name in values and function.node.name != "__init__"
    if (function.node.decorator_list and not function.is_static) or _asks_by_name(function.node):
        return
    read = {node.id for part in function.node.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    read = read.union(*map(names_read, function.node.body))
    for name in parameters(function):
        if name not in read and not (handed_on and calls.may_give(function, name)):
            yield name
    if not handed_on and function.node.args.kwarg is not None and function.node.args.kwarg.arg not in read:
        yield f"**{function.node.args.kwarg.arg}"


def _unused_needed(pair: tuple[str, str], found: set[tuple[str, str]], calls: Calls) -> bool:
    """Whether the argument for a parameter cannot be removed from some call."""
    name, parameter = pair
    function = calls.functions[name]
    places = function.positions
    after = [other for other, at in places.items() if at > places.get(parameter, len(places))]
    if function.node.name == "__init__" and any((name, other) not in found for other in after):
        return True  # other code may pass arguments by position, and later parameters would get other values
    for call, first in calls.of(name):
        given = call.args[first:]
        if any(isinstance(item, ast.Starred) for item in given) or any(word.arg is None for word in call.keywords):
            return True
        if "" in receivers(call):
            return True  # a class of MindSpore's may get them, too
        others = [calls.functions[other] for other in calls.targets(call)]
        if parameter.startswith("**"):
            if any(word.arg not in parameters(function) for word in call.keywords):
                return True
            continue
        index = function.positions.get(parameter, len(given))
        if index < len(given):
            same = all((other.name, other.at(index)) in found for other in others)
            if not same or (first and call.args[1:first]) or not is_pure(given[index]):
                return True
        for word in call.keywords:
            if word.arg == parameter:
                same = all((other.name, parameter) in found for other in others)
                if not same or not is_pure(word.value):
                    return True
    return False


def _remove(calls: Calls, found: set[tuple[str, str]]) -> None:
    changed: set[int] = set()
    for name in {name for name, _ in found}:
        names = {parameter for other, parameter in found if other == name}
        function = calls.functions[name]
        for call, first in calls.of(name):
            if id(call) not in changed:
                changed.add(id(call))
                kept = [item for at, item in enumerate(call.args[first:]) if function.at(at) not in names]
                call.args = [*call.args[:first], *kept]
                call.keywords = [word for word in call.keywords if word.arg not in names]
    for name, parameter in found:
        calls.functions[name].drop(parameter)


class Function:
    """A function or method, and the positions of its parameters in a call, without `self`."""

    def __init__(self, name: str, node: ast.FunctionDef, *, method: bool) -> None:
        self.name, self.node = name, node
        self.is_static = any(ast.unparse(item) == "staticmethod" for item in node.decorator_list)
        self.first = 1 if method and not self.is_static else 0

    @property
    def positions(self) -> dict[str, int]:
        """Parameter -> its index among the positional arguments."""
        arguments = [*self.node.args.posonlyargs, *self.node.args.args][self.first :]
        return {argument.arg: index for index, argument in enumerate(arguments)}

    def at(self, index: int) -> str:
        """The parameter that a positional argument goes to; empty where it goes to `*args`."""
        return next((name for name, place in self.positions.items() if place == index), "")

    def drop(self, parameter: str) -> None:
        """Remove a parameter from the definition."""
        given = self.node.args
        if parameter.startswith("**"):
            given.kwarg = None
            return
        for arguments in (given.posonlyargs, given.args):
            for index, argument in enumerate(arguments):
                if argument.arg == parameter:
                    behind = len(arguments) - index + (len(given.args) if arguments is given.posonlyargs else 0)
                    if behind <= len(given.defaults):
                        del given.defaults[-behind]
                    arguments.remove(argument)
                    return
        for index, argument in enumerate(given.kwonlyargs):
            if argument.arg == parameter:
                del given.kwonlyargs[index], given.kw_defaults[index]
                return


def parameters(function: Function) -> list[str]:
    """All named parameters, without `self`."""
    return [*function.positions, *(argument.arg for argument in function.node.args.kwonlyargs)]


class Calls:
    """The functions of `definitions`, and the calls of them there and in `more`.

    The `receivers` of a call are the functions that it may call.
    """

    def __init__(self, definitions: Mapping[str, ast.stmt], more: Sequence[ast.AST]) -> None:
        self.functions: dict[str, Function] = {}
        self.classes = {name: node for name, node in definitions.items() if isinstance(node, ast.ClassDef)}
        self.trees = [*definitions.values(), *more]
        for name, node in definitions.items():
            if isinstance(node, ast.FunctionDef):
                self.functions[name] = Function(name, node, method=False)
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, ast.FunctionDef):
                    key = f"{name}.{inner.name}"
                    self.functions[key] = Function(key, inner, method=True)
        self._found: dict[str, list[tuple[ast.Call, int]]] = {}
        for tree in self.trees:
            for call in ast.walk(tree):
                if isinstance(call, ast.Call) and receivers(call):
                    for target in self.targets(call):
                        self._found.setdefault(target, []).append((call, int(_is_partial(call))))

    def targets(self, call: ast.Call) -> list[str]:
        """The functions that a call may call."""
        found = (self._target(name) for name in receivers(call))
        return list(dict.fromkeys(name for name in found if name))

    def of(self, name: str) -> list[tuple[ast.Call, int]]:
        """The calls of a function, and how many first arguments of each are not its own, as `partial`'s first."""
        return self._found.get(name, [])

    def values(self) -> set[str]:
        """The names that are used as a value somewhere, so that not all calls of such a function are known."""
        nodes = [node for tree in self.trees for node in ast.walk(tree)]
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        return {
            node.id if isinstance(node, ast.Name) else node.attr
            for node in nodes
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and id(node) not in called
        }

    def may_give(self, function: Function, parameter: str) -> bool:
        """Whether a call that is not known to be one of this function could pass an argument for a parameter."""
        if parameter not in defaults_of(function.node.args):
            return True
        nodes = [node for tree in self.trees for node in ast.walk(tree)]
        most = max((len(node.args) for node in nodes if isinstance(node, ast.Call)), default=0)
        named = any(isinstance(node, ast.keyword) and node.arg == parameter for node in nodes)
        spelled = any(isinstance(node, ast.Constant) and node.value == parameter for node in nodes)
        return named or spelled or function.positions.get(parameter, most) < most

    def _target(self, name: str) -> str:
        if name in self.functions:
            return name
        return next((f"{base}.__init__" for base in self._bases(name) if f"{base}.__init__" in self.functions), "")

    def _bases(self, name: str) -> Iterator[str]:
        if name in self.classes:
            yield name
            for base in self.classes[name].bases:
                for other, node in self.classes.items():
                    if node.name == ast.unparse(base):
                        yield from self._bases(other)


def _is_partial(call: ast.Call) -> bool:
    return ast.unparse(call.func) in ("partial", "functools.partial")


def fill_empty_blocks(node: ast.AST) -> None:
    """Give every block that holds only comments a statement, since Python requires one."""
    for block in (block for inner in ast.walk(node) for block in blocks_of(inner)):
        if all(map(is_comment, block)):
            block.append(ast.Pass())
