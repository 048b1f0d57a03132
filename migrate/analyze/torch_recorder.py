"""Record what a torch model calls while it runs: modules that have a row, and the functions called outside them.

A module whose class has a row of its own is one operator, whatever it calls inside. A function is recorded under the
name by which it was called, with its arguments, the module it was called in, and the line of source.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn.modules import module as hooks
from torch.overrides import TorchFunctionMode, resolve_name

from .names import find, is_fact, rows_by_name
from .torch_arguments import class_name, constructor_arguments, container, operator_name
from .torch_values import encode

# a call made in one of these is told with the line that led there
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
        """Record what runs inside the block as done in `mode`, eval or train."""
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
        told = {"args": [encode(value) for value in args], "kwargs": {key: encode(v) for key, v in kwargs.items()}}
        self.note(name, "function", told, path, class_name(owner) if owner is not None else None)

    def note(self, name: str, kind: str, told: Any, path: str, owner: str | None = None) -> None:
        """Count one call of a function, or one run of a module, at a path."""
        key = (kind, name, json.dumps(told, sort_keys=True))
        use = self.uses.setdefault(
            key, {"name": name, "kind": kind, "eval": 0, "train": 0, "paths": {}, "lines": {}, "owners": {}, **told}
        )
        use[self.mode] += 1
        use["paths"][path] = None  # a dict keeps the order in which they came, and each once
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
        """The outermost modules with parameters that no run reached, containers aside."""
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
