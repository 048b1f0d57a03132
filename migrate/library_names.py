"""Names of torch's libraries: their counterparts in model code, and the families of what a script's calls return.

Families are tensor, module, optimizer, schedule, loader and dataset. The names stand in mappings/library_names.yaml.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ..input_files import LARGEST_PYTHON, read_bytes
from ..mappings.aliases import index, restated, row_of
from ..mappings.row_reader import read_yaml
from ..mappings.rows import Row
from .source.observe.observations import PlainKind, callees_of, kinds_of

FILE = Path(__file__).parents[1] / "mappings" / "library_names.yaml"
TABLES: dict[str, Any] = {name: table for entry in read_yaml(FILE) for name, table in entry.items()}

# Model code

CELL_METHODS: dict[str, str] = TABLES["methods"]
CONTAINERS: dict[str, str] = TABLES["containers"]
COUNTERPARTS: dict[str, str] = {**TABLES["classes"], **CONTAINERS}
DROPPED = frozenset(TABLES["dropped"])
ROWS_FIRST: dict[str, str] = TABLES["rows_first"]
# simplified code of libraries; methods that its classes leave out do something else than compute
SIMPLIFIED = "msmigrate.migrate.source.observe.torch_simplified_transformers."
# libraries that a converted file imports unchanged: MindSpore needs all but networkx itself, and none has tensors
IMPORTED = ("numpy", "scipy", "networkx", "packaging", "yaml")
UNOBSERVED = [f"__{name}__" for name in TABLES["unobserved"]]
INSTALLED = {"site-packages", "dist-packages"}  # folders of installed packages
# is called where something could not be written, and raises NotImplementedError
NOT_CONVERTED = "msmigrate.nn.not_converted"


def with_imports_by_star(tree: ast.Module, file: str, files: Mapping[str, str]) -> ast.Module:
    """The file with the imports of libraries that `from helpers import *` brings along, behind it; in place.

    files: the model's files, by the modules that they are.
    """
    found = [(statement, [*_brought(statement, file, files, {file})]) for statement in tree.body]
    tree.body = [one for statement, more in found for one in (statement, *more)]
    return tree


def _brought(statement: ast.stmt, file: str, files: Mapping[str, str], seen: set[str]) -> Iterator[ast.stmt]:
    """The imports of other packages in a file of which everything is imported, and in those that it so imports."""
    if not isinstance(statement, ast.ImportFrom) or statement.names[0].name != "*":
        return
    parts = next(module for module, place in files.items() if place == file).split(".")
    up = parts[: len(parts) - statement.level + (Path(file).name == "__init__.py")] if statement.level else []
    other = files.get(".".join([*up, *([statement.module] if statement.module else [])]), "")
    if not other or other in seen:
        return
    own = {"", *(module.partition(".")[0] for module in files)}
    body = ast.parse(read_bytes(Path(other), LARGEST_PYTHON)).body
    listed = any(isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__" for one in body)
    for one in body if not listed else []:
        if isinstance(one, ast.ImportFrom) and one.names[0].name == "*":
            yield from _brought(one, other, files, {*seen, other})
        elif isinstance(one, (ast.Import, ast.ImportFrom)):
            places = (
                [a.name for a in one.names] if isinstance(one, ast.Import) else ["." * one.level + (one.module or "")]
            )
            if own.isdisjoint(place.partition(".")[0] for place in places):
                yield ast.copy_location(one, statement)


def in_todays_order(function: ast.FunctionDef) -> ast.FunctionDef:
    """A function with `x.add_(y, alpha=2)` for `x.add_(2, y)`: torch takes numbers before the tensors, too, as it once
    had them; in place."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or not all(map(_of_tensors, callees_of(node))):
            continue
        names = {one.rpartition(".")[2].rstrip("_") for one in callees_of(node) or [ast.unparse(node.func)]}
        called = TABLES["numbers_first"].get(*names, ()) if len(names) == 1 else ()
        numbers = [place for place, one in enumerate(node.args) if called and _is_number(one)]
        last = len(node.args) - 1
        if numbers and numbers[0] < last and last not in numbers and len(numbers) <= len(called):
            words = [ast.keyword(*pair) for pair in zip(called, [node.args[n] for n in numbers], strict=False)]
            node.args = [one for place, one in enumerate(node.args) if place not in numbers]
            node.keywords = [*node.keywords, *words]
    return function


def _of_tensors(name: str) -> bool:
    return name.startswith("torch.") and name.rpartition(".")[0] in ("torch", "torch.Tensor")


def _is_number(node: ast.expr) -> bool:
    value = node.operand if isinstance(node, ast.UnaryOp) else node
    kinds = kinds_of(node)
    plain = isinstance(value, ast.Constant) and isinstance(value.value, (int, float))
    return plain or (bool(kinds) and all(kind in (PlainKind("int"), PlainKind("float")) for kind in kinds))


def of_distributions(callees: Sequence[str]) -> bool:
    """Whether all of these are methods of distributions, which are functions of a pair in the new file."""
    return all(name.rpartition(".")[0] in TABLES["distributions"] for name in callees)


def parts_of_distribution(value: Any) -> dict[str, Any]:
    """The two tensors that stand for a distribution of torch's, by their names; nothing for any other object."""
    cls = type(value)
    known = TABLES["distributions"].get(f"torch.distributions.{cls.__name__}", {})
    names = {part: name for name, part in reversed(known.items()) if part in ("self[0]", "self[1]")}
    of_torch = cls.__module__.startswith("torch.distributions.")
    return {names[part]: getattr(value, names[part]) for part in sorted(names)} if of_torch else {}


def is_dtype(attribute: str) -> bool:
    """Whether a name in torch is a dtype's."""
    plain = r"u?int(8|16|32|64)|float(16|32|64)|bfloat16|complex(64|128)"
    return attribute in TABLES["dtypes"] or re.fullmatch(plain, attribute) is not None


def dtype_name(attribute: str) -> str:
    """MindSpore's name for a dtype of torch's: `long` is mindspore.int64."""
    return f"mindspore.{TABLES['dtypes'].get(attribute, attribute)}"


def gives(call: ast.Call, places: Mapping[str, int]) -> bool:
    """Whether a call gives one of these arguments, by name or by position, as far as that can be read."""
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    words = {word.arg for word in call.keywords}
    return starred or None in words or bool(words & {*places}) or len(call.args) > min(places.values())


def otherwise(
    tree: ast.AST | None, unless: Mapping[str, bool | float], resolve: Callable[[ast.expr], str]
) -> Iterator[str]:
    """The full names of what is called, or is made a `partial`, with one of these arguments by name that is not this
    constant, in a function or at a file's top, and not by `super()`; empty for a variable. resolve: as in `named`."""
    defines = (ast.FunctionDef, ast.ClassDef)
    trees = [one for one in tree.body if not isinstance(one, defines)] if isinstance(tree, ast.Module) else [tree]
    for call in (node for one in trees if one for node in ast.walk(one) if isinstance(node, ast.Call)):
        words = {word.arg: word.value for word in call.keywords}
        other = any(name in words and not is_constant(words[name], unless[name]) for name in unless)
        if other and not ast.unparse(call.func).startswith("super("):
            is_partial = call.args and resolve(call.func) == "functools.partial"
            yield resolve(call.args[0] if is_partial else call.func)


def is_constant(node: ast.expr, value: bool | float) -> bool:
    """Whether an expression is this constant; `True` is not 1."""
    found = node.value if isinstance(node, ast.Constant) else None
    return found == value and isinstance(found, bool) == isinstance(value, bool)


HINTS = ("annotation", "returns")


def named(node: ast.AST | None, resolve: Callable[[ast.expr], str]) -> Iterator[str]:
    """The full names in a tree without its type hints, those that are called there with `()` behind; and `__name__`,
    where a class is asked for its name. resolve: gives the full name of an import, empty for anything else.
    """
    name = resolve(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    if name or (isinstance(node, ast.Attribute) and node.attr == "__name__"):
        yield name or "__name__"
    for field, value in ast.iter_fields(node) if node is not None and not name else ():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, ast.AST) and field not in HINTS:
                called = resolve(inner) if isinstance(node, ast.Call) and inner is node.func else ""
                yield from [f"{called}()"] if called else named(inner, resolve)


def called_in(tree: ast.AST, name: str) -> list[str]:
    """The functions that a file's calls by this name called where they ran: a package may offer another module's."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    found = {one: None for call in calls if ast.unparse(call.func) == name for one in callees_of(call)}
    return [one for one in found if " " not in one]


# Scripts

TENSOR, MODULE, OPTIMIZER, SCHEDULE = "tensor", "module", "optimizer", "schedule"
LOADER, DATASET = "loader", "dataset"
FRAMEWORKS: list[str] = TABLES["frameworks"]
FAMILIES: dict[str, str] = TABLES["families"]
KINDS: dict[str, str] = TABLES["families_of_kinds"]
OWNERS: dict[str, list[str]] = TABLES["owners"]
# class that annotates a parameter, or is a base class -> the family of such an object
BASES: dict[str, str] = {owner: family for family, owners in OWNERS.items() for owner in owners} | TABLES["bases"]
MODULE_METHODS: list[str] = TABLES["module_methods"]
DTYPES = tuple(TABLES["dtype_methods"])
PLAIN_RESULTS: list[str] = TABLES["plain_results"]
HABITS = {family: re.compile(pattern) for family, pattern in TABLES["habits"].items()}
COMMON = frozenset(
    {name for kind in vars(builtins).values() if isinstance(kind, type) for name in dir(kind)}
    | {name for kind in (types.ModuleType, types.FunctionType) for name in dir(kind)}
    | set(TABLES["common_methods"])
)


def is_library(name: str) -> bool:
    """Whether a qualified name belongs to one of the libraries whose calls are listed."""
    return name.partition(".")[0] in TABLES["libraries"]


def family_of(name: str) -> str:
    """The family of what a call of this name returns, or ""."""
    row = row_of(name)
    if row is not None and row.kind in KINDS and not name.startswith("torch.optim.swa_utils."):
        return KINDS[row.kind]
    for one in restated(name):
        beginnings = [start for start in FAMILIES if one == start or (start.endswith(".") and one.startswith(start))]
        if beginnings:
            return FAMILIES[max(beginnings, key=len)]
    of_torch = re.fullmatch(r"torch\.(Tensor|[a-z]\w*)", name) and name not in TABLES["no_tensor"]  # torch.cat
    return TENSOR if of_torch and row is None else ""


def gives_by_star(module: str, name: str) -> bool:
    """Whether `from module import *` gives this name, as far as is known: of torchvision's models, one of them."""
    found = row_of(f"{module}.{name}")
    models = found is not None and found.torch == "torchvision.models.get_model"
    return found is not None and (not models or re.fullmatch(MODELS, name) is not None)


MODELS = TABLES["torchvision_models"].replace(" ", "")


def method_row(family: str, name: str, method: str) -> tuple[str, Row | None]:
    """The qualified name of a method of an object of a family that `name` made, and its row."""
    candidates = [f"{name}.{method}"] if is_class(name) else []
    candidates += [f"{owner}.{method}" for owner in OWNERS.get(family, ())]
    for candidate in candidates:
        row = row_of(candidate)
        if row is not None:
            return candidate, row
    own = ""
    if family in ("", MODULE) and name and method not in MODULE_METHODS:
        own = name if is_class(name) else f"{name}()"
    owner = own or OWNERS.get(family, [name if is_class(name) else f"{name}()"])[0]
    return f"{owner}.{method}", None


def is_class(name: str) -> bool:
    """Whether a qualified name is that of a class, by its capital letter."""
    return name.rpartition(".")[2][:1].isupper()


def public(name: str) -> str:
    """The documented name of one of torch's layers, `torch.nn.Conv2d` for `torch.nn.modules.conv.Conv2d`; any other
    name unchanged."""
    return re.sub(r"^torch\.nn\.modules\.(?:[a-z]\w*\.)?(?=[A-Z]\w*$)", "torch.nn.", name)


def no_module(name: str) -> bool:
    """Whether a class of a package without rows makes no module, by its name: a tokenizer, a Trainer."""
    return re.search(TABLES["no_module"], name) is not None


def by_torch(name: str) -> bool:
    """Whether a qualified name is of a package without rows, and trains with torch or is such a model."""
    top, *parts = name.split(".")
    return top in TABLES["by_torch"] and any(re.fullmatch(TABLES["by_torch"][top], part) for part in parts)


@cache
def telling_method(method: str) -> str | None:
    """The family of an object of which only a method's name is known, where only that family has such a method.

    None for names such as `mean`, `split` or `copy`, which lists, strings, files or arrays have too.
    """
    return next(iter(families_with(method)), None)


@cache
def families_with(method: str) -> tuple[str, ...]:
    """The families whose objects have such a method, where other objects have none of this name."""
    if method in COMMON or method.startswith("_"):
        return ()
    return tuple(family for family, owners in OWNERS.items() if any(f"{owner}.{method}" in index() for owner in owners))


def habit(name: str) -> str:
    """The family of what a variable of this name usually is, or ""."""
    lower = name.lower()
    return next((family for family, pattern in HABITS.items() if pattern.fullmatch(lower)), "")


# The variables of code that did not run, which have no other type: the branch of a loss, where no targets were given

TELLING = {"size", "dim", "numel", "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor", "masked_fill"}
PLAIN_ATTRIBUTES = {"shape", "dtype", "device", "ndim", "data", "grad", "T", "mT", "H"}
OF_PYTHON = frozenset(name for kind in (str, bytes, list, tuple, dict, set, int, float) for name in dir(kind))


def tensors_by_use(function: ast.AST, resolve: Callable[[ast.expr], str], *, of_module: bool) -> list[str]:
    """The variables of a function whose methods and attributes say that they are tensors.

    resolve: the full name of what is called, empty for a variable. of_module: whether it is a method of a module, to
    which no arrays are passed: `mean` or `view`, which arrays have too, say it as well there, unless a function of
    Python's or of a library of arrays has given the variable.
    """
    used: dict[str, set[str]] = {}
    called: dict[str, set[str]] = {}
    arrays: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and (owner := _item_of(node.value)) not in ("", "self"):
            used.setdefault(owner, set()).add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called.setdefault(_item_of(node.func.value), set()).add(node.func.attr)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            of_python = resolve(node.value.func).partition(".")[0] in {*sys.stdlib_module_names, *IMPORTED}
            arrays |= {target.id for target in node.targets if of_python and isinstance(target, ast.Name)}
    return [
        name
        for name, attributes in used.items()
        if any(one in TELLING or telling_method(one) == TENSOR for one in attributes)
        or (
            of_module
            and name not in arrays
            and any(map(_has_row, called.get(name, ())))
            and all(one in PLAIN_ATTRIBUTES or one in MODULE_METHODS or _has_row(one) for one in attributes)
        )
    ]


def modules_by_use(tree: ast.AST) -> Iterator[str]:
    """The objects, as text, that are modules: by a method that only modules have, or by what made them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            bare = method in TABLES["telling_no_arguments"] and not node.args and not node.keywords
            if bare or families_with(method) == (MODULE,):
                yield ast.unparse(node.func.value)
        match node:
            case ast.Assign([target], ast.Call(ast.Attribute(made_by, "from_pretrained"))):
                of = ast.unparse(made_by).rpartition(".")[2]
                if of[:1].isupper() and not no_module(of):
                    yield ast.unparse(target)


# options that a launcher of several processes sets
OF_LAUNCHERS = re.compile(r"(local_|global_|node_)?rank|world_size|n?_?gpus?(_per_node)?|num_gpus|distributed|dist_\w+")


def is_plain_decorator(name: str) -> bool:
    """Whether a decorator of this name, of a library or of Python, leaves what the function gives back as it is."""
    ends = name.endswith((".setter", ".deleter", ".getter"))
    return ends or is_library(name) or name.partition(".")[0] in TABLES["plain_decorators"]


@lru_cache(maxsize=64)
def gives_arguments(tree: ast.AST) -> bool:
    """Whether a file puts arguments into `sys.argv`, or changes the defaults that a parser keeps; one that takes some
    arguments out leaves a plain start as it is."""
    for node in ast.walk(tree):
        kept = node.value if isinstance(node, ast.Subscript) else node
        named = isinstance(kept, ast.Attribute) and kept.attr in ("default", "_defaults")
        own = getattr(getattr(kept, "value", None), "id", "") in ("self", "cls")
        if named and not own and isinstance(getattr(node, "ctx", None), ast.Store):
            return True
        if isinstance(node, ast.Assign) and any(map(_of_argv, node.targets)) and not _only_less(node):
            return True
        if isinstance(node, ast.AugAssign) and _of_argv(node.target):
            return True
        method = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        if method is not None and method.attr in ("append", "extend", "insert") and _of_argv(method.value):
            return True
    return False


def _of_argv(node: ast.expr) -> bool:
    of = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(of, ast.Attribute) and of.attr == "argv" and getattr(of.value, "id", "") == "sys"


def _only_less(node: ast.Assign) -> bool:
    """Whether what `sys.argv` gets has no arguments but those that it had: its name alone, a part of it, a filter."""
    value = node.value
    if isinstance(value, ast.List):
        return len(value.elts) < (2 if isinstance(node.targets[0], ast.Attribute) else 1)
    return _of_argv(value.generators[0].iter if isinstance(value, ast.ListComp) else value)


def chosen_or_refused(tree: ast.AST) -> Iterator[tuple[str, list[Any]]]:
    """The attributes of which a file takes some values and refuses all others, which it never sets, each with these
    values: `if args.net == "a": … else: raise`."""
    inner = {id(one) for node in ast.walk(tree) if isinstance(node, ast.If) for one in node.orelse}
    attributes = [one for one in ast.walk(tree) if isinstance(one, ast.Attribute)]
    written = {one.attr for one in attributes if not isinstance(one.ctx, ast.Load)}  # args.net = args.net.lower()
    for node in (one for one in ast.walk(tree) if isinstance(one, ast.If) and id(one) not in inner):
        options, values, block = set[str](), list[Any](), list[ast.stmt]([node])
        while len(block) == 1 and isinstance(of := block[0], ast.If):
            match of.test:
                case ast.Compare(ast.Attribute(ast.Name(of_), name), [ast.Eq()], [ast.Constant(value)]) if (
                    of_ != "self"
                ):
                    options.add(name)
                    values.append(value)
                case _:
                    options |= {"", "another test"}
            block = of.orelse
        name = min(options) if len(options) == 1 else ""
        if block and isinstance(block[-1], ast.Raise) and name and name not in written:
            yield name, values


def names_read(parts: Iterable[ast.AST]) -> frozenset[str]:
    """The names by which nodes may read what an object has: `args.size`, `getattr(args, "size")`."""
    parts = (one for one in parts if isinstance(one, (ast.Attribute, ast.Constant)))
    texts = (getattr(one, "attr", getattr(one, "value", None)) for one in parts)
    return frozenset(one for one in texts if isinstance(one, str))


SETS = ("__setattr__", "setattr", "__setitem__")


def sets_what_is_given(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """Whether a `__setattr__` surely sets the value that it is given: `object.__setattr__(self, key, value)`."""
    given = [one.arg for one in function.args.args][1:3]
    stored = {part.id for part in ast.walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    leaves = any(isinstance(part, ast.Return) for part in ast.walk(function))
    if len(given) < 2 or leaves or stored & {*given} or isinstance(function.body, ast.expr):
        return False
    for one in function.body:
        match one:
            case ast.Expr(ast.Call(called, [*_, ast.Name(value)])) if value == given[1]:
                if getattr(called, "attr", getattr(called, "id", "")) in SETS:
                    return True
            case ast.Assign([ast.Subscript(_, ast.Name(key))], ast.Name(value)) if [key, value] == given:
                return True
    return False


def sets_attributes(methods: Iterable[ast.AST]) -> bool:
    """Whether methods set attributes or elements, but those of a table of their own: `cls._made[key] = made`."""
    parts = [part for one in methods for part in ast.walk(one)]
    stores = (part for part in parts if isinstance(getattr(part, "ctx", None), (ast.Store, ast.Del)))
    for one in stores:
        table = one.value if isinstance(one, ast.Subscript) else None
        if isinstance(one, ast.Attribute) or (table is not None and not getattr(table, "attr", "").startswith("_")):
            return True
    called = (getattr(one.func, "attr", getattr(one.func, "id", "")) for one in parts if isinstance(one, ast.Call))
    return any(one in (*SETS, "update", "pop", "setdefault") for one in called)


# exceptions of a run on another machine, or of one that is stopped by hand
OF_ANOTHER_RUN = {"ImportError", "ModuleNotFoundError", "KeyboardInterrupt", "SystemExit"}
OF_ANOTHER_RUN |= {"OutOfMemoryError", "MemoryError"}


def of_another_run(tried: ast.Try, handler: ast.ExceptHandler) -> bool:
    """Whether what an `except` does is for a library that is missing, Ctrl-C, or a device that is too small."""
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    caught = {getattr(one, "id", getattr(one, "attr", "")) for one in types}
    nodes = (part for one in tried.body for part in ast.walk(one))
    return caught <= OF_ANOTHER_RUN or any(isinstance(part, (ast.Import, ast.ImportFrom)) for part in nodes)


def at_risk(*blocks: list[ast.stmt]) -> set[str]:
    """The names that statements give a value behind, or by, something that may raise: where it does, and a handler goes
    on, they have the value before."""
    found: set[str] = set()
    risky = False
    for one in (one for block in blocks for one in block):
        nodes = list(ast.walk(one))
        risky = risky or any(isinstance(part, (ast.Call, ast.Subscript, ast.Await, ast.Raise)) for part in nodes)
        bound = {part.id for part in nodes if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        found |= bound if risky else set()
    return found


def _item_of(node: ast.expr) -> str:
    """The variable, of itself or of its items: `x` of `x[0][1:]`; empty for anything else."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _has_row(method: str) -> bool:
    """Whether it is a method of tensors that has a row, and none of Python's own objects or of modules."""
    return method not in OF_PYTHON and method not in MODULE_METHODS and row_of(f"torch.Tensor.{method}") is not None


# what a call of a script changes, by its name

# x.mul_(2), F.relu_(x); the methods behind setattr, `del` and `+=`
WRITING = re.compile(r"_?[a-z]\w*(?<!_)_|__(set|del)(attr|item)__|__i(add|sub|mul|truediv|pow|and|or)__")
SHUFFLES = ("shuffle",)  # of random, and of NumPy's generators
VIEWS = frozenset(TABLES["views"])
GIVE_PARTS = ("get", "setdefault", "values", "items")  # methods that give what a table holds
OF_MODULES, OF_LISTS = frozenset(TABLES["module_changes"]), frozenset(TABLES["list_changes"])


def written(call: ast.Call, of_library: bool) -> list[ast.expr]:
    """The expressions whose objects a call writes to, as its name says: `x.mul_(2)`, `F.relu_(x)`, `neg(x, out=y)`.

    of_library: whether it calls a library's function, which writes to its first argument.
    """
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    found = [word.value for word in call.keywords if word.arg == "out"]
    inplace = any(word.arg == "inplace" and not is_constant(word.value, False) for word in call.keywords)
    if inplace or name in SHUFFLES or (of_library and WRITING.fullmatch(name)):
        found += call.args[:1]
    elif isinstance(call.func, ast.Attribute) and not of_library and (WRITING.fullmatch(name) or name in OF_LISTS):
        found += chosen_from(call.func.value)
    return [one for one in found if is_stored(one)]


def chosen_from(node: ast.expr) -> list[ast.expr]:
    """The expressions whose object this may be: `rows` and `more` of `(rows or more)`, `[rows, more][0]`."""
    of = node.value if isinstance(node, ast.Subscript) else node
    if isinstance(of, ast.IfExp):
        return [*chosen_from(of.body), *chosen_from(of.orelse)]
    parts = of.values if isinstance(of, (ast.BoolOp, ast.Dict)) else getattr(of, "elts", None)
    return [node] if parts is None else [one for part in parts for one in chosen_from(part)]


def handed_methods(
    nodes: Iterable[ast.AST], value: Callable[[ast.expr], object], no_lists: tuple[type, ...]
) -> list[ast.expr]:
    """The expressions whose method is handed on, so that it may change them when it is called: `map(rows.remove, x)`.

    value: gives the value of an expression; no_lists: the classes of those that have no such methods."""
    nodes = list(nodes)
    called = {id(one.func) for one in nodes if isinstance(one, ast.Call)}
    read = (one for one in nodes if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load))
    named = (one for one in read if id(one) not in called and (WRITING.fullmatch(one.attr) or one.attr in OF_LISTS))
    return [one.value for one in named if is_stored(one.value) and not isinstance(value(one.value), no_lists)]


def gives_part(node: ast.expr) -> bool:
    """Whether this calls a method that gives what a table holds: `by_name.get("a")`."""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in GIVE_PARTS


def is_stored(node: ast.expr) -> bool:
    """Whether this is a name, or an attribute, an element or a view of one, and not a new value."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Call) and not gives_part(node) and getattr(node.func, "attr", "") not in VIEWS:
            return False
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name)


# Code that trains by itself

# methods and functions of libraries that train by themselves, and the arguments that say how long
TRAINERS = re.compile(r"_?(re|pre)?train(?!er)\w*|fit\w*|(fine_?)?tune\w*|learn|run\w*|start\w*")
LONG = re.compile(r"(max_|num_|n_|nb_|train_|total_)*(epochs?|iters?|iterations|steps|timesteps)")
# what a function that trains is called, and what it is not: train_model, start_training; train_loader, train_test_split
TRAINING = re.compile(
    r"_*((do|run|start|launch|begin|main)_)*((re|pre)?train(ing)?|fit|(fine_?)?tun(e|ing)|learn)(_\w+)?"
)
NO_TRAINING = re.compile(
    r".*_(data\w*|\w*loaders?|test|val|valid|split|trans\w*|sets?|samplers?|batch\w*|iter\w*|aug\w*|path|dir|files?"
    r"|arg\w*|callback|hook|monitor|metric\w*|loss\w*|curves?|history|results?|report|progress|times?|summary|plots?"
    r"|config|cfg|opt\w*|params|mode|tokens?|steps|images?|labels?|ids|idx|size|collate|logs?|logger|state|name|info|from)"
)


def says_training(name: str) -> bool:
    """Whether a function's name says that it trains: train_model, not train_loader."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return TRAINING.fullmatch(words) is not None and NO_TRAINING.fullmatch(words) is None


def trains(call: ast.Call) -> bool:
    """Whether a call has a library train by itself: `model.train(data="d.yaml", epochs=3)`, where torch's takes only a
    mode; `model.fit(x, y, epochs=3)`."""
    names = [keyword.arg for keyword in call.keywords]
    method = getattr(call.func, "attr", "")
    if method == "train":
        texts = any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in call.args)
        return texts or len(call.args) > 1 or any(name != "mode" for name in names)
    named = method or getattr(call.func, "id", "")
    return bool(TRAINERS.fullmatch(named)) and any(name and LONG.fullmatch(name) for name in names)


def fits(call: ast.Call) -> bool:
    """Whether a call has an object of a library train by itself: `model.fit(loader, epochs=3)`."""
    return trains(call) and getattr(call.func, "attr", "") in ("fit", "train")
