"""How to do one operation of a module's own forward otherwise: left out, swapped, moved, with another number or mask.

They are tried on containers whose children all pass, and on classes of the user's own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ....training.models.model_names import flat
from ..hypotheses import module_hypotheses
from .torch_formulas import ACTIVATIONS, LOOKALIKES, interleaved, padded_by_zeros, states_exchanged
from .torch_layers import Do, ModuleHypothesis, Mutation, Operation, Place, edited

OPERATION = "operation"
ADDS = {"add", "__add__", "__radd__", "add_", "__iadd__"}
SUBTRACTS = {"sub", "__sub__", "sub_", "__isub__", "subtract"}
BINARY = ADDS | SUBTRACTS | {"mul", "__mul__", "__rmul__", "mul_", "__imul__", "multiply"}
DIVIDES = {"div", "__truediv__", "div_", "__itruediv__", "true_divide"}
NAMED = {"relu", "relu_", "gelu", "silu", "relu6", "hardswish", "sigmoid", "tanh", "leaky_relu", "elu", "softplus"}
TURNS = {"transpose", "permute", "swapaxes", "movedim", "t"}
IN_PLACE = {"__iadd__", "__isub__", "__imul__", "__itruediv__", "add_", "mul_", "sub_", "div_", "relu_", "clamp_"}
MOST_PARTS = 6  # of a concatenation that are exchanged
PRESENT = 12  # how many earlier tensors are tried in place of an operand
SHAPED = {"flatten", "view", "reshape", "_unsafe_view"}
NORMS = {"LayerNorm", "BatchNorm1d", "BatchNorm2d", "GroupNorm", "RMSNorm", "InstanceNorm2d"}
RECURRENT = {"LSTM", "GRU", "RNN"}
JOINS = {"cat", "concat", "concatenate"}
SPLITS = {"chunk", "split", "unbind", "tensor_split", "split_with_sizes"}


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

    values: include ways that change the values; gradients: include ways that change the gradient alone.
    """
    if values:
        yield from _norms_moved(seen)
        yield from _together(seen)
    for i, op in enumerate(seen):
        if values:
            yield from _left_out(op)
            yield from _operands(op, seen[:i])
            yield from _moved(op, seen[i + 1 :])
            yield from _activations(op)
            yield from arranged(op)
            yield from _exchanged(op, seen[i + 1 :])
            yield from _arguments(op)
            yield from _numbers(op)
            yield from _directions(op)
            yield from _masks(op)
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
    handed = [(e, given) for e in known if (given := first_tensor(e.args)) is not None and not _made(given, known)]
    for i, operand in enumerate(op.args):
        for other in known:
            if same_shape(operand, other.result) and not torch.equal(operand, other.result):
                yield _other_operand(op, i, other)
        fit = next(((other, given) for other, given in handed if same_shape(operand, given)), None)
        if fit is not None and not torch.equal(operand, fit[1]):
            yield _other_operand(op, i, fit[0], its_input=True)


def _made(value: torch.Tensor, earlier: Sequence[Operation]) -> bool:
    """Whether a tensor is the result of one of these operations, and not an input of the module."""
    return any(same_shape(value, e.result) and torch.equal(value, e.result) for e in earlier)


def _other_operand(op: Operation, position: int, other: Operation, its_input: bool = False) -> ModuleHypothesis:
    """An operand is the result of an earlier operation, or its input, instead of the right one."""
    kept: dict[str, Any] = {}

    def remember(f: Any, *args: Any, **kwargs: Any) -> Any:
        given = first_tensor(args) if its_input else None
        before = None if given is None else given.clone()
        kept["value"] = f(*args, **kwargs)
        kept["copy"] = kept["value"].clone() if before is None else before  # as it was then
        return kept["value"]

    def use(f: Any, *args: Any, **kwargs: Any) -> Any:
        return f(*(kept["copy"] if i == position else a for i, a in enumerate(args)), **kwargs)

    operand = f"operand {position + 1}" if len(op.args) > 1 else "input"
    what = f"the {'input' if its_input else 'result'} of {other.text} for {operand} of {op.text}"
    return edit(what, {other.place: remember, op.place: use}, op.right)


def _moved(op: Operation, later: Sequence[Operation]) -> Iterator[ModuleHypothesis]:
    """An activation after an addition comes before it instead, on one of the operands; an activation too many."""
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
    """Another activation, or one that torch's module does not have."""
    if _is_activation(op):
        for name, function in ACTIVATIONS.items():
            fault = "gelu-approximate" if op.name.lower() == "gelu" and "tanh" in name else None
            yield otherwise(op, f"{name} for {op.text}", lambda f, x, *a, g=function, **k: g(x), fault)
    elif isinstance(op.result, torch.Tensor) and op.result.is_floating_point() and bool((op.result < 0).any()):
        yield otherwise(op, f"a ReLU after {op.text}", lambda f, *a, **k: F.relu(f(*a, **k)))


def _together(seen: Sequence[Operation]) -> Iterator[ModuleHypothesis]:
    """The same rearrangement in all operations of a kind, since heads are cut alike in queries, keys and values."""
    groups: dict[object, list[Operation]] = {}
    for op in seen:
        if op.name in SHAPED | TURNS and op.args and isinstance(op.result, torch.Tensor):
            groups.setdefault((op.name, getattr(op.args[0], "shape", None), op.result.shape), []).append(op)
    for ops in groups.values():
        ways = [[*arranged(op), *(_left_out(op) if op.name in TURNS else ())] for op in ops]
        for alike in zip(*ways, strict=False) if 1 < len(ops) <= MOST_PARTS else ():
            more = f", and the same in {len(ops) - 1} more like it"
            each = Mutation(f"{alike[0].text}{more}", partial(_all_of, alike), fix=alike[0].fix)
            yield each.hypothesis(alike[0].fault)


def _all_of(hypotheses: Sequence[ModuleHypothesis], module: nn.Module) -> None:
    for each in hypotheses:
        each.change.apply(module)


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


def _numbers(op: Operation) -> Iterator[ModuleHypothesis]:
    """Another number where one stands in the line: its square or its root, as a scale of d for one of sqrt(d); another
    diagonal of a mask; a mask that hides what it should show."""
    for i, number in numbers(op):
        for words, value in (("square", number**2), ("root", number**0.5)):
            yield with_number(op, i, value, f"the {words} of {number:.5g}, {value:.5g}, in {op.text}")
    if op.name in ("triu", "tril"):
        now = op.kwargs.get("diagonal", op.args[1] if len(op.args) > 1 else 0)
        for value in (now + 1, now - 1):
            do = lambda f, x, *a, v=value, **k: f(x, v)  # noqa: E731
            yield otherwise(op, f"diagonal={value} in {op.text}", do)
    if op.name in ("masked_fill", "masked_fill_", "where") and len(op.args) == 3:
        at = 0 if op.name == "where" else 1
        if isinstance(op.args[at], torch.Tensor) and op.args[at].dtype == torch.bool:
            do = lambda f, *a, at=at, **k: f(*(~x if j == at else x for j, x in enumerate(a)), **k)  # noqa: E731
            yield otherwise(op, f"the mask of {op.text} inverted", do)


def numbers(op: Operation) -> Iterator[tuple[int, float]]:
    """The positive numbers other than 1 that an operation adds, multiplies or divides by: which operand, and what."""
    for i, number in enumerate(op.args) if op.name in BINARY | DIVIDES and len(op.args) == 2 else ():
        value = number.item() if isinstance(number, torch.Tensor) and number.dim() == 0 else number
        if isinstance(value, float) and value > 0.0 and value != 1.0:
            yield i, value


def with_number(op: Operation, position: int, value: float, what: str) -> ModuleHypothesis:
    """An operation has another number as one of its operands."""
    do = lambda f, *a, **k: f(*(value if j == position else x for j, x in enumerate(a)), **k)  # noqa: E731
    return otherwise(op, what, do)


def _masks(op: Operation) -> Iterator[ModuleHypothesis]:
    """An operation's mask is off by one (each query sees one key more, or one less) or left out."""
    if op.name not in MASKED:
        return
    if op.name in LOGICAL and isinstance(op.result, torch.Tensor):
        for i, which in enumerate(("first", "second")[: len(op.args)]):
            text, shape = f"the {which} mask alone for {op.text}", op.result.shape
            yield otherwise(op, text, lambda f, *a, i=i, s=shape, **k: a[i].expand(s))
    given: list[tuple[int | str, Any]] = [*enumerate(op.args), *op.kwargs.items()]
    for at, mask in given:
        if not _is_mask(mask):
            continue
        for further, what in ((1, "next"), (-1, "one before")):
            text = f"a mask off by one (each row is that of the {what}) for {op.text}"
            yield otherwise(op, text, partial(_with_mask, at, partial(_moved_mask, further)))


LOGICAL = {"__and__", "__rand__", "__or__", "__ror__", "logical_and", "logical_or", "bitwise_and", "bitwise_or"}
MASKED = {*LOGICAL, *ADDS, "masked_fill", "masked_fill_", "where", "scaled_dot_product_attention"}
HIDDEN = -1e3  # a number below this, added to a score, hides it


def _is_mask(value: Any) -> bool:
    """Whether a tensor is a mask of queries and keys: of true and false, or of zeros and numbers that hide."""
    if (
        not isinstance(value, torch.Tensor)
        or value.dim() < 2
        or value.shape[-2] != value.shape[-1]
        or value.numel() < 4
    ):
        return False
    return value.dtype == torch.bool or bool(((value == 0) | (value < HIDDEN)).all() and (value < HIDDEN).any())


def _with_mask(at: int | str, change: Callable[[Any], Any], f: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(at, str):
        return f(*args, **{**kwargs, at: change(kwargs[at])})
    return f(*(change(x) if i == at else x for i, x in enumerate(args)), **kwargs)


def _moved_mask(further: int, mask: torch.Tensor) -> torch.Tensor:
    """Each row becomes the next one, and the last stays; or the one before, and the first hides everything."""
    if further > 0:
        return torch.cat([mask[..., 1:, :], mask[..., -1:, :]], -2)
    first = mask[..., :1, :1]
    hides = ~first if mask.dtype == torch.bool else torch.full_like(first, float(mask.min()))
    return torch.cat([hides.expand(mask[..., :1, :].shape), mask[..., :-1, :]], -2)


def _directions(op: Operation) -> Iterator[ModuleHypothesis]:
    """The two directions of a recurrent layer in the other order, and its steps."""
    if op.child is None or op.name not in RECURRENT or not isinstance(op.result, tuple):
        return
    if op.name == "LSTM" and len(op.args) == 1:
        what, fix = f"the two states of {op.text} exchanged at each step", "a cell's states are (hidden, cell)"
        yield edit(what, {op.place: lambda f, x, **k: states_exchanged(f.__self__, x)}, fix)
    for i in (0, 1):
        what = f"the steps of {op.text} from the last to the first (dimension {i})"
        yield otherwise(op, what, lambda f, x, *a, i=i, **k: f(x.flip(i), *a, **k))

    def exchanged(f: Any, *args: Any, **kwargs: Any) -> Any:
        output, *state = f(*args, **kwargs)
        forth, back = output.chunk(2, -1)
        return torch.cat([back, forth], -1), *state

    if isinstance(op.result[0], torch.Tensor) and op.result[0].shape[-1] % 2 == 0:  # and no packed sequence
        fix = f"the forward direction comes first, as in torch's `{op.line}`: ops.cat([forward, backward], -1)"
        yield edit(f"the two directions of {op.text} in the other order", {op.place: exchanged}, fix)


def _norms_moved(seen: Sequence[Operation]) -> Iterator[ModuleHypothesis]:
    """Norms after the addition of their branch instead of at its beginning (post-norm), or the other way round; one at
    a time, and all at once, since a block treats them alike; and each in the place of the next, since a user may have
    swapped their names."""
    for what, pairs in (
        ("after the addition that follows it (post-norm)", list(_before_a_branch(seen))),
        ("before the branch that it follows (pre-norm)", list(_after_a_branch(seen))),
    ):
        for chosen in dict.fromkeys((tuple(pairs), *((pair,) for pair in pairs))):
            for turn in range(min(len(chosen), 2)):
                moved = [seen[norm] for norm, _ in (*chosen[turn:], *chosen[:turn])]
                names = " and ".join(norm.text for norm in moved)
                each = f"each of {names}" if len(chosen) > 1 else names
                changes = [(seen[norm], seen[other], by) for (norm, other), by in zip(chosen, moved, strict=True)]
                lines = [f"`{line}`" for line in dict.fromkeys(norm.line for norm in moved) if line]
                fix = f"put {names} where torch has it{', as in ' if lines else ''}{' and '.join(lines)}"
                yield Mutation(f"{each} {what}", partial(_move, changes), fix=fix).hypothesis()


def _before_a_branch(seen: Sequence[Operation]) -> Iterator[tuple[int, int]]:
    """(norm, addition) where x + f(norm(x)) is computed."""
    for i, norm in enumerate(seen):
        if norm.child is not None and norm.name in NORMS and (x := first_tensor(norm.args)) is not None:
            adds = (j for j, e in enumerate(seen[i + 1 :], i + 1) if e.name in ADDS and _has(e, x))
            if (j := next(adds, None)) is not None:
                yield i, j


def _after_a_branch(seen: Sequence[Operation]) -> Iterator[tuple[int, int]]:
    """(norm, the branch's first operation) where norm(x + f(x)) is computed."""
    for i, norm in enumerate(seen):
        add = next((e for e in seen[:i] if norm.child is not None and norm.name in NORMS and _takes(norm, e)), None)
        if add is not None and add.name in ADDS:
            starts = (j for j, e in enumerate(seen[:i]) if e.child is not None and any(_has(e, x) for x in add.args))
            if (j := next(starts, None)) is not None:
                yield i, j


def _has(op: Operation, x: Any) -> bool:
    return isinstance(x, torch.Tensor) and any(same_shape(x, arg) and torch.equal(x, arg) for arg in op.args)


def _move(changes: Sequence[tuple[Operation, Operation, Operation]], module: nn.Module) -> None:
    otherwise: dict[Place, Do] = {}
    for norm, other, by in changes:
        inner = module.get_submodule(by.child or "")
        otherwise[norm.place] = lambda f, x, *a, **k: x
        if other.name in ADDS:
            otherwise[other.place] = lambda f, *a, n=inner, **k: n(f(*a, **k))
        else:
            otherwise[other.place] = lambda f, *a, n=inner, **k: f(*_normed(n, a), **k)
    edited(module, otherwise)


def _normed(norm: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with their first tensor replaced by its norm, wherever it occurs."""
    x, y = args[0], norm(args[0])
    return tuple(y if each is x else each for each in args)


def _gradient(op: Operation) -> Iterator[ModuleHypothesis]:
    """The same values, with a gradient that does not pass, or passes where torch stops it."""
    if op.name == "detach":
        yield otherwise(op, f"a gradient that passes {op.text}", lambda f, x, *a, **k: x, "detach")
    elif isinstance(op.result, torch.Tensor) and op.result.is_floating_point():
        if op.child is not None and op.args and isinstance(op.args[0], torch.Tensor):
            fix = f"take out the ops.stop_gradient before {op.text}: torch's gradient passes there"
            do = lambda f, x, *a, **k: f(x.detach(), *a, **k)  # noqa: E731
            yield edit(f"a stop_gradient before {op.text}", {op.place: do}, fix, "detach")
        # the fault's own fix is for the reverse: a gradient that torch stops
        fix = f"take out the ops.stop_gradient after {op.text}: torch's gradient passes there"
        what = f"a stop_gradient after {op.text}"
        yield edit(what, {op.place: lambda f, *a, **k: f(*a, **k).detach()}, fix, "detach")


def _arguments(op: Operation) -> Iterator[ModuleHypothesis]:
    """Other keyword arguments of functions with a known trap: the tables' hypotheses of the verb OPERATION."""
    if op.child is not None:
        return
    for row in module_hypotheses([OPERATION]):
        for change in row.values["set"] if op.name in row.values["functions"] else ():
            if all(op.kwargs.get(key, ...) != value for key, value in change.items()):
                what = f"{', '.join(f'{key}={value!r}' for key, value in change.items())} in {op.text}"
                yield otherwise(op, what, lambda f, *a, c=change, **k: _with(f, a, {**k, **c}), row.fault)


def otherwise(op: Operation, what: str, do: Do, fault: str | None = None) -> ModuleHypothesis:
    """One operation is done otherwise."""
    return edit(what, {op.place: do}, "" if fault else op.right, fault)


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
    """The right shape, with the elements in other places."""
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
        count = min(len(op.args[0]), MOST_PARTS)
        for i, j in itertools.combinations(range(count), 2) if count > 2 else ():
            what = f"parts {i + 1} and {j + 1} of {op.text} exchanged"
            yield otherwise(op, what, lambda f, xs, *a, i=i, j=j, **k: f(_exchange(xs, i, j), *a, **k))
    if op.name in SPLITS:
        yield otherwise(op, turned_round, lambda f, *a, **k: tuple(f(*a, **k))[::-1])
        for shift in range(1, len(op.result) if isinstance(op.result, tuple) else 1):

            def rotate(f: Any, *args: Any, shift: int = shift, **kwargs: Any) -> Any:
                parts = tuple(f(*args, **kwargs))
                return parts[shift:] + parts[:shift]

            yield otherwise(op, f"the parts of {op.text} rotated by {shift}", rotate)
    if op.name == "pad" and given is not None and len(op.args) > 1 and isinstance(op.args[1], (tuple, list)):
        yield from _padded(op, tuple(op.args[1]))
    if op.name == "repeat" and given is not None:
        what = f"repeat_interleave for {op.text}"
        yield otherwise(op, what, lambda f, x, *n, **k: interleaved(x, n), "repeat-vs-tile")
    for name, other in LOOKALIKES.get(op.name, {}).items() if op.child is None else ():
        yield otherwise(op, f"{name} for {op.text}", lambda f, *a, g=other, **k: g(*a, **k))
    if op.name == "max_pool2d" and given is not None:
        what = f"zeros for padding, by a Pad before {op.text}"
        yield otherwise(op, what, padded_by_zeros, "maxpool-zero-pad")
    if op.name in ("mean", "sum") and given is not None:
        dim = op.kwargs.get("dim", op.args[1] if len(op.args) > 1 else None)
        for at, which in ((0, "the first"), (-1, "the last")) if isinstance(dim, int) else ():

            def take(f: Any, x: Any, *args: Any, axis: int = dim, place: int = at, **kwargs: Any) -> Any:
                return x.select(axis, place).reshape(f(x, *args, **kwargs).shape)

            yield otherwise(op, f"{which} along dimension {dim} for {op.text}", take)
    if op.name == "__getitem__" and given is not None and isinstance(op.args[1], (int, tuple)):
        yield from _picked(op, given, op.args[1] if isinstance(op.args[1], tuple) else (op.args[1],))
    if op.name in ("__getitem__", "gather", "take_along_dim", "index_select") and given is not None:
        yield from _indexed(op, given)
    if op.name == "select" and given is not None and len(op.args) == 3:
        yield from _picked(op, given, (*[slice(None)] * (op.args[1] % given.dim()), op.args[2]))


def _padded(op: Operation, widths: tuple[int, ...]) -> Iterator[ModuleHypothesis]:
    """A padding, or with negative widths a crop, of other axes or at other sides."""
    pairs = [widths[i : i + 2] for i in range(0, len(widths), 2)]
    ways: dict[str, list[tuple[int, ...]]] = {
        f"the pairs of {op.text} in the other order": pairs[::-1],
        f"the two sides of {op.text} exchanged": [(end, start) for start, end in pairs],
        f"all of {op.text} at the end": [(0, start + end) for start, end in pairs],
        f"all of {op.text} at the beginning": [(start + end, 0) for start, end in pairs],
    }
    for what, other in ways.items():
        if other != pairs:
            numbers, fault = tuple(n for pair in other for n in pair), "nn-pad-order" if other == pairs[::-1] else None
            yield otherwise(op, what, lambda f, x, p, *a, n=numbers, **k: f(x, n, *a, **k), fault)


def _indexed(op: Operation, given: torch.Tensor) -> Iterator[ModuleHypothesis]:
    """Elements picked by a tensor of whole numbers, such as each sample's last step: those before or after them, the
    first or the last of all, or a mean."""
    by_name = op.name != "__getitem__"
    index = op.args[2:] if by_name else (op.args[1] if isinstance(op.args[1], tuple) else (op.args[1],))
    if not given.is_floating_point() or any(each is None or each is ... or each is True for each in index):
        return  # an index after one of these is for another dimension
    for i, at in enumerate(index):
        dim = op.args[1] if by_name else i
        if not isinstance(at, torch.Tensor) or at.is_floating_point() or at.dtype == torch.bool or not at.numel():
            continue
        if torch.equal(at.flatten(), torch.arange(at.numel())):
            continue  # it numbers the samples
        last = given.shape[dim] - 1
        others = {
            "the element before": (at - 1).clamp(0, last),
            "the element after": (at + 1).clamp(0, last),
            "the first element": torch.zeros_like(at),
            "the last element": torch.full_like(at, last),
        }
        for what, other in others.items():
            if torch.equal(other, at):
                continue
            fault = "lstm-seq-length" if what == "the last element" and dim == 1 and given.dim() == 3 else None
            if by_name:
                do = lambda f, x, d, _, o=other, **k: f(x, d, o, **k)  # noqa: E731
            else:
                do = lambda f, x, _, o=other, i=i, **k: f(x, (*index[:i], o, *index[i + 1 :]), **k)  # noqa: E731
            yield otherwise(op, f"{what} of dimension {dim} for {op.text}", do, fault)
        if isinstance(op.result, torch.Tensor) and given.mean(dim).shape == op.result.shape:
            yield otherwise(op, f"a mean over dimension {dim} for {op.text}", lambda f, x, *a, d=dim, **k: x.mean(d))


def _exchange(parts: Sequence[Any], i: int, j: int) -> list[Any]:
    found = list(parts)
    found[i], found[j] = found[j], found[i]
    return found


def _packed(op: Operation, shape: tuple[int, ...]) -> Iterator[ModuleHypothesis]:
    """Two dimensions of a new shape are in the other order: (heads, 3, d) for (3, heads, d)."""
    for i in range(1, len(shape)):
        for j in range(i + 1, len(shape)):
            if shape[i] == 1 or shape[j] == 1:
                continue
            read = list(shape)
            read[i], read[j] = read[j], read[i]
            packed = 3 in (shape[i], shape[j]) and len(shape) - op.args[0].dim() > 1  # queries, keys and values
            fault = "mha-packed-order" if packed else None
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
                # in a sequence (batch, step, channel), the last step of all instead of the sample's own last one
                padded = given.dim() == 3 and dim == 1 and other and at % given.shape[dim]
                what = f"element {other} for {op.text}"
                do = lambda f, x, *i, c=changed, **k: x[c]  # noqa: E731
                yield otherwise(op, what, do, "lstm-seq-length" if padded else None)
