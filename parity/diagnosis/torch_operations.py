"""The operations of one module's own forward, as they happen: which they are, and how to do one of them otherwise.

Every torch function that the module itself calls passes here, and every module inside that it calls; what happens
within those is theirs. So a forward that nobody can trace (branches on shapes, loops over children) can still be run
with one operation changed.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from .mutations.torch_layers import instead
from .torch_subjects import tensors

# what is asked of a tensor and computes nothing
QUESTIONS = {"__get__", "size", "dim", "numel", "stride", "is_floating_point", "__len__", "__bool__", "item", "__set__"}

EDITS = "_operations_done_otherwise"

Place = tuple[int, str]  # index and name, so that what comes to stand elsewhere is left alone
Do = Callable[..., Any]  # called with the operation's function first, then its arguments


@dataclass
class Operation:
    """One operation: its place in the sequence; the function's name, or for a module its dotted name inside and class;
    the line of source that asks for it; arguments and result of the run in which it was seen."""

    index: int
    name: str
    line: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    child: str | None = None

    nth: int = 0  # how often the same was done before on the same line, or by the same module

    @property
    def place(self) -> Place:
        """What tells it from the others."""
        return (self.index, self.name)

    @property
    def said(self) -> str:
        """How a text names it: a module by class and name, a function by its name and line of source."""
        again = f", time {self.nth + 1}" if self.nth else ""
        if self.child is not None:
            return f"{self.name} {self.child}{again}"
        return f"{self.name.strip('_')}{again} in `{self.line}`" if self.line else f"{self.name.strip('_')}{again}"


class Operations(TorchFunctionMode):
    """Runs a module's forward; `otherwise` says by place what to do in place of an operation."""

    def __init__(self, module: nn.Module, otherwise: Mapping[Place, Do], keep: bool = False) -> None:
        super().__init__()
        self.module = module
        self.otherwise = otherwise
        self.keep = keep
        self.seen: list[Operation] = []
        self._count = 0
        self._inside = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if self._inside or name in QUESTIONS:
            return func(*args, **(kwargs or {}))
        return self._do(name, None, func, args, kwargs or {})

    def _do(self, name: str, child: str | None, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        index, self._count = self._count, self._count + 1
        self._inside += 1
        try:
            before = _copied(args) if self.keep else ()
            do = self.otherwise.get((index, name))
            result = func(*args, **kwargs) if do is None else do(func, *args, **kwargs)
            if self.keep:
                op = Operation(index, name, "" if child else self._line(), before, kwargs, _copied(result), child)
                op.nth = sum((e.name, e.line, e.child) == (name, op.line, child) for e in self.seen)
                self.seen.append(op)
        finally:
            self._inside -= 1
        return result

    def call_of(self, path: str, inner: nn.Module) -> Callable[..., Any]:
        """What stands in place of calling an inner module, its hooks included."""
        original = inner._call_impl

        def forward(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return original(*args, **kwargs)
            return self._do(type(inner).__name__, path, original, args, kwargs)

        return forward

    def _line(self) -> str:
        """The source of the module's own forward that is at work."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_locals.get("self") is self.module and frame.f_code.co_filename != __file__:
                name = frame.f_code.co_filename
                if "/torch/nn/modules/module.py" not in name:
                    return linecache.getline(name, frame.f_lineno).strip()[:100]
            frame = frame.f_back  # type: ignore[assignment]
        return ""


def edited(module: nn.Module, otherwise: Mapping[Place, Do]) -> None:
    """Have a module do some of its own operations otherwise, each time it runs; once more, and it does both."""
    held = module.__dict__.get(EDITS)
    if held is None:
        held = module.__dict__[EDITS] = {}
        _install(module, lambda: Operations(module, held))
    held.update(otherwise)


def watched(module: nn.Module) -> list[Operation]:
    """Have a module tell of its operations; the list fills when it runs, and holds its last run."""
    seen: list[Operation] = []

    def mode() -> Operations:
        seen.clear()
        found = Operations(module, {}, keep=True)
        found.seen = seen
        return found

    _install(module, mode)
    return seen


def _install(module: nn.Module, mode: Callable[[], Operations]) -> None:
    original = module.forward
    inner = [(path, m) for path, m in module.named_modules() if m is not module]

    def forward(*args: Any, **kwargs: Any) -> Any:
        operations = mode()
        for path, m in inner:
            m.__dict__["_call_impl"] = operations.call_of(path, m)
        try:
            with operations:
                return original(*args, **kwargs)
        finally:
            for _, m in inner:
                m.__dict__.pop("_call_impl", None)

    instead(module, forward)


def _copied(values: Any) -> Any:
    """Tensors as they are now: a later operation may work in place."""
    if isinstance(values, torch.Tensor):
        return values.detach().clone()
    if isinstance(values, (list, tuple)):
        return tuple(_copied(item) for item in values)
    return values


def same_shape(one: Any, other: Any) -> bool:
    """Whether two values are tensors of one shape."""
    return isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and one.shape == other.shape


def first_tensor(values: Any) -> torch.Tensor | None:
    """The first tensor in a nest."""
    return next(tensors(values), None)
