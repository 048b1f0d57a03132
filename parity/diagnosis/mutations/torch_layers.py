"""A layer with another attribute, padding, order of weights or normalisation; the operations of one's own forward.

A mutation changes a copy of the module, whose parameters keep their names, so that every gradient has its counterpart.
Mutations can be combined.

Every torch function, and every inner module, that a module itself calls passes through its Operations; calls within an
inner module do not. So a forward that cannot be traced (branches on shapes, loops over children) can still be run with
one operation done otherwise.
"""

from __future__ import annotations

import itertools
import linecache
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from ....errors import BadInput, UnknownRow
from ....mappings import table
from ...align.layers import torch_class
from ...align.user_model import layer_class
from ...replay.module_calls import Made
from ..hypotheses import Hypothesis

Values = Mapping[str, Any]
Change = Callable[[nn.Module], None]
Forward = Callable[..., torch.Tensor]


@dataclass(frozen=True)
class Mutation:
    """One way to compute a module otherwise: its text, which follows "as with"; the change, made in place; and the
    torch arguments that it concerns; whole: it is another layer altogether."""

    what: str
    apply: Change
    arguments: tuple[str, ...] = ()
    fix: str = ""  # what to do, where that is no argument
    whole: bool = False

    def hypothesis(self, fault: str | None = None) -> ModuleHypothesis:
        """The hypothesis that a module has this mutation. fault: the known fault that it stands for."""
        return Hypothesis(fault, self.what, self, self.fix)


ModuleHypothesis = Hypothesis[Mutation]
Mutate = Callable[[nn.Module, Values], Iterator[Mutation]]


def class_of(module: nn.Module) -> str:
    """The torch class that a module is of, as far as its mapping row goes: timm's BatchNormAct2d is a BatchNorm2d."""
    return torch_class(layer_class(type(module).__mro__, parts=any(True for _ in module.children())))


def arguments_of(module: nn.Module) -> dict[str, Any]:
    """The constructor arguments of a module that its mapping row names, from its attributes."""
    row = table.known(f"torch.nn.{class_of(module)}")
    if row is None:
        return {}
    found = {}
    for argument in row.arguments:
        value = getattr(module, argument.torch, ...)
        if argument.torch == "bias":
            value = isinstance(value, torch.Tensor)
        if value is not ... and not isinstance(value, torch.Tensor) and argument.torch != "inplace":
            found[argument.torch] = value
    return found


def applies(module: nn.Module, when: str | None) -> bool:
    """Whether a hypothesis for padded layers only, or for unpadded ones only, applies to this one."""
    if when is None:
        return True
    padding = getattr(module, "padding", 0)
    padded = any(_pair(padding)) if not isinstance(padding, str) else padding != "valid"
    return padded == (when == "padded")


def instead(module: nn.Module, forward: Callable[..., Any]) -> None:
    """Give one module another forward."""
    module.__dict__["forward"] = forward


def computing(forward: Callable[..., Any]) -> Change:
    """The change by which a module computes forward(module, its own forward, its inputs)."""
    return lambda module: instead(module, partial(forward, module, module.forward))


def as_given(module: nn.Module, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    """Have a module compute with a function of its own weights; the gradients stay those of its own weights."""
    original = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        own = dict(module._parameters)
        module._parameters.update(change({name: p for name, p in own.items() if p is not None}))
        names = getattr(module, "_flat_weights_names", None)
        if names is not None:  # a recurrent layer also holds them in a list
            module._flat_weights = [module._parameters[name] for name in names]
        try:
            return original(*args, **kwargs)
        finally:
            module._parameters.update(own)
            if names is not None:
                module._flat_weights = [module._parameters[name] for name in names]

    instead(module, forward)


def like(current: Any, value: Any) -> Any:
    """A scalar in the form that the attribute has: a pair stays a pair."""
    if isinstance(current, tuple) and not isinstance(value, (tuple, list)):
        return (value,) * len(current)
    return tuple(value) if isinstance(value, list) else value


def with_value(name: str, value: Any, text: str) -> Mutation:
    """The attribute has this value."""
    return Mutation(f"{name}={text}", lambda module: setattr(module, name, value), (name,))


def set_attribute(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """The attribute has another value: one of `to`, or one that another attribute has (`as`), or torch's own times
    one of `times`."""
    name = values["attribute"]
    if not hasattr(module, name):
        return
    current = getattr(module, name)
    wanted = [like(current, value) for value in values.get("to", ())]
    wanted += [like(current, getattr(module, other)) for other in values.get("as", ()) if hasattr(module, other)]
    if isinstance(current, (int, float)) and not isinstance(current, bool):
        wanted += [current * factor for factor in values.get("times", ())]
    for value in wanted:
        if value != current or (type(value) is not type(current) and isinstance(value, bool)):
            yield with_value(name, value, repr(value))


def as_made(module: nn.Module, made: Made) -> Iterator[Mutation]:
    """The arguments that MindSpore's Cell was made with, where they differ from the module's: all at once."""
    kind, own = f"torch.nn.{type(module).__name__}", arguments_of(module)
    try:
        row = table.row(kind)
        theirs = table.inverse(kind, {name: _as_tuple(value) for name, value in made.arguments.items()}, partial=True)
    except (UnknownRow, BadInput, ArithmeticError, AttributeError, KeyError, TypeError, ValueError, IndexError):
        return
    if row.mindspore != made.target or any(made.arguments.get(w.mindspore, w.value) != w.value for w in row.written):
        return  # another layer, or written in another way, as pad_mode='same'
    other = {n: like(own[n], v) for n, v in theirs.items() if n in own and n not in FIXED and v is not None}
    other = {n: v for n, v in other.items() if v != own[n] and type(v) is type(own[n])}
    if other:
        what = ", ".join(f"{name}={value!r}" for name, value in other.items())
        yield Mutation(what, partial(_set, other), tuple(other))


def _set(values: Values, module: nn.Module) -> None:
    for name, value in values.items():
        setattr(module, name, value)


FIXED = {"bias", "affine", "elementwise_affine", "in_channels", "out_channels", "in_features", "out_features"}
# arguments that decide which tensors there are; tensors are compared by themselves


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # of heads that are tried


def other_heads(module: nn.Module) -> Iterator[Mutation]:
    """Attention that cuts its width into another number of heads; attributes for a head's size and scale follow."""
    own = {name: value for name, value in vars(module).items() if type(value) in (int, float) and value > 0}
    for name in (name for name, count in own.items() if HEADS.search(name) and type(count) is int):
        for count in COUNTS:
            if count == own[name]:
                continue
            share = own[name] / count
            sizes = {n: round(size * share) for n, size in own.items() if OF_A_HEAD.search(n) and type(size) is int}
            scales = {n: scale * share**-0.5 for n, scale in own.items() if "scal" in n and type(scale) is float}
            known = (name,) if name in arguments_of(module) else ()
            change = partial(_set, {name: count, **sizes, **scales})
            yield Mutation(f"{name}={count}", change, known, f"cut the width into {own[name]} heads, as torch's {name}")


HEADS = re.compile(r"^(?!d(im)?_)(.*_)?n?heads?$")  # heads, num_heads, n_head; dim_head is a size
OF_A_HEAD = re.compile(r"^(?!all_).*head_(dim|size|width)$|^d(im)?_head$")  # all_head_size is the size of all heads


def complement(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """The attribute is one minus what it should be."""
    name = values["attribute"]
    current = getattr(module, name, None)
    if isinstance(current, float) and current != 0.5:
        value = round(1.0 - current, 12)
        yield with_value(name, value, f"{value:g}")


def training(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """The module is in the other mode, given by `mode`."""
    mode = bool(values["mode"])
    if module.training == mode:
        return
    text = "training mode" if mode else "evaluation mode"
    what = f"{text}: stored statistics, buffers that stay" if hasattr(module, "running_mean") and not mode else text
    yield Mutation(what, lambda m: m.train(mode) and None, tuple(values.get("arguments", ())))


def same_padding(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """pad_mode='same': as much padding as keeps ceil(n / stride), the odd cell at the end."""
    if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        kernel, stride, dilation = module.kernel_size, module.stride, module.dilation
    elif isinstance(module, (nn.MaxPool2d, nn.AvgPool2d)):
        kernel, stride = _pair(module.kernel_size), _pair(module.stride)
        dilation = _pair(getattr(module, "dilation", 1))
    else:
        return

    def widths(x: torch.Tensor) -> list[int]:
        found: list[int] = []
        for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True):
            total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
            found = [total // 2, total - total // 2, *found]
        return found

    def forward(m: nn.Module, _: Forward, x: torch.Tensor) -> torch.Tensor:
        if isinstance(m, nn.MaxPool2d):
            return F.max_pool2d(F.pad(x, widths(x), value=-torch.inf), kernel, stride, 0, dilation)
        if isinstance(m, nn.AvgPool2d):
            cells = F.avg_pool2d(F.pad(torch.ones_like(x), widths(x)), kernel, stride)
            return F.avg_pool2d(F.pad(x, widths(x)), kernel, stride) / cells
        convolve = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[x.dim()]
        return convolve(F.pad(x, widths(x)), m.weight, m.bias, stride, 0, dilation, m.groups)

    yield Mutation("pad_mode='same', which pads the end by the odd cell", computing(forward), ("padding", "stride"))


def zero_padding(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """A max-pool that pads with zeros instead of minus infinity."""
    if not isinstance(module, nn.MaxPool2d) or not any(_pair(module.padding)):
        return
    high, wide = _pair(module.padding)

    def forward(m: nn.Module, _: Forward, x: torch.Tensor) -> torch.Tensor:
        padded = F.pad(x, (wide, wide, high, high))
        return F.max_pool2d(padded, m.kernel_size, m.stride, 0, m.dilation, m.ceil_mode)

    yield Mutation("zeros for padding, by a Pad before the pool", computing(forward), ("padding",))


def missing(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """A missing parameter: zeros for a shift, ones for a scale, and no gradient."""
    there = [n for n in values["parameters"] if getattr(module, n, None) is not None]
    if not there:
        return

    def change(own: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {n: torch.full_like(own[n], values.get("fill", 0.0)).detach() for n in there}

    yield Mutation(
        f"no {' and '.join(there)}", lambda m: as_given(m, change), tuple(values.get("arguments", ("bias",)))
    )


def scaled(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """A parameter is taken `times` as large: a bias that is added twice."""
    for name, _ in module.named_parameters(recurse=False):
        if any(name.startswith(start) for start in values["parameters"]):
            for factor in values["times"]:
                change = partial(lambda name, factor, own: {name: own[name] * factor}, name, factor)
                what = f"{name} taken {factor:g} times"
                yield Mutation(what, partial(as_given, change=change), fix=f"add {name} once")


def rearranged(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """The weight's elements in another order that its shape allows: transposed, read in the other order, flipped."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.dim() < 2:
        return
    rules: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "transposed": lambda w: w.transpose(0, 1),
        "stored as (in, out)": lambda w: w.reshape(w.shape[1], w.shape[0], *w.shape[2:]).transpose(0, 1),
        "height and width swapped in its kernel": lambda w: w.transpose(-1, -2),
        "its kernel flipped": lambda w: w.flip(tuple(range(2, w.dim()))),
        "its outputs reversed": lambda w: w.flip(0),
        "its inputs reversed": lambda w: w.flip(1),
    }
    for name in values["rules"]:
        rule = rules[name]
        if name == "height and width swapped in its kernel" and weight.dim() < 4:
            continue
        with torch.no_grad():
            other = rule(weight)
            if other.shape != weight.shape or bool((other == weight).all()):
                continue
        what = f"its weight {name}" if not name.startswith(("its", "height")) else f"the weight with {name}"
        change = partial(lambda rule, own: {"weight": rule(own["weight"])}, rule)
        fix = "load the weight in torch's own order: Dense and Conv have the same"
        yield Mutation(what, partial(as_given, change=change), fix=fix)


def reordered_blocks(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """Parameters made of `blocks` equal blocks (gates; query, key, value) in another order, or interleaved by head."""
    names = [
        n for n, _ in module.named_parameters(recurse=False) if any(n.startswith(start) for start in values["of_names"])
    ]
    count, gates = int(values["blocks"]), values["names"]
    if not names or any(getattr(module, n).shape[0] % count for n in names):
        return

    def mutation(what: str, rule: Callable[[torch.Tensor], torch.Tensor]) -> Mutation:
        fix = f"load {', '.join(names)} with blocks in the order {', '.join(gates)}"
        return Mutation(what, lambda m: as_given(m, lambda own: {n: rule(own[n]) for n in names}), fix=fix)

    for order in itertools.permutations(range(count)):
        if list(order) != list(range(count)):
            text = f"its blocks in the order {', '.join(gates[i] for i in order)}"
            yield mutation(text, partial(lambda order, w: torch.cat([w.chunk(count)[i] for i in order]), order))
    if heads := getattr(module, "num_heads", None):
        yield mutation(
            "its blocks packed head by head, (heads, 3, d)",
            lambda w: w.reshape(heads, count, -1, *w.shape[1:]).transpose(0, 1).reshape(w.shape),
        )
        yield mutation(
            "its heads' blocks packed as (3, d, heads)",
            lambda w: w.reshape(count, -1, heads, *w.shape[1:]).transpose(1, 2).reshape(w.shape),
        )


def _pair(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value, value)


def biased_variance(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """The running variance moves towards the biased variance of the batch instead of the unbiased one."""

    def forward(m: nn.Module, original: Forward, x: torch.Tensor) -> torch.Tensor:
        before = m.running_var.detach().clone()
        y = original(x)
        if m.training:
            n, kept = x.numel() / x.shape[1], 1.0 - (m.momentum or 0.0)
            with torch.no_grad():
                m.running_var.copy_(kept * before + (m.running_var - kept * before) * (n - 1) / n)
        return y

    yield Mutation("the biased variance of the batch in running_var", computing(forward))


def unbiased_norm(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """The batch is normalised by the unbiased variance instead of the biased one."""

    def forward(m: nn.Module, original: Forward, x: torch.Tensor) -> torch.Tensor:
        y, n = original(x), x.numel() / x.shape[1]
        dims = [d for d in range(x.dim()) if d != 1]
        z = _normalised(m, x, dims, lambda var: torch.sqrt(var * n / (n - 1) + m.eps))
        return z if m.affine and m.training else y

    yield Mutation("the unbiased variance of the batch in the normalisation", computing(forward))


def _normalised(
    m: nn.Module, x: torch.Tensor, dims: list[int], root: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """x less its mean over the root of its variance, with the module's own scale and shift as far as it has them."""
    mean, var = x.mean(dims, keepdim=True), x.var(dims, correction=0, keepdim=True)
    return _affine(m, (x - mean) / root(var))


def _affine(m: nn.Module, y: torch.Tensor) -> torch.Tensor:
    weight, bias = m.weight, getattr(m, "bias", None)
    shape = getattr(m, "normalized_shape", [1, -1] + [1] * (y.dim() - 2))  # a batch norm's is that of the channels
    y = y if weight is None else y * weight.view(shape)
    return y if bias is None else y + bias.view(shape)


def still_buffers(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """Batch statistics, but running statistics that do not move."""
    yield Mutation("running statistics that do not move", lambda m: setattr(m, "momentum", 0.0), ("momentum",))


def other_axes(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """A LayerNorm over other dimensions than its last ones: over all but the batch, or over the first of its shape."""
    rank = len(module.normalized_shape)

    def over(pick: Callable[[int], list[int]]) -> Change:
        return computing(lambda m, _, x: _normalised(m, x, pick(x.dim()), lambda var: torch.sqrt(var + m.eps)))

    def rms(m: nn.Module, _: Forward, x: torch.Tensor) -> torch.Tensor:
        dims = list(range(x.dim() - rank, x.dim()))
        return _affine(m, x * torch.rsqrt(x.square().mean(dims, keepdim=True) + m.eps))

    yield Mutation("normalisation over all but the first dimension", over(lambda dims: list(range(1, dims))))
    yield Mutation("normalisation over the second dimension", over(lambda dims: [1]))
    yield Mutation("normalisation without the mean (RMSNorm)", computing(rms))
    if rank > 1:
        yield Mutation("normalisation over the last dimension alone", over(lambda dims: [dims - 1]))


def eps_outside(module: nn.Module, values: Values) -> Iterator[Mutation]:
    """A norm that adds eps to the standard deviation instead of the variance."""

    def forward(m: nn.Module, _: Forward, x: torch.Tensor) -> torch.Tensor:
        norm = getattr(m, "normalized_shape", None)
        dims = [d for d in range(x.dim()) if d != 1] if norm is None else list(range(x.dim() - len(norm), x.dim()))
        return _normalised(m, x, dims, lambda var: torch.sqrt(var) + m.eps)

    yield Mutation("eps added to the standard deviation, not to the variance", computing(forward), ("eps",))


MUTATIONS: dict[str, Mutate] = {
    "set": set_attribute,
    "complement": complement,
    "training": training,
    "same_padding": same_padding,
    "zero_padding": zero_padding,
    "missing": missing,
    "scaled": scaled,
    "rearranged": rearranged,
    "reordered_blocks": reordered_blocks,
    "biased_variance": biased_variance,
    "unbiased_norm": unbiased_norm,
    "still_buffers": still_buffers,
    "other_axes": other_axes,
    "eps_outside": eps_outside,
}


EDITS = "_operations_done_otherwise"
# functions that only query a tensor
QUESTIONS = {"__get__", "size", "dim", "numel", "stride", "is_floating_point", "__len__", "__bool__", "item", "__set__"}

Do = Callable[..., Any]  # called with the operation's function first, then its arguments

Place = tuple[int, str]  # index and name, so that an operation which moves to another index is left alone


@dataclass
class Operation:
    """One operation: its place in the sequence; the function's name, or for a module its dotted name inside and class;
    the line of source that calls it; arguments and result of the run in which it was seen."""

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
        """What distinguishes it from the others."""
        return (self.index, self.name)

    @property
    def text(self) -> str:
        """Its name in a text: a module by class and name, a function by its name and line of source."""
        again = f", time {self.nth + 1}" if self.nth else ""
        if self.child is not None:
            return f"{self.name} {self.child}{again}"
        return f"{self.name.strip('_')}{again} in `{self.line}`" if self.line else f"{self.name.strip('_')}{again}"

    @property
    def right(self) -> str:
        """What to write: torch's own line, and what its function is called in MindSpore."""
        if not self.line:
            return f"compute {self.text} as torch does"
        cell = next((called for name in FUNCTIONS if (called := _counterpart(name + self.name))), "")
        also = f" ({self.name} is {cell})" if cell and self.child is None else ""
        return f"write what torch computes in `{self.line}`{also}"


FUNCTIONS = ("torch.nn.functional.", "torch.", "torch.Tensor.")


@cache  # every trial looks it up
def _counterpart(name: str) -> str:
    """The short name of MindSpore's function for one of torch; empty where the table has none."""
    row = table.known(name)
    return "" if row is None else (row.mindspore or "").replace("mindspore.", "", 1)


class Operations(TorchFunctionMode):
    """Runs a module's forward. otherwise: place -> what to do instead of that operation; seen: collects operations."""

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
                op = Operation(index, name, self._line(), before, kwargs, _copied(result), child)
                op.nth = sum(
                    (e.name, e.child) == (name, child) and (op.line == e.line or child is not None) for e in self.seen
                )
                self.seen.append(op)
        finally:
            self._inside -= 1
        return result

    def call_of(self, path: str, inner: nn.Module) -> Callable[..., Any]:
        """The replacement for calling an inner module, its hooks included."""
        original = inner._call_impl

        def forward(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return original(*args, **kwargs)
            return self._do(type(inner).__name__, path, original, args, kwargs)

        return forward

    def _line(self) -> str:
        """The source line of the module's own forward that is running."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_locals.get("self") is self.module and frame.f_code.co_filename != __file__:
                name = frame.f_code.co_filename
                if "/torch/nn/modules/module.py" not in name:
                    return linecache.getline(name, frame.f_lineno).strip()[:100]
            frame = frame.f_back  # type: ignore[assignment]
        return ""


def edited(module: nn.Module, otherwise: Mapping[Place, Do]) -> None:
    """Have a module do some of its own operations otherwise, each time it runs; several calls of this add up."""
    edits = module.__dict__.get(EDITS)
    if edits is None:
        edits = module.__dict__[EDITS] = {}
        _install(module, lambda: Operations(module, edits))
    edits.update(otherwise)


def watched(module: nn.Module, seen: list[Operation]) -> None:
    """Have a module record its operations in `seen`, which holds those of its last run."""

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
