"""What nothing uses once a model is specialised goes: variables, then parameters, and what calls gave for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from .kwargs import taken
from .purity import has_no_effect
from .signatures import Calls, Function, parameters, short


def remove_unused(definitions: Mapping[str, ast.stmt], more: Sequence[ast.AST]) -> dict[str, set[str]]:
    """Take what is unused out of the definitions, and out of `more`, which calls them.

    Returns the parameters that went, by the name of the class or function. What a `forward` takes stays, and so does
    every argument whose computing may do something else too.
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
    names = (node for node in ast.walk(function) if isinstance(node, ast.Name))
    read = {node.id for node in names if not isinstance(node.ctx, ast.Store)}
    read |= {node.target.id for node in ast.walk(function) if _adds(node)}  # type: ignore[attr-defined]
    outer = (node.names for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)))
    return _sweep(function, read.union(*outer), taken(function))


def _adds(node: ast.AST) -> bool:
    return isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)


def _sweep(node: ast.AST, read: set[str], dead: Sequence[ast.stmt]) -> bool:
    changed = False
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if not isinstance(block, list):
            continue
        for statement in list(block):
            changed |= _sweep(statement, read, dead)
            if statement in dead or _is_dead(statement, read):
                block.remove(statement)
                changed = True
            elif isinstance(statement, ast.If) and not statement.body:  # its test may do something
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
            and has_no_effect(statement.test)
        )
    else:
        return False
    if not isinstance(target, ast.Name):
        return False
    itself = isinstance(value, ast.Name) and value.id == target.id  # x = x.to(device)
    return itself or (target.id not in read and has_no_effect(value))


def _removable(calls: Calls) -> set[tuple[str, str]]:
    """The parameters that no body reads, and that every call can do without."""
    found = {(function.name, name) for function in calls.functions.values() for name in _unread(function, calls)}
    while True:
        kept = {pair for pair in found if not _needed(pair, found, calls)}
        if kept == found:
            return found
        found = kept


def _unread(function: Function, calls: Calls) -> Iterator[str]:
    last = short(function.name)
    if last == "construct" or (last.startswith("__") and last != "__init__"):
        return
    if not calls.of(function.name):
        return
    handed_on = calls.is_handed_on(function)  # then others may call it, with what some call of the file gives
    if function.node.decorator_list and not function.is_static:
        return
    read = {node.id for part in function.node.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    for name in parameters(function):
        if name not in read and not (handed_on and calls.may_give(function, name)):
            yield name
    if not handed_on and function.node.args.kwarg is not None and function.node.args.kwarg.arg not in read:
        yield f"**{function.node.args.kwarg.arg}"


def _needed(pair: tuple[str, str], found: set[tuple[str, str]], calls: Calls) -> bool:
    """Whether some call cannot do without a parameter."""
    name, parameter = pair
    function = calls.functions[name]
    for call, first in calls.of(name):
        given = call.args[first:]
        if any(isinstance(item, ast.Starred) for item in given) or any(word.arg is None for word in call.keywords):
            return True
        others = [calls.functions[other] for other in calls.targets(call)]
        if parameter.startswith("**"):
            if any(word.arg not in parameters(function) for word in call.keywords):
                return True
            continue
        index = function.positions.get(parameter, len(given))
        if index < len(given):
            same = all((other.name, other.at(index)) in found for other in others)
            if not same or (first and call.args[1:first]) or not has_no_effect(given[index]):
                return True
        for word in call.keywords:
            if word.arg == parameter:
                same = all((other.name, parameter) in found for other in others)
                if not same or not has_no_effect(word.value):
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
