"""Values of the run as source: the function that makes the model, whose constructions and changes are statements, with
repeated objects made once; and names that are given another value. And what the new file takes over as it is said: a
class's own `train`, as MindSpore calls it, and the words at the top of the user's files."""

from __future__ import annotations

import ast
import copy
import functools
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ....input_files import LARGEST_PYTHON, read_bytes
from ....mappings.rows import Row
from ...library_names import CONTAINERS, COUNTERPARTS, INSTALLED, dtype_name, is_dtype
from ...source_files import Constant, all_parameters, literal, local_names, own_nodes, short
from ..observe.instrument import comments_of
from ..observe.observations import (
    Array,
    Changes,
    Child,
    DrawnBy,
    EnumMember,
    Items,
    Made,
    ModuleParameter,
    ObjectKind,
    Pairs,
    Reference,
    Step,
    Unknown,
    callees_of,
    parts,
)
from ..rewrite.argument_kinds import as_buffers
from ..rewrite.context import ObservedArgument, Problem, Program, Unwritable, expression, set_receivers
from ..rewrite.library_lookups import write_reference
from ..rewrite.row_calls import bind_arguments, is_super, known_argument, with_initial_values, write_call

# parameters of a cell that was part of another keep the names from there, and those of a later cell have their own
NAMED = """for name, parameter in net.parameters_and_names():
    parameter.name = name"""
USUAL_DTYPE = Reference("torch.float32")
ADD, REPLACE, TAKE = (f"msmigrate.nn.{name}" for name in ("add_cell", "replace_cell", "take_cell"))


def changed_names(body: Sequence[ast.stmt], *, of: str = "") -> dict[str, list[ast.stmt]]:
    """The names of a file's or a class's own statements that are not just assigned there, once: those given another
    value later, changed by a method or an item, or set in a branch or a loop; and the statements that do so.

    of: a class, whose attributes are looked for in place of the names (`Net.width = 8`).
    """
    found: dict[str, list[ast.stmt]] = {}
    often: set[str] = set()
    for statement in body:
        for name, plain in _bound(statement, of, top=True):
            if name in found or not plain:
                often.add(name)
            if statement not in found.setdefault(name, []):
                found[name].append(statement)
    return {name: statements for name, statements in found.items() if name in often}


def _bound(statement: ast.stmt, of: str, *, top: bool) -> Iterator[tuple[str, bool]]:
    """The names that a statement gives a value or changes, and whether it does no more than assign them."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return
    targets: list[ast.expr] = []
    if isinstance(statement, (ast.Assign, ast.Delete)):
        targets = [*statement.targets]
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For)):
        targets = [statement.target] if getattr(statement, "value", statement) is not None else []
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        targets = [function.value] if isinstance(function, ast.Attribute) else []
    plain = top and isinstance(statement, (ast.Assign, ast.AnnAssign))
    while targets:
        target = targets.pop(0)
        if isinstance(target, (ast.Tuple, ast.List)):
            targets = [*target.elts, *targets]
        elif isinstance(target, ast.Name) and not of:
            yield target.id, plain
        elif isinstance(target, ast.Attribute) and ast.unparse(target.value) == of:
            yield target.attr, False
        elif isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
            targets, plain = [target.value, *targets], False
    handlers = [inner for handler in getattr(statement, "handlers", ()) for inner in handler.body]
    for part in (*(getattr(statement, name, ()) for name in ("body", "orelse", "finalbody")), handlers):
        for inner in part:
            yield from _bound(inner, of, top=False)


class FinalValues:
    """The values that the names of a class have after everything that changes them, in its body or at the file's top.

    expression: writes a value of the run.
    """

    def __init__(
        self, program: Program, qualified: str, file: str, node: ast.ClassDef, expression: Callable[[Any], ast.expr]
    ) -> None:
        self.program, self.file, self.expression = program, file, expression
        known = program.facts.constants.get(program.module_of(qualified), {})
        self.known = {key.partition(".")[2]: one for key, one in known.items() if key.startswith(f"{node.name}.")}
        self.body, self.inside = node.body, changed_names(node.body)
        self.outside = changed_names(program.tree(file).body, of=node.name)

    def replace(self, statement: ast.stmt) -> bool:
        """Whether a statement only gives names of the class values that nothing reads before they have their last."""
        names = {name for name, _ in _bound(statement, "", top=True)}
        if not names or not all(name in self.known and statement in self.inside.get(name, ()) for name in names):
            return False
        after = self.body[self.body.index(statement) + 1 :]
        others = [one for one in after if not any(one in self.inside[name] for name in names)]
        until = max((after.index(self.inside[name][-1]) for name in names if self.inside[name][-1] in after), default=0)
        read = (node for one in others if after.index(one) < until for node in ast.walk(one))
        return not any(isinstance(node, ast.Name) and node.id in names for node in read)

    def behind(self, statement: ast.stmt | None) -> list[ast.stmt]:
        """What is assigned behind a statement of the class; None: at its end. Lists changes of which it is not known
        what comes of them."""
        changed = self.outside if statement is None else self.inside
        last = {name: made[-1] for name, made in changed.items() if statement in (None, made[-1])}
        for name in last.keys() - self.known.keys():
            list_change(name, last[name], self.file, self.program)
        final = [(name, self.expression(self.known[name])) for name in last if name in self.known]
        return [ast.Assign([ast.Name(name, ast.Store())], value, lineno=1) for name, value in final]


def changed_at_top(origin: Constant, tree: ast.Module, program: Program, known: Collection[str]) -> bool:
    """Whether more than one statement at a file's top gives a name its value; lists the change where it is not known
    what comes of it, and where a function may change it as the model runs."""
    changes = changed_names(tree.body).get(origin.name, [])
    plain = literal(origin.node.value)[0] or isinstance(origin.node.value, (ast.Set, ast.List))
    if changes and origin.name not in known and plain:
        list_change(origin.name, changes[-1], origin.file, program)
    of_users = not INSTALLED.intersection(Path(origin.file).parts)
    for node in ast.walk(tree) if plain and of_users else ():
        if isinstance(node, ast.Global) and origin.name in node.names:
            list_change(origin.name, node, origin.file, program)
    return bool(changes)


def list_change(name: str, statement: ast.stmt, file: str, program: Program) -> None:
    """List that a name is written as its first statement says, and changed by another."""
    text = f"{ast.unparse(statement).splitlines()[0]} changes {name}, which is written without it"
    program.left_out.append(Problem(file, statement.lineno, text))


class ModelFunction:
    """Writes the values of the worker's report, and the function that makes the model from them.

    definitions: the new file's program. taken: names that mean something else. free: whether the model may be called
    `net`. renamed: whether parameters have to be renamed after the model is complete.
    """

    def __init__(self, definitions: Program, taken: Iterable[str], *, free: bool, root: Any = None) -> None:
        self.definitions = definitions
        self.shared = SharedObjects(definitions.facts.root if root is None else root, taken, free=free)
        self.renamed = root is None and definitions.facts.taken_out

    def expression(self, value: Any, wanted: str = "") -> ast.expr:
        """The expression for a value of the worker's report; see observations.py.

        wanted: the name of the parameter that gets it.
        """
        match value:
            case Made(changes=None):
                return self.shared.once(value, wanted, lambda: self._call(value))
            case Made(changes=Changes() as changes):
                self.renamed = self.renamed or replace(changes, drawn=(), numbers=()) != Changes()
                after = functools.partial(self.changes, changes=changes)
                return self.shared.changed(value, wanted, lambda: self._call(value), after)
            case Child(name, of):
                return _child(self.expression(of), name)
            case EnumMember(cls, name):
                self.definitions.define(cls)
                return ast.Attribute(self._called(cls), name, ast.Load())
            case Reference(name):
                return self._named(name)
            case Items(kind, items):
                node = ast.Tuple if kind == "tuple" else ast.List
                return node([self.expression(item) for item in items], ast.Load())
            case Pairs(pairs):
                made = [(self.expression(key), self.expression(item)) for key, item in pairs]
                return ast.Dict([key for key, _ in made], [item for _, item in made])
            case Array():
                return self._array(value)
            case Unknown(what, instead):
                return self._missing(f"the construction of this {what} was not seen: {instead}")
        return expression(value, self.definitions.name)

    def _array(self, array: Array) -> ast.expr:
        """`np.array([1, 2], dtype=np.int64)`, or `Tensor([1, 2], mindspore.int64)`."""
        name = self.definitions.name
        numbers = expression(array.numbers, name)
        if 0 in array.shape:
            numbers = ast.Call(name("numpy.zeros"), [expression(array.shape, name)], [])
        else:
            numbers = _as_lists(numbers)
        if array.of == "torch":
            return ast.Call(name("mindspore.Tensor"), [numbers, name(dtype_name(array.dtype))], [])
        dtype = name(f"numpy.{'bool_' if array.dtype == 'bool' else array.dtype}")
        return ast.Call(name("numpy.array"), [numbers], [ast.keyword("dtype", dtype)])

    def function(self, name: str, root: ast.expr) -> ast.FunctionDef:
        """The function that makes the model; it takes further arguments of the model's class as `**kwargs`."""
        classes = {node.name: node for node in self.definitions.definitions.values() if isinstance(node, ast.ClassDef)}
        call = root
        for statement in self.shared.before:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == ast.unparse(root):
                call = statement.value
        owner = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
        head, more = f"def {name}() -> {owner if owner in classes else 'nn.Cell'}:", False
        given_anew: list[ast.stmt] = []
        if isinstance(root, ast.Call) and owner in classes:
            inits = [n for n in classes[owner].body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
            given = {word.arg for word in root.keywords}
            free = [argument.arg for init in inits for argument in init.args.args[1 + len(root.args) :]]
            more = bool(set(free) - given) and None not in given
        if more and isinstance(root, ast.Call):
            inside = {n.id for line in self.shared.before for n in ast.walk(line) if isinstance(n, ast.Name)}
            takes: list[str] = []  # those that the model was made with may be given otherwise, too
            inside |= self._computed(name)
            for word in root.keywords:
                if word.arg is not None and literal(word.value)[0] and word.arg not in inside:
                    anew = isinstance(word.value, (ast.List, ast.Dict))  # which the class may change
                    takes.append(f"{word.arg}={None if anew else ast.unparse(word.value)}")
                    if anew:
                        given_anew += ast.parse(f"if {word.arg} is None:\n {word.arg} = {ast.unparse(word.value)}").body
                    word.value = ast.Name(word.arg, ast.Load())
            head = head.replace("()", f"({', '.join([*takes, '**kwargs: Any'])})", 1)
            root.keywords.append(ast.keyword(None, ast.Name("kwargs", ast.Load())))
        maker = ast.parse(f"{head}\n    pass").body[0]
        assert isinstance(maker, ast.FunctionDef)
        body = [*given_anew, *self.shared.before]
        if self.renamed:
            if not isinstance(root, ast.Name):
                body.append(ast.Assign([ast.Name("net", ast.Store())], root))
                root = ast.Name("net", ast.Load())
            named = ast.parse(NAMED).body
            assert isinstance(named[0], ast.For)
            named[0].iter = ast.Call(ast.Attribute(root, "parameters_and_names", ast.Load()), [], [])
            body += named
        maker.body = [*body, ast.Return(root)]
        return maker

    def _computed(self, name: str) -> set[str]:
        """The arguments of the user's function of this name, and of the one that makes the model, that they do more
        with than to hand them on: another value would mean something else there, as `depth` in `Net(depth=2 * depth)`.
        """
        made, found = getattr(self.shared.root, "function", ""), set[str]()
        for qualified, function in self.definitions.functions.items():
            node = self.definitions.node(function) if qualified.rpartition(".")[0] in self.definitions.modules else None
            calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)] if node is not None else []
            if node is None or not (node.name == name or any(made in callees_of(call) for call in calls)):
                continue
            handed = [w.arg for c in calls for w in c.keywords if w.arg and ast.unparse(w.value) == w.arg]
            uses = Counter(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
            takes = [one.arg for one in all_parameters(node.args)]
            found |= {one for one in takes if uses[one] != handed.count(one) or uses[one] > 1}
        return found

    def _named(self, name: str) -> ast.expr:
        """A class, a function or a dtype that is passed as an argument."""
        if name.startswith("torch.") and is_dtype(dtype := name.removeprefix("torch.")):
            return self.definitions.name(dtype_name(dtype))
        self.definitions.define(name)
        row = self.definitions.row(name) if name not in self.definitions.translated else None
        return self._called(name) if row is None else write_reference(row, {}, self.definitions.name)

    def _call(self, made: Made) -> ast.expr:
        name, args, kwargs = made.function, made.args, dict(made.kwargs)
        self.definitions.define(name)
        inner = args[0].name if args and isinstance(args[0], Reference) else ""
        if name == "functools.partial" and inner:
            row = self.definitions.row(inner)
            if row is not None:
                return self._crossed(row, inner, args[1:], kwargs, partial=True)
        row = self.definitions.row(name)
        if row is not None and name not in CONTAINERS:
            return self._crossed(row, name, args, kwargs)
        names = self.definitions.parameters(name)
        words = [ast.keyword(key, self.expression(item, key)) for key, item in kwargs.items()]
        given = [self.expression(item, names[at] if at < len(names) else "") for at, item in enumerate(args)]
        if name == "torch.nn.Sequential":  # MindSpore's takes no plain dictionary
            ordered = self.definitions.imported_name("collections", "OrderedDict")
            given = [ast.Call(ordered, [item], []) if isinstance(item, ast.Dict) else item for item in given]
        found = ast.Call(self._called(name), given, words)
        set_receivers(found, [inner if name == "functools.partial" else name])
        return found

    def _crossed(
        self, row: Row, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, partial: bool = False
    ) -> ast.expr:
        """The call of the row's class, or of a class of the program with the constructor of its torch base."""
        namer = self.definitions.name
        try:
            positional = [self._argument(value) for value in args]
            said = {key: value for key, value in kwargs.items() if value != USUAL_DTYPE}  # layers have it anyway
            named = {key: self._argument(value) for key, value in said.items()}
            given = bind_arguments(row, positional, named)
            asks = "functools.partial" in self.definitions.named
            found = write_reference(row, given, namer, a_partial=asks) if partial else write_call(row, given, namer)
        except Unwritable as error:
            return self._missing(str(error))
        if name in self.definitions.translated:
            self.definitions.define(name)
            if partial and isinstance(found, ast.Call):
                found.args[0] = self._called(name)
            elif isinstance(found, ast.Call):
                found.func = self._called(name)
        if partial:
            return found
        made = with_initial_values(row, found, namer)
        return as_buffers(row, found, namer, made) if isinstance(found, ast.Call) else made

    def _argument(self, value: Any) -> ObservedArgument:
        """A value as an argument of a row's call; arrays and tensors are written as tensors."""
        argument = known_argument(self.expression(value))
        return argument._replace(kinds=[ObjectKind("mindspore.Tensor")]) if isinstance(value, Array) else argument

    def _missing(self, text: str) -> ast.Call:
        return self.definitions.missing(Problem("", 0, text))

    def _called(self, name: str) -> ast.expr:
        if name in COUNTERPARTS:
            return self.definitions.name(COUNTERPARTS[name])
        module, _, last = name.rpartition(".")
        if module in sys.stdlib_module_names:
            return self.definitions.imported_name(module, last)
        return ast.Name(self.definitions.called(name), ast.Load())

    def changes(self, net: str, changes: Changes) -> list[ast.stmt]:
        """The statements for changes to a module: frozen parameters first, then children put in place, as is usual.

        net: the variable that holds the module. A change that cannot be written becomes a problem.
        """
        found = [self._removed(net, path) for path in changes.removed]
        found += [statement for one in changes.frozen for statement in self._frozen(net, one)]
        for gone, instead in changes.tied:
            target, source = self._parameter(net, gone), self._parameter(net, instead)
            target.ctx = ast.Store()
            found.append(ast.Assign([target], source))
        found += [ast.Expr(self._missing(text)) for text in changes.missed]
        for one in changes.numbers:
            attribute = ast.Attribute(_at(net, one.path), one.name, ast.Store())
            found.append(ast.Assign([attribute], self.expression(one.value)))
        drawn = [(draw.first, self._drawn(net, draw)) for draw in changes.drawn]
        found += [statement for first, statement in drawn if first]
        for child in changes.children:
            *way, (name, within) = child.path
            found.append(self._placed(_at(net, way), name, within, self.expression(child.made), new=child.new))
        return found + [statement for first, statement in drawn if not first]

    def _removed(self, net: str, path: Sequence[Step]) -> ast.stmt:
        """`del net.fc`, or `take_cell(net.layers, 4)`."""
        *way, (name, within) = path
        if within:
            return ast.Expr(ast.Call(self.definitions.name(TAKE), [_at(net, way), ast.Constant(int(name))], []))
        return ast.Delete([ast.Attribute(_at(net, way), name, ast.Del())])

    def _drawn(self, net: str, drawn: DrawnBy) -> ast.stmt:
        """`init_weights(net.head, std=0.02)`, or `net.apply(init_weights)`."""
        name = drawn.call.function
        self.definitions.define(name)
        function = ast.Name(self.definitions.called(name), ast.Load())
        owner = _at(net, drawn.path)
        if drawn.applied:
            return ast.Expr(ast.Call(ast.Attribute(owner, "apply", ast.Load()), [function], []))
        words = [ast.keyword(key, self.expression(value)) for key, value in drawn.call.kwargs]
        call = ast.Call(function, [owner, *map(self.expression, drawn.call.args)], words)
        set_receivers(call, [name])
        return ast.Expr(call)

    def _placed(self, owner: ast.expr, name: str, within: str, cell: ast.expr, *, new: bool) -> ast.stmt:
        if within == "ModuleDict":
            return ast.Assign([ast.Subscript(owner, ast.Constant(name), ast.Store())], cell)
        if within and name.isdecimal() and new:
            return ast.Expr(ast.Call(ast.Attribute(owner, "append", ast.Load()), [cell], []))
        if within and name.isdecimal():
            return ast.Assign([ast.Subscript(owner, ast.Constant(int(name)), ast.Store())], cell)
        if within == "Sequential":
            helper = self.definitions.name(ADD if new else REPLACE)
            return ast.Expr(ast.Call(helper, [owner, ast.Constant(name), cell], []))
        if name.isidentifier():
            return ast.Assign([ast.Attribute(owner, name, ast.Store())], cell)
        return ast.Expr(ast.Call(ast.Name("setattr", ast.Load()), [owner, ast.Constant(name), cell], []))

    def _frozen(self, net: str, parameter: ModuleParameter) -> list[ast.stmt]:
        """`for parameter in net.layer1.get_parameters(): parameter.requires_grad = False`, or one parameter's."""
        if parameter.name:
            return [_untrained(self._parameter(net, parameter))]
        every = ast.Call(ast.Attribute(_at(net, parameter.path), "get_parameters", ast.Load()), [], [])
        return [ast.For(ast.Name("parameter", ast.Store()), every, [_untrained(ast.Name("parameter", ast.Load()))], [])]

    def _parameter(self, net: str, parameter: ModuleParameter) -> ast.Attribute:
        """One parameter of a module, by MindSpore's name."""
        row = self.definitions.torch_base(parameter.cls)
        states = {state.torch: state.mindspore for state in row.state} if row is not None else {}
        return ast.Attribute(
            _at(net, parameter.path), states.get(parameter.name, parameter.name) or parameter.name, ast.Load()
        )


def _as_lists(node: ast.expr) -> ast.expr:
    """The expression with lists instead of tuples."""
    return ast.List([*map(_as_lists, node.elts)], ast.Load()) if isinstance(node, ast.Tuple) else node


def _child(parent: ast.expr, name: str) -> ast.expr:
    """The child of a module by its name, which may be an index."""
    if name.isidentifier():
        return ast.Attribute(parent, name, ast.Load())
    return ast.Subscript(parent, ast.Constant(int(name) if name.isdecimal() else name), ast.Load())


def _at(net: str, path: Sequence[Step]) -> ast.expr:
    """The module at a path, as `net.layer1[0]`."""
    found: ast.expr = ast.Name(net, ast.Load())
    for name, within in path:
        if within == "ModuleDict" or name.isdecimal():
            found = ast.Subscript(found, ast.Constant(int(name) if within != "ModuleDict" else name), ast.Load())
        else:
            found = ast.Attribute(found, name, ast.Load())
    return found


def _untrained(parameter: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Attribute(parameter, "requires_grad", ast.Store())], ast.Constant(False))


class SharedObjects:
    """The objects of a worker's report that occur more than once, as variables of the function that makes the model.

    taken: names that mean something else. free: whether the model itself may be called `net`. `before` are the
    assignments, in the order in which they need each other.
    """

    def __init__(self, root: Any, taken: Iterable[str], *, free: bool = False) -> None:
        self.many = {key for key, count in Counter(_ids(root, set())).items() if count > 1}
        self.root, self.free = root, free
        self.taken = set(taken)
        self.names: dict[int | None, ast.expr] = {}
        self.before: list[ast.stmt] = []

    def once(self, value: Made, wanted: str, make: Callable[[], ast.expr]) -> ast.expr:
        """The expression for an object: its variable, where it occurs more than once. wanted: a name for that."""
        key = value.id
        if key not in self.many:
            return make()
        if key not in self.names:
            found = make()
            if isinstance(found, ast.Call):
                name = self._name(wanted or _words(value))
                self.before.append(ast.Assign([ast.Name(name, ast.Store())], found))
                found = ast.Name(name, ast.Load())
            self.names[key] = found
        return copy.deepcopy(self.names[key])

    def changed(
        self,
        value: Made,
        wanted: str,
        make: Callable[[], ast.expr],
        after: Callable[[str], list[ast.stmt]],
    ) -> ast.expr:
        """The variable of an object that is changed after it is made, by the statements of `after` for its name."""
        key = value.id
        if key not in self.names:
            name = "net" if value is self.root and self.free else self._name(wanted or _words(value))
            self.before.append(ast.Assign([ast.Name(name, ast.Store())], make()))
            self.names[key] = ast.Name(name, ast.Load())
            self.before += after(name)
        return copy.deepcopy(self.names[key])

    def _name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}{number}"
        self.taken.add(name)
        return name


def _ids(value: Any, seen: set[int]) -> Iterator[int]:
    """The objects of a report, each as often as it occurs; the parts of an object are counted only once."""
    if isinstance(value, Made) and value.id is not None:
        yield value.id
        if value.id in seen:
            return
        seen.add(value.id)
    for part in parts(value):
        yield from _ids(part, seen)


def _words(made: Made) -> str:
    """`basic_block` for a BasicBlock, and for a partial of one."""
    partial = made.function == "functools.partial" and made.args and isinstance(made.args[0], Reference)
    name = made.args[0].name if partial else made.function
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", short(name)).lower()


def hoisted(around: ast.FunctionDef | None, name: str) -> ast.FunctionDef | None:
    """A function inside of another as one of its own, which takes what it reads of the other's variables by name."""
    if around is None:
        return None
    inside = [node for node in ast.walk(around) if isinstance(node, ast.FunctionDef) and node is not around]
    found = copy.deepcopy([node for node in inside if node.name == name])
    if len(found) != 1 or any(isinstance(node, ast.Nonlocal) for node in ast.walk(found[0])):
        return None
    stored = [node for node in own_nodes(around) if not isinstance(getattr(node, "ctx", None), ast.Load)]
    held = {getattr(node, "id", getattr(node, "name", "")) for node in stored}
    held = {*held, *(one.arg for one in all_parameters(around.args))} - {*local_names(found[0])}
    read = dict.fromkeys(node.id for node in ast.walk(found[0]) if isinstance(node, ast.Name) and node.id in held)
    found[0].args.kwonlyargs += [*map(ast.arg, read)]
    found[0].args.kw_defaults += [None for _ in read]
    return found[0]


OF_TRAIN = """
def add_flags_recursive(self, **flags):
    \"\"\"MindSpore calls this for every cell when training begins or ends: `train` of torch's class.\"\"\"
    if 'training' not in flags:
        return super().add_flags_recursive(**flags)
    mode = flags['training']
"""


def called_by_mindspore(train: ast.FunctionDef) -> ast.FunctionDef:
    """A class's own `train` under the name that MindSpore calls: for the cells inside, `set_train` calls
    `add_flags_recursive`, not their own `set_train`."""
    found = ast.parse(OF_TRAIN).body[0]
    assert isinstance(found, ast.FunctionDef)
    mode = next((argument.arg for argument in train.args.args[1:]), "mode")
    found.body[-1] = ast.parse(f"{mode} = flags['training']").body[0]
    for call in [node for node in ast.walk(train) if isinstance(node, ast.Call) and is_super(node.func)]:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("train", "set_train"):
            value = call.args[0] if call.args else next((w.value for w in call.keywords), ast.Constant(True))
            call.func.attr, call.args = "add_flags_recursive", []
            flags = ast.Dict([None, ast.Constant("training")], [ast.Name("flags", ast.Load()), value])
            call.keywords = [ast.keyword(None, flags)]
    documented = ast.get_docstring(train) is not None
    found.body += train.body[1:] if documented else train.body
    return found


TECHNICAL = re.compile(r"# *(!|-\*-|(en)?coding[:=]|vim?:)")  # for the shell, Python or an editor


def said_at_top(files: Program, root: str) -> str:
    """What the user's files say above their imports, such as who wrote them, as comments below the new docstring; root:
    the qualified name whose file's docstring is in there, where it is a short one."""
    found: dict[str, list[str]] = {}
    for key in (root, *files.definitions):
        module = key.rpartition(":" if ":" in key else ".")[0]
        file = module if ":" in key else files.modules.get(module, "")
        if file and file not in found and Path(file).is_file() and INSTALLED.isdisjoint(Path(file).parts):
            text = read_bytes(Path(file), LARGEST_PYTHON)
            found[file] = _top(text, docstring=key != root or not files.docstring_of(root))
    said = {file: lines for file, lines in found.items() if lines}
    titled = [*said] != [files.modules.get(root.rpartition(".")[0])]
    texts = ("\n".join([*([f"# {Path(file).name}:"] if titled else []), *lines]) for file, lines in said.items())
    return "".join(f"\n\n{text}" for text in texts)


@functools.lru_cache(maxsize=100)
def _top(content: bytes, *, docstring: bool) -> list[str]:
    """The comments above a file's first statement, without those that stand right above a class or function, and the
    file's docstring as comments."""
    tree = ast.parse(content)
    text = ast.get_docstring(tree)
    body = tree.body[text is not None :]
    line = body[0].lineno if body else 1
    said = [(number, words) for number, _, words, alone in comments_of(content) if alone and number < line]
    while said and not isinstance(body[0], (ast.Import, ast.ImportFrom)) and said[-1][0] == line - 1:
        line = said.pop()[0]
    lines: list[str] = []
    for (number, words), (before, _) in zip(said, [said[0], *said] if said else [], strict=False):
        lines += [] if TECHNICAL.match(words) else [*(["#"] if lines and number - before > 1 else []), words]
    plain = ["".join(c for c in one if c.isprintable()) for one in (text or "").splitlines() if docstring]
    comments = [f"# {one}".rstrip() for one in plain]
    return [*lines, *(["#"] if lines and comments else []), *comments]
