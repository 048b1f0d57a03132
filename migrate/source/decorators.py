"""What somebody's own decorators add to a function: nothing, or something that the new file would lack.

A decorator cannot simply be kept: where it is made with functools.wraps, MindSpore's compiler reads the source of the
function inside, and leaves out what is around it without a word (benchmarks/graph_decorators_mindspore.py).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from .by_inputs import comment
from .facts import Function
from .sources import Sources

# methods and functions that change what they are called on
CHANGING = {
    *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault"),
    *("sort", "update", "setattr", "delattr", "__setattr__", "__delattr__", "__setitem__", "__delitem__"),
}
MAKING = {"bool", "dict", "float", "frozenset", "int", "len", "list", "repr", "set", "sorted", "str", "tuple"}
NEW = (ast.Constant, ast.Dict, ast.DictComp, ast.JoinedStr, ast.List, ast.ListComp, ast.Set, ast.SetComp)
NUMBERS = {"bool", "float", "int", "str"}


def of_python(node: ast.expr, sources: Sources, file: str) -> bool:
    """Whether a decorator is of Python's own library, such as `dataclass`; one that only enters a class or a function
    into somebody's register has no use in the new file."""
    name = sources.names(file).name(_itself(node))
    return name.partition(".")[0] in sys.stdlib_module_names


def adding(node: ast.FunctionDef, sources: Sources, file: str) -> Iterator[tuple[ast.expr, str]]:
    """The decorators of a function around which more happened than its call, and what to say of each."""
    for decorator, wrappers in _decorators(node, sources, file):
        if not all(_hands_on(wrapper, node, sources) for wrapper in wrappers):
            said = f"the decorator {ast.unparse(decorator)} does more than call {node.name}"
            yield decorator, f"{said}: write that into {node.name}"


def notes(node: ast.FunctionDef, sources: Sources, file: str) -> Iterator[ast.stmt]:
    """Comments on the decorators that only called a function with the example inputs, and do more with others, such as
    an argument by an old name."""
    for decorator, wrappers in _decorators(node, sources, file):
        only_called = all(_hands_on(wrapper, node, sources) for wrapper in wrappers)
        if only_called and not all(_hands_on(wrapper, node, sources, everything=True) for wrapper in wrappers):
            text = " ".join(ast.unparse(decorator).split())
            yield comment(f"never with the example inputs: what {text} does besides calling {node.name}")


def _decorators(node: ast.FunctionDef, sources: Sources, file: str) -> Iterator[tuple[ast.expr, list[Function]]]:
    """The decorators of a function, and what each put around functions, as far as it ran."""
    for decorator in node.decorator_list:
        name = sources.names(file).name(_itself(decorator))
        if name:
            yield decorator, [f for f in sources.facts.functions if f.qualified.startswith(f"{name}.<locals>.")]


def _itself(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _hands_on(wrapper: Function, decorated: ast.FunctionDef, sources: Sources, *, everything: bool = False) -> bool:
    """Whether a wrapper only returns what its function gives for the same arguments.

    everything: also by the statements that did not run.
    """
    node = sources.node(wrapper)
    if node is None:
        return False
    around = [n for n in ast.walk(sources.tree(wrapper.file)) if isinstance(n, ast.FunctionDef) and node in ast.walk(n)]
    functions = {item.arg for outer in around if outer is not node for item in outer.args.args}
    return (
        _same_defaults(node.args, decorated.args)
        and _Wrapper(node, wrapper.file, functions, sources, everything).hands_on()
    )


class _Body:
    """What the statements of a function change, of what it was given and of what it got from others."""

    def __init__(self, node: ast.FunctionDef, file: str, sources: Sources, everything: bool, seen: set[str]) -> None:
        self.node, self.file, self.sources, self.everything, self.seen = node, file, sources, everything, seen
        given = node.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        self.given = {argument.arg for argument in arguments if argument is not None}
        made: dict[str, list[ast.AST | None]] = {}
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Assign, ast.AnnAssign)):
                for target in inner.targets if isinstance(inner, ast.Assign) else [inner.target]:
                    made.setdefault(ast.unparse(target), []).append(inner.value)
        stored = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        new = {name for name in stored if len(made.get(name, ())) == stored.count(name) and all(map(_new, made[name]))}
        self.names = self.given | {*stored}
        self.others = self.names - new  # of what may be somebody else's too
        texts = [inner for inner in ast.walk(node) if isinstance(inner, ast.JoinedStr)]
        self.in_texts = {inner for text in texts for inner in ast.walk(text)}  # of which nothing is reported

    def ran(self, statement: ast.stmt) -> bool:
        """Whether a statement is judged."""
        return self.everything or self.sources.facts.reached(self.file, statement)

    def only_looks(self) -> bool:
        """Whether nothing in the function changes what it was given."""
        statements = (n for n in ast.walk(self.node) if isinstance(n, ast.stmt) and n is not self.node and self.ran(n))
        return all(map(self.quiet, statements))

    def quiet(self, statement: ast.stmt) -> bool:
        """Whether a statement, without those inside, changes nothing but variables."""
        if isinstance(statement, ast.Delete):
            return False
        if isinstance(statement, ast.AugAssign):
            kinds = self.sources.facts.kinds(self.file, statement.target)
            if not isinstance(statement.target, ast.Name) or not kinds or not NUMBERS.issuperset(kinds):
                return False
        inside = (ast.stmt, ast.arguments, ast.excepthandler)
        return all(self.computes(n) for n in ast.iter_child_nodes(statement) if not isinstance(n, inside))

    def computes(self, node: ast.AST) -> bool:
        """Whether an expression changes nothing."""
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                return False
            if isinstance(inner, (ast.Attribute, ast.Subscript)) and not isinstance(inner.ctx, ast.Load):
                return False
            if isinstance(inner, ast.Call) and not self._harmless(inner):
                return False
        return True

    def _harmless(self, call: ast.Call) -> bool:
        """Whether a call changes nothing that the function was given, or got from others."""
        facts = self.sources.facts
        names = facts.callees(self.file, call)
        if not (names or facts.kinds(self.file, call) or self.everything or call in self.in_texts):
            return True  # it did not run
        on = call.func.value if isinstance(call.func, ast.Attribute) else None
        if on is None or any(kind.startswith("class ") for kind in facts.kinds(self.file, on)):  # `dict.pop(kwargs, …)`
            on = call.args[0] if call.args else None
        gets = [call.func, *call.args, *(word.value for word in call.keywords)]
        for name in names or [ast.unparse(call.func)]:
            last = name.rpartition(".")[2]
            in_place = last.endswith("_") and not last.endswith("__")
            if in_place or last.startswith("set_") or last in ("seed", "manual_seed") or name.startswith("module "):
                return False
            mine = self.others if isinstance(on, ast.Name) else self.names
            if last in CHANGING and on is not None and _root(on) in mine:
                return False
            if any(map(self._is_given, gets)) and not self._looks(name):
                return False
        return True

    def _is_given(self, node: ast.AST) -> bool:
        """Whether an expression names something of this function's, which a function then gets."""
        return any(isinstance(inner, ast.Name) and inner.id in self.names for inner in ast.walk(node))

    def _looks(self, name: str) -> bool:
        """Whether a function of theirs changes nothing of what it gets; what is known of no function counts as such."""
        name = f"{name.removeprefix('object ')}.__call__" if name.startswith("object ") else name
        theirs = self.sources.functions.get(name.removeprefix("partial "))
        if theirs is None or name in self.seen:
            return True
        node = self.sources.node(theirs)
        inside = {*self.seen, name}
        return node is not None and _Body(node, theirs.file, self.sources, self.everything, inside).only_looks()


class _Wrapper(_Body):
    """What a decorator put around a function; functions: what its own name may be there."""

    def __init__(
        self, node: ast.FunctionDef, file: str, functions: set[str], sources: Sources, everything: bool
    ) -> None:
        super().__init__(node, file, sources, everything, set())
        self.functions = functions
        outer = [n.names for n in ast.walk(node) if isinstance(n, (ast.Global, ast.Nonlocal))]
        self.kept = functions.union(self.given, *outer)  # names that nothing else may stand for
        self.results: set[str] = set()
        self.variables: set[str] = set()
        self.returns = False

    def hands_on(self) -> bool:
        """Whether it only returns what the function gives for the same arguments."""
        return self._block(self.node.body) and self.returns and not self.results & self.variables

    def _block(self, body: list[ast.stmt]) -> bool:
        return all(self._statement(statement) for statement in body if self.ran(statement))

    def _statement(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.If):
            return self.computes(statement.test) and self._block(statement.body) and self._block(statement.orelse)
        if isinstance(statement, ast.Return):
            self.returns = True
            result = isinstance(statement.value, ast.Name) and statement.value.id in self.results
            return result or self._calls_it(statement.value)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            if len(names) != len(targets) or names & self.kept:
                return False
            if self._calls_it(statement.value):
                self.results |= names
                return True
            self.variables |= names
            return self.quiet(statement)
        if isinstance(statement, ast.AugAssign):
            name = ast.unparse(statement.target)
            self.variables.add(name)
            return name not in self.kept and self.quiet(statement)
        plain = (ast.Assert, ast.Expr, ast.Global, ast.Nonlocal, ast.Pass, ast.Raise)
        return isinstance(statement, plain) and self.quiet(statement)

    def _calls_it(self, value: ast.expr | None) -> bool:
        """Whether it is the function's call for the same arguments, which no other went before."""
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) or self.results:
            return False
        return value.func.id in self.functions and _same_arguments(value, self.node.args)

    def _harmless(self, call: ast.Call) -> bool:
        own = isinstance(call.func, ast.Name) and call.func.id in self.functions  # once more, or for something else
        return not own and super()._harmless(call)


def _new(value: ast.AST | None) -> bool:
    """Whether a value is one that nothing else holds."""
    makes = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in MAKING
    return value is None or makes or isinstance(value, NEW)


def _root(node: ast.expr) -> str:
    """The variable that an expression is read from, `args` of `args[0].weight`; empty for what is made anew."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func
        elif isinstance(node, ast.Call) and node.args and not _new(node):  # `vars(module)`
            node = node.args[0]
        else:
            return ""
    return node.id


def _same_defaults(wrapper: ast.arguments, decorated: ast.arguments) -> bool:
    """Whether what a wrapper gives where it is given nothing is what its function would take."""
    ours, theirs = dict(_defaults(wrapper)), dict(_defaults(decorated))
    by_name = {name: text for (_, name), text in theirs.items()}
    by_place = {place: text for (place, _), text in theirs.items()}
    return all(by_name.get(name, by_place.get(place)) == text for (place, name), text in ours.items())


def _defaults(given: ast.arguments) -> Iterator[tuple[tuple[int, str], str]]:
    """The defaults by the place of an argument, -1 for one that is given by its name alone, and its name."""
    places = [*enumerate([*given.posonlyargs, *given.args])]
    for (place, item), default in zip(reversed(places), reversed(given.defaults), strict=False):
        yield (place, item.arg), ast.unparse(default)
    for item, word in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if word is not None:
            yield (-1, item.arg), ast.unparse(word)


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
