"""The last look over a file: what nothing uses goes, hints name only what is there, and docstrings speak of it."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence

from .class_order import drop_unread, put_in_order
from .unused import remove_unused

# torch's word -> MindSpore's, in docstrings; what is left of `torch.nn.` and `torch.` goes
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


def finish(definitions: MutableMapping[str, ast.stmt], more: Sequence[ast.AST]) -> None:
    """Put the definitions of a file in order, which `more` (what makes the model) uses."""
    gone = remove_unused(definitions, more)
    drop_unread(definitions, more)
    needed = _needed(definitions, more)
    for name in [name for name in definitions if name not in needed]:
        del definitions[name]
    put_in_order(definitions)
    known = {name for node in definitions.values() for name in defines(node)} | set(dir(builtins))
    for name, node in definitions.items():
        for inner in ast.walk(node):
            if isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
                _docstring(inner, gone.get(name, set()) | gone.get(f"{name}.{inner.name}", set()))
        _Hints(known | {"nn", "ops", "mindspore", "Tensor", "Parameter"}).visit(node)


def _needed(definitions: Mapping[str, ast.stmt], more: Sequence[ast.AST]) -> set[str]:
    """The definitions that `more` uses, and those that these use; a type hint alone uses nothing."""
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
    """The names that a statement at the top of a file gives something to."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _names(node: ast.AST) -> Iterator[str]:
    """The names in a tree, without type hints."""
    if isinstance(node, ast.Name):
        yield node.id
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, ast.AST):
                    yield from _names(inner)


def _docstring(node: ast.FunctionDef | ast.ClassDef, gone: set[str]) -> None:
    """MindSpore's words, no lines for parameters that are gone, and no examples, which were torch's."""
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


def _without_empty_examples(lines: list[str]) -> list[str]:
    """A docstring's lines without headings under which all examples are gone."""
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
    """Takes names out of type hints that the file does not have: of classes that this model does not need."""

    def __init__(self, known: set[str]) -> None:
        self.known = known
        self.in_class = False  # where a dataclass needs every hint

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """What stands in a class beside its methods, and these."""
        self.in_class = True
        self.generic_visit(node)
        self.in_class = False
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """The hints of a signature, and those inside."""
        given = node.args
        for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
            if argument is not None and argument.annotation is not None:
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
    """A hint, and none where a parameter could only be None by what is left of it."""
    return None if isinstance(hint, ast.Constant) and hint.value is None else hint
