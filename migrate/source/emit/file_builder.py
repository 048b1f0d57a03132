"""One file of MindSpore source: its definitions in the order in which they need each other, each by its own name."""

from __future__ import annotations

import ast
import copy
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ....printable import few
from ...library_names import DROPPED, INSTALLED, UNOBSERVED
from ...source_files import OWN, Constant, literal, local_names, says_its_value, short, substitute, with_notes
from ..observe.instrument import first_line
from ..observe.observations import (
    CallableKind,
    Function,
    Made,
    ModuleKind,
    Observations,
    callees_of,
    constants_of,
    functions_in,
    kinds_of,
    names_in_making,
    observed,
)
from ..rewrite import autograd_functions, control_flow, dataclasses_and_configs
from ..rewrite.context import Context, Problem, Program
from ..rewrite.library_lookups import keep_torchs_defaults
from ..rewrite.replaced_methods import as_construct, handed_methods
from ..rewrite.rewriter import list_method, popped_names, rewrite_function, unseen_function, unseen_method
from ..rewrite.signatures import SignatureRewriter, names_in
from ..variations import Variation, variations, with_expressions
from . import names_and_imports
from .idle_layers import ChosenEntries, append, completed, freeze_idle_layers, keep_cell_list, take_lambdas
from .model_function import FinalValues, ModelFunction, called_by_mindspore, changed_at_top, hoisted, said_at_top
from .names_and_imports import Imports, rename_taken_imports, report_undefined, undefined
from .unused_code import defines, fill_empty_blocks, is_dropped, lost_arguments, tidy

LOOSE_COMMENT = re.compile(r"^( *# .*)\n\n(?= *(?:def |@))", re.MULTILINE)  # as ast writes those above methods
ZOO = "zoo"  # stands for a file in the keys of functions that make a model zoo's models
MODULE = "torch.nn.Module"
DICTIONARIES = {"dict", "OrderedDict"}
CALLED_BY_PYTHON = ("__init__", "__post_init__", "forward", "train")  # or by torch, for an object that is made and run


class Emitted(NamedTuple):
    """The text of the new file, what could not be written, code that did not run and raises, the variations, and what
    the file lacks without an error."""

    text: str
    problems: list[Problem]
    not_run: Sequence[Problem] = ()
    variations: Sequence[Variation] = ()
    left_out: Sequence[Problem] = ()


class FileBuilder(Program):
    """Collects the definitions of one model in the order in which they need each other."""

    def __init__(self, facts: Observations, renamed: Mapping[str, str]) -> None:
        super().__init__(facts)
        dataclasses_and_configs.leave_out_kept_objects(self)
        self.new_names = renamed
        self.configurations: list[str] = []
        self.makers: dict[tuple[Made, str], str] = {}  # how a module is made, and a wanted name -> its function
        self.variations: list[Variation] = []
        self.wanted = self._wanted()
        self.head = Imports(self._taken())
        top = self.at_top()
        self.model = ModelFunction(self, top | OWN | set(renamed.values()), free="net" not in top)

    def _taken(self) -> frozenset[str]:
        """The names of parameters, variables, functions, classes and Python's modules in the translated code."""
        owners = self.owners.items()
        found = {name.rpartition(".")[2] for name, own in owners if any(f.qualified in self.wanted for f in own)}
        for function in self.functions.values():
            node = self.node(function) if function.qualified in self.wanted else None
            found.update([*local_names(node), *popped_names(node)] if node is not None else ())
            imports = [node for node in self.tree(function.file).body if isinstance(node, ast.Import)]
            found.update(alias.asname or alias.name for node in imports for alias in node.names)  # import copy
        return frozenset(found) | set(self.new_names.values())

    def _wanted(self) -> set[str]:
        """The functions that a model needs once its arguments are known: those that make and run its modules, and their
        callees, but not the user's functions that compute the arguments."""
        classes = {base for bases in self.facts.classes.values() for base in bases} | set(functions_in(self.facts.root))
        waiting = [f"{name}{method}" for name in classes for method in ("", *(f".{one}" for one in CALLED_BY_PYTHON))]
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            function, node = self._of_name(name)
            if name in found or function is None:
                continue
            found.add(name)
            for inner in ast.walk(node) if node is not None else ():
                for cls, method in dataclasses_and_configs.methods_by_syntax(inner):
                    waiting += [f"{base}.{method}" for base in self.facts.bases(cls)]
                if isinstance(inner, ast.Call):
                    for callee in callees_of(inner):
                        plain = callee.removeprefix("partial ").removeprefix("module ")
                        waiting += [plain, *(f"{plain}.{one}" for one in CALLED_BY_PYTHON)]
                elif isinstance(inner, (ast.Name, ast.Attribute)):  # passed on, as in self.apply(self._init)
                    kinds = kinds_of(inner)
                    functions = (kind for kind in kinds if isinstance(kind, CallableKind) and kind.what == "function")
                    waiting += [kind.name for kind in functions]
        return found

    def name(self, qualified: str) -> ast.expr:
        """The expression for a name of MindSpore, msmigrate or Python's library, noted for the imports."""
        return self.head.name(qualified)

    def imported_name(self, module: str, name: str) -> ast.expr:
        """A name that is imported from a module."""
        return self.head.of(module, name)

    def python(self, file: str, name: str) -> str:
        """Note a name of Python's library for the imports, or define a constant of the file; returns the new name."""
        self.head.python(self.tree(file), name)
        origin = self.origin(file, name)
        return name if origin is None else self._constant(origin)

    def constant(self, module: str, name: str, seen: Sequence[Any] | None) -> ast.expr | None:
        """A constant of a module of the program: its new name, or its `seen` value where that differs from its file's;
        None for anything else."""
        if module not in self.all_files:
            return None
        origin = self.origin(self.all_files[module], name)
        if origin is not None and (not seen or seen == [origin.value]):
            return ast.Name(self._constant(origin), ast.Load())
        return ast.Constant(seen[0]) if seen is not None and len(seen) == 1 else None

    def maker(self, wanted: str, made: Made) -> str:
        """Define a function that makes this module; returns its name, the wanted one where that is free."""
        alike = replace(made, id=None)
        if (alike, wanted) not in self.makers:
            key = f"{ZOO}:{_free(wanted, {*self.makers.values()})}"
            name = self.makers[alike, wanted] = self.new_names.get(key, key.removeprefix(f"{ZOO}:"))
            writer = ModelFunction(self, self.at_top() | OWN, free=True, root=made)
            self.definitions[key] = writer.function(name, writer.expression(made))
        return self.makers[alike, wanted]

    def _constant(self, origin: Constant) -> str:
        if origin.key not in self.definitions:
            self.definitions[origin.key] = ast.Pass()  # entries of a table may refer to it
            node = self._computed(origin)
            seen = self._as_seen(origin) if node is origin.node else None
            made = seen or self._entered(origin, self._attribute(origin.file, node))
            for inner in ast.walk(made):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and inner.id == origin.name:
                    inner.id = self.called(origin.key)
            del self.definitions[origin.key]
            self.definitions[origin.key] = made
        return self.called(origin.key)

    def _entered(self, origin: Constant, made: ast.stmt) -> ast.stmt:
        """A dictionary with entries that were added later, by `register_block("mobile", MobileBlock)` or `update`."""
        module = next((name for name, file in self.all_files.items() if file == origin.file), "")
        old, value = _as_display(origin.node.value), _as_display(getattr(made, "value", None))
        if old is None or value is None:
            return made
        before = ast.dump(value)
        written = {key.value for key in old.keys if isinstance(key, ast.Constant)}
        there = {key.value: place for place, key in enumerate(value.keys) if isinstance(key, ast.Constant)}
        table, lacking = self.facts.registers.get(module, {}).get(origin.name, {}), []
        for key, entry in table.items():
            if key not in written and not self._is_written(entry):
                lacking.append(key)
            elif key not in written:
                value.keys.append(ast.Constant(key))
                value.values.append(self.model.expression(entry))
            elif key in there and (known := literal(value.values[there[key]])) != (True, entry) and known[0]:
                value.values[there[key]] = self.model.expression(entry)
        if lacking:
            text = f"{origin.name} lacks entries that did not run: {few(lacking, 8)}"
            self.left_out.append(Problem(origin.file, origin.node.lineno, text))
        if ast.dump(value) != before:  # without new entries a call stays a call
            vars(made)["value"] = value
        return made

    def _is_written(self, made: Any) -> bool:
        """Whether everything that a construction calls and names ran, and is in the new file or in MindSpore."""
        names = [*names_in_making(made)]
        if any(map(self.unseen, names)):
            return False
        for name in names:
            self.define(name)
        rows = ((name, self.row(name)) for name in names if name not in {*self.translated, *self.definitions})
        of_python = {*sys.stdlib_module_names, "builtins"}
        return all(
            name.partition(".")[0] in of_python or (row is not None and row.mindspore is not None) for name, row in rows
        )

    def _computed(self, origin: Constant) -> ast.Assign | ast.AnnAssign:
        """The statement, with its value in the run where it depends on more than its file, as on the command line."""
        module = next((name for name, file in self.all_files.items() if file == origin.file), "")
        known, table = self.facts.constants.get(module, {}), _as_display(origin.node.value)
        changed = None if table is not None else changed_at_top(origin, self.tree(origin.file), self, known)
        if origin.name in known and (changed or not says_its_value(origin.node, self.names(origin.file).name)):
            return ast.Assign([ast.Name(origin.name, ast.Store())], self.model.expression(known[origin.name]))
        return origin.node

    def _as_seen(self, origin: Constant) -> ast.stmt | None:
        """`nz = 100` for a value from a script's own objects, such as `int(opt.nz)`; None where no object is read."""
        resolve = self.names(origin.file).name
        read = [n for n in ast.walk(origin.node.value or origin.node) if isinstance(n, ast.Attribute)]
        if not read or all(resolve(node) for node in read):
            return None
        nodes = (n for n in ast.walk(self.tree(origin.file)) if isinstance(n, ast.Name) and n.id == origin.name)
        seen = [one for node in nodes for one in constants_of(node) or ()]
        if not seen or any(one != seen[0] for one in seen):
            return None
        return ast.Assign([ast.Name(origin.name, ast.Store())], ast.Constant(seen[0]), lineno=1)

    def called(self, qualified: str) -> str:
        """The name in the new file of a class, function or constant: `pkg.layers.Block`, `layers.py:WIDTH`."""
        module, _, name = qualified.rpartition(".")
        key = f"{self.modules[module]}:{name}" if qualified in self.assigned else qualified
        nested = qualified in self.owners and module in self.owners  # a class within a class
        return self.new_names.get(key, f"{short(module)}_{name}" if nested else short(key).rpartition(":")[2])

    def define(self, qualified: str) -> None:
        """Translate a class or function, after those that it uses."""
        if qualified in self.definitions or qualified in DROPPED:
            return
        if qualified in self.owners:
            self._class(qualified)
        elif qualified.rpartition(".")[0] in self.owners:
            self.define(qualified.rpartition(".")[0])
        elif self._of_name(qualified)[0] is not None:
            self._function(qualified, *self._of_name(qualified))
        elif qualified in self.assigned:
            self.python(self.modules[qualified.rpartition(".")[0]], short(qualified))
        elif qualified.rpartition(".")[0] in self.modules:
            self._maker(qualified)

    def is_named_alone(self, qualified: str) -> bool:
        """Whether a function of a model's file was used as a value, such as an entry of a table, but not called."""
        file = self.modules[qualified.rpartition(".")[0]]
        of_model = any(name.partition(".")[0] == "torch" for name in self.names(file).names.values())
        of_model |= not INSTALLED.intersection(Path(file).parts)
        return of_model and qualified in self.facts.seen - self.facts.called

    def _maker(self, qualified: str) -> None:
        """Define a function whose inner one runs now, made as its file was imported; or one only used as a value."""
        module, _, name = qualified.rpartition(".")
        file = self.modules[module]
        node = next((n for n in self.tree(file).body if isinstance(n, ast.FunctionDef) and n.name == name), None)
        inner = {f.line for f in self.facts.functions if f.qualified.startswith(f"{qualified}.<locals>.")}
        if node is not None and not inner and (qualified in self.unread or self.is_named_alone(qualified)):
            self.definitions[qualified] = ast.Pass()  # so that recursion ends
            made = unseen_function(node, self.called(qualified), Context(self, file))
            del self.definitions[qualified]
            self.definitions[qualified] = made
        if node is None or not inner:
            return
        found = copy.deepcopy(node)
        for place, statement in enumerate(node.body):
            if isinstance(statement, ast.FunctionDef) and first_line(statement) in inner:
                self._needed(file, statement)
                found.body[place] = rewrite_function(statement, statement.name, Context(self, file))
        found.name = self.called(qualified)
        for name_node in ast.walk(found):
            if isinstance(name_node, ast.Name):
                name_node.id = self.python(file, name_node.id)
        self.definitions[qualified] = found

    def _noted(self, file: str, statement: ast.stmt, found: list[ast.stmt]) -> list[ast.stmt]:
        """What became of a statement of a class, with its comments."""
        return with_notes(found, self.notes(file, statement.lineno)) if found else []

    def noted(self, qualified: str, made: ast.stmt) -> list[ast.stmt]:
        """A class, function or constant of the model, with its comments."""
        known: tuple[str, ast.stmt | None] | None = self.class_of(qualified)
        if (function := self.functions.get(qualified)) is not None:
            known = function.file, self.node(function)
        elif known is None and (place := qualified.rpartition(":"))[0] in self.all_files.values():
            constant = self.origin(place[0], place[2], far=0)
            known = None if constant is None else (place[0], constant.node)
        if known is None or known[1] is None:
            return [made]
        return with_notes([made], self.notes_of(known[0], known[1]))

    def _of_name(self, qualified: str) -> tuple[Function | None, ast.FunctionDef | None]:
        """The function of a name, or the one around one that is handed to the model; and its definition."""
        outer, _, last = qualified.rpartition(".<locals>.")
        inner = outer and qualified not in self.functions and qualified in names_in_making(self.facts.root)
        function = self.functions.get(outer if inner else qualified)
        node = None if function is None else self.node(function)
        return function, hoisted(node, last) if inner else node

    def _function(self, qualified: str, function: Function | None, node: ast.FunctionDef | None) -> None:
        if node is None or function is None:
            return
        self.definitions[qualified] = ast.Pass()  # so that recursion ends
        self._needed(function.file, node)
        context = Context(self, function.file)
        made = self._translated(context, node, self.called(qualified))
        self.model.renamed |= context.adds
        del self.definitions[qualified]
        self.definitions[qualified] = made

    def _class(self, qualified: str) -> None:
        file, node = self.class_of(qualified) or ("", None)
        if node is None:
            return
        if dataclasses_and_configs.is_configuration(qualified, node, self):
            self.configurations.append(qualified)
            self.definitions[qualified] = dataclasses_and_configs.empty_dataclass(qualified, self)
            return
        self.definitions[qualified] = ast.Pass()
        if qualified in self.facts.autograd:
            self._differentiated(qualified, file, node)
            return
        outer = qualified.rpartition(".")[0]
        placed = [self._in_class(outer, base) for base in node.bases]
        named = [(base, self._base_name(qualified, file, base)) for base in placed]
        own = [(base, name) for base, name in named if is_needed_base(name, self)]
        bases = [self._base(file, base, name, qualified) for base, name in own or named]
        body: list[ast.stmt] = []
        ran = {function.line: function for function in self.owners[qualified]}
        adds, handed = False, {*handed_methods(node), *([] if ran else ["__init__"])}
        final = FinalValues(self, qualified, file, node, self.model.expression)
        by_source = {*self.facts.bases(qualified), *UNOBSERVED, *(["__init__"] if ran else [])}
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                first, context = first_line(statement), Context(self, file, qualified)
                if first in ran and (ran[first].qualified in self.wanted or is_property(statement)):
                    self._needed(file, statement)
                    name = "construct" if statement.name == "forward" else statement.name
                    made = self._translated(context, statement, name)
                    switches = name == "train" and self.derives(qualified, MODULE)
                    body += self._noted(file, statement, [called_by_mindspore(made) if switches else made])
                elif {MODULE, statement.name} & by_source or qualified in self.unread:
                    self._needed(file, statement)  # also what ran before the model did
                    body += self._noted(file, statement, [*unseen_method(statement, context, statement.name in handed)])
                elif not INSTALLED.intersection(Path(file).parts):
                    list_method(statement, context)
                adds |= context.adds
            elif isinstance(statement, ast.ClassDef):
                body.append(self._inner(f"{qualified}.{statement.name}"))
            elif not is_dropped(statement) and not final.replace(statement):
                given = self._attribute(file, self._in_class(qualified, statement))
                renamed = as_construct(self._in_class(qualified, given, back=True), self.derives(qualified, MODULE))
                body += self._noted(file, statement, [renamed])
            body += final.behind(statement)
        body += final.behind(None)
        body += completed(qualified, node, body, self)
        del self.definitions[qualified]
        if qualified in self.other_bases:
            old, new = map(self.name, self.other_bases[qualified])
            bases = [new if ast.unparse(base) == ast.unparse(old) else base for base in bases]
        if self.derives(qualified, "torch.nn.Sequential") and "nn.SequentialCell" in map(ast.unparse, bases):
            keep_cell_list(body)
        if adds and self.derives(qualified, MODULE):
            append(body, "self.update_parameters_name()")
        self.model.renamed |= adds and not self.derives(qualified, MODULE)
        kept = [item for item in node.decorator_list if names_and_imports.of_python(item, self, file)]  # dataclass
        for decorator in kept:
            self._named(file, decorator)
        self.definitions[qualified] = ast.ClassDef(self.called(qualified), bases, [], body or [ast.Pass()], kept)

    def _in_class(self, owner: str, node: Any, *, back: bool = False) -> Any:
        """What stands in a class with `Outer.Inner` for the `Inner` of a class within it; back: by its new name."""
        path = ast.parse(owner.removeprefix(f"{self.module_of(owner)}."), mode="eval").body

        def change(one: ast.AST) -> ast.expr | None:
            if isinstance(one, ast.Name) and f"{owner}.{one.id}" in self.owners and not back:
                inner = ast.Attribute(copy.deepcopy(path), one.id, ast.Load())
                return ast.fix_missing_locations(ast.copy_location(inner, one))
            if isinstance(one, ast.Attribute) and back and ast.unparse(one.value) == ast.unparse(path):
                return ast.Name(self.called(f"{owner}.{one.attr}"), ast.Load())
            return None

        return substitute(copy.deepcopy(node), change) if owner in self.owners else node

    def _inner(self, qualified: str) -> ast.stmt:
        """`Inner = Outer_Inner` for a class within a class, which stands at the new file's top."""
        self.define(qualified)
        return ast.Assign([ast.Name(short(qualified), ast.Store())], ast.Name(self.called(qualified), ast.Load()))

    def _differentiated(self, qualified: str, file: str, node: ast.ClassDef) -> None:
        """An autograd.Function: a Cell with its gradient; where its backward is the derivative of its forward, only the
        methods without the backward; what is neither raises."""
        (why, floating), own = self.facts.autograd[qualified], autograd_functions.own_gradient(qualified, self)
        body: list[ast.stmt] = [*node.body[: ast.get_docstring(node) is not None]]
        named = [one for one in node.body if not is_dropped(one) and isinstance(one, (ast.Assign, ast.AnnAssign))]
        body += [self._attribute(file, one) for one in named]
        ran = {function.line for function in self.owners[qualified]}

        def translate(method: ast.FunctionDef, backward: bool = False) -> ast.FunctionDef:
            self._needed(file, method)
            context, name = Context(self, file, qualified), "apply" if method.name == "forward" else method.name
            unseen = backward and own is not None and first_line(own.backward) not in ran
            return unseen_function(method, name, context) if unseen else self._translated(context, method, name)

        if own is not None:
            zeros = self.name("mindspore.ops.zeros_like")
            body += autograd_functions.written(node, own, floating, translate, zeros)
        elif why:
            said = autograd_functions.why_not(qualified, self)
            text = f"{node.name}: {said}; write it with mindspore.nn.Cell and bprop"
            body.append(autograd_functions.refused(self.missing(Problem(file, node.lineno, text))))
        else:
            body += [translate(method) for method in autograd_functions.without_backward(node)]
        del self.definitions[qualified]
        bases = [] if own is None else [self.name("mindspore.nn.Cell")]
        self.definitions[qualified] = ast.ClassDef(self.called(qualified), bases, [], body, [])

    def _translated(self, context: Context, node: ast.FunctionDef, name: str) -> ast.FunctionDef:
        """The function under another name, which raises where a decorator would do more than call it."""
        found = rewrite_function(node, name, context)
        place = int(ast.get_docstring(found) is not None)
        found.body[place:place] = names_and_imports.decorator_notes(node, self, context.file, context.missing)
        if noted := names_and_imports.noted_arguments(node, self, context.file):
            texts = [ast.unparse(ast.fix_missing_locations(statement)) for statement in found.body]
            first = next((n + 1 for n, text in enumerate(texts) if text.startswith("super().__init__(")), place)
            found.body[first:first] = noted
        return found

    def _attribute(self, file: str, statement: ast.stmt) -> ast.stmt:
        """A statement in a class or at a file's top that assigns a name."""
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            return statement
        statement, hints = copy.deepcopy(statement), SignatureRewriter(self, file)
        if isinstance(statement, ast.AnnAssign):
            statement.annotation = hints.hint(statement.annotation)
        if statement.value is not None:
            lambdas = take_lambdas(statement, file, self)
            statement.value = ChosenEntries(file, self).visit(statement.value)
            for name in names_in(statement.value, self.names(file).name):
                self.define(name)
            self._named(file, statement.value)
            static = control_flow.observe_statically(statement.value, Context(self, file))
            statement.value = static or hints.default(statement.value)
            substitute(statement, lambda node: lambdas.get(getattr(node, "id", "")))
        return statement

    def _base_name(self, qualified: str, file: str, node: ast.expr) -> str:
        """The full name of a class's base where it is defined, also for one such as `torchvision.models.ResNet`."""
        name = self.names(file).name(node)
        bases = () if name in self.translated else self.facts.bases(qualified)[1:]
        return next((one for one in bases if one in self.translated and short(one) == short(name)), name)

    def _base(self, file: str, node: ast.expr, name: str, of: str) -> ast.expr:
        self.define(name)
        if isinstance(node, ast.Attribute) and name in self.translated:
            return ast.Name(self.called(name), ast.Load())
        self._named(file, node)
        return SignatureRewriter(self, file).base(node, of)

    def _needed(self, file: str, node: ast.FunctionDef) -> None:
        """Define everything that a function calls or names, also in its defaults."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and not observed(inner.func).zoo:
                for name in callees_of(inner):
                    self._define_owner(name.removeprefix("module "))
            if isinstance(inner, (ast.Name, ast.Attribute)) and not observed(inner).zoo:
                for kind in kinds_of(inner):
                    if isinstance(kind, CallableKind) and kind.what != "partial":
                        self._define_owner(kind.name)
                    elif isinstance(kind, ModuleKind):
                        self._define_owner(kind.cls)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                for name in names_in(default, self.names(file).name):
                    self.define(name)
                self._named(file, default)

    def _named(self, file: str, node: ast.AST) -> None:
        """Define the names of Python's library and of its file's constants that a tree uses."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                self.python(file, inner.id)

    def _define_owner(self, name: str) -> None:
        self.define(name)
        if name not in self.definitions:
            self.define(name.rpartition(".")[0])


def build_file(facts: Observations, name: str, says: str) -> Emitted:
    """The whole file; name: the name of the function that makes the model; says: the file's docstring."""
    assembly, root = _assembled(facts, {})
    module = next(functions_in(facts.root), "").rpartition(".")[0]
    first = (f"{module}.", f"{assembly.modules.get(module, module)}:")
    if new := unique_names(assembly.definitions, first, {name}, {*assembly.head.helpers.names.values()}):
        assembly, root = _assembled(facts, new)
    maker = assembly.model.function(name, root)
    for node in assembly.definitions.values():
        fill_empty_blocks(node)
    for file, classes in assembly.not_written.items():
        for owner, names in classes.items():
            place = assembly.class_node(file, owner)
            words = f"methods of {owner} that the model does not compute with, and are not written: {', '.join(names)}"
            assembly.left_out.append(Problem(file, place.lineno if place else 1, words))
    rename_taken_imports(assembly.definitions, maker, assembly.head)
    if report_undefined(undefined(text := _text(says, maker, assembly)), maker, assembly):
        text = _text(says, maker, assembly)
    return Emitted(text, assembly.problems, assembly.not_run, assembly.variations, assembly.left_out)


def _assembled(facts: Observations, new_names: Mapping[str, str]) -> tuple[FileBuilder, ast.expr]:
    """The definitions under their names or new ones, and the expression that makes the model."""
    assembly = FileBuilder(facts, new_names)
    root = assembly.model.expression(facts.root)
    plan, made = with_expressions(variations(assembly), assembly.model.expression, assembly.problems)
    more = [*assembly.model.shared.before, root, *filter(None, made)]
    dataclasses_and_configs.fill_configurations(assembly.configurations, assembly, assembly.model.expression, more)
    gone = tidy(assembly.definitions, more)
    keep_torchs_defaults(assembly.definitions, more, assembly)
    freeze_idle_layers(assembly, assembly.definitions, more)
    bodies = (ast.Module([] if one is None else [*assembly.model.shared.before, ast.Return(one)], []) for one in made)
    texts = ("\n".join([*assembly.head.lines(one), ast.unparse(ast.fix_missing_locations(one))]) for one in bodies)
    taken = (any(one.argument in gone.get(of, ()) for of in (one.of, *facts.bases(one.of))) for one in plan)
    assembly.variations = [replace(v, source=t) for v, t, lost in zip(plan, texts, taken, strict=True) if not lost]
    assembly.left_out += lost_arguments(gone, assembly)
    return assembly, root


def _text(says: str, maker: ast.FunctionDef, assembly: FileBuilder) -> str:
    parts = []
    for qualified, node in (*assembly.definitions.items(), ("", maker)):
        parts.append("\n".join(ast.unparse(ast.fix_missing_locations(one)) for one in assembly.noted(qualified, node)))
    body = LOOSE_COMMENT.sub(r"\1\n", "\n\n\n".join(parts))
    own = assembly.docstring_of(root := next(functions_in(assembly.facts.root), ""))
    head = f'"""{says}\n\n{own}\n"""' if own else f'"""{says}"""'
    return f"{head}{said_at_top(assembly, root)}\n\n{assembly.head.text(ast.parse(body))}\n\n\n{body}\n"


def is_needed_base(name: str, program: Program) -> bool:
    """Whether a base class is more than a library's addition that the model never ran."""
    package = name.partition(".")[0]
    known = name in program.translated or package in ("", "torch") or package in sys.stdlib_module_names
    return known or program.row(name) is not None or not program.unseen(name)


def is_property(node: ast.FunctionDef) -> bool:
    """Whether a method is read as an attribute."""
    return any(isinstance(item, ast.Name) and item.id == "property" for item in node.decorator_list)


def unique_names(
    definitions: Mapping[str, ast.stmt], first: tuple[str, ...], taken: Collection[str], copied: Collection[str] = ()
) -> dict[str, str]:
    """New names for definitions, after the file that each is from: `DecoderBlock`, `decoder_scale`, `DECODER_WIDTH`.

    definitions: by module and name, or by file and name (`layers.py:WIDTH`). Of several with one name, that whose key
    starts with one of `first` keeps it, or the first one; no function that of a method that calls it, which MindSpore
    compiles as a call of itself. taken: names in use. copied: names of msmigrate's own definitions, which make room.
    """
    inside = [n for node in definitions.values() for n in ast.walk(node) if isinstance(n, ast.FunctionDef)]
    names = {key: found[0] for key, node in definitions.items() if (found := defines(node))}
    order = sorted(names, key=lambda key: not key.startswith(first))
    variables = {f"{name} in a function": name for one in inside for name in local_names(one)}
    used, new = {*taken}, {key: name for key, name in {**variables, **names}.items() if name in copied}
    hidden = _hidden(definitions.values())
    for key in order:
        name = names[key]
        if name in used or (name in hidden and isinstance(definitions[key], ast.FunctionDef)):
            new[key] = name = _free(_after(key, name), {*used, *names.values()})
        used.add(name)
    return new


def _hidden(nodes: Collection[ast.stmt]) -> set[str]:
    """The names of functions that are called by a method of the same name."""
    methods = [inner for node in nodes if isinstance(node, ast.ClassDef) for inner in node.body]
    functions = [method for method in methods if isinstance(method, ast.FunctionDef)]
    calls = ((one.name, call.func) for one in functions for call in ast.walk(one) if isinstance(call, ast.Call))
    return {name for name, function in calls if isinstance(function, ast.Name) and function.id == name}


def _after(key: str, name: str) -> str:
    """A name prefixed with its file's name, in its own style of capitals."""
    place = key.rpartition(":")[0] or key.rpartition(f".{name}")[0]
    words = [word for word in re.split(r"\W+", place.removesuffix(".py")) if word and word != "__init__"] or ["other"]
    word = words[-1].strip("_")
    if name.isupper():
        return f"{word.upper()}_{name}"
    if name[:1].isupper():
        return "".join(part[:1].upper() + part[1:] for part in word.split("_")) + name
    return f"{'_' if name.startswith('_') else ''}{word}_{name.lstrip('_')}"


def _as_display(node: ast.expr | None) -> ast.Dict | None:
    """`{"relu": nn.ReLU}` for `dict(relu=nn.ReLU)`, and `{}` for a new OrderedDict; None for anything else."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in DICTIONARIES:
        words = [(ast.Constant(word.arg), word.value) for word in node.keywords if word.arg]
        whole = not node.args and len(words) == len(node.keywords)
        return ast.Dict([key for key, _ in words], [value for _, value in words]) if whole else None
    return node if isinstance(node, ast.Dict) else None


def _free(name: str, used: Collection[str]) -> str:
    return next(one for one in (name, *(f"{name}_{n}" for n in range(2, len(used) + 3))) if one not in used)
