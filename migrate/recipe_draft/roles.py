"""A value's role in the training step that a recipe describes: the model, a batch, its loss; and its kinds: which of
the six parts of training it belongs to, by how it is made and how it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ...mappings.aliases import row_of
from .. import library_names as families
from ..read_script.abstract_values import (
    Constant,
    LibraryName,
    LibraryObject,
    ScriptClass,
    ScriptFunction,
    ScriptObject,
    Value,
    known,
)
from ..read_script.interpreter import CERTAINTIES, OPTION
from . import passed_over
from .data_flow import ADDS, EACH, GIVEN, INNER, IS, LOOPS, NAMED, Definition, Flow, Statement
from .passed_over import name_of
from .trained_model import MODES, changes_outside, in_evaluation, several_train

MODEL, OPTIMIZER, SCHEDULE, CRITERION, LOADER = "model", "optimizer", "schedule", "criterion", "loader"
SCALER, EMA = "scaler", "ema"  # of the loss; of the weights
BATCH, INPUT, TARGET, OUTPUT, LOSS = "batch", "input", "target", "output", "loss"
ENTRY = "entry"  # of a batch, other than the input and the label
FUNCTIONAL = "functional loss"  # the call itself returns the loss
OBJECTS = (MODEL, OPTIMIZER, SCHEDULE, CRITERION, LOADER, SCALER, EMA)
STRONGEST = (LOSS, OUTPUT, TARGET, INPUT, BATCH, ENTRY)  # an expression of several roles has the first of these
MOVES = ("to", "cuda", "cpu", "train", "eval")  # methods that return their object
WRAPPERS = (
    *("torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.DistributedDataParallel"),
    *("torch.nn.SyncBatchNorm.convert_sync_batchnorm", "torch.compile", "apex.parallel.DistributedDataParallel"),
)


class Roles:
    """The roles of a script's values, from those of the calls that a draft chose (`roots`: a node -> its role)."""

    def __init__(self, flow: Flow, roots: dict[int, str], accumulate: int) -> None:
        self.flow = flow
        self.roots = roots
        self.accumulate = accumulate
        self.open: set[int] = set()  # the functions whose statements are accounted for one by one
        self.steps: set[int] = set()  # those that hold a step
        self._active: set[int] = set()
        self._parts: set[tuple[int, tuple[int, ...]]] = set()  # of results of calls, as above
        self._found: dict[int, str | None] = {}
        self._bound: dict[Definition, str | None] = {}
        self._several = several_train(flow.interpreter)
        self._propagate()

    def _propagate(self) -> None:
        """Find the role of every definition, from those that are given to those computed from them."""
        definitions = [d for statement in self.flow.statements for d in statement.defines]
        definitions += [d for found in self.flow.reads.values() for d in found if d.way == GIVEN]
        definitions = [d for d in dict.fromkeys(definitions) if d.way not in (ADDS, NAMED)]
        for _ in range(12):
            self._found = {}
            before = dict(self._bound)
            for definition in definitions:
                self._bound[definition] = self.role_of(definition)
            if before == self._bound:
                break
        self._found = {}

    def exact(self, node: ast.expr) -> str | None:
        """The role of an expression that computes only what a recipe's step computes, or None."""
        root = self.roots.get(id(node))
        if isinstance(node, ast.Call):
            called = self._call(node)
            return called if root in (None, FUNCTIONAL) else root
        if root is not None:
            return root
        if isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and self._whole(node)):
            return self.role(node)
        if isinstance(node, ast.Subscript):
            return self._part(self.role(node.value), node.slice)
        if isinstance(node, ast.IfExp) and isinstance(node.orelse, ast.Constant) and not self._several:  # or None
            return self.exact(node.body)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and self.role(node.left) == LOSS:
            return LOSS if self.divided(node) and self.exact(node.left) else None
        return None

    def counts(self, node: ast.expr) -> bool:
        """Whether this is the number of micro-batches, which may be 1."""
        return self.number(node) == self.accumulate

    def divided(self, node: ast.BinOp) -> bool:
        """Whether this is a loss divided by the number of micro-batches."""
        return isinstance(node.op, ast.Div) and self.counts(node.right) and self.role(node.left) == LOSS

    def divides(self, statement: Statement) -> bool:
        """Whether a statement divides a loss by the number of micro-batches."""
        node = statement.node
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            return self.role(node.target) == LOSS and self.counts(node.value)
        return any(isinstance(part, ast.BinOp) and self.divided(part) for part in statement.nodes)

    def divides_before(self, backward: Statement) -> bool:
        """Whether what a backward pass starts from is divided so on the way to it, whatever computes it."""
        behind = (part for one in backward.expressions for of in self.flow.behind(one) for part in ast.walk(of))
        quotients = (part for part in behind if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div))
        return any(self.counts(part.right) for part in quotients)

    def _whole(self, node: ast.Attribute) -> bool:
        """Whether an attribute is a value that the script put there, or the object in a wrapper."""
        return node.attr == "module" or node.attr in self.flow.attributes

    def role(self, node: ast.expr) -> str | None:
        """The role of an expression, also where it computes something else on the way."""
        if id(node) in self._found:
            return self._found[id(node)]
        if id(node) in self._active:
            return None
        self._active.add(id(node))
        try:
            found = self._role(node)
        finally:
            self._active.discard(id(node))
        self._found[id(node)] = found
        return found

    def _role(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return self._one(self.flow.reads.get(id(node), ()))
        if isinstance(node, ast.Attribute):
            if node.attr == "module" and self.role(node.value) == MODEL:
                return MODEL
            written = self.flow.attributes.get(node.attr)
            if node.attr in passed_over.LEAVING_ATTRIBUTES or not written:
                return self._loosely([node.value]) if node.attr not in passed_over.LEAVING_ATTRIBUTES else None
            return self._one(written)
        found = self.exact(node)
        if found is None and isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            return INPUT if self.role(node.value) == BATCH else self._loosely([node.value])
        if found is None and self.roots.get(id(node)) == FUNCTIONAL:
            return LOSS
        if found is None and isinstance(node, ast.Call):
            if len(node.args) == 1 and self._prepares(node):
                return self.role(node.args[0])
            returned = self.flow.returns.get(id(self.flow.function_of(node)), [])
            roles = {self.role(given) for _, given in returned} - {None}
            if len(roles) == 1:
                return roles.pop()
        return found if found is not None else self._loosely(ast.iter_child_nodes(node), node)

    def _loosely(self, parts: Iterable[ast.AST], of: ast.expr | None = None) -> str | None:
        """The role that remains of the parts' roles: a loss plus something is the loss; a model's part is no model."""
        if isinstance(of, ast.Call) and self.leaves(of):
            return None
        roles = {self.role(part) for part in self._expressions(parts)}
        if isinstance(of, ast.Call) and roles & {MODEL, CRITERION} and self.role(of.func) in (MODEL, CRITERION):
            return OUTPUT if self.role(of.func) == MODEL else LOSS
        return next((role for role in STRONGEST if role in roles), None)

    def _expressions(self, parts: Iterable[ast.AST]) -> Iterable[ast.expr]:
        for part in parts:
            if isinstance(part, ast.keyword):
                yield part.value
            elif isinstance(part, ast.expr):
                yield part

    def leaves(self, call: ast.Call) -> bool:
        """Whether a call returns a plain number, string or array."""
        if isinstance(call.func, ast.Attribute):
            return call.func.attr in passed_over.LEAVING_METHODS
        return isinstance(call.func, ast.Name) and call.func.id in passed_over.LEAVING_FUNCTIONS

    def _one(self, definitions: Iterable[Definition]) -> str | None:
        """The common role of all definitions that run with the defaults; a value that a call changes keeps its role."""
        found = set()
        for definition in definitions:
            if (
                definition.way in (ADDS, NAMED)
                or isinstance(definition.value, ast.Constant)
                or not self._runs(definition)
            ):
                continue
            role = self._bound.get(definition)
            if role is not None:
                found.add(role)
        return found.pop() if len(found) == 1 else next((role for role in STRONGEST if role in found), None)

    def _runs(self, definition: Definition) -> bool:
        rank, _ = self.flow.interpreter.reached.get(id(definition.statement.node), (0, ()))
        return CERTAINTIES[rank] != OPTION

    def takes_more(self, statement: Statement, live: set[int]) -> bool:
        """Whether a statement unpacks a batch into more than an input and a label, and the model or the loss takes more
        of it in one of the live statements."""
        if not any(self.role_of(definition) == ENTRY for definition in statement.defines):
            return False
        calls = [call for one in self.flow.statements if id(one) in live for call in one.calls]
        takers = [c for c in calls if self.role(c.func) in (MODEL, CRITERION) or self.roots.get(id(c)) == FUNCTIONAL]
        return any(self.role(part) == ENTRY for call in takers for part in ast.walk(call) if isinstance(part, ast.Name))

    def role_of(self, definition: Definition) -> str | None:
        """The role of a definition's value."""
        if definition.way == GIVEN:
            given = [self.role(node) for node in self.flow.arguments_of(definition)]
            roles = {role for role in given if role is not None}
            return roles.pop() if len(roles) == 1 else next((one for one in STRONGEST if one in roles), None)
        if definition.value is None:
            return None
        if definition.way == EACH:
            return self._of_loop(definition.value, definition.path)
        return self._unpacked(definition.value, definition.path)

    def _unpacked(self, value: ast.expr, path: tuple[int, ...]) -> str | None:
        if not path:
            return self.role(value)
        if isinstance(value, (ast.Tuple, ast.List)):
            return self._unpacked(value.elts[path[0]], path[1:]) if path[0] < len(value.elts) else None
        if isinstance(value, ast.Call):
            roles = self._returned(value, path)
            if len(roles) == 1:
                return roles.pop()
            same = value.args[path[0]] if path[0] < len(value.args) else None
            given = self.role(same) if same is not None else None  # model, optimizer = prepare(model, optimizer)
            if given is not None and (given in STRONGEST or self._prepares(value)):
                return given
            value_role = self._loosely(ast.iter_child_nodes(value))
            return value_role if value_role != BATCH else self._place(BATCH, path)
        role = self.role(value)
        return self._place(role, path) if role == BATCH else role if role in STRONGEST else None

    def _returned(self, call: ast.Call, path: tuple[int, ...]) -> set[str]:
        """The roles of a part of what a call returns; a function that returns a call of itself adds none."""
        if (id(call), path) in self._parts:
            return set()
        self._parts.add((id(call), path))
        returned = self.flow.returns.get(id(self.flow.function_of(call)), [])
        roles = {role for _, given in returned if (role := self._unpacked(given, path)) is not None}
        self._parts.discard((id(call), path))
        return roles

    def _prepares(self, call: ast.Call) -> bool:
        """Whether a call of apex, accelerate or Lightning's Fabric gives back what it is given, made ready."""
        method = getattr(call.func, "attr", "")
        return method == "prepare" or passed_over.matches(name_of(self.flow, call), PREPARING)

    @staticmethod
    def _place(role: str | None, path: tuple[int, ...]) -> str | None:
        if role != BATCH or not path:
            return role
        return (INPUT, TARGET)[path[0]] if len(path) == 1 and path[0] < 2 else ENTRY

    def _of_loop(self, over: ast.expr, path: tuple[int, ...]) -> str | None:
        """The role of a loop's target in each round."""
        over = self._handed_through(over)
        if isinstance(over, ast.Call) and over.args and passed_over.looked_through(name_of(self.flow, over)):
            if getattr(over.func, "id", "") == "enumerate":
                return self._of_loop(over.args[0], path[1:]) if path[:1] == (1,) else None
            return self._of_loop(over.args[0], path)
        role = self.role(over)
        return self._place(BATCH, path) if role == LOADER else None

    def loops_over(self, over: ast.expr) -> str | None:
        """The role of a loop's iterable."""
        over = self._handed_through(over)
        while isinstance(over, ast.Call) and over.args and passed_over.looked_through(name_of(self.flow, over)):
            over = self._handed_through(over.args[0])
        return self.role(over)

    def _handed_through(self, over: ast.expr) -> ast.expr:
        """The loader that a generator of the script iterates over, in place of its call; else the expression itself."""
        given = self.flow.value(over)
        own = isinstance(over, ast.Call) and isinstance(self.flow.value(over.func), ScriptFunction)
        if not own or not isinstance(over, ast.Call) or not isinstance(given, LibraryObject) or given.family != LOADER:
            return over
        return next((argument for argument in over.args if self.role(argument) == LOADER), over)

    def _part(self, role: str | None, at: ast.expr) -> str | None:
        if role != BATCH or not isinstance(at, ast.Constant) or type(at.value) is not int:
            return None
        return self._place(role, (at.value,)) if at.value < 2 else None

    def hands_computed(self, call: ast.Call) -> bool:
        """Whether a function with a step is given what is computed from a batch in the call: step(x * 2, y)."""
        if id(self.flow.function_of(call)) not in self.steps:
            return False
        given = [one for one in (*call.args, *(k.value for k in call.keywords)) if not isinstance(one, ast.Starred)]
        return any(self.role(one) in STRONGEST and self.exact(one) is None for one in given)

    def number(self, node: ast.expr) -> object:
        """The known value of an expression, or None."""
        if isinstance(node, ast.Constant):
            return node.value
        found = self.flow.value(node)
        return known(found) if found is not None else None

    def _call(self, node: ast.Call) -> str | None:
        """The role of a call's result, where a recipe's step makes the same."""
        func = node.func
        name = name_of(self.flow, node)
        plain = [self.exact(argument) for argument in node.args]
        if self.roots.get(id(node)) == FUNCTIONAL:
            named = [self.exact(k.value) for k in node.keywords if k.arg in ("input", "target")]
            return LOSS if [*plain, *named] == [OUTPUT, TARGET] else None
        if isinstance(func, ast.Attribute):
            owner = self.role(func.value)
            if func.attr in MOVES and owner is not None and self.exact(func.value):
                given = [*node.args, *(k.value for k in node.keywords)]
                return None if any(map(self.is_dtype, given)) else owner
            if owner == SCALER and func.attr == "scale":
                return LOSS if plain == [LOSS] else None
        if name in WRAPPERS and node.args:
            return MODEL if plain[0] == MODEL else None
        if name in ("iter", "next") and plain:
            at = self.flow.of[id(node)]  # before a loop it only looks at a batch
            there = (one.node for one in at.around), ast.walk(at.function or at.source.tree)
            inside, loops = (any(isinstance(one, LOOPS) for one in nodes) for nodes in there)
            return plain[0] if name == "iter" else BATCH if plain[0] == LOADER and (inside or not loops) else None
        called = self.role(func) if not isinstance(self.flow.value(func), (LibraryName, ScriptFunction)) else None
        if called == MODEL:
            return OUTPUT if plain == [INPUT] and not node.keywords else None
        if called == CRITERION:
            return LOSS if plain == [OUTPUT, TARGET] and not node.keywords else None
        function = self.flow.function_of(node)
        returned = self.flow.returns.get(id(function), [])
        roles = {self.role(given) for _, given in returned} - {None}
        found = roles.pop() if len(roles) == 1 else None
        followed = id(function) in self.open and not self.hands_computed(node)
        return found if found in OBJECTS or followed else None  # others only compute, and are not read

    def is_dtype(self, node: ast.expr) -> bool:
        """Whether an argument of .to is a type and not a device."""
        found = self.flow.value(node)
        name = found.name if isinstance(found, LibraryName) else ""
        return name.startswith("torch.") and not name.startswith("torch.channels")

    def updates(self, call: ast.Call) -> str | None:
        """Words for a call that is the backward pass or the update of a recipe's step, or None."""
        func = call.func
        if not isinstance(func, ast.Attribute):
            return None
        owner = self.exact(func.value)
        plain = [self.exact(argument) for argument in call.args]
        if func.attr == "backward" and owner == LOSS and not call.args and not call.keywords:
            return "the step of a recipe"
        if owner in (OPTIMIZER, SCHEDULE) and func.attr == "step" and not call.args:
            return "the step of a recipe"
        if owner == EMA and func.attr in ("update", "update_parameters") and plain == [MODEL]:
            return "the step of a recipe"
        handed = plain == [OPTIMIZER] if func.attr in ("step", "unscale_") else not plain
        if owner == SCALER and not call.keywords and func.attr in ("step", "unscale_", "update") and handed:
            return "the step of a recipe"
        return None


# the six parts of training that a value may belong to: MODEL, OPTIMIZER and LOSS as above, and
GRADIENTS, DATA, RATE = "gradients", "data", "rate"
Kinds = frozenset[str]
NONE: Kinds = frozenset()
BY_FAMILY = {
    families.MODULE: MODEL,
    families.OPTIMIZER: OPTIMIZER,
    families.SCHEDULE: RATE,
    families.LOADER: DATA,
    families.DATASET: DATA,
}
BY_METHOD = {  # the kind of an object with these methods, whatever else is known of it
    "parameters": MODEL,
    "named_parameters": MODEL,
    "load_state_dict": MODEL,
    "zero_grad": OPTIMIZER,
    "backward": LOSS,
}
PARTS = ("modules", "named_modules", "children", "named_children", "values", "items")  # methods that give children
PREPARING = ("apex.amp.initialize", "*.Fabric.setup*")
BY_ATTRIBUTE = {"grad": GRADIENTS, "param_groups": RATE, "requires_grad": MODEL}


class ValueKinds:
    """The kinds of a script's values: of every definition (`bound`), and of any expression.

    driven: the classes whose methods a library calls.
    """

    def __init__(self, flow: Flow, roles: Roles, driven: set[int]) -> None:
        self.flow = flow
        self.roles = roles
        self._driven = driven
        self.bound: dict[Definition, Kinds] = {}
        self._inside: set[int] = set()  # the functions whose results are being evaluated, against endless recursion
        self._switched: tuple[set[int], set[int]] | None = None  # the open functions, and what was found for them
        self._propagate()

    def of(self, node: ast.AST) -> Kinds:
        """The kinds of an expression."""
        if isinstance(node, ast.Name):
            found: Kinds = frozenset().union(*(self.bound.get(d, NONE) for d in self.flow.reads.get(id(node), ())))
            return found | self._of_value(node) | self._by_name(node, node.id)
        if isinstance(node, ast.Attribute):
            if node.attr in passed_over.LEAVING_ATTRIBUTES:
                return NONE
            own = frozenset().union(*(self.bound.get(d, NONE) for d in self.flow.attributes.get(node.attr, ())))
            extra = frozenset({BY_ATTRIBUTE[node.attr]}) if node.attr in BY_ATTRIBUTE else NONE
            return own | extra | self.of(node.value) | self._of_value(node) | self._by_name(node, node.attr)
        if isinstance(node, ast.Call):
            return self._of_call(node)
        if isinstance(node, (ast.Compare, ast.JoinedStr, ast.Constant)):
            return NONE
        return frozenset().union(*(self.of(child) for child in ast.iter_child_nodes(node)))

    def _by_name(self, node: ast.expr, name: str) -> Kinds:
        """The usual kind of an unknown object by its name: a reason to list a statement, never to omit one."""
        found, of = self.flow.value(node), self.flow.of.get(id(node))
        if isinstance(getattr(node, "ctx", None), ast.Store) and of is not None:
            value = getattr(of.node, "value", None)
            given = self.flow.value(value) if value is not None else None
            number = isinstance(given, Constant) and isinstance(given.value, (int, float))
            found = given if number else found  # d_model = 128
        unknown = found is None or type(found) is Value or (isinstance(found, LibraryObject) and not found.family)
        plain_object = isinstance(found, ScriptObject) and not found.of.family()
        family = families.habit(name) if unknown or plain_object else ""
        return frozenset({BY_FAMILY[family]}) if family in BY_FAMILY else NONE

    def _of_value(self, node: ast.expr) -> Kinds:
        found = self.flow.value(node)
        row = row_of(found.name) if isinstance(found, LibraryObject) and found.name else None
        if row is not None and row.kind in ("loss", "transform"):
            return frozenset({LOSS if row.kind == "loss" else DATA})
        family = found.of.family() if isinstance(found, ScriptObject) else getattr(found, "family", "")
        return frozenset({BY_FAMILY[family]}) if family in BY_FAMILY else NONE

    def _of_call(self, node: ast.Call) -> Kinds:
        if self.roles.leaves(node):
            return NONE
        own = self._of_value(node)
        called = self.flow.value(node.func)
        if isinstance(called, (ScriptFunction, ScriptClass)):
            if id(called.node) in self._inside:
                return own
            self._inside.add(id(called.node))
            given = [self.of(value) for _, value in self.flow.returns.get(id(called.node), [])]
            self._inside.discard(id(called.node))
            return own.union(*given)
        handed = frozenset().union(*(self.of(a) for a in [*node.args, *(k.value for k in node.keywords)]))
        if isinstance(called, LibraryName):
            return own | (NONE if passed_over.reason(called.name) and not own else handed)
        callee = self.of(node.func)
        if isinstance(node.func, ast.Attribute):  # a method's result belongs to its object
            return own | callee | handed
        return own | handed | (frozenset({LOSS}) if callee & {MODEL, LOSS} else callee)

    def drives(self, node: ast.expr) -> bool:
        """Whether this is an object that trains its arguments, and not a model."""
        found = self.flow.value(node)
        if isinstance(found, ScriptObject):
            return id(found.of.node) in self._driven and found.of.family() != families.MODULE
        return isinstance(found, LibraryObject) and passed_over.matches(found.name, passed_over.DRIVEN)

    def fits(self, call: ast.Call) -> bool:
        """Whether a call has such an object train, Trainer(max_epochs=3).fit(module), or makes one that does."""
        called = self.flow.value(call.func)
        name = called.library_base() if isinstance(called, ScriptClass) else getattr(called, "name", "")
        if (name or "").endswith(passed_over.RUNNING):
            return True
        return isinstance(call.func, ast.Attribute) and call.func.attr == "fit" and self.drives(call.func.value)

    def switches_otherwise(self, call: ast.Call) -> bool:
        """Whether train() or eval() switches only a part of the model, or all of it to evaluation mode before backward
        passes: a recipe's model trains as a whole; and whether zero_grad() is that of what the draft does not have."""
        method, owner = getattr(call.func, "attr", ""), getattr(call.func, "value", call.func)
        if method == "zero_grad":
            return self.roles.role(owner) not in (OPTIMIZER, MODEL)
        if method not in MODES or self._part_of_a_model(owner):
            return method in MODES
        given = [known(self.flow.value(a) or Value()) for a in [*call.args, *(k.value for k in call.keywords)]]
        return ((method == "eval" or False in given) and self._another_model(owner)) or self.in_evaluation(call)

    def keeps(self, statement: Statement, open_: set[int], live: set[int]) -> bool:
        """Whether a statement changes the content of an object, by itself or by a call that is the whole statement, or
        a name of its file; open_: functions that are known to. live: the statements that reach training."""
        alone = statement.alone if isinstance(statement.alone, ast.Call) else None
        targets = getattr(statement.node, "targets", [getattr(statement.node, "target", None)])
        parts = [part for one in targets for part in getattr(one, "elts", [one])]
        added = isinstance(statement.node, ast.AugAssign) and any(d.way == GIVEN for d in self.flow.written(parts[0]))
        stored = any(isinstance(one, (ast.Attribute, ast.Subscript)) for one in parts)
        if added or stored or id(statement) in self.flow.rebinds:
            return True
        changes = alone is not None and getattr(alone.func, "attr", "") in passed_over.CHANGERS
        changes = changes or any(changes_outside(self.flow, c, live, open_) for c in statement.calls)
        return changes or (alone is not None and id(self.flow.function_of(alone)) in open_)

    def _another_model(self, node: ast.expr) -> bool:
        """Whether this is another model of the script than the trained one, such as a teacher."""
        found = self.flow.value(node)
        if isinstance(found, LibraryObject):
            family, made = found.family, found.seen.node if found.seen is not None else None
        elif isinstance(found, ScriptObject) and getattr(node, "id", "") != "self":
            family, made = found.of.family(), found.node
        else:
            return False
        trained = MODEL in self.roles.roots.values() and self.roles.role(node) != MODEL
        return trained and family == families.MODULE and made is not None and id(made) not in self.roles.roots

    def _part_of_a_model(self, node: ast.expr) -> bool:
        """Whether this is a module inside of the model: by its attribute, its place, or a loop over modules."""
        if isinstance(node, ast.Attribute):
            if node.attr == "module" or self.roles.exact(node) == MODEL:
                return False
            return self.roles.exact(node.value) == MODEL or self._part_of_a_model(node.value)
        if isinstance(node, ast.Subscript):
            return self.roles.exact(node.value) == MODEL or self._part_of_a_model(node.value)
        looped = (d.value for d in self.flow.reads.get(id(node), ()) if d.way in (IS, EACH, INNER) and d.value)
        return any(map(self._gives_parts, looped))

    def _gives_parts(self, value: ast.expr) -> bool:
        if isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("map", "filter"):
            return any(map(self._gives_parts, value.args))
        if isinstance(value, ast.Call):
            return isinstance(value.func, ast.Attribute) and value.func.attr in PARTS and MODEL in self.of(value.func)
        if isinstance(value, (ast.List, ast.Tuple)):
            return any(self._part_of_a_model(one) for one in value.elts)
        return isinstance(value, (ast.Attribute, ast.Subscript)) and self._part_of_a_model(value)

    def of_a_library(self, node: ast.expr) -> bool:
        """Whether this is a library's object, or a part of one, such as a configuration that the library reads; or an
        object that was not read, which may be."""
        found = [self.flow.value(one) for one in ast.walk(node) if isinstance(one, (ast.Name, ast.Attribute))]
        parts = any(isinstance(one, LibraryObject) and not one.family for one in found)
        return parts or (getattr(node, "id", "") not in ("self", "cls") and type(found[0]) in (Value, type(None)))

    def is_data(self, node: ast.expr) -> bool:
        """Whether this is a data set or a loader, or something inside of one; changing it is not in a recipe."""
        found = self.flow.value(node)
        family = found.of.family() if isinstance(found, ScriptObject) else getattr(found, "family", "")
        if family in (families.DATASET, families.LOADER):
            return getattr(node, "id", "") != "self"
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "vars":
            return any(map(self.is_data, node.args))
        return isinstance(node, (ast.Attribute, ast.Subscript)) and self.is_data(node.value)

    def changes_data(self, call: ast.Call) -> bool:
        """Whether a method changes the content of a data set or a loader: data.samples.reverse()."""
        of, method = getattr(call.func, "value", call.func), getattr(call.func, "attr", "")
        return method in passed_over.CHANGERS and not isinstance(of, ast.Name) and self.is_data(of)

    def is_model(self, node: ast.expr) -> bool:
        """Whether an expression is a model: an object that is known to be one, a parameter, an attribute of `self`."""
        given = all(one.way == GIVEN for one in self.flow.reads.get(id(node), ()))
        known_ = getattr(self.flow.value(node), "family", "") == families.MODULE
        own = getattr(getattr(node, "value", None), "id", "") == "self"
        return (known_ or own or (given and isinstance(node, ast.Name))) and MODEL in self.of(node)

    def in_evaluation(self, call: ast.Call) -> bool:
        """Whether this switches the trained model to evaluation mode for backward passes that follow."""
        if self._switched is None or self._switched[0] is not self.roles.open:
            self._switched = self.roles.open, in_evaluation(self.flow, self._model_of)
        return id(call) in self._switched[1]

    def _model_of(self, node: ast.expr) -> str | None:
        """A name for the trained model; where none was found, the last name of any."""
        found = MODEL in self.roles.roots.values()
        name = MODEL if found else getattr(node, "attr", getattr(node, "id", "self"))
        own = self.roles.exact(node) == MODEL if found else MODEL in self.of(node) and not self._part_of_a_model(node)
        return name if own and name != "self" else None

    def _propagate(self) -> None:
        definitions = [d for statement in self.flow.statements for d in statement.defines]
        given = {d for found in self.flow.reads.values() for d in found if d.way in (GIVEN, INNER)}
        for call in (call for statement in self.flow.statements for call in statement.calls):
            if isinstance(call.func, ast.Attribute) and call.func.attr in BY_METHOD:
                self._note_by_method(call.func.value, BY_METHOD[call.func.attr])
        for _ in range(12):
            changed = False
            for definition in [*definitions, *given]:
                found = self._of_definition(definition)
                if not found <= self.bound.get(definition, NONE):
                    self.bound[definition] = found | self.bound.get(definition, NONE)
                    changed = True
            if not changed:
                return

    def _note_by_method(self, node: ast.expr, kind: str) -> None:
        for definition in (one for one in self.flow.written(node) if one.way != "named"):
            self.bound[definition] = self.bound.get(definition, NONE) | {kind}

    def _of_definition(self, definition: Definition) -> Kinds:
        if definition.way == GIVEN:
            return frozenset().union(*(self.of(node) for node in self.flow.arguments_of(definition)))
        value = definition.value
        if value is None:
            return NONE
        if definition.path and isinstance(value, (ast.Tuple, ast.List)) and definition.path[0] < len(value.elts):
            return self.of(value.elts[definition.path[0]])
        if isinstance(value, ast.Call) and definition.way == "adds":  # a call that changes its argument
            return frozenset().union(*(self.of(a) for a in [*value.args, *(k.value for k in value.keywords)]))
        return self.of(value)
