"""The calls in a torch model's functions, by what they called when it ran."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from ...mappings.rows import Row
from . import dictionaries, lists, module_calls, records, registries
from .arguments import Arguments
from .configurations import note_asked
from .crossing_calls import CannotWrite, begun, held, takes_anything, through_variable, written
from .module_api import (
    ANNOTATE,
    CONSTANT,
    CONTAINERS,
    DEFAULT_DTYPE,
    FORWARDS,
    GROWING,
    KEPT,
    LIMITS,
    METHODS,
    MODULES,
    NOT_CONVERTED,
)
from .plainly import plainly
from .scope import Problem, Scope
from .signatures import none_anyway
from .tensor_methods import Call, is_method, method

ATTENTION = "torch.nn.MultiheadAttention"


class Calls(Arguments):
    """Rewrites calls; the other expressions stand in translating.py."""

    scope: Scope
    owner: str
    adds: bool
    asked: bool
    strict: bool

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        """A call, by what it called."""
        callees = self.facts.callees(self.file, node)
        if callees in (["builtins.getattr"], ["builtins.hasattr"]):
            note_asked(self.scope, self.file, node)
        asked = registries.found(node, self)  # type: ignore[arg-type]
        if asked is not None:
            return asked
        constants = self.facts.constants(self.file, node)
        if callees and all(name in CONSTANT for name in callees) and constants is not None and len(constants) == 1:
            return ast.Constant(constants[0])
        shown = dictionaries.display(node, callees, lambda part: self.facts.kinds(self.file, part))
        shown = shown or lists.backwards(node, self)  # type: ignore[arg-type]
        if shown is not None:
            return self.generic_visit(shown)
        record = records.of_class(self.facts.records, callees)
        if record is not None:
            plain = records.made(record, node)
            if plain is not None:
                return self.generic_visit(plain)
            text = f"which field of {callees[0]} is which cannot be told of {ast.unparse(node)}"
            if self.strict:
                raise CannotWrite(text)
            return self.missing(node, text)
        if callees == ["builtins.list.copy"] and isinstance(node.func, ast.Attribute):  # Graph mode has no such method
            return ast.List([ast.Starred(self.visit(node.func.value), ast.Load())], ast.Load())
        if callees and {f"object {name}" for name in callees} <= LIMITS:
            return ast.Constant(None)  # of which only the numbers are read, and written where they are
        if callees == [DEFAULT_DTYPE]:
            return self.scope.name("mindspore.float32")
        if callees == [ANNOTATE] and len(node.args) == 2:
            return self.visit(node.args[1])
        setting = bool(callees) and not node.args and not node.keywords and self.scope.settings.issuperset(callees)
        if (setting or self.asks_torch(node)) and constants is not None and len(constants) == 1:
            return ast.Constant(constants[0])
        if callees and callees[0] in ("builtins.isinstance", "builtins.issubclass"):
            self.asked = True
            node = self.kept(node)
            self.asked = False
            return node
        as_base = any(name in self.scope.theirs and self.scope.row(name) for name in callees)
        other = callees not in (["functools.partial"], [f"module {ATTENTION}"])
        if other and not as_base and all(self.is_theirs(name) for name in callees):
            return self.kept(node)
        try:
            return self.attention(node) if callees == [f"module {ATTENTION}"] else self.crossed(node, callees)
        except CannotWrite as error:
            if self.strict:
                raise
            return self.missing(node, str(error))

    def attention(self, node: ast.Call) -> ast.expr:
        """A call of MultiheadAttention, which in MindSpore gives the output alone where no weights are wanted."""
        words = {word.arg: word.value for word in node.keywords}
        wanted = node.args[4] if len(node.args) > 4 else words.get("need_weights", ast.Constant(True))
        if isinstance(wanted, ast.Constant) and not wanted.value:
            alone = ast.Subscript(self.kept(node), ast.Constant(0), ast.Load())  # MindSpore's is a tuple of one
            return ast.Tuple([alone, ast.Constant(None)], ast.Load())
        if not isinstance(wanted, ast.Constant) and self.facts.constants(self.file, wanted) != [True]:
            raise CannotWrite(f"{ATTENTION} with weights now and then: {ast.unparse(wanted)}")
        return self.kept(node)

    def asks_torch(self, node: ast.Call) -> bool:
        """Whether the call asks a module of torch's for something, as `hasattr(F, "scaled_dot_product_attention")`."""
        kinds = self.facts.kinds(self.file, node.args[0]) if node.args else []
        return bool(kinds) and all(kind.startswith("python torch") for kind in kinds)

    def is_theirs(self, name: str) -> bool:
        """Whether it is translated too, or of Python's own."""
        return (
            name in self.scope.theirs
            or name.rpartition(".")[0] in self.scope.theirs
            or (".<locals>." in name and not name.startswith("torch."))  # made in a function of theirs
            or not name.startswith(("torch.", "torchvision.", "timm.", "module ", "object torch", "partial "))
            or name.startswith("module ")
        )

    def kept(self, node: ast.Call) -> ast.Call:
        """The same call with arguments that are rewritten."""
        called = self.facts.callees(self.file, node)
        function = node.func
        node.takes = self.callees(node)  # type: ignore[attr-defined]  # for unused.py
        if self.of_module(function) and called and called[0] in self.scope.theirs:
            node.func = ast.Name(self.scope.called(called[0]), ast.Load())
        elif isinstance(function, ast.Attribute):
            node.func = ast.Attribute(self.visit(function.value), METHODS.get(function.attr, function.attr), ast.Load())
        else:
            node.func = self.visit(function)
        node.args = [self.visit(argument) for argument in node.args]
        words = FORWARDS.get(called[0].removeprefix("module "), {}) if len(called) == 1 else {}
        node.keywords = [
            ast.keyword(words.get(word.arg, word.arg) if word.arg else None, self.visit(word.value))
            for word in self.spelled(node)
            if word.arg is None or words.get(word.arg, word.arg)
        ]
        return node

    def spelled(self, call: ast.Call) -> list[ast.keyword]:
        """The keywords; of a `**dictionary` of nothing but None, what is not None anyway."""
        found: list[ast.keyword] = []
        for word in call.keywords:
            entries = self.facts.entries(self.file, word.value) if word.arg is None else None
            if entries is None or any(kinds != ["NoneType"] for kinds in entries.values()):
                found.append(word)
                continue
            takes = [self.scope.signature(name) for name in self.callees(call)]  # type: ignore[attr-defined]
            for key in entries:
                if not all(one is None or none_anyway(one, key) for one in takes):
                    found.append(ast.keyword(key, ast.Constant(None)))
        return found

    def of_module(self, function: ast.expr) -> bool:
        """Whether it is a name in a module, as `layers.Block`."""
        kinds = self.facts.kinds(self.file, function.value) if isinstance(function, ast.Attribute) else []
        return bool(kinds) and all(kind.startswith("python ") for kind in kinds)

    def crossed(self, node: ast.Call, callees: list[str]) -> ast.AST:
        """A call of torch's as the call of its row."""
        last = {name.rpartition(".")[2] for name in callees}
        if all(name.startswith(MODULES) for name in callees) and last <= KEPT:
            grows = last <= GROWING and isinstance(node.func, ast.Attribute)
            self.adds = self.adds or (grows and not isinstance(node.func.value, ast.Name))  # type: ignore[attr-defined]
            items = last == {"named_children"}  # a dictionary in MindSpore
            return _called(self.kept(node), "items") if items else self.kept(node)
        if all(name in CONTAINERS for name in callees) and len(set(callees)) == 1:
            node = self.kept(node)
            node.func = self.scope.name(CONTAINERS[callees[0]])
            node.args = [_listed(argument) for argument in node.args]
            return node
        made = module_calls.expression(node, callees, self)  # type: ignore[arg-type]
        if made is not None:
            return made
        if callees == ["functools.partial"]:
            return self.partial(node)
        if _is_super(node.func):
            return self.kept(node) if getattr(node.func, "attr", "") == "forward" else self.base(node)
        found = self.of_tensor(node, callees)
        if found is not None:
            return found
        callees = [name.removeprefix("partial ") for name in callees]
        rows = {name: self.scope.row(name) for name in callees}
        for name, row in rows.items():
            if row is None and not self.is_theirs(name):
                raise CannotWrite(f"{name} has no row in the mapping table")
        if self.is_variable(node.func):
            return self.any_of(node, rows)
        row = next(iter(rows.values()))
        if row is None or len(rows) > 1:
            return self.any_of(node, rows)
        given = self.given(row, node, method=_is_method(callees))
        plain = plainly(row.torch, given, self.scope.name)
        if plain is not None:
            return plain
        call = written(row, given, self.scope.name)
        if callees[0] in self.scope.theirs:  # a class that is made as its base is
            call.func = self.visit(node.func)
        return begun(row, call, self.scope.name)

    def any_of(self, node: ast.Call, rows: Mapping[str, Row | None]) -> ast.Call:
        """A call of what a variable holds, now this and now that: written where it is one call for all of them."""
        calls = []
        lenient = [name for name, row in rows.items() if row is not None and takes_anything(row)]
        for name, row in rows.items():
            if name in lenient and len(lenient) < len(rows):
                continue  # it takes what the others are given
            copied = copy.deepcopy(node)
            if len(rows) > 1:  # the result is the same, and not every class takes it
                copied.keywords = [word for word in copied.keywords if word.arg != "inplace"]
            function = self.visit(copied.func)
            if row is None:
                calls.append(self.kept(copied))
            else:
                calls.append(through_variable(row, self.given(row, copied), self.scope.name, function))
        if len({ast.dump(call) for call in calls}) > 1:
            raise CannotWrite(f"{' and '.join(rows)} take these arguments each in its own way")
        return calls[0]

    def base(self, node: ast.Call) -> ast.Call:
        """`super().__init__(…)` of a class that comes from one of torch's."""
        row = self.scope.torch_base(self.owner)
        if row is None:
            raise CannotWrite(f"{ast.unparse(node.func)} of {self.owner}")
        call = written(row, self.given(row, node), self.scope.name)
        call.func = node.func
        return call

    def of_tensor(self, node: ast.Call, callees: list[str]) -> ast.expr | None:
        """A call of a method that MindSpore's tensors have under another name, or have as a fact."""
        if not is_method(callees) or not isinstance(node.func, ast.Attribute):
            return None
        named = {word.arg: word.value for word in node.keywords if word.arg is not None}
        given = (copy.deepcopy(item) for item in (node.func.value, *node.args, *named.values()))
        tensor, *items = map(self.item, given)
        count = len(node.args)
        starred = any(isinstance(item, ast.Starred) for item in node.args)
        return method(callees, Call(tensor, items[:count], dict(zip(named, items[count:], strict=True)), starred))

    def partial(self, node: ast.Call) -> ast.AST:
        """`partial` of a class of torch's: of the row's, with its arguments and torch's defaults."""
        kinds = self.facts.kinds(self.file, node.args[0])
        name = kinds[0].partition(" ")[2] if len(kinds) == 1 else ""
        row = self.scope.row(name) if kinds and kinds[0].startswith(("class ", "function ")) else None
        if row is None:
            return self.kept(node)
        rest = ast.Call(node.args[0], node.args[1:], node.keywords)
        found = held(row, self.given(row, rest), self.scope.name)
        if name in self.scope.theirs and isinstance(found, ast.Call):
            found.args[0] = self.visit(node.args[0])
        return found

    def is_variable(self, function: ast.expr) -> bool:
        """Whether what is called is the value of a variable, and no name that a module defines or imports."""
        if isinstance(function, ast.Name):
            return not self.scope.is_global(self.file, function.id)
        if isinstance(function, ast.Subscript):
            return True
        return isinstance(function, ast.Attribute) and not any(
            kind.startswith(("python ", "Tensor", "Parameter")) for kind in self.facts.kinds(self.file, function.value)
        )

    def missing(self, node: ast.expr | ast.stmt, text: str) -> ast.Call:
        """What stands where something could not be written: an error that says so, and a line of the report."""
        self.scope.problems.append(Problem(self.file, node.lineno, text))
        return ast.Call(self.scope.name(NOT_CONVERTED), [ast.Constant(text)], [])


def _is_super(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Call)
        and isinstance(function.value.func, ast.Name)
        and function.value.func.id == "super"
    )


def _called(node: ast.expr, method: str) -> ast.Call:
    return ast.Call(ast.Attribute(node, method, ast.Load()), [], [])


def _listed(node: ast.expr) -> ast.expr:
    """A generator as a list, which is what MindSpore's containers take."""
    if not isinstance(node, ast.GeneratorExp):
        return node
    return ast.copy_location(ast.ListComp(node.elt, node.generators), node)


def _is_method(callees: list[str]) -> bool:
    return all(name.startswith("torch.Tensor.") for name in callees)
