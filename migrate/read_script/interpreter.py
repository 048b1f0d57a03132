"""The abstract interpreter: follows a script statement by statement, without running any of it.

It keeps every use of a library, how surely it runs, and in which loops. Functions that are registered for a kind of
node evaluate expressions and execute statements: see expressions.py, calls.py, statements.py.
"""

from __future__ import annotations

import ast
import copy
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import BadInput
from ...mappings.aliases import row_of
from ...printable import shortened
from .. import library_names as names
from ..source_files import ScriptFile, read_script_file
from . import syntax
from .abstract_values import (
    ArgumentParser,
    CallArgument,
    Constant,
    DictValue,
    LibraryName,
    LibraryObject,
    LibraryUse,
    ListValue,
    Origin,
    ParsedArguments,
    Scope,
    ScriptClass,
    ScriptFunction,
    ScriptModule,
    ScriptObject,
    Value,
    agreed,
    first,
    is_known,
    known,
    weight,
    with_other,
    wrapped,
)

# how surely a call runs
DEFAULT = "default"  # with the arguments' defaults
PERHAPS = "perhaps"  # under a condition that reading does not decide
UNCALLED = "uncalled"  # in a function that none of the code that was read calls
OPTION = "option"  # only with other arguments than the defaults
CERTAINTIES = (DEFAULT, PERHAPS, UNCALLED, OPTION)
# how a block ends: always by return (or continue, break), or always by an exception; or only under a condition
RETURNED, RAISED, PARTLY = "returned", "raised", "partly"
End = str | None
LONGEST = 300  # letters of a condition
BUDGET = 100_000  # steps of reading; a script of a thousand lines takes some ten thousand
DEEPEST_CALL = 12
RUNS = 24  # of one function; presets and helpers are called a few times, each with other arguments
MOST_FILES = 100
PLAIN, FUNCTIONS = (Constant, ListValue, DictValue), syntax.FUNCTIONS

Evaluate = Callable[["Interpreter", Any, Scope], Value]
Execute = Callable[["Interpreter", Any, Scope], End]
Assign = Callable[["Interpreter", Any, Value, Scope], None]
EXPRESSIONS: dict[type[ast.expr], Evaluate] = {}
STATEMENTS: dict[type[ast.stmt], Execute] = {}
TARGETS: dict[type[ast.expr], Assign] = {}
FORGETS: list[Callable[[Interpreter, ScriptFunction], None]] = []  # forget what a function sets for its next call


def evaluates(*kinds: type[ast.expr]) -> Callable[[Evaluate], Evaluate]:
    """Register the function that evaluates these kinds of expressions."""

    def register(function: Evaluate) -> Evaluate:
        EXPRESSIONS.update(dict.fromkeys(kinds, function))
        return function

    return register


def executes(*kinds: type[ast.stmt]) -> Callable[[Execute], Execute]:
    """Register the function that executes these kinds of statements; it returns how the block ends there, if so."""

    def register(function: Execute) -> Execute:
        STATEMENTS.update(dict.fromkeys(kinds, function))
        return function

    return register


def assigns(*kinds: type[ast.expr]) -> Callable[[Assign], Assign]:
    """Register the function that assigns a value to these kinds of targets."""

    def register(function: Assign) -> Assign:
        TARGETS.update(dict.fromkeys(kinds, function))
        return function

    return register


class Interpreter:
    """Reads one script and the files of its folder that it imports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.search = [folder]  # the folders that imports are looked for in: what the script adds to sys.path too
        self.files: dict[str, ScriptModule] = {}
        self.not_there: dict[str, tuple[str, int]] = {}  # module -> file and line of the import
        self.unreadable: dict[str, str] = {}  # file -> why
        self.libraries: set[str] = set()
        self.seen: list[LibraryUse] = []
        self.epochs: list[tuple[Value, Origin, str]] = []  # the bound of a loop over epochs, its place, how sure
        self.rates: list[tuple[Origin, str]] = []  # where a learning rate is set by hand, and how surely
        # "over", or a method's name -> the calls that make the loaders that are looped over, or in whose loops this
        # method is called, each with how surely
        self.batches: dict[str, dict[int, int]] = {"over": {}, "step": {}, "backward": {}}
        self.functions: dict[int, ScriptFunction] = {}  # every function, in the order of reading
        self.instances: dict[int, ScriptObject] = {}  # by class: the surest object of it, and the first of these
        self.made: list[ScriptObject] = []
        self.certainty = DEFAULT
        self.conditions: list[str] = []
        self.tests: list[tuple[ast.expr, Scope]] = []
        self.loops: list[str] = []
        self.breaks: list[list[dict[str, Value]]] = []  # of each loop around: the names where it may be left
        self.over: LibraryObject | None = None  # the loader of the loop that is read now
        self.repeats = 0  # how many of the loops around, also of callers, are read in one round for all
        self.spent = 0  # of the budget
        self.values: dict[int, tuple[int, Value]] = {}  # an expression's node -> how surely it runs, first value
        self.varied: set[int] = set()  # those that had another value when they were read again
        self.reached: dict[int, tuple[int, tuple[str, ...]]] = {}  # a statement -> how surely, under which conditions
        self.yields: dict[int, bool] = {}  # whether a function is a generator
        self.modules: dict[str, frozenset[str]] = {}  # by file: what is a module by its use
        self.runs: dict[int, int] = {}
        # options of functions that a package calls by the command line, by node; flags; defaults that were not read
        self.commands: dict[int, ArgumentParser] = {}
        self.flags, self.unread = ParsedArguments(ArgumentParser()), list[tuple[str, ScriptFile, ast.Call]]()
        self.altered: set[int] = set()  # functions whose plain results a decorator may change
        self.returns: list[list[tuple[int, Value]]] = []
        self.unnamed: set[int] = set()  # nodes of functions that nothing names, whose uses are left out
        self.depth = self.outside = 0  # outside: how many of the loops around are outside of the function
        self.later: list[tuple[Any, ...]] | None = []  # those that this run does not take, until the script was read
        self.elsewhere = 0  # how many branches of `if __name__ == "__main__"` are around that this run does not take
        self.never: set[int] = set()  # the statements of such branches
        self.alone = False  # whether a function is read that nothing names
        self.otherwise = ""  # the condition under which the last `if` did not return a value

    def read(self, path: Path) -> None:
        """Read the script, then the functions that it does not call itself."""
        self._run_file(replace(read_script_file(path), shown=path.name), "__main__")
        later, self.later, before = self.later or [], None, self.certainty
        for taken, test, of, scope, run, words in later:
            kept, scope.names = scope.names, dict(scope.names)
            self.under(taken, test, of, scope, run, words)
            scope.names = kept
        position, alone = 0, {id(node) for _, one in self._unnamed() for node in ast.walk(one)}
        while position < len(self.functions) and self.spent <= BUDGET:
            waiting = list(self.functions.values())[position:]  # reading one may define others
            position += len(waiting)
            waiting.sort(key=lambda one: (id(one.node) in alone, id(one.node) not in self.commands, not one.prepares))
            self._uncalled(waiting, before, alone)
        self.certainty, self.alone = before, False
        if self.spent > BUDGET:
            self.unreadable["too long"] = f"{path.name}: too much to follow to its end: uses may be missing here"

    def _uncalled(self, functions: list[ScriptFunction], before: str, alone: set[int]) -> None:
        """Read the functions that nothing has called yet; alone: those that nothing names, to be read by themselves."""
        for function in functions:
            if id(function.node) in self.runs:
                continue
            own = self.instances.get(id(function.owner.node)) if function.owner else None
            name = getattr(function.node, "name", "")
            in_use = own is not None and (bool(own.of.family()) or name.startswith("__") or own.of.makes_loaders)
            self.certainty = max(before, own.certainty if own and in_use else UNCALLED, key=CERTAINTIES.index)
            if own is None and function.owner is not None:  # the script makes no object of this class
                own = self.instances[id(function.owner.node)] = ScriptObject(function.owner, certainty=UNCALLED)
            own = ScriptObject(own.of) if own and name == "__setattr__" else own  # read where it sets
            again = ScriptFunction(function.node, function.scope, own, function.owner)
            for forget in FORGETS if name != "__init__" else ():  # a library may call it any number of times
                forget(self, again)
            self.alone = id(function.node) in alone
            options = self.commands.get(id(function.node))
            given = ParsedArguments(options).arguments() if options is not None else []
            self.call(again, given, by_script=options is not None)

    def living(self) -> Interpreter:
        """A copy without the uses in functions that nothing names, and in what only another script runs."""
        found, gone = copy.copy(self), self._unnamed()

        def lives(origin: Origin) -> bool:
            inside = (one for file, one in gone if file == origin.file and one.lineno <= origin.line)
            return not any(origin.line <= (one.end_lineno or 0) for one in inside)

        found.unnamed = {id(node) for _, one in gone for node in ast.walk(one)}
        found.seen = [seen for seen in self.seen if id(seen.node) not in found.unnamed and not seen.never]
        found.epochs = [one for one in self.epochs if lives(one[1])]
        found.rates = [one for one in self.rates if lives(one[0])]
        return found

    def _unnamed(self) -> Sequence[tuple[str, ast.stmt]]:
        """The top-level functions that no code that may run names, each with its file; of files that lack a name that
        is imported from them the classes too. `tools.train()` names one of a file `tools`, `model.train()` none.
        Without those of the other files where no step would be left, by a library either: then unread code calls them.
        """
        sources = list({id(module.scope.source.tree): module.scope.source for module in self.files.values()}.values())
        nodes = [node for s in sources for node in ast.walk(s.tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
        imported = [alias for node in nodes for alias in node.names]
        files: dict[str, set[str]] = {}
        for alias, (name, module) in ((alias, one) for alias in imported for one in self.files.items()):
            if name.rpartition(".")[2] in alias.name.split("."):
                files.setdefault(alias.asname or alias.name.partition(".")[0], set()).add(module.scope.source.shown)
        lacking = {of.scope.source.shown for name in self.not_there if (of := self.files.get(name.rpartition(".")[0]))}
        kinds = {s.shown: (*FUNCTIONS, ast.ClassDef) if s.shown in lacking else FUNCTIONS for s in sources}
        top = [(s.shown, one) for s in sources for one in s.tree.body]
        unnamed = [(file, one) for file, one in top if isinstance(one, kinds[file]) and not one.decorator_list]
        ids = {id(one) for _, one in unnamed}
        waiting = [(file, part) for file, one in top if id(one) not in ids for part in self._taken(one)]
        own = {s.shown: syntax.defined_alone(s.tree) for s in sources}
        living: list[ast.AST] = []
        while waiting:
            living += [node for _, one in waiting for node in ast.walk(one)]
            named = set[str]().union(*(syntax.named_in(one, files, own, file) for file, one in waiting))
            named |= {alias.name for alias in imported if alias.asname in named}
            waiting = [(at, one) for at, one in unnamed if {one.name, f"{at}:{one.name}", syntax.ANY} & named]
            unnamed = [found for found in unnamed if found not in waiting]
        calls = [node for node in living if isinstance(node, ast.Call)]
        fits = (self.values.get(id(node.func), (0, None))[1] for node in calls if names.fits(node))
        steps = any(getattr(node.func, "attr", "") in ("backward", "step") for node in calls)
        if not steps and all(isinstance(one, ScriptFunction) for one in fits):
            return [(file, one) for file, one in unnamed if file in lacking]
        return unnamed

    def _taken(self, node: ast.stmt) -> list[ast.stmt]:
        """A statement; of `if __name__ == "__main__"` the branch that this run may take."""
        parts = [*node.body, *node.orelse] if isinstance(node, ast.If) else []
        left = [part for part in parts if id(part) not in self.never]
        return [node] if len(left) == len(parts) else left

    def _run_file(self, source: ScriptFile, name: str) -> ScriptModule:
        syntax.plainly(source.tree)
        scope = Scope(source, names={"__name__": Constant(name), "__file__": Value()})
        module = ScriptModule(scope)
        self.files[name] = module
        self.block(source.tree.body, scope)
        return module

    def file(self, name: str) -> Value | None:
        """A file of the script's folder by its dotted name."""
        if name in self.files:
            return self.files[name]
        parts = name.split(".")
        if not all(part.isidentifier() for part in parts) or len(self.files) >= MOST_FILES:
            return None
        for folder in (*self.search, *(at.parent for at in [self.folder.absolute()] if at.name == parts[0])):
            self.spent += 5  # the last is for `python -m folder.train`
            at = folder.joinpath(*parts)
            for path in (at.with_suffix(".py"), at / "__init__.py"):
                if path.is_file():
                    return self._read_file(path, name)
            if at.is_dir():
                self.files[name] = ScriptModule(
                    Scope(ScriptFile(at, name, (), ast.Module([], [])), names={"__name__": Constant(name)})
                )
                return self.files[name]
        return None

    def _read_file(self, path: Path, name: str) -> ScriptModule | None:
        shown = os.path.relpath(path, self.folder)
        try:
            source = read_script_file(path, shown)
        except BadInput as error:
            self.unreadable[shown] = str(error)
            return None
        loops, self.loops = self.loops, []
        try:
            return self._run_file(source, name)
        finally:
            self.loops = loops

    def own_file(self, name: str, node: ast.stmt | ast.expr, scope: Scope, relative: bool = False) -> Value | None:
        """The file of the script's folder that an import means; an import of something unknown is remembered."""
        top = name.partition(".")[0]
        if names.is_library(name) and not relative:
            self.libraries.add(top)
            return None
        found = self.file(name)
        if found is None and top not in sys.stdlib_module_names:
            self.not_there.setdefault(name, (scope.source.shown, node.lineno))
        return found

    def lacks(self, name: str) -> bool:
        """Whether a qualified name is of a file or a package that was looked for and not found."""
        return any(name.startswith(f"{one}.") for one in self.not_there)

    def value(self, node: ast.expr | None, scope: Scope) -> Value:
        """The value of an expression."""
        self.spent += 1
        if node is None or self.spent > BUDGET:
            return Value()
        evaluate = EXPRESSIONS.get(type(node))
        if evaluate is not None:
            found = evaluate(self, node, scope)
            self.spent += weight(found) // 16  # operations on it take longer than on a number
            self.remember(node, found)
            return found
        self._read_parts(node, scope)
        return Value()

    def remember(self, node: ast.expr, found: Value) -> None:
        """Keep the value of an expression where it runs most surely; a known value replaces an unknown one."""
        rank, before = CERTAINTIES.index(self.certainty), self.values.get(id(node))
        rank += len(CERTAINTIES) * (before is not None and self.elsewhere > 0)  # this run does not take it
        if before is None or rank < before[0] or (rank == before[0] and type(before[1]) is Value):
            self.values[id(node)] = (rank, found)
        chosen = before is not None and CERTAINTIES[before[0]] == OPTION and self.certainty == DEFAULT  # of two starts
        if before is not None and rank <= before[0] and known(before[1]) != known(found) and not chosen:
            self.varied.add(id(node))

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Assign a value to a target."""
        assign = TARGETS.get(type(target))
        if assign is not None:
            assign(self, target, value, scope)

    def block(self, statements: list[ast.stmt], scope: Scope, start: int = 0) -> End:
        """Read statements; returns how they end."""
        for index in range(start, len(statements)):
            statement = statements[index]
            self.spent += 1
            if self.spent > BUDGET:
                return None
            rank, conditions = CERTAINTIES.index(self.certainty), tuple(self.conditions)
            before, known = self.reached.get(id(statement), (len(CERTAINTIES), conditions))
            if rank <= before and not (self.elsewhere and id(statement) in self.reached):
                self.reached[id(statement)] = (rank, conditions if rank < before else _either(known, conditions))
            execute = STATEMENTS.get(type(statement))
            ended: End = None
            if execute is None:
                self._read_parts(statement, scope)
            else:
                ended = execute(self, statement, scope)
            if ended is None:
                continue
            # the statements after it run with other arguments, or never; or perhaps, where only one branch ends
            certainty, names_before = self.certainty, self.names_of(scope)
            self.certainty = max(certainty, PERHAPS if ended == PARTLY else OPTION, key=CERTAINTIES.index)
            otherwise, around = self.otherwise, self.conditions
            self.conditions = [*around, otherwise] if ended == PARTLY and otherwise else around
            rest = self.block(statements, scope, index + 1)
            self.conditions, self.otherwise = around, otherwise
            self.certainty = certainty
            if ended == PARTLY:
                return rest or PARTLY
            scope.names = names_before
            return ended
        return None

    def _read_parts(self, node: ast.AST, scope: Scope) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, scope)

    def under(
        self, taken: bool | None, test: ast.expr, of: bool, scope: Scope, run: Callable[[], Any], words: str = ""
    ) -> Any:
        """Run a branch of a condition: taken for sure, surely not, or perhaps (None); words: behind the condition."""
        before, other = self.certainty, taken is False and names_the_file(test)
        if other and self.later is not None:
            return self.later.append((taken, test, of, scope, run, words))
        if taken is not True:
            text = shortened(scope.source.text(test) + words, LONGEST)
            self.conditions.append(text if of else f"not ({text})")
            worse = OPTION if taken is False else PERHAPS
            self.certainty = max(before, worse, key=CERTAINTIES.index)
        self.tests.append((test, scope))
        self.elsewhere += other
        try:
            return run()
        finally:
            self.elsewhere -= other
            self.tests.pop()
            self.certainty = before
            if taken is not True:
                self.conditions.pop()

    def names_of(self, scope: Scope) -> dict[str, Value]:
        """The present values of all names."""
        self.spent += len(scope.names) // 16
        return dict(scope.names)

    def note(
        self, name: str, node: ast.expr, scope: Scope, arguments: list[CallArgument] | None, receiver: Any = None
    ) -> LibraryUse:
        """Keep one use of a library."""
        self.spent += 6 + scope.source.length(node) // 32  # its text is copied, and rewritten
        condition, loops = joined(self.conditions) or None, tuple(self.loops)
        seen = LibraryUse(name, scope.source, node, arguments, self.certainty, condition, loops, len(self.seen))
        seen.receiver, seen.tests, seen.never = receiver, tuple(self.tests), self.elsewhere > 0
        self.seen.append(seen)
        return seen

    def note_batches(self, what: str) -> None:
        """Keep that the loader of the innermost loop over batches is looped over, or stepped on."""
        if self.over is not None and self.over.seen is not None:
            found, rank, key = self.batches[what], CERTAINTIES.index(self.certainty), id(self.over.seen.node)
            found[key] = min(rank, found.get(key, rank))

    def modules_by_use(self) -> set[tuple[str, str]]:
        """The file and the text of every object that its use tells to be a module."""
        sources = {module.scope.source.shown: module.scope.source for module in self.files.values()}.values()
        return {(source.shown, text) for source in sources for text in self.modules_of(source)}

    def modules_of(self, source: ScriptFile) -> frozenset[str]:
        """The texts of a file's objects that are modules: by a method that only modules have, or by what made them."""
        if source.shown not in self.modules:
            self.modules[source.shown] = frozenset(names.modules_by_use(source.tree))
        return self.modules[source.shown]

    def note_named(self, value: Value, node: ast.expr, scope: Scope) -> None:
        """Keep a name of a library that is passed on and not called, where the table has a row for it."""
        name = value.name if isinstance(value, LibraryName) else ""
        if names.is_library(name) and not name.endswith(names.DTYPES) and row_of(name) is not None:
            self.note(name, node, scope, None)

    # the script's own functions and classes

    def handed_on(self, function: ScriptFunction) -> None:
        """Read a function of the script that is an argument, if nobody has called it yet."""
        if id(function.node) not in self.runs:
            self.call(function, [], by_script=True if id(function.node) in self.commands else None)

    def call(self, function: ScriptFunction, arguments: list[CallArgument], by_script: bool | None = True) -> Value:
        """The result of a function of the script for these arguments; by_script: whether the script calls it, so that
        all other parameters have their defaults; None: something that it was handed to does, at any time."""
        node = function.node
        key = -id(node) if self.elsewhere else id(node)
        runs = self.runs.get(key, 0)
        once = self.alone or (self.certainty == OPTION and self.spent > BUDGET // 4)  # where much is left to read
        if self.depth >= DEEPEST_CALL or runs >= (1 if once else RUNS):
            return Value()
        self.runs[key] = runs + 1
        scope = Scope(function.scope.source, function.scope, at_any_time=by_script is None)
        if function.owner is not None:
            scope.names["__class__"] = function.owner
        whole = {argument.name for argument in arguments}.isdisjoint(("*", "**"))  # all of them were read
        self._bind_parameters(function, arguments, scope, bool(by_script) and whole)
        if isinstance(node, ast.Lambda):
            return self.value(node.body, scope)
        self.depth += 1
        self.returns.append([])
        outside, self.outside = self.outside, len(self.loops)
        self.block(node.body, scope)
        self.outside = outside
        self.depth -= 1
        found = self.returns.pop()
        if id(node) not in self.yields:
            self.yields[id(node)] = any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in ast.walk(node))
        if self.yields[id(node)]:
            loaders = [
                a.value for a in arguments if isinstance(a.value, LibraryObject) and a.value.family == names.LOADER
            ]
            return first(loaders)
        best = max(min((rank for rank, _ in found), default=0), CERTAINTIES.index(PERHAPS))  # it may return before
        rest = first([value for rank, value in found if rank > best])
        result = with_other(agreed([value for rank, value in found if rank <= best]), rest)
        return Value() if id(node) in self.altered and isinstance(result, PLAIN) else result

    def _bind_parameters(
        self, function: ScriptFunction, arguments: list[CallArgument], scope: Scope, by_script: bool
    ) -> None:
        parameters = function.node.args
        plain = [*parameters.posonlyargs, *parameters.args]
        everything = [*plain, *parameters.kwonlyargs]
        is_forward = getattr(function.node, "name", "") == "forward"
        for parameter in everything:
            scope.names[parameter.arg] = self._parameter(parameter, function, is_forward)
        made = self.functions.get(id(function.node), function).defaults
        for parameter, default in syntax.defaults_of(function.node):
            value = made[parameter.arg] if parameter.arg in made else self.value(default, function.scope)
            self.note_named(value, default, function.scope)
            text = f"{parameter.arg}={function.scope.source.text(default)} by default"
            origin = (Origin(scope.source.shown, default.lineno, text),)
            if isinstance(value, Constant) and by_script:
                scope.names[parameter.arg] = wrapped(known(value), origin)
            elif type(value) is not Value and by_script:
                value.origins = value.origins or (origin if is_known(value) else ())
                scope.names[parameter.arg] = value
            elif is_forward and is_known(value) and known(value) is None:
                scope.unset.add(parameter.arg)  # a tensor, or None
        receiver = function.receiver
        if isinstance(receiver, ScriptObject) and is_decorated(function.node, "classmethod"):
            receiver = receiver.of
        if receiver is not None and plain and not is_decorated(function.node, "staticmethod"):
            scope.names[plain[0].arg] = receiver
            plain = plain[1:]
        by_position = [argument for argument in arguments if argument.name is None]
        if parameters.vararg:
            scope.names[parameters.vararg.arg] = ListValue([a.value for a in by_position[len(plain) :]], by_script)
        for parameter, argument in zip(plain, by_position, strict=False):
            scope.names[parameter.arg] = argument.value
        named = {argument.name: argument.value for argument in arguments if argument.name}
        own = {parameter.arg for parameter in everything}
        scope.names |= {name: value for name, value in named.items() if name in own}
        if parameters.kwarg:
            scope.names[parameters.kwarg.arg] = DictValue(
                {k: v for k, v in named.items() if k not in own and k[0] != "*"}, more="**" in named or not by_script
            )

    def _parameter(self, parameter: ast.arg, function: ScriptFunction, is_forward: bool) -> Value:
        """The value of a parameter without an argument: by its annotation, in forward a tensor, else by its name."""
        if parameter.annotation is not None:
            found = self.value(parameter.annotation, function.scope)
            if isinstance(found, LibraryName) and names.is_library(found.name):
                return LibraryObject(names.BASES.get(found.name) or names.family_of(found.name), name=found.name)
        if is_forward and function.owner is not None and function.owner.family() == names.MODULE:
            return LibraryObject(names.TENSOR)
        return LibraryObject(names.habit(parameter.arg))

    def drive(self, objects: list[Value]) -> None:
        """Read the methods that nothing calls as those of these objects, which a library trains."""
        for one in (one for one in objects if isinstance(one, ScriptObject) and self.certainty != OPTION):
            self.instances |= {id(of.node): one for of in one.of.lineage() if isinstance(of, ScriptClass)}

    def make(self, of: ScriptClass, arguments: list[CallArgument], node: ast.Call, scope: Scope) -> Value:
        """An object of one of the script's classes; the fields of a class of settings are its attributes."""
        made = ScriptObject(of, arguments=arguments, node=node, certainty=self.certainty, source=scope.source)
        self.spent += len(of.scope.names) // 16
        own = {k: v for k, v in of.scope.names.items() if not isinstance(v, (ScriptFunction, ScriptClass))}
        made.attributes |= own if of.find("__new__") is None else {k: Value() for k in own}  # it may set any of them
        before = self.instances.setdefault(id(of.node), made)
        if CERTAINTIES.index(made.certainty) < CERTAINTIES.index(before.certainty):
            self.instances[id(of.node)] = made
        self.made += [] if self.elsewhere else [made]
        if (start := of.find("__init__")) is None:
            made.attributes |= of.bound(arguments)
            start, arguments = of.find("__post_init__"), []  # which a dataclass calls
        if isinstance(start, ScriptFunction):
            self.call(ScriptFunction(start.node, start.scope, made, start.owner), arguments)
        return made


def is_table(value: Value, method: str) -> bool:
    """Whether elements are attributes: of `vars(args)`, `globals()`, and a table of the script's own class."""
    own = isinstance(value, ScriptObject) and not value.of.family() and value.of.find(method) is None
    return own or isinstance(value, (ParsedArguments, ScriptModule))


def copied(value: Value, depth: int = 0) -> Value:
    """A copy of a table, a list or an object of settings, which later changes of the other do not change."""
    inner = depth < 4
    if isinstance(value, DictValue) and inner:
        return replace(value, pairs={key: copied(one, depth + 1) for key, one in value.pairs.items()})
    if isinstance(value, ListValue) and inner:
        return replace(value, items=[copied(one, depth + 1) for one in value.items])
    if isinstance(value, ScriptObject) and not value.of.family() and inner:
        return replace(value, attributes={key: copied(one, depth + 1) for key, one in value.attributes.items()})
    return replace(value, assigned=dict(value.assigned)) if isinstance(value, ParsedArguments) else value


def names_the_file(test: ast.expr) -> bool:
    """Whether a condition depends on which script is run: `__name__ == "__main__"`."""
    return any(isinstance(one, ast.Name) and one.id == "__name__" for one in ast.walk(test))


def is_property(node: Any) -> bool:
    """Whether reading a method's name calls it."""
    named = [getattr(one, "attr", getattr(one, "id", "")) for one in getattr(node, "decorator_list", ())]
    return any(name in ("property", "cached_property") for name in named)


def is_decorated(node: Any, by: str) -> bool:
    """Whether a function has a decorator of this name."""
    return any(getattr(decorator, "id", "") == by for decorator in getattr(node, "decorator_list", ()))


def with_line(found: Value, node: ast.expr | ast.stmt, text: str, scope: Scope) -> Value:
    """A number that a statement computes, with that line among those that it comes from."""
    if not isinstance(found, Constant) or not found.origins or type(found.value) not in (int, float):
        return found
    origin = Origin(scope.source.shown, node.lineno, " ".join(text.split()), whole=False)
    return Constant(found.value, origins=tuple(dict.fromkeys((origin, *found.origins))))


def joined(conditions: Sequence[str]) -> str:
    """The conditions joined by `and`."""
    each = dict.fromkeys(conditions)  # a function that calls itself has its own again
    return " and ".join(f"({one})" if len(each) > 1 and " or " in one else one for one in each)


def _either(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """The conditions of code that runs under one or the other: those of both, and the rest of one or of the other."""
    same = tuple(text for text in one if text in other)
    first, second = (joined([text for text in side if text not in same]) for side in (one, other))
    if not first or not second or first == f"not ({second})" or second == f"not ({first})":
        return same
    return (*same, first if second in first else shortened(f"{first} or {second}", 3 * LONGEST))
