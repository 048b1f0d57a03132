"""The account of a script's statements: which a drafted recipe covers, which it may omit, which are left over.

A statement counts if it touches the model, the optimizer, the loss, gradients, data or the learning rate, or computes
what such a statement reads. A statement that no rule here accounts for is listed: omitting one needs a reason.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from .. import library_names as families
from ..read_script.abstract_values import (
    ArgumentParser,
    Constant,
    DictValue,
    LibraryName,
    LibraryObject,
    ListValue,
    ParsedArguments,
    ScriptClass,
    ScriptFunction,
    ScriptObject,
    Value,
    is_known,
)
from ..read_script.interpreter import CERTAINTIES, OPTION, PERHAPS, UNCALLED, joined
from . import optimizer_sections, passed_over, relevance, step_order, trained_model
from . import roles as role_names
from .carried_values import Counting, DataFiles
from .data_flow import FUNCTIONS, LOOPS, Flow, Statement
from .loss_sections import set_for_all
from .optimizer_sections import (
    computes,
    further_values,
    made_by,
    makers_in_models,
    measures,
    read_arguments,
    scales,
    seeds_otherwise,
    trains,
)
from .passed_over import Line, name_of
from .paths import by_callers, called_where, changes_itself, chooses, handed_values, sets_group
from .recipe_entries import with_conditions
from .roles import GRADIENTS, LOSS, MODEL, NONE, OPTIMIZER, RATE, Kinds, Roles, ValueKinds
from .step_order import picks
from .trained_model import DEPTH, overridden, trains_at
from .trainers import read_by_libraries, set_for_methods, used_by_draft

TRAINING = (families.OPTIMIZER, families.SCHEDULE, families.LOADER)
HEAVY = frozenset({MODEL, OPTIMIZER, GRADIENTS, RATE})  # writing to one of these changes the training
FOLLOWED = "it calls a function whose statements are accounted for one by one"
DRAFTED, ASKED, SILENT, LISTED = "drafted", "asked for", "silent", "listed"
HEADS = (*LOOPS, ast.If, ast.Match, ast.Try, getattr(ast, "TryStar", ast.Try))
COMPUTES = (ast.Slice, ast.BinOp, ast.UnaryOp, ast.Compare, ast.ListComp, ast.GeneratorExp)
OF_BARS = ("desc", "postfix", "description", "print")  # what a progress bar shows; builtins.print


class Account:
    """Every statement of a script that touches training, with its verdict.

    roots: the calls that the draft chose -> their role. said: the lines that values of the draft come from; asked:
    those that it asks about. accumulate, conditions: the draft's micro-batches per step, and their conditions.
    """

    def __init__(
        self,
        flow: Flow,
        roots: dict[int, str],
        said: set[tuple[str, int]],
        asked: set[tuple[str, int]],
        accumulate: int,
        conditions: set[str],
        seed: int | None,
    ) -> None:
        self.interpreter, self.flow = flow.interpreter, flow
        self.roles = Roles(flow, roots, accumulate)
        self.roots, self.said, self.asked, self.conditions, self.seed = roots, said, asked, conditions, seed
        made = (one for found in flow.interpreter.made for one in found.of.lineage() if isinstance(one, ScriptClass))
        self._made = {id(one.node) for one in made}
        self._plain_holder = partial(passed_over.plain_holder, flow)
        self._overridden, self._reached = overridden(flow), relevance.called_from_elsewhere(flow)
        self._steps: set[int] = set()  # the heads of loops and functions that hold a step
        self._by_name = {m[1] for s in flow.statements for one in s.nodes if (m := passed_over.made_by_name(one))}
        driven = (of for of in flow.classes() if of.name in self._by_name or passed_over.driven(flow.class_of(of)))
        self._driven = {id(of) for of in driven}
        self._makers = makers_in_models(flow, self._driven)
        # the classes that make an optimizer or step, or that a library calls
        self.trainers = self._driven | {id(s.owner) for s in flow.statements if trains(flow, s, self._makers)}
        used = used_by_draft(flow, said | asked)
        used |= self._by_name | trained_model.started_elsewhere(flow, used)
        self.named, running = used, flow.statements
        while (names := relevance.names_in(running, flow) | used) != self.named:  # what the draft uses counts as called
            self.named = names
            running = [s for s in flow.statements if self._runs(s)]  # what names a function may not run itself
        self._only_in_parts = relevance.only_in_parts(flow, self._of_part)
        self.trainers, self._values = set(), ValueKinds(flow, self.roles, self._driven)
        self.kinds = self._values.of
        self._runs_model = partial(trains_at, flow, is_model=lambda one: MODEL in self.kinds(one))
        self.effects, self._files = set[int](), DataFiles(flow, name_of)  # functions that change something of training
        self._data_files = shared = passed_over.normalised_by_device(flow)  # and what writes files of data -> words
        for _ in range(3):  # a call of such a function is an effect too
            before = self.effects, self.trainers, self._data_files.keys()
            self.acting = {id(statement): statement for statement in self.flow.statements if self._acts(statement)}
            self.effects = {id(s.function) for s in self.acting.values() if s.function is not None}
            self.trainers = self._driven | {id(s.owner) for s in self.acting.values() if trains(flow, s, self._makers)}
            acting = relevance.reach(flow, self.acting.values())
            self._data_files = shared | self._files.that_make_data(acting, self.kinds)
            if before == (self.effects, self.trainers, self._data_files.keys()):
                break
        marked, own = self.acting.keys() | self._driven, [s for s in flow.statements if not self._within(s)]
        is_model, at = self._values.is_model, said | asked
        runs = (s for s in own if {id(s), id(s.owner)} & marked or s.stands_at(at) or trains_at(flow, s, is_model))
        self.open = {id(s.function) for s in runs if s.function is not None}
        steps, functions = step_order.holding_steps(flow, self.acting.values())
        self._steps, self.open = self._steps | steps, self.open | functions | step_order.generators(flow, self.roles)
        self.roles.open, self.roles.steps = self.open, self._steps
        left = step_order.leaving(flow, self.acting, self._steps, self._runs, self._undecided)
        self.acting |= {id(one): one for one in left}
        alone = {id(s): s for s in flow.statements if self._runs(s) and self._runs_model(s)}  # with what the model gets
        self.live = relevance.reach(flow, self.acting.values()) | (relevance.reach(flow, alone.values()) - alone.keys())
        self._read = read_arguments(flow, self.live)
        while self._opens_more():
            pass
        self.counting, self._said_of = Counting.read(flow, self.live, self.open, self._within), set[int]()
        self._unseen = further_values(flow, self._is_elsewhere)
        self._unseen |= step_order.changed_for_objects(flow, self.live, self.open)
        self._unseen |= {id(d) for s in flow.statements if id(s) in flow.rebinds for d in s.defines}
        modes = (s for s in flow.statements if self._runs(s) and any(map(self._values.in_evaluation, s.calls)))
        self.misplaced = {id(s): passed_over.STAYS for s in modes} | read_by_libraries(flow, said) | set_for_all(flow)
        train = [s for s in flow.statements if id(s.node) in self._steps | self.effects and not self._within(s)]
        self.misplaced |= passed_over.by_decorators(flow, [*filter(self._runs, train)], self._steps, self.kinds)
        self.misplaced |= relevance.with_defaults(flow, lambda s: self.reaches(s) and not self._within(s), self._driven)
        self.misplaced |= step_order.misplaced(flow, self.roles, self._runs, self._undecided)
        lines = [line for statement in flow.statements if (line := self._judged(statement)) is not None]
        ends = {id(line.statement): line for line in self._ends(lines)}
        listed = {id(line.statement) for line in lines if line.verdict == LISTED}
        lines = [replace(line, verdict=LISTED, why="") if self._overwrites(line, listed) else line for line in lines]
        self.lines = [*(line for line in lines if id(line.statement) not in ends), *ends.values()]
        self.listed = [line for line in self.lines if line.verdict == LISTED]  # what the draft does not cover

    def _opens_more(self) -> bool:
        """Open functions that are called for values that they leave for a step; returns whether there were any."""
        known = len(self.open)
        for statement in self.flow.statements:
            callers = self.flow.calls.get(id(statement.function)) if id(statement) in self.live else []
            called = callers is None or any(self._drops(call, one) for one, call, _ in callers)
            if called and not self._within(statement) and self._values.keeps(statement, self.open, self.live):
                self.open.add(id(statement.function))
        return len(self.open) > known

    def _drops(self, call: ast.Call, of: Statement) -> bool:
        """Whether a call is a whole statement, or hands back the options of the command line, which is no line."""
        return call is of.alone or isinstance(self.flow.value(call), ParsedArguments)

    def _is_elsewhere(self, statement: Statement) -> bool:
        """Whether a statement reaches training, and is not accounted for by itself."""
        function = statement.function
        elsewhere = self._within(statement) or (function is not None and id(function) not in self.open)
        return elsewhere and id(statement) in self.live and self._runs(statement)

    def reaches(self, statement: Statement) -> bool:
        """Whether a statement that may run reaches training, or is part of a model or data set that is made."""
        part = self._within(statement) and (statement.owner is None or id(statement.owner) in self._made)
        return (id(statement) in self.live or part) and self._runs(statement)

    def _acts(self, statement: Statement) -> bool:
        """Whether a statement changes something of training, and not only computes a value."""
        if not self._runs(statement):
            return False
        if id(statement) in self._data_files or passed_over.changes_library(self.flow, statement):
            return True
        if isinstance(statement.node, ast.Return) and statement.owner is not None and statement.node.value is not None:
            called = id(statement.function) in self.flow.calls
            known = statement.owner.name in self._by_name or self.kinds(statement.node.value)
            if id(statement.owner) in self.trainers and not called and known:
                return True  # it returns something to the library that calls it
        targets = getattr(statement.node, "targets", [getattr(statement.node, "target", None)])  # also of a deletion
        for target in filter(None, targets):
            if getattr(target, "attr", "") in OF_BARS:
                continue
            for part in ast.walk(target):
                if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
                    named = role_names.BY_ATTRIBUTE.get(getattr(part, "attr", ""))
                    written = self.kinds(part.value) | ({named} if named is not None else NONE)
                    loss = LOSS in written and getattr(self.flow.value(part.value), "family", "") == families.MODULE
                    heavy = written & HEAVY and not self._plain_holder(part.value)
                    if loss or heavy or self._values.is_data(part.value):
                        return True
        kinds = self.kinds(statement.node.target) if isinstance(statement.node, ast.AugAssign) else NONE
        in_place = bool(kinds) and kinds <= {MODEL, GRADIENTS}  # of a parameter or a gradient
        return in_place or self._altered(statement) or any(self._changes(call) for call in statement.calls)

    def _altered(self, statement: Statement) -> bool:
        """Whether it calls a method that changes its model, loss or data set, by name or by syntax: `with data`."""
        named = any(self._alters(self.flow.value(one.func), True) for one in statement.calls)
        by_syntax = trained_model.called_by_syntax(self.flow, statement)
        ran = (one for one in trained_model.run_by_syntax(self.flow, statement) if id(one.node) in self.effects)
        of_parts = (one.owner is not None and passed_over.is_part(one.owner) for one in ran)
        return named or not all(of_parts) or any(self._alters(one, special=True) for one in by_syntax)

    def _changes(self, call: ast.Call, depth: int = 0) -> bool:
        """Whether a call changes a model, an optimizer, rates or gradients, or makes what trains; depth: of lambdas."""
        if self.passed(call) is not None or self.roles.leaves(call):
            return False
        otherwise = self._values.switches_otherwise(call) or seeds_otherwise(self.flow, call, self.seed)
        drafted = self.roots.get(id(call), role_names.CRITERION) != role_names.CRITERION
        if otherwise or drafted or self._values.changes_data(call) or passed_over.clears_at_times(self.flow, call):
            return True
        if made_by(self.flow, call) and getattr(self.flow.value(call), "family", "") in TRAINING:
            return True
        called = self.flow.value(call.func)
        if any(self._alters(self.flow.value(one)) for one in (*call.args, *(k.value for k in call.keywords))):
            return True  # something else calls it
        if isinstance(called, ScriptFunction) and called.owner is not None and passed_over.is_part(called.owner):
            return self._alters(called)  # a model's or a data set's method is not read line by line
        driven = isinstance(called, ScriptClass) and id(called.node) in self._driven  # a library calls its methods
        inner = partial(self._changes, depth=depth + 1)
        trains = partial(passed_over.trains_behind, self.flow, call.func, self.effects, self.trainers)
        if driven or (depth < DEPTH and trains(inner)):
            return True
        if isinstance(called, (ScriptFunction, ScriptClass)):
            return False  # its statements are read by themselves
        if passed_over.trains_unread(self.flow, call):
            return True
        given = frozenset().union(*(self.kinds(a) for a in [*call.args, *(k.value for k in call.keywords)]))
        if isinstance(called, LibraryName) and self.flow.of_library(call):
            runs = called.name.startswith(passed_over.CHANGING) or called.name.endswith(passed_over.RUNNING)
            writes = families.WRITING.fullmatch(called.name.rpartition(".")[2]) or not families.is_library(called.name)
            return runs or (bool(writes) and bool(given & HEAVY))
        if isinstance(call.func, ast.Attribute):
            method, owner = call.func.attr, self.kinds(call.func.value)
            value = self.flow.value(call.func.value)
            writes = families.WRITING.fullmatch(method) or method in families.OF_MODULES
            made = isinstance(called, (LibraryObject, ScriptObject)) and called is not value
            if not writes and (method.startswith("__") or made):
                return False  # super().__init__(); a module that is called gives a tensor
            moves = method in passed_over.STEPS and (owner or given)
            if method == "backward" or moves or self._values.drives(call.func.value):
                return True
            if method in passed_over.CONTAINERS and not isinstance(value, (LibraryObject, ScriptObject)):
                return passed_over.sets_names(call) or (RATE in owner and sets_group(self.flow, call))
            if owner & {MODEL, OPTIMIZER, RATE, GRADIENTS}:
                tensor = getattr(value, "family", "") == families.TENSOR or method in ("detach", "clone")
                return not tensor or method.endswith("_")
            return bool(given & HEAVY)
        name = call.func.id if isinstance(call.func, ast.Name) and not self.flow.reads.get(id(call.func)) else ""
        if hasattr(builtins, name):
            return name in ("setattr", "delattr", "exec", "eval") and not is_known(self.flow.value(call))
        known = self.kinds(call.func) & {MODEL, LOSS} or passed_over.looked_through(name_of(self.flow, call))
        return bool(given & HEAVY) and not known

    def _alters(self, called: Value | None, only_parts: bool = False, special: bool = False) -> bool:
        """Whether this is a function that changes something of training, also a method of a model, a loss or a data set
        that changes its object; only_parts: whether only such methods count. special: whether its syntax calls it."""
        if not isinstance(called, ScriptFunction):
            return False
        name, part = getattr(called.node, "name", ""), called.owner is not None and passed_over.is_part(called.owner)
        read = {id(getattr(called.owner, "node", None)), id(called.node)} & (self.trainers | self._makers)
        changes = id(called.node) in self.effects or (part and not read and changes_itself(self.flow, called.node))
        if special or called.owner is None:  # a module's __call__ runs it
            of_module = called.owner is not None and called.owner.family() == families.MODULE
            by_itself = name == "__call__" and (of_module or not part)
            return changes and (not by_itself if special else not only_parts)
        return changes and not (name == "forward" or name.startswith("__") if part else only_parts)

    def passed(self, call: ast.Call) -> str | None:
        """Why a call may be omitted, by its callee; None where it may not."""
        if isinstance(self.flow.value(call.func), (ScriptFunction, ScriptClass)):
            return None
        if passed_over.hands_on(self.flow, call):
            return "it calls the function that is decorated"
        name = name_of(self.flow, call)
        if name and (found := passed_over.reason(name)):
            says = passed_over.reads_environment(name, call) or passed_over.counts_rounds(self.flow, name, call)
            return None if says or seeds_otherwise(self.flow, call, self.seed) else found
        if not isinstance(call.func, ast.Attribute) or passed_over.trains_unread(self.flow, call):
            return None
        if call.func.attr == "train" and self._values.drives(call.func.value):
            return None
        if isinstance(self.flow.value(call.func.value), ArgumentParser):
            return "it declares an argument, whose default stands where it is used"
        if call.func.attr == "to" and any(map(self.roles.is_dtype, [*call.args, *(k.value for k in call.keywords)])):
            return None
        known = call.func.attr != "zero_grad" or self.roles.role(call.func.value) in (OPTIMIZER, MODEL)
        known = known and not self._values.switches_otherwise(call) and not passed_over.clears_at_times(self.flow, call)
        return passed_over.method_reason(call.func.attr) if known else None

    # how surely it runs

    def _runs(self, statement: Statement) -> bool:
        """Whether a statement may run with the arguments' defaults."""
        rank, _ = self.interpreter.reached.get(id(statement.node), (0, ()))
        if CERTAINTIES[rank] == OPTION and not self.flow.doubtful(statement, set()):
            return False
        function = statement.function
        unnamed = statement.owner is not None and statement.owner.name not in self.named
        if unnamed or id(statement.node) in self.interpreter.unnamed or id(function) in self._overridden:
            return False
        own = f"{statement.source.shown}:{getattr(function, 'name', '')}"
        called = not isinstance(function, FUNCTIONS) or function.name in self.named or own in self.named
        called = called or id(statement.owner) in self.trainers & self._reached
        return called or own.partition(":")[2].startswith("__") or own.endswith(":forward")

    def _undecided(self, statement: Statement, all_: bool = False) -> list[str]:
        """The conditions that a statement surely depends on, and that the draft does not cover; all_: also those around
        statements that none of the code that was read runs, and those that differ from call to call."""
        rank, conditions = self.interpreter.reached.get(id(statement.node), (len(CERTAINTIES) - 2, ()))
        found = list(conditions) if CERTAINTIES[rank] in (PERHAPS, OPTION) else []
        for text, other in self.flow.conditions(statement, all_ and CERTAINTIES[rank] == UNCALLED, by_call=all_):
            found += [] if text in found or other in found else [text]
        return [one for one in found if one not in self.conditions]

    def _where(self, statement: Statement, all_: bool = False) -> str:
        """The conditions of a statement in words, or ""."""
        return f"only where {joined(found)}" if (found := self._undecided(statement, all_)) else ""

    def _line(self, statement: Statement, kinds: Kinds, verdict: str, why: str) -> Line:
        if verdict != LISTED:
            return Line(statement, kinds, verdict, why)
        around = trained_model.loops_around(self.flow, statement, self._runs, self._steps)
        loops = [" ".join(head.text.rstrip(":").split()) for head in around]
        first = [one for one in around[::-1] if id(one) not in self._said_of]  # its values are said once
        self._said_of |= {id(one) for one in first}
        said = [self.counting.values(s, why * (s is statement)) for s in (statement, *first)]
        said += [handed_values(statement, self.flow, self._runs), *self.counting.settings(statement)]
        values = ", ".join(dict.fromkeys(filter(None, said)))
        return Line(statement, kinds, verdict, why, ", inside of ".join(loops[::-1]), values)

    def _judged(self, statement: Statement) -> Line | None:
        bound = [self._values.bound.get(one, NONE) for one in statement.defines]
        kinds = frozenset().union(*map(self.kinds, statement.expressions), *bound)
        touches = kinds or id(statement) in self.live or id(statement) in self.misplaced
        if not touches and not self._runs_model(statement):
            return None
        verdict, why = self._verdict(statement, kinds)
        if verdict == LISTED:
            anew = id(statement.function) not in self._said_of  # only at a function's first line
            calls = called_where(statement, self.flow, self._runs, self._undecided, self._steps) if anew else ""
            self._said_of.add(id(statement.function))
            around = [one for all_ in (False, True) for one in self._undecided(statement, all_)]
            around += by_callers(statement, self.flow, self._runs)
            why = with_conditions(why, self._where(statement), around, calls)
        return self._line(statement, kinds, verdict, why)

    def _ends(self, lines: list[Line]) -> Iterator[Line]:
        """Statements that leave a loop with listed statements, or a round of it: they decide how often these run."""
        filled = {id(head) for line in lines if line.verdict == LISTED for head in line.statement.around}
        counted = {id(line.statement) for line in lines if line.verdict == LISTED}
        for statement in self.flow.statements:
            loops = trained_model.loops_around(self.flow, statement, self._runs, self._steps, DEPTH)  # its own
            leaves = isinstance(statement.node, (ast.Break, ast.Continue, ast.Return)) and id(statement) not in counted
            if leaves and loops and id(loops[-1]) in filled and not self._by_kind(statement):
                yield self._line(statement, NONE, LISTED, self._where(statement))

    def _overwrites(self, line: Line, listed: set[int]) -> bool:
        """Whether a statement that is omitted puts a value into a table that is listed."""
        targets = [one for one in getattr(line.statement.node, "targets", []) if isinstance(one, ast.Subscript)]
        judged = line.verdict == SILENT and id(line.statement) in self.live and self._by_kind(line.statement) is None
        behind = (one for target in targets if judged for one in self.flow.behind(target.value))
        return any(id(self.flow.of[id(one)]) in listed for one in behind if id(one) in self.flow.of)

    def _verdict(self, statement: Statement, kinds: Kinds) -> tuple[str, str]:
        if (silent := self._by_kind(statement)) is not None:
            return SILENT, silent
        if id(statement) in self.misplaced:
            return LISTED, self.misplaced[id(statement)]
        where, live = self._where(statement), id(statement) in self.live
        if id(statement) in self._data_files:
            return LISTED, ", ".join(filter(None, (self._data_files[id(statement)], where)))
        if live and chooses(self.flow, statement, self.roles.exact):
            return LISTED, where
        said = statement.stands_at(self.said)
        further = sum(self._changes(call) for call in statement.calls) > 1  # than the draft covers
        further = further or any(self._takes_in(c, statement) or self._values.fits(c) for c in statement.calls)
        further = (alters := self._altered(statement)) or further or trained_model.adds_by_lambda(statement, self.roots)
        if statement.stands_at(self.asked) and not further:
            return ASKED, "the draft asks for it"
        acts, computed = id(statement) in self.acting, any(map(self._gives_computed, statement.calls))
        otherwise = alters or computed or any(map(self._values.switches_otherwise, statement.calls))
        step = None if otherwise else self._step(statement)
        methods = {getattr(call.func, "attr", "") for call in statement.calls}
        moves = isinstance(statement.node, ast.Expr) and bool(methods & {"step", "backward"})
        said = said and not (moves or further or computed)  # a recipe has steps and backward passes in one place only
        lossless = LOSS in kinds and not {role_names.CRITERION, role_names.FUNCTIONAL} & {*self.roots.values()}
        lossless = lossless and not any(id(call) in self.roots for call in statement.calls)  # it makes an optimizer
        if lossless and (moves or step not in (None, passed_over.LOADS)) and not isinstance(statement.node, LOOPS):
            return LISTED, where or ", ".join(filter(None, (passed_over.NO_LOSS, self._where(statement, all_=True))))
        if step and self.roles.takes_more(statement, self.live):
            return LISTED, where or passed_over.PARTS
        if step or (said and (LOSS not in kinds or isinstance(statement.node, (ast.With, ast.AsyncWith)))):
            return (LISTED, where) if where else (DRAFTED, step or "a value of the draft comes from here")
        if not acts and not live:
            unused = passed_over.said_of(self.flow, statement, passed_over.UNUSED)
            return (LISTED, passed_over.RUNS) if self._runs_model(statement) else (SILENT, unused)
        changes = self._writes(statement) or id(statement) in self.flow.rebinds
        steps, loop = id(statement) in self._steps, isinstance(statement.node, LOOPS)
        if loop and steps and not step_order.plain_loop(self.flow, self.roles, statement):
            return LISTED, "a step runs in this loop"
        if isinstance(statement.node, HEADS) and not changes:
            return SILENT, f"{'a loop' if loop else 'a condition'}, whose statements are each accounted for"
        if where and ((acts and passed_over.leaves(self.flow, statement)) or "zero_grad" in methods):
            return LISTED, where
        opens = live and any(map(self._files.opens, statement.calls))  # the line says which file
        silent = None if opens else self._whitelisted(statement)
        silent = silent or (None if opens or where else self._plain_value(statement, kinds))
        return (SILENT, silent) if silent else (LISTED, where or passed_over.unpacks(statement) * (not kinds & HEAVY))

    def _takes_in(self, call: ast.Call, of: Statement) -> bool:
        """Whether something that the draft has is made in the arguments of another call: Moves(SGD(…), warmup)."""
        given = [part for one in (*call.args, *(k.value for k in call.keywords)) for part in ast.walk(one)]
        if id(call) in self.roots or not any(id(part) in self.roots for part in given):
            return False
        holds = getattr(call.func, "attr", "") in passed_over.CONTAINERS or self._plain_call(call)
        runs = any(self._hands(one) and call in (one, getattr(one.func, "value", None)) for one in of.calls)
        return not (holds or runs or passed_over.looked_through(name_of(self.flow, call)) or self.roles.exact(call))

    def _by_kind(self, statement: Statement) -> str | None:
        node, defines = statement.node, (ast.Import, ast.ImportFrom, *FUNCTIONS, ast.ClassDef)
        inside = self._within(statement) and id(statement.function) not in self.open
        if id(statement) in self.misplaced and not inside:
            return None
        if isinstance(node, defines):
            return "a definition, which does nothing until it is used"
        ends = isinstance(node, (ast.Raise, ast.Assert)) and id(statement) in self.acting
        plain = passed_over.does_nothing(node) or (isinstance(node, ast.Assert) and not self._writes(statement))
        if plain and not ends:
            return "it computes nothing that trains"
        if inside:
            if not self._of_part(statement):
                return "only models and data sets call this function, and they are accounted for where they are made"
            made = passed_over.MADE if id(statement.owner) in self._made else passed_over.NOT_MADE
            return f"inside {getattr(statement.owner, 'name', None)}, {made}"
        if not self._runs(statement):
            return passed_over.why_not(statement, self.flow)
        if statement.function is not None and id(statement.function) not in self.open and not ends:
            return "inside a function that only computes, which is accounted for where it is called"
        return None

    def _writes(self, of: Statement) -> bool:
        """Whether it changes something of training, or what a live statement reads."""
        return id(of) in self.acting or (id(of) in self.live and self._write_outside(of.calls))

    def _write_outside(self, calls: list[ast.Call]) -> bool:
        return any(trained_model.changes_outside(self.flow, one, self.live, self.open) for one in calls)

    def _within(self, statement: Statement) -> bool:
        """Whether it is part of a model's or data set's class, or of a function that only such classes call."""
        return self._of_part(statement) or id(statement.function) in self._only_in_parts

    def _of_part(self, statement: Statement) -> bool:
        """Whether it is part of a model's or data set's class; a class that trains itself is read line by line."""
        if statement.owner is None or {id(statement.owner), id(statement.function)} & (self.trainers | self._makers):
            return False
        made = self.flow.class_of(statement.owner)
        return made is not None and passed_over.is_part(made)

    def _step(self, statement: Statement) -> str | None:
        """Words for a statement of the step itself: batches, forward pass, loss, backward pass, update; else None."""
        node = statement.node
        if isinstance(node, (ast.For, ast.AsyncFor)):
            return "the loop over batches" if self.roles.loops_over(node.iter) == role_names.LOADER else None
        gives = isinstance(value := getattr(node, "value", None), ast.Yield) and isinstance(node, ast.Expr)
        value = value.value if isinstance(value, ast.Yield) and gives else value
        if (gives or isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return))) and value is not None:
            several, targets = isinstance(value, ast.Tuple), getattr(node, "targets", [])
            parts = value.elts if isinstance(value, ast.Tuple) else [value]
            unpacks = not several and any(isinstance(one, (ast.Tuple, ast.List)) for one in targets)
            given = {self.roles.exact(part) for part in parts}
            if parts and None not in given and (not unpacks or given == {role_names.BATCH} or self._hands(value)):
                simple = all(isinstance(one, (ast.Name, ast.Tuple, ast.Attribute)) for one in targets)
                words = "the step of a recipe" if given - {role_names.LOADER, "evaluation"} else passed_over.LOADS
                return words if simple else None
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return self.roles.updates(node.value)
        return (
            "the mean over micro-batches" if isinstance(node, ast.AugAssign) and self.roles.divides(statement) else None
        )

    def _hands(self, value: ast.expr) -> bool:
        """Whether this calls a function whose statements are accounted for one by one."""
        function = self.flow.function_of(value) if isinstance(value, ast.Call) else None
        return function is not None and id(function) in self.open

    def _whitelisted(self, statement: Statement) -> str | None:
        """The reason where all calls of a statement may be omitted, and it writes nothing that trains; else None."""
        node, calls, value = statement.node, statement.calls, getattr(statement.node, "value", None)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            reasons = [self.passed(one) for item in node.items if isinstance(one := item.context_expr, ast.Call)]
            plain = len(reasons) == len(node.items) and all(reasons) and not self._writes(statement)
            return reasons[0] if plain else None
        if isinstance(node, ast.Assign) and optimizer_sections.takes_all(self.interpreter, self.roles, node.value):
            return "a copy"
        if any(self.roles.hands_computed(one) or self._gives_computed(one) for one in calls):
            return None
        if isinstance(value, ast.Call) and isinstance(node, (ast.Expr, ast.Assign)):
            found = self._outer_reason(value)
            inner = [call for call in calls if call is not value]
            parts = (part for one in getattr(node, "targets", []) for part in getattr(one, "elts", [one]))
            kept = [one for one in parts if not isinstance(one, (ast.Name, ast.Starred, ast.Tuple))]
            kept = [one for one in kept if not (isinstance(one, ast.Attribute) and self._plain_holder(one.value))]
            plain_ = (self.passed(one) or self._plain_call(one) or self.roles.exact(one) for one in inner)
            used = isinstance(node, ast.Assign) and not all(plain_)  # the values in it are used later
            cut = any(isinstance(p, COMPUTES) for p in ast.walk(value.func)) or picks(self.roles, value, self._steps)
            changes = any(map(self._changes, inner)) or self._write_outside(inner) or id(statement) in self.acting
            if found and not kept and not changes and not used and not (cut and isinstance(node, ast.Assign)):
                return found
            called = self.flow.value(value.func)
            opened = isinstance(called, ScriptFunction) and id(called.node) in self.open
            if isinstance(called, ScriptFunction) and isinstance(node, ast.Expr) and id(statement) not in self.acting:
                return FOLLOWED if opened else "it calls a function in which nothing trains"
            if opened and not any(map(self._changes, inner)) and not (kept and id(statement) in self.acting):
                return FOLLOWED
            if isinstance(called, ScriptClass) and id(called.node) not in self._driven:
                start, given = id(getattr(called.find("__init__"), "node", None)), [*value.args, *value.keywords]
                begins = given or set_for_methods(self.flow, called, self.live)
                chosen = self._where(statement) and optimizer_sections.set_elsewhere(statement, self.flow)
                chosen = chosen or self.counting.starts_anew(statement)
                if not called.family() and (start in self.open or not begins) and not chosen:
                    return "it makes an object, whose use is accounted for one by one"
        return None

    def _gives_computed(self, call: ast.Call) -> bool:
        """Whether a call computes an argument that the function hands to what trains: fit(net, rate / 3)."""
        given = [one for one in (*call.args, *(k.value for k in call.keywords)) if id(one) in self._read]
        return any(computes(one, self._is_plain, self._plain_call) for one in given)

    def _is_plain(self, node: ast.expr) -> bool:
        """Whether a value is known, a recipe's step has it, or it is made by a call that is accounted for by itself."""
        found = self.flow.value(node)
        made = isinstance(node, ast.Call) and (self._hands(node) or isinstance(found, ScriptObject))
        made = made or measures(self.flow, node)
        return made or self.roles.exact(node) is not None or (is_known(found) and not self.counting.of(node))

    def _outer_reason(self, call: ast.Call) -> str | None:
        """Why the outermost call may be omitted; for a method of a call's result, that call has to be, too."""
        found = self.passed(call)
        if found is not None and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call):
            inner = call.func.value
            return found if self.passed(inner) or self.roles.exact(inner) else None
        return found

    def _plain_call(self, call: ast.Call) -> bool:
        """Whether a call makes a plain value from plain values, as int(x) and "a".lower(), or may be omitted."""
        of = self.flow.value(call.func.value) if isinstance(call.func, ast.Attribute) else None
        text = isinstance(of, Constant) and isinstance(of.value, str)
        return text or self.passed(call) is not None or name_of(self.flow, call) in passed_over.PLAIN_FUNCTIONS

    def _plain_value(self, statement: Statement, kinds: Kinds) -> str | None:
        """The reason where a statement only computes a known value, whose uses are drafted or listed; else None."""
        node = statement.node
        if (given := passed_over.given_on(node)) is not None and id(statement) not in self.acting:
            return "it passes values on" if all(map(relevance.is_path, given)) else None
        unseen = self._unseen & set(map(id, statement.defines))  # what reads it does not show the change
        hidden = unseen or self.counting.too_long(node) or self.counting.starts_anew(statement)
        hidden = hidden or passed_over.changes_library(self.flow, statement)
        if hidden or not isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return)):
            return None  # its uses do not show that
        begins = getattr(statement.function, "name", "") == "__init__" and isinstance(node.value, ast.Name)
        handed = begins or isinstance(node, ast.Return)  # it stores the object's arguments
        heavy = kinds & HEAVY or (LOSS in kinds and id(statement) in self.acting)
        if node.value is None or (heavy and not handed):
            return None
        written = (part for one in step_order.targets_of(statement) for part in getattr(one, "elts", [one]))
        kept = [one for one in written if isinstance(one, (ast.Attribute, ast.Subscript))]
        others = [one for one in kept if not self._plain_holder(one.value)]
        changed = (isinstance(one, ast.Subscript) or self._values.of_a_library(one.value) for one in others)
        stays = kept and CERTAINTIES[self.interpreter.reached.get(id(node), (0, ()))[0]] == PERHAPS
        if stays or any(self._values.is_data(one.value) for one in kept) or any(changed):
            return None  # it changes an existing object
        if all(isinstance(part, passed_over.LITERAL) for part in ast.walk(node.value)):
            return passed_over.said_of(self.flow, statement, passed_over.USED)
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        if isinstance(node, ast.Return) and id(statement) not in self.acting and all(map(relevance.is_path, parts)):
            return "it passes values on"
        found = self.flow.value(node.value)
        if isinstance(found, (ParsedArguments, ArgumentParser)):
            return "it reads the command line or the environment"
        called = [part for part in ast.walk(node.value) if isinstance(part, ast.Call)]
        if isinstance(node.value, ast.IfExp) and isinstance(found, Constant) and found.value is None:
            return "with the arguments' defaults it is None"
        if any(not self._plain_call(one) for one in called):
            return None  # of a list that is filled in a loop, only the first round is known
        if called and not kinds:
            why = next((why for one in called if (why := self.passed(one))), None)
            known = is_known(found) and not self._files.read_for(node.value) and not self.counting.of(node.value)
            return (None if scales(node.value) else why) or ("a value known by reading" if known else None)
        if self.counting.of(node.value) or id(statement) in self.counting.carried:
            return None  # only its first value is known
        empty = isinstance(found, (ListValue, DictValue)) and not getattr(found, "items", getattr(found, "pairs", 0))
        if empty or isinstance(found, Constant) or (found is not None and is_known(found)):
            return "a value known by reading, which is accounted for where it is used"
        copied = isinstance(node.value, ast.Name) and not passed_over.unpacks(statement)
        copied = copied and not step_order.taken_before(self.flow, statement, self._runs)
        return "a copy" if copied and (begins or not kept) else None
