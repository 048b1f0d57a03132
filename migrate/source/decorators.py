"""What somebody's own decorators add to a function: nothing, or something that the new file would lack.

A decorator cannot simply be kept: where it is made with functools.wraps, MindSpore's compiler reads the source of the
function inside, and leaves out what is around it without a word (benchmarks/graph_decorators_mindspore.py).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from .facts import Function
from .sources import Sources


def of_python(node: ast.expr, sources: Sources, file: str) -> bool:
    """Whether a decorator is of Python's own library, such as `dataclass`; one that only enters a class or a function
    into somebody's register has no use in the new file."""
    name = sources.names(file).name(_itself(node))
    return name.partition(".")[0] in sys.stdlib_module_names


def adding(node: ast.FunctionDef, sources: Sources, file: str) -> Iterator[tuple[ast.expr, str]]:
    """The decorators of a function around which more happened than its call, and what to say of each."""
    for decorator in node.decorator_list:
        name = sources.names(file).name(_itself(decorator))
        if name and any(not _hands_on(wrapper, sources) for wrapper in _wrappers(name, sources)):
            said = f"the decorator {ast.unparse(decorator)} does more than call {node.name}"
            yield decorator, f"{said}: write that into {node.name}"


def _itself(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _wrappers(name: str, sources: Sources) -> Iterator[Function]:
    """What a decorator put around functions, as far as it ran."""
    for function in sources.functions.values():
        if function.qualified.startswith(f"{name}.<locals>."):
            yield function


def _hands_on(wrapper: Function, sources: Sources) -> bool:
    """Whether a wrapper only returns what its function gives for the same arguments."""
    node = sources.node(wrapper)
    if node is None:
        return False
    around = [n for n in ast.walk(sources.tree(wrapper.file)) if isinstance(n, ast.FunctionDef) and node in ast.walk(n)]
    functions = {item.arg for outer in around if outer is not node for item in outer.args.args}
    results: set[str] = set()
    for statement in node.body:
        ran = sources.facts.reached(wrapper.file, statement)
        if not ran or _says(statement) or _asks_in_vain(statement, wrapper.file, sources):
            continue
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Return) and isinstance(value, ast.Name) and value.id in results:
            return True
        if not isinstance(value, ast.Call) or not _same_arguments(value, node.args):
            return False
        if not isinstance(value.func, ast.Name) or value.func.id not in functions:
            return False  # something else, which takes the same arguments
        if isinstance(statement, ast.Return):
            return True
        if not isinstance(statement, ast.Assign) or not all(isinstance(to, ast.Name) for to in statement.targets):
            return False
        results.update(to.id for to in statement.targets if isinstance(to, ast.Name))
    return False


def _says(statement: ast.stmt) -> bool:
    """A docstring, or a call whose result nobody takes, as of a logger: what it changes nobody can tell."""
    return isinstance(statement, ast.Expr) and not (
        isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
        and statement.value.func.attr.endswith("_")  # in place
    )


def _asks_in_vain(statement: ast.stmt, file: str, sources: Sources) -> bool:
    """An `if` of which no branch ever ran."""
    if not isinstance(statement, ast.If):
        return False
    return not any(sources.facts.reached(file, inner) for inner in (*statement.body, *statement.orelse))


def _same_arguments(call: ast.Call, given: ast.arguments) -> bool:
    """Whether a call hands on what a function was given, all of it and in its order."""
    takes = [item.arg for item in (*given.posonlyargs, *given.args)]
    hands = [item.id for item in call.args if isinstance(item, ast.Name)]
    stars = [item.value.id for item in call.args if isinstance(item, ast.Starred) and isinstance(item.value, ast.Name)]
    words = {word.arg: word.value.id for word in call.keywords if isinstance(word.value, ast.Name)}
    named = {name: name for name in (*takes[len(hands) :], *(item.arg for item in given.kwonlyargs))}
    if given.kwarg is not None:
        named[None] = given.kwarg.arg  # type: ignore[index]
    return (
        len(hands) + len(stars) == len(call.args)
        and len(words) == len(call.keywords)
        and hands == takes[: len(hands)]
        and stars == ([given.vararg.arg] if given.vararg is not None else [])
        and words == named
    )
