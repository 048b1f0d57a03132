"""Where each value that a script's statements read was written: definitions of names and attributes, and their readers.

Branches are merged, loops are read twice, an enclosing scope's names count with all definitions: never too few."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...printable import shortened
from .. import library_names as families
from ..read_script.abstract_values import (
    Constant,
    LibraryName,
    LibraryObject,
    ParsedArguments,
    ScriptClass,
    ScriptFunction,
    ScriptModule,
    ScriptObject,
    Value,
    known,
)
from ..read_script.interpreter import CERTAINTIES, LONGEST, OPTION, Interpreter, is_property
from ..read_script.syntax import (
    OF_LOGS,
    absolute,
    arguments_for,
    changed_arguments,
    cost,
    head_of,
    of_a_file,
    outer_names,
    parts_of,
    root,
    written_names,
)
from ..source_files import ScriptFile

# how a definition binds its value; inner: a name in a comprehension or a lambda, which is an element of it
IS, EACH, ADDS, GIVEN, NAMED, INNER = "is", "each", "adds", "given", "named", "inner"
BUDGET, WIDEST = 25_000, 200_000  # statements read, and names copied; nodes times calls of one statement
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NO_METHODS = (ParsedArguments, LibraryName, ScriptModule, ScriptObject)  # what these have is no list's method
MOST_BEHIND = 500  # expressions that are followed behind one
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPOUND = (*LOOPS, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match, *FUNCTIONS, ast.ClassDef)


@dataclass(eq=False)
class Statement:
    """A simple statement, or the head of a compound one, with the statements around it."""

    node: ast.stmt
    source: ScriptFile
    function: ast.AST | None  # that it is in
    owner: ast.ClassDef | None  # the class of that function, or of the statement
    around: tuple[Statement, ...] = ()  # the heads around it in its function, outermost first
    defines: list[Definition] = field(default_factory=list)

    @property
    def place(self) -> tuple[str, int]:
        """File and line."""
        return self.source.shown, self.node.lineno

    def stands_at(self, places: set[tuple[str, int]]) -> bool:
        """Whether one of its lines is among these."""
        file, first = self.place
        last = max((one.end_lineno or first for one in self.expressions), default=first)
        return any((file, line) in places for line in range(first, last + 1))

    @cached_property
    def expressions(self) -> list[ast.expr]:
        """Its own expressions: of a compound statement, those of its head."""
        return list(head_of(self.node))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of these, kept since they are needed many times, and a head may be as large as a file."""
        return [node for one in self.expressions for node in ast.walk(one)]

    @cached_property
    def calls(self) -> list[ast.Call]:
        """The calls among these nodes."""
        return [node for node in self.nodes if isinstance(node, ast.Call)]

    @property
    def alone(self) -> ast.expr | None:
        """The expression, where the statement is nothing else."""
        return self.node.value if isinstance(self.node, ast.Expr) else None

    @property
    def text(self) -> str:
        """Its source; of a compound statement, its head."""
        if isinstance(self.node, FUNCTIONS):
            marks = "".join(f"@{self.source.text(one)} " for one in self.node.decorator_list)
            return f"{marks}def {self.node.name}({ast.unparse(self.node.args)}):"
        if not isinstance(self.node, COMPOUND) or isinstance(self.node, (*FUNCTIONS, ast.ClassDef)):
            return self.source.text(self.node)
        words = {ast.If: "if", ast.While: "while", ast.With: "with", ast.AsyncWith: "with", ast.Match: "match"}
        if isinstance(self.node, (ast.For, ast.AsyncFor)):
            return f"for {self.source.text(self.node.target)} in {self.source.text(self.node.iter)}:"
        if isinstance(self.node, (ast.With, ast.AsyncWith)):
            parts = (filter(None, (item.context_expr, item.optional_vars)) for item in self.node.items)
            return f"with {', '.join(' as '.join(map(self.source.text, two)) for two in parts)}:"
        inner = ", ".join(map(self.source.text, self.expressions))
        return f"{words.get(type(self.node), 'try')} {inner}".rstrip() + ":"


@dataclass(eq=False)
class Definition:
    """One binding of a name or attribute: the value, how it is bound, and its position in an unpacked value."""

    statement: Statement
    value: ast.expr | None
    way: str
    path: tuple[int, ...] = ()
    parameter: ast.arg | None = None


Names = dict[str, frozenset[Definition]]
Where = tuple[Any, ...]  # the file, function, class and heads that a statement is in


@dataclass(eq=False)
class ScopeNames:
    """All definitions of one scope's names, whatever their order, and the scope around it."""

    parent: ScopeNames | None
    found: dict[str, list[Definition]] = field(default_factory=dict)

    def find(self, name: str) -> list[Definition]:
        """The definitions in the nearest scope that has any, or those of the file, which a function may give it."""
        scope = self
        while name not in scope.found and scope.parent is not None:
            scope = scope.parent
        return scope.found.setdefault(name, [])


class Flow:
    """The statements of a script and the files read with it, and the definitions behind every name that they read.

    passed: gives the reason why a call of a qualified name, such as print, changes nothing, or None.
    """

    def __init__(self, interpreter: Interpreter, passed: Callable[[str], str | None]) -> None:
        self.interpreter = interpreter
        self._never = interpreter.never  # these are left out
        self._reason = passed
        self.statements: list[Statement] = []
        self.of: dict[int, Statement] = {}  # an expression's node -> its statement
        self.reads: dict[int, frozenset[Definition]] = {}  # a name's node -> its possible definitions
        self.attributes: dict[str, list[Definition]] = {}
        self.returns: dict[int, list[tuple[Statement, ast.expr]]] = {}  # a function -> what it returns
        self.yields: dict[int, list[tuple[Statement, ast.expr]]] = {}  # a generator -> what it gives in each round
        self.calls: dict[int, list[tuple[Statement, ast.Call, bool]]] = {}  # a function -> its calls; if of an object
        self.spent = 0  # of the budget
        self.ended: tuple[str, int] | None = None  # where there was too much to follow
        self._known: dict[int, Statement] = {}
        self._inner: dict[int, Definition] = {}  # by the node that binds the name
        self._changed, self.written_by = dict[int, set[str]](), dict[int, set[str]]()  # by function: it may; it does
        self._late: list[tuple[ast.Name, ScopeNames]] = []
        self.outside: list[tuple[str, ScopeNames, Definition]] = []  # changes of names that are defined elsewhere
        self.rebinds: set[int] = set()  # the statements (their ids) that give such a name another value
        self._modules: dict[str, ScopeNames] = {}
        self._named: dict[int, tuple[str, bool]] = {}  # a file's tree -> its name, and whether it is a package's
        trees: dict[int, tuple[ScriptFile, list[str]]] = {}
        for name, module in interpreter.files.items():
            trees.setdefault(id(module.scope.source.tree), (module.scope.source, []))[1].append(name)
        for source, called in reversed(trees.values()):  # imported files first
            scope = ScopeNames(None)
            self._modules.update(dict.fromkeys(called, scope))
            self._named[id(source.tree)] = called[0], source.path.name == "__init__.py"
            self._block(source.tree.body, {}, scope, (source, None, None, ()), top="__main__" not in called)
        self.outer = {id(one.statement) for *_, one in self.outside}  # the statements of these
        self._changed_outside()
        for node, scope in self._late:
            self.spent += len(scope.find(node.id)) // 16
            if self.spent > BUDGET:
                break
            self.reads[id(node)] = self.reads.get(id(node), frozenset()) | frozenset(scope.find(node.id))
        self.inside_of: dict[int, list[Statement]] = {}  # a function, or a class
        for statement in self.statements:
            self._note_calls(statement)
            for holder in (statement.owner, statement.function):
                self.inside_of.setdefault(id(holder), []).append(statement)

    def _changed_outside(self) -> None:
        """Add the changes by functions that declare a name `global` to what reads it in its own scope."""
        for name, scope, definition in self.outside:
            scope.find(name).append(definition)
        changes = {name: frozenset(scope.find(name)) for name, scope, _ in self.outside}
        for node in (node for s in self.statements for node in s.nodes if isinstance(node, ast.Name)):
            if (known := self.reads.get(id(node), frozenset())) & changes.get(node.id, frozenset()):
                self.reads[id(node)] = known | changes[node.id]

    def function_of(self, call: ast.Call) -> ast.AST | None:
        """The script's own function or class that a call calls, where the interpreter knew it."""
        found = self.interpreter.values.get(id(call.func), (0, None))[1]
        return found.node if isinstance(found, (ScriptFunction, ScriptClass)) else None

    def doubtful(self, statement: Statement, seen: set[int]) -> bool:
        """Whether a statement depends on a condition that was only read for a loop's first round: a counter changes."""
        heads = (head for head in statement.around if isinstance(head.node, (ast.If, ast.While)))
        if any(self._may_run(head) and self.varies(head) for head in heads):
            return True
        if statement.function is None or id(statement.function) in seen:
            return False
        callers = self.calls.get(id(statement.function), [])
        return any(self.doubtful(caller, seen | {id(statement.function)}) for caller, _, _ in callers)

    def conditions(
        self, of: Statement, all_: bool = False, seen: tuple[int, ...] = (), by_call: bool = False
    ) -> Iterator[tuple[str, str]]:
        """The conditions around a statement, and around the only call of its function, whose value may change during a
        run, each with its negation; all_: every condition around the statement; by_call: also those that one call of
        its function fulfils and another does not."""
        callers = self.calls.get(id(of.function), []) if id(of.function) not in seen else []
        if len(callers) == 1:
            yield from self.conditions(callers[0][0], seen=(*seen, id(of.function)))
        for head in of.around:
            either = by_call and isinstance(head.node, ast.If) and id(head.node.test) in self.interpreter.varied
            if isinstance(head.node, ast.If) and (all_ or either or self.varies(head)):
                text = shortened(head.source.text(head.node.test), LONGEST)
                other = any(node is of.node for part in head.node.orelse for node in ast.walk(part))
                yield (f"not ({text})", text) if other else (text, f"not ({text})")

    def varies(self, head: Statement) -> bool:
        """Whether a condition reads a loop's variable, a name assigned in several places, or one set in a round."""
        loops = {id(outer) for outer in head.around if isinstance(outer.node, LOOPS)}
        moduli = (n for n in head.nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod))
        ones = (node for node in moduli if known(self.value(node.right) or Value()) == 1)
        always = {id(part) for node in ones for part in ast.walk(node)}  # step % 1 is 0
        for node in (one for one in head.nodes if id(one) not in always):
            found = self.written(node)
            each = any(one.way == EACH and id(one.statement) in loops for one in found)  # the loop's own variable
            ways = [d for d in found if d.way in (IS, ADDS) and d.value is not None and self._may_run(d.statement)]
            anew = (one.value for one in ways if loops & {id(outer) for outer in one.statement.around})
            called = any(isinstance(part, ast.Call) for value in anew if value for part in ast.walk(value))
            of = (one.statement for one in ways)  # several classes' fields of a name are one
            if each or called or len({not (s.owner and s.function is None) and id(s) for s in of}) > 1:
                return True
        return False

    def _may_run(self, statement: Statement) -> bool:
        return CERTAINTIES[self.interpreter.reached.get(id(statement.node), (0, ()))[0]] != OPTION

    def classes(self) -> Iterator[ast.ClassDef]:
        """The classes of the script."""
        yield from (s.node for s in self.statements if isinstance(s.node, ast.ClassDef))

    def class_of(self, node: ast.ClassDef) -> ScriptClass | None:
        """The class that a definition makes, where the interpreter knew it."""
        made = self.interpreter.instances.get(id(node))
        if made is not None and made.of.node is node:
            return made.of
        values = (value for module in self.interpreter.files.values() for value in module.scope.names.values())
        return next((value for value in values if isinstance(value, ScriptClass) and value.node is node), None)

    def value(self, node: ast.expr) -> Value | None:
        """The interpreter's value of an expression."""
        return self.interpreter.values.get(id(node), (0, None))[1]

    def arguments_of(self, definition: Definition) -> list[ast.expr]:
        """The arguments for a function's parameter in the calls that were read, and its default."""
        function = definition.statement.node
        if (parameter := definition.parameter) is None or not isinstance(function, FUNCTIONS):
            return []
        plain = [*function.args.posonlyargs, *function.args.args]
        found: list[ast.expr] = []
        for _, call, bound in self.calls.get(id(function), []):
            names = plain[1:] if bound else plain
            named = next((k.value for k in call.keywords if k.arg == parameter.arg), None)
            at = names.index(parameter) if parameter in names else -1
            if named is not None:
                found.append(named)
            elif any(isinstance(argument, ast.Starred) for argument in call.args[: at + 1]):
                found += [argument.value for argument in call.args if isinstance(argument, ast.Starred)]
            elif 0 <= at < len(call.args):
                found.append(call.args[at])
            elif parameter is function.args.vararg:
                found += call.args
            elif parameter is function.args.kwarg:
                found += [k.value for k in call.keywords]
        return found

    def behind(self, node: ast.expr, follows: Callable[[ast.expr], bool] = lambda _: True) -> Iterator[ast.expr]:
        """An expression, and all that its value may come from, the nearest first: definitions of the names and
        attributes in it, arguments for parameters, and results of the functions that it calls; follows: whether the
        parts of an expression count."""
        waiting, seen = [node], {id(node)}
        while waiting and len(seen) < MOST_BEHIND:
            expression = waiting.pop(0)
            yield expression
            found: list[ast.expr | None] = []
            for part in parts_of(expression, follows):
                if isinstance(part, ast.Call):
                    found += [given for _, given in self.given_by(self.function_of(part))]
                for definition in self.written(part):
                    found += self.arguments_of(definition) if definition.way == GIVEN else [definition.value]
            new = [one for one in found if one is not None and id(one) not in seen]
            seen |= {id(one) for one in new}
            waiting += sorted({id(one): one for one in new}.values(), key=lambda one: one.lineno)

    def written(self, node: ast.AST) -> Iterable[Definition]:
        """The definitions of the value that is read here: of a name, or of an attribute of any object."""
        if isinstance(node, ast.Name):
            return self.reads.get(id(node), ())
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            return self.attributes.get(node.attr, ())
        return ()

    @cached_property
    def stores(self) -> list[tuple[Statement, ast.expr]]:
        """The statements that set an attribute, each with the expression of its object."""
        each = ((s, t) for s in self.statements for t in getattr(s.node, "targets", [getattr(s.node, "target", None)]))
        return [(s, t.value) for s, t in each if isinstance(t, ast.Attribute)]

    @cached_property
    def options(self) -> list[Statement]:
        """The statements that write an argument of the command line."""
        return [s for s, of in self.stores if isinstance(self.value(of), ParsedArguments)]

    def given_by(self, function: ast.AST | None) -> list[tuple[Statement, ast.expr]]:
        """What a function returns, or gives in each round."""
        return [*self.returns.get(id(function), ()), *self.yields.get(id(function), ())]

    def _note_calls(self, statement: Statement) -> None:
        self.of.update((id(node), statement) for node in statement.nodes)
        given = [one.value for one in statement.nodes if isinstance(one, (ast.Yield, ast.YieldFrom)) and one.value]
        self.yields.setdefault(id(statement.function), []).extend((statement, one) for one in given)
        for node in statement.calls:
            closure = self.value(node.args[0]) if getattr(node.func, "attr", "") == "step" and node.args else None
            found = closure if isinstance(closure, ScriptFunction) else self.value(node.func)
            start = found.find("__init__") if isinstance(found, ScriptClass) else found
            if isinstance(start, ScriptFunction):
                bound = start is not found or start.receiver is not None
                self.calls.setdefault(id(start.node), []).append((statement, node, bound))

    def _block(self, body: list[ast.stmt], names: Names, scope: ScopeNames, where: Where, top: bool = False) -> Names:
        for node in body:
            names = self._statement(node, names, scope, where, top)
        return names

    def _statement(self, node: ast.stmt, names: Names, scope: ScopeNames, where: Where, top: bool) -> Names:
        source, function, owner, around = where
        self.spent += 1
        if self.spent > BUDGET or cost(node) > WIDEST:
            self.spent = BUDGET + 1
            self.ended = self.ended or (source.shown, node.lineno)
            return names
        statement = self._known.get(id(node))
        first = statement is None
        if statement is None:
            statement = self._known[id(node)] = Statement(node, source, function, owner, around)
            self.statements.append(statement)
        inside = (source, function, owner, (*around, statement))
        for expression in statement.expressions:
            self._read(expression, names, scope, statement)
        made: list[tuple[str, Definition]] = []
        bound = {(d.way, d.path, id(d.value)): d for d in statement.defines}

        def definition_of(value: ast.expr | None, way: str, path: tuple[int, ...] = ()) -> Definition:
            return bound.setdefault((way, path, id(value)), Definition(statement, value, way, path))

        def define(target: ast.expr, value: ast.expr | None, way: str, path: tuple[int, ...] = ()) -> None:
            if isinstance(target, (ast.Tuple, ast.List)):
                for index, one in enumerate(target.elts):
                    define(one, value, way, (*path, index))
            elif isinstance(target, ast.Starred):
                define(target.value, value, way, path)
            elif isinstance(target, ast.Name):
                made.append((target.id, definition_of(value, way, path)))
            elif (file_name := of_a_file(target)) is not None:
                outside(file_name, definition_of(value, way, path))
            elif isinstance(target, ast.Attribute):
                self._attribute(target.attr, Definition(statement, value, way, path), first)
                record = isinstance(self.value(target.value), (ParsedArguments, ScriptObject, ScriptModule))
                define(root(target), value, ADDS) if not record and not _is_self(target.value) else None
            elif isinstance(target, ast.Subscript):
                if isinstance(target.value, ast.Attribute):
                    self._attribute(target.value.attr, Definition(statement, value, ADDS), first)
                define(root(target), value, ADDS) if not _is_self(root(target)) else None

        def outside(name: str, definition: Definition) -> None:
            self.outside.append((name, scope, definition))
            statement.defines.append(definition)
            self.rebinds |= {id(statement)} if definition.way != ADDS or isinstance(node, ast.AugAssign) else set()

        def echo(name: str, value: ast.expr | None, depth: int = 0) -> None:
            """Note a change of a list's element, or of another name's object, as a change of these too."""
            for one in names.get(name, ()) if depth < 3 else ():
                of = root(one.value) if one.value is not None and one.way in (IS, EACH) else None
                simple = one.way == EACH or isinstance(one.value, (ast.Name, ast.Attribute, ast.Subscript))
                while isinstance(of, ast.Call) and of.args and one.way == EACH:  # enumerate(x)
                    of = root(of.args[0])
                if simple and isinstance(of, ast.Name) and of.id != name and not _is_self(of):
                    made.append((of.id, definition_of(value, ADDS)))
                    echo(of.id, value, depth + 1)

        if isinstance(node, ast.Assign):
            for target in node.targets:
                define(target, node.value, IS)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            define(node.target, node.value, IS)
        elif isinstance(node, ast.AugAssign):
            define(node.target, node.value, ADDS)
        elif isinstance(node, ast.Delete):
            self._changed_by(None, [one.value for one in node.targets if isinstance(one, ast.Subscript)], define)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            define(node.target, node.iter, EACH)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                define(item.optional_vars, item.context_expr, IS) if item.optional_vars is not None else None
        if isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return)) and node.value is not None:
            self._changes(node.value, define, isinstance(node, ast.Expr))
        for call in (one for one in statement.calls if one is not statement.alone):
            self._changed_by(call if self.function_of(call) is None else None, self.writes(call), define)
        self._changed_by(None, families.handed_methods(statement.nodes, self.value, NO_METHODS), define)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            own = self._modules.get(absolute(node, *self._named[id(source.tree)]), ScopeNames(None)).found
            for alias in node.names:
                made.append((alias.asname or alias.name.partition(".")[0], definition_of(None, NAMED)))
                taken = [one for one in own if not one.startswith("_")] if alias.name == "*" else [alias.name]
                made += [(alias.asname or name, one) for name in taken for one in own.get(name, ())]
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            made.append((node.name, definition_of(None, NAMED)))
        elif isinstance(node, ast.Return) and node.value is not None and function is not None and first:
            self.returns.setdefault(id(function), []).append((statement, node.value))
            if is_property(function):
                self._attribute(function.name, definition_of(node.value, IS), first)
        for part in (one for one in statement.nodes if isinstance(one, ast.NamedExpr)):
            made += [(part.target.id, before) for before in names.get(part.target.id, ())]  # where it does not run
            define(part.target, part.value, IS)
        for name, definition in [(name, one) for name, one in made if one.way == ADDS]:
            echo(name, definition.value)
        if made:
            self.spent += len(names) // 64
            names = dict(names)
        fresh: Names = {}
        for name, definition in made:
            outer = first and name in outer_names(function)
            if outer or (definition.way == ADDS and name not in names and name not in fresh):  # of an enclosing scope
                outside(name, definition) if first else None
                self._attribute(name, definition, True) if first and name in self.attributes else None
                continue
            kept = names.get(name, frozenset()) if definition.way == ADDS else fresh.get(name, frozenset())
            self.spent += len(kept) // 2
            fresh[name] = kept | fresh.get(name, frozenset()) | {definition}
            if first:
                scope.found.setdefault(name, []).append(definition)
                statement.defines += [definition] if definition.statement is statement else []
            if top and first:
                self._attribute(name, definition, True)
        if made:
            names |= fresh
        return self._inside(node, names, scope, inside, statement, top)

    def _inside(
        self, node: Any, names: Names, scope: ScopeNames, inside: Where, statement: Statement, top: bool
    ) -> Names:
        """Read the statements inside a compound statement."""
        if isinstance(node, LOOPS):
            for _ in range(2):
                names = _merged(names, self._block(node.body, names, scope, inside, top))
                for test in statement.expressions if isinstance(node, ast.While) else ():
                    self._read(test, names, scope, statement)  # what a round sets decides on the next
            return _merged(names, self._block(node.orelse, names, scope, (*inside[:3], inside[3][:-1]), top))
        if isinstance(node, ast.If):
            body, orelse = ([one for one in part if id(one) not in self._never] for part in (node.body, node.orelse))
            taken = self._block(body, names, scope, inside, top)
            other = self._block(orelse, names, scope, inside, top)
            if node.body and isinstance(node.body[-1], (ast.Return, ast.Raise)):
                return other
            if node.orelse and isinstance(node.orelse[-1], (ast.Return, ast.Raise)):
                return taken
            return _merged(taken, other)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return self._block(node.body, names, scope, inside, top)
        if isinstance(node, ast.Match):
            return _merged(names, *(self._block(case.body, names, scope, inside, top) for case in node.cases))
        if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            tried = _merged(names, self._block(node.body, names, scope, inside, top))
            parts = [self._block(handler.body, tried, scope, inside, top) for handler in node.handlers]
            names = _merged(self._block(node.orelse, tried, scope, inside, top), *parts)
            return self._block(node.finalbody, names, scope, inside, top)
        source, function, owner, _ = inside
        if isinstance(node, FUNCTIONS):
            inner = ScopeNames(scope)
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            every += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
            own = {one.arg: frozenset({Definition(statement, None, GIVEN, parameter=one)}) for one in every}
            inner.found |= {name: list(found) for name, found in own.items()}
            self._block(node.body, own, inner, (source, node, owner if scope.found.get("__class__") else None, ()))
        elif isinstance(node, ast.ClassDef):
            inner = ScopeNames(scope)
            inner.found["__class__"] = [Definition(statement, None, NAMED)]
            self._block(node.body, {}, inner, (source, function, node, ()), top=True)
        return names

    def _changes(self, call: ast.expr, define: Any, alone: bool) -> None:
        """A call that is a statement may change its object and its arguments; any other call, an unknown object."""
        call = call.value if isinstance(call, (ast.Await, ast.Yield)) and call.value is not None else call
        call = call.elt if alone and isinstance(call, (ast.ListComp, ast.SetComp)) else call
        if not isinstance(call, ast.Call) or self.passed(call.func):
            return
        own = families.chosen_from(call.func.value) if isinstance(call.func, ast.Attribute) else []
        known = self.value(root(call.func))
        foreign = isinstance(known, LibraryObject) and not known.family and known.seen is None
        if alone:
            given = [*call.args, *(k.value for k in call.keywords)] if self.function_of(call) is not None else []
            written = [one for one in self.writes(call) if any(one is argument for argument in given)]
            self._changed_by(None, changed_arguments(call, self.value, self.passed, self._changed) + written, define)
        if alone or known is None or type(known) is Value or foreign:
            self._changed_by(call, own, define)

    def _changed_by(self, given: ast.Call | None, changed: list[ast.expr], define: Any) -> None:
        """Define what is changed anew; given: the call whose arguments become part of it."""
        for at in changed:
            while isinstance(at, ast.Subscript) or families.gives_part(at):
                at = at.func.value if isinstance(at, ast.Call) else at.value  # type: ignore[attr-defined]
            if isinstance(at, ast.Attribute):
                define(at, given, ADDS)
            one = root(at)
            while inner := [d.value for d in self.reads.get(id(one), ()) if d.way == INNER and d.value]:
                one = root(inner[0])
            if isinstance(one, ast.Name) and not _is_self(one):
                define(one, given, ADDS) if not isinstance(self.value(one), (LibraryName, ScriptModule)) else None

    def writes(self, call: ast.Call) -> list[ast.expr]:
        """The expressions whose objects a call writes to, as its name says, or the script's function that it calls."""
        found, own = families.written(call, self.of_library(call)), self.value(call.func)
        if not isinstance(own, ScriptFunction) or isinstance(own.node, ast.Lambda):
            return found
        if id(own.node) not in self.written_by:
            self.written_by[id(own.node)] = set()  # where it calls itself
            self.written_by[id(own.node)] = written_names(own.node, self.writes)
        given = arguments_for(call, own, self.written_by[id(own.node)])
        return found + [one for one in given if not self._is_made_anew(one)]  # no number, and no loader's batches

    def _is_made_anew(self, node: ast.expr) -> bool:
        found, name = self.value(node), getattr(node, "attr", getattr(node, "id", ""))
        family = families.habit(name) if type(found) in (Value, type(None)) else getattr(found, "family", "")
        return isinstance(found, Constant) or family == families.LOADER

    def of_library(self, call: ast.Call) -> bool:
        """Whether a call calls a library's function, and not a method of an object."""
        parts = (call.func, getattr(call.func, "value", call.func))
        return all(isinstance(self.value(part), LibraryName) for part in parts)

    def passed(self, func: ast.expr) -> bool:
        """Whether a call is one of those that change nothing, such as print."""
        found, of = self.value(func), self.value(getattr(func, "value", func))
        name = found.name if isinstance(found, LibraryName) else getattr(func, "id", "")
        logs = isinstance(of, LibraryObject) and self._reason(f"{of.name}.log") == self._reason("print")  # of a logger
        makes = logs or (getattr(func, "attr", "") in OF_LOGS and not isinstance(found, ScriptFunction))
        return makes or (bool(name) and self._reason(name) is not None)

    def _attribute(self, name: str, definition: Definition, first: bool) -> None:
        known = self.attributes.setdefault(name, [])
        if first and all(one.statement is not definition.statement or one.path != definition.path for one in known):
            known.append(definition)
            definition.statement.defines.append(definition)

    def _read(self, node: ast.AST, names: Names, scope: ScopeNames, statement: Statement, call: Any = None) -> None:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) or isinstance(statement.node, ast.AugAssign):
                found = names.get(node.id)
                self._late += [(node, scope)] if found is None else []
                self.reads[id(node)] = self.reads.get(id(node), frozenset()) | (found or frozenset())
            return
        loops: list[ast.comprehension] = getattr(node, "generators", [])
        parts = [*ast.iter_child_nodes(node), *(part for loop in loops for part in ast.iter_child_nodes(loop))]
        if loops:  # it is outside of its own names
            self._read(parts.pop(parts.index(loops[0].iter)), names, scope, statement)
        bound = [(part, part.id, loop.iter) for loop in loops for part in ast.walk(loop.target) if hasattr(part, "id")]
        bound += [(one, one.arg, call) for one in node.args.args] if isinstance(node, ast.Lambda) else []
        for one, name, over in bound:
            each = self._inner.setdefault(id(one), Definition(statement, over, INNER))
            names = {**names, name: frozenset({each})}
        for part in (one for one in parts if not isinstance(one, ast.comprehension)):
            self._read(part, names, scope, statement, node if isinstance(node, ast.Call) else None)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _merged(*several: Names) -> Names:
    if all(names is several[0] for names in several):
        return several[0]
    found: dict[str, frozenset[Definition]] = {}
    for names in several:
        for name, definitions in names.items():
            found[name] = found.get(name, frozenset()) | definitions
    return found
