"""Hidden states that transformers' decorators collect by hooks, collected in the model's own code instead.

`capture_outputs` adds the outputs of every module of a class to the result of a model's function, and
`filter_output_hidden_states` requests them (observe/torch_collected_outputs.py). In the new file the loop that calls
these modules collects their outputs, and `output_hidden_states` is an argument:

    all_hidden_states = ()
    for stage in self.stages:
        hidden_states = stage(hidden_states)
        all_hidden_states = (*all_hidden_states, hidden_states)
    if not output_hidden_states:
        return {"last_hidden_state": hidden_states}
    return {"last_hidden_state": hidden_states, "hidden_states": all_hidden_states}

What a forward keeps as an attribute and goes on with has a name besides: graph mode's gradient ends at the attribute.
A function without a result returns the tensors that it writes into. A local variable that would hide a class or
function of the new file has another name.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from ...source_files import SourceFiles, all_parameters, blocks_of, local_names, own_nodes, substitute
from ..observe.instrument import first_line
from ..observe.observations import (
    REQUEST,
    STATES,
    Collected,
    DictKind,
    Filtered,
    Kind,
    Observed,
    PlainKind,
    SequenceKind,
    Target,
    TensorKind,
    always,
    callees_of,
    entries_of,
    kinds_of,
    reached,
    replacing,
    set_kinds,
)
from .context import Context, Problem, Program, Unwritable
from .control_flow import refused
from .dataclasses_and_configs import leave_out, record_of_call
from .devices_and_no_grad import stored_attributes
from .graph_mode import put
from .views import handed_back

Place = tuple[str, int]  # the file and the first line of a function
LAST = "last_hidden_state"


def write_collecting(function: ast.FunctionDef, context: Context) -> str:
    """Write out what decorators of a function, or of one that calls it, collect in it; in place.

    Returns the reason where that cannot be written, and then leaves the function unchanged.
    """
    collected = context.program.facts.collected
    place = (context.file, first_line(function))
    inside = [one for seen in collected.values() for c in seen if isinstance(c, Collected) for one in c.targets]
    if place not in collected and all(place not in one.through for one in inside):
        return ""
    made = copy.deepcopy(function)
    try:
        _Collecting(made, place, context).write(collected.get(place, []), inside)
    except Unwritable as error:
        return str(error)
    function.args, function.body = made.args, made.body
    return ""


class _Collecting:
    def __init__(self, function: ast.FunctionDef, place: Place, context: Context) -> None:
        self.function, self.place, self.context = function, place, context
        self.program = context.program
        taken = {*local_names(function), *(one.arg for one in all_parameters(function.args))}
        free = ("all_hidden_states", "collected_hidden_states", "states_of_all_layers")
        self.states = next(name for name in free if name not in taken)
        self.kinds: list[Kind] = [SequenceKind("tuple", (TensorKind("float32", 3),))]
        self.requested_by_configuration = False
        self.last = ""  # the variable that holds the last collected state, where nothing changes it before the end

    def write(self, seen: Sequence[Collected | Filtered], inside: Sequence[Target]) -> None:
        """Write out the decorator of this function, or that of the model whose function calls it."""
        if len({(type(one), one.default, getattr(one, "tie", None)) for one in seen}) > 1:
            raise Unwritable(f"{self.function.name} collects hidden states in more than one way")
        if seen and isinstance(seen[0], Filtered):
            self.request()
            requested = self.argument(seen[0].default)
            self.returns(requested, None)
            return
        self.collect([one for one in inside if self.place in one.through])
        if not seen or not isinstance(seen[0], Collected):
            self.returns(None, ast.Name(self.states, ast.Load()))
            return
        requested = self.argument(seen[0].default)
        self.returns(requested, ast.Name(self.states, ast.Load()), tie=seen[0].tie)

    # what is collected

    def collect(self, targets: Sequence[Target]) -> None:
        """Collect the outputs of modules that this function calls, or the states that a called function collected."""
        inner = {one.through[place - 1] for one in targets if (place := one.through.index(self.place))}
        direct = [one for one in targets if one.through[0] == self.place]
        if inner and (direct or len(inner) > 1):
            raise Unwritable("hidden states come from more than one function")
        calls = [node for node in own_nodes(self.function) if isinstance(node, ast.Call)]
        if inner:
            (of,) = inner
            sites = {id(call) for call in calls if of in _places(call, self.program)}
        else:
            sites = {id(call) for call in calls if any(one.cls in _classes(call) for one in direct)}
        first = int(ast.get_docstring(self.function) is not None)
        found = [n for n, line in enumerate(self.function.body) if _has(line, sites)]
        if not found:
            raise Unwritable("no statement of the function calls the modules whose outputs are hidden states")
        written = 0
        for block in [self.function.body, *_blocks(self.function)]:
            for at in reversed(range(len(block))):
                line = block[at]
                own = [n for n in _own(line) if id(n) in sites]
                if not own:
                    continue
                written += len(own)
                if len(own) > 1 or not isinstance(line, (ast.Assign, ast.AnnAssign)):
                    raise Unwritable(f"its outputs are hidden states, and it is no simple assignment: {_said(line)}")
                if inner and (block is not self.function.body or len(sites) > 1):
                    raise Unwritable(f"it returns hidden states, and may be called more than once: {_said(line)}")
                given = self.from_inside(line) if inner else self.of_one(line, direct)
                block[at : at + 1] = given
        if written != len(sites):
            raise Unwritable("a module whose outputs are hidden states is called inside of an expression")
        if not inner:
            start = max(found[0], first)
            empty = ast.Assign([ast.Name(self.states, ast.Store())], ast.Tuple([], ast.Load()))
            self.function.body.insert(start, _ran(empty, self.function.body[start]))
            self.last = self.last if len(sites) == 1 and self._kept(found[-1] + 1) else ""

    def _kept(self, start: int) -> bool:
        """Whether the variable that holds the last collected state is assigned only once from a line on."""
        inside = [node for line in self.function.body[start:] for node in ast.walk(line)]
        names = [n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        return names.count(self.last) == 1

    def of_one(self, line: ast.Assign | ast.AnnAssign, targets: Sequence[Target]) -> list[ast.stmt]:
        """The statement that calls such a module, then one that collects its output; before both perhaps its input."""
        value = line.value
        item = value.slice if isinstance(value, ast.Subscript) else None
        call = value.value if isinstance(value, ast.Subscript) else value
        if not isinstance(call, ast.Call) or value is None:
            raise Unwritable(f"its output is a hidden state, and it is no plain call: {_said(line)}")
        ways = {(one.index, one.initial) for one in targets if one.cls in _classes(call)}
        if len(ways) != 1:
            raise Unwritable(f"its outputs are hidden states in more than one way: {_said(line)}")
        ((index, initial),) = ways
        several = [isinstance(kind, SequenceKind) and kind.type != "list" for kind in kinds_of(call)]
        if any(several) and not all(several):
            raise Unwritable(f"it returns a tuple only sometimes: {_said(line)}")
        target = _target(line)
        output: ast.expr | None = None
        if isinstance(target, ast.Name):
            if item is None and any(several):
                output = ast.Subscript(_load(target, kinds_of(call)), ast.Constant(index), ast.Load())
            elif item is None or (any(several) and isinstance(item, ast.Constant) and item.value == index):
                output = _load(target, kinds_of(value))
        elif isinstance(target, ast.Tuple) and item is None and any(several):
            plain = not any(isinstance(one, ast.Starred) for one in target.elts)
            inside = target.elts[index] if plain and -len(target.elts) <= index < len(target.elts) else None
            output = _load(inside, _inside(call)) if isinstance(inside, ast.Name) else None
        if output is None:
            raise Unwritable(f"it is not known which part of its output is a hidden state: {_said(line)}")
        self.kinds = [SequenceKind("tuple", tuple(_inside(call) if any(several) else kinds_of(call)))]
        self.last = output.id if isinstance(output, ast.Name) else ""
        more = ast.Tuple([ast.Starred(self.load(), ast.Load()), output], ast.Load())
        after = ast.Assign([ast.Name(self.states, ast.Store())], more)
        before = [self.first_input(line, call)] if initial else []
        return [*before, line, _ran(after, line)]

    def first_input(self, line: ast.stmt, call: ast.Call) -> ast.stmt:
        """A statement that collects the input of the first module, which is a hidden state too."""
        if not call.args or not isinstance(call.args[0], ast.Name):
            raise Unwritable(f"its first input is a hidden state, and has no name: {_said(line)}")
        one = ast.Tuple([copy.deepcopy(call.args[0])], ast.Load())
        gives = _ran(ast.Assign([ast.Name(self.states, ast.Store())], one), line)
        return _ran(ast.If(_compared(self.load(), ast.Eq()), [gives], []), line)

    def from_inside(self, line: ast.Assign | ast.AnnAssign) -> list[ast.stmt]:
        """The statement that calls a function which collects hidden states, and one that takes them from its result."""
        target = _target(line)
        if not isinstance(target, ast.Name) or not isinstance(line.value, ast.Call):
            raise Unwritable(f"it returns hidden states too, and its result has no name: {_said(line)}")
        kinds = kinds_of(line.value)
        names = [str(vars(kind).get("cls")) for kind in kinds]
        record = record_of_call(self.program.facts.records, names)
        states = ast.Name(self.states, ast.Store())
        if record is None:  # a single tensor, which is now returned together with the states
            both = replacing(ast.Tuple([copy.deepcopy(target), states], ast.Store()), target)
            return [_ran(ast.Assign([both], line.value), line)]
        for name in names:
            self.program.facts.is_present(name, STATES)
        taken = ast.Attribute(_load(target, kinds), STATES, ast.Load())
        return [line, _ran(ast.Assign([states], set_kinds(taken, self.kinds)), line)]

    def load(self) -> ast.Name:
        """The variable with the collected states."""
        return set_kinds(ast.Name(self.states, ast.Load()), self.kinds)

    # how they are requested

    def argument(self, default: bool) -> ast.expr:
        """The argument that requests hidden states; its default is the configuration's value where it was in torch."""
        given = self.function.args
        if REQUEST not in {one.arg for one in all_parameters(given)}:
            hint = "bool | None" if default else "bool"
            given.args.append(ast.arg(REQUEST, ast.parse(hint, mode="eval").body))
            given.defaults.append(ast.Constant(None if default else False))
            if default:
                self.by_configuration()
        elif default:
            raise Unwritable(f"both its configuration and its argument {REQUEST} request hidden states")
        return ast.Name(REQUEST, ast.Load())

    def by_configuration(self) -> None:
        """Take the configuration's value where the argument is None."""
        self.requested_by_configuration = True
        kinds = self.program.attributes(self.context.owner).get("config")
        if not kinds:
            raise Unwritable(f"the configuration that requests hidden states was not seen: {self.function.name}")
        config = set_kinds(ast.Attribute(ast.Name("self", ast.Load()), "config", ast.Load()), kinds)
        says = ast.Attribute(config, REQUEST, ast.Load())
        vars(says)["observed"] = Observed(kinds=[PlainKind("bool")], constants=[True])
        first = int(ast.get_docstring(self.function) is not None)
        near = self.function.body[first]
        test = ast.Compare(ast.Name(REQUEST, ast.Load()), [ast.Is()], [ast.Constant(None)])
        gives = _ran(ast.Assign([ast.Name(REQUEST, ast.Store())], says), near)
        self.function.body.insert(first, _ran(ast.If(test, [gives], []), near))

    def request(self) -> None:
        """Pass `output_hidden_states=True` to the calls to which this function passes its `**kwargs`."""
        given = self.function.args
        if REQUEST in {one.arg for one in all_parameters(given)}:
            raise Unwritable(
                f"{self.function.name} requests hidden states both by a decorator and by an argument of its own"
            )
        rest = given.kwarg.arg if given.kwarg else ""
        uses = {id(n) for n in ast.walk(self.function) if isinstance(n, ast.Name) and n.id == rest and kinds_of(n)}
        for call in [n for n in ast.walk(self.function) if isinstance(n, ast.Call)]:
            word = next((one for one in call.keywords if one.arg is None and id(one.value) in uses), None)
            if word is None:
                continue
            uses.remove(id(word.value))
            others = [
                DictKind(tuple(pair for pair in kind.entries if pair[0] != REQUEST))
                for kind in kinds_of(word.value)
                if isinstance(kind, DictKind)
            ]
            if REQUEST in (entries_of(word.value) or {}):
                asks = ast.keyword(REQUEST, ast.Constant(True))
                call.keywords[call.keywords.index(word)] = asks
                word.value = set_kinds(copy.deepcopy(word.value), dict.fromkeys(others))
                call.keywords.append(word)
        if uses:
            raise Unwritable(
                f"{self.function.name} uses its **{rest}, to which its decorator adds {REQUEST}, other than in a call"
            )

    # what is returned

    def returns(self, requested: ast.expr | None, states: ast.expr | None, *, tie: bool = False) -> None:
        """Make the function return hidden states: the given ones, or else those that it already returns.

        requested: an expression for whether it returns them; None for always. tie: whether the last one is the model's
        last output.
        """
        for block in [self.function.body, *_blocks(self.function)]:
            for at in reversed(range(len(block))):
                line = block[at]
                if isinstance(line, ast.Return) and reached(line):
                    block[at : at + 1] = self.end(line, requested, states, tie=tie)
                elif isinstance(line, ast.Return):
                    block[at : at + 1] = self.unseen_end(line, requested)

    def end(
        self, line: ast.Return, requested: ast.expr | None, states: ast.expr | None, *, tie: bool
    ) -> list[ast.stmt]:
        """The statements for a `return`."""
        call, records = line.value, self.program.facts.records
        record = record_of_call(records, callees_of(call)) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or record is None or STATES not in record.fields:
            if requested is None and states is not None and line.value is not None and self.alone(line.value):
                return [_ran(ast.Return(ast.Tuple([line.value, self.load()], ast.Load())), line)]
            raise Unwritable(f"hidden states are to be returned, and the result has no field for them: {_said(line)}")
        named = {word.arg: word for word in call.keywords}
        if None in named or record.fields.index(STATES) < len(call.args):
            raise Unwritable(f"it is not known which field each argument is: {_said(line)}")
        if states is not None:
            for name in callees_of(call):
                self.program.facts.is_present(name, STATES)
        elif STATES not in named:
            return [line]
        without, whole = copy.deepcopy(line), copy.deepcopy(line)
        assert isinstance(without.value, ast.Call) and isinstance(whole.value, ast.Call)
        before = self.tied(whole.value, record.fields) if tie else []
        if states is not None:
            whole.value.keywords = [word for word in whole.value.keywords if word.arg != STATES]
            whole.value.keywords.append(ast.keyword(STATES, self.load()))
        if requested is None:
            return [whole]
        without.value.keywords = [word for word in without.value.keywords if word.arg != STATES]
        if not self.requested_by_configuration:  # else callers read the field, which is None then
            leave_out(without.value, STATES)
        test = ast.UnaryOp(ast.Not(), requested)
        return [_ran(ast.If(test, [without], []), line), *before, whole]

    def unseen_end(self, line: ast.Return, requested: ast.expr | None) -> list[ast.stmt]:
        """The statements for a `return` that did not run: where hidden states are requested, they raise."""
        raises = refused(self.context.did_not_run(line, f"hidden states in {_said(line)}"), line)
        return [raises] if requested is None else [ast.copy_location(ast.If(requested, [raises], []), line), line]

    def alone(self, value: ast.expr) -> bool:
        """Whether the returned value always was a single tensor."""
        kinds = kinds_of(value)
        return bool(kinds) and all(isinstance(kind, TensorKind) for kind in kinds)

    def tied(self, call: ast.Call, fields: Sequence[str]) -> list[ast.stmt]:
        """Statements that make the model's last output the last hidden state; none where it already is."""
        if f"vision_{STATES}" in fields:
            raise Unwritable(f"it is not known which of its outputs the last hidden state is: {_said(call)}")
        word = next((word for word in call.keywords if word.arg == LAST), None)
        if LAST not in fields:
            return []
        if word is None or not isinstance(word.value, ast.Name):
            raise Unwritable(f"its last hidden state is its last output, which is in no variable: {_said(call)}")
        if word.value.id == self.last:
            return []
        all_but_last = ast.Subscript(self.load(), ast.Slice(None, ast.Constant(-1)), ast.Load())
        made = ast.Tuple([ast.Starred(all_but_last, ast.Load()), copy.deepcopy(word.value)], ast.Load())
        gives = _ran(ast.Assign([ast.Name(self.states, ast.Store())], made), call)
        return [_ran(ast.If(_compared(self.load(), ast.Gt()), [gives], []), call)]


def _compared(states: ast.expr, by: ast.cmpop) -> ast.expr:
    """A test for whether there are hidden states, or none, by the tuple's length, which works in graph mode too."""
    length = ast.Call(ast.Name("len", ast.Load()), [states], [])
    return ast.Compare(length, [by], [ast.Constant(0)])


def _ran(new: ast.stmt, near: ast.AST) -> ast.stmt:
    """A new statement at the source position of another one, noted as one that ran."""
    ast.copy_location(new, near)
    vars(new)["observed"] = Observed(reached=True)
    return new


def _load(name: ast.Name, kinds: Iterable[Kind]) -> ast.Name:
    return set_kinds(ast.Name(name.id, ast.Load()), kinds)


def _target(line: ast.Assign | ast.AnnAssign) -> ast.expr | None:
    """The target of an assignment, if there is only one."""
    if isinstance(line, ast.AnnAssign):
        return line.target
    return line.targets[0] if len(line.targets) == 1 else None


def _inside(node: ast.AST) -> list[Kind]:
    """The kinds of the items of the tuples that an expression was."""
    items = [item for kind in kinds_of(node) if isinstance(kind, SequenceKind) for item in kind.items]
    return list(dict.fromkeys(item for item in items if isinstance(item, TensorKind)))


def _said(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:100]


def _classes(call: ast.Call) -> set[str]:
    """The classes of the modules that a call called."""
    return {name.removeprefix("module ") for name in callees_of(call) if name.startswith("module ")}


def _places(call: ast.Call, program: Program) -> Iterator[Place]:
    """The functions that a call called, also as the `forward` of a module."""
    for name in callees_of(call):
        of = name.removeprefix("module ")
        names = [name] if of == name else [f"{base}.forward" for base in program.facts.bases(of)]
        found = next((program.functions[one] for one in names if one in program.functions), None)
        if found is not None:
            yield found.file, found.line


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The nested blocks of a function's statements, without those of functions in it."""
    for block in blocks_of(node):
        for line in block:
            if not isinstance(line, (ast.FunctionDef, ast.ClassDef)):
                yield from blocks_of(line)
                yield from _blocks(line)


def _own(line: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, without those of statements in it."""
    waiting: list[ast.AST] = [line]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [
            inner for inner in ast.iter_child_nodes(node) if not isinstance(inner, (ast.stmt, ast.excepthandler))
        ]


def _has(line: ast.stmt, sites: set[int]) -> bool:
    return any(id(node) in sites for node in ast.walk(line))


def hand_back(function: ast.FunctionDef, files: SourceFiles) -> None:
    """Make a function without a result return the tensors that it writes into, for its callers; in place."""
    names = handed_back(function, files)
    if not names:
        return
    values: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
    value = values[0] if len(values) == 1 else ast.Tuple(values, ast.Load())
    for node in own_nodes(function):
        if isinstance(node, ast.Return):
            node.value = copy.deepcopy(value)
    if not isinstance(function.body[-1], (ast.Return, ast.Raise)):
        function.body.append(replacing(ast.Return(value), function.body[-1]))
    function.returns = None
    ast.fix_missing_locations(function)


def rename_hiding(function: ast.FunctionDef, context: Context) -> None:
    """Rename local variables that would hide what the function uses of the new file, `Block = partial(layers.Block)`;
    in place. A parameter keeps its name, and is a problem."""
    resolve, own, hidden = context.program.names(context.file).name, {*local_names(function)}, set[str]()
    for node in ast.walk(function):
        full = resolve(node) if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Load) else ""
        defined = full.rpartition(".")[0] in context.program.modules and not full.startswith("torch.")
        if defined and not (isinstance(node, ast.Name) and node.id in own):
            hidden |= {context.program.called(full)} & own
    for given in (node for node in ast.walk(function.args) if isinstance(node, ast.arg) and node.arg in hidden):
        context.missing(function, f"{given.arg} is a parameter of {function.name}, and a class or function used there")
    for name in (node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in hidden):
        name.id = f"{name.id}_"


def go_on_with_locals(function: ast.FunctionDef, context: Context) -> None:
    """Write `h_now = tanh(x)`, `self.h = h_now` for `self.h = tanh(x)`, and read `h_now` for `self.h` behind it: what a
    compiled function reads of an attribute that it has set passes no gradient, without an error, and nor does what is
    computed with it, be it a size (`python benchmarks/graph_attributes_mindspore.py`); in place."""
    if not context.owner:
        return
    nodes = [node for node in ast.walk(function) if of_itself(node)]
    stored = {
        name: min(n.lineno for n in nodes if n.attr == name and not _is_read(n)) for name in stored_attributes(function)
    }
    kept = {n.attr for n in nodes if _is_read(n) and n.attr in stored and n.lineno > stored[n.attr]}
    kept -= {n.attr for n in nodes if not _is_read(n) and all(n is not part for _, part in _sets(function))}
    _note_kept([n for n in nodes if _is_read(n) and n.attr not in stored], function, context)
    taken = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} | {*local_names(function)}
    names: dict[str, str] = {}
    for name in sorted(kept - _changed_attributes(function) - _set_elsewhere(function, context)):
        names[name] = f"{name}_now"
        while names[name] in taken:
            names[name] += "_"
    tried = [node for part in _with_locals(copy.deepcopy(function.body), names, {}) for node in ast.walk(part)]
    again = [node.value.id for node in tried if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)]
    read = [node.id for node in tried if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    names = {name: own for name, own in names.items() if read.count(own) > again.count(own)}
    function.body = _with_locals(function.body, names, {}) if names else function.body


def _note_kept(reads: list[ast.Attribute], function: ast.FunctionDef, context: Context) -> None:
    """List the tensors that a method reads as attributes of `self` which another method of the class sets."""
    _, cls = context.program.class_of(context.owner) or ("", None)
    others = [one for one in getattr(cls, "body", ()) if isinstance(one, ast.FunctionDef) and one.name != function.name]
    begun = "".join(ast.unparse(one) for one in others if one.name == "__init__")
    for name, node in {node.attr: node for node in reversed(reads) if always(kinds_of(node), TensorKind)}.items():
        setter = next((one.name for one in others if one.name != "__init__" and name in stored_attributes(one)), None)
        if setter is not None and not re.search(rf"'{name}'|self\.{name} = (nn\.)?Parameter", begun):  # a buffer
            text = f"self.{name}, which {setter} sets and {function.name} reads: compiled, it has no type and passes no"
            text = f"{text} gradient. Return it from {setter} and hand it on, or train with --mode pynative"
            context.program.left_out.append(Problem(context.file, node.lineno, text, function.name))


def of_itself(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Whether it is an attribute of `self`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _is_read(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _changed_attributes(function: ast.FunctionDef) -> set[str]:
    """The attributes of `self` whose value a function changes by an operator or a method, `self.h += x` and
    `self.h.mul_(2)`, and those that it only puts on a device, `self.h = self.h.to(x)`."""
    places: list[ast.AST] = [node.target for node in ast.walk(function) if isinstance(node, ast.AugAssign)]
    places += [node for node in ast.walk(function) if isinstance(node, ast.Attribute) and node.attr.endswith("_")]
    for value, part in _sets(function):
        if ast.unparse(value).partition("(")[0] in [f"self.{part.attr}.{name}" for name in ("to", "cuda", "cpu")]:
            places.append(part)
    return {inner.attr for place in places for inner in ast.walk(place) if of_itself(inner)}


def _set_elsewhere(function: ast.FunctionDef, context: Context) -> set[str]:
    """The attributes that another function of the object sets, or one inside of this one."""
    bases = [name for name in context.program.facts.bases(context.owner)[1:] if "." in name]
    derived = [order[0] for order in context.program.facts.orders if context.owner in order[1:]]
    others = [node for node in ast.walk(function) if isinstance(node, (ast.FunctionDef, ast.Lambda))][1:]
    properties: set[str] = set()
    for owner in (context.owner, *bases, *derived):
        _, cls = context.program.class_of(owner) or ("", None)
        own = {"__init__", function.name} if owner == context.owner else {"__init__"}
        found = [node for node in getattr(cls, "body", ()) if isinstance(node, ast.FunctionDef)]
        properties |= {node.name for node in found}  # what is read may be another value than was set
        others += [node for node in found if node.name not in own]
    return properties | {name for node in others for name in stored_attributes(node)}


def _sets(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.Attribute]]:
    """The attributes of `self` that assignments set, alone or in a tuple, each with what is assigned."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                if of_itself(part):
                    yield node.value, part


def _with_locals(statements: list[ast.stmt], names: Mapping[str, str], now: dict[str, list[Kind]]) -> list[ast.stmt]:
    """The statements of a block; now: the attributes whose value has a name there, and their kinds. It is changed: a
    name stays in step with its attribute, wherever it has been given."""
    found: list[ast.stmt] = []
    for statement in statements:
        before = [n.attr for target in getattr(statement, "targets", ()) for n in ast.walk(target) if of_itself(n)]
        ends: list[dict[str, list[Kind]]] = []
        for field, value in ast.iter_fields(statement):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                ends.append({**now})
                setattr(statement, field, _with_locals(value, names, ends[-1]))
            elif isinstance(value, list):
                setattr(statement, field, [_by_local(one, names, now) for one in value])
            else:
                setattr(statement, field, _by_local(value, names, now))
        if isinstance(statement, ast.With) or (isinstance(statement, ast.If) and len(ends) == 2):
            now.update({name: kinds for name, kinds in ends[0].items() if name in ends[-1]})
        found.append(statement)
        if isinstance(statement, ast.Assign):
            found += [*_again(statement, before, names, now), *_named(statement, names, now)]
    return found


def _again(statement: ast.Assign, parts: Iterable[str], names: Mapping[str, str], now: Mapping[str, Any]) -> Any:
    """What sets the attributes again into whose parts an assignment writes: compiled, it makes new tensors."""
    for part in parts:
        if part in now and isinstance(statement.targets[0], ast.Subscript):
            read = set_kinds(ast.copy_location(ast.Name(names[part], ast.Load()), statement), now[part])
            owner = ast.copy_location(ast.Name("self", ast.Load()), statement)
            target = ast.copy_location(ast.Attribute(owner, part, ast.Store()), statement)
            yield replacing(ast.Assign([target], read), statement)


def _named(statement: ast.Assign, names: Mapping[str, str], now: dict[str, list[Kind]]) -> list[ast.stmt]:
    """What sets the attributes behind an assignment, which sets their names instead; in place."""
    more: list[ast.stmt] = []
    for value, part in [*_sets(statement)]:
        if part.attr in names:
            now[part.attr] = kinds_of(value) if part is statement.targets[0] else []
            name = ast.copy_location(ast.Name(names[part.attr], ast.Store()), part)
            read = set_kinds(ast.copy_location(ast.Name(names[part.attr], ast.Load()), part), now[part.attr])
            statement.targets = [put(name, part, statement.targets[0])]
            more.append(replacing(ast.Assign([part], read), statement))
    return more


def _by_local(node: Any, names: Mapping[str, str], now: Mapping[str, list[Kind]]) -> Any:
    """An expression that reads names for attributes."""

    def change(one: ast.AST) -> ast.AST | None:
        if not of_itself(one) or not _is_read(one) or one.attr not in now:
            return None
        return set_kinds(ast.copy_location(ast.Name(names[one.attr], ast.Load()), one), kinds_of(one) or now[one.attr])

    return substitute(node, change) if isinstance(node, ast.AST) else node
