"""Branches that ran or did not, also by a value or a shape; loops over modules.

The kinds of expressions in a branch that did not run are inferred from the names in the file, by unexecuted_code.py.
Where that does not suffice, the branch raises. A loop over modules may pick one of them, as TorchScript required:

    for i, layer in enumerate(layers):
        if i == n:
            out = layer(x)

MindSpore compiles every branch of such a loop; a feature pyramid's step did not compile within five minutes. So the
loop is replaced by what it picks, `layers[n](x)`, where every value of n in the run is an index of the loop.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Mapping

from ...library_names import NOT_CONVERTED
from ...source_files import REFUSED, blocks_of, comment, is_comment, local_names, of_gap, substitute
from ..observe.instrument import ABOVE, AFTER, OF_BLOCK, Note
from ..observe.observations import ModuleKind, TensorKind, callees_of, constants_of, kinds_of, reached, replacing
from .context import Context, Problem, Stage, Unwritable, handles
from .devices_and_no_grad import asks_for_device, before_leaving
from .graph_mode import in_blocks, is_pure, iterated, negated
from .replaced_methods import named_cells
from .signatures import of_inner
from .unexecuted_code import SAFE, Reader, unseen_expression, unseen_statements, was_observed

SIMPLE, ROUNDS = (ast.Raise, ast.Pass), (ast.Continue, ast.Break)
LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def writable(node: ast.expr, context: Context) -> bool:
    """Whether all of an expression has a counterpart."""
    try:
        with context.strictly():
            context.visit(copy.deepcopy(node))
    except Unwritable:
        return False
    return True


def select_branches(function: ast.FunctionDef, context: Context, *, entered: bool = False) -> list[ast.stmt]:
    """The statements of a function in their order; its docstring stays.

    Code that did not run is inferred, and marked; where too little is known of it, it raises in the new file, naming
    its line. Where a tensor's value decides, it may run with other inputs: then it is reported as missing. A condition
    that cannot be written is replaced by its value in the run; where an input's shape decides, a comment says so.

    entered: whether the function is the model's own `forward`.
    """
    values, inputs = ValueDependence(function), InputDependence(function, entered=entered)
    pruning = _Pruning(values, inputs, context, function.name == "__init__")
    if any(map(reached, function.body)):
        return pruning.block(function.body)
    first = int(ast.get_docstring(function) is not None)
    return [*function.body[:first], *pruning.unseen(function.body[first:])]


def refused(text: str, *body: ast.stmt) -> ast.stmt:
    """A statement that raises, in place of others, whose names count as read."""
    raised = ast.Call(ast.Name("NotImplementedError", ast.Load()), [ast.Constant(text)], [])
    found = ast.copy_location(ast.Raise(of_gap(raised, *body), None), body[0])
    vars(found)[REFUSED] = True
    return found


class _Pruning:
    def __init__(self, values: ValueDependence, inputs: InputDependence, context: Context, checks: bool) -> None:
        self.values, self.inputs, self.context = values, inputs, context
        self.reader = Reader(context)
        self.checks = checks  # whether assertions are kept, as where a model is made

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements that remain of a block."""
        left: list[ast.stmt] = []
        given: list[Note] = []
        for index, statement in enumerate(body):
            if index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                left.append(statement)
            elif reached(statement) or isinstance(statement, ast.Nonlocal):  # which is not observed
                found = self.statement(statement)
                given = self.hand_on(statement, found, given)
                left += found
            elif index and reached(body[index - 1]):  # every run left the block before this statement
                return left if isinstance(body[index - 1], LEAVING) else [*left, *self.unseen(body[index:])]
        return left

    def hand_on(self, node: ast.stmt, left: list[ast.stmt], given: list[Note]) -> list[Note]:
        """Give the comments of a statement to the first one that is left of it, such as a branch's, after those that
        were given; returns those of the block, where nothing is left."""
        lines = [one.lineno for one in left if hasattr(one, "lineno")]
        own = [] if node.lineno in lines else [note for note in self.context.notes(node) if note.place != AFTER]
        if lines:
            above = [note._replace(place=ABOVE) for note in given + own]
            self.context.moved[lines[0]] = above + self.context.moved.get(lines[0], [])
        return [] if lines else [note for note in given + own if note.place == OF_BLOCK]

    def statement(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements that remain of one that ran."""
        if isinstance(statement, ast.If):
            return self.question(statement)
        if isinstance(statement, (ast.For, ast.While)):
            return self.loop(statement)
        if isinstance(statement, ast.With):
            notes, statement.body = split_comments(self.block(statement.body))
            return [*notes, statement] if statement.body else notes
        if isinstance(statement, ast.FunctionDef):
            statement.body = select_branches(statement, self.context) or [ast.Pass()]
        if isinstance(statement, ast.Try):
            return [statement] if any(self.ran(one.body) for one in statement.handlers) else self.tried(statement)
        if isinstance(statement, ast.Assert):
            test, said = statement.test, statement.msg
            if not self.checks and (self.values.decides(test) or not writable(test, self.context)):
                return []
            return [replacing(ast.Assert(test, None if said is None else self.message(said)), statement)]
        return [] if isinstance(statement, ast.Pass) else [statement]

    def message(self, text: ast.expr) -> ast.expr | None:
        """The text of an assertion that held, read as what did not run; None where it cannot be written."""
        found = copy.deepcopy(text)
        if all(_built_in(inner.func) for inner in ast.walk(text) if isinstance(inner, ast.Call)):
            return found
        try:
            self.reader.expression(found)
        except Unwritable:
            return None
        return found if writable(found, self.context) else None

    def tried(self, statement: ast.Try) -> list[ast.stmt]:
        """A `try` in which nothing was raised: as it is where Python runs it; MindSpore has its statements alone."""
        replaces = all(isinstance(one.body[-1], ast.Raise) for one in statement.handlers)
        last = statement.finalbody if replaces or not self.context.in_python else []
        statement.body, statement.orelse = (before_leaving(part, last) for part in (statement.body, statement.orelse))
        parts = [self.block(part) for part in (statement.body, statement.orelse, statement.finalbody)]
        for handler in () if replaces else statement.handlers:
            if self.context.in_python:
                handler.body = self.unseen(handler.body)
            else:
                caught = f"{ast.unparse(handler).partition(':')[0]}: MindSpore compiles no try, so the error goes on"
                self.context.program.left_out.append(Problem(self.context.file, handler.lineno, caught))
        if replaces or not self.context.in_python:
            return [kept for part in parts for kept in part]
        statement.body, statement.orelse, statement.finalbody = parts
        return [statement]

    def loop(self, statement: ast.For | ast.While) -> list[ast.stmt]:
        """A loop, also one whose body never ran."""
        if self.ran(statement.body):
            notes, body = split_comments(self.block(statement.body))
        elif isinstance(statement, ast.While) and self.values.decides(statement.test):
            notes, body = [], [self.undecided(statement, "a loop that did not run")]
        else:
            if isinstance(statement, ast.For):
                self.reader.stored(statement.target, self.reader.items(kinds_of(statement.iter)))
            notes, body = [], self.unseen(statement.body)
        statement.body, statement.orelse = body, self.block(statement.orelse)
        return [*notes, statement] if statement.body else notes

    def question(self, statement: ast.If) -> list[ast.stmt]:
        """An `if` with its branches."""
        ran = self.ran(statement.body), self.ran(statement.orelse)
        both = ran[0] and (ran[1] or not statement.orelse)
        if (answer := _decided(statement.test, self.context)) is not None:
            taken = statement.body if answer else statement.orelse
            return self.block(taken) if self.ran(taken) else self.unseen(taken)
        if not both and not self.values.decides(statement.test):
            if writable(statement.test, self.context):
                with self.reader.within(statement.test):
                    with self.reader.narrowed(statement.test):
                        body = self.block(statement.body) if ran[0] else self.unseen(statement.body)
                    other = self.block(statement.orelse) if ran[1] else self.unseen(statement.orelse)
                if not body and other:
                    return [replacing(ast.If(negated(statement.test), other, []), statement)]
                return [replacing(ast.If(statement.test, body or [ast.Pass()], other), statement)]
            if asks_for_device(statement.test):
                text = f"{ast.unparse(statement.test)} depends on a device, and cannot be written"
                return [refused(self.context.did_not_run(statement, text), statement)]
            _assume(statement.test, self.context)
        above, body = split_comments(self.block(statement.body))
        below, other = split_comments(self.block(statement.orelse))
        return [*above, *below, *self.answered(statement, body, other)]

    def answered(self, statement: ast.If, body: list[ast.stmt], other: list[ast.stmt]) -> list[ast.stmt]:
        """An `if` with what remains of its branches."""
        if self.values.decides(statement.test):
            if not self.ran(statement.body) and all(isinstance(inner, ROUNDS) for inner in statement.body):
                body = [*statement.body]  # these need no observation
            elif not self.ran(statement.body) and not all(isinstance(inner, SIMPLE) for inner in statement.body):
                body = self.by_value(statement, statement.body)
            elif statement.orelse and not self.ran(statement.orelse):
                other = self.by_value(statement, statement.orelse)
        elif not self.ran(statement.orelse) and statement.orelse:
            return [*self.said(statement.orelse, statement, always=True), *body]  # the test was always true
        elif not self.ran(statement.body):
            return [*self.said(statement.body, statement, always=False), *other]  # or never
        if body:
            return [replacing(ast.If(statement.test, body, other), statement)]
        return [replacing(ast.If(negated(statement.test), other, []), statement)] if other else []

    def said(self, dropped: list[ast.stmt], statement: ast.If, *, always: bool) -> list[ast.stmt]:
        """The comment on a branch that is left out; none on one that only raises."""
        if all(isinstance(inner, SIMPLE) for inner in dropped):
            return []
        return self.inputs.note(statement.test, always=always)

    def ran(self, body: list[ast.stmt]) -> bool:
        """Whether any of the statements was reached."""
        return any(map(reached, body))

    def unseen(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements that did not run, by what can be inferred; else an error in their place."""
        if not body:
            return []
        first = body[0]
        if len(body) == 1 and isinstance(first, ast.If):  # an `elif`
            try:
                with self.context.strictly():
                    self.reader.expression(first.test)
                    self.context.visit(copy.deepcopy(first.test))
                with self.reader.narrowed(first.test):
                    body = self.unseen(first.body)
                return [ast.copy_location(ast.If(first.test, body, self.unseen(first.orelse)), first)]
            except Unwritable:
                pass
        try:
            found = unseen_statements(body, self.reader, checks=self.checks)
        except Unwritable as error:
            return [refused(self.context.did_not_run(first, str(error)), *body)]
        plain = all(isinstance(statement, SIMPLE) for statement in body)
        return found if plain else [comment("not run"), *found]

    def by_value(self, statement: ast.If, body: list[ast.stmt]) -> list[ast.stmt]:
        """A branch that did not run and may run by a tensor's value, by what can be inferred; else it is missing."""
        try:
            with self.reader.within(statement.test):
                found = unseen_statements(copy.deepcopy(body), self.reader, checks=self.checks)
        except Unwritable:
            return [self.undecided(statement, "a branch that did not run")]
        return [comment("not run"), *found]

    def undecided(self, statement: ast.If | ast.While, what: str) -> ast.stmt:
        """A statement that raises, for those that did not run and may run by a tensor's value."""
        text = f"{what}: a tensor's value decides, in {ast.unparse(statement.test)}"
        by_inputs = not self.context.builds
        guard = None if by_inputs else refused(self.context.did_not_run(statement, text), *statement.body)
        return guard or ast.Expr(self.context.missing(statement, text))


def _assume(test: ast.expr, context: Context) -> None:
    """Note a condition whose value in the run is taken."""
    text = f"{ast.unparse(test)} cannot be written, and is assumed to be as in the run"
    context.program.left_out.append(Problem(context.file, test.lineno, text))


class InputDependence:
    """Finds the conditions of one function that depend on the model's inputs.

    entered: whether the function is the model's own `forward`, whose arguments are the inputs.
    """

    def __init__(self, function: ast.FunctionDef, *, entered: bool) -> None:
        given = function.args
        arguments = (*given.posonlyargs, *given.args, *given.kwonlyargs)
        self.inputs = {argument.arg for argument in arguments if argument.arg != "self"} if entered else set()
        self.names = set(self.inputs)
        self.silent = function.name == "__init__"  # there are no inputs yet
        before = -1
        while before < len(self.names):
            before = len(self.names)
            for node in ast.walk(function):
                if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and self._given(node.value):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    for target in targets:
                        self.names |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and _stored(n)}

    def note(self, test: ast.expr, *, always: bool) -> list[ast.stmt]:
        """The comment for a condition on the inputs that was always true in the run, or never; none for a condition on
        anything else, such as the model's own options."""
        text = " ".join(ast.unparse(test).split())
        if self.silent or "torch" in text or "isinstance" in text or not self._decides(test):
            return []
        return [comment(f"{'always' if always else 'never'} with the example inputs: {text}")]

    def _decides(self, test: ast.expr) -> bool:
        if isinstance(test, ast.BoolOp):
            return any(map(self._decides, test.values))
        if isinstance(test, ast.UnaryOp):
            return self._decides(test.operand)
        if isinstance(test, ast.Compare) and ast.unparse(test.comparators[-1]) == "None":  # an argument not given
            return isinstance(test.left, ast.Name) and test.left.id in self.inputs
        return self._given(test)

    def _given(self, node: ast.AST | None) -> bool:
        """Whether an expression names a tensor, or something computed from one."""
        names = [inner for inner in ast.walk(node) if isinstance(inner, ast.Name)] if node is not None else []
        return any(name.id in self.names or self._tensor(name) for name in names)

    def _tensor(self, node: ast.Name) -> bool:
        return any(isinstance(k, TensorKind) and not k.parameter for k in kinds_of(node))


@handles(syntax=[ast.Expr], stage=Stage.IN_PLACE)
def keep_comment(node: ast.Expr, context: Context) -> list[ast.stmt] | None:
    """A comment stays."""
    return [node] if is_comment(node) else None


def _stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


ASKS = {"torch.Tensor.item", "torch.Tensor.tolist", "torch.Tensor.numpy", "torch.equal", "torch.allclose"}
NUMBERS = {"builtins.bool", "builtins.int", "builtins.float"}


class ValueDependence:
    """Finds the conditions of one function that depend on tensors' values."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.names: set[str] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and self._number(node.value):
                self.names |= {target.id for target in node.targets if isinstance(target, ast.Name)}

    def decides(self, test: ast.expr) -> bool:
        """Whether a condition is a tensor, or depends on a number taken from one."""
        return self._tensor(test) or self._number(test)

    def _tensor(self, node: ast.AST) -> bool:
        return any(isinstance(kind, TensorKind) for kind in kinds_of(node))

    def _number(self, node: ast.expr) -> bool:
        return any(map(self._taken, ast.walk(node)))

    def _taken(self, node: ast.AST) -> bool:
        """Whether a part of an expression makes a number or a boolean from a tensor."""
        if isinstance(node, ast.Call):
            callees = set(callees_of(node))
            return bool(callees & ASKS) or (bool(callees & NUMBERS) and any(map(self._tensor, node.args)))
        if isinstance(node, ast.Name):
            return node.id in self.names
        return isinstance(node, (ast.BoolOp, ast.UnaryOp)) and self._asked(node)

    def _asked(self, node: ast.BoolOp | ast.UnaryOp) -> bool:
        """Whether Python evaluates the truth of a tensor, as in `x.any() and y`."""
        if isinstance(node, ast.BoolOp):
            return any(map(self._tensor, node.values))
        return isinstance(node.op, ast.Not) and self._tensor(node.operand)


def _decided(test: ast.expr, context: Context) -> bool | None:
    """The value of a condition that one part of it alone decides, such as a tensor's device; None for any other."""
    decides = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)
    for value in test.values if isinstance(test, ast.BoolOp) and asks_for_device(test) else ():
        try:
            with context.strictly():
                if _known(_simpler(_side(copy.deepcopy(value), context))) is decides:
                    return decides
        except Unwritable:
            continue
    return None


@handles(syntax=[ast.IfExp])
def conditional_expression(node: ast.IfExp, context: Context) -> ast.expr:
    """`a if test else b`, where one of the two may not have run."""
    seen = [side for side in (node.body, node.orelse) if was_observed(side)]
    if len(seen) == 1 and not writable(node.test, context):
        if asks_for_device(node.test):
            said = f"{ast.unparse(node.test)} depends on a device, and cannot be written"
            text = ast.Constant(context.did_not_run(node, said))
            return of_gap(ast.Call(context.name(NOT_CONVERTED), [text], []), node)
        _assume(node.test, context)
        found: ast.expr = context.visit(seen[0])
        return found
    test = _simpler(context.visit(node.test))
    if (known := _known(test)) is not None:
        return _side(node.body if known else node.orelse, context)
    body = _where(test, node.body, context)
    return replacing(ast.IfExp(test, body, _where(ast.UnaryOp(ast.Not(), test), node.orelse, context)), node)


@handles(syntax=[ast.BoolOp])
def boolean_expression(node: ast.BoolOp, context: Context) -> ast.expr:
    """`a or b`, where the last may not have run."""
    values: list[ast.expr] = []
    for value in node.values:
        before = ast.BoolOp(node.op, [*values]) if len(values) > 1 else next(iter(values), ast.Constant(True))
        reached = ast.UnaryOp(ast.Not(), before) if values and isinstance(node.op, ast.Or) else before
        values.append(_where(reached, value, context))
    return replacing(ast.BoolOp(node.op, values), node)


def _where(test: ast.expr, side: ast.expr, context: Context) -> ast.expr:
    """A part that is computed under a condition, rewritten; checks of its values get the same condition."""
    outer, context.before = context.before, []
    found = _side(side, context)
    guards, context.before = context.before, outer
    always = isinstance(test, ast.Constant)
    context.before += guards if always or not guards else [ast.If(copy.deepcopy(test), guards, [])]
    return found


def observe_statically(node: ast.expr, context: Context) -> ast.expr | None:
    """A value at a file's top level that calls torch; None for any other, and where it cannot be inferred."""
    resolve = context.program.names(context.file).name
    calls = [inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    if not any(resolve(call).startswith("torch.") for call in calls):
        return None
    try:
        return unseen_expression(node, context)
    except Unwritable:
        return None


def _side(node: ast.expr, context: Context) -> ast.expr:
    """The expression, rewritten; an error in its place where it did not run and too little is known of it."""
    if was_observed(node):
        found: ast.expr = context.visit(node)
        return found
    try:
        return unseen_expression(node, context)
    except Unwritable as error:
        if context.strict:
            raise
        text = context.did_not_run(node, str(error))
        return of_gap(ast.Call(context.name(NOT_CONVERTED), [ast.Constant(text)], []), node)


@handles(syntax=[ast.Lambda])
def uncalled(node: ast.Lambda, context: Context) -> ast.expr | None:
    """A lambda that was never called, by what can be inferred, or one that raises; None for any other."""
    found = node if was_observed(node) else _side(node, context)
    return None if found is node else found if isinstance(found, ast.Lambda) else ast.Lambda(node.args, found)


def _built_in(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in SAFE


def fold_constant_tests(statement: ast.If) -> list[ast.stmt]:
    """The `if` without parts of its condition that are literally True or False; or one of its branches."""
    statement.test = _simpler(statement.test)
    if isinstance(statement.test, ast.Constant) and isinstance(statement.test.value, bool):
        return statement.body if statement.test.value else statement.orelse
    return [statement]


def _simpler(test: ast.expr) -> ast.expr:
    """A simpler expression with the same truth value."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test.operand = _simpler(test.operand)
        known = _known(test.operand)
        return test if known is None else ast.Constant(not known)
    if not isinstance(test, ast.BoolOp):
        return test
    decides = isinstance(test.op, ast.Or)  # True or …, False and …
    values: list[ast.expr] = []
    for value in map(_simpler, test.values):
        known = _known(value)
        if known is None or known is decides:
            values.append(value)
        if known is decides and all(map(is_pure, values[:-1])):
            return ast.Constant(decides)
        if known is decides:
            break  # the rest is never computed
    if not values:
        return ast.Constant(not decides)
    return values[0] if len(values) == 1 else replacing(ast.BoolOp(test.op, values), test)


def _known(node: ast.expr) -> bool | None:
    """The value of a literal True or False; None for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None


LIST = ModuleKind("torch.nn.ModuleList")


def pick_by_index(function: ast.FunctionDef) -> None:
    """Replace such loops by the module that they pick, without an assignment before that it overwrites; in place."""

    def change(block: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in block:
            inside = _picked(statement)
            if inside and found and _lost(found[-1], inside[0]):
                found.pop()
            found += inside or [statement]
        return found

    in_blocks(function, change)


def _picked(loop: ast.stmt) -> list[ast.stmt]:
    """The statements of a loop for the one module that it picks; empty for any other statement."""
    if not isinstance(loop, ast.For) or loop.orelse or len(loop.body) != 1 or not isinstance(loop.body[0], ast.If):
        return []
    test, body = loop.body[0].test, loop.body[0].body
    match loop:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=number), ast.Name(id=module)]),
            iter=ast.Call(func=ast.Name(id="enumerate"), args=[modules], keywords=[]),
        ):
            pass
        case _:
            return []
    if kinds_of(modules) != [LIST] or not is_pure(modules) or loop.body[0].orelse:
        return []
    match test:
        case ast.Compare(left=ast.Name(id=left), ops=[ast.Eq()], comparators=[wanted]) if left == number:
            known, picked = constants_of(test.left), constants_of(wanted)
        case _:
            return []
    if not known or not picked or not set(picked) <= set(known) or not is_pure(wanted):
        return []
    if any(isinstance(node, (ast.Break, ast.Continue, ast.Return)) for part in body for node in ast.walk(part)):
        return []
    names = {node.id for node in ast.walk(wanted) if isinstance(node, ast.Name)}
    stored = {node.id for part in body for node in ast.walk(part) if _stored(node) and isinstance(node, ast.Name)}
    if stored & {number, module} or names & (stored | {number, module}):
        return []
    picking = replacing(ast.Subscript(modules, wanted, ast.Load()), modules)
    by = {number: wanted, module: picking}
    return [substitute(part, lambda node: _picks(node, by)) for part in body]


def split_comments(body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The comments of a block that has nothing else, and the remaining block."""
    return (body, []) if all(map(is_comment, body)) else ([], body)


def _picks(node: ast.AST, by: Mapping[str, ast.expr]) -> ast.expr | None:
    """The expression to put in place of one of the loop's names, with what was observed of the name there."""
    picked = by.get(node.id) if isinstance(node, ast.Name) else None
    return None if picked is None else replacing(copy.deepcopy(picked), node)


def _lost(before: ast.stmt, after: ast.stmt) -> bool:
    """Whether a statement only assigns a value that the next one overwrites before it is read."""
    if not isinstance(before, ast.Assign) or not isinstance(after, ast.Assign) or not is_pure(before.value):
        return False
    texts = {ast.unparse(target) for target in (*before.targets, *after.targets)}
    target = after.targets[0]
    reads = {node.id for node in ast.walk(after.value) if isinstance(node, ast.Name)}
    return len(texts) == 1 and isinstance(target, ast.Name) and target.id not in reads


@handles(syntax=[ast.With, ast.Try, ast.FunctionDef, ast.ClassDef], stage=Stage.STATEMENT)
def blocks(node: ast.stmt, context: Context) -> list[ast.stmt]:
    """A statement with the statements inside it rewritten."""
    own = context.own
    if isinstance(node, ast.ClassDef) and node.bases:
        raise Unwritable(f"{node.name}, a class inside of a function: define it at the file's top")
    if isinstance(node, ast.FunctionDef):
        context.own = set(local_names(node))
        node.decorator_list = [new for old in node.decorator_list for new in _decorator(old, context)]
        of_inner(node, context)
    for item in node.items if isinstance(node, ast.With) else ():
        item.context_expr = context.visit(item.context_expr)
    for block in blocks_of(node):
        block[:] = [new for old in block for new in context.statement(old)]
    context.own = own
    return [node]


def _decorator(node: ast.expr, context: Context) -> list[ast.expr]:
    """A decorator of a function inside of one, with its import where it is Python's. None for functools.wraps, which
    only copies a name: MindSpore's compiler would read the function that it names, and not this one."""
    name = context.program.names(context.file).name(node.func if isinstance(node, ast.Call) else node)
    if name == "functools.wraps":
        return []
    itself = context.name(name) if name.partition(".")[0] in sys.stdlib_module_names else getattr(node, "func", node)
    return [ast.Call(itself, node.args, node.keywords) if isinstance(node, ast.Call) else itself]


@handles(syntax=[ast.If, ast.While], stage=Stage.STATEMENT)
def condition(node: ast.If | ast.While, context: Context) -> list[ast.stmt]:
    """An `if` or `while`, without parts whose condition is literally False; nothing where it is empty."""
    blocks(node, context)
    node.test = context.visit(node.test)
    empty = not node.body and not node.orelse
    return [] if empty else fold_constant_tests(node) if isinstance(node, ast.If) else [node]


@handles(syntax=[ast.For], stage=Stage.STATEMENT)
def loop(node: ast.For, context: Context) -> list[ast.stmt]:
    """A loop; MindSpore returns all modules with their names, and named ones as a dictionary."""
    blocks(node, context)
    if isinstance(node.iter, ast.Call) and callees_of(node.iter) == ["torch.nn.Module.modules"]:
        assert isinstance(node.iter.func, ast.Attribute)
        node.target = ast.Tuple([ast.Name("_", ast.Store()), node.target], ast.Store())
        node.iter = named_cells(context.visit(node.iter.func.value), context)
    else:
        node.target, node.iter = context.visit(node.target), iterated(node.iter, context)
    return [node] if node.body else []
