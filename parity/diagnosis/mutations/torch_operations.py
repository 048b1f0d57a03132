"""The operations of one module's own forward, as they happen, and how to do one of them otherwise.

Every torch function that the module itself calls passes here, and every module inside that it calls; what happens
within those is their own. So a forward that nobody can trace (branches on shapes, loops over children) can still be run
with one operation left out, swapped or moved. They are tried on containers whose children all pass, and on classes of
the user's own.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from ...align.model_structure import flat
from ..hypotheses import module_hypotheses
from .torch_formulas import ACTIVATIONS
from .torch_layers import ModuleHypothesis, Mutation, instead

OPERATION = "operation"
ADDS = {"add", "__add__", "__radd__", "add_", "__iadd__"}
SUBTRACTS = {"sub", "__sub__", "sub_", "__isub__", "subtract"}
BINARY = ADDS | SUBTRACTS | {"mul", "__mul__", "__rmul__", "mul_", "__imul__", "multiply"}
DIVIDES = {"div", "__truediv__", "div_", "__itruediv__", "true_divide"}
NAMED = {"relu", "relu_", "gelu", "silu", "relu6", "hardswish", "sigmoid", "tanh", "leaky_relu", "elu", "softplus"}
TURNS = {"transpose", "permute", "swapaxes", "movedim", "t"}
IN_PLACE = {"__iadd__", "__isub__", "__imul__", "__itruediv__", "add_", "mul_", "sub_", "div_", "relu_", "clamp_"}
PRESENT = 12  # earlier tensors that an operand may be mistaken for
SHAPED = {"flatten", "view", "reshape", "_unsafe_view"}
JOINS = {"cat", "concat", "concatenate"}
SPLITS = {"chunk", "split", "unbind", "tensor_split", "split_with_sizes"}
# what queries a tensor and computes nothing
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
    def text(self) -> str:
        """How a text names it: a module by class and name, a function by its name and line of source."""
        again = f", time {self.nth + 1}" if self.nth else ""
        if self.child is not None:
            return f"{self.name} {self.child}{again}"
        return f"{self.name.strip('_')}{again} in `{self.line}`" if self.line else f"{self.name.strip('_')}{again}"


class Operations(TorchFunctionMode):
    """Runs a module's forward; `otherwise` says by place what to do in place of an operation; `seen` keeps them."""

    def __init__(self, module: nn.Module, otherwise: Mapping[Place, Do], seen: list[Operation] | None = None) -> None:
        super().__init__()
        self.module = module
        self.otherwise = otherwise
        self.seen = seen
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
            before = () if self.seen is None else _copied(args)
            do = self.otherwise.get((index, name))
            result = func(*args, **kwargs) if do is None else do(func, *args, **kwargs)
            if self.seen is not None:
                op = Operation(index, name, "" if child else self._line(), before, kwargs, _copied(result), child)
                op.nth = sum((e.name, e.line, e.child) == (name, op.line, child) for e in self.seen)
                self.seen.append(op)
        finally:
            self._inside -= 1
        return result

    def call_of(self, path: str, inner: nn.Module) -> Callable[..., Any]:
        """What is done in place of calling an inner module, its hooks included."""
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
    edits = module.__dict__.get(EDITS)
    if edits is None:
        edits = module.__dict__[EDITS] = {}
        _install(module, lambda: Operations(module, edits))
    edits.update(otherwise)


def watched(module: nn.Module, seen: list[Operation]) -> None:
    """Have a module tell of its operations; the list fills when it runs, and holds its last run."""

    def mode() -> Operations:
        seen.clear()
        return Operations(module, {}, seen)

    _install(module, mode)


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
    return next(iter(flat(values, torch.Tensor)), None)


def operation_mutations(
    seen: Sequence[Operation], values: bool = True, gradients: bool = True
) -> Iterator[ModuleHypothesis]:
    """Every way to do one of these operations otherwise.

    values: ways that change what is computed; gradients: ways that leave it as it is.
    """
    for i, op in enumerate(seen):
        if values:
            yield from _left_out(op)
            yield from _operands(op, seen[:i])
            yield from _moved(op, seen[i + 1 :])
            yield from _activations(op)
            yield from arranged(op)
            yield from _exchanged(op, seen[i + 1 :])
            yield from _arguments(op)
        if gradients:
            yield from _gradient(op)


def _with(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return function(*args, **kwargs)
    except TypeError:  # it was given by position
        return function(args[0], **kwargs)


def _left_out(op: Operation) -> Iterator[ModuleHypothesis]:
    given = first_tensor(op.args)
    if given is None or not isinstance(op.result, torch.Tensor) or op.name in ADDS:
        return
    if op.name in TURNS:
        yield otherwise(op, f"{op.text} left out", lambda f, *a, **k: a[0], "transpose-permute")
        yield from turned(op, given.dim())
    elif same_shape(given, op.result) and not torch.equal(given, op.result):
        yield otherwise(op, f"{op.text} left out", lambda f, *a, **k: first_tensor(a))


def _operands(op: Operation, earlier: Sequence[Operation]) -> Iterator[ModuleHypothesis]:
    """One operand alone; the two exchanged; another tensor in the place of one."""
    if op.name in IN_PLACE and op.args:
        copy = f"{op.text} on a copy, which leaves the original as it was"
        yield otherwise(op, copy, lambda f, x, *a, **k: f(x.clone(), *a, **k), "inplace-no-alias")
    if op.name in BINARY and len(op.args) == 2:
        for i, which in ((0, "first"), (1, "second")):
            if same_shape(op.args[i], op.result):
                yield otherwise(op, f"the {which} operand of {op.text} alone", lambda f, *a, i=i, **k: a[i])
        if op.name in ADDS and same_shape(*op.args):
            yield otherwise(op, f"a product instead of the sum {op.text}", lambda f, x, y, **k: x * y)
            yield otherwise(op, f"a difference instead of the sum {op.text}", lambda f, x, y, **k: x - y)
            yield otherwise(op, f"half of the sum {op.text}", lambda f, x, y, **k: (x + y) / 2)
    if op.name in SUBTRACTS | DIVIDES | {"matmul", "__matmul__"} and len(op.args) == 2:
        yield otherwise(op, f"the operands of {op.text} exchanged", lambda f, x, y, **k: f(y, x, **k))
    if op.child is None and op.name not in BINARY:
        return
    known = [e for e in earlier[-PRESENT:] if isinstance(e.result, torch.Tensor)]
    for i, operand in enumerate(op.args):
        for other in known:
            if same_shape(operand, other.result) and not torch.equal(operand, other.result):
                yield _other_operand(op, i, other)


def _other_operand(op: Operation, position: int, other: Operation) -> ModuleHypothesis:
    """An operand is the result of an earlier operation instead of the right one."""
    kept: dict[str, Any] = {}

    def remember(f: Any, *args: Any, **kwargs: Any) -> Any:
        kept["value"] = f(*args, **kwargs)
        kept["copy"] = kept["value"].clone()  # as it was then
        return kept["value"]

    def use(f: Any, *args: Any, **kwargs: Any) -> Any:
        return f(*(kept["copy"] if i == position else a for i, a in enumerate(args)), **kwargs)

    operand = f"operand {position + 1}" if len(op.args) > 1 else "input"
    what = f"the result of {other.text} for {operand} of {op.text}"
    return edit(what, {other.place: remember, op.place: use}, f"write {op.text} as torch does")


def _moved(op: Operation, later: Sequence[Operation]) -> Iterator[ModuleHypothesis]:
    """An activation that follows an addition comes before it, on one of the operands; an activation too many."""
    if op.name not in ADDS or len(op.args) != 2 or not same_shape(*op.args):
        return
    after = next((e for e in later if _takes(e, op)), None)
    if after is not None and _is_activation(after):
        for i, which in ((0, "first"), (1, "second")):
            kept: dict[str, Any] = {}

            def early(f: Any, x: Any, y: Any, kept: dict[str, Any] = kept, i: int = i, **k: Any) -> Any:
                kept["other"] = (x, y)[1 - i].clone()
                return (x, y)[i]

            def late(f: Any, *a: Any, kept: dict[str, Any] = kept, **k: Any) -> Any:
                return f(*a, **k) + kept["other"]

            what = f"the activation before the addition {op.text}, on its {which} operand"
            yield edit(what, {op.place: early, after.place: late}, f"write the activation after {op.text}")


def _takes(later: Operation, op: Operation) -> bool:
    """Whether a later operation works on the result of an earlier one."""
    given = first_tensor(later.args)
    return given is not None and same_shape(given, op.result) and torch.equal(given, op.result)


def _is_activation(op: Operation) -> bool:
    return op.name in NAMED or op.name in ("ReLU", "ReLU6", "GELU", "SiLU", "Hardswish", "LeakyReLU", "ELU", "Tanh")


def _activations(op: Operation) -> Iterator[ModuleHypothesis]:
    """Another activation, or one that torch has not."""
    if op.name in NAMED:
        for name, function in ACTIVATIONS.items():
            fault = "gelu-approximate" if op.name == "gelu" and "tanh" in name else None
            yield otherwise(op, f"{name} for {op.text}", lambda f, x, *a, g=function, **k: g(x), fault)
    elif isinstance(op.result, torch.Tensor) and op.result.is_floating_point() and bool((op.result < 0).any()):
        yield otherwise(op, f"a ReLU after {op.text}", lambda f, *a, **k: F.relu(f(*a, **k)))


def _exchanged(op: Operation, later: Sequence[Operation]) -> Iterator[ModuleHypothesis]:
    """Two inner modules in the other order, or one used in place of another."""
    if op.child is None:
        return
    for after in later:
        if after.child is None or after.child == op.child:
            continue
        what, fix = f"{op.child} and {after.child} exchanged", f"call {op.child} before {after.child}"
        yield Mutation(what, partial(_swap, op, after), fix=fix).hypothesis()


def _swap(one: Operation, other: Operation, module: nn.Module) -> None:
    first, second = (module.get_submodule(each.child or "").forward for each in (one, other))
    edited(module, {one.place: lambda f, *x, **k: second(*x, **k), other.place: lambda f, *x, **k: first(*x, **k)})


def _gradient(op: Operation) -> Iterator[ModuleHypothesis]:
    """The same values, with a gradient that does not pass, or passes where torch stops it."""
    if op.name == "detach":
        yield otherwise(op, f"a gradient that passes {op.text}", lambda f, x, *a, **k: x, "detach")
    elif isinstance(op.result, torch.Tensor) and op.result.is_floating_point():
        yield otherwise(op, f"a stop_gradient after {op.text}", lambda f, *a, **k: f(*a, **k).detach(), "detach")


def _arguments(op: Operation) -> Iterator[ModuleHypothesis]:
    """Other keyword arguments of the functions that have a known trap: the tables' hypotheses of the verb OPERATION."""
    if op.child is not None:
        return
    for row in module_hypotheses([OPERATION]):
        for change in row.values["set"] if op.name in row.values["functions"] else ():
            if all(op.kwargs.get(key, ...) != value for key, value in change.items()):
                what = f"{', '.join(f'{key}={value!r}' for key, value in change.items())} in {op.text}"
                yield otherwise(op, what, lambda f, *a, c=change, **k: _with(f, a, {**k, **c}), row.fault)


def otherwise(op: Operation, what: str, do: Do, fault: str | None = None) -> ModuleHypothesis:
    """One operation is done otherwise."""
    return edit(what, {op.place: do}, f"write {op.text} as torch does", fault)


def edit(what: str, do: Mapping[Place, Do], fix: str, fault: str | None = None) -> ModuleHypothesis:
    """Some operations are done otherwise."""
    return Mutation(what, lambda module: edited(module, do), fix=fix).hypothesis(fault)


def turned(op: Operation, rank: int) -> Iterator[ModuleHypothesis]:
    """Two dimensions more exchanged."""
    for i in range(rank):
        for j in range(i + 1, rank):
            what = f"dimensions {i} and {j} exchanged after {op.text}"
            yield otherwise(op, what, lambda f, *a, i=i, j=j, **k: f(*a, **k).transpose(i, j))


def arranged(op: Operation) -> Iterator[ModuleHypothesis]:
    """Shapes that agree and elements that stand elsewhere."""
    given = first_tensor(op.args)
    turned_round = f"the parts of {op.text} in the other order"
    if op.name in SHAPED and given is not None and given.dim() >= 3:
        last = f"{op.text} with the channels last"
        yield otherwise(op, last, lambda f, x, *a, **k: f(x.movedim(1, -1), *a, **k))
        exchanged = f"{op.text} with the last two dimensions exchanged"
        yield otherwise(op, exchanged, lambda f, x, *a, **k: f(x.transpose(-1, -2), *a, **k))
    if op.name in SHAPED and isinstance(op.result, torch.Tensor) and op.result.dim() > 2:
        yield from _packed(op, tuple(op.result.shape))
    if op.name in JOINS and isinstance(op.args[0], (list, tuple)):
        yield otherwise(op, turned_round, lambda f, xs, *a, **k: f(list(xs)[::-1], *a, **k))
    if op.name in SPLITS:
        yield otherwise(op, turned_round, lambda f, *a, **k: tuple(f(*a, **k))[::-1])
        for shift in range(1, len(op.result) if isinstance(op.result, tuple) else 1):

            def rotate(f: Any, *args: Any, shift: int = shift, **kwargs: Any) -> Any:
                parts = tuple(f(*args, **kwargs))
                return parts[shift:] + parts[:shift]

            yield otherwise(op, f"the parts of {op.text} rotated by {shift}", rotate)
    if op.name == "pad" and given is not None and len(op.args) > 1 and len(op.args[1]) >= 4:
        what = f"the pairs of {op.text} in the other order"
        pairs = [tuple(op.args[1][i : i + 2]) for i in range(0, len(op.args[1]), 2)]
        swapped = tuple(number for pair in reversed(pairs) for number in pair)
        yield otherwise(op, what, lambda f, x, p, *a, n=swapped, **k: f(x, n, *a, **k), "nn-pad-order")
    if op.name == "repeat" and given is not None:
        what = f"repeat_interleave for {op.text}"
        yield otherwise(op, what, lambda f, x, *n, **k: _interleaved(x, n), "repeat-vs-tile")
    if op.name in ("mean", "sum") and given is not None:
        other = torch.sum if op.name == "mean" else torch.mean
        yield otherwise(op, f"a {other.__name__} for {op.text}", lambda f, *a, g=other, **k: g(*a, **k))
        dim = op.kwargs.get("dim", op.args[1] if len(op.args) > 1 else None)
        for at, which in ((0, "the first"), (-1, "the last")) if isinstance(dim, int) else ():

            def take(f: Any, x: Any, *args: Any, axis: int = dim, place: int = at, **kwargs: Any) -> Any:
                return x.select(axis, place).reshape(f(x, *args, **kwargs).shape)

            yield otherwise(op, f"{which} along dimension {dim} for {op.text}", take)
    if op.name == "__getitem__" and given is not None and isinstance(op.args[1], (int, tuple)):
        yield from _picked(op, given, op.args[1] if isinstance(op.args[1], tuple) else (op.args[1],))
    if op.name == "select" and given is not None and len(op.args) == 3:
        yield from _picked(op, given, (*[slice(None)] * (op.args[1] % given.dim()), op.args[2]))


def _packed(op: Operation, shape: tuple[int, ...]) -> Iterator[ModuleHypothesis]:
    """Two dimensions of a new shape are read in the other order: (heads, 3, d) for (3, heads, d)."""
    for i in range(1, len(shape)):
        for j in range(i + 1, len(shape)):
            if shape[i] == 1 or shape[j] == 1:
                continue
            read = list(shape)
            read[i], read[j] = read[j], read[i]
            fault = "mha-packed-order" if 3 in (shape[i], shape[j]) else None
            what = f"{op.text} into {tuple(read)}, dimensions {i} and {j} in the other order"
            do = lambda f, x, *a, r=read, i=i, j=j, **k: x.reshape(r).transpose(i, j)  # noqa: E731
            yield otherwise(op, what, do, fault)


def _picked(op: Operation, given: torch.Tensor, index: tuple[Any, ...]) -> Iterator[ModuleHypothesis]:
    """One element along a dimension: the class token, or the last time step."""
    for dim, at in enumerate(index):
        if isinstance(at, int):
            yield otherwise(op, f"a mean for {op.text}", lambda f, x, *i, dim=dim, **k: x.mean(dim))
            for other in {0, given.shape[dim] - 1} - {at % given.shape[dim]}:
                changed = (*index[:dim], other, *index[dim + 1 :])
                # of a sequence (batch, step, channel), the last step of all instead of the sample's own last one
                padded = given.dim() == 3 and dim == 1 and other and at % given.shape[dim]
                what = f"element {other} for {op.text}"
                do = lambda f, x, *i, c=changed, **k: x[c]  # noqa: E731
                yield otherwise(op, what, do, "lstm-seq-length" if padded else None)


def _interleaved(x: torch.Tensor, counts: tuple[Any, ...]) -> torch.Tensor:
    flat = counts[0] if len(counts) == 1 and not isinstance(counts[0], int) else counts
    for dim, count in enumerate(flat[-x.dim() :]):
        x = x.repeat_interleave(int(count), dim)
    return x
