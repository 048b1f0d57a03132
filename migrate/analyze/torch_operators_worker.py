"""Process: run one or many torch models, and report what they call and what they cost.

    python -m msmigrate.migrate.analyze.torch_operators_worker model.py:build 1x3x64x64
    python -m msmigrate.migrate.analyze.torch_operators_worker --names torchvision 'timm:resnet*'
    python -m msmigrate.migrate.analyze.torch_operators_worker --each torchvision:resnet18 torchvision:resnet50 …

Answers with `uses` (what was called, how often, where, with which arguments), `costs`, `inputs`, `notes`; with --names
with the names of the models that match the patterns; with --each it sends an event for every model as soon as it is
done: `model`, `seconds`, and its report, or `failed`.

A model runs on the meta device, without memory or computing, and on the CPU where its code reads values.

A module whose class has a row of its own is one operator, whatever it calls inside. A function is recorded under the
name by which it was called, with its arguments as JSON, the module it was called in, and the line of source.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import gc
import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.nn.modules import module as hooks
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode

from ...errors import BadInput
from ...mappings.aliases import find, is_fact, rows_by_name
from ...workers.messages import Event
from ...workers.worker import answer, send
from ..model_spec import Spec, parse, place_of, serve
from ..torch_models import (
    WAYS,
    Inputs,
    build,
    empty_weights,
    family,
    inputs_for,
    load_timm,
    looks_at_values,
    quietly,
    split,
    twice,
)


class DoesNotRun(BadInput):
    """The model stopped when it ran."""


def report(text: str, *inputs: str) -> dict[str, Any]:
    """Build the model, run it in both modes, and report what it called; raises BadInput."""
    quietly()
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # the operators inside its single kernel are not counted
    spec = parse(text)
    for building, running in () if looks_at_values(spec) else WAYS:
        try:
            return _on(building, running, spec, inputs)
        except BadInput as error:
            if not isinstance(error, DoesNotRun):
                raise
        except Exception:  # its code may read values, which meta tensors do not have; any other error is raised again
            pass
        gc.collect()
    return _on("cpu", "cpu", spec, inputs)


def _on(building: str, running: str, spec: Spec, given: tuple[str, ...]) -> dict[str, Any]:
    weights = empty_weights() if building != running else contextlib.nullcontext()
    with torch.device(building), noting_arguments(), weights:
        model, returned = split(build(spec))
    with torch.device(running):
        inputs = inputs_for(spec, model, given, returned)
        if running == "meta":
            inputs = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to("meta"), inputs)
        recorder = Recorder(model)
        notes: list[str] = []
        flops = _evaluate(model, inputs, recorder)
        memory = _train(model, inputs, recorder, notes, running)
    recorder.containers(model)
    unreached = recorder.never_ran(model)
    return {
        "uses": recorder.as_json(),
        "costs": {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "parameter_bytes": sum(parameter.numel() * parameter.element_size() for parameter in model.parameters()),
            "flops": flops,
            "activation_bytes": memory,
        },
        "inputs": inputs.said,
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "family": family(spec),
        "device": running,
        "never_ran": unreached,
        "notes": notes,
        "versions": {"torch": torch.__version__.partition("+")[0]},
    }


def _evaluate(model: torch.nn.Module, inputs: Inputs, recorder: Recorder) -> int:
    """Run once in eval mode; returns the FLOPs of its matrix products, convolutions and attention."""
    model.eval()
    counter = FlopCounterMode(display=False)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in trained:  # torch's counter follows gradients, and fails at a parameter that is an input
        parameter.requires_grad_(False)
    try:
        with torch.no_grad(), counter, recorder.running("eval"):
            model(*inputs.eval, **inputs.kwargs)
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}{place_of(error)}"
        more = "; give its inputs, as in --input 1x3x224x224" if inputs.chosen else ""
        raise DoesNotRun(f"it does not run on {inputs.said}: {reason}{more}") from None
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)
    return int(counter.get_total_flops())


def _train(model: torch.nn.Module, inputs: Inputs, recorder: Recorder, notes: list[str], device: str) -> int | None:
    """Run once in train mode; returns the bytes that are kept for the backward pass.

    A single image is run as two where normalization needs more than one value, and half of the bytes are reported.
    """
    model.train()
    before = {key: use["train"] for key, use in recorder.uses.items()}
    try:
        return _kept(model, inputs.train, inputs, recorder)
    except Exception as error:
        for key in list(recorder.uses):
            recorder.uses[key]["train"] = before.get(key, 0)
        first = error
    try:
        doubled = tuple(twice(value) for value in inputs.train)
        return _kept(model, doubled, inputs, recorder) // 2
    except Exception:
        reason = f"{type(first).__name__}: {' '.join(str(first).split())[:200]}"
        if device == "meta":  # the module may read values only in training
            raise DoesNotRun(reason) from None
        notes.append(f"it did not run in train mode ({reason}): the operators are those of eval mode")
        return None


def _kept(model: torch.nn.Module, args: tuple[Any, ...], inputs: Inputs, recorder: Recorder) -> int:
    own = {tensor.untyped_storage()._cdata for tensor in (*model.parameters(), *model.buffers())}
    kept: dict[int, Any] = {}  # keeps the storages alive, so that no other gets their address

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept.setdefault(storage._cdata, storage)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), recorder.running("train"):
        result = model(*args, **inputs.kwargs)
    del result
    return sum(storage.nbytes() for storage in kept.values())


# many models


def names(*patterns: str) -> dict[str, Any]:
    """Return the models that match the patterns; raises BadInput for a pattern without any."""
    found: dict[str, None] = {}
    for pattern in patterns:
        place, _, name = pattern.partition(":")
        if place not in ("torchvision", "timm"):
            parse(pattern)
            found[pattern] = None
            continue
        known = _known(place)
        matching = [f"{place}:{one}" for one in known if fnmatch.fnmatchcase(one, name or "*")]
        if not matching and not any(letter in name for letter in "*?["):
            matching = [pattern]  # one name, perhaps with arguments: building it reports errors
        if not matching:
            raise BadInput(f"{place} has no model {name}")
        found.update(dict.fromkeys(matching))
    return {"models": list(found)}


def _known(place: str) -> list[str]:
    if place == "timm":
        return list(load_timm().list_models())
    import torchvision

    return list(torchvision.models.list_models())


def each(models: list[str]) -> None:
    """Send the analysis of each model as soon as it is done."""
    for model in models:
        start = time.monotonic()
        try:
            found = report(model)
        except BadInput as error:
            found = {"failed": str(error)}
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}{place_of(error)}"}
        send(Event("analysed", {**found, "model": model, "seconds": round(time.monotonic() - start, 2)}))
        gc.collect()


# what is recorded

CONTAINERS = (
    *(torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict),
    *(torch.nn.ParameterList, torch.nn.ParameterDict),
)
HARMLESS = {"__init__", "extra_repr", "reset_parameters", "__repr__", "_load_from_state_dict", "__setstate__"}
NOTED = "_msmigrate_made_with"


@cache
def public_name(cls: type) -> str:
    """The shortest public name of a class: `torch.nn.Conv2d`, not `torch.nn.modules.conv.Conv2d`."""
    parts = cls.__module__.split(".")
    for length in range(1, len(parts)):
        module = sys.modules.get(".".join(parts[:length]))
        if getattr(module, cls.__qualname__, None) is cls:
            return f"{'.'.join(parts[:length])}.{cls.__qualname__}"
    return f"{cls.__module__}.{cls.__qualname__}"


@cache
def standing_for(cls: type) -> str:
    """The name of the class if it has a row, or of its base with a row where it only changes the constructor; else its
    own name."""
    overridden: set[str] = set()
    for base in cls.__mro__:
        if public_name(base) in rows_by_name():
            if any(name in overridden for name in dir(base)):
                break
            return public_name(base)
        overridden |= {name for name, value in vars(base).items() if callable(value)} - HARMLESS
    return public_name(cls)


def operator_name(module: torch.nn.Module) -> str:
    """The class that stands for a module: see standing_for."""
    cls: Any = type(module)
    return standing_for(cls)


def class_name(module: torch.nn.Module) -> str:
    """The public name of a module's own class."""
    cls: Any = type(module)
    return public_name(cls)


def container(module: torch.nn.Module) -> str | None:
    """The container of torch.nn that a module is or extends, if it is one."""
    return next((public_name(base) for base in CONTAINERS if isinstance(module, base)), None)


@contextmanager
def noting_arguments() -> Iterator[None]:
    """Make every module of torch.nn that is built inside the block remember its constructor's arguments."""
    classes = [cls for cls in vars(torch.nn).values() if isinstance(cls, type) and "__init__" in vars(cls)]
    before = {cls: cls.__init__ for cls in classes if issubclass(cls, torch.nn.Module)}  # type: ignore[misc]
    for cls, constructor in before.items():
        cls.__init__ = _noting(cls, constructor)  # type: ignore[misc]
    try:
        yield
    finally:
        for cls, constructor in before.items():
            cls.__init__ = constructor  # type: ignore[misc]


def _noting(cls: type, constructor: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(constructor)

    @functools.wraps(constructor)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        constructor(self, *args, **kwargs)
        try:
            bound = signature.bind(self, *args, **kwargs).arguments
        except TypeError:
            return
        given = {name: value for name, value in bound.items() if name not in ("self", "args", "kwargs")}
        self.__dict__.setdefault(NOTED, {})[public_name(cls)] = {**given, **bound.get("kwargs", {})}

    return init


def constructor_arguments(module: torch.nn.Module, name: str) -> dict[str, Any]:
    """The arguments that make such a module, encoded: its present attributes, and for the others the original ones."""
    given = vars(module).get(NOTED, {}).get(name, {})
    found: dict[str, Any] = {}
    for argument in rows_by_name()[name].arguments:
        attribute = getattr(module, argument.torch, None)
        if isinstance(attribute, torch.Tensor) or argument.torch in ("device", "dtype"):
            continue  # `bias` is a flag for the constructor and a tensor of the module
        if argument.torch in vars(module) and not callable(attribute):
            found[argument.torch] = encode(attribute)
        elif argument.torch in given:
            found[argument.torch] = encode(given[argument.torch])
        elif argument.torch == "bias" and NOTED not in vars(module) and module._parameters.get("bias", ...) is None:
            found["bias"] = False  # its construction was not seen, and it has none
    return {"args": [], "kwargs": found}


# a call made in one of these is reported with the line that called it
SKIPPED = ("<", contextlib.__file__, *(f"{Path(file).parent}{os.sep}" for file in (torch.__file__, __file__)))
Key = tuple[str, str, str]


class Recorder(TorchFunctionMode):
    """Records one model's calls, in all the runs that happen under `running`."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.paths: dict[int, str] = {}
        for path, module in model.named_modules(remove_duplicate=False):
            self.paths.setdefault(id(module), path)
        self.stack: list[torch.nn.Module] = []
        self.inside = 0  # modules on the stack that are one operator
        self.mode = "eval"
        self.uses: dict[Key, dict[str, Any]] = {}
        self.ran: set[int] = set()
        self.owned: set[int] = set()  # the modules inside one that is an operator
        for module in model.modules():
            if operator_name(module) in rows_by_name() and not container(module):
                self.owned.update(id(inner) for inner in module.modules() if inner is not module)

    @contextlib.contextmanager
    def running(self, mode: str) -> Iterator[None]:
        """Record what runs inside the block under `mode`, eval or train."""
        self.mode, self.stack, self.inside = mode, [], 0
        before = hooks.register_module_forward_pre_hook(self._enter)
        after = hooks.register_module_forward_hook(self._leave, always_call=True)
        try:
            with self:
                yield
        finally:
            before.remove()
            after.remove()

    def _enter(self, module: torch.nn.Module, _: Any) -> None:
        self.ran.add(id(module))
        name = operator_name(module)
        if name in rows_by_name() and not container(module):
            if not self.inside:
                self.note(name, "module", constructor_arguments(module, name), self.paths.get(id(module), ""))
            self.inside += 1
        self.stack.append(module)

    def _leave(self, module: torch.nn.Module, *_: Any) -> None:
        if self.stack and self.stack[-1] is module:
            self.stack.pop()
            if operator_name(module) in rows_by_name() and not container(module):
                self.inside -= 1

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if not self.inside:
            name = resolve_name(func) or f"{getattr(func, '__module__', '?')}.{getattr(func, '__name__', repr(func))}"
            if not is_fact(name) or find(name).row is not None:
                self._call(name, args, given)
        return func(*args, **given)

    def _call(self, name: str, args: Any, kwargs: Any) -> None:
        owner = next((module for module in reversed(self.stack) if id(module) in self.paths), None)
        path = self.paths[id(owner)] if owner is not None else ""
        call = {"args": [encode(value) for value in args], "kwargs": {key: encode(v) for key, v in kwargs.items()}}
        self.note(name, "function", call, path, class_name(owner) if owner is not None else None)

    def note(self, name: str, kind: str, call: Any, path: str, owner: str | None = None) -> None:
        """Count one call of a function, or one run of a module, at a path."""
        key = (kind, name, json.dumps(call, sort_keys=True))
        use = self.uses.setdefault(
            key, {"name": name, "kind": kind, "eval": 0, "train": 0, "paths": {}, "lines": {}, "owners": {}, **call}
        )
        use[self.mode] += 1
        use["paths"][path] = None  # a dict keeps their order, and each once
        if owner is not None:
            use["owners"][owner] = None
            use["lines"][_line()] = None

    def containers(self, model: torch.nn.Module) -> None:
        """Count the containers (Sequential, ModuleList): they hold modules, whether or not they run themselves."""
        self.mode = "eval"
        for path, module in model.named_modules():
            if (name := container(module)) and id(module) not in self.owned:
                self.note(name, "module", {"args": [], "kwargs": {}}, path)

    def never_ran(self, model: torch.nn.Module) -> list[str]:
        """The outermost modules with parameters that never ran, without containers."""
        found: list[str] = []
        for path, module in model.named_modules():
            unreached = id(module) not in self.ran and id(module) not in self.owned and not container(module)
            empty = next(module.parameters(), None) is None
            if unreached and not empty and not any(path.startswith(f"{outer}.") for outer in found):
                found.append(path)
        return found

    def as_json(self) -> list[dict[str, Any]]:
        """Every distinct use, in the order of the first call."""
        return [
            {key: list(value) if key in ("paths", "lines", "owners") else value for key, value in use.items()}
            for use in self.uses.values()
        ]


def _line() -> str:
    """File and line of the model's own source that made the call."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if not file.startswith(SKIPPED):
            break
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


LONGEST = 64  # items of a list or characters of a text that are reported


def encode(value: Any, depth: int = 0) -> Any:
    """Return the value as JSON can hold it; `values.decode` is the way back."""
    if isinstance(value, torch.Tensor):
        return {"tensor": [str(value.dtype).removeprefix("torch."), value.dim()]}
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else {"float": str(value)}
    if isinstance(value, Enum):
        return encode(value.value)
    if isinstance(value, str):
        return value[:LONGEST]
    if isinstance(value, torch.dtype):
        return {"dtype": str(value)}
    if isinstance(value, slice):
        return {"slice": [encode(end, depth + 1) for end in (value.start, value.stop, value.step)]}
    if value is ...:
        return {"ellipsis": True}
    if isinstance(value, (list, tuple)) and len(value) <= LONGEST and depth < 4:
        items = [encode(item, depth + 1) for item in value]
        return items if isinstance(value, list) else {"tuple": items}
    if callable(value) and hasattr(value, "__name__"):
        return {"thing": f"{value.__module__}.{value.__name__}"}
    if isinstance(value, (torch.device, torch.memory_format, torch.layout)):
        return {"thing": str(value)}
    return {"thing": type(value).__name__}


if __name__ == "__main__":
    if sys.argv[1] == "--each":
        answer(lambda: each(sys.argv[2:]))
    elif sys.argv[1] == "--names":
        del sys.argv[1]
        serve(names)
    else:
        serve(report)
