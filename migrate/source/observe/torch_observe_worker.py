"""Worker: build and run a torch model, and report which parts of its source ran, and what every expression was.

    python -m msmigrate.migrate.source.observe.torch_observe_worker torchvision:resnet50
    python -m msmigrate.migrate.source.observe.torch_observe_worker model.py:build 1x3x64x64

The model is built and run twice: once to see which functions there are, and once with functions that report (see
instrument.py). Prints one line of JSON, which observations.py reads. Inputs are those of `analyze`, and as there the
model runs without values where it can.
"""

from __future__ import annotations

import ast
import cProfile
import functools
import gc
import json
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from ....errors import BadInput
from ....printable import few
from ...library_names import IMPORTED, TABLES
from ...model_spec import Spec, parse, place_of, serve
from ...torch_models import (
    WAYS,
    Inputs,
    builder,
    checkpointed,
    empty_weights,
    in_mode,
    inputs_for,
    looks_at_values,
    quietly,
    split,
    twice,
)
from . import torch_collected_outputs as collected_outputs
from .instrument import definition, install, instrumented, qualified
from .observations import Changes, Made, parsed, to_json
from .torch_changes_after_init import changes, drawn_by_statements
from .torch_construction import ConstructionLog, is_table, taken_out
from .torch_simplified_transformers import for_training, tie_weights
from .torch_simplified_transformers import install as install_simplified
from .torch_values import Names, WithoutValues, as_imported, changes_in_place, module_name, noted

# functions of torch that compute in plain Python what initialisation needs: converted from their source
WRITTEN_FROM_SOURCE = ("torch.nn.init._calculate_fan_in_and_fan_out", "torch.nn.init.calculate_gain")
HOOKING = {name.rpartition(".")[2] for name in TABLES["hooks"] if "backward" in name or "Tensor" in name}
SOFTMAX = (torch.softmax, torch.Tensor.softmax, torch.nn.functional.softmax)
PACKAGE = str(Path(__file__).parents[3]) + os.sep
NOT_OF_MODELS = (
    PACKAGE,
    str(Path(torch.__file__).parent) + os.sep,
    sysconfig.get_path("stdlib") + os.sep,
    "<",
)
SIMPLIFIED = str(Path(__file__).with_name("torch_simplified_transformers.py"))  # msmigrate's, but part of models
SITE = Path(torch.__file__).parents[1]  # where packages are installed


# methods that are not instrumented, since describing an object may call them
OF_OBJECTS = {"__getattribute__", "__getattr__", "__setattr__", "__eq__", "__hash__", "__repr__", "__str__"}
NOWHERE = -1  # the site of a call that is in no source file


class Way(NamedTuple):
    """Where the model is built and where it runs, whether training needs more than one image, and whether gradients are
    computed too, since an autograd.Function ran that says how, or a hook is called with them."""

    building: str
    running: str
    doubled: bool = False
    backward: bool = False


def report(text: str, *shapes: str) -> dict[str, Any]:
    """Build the model, run it in both modes, twice, and report what ran; raises BadInput."""
    for values in (False, True):
        # the stack restores the functions, which would else report under the same numbers for another model
        with ExitStack() as before, suppress(WithoutValues):
            return _report(text, shapes, before, values=values)
    raise AssertionError("a model that is built with values has them")


def _report(text: str, shapes: tuple[str, ...], before: ExitStack, *, values: bool) -> dict[str, Any]:
    """The report; before: gets callbacks that restore the instrumented functions.

    values: build the model with values. Without them, raises WithoutValues where a class gets a tensor as an argument.
    """
    quietly()
    torch.jit._state.disable()  # what it compiles runs where nothing sees it; torch.jit.script gives its function back
    spec = parse(text)
    install_simplified()
    collected_outputs.forget()
    notes: list[str] = []
    make = builder(spec, notes)
    tables, imported = _tables(), _constants(ConstructionLog(changes))
    with suppress(Exception), torch.device("meta"):
        make()  # so that imports run now, and not while the model is observed
    before_it_ran = _constants(ConstructionLog(changes))
    notes += _changed_by_making(imported, before_it_ran)
    try:
        way, codes = _first(make, spec, shapes, values=values)
    except BadInput as error:  # the reason is often in what was left out of the file
        raise BadInput("; ".join([str(error), *notes])) from None
    collected = [(file, line, to_json(one)) for file, line, one in collected_outputs.seen(Names().name)]
    trees: dict[str, ast.Module] = {}
    nodes: list[int] = []  # the number of the node, at each site that reports
    functions = []
    log = ConstructionLog(changes)
    log.tables = tables
    log.on_meta = way.building == "meta"
    left: dict[str, str] = {}  # functions that stay as they were -> why
    known = _functions({code.co_filename for code in codes})
    for code in codes:
        if not _of_torch(code.co_filename):
            continue
        first = len(nodes)
        same = known.get((code.co_filename, code), [])
        function = _instrument(code, same, trees, nodes, log, left, before)
        if _is_users(code.co_filename):
            log.outside.append(range(first, len(nodes)))
        if function is not None:
            functions.append(
                {
                    "file": code.co_filename,
                    **_named(function, code, trees[code.co_filename]),
                    "line": code.co_firstlineno,
                    "sites": [first, len(nodes)],
                }
            )
    with SoftmaxOfOne() as softmax, _running() as ran:
        model, inputs = _run(make, spec, shapes, way, log)
    notes += [*_unheld(model, ran), *checkpointed(model)]
    taken = taken_out(log, model)
    files = _files(name.rpartition(".")[0] for name in log.definitions_seen())
    beside = _same_packages({*files, *(str(f["module"]) for f in functions)})
    report = {
        "functions": functions,
        "left": left,
        "notes": notes,
        "nodes": nodes,
        **log.as_json(),
        "files": files,
        "beside": beside,
        "names": {module: log.imported(module) for module in {*files, *(str(f["module"]) for f in functions)}},
        "constants_of": {
            module: {**values, **before_it_ran.get(module, {})} for module, values in _constants(log, beside).items()
        },
        "registers": {module: log.registers(module) for module in {*beside, *files}},
        "root": to_json(_root(log, model)),
        "parts": {path: to_json(made) for path, made in _parts(log, model)},
        "taken_out": taken,
        "softmax_of_one": softmax.seen,
        "collected": collected,
        "classes": log.classes(model),
        "in_place": [path for path, module in model.named_modules() if changes_in_place(module)],
        "orders": log.orders,
        "inputs": inputs.said,
        "versions": {"torch": torch.__version__.partition("+")[0]},
    }
    applied = {name: (_derivative(cls, given), real) for name, (cls, given, real) in log.applied.items()}
    return {**report, "autograd": applied}


def _root(log: ConstructionLog, model: torch.nn.Module) -> Any:
    """How the model is made: by its class, or where statements of a function draw its weights by that function."""
    if not drawn_by_statements(log, model):
        return log.made(model, root=True)
    if id(model) in log.built and isinstance(made := log.made(model), Made):
        return made
    made = log.made(model, root=True)
    text = "weights were drawn after the model was made: write that as a function of its own, which gets the model"
    known = made.changes or Changes()
    return replace(made, changes=replace(known, missed=(*known.missed, text))) if isinstance(made, Made) else made


def _parts(log: ConstructionLog, model: torch.nn.Module) -> Iterator[tuple[str, Made]]:
    """The path of the first module of each class in the model that is not torch's, and how it is made."""
    known: set[type] = set()
    for path, module in model.named_modules():
        cls = type(module)
        if path and cls not in known and cls.__module__.partition(".")[0] != "torch":
            known.add(cls)
            made = log.made(module, root=True)
            if isinstance(made, Made) and made.function == log.names.name(cls):
                yield path, made


@contextmanager
def _running() -> Iterator[dict[int, torch.nn.Module]]:
    """Within this block, the modules with weights of their own that run, by their ids."""
    ran: dict[int, torch.nn.Module] = {}

    def note(module: torch.nn.Module, _: Any) -> None:
        if any(True for _ in module.parameters(recurse=False)):
            ran[id(module)] = module

    handle = torch.nn.modules.module.register_module_forward_pre_hook(note)
    try:
        yield ran
    finally:
        handle.remove()


def _unheld(model: torch.nn.Module, ran: dict[int, torch.nn.Module]) -> list[str]:
    """A note on layers that run and are no part of the model, if there are some."""
    held = {id(module) for module in model.modules()}
    names = sorted({type(module).__name__ for place, module in ran.items() if place not in held})
    if not names:
        return []
    return [
        f"layers that run are no part of the model, since they are in a plain list or made as it runs "
        f"({', '.join(names)}): torch neither saves nor trains their weights, and the new net draws others; "
        "an nn.ModuleList would hold them"
    ]


class SoftmaxOfOne(TorchFunctionMode):
    """Within this block, `seen` becomes true when a softmax is over a single value."""

    seen = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Called by torch instead of each of its functions."""
        found = func(*args, **(kwargs or {}))
        if func in SOFTMAX:
            along = args[1] if len(args) > 1 else (kwargs or {}).get("dim")
            self.seen |= isinstance(along, int) and found.dim() > 0 and found.shape[along] == 1
        return found


NO_GRADIENT = "its forward has no gradient, as a step has none, and its backward is one of its own"


class _Context:
    """A context for the forward of an autograd.Function that ignores everything."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args: None


def _derivative(cls: Any, args: tuple[Any, ...]) -> str:
    """Why the backward of an autograd.Function is not the derivative of its forward, on random float64 inputs of these
    shapes, small and large, and for gradients of both signs, small and large; empty where it is."""
    direct = cls.setup_context is not torch.autograd.Function.setup_context
    torch.manual_seed(0)
    for inputs, upstream in ((1.0, 1.0), (1.0, 100.0), (10.0, 1.0), (0.1, 1e-3)):
        made = [inputs * torch.randn(x.shape, dtype=torch.float64) if _is_floating(x) else x for x in args]
        weights: list[torch.Tensor] = []
        try:
            with torch.device("cpu"), torch.enable_grad():
                backward = _gradients(cls.apply, made, weights, upstream)
                own = cls.forward if direct else functools.partial(cls.forward, _Context())
                derivative = _gradients(own, made, weights, upstream)
        except Exception as error:
            return f"its gradient could not be compared with that of its forward: {type(error).__name__}: {error}"[:300]
        if derivative is None:
            return "" if backward is None else NO_GRADIENT
        pairs = zip(backward, derivative, strict=True) if backward is not None else ()
        if backward is None or not all(torch.allclose(*pair, rtol=1e-6, atol=1e-9 * upstream) for pair in pairs):
            return "its backward is not the derivative of its forward"
    return ""


def _gradients(
    call: Callable[..., Any], made: Sequence[Any], weights: list[torch.Tensor], upstream: float
) -> list[torch.Tensor] | None:
    """The gradients of a function by its tensors; None where none of its results has any. weights: those of its
    results, drawn at the first call; upstream: how large they are."""
    leaves = [x.clone().requires_grad_() if _is_floating(x) else x for x in made]
    found = pytree.tree_leaves(call(*(x * 1 if _is_floating(x) else x for x in leaves)))
    found = [x for x in found if _is_floating(x)]
    if not weights:
        weights += [upstream * torch.randn(x.shape, dtype=torch.float64) for x in found]
    weighted = [(x * one).sum() for x, one in zip(found, weights, strict=True)]
    if not any(x.requires_grad for x in weighted):
        return None
    by = [x for x in leaves if _is_floating(x)]
    given = torch.autograd.grad(torch.stack(weighted).sum(), by, allow_unused=True)
    return [torch.zeros_like(x) if one is None else one for x, one in zip(by, given, strict=True)]


def _is_floating(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.is_floating_point()


def _first(
    make: Callable[..., Any], spec: Spec, shapes: tuple[str, ...], *, values: bool
) -> tuple[Way, list[CodeType]]:
    """The first way in which the model runs, and the code that ran; raises BadInput where there is none.

    Without values where possible, for speed and memory, and with two images where training needs more than one value.
    """
    ways = [Way(*way, doubled) for way in (() if looks_at_values(spec) else WAYS[values:]) for doubled in (False, True)]
    ways += [Way("cpu", "cpu"), Way("cpu", "cpu", doubled=True)]
    first_error = ""
    for way in ways:
        try:
            with _noticing() as codes:
                _run(make, spec, shapes, way)
        except BadInput:
            raise
        except Exception as error:
            if way == ("cpu", "cpu", False, False):  # errors of the other ways may be caused by the way itself
                first_error = _why(error)
        else:
            with suppress(Exception):
                if _of_autograd(codes) or _of_hooks(codes):
                    with _noticing() as more:
                        _run(make, spec, shapes, way._replace(backward=True))
                    return way._replace(backward=True), more
            return way, codes
        if way.running != "meta":  # what has no values takes no memory
            gc.collect()
    raise BadInput(first_error)


def _run(
    make: Callable[..., Any], spec: Spec, shapes: tuple[str, ...], way: Way, log: ConstructionLog | None = None
) -> tuple[Any, Inputs]:
    """Build the model and run it in both modes, and in training backward too, if `way` says so."""
    _forget_results()
    torch.manual_seed(0)
    without = empty_weights() if way.building != way.running else nullcontext()
    with torch.device(way.building), without:
        made = make() if log is None else make(lambda found: log.call(NOWHERE, found))  # the function may be a class
        model, returned = split(made)
        _check_forward(model)
        tie_weights(model)
        for_training(model)
    if log is not None:
        log.numbers, log.running = noted(model), True
    with torch.device(way.running), torch.no_grad():
        inputs = inputs_for(spec, model, shapes, returned)
        if way.running == "meta":
            inputs = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to("meta"), inputs)
        in_mode(model, training=False)(*inputs.eval, **inputs.kwargs)
        try:
            in_mode(model, training=True)(*(map(twice, inputs.train) if way.doubled else inputs.train), **inputs.kwargs)
        except Exception as error:
            vars(error)[IN_TRAINING] = True
            raise
        if way.backward:
            with torch.enable_grad():
                found = model(*(map(twice, inputs.train) if way.doubled else inputs.train), **inputs.kwargs)
                sums = [each.sum() for each in pytree.tree_leaves(found) if _is_floating(each) and each.requires_grad]
                torch.autograd.backward(sums)
    return model, inputs


def _forget_results() -> None:
    """Empty what functools.cache and lru_cache hold for functions of models, which would not run, and not be seen."""
    for name in _with_models():
        module = sys.modules[name]
        named = [*vars(module).values()]
        classes = [one for one in named if isinstance(one, type) and one.__module__ == module.__name__]
        for one in (*named, *(inner for cls in classes for inner in vars(cls).values())):
            if isinstance(one, functools._lru_cache_wrapper):
                one.cache_clear()


def _of_autograd(codes: Collection[CodeType]) -> bool:
    """Whether the forward of a model's own autograd.Function is among what ran."""
    waiting, seen = [torch.autograd.Function], set()
    while waiting:
        cls = waiting.pop()
        if cls not in seen:
            seen.add(cls)
            waiting += cls.__subclasses__()
    return any(getattr(cls.forward, "__code__", None) in codes for cls in seen - {torch.autograd.Function})


def _of_hooks(codes: Collection[CodeType]) -> bool:
    """Whether what ran names a method that has a function called with a gradient."""
    return any(not HOOKING.isdisjoint(code.co_names) for code in codes)


IN_TRAINING = "_msmigrate_in_training"  # marks an error of the second run


def _check_forward(model: torch.nn.Module) -> None:
    """Raise BadInput for a module that cannot be called."""
    if type(model).forward is torch.nn.Module.forward and "forward" not in vars(model):
        cls = type(model)
        file = Path(sys.modules[cls.__module__].__file__ or "").name if cls.__module__ in sys.modules else ""
        text = f"{cls.__name__} ({file or cls.__module__}) has no forward, which runs when the model is called"
        raise BadInput(f"{text}; give a class whose forward calls the method that computes")


def _why(error: Exception) -> str:
    text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}{place_of(error)}"
    files = [Path(frame.filename).parts[-3:] for frame in traceback.extract_tb(error.__traceback__)]
    if ("torch", "cuda", "__init__.py") in files:
        return f"it does not run: {text}; write .to(x.device) there, of a tensor x that is given: this runs on the CPU"
    if "cannot register a hook on a tensor" in text:
        return (
            f"it does not run: {text}; write if h.requires_grad: before it, since a model also runs without gradients"
        )
    if vars(error).get(IN_TRAINING):
        return (
            f"it runs in evaluation mode, and not in training mode: {text}; both get the same inputs: "
            "let the function return a model that takes them in both"
        )
    return f"it does not run: {text}"


def _files(modules: Iterable[str]) -> dict[str, str]:
    """The files of modules that are neither Python's, torch's nor msmigrate's own, by module."""
    found: dict[str, str] = {}
    others = _not_of_models()
    for module in modules:
        file = getattr(sys.modules.get(module), "__file__", None)
        if not isinstance(file, str) or module_name(module) != module:
            continue
        if file.endswith(".py") and _of_models(file, others) and Path(file).is_file():
            found[module] = file  # torch.ops names a file that does not exist
    return found


def _tables() -> dict[tuple[str, str], dict[str, Any]]:
    """Copies of the dictionaries that files of models define at their top, by module and name."""
    found = {}
    for module in _files(_with_models()):
        for name, value in list(vars(sys.modules[module]).items()):
            if not name.startswith("__") and is_table(value):
                found[module, name] = as_imported(value)
    return found


def _constants(log: ConstructionLog, files: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """The values at the top of the user's own files, by module and name; files: of which modules, None: all."""
    known = _files(_users_modules()) if files is None else files
    return {module: log.constants_of(module) for module, file in known.items() if _is_users(file)}


def _users_modules() -> set[str]:
    """The modules that are files of no installed package."""
    return {name for name, module in list(sys.modules.items()) if _is_users(getattr(module, "__file__", None))}


def _changed_by_making(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> list[str]:
    """A note on names at the top of a file that have another value once the model was made, if there are some."""
    there = [(key, name) for key, values in before.items() for name in values if name in after.get(key, {})]
    names = [name for key, name in there if _without_ids(before[key][name]) != _without_ids(after[key][name])]
    return [f"making the model changes {few(names)}: the new file has the value from after that"] * bool(names)


def _without_ids(made: Any) -> str:
    """How a value is made, as text; two runs of the same have other ids."""
    return re.sub(r"\], \d+, ", "], ", json.dumps(made))


def _same_packages(modules: set[str]) -> dict[str, str]:
    """The files of all imported modules of the same packages, from which constants may come, by module."""
    packages = {module.partition(".")[0] for module in modules}
    own = _users_modules()
    return _files(name for name in list(sys.modules) if name.partition(".")[0] in packages or name in own)


def _not_of_models() -> tuple[str, ...]:
    """Where files are that hold no parts of models: Python's, torch's and msmigrate's, those of libraries that the new
    file imports, and einops', whose patterns are written out (rewrite/einops_patterns.py)."""
    others = (folder for name in ("einops", *IMPORTED) for folder in getattr(sys.modules.get(name), "__path__", ()))
    return (*NOT_OF_MODELS, *(f"{folder}{os.sep}" for folder in others))


def _of_models(file: str, others: tuple[str, ...]) -> bool:
    """Whether a file may hold parts of a model; others: see _not_of_models."""
    return file.startswith(SIMPLIFIED) or not file.startswith(others)


def _with_models() -> list[str]:
    """The modules that may hold parts of models: of no package that is installed and has not imported torch, as sympy,
    which is large."""
    others, modules = _not_of_models(), list(sys.modules.items())
    files = {name: getattr(module, "__file__", None) for name, module in modules}
    using = {
        name.partition(".")[0] for name, module in modules if getattr(module, "__dict__", {}).get("torch") is torch
    }
    return [
        name
        for name, file in files.items()
        if isinstance(file, str) and file.endswith(".py") and _of_models(file, others)
        if name.partition(".")[0] in using or not file.startswith(str(SITE) + os.sep)
    ]


def _is_users(file: Any) -> bool:
    """Whether a file belongs to no installed package."""
    return isinstance(file, str) and not file.startswith((*NOT_OF_MODELS, str(SITE) + os.sep))


@contextmanager
def _noticing() -> Iterator[list[CodeType]]:
    """The code of every function that may be part of a model and is called within the block, by file and line."""
    found: list[CodeType] = []
    profiler = cProfile.Profile()  # it counts in C; a Python function would take several times as long
    profiler.enable()
    try:
        yield found
    finally:
        profiler.disable()
        ran = [entry.code for entry in profiler.getstats() if isinstance(entry.code, CodeType)]
        codes = {(code.co_filename, code): code for code in ran}  # code objects of different files may be equal
        from_torch = {attrgetter(name.removeprefix("torch."))(torch).__code__ for name in WRITTEN_FROM_SOURCE}
        others = _not_of_models()
        of_models = (code for code in codes.values() if code in from_torch or _of_models(code.co_filename, others))
        found += sorted(of_models, key=lambda code: (code.co_filename, code.co_firstlineno, code.co_name))


@cache
def _of_torch(file: str) -> bool:
    """Whether a file is the user's own, or of an installed package that imports torch: functions of NumPy or sympy run
    too, but are not part of a model."""
    if SITE not in Path(file).parents:
        return True
    package = Path(file).relative_to(SITE).parts[0].removesuffix(".py")
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == package]
    return any(vars(module).get("torch") is torch for module in modules)


def _named(function: FunctionType, code: CodeType, tree: ast.Module) -> dict[str, str]:
    """The module and the qualified name of a function; functools.wraps would give those of the function inside."""
    node = definition(tree, code.co_name, code.co_firstlineno)
    if not hasattr(function, "__wrapped__") or node is None:
        return {"module": module_name(function.__module__), "name": function.__qualname__}
    return {"module": module_name(function.__globals__["__name__"]), "name": qualified(tree, node)}


def _functions(files: Container[str]) -> dict[tuple[str, CodeType], list[FunctionType]]:
    """Every existing function of these files, by its file and its code."""
    found: dict[tuple[str, CodeType], list[FunctionType]] = {}
    named = [attrgetter(name.removeprefix("torch."))(torch) for name in WRITTEN_FROM_SOURCE]
    simplified = vars(sys.modules[for_training.__module__])
    for owner in (simplified, *(vars(one) for one in simplified.values() if isinstance(one, type))):
        named += [one for one in owner.values() if type(one) is FunctionType]
    known = {id(function): function for function in named}  # gc does not give what somebody has frozen
    # not isinstance, which fails on a dead weak proxy, and a library may leave some
    others = [thing for thing in gc.get_objects() if type(thing) is FunctionType and id(thing) not in known]
    for function in (*known.values(), *others):
        if function.__code__.co_filename in files:
            found.setdefault((function.__code__.co_filename, function.__code__), []).append(function)
    return found


def _instrument(
    code: CodeType,
    functions: list[FunctionType],
    trees: dict[str, ast.Module],
    nodes: list[int],
    log: ConstructionLog,
    left: dict[str, str],
    before: ExitStack,
) -> FunctionType | None:
    """Make the functions of this code report until `before` is closed; returns one of them, None where that fails."""
    if not functions or code.co_name in OF_OBJECTS:
        return None  # a comprehension, or a class body
    try:
        if code.co_filename not in trees:
            trees[code.co_filename] = parsed(code.co_filename)
        node = definition(trees[code.co_filename], code.co_name, code.co_firstlineno)
        if node is None:
            return None
        reporting = instrumented(node, functions[0], nodes)
    except (OSError, SyntaxError, ValueError) as error:
        left[f"{functions[0].__module__}.{functions[0].__qualname__}"] = str(error)
        return None
    for function in functions:
        before.callback(setattr, function, "__code__", function.__code__)
        install(function, reporting, log.reached, log.value, log.call)
    return functions[0]


if __name__ == "__main__":
    serve(report)
