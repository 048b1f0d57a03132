"""Hypotheses on operations that move elements: shapes agree, and the elements stand elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from .torch_module_verbs import Trial
from .torch_operations import Do, Operation, edited, first_tensor

SHAPED = {"flatten", "view", "reshape", "_unsafe_view"}
JOINS = {"cat", "concat", "concatenate"}
SPLITS = {"chunk", "split", "unbind", "tensor_split", "split_with_sizes"}


def otherwise(op: Operation, what: str, do: Do) -> Trial:
    """The trial that does one operation otherwise."""
    return Trial(what, lambda m: edited(m, {op.place: do}), fix=f"write {op.said} as torch does")


def turned(op: Operation, rank: int) -> Iterator[tuple[Trial, str | None]]:
    """Two dimensions more exchanged."""
    for i in range(rank):
        for j in range(i + 1, rank):
            what = f"dimensions {i} and {j} exchanged after {op.said}"
            yield otherwise(op, what, lambda f, *a, i=i, j=j, **k: f(*a, **k).transpose(i, j)), None


def arranged(op: Operation) -> Iterator[tuple[Trial, str | None]]:
    """Shapes that agree and elements that stand elsewhere."""
    given = first_tensor(op.args)
    turned_round = f"the parts of {op.said} in the other order"
    if op.name in SHAPED and given is not None and given.dim() >= 3:
        last = f"{op.said} with the channels last"
        yield otherwise(op, last, lambda f, x, *a, **k: f(x.movedim(1, -1), *a, **k)), None
        exchanged = f"{op.said} with the last two dimensions exchanged"
        yield otherwise(op, exchanged, lambda f, x, *a, **k: f(x.transpose(-1, -2), *a, **k)), None
    if op.name in SHAPED and isinstance(op.result, torch.Tensor) and op.result.dim() > 2:
        yield from _packed(op, tuple(op.result.shape))
    if op.name in JOINS and isinstance(op.args[0], (list, tuple)):
        yield otherwise(op, turned_round, lambda f, xs, *a, **k: f(list(xs)[::-1], *a, **k)), None
    if op.name in SPLITS:
        yield otherwise(op, turned_round, lambda f, *a, **k: tuple(f(*a, **k))[::-1]), None
        for shift in range(1, len(op.result) if isinstance(op.result, tuple) else 1):

            def rotate(f: Any, *args: Any, shift: int = shift, **kwargs: Any) -> Any:
                parts = tuple(f(*args, **kwargs))
                return parts[shift:] + parts[:shift]

            yield otherwise(op, f"the parts of {op.said} rotated by {shift}", rotate), None
    if op.name == "pad" and given is not None and len(op.args) > 1 and len(op.args[1]) >= 4:
        what = f"the pairs of {op.said} in the other order"
        pairs = [tuple(op.args[1][i : i + 2]) for i in range(0, len(op.args[1]), 2)]
        swapped = tuple(number for pair in reversed(pairs) for number in pair)
        yield otherwise(op, what, lambda f, x, p, *a, n=swapped, **k: f(x, n, *a, **k)), "nn-pad-order"
    if op.name == "repeat" and given is not None:
        yield (
            otherwise(op, f"repeat_interleave for {op.said}", lambda f, x, *n, **k: _interleaved(x, n)),
            "repeat-vs-tile",
        )
    if op.name in ("mean", "sum") and given is not None:
        other = torch.sum if op.name == "mean" else torch.mean
        yield otherwise(op, f"a {other.__name__} for {op.said}", lambda f, *a, g=other, **k: g(*a, **k)), None
    if op.name == "__getitem__" and given is not None and isinstance(op.args[1], tuple):
        yield from _picked(op, given)


def _packed(op: Operation, shape: tuple[int, ...]) -> Iterator[tuple[Trial, str | None]]:
    """Two dimensions of a new shape are read in the other order: (heads, 3, d) for (3, heads, d)."""
    for i in range(1, len(shape)):
        for j in range(i + 1, len(shape)):
            if shape[i] == 1 or shape[j] == 1:
                continue
            read = list(shape)
            read[i], read[j] = read[j], read[i]
            fault = "mha-packed-order" if 3 in (shape[i], shape[j]) else None
            what = f"{op.said} into {tuple(read)}, dimensions {i} and {j} in the other order"
            do = lambda f, x, *a, r=read, i=i, j=j, **k: x.reshape(r).transpose(i, j)  # noqa: E731
            yield otherwise(op, what, do), fault


def _picked(op: Operation, given: torch.Tensor) -> Iterator[tuple[Trial, str | None]]:
    """One element along a dimension: the class token, or the last time step."""
    index = op.args[1]
    for dim, at in enumerate(index):
        if isinstance(at, int):
            yield otherwise(op, f"a mean for {op.said}", lambda f, x, i, dim=dim, **k: x.mean(dim)), None
            for other in {0, given.shape[dim] - 1} - {at % given.shape[dim]}:
                changed = (*index[:dim], other, *index[dim + 1 :])
                # of a sequence (batch, step, channel), the last step of all instead of the sample's own last one
                padded = given.dim() == 3 and dim == 1 and other and at % given.shape[dim]
                what = f"element {other} for {op.said}"
                do = lambda f, x, i, c=changed, **k: f(x, c)  # noqa: E731
                yield otherwise(op, what, do), "lstm-seq-length" if padded else None


def _interleaved(x: torch.Tensor, counts: tuple[Any, ...]) -> torch.Tensor:
    flat = counts[0] if len(counts) == 1 and not isinstance(counts[0], int) else counts
    for dim, count in enumerate(flat[-x.dim() :]):
        x = x.repeat_interleave(int(count), dim)
    return x
