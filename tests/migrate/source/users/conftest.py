"""Translates and runs the small models that the selected tests name, once, in one process for each framework."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for written

from written import LIBRARY, Written, builders, copied, write


@pytest.fixture(scope="session")
def users(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    """Every model by the name of the function that makes it."""
    folder = tmp_path_factory.mktemp("users")
    (folder / "out").mkdir()
    return write(copied(folder / "models", named(request)), folder / "out")


@pytest.fixture(scope="session")
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    """The models of transformers' classes, which takes long to import, by the names of their functions."""
    folder, wanted = tmp_path_factory.mktemp("library"), named(request)
    (folder / "out").mkdir()
    models = [f"{shutil.copy(file, folder)}:{name}" for file in LIBRARY for name in builders(file) if name in wanted]
    return write(models, folder / "out")


def named(request: pytest.FixtureRequest) -> set[str]:
    """The words in the selected tests that use a fixture, and their parameters: the names of models are among them."""
    found: set[str] = set()
    for item in request.session.items:
        if isinstance(item, pytest.Function) and request.fixturename in item.fixturenames:
            found |= {*words(item.function.__code__.co_consts)}
            found |= {*words(item.callspec.params.values())} if hasattr(item, "callspec") else set()
    return found


def words(constants: Iterable[object] | CodeType) -> Iterator[str]:
    """The texts among the constants of a function, in tuples and in functions inside of it."""
    for constant in constants.co_consts if isinstance(constants, CodeType) else constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, (tuple, frozenset, CodeType)):
            yield from words(constant)
