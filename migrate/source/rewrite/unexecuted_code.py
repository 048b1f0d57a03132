"""Code that did not run: the kinds of its expressions, inferred from their names.

A branch that the configuration did not choose is still part of a class. Its names are looked up where they were
observed: an attribute in another method, a variable in another line, and a file's imports. An expression whose kind
cannot be inferred is an error here, and the branch raises in the new file: `control_flow.refused` writes that.
"""

from __future__ import annotations

import ast
import builtins
import copy
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from ...library_names import (
    CELL_METHODS,
    CONTAINERS,
    COUNTERPARTS,
    DROPPED,
    IMPORTED,
    OF_PYTHON,
    ROWS_FIRST,
    TABLES,
    called_in,
    is_dtype,
    tensors_by_use,
)
from ...source_files import all_of, asks_class, literal
from ..observe.instrument import EXPRESSIONS
from ..observe.observations import (
    NONE,
    UNKNOWN_RANK,
    CallableKind,
    DictKind,
    DtypeKind,
    Kind,
    ModuleKind,
    ObjectKind,
    Observed,
    PlainKind,
    PythonModule,
    SequenceKind,
    SizeKind,
    TensorKind,
    always,
    kinds_of,
    of_constant,
    set_callee,
    set_kinds,
)
from . import replaced_methods as methods
from . import signatures
from .aliasing import LOST
from .argument_kinds import COMPLEX, may_be_complex, of_dtype, sized
from .context import UNSEEN, Context, Unwritable, has_handler, row_of
from .dataclasses_and_configs import is_enum, is_settings, kinds_before, takes_items
from .devices_and_no_grad import says_how, without_try
from .initializers import shares
from .layer_methods import OF_MODULES
from .library_lookups import kinds_at_top, named_callees, of_settings
from .modules import NORMS
from .row_calls import is_super
from .signatures import OF_TENSORS, SOME_TENSOR, read_inner
from .tensors import PAIR

SAFE = {*dir(builtins)} - {"eval", "exec", "super", "locals", "globals", "vars", "dir", "open", "input", "setattr"}
QUESTIONS = {n for n in TABLES["framework_questions"] if n.startswith(("torch.jit.", "torch.compiler.", "torch.cuda."))}
MODULES = ("torch", "torch.nn", "torch.nn.functional", "torch.nn.init")  # below: those that only compute, or say so
COMPUTING = {"math", "functools", "itertools", "operator", "random", "collections", "copy", "statistics", "logging"}
COMPUTING |= {"warnings", *IMPORTED}
OF_LISTS = ("append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort")
OPERATIONS = (ast.UnaryOp, ast.BinOp, ast.Compare, ast.Slice, ast.Starred, ast.JoinedStr, ast.FormattedValue)
CALLED = "called"  # attribute of the node of a function that is called
READ: tuple[type[ast.stmt], ...] = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr, ast.If)
READ += (ast.For, ast.While, ast.Raise, ast.Pass, ast.Assert, ast.Continue, ast.Break, ast.Nonlocal, ast.FunctionDef)


def was_observed(node: ast.expr) -> bool:
    """Whether an expression was evaluated; a constant counts as such, and a lambda by what it computes."""
    node = node.body if isinstance(node, ast.Lambda) else node
    return bool(kinds_of(node)) or not isinstance(node, EXPRESSIONS)


def unseen_expression(node: ast.expr, context: Context) -> ast.expr:
    """An expression that did not run, rewritten; raises Unwritable where too little is known of it."""
    found = copy.deepcopy(node)
    Reader(context).expression(found)
    with context.strictly():
        made: ast.expr = context.visit(found)
    return made


def unseen_statements(body: Sequence[ast.stmt], reader: Reader, *, checks: bool) -> list[ast.stmt]:
    """Statements that did not run, with inferred kinds noted on them; raises Unwritable where too little is known.

    checks: whether all assertions stay; without, those are left out that cannot be written.
    """
    every = [one for statement in body for one in without_try(statement, reader.context)]
    reader.context.local.add("returned")
    others = [statement for statement in every if not isinstance(statement, ast.Assert)]
    try:
        return _readable(every, reader)
    except Unwritable:
        if checks or len(others) == len(every):
            raise
    return _readable(others, reader)


def _readable(body: Sequence[ast.stmt], reader: Reader) -> list[ast.stmt]:
    found = copy.deepcopy([*body])
    reader.block(found)
    with reader.context.strictly():
        for statement in copy.deepcopy(found):
            reader.context.statement(statement)
    signatures.note_result(reader.given_back, reader.context)
    return found


class Reader:
    """Infers the kinds and callees of expressions that did not run, and notes them on these."""

    def __init__(self, context: Context) -> None:
        self.context, self.program = context, context.program
        self.variables: dict[str, list[Kind]] = {}
        self.loops, self.given_back = 0, list[Kind]()  # by the function that is read
        self.inner: dict[str, list[Kind]] = {}  # what functions inside of it give back
        if any(context.owner in bases for bases in self.program.facts.orders):
            self.variables["self"] = [ModuleKind(context.owner)]
        for inner in ast.walk(context.function) if context.function is not None else ():
            if isinstance(inner, ast.Name):
                self._know(inner.id, [kind for kind in kinds_of(inner) if kind != NONE])
            elif isinstance(inner, ast.arg) and (hint := methods.hint(inner)) in signatures.OF_HINTS:
                self._know(inner.arg, [signatures.OF_HINTS[hint]])
            if isinstance(inner, ast.arg) and (inner.arg == "device" or methods.hint(inner) == "torch.device"):
                self.variables.setdefault(inner.arg, [ObjectKind("torch.device")])
            elif isinstance(inner, ast.FunctionDef) and "classmethod" in map(ast.unparse, inner.decorator_list):
                self.variables[inner.args.args[0].arg] = [CallableKind("class", context.owner)]
            elif isinstance(inner, ast.Assign):  # what ran may only be read by what did not
                for target in inner.targets:
                    if isinstance(target, ast.Name):
                        self._know(target.id, [kind for kind in kinds_of(inner.value) if kind != NONE])
        if context.function is not None:
            for name, kinds in methods.given_to(context.function, context).items():
                self._know(name, kinds)
            for name in tensors_by_use(context.function, self.resolve, of_module="self" in self.variables):
                if self.variables.get(name, [UNSEEN]) == [UNSEEN]:  # a caller that did not run says no more
                    self.variables[name] = [SOME_TENSOR]

    def resolve(self, node: ast.expr) -> str:
        """The full name of a top-level name of the file, or the row's name for it; empty for anything else."""
        name = self.program.names(self.context.file).name(node)
        return ROWS_FIRST.get(name, name)

    def within(self, test: ast.expr) -> AbstractContextManager[None]:
        """Within the block, a module that the test names has only the classes that it had in the test."""
        names = [node for node in ast.walk(test) if isinstance(node, ast.Name) and node.id != "self"]
        return self._knowing({node.id: kinds_of(node) for node in names if always(kinds_of(node), ModuleKind)})

    def narrowed(self, test: ast.expr) -> AbstractContextManager[None]:
        """Within the block, a variable is a module of the test's class: `isinstance(m, C)`, `type(m) in (C, D)`."""
        return self._knowing(methods.modules_asked_for(test, self.resolve, self.program))

    @contextmanager
    def _knowing(self, kinds: dict[str, list[Kind]]) -> Iterator[None]:
        before = {name: self.variables.get(name, [UNSEEN]) for name in kinds}
        self.variables |= kinds
        try:
            yield
        finally:
            self.variables |= before

    def _know(self, name: str, kinds: Sequence[Kind]) -> None:
        kinds = [kind for kind in kinds if kind != UNSEEN] or ([] if name in self.variables else kinds)
        if kinds:
            before = [kind for kind in self.variables.get(name, ()) if kind != UNSEEN]
            self.variables[name] = list(dict.fromkeys([*before, *kinds]))

    def block(self, body: list[ast.stmt]) -> None:
        """Infer statements in their order; a branch for a class that the new file does not have is left out."""
        body[:] = [kept for statement in body for kept in self._possible(statement)] or [ast.Pass()] * bool(body)
        before: dict[str, list[Kind]] = {}
        for statement in body:
            if not isinstance(statement, READ) and not says_how(statement, self.resolve):
                raise Unwritable(f"a statement of this kind ({type(statement).__name__}) is not read")
            if isinstance(statement, ast.FunctionDef):
                self._inner(statement)
                continue
            if isinstance(statement, ast.For):
                self._looped(statement.target, statement.iter)
            elif isinstance(statement, (ast.If, ast.While, ast.Assert)):
                self.expression(statement.test)
                asserted = methods.modules_asked_for(statement.test, self.resolve, self.program)
                for name in asserted if isinstance(statement, ast.Assert) else ():  # from here on in this block
                    before.setdefault(name, self.variables.get(name, []))
                    self.variables[name] = asserted[name]
            elif isinstance(statement, ast.Raise):
                continue  # its text is kept where it calls only Python's own functions
            else:
                if (value := getattr(statement, "value", None)) is not None:
                    found = self.expression(value)
                    self.given_back += found if isinstance(statement, ast.Return) else []
                for target, given in methods.assigned_pairs(statement):
                    kinds = [] if given is None else self.expression(given)
                    if isinstance(target, ast.expr):
                        if isinstance(statement, ast.AugAssign):
                            kinds = self._augmented(target, kinds)
                        self.stored(target, kinds)
                    if isinstance(target, ast.Name) and isinstance(statement, ast.Assign) and not self.loops:
                        before.setdefault(target.id, self.variables.get(target.id, []))
                        self.variables[target.id] = kinds  # from here on in this block
            self.loops += isinstance(statement, (ast.For, ast.While))
            with self.narrowed(statement.test) if isinstance(statement, ast.If) else nullcontext():
                self.block(getattr(statement, "body", []))
            self.block(getattr(statement, "orelse", []))
            self.loops -= isinstance(statement, (ast.For, ast.While))
        for name, kinds in before.items():
            self._know(name, kinds)

    def _inner(self, node: ast.FunctionDef) -> None:
        """Read a function inside of one; its variables are its own."""
        before, loops, given = self.variables, self.loops, self.given_back
        around = self.context.function or node
        self.variables = before | read_inner(node, around, before, self.expression, self.resolve)
        self.loops, self.given_back = 0, []
        self.block(node.body)
        self.inner[node.name] = list(dict.fromkeys([*self.inner.get(node.name, ()), *self.given_back]))
        self.variables = {**before, node.name: [CallableKind("function", f"<locals>.{node.name}")]}
        self.loops, self.given_back = loops, given

    def _looped(self, target: ast.expr, over: ast.expr) -> None:
        """Note the kinds of a loop's variables; those of `enumerate` and `zip` one by one."""
        match target, over:
            case ast.Tuple([number, item]), ast.Call(ast.Name("enumerate"), [given, *_]):
                self.stored(number, [PlainKind("int")])
                self._looped(item, given)
            case ast.Tuple(targets), ast.Call(ast.Name("zip"), args) if len(targets) == len(args):
                for one, given in zip(targets, args, strict=True):
                    self._looped(one, given)
            case _:
                self.stored(target, self.items(self.expression(over)))
        self.expression(over)

    def _possible(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statement; none for a dropped call; the `else` branch for a class that the new file does not have."""
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            return [] if self.resolve(statement.value.func) in DROPPED else [statement]
        if not isinstance(statement, ast.If) or not any(map(self._impossible, all_of(statement.test))):
            return without_try(statement, self.context)
        return [kept for one in statement.orelse for kept in self._possible(one)]

    def _impossible(self, test: ast.expr) -> bool:
        name = self.resolve(test.args[1]) if asks_class(test) else ""
        return bool(name) and not name.startswith("torch.") and self.program.unseen(name)

    def _augmented(self, target: ast.expr, given: list[Kind]) -> list[Kind]:
        """What a target may be after `target += given`, besides what it was: a tensor stays one."""
        there = copy.deepcopy(target)
        if not isinstance(target, (ast.Name, ast.Attribute)):
            self.stored(target, [])
        there.ctx = ast.Load()  # type: ignore[attr-defined]
        set_kinds(target, self.expression(there))
        return [] if any(isinstance(kind, TensorKind) for kind in kinds_of(target)) else given

    def stored(self, target: ast.expr, kinds: list[Kind]) -> None:
        """Note the inferred kinds of a variable."""
        if isinstance(target, ast.Name):
            self._know(target.id, kinds)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                self.stored(item, self.items(kinds))
        elif isinstance(target, ast.Attribute):
            self.expression(target.value)
        elif isinstance(target, ast.Subscript):
            owner = self.expression(target.value)
            self.expression(target.slice)
            part = not isinstance(target.value, ast.Name) and any(isinstance(kind, TensorKind) for kind in owner)
            part = part and shares(target, self.context.function)  # of a name's shared_writes.py says it
            if part or (UNSEEN in owner and not takes_items(target.value, self.context.function)):
                raise Unwritable(f"{ast.unparse(target)} is written to")

    def items(self, kinds: Sequence[Kind]) -> list[Kind]:
        """The kinds of the items of an expression, by index or in a loop."""
        found: list[Kind] = []
        for kind in kinds:
            if isinstance(kind, SizeKind):
                found.append(PlainKind("int"))
            elif isinstance(kind, SequenceKind) and kind.items:
                found += kind.items
            elif isinstance(kind, ModuleKind) and methods.holds_modules(kind.cls, self.program):
                found.append(ModuleKind("torch.nn.Module"))
            elif isinstance(kind, (TensorKind, ModuleKind)):
                found.append(SOME_TENSOR)
            else:
                found.append(UNSEEN)
        return list(dict.fromkeys(found))

    def expression(self, node: ast.expr) -> list[Kind]:
        """The inferred kinds of an expression; notes them on all of its parts. Raises Unwritable."""
        if LOST in vars(node):
            raise Unwritable(vars(node)[LOST])
        if isinstance(node, EXPRESSIONS) and kinds_of(node):
            return kinds_of(node)
        found = self._read(node)
        if isinstance(node, EXPRESSIONS) and not kinds_of(node):
            set_kinds(node, found)
        return found

    def _read(self, node: ast.expr) -> list[Kind]:
        match node:
            case ast.Constant():
                return [of_constant(node.value)]
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Call():
                return self._call(node)
            case ast.Subscript():
                kinds = self.expression(node.value)
                self.expression(node.slice)
                return kinds if isinstance(node.slice, ast.Slice) else self.items(kinds)
            case ast.Tuple() | ast.List() | ast.Set():
                kinds = list(dict.fromkeys(kind for item in node.elts for kind in self.expression(item)))
                kind = SequenceKind("list" if isinstance(node, ast.List) else "tuple", tuple(kinds))
                return [UNSEEN if isinstance(node, ast.Set) else kind]
            case ast.Dict():
                for part in filter(None, (*node.keys, *node.values)):
                    self.expression(part)
                return [UNSEEN]
            case ast.BoolOp():
                return list(dict.fromkeys(kind for value in node.values for kind in self.expression(value)))
            case ast.IfExp():
                self.expression(node.test)
                return list(dict.fromkeys([*self.expression(node.body), *self.expression(node.orelse)]))
            case ast.ListComp(generators=[one]) | ast.GeneratorExp(generators=[one]):
                self.stored(one.target, self.items(self.expression(one.iter)))
                for test in one.ifs:
                    self.expression(test)
                return [SequenceKind("list", tuple(self.expression(node.elt)))]
            case ast.Lambda():  # of what it will be given only what it does with it is known
                before, tensors = self.variables, tensors_by_use(node, self.resolve, of_module=True)
                names = [n.arg for n in ast.walk(node.args) if isinstance(n, ast.arg)]
                self.variables = before | {n: [SOME_TENSOR if n in tensors else UNSEEN] for n in names}
                try:
                    self.expression(node.body)
                finally:
                    self.variables = before
                return [UNSEEN]
            case _ if isinstance(node, OPERATIONS):
                return self._operation(node)
        raise Unwritable(f"{ast.unparse(node)} is not known")

    def _operation(self, node: ast.expr) -> list[Kind]:
        inside = [self.expression(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        kinds = [kind for part in inside for kind in part]
        if isinstance(node, (ast.JoinedStr, ast.FormattedValue)):
            return [PlainKind("str")]
        if any(isinstance(kind, TensorKind) for kind in kinds):
            return [COMPLEX if may_be_complex(kinds) and not isinstance(node, ast.Compare) else SOME_TENSOR]
        if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return [PlainKind("bool")]
        if isinstance(node, ast.BinOp) and (sequence := signatures.joined(kinds)) is not None:
            return [sequence]
        same = {*kinds}
        if isinstance(node, ast.BinOp) and same and same <= {PlainKind("int"), PlainKind("float")}:
            same = {PlainKind("float" if isinstance(node.op, ast.Div) or PlainKind("float") in same else "int")}
        return [*same] if len(same) == 1 else [UNSEEN]

    def _name(self, node: ast.Name) -> list[Kind]:
        if node.id in self.context.local:
            return list(self.variables.get(node.id, [UNSEEN]))
        if name := self.resolve(node):
            return self._of_file(name, node)
        if node.id in SAFE:
            return [CallableKind("function", f"builtins.{node.id}")]
        constant = self.program.origin(self.context.file, node.id)
        kinds = kinds_at_top(node.id, self.program, self.context.file)
        if constant is not None and (
            kinds or (kinds := signatures.made_at_top(constant.node.value or node, self.resolve))
        ):
            return kinds
        if constant is None or not literal(constant.node.value)[0]:
            raise Unwritable(f"the value of {node.id} was not seen")
        return [of_constant(constant.value)]

    def _of_file(self, name: str, node: ast.expr) -> list[Kind]:
        """The kind of a top-level name, by its full name."""
        package = name.partition(".")[0]
        ran = name in self.program.functions or f"{name}.__init__" in self.program.functions
        if ran or f"{name}.forward" in self.program.functions:
            self.program.define(name)
            return [CallableKind("class" if name in self.program.owners else "function", name)]
        if is_enum(name, self.program) or is_settings(name, self.program):
            self.program.define(name)
            return [CallableKind("class", name)]
        if kinds := kinds_at_top(name, self.program):
            return kinds
        if isinstance(node, ast.Attribute) and is_enum(name.rpartition(".")[0], self.program):
            set_kinds(node.value, [CallableKind("class", name.rpartition(".")[0])])
            return [UNSEEN]
        if methods.readable(name, self.program):
            return [CallableKind("class" if name in self.program.owners else "function", name)]
        if name in self.program.translated:
            raise Unwritable(f"what {ast.unparse(node)} does was not seen")
        if name in TABLES["numbers"] or (name.startswith("torch.") and is_dtype(name.removeprefix("torch."))):
            return [PlainKind("float") if name in TABLES["numbers"] else DtypeKind()]
        row = row_of(name) if package in ("torch", "torchvision", "timm") else None
        if row is not None or name in COUNTERPARTS or name in TABLES["type_checks"]:
            return [CallableKind("function" if row is not None and row.kind == "function" else "class", name)]
        if name in MODULES or package in sys.stdlib_module_names or package in IMPORTED:
            return [PythonModule(name)] if name in (package, *MODULES) else [UNSEEN]
        if has_handler(name) and CALLED in vars(node):  # of what is no call, nothing is written
            return [CallableKind("function", name)]
        if seen := called_in(self.program.tree(self.context.file), ast.unparse(node)):
            return [CallableKind("function", one) for one in seen]
        raise Unwritable(f"what {ast.unparse(node)} does was not seen")

    def _attribute(self, node: ast.Attribute) -> list[Kind]:
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        own = isinstance(root, ast.Name) and root.id in self.context.local
        if isinstance(root, ast.Name) and root.id == "self" and not kinds_of(root):
            set_kinds(root, self.variables.get("self", ()))
        if not own and (name := self.resolve(node)) and not of_settings(self.resolve(node.value), self.program):
            if isinstance(node.value, (ast.Name, ast.Attribute)):
                of = self.resolve(node.value)
                set_kinds(node.value, [CallableKind("class", of) if of in self.program.owners else PythonModule(of)])
            return self._of_file(name, node)
        first, _, path = ast.unparse(node).partition(".")
        if first == "self" and (seen := self.program.attributes(self.context.owner).get(path)):
            if node.value != root:
                self.expression(node.value)
            return kinds_before(node, self.context.function) or seen
        if isinstance(node.value, ast.Name) and first == "self":
            return methods.layers_made(self.context.owner, path, self.program) or [UNSEEN]
        found: list[Kind] = []
        for kind in self.expression(node.value):
            of_pair = node.attr in TABLES["distributions"].get(kind.cls if isinstance(kind, ObjectKind) else "", ())
            if isinstance(kind, TensorKind) and node.attr in OF_TENSORS:
                found += of_dtype([f"torch.{node.attr}"], [kind], [OF_TENSORS[node.attr]])
            elif of_pair or (isinstance(kind, SequenceKind) and kind.type in TABLES["pairs"] and node.attr in PAIR):
                found.append(SOME_TENSOR)
            elif isinstance(kind, ModuleKind) and (inside := methods.kinds_in_layer(kind.cls, node.attr, self.program)):
                found += inside
            elif isinstance(kind, ModuleKind) and kind.cls in self.program.translated:
                found += self.program.attributes(kind.cls).get(node.attr) or [UNSEEN]
            elif isinstance(kind, CallableKind) and (seen := methods.of_class(kind.name, node.attr, self.program)):
                found += seen
            elif isinstance(kind, DictKind) and node.attr in dict(kind.entries):
                found.append(dict(kind.entries)[node.attr])
            elif isinstance(kind, ObjectKind) and (kind != UNSEEN or node.attr in ("shape", "ndim", "device")):
                found.append(UNSEEN if kind != UNSEEN else OF_TENSORS[node.attr])  # of arrays, too
            else:
                raise Unwritable(f"the value of {ast.unparse(node)} was not seen")
        return list(dict.fromkeys(found))

    def _call(self, node: ast.Call) -> list[Kind]:
        if is_super(node.func):
            for part in (*node.args, *(word.value for word in node.keywords)):
                self.expression(part)
            return [UNSEEN]
        methods.note_given(self.resolve(node.func), node, self.expression, self.program)
        found, given = self._called(node)
        names = list(dict.fromkeys(found))
        result = methods.pair_given(names, node) or given
        if not names:
            raise Unwritable(f"what {ast.unparse(node.func)} calls is not known")
        if all(map(QUESTIONS.__contains__, names)):  # whether one of torch's compilers runs
            vars(node)["observed"] = Observed(kinds=[PlainKind("bool")], constants=[False])
            set_callee(node.func, *names)
            return result
        if isinstance(node.func, EXPRESSIONS):
            if not kinds_of(node.func):
                set_kinds(node.func, [UNSEEN])
            set_callee(node.func, *names)
        inside = [k for one in (*node.args, *(word.value for word in node.keywords)) for k in self.expression(one)]
        owner = kinds_of(node.func.value) if isinstance(node.func, ast.Attribute) else []
        return of_dtype(names, [*owner, *inside], result)

    def _called(self, node: ast.Call) -> tuple[list[str], list[Kind]]:
        """The names of a call's inferred callees, and the kinds of its result."""
        vars(function := node.func)[CALLED] = True
        own = not isinstance(function, ast.Name) or function.id in self.context.local or self.resolve(function)
        if isinstance(function, ast.Name) and not own and function.id in SAFE:
            first = self.expression(node.args[0]) if function.id in ("next", "reversed") and len(node.args) == 1 else []
            given = self.items(first) if function.id == "next" else first
            return [f"builtins.{function.id}"], given or [signatures.OF_BUILTINS.get(function.id) or UNSEEN]
        if isinstance(function, ast.Attribute):  # and not of a module that the file imports
            local = ast.unparse(function).partition(".")[0] in self.context.local
            if local or not self.resolve(function):
                return sized(node, *self._method(function))
        if named := named_callees(function, self.expression, self.context):
            return named, list(dict.fromkeys(kind for name in named for kind in self._given(name)))
        kinds = [kind for kind in self.expression(function) if str(kind) not in ("str", "NoneType")]  # no calls
        handed = isinstance(function, ast.Name) and function.id in self.context.handed
        # an argument of a function that computes: a constructor would make layers with it
        if kinds == [UNSEEN] and handed and not self.context.in_python:
            return ["builtins.object.__call__"], [UNSEEN]
        names, results = list[str](), list[Kind]()
        for kind in kinds:
            if isinstance(kind, ModuleKind):
                names.append(f"module {kind.cls}")
                results.append(SOME_TENSOR)
            elif isinstance(kind, CallableKind) and "<locals>" in kind.name and (handed or self.inner):
                names.append("builtins.object.__call__")  # written where it is defined
                results += self.inner.get(ast.unparse(function), [UNSEEN])
            elif isinstance(kind, CallableKind):
                names.append(f"{'partial ' * (kind.what == 'partial')}{self._known(kind.name)}")
                results += self.expression(node.args[0]) if kind.name in NORMS and node.args else self._given(kind.name)
            elif self.resolve(function).partition(".")[0] in COMPUTING:
                names.append(self.resolve(function))
                results.append(UNSEEN)
            else:
                return [], []
        return names, list(dict.fromkeys(results))

    def _known(self, name: str) -> str:
        """The name, if it has a row or is translated too; else raises Unwritable."""
        owner, _, method = name.rpartition(".")
        if name in self.program.translated or name.startswith("builtins.") or is_settings(name, self.program):
            return name
        if name in self.program.unread or methods.defines(owner, method, self.program):
            return name
        of_module = owner == "torch.nn.Module" and method in CELL_METHODS
        handled = of_module or has_handler(name) or owner == "torch.nn.init"
        if self.program.row(name) is None and name not in COUNTERPARTS and not handled:
            raise Unwritable(f"{name} has no row in the mapping table")
        return name

    def _given(self, name: str) -> list[Kind]:
        """The kinds of the result of a class or a function."""
        row = self.program.row(name)
        if name in COUNTERPARTS or (row is not None and (row.is_module or row.torch in TABLES["distributions"])):
            return [methods.made_by(name)]
        if name in self.program.translated or is_settings(name, self.program):
            if any(name in bases for bases in self.program.facts.orders):
                return [ModuleKind(name)]
            return [ObjectKind(name)] if name in self.program.unread else signatures.gives(name, self.program)
        own = name in self.program.unread or methods.defines(*name.rpartition(".")[::2], self.program)
        return signatures.gives(name, self.program) if own else [methods.GIVEN.get(name, SOME_TENSOR)]

    def _method(self, function: ast.Attribute) -> tuple[list[str], list[Kind]]:
        """The callees and results of a method, or of a module that is an attribute."""
        if isinstance(function.value, ast.Name) and function.value.id == "self":
            kinds = methods.no_lists(self.program.attributes(self.context.owner).get(function.attr, []))
            kinds = kinds or methods.layers_made(self.context.owner, function.attr, self.program)
            if kinds and all(isinstance(kind, ModuleKind) for kind in kinds):
                set_kinds(function, kinds)
                set_kinds(function.value, [ModuleKind(self.context.owner)])
                return [f"module {kind.cls}" for kind in kinds if isinstance(kind, ModuleKind)], [SOME_TENSOR]
            if kinds and all(isinstance(kind, CallableKind) and kind.what == "function" for kind in kinds):
                set_kinds(function, kinds)
                functions = [self._known(kind.name) for kind in kinds if isinstance(kind, CallableKind)]
                return functions, [g for name in functions for g in self._given(name)]
            if own := methods.method_of(self.context.owner, function.attr, self.program):
                return own
            if any(base.startswith("torch.nn.Module") for base in self.program.facts.bases(self.context.owner)):
                if methods.assigns(self.context.owner, function.attr, self.program):
                    return methods.handed_function(function.attr, self.context)
                return [self._known(f"torch.nn.Module.{function.attr}")], [methods.GIVEN.get(function.attr, UNSEEN)]
        every = [self._method_of(kind, function.attr) for kind in methods.no_lists(self.expression(function.value))]
        if not all(names for names, _ in every):
            return [], []
        return [name for names, _ in every for name in names], list(dict.fromkeys(one for _, one in every))

    def _method_of(self, kind: Kind, method: str) -> tuple[list[str], Kind]:
        """The callees of a method of such an object, none where it is not known; and the kind of its result."""
        match kind:
            case TensorKind():
                sizes = PlainKind("int") if method == "stride" else SizeKind(UNKNOWN_RANK)
                result = OF_TENSORS.get(method, sizes if method == "size" else SOME_TENSOR)
                return [self._known(f"torch.Tensor.{method}")], result
            case ModuleKind() if method in OF_MODULES:
                return [f"torch.nn.Module.{method}"], methods.GIVEN.get(method, UNSEEN)
            case ModuleKind() if method in ("to", "cpu", "cuda", "float"):
                return [self._known(f"torch.nn.Module.{method}")], kind
            case ModuleKind(cls) | ObjectKind(cls) if own := methods.method_of(cls, method, self.program):
                return own[0], own[1][0]
            case ModuleKind(cls) if cls in self.program.translated:
                inner = self.program.attributes(cls).get(method, [])
                modules = [f"module {one.cls}" for one in inner if isinstance(one, ModuleKind)]
                return modules if len(modules) == len(inner) else [], SOME_TENSOR
            case ModuleKind(cls) if cls in CONTAINERS and method in ("append", "extend"):
                return [f"{cls}.{method}"], UNSEEN
            case PlainKind("str"):
                return [f"builtins.str.{method}"], UNSEEN
            case SequenceKind("list") if method in OF_LISTS:
                return [f"builtins.list.{method}"], UNSEEN if method == "pop" else NONE
            case DictKind():
                return [f"builtins.dict.{method}"], UNSEEN
            case ObjectKind(cls) if cls in ("logging.Logger", *TABLES["distributions"]):
                return [f"{cls}.{method}"], NONE if cls == "logging.Logger" else SOME_TENSOR
            case _ if kind == UNSEEN and method in OF_PYTHON and not methods.of_torch(method):
                return [f"builtins.object.{method}"], UNSEEN
            case _ if found := methods.methods_of_modules(method, kind, self.program):
                return found, UNSEEN
        return [], UNSEEN
