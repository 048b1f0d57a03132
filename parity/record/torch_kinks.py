"""Take the other framework's side where rounding decides which way a ReLU or a max-pool falls.

A ReLU's gradient jumps at zero, and an input of 1e-8 may round to either side of it; a max-pool sends its gradient to
the largest element of a window, and two may be equal up to rounding. Either choice is right, but one such flip moves
every gradient before it by far more than rounding moves anything else: it puts torch's own float32 gradients of a
ResNet50 half a percent from its float64 ones (benchmarks/kinks.py). So the reference steps
are computed with the choices MindSpore made, at those elements only where the reference itself is undecided to within
TOLERANCE. The reference's values move by less than rounding does, and its gradients become comparable at rounding's
own size.

A module takes the choices that were recorded under its name. A function has no name, and the other framework may write
it otherwise (a clamp at zero for a ReLU, a maximum for a LeakyReLU), in another order or as a module: it takes, among
the choices recorded in its module, around it and inside it, those that equal its own except at undecided elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from ..trace import SIDES_STAGE, Part, Trace
from .kinks import EVENLY, KINKS, POOLED, Choice, Top, function_name, is_function, packed

# Share of the tensor's root mean square below which a choice is rounding's. Rounding was measured at 1e-6 to 1e-5 of
# it in ResNets of all depths; what differs by more than this is left alone, and shows in the forward stage.
TOLERANCE = 1e-3
HALF_TOLERANCE = 0.05  # where MindSpore's side was computed in half precision, whose rounding is 8192 times larger
TINY = 1e-30
MISTAKEN = 0.01  # the share of elements in which recorded choices may differ by more and still be the function's

Kinks = tuple[float, ...]


def _above(x: torch.Tensor, kink: float) -> torch.Tensor:
    return x >= kink if isinstance(kink, Top) else x > kink


def _at(*kinks: float) -> Callable[..., Kinks]:
    return lambda *_, **__: kinks


def _between(x: Any, low: Any = None, high: Any = None, *_: Any, **named: Any) -> Kinks:
    """The bounds of a clamp that are numbers; a bound may also be a tensor."""
    low, high = named.get("min", low), named.get("max", high)
    ends = ((float, low), (Top, high))
    return tuple(kind(bound) for kind, bound in ends if isinstance(bound, (int, float)))


def _hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0, *_: Any, **__: Any) -> Kinks:
    return float(min_val), Top(max_val)


# function -> the inputs at which its gradient jumps, from the arguments of a call
POINTWISE: dict[Any, Callable[..., Kinks]] = {
    **dict.fromkeys((F.relu, torch.relu, torch.Tensor.relu, F.relu_, torch.relu_, torch.Tensor.relu_), _at(0.0)),
    **dict.fromkeys((F.leaky_relu, torch.prelu, F.selu, torch.selu, torch.abs, torch.Tensor.abs), _at(0.0)),
    F.relu6: _at(*KINKS["ReLU6"]),
    F.hardswish: _at(*KINKS["Hardswish"]),
    F.hardsigmoid: _at(*KINKS["Hardsigmoid"]),
    F.hardtanh: _hardtanh,
    **dict.fromkeys((torch.clamp, torch.Tensor.clamp, torch.clip, torch.Tensor.clip), _between),
    **dict.fromkeys((torch.clamp_, torch.Tensor.clamp_, torch.Tensor.clip_), _between),
    **dict.fromkeys((torch.clamp_min, torch.Tensor.clamp_min), _between),
    **dict.fromkeys((torch.clamp_max, torch.Tensor.clamp_max), lambda x, max=None: _between(x, max=max)),
}
# function -> the same with the indices of the elements taken, within the last axes, flattened; the number of those axes
POOLS: dict[Any, tuple[Callable[..., Any], int]] = {
    function: (with_indices, axes)
    for axes, plain, with_indices in (
        (1, F.max_pool1d, F.max_pool1d_with_indices),
        (2, F.max_pool2d, F.max_pool2d_with_indices),
        (3, F.max_pool3d, F.max_pool3d_with_indices),
        (1, F.adaptive_max_pool1d, F.adaptive_max_pool1d_with_indices),
        (2, F.adaptive_max_pool2d, F.adaptive_max_pool2d_with_indices),
        (3, F.adaptive_max_pool3d, F.adaptive_max_pool3d_with_indices),
    )
    for function in (plain, with_indices)
}
# function -> whether the largest is taken, and not the smallest
REDUCTIONS = {
    **dict.fromkeys((torch.max, torch.Tensor.max, torch.amax, torch.Tensor.amax), True),
    **dict.fromkeys((torch.min, torch.Tensor.min, torch.amin, torch.Tensor.amin), False),
}
OF_TWO = {
    **dict.fromkeys((torch.max, torch.Tensor.max, torch.maximum, torch.Tensor.maximum), True),
    **dict.fromkeys((torch.min, torch.Tensor.min, torch.minimum, torch.Tensor.minimum), False),
}


@dataclass(frozen=True)
class _Side:
    """Which elements another run had above a kink, and which exactly at it."""

    above: torch.Tensor
    at: torch.Tensor

    def turned(self) -> _Side:
        """The same for the two tensors in the other order."""
        return _Side(~self.above & ~self.at, self.at)

    def flipped(self, above: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """Where a run with these elements above and at the kink is on the other side; not where both are at it."""
        return (self.above != above) & ~(self.at & at)


@dataclass
class KinkSides:
    """The choices that another framework made in one step, by (module name, call): a ReLU's sides as packed bits, the
    input of a max-pool or of a maximum over an axis, from which its choice follows.

    matched and differing count the elements that were moved to the other side, and those that differ by more than
    rounding.
    """

    choices: dict[tuple[str, int], np.ndarray]
    tolerance: float = TOLERANCE
    matched: int = 0
    differing: int = 0
    _calls: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace, part: Part, half: bool = False) -> KinkSides:
        """The choices recorded as one part of a trace: of a step, or of a call of a module that ran alone; `half`: in
        half precision."""
        entries = trace.select(SIDES_STAGE, part)
        choices = {(e.name, e.call): trace.array(e.key).reshape(e.shape) for e in entries}
        return cls(choices, HALF_TOLERANCE if half else TOLERANCE)

    def relu_input(
        self, name: str, values: torch.Tensor, kinks: Kinks = KINKS["ReLU"], slope: float | None = None
    ) -> torch.Tensor | None:
        """The input `values` of a ReLU, or of another layer with `kinks`, with its undecided elements on the other
        run's side, or None if nothing moves. slope: of a LeakyReLU, for which the other run may have been at zero
        itself."""
        recorded, x = self._next(name), values.detach()
        if recorded is None or recorded.kinks(x.numel()) != len(kinks):
            return None
        if slope is not None:
            return self._leaky(_sides(recorded, values)[0], values, slope)
        moved = None
        for number, kink in enumerate(kinks):
            above = _above(x, kink)
            positions = recorded.others(number, _array(above))
            if positions.size:
                was_at = torch.from_numpy(recorded.was_at(number, x.numel(), positions)).to(x.device)
                places = tuple(torch.from_numpy(axis).to(x.device) for axis in np.unravel_index(positions, x.shape))
                flipped = ~(was_at & (x[places] == kink))
                places = tuple(axis[flipped] for axis in places)
                moved = self._moved_at(places, ~above[places], values, kink, moved)
        return moved

    def pool_output(
        self, name: str, pool: nn.Module, values: torch.Tensor, output: torch.Tensor
    ) -> torch.Tensor | None:
        """The max-pool's output taken from the elements that the other run found largest, or None if none differs."""
        recorded = self._next(name)
        if recorded is None or recorded.kept.shape != tuple(values.shape):
            return None
        arguments = (pool.kernel_size, pool.stride, pool.padding, pool.dilation, pool.ceil_mode)
        return self._pooled(recorded, values, output, lambda x: F.max_pool2d_with_indices(x, *arguments)[1], 2)

    def function_input(self, path: str, values: torch.Tensor, kinks: Kinks) -> torch.Tensor | None:
        """Like `relu_input`, for a function that is called in the module at `path`."""
        moved, x = None, values.detach()
        for kink in kinks:
            found = self._side(path, x, x - kink, _above(x, kink), kink)
            if found is not None:
                moved = self._moved(found, values, kink, moved)
        return moved

    def larger(self, path: str, one: torch.Tensor, other: torch.Tensor, output: torch.Tensor) -> torch.Tensor | None:
        """The larger (or smaller) of two tensors' elements, `output`, from the one that the other run took it from."""
        first, second = torch.broadcast_tensors(one, other)
        a, b = first.detach(), second.detach()
        gap, above, largest = a - b, a > b, bool((output.detach() >= a).all())
        found = self._side(path, a, gap, above)
        if found is None:
            return None
        undecided = self._undecided(found.flipped(above, gap == 0), gap.abs(), a)
        taken = torch.where(found.above == largest, first, second)
        return None if undecided is None else torch.where(undecided, taken, output)

    def function_pool(
        self, path: str, values: torch.Tensor, output: torch.Tensor, indices: Callable[[torch.Tensor], Any], axes: int
    ) -> torch.Tensor | None:
        """Like `pool_output`, for a function that pools the last `axes` of `values` in the module at `path`; indices:
        the elements that it takes from an input."""
        sources = self._sources(path, values.numel())
        if not sources:
            return None
        ours = indices(values.detach())

        def clear(kept: Choice) -> int:
            return self._clear(*_flips(values, output, ours, indices(_as(kept.kept, values)), axes), values)

        found = self._own(sources, clear, output.numel())
        return None if found is None else self._pooled(found, values, output, indices, axes)

    def reduced(
        self, path: str, values: torch.Tensor, output: torch.Tensor, axes: tuple[int, ...], largest: bool, evenly: bool
    ) -> torch.Tensor | None:
        """The largest (or smallest) elements along `axes` (`output`, with the axes kept), taken from the elements that
        the other run took; evenly: whether equal ones share the gradient."""
        sources = self._sources(path, values.numel())
        if not sources:
            return None
        x = values.detach()
        ours = _shares(x, axes, largest, evenly)

        def flips(kept: Choice) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            even = len(axes) > 1 or EVENLY in kept.name.rpartition(".")[2]
            theirs = _shares(_as(kept.kept, x), axes, largest, even)
            gap = (output.detach() - _shared(x, theirs, axes)).abs()
            return (theirs != ours).any(dim=axes, keepdim=True), gap, theirs

        found = self._own(sources, lambda kept: self._clear(*flips(kept)[:2], x), output.numel())
        if found is None:
            return None
        flipped, gap, theirs = flips(found)
        undecided = self._undecided(flipped, gap, x)
        return None if undecided is None else torch.where(undecided, _shared(values, theirs, axes), output)

    def _leaky(self, side: _Side, values: torch.Tensor, slope: float) -> torch.Tensor | None:
        """Like relu_input. MindSpore's LeakyReLU is the larger of x and slope · x, so at zero it took half of both
        gradients. Above zero a LeakyReLU hands on the whole gradient, so its input there hands on only that share."""
        x = values.detach()
        halfway = side.at & (x != 0)
        moved = self._moved(_Side(torch.where(side.at, x > 0, side.above), side.at), values, 0.0, None)
        undecided = self._undecided(halfway, x.abs(), x)
        if undecided is None:
            return moved
        tiny = _next_to(0.0, x.dtype)[0].to(x.device)
        share = tiny + (values - x) * ((1.0 + slope) / 2.0)
        return torch.where(undecided, share, values if moved is None else moved)

    def _moved(self, side: _Side, values: torch.Tensor, kink: float, moved: torch.Tensor | None) -> torch.Tensor | None:
        """`moved`, None for `values`, with the undecided elements next to a kink on the side where the other run had
        them."""
        x = values.detach()
        places = side.flipped(_above(x, kink), x == kink).nonzero(as_tuple=True)
        return self._moved_at(places, side.above[places], values, kink, moved)

    def _moved_at(
        self,
        places: tuple[torch.Tensor, ...],
        above: torch.Tensor,
        values: torch.Tensor,
        kink: float,
        moved: torch.Tensor | None,
    ) -> torch.Tensor | None:
        """Like `_moved`, for the elements at these places; above: whether each was above the kink."""
        x = values.detach()
        undecided = self._explained((x[places] - kink).abs(), x)
        if undecided is None:
            return moved
        places = tuple(axis[undecided] for axis in places)
        sides = (near.to(x.device) for near in _next_to(kink, x.dtype))
        source = values if moved is None else moved
        near = torch.where(above[undecided], *sides)
        return _Valued.apply(source, source.detach().clone().index_put_(places, near))

    def _pooled(
        self,
        recorded: Choice,
        values: torch.Tensor,
        output: torch.Tensor,
        indices: Callable[[torch.Tensor], Any],
        axes: int,
    ) -> torch.Tensor | None:
        ours, theirs = indices(values.detach()), indices(_as(recorded.kept, values))
        undecided = self._undecided(*_flips(values, output, ours, theirs, axes), values.detach())
        if undecided is None:
            return None
        return _gathered(values, torch.where(undecided, theirs, ours), axes)

    def has(self, name: str) -> bool:
        """Whether choices of this module were recorded."""
        return name in self.names

    @cached_property
    def names(self) -> set[str]:
        """The names that choices were recorded under."""
        return {name for name, _ in self.choices}

    @cached_property
    def functions(self) -> list[Choice]:
        """The choices of functions, in the order in which they were recorded."""
        return [Choice(name, call, kept) for (name, call), kept in self.choices.items() if is_function(name)]

    @property
    def has_functions(self) -> bool:
        """Whether choices of functions were recorded."""
        return bool(self.functions)

    def _near(self, path: str) -> Iterator[Choice]:
        """The choices of functions that were called in the module at `path`, then around it, then inside of it: the
        other framework may have other modules."""
        at = [(one.name.rpartition(".")[0], one) for one in self.functions]
        around = path
        while True:
            yield from (one for where, one in at if where == around)
            if not around:
                break
            around = around.rpartition(".")[0]
        yield from (one for where, one in at if where != path and where.startswith(f"{path}." if path else ""))

    def _side(self, path: str, x: Any, gap: torch.Tensor, above: torch.Tensor, kink: float = 0.0) -> _Side | None:
        """The recorded sides that fit a call, whose distances from a kink are `gap`; or their reverse: a maximum may
        have its two tensors in either order. An abs has its kink at 0 alone, and all of a norm's values above it."""
        near = (one for one in self._near(path) if kink == 0 or not one.name.endswith("abs()"))
        recorded = (side for one in near for side in _sides(one, x))
        both = (each for side in recorded for each in (side, side.turned()))

        def clear(side: _Side) -> int:
            return self._clear(side.flipped(above, gap == 0) | side.at, gap.abs(), x)

        return self._own(both, clear, x.numel())

    def _sources(self, path: str, count: int) -> list[Choice]:
        """The inputs, of `count` elements, that functions near `path` took the largest of."""
        return [one for one in self._near(path) if one.kept.dtype != np.uint8 and one.kept.size == count]

    @staticmethod
    def _own(candidates: Iterable[Any], clear: Callable[[Any], int], most: int) -> Any:
        """The first of the candidates that differs from a call at undecided elements only, else the one that differs
        least, in at most a share MISTAKEN of `most` elements; None without one."""
        best, least = None, MISTAKEN * most
        for one in candidates:
            differing = clear(one)
            if differing <= least and (best is None or differing < least):
                best, least = one, differing
            if not differing:
                break
        return best

    def _next(self, name: str) -> Choice | None:
        call = self._calls.get(name, 0)
        self._calls[name] = call + 1
        kept = self.choices.get((name, call))
        return None if kept is None else Choice(name, call, kept)

    def _clear(self, flipped: torch.Tensor, gap: torch.Tensor, scale: torch.Tensor) -> int:
        """How many flipped elements differ by more than rounding explains."""
        gaps = gap[flipped]
        return int((~(gaps <= self._within(scale))).sum()) if gaps.numel() else 0

    def _within(self, scale: torch.Tensor) -> torch.Tensor:
        wide = scale.float() if scale.dtype == torch.float16 else scale  # where squares cannot overflow
        size = torch.linalg.vector_norm(wide) / wide.numel() ** 0.5
        return self.tolerance * (size if bool(size.isfinite()) else wide[wide.isfinite()].square().mean().sqrt())

    def _explained(self, gaps: torch.Tensor, scale: torch.Tensor) -> torch.Tensor | None:
        """Which gaps at flipped elements rounding explains, or None when it explains none; adds to both counts."""
        if not gaps.numel():
            return None
        undecided = gaps <= self._within(scale)
        moved = int(undecided.sum())
        self.matched += moved
        self.differing += gaps.numel() - moved
        return undecided if moved else None

    def _undecided(self, flipped: torch.Tensor, gap: torch.Tensor, scale: torch.Tensor) -> torch.Tensor | None:
        """The flipped elements whose gap rounding explains, or None when there are none; adds to both counts."""
        explained = self._explained(gap[flipped], scale)
        return None if explained is None else torch.zeros_like(flipped).masked_scatter_(flipped, explained)


class _Valued(torch.autograd.Function):
    """Returns `plain`, but hands the gradient on to `values`, unchanged.

    So a function's output stays the same where its input is moved: `clamp(x, 0, 15).long()` was 14 instead of 15.
    """

    @staticmethod
    def forward(values: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
        return plain.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is kept."""

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return gradient, None


class OwnSides(KinkSides):
    """Keeps a model's own choices in `choices`, for another run to take; moves nothing."""

    has_functions = True

    def __init__(self) -> None:
        super().__init__({})

    def has(self, name: str) -> bool:
        """True: every module's choices are kept."""
        return True

    def relu_input(self, name: str, values: torch.Tensor, kinks: Kinks = KINKS["ReLU"], slope: Any = None) -> None:
        """Which elements are above each kink."""
        self._keep(name, _packed(*(_above(values, kink) for kink in kinks)))

    def pool_output(self, name: str, pool: nn.Module, values: torch.Tensor, output: torch.Tensor) -> None:
        """The input, from which the choice follows."""
        self._keep(name, _array(values))

    def function_input(self, path: str, values: torch.Tensor, kinks: Kinks) -> None:
        """Like a ReLU's, for a function, which has no name."""
        if kinks:
            self._keep(function_name(path, "pointwise"), _packed(*(_above(values, kink) for kink in kinks)))

    def larger(self, path: str, one: torch.Tensor, other: torch.Tensor, output: torch.Tensor) -> None:
        """Which elements of the first are above the second's."""
        self._keep(function_name(path, "maximum"), _packed(torch.gt(*torch.broadcast_tensors(one, other))))

    def function_pool(self, path: str, values: torch.Tensor, *_: Any) -> None:
        """Like a max-pool's."""
        self._keep(function_name(path, "maxpool"), _array(values))

    def reduced(self, path: str, values: torch.Tensor, *how: Any) -> None:
        """The same for a maximum along axes; the last of `how` says whether equal ones share the gradient."""
        self._keep(function_name(path, f"max{EVENLY}" if how[-1] else "max"), _array(values))

    def _keep(self, name: str, made: np.ndarray) -> None:
        call = self._calls.get(name, 0)
        self._calls[name] = call + 1
        self.choices[name, call] = made


def _packed(*above: torch.Tensor) -> np.ndarray:
    sides = [_array(each) for each in above]
    return packed(sides, [np.zeros_like(each) for each in sides])  # at a kink itself both runs of torch do the same


def _array(values: torch.Tensor) -> np.ndarray:
    found: np.ndarray = values.detach().cpu().contiguous().numpy()
    return found


def _sides(choice: Choice, like: torch.Tensor) -> list[_Side]:
    """The sides of the elements of `like`, one for each of the call's kinks; empty if the call had another number."""
    return [_Side(_as(above, like), _as(at, like)) for above, at in choice.sides(like.numel())]


def _as(kept: np.ndarray, like: torch.Tensor) -> torch.Tensor:
    """A recorded choice in the shape and on the device of a tensor, and, unless it is sides, in its dtype."""
    tensor = torch.from_numpy(kept).reshape(like.shape)
    return tensor.to(like.device) if kept.dtype == bool else tensor.to(like)


def _flips(
    values: torch.Tensor, output: torch.Tensor, ours: torch.Tensor, theirs: torch.Tensor, axes: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Where a pool took other elements than the other run, and by how much the other run's are smaller."""
    return theirs != ours, output.detach() - _gathered(values.detach(), theirs, axes)


def _gathered(values: torch.Tensor, indices: torch.Tensor, axes: int) -> torch.Tensor:
    return values.flatten(-axes).gather(-1, indices.flatten(-axes)).view_as(indices)


def _shares(x: torch.Tensor, axes: tuple[int, ...], largest: bool, evenly: bool) -> torch.Tensor:
    """The share of each element in the gradient of the largest (or smallest) along axes."""
    x = x if largest else -x
    if evenly:
        top = x == x.amax(axes, keepdim=True)
        return top / top.sum(axes, keepdim=True)
    return torch.zeros_like(x).scatter_(axes[0], x.max(axes[0], keepdim=True)[1], 1.0)


def _shared(values: torch.Tensor, shares: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    return torch.where(shares > 0, values * shares, torch.zeros_like(values)).sum(axes, keepdim=True)


def _next_to(kink: float, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """The nearest numbers above and below a kink; next to zero, the smallest that are not flushed to zero."""
    if kink == 0:
        tiny = torch.tensor(max(TINY, torch.finfo(dtype).smallest_normal), dtype=dtype)
        return tiny, -tiny
    place, far = torch.tensor(kink, dtype=dtype), torch.tensor(torch.inf, dtype=dtype)
    return torch.nextafter(place, far), torch.nextafter(place, -far)


@contextmanager
def taking(sides: KinkSides, model: nn.Module) -> Iterator[None]:
    """Within this block the model's ReLUs and max-pools choose as `sides` say where rounding decides."""

    def before_relu(name: str, kinks: tuple[float, ...]) -> object:
        def hook(relu: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
            moved = sides.relu_input(name, inputs[0], kinks, getattr(relu, "negative_slope", None))
            return None if moved is None else (moved, *inputs[1:])

        return hook

    def after_pool(name: str) -> object:
        def hook(pool: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor | None:
            return sides.pool_output(name, pool, inputs[0], output)

        return hook

    functions = _Functions(sides)
    with ExitStack() as undo:
        for name, module in model.named_modules():
            kind = type(module).__name__
            own = kind in (*KINKS, *POOLED) and sides.has(name)
            if own and kind in KINKS:
                undo.callback(module.register_forward_pre_hook(before_relu(name, KINKS[kind])).remove)
            elif own:
                undo.callback(module.register_forward_hook(after_pool(name)).remove)
            if sides.has_functions:
                undo.callback(module.register_forward_pre_hook(functions.entering(None if own else name)).remove)
                undo.callback(module.register_forward_hook(functions.leaving, always_call=True).remove)
        if sides.has_functions:
            undo.enter_context(functions)
        yield


class _Functions(TorchFunctionMode):
    """Moves the inputs of functions with kinks, or their outputs."""

    def __init__(self, sides: KinkSides) -> None:
        super().__init__()
        self.sides = sides
        self.inside: list[str | None] = [""]  # the innermost module; None: a layer that has a hook of its own

    def entering(self, path: str | None) -> Any:
        """The hook for a module that begins."""

        def hook(*_: Any) -> None:
            self.inside.append(path)

        return hook

    def leaving(self, *_: Any) -> None:
        """The hook for a module that has ended."""
        self.inside.pop()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named, path = kwargs or {}, self.inside[-1]
        if path is None or not _is_real(args[0] if args else named.get("input")):
            return func(*args, **named)
        # a choice only affects gradients, and rounding to whole numbers would show how little an input was moved
        if not any(isinstance(each, torch.Tensor) and each.requires_grad for each in (*args, *named.values())):
            return func(*args, **named)
        if func in POINTWISE:
            return self._pointwise(path, func, args, named)
        output = func(*args, **named)
        if func in POOLS:
            return self._pool(path, func, args, named, output)
        if func in OF_TWO and _is_real(other := (args[1] if len(args) > 1 else named.get("other"))):
            taken = self.sides.larger(path, args[0], other, output)
            return output if taken is None else taken
        return self._reduction(path, func, args, named, output) if func in REDUCTIONS else output

    def _pointwise(self, path: str, func: Any, args: Any, named: Any) -> Any:
        x, *rest = args or (named["input"],)
        named = {name: value for name, value in named.items() if name != "input"}
        moved = self.sides.function_input(path, x, POINTWISE[func](x, *rest, **named))
        if moved is None:
            return func(x, *rest, **named)
        plain = func(x.detach().clone(), *rest, **named)
        output = func(moved, *rest, **named)
        kept = _Valued.apply(output, plain)
        return x.copy_(kept) if output is moved else kept  # in place: whoever has x has to see it

    def _pool(self, path: str, func: Any, args: Any, named: Any, output: Any) -> Any:
        x, *rest = args or (named["input"],)
        named = {n: value for n, value in named.items() if n not in ("input", "return_indices")}
        with_indices, axes = POOLS[func]
        found = output[0] if isinstance(output, tuple) else output
        taken = self.sides.function_pool(path, x, found, lambda source: with_indices(source, *rest, **named)[1], axes)
        if taken is None:
            return output
        return (taken, *output[1:]) if isinstance(output, tuple) else taken

    def _reduction(self, path: str, func: Any, args: Any, named: Any, output: Any) -> Any:
        x, *rest = args or (named["input"],)
        axis = named.get("dim", named.get("axis", rest[0] if rest else ()))
        axes = tuple(a % x.ndim for a in ((axis,) if isinstance(axis, int) else axis)) or tuple(range(x.ndim))
        first = isinstance(output, tuple)  # values and indices: the first of equal ones, and not all of them
        values = output[0] if first else output
        kept = values.reshape([1 if i in axes else size for i, size in enumerate(x.shape)])
        taken = self.sides.reduced(path, x, kept, axes, REDUCTIONS[func], not first)
        if taken is None:
            return output
        taken = taken.reshape(values.shape)
        return type(output)((taken, output[1])) if first else taken


def _is_real(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.is_floating_point() and x.ndim > 0
