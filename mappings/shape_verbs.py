"""The shape verbs: how the shape of a state tensor changes on its way to MindSpore; the bytes never do.

Apart from the other verbs, so that a checkpoint's conversion imports nothing else of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..errors import Unsupported
from .user_verbs import Loaded, Verbs

Shape = tuple[int, ...]


class ShapeVerb(NamedTuple):
    """`forward(torch shape) -> MindSpore shape` and its inverse."""

    description: str
    forward: Callable[[Shape], Shape]
    inverse: Callable[[Shape], Shape]


def _expand(shape: Shape) -> Shape:
    return (*shape[:-1], 1, *shape[-1:])


def _squeeze(shape: Shape) -> Shape:
    if len(shape) < 2 or shape[-2] != 1:
        raise ValueError(f"the shape {shape} has no dimension of 1 before its last one")
    return (*shape[:-2], *shape[-1:])


def _loaded(verb: Loaded) -> ShapeVerb:
    """A shape verb of another distribution, checked at every use: the elements stay as many."""

    def checked(function: Callable[[Shape], Shape]) -> Callable[[Shape], Shape]:
        def call(shape: Shape) -> Shape:
            try:
                made = tuple(function(shape))
            except ValueError as error:
                raise Unsupported(f"{verb.description}: {error}") from None
            if math.prod(made) != math.prod(shape):
                raise Unsupported(
                    f"{verb.description}: the shape {shape} became {made}, which has another number of elements"
                )
            return made

        return call

    return ShapeVerb(verb.description, checked(verb.forward), checked(verb.inverse))


SHAPES: Verbs[ShapeVerb] = Verbs(
    {
        # A one-dimensional convolution is computed as a two-dimensional one of height 1.
        "expand_dims": ShapeVerb("(..., k) becomes (..., 1, k)", _expand, _squeeze),
        "shared": ShapeVerb("one for the whole optimizer", lambda shape: shape, lambda shape: shape),
    },
    _loaded,
)
