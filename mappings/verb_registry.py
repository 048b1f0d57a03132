"""The registry of verbs that a row may name, with those that other distributions bring; and the shape verbs.

Another distribution brings a verb by an entry point of the group `msmigrate.verbs`: name -> an object that has
`forward` and `inverse`, as those in verbs.py (arguments) and those below (shapes of state) have, and may have their
`symbolic` and `description`. It is looked for when a row names a verb that is not built in, and loaded when that verb
is first needed.

A shape verb says how the shape of a state tensor changes on its way to MindSpore; the bytes never do. The verbs of
arguments are in another file, so that converting a checkpoint does not import them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import BadInput, Unsupported

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "msmigrate.verbs"
T = TypeVar("T")


class Loaded(NamedTuple):
    """What an entry point brings; an error in one of its functions is raised as BadInput naming the entry point."""

    description: str
    forward: Any
    inverse: Any
    symbolic: Any  # None where it has none


class Verbs(dict[str, T]):
    """The built-in verbs of one kind; any other name is loaded from an entry point, and `make` makes a verb of it."""

    def __init__(self, built_in: dict[str, T], make: Callable[[Loaded], T]) -> None:
        super().__init__(built_in)
        self._make = make
        self._brought: dict[str, T] = {}

    def __missing__(self, name: str) -> T:
        if name not in self._brought:
            self._brought[name] = self._load(name)
        return self._brought[name]

    def knows(self, name: str) -> bool:
        """Whether it is built in or an entry point brings it; loads nothing. Raises BadInput where two bring it."""
        return name in self or find(name) is not None

    def _load(self, name: str) -> T:
        entry = find(name)
        if entry is None:
            raise BadInput(f"there is no verb '{name}': no installed distribution has it as an entry point of {GROUP}")
        where = described(entry)
        try:
            brought = entry.load()
        except Exception as error:  # other people's code may fail in any way
            raise BadInput(f"{where} cannot be loaded: {_said(error)}") from error
        forward, inverse = (getattr(brought, part, None) for part in ("forward", "inverse"))
        if isinstance(brought, type) or not callable(forward) or not callable(inverse):
            raise BadInput(f"{where}: expected an object with the methods forward and inverse, got {brought!r}")
        description = getattr(brought, "description", None)
        symbolic = getattr(brought, "symbolic", None)
        return self._make(
            Loaded(
                description if isinstance(description, str) else f"{name}, of {_distribution(entry)}",
                _guarded(forward, f"{where}: forward"),
                _guarded(inverse, f"{where}: inverse"),
                _guarded(symbolic, f"{where}: symbolic") if callable(symbolic) else None,
            )
        )


def find(name: str) -> EntryPoint | None:
    """Return the entry point of that name, None where there is none; raises BadInput where there are two."""
    from importlib.metadata import entry_points  # takes longer than converting a small checkpoint

    found = {(entry.value, _distribution(entry)): entry for entry in entry_points(group=GROUP, name=name)}
    if len(found) > 1:
        both = " and ".join(sorted(f"{value} ({distribution})" for value, distribution in found))
        raise BadInput(f"the verb '{name}' is brought by {both}: uninstall one of them")
    return next(iter(found.values()), None)


def described(entry: EntryPoint) -> str:
    """Say which entry point it is and which distribution, in what version, has it."""
    return f"the verb '{entry.name}' (entry point {entry.value} of {_distribution(entry)})"


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an unknown distribution"


def _guarded(function: Any, where: str) -> Any:
    """The function, with its exceptions reported as its own, but for ValueError (no counterpart for that value)."""

    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except ValueError:
            raise
        except Exception as error:
            raise BadInput(f"{where} failed: {_said(error)}") from error

    return call


def _said(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


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
