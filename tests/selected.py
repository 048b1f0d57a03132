"""What the selected tests name, so that a fixture for many of them computes no more than that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType

import pytest


def named(request: pytest.FixtureRequest) -> set[str]:
    """The texts in the selected tests that use this fixture, and their parameters: names of cases are among them."""
    found: set[str] = set()
    for item in request.session.items:
        if isinstance(item, pytest.Function) and request.fixturename in item.fixturenames:
            found |= {*_texts(item.function.__code__.co_consts)}
            found |= {*_texts(item.callspec.params.values())} if hasattr(item, "callspec") else set()
    return found


def _texts(constants: Iterable[object] | CodeType) -> Iterator[str]:
    """The texts among the constants of a function, in tuples and in functions inside of it."""
    for constant in constants.co_consts if isinstance(constants, CodeType) else constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, (tuple, frozenset, CodeType)):
            yield from _texts(constant)
