"""The functions of a generated file by name, and the calls of them, also of those that stand in variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from .context import receivers


class Function:
    """A function or method, and where its parameters stand in a call, `self` aside."""

    def __init__(self, name: str, node: ast.FunctionDef, *, method: bool) -> None:
        self.name, self.node = name, node
        self.is_static = any(ast.unparse(item) == "staticmethod" for item in node.decorator_list)
        self.first = 1 if method and not self.is_static else 0

    @property
    def positions(self) -> dict[str, int]:
        """Parameter -> its place among the positional arguments."""
        arguments = [*self.node.args.posonlyargs, *self.node.args.args][self.first :]
        return {argument.arg: index for index, argument in enumerate(arguments)}

    def at(self, index: int) -> str:
        """The parameter that a positional argument goes to; empty where it goes to `*args`."""
        return next((name for name, place in self.positions.items() if place == index), "")

    def drop(self, parameter: str) -> None:
        """Take a parameter out of the definition."""
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
    """All named parameters, `self` aside."""
    return [*function.positions, *(argument.arg for argument in function.node.args.kwonlyargs)]


def local_names(function: ast.AST) -> Iterator[str]:
    """The parameters, variables and functions inside a function, and inside those."""
    for inner in ast.walk(function):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id
        elif isinstance(inner, ast.arg):
            yield inner.arg
        elif isinstance(inner, ast.FunctionDef):
            yield inner.name


def short(name: str) -> str:
    """The last part of a qualified name."""
    return name.rpartition(".")[2]


class Calls:
    """The functions of `definitions`, and the calls of them there and in `more`.

    A call says by its `receivers` which of them it may call.
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
        """The calls of a function, and how many arguments of each are not for it, as the first of `partial`."""
        return self._found.get(name, [])

    def is_handed_on(self, function: Function) -> bool:
        """Whether a function is a value somewhere, so that not all of its calls are known."""
        name = function.node.name
        if name == "__init__":
            return False
        called = {id(node.func) for tree in self.trees for node in ast.walk(tree) if isinstance(node, ast.Call)}
        return any(
            id(node) not in called and name == (node.id if isinstance(node, ast.Name) else node.attr)
            for tree in self.trees
            for node in ast.walk(tree)
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        )

    def may_give(self, function: Function, parameter: str) -> bool:
        """Whether a call that is not known to be one of this function could give it something for a parameter."""
        given = function.node.args
        plain = [item.arg for item in (*given.posonlyargs, *given.args)]
        with_default = plain[len(plain) - len(given.defaults) :]
        with_default += [item.arg for item, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value]
        if parameter not in with_default:
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


def none_anyway(takes: ast.arguments, name: str) -> bool:
    """Whether a parameter is None where nothing is given for it, or is one of `**kwargs`."""
    plain = [*takes.posonlyargs, *takes.args]
    defaults = dict(zip(reversed([item.arg for item in plain]), reversed(takes.defaults), strict=False))
    words = [item.arg for item in takes.kwonlyargs]
    defaults |= {key: default for key, default in zip(words, takes.kw_defaults, strict=True) if default}
    if name not in {*words, *(item.arg for item in plain)}:
        return takes.kwarg is not None
    default = defaults.get(name)
    return isinstance(default, ast.Constant) and default.value is None
