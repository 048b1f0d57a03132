"""The functions and classes of a script: read where they are called, with what they are called with."""

from __future__ import annotations

import ast
from typing import Any

from . import names
from .calling import family_of_class
from .loops import RETURNED, End
from .noting import SURENESS
from .statements import Statements
from .values import (
    Argument,
    Class,
    Constant,
    Function,
    Instance,
    Items,
    Name,
    Origin,
    Pairs,
    Scope,
    Thing,
    Value,
    first,
    is_known,
    known,
    with_other,
    wrapped,
)

DEEPEST_CALL = 12
RUNS = 24  # of one function; presets and helpers are called a few times, each with other arguments


class Functions(Statements):
    """The part of the reader that knows functions and classes."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: dict[int, Function] = {}  # every function, in the order of reading
        self.instances: dict[int, Instance] = {}  # by class: the first object of it
        self.made: list[Instance] = []
        self.yields: dict[int, bool] = {}  # whether a function is a generator
        self.runs: dict[int, int] = {}
        self.returns: list[list[tuple[int, Value]]] = []
        self.depth = 0

    def _do_functiondef(self, node: Any, scope: Scope) -> None:
        owner = scope.names.get("__class__")
        around = scope.parent if owner is not None and scope.parent is not None else scope
        function = Function(node, around, owner=owner if isinstance(owner, Class) else None)
        for decorator in node.decorator_list:
            found = self.value(decorator, scope)
            if isinstance(found, Name) and names.is_library(found.name):
                self.note(found.name, decorator, scope, None)
        scope.names[node.name] = function
        self.functions.setdefault(id(node), function)

    _do_asyncfunctiondef = _do_functiondef

    def _do_classdef(self, node: ast.ClassDef, scope: Scope) -> None:
        inner = Scope(scope.source, scope)
        bases = []
        for base in node.bases:
            found = self.value(base, scope)
            bases.append(found)
            if isinstance(found, Name) and names.is_library(found.name):
                self.note(found.name, base, scope, None)
        inner.names["__class__"] = made = Class(node, inner, bases)
        scope.names[node.name] = made
        self._block(node.body, inner)

    def _do_return(self, node: ast.Return, scope: Scope) -> End:
        found = self.value(node.value, scope) if node.value else Constant(None)
        if self.returns:
            self.returns[-1].append((SURENESS.index(self.certainty), found))
        return RETURNED

    # functions and classes

    def handed_on(self, function: Function) -> None:
        """Read a function of the script that is an argument, if nobody has called it yet."""
        if id(function.node) not in self.runs:
            self.function(function, [])

    def function(self, function: Function, arguments: list[Argument]) -> Value:
        """What a function of the script gives for these arguments."""
        node = function.node
        runs = self.runs.get(id(node), 0)
        if self.depth >= DEEPEST_CALL or runs >= RUNS:
            return Value()
        self.runs[id(node)] = runs + 1
        scope = Scope(function.scope.source, function.scope)
        if function.owner is not None:
            scope.names["__class__"] = function.owner
        self._parameters(function, arguments, scope)
        if isinstance(node, ast.Lambda):
            return Value()  # it was read where it stands
        self.depth += 1
        self.returns.append([])
        self._block(node.body, scope)
        self.depth -= 1
        found = self.returns.pop()
        if id(node) not in self.yields:
            self.yields[id(node)] = any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in ast.walk(node))
        if self.yields[id(node)]:
            loaders = [a.value for a in arguments if isinstance(a.value, Thing) and a.value.family == names.LOADER]
            return first(loaders)
        best = min((rank for rank, _ in found), default=0)
        rest = first([value for rank, value in found if rank != best])
        return with_other(first([value for rank, value in found if rank == best]), rest)

    def _parameters(self, function: Function, arguments: list[Argument], scope: Scope) -> None:
        parameters = function.node.args
        plain = [*parameters.posonlyargs, *parameters.args]
        everything = [*plain, *parameters.kwonlyargs]
        is_forward = getattr(function.node, "name", "") == "forward"
        for parameter in everything:
            scope.names[parameter.arg] = self._parameter(parameter, function, is_forward)
        defaults = list(zip(plain[::-1], parameters.defaults[::-1], strict=False))
        defaults += [
            (p, d) for p, d in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True) if d is not None
        ]
        for parameter, default in defaults:
            value = self.value(default, function.scope)
            self.note_named(value, default, function.scope)
            if is_known(value) and arguments:
                text = f"{parameter.arg}={function.scope.source.text(default)} by default"
                origin = (Origin(scope.source.shown, default.lineno, text),)
                scope.names[parameter.arg] = wrapped(known(value), origin)
            elif type(value) is not Value and arguments:
                scope.names[parameter.arg] = value
        if function.receiver is not None and plain and not _is_static(function.node):
            scope.names[plain[0].arg] = function.receiver
            plain = plain[1:]
        if parameters.vararg:
            scope.names[parameters.vararg.arg] = Items([], closed=False)
        if parameters.kwarg:
            scope.names[parameters.kwarg.arg] = Pairs({})
        by_position = [argument for argument in arguments if argument.name is None]
        for parameter, argument in zip(plain, by_position, strict=False):
            scope.names[parameter.arg] = argument.value
        known_names = {parameter.arg for parameter in everything}
        for argument in arguments:
            if argument.name in known_names:
                scope.names[argument.name] = argument.value

    def _parameter(self, parameter: ast.arg, function: Function, is_forward: bool) -> Value:
        """What a parameter is when nobody gave it: by its annotation, in forward a tensor, else by its name."""
        if parameter.annotation is not None:
            found = self.value(parameter.annotation, function.scope)
            if isinstance(found, Name) and names.is_library(found.name):
                return Thing(names.BASES.get(found.name) or names.family_of(found.name), name=found.name)
        if is_forward and function.owner is not None and family_of_class(function.owner) == names.MODULE:
            return Thing(names.TENSOR)
        return Thing(names.habit(parameter.arg))

    def instance(self, of: Class, arguments: list[Argument], node: ast.Call, scope: Scope) -> Value:
        """An object of one of the script's classes."""
        made = Instance(of, arguments=arguments, node=node, certainty=self.certainty, source=scope.source)
        self.spent += len(of.scope.names) // 16
        for name, value in of.scope.names.items():  # a class of settings; its own fields may be given
            if not isinstance(value, (Function, Class)):
                made.attributes[name] = value
        self.instances.setdefault(id(of.node), made)
        self.made.append(made)
        start = of.find("__init__")
        if isinstance(start, Function):
            self.function(Function(start.node, start.scope, made, start.owner), arguments)
        else:
            made.attributes |= {argument.name: argument.value for argument in arguments if argument.name}
        return made


def _is_static(node: Any) -> bool:
    return any(getattr(decorator, "id", "") == "staticmethod" for decorator in getattr(node, "decorator_list", ()))
